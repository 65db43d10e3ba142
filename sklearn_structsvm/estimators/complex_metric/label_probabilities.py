"""Probabilities of labels, in all forms used by scikit-learn."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import as_array, check_integer
from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm._utils.indicators import largest_of_rows
from sklearn_structsvm._utils.pieces import row_pieces
from sklearn_structsvm.confusion.label_rows import LabelRows

# The number of probabilities that are dense at once, if only some of each row are kept.
DENSE_AT_ONCE = 2**24


def label_probabilities(classifier, X, n_labels, n_candidates=None, **params):
    """`predict_proba` as one matrix of shape (n, L).

    The classifier may return an array or a sparse matrix of this shape, or a list with an
    array of two classes' probabilities for each label, as ``MultiOutputClassifier`` and
    forests do. With `n_candidates`, the result is a CSR matrix with that many largest
    probabilities of each row, computed for a few rows at a time.

    Returns
    -------
    ndarray or sparse matrix

    Raises
    ------
    ValueError
        For a result of another form or shape.
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
        known = getattr(classifier, "classes_", [np.arange(2)] * len(found))
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
