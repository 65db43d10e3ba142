"""The achievable confusion matrices in a plane, and the best one found by a solver."""

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats, as_tuple
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.estimators.complex_metric.confusion_sample import (
    ConfusionPlane,
    ConfusionSample,
)
from sklearn_structsvm.plotting._common import (
    NO_MATH,
    Display,
    axes_or_new,
    full_names,
    legend_prefix,
    ready_to_draw,
    show_legend_below,
    style_of,
)

# Margin of the axes, as a share of the largest coordinates.
_AXES_MARGIN = 0.03

_SET_STYLE = {"alpha": 0.12, "linewidth": 0, "zorder": 0.5}
_FEASIBLE_STYLE = {"color": "C2", "alpha": 0.3, "linewidth": 0, "zorder": 0.6}
_CONTOUR_STYLE = {"colors": "0.6", "linewidths": 0.8, "levels": 9, "zorder": 0.8}
_BEST_STYLE = {"linewidths": 1.0, "linestyles": "--", "zorder": 0.9}
_MARK_COLOR = "C3"
# Shapes of what is drawn at points.
_POINTS: dict[str, tuple[Any, ...]] = {
    "achievable": ("n_vertices", 2),
    "feasible": ("n", 2),
    "path": ("n_path", 2),
    "classifiers": ("n_classifiers", 2),
    "most_probable": (2,),
    "found": (2,),
}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AchievableSetDisplay(Display):
    """Plot of the set of achievable confusion matrices and of the best one.

    The confusion matrices of all randomized classifiers based on given class
    probabilities form a convex set 𝒞. The plot shows the projection of 𝒞 onto two entries
    of the matrix, by default the recalls of two classes. Its outline is computed by calls
    of the linear minimization oracle in many directions. The plot also shows

    - contours of the metric's score, if the two entries determine it: for two classes,
      one entry per label, over all examples. The contour of the mixture found is dashed,
      and touches the set there;
    - shaded, the part of the set that satisfies the constraints;
    - a star for the mixture found, crosses for its classifiers, a line for the path of
      the solver, and a circle for the classifier that predicts the most probable class.

    The parameter `confusion` of :class:`~sklearn_structsvm.ComplexMetricClassifier` says
    how C is counted. With "probabilities" it is the expectation under the probabilities.
    With "labels" and two classes, 𝒞 is the set of all thresholds. With "labels" and more
    classes, the outline is that of the plug-in rules of many loss matrices.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. All parameters
    are stored as attributes.

    Read more in the :ref:`User Guide <guide-complex-metrics>`.

    Parameters
    ----------
    achievable : array-like of shape (n_vertices, 2)
        Outline of the projection of 𝒞, counterclockwise.
    axis_names : pair of str
        Names of the axes.
    limits : pair of float, default=(1, 1)
        Maximum of each coordinate.
    feasible : array-like of shape (n, 2), default=None
        Outline of the part that satisfies the constraints; n = 0 if it is empty.
    contours : tuple (x, y, values), default=None
        ``values[b, a]`` is the score at ``x[a]`` and ``y[b]``.
    found : array-like of shape (2,), default=None
        The mixture found.
    classifiers : array-like of shape (n_mixture, 2), default=None
        The classifiers of the mixture.
    path : array-like of shape (n_iter, 2), default=None
        The mixtures on the path of the solver.
    most_probable : array-like of shape (2,), default=None
        The classifier that predicts the most probable class.
    name : str, default=None
        Name of the set in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    line_ : matplotlib Line2D
        The outline.
    set_, feasible_ : matplotlib Polygon
        The filled sets. `feasible_` is None if there are no constraints, or if the part
        is empty.
    contours_ : matplotlib QuadContourSet or None
        Contours of the score.
    best_contour_ : matplotlib QuadContourSet or None
        Contour at the score of the mixture found.
    path_, classifiers_, found_, most_probable_ : matplotlib Line2D or None
        Line and marks.

    See Also
    --------
    TradeoffDisplay : The metric against the level of a constraint.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", JMLR, 2024, Figures 2,
       3, 5 and 6.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.plotting import AchievableSetDisplay
    >>> X, y = make_classification(weights=[0.8], flip_y=0.2, random_state=0)
    >>> model = ComplexMetricClassifier(metric="h_mean").fit(X, y)
    >>> display = AchievableSetDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Recall of 0', 'Recall of 1')
    """

    def __init__(
        self,
        *,
        achievable: ArrayLike,
        axis_names: tuple[str, str],
        limits: tuple[float, float] = (1.0, 1.0),
        feasible: ArrayLike | None = None,
        contours: Any = None,
        found: ArrayLike | None = None,
        classifiers: ArrayLike | None = None,
        path: ArrayLike | None = None,
        most_probable: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.achievable = achievable
        self.axis_names = axis_names
        self.limits = limits
        self.feasible = feasible
        self.contours = contours
        self.found = found
        self.classifiers = classifiers
        self.path = path
        self.most_probable = most_probable
        self.name = name

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        name: str | None = None,
        contour_kw: dict[str, Any] | None = None,
        mark_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the sets, contours and marks.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into; they may hold other sets. None makes a new figure.
        name : str, default=None
            Name of the set in the legend. None uses that of the display.
        contour_kw : dict, default=None
            Passed to `contour`, which draws the metric.
        mark_kw : dict, default=None
            Passed to `plot`, which draws the path. All marks have its color.
        **line_kw : dict
            Passed to `plot`, which draws the outline.

        Returns
        -------
        display : AchievableSetDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        points = {name: self._points(name, *shape) for name, shape in _POINTS.items()}
        contours, limits = self._grid(), as_floats("limits", self.limits, 2)
        x_name, y_name = as_tuple("axis_names", self.axis_names, 2)
        lines = _CONTOUR_STYLE | style_of("contour_kw", contour_kw)
        mark_kw = style_of("mark_kw", mark_kw)
        ax = axes_or_new(ax, "AchievableSetDisplay.plot")
        name = self.name if name is None else name
        prefix = legend_prefix(name)
        marks = {"color": _MARK_COLOR, **full_names(mark_kw)}
        self._draw_sets(ax, points, name, prefix, full_names(line_kw))
        self._draw_contours(ax, contours, points["found"], lines, marks)
        self._draw_marks(ax, points, prefix, marks)
        right, top = limits * (1 + _AXES_MARGIN)
        left, bottom = limits * -_AXES_MARGIN
        ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set_xlabel(x_name, **NO_MATH)
        ax.set_ylabel(y_name, **NO_MATH)
        # Below the axes, because the set may fill any corner of them.
        show_legend_below(ax)
        return self._finish(ax)

    def _points(self, name, *shape):
        """The points of this parameter, of shape (n, 2); none of them for None."""
        points = getattr(self, name)
        if points is None and name != "achievable":
            return np.empty((0, 2))
        return as_floats(name, points, *shape).reshape(-1, 2)

    def _grid(self):
        """(x, y, values) of the contours, or None."""
        if self.contours is None:
            return None
        x, y, values = as_tuple("contours", self.contours, 3)
        x, y = as_floats("contours[0]", x, "n_x"), as_floats("contours[1]", y, "n_y")
        return x, y, as_floats("contours[2]", values, len(y), len(x))

    def _draw_sets(self, ax, points, name, prefix, style):
        outline = points["achievable"]
        closed = np.vstack([outline, outline[:1]])
        label = style.pop("label", "achievable" if name is None else name)
        (self.line_,) = ax.plot(*closed.T, label=label, **{"linewidth": 1.2, **style})
        (self.set_,) = ax.fill(*outline.T, color=self.line_.get_color(), **_SET_STYLE)
        self.feasible_ = None
        if len(points["feasible"]):
            (self.feasible_,) = ax.fill(
                *points["feasible"].T,
                label=f"{prefix}constraints met",
                **_FEASIBLE_STYLE,
            )

    def _draw_contours(self, ax, contours, found, style, marks):
        self.contours_ = self.best_contour_ = None
        if contours is None:
            return
        x, y, values = contours
        self.contours_ = ax.contour(x, y, values, **style)
        ax.clabel(self.contours_, fontsize="x-small", fmt="%.3g")
        if not len(found):
            return
        ((found_x, found_y),) = found
        score = np.interp(found_y, y, [np.interp(found_x, x, row) for row in values])
        if values.min() < score < values.max():
            style = {**_BEST_STYLE, "colors": [marks["color"]], "levels": [score]}
            self.best_contour_ = ax.contour(x, y, values, **style)

    def _draw_marks(self, ax, points, prefix, style):
        def draw(name, label, **defaults):
            if not len(points[name]):
                return None
            style_here = {"linestyle": "none", **defaults, "label": prefix + label}
            return ax.plot(*points[name].T, **style_here)[0]

        self.path_ = draw(
            "path",
            "solver's path",
            **{"linestyle": "-", "linewidth": 1.0, "marker": ".", "zorder": 3, **style},
        )
        if len(points["classifiers"]) == 1:  # It is the mixture itself.
            points = points | {"classifiers": []}
        self.classifiers_ = draw(
            "classifiers",
            "classifiers in the mixture",
            **{"marker": "x", "markersize": 8, "zorder": 4, "color": style["color"]},
        )
        self.most_probable_ = draw(
            "most_probable",
            "most probable class",
            **{"marker": "o", "markerfacecolor": "none", "zorder": 4},
            color=self.line_.get_color(),
        )
        self.found_ = draw(
            "found",
            "mixture",
            **{"marker": "*", "markersize": 12, "zorder": 5, "color": style["color"]},
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        entries: Any = None,
        normalize: bool = True,
        group: Any = None,
        path: bool = True,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        ax: "Axes | None" = None,
        name: str | None = None,
        contour_kw: dict[str, Any] | None = None,
        mark_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Plot what a fitted classifier could achieve on some examples, and what it does.

        Parameters
        ----------
        estimator : ComplexMetricClassifier
            Fitted classifier with ``lmo="plugin"``. The set is that of the class
            probabilities of its `estimator_`.
        X, y : as for its `fit`
            The training examples, to see what `fit` saw (approximately, with `cv`), or
            others.
        entries : pair, default=None
            The two entries to plot: a label for a diagonal entry, or a pair (label,
            prediction). None means the first two classes.
        normalize : bool, default=True
            Whether to divide by the fraction of the label, so that a diagonal entry is a
            recall. False plots fractions of all examples.
        group : group, default=None
            Count only the examples of this group.
        path : bool, default=True
            Whether to draw the path of the solver, which is run once more on these
            examples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.
        sensitive_features : array-like or data frame, default=None
            Groups of the examples, as for `predict`.
        ax, name, contour_kw, mark_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : AchievableSetDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If it is not a `ComplexMetricClassifier`, or its `lmo` is not "plugin".
        ValueError
            If a label or group does not occur.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "AchievableSetDisplay.from_estimator")
        estimator = snapshot(estimator)
        sample = ConfusionSample.of_estimator(
            estimator, X, y, sample_weight, sensitive_features
        )
        losses, weights = estimator.loss_matrices_, estimator.mixture_weights_
        confusions = np.array([sample.lmo.confusion(L) for L in losses])
        way = []
        if path:
            names, settings = ("tol", "max_iter", "max_time"), estimator._settings()
            options = {name: settings[name] for name in names}
            options |= estimator._options_of_solver()
            *_, way = sample.solve(settings["solver"], options)
        plane = ConfusionPlane(sample.cells, entries, normalize=normalize, group=group)
        display = cls._of(sample, plane, confusions, weights, way, name)
        return display.plot(ax, contour_kw=contour_kw, mark_kw=mark_kw, **line_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        metric: str | ConfusionMetric | None = None,
        constraints: Constraint | list[Constraint] | tuple[Constraint, ...] = (),
        labels: ArrayLike | None = None,
        confusion: Literal["auto", "labels", "probabilities"] = "auto",
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        entries: Any = None,
        normalize: bool = True,
        group: Any = None,
        path: bool = True,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        ax: "Axes | None" = None,
        name: str | None = None,
        contour_kw: dict[str, Any] | None = None,
        mark_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Plot what can be achieved with given class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Class probabilities; for two classes, 1-D probabilities of the second.
        metric : str or ConfusionMetric, default=None
            Metric to find the best mixture for, as
            :class:`~sklearn_structsvm.ComplexMetricClassifier` does. None draws only the
            set.
        constraints : Constraint or sequence of Constraint, default=()
            Constraints on the mixture.
        labels : array-like of shape (n_classes,), default=None
            Labels of the columns of `y_proba`. None uses those that occur, in sorted
            order.
        confusion, solver, solver_options
            As for :class:`~sklearn_structsvm.ComplexMetricClassifier`.
        entries, normalize, group, path, sample_weight, sensitive_features
            As for :meth:`from_estimator`.
        ax, name, contour_kw, mark_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : AchievableSetDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError, ImportError
            As for :meth:`from_estimator`, and if `y_proba` does not match the labels.
        """
        ready_to_draw(ax, "AchievableSetDisplay.from_predictions")
        metadata = labels, sample_weight, sensitive_features
        sample = ConfusionSample.of_predictions(
            y_true, y_proba, (metric, constraints), metadata, confusion
        )
        plane = ConfusionPlane(sample.cells, entries, normalize=normalize, group=group)
        confusions, weights, steps = [], [], []
        if metric is not None:
            confusions, weights, steps = sample.solve(solver, solver_options or {})
        steps = steps if path else []
        display = cls._of(
            sample, plane, confusions, weights, steps, name, contours=metric is not None
        )
        return display.plot(ax, contour_kw=contour_kw, mark_kw=mark_kw, **line_kw)

    @classmethod
    def _of(cls, sample, plane, confusions, weights, path, name, contours=True):
        """Display of a sample and of a mixture of the classifiers with `confusions`."""
        feasible = found = classifiers = None
        if sample.task.constraints:
            feasible = plane.feasible(sample.lmo, sample.task.constraints)
        if len(confusions):
            classifiers = plane.project(confusions)
            found = weights @ classifiers
        return cls(
            achievable=plane.achievable(sample.lmo),
            axis_names=plane.names,
            limits=plane.limits,
            feasible=feasible,
            contours=plane.scores(sample.task.metric) if contours else None,
            found=found,
            classifiers=classifiers,
            path=plane.project(path) if len(path) else None,
            most_probable=plane.project(sample.most_probable()),
            name=name,
        )
