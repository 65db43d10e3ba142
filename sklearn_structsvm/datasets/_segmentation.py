"""Synthetic images whose pixels or superpixels are to be labeled."""

from numbers import Real
from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree
from sklearn.utils import Bunch, check_random_state, check_scalar

from sklearn_structsvm._utils.borders import check_choice, check_integer
from sklearn_structsvm._utils.grids import check_grid, grid_edges
from sklearn_structsvm._utils.mistakes import with_plain_calls


@with_plain_calls
def make_segmentation(
    n_samples: int = 20,
    *,
    shape: tuple[int, int] = (24, 32),
    n_classes: int = 2,
    kind: Literal["blobs", "shapes"] = "blobs",
    size: float = 4.0,
    n_channels: int = 3,
    noise: float = 1.0,
    n_superpixels: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Generate noisy images in which neighboring pixels tend to have the same label.

    The color of a pixel is the color of its label plus noise,

    .. math:: x_v \sim N(m_{y_v}, \text{noise}^2 I), \qquad m_k \sim N(0, I),

    with the same :math:`m_k` in all images. Labels are "blobs", where each pixel has the
    label of the largest of several smooth random fields, or "shapes", which are
    overlapping discs and rectangles on a background of label 0. A model of the neighbors
    therefore beats one that labels each pixel separately, especially for large `noise`
    and `size`.

    Read more in the :ref:`User Guide <guide-graphs>`.

    Parameters
    ----------
    n_samples : int, default=20
        Number of images.
    shape : tuple of two ints, default=(24, 32)
        Number of rows and columns of pixels.
    n_classes : int, default=2
        Number of labels.
    kind : {"blobs", "shapes"}, default="blobs"
        Kind of label regions.
    size : float, default=4.0
        For "blobs", the standard deviation of the Gaussian filter that smooths the
        fields. For "shapes", their mean radius. In pixels.
    n_channels : int, default=3
        Number of color channels of a pixel.
    noise : float, default=1.0
        Standard deviation of the noise of each channel.
    n_superpixels : int or None, default=None
        None makes each pixel a node, with edges to its 4 neighbors. An int groups the
        pixels into at most this many superpixels, by the nearest of as many random
        points. A superpixel has the mean color and the most frequent label of its pixels.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, a list of n_samples tuples in the format of `GraphStructure`: node
          features of shape (n_nodes, n_channels), edges of shape (n_edges, 2), and edge
          features of shape (n_edges, 2). The edge features are 1 and the similarity
          exp(-d² / D), where d is the color difference and D the mean of d² over the
          image.
        - ``y``, a list of n_samples ndarrays of shape (n_nodes,), int64. With
          superpixels, a list of pairs of such an array and the number of pixels of each
          node.
        - ``images``, an ndarray of shape (n_samples, n_rows, n_columns, n_channels).
        - ``labels``, an ndarray of shape (n_samples, n_rows, n_columns), int64: the
          labels of the pixels.
        - ``nodes``, an ndarray of the same shape: the node of each pixel.
          ``y_pred[nodes[i]]`` is an image of labels.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    sklearn_structsvm.structures.GraphStructure : The structure for these data.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_segmentation
    >>> data = make_segmentation(n_samples=5, n_superpixels=40, random_state=0)
    >>> features, edges, edge_features = data.X[0]
    >>> features.shape, edges.shape == edge_features.shape
    ((40, 3), True)
    >>> labels, sizes = data.y[0]
    >>> labels[data.nodes[0]].shape, int(sizes.sum())
    ((24, 32), 768)
    """
    check_integer("n_samples", n_samples, 1)
    n_rows, n_columns = check_grid(shape)
    check_integer("n_classes", n_classes, 2)
    check_choice("kind", kind, ("blobs", "shapes"))
    check_scalar(size, "size", Real, min_val=0, include_boundaries="neither")
    check_integer("n_channels", n_channels, 1)
    check_scalar(noise, "noise", Real, min_val=0)
    if n_superpixels is not None:
        check_integer("n_superpixels", n_superpixels, 1, n_rows * n_columns)
    rng = check_random_state(random_state)
    colors = rng.normal(size=(n_classes, n_channels))
    draw = _blobs if kind == "blobs" else _shapes
    labels = np.array([draw(shape, n_classes, size, rng) for _ in range(n_samples)])
    images = colors[labels] + noise * rng.normal(size=(*labels.shape, n_channels))
    nodes = np.broadcast_to(np.arange(n_rows * n_columns).reshape(shape), labels.shape)
    if n_superpixels is not None:
        nodes = np.array([_patches(shape, n_superpixels, rng) for _ in labels])
    X, y = [], []
    for image, own, node in zip(images, labels, nodes, strict=True):
        sizes = np.bincount(node.ravel())
        features: np.ndarray = np.column_stack(
            [np.bincount(node.ravel(), image[..., c].ravel()) for c in range(n_channels)]
        )
        features /= sizes[:, np.newaxis]
        edges = _edges_of(node)
        X.append((features, edges, _contrasts(features, edges)))
        counts = np.zeros((len(sizes), n_classes))
        np.add.at(counts, (node.ravel(), own.ravel()), 1)
        label = counts.argmax(axis=1)
        y.append(label if n_superpixels is None else (label, sizes.astype(np.float64)))
    return Bunch(X=X, y=y, images=images, labels=labels, nodes=np.array(nodes))


def _blobs(shape, n_classes, size, rng):
    fields = [gaussian_filter(rng.normal(size=shape), size) for _ in range(n_classes)]
    return np.argmax(fields, axis=0)


def _shapes(shape, n_classes, size, rng):
    labels = np.zeros(shape, dtype=np.int64)
    places = np.indices(shape)
    # Two shapes for each class except the first; later ones cover earlier ones.
    for label in np.repeat(np.arange(1, n_classes), 2):
        center = rng.uniform(0, shape)
        radii = size * rng.uniform(0.5, 1.5, size=2)
        away = abs(places - center[:, np.newaxis, np.newaxis])
        away /= radii[:, np.newaxis, np.newaxis]
        is_disc = rng.uniform() < 0.5
        reach = (away**2).sum(axis=0) if is_disc else away.max(axis=0)
        labels[reach <= 1] = label
    return labels


def _patches(shape, n_patches, rng):
    """For each pixel the nearest of this many random points, numbered without gaps."""
    points = rng.uniform(0, shape, size=(n_patches, 2))
    pixels = np.indices(shape).reshape(2, -1).T + 0.5
    _, nearest = cKDTree(points).query(pixels)
    return np.unique(nearest, return_inverse=True)[1].reshape(shape)


def _edges_of(node):
    """Pairs of nodes with adjacent pixels, each pair once."""
    pairs = node.ravel()[grid_edges(node.shape)]
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0)


def _contrasts(features, edges):
    """Features of edges: 1, and the similarity of the colors of both ends."""
    squares = ((features[edges[:, 0]] - features[edges[:, 1]]) ** 2).sum(axis=1)
    mean = squares.mean() if squares.any() else 1.0
    return np.column_stack([np.ones(len(edges)), np.exp(-squares / mean)])
