"""What oracles are given, checked: probabilities, losses, codes, cells and weights."""

import numpy as np


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
    L = np.ascontiguousarray(L, dtype=np.float64)
    try:
        L = L.reshape(shape)
    except ValueError:
        raise ValueError(
            f"Loss tensors must have shape {shape}; got {L.shape}."
        ) from None
    if not np.isfinite(L).all():
        raise ValueError("Loss tensors must be finite.")
    return L


def as_codes(values, n, size, name):
    """Integers 0, ..., size - 1, one for each row."""
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got {values.shape}.")
    if n and values.dtype.kind not in "iub":
        raise ValueError(f"{name} must hold integers; got {values.dtype}.")
    codes = values.astype(np.intp)
    bad = np.flatnonzero((codes < 0) | (codes >= size))
    if len(bad):
        raise ValueError(
            f"{name} must be among 0, ..., {size - 1}; "
            f"got {codes[bad[0]]} for row {bad[0]}."
        )
    return codes


def as_cells(cells, n, n_cells):
    """Cell of each row, and the number of cells."""
    if cells is None:
        return np.zeros(n, dtype=np.intp), n_cells or 1
    if n_cells is None:
        n_cells = int(np.max(cells, initial=0)) + 1
    return as_codes(cells, n, n_cells, "cells"), n_cells


def as_weights(sample_weight, n):
    """Weights as given, or ones; not all zero."""
    if sample_weight is None:
        weights = np.ones(n)
    else:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},); got {weights.shape}.")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0.0))
    if len(bad):
        raise ValueError(
            "sample_weight must be finite and >= 0; "
            f"got {weights[bad[0]]} for row {bad[0]}."
        )
    if not weights.any():
        raise ValueError("There must be a row whose sample_weight is not zero.")
    return weights
