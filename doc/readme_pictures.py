"""Pictures of the README's four jobs: `python doc/readme_pictures.py` writes them.

Each is drawn from what the block of code beside it has computed, once in the colors of
light pages and once in those of dark ones, without a ground. The landing page shows the
same pictures.
"""

import re
from contextlib import redirect_stdout
from os import devnull
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.metrics import f1_score

from sklearn_structsvm.plotting import fairness_report

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "doc" / "_static"
# In inches; 480 pixels wide on the page, so that a point of a letter is 1.4 pixels.
WIDTH = 4.8
# Ink, then two colors and a third one, for light and for dark pages.
COLORS = {
    "light": ("#24303a", "#1f6fb5", "#c85a00", "#3b7d3b"),
    "dark": ("#dfe5ea", "#6cb6ff", "#ffa657", "#7ee787"),
}


def style(ink):
    return {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "axes.edgecolor": ink,
        "axes.labelcolor": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
        "grid.alpha": 0.3,
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        # The same file each time, with words as words.
        "svg.hashsalt": "readme",
        "svg.fonttype": "path",
    }


def snippets():
    """Names of each block of code of the README, after it ran."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        names = {}
        np.random.seed(0)  # the same picture each time
        with open(devnull, "w") as nowhere, redirect_stdout(nowhere):
            exec(compile(code, "README.md", "exec"), names)
        yield names


def tagging(names, colors):
    """The entities of the new sentence above its words, with their probabilities."""
    ink, *kinds = colors
    words, tagger = names["new"], names["tagger"]
    spans = tagger[-1].predict_spans(tagger[:-1].transform([words]))[0]
    color = dict(zip(sorted({span.type for span in spans}), kinds, strict=False))
    figure, ax = plt.subplots(figsize=(WIDTH, 1.1), layout="constrained")
    for i, word in enumerate(words):
        ax.text(i, 0.0, word, ha="center", va="center", fontsize=14)
    for span in spans:
        first, last, own = span.start - 0.45, span.stop - 0.55, color[span.type]
        ax.plot([first, last], [0.55, 0.55], color=own, lw=4, solid_capstyle="butt")
        says = f"{span.type} {span.probability:.0%}"
        ax.text((first + last) / 2, 0.75, says, ha="center", color=own, weight="bold")
    ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.4, 1.2))
    ax.set_axis_off()
    return figure


def decision(names, colors):
    """F1 of new rows at each threshold, and at the one that was chosen."""
    ink, blue, orange, _ = colors
    model, X, y = names["model"], names["X"], names["y"]
    proba = model.estimator_.predict_proba(X[2000:])[:, 1]
    thresholds = np.linspace(0.02, 0.9, 200)
    scores = [f1_score(y[2000:], proba > t) for t in thresholds]
    figure, ax = plt.subplots(figsize=(WIDTH, 2.3), layout="constrained")
    ax.plot(thresholds, scores, color=ink, lw=1.5)
    for at, own, says in (
        (0.5, orange, "as usual"),
        (model.threshold_, blue, "as chosen"),
    ):
        score = f1_score(y[2000:], proba > at)
        ax.plot(at, score, "o", color=own, ms=9)
        ax.annotate(
            f"{says}: {score:.2f}", (at, score), (8, 8), textcoords="offset points",
            color=own, weight="bold",
        )  # fmt: skip
    ax.set(xlabel="threshold on the probability", ylabel="F1 of new rows")
    ax.set_ylim(top=max(scores) + 0.12)
    return figure


def fairness(names, colors):
    """Recalls of both groups on new rows with their intervals, without and with."""
    ink, blue, orange, _ = colors
    X, y, group, model = (names[name] for name in ("X", "y", "group", "model"))
    first, new = slice(10_000), slice(10_000, None)
    free = clone(model).set_params(constraints=(), constraint_confidence=None)
    free.fit(X[first], y[first])
    figure, ax = plt.subplots(figsize=(WIDTH, 1.7), layout="constrained")
    for place, fitted in enumerate((model, free)):
        found = fairness_report(
            fitted, X[new], y[new], sensitive_features=group[new]
        ).by_group
        for a, own in enumerate((blue, orange)):
            low, value, high = (found[f"recall{end}"][a] for end in (" low", "", " high"))
            at = place + 0.15 - 0.3 * a
            ax.plot([low, high], [at, at], color=own, lw=3)
            label = None if place else str(found["group"][a])
            ax.plot(value, at, "o", color=own, ms=8, label=label)
    ax.set_yticks([0, 1], ["with the\nconstraint", "without"])
    ax.set(ylim=(-0.5, 1.5), xlabel="recall on new rows, with exact 95% intervals")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def structure(names, colors):
    """The labels of one person: true, by the forest alone, and with the chain."""
    ink, *kinds = colors
    model, x, truth = names["model"], names["X"][10], names["y"][10]
    rows = {
        "truth": truth,
        "forest": model.estimator_.predict(x),
        "with chain": model.predict([x])[0],
    }
    figure, ax = plt.subplots(figsize=(WIDTH, 1.5), layout="constrained")
    for place, labels in enumerate(reversed(rows.values())):
        for name, own in zip(model.classes_, kinds, strict=True):
            ends = np.flatnonzero(np.diff(np.r_[False, labels == name, False]))
            runs = [(start, stop - start) for start, stop in ends.reshape(-1, 2)]
            ax.broken_barh(runs, (place + 0.1, 0.8), color=own, lw=0)
    for name in model.classes_:
        middle = np.flatnonzero(truth == name).mean()
        ax.text(middle, 3.05, name, ha="center", va="bottom")
    ax.set_yticks([0.5, 1.5, 2.5], [*rows][::-1])
    ax.set(xlim=(0, len(truth)), ylim=(0, 3.7), xlabel="time")
    ax.tick_params(length=0)
    ax.set_xticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    return figure


def main():
    matplotlib.use("Agg")
    for names, draw in zip(
        snippets(), (tagging, decision, fairness, structure), strict=True
    ):
        for scheme, colors in COLORS.items():
            path = STATIC / f"{draw.__name__}_{scheme}.svg"
            with plt.rc_context(style(colors[0])):
                # No date: the same picture is the same file.
                draw(names, colors).savefig(path, metadata={"Date": None})
            print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
