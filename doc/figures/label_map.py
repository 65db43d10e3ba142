"""All labelings of one example by margin and loss, with the queries of two searches."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from sklearn_structsvm import SlackRescaledSSVM
from sklearn_structsvm.datasets import make_multilabel
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import PairwiseMultilabelStructure

X, Y = make_multilabel(n_samples=60, n_classes=8, random_state=0)
model = SlackRescaledSSVM(PairwiseMultilabelStructure(), C=0.01, random_state=0).fit(X, Y)
structure, w, x, y = model.structure_, model.coef_.ravel(), X[4], Y[4]
truth = w @ structure.joint_feature(x, y)
labelings = [np.array(labels) for labels in product((0, 1), repeat=8)]
h = [1 + w @ structure.joint_feature(x, labels) - truth for labels in labelings]
g = [structure.loss(y, labels) for labels in labelings]
right, top = 1.1 * max(h), 1.1 * max(g)

fig, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained", sharey=True)
for ax, name in zip(axes, ("angular", "bisecting"), strict=True):
    oracle = structure.make_oracle(X[[4]], Y[[4]])
    result = find_most_violating(oracle, 0, w, search=name, trace=True)
    ax.plot(h, g, ".", color="0.6", markersize=4, label="labelings")
    trace = result.trace
    shown = np.flatnonzero(trace["found"])
    for shade, j in zip(np.linspace(0.35, 1, len(shown)), shown, strict=True):
        lam, at_h, at_g = (trace[key][j] for key in ("lam", "margin", "loss"))
        ends = np.array([0.0, right])
        style = {"color": "C0", "alpha": shade}
        if lam > 0:
            ax.plot(ends, (at_h + lam * at_g - ends) / lam, linewidth=1, **style)
        ax.plot(at_h, at_g, "x", markersize=7, **style)
    curve = np.linspace(result.value / top, right, 200)
    ax.plot(curve, result.value / curve, "--", color="C3", label="g h = const")
    ax.plot(result.margin, result.loss, "*", color="C3", markersize=11, label="found")
    ax.set(xlim=(min(0, min(h)), right), ylim=(-0.1, top), xlabel="margin violation h")
    ax.set_title(f"{name}: {result.n_queries} queries, g h = {result.value:.2f}")
axes[0].set_ylabel("loss g")
axes[1].legend(fontsize="small")
