"""Linear minimisation over the achievable confusion tensors, and its plug-in classifiers.

Algorithms 9 and 10 of Narasimhan et al.: for a loss tensor L, the classifier that
minimises <L, C> given a model of the class probabilities η predicts, for an x of cell a,
argmin_j Σ_i η_i(x) L[a, i, j].
"""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm.confusion.lmo._plugin import PluginBlocks
from sklearn_structsvm.confusion.lmo.arguments import (
    as_cells,
    as_codes,
    as_losses,
    as_probabilities,
    as_weights,
)
from sklearn_structsvm.confusion.lmo.plugin import (
    likely_choices,
    mixture_proba,
    predict_plugin,
    segments,
)
from sklearn_structsvm.confusion.row_hash import row_uniforms

__all__ = ["LMO", "PluginLMO", "mixture_proba", "predict_plugin", "row_uniforms"]

COUNTED = ("labels", "probabilities")


class LMO(BaseEstimator):
    """A linear minimiser of your own: given a loss tensor, it finds a good classifier.

    Subclass it, or write any object with these three methods, and hand it to
    `ComplexMetricClassifier(lmo=...)`. Parameters are set in `__init__` alone, as of
    every scikit-learn estimator; `fit` is called once, the object itself then once for
    each loss tensor that the solver asks for.

    Attributes
    ----------
    exact : bool
        Set it where no classifier of yours has a smaller <L, C> than the one returned:
        the bounds of solvers are true then.
    """

    exact = False

    def fit(self, X, y, sample_weight=None, cells=None, n_cells=1):
        """Keep the training set.

        Parameters
        ----------
        X : as given to the estimator
        y : ndarray of shape (n,)
            Labels as 0, ..., k - 1.
        sample_weight : ndarray of shape (n,) or None
        cells : ndarray of shape (n,) or None
            Cell of each example, 0, ..., n_cells - 1: its group, where constraints have
            groups. None for all zero.
        n_cells : int

        Returns
        -------
        self
        """
        raise NotImplementedError(f"{type(self).__name__} has no fit.")

    def __call__(self, L):
        """Find a classifier that makes <L, C> small.

        Parameters
        ----------
        L : ndarray of shape (n_cells, k, k)
            L[a, i, j] is the cost of predicting j for label i in cell a. Of any sign.

        Returns
        -------
        classifier : object
            As `predict` takes it.
        C : ndarray of shape (n_cells, k, k)
            Its confusion tensor: the weighted share of the examples in cell a with label
            i that it predicts to be j. Sums to 1.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __call__.")

    def predict(self, classifier, X, cells):
        """Labels, as 0, ..., k - 1, that a classifier found before gives.

        Unless a subclass says otherwise, those of `classifier.predict(X)`, or of
        `classifier(X)` where it has no such method.

        Parameters
        ----------
        classifier : object
            From a call of this object.
        X : as given to the estimator
        cells : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        predict = getattr(classifier, "predict", classifier)
        return np.asarray(predict(X), dtype=np.intp)


class PluginLMO:
    """The plug-in rule over a sample: the best classifier for a loss tensor, in one pass.

    Parameters
    ----------
    probabilities : array-like of shape (n, k)
        Class probabilities of each example. Those in float32 are worked on in float32,
        in half the time; all else in float64.
    y : array-like of shape (n,) or None
        Labels as 0, ..., k - 1; not needed if only probabilities are counted.
    cells : array-like of shape (n,) or None
        Cell of each example, 0, ..., n_cells - 1; None for all zero.
    sample_weight : array-like of shape (n,) or None
    n_cells : int or None
        m; one more than the largest of `cells` if None.
    confusion : {"probabilities", "labels"}
        What C is. "probabilities": C[a, i, j] is the mean of η_i(x) over the predictions
        j in cell a, the confusion under the model; for it the plug-in rule is the best
        of all classifiers. "labels": shares of the sample's labels, as in Algorithm 9;
        for them the rule is a good classifier, not the best one.
    n_threads : int
        No bit of a result depends on it.

    Attributes
    ----------
    shape : tuple
        (m, k, k).
    priors : ndarray of shape (m, k)
        Σ_j C[a, i, j], which no classifier changes.
    exact : bool
        Whether bounds are true: for "probabilities".
    n_calls : int

    Raises
    ------
    ValueError
        For probabilities that are negative or do not sum to one, labels or cells out of
        range, weights that are negative, not finite or all zero.

    Notes
    -----
    Where off-diagonal costs are sums of one number for the label and one for the
    prediction, a row takes k multiplications; else it takes k².
    """

    def __init__(
        self,
        probabilities,
        y=None,
        cells=None,
        sample_weight=None,
        *,
        n_cells=None,
        confusion="probabilities",
        n_threads=1,
    ):
        P = as_probabilities(probabilities)
        n, k = P.shape
        if confusion not in COUNTED:
            raise ValueError(f"confusion must be one of {COUNTED}; got {confusion!r}.")
        if confusion == "labels" and y is None:
            raise ValueError("confusion='labels' needs y.")
        y = None if y is None else as_codes(y, n, k, "y")
        cells, m = as_cells(cells, n, n_cells)
        weights = as_weights(sample_weight, n)
        self.shape = (m, k, k)
        self.counted = confusion
        self.exact = confusion == "probabilities"
        self.n_calls = 0
        self.n_threads = n_threads
        key = cells if y is None else cells * k + y
        ties = likely_choices(P, weights, n_threads) if self.exact else None
        order, ends, keys = segments(key, weights, ties)
        by_label = (keys, None) if y is None else np.divmod(keys, k)
        if np.ptp(weights[order]) == 0.0:
            weights = None
        self._blocks = PluginBlocks(P, order, ends, *by_label, weights, n_threads)
        self.priors = self._confusion(np.zeros(self.shape), confusion).sum(axis=2)

    def __call__(self, L):
        """The plug-in classifier of L.

        Parameters
        ----------
        L : array-like of shape (m, k, k)

        Returns
        -------
        C : ndarray of shape (m, k, k)
            Its confusion tensor.
        handle : ndarray of shape (m, k, k)
            A copy of L, from which `predict_plugin` predicts.
        bound : float
            <L, C>, which is the least over all classifiers if `exact`.
        """
        L = as_losses(L, self.shape).copy()
        C = self._confusion(L, self.counted)
        self.n_calls += 1
        return C, L, float(np.vdot(L, C))

    def confusion(self, L, counted=None):
        """Confusion tensor of the plug-in classifier of L, not counted as a call.

        Parameters
        ----------
        L : array-like of shape (m, k, k)
        counted : {"probabilities", "labels"} or None
            As `confusion` of the class; None for the same.

        Returns
        -------
        ndarray of shape (m, k, k)
        """
        return self._confusion(as_losses(L, self.shape), counted or self.counted)

    def mixture_confusion(self, Ls, weights, counted=None):
        """Confusion tensor of a randomised classifier: the mean of those of its parts.

        Parameters
        ----------
        Ls : sequence of T arrays of shape (m, k, k)
        weights : array-like of shape (T,)
        counted : {"probabilities", "labels"} or None

        Returns
        -------
        ndarray of shape (m, k, k)
        """
        tensors = [self.confusion(L, counted) for L in Ls]
        return np.tensordot(weights, tensors, axes=1)

    def _confusion(self, L, counted):
        if counted == "labels":
            C = self._blocks.count(L, self.n_threads)
        else:
            C = self._blocks.sum(L, self.n_threads)
        C /= C.sum()
        return C
