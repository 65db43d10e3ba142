"""Structures whose labelings are listed as points (h, g), for searches."""

import numpy as np

from sklearn_structsvm.structures import Structure
from sklearn_structsvm.structures.constrained import in_angle


class Points(Structure):
    """x holds a row (h, g) per label; label 0 is the true one, at (1, 0).

    With w = [1] the margin of label y is h_y. `constrained` False takes the constrained
    oracle away. Every answer is noted in `asked`.
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


def plane(points):
    """(oracle, w) of a problem with one example, whose wrong labels have these points."""
    table = np.vstack([[1.0, 0.0], np.asarray(points, dtype=np.float64)])
    structure = Points().fit([table], [0])
    return structure.make_oracle([table], [0]), np.array([1.0])
