"""Exactly k labels a row, for a mean of ratios: block coordinate ascent, and a bound."""

from functools import partial

import numpy as np

from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO, UNNOTICED
from sklearn_structsvm.solvers.accuracy import MAX_PROGRAMS
from sklearn_structsvm.solvers.confusion._lower_hull import lower_hull
from sklearn_structsvm.solvers.loop import Rounding, certified, run_passes

# The largest number of pairs of changes of two rows, times labels, that are tried: about
# .1 s.
MAX_PAIRS = 2**22


def run_block_ascent(
    oracle,
    coefficients,
    *,
    tol=1e-4,
    max_iter=100,
    max_time=None,
    on_pass=None,
    history=None,
):
    r"""Choose k labels for each row so that a mean of the labels' losses is small.

    .. math:: \min_Y \frac{1}{L} \sum_l
       \frac{a_{l0} + a_{l1} t_l + a_{l2} q_l}{b_{l0} + b_{l1} t_l + b_{l2} q_l}

    where label l is predicted for a share q_l of the rows, and expected to be right for a
    share t_l. This is not convex. Each row in turn takes the k labels that are best given
    those of the other rows (block coordinate ascent [1]_), in the order of the data. If
    there are few rows, all choices are tried. If there are somewhat more, all pairs of
    changes are tried in which each of two rows exchanges one label.

    A bound, which [1]_ does not have, comes from a relaxation: only the total number of
    predictions is fixed, and each label takes its most probable rows. A price per
    prediction makes the labels independent. The dual function of the price is concave, so
    bisection finds the best price, and its value for any price is a bound. The slope
    there gives the first start, which is nearly always the best one. The second start is
    each row's most probable labels.

    `coefficients` (L, 6): a and b of each label. `tol`, `max_iter`, `max_time`,
    `on_pass`, `history`: as for `run_passes`. The gap is value - bound. `max_iter`
    counts the passes of all starts together. Its solution is `LabelSets`.

    .. [1] Schultheis, Wydmuch, Kotłowski, Babbar, Dembczyński, "Generalized test
       utilities for long-tail performance in extreme multi-label classification",
       NeurIPS 2023, algorithm 1.
    """
    ascent = _Ascent(oracle, np.ascontiguousarray(coefficients, dtype=np.float64))
    return run_passes(
        ascent.move,
        ascent.check,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_pass=on_pass,
        history=history,
    )


class _Ascent:
    """The best sets so far, those of the current start, and the remaining starts.

    With few rows, the best sets are found at once, and their loss is the bound.
    """

    def __init__(self, oracle, coefficients):
        self.oracle, self.coefficients = oracle, coefficients
        self.best = oracle.enumerated(partial(label_losses, coefficients))
        self.n_calls, self.is_whole = 1, self.best is not None
        if self.is_whole:
            self.bound = self.best_loss = mean_loss(coefficients, self.best)
            return
        self.bound, relaxed = price_bound(
            oracle.rows, oracle.weights, oracle.prior, coefficients, oracle.k
        )
        self.starts = [] if relaxed is None else [slopes(coefficients, *relaxed)]
        # The most probable labels.
        self.starts.append(np.tile([0.0, 1.0], (len(coefficients), 1)))
        self.sets = self.best = oracle.choose(self.starts.pop(0))
        self.loss = self.best_loss = mean_loss(coefficients, self.best)

    def move(self, deadline):
        if self.is_whole:
            return "stationary"
        gains = slopes(self.coefficients, self.sets.hits, self.sets.predicted)
        order = np.argsort(-gains[:, 0], kind="stable").astype(np.int32)
        before = self.loss
        sets = self.oracle.ascend(self.sets, self.coefficients, order)
        self.take(sets)
        if before - self.loss > UNNOTICED:
            return None
        sets = best_pair(self.oracle, self.coefficients, self.sets)
        if sets is None:
            if not self.starts:
                return "stationary"
            sets = self.oracle.choose(self.starts.pop(0))
        self.take(sets)
        return None

    def take(self, sets):
        self.n_calls += 1
        self.sets, self.loss = sets, mean_loss(self.coefficients, sets)
        if self.loss < self.best_loss:
            self.best, self.best_loss = sets, self.loss

    def check(self, done):
        # Of ratios of shares.
        error = rounding_of_rows(self.oracle.rows).of_values(0.0, 1.0, self.best_loss)
        bound = self.bound - error
        return certified(self.best_loss, bound, error, self.n_calls), self.best


def rounding_of_rows(rows):
    """The `Rounding` of shares of rows."""
    return Rounding(n_terms=len(rows))


