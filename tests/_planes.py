"""Structures with labelings listed as points (h, g), for tests of searches."""

import numpy as np

from sklearn_structsvm.structures import Structure
from sklearn_structsvm.structures.constrained import in_angle


class Points(Structure):
    """x holds a row (h, g) per label; label 0 is the true one, at (1, 0).

    With w = [1] the margin of label y is h_y. `constrained=False` removes the constrained
    oracle. `asked` records all answers.
    """

    def __init__(self, constrained=True):
        self.constrained = constrained

    @property
    def has_constrained_decode(self):
        return self.constrained

    def joint_feature(self, x, y):
        return np.array([x[y, 0]])

    def loss(self, y_true, y):
        return float(self.table[y, 1])

    def fit(self, X, y):
        self.table = X[0]
        return super().fit(X, y)

    def _margins(self, x, y_true, w):
        return 1.0 + w[0] * (x[:, 0] - x[y_true, 0])

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return int(np.argmax(self._margins(x, y_true, w) + lam * x[:, 1]))

    def decode(self, x, w):
        return int(np.argmax(w[0] * x[:, 0]))

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        h, g = self._margins(x, y_true, w), x[:, 1]
        values = h + lam * g
        inside = [
            in_angle(a, b, alpha, beta, strict_alpha, strict_beta)
            for a, b in zip(h, g, strict=True)
        ]
        if not any(inside):
            return None
        return int(np.argmax(np.where(inside, values, -np.inf)))


class Inequality(Structure):
    """A label for each row of x, written exactly as in the documentation.

    φ(x, y) is the row, so margins are sums. `constrained_decode` compares g with α h and
    β h, while searches compare g/h with α and β.
    """

    def __init__(self, losses):
        self.losses = losses

    def joint_feature(self, x, y):
        return x[y]

    def loss(self, y_true, y):
        return float(self.losses[y])

    def decode(self, x, w):
        return int(np.argmax(x @ w))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return int(np.argmax(x @ w + lam * self.losses))

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        scores, g = x @ w, self.losses
        h = 1.0 + scores - scores[y_true]
        with np.errstate(invalid="ignore"):  # An infinite alpha, and h = 0.
            below = g < alpha * h if strict_alpha else g <= alpha * h
            above = beta * h < g if strict_beta else beta * h <= g
        if not (below & above).any():
            return None
        return int(np.argmax(np.where(below & above, h + lam * g, -np.inf)))


def inequality(points, rng, scale=1.0):
    """(oracle, w) for wrong labels with these points and random rows.

    `scale` is the scale of the features, and so of the rounding of h.
    """
    h, g = np.vstack([[1.0, 0.0], points]).T
    w = rng.standard_normal(5)
    x = scale * rng.standard_normal((len(h), 5))
    x[:, -1] = (h - 1.0 - x[:, :-1] @ w[:-1]) / w[-1]
    return Inequality(g).fit([x], [0]).make_oracle([x], [0]), w


def plane(points):
    """(oracle, w) of a problem with one example, whose wrong labels have these points."""
    table = np.vstack([[1.0, 0.0], np.asarray(points, dtype=np.float64)])
    structure = Points().fit([table], [0])
    return structure.make_oracle([table], [0]), np.array([1.0])
