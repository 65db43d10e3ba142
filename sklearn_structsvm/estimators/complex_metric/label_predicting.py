"""Predictions and scores of a classifier that chooses labels by probability."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import as_canonical, check_classes, refuse_masked
from sklearn_structsvm._utils.indicators import as_indicator
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.label_metric import (
    LabelMean,
    label_confusions,
    label_weights,
)
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.complex_metric.label_probabilities import (
    as_rows,
    label_probabilities,
)
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    LabelSigmoids,
    choose_sets,
    choose_thresholds,
    choose_top_labels,
)
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    OverProbabilities,
    routes_metadata,
)
from sklearn_structsvm.estimators.complex_metric.probabilities import default_classifier


class LabelPredictor(OverProbabilities):
    """Everything of `MultilabelMetricClassifier` except `fit`."""

    PREDICTIONS = ("predict", "predict_proba", "score")

    def _classifier(self):
        if self.estimator is None:
            return OneVsRestClassifier(default_classifier())
        return self.estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def _choose(self, rows, weights, truth, metric, *, shrink=False, on_pass=None):
        """The `Choice` for some rows, from their labels or their probabilities."""
        if self.average == "samples":
            return choose_sets(rows, weights, self.labels_per_row, metric.beta)
        if self.labels_per_row is None:
            constraints = read_constraints(self.constraints)
            return choose_thresholds(
                rows, weights, truth, metric, self.average, constraints, shrink
            )
        return choose_top_labels(
            rows, weights, self.labels_per_row, metric, self.average, shrink, on_pass,
            tol=self.tol, max_iter=self.max_iter, max_time=self.max_time,
        )  # fmt: skip

    def _found(self, method, X, params):
        """Probabilities of new rows, and the `LabelRows` by which rules decide."""
        check_is_fitted(self)
        refuse_foreign(X=X)
        X = as_canonical(X)
        check_classes(self.classes_)
        refuse_masked("X", X)
        if routes_metadata():
            params = process_routing(self, method, **params).estimator.predict_proba
        found = label_probabilities(
            self.estimator_, X, len(self.classes_), self.n_candidates, **params
        )
        rows = as_rows(found, self.estimator_)
        if self.label_sigmoids_ is not None:
            rows = LabelSigmoids(self.label_sigmoids_, self.label_floor_)(rows)
        return found, rows

    def _output(self, indicator):
        if not isinstance(self.sparse_output_, bool):
            raise ValueError(
                f"sparse_output_ must be True or False; got {self.sparse_output_!r}: it "
                "was changed after fit."
            )
        return indicator if self.sparse_output_ else indicator.toarray()

    @of_one_fit
    def predict(self, X: Any, **params: Any) -> Any:
        """Predict the labels of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Input data, or whatever `estimator` accepts.
        **params : dict
            Parameters passed to the `predict_proba` method of `estimator`. With metadata
            routing enabled, parameters requested by it.

        Returns
        -------
        {ndarray, CSR} of int, shape (n_samples, n_labels)
            Label indicator matrix, sparse if the y of `fit` was.
        """
        _, rows = self._found("predict", X, params)
        return self._output(self.rule_.indicator(rows))

    @of_one_fit
    def predict_batch(
        self, X: Any, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Any:
        """Predict the labels of many rows jointly, to optimize the expected metric.

        The rule found by `fit` is not used. Thresholds, or sets of `labels_per_row`
        labels, are chosen anew from the probabilities of these rows, as if they were
        correct; those of sets are calibrated by `label_sigmoids_`. This helps if `fit`
        had few rows or a different label distribution. The labels of a row then depend on
        the other rows. For very few rows and a ratio such
        as F1, sets of `labels_per_row` labels are the best of all. For "samples" the
        result is that of `predict`.

        Parameters
        ----------
        X, **params : as in `predict`
            Input data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.

        Returns
        -------
        {ndarray, CSR} of int, shape (n_samples, n_labels)
            Label indicator matrix, sparse if the y of `fit` was.
        """
        _, rows = self._found("predict", X, params)
        choice = self._choose(
            rows, check_weights(sample_weight, len(rows)), None, self.metric_
        )
        if choice.sets is not None:
            return self._output(choice.sets.matrix(rows.n_labels))
        return self._output(choice.rule.indicator(rows))

    @of_one_fit
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Compute the label probabilities of the fitted estimator, as one matrix.

        Parameters
        ----------
        X, **params : as in `predict`
            Input data.

        Returns
        -------
        {ndarray, sparse matrix} of shape (n_samples, n_labels)
            Probabilities of the labels.
        """
        return self._found("predict_proba", X, params)[0]

    @of_one_fit
    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any
    ) -> float:
        r"""Compute the metric of the predictions; higher is better.

        Parameters
        ----------
        X, **params : as in `predict`
            Test data.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            True labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            :math:`1 - \psi`, or :math:`-\psi` for a metric whose values are costs,
            averaged according to `average`.
        """
        _, rows = self._found("score", X, params)
        predicted = self.rule_.indicator(rows)
        truth, _ = as_indicator(y)
        check_consistent_length(truth, predicted)
        if truth.shape != predicted.shape:
            raise ValueError(
                f"y has {truth.shape[1]} labels, but fit had {len(self.classes_)}."
            )
        weights = check_weights(sample_weight, len(rows))
        if self.average == "samples":
            beta2 = self.metric_.beta**2
            hits = predicted.multiply(truth).sum(axis=1)
            sizes = beta2 * truth.sum(axis=1) + predicted.sum(axis=1)
            f = (1.0 + beta2) * hits / np.where(sizes > 0.0, sizes, 1.0)
            return float(np.average(f, weights=weights))
        C = label_confusions(truth, predicted, weights)
        if self.average == "micro":
            C = C.mean(axis=0, keepdims=True)
        of_labels = label_weights(self.average, C[:, 1].sum(axis=1))
        loss = LabelMean(self.metric_, of_labels).value(C / len(C))
        return 1.0 - loss if self.metric_.greater_is_better else -loss
