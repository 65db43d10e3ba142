"""Default decision rules on new rows: what to count, and where probabilities come from.

Fresh random splits of up to --rows training rows (half of the rows, if there are fewer),
the rest for the test, up to --test-rows. Probabilities are those of logistic regression
after a StandardScaler, Gaussian naive Bayes and a forest of 50 trees, in the sample and
out of five folds. For sparse sets logistic regression has C=10 and no scaler, and naive
Bayes is Bernoulli's. All rules decide by the same fits.

- "new": the default, out of folds, for two classes on the scale of the classifier that
  predicts.
- "before": the default before: two classes count the labels and more classes the
  probabilities, moved half way to the labels where these contradict at 1 %, in the
  sample.
- "cv=5": the same, out of folds.
- "tuned": TunedThresholdClassifierCV with the same folds; two classes.
- "balanced": the plug-in rule argmax_j η_j / share of class j.

For many labels "before" counts the labels out of folds, and "probabilities" the
probabilities of the same.

A cell is a set, a classifier and a metric; its loss is that on the test part, its
difference to "new" is paired over the splits. First table: for each rule, in how many of
the cells new decisions are better and worse by more than two standard errors, and the
mean difference. Second: the cells. Third: constraints, with the violation on the test
part. Fourth: many labels, macro-F1, micro-F1 and labels predicted for a true one.
"""

import warnings
from pathlib import Path

from _common import load_reuters, load_yeast, make_parser, np, print_table
from _confusion import (
    FAIRNESS,
    MULTICLASS,
    Given,
    GivenLabels,
    data_file,
    expected_confusion,
    loss,
    violation,
)
from scipy import sparse
from scipy.special import chdtri
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    held_out_probabilities,
    on_scale_of,
)
from sklearn_structsvm.metrics import EqualizedOdds, EqualOpportunity, Precision, Recall

MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(50, random_state=0),
}
SPARSE_MODELS = MODELS | {
    "logistic": LogisticRegression(C=10.0, max_iter=1000, solver="liblinear"),
    "naive Bayes": BernoulliNB(),
}
SPARSE = ["a9a", "reuters_usa", "polarity"]
TWO_CLASSES = [*FAIRNESS, *SPARSE]
MORE_CLASSES = [*MULTICLASS, "letter"]
METRICS = {
    2: ["f1", "g_mean", "min_max", "kappa"],
    3: ["h_mean", "g_mean", "min_max", "micro_f1", "macro_f1"],
}
CONSTRAINED = {
    "balanced, equalized odds .05": (
        "balanced", EqualizedOdds(slack=0.05, reference="overall"),
    ),
    "balanced, equal opportunity .05": (
        "balanced", EqualOpportunity(slack=0.05, reference="overall"),
    ),  # fmt: skip
    "recall, precision >= .7": (
        Recall(pos_label=1), Precision(pos_label=1, at_least=0.7),
    ),  # fmt: skip
}
MULTILABEL = ["reuters90", "yeast", "scene"]
LABELS_FOR_HALF_WAY, LEVEL = 0.5, 0.01
NO_METADATA = Bunch(
    estimator=Bunch(fit={}, predict_proba={}), splitter=Bunch(split={})
)  # fmt: skip


class Part:
    """Labels, groups and probabilities of rows."""

    def __init__(self, y, group, P):
        self.y, self.group, self.P = y, group, P


def half_way(P, y):
    """Make the correction of probabilities that was the default before."""
    k = P.shape[1]
    gain = len(y) / np.maximum(np.bincount(y, minlength=k), 1)
    parts = np.argmax(P * gain, axis=1)
    N, M = np.zeros((2, k, k))
    np.add.at(N, (parts, y), 1.0)
    np.add.at(M, parts, P)
    V = np.array([(P[parts == b, b] * (1 - P[parts == b, b])).sum() for b in range(k)])
    known = V > 0
    off = (np.diagonal(N) - np.diagonal(M)) ** 2
    if (off[known] / V[known]).sum() <= chdtri(k, LEVEL):
        return lambda P: P
    wanted = LABELS_FOR_HALF_WAY * N + (1 - LABELS_FOR_HALF_WAY) * M
    factors = np.divide(wanted, M, out=np.ones((k, k)), where=M > 0)

    def corrected(P):
        found = P * factors[np.argmax(P * gain, axis=1)]
        return found / found.sum(axis=1, keepdims=True)

    return corrected


