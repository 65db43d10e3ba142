"""Features of words: ours by default, beside those of python-crfsuite's tutorial.

The tutorial's function makes a dict of each word, which thousands of programs have taken
over. Both kinds of features are given to our CRF and to CRFsuite, all with the same
strength of regularization. Scores are of the test part: F1 of entities, or the share of
wrong tags; behind the difference from the tutorial's features, with our CRF, is its
standard error by a bootstrap of sentences. CRFSUITE_PYTHON names an interpreter that has
python-crfsuite.

With ``--costs`` our CRF is also trained with costs: that much for each wrong label where
an entity is, and 1 for one where none is (0: no costs). With ``--files NAME TRAIN TEST``
the corpora are your own, in columns or CoNLL-U. What was measured is kept in
results/words.json, so that corpora and, with ``--only``, fits may be measured one by one;
``--show`` prints it, and measures nothing.

``--speed`` measures `WordFeatures` alone, from strings to CSR: CPU time, the least of
five runs, and the most memory that a call takes, its result included, as a multiple of
that result. ``--choose N`` compares what could be default, by cross-validation over N
sentences of the train part (0: all).
"""

import json
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from time import process_time

from _common import (
    HERE,
    data_file,
    fit_quietly,
    make_parser,
    np,
    peer_python,
    print_table,
    run_lines,
)
from scipy import sparse
from sklearn.model_selection import KFold

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import read_conll
from sklearn_structsvm.metrics import (
    entity_f1_score,
    entity_precision_score,
    entity_recall_score,
    token_accuracy_score,
)
from sklearn_structsvm.preprocessing import SequenceTransformer, WordFeatures

RESULTS = HERE / "results" / "words.json"
# Files, and the columns of words and of tags.
CORPORA = {
    "conll2000": ("conll2000", "{}.txt.gz", [0, 1], 2),
    "ud_ewt": ("ud_ewt", "{}.tsv.gz", [0], 1),
    "wnut17": ("wnut17", "{}.tsv.gz", [0], 1),
}


def load(name, data_home):
    """X, y, X_test, y_test, or None."""
    folder, file, columns, target = CORPORA[name]
    files = [file.format(part) for part in ("train", "test")]
    paths = [data_file(data_home, folder, own) for own in files]
    return None if None in paths else read_both(paths, columns=columns, target=target)


def read_both(paths, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Of rare tags.
        (X, y), (X_test, y_test) = (read_conll(path, **options) for path in paths)
    return X, y, X_test, y_test


def tutorial_features(sentence):
    """Dicts of the words of a sentence, as by python-crfsuite's tutorial."""
    pairs = [(own, None) if isinstance(own, str) else own[:2] for own in sentence]
    found = []
    for i, (word, part) in enumerate(pairs):
        own = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:]}
        own |= {"word.isdigit()": word.isdigit(), **about(word, part, "")}
        for step, at in ((-1, "-1:"), (1, "+1:")):
            if 0 <= i + step < len(pairs):
                own |= about(*pairs[i + step], at)
            else:
                own["BOS" if step < 0 else "EOS"] = True
        found.append(own)
    return found


def about(word, part, at):
    own = {f"{at}word.lower()": word.lower(), f"{at}word.istitle()": word.istitle()}
    own[f"{at}word.isupper()"] = word.isupper()
    if part is not None:
        own |= {f"{at}postag": part, f"{at}postag[:2]": part[:2]}
    return own


def score_of(y):
    """Name of the score, and a function of true and predicted tags and of weights."""
    if any(tag.startswith(("B-", "S-")) for tags in y for tag in tags):
        return "F1", lambda *args, **options: 100 * entity_f1_score(*args, **options)
    return (
        "error",
        lambda *args, **options: 100 - 100 * token_accuracy_score(*args, **options),
    )


