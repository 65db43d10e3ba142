"""The oracle of a structure written in Python, and its sparse joint features."""
import numpy as np
from scipy import sparse

from libc.limits cimport INT_MAX

from sklearn_structsvm._contract._oracle cimport (
    BlockOracle, Plane, reserve_points, reserve_scratch)


def sparse_vector(phi):
    """A joint feature as sorted (indices, values), zeros left out."""
    if sparse.issparse(phi):
        row = sparse.csr_array(phi).reshape((1, -1)).tocsr()
        row.sum_duplicates()
        row.sort_indices()
        keep = row.data != 0
        return row.indices[keep].astype(np.intp), row.data[keep].astype(np.float64)
    phi = np.asarray(phi, dtype=np.float64).ravel()
    indices = np.flatnonzero(phi)
    return indices, phi[indices]


def linear_combination(terms):
    """Σ coef · vector of sparse (indices, values) vectors."""
    terms = [(coef, vector) for coef, vector in terms if coef != 0.0]
    if not terms:
        return np.empty(0, dtype=np.intp), np.empty(0)
    first = terms[0][1][0]
    if all(np.array_equal(vector[0], first) for _, vector in terms[1:]):
        return first, sum(coef * vector[1] for coef, vector in terms)
    indices, position = np.unique(
        np.concatenate([vector[0] for _, vector in terms]), return_inverse=True)
    values = np.concatenate([coef * vector[1] for coef, vector in terms])
    return indices, np.bincount(position, weights=values, minlength=len(indices))


def outline(y):
    """The shape of an array, list or tuple of labels; () for other labelings."""
    if isinstance(y, np.ndarray):
        return y.shape
    return (len(y),) if isinstance(y, (list, tuple)) else ()


def label_key(y):
    """A hashable stand-in for a labeling of any kind, equal for equal ones."""
    if isinstance(y, np.ndarray):
        if y.dtype != object:
            return (y.shape, y.dtype.str, y.tobytes())
        return (y.shape, tuple(label_key(part) for part in y.ravel()))
    if isinstance(y, (list, tuple)):
        return (type(y).__name__, tuple(label_key(part) for part in y))
    if isinstance(y, dict):
        return frozenset((key, label_key(part)) for key, part in y.items())
    return y


