# cython: language_level=3, boundscheck=False, wraparound=False
"""Block-coordinate steps whose sizes are fixed beforehand."""

from sklearn_structsvm.solvers.blocks._block_dual cimport BlockDual


cdef class FixedSteps(BlockDual):
    cdef readonly long long n_steps

    cdef double visit(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        """Step k goes to the oracle's labeling, by 2 n / (k + 2 n) of the way."""
        cdef double n = self.oracle.n_blocks, one = 1.0, mean, score, loss
        cdef double gamma = 2.0 * n / (self.n_steps + 2.0 * n)
        cdef double* work = &self.work[0]
        cdef double* step = &self.first[0]
        self.oracle.potentials(i, &self.w[0], work)
        self.oracle.block_score(i, work, &mean)
        mean += self.loss_bar[i]
        self.oracle.max_oracle(i, 1.0, work, &self.labels[0], &score, &loss)
        self.oracle.direction(i, -1.0, 1, &one, &self.labels[0], step, NULL)
        self.oracle.move(i, gamma, step)
        self.loss_bar[i] += gamma * (loss - self.loss_bar[i])
        self.oracle.scatter(i, -gamma * self.p[i] / self.lam, step, &self.v[0])
        self.map_block(i, step)
        self.n_steps += 1
        self.n_oracle_calls += 1
        self.let_go(i, &self.labels[0])
        return self.p[i] * (score + loss - mean)
