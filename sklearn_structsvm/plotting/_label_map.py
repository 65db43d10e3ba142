"""All labelings of one example in the plane of slack rescaling's search."""

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    as_floats,
    check_integer,
)
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.plotting._common import (
    PYPLOT,
    Display,
    axes_or_new,
    require,
    show_legend_below,
)
from sklearn_structsvm.solvers.blocks._slack_oracle import points_of
from sklearn_structsvm.solvers.blocks.slack_search import (
    SearchName,
    SlackSearchResult,
    check_search,
    find_most_violating,
)

# Number of points of the curve g h = const through the labeling found.
_N_CURVE = 200
# The axes are this many times as long as the outermost point needs.
_AXES_STRETCH = 1.08
# Share of the height below g = 0, so that the mark of the true labeling is not cut.
_AXES_BELOW = 0.04
# Opacity of the first query; the last one is opaque.
_PALEST = 0.35

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LabelMapDisplay(Display):
    r"""Plot of the labelings of one example by margin and loss, with a search.

    A labeling y is drawn at its margin violation :math:`h(y) = 1 + f(y) - f(y_{true})`
    and its loss :math:`g(y) = L(y_{true}, y)`. Slack rescaling maximizes the product h g,
    whose level curves are hyperbolas. Its oracles can only maximize :math:`h + \lambda
    g`, whose level curves are lines, over all labelings or over those between two rays
    from the origin (Figures 1, 5 and 6 of [1]_). Each query is drawn as such a line
    between its rays. A cross on the line marks the answer. No labeling between the rays
    lies above the line, except those that cannot be the most violating: built-in
    structures omit labelings that are exceeded by another in both h and g. Later queries
    are darker. Labelings with :math:`h \le 0` do not violate the margin. Only those near
    0 are shown, in at most a third of the width.

    It is recommended to use :meth:`from_estimator` to create the display. All parameters
    are stored as attributes.

    Read more in the :ref:`User Guide <guide-graphs>`.

    Parameters
    ----------
    points : array-like of shape (n_labelings, 2)
        Columns h and g.
    result : SlackSearchResult
        Result of the search, with its trace.
    name : str, default=None
        Name of the search in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    scatter_ : matplotlib PathCollection
        The labelings.
    found_ : matplotlib Line2D
        The labeling found by the search.
    true_ : matplotlib Line2D
        The true labeling, at h = 1 and g = 0.
    lines_, answers_ : list of matplotlib Line2D
        For each query that found a labeling, the line and the labeling.
    rays_ : list of matplotlib Line2D
        The rays that bound the queries.
    curve_ : matplotlib Line2D or None
        The hyperbola through the labeling found; None if no labeling violates the margin.

    References
    ----------
    .. [1] Choi, Meshi, Srebro, "Fast and scalable structural SVM with slack rescaling",
       AISTATS 2016.

    Examples
    --------
    >>> from sklearn_structsvm import SlackRescaledSSVM
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> from sklearn_structsvm.plotting import LabelMapDisplay
    >>> X, Y = make_multilabel(n_samples=40, n_classes=5, random_state=0)
    >>> model = SlackRescaledSSVM(C=0.1, tol=0.01, random_state=0).fit(X, Y)
    >>> display = LabelMapDisplay.from_estimator(model, X[0], Y[0])
    >>> display.points.shape
    (32, 2)
    """

    true_: Any
    found_: Any

    def __init__(
        self, *, points: ArrayLike, result: SlackSearchResult, name: str | None = None
    ) -> None:
        self.points = points
        self.result = result
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        y: Any,
        *,
        search: SearchName | None = None,
        max_queries: int | None = None,
        max_labelings: int = 2**14,
        ax: "Axes | None" = None,
        name: str | None = None,
        **scatter_kw: Any,
    ) -> Self:
        """Search the labelings of one example with the weights of a fitted estimator.

        Parameters
        ----------
        estimator : fitted SlackRescaledSSVM, BCFWClassifier or BCFWClassifierCV
            Source of the structure and the weights.
        x, y : an item of X and of y, as passed to `fit`
            The example.
        search : str, default=None
            One of the searches of `SlackRescaledSSVM`. None uses that of the estimator,
            or "angular" if it has none.
        max_queries : int, default=None
            Stop the search after this many queries, to show its progress. None means no
            limit.
        max_labelings : int, default=16384
            All labelings are drawn if there are at most this many. Otherwise, and for
            user-defined structures, only those found by the queries are drawn.
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        name : str, default=None
            Name of the search in the legend. None uses that of the search.
        **scatter_kw : dict
            Passed to `scatter`, which draws the labelings.

        Returns
        -------
        display : LabelMapDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If the estimator has no structure.
        ValueError
            If the structure does not support the search, or if x and y do not match the
            training data.
        """
        require(PYPLOT, "LabelMapDisplay.from_estimator")
        estimator = snapshot(estimator)
        check_is_fitted(estimator)
        if not hasattr(estimator, "structure_"):
            raise TypeError(
                "LabelMapDisplay needs an estimator over a structure, such as "
                f"SlackRescaledSSVM; {type(estimator).__name__} has no 'structure_'."
            )
        if max_queries is not None:
            check_integer("max_queries", max_queries, 1)
        check_integer("max_labelings", max_labelings, 1)
        structure = estimator.structure_
        X, Y = _one_example(structure, x, y)
        w = np.ascontiguousarray(estimator._weights)
        if search is None:
            search = cast(Any, getattr(estimator, "search", "angular"))
        oracle = structure.make_oracle(X, Y)
        check_search(oracle, search, type(structure).__name__)
        limit = {} if max_queries is None else {"max_queries": max_queries}
        result = find_most_violating(oracle, 0, w, search=search, trace=True, **limit)
        labelings = _all_labelings(structure, X, oracle, max_labelings)
        if labelings is None:
            trace = result.trace or {}
            met = trace["found"]
            points = np.column_stack([trace["margin"][met], trace["loss"][met]])
            points = np.unique(np.vstack([[1.0, 0.0], points]), axis=0)
        else:
            points = points_of(oracle, 0, w, labelings)
        display = cls(points=points, result=result, name=name or search)
        return display.plot(ax=ax, **scatter_kw)

    def plot(
        self, ax: "Axes | None" = None, *, name: str | None = None, **scatter_kw: Any
    ) -> Self:
        """Draw the labelings, the queries and the labeling found.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        name : str, default=None
            Name of the search in the legend. None uses that of the display.
        **scatter_kw : dict
            Passed to `scatter`, which draws the labelings.

        Returns
        -------
        display : LabelMapDisplay
            Object that stores the data and the plot.
        """
        if not isinstance(self.result, SlackSearchResult):
            raise TypeError(f"result must be a SlackSearchResult; got {self.result!r}.")
        points = as_floats("points", self.points, "n_labelings", 2)
        ax = axes_or_new(ax, "LabelMapDisplay.plot")
        name = self.name if name is None else name
        style = {"s": 9, "color": "0.35", "linewidths": 0, "label": "labelings"}
        self.scatter_ = ax.scatter(*points.T, **{**style, **scatter_kw})
        right = _AXES_STRETCH * max(points[:, 0].max(), 1.0)
        leftmost = min(-_AXES_BELOW * right, _AXES_STRETCH * points[:, 0].min())
        left = max(leftmost, -right / 2)
        top = _AXES_STRETCH * max(points[:, 1].max(), self.result.loss) or 1.0
        self._draw_queries(ax, right, top, name)
        self.curve_ = None
        if self.result.value > 0:
            h = np.linspace(self.result.value / top, right, _N_CURVE)
            (self.curve_,) = ax.plot(
                h,
                self.result.value / h,
                color="C3",
                linestyle="--",
                label=f"g h = {self.result.value:.3g}",
            )
        (self.true_,) = ax.plot(
            1.0,
            0.0,
            marker="o",
            markersize=7,
            markerfacecolor="none",
            color="0.2",
            linestyle="none",
            label="true labeling",
        )
        (self.found_,) = ax.plot(
            self.result.margin,
            self.result.loss,
            marker="*",
            markersize=12,
            zorder=4,
            color="C3",
            linestyle="none",
            label="most violating found" if self.result.value > 0 else "nothing violates",
        )
        ax.axvline(0.0, color="0.85", linewidth=0.8, zorder=0)
        ax.axhline(0.0, color="0.85", linewidth=0.8, zorder=0)
        ax.set(
            xlim=(left, right),
            ylim=(-_AXES_BELOW * top, top),
            xlabel="Margin violation h = 1 + f(y) - f(y_true)",
            ylabel="Loss g = L(y_true, y)",
        )
        # Below the axes: the lines and the curve cross all corners of the axes.
        show_legend_below(ax)
        return self._finish(ax)

    def _draw_queries(self, ax, right, top, name):
        """Per query: its angle, its answer, and the line of equal h + λ g through it."""
        self.lines_, self.answers_, self.rays_ = [], [], []
        trace = self.result.trace
        if trace is None:
            return
        slopes = np.unique(np.concatenate([trace["alpha"], trace["beta"]]))
        for slope in slopes[(slopes > 0) & np.isfinite(slopes)]:
            end = min(right, top / slope)
            self.rays_ += ax.plot(
                [0.0, end],
                [0.0, slope * end],
                color="0.75",
                linewidth=0.8,
                zorder=0,
                label=None if self.rays_ else "sides of angles",
            )
        found = trace["found"]
        keys = ("lam", "alpha", "beta", "margin", "loss")
        shades = np.linspace(1.0, _PALEST, found.sum())[::-1]
        queries = "query" if self.result.n_queries == 1 else "queries"
        label = f"{name}: {self.result.n_queries} {queries}"
        for lam, alpha, beta, h, g, shade in zip(
            *(trace[key][found] for key in keys), shades, strict=True
        ):
            ends = _line_in_angle(lam, h + lam * g, alpha, beta, top)
            style = {"color": "C0", "alpha": shade}
            self.lines_ += ax.plot(*np.transpose(ends), linewidth=1.2, zorder=2, **style)
            self.answers_ += ax.plot(
                h, g, marker="x", markersize=8, linestyle="none", zorder=3, **style
            )
        if self.lines_:
            self.lines_[-1].set_label(label)
            self.answers_[-1].set_label("answers")


