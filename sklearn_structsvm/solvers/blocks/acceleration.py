"""Rules for the acceleration of block steps: when, and by how much; see `_proximal`."""

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME

# The pace of plain steps is examined after this many passes, and after each later one.
FIRST_LOOK = 2

# Acceleration pays if plain steps are expected to need this many more passes. Where few
# passes are needed, it takes up to five times as many.
WORTH_IT = 12

# It also requires that their number falls to no less than this share in a pass. On text
# it falls faster at first, while plain steps find the examples that count.
STEADY = 0.65

# λ' / λ. The larger it is, the easier each proximal problem is, and the more of them
# there are. Exact steps solve one so well in two passes that the ratio may grow with the
# root of F, the number of passes that plain steps would take. On letters the best ratios
# are √(10 F), from 10 to 100, for F from 12 to 930. On chains they are 10 to 15 for any
# λ, and 30 stalls.
RATIO = 10.0
LARGEST_RATIO_OF_EXACT_STEPS = 100.0

# The harder a proximal problem is, the shorter are steps on marginals. If γ is the length
# of the next step on a block, 1 / γ - 1 is in proportion to 1 / λ'. Let m be its mean
# after FIRST_LOOK passes. On letters, chunks and digits, with C from 0.005 to 500, the
# best ratios were 2 to 3 for m up to 0.1, 3 to 5 for 0.25, 5 to 10 for 0.6 to 0.9, and
# then 10 or more.
LEAST_RATIO_OF_MARGINALS = 2.0

# If the gap has not fallen to this share in as many moves of the center, the proximal
# problems were not solved well enough for a center that is so far away. The ratio is then
# RATIO again, or takes twice the passes for a move.
PROGRESS = 0.9
MAX_WAITED = 12

# With an L1 penalty: the best step is 1 / (1 + r), with r in proportion to 1 / λ'. Two
# passes solve a proximal problem well enough if the median r is this. On letters and on
# text it was 3 to 8 at the best λ', for all penalties.
STEPS_SHORTENED = 4.0

# They are examined after FIRST_LOOK passes, and each later time after twice as many. The
# first look only asks whether steps are too short, since the first steps are longer than
# later ones. λ' changes by a factor of at most RATIO.

# Momentum ends when the gap rises by more than this factor between two moves. 1 ends it
# too often if the weights have far to go, and 2 too late on letters. Without the rule a
# last point is farther from the best one, where a warm start begins.
MAY_RISE = 1.3


