"""The steps of `interior_point.solve_qp`, for small programs.

Primal and dual variables, with s the slacks of D x <= b and z those of x >= 0:

    Q x + c + Dᵀy - level a - z = dual,   D x + s - b = primal,   aᵀx - 1 = total.

The right-hand sides are the residuals, which go to 0 with the products x z and s y.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape
from sklearn_structsvm.solvers import accuracy

from libc.math cimport fabs, fmax, fmin, INFINITY, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot, dgemv, dsymv, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

# A step goes at most this share of the way to the nearest border.
cdef double TO_THE_BORDER = 0.99

# If a step is shorter than this, a second one is tried that balances the pairs: their
# products should then be within this factor of the target.
cdef double SHORT_STEP = 0.9
cdef double BALANCE = 10.0

# No step aims at a gap below this share of the tolerance.
cdef double INNER_SHARE = accuracy.INNER_SHARE

# A program of this size takes about 10 steps, or 20 to the last digits; further steps
# only chase rounding errors.
cdef int MAX_INTERIOR_STEPS = 60

# Added to the diagonal, relative to its mean, if rounding has left the matrix of the
# Newton step indefinite.
cdef double RIDGE = 1e-12

cdef int ONE = 1
cdef double PLUS = 1.0, MINUS = -1.0, ZERO = 0.0
cdef char LOWER = b"L", AS_IS = b"N", TRANSPOSED = b"T"


cdef struct Step:
    double* x
    double* s
    double* y
    double* z
    double level


cdef class InteriorPoint:
    """A program and the current point.

    Parameters
    ----------
    c, a : ndarray of shape (n,)
    D : ndarray of shape (p, n)
    b : ndarray of shape (p,)
    Q : ndarray of shape (n, n) or None
    x, z : ndarray of shape (n,)
        Positive start.
    s, y : ndarray of shape (p,)
        The same.

    Attributes
    ----------
    x, y : ndarray
    gap, residual : float
    n_steps : int
    """

    cdef readonly double gap, residual
    cdef double least
    cdef readonly int n_steps
    cdef int n, p
    cdef bint bends
    cdef double level, total, stiffness
    cdef const double[::1] c, a, b
    cdef const double[:, ::1] D, Q
    cdef double[::1] point, dual, primal, along, room, for_x, for_s, first, second
    cdef double[:, ::1] M, scaled
    cdef Step at

    def __init__(self, c, a, D, b, Q, x, s, y, z):
        self.n, self.p = n, p = len(c), len(b)
        self.c, self.a, self.b = (_vector(v) for v in (c, a, b))
        self.D = np.ascontiguousarray(D, dtype=np.float64).reshape(p, n)
        self.bends = Q is not None
        self.Q = np.ascontiguousarray(Q if self.bends else np.zeros((1, 1)))
        self.point = np.concatenate([x, z, s, y])
        self.at = self._parts(&self.point[0])
        self.level, self.least = 0.0, INFINITY
        self.dual, self.along, self.for_x = np.zeros((3, n))
        self.primal, self.for_s = np.zeros((2, p + 1))
        self.room = np.zeros(n + p)
        check_shape("a", self.a, n)
        check_shape("s", s, p)
        check_shape("y", y, p)
        check_shape("x", x, n)
        check_shape("z", z, n)
        if self.bends:
            check_shape("Q", self.Q, n, n)
        self.first, self.second = np.zeros(2 * (n + p)), np.zeros(2 * (n + p))
        self.M, self.scaled = np.zeros((n, n)), np.zeros((p + 1, n))

    @property
    def x(self):
        return np.array(self.point[: self.n])

    @property
    def y(self):
        return np.array(self.point[2 * self.n + self.p :])

    cdef Step _parts(self, double* vector) noexcept nogil:
        cdef Step parts
        parts.x = vector
        parts.z = parts.x + self.n
        parts.s = parts.z + self.n
        parts.y = parts.s + self.p
        parts.level = 0.0
        return parts

    def run(self, double tol):
        """Step until gap and residuals are at most `tol`, or only rounding is left."""
        cdef Step step
        cdef double near = 0.0, far = 0.0, last = INFINITY
        cdef double floor = INNER_SHARE * tol / (self.n + self.p)
        cdef Py_ssize_t i
        for self.n_steps in range(MAX_INTERIOR_STEPS + 1):
            self._look()
            # Residuals that no longer fall are rounding: a smaller gap makes it worse.
            if self.gap <= tol and (self.residual <= tol or self.residual > 0.5 * last):
                break
            if self.n_steps == MAX_INTERIOR_STEPS:
                break
            last = self.residual
            if not self._factorize():
                break
            step = self._way(floor, &near, &far)
            for i in range(self.n):
                self.at.x[i] += near * step.x[i]
                self.at.z[i] += far * step.z[i]
            for i in range(self.p):
                self.at.s[i] += near * step.s[i]
                self.at.y[i] += far * step.y[i]
            self.level += far * step.level

    cdef void _times_D(self, double factor, double* v, double* out) noexcept nogil:
        """out += factor D v."""
        if self.p:
            dgemv(&TRANSPOSED, &self.n, &self.p, &factor, <double*> &self.D[0, 0],
                  &self.n, v, &ONE, &PLUS, out, &ONE)

    cdef void _times_Dt(self, double factor, double* v, double* out) noexcept nogil:
        """out += factor Dᵀ v."""
        if self.p:
            dgemv(&AS_IS, &self.n, &self.p, &factor, <double*> &self.D[0, 0], &self.n,
                  v, &ONE, &PLUS, out, &ONE)

    cdef void _times_Q(self, double* v, double* out) noexcept nogil:
        """out += Q v."""
        if self.bends:
            dsymv(&LOWER, &self.n, &PLUS, <double*> &self.Q[0, 0], &self.n, v, &ONE,
                  &PLUS, out, &ONE)

    cdef void _look(self) noexcept nogil:
        """Compute the gap and the residuals at the current point."""
        cdef Py_ssize_t i
        cdef double largest = 0.0
        for i in range(self.n):
            self.dual[i] = self.c[i] - self.level * self.a[i] - self.at.z[i]
        self._times_Dt(1.0, self.at.y, &self.dual[0])
        self._times_Q(self.at.x, &self.dual[0])
        for i in range(self.p):
            self.primal[i] = self.at.s[i] - self.b[i]
        self._times_D(1.0, self.at.x, &self.primal[0])
        self.total, self.gap = -1.0, 0.0
        for i in range(self.n):
            self.total += self.a[i] * self.at.x[i]
            self.gap += self.at.x[i] * self.at.z[i]
            largest = fmax(largest, fabs(self.dual[i]))
        for i in range(self.p):
            self.gap += self.at.s[i] * self.at.y[i]
            largest = fmax(largest, fabs(self.primal[i]))
        self.residual = fmax(largest, fabs(self.total))

    cdef bint _factorize(self) noexcept nogil:
        """Factorize Q + Dᵀ (y / s) D + diag(z / x) + stiffness a aᵀ, and solve for a.

        A step's component along a is known, so the last term changes only the level. It
        is as large as the others: near a corner they are too, but along one line, and
        Cholesky would leave nothing of how far to go there but rounding.
        """
        cdef int info
        self._build(0.0)
        dpotrf(&LOWER, &self.n, &self.M[0, 0], &self.n, &info)
        if info:
            self._build(RIDGE)
            dpotrf(&LOWER, &self.n, &self.M[0, 0], &self.n, &info)
        if info:
            return False
        memcpy(&self.along[0], &self.a[0], self.n * sizeof(double))
        dpotrs(&LOWER, &self.n, &ONE, &self.M[0, 0], &self.n, &self.along[0], &self.n,
               &info)
        return True

    cdef void _build(self, double ridge) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef double scale, trace = 0.0
        for i in range(self.p):
            scale = sqrt(self.at.y[i] / self.at.s[i])
            for j in range(self.n):
                self.scaled[i, j] = scale * self.D[i, j]
        dsyrk(&LOWER, &AS_IS, &self.n, &self.p, &PLUS, &self.scaled[0, 0], &self.n,
              &ZERO, &self.M[0, 0], &self.n)
        if self.bends:
            # Only the lower triangle, in column-major order.
            for i in range(self.n):
                for j in range(i, self.n):
                    self.M[i, j] += self.Q[i, j]
        for i in range(self.n):
            self.M[i, i] += self.at.z[i] / self.at.x[i]
            trace += self.M[i, i]
        self.stiffness = trace / self.n
        for i in range(self.n):
            scale = self.stiffness * self.a[i]
            for j in range(i, self.n):
                self.M[i, j] += scale * self.a[j]
            self.M[i, i] += ridge * self.stiffness

    cdef void _direct(self, Step* step) noexcept nogil:
        """The Newton step with z dx + x dz = for_x, and likewise for s and y."""
        cdef Py_ssize_t i
        cdef int info
        for i in range(self.p):
            self.room[i] = (
                self.for_s[i] + self.at.y[i] * self.primal[i]) / self.at.s[i]
        for i in range(self.n):
            step.x[i] = self.for_x[i] / self.at.x[i] - self.dual[i]
        self._times_Dt(-1.0, &self.room[0], step.x)
        dpotrs(&LOWER, &self.n, &ONE, &self.M[0, 0], &self.n, step.x, &self.n, &info)
        step.level = -(
            self.total + ddot(&self.n, <double*> &self.a[0], &ONE, step.x, &ONE)
        ) / ddot(&self.n, <double*> &self.a[0], &ONE, &self.along[0], &ONE)
        for i in range(self.n):
            step.x[i] += step.level * self.along[i]
        step.level += self.stiffness * self.total
        for i in range(self.p):
            step.s[i] = -self.primal[i]
        self._times_D(-1.0, step.x, step.s)
        for i in range(self.p):
            step.y[i] = (self.for_s[i] - self.at.y[i] * step.s[i]) / self.at.s[i]
        # Not (for_x - z dx) / x: it is the same except for rounding, which is large.
        for i in range(self.n):
            step.z[i] = self.dual[i] - step.level * self.a[i]
        self._times_Dt(1.0, step.y, step.z)
        self._times_Q(step.x, step.z)

    cdef Step _way(self, double floor, double* near, double* far) noexcept nogil:
        """The step, and its lengths in the primal and in the dual variables."""
        cdef Step step = self._parts(&self.first[0])
        cdef Step other = self._parts(&self.second[0])
        cdef double ahead = 0.0, target, believed, near_other, far_other
        cdef Py_ssize_t i
        # Predict how far the gap falls if it alone counts, then aim there.
        for i in range(self.n):
            self.for_x[i] = -self.at.x[i] * self.at.z[i]
        for i in range(self.p):
            self.for_s[i] = -self.at.s[i] * self.at.y[i]
        self._direct(&step)
        self._lengths(&step, 1.0, near, far)
        for i in range(self.n):
            ahead += (self.at.x[i] + near[0] * step.x[i]) * (
                self.at.z[i] + far[0] * step.z[i])
        for i in range(self.p):
            ahead += (self.at.s[i] + near[0] * step.s[i]) * (
                self.at.y[i] + far[0] * step.y[i])
        target = fmax((ahead / self.gap) ** 3 * self.gap / (self.n + self.p), floor)
        # A gap that was smaller before has grown on the way back to balance. A program
        # that takes long may go on so in a circle, if steps aim far below it again.
        if self.gap > self.least and self.n_steps > MAX_INTERIOR_STEPS // 2:
            target = fmax(target, self.gap / BALANCE / (self.n + self.p))
        self.least = fmin(self.least, self.gap)
        # If the predicted step is short, it says little about the second-order terms that
        # remain, and full corrections would point far beyond the border, back and forth.
        believed = near[0] * far[0]
        for i in range(self.n):
            self.for_x[i] = (
                target - self.at.x[i] * self.at.z[i] - believed * step.x[i] * step.z[i])
        for i in range(self.p):
            self.for_s[i] = (
                target - self.at.s[i] * self.at.y[i] - believed * step.s[i] * step.y[i])
        self._direct(&step)
        self._lengths(&step, TO_THE_BORDER, near, far)
        if fmin(near[0], far[0]) >= SHORT_STEP:
            return step
        # Pairs whose products are far too small or too large at the end of the step block
        # the way: aim at a better balance.
        for i in range(self.n):
            self.for_x[i] += lacking(
                (self.at.x[i] + near[0] * step.x[i])
                * (self.at.z[i] + far[0] * step.z[i]), target)
        for i in range(self.p):
            self.for_s[i] += lacking(
                (self.at.s[i] + near[0] * step.s[i])
                * (self.at.y[i] + far[0] * step.y[i]), target)
        self._direct(&other)
        self._lengths(&other, TO_THE_BORDER, &near_other, &far_other)
        if fmin(near_other, far_other) > fmin(near[0], far[0]):
            near[0], far[0] = near_other, far_other
            return other
        return step

    cdef void _lengths(
            self, Step* step, double share, double* near, double* far) noexcept nogil:
        """How far to go in the primal variables and in the dual ones, at most 1."""
        near[0] = fmin(1.0, share * fmin(
            reach(self.n, self.at.x, step.x), reach(self.p, self.at.s, step.s)))
        far[0] = fmin(1.0, share * fmin(
            reach(self.p, self.at.y, step.y), reach(self.n, self.at.z, step.z)))
        if self.bends:
            near[0] = far[0] = fmin(near[0], far[0])


cdef double lacking(double product, double target) noexcept nogil:
    """The change that brings a complementary product near the target."""
    cdef double wanted = fmin(fmax(product, target / BALANCE), target * BALANCE)
    return fmax(wanted - product, -BALANCE * target)


cdef double reach(Py_ssize_t n, const double* v, const double* dv) noexcept nogil:
    """The step at which the first entry of a positive vector reaches zero."""
    cdef Py_ssize_t i
    cdef double fastest = 0.0
    for i in range(n):
        fastest = fmin(fastest, dv[i] / v[i])
    return -1.0 / fastest if fastest < 0.0 else INFINITY


def _vector(values):
    """The values as a contiguous vector, with a valid address even if it is empty."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    return values if len(values) else np.zeros(1)
