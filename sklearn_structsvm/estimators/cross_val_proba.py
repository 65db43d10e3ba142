"""Probabilities of sequences, each by a fit to other sequences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import indexable

from sklearn_structsvm._contract.answers import Answer, checked_folds
from sklearn_structsvm._utils.borders import check_integer, check_sequence
from sklearn_structsvm._utils.compat import _check_method_params, _safe_split
from sklearn_structsvm._utils.labels import unique
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm.estimators.complex_metric.probabilities import check_classifier


@with_plain_calls
def cross_val_predict_proba(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: ArrayLike | None = None,
    cv: Any = None,
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
) -> np.ndarray:
    """Compute the probabilities of each sequence by a fit to the other folds.

    ``cross_val_predict(..., method="predict_proba")`` of scikit-learn encodes y as one
    label per row before any fit. For label sequences it raises an error, or, if all have
    the same length, encodes each position on its own. Use this function instead. For
    rows, use that of scikit-learn.

    Read more in the :ref:`User Guide <guide-probabilities>`.

    Parameters
    ----------
    estimator : classifier of sequences with `predict_proba`, or a pipeline
        A clone is fitted for each fold.
    X, y : sequences of n examples and labelings
        Sequences, trees, or whatever the first step of a pipeline accepts.
    groups : array-like of shape (n,) or None, default=None
        Groups of the examples, for splitters such as ``GroupKFold``.
    cv : int, splitter, iterable or None, default=None
        The folds, as in :func:`sklearn.model_selection.cross_val_predict`. Each example
        must be in exactly one test part.
    n_jobs : int or None, default=None
        Number of processes.
    params : dict or None, default=None
        Parameters of `fit`, such as ``sample_weight``.

    Returns
    -------
    ndarray of shape (n,), dtype object
        Item i has shape (T_i, n_classes): the marginal probabilities at each position or
        node. The columns are all labels, sorted. A label that a training part lacks has
        probability 0.

    Raises
    ------
    ValueError
        If an example is in no test part, or in several.
    TypeError
        If the estimator predicts rows.

    See Also
    --------
    sklearn_structsvm.metrics.token_log_loss : Scores probabilities of sequences.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier, cross_val_predict_proba
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> proba = cross_val_predict_proba(CRFClassifier(random_state=0), X, y, cv=4)
    >>> proba[0].shape == (len(y[0]), 3)
    True
    """
    check_sequence("X", X, "a sequence with one item per example", TypeError)
    if not (params is None or isinstance(params, Mapping)):
        raise TypeError(f"params must be a dict or None; got {type(params).__name__}.")
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs, -np.inf)
    check_classifier(estimator, "predict_proba", " CRFClassifier has it.")
    X, y = indexable(X, y)
    folds = checked_folds(cv, X, y, groups=groups)
    test = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(test), np.arange(len(X))):
        raise ValueError("Each example must be in the test part of exactly one fold.")
    ask = delayed(_ask_fold)
    found = Parallel(n_jobs=n_jobs)(
        ask(clone(estimator), X, y, *fold, params or {}) for fold in folds
    )
    classes = unique(np.concatenate([own for own, _ in found]), "y")
    result = np.empty(len(X), dtype=object)
    for (_, places), (own, probabilities) in zip(folds, found, strict=True):
        columns = np.searchsorted(classes, own)
        for i, rows in zip(places, probabilities, strict=True):
            result[i] = np.zeros((len(rows), len(classes)))
            result[i][:, columns] = rows
    return result


def _ask_fold(estimator, X, y, train, test, params):
    """Classes, and probabilities of the test part, of a fit to the training part."""
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    estimator.fit(X_train, y_train, **_check_method_params(X, params, indices=train))
    probabilities = estimator.predict_proba(X_test)
    if np.ndim(probabilities) != 1:
        raise TypeError(
            f"{type(estimator).__name__} predicts rows, not sequences: use "
            "sklearn.model_selection.cross_val_predict with method='predict_proba'."
        )
    k, owner = len(estimator.classes_), type(estimator)
    Answer("predict_proba", owner).of_each(probabilities, len(test))
    return estimator.classes_, [
        Answer("predict_proba", owner, i).probabilities(own, "T", k)
        for i, own in zip(test, probabilities, strict=True)
    ]
