"""Line-search bundle steps that stay near the best point found so far."""

import numpy as np

from sklearn_structsvm.solvers._simplex_qp import SimplexQP
from sklearn_structsvm.solvers.bundle import Bundle

# Where between the best point and the proposal the next plane is taken, as in OCAS.
CUT_AT = 0.1

# The weight c of the proximal term follows the line search: its steps towards proposals
# are to be this long. Much shorter ones say that the model is not to be trusted so far
# out; longer ones that it can be trusted further. Steps of 0.02 to 0.1 took the fewest
# iterations on a9a and letter; with c = 0, steps of 0.01 and below are common.
SHORT_STEP = 0.02
LONG_STEP = 0.1
FIRST_WEIGHT = 10.0
WEIGHT_FACTOR = 2.0
MAX_WEIGHT = 1e4
MIN_WEIGHT = 1e-2

# Planes without mass for so many solutions are dropped; the program near the centre is
# set up anew for each proposal, so that planes cost more here than in a plain bundle.
MAX_IDLE = 30


class StabilizedBundle(Bundle):
    """A bundle that also proposes points near a centre u.

        v = argmin_v λ/2 ||v||² + max_j ⟨a_j, v⟩ + b_j + c λ/2 ||v - u||²

    Its dual is the bundle's own with the offsets (1 + c) b_j + c ⟨a_j, u⟩, and
    v = (c u - Aᵀα / λ) / (1 + c). The lower bound is still that of the bundle itself.

    Parameters
    ----------
    n_weights : int
    lam : float

    Examples
    --------
    Below |w - 1| with λ = 1 lies the minimiser 1; a heavy centre 0 holds it back:

    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.stabilized import StabilizedBundle
    >>> bundle = StabilizedBundle(1, 1.0)
    >>> bundle.add(np.array([1.0]), -1.0)
    >>> bundle.add(np.array([-1.0]), 1.0)
    >>> bundle.solve()
    >>> bundle.dual_objective, bundle.propose(np.zeros(1), 3.0).tolist()
    (0.5, [0.25])
    """

    def __init__(self, n_weights, lam, **options):
        options.setdefault("max_idle", MAX_IDLE)
        super().__init__(n_weights, lam, **options)
        self.qp = _RecordedProgram()

    def propose(self, center, weight, heights=None):
        """The point v.

        Parameters
        ----------
        center : ndarray of shape (d,)
            u.
        weight : float
            c >= 0.
        heights : ndarray of shape (m,) or None
            ⟨a_j, u⟩, where the caller knows them.

        Returns
        -------
        ndarray of shape (d,)
        """
        heights = self.planes @ center if heights is None else heights
        alpha = self.qp.solve_with((1.0 + weight) * self.offsets + weight * heights)
        active = np.flatnonzero(alpha)
        pull = alpha[active] @ self.planes[active] / self.lam
        return (weight * center - pull) / (1.0 + weight)


class _RecordedProgram:
    """A `SimplexQP` whose Gram matrix can be used again with other offsets."""

    def __init__(self):
        self.program = SimplexQP()
        self.gram = np.empty((0, 0))
        self.size = 0

    @property
    def idle(self):
        return self.program.idle

    def add_row(self, gram_row, b):
        self.program.add_row(gram_row, b)
        m = self.size
        if m == len(self.gram):
            grown = np.empty((max(16, 2 * m), max(16, 2 * m)))
            grown[:m, :m] = self.gram[:m, :m]
            self.gram = grown
        self.gram[m, : m + 1] = gram_row
        self.size = m + 1

    def remove(self, indices):
        self.program.remove(indices)
        keep = np.setdiff1d(np.arange(self.size), indices)
        self.size = len(keep)
        # Rows hold what is left of the diagonal, which is all that is read.
        self.gram[: self.size, : self.size] = self.gram[np.ix_(keep, keep)]

    def solve(self):
        return self.program.solve()

    def solve_with(self, offsets):
        program = SimplexQP(self.size)
        for j in range(self.size):
            program.add_row(self.gram[j, : j + 1], offsets[j])
        return program.solve()[0]


class StabilizedSteps:
    """Steps from the best point towards proposals, each of which adds a plane.

    Parameters
    ----------
    objective : RegularizedRisk
        Moved in place.
    bundle : StabilizedBundle
        Solved.
    """

    def __init__(self, objective, bundle):
        self.objective = objective
        self.bundle = bundle
        self.weight = FIRST_WEIGHT

    def move(self):
        """One step: a product X W, a line search, a plane."""
        objective = self.objective
        target = self.bundle.propose(objective.weights, self.weight)
        step = objective.move_towards(target)
        plane, offset = objective.cut(CUT_AT * (1.0 - step))
        self.bundle.add(plane, offset)
        self.bundle.solve()
        if step < SHORT_STEP:
            self.weight = min(WEIGHT_FACTOR * self.weight, MAX_WEIGHT)
        elif step > LONG_STEP:
            self.weight = max(self.weight / WEIGHT_FACTOR, MIN_WEIGHT)
