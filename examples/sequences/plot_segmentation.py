"""
Image segmentation with a graph of pixels
=========================================

.. index:: ! segmentation, ! image segmentation

Classifying the pixels of noisy images one at a time gets 12% wrong; taking neighbors
into account cuts this to 1%. You will train a graph that ties each pixel to the four
next to it, and compare it with a classifier of single pixels. Then you will do the same
with superpixels, patches of some five pixels each.
"""

# %%
# The data
# --------
# An example is a tuple of the pixel features, with one row per pixel; the edges, with
# two pixels per row; and the edge features. The first edge feature is always 1. The
# second one says how similar the two colors are.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_segmentation
from sklearn_structsvm.structures import GraphStructure

data = make_segmentation(30, kind="shapes", size=5, noise=1.5, random_state=2)
train, test = slice(0, 20), slice(20, None)
features, edges, edge_features = data.X[0]
print(
    f"{len(features)} pixels, {len(edges)} edges, {edge_features.shape[1]} features each"
)

# %%
# One pixel at a time
# -------------------

pixels = LinearSVC(random_state=0)
pixels.fit(np.concatenate([x[0] for x in data.X[train]]), np.concatenate(data.y[train]))
alone = [pixels.predict(x[0]) for x in data.X[test]]
error = np.mean(np.concatenate(alone) != np.concatenate(data.y[test]))
print(f"pixel error, one at a time: {error:.3f}")

# %%
# A graph of pixels
# -----------------
# With ``attractive=True``, equal labels of neighbors can be rewarded but never
# penalized. The best labeling of a whole image is then a minimum cut of its graph,
# which is found exactly in a millisecond. ``dual_gap_`` is a certificate: no weight
# vector improves the objective by more than that.

structure = GraphStructure(attractive=True)
graph = BCFWClassifier(structure, C=0.1, tol=0.02, random_state=0)
graph.fit(data.X[train], data.y[train])
together = graph.predict(data.X[test])
print(f"pixel error, whole images: {1 - graph.score(data.X[test], data.y[test]):.3f}")
print(f"objective {graph.objective_:.3f}, at most {graph.dual_gap_:.3f} above optimal")

# %%
# The plot shows four test images: the input, the prediction of each model, and the
# truth.

fig, axes = plt.subplots(4, 4, figsize=(8, 6.4), layout="constrained")
for row, image, one, whole, truth in zip(
    axes, data.images[test], alone, together, data.labels[test], strict=False
):
    low, high = image.min(), image.max()
    row[0].imshow((image - low) / (high - low))
    for ax, labels in zip(row[1:], (one, whole, truth), strict=True):
        ax.imshow(labels.reshape(truth.shape), cmap="gray", vmin=0, vmax=1)
for ax, title in zip(axes[0], ("image", "pixels", "graph", "truth"), strict=True):
    ax.set_title(title)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# What was learned
# ----------------
# The weights come in parts. An edge has two: one for two equal labels, and one that is
# multiplied by the likeness of the two colors. The unit below is the evidence in the
# color of a pixel: the standard deviation of the difference of its two scores. The
# second weight is about 0: with so much noise, the likeness of two pixels says hardly
# anything about their labels.

parts = graph.structure_.weight_parts(graph.coef_)
gain, gain_of_likeness = parts["transition"][:, 0, 0]
scores = np.concatenate([x[0] for x in data.X[train]]) @ parts["emission"]
spread = np.std(scores[:, 1] - scores[:, 0])
print(f"equal labels of neighbors: {gain / spread:.2f} standard deviations of a color")
print(f"likeness of their colors:  {gain_of_likeness / spread:.2f} standard deviations")

# %%
# Superpixels
# -----------
# Real images have many more pixels and are usually cut into patches first. A patch is a
# node with the mean color of its pixels. An item of ``y`` is then a pair of the labels
# and the patch sizes, so an error costs as many pixels as the patch has.

patches = make_segmentation(
    30, kind="shapes", size=5, noise=1.5, n_superpixels=150, random_state=2
)
graph.fit(patches.X[train], patches.y[train])
print(f"pixel error: {1 - graph.score(patches.X[test], patches.y[test]):.3f}")

fig, axes = plt.subplots(1, 4, figsize=(8, 1.8), layout="constrained")
nodes, predicted = patches.nodes[20], graph.predict(patches.X[20:21])[0]
image, colors = patches.images[20], patches.X[20][0][nodes]
for ax, picture in zip(axes, (image, colors), strict=False):
    ax.imshow((picture - picture.min()) / (picture.max() - picture.min()))
axes[2].imshow(predicted[nodes], cmap="gray", vmin=0, vmax=1)
axes[3].imshow(patches.labels[20], cmap="gray", vmin=0, vmax=1)
for ax, title in zip(axes, ("image", "patches", "graph", "truth"), strict=True):
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
