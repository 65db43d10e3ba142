"""Obvious references for the plug-in oracles, and samples with exact arithmetic."""

import numpy as np

from sklearn_structsvm.confusion.lmo.plugin import PluginLMO
from sklearn_structsvm.confusion.lmo.thresholds import ThresholdLMO

# Probabilities are multiples of 1 / 64, and costs and weights of 1 / 4. Sums and products
# of a few of them are exact, even in float32, so ties are real ties.
DRAWS = 64


def plugin_lmo(
    probabilities, y=None, cells=None, sample_weight=None, *, n_cells=None,
    confusion="probabilities", n_threads=1,
):  # fmt: skip
    """A fitted `PluginLMO`."""
    lmo = PluginLMO(confusion, n_threads=n_threads)
    return lmo.fit(probabilities, y, sample_weight, cells, n_cells)


def threshold_lmo(probabilities, y, cells=None, sample_weight=None, *, n_cells=None):
    """A fitted `ThresholdLMO`."""
    return ThresholdLMO().fit(probabilities, y, sample_weight, cells, n_cells)


def exact_sample(rng, n, k, m, dtype=np.float64):
    """Probabilities, labels and cells; probabilities have ties."""
    P = rng.multinomial(DRAWS, np.full(k, 1.0 / k), size=n) / DRAWS
    return P.astype(dtype), rng.integers(0, k, n), rng.integers(0, m, n)


def exact_losses(rng, m, k, kind):
    """(m, k, k) of small multiples of 1 / 4."""
    if kind == "any":
        return rng.integers(-8, 9, (m, k, k)) / 4
    rows, columns, diagonal = rng.integers(-8, 9, (3, m, k)) / 4
    L = rows[:, :, None] + columns[:, None, :]
    L[:, np.arange(k), np.arange(k)] += diagonal
    return L


def predict_by_loops(P, L, cells):
    """argmin_j Σ_i η_i L[a, i, j], the first one."""
    predicted = []
    for eta, a in zip(np.asarray(P, dtype=np.float64), cells, strict=True):
        predicted.append((eta[:, np.newaxis] * L[a]).sum(axis=0).argmin())
    return np.array(predicted, dtype=int)


def count_by_loops(P, y, cells, weights, predicted, m, counted):
    """Weighted shares by cell, label and prediction; C sums to 1."""
    k = P.shape[1]
    C = np.zeros((m, k, k))
    for r, j in enumerate(predicted):
        if counted == "labels":
            C[cells[r], y[r], j] += weights[r]
        else:
            C[cells[r], :, j] += weights[r] * P[r].astype(np.float64)
    return C / C.sum()
