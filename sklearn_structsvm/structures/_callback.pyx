"""The oracle of a structure written in Python.

Python is called only for decoding, and for the loss and joint feature of a new labeling.
What is known of labelings is kept in arrays, so that steps over cached labelings need no
Python.
"""
import numpy as np

from sklearn_structsvm._contract.answers import Answer, brief
from sklearn_structsvm._utils.borders import as_floats, as_tuple, check_indices

from libc.limits cimport INT_MAX
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport (
    BlockOracle, Plane, reserve_points, reserve_scratch)
from sklearn_structsvm._utils._memory cimport grow, no_memory


def outline(y):
    """The shape of an array, list or tuple of labels; () for other labelings."""
    if isinstance(y, np.ndarray):
        return y.shape
    return (len(y),) if isinstance(y, (list, tuple)) else ()


def label_key(y):
    """A hashable key for a labeling of any type; equal labelings have equal keys."""
    if isinstance(y, np.ndarray):
        if y.dtype != object:
            return (y.shape, y.dtype.str, y.tobytes())
        return (y.shape, tuple(label_key(part) for part in y.ravel()))
    if isinstance(y, (list, tuple)):
        return (type(y).__name__, tuple(label_key(part) for part in y))
    if isinstance(y, dict):
        return frozenset((key, label_key(part)) for key, part in y.items())
    return y


def labeling_key(answer, label):
    """The key of a labeling that a method returned; ValueError if it is none."""
    if label is None:
        raise answer.fault("be a labeling", None)
    try:
        key = label_key(label)
        hash(key)
    except TypeError as error:
        raise answer.fault(
            f"be an array, list, tuple or dict, or hashable ({error})", brief(label)
        ) from error
    return key


def check_outline(answer, structure, label, truth):
    """ValueError if a labeling has not the length of the truth, and must have it."""
    label, truth = map(structure._labels_of, (label, truth))
    if structure.variable_length or outline(label) == outline(truth):
        return
    raise answer.fault(
        f"be a labeling of shape {outline(truth)}, as the true one is (set the class "
        "attribute variable_length = True where shapes may differ)",
        f"shape {outline(label)}, {brief(label)},")


cdef struct Vector:
    # Sparse: no index occurs twice.
    Py_ssize_t count
    Py_ssize_t* indices
    double* values


cdef struct Slot:
    bint is_used
    double loss
    # The joint feature of a labeling, less that of the truth.
    Vector delta


cdef struct Block:
    Py_ssize_t n_slots
    Slot* slots
    # The mean joint feature of the block, less that of the truth.
    Vector nu


cdef int resize(Vector* vector, Py_ssize_t count) except -1 nogil:
    """Make room for this many entries; if their number changes, the old ones are lost."""
    cdef Py_ssize_t* indices = NULL
    cdef double* values = NULL
    if count != vector.count:
        if count:
            indices = <Py_ssize_t*> malloc(count * sizeof(Py_ssize_t))
            values = <double*> malloc(count * sizeof(double))
            if indices == NULL or values == NULL:
                free(indices)
                free(values)
                no_memory("a joint feature")
        free(vector.indices)
        free(vector.values)
        vector.indices, vector.values = indices, values
        vector.count = count
    return 0


cdef int fill(Vector* vector, indices, values) except -1:
    cdef const Py_ssize_t[::1] all_indices = np.ascontiguousarray(indices, dtype=np.intp)
    cdef const double[::1] all_values = np.ascontiguousarray(values, dtype=np.float64)
    cdef Py_ssize_t j, n = all_indices.shape[0]
    resize(vector, n)
    for j in range(n):
        vector.indices[j] = all_indices[j]
        vector.values[j] = all_values[j]
    return 0


cdef double dot(const Vector* vector, const double* w) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(vector.count):
        total += vector.values[j] * w[vector.indices[j]]
    return total


