"""A structure on top of classifiers: error and flicker beside the classifier alone.

Splits by groups (persons, words, proteins, sentences) into a training and a test half.
"alone" is the classifier of rows; "chain" is a linear chain on the features, scaled, with
C chosen by folds from the two values that "stacked" chooses from; "by hand" is what
people write: transitions counted in the training labels, and Viterbi over the
classifier's log-probabilities; "stacked" is StackedStructureClassifier with its defaults,
and "SVM" the same with final_estimator=BCFWClassifier(). "in-fold" is "stacked" over
scores of the rows that the classifier was fitted to (cv="prefit"; seconds without its
fit), and "both" has weights for the features beside the scores, scaled, with C chosen as
in "chain". Errors of rows, the differences
from "alone" and from the better of "alone" and "chain" with standard errors over the
splits, the macro-averaged F1, the number of runs of equal labels over the true number,
and seconds of the fit, also over those of the classifier's own folds and refit.

Sets: readings of a sensor (older_people; boosting), handwritten letters (a network, a
forest), letters to phonemes (nettalk, windows of seven letters; a forest), secondary
structure of proteins (the UCI set of Qian and Sejnowski, windows of 13; a forest), parts
of speech in Hungarian (UD Szeged) and English (ud_ewt; naive Bayes of words), and drawn
series (boosting). The defaults were chosen on the last two, on other drawn series with
offsets of each, on days of an office (UCI, occupancy) and on two of the ten splits of the
proteins; never on the others.

Writes results/stacked.json; sets and ways that are left out stay as they are there.
"""

import gzip
import json
import time
import warnings
from functools import partial

from _common import HERE, data_file, make_parser, np, print_table
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    CRFClassifierCV,
    StackedStructureClassifier,
)
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.preprocessing import SequenceTransformer

RESULTS = HERE / "results" / "stacked.json"
WAYS = ["alone", "chain", "by hand", "stacked", "SVM", "in-fold", "both"]
FOREST = RandomForestClassifier(100, random_state=0)
BOOSTING = HistGradientBoostingClassifier(max_iter=50, random_state=0)
BAYES = MultinomialNB(alpha=0.1)
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
    # Several people wrote each word: by words, or the test half has those of training.
    words = ["".join(map(str, own)) for own in y]
    return X, y, np.unique(words, return_inverse=True)[1]


def windows(word, width):
    """The letters around each letter, one-hot; "`" is none."""
    half = "`" * (width // 2)
    codes = np.array([ord(c) - 96 for c in half + word.lower() + half])
    near = np.lib.stride_tricks.sliding_window_view(codes, width)
    return np.eye(27, dtype=np.float32)[near.clip(0, 26)].reshape(len(word), -1)


def nettalk(args):
    path = data_file(args.data, "nettalk", "nettalk.tsv.gz")
    if path is None:
        return None
    with gzip.open(path, "rt") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in file]
    kept = np.random.default_rng(0).permutation(len(pairs))[: args.items]
    X = [windows(pairs[i][0], 7) for i in kept]
    return X, [np.array(list(pairs[i][1])) for i in kept], np.arange(len(X))


def proteins(args):
    path = data_file(args.data, "proteins", "protein-secondary-structure.train")
    if path is None:
        return None
    X, y, own = [], [], []
    for line in [*path.read_text().splitlines(), "end"]:
        if len(line.split()) == 2:
            own.append(line.split())
        elif own:
            letters, labels = zip(*own, strict=True)
            X.append(windows("".join(letters), 13))
            y.append(np.array(labels))
            own = []
    return X, y, np.arange(len(X))


def tags(args, corpus="ud_ewt"):
    path = data_file(args.data, corpus, "train.tsv.gz")
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
    "proteins, forest": (proteins, FOREST),
    "Hungarian, naive Bayes": (partial(tags, corpus="ud_hungarian"), BAYES),
    "tags, naive Bayes": (tags, BAYES),
    "drawn series, boosting": (drawn, BOOSTING),
}
MEASURED = ("sensor, boosting", "drawn series, boosting")


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


