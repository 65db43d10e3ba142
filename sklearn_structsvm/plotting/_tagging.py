"""One sequence with its labels: how probable each is, and what else it could be."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import (
    as_floats,
    check_integer,
    check_sequence,
    check_shape,
)
from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm._utils.pipelines import final_step
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.inspection import explain
from sklearn_structsvm.plotting._common import (
    FRAME,
    LETTER,
    NO_MATH,
    Display,
    as_labels,
    axes_or_new,
    ready_to_draw,
    show_legend_below,
)
from sklearn_structsvm.structures.spans import has_tags

# In inches: the width of a position, the height of a label (or of a line of the legend).
_POSITION = 0.75
_LABEL = 0.42
# In heights of a label: numbers are this far above the middle of their cell; the line of
# the best labeling is this far below it; the next lines follow above, this far apart.
_ABOVE, _BELOW, _APART = 0.2, 0.38, 0.13
# In heights of a label, too: the bar and the text of an entity are this far above the
# middle of the first label, and the room for them is so high.
_BAR, _TEXT, _SPANS = 0.7, 1.25, 1.25
# Line styles of the labelings: colors alone do not tell them apart.
_LINES = "-", "--", ":", "-."

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TaggingDisplay(Display):
    """Plot of one sequence: label probabilities and the most probable labelings.

    Columns are positions, rows are labels, and darker cells are more probable. Lines show
    the most probable labelings of the whole sequence, with a solid line for the best one.
    The legend shows their probabilities. If labels are tags of entities, the predicted
    entities are above, each with its probability. On request, the top lists what speaks
    for each predicted label rather than for the second best one.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Read more in the :ref:`User Guide <guide-confidence>`.

    Parameters
    ----------
    labels : array-like of shape (n_classes,)
        Class labels.
    proba : array-like of shape (T, n_classes)
        Marginal probabilities of the labels at each position.
    taggings : array-like of shape (m, T)
        Labelings, with the most probable first.
    tagging_proba : array-like of shape (m,)
        Their probabilities.
    tokens : array-like of shape (T,), default=None
        Names of the positions. None means 0, 1, ...
    spans : list of (start, stop, type, probability), default=None
        Entities to draw above the labels, as `predict_spans` returns them.
    explanations : list of Explanation, default=None
        Contributions to draw above the positions, as `inspection.explain` returns them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    image_ : matplotlib AxesImage
        The probabilities of the labels.
    lines_ : list of matplotlib Line2D
        The labelings, with the most probable first.
    spans_ : list of matplotlib Text
        Type and probability of each entity.
    explanations_ : list of matplotlib Text
        The contributions of each position.
    text_ : ndarray of shape (n_classes, T)
        The matplotlib Text of each cell, or None if the probability is below 0.01.

    See Also
    --------
    ChainWeightsDisplay : The weights of the model.
    sklearn_structsvm.inspection.explain : What speaks for the labels of a prediction.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> from sklearn_structsvm.plotting import TaggingDisplay
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> model = CRFClassifier("chain", C=0.1, random_state=0).fit(X, y)
    >>> display = TaggingDisplay.from_estimator(model, X[0], k=2)
    >>> len(display.lines_), display.image_.get_array().shape == (3, len(X[0]))
    (2, True)
    """

    def __init__(
        self,
        *,
        labels: Sequence[Any] | np.ndarray,
        proba: ArrayLike,
        taggings: Sequence[Any] | np.ndarray,
        tagging_proba: Sequence[float] | np.ndarray,
        tokens: Sequence[Any] | np.ndarray | None = None,
        spans: Sequence[Any] | None = None,
        explanations: Sequence[Any] | None = None,
    ) -> None:
        self.labels = labels
        self.proba = proba
        self.taggings = taggings
        self.tagging_proba = tagging_proba
        self.tokens = tokens
        self.spans = spans
        self.explanations = explanations

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        *,
        tokens: Sequence[Any] | np.ndarray | None = None,
        k: int = 3,
        n_contributions: int = 0,
        ax: "Axes | None" = None,
        **imshow_kw: Any,
    ) -> Self:
        """Predict the labels of one sequence and plot them.

        Parameters
        ----------
        estimator : fitted CRFClassifier over a ChainStructure or TreeStructure
            Or a pipeline that ends in one.
        x : array-like, CSR matrix, or what the pipeline takes for one sequence
            One item of X.
        tokens : array-like of shape (T,), default=None
            Names of the positions.
        k : int, default=3
            Maximum number of labelings to draw.
        n_contributions : int, default=0
            The number of the largest contributions to the label of each position to draw,
            such as features and neighboring labels, by `inspection.explain`.
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        **imshow_kw : dict
            Passed to `imshow`, which draws the probabilities.

        Returns
        -------
        display : TaggingDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If the estimator does not provide probabilities of labelings.
        """
        ready_to_draw(ax, "TaggingDisplay.from_estimator")
        check_integer("n_contributions", n_contributions, 0)
        check_is_fitted(estimator)
        model, X = final_step(estimator, [x])
        model = snapshot(model)
        if not (hasattr(model, "predict_proba") and hasattr(model, "predict_k_best")):
            raise TypeError(
                "TaggingDisplay needs a CRFClassifier over sequences or trees, or a "
                f"pipeline that ends in one; got {model!r}."
            )
        taggings, tagging_proba = model.predict_k_best(X, k)
        spans = None
        if hasattr(model, "predict_spans") and has_tags(model.structure_):
            (spans,) = model.predict_spans(X)
        explanations = None
        if n_contributions:
            explanations = [
                own._replace(contributions=own.contributions[:n_contributions])
                for own in explain(estimator, x)
            ]
        display = cls(
            labels=model.classes_,
            proba=model.predict_proba(X)[0],
            taggings=taggings[0],
            tagging_proba=tagging_proba[0],
            tokens=tokens,
            spans=spans,
            explanations=explanations,
        )
        return display.plot(ax=ax, **imshow_kw)

    def plot(self, ax: "Axes | None" = None, **imshow_kw: Any) -> Self:
        """Draw the probabilities and the labelings.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw into. None makes a new figure.
        **imshow_kw : dict
            Passed to `imshow`, which draws the probabilities.

        Returns
        -------
        display : TaggingDisplay
            Object that stores the data and the plot.
        """
        labels = as_labels(self.labels)
        proba = as_floats("proba", self.proba, "n_positions", len(labels))
        n_positions = len(proba)
        if n_positions == 0:
            raise ValueError("The sequence is empty, so there is nothing to draw.")
        tokens = range(n_positions) if self.tokens is None else self.tokens
        if not isinstance(tokens, range):
            check_sequence("tokens", tokens, "None or a sequence of names")
        if len(tokens) != n_positions:
            raise ValueError(
                f"tokens must have one name for each of the {n_positions} positions; "
                f"got {len(tokens)}."
            )
        check_sequence("taggings", self.taggings, "a sequence of labelings")
        rows = []
        for rank, tagging in enumerate(self.taggings):
            rows.append(encode(tagging, labels, f"taggings[{rank}]"))
            check_shape(f"taggings[{rank}]", rows[-1], n_positions)
        tagging_proba = as_floats("tagging_proba", self.tagging_proba, len(rows))
        told = [_words_of(own) for own in self.explanations or ()]
        is_new, ax = ax is None, axes_or_new(ax, "TaggingDisplay.plot")
        figure: Any = ax.figure
        if is_new:
            figure.set_size_inches(
                _POSITION * n_positions + FRAME,
                _LABEL * (len(labels) + _SPANS * bool(self.spans))
                + FRAME
                + LETTER * max(map(_width, told), default=0),
            )
        style: dict[str, Any] = {
            "cmap": "Blues",
            "vmin": 0.0,
            "vmax": 1.0,
            "aspect": "auto",
        }
        self.image_ = ax.imshow(proba.T, **style | imshow_kw)
        self.text_ = np.full(proba.T.shape, None)
        # Cells of smaller probabilities stay empty.
        for t, j in np.argwhere(proba >= 0.01):
            cell = f"{proba[t, j]:.2f}"
            color = "white" if proba[t, j] > 0.5 else "black"
            text = ax.text(t, j - _ABOVE, cell, ha="center", va="center", color=color)
            self.text_[j, t] = text
        self.lines_ = []
        for rank, (row, p) in enumerate(zip(rows, tagging_proba, strict=True)):
            (line,) = ax.plot(
                range(n_positions),
                row + _BELOW - _APART * rank,
                color=f"C{rank + 1}",
                linestyle=_LINES[min(rank, len(_LINES) - 1)],
                marker=".",
                label=f"p = {p:.3f}",
            )
            self.lines_.append(line)
        ax.set_xticks(range(n_positions), map(str, tokens), **NO_MATH)
        ax.set_yticks(range(len(labels)), map(str, labels), **NO_MATH)
        self.spans_ = []
        for start, stop, type_, p in self.spans or ():
            ends = start - 0.4, stop - 0.6
            ax.plot(ends, (-_BAR, -_BAR), color="black", linewidth=2)
            label, middle = f"{type_}\n{p:.2f}", sum(ends) / 2
            text = ax.text(middle, -_TEXT, label, ha="center", va="center", **NO_MATH)
            self.spans_.append(text)
        # One beside the other, and turned: names of features are long.
        self.explanations_ = [
            ax.text(
                own.position, 1.02, words, transform=ax.get_xaxis_transform(),
                rotation=90, ha="center", va="bottom", fontsize="x-small", **NO_MATH,
            )
            for own, words in zip(self.explanations or (), told, strict=True)
        ]  # fmt: skip
        top = -0.5 - _SPANS * bool(self.spans)
        ax.set(xlim=(-0.5, n_positions - 0.5), ylim=(len(labels) - 0.5, top))
        figure.colorbar(self.image_, ax=ax, label="Probability of the label")
        show_legend_below(ax)
        return self._finish(ax)


def _words_of(explanation):
    """An explanation in lines: the labels, and what each contribution is."""
    if explanation.other is None:
        return f"{explanation.label}, no other"
    lines = [f"{explanation.label}, not {explanation.other}"]
    lines += [f"{value:+.2f} {name}" for name, value in explanation.contributions]
    return "\n".join(lines)


def _width(text):
    """The letters of its longest line."""
    return max(map(len, text.split("\n")))
