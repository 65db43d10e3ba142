"""Rates by group with their intervals, and what was promised beside what held."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.arrays import refuse_swapped
from sklearn_structsvm._utils.binomial import clopper_pearson
from sklearn_structsvm._utils.borders import as_floats, check_sequence
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.confusion.binomial_tests import (
    broken_p_value,
    expected_violation,
    p_value,
    rate_sums,
)
from sklearn_structsvm.confusion.cells import positive_index
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.moved import spare_of
from sklearn_structsvm.confusion.rate_constraint import check_number
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.confusion.scoring import (
    baseline_labels,
    counted_groups,
    respond,
)
from sklearn_structsvm.plotting._common import (
    NO_MATH,
    Display,
    axes_or_new,
    floats_of,
    require,
    show_legend,
    style_of,
)
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL

# Name of the row of all examples, and of the rates.
ALL = "all"
RATES = ("selection rate", "recall", "false positive rate", "precision")

# Columns of both tables.
GROUP_COLUMNS = (
    "group",
    "n",
    "positives",
    *(f"{rate}{end}" for rate in RATES for end in ("", " low", " high")),
)
PROMISES = (
    "constraint", "promised", "violation", "new rows", "margin", "holds", "p value",
    "broken p value",
)  # fmt: skip

LEGEND = """\
Violations, "holds" and p values are for these rows, promises for all rows. A small
p value shows that a constraint holds, and a small "broken" one that it does not."""

# What is printed below constraints that are not expected to hold for new rows.
REMEDY = """\
A constraint with a violation above 0 for new rows holds for them in half the cases at
most. A fit with the option `margin` of the table, or a slack or rate that is stricter
by it, keeps the constraint in expectation. Where it is inf, only more examples help."""

# What the words of `counted_` mean in the column of what was promised.
COUNTED = {"smoothed": "smoothed labels"}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FairnessReport(Display):
    """Rates of groups with confidence intervals, and whether constraints hold.

    It is what :func:`fairness_report` returns. ``print(report)`` shows both tables as
    text, and :meth:`plot` draws the rates.

    Read more in the :ref:`User Guide <guide-fairness-report>`.

    Parameters
    ----------
    by_group : dict of {str: list}
        Columns: "group", "n", "positives", and for each of the rates "selection rate",
        "recall", "false positive rate" and "precision" its value, and its limits as
        "... low" and "... high". The last row is of all examples. NaN is a rate of none.
    promises : dict of {str: list}
        Columns: "constraint"; "promised", with the counts that the promise is of;
        "violation", what a mixture of rules is expected to violate for the labels of
        these rows; "new rows", what it is expected to violate for new ones, by the counts
        of its fit; "margin", the `margin` of a fit that is expected to violate nothing
        for new ones, or inf if there is none; "holds", whether "violation" is not above
        0; "p value", of "it is violated"; "broken p value", of "it holds". NaN for
        "holds" means that some rate has no examples, and nothing else is violated; NaN
        for "new rows" and "margin", that the fit did not count the groups of the
        constraint.
    pos_label : label
        The label that rates are about.
    confidence_level : float
        Of each interval.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    points_ : list of matplotlib ErrorbarContainer
        The rates of each group.

    See Also
    --------
    TradeoffDisplay : What the level of a constraint costs.
    """

    def __init__(
        self,
        *,
        by_group: dict[str, list],
        promises: dict[str, list],
        pos_label: Any,
        confidence_level: float,
    ) -> None:
        self.by_group = by_group
        self.promises = promises
        self.pos_label = pos_label
        self.confidence_level = confidence_level

    def to_frames(self) -> tuple[Any, Any]:
        """The two tables as data frames of pandas, which must be installed.

        Returns
        -------
        by_group, promises : DataFrame
            The first with the groups as its index.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = require("pandas", "FairnessReport.to_frames")
        by_group, promises = self._checked()
        return pd.DataFrame(by_group).set_index("group"), pd.DataFrame(promises)

    def _checked(self):
        """Both tables; ValueError if a column is missing, of another length or type."""
        return (
            _checked("by_group", self.by_group, GROUP_COLUMNS, GROUP_COLUMNS[1:]),
            _checked("promises", self.promises, PROMISES, PROMISES[2:]),
        )

    def __str__(self) -> str:
        by_group, promises = self._checked()
        header = ["group", "n", f"of label {self.pos_label!r}", *RATES]
        rows = [
            [
                _name(by_group["group"][a]),
                str(by_group["n"][a]),
                str(by_group["positives"][a]),
                *(
                    f"{by_group[rate][a]:.3f} ({by_group[f'{rate} low'][a]:.3f}"
                    f" to {by_group[f'{rate} high'][a]:.3f})"
                    for rate in RATES
                ),
            ]
            for a in range(len(by_group["group"]))
        ]
        text = _as_text([header, *rows])
        if promises["constraint"]:
            columns = [promises[name] for name in PROMISES]
            rows = [
                [c, promised, *(f"{v:.3f}" for v in sizes),
                 _answer(holds, broken, 1.0 - self.confidence_level), f"{p:.2g}",
                 f"{broken:.2g}"]
                for c, promised, *sizes, holds, p, broken in zip(*columns, strict=True)
            ]  # fmt: skip
            text += f"\n\n{_as_text([[*PROMISES], *rows])}\n\n{LEGEND}"
            if any(expected > 0.0 for expected in promises["new rows"]):
                text += f"\n\n{REMEDY}"
        return text

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the rates of each group, with their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.

        Returns
        -------
        report : FairnessReport
            This report, which stores the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        by_group, _ = self._checked()
        as_floats("confidence_level", self.confidence_level)
        ax = axes_or_new(ax, "FairnessReport.plot")
        groups = [_name(group) for group in by_group["group"][:-1]]
        places = np.arange(len(RATES))
        self.points_ = []
        for a, group in enumerate(groups):
            rate, low, high = (
                np.array([by_group[f"{name}{end}"][a] for name in RATES])
                for end in ("", " low", " high")
            )
            # Points of the groups share this width around the place of a rate.
            offset = 0.6 * ((a + 0.5) / len(groups) - 0.5)
            label = f"{group} ({by_group['n'][a]})"
            self.points_.append(
                ax.errorbar(
                    places + offset, rate, [rate - low, high - rate], fmt="o",
                    capsize=3, label=label,
                )
            )  # fmt: skip
        ax.set_xticks(places, [name.capitalize() for name in RATES])
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel(
            f"Rate of {self.pos_label!r}, with {self.confidence_level:g} intervals",
            **NO_MATH,
        )
        show_legend(ax, [p.get_label() for p in self.points_], fontsize="small")
        return self._finish(ax)


