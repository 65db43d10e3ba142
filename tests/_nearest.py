"""A structure in Python, in a module that processes find that a test has started."""

import numpy as np

from sklearn_structsvm.structures import Structure


class Nearest(Structure):
    """Labels 0 to 2 by three linear functions, written in Python."""

    def fit(self, X, y):
        self.n_weights_ = 3 * len(X[0])
        return self

    def joint_feature(self, x, y):
        return np.outer(np.arange(3) == y, x).ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w):
        return int((w.reshape(3, -1) @ x).argmax())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        scores = w.reshape(3, -1) @ x + lam * (np.arange(3) != y_true)
        return int(scores.argmax())
