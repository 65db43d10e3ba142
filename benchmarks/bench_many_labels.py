"""Chains over many labels: CPU nanoseconds a pair of labels and token, and memory.

Sentences are generated: 20 tokens of 20 features each, one of which goes with the label.
Time is that of a whole fit of five passes, over the calls of the oracle (sums over all
labelings for CRFs); memory is what the fit adds to the process at its peak.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
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


if __name__ == "__main__":
    sys.exit(main())
