"""Default decisions beside those of others, on tables that nothing here was chosen by.

Nine tables of two classes, as CSV files without a header, in the folder ``tables`` of
--data (those that are absent are skipped): they are named in `TABLES`, all of the UCI
repository, of ELENA (phoneme) or of Kubat and Woods (oil spills, mammography). Columns of
words are one-hot, what is missing is the median.

On each of 20 random splits (up to --rows training rows, half of the rows if there are
fewer, up to --test-rows others) probabilities are those of logistic regression after a
StandardScaler, histogram boosting, a forest and Gaussian naive Bayes. All rules decide by
the same fits, out of five folds where they have to choose something:

- "ours": `ComplexMetricClassifier` with its defaults.
- "tuned": scikit-learn's TunedThresholdClassifierCV, for the same metric and folds.
- "0.5": `predict`.
- "weights": `predict` of a fit with balanced weights.
- "plug-in": the threshold that is best if the probabilities are right: 1/6 for the costs,
  the share of the class for recalls.
- "xCOLUMNs": its Frank-Wolfe method for the metric.

Metrics are losses: 1 - F1, 1 - balanced accuracy, 1 - the G-mean, (1 - MCC) / 2, and the
cost of a row where a missed positive costs five times a false one.

Second, equal opportunity within .05 for the balanced error, on tables with a group:
"ours", the same with ``margin="auto"``, fairlearn's ThresholdOptimizer with tol=.05, and
"free", ours without the constraint. Loss and difference of recalls on the test part.

XCOLUMNS_PYTHON and FAIRLEARN_PYTHON name interpreters that have these packages. Tables
that are not measured (``--only``) keep their results, in ``results/decision_peers.json``.
"""

import csv
import json
import warnings
from itertools import islice, product
from pathlib import Path

from _common import (
    HERE,
    circumstances,
    make_parser,
    np,
    peer_version,
    placed,
    print_table,
)
from _confusion import (
    Given,
    Part,
    Peer,
    Split,
    expected_confusion,
    loss,
    saved_splits,
)
from bench_default_decisions import compared, parts_of
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    StratifiedKFold,
    TunedThresholdClassifierCV,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import EqualOpportunity, LinearLoss

# Files, the column of the label and what is positive, and the group of a row, if any.
TABLES = {
    "german": (["german.csv"], -1, {"2"}, lambda row: float(row[12]) <= 25),
    "mammography": (["mammography.csv"], -1, {"1"}, None),
    "phoneme": (["phoneme.csv"], -1, {"1"}, None),
    "oil spills": (["oil-spill.csv"], -1, {"1"}, None),
    "pima": (["pima-indians-diabetes.csv"], -1, {"1"}, lambda row: float(row[7]) > 30),
    "haberman": (["haberman.csv"], -1, {"2"}, None),
    "breast cancer": (
        ["breast-cancer.csv"], -1, {"recurrence-events"}, lambda row: row[0] >= "50",
    ),
    "wine": (
        ["winequality-white.csv", "winequality-red.csv"], -1, {"7", "8", "9"},
        lambda row: float(row[8]) > 3.2,
    ),
    "ionosphere": (["ionosphere.csv"], -1, {"b"}, None),
}  # fmt: skip
MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "forest": RandomForestClassifier(50, random_state=0),
    "naive Bayes": GaussianNB(),
}
COST = 5.0
METRICS = {
    "f1": "f1",
    "balanced": "balanced",
    "g_mean": "g_mean",
    "mcc": "mcc",
    "cost": LinearLoss([[0.0, 1.0], [COST, 0.0]]),
}
SLACK = 0.05
PARITY = EqualOpportunity(slack=SLACK)
FAIR = {
    "free": {},
    "ours": {"constraint": PARITY},
    "margin": {"constraint": PARITY, "margin": "auto"},
}
RESULTS = HERE / "results" / "decision_peers.json"


def read(name, folder):
    """X, y and groups, or None."""
    files, target, positive, group_of = TABLES[name]
    paths = [folder / file for file in files]
    if not all(path.exists() for path in paths):
        print(f"[skipped {name}: no {', '.join(files)} in {folder}]\n")
        return None
    rows = []
    for path in paths:
        with path.open(newline="") as file:
            found = [[v.strip().strip("'\"") for v in row] for row in csv.reader(file)]
            rows += [row for row in found if row]
    y = np.array([row[target] in positive for row in rows]).astype(int)
    group = [0 if group_of is None else int(group_of(row)) for row in rows]
    columns = [as_columns(column) for column in [*zip(*rows, strict=True)][:target]]
    return np.hstack(columns), y, np.array(group)