def own_fit(make, problem, C):
    """Tags of the test part, and CPU seconds: of features, training, and tagging."""
    X, y, X_test, _ = problem
    start = process_time()
    features = make()
    rows = features.fit_transform(X)
    of_features = process_time() - start
    start = process_time()
    model = fit_quietly(CRFClassifier("chain", C=C, random_state=0), rows, y)
    of_training = process_time() - start
    start = process_time()
    tags = model.predict(features.transform(X_test))
    return tags, of_features, of_training, process_time() - start


class Tutorial:
    """The tutorial's dicts as matrices."""

    def fit_transform(self, X):
        self.transformer = SequenceTransformer()
        return self.transformer.fit_transform(map(tutorial_features, X))

    def transform(self, X):
        return self.transformer.transform(map(tutorial_features, X))


class Attributes:
    """Our features as CRFsuite takes them: the names of those that a word has."""

    def fit_transform(self, X):
        self.features = WordFeatures()
        return named(self.features.fit_transform(X))

    def transform(self, X):
        return named(self.features.transform(X))


def named(items):
    """Numbers of features as their names, which take less time to read."""
    return [
        [list(map(str, row)) for row in np.split(x.indices, x.indptr[1:-1])]
        for x in items
    ]


class Dicts:
    """The tutorial's dicts."""

    def fit_transform(self, X):
        return self.transform(X)

    def transform(self, X):
        return [tutorial_features(x) for x in X]


MAKERS = {
    "library, tutorial": Tutorial,
    "library, WordFeatures": WordFeatures,
    "CRFsuite, tutorial": Dicts,
    "CRFsuite, WordFeatures": Attributes,
}


def crfsuite_fit(python, make, problem, C):
    X, y, X_test, _ = problem
    start = process_time()
    features = make()
    tokens = features.fit_transform(X)
    of_features = process_time() - start
    start = process_time()
    tokens_test = features.transform(X_test)
    of_tagging = process_time() - start
    params = {"c1": 0.0, "c2": 0.5 / C, "feature.possible_transitions": 1}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokens.json")
        path.write_text(json.dumps([tokens, y, tokens_test, params]), encoding="utf8")
        peer = HERE / "peers" / "crfsuite_words.py"
        (facts,) = run_lines([python, peer, path])
    return facts["tags"], of_features, facts["train"], of_tagging + facts["tag"]


def deviation(score, y, first, second, rng, n=100):
    """Standard error of the difference of two scores, by a bootstrap of sentences."""
    found = []
    for _ in range(n):
        weights = np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))
        own = [score(y, tags, sample_weight=weights) for tags in (first, second)]
        found.append(own[0] - own[1])
    return np.std(found, ddof=1)


def measure(problem, C, names, python, rng):
    """The rows of a table, by their names."""
    y_test = problem[3]
    _, score = score_of(y_test)
    base, rows = None, {}
    for name in dict.fromkeys(["library, tutorial", *names]):
        make = MAKERS[name]
        if name.startswith("library"):
            tags, *seconds = own_fit(make, problem, C)
        elif python:
            tags, *seconds = crfsuite_fit(python, make, problem, C)
        else:
            continue
        base = tags if base is None else base
        difference = score(y_test, tags) - score(y_test, base)
        error = deviation(score, y_test, tags, base, rng)
        told = f"{difference:+.2f} ± {error:.2f}"
        rows[name] = [f"{C:g}", f"{score(y_test, tags):.2f}", told, *seconds]
    return rows


def with_costs(problem, C, costs, rng):
    """Rows of precision and recall, for costs of labels where there are entities."""
    X, y, X_test, y_test = problem
    features = WordFeatures()
    items, items_test = features.fit_transform(X), features.transform(X_test)
    tags = sorted({tag for own in y for tag in own})
    base, rows = None, []
    for cost in costs:
        weights = {tag: 1.0 if tag == "O" else cost for tag in tags} if cost else None
        model = CRFClassifier("chain", C=C, class_weight=weights, random_state=0)
        found = fit_quietly(model, items, y).predict(items_test)
        scores = [
            100 * score(y_test, found)
            for score in (entity_precision_score, entity_recall_score, entity_f1_score)
        ]
        base = found if base is None else base
        error = 100 * deviation(entity_f1_score, y_test, found, base, rng)
        told = f"{scores[2]:.1f} ± {error:.1f}"
        rows.append([f"{cost:g}", *(f"{own:.1f}" for own in scores[:2]), told])
    return rows


