"""Five searches for the most violating labeling of slack rescaling.

Every labeling y of a block is a point of the plane, h(y) = one + f(y) - f(y_i) and
g(y) = L_i(y) >= 0, and the most violating one maximizes Φ = h g. The paper has one = 1;
a solver that scales its weights has another constant. At the true labeling g
and Φ are 0, so that Φ* >= 0. Oracles maximize h + λ g, over all labelings or between
two rays.

For every λ that is queried, K(λ) = max_y h + λ g bounds Φ* by the largest (K - λ g) g
with g between 0 and G = max g, which is K²/(4λ) (Lemma 5) or less, and K G for λ = 0. A
search reports the least of these bounds, or the exact value if it has proved it.

Gaps in the paper, and how they are filled here:

- Algorithm 2 prints the same oracle call in lines 8 and 10. By Lemma 8, labelings better
  than the labeling z lie strictly between the rays of z and of z', so both children of
  an angle exclude their outer rays, and the ray of r, which both share, belongs to
  the lower one: the child of larger slopes is (∂r, ∂P), the other (∂Q, ∂r].
- The flag of line 8, s = 1, then means that the upper ray is strict. The lower one always
  is. (The definition in Appendix F includes the upper ray, that of section 4 does not.)
- Line 17 ends the whole search if z lies on the ray of slope 1/λ. By Lemma 10, z is the
  best labeling of its own angle only: that angle is closed, and the others continue.
- The first angle is (∞, 0) without its rays: only h > 0 and g > 0 matter, since elsewhere
  Φ <= 0. If it is empty, the answer is the true labeling, Φ* = 0. With a cached labeling
  of Φ = φ > 0 and known H, it is the (G²/φ, φ/H²) of Theorem 5.
- Slopes that under- or overflow are kept within [SMALLEST, LARGEST].
- λ multiplies g, so that λ_0 = H/G (section 4.5; Theorem 5 prints the inverse), and
  Theorem 4's v_1 is the larger of λ_0 ∂(y_1) and its inverse.
- Cached labelings that are better than z rule out more than Lemma 8's outer rays: see
  `narrow`. The rays are recomputed when an angle's turn comes.
- Rays of labelings are excluded, but a user's structure need not round h as it is rounded
  here, nor compare g with α h by way of g/h. Then a labeling could return until halved
  angles left nothing between it and their other ray. So a ray is moved inward by the
  assumed rounding error, and if its labeling returns even so, the assumed error grows.
  The labeling's own line bounds what lies in between, and the reported bound includes
  that.
- A queue of angles by their bound instead of the breadth-first one keeps Theorem 4: an
  angle popped before a less deep one has a larger bound than that one.
- Algorithm 1 takes the mean of L, unbounded at first: λ doubles until it is bounded.
  H and G cannot be empty, for h(y*) is in all of their segments, but they can shrink to a
  point.
"""
from sklearn_structsvm._utils import tolerances

from libc.math cimport INFINITY, fabs, fmax, fmin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport BlockOracle, free_plane
from sklearn_structsvm._utils._memory cimport no_memory
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets
from sklearn_structsvm.solvers.blocks._angles cimport (
    LARGEST, PHI_ROUNDING, SMALLEST, Angle, Queue, add_line, leave_out, narrow, pop, push,
    slope)

cdef enum:
    ANGULAR
    EXACT
    BISECTING
    BINARY
    SARAWAGI

SEARCHES = {
    "angular": ANGULAR,
    "exact": EXACT,
    "bisecting": BISECTING,
    "binary": BINARY,
    "sarawagi": SARAWAGI,
}

# The share of the largest violation that an exact search may miss.
SEARCH_ROUNDING = PHI_ROUNDING
# The initial assumption of how differently a user's structure may round h, relative to
# the constant of h, and the factor by which this assumption grows.
cdef double ROUNDED_ZERO = tolerances.ROUNDED_ZERO
cdef double MORE = 16.0
# Once a bracket of λ has shrunk to this share of λ, its ends count as one.
cdef double NARROW_BRACKET = 1e-6
# Bisection starts at a λ for which λ G is at least this share of the constant of h.
cdef double SMALL_SHARE = 1e-3
cdef double GOLDEN = 0.6180339887498949
# Golden section ends once its bracket is this share of the first one.
cdef double GOLDEN_WIDTH = 1e-4