def rule_run(train, test, metric, confusion, constraint=(), by_group=False):
    """Expected confusion tensor on the test part."""
    model = ComplexMetricClassifier(
        Given(train.P.shape[1]), metric, constraint, cv="prefit", confusion=confusion
    )
    groups = (train.group, test.group) if by_group else (None, None)
    model.fit(train.P, train.y, sensitive_features=groups[0])
    predicted = model.predict_proba(test.P, sensitive_features=groups[1])
    return expected_confusion(test, predicted, by_group)


def old_run(train, test, metric, **params):
    """Like `rule_run`, for the default before."""
    if train.P.shape[1] == 2:
        return rule_run(train, test, metric, "labels", **params)
    move = half_way(train.P, train.y)
    parts = (Part(part.y, part.group, move(part.P)) for part in (train, test))
    return rule_run(*parts, metric, "probabilities", **params)


def load(name, args):
    """X, y and the group of each row, or None."""
    if name in SPARSE:
        ends = ("_train", "_test") if name == "a9a" else ("",)
        if data_file(args.data, name, f"X{ends[0]}.npz") is None:
            return None
        folder = Path(args.data or ".", name)
        X = [sparse.load_npz(folder / f"X{end}.npz") for end in ends]
        y = np.concatenate([np.load(folder / f"y{end}.npy") for end in ends])
        X, y = sparse.vstack(X, format="csr").astype(np.float64), (y > 0).astype(int)
        return X, y, np.zeros(len(y), dtype=int)
    path = data_file(args.data, name, "data.npz" if name == "letter" else f"{name}.npz")
    if path is None:
        return None
    with np.load(path) as data:
        if name == "letter":
            X, y = (
                np.concatenate([data[f"{part}_{of}"] for of in ("train", "test")])
                for part in "Xy"
            )
            y = np.unique(y, return_inverse=True)[1]
            return X.astype(np.float64), y, np.zeros(len(y), dtype=int)
        X, y = data["X"].astype(np.float64), data["y"]
        return X, y, data["group"] if "group" in data else np.zeros(len(y), dtype=int)


