"""
Superpixels: a graph over a forest
==================================

.. index:: ! superpixels

A forest labels superpixels by color and texture, one at a time. Where two materials have
the same color and the light changes, it is often wrong, and its neighbors would have told
it. You will cut drawn pictures into superpixels with scikit-image
(``pip install scikit-image``), tie those that touch, and put a graph over the forest in
one line. The outputs below were recorded; building these pages does not run the script.
"""

# %%
# Pictures
# --------
# Meadow, sand and water in wavy stripes. Each has its color and its grain, and each
# picture its own light.

import matplotlib.pyplot as plt
import numpy as np
from skimage.filters import sobel
from skimage.graph import RAG
from skimage.measure import regionprops_table
from skimage.segmentation import slic
from sklearn.ensemble import RandomForestClassifier

from sklearn_structsvm import StackedStructureClassifier

COLORS = np.array([[0.4, 0.5, 0.35], [0.5, 0.5, 0.4], [0.42, 0.45, 0.5]])
GRAINS = np.array([0.3, 0.2, 0.25])
SIZE = 80
rng = np.random.default_rng(0)


def picture():
    """An image and the material of each pixel."""
    rows, columns = np.mgrid[:SIZE, :SIZE] / SIZE
    waves = rows + 0.1 * np.sin(7.0 * columns + rng.uniform(0.0, 6.0))
    bounds = np.sort(rng.uniform(0.1, 0.9, size=4))
    materials = rng.permutation(np.append(np.arange(3), rng.integers(3, size=2)))
    truth = materials[np.searchsorted(bounds, waves)]
    image = COLORS[truth] + rng.normal(scale=0.08, size=3)
    image += GRAINS[truth][..., np.newaxis] * rng.normal(size=(SIZE, SIZE, 3))
    return image.clip(0.0, 1.0), truth


pictures = [picture() for _ in range(40)]

# %%
# Superpixels as nodes
# --------------------
# A row for each superpixel: the mean and the spread of its colors, and of its edges. The
# true label is that of most of its pixels, and its weight their number.


def spread(region, values):
    return np.std(values[region], axis=0)


def node_data(image, truth):
    """The superpixel of each pixel; features and edges; labels and their weights."""
    parts = slic(image, n_segments=150, compactness=20.0, sigma=1.0, start_label=1)
    layers = np.dstack([image, sobel(image.mean(axis=2))])
    table = regionprops_table(
        parts, layers, ["area", "intensity_mean"], extra_properties=[spread]
    )
    features = np.column_stack([v for name, v in table.items() if name != "area"])
    edges = np.array(RAG(parts).edges) - 1
    counts = np.zeros((len(features), 3))
    np.add.at(counts, (parts - 1, truth), 1)
    return parts - 1, (features, edges), (counts.argmax(axis=1), table["area"])


parts, X, y = zip(*(node_data(*own) for own in pictures), strict=True)
X_train, X_test, y_train = X[:25], X[25:], y[:25]

# %%
# One line more
# -------------
# Items are pairs (features, edges), so the structure is a graph.

forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
model = StackedStructureClassifier(forest).fit(X_train, y_train)

alone = [model.estimator_.predict(features) for features, _ in X_test]
context = model.predict(X_test)

# %%
# Before and after
# ----------------


def painted(labelings):
    """The labels of superpixels as those of pixels."""
    return np.array([own[part] for own, part in zip(labelings, parts[25:], strict=True)])


truth = np.array([own for _, own in pictures[25:]])
images = {"picture": pictures[25][0], "true materials": truth[0]}
for name, labelings in [("forest alone", alone), ("with a graph", context)]:
    images[name] = painted(labelings)[0]
    print(f"{name}: {np.mean(painted(labelings) != truth):.1%} of the pixels wrong")

fig, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
for ax, (name, image) in zip(axes, images.items(), strict=True):
    ax.imshow(image, vmin=0, vmax=2)
    ax.set_title(name)
    ax.set_axis_off()
plt.show()

# %%
# What is certified
# -----------------
# These graphs have cycles. ``inference_`` says so: their labels are found by messages.
# The fit minimizes a tree-reweighted upper bound of the log-loss, and the gap is of that
# bound.

final = model.final_estimator_
print(f"inference_: {final.structure_.inference_}")
print(f"dual_gap_ <= tol: {final.dual_gap_ <= final.tol}")
# sphinx_gallery_thumbnail_path = "recorded/superpixels_3_1.svg"
