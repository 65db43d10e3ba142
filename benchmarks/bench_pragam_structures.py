"""Pragam over chains and trees: passes and seconds to a gap, beside BCFW and BMRM.

A pass calls the oracle once for each example (Pragam asks for marginals as well).
OCR-small, and the parts of speech of the English Web Treebank, as chains of words and as
trees of their heads, with binary attributes of the words; ud_ewt/train.tsv.gz is read
from the folder of the data sets. Seconds are those of the processor.
"""

import gzip
from time import process_time

from _common import (
    NO_CHECKS,
    data_file,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    placed,
    print_table,
)
from sklearn.feature_extraction import FeatureHasher

from sklearn_structsvm import BCFWClassifier, BMRMClassifier, PragamClassifier
from sklearn_structsvm.structures import ChainStructure, TreeStructure

TARGETS = (1e-1, 1e-2, 1e-3)
# More attributes than there are in the data share few of them.
N_FEATURES = 2**17


def attributes(words, t):
    word = words[t]
    yield "w=" + word.lower()
    yield "-=" + (words[t - 1].lower() if t else "<s>")
    yield "+=" + (words[t + 1].lower() if t + 1 < len(words) else "</s>")
    for length in (1, 2, 3):
        yield f"s{length}=" + word[-length:].lower()
    yield "p=" + word[:2].lower()
    yield f"case={word[:1].isupper()}{word.isupper()}"
    yield f"digit={any(c.isdigit() for c in word)}"
    yield "bias"


def load_treebank(data_home, n_sentences=None):
    """Features, parents and tags of the sentences, or None where there is no file."""
    path = data_file(data_home, "ud_ewt", "train.tsv.gz")
    if path is None:
        return None
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        sentences = [
            [line.split("\t") for line in block.split("\n")]
            for block in lines.read().strip().split("\n\n")
        ][:n_sentences]
    hasher = FeatureHasher(N_FEATURES, input_type="string", alternate_sign=False)
    X, parents, y = [], [], []
    for sentence in sentences:
        words = [row[0] for row in sentence]
        rows = hasher.transform(list(attributes(words, t)) for t in range(len(words)))
        X.append(rows.tocsr())
        parents.append(np.array([int(row[3]) - 1 for row in sentence]))
        y.append(np.array([row[1] for row in sentence]))
    return X, parents, y


def problems(args):
    """Name, structure, X and y of each."""
    yield "OCR-small", ChainStructure(), *load_ocr("small", args.data)
    treebank = load_treebank(args.data, args.sentences)
    if treebank is not None:
        X, parents, y = treebank
        yield "ud_ewt, chains", ChainStructure(), X, y
        yield "ud_ewt, trees", TreeStructure(), list(zip(X, parents, strict=True)), y


def methods(structure, args):
    """Name and estimator of each; the gap is looked at after each pass."""
    shared = {"structure": structure, "max_time": args.max_time, "max_iter": NO_CHECKS}
    yield (
        "BCFW",
        placed(BCFWClassifier)(
            solver_options={"gap_check_interval": 1}, random_state=0, **shared
        ),
    )
    yield "Pragam", placed(PragamClassifier)(**shared)
    yield "BMRM", placed(BMRMClassifier)(**shared)


def first(history, target, n, optimum, busy):
    """Passes and seconds to the relative gap, as "passes / seconds".

    `busy` is the share of the time that the processor had for the fit.
    """
    at = np.flatnonzero(history["dual_gap"] <= target * optimum)
    if not len(at):
        return "-"
    passes = history["n_oracle_calls"][at[0]] / n
    return f"{passes:.0f} / {busy * history['seconds'][at[0]]:.2g}"


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--max-time", type=float, default=300.0, help="of a fit")
    parser.add_argument("--sentences", type=int, help="of the treebank; None for all")
    args = parser.parse_args()
    rows = []
    for name, structure, X, y in problems(args):
        n = len(X)
        for label, lam in (("0.01", 0.01), ("1/n", 1.0 / n)):
            optimum = None
            for method, model in methods(structure, args):
                tol = 1e-5 if optimum is None else TARGETS[-1] * optimum
                start = process_time()
                fit_quietly(model.set_params(C=1.0 / (lam * n), tol=tol), X, y)
                seconds = process_time() - start
                # BCFW comes first, and as near to the optimum as it takes.
                optimum = model.objective_ if optimum is None else optimum
                history = model.history_
                busy = seconds / history["seconds"][-1]
                found = [first(history, goal, n, optimum, busy) for goal in TARGETS]
                left = history["dual_gap"][-1] / optimum
                per_pass = seconds / (model.n_oracle_calls_ / n)
                rows.append(
                    [name, label, method, *found, f"{left:.1e}", f"{1e3 * per_pass:.3g}"]
                )
                print(rows[-1], flush=True)
    header = ["data", "λ", "method", *map("{:g}".format, TARGETS), "left", "ms a pass"]
    print_table(header, rows)


if __name__ == "__main__":
    main()
