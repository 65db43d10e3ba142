"""What a constraint costs: metric and violation against the constraint's level."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm.confusion.registry import METRICS
from sklearn_structsvm.plotting._common import (
    BAND_STYLE,
    axes_or_new,
    full_names,
    show_legend,
)
from sklearn_structsvm.plotting._level_fits import MEASURES, fit_at_levels

# Height of the scores' axes relative to that of the violations'.
_HEIGHTS = (3, 2)

# How a metric of costs, of which less is better, stands on the axis.
_MINUS = "Minus "

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TradeoffDisplay:
    """Metric, and violation of the constraints, against the level of a constraint.

    Above, the score on the training and on held-out examples: how much of it each level
    costs, beside the score without a constraint. Below, how far the constraints are
    violated: not at all in training, where they are met exactly, but on other examples
    by what estimation leaves. Both are those of the randomised classifier, expected over
    its draws.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as
    attributes.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        In any order.
    test_scores, test_violations : array-like of shape (n_levels,) or (n_levels, n_splits)
        Of held-out examples. Violations are in the constraint's own units, and not
        positive where it is met. NaN where no classifier meets it in training, and
        violations also where a held-out part lacks a group that a constraint names.
    train_scores, train_violations : array-like of the same shape, default=None
    unconstrained_scores : array-like of shape (n_splits,) or float, default=None
        On held-out examples, without the constraints.
    level_name, score_name : str, default=None
        Labels of the axes.
    name : str, default=None
        Name in the legend.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (2,)
        For the scores and the violations; the latter None where one only was given.
    ax_ : matplotlib Axes
        For the scores.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        Means on held-out examples and in training: scores, and then violations.
    fill_betweens_ : list of matplotlib PolyCollection
        One standard deviation over the splits to either side of a line.
    reference_ : matplotlib Line2D or None
        The score without a constraint.
    infeasible_ : matplotlib Line2D or None
        Triangles at the levels that no classifier reached in some split.

    See Also
    --------
    AchievableSetDisplay : What a constraint leaves of the achievable confusion matrices.

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

    ax_: "Axes"
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
        """Draw scores and violations.

        Parameters
        ----------
        ax : matplotlib Axes, or two of them, default=None
            Axes for the scores, and for the violations; a single one for the scores
            alone. They may have other trade-offs in them. None makes a new figure.
        name : str, default=None
            Name in the legend; None takes the display's.
        fill_between_kw : dict, default=None
            Passed to `fill_between`, which draws the bands.
        **line_kw : dict
            Passed to `plot`, which draws the lines.

        Returns
        -------
        display : TradeoffDisplay

        Raises
        ------
        ValueError
            If the shapes do not fit.
        ImportError
            If matplotlib is missing.
        """
        levels, results = self._checked()
        self.axes_ = _two_axes(ax)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        style = full_names(line_kw)
        name = style.pop("label", self.name if name is None else name)
        prefix = "" if name is None else f"{name}, "
        band = {**BAND_STYLE, **(fill_between_kw or {})}
        self.lines_, self.fill_betweens_ = [], []
        self._draw(self.ax_, levels, results, "scores", prefix, style, band)
        self._draw_references(levels, results, prefix)
        level_name = "Level of the constraint"
        level_name = level_name if self.level_name is None else self.level_name
        self.ax_.set(ylabel="Score" if self.score_name is None else self.score_name)
        show_legend(self.ax_, fontsize="small")
        lowest, violations_ax = self.ax_, self.axes_[1]
        if violations_ax is not None:
            lowest = violations_ax
            self._draw(lowest, levels, results, "violations", prefix, style, band)
            lowest.axhline(0.0, color="0.3", linewidth=0.8, zorder=1)
            lowest.set(ylabel="Violation (≤ 0: met)")
        lowest.set(xlabel=level_name)
        return self

    def _draw(self, ax, levels, results, what, prefix, style, band):
        """Means over the splits: held-out ones with a band, and in training dashed."""
        color = None if ax is self.ax_ else self.lines_[0].get_color()
        for part, label, linestyle in (
            ("test", "held out", "-"),
            ("train", "training", "--"),
        ):
            values = results.get(f"{part}_{what}")
            if values is None:
                continue
            # A level that some split cannot reach has no mean over all of them.
            mean = values.mean(axis=1)
            defaults = {"marker": ".", "linestyle": linestyle, "color": color}
            defaults["label"] = prefix + label
            self.lines_ += ax.plot(levels, mean, **{**defaults, **style})
            color = self.lines_[-1].get_color()
            if part == "test" and values.shape[1] > 1:
                std = values.std(axis=1)
                self.fill_betweens_.append(
                    ax.fill_between(
                        levels, mean - std, mean + std, **{"color": color, **band}
                    )
                )

    def _draw_references(self, levels, results, prefix):
        """The score without constraints, and the levels that cannot be reached."""
        self.reference_ = self.infeasible_ = None
        color = self.lines_[0].get_color()
        if self.unconstrained_scores is not None:
            self.reference_ = self.ax_.axhline(
                np.mean(self.unconstrained_scores),
                color=color,
                linestyle=":",
                label=f"{prefix}held out, without the constraint",
            )
        missing = np.isnan(results["test_scores"]).any(axis=1)
        if missing.any():
            # On the lower edge of the axes, whatever their range.
            (self.infeasible_,) = self.ax_.plot(
                levels[missing],
                np.zeros(missing.sum()),
                transform=self.ax_.get_xaxis_transform(),
                clip_on=False,
                color=color,
                marker="^",
                linestyle="none",
                label=f"{prefix}cannot be met",
            )

    def _checked(self):
        """Levels in order, and the results of shape (n_levels, n_splits) by name."""
        levels = np.asarray(self.levels, dtype=np.float64)
        if levels.ndim != 1 or not levels.size:
            raise ValueError(
                f"levels must be 1-D and not empty; got shape {levels.shape}."
            )
        order, results = np.argsort(levels, kind="stable"), {}
        for key in MEASURES:
            values = getattr(self, key)
            if values is None:
                continue
            values = np.asarray(values, dtype=np.float64)
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
        """Cross-validate a classifier at several levels of its constraint.

        Parameters
        ----------
        estimator : ComplexMetricClassifier
            Is cloned, and fitted for each split and level. Without `cv` of its own, its
            class probabilities are fitted once for each split.
        X, y : as for its `fit`
        param_name : str or sequence of str
            The parameter of the constraint that is the level, as ``get_params`` of the
            estimator has it: "constraints__slack" or "constraints__at_least" of one
            constraint, "constraints__0__slack" of the first of several. With a sequence
            of names all of these get the level.
        param_range : array-like of shape (n_levels,)
        cv : int, splitter or iterable, default=None
            The splits into training and held-out examples; None is 5 folds. One split is
            ``cv=ShuffleSplit(1)``.
        sample_weight : array-like of shape (n_samples,), default=None
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), \
default=None
        n_jobs : int, default=None
            Splits at once.
        score_name : str, default=None
            Label of the y axis; None is the name of the metric.
        name, ax, fill_between_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : TradeoffDisplay

        Raises
        ------
        TypeError
            If the estimator has no metric and constraints.
        ValueError
            If no constraint has that parameter, and as for :meth:`plot` and the
            estimator's `fit`.
        ImportError
            If matplotlib is missing.
        """
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
    """Axes for scores and violations, shape (2,); of a new figure for None."""
    if ax is None:
        figure = axes_or_new(None, "TradeoffDisplay.plot").figure
        figure.clear()
        return figure.subplots(2, sharex=True, height_ratios=_HEIGHTS)
    axes = np.empty(2, dtype=object)
    given = np.ravel(np.asarray(ax, dtype=object))
    if len(given) > 2:
        raise ValueError(f"ax must be one or two Axes; got {len(given)}.")
    axes[: len(given)] = given
    return axes


def _level_name(param_name):
    """Label of an axis with the levels of parameters."""
    names = [param_name] if isinstance(param_name, str) else param_name
    return ", ".join(dict.fromkeys(name.rpartition("__")[2] for name in names))


def _name_of(metric):
    """Label of an axis with a metric's score."""
    name = metric if isinstance(metric, str) else metric.__name__
    name = name.replace("_", " ").capitalize()
    metric = METRICS[metric]() if isinstance(metric, str) else metric
    return name if metric.greater_is_better else f"{_MINUS}{name.lower()}"
