"""Weights of a chain: transitions, and the features with the largest weights."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_array, as_floats, check_integer
from sklearn_structsvm._utils.pipelines import names_before_the_end
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.plotting._common import (
    FRAME,
    LETTER,
    NO_MATH,
    Display,
    as_labels,
    axes_or_new,
    check_axes,
    ready_to_draw,
)

# In inches: a row or column of a heat map.
_CELL = 0.24


class ChainWeightsDisplay(Display):
    """Heat maps of transition weights and of the largest feature weights.

    The left map shows the score of each label (column) after each label (row). The right
    map shows the score of each label (column) for each feature (row). It contains the
    features with the largest absolute weights, sorted by the label for which the absolute
    weight is largest. Blue weights are positive, red ones negative.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Read more in the :ref:`User Guide <guide-chains>`.

    Parameters
    ----------
    labels : array-like of shape (n_classes,)
        Class labels.
    transition : array-like of shape (n_classes, n_classes), default=None
        Transition weights, indexed by the previous label (for trees, that of the parent)
        and the label.
    emission : array-like of shape (n_features, n_classes), default=None
        Feature weights.
    feature_names : array-like of shape (n_features,), default=None
        Names of the features. None means ``x0``, ``x1``, ...

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Axes of the transitions and of the features, if there are weights of them.
    ax_ : matplotlib Axes
        The first of these.
    figure_ : matplotlib Figure
        Figure of the plot.
    images_ : list of matplotlib AxesImage
        The heat map in each of the axes.
    shown_ : ndarray of int
        Indices of the features shown, from top to bottom.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> from sklearn_structsvm.plotting import ChainWeightsDisplay
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> model = CRFClassifier("chain", C=0.1, random_state=0).fit(X, y)
    >>> display = ChainWeightsDisplay.from_estimator(model, n_features=5)
    >>> [image.get_array().shape for image in display.images_]
    [(3, 3), (5, 3)]
    """

    def __init__(
        self,
        *,
        labels: ArrayLike,
        transition: ArrayLike | None = None,
        emission: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
    ) -> None:
        self.labels = labels
        self.transition = transition
        self.emission = emission
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: ArrayLike | None = None,
        n_features: int = 20,
        ax: Any = None,
        **imshow_kw: Any,
    ) -> Self:
        """Plot the weights of a fitted chain or tree.

        Parameters
        ----------
        estimator : fitted estimator over a ChainStructure or TreeStructure
            Such as `CRFClassifier`, or a pipeline that ends in one.
        feature_names : array-like of shape (n_features,), default=None
            Names of the features. None uses those of the previous steps of the pipeline,
            or the column names of X, or ``x0``, ``x1``, ...
        n_features : int, default=20
            Number of features to show.
        ax : matplotlib Axes, or a list of two, default=None
            Axes to draw into. Single axes are for the transitions. None makes a new
            figure.
        **imshow_kw : dict
            Passed to `imshow`, which draws the heat maps.

        Returns
        -------
        display : ChainWeightsDisplay
            Object that stores the data and the plot.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        TypeError
            If the estimator has no chain or tree structure.
        """
        ready_to_draw(ax, "ChainWeightsDisplay.from_estimator", _given_axes)
        check_is_fitted(estimator)
        is_pipeline = isinstance(estimator, Pipeline)
        model = snapshot(estimator[-1] if is_pipeline else estimator)
        structure: Any = getattr(model, "structure_", None)
        if not hasattr(structure, "weight_parts") or not structure.has_sums:
            raise TypeError(
                "ChainWeightsDisplay needs an estimator over a ChainStructure or "
                f"TreeStructure; got {model!r}."
            )
        if feature_names is None and is_pipeline:
            feature_names = names_before_the_end(estimator)
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        parts = structure.weight_parts(model.coef_)
        # Scores that are given have but their scale.
        emission = None if structure.emission == "given" else parts.get("emission")
        display = cls(
            labels=structure.classes_,
            transition=parts.get("transition"),
            emission=emission,
            feature_names=feature_names,
        )
        return display.plot(ax=ax, n_features=n_features, **imshow_kw)

    def plot(self, ax: Any = None, *, n_features: int = 20, **imshow_kw: Any) -> Self:
        """Draw the heat maps.

        Parameters
        ----------
        ax : matplotlib Axes, or a list of two, default=None
            Axes to draw into. Single axes are for the transitions or, without
            transitions, for the features. None makes a new figure.
        n_features : int, default=20
            Number of features to show.
        **imshow_kw : dict
            Passed to `imshow`, which draws the heat maps.

        Returns
        -------
        display : ChainWeightsDisplay
            Object that stores the data and the plot.
        """
        check_integer("n_features", n_features, 1)
        labels = as_labels(self.labels)
        maps = []
        if self.transition is not None:
            weights = as_floats("transition", self.transition, len(labels), len(labels))
            maps.append((weights, labels, "Previous label", "Transitions"))
        self.shown_ = np.empty(0, dtype=np.intp)
        if self.emission is not None:
            emission = as_array("emission", self.emission)
            n_rows = emission.shape[0] if emission.ndim else "n_features"
            emission = as_floats("emission", emission, n_rows, len(labels))
            names = self._names(emission)
            self.shown_ = _heaviest(emission, n_features)
            features = emission[self.shown_], names[self.shown_]
            maps.append((*features, "Feature", "Features"))
        if not maps:
            raise ValueError("Neither transitions nor features have weights to be drawn.")
        self.axes_, self.images_ = self._axes(ax, maps), []
        tallest = max(len(rows) for _, rows, *_ in maps)
        for axes, (weights, rows, row_name, title) in zip(self.axes_, maps, strict=False):
            largest = np.abs(weights).max(initial=0.0) or 1.0
            style = {"cmap": "RdBu", "vmin": -largest, "vmax": largest}
            style["aspect"] = "equal" if rows is labels else "auto"
            image = axes.imshow(weights, **style | imshow_kw)
            axes.set_xticks(range(len(labels)), map(str, labels), rotation=90, **NO_MATH)
            axes.set_yticks(range(len(rows)), map(str, rows), **NO_MATH)
            axes.tick_params(labelsize="small")
            axes.set(xlabel="Label", ylabel=row_name, title=title)
            # As high as the map if its cells are squares.
            axes.figure.colorbar(image, ax=axes, shrink=len(rows) / tallest)
            self.images_.append(image)
        return self._finish(self.axes_[0])

    def _names(self, emission):
        if self.feature_names is None:
            return np.array([f"x{j}" for j in range(len(emission))])
        names = as_array("feature_names", self.feature_names)
        if names.shape != emission.shape[:1]:
            raise ValueError(
                f"feature_names must have one name for each of the {len(emission)} "
                f"features; got an array of shape {names.shape}."
            )
        return names

    def _axes(self, ax, maps):
        if ax is not None:
            return _given_axes(ax)[: len(maps)]
        first = axes_or_new(None, "ChainWeightsDisplay.plot")
        figure = first.figure
        tallest = max(len(rows) for _, rows, *_ in maps)
        longest = max(len(str(name)) for _, names, *_ in maps for name in names)
        width = sum(_CELL * weights.shape[1] + FRAME for weights, *_ in maps)
        figure.set_size_inches(width + LETTER * longest, _CELL * tallest + FRAME)
        if len(maps) == 1:
            return [first]
        first.remove()
        return list(figure.subplots(1, len(maps)))


def _given_axes(ax):
    """The Axes of one or of an array; ValueError if there are none."""
    given = [*map(check_axes, np.ravel(np.asarray(ax, dtype=object)))]
    if not given:
        raise ValueError("ax holds no Axes to draw into.")
    return given


def _heaviest(emission, n_features):
    """The features with the largest absolute weights, grouped by label."""
    label = np.abs(emission).argmax(axis=1)
    weight = emission[np.arange(len(emission)), label]
    # Stable, so that equal weights are shown in the order of the features.
    heaviest = np.argsort(-np.abs(weight), kind="stable")[:n_features]
    return heaviest[np.lexsort((-weight[heaviest], label[heaviest]))]
