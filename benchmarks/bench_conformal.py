"""Sets that contain the truth: coverage on random splits, and sizes beside
MAPIE and torchcp.

Each model is fitted once. The other examples are split at random into those that
calibrate and those that are counted. Given n calibration examples, the number of new ones
that are covered is beta-binomial, so each split has a band that it should be in.
"""

import tempfile
from pathlib import Path

import numpy as np
from _common import (
    HERE,
    data_file,
    load_ocr,
    load_yeast,
    make_parser,
    peer_python,
    peer_version,
    print_table,
    run_lines,
)  # first: it keeps the BLAS on one thread
from scipy.stats import betabinom
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, ConformalClassifier, CRFClassifier
from sklearn_structsvm._utils.calibration import allowed_rank
from sklearn_structsvm.datasets import make_hierarchical
from sklearn_structsvm.structures import ChainStructure, HierarchicalStructure

LEVEL = 0.9
# Of the numbers that are covered, by chance.
BAND = 0.99
# Each with the variable that names its interpreter.
PEERS = {"mapie": "MAPIE_PYTHON", "torchcp": "TORCHCP_PYTHON"}
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]


class Given(BaseEstimator):
    """Model whose examples are their own tables of scores."""

    def __init__(self, classes):
        self.classes_ = classes

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return [self.classes_[np.argmax(scores, axis=-1)] for scores in X]

    def predict_proba(self, X):
        return X

    decision_function = max_marginals = predict_proba


class Problem:
    """A fitted model and other examples, whose scores are computed once."""

    def __init__(self, model, X, y, has_nodes=False):
        self.model, self.X, self.y = model, X, y
        self.has_nodes = has_nodes
        self._tables = {}

    def sets(self, own, condition=None, **params):
        """Calibrated by some of the examples."""
        model, X = self._given(params)
        sets = ConformalClassifier(
            FrozenEstimator(model),
            confidence_level=LEVEL,
            condition=condition,
            random_state=0,
            **params,
        )
        return sets.fit(take(X, own), take(self.y, own)), X

    def _given(self, params):
        score = params.get("conformity_score", "auto")
        if score == "likelihood":
            return self.model, self.X
        has_proba = hasattr(self.model, "predict_proba")
        name = "predict_proba" if has_proba else "decision_function"
        if score == "margin":
            name = "max_marginals" if self.has_nodes else "decision_function"
        if name not in self._tables:
            found = getattr(self.model, name)(self.X)
            self._tables[name] = list(found) if self.has_nodes else found
        params.setdefault("conformity_score", "lac" if "proba" in name else "margin")
        return Given(self.model.classes_), self._tables[name]


def take(items, places):
    return [items[i] for i in places] if isinstance(items, list) else items[places]


def words(data_home, n_train):
    """Return models of the chain and of single letters, and the remaining words."""
    X, y = load_ocr("all", data_home)
    X, y = list(X), list(y)
    order = np.random.default_rng(0).permutation(len(X))
    train, rest = order[:n_train], order[n_train:]
    alone = {"transition": False, "first_bias": False, "last_bias": False}
    models = {
        name: CRFClassifier(
            structure, solver_options={"classes": LETTERS}, tol=1e-3, random_state=0
        ).fit(take(X, train), take(y, train))
        for name, structure in (
            ("chain", ChainStructure()),
            ("letters alone", ChainStructure(**alone)),
        )
    }
    X, y = take(X, rest), take(y, rest)
    return {name: Problem(model, X, y, True) for name, model in models.items()}


