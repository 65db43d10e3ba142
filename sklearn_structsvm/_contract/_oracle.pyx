"""The interface of a problem for block-coordinate solvers, declared once.

A `BlockOracle` holds n examples (the blocks) with their dual state in marginal
space. With μ(y) the marginals of a labeling, block i keeps

    ν_i = Σ_y α_i(y) (μ(y) - μ(y_i)),

which is zero at the start (all dual mass on the true labeling). Scaling the dual point
just scales ν_i. The joint feature of a difference of marginals, Σ_v x_v ⊗ Δ_v, is only
ever formed for one direction at a time.

The solver calls, for block i and weights w:

``potentials``   θ_i(w) into `work`; every call below with `work` reads them
``max_oracle``   argmax_y ⟨θ_i, μ(y) - μ(y_i)⟩ + lam · L_i(y)
``evaluate``     the same two terms for one given labeling
``evaluate_each``  the first of these terms for n labelings
``scores_of``    the same at weights w, without potentials: `work` has none afterwards
``upper_bound``  an upper bound on the maximum that `max_oracle` has just searched for;
                 for an exact oracle, the maximum itself
``block_score``  ⟨θ_i, ν_i⟩
``direction``    Δ = c ν_i + Σ_{j < n} a_j (μ(s_j) - μ(y_i)) and, on request, the squared
                 norm of its joint feature
``image``        θ_i with the joint feature of Δ as w, for `evaluate`
``move``         ν_i += gamma · Δ
``scatter``      target += coef · (joint feature of Δ)
``project``      w = clip(v, lower, upper) on the coordinates that Δ touches, or all
``shrink``       w = v moved toward zero by the threshold, but not past zero, on the same
                 coordinates
``mark``         pages[j // PAGE] = 1 for the coordinates j that Δ touches, or for all
``release``      the solver will not use this labeling again

and, if it `has_marginals`,

``soft_oracle``  ν_i = Σ_y P(y) (μ(y) - μ(y_i)) for P(y) proportional to
                 exp(H(y) / temperature), where H is the objective of `max_oracle`; the
                 soft maximum temperature · log(mean of exp(H(y) / temperature) over all
                 y); and Σ_y P(y) L_i(y). An infinite temperature makes P uniform, and the
                 soft maximum a mean

After `image`, the scores of labelings are the inner products of their joint features with
that of Δ: a row of the Gram matrix of an example's labelings.

For slack rescaling (see `solvers.blocks.slack_search`), with
h = one + ⟨θ_i, μ(y) - μ(y_i)⟩
and g = L_i(y), the solver calls:

``loss``         L_i(y)
``candidates``   a few labelings, as points of the plane, one of which attains the maximum
                 of h g over all labelings; if `has_candidates`
``candidate``    the labeling of one of these points
``constrained_oracle``  argmax h + lam g over β h < g <= α h; returns false if there is
                 none; if `has_constrained`

For conditional random fields (see `solvers.blocks.crf`), if `has_sums`, α_i(y) is
proportional to exp ⟨η_i, μ(y)⟩. The log factors η_i have the shape of θ_i, and the
caller keeps them in `n_factors(i)` doubles:

``true_factors``  η of a distribution in which the labels of y_i have these log odds
``log_sum``      log Σ_y exp ⟨θ_i, μ(y) - μ(y_i)⟩
``tilt``         with η' = η + gamma (θ_i - η), the direction Δ = ν' - ν_i from the
                 current marginals to those of η'; on request, its squared norm; two
                 slopes, ⟨θ_i - η, Δ⟩ and ⟨η', Δ⟩; and the entropy of the distribution
                 of η'
``load_factors``  η into `work` in the place of θ_i

The caller lends `work` (`work_size` doubles) and `direction` (`direction_size` doubles),
one of each per thread, initially zero; their content is private to the oracle.
A labeling is `n_labels(i)` integers in [0, `n_values`); several are stored one after
another.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_floats, check_indices, check_shape
from sklearn_structsvm._utils.threads import whole_lines

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dasum

from sklearn_structsvm._utils._matrix._features cimport mark_range, soft_threshold
from sklearn_structsvm._utils._memory cimport grow, no_memory

cdef const char* LABELINGS = "the labelings of an example"


cdef int reserve_points(Plane* plane, Py_ssize_t n_points) except -1 nogil:
    """Make room for this many points; points in use are kept."""
    if n_points > plane.capacity:
        n_points = max(n_points, 2 * plane.capacity)
        grow(<void**> &plane.scores, n_points * sizeof(double), LABELINGS)
        grow(<void**> &plane.losses, n_points * sizeof(double), LABELINGS)
        plane.capacity = n_points
    return 0


cdef void* reserve_scratch(Plane* plane, Py_ssize_t n_bytes) except NULL nogil:
    """Make room for this many bytes; bytes in use are kept, but may move."""
    if n_bytes > plane.scratch_size or plane.scratch == NULL:
        n_bytes = max(n_bytes, 2 * plane.scratch_size, 64)
        grow(&plane.scratch, n_bytes, LABELINGS)
        plane.scratch_size = n_bytes
    return plane.scratch


cdef void free_plane(Plane* plane) noexcept nogil:
    free(plane.scores)
    free(plane.losses)
    free(plane.scratch)
    memset(plane, 0, sizeof(Plane))


cdef int missing(BlockOracle oracle, const char* method) except -1 nogil:
    with gil:
        raise NotImplementedError(
            f"{type(oracle).__name__} must define {method.decode()}.")


cdef int not_finite(Py_ssize_t i) except -1 nogil:
    with gil:
        raise ValueError(f"w must be finite, and so must the scores of example {i}.")


cdef class BlockOracle:
    """Loss-augmented decoding of n blocks and their dual state; see the module.

    Attributes
    ----------
    n_blocks, n_weights : int
        Number of examples, and length of the weight vector w.
    max_labels, work_size, direction_size : int
        Sizes of the buffers that a caller lends: the length of the longest labeling, and
        the doubles of `work` and of `direction`.
    n_scores : int
        Number of doubles at the front of `work` that hold all scores, or zeros, after a
        call of `potentials`: these are then checked for NaN instead of the weights.
        0 if the weights are to be checked.
    relative_cost : float
        Operations of one call of `max_oracle` relative to one `evaluate`, by which
        solvers choose steps and caches. It is counted from the sizes of the problem and
        never timed, so that the same problem is always solved in the same way. Infinite
        if an oracle does not declare it, as for structures in Python and linear programs:
        calls then count as more expensive than any work over cached labelings.
    n_values : int
        The integers of a labeling are less than this.
    thread_safe : bool
        Whether several threads may call methods at once for distinct blocks.
    has_candidates, has_constrained, has_marginals, has_sums : bool
        Whether `candidates`, `constrained_oracle`, `soft_oracle`, and the calls for
        conditional random fields are implemented.
    slacks : ndarray of shape (n_blocks,), or None
        What cutting planes are to write before each round: the slack of each example.
    can_tighten : bool
        Whether `log_loss` is an upper bound that `tighten` lowers.

    Notes
    -----
    A class sets the last four for its own methods. Classes of the package do not set them
    for their subclasses, whose methods they do not know: a subclass sets these in its
    `__init__`, after the `__init__` of its parent.
    """

    slacks = None
    can_tighten = False

    def __cinit__(self):
        self.relative_cost = INFINITY

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil:
        return self.max_labels

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        return missing(self, "true_labels")

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        return missing(self, "potentials")

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        return missing(self, "max_oracle")

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        return missing(self, "evaluate")

    cdef int evaluate_each(
            self, Py_ssize_t i, double* work, Py_ssize_t n, const int* labelings,
            double* scores) except -1 nogil:
        cdef Py_ssize_t j, size = self.n_labels(i)
        cdef double loss
        for j in range(n):
            self.evaluate(i, work, labelings + j * size, &scores[j], &loss)
        return 0

    cdef int scores_of(
            self, Py_ssize_t i, const double* w, double* work, Py_ssize_t n,
            const int* labelings, double* scores) except -1 nogil:
        self.potentials(i, w, work)
        return self.evaluate_each(i, work, n, labelings, scores)

    cdef double upper_bound(
            self, Py_ssize_t i, const double* work, double value) noexcept nogil:
        return value

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        return missing(self, "soft_oracle")

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return missing(self, "loss")

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        return missing(self, "candidates")

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        return missing(self, "candidate")

    cdef bint constrained_oracle(
            self, Py_ssize_t i, double lam, double alpha, double beta,
            bint strict_alpha, bint strict_beta, double one, double* work,
            int* labels, double* score, double* loss) except? -1 nogil:
        return missing(self, "constrained_oracle")

    def step_cost(self):
        """About the operations of a step on a block, by which threads are counted.

        Some oracles add those for their features.
        """
        # An evaluation has a term for each label, and one for each pair of neighbors.
        return self.relative_cost * (CALL + 2 * self.max_labels)

    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil:
        return 0

    cdef int true_factors(
            self, Py_ssize_t i, double odds, double* factors) except -1 nogil:
        return missing(self, "true_factors")

    cdef int log_sum(
            self, Py_ssize_t i, double* work, double* value) except -1 nogil:
        return missing(self, "log_sum")

    cdef int tilt(
            self, Py_ssize_t i, double gamma, double* work, const double* factors,
            double* tilted, double* out, double* squared_norm, double* slope,
            double* entropy) except -1 nogil:
        return missing(self, "tilt")

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        return missing(self, "load_factors")

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        return missing(self, "block_score")

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        return missing(self, "direction")

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        cdef double* w = <double*> calloc(max(self.n_weights, 1), sizeof(double))
        if w == NULL:
            no_memory("a vector of weights")
        try:
            self.scatter(i, 1.0, direction, w)
            self.potentials(i, w, work)
        finally:
            free(w)
        return 0

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        return missing(self, "move")

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        return missing(self, "scatter")

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.n_weights):
            w[j] = min(max(v[j], lower[j]), upper[j])
        return 0

    cdef int shrink(
            self, Py_ssize_t i, const double* direction, const double* v,
            double threshold, double* w) except -1 nogil:
        soft_threshold(self.n_weights, v, threshold, w)
        return 0

    cdef int mark(
            self, Py_ssize_t i, const double* direction, unsigned char* pages
            ) except -1 nogil:
        mark_range(0, self.n_weights, pages)
        return 0

    cdef int release(self, Py_ssize_t i, const int* labels) except -1 nogil:
        return 0

    cdef int finite_potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        """Call `potentials` and check that they are finite; `work` starts as zeros."""
        cdef int size = <int> self.n_scores, one = 1
        self.potentials(i, w, work)
        # A sum of magnitudes hides no NaN, and overflows whenever sums of scores do.
        if size > 0 and not dasum(&size, work, &one) < INFINITY:
            not_finite(i)
        return 0

    def decode(self, w, double lam=0.0, int n_threads=1):
        """argmax_y ⟨w, φ(x_i, y)⟩ + lam · L_i(y) of all blocks, concatenated.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
        lam : float
        n_threads : int

        Returns
        -------
        ndarray of shape (Σ_i n_labels(i),), dtype intc

        Raises
        ------
        ValueError
            If w has the wrong shape or is not finite.
        """
        cdef Py_ssize_t i, first, stop, n = self.n_blocks
        cdef const double[::1] weights = as_floats(
            "w", w, self.n_weights, finite=self.n_scores == 0)
        cdef Py_ssize_t[::1] starts = np.zeros(n + 1, dtype=np.intp)
        for i in range(n):
            starts[i + 1] = starts[i] + self.n_labels(i)
        result = np.zeros(starts[n], dtype=np.intc)
        cdef int[::1] labels = result
        cdef int t
        n_threads = max(1, min(n_threads, n)) if self.thread_safe else 1
        cdef double[:, ::1] work = np.zeros(
            (n_threads, whole_lines(max(self.work_size, 1))))
        cdef double[:, ::1] terms = np.zeros((n_threads, 2))
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            stop = min(first + CHUNK, n)
            if n_threads == 1:
                with nogil:
                    for i in range(first, stop):
                        self.finite_potentials(i, &weights[0], &work[0, 0])
                        self.max_oracle(i, lam, &work[0, 0], &labels[starts[i]],
                                        &terms[0, 0], &terms[0, 1])
                continue
            for i in prange(
                    first, stop, nogil=True, num_threads=n_threads, schedule="static"):
                t = threadid()
                self.finite_potentials(i, &weights[0], &work[t, 0])
                self.max_oracle(i, lam, &work[t, 0], &labels[starts[i]],
                                &terms[t, 0], &terms[t, 1])
        return result

    def keep_grams(self):
        """Prepare for many steps on the same blocks. Nothing needs to be done."""

    def log_loss(self, weights, w, int n_threads=1):
        """Σ_i p_i log Σ_y exp ⟨θ_i, μ(y) - μ(y_i)⟩ and its gradient, if `has_sums`.

        The dual state must be the initial one: the gradient sums up the changes of the
        marginals.

        Parameters
        ----------
        weights : ndarray of shape (n_blocks,)
            p_i; blocks of weight 0 are skipped.
        w : array-like of shape (n_weights,)
        n_threads : int

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_weights,)

        Raises
        ------
        ValueError
            If a shape is wrong, or w is not finite.
        """
        cdef Py_ssize_t i, first, stop, n = self.n_blocks
        cdef const double[::1] p = as_floats("weights", weights, n)
        cdef const double[::1] at = as_floats("w", w, self.n_weights)
        cdef int t
        n_threads = max(1, min(n_threads, n)) if self.thread_safe else 1
        cdef Py_ssize_t n_factors = max([self.n_factors(i) for i in range(n)] + [1])
        cdef double[:, ::1] work = np.zeros(
            (n_threads, whole_lines(max(self.work_size, 1))))
        cdef double[:, ::1] moved = np.zeros((n_threads, max(self.direction_size, 1)))
        cdef double[:, ::1] tilted = np.zeros((n_threads, n_factors))
        cdef double[::1] uniform = np.zeros(n_factors)
        gradients, values = np.zeros((n_threads, self.n_weights)), np.zeros((n, 3))
        cdef double[:, ::1] gradient = gradients, terms = values
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            stop = min(first + CHUNK, n)
            for i in prange(
                    first, stop, nogil=True, num_threads=n_threads, schedule="static"):
                if p[i] > 0.0:
                    t = threadid()
                    self.potentials(i, &at[0], &work[t, 0])
                    # The step is from η = 0 to θ, so the slope is ⟨θ, Δ⟩.
                    self.tilt(i, 1.0, &work[t, 0], &uniform[0], &tilted[t, 0],
                              &moved[t, 0], NULL, &terms[i, 0], &terms[i, 2])
                    self.scatter(i, p[i], &moved[t, 0], &gradient[t, 0])
        # Only rounding can make a probability exceed one.
        losses = np.maximum(values[:, 0] + values[:, 2], 0.0)
        return float(np.dot(p, losses)), gradients.sum(axis=0)

    def get_blocks(self):
        """Copy of the dual state of all blocks (picklable)."""
        missing(self, "get_blocks")

    def set_blocks(self, blocks):
        """Restore a state from `get_blocks`; ValueError if it does not fit."""
        missing(self, "set_blocks")

    def scale_blocks(self, double rho):
        """ν_i *= rho for all i: move dual mass 1 - rho to the true labelings."""
        missing(self, "scale_blocks")

    def labeling_to_object(self, Py_ssize_t i, int[::1] labels):
        """The labeling as an object that outlives this oracle (for pickles)."""
        return np.asarray(labels).copy()

    def labeling_from_object(self, Py_ssize_t i, saved):
        """Inverse of `labeling_to_object`; ValueError if it is not a labeling."""
        name = f"labeling of example {i}"
        labels = np.asarray(saved)
        check_shape(name, labels, self.n_labels(i))
        check_indices(name, labels, self.n_values)
        return np.ascontiguousarray(labels, dtype=np.intc)
