"""Predictions of randomised classifiers, by hashing rows or by drawing."""

import hashlib
from numbers import Real

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm.confusion.lmo.plugin import mixture_proba, predict_plugin
from sklearn_structsvm.confusion.row_hash import row_uniforms


class PluginMixture:
    """Plug-in classifiers of loss tensors, each with its probability.

    Parameters
    ----------
    weights : ndarray of shape (T,)
        Positive, of sum 1.
    loss_matrices : ndarray of shape (T, m, k, k)
    """

    needs_probabilities = needs_cells = True

    def __init__(self, weights, loss_matrices):
        self.weights = weights
        self.loss_matrices = loss_matrices

    def predict(self, probabilities, cells, uniforms, n_threads=1):
        """Codes of the labels; a number in [0, 1) for each row chooses its classifier."""

        def component(t, rows):
            return predict_plugin(
                probabilities[rows],
                self.loss_matrices[t],
                cells[rows],
                n_threads=n_threads,
            )

        return _by_component(self.weights, uniforms, component)

    def proba(self, probabilities, cells, n_threads=1):
        """How probable each label is that `predict` gives, for random uniforms."""
        return mixture_proba(
            probabilities, self.loss_matrices, self.weights, cells, n_threads=n_threads
        )

    def scores(self, probabilities, cells):
        """Minus the expected cost of each class, where there is but one classifier."""
        (loss,) = self.loss_matrices
        scores = np.empty(probabilities.shape)
        for cell in np.unique(cells):
            rows = cells == cell
            scores[rows] = -(probabilities[rows] @ loss[cell])
        return scores


class ClassifierMixture:
    """The classifiers that an LMO found, each with its probability.

    Parameters
    ----------
    weights : ndarray of shape (T,)
    classifiers : list of length T
        The LMO's handles of them.
    lmo : LMO
        It knows how to ask them.
    n_classes : int
    """

    needs_probabilities = False

    def __init__(self, weights, classifiers, lmo, n_classes):
        self.weights = weights
        self.classifiers = classifiers
        self.lmo = lmo
        self.n_classes = n_classes

    @property
    def needs_cells(self):
        """Whether predictions depend on the cells."""
        return self.lmo.needs_cells

    def predict(self, X, cells, uniforms, n_threads=1):
        """As of `PluginMixture`, from rows and not their probabilities."""

        def component(t, rows):
            whole = isinstance(rows, slice)
            X_part = X if whole else _safe_indexing(X, np.flatnonzero(rows))
            return self._codes(self.classifiers[t], X_part, cells[rows])

        return _by_component(self.weights, uniforms, component)

    def proba(self, X, cells, n_threads=1):
        """As of `PluginMixture`, from rows and not their probabilities."""
        result = np.zeros((len(cells), self.n_classes))
        rows = np.arange(len(cells))
        for weight, classifier in zip(self.weights, self.classifiers, strict=True):
            result[rows, self._codes(classifier, X, cells)] += weight
        return result

    def _codes(self, classifier, X, cells):
        predicted = self.lmo.predict(classifier, X, cells)
        name = f"What {type(self.lmo).__name__}.predict returns"
        return check_codes(predicted, len(cells), self.n_classes, name)


def _by_component(weights, uniforms, component):
    if len(weights) == 1:
        return component(0, slice(None))
    chosen = np.searchsorted(np.cumsum(weights), uniforms, side="right")
    # The weights may sum to a little less than 1.
    chosen = np.minimum(chosen, len(weights) - 1)
    codes = np.empty(len(uniforms), dtype=np.intp)
    for t in np.unique(chosen):
        rows = chosen == t
        codes[rows] = component(t, rows)
    return codes


def choices(X, n_samples, random_state, seed=0):
    """A number in [0, 1) for each row: hashed from its values and a seed, or drawn."""
    if random_state is None:
        return row_uniforms(row_keys(X), seed)
    return check_random_state(random_state).random_sample(n_samples)


def row_keys(X):
    """X as numbers that tell its rows apart, for the hash.

    Numeric X stays as it is. Of other values, such as strings, a number is made that is
    the same in every process; each column of a data frame by itself.
    """
    if sparse.issparse(X):
        return X.tocsr()
    if hasattr(X, "columns") and not _is_numeric(np.asarray(X)):
        # The columns of pandas and of polars, where names may be there twice.
        take = X.iloc if hasattr(X, "iloc") else X
        columns = [np.asarray(take[:, j]) for j in range(X.shape[1])]
        return np.column_stack([_numbers(column) for column in columns])
    X = _as_array(X)
    if not _is_numeric(X):
        X = _numbers(X.ravel()).reshape(X.shape)
    return X.reshape(len(X), -1)


def _as_array(X):
    try:
        array = np.asarray(X)
        if array.dtype.kind in "SU" and not hasattr(X, "dtype"):
            # In a list, numbers beside strings are to stay numbers.
            array = np.asarray(X, dtype=object)
        return array
    except ValueError:  # rows of different lengths
        result = np.empty(len(X), dtype=object)
        for i, row in enumerate(X):
            result[i] = row
        return result


def _is_numeric(array):
    return array.dtype.kind in "fiub"


def _numbers(column):
    if _is_numeric(column):
        return column.astype(np.float64)
    return np.array([_number(value) for value in column.tolist()], dtype=np.float64)


def _number(value):
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, str):
        digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
    else:
        digest = bytes.fromhex(joblib.hash(value))[:8]
    # The 53 bits that a float holds exactly.
    return float(int.from_bytes(digest, "little") >> 11)
