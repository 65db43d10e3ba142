"""Errors where labels are hidden, by what one learns from: benchmarks/results."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import PercentFormatter

# Figures are drawn in this folder.
RESULTS = Path("../../benchmarks/results/hidden_labels.json")
LINES = {
    "hidden labels": ("learned with the hidden labels", "C0", "o-"),
    "hidden of weight 0": ("hidden labels left out", "C1", "s--"),
    "whole sentences, as many labels": ("as many labels in whole sequences", "C2", "^:"),
}
SETS = {"ocr": "letters of handwritten words", "conll2000": "tags of CoNLL-2000"}

results = json.loads(RESULTS.read_text(encoding="utf-8"))
fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
for ax, (name, title) in zip(axes, SETS.items(), strict=True):
    rows = [row for row in results[name] if row[""] == "CRFClassifier"]
    (complete,) = [row["error %"] for row in rows if row["learned from"] == "all labels"]
    for kind, (label, color, style) in LINES.items():
        points = [
            (row["hidden"], row["error %"]) for row in rows if row["learned from"] == kind
        ]
        shares, errors = zip((0.0, complete), *points, strict=True)
        ax.plot(shares, errors, style, color=color, label=label)
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("share of the labels that are hidden")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylim(bottom=0)
axes[0].set_ylabel("error on new sequences, %")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
           fontsize="small")  # fmt: skip
