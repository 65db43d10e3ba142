"""Block-coordinate Frank-Wolfe on the dual of the structural SVM.

The dual point is stored as `_block_dual` describes; p_i, v and w are as defined there.

A step along Δ with gain g = ⟨-∇f, Δ⟩ has curvature p_i² ‖Δ's joint feature‖²/λ
and increases the dual by γ g - γ² curvature / 2; under box constraints, where the
curvature is an upper bound, by at least that. A correction is the best step over all that
the cached labelings span, or nearly so. With a proximal term, see `_proximal`, λ'
replaces λ. Nothing here decides when to stop or what to sample.
"""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm.solvers import accuracy

from libc.string cimport memcpy, memset

from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm._utils._matrix._features cimport PAGE
from sklearn_structsvm.solvers.blocks._block_dual cimport BlockDual
from sklearn_structsvm.solvers.blocks._active_sets cimport Atoms

# A part of an iterate with at most this many pages of weights marks all of them: that
# takes less time than to find out which ones a visit changes.
cdef enum:
    FEW_PAGES = 256

# An atom of less mass than this would limit pairwise and away steps to almost nothing:
# its mass is removed.
cdef double SUM_ROUNDING = tolerances.SUM_ROUNDING

cdef enum:
    FRANK_WOLFE
    PAIRWISE
    AWAY
    CORRECTIVE

CODES = {"fw": FRANK_WOLFE, "pairwise": PAIRWISE, "away": AWAY, "corrective": CORRECTIVE}

# A correction stops at this share of the block's previous gap or, if it does not call
# the oracle, of the mean gap of all blocks: more precision would be wasted while
# labelings are missing.
cdef double SHARE_LEFT = accuracy.SHARE_LEFT


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


