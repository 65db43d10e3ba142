"""Class probabilities of a classifier: in the sample, held out, or prefitted."""

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_structsvm._contract.answers import Answer, checked_folds
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import _check_method_params, _safe_split
from sklearn_structsvm.estimators.complex_metric.fold_scales import seen_rows

# scikit-learn's 100 iterations rarely suffice if features are not scaled.
DEFAULT_MAX_ITER = 1000

# The largest deviation of a row's sum from 1: more than rounding in float32, but less
# than scores that are not probabilities.
SUM_TOLERANCE = 1e-3

# The largest deviation due to rounding, in units of the precision.
SUM_EPSILONS = 16


def default_classifier():
    """The default probability model."""
    classifier = LogisticRegression(max_iter=DEFAULT_MAX_ITER)
    if get_config()["enable_metadata_routing"]:
        classifier.set_fit_request(sample_weight=True)
    return classifier


def check_classifier(classifier, method, hint="", name="estimator"):
    """Raise TypeError if a classifier lacks a method that is needed."""
    if not hasattr(classifier, method):
        raise TypeError(
            f"{name} must have the method {method}; got {classifier!r}.{hint}"
        )


def fit_to_labels(classifier, X, y, **params):
    """The fitted classifier; a remedy is added to errors about labels."""
    try:
        # What a user's `fit` returns need not be the classifier.
        classifier.fit(X, y, **params)
        return classifier
    except ValueError as error:
        found = np.unique(y)
        is_coded = np.array_equal(found, np.arange(len(found)))
        if "class" in str(error) and not is_coded:
            error.add_note(
                f"{type(classifier).__name__} was fitted to the labels {found.tolist()}. "
                "Some libraries take 0, 1, ..., k - 1 only: encode y, for example with "
                "sklearn.preprocessing.LabelEncoder, and use folds that have all classes."
            )
        raise


def class_probabilities(classifier, X, classes, **params):
    """`predict_proba` with the columns in the order of `classes`.

    Returns
    -------
    ndarray of shape (n, k), float32 or float64
        A class unknown to the classifier has probability 0. Rows sum to 1 up to rounding:
        rows with small deviations are divided by their sum.

    Raises
    ------
    ValueError
        If the result has another shape, or if it is not made of probabilities.
    """
    known = np.asarray(classifier.classes_)
    answer = Answer("predict_proba", classifier)
    found = classifier.predict_proba(X, **params)
    probabilities = answer.probabilities(found, _num_samples(X), len(known), least=0.0)
    sums = probabilities.sum(axis=1)
    bad = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(bad):
        found = f"{probabilities[bad[0]]} for row {bad[0]}"
        raise answer.fault("have rows of sum 1", found)
    off = np.abs(sums - 1) > SUM_EPSILONS * np.finfo(probabilities.dtype).eps
    if off.any():
        probabilities = probabilities / np.where(off, sums, 1)[:, None]
    if np.array_equal(known, classes):
        return probabilities
    return reordered(probabilities, known, classes)


def reordered(probabilities, known, classes):
    result = np.zeros((len(probabilities), len(classes)), dtype=probabilities.dtype)
    where = {label: j for j, label in enumerate(known.tolist())}
    for j, label in enumerate(classes.tolist()):
        if label in where:
            result[:, j] = probabilities[:, where[label]]
    return result


