"""Rules that decide which labels a row gets, and their choice."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from sklearn_structsvm._utils.borders import (
    as_floats,
    check_floats,
    check_integer,
    check_shape,
)
from sklearn_structsvm._utils.tolerances import VALUE_ROUNDING
from sklearn_structsvm._utils.weights import effective_number, effective_weights
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.expected_f import best_sets
from sklearn_structsvm.confusion.label_metric import (
    ABSENT_PRESENT,
    LabelLoss,
    LabelMean,
    label_weights,
)
from sklearn_structsvm.confusion.label_thresholds import best_metric_threshold
from sklearn_structsvm.confusion.lmo.top_labels import (
    LabelSets,
    TopLabelsLMO,
    best_labels,
    gains_of_losses,
)
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.smoothing import (
    FLOORS,
    fit_sigmoid,
    fit_sigmoids,
    log_odds,
    nearest_to_zero,
    shrunk_hits,
)
from sklearn_structsvm.solvers.confusion.block_ascent import (
    best_rule,
    hits_help,
    mean_loss,
    run_block_ascent,
)
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError
from sklearn_structsvm.solvers.loop import History

# So many rows, or as many as have the label, support its precision, see `LabelLoss`. It
# was chosen by simulated labels, and the same on real ones, see
# benchmarks/bench_default_decisions.py.
SUPPORT = 3.0


class ThresholdRule:
    """Label l is predicted if η_l > values[l].

    `values` (L,).
    """

    def __init__(self, values):
        self.values = values

    def written(self, names):
        """The rule as the columns of a table, and in lines of words."""
        at = self.values.tolist()
        table = {"label": names, "sign": [">"] * len(at), "threshold": at}
        if len(at) > 1 and 0.0 <= min(at) == max(at) < 1.0:
            return table, [f"each label with p > {at[0]:.3g}"]
        words = {True: "always {0}", False: "{0} if p({0}) > {1:.3g}"}
        lines = [
            f"never {name}" if t >= 1.0 else words[t < 0.0].format(name, t)
            for name, t in zip(names, at, strict=True)
        ]
        return table, lines

    def indicator(self, rows):
        """CSR of shape (n, L)."""
        check_shape("thresholds", self.values, rows.n_labels)
        shape = len(rows), rows.n_labels
        kept = (rows.eta > self.values[rows.labels]).astype(np.int64)
        found = sparse.csr_array((kept, rows.labels, rows.starts), shape, copy=True)
        # Labels that are predicted at probability 0 are predicted everywhere.
        always = (self.values[None] < 0.0).astype(np.int64)
        if always.any():
            ones = np.ones((len(rows), 1), dtype=np.int64)
            found = found.maximum(sparse.csr_array(ones) @ sparse.csr_array(always))
        found.eliminate_zeros()
        return found


class TopLabelsRule:
    """The k labels of the largest gains[l, 0] + gains[l, 1] η_l.

    `gains` (L, 2).
    """

    def __init__(self, gains, k):
        self.gains, self.k = np.ascontiguousarray(gains), k

    def written(self, names):
        """As of `ThresholdRule`."""
        at_0, slopes = self.gains.T.tolist()
        table = {"label": names, "at_0": at_0, "slope": slopes}
        if (self.gains == self.gains[0]).all():
            return table, [f"the {self.k} most probable labels"]
        lines = [
            f"{name}: {a:.3g} {b:+.3g} p({name})"
            for name, a, b in zip(names, at_0, slopes, strict=True)
        ]
        return table, [f"the {self.k} labels with the largest of", *lines]

    def indicator(self, rows):
        """CSR of shape (n, L)."""
        check_floats("gains", self.gains, rows.n_labels, 2)
        check_integer("labels_per_row", self.k, 1, rows.n_labels)
        labels, eta = best_labels(rows, self.gains, self.k)
        return LabelSets(labels, eta, None, None).matrix(rows.n_labels)


class ExpectedFRule:
    """The set of the largest expected F-measure."""

    def __init__(self, beta):
        self.beta = beta

    def written(self, names):
        """As of `ThresholdRule`."""
        return {"label": names}, ["the set of labels with the largest expected score"]

    def indicator(self, rows):
        """CSR of shape (n, L)."""
        return best_sets(rows, self.beta)[0]


@dataclass
class Choice:
    """A rule found for some rows.

    `rule`: has `indicator(rows)`. `objective`, `bound`: the objective of the rule, and
    a bound for all rules of its kind. `status`: as for `SolverResult`. `sets` or None:
    sets for exactly these rows that are at least as good as the rule's. `history` or
    None: the history of the search, if there was one.
    """

    rule: Any
    objective: float
    bound: float
    n_iter: int = 1
    status: str = "converged"
    sets: LabelSets | None = None
    history: dict | None = None


def choose_thresholds(rows, weights, truth, metric, average, constraints, names, shrink):
    """A threshold for each label (or one for all, if "micro"), by exhaustive search.

    `weights` (n,), `average` ({"macro", "weighted", "micro"}). `truth` (CSR (n, L)):
    labels to count; None counts the probabilities. `names`: of the labels, for errors.
    `shrink`: whether the counted labels are moved toward the probabilities, rare labels
    most, and precisions of few rows toward the label's share. Returns a `Choice`.
    """
    weights = effective_weights(weights)
    columns = list(_label_columns(rows, weights, truth))
    total = float(weights.sum())
    if average == "micro":
        *entries, rest, numbers = map(np.hstack, zip(*columns, strict=True))
        columns, total = [(*entries, rest.sum(), numbers.sum())], total * rows.n_labels
    if shrink:
        columns = _shrunk(columns)
    thresholds, losses = np.empty((2, len(columns)))
    for j, (eta, hits, of_entries, rest, _) in enumerate(columns):
        thresholds[j], losses[j], violation = best_metric_threshold(
            eta, hits, of_entries, rest, metric, constraints,
            total=total, positives=hits.sum() + rest,
            support=min(SUPPORT, hits.sum() + rest) if shrink else 0.0,
        )  # fmt: skip
        if not losses[j] < np.inf:
            of = "all labels together" if average == "micro" else f"label {names[j]!r}"
            raise InfeasibleConstraintError(
                f"No threshold of {of} meets the constraints: the smallest violation is "
                f"{violation:.3g}.",
                violation,
            )
    values = np.array(np.broadcast_to(thresholds, rows.n_labels))
    have = np.array([hits.sum() + rest for _, hits, _, rest, _ in columns])
    loss = float(np.average(losses, weights=label_weights(average, have)))
    return Choice(ThresholdRule(values), loss, loss)


def _label_columns(rows, weights, truth):
    """For each label: η, hits and weights of its entries, the hits of other rows, and n.

    n is the effective number of rows that have the label, 0 if probabilities count, or if
    none is known, so that no such label is predicted everywhere.
    """
    matrix = rows.matrix().tocsc()
    counted = None if truth is None else truth.tocsc()
    has = np.zeros(len(rows))
    for label in range(rows.n_labels):
        entries = slice(*matrix.indptr[label : label + 2])
        at, eta = matrix.indices[entries], matrix.data[entries]
        if counted is None:
            yield eta, eta * weights[at], weights[at], 0.0, 0.0
            continue
        those = counted.indices[slice(*counted.indptr[label : label + 2])]
        has[those] = weights[those]
        hits = has[at]
        rest = max(float(has[those].sum() - hits.sum()), 0.0)
        known = those if rows.is_complete or len(eta) else those[:0]
        yield eta, hits, weights[at], rest, effective_number(weights[known])
        has[those] = 0.0


def _shrunk(columns):
    """`_label_columns` with hits moved toward sigmoids of η with a common prior."""
    sigmoids = _fit_sigmoids(columns)
    found = []
    for column, sigmoid in zip(columns, sigmoids.values, strict=True):
        eta, _, weights, _, n = column
        hits, rest = shrunk_hits(*column, sigmoid, sigmoids.floor)
        found.append((eta, hits, weights, rest, n))
    return found


class LabelSigmoids:
    """Replaces η by σ(a logit η + b), with a and b for each label; 0 stays 0.

    `values` (L, 2): a and b. `floor`: as for `log_odds`.
    """

    def __init__(self, values, floor):
        self.values, self.floor = values, floor

    @classmethod
    def fit(cls, rows, weights, truth):
        """The most probable sigmoids; arguments as for `choose_thresholds`."""
        weights = effective_weights(weights)
        return _fit_sigmoids(list(_label_columns(rows, weights, truth)))

    def __call__(self, rows):
        """`LabelRows` of calibrated probabilities."""
        check_floats("label_sigmoids_", self.values, rows.n_labels, 2)
        floor = float(as_floats("label_floor_", self.floor))
        a, b = self.values[rows.labels].T
        return replace(rows, eta=expit(a * log_odds(rows.eta, floor) + b))


def _fit_sigmoids(columns):
    """`LabelSigmoids` of `_label_columns`."""
    eta, hits, weights = list(zip(*columns, strict=True))[:3]
    every = np.concatenate(eta)
    floors = {nearest_to_zero(every, 1.0 - every, at_least=floor) for floor in FLOORS}
    best, least = None, np.inf
    for floor in sorted(floors, reverse=True):
        z = [log_odds(own, floor) for own in eta]
        if len(z) == 1:
            values = fit_sigmoid(z[0], hits[0], weights[0])[None]
        else:
            values = fit_sigmoids(z, hits, weights)
        loss = sum(map(_log_loss, values, z, hits, weights)) if len(floors) > 1 else 0.0
        if loss < least:
            best, least = LabelSigmoids(values, floor), loss
    return best


def _log_loss(sigmoid, z, hits, weights):
    """The sum of the negative log-likelihoods of a label's rows."""
    scores = sigmoid[0] * z + sigmoid[1]
    return float(weights @ np.logaddexp(0.0, scores) - hits @ scores)


