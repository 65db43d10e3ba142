"""Labels over time: the true ones, those of single rows, and those of a structure."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_floats, check_shape
from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm._utils.pipelines import final_step
from sklearn_structsvm._utils.sequences import rows_of
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.plotting._common import (
    NO_MATH,
    Display,
    as_labels,
    axes_or_new,
    ready_to_draw,
    show_legend_below,
    style_of,
)
from sklearn_structsvm.structures.hidden_labels import as_entries, known_places

# Height of a bar, of which there is one a unit.
_BAR = 0.8

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _codes(labeling, labels, name):
    """Codes of the labels, -1 for those that are missing."""
    entries = as_entries(labeling)
    if entries is None:
        return encode(labeling, labels, name)
    codes, known = np.full(len(entries), -1), known_places(entries)
    if len(known):
        codes[known] = encode([entries[t] for t in known], labels, name)
    return codes


class SegmentsDisplay(Display):
    """Plot of one series: its segments in several labelings, one below another.

    Each labeling is a bar, with a color for each label, so you see flicker at once. A
    curve below them shows the probability of the label of the last bar. Where a label is
    missing, a bar has a gap.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Read more in the :ref:`User Guide <guide-stacked>`.

    Parameters
    ----------
    labels : array-like of shape (n_classes,)
        Class labels.
    labelings : dict
        The labels (T,) of the series by the name of each bar, from top to bottom.
    proba : array-like of shape (T,), default=None
        Probability of the label of the last bar. None draws none.
    times : array-like of shape (T,), default=None
        Where the rows are. None means 0, 1, ...

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    bars_ : list of matplotlib collections
        The segments of each label, bar by bar; None for a label without any.
    line_ : matplotlib Line2D or None
        The probabilities.

    See Also
    --------
    TaggingDisplay : Probabilities of all labels, of a short sequence.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_structsvm import StackedStructureClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> from sklearn_structsvm.plotting import SegmentsDisplay
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> model = StackedStructureClassifier(LogisticRegression()).fit(X, y)
    >>> display = SegmentsDisplay.from_estimator(model, X[0], y[0])
    >>> list(display.labelings)
    ['true', 'LogisticRegression', 'with structure']
    """

    def __init__(
        self,
        *,
        labels: ArrayLike,
        labelings: Mapping[str, Any],
        proba: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        self.labels = labels
        self.labelings = labelings
        self.proba = proba
        self.times = times

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        y: Any = None,
        *,
        times: ArrayLike | None = None,
        min_length: Any = None,
        ax: "Axes | None" = None,
        **bar_kw: Any,
    ) -> Self:
        """Predict the labels of one series and plot them.

        Parameters
        ----------
        estimator : fitted StackedStructureClassifier, or another over a ChainStructure
            Or a pipeline that ends in one.
        x : array-like, data frame, or what the pipeline takes for one series
            One item of X.
        y : array-like of shape (T,), default=None
            The true labels, if they are known.
        times : array-like of shape (T,), default=None
            Where the rows are. None means 0, 1, ...
        min_length : int, dict or None, default=None
            The least number of equal labels in a row, as in `predict`.
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        **bar_kw : dict
            Passed to `broken_barh`, which draws the segments.

        Returns
        -------
        display : SegmentsDisplay
            Object that stores the data and the plot.
        """
        ready_to_draw(ax, "SegmentsDisplay.from_estimator")
        check_is_fitted(estimator)
        model, X = final_step(estimator, [x])
        model = snapshot(model)
        labelings = {} if y is None else {"true": y}
        if hasattr(model, "estimator_"):
            rows, _ = rows_of(X)
            name = type(model.estimator_).__name__
            labelings[name] = model.estimator_.predict(rows[0])
        (labels,) = model.predict(X, min_length=min_length)
        labelings["with structure"] = labels
        proba = None
        if hasattr(model, "predict_proba"):
            (every,) = model.predict_proba(X, min_length=min_length)
            places = encode(labels, model.classes_, "the prediction")
            proba = np.take_along_axis(every, places[:, np.newaxis], axis=1)[:, 0]
        display = cls(
            labels=model.classes_, labelings=labelings, proba=proba, times=times
        )
        return display.plot(ax=ax, **bar_kw)

    def plot(self, ax: "Axes | None" = None, **bar_kw: Any) -> Self:
        """Draw the segments, and the probabilities below them.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        **bar_kw : dict
            Passed to `broken_barh`, which draws the segments.

        Returns
        -------
        display : SegmentsDisplay
            Object that stores the data and the plot.
        """
        labels, labelings = as_labels(self.labels), style_of("labelings", self.labelings)
        codes = {
            name: _codes(own, labels, f"labelings[{name!r}]")
            for name, own in labelings.items()
        }
        n = len(next(iter(codes.values()), ()))
        if n == 0:
            raise ValueError("The series is empty, so there is nothing to draw.")
        for name, own in codes.items():
            check_shape(f"labelings[{name!r}]", own, n)
        times = np.arange(n) if self.times is None else as_floats("times", self.times, n)
        if not (np.diff(times) >= 0.0).all():
            raise ValueError("times must not decrease.")
        # A row lasts to the next one, and the last as long as the one before it.
        ends = np.append(times, 2 * times[-1] - times[-2] if n > 1 else times[-1] + 1)
        proba = None if self.proba is None else as_floats("proba", self.proba, n)
        ax = axes_or_new(ax, "SegmentsDisplay.plot")
        self.bars_ = []
        for row, own in enumerate(codes.values()):
            cuts = [0, *np.flatnonzero(np.diff(own)) + 1, n]
            for k, label in enumerate(labels):
                spans = [
                    (ends[a], ends[b] - ends[a]) for a, b in pairwise(cuts) if own[a] == k
                ]
                style = {"color": f"C{k}", "label": None if row else str(label)} | bar_kw
                at = row - 0.5 * _BAR, _BAR
                # Also without spans: the legend has all labels.
                self.bars_.append(ax.broken_barh(spans, at, **style))
        names, self.line_ = list(codes), None
        if proba is not None:
            base = len(codes) + 0.5 * _BAR
            (self.line_,) = ax.step(
                ends, base - _BAR * np.append(proba, proba[-1]), color="black",
                where="post",
            )  # fmt: skip
            names.append("probability")
        ax.set_yticks(range(len(names)), names, **NO_MATH)
        ax.set(xlim=(ends[0], ends[-1]), ylim=(len(names) - 0.5, -0.5))
        show_legend_below(ax, list(map(str, labels)))
        return self._finish(ax)
