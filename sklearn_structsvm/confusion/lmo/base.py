"""The base class of linear minimization oracles."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sklearn_structsvm._utils.fitted import FittedAttributes
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.arguments import as_cells


class Minimizer:
    """What a `ConfusionProblem` asks of its oracle, besides to be called.

    `exact`: whether its bounds are true. `separable`: whether C[a] depends on L[a]
    only, for each cell a. `n_terms`: the number of examples, of which entries of C are
    sums. `unit`: the unit roundoff of the numbers by which choices are made.
    `cost_range` (tuple of two floats or None): the least and the largest mean cost, if
    there are individual costs.
    """

    exact = separable = False
    n_terms, unit = 1, 0.0
    cost_range: tuple[float, float] | None = None

    def examples(self):
        """(cells, masses) if all classifiers are rules for examples; None otherwise."""
        return None


class LMO(FittedAttributes, BaseEstimator):
    r"""Base class of linear minimization oracles (LMOs).

    Subclass it for an oracle of your own. For any loss tensor L, an oracle finds a
    classifier with a small cost :math:`\langle L, C \rangle`, where C is the confusion
    tensor of its predictions on the training set. A subclass must define `__call__`,
    which finds a classifier for L. Define `fit` if there is more to prepare than storing
    the training set. Define `predict` if what `__call__` returns has no method
    `predict(X)` that returns labels. Set parameters only in `__init__`, as in every
    scikit-learn estimator. ``ComplexMetricClassifier(lmo=...)`` fits a copy once, and
    then calls it for each loss tensor that its solver needs.

    Read more in the :ref:`User Guide <guide-own-oracles>`.

    Attributes
    ----------
    exact : bool
        Whether the bound returned by a call (the cost of the returned classifier, if
        there is no bound) is a lower bound on the cost of all classifiers. Solvers then
        have a certificate. The default is False: the oracle returns good classifiers
        only.
    needs_cells : bool
        Whether `predict` uses the cells. If False, predictions need no groups. The
        default is True.
    X_ : as given to `fit`
        Training data.
    y_, cells_ : ndarray of shape (n,)
        Labels as 0, ..., k - 1, and cells as 0, ..., m - 1.
    weights_ : ndarray of shape (n,)
        Sample weights; ones if `fit` was given none.
    n_cells_, n_classes_ : int
        Numbers of cells, m, and of classes, k.

    Examples
    --------
    An oracle that chooses the cheapest of three trees:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.confusion.lmo import LMO
    >>> class OneOfThree(LMO):
    ...     exact = True
    ...     def fit(self, X, y, sample_weight=None, cells=None, n_cells=1):
    ...         super().fit(X, y, sample_weight, cells, n_cells)
    ...         trees = [DecisionTreeClassifier(max_depth=2, class_weight={i: 9})
    ...                  for i in range(3)]
    ...         self.trees_ = [tree.fit(X, y, sample_weight) for tree in trees]
    ...         self.tensors_ = [self.count(tree.predict(X)) for tree in trees]
    ...         return self
    ...     def __call__(self, L):
    ...         best = np.argmin([np.vdot(L, C) for C in self.tensors_])
    ...         return self.tensors_[best], self.trees_[best]
    >>> X, y = load_iris(return_X_y=True)
    >>> options = {"lmo": OneOfThree()}
    >>> model = ComplexMetricClassifier(metric="min_max", solver_options=options)
    >>> model.fit(X[:, :1], y).dual_gap_ <= 1e-3, len(model.classifiers_) <= 3
    (True, True)
    """

    exact = False
    needs_cells = True

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        cells: Any = None,
        n_cells: int = 1,
    ) -> Self:
        """Store the training set.

        Parameters
        ----------
        X : as given to the estimator
            Training data.
        y : array-like of shape (n,)
            Labels as 0, ..., k - 1, all of which occur.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the examples.
        cells : array-like of shape (n,) or None, default=None
            Cell of each example, 0, ..., n_cells - 1: its group, if constraints have
            groups. None means all zero.
        n_cells : int, default=1
            Number of cells.

        Returns
        -------
        self : object
            The fitted oracle.
        """
        n = len(y)
        self.n_classes_ = int(np.max(y, initial=0)) + 1
        self.X_, self.y_ = X, check_codes(y, n, self.n_classes_)
        self.cells_, self.n_cells_ = as_cells(cells, n, n_cells)
        self.weights_ = check_weights(sample_weight, n)
        return self

    def __call__(self, L: np.ndarray) -> tuple[Any, ...]:
        """Find a classifier that makes <L, C> small.

        Parameters
        ----------
        L : ndarray of shape (m, k, k)
            L[a, i, j] is the cost of predicting j for label i in cell a. Of any sign.

        Returns
        -------
        C : ndarray of shape (m, k, k)
            Its confusion tensor: the weighted share of the examples in cell a with label
            i that it predicts to be j. Sums to 1. See `count`.
        handle : object
            The classifier, or anything from which `predict` can use it.
        bound : float or None
            A lower bound of <L, C'> over all your classifiers. If it is omitted or None,
            <L, C> is used, which is correct if the oracle is `exact`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __call__.")

    def predict(self, handle: Any, X: Any, cells: Any) -> np.ndarray:
        """Predict labels with a classifier that was found before.

        By default it returns `handle.predict(X)` or, without such a method, `handle(X)`.

        Parameters
        ----------
        handle : object
            The classifier, as returned by a call of this object.
        X : as given to the estimator
            Input data.
        cells : ndarray of shape (n,)
            Cell of each row.

        Returns
        -------
        ndarray of shape (n,)
            Labels as 0, ..., k - 1.
        """
        predict = getattr(handle, "predict", handle)
        if not callable(predict):
            raise TypeError(f"{handle!r} is not a classifier: it has no method predict.")
        return np.asarray(predict(X), dtype=np.intp)

    def count(self, predicted: ArrayLike) -> np.ndarray:
        """Compute the confusion tensor of predictions on the training set.

        Parameters
        ----------
        predicted : array-like of shape (n,)
            Labels as 0, ..., k - 1.

        Returns
        -------
        ndarray of shape (m, k, k)
            Confusion tensor.
        """
        m, k = self.n_cells_, self.n_classes_
        predicted = check_codes(predicted, len(self.y_), k, "predicted")
        flat = (self.cells_ * k + self.y_) * k + predicted
        C = np.bincount(flat, weights=self.weights_, minlength=m * k * k)
        return C.reshape(m, k, k) / self.weights_.sum()

    def without_examples(self) -> Self:
        """Return what must be kept for `predict`; by default the object itself."""
        return self