def measure(ways, X, y, base, scaler, train, test):
    """{way: (error, macro F1, runs over the true number, seconds)} of a split."""
    parts = [[items[i] for i in places] for items in (X, y) for places in (train, test)]
    X_train, X_test, y_train, y_test = parts
    truth, n_true = np.concatenate(y_test), n_runs(y_test)
    seconds, fitted = folds_seconds(base, X_train, y_train)
    one = len(y_train) / sum(map(len, y_train))
    chain = CRFClassifierCV("chain", Cs=[one, 10 * one], cv=5, random_state=0)
    both = StackedStructureClassifier(base, chain, passthrough=True)
    models = {
        "chain": make_pipeline(SequenceTransformer(scaler), chain),
        "stacked": StackedStructureClassifier(base),
        "SVM": StackedStructureClassifier(base, BCFWClassifier(random_state=0)),
        "in-fold": StackedStructureClassifier(fitted, cv="prefit"),
        "both": make_pipeline(SequenceTransformer(scaler), both),
    }
    predicted = {
        "alone": [fitted.predict(x) for x in X_test],
        "by hand": by_hand(fitted, X_test, (y_train,)),
    }
    taken = dict.fromkeys(predicted, seconds)
    for way in models.keys() & set(ways):
        start = time.process_time()
        models[way].fit(X_train, y_train)
        taken[way] = time.process_time() - start
        predicted[way] = models[way].predict(X_test)
    found = {}
    for way in ways:
        labels = np.concatenate(list(predicted[way]))
        found[way] = (
            float(np.mean(labels != truth)),
            float(f1_score(truth, labels, average="macro")),
            n_runs(predicted[way]) / n_true,
            round(taken[way], 2),
        )
    return found


def less(error, other):
    """The mean difference and its standard error over the splits."""
    differences = error - other
    if not differences.any():
        return "-"
    n = len(differences)
    spread = differences.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return f"{differences.mean():+.4f}±{spread:.4f}"


def print_results(results):
    rows = []
    for name, splits in results.items():
        alone, chain = np.array([[own[way] for own in splits] for way in WAYS[:2]])
        better = min(alone[:, 0], chain[:, 0], key=np.mean)
        for way in [way for way in WAYS if way in splits[0]]:
            error, f1, runs, seconds = np.transpose([own[way] for own in splits])
            rows.append([
                name, way, len(splits), f"{error.mean():.4f}", less(error, alone[:, 0]),
                less(error, better), f"{f1.mean():.3f}", f"{runs.mean():.2f}",
                f"{np.median(seconds):.1f}", f"{np.median(seconds / alone[:, 3]):.2f}",
            ])  # fmt: skip
    print_table(
        ["set, classifier", "way", "splits", "test error", "less alone", "less better",
         "macro F1", "runs/true", "CPU s", "of alone"], rows,
    )  # fmt: skip


def saved():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--items", type=int, default=1000, help="of words and sentences")
    args = parser.parse_args()
    for name in args.sets:
        load, base = SETS[name]
        data = load(args)
        if data is None:
            continue
        X, y, groups = data
        cv = GroupShuffleSplit(args.splits, test_size=0.5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler = StandardScaler() if name in MEASURED else MaxAbsScaler()
            found = [
                measure(args.ways, X, y, base, scaler, *split)
                for split in cv.split(X, y, groups)
            ]
        # Other sets may have been measured meanwhile, and other ways of the same splits.
        before = saved()
        others = before.get(name, [{}] * len(found))
        found = [old | new for old, new in zip(others, found, strict=True)]
        RESULTS.write_text(json.dumps(before | {name: found}) + "\n")
    results = saved()
    print_results({name: results[name] for name in SETS if name in results})


if __name__ == "__main__":
    main()
