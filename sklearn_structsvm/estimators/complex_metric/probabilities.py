"""Class probabilities of a classifier: in the sample, held out, or prefitted.

A threshold is chosen by probabilities of the classifiers of folds, and applied to those
of the classifier that is fitted to all rows. The latter has seen more rows. Log odds of
naive Bayes are then not the same: a word that one more row has may move all of them. So
they are matched by quantiles. Rows that both classifiers have seen show the scale of
each, in which the bias of having seen them is the same.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_structsvm._contract.answers import Answer, checked_folds
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import _check_method_params, _safe_split
from sklearn_structsvm.confusion.diagnostics import N_BINS
from sklearn_structsvm.estimators.inner import UNFITTED, regressor_words, supports

# Quantiles are means of log odds in N_BINS bins of equal weight, or fewer with less
# than this many different log odds for each. From five to 50 bins do equally well.
ROWS_PER_BIN = 10

# A fold's classifier predicts about as many rows that it has seen as rows that it has
# not, and at least this many, if there are so many.
SEEN_ROWS = 200


@dataclass
class Probabilities:
    """A classifier, and its probabilities of the rows by which rules are chosen.

    `P` (n', k), or what else is read. `model` (classifier): fitted to all rows. `rows`
    (n',): the rows that they are of; None for all. `folds` (list of slice): the part of
    them that belongs to each fold. None without folds: P is then of the model itself.
    """

    model: Any
    P: Any
    rows: np.ndarray | None = None
    folds: list | None = None


def check_classifier(classifier, method, hint="", name="estimator"):
    """Raise TypeError if a classifier lacks a method that is needed."""
    words = regressor_words(classifier)
    if words or not supports(classifier, method):
        raise TypeError(
            f"{name} must have the method {method}; got {classifier!r}.{words or hint}"
        )


def fit_to_labels(classifier, X, y, **params):
    """The fitted classifier; a remedy is added to errors about labels."""
    try:
        # What a user's `fit` returns need not be the classifier.
        classifier.fit(X, y, **params)
        return classifier
    except ValueError as error:
        found = np.unique(y)
        if len(found) == 1 and "class" in str(error):
            raise ValueError(
                f"Only the class {found.tolist()} is left for training. Use fewer folds, "
                "or more examples of the others."
            ) from error
        is_coded = np.array_equal(found, np.arange(len(found)))
        if "class" in str(error) and not is_coded:
            error.add_note(
                f"{type(classifier).__name__} was fitted to the labels {found.tolist()}. "
                "Some libraries take 0, 1, ..., k - 1 only: encode y, for example with "
                "sklearn.preprocessing.LabelEncoder, and use folds that have all classes."
            )
        raise


def fit_probabilities(
    classifier, X, y, routed, *, fit, read, hold_out=None, weights=None
):
    """Fit a classifier, unless it is already fitted, and get its `Probabilities`.

    `fit`: (classifier, X, y, **params) -> classifier. None if it is fitted. `read`:
    (classifier, X, **params) -> probabilities. `hold_out`: (classifier, X, y, routed)
    -> rows, probabilities, folds and seen rows. Given seen rows, probabilities are
    moved to the model's scale. None without folds. `weights` or None: of rows, for this.
    """
    P = rows = folds = seen = None
    if fit is not None and hold_out is not None:
        rows, P, folds, seen = hold_out(classifier, X, y, routed)
    if fit is not None:
        classifier = fit(clone(classifier), X, y, **routed.estimator.fit)
    if P is None or seen is not None:
        fitted = read(classifier, X, **routed.estimator.predict_proba)
        P = fitted if P is None else on_scale_of(fitted, P, folds, seen, weights)
    return Probabilities(classifier, P, rows, folds)


def class_probabilities(classifier, X, classes, **params):
    """`predict_proba` with the columns in the order of `classes`.

    Returns (n, k), float32 or float64. A class unknown to the classifier has
    probability 0. Rows sum to 1 up to rounding: rows with small deviations are divided
    by their sum. ValueError if the result is of another shape or not probabilities.
    """
    known = np.asarray(classifier.classes_)
    answer = Answer("predict_proba", classifier)
    found = classifier.predict_proba(X, **params)
    probabilities = answer.probabilities(found, _num_samples(X), len(known), least=0.0)
    sums = probabilities.sum(axis=1)
    # The largest deviation of a row's sum from 1: more than rounding in float32, but less
    # than scores that are not probabilities.
    bad = np.flatnonzero(np.abs(sums - 1) > 1e-3)
    if len(bad):
        found = f"{probabilities[bad[0]]} for row {bad[0]}"
        raise answer.fault("have rows of sum 1", found)
    # Rounding does not exceed this.
    off = np.abs(sums - 1) > 16 * np.finfo(probabilities.dtype).eps
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
    if supports(classifier, "fit"):  # else there is no other way for it to be
        check_is_fitted(classifier, msg=UNFITTED)
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

    `classifier`: cloned. `cv` (int or splitter): its test parts need not be a
    partition: a single split gives the independent samples of the paper, and with
    repeated folds rows occur several times. `routed` (Bunch): `estimator.fit`,
    `estimator.predict_proba` and `splitter.split`: metadata. `names`: names of the
    classes in warnings. None uses their own names. `with_seen`: whether the fits also
    predict rows that they have seen, see `on_scale_of`. Returns `rows` (n',): the rows
    of X; `probabilities` (n', k); `folds` (list of slice): the part of these rows that
    belongs to each fold; `seen` (list of (rows, probabilities) or None): for each fold.
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

    ValueError if each class has fewer examples than there are folds, or if a training
    part has only one class.
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

    `fit`: (classifier, X, y, **params) -> None. `read`: (classifier, X, **params) ->
    probabilities. `classifier`, `routed` as of `held_out_probabilities`. Returns `rows`
    (n',); `parts` (list of what `read` returns): one item per fold, with n' rows in
    total.
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
        )


def seen_rows(train, test):
    """Some of the training rows of a fold, evenly spaced."""
    n_wanted = max(len(test), SEEN_ROWS)
    return train[:: max(1, len(train) // n_wanted)]


def on_scale_of(fitted, held_out, folds, seen, weights):
    """Probabilities out of folds, on the scale of a classifier fitted to all rows.

    `fitted` (n, 2): probabilities of that classifier for all rows. `held_out` (n', 2):
    probabilities out of folds. `folds` (list of slice): the part of `held_out` that
    belongs to each fold. `seen` (list of ((m,), (m, 2))): for each fold: rows that its
    classifier has seen, and its probabilities of these. `weights` (n,): weights of all
    rows. Returns (n', 2): an increasing function of the fold's probabilities in each
    fold.
    """
    every = [fitted, held_out, *(of_fold for _, of_fold in seen)]
    # Naive Bayes may say 1e-60, and a forest of 50 trees that says 0 means less than .02.
    floor = min(P.min(where=P > 0.0, initial=1.0) for P in every) / 2.0
    floor = max(float(floor), float(np.finfo(np.float64).tiny))

    def log_odds(P):
        P = np.log(np.maximum(P.astype(np.float64, copy=False), floor))
        return P[:, 1] - P[:, 0]

    moved = np.empty(len(held_out))
    for fold, (rows, of_fold) in zip(folds, seen, strict=True):
        own = log_odds(of_fold), log_odds(fitted[rows])
        matched = matched_quantiles(*own, weights[rows])
        moved[fold] = matched(log_odds(held_out[fold]))
    found = np.column_stack([expit(-moved), expit(moved)])
    return found.astype(held_out.dtype, copy=False)


def matched_quantiles(before, after, weights):
    """A piecewise linear function that moves quantiles of `before` to those of `after`.

    `before`, `after`, `weights` (m,): an integer weight is as good as that many rows.
    Returns a function of arrays. It increases, and goes on with its last slopes.
    """
    n_values = len(np.unique(before[weights > 0.0]))
    if n_values == 0:
        return lambda z: z
    n_bins = max(1, min(N_BINS, n_values // ROWS_PER_BIN))
    x, y = (bin_means(values, weights, n_bins) for values in (before, after))
    # Equal values, such as those of most rows of a small tree, have one image.
    x, of_bin = np.unique(x, return_inverse=True)
    y = np.bincount(of_bin, weights=y) / np.bincount(of_bin)
    if len(x) == 1:
        return lambda z: z + (y[0] - x[0])
    slopes = np.diff(y) / np.diff(x)

    def matched(z):
        at = np.clip(np.searchsorted(x, z, side="right") - 1, 0, len(slopes) - 1)
        return y[at] + slopes[at] * (z - x[at])

    return matched


def bin_means(values, weights, n_bins):
    """Means of sorted values in bins of equal weight."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    ends = np.append(0.0, np.cumsum(weights))
    sums = np.append(0.0, np.cumsum(weights * values))
    cuts = np.linspace(0.0, ends[-1], n_bins + 1)
    return np.diff(np.interp(cuts, ends, sums)) * (n_bins / ends[-1])
