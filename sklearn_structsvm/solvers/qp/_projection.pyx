"""Projections onto a box cut by one linear equality, in linear time.

The projection is clip(m_i + θ σ_i / h_i, l_i, u_i) with the multiplier θ of the equality,
whose left side grows with θ and is linear between kinks at which a variable reaches a
bound. The root is found like a median [1]_: evaluate a kink, discard the half of the line
without the root, and settle every variable that has no kink in the other half. Kinks are
drawn at random, which takes O(n) expected steps on every input. Sums over settled
variables are never undone, so that nothing cancels.

References
----------
.. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
   SVMs", 2009, appendix B, Algorithm 2.
"""
import numpy as np

from sklearn_structsvm._utils import tolerances

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, fabs, isnan

# Sums over the variables are known to this share of the size of their terms.
cdef double SUM_ROUNDING = tolerances.SUM_ROUNDING

# The error of a kink, which is a difference, relative to the terms of the difference.
cdef double SLOPE_ROUNDING = tolerances.SLOPE_ROUNDING

# Any seed will do: the draws only have to be independent of the input.
cdef unsigned long long SEED = 0x9E3779B97F4A7C15

cdef enum:
    FINE, BAD_BOUNDS, BAD_CURVATURE, BAD_SCALE, NOT_A_NUMBER, INFEASIBLE


