"""xCOLUMNs on given label probabilities; run by an interpreter that has it.

Prints a JSON line for each number of labels a row (0 for any) of the command line: the
CPU seconds, the median of some runs after one of few rows, and the peak memory. What is
predicted is written beside the file of probabilities.

`batch` is block coordinate ascent for macro-F1 on the probabilities `eta`, from their top
labels (greedily, where any number may be predicted). `learn` is Frank-Wolfe for macro-F1
on `eta_train` and `Y_train`, and the randomized classifier found, drawn for `eta`.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from scipy import sparse
from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc
from xcolumns.frank_wolfe import find_classifier_using_fw
from xcolumns.metrics import macro_f1_score_on_conf_matrix


def peak_megabytes():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


def read(path):
    if path.suffix == ".sparse":
        with np.load(path.with_suffix(".sparse.npz")) as data:
            parts = [data[name] for name in ("data", "indices", "indptr")]
            return {"eta": sparse.csr_matrix(tuple(parts), shape=tuple(data["shape"]))}
    with np.load(path) as data:
        return {name: data[name] for name in data.files}


def batch(data, k, max_iter):
    start = "top" if k else "greedy"
    return predict_optimizing_macro_f1_score_using_bc(
        data["eta"].copy(), k, init_y_pred=start, max_iter=max_iter, seed=0
    )


def learn(data, k, max_iter):
    # The function of 0.0.2 for macro-F1 hands on a metric of another signature.
    found = find_classifier_using_fw(
        data["Y_train"].astype(float),
        data["eta_train"],
        macro_f1_score_on_conf_matrix,
        k,
        skip_tn=True,
        seed=0,
    )
    return found.predict(data["eta"], seed=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=["batch", "learn"])
    parser.add_argument("path", type=Path)
    parser.add_argument("k", type=int, nargs="+")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=100)
    args = parser.parse_args()
    run = {"batch": batch, "learn": learn}[args.method]
    data = read(args.path)
    for k in args.k:
        seconds = []
        # Compiles.
        run({name: values[:100] for name, values in data.items()}, k, 2)
        for _ in range(args.repeats):
            started = process_time()
            found = run(data, k, args.max_iter)
            seconds.append(process_time() - started)
        output = f"{args.path}.{args.method}{k}.npz"
        sparse.save_npz(output, sparse.csr_matrix(found))
        line = {"k": k, "seconds": median(seconds), "megabytes": peak_megabytes()}
        print(json.dumps(line | {"output": output}), flush=True)


if __name__ == "__main__":
    main()