def choose_top_labels(
    rows, weights, k, metric, average, shrink=False, on_pass=None, **limits
):
    """Exactly k labels per row, counting probabilities.

    `average` ({"macro", "weighted", "micro"}). `rows`, `weights`, `metric` as of
    `choose_thresholds`. `shrink`: whether precisions of few rows are moved toward the
    label's share. `on_pass` or None: as for `run_passes`, with a callable () -> the
    rule so far after the others; called where there is a search. `**limits`: tol,
    max_iter and max_time of a search. Returns a `Choice`.
    """
    lmo = TopLabelsLMO(rows, k, weights)
    if average == "micro":
        return _choose_most_probable(lmo, metric)
    support = SUPPORT / effective_number(weights) if shrink else 0.0
    pairs = zip(lmo.prior, np.minimum(support, lmo.prior), strict=True)
    found = [LabelLoss(metric, *pair) for pair in pairs]
    of_labels = label_weights(average, lmo.prior)
    if any(loss.coefficients is None for loss in found):
        return _choose_by_mixture(lmo, metric, of_labels, on_pass, limits)
    coefficients = np.array([loss.coefficients.ravel() for loss in found])
    if of_labels is not None:
        _weigh(coefficients, len(found) * of_labels)
    if all(loss.linear for loss in found):
        gains = -coefficients[:, [2, 1]] / coefficients[:, [3]]
        sets = lmo.choose(gains)
        loss = _mean(found, sets, of_labels)
        return Choice(TopLabelsRule(gains, k), loss, loss, sets=sets)

    def choose(sets):
        gains, _, loss = best_rule(lmo, coefficients, sets)
        return TopLabelsRule(gains, k), loss, sets

    search = partial(run_block_ascent, lmo, coefficients, **limits)
    choice = _run_search(search, choose, on_pass)
    if shrink or (coefficients[:, 3] > VALUE_ROUNDING).all():
        return choice
    # Where sets have few rows of a label, gains near them choose others. Gains of
    # supported precisions do not.
    other = choose_top_labels(rows, weights, k, metric, average, True, **limits)
    sets = lmo.choose(other.rule.gains)
    loss = mean_loss(coefficients, sets)
    if loss >= choice.objective:
        return choice
    if mean_loss(coefficients, choice.sets) <= loss:
        sets = choice.sets
    return replace(choice, rule=other.rule, objective=loss, sets=sets)


