"""Linear conditions on confusion tensors, in whole or in halves."""

from typing import NamedTuple

import numpy as np

from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO


class Conditions(NamedTuple):
    """Linear conditions on a confusion tensor C, as the solvers use them.

    Condition p is <G[p], C> + h[p] <= 0. That all of g rates are close are g (g - 1)
    such conditions, one for each pair. In two halves they are only 2 g: each upper half
    plus each lower half of the same level must not be positive.

    `G` (p, m, k, k), `h` (p,). `D` (p, m, k, k) or None: denominators, as of
    `Constraint.denominators`. Those of two halves are added, too. `halves` (p,) int: 0
    for a whole condition, e and -e for an upper and a lower half of level e > 0.
    """

    G: np.ndarray
    h: np.ndarray
    D: np.ndarray | None
    halves: np.ndarray


def sums_of_halves(values, halves):
    """The values of whole conditions, and all sums of an upper and a lower half."""
    sums = [values[halves == 0]]
    for e in range(1, halves.max(initial=0) + 1):
        sums.append(np.add.outer(values[halves == e], values[halves == -e]).ravel())
    return np.concatenate(sums)


def largest_of_halves(values, halves):
    """The largest of `sums_of_halves` for each column of an array (p, T).

    Returns (1 + number of levels, T): of the whole conditions, which is -inf without
    any, then of each level.
    """
    n = halves.max(initial=0)
    largest = [values[halves == e].max(axis=0, initial=-np.inf) for e in range(-n, n + 1)]
    both = [largest[n + e] + largest[n - e] for e in range(1, n + 1)]
    return np.stack([largest[n], *both])


def largest_parts(values, halves):
    """Indices of the whole condition, or of the two halves, with the largest value."""
    best, found = -np.inf, []
    for e in range(halves.max(initial=0) + 1):
        sides = [np.flatnonzero(halves == own) for own in {e, -e}]
        if all(map(len, sides)):
            parts = [side[values[side].argmax()] for side in sides]
            if values[parts].sum() > best:
                best, found = values[parts].sum(), parts
    return found


def largest_violation(values, denominators=None, halves=None):
    """Largest violation of linear conditions, in their own units; -inf without any.

    `values` (p,): <G[p], C> + h[p]. `denominators` (p,) or None: <D[p], C>; conditions
    for which this is 0 count only if there are no others, and then as 0. `halves` (p,)
    int: as of `Conditions`; None if all conditions are whole.
    """
    if halves is not None and halves.any():
        if denominators is None:
            return float(largest_of_halves(values[:, None], halves).max())
        values = sums_of_halves(values, halves)
        denominators = sums_of_halves(denominators, halves)
    if denominators is None:
        return float(values.max(initial=-np.inf))
    counts = denominators > ROUNDED_ZERO
    if len(values) and not counts.any():
        return 0.0
    return float((values[counts] / denominators[counts]).max(initial=-np.inf))