def as_columns(column):
    """One column of numbers, or one for each word."""
    try:
        numbers = [np.nan if value in ("?", "nan") else float(value) for value in column]
    except ValueError:
        words = np.array(column)
        return (words[:, None] == np.unique(words)).astype(float)
    numbers = np.array(numbers)
    return np.where(np.isnan(numbers), np.nanmedian(numbers), numbers)[:, None]


def split_of(arrays, seed, args):
    n = len(arrays[1])
    train = min(args.rows, n // 2)
    return train_test_split(
        *arrays, train_size=train, test_size=min(args.test_rows, n - train),
        random_state=seed, stratify=arrays[1],
    )  # fmt: skip


def ours(train, test, metric, constraint=(), with_groups=False, **params):
    """Expected confusion tensor on the test part, by group if it is constrained."""
    model = placed(ComplexMetricClassifier)(
        Given(2), metric, constraint, cv="prefit", **params
    )
    groups = (train.group, test.group) if constraint else (None, None)
    model.fit(train.P, train.y, sensitive_features=groups[0])
    predicted = model.predict_proba(test.P, sensitive_features=groups[1])
    return expected_confusion(test, predicted, with_groups)


def threshold_run(test, threshold, P):
    return expected_confusion(test, np.eye(2)[(P[:, 1] > threshold).astype(int)])


def score(y, predicted, metric):
    """1 - loss or the like, of counts alone: it is asked a hundred times a fold."""
    hits, positive, found = float(y @ predicted), float(y.sum()), float(predicted.sum())
    negative = len(y) - positive
    rejected = negative - (found - hits)
    recalls = hits / positive, rejected / negative
    if metric == "f1":
        return 2.0 * hits / max(positive + found, 1.0)
    if metric == "cost":
        return -(found - hits) - COST * (positive - hits)
    if metric == "mcc":
        sides = found * positive * negative * (len(y) - found)
        return (hits * len(y) - found * positive) / np.sqrt(max(sides, 1.0))
    return sum(recalls) if metric == "balanced" else recalls[0] * recalls[1]


def tuned(outside, test, metric):
    """scikit-learn's threshold, of the same folds: what is held out of each is given."""
    found = TunedThresholdClassifierCV(
        Given(2), scoring=make_scorer(score, metric=metric), cv=StratifiedKFold(5)
    )
    try:
        predicted = found.fit(outside.P, outside.y).predict(test.P)
    except ValueError as error:  # probabilities of a fold that are all the same
        if "constant predictions" not in str(error):
            raise
        predicted = test.P.argmax(axis=1)
    return expected_confusion(test, np.eye(2)[predicted])


def weighted(model, split):
    """Probabilities of a fit with balanced weights."""
    X, X_test, y = split[:3]
    weights = compute_sample_weight("balanced", y)
    last = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    params = {f"{last}sample_weight": weights}
    return clone(model).fit(X, y, **params).predict_proba(X_test)


def plug_in(metric, train):
    """The threshold that is best for right probabilities, or None."""
    if metric == "cost":
        return 1.0 / (1.0 + COST)
    return train.y.mean() if metric in ("balanced", "g_mean") else None


def recall_gap(C):
    """Difference of the groups' recalls of the positive class."""
    recalls = C[:, 1, 1] / C[:, 1].sum(axis=1)
    return float(np.ptp(recalls))


def measure(name, args, peers):
    """{model: {"rules": {metric: {rule: losses}}, "fair": {rule: [[loss, gap]]}}}."""
    arrays = read(name, Path(args.data or ".", "tables"))
    if arrays is None:
        return None
    has_groups = TABLES[name][3] is not None
    found, saved = {}, []
    for of, model in MODELS.items():
        rules, fair = {metric: {} for metric in METRICS}, {}
        for seed in range(args.splits):
            split = split_of(arrays, seed, args)
            _, outside, scaled, test = parts_of(model, split)
            saved.append(Split(name, seed, as_saved(outside), as_saved(test)))
            balanced = weighted(model, split)
            for metric, target in METRICS.items():
                C = {
                    "ours": ours(scaled, test, target),
                    "tuned": tuned(outside, test, metric),
                    "0.5": threshold_run(test, 0.5, test.P),
                    "weights": threshold_run(test, 0.5, balanced),
                }
                threshold = plug_in(metric, scaled)
                if threshold is not None:
                    C["plug-in"] = threshold_run(test, threshold, test.P)
                for rule, tensor in C.items():
                    rules[metric].setdefault(rule, []).append(loss(target, tensor))
            for rule, params in FAIR.items() if has_groups else ():
                tensor = ours(scaled, test, "balanced", with_groups=True, **params)
                fair.setdefault(rule, []).append(of_groups(tensor))
        found[of] = {"rules": rules, "fair": fair}
    add_peers(found, saved, peers, has_groups)
    sizes = {"rows": len(arrays[1]), "share": round(float(arrays[1].mean()), 4)}
    return {"splits": args.splits, **sizes, "models": found}


def add_peers(found, splits, peers, has_groups):
    """What other packages make of the splits of all models."""
    n = len(splits) // len(found)
    with saved_splits(splits) as path:
        runs = iter(peers["xcolumns"].runs(path, "xcolumns", ",".join(METRICS)))
        for metric, of_model in product(METRICS, found.values()):
            losses = [loss(METRICS[metric], run.test) for run in islice(runs, n)]
            if losses:
                of_model["rules"][metric]["xCOLUMNs"] = losses
        if not has_groups:
            return
        runs = peers["fairlearn"].runs(
            path, "threshold_optimizer", "equal_opportunity", slack=SLACK, by_group=1
        )
        for i, of_model in enumerate(found.values()) if runs else ():
            own = runs[i * n : (i + 1) * n]
            of_model["fair"]["fairlearn"] = [of_groups(run.test) for run in own]


def of_groups(C):
    """Balanced loss and the difference of recalls."""
    return [loss("balanced", C), recall_gap(C)]


def as_saved(part):
    """What peers read: given probabilities they need no features."""
    return Part(part.P[:, :0], part.y, part.group, part.P)


def cells_of(results):
    """(table, model, metric) and losses by rule."""
    for name, of_table in results["tables"].items():
        for of, found in of_table["models"].items():
            for metric, by_rule in found["rules"].items():
                yield (name, of, metric), by_rule


def summary(results, key=lambda cell: "all"):
    """Rows: part, rule, cells, mean difference, cells better and worse by 2 s.e."""
    found = {}
    for cell, by_rule in cells_of(results):
        for rule, losses in by_rule.items():
            if rule != "ours":
                mean, error = compared(by_rule["ours"], losses)
                found.setdefault((key(cell), rule), []).append((mean, error))
    rows = []
    for (part, rule), pairs in found.items():
        mean, error = np.array(pairs).T
        rows.append([
            part, rule, len(mean), f"{mean.mean():+.4f}",
            int((mean < -2 * error - 1e-12).sum()), int((mean > 2 * error + 1e-12).sum()),
        ])  # fmt: skip
    return rows


def worst(results, rule, n=5):
    """The cells in which ours is worst beside a rule."""
    found = []
    for cell, by_rule in cells_of(results):
        if rule in by_rule:
            mean, error = compared(by_rule["ours"], by_rule[rule])
            found.append((mean, error, cell))
    found.sort(key=lambda each: -each[0])
    return [[", ".join(cell), f"{m:+.4f} ± {e:.4f}"] for m, e, cell in found[:n]]


def fair_rows(results):
    """Table, model, and by rule: mean loss / mean gap / share within the slack."""
    rows = []
    for name, of_table in results["tables"].items():
        for of, found in of_table["models"].items():
            if not found["fair"]:
                continue
            row = [name, of]
            for rule in (*FAIR, "fairlearn"):
                both = np.array(found["fair"].get(rule, []))
                if not len(both):
                    row.append("-")
                    continue
                within = (both[:, 1] <= SLACK + 1e-9).mean()
                of_loss, of_gap = both.mean(axis=0)
                row.append(f"{of_loss:.3f} / {of_gap:.3f} / {within:.0%}")
            rows.append(row)
    return rows


def report(results):
    header = ["", "than", "cells", "ours less it", "better > 2 se", "worse > 2 se"]
    print_table(header, summary(results))
    print_table(header, summary(results, lambda cell: cell[1]))
    print_table(header, summary(results, lambda cell: cell[2]))
    for rule in ("tuned", "weights", "0.5", "xCOLUMNs"):
        print_table([f"worst beside {rule}", "difference"], worst(results, rule))
    print_table(["", "", *FAIR, "fairlearn"], fair_rows(results))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--test-rows", type=int, default=4000)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--report", action="store_true", help="only print what is known")
    args = parser.parse_args()
    if not args.report:
        peers = {package: Peer(package) for package in ("xcolumns", "fairlearn")}
        about = circumstances(__file__)
        for package, peer in peers.items():
            if peer.python is not None:
                about[package] = peer_version(peer.python, package)
        for name in args.only:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = measure(name, args, peers)
            if found is not None:
                keep(name, found, about)
    report(json.loads(RESULTS.read_text(encoding="utf-8")))


def keep(name, found, about):
    """Write the results of a table, beside what other runs have written since."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    tables = results.get("tables", {}) | {name: rounded(found)}
    tables = {name: tables[name] for name in TABLES if name in tables}
    text = json.dumps(about | {"tables": tables}, separators=(",", ":"))
    text = text.replace('{"f1"', '\n{"f1"').replace('"fair"', '\n"fair"')
    RESULTS.write_text(f"{text}\n", encoding="utf-8")


def rounded(value):
    """To five decimals."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