def letters(data_home):
    """Return a logistic regression of the 26 letters of UCI, and the remaining rows."""
    path = data_file(data_home, "letter", "data.npz")
    if path is None:
        return None
    with np.load(path) as data:
        X, y = data["X_train"].astype(float), data["y_train"]
    _, y = np.unique(y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[:3000], order[3000:11000]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return Problem(model.fit(X[train], y[train]), X[rest], y[rest])


def yeast(data_home):
    """Return a logistic regression for each of 14 labels, and the remaining rows."""
    parts = load_yeast(data_home)
    if parts is None:
        return None
    X = np.concatenate([parts[0], parts[2]])
    Y = np.concatenate([parts[1], parts[3]])
    order = np.random.default_rng(0).permutation(len(Y))
    train, rest = order[:800], order[800:]
    model = OneVsRestClassifier(LogisticRegression(C=0.1, max_iter=1000))
    return Problem(model.fit(X[train], Y[train]), X[rest], Y[rest])


def hierarchy():
    X, Y, edges = make_hierarchical(2500, random_state=0)
    model = BCFWClassifier(HierarchicalStructure(edges), C=0.1, tol=0.01, random_state=0)
    return Problem(model.fit(X[:500], Y[:500]), X[500:], Y[500:])


def splits_of(n_rest, n_splits):
    rng = np.random.default_rng(1)
    return np.array([rng.permutation(n_rest) for _ in range(n_splits)])


def measure(problem, n, splits, largest=None, **params):
    """Reports of the sets, by each split into n examples to calibrate and others."""
    reports = []
    for order in splits:
        new = order[n:][:largest]
        sets, X = problem.sets(order[:n], **params)
        reports.append(sets.set_report(take(X, new), take(problem.y, new)))
    return reports


def mean(reports, name):
    return float(np.mean([report[name] for report in reports]))


def row_of(data, what, reports, n, key="coverage"):
    covered = np.array([report[key] for report in reports])
    inside = "-"
    if key == "coverage":
        m, n_new = allowed_rank(LEVEL, n), reports[0]["n_samples"]
        law = betabinom(n_new, n + 1 - m, m)
        tail = (1.0 - BAND) / 2.0
        low, high = law.ppf([tail, 1.0 - tail])
        counts = np.round(covered * n_new)
        inside = f"{((counts >= low) & (counts <= high)).sum()} of {len(counts)}"
    return [
        data,
        what,
        f"{covered.mean():.4f}",
        f"{covered.min():.3f} to {covered.max():.3f}",
        inside,
        f"{mean(reports, 'mean_size'):.2f}",
        f"{mean(reports, 'n_full'):.0f}",
    ]


def coverage(args, found):
    """Each kind of output and score."""
    rows = []
    for name, score in (
        ("letter", {"conformity_score": "lac"}),
        ("letter", {"conformity_score": "aps"}),
        ("letter", {"conformity_score": "aps", "randomized": True}),
        ("letter", {"conformity_score": "raps"}),
        ("letter", {"conformity_score": "margin"}),
        ("words", {"conformity_score": "lac"}),
        ("words", {"conformity_score": "margin"}),
        ("words", {"conformity_score": "likelihood"}),
        ("words", {"coverage": "average"}),
        ("yeast", {"coverage": "whole"}),
        ("yeast", {"coverage": "average"}),
        ("hierarchy", {"coverage": "whole"}),
        ("hierarchy", {"coverage": "average"}),
    ):
        if found[name] is None:
            continue
        y = found[name].y
        n = len(y) // 2 if name != "words" else 2000
        largest = 300 if "likelihood" in score.values() else None
        splits = splits_of(len(y), args.splits)
        reports = measure(found[name], n, splits, largest, **score)
        is_average = score.get("coverage") == "average"
        key = "average_coverage" if is_average else "coverage"
        what = ", ".join(f"{k}={v!r}" for k, v in score.items())
        rows.append(row_of(name, what, reports, n, key))
    print(f"### Coverage, confidence_level={LEVEL}, {args.splits} splits\n")
    band = f"in the {BAND:.0%} band"
    print_table(
        ["data", "sets", "coverage", "range", band, "labels a position", "full"], rows
    )


def parts(args, found):
    """The smallest coverage of a part, without `condition` and with it."""
    rows = []
    if found["letter"] is not None:
        y = found["letter"].y
        splits = splits_of(len(y), args.few_splits)
        for condition in (None, "class"):
            shares = np.zeros((len(splits), 26))
            sizes = []
            for i, order in enumerate(splits):
                own, new = order[: len(y) // 2], order[len(y) // 2 :]
                sets, X = found["letter"].sets(own, condition)
                found_sets = sets.predict_set(X[new])
                hit = found_sets[np.arange(len(new)), y[new]]
                shares[i] = np.bincount(y[new], hit, 26) / np.bincount(y[new])
                sizes.append(found_sets.sum(axis=1).mean())
            mean_of = shares.mean(axis=0)
            ends = [f"{mean_of.min():.3f}", f"{mean_of.max():.3f}"]
            rows.append(["letter, 26 classes", condition, *ends, f"{np.mean(sizes):.2f}"])
    y = found["words"].y
    splits = splits_of(len(y), args.few_splits)
    strata = np.array([len(own).bit_length() for own in y])
    for condition in (None, "length"):
        covered, sizes = [[] for _ in range(5)], []
        for order in splits:
            own, new = order[:2000], order[2000:]
            sets, X = found["words"].sets(own, condition)
            for g in np.unique(strata):
                part = new[strata[new] == g]
                report = sets.set_report(take(X, part), take(y, part))
                covered[g].append(report["coverage"])
            report = sets.set_report(take(X, new), take(y, new))
            sizes.append(report["mean_size"])
        mean_of = [np.mean(own) for own in covered if own]
        ends = [f"{min(mean_of):.3f}", f"{max(mean_of):.3f}"]
        rows.append(
            ["words of 2-3, 4-7, 8-15", condition, *ends, f"{np.mean(sizes):.2f}"]
        )
    print(f"### The least and the best covered part, {args.few_splits} splits\n")
    print_table(["parts", "condition", "least", "best", "labels a position"], rows)


def sequences(args):
    """Compare the chain with single letters on whole words."""
    problems = words(args.data, args.train)
    n_words = len(problems["chain"].y)
    splits = splits_of(n_words, args.few_splits)
    rows = []
    for name, problem in problems.items():
        for what, params in (
            ("whole", {}),
            ("whole, margin", {"conformity_score": "margin"}),
            ("average", {"coverage": "average"}),
        ):
            reports = measure(problem, 2000, splits, **params)
            numbers = ("coverage", "average_coverage", "mean_size")
            rows.append([name, what, *(f"{mean(reports, key):.3f}" for key in numbers)])
    sizes = f"{args.train} to train, 2000 to calibrate, {n_words - 2000} new"
    print(f"### Words, {sizes}, {args.few_splits} splits\n")
    print_table(["model", "sets", "words", "letters", "letters a position"], rows)
    return problems["chain"]


def beside_peers(args, found):
    """Compare with peers on the same probabilities and splits."""
    problem = found["letter"]
    if problem is None:
        return
    y = problem.y
    splits = splits_of(len(y), args.few_splits)
    n = len(y) // 2
    ours = {}
    for name, variable in PEERS.items():
        python = peer_python(variable, name)
        if python is None:
            continue
        script = HERE / "peers" / f"{name}_sets.py"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "sets.npz")
            P = problem.model.predict_proba(problem.X)
            np.savez(path, P=P, y=y, splits=splits, n=n)
            lines = list(run_lines([python, script, path, LEVEL]))
        rows = []
        for line in lines:
            params = {"conformity_score": line["score"], "randomized": line["randomized"]}
            key = tuple(params.values())
            if key not in ours:
                ours[key] = measure(problem, n, splits, **params)
            size = mean(ours[key], "mean_size")
            rows.append(
                [
                    ", ".join(f"{k}={v!r}" for k, v in params.items() if v),
                    f"{mean(ours[key], 'coverage'):.4f}",
                    f"{line['coverage']:.4f}",
                    f"{size:.3f}",
                    f"{line['size']:.3f}",
                    f"{size / line['size']:.3f}",
                ]
            )
        version = peer_version(python, name)
        print(f"### Classes beside {name} {version}, {len(splits)} splits of letter\n")
        print_table(
            ["sets", "coverage", "its own", "classes a row", "its own", "ratio"], rows
        )


def broken(args, found):
    """Calibrate on some words, and count on others that are not exchangeable."""
    model, X, y = found["words"].model, found["words"].X, found["words"].y
    lengths = np.array([len(own) for own in y])
    rng = np.random.default_rng(2)
    order = rng.permutation(len(y))
    own, new = order[:2000], order[2000:]
    flipped = [np.abs(x - (rng.random(x.shape) < 0.05)) for x in take(X, new)]
    short = np.flatnonzero(lengths <= np.median(lengths))
    long = np.flatnonzero(lengths > np.median(lengths))
    rows = []
    for name, part, X_new, y_new in (
        ("words alike", own, take(X, new), take(y, new)),
        ("5 % of the pixels flipped", own, flipped, take(y, new)),
        (
            "short words calibrate, long ones are read",
            short,
            take(X, long),
            take(y, long),
        ),
        (
            "long words calibrate, short ones are read",
            long,
            take(X, short),
            take(y, short),
        ),
    ):
        sets = ConformalClassifier(FrozenEstimator(model), confidence_level=LEVEL)
        report = sets.fit(take(X, part), take(y, part)).set_report(X_new, y_new)
        numbers = [f"{report['coverage']:.3f}", f"{report['mean_size']:.2f}"]
        rows.append([name, *numbers])
    print("### Where examples are not exchangeable\n")
    print_table(["new words", "coverage", "letters a position"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument(
        "--few-splits", type=int, default=20, help="where all but coverage is compared"
    )
    parser.add_argument("--train", type=int, default=2000, help="words to train with")
    args = parser.parse_args()
    found = {
        "letter": letters(args.data),
        "yeast": yeast(args.data),
        "hierarchy": hierarchy(),
        "words": sequences(args),
    }
    coverage(args, found)
    parts(args, found)
    beside_peers(args, found)
    broken(args, found)


if __name__ == "__main__":
    main()
