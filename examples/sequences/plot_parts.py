"""
Pose estimation with a pictorial structure
==========================================

On their own, detectors find 39% of a figure's joints. Tied together by springs, because
a hand is at the end of an arm, they find 92%. You will train such a pictorial
structure, parts with scores at every position of an image and springs between them, and
draw the figure that it has learned to expect.
"""

# %%
# The data
# --------
# An example has a map for each of 11 joints, which says how much each position looks
# like this joint. Each map has a blob at the joint, two false ones elsewhere, and
# noise.

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_poses
from sklearn_structsvm.structures import PictorialStructure

data = make_poses(80, shape=(32, 24), random_state=0)
train, test = slice(0, 40), slice(40, None)
print(f"maps of shape {data.X[0].shape}, and {len(data.names)} joints:")
print(textwrap.fill(", ".join(data.names), 70))

# %%
# One detector at a time
# ----------------------
# This baseline takes the brightest position of each map. A joint counts as found within
# two positions.

structure = PictorialStructure(data.parents, radius=2.0)


def brightest(x):
    at = x.reshape(len(x), -1).argmax(axis=1)
    return np.column_stack(np.unravel_index(at, x.shape[1:3]))


alone = [brightest(x) for x in data.X[test]]
print(f"found, one at a time: {structure.score(data.y[test], alone):.3f}")

# %%
# Springs between the joints
# --------------------------
# The best positions of all joints are found jointly and exactly. ``dual_gap_`` is a
# certificate: no weight vector improves the objective by more than that.

model = BCFWClassifier(structure, C=1.0, tol=0.02, random_state=0)
model.fit(data.X[train], data.y[train])
together = model.predict(data.X[test])
print(f"found, all together: {model.score(data.X[test], data.y[test]):.3f}")
print(f"objective {model.objective_:.3f}, at most {model.dual_gap_:.3f} above optimal")

# %%
# The plot shows four figures that were not seen in training. The background is the
# maximum of all maps at each position, so it shows all the blobs that can cause
# confusion.


def draw(ax, joints, color):
    for (row, column), parent in zip(joints, data.parents, strict=True):
        if parent >= 0:
            above = joints[parent]
            ax.plot([above[1], column], [above[0], row], color=color, linewidth=2)
    ax.plot(joints[:, 1], joints[:, 0], "o", color=color, markersize=3)


columns = zip(data.X[test], alone, together, data.y[test], strict=True)
fig, axes = plt.subplots(3, 4, figsize=(7.5, 7.5), layout="constrained")
for column, (x, *poses) in zip(axes.T, columns, strict=False):
    for ax, joints, color in zip(
        column, poses, ("tab:red", "tab:orange", "tab:green"), strict=True
    ):
        ax.imshow(x[..., 0].max(axis=0), cmap="gray")
        draw(ax, joints, color)
        ax.set_xticks([])
        ax.set_yticks([])
for ax, title in zip(axes[:, 0], ("detectors", "springs", "truth"), strict=True):
    ax.set_ylabel(title)
plt.show()

# %%
# What was learned
# ----------------
# Each edge has an expected position of the child, and costs for deviating from it, by
# row and by column. The ellipses, drawn for the mean figure, contain the positions that
# cost less than half as much as a joint that is completely wrong. ``convex=True``, the
# default, keeps the weights of squared deviations from being negative.

parts = model.structure_.weight_parts(model.coef_)
children = [v for v, parent in enumerate(data.parents) if parent >= 0]
places = np.zeros((len(data.names), 2))
fig, ax = plt.subplots(figsize=(3.6, 4.4), layout="constrained")
turn = np.linspace(0, 2 * np.pi, 100)
for edge, child in enumerate(children):
    linear, square = parts["deformation"][edge, 0, 0].reshape(2, 2).T
    square = np.maximum(square, 1e-3)
    offset = -linear / (2 * square)
    unit = model.structure_.unit_
    expected = model.structure_.anchors_[edge, 0, 0] + unit * offset
    places[child] = places[data.parents[child]] + expected
    radii = unit * np.sqrt(0.5 / len(data.names) / square)
    ax.plot(
        places[child, 1] + radii[1] * np.cos(turn),
        places[child, 0] + radii[0] * np.sin(turn),
        color="tab:blue",
        linewidth=0.8,
    )
draw(ax, places, "tab:green")
ax.set(aspect="equal", title="the expected figure", xticks=[], yticks=[])
ax.invert_yaxis()
plt.show()
# sphinx_gallery_thumbnail_number = 2
