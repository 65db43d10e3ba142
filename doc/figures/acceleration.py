"""What the accelerated loop does, in order; its numbers are those of the code."""

import matplotlib.pyplot as plt

from sklearn_structsvm.solvers.blocks.acceleration import MAX_WAITED, RATIO, WORTH_IT
from sklearn_structsvm.solvers.blocks.bcfw import CACHED_PASSES

# Left, bottom, width and height, color, and the words.
BOXES = {
    "plain": (
        (0.0, 8.5, 10, 1.0, "#eeeeee"),
        f"Plain passes, until {WORTH_IT} or more are foreseen; then a center z = w and "
        f"κ = {RATIO - 1:g} λ or more",
    ),
    "oracle": (
        (0.25, 5.5, 3.0, 1.5, "#cfe3f5"),
        "max-oracle: the\nlabeling of example i\nthat violates most",
    ),
    "step": (
        (3.55, 5.5, 3.0, 1.5, "#cfe3f5"),
        "step on block i of the\ndual: exact, on a line, or\nover its labelings",
    ),
    "weights": (
        (6.85, 5.5, 2.9, 1.5, "#cfe3f5"),
        "the weights move:\nw = (λ u + κ z) / (λ + κ)",
    ),
    "hand": (
        (0.0, 3.3, 10, 1.0, "#cfe3f5"),
        f"Corrective steps: {CACHED_PASSES} passes over the cached labelings, "
        "without the oracle",
    ),
    "check": (
        (0.0, 1.6, 4.7, 1.0, "#d9d2e9"),
        "Now and then: the true gap of w,\nof the problem without κ",
    ),
    "center": (
        (5.3, 1.6, 4.7, 1.0, "#fbd9b0"),
        "Every pass or two the center moves on:\nz ← w + β (w - w at the last move)",
    ),
    "done": ((0.0, -0.2, 4.7, 1.0, "#eeeeee"), "Gap at most tol: done"),
    "guard": (
        (5.3, -0.2, 4.7, 1.0, "#eeeeee"),
        f"No progress in {MAX_WAITED} moves: a smaller κ,\nor more passes between moves",
    ),
}


def arrow(ax, *points):
    """An arrow along a line of several points."""
    ax.plot(*zip(*points, strict=True), color="0.3", linewidth=1.2, zorder=1)
    ax.annotate(
        "",
        xy=points[-1],
        xytext=points[-2],
        arrowprops={"arrowstyle": "-|>", "color": "0.3", "shrinkA": 0, "shrinkB": 0},
    )


fig, ax = plt.subplots(figsize=(7, 5.4), layout="constrained")
frame = plt.Rectangle((0, 5.2), 10, 2.6, facecolor="none", edgecolor="0.4", linewidth=1.2)
ax.add_patch(frame)
ax.text(
    0.25, 7.4, "A pass: for each example i, in random order", va="center", weight="bold"
)
for (left, bottom, width, height, color), words in BOXES.values():
    ax.add_patch(
        plt.Rectangle((left, bottom), width, height, facecolor=color, edgecolor="0.3")
    )
    ax.text(left + width / 2, bottom + height / 2, words, ha="center", va="center")
arrow(ax, (5, 8.5), (5, 7.8))
arrow(ax, (3.25, 6.25), (3.55, 6.25))
arrow(ax, (6.55, 6.25), (6.85, 6.25))
arrow(ax, (5, 5.2), (5, 4.3))
arrow(ax, (2.35, 3.3), (2.35, 2.6))
arrow(ax, (4.7, 2.1), (5.3, 2.1))
arrow(ax, (7.65, 1.6), (7.65, 0.8))
arrow(ax, (2.35, 1.6), (2.35, 0.8))
arrow(ax, (10, 2.1), (10.4, 2.1), (10.4, 6.5), (10, 6.5))
ax.text(10.5, 4.3, "next pass", rotation=270, va="center", ha="left")
ax.set(xlim=(-0.1, 11), ylim=(-0.3, 9.6))
ax.set_axis_off()