cdef inline Py_ssize_t draw(unsigned long long* state, Py_ssize_t n) noexcept nogil:
    """One of 0..n-1, by Marsaglia's xorshift."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return <Py_ssize_t> ((state[0] >> 11) % <unsigned long long> n)


cdef inline double median(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))


cdef inline double clipped(double x, double lower, double upper) noexcept nogil:
    x = lower if x < lower else x
    return upper if x > upper else x


cdef inline double kink(
        double low, double high, double left, double right) noexcept nogil:
    """A kink inside (left, right); there must be one."""
    return low if low > left and low < right else high


cdef struct Box:
    # ½ Σ h_i (α_i - m_i)², l <= α <= u, Σ σ_i α_i = total; h may be NULL for ones.
    Py_ssize_t n
    const double* m
    const double* h
    const double* l
    const double* u
    const double* sigma
    double total
    # σ_i α_i(θ) = clip(base + θ slope, floor, top), where σ_i is not zero, with kinks
    # at low and high.
    double* base
    double* slope
    double* floor
    double* top
    double* low
    double* high
    # Variables with a kink where the root may be.
    Py_ssize_t* items
    # The kinks around the root, once it is found.
    double left
    double right


cdef int prepare(Box* box, Py_ssize_t* count, Py_ssize_t* culprit) noexcept nogil:
    """Check the input and find the kinks of the variables that θ moves."""
    cdef Py_ssize_t i
    cdef double s, least = 0.0, most = 0.0, size = fabs(box.total)
    count[0] = 0
    culprit[0] = -1
    if isnan(box.total):
        return NOT_A_NUMBER
    for i in range(box.n):
        culprit[0] = i
        s = box.sigma[i]
        if isnan(box.m[i] + s) or isnan(box.l[i]) or isnan(box.u[i]):
            return NOT_A_NUMBER
        if (box.l[i] > box.u[i] or box.l[i] == INFINITY or box.u[i] == -INFINITY):
            return BAD_BOUNDS
        if box.h != NULL and not (box.h[i] > 0.0 and box.h[i] < INFINITY):
            return BAD_CURVATURE
        if s == 0.0:
            continue
        box.base[i] = s * box.m[i]
        # Squares of tiny numbers would be zero, and those of huge ones infinite.
        box.slope[i] = s * (s if box.h == NULL else s / box.h[i])
        box.floor[i] = s * (box.l[i] if s > 0.0 else box.u[i])
        box.top[i] = s * (box.u[i] if s > 0.0 else box.l[i])
        box.low[i] = (box.floor[i] - box.base[i]) / box.slope[i]
        box.high[i] = (box.top[i] - box.base[i]) / box.slope[i]
        if (not (box.slope[i] > 0.0 and box.slope[i] < INFINITY)
                or isnan(box.low[i]) or isnan(box.high[i])):
            return BAD_SCALE
        least += box.floor[i]
        most += box.top[i]
        size += fabs(box.floor[i]) if box.floor[i] > -INFINITY else 0.0
        size += fabs(box.top[i]) if box.top[i] < INFINITY else 0.0
        box.items[count[0]] = i
        count[0] += 1
    if box.total < least - SUM_ROUNDING * size or box.total > most + SUM_ROUNDING * size:
        return INFEASIBLE
    return FINE


cdef double multiplier(Box* box, Py_ssize_t count) noexcept nogil:
    """θ with Σ σ_i α_i(θ) = total."""
    cdef Py_ssize_t i, j, kept
    cdef unsigned long long state = SEED
    cdef double left = -INFINITY, right = INFINITY
    # Of the settled variables: Σ σ_i α_i(θ) = fixed + slope θ on (left, right).
    cdef double fixed = 0.0, slope = 0.0
    cdef double pivot, value, part
    cdef bint full, empty, free
    cdef double pivots[3]
    while True:
        kept = 0
        # Without branches: these would be as unpredictable as the pivot is random.
        for j in range(count):
            i = box.items[j]
            full = box.high[i] <= left
            empty = box.low[i] >= right
            free = (box.low[i] <= left) & (box.high[i] >= right)
            part = box.base[i] if free else 0.0
            part = box.floor[i] if empty else part
            part = box.top[i] if full else part
            fixed += part
            slope += box.slope[i] if free and not (full or empty) else 0.0
            box.items[kept] = i
            kept += not (full or empty or free)
        count = kept
        if count == 0:
            break
        for j in range(3):
            i = box.items[draw(&state, count)]
            pivots[j] = kink(box.low[i], box.high[i], left, right)
        pivot = median(pivots[0], pivots[1], pivots[2])
        value = fixed + slope * pivot
        for j in range(count):
            i = box.items[j]
            value += clipped(
                box.base[i] + pivot * box.slope[i], box.floor[i], box.top[i])
        if value >= box.total:
            right = pivot
        else:
            left = pivot
    box.left, box.right = left, right
    if slope > 0.0:
        return clipped((box.total - fixed) / slope, left, right)
    # Constant between two kinks: if it is not the total, the root is the jump at one.
    if left > -INFINITY and (fixed > box.total or right == INFINITY):
        return left
    return right if right < INFINITY else 0.0


cdef inline bint at_kink(Box* box, Py_ssize_t i, double theta) noexcept nogil:
    """Whether rounding may have put θ on the wrong side of a kink of variable i."""
    cdef double blur = SLOPE_ROUNDING * (fabs(theta) + fabs(box.base[i]) / box.slope[i])
    return box.low[i] <= theta + blur and box.high[i] >= theta - blur


cdef double variables_at(Box* box, double theta, double* out) noexcept nogil:
    """Write α(θ), with the rounding error of the equality corrected; return θ.

    First a step of θ moves the variables that are between their bounds. If a variable has
    a huge target, its two kinks are the same number, and α(θ) puts it at one bound or the
    other. So the variables with a kink at θ make up the remaining error: each moves by
    the same share of its way to the bound.
    """
    cdef Py_ssize_t i
    cdef double rest = box.total, slope = 0.0, size = fabs(box.total), reach = 0.0
    cdef double shift, end, share
    for i in range(box.n):
        if box.sigma[i] == 0.0:
            out[i] = clipped(box.m[i], box.l[i], box.u[i])
            continue
        if theta <= box.low[i]:
            out[i] = box.l[i] if box.sigma[i] > 0.0 else box.u[i]
        elif theta >= box.high[i]:
            out[i] = box.u[i] if box.sigma[i] > 0.0 else box.l[i]
        else:
            out[i] = clipped(
                box.m[i] + theta * (box.slope[i] / box.sigma[i]), box.l[i], box.u[i])
        rest -= box.sigma[i] * out[i]
        size += fabs(box.sigma[i] * out[i])
        if out[i] > box.l[i] and out[i] < box.u[i]:
            slope += box.slope[i]
    if slope > 0.0 and rest != 0.0:
        shift = clipped(rest / slope, box.left - theta, box.right - theta)
        theta += shift
        rest = box.total
        for i in range(box.n):
            if box.sigma[i] != 0.0 and out[i] > box.l[i] and out[i] < box.u[i]:
                out[i] = clipped(
                    out[i] + shift * (box.slope[i] / box.sigma[i]), box.l[i], box.u[i])
            rest -= box.sigma[i] * out[i]
    if fabs(rest) <= DBL_EPSILON * size:
        return theta
    for i in range(box.n):
        if box.sigma[i] != 0.0 and at_kink(box, i, theta):
            end = box.u[i] if (box.sigma[i] > 0.0) == (rest > 0.0) else box.l[i]
            if fabs(end) < INFINITY:
                reach += fabs(box.sigma[i] * (end - out[i]))
    if reach == 0.0:
        return theta
    share = min(fabs(rest) / reach, 1.0)
    for i in range(box.n):
        if box.sigma[i] != 0.0 and at_kink(box, i, theta):
            end = box.u[i] if (box.sigma[i] > 0.0) == (rest > 0.0) else box.l[i]
            if fabs(end) < INFINITY:
                out[i] = clipped(
                    out[i] + share * (end - out[i]), box.l[i], box.u[i])
    return theta


def project_box(target, lower, upper, sigma, double total, curvature=None):
    """argmin ½ Σ_i h_i (α_i - m_i)² with l <= α <= u and Σ_i σ_i α_i = z.

    Parameters
    ----------
    target : ndarray of shape (n,)
        m.
    lower, upper : ndarray of shape (n,)
        l <= u; may be infinite.
    sigma : ndarray of shape (n,)
        σ, of any sign; may be zero.
    total : float
        z.
    curvature : ndarray of shape (n,) or None
        h > 0, the d² of the paper; None for ones.

    Returns
    -------
    alpha : ndarray of shape (n,)
    theta : float
        Multiplier of the equality: h_i (α_i - m_i) - θ σ_i is zero between the bounds,
        not negative at the lower one and not positive at the upper one.

    Raises
    ------
    ValueError
        If no α is feasible, bounds cross, h is not positive, there is a NaN, or σ² / h
        is zero or infinite in float64.

    References
    ----------
    .. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for
       training SVMs", 2009, appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.qp._projection import project_box
    >>> m, zero, one = np.array([2.0, 0.5, -1.0]), np.zeros(3), np.ones(3)
    >>> alpha, theta = project_box(m, zero, one, np.array([1.0, -1.0, 1.0]), 0.0)
    >>> alpha.tolist(), theta
    ([1.0, 1.0, 0.0], -1.0)
    """
    cdef const double[::1] m = _checked_vector("target", target, -1)
    cdef Py_ssize_t n = m.shape[0], count = 0, culprit = 0
    cdef const double[::1] low = _checked_vector("lower", lower, n)
    cdef const double[::1] high = _checked_vector("upper", upper, n)
    cdef const double[::1] s = _checked_vector("sigma", sigma, n)
    cdef const double[::1] h
    cdef Box box
    cdef double theta = 0.0
    cdef int status
    if n == 0:
        if total != 0.0:
            raise ValueError(f"Σ σ_i α_i of no variables is 0, and not {total}.")
        return np.empty(0), 0.0
    result = np.empty(n)
    cdef double[::1] out = result
    cdef double[:, ::1] work = np.empty((6, n))
    cdef Py_ssize_t[::1] items = np.empty(n, dtype=np.intp)
    box.n, box.total = n, total
    box.m, box.l, box.u, box.sigma = &m[0], &low[0], &high[0], &s[0]
    box.h = NULL
    if curvature is not None:
        h = _checked_vector("curvature", curvature, n)
        box.h = &h[0]
    box.base, box.slope, box.floor = &work[0, 0], &work[1, 0], &work[2, 0]
    box.top, box.low, box.high = &work[3, 0], &work[4, 0], &work[5, 0]
    box.items = &items[0]
    with nogil:
        status = prepare(&box, &count, &culprit)
        if status == FINE:
            theta = multiplier(&box, count)
            theta = variables_at(&box, theta, &out[0])
    if status == BAD_BOUNDS:
        raise ValueError(
            f"Variable {culprit} has the bounds {low[culprit]} and {high[culprit]}, with "
            "nothing between them.")
    if status == BAD_CURVATURE:
        raise ValueError(
            f"curvature must be positive and finite; got {h[culprit]} for variable "
            f"{culprit}.")
    if status == BAD_SCALE:
        raise ValueError(
            f"Products of variable {culprit} are beyond the range of float64: its sigma "
            f"is {s[culprit]}, and its target {m[culprit]}.")
    if status == NOT_A_NUMBER:
        where = "total" if culprit < 0 else f"variable {culprit}"
        raise ValueError(f"The projection has a NaN in {where}.")
    if status == INFEASIBLE:
        raise ValueError(
            f"No point of the box has Σ σ_i α_i = {total}: it cannot be reached between "
            "the bounds.")
    return result, theta


def _checked_vector(name, values, Py_ssize_t n):
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 1 or (n >= 0 and len(values) != n):
        expected = f"({n},)" if n >= 0 else "(n,)"
        raise ValueError(f"{name} must have shape {expected}; got {values.shape}.")
    return values


def weighted_quantile(values, weights, double level):
    """The least value v with Σ_{values_i <= v} weights_i >= level, in O(n).

    It is the largest value if no sum is that large. For a convex, piecewise linear
    function with kinks at `values`, jumps of the slope of `weights` and a first slope of
    -level, the result is a minimizer.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        n > 0; weights are non-negative, and zero weights do not count.
    level : float

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn_structsvm.solvers.qp._projection import weighted_quantile
    >>> weighted_quantile([3.0, 1.0, 2.0], [1.0, 1.0, 2.0], 2.5)
    2.0
    """
    cdef double[::1] v = np.array(values, dtype=np.float64)
    cdef double[::1] w = np.array(weights, dtype=np.float64)
    cdef Py_ssize_t j, kept, count = 0
    cdef unsigned long long state = SEED
    cdef double pivot, mass, below = 0.0, best = -INFINITY
    cdef bint right
    for j in range(v.shape[0]):
        if w[j] > 0.0:
            best = max(best, v[j])
            v[count] = v[j]
            w[count] = w[j]
            count += 1
    while count > 0:
        pivot = median(
            v[draw(&state, count)], v[draw(&state, count)], v[draw(&state, count)])
        mass = 0.0
        for j in range(count):
            if v[j] <= pivot:
                mass += w[j]
        right = below + mass >= level
        if right:
            best = pivot
        else:
            below += mass
        kept = 0
        for j in range(count):
            if (v[j] < pivot) if right else (v[j] > pivot):
                v[kept] = v[j]
                w[kept] = w[j]
                kept += 1
        count = kept
    return best