@with_plain_calls
def fairness_report(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any,
    constraints: Any = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
) -> FairnessReport:
    """Report rates and sizes of groups, and whether the constraints hold.

    Use examples that the estimator was not fitted to. Rates have the exact intervals of
    Clopper and Pearson. For each constraint, the report has the violation on these
    examples, and the p-value of "it is violated". If that is below 0.05, these examples
    alone show with 95% confidence that the constraint holds. If the "broken p value", of
    "it holds", is below 0.05, they show that it does not.

    Read more in the :ref:`User Guide <guide-fairness-report>`.

    Parameters
    ----------
    estimator : classifier
        Fitted classifier. `sensitive_features` are passed to its `predict` if it takes
        them.
    X : as for its `predict`
        Examples.
    y : array-like of shape (n_samples,)
        True labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, p), or data frame
        Group of each example. For several columns, the groups are the combinations that
        occur. Groups that the estimator pools (`min_group_size`) are pooled here, too,
        and groups that its rules depend on have a row even if they do not occur.
    constraints : Constraint or sequence of Constraint, default=None
        What was promised. None means the `constraints` of the estimator, if it has some.
    pos_label : label, default=None
        The label that rates are about. None means the estimator's `pos_label_`, or else 1
        for labels 0 and 1 or -1 and 1, and True for booleans.
    confidence_level : float, default=0.95
        Probability with which each interval covers the rate.

    Returns
    -------
    report : FairnessReport
        Its tables are `by_group` and `promises`; it prints them, and `plot` draws it.

    Raises
    ------
    ValueError
        If there is no positive label, or if groups or labels are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.metrics import EqualOpportunity
    >>> from sklearn_structsvm.plotting import fairness_report
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["old", "young"], size=800)
    >>> X = rng.normal(size=(800, 2)) + (group == "old")[:, None]
    >>> y = X[:, 0] + rng.normal(size=800) > 0.5
    >>> model = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.1))
    >>> model = model.fit(X[:400], y[:400], sensitive_features=group[:400])
    >>> report = fairness_report(
    ...     model, X[400:], y[400:], sensitive_features=group[400:])
    >>> report.by_group["group"], report.by_group["n"]
    (['old', 'young', 'all'], [194, 206, 400])
    >>> report.promises["constraint"]
    ['EqualOpportunity(slack=0.1)']
    """
    estimator = snapshot(estimator)
    check_is_fitted(estimator)
    refuse_swapped(X, y, "fairness_report(estimator, X, y)")
    if sensitive_features is None:
        raise ValueError("fairness_report compares groups: pass sensitive_features.")
    level = check_number(confidence_level, "confidence_level", 0.0, 1.0)
    if constraints is None:
        constraints = getattr(estimator, "constraints", ())
    constraints = read_constraints(constraints)
    classes = np.asarray(estimator.classes_)
    if pos_label is None:
        pos_label = getattr(estimator, "pos_label_", None)
    index = positive_index(classes, pos_label, "fairness_report")
    predicted = respond(estimator, "predict", X, sensitive_features)
    groups = counted_groups(estimator, X, sensitive_features, with_absent=True)
    C, cells = confusion_tensor(y, predicted, labels=classes, sensitive_features=groups)
    counts = np.round(C * len(predicted))
    decided = predicted
    if hasattr(estimator, "mixture_"):
        decided = respond(estimator, "predict_proba", X, sensitive_features)
    promises: dict[str, list] = {name: [] for name in PROMISES}
    confidence = getattr(estimator, "constraint_confidence", None)
    promised = "in training"
    if confidence is not None:
        promised = f"confidence {confidence:g}"
    elif hasattr(estimator, "counted_"):
        promised += f", by {COUNTED.get(estimator.counted_, estimator.counted_)}"
        if getattr(estimator, "common_rule_", False):
            promised += ", as without constraints"
    # Of "uniform" promises: by how much each constraint was tightened.
    bounds: Iterator[dict] = iter(getattr(estimator, "constraint_bounds_", ()))
    for constraint in constraints:
        tightened: dict = next(bounds, {})
        if constraint.needs_costs:
            continue
        baseline = None
        if constraint.needs_baseline:
            baseline = baseline_labels(constraint.baseline, X, sensitive_features)
        (own, own_cells), (mean, _) = (
            confusion_tensor(
                y, found, labels=classes, sensitive_features=groups, y_baseline=baseline
            )
            for found in (predicted, decided)
        )
        violation = constraint.measured(mean, own_cells)
        p, broken, holds = np.nan, np.nan, bool(violation <= FEASIBILITY_TOL)
        is_known = True
        if not constraint.has_convex:
            sums = rate_sums(constraint, own_cells, np.round(own * len(predicted)))
            p, broken = (test(sums, 1.0 - level) for test in (p_value, broken_p_value))
        if constraint.empty_counts(own_cells, own):
            p, is_known = 1.0, not holds
        answer = holds if is_known else np.nan
        expected = _expected_of_fit(estimator, constraint, own_cells)
        words = promised
        if any(value > spare_of(constraint) for value in tightened.values()):
            words = "nothing: groups too small"
        row = [repr(constraint), words, float(violation), *expected, answer, p, broken]
        for column, value in zip(promises.values(), row, strict=True):
            column.append(value)
    return FairnessReport(
        by_group=_by_group(counts, list(cells.group_names), index, level),
        promises=promises,
        pos_label=classes.tolist()[index],
        confidence_level=level,
    )


