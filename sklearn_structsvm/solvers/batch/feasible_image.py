"""Dual points of rows whose images suit an elastic net in spite of rounding.

An L1 norm bounds the entries of an image u = Xᵀ B by λ, beyond which squares make them
costly. If columns are as large as 1e9, λ may be less than a rounding error of the terms
of u: then u is not known in double precision, and neither B nor the weights are fine
enough for it. So here B is a sum of two doubles, and u is computed with twice the digits.
The steps that bring u within its bounds are those of Newton's method, but they change B
alone.
"""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.pieces import row_pieces, take_rows
from sklearn_structsvm._utils.tolerances import HUGE, SAME, TINY
from sklearn_structsvm.solvers.loop import ROUNDING, rounding_of
from sklearn_structsvm.solvers.qp._simplex_qp import wide_combination

# The rounding errors of the Hessian leave a small share of what is beyond the bounds in
# each step, so that two or three steps suffice.
MAX_STEPS = 8

# A step is made on a row if no coefficient goes farther than this share of the way to its
# end, so that the curvature holds and the coefficients stay those of a dual point.
FARTHEST = 0.5


@np.errstate(over="ignore", invalid="ignore")
def feasible_point(risk, response, B, w, lam, ridge=0.0):
    """A dual point near B with no entry of its image beyond λ + κ |w|, or not by as much.

    `risk`: its rows are in this process. `response`, `B` (n_samples, n_scores): `B` are
    the coefficients of the response, up to rounding. `w` (n_weights,): entries of the
    image that belong to nonzero weights go to their bounds. `lam`, `ridge`: λ and κ.
    Returns None if no entry is rough, or the new `B`, rounded to doubles, and bounds on
    the sizes of its image before this rounding.
    """
    image = _Image(risk, w, lam)
    if not len(image.rough):
        return None
    if risk.is_coupled:
        w = least_penalized(w, (len(w), risk.n_scores), lam, ridge)
    curvatures = risk.curvatures(response)
    high, low = risk.as_dual(B)
    best, least, bounds = None, np.inf, ridge * np.abs(w)
    for _ in range(MAX_STEPS):
        u, errors = image.of(high, low)
        sizes = np.abs(u) + errors
        largest = float((sizes - bounds).max())
        # A step toward bounds that contradict each other may lead away first.
        if largest < least:
            best, least = (high, sizes), largest
        if least <= (1.0 + SAME) * lam:
            break
        ends = np.where(w == 0.0, np.clip(u, -lam, lam), -lam * np.sign(w) - ridge * w)
        own = np.flatnonzero(u != ends)
        along = np.zeros_like(u)
        H = second_derivatives(risk, response, curvatures, own)
        if not np.isfinite(H).all():
            break
        along[own] = _newton_change(H, (ends - u)[own])
        step = risk.curved(response, risk.scores(along))
        room = np.abs(high)
        if risk.is_bounded:
            room = np.minimum(room, risk.weights[:, np.newaxis] - room)
        step[(np.abs(step) > FARTHEST * room).any(axis=1)] = 0.0
        high, low = risk.as_dual(*_sum(high, low, step))
    return best


def least_penalized(w, coupled, lam, ridge):
    """Weights after the best vector is added to those of features for each score.

    That changes no loss, so rounding may hide what it does to the penalty. `coupled`: as
    of `ModelSteps`.
    """
    # Of the points between two middle weights, each is a median.
    n, k = coupled
    W = w[:n].reshape(-1, k)
    ends = min(lam / (ridge * k + TINY), HUGE) * np.arange(-k, k + 1, 2)
    ends = W.mean(axis=1, keepdims=True) + ends
    moved = np.median(np.hstack([W, ends]), axis=1, keepdims=True)
    return np.append(W - moved, w[n:])


class _Image:
    """Images of coefficients, of which the rough entries have twice the digits.

    `rough`: the features, the constant one included, whose entries are rough.
    """

    def __init__(self, risk, w, lam):
        self.risk, self.n_features = risk, risk.X.shape[1]
        rounding, shape = rounding_of(risk), (-1, risk.n_scores)
        self.errors = rounding.of_means.reshape(shape)
        are_rough = rounding.are_rough(w, lam).reshape(shape)
        self.rough = np.flatnonzero(are_rough.any(axis=1))

    def of(self, high, low):
        """Xᵀ (high + low), flat, and bounds on its rounding errors."""
        risk = self.risk
        u = risk.gradient(high).reshape(-1, risk.n_scores)
        errors = self.errors.copy()
        u[self.rough] = self._rough_rows(high, low).T
        errors[self.rough] = ROUNDING * np.abs(u[self.rough])
        return u.ravel(), errors.ravel()

    def _rough_rows(self, high, low):
        X, k = self.risk.X, self.risk.n_scores
        columns = self.rough[self.rough < self.n_features]
        sums = np.zeros((k, 2, len(self.rough)))
        for piece in row_pieces(X.shape[0], len(self.rough)):
            rows = take_rows(X, piece)[:, columns]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            ones = np.full((len(rows), len(self.rough) - len(columns)), self.risk.bias)
            rows = np.ascontiguousarray(np.hstack([rows, ones]), dtype=np.float64)
            for c in range(k):
                shares = np.column_stack([high[piece, c], low[piece, c]])
                wide_combination(shares, rows, sums[c])
        return sums[:, 0]


def _newton_change(H, change):
    """H⁻¹ times the change, for a Hessian of columns of any sizes."""
    diagonal = np.diagonal(H)
    scales = np.zeros(len(H))
    scales[diagonal > 0.0] = 1.0 / np.sqrt(diagonal[diagonal > 0.0])
    H = H * scales * scales[:, np.newaxis]
    return scales * np.linalg.lstsq(H, scales * change, rcond=None)[0]


def _sum(high, low, change):
    """high + low + change as two arrays."""
    total = high + change
    added = total - high
    return total, low + ((high - (total - added)) + (change - added))


def second_derivatives(risk, response, curvatures, own):
    """Second derivatives of a risk by the weights `own`, at a response."""
    X, k = risk.X, risk.n_scores
    features, scores = own // k, own % k
    columns, place = np.unique(features, return_inverse=True)
    H = np.zeros((len(own), len(own)))
    groups = [np.flatnonzero(scores == c) for c in range(k)]
    n_own = int(np.count_nonzero(columns < X.shape[1]))
    for piece in row_pieces(X.shape[0], len(own)):
        rows = take_rows(X, piece)[:, columns[:n_own]]
        A = rows.toarray() if sparse.issparse(rows) else rows
        A = A.astype(np.float64, copy=False)
        if n_own < len(columns):
            A = np.hstack([A, np.full((len(A), 1), risk.bias)])
        squares = curvatures[piece]
        if risk.is_coupled:
            # p P Pᵀ is subtracted everywhere, so within a score p P becomes p P (1 -
            # P).
            p, P = risk.weights[piece, np.newaxis], response[piece]
            squares = p * P
            weighted = A[:, place] * (np.sqrt(p) * P)[:, scores]
            H -= weighted.T @ weighted
        roots = np.sqrt(squares)
        for c, group in enumerate(groups):
            weighted = A[:, place[group]] * roots[:, c : c + 1]
            H[np.ix_(group, group)] += weighted.T @ weighted
    return H
