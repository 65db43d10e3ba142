"""Chains over many labels: CPU nanoseconds a pair of labels and token, and memory.

Sentences are generated: 20 tokens of 20 features each, one of which goes with the label.
Time is that of a whole fit of five passes, over the calls of the oracle (sums over all
labelings for CRFs); memory is what the fit adds to the process at its peak. Then default
CRFs of tags whose frequencies fall as in treebanks: 774 tags for five passes, and 355
until the end.
"""

import argparse
import json
import sys
from time import process_time

from _common import (
    NO_CHECKS,
    fit_quietly,
    np,
    peak_megabytes,
    print_table,
    run_lines,
    sparse,
)

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.structures import ChainStructure

LENGTH, N_FEATURES, N_ENTRIES, PASSES = 20, 2000, 20, 5
# Of default CRFs: labels, sentences, and passes at most.
WHOLE = [(774, 1500, 5), (355, 300, 1000)]
MODELS = {"BCFWClassifier": BCFWClassifier, "CRFClassifier": CRFClassifier}
# Labels, and sentences: each label occurs.
SIZES = {100: 100, 400: 50, 1000: 50}


def make_sentences(n_labels, n_sentences, rng):
    """CSR items and their labels."""
    first = rng.permutation(n_labels)
    rest = rng.integers(n_labels, size=n_sentences * LENGTH - n_labels)
    y = np.concatenate([first, rest]).reshape(n_sentences, LENGTH)
    starts, values = N_ENTRIES * np.arange(LENGTH + 1), np.ones(N_ENTRIES * LENGTH)
    X = []
    for labels in y:
        others = [
            rng.choice(np.arange(n_labels, N_FEATURES), N_ENTRIES - 1, replace=False)
            for _ in labels
        ]
        places = np.column_stack([labels, others])
        X.append(sparse.csr_array((values, places.ravel(), starts), (LENGTH, N_FEATURES)))
    return X, list(y)


def measure(name, n_labels):
    """Print nanoseconds and megabytes of one fit as JSON."""
    X, y = make_sentences(n_labels, SIZES[n_labels], np.random.default_rng(0))
    model = MODELS[name](
        ChainStructure(),
        tol=0.0,
        max_iter=PASSES,
        solver_options={"gap_check_interval": NO_CHECKS},
        random_state=0,
    )
    before, start = peak_megabytes(), process_time()
    fit_quietly(model, X, y)
    seconds = process_time() - start
    pairs = model.history_["n_oracle_calls"][-1] * LENGTH * n_labels**2
    facts = {"ns": 1e9 * seconds / pairs, "megabytes": peak_megabytes() - before}
    print(json.dumps(facts | {"weights": model.coef_.nbytes / 2**20}))


def make_tagged(n_tags, n_sentences, rng):
    """CSR items of words, which have a tag or two, and their tags."""
    lengths = rng.integers(5, 31, n_sentences)
    shares = 1.0 / np.arange(1, n_tags + 1)
    tags = rng.choice(n_tags, lengths.sum(), p=shares / shares.sum())
    tags[:n_tags] = rng.permutation(n_tags)
    words = 3 * tags + rng.integers(4, size=len(tags))
    starts, n_words = np.arange(len(words) + 1), 3 * n_tags + 1
    X = sparse.csr_array((np.ones(len(words)), words, starts), (len(words), n_words))
    cuts = np.cumsum(lengths)[:-1]
    parts = zip([0, *cuts], [*cuts, len(words)], strict=True)
    return [X[a:b] for a, b in parts], np.split(tags, cuts)


def measure_whole(n_tags, n_sentences, max_iter):
    """Print seconds, megabytes and the certificate of a default fit as JSON."""
    X, y = make_tagged(n_tags, n_sentences, np.random.default_rng(0))
    model = CRFClassifier("chain", max_iter=max_iter, random_state=0)
    before, start = peak_megabytes(), process_time()
    fit_quietly(model, X, y)
    facts = {"seconds": process_time() - start, "megabytes": peak_megabytes() - before}
    facts |= {"solver": model.solver_, "passes": int(model.n_iter_)}
    facts |= {"objective": model.objective_, "gap": model.dual_gap_}
    print(json.dumps(facts))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--whole", nargs=3, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.whole:
        measure_whole(*args.whole)
        return
    if args.one:
        measure(args.one[0], int(args.one[1]))
        return
    rows = []
    for n_labels, n_sentences in SIZES.items():
        for name in MODELS:
            # A process has one peak.
            command = [sys.executable, __file__, "--one", name, str(n_labels)]
            (facts,) = run_lines(command)
            dense = 8 * n_sentences * n_labels**2 / 2**20
            row = [n_labels, name, facts["ns"], facts["megabytes"], facts["weights"]]
            rows.append([*row, dense])
    print_table(
        ["labels", "", "ns a pair and token", "MB", "MB of w", "MB of n K² doubles"], rows
    )
    rows = []
    for sizes in WHOLE:
        (facts,) = run_lines([sys.executable, __file__, "--whole", *map(str, sizes)])
        rows.append([*sizes[:2], *facts.values()])
    print_table(
        ["tags", "sentences", "CPU s", "MB", "solver", "passes", "objective", "gap"], rows
    )


if __name__ == "__main__":
    sys.exit(main())
