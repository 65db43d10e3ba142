"""Default decisions beyond `bench_default_decisions.py`, whose data and parts these are.

- "size": 500 to 16,000 training rows. The default counts something between labels and
  probabilities, and tends to counting the labels.
- "weights": training and test rows have weights, exponentially distributed and a third as
  large for the first class.
- "labels": metrics, averages and numbers of labels for many labels.
- "small": halves of small tables with several classes, of which those of fewer than ten
  rows are left out: beside logistic regression with `class_weight="balanced"`.

A row compares the default ("new") with `confusion="labels"` or "probabilities", both by
the same probabilities out of five folds: means over the splits, and the difference with
its standard error. Losses are to be small, scores of many labels large.
"""

import warnings
from argparse import Namespace

from _common import make_parser, np, print_table
from _confusion import Given, expected_confusion, loss
from bench_default_decisions import (
    METRICS,
    MODELS,
    SPARSE,
    SPARSE_MODELS,
    GivenLabels,
    compared,
    label_models,
    label_proba,
    load,
    load_labels,
    parts_of,
    rule_run,
    split_of,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, train_test_split

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier

SIZES = [500, 2000, 8000, 16_000]
OF_SIZE = ["adult", "a9a", "letter"]
OF_WEIGHTS = ["compas", "adult", "abalone", "satimage"]
# And how many labels to predict for each row.
OF_LABELS = {"yeast": 4, "scene": 1, "reuters90": 1}
OF_SMALL = ["glass", "ecoli", "new_thyroid", "seeds", "vehicle", "tae", "contraceptive"]
SMALL_METRICS = ["balanced", "macro_f1"]
LABEL_RULES = {
    "F1 at k": {"metric": "f1", "labels_per_row": None},
    "recall at k": {"metric": "recall", "labels_per_row": None},
    "micro-F1 at k": {"metric": "f1", "average": "micro", "labels_per_row": None},
    "F1 of rows": {"metric": "f1", "average": "samples"},
    "micro-F1": {"metric": "f1", "average": "micro"},
    "balanced": {"metric": "balanced"},
    "MCC": {"metric": "mcc"},
    "G-mean": {"metric": "g_mean"},
}


def row_of(cell, new, other):
    off, se = compared(new, other)
    return [
        *cell,
        f"{np.mean(new):.4f}",
        f"{np.mean(other):.4f}",
        f"{off:+.4f} ± {se:.4f}",
    ]


def fast_models(name):
    models = SPARSE_MODELS if name in SPARSE else MODELS
    return {of: model for of, model in models.items() if of != "forest"}


def seeds(args):
    return range(args.first_seed, args.first_seed + args.splits)


def run_sizes(name, args):
    arrays = load(name, args)
    for rows in SIZES if arrays is not None else ():
        if rows > len(arrays[1]) // 2:
            continue
        of_size = Namespace(**vars(args) | {"rows": rows})
        found = {}
        for seed in seeds(args):
            split = split_of(arrays, seed, of_size)
            for of, model in fast_models(name).items():
                _, outside, _, test = parts_of(model, split)
                for metric in METRICS[min(test.P.shape[1], 3)][:2]:
                    for rule in ("auto", "labels"):
                        C = rule_run(outside, test, metric, rule)
                        key = of, metric, rule
                        found.setdefault(key, []).append(loss(metric, C))
        for (of, metric, rule), new in found.items():
            if rule == "auto":
                cell = name, rows, of, metric
                yield row_of(cell, new, found[of, metric, "labels"])


def weighted_loss(part, weights, train, train_weights, metric, rule):
    k = train.P.shape[1]
    model = ComplexMetricClassifier(Given(k), metric, cv="prefit", confusion=rule)
    model.fit(train.P, train.y, sample_weight=train_weights)
    C = np.zeros((1, k, k))
    np.add.at(C[0], part.y, model.predict_proba(part.P) * weights[:, None])
    return loss(metric, C / weights.sum())


def run_weights(name, args):
    arrays, found = load(name, args), {}
    for seed in seeds(args) if arrays is not None else ():
        split, rng = split_of(arrays, seed, args), np.random.default_rng(seed)
        for of, model in fast_models(name).items():
            _, outside, _, test = parts_of(model, split)
            of_train, of_test = (
                rng.exponential(size=len(part.y)) * np.where(part.y == 0, 1 / 3, 1.0)
                for part in (outside, test)
            )
            for metric in METRICS[min(test.P.shape[1], 3)][:3]:
                for rule in ("auto", "labels"):
                    value = weighted_loss(test, of_test, outside, of_train, metric, rule)
                    found.setdefault((of, metric, rule), []).append(value)
    for (of, metric, rule), new in found.items():
        if rule == "auto":
            yield row_of((name, of, metric), new, found[of, metric, "labels"])


def run_small(name, args):
    arrays = load(name, args)
    if arrays is None:
        return
    kept = np.bincount(arrays[1])[arrays[1]] >= 10
    X, y, group = (array[kept] for array in arrays)
    arrays = X, np.unique(y, return_inverse=True)[1], group
    found, model = {}, MODELS["logistic"]
    weighted = clone(model).set_params(logisticregression__class_weight="balanced")
    for seed in seeds(args):
        split = split_of(arrays, seed, args)
        _, outside, _, test = parts_of(model, split)
        predicted = weighted.fit(split[0], split[2]).predict(split[1])
        of_weighted = expected_confusion(test, np.eye(test.P.shape[1])[predicted])
        for metric in SMALL_METRICS:
            C = rule_run(outside, test, metric, "auto")
            both = loss(metric, C), loss(metric, of_weighted)
            found.setdefault(metric, []).append(both)
    for metric, losses in found.items():
        yield row_of((name, metric), *np.array(losses).T)


def run_labels(name, args):
    loaded, found = load_labels(name, args), {}
    if loaded is None:
        return
    X, Y, X_more, Y_more, C = loaded
    stack = sparse.vstack if sparse.issparse(X) else np.concatenate
    X, Y = stack((X, X_more)), np.concatenate((Y, Y_more))
    X = X.tocsr() if sparse.issparse(X) else X
    for seed in seeds(args):
        X_train, X_test, Y_train, Y_test = train_test_split(
            X, Y, train_size=min(args.rows, len(Y) // 2), random_state=seed
        )
        for of, model in label_models(X, C):
            held_out = np.empty(Y_train.shape)
            for train, test in KFold(5).split(held_out):
                fitted = clone(model).fit(X_train[train], Y_train[train])
                held_out[test] = label_proba(fitted, X_train[test])
            eta = label_proba(clone(model).fit(X_train, Y_train), X_test)
            for title, options in LABEL_RULES.items():
                at_k = "labels_per_row" in options
                options = options | ({"labels_per_row": OF_LABELS[name]} if at_k else {})
                rules = ["auto", "probabilities"]
                if not at_k and options.get("average") != "samples":
                    rules.append("labels")
                for rule in rules:
                    of_rule = MultilabelMetricClassifier(
                        GivenLabels(), cv="prefit", confusion=rule, **options
                    ).fit(held_out, Y_train)
                    key = of, title, rule
                    found.setdefault(key, []).append(of_rule.score(eta, Y_test))
    for (of, title, rule), other in found.items():
        if rule != "auto":
            yield row_of((name, of, title, rule), found[of, title, "auto"], other)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--test-rows", type=int, default=10_000)
    kinds = ["size", "weights", "labels", "small"]
    parser.add_argument("--kinds", nargs="*", default=kinds, choices=kinds)
    parser.add_argument("--quick", action="store_true", help="two splits")
    args = parser.parse_args()
    if args.quick:
        args.splits = 2
    of_rows = ["probabilities", "metric"]
    tables = {
        "size": (OF_SIZE, run_sizes, ["data", "rows", *of_rows], "labels"),
        "weights": (OF_WEIGHTS, run_weights, ["data", *of_rows], "labels"),
        "labels": (OF_LABELS, run_labels, ["data", *of_rows, "than"], "other"),
        "small": (OF_SMALL, run_small, ["data", "metric"], "class_weight"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in args.kinds:
            sets, run, header, other = tables[kind]
            rows = [row for name in sets for row in run(name, args)]
            if rows:
                print_table([*header, "new", other, "difference"], rows)


if __name__ == "__main__":
    main()
