"""How often each label occurs, is expected and is predicted, and its calibration."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.weights import effective_number

N_BINS = 10


def label_diagnostics(proba, truth, weights, predicted):
    """Shares of all rows, by label.

    `proba` (n, L), also sparse: probabilities. Entries that are not stored are 0.
    `truth` (n, L), also sparse: indicator of the true labels. `predicted` (L,): shares
    of the rows for which each label is predicted. Returns a dict of (L,): "share" of
    the rows that have the label; "expected_share", the mean probability;
    "predicted_share"; "rows" and "predicted_rows", these shares of the effective number
    of rows; and "calibration_error", the expected calibration error over `N_BINS` bins
    of equal width: the mean distance of the mean probability of a bin from the share of
    its rows that have the label.
    """
    p, y = sparse.csr_array(proba), sparse.csr_array(truth)
    total, n_labels = weights.sum(), p.shape[1]
    share, expected = y.T @ weights / total, p.T @ weights / total
    # The expected minus the actual occurrences, by bin. If no probability is stored, a
    # true label counts in the first bin.
    hits = y.multiply(p).tocsr()
    known = _by_bin(hits, np.ones(hits.nnz), weights)
    excess = _by_bin(p, p.data, weights) - known
    excess[:, 0] -= share * total - known.sum(axis=1)
    return {
        "share": share,
        "expected_share": expected,
        "predicted_share": np.array(predicted, dtype=np.float64),
        **numbers_of_rows(share, predicted, weights),
        "calibration_error": np.abs(excess).sum(axis=1).reshape(n_labels) / total,
    }


def numbers_of_rows(share, predicted, weights):
    """ "rows" and "predicted_rows" of `label_diagnostics`."""
    n = effective_number(weights)
    return {"rows": n * np.asarray(share), "predicted_rows": n * np.asarray(predicted)}


def _by_bin(p, values, weights):
    """Weighted sums of a value for each entry, of shape (L, N_BINS)."""
    rows = np.repeat(np.arange(p.shape[0]), np.diff(p.indptr))
    bins = np.minimum((N_BINS * p.data).astype(np.intp), N_BINS - 1)
    places = p.indices * np.intp(N_BINS) + bins
    sums = np.bincount(places, weights[rows] * values, minlength=p.shape[1] * N_BINS)
    return sums.reshape(p.shape[1], N_BINS)
