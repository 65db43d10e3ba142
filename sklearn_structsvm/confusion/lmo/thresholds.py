"""Exact linear minimization for two classes, over thresholds for each cell."""

import numpy as np

from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo._roc import best_vertices, threshold_hull
from sklearn_structsvm.confusion.lmo.arguments import as_cells, as_losses
from sklearn_structsvm.confusion.lmo.plugin import PluginLMO
from sklearn_structsvm.confusion.smoothing import smoothed_shares


class ThresholdLMO(PluginLMO):
    """The best thresholds for a loss tensor, on the labels of a sample.

    In each cell, some classifiers predict class 1 if η_1 is above a threshold, and others
    if it is below. Their points (FP, TP) have a polygon as convex hull, which a single
    sort computes. One of its vertices is the best of all these classifiers and of their
    mixtures. So bounds are valid for the labels, not only for the model.

    `smooth`: whether to smooth the labels by `smoothed_shares`. The vertices are then
    the best for the smoothed labels, while `confusion` and `mixture_confusion` still
    count the labels.
    """

    exact = True

    def __init__(self, *, smooth=False, n_threads=1):
        super().__init__("labels", n_threads=n_threads)
        self.smooth = smooth

    def fit(self, P, y, sample_weight=None, cells=None, n_cells=None, shares=None):
        """Make the polygons.

        Like `PluginLMO.fit`, for two classes. `shares` (n,) or None: the smoothed
        labels, if they are known.
        """
        if np.ndim(P) != 2 or np.shape(P)[1] != 2:
            raise ValueError(
                f"Thresholds need probabilities of two classes; got shape {np.shape(P)}."
            )
        super().fit(P, y, sample_weight, cells, n_cells)
        P = np.asarray(P)
        scores = np.ascontiguousarray(
            P[:, 1], dtype=np.float32 if P.dtype == np.float32 else np.float64
        )
        n, m = len(scores), self.shape_[0]
        positive = check_codes(y, n, 2).astype(np.uint8)
        cells, _ = as_cells(cells, n, m)
        weights = None if sample_weight is None else check_weights(sample_weight, n)
        if self.smooth:
            # Each example is some of both classes.
            weights = check_weights(sample_weight, n)
            if shares is None:
                shares = smoothed_shares(scores, positive, weights, cells, m)
            positive = np.repeat(np.array([0, 1], dtype=np.uint8), n)
            weights = np.concatenate([weights * (1.0 - shares), weights * shares])
            scores, cells = np.tile(scores, 2), np.tile(cells, 2)
        self._make_hulls(scores, positive, cells, weights)
        # Thresholds are chosen by counts.
        self.unit = float(np.finfo(np.float64).eps) / 2.0
        return self

    def examples(self):
        """None: other classifiers than thresholds do not count."""

    def _make_hulls(self, scores, positive, cells, weights):
        """Confusions and loss tensors of all vertices, above and below thresholds."""
        by_cell = np.argsort(cells, kind="stable")
        if weights is not None:
            by_cell = by_cell[weights[by_cell] > 0.0]
        ends = np.searchsorted(cells[by_cell], np.arange(self.shape_[0]), side="right")
        hulls, confusions, losses = [], [], []
        for rows in np.split(by_cell, ends[:-1]):
            rows = rows[np.argsort(scores[rows])[::-1]]
            of_rows = None if weights is None else weights[rows]
            vertices, thresholds, above = threshold_hull(
                scores[rows], positive[rows], of_rows
            )
            hulls.append(vertices)
            confusions.append(_both_confusions(vertices))
            losses.append(_both_losses(thresholds, above))
        self._vertices = np.concatenate(hulls)
        sizes = [len(hull) for hull in hulls]
        self._starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
        self._confusions = np.concatenate(confusions, axis=1)
        self._losses = np.concatenate(losses, axis=1)
        first = self._confusions[0, self._starts[:-1]]
        total = first.sum()
        self._confusions /= total
        self.priors_ = first.sum(axis=2) / total
        self._empty = first.sum(axis=(1, 2)) == 0.0

    def __call__(self, L):
        """The best thresholds for L.

        `L` (m, 2, 2). Returns `C` (m, 2, 2): their confusion tensor on the labels;
        `handle` (m, 2, 2): a loss tensor whose plug-in classifier has these thresholds.
        They lie midway between two probabilities, so no example is tied. For a cell
        without examples, it is L; `bound`: <L, C>, the minimum over all thresholds.
        """
        L = as_losses(L, self.shape_)
        found = np.empty(len(L), dtype=np.intp)
        turned = np.empty(len(L), dtype=np.uint8)
        costs = np.ascontiguousarray(L[:, :, 1] - L[:, :, 0])
        best_vertices(self._vertices, self._starts, costs, found, turned)
        C, handle = self._confusions[turned, found], self._losses[turned, found]
        handle[self._empty] = L[self._empty]
        return C, handle, float(np.vdot(L, C))


def _both_confusions(vertices):
    """(2, v, 2, 2): weights in the confusion of each vertex, and of it turned round."""
    left = vertices[-1] - vertices
    as_is = np.stack([left, vertices], axis=2)
    return np.stack([as_is, as_is[:, :, ::-1]])


def _both_losses(thresholds, above):
    """(2, v, 2, 2): tensors for each vertex, and for it turned round.

    Predicting 1 costs θ - η_1 for rules above the threshold θ, and η_1 - θ for rules
    below it; predicting 0 costs nothing. The costs are exact: θ - 1 and then (θ - 1) - θ
    = -1 have no rounding error for 0 <= θ <= 2.
    """
    tensors = np.zeros((2, len(above), 2, 2))
    for turned in (0, 1):
        up = above != bool(turned)
        sign = np.where(up, 1.0, -1.0)
        cut = np.where(up, *thresholds.T)
        none_or_all = np.isinf(cut)
        with np.errstate(invalid="ignore"):
            if_label = np.stack([cut, cut - 1.0], axis=1)
        if_label[none_or_all] = np.sign(cut[none_or_all])[:, None]
        tensors[turned, :, :, 1] = sign[:, None] * if_label
    return tensors
