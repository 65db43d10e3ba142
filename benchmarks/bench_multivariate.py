"""Trained for a metric, or a classifier of labels whose threshold is moved afterwards.

Problems of two classes: a9a; one letter, or one kind of block, against the others; single
topics of Reuters. Of the last three the rarest classes that have --least-positives in the
training part, each a problem of its own, and means over them. For each metric on the test
part:

plug-in: a logistic regression; for F1 with the threshold of ComplexMetricClassifier.
hinge: BMRMClassifier, an SVM.
hinge, moved: for F1 that SVM with the threshold that is best in training.
trained: BMRMClassifier with the loss that is named for the metric.

"break-even" is the precision of as many rows as there are positives. C is chosen from
--Cs on a quarter of the training part, by the metric. Seconds are those of the processor,
for all these fits. "wins" counts the problems where trained is better than the plug-in.
"""

import time
import warnings
from typing import NamedTuple

from _batch import PROBLEMS, load_test
from _batch import Problem as Rows
from _common import data_file, load_reuters, make_parser, np, print_table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve, roc_auc_score
from sklearn.model_selection import train_test_split

from sklearn_structsvm import BMRMClassifier, ComplexMetricClassifier
from sklearn_structsvm.metrics import FBeta


class Problem(NamedTuple):
    data: str
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray


class Moved:
    """An SVM with the threshold of the best F1 in training."""

    def __init__(self, C):
        self.model = BMRMClassifier(C=C)

    def fit(self, X, y):
        scores = self.model.fit(X, y).decision_function(X)
        precision, recall, cuts = precision_recall_curve(y, scores)
        both = np.maximum(precision + recall, 1e-12)
        self.threshold = cuts[np.argmax((precision * recall / both)[:-1])]
        return self

    def predict(self, X):
        return (self.model.decision_function(X) >= self.threshold).astype(int)


def f1(model, X, y):
    return f1_score(y, model.predict(X))


def break_even(model, X, y):
    first = np.argsort(-model.decision_function(X), kind="stable")[: int(y.sum())]
    return float(y[first].mean())


def area(model, X, y):
    return roc_auc_score(y, model.decision_function(X))


def logistic(C):
    return LogisticRegression(C=C, max_iter=1000)


def plug_in(C):
    return ComplexMetricClassifier(
        logistic(C), metric=FBeta(pos_label=1), cv=None, confusion="labels"
    )


def hinge(C):
    return BMRMClassifier(C=C)


METRICS = {
    "F1": (f1, "f1", {"plug-in": plug_in, "hinge": hinge, "hinge, moved": Moved}),
    "break-even": (break_even, "break_even", {"plug-in": logistic, "hinge": hinge}),
    "ROC area": (area, "roc_auc", {"plug-in": logistic, "hinge": hinge}),
}
METHODS = ("plug-in", "hinge", "hinge, moved", "trained")


def rare(classes, y, y_test, args):
    """The rarest classes that have enough rows to be learned and tested."""
    counts = [(np.sum(y == c), c) for c in classes if np.sum(y_test == c) > 0]
    enough = sorted(
        pair for pair in counts if args.least_positives <= pair[0] <= 0.5 * len(y)
    )
    return [c for _, c in enough[: args.classes]]


def against_others(name, X, y, X_test, y_test, args):
    for c in rare(np.unique(y), y, y_test, args):
        yield Problem(name, X, (y == c).astype(int), X_test, (y_test == c).astype(int))


def load(name, args):
    if name == "a9a":
        data = PROBLEMS["a9a"](args.data)
        if data is not None:
            problem, (X_test, y_test) = load_test(Rows("a9a", *data), args.data)
            yield Problem(
                name, problem.X, (problem.y + 1) // 2, X_test, (y_test + 1) // 2
            )
    elif name == "letter":
        path = data_file(args.data, "letter", "data.npz")
        if path is not None:
            with np.load(path) as data:
                parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
            parts[::2] = [X / 7.5 - 1.0 for X in parts[::2]]
            yield from against_others(name, *parts, args)
    elif name == "pageblocks":
        path = data_file(args.data, "pageblocks", "pageblocks.npz")
        if path is not None:
            with np.load(path) as data:
                X, y = data["X"].astype(np.float64), data["y"]
            X, X_test, y, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=0
            )
            mean, size = X.mean(axis=0), X.std(axis=0)
            X, X_test = (X - mean) / size, (X_test - mean) / size
            yield from against_others(name, X, y, X_test, y_test, args)
    else:
        parts = load_reuters(args.data, 90)
        if parts is not None:
            X, Y, X_test, Y_test = parts
            counts = Y.sum(axis=0)
            enough = np.flatnonzero(counts >= args.least_positives)
            for c in enough[np.argsort(counts[enough], kind="stable")][: args.classes]:
                yield Problem(name, X, Y[:, c], X_test, Y_test[:, c])


def chosen(make, measure, problem, args):
    """The score on the test part, and seconds; C by a part that is held out."""
    begun = time.process_time()
    X, X_held, y, y_held = train_test_split(
        problem.X, problem.y, test_size=0.25, stratify=problem.y, random_state=0
    )
    scores = [measure(make(C).fit(X, y), X_held, y_held) for C in args.Cs]
    model = make(args.Cs[int(np.argmax(scores))]).fit(problem.X, problem.y)
    seconds = time.process_time() - begun
    return measure(model, problem.X_test, problem.y_test), seconds


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--names", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--Cs", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--classes", type=int, default=15)
    parser.add_argument("--least-positives", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in args.names:
        problems = list(load(name, args))
        for metric, (measure, loss, others) in METRICS.items() if problems else ():
            methods = {**others, "trained": lambda C, loss=loss: make_trained(loss, C)}
            results = {
                method: np.array([chosen(make, measure, p, args) for p in problems])
                for method, make in methods.items()
            }
            scores = {method: found[:, 0] for method, found in results.items()}
            wins = int(np.sum(scores["trained"] > scores["plug-in"]))
            share = 100.0 * np.mean([p.y.mean() for p in problems])
            cells = [
                f"{results[m][:, 0].mean():.3f} ({results[m][:, 1].mean():.2f} s)"
                if m in results
                else ""
                for m in METHODS
            ]
            rows.append(
                [name, f"{share:.1f} %", metric, *cells, f"{wins} of {len(problems)}"]
            )
    print_table(["data", "positives", "metric on test", *METHODS, "wins"], rows)


def make_trained(loss, C):
    return BMRMClassifier(loss=loss, C=C)


NAMES = ["a9a", "letter", "pageblocks", "reuters90"]

if __name__ == "__main__":
    main()
