# cython: language_level=3, boundscheck=False, wraparound=False
"""Sets of labels whose number is limited."""

from sklearn_structsvm.structures._flat cimport MultilabelOracle


cdef class AtMostOracle(MultilabelOracle):
    cdef Py_ssize_t most

    def __init__(self, features, Y, costs, bias, most):
        super().__init__(features, Y, costs, bias)
        self.most = most
        # Nothing is written but what the caller lends, so that threads may ask.
        self.thread_safe = True

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        """The labels that add most to score + lam · loss, for as long as they add."""
        cdef Py_ssize_t _n, c, best
        cdef double gain, highest
        for c in range(self.k):
            labels[c] = 0
        for _n in range(self.most):
            best = -1
            highest = 0.0
            for c in range(self.k):
                # `work` holds the scores of the labels.
                gain = work[c]
                gain += lam * (-self.costs[c, 1] if self.Y[i, c] else self.costs[c, 0])
                if not labels[c] and gain > highest:
                    highest = gain
                    best = c
            if best < 0:
                break
            labels[best] = 1
        return self.evaluate(i, work, labels, score, loss)
