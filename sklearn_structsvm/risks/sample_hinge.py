"""Shared by hinges of the whole sample: planes of labelings, counts and orders."""

import numpy as np

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.tolerances import SAME, SUM_ROUNDING
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.risks.plane_search import PlaneSearch

# A row that represents more rows than this is rejected, because each needs memory.
MAX_UNITS = 2**28


class SampleHinge(Risk):
    """Base of the losses of the whole sample, for two classes and one score per row.

    A subclass finds the most violating labeling in `_plane`.

    `X`, `sample_weight`, `bias` as for `Risk`. `y` (n_samples,): encoded labels: 1 is
    the positive class, 0 the negative one. Both need positive weight. `n_threads`: of
    the products with X.
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, 1, sample_weight, bias=bias, n_threads=n_threads)
        self.truth = check_codes(y, self.n_samples, 2)
        used = self.weights > 0.0
        self.positives = np.flatnonzero(used & (self.truth == 1))
        self.negatives = np.flatnonzero(used & (self.truth == 0))
        for code, rows in ((1, self.positives), (0, self.negatives)):
            if len(rows) == 0:
                raise ValueError(
                    "A multivariate loss needs rows of both classes with positive "
                    f"weight; y has none of class {code}."
                )

    def _plane(self, z, along, rtol, B):
        """Fill the n entries of B. Returns the loss of the labeling."""
        raise NotImplementedError

    def plane(self, Z, along=None, rtol=SUM_ROUNDING, out=None):
        """The plane of a most violating labeling, as for every `Risk`.

        Scores are tied relative to the largest one, labelings to their sums of scores.
        """
        B = np.empty((self.n_samples, 1)) if out is None else out
        along = None if along is None else np.ravel(along)
        B[:, 0] = 0.0
        return B, float(self._plane(np.ravel(Z), along, rtol, B[:, 0]))

    def value(self, Z):
        B, offset = self.plane(Z)
        return offset + self.dot(B, Z)

    def sample_losses(self, Z):
        """Always raises, because a loss of the whole sample is not a sum over rows."""
        raise NotImplementedError(
            f"{type(self).__name__} is a loss of the whole sample: no row has its own."
        )

    def dual_form(self):
        raise TypeError(
            f"{type(self).__name__} is a maximum over the labelings of the whole sample, "
            "which cannot be listed for each row."
        )

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf, start=1.0):
        """The step that minimizes λ/2 ||w + η d||² + R(w + η d), to rounding.

        On the line, R is convex. It has a piece for each change in the order of the
        scores, up to the number of pairs, so the pieces are not listed. Each trial
        computes the plane at a step. The larger of the lines at both ends of the bracket,
        plus the quadratic, bounds the function from below. A trial that reaches the
        minimum of this bound is the minimum.

        Arguments are those of `HingeRisk.line_search`. Returns η >= 0, which is
        `largest` if the function falls up to it.
        """
        if not largest >= 0.0:
            raise ValueError(f"largest must be >= 0; got {largest}.")
        if not 0.0 < start < np.inf:
            raise ValueError(f"start must be positive and finite; got {start}.")
        return PlaneSearch(self, Z, along, lam * wp, lam * pp).run(start, largest)


class CountedHinge(SampleHinge):
    """A loss of counts, in which a row may represent several rows.

    With fractional weights, the most violating labeling would be a knapsack problem.
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, y, sample_weight, bias=bias, n_threads=n_threads)
        weights = check_weights(sample_weight, self.n_samples)
        units = np.rint(weights)
        bad = np.flatnonzero(np.abs(weights - units) > SAME * np.maximum(weights, 1.0))
        if len(bad) and np.ptp(weights) > 0.0:
            raise ValueError(
                "sample_weight must hold integers for a loss of the contingency table, "
                "because a weight is the number of rows that a row stands for; got "
                f"{weights[bad[0]]} for sample {bad[0]}."
            )
        units = np.ones_like(units) if len(bad) else units
        if units.sum() > MAX_UNITS:
            raise ValueError(
                f"sample_weight sums to {units.sum():.3g} rows, but a loss of the "
                f"contingency table supports at most {MAX_UNITS:.3g}. Divide the "
                "weights."
            )
        self.units = units.astype(np.int64)
        self.all_single = bool((units <= 1).all())
        self.n_positive = int(self.units[self.positives].sum())
        self.n_negative = int(self.units[self.negatives].sum())

    def _sorted(self, rows, z, along, rtol, sign):
        """Rows by ascending sign · z, with the steps and slopes of their units."""
        keys = sign * z[rows]
        rises = None if along is None else sign * along[rows]
        # Among tied scores, those that fall fastest come first: a missed positive
        # subtracts its score, and a false one, of the other sign, adds it.
        rows = rows[ascending(keys, rises, rtol)]
        steps = -sign * z[rows]
        slopes = None if along is None else -sign * along[rows]
        if not self.all_single:
            units = self.units[rows]
            steps = np.repeat(steps, units)
            slopes = None if slopes is None else np.repeat(slopes, units)
        return rows, steps, slopes

    def _fill(self, B, rows, count, value):
        """`value` for each of the first `count` units of these rows, 0 for the others."""
        if self.all_single:
            B[rows[:count]] = value
            B[rows[count:]] = 0.0
            return
        units = self.units[rows]
        taken = np.clip(count - (np.cumsum(units) - units), 0, units)
        B[rows] = value * taken


class BalancedHinge(SampleHinge):
    """Base of losses that do not depend on an intercept, which is then 0."""

    def above(self, scores):
        """The part of each row's weight that should be above a threshold.

        `scores` (n_samples,). Returns (n_samples,).
        """
        raise NotImplementedError

    def gradient(self, B, out=None):
        out = super().gradient(B, out)
        if self.bias != 0.0:
            # The rounding of a sum that should be zero.
            out[-1] = 0.0
        return out


def ascending(keys, rises, rtol):
    """Sort order of the keys, with ties within rtol broken by the slopes."""
    order = np.argsort(keys)
    if rises is None or len(order) < 2:
        return order
    ordered = keys[order]
    tol = rtol * (1.0 + max(-ordered[0], ordered[-1]))
    starts = np.diff(ordered) > tol
    if starts.all():
        return order
    run = np.concatenate([[0], np.cumsum(starts)])
    tied = np.flatnonzero(~np.append(starts, True) | ~np.append(True, starts))
    some = order[tied]
    order[tied] = some[np.lexsort((rises[some], run[tied]))]
    return order


def partial_sums(steps):
    """0, and the sums of the first 1, 2, ... steps."""
    return np.concatenate([[0.0], np.cumsum(steps)])