def prefit_classes(classifier, y, what="y holds labels"):
    """The labels of a fitted classifier. ValueError if y has others."""
    if hasattr(classifier, "fit"):  # else there is no other way for it to be
        check_is_fitted(classifier)
    classes = np.asarray(classifier.classes_)
    unknown = sorted(set(np.unique(y).tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"{what} that the fitted estimator does not know: {unknown}. It was "
            f"fitted to {classes.tolist()}."
        )
    return np.sort(classes)


def held_out_probabilities(
    classifier, X, y, routed, *, classes, cv, n_jobs, names=None, with_seen=False
):
    """Probabilities for each fold's test part, by a fit to the rest.

    Parameters
    ----------
    classifier : estimator
        Cloned.
    cv : int or splitter
        Its test parts need not be a partition: a single split gives the independent
        samples of the paper, and with repeated folds rows occur several times.
    routed : Bunch
        `estimator.fit`, `estimator.predict_proba` and `splitter.split`: metadata.
    names : list or None
        Names of the classes in warnings. None uses their own names.
    with_seen : bool
        Whether the fits also predict rows that they have seen, see `fold_scales`.

    Returns
    -------
    rows : ndarray of shape (n',)
        The rows of X.
    probabilities : ndarray of shape (n', k)
    folds : list of slice
        The part of these rows that belongs to each fold.
    seen : list of (rows, probabilities) or None
        For each fold.
    """
    every = np.arange(_num_samples(X))
    folds = _stratified_folds(X, y, cv, routed)
    read = partial(class_probabilities, classes=classes)
    known = [seen_rows(*fold) if with_seen else every[:0] for fold in folds]
    asked = [
        (train, np.concatenate([test, rows]))
        for (train, test), rows in zip(folds, known, strict=True)
    ]
    _, parts = held_out_parts(
        classifier, X, y, fit_to_labels, read, asked, routed, n_jobs
    )
    _warn_of_missing(y, classes, [train for train, _ in folds], names)
    sizes = [len(test) for _, test in folds]
    slices = [slice(*pair) for pair in pairwise(np.cumsum([0, *sizes]).tolist())]
    rows = np.concatenate([test for _, test in folds])
    held_out = [part[:size] for part, size in zip(parts, sizes, strict=True)]
    seen = [
        (of_fold, part[size:])
        for of_fold, part, size in zip(known, parts, sizes, strict=True)
    ]
    return rows, np.concatenate(held_out), slices, seen if with_seen else None


def _stratified_folds(X, y, cv, routed):
    """List of (train, test).

    Raises
    ------
    ValueError
        If each class has fewer examples than there are folds, or if a training part has
        only one class.
    """
    try:
        with warnings.catch_warnings():
            # Few examples of a class are acceptable, but not none.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            folds = checked_folds(cv, X, y, classifier=True, **routed.splitter.split)
    except ValueError as error:
        error.add_note(f"cv={cv}: use fewer folds, or cv=None for none.")
        raise
    for train, _ in folds:
        found = np.unique(y[train])
        if len(found) < 2:
            raise ValueError(
                f"A fold of cv={cv} leaves only the class(es) {found.tolist()} for "
                "training. Use fewer folds, stratified ones, or cv=None for none."
            )
    return folds


def held_out_parts(classifier, X, y, fit, read, folds, routed, n_jobs):
    """Probabilities of each fold's test part, by a fit to the rest.

    Parameters
    ----------
    fit : callable
        (classifier, X, y, **params) -> None.
    read : callable
        (classifier, X, **params) -> probabilities.
    folds : list of (train, test)
    classifier, routed : as of `held_out_probabilities`

    Returns
    -------
    rows : ndarray of shape (n',)
    parts : list of what `read` returns
        One item per fold, with n' rows in total.
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_held_out)(clone(classifier), X, y, fit, read, train, test, routed)
        for train, test in folds
    )
    every = np.arange(_num_samples(X))
    return np.concatenate([every[test] for _, test in folds]), parts


def _held_out(classifier, X, y, fit, read, train, test, routed):
    X_train, y_train = _safe_split(classifier, X, y, train)
    X_test, _ = _safe_split(classifier, X, y, test, train)
    fit_params = _check_method_params(X, routed.estimator.fit, train)
    fit(classifier, X_train, y_train, **fit_params)
    params = _check_method_params(X, routed.estimator.predict_proba, test)
    return read(classifier, X_test, **params)


def _warn_of_missing(y, classes, train_parts, names):
    # A pair of group and label may not occur at all.
    missing = [
        name
        for label, name in zip(classes.tolist(), names or classes.tolist(), strict=True)
        if any(not (y[train] == label).any() for train in train_parts)
        and (names is None or (y == label).any())
    ]
    if missing:
        warn_caller(
            f"A fold has no training examples of the class(es) {missing}. Their "
            "probabilities are set to 0 there. Use fewer folds, or stratified ones.",
            UserWarning,
        )
