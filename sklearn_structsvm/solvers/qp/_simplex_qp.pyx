"""Convex quadratic programs over the simplex, exactly, one more variable at a time.

    min over α in Δ of  ½ αᵀ G α - bᵀ α,        G = A Aᵀ positive semidefinite,

the dual of a model made of planes (the rows of A, with offsets b). Wolfe's active set
method [1]_ with a linear term: α is the minimiser over the affine hull of its support,
whose rows of A are affinely independent; the variable along which the objective falls
most steeply enters, and those that the way to the next minimiser empties leave.

Affine independence of rows is linear independence of their differences a_j - a_r from
one of them, the reference, and these are held with the Cholesky factor of their Gram
matrix, which gains and loses rows in O(|S|²). The reference is a shortest row of the
support, or nearly: the differences are then known as well as G. Steps are computed from
the gradient of G itself, so that each of them corrects the rounding of those before.
Where a row depends on the support, there is a direction in which the objective is
linear, and α follows it until a variable is empty.

References
----------
.. [1] Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11,
   1976.
"""
import numpy as np

from libc.math cimport INFINITY, fabs, hypot, sqrt
from scipy.linalg.cython_blas cimport daxpy, ddot

cdef double EPS = np.finfo(np.float64).eps

# A row depends on others where its squared distance from their affine hull is below this
# share of its squared norm: what rounding leaves of a distance of zero.
cdef double DEPENDENT = 100.0 * EPS

# A row whose squared norm is below this share of the reference's replaces it.
cdef double SHORTER = 0.25

# Entries of the gradient are known up to this multiple of the size of their terms.
cdef double ROUNDING = 8.0 * EPS

# Steps of iterative refinement on one support. The first one is the minimiser already,
# up to rounding that a nearly singular factor has blown up.
cdef int MAX_REFINEMENTS = 10

# Variables that enter, per variable that there is, before `solve` gives up on the last
# digits. Rounding could have it turn in a circle.
cdef int MAX_MOVES = 20