cdef class CallbackOracle(BlockOracle):
    """The oracle of a structure written in Python: every call takes the GIL.

    Its marginals are the joint feature itself, kept sparse, so that memory is
    O(Σ_i non-zeros of block i's mean joint feature). A labeling is one integer,
    its place among those of block i that the solver still holds.

    Parameters
    ----------
    structure : Structure
        With `joint_feature`, `loss` and `loss_augmented_decode`.
    X, y : sequences of n examples and labelings
    n_weights : int
        Length of the joint feature.
    """

    cdef object structure
    cdef object X
    cdef object y
    cdef object w
    cdef list truth
    cdef list slots
    cdef list blocks
    cdef dict directions

    def __init__(self, structure, X, y, Py_ssize_t n_weights):
        cdef Py_ssize_t i
        self.structure = structure
        self.X = X
        self.y = y
        self.n_blocks = len(X)
        self.n_weights = n_weights
        self.max_labels = 1
        self.n_values = INT_MAX
        self.work_size = 1
        self.direction_size = 1
        self.thread_safe = False
        self.has_constrained = structure.has_constrained_decode
        self.has_candidates = structure.has_slack_augmented_decode
        self.w = None
        self.truth = [self._joint_feature(i, y_i) for i, y_i in enumerate(y)]
        for i, y_i in enumerate(y):
            loss = self._loss(i, y_i)
            if loss != 0.0:
                raise ValueError(
                    f"loss(y_true, y) of {type(structure).__name__} must be 0 where y is "
                    f"y_true; got {loss!r} for example {i}.")
        empty = (np.empty(0, dtype=np.intp), np.empty(0))
        self.blocks = [empty] * self.n_blocks
        # Slot 0 is the true labeling: difference zero, loss zero.
        self.slots = [{0: (y_i, empty, 0.0)} for y_i in y]
        self.directions = {}

    cdef tuple _corner(self, Py_ssize_t i, int slot):
        return self.slots[i][slot]

    cdef tuple _joint_feature(self, Py_ssize_t i, object label):
        name = type(self.structure).__name__
        phi = self.structure.joint_feature(self.X[i], label)
        shape = np.shape(phi) if not sparse.issparse(phi) else phi.shape
        if int(np.prod(shape)) != self.n_weights:
            raise ValueError(
                f"joint_feature of {name} must have shape ({self.n_weights},) for every "
                f"labeling; for example {i} it has shape {shape}.")
        indices, values = sparse_vector(phi)
        if not np.isfinite(values).all():
            raise ValueError(
                f"joint_feature of {name} has NaN or infinite entries for example {i}.")
        return indices, values

    cdef double _loss(self, Py_ssize_t i, object label) except? -1:
        loss = float(self.structure.loss(self.y[i], label))
        if not (loss >= 0.0) or loss == float("inf"):
            raise ValueError(
                f"loss(y_true, y) of {type(self.structure).__name__} must be a "
                f"finite number >= 0; got {loss!r} for example {i}.")
        return loss

    cdef int _store(self, Py_ssize_t i, object label) except -1:
        cdef dict slots = self.slots[i]
        key = label_key(label)
        for slot, (known, _, _) in slots.items():
            if label_key(known) == key:
                return slot
        if not self.structure.variable_length and outline(label) != outline(self.y[i]):
            raise ValueError(
                f"loss_augmented_decode of {type(self.structure).__name__} returned a "
                f"labeling of shape {outline(label)} for example {i}, whose true "
                f"labeling has shape {outline(self.y[i])}. (Set the class attribute "
                "variable_length = True where shapes may differ.)")
        loss = self._loss(i, label)
        phi = self._joint_feature(i, label)
        delta = linear_combination([(1.0, phi), (-1.0, self.truth[i])])
        slot = 1
        while slot in slots:
            slot += 1
        slots[slot] = (label, delta, loss)
        return slot

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        labels[0] = 0
        return 0

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        with gil:
            # A copy: the structure may keep what it is handed.
            self.w = np.array(<double[:self.n_weights]> <double*> w)
            self.w.flags.writeable = False
        return 0

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        with gil:
            label = self.structure.loss_augmented_decode(
                self.X[i], self.y[i], self.w, lam)
            labels[0] = self._store(i, label)
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        with gil:
            _, delta, corner_loss = self._corner(i, labels[0])
            loss[0] = corner_loss
            score[0] = self.w[delta[0]].dot(delta[1])
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        with gil:
            return self._corner(i, labels[0])[2]

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef int* slot
        reserve_points(plane, 1)
        slot = <int*> reserve_scratch(plane, sizeof(int))
        with gil:
            n_known = len(self.slots[i])
            label = self.structure.slack_augmented_decode(
                self.X[i], self.y[i], self.w, one)
            slot[0] = self._store(i, label)
            is_new = len(self.slots[i]) > n_known
        self.evaluate(i, work, slot, plane.scores, plane.losses)
        plane.count = (one + plane.scores[0]) * plane.losses[0] > 0.0
        if plane.count == 0:
            with gil:
                if is_new:
                    self.release(i, slot)
        return 0

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        labels[0] = (<int*> plane.scratch)[0]
        return 0

    cdef bint constrained_oracle(
            self, Py_ssize_t i, double lam, double alpha, double beta,
            bint strict_alpha, bint strict_beta, double one, double* work,
            int* labels, double* score, double* loss) except? -1 nogil:
        with gil:
            # The structure's h is 1 + ...; dividing by `one` makes ours of that form.
            label = self.structure.constrained_decode(
                self.X[i], self.y[i], self.w if one == 1.0 else self.w / one,
                lam / one, alpha * one, beta * one, strict_alpha, strict_beta)
            if label is None:
                return False
            labels[0] = self._store(i, label)
        self.evaluate(i, work, labels, score, loss)
        return True

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        with gil:
            indices, values = self.blocks[i]
            score[0] = self.w[indices].dot(values)
        return 0

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t j
        with gil:
            terms = [(c, self.blocks[i])]
            for j in range(n):
                if a[j] != 0.0:
                    terms.append((a[j], self._corner(i, s[j])[1]))
            delta = linear_combination(terms)
            # `out` only tells the caller's directions apart.
            self.directions[<size_t> out] = delta
            if squared_norm != NULL:
                squared_norm[0] = delta[1].dot(delta[1])
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        with gil:
            indices, values = self.directions[<size_t> direction]
            self.w = np.zeros(self.n_weights)
            self.w[indices] = values
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        with gil:
            self.blocks[i] = linear_combination(
                [(1.0, self.blocks[i]), (gamma, self.directions[<size_t> direction])])
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        with gil:
            indices, values = self.directions[<size_t> direction]
            np.asarray(<double[:self.n_weights]> target)[indices] += coef * values
        return 0

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        cdef Py_ssize_t d = self.n_weights
        with gil:
            j = self.directions[<size_t> direction][0]
            np.asarray(<double[:d]> w)[j] = np.clip(
                np.asarray(<double[:d]> <double*> v)[j],
                np.asarray(<double[:d]> <double*> lower)[j],
                np.asarray(<double[:d]> <double*> upper)[j])
        return 0

    cdef int release(self, Py_ssize_t i, const int* labels) except -1 nogil:
        with gil:
            if labels[0] != 0:
                self.slots[i].pop(labels[0], None)
        return 0

    def get_blocks(self):
        return list(self.blocks)

    def set_blocks(self, blocks):
        self.blocks = list(blocks)

    def scale_blocks(self, double rho):
        self.blocks = [(indices, rho * values) for indices, values in self.blocks]

    def labeling_to_object(self, Py_ssize_t i, int[::1] labels):
        return self.slots[i][labels[0]][0]

    def labeling_from_object(self, Py_ssize_t i, saved):
        return np.array([self._store(i, saved)], dtype=np.intc)
