"""Four structures: what is scored, and that the score of an output is the sum of it.

Models are fitted to small data. Drawn is what each predicts for one example: nodes with
the scores of their labels, edges with those of pairs of labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import (
    load_ocr_letters,
    make_multilabel,
    make_segmentation,
)
from sklearn_structsvm.structures import (
    GraphStructure,
    PairwiseMultilabelStructure,
    TreeStructure,
)

NODE = {"boxstyle": "circle,pad=0.35", "edgecolor": "0.2"}
COLORS = ["#cfe3f5", "#fbd9b0"]  # of two labels: a light blue, a light orange


def fit(structure, X, y, C):
    return BCFWClassifier(structure, C=C, tol=0.01, random_state=0).fit(X, y)


def predict(model, x):
    """The output for x, and weights by name."""
    (y,) = model.predict([x])
    return y, model.structure_.weight_parts(model.coef_)


def check(model, x, y, *scores):
    """What is drawn adds up to the score of the output, which is returned."""
    total = sum(np.sum(part) for part in scores)
    score = model.coef_ @ model.structure_.joint_feature(x, y)
    np.testing.assert_allclose(total, score, atol=1e-9)
    return total


def finish(ax, title, total):
    ax.set_title(title, fontsize="medium")
    ax.text(
        0.5, -0.02, f"score {total:.2f}", transform=ax.transAxes, ha="center", va="top"
    )
    ax.set_axis_off()


def draw_edge(ax, start, end, score, at=0.5, **style):
    ax.plot(*zip(start, end, strict=True), zorder=1, **{"color": "0.5"} | style)
    place = (1 - at) * np.asarray(start) + at * np.asarray(end)
    ax.text(
        *place,
        f"{score:.2f}",
        ha="center",
        va="center",
        fontsize="small",
        bbox={"facecolor": "w", "edgecolor": "none", "pad": 1},
    )


def draw_chain(ax):
    words, letters = load_ocr_letters(return_X_y=True)
    model = fit("chain", words[::2], letters[::2], C=0.02)
    i = next(
        i
        for i, y in enumerate(letters)
        if len(y) == 5 and np.array_equal(model.predict(words[i : i + 1])[0], y)
    )
    x = words[i]
    y, parts = predict(model, x)
    k = np.searchsorted(model.classes_, y)
    nodes = (x @ parts["emission"] + parts["bias"])[np.arange(len(k)), k]
    nodes[0] += parts["first_bias"][k[0]]
    nodes[-1] += parts["last_bias"][k[-1]]
    edges = parts["transition"][k[:-1], k[1:]]
    for t, (label, score) in enumerate(zip(y, nodes, strict=True)):
        ax.plot([t, t], [-1.3, 0], color="0.5", zorder=1)
        ax.text(
            t, 0, label, ha="center", va="center", bbox=NODE | {"facecolor": COLORS[0]}
        )
        ax.text(t + 0.06, -0.62, f"{score:.2f}", fontsize="small", ha="left", va="center")
        image = x[t].reshape(16, 8)
        ax.imshow(image, cmap="gray_r", extent=(t - 0.3, t + 0.3, -2.4, -1.2))
    for t, score in enumerate(edges):
        draw_edge(ax, (t, 0), (t + 1, 0), score)
    ax.set(xlim=(-0.5, len(k) - 0.4), ylim=(-2.5, 0.6), aspect="auto")
    finish(ax, "chain: a letter for each image", check(model, x, y, nodes, edges))


def draw_tree(ax):
    parents = np.array([-1, 0, 0, 1, 1, 2])
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(6, 3)), parents) for _ in range(60)]
    y = [(rows[:, 0] + 0.8 * rows[0, 0] > 0).astype(int) for rows, _ in X]
    model = fit(TreeStructure(), X, y, C=1.0)
    x = X[next(i for i, labels in enumerate(y) if 2 <= labels.sum() <= 4)]
    y, parts = predict(model, x)
    nodes = (x[0] @ parts["emission"] + parts["bias"])[np.arange(6), y]
    nodes[0] += parts["root_bias"][y[0]]
    edges = parts["transition"][y[parents[1:]], y[1:]]
    places = [(2.5, 2), (1.2, 1), (3.8, 1), (0.4, 0), (2, 0), (3.8, 0)]
    for child, score in enumerate(edges, start=1):
        draw_edge(ax, places[parents[child]], places[child], score)
    for place, label, score in zip(places, y, nodes, strict=True):
        ax.text(
            *place,
            label,
            ha="center",
            va="center",
            bbox=NODE | {"facecolor": COLORS[label]},
        )
        ax.text(
            place[0] + 0.32,
            place[1] + 0.02,
            f"{score:.2f}",
            fontsize="small",
            va="center",
        )
    ax.set(xlim=(-0.1, 4.9), ylim=(-0.4, 2.4))
    finish(ax, "tree: each node with its parent", check(model, x, y, nodes, edges))


def draw_grid(ax):
    shape = (4, 6)
    data = make_segmentation(40, kind="shapes", size=2, shape=shape, random_state=1)
    model = fit(GraphStructure(attractive=True), data.X, data.y, C=0.1)
    i = next(i for i, y in enumerate(data.y) if 0.3 < np.mean(y) < 0.6)
    x = features, pairs, edge_features = data.X[i]
    y, parts = predict(model, x)
    nodes = (features @ parts["emission"] + parts["bias"])[np.arange(len(y)), y]
    of_pairs = parts["transition"][:, y[pairs[:, 0]], y[pairs[:, 1]]]
    edges = (edge_features * of_pairs.T).sum(axis=1)
    image = data.images[i]
    ax.imshow((image - image.min()) / np.ptp(image), alpha=0.45)
    rows, columns = np.divmod(np.arange(len(y)), shape[1])
    for (a, b), score in zip(pairs, edges, strict=True):
        width = 0.5 + 4 * score / max(edges.max(), 1e-12)
        ax.plot(columns[[a, b]], rows[[a, b]], color="0.3", linewidth=width, zorder=1)
    for row, column, label in zip(rows, columns, y, strict=True):
        ax.text(
            column,
            row,
            label,
            ha="center",
            va="center",
            fontsize="small",
            bbox=NODE | {"facecolor": COLORS[label]},
        )
    finish(ax, "grid: neighboring pixels", check(model, x, y, nodes, edges))


def draw_set(ax):
    X, Y = make_multilabel(n_samples=200, n_classes=4, random_state=0)
    model = fit(PairwiseMultilabelStructure(), X, Y, C=0.05)
    x = X[next(i for i, labels in enumerate(Y) if labels.sum() == 3)]
    y, parts = predict(model, x)
    chosen = y.astype(int)
    nodes = (parts["node"] @ x + parts["intercept"]) * chosen
    first, second = model.structure_.pairs_.T
    edges = parts["pair"][np.arange(len(first)), chosen[first], chosen[second]]
    places = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)])
    for a, b, score in zip(first, second, edges, strict=True):
        both = chosen[a] and chosen[b]
        style = {} if both else {"linestyle": ":", "color": "0.7"}
        draw_edge(ax, places[a], places[b], score, 0.5 if (b - a) % 2 else 0.3, **style)
    for label, (place, score) in enumerate(zip(places, nodes, strict=True)):
        color = COLORS[1] if chosen[label] else "w"
        ax.text(
            *place,
            "ABCD"[label],
            ha="center",
            va="center",
            bbox=NODE | {"facecolor": color},
        )
        ax.text(
            1.4 * place[0],
            place[1],
            f"{score:.2f}",
            fontsize="small",
            ha="center",
            va="center",
        )
    ax.set(xlim=(-2, 2), ylim=(-1.3, 1.3))
    finish(ax, "set: labels, and pairs of them", check(model, x, y, nodes, edges))


fig, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
for ax, draw in zip(axes.flat, (draw_chain, draw_tree, draw_grid, draw_set), strict=True):
    draw(ax)
