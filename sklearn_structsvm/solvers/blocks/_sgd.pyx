"""Stochastic subgradient steps on the structural SVM's objective.

With n blocks of positive weight, step t = 1, 2, ... draws block i, finds its most
violating labeling y_t at w and moves by 1 / (λ t) along the negative subgradient of
λ/2 ||w||² + n p_i H_i(w). Then

    w after step t = z_t / (λ t),    z_t = -Σ_{s <= t} n p_{i_s} (joint feature of y_s)

so that each step adds one scatter to z and never rescales it: the most violating labeling
at w is that at z with λ t times the loss. The first step starts from w = 0.

The average of the iterates with weights t costs one more scatter:

    2 / (t (t + 1)) Σ_s s w_s = 2 / (λ t (t + 1)) [(t + 1) z_t - Σ_s s (z_s - z_{s-1})].

The iterate corresponds to a dual point, in which each draw of a block gives its labeling
the mass n / t. All blocks have mass 1 after whole passes over them. If a block has less,
the rest is on its true labeling; if a block has more, the point is scaled down.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from cpython.exc cimport PyErr_CheckSignals

from sklearn_structsvm._contract._oracle cimport CHUNK, BlockOracle


cdef class SubgradientSteps:
    """The iterate of stochastic subgradient descent, and the average of the iterates.

    Parameters
    ----------
    oracle : BlockOracle
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1.
    lam : float
        λ > 0.
    average : bool
        Whether to keep the average of the iterates.
    """

    cdef readonly BlockOracle oracle
    cdef readonly double lam
    cdef readonly long long n_steps
    cdef const double[::1] p
    cdef bint average
    cdef double n_active
    # Sums over the steps; the second one is weighted by the numbers of the steps.
    cdef double[::1] z, weighted_z
    cdef double loss
    cdef long long[::1] counts
    cdef double[::1] work, direction
    cdef int[::1] labels

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam,
                 bint average=True):
        cdef Py_ssize_t n = oracle.n_blocks, d = oracle.n_weights
        check_shape("weights", weights, n)
        self.oracle = oracle
        self.p = weights
        self.lam = lam
        self.average = average
        self.n_active = np.count_nonzero(weights)
        self.n_steps = 0
        self.z, self.weighted_z = np.zeros(d), np.zeros(d if average else 0)
        self.loss = 0.0
        self.counts = np.zeros(n, dtype=np.longlong)
        self.work = np.zeros(max(oracle.work_size, 1))
        self.direction = np.zeros(max(oracle.direction_size, 1))
        self.labels = np.zeros(max(oracle.max_labels, 1), dtype=np.intc)

    def run(self, const Py_ssize_t[::1] blocks):
        """One step on each of the given blocks, in their order."""
        cdef Py_ssize_t k, first, n = blocks.shape[0]
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            with nogil:
                for k in range(first, min(first + CHUNK, n)):
                    self.step(blocks[k])

    cdef int step(self, Py_ssize_t i) except -1 nogil:
        cdef double score, loss, one = 1.0, scale = self.n_active * self.p[i]
        # At z = 0 any positive multiple of the loss finds the same labeling.
        cdef double t = max(self.n_steps, 1)
        self.oracle.potentials(i, &self.z[0], &self.work[0])
        self.oracle.max_oracle(
            i, self.lam * t, &self.work[0], &self.labels[0], &score, &loss)
        self.oracle.direction(
            i, 0.0, 1, &one, &self.labels[0], &self.direction[0], NULL)
        self.oracle.scatter(i, -scale, &self.direction[0], &self.z[0])
        self.n_steps += 1
        self.loss += scale * loss
        self.counts[i] += 1
        if self.average:
            self.oracle.scatter(i, -scale * <double> self.n_steps, &self.direction[0],
                                &self.weighted_z[0])
        self.oracle.release(i, &self.labels[0])
        return 0

    @property
    def active_blocks(self):
        """Indices of the blocks of positive weight."""
        return np.flatnonzero(self.p)

    @property
    def weights(self):
        """w."""
        return np.asarray(self.z) / (self.lam * max(self.n_steps, 1))

    def average_weights(self):
        """The average of the iterates with weights t."""
        if self.n_steps == 0:
            return self.weights
        t = <double> self.n_steps
        total = (t + 1.0) * np.asarray(self.z) - np.asarray(self.weighted_z)
        return 2.0 / (self.lam * t * (t + 1.0)) * total

    def dual_objective(self):
        """The largest dual objective of the iterate's dual point, scaled by 0 to 1.

        With Σ p_i ℓ_i = ℓ and masses of at most m, it is ρ ℓ - ρ² λ/2 ||w||² for the best
        ρ in [0, 1 / m].
        """
        if self.n_steps == 0:
            return 0.0
        w = self.weights
        loss = self.loss / self.n_steps
        curvature = self.lam * w.dot(w)
        scale = self.n_steps / (self.n_active * np.max(self.counts))
        if loss < scale * curvature:
            scale = loss / curvature
        return scale * (loss - 0.5 * scale * curvature)
