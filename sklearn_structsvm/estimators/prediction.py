"""Predictions of the structured estimators from their weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils._matrix._rows import as_features_type
from sklearn_structsvm._utils.arrays import foreign_namespace, refuse_foreign
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    check_integer,
    is_empty,
    refuse_masked,
)
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.labels import listed, refuse_missing, unseen_words
from sklearn_structsvm._utils.pieces import item_pieces, mean_width, row_pieces, take_rows
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm._utils.tables import column_names, names_of_items, places_by_name
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.distributed.dask_workers import holds_dask, map_lazily
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.coefficients import joined_weights
from sklearn_structsvm.estimators.inner import learned, supports
from sklearn_structsvm.estimators.named_structures import is_flat, named_structure
from sklearn_structsvm.structures import ChainStructure, Structure
from sklearn_structsvm.structures.allowed_labels import (
    AllowedLabels,
    NoAllowedLabeling,
    check_allowed_labels,
)
from sklearn_structsvm.structures.answers import checked_data
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.nodes import NodeStructure
from sklearn_structsvm.structures.validation import refuse_tokens

# Types of rows that `predict` does not copy as a whole. Other types are converted to the
# first one, piece by piece.
ROW_TYPES = (
    np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_
)  # fmt: skip


def structure_has(name):
    """Whether an estimator's structure supports `name`."""

    def check(estimator):
        structure = learned(estimator, "structure_")
        if structure is None:
            structure = named_structure(estimator.structure)
        # If it is damaged, the method itself raises the error.
        return not isinstance(structure, Structure) or supports(structure, name)

    return check


def refuse_allowed_of_dask(allowed, name="allowed"):
    """Raise ValueError if labels are restricted in a Dask collection."""
    if allowed is not None:
        raise ValueError(
            f"{name} cannot be used with Dask collections. Compute the parts of X, and "
            f"pass each with its own `{name}`."
        )


def check_min_length(min_length, classes):
    """The least length of runs of each class, intp; an error names what is wrong."""
    lengths = np.ones(len(classes), dtype=np.intp)
    if not isinstance(min_length, Mapping):
        check_integer("min_length", min_length, 1)
        lengths[:] = min_length
        return lengths
    places = {label: k for k, label in enumerate(classes.tolist())}
    for label, length in min_length.items():
        if label not in places:
            raise ValueError(
                f"min_length has the label {label!r}, which is not one of the classes: "
                f"{listed(classes)}."
            )
        check_integer(f"min_length[{label!r}]", length, 1)
        lengths[places[label]] = length
    return lengths


def taken(items, places):
    """The entries of some examples."""
    if isinstance(items, AllowedLabels):
        return items.take(places)
    return [items[i] for i in places]


def one_by_one(answer, X, *beside):
    """Results for some examples. Errors name the example."""
    found = []
    for i, data in enumerate(zip(X, *beside, strict=True)):
        try:
            found.append(answer(*data))
        except NoAllowedLabeling as error:
            raise NoAllowedLabeling(i, error.place) from None
    return found


class UncheckedWeights:
    """w for callers that check their few results for NaN, instead of all weights.

    If they find any, the error names the attribute.
    """

    def __init__(self, estimator):
        self.given = estimator.structure_, vars(estimator)

    def __enter__(self):
        return joined_weights(*self.given, finite=False)

    def __exit__(self, kind, error, traceback):
        if isinstance(error, ValueError):
            joined_weights(*self.given)


