"""Plug-in classifiers: what they predict, alone and as parts of a mixture.

A plug-in classifier is known by its loss tensor L (m, k, k): where the class
probabilities are η, it predicts argmin_j Σ_i η_i L[a, i, j] in cell a (Proposition 5 of
Narasimhan et al.).
"""

import numpy as np

from sklearn_structsvm.confusion.lmo._plugin import PluginBlocks, top_classes
from sklearn_structsvm.confusion.lmo.arguments import (
    as_cells,
    as_losses,
    as_probabilities,
)

# Enough to know the classes' shares by, where they only decide an order of rows.
ROWS_FOR_SHARES = 4096


def predict_plugin(probabilities, L, cells=None, *, n_threads=1):
    """Predictions of the plug-in classifier of a loss tensor.

    Parameters
    ----------
    probabilities : array-like of shape (n, k)
    L : array-like of shape (m, k, k), or (k, k)
    cells : array-like of shape (n,) or None
        Cell of each row, 0, ..., m - 1; None for all zero.
    n_threads : int

    Returns
    -------
    ndarray of shape (n,), intp
        argmin_j Σ_i η_i L[a, i, j], the first if there are several.

    Examples
    --------
    >>> from sklearn_structsvm.confusion.lmo.base import predict_plugin
    >>> predict_plugin([[0.7, 0.3], [0.95, 0.05]], [[0.0, 1.0], [5.0, 0.0]])
    array([1, 0])
    """
    P = as_probabilities(probabilities)
    n, k = P.shape
    L = as_losses(L, (-1, k, k))
    chosen = np.zeros(n, dtype=np.int32)
    if n:
        _blocks_by_cell(P, cells, len(L), n_threads).predict(L, chosen, n_threads)
    return chosen.astype(np.intp)


def mixture_proba(probabilities, Ls, weights, cells=None, *, n_threads=1):
    """How probable each prediction of a randomised plug-in classifier is.

    Parameters
    ----------
    probabilities : array-like of shape (n, k)
    Ls : array-like of shape (T, m, k, k)
    weights : array-like of shape (T,)
        The probability of each plug-in classifier.
    cells : array-like of shape (n,) or None
        Cell of each row, 0, ..., m - 1; None for all zero.
    n_threads : int

    Returns
    -------
    ndarray of shape (n, k), float64
        Sum of the weights of the classifiers that predict each class.
    """
    P = as_probabilities(probabilities)
    n, k = P.shape
    Ls = np.asarray(Ls, dtype=np.float64)
    T, m = Ls.shape[:2]
    losses = as_losses(Ls.reshape(-1, k, k), (T * m, k, k)).reshape(T, m, k, k)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (T,):
        raise ValueError(f"weights must have shape ({T},); got {weights.shape}.")
    out = np.zeros((n, k))
    if n:
        _blocks_by_cell(P, cells, m, n_threads).mix(losses, weights, out, n_threads)
    return out


def _blocks_by_cell(P, cells, m, n_threads):
    cells, _ = as_cells(cells, len(P), m)
    order, ends, found = segments(cells, None, None)
    return PluginBlocks(P, order, ends, found, None, None, n_threads)


def likely_choices(P, weights, n_threads):
    """A number for each row; rows of one number are treated alike by many rules.

    It says which class the rules of equal and of balanced costs choose. Sums over the
    rows that one class is chosen for take less time where these stand together.
    """
    rows = np.flatnonzero(weights)
    rows = rows[:: max(1, len(rows) // ROWS_FOR_SHARES)]
    shares = P[rows].mean(axis=0, dtype=np.float64)
    balanced = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0.0)
    return top_classes(P, balanced.astype(P.dtype), n_threads)


def segments(key, weights, ties):
    """Rows in the order of their keys, those without weight left out.

    Parameters
    ----------
    key : ndarray of shape (n,), int
        Not negative.
    weights : ndarray of shape (n,) or None
    ties : ndarray of shape (n,), int, or None
        By which rows of one key are ordered; not negative.

    Returns
    -------
    order : ndarray of shape (n_kept,), intp
    ends : ndarray, intp
        Where in `order` the rows of each key that occurs end.
    keys : ndarray, intp
        The keys that occur, ascending.
    """
    if ties is None:
        order = _stable_order(key)
    else:
        order = _stable_order(ties)
        order = order[_stable_order(key[order])]
    if weights is not None:
        order = order[weights[order] > 0.0]
    in_order = key[order]
    ends = np.flatnonzero(np.append(np.diff(in_order) != 0, True)) + 1
    return order, ends, in_order[ends - 1].astype(np.intp)


def _stable_order(values):
    """Indices that sort; in linear time where 16 bits hold the values."""
    values = values.astype(np.min_scalar_type(int(values.max(initial=0))))
    return np.argsort(values, kind="stable")
