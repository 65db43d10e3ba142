"""MAPIE on given class probabilities; run by an interpreter that has it.

Prints a JSON line for each conformity score: the mean size and the coverage of the sets
of the test rows, over the splits whose calibration and test rows the file lists.
"""

import json
import sys

import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin


class Given(ClassifierMixin, BaseEstimator):
    """Rows are their own probabilities."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


def main():
    path, level = sys.argv[1], float(sys.argv[2])
    with np.load(path) as data:
        P, y, splits, n = data["P"], data["y"], data["splits"], int(data["n"])
    for score in ("lac", "aps", "raps"):
        sizes, covered = [], []
        for order in splits:
            own, new = order[:n], order[n:]
            model = SplitConformalClassifier(
                Given().fit(P, y),
                confidence_level=level,
                conformity_score=score,
                prefit=True,
                random_state=0,
            )
            model.conformalize(P[own], y[own])
            _, sets = model.predict_set(P[new])
            sets = sets[:, :, 0]
            sizes.append(float(sets.sum(axis=1).mean()))
            covered.append(float(sets[np.arange(len(new)), y[new]].mean()))
        line = {"score": score, "randomized": False}
        line |= {"size": np.mean(sizes), "coverage": np.mean(covered)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
