"""A regularization path: certified gaps at its breakpoints, and the weights' norm."""

import matplotlib.pyplot as plt

from sklearn_structsvm import bcfw_path
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.plotting import RegularizationPathDisplay

X, y = make_chains(n_samples=60, n_classes=3, random_state=0)
path = bcfw_path(X, y, eps=0.1, min_lambda=0.003, random_state=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
RegularizationPathDisplay.from_path(path, kind="gap", ax=left)
left.set_ylim(0, 1.45 * path.eps)
RegularizationPathDisplay.from_path(path, kind="norm", ax=right)
right.set_ylabel("norm of the weights")
for ax in (left, right):
    ax.set_xlabel("λ, from weak to strong regularization")
    ax.legend(loc="upper right", fontsize="small")
