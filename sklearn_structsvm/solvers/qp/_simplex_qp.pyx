"""Exact solutions of convex quadratic programs over the simplex, variable by variable.

    min over α in Δ of  ½ αᵀ G α - bᵀ α,        G = A Aᵀ positive semidefinite,

the dual of a model made of planes (the rows of A, with offsets b). Wolfe's active set
method [1]_ with a linear term: α is the minimizer over the affine hull of its support,
whose rows of A are affinely independent; the variable along which the objective falls
most steeply enters, and variables that reach zero on the way to the next minimizer leave.

Rows are affinely independent if their differences a_j - a_r from one of them, the
reference, are linearly independent. The Cholesky factor of the Gram matrix of these
differences gains and loses rows in O(|S|²). The reference is a shortest row of the
support, or nearly so: the differences are then as accurate as G. Steps are computed from
the gradient with G itself, so that each step corrects the rounding of earlier ones. If a
row depends on the support, there is a direction in which the objective is linear, and α
follows it until a variable reaches zero.

A Gram matrix has the squared condition number of A. With features from 1 to 1e6 planes
differ by a millionth of their length, and their products by 1e-12 of theirs, which
doubles barely resolve; and α, of 1e-12, cancels in Aᵀα to a millionth. If the gradient
shows this, the program is solved with twice the digits (`_wide.h`). This takes no more
memory, whereas an orthogonal factor would take as much as A.

References
----------
.. [1] Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11,
   1976.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from libc.math cimport INFINITY, fabs, sqrt
from scipy.linalg.cython_blas cimport daxpy, ddot

cdef extern from "solvers/qp/_wide.h" nogil:
    ctypedef struct wide:
        double hi, lo
    ctypedef struct wide_vector:
        double* hi
        double* lo
    wide wide_of(double) noexcept
    wide wide_get(wide_vector, Py_ssize_t) noexcept
    void wide_set(wide_vector, Py_ssize_t, wide) noexcept
    wide wide_negative(wide) noexcept
    wide wide_sum(wide, wide) noexcept
    wide wide_difference(wide, wide) noexcept
    wide wide_product(wide, wide) noexcept
    wide wide_quotient(wide, wide) noexcept
    wide wide_root(wide) noexcept
    wide wide_dot(Py_ssize_t, wide_vector, wide_vector) noexcept
    wide wide_dot_of_doubles(Py_ssize_t, const double*, const double*) noexcept
    void wide_axpy(Py_ssize_t, wide, wide_vector, wide_vector) noexcept
    void wide_axpy_of_doubles(Py_ssize_t, wide, const double*, wide_vector) noexcept

cdef double EPS = np.finfo(np.float64).eps

# Errors of G relative to the lengths of the two rows: EPS for products of doubles, and
# this for `wide_products`, which lose some digits to sums of many terms.
cdef double WIDE_EPS = 2.0**-102

# A row depends on others if its squared distance from their affine hull is below this
# multiple of that share of its squared norm: a distance of zero, except for rounding.
cdef double DEPENDENT = 100.0

# A row whose squared norm is below this share of the reference's replaces it.
cdef double REFERENCE_SHARE = 0.25

# Entries of the gradient are known up to this multiple of the rounding of their terms.
cdef double GRADIENT_ROUNDING = 8.0

# Steps of iterative refinement on one support. The first one already reaches the
# minimizer, up to rounding that a nearly singular factor has amplified.
cdef int MAX_REFINEMENTS = 10

# The number of entries into the support, per variable, after which `solve` gives up on
# the last digits: rounding could make it cycle.
cdef int MAX_MOVES = 20

# Entries of a combination that are summed up at a time.
cdef Py_ssize_t WIDTH = 256

# Doubles suffice if they give the gradient to this share of the value's terms. The value
# is flat at its minimum, so that its own error is about the square of that.
cdef double ROUGH = 1e-6


def wide_products(const double[:, ::1] rows, const double[::1] row, double divisor=1.0):
    """⟨rows_j, row⟩ / divisor with twice the digits of a double.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    row : ndarray of shape (d,)
    divisor : float

    Returns
    -------
    products : ndarray of shape (m, 2)
        Numbers and what rounding took from them.
    """
    cdef Py_ssize_t j, m = rows.shape[0], d = rows.shape[1]
    check_shape("row", row, d)
    out = np.zeros((m, 2))
    cdef double[:, ::1] view = out
    cdef wide product
    if d > 0:
        with nogil:
            for j in range(m):
                product = wide_dot_of_doubles(d, &rows[j, 0], &row[0])
                product = wide_quotient(product, wide_of(divisor))
                view[j, 0] = product.hi
                view[j, 1] = product.lo
    return out


def wide_combination(const double[:, ::1] shares, const double[:, ::1] rows, sums=None):
    """Σ_j shares_j rows_j, rounded once.

    Parameters
    ----------
    shares : ndarray of shape (m, 2)
        Numbers, and what rounding took from them.
    rows : ndarray of shape (m, d)
    sums : ndarray of shape (2, d) or None
        What it is added to, as numbers and what rounding took from them.

    Returns
    -------
    combination : ndarray of shape (d,)
    """
    cdef Py_ssize_t c, j, start, width, m = rows.shape[0], d = rows.shape[1]
    check_shape("shares", shares, m, 2)
    sums = np.zeros((2, d)) if sums is None else sums
    cdef double[:, ::1] view = sums
    check_shape("sums", view, 2, d)
    cdef wide_vector total
    cdef wide share
    with nogil:
        for c in range((d + WIDTH - 1) // WIDTH):
            start = c * WIDTH
            width = min(WIDTH, d - start)
            total.hi, total.lo = &view[0, start], &view[1, start]
            for j in range(m):
                share.hi = shares[j, 0]
                share.lo = shares[j, 1]
                if share.hi != 0.0:
                    wide_axpy_of_doubles(width, share, &rows[j, start], total)
    return sums[0]


cdef class SimplexQP:
    """A program, its last solution and the state needed to continue from there.

    Parameters
    ----------
    capacity : int, default=16
        The number of variables to reserve room for; it doubles when needed.
    is_wide : bool, default=False
        Whether products are given, and used, with twice the digits of a double.

    Attributes
    ----------
    size : int
        Number m of variables.
    n_moves : int
        Variables that have entered the support, over all calls of `solve`.
    is_wide : bool
    is_rough : bool
        Whether doubles were not enough for the last call of `solve`: see `widen`.
    shares : ndarray of shape (m, 2)
        α of the last call of `solve`, and what rounding took from it.

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
    cdef readonly bint is_wide, is_rough
    cdef Py_ssize_t n_support
    # The first axis holds the two parts of a wide matrix or vector, or just one. Rows and
    # columns beyond `size`, or `n_support`, are spare.
    cdef double[:, :, ::1] gram_parts, factor_parts
    cdef double[:, ::1] alpha_parts, grad_parts, step_parts
    cdef double[::1] b
    # α; q = G α - b; a step of α, by place in the support.
    cdef wide_vector alpha, grad, step
    # Errors of the entries of q, and their mean αᵀ noise.
    cdef double[::1] noise
    cdef double mean_noise, slope
    # Whether q is that of the current α.
    cdef bint is_current
    # The reference first; row k - 1 of the factor belongs to support[k].
    cdef Py_ssize_t[::1] support
    cdef long long[::1] unused
    cdef unsigned char[::1] held, refused

    def __init__(self, Py_ssize_t capacity=16, bint is_wide=False):
        self.size = self.n_support = 0
        self.n_moves = 0
        self.is_wide, self.is_rough = is_wide, False
        self._reserve(max(capacity, 1))

    def _reserve(self, Py_ssize_t capacity):
        """Make room for this many variables; existing ones are kept."""
        cdef Py_ssize_t m = self.size, parts = 2 if self.is_wide else 1
        gram, b = np.zeros((parts, capacity, capacity)), np.zeros(capacity)
        alpha = np.zeros((parts, capacity))
        unused = np.zeros(capacity, dtype=np.longlong)
        if m > 0:
            # Also from doubles to pairs of doubles.
            n_old = self.gram_parts.shape[0]
            gram[:n_old, :m, :m] = self.gram_parts[:, :m, :m]
            b[:m] = self.b[:m]
            alpha[:n_old, :m] = self.alpha_parts[:, :m]
            unused[:m] = self.unused[:m]
        self.gram_parts, self.alpha_parts = gram, alpha
        self.b, self.unused = b, unused
        self.factor_parts = np.zeros((parts, capacity, capacity))
        self.grad_parts = np.zeros((parts, capacity))
        self.step_parts = np.zeros((parts, capacity))
        self.alpha = self._vector(self.alpha_parts)
        self.grad = self._vector(self.grad_parts)
        self.step = self._vector(self.step_parts)
        self.noise = np.zeros(capacity)
        self.support = np.zeros(capacity, dtype=np.intp)
        self.held = np.zeros(capacity, dtype=np.uint8)
        self.refused = np.zeros(capacity, dtype=np.uint8)

    cdef wide_vector _vector(self, double[:, ::1] parts) noexcept:
        cdef wide_vector v
        v.hi, v.lo = &parts[0, 0], NULL
        if self.is_wide:
            v.lo = &parts[1, 0]
        return v

    cdef inline wide_vector _row(
            self, double[:, :, ::1] parts, Py_ssize_t j) noexcept nogil:
        cdef wide_vector v
        v.hi, v.lo = &parts[0, j, 0], NULL
        if self.is_wide:
            v.lo = &parts[1, j, 0]
        return v

    cdef inline wide_vector gram(self, Py_ssize_t j) noexcept nogil:
        return self._row(self.gram_parts, j)

    cdef inline wide_vector factor(self, Py_ssize_t k) noexcept nogil:
        return self._row(self.factor_parts, k)

    cdef inline double _eps(self) noexcept nogil:
        return WIDE_EPS if self.is_wide else EPS

    cdef inline wide _dot(
            self, Py_ssize_t n, wide_vector x, wide_vector y) noexcept nogil:
        cdef int size = <int> n, one = 1
        if self.is_wide:
            return wide_dot(n, x, y)
        return wide_of(ddot(&size, x.hi, &one, y.hi, &one))

    cdef inline void _axpy(
            self, Py_ssize_t n, wide a, wide_vector x, wide_vector y) noexcept nogil:
        """y += a x"""
        cdef int size = <int> n, one = 1
        if self.is_wide:
            wide_axpy(n, a, x, y)
        else:
            daxpy(&size, &a.hi, x.hi, &one, y.hi, &one)

    cdef inline double square(self, Py_ssize_t j) noexcept nogil:
        """‖a_j‖²"""
        return self.gram_parts[0, j, j]

    def add_row(self, gram_row, double b):
        """Append a variable, at first without mass.

        Parameters
        ----------
        gram_row : array-like of shape (m + 1,) or (m + 1, 2)
            Its products with the m present variables and with itself; in a second column,
            what rounding took from each product.
        b : float

        Raises
        ------
        ValueError
            If the row has the wrong length, or NaN or infinite entries.
        """
        cdef Py_ssize_t m = self.size
        row = self._checked(gram_row, b, m + 1)
        if m == self.b.shape[0]:
            self._reserve(2 * m)
        self.size = m + 1
        self._set_row(m, row, b)
        self.unused[m] = 0

    def replace_row(self, Py_ssize_t j, gram_row, double b):
        """Replace one row of A by another; `solve` then starts from scratch.

        Parameters
        ----------
        j : int
        gram_row : array-like of shape (m,) or (m, 2)
            Its products with all variables; the one with itself is at place j.
        b : float

        Raises
        ------
        IndexError
            If there is no variable j.
        ValueError
            As for `add_row`.
        """
        if not 0 <= j < self.size:
            raise IndexError(f"j must be from 0 to {self.size - 1}; got {j}.")
        self._set_row(j, self._checked(gram_row, b, self.size), b)
        self.unused[j] = 0
        np.asarray(self.alpha_parts)[:] = 0.0

    def widen(self, gram):
        """Replace all products by ones with twice the digits of doubles.

        Parameters
        ----------
        gram : ndarray of shape (m, m, 2)
        """
        self.is_wide = True
        self._reserve(self.b.shape[0])
        parts = np.asarray(self.gram_parts)
        parts[:, :self.size, :self.size] = np.moveaxis(gram, 2, 0)

    def _checked(self, gram_row, double b, Py_ssize_t size):
        row = np.asarray(gram_row, dtype=np.float64)
        if row.shape not in ((size,), (size, 2)):
            raise ValueError(
                f"gram_row must have shape ({size},), or ({size}, 2), of one product "
                f"with each of the variables and one with itself; got {row.shape}.")
        if not (np.isfinite(row).all() and np.isfinite(b)):
            raise ValueError(f"gram_row and b must be finite; got {row} and {b}.")
        return row

    def _set_row(self, Py_ssize_t j, row, double b):
        cdef Py_ssize_t m = self.size
        gram = np.asarray(self.gram_parts)
        gram[0, j, :m] = row if row.ndim == 1 else row[:, 0]
        if self.is_wide:
            gram[1, j, :m] = 0.0 if row.ndim == 1 else row[:, 1]
        gram[:, :m, j] = gram[:, j, :m]
        self.b[j] = b
        wide_set(self.alpha, j, wide_of(0.0))

    def remove(self, indices):
        """Drop variables; the others keep their order.

        The mass of the dropped variables goes to the others in proportion to theirs.

        Parameters
        ----------
        indices : array-like of int
        """
        cdef Py_ssize_t m = self.size
        keep = np.ones(m, dtype=bool)
        keep[np.asarray(indices, dtype=np.intp)] = False
        kept = np.flatnonzero(keep)
        gram = np.asarray(self.gram_parts)
        for part in gram:
            part[:len(kept), :len(kept)] = part[np.ix_(kept, kept)]
        alpha = np.asarray(self.alpha_parts)
        lost = alpha[0, :m][~keep].any()
        for values in (np.asarray(self.b), *alpha, np.asarray(self.unused)):
            values[:len(kept)] = values[kept]
        self.size = len(kept)
        alpha = alpha[:, :self.size]
        if lost and alpha.any():
            # As doubles: the next step restores the other digits.
            alpha[0] /= alpha[0].sum()
            alpha[1:] = 0.0

    @property
    def idle(self):
        """How many calls of `solve` in a row have left each variable without mass."""
        return np.array(self.unused[:self.size])

    @property
    def shares(self):
        shares = np.zeros((self.size, 2))
        shares[:, :self.alpha_parts.shape[0]] = np.transpose(
            self.alpha_parts)[:self.size]
        return shares

    def solve(self):
        """Find the minimizer, starting from the last one.

        Returns
        -------
        alpha : ndarray of shape (m,)
            Non-negative; sums to 1.
        value : float
            ½ αᵀ G α - bᵀ α.
        residual : float
            αᵀq - min_j q_j >= 0 with the gradient q = G α - b: the value is at most
            that far from its minimum. Zero except for rounding.

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
            self.unused[j] = self.unused[j] + 1 if self.alpha.hi[j] == 0.0 else 0
        alpha, grad = self.shares[:, 0], np.asarray(self.grad_parts)[0, :m]
        slope, gain = float(alpha.dot(grad)), float(alpha.dot(self.b[:m]))
        value = 0.5 * (slope - gain)
        noise = np.max(self.noise[:m]) + self.mean_noise
        self.is_rough = not self.is_wide and (
            noise > ROUGH * (abs(slope + gain) + abs(gain)))
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
            if self.alpha.hi[first] > 0.0:
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
        self.is_current = False
        for j in range(self.size):
            self.refused[j] = False
            mass += self.alpha.hi[j]
            value = 0.5 * self.square(j) - self.b[j]
            if j == 0 or value < least:
                best = j
                least = value
        if mass == 0.0:
            wide_set(self.alpha, best, wide_of(1.0))
        self._hold(self._shortest())

    cdef Py_ssize_t _shortest(self) noexcept nogil:
        """The variable with mass whose row is the shortest."""
        cdef Py_ssize_t j, best = -1
        for j in range(self.size):
            if self.alpha.hi[j] > 0.0 and (
                    best < 0 or self.square(j) < self.square(best)):
                best = j
        return best

    cdef void _hold(self, Py_ssize_t reference) noexcept nogil:
        """Factorize the support anew, including the reference."""
        cdef Py_ssize_t j
        for j in range(self.size):
            self.held[j] = False
        self.support[0] = reference
        self.held[reference] = True
        self.n_support = 1
        for j in range(self.size):
            if self.alpha.hi[j] > 0.0:
                self._enter(j)

    cdef double _update_gradient(self) noexcept nogil:
        """Update q = G α - b and its error bounds; return αᵀq."""
        cdef Py_ssize_t j, m = self.size
        if self.is_current:
            return self.slope
        cdef double length = 0.0, slope = 0.0, square = 0.0
        for j in range(m):
            wide_set(self.grad, j, wide_of(-self.b[j]))
        for j in range(m):
            if self.alpha.hi[j] > 0.0:
                self._axpy(m, wide_get(self.alpha, j), self.gram(j), self.grad)
                length += self.alpha.hi[j] * sqrt(self.square(j))
        self.mean_noise = 0.0
        for j in range(m):
            # The errors of G are relative to ‖a_j‖ ‖a_k‖ >= |⟨a_j, a_k⟩|. Offsets and
            # reported values are doubles.
            self.noise[j] = GRADIENT_ROUNDING * (
                EPS * fabs(self.b[j]) + self._eps() * length * sqrt(self.square(j)))
            slope += self.alpha.hi[j] * self.grad.hi[j]
            square += self.alpha.hi[j] * (self.grad.hi[j] + self.b[j])
            self.mean_noise += self.alpha.hi[j] * self.noise[j]
        self.mean_noise += GRADIENT_ROUNDING * EPS * fabs(square)
        self.slope = slope
        self.is_current = True
        return slope

    cdef Py_ssize_t _steepest(self) noexcept nogil:
        """The variable of least slope, if it is below αᵀq by more than rounding."""
        cdef Py_ssize_t j, best = -1
        cdef double slope = self._update_gradient()
        cdef double least = 0.0, excess
        for j in range(self.size):
            if self.alpha.hi[j] > 0.0 or self.refused[j]:
                continue
            excess = self.grad.hi[j] - slope + self.noise[j] + self.mean_noise
            if excess < least:
                best = j
                least = excess
        return best

    cdef wide _product(self, Py_ssize_t j, Py_ssize_t i) noexcept nogil:
        """⟨a_j - a_r, a_i - a_r⟩ with the reference r."""
        cdef Py_ssize_t r = self.support[0]
        if not self.is_wide:
            return wide_of(
                (self.gram(j).hi[i] - self.gram(j).hi[r])
                - (self.gram(i).hi[r] - self.gram(r).hi[r]))
        return wide_difference(
            wide_difference(wide_get(self.gram(j), i), wide_get(self.gram(j), r)),
            wide_difference(wide_get(self.gram(i), r), wide_get(self.gram(r), r)))

    cdef bint _enter(self, Py_ssize_t j) noexcept nogil:
        """Add j to the support; return false if it is left without mass instead."""
        cdef Py_ssize_t k, r, s
        cdef wide rest
        cdef wide_vector row
        if self.square(j) < REFERENCE_SHARE * self.square(self.support[0]):
            self._hold(j)
        while not self.held[j]:
            s = self.n_support
            r = self.support[0]
            row = self.factor(s - 1)
            for k in range(s - 1):
                wide_set(row, k, self._product(j, self.support[k + 1]))
            self._solve_lower(row)
            rest = wide_difference(self._product(j, j), self._dot(s - 1, row, row))
            if rest.hi > DEPENDENT * self._eps() * (self.square(j) + self.square(r)):
                wide_set(row, s - 1, wide_root(rest))
                self.support[s] = j
                self.held[j] = True
                self.n_support = s + 1
            elif not self._slide(j, rest.hi):
                break
        return self.held[j]

    cdef bint _slide(self, Py_ssize_t j, double rest) noexcept nogil:
        """Move along α_j + 1, α + d, where a_j + Σ d_k a_k is zero except for `rest`.

        The move goes as far as the simplex allows in the direction of descent; the row of
        j in the factor is known. Returns true if a variable other than j reached zero.
        """
        cdef Py_ssize_t k, i, out = -1, s = self.n_support
        cdef double sign, longest
        cdef wide slope
        cdef wide_vector d = self.step
        for k in range(s - 1):
            wide_set(d, k + 1, wide_negative(wide_get(self.factor(s - 1), k)))
        self._solve_transposed()
        self._balance(wide_of(-1.0))
        self._update_gradient()
        slope = wide_get(self.grad, j)
        for k in range(s):
            slope = wide_sum(slope, wide_product(
                wide_get(d, k), wide_get(self.grad, self.support[k])))
        sign = 1.0 if slope.hi < 0.0 else -1.0
        longest = self.alpha.hi[j] if sign < 0.0 else INFINITY
        for k in range(s):
            i = self.support[k]
            if sign * d.hi[k] < 0.0 and self.alpha.hi[i] <= -sign * d.hi[k] * longest:
                out = k
                longest = -sign * self.alpha.hi[i] / d.hi[k]
        # If the curvature ends the descent on the way, the descent is only rounding.
        if self.alpha.hi[j] == 0.0 and not fabs(slope.hi) > rest * longest:
            return False
        for k in range(s):
            self._add_to(self.support[k], sign * longest, wide_get(d, k))
        self._add_to(j, sign * longest, wide_of(1.0))
        if out < 0:
            wide_set(self.alpha, j, wide_of(0.0))
            return False
        self._leave(out)
        return True

    cdef void _add_to(self, Py_ssize_t j, double length, wide step) noexcept nogil:
        """α_j += length * step, but not below zero."""
        self.is_current = False
        cdef wide share = wide_sum(
            wide_get(self.alpha, j), wide_product(wide_of(length), step))
        wide_set(self.alpha, j, share if share.hi > 0.0 else wide_of(0.0))

    cdef void _leave(self, Py_ssize_t out) noexcept nogil:
        """Set the variable at place `out` of the support to zero, and remove it."""
        cdef Py_ssize_t k, c, s = self.n_support - 1
        cdef wide r, cosine, sine, x, y
        wide_set(self.alpha, self.support[out], wide_of(0.0))
        self.held[self.support[out]] = False
        if out == 0:
            self._hold(self._shortest())
            return
        for k in range(out, s):
            self.support[k] = self.support[k + 1]
            for c in range(k + 1):
                wide_set(self.factor(k - 1), c, wide_get(self.factor(k), c))
        self.n_support = s
        # Each row moved up has one column too many: rotations make the factor lower
        # triangular again.
        for c in range(out - 1, s - 1):
            x = wide_get(self.factor(c), c)
            y = wide_get(self.factor(c), c + 1)
            r = wide_root(wide_sum(wide_product(x, x), wide_product(y, y)))
            cosine = wide_quotient(x, r)
            sine = wide_quotient(y, r)
            wide_set(self.factor(c), c, r)
            for k in range(c + 1, s - 1):
                self._rotate(self.factor(k), c, cosine, sine)

    cdef inline void _rotate(
            self, wide_vector row, Py_ssize_t c, wide cosine, wide sine) noexcept nogil:
        """Rotate the entries c and c + 1 of a row."""
        cdef wide x = wide_get(row, c), y = wide_get(row, c + 1)
        if not self.is_wide:
            row.hi[c] = cosine.hi * x.hi + sine.hi * y.hi
            row.hi[c + 1] = cosine.hi * y.hi - sine.hi * x.hi
            return
        wide_set(row, c, wide_sum(wide_product(cosine, x), wide_product(sine, y)))
        wide_set(row, c + 1, wide_difference(
            wide_product(cosine, y), wide_product(sine, x)))

    cdef void _solve_lower(self, wide_vector x) noexcept nogil:
        """x = L⁻¹ x."""
        cdef Py_ssize_t k
        cdef wide rest
        for k in range(self.n_support - 1):
            rest = wide_difference(wide_get(x, k), self._dot(k, self.factor(k), x))
            wide_set(x, k, wide_quotient(rest, wide_get(self.factor(k), k)))

    cdef void _solve_transposed(self) noexcept nogil:
        """x = L⁻ᵀ x, for a step without its entry for the reference."""
        cdef Py_ssize_t k
        cdef wide value
        cdef wide_vector x = self._tail(self.step)
        for k in range(self.n_support - 2, -1, -1):
            value = wide_quotient(wide_get(x, k), wide_get(self.factor(k), k))
            wide_set(x, k, value)
            self._axpy(k, wide_negative(value), self.factor(k), x)

    cdef inline wide_vector _tail(self, wide_vector x) noexcept nogil:
        """All entries but the first."""
        x.hi = x.hi + 1
        x.lo = x.lo + 1 if self.is_wide else NULL
        return x

    cdef void _balance(self, wide sum_) noexcept nogil:
        """Set the step of the reference so that all steps add up to the sum."""
        cdef Py_ssize_t k
        for k in range(1, self.n_support):
            sum_ = wide_difference(sum_, wide_get(self.step, k))
        wide_set(self.step, 0, sum_)

    cdef void _settle(self) noexcept nogil:
        """Minimize over the affine hull of the support, shrinking it on the way."""
        cdef Py_ssize_t k, j, out
        cdef double slope, length
        cdef wide sum_
        cdef bint accurate
        cdef int n_steps = 0
        while self.n_support > 1:
            slope = self._update_gradient()
            accurate = True
            for k in range(self.n_support):
                j = self.support[k]
                if fabs(self.grad.hi[j] - slope) > self.noise[j] + self.mean_noise:
                    accurate = False
            if n_steps > 0 and (accurate or n_steps > MAX_REFINEMENTS):
                return
            self._newton_step()
            out = -1
            length = 1.0
            for k in range(self.n_support):
                j = self.support[k]
                if self.step.hi[k] < 0.0 and (
                        self.alpha.hi[j] <= -self.step.hi[k] * length):
                    out = k
                    length = -self.alpha.hi[j] / self.step.hi[k]
            sum_ = wide_of(0.0)
            for k in range(self.n_support):
                j = self.support[k]
                self._add_to(j, length, wide_get(self.step, k))
                if k != out:
                    sum_ = wide_sum(sum_, wide_get(self.alpha, j))
            for k in range(self.n_support):
                j = self.support[k]
                wide_set(self.alpha, j, wide_quotient(wide_get(self.alpha, j), sum_))
            n_steps += 1
            if out >= 0:
                self._leave(out)
                n_steps = 0
        wide_set(self.alpha, self.support[0], wide_of(1.0))
        self._update_gradient()

    cdef void _newton_step(self) noexcept nogil:
        """Set `step` to lead to the minimizer over the affine hull of the support."""
        cdef Py_ssize_t k
        cdef wide first = wide_get(self.grad, self.support[0])
        cdef wide_vector x = self._tail(self.step)
        for k in range(self.n_support - 1):
            wide_set(x, k, wide_difference(
                first, wide_get(self.grad, self.support[k + 1])))
        self._solve_lower(x)
        self._solve_transposed()
        self._balance(wide_of(0.0))
