"""Block-coordinate Frank-Wolfe on the dual of the structural SVM.

With p_i = s_i / Σs the weight of block i and A the map of dual variables to
weights, the dual point is kept as ν_i and ℓ_i = Σ_y α_i(y) L_i(y) (see
`sklearn_structsvm._contract._oracle`), so that

    v = Aα = -(1/λ) Σ_i p_i · (joint feature of ν_i),    w = clip(v, lower, upper),
    block gap  g_i = p_i [ max_y H_i(y) - (ℓ_i + ⟨θ_i, ν_i⟩) ].

A step along Δ with gain g = ⟨-∇f, Δ⟩ has curvature p_i² ‖Δ's joint feature‖²/λ
and increases the dual by γ g - γ² curvature / 2; under box constraints, where that is an
upper bound, by at least that. A correction is the best step over all that the labelings
at hand span, or nearly so. With a proximal term, see `_proximal`, λ' takes the place of
λ. Nothing here decides when to stop or what to sample.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_floats, check_shape, restore

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy

from sklearn_structsvm._contract._oracle cimport CHUNK, BlockOracle
from sklearn_structsvm._utils._matrix._features cimport PAGE
from sklearn_structsvm.solvers.blocks._corners cimport Corners, CornerSets
from sklearn_structsvm.solvers.blocks._proximal cimport ProximalIterate
from sklearn_structsvm.solvers.blocks._sum_tree cimport SumTree

# A corner of less mass than this caps pairwise and away steps at nothing: it is emptied.
cdef double DUST = 1e-12

cdef enum:
    FRANK_WOLFE = 0
    PAIRWISE = 1
    AWAY = 2
    CORRECTIVE = 3

STEPS = {"fw": FRANK_WOLFE, "pairwise": PAIRWISE, "away": AWAY, "corrective": CORRECTIVE}

# A correction leaves this share of what its block's gap was before, or where the oracle
# is not asked of the mean gap of all: with labelings still missing more would be lost on
# them.
cdef double SHARE_LEFT = 0.3

# A labeling that had no mass for this many passes goes, and with many at hand the ones
# that had none for longest.
cdef enum:
    IDLE_PASSES = 20
    MANY_LABELINGS = 80


cdef double line_search(
        double gain, double curvature, double largest, double* gamma) noexcept nogil:
    """Best gamma in [0, largest]; returns the increase of the dual."""
    if not gain > 0.0:
        gamma[0] = 0.0
        return 0.0
    gamma[0] = largest
    if gain < largest * curvature:
        gamma[0] = gain / curvature
    return gamma[0] * (gain - 0.5 * gamma[0] * curvature)


cdef class BlockFrankWolfe(ProximalIterate):
    """The iterate of block-coordinate Frank-Wolfe and the moves it can make.

    Parameters
    ----------
    oracle : BlockOracle
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1. Blocks of weight 0 are left alone.
    lam : float
        λ > 0.
    step : {"fw", "pairwise", "away", "corrective"}
    cache_size : int
        Labelings kept per block beside the active ones; 0 for no cache.
    cache_factor, cache_floor : float
        F and ν of the cache-hit criterion.
    average : bool
        Whether to keep the weighted average of the iterates.
    lower, upper : ndarray of shape (n_weights,) or None
        Box constraints on w.
    whole : BlockFrankWolfe or None
        Whose part this is to be: an iterate with weights of its own, which moves the dual
        variables of the whole, of blocks that no other part has. See `_parts`.
    """

    cdef readonly BlockOracle oracle
    cdef readonly long long n_steps, n_oracle_calls, n_cache_hits
    cdef readonly double gap
    cdef const double[::1] p
    cdef double cache_factor, cache_floor
    cdef Py_ssize_t cache_size, n_active_blocks
    cdef str step_name
    cdef int kind
    cdef bint is_part
    # Masses α of the corners are what pairwise and away steps need; plain steps do
    # without, and then any corner may leave the cache.
    cdef bint keeps_corners, keeps_mass, average
    cdef double[::1] average_sum
    cdef double[::1] loss_bar, gaps, hinges, means
    # Σ p_i ℓ_i has changed by this much since the last round of a part.
    cdef readonly double loss_change
    cdef double average_loss, total_weight
    cdef SumTree tree
    cdef readonly CornerSets corners
    cdef double[::1] work, first, second
    cdef int[::1] labels

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam, *,
                 str step="fw", Py_ssize_t cache_size=0, double cache_factor=0.25,
                 double cache_floor=0.01, bint average=False, lower=None,
                 upper=None, BlockFrankWolfe whole=None):
        cdef Py_ssize_t n = oracle.n_blocks, d = oracle.n_weights, i
        check_shape("weights", weights, n)
        super().__init__(d, lam, lower, upper)
        self.oracle = oracle
        self.p = weights
        self.total_weight = np.sum(weights)
        self.step_name = step
        self.kind = STEPS[step]
        self.is_part = whole is not None
        self.cache_size = cache_size
        self.cache_factor = cache_factor
        self.cache_floor = cache_floor
        self.keeps_mass = self.kind != FRANK_WOLFE
        self.keeps_corners = self.keeps_mass or cache_size > 0
        self.average = average
        self.n_active_blocks = np.count_nonzero(weights)
        self.n_steps = self.n_oracle_calls = self.n_cache_hits = 0
        self.gap = np.inf
        self.average_sum = np.zeros(d if average else 0)
        self.average_loss = self.loss_change = 0.0
        self.loss_bar = np.zeros(n)
        self.gaps = np.full(n, np.inf)
        self.hinges = np.zeros(n)
        self.means = np.zeros(n)
        self.tree = SumTree(n)
        self.work = np.zeros(max(oracle.work_size, 1))
        self.first = np.zeros(max(oracle.direction_size, 1))
        self.second = np.zeros(max(oracle.direction_size, 1))
        self.labels = np.zeros(max(oracle.max_labels, 1), dtype=np.intc)
        self.corners = None
        if self.is_part:
            self.loss_bar, self.gaps = whole.loss_bar, whole.gaps
            self.corners = CornerSets(
                whole.corners.lengths(), self.is_corrective, whole.corners)
        elif self.keeps_corners:
            self.corners = CornerSets(
                np.array([oracle.n_labels(i) for i in range(n)], dtype=np.intp),
                keeps_gram=self.is_corrective)
            for i in range(n):
                oracle.true_labels(i, &self.labels[0])
                self.corners.add(i, &self.labels[0], 0.0)
                self.corners.sets[i].alpha[0] = self.keeps_mass
                if self.is_corrective:
                    self.corners.sets[i].gram[0] = 0.0

    # ------------------------------------------------------------------ steps

    cdef double visit(self, Py_ssize_t i, bint at_hand=False) except? -1.0 nogil:
        """A step on block i, or a correction."""
        if self.kind == CORRECTIVE:
            return self.correct(i, at_hand)
        return self.step(i, at_hand)

    cdef double correct(self, Py_ssize_t i, bint at_hand) except? -1.0 nogil:
        """Correct the dual variables of block i, with its best labeling taken in.

        Or over those at hand, and the oracle is not asked. Returns the gap of the block
        with respect to the labelings that it now has.
        """
        cdef Corners* corners = &self.corners.sets[i]
        cdef double* values = self.corners.values
        cdef double* masses = self.corners.masses
        cdef double* work = &self.work[0]
        cdef Py_ssize_t c, s, n_labels = self.oracle.n_labels(i)
        cdef double p = self.p[i], score, loss, mean = 0.0, best, tol
        cdef double loss_change = 0.0
        cdef bint is_moved = False
        self.oracle.potentials(i, &self.w[0], work)
        for c in range(corners.count):
            self.oracle.evaluate(i, work, corners.labels + c * n_labels, &score, &loss)
            values[c] = score + loss
            mean += corners.alpha[c] * values[c]
        if at_hand:
            tol = SHARE_LEFT * self.tree.total() / self.total_weight
        else:
            self.n_steps += 1
            self.n_oracle_calls += 1
            self.oracle.max_oracle(i, 1.0, work, &self.labels[0], &score, &loss)
            best = score + loss
            self.gaps[i] = p * (best - mean)
            self.tree.update(i, self.gaps[i])
            s = self.corners.find(i, &self.labels[0])
            if s < 0:
                s = self._add_corner(i, &self.labels[0], loss)
                # There may be more room for them, elsewhere.
                values, masses = self.corners.values, self.corners.masses
                values[s] = best
            self.corners.touch(i, s)
            tol = SHARE_LEFT * (best - mean)
        best = values[0]
        for c in range(1, corners.count):
            best = max(best, values[c])
        if corners.count > 1:
            self.corners.correct(i, p / self.proximal_lam(), max(tol, 0.0))
            for c in range(corners.count):
                self.corners.coefs[c] = masses[c] - corners.alpha[c]
                loss_change += self.corners.coefs[c] * corners.loss[c]
                is_moved = is_moved or masses[c] != corners.alpha[c]
        if is_moved:
            self.oracle.direction(
                i, 0.0, corners.count, self.corners.coefs, corners.labels,
                &self.first[0], NULL)
            # As for `step`, nothing has changed before it, and nothing after it can fail.
            self.oracle.move(i, 1.0, &self.first[0])
            memcpy(corners.alpha, masses, corners.count * sizeof(double))
            self._shift_loss(i, loss_change)
            self._shift_weights(i, 1.0, &self.first[0])
        if not at_hand and not self.is_part:
            self._forget_idle(i)
        return p * (best - mean)

    cdef Py_ssize_t _add_corner(
            self, Py_ssize_t i, const int* labels, double loss) except -1 nogil:
        """Take in a labeling, with its row of the Gram matrix; its place.

        Potentials of block i have to be found again afterwards.
        """
        cdef Py_ssize_t c, s = self.corners.add(i, labels, loss)
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t n_labels = self.oracle.n_labels(i)
        cdef double one = 1.0, product
        if self.kind != CORRECTIVE:
            return s
        self.oracle.direction(i, 0.0, 1, &one, labels, &self.first[0], NULL)
        self.oracle.image(i, &self.first[0], &self.work[0])
        for c in range(s + 1):
            self.oracle.evaluate(
                i, &self.work[0], corners.labels + c * n_labels, &product, &loss)
            corners.gram[s * corners.capacity + c] = product
            corners.gram[c * corners.capacity + s] = product
        return s

    cdef int _forget_idle(self, Py_ssize_t i) except -1 nogil:
        """Let labelings go that have had no mass for long."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t c, n_labels = self.oracle.n_labels(i)
        cdef long long now = self.corners.clock
        for c in range(corners.count - 1, -1, -1):
            if corners.alpha[c] > 0.0:
                corners.last_used[c] = now
            elif now - corners.last_used[c] > IDLE_PASSES * self.n_active_blocks:
                self.oracle.release(i, corners.labels + c * n_labels)
                self.corners.remove(i, c)
        return self._keep_at_most(i, MANY_LABELINGS)

    cdef int _keep_at_most(self, Py_ssize_t i, Py_ssize_t most) except -1 nogil:
        """Let the stalest labelings go; all that have mass stay."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t c
        while corners.count > most:
            c = self.corners.stalest(i)
            if c < 0:
                break
            self.oracle.release(i, corners.labels + c * self.oracle.n_labels(i))
            self.corners.remove(i, c)
        return 0

    cdef int _pairwise_direction(
            self, Py_ssize_t i, Py_ssize_t s, Py_ssize_t away, double* norm
            ) except -1 nogil:
        """From one corner to another, as the second direction."""
        cdef Py_ssize_t c
        cdef double* coefs = self.corners.coefs
        for c in range(self.corners.sets[i].count):
            coefs[c] = (c == s) - <double> (c == away)
        return self.oracle.direction(
            i, 0.0, self.corners.sets[i].count, coefs, self.corners.sets[i].labels,
            &self.second[0], norm)

    cdef double step(self, Py_ssize_t i, bint at_hand=False) except? -1.0 nogil:
        """One step on block i (Algorithms 1 to 5 in one), towards its best labeling.

        Or towards the best of those at hand, and the oracle is not asked. Returns the
        gap of the block with respect to the labeling chosen.
        """
        cdef Corners* corners = NULL
        cdef double* work = &self.work[0]
        cdef double* chosen = &self.first[0]
        cdef int* labels = &self.labels[0]
        cdef const int* s_labels = labels
        cdef Py_ssize_t s = -1, away = -1, best = -1, n_active = 0
        cdef Py_ssize_t n_labels = self.oracle.n_labels(i)
        cdef double p = self.p[i], score, loss, value, mean, gain, norm
        cdef double away_value = 0.0, gamma, fw_gamma, progress, fw_progress
        cdef double threshold, loss_change, fw_gain, alpha, one = 1.0, minus = -1.0
        cdef double scale = p * p / self.proximal_lam()
        cdef int taken = FRANK_WOLFE
        cdef bint hit = False

        self.oracle.potentials(i, &self.w[0], work)
        self.oracle.block_score(i, work, &score)
        mean = self.loss_bar[i] + score

        if self.keeps_corners:
            corners = &self.corners.sets[i]
            best = self._scan(i, work, &value, &away, &away_value, &n_active)
            if self.cache_size > 0:
                threshold = max(self.cache_factor * self.gaps[i],
                                self.cache_floor / self.n_active_blocks * self.gap)
                fw_gain = p * (value - mean)
                # A gain of zero is no hit even where the threshold is zero:
                # no block may be kept from its oracle for good.
                hit = fw_gain >= threshold and fw_gain > 0.0
        if at_hand:
            hit = True
            fw_gain = p * (value - mean)
        if hit:
            s = best
            loss = corners.loss[s]
            self.corners.touch(i, s)
            self.n_cache_hits += 1
        else:
            self.oracle.max_oracle(i, 1.0, work, labels, &score, &loss)
            self.n_oracle_calls += 1
            value = score + loss
            fw_gain = p * (value - mean)
            self.gaps[i] = fw_gain
            self.tree.update(i, fw_gain)
            if self.keeps_corners:
                s = self.corners.find(i, labels)
                if s < 0:
                    s = self._add_corner(i, labels, loss)
                self.corners.touch(i, s)
        if self.keeps_corners:
            s_labels = corners.labels + s * n_labels

        # Plain steps shrink masses but never to zero. Left alone, the dust of a corner
        # that is the worst one would keep its block from ever making another step.
        while n_active > 1 and corners.alpha[away] < DUST and value > away_value:
            alpha = corners.alpha[away]
            self._pairwise_direction(i, s, away, &norm)
            self.oracle.move(i, alpha, &self.second[0])
            self._shift_loss(i, alpha * (loss - corners.loss[away]))
            self._shift_mass(i, PAIRWISE, alpha, s, away)
            self._shift_weights(i, alpha, &self.second[0])
            away = -1
            n_active = 0
            self._scan(i, work, &score, &away, &away_value, &n_active)

        # With a single active corner, the three kinds of step are one.
        self.oracle.direction(i, -1.0, 1, &one, s_labels, &self.first[0], &norm)
        fw_progress = line_search(fw_gain, scale * norm, 1.0, &fw_gamma)
        progress = fw_progress
        gamma = fw_gamma
        loss_change = loss - self.loss_bar[i]
        if n_active > 1:
            alpha = corners.alpha[away]
            if self.kind == PAIRWISE:
                gain = p * (value - away_value)
                self._pairwise_direction(i, s, away, &norm)
                progress = line_search(gain, scale * norm, alpha, &gamma)
            else:
                gain = p * (mean - away_value)
                # Algorithm 4 takes the away step only where it is the steeper, which it
                # never is from a corner of more than half the mass: the best value is at
                # least the mean of the others'. By rounding it is, close to the optimum,
                # and then the step is as long as 1 / (1 - alpha), and so is the rounding.
                progress = 0.0
                if gain >= fw_gain and alpha <= 0.5:
                    self.oracle.direction(
                        i, 1.0, 1, &minus, corners.labels + away * n_labels,
                        &self.second[0], &norm)
                    progress = line_search(
                        gain, scale * norm, alpha / (1.0 - alpha), &gamma)
            # The safeguard of the paper's appendix G: the plain step where it
            # gets further, which inherits its convergence guarantee.
            if progress > fw_progress:
                taken = self.kind
                chosen = &self.second[0]
                if taken == PAIRWISE:
                    loss_change = loss - corners.loss[away]
                else:
                    loss_change = self.loss_bar[i] - corners.loss[away]
            else:
                gamma = fw_gamma

        self.n_steps += 1
        if gamma > 0.0:
            # `move` may fail in a structure's Python code: nothing has changed
            # before it, and nothing after it can fail.
            self.oracle.move(i, gamma, chosen)
            self._shift_loss(i, gamma * loss_change)
            if self.keeps_mass:
                self._shift_mass(i, taken, gamma, s, away)
            self._shift_weights(i, gamma, chosen)
        if self.keeps_corners:
            if not at_hand and not self.is_part:
                self._tidy(i)
        else:
            self.oracle.release(i, labels)
        return fw_gain

    cdef Py_ssize_t _scan(
            self, Py_ssize_t i, double* work, double* best_value,
            Py_ssize_t* away, double* away_value, Py_ssize_t* n_active
            ) except -2 nogil:
        """Best corner of block i at hand, and the worst active one."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t c, best = -1, n_labels = self.oracle.n_labels(i)
        cdef double score, loss, value
        for c in range(corners.count):
            self.oracle.evaluate(
                i, work, corners.labels + c * n_labels, &score, &loss)
            value = score + loss
            if best < 0 or value > best_value[0]:
                best = c
                best_value[0] = value
            if corners.alpha[c] > 0.0:
                n_active[0] += 1
                if away[0] < 0 or value < away_value[0]:
                    away[0] = c
                    away_value[0] = value
        if n_active[0] == 1:
            # The masses sum to one up to rounding, which ends here.
            corners.alpha[away[0]] = 1.0
        return best

    cdef void _shift_loss(self, Py_ssize_t i, double change) noexcept nogil:
        self.loss_bar[i] += change
        self.loss_change += self.p[i] * change
        self.average_loss += self._average_weight() * self.p[i] * change

    cdef double _average_weight(self) noexcept nogil:
        """k (k - 1) / 2: what step k weighs in Σ_t t w_t (DESIGN, section 4)."""
        return 0.5 * <double> self.n_steps * (<double> self.n_steps - 1.0)

    cdef int _shift_weights(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        """v and w after a move by gamma along a direction."""
        cdef double coef = -gamma * self.p[i]
        self.oracle.scatter(i, coef / self.proximal_lam(), direction, &self.v[0])
        if self.is_part:
            self.oracle.mark(i, direction, &self.pages[0])
        if self.average:
            self.oracle.scatter(i, coef / self.lam * self._average_weight(), direction,
                                &self.average_sum[0])
        if self.has_box:
            self.oracle.project(i, direction, &self.v[0], &self.lower[0],
                                &self.upper[0], &self.w[0])
        return 0

    cdef void _shift_mass(
            self, Py_ssize_t i, int taken, double gamma, Py_ssize_t s,
            Py_ssize_t away) noexcept nogil:
        """The dual variables α_i after a step."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t c
        cdef bint dropped
        if taken == PAIRWISE:
            # gamma = α is a drop step: the difference is exactly zero.
            corners.alpha[away] -= gamma
            corners.alpha[s] += gamma
        elif taken == AWAY:
            # A drop step has gamma = α / (1 - α), where rounding may leave dust.
            dropped = gamma >= corners.alpha[away] / (1.0 - corners.alpha[away])
            for c in range(corners.count):
                corners.alpha[c] *= 1.0 + gamma
            corners.alpha[away] -= gamma
            if dropped or corners.alpha[away] < 0.0:
                corners.alpha[away] = 0.0
        else:
            for c in range(corners.count):
                corners.alpha[c] *= 1.0 - gamma
            corners.alpha[s] += gamma

    cdef int _tidy(self, Py_ssize_t i) except -1 nogil:
        """Forget corners without mass, all of them or the stalest beyond the cache."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t c, n_labels = self.oracle.n_labels(i)
        if self.cache_size > 0:
            return self._keep_at_most(i, self.cache_size)
        for c in range(corners.count - 1, -1, -1):
            if corners.alpha[c] == 0.0:
                self.oracle.release(i, corners.labels + c * n_labels)
                self.corners.remove(i, c)
        return 0

    def run(self, const Py_ssize_t[::1] blocks):
        """One step on each of the given blocks, in their order."""
        cdef Py_ssize_t k, first, n = blocks.shape[0]
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            with nogil:
                for k in range(first, min(first + CHUNK, n)):
                    self.visit(blocks[k])

    def run_at_hand(self, const Py_ssize_t[::1] blocks):
        """The same towards labelings at hand, without asking the oracle.

        Returns
        -------
        float
            Sum of the gaps of the blocks with respect to their labelings at hand, each
            as it was before its step.
        """
        cdef Py_ssize_t k
        cdef double gap = 0.0
        with nogil:
            for k in range(blocks.shape[0]):
                gap += self.visit(blocks[k], True)
        return gap

    # ------------------------------------------------------------------ parts

    def become_part(self):
        """Be a part of an iterate that is elsewhere."""
        self.is_part = True
        n_pages = (self.oracle.n_weights + PAGE - 1) // PAGE
        self.pages = np.zeros(n_pages, dtype=np.uint8)

    def part(self, weights):
        """A part of the iterate: that of the blocks which have their weight here."""
        return BlockFrankWolfe(
            self.oracle, weights, self.lam, step=self.step_name,
            cache_size=self.cache_size, cache_factor=self.cache_factor,
            cache_floor=self.cache_floor, lower=self.lower if self.has_box else None,
            upper=self.upper if self.has_box else None, whole=self)

    def begin_pass_of(self, BlockFrankWolfe part):
        """Tell a part what is known of the gaps."""
        part.gap = self.gap
        part.corners.clock = self.corners.clock
        part.corners.reserve(self.corners.most)
        part.tree.rebuild(np.where(np.asarray(part.p) > 0.0, self.gaps, 0.0))

    def end_pass_of(self, BlockFrankWolfe part):
        """Count what a part has done."""
        self.n_steps += part.n_steps
        self.n_oracle_calls += part.n_oracle_calls
        self.n_cache_hits += part.n_cache_hits
        part.forget_counts()
        self.corners.clock = max(self.corners.clock, part.corners.clock)
        self.corners.reserve(part.corners.most)
        self.tree.rebuild(self.gaps)

    def forget_counts(self):
        """Count steps and calls from zero again."""
        self.n_steps = self.n_oracle_calls = self.n_cache_hits = 0

    def remember(self, const Py_ssize_t[::1] blocks):
        """Note the dual variables of the blocks of a part's next round, for `settle`."""
        cdef Py_ssize_t b
        for b in range(blocks.shape[0]):
            self.corners.remember(blocks[b])
        self.loss_change = 0.0

    def settle(self, const Py_ssize_t[::1] blocks, double gamma):
        """Take back all but gamma of what the last round changed in these blocks.

        Labelings may go thereafter, as after a step of the whole.
        """
        cdef Py_ssize_t b, i, c
        cdef double change, loss_change
        cdef bint is_moved
        cdef Corners* corners
        with nogil:
            for b in range(blocks.shape[0]):
                i = blocks[b]
                corners = &self.corners.sets[i]
                loss_change = 0.0
                is_moved = False
                for c in range(corners.count if gamma < 1.0 else 0):
                    change = (gamma - 1.0) * (corners.alpha[c] - corners.before[c])
                    self.corners.coefs[c] = change
                    loss_change += change * corners.loss[c]
                    is_moved = is_moved or change != 0.0
                if is_moved:
                    self.oracle.direction(
                        i, 0.0, corners.count, self.corners.coefs, corners.labels,
                        &self.first[0], NULL)
                    self.oracle.move(i, 1.0, &self.first[0])
                    for c in range(corners.count):
                        corners.alpha[c] = corners.before[c] + gamma * (
                            corners.alpha[c] - corners.before[c])
                    self.loss_bar[i] += loss_change
                if self.kind == CORRECTIVE:
                    self._forget_idle(i)
                else:
                    self._tidy(i)

    def extend(self, const int[::1] labels, const Py_ssize_t[::1] starts, double eps):
        """Take one labeling per block to those at hand where it violates more than they.

        Parameters
        ----------
        labels, starts : ndarray of dtype intc and intp
            The labeling of block i begins at starts[i].
        eps : float
            By how much the value L_i + ⟨θ_i, μ(y) - μ(y_i)⟩ at w must exceed the largest
            one of those at hand. Labelings that do not are released, and so are those
            beyond the cache that a new one replaces; there is always room for it.

        Returns
        -------
        n_added : int
        """
        cdef Py_ssize_t i, away, n_active, c, n_added = 0
        cdef double best, away_value, score, loss
        cdef double* work = &self.work[0]
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] == 0.0:
                    continue
                c = self.corners.find(i, &labels[starts[i]])
                if c >= 0:
                    self.corners.touch(i, c)
                    continue
                self.oracle.potentials(i, &self.w[0], work)
                away = -1
                n_active = 0
                self._scan(i, work, &best, &away, &away_value, &n_active)
                self.oracle.evaluate(i, work, &labels[starts[i]], &score, &loss)
                if score + loss > best + eps:
                    self._tidy(i)
                    self._add_corner(i, &labels[starts[i]], loss)
                    n_added += 1
                else:
                    self.oracle.release(i, &labels[starts[i]])
        return n_added

    def largest_at_hand(self):
        """max(0, largest value at w of the labelings at hand) of each block."""
        cdef Py_ssize_t i, away, n_active
        cdef double best, away_value
        values = np.zeros(self.oracle.n_blocks)
        cdef double[::1] largest = values
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &self.w[0], &self.work[0])
                    away = -1
                    n_active = 0
                    self._scan(i, &self.work[0], &best, &away, &away_value, &n_active)
                    largest[i] = max(best, 0.0)
        return values

    def run_by_gap(self, const double[::1] uniforms):
        """One step for each number in [0, 1), on a block drawn by its gap.

        Returns how many steps were made: fewer where all known gaps are zero.
        """
        cdef Py_ssize_t k = 0, stop, n = uniforms.shape[0]
        while k < n and self.tree.total() > 0.0:
            PyErr_CheckSignals()
            stop = min(k + CHUNK, n)
            with nogil:
                while k < stop and self.tree.total() > 0.0:
                    self.visit(self.tree.find(uniforms[k]))
                    k += 1
        return k

    def run_batch(self):
        """One step of batch Frank-Wolfe (Algorithm 8); returns its gap."""
        cdef BlockOracle oracle = self.oracle
        cdef Py_ssize_t i, n = oracle.n_blocks
        cdef const Py_ssize_t[::1] starts = np.concatenate(
            [[0], np.cumsum([oracle.n_labels(i) for i in range(n)])]).astype(np.intp)
        cdef int[::1] labels = np.zeros(max(starts[n], 1), dtype=np.intc)
        cdef double[::1] losses = np.zeros(n), total = np.zeros(oracle.n_weights)
        cdef double score, norm, gap = 0.0, gamma, one = 1.0
        with nogil:
            for i in range(n):
                if self.p[i] == 0.0:
                    continue
                oracle.potentials(i, &self.w[0], &self.work[0])
                oracle.block_score(i, &self.work[0], &score)
                self.gaps[i] = -self.p[i] * (self.loss_bar[i] + score)
                oracle.max_oracle(i, 1.0, &self.work[0], &labels[starts[i]],
                                  &score, &losses[i])
                self.n_oracle_calls += 1
                self.gaps[i] += self.p[i] * (score + losses[i])
                gap += self.gaps[i]
                oracle.direction(i, -1.0, 1, &one, &labels[starts[i]],
                                 &self.first[0], NULL)
                oracle.scatter(i, self.p[i], &self.first[0], &total[0])
        norm = np.dot(total, total)
        line_search(gap, norm / self.proximal_lam(), 1.0, &gamma)
        self.n_steps += 1
        if gamma > 0.0:
            with nogil:
                for i in range(n):
                    if self.p[i] == 0.0:
                        continue
                    oracle.direction(i, -1.0, 1, &one, &labels[starts[i]],
                                     &self.first[0], NULL)
                    oracle.move(i, gamma, &self.first[0])
                    self._shift_loss(i, gamma * (losses[i] - self.loss_bar[i]))
            np.asarray(self.v)[...] -= np.multiply(gamma / self.proximal_lam(), total)
            if self.average:
                np.asarray(self.average_sum)[...] -= np.multiply(
                    gamma / self.lam * self._average_weight(), total)
            self._clip()
        for i in range(n):
            if self.p[i] > 0.0:
                oracle.release(i, &labels[starts[i]])
        return gap

    # ----------------------------------------------------------- certificates

    cdef int _check(
            self, Py_ssize_t i, const double* w, double lam, double* work,
            int* labels, double* hinge, double* mean) except -1 nogil:
        """p_i max_y H_i(y), or a bound, and p_i (ℓ_i + ⟨θ_i, ν_i⟩); loss times lam."""
        cdef double score, loss
        self.oracle.potentials(i, w, work)
        self.oracle.block_score(i, work, &score)
        mean[0] = self.p[i] * (self.loss_bar[i] + score)
        self.oracle.max_oracle(i, lam, work, labels, &score, &loss)
        hinge[0] = self.p[i] * self.oracle.upper_bound(i, work, score + lam * loss)
        if not self.keeps_corners or self.corners.find(i, labels) < 0:
            self.oracle.release(i, labels)
        return 0

    def _pass(self, const double[::1] w, double lam, double[::1] hinges,
              double[::1] means, int n_threads):
        cdef Py_ssize_t i, n = self.oracle.n_blocks
        cdef Py_ssize_t n_work = self.work.shape[0], n_labels = self.labels.shape[0]
        cdef int t
        if not self.oracle.thread_safe or n_threads < 1:
            n_threads = 1
        cdef double[::1] work = np.zeros(n_threads * n_work)
        cdef int[::1] labels = np.zeros(n_threads * n_labels, dtype=np.intc)
        if n_threads == 1:
            with nogil:
                for i in range(n):
                    if self.p[i] > 0.0:
                        self._check(i, &w[0], lam, &work[0], &labels[0],
                                    &hinges[i], &means[i])
        else:
            for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
                if self.p[i] > 0.0:
                    t = threadid()
                    self._check(i, &w[0], lam, &work[t * n_work],
                                &labels[t * n_labels], &hinges[i], &means[i])
        self.n_oracle_calls += self.n_active_blocks

    def check_gaps(self, int n_threads=1):
        """True gaps of all blocks at w; returns (Σ p_i H_i, Σ g_i).

        Each block's terms are stored and summed in their order, so that the
        result does not depend on the number of threads.
        """
        self._pass(self.w, 1.0, self.hinges, self.means, n_threads)
        np.subtract(self.hinges, self.means, out=np.asarray(self.gaps))
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(self.gaps)
        return float(np.sum(self.hinges)), self.gap

    def check_means(self):
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩) of all blocks, without asking the oracle."""
        cdef Py_ssize_t i
        cdef double score
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &self.w[0], &self.work[0])
                    self.oracle.block_score(i, &self.work[0], &score)
                    self.means[i] = self.p[i] * (self.loss_bar[i] + score)
        return float(np.sum(self.means))

    def hinge(self, const double[::1] w, double lam=1.0, int n_threads=1):
        """Σ p_i max_y lam L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩ at any w."""
        check_shape("w", w, self.oracle.n_weights)
        hinges = np.zeros(self.oracle.n_blocks)
        self._pass(w, lam, hinges, np.zeros(self.oracle.n_blocks), n_threads)
        return float(np.sum(hinges))

    @property
    def can_be_parted(self):
        """Whether several threads may move it at once."""
        return self.oracle.thread_safe and self.keeps_mass and not self.average

    @property
    def is_corrective(self):
        """Whether its moves are corrections."""
        return self.kind == CORRECTIVE

    def gram(self, Py_ssize_t i):
        """Inner products of the joint features of block i's labelings at hand."""
        cdef Corners* corners = &self.corners.sets[i]
        cdef Py_ssize_t a, b
        gram = np.empty((corners.count, corners.count))
        for a in range(corners.count):
            for b in range(corners.count):
                gram[a, b] = corners.gram[a * corners.capacity + b]
        return gram

    @property
    def known_gap(self):
        """The gap by those of the blocks as last seen, some of them stale."""
        return self.tree.total() + self.proximal_gap()

    @property
    def block_gaps(self):
        """The block gaps as last seen."""
        return np.array(self.gaps)

    @property
    def block_means(self):
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩) as last checked."""
        return np.array(self.means)

    @property
    def block_weights(self):
        """p, a view."""
        return np.asarray(self.p)

    @property
    def active_blocks(self):
        """Indices of the blocks of positive weight."""
        return np.flatnonzero(self.p)

    @property
    def movable_blocks(self):
        """Those with several labelings at hand."""
        cdef Py_ssize_t i
        counts = np.empty(self.oracle.n_blocks, dtype=np.intp)
        cdef Py_ssize_t[::1] count = counts
        for i in range(self.oracle.n_blocks):
            count[i] = self.corners.sets[i].count
        return np.flatnonzero((counts > 1) & (np.asarray(self.p) > 0.0))

    @property
    def loss(self):
        """Σ p_i ℓ_i."""
        return float(np.dot(self.p, self.loss_bar))

    @property
    def dual_objective(self):
        return self.dual_value(self.loss)

    def dual_point(self):
        """(Aα, Σ p_i ℓ_i) of the iterate."""
        return self.image_of_dual(), self.loss

    def average_point(self):
        """The same of the weighted average of the iterates."""
        if self.n_steps == 0:
            return self.dual_point()
        share = 2.0 / (<double> self.n_steps * (<double> self.n_steps + 1.0))
        return (self.image_of_dual() - share * np.asarray(self.average_sum),
                self.loss - share * self.average_loss)

    # ------------------------------------------------------------ dual states

    def rebuild_weights(self):
        """v and w from the blocks: after the blocks, λ or the weights changed."""
        cdef Py_ssize_t i
        np.asarray(self.v)[...] = 0.0
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.direction(i, 1.0, 0, NULL, NULL, &self.first[0], NULL)
                    self.oracle.scatter(i, -self.p[i] / self.lam, &self.first[0],
                                        &self.v[0])
        self.draw_to_centre()

    def set_lambda(self, double lam):
        """Change λ and κ with it, the dual point staying as it is."""
        self.kappa *= lam / self.lam
        self.lam = lam
        self.rebuild_weights()

    def rescale(self, double rho):
        """λ *= rho with w unchanged, and κ: mass 1 - rho of each block goes to the truth.

        Proposition 1 of the paper, with lines 14 to 22 of its Algorithm 7; the
        block gaps are those of the last check, updated by equation (12).
        """
        cdef Py_ssize_t i, c, truth
        cdef Corners* corners
        self.oracle.scale_blocks(rho)
        gaps = np.asarray(self.gaps)
        gaps += (1.0 - rho) * np.asarray(self.means)
        self.lam *= rho
        self.kappa *= rho
        np.asarray(self.loss_bar)[...] *= rho
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(gaps)
        if not self.keeps_mass:
            return
        for i in range(self.oracle.n_blocks):
            corners = &self.corners.sets[i]
            for c in range(corners.count):
                corners.alpha[c] *= rho
            self.oracle.true_labels(i, &self.labels[0])
            truth = self.corners.find(i, &self.labels[0])
            if truth < 0:
                truth = self._add_corner(i, &self.labels[0], 0.0)
            corners.alpha[truth] += 1.0 - rho

    def jump_to_oracle(self):
        """All mass of each block on its max-oracle's answer at w = 0."""
        cdef Py_ssize_t i, c
        cdef double score, loss, one = 1.0
        cdef double[::1] zero = np.zeros(self.oracle.n_weights)
        self.oracle.scale_blocks(0.0)
        for i in range(self.oracle.n_blocks):
            if self.p[i] == 0.0:
                continue
            self.oracle.potentials(i, &zero[0], &self.work[0])
            self.oracle.max_oracle(i, 1.0, &self.work[0], &self.labels[0],
                                   &score, &loss)
            self.oracle.direction(i, 0.0, 1, &one, &self.labels[0], &self.first[0], NULL)
            self.oracle.move(i, 1.0, &self.first[0])
            self.loss_bar[i] = loss
            if self.keeps_corners:
                c = self.corners.find(i, &self.labels[0])
                if c < 0:
                    c = self._add_corner(i, &self.labels[0], loss)
                if self.keeps_mass:
                    self._shift_mass(i, FRANK_WOLFE, 1.0, c, c)
                self._tidy(i)
            else:
                self.oracle.release(i, &self.labels[0])
        self.n_oracle_calls += self.n_active_blocks

    def get_state(self):
        """The dual point, picklable; see `set_state`."""
        cdef Py_ssize_t i, c, n_labels
        cdef Corners* corners
        state = {"blocks": self.oracle.get_blocks(), "loss": np.array(self.loss_bar)}
        state |= self.centre_state()
        if self.keeps_mass:
            saved = []
            for i in range(self.oracle.n_blocks):
                corners = &self.corners.sets[i]
                n_labels = self.oracle.n_labels(i)
                mine = []
                for c in range(corners.count):
                    memcpy(&self.labels[0], corners.labels + c * n_labels,
                           n_labels * sizeof(int))
                    mine.append((
                        self.oracle.labeling_to_object(i, self.labels[:n_labels]),
                        corners.alpha[c], corners.loss[c]))
                saved.append(mine)
            state["corners"] = saved
        return state

    def set_state(self, state):
        """Start from a dual point of the same examples, at any λ and weights.

        Raises
        ------
        ValueError
            Where it is none of these examples.
        """
        cdef Py_ssize_t i, c, n = self.oracle.n_blocks
        cdef int[::1] labels
        if self.keeps_mass and "corners" not in state:
            raise ValueError(
                "The dual point was found by plain steps, or exact ones, and has no "
                "active sets, which pairwise, away and corrective steps need.")
        self.oracle.set_blocks(state["blocks"])
        restore("loss", self.loss_bar, state["loss"])
        if self.keeps_mass:
            corners = state["corners"]
            if len(corners) != n:
                raise ValueError(f"{len(corners)} active sets for {n} examples.")
            for i in range(n):
                self.corners.sets[i].count = 0
                for saved, alpha, loss in corners[i]:
                    labels = self.oracle.labeling_from_object(i, saved)
                    alpha, loss = as_floats("mass and loss", (alpha, loss), 2)
                    c = self._add_corner(i, &labels[0], loss)
                    self.corners.sets[i].alpha[c] = alpha
        self.rebuild_weights()
        self.restore_centre(state)