cdef class CallbackOracle(BlockOracle):
    """The oracle of a structure written in Python.

    Its marginals are the joint feature itself, kept sparse, so that memory is
    O(Σ_i non-zeros of block i's mean joint feature). A labeling is one integer,
    its place among those of block i that the solver still holds. A direction is the
    number of its entries, then their indices, then their values from place
    1 + n_weights on.

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
    cdef list truth
    # For each block, the labeling of each slot and its key.
    cdef list labels
    cdef Block* blocks
    # For sums of sparse vectors: entries, and a mark for those that are in the sum.
    cdef double* sums
    cdef unsigned char* is_in

    def __init__(self, structure, X, y, Py_ssize_t n_weights):
        cdef Py_ssize_t i
        self.structure = structure
        self.X = X
        self.y = y
        self.n_blocks = len(X)
        self.n_weights = n_weights
        self.max_labels = 1
        self.n_values = INT_MAX
        self.work_size = n_weights
        self.direction_size = 1 + 2 * n_weights
        self.thread_safe = False
        self.has_constrained = structure.has_constrained_decode
        self.has_candidates = structure.has_slack_augmented_decode
        self.truth = [self._joint_feature(i, y_i) for i, y_i in enumerate(y)]
        for i, y_i in enumerate(y):
            loss = self._loss(i, y_i)
            if loss != 0.0:
                raise Answer("loss", structure, i).fault("be 0 where y is y_true", loss)
        # Slot 0 is the true labeling: difference zero, loss zero.
        self.labels = [{0: (y_i, label_key(y_i))} for y_i in y]
        self.sums = <double*> calloc(max(n_weights, 1), sizeof(double))
        self.is_in = <unsigned char*> calloc(max(n_weights, 1), 1)
        self.blocks = <Block*> calloc(max(self.n_blocks, 1), sizeof(Block))
        if self.sums == NULL or self.is_in == NULL or self.blocks == NULL:
            no_memory("the dual variables")
        for i in range(self.n_blocks):
            self._reserve(i, 1)
            self.blocks[i].slots[0].is_used = True

    def __dealloc__(self):
        cdef Py_ssize_t i, s
        if self.blocks != NULL:
            for i in range(self.n_blocks):
                for s in range(self.blocks[i].n_slots):
                    resize(&self.blocks[i].slots[s].delta, 0)
                resize(&self.blocks[i].nu, 0)
                free(self.blocks[i].slots)
        free(self.blocks)
        free(self.sums)
        free(self.is_in)

    cdef int _reserve(self, Py_ssize_t i, Py_ssize_t n_slots) except -1:
        cdef Block* block = &self.blocks[i]
        grow(<void**> &block.slots, n_slots * sizeof(Slot), "another labeling")
        memset(block.slots + block.n_slots, 0,
               (n_slots - block.n_slots) * sizeof(Slot))
        block.n_slots = n_slots
        return 0

    cdef object _w(self, const double* work):
        """The weights for the structure: a copy, because the structure may keep it."""
        w = np.array(<double[:self.n_weights]> <double*> work)
        w.flags.writeable = False
        return w

    cdef tuple _joint_feature(self, Py_ssize_t i, object label):
        phi = self.structure.joint_feature(self.X[i], label)
        return Answer("joint_feature", self.structure, i).vector(phi, self.n_weights)

    cdef double _loss(self, Py_ssize_t i, object label) except? -1:
        loss = self.structure.loss(self.y[i], label)
        return Answer("loss", self.structure, i).number(loss, 0.0)

    cdef int _store(self, Py_ssize_t i, object label, str method) except -1:
        cdef Block* block = &self.blocks[i]
        cdef Py_ssize_t slot
        answer = Answer(method, self.structure, i)
        key = labeling_key(answer, label)
        for slot, (_, known) in self.labels[i].items():
            if known == key:
                return slot
        check_outline(answer, self.structure, label, self.y[i])
        loss = self._loss(i, label)
        pieces = zip(self._joint_feature(i, label), self.truth[i], strict=True)
        indices, values = map(np.concatenate, pieces)
        values[len(values) - len(self.truth[i][1]):] *= -1.0
        indices, position = np.unique(indices, return_inverse=True)
        values = np.bincount(position, weights=values, minlength=len(indices))
        slot = 0
        while slot < block.n_slots and block.slots[slot].is_used:
            slot += 1
        if slot == block.n_slots:
            self._reserve(i, 2 * slot)
        fill(&block.slots[slot].delta, indices, values)
        block.slots[slot].loss = loss
        block.slots[slot].is_used = True
        self.labels[i][slot] = label, key
        return slot

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        labels[0] = 0
        return 0

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        memcpy(work, w, self.n_weights * sizeof(double))
        return 0

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        with gil:
            label = self.structure.loss_augmented_decode(
                self.X[i], self.y[i], self._w(work), lam)
            labels[0] = self._store(i, label, "loss_augmented_decode")
        return self.evaluate(i, work, labels, score, loss)

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        cdef const Slot* slot = &self.blocks[i].slots[labels[0]]
        loss[0] = slot.loss
        score[0] = dot(&slot.delta, work)
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return self.blocks[i].slots[labels[0]].loss

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef int* slot
        reserve_points(plane, 1)
        slot = <int*> reserve_scratch(plane, sizeof(int))
        with gil:
            n_known = len(self.labels[i])
            label = self.structure.slack_augmented_decode(
                self.X[i], self.y[i], self._w(work), one)
            slot[0] = self._store(i, label, "slack_augmented_decode")
            is_new = len(self.labels[i]) > n_known
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
            w = self._w(work)
            label = self.structure.constrained_decode(
                self.X[i], self.y[i], w if one == 1.0 else w / one,
                lam / one, alpha * one, beta * one, strict_alpha, strict_beta)
            if label is None:
                return False
            labels[0] = self._store(i, label, "constrained_decode")
        self.evaluate(i, work, labels, score, loss)
        return True

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        score[0] = dot(&self.blocks[i].nu, work)
        return 0

    # ------------------------------------------------- sums of sparse vectors

    cdef Py_ssize_t _add(
            self, double coef, Py_ssize_t count, const Py_ssize_t* indices,
            const double* values, Py_ssize_t n_in, double* out) noexcept nogil:
        """sums += coef · vector; new indices are appended to those of `out`."""
        cdef Py_ssize_t j, index
        for j in range(count):
            index = indices[j]
            if not self.is_in[index]:
                self.is_in[index] = True
                self.sums[index] = 0.0
                out[1 + n_in] = index
                n_in += 1
            self.sums[index] += coef * values[j]
        return n_in

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Block* block = &self.blocks[i]
        cdef Vector* vector
        cdef Py_ssize_t j, index, n_in = 0
        cdef double value, norm = 0.0
        if c != 0.0:
            vector = &block.nu
            n_in = self._add(c, vector.count, vector.indices, vector.values, n_in, out)
        for j in range(n):
            if a[j] != 0.0:
                vector = &block.slots[s[j]].delta
                n_in = self._add(
                    a[j], vector.count, vector.indices, vector.values, n_in, out)
        out[0] = n_in
        for j in range(n_in):
            index = <Py_ssize_t> out[1 + j]
            value = self.sums[index]
            out[1 + self.n_weights + j] = value
            norm += value * value
            self.is_in[index] = False
        if squared_norm != NULL:
            squared_norm[0] = norm
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        memset(work, 0, self.n_weights * sizeof(double))
        return self.scatter(i, 1.0, direction, work)

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        cdef Vector* nu = &self.blocks[i].nu
        cdef Py_ssize_t j, index, n_in = nu.count, count = <Py_ssize_t> direction[0]
        cdef Vector grown
        cdef const double* values = direction + 1 + self.n_weights
        for j in range(nu.count):
            self.sums[nu.indices[j]] = nu.values[j]
            self.is_in[nu.indices[j]] = True
        for j in range(count):
            n_in += not self.is_in[<Py_ssize_t> direction[1 + j]]
        for j in range(nu.count):
            self.is_in[nu.indices[j]] = False
        if n_in > nu.count:
            memset(&grown, 0, sizeof(Vector))
            resize(&grown, n_in)
            n_in = nu.count
            for j in range(nu.count):
                grown.indices[j] = nu.indices[j]
                self.is_in[nu.indices[j]] = True
            for j in range(count):
                index = <Py_ssize_t> direction[1 + j]
                if not self.is_in[index]:
                    self.sums[index] = 0.0
                    grown.indices[n_in] = index
                    n_in += 1
            resize(nu, 0)
            nu[0] = grown
        for j in range(count):
            self.sums[<Py_ssize_t> direction[1 + j]] += gamma * values[j]
        for j in range(nu.count):
            nu.values[j] = self.sums[nu.indices[j]]
            self.is_in[nu.indices[j]] = False
        return 0

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        cdef Py_ssize_t j
        cdef const double* values = direction + 1 + self.n_weights
        for j in range(<Py_ssize_t> direction[0]):
            target[<Py_ssize_t> direction[1 + j]] += coef * values[j]
        return 0

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        cdef Py_ssize_t j, index
        for j in range(<Py_ssize_t> direction[0]):
            index = <Py_ssize_t> direction[1 + j]
            w[index] = min(max(v[index], lower[index]), upper[index])
        return 0

    cdef int release(self, Py_ssize_t i, const int* labels) except -1 nogil:
        cdef Slot* slot = &self.blocks[i].slots[labels[0]]
        if labels[0] == 0 or not slot.is_used:
            return 0
        resize(&slot.delta, 0)
        slot.is_used = False
        with gil:
            del self.labels[i][labels[0]]
        return 0

    def get_blocks(self):
        cdef Py_ssize_t i
        return [as_arrays(&self.blocks[i].nu) for i in range(self.n_blocks)]

    def set_blocks(self, blocks):
        cdef Py_ssize_t i
        for i, block in enumerate(as_tuple("blocks", blocks, self.n_blocks)):
            indices, values = as_tuple(f"block {i}", block, 2)
            indices = np.asarray(indices)
            check_indices(f"indices of block {i}", indices, self.n_weights)
            values = as_floats(f"values of block {i}", values, len(indices))
            if len(np.unique(indices)) < len(indices):
                raise ValueError(f"Indices of block {i} must be distinct.")
            fill(&self.blocks[i].nu, indices, values)

    def scale_blocks(self, double rho):
        cdef Py_ssize_t i, j
        for i in range(self.n_blocks):
            for j in range(self.blocks[i].nu.count):
                self.blocks[i].nu.values[j] *= rho

    def labeling_to_object(self, Py_ssize_t i, int[::1] labels):
        return self.labels[i][labels[0]][0]

    def labeling_from_object(self, Py_ssize_t i, saved):
        return np.array([self._store(i, saved, "the saved state")], dtype=np.intc)


cdef tuple as_arrays(const Vector* vector):
    """(indices, values)"""
    cdef Py_ssize_t j
    indices, values = np.empty(vector.count, dtype=np.intp), np.empty(vector.count)
    cdef Py_ssize_t[::1] all_indices = indices
    cdef double[::1] all_values = values
    for j in range(vector.count):
        all_indices[j] = vector.indices[j]
        all_values[j] = vector.values[j]
    return indices, values
