"""The max-oracle for all examples at one w: the risk, and a plane below it.

The risk R(w) = Σ_i p_i max_y [L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩] is at least the
plane ⟨a, w⟩ + b of any one labeling per example, with a = Σ_i p_i (its joint feature)
and b = Σ_i p_i L_i(y), and touches the plane of the most violating ones.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape
from sklearn_structsvm._utils.threads import whole_lines

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy

from sklearn_structsvm._contract._oracle cimport CHUNK, BlockOracle
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets


cdef class EmpiricalRisk:
    """One answer per example, with the risk and the plane that they give.

    Parameters
    ----------
    oracle : BlockOracle
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1. Blocks of weight 0 are skipped.
    cache_size : int, default=0
        Labelings kept per example for `recall`: the last ones found or recalled.
    known : ActiveSets or None
        A cache that the caller keeps.

    Attributes
    ----------
    n_oracle_calls : int
    """

    cdef readonly BlockOracle oracle
    cdef readonly long long n_oracle_calls
    cdef const double[::1] p
    cdef Py_ssize_t cache_size
    cdef ActiveSets cache
    cdef Py_ssize_t[::1] places
    cdef const Py_ssize_t[::1] starts
    cdef int[::1] labels
    cdef double[::1] values, soft_values, losses, known_values, direction

    def __init__(self, BlockOracle oracle, const double[::1] weights,
                 Py_ssize_t cache_size=0, ActiveSets known=None):
        cdef Py_ssize_t i, n = oracle.n_blocks
        check_shape("weights", weights, n)
        self.oracle = oracle
        self.p = weights
        self.cache_size = cache_size
        self.n_oracle_calls = 0
        sizes = np.array([oracle.n_labels(i) for i in range(n)], dtype=np.intp)
        self.cache = ActiveSets(sizes) if known is None else known
        self.places = np.full(n, -1, dtype=np.intp)
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.labels = np.zeros(max(self.starts[n], 1), dtype=np.intc)
        self.values = np.zeros(n)
        self.losses = np.zeros(n)
        self.soft_values = np.zeros(n)
        self.known_values = np.zeros(n)
        self.direction = np.zeros(max(oracle.direction_size, 1))

    @property
    def answers(self):
        """(labels, starts): the labeling of block i begins at starts[i]."""
        return np.asarray(self.labels), np.asarray(self.starts)

    @property
    def block_values(self):
        """max_y H_i(y) of each block (or a bound) after `ask`; see also `recall`."""
        return np.array(self.values)

    @property
    def most_negative_gap(self):
        """The smallest excess of an answer over the cached labelings; should be >= 0.

        The smallest p_i (max_y H_i(y) - max_known H_i(y)) at the w of the last `ask`. The
        true labelings count as known.
        """
        return float(np.min(np.multiply(
            self.p, np.subtract(self.values, self.known_values))))

    def size_of_terms(self, const double[::1] w):
        """Σ_i p_i ⟨|w|, |φ(x_i, y) - φ(x_i, y_i)|⟩ over answers and best known labelings.

        The values that `most_negative_gap` compares are sums of such terms, which may
        cancel. Call it after `ask`, before any of these labelings is released.
        """
        cdef BlockOracle oracle = self.oracle
        cdef Py_ssize_t i
        cdef const int* known
        sizes, total = np.abs(w), 0.0
        for i in range(oracle.n_blocks):
            if self.p[i] == 0.0:
                continue
            size = np.abs(self._difference(i, &self.labels[self.starts[i]]))
            if self.places[i] >= 0:
                known = (self.cache.sets[i].labels
                         + self.places[i] * self.cache.sizes[i])
                size += np.abs(self._difference(i, known))
            total += self.p[i] * sizes.dot(size)
        return float(total)

    cdef _difference(self, Py_ssize_t i, const int* labels):
        """φ(x_i, y) - φ(x_i, y_i)."""
        cdef double one = 1.0
        difference = np.zeros(self.oracle.n_weights)
        cdef double[::1] target = difference
        self.oracle.direction(i, 0.0, 1, &one, labels, &self.direction[0], NULL)
        self.oracle.scatter(i, 1.0, &self.direction[0], &target[0])
        return difference

    def ask(self, const double[::1] w, int n_threads=1):
        """The risk R(w), or an upper bound if the oracle is not exact.

        The caller owns the answers: to `release_answers`, `cache_answers` or keep them.
        """
        self._pass(w, False, n_threads)
        self.n_oracle_calls += np.count_nonzero(self.p)
        return self._mean(self.values)

    def soften(self, const double[::1] w, double temperature, int n_threads=1):
        """The risk R(w) as for `ask`, and its smooth lower bound.

        The bound is the mean of the soft maxima. The oracle's blocks become the
        distributions that attain them: see `soft_plane`.

        Returns
        -------
        risk, soft_risk : float
        """
        # What it inherits may read other memory.
        if not self.oracle.has_marginals:
            raise TypeError(
                f"{type(self.oracle).__name__} has no marginals, which the excessive gap "
                "technique needs.")
        self._pass(w, False, n_threads, temperature)
        self.n_oracle_calls += np.count_nonzero(self.p)
        return self._mean(self.values), self._mean(self.soft_values)

    def soft_plane(self):
        """(a, b) of those distributions: the gradient of the smooth bound, and a loss."""
        cdef BlockOracle oracle = self.oracle
        cdef Py_ssize_t i
        a = np.zeros(oracle.n_weights)
        cdef double[::1] target = a
        with nogil:
            for i in range(oracle.n_blocks):
                if self.p[i] > 0.0:
                    oracle.direction(i, 1.0, 0, NULL, NULL, &self.direction[0], NULL)
                    oracle.scatter(i, self.p[i], &self.direction[0], &target[0])
        return a, self._mean(self.losses)

    def recall(self, const double[::1] w, int n_threads=1):
        """Find the largest plane at w of the cached labelings; return its value.

        The true labeling counts as one of them. Afterwards `block_values` are the values
        of the best labelings.
        """
        cdef Py_ssize_t i
        self._pass(w, True, n_threads)
        for i in range(self.oracle.n_blocks):
            if self.places[i] >= 0:
                self.cache.touch(i, self.places[i])
        return self._mean(self.values)

    def plane(self):
        """(a, b) of the answers."""
        cdef BlockOracle oracle = self.oracle
        cdef Py_ssize_t i
        cdef double one = 1.0
        a = np.zeros(oracle.n_weights)
        cdef double[::1] target = a
        with nogil:
            for i in range(oracle.n_blocks):
                if self.p[i] > 0.0:
                    oracle.direction(i, 0.0, 1, &one, &self.labels[self.starts[i]],
                                     &self.direction[0], NULL)
                    oracle.scatter(i, self.p[i], &self.direction[0], &target[0])
        return a, self._mean(self.losses)

    def cache_answers(self):
        """Add the answers to the cache, where they replace the stalest labelings."""
        cdef Py_ssize_t i, c
        cdef const int* labels
        for i in range(self.oracle.n_blocks):
            if self.p[i] == 0.0:
                continue
            labels = &self.labels[self.starts[i]]
            c = self.cache.find(i, labels)
            if c < 0:
                c = self.cache.add(i, labels, 0.0)
            self.cache.touch(i, c)
            while self.cache.sets[i].count > self.cache_size:
                c = self.cache.stalest(i)
                self.oracle.release(
                    i, self.cache.sets[i].labels + c * self.cache.sizes[i])
                self.cache.remove(i, c)

    def release_answers(self):
        """Release the answers."""
        cdef Py_ssize_t i
        for i in range(self.oracle.n_blocks):
            if self.p[i] > 0.0:
                self.oracle.release(i, &self.labels[self.starts[i]])

    def _mean(self, values):
        # Summed in the order of the blocks, whatever the number of threads.
        return float(np.sum(np.multiply(self.p, values)))

    def _pass(self, const double[::1] w, bint from_cache, int n_threads,
              double temperature=0.0):
        cdef Py_ssize_t i, first, stop, n = self.oracle.n_blocks
        cdef int t
        check_shape("w", w, self.oracle.n_weights)
        n_threads = max(1, min(n_threads, n)) if self.oracle.thread_safe else 1
        cdef double[:, ::1] work = np.zeros(
            (n_threads, whole_lines(max(self.oracle.work_size, 1))))
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            stop = min(first + CHUNK, n)
            if n_threads == 1:
                with nogil:
                    for i in range(first, stop):
                        if self.p[i] > 0.0:
                            self._answer(i, &w[0], from_cache, temperature, &work[0, 0])
                continue
            for i in prange(
                    first, stop, nogil=True, num_threads=n_threads, schedule="static"):
                if self.p[i] > 0.0:
                    t = threadid()
                    self._answer(i, &w[0], from_cache, temperature, &work[t, 0])

    cdef int _answer(
            self, Py_ssize_t i, const double* w, bint from_cache, double temperature,
            double* work) except -1 nogil:
        cdef int* labels = &self.labels[self.starts[i]]
        cdef double score, loss
        self.oracle.potentials(i, w, work)
        self._find_best_known(i, work)
        if from_cache:
            return self._take_best_known(i, labels)
        self.oracle.max_oracle(i, 1.0, work, labels, &score, &loss)
        self.losses[i] = loss
        self.values[i] = self.oracle.upper_bound(i, work, score + loss)
        if temperature > 0.0:
            self.oracle.soft_oracle(
                i, 1.0, temperature, work, &self.soft_values[i], &self.losses[i])
        return 0

    cdef int _find_best_known(self, Py_ssize_t i, const double* work) except -1 nogil:
        cdef Py_ssize_t c, size = self.cache.sizes[i]
        cdef double score, loss
        self.places[i] = -1
        self.known_values[i] = self.losses[i] = 0.0
        for c in range(self.cache.sets[i].count):
            self.oracle.evaluate(
                i, work, self.cache.sets[i].labels + c * size, &score, &loss)
            if score + loss > self.known_values[i]:
                self.places[i] = c
                self.known_values[i] = score + loss
                self.losses[i] = loss
        return 0

    cdef int _take_best_known(self, Py_ssize_t i, int* labels) except -1 nogil:
        cdef Py_ssize_t size = self.cache.sizes[i]
        self.values[i] = self.known_values[i]
        if self.places[i] < 0:
            return self.oracle.true_labels(i, labels)
        memcpy(labels, self.cache.sets[i].labels + self.places[i] * size,
               size * sizeof(int))
        return 0
