"""Predictions and scores of a classifier that chooses labels by probability."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    check_classes,
    check_integer,
    refuse_masked,
)
from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm._utils.indicators import as_indicator, largest_of_rows
from sklearn_structsvm._utils.pieces import row_pieces
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm._utils.tables import column_names, places_by_name
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.label_metric import (
    LabelMean,
    label_confusions,
    label_weights,
)
from sklearn_structsvm.confusion.label_rows import LabelRows
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    LabelSigmoids,
    choose_sets,
    choose_thresholds,
    choose_top_labels,
)
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    OverProbabilities,
    refuse_misspelt,
    routes_metadata,
)
from sklearn_structsvm.estimators.complex_metric.written_rule import (
    WrittenRule,
    write_label_rule,
)
from sklearn_structsvm.estimators.inner import learned

# The number of probabilities that are dense at once, if only some of each row are kept.
DENSE_AT_ONCE = 2**24


class LabelPredictor(OverProbabilities):
    """Everything of `MultilabelMetricClassifier` except `fit`."""

    PREDICTIONS = ("predict", "predict_proba", "score")

    def _classifier(self):
        if self.estimator is None:
            return OneVsRestClassifier(default_classifier())
        return self.estimator

    @property
    @of_one_fit
    def rule_(self) -> WrittenRule:
        """The rule in words and as a table."""
        check_is_fitted(self)
        return write_label_rule(self)

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
            options = read_constraints(self.constraints), self.label_names_, shrink
            return choose_thresholds(rows, weights, truth, metric, self.average, *options)
        return choose_top_labels(
            rows, weights, self.labels_per_row, metric, self.average, shrink, on_pass,
            tol=self.tol, max_iter=self.max_iter, max_time=self._options.max_time,
        )  # fmt: skip

    def _found(self, method, X, params):
        """Probabilities of new rows, and the `LabelRows` by which rules decide."""
        check_is_fitted(self)
        refuse_foreign(X=X)
        X = as_canonical(X)
        check_classes(self.classes_)
        refuse_masked("X", X)
        refuse_misspelt(self, params, method)
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
        return self._output(self.label_rule_.indicator(rows))

    @of_one_fit
    def predict_batch(
        self, X: Any, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Any:
        """Predict the labels of many rows jointly, to optimize the expected metric.

        The rule found by `fit` is not used. Thresholds, or sets of `labels_per_row`
        labels, are chosen anew from the probabilities of these rows, as if they were
        correct; those of sets are calibrated by `label_sigmoids_`. This helps if `fit`
        had few rows or a different label distribution. The labels of a row then depend on
        the other rows. For very few rows and a ratio such as F1, sets of `labels_per_row`
        labels are the best of all. The result is that of `predict` for "samples", and
        where `fit` chose the most probable labels.

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
        is_auto = self.labels_per_row is not None and self.confusion == "auto"
        if is_auto and self.label_sigmoids_ is None:
            # On labels, they are better than what is best by the probabilities.
            return self._output(self.label_rule_.indicator(rows))
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
        predicted = self.label_rule_.indicator(rows)
        truth, _ = as_indicator(y)
        known = self.label_names_ if self.label_names_ != self.classes_.tolist() else None
        own = "Those of fit are"
        places = places_by_name("y", column_names(y), known, own, "label")
        truth = truth if places is None else truth[:, places]
        check_consistent_length(truth, predicted)
        if truth.shape != predicted.shape:
            raise ValueError(
                f"y has {truth.shape[1]} labels, but fit had {len(self.classes_)}."
            )
        loss = self._loss(predicted, truth, check_weights(sample_weight, len(rows)))
        return 1.0 - loss if self.metric_.greater_is_better else -loss

    def _loss(self, predicted, truth, weights):
        """The metric of predictions; `truth` may be probabilities, but for "samples"."""
        if self.average == "samples":
            beta2 = self.metric_.beta**2
            hits = predicted.multiply(truth).sum(axis=1)
            sizes = beta2 * truth.sum(axis=1) + predicted.sum(axis=1)
            f = (1.0 + beta2) * hits / np.where(sizes > 0.0, sizes, 1.0)
            return 1.0 - float(np.average(f, weights=weights))
        C = label_confusions(truth, predicted, weights)
        if self.average == "micro":
            C = C.mean(axis=0, keepdims=True)
        of_labels = label_weights(self.average, C[:, 1].sum(axis=1))
        return LabelMean(self.metric_, of_labels).value(C / len(C))


def label_probabilities(classifier, X, n_labels, n_candidates=None, **params):
    """`predict_proba` as one matrix of shape (n, L).

    The classifier may return an array or a sparse matrix of this shape, or a list with an
    array of two classes' probabilities for each label, as ``MultiOutputClassifier`` and
    forests do. With `n_candidates`, the result is a CSR matrix with that many largest
    probabilities of each row, computed for a few rows at a time.

    ValueError for a result of another form or shape.
    """
    answer = Answer("predict_proba", classifier)
    if n_candidates is None:
        return _at_once(answer, X, n_labels, params)
    check_integer("n_candidates", n_candidates, 1)
    n = _num_samples(X)
    # Metadata may have an entry for each row.
    pieces = row_pieces(n, n_labels, DENSE_AT_ONCE) if not params else [slice(0, n)]
    parts = []
    for piece in pieces or [slice(0, 0)]:
        part = X if len(pieces) == 1 else _safe_indexing(X, piece)
        if piece.start:
            answer.example = f"{piece.start} and the rows that follow"
        found = _at_once(answer, part, n_labels, params)
        parts.append(largest_of_rows(found, n_candidates))
    found = sparse.vstack(parts, format="csr")
    found.sort_indices()
    return found


def _at_once(answer, X, n_labels, params):
    """One call of `predict_proba`."""
    classifier, n = answer.owner, _num_samples(X)
    found = classifier.predict_proba(X, **params)
    if isinstance(found, (list, tuple)):
        known = learned(classifier, "classes_", [np.arange(2)] * len(found))
        answer.of_each(found, len(known))
        pairs = zip(found, known, strict=True)
        columns = [_of_presence(part, classes, n, answer) for part, classes in pairs]
        found = np.stack(columns, axis=1) if columns else np.empty((0, 0))
    elif sparse.issparse(found):
        answer.of_each(found, n)
    else:
        found = as_array(str(answer), found)
        if n_labels == 1 and found.ndim == 2 and found.shape[1] == 2:
            # For scikit-learn, a single label means two classes.
            found = found[:, 1:]
    if found.shape != (n, n_labels):
        raise answer.fault(
            f"have shape {n, n_labels}, or be a list with an array for each label",
            f"shape {found.shape}",
        )
    if not sparse.issparse(found):
        found = answer.probabilities(found, n, n_labels)
    return found


def _of_presence(part, classes, n, answer):
    """The column of class 1, or zeros if the label never occurred."""
    classes = np.asarray(classes).tolist()
    part = answer.probabilities(part, n, len(classes))
    return part[:, classes.index(1)] if 1 in classes else np.zeros(len(part))


def as_rows(found, classifier):
    """`LabelRows` of the result of `label_probabilities`."""
    return LabelRows.of(found, f"predict_proba of {type(classifier).__name__}")


def stacked(parts):
    """Stack matrices vertically; the result is sparse if one of them is."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
