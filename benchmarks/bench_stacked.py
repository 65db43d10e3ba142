"""A structure on top of classifiers: error and flicker beside the classifier alone.

Splits by groups (persons, words, sentences) into a training and a test half. "alone" is
the classifier of rows; "chain" is CRFClassifier on the features, standardized; "by hand"
is what people write: transitions counted in the training labels, and Viterbi over the
classifier's log-probabilities; "stacked" is StackedStructureClassifier with its defaults,
and "both" the same with passthrough=True. Errors of rows, the difference from "alone"
with its standard error over the splits, the number of runs of equal labels over the true
number, and seconds of the fit beside those of the classifier's own folds and refit.

Sets: readings of a sensor (older_people; boosting), handwritten letters (a network, a
forest), letters to phonemes (nettalk, windows of seven letters; a forest), parts of
speech (ud_ewt; naive Bayes of words) and three drawn series (boosting).

Writes results/stacked.json; sets that are left out stay as they are there.
"""

import gzip
import json
import time
import warnings

from _common import HERE, data_file, make_parser, np, print_table
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_structsvm import CRFClassifier, StackedStructureClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.preprocessing import SequenceTransformer

RESULTS = HERE / "results" / "stacked.json"
WAYS = ["alone", "chain", "by hand", "stacked", "both"]
FOREST = RandomForestClassifier(100, random_state=0)
BOOSTING = HistGradientBoostingClassifier(max_iter=50, random_state=0)
NETWORK = MLPClassifier(
    [64], alpha=1.0, learning_rate_init=0.005, early_stopping=True, random_state=0
)


def older_people(args):
    path = data_file(args.data, "older_people", "data.npz")
    if path is None:
        return None
    with np.load(path) as data:
        X, y, ends = data["X"][:, 1:], data["y"], np.cumsum(data["lengths"])[:-1]
        groups = data["person"] + 100 * data["room"]
    return np.split(X, ends), np.split(y, ends), groups


def letters(args):
    X, y = load_ocr_letters(return_X_y=True)
    return X, y, np.arange(len(X))


def nettalk(args):
    path = data_file(args.data, "nettalk", "nettalk.tsv.gz")
    if path is None:
        return None
    with gzip.open(path, "rt") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in file]
    kept = np.random.default_rng(0).permutation(len(pairs))[: args.items]
    X, y = [], []
    for i in kept:
        word, phonemes = pairs[i]
        codes = np.array([ord(c) - 96 for c in f"___{word}___".replace("_", "`")])
        windows = np.lib.stride_tricks.sliding_window_view(codes, 7)
        X.append(np.eye(27, dtype=np.float32)[windows.clip(0, 26)].reshape(len(word), -1))
        y.append(np.array(list(phonemes)))
    return X, y, np.arange(len(X))


def tags(args):
    path = data_file(args.data, "ud_ewt", "train.tsv.gz")
    if path is None:
        return None
    with gzip.open(path, "rt") as file:
        blocks = file.read().strip().split("\n\n")
    kept = np.random.default_rng(0).permutation(len(blocks))[: args.items]
    pairs = [[line.split("\t")[:2] for line in blocks[i].split("\n")] for i in kept]
    words = [
        [{"word": w.lower(), "ending": w[-3:], "is_title": w.istitle()} for w, _ in own]
        for own in pairs
    ]
    y = [np.array([tag for _, tag in own]) for own in pairs]
    X = SequenceTransformer(DictVectorizer()).fit_transform(words)
    return X, y, np.arange(len(X))


def drawn(args):
    """Series of three states that last long, in two readings with heavy tails."""
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(60):
        labels = np.repeat(rng.integers(3, size=20), rng.integers(5, 40, size=20))
        noise = rng.standard_t(2, size=(len(labels), 2))
        angle = 2 * np.pi * labels / 3
        X.append(np.column_stack([np.cos(angle), np.sin(angle)]) + 0.7 * noise)
        y.append(labels)
    return X, y, np.arange(60)


SETS = {
    "sensor, boosting": (older_people, BOOSTING),
    "letters, network": (letters, NETWORK),
    "letters, forest": (letters, FOREST),
    "phonemes, forest": (nettalk, FOREST),
    "tags, naive Bayes": (tags, MultinomialNB(alpha=0.1)),
    "drawn series, boosting": (drawn, BOOSTING),
}


