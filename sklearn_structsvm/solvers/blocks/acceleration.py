"""Rules for the acceleration of block steps: when, and by how much; see `_proximal`."""

import numpy as np

# Whether it pays is judged after this many passes, and after each later one.
FIRST_LOOK = 2

# If plain steps are expected to need this many passes more, acceleration pays. It
# costs those who need few of them up to five times as many.
WORTH_IT = 12

# And their number falls by less than to this share in a pass. On text it falls faster at
# first: plain steps identify there what counts.
STEADY = 0.65

# λ' / λ. The larger, the easier each proximal problem, and the more there are. Exact
# steps solve one so well in two passes that it may grow with the root of the passes F
# that plain ones would take: of letter data the best ratios are √(10 F), from 10 to 100,
# at F from 12 to 930. Of chains they are 10 to 15 at any λ, and 30 stalls.
RATIO = 10.0
LARGEST_RATIO_OF_EXACT_STEPS = 100.0

# If the gap has not fallen to this share in as many moves of the center, the proximal
# problems were not solved well enough for so far a center.
PROGRESS = 0.9
MAX_WAITED = 12

# Of the ratio that is then left, until it is RATIO again, but for rounding.
LOWERED = 0.3
ROUNDED = 1.0 + 1e-9

# After this many accelerated passes, and after each later one until the gap is SETTLED
# of what it was, it must be where F plain passes would have brought it, or √(EXPECTED F)
# if that is fewer. On text it is not: rows there have little in common, and plain
# steps soon find all but the last of the dual solution. Elsewhere its logarithm has
# fallen by one and a half times as much, up to ten. What comes later is no measure:
# plain passes then bring less than was foreseen as well.
TRIAL = 6
EXPECTED = 40.0
SETTLED = 0.003

# A trial that is lost after the gap has fallen to this share shows that acceleration
# pays, with a nearer center: of the scene data the ratio is 36 at first, and 10 is best.
WON = 0.1

# With an L1 penalty: a best step is 1 / (1 + r) with r in proportion to 1 / λ', and a
# median r of this is what two passes solve well enough. Of letters and of text it was
# 3 to 8 at the best λ', whatever the penalties were.
STEPS_SHORTENED = 4.0

# Passes after which it is looked at, and each time twice as many: first only whether
# steps are too short, as the first ones are longer than later ones. λ' changes by a
# factor of at most MOST_CHANGED.
FIRST_LOOK_AT_STEPS = 3
MOST_CHANGED = 10.0

# Momentum ends when the gap rises by more than this factor between two moves. With 1 it
# ends too often where weights have far to go, and with 2 too late for letters.
MAY_RISE = 1.3


