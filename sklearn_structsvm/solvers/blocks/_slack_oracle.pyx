"""Slack rescaling of any problem: a `BlockOracle` made of another.

The hinge of slack rescaling, max_y L(y) (1 + f(y) - f(y_i)), is that of a margin
rescaled problem whose corners are scaled by their losses: a labeling contributes
L(y) (μ(y) - μ(y_i)) to the dual block and L(y) to the dual loss. So every solver for a
`BlockOracle` works here, too, with its steps, caches and certificates.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from libc.stdlib cimport free, malloc

from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm._utils._memory cimport no_memory
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets
from sklearn_structsvm.solvers.blocks._slack_search cimport Search, SlackSearch, begin_at

# Over a training, angular search makes two to six calls on average, and listing the
# candidates of an exact search costs about as much. Other searches make ten or more.
cdef enum:
    CALLS_OF_A_SEARCH = 4


cdef class SlackOracle(BlockOracle):
    """The most violating labelings of slack rescaling, found by a search.

    ``max_oracle`` maximizes L(y) (lam + f(y) - f(y_i)), also for a `lam` other than 1.
    If the search is not exact, ``upper_bound`` bounds the maximum.

    Parameters
    ----------
    inner : BlockOracle
        The oracle of the margin rescaled problem. The wrapper owns it from now on.
    search : {"angular", "exact", "bisecting", "binary", "sarawagi"}
    rtol : float
        A search may stop at (1 - rtol) times the maximum.
    max_queries : int
        A search may also stop after this many calls of the λ-oracle.
    cache_size : int
        Labelings kept per example, besides those that a solver holds. A search of a
        structure without candidates tries them first.
    only : int or None
        The only block that will be searched; None for all.

    Attributes
    ----------
    slacks : ndarray of shape (n_blocks,)
        ξ_i of each block, which a solver may set for the search "sarawagi".
    """

    cdef BlockOracle inner
    cdef SlackSearch search
    cdef ActiveSets known
    cdef Py_ssize_t cache_size
    cdef double[::1] lams, slack, max_losses
    cdef long long[::1] queries

    def __init__(self, BlockOracle inner, search="angular", double rtol=0.0,
                 Py_ssize_t max_queries=1000, Py_ssize_t cache_size=10, only=None):
        cdef Py_ssize_t i, n = inner.n_blocks
        self.inner = inner
        self.n_blocks = n
        self.n_weights = inner.n_weights
        self.max_labels = inner.max_labels
        self.work_size = inner.work_size + 1
        self.direction_size = inner.direction_size
        self.relative_cost = CALLS_OF_A_SEARCH * inner.relative_cost
        self.n_values = inner.n_values
        self.thread_safe = inner.thread_safe
        self.cache_size = cache_size
        self.lams = np.zeros(n)
        self.slack = np.zeros(n)
        self.queries = np.zeros(n, dtype=np.longlong)
        self.max_losses = np.zeros(n)
        if not (inner.has_candidates and search in ("angular", "exact")):
            self._find_max_losses(range(n) if only is None else [only])
        # Labelings of built-in oracles are integers that need not be released.
        if not inner.thread_safe:
            self.known = ActiveSets(
                np.array([inner.n_labels(i) for i in range(n)], dtype=np.intp))
        self.search = SlackSearch(inner, search, rtol, max_queries, self.known)

    def _find_max_losses(self, blocks):
        cdef Py_ssize_t i
        cdef double score, loss
        cdef double[::1] zero = np.zeros(max(self.n_weights, 1))
        cdef double[::1] work = np.zeros(max(self.work_size, 1))
        cdef int[::1] labels = np.zeros(max(self.max_labels, 1), dtype=np.intc)
        for i in blocks:
            self.inner.potentials(i, &zero[0], &work[0])
            self.inner.max_oracle(i, 1.0, &work[0], &labels[0], &score, &loss)
            self.inner.release(i, &labels[0])
            self.max_losses[i] = self.inner.upper_bound(i, &work[0], score + loss)

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil:
        return self.inner.n_labels(i)

    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil:
        return self.inner.true_labels(i, labels)

    cdef int potentials(
            self, Py_ssize_t i, const double* w, double* work) except -1 nogil:
        return self.inner.potentials(i, w, work)

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef Search found
        found.i = i
        found.one = lam
        found.work = work
        found.labels = labels
        found.max_loss = self.max_losses[i]
        self.search.find(&found, lam * self.lams[i], self.slack[i])
        self.queries[i] += found.n_queries
        if lam > 0.0 and begin_at(&found) > 0.0:
            # For lam = 1: solvers that change it scale the scores as well.
            self.lams[i] = begin_at(&found) / lam
        if self.known is not None:
            self._remember(i, labels)
        score[0] = found.loss * found.score
        loss[0] = found.loss
        work[self.inner.work_size] = found.bound
        return 0

    cdef double upper_bound(
            self, Py_ssize_t i, const double* work, double value) noexcept nogil:
        return max(value, work[self.inner.work_size])

    cdef int evaluate(
            self, Py_ssize_t i, const double* work, const int* labels,
            double* score, double* loss) except -1 nogil:
        self.inner.evaluate(i, work, labels, score, loss)
        score[0] *= loss[0]
        return 0

    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil:
        return self.inner.loss(i, labels)

    cdef int block_score(
            self, Py_ssize_t i, const double* work, double* score) except -1 nogil:
        return self.inner.block_score(i, work, score)

    cdef int direction(
            self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
            double* out, double* squared_norm) except -1 nogil:
        cdef Py_ssize_t j, n_labels = self.inner.n_labels(i)
        cdef double* scaled = <double*> malloc(max(n, 1) * sizeof(double))
        if scaled == NULL:
            no_memory("a direction")
        try:
            for j in range(n):
                scaled[j] = 0.0
                if a[j] != 0.0:
                    scaled[j] = a[j] * self.inner.loss(i, s + j * n_labels)
            self.inner.direction(i, c, n, scaled, s, out, squared_norm)
        finally:
            free(scaled)
        return 0

    cdef int image(
            self, Py_ssize_t i, const double* direction, double* work
            ) except -1 nogil:
        return self.inner.image(i, direction, work)

    cdef int move(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        return self.inner.move(i, gamma, direction)

    cdef int scatter(
            self, Py_ssize_t i, double coef, const double* direction,
            double* target) except -1 nogil:
        return self.inner.scatter(i, coef, direction, target)

    cdef int project(
            self, Py_ssize_t i, const double* direction, const double* v,
            const double* lower, const double* upper, double* w) except -1 nogil:
        return self.inner.project(i, direction, v, lower, upper, w)

    cdef int mark(
            self, Py_ssize_t i, const double* direction, unsigned char* pages
            ) except -1 nogil:
        return self.inner.mark(i, direction, pages)

    # Labelings that the solver holds have mass 1 in `known`; the rest is the label cache.

    cdef int _remember(self, Py_ssize_t i, const int* labels) except -1 nogil:
        cdef Py_ssize_t c = self.known.find(i, labels)
        if c < 0:
            c = self.known.add(i, labels, 0.0)
        self.known.sets[i].alpha[c] = 1.0
        self.known.touch(i, c)
        return 0

    cdef int release(self, Py_ssize_t i, const int* labels) except -1 nogil:
        cdef Py_ssize_t c, n_free = 0, n_labels
        if self.known is None:
            return self.inner.release(i, labels)
        c = self.known.find(i, labels)
        if c < 0:
            return self.inner.release(i, labels)
        self.known.sets[i].alpha[c] = 0.0
        for c in range(self.known.sets[i].count):
            n_free += self.known.sets[i].alpha[c] == 0.0
        if n_free > self.cache_size:
            n_labels = self.inner.n_labels(i)
            c = self.known.stalest(i)
            self.inner.release(i, self.known.sets[i].labels + c * n_labels)
            self.known.remove(i, c)
        return 0

    def get_blocks(self):
        return self.inner.get_blocks()

    def set_blocks(self, blocks):
        self.inner.set_blocks(blocks)

    def scale_blocks(self, double rho):
        self.inner.scale_blocks(rho)

    def labeling_to_object(self, Py_ssize_t i, int[::1] labels):
        return self.inner.labeling_to_object(i, labels)

    def labeling_from_object(self, Py_ssize_t i, saved):
        cdef int[::1] labels = self.inner.labeling_from_object(i, saved)
        if self.known is not None:
            self._remember(i, &labels[0])
        return np.asarray(labels)

    @property
    def n_queries(self):
        """Calls of the (constrained) λ-oracle in all searches so far."""
        return int(np.sum(self.queries))

    @property
    def slacks(self):
        return np.asarray(self.slack)


def search_block(BlockOracle oracle, Py_ssize_t i, const double[::1] w, *, search,
                 double rtol=0.0, Py_ssize_t max_queries=1000, double lam=0.0,
                 double slack=0.0, double one=1.0, bint trace=False):
    """A single search at weights w, for inspection.

    Returns
    -------
    dict
        "labels" (as `labeling_to_object` gives them), "margin" h, "loss" g, "value" h g,
        "bound", "n_queries", and "trace", a list with a tuple (λ, α, β, found, h, g) for
        each query, or None.
    """
    check_indices("i", i, oracle.n_blocks)
    check_shape("w", w, oracle.n_weights)
    cdef SlackOracle wrapper = SlackOracle(
        oracle, search, rtol, max_queries, only=i)
    cdef double[::1] work = np.zeros(wrapper.work_size)
    cdef int[::1] labels = np.zeros(max(oracle.max_labels, 1), dtype=np.intc)
    cdef double score, loss
    wrapper.lams[i] = lam / one
    wrapper.slack[i] = slack
    if trace:
        wrapper.search.trace = []
    wrapper.potentials(i, &w[0], &work[0])
    wrapper.max_oracle(i, one, &work[0], &labels[0], &score, &loss)
    oracle.evaluate(i, &work[0], &labels[0], &score, &loss)
    return {
        "labels": oracle.labeling_to_object(i, labels[:oracle.n_labels(i)]),
        "margin": one + score,
        "loss": loss,
        "value": (one + score) * loss,
        "bound": work[oracle.work_size],
        "n_queries": wrapper.n_queries,
        "trace": wrapper.search.trace,
    }
