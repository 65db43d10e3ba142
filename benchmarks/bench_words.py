"""Features of words: ours by default, beside those of python-crfsuite's tutorial.

The tutorial's function makes a dict of each word, which thousands of programs have taken
over. Both kinds of features are given to our CRF, and the tutorial's to CRFsuite as well,
all with the same strength of regularization. Scores are of the test part: F1 of entities,
or the share of wrong tags; behind the difference from the tutorial's features, with our
CRF, is its standard error by a bootstrap of sentences. CRFSUITE_PYTHON names an
interpreter that has python-crfsuite.

With ``--files NAME TRAIN TEST`` the corpora are your own, in columns or CoNLL-U.
"""

import json
import sys
import tempfile
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

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import read_conll
from sklearn_structsvm.metrics import entity_f1_score, token_accuracy_score
from sklearn_structsvm.preprocessing import SequenceTransformer, WordFeatures

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
    return "error", lambda *args, **options: 100 - 100 * token_accuracy_score(
        *args, **options
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


def crfsuite_fit(python, problem, C):
    X, y, X_test, _ = problem
    start = process_time()
    tokens = [tutorial_features(x) for x in X]
    of_features = process_time() - start
    start = process_time()
    tokens_test = [tutorial_features(x) for x in X_test]
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


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--corpora", nargs="*", choices=CORPORA, default=[*CORPORA])
    parser.add_argument(
        "--files", nargs=3, action="append", default=[], metavar=("NAME", "TRAIN", "TEST")
    )
    parser.add_argument("--Cs", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    problems = {name: load(name, args.data) for name in args.corpora}
    problems |= {name: read_both(paths) for name, *paths in args.files}
    rng = np.random.default_rng(0)
    for name, problem in problems.items():
        if problem is None:
            continue
        y_test = problem[3]
        title, score = score_of(y_test)
        rows = []
        for C in args.Cs:
            fits = {
                "library, tutorial": own_fit(Tutorial, problem, C),
                "library, WordFeatures": own_fit(WordFeatures, problem, C),
            }
            if python:
                fits["CRFsuite, tutorial"] = crfsuite_fit(python, problem, C)
            base = fits["library, tutorial"][0]
            for what, (tags, *seconds) in fits.items():
                difference = score(y_test, tags) - score(y_test, base)
                error = deviation(score, y_test, tags, base, rng)
                told = f"{difference:+.2f} ± {error:.2f}"
                own = f"{score(y_test, tags):.2f}"
                rows.append([what, f"{C:g}", own, told, *seconds])
        n_words = sum(map(len, problem[0]))
        print(f"{name}: {len(problem[0])} sentences, {n_words} words\n")
        print_table(
            ["", "C", title, "beside the tutorial's", "s features", "s training",
             "s tagging"],
            rows,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
