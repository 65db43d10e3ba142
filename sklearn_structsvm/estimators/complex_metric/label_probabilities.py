"""Labels as indicators and their probabilities, in the forms that scikit-learn has."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_array, check_shape, check_sparse
from sklearn_structsvm._utils.labels import plain, refuse_missing
from sklearn_structsvm.confusion.label_rows import LabelRows


def as_indicator(y):
    """CSR of the labels of each row, of shape (n, L), and whether y was sparse.

    Raises
    ------
    ValueError
        For another shape, and what is not 0 or 1.
    """
    if sparse.issparse(y):
        check_sparse(y, "y")
        matrix = y.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
        refuse_missing(y, "y")
    else:
        refuse_missing(y, "y")
        values = as_array("y", y)
        if values.ndim != 2:
            raise ValueError(
                "Unknown label type: y must be an indicator of shape (n_samples, "
                "n_labels), a column of 0 and 1 for each label; got shape "
                f"{values.shape}. For one label of each sample see "
                "ComplexMetricClassifier, for lists of labels scikit-learn's "
                "MultiLabelBinarizer."
            )
        if values.shape[1] == 0:
            raise ValueError("y must have one column per label; it has none.")
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise ValueError("y must not contain NaN or infinity.")
    wrong = np.flatnonzero(~((values == 0) | (values == 1)).ravel())
    if len(wrong):
        raise ValueError(
            "Unknown label type: y must hold 0 and 1 only; got "
            f"{plain(values.ravel()[wrong[0]])!r}."
        )
    if not sparse.issparse(y):
        matrix = sparse.csr_array(values.astype(np.float64))
    matrix = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.eliminate_zeros()
    return matrix, sparse.issparse(y)


def label_probabilities(classifier, X, n_labels, **params):
    """`predict_proba` as one matrix of shape (n, L).

    It may be an array or a sparse matrix of this shape, or a list with an array of the
    two classes' probabilities for each label, as of ``MultiOutputClassifier`` and
    forests.

    Returns
    -------
    ndarray or sparse matrix

    Raises
    ------
    ValueError
        For a result of another form or shape.
    """
    found = classifier.predict_proba(X, **params)
    name = f"predict_proba of {type(classifier).__name__}"
    if isinstance(found, (list, tuple)):
        known = getattr(classifier, "classes_", [np.arange(2)] * len(found))
        pairs = zip(found, known, strict=True)
        columns = [_of_presence(part, classes, name) for part, classes in pairs]
        found = np.stack(columns, axis=1) if columns else np.empty((0, 0))
    elif not sparse.issparse(found):
        found = as_array(name, found)
        if n_labels == 1 and found.ndim == 2 and found.shape[1] == 2:
            # A single label is two classes to scikit-learn.
            found = found[:, 1:]
    if found.ndim != 2 or found.shape[1] != n_labels:
        raise ValueError(
            f"{name} has shape {found.shape} for {n_labels} labels. It must have one "
            "column per label, or be a list with one array per label."
        )
    return found


def _of_presence(part, classes, name):
    """The column of class 1, or zeros if a label was never there."""
    part, classes = as_array(name, part), np.asarray(classes).tolist()
    check_shape(name, part, "n_samples", len(classes))
    return part[:, classes.index(1)] if 1 in classes else np.zeros(len(part))


def as_rows(found, classifier):
    """`LabelRows` of what `label_probabilities` gives."""
    return LabelRows.of(found, f"predict_proba of {type(classifier).__name__}")


def stacked(parts):
    """Matrices one below the other; sparse if one is."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
