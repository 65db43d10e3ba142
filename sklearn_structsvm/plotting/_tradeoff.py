"""The price of a constraint: metric and violation against its level."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm.confusion.registry import METRICS
from sklearn_structsvm.estimators.complex_metric.levels import MEASURES, fit_at_levels
from sklearn_structsvm.plotting._common import (
    Display,
    axes_or_new,
    band,
    check_axes,
    floats_of,
    full_names,
    legend_prefix,
    ready_to_draw,
    show_legend,
    style_of,
)

# Prefix of metrics of which less is better: the axis shows their negative.
_MINUS = "Minus "


class TradeoffDisplay(Display):
    """Plot of the metric and the constraint violation against the constraint level.

    The upper plot shows the score on training and held-out examples, compared with the
    score without constraints. The lower plot shows the violation of the constraints. In
    training there is none, since the constraints hold exactly; on held-out examples it
    reflects the estimation error. All values are expectations of the randomized
    classifier.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Read more in the :ref:`User Guide <guide-complex-metrics>`.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        Levels of the constraint, in any order.
    test_scores, test_violations : array-like of shape (n_levels,) or (n_levels, n_splits)
        Scores and violations on held-out examples. Violations are in the units of the
        constraint, and at most 0 if it holds. NaN means that no classifier satisfies the
        constraint in training or, for violations, that a held-out part lacks a group that
        a constraint names.
    train_scores, train_violations : array-like of the same shape, default=None
        Scores and violations in training.
    unconstrained_scores : array-like of shape (n_splits,) or float, default=None
        Scores on held-out examples without the constraints.
    level_name, score_name : str, default=None
        Labels of the axes.
    name : str, default=None
        Name in the legend.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (2,)
        Axes of the scores and of the violations. The latter is None if only one was
        given.
    ax_ : matplotlib Axes
        Axes of the scores.
    figure_ : matplotlib Figure
        Figure of the plot.
    lines_ : list of matplotlib Line2D
        Means on held-out examples and in training, first of scores and then of
        violations.
    fill_betweens_ : list of matplotlib PolyCollection
        Bands of one standard deviation over the splits around the lines.
    reference_ : matplotlib Line2D or None
        The score without constraints.
    infeasible_ : matplotlib Line2D or None
        Triangles at levels that no classifier reaches in some split.

    See Also
    --------
    AchievableSetDisplay : The achievable confusion matrices that satisfy a constraint.

    Examples
    --------
    >>> from sklearn_structsvm.plotting import TradeoffDisplay
    >>> display = TradeoffDisplay(
    ...     levels=[0.01, 0.05, 0.2],
    ...     test_scores=[0.61, 0.66, 0.70],
    ...     test_violations=[0.03, 0.01, -0.06],
    ...     level_name="slack",
    ... ).plot()
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['Score', 'Violation (≤ 0: met)']
    """

    lines_: list[Any]
    fill_betweens_: list[Any]

    def __init__(
        self,
        *,
        levels: ArrayLike,
        test_scores: ArrayLike,
        test_violations: ArrayLike,
        train_scores: ArrayLike | None = None,
        train_violations: ArrayLike | None = None,
        unconstrained_scores: ArrayLike | None = None,
        level_name: str | None = None,
        score_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self.levels = levels
        self.test_scores = test_scores
        self.test_violations = test_violations
        self.train_scores = train_scores
        self.train_violations = train_violations
        self.unconstrained_scores = unconstrained_scores
        self.level_name = level_name
        self.score_name = score_name
        self.name = name

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the scores and the violations.

        Parameters
        ----------
        ax : matplotlib Axes, or two of them, default=None
            Axes of the scores and of the violations, or of the scores only. They may hold
            other trade-offs. None makes a new figure.
        name : str, default=None
            Name in the legend. None uses that of the display.
        fill_between_kw : dict, default=None
            Passed to `fill_between`, which draws the bands.
        **line_kw : dict
            Passed to `plot`, which draws the lines.

        Returns
        -------
        display : TradeoffDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError
            If the shapes do not match.
        ImportError
            If matplotlib is not installed.
        """
        levels, results = self._checked()
        style_of("fill_between_kw", fill_between_kw)
        self.axes_ = scores_ax, violations_ax = _two_axes(ax)
        style = full_names(line_kw)
        name = style.pop("label", self.name if name is None else name)
        prefix = legend_prefix(name)
        self.lines_, self.fill_betweens_ = [], []
        self._draw(scores_ax, levels, results, "scores", prefix, style, fill_between_kw)
        self._draw_references(scores_ax, levels, results, prefix)
        level_name = "Level of the constraint"
        level_name = level_name if self.level_name is None else self.level_name
        scores_ax.set(ylabel="Score" if self.score_name is None else self.score_name)
        show_legend(scores_ax, fontsize="small")
        lowest = scores_ax
        if violations_ax is not None:
            lowest = violations_ax
            self._draw(
                lowest, levels, results, "violations", prefix, style, fill_between_kw
            )
            lowest.axhline(0.0, color="0.3", linewidth=0.8, zorder=1)
            lowest.set(ylabel="Violation (≤ 0: met)")
        lowest.set(xlabel=level_name)
        return self._finish(scores_ax)

    def _draw(self, ax, levels, results, what, prefix, style, fill_between_kw):
        """Means over the splits: solid with a band if held out, dashed in training."""
        color = self.lines_[0].get_color() if self.lines_ else None
        for part, label, linestyle in (
            ("test", "held out", "-"),
            ("train", "training", "--"),
        ):
            values = results.get(f"{part}_{what}")
            if values is None:
                continue
            # NaN, thus a gap in the line, if no classifier meets the level in some split.
            mean = values.mean(axis=1)
            defaults = {"marker": ".", "linestyle": linestyle, "color": color}
            defaults["label"] = prefix + label
            self.lines_ += ax.plot(levels, mean, **{**defaults, **style})
            color = self.lines_[-1].get_color()
            if part == "test" and values.shape[1] > 1:
                std = values.std(axis=1)
                self.fill_betweens_.append(
                    band(ax, levels, mean - std, mean + std, color, fill_between_kw)
                )

    def _draw_references(self, ax, levels, results, prefix):
        """The score without constraints, and marks at levels that cannot be met."""
        self.reference_ = self.infeasible_ = None
        color = self.lines_[0].get_color()
        if self.unconstrained_scores is not None:
            self.reference_ = ax.axhline(
                np.mean(self.unconstrained_scores),
                color=color,
                linestyle=":",
                label=f"{prefix}held out, without the constraint",
            )
        missing = np.isnan(results["test_scores"]).any(axis=1)
        if missing.any():
            # In units of the axes: on the lower edge whatever the range of the scores.
            (self.infeasible_,) = ax.plot(
                levels[missing],
                np.zeros(missing.sum()),
                transform=ax.get_xaxis_transform(),
                clip_on=False,
                color=color,
                marker="^",
                linestyle="none",
                label=f"{prefix}cannot be met",
            )

    def _checked(self):
        """Sorted levels, and a dict of results of shape (n_levels, n_splits)."""
        levels = floats_of("levels", self.levels)
        if levels.ndim != 1 or not levels.size:
            raise ValueError(
                f"levels must be 1-D and not empty; got shape {levels.shape}."
            )
        order, results = np.argsort(levels, kind="stable"), {}
        for key in MEASURES:
            values = getattr(self, key)
            if values is None:
                continue
            values = floats_of(key, values)
            if values.ndim not in (1, 2) or len(values) != len(levels):
                raise ValueError(
                    f"{key} must have {len(levels)} rows, one for each level; got shape "
                    f"{values.shape}."
                )
            results[key] = values.reshape(len(levels), -1)[order]
        return levels[order], results

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        param_name: str | Sequence[str],
        param_range: ArrayLike,
        cv: Any = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        n_jobs: int | None = None,
        score_name: str | None = None,
        name: str | None = None,
        ax: Any = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Cross-validate a classifier at several levels of its constraint, and plot it.

        Parameters
        ----------
        estimator : ComplexMetricClassifier
            Classifier, which is cloned and fitted for each split and level. Unless it has
            a `cv` of its own, its class probabilities are fitted once per split.
        X, y : as for its `fit`
            Examples.
        param_name : str or sequence of str
            Name of the constraint parameter to vary, as in ``get_params`` of the
            estimator: "constraints__slack" or "constraints__at_least" for a single
            constraint, "constraints__0__slack" for the first of several. Several names
            are set to the same level.
        param_range : array-like of shape (n_levels,)
            Levels.
        cv : int, splitter or iterable, default=None
            Splits into training and held-out examples. None means 5 folds. For a single
            split use ``cv=ShuffleSplit(1)``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.
        sensitive_features : array-like or data frame, default=None
            Groups of the examples.
        n_jobs : int, default=None
            Number of splits that are processed in parallel.
        score_name : str, default=None
            Label of the y axis. None uses the name of the metric.
        name, ax, fill_between_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : TradeoffDisplay
            Object that stores the data and the plot.

        Raises
        ------
        TypeError
            If the estimator has no metric and constraints.
        ValueError
            If no constraint has the parameter, and as for :meth:`plot` and for `fit` of
            the estimator.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "TradeoffDisplay.from_estimator", _two_axes)
        for attribute in ("metric", "constraints"):
            if not hasattr(estimator, attribute):
                raise TypeError(
                    "estimator must be a ComplexMetricClassifier; "
                    f"{type(estimator).__name__} has no {attribute!r}."
                )
        levels = as_floats("param_range", param_range, "n_levels")
        results, unconstrained = fit_at_levels(
            estimator,
            X,
            y,
            param_name,
            levels.tolist(),
            cv,
            sample_weight,
            sensitive_features,
            n_jobs,
        )
        display = cls(
            levels=levels,
            unconstrained_scores=unconstrained,
            level_name=_level_name(param_name),
            score_name=_name_of(estimator.metric) if score_name is None else score_name,
            name=name,
            **results,
        )
        return display.plot(ax, fill_between_kw=fill_between_kw, **line_kw)


def _two_axes(ax):
    """Axes for scores and violations, shape (2,); a new figure if `ax` is None."""
    if ax is None:
        figure = axes_or_new(None, "TradeoffDisplay.plot").figure
        figure.clear()
        return figure.subplots(2, sharex=True, height_ratios=(3, 2))
    axes = np.empty(2, dtype=object)
    given = np.ravel(np.asarray(ax, dtype=object))
    if len(given) > 2:
        raise ValueError(f"ax must be one or two Axes; got {len(given)}.")
    axes[: len(given)] = [*map(check_axes, given)]
    return axes


def _level_name(param_name):
    """Axis label for the levels of a parameter, or of several."""
    names = [param_name] if isinstance(param_name, str) else param_name
    return ", ".join(dict.fromkeys(name.rpartition("__")[2] for name in names))


def _name_of(metric):
    """Axis label for the score of a metric."""
    name = metric if isinstance(metric, str) else metric.__name__
    name = name.replace("_", " ").capitalize()
    metric = METRICS[metric]() if isinstance(metric, str) else metric
    return name if metric.greater_is_better else f"{_MINUS}{name.lower()}"
