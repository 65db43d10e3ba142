"""pytorch-crf on saved scores; run by an interpreter that has it, PyTorch and NumPy.

Minimizes 1/2 ||w||² + C Σ_i -log p(y_i | x_i) by L-BFGS of PyTorch with its strong Wolfe
line search, in float64. The weights are a scale of the scores, a bias of each label, and
those of the layer. Prints a JSON line after each evaluation, with the CPU seconds so far
and the objective, and a last one with the labels of the test part, one chain after
another.
"""

import argparse
import json
from time import process_time

import numpy as np
import torch
from torchcrf import CRF


def load(path):
    """Padded scores, labels and mask."""
    with np.load(path) as data:
        offsets, X, y = data["offsets"], data["X"], data["y"]
    lengths = torch.from_numpy(np.diff(offsets))
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    scores = torch.zeros(*mask.shape, X.shape[1], dtype=torch.float64)
    labels = torch.zeros(mask.shape, dtype=torch.long)
    scores[mask] = torch.from_numpy(X).double()
    labels[mask] = torch.from_numpy(y).long()
    return scores, labels, mask


class Chain(torch.nn.Module):
    """A CRF over scaled scores plus a bias; all weights are zero at first."""

    def __init__(self, k):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(1))
        self.bias = torch.nn.Parameter(torch.zeros(k))
        self.crf = CRF(k, batch_first=True)
        for weights in self.parameters():
            torch.nn.init.zeros_(weights)

    def emissions(self, scores):
        return self.scale * scores + self.bias

    def objective(self, scores, labels, mask, C):
        squares = sum((weights**2).sum() for weights in self.parameters())
        return 0.5 * squares - C * self.crf(self.emissions(scores), labels, mask=mask)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--max-iter", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = load(args.train)
    chain = Chain(data[0].shape[2]).double()
    optimizer = torch.optim.LBFGS(
        chain.parameters(),
        max_iter=args.max_iter,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
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
    scores, _, mask = load(args.test)
    with torch.no_grad():
        found = chain.crf.decode(chain.emissions(scores), mask=mask)
    print(json.dumps({"labels": [label for labels in found for label in labels]}))


if __name__ == "__main__":
    main()
