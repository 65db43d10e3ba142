"""Metrics of many labels, by enumeration of thresholds, sets or all labelings."""

from itertools import combinations, product

import numpy as np
from scipy import sparse


def confusion_of(hits, predicted, positives, total):
    """The matrix (2, 2) of sums of weights, as shares."""
    fp, fn = predicted - hits, positives - hits
    return np.array([[total - hits - fp - fn, fp], [fn, hits]]) / total


def loss_of(metric, chosen, counted, weights):
    """ψ of one label, given its predictions and the hits of each row."""
    C = confusion_of(
        weights @ (chosen * counted), weights @ chosen, weights @ counted, weights.sum()
    )
    return metric.value(np.maximum(C, 0.0))


def threshold_losses(metric, eta, counted, weights):
    """(chosen, loss) of predicting a label where η >= v, for each v, and for none."""
    for cut in [np.inf, *sorted(set(eta.tolist() + [0.0]), reverse=True)]:
        chosen = (eta >= cut).astype(float)
        yield chosen, loss_of(metric, chosen, counted, weights)


def all_sets(n_labels, k):
    """Indicators of the sets of k labels, (s, L)."""
    found = np.zeros((0, n_labels))
    for labels in combinations(range(n_labels), k):
        row = np.zeros((1, n_labels))
        row[0, list(labels)] = 1.0
        found = np.concatenate([found, row])
    return found


def all_labelings(n, n_labels, k):
    """Indicators of k labels for each of n rows, one at a time."""
    for rows in product(all_sets(n_labels, k), repeat=n):
        yield np.array(rows)


def mean_label_loss(metric, Y, eta, weights):
    """The mean over labels, counting probabilities."""
    columns = zip(Y.T, eta.T, strict=True)
    return np.mean([loss_of(metric, chosen, p, weights) for chosen, p in columns])


def expected_f(Y_row, eta_row, beta):
    """The expected F of a set, over all outcomes of independent labels; 0/0 is 0."""
    total = 0.0
    for outcome in product([0, 1], repeat=len(eta_row)):
        outcome = np.array(outcome)
        chance = np.prod(np.where(outcome, eta_row, 1.0 - eta_row))
        size = beta**2 * outcome.sum() + Y_row.sum()
        if size:
            total += chance * (1.0 + beta**2) * (outcome @ Y_row) / size
    return total


def random_eta(rng, n, n_labels, *, share=0.7, ties=True):
    """Probabilities, some of them 0, some of them equal."""
    eta = rng.beta(0.5, 1.5, size=(n, n_labels))
    if ties:
        eta = np.round(eta, 1)
    return np.where(rng.random(eta.shape) < share, eta, 0.0)


def as_csr(eta):
    """The same, storing only nonzero entries."""
    return sparse.csr_array(eta)
