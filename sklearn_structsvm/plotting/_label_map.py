"""The labelings of one example as slack rescaling's search sees them."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm.plotting._common import axes_or_new, show_legend
from sklearn_structsvm.solvers._slack_oracle import points_of
from sklearn_structsvm.solvers.slack_search import find_most_violating

# Points of the curve on which all labelings are as violating as the one found.
_N_CURVE = 200
# Empty angles and lines are drawn this much beyond the outermost point.
_MARGIN = 1.08


class LabelMapDisplay:
    r"""Labelings of one example in the plane of margin and loss, and a search in it.

    A labeling y is drawn at h(y) = 1 + f(y) - f(y_true) and g(y) = L(y_true, y). Slack
    rescaling looks for the largest h g, whose level curves are hyperbolas; its oracles
    can maximise h + λ g alone, whose level curves are lines, over all labelings or
    between two rays from the origin (Figures 1, 5 and 6 of [1]_). The line of each
    query has no labeling above it within its angle.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as
    attributes.

    Parameters
    ----------
    points : array-like of shape (n_labelings, 2)
        Columns h and g.
    result : SlackSearchResult
        What the search found, with its trace.
    name : str, default=None
        Name of the search in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    scatter_ : matplotlib PathCollection
        The labelings.
    found_ : matplotlib Line2D
        The labeling that the search found.
    lines_ : list of matplotlib Line2D
        One for each query that found a labeling.
    rays_ : list of matplotlib Line2D
        The sides of the angles.
    curve_ : matplotlib Line2D or None
        The hyperbola through the labeling that was found; None where nothing violates.

    References
    ----------
    .. [1] Choi, Meshi, Srebro, "Fast and scalable structural SVM with slack rescaling",
       AISTATS 2016.

    Examples
    --------
    >>> from sklearn_structsvm import SlackRescaledSSVM
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> from sklearn_structsvm.plotting import LabelMapDisplay
    >>> X, Y = make_multilabel(n_samples=40, n_labels=4, random_state=0)
    >>> model = SlackRescaledSSVM(C=0.1, tol=0.01, random_state=0).fit(X, Y)
    >>> display = LabelMapDisplay.from_estimator(model, X[0], Y[0])
    >>> display.points.shape
    (16, 2)
    """

    def __init__(self, *, points, result, name=None):
        self.points = points
        self.result = result
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        x,
        y,
        *,
        search=None,
        max_queries=None,
        max_labelings=2**14,
        ax=None,
        name=None,
        **scatter_kw,
    ):
        """Search the labelings of one example with a fitted estimator's weights.

        Parameters
        ----------
        estimator : fitted SlackRescaledSSVM, BCFWClassifier or BCFWClassifierCV
        x, y : an item of X and of y as `fit` takes them
        search : str, default=None
            One of the searches of `SlackRescaledSSVM`; None for that of the estimator,
            or "angular" where it has none.
        max_queries : int, default=None
            Stop the search after so many, to see it on its way; None for no limit.
        max_labelings : int, default=16384
            All labelings are drawn where there are at most so many, else those that the
            search met.
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        name : str, default=None
            Name of the search in the legend; None for that of the search.
        **scatter_kw : dict
            Passed to `scatter`, which draws the labelings.

        Returns
        -------
        display : LabelMapDisplay

        Raises
        ------
        ValueError
            If the structure cannot serve the search, or x and y are not of the kind
            that it was fitted to.
        """
        check_is_fitted(estimator)
        structure = estimator.structure_
        X, Y = _one_example(structure, x, y)
        w = np.ascontiguousarray(
            structure.join_weights(
                estimator.coef_, getattr(estimator, "intercept_", None)
            ),
            dtype=np.float64,
        )
        if search is None:
            search = getattr(estimator, "search", "angular")
        oracle = structure.make_oracle(X, Y)
        limit = {} if max_queries is None else {"max_queries": max_queries}
        result = find_most_violating(oracle, 0, w, search=search, trace=True, **limit)
        labelings = _all_labelings(structure, oracle, max_labelings)
        if labelings is None:
            met = result.trace["found"]
            points = np.column_stack(
                [result.trace["margin"][met], result.trace["loss"][met]]
            )
            points = np.unique(np.vstack([[1.0, 0.0], points]), axis=0)
        else:
            points = points_of(oracle, 0, w, labelings)
        display = cls(points=points, result=result, name=name or search)
        return display.plot(ax=ax, **scatter_kw)

    def plot(self, ax=None, *, name=None, **scatter_kw):
        """Draw labelings, queries and the labeling found.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        name : str, default=None
            Name of the search in the legend; None takes the display's.
        **scatter_kw : dict
            Passed to `scatter`, which draws the labelings.

        Returns
        -------
        display : LabelMapDisplay
        """
        ax = axes_or_new(ax, "LabelMapDisplay.plot")
        name = self.name if name is None else name
        points = np.asarray(self.points, dtype=np.float64)
        style = {"s": 9, "color": "0.35", "linewidths": 0, "label": "labelings"}
        self.scatter_ = ax.scatter(*points.T, **{**style, **scatter_kw})
        right = _MARGIN * max(points[:, 0].max(), 1.0)
        top = _MARGIN * max(points[:, 1].max(), self.result.loss, np.finfo(float).tiny)
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
        (self.found_,) = ax.plot(
            self.result.margin,
            self.result.loss,
            marker="*",
            markersize=12,
            color="C3",
            linestyle="none",
            label="most violating found" if self.result.value > 0 else "true labeling",
        )
        ax.set(
            xlim=(min(0.0, _MARGIN * points[:, 0].min()), right),
            ylim=(0.0, top),
            xlabel="Margin violation h = 1 + f(y) - f(y_true)",
            ylabel="Loss g = L(y_true, y)",
        )
        show_legend(ax, loc="upper right")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _draw_queries(self, ax, right, top, name):
        """Lines of equal h + λ g within their angles, and the angles' sides."""
        self.lines_, self.rays_ = [], []
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
        for lam, alpha, beta, found, h, g in zip(
            *(trace[key] for key in ("lam", "alpha", "beta", "found", "margin", "loss")),
            strict=True,
        ):
            if not found:
                continue
            ends = _line_in_angle(lam, h + lam * g, alpha, beta, top)
            label = f"{name}: {self.result.n_queries} queries"
            self.lines_ += ax.plot(
                *np.transpose(ends),
                color="C0",
                linewidth=1.2,
                zorder=1,
                label=None if self.lines_ else label,
            )


