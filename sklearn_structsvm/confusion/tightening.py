r"""Constraints tightened so that they hold for new examples, too.

Two classes. In a stratum of n examples, all of one cell or of one cell and label, a rule
predicts 1 where a score is above a threshold (or below one). Its rate among the n differs
from its rate in the population by no more, for all thresholds at once, than Kolmogorov's
statistic sup_t |F_n(t) - F(t)|, which is above ε with a probability of at most
2 exp(-2 n ε²), whatever F is (Massart, "The tight constant in the Dvoretzky-Kiefer-
Wolfowitz inequality", Annals of Probability 18, 1990). Mixtures of rules are between
them. So with ε_s such that this is (1 - confidence) / S for S strata, all rates of all
strata are within ε_s together, with at least that confidence, whatever thresholds are
chosen and however.

A condition <G, C> + h <= 0 is Σ_s w_s E_s[G_s,h(x)] + h, where w_s is the stratum's share
and G_sj its number for prediction j, so that it differs by at most Σ_s w_s (max_j G_sj -
min_j G_sj) ε_s: that is added to h. The shares of the strata are taken as they are.

Rules of more classes, and those that do not see the group, are not thresholds on one
score. ε_s is used for them as well, as a bound that is not proven.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_structsvm.confusion.constraint import Constraint

# Each pair is tested for each rule, and bounds for all rules take a tensor of all groups
# for each: with 100 groups they take 300 MB and seconds.
MAX_PAIRS = 10_000


def uniform_deviation(n, error):
    """The value that Kolmogorov's statistic exceeds with at most this probability.

    Returns at most 1, which it is for no examples.
    """
    # Of half an example no more is known than of none.
    return np.minimum(np.sqrt(np.log(2.0 / error) / (2.0 * np.maximum(n, 0.5))), 1.0)


@dataclass
class ConfidenceBounds:
    """By how much the conditions of one constraint may be off on new examples.

    `values` (p,): one for each linear condition. `groups` (list of length p): the group
    that is the largest part of each: its index, None without groups.
    """

    constraint: Constraint
    values: np.ndarray
    groups: list

    def by_group(self, names):
        """The largest of each group, as a dict by name; None for all examples."""
        found = {}
        for group, value in zip(self.groups, self.values.tolist(), strict=True):
            name = None if group is None else names[group]
            found[name] = max(value, found.get(name, 0.0))
        return found


def find_bounds(constraints, cells, sizes, confidence):
    """`ConfidenceBounds` of each constraint; together they hold with `confidence`.

    `cells`: with the row sums of the sample's labels. `sizes` (2, m, k): sums of the
    weights of the examples by cell and label, and of their squares. ValueError for a
    constraint that is not linear.
    """
    refuse_curved(constraints)
    refuse_many_pairs(constraints, cells)
    for constraint in constraints:
        if constraint.has_levels:
            raise ValueError(
                f"{constraint!r} is on precisions, for which there is no bound for all "
                "rules. Hold out examples: constraint_calibration=0.5."
            )
    ranges = [_ranges(constraint.linear(cells)[0]) for constraint in constraints]
    # Strata are cells, and labels of cells; those that no condition is of are left out.
    used = [
        np.any([(r[kind] > 0.0).any(axis=0) for r in ranges], axis=0) for kind in (0, 1)
    ]
    error = (1.0 - confidence) / max(sum(u.sum() for u in used), 1)
    deviations = [
        uniform_deviation(_effective(s), error) for s in (np.sum(sizes, axis=2), sizes)
    ]
    return [
        _bounds_of(constraint, cells, *r, *deviations)
        for constraint, r in zip(constraints, ranges, strict=True)
    ]


def refuse_curved(constraints, name="constraint_confidence"):
    """ValueError of the parameter `name` for a constraint that is not on rates."""
    for constraint in constraints:
        if constraint.has_convex or constraint.needs_costs:
            raise ValueError(
                f"{name} supports only constraints on rates; got {constraint!r}."
            )


def refuse_many_pairs(constraints, cells):
    """ValueError for conditions on pairs of groups that are too many to test each."""
    for constraint in constraints:
        if constraint.has_levels:
            continue
        halves = constraint._conditions(cells).halves
        sizes = [np.sum(halves == e) for e in range(1, halves.max(initial=0) + 1)]
        n_pairs = sum(int(size) ** 2 for size in sizes)
        if n_pairs > MAX_PAIRS:
            raise ValueError(
                f"constraint_confidence tests each pair of groups, and {constraint!r} "
                f"has {max(sizes)} groups, which are {n_pairs:,} pairs, more than "
                f"{MAX_PAIRS:,}. Use reference='overall', which has two conditions for "
                "each group, or pool small groups by min_group_size."
            )


def _ranges(G):
    """Over predictions: (p, m) of conditions on whole cells, (p, m, k) of others."""
    spread = G.max(axis=3) - G.min(axis=3)
    is_whole = (G == G[:, :, :1]).all(axis=(2, 3))
    return np.where(is_whole, spread[:, :, 0], 0.0), np.where(
        is_whole[:, :, None], 0.0, spread
    )


def _effective(sizes):
    """How many examples of equal weight say as much (Kish)."""
    sums, squares = np.asarray(sizes, dtype=float)
    return np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0.0)


def _bounds_of(constraint, cells, whole, apart, of_cell, of_label):
    by_cell = cells.priors.sum(axis=1) * whole * of_cell
    by_cell += (cells.priors * apart * of_label).sum(axis=2)
    groups = cells.groups
    largest = by_cell.argmax(axis=1)
    return ConfidenceBounds(
        constraint,
        by_cell.sum(axis=1),
        [None if groups is None else int(groups[a]) for a in largest],
    )
