"""The README's three pictures: `python doc/readme_pictures.py` writes them to _static.

What they show is what the library does on data that ship or are generated, nothing else.
They have a light ground of their own, so that they can be read on dark pages too.
"""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier, ComplexMetricClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.metrics import EqualOpportunity

STATIC = Path(__file__).parent / "_static"
SIZE = 4.2, 2.9
INK, BLUE, ORANGE, GROUND = "#24303a", "#2f6da8", "#d9690c", "#f6f8fa"
STYLE = {
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "font.size": 11,
    "grid.alpha": 0.3,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    # The same file each time.
    "svg.hashsalt": "readme",
}
N_TAGGED = 3


def words():
    X, y = load_ocr_letters(return_X_y=True)
    return train_test_split(X, y, random_state=0)


def tagging():
    """Test words that the chain alone reads right, with what both have read."""
    X, X_test, y, y_test = words()
    chain = BCFWClassifier("chain", C=0.02, tol=0.01, random_state=0).fit(X, y)
    alone = LinearSVC(C=0.1, random_state=0).fit(np.concatenate(X), np.concatenate(y))
    shown = []
    for word, truth, found in zip(X_test, y_test, chain.predict(X_test), strict=True):
        letters = alone.predict(word)
        n_wrong = np.sum(letters != truth)
        is_new = "".join(truth) not in ("".join(t) for _, t, _ in shown)
        if (found == truth).all() and n_wrong >= 2 and 5 <= len(word) <= 6 and is_new:
            shown.append((word, truth, letters))
    figure, axes = plt.subplots(N_TAGGED, 1, figsize=SIZE, layout="constrained")
    figure.suptitle("Letters tagged word by word", fontsize=12, fontweight="bold")
    for ax, (word, truth, letters) in zip(axes, shown, strict=False):
        image = np.hstack([np.pad(x.reshape(16, 8), ((0, 0), (1, 1))) for x in word])
        ax.imshow(image, cmap="Greys", interpolation="nearest")
        for i, (one, other) in enumerate(zip(truth, letters, strict=True)):
            at = {"ha": "center", "va": "top", "fontsize": 11}
            ax.text(10 * i + 4.5, 16.5, one, color=BLUE, fontweight="bold", **at)
            wrong = {"color": ORANGE, "fontweight": "bold"} if one != other else {}
            ax.text(10 * i + 4.5, 22.5, other, **(at | wrong))
        ax.set(xlim=(-1, 98), ylim=(29, 0))
        ax.set_axis_off()
        ax.text(68, 16.5, "as a word", color=BLUE, va="top", fontsize=10)
        ax.text(68, 22.5, "one by one", va="top", fontsize=10)
    return figure


def certificate():
    """The gap over the passes, beside how far the objective really is from its best."""
    X, _, y, _ = words()
    params = {"structure": "chain", "C": 0.1, "random_state": 0}
    best = BCFWClassifier(**params, tol=1e-7, max_iter=10_000).fit(X, y)
    history = BCFWClassifier(**params, tol=1e-4, max_iter=10_000).fit(X, y).history_
    passes = history["n_iter"]
    figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
    excess = history["objective"] - best.dual_objective_
    ax.semilogy(passes, history["dual_gap"], color=BLUE, lw=2.5, label="the gap: known")
    ax.semilogy(passes, excess, color=ORANGE, lw=1.8, label="true distance: unknown")
    ax.set(title="Every fit says how far it can be off", xlabel="passes over the data")
    ax.set_ylabel("in units of the loss")
    ax.grid(True)
    ax.legend(frameon=False)
    return figure


def fairness():
    """G-mean against the difference of recalls that is allowed between two groups."""
    rng = np.random.default_rng(0)
    n = 20_000
    group = rng.random(n) < 0.7
    y = (rng.random(n) < np.where(group, 0.35, 0.2)).astype(int)
    signal = (2 * y - 1) * np.where(group, 0.9, 0.5)
    X = np.column_stack([signal + rng.normal(size=n), 0.5 * group + rng.normal(size=n)])
    slacks = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25]
    values, bounds = [], []
    for slack in slacks:
        model = ComplexMetricClassifier(
            metric="g_mean",
            constraints=EqualOpportunity(slack=slack, reference="groups"),
        ).fit(X, y, sensitive_features=group)
        values.append(1.0 - model.objective_)
        bounds.append(1.0 - model.dual_objective_)
    figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
    ax.plot(slacks, values, "o-", color=BLUE, lw=2.5, label="found")
    ax.plot(slacks, bounds, ":", color=ORANGE, lw=2.2, label="nothing is above this")
    ax.set(title="What a constraint costs", ylabel="G-mean")
    ax.set_xlabel("difference of recalls allowed between groups")
    ax.grid(True)
    ax.legend(frameon=False, loc="lower right")
    return figure


def main():
    matplotlib.use("Agg")
    with plt.rc_context(STYLE):
        for draw in (tagging, certificate, fairness):
            path = STATIC / f"readme_{draw.__name__}.svg"
            # No date: the same picture is the same file.
            draw().savefig(path, metadata={"Date": None})
            print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