def _one_example(structure, x, y):
    if not structure.flat:
        return structure.check_data([x], [y])
    x = x.reshape(1, -1) if hasattr(x, "reshape") else np.reshape(x, (1, -1))
    if x.shape[1] != structure.n_features_in_:
        raise ValueError(
            f"x must have {structure.n_features_in_} features, as in fit; "
            f"got {x.shape[1]}."
        )
    return x, np.asarray([y])


def _all_labelings(structure, oracle, most):
    """Every labeling of block 0 as the oracle encodes it, or None for too many."""
    if not oracle.thread_safe:  # A structure in Python: it alone knows its labelings.
        return None
    n_labels = len(oracle.decode(np.zeros(oracle.n_weights)))
    n_values = 2
    if structure.has_classes and not getattr(structure, "multi_label", False):
        n_values = len(structure.classes_)
    if n_labels * np.log(n_values) > np.log(most) + 1e-9:
        return None
    grid = np.indices((n_values,) * n_labels, dtype=np.intc)
    return np.ascontiguousarray(grid.reshape(n_labels, -1).T)


def _line_in_angle(lam, highest, alpha, beta, top):
    """Ends of the line h + lam g = highest between the rays, below `top` if vertical."""
    ends = []
    for slope in (beta, alpha):
        if not np.isfinite(slope):
            h = 0.0 if lam > 0 else highest
            ends.append((h, highest / lam if lam > 0 else top))
        else:
            h = highest / (1.0 + lam * slope)
            ends.append((h, slope * h))
    return ends
