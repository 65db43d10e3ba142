"""A tagger that `sklearn_structsvm.export.export_tagger` has written, in NumPy alone."""

import json
from collections.abc import Mapping
from numbers import Number

import numpy as np


class Tagger:
    """Predicts as the exported model: Tagger("tagger.npz").predict([sequence])."""

    def __init__(self, path):
        with np.load(path) as arrays:
            vars(self).update(arrays)
        self.reads = json.loads(self.reads.tobytes())
        if self.reads["items"] == "tokens":
            # The row of `emission` of each number, and the rows of each vector.
            numbers = {name: j for j, name in enumerate(self.reads["names"])}
            vectors = {name: slice(*rows) for name, rows in self.reads["vectors"].items()}
            self.rows = numbers, vectors

    def predict(self, X, allowed=None):
        """Labels of sequences; `allowed` has a mask (T, n_classes) or None for each."""
        masks = [None] * len(X) if allowed is None else allowed
        with np.errstate(invalid="ignore", over="ignore"):  # as `decode` checks scores
            scores = [self.score(x) for x in X]
        return [self.decode(*pair) for pair in zip(scores, masks, strict=True)]

    def score(self, x):
        """Scores of the classes at each position, from its features alone."""
        if self.reads["items"] == "pairs":
            return x[0] @ self.emission + np.multiply(x[1], self.scale)
        if self.reads["items"] == "arrays" and np.shape(x) != (0,):
            return np.asarray(x @ self.emission)
        if isinstance(x, (str, Mapping)):
            raise TypeError(f"{x!r} is a token. For one sequence, pass [sequence].")
        scores = np.zeros((len(x), len(self.classes)))
        for row, token in zip(scores, x, strict=True):
            if self.reads["with_vector"]:
                token, vector = token
                self.add(row, "vector", np.asarray(vector))
            if isinstance(token, Mapping):
                for name, value in token.items():
                    self.add(row, name, value)
            else:
                for name in [token] if isinstance(token, (str, bytes)) else token:
                    self.add(row, name, 1.0)
        return scores

    def add(self, row, name, value):
        """Add the scores of one entry of a token; none if training had no such entry."""
        name = as_text(name)
        if isinstance(value, (str, bytes)):
            self.add(row, f"{name}={as_text(value)}", 1.0)
        elif isinstance(value, Mapping):
            for inner, own in value.items():
                self.add(row, f"{name}:{as_text(inner)}", own)
        elif value is None or isinstance(value, Number) or is_numeric(value):
            value = np.asarray(value, self.reads["dtype"])
            if value.ndim == 0 and np.isnan(value):
                raise ValueError(f"{name!r} has a missing value: leave it out.")
            if name in self.rows[value.ndim]:
                row += np.dot(value, self.emission[self.rows[value.ndim][name]])
        else:
            for own in value:
                if not isinstance(own, (str, bytes)):
                    raise TypeError(f"{name!r} lists {own!r}, which is not a string.")
                self.add(row, f"{name}={as_text(own)}", 1.0)

    def decode(self, scores, allowed):
        """The best labels, by the Viterbi algorithm; of equal ones the first."""
        if not np.isfinite(scores).all():
            raise ValueError("Features must be finite numbers.")
        if len(scores) == 0:
            return self.classes[:0]
        scores = scores + self.bias
        scores[0] += self.first
        scores[-1] += self.last
        if allowed is not None:
            allowed = np.asarray(allowed)
            if allowed.dtype != bool or allowed.shape != scores.shape:
                raise ValueError(f"allowed must have a mask of shape {scores.shape}.")
            scores[~allowed] = -np.inf
        for t in range(1, len(scores)):
            scores[t] += (scores[t - 1][:, np.newaxis] + self.transition).max(axis=0)
        if scores[-1].max() == -np.inf:
            raise ValueError("No labeling is allowed.")
        labels = [scores[-1].argmax()]
        for row in scores[-2::-1]:
            labels.append((row + self.transition[:, labels[-1]]).argmax())
        return self.classes[labels[::-1]]


def is_numeric(value):
    return hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biuf"


def as_text(name):
    return name.decode() if isinstance(name, bytes) else name
