"""Precision, recall, metric and constraints against the threshold of two classes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.labels import as_classes, encode
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.counts import as_labels, make_cells
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.registry import get_metric, read_constraints
from sklearn_structsvm.plotting._common import (
    NO_MATH,
    Display,
    axes_or_new,
    floats_of,
    full_names,
    ready_to_draw,
    show_legend,
    style_of,
)

# A screen does not resolve more thresholds than this.
MOST_THRESHOLDS = 500

# Background of thresholds that violate a constraint.
SHADE: dict[str, Any] = {"color": "0.5", "alpha": 0.2, "linewidth": 0}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ThresholdDisplay(Display):
    """Plot of precision, recall and a metric against the decision threshold.

    For two classes. Precision and recall are those of the positive label of the metric,
    or else of the first constraint that has one, or else of the second class; the legend
    names it. A vertical line marks the chosen threshold. For a mixture of rules, a line
    marks the threshold of each rule, darker for a more frequent one, and dots show the
    scores of the mixture. The background is gray where a constraint is violated.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. All parameters
    are stored as attributes.

    Read more in the :ref:`User Guide <guide-thresholds>`.

    Parameters
    ----------
    thresholds : array-like of shape (n_thresholds,)
        Thresholds, in ascending order.
    scores : dict of {str: array-like of shape (n_thresholds,)}
        Curves by their names in the legend, NaN where undefined.
    violated : array-like of bool, shape (n_thresholds,), default=None
        Where a constraint is violated.
    threshold : float, default=None
        The chosen threshold.
    cv_thresholds : array-like of shape (n_folds,), default=None
        Thresholds chosen on the folds, drawn as ticks on the lower edge.
    label : label, default=None
        The label predicted above the threshold, for the x label.
    rule_thresholds : array-like of shape (n_rules,), default=None
        Thresholds of the rules of a mixture.
    rule_weights : array-like of shape (n_rules,), default=None
        Their probabilities. None means equal ones.
    mixture_scores : dict of {str: float}, default=None
        Scores of the mixture, by the names of `scores`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    lines_ : list of matplotlib Line2D
        The curves.
    chosen_ : matplotlib Line2D or None
        Line at `threshold`.
    folds_ : matplotlib Line2D or None
        Ticks at `cv_thresholds`.
    rules_ : list of matplotlib Line2D
        Lines at `rule_thresholds`, without the infinite ones.
    points_ : list of matplotlib Line2D
        Dots at the scores of the mixture.
    violated_ : matplotlib PolyCollection or None
        Gray background.

    See Also
    --------
    TradeoffDisplay : What the level of a constraint costs.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.plotting import ThresholdDisplay
    >>> X, y = make_classification(weights=[0.8], random_state=0)
    >>> model = ComplexMetricClassifier(metric="f1").fit(X, y)
    >>> display = ThresholdDisplay.from_estimator(model, X, y)
    >>> [line.get_label() for line in display.lines_]
    ['Precision of 1', 'Recall of 1', 'F beta of 1']
    >>> display.threshold == model.threshold_
    True
    """

    def __init__(
        self,
        *,
        thresholds: ArrayLike,
        scores: Mapping[str, ArrayLike],
        violated: ArrayLike | None = None,
        threshold: float | None = None,
        cv_thresholds: ArrayLike | None = None,
        label: Any = None,
        rule_thresholds: ArrayLike | None = None,
        rule_weights: ArrayLike | None = None,
        mixture_scores: Mapping[str, float] | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.scores = scores
        self.violated = violated
        self.threshold = threshold
        self.cv_thresholds = cv_thresholds
        self.label = label
        self.rule_thresholds = rule_thresholds
        self.rule_weights = rule_weights
        self.mixture_scores = mixture_scores

    def plot(self, ax: "Axes | None" = None, **line_kw: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        **line_kw : dict
            Passed to `plot`, which draws the curves.

        Returns
        -------
        display : ThresholdDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError
            If the shapes do not match.
        ImportError
            If matplotlib is not installed.
        """
        thresholds = as_floats("thresholds", self.thresholds, "n_thresholds")
        curves = {
            name: floats_of(f"scores[{name!r}]", values)
            for name, values in style_of("scores", self.scores).items()
        }
        for name, values in curves.items():
            if values.shape != thresholds.shape:
                raise ValueError(
                    f"scores[{name!r}] must have shape {thresholds.shape}; got "
                    f"{values.shape}."
                )
        violated, threshold = np.zeros(0), np.nan
        if self.violated is not None:
            violated = as_floats("violated", self.violated, len(thresholds))
        if self.threshold is not None:
            threshold = float(as_floats("threshold", self.threshold, finite=False))
        if self.cv_thresholds is not None:
            by_fold = np.ravel(floats_of("cv_thresholds", self.cv_thresholds))
            by_fold = by_fold[np.isfinite(by_fold)]
        rules, scores = self._checked_mixture()
        ax = axes_or_new(ax, "ThresholdDisplay.plot")
        style = full_names(line_kw)
        self.lines_ = [
            ax.plot(thresholds, values, **{"label": name, **style})[0]
            for name, values in curves.items()
        ]
        self.violated_ = self.chosen_ = self.folds_ = None
        across = ax.get_xaxis_transform()
        if violated.any():
            self.violated_ = ax.fill_between(
                thresholds, 0.0, 1.0, where=violated != 0.0,
                transform=across, label="constraint violated", **SHADE,
            )  # fmt: skip
        if np.isfinite(threshold):
            self.chosen_ = ax.axvline(
                threshold, color="0.2", linestyle="--", label="chosen"
            )
        self._plot_mixture(ax, rules, scores)
        if self.cv_thresholds is not None:
            (self.folds_,) = ax.plot(
                by_fold, np.zeros(len(by_fold)), transform=across, clip_on=False,
                color="0.2", marker="|", linestyle="none", label="by each fold",
            )  # fmt: skip
        what = "" if self.label is None else f" of {self.label!r}"
        ax.set_xlabel(f"Threshold of the probability{what}", **NO_MATH)
        ax.set_ylabel("Score")
        show_legend(ax, curves, fontsize="small")
        return self._finish(ax)

    def _checked_mixture(self):
        """Thresholds and weights of the rules, or None, and the scores by their names."""
        rules = None
        if self.rule_thresholds is not None:
            rules = _rules(self.rule_thresholds, self.rule_weights)
        scores = style_of("mixture_scores", self.mixture_scores)
        return rules, {
            name: float(as_floats(f"mixture_scores[{name!r}]", score))
            for name, score in scores.items()
        }

    def _plot_mixture(self, ax, rules, scores):
        """A line for each rule of a mixture, and its scores at their mean threshold."""
        self.rules_, self.points_ = [], []
        if rules is None:
            return
        thresholds, weights = rules
        drawn = np.isfinite(thresholds)
        for threshold, weight in zip(thresholds[drawn], weights[drawn], strict=True):
            self.rules_.append(
                ax.axvline(
                    threshold,
                    color="0.2",
                    linestyle=":",
                    label="rule of the mixture",
                    alpha=0.3 + 0.7 * weight,
                )
            )
            if len(self.rules_) > 1:
                self.rules_[-1].set_label("_rule")
        if not weights[drawn].sum() > 0.0:
            return
        middle = weights[drawn] @ thresholds[drawn] / weights[drawn].sum()
        for line, name in zip(self.lines_, self.scores, strict=True):
            if name in scores:
                self.points_ += ax.plot(
                    [middle], [scores[name]], marker="o", linestyle="none",
                    color=line.get_color(), label="_mixture",
                )  # fmt: skip

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **line_kw: Any,
    ) -> Self:
        """Plot the effect of the threshold of a fitted classifier on some examples.

        Parameters
        ----------
        estimator : ComplexMetricClassifier
            Fitted classifier for two classes, without rules per group. The plot shows its
            metric, its constraints and its threshold or, if it is a mixture, those of its
            rules with the scores of the mixture.
        X, y : as for its `fit`
            Examples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.
        ax, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : ThresholdDisplay
            Object that stores the data and the plot.

        Raises
        ------
        TypeError
            If the estimator is not a `ComplexMetricClassifier`.
        ValueError
            If there are more than two classes, or if the metric or a constraint uses
            groups or individual costs.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "ThresholdDisplay.from_estimator")
        estimator = snapshot(estimator)
        for attribute in ("metric", "constraints", "estimator_"):
            if not hasattr(estimator, attribute):
                raise TypeError(
                    "estimator must be a fitted ComplexMetricClassifier with "
                    f"lmo='plugin'; {type(estimator).__name__} has no {attribute!r}."
                )
        answer = Answer("predict_proba", estimator.estimator_)
        probabilities = estimator.estimator_.predict_proba(X)
        probabilities = answer.probabilities(probabilities, _num_samples(X), "n_classes")
        if probabilities.shape[1] != 2:
            raise ValueError(
                f"Thresholds require two classes; got {probabilities.shape[1]}."
            )
        return cls.from_predictions(
            y,
            probabilities[:, estimator.mixture_.named],
            metric=estimator.metric,
            constraints=estimator.constraints,
            threshold=getattr(estimator, "threshold_", None),
            cv_thresholds=getattr(estimator, "cv_thresholds_", None),
            labels=estimator.classes_,
            sample_weight=sample_weight,
            **_rules_of(estimator),
            ax=ax,
            **line_kw,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        metric: str | ConfusionMetric = "g_mean",
        constraints: Constraint | list[Constraint] | tuple[Constraint, ...] = (),
        threshold: float | None = None,
        cv_thresholds: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        rule_thresholds: ArrayLike | None = None,
        rule_weights: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **line_kw: Any,
    ) -> Self:
        """Plot the effect of thresholds of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, of two classes.
        y_score : array-like of shape (n_samples,)
            Probabilities, or other scores, of the label that the metric or a constraint
            names; of the second label if none is named.
        metric : str or ConfusionMetric, default="g_mean"
            Metric to plot.
        constraints : Constraint or sequence of them, default=()
            Constraints to check.
        threshold : float, default=None
            Threshold to mark.
        cv_thresholds : array-like of shape (n_folds,), default=None
            Further thresholds, drawn as ticks.
        labels : array-like of shape (2,), default=None
            Class labels. None uses those that occur, in sorted order.
        rule_thresholds : array-like of shape (n_rules,), default=None
            Thresholds of the rules of a mixture, to mark.
        rule_weights : array-like of shape (n_rules,), default=None
            Their probabilities. None means equal ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.
        ax, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : ThresholdDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError
            As for :meth:`from_estimator`.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "ThresholdDisplay.from_predictions")
        y_true = as_labels(y_true, "y_true")
        classes = np.unique(y_true) if labels is None else as_classes(labels, "labels")
        if len(classes) != 2:
            raise ValueError(f"Thresholds require two classes; got {len(classes)}.")
        y = encode(y_true, classes, "y_true")
        y_score = as_floats("y_score", y_score, len(y))
        weights = check_weights(sample_weight, len(y))
        metric, constraints = get_metric(metric, classes), read_constraints(constraints)
        for part in (metric, *constraints):
            if getattr(part, "needs_groups", False) or part.needs_costs:
                raise ValueError(
                    f"{part!r} uses groups or individual costs of the examples, so a "
                    "single threshold does not determine its value."
                )
        _, cells = make_cells(y, weights, classes)
        for constraint in constraints:
            constraint.check(cells)
        names = classes.tolist()
        own_label = metric.positive_label(classes)
        label = own_label
        for part in constraints:
            label = part.positive_label(classes) if label is None else label
        label = names[1] if label is None else label
        shown = names.index(label)
        # The named label counts as the second one until all is counted.
        is_named = (y == shown).astype(np.intp)
        thresholds, tensors = _at_thresholds(is_named, y_score, weights)
        if rule_thresholds is not None:
            rules = _rules(rule_thresholds, rule_weights)
            # Ties go to the first label.
            is_above = np.greater if shown else np.greater_equal
            mixed = sum(
                weight * _tensor_at(is_named, is_above(y_score, threshold), weights)
                for threshold, weight in zip(*rules, strict=True)
            )
            tensors = np.concatenate([tensors, mixed[None]])
        if shown == 0:
            tensors = tensors[:, :, ::-1, ::-1]
        hits, predicted = tensors[:, 0, shown, shown], tensors[:, 0, :, shown].sum(axis=1)
        share = cells.class_priors[shown]
        found = np.full((2, len(tensors)), np.nan)
        np.divide(hits, predicted, out=found[0], where=predicted > 0.0)
        np.divide(hits, share, out=found[1], where=share > 0.0)
        scores = {
            f"Precision of {label!r}": found[0],
            f"Recall of {label!r}": found[1],
        }
        name = metric.__name__.replace("_", " ").capitalize()
        if own_label is not None:
            name += f" of {own_label!r}"
        if name not in scores:
            scores[name] = [metric.score_of(C[0]) for C in tensors]
        mixture_scores = None
        if rule_thresholds is not None:
            mixture_scores = {name: float(values[-1]) for name, values in scores.items()}
            scores = {name: values[:-1] for name, values in scores.items()}
            tensors = tensors[:-1]
        violated = None
        if constraints:
            violated = [
                max(c.violation(C, cells) for c in constraints) > 0.0 for C in tensors
            ]
        display = cls(
            thresholds=thresholds,
            scores=scores,
            violated=violated,
            threshold=threshold,
            cv_thresholds=cv_thresholds,
            label=label,
            rule_thresholds=rule_thresholds,
            rule_weights=rule_weights,
            mixture_scores=mixture_scores,
        )
        return display.plot(ax, **line_kw)