cdef inline double dot(Py_ssize_t n, double* x, double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    return ddot(&size, x, &one, y, &one)


cdef inline void axpy(Py_ssize_t n, double a, double* x, double* y) noexcept nogil:
    cdef int size = <int> n, one = 1
    daxpy(&size, &a, x, &one, y, &one)


cdef class SimplexQP:
    """The program, its last solution and what it takes to go on from there.

    Parameters
    ----------
    capacity : int, default=16
        Variables that there is room for at first; it doubles when needed.

    Attributes
    ----------
    size : int
        Number m of variables.
    n_moves : int
        Variables that have entered the support, over all calls of `solve`.

    Examples
    --------
    The point of a segment that is nearest to the origin:

    >>> from sklearn_structsvm.solvers.qp._simplex_qp import SimplexQP
    >>> qp = SimplexQP()
    >>> qp.add_row([5.0], 0.0)
    >>> qp.add_row([-1.0, 1.0], 0.0)
    >>> alpha, value, residual = qp.solve()
    >>> alpha.round(12).tolist(), round(value, 12), residual < 1e-15
    ([0.25, 0.75], 0.25, True)
    """

    cdef readonly Py_ssize_t size
    cdef readonly long long n_moves
    cdef Py_ssize_t n_support
    # Rows and columns beyond `size`, or `n_support`, are room.
    cdef double[:, ::1] gram, factor
    cdef double[::1] b, alpha
    # q = G α - b, to what it is known, and αᵀ(that).
    cdef double[::1] grad, noise
    cdef double mean_noise
    cdef double[::1] step
    # The reference first; row k - 1 of the factor is that of support[k].
    cdef Py_ssize_t[::1] support
    cdef long long[::1] unused
    cdef unsigned char[::1] held, refused

    def __init__(self, Py_ssize_t capacity=16):
        self.size = self.n_support = 0
        self.n_moves = 0
        self._reserve(max(capacity, 1))

    def _reserve(self, Py_ssize_t capacity):
        """Room for this many variables; those at hand stay."""
        cdef Py_ssize_t m = self.size
        gram, b = np.zeros((capacity, capacity)), np.zeros(capacity)
        alpha, unused = np.zeros(capacity), np.zeros(capacity, dtype=np.longlong)
        if m > 0:
            gram[:m, :m] = self.gram[:m, :m]
            b[:m] = self.b[:m]
            alpha[:m] = self.alpha[:m]
            unused[:m] = self.unused[:m]
        self.gram, self.b, self.alpha, self.unused = gram, b, alpha, unused
        self.factor = np.zeros((capacity, capacity))
        self.grad, self.noise = np.zeros(capacity), np.zeros(capacity)
        self.step = np.zeros(capacity)
        self.support = np.zeros(capacity, dtype=np.intp)
        self.held = np.zeros(capacity, dtype=np.uint8)
        self.refused = np.zeros(capacity, dtype=np.uint8)

    def add_row(self, gram_row, double b):
        """Append a variable, without mass as yet.

        Parameters
        ----------
        gram_row : array-like of shape (m + 1,)
            Its products with the m variables at hand, and with itself.
        b : float

        Raises
        ------
        ValueError
            If the row has another length, or NaN or infinite entries.
        """
        cdef Py_ssize_t m = self.size
        row = np.asarray(gram_row, dtype=np.float64)
        if row.shape != (m + 1,):
            raise ValueError(
                f"gram_row must have shape ({m + 1},), one product with each of the {m} "
                f"variables and one with itself; got {row.shape}.")
        if not (np.isfinite(row).all() and np.isfinite(b)):
            raise ValueError(f"gram_row and b must be finite; got {row} and {b}.")
        if m == self.gram.shape[0]:
            self._reserve(2 * m)
        gram = np.asarray(self.gram)
        gram[m, :m + 1] = row
        gram[:m, m] = row[:m]
        self.b[m] = b
        self.alpha[m] = 0.0
        self.unused[m] = 0
        self.size = m + 1

    def remove(self, indices):
        """Drop variables; those that stay keep their order.

        The mass of those dropped goes to the others in proportion to theirs.

        Parameters
        ----------
        indices : array-like of int
        """
        cdef Py_ssize_t m = self.size
        keep = np.ones(m, dtype=bool)
        keep[np.asarray(indices, dtype=np.intp)] = False
        kept = np.flatnonzero(keep)
        gram = np.asarray(self.gram)
        gram[:len(kept), :len(kept)] = gram[np.ix_(kept, kept)]
        for values in (np.asarray(self.b), np.asarray(self.alpha),
                       np.asarray(self.unused)):
            values[:len(kept)] = values[kept]
        self.size = len(kept)
        alpha = np.asarray(self.alpha)[:self.size]
        if alpha.any():
            alpha /= alpha.sum()

    @property
    def idle(self):
        """How many calls of `solve` in a row have left each variable without mass."""
        return np.array(self.unused[:self.size])

    def solve(self):
        """The minimiser, from the last one on.

        Returns
        -------
        alpha : ndarray of shape (m,)
            Non-negative; sums to 1.
        value : float
            ½ αᵀ G α - bᵀ α.
        residual : float
            αᵀq - min_j q_j >= 0 with the gradient q = G α - b: the value is at most
            that far from its minimum. Zero but for rounding.

        Raises
        ------
        ValueError
            If there is no variable.
        """
        cdef Py_ssize_t j, m = self.size
        if m == 0:
            raise ValueError("The simplex is empty: add_row comes before solve.")
        with nogil:
            self._solve()
        for j in range(m):
            self.unused[j] = self.unused[j] + 1 if self.alpha[j] == 0.0 else 0
        alpha, grad = np.array(self.alpha[:m]), np.asarray(self.grad)[:m]
        slope = float(alpha.dot(grad))
        value = 0.5 * (slope - float(alpha.dot(self.b[:m])))
        return alpha, value, max(slope - float(grad.min()), 0.0)

    cdef void _solve(self) noexcept nogil:
        cdef Py_ssize_t j, first, n_moves = 0
        self._start()
        self._settle()
        while n_moves < MAX_MOVES * self.size + 100:
            first = self._steepest()
            if first < 0:
                break
            n_moves += 1
            if self._enter(first):
                self._settle()
            if self.alpha[first] > 0.0:
                for j in range(self.size):
                    self.refused[j] = False
            else:
                # Its slope was rounding: others come first until one of them moves.
                self.refused[first] = True
        self.n_moves += n_moves

    cdef void _start(self) noexcept nogil:
        """Hold the support of the last solution, or the best vertex."""
        cdef Py_ssize_t j, best = 0
        cdef double value, least = 0.0, mass = 0.0
        for j in range(self.size):
            self.refused[j] = False
            mass += self.alpha[j]
            value = 0.5 * self.gram[j, j] - self.b[j]
            if j == 0 or value < least:
                best = j
                least = value
        if mass == 0.0:
            self.alpha[best] = 1.0
        self._hold(self._shortest())

    cdef Py_ssize_t _shortest(self) noexcept nogil:
        """The variable with mass whose row is the shortest."""
        cdef Py_ssize_t j, best = -1
        for j in range(self.size):
            if self.alpha[j] > 0.0 and (
                    best < 0 or self.gram[j, j] < self.gram[best, best]):
                best = j
        return best

    cdef void _hold(self, Py_ssize_t reference) noexcept nogil:
        """Factorise the support anew, the reference in it."""
        cdef Py_ssize_t j
        for j in range(self.size):
            self.held[j] = False
        self.support[0] = reference
        self.held[reference] = True
        self.n_support = 1
        for j in range(self.size):
            if self.alpha[j] > 0.0:
                self._enter(j)

    cdef double _update_gradient(self) noexcept nogil:
        """q = G α - b and how well it is known; returns αᵀq."""
        cdef Py_ssize_t j, m = self.size
        cdef double length = 0.0, slope = 0.0
        for j in range(m):
            self.grad[j] = -self.b[j]
        for j in range(m):
            if self.alpha[j] > 0.0:
                axpy(m, self.alpha[j], &self.gram[j, 0], &self.grad[0])
                length += self.alpha[j] * sqrt(self.gram[j, j])
        self.mean_noise = 0.0
        for j in range(m):
            # |⟨a_j, a_k⟩| <= ‖a_j‖ ‖a_k‖, to whose rounding G is known at best.
            self.noise[j] = ROUNDING * (
                fabs(self.b[j]) + length * sqrt(self.gram[j, j]))
            slope += self.alpha[j] * self.grad[j]
            self.mean_noise += self.alpha[j] * self.noise[j]
        return slope

    cdef Py_ssize_t _steepest(self) noexcept nogil:
        """The variable of least slope, if it is below αᵀq by more than rounding."""
        cdef Py_ssize_t j, best = -1
        cdef double slope = self._update_gradient()
        cdef double least = 0.0, excess
        for j in range(self.size):
            if self.alpha[j] > 0.0 or self.refused[j]:
                continue
            excess = self.grad[j] - slope + self.noise[j] + self.mean_noise
            if excess < least:
                best = j
                least = excess
        return best

    cdef bint _enter(self, Py_ssize_t j) noexcept nogil:
        """Take j into the support; false where it is left without mass instead."""
        cdef Py_ssize_t k, i, r, s
        cdef double rest
        cdef double* row
        if self.gram[j, j] < SHORTER * self.gram[self.support[0], self.support[0]]:
            self._hold(j)
        while not self.held[j]:
            s = self.n_support
            r = self.support[0]
            row = &self.factor[s - 1, 0]
            for k in range(s - 1):
                i = self.support[k + 1]
                row[k] = (self.gram[j, i] - self.gram[j, r]) - (
                    self.gram[i, r] - self.gram[r, r])
            for k in range(s - 1):
                row[k] = (row[k] - dot(k, &self.factor[k, 0], row)) / self.factor[k, k]
            rest = (self.gram[j, j] - self.gram[j, r]) - (
                self.gram[j, r] - self.gram[r, r]) - dot(s - 1, row, row)
            if rest > DEPENDENT * (self.gram[j, j] + self.gram[r, r]):
                row[s - 1] = sqrt(rest)
                self.support[s] = j
                self.held[j] = True
                self.n_support = s + 1
            elif not self._slide(j, rest):
                break
        return self.held[j]

    cdef bint _slide(self, Py_ssize_t j, double rest) noexcept nogil:
        """Move along α_j + 1, α + d, where a_j + Σ d_k a_k is zero but for `rest`.

        As far as the simplex reaches in the direction of descent; the row of j in the
        factor is known. True where that emptied another variable than j.
        """
        cdef Py_ssize_t k, i, out = -1, s = self.n_support
        cdef double slope, sign, longest
        cdef double* d = &self.step[0]
        for k in range(s - 1):
            d[k + 1] = -self.factor[s - 1, k]
        self._solve_transposed(d + 1)
        d[0] = -1.0
        for k in range(1, s):
            d[0] -= d[k]
        self._update_gradient()
        slope = self.grad[j]
        for k in range(s):
            slope += d[k] * self.grad[self.support[k]]
        sign = 1.0 if slope < 0.0 else -1.0
        longest = self.alpha[j] if sign < 0.0 else INFINITY
        for k in range(s):
            i = self.support[k]
            if sign * d[k] < 0.0 and self.alpha[i] <= -sign * d[k] * longest:
                out = k
                longest = -sign * self.alpha[i] / d[k]
        # A descent that the curvature ends on the way is one of rounding alone.
        if self.alpha[j] == 0.0 and not fabs(slope) > rest * longest:
            return False
        for k in range(s):
            i = self.support[k]
            self.alpha[i] = max(self.alpha[i] + sign * longest * d[k], 0.0)
        self.alpha[j] += sign * longest
        if out < 0:
            self.alpha[j] = 0.0
            return False
        self._leave(out)
        return True

    cdef void _leave(self, Py_ssize_t out) noexcept nogil:
        """Empty the variable at place `out` of the support."""
        cdef Py_ssize_t k, c, s = self.n_support - 1
        cdef double r, cosine, sine, x, y
        self.alpha[self.support[out]] = 0.0
        self.held[self.support[out]] = False
        if out == 0:
            self._hold(self._shortest())
            return
        for k in range(out, s):
            self.support[k] = self.support[k + 1]
            for c in range(k + 1):
                self.factor[k - 1, c] = self.factor[k, c]
        self.n_support = s
        # Each row moved up has one column too many: rotations make the factor lower
        # triangular again.
        for c in range(out - 1, s - 1):
            r = hypot(self.factor[c, c], self.factor[c, c + 1])
            cosine = self.factor[c, c] / r
            sine = self.factor[c, c + 1] / r
            self.factor[c, c] = r
            for k in range(c + 1, s - 1):
                x = self.factor[k, c]
                y = self.factor[k, c + 1]
                self.factor[k, c] = cosine * x + sine * y
                self.factor[k, c + 1] = cosine * y - sine * x

    cdef void _solve_transposed(self, double* x) noexcept nogil:
        """x = L⁻ᵀ x."""
        cdef Py_ssize_t k
        for k in range(self.n_support - 2, -1, -1):
            x[k] /= self.factor[k, k]
            axpy(k, -x[k], &self.factor[k, 0], x)

    cdef void _settle(self) noexcept nogil:
        """Minimise over the affine hull of the support, shrinking it on the way."""
        cdef Py_ssize_t k, j, out
        cdef double slope, sum_, length
        cdef bint accurate
        cdef int n_steps = 0
        while self.n_support > 1:
            slope = self._update_gradient()
            accurate = True
            for k in range(self.n_support):
                j = self.support[k]
                if fabs(self.grad[j] - slope) > self.noise[j] + self.mean_noise:
                    accurate = False
            if n_steps > 0 and (accurate or n_steps > MAX_REFINEMENTS):
                return
            self._newton_step()
            out = -1
            length = 1.0
            for k in range(self.n_support):
                j = self.support[k]
                if self.step[k] < 0.0 and self.alpha[j] <= -self.step[k] * length:
                    out = k
                    length = -self.alpha[j] / self.step[k]
            sum_ = 0.0
            for k in range(self.n_support):
                j = self.support[k]
                self.alpha[j] = max(self.alpha[j] + length * self.step[k], 0.0)
                sum_ += 0.0 if k == out else self.alpha[j]
            for k in range(self.n_support):
                self.alpha[self.support[k]] /= sum_
            n_steps += 1
            if out >= 0:
                self._leave(out)
                n_steps = 0
        self.alpha[self.support[0]] = 1.0
        self._update_gradient()

    cdef void _newton_step(self) noexcept nogil:
        """step = the way to the minimiser over the affine hull of the support."""
        cdef Py_ssize_t k
        cdef double first = self.grad[self.support[0]]
        cdef double* x = &self.step[1]
        for k in range(self.n_support - 1):
            x[k] = first - self.grad[self.support[k + 1]]
            x[k] = (x[k] - dot(k, &self.factor[k, 0], x)) / self.factor[k, k]
        self._solve_transposed(x)
        self.step[0] = 0.0
        for k in range(self.n_support - 1):
            self.step[0] -= x[k]
