"""The best threshold of each label, among all thresholds."""

import numpy as np

from sklearn_structsvm._utils.conditions import largest_violation
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.label_metric import (
    ABSENT_PRESENT,
    LabelLoss,
    coefficients_of_hits,
    matrices_of_hits,
)


def best_metric_threshold(
    eta, hits, weights, rest, metric, constraints=(), *, total, positives, support=0.0
):
    """The threshold above which predicting a label minimizes ψ₂, by trying all.

    `weights` (m,).
    `eta` (m,): nonzero probabilities of the label.
    `hits` (m,): weights of the examples that have the label, and 0 for the others. To
      count probabilities, the probabilities times the weights.
    `rest`: hits among the examples whose probability is 0.
    `metric`: ψ₂, resolved to the classes 0 and 1.
    `constraints` (sequence of Constraint): on the label's matrix.
    `total`, `positives`: weights of all examples, and of those that have the label.
    `support`: as for `LabelLoss`, in the units of the weights.
    Returns `threshold`: midway between two probabilities, inf to predict none, -inf to
      predict all. Among equally good ones the highest; `loss`: ψ₂, or inf if no
      threshold meets the constraints; `violation`: the smallest violation over all
      thresholds; -inf without constraints.
    """
    order = np.argsort(-eta)
    eta = eta[order]
    ends = np.flatnonzero(np.append(eta[1:] != eta[:-1], len(eta) > 0)) + 1
    t = np.concatenate(([0.0], np.cumsum(hits[order])))[np.append(0, ends)]
    q = np.concatenate(([0.0], np.cumsum(weights[order])))[np.append(0, ends)]
    if total - q[-1] > SUM_ROUNDING * total:
        t, q = np.append(t, t[-1] + rest), np.append(q, total)
    t, q, prior = t / total, np.minimum(q / total, 1.0), min(positives / total, 1.0)
    losses, least = LabelLoss(metric, prior, support / total)(t, q), -np.inf
    if constraints:
        violations = _violations(constraints, t, q, prior)
        least = float(violations.min())
        losses = np.where(violations <= SUM_ROUNDING, losses, np.inf)
    best = int(np.argmin(losses))
    return _cut(eta, ends, best, len(q) - 1), float(losses[best]), least


def _cut(eta, ends, best, last):
    """The threshold that predicts the first `best` groups of equal probabilities."""
    if best == 0:
        return np.inf
    if best == last:
        return -np.inf
    high = eta[ends[best - 1] - 1]
    low = eta[ends[best - 1]] if best < len(ends) else 0.0
    middle = low + (high - low) / 2.0
    return float(middle if middle < high else low)


def _violations(constraints, t, q, prior):
    """The largest violation by each of some (t, q), in the constraints' own units."""
    cells = Cells.single([1.0 - prior, prior], ABSENT_PRESENT)
    found = np.full(len(t), -np.inf)
    for constraint in constraints:
        if constraint.has_convex:
            tensors = matrices_of_hits(t, q, prior)
            by = np.array([constraint.violation(C[None], cells) for C in tensors])
        else:
            by = _linear_violations(constraint, cells, t, q, prior)
        found = np.maximum(found, by)
    return found


def _linear_violations(constraint, cells, t, q, prior):
    points = np.stack([np.ones(len(t)), t, q])
    G, h = constraint.linear(cells)
    values = coefficients_of_hits(G[:, 0], prior) @ points + h[:, None]
    D = constraint.denominators(cells)
    if D is None:
        return values.max(axis=0, initial=-np.inf)
    denominators = coefficients_of_hits(D[:, 0], prior) @ points
    return np.array(
        [largest_violation(*both) for both in zip(values.T, denominators.T, strict=True)]
    )