class Acceleration:
    """Moves the center of an iterate between passes, once it is worth it.

    Nothing here reads a clock: the same passes are always followed by the same moves.

    Parameters
    ----------
    iterate : BlockFrankWolfe or ExactAscent
    tol : float
        The duality gap that is wanted.
    passes_per_step : int
        Passes between two moves of the center, at first.
    largest_ratio : float
        Of λ' / λ.
    on_trial : bool
        Whether plain steps are made again if these bring less than was expected. For
        exact steps: what is foreseen of others is too little, as in their first passes
        labelings are found that they then go on with.
    at_once : bool
        Whether to begin without a look at how fast plain steps are.
    """

    def __init__(
        self,
        iterate,
        tol,
        *,
        passes_per_step=2,
        largest_ratio=RATIO,
        on_trial=False,
        at_once=False,
    ):
        self.iterate, self.tol = iterate, tol
        self.passes_per_step, self.largest_ratio = passes_per_step, largest_ratio
        self.n_passes = self.n_since_step = self.n_waited = 0
        self.foreseen = np.inf
        self.least_gap = self.gap_of_momentum = np.inf
        self.first_dual = iterate.dual_objective
        # What the trial began with: passes, gap and passes foreseen; and if it was lost.
        self.on_trial, self.trial, self.is_lost = on_trial, None, False
        if at_once and iterate.kappa == 0.0:
            self.start()

    def after_pass(self):
        """To be called after each pass."""
        self.n_passes += 1
        if self.is_lost:
            return
        if self.iterate.kappa == 0.0:
            before, self.foreseen = self.foreseen, self.foreseen_passes()
            is_steady = self.n_passes >= FIRST_LOOK and self.foreseen >= STEADY * before
            if is_steady and self.foreseen >= WORTH_IT:
                self.start()
                if self.on_trial and np.isfinite(self.foreseen):
                    gap = self.iterate.estimated_gap
                    self.trial = (self.n_passes, gap, self.foreseen)
            return
        if self.trial is not None and self._loses() and not self._tries_nearer():
            self.is_lost = True
            self.iterate.set_kappa(0.0)
            return
        self.n_since_step += 1
        if self.n_since_step >= self.passes_per_step:
            self.n_since_step = 0
            self._move_center()
            self._guard()

    def _move_center(self):
        """Extrapolate; but only to w if the gap has risen, which momentum causes."""
        q = self.iterate.lam / (self.iterate.lam + self.iterate.kappa)
        gap = self.iterate.estimated_gap
        if gap > self.gap_of_momentum:
            self.gap_of_momentum = np.inf
            self.iterate.extrapolate(0.0)
            return
        self.gap_of_momentum = gap
        self.iterate.extrapolate((1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q)))

    def foreseen_passes(self):
        """How many more passes plain steps are expected to take for `tol`.

        The dual objective first grows steadily, and what it lacks then falls by a factor
        in as many passes as it would have taken to arrive at that pace. After two or
        three passes over the data of the benchmarks, at eight pairs of a set and λ that
        were looked at, this was within a factor of three of the passes then needed.
        """
        gap = self.iterate.estimated_gap
        if gap <= self.tol:
            return 0.0
        made = self.iterate.dual_objective - self.first_dual
        if made <= 0.0 or self.tol <= 0.0:
            return np.inf
        pace = self.n_passes * (made + gap) / made
        return 0.5 * pace * np.log(gap / self.tol)

    def start(self):
        """Take the weights for the first center."""
        foreseen = self.foreseen if self.n_passes else 0.0
        ratio = np.clip(np.sqrt(RATIO * foreseen), RATIO, self.largest_ratio)
        self.iterate.set_kappa((ratio - 1.0) * self.iterate.lam)

    def resume(self):
        """Go on after other moves, for good."""
        self.trial = None
        self.least_gap = self.gap_of_momentum = np.inf
        self.n_waited = 0
        self.start()

    def _loses(self):
        """Whether the gap has fallen by less than was expected."""
        start, at_start, foreseen = self.trial
        gap, made = self.iterate.estimated_gap, self.n_passes - start
        if gap <= SETTLED * at_start:
            self.trial = None
            return False
        expected = min(foreseen, np.sqrt(EXPECTED * foreseen))
        due = at_start * (self.tol / at_start) ** (made / expected)
        return made >= TRIAL and gap > due

    def _tries_nearer(self):
        """Begin another trial with a nearer center, if the gap has fallen by much."""
        if self.iterate.estimated_gap > WON * self.trial[1] or not self._draw_nearer():
            return False
        self.trial = (self.n_passes, self.iterate.estimated_gap, self.trial[2])
        self.least_gap, self.n_waited = np.inf, 0
        return True

    def _draw_nearer(self):
        """Lower λ' / λ; False if it is RATIO already."""
        ratio = 1.0 + self.iterate.kappa / self.iterate.lam
        if ratio <= ROUNDED * RATIO:
            return False
        ratio = max(LOWERED * ratio, RATIO)
        self.iterate.set_kappa((ratio - 1.0) * self.iterate.lam)
        return True

    def _guard(self):
        """Draw the center nearer, or solve its problem better, if the gap stands."""
        gap = self.iterate.estimated_gap
        if gap <= PROGRESS * self.least_gap:
            self.least_gap, self.n_waited = gap, 0
            return
        self.n_waited += 1
        if self.n_waited < MAX_WAITED:
            return
        self.least_gap, self.n_waited = gap, 0
        if not self._draw_nearer():
            self.passes_per_step *= 2


class SparseAcceleration:
    """Moves the center of an iterate that has an L1 penalty, from the first pass on.

    Momentum grows as in Nesterov's method for convex functions, until the gap rises, or
    as far as the squares in the penalty allow. λ' is chosen by the lengths of the steps,
    so that no scale of the features matters.

    Parameters
    ----------
    iterate : MarginalAscent or BlockFrankWolfe
    passes_per_step : int
        Passes between two moves of the center.
    looks_at_steps : bool
        Whether λ' is chosen by the lengths of steps, which must be known; else it is
        RATIO times as large as without a center.
    """

    def __init__(self, iterate, passes_per_step=2, looks_at_steps=True):
        self.iterate, self.passes_per_step = iterate, passes_per_step
        self.n_passes, self.t = 0, 1.0
        self.next_look = FIRST_LOOK_AT_STEPS if looks_at_steps else 0
        self.gap_of_momentum = np.inf
        self.ridge = (1.0 - iterate.l1_ratio) * iterate.lam
        self._set_kappa(iterate.kappa)

    def after_pass(self):
        """To be called after each pass."""
        self.n_passes += 1
        if self.n_passes == self.next_look:
            is_first = self.n_passes == FIRST_LOOK_AT_STEPS
            self._look_at_steps(1.0 if is_first else 1.0 / MOST_CHANGED)
            self.next_look *= 2
        if self.n_passes % self.passes_per_step == 0:
            self._move_center()

    def _look_at_steps(self, least):
        iterate = self.iterate
        lengths = iterate.step_lengths[iterate.active_blocks]
        shortened = np.median(1.0 / lengths - 1.0)
        factor = np.clip(shortened / STEPS_SHORTENED, least, MOST_CHANGED)
        self._set_kappa(factor * (self.ridge + iterate.kappa) - self.ridge)

    def _set_kappa(self, kappa):
        self.iterate.set_kappa(max(kappa, (RATIO - 1.0) * self.ridge))

    def _move_center(self):
        """Extrapolate; but only to w if the gap has risen, which momentum causes."""
        iterate, before = self.iterate, self.t
        q = self.ridge / (self.ridge + iterate.kappa)
        most = (1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q))
        self.t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * before**2))
        momentum = min(most, (before - 1.0) / self.t)
        gap = iterate.estimated_gap
        if gap > MAY_RISE * self.gap_of_momentum:
            momentum, self.t, gap = 0.0, 1.0, np.inf
        self.gap_of_momentum = gap
        iterate.extrapolate(momentum)