def _weigh(coefficients, weights):
    """Multiply the labels' ratios; 0/0 counts as 1, and then as the weight."""
    coefficients[:, :3] *= weights[:, None]
    empty = coefficients[:, 3] == 0.0
    coefficients[empty, 0] += VALUE_ROUNDING * weights[empty]
    coefficients[empty, 3] += VALUE_ROUNDING


def _run_search(search, choose, on_pass):
    """The `Choice` at the end of a search, whose passes are reported.

    `search`: (on_pass, history) -> SolverResult. `choose`: from a solution to a rule,
    its loss and its sets. `on_pass` or None: as for `choose_top_labels`.
    """
    history = History()

    def on_pass_of_search(*arguments):
        return on_pass(*arguments, lambda: choose(history.solution)[0])

    result = search(
        on_pass=None if on_pass is None else on_pass_of_search, history=history
    )
    rule, loss, sets = choose(result.solution)
    return Choice(
        rule,
        loss,
        result.dual_objective,
        result.n_iter,
        result.status,
        sets,
        result.history,
    )


def _choose_most_probable(lmo, metric):
    """The pooled number of predictions is fixed, so only the hits matter."""
    gains = np.tile([0.0, 1.0], (lmo.rows.n_labels, 1))
    sets = lmo.choose(gains)
    loss = LabelLoss(metric, float(lmo.prior.mean()))
    value = float(loss([sets.hits.mean()], [sets.predicted.mean()])[0])
    coefficients = loss.coefficients
    helps = coefficients is not None and hits_help(coefficients.reshape(1, 6))
    bound = value if helps else -np.inf
    return Choice(TopLabelsRule(gains, lmo.k), value, bound, sets=sets)


