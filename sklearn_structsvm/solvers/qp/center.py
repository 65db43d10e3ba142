"""The best point so far, beside which the next plane below a risk is taken."""

import numpy as np

# A plane is taken at least this share of the way from the best point to the minimizer of
# the planes. It is the value of OCAS.
AHEAD = 0.1


class Center:
    """The best point W so far, and a step from it toward other points.

    The step is damped: it is doubled if it improved W, and halved otherwise. A plane at W
    + s (w - W) that does not cut off the planes' minimizer w shows that the objective
    falls from W on, at least as steeply as toward the dual value. So either W or w moves.

    `best` (d,): W. `objective`: its objective, which is inf before it is known. `step`:
    s, from `AHEAD` to 1.
    """

    def start(self, weights, step=1.0):
        """Take these weights for the best ones so far."""
        self.best, self.objective, self.step = weights.copy(), np.inf, step

    def toward(self, target):
        """The point a step ahead."""
        return self.best + self.step * (target - self.best)

    def note(self, point, objective):
        """Use the objective at a point, which is copied if it is the best one."""
        if objective < self.objective:
            self.best, self.objective = point.copy(), objective
            self.step = min(1.0, 2.0 * self.step)
        else:
            self.step = max(AHEAD, 0.5 * self.step)
