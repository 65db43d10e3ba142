"""How an iterative fit converged."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.tolerances import SAME
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

_X_LABELS = {
    "seconds": "Time (s)",
    "n_iter": "Passes over the data",
    "n_oracle_calls": "Oracle calls",
}
_Y_LABELS = {"dual_gap": "Duality gap", "objective": "Objective (normalized)"}
_OBJECTIVES = ("objective", "dual_objective")
# The methods of a history, in words.
_METHODS = {
    "blocks": "block steps",
    "accelerated": "accelerated block steps",
    "planes": "cutting planes",
    "newton": "Newton's method",
    "lbfgs": "L-BFGS",
    "sublbfgs": "subLBFGS",
}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ConvergenceDisplay(Display):
    r"""Plot of the duality gap, or of primal and dual objective, during a fit.

    Each gap check computes the primal objective P and the dual objective D, which enclose
    the optimum :math:`P^*`:

    .. math:: D \le P^* \le P, \qquad P - P^* \le P - D = \mathrm{gap}.

    Create it with :meth:`from_estimator` or :meth:`from_history`. All parameters
    are stored as attributes.

    Read more in the :ref:`User Guide <guide-stopping>`.

    Parameters
    ----------
    history : dict of array-like of shape (n_checks,)
        One entry per gap check, under the keys `"seconds"`, `"n_iter"` (passes),
        `"n_oracle_calls"`, `"objective"` (primal), `"dual_objective"` and `"dual_gap"`.
        Of the first three, only the one on the x axis is needed.
    name : str, default=None
        Name of the fit in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    lines_ : list of matplotlib Line2D
        The gap, or the primal and the dual objective.
    fill_between_ : matplotlib PolyCollection or None
        The band between primal and dual objective.
    not_positive_ : matplotlib Line2D or None
        Triangles at gaps that are not positive, if there are any.

    See Also
    --------
    RegularizationPathDisplay : Scores and solutions against the regularization strength.

    Examples
    --------
    >>> from sklearn_structsvm.plotting import ConvergenceDisplay
    >>> history = {
    ...     "seconds": [0.0, 0.1, 0.2],
    ...     "objective": [1.0, 0.5, 0.41],
    ...     "dual_objective": [0.0, 0.3, 0.4],
    ...     "dual_gap": [1.0, 0.2, 0.01],
    ... }
    >>> display = ConvergenceDisplay.from_history(history, name="pairwise")
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Time (s)', 'Duality gap')
    """

    def __init__(
        self, *, history: Mapping[str, ArrayLike], name: str | None = None
    ) -> None:
        self.history = history
        self.name = name

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        x: Literal["seconds", "n_iter", "n_oracle_calls"] = "seconds",
        y: Literal["dual_gap", "objective"] = "dual_gap",
        name: str | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Draw the history on a logarithmic axis.

        A gap that is not positive is drawn as a triangle at the resolution of the
        objective: machine epsilon times the largest objective of the history. Only
        rounding error is then left. A dual objective that is not positive, as at the
        start, is drawn below the axes, since the objective is never negative and such a
        bound is trivial. The title of a new figure says which methods ran and why, and
        what gap is left.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into; they may hold other fits. None makes a new figure.
        x : {"seconds", "n_iter", "n_oracle_calls"}, default="seconds"
            Quantity on the x axis: seconds, passes over the data, or calls of the
            max-oracle.
        y : {"dual_gap", "objective"}, default="dual_gap"
            The duality gap, or the primal and dual objectives with the band between them,
            which contains the optimum. All refer to the normalized objective.
        name : str, default=None
            Name in the legend. None uses that of the display.
        fill_between_kw : dict, default=None
            Passed to `fill_between`, which draws the band.
        **line_kw : dict
            Passed to `plot`, which draws the lines.

        Returns
        -------
        display : ConvergenceDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError
            If `x` or `y` is not one of the choices, or if the history lacks a key, is
            empty, or has entries of different lengths.
        ImportError
            If matplotlib is not installed.

        Warns
        -----
        UserWarning
            If a gap is negative beyond rounding error, which indicates an inexact oracle.
        """
        check_choice("x", x, _X_LABELS)
        check_choice("y", y, _Y_LABELS)
        values = _checked_entries(self.history, [x, "dual_gap", *_OBJECTIVES])
        style_of("fill_between_kw", fill_between_kw)
        title = _told(self.history) if ax is None else ""
        ax = axes_or_new(ax, "ConvergenceDisplay.plot")
        style = {"marker": ".", **full_names(line_kw)}
        label = style.pop("label", self.name if name is None else name)
        self.fill_between_ = self.not_positive_ = None
        # Without losses all objectives are 0, which a logarithmic axis cannot show.
        if y == "dual_gap" or values["objective"].max() > 0:
            ax.set_yscale("log", nonpositive="clip")
        if y == "dual_gap":
            self._plot_gap(ax, values, x, label, style)
        else:
            self._plot_objectives(ax, values, x, label, style, fill_between_kw)
        ax.set(xlabel=_X_LABELS[x], ylabel=_Y_LABELS[y])
        if title:
            ax.set_title(title, fontsize="small")
        show_legend(ax)
        return self._finish(ax)

    def _plot_gap(self, ax, values, x, label, style):
        gap = values["dual_gap"]
        scale = np.max(np.abs(values["objective"])) or 1.0
        negative = np.flatnonzero(gap < -SAME * scale)
        if negative.size:
            warn_caller(
                f"history['dual_gap'][{negative[0]}] is {gap[negative[0]]:.3g}: "
                "negative beyond rounding, so it is not a certificate. Is the max-oracle "
                "exact?",
            )
        floor = np.finfo(np.float64).eps * scale
        lost = gap <= 0
        self.lines_ = ax.plot(values[x], np.where(lost, floor, gap), label=label, **style)
        if lost.any():
            marks = {"color": self.lines_[0].get_color(), "linestyle": "none"}
            (self.not_positive_,) = ax.plot(
                values[x][lost],
                np.full(lost.sum(), floor),
                marker="v",
                label="gap ≤ 0" if label is None else f"{label}, gap ≤ 0",
                **marks,
            )

    def _plot_objectives(self, ax, values, x, label, style, fill_between_kw):
        prefix = legend_prefix(label)
        primal, dual = (values[key] for key in _OBJECTIVES)
        upper = ax.plot(values[x], primal, label=f"{prefix}primal (upper bound)", **style)
        color = upper[0].get_color()
        lower = ax.plot(
            values[x],
            dual,
            label=f"{prefix}dual (lower bound)",
            **{"color": color, "linestyle": "--", **style},
        )
        self.lines_ = upper + lower
        self.fill_between_ = band(ax, values[x], dual, primal, color, fill_between_kw)

    @classmethod
    def from_history(
        cls,
        history: Mapping[str, ArrayLike],
        *,
        x: Literal["seconds", "n_iter", "n_oracle_calls"] = "seconds",
        y: Literal["dual_gap", "objective"] = "dual_gap",
        name: str | None = None,
        ax: "Axes | None" = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Plot a history that was stored separately from its estimator.

        Parameters
        ----------
        history : dict of array-like of shape (n_checks,)
            History, as in an estimator's `history_`; see :class:`ConvergenceDisplay`.
        x, y, name, ax, fill_between_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
            Object that stores the data and the plot.

        Raises
        ------
        ValueError, ImportError
            As for :meth:`plot`.
        """
        ready_to_draw(ax, "ConvergenceDisplay.from_history")
        return cls(history=history, name=name).plot(
            ax, x=x, y=y, fill_between_kw=fill_between_kw, **line_kw
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: Literal["seconds", "n_iter", "n_oracle_calls"] = "seconds",
        y: Literal["dual_gap", "objective"] = "dual_gap",
        name: str | None = None,
        ax: "Axes | None" = None,
        fill_between_kw: dict[str, Any] | None = None,
        **line_kw: Any,
    ) -> Self:
        """Plot the `history_` of a fitted estimator.

        Parameters
        ----------
        estimator : estimator instance
            Fitted estimator with a `history_`. For a pipeline, pass its last step.
        name : str, default=None
            Name in the legend. None uses the name of the estimator's class.
        x, y, ax, fill_between_kw, **line_kw
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If it is fitted but has no `history_`.
        ValueError, ImportError
            As for :meth:`plot`.
        """
        ready_to_draw(ax, "ConvergenceDisplay.from_estimator")
        check_is_fitted(estimator)
        if not hasattr(estimator, "history_"):
            raise TypeError(
                f"estimator must have a history_; {type(estimator).__name__} does not."
            )
        return cls.from_history(
            estimator.history_,
            x=x,
            y=y,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            fill_between_kw=fill_between_kw,
            **line_kw,
        )


def _told(history):
    """The passes of each method, why, and the gap; '' if methods are not known."""
    if not {"method", "n_iter"} <= set(history):
        return ""
    made = np.diff(floats_of("history['n_iter']", history["n_iter"]), prepend=0.0)
    passes: dict[str, float] = {}
    for name, n in zip(map(str, history["method"]), made, strict=False):
        passes[name] = passes.get(name, 0.0) + n
    parts = [f"{n:.0f} of {_METHODS.get(name, name)}" for name, n in passes.items() if n]
    gap = float(np.asarray(history["dual_gap"])[-1])
    # With hidden labels, methods have parts of their own.
    gave_way = len(parts) > 1 and "step" not in history
    why = "A method that is slow gives way to another. " if gave_way else ""
    passes = ", ".join(parts) or "none"
    return f"Passes: {passes}.\n{why}The gap that is left is {gap:.2g}."


def _checked_entries(history, keys):
    """The entries under `keys` as nonempty float arrays of equal length."""
    if not isinstance(history, Mapping):
        raise TypeError(f"history must be a dict of arrays; got {history!r}.")
    values = {}
    for key in keys:
        if key not in history:
            raise ValueError(
                f"history has no key {key!r}; its keys are {sorted(history)}."
            )
        values[key] = floats_of(f"history[{key!r}]", history[key])
        shape = values[keys[0]].shape
        if values[key].ndim != 1 or values[key].shape != shape or shape == (0,):
            raise ValueError(
                f"history[{key!r}] must be 1-D, not empty and as long as "
                f"history[{keys[0]!r}]; got shapes {values[key].shape} and {shape}."
            )
    return values