cdef class BlockFrankWolfe(BlockDual):
    """The iterate of block-coordinate Frank-Wolfe and the moves it can make.

    Parameters
    ----------
    oracle, weights, lam, cache_size, lower, upper, whole
        As for `BlockDual`.
    step : {"fw", "pairwise", "away", "corrective"}
    cache_factor, cache_floor : float
        F and ν of the cache-hit criterion.
    safeguard : bool
        Whether a plain step replaces a pairwise or away step if it gets further (appendix
        G).
    average : bool
        Whether to keep the weighted average of the iterates.
    """

    cdef readonly long long n_steps, n_cache_hits
    cdef double cache_factor, cache_floor, total_weight
    cdef object step_name
    cdef int kind
    cdef bint average, safeguard
    cdef double average_loss
    cdef double[::1] average_sum, second

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam, *,
                 step="fw", Py_ssize_t cache_size=0, double cache_factor=0.25,
                 double cache_floor=0.01, bint safeguard=True, bint average=False,
                 lower=None, upper=None, double l1_ratio=0.0,
                 BlockFrankWolfe whole=None):
        self.step_name = step
        self.kind = CODES[step]
        super().__init__(
            oracle, weights, lam, lower=lower, upper=upper, l1_ratio=l1_ratio,
            cache_size=cache_size,
            keeps_mass=self.kind != FRANK_WOLFE, keeps_gram=self.kind == CORRECTIVE,
            whole=whole)
        self.cache_factor = cache_factor
        self.cache_floor = cache_floor
        self.safeguard = safeguard
        self.total_weight = np.sum(weights)
        self.n_steps = self.n_cache_hits = 0
        self.average = average
        self.average_sum = np.zeros(oracle.n_weights if average else 0)
        self.average_loss = 0.0
        self.second = np.zeros(max(oracle.direction_size, 1))

    # ------------------------------------------------------------------ steps

    cdef double visit(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        """A step on block i, or a correction."""
        if self.kind == CORRECTIVE:
            return self.correct(i, cached)
        return self.step(i, cached)

    cdef double correct(self, Py_ssize_t i, bint cached) except? -1.0 nogil:
        """Correct the dual variables of block i after adding its best labeling.

        If `cached`, correct over the cached labelings without calling the oracle. Returns
        the gap of the block with respect to the labelings that it now has.
        """
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef double* values = self.atoms.values
        cdef double* masses = self.atoms.masses
        cdef double* work = &self.work[0]
        cdef Py_ssize_t c, s
        cdef double p = self.p[i], score, loss, mean = 0.0, best, tol
        cdef double loss_change = 0.0
        cdef bint is_moved = False
        if cached:
            self.oracle.scores_of(
                i, &self.w[0], work, atoms.count, atoms.labels, values)
        else:
            self.oracle.potentials(i, &self.w[0], work)
            self.oracle.evaluate_each(i, work, atoms.count, atoms.labels, values)
        for c in range(atoms.count):
            values[c] += atoms.loss[c]
            mean += atoms.alpha[c] * values[c]
        if cached:
            tol = SHARE_LEFT * self.tree.total() / self.total_weight
        else:
            self.n_steps += 1
            self.n_oracle_calls += 1
            self.oracle.max_oracle(i, 1.0, work, &self.labels[0], &score, &loss)
            best = score + loss
            self.gaps[i] = p * (best - mean)
            self.tree.update(i, self.gaps[i])
            s = self.atoms.find(i, &self.labels[0])
            if s < 0:
                s = self.add_atom(i, &self.labels[0], loss)
                # They may have been reallocated.
                values, masses = self.atoms.values, self.atoms.masses
                values[s] = best
            self.atoms.touch(i, s)
            tol = SHARE_LEFT * (best - mean)
        best = values[0]
        for c in range(1, atoms.count):
            best = max(best, values[c])
        if atoms.count > 1:
            self.atoms.correct(i, p / self.proximal_lam(), max(tol, 0.0))
            for c in range(atoms.count):
                self.atoms.coefs[c] = masses[c] - atoms.alpha[c]
                loss_change += self.atoms.coefs[c] * atoms.loss[c]
                is_moved = is_moved or masses[c] != atoms.alpha[c]
        if is_moved:
            self.oracle.direction(
                i, 0.0, atoms.count, self.atoms.coefs, atoms.labels,
                &self.first[0], NULL)
            # ν_i is left behind: no visit needs it.
            self.is_behind[i] = True
            memcpy(atoms.alpha, masses, atoms.count * sizeof(double))
            self._shift_loss(i, loss_change)
            self._shift_weights(i, 1.0, &self.first[0])
        if not cached and not self.is_part:
            self.forget_idle(i)
        return p * (best - mean)

    cdef int _pairwise_direction(
            self, Py_ssize_t i, Py_ssize_t s, Py_ssize_t away, double* norm
            ) except -1 nogil:
        """Set `second` to the direction from atom `away` to atom `s`."""
        cdef Py_ssize_t c
        cdef double* coefs = self.atoms.coefs
        for c in range(self.atoms.sets[i].count):
            coefs[c] = (c == s) - <double> (c == away)
        return self.oracle.direction(
            i, 0.0, self.atoms.sets[i].count, coefs, self.atoms.sets[i].labels,
            &self.second[0], norm)

    cdef double step(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        """One step on block i (Algorithms 1 to 5 in one), toward its best labeling.

        If `cached`, the step is toward the best cached labeling, without calling the
        oracle. Returns the gap of the block with respect to the labeling chosen.
        """
        cdef Atoms* atoms = NULL
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
        cdef bint hit = False, has_other = False

        self.oracle.potentials(i, &self.w[0], work)
        self.oracle.block_score(i, work, &score)
        mean = self.loss_bar[i] + score

        if self.keeps_atoms:
            atoms = &self.atoms.sets[i]
            best = self.scan(i, work, &value, &away, &away_value, &n_active)
            if self.cache_size > 0:
                threshold = max(self.cache_factor * self.gaps[i],
                                self.cache_floor / self.n_active_blocks * self.gap)
                fw_gain = p * (value - mean)
                # A gain of zero is no hit even if the threshold is zero: otherwise a
                # block's oracle might never be called again.
                hit = fw_gain >= threshold and fw_gain > 0.0
        if cached:
            hit = True
            fw_gain = p * (value - mean)
        if hit:
            s = best
            loss = atoms.loss[s]
            self.atoms.touch(i, s)
            self.n_cache_hits += 1
        else:
            self.oracle.max_oracle(i, 1.0, work, labels, &score, &loss)
            self.n_oracle_calls += 1
            value = score + loss
            fw_gain = p * (value - mean)
            self.gaps[i] = fw_gain
            self.tree.update(i, fw_gain)
            if self.keeps_atoms:
                s = self.atoms.find(i, labels)
                if s < 0:
                    s = self.add_atom(i, labels, loss)
                self.atoms.touch(i, s)
        if self.keeps_atoms:
            s_labels = atoms.labels + s * n_labels

        # Plain steps shrink masses but never to zero. If the worst atom has such dust,
        # its block could never make another step unless the dust is removed.
        # By rounding, the best labeling may be the worst atom: `value` is the oracle's
        # sum, and `away_value` that of `scan`. It cannot give its mass to itself.
        while (n_active > 1 and away != s and atoms.alpha[away] < SUM_ROUNDING
               and value > away_value):
            alpha = atoms.alpha[away]
            self._pairwise_direction(i, s, away, &norm)
            self.oracle.move(i, alpha, &self.second[0])
            self._shift_loss(i, alpha * (loss - atoms.loss[away]))
            self._shift_mass(i, PAIRWISE, alpha, s, away)
            self._shift_weights(i, alpha, &self.second[0])
            away = -1
            n_active = 0
            self.scan(i, work, &score, &away, &away_value, &n_active)

        # With a single active atom, the three kinds of step are the same. So they are if
        # one atom is the best and the worst: all others are as good, up to rounding.
        self.oracle.direction(i, -1.0, 1, &one, s_labels, &self.first[0], &norm)
        fw_progress = line_search(fw_gain, scale * norm, 1.0, &fw_gamma)
        progress = fw_progress
        gamma = fw_gamma
        loss_change = loss - self.loss_bar[i]
        if n_active > 1 and away != s:
            alpha = atoms.alpha[away]
            if self.kind == PAIRWISE:
                has_other = True
                gain = p * (value - away_value)
                self._pairwise_direction(i, s, away, &norm)
                progress = line_search(gain, scale * norm, alpha, &gamma)
            else:
                gain = p * (mean - away_value)
                # Algorithm 4 takes the away step only if it is steeper. From an atom of
                # more than half the mass it never is: the best value is at least the mean
                # of the others. Near the optimum, rounding can make it seem steeper; the
                # step is then as long as 1 / (1 - alpha), and so is the rounding error.
                progress = 0.0
                has_other = gain >= fw_gain and alpha <= 0.5
                if has_other:
                    self.oracle.direction(
                        i, 1.0, 1, &minus, atoms.labels + away * n_labels,
                        &self.second[0], &norm)
                    progress = line_search(
                        gain, scale * norm, alpha / (1.0 - alpha), &gamma)
            # The safeguard of the paper's appendix G: take the plain step if it gets
            # further, to inherit its convergence guarantee.
            if progress > fw_progress or (has_other and not self.safeguard):
                taken = self.kind
                chosen = &self.second[0]
                if taken == PAIRWISE:
                    loss_change = loss - atoms.loss[away]
                else:
                    loss_change = self.loss_bar[i] - atoms.loss[away]
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
        if self.keeps_atoms:
            if not cached and not self.is_part:
                self.tidy(i)
        else:
            self.let_go(i, labels)
        return fw_gain

    cdef void _shift_loss(self, Py_ssize_t i, double change) noexcept nogil:
        self.loss_bar[i] += change
        self.loss_change += self.p[i] * change
        self.average_loss += self._average_weight() * self.p[i] * change

    cdef double _average_weight(self) noexcept nogil:
        """k (k - 1) / 2: the weight of step k in Σ_t t w_t (DESIGN, section 4)."""
        return 0.5 * <double> self.n_steps * (<double> self.n_steps - 1.0)

    cdef int _shift_weights(
            self, Py_ssize_t i, double gamma, const double* direction
            ) except -1 nogil:
        """v and w after a move by gamma along a direction."""
        cdef double coef = -gamma * self.p[i]
        self.oracle.scatter(i, coef / self.proximal_lam(), direction, &self.v[0])
        if self.is_part and self.pages.shape[0] <= FEW_PAGES:
            memset(&self.pages[0], 1, self.pages.shape[0])
        elif self.is_part:
            self.oracle.mark(i, direction, &self.pages[0])
        if self.average:
            self.oracle.scatter(i, coef / self.lam * self._average_weight(), direction,
                                &self.average_sum[0])
        return self.map_block(i, direction)

    cdef void _shift_mass(
            self, Py_ssize_t i, int taken, double gamma, Py_ssize_t s,
            Py_ssize_t away) noexcept nogil:
        """The dual variables α_i after a step."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        cdef bint dropped
        if taken == PAIRWISE:
            # gamma = α is a drop step: the difference is exactly zero.
            atoms.alpha[away] -= gamma
            atoms.alpha[s] += gamma
        elif taken == AWAY:
            # A drop step has gamma = α / (1 - α), where rounding may leave dust.
            dropped = gamma >= atoms.alpha[away] / (1.0 - atoms.alpha[away])
            for c in range(atoms.count):
                atoms.alpha[c] *= 1.0 + gamma
            atoms.alpha[away] -= gamma
            if dropped or atoms.alpha[away] < 0.0:
                atoms.alpha[away] = 0.0
        else:
            for c in range(atoms.count):
                atoms.alpha[c] *= 1.0 - gamma
            atoms.alpha[s] += gamma

    def run_batch(self):
        """One step of batch Frank-Wolfe (Algorithm 8); returns its gap."""
        cdef BlockOracle oracle = self.oracle
        cdef Py_ssize_t i, n = oracle.n_blocks
        cdef const Py_ssize_t[::1] starts = np.concatenate(
            [[0], np.cumsum([oracle.n_labels(i) for i in range(n)])]).astype(np.intp)
        cdef int[::1] labels = np.zeros(max(starts[n], 1), dtype=np.intc)
        cdef double[::1] losses = np.zeros(n), total = np.zeros(oracle.n_weights)
        cdef double score, norm, gap = 0.0, gamma, one = 1.0
        self.catch_up_all()
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
            self._map()
        for i in range(n):
            if self.p[i] > 0.0:
                self.let_go(i, &labels[starts[i]])
        return gap

    def jump_to_oracle(self):
        """Move all mass of each block to its max-oracle's answer at w = 0."""
        cdef Py_ssize_t i, c
        cdef double score, loss, one = 1.0
        cdef double[::1] zero = np.zeros(self.oracle.n_weights)
        self.catch_up_all()
        self.oracle.scale_blocks(0.0)
        for i in range(self.oracle.n_blocks):
            if self.p[i] == 0.0:
                self.keep_share(i, 0.0)
                continue
            self.oracle.potentials(i, &zero[0], &self.work[0])
            self.oracle.max_oracle(i, 1.0, &self.work[0], &self.labels[0],
                                   &score, &loss)
            self.oracle.direction(i, 0.0, 1, &one, &self.labels[0], &self.first[0], NULL)
            self.oracle.move(i, 1.0, &self.first[0])
            self.loss_bar[i] = loss
            if self.keeps_atoms:
                c = self.atoms.find(i, &self.labels[0])
                if c < 0:
                    c = self.add_atom(i, &self.labels[0], loss)
                if self.keeps_mass:
                    self._shift_mass(i, FRANK_WOLFE, 1.0, c, c)
                self.tidy(i)
            else:
                self.let_go(i, &self.labels[0])
        self.n_oracle_calls += self.n_active_blocks

    # ------------------------------------------------------------------ parts

    def become_part(self):
        """Become a part of an iterate that is kept elsewhere."""
        self.is_part = True
        n_pages = (self.oracle.n_weights + PAGE - 1) // PAGE
        self.pages = np.zeros(n_pages, dtype=np.uint8)

    def part(self, weights):
        """The part of the iterate made of the blocks with nonzero `weights`."""
        return BlockFrankWolfe(
            self.oracle, weights, self.lam, step=self.step_name,
            cache_size=self.cache_size, cache_factor=self.cache_factor,
            cache_floor=self.cache_floor, safeguard=self.safeguard,
            lower=self.lower if self.has_box else None,
            upper=self.upper if self.has_box else None, l1_ratio=self.l1_ratio,
            whole=self)

    def begin_pass_of(self, BlockFrankWolfe part):
        """Pass the latest gaps on to a part."""
        part.gap = self.gap
        part.atoms.clock = self.atoms.clock
        part.planes = self.planes
        part.atoms.reserve(self.atoms.most)
        part.tree.rebuild(np.where(np.asarray(part.p) > 0.0, self.gaps, 0.0))

    def end_pass_of(self, BlockFrankWolfe part):
        """Add the counts of a part."""
        self.n_steps += part.n_steps
        self.n_oracle_calls += part.n_oracle_calls
        self.n_cache_hits += part.n_cache_hits
        part.forget_counts()
        self.atoms.clock = max(self.atoms.clock, part.atoms.clock)
        self.atoms.reserve(part.atoms.most)
        self.tree.rebuild(self.gaps)

    def forget_counts(self):
        """Count steps and calls from zero again."""
        self.n_steps = self.n_oracle_calls = self.n_cache_hits = 0

    @property
    def can_be_parted(self):
        """Whether several threads may move it at once."""
        return self.oracle.thread_safe and self.keeps_mass and not self.average

    @property
    def is_corrective(self):
        """Whether its moves are corrections."""
        return self.kind == CORRECTIVE

    def average_point(self):
        """(Aα, Σ p_i ℓ_i) of the weighted average of the iterates."""
        if self.n_steps == 0:
            return self.dual_point()
        share = 2.0 / (<double> self.n_steps * (<double> self.n_steps + 1.0))
        return (self.dual_image() - share * np.asarray(self.average_sum),
                self.loss - share * self.average_loss)