cdef void tighten(Search* search, double lam, double highest) noexcept nogil:
    """Bound the search by h + λ g <= `highest` and g <= G."""
    cdef double loss = search.max_loss
    if highest < 2.0 * lam * loss:
        loss = 0.5 * highest / lam
    search.bound = fmin(search.bound, fmax(highest - lam * loss, 0.0) * fmax(loss, 0.0))


cdef double begin_at(const Search* search) noexcept nogil:
    """The λ = h / g on whose line the best labeling is in the middle.

    0 if its violation is only rounding, which leaves its ray undetermined.
    """
    if search.value <= PHI_ROUNDING * search.one * search.max_loss:
        return 0.0
    return (search.one + search.score) / search.loss


cdef class SlackSearch:
    """A way to search, and its limits.

    Parameters
    ----------
    oracle : BlockOracle
    search : {"angular", "exact", "bisecting", "binary", "sarawagi"}
    rtol : float
        Stop once Φ of the labeling is at least (1 - rtol) Φ*.
    max_queries : int
        Stop after this many queries at the latest.
    known : ActiveSets or None
        Labelings that are in use, by block: the first candidates of a search, which must
        not be released to the oracle.
    """

    def __init__(self, BlockOracle oracle, search, double rtol,
                 Py_ssize_t max_queries, ActiveSets known=None):
        self.oracle = oracle
        self.kind = SEARCHES[search]
        self.rtol = rtol
        self.max_queries = max_queries
        self.known = known
        self.trace = None

    cdef int find(self, Search* search, double lam, double slack) except -1 nogil:
        """Search block `search.i`, whose potentials are in `search.work`.

        Parameters
        ----------
        search : Search*
            With i, one, work, labels and max_loss set; the other fields are the answer.
        lam : double
            Where to start; 0 for the search's own choice.
        slack : double
            ξ_i, for Sarawagi and Gupta's bound.
        """
        cdef Py_ssize_t c, i = search.i, n_labels = self.oracle.n_labels(i)
        cdef double score, loss
        self.oracle.true_labels(i, search.labels)
        search.score = search.loss = search.value = 0.0
        search.bound = INFINITY
        search.n_queries = 0
        search.on_plane = False
        memset(&search.plane, 0, sizeof(Plane))
        search.queried = <int*> malloc(max(n_labels, 1) * sizeof(int))
        if search.queried == NULL:
            no_memory("a labeling")
        try:
            # Candidates include a labeling that no known one exceeds.
            if self.known is not None and not self._scans_candidates():
                for c in range(self.known.sets[i].count):
                    memcpy(search.queried, self.known.sets[i].labels + c * n_labels,
                           n_labels * sizeof(int))
                    self.oracle.evaluate(
                        i, search.work, search.queried, &score, &loss)
                    self._consider(search, score, loss)
                if begin_at(search) > 0.0:
                    lam = begin_at(search)
            if self.kind == EXACT:
                self._exact(search)
            elif self.kind == ANGULAR:
                self._angular(search, lam)
            elif self.kind == BISECTING:
                self._bisecting(search, lam)
            elif self.kind == BINARY:
                self._binary(search)
            else:
                self._sarawagi(search, slack)
            search.bound = fmax(search.bound, search.value)
        finally:
            free(search.queried)
            free_plane(&search.plane)
        return 0

    cdef bint _scans_candidates(self) noexcept nogil:
        return self.kind == EXACT or (
            self.kind == ANGULAR and self.oracle.has_candidates)

    cdef int _consider(
            self, Search* search, double score, double loss) except -1 nogil:
        """Keep the labeling just queried if it is the best so far; else drop it."""
        cdef double value = (search.one + score) * loss
        cdef Py_ssize_t n_labels = self.oracle.n_labels(search.i)
        if value <= search.value:
            return self._drop(search, search.queried)
        if search.on_plane:
            search.labels[0] = search.queried[0]
        else:
            self._drop(search, search.labels)
            memcpy(search.labels, search.queried, n_labels * sizeof(int))
        search.score = score
        search.loss = loss
        search.value = value
        return 0

    cdef int _drop(self, Search* search, const int* labels) except -1 nogil:
        """Release a labeling that neither `known` nor the rest of the search holds."""
        cdef Py_ssize_t j
        if search.on_plane or self.known is None:
            return 0
        if self.known.find(search.i, labels) >= 0:
            return 0
        for j in range(self.oracle.n_labels(search.i)):
            if labels[j] != search.labels[j]:
                return self.oracle.release(search.i, labels)
        if labels == search.labels:
            return self.oracle.release(search.i, labels)
        return 0

    cdef bint _is_done(self, const Search* search) noexcept nogil:
        return (search.value >= (1.0 - self.rtol) * search.bound * (1.0 - PHI_ROUNDING)
                or search.n_queries >= self.max_queries)

    cdef int _ask(
            self, Search* search, double lam, double* h, double* g
            ) except -1 nogil:
        """Call the λ-oracle, and update the bound and the best labeling."""
        cdef double score, loss
        self.oracle.max_oracle(
            search.i, lam, search.work, search.queried, &score, &loss)
        search.n_queries += 1
        h[0] = search.one + score
        g[0] = loss
        # If the oracle is not exact, this exceeds the value of the labeling found.
        search.highest = search.one + self.oracle.upper_bound(
            search.i, search.work, score + lam * loss)
        tighten(search, lam, search.highest)
        self._consider(search, score, loss)
        if self.trace is not None:
            with gil:
                self.trace.append((lam, INFINITY, 0.0, True, h[0], g[0]))
        return 0

    cdef bint _ask_within(
            self, Search* search, double lam, double alpha, double beta,
            bint strict_alpha, double* h, double* g) except? -1 nogil:
        """Call the constrained λ-oracle, which excludes the lower ray."""
        cdef double score = 0.0, loss = 0.0, margin, ratio, highest = -INFINITY
        cdef Py_ssize_t j, best = -1
        cdef bint found = False
        search.n_queries += 1
        if search.on_plane:
            for j in range(search.plane.count):
                margin = search.one + search.plane.scores[j]
                if margin + lam * search.plane.losses[j] > highest and margin > 0.0:
                    ratio = search.plane.losses[j] / margin
                    if ratio > beta and (ratio < alpha or (
                            ratio == alpha and not strict_alpha)):
                        highest = margin + lam * search.plane.losses[j]
                        best = j
            found = best >= 0
            if found:
                search.queried[0] = <int> best
                score = search.plane.scores[best]
                loss = search.plane.losses[best]
        else:
            found = self.oracle.constrained_oracle(
                search.i, lam, alpha, beta, strict_alpha, True, search.one,
                search.work, search.queried, &score, &loss)
        h[0] = search.one + score
        g[0] = loss
        if self.trace is not None:
            with gil:
                self.trace.append((lam, alpha, beta, found, h[0], g[0]))
        if found:
            self._consider(search, score, loss)
        return found

    cdef int _exact(self, Search* search) except -1 nogil:
        cdef Py_ssize_t j
        if not search.on_plane:
            self.oracle.candidates(
                search.i, search.one, search.work, &search.plane)
        search.on_plane = True
        search.n_queries = 1
        for j in range(search.plane.count):
            search.queried[0] = <int> j
            self._consider(search, search.plane.scores[j], search.plane.losses[j])
        search.bound = fmax(search.value, search.plane.bound)
        return self._read_plane(search)

    cdef int _read_plane(self, Search* search) except -1 nogil:
        """Replace the place in the plane by the labeling."""
        if search.value > 0.0:
            self.oracle.candidate(search.i, search.work, &search.plane,
                                  search.labels[0], search.labels)
        else:
            self.oracle.true_labels(search.i, search.labels)
        return 0

    cdef int _angular(self, Search* search, double lam) except -1 nogil:
        """Algorithm 2; the module docstring says how its gaps are filled."""
        cdef Queue queue
        cdef Angle angle, low, high
        cdef double h = 0.0, g = 0.0, highest_h = 0.0, highest, at_z, at_mirror, peak
        cdef double error, beyond = 0.0, left_out = 0.0
        cdef bint is_first = True
        cdef Py_ssize_t j
        if self.oracle.has_candidates:
            self.oracle.candidates(
                search.i, search.one, search.work, &search.plane)
            search.on_plane = True
            if search.plane.bound > 0.0:
                return self._exact(search)
            for j in range(search.plane.count):
                highest_h = fmax(highest_h, search.one + search.plane.scores[j])
                search.max_loss = fmax(search.max_loss, search.plane.losses[j])
        error = 0.0 if search.on_plane else ROUNDED_ZERO * search.one
        memset(&queue, 0, sizeof(Queue))
        try:
            if lam <= 0.0 and not search.on_plane:
                self._ask(search, 0.0, &highest_h, &g)
            if lam <= 0.0:
                lam = 1.0 / slope(fmax(highest_h, SMALLEST), search.max_loss)
            angle.alpha = INFINITY
            angle.beta = 0.0
            angle.strict = True
            angle.bound = search.bound
            angle.lam = 0.0
            if search.value > 0.0 and search.loss >= search.max_loss:
                # It has the largest loss: its own ray is the outermost one.
                h = search.one + search.score + error
                angle.alpha = slope(h, search.loss) * (1.0 - PHI_ROUNDING)
                left_out = h * search.loss
            push(&queue, angle)
            while queue.count > 0:
                search.bound = fmax(queue.angles[0].bound, left_out)
                if self._is_done(search):
                    break
                angle = pop(&queue)
                if not narrow(&angle, search.value, highest_h, search.max_loss):
                    continue
                if not is_first and angle.beta > 0.0:
                    lam = 1.0 / sqrt(angle.alpha * angle.beta)
                is_first = False
                if not self._ask_within(search, lam, angle.alpha, angle.beta,
                                        angle.strict, &h, &g):
                    continue
                if h <= 0.0:
                    # The oracle has rounded it to a positive number.
                    error = fmax(error, -2.0 * h)
                    h = 0.0
                highest = h + lam * g
                at_z = slope(h, g)
                if angle.lam == 0.0:
                    # The first angle, which contains all violating labelings.
                    tighten(search, lam, highest)
                    angle.bound = search.bound
                if at_z <= angle.beta or at_z > angle.alpha or (
                        at_z == angle.alpha and angle.strict):
                    # It should already be excluded: h is rounded more than assumed.
                    low = angle
                    while (angle.alpha == low.alpha and angle.beta == low.beta
                            and error < LARGEST):
                        error = fmax(MORE * error, SMALLEST)
                        beyond = leave_out(&angle, h, g, lam, error)
                    left_out = fmax(left_out, beyond)
                    if angle.beta < angle.alpha:
                        add_line(&angle, lam, highest)
                        push(&queue, angle)
                    continue
                peak = 1.0 / lam
                if fabs(at_z * lam - 1.0) <= PHI_ROUNDING:
                    continue
                # Lines 18 to 24, within the angle that is split. z' mirrors z in the ray
                # of slope 1/λ: slopes multiply to 1/λ².
                at_mirror = fmin(fmax(peak / at_z * peak, SMALLEST), LARGEST)
                high = low = angle
                if at_z > peak:
                    beyond = leave_out(&high, h, g, lam, error)
                    low.beta = fmax(low.beta, at_mirror)
                else:
                    beyond = leave_out(&low, h, g, lam, error)
                    if at_mirror <= high.alpha:
                        high.alpha = at_mirror
                        high.strict = True
                left_out = fmax(left_out, beyond)
                high.beta = fmax(high.beta, peak)
                if peak < low.alpha:
                    low.alpha = peak
                    low.strict = False
                if high.beta < high.alpha:
                    add_line(&high, lam, highest)
                    push(&queue, high)
                if low.beta < low.alpha:
                    add_line(&low, lam, highest)
                    push(&queue, low)
            if queue.count == 0:
                search.bound = fmax(search.value, left_out)
        finally:
            free(queue.angles)
        if search.on_plane:
            self._read_plane(search)
        return 0

    cdef int _bisecting(self, Search* search, double lam) except -1 nogil:
        """Algorithm 1, with the early stop of Appendix D."""
        cdef double low = 0.0, high = INFINITY, h = 0.0, g = 0.0
        cdef double h_low = 0.0, h_high = INFINITY, g_low = 0.0, g_high = INFINITY
        cdef double[2] low_end, high_end
        low_end[0] = low_end[1] = -1.0
        high_end[0] = high_end[1] = -2.0
        if lam <= 0.0:
            lam = search.one
        if search.max_loss <= 0.0:
            search.bound = 0.0
            return 0
        # No need to double a λ at which the loss does not count.
        lam = fmax(lam, SMALL_SHARE * search.one / search.max_loss)
        while True:
            self._ask(search, lam, &h, &g)
            h_low = fmax(h_low, fmin(h, lam * g))
            h_high = fmin(h_high, fmax(h, lam * g))
            g_low = fmax(g_low, fmin(g, h / lam))
            g_high = fmin(g_high, fmax(g, h / lam))
            if g <= h / lam:
                low = lam
                low_end[0], low_end[1] = h, g
            else:
                high = lam
                high_end[0], high_end[1] = h, g
            if (self._is_done(search)
                    or h_low >= h_high * (1.0 - PHI_ROUNDING)
                    or g_low >= g_high * (1.0 - PHI_ROUNDING)
                    or (high < INFINITY and high - low <= NARROW_BRACKET * high)
                    or high < SMALLEST or low > LARGEST
                    or (low_end[0] == high_end[0] and low_end[1] == high_end[1])):
                return 0
            lam = 2.0 * lam if high == INFINITY else 0.5 * (low + high)

    cdef int _binary(self, Search* search) except -1 nogil:
        """Bisection for the least of Lemma 1's bounds.

        The bound is F(λ) = K(λ²)²/(4λ²), convex; written here in terms of λ². With
        H = max h and G = max g, K(λ) is at most H + λ G and at least H and λ G, so
        that the least bound is found within a factor of 4 of H/G.
        """
        cdef double h = 0.0, g = 0.0, lam, low, high, low_h, low_g
        cdef double high_h = -1.0, high_g = -1.0
        self._ask(search, 0.0, &h, &g)
        if search.highest <= 0.0 or search.max_loss <= 0.0:
            search.bound = 0.0
            return 0
        lam = search.highest / search.max_loss
        low_h, low_g = h, g
        low = 0.25 * lam
        high = 4.0 * lam
        while not self._is_done(search) and high - low > NARROW_BRACKET * high:
            lam = sqrt(low * high)
            self._ask(search, lam, &h, &g)
            if lam * g <= h:
                low, low_h, low_g = lam, h, g
            else:
                high, high_h, high_g = lam, h, g
            if low_h == high_h and low_g == high_g:
                break
        return 0

    cdef int _sarawagi(self, Search* search, double slack) except -1 nogil:
        """Golden section on F(λ) = K(λ) - 2 √(ξ λ), eq. (11).

        F is convex and bounds the largest h - ξ/g. From √λ = (√ξ + √(ξ + H G))/G on,
        λ G - 2 √(ξ λ) alone exceeds F(0) = H, so the minimum of F lies before.
        """
        cdef double h = 0.0, g = 0.0, a = 0.0, b, left, right, width, least
        cdef double f_left = INFINITY, f_right = INFINITY
        self._ask(search, 0.0, &h, &g)
        h = search.highest
        if h <= 0.0 or search.max_loss <= 0.0:
            search.bound = 0.0
            return 0
        b = (sqrt(slack) + sqrt(slack + h * search.max_loss)) / search.max_loss
        b *= b
        width = GOLDEN_WIDTH * b
        left = b - GOLDEN * b
        right = GOLDEN * b
        if not self._is_done(search):
            f_left = self._slack_bound(search, left, slack)
        if not self._is_done(search):
            f_right = self._slack_bound(search, right, slack)
        least = fmin(h, fmin(f_left, f_right))
        while b - a > width and not self._is_done(search):
            if f_left <= f_right:
                b, right, f_right = right, left, f_left
                left = b - GOLDEN * (b - a)
                f_left = self._slack_bound(search, left, slack)
            else:
                a, left, f_left = left, right, f_right
                right = a + GOLDEN * (b - a)
                f_right = self._slack_bound(search, right, slack)
            least = fmin(least, fmin(f_left, f_right))
        # h - ξ/g <= F implies h g <= F g + ξ.
        search.bound = fmin(search.bound, fmax(least, 0.0) * search.max_loss + slack)
        return 0

    cdef double _slack_bound(
            self, Search* search, double lam, double slack) except? -1 nogil:
        """F(λ)."""
        cdef double h = 0.0, g = 0.0
        self._ask(search, lam, &h, &g)
        return search.highest - 2.0 * sqrt(slack * lam)