def _rules_of(estimator):
    """Thresholds and weights of the rules of a fitted mixture, as parameters."""
    mixture = getattr(estimator, "mixture_", None)
    if mixture is None or len(mixture.weights) == 1 or mixture.n_groups > 1:
        return {}
    cuts = mixture.cuts().told
    # Not a number: the rule predicts the label below a threshold.
    if cuts.shape[1] > 1 or np.isnan(cuts).any():
        return {}
    return {"rule_thresholds": cuts[:, 0], "rule_weights": mixture.weights}


def _rules(thresholds, weights):
    """Thresholds and weights of the rules of a mixture, checked."""
    thresholds = floats_of("rule_thresholds", thresholds)
    if thresholds.ndim != 1 or not len(thresholds):
        raise ValueError(
            f"rule_thresholds must have shape (n_rules,); got {thresholds.shape}."
        )
    if weights is None:
        weights = np.ones(len(thresholds))
    weights = as_floats("rule_weights", weights, len(thresholds))
    return thresholds, weights / weights.sum()


def _tensor_at(y, positive, weights):
    """Confusion tensor (1, 2, 2) of predictions."""
    sums = np.bincount(2 * y + positive, weights=weights, minlength=4)
    return sums.reshape(1, 2, 2) / weights.sum()


def _at_thresholds(y, y_score, weights):
    """Thresholds, ascending, and the confusion tensors (T, 1, 2, 2) of `score > t`."""
    order = np.argsort(y_score, kind="stable")
    scores, cuts = y_score[order], np.flatnonzero(np.diff(y_score[order])) + 1
    thresholds = (scores[cuts - 1] + scores[cuts]) / 2.0
    cuts = np.concatenate([[0], cuts, [len(y)]])
    ends = np.nextafter(scores[[0, -1]], [-np.inf, np.inf])
    thresholds = np.concatenate([ends[:1], thresholds, ends[1:]])
    if len(cuts) > MOST_THRESHOLDS:
        kept = np.linspace(0, len(cuts) - 1, MOST_THRESHOLDS).astype(int)
        cuts, thresholds = cuts[kept], thresholds[kept]
    mass = weights[order] / weights.sum()
    below = [
        np.concatenate([[0.0], np.cumsum(mass * (y[order] == i))])[cuts] for i in (0, 1)
    ]
    tensors = np.empty((len(cuts), 1, 2, 2))
    for i, sums in enumerate(below):
        tensors[:, 0, i, 0], tensors[:, 0, i, 1] = sums, sums.max() - sums
    return thresholds, np.maximum(tensors, 0.0)
