"""torchcp on given class probabilities; run by an interpreter that has it.

Prints a JSON line for each conformity score, randomized or not: the mean size and the
coverage of the sets of the test rows, over the splits whose calibration and test rows the
file lists.
"""

import json
import sys

import numpy as np
import torch
from torchcp.classification.predictor import SplitPredictor
from torchcp.classification.score import APS, LAC, RAPS

# Those of ConformalClassifier and of MAPIE's default.
PENALTY, FREE_RANKS = 0.01, 5


def main():
    path, level = sys.argv[1], float(sys.argv[2])
    with np.load(path) as data:
        P, y, splits, n = data["P"], data["y"], data["splits"], int(data["n"])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # The softmax of logarithms of probabilities is the probabilities.
    logits, labels = torch.log(torch.as_tensor(P)), torch.as_tensor(y)
    for name, randomized, score in (
        ("lac", False, LAC()),
        ("aps", False, APS(randomized=False)),
        ("aps", True, APS(randomized=True)),
        ("raps", False, RAPS(randomized=False, penalty=PENALTY, kreg=FREE_RANKS)),
        ("raps", True, RAPS(randomized=True, penalty=PENALTY, kreg=FREE_RANKS)),
    ):
        sizes, covered = [], []
        for order in splits:
            own, new = order[:n], order[n:]
            model = SplitPredictor(score, alpha=1.0 - level, device="cpu")
            model.calculate_threshold(logits[own], labels[own])
            sets = model.predict_with_logits(logits[new]).numpy().astype(bool)
            sizes.append(float(sets.sum(axis=1).mean()))
            covered.append(float(sets[np.arange(len(new)), y[new]].mean()))
        line = {"score": name, "randomized": randomized}
        line |= {"size": np.mean(sizes), "coverage": np.mean(covered)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