def _choose_by_mixture(lmo, metric, of_labels, on_pass, limits):
    """The best among the rules of a certified mixture and the rule of its slope."""
    n_labels = lmo.shape_[0]
    names = np.arange(n_labels)
    cells = Cells(lmo.priors_, ABSENT_PRESENT, groups=names, group_names=names.tolist())
    problem = ConfusionProblem(LabelMean(metric, of_labels), lmo, cells)
    found = [LabelLoss(metric, p) for p in lmo.prior]

    def choose(mixture):
        slope = problem.tangent(mixture.confusion)[0]
        tried = [gains_of_losses(L) for L in [slope, *mixture.handles]]
        sets = [lmo.choose(gains) for gains in tried]
        losses = [_mean(found, s, of_labels) for s in sets]
        best = int(np.argmin(losses))
        return TopLabelsRule(tried[best], lmo.k), losses[best], sets[best]

    search = partial(run_column_generation, problem, **limits)
    return _run_search(search, choose, on_pass)


def _mean(losses, sets, weights):
    pairs = zip(losses, sets.hits, sets.predicted, strict=True)
    values = [loss([t], [q])[0] for loss, t, q in pairs]
    return float(np.average(values, weights=weights))


def choose_sets(rows, weights, k, beta):
    """For each row, the set of labels (k, or any number) with the best expected F.

    Returns a `Choice`.
    """
    _, values = best_sets(rows, beta, k or 0)
    loss = 1.0 - float(np.average(values, weights=weights))
    if k is None:
        return Choice(ExpectedFRule(beta), loss, loss)
    gains = np.tile([0.0, 1.0], (rows.n_labels, 1))
    return Choice(TopLabelsRule(gains, k), loss, loss)
