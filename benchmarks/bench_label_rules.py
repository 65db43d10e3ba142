"""Rules of many labels on fresh halves, beside plain probabilities and simple thresholds.

For each metric, average and number of labels per row, `MultilabelMetricClassifier`
chooses a rule by probabilities out of five folds of one half of the rows, and is scored
on the other half. The same probabilities are given to two simple rules:

- "plain": a label is predicted if its probability exceeds .5; with k labels per row, the
  k most probable ones.
- "thresholds": of each label (micro: of all) the threshold that is best for the labels of
  the training half; with k labels per row, the k that exceed theirs by most. For
  "samples" one threshold, which is best for the training half.

Eight sets: scene, yeast and reuters90 (2,000 rows at most), and five whose rows are drawn
anew: sklearn's generator, a long tail of rare labels, repeated columns, labels that are
hardly predictable, and labels of which few rows are sure. Probabilities are those of
logistic regression and naive Bayes.

A cell is a set, a classifier, a metric, an average and a number of labels. Its rule is
behind once if it is more than two standard errors below one of the simple ones, and twice
if it is so again on as many other halves. Of rules that are all equally good, some eight
to eleven percent of the cells are behind once by chance, of five halves, and one percent
twice. Halves of one real set overlap, so that their standard errors are too small: if
their differences have a correlation of one half, it is 20 to 29 percent twice. "Surely"
counts the cells that are behind twice by Student's quantile of two normal standard errors
and, of real sets, by errors for such a correlation (Nadeau and Bengio, 2003). `--again`
tries the cells that were behind twice on three times as many new halves, with the current
code. Of these, "surely" are those behind by Holm's test at .05, of all cells tried again.

Writes results/label_rules.json; sets that are left out stay as they are there.
"""

import json
import warnings
from functools import partial

from _common import (
    HERE,
    data_file,
    load_reuters,
    make_parser,
    np,
    print_table,
)  # first: it keeps the BLAS on one thread
from _confusion import GivenLabels
from scipy import sparse, stats
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import MultilabelMetricClassifier
from sklearn_structsvm.confusion import get_metric

RESULTS = HERE / "results" / "label_rules.json"
METRICS = [
    "f1", "jaccard", "mcc", "kappa", "precision", "recall", "specificity",
    "balanced", "g_mean", "h_mean", "q_mean", "min_max", "zero_one",
]  # fmt: skip
AVERAGES = ["macro", "weighted", "micro", "samples"]
PER_ROW = [None, 1, 3, 5]
REAL = ["scene", "yeast", "reuters90"]
MAX_ROWS = 2000
# A label that fewer rows of the training half have, or lack, is left out.
LEAST_ROWS = 5


def labels_of(eta, rng):
    return (rng.random(eta.shape) < eta).astype(int)


def sklearn_set(rng):
    return make_multilabel_classification(
        1000,
        40,
        n_classes=10,
        n_labels=1,
        length=20,
        random_state=int(rng.integers(2**31)),
    )


def rare_set(rng, n=1600, n_labels=20):
    X = rng.normal(size=(n, 10))
    shares = np.geomspace(0.3, 0.01, n_labels)
    eta = expit(logit(shares) + 1.2 * X @ rng.normal(size=(10, n_labels)) / np.sqrt(2))
    return X, labels_of(eta, rng)


def repeated_set(rng, n=800, n_labels=40):
    Z = rng.normal(size=(n, 5))
    shares = np.linspace(0.03, 0.6, n_labels)
    Y = labels_of(expit(logit(shares) + 0.5 * Z @ rng.normal(size=(5, n_labels))), rng)
    return np.repeat(Z + rng.normal(size=Z.shape), 12, axis=1), Y


def noisy_set(rng, n=1000, n_labels=15):
    X = rng.normal(size=(n, 20))
    shares = np.linspace(0.02, 0.4, n_labels)
    eta = expit(logit(shares) + 0.3 * X @ rng.normal(size=(20, n_labels)) / np.sqrt(20))
    return X, labels_of(eta, rng)


def sure_set(rng, n=2000, n_labels=20):
    eta = rng.beta(0.4, 3.0, size=(n, n_labels))
    return np.maximum(np.log(eta), -20.0), labels_of(eta, rng)


GENERATED = {
    "generated, sklearn": sklearn_set,
    "generated, rare": rare_set,
    "generated, repeated": repeated_set,
    "generated, noisy": noisy_set,
    "generated, sure": sure_set,
}
SETS = [*REAL, *GENERATED]


