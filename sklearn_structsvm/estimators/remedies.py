"""Remedies for fits that miss their tolerance, worded in one place."""

from itertools import islice
from math import ceil

import numpy as np

from sklearn_structsvm._utils.columns import describe_columns
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.solvers.blocks.forecast import FIRST_FORECAST, passes_left
from sklearn_structsvm.solvers.blocks.steps import STEPS
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
)
from sklearn_structsvm.structures.nodes import NodeStructure

# Solvers are slow if columns differ in size by more than this, or are further from zero
# than this many times their spread. If all of them are larger than the square of this,
# weights are so small that the penalty hardly counts: it is as if C were larger by the
# square of their size.
DIFFERENT = 10.0
FAR = 5.0

# More passes are advised if a forecast is at most this many times those made, or if few
# are needed.
MOST_MORE = 2.0
FEW_PASSES = 1000
# Longer forecasts, relative to the passes made, are not mentioned.
MOST_FORESEEN = 1000.0

CUTTING_PLANES = "which solves the same problem by cutting planes"


def convergence_message(estimator, problem, result, name, hint=""):
    """The warning about a result that is not within `tol`.

    `name`: name of the method. `hint`: sentences on why no solver may close the gap.
    """
    gap = f"a duality gap of {result.gap:.3g} > tol={estimator.tol:.3g}"
    scaling, limit = scaling_words(estimator, problem), result.status
    if limit == "stalled":
        if not hint:
            # A larger tolerance is not the remedy for a gap above this share of the
            # objective.
            is_large = result.gap > 0.1 * abs(result.objective)
            way = "use a smaller C" if is_large else "use a larger tol"
            # What is lost in rounding is the size of the columns, if they are not scaled.
            advice = scaling or _advice("", [way])
            hint = f"Rounding errors prevent further progress. {advice}"
        return f"{name} made no further progress, but {gap} remains. {hint}"
    words = (
        f"{name} stopped at {limit}={estimator._settings()[limit]} with {gap}: the "
        "objective is at most that far from its optimum."
    )
    # Only a C that nobody would choose makes up for bad sizes of columns.
    ways = [] if ":" in scaling else ["use a smaller C"]
    more = _share_left(result, estimator.tol)
    # If features are not scaled, early forecasts are too optimistic.
    few = 0 if scaling else FEW_PASSES
    if more is None or more * result.n_iter <= max(MOST_MORE * result.n_iter, few):
        enough = f" (about {_in_all(result, more)} may do)" if more else ""
        ways.insert(0, f"increase {limit}{enough}")
    else:
        if more <= MOST_FORESEEN:
            needed = _in_all(result, more)
            words += f" At this rate, {limit} would have to be about {needed}."
        else:
            words += f" A larger {limit} would help little."
        another = estimator._another_way(problem)
        if another:
            ways.insert(0, f"try {another}")
    words += f" {_advice(scaling, ways)}"
    return f"{words} {hint}" if hint else words


def cut_words(estimator, problem, *ways):
    """Advice on paths and folds that were cut short."""
    return _advice(scaling_words(estimator, problem), ways)


def scaling_words(estimator, problem):
    """A sentence about the features, or '' if they are fine."""
    if isinstance(problem.structure, NodeStructure) and problem.structure._is_given:
        return ""  # Scores have one weight.
    found = _columns_of(problem)
    if found is None:
        # The features of remote examples, or features known only to the structure, are
        # not examined.
        return "Scale the features."
    (sizes, means, spreads), n_columns = found
    names = _Names(estimator, n_columns)
    used = np.flatnonzero(sizes)
    why, named = [], []
    if len(used):
        order = used[np.argsort(sizes[used], kind="stable")]
        # Some of many words are always rare.
        small, large = order[int(0.05 * len(order))], order[-1]
        if sizes[large] > DIFFERENT * sizes[small]:
            named += [large, small]
            why.append(
                f"they differ in size ({names.listed([large])} is about "
                f"{_short(sizes[large])}, {names.listed([small])} about "
                f"{_short(sizes[small])})"
            )
        elif sizes[large] > DIFFERENT**2:
            named.append(large)
            why.append(
                f"they are large ({names.listed([large])} is about "
                f"{_short(sizes[large])})"
            )
    # A constant column has only its mean.
    varies = spreads > SUM_ROUNDING * np.abs(means)
    far = np.flatnonzero(varies & (np.abs(means) > FAR * spreads))
    if len(far):
        named += far.tolist()
        words = "is far from 0 compared to its spread"
        if len(far) > 1:
            words = "are far from 0 compared to their spread"
        why.append(f"{names.listed(far)} {words}")
    if not why:
        return ""
    scaler = _scaler(problem, max(named) >= n_columns)
    return f"Scale the features with {scaler}: {', and '.join(why)}."