SPEED = [
    "", "tokens", "µs a token, transform", "µs a token, fit_transform",
    "µs a sentence alone", "tokens of it", "memory, transform", "memory, fit_transform",
]  # fmt: skip


def least_time(call, n=5):
    found = []
    for _ in range(n):
        start = process_time()
        call()
        found.append(process_time() - start)
    return 1e6 * min(found)


def peak(call):
    """The most memory of a call, over what its items take."""
    tracemalloc.start()
    items = call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / sum(
        part.nbytes for x in items for part in (x.data, x.indices, x.indptr)
    )


def speed(problem):
    """Rows of SPEED without their names; single sentences are of the test part."""
    X, _, X_test, _ = problem
    features = WordFeatures().fit(X)
    n, X_test = sum(map(len, X)), X_test[:2000]
    calls = (
        lambda: features.transform(X),
        lambda: WordFeatures().fit_transform(X),
        lambda: [features.transform([x]) for x in X_test],
    )
    times = [least_time(call) for call in calls]
    of_tokens = [f"{t / n:.2f}" for t in times[:2]]
    each = [f"{times[2] / len(X_test):.1f}", f"{np.mean([*map(len, X_test)]):.1f}"]
    return [n, *of_tokens, *each, *(f"{peak(call):.2f}" for call in calls[:2])]


class Beside:
    """The default features, and those that a function gives of a list of words."""

    def __init__(self, more):
        self.parts = WordFeatures(), SequenceTransformer()
        self.more = more

    def given(self, X):
        return [
            self.more([own if isinstance(own, str) else own[0] for own in x]) for x in X
        ]

    def fit_transform(self, X):
        self.parts[1].fit(self.given(X))
        self.parts[0].fit(X)
        return self.transform(X)

    def transform(self, X):
        own, more = self.parts
        pairs = zip(own.transform(X), more.transform(self.given(X)), strict=True)
        return [sparse.hstack(pair, format="csr") for pair in pairs]


def kinds(words):
    """Which kinds of characters there are in words, apart from their order."""
    return [
        {
            "digit": any(map(str.isdigit, word)),
            "digits": word.isdigit(),
            "capital": any(map(str.isupper, word)),
            "capitals": word.isupper(),
            "capital inside": any(map(str.isupper, word[1:])),
            "hyphen": "-" in word,
            "no letter": not any(map(str.isalpha, word)),
            "beyond ASCII": not word.isascii(),
        }
        for word in words
    ]


def positions(words):
    """Where words stand, from the beginning and from the end."""
    n = len(words)
    return [
        {"from first": str(min(t, 4)), "from last": str(min(n - 1 - t, 4))}
        for t in range(n)
    ]


CHOICES = {
    "default": WordFeatures,
    "affixes=4": lambda: WordFeatures(affixes=4),
    "affixes=8": lambda: WordFeatures(affixes=8),
    "window=0": lambda: WordFeatures(window=0),
    "window=2": lambda: WordFeatures(window=2),
    "ngrams=1": lambda: WordFeatures(ngrams=1),
    "ngrams=3": lambda: WordFeatures(ngrams=3),
    "min_count=2": lambda: WordFeatures(min_count=2),
    "with kinds of characters": lambda: Beside(kinds),
    "with positions": lambda: Beside(positions),
}


