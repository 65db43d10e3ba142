"""How scores and solutions change with the regularization."""

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_floats, check_choice
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.plotting._common import (
    Display,
    axes_or_new,
    band,
    floats_of,
    full_names,
    legend_prefix,
    ready_to_draw,
    show_legend,
    style_of,
)
from sklearn_structsvm.solvers.blocks.path import RegularizationPath

_PATH_Y_LABELS = {
    "gap": "Duality gap",
    "norm": r"Norm of the coefficients $\|w\|_2$",
    "coefs": "Coefficient",
}
_KINDS = ("score", *_PATH_Y_LABELS)

# The paths of many coefficients fill the axes, so their legend is beside them.
_BESIDE = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RegularizationPathDisplay(Display):
    r"""Plot of cross-validated scores against C, or of a regularization path.

    A path has breakpoints :math:`\lambda_0 > \lambda_1 > \dots` and weights :math:`w^j`
    that are ε-approximate for all λ in :math:`[\lambda_{j+1}, \lambda_j]`, so they are
    drawn as steps. Above :math:`\lambda_0` they shrink in proportion to :math:`\lambda_0
    / \lambda`, which is not drawn. Below the last breakpoint they are constant, unless
    the path ended early: a dotted line then marks its end.

    Create it with :meth:`from_estimator` or :meth:`from_path`. All parameters
    are stored as attributes.

    Read more in the :ref:`User Guide <guide-path>`.

    Parameters
    ----------
    kind : {"score", "gap", "norm", "coefs"}
        Kind of `values`.
    param_range : array-like of shape (n_points,)
        For `"score"`, the C of each score, in any order. Otherwise the breakpoints λ, in
        decreasing order.
    values : array-like of shape (n_points,) or (n_points, n_columns)
        `"score"`: one column per fold. `"gap"` and `"norm"`: one value per breakpoint.
        `"coefs"`: one column per coefficient.
    reference : float, default=None
        The chosen C (`"score"`) or ε (`"gap"`), drawn as a dashed line.
    coef_indices : array-like of int of shape (n_columns,), default=None
        Indices of the coefficients in the columns, for the legend (`"coefs"`).
    score_name : str, default=None
        Label of the y axis (`"score"`). None means `"Score"`.
    name : str, default=None
        Name in the legend.
    end : float, default=None
        The λ at which a path ended early (not for `"score"`). None or 0 means that it did
        not.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    lines_ : list of matplotlib Line2D
        Mean score, gaps, norm, or one line per coefficient.
    fill_between_ : matplotlib PolyCollection or None
        Band of one standard deviation over the folds around the mean.
    reference_ : matplotlib Line2D or None
        The chosen C, or ε.
    end_ : matplotlib Line2D or None
        The end of a path that ended early.

    See Also
    --------
    ConvergenceDisplay : The progress of one fit.

    References
    ----------
    .. [1] Osokin et al., "Minding the gaps for block Frank-Wolfe optimization of
       structured SVMs", ICML 2016, section 4.

    Examples
    --------
    >>> from sklearn_structsvm.plotting import RegularizationPathDisplay
    >>> display = RegularizationPathDisplay(
    ...     kind="score",
    ...     param_range=[0.1, 1.0, 10.0],
    ...     values=[[0.70, 0.74], [0.81, 0.85], [0.78, 0.84]],
    ...     reference=1.0,
    ... ).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['mean ± std over 2 folds', 'chosen C = 1']
    """

    def __init__(
        self,
        *,
        kind: Literal["score", "gap", "norm", "coefs"],
        param_range: ArrayLike,
        values: ArrayLike,
        reference: float | None = None,
        coef_indices: ArrayLike | None = None,
        score_name: str | None = None,
        name: str | None = None,
        end: float | None = None,
    ) -> None:
        self.kind = kind
        self.param_range = param_range
        self.values = values
        self.reference = reference
        self.coef_indices = coef_indices
        self.score_name = score_name
        self.name = name
        self.end = end

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        name: str | None = None,
        score_name: str | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the stored values.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into; they may hold other paths. None makes a new figure. The
            legend of coefficients is placed to the right of the axes, so create a figure
            of your own with `layout="constrained"`.
        name : str, default=None
            Name in the legend. None uses that of the display.
        score_name : str, default=None
            Label of the y axis (`kind="score"`). None uses that of the display.
        fill_between_kw : dict, default=None
            Passed to `fill_between`, which draws the band (`kind="score"`).
        **line_kw : dict
            Passed to `plot`, which draws the lines.

        Returns
        -------
        display : RegularizationPathDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError
            If `kind` is not one of the choices, or if the shapes of `param_range` and
            `values` do not match it.
        ImportError
            If matplotlib is not installed.
        """
        check_choice("kind", self.kind, _KINDS)
        params, values = _checked_scores(self.kind, self.param_range, self.values)
        for number in ("reference", "end"):
            if getattr(self, number) is not None:
                as_floats(number, getattr(self, number))
        style_of("fill_between_kw", fill_between_kw)
        ax = axes_or_new(ax, "RegularizationPathDisplay.plot")
        style = full_names(line_kw)
        label = style.pop("label", self.name if name is None else name)
        self.fill_between_ = self.reference_ = self.end_ = None
        ax.set_xscale("log")
        if self.kind == "score":
            if score_name is None:
                score_name = "Score" if self.score_name is None else self.score_name
            self._plot_scores(ax, params, values, label, style, fill_between_kw)
            ax.set(xlabel="Regularization parameter C", ylabel=score_name)
        else:
            draw = self._plot_gaps if self.kind == "gap" else self._plot_steps
            draw(ax, params, values, label, style)
            if self.end:
                self.end_ = ax.axvline(
                    self.end,
                    color="gray",
                    linestyle=":",
                    label=rf"ends at $\lambda$ = {self.end:.3g}",
                )
            ax.set(
                xlabel=r"Regularization parameter $\lambda$",
                ylabel=_PATH_Y_LABELS[self.kind],
            )
        show_legend(ax, **(_BESIDE if self.kind == "coefs" else {}))
        return self._finish(ax)

    def _plot_scores(self, ax, Cs, scores, label, style, fill_between_kw):
        order = np.argsort(Cs)
        Cs, scores = Cs[order], scores[order]
        mean, std = scores.mean(axis=1), scores.std(axis=1)
        folds = f"mean ± std over {scores.shape[1]} folds"
        prefix = legend_prefix(label)
        self.lines_ = ax.plot(
            Cs, mean, **{"marker": ".", "label": prefix + folds, **style}
        )
        color = self.lines_[0].get_color()
        self.fill_between_ = band(ax, Cs, mean - std, mean + std, color, fill_between_kw)
        if self.reference is not None:
            self.reference_ = ax.axvline(
                self.reference,
                color=color,
                linestyle="--",
                label=f"{prefix}chosen C = {self.reference:.3g}",
            )

    def _plot_gaps(self, ax, lambdas, gaps, label, style):
        # Points without a line: between two breakpoints the gap grows up to ε.
        self.lines_ = ax.plot(
            lambdas,
            gaps,
            label="at the breakpoints" if label is None else label,
            **{"marker": ".", "linestyle": "none", **style},
        )
        if self.reference is not None:
            self.reference_ = ax.axhline(
                self.reference,
                color=self.lines_[0].get_color(),
                linestyle="--",
                label=rf"$\varepsilon$ = {self.reference:.3g}",
            )
        # An axis from 0 on shows how large the gaps are relative to ε.
        if ax.get_ylim()[0] > 0:
            ax.set_ylim(bottom=0)

    def _plot_steps(self, ax, lambdas, values, label, style):
        # As λ decreases, each value holds from its breakpoint to the next one. A single
        # breakpoint has no line, so it gets a marker.
        marker = "." if len(lambdas) == 1 else "none"
        style = {"drawstyle": "steps-post", "marker": marker, **style}
        if self.kind == "norm":
            self.lines_ = ax.plot(lambdas, values, label=label, **style)
            return
        prefix = legend_prefix(label)
        self.lines_ = []
        for column, values_of_one in enumerate(values.T):
            index = column if self.coef_indices is None else self.coef_indices[column]
            self.lines_ += ax.plot(
                lambdas, values_of_one, label=f"{prefix}w[{index}]", **style
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        score_name: str | None = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Plot the cross-validated scores from which an estimator chose its C.

        Parameters
        ----------
        estimator : BCFWClassifierCV or CRFClassifierCV
            Fitted estimator with `Cs_`, `scores_path_` and `C_`.
        score_name : str, default=None
            Label of the y axis. None uses the estimator's `scoring` if that is a string.
        name, ax, fill_between_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : RegularizationPathDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If it is fitted but has not chosen its C by cross-validation.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "RegularizationPathDisplay.from_estimator")
        estimator = snapshot(estimator)
        check_is_fitted(estimator)
        _require(
            estimator,
            ("Cs_", "scores_path_", "C_"),
            "estimator",
            "a BCFWClassifierCV or CRFClassifierCV",
        )
        scoring = getattr(estimator, "scoring", None)
        if score_name is None and isinstance(scoring, str):
            score_name = scoring.replace("_", " ").capitalize()
        return cls(
            kind="score",
            param_range=estimator.Cs_,
            values=estimator.scores_path_,
            reference=estimator.C_,
            score_name=score_name,
            name=name,
        ).plot(ax, fill_between_kw=fill_between_kw, **line_kw)

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath,
        *,
        kind: Literal["gap", "norm", "coefs"] = "gap",
        n_coefs: int = 10,
        name: str | None = None,
        ax: "Axes | None" = None,
        **line_kw: Any,
    ) -> Self:
        """Plot a result of :func:`~sklearn_structsvm.bcfw_path` against λ.

        Parameters
        ----------
        path : RegularizationPath
            With J breakpoints `lambdas` (J,) in decreasing order, `coefs` (J, d), `gaps`
            (J,), `eps` and `end`.
        kind : {"gap", "norm", "coefs"}, default="gap"
            What to plot: the duality gap at the breakpoints and ε, the Euclidean norm of
            the weights, or the weights themselves.
        n_coefs : int, default=10
            Number of weights to draw (`kind="coefs"`): those with the largest absolute
            value anywhere on the path, in decreasing order.
        name, ax, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : RegularizationPathDisplay
            Object that stores the data and the plot.

        Raises
        ------
        TypeError
            If `path` is not a regularization path.
        ValueError
            If `kind` is not one of the choices, or `n_coefs` is not a positive integer.
        ImportError
            If matplotlib is not installed.
        """
        ready_to_draw(ax, "RegularizationPathDisplay.from_path")
        check_choice("kind", kind, _PATH_Y_LABELS)
        if not isinstance(n_coefs, Integral) or n_coefs < 1:
            raise ValueError(f"n_coefs must be a positive integer; got {n_coefs!r}.")
        needed = ("lambdas", "coefs", "gaps", "eps", "end")
        _require(path, needed, "path", "from bcfw_path")
        reference = indices = None
        if kind == "gap":
            values, reference = path.gaps, path.eps
        elif kind == "norm":
            # np.linalg.norm would allocate a second array of shape (J, d).
            values = np.sqrt(np.einsum("jd,jd->j", path.coefs, path.coefs))
        else:
            coefs = np.asarray(path.coefs)
            # np.abs(coefs) would allocate such an array, too.
            largest = np.maximum(coefs.max(axis=0), -coefs.min(axis=0))
            indices = np.argsort(-largest, kind="stable")[:n_coefs]
            values = coefs[:, indices]
        return cls(
            kind=kind,
            param_range=path.lambdas,
            values=values,
            reference=reference,
            coef_indices=indices,
            name=name,
            end=path.end,
        ).plot(ax, **line_kw)


def _require(obj, attributes, name, wanted):
    """Raise a TypeError that names the first missing attribute, if there is one."""
    for attribute in attributes:
        if not hasattr(obj, attribute):
            raise TypeError(
                f"{name} must be {wanted}; {type(obj).__name__} has no {attribute!r}."
            )


def _checked_scores(kind, param_range, values):
    """Both as float arrays, whose shapes must match `kind`."""
    params = as_floats("param_range", param_range, "n_params")
    values = floats_of("values", values)
    if not params.size:
        raise ValueError("param_range is empty.")
    ndim = 1 if kind in ("gap", "norm") else 2
    if values.ndim != ndim or len(values) != len(params):
        raise ValueError(
            f"values must be {ndim}-D with {len(params)} rows, one per entry of "
            f"param_range, for kind={kind!r}; got shape {values.shape}."
        )
    return params, values
