"""Risks of small random problems, with all their planes listed."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm.risks import BinaryHinge, MulticlassHinge, MultilabelHinge

KINDS = ("binary", "binary costs", "multiclass", "rescaled", "multilabel", "pairs")


@dataclass
class BatchProblem:
    """A risk, and its definition by listed planes."""

    risk: object
    X: object
    y: np.ndarray
    # The slopes β (planes, k) and offsets Δ (planes,) of each example.
    planes: list

    def objective(self, w, lam, intercept=0.0):
        """λ/2 ||w||² + Σ p_i max_y Δ_iy + ⟨β_iy, Wᵀx_i + b⟩."""
        Z = self.X @ np.reshape(w, (-1, self.risk.n_scores)) + intercept
        losses = [(c + B @ z).max() for z, (B, c) in zip(Z, self.planes, strict=True)]
        return 0.5 * lam * w @ w + self.risk.weights @ losses

    def dual_value(self, alpha, lam):
        """The dual value Σ p α Δ - ||Σ p α β x'||² / (2 λ), and Σ p α β.

        The sums are exact, in fractions, and the value is the highest one for shares that
        round to the given ones: if terms of 1e20 cancel, only rounding distinguishes the
        sum from zero. An example has a share for each of its planes, except for the zero
        plane of a binary loss.
        """
        loss, V, sums, at = Fraction(0), {}, [Fraction(0)] * self.risk.n_scores, 0
        sizes = {}
        alpha = np.ravel(alpha)
        for x, p, (slopes, costs) in zip(
            np.asarray(self.X), self.risk.weights, self.planes, strict=True
        ):
            first = self.risk.n_scores == 1
            for beta, cost in zip(slopes[first:], costs[first:], strict=True):
                share = Fraction(p) * Fraction(alpha[at])
                at += 1
                loss += share * Fraction(cost)
                for c in np.flatnonzero(beta):
                    step = share * Fraction(beta[c])
                    sums[c] += step
                    for j in np.flatnonzero(x):
                        term = step * Fraction(x[j])
                        V[j, c] = V.get((j, c), 0) + term
                        sizes[j, c] = sizes.get((j, c), 0) + abs(term)
        assert at == len(alpha)
        ulp = Fraction(np.finfo(float).eps)
        least = (max(abs(v) - ulp * sizes[key], 0) for key, v in V.items())
        return loss - sum(v * v for v in least) / (2 * Fraction(lam)), sums


def random_batch(
    kind, n=40, d=5, *, layout="dense", weights=None, ties=False, seed=0, n_threads=1
):
    rng = new_rng(seed)
    X = rng.standard_normal((n, d))
    if ties:
        X = np.round(X)
        X[n // 2 :] = X[: n - n // 2]
    if layout == "csr":
        X[rng.random((n, d)) < 0.5] = 0.0
    data = sparse.csr_array(X) if layout == "csr" else X
    k = 4
    costs = rng.uniform(0.5, 2.0, (k, k)) * (1.0 - np.eye(k))
    options = {"n_threads": n_threads}
    if kind.startswith("binary"):
        y = (X[:, 0] + rng.standard_normal(n) > 0.0).astype(int)
        y[:2] = 0, 1
        costs = np.array([[0.0, 1.0], [3.0, 0.0]]) if kind == "binary costs" else None
        risk = BinaryHinge(data, y, weights, label_costs=costs, **options)
        costs = 1.0 - np.eye(2) if costs is None else costs
        planes = [binary_planes(label, costs) for label in y]
    elif kind in ("multiclass", "rescaled"):
        y = (X[:, :3] + rng.standard_normal((n, 3))).argmax(axis=1)
        y[:k] = np.arange(k)
        costs = 1.0 - np.eye(k) if kind == "multiclass" else costs
        rescaled = kind == "rescaled"
        risk = MulticlassHinge(
            data, y, weights, label_costs=costs, rescaled=rescaled, **options
        )
        planes = [class_planes(label, costs, rescaled) for label in y]
    else:
        y = (X[:, :k] + rng.standard_normal((n, k)) > 0.0).astype(int)
        y[:2] = [[0] * k, [1] * k]
        costs = 1.0 - np.eye(k) if kind == "multilabel" else costs
        risk = MultilabelHinge(data, y, weights, label_costs=costs, **options)
        planes = [pair_planes(labels, costs) for labels in y]
    return BatchProblem(risk, data, y, planes)


def repeated_batch(kind):
    """A problem whose weights are 0, 1 and 2, and the risk of rows as often as that."""
    counts = new_rng(0).integers(0, 3, 40)
    weighted = random_batch(kind, weights=counts)
    rows = np.repeat(np.arange(40), counts)
    options = {"n_classes": 4} if kind == "multiclass" else {}
    return weighted, type(weighted.risk)(weighted.X[rows], weighted.y[rows], **options)


def binary_planes(label, costs):
    sign = 2.0 * label - 1.0
    return np.array([[0.0], [-sign]]), np.array([0.0, costs[label, 1 - label]])


def class_planes(label, costs, rescaled):
    slopes = np.eye(len(costs)) - np.eye(len(costs))[label]
    if rescaled:
        slopes = slopes * costs[label][:, np.newaxis]
    return slopes, costs[label]


def pair_planes(labels, costs):
    eye = np.eye(len(labels))
    present, absent = np.flatnonzero(labels), np.flatnonzero(labels == 0)
    slopes, offsets = [np.zeros(len(labels))], [0.0]
    for c in present:
        for d in absent:
            slopes.append(eye[d] - eye[c])
            offsets.append(costs[c, d])
    return np.array(slopes), np.array(offsets)