class Acceleration:
    """Moves the center of an iterate between passes, once that pays.

    A move is decided after a pass and made before the next one: it draws the weights
    along, for which the gap is two to three times as large until the blocks follow.
    Nothing here reads a clock: the same passes are always followed by the same moves.

    `iterate` (BlockFrankWolfe or ExactAscent). `tol`: the desired duality gap.
    `passes_per_step`: passes between two moves of the center, at first.
    `largest_ratio`: upper bound of λ' / λ. `at_once`: whether to begin without first
    measuring how fast plain steps are.
    """

    def __init__(
        self, iterate, tol, *, passes_per_step=2, largest_ratio=RATIO, at_once=False
    ):
        self.iterate, self.tol = iterate, tol
        self.passes_per_step, self.largest_ratio = passes_per_step, largest_ratio
        self.n_passes = self.n_since_step = self.n_waited = 0
        self.foreseen = np.inf
        self.least_gap = self.gap_of_momentum = np.inf
        # The β of the next move of the center, if it has been decided.
        self.momentum = None
        self.first_dual = iterate.dual_objective
        if at_once and iterate.kappa == 0.0:
            self.start()

    def before_pass(self):
        """To be called before each pass: makes the move that has been decided."""
        if self.momentum is not None:
            self.iterate.extrapolate(self.momentum)
            self.momentum = None

    def after_pass(self):
        """To be called after each pass."""
        self.n_passes += 1
        if self.iterate.kappa == 0.0:
            before, self.foreseen = self.foreseen, self.foreseen_passes()
            is_steady = self.n_passes >= FIRST_LOOK and self.foreseen >= STEADY * before
            if is_steady and self.foreseen >= WORTH_IT:
                self.start()
            return
        self.n_since_step += 1
        if self.n_since_step >= self.passes_per_step:
            self.n_since_step = 0
            self._choose_momentum()
            self._guard()

    def _choose_momentum(self):
        """Extrapolate, or return to w if momentum has made the gap rise."""
        q = self.iterate.lam / (self.iterate.lam + self.iterate.kappa)
        gap = self.iterate.estimated_gap
        if gap > self.gap_of_momentum:
            self.gap_of_momentum = np.inf
            self.momentum = 0.0
            return
        self.gap_of_momentum = gap
        self.momentum = (1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q))

    def foreseen_passes(self):
        """How many more passes plain steps are expected to take for `tol`.

        The dual objective first grows steadily. From then on, the distance to its maximum
        shrinks by a constant factor in as many passes as that growth would have taken to
        reach the maximum.
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
        """Resume after the moves of another method."""
        self.momentum = None
        self.least_gap = self.gap_of_momentum = np.inf
        self.n_waited = 0
        self.start()

    def _guard(self):
        """Move the center nearer, or make more passes, if the gap stands still."""
        gap = self.iterate.estimated_gap
        if gap <= PROGRESS * self.least_gap:
            self.least_gap, self.n_waited = gap, 0
            return
        self.n_waited += 1
        if self.n_waited < MAX_WAITED:
            return
        self.least_gap, self.n_waited = gap, 0
        kappa = (RATIO - 1.0) * self.iterate.lam
        if self.iterate.kappa > (1.0 + SAME) * kappa:
            self.before_pass()
            self.iterate.set_kappa(kappa)
        else:
            self.passes_per_step *= 2


class MarginalAcceleration(Acceleration):
    """The same for a `MarginalAscent`, whose steps show how far the center may be."""

    def __init__(self, iterate, tol, **options):
        self.shortened = np.inf
        super().__init__(iterate, tol, **options)

    def after_pass(self):
        """To be called after each pass."""
        if self.n_passes + 1 == FIRST_LOOK:
            lengths = self.iterate.step_lengths[self.iterate.active_blocks]
            self.shortened = np.mean(1.0 / lengths - 1.0)
        super().after_pass()

    def start(self):
        """Take the weights for the first center."""
        ratio = min(LEAST_RATIO_OF_MARGINALS + RATIO * self.shortened, RATIO)
        self.iterate.set_kappa((ratio - 1.0) * self.iterate.lam)


class SparseAcceleration:
    """Moves the center of an iterate that has an L1 penalty, from the first pass on.

    Momentum grows as in Nesterov's method for convex functions, until the gap rises or
    the limit that the squares in the penalty set is reached. Without squares, each weight
    has its own momentum, which restarts when the weight turns back: the weights of rare
    features move slowly for a long time, and would lose their momentum with all others.
    The lengths of the steps determine λ', whatever the scale of the features.

    `iterate` (MarginalAscent or BlockFrankWolfe). `passes_per_step`: passes between two
    moves of the center. `looks_at_steps`: whether the lengths of the steps, which must
    be known, determine λ'. If not, it is RATIO times as large as without a center.

    Attributes: `foreseen` (None): passes are not foreseen.
    """

    foreseen = None

    def __init__(self, iterate, passes_per_step=2, looks_at_steps=True):
        self.iterate, self.passes_per_step = iterate, passes_per_step
        self.n_passes, self.t = 0, 1.0
        self.next_look = FIRST_LOOK if looks_at_steps else 0
        self.gap_of_momentum = np.inf
        self.ridge = (1.0 - iterate.l1_ratio) * iterate.lam
        self.t_of_weights = None
        if self.ridge == 0.0:
            self.t_of_weights = np.ones(len(iterate.weights))
        self._set_kappa(iterate.kappa)

    def before_pass(self):
        """Do nothing: the center has moved."""

    def resume(self):
        """Continue after other moves, with w for the center and without momentum."""
        self.t, self.gap_of_momentum = 1.0, np.inf
        self._set_kappa(self.iterate.kappa)

    def after_pass(self):
        """To be called after each pass."""
        self.n_passes += 1
        if self.n_passes == self.next_look:
            is_first = self.n_passes == FIRST_LOOK
            self._look_at_steps(1.0 if is_first else 1.0 / RATIO)
            self.next_look *= 2
        if self.n_passes % self.passes_per_step == 0:
            self._move_center()

    def _look_at_steps(self, least):
        iterate = self.iterate
        lengths = iterate.step_lengths[iterate.active_blocks]
        shortened = np.median(1.0 / lengths - 1.0)
        factor = np.clip(shortened / STEPS_SHORTENED, least, RATIO)
        self._set_kappa(factor * (self.ridge + iterate.kappa) - self.ridge)

    def _set_kappa(self, kappa):
        self.iterate.set_kappa(max(kappa, (RATIO - 1.0) * self.ridge))

    def _move_center(self):
        """Extrapolate, or return to w if momentum has made the gap rise."""
        iterate, before = self.iterate, self.t
        if self.t_of_weights is not None:
            iterate.extrapolate_each(self.t_of_weights)
            return
        q = self.ridge / (self.ridge + iterate.kappa)
        most = (1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q))
        self.t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * before**2))
        momentum = min(most, (before - 1.0) / self.t)
        gap = iterate.estimated_gap
        if gap > MAY_RISE * self.gap_of_momentum:
            momentum, self.t, gap = 0.0, 1.0, np.inf
        self.gap_of_momentum = gap
        iterate.extrapolate(momentum)