def load(name, data_home):
    """X and Y of a set that is read, or None."""
    if name == "reuters90":
        parts = load_reuters(data_home, 90)
        if parts is None:
            return None
        return sparse.vstack(parts[::2], format="csr"), np.concatenate(parts[1::2])
    path = data_file(data_home, name, "data.npz")
    if path is None:
        return None
    with np.load(path) as data:
        parts = [data[key] for key in ("X_train", "X_test", "Y_train", "Y_test")]
    return np.concatenate(parts[:2]).astype(float), np.concatenate(parts[2:]).astype(int)


def halves(name, loaded, seed):
    """X, Y, X_test and Y_test of one seed."""
    rng = np.random.default_rng(seed)
    X, Y = GENERATED[name](rng) if loaded is None else loaded
    order = rng.permutation(len(Y))[:MAX_ROWS]
    train, test = np.array_split(order, 2)
    return X[train], Y[train], X[test], Y[test]


def models(X):
    if sparse.issparse(X):
        yield "logistic", LogisticRegression(C=10.0, max_iter=1000, solver="liblinear")
        yield "naive Bayes", BernoulliNB()
    else:
        yield (
            "logistic",
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        )
        yield "naive Bayes", GaussianNB()


def probabilities(model, X, Y, X_test):
    """Out of folds of the training rows, and those of the test rows."""
    model, held_out = OneVsRestClassifier(model), np.empty(Y.shape)
    for train, test in KFold(5).split(held_out):
        held_out[test] = clone(model).fit(X[train], Y[train]).predict_proba(X[test])
    return held_out, model.fit(X, Y).predict_proba(X_test)


def score(truth, predicted, metric, average):
    """Of indicator matrices: 1 less the loss."""
    if average == "samples":
        return f1_score(truth, predicted, average="samples", zero_division=0)
    hits = (truth * predicted).mean(axis=0)
    have, get = truth.mean(axis=0), predicted.mean(axis=0)
    C = np.stack([1 - have - get + hits, get - hits, have - hits, hits], axis=-1)
    C = np.maximum(C, 0.0).reshape(-1, 2, 2)
    psi = get_metric(metric, np.array([0, 1]))
    if average == "micro":
        return 1.0 - psi.value(C.mean(axis=0))
    weights = have if average == "weighted" else None
    return 1.0 - float(np.average([psi.value(one) for one in C], weights=weights))


def top(values, k):
    chosen = np.zeros(values.shape, dtype=int)
    np.put_along_axis(chosen, np.argsort(-values, axis=1, kind="stable")[:, :k], 1, 1)
    return chosen


def simple_thresholds(held_out, Y, metric, average):
    """The thresholds of the labels."""
    if average == "samples":
        tried = np.quantile(held_out, np.linspace(0.0, 1.0, 201))
        scores = [score(Y, held_out > t, None, average) for t in tried]
        return np.full(Y.shape[1], tried[int(np.argmax(scores))])
    model = MultilabelMetricClassifier(
        GivenLabels(), metric, average, cv="prefit", confusion="labels"
    )
    return model.fit(held_out, Y).thresholds_


def run_half(held_out, Y, eta, Y_test, metrics, wanted=None):
    """{(metric, average, k): scores of our rule, the plain one and the thresholds}."""
    found = {}
    for average in AVERAGES:
        for metric in metrics if average != "samples" else ["f1"]:
            if wanted and all(cell[:2] != (metric, average) for cell in wanted):
                continue
            cuts = simple_thresholds(held_out, Y, metric, average)
            for k in PER_ROW:
                if k is not None and k >= Y.shape[1]:
                    continue
                if wanted and (metric, average, k) not in wanted:
                    continue
                model = MultilabelMetricClassifier(
                    GivenLabels(), metric, average, labels_per_row=k, cv="prefit"
                ).fit(held_out, Y)
                predicted = [model.predict(eta)]
                if k is None:
                    predicted += [eta > 0.5, eta > cuts]
                else:
                    finite = np.nan_to_num(cuts, posinf=1.0, neginf=0.0)
                    predicted += [top(eta, k), top(eta - finite, k)]
                found[metric, average, k] = [
                    score(Y_test, p, metric, average) for p in predicted
                ]
    return found


def compared(scores):
    """Means, and differences of ours to both others with their standard errors."""
    scores = np.array(scores)
    off = scores[:, :1] - scores[:, 1:]
    errors = off.std(axis=0, ddof=1) / np.sqrt(len(off))
    return scores.mean(axis=0), off.mean(axis=0), errors


def is_behind(scores, n_errors=2.0):
    _, off, errors = compared(scores)
    return bool((off < -n_errors * errors - 1e-12).any())


