"""Limited-memory BFGS: an estimate of the inverse Hessian that is never written out.

With pairs (s_t, y_t) of steps in w and in its gradient, each update

    B ← (I - ρ s yᵀ) B (I - ρ y sᵀ) + ρ s sᵀ,      ρ = 1 / ⟨s, y⟩,

is applied to a vector by two inner products and two additions.
"""
import numpy as np

from scipy.linalg.cython_blas cimport daxpy, ddot, dscal


cdef class LimitedMemory:
    """The last few updates of B₀ = γ I.

    Parameters
    ----------
    n_weights : int
        Length d of the vectors.
    size : int
        Updates kept; memory and time of a product are O(size d).
    rescale : bool, default=True
        Whether γ is ⟨s, y⟩ / ⟨y, y⟩ of the last pair, as is usual, or stays at 1.

    Attributes
    ----------
    count : int
        Number of updates kept so far.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.batch._lbfgs import LimitedMemory
    >>> inverse = LimitedMemory(2, 5)
    >>> inverse.update(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> inverse.multiply(np.array([4.0, 4.0])).tolist()
    [1.0, 1.0]
    """

    cdef readonly Py_ssize_t count
    cdef Py_ssize_t size, n, newest
    cdef bint rescale
    cdef double gamma
    # Ring buffers; row `newest` holds the last pair.
    cdef double[:, ::1] steps, changes
    cdef double[::1] rho, coef

    def __init__(self, Py_ssize_t n_weights, Py_ssize_t size, bint rescale=True):
        if size < 1:
            raise ValueError(f"size must be at least 1; got {size}.")
        self.n = n_weights
        self.size = size
        self.rescale = rescale
        self.steps = np.zeros((size, n_weights))
        self.changes = np.zeros((size, n_weights))
        self.rho, self.coef = np.zeros(size), np.zeros(size)
        self.reset()

    def reset(self):
        """Forget all updates."""
        self.count = 0
        self.newest = self.size - 1
        self.gamma = 1.0

    def update(self, const double[::1] step, const double[::1] change):
        """Add a pair (s, y).

        Parameters
        ----------
        step, change : ndarray of shape (d,)
            ⟨s, y⟩ > 0.

        Raises
        ------
        ValueError
            If ⟨s, y⟩ is not positive, or a length is wrong.
        """
        if step.shape[0] != self.n or change.shape[0] != self.n:
            raise ValueError(
                f"step and change must have length {self.n}; got {step.shape[0]} and "
                f"{change.shape[0]}.")
        cdef int n = <int> self.n, one = 1
        cdef double product = ddot(
            &n, <double*> &step[0], &one, <double*> &change[0], &one)
        if not product > 0.0:
            raise ValueError(
                f"step and change must have a positive product; got {product}.")
        self.newest = (self.newest + 1) % self.size
        self.steps[self.newest, :] = step
        self.changes[self.newest, :] = change
        self.rho[self.newest] = 1.0 / product
        if self.rescale:
            self.gamma = product / ddot(
                &n, <double*> &change[0], &one, <double*> &change[0], &one)
        self.count = min(self.count + 1, self.size)

    def multiply(self, const double[::1] vector):
        """B v.

        Parameters
        ----------
        vector : ndarray of shape (d,)

        Returns
        -------
        ndarray of shape (d,)
        """
        out = np.array(vector, dtype=np.float64)
        cdef double[::1] q = out
        cdef int n = <int> self.n, one = 1
        cdef Py_ssize_t j, k
        cdef double a
        if self.n == 0:
            return out
        with nogil:
            for k in range(self.count):
                j = (self.newest - k + self.size) % self.size
                a = self.rho[j] * ddot(&n, &self.steps[j, 0], &one, &q[0], &one)
                self.coef[j] = a
                a = -a
                daxpy(&n, &a, &self.changes[j, 0], &one, &q[0], &one)
            dscal(&n, &self.gamma, &q[0], &one)
            for k in range(self.count - 1, -1, -1):
                j = (self.newest - k + self.size) % self.size
                a = self.coef[j] - self.rho[j] * ddot(
                    &n, &self.changes[j, 0], &one, &q[0], &one)
                daxpy(&n, &a, &self.steps[j, 0], &one, &q[0], &one)
        return out
