"""Objectives in long double, and their minima by solvers that the package does not use.

Nothing here calls the package. An objective is a penalty of the weights plus the weighted
sum of a loss of groups of rows: of a group's largest row, of the logarithm of the sum of
their exponentials, or of the squares of what is positive.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

LONG = np.longdouble
# What an evaluation in double precision may lose, as a share of the sizes of its terms.
ROUNDING = 1e-13


@dataclass
class Convex:
    """min_w l2/2 w² + l1 |w| + Σ_i p_i loss(A_i w + b_i), for lower <= w <= upper.

    Attributes
    ----------
    loss : {"max", "log", "squares"}
    A : ndarray of shape (m, d)
    b : ndarray of shape (m,)
    starts : ndarray of shape (n,)
        The first row of each group.
    p : ndarray of shape (n,)
    l2, l1, lower, upper : ndarray of shape (d,)
    """

    loss: str
    A: np.ndarray
    b: np.ndarray
    starts: np.ndarray
    p: np.ndarray
    l2: np.ndarray
    l1: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def value(self, w):
        """The objective at w."""
        w = np.asarray(w, LONG)
        losses = self._losses(self.A @ w + self.b)
        return (self.l2 * w * w / 2 + self.l1 * abs(w)).sum() + self.p @ losses

    def size(self, w):
        """The size of the terms of this sum, which may cancel."""
        w = np.asarray(w, LONG)
        terms = np.maximum.reduceat(abs(self.A) @ abs(w) + abs(self.b), self.starts)
        if self.loss == "squares":
            terms = self._losses(abs(self.A) @ abs(w) + abs(self.b))
        return (self.l2 * w * w / 2 + self.l1 * abs(w)).sum() + self.p @ terms

    def _losses(self, scores):
        if self.loss == "squares":
            return np.add.reduceat(np.maximum(scores, 0) ** 2, self.starts)
        top = np.maximum.reduceat(scores, self.starts)
        if self.loss == "max":
            return top
        sizes = np.diff(self.starts, append=len(scores))
        rest = np.exp(scores - np.repeat(top, sizes))
        return top + np.log(np.add.reduceat(rest, self.starts))

    def minimum(self):
        """The smallest value that a solver finds, with its weights; zero weights count."""
        points = [np.clip(np.zeros(len(self.l2)), self.lower, self.upper)]
        found = self._solved()
        if found is not None and np.isfinite(found).all():
            points.append(np.clip(found, self.lower, self.upper))
        return min(((self.value(w), w) for w in points), key=lambda pair: pair[0])

    def _solved(self):
        """Weights by Clarabel, in units of the columns; None without it."""
        try:
            import clarabel
        except ImportError:
            return None
        unit = abs(self.A).max(axis=0)
        used = np.flatnonzero(unit > 0)
        if not len(used):
            return None
        unit, n = unit[used], len(self.starts)
        A = sparse.csr_array((self.A[:, used] / unit).astype(float))
        b = self.b.astype(float)
        d, m = len(used), len(b)
        sizes = np.diff(self.starts, append=m)
        owner = np.repeat(np.arange(n), sizes)
        l2 = (self.l2[used] / unit**2).astype(float)
        l1 = (self.l1[used] / unit).astype(float)
        p = self.p.astype(float)
        own = sparse.csr_array((np.ones(m), (np.arange(m), owner)), shape=(m, n))
        cones, rows, limits = [], [], []
        if self.loss == "squares":
            # One variable for each row: what of it is positive.
            width, quadratic, linear = m, 2 * p[owner], np.zeros(m)
            rows += [[A, -sparse.eye_array(m)], [None, -sparse.eye_array(m)]]
            limits += [-b, np.zeros(m)]
            cones.append(clarabel.NonnegativeConeT(2 * m))
        elif self.loss == "max":
            width, quadratic, linear = n, np.zeros(n), p
            rows.append([A, -own])
            limits.append(-b)
            cones.append(clarabel.NonnegativeConeT(m))
        else:
            # (score - loss, 1, z) in the exponential cone, and the sum of z at most 1.
            width, quadratic = n + m, np.zeros(n + m)
            linear = np.concatenate([p, np.zeros(m)])
            rows.append([None, sparse.hstack([sparse.csr_array((n, n)), own.T])])
            limits.append(np.ones(n))
            cones.append(clarabel.NonnegativeConeT(n))
            place = np.arange(m)
            first = sparse.csr_array((np.ones(m), (3 * place, place)), shape=(3 * m, m))
            third = sparse.csr_array(
                (np.ones(m), (3 * place + 2, place)), shape=(3 * m, m)
            )
            rows.append([-first @ A, sparse.hstack([first @ own, -third])])
            limits.append(first @ b + np.tile([0.0, 1.0, 0.0], m))
            cones += [clarabel.ExponentialConeT()] * m
        rows = [[block, rest, None] for block, rest in rows]
        eye = sparse.eye_array(d)
        if l1.any():
            rows += [[eye, None, -eye], [-eye, None, -eye]]
            limits.append(np.zeros(2 * d))
            cones.append(clarabel.NonnegativeConeT(2 * d))
        for sign, bound in ((1.0, self.upper), (-1.0, self.lower)):
            bound = (bound[used] * unit).astype(float)
            kept = np.flatnonzero(np.isfinite(bound))
            if len(kept):
                rows.append([sign * eye.tocsr()[kept], None, None])
                limits.append(sign * bound[kept])
                cones.append(clarabel.NonnegativeConeT(len(kept)))
        width_l1 = d if l1.any() else 0
        rows = [row if width_l1 else row[:2] for row in rows]
        shapes = (d, width, width_l1)
        rows = [
            sparse.hstack(
                [
                    block if block is not None
                    else sparse.csr_array((_height(row), shapes[at]))
                    for at, block in enumerate(row)
                ]
            )
            for row in rows
        ]  # fmt: skip
        P = sparse.diags_array(np.concatenate([l2, quadratic, np.zeros(width_l1)]))
        q = np.concatenate([np.zeros(d), linear, l1[:width_l1]])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(P), q, sparse.csc_matrix(sparse.vstack(rows)),
            np.concatenate(limits), cones, settings,
        )  # fmt: skip
        w = np.zeros(len(self.l2), LONG)
        w[used] = np.asarray(solver.solve().x)[:d] / unit
        return w


def _height(row):
    return next(block.shape[0] for block in row if block is not None)