def choose(problem, n, C=1.0):
    """Rows of choices with their scores by cross-validation, beside the default's."""
    X, y, *_ = problem
    kept = np.random.default_rng(0).permutation(len(X))[: n or None]
    X, y = ([own[i] for i in kept] for own in (X, y))
    _, score = score_of(y)
    splits, scores, seconds = list(KFold(5).split(kept)), {}, {}
    for name, make in CHOICES.items():
        start, scores[name] = process_time(), []
        for train, test in splits:
            parts = [[own[i] for i in at] for at in (train, test) for own in (X, y)]
            tags, *_ = own_fit(make, parts, C)
            scores[name].append(score(parts[3], tags))
        seconds[name] = process_time() - start
    rows = []
    for name, own in scores.items():
        difference = np.subtract(own, scores["default"])
        error = np.std(difference, ddof=1) / np.sqrt(len(splits))
        told = f"{np.mean(difference):+.2f} ± {error:.2f}"
        rows.append([name, f"{np.mean(own):.2f}", told, f"{seconds[name]:.0f}"])
    return {"sentences": len(X), "rows": rows}


def show(found):
    for name, own in found.items():
        if "choice" in own:
            print(f"{name}: five folds of {own['choice']['sentences']} sentences, C=1\n")
            header = ["", own["score"], "beside the default's", "CPU s"]
            print_table(header, own["choice"]["rows"])
    rows = [[name, *own["speed"]] for name, own in found.items() if "speed" in own]
    if rows:
        print("From strings to CSR\n")
        print_table(SPEED, rows)
    for name, own in found.items():
        if "costs" in own:
            print(f"{name}, with costs of wrong labels where entities are, C=1\n")
            header = ["cost", "precision", "recall", "F1 ± error of its difference"]
            print_table(header, own["costs"])
        print(f"{name}: {own['about']}\n")
        rows = [
            [what, *own["rows"][C][what]]
            for C in sorted(own["rows"], key=float)
            for what in MAKERS
            if what in own["rows"][C]
        ]
        print_table(
            ["", "C", own["score"], "beside the tutorial's", "s features", "s training",
             "s tagging"],
            rows,
        )  # fmt: skip


def write(found):
    text = json.dumps(found, indent=1, ensure_ascii=False)
    RESULTS.write_text(f"{text}\n", encoding="utf-8")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--corpora", nargs="*", choices=CORPORA, default=[*CORPORA])
    parser.add_argument(
        "--files", nargs=3, action="append", default=[], metavar=("NAME", "TRAIN", "TEST")
    )
    parser.add_argument("--Cs", type=float, nargs="*", default=[1.0])
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=[*MAKERS])
    parser.add_argument("--costs", type=float, nargs="*", default=[])
    parser.add_argument("--speed", action="store_true", help="of the features alone")
    parser.add_argument("--choose", type=int, metavar="N", help="sentences, or 0 for all")
    parser.add_argument("--show", action="store_true", help="print what is known")
    args = parser.parse_args()
    found = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if args.show:
        return show(found)
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    problems = {name: load(name, args.data) for name in args.corpora}
    problems |= {name: read_both(paths) for name, *paths in args.files}
    rng = np.random.default_rng(0)
    for name, problem in problems.items():
        if problem is None:
            continue
        n_words = sum(map(len, problem[0]))
        own = found.setdefault(name, {"rows": {}})
        own["about"] = f"{len(problem[0])} sentences, {n_words} words"
        own["score"] = score_of(problem[3])[0]
        if args.speed:
            own["speed"] = speed(problem)
            write(found)
            continue
        if args.choose is not None:
            own["choice"] = choose(problem, args.choose)
            write(found)
            continue
        if args.costs:
            own["costs"] = with_costs(problem, 1.0, args.costs, rng)
        for C in args.Cs:
            rows = own["rows"].setdefault(f"{C:g}", {})
            rows |= measure(problem, C, args.only, python, rng)
            write(found)
        write(found)
    return show(found)


if __name__ == "__main__":
    sys.exit(main())