def _one_example(structure, x, y):
    if not structure.flat:
        X, Y = structure.check_data([x], [y])
        if structure._is_empty(X[0]):
            raise ValueError("x is empty, and has nothing to label.")
        return X, Y
    x = as_canonical(x, "x")
    x = x.reshape(1, -1) if sparse.issparse(x) else as_array("x", x).reshape(1, -1)
    x = check_array(x, accept_sparse="csr", dtype=np.float64, order="C", input_name="x")
    if x.shape[1] != structure.n_features_in_:
        raise ValueError(
            f"x must have {structure.n_features_in_} features, as in fit; "
            f"got {x.shape[1]}."
        )
    return x, as_array("y", [y])


def _all_labelings(structure, X, oracle, most):
    """All labelings of X[0] as the oracle encodes them; None if they are too many."""
    if not oracle.thread_safe:  # Only a structure in Python knows its labelings.
        return None
    n_labels = len(oracle.decode(np.zeros(oracle.n_weights)))
    n_values = 2
    if structure.has_classes and not getattr(structure, "multi_label", False):
        n_values = len(structure.classes_)
    if n_labels * np.log(n_values) > np.log(most) + 1e-9:
        return None
    grid = np.indices((n_values,) * n_labels, dtype=np.intc).reshape(n_labels, -1).T
    if getattr(structure, "allowed_", None) is not None:
        copies = [X[0]] * len(grid)
        labels = np.concatenate(structure._split_nodes(copies, grid.ravel()))
        grid = grid[~structure._impossible(copies, labels)]
    return np.ascontiguousarray(grid)


def _line_in_angle(lam, highest, alpha, beta, top):
    """Ends of the line h + lam g = highest between two rays; `top` ends vertical ones."""
    ends = []
    for slope in (beta, alpha):
        if not np.isfinite(slope):
            h = 0.0 if lam > 0 else highest
            ends.append((h, highest / lam if lam > 0 else top))
        else:
            h = highest / (1.0 + lam * slope)
            ends.append((h, slope * h))
    return ends
