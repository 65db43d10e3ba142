"""CPU microseconds to tag a token of CoNLL-2000's test part, beside CRFsuite's Tagger.

Input are lists of attributes as strings, or what they are turned into before: CSR
matrices, and CRFsuite's `ItemSequence`. Ours takes all sentences in one call of
`predict`, and one sentence a call; CRFsuite has one sentence a call only. CRFSUITE_PYTHON
names an interpreter that has python-crfsuite.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import process_time

from _common import (
    HERE,
    fit_quietly,
    make_parser,
    peer_python,
    print_table,
    run_lines,
)
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import chunking_attributes, fetch_conll2000
from sklearn_structsvm.preprocessing import SequenceTransformer


def seconds(predict, inputs, rounds=3):
    """CPU seconds of the fastest round of calls."""
    taken = []
    for _ in range(rounds):
        start = process_time()
        for item in inputs:
            predict(item)
        taken.append(process_time() - start)
    return min(taken)


def main():
    parser = make_parser(__doc__)
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    train, test = (
        fetch_conll2000(subset=subset, data_home=args.data)
        for subset in ("train", "test")
    )
    X, X_test = (
        [chunking_attributes(tokens) for tokens in text.tokens] for text in (train, test)
    )
    # The most probable labeling takes as long whatever the weights are.
    tagger = make_pipeline(
        SequenceTransformer(), CRFClassifier("chain", max_iter=1, random_state=0)
    )
    fit_quietly(tagger, X, train.target)
    matrices = tagger[0].transform(X_test)
    model = tagger[-1]
    rows = [
        [
            "library, all at once",
            seconds(tagger.predict, [X_test]),
            seconds(model.predict, [matrices]),
        ],
        [
            "library, one sentence a call",
            seconds(tagger.predict, [[sentence] for sentence in X_test]),
            seconds(model.predict, [[matrix] for matrix in matrices]),
        ],
    ]
    if python:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tokens.json")
            tags = [labels.tolist() for labels in train.target]
            path.write_text(json.dumps([X, tags, X_test]), encoding="utf8")
            peer = HERE / "peers" / "crfsuite_tagging.py"
            (facts,) = run_lines([python, peer, path])
        rows.append(["CRFsuite", facts["tokens"], facts["features"]])
    n_tokens = sum(map(len, X_test))
    print(f"{len(X_test)} sentences, {n_tokens} tokens, {model.coef_.size} weights\n")
    print_table(
        ["", "µs a token from strings", "µs a token from features", "µs a sentence"],
        [
            [n, 1e6 * a / n_tokens, 1e6 * b / n_tokens, 1e6 * a / len(X_test)]
            for n, a, b in rows
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
