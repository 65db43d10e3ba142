"""Does a model of durations gain beyond a chain on stacked scores?

A semi-Markov model, in plain Python: a chain over out-of-fold scores of boosting, with
two more weights for each label, of the logarithm of the length of a segment and of its
square. So its factors of durations are log-normal, or any other parabola of log-length.
Both are trained as SVMs, with the C that folds chose for both in the first split, on
readings of a sensor (older_people), in the splits of bench_stacked.py. Durations were to
be built if they gained two standard errors of macro-F1.

Writes results/durations.json; splits that are there are not measured again.
"""

import json
import warnings

from _common import HERE, make_parser, np, print_table
from bench_stacked import BOOSTING, older_people
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    cross_val_predict,
)

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import ChainStructure, Structure

RESULTS = HERE / "results" / "durations.json"
# A logarithm of a segment beside sums over its rows, some hundred of them.
SCALE = 30.0


class SemiMarkov(Structure):
    """Labels 0, ..., K - 1 of rows with given scores; segments have log-durations."""

    def __init__(self, n_labels=4):
        self.n_labels = n_labels

    def parts(self, w):
        k = self.n_labels
        return np.split(np.asarray(w), [1, 1 + k, 1 + k + k * k, 1 + 2 * k + k * k])

    def joint_feature(self, x, y):
        y, k = np.asarray(y), self.n_labels
        starts = np.flatnonzero(np.r_[True, y[1:] != y[:-1]])
        logs = np.log(np.diff(np.r_[starts, len(y)]))
        of_pairs = np.bincount(k * y[:-1] + y[1:], minlength=k * k)
        of_logs = [np.bincount(y[starts], logs**p, k) for p in (1, 2)]
        total = x[np.arange(len(y)), y].sum()
        rows = np.bincount(y, minlength=k)
        return np.r_[total, rows, of_pairs, SCALE * np.concatenate(of_logs)]

    def loss(self, y_true, y):
        return float(np.mean(np.asarray(y_true) != np.asarray(y)))

    def decode(self, x, w):
        return self.best(w[0] * x + self.parts(w)[1], w)

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        theta = w[0] * x + self.parts(w)[1] + lam / len(x)
        theta[np.arange(len(x)), y_true] -= lam / len(x)
        return self.best(theta, w)

    def best(self, theta, w):
        """The best labeling, by its last segment: O(T^2 K)."""
        _, _, pairs, first, second = self.parts(w)
        T, k = theta.shape
        A = pairs.reshape(k, k).copy()
        stay = np.diag(A).copy()
        np.fill_diagonal(A, -np.inf)
        logs = np.log(np.arange(1, T + 1))[:, np.newaxis]
        # Of segments of length T, ..., 1, so that those that end at t are a slice.
        longest = (SCALE * (first * logs + second * logs**2) - stay)[::-1].copy()
        sums = np.vstack([np.zeros(k), np.cumsum(theta + stay, axis=0)])
        begin, ends = np.empty((T, k)), np.empty((T, k))
        before, start = np.empty((T, k), np.intp), np.empty((T, k), np.intp)
        begin[0] = before[0] = 0
        for t in range(1, T + 1):
            totals = begin[:t] + longest[T - t :]
            start[t - 1] = totals.argmax(axis=0)
            ends[t - 1] = totals[start[t - 1], np.arange(k)] + sums[t]
            if t < T:
                into = ends[t - 1][:, np.newaxis] + A
                before[t] = into.argmax(axis=0)
                begin[t] = into.max(axis=0) - sums[t]
        labels, t, label = np.empty(T, np.intp), T, int(ends[-1].argmax())
        while t:
            s = start[t - 1, label]
            labels[s:t] = label
            t, label = s, before[s, label]
        return labels


def measure(X, y, train, test, C, max_iter):
    """{way: (error, macro F1)} of a split."""
    items = np.repeat(train, [len(y[i]) for i in train])
    rows, labels = (np.concatenate([own[i] for i in train]) for own in (X, y))
    scores = cross_val_predict(
        BOOSTING, rows, labels, groups=items, cv=GroupKFold(5), method="predict_proba"
    )
    scores = np.maximum(scores, 1.0 / len(rows))
    base, ends = BOOSTING.fit(rows, labels), np.flatnonzero(np.diff(items)) + 1
    classes = base.classes_
    own = np.split(np.log(scores), ends), np.split(classes.searchsorted(labels), ends)
    new = [np.log(np.maximum(base.predict_proba(X[i]), 1.0 / len(rows))) for i in test]
    truth, found = classes.searchsorted(np.concatenate([y[i] for i in test])), {}
    for way, structure in {
        "chain": ChainStructure(emission="given"),
        "log-durations": SemiMarkov(len(classes)),
    }.items():
        svm = BCFWClassifier(structure, C=C, max_iter=max_iter, random_state=0)
        predicted = np.concatenate(list(svm.fit(*own).predict(new)))
        f1 = f1_score(truth, predicted, average="macro")
        found[way] = float(np.mean(predicted != truth)), float(f1)
        print(way, *found[way], flush=True)
    return found


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--passes", type=int, default=15)
    args = parser.parse_args()
    data = older_people(args)
    if data is None:
        return
    X, y, groups = data
    cv = GroupShuffleSplit(args.splits, test_size=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        splits = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        for split in list(cv.split(X, y, groups))[len(splits) :]:
            splits.append(measure(X, y, *split, args.C, args.passes))
            RESULTS.write_text(json.dumps(splits) + "\n")
    rows = []
    for way in splits[0]:
        error, f1 = np.transpose([own[way] for own in splits])
        gain = f1 - [own["chain"][1] for own in splits]
        se = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        beyond = "-" if way == "chain" else f"{gain.mean():+.4f} ± {se:.4f}"
        rows.append([way, len(gain), f"{error.mean():.4f}", f"{f1.mean():.4f}", beyond])
    print("Half of the persons and rooms for training:\n")
    print_table(["way", "splits", "test error", "macro F1", "beyond the chain"], rows)


if __name__ == "__main__":
    main()
