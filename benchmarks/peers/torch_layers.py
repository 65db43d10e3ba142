"""The layer of the guide beside pytorch-crf; run by an interpreter that has it.

Both have the same random logits and labels. Prints a JSON line for each size: its name,
and for each layer the CPU milliseconds of a loss and its gradient, one thread.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import torch
import torchcrf

sys.path.insert(0, str(Path(__file__).parents[2] / "doc" / "guide"))

from crf_layer import ChainCRF

# Sentences, tokens, labels.
SIZES = (32, 40, 9), (32, 40, 30), (32, 200, 9)


def milliseconds(loss, repeats):
    found = []
    for _ in range(repeats):
        start = process_time()
        loss().backward()
        found.append(1e3 * (process_time() - start))
    return median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for n, length, k in SIZES:
        logits = torch.randn(n, length, k, requires_grad=True)
        labels = torch.randint(k, (n, length))
        mask = torch.ones(n, length, dtype=torch.bool)
        ours, theirs = ChainCRF(k), torchcrf.CRF(k, batch_first=True)
        losses = [
            partial(ours, logits, labels),
            partial(theirs.forward, logits, labels, mask=mask),
        ]
        times = [milliseconds(loss, args.repeats) for loss in losses]
        name = f"{n} sentences of {length} tokens, {k} labels"
        print(json.dumps({"name": name, "milliseconds": times}), flush=True)


if __name__ == "__main__":
    main()
