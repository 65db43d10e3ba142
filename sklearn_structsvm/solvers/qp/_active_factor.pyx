"""Cholesky factor of the active rows and columns of a matrix, updated as these change.

With A = L Lᵀ for the active ones in their order, adding one takes a triangular solve, and
removing one takes the rotations that make L triangular again: O(m²) each.
"""
import numpy as np

from libc.math cimport hypot, sqrt
from libc.string cimport memcpy, memmove
from scipy.linalg.cython_blas cimport ddot, drot, dtrsv

# Smallest pivot, relative to its diagonal entry: anything less is rounding.
cdef double LEAST_PIVOT = 1e-15


cdef class ActiveFactor:
    """The factor of the active rows, of which there are none at first.

    Parameters
    ----------
    A : ndarray of shape (m, m)
        Positive definite.

    Attributes
    ----------
    active : ndarray of shape (count,)
        The active rows, in the order of the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.qp._active_factor import ActiveFactor
    >>> factor = ActiveFactor(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> factor.add(0)
    >>> factor.add(1)
    >>> factor.solve(np.array([3.0, 3.0])).round(9).tolist()
    [1.0, 1.0]
    >>> factor.remove(0)
    >>> factor.solve(np.array([3.0])).round(9).tolist()
    [1.5]
    """

    cdef readonly int count
    cdef int size
    cdef const double[:, ::1] A
    cdef Py_ssize_t[::1] places
    # Column c of L begins at c · size.
    cdef double[::1] L, row

    def __init__(self, const double[:, ::1] A):
        self.A, self.size, self.count = A, <int> A.shape[0], 0
        self.places = np.zeros(self.size, dtype=np.intp)
        self.L = np.zeros(self.size * self.size)
        self.row = np.zeros(self.size)

    @property
    def active(self):
        return np.array(self.places[:self.count])

    def add(self, Py_ssize_t j):
        """Make row j active, as the last one."""
        cdef int c, one = 1, n = self.count
        cdef double* row = &self.row[0]
        cdef double left = self.A[j, j]
        for c in range(n):
            row[c] = self.A[j, self.places[c]]
        if n:
            dtrsv("L", "N", "N", &n, &self.L[0], &self.size, row, &one)
            left -= ddot(&n, row, &one, row, &one)
        for c in range(n):
            self.L[c * self.size + n] = row[c]
        self.L[n * self.size + n] = sqrt(max(left, LEAST_PIVOT * self.A[j, j]))
        self.places[n] = j
        self.count += 1

    def remove(self, Py_ssize_t place):
        """Make the row at this place in the order inactive."""
        cdef int k = <int> place, c, one = 1, rest, n = self.count - 1
        cdef double a, b, length, cosine, sine
        cdef double* column
        for c in range(n + 1):
            column = &self.L[c * self.size]
            memmove(column + k, column + k + 1, (n - k) * sizeof(double))
        memmove(&self.places[k], &self.places[k] + 1, (n - k) * sizeof(Py_ssize_t))
        for c in range(k, n):
            column = &self.L[c * self.size]
            a, b = column[c], column[self.size + c]
            length = hypot(a, b)
            cosine, sine = a / length, b / length
            rest = n - c
            drot(&rest, column + c, &one, column + self.size + c, &one, &cosine, &sine)
            column[self.size + c] = 0.0
        self.count = n

    def solve(self, const double[::1] right):
        """The solution x of L Lᵀ x = right, in the order of the factor."""
        cdef int one = 1, n = self.count
        out = np.zeros(n)
        cdef double[::1] x = out
        if n:
            memcpy(&x[0], &right[0], n * sizeof(double))
            dtrsv("L", "N", "N", &n, &self.L[0], &self.size, &x[0], &one)
            dtrsv("L", "T", "N", &n, &self.L[0], &self.size, &x[0], &one)
        return out
