"""CRFsuite on saved CSR problems; run by an interpreter that has python-crfsuite.

Every stored entry of a row is an attribute named by its column, so the features are
those of the library. Writes the predictions on the test problem, prints a JSON line.
"""

import argparse
import json
import os
import tempfile
from itertools import pairwise
from time import perf_counter, process_time

import numpy as np
import pycrfsuite


def load(path):
    """Items as lists of lists of attributes, and labels as lists of strings."""
    with np.load(path) as problem:
        indptr, offsets = problem["indptr"], problem["offsets"].tolist()
        names = list(map(str, range(int(problem["n_features"]))))
        columns = [names[j] for j in problem["indices"]]
        labels = list(map(str, problem["y"]))
    rows = [columns[a:b] for a, b in pairwise(indptr)]
    return [[part[a:b] for a, b in pairwise(offsets)] for part in (rows, labels)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("predictions")
    parser.add_argument("--algorithm", default="lbfgs")
    parser.add_argument("--params", type=json.loads, default={})
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
                    row.append("bias")
                item[0].append("first")
                item[-1].append("last")
    (X, y), (X_test, _) = problems
    trainer = pycrfsuite.Trainer(args.algorithm, args.params, verbose=False)
    for item, labels in zip(X, y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(item), labels)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        start, cpu_start = perf_counter(), process_time()
        trainer.train(path)
        seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [label for item in X_test for label in tagger.tag(item)]
        tagger.close()
    np.save(args.predictions, np.array(predicted, dtype=np.int32))
    last = trainer.logparser.last_iteration or {}
    line = {"seconds": seconds, "cpu_seconds": cpu_seconds, "n_iter": last.get("num", 0)}
    line["losses"] = [
        row["loss"] for row in trainer.logparser.iterations if "loss" in row
    ]
    print(json.dumps(line))


if __name__ == "__main__":
    main()