def label_losses(coefficients, hits, predicted):
    """The ratio of each label (1 if 0 / 0), or of one label at many points."""
    a0, a1, a2, b0, b1, b2 = coefficients.T
    numerators = a0 + a1 * hits + a2 * predicted
    denominators = b0 + b1 * hits + b2 * predicted
    losses = np.ones(numerators.shape)
    np.divide(numerators, denominators, out=losses, where=denominators > 0.0)
    return losses


def mean_loss(coefficients, sets):
    """The objective of `run_block_ascent`."""
    return float(label_losses(coefficients, sets.hits, sets.predicted).mean())


def slopes(coefficients, hits, predicted):
    """Gain of predicting a label for one more row: (L, 2), linear in its η."""
    _, a1, a2, b0, b1, b2 = coefficients.T
    losses = label_losses(coefficients, hits, predicted)
    denominators = b0 + b1 * hits + b2 * predicted
    # If a ratio is 0/0, the first prediction decides it. Its slope is then that of a
    # label that is predicted once in a while.
    smallest = UNNOTICED * np.abs(coefficients[:, 3:]).max(axis=1)
    denominators = np.maximum(denominators, np.maximum(smallest, np.finfo(float).tiny))
    by_hits, by_predicted = a1 - losses * b1, a2 - losses * b2
    return -np.stack([by_predicted, by_hits], axis=1) / denominators[:, None]


def best_pair(oracle, coefficients, sets):
    """The best helpful change in which each of two rows exchanges one label.

    Returns `LabelSets`, or None if no change helps, or if there are too many to try.
    """
    n, k = sets.labels.shape
    n_labels = len(coefficients)
    # Changing no row is included, so that a single row may change.
    n_changes = n * k * (n_labels - k) + 1
    if n_changes**2 * n_labels > MAX_PAIRS:
        return None
    eta = oracle.rows.matrix().toarray()
    chosen = sets.matrix(n_labels).toarray() > 0
    row, out = np.nonzero(chosen)
    of, taken = np.nonzero(~chosen[row])
    row, out = row[of], out[of]
    by_hits, by_predicted = np.zeros((2, n_changes, n_labels))
    changes = np.arange(len(row))
    for labels, sign in ((out, -1.0), (taken, 1.0)):
        by_predicted[changes, labels] = sign * oracle.weights[row]
        by_hits[changes, labels] = sign * oracle.weights[row] * eta[row, labels]
    best, least = None, mean_loss(coefficients, sets) - UNNOTICED
    for first in changes:
        hits = sets.hits + by_hits[first] + by_hits
        predicted = sets.predicted + by_predicted[first] + by_predicted
        # If sums are zero up to rounding, their ratio could be anything.
        none = predicted <= ROUNDED_ZERO
        losses = label_losses(
            coefficients, np.where(none, 0.0, hits), np.where(none, 0.0, predicted)
        ).mean(axis=1)
        losses[:-1][row == row[first]] = np.inf
        second = int(np.argmin(losses))
        if losses[second] < least:
            best, least = (first, second), losses[second]
    if best is None:
        return None
    labels, of_labels = sets.labels.copy(), sets.eta.copy()
    for change in best:
        if change == n_changes - 1:
            continue
        i = row[change]
        at = np.flatnonzero(labels[i] == out[change])
        labels[i, at], of_labels[i, at] = taken[change], eta[i, taken[change]]
    return oracle.counted(labels, of_labels)


def best_rule(oracle, coefficients, sets):
    """The best rule whose gains are the gradient at these sets or at sets near them.

    The sets belong to the training rows. For other rows a rule is needed: a linear gain
    for each label. It is the gradient at the counts of the sets, then at the counts of
    that rule, and so on for a few fixed-point iterations. Returns the best.

    Returns `gains` (L, 2); `sets`: the sets that it chooses; `loss`.
    """
    best = None
    for _ in range(MAX_PROGRAMS):
        gains = slopes(coefficients, sets.hits, sets.predicted)
        sets = oracle.choose(gains)
        loss = mean_loss(coefficients, sets)
        if best is not None and best[2] - loss <= UNNOTICED:
            break
        best = gains, sets, loss
    return best


def price_bound(rows, weights, prior, coefficients, k):
    """A lower bound of the mean loss of all choices of k labels a row.

    `coefficients` (L, 6). `weights` (n,): weights that sum to 1. `prior` (L,): Σ_i w_i
    η_il. Returns `bound`: -inf if a hit may raise a label's loss; `counts` ((L,), (L,))
    or None: t and q of the labels at which the bound is attained, exactly or nearly.
    """
    if k == rows.n_labels:
        # There is only one choice, so no price decides anything. The sum of the weights,
        # which is 1 up to rounding, would let the price rise without end.
        every = prior, np.ones(k)
        return float(label_losses(coefficients, *every).mean()), every
    if not hits_help(coefficients):
        return -np.inf, None
    curves = _Curves(rows, weights, coefficients)
    low, high = -np.inf, np.inf
    price, step, best = 0.0, 1.0, (-np.inf, None)
    # Until a better price cannot raise the dual.
    for _ in range(60):
        value, excess, at = curves.cheapest(price, k)
        if value > best[0]:
            best = value, at
        # There are too many predictions, so they must cost more.
        low, high = (price, high) if excess > 0.0 else (low, price)
        # The dual function lies below its tangents.
        if excess == 0.0 or abs(excess) * (high - low) <= UNNOTICED:
            break
        if np.isfinite(high - low):
            price = (low + high) / 2.0
        else:
            price, step = price + np.copysign(step, excess), 4.0 * step
    bound, at = best
    return bound, None if at is None else (curves.hits[at], curves.predicted[at])


