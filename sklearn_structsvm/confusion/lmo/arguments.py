"""Checks of the arguments of oracles: probabilities, losses and cells."""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes


def as_probabilities(probabilities):
    """(n, k) in float32 if given so, else in float64."""
    P = np.asarray(probabilities)
    if P.dtype != np.float32:
        P = P.astype(np.float64, copy=False)
    if P.ndim != 2 or P.shape[1] == 0:
        raise ValueError(f"Class probabilities must be of shape (n, k); got {P.shape}.")
    return P


def as_losses(L, shape):
    """Loss tensors in float64; finite."""
    L = np.require(L, np.float64, "CA")
    try:
        L = L.reshape(shape)
    except ValueError:
        raise ValueError(
            f"Loss tensors must have shape {shape}; got {L.shape}."
        ) from None
    if not np.isfinite(L).all():
        raise ValueError("Loss tensors must be finite.")
    return L


def as_cells(cells, n, n_cells):
    """Cell of each row, and the number of cells."""
    if cells is None:
        return np.zeros(n, dtype=np.intp), n_cells or 1
    if n_cells is None:
        n_cells = int(np.max(cells, initial=0)) + 1
    return check_codes(cells, n, n_cells, "cells"), n_cells
