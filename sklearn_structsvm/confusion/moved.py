"""Constraints whose conditions are stricter or looser by numbers."""

import numpy as np

from sklearn_structsvm._utils.conditions import Conditions
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.fairness import GroupParity


def moved(constraint, by, of_rates=True):
    """`Moved`, also for predictive parity, all of whose precisions have one slack."""
    if not constraint.has_levels:
        return Moved(constraint, by, of_rates)
    by = max(np.ravel(by).tolist(), key=abs, default=0.0)
    if constraint.bound == "difference":
        change = {"slack": max(constraint.slack - by, 0.0)}
    else:
        change = {"ratio": float(np.clip(constraint.ratio + by, 0.0, 1.0))}
    return type(constraint)(**constraint.get_params(deep=False) | change)


def spare_of(constraint):
    """The most by which tightening the conditions of a constraint makes sense.

    The differences of two groups' rates have a slack, and cannot be below 0.
    """
    is_parity = isinstance(constraint, GroupParity) or constraint.has_levels
    is_difference = is_parity and constraint.bound == "difference"
    return float(constraint.slack) if is_difference else np.inf


class Moved(Constraint):
    """A constraint that is stricter by numbers, or looser where they are negative.

    A condition (<G, C> + h) / <D, C> <= 0 is on a rate. If `of_rates`, the rate's bound
    moves by a number b, by a margin or a standard error: <G + b D, C> + h <= 0. Otherwise
    the numerator moves, by what it is off on other examples, or by a solver's excess:
    <G, C> + h + b <= 0. Without a denominator both are the same; on ratios the latter
    moves the rate by b / <D, C>, which is more. A convex function and a mean
    cost move by b. No condition is stricter than `spare_of` the constraint allows.

    `constraint`: without levels. `by` (float or (p,)): one number for all conditions,
    or one for each. If `of_rates`, these may be those in halves (see `Conditions`) or
    those of `linear`, otherwise they are the latter.
    """

    def __init__(self, constraint, by, of_rates=True):
        self.constraint, self.of_rates = constraint, of_rates
        self.by = np.minimum(np.ravel(by), spare_of(constraint))
        self.has_convex = constraint.has_convex
        self.needs_costs = constraint.needs_costs

    def linear(self, cells):
        G, h = self.constraint.linear(cells)
        by = self.by
        if len(by) not in (1, len(h)):
            # Of a part of the sample, or by probabilities, other groups have rates.
            by = by.max(initial=0.0)
        return self._added(G, h, self.denominators(cells), by + np.zeros(len(h)))

    def denominators(self, cells):
        return self.constraint.denominators(cells)

    def _conditions(self, cells):
        G, h, D, halves = self.constraint._conditions(cells)
        if len(self.by) == 1:
            # Once for both halves.
            by = np.where(halves < 0, 0.0, self.by)
        elif self.of_rates and len(self.by) == len(h):
            # No more than the slack together.
            most = np.where(halves != 0, 0.5 * spare_of(self.constraint), np.inf)
            by = np.minimum(self.by, most)
        else:
            return super()._conditions(cells)
        return Conditions(*self._added(G, h, D, by), D, halves)

    def _added(self, G, h, D, by):
        if D is None or not self.of_rates:
            return G, h + by
        return G + by[:, None, None, None] * D, h

    def measured_cost(self, cost):
        return self.constraint.measured_cost(cost) + self.by.max()

    def convex_value(self, C, cells):
        return self.constraint.convex_value(C, cells) + self.by.max()

    def convex_gradient(self, C, cells):
        return self.constraint.convex_gradient(C, cells)

    def convex_tangent(self, C, cells):
        G, h = self.constraint.convex_tangent(C, cells)
        return G, h + self.by.max()
