"""Linear minimization by refitting a classifier for each loss tensor."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, has_fit_parameter

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import check_shape
from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.confusion.lmo.arguments import as_losses
from sklearn_structsvm.confusion.lmo.base import LMO


class WeightedLMO(LMO):
    r"""Linear minimization oracle that refits a classifier with sample weights.

    Predicting j for an example of weight s and label i in cell a saves :math:`s (\max_c
    L_{aic} - L_{aij})` compared with the worst prediction. The classifier is fitted to
    every example with each label that saves something, weighted by the saving. Its
    weighted error then equals the cost :math:`\langle L, C \rangle` up to a constant. If
    the costs of an example differ only between its own label and all others, as for most
    metrics, no example is repeated, and the weights reduce to class weights.

    Read more in the :ref:`User Guide <guide-own-oracles>`.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Classifier whose `fit` accepts `sample_weight`, or which has a parameter
        `class_weight`; the latter suffices if the costs are the same for all examples of
        a class. In a `Pipeline` the last step receives the weights. None means
        logistic regression on scaled columns. It is cloned for each fit. Its predictions
        do not depend on the cell.

    Attributes
    ----------
    n_fits_ : int
        Number of classifiers fitted so far.

    Notes
    -----
    For each fit the weights are scaled to a mean of one over the training set. If only
    one label saves anything, the classifier is constant.

    References
    ----------
    Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal: Consistent multiclass
    algorithms for complex metrics and constraints, sections 6.1 and 8.7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
    >>> X, y = load_iris(return_X_y=True)
    >>> lmo = WeightedLMO().fit(X[:, :1], y)
    >>> costs = np.array([[0.0, 1.0, 1.0], [9.0, 0.0, 9.0], [1.0, 1.0, 0.0]])
    >>> C, classifier = lmo(costs[None])
    >>> recalls = np.diag(C[0]) / C[0].sum(axis=1)
    >>> print(recalls[1], recalls[[0, 2]].max() < 0.5)
    1.0 True
    """

    needs_cells = False

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        cells: Any = None,
        n_cells: int = 1,
    ) -> Self:
        super().fit(X, y, sample_weight, cells, n_cells)
        given = self.estimator
        self.estimator_ = default_classifier() if given is None else given
        self.n_fits_ = 0
        return self

    def __call__(self, L: np.ndarray) -> tuple[Any, ...]:
        k = self.n_classes_
        L = as_losses(L, (self.n_cells_, k, k))
        rows, labels, weights = self._weighted_labels(L)
        found = np.unique(labels)
        if len(found) <= 1:
            classifier: Any = ConstantClassifier(found[0] if len(found) else 0)
        else:
            weights = weights * (len(self.y_) / weights.sum())
            X = self.X_ if len(rows) == len(self.y_) else None
            if X is None or np.any(np.diff(rows) != 1):
                X = _safe_indexing(self.X_, rows)
            codes = np.searchsorted(found, labels)
            fitted = fit_weighted(clone(self.estimator_), X, codes, weights)
            classifier = RelabeledClassifier(fitted, found)
            self.n_fits_ += 1
        predicted = self.predict(classifier, self.X_, self.cells_)
        return self.count(predicted), classifier

    def without_examples(self) -> Self:
        """An unfitted copy."""
        return clone(self)

    def _weighted_labels(self, L):
        """Rows, the labels that save something in them, and the weighted savings."""
        savings = L.max(axis=2, keepdims=True) - L
        # Rounding in the costs would repeat examples with labels that save nothing.
        savings[savings <= SAME * savings.max()] = 0.0
        weights = savings[self.cells_, self.y_] * self.weights_[:, None]
        rows, labels = np.nonzero(weights)
        return rows, labels, weights[rows, labels]


class ConstantClassifier:
    """Predicts one label for everything."""

    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(_num_samples(X), self.label, dtype=np.intp)


class RelabeledClassifier:
    """A classifier fitted to 0, 1, ..., as some libraries require.

    `labels`: the meaning of the classifier's labels.
    """

    def __init__(self, classifier, labels):
        self.classifier = classifier
        self.labels = labels

    def predict(self, X):
        answer, n = Answer("predict", self.classifier), _num_samples(X)
        check_shape("labels", self.labels, "n_labels")
        return self.labels[answer.codes(self.classifier.predict(X), n, len(self.labels))]


def fit_weighted(classifier, X, y, weights):
    """Fit a classifier with a weight for each example, in any way it supports.

    `weights` (n,). `classifier`: it will be fitted. `X` as `classifier` takes it. `y`
    (n,): any labels. TypeError if it takes neither `sample_weight` nor, if these are
    equal within each class, `class_weight`.
    """
    if has_fit_parameter(classifier, "sample_weight"):
        return classifier.fit(X, y, sample_weight=weights)
    prefix = ""
    if isinstance(classifier, Pipeline):
        name, last = classifier.steps[-1]
        prefix = f"{name}__"
        if has_fit_parameter(last, "sample_weight"):
            # With routing, every step would have to declare that it wants none.
            with config_context(enable_metadata_routing=False):
                return classifier.fit(X, y, **{f"{prefix}sample_weight": weights})
    if f"{prefix}class_weight" not in classifier.get_params():
        raise TypeError(
            f"{classifier} accepts neither sample_weight in fit nor class_weight."
        )
    classes, first, codes = np.unique(y, return_index=True, return_inverse=True)
    if not np.allclose(weights, weights[first][codes], rtol=SAME, atol=0.0):
        raise TypeError(
            f"{classifier} accepts only class_weight, but these costs and sample weights "
            "require a weight per example."
        )
    by_class = dict(zip(classes.tolist(), weights[first].tolist(), strict=True))
    return classifier.set_params(**{f"{prefix}class_weight": by_class}).fit(X, y)
