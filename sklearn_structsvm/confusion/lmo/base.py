"""What a linear minimisation oracle is; the base class of the user's own ones."""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.arguments import as_cells


class LMO(BaseEstimator):
    """Finds a classifier of small cost for any loss tensor; subclass it for your own.

    The cost of a classifier is <L, C>, where L is the loss tensor and C the confusion
    tensor of its predictions on the training set. All that a subclass must have is
    `__call__`, which finds a classifier for L. Where there is more to prepare than to
    keep the training set, it has a `fit` too; where what it finds is not asked for
    labels by `predict(X)`, a `predict`. Parameters are set in `__init__` alone, as of
    every scikit-learn estimator. ``ComplexMetricClassifier(lmo=...)`` fits a copy once,
    and then calls it for each loss tensor that its solver asks for.

    Attributes
    ----------
    exact : bool
        True: none of its classifiers costs less than the bound that a call returns, or,
        where it returns none, than the classifier that it returns. Solvers have a
        certificate then. False, which is the default: its answers are good ones.
    needs_cells : bool
        False: `predict` does not look at the cells, so that predictions need no groups.
        True by default.
    X_ : as given to `fit`
    y_, cells_ : ndarray of shape (n,)
        Labels as 0, ..., k - 1, and cells as 0, ..., m - 1.
    weights_ : ndarray of shape (n,)
        Ones where `fit` was given none.
    n_cells_, n_classes_ : int
        m and k.

    Examples
    --------
    It knows three trees, and chooses the one that costs least:

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
    >>> model = ComplexMetricClassifier(metric="min_max", lmo=OneOfThree())
    >>> model.fit(X[:, :1], y).dual_gap_ <= 1e-3, len(model.classifiers_) <= 3
    (True, True)
    """

    exact = False
    needs_cells = True

    def fit(self, X, y, sample_weight=None, cells=None, n_cells=1):
        """Keep the training set.

        Parameters
        ----------
        X : as given to the estimator
        y : array-like of shape (n,)
            Labels as 0, ..., k - 1, each of which occurs.
        sample_weight : array-like of shape (n,) or None
        cells : array-like of shape (n,) or None
            Cell of each example, 0, ..., n_cells - 1: its group, where constraints have
            groups. None for all zero.
        n_cells : int

        Returns
        -------
        self
        """
        n = len(y)
        self.n_classes_ = int(np.max(y, initial=0)) + 1
        self.X_, self.y_ = X, check_codes(y, n, self.n_classes_, "y")
        self.cells_, self.n_cells_ = as_cells(cells, n, n_cells)
        self.weights_ = check_weights(sample_weight, n)
        return self

    def __call__(self, L):
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
            The classifier, or whatever `predict` knows it by.
        bound : float or None
            A number that <L, C'> is not below for any classifier of yours. It may be left
            out, or None, and <L, C> then stands for it: of an `exact` oracle it is one.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __call__.")

    def predict(self, handle, X, cells):
        """Labels that a classifier found before gives.

        Unless a subclass says otherwise, those of `handle.predict(X)`, or of `handle(X)`
        where it has no such method.

        Parameters
        ----------
        handle : object
            From a call of this object.
        X : as given to the estimator
        cells : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
            As 0, ..., k - 1.
        """
        predict = getattr(handle, "predict", handle)
        return np.asarray(predict(X), dtype=np.intp)

    def count(self, predicted):
        """Confusion tensor of predictions for the training set that `fit` kept.

        Parameters
        ----------
        predicted : array-like of shape (n,)
            Labels as 0, ..., k - 1.

        Returns
        -------
        ndarray of shape (m, k, k)
        """
        m, k = self.n_cells_, self.n_classes_
        predicted = check_codes(predicted, len(self.y_), k, "predicted")
        flat = (self.cells_ * k + self.y_) * k + predicted
        C = np.bincount(flat, weights=self.weights_, minlength=m * k * k)
        return C.reshape(m, k, k) / self.weights_.sum()

    def without_examples(self):
        """What `predict` needs of the fitted object, which is kept for predictions.

        The object itself, unless a subclass says otherwise.
        """
        return self