class PredictionMixin:
    """Predictions by `structure_`, with the weights of `coef_` and `intercept_`."""

    structure_: Structure

    @property
    def _weights(self):
        """w, after a check that the state is consistent: it may have been set by hand."""
        self._check_fitted_structure()
        return joined_weights(self.structure_, vars(self))

    def _check_fitted_structure(self):
        """Raise ValueError if `structure_` was changed so that it cannot predict."""
        structure = self.structure_
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure_ must be a Structure; got {structure!r}: it was changed "
                "after fit."
            )
        try:
            structure.check_fitted()
        except AttributeError as error:
            raise ValueError(
                f"structure_ is not a fitted structure, {error}: it was changed after "
                "fit."
            ) from error

    def _n_threads(self, X):
        n_items = X.shape[0] if self.structure_.flat else len(X)
        return count_threads(self.n_jobs, n_items)

    def __sklearn_is_fitted__(self):
        return "structure_" in vars(self)

    def _reading(self):
        """A context with w, after `_check_X`."""
        return UncheckedWeights(self)

    def _check_X(self, X, *, takes_foreign=False):
        """X in the structure's form. Arrays of other libraries are not converted."""
        if "structure_" not in vars(self):
            check_is_fitted(self)
        self._check_fitted_structure()
        xp = foreign_namespace(X)
        if xp is not None:
            if not (takes_foreign and self.structure_.flat):
                refuse_foreign(X=X)
            return validate_data(self, X, reset=False, dtype=[xp.float64, xp.float32])
        if self.structure_.flat:
            refuse_tokens(X)
            refuse_masked("X", X)
            X = validate_data(
                self,
                as_canonical(X),
                reset=False,
                accept_sparse="csr",
                dtype=list(ROW_TYPES),
            )
            return as_canonical(X)
        if is_empty(X):
            return []
        if "feature_names_in_" in vars(self):
            names_of_items(X, list(self.feature_names_in_))
        return checked_data(self.structure_, X)[0]

    def _check_allowed(self, X, allowed):
        """Masks of the allowed labels in the checked X, or None for all."""
        if allowed is None:
            return None
        structure = self.structure_
        if not isinstance(structure, NodeStructure):
            raise ValueError(
                "allowed requires a ChainStructure, TreeStructure or GraphStructure; got "
                f"structure={type(structure).__name__}."
            )
        return check_allowed_labels(
            allowed, structure._starts(X), structure.classes_, structure._place
        )

    def _ask_runs(self, method, X, min_length, allowed, nothing, **options):
        """Pairs that the chain finds for each example if runs have least lengths."""
        structure = self.structure_
        if not isinstance(structure, ChainStructure):
            raise ValueError(
                "min_length requires a ChainStructure; got "
                f"structure={type(structure).__name__}."
            )
        lengths = check_min_length(min_length, structure.classes_)
        masks, ask = self._check_allowed(X, allowed), getattr(structure, method)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X, *own: ask(X, w, lengths, *own, **options),
                nothing,
                allowed=masks,
            )

    def _ask_best_runs(self, X, min_length, allowed, method="_best_runs", **options):
        """The best labelings of each example, with their scores."""
        nothing = self._no_labels()[np.newaxis], np.zeros(1)
        return self._ask_runs(method, X, min_length, allowed, nothing, **options)

    def _ask(self, X, call, nothing=None, y=None, allowed=None):
        """call(X), piece by piece, with `nothing` as the result for empty examples.

        Copies of X, such as contiguous rows of float64, need memory for one piece only.

        `nothing` (number or any other object). `X`, `y` as of `_check_X`, and labels of
        it or None. `call`: (X, and y and allowed if given, of some nonempty examples)
        -> a result for each.
        """
        structure = self.structure_
        if structure.flat:
            return self._ask_rows(X, call, y)
        beside = [items for items in (y, allowed) if items is not None]
        if len(X) == 1 and not structure._is_empty(X[0]):
            return call(X, *beside)
        places = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        sizes = [structure._n_entries(X[i]) for i in places]
        pieces = item_pieces(sizes, count_threads(self.n_jobs, len(X)))
        if len(pieces) == 1 and len(places) == len(X) > 0:
            return call(X, *beside)
        answers = [nothing] * len(X)
        for piece in pieces:
            own = places[piece]
            if not own:
                continue
            data = [[X[i] for i in own], *(taken(items, own) for items in beside)]
            try:
                found = call(*data)
            except NoAllowedLabeling as error:
                raise ValueError(error.of(own[error.item])) from None
            for i, answer in zip(own, found, strict=True):
                answers[i] = answer
        if isinstance(nothing, float):
            return np.array(answers, dtype=np.float64)
        result = np.empty(len(X), dtype=object)
        for i, answer in enumerate(answers):
            result[i] = answer
        return result

    def _of_each(self, method, X, *args):
        """What a method of the structure returns, with a result for each example."""
        structure = self.structure_
        found = getattr(structure, method)(X, *args)
        n = X.shape[0] if structure.flat else len(X)
        return Answer(method, structure).of_each(found, n)

    def _ask_rows(self, X, call, y):
        if foreign_namespace(X) is not None:
            return call(X)
        n_rows = X.shape[0]
        pieces = [slice(None)]
        if self.structure_.has_classes:
            # Scores need memory, too.
            width = mean_width(X) + 4 * len(self.structure_.classes_)
            pieces = row_pieces(n_rows, width)
        result = None
        for piece in pieces:
            rows = X if len(pieces) == 1 else take_rows(X, piece)
            if not sparse.issparse(rows):
                rows = as_features_type(rows)
            found = call(rows) if y is None else call(rows, y[piece])
            if len(pieces) == 1:
                return found
            if result is None:
                result = np.empty((n_rows, *found.shape[1:]), found.dtype)
            result[piece] = found
        return result

    def _no_labels(self):
        """The labeling of an empty example."""
        return learned(self.structure_, "classes_", np.empty(0, dtype=object))[:0]

    def _no_scores(self):
        """The values for each class, of an empty example."""
        return np.empty((0, len(self.structure_.classes_)))

    @of_one_fit
    def predict(
        self, X: Any, *, allowed: Any = None, min_length: Any = None
    ) -> np.ndarray:
        """Predict the best output for each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            One row per example for flat structures. For others, a sequence with one item
            per example, such as arrays or CSR matrices of shape (T_i, n_features).
        allowed : sequence of n_samples entries, or None, default=None
            The labels that may be predicted, for chains, trees and graphs. The entry of
            an example is None (all labels), a boolean array of shape (T_i, n_classes) in
            the order of `classes_`, or a sequence with an entry for each position: a
            label, a set or list of labels, or None (or `structures.MISSING`) for any.
        min_length : int, dict or None, default=None
            The least number of equal labels in a row, for chains: one number, or a
            number for each label, ``{"walk": 5}``, and 1 for the others. Also the first
            and the last run are that long. A sequence that is shorter than all of these
            numbers gets one label. The labeling is the best one of this kind.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, a label indicator matrix, or an object array with one labeling
            per example. For a Dask collection the result is a lazy collection, and for a
            list of delayed parts a list of delayed results.

        Raises
        ------
        ValueError
            If `allowed` or `min_length`, with the `transitions` of the structure, leaves
            an example no labeling.
        """
        if holds_dask(X):
            check_is_fitted(self)
            refuse_allowed_of_dask(allowed)
            refuse_allowed_of_dask(min_length, "min_length")
            return map_lazily(self, "predict", X, self._empty_prediction())
        X = self._check_X(X, takes_foreign=True)
        if min_length is not None:
            pairs = self._ask_best_runs(X, min_length, allowed)
            return as_object_array([labelings[0] for labelings, _ in pairs])
        n_threads, masks = self._n_threads(X), self._check_allowed(X, allowed)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X, *own: self._of_each("decode_batch", X, w, n_threads, *own),
                self._no_labels(),
                allowed=masks,
            )

    def _empty_prediction(self):
        if not self.structure_.flat:
            return np.empty(0, dtype=object)
        X = np.zeros((1, self.n_features_in_))
        return self.structure_.decode_batch(X, self._weights)[:0]

    @available_if(lambda self: is_flat(learned(self, "structure_", self.structure)))
    @of_one_fit
    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes or labels (flat structures only).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Input data.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
            Scores. For two classes they are positive where ``classes_[1]`` is predicted.
        """
        X = self._check_X(X, takes_foreign=True)
        structure, w = self.structure_, self._weights

        def present(X):
            return structure.present_scores(structure.decision_function(X, w))

        return self._ask(X, present)

    @of_one_fit
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Score the predictions for X against y.

        The score is the accuracy for flat structures (subset accuracy if there are
        several labels), the accuracy per position for chains, and 1 minus the mean loss
        for user-defined structures. Only labels that are known count: not those that
        are MISSING or a set. Labels that were not seen in `fit` count as wrong,
        and a warning lists them.

        Parameters
        ----------
        X, y : as in `fit`
            Test data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the examples.

        Returns
        -------
        score : float
            Higher is better.
        """
        refuse_foreign(X=X, y=y, sample_weight=sample_weight)
        y_pred = self.predict(X)
        require_y(self, y)
        if not self.structure_.flat:
            entries = None
            if self.structure_.splits_hidden:
                y, entries = self.structure_.split_hidden(y)
            _, y = checked_data(self.structure_, X, y)
            if entries is not None:
                y, y_pred = self.structure_.known_nodes(y, y_pred, entries)
        else:
            found, of = column_names(y), "Those of fit are"
            known = self.structure_._label_names
            places = places_by_name("y", found, known, of, "label")
            y = as_canonical(y, "y")
            refuse_missing(y)
            y = y.toarray() if sparse.issparse(y) else y
            y = y if places is None else as_array("y", y)[:, places]
        unseen = self.structure_.unseen_labels(y)
        if unseen:
            warn_caller(unseen_words(unseen, self.structure_.classes_))
        return self.structure_.score(y, y_pred, sample_weight=sample_weight)

    @available_if(structure_has("k_best"))
    @of_one_fit
    def predict_k_best(
        self, X: Any, k: int = 5, *, allowed: Any = None, min_length: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best labelings of each example, with their scores.

        Available for chains, trees, and graphs without cycles.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        k : int, default=5
            Number of labelings.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that may be predicted, as in `predict`.
        min_length : int, dict or None, default=None
            As in `predict`: the k best of the labelings with runs of that length.

        Returns
        -------
        labelings : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i, T_i), with the best labeling first. m_i is k, or the
            number of labelings if that is smaller.
        scores : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i,). The difference between the first two scores measures
            how confident the prediction is.
        """
        check_integer("k", k, 1)
        X = self._check_X(X)
        if min_length is None:
            pairs = self._ask_k_best(X, k, allowed)
        else:
            pairs = self._ask_best_runs(X, min_length, allowed, k=k)
        labelings, scores = np.empty((2, len(X)), dtype=object)
        for i, pair in enumerate(pairs):
            labelings[i], scores[i] = pair
        return labelings, scores

    def _ask_k_best(self, X, k, allowed):
        masks = self._check_allowed(X, allowed)
        answer, k_best = Answer("k_best", self.structure_), self.structure_.k_best
        with self._reading() as w:
            return self._ask(
                X,
                lambda X, *own: one_by_one(
                    lambda x, *mask: answer.pair(k_best(x, w, k, *mask)), X, *own
                ),
                (self._no_labels()[np.newaxis], np.zeros(1)),
                allowed=masks,
            )

    @available_if(structure_has("max_marginals"))
    @of_one_fit
    def max_marginals(self, X: Any, *, allowed: Any = None) -> np.ndarray:
        """Compute max-marginals: the best score with each class at each position.

        Available for chains, trees, and graphs without cycles.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that are allowed, as in `predict`; -inf for the others.

        Returns
        -------
        ndarray of shape (n_samples,), dtype object
            Item i has shape (T_i, n_classes). The maximum of each row is the score of the
            best labeling. Its distance to the second largest entry is the margin by which
            the predicted label of that position wins.
        """
        X = self._check_X(X)
        masks = self._check_allowed(X, allowed)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X, *own: as_object_array(
                    one_by_one(
                        lambda x, *mask: self.structure_.max_marginals(x, w, *mask),
                        X,
                        *own,
                    )
                ),
                self._no_scores(),
                allowed=masks,
            )
