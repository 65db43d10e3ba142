"""What the estimators over a structure share: all but `fit`."""

import warnings
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_structsvm._utils.compat import CallbackSupportMixin, Interval, StrOptions
from sklearn_structsvm._utils.labels import unseen_words
from sklearn_structsvm.estimators.base import AtomicFitMixin
from sklearn_structsvm.estimators.problem import is_flat
from sklearn_structsvm.structures import Structure
from sklearn_structsvm.structures.base import as_object_array

PROBLEM_CONSTRAINTS = {
    "structure": [StrOptions({"auto"}), Structure],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "classes": ["array-like", None],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "sampling": [StrOptions({"gap", "uniform", "permuted"})],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}


def _knows(name):
    """Whether an estimator's structure can answer `name`."""

    def check(estimator):
        structure = getattr(estimator, "structure_", estimator.structure)
        return isinstance(structure, str) or hasattr(structure, name)

    return check


class StructuredClassifier(
    AtomicFitMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Prediction, scores and pickles of an estimator with a fitted structure."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if is_flat(self.structure):
            # structure="auto" takes what there is.
            tags.input_tags.sparse = True
            multi_class = getattr(self.structure, "multi_class", True)
            multi_label = getattr(self.structure, "multi_label", True)
            tags.classifier_tags.multi_class = multi_class
            tags.classifier_tags.multi_label = multi_label
            if multi_label and not multi_class:
                tags.target_tags.single_output = False
                tags.target_tags.multi_output = True
        else:
            # Sequences and other structures: as a classifier, scikit-learn would
            # choose the splitter and the meaning of accuracy by what y looks like.
            tags.estimator_type = None
            tags.classifier_tags = None
            tags.input_tags.two_d_array = False
        return tags

    @property
    def _weights(self):
        return self.structure_.join_weights(
            self.coef_, getattr(self, "intercept_", None)
        )

    def _check_X(self, X):
        check_is_fitted(self)
        if self.structure_.flat:
            return validate_data(
                self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C"
            )
        return self.structure_.check_data(X)[0]

    def predict(self, X):
        """Predict the best output of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            Rows, or for other than flat structures a sequence of n items, such as
            arrays or CSR matrices of shape (T_i, n_features) for chains.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, indicators, or an object array holding one labeling per
            example.
        """
        X = self._check_X(X)
        return self.structure_.decode_batch(
            X, self._weights, effective_n_jobs(self.n_jobs)
        )

    @available_if(lambda self: is_flat(getattr(self, "structure_", self.structure)))
    def decision_function(self, X):
        """Scores of the classes or labels (flat structures only).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
            For two classes, positive where ``classes_[1]`` is predicted.
        """
        X = self._check_X(X)
        scores = self.structure_.decision_function(X, self._weights)
        return self.structure_.present_scores(scores)

    def score(self, X, y, sample_weight=None):
        """How good the predictions for X are.

        Accuracy for flat structures (of the whole indicator row where there are several
        labels), accuracy per token for chains, and 1 minus the mean loss for a
        structure of your own. Labels that were not seen in `fit` count as wrong, and a
        warning names them.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        y_pred = self.predict(X)
        if not self.structure_.flat:
            _, y = self.structure_.check_data(X, y)
        elif sparse.issparse(y):
            y = y.toarray()
        unseen = self.structure_.unseen_labels(y)
        if unseen:
            warnings.warn(unseen_words(unseen), UserWarning, stacklevel=2)
        return self.structure_.score(y, y_pred, sample_weight=sample_weight)

    @available_if(_knows("k_best"))
    def predict_k_best(self, X, k=5):
        """The k best labelings of each sequence, with their scores (chains only).

        Parameters
        ----------
        X : sequence of n arrays or CSR matrices of shape (T_i, n_features)
        k : int

        Returns
        -------
        labelings : ndarray of shape (n,), dtype object
            Item i has shape (m_i, T_i), best labeling first; m_i is k, or less where
            there are fewer labelings.
        scores : ndarray of shape (n,), dtype object
            Item i has shape (m_i,). The difference of the first two is a margin of
            confidence.
        """
        X, w = self._check_X(X), self._weights
        pairs = [self.structure_.k_best(x, w, k) for x in X]
        return tuple(as_object_array(items) for items in zip(*pairs, strict=True))

    @available_if(_knows("max_marginals"))
    def max_marginals(self, X):
        """For each position and class, the best score that has the class there.

        Parameters
        ----------
        X : sequence of n arrays or CSR matrices of shape (T_i, n_features)

        Returns
        -------
        ndarray of shape (n,), dtype object
            Item i has shape (T_i, n_classes). The maximum of each row is the score of
            the best labeling; its distance to the second is what the position's label
            is ahead by.
        """
        X, w = self._check_X(X), self._weights
        return as_object_array([self.structure_.max_marginals(x, w) for x in X])

    def _weight_attributes(self, structure, weights):
        """What there is to know of a fit once the weights are known."""
        coef, intercept = structure.split_weights(weights)
        attributes = {"structure_": structure, "coef_": coef}
        if intercept is not None:
            attributes["intercept_"] = intercept
        if structure.has_classes:
            attributes["classes_"] = structure.classes_
        return attributes

    def _set_weights(self, structure, weights):
        vars(self).update(self._weight_attributes(structure, weights))

    def _set_result(self, structure, result):
        self._set_weights(structure, result.solution)
        self.objective_ = float(result.objective)
        self.dual_objective_ = float(result.dual_objective)
        self.dual_gap_ = float(result.gap)
        self.n_iter_ = result.n_iter
        self.n_oracle_calls_ = result.n_oracle_calls
        self.history_ = result.history