def hits_help(coefficients):
    """Whether no label's loss rises with t at any q from 0 to 1."""
    a0, a1, a2, b0, b1, b2 = coefficients.T
    at_none, at_all = a1 * b0 - b1 * a0, a1 * (b0 + b2) - b1 * (a0 + a2)
    return bool(np.all(at_none <= 0.0) and np.all(at_all <= 0.0))


class _Curves:
    """The smallest loss of each label by its number of predictions: lower hulls.

    A point of a label's curve takes the most probable rows, so its t is the largest for
    its q. If rows have different weights, q may lie between two points. Then t is at most
    that of the line between them, along which the ratio is monotone. So the value at one
    end (or slightly after a start at which it may be 0/0) is a lower bound.
    """

    def __init__(self, rows, weights, coefficients):
        matrix = rows.matrix().tocsc()
        uniform = bool(np.all(weights == weights[0]))
        found = []
        for label in range(rows.n_labels):
            entries = slice(*matrix.indptr[label : label + 2])
            eta, w = matrix.data[entries], weights[matrix.indices[entries]]
            order = np.argsort(-eta)
            w = w[order]
            hits = np.concatenate(([0.0], np.cumsum(w * eta[order])))
            # The sum of all weights must be 1, not slightly more.
            shares = np.minimum(np.cumsum(w), 1.0)
            predicted = np.concatenate(([0.0], shares, [1.0]))
            # All rows, ending with those whose η is 0.
            hits = np.append(hits, hits[-1])
            found.append(_corners(coefficients[label], hits, predicted, uniform))
        sizes = [len(corners[0]) for corners in found]
        self.starts = np.concatenate(([0], np.cumsum(sizes[:-1]))).astype(np.intp)
        self.label = np.repeat(np.arange(len(sizes)), sizes)
        self.hits, self.predicted, self.losses = map(
            np.concatenate, zip(*found, strict=True)
        )
        self.losses /= len(sizes)
        self.rounding = rounding_of_rows(rows)

    def cheapest(self, price, k):
        """The bound for a price, the excess of q over k, and each label's best corner."""
        costs = self.losses + price * self.predicted
        least = np.minimum.reduceat(costs, self.starts)
        found = np.flatnonzero(costs == least[self.label])
        at = found[np.unique(self.label[found], return_index=True)[1]]
        # This is not written as Σ least - price k, which would lose all digits for a
        # large price.
        excess = float(self.predicted[at].sum() - k)
        value = float(self.losses[at].sum() + price * excess)
        sizes = self.losses[at].sum(), price * k, price * self.predicted[at].sum()
        return value - self.rounding.of_values(0.0, 1.0, *sizes), excess, at


def _corners(coefficients, hits, predicted, uniform):
    """t, q and loss of the corners of one label's curve."""
    losses = label_losses(coefficients, hits, predicted)
    if uniform:
        # Complete rows are points. Only the last stretch, with rows whose η is 0, has
        # others: a loss that is concave in q is smallest at its ends.
        a0, a1, a2, b0, b1, b2 = coefficients
        t = hits[-1]
        bends_up = b2 * (a2 * (b0 + b1 * t) - (a0 + a1 * t) * b2) < 0.0
        first = len(losses) - 2 if bends_up else len(losses) - 1
    else:
        first = 0
    # Close to the first point of a curve, where a loss may be 0/0.
    near = [v[first:-1] + UNNOTICED * np.diff(v[first:]) for v in (hits, predicted)]
    on_line = np.minimum(losses[first:-1], losses[first + 1 :])
    on_line = np.minimum(on_line, label_losses(coefficients, *near))
    # The smallest value on a line may be at either end.
    ends = np.arange(first, len(losses) - 1)[:, None] + [0, 1]
    at = np.concatenate((np.arange(first), ends.ravel(), [len(losses) - 1]))
    values = np.concatenate((losses[:first], np.repeat(on_line, 2), losses[-1:]))
    kept = np.empty(len(at), dtype=np.intp)
    kept = kept[: lower_hull(predicted[at], values, kept)]
    return hits[at[kept]], predicted[at[kept]], values[kept]
