"""Constraints on groups that are not known when predicting (`group_blind`).

G-mean under equal opportunity, equalized odds and demographic parity at 0.05, on the sets
whose groups are among the features and on the same without these columns, by logistic
regression. Means over the splits of expected confusion matrices; "met" counts training
parts on which the disparity of the labels is at most 0.05. Seconds are process seconds of
whole fits, the classifier's included, means of the splits.

sees: a rule for each group, which `predict` is given.
pairs: `group_blind=True`, one classifier of the pairs (group, label); labels counted (the
    default for two classes) or probabilities.
two: `group_blind=True` with a `group_estimator`: group and label independent given x.
no constraint: the loss and disparity without one.
"""

from time import process_time

from _common import make_parser, np, placed, print_table
from _confusion import (
    FAIRNESS,
    MAX_ITER,
    SLACKS,
    expected_confusion,
    fairness_constraint,
    load_splits,
    loss,
    mean_std,
    violation,
)
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier

# Columns that tell the group.
OF_GROUP = {
    "compas": [0, 13, 14],
    "adult": [71, 72],
    "crimes": [0, 124, 125],
    "lawschool": [0],
}
MET = 1e-9


def logistic():
    return LogisticRegression(max_iter=MAX_ITER)


METHODS = {
    "sees": {},
    "pairs": {"group_blind": True},
    "pairs, probabilities": {"group_blind": True, "confusion": "probabilities"},
    "two": {"group_blind": True, "group_estimator": logistic()},
}


def measures(split, kept, constraint, slack, constrained=True, **params):
    """Loss and disparity on the training part and on the test part, and seconds."""
    model = placed(ComplexMetricClassifier)(
        logistic(),
        "g_mean",
        constraint if constrained else (),
        **{"confusion": "labels", "cv": None} | params,
    )
    start = process_time()
    model.fit(split.train.X[:, kept], split.train.y, sensitive_features=split.train.group)
    found = [process_time() - start]
    for part in (split.train, split.test):
        P = model.predict_proba(part.X[:, kept], sensitive_features=part.group)
        C = expected_confusion(part, P, by_group=True)
        found += [loss("g_mean", C), violation(constraint, C) + slack]
    return found


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=FAIRNESS)
    parser.add_argument("--constraints", nargs="+", default=list(SLACKS))
    parser.add_argument("--splits", type=int, default=10)
    args = parser.parse_args()
    for data in args.sets:
        splits = load_splits(data, args.data, args.splits)
        for drop in (False, True) if splits else ():
            columns = np.arange(splits[0].train.X.shape[1])
            kept = np.setdiff1d(columns, OF_GROUP[data]) if drop else columns
            for name in args.constraints:
                slack, constraint = SLACKS[name], fairness_constraint(name)
                methods = METHODS | {"no constraint": {"constrained": False}}
                rows = []
                for method, params in methods.items():
                    found = [
                        measures(s, kept, constraint, slack, **params) for s in splits
                    ]
                    seconds, _, train, test, of_test = np.transpose(found)
                    rows.append([
                        method, mean_std(test), mean_std(of_test), mean_std(train),
                        f"{(train <= slack + MET).sum()} of {len(train)}",
                        seconds.mean(),
                    ])  # fmt: skip
                where = "without the group's columns" if drop else "as it is"
                print(f"{data}, {where}: G-mean under {name} {slack:g}\n")
                header = ["", "test loss", "test disparity", "training disparity", "met",
                          "s"]  # fmt: skip
                print_table(header, rows)


if __name__ == "__main__":
    main()