def n_runs(labelings):
    return sum(1 + int((own[1:] != own[:-1]).sum()) for own in labelings if len(own))


def by_hand(base, X, y):
    """Viterbi over log-probabilities with counted transitions: {item: labels}."""
    classes = base.classes_
    codes = [np.searchsorted(classes, own) for own in y[0]]
    counts = np.ones((len(classes), len(classes)))
    for own in codes:
        np.add.at(counts, (own[:-1], own[1:]), 1.0)
    step = np.log(counts / counts.sum(axis=1, keepdims=True))
    prior = np.log(np.bincount(np.concatenate(codes), minlength=len(classes)) + 1.0)
    found = []
    for x in X:
        scores = np.log(np.maximum(base.predict_proba(x), 1e-6)) - prior
        best, back = scores[0], []
        for row in scores[1:]:
            totals = best[:, None] + step
            back.append(totals.argmax(axis=0))
            best = totals.max(axis=0) + row
        labels = [int(best.argmax())]
        for own in reversed(back):
            labels.append(int(own[labels[-1]]))
        found.append(classes[labels[::-1]])
    return found


def folds_seconds(base, X, y):
    """CPU seconds of the classifier's own out-of-fold probabilities and refit."""
    import scipy.sparse as sp

    rows = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)
    labels = np.concatenate(y)
    groups = np.repeat(np.arange(len(X)), list(map(len, y)))
    start = time.process_time()
    cross_val_predict(
        base, rows, labels, groups=groups, cv=GroupKFold(5), method="predict_proba"
    )
    fitted = clone(base).fit(rows, labels)
    return time.process_time() - start, fitted


def measure(X, y, base, train, test):
    """{way: (error, runs over the true number, seconds)} of a split."""
    parts = [[items[i] for i in places] for items in (X, y) for places in (train, test)]
    X_train, X_test, y_train, y_test = parts
    truth, n_true = np.concatenate(y_test), n_runs(y_test)
    seconds, fitted = folds_seconds(base, X_train, y_train)
    models = {
        "chain": make_pipeline(SequenceTransformer(MaxAbsScaler()), CRFClassifier()),
        "stacked": StackedStructureClassifier(base),
        "both": make_pipeline(
            SequenceTransformer(MaxAbsScaler()),
            StackedStructureClassifier(base, passthrough=True),
        ),
    }
    predicted = {
        "alone": [fitted.predict(x) for x in X_test],
        "by hand": by_hand(fitted, X_test, (y_train,)),
    }
    taken = dict.fromkeys(predicted, seconds)
    for way, model in models.items():
        start = time.process_time()
        model.fit(X_train, y_train)
        taken[way] = time.process_time() - start
        predicted[way] = model.predict(X_test)
    return {
        way: (
            float(np.mean(np.concatenate(list(predicted[way])) != truth)),
            n_runs(predicted[way]) / n_true,
            round(taken[way], 2),
        )
        for way in WAYS
    }


def print_results(results):
    rows = []
    for name, splits in results.items():
        alone = np.array([own["alone"][0] for own in splits])
        for way in WAYS:
            error, runs, seconds = np.transpose([own[way] for own in splits])
            less = error - alone
            se = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
            rows.append([
                name, way, len(splits), f"{error.mean():.4f}",
                "-" if way == "alone" else f"{less.mean():+.4f} ± {se:.4f}",
                f"{runs.mean():.2f}", f"{np.median(seconds):.1f}",
            ])  # fmt: skip
    print_table(
        ["set, classifier", "way", "splits", "test error", "less alone", "runs / true",
         "CPU s"], rows,
    )  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--items", type=int, default=3000, help="of nettalk and ud_ewt")
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in args.sets:
        load, base = SETS[name]
        data = load(args)
        if data is None:
            continue
        X, y, groups = data
        cv = GroupShuffleSplit(args.splits, test_size=0.5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = [
                measure(X, y, base, *split) for split in cv.split(X, y, groups)
            ]
        RESULTS.write_text(json.dumps(results) + "\n")
    print_results({name: results[name] for name in SETS if name in results})


if __name__ == "__main__":
    main()