def run_set(name, args, metrics, seeds, wanted=()):
    """Scores by cell, {(classifier, metric, average, k): [of each half]}, or None.

    `wanted`: cells; none means all.
    """
    loaded = load(name, args.data) if name in REAL else None
    if name in REAL and loaded is None:
        return None
    cells = {}
    for seed in seeds:
        X, Y, X_test, Y_test = halves(name, loaded, seed)
        # So many that each fold has some.
        n = Y.sum(axis=0)
        used = (n >= LEAST_ROWS) & (n <= len(Y) - LEAST_ROWS)
        Y, Y_test = Y[:, used], Y_test[:, used]
        for of, model in models(X):
            own = [cell[1:] for cell in wanted if cell[0] == of]
            if wanted and not own:
                continue
            held_out, eta = probabilities(model, X, Y, X_test)
            for cell, scores in run_half(held_out, Y, eta, Y_test, metrics, own).items():
                cells.setdefault((of, *cell), []).append(scores)
    return cells


def results_of(name, args):
    """What is kept of a set, or None."""
    first, second = (args.first_seed + i * args.halves for i in (0, 1))
    cells = run_set(name, args, args.metrics, range(first, second))
    if cells is None:
        return None
    suspects = {cell for cell, scores in cells.items() if is_behind(scores)}
    again = {}
    if suspects:
        metrics = sorted({metric for _, metric, *_ in suspects})
        again = run_set(name, args, metrics, range(second, second + args.halves))
    twice = [cell for cell in sorted(suspects, key=str) if is_behind(again[cell])]
    sure = stats.t.isf(stats.norm.sf(2.0), args.halves - 1)
    sure *= np.sqrt(1.0 + args.halves) if name in REAL else 1.0
    surely = [c for c in twice if is_behind(cells[c], sure) and is_behind(again[c], sure)]
    rows = []
    for of in dict.fromkeys(cell[0] for cell in cells):
        off = np.array([compared(scores)[1] for c, scores in cells.items() if c[0] == of])
        kinds = suspects, twice, surely
        counts = len(off), *(sum(c[0] == of for c in some) for some in kinds)
        rows.append([of, *counts, *off.mean(axis=0).round(4).tolist()])
    behind = [[*cell, *_differences(again[cell])] for cell in twice]
    return {"halves": args.halves, "rows": rows, "behind": behind}


def tried_again(name, args, kept):
    """What is kept of a set, with the cells behind twice on other halves."""
    wanted = [tuple(cell[:4]) for cell in kept["behind"]]
    first, n = args.first_seed + 2 * kept["halves"], 3 * kept["halves"]
    rows, factor = [], np.sqrt(1.0 + n) if name in REAL else 1.0
    if wanted:
        cells = run_set(name, args, METRICS, range(first, first + n), wanted)
        for cell in wanted:
            _, off, errors = compared(cells[cell])
            worst = float(np.min(off / np.maximum(factor * errors, 1e-12)))
            # Of two differences, one is the smaller one.
            p = min(1.0, 2.0 * float(stats.t.cdf(worst, n - 1)))
            rows.append([*cell, n, *_differences(cells[cell]), p])
    return kept | {"again": rows}


def _differences(scores):
    """Of ours to each other one, with standard errors."""
    _, off, errors = compared(scores)
    return [f"{o:+.4f} ± {e:.4f}" for o, e in zip(off, errors, strict=True)]


def print_results(results):
    header = ["data", "probabilities"]
    rows = [
        [name, *row[:-2], *(f"{mean:+.4f}" for mean in row[-2:])]
        for name, found in results.items()
        for row in found["rows"]
    ]
    means = ["mean difference to plain", "to thresholds"]
    print_table([*header, "cells", "behind once", "twice", "surely", *means], rows)
    behind = [[name, *cell] for name, own in results.items() for cell in own["behind"]]
    if behind:
        print("Behind twice: differences on the halves of the second time")
        means = ["to plain", "to thresholds"]
        print_table([*header, "metric", "average", "labels a row", *means], behind)
    tried = ((name, row) for name, own in results.items() for row in own.get("again", []))
    again = [[name, *row] for name, row in tried]
    if again:
        # Holm: of the smallest p-values, each by those that are left.
        p = np.array([row[-1] for row in again])
        order = np.argsort(p)
        adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        sure = dict(zip(order.tolist(), adjusted <= 0.05, strict=True))
        rows = [[*row[:-1], "yes" if sure[i] else "no"] for i, row in enumerate(again)]
        print("Those tried again, on new halves")
        header += ["metric", "average", "labels a row", "halves", *means, "surely"]
        print_table(header, rows)


def saved():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--halves", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--metrics", nargs="*", default=METRICS)
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    for name in args.sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = saved().get(name, {"behind": [], "halves": args.halves})
            run = partial(tried_again, kept=kept) if args.again else results_of
            found = run(name, args)
        if found is not None:
            # Other sets may have been measured meanwhile.
            RESULTS.write_text(json.dumps(saved() | {name: found}) + "\n")
    results = saved()
    print_results({name: results[name] for name in SETS if name in results})


if __name__ == "__main__":
    main()
