"""make_segmentation: shapes, what nodes are made of, repeatability, misuse."""

import numpy as np
import pytest
from _seeds import new_seed

from sklearn_structsvm.datasets import make_segmentation
from sklearn_structsvm.structures import grid_edges

SIZES = {"n_samples": 3, "shape": (7, 9), "n_classes": 3, "n_channels": 2}


@pytest.mark.parametrize("kind", ["blobs", "shapes"])
def test_pixels_are_nodes_of_their_own(kind):
    data = make_segmentation(kind=kind, random_state=new_seed(0), **SIZES)
    assert data.images.shape == (3, 7, 9, 2)
    for x, y, image, labels, nodes in zip(
        data.X, data.y, data.images, data.labels, data.nodes, strict=True
    ):
        np.testing.assert_array_equal(x[0], image.reshape(63, 2))
        np.testing.assert_array_equal(y, labels.ravel())
        np.testing.assert_array_equal(nodes.ravel(), np.arange(63))
        assert {*map(tuple, x[1].tolist())} == {*map(tuple, grid_edges((7, 9)).tolist())}
        assert set(y) <= {0, 1, 2}


@pytest.mark.parametrize("n", [1, 20, 63])
def test_patches_are_means_majorities_and_sizes_of_their_pixels(n):
    data = make_segmentation(n_superpixels=n, random_state=new_seed(0), **SIZES)
    for x, (labels, sizes), image, truth, nodes in zip(
        data.X, data.y, data.images, data.labels, data.nodes, strict=True
    ):
        features, edges, edge_features = x
        assert len(features) == len(labels) == len(sizes) == nodes.max() + 1 <= n
        for node in range(len(features)):
            inside = nodes == node
            np.testing.assert_allclose(features[node], image[inside].mean(axis=0))
            assert sizes[node] == inside.sum() > 0
            counts = np.bincount(truth[inside], minlength=3)
            assert counts[labels[node]] == counts.max()
        touching = {tuple(sorted(nodes.ravel()[[a, b]])) for a, b in grid_edges((7, 9))}
        expected = sorted((int(a), int(b)) for a, b in touching if a != b)
        assert sorted(map(tuple, edges.tolist())) == expected
        assert edge_features.shape == (len(edges), 2)
        assert ((edge_features >= 0) & (edge_features <= 1)).all()


def test_less_noise_makes_colors_of_labels():
    data = make_segmentation(noise=0.0, random_state=new_seed(0), **SIZES)
    for image, labels in zip(data.images, data.labels, strict=True):
        for label in np.unique(labels):
            assert len(np.unique(image[labels == label], axis=0)) == 1