def _expected_of_fit(estimator, constraint, cells):
    """As of `expected_violation`, by the counts that the rule was chosen by."""
    C = getattr(estimator, "certified_confusions_", None)
    if C is None or C.shape != cells.shape:
        return np.nan, np.nan
    counts = estimator.diagnostics_["rows"].sum() * C
    return expected_violation(constraint, replace(cells, priors=C.sum(axis=2)), counts)


def _by_group(counts, names, index, level):
    """The columns of `FairnessReport.by_group`."""
    counts = np.concatenate([counts, counts.sum(axis=0, keepdims=True)])
    n = counts.sum(axis=(1, 2))
    positives = counts[:, index].sum(axis=1)
    selected = counts[:, :, index].sum(axis=1)
    hits = counts[:, index, index]
    found = {
        "group": [*names, ALL],
        "n": n.astype(int).tolist(),
        "positives": positives.astype(int).tolist(),
    }
    of_rates = (
        (selected, n),
        (hits, positives),
        (selected - hits, n - positives),
        (hits, selected),
    )
    for name, (k, among) in zip(RATES, of_rates, strict=True):
        rates = np.divide(k, among, out=np.full(len(k), np.nan), where=among > 0)
        low, high = clopper_pearson(k, among, level)
        found[name] = rates.tolist()
        found[f"{name} low"], found[f"{name} high"] = low.tolist(), high.tolist()
    return found


def _checked(name, table, columns, numbers):
    """A table of these columns, of which some have numbers; all of one length."""
    table = style_of(name, table)
    for column in columns:
        if column not in table:
            raise ValueError(f"{name} has no column {column!r}.")
        own = f"{name}[{column!r}]"
        check_sequence(own, table[column], "a sequence")
        if len(table[column]) != len(table[columns[0]]):
            raise ValueError(f"{own} must be as long as {name}[{columns[0]!r}].")
        if column in numbers:
            floats_of(own, table[column])
    return table


def _answer(holds, broken_p, error):
    if broken_p < error:
        return "broken"
    return "no examples" if np.isnan(holds) else "yes" if holds else "no"


def _name(group):
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def _as_text(rows):
    """Lines with columns of equal widths."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