def split_of(arrays, seed, args):
    n = len(arrays[1])
    train = min(args.rows, n // 2)
    test = min(args.test_rows, n - train)
    return train_test_split(
        *arrays, train_size=train, test_size=test, random_state=seed, stratify=arrays[1]
    )


def parts_of(model, split):
    """Training parts in the sample, out of folds and on one scale, and the test part.

    On one scale are probabilities out of folds, for two classes, in the default.
    """
    X, X_test, y, y_test, group, group_test = split
    fitted = clone(model).fit(X, y)
    inside = fitted.predict_proba(X)
    rows, probabilities, folds, seen = held_out_probabilities(
        model, X, y, NO_METADATA, classes=fitted.classes_, cv=5, n_jobs=1, with_seen=True
    )
    held_out, scaled = np.empty((2, *inside.shape))
    held_out[rows] = scaled[rows] = probabilities
    if inside.shape[1] == 2:
        weights = np.ones(len(y))
        scaled[rows] = on_scale_of(inside, probabilities, folds, seen, weights)
    return (
        Part(y, group, inside),
        Part(y, group, held_out),
        Part(y, group, scaled),
        Part(y_test, group_test, fitted.predict_proba(X_test)),
    )


def tuned(outside, test, metric):
    """scikit-learn's threshold, of the same folds: what is held out of each is given."""
    scoring = get_metric(metric, np.array([0, 1])).scorer()
    found = TunedThresholdClassifierCV(Given(2), scoring=scoring, cv=StratifiedKFold(5))
    predicted = found.fit(outside.P, outside.y).predict(test.P)
    return expected_confusion(test, np.eye(2)[predicted])


def run_set(name, args):
    """Losses {(model, metric): {rule: [of each split]}} and the same of constraints."""
    arrays = load(name, args)
    cells, constrained = {}, {}
    for seed in range(
        args.first_seed, args.first_seed + args.splits * (arrays is not None)
    ):
        split = split_of(arrays, seed, args)
        for of, model in (SPARSE_MODELS if name in SPARSE else MODELS).items():
            inside, outside, scaled, test = parts_of(model, split)
            k = test.P.shape[1]
            gain = 1.0 / np.bincount(inside.y, minlength=k)
            plugin = np.eye(k)[np.argmax(test.P * gain, axis=1)]
            for metric in METRICS[min(k, 3)]:
                found = {
                    "new": rule_run(scaled, test, metric, "auto"),
                    "before": old_run(inside, test, metric),
                    "cv=5": old_run(outside, test, metric),
                    "balanced": expected_confusion(test, plugin),
                }
                if k == 2:
                    found["tuned"] = tuned(outside, test, metric)
                cell = cells.setdefault((name, of, metric), {})
                for rule, C in found.items():
                    cell.setdefault(rule, []).append(loss(metric, C))
            for what in CONSTRAINED if name in FAIRNESS else ():
                metric, constraint = CONSTRAINED[what]
                options = {"constraint": constraint, "by_group": True}
                found = {
                    "new": rule_run(scaled, test, metric, "auto", **options),
                    "before": old_run(inside, test, metric, **options),
                    "cv=5": old_run(outside, test, metric, **options),
                }
                cell = constrained.setdefault((name, of, what), {})
                for rule, C in found.items():
                    both = loss(metric, C), violation(constraint, C)
                    cell.setdefault(rule, []).append(both)
    return cells, constrained


def compared(new, other):
    """Mean difference, and its standard error."""
    off = np.asarray(new) - np.asarray(other)
    return off.mean(), off.std(ddof=1) / np.sqrt(len(off))


def report(cells):
    for title, few in (("two classes", True), ("more classes", False)):
        of_kind = {c: v for c, v in cells.items() if (c[0] in TWO_CLASSES) == few}
        if not of_kind:
            continue
        rules = list(next(iter(of_kind.values())))
        rows = []
        for rule in rules[1:]:
            found = [compared(cell["new"], cell[rule]) for cell in of_kind.values()]
            mean, se = np.array(found).T
            worse = mean > 2 * se + 1e-12
            rows.append([
                rule, len(mean), mean.mean(), int((mean < -2 * se - 1e-12).sum()),
                int(worse.sum()),
                "; ".join(
                    f"{', '.join(c)} (+{m:.3f} ± {s:.3f})"
                    for c, m, s, is_worse in zip(of_kind, mean, se, worse, strict=True)
                    if is_worse
                ),
            ])  # fmt: skip
        print(f"New decisions for {title}, less those of another rule.\n")
        header = ["rule", "cells", "mean", "better > 2 se", "worse > 2 se", "which"]
        print_table(header, rows)
        rows = [
            [*cell, *(f"{np.mean(losses[rule]):.4f}" for rule in rules)]
            for cell, losses in of_kind.items()
        ]
        print_table(["data", "probabilities", "metric", *rules], rows)


def report_constrained(cells):
    if not cells:
        return
    rules = ["new", "before", "cv=5"]
    rows = []
    for cell, found in cells.items():
        texts = []
        for rule in rules:
            of_loss, of_violation = np.array(found[rule]).T
            texts.append(f"{of_loss.mean():.3f} / {of_violation.mean():.3f}")
        rows.append([*cell, *texts])
    for rule in rules[1:]:
        pairs = [
            compared(*(np.array(found[r])[:, part] for r in ("new", rule)))[0]
            for found in cells.values()
            for part in (0, 1)
        ]
        print(
            f"New - {rule}, mean of {len(cells)} cells: loss {np.mean(pairs[::2]):+.4f}, "
            f"violation {np.mean(pairs[1::2]):+.4f}.\n"
        )
    print("Constraints: loss / violation on the test part.\n")
    print_table(["data", "probabilities", "problem", *rules], rows)


def load_labels(name, args):
    """X, Y, X_test, Y_test and C, or None."""
    if name == "reuters90":
        parts, C = load_reuters(args.data, 90), 10.0
    elif name == "yeast":
        parts, C = load_yeast(args.data), 1.0
    else:
        path, C = data_file(args.data, name, "data.npz"), 1.0
        if path is None:
            return None
        with np.load(path) as data:
            parts = [data[key] for key in ("X_train", "Y_train", "X_test", "Y_test")]
        parts = [p.astype(float if p.dtype.kind == "f" else int) for p in parts]
    return None if parts is None else (*parts, C)


def label_models(X, C):
    solver = "liblinear" if sparse.issparse(X) else "lbfgs"
    yield (
        "logistic",
        OneVsRestClassifier(LogisticRegression(C=C, max_iter=1000, solver=solver)),
    )
    if not sparse.issparse(X):
        yield "naive Bayes", OneVsRestClassifier(GaussianNB())
        yield "forest", RandomForestClassifier(50, random_state=0)


def label_proba(model, X):
    found = model.predict_proba(X)
    if isinstance(found, list):
        columns = zip(found, model.classes_, strict=True)
        return np.column_stack(
            [p[:, list(c).index(1)] if 1 in c else np.zeros(len(p)) for p, c in columns]
        )
    return found


def run_labels(name, n_rows, args):
    """A row for each classifier and rule: means over the splits."""
    loaded = load_labels(name, args)
    if loaded is None:
        return []
    *parts, C = loaded
    X_all = parts[0], parts[2]
    X_all = (
        sparse.vstack(X_all, format="csr")
        if sparse.issparse(parts[0])
        else (np.concatenate(X_all))
    )
    Y_all = np.concatenate([parts[1], parts[3]])
    scores = {}
    for seed in range(args.first_seed, args.first_seed + args.label_splits):
        X, X_test, Y, Y_test = train_test_split(
            X_all, Y_all, train_size=min(n_rows, 2 * len(Y_all) // 3), random_state=seed
        )
        for of, model in label_models(X, C):
            held_out = np.empty(Y.shape)
            for train, test in KFold(5).split(held_out):
                fitted = clone(model).fit(X[train], Y[train])
                held_out[test] = label_proba(fitted, X[test])
            eta = label_proba(clone(model).fit(X, Y), X_test)
            for metric in ("f1",) if args.quick else ("f1", "jaccard"):
                for rule, confusion in (
                    ("new", "auto"),
                    ("before", "labels"),
                    ("probabilities", "probabilities"),
                ):
                    rule_of = MultilabelMetricClassifier(
                        GivenLabels(), metric, cv="prefit", confusion=confusion
                    ).fit(held_out, Y)
                    found = rule_of.predict(eta)
                    scores.setdefault((of, metric, rule), []).append((
                        rule_of.score(eta, Y_test),
                        f1_score(Y_test, found, average="micro", zero_division=0),
                        found.sum() / Y_test.sum(),
                    ))  # fmt: skip
    rows = []
    for (of, metric, rule), found in scores.items():
        new = [macro for macro, *_ in scores[of, metric, "new"]]
        off, se = compared(new, [macro for macro, *_ in found])
        than = "-" if rule == "new" else f"{off:+.4f} ± {se:.4f}"
        means = [float(x) for x in np.mean(found, axis=0)]
        rows.append([name, n_rows, of, metric, rule, *means, than])
    return rows


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--label-splits", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument(
        "--sets", nargs="*", default=[*TWO_CLASSES, *MORE_CLASSES, *MULTILABEL]
    )
    parser.add_argument("--label-rows", type=int, nargs="*", default=[300, 2000, 4000])
    parser.add_argument(
        "--quick", action="store_true",
        help="three splits, and 2,000 rows of many labels",
    )  # fmt: skip
    args = parser.parse_args()
    if args.quick:
        args.splits, args.label_splits, args.label_rows = 3, 2, [2000]
    cells, constrained = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in args.sets:
            if name not in MULTILABEL:
                of_set, of_constraints = run_set(name, args)
                cells |= of_set
                constrained |= of_constraints
        report(cells)
        report_constrained(constrained)
        rows = [
            row
            for name in args.sets
            if name in MULTILABEL
            for n_rows in args.label_rows
            for row in run_labels(name, n_rows, args)
        ]
    if rows:
        header = [
            "data", "rows", "probabilities", "metric", "rule", "macro score", "micro-F1",
            "labels for a true one", "new - rule, macro",
        ]  # fmt: skip
        print("Many labels.\n")
        print_table(header, rows)


if __name__ == "__main__":
    main()
