"""CRFsuite on saved CSR problems; run by an interpreter that has python-crfsuite.

Every stored entry of a row is an attribute named by its column, so the features are
those of the library. Writes the predictions on the test problem, prints a JSON line.
With ``--chaine`` it is chaine's copy of CRFsuite, which says nothing of its losses.
"""

import argparse
import json
import os
import tempfile
from itertools import pairwise
from time import perf_counter, process_time

import numpy as np


def load(path):
    """Items as lists of attributes or of dicts with values, and labels as strings."""
    with np.load(path) as problem:
        indptr, offsets = problem["indptr"], problem["offsets"].tolist()
        names = list(map(str, range(int(problem["n_features"]))))
        columns = [names[j] for j in problem["indices"]]
        values = problem["data"].tolist()
        labels = list(map(str, problem["y"]))
    rows = [columns[a:b] for a, b in pairwise(indptr)]
    if any(value != 1.0 for value in values):
        rows = [
            dict(zip(row, values[a:b], strict=True))
            for row, (a, b) in zip(rows, pairwise(indptr), strict=True)
        ]
    return [[part[a:b] for a, b in pairwise(offsets)] for part in (rows, labels)]


def add_attribute(row, name):
    if isinstance(row, dict):
        row[name] = 1.0
    else:
        row.append(name)


def train_crfsuite(X, y, X_test, algorithm, params, path):
    """Facts of the training, and the labels of the test items."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, params, verbose=False)
    for item, labels in zip(X, y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(item), labels)
    start, cpu_start = perf_counter(), process_time()
    trainer.train(path)
    facts = {"seconds": perf_counter() - start, "cpu_seconds": process_time() - cpu_start}
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    predicted = [tagger.tag(item) for item in X_test]
    if "c1" in params:
        info = tagger.info()
        facts["n_weights"] = len(info.state_features) + len(info.transitions)
    tagger.close()
    last = trainer.logparser.last_iteration or {}
    facts["n_iter"] = last.get("num", 0)
    iterations = trainer.logparser.iterations
    facts["losses"] = [row["loss"] for row in iterations if "loss" in row]
    return facts, predicted


def train_chaine(X, y, X_test, algorithm, params, path):
    """The same by chaine, whose tokens are dicts."""
    import chaine
    from chaine.logging import set_verbosity

    set_verbosity(0)
    X, X_test = (
        [[r if isinstance(r, dict) else dict.fromkeys(r, 1.0) for r in x] for x in part]
        for part in (X, X_test)
    )
    # It is what chaine.Trainer.train calls once it has appended the sentences.
    trainer = chaine.Trainer(algorithm, **params)._trainer
    for item, labels in zip(X, y, strict=True):
        trainer.append(item, labels)
    start, cpu_start = perf_counter(), process_time()
    trainer.train(path)
    facts = {"seconds": perf_counter() - start, "cpu_seconds": process_time() - cpu_start}
    return facts | {"n_iter": "-", "losses": []}, chaine.Model(path).predict(X_test)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("predictions")
    parser.add_argument("--algorithm", default="lbfgs")
    parser.add_argument("--params", type=json.loads, default={})
    parser.add_argument("--chaine", action="store_true")
    parser.add_argument(
        "--biases",
        action="store_true",
        help="add the attributes of a bias, first and last position",
    )
    args = parser.parse_args()

    problems = [load(args.train), load(args.test)]
    if args.biases:
        for items, _ in problems:
            for item in items:
                for row in item:
                    add_attribute(row, "bias")
                add_attribute(item[0], "first")
                add_attribute(item[-1], "last")
    (X, y), (X_test, _) = problems
    train = train_chaine if args.chaine else train_crfsuite
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        facts, predicted = train(X, y, X_test, args.algorithm, args.params, path)
    labels = [label for item in predicted for label in item]
    np.save(args.predictions, np.array(labels, dtype=np.int32))
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