def _advice(scaling, ways):
    """Advice in sentences: first about the features, then about alternatives."""
    words = f"{', '.join(ways[:-1])}, or {ways[-1]}" if ways[1:] else "".join(ways)
    if scaling:
        return f"{scaling} Or {words}." if words else scaling
    return f"{words[0].upper()}{words[1:]}."


def slow_options(estimator):
    """The parameters whose defaults give faster steps, in words."""
    ways = []
    if estimator.step != "auto" and not STEPS[estimator.step].is_fast:
        ways.append("step='auto'")
    if estimator._options.acceleration != "auto":
        ways.append("acceleration='auto'")
    if estimator._options.sampling in ("gap", "uniform"):
        ways.append("sampling='auto'")
    return " and ".join(ways)


def planes_for(problem):
    """The estimator of cutting planes for a problem, in words."""
    # With rows and labels alone, they would be ranked, or misread.
    is_plain = type(problem.structure) in (BinaryStructure, MulticlassStructure)
    has_risk = problem.risk is not None
    return "BMRMClassifier" + ("" if is_plain or has_risk else " with this structure")


def _share_left(result, tol):
    """The number of passes left, estimated from those made; None if unknown."""
    rows = [
        {"dual_gap": gap, "n_iter": n_iter}
        for gap, n_iter in zip(
            result.history["dual_gap"], result.history["n_iter"], strict=True
        )
    ]
    if len(rows) < 3 or result.n_iter < FIRST_FORECAST:
        return None
    left = passes_left(rows, max(tol, SUM_ROUNDING * abs(result.objective)))
    return left / result.n_iter


def _in_all(result, more):
    """The limit that would have sufficed, to two digits."""
    if result.status == "max_iter":
        return _short((1.0 + more) * result.n_iter)
    return f"{_short((1.0 + more) * result.history['seconds'][-1])} s"


def _columns_of(problem):
    """Sizes, means and spreads of the columns, with those of edges behind the others.

    Returns them and the number of the others; None if they are not known.
    """
    if problem.is_remote:
        return None
    X, structure = problem.X, problem.structure
    n, most = (X.shape[0], 10_000) if structure.flat else (len(X), 1000)
    step = ceil(n / most)
    some = X
    if step > 1:  # SciPy copies X[::1].
        some = X[::step] if structure.flat else list(islice(X, 0, None, step))
    found = describe_columns(structure._matrices(some))
    if found is None:
        return None
    n_columns, of_edges = len(found[0]), describe_columns(structure._edge_matrices(some))
    if of_edges is not None:
        sizes, means, spreads = of_edges
        # A column of ones is a bias, and in the way of no solver.
        sizes = np.where((means == 1.0) & (spreads == 0.0), 0.0, sizes)
        if not _centers_edges(problem):
            means = np.zeros_like(means)
        of_edges = sizes, means, spreads
        found = tuple(map(np.concatenate, zip(found, of_edges, strict=True)))
    return found, n_columns


def _scaler(problem, of_edges):
    """The transformer that scales the problem's features, as one writes it.

    `of_edges`: whether those of edges are among the ones to scale.
    """
    structure = problem.structure
    first = next(iter(structure._matrices(problem.X)))
    scaler = "StandardScaler" if isinstance(first, np.ndarray) else "MaxAbsScaler"
    if isinstance(structure, NodeStructure):
        own = f"{scaler}()"
        if of_edges:
            kind = "StandardScaler" if _centers_edges(problem) else "MaxAbsScaler"
            own += f", edge_transformer={kind}()"
        scaler = f"SequenceTransformer({own})"
    is_split = isinstance(first, SplitMatrix)
    return f"{scaler} in each part of the union" if is_split else scaler


def _centers_edges(problem):
    """Whether features of edges can be centered: they are dense, and edges have a bias.

    In graphs a constant column takes its place, which must not become zero.
    """
    first = next(iter(problem.structure._edge_matrices(problem.X)))
    return isinstance(first, np.ndarray) and isinstance(problem.structure, ChainStructure)


class _Names:
    """The columns, by name if they have names, and the features of edges behind them."""

    def __init__(self, estimator, n_columns):
        names = vars(estimator).get("feature_names_in_")
        self.names = names if names is not None and len(names) == n_columns else None
        self.n_columns = n_columns

    def listed(self, places):
        """The first of some columns, and the number of the others."""
        first = places[:3]
        n_own = sum(j < self.n_columns for j in places)
        names = list(map(self._name, first))
        others = len(places) - len(first)
        if others:
            names.append(f"{others} other{'s' if others > 1 else ''}")
        words = f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
        if self.names is None and n_own:
            words = f"column{'s' if n_own > 1 else ''} {words}"
        return words

    def _name(self, j):
        if j >= self.n_columns:
            return f"edge feature {j - self.n_columns}"
        return str(j) if self.names is None else repr(str(self.names[j]))


def _short(number):
    """A number with two digits."""
    return f"{float(f'{number:.2g}'):g}"
