"""Angles between two rays of the plane (h, g), and bounds of the product h g in them.

The angles of a search form a heap by their bounds. See `_slack_search` for h and g, and
for the paper with the theorems and lemmas named here.
"""
from sklearn_structsvm._utils import tolerances

from libc.math cimport fmax, fmin, sqrt

from sklearn_structsvm._utils._memory cimport grow

# Slopes are kept within the range in which squares and roots are safe.
LARGEST = tolerances.HUGE
SMALLEST = 1.0 / LARGEST
# Relative rounding error of Φ and of its bounds.
PHI_ROUNDING = tolerances.VALUE_ROUNDING


cdef int push(Queue* queue, Angle angle) except -1 nogil:
    """Add an angle to a heap whose first angle has the largest bound."""
    cdef Py_ssize_t at = queue.count, capacity
    if at == queue.capacity:
        capacity = max(2 * at, 16)
        grow(<void**> &queue.angles, capacity * sizeof(Angle), "the angles of a search")
        queue.capacity = capacity
    queue.count += 1
    while at > 0 and queue.angles[(at - 1) // 2].bound < angle.bound:
        queue.angles[at] = queue.angles[(at - 1) // 2]
        at = (at - 1) // 2
    queue.angles[at] = angle
    return 0


cdef Angle pop(Queue* queue) noexcept nogil:
    cdef Angle first = queue.angles[0], moved
    cdef Py_ssize_t at = 0, child
    queue.count -= 1
    moved = queue.angles[queue.count]
    while 2 * at + 1 < queue.count:
        child = 2 * at + 1
        if (child + 1 < queue.count
                and queue.angles[child + 1].bound > queue.angles[child].bound):
            child += 1
        if queue.angles[child].bound <= moved.bound:
            break
        queue.angles[at] = queue.angles[child]
        at = child
    queue.angles[at] = moved
    return first


cdef double slope(double h, double g) noexcept nogil:
    """g / h for h > 0, within the range in which squares and roots are safe."""
    return fmin(fmax(g / h, SMALLEST), LARGEST) if h > 0.0 else LARGEST


cdef bint narrow(
        Angle* angle, double value, double highest_h, double highest_g) noexcept nogil:
    """Keep the rays between which Φ can exceed `value`; false if none is left.

    It has to exceed it by more than rounding, so that labelings of this `value` are left
    out.

    At slope s, Φ is at most G²/s and s H² (Theorem 5), if G or H is known. On
    the line h + λ g = K the product at slope s is s K²/(1 + λ s)². With
    B = K²/(4 λ value) it exceeds `value` for λ s between (√B - √(B - 1))² and
    (√B + √(B - 1))². Where `value` is that of the line's own labeling z, these are the
    rays of z and of z'.
    """
    cdef double ratio, reach
    if value <= 0.0:
        return True
    if highest_g > 0.0:
        angle.alpha = fmin(
            angle.alpha, highest_g / value * highest_g * (1.0 - PHI_ROUNDING))
    if highest_h > 0.0:
        angle.beta = fmax(
            angle.beta, value / highest_h / highest_h * (1.0 + PHI_ROUNDING))
    if angle.lam <= 0.0:
        return angle.beta < angle.alpha
    ratio = angle.highest / value * angle.highest / (4.0 * angle.lam)
    if ratio <= 1.0:
        return False
    reach = sqrt(ratio) + sqrt(ratio - 1.0)
    reach *= reach * (1.0 - PHI_ROUNDING)
    angle.alpha = fmin(angle.alpha, reach / angle.lam)
    angle.beta = fmax(angle.beta, 1.0 / (reach * angle.lam))
    return angle.beta < angle.alpha


cdef double largest_on_line(
        const Angle* angle, double lam, double highest) noexcept nogil:
    """The largest product on the line h + lam g = highest within the angle."""
    cdef double at = fmin(fmax(1.0 / lam, angle.beta), angle.alpha)
    return highest / (1.0 + lam * at) * highest / (1.0 + lam * at) * at


cdef void add_line(Angle* angle, double lam, double highest) noexcept nogil:
    """Bound an angle by one more line, and keep the line that bounds it better."""
    cdef double largest = largest_on_line(angle, lam, highest)
    angle.bound = fmin(angle.bound, largest)
    if angle.lam > 0.0 and largest_on_line(angle, angle.lam, angle.highest) < largest:
        return
    angle.lam = lam
    angle.highest = highest


cdef double leave_out(
        Angle* angle, double h, double g, double lam, double error) noexcept nogil:
    """Shrink the angle to exclude this labeling's ray, which becomes its side.

    The labeling is the best of the angle for `lam`, and its h is known up to `error`.
    Returns a bound of Φ on the rays excluded with it; 0 if they differ only by rounding.
    """
    cdef Angle out = angle[0]
    if slope(h, g) * lam > 1.0:
        angle.alpha = fmin(angle.alpha, slope(h + error, g) * (1.0 - PHI_ROUNDING))
        angle.strict = True
        out.beta = angle.alpha
    else:
        angle.beta = fmax(angle.beta, slope(h - error, g) * (1.0 + PHI_ROUNDING))
        out.alpha = angle.beta
    return 0.0 if error == 0.0 else largest_on_line(&out, lam, h + lam * g)
