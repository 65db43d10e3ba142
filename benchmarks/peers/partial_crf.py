"""pytorch-partial-crf on saved sequences; run by an interpreter that has it and NumPy.

Minimizes 1/2 ||w||² + C Σ_i -log p(what is known of y_i | x_i) by L-BFGS of PyTorch with
its strong Wolfe line search, in float64. The weights are those of a linear layer, a bias
of each label, and those of the package's `PartialCRF`. In the file hidden labels are 0,
and the others count from 1. Prints a JSON line after each evaluation, with the CPU
seconds so far and the objective, and a last one with the labels of the test part.
"""

import argparse
import json
from time import process_time

import numpy as np
import torch
from pytorch_partial_crf import PartialCRF


def load(path):
    """Rows of features as a sparse or dense matrix, padded labels, and the mask."""
    with np.load(path) as data:
        # The package has -1 for hidden labels.
        offsets, y = data["offsets"], torch.from_numpy(data["y"]).long() - 1
        if "X" in data:
            rows = torch.from_numpy(data["X"]).double()
        else:
            counts = np.diff(data["indptr"])
            places = np.repeat(np.arange(len(counts)), counts), data["indices"]
            size = len(counts), int(data["n_features"])
            values = torch.from_numpy(data["data"]).double()
            rows = torch.sparse_coo_tensor(
                np.array(places), values, size, check_invariants=True
            ).coalesce()
    lengths = torch.from_numpy(np.diff(offsets))
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    labels = torch.zeros(mask.shape, dtype=torch.long)
    labels[mask] = y
    return rows, labels, mask


class Chain(torch.nn.Module):
    """Linear scores of the labels, below the package's layer."""

    def __init__(self, n_features, k):
        super().__init__()
        self.emission = torch.nn.Parameter(torch.zeros(n_features, k))
        self.bias = torch.nn.Parameter(torch.zeros(k))
        self.crf = PartialCRF(k)

    def emissions(self, rows, mask):
        product = torch.sparse.mm if rows.is_sparse else torch.mm
        scores = product(rows, self.emission) + self.bias
        padded = torch.zeros(*mask.shape, scores.shape[1], dtype=scores.dtype)
        return padded.masked_scatter(mask[:, :, None], scores)

    def objective(self, rows, labels, mask, C):
        squares = sum((weights**2).sum() for weights in self.parameters())
        return 0.5 * squares + C * self.crf(self.emissions(rows, mask), labels, mask)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--labels", type=int, required=True)
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--max-iter", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = load(args.train)
    chain = Chain(data[0].shape[1], args.labels).double()
    optimizer = torch.optim.LBFGS(
        chain.parameters(), max_iter=args.max_iter, line_search_fn="strong_wolfe"
    )
    start = process_time()

    def evaluate():
        optimizer.zero_grad()
        value = chain.objective(*data, args.C)
        value.backward()
        line = {"seconds": process_time() - start, "objective": value.item()}
        print(json.dumps(line), flush=True)
        return value

    optimizer.step(evaluate)
    rows, _, mask = load(args.test)
    with torch.no_grad():
        found = chain.crf.viterbi_decode(chain.emissions(rows, mask), mask)
    print(json.dumps({"labels": [label for labels in found for label in labels]}))


if __name__ == "__main__":
    main()
