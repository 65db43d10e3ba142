"""Positions of parts on a grid, such as joints in an image."""

from collections.abc import Iterable, Sequence
from itertools import product
from numbers import Real
from sys import float_info
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import (
    as_array,
    as_dense,
    as_floats,
    check_choice,
    check_integer,
    check_shape,
)
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm.structures._pictorial import COSTS, PictorialOracle
from sklearn_structsvm.structures.base import Structure, as_list, as_object_array
from sklearn_structsvm.structures.nodes import depths_of
from sklearn_structsvm.structures.tree import check_forest


class PictorialStructure(Structure):
    r"""Pictorial structures: positions of parts on a grid, such as joints in an image.

    An example x is an array of shape (n_parts, n_rows, n_columns, n_features). It holds
    the features of each position for each part, such as the response of a part detector.
    If all parts share the features, the shape is (1, n_rows, n_columns, n_features).
    Images may differ in size. A labeling y has one row per part: (row, column) or, if
    `n_types` > 1, (row, column, type), where the type is for example a raised or a
    hanging arm.

    Each part is connected to its parent by a spring. Let :math:`p_v` be the position and
    :math:`\tau_v` the type of part v, and u its parent. The displacement of v from where
    u expects it is

    .. math:: \delta_v = (p_v - p_u - \mathrm{anchor}) / \mathrm{unit}

    with components :math:`\delta_v = (r, c)` for rows and columns. The score of a
    labeling is the sum, over all parts v, of

    .. math:: \langle \mathrm{unary}_v[\tau_v], x_v(p_v) \rangle + \mathrm{bias}_v[\tau_v]

    plus the sum, over all parts with a parent, of

    .. math:: \mathrm{compatibility}[\tau_v, \tau_u]
        - \langle \mathrm{deformation}[\tau_v, \tau_u], (r, r^2, c, c^2) \rangle.

    The weight vector concatenates "unary", "bias", "compatibility" and "deformation".
    These are the pictorial structures of [1]_; with several types, the pose model of
    [2]_.

    Decoding is exact for any weights, by max-sum with distance transforms [3]_ in time
    proportional to n_parts · n_positions · n_types². `convex` prevents parts from being
    rewarded for being far from their expected position.

    Read more in the :ref:`User Guide <guide-parts>`.

    Parameters
    ----------
    parents : array-like of shape (n_parts,)
        Parent of each part, or -1 for a root. There may be several roots.
    n_types : int, default=1
        Number of types of a part. Types are given in y, and do not enter the loss. With a
        single type, biases and compatibilities have no effect.
    anchors : array-like of shape (n_edges, n_types, n_types, 2) or None, default=None
        Expected displacement, in rows and columns, from parent to child, for each part
        with a parent in order, each type of the child, and each type of the parent. None
        uses the means of the data; pairs of types that do not occur use the mean of the
        edge.
    convex : bool, default=True
        Whether to constrain the weights of squared displacements to be nonnegative, as in
        Algorithms 8 and 9 of [2]_. Supported by estimators that take `coef_bounds` and by
        regularization paths.
    cost : {"squared", "linear", "missed"}, default="squared"
        Loss of a part at distance d from its true position: min(1, d² / radius²) as in
        [2]_, min(1, d / radius), or 1 if d > radius and 0 otherwise.
    radius : float, default=3.0
        Distance beyond which a part is wrong, in grid positions or, with `reference`, as
        a fraction of the reference length.
    reference : pair of ints or None, default=None
        Two parts whose distance in the true labeling is the unit of `radius`, such as a
        shoulder and the opposite hip. None measures in grid positions.
    normalize_loss : bool, default=True
        Whether to divide the loss of an image by the number of parts.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_edges, n_types, n_types, 2)
        Anchors in use, given or learned.
    unit_ : float
        Unit of displacements: the root mean square of the displacement, along one axis,
        of two random positions in a grid of the data, and at least 1. With it,
        displacements in competing labelings are of order 1.
    n_features_in_ : int
        Number of features of a position.
    n_weights_ : int
        Dimension of the joint feature map.

    See Also
    --------
    TreeStructure : Trees whose nodes have labels rather than positions.
    sklearn_structsvm.datasets.make_poses : Synthetic stick figures.

    Notes
    -----
    The `score` of an estimator is the fraction of parts within the radius, known as the
    percentage of correct keypoints (PCK).

    For slack rescaling use a search of `SlackRescaledSSVM` that needs only the
    max-oracle: ``search="binary"`` or ``"bisecting"``.

    On Dask collections the anchors and the unit are learned from the first part of the
    data. If the parts differ, pass `anchors`.

    References
    ----------
    .. [1] Felzenszwalb, P. and Huttenlocher, D. (2005). Pictorial structures for object
       recognition. Int. J. of Computer Vision 61.
    .. [2] Osokin, A. et al. (2016). Minding the gaps for block Frank-Wolfe optimization
       of structured SVMs. ICML 2016, appendices H and I.4. (The maximum in its loss is
       read as a minimum: the true labeling costs nothing.)
    .. [3] Felzenszwalb, P. and Huttenlocher, D. (2012). Distance transforms of sampled
       functions. Theory of Computing 8.

    Examples
    --------
    A head above a body. The detector of each is misled by something brighter:

    >>> import numpy as np
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import PictorialStructure
    >>> X, y = np.zeros((2, 2, 6, 8, 1)), np.array([[[1, 2], [3, 2]], [[2, 5], [4, 5]]])
    >>> for x, (head, body) in zip(X, y):
    ...     x[0, *head] = x[1, *body] = 1.0
    ...     x[0, 5, 0] = 1.2
    >>> structure = PictorialStructure(parents=[1, -1])
    >>> model = BCFWClassifier(structure, C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    [[1, 2], [3, 2]]
    """

    _parameter_constraints: dict[str, Any] = dict.fromkeys(
        ("convex", "normalize_loss"), ["boolean"]
    )

    def __init__(
        self,
        parents: Sequence[int] | np.ndarray,
        n_types: int = 1,
        anchors: ArrayLike | None = None,
        convex: bool = True,
        cost: Literal["squared", "linear", "missed"] = "squared",
        radius: float = 3.0,
        reference: tuple[int, int] | None = None,
        normalize_loss: bool = True,
    ) -> None:
        self.parents = parents
        self.n_types = n_types
        self.anchors = anchors
        self.convex = convex
        self.cost = cost
        self.radius = radius
        self.reference = reference
        self.normalize_loss = normalize_loss

    def _matrices(self, X):
        return (x.reshape(-1, x.shape[-1]) for x in X)

    def _n_entries(self, x):
        return x.size

    def check_data(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        parents = self._check_parents()
        X = as_list(X, "X")
        if y is not None:
            X, y = super().check_data(X, y)
        n_features = getattr(self, "n_features_in_", None)
        result, origin = [], "in X[0]" if n_features is None else "in fit"
        for i, x in enumerate(X):
            result.append(_check_maps(x, i, len(parents)))
            n_features = result[0].shape[3] if n_features is None else n_features
            if result[i].shape[3] != n_features:
                raise ValueError(
                    f"X[{i}] has {result[i].shape[3]} features, but there were "
                    f"{n_features} {origin}."
                )
        if y is None:
            return result, None
        return result, [
            self._check_labeling(f"y[{i}]", labeling, x)
            for i, (labeling, x) in enumerate(zip(y, result, strict=True))
        ]

    def _check_parents(self):
        """Check all parameters, and return the parents as an array."""
        parents = self._forest()
        check_integer("n_types", self.n_types, 1)
        check_choice("cost", self.cost, COSTS)
        check_scalar(self.radius, "radius", Real, min_val=0.0)
        if not self.radius <= float_info.max:
            raise ValueError(f"radius must be finite; got {self.radius!r}.")
        if self.reference is not None:
            check_shape("reference", self.reference, 2)
            for part in self.reference:
                check_integer("Each part of reference", part, 0, len(parents) - 1)
        return parents

    def _forest(self):
        """The parents as a checked array."""
        parents = as_array("parents", self.parents)
        check_shape("parents", parents, "n_parts")
        if len(parents) == 0:
            raise ValueError("parents is empty: at least one part is needed.")
        return check_forest("parents", parents)

    def _check_labeling(self, name, labeling, x):
        """Rows, columns and types as intp, within the grid of x."""
        refuse_missing(
            labeling, name, place="part", remedy="Leave out examples with hidden parts."
        )
        labeling = as_array(name, labeling)
        n_parts, limits = len(self.parents), [*x.shape[1:3], self.n_types]
        words = ("row", "column", "type")[: 2 + (self.n_types > 1)]
        check_shape(name, labeling, n_parts, len(words))
        if labeling.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must hold integers, ({', '.join(words)}) of each part; got "
                f"dtype {labeling.dtype}."
            )
        for word, column, limit in zip(words, labeling.T, limits, strict=False):
            bad = np.flatnonzero((column < 0) | (column >= limit))
            if len(bad):
                raise ValueError(
                    f"{name} has the {word} {column[bad[0]]} for part {bad[0]}; there "
                    f"are 0 to {limit - 1}."
                )
        return labeling.astype(np.intp)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the anchors, the unit and the number of features.

        Parameters
        ----------
        X : list of n arrays of shape (n_parts or 1, n_rows, n_columns, n_features)
            Features of the positions.
        y : list of n arrays of shape (n_parts, 2), or (n_parts, 3) with several types
            Positions, and types, of the parts.

        Returns
        -------
        self : object
            The fitted structure.
        """
        self._learn_checked(*self._check_anew(X, y))
        return self

    def _learn_checked(self, X, y):
        """`fit` to data as checked."""
        self._check_parameters()
        shape = len(self._edges[0]), self.n_types, self.n_types, 2
        if self.anchors is None:
            self.anchors_ = self._mean_displacements(np.stack(y), shape)
        else:
            self.anchors_ = np.array(as_floats("anchors", self.anchors, *shape))
        sides = np.array([x.shape[1:3] for x in X])
        self.unit_ = max(1.0, float(np.sqrt(np.mean((sides**2 - 1) / 6.0))))
        self.n_features_in_ = X[0].shape[3]
        self.n_weights_ = self._count_weights()

    def _mean_displacements(self, labelings, shape):
        children, above = self._edges
        displaced = (labelings[:, children] - labelings[:, above])[:, :, :2]
        types = self._types(labelings)
        result = np.empty(shape)
        for e, (child, parent) in enumerate(zip(children, above, strict=True)):
            own = displaced[:, e]
            result[e] = own.mean(axis=0)
            for t, s in product(range(self.n_types), repeat=2):
                both = (types[:, child] == t) & (types[:, parent] == s)
                if both.any():
                    result[e, t, s] = own[both].mean(axis=0)
        return result

    @property
    def _edges(self):
        """Children and parents of all edges."""
        parents = self._forest()
        children = np.flatnonzero(parents >= 0)
        return children, parents[children]

    def _types(self, labelings):
        """The types of parts, in the last axis of checked labelings."""
        if self.n_types == 1:
            return np.zeros(labelings.shape[:-1], dtype=np.intp)
        return labelings[..., 2]

    def _parts(self):
        """Names and shapes of the parts of the weights, in their order."""
        n_parts, n_edges, T = len(self.parents), len(self._edges[0]), self.n_types
        return [
            ("unary", (n_parts, T, self.n_features_in_)),
            ("bias", (n_parts, T)),
            ("compatibility", (n_edges, T, T)),
            ("deformation", (n_edges, T, T, 4)),
        ]

    def _count_weights(self):
        return sum(int(np.prod(shape)) for _, shape in self._parts())

    def _fitted_shapes(self):
        n_edges, T = len(self._edges[0]), self.n_types
        return {"n_features_in_": (), "anchors_": (n_edges, T, T, 2), "unit_": ()}

    def weight_parts(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Split the weight vector into its named parts.

        Parameters
        ----------
        w : ndarray or sparse array of shape (`n_weights_`,)
            Weight vector, such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            "unary" of shape (n_parts, n_types, n_features), "bias" of shape (n_parts,
            n_types), "compatibility" of shape (n_edges, n_types, n_types), and
            "deformation" of shape (n_edges, n_types, n_types, 4): the costs of
            displacements in rows, squared rows, columns and squared columns. There is one
            edge per part with a parent, and the child's type comes first. The arrays are
            views of w if it is a contiguous float64 array.
        """
        w = as_floats("w", as_dense(w, self.n_weights_), self.n_weights_)
        names, shapes = zip(*self._parts(), strict=True)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        pieces = np.split(w, ends[:-1])
        return {
            name: piece.reshape(shape)
            for name, piece, shape in zip(names, pieces, shapes, strict=True)
        }

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Bounds of the weights if `convex`, otherwise None.

        Returns
        -------
        tuple of two ndarrays of shape (`n_weights_`,), or None
            Lower and upper bounds.
        """
        if not self.convex:
            return None
        is_square = np.zeros(self.n_weights_)
        self.weight_parts(is_square)["deformation"][..., [1, 3]] = 1.0
        return np.where(is_square, 0.0, -np.inf), np.full(self.n_weights_, np.inf)

    def make_oracle(self, X: Any, y: Any) -> BlockOracle:
        shapes = np.array([x.shape[:3] for x in X], dtype=np.intp)
        starts = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))])
        parents = np.asarray(self.parents, dtype=np.intp)
        return PictorialOracle(
            as_features([x.reshape(-1, x.shape[3]) for x in X]),
            shapes,
            starts.astype(np.intp),
            parents,
            np.argsort(-depths_of(parents), kind="stable"),
            self.anchors_,
            self.unit_,
            self._encode(y),
            np.array([self._radius(labeling) for labeling in y]),
            cost=self.cost,
            normalize=self.normalize_loss,
        )

    def _encode(self, y):
        """Types, rows and columns, as the oracle takes them."""
        y = np.stack(y)
        return np.dstack([self._types(y), y[..., 0], y[..., 1]]).astype(np.intc)

    def _radius(self, y_true):
        if self.reference is None:
            return float(self.radius)
        a, b = self.reference
        return float(self.radius * np.linalg.norm(y_true[a, :2] - y_true[b, :2]))

    def decode_batch(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        oracle = self._compiled_oracle(X, self._any_labelings(X))
        return self._decoded(oracle.decode(w, 0.0, n_threads))

    def _any_labelings(self, X):
        """Labelings for an oracle that is only asked to decode."""
        return [np.zeros((len(self.parents), 3), dtype=np.intp)] * len(X)

    def _decoded(self, labels):
        """Labelings, from the integers of the oracle."""
        labels = labels.reshape(-1, len(self.parents), 3).astype(np.intp)
        return as_object_array(list(labels[..., [1, 2, 0][: 2 + (self.n_types > 1)]]))

    def decode(self, x: Any, w: np.ndarray) -> Any:
        (x,), _ = self.check_data([x])
        return self._compiled_decode([x], w)[0]

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        X, y = self.check_data([x], [y_true])
        return self._decoded(self._compiled_oracle(X, y).decode(w, lam))[0]

    def joint_feature(self, x: Any, y: Any) -> Any:
        (x,), (y,) = self.check_data([x], [y])
        phi = np.zeros(self.n_weights_)
        parts = self.weight_parts(phi)
        types, at = self._types(y), np.arange(len(y))
        parts["unary"][at, types] = x[at if len(x) > 1 else 0, y[:, 0], y[:, 1]]
        parts["bias"][at, types] = 1.0
        children, above = self._edges
        pairs = np.arange(len(children)), types[children], types[above]
        length = (y[children] - y[above])[:, :2]
        displaced = (length - self.anchors_[pairs]) / self.unit_
        parts["compatibility"][pairs] = 1.0
        parts["deformation"][pairs] = -np.stack([displaced, displaced**2], 2).reshape(
            -1, 4
        )
        return phi

    def loss(self, y_true: Any, y: Any) -> float:
        given, size = {"y_true": y_true, "y": y}, 2 + (self.n_types > 1)
        places = [as_floats(k, v, len(self.parents), size) for k, v in given.items()]
        costs = self._costs(self.cost, *places)
        return float(costs.mean() if self.normalize_loss else costs.sum())

    def _costs(self, kind, y_true, y):
        """The cost of each part, bit for bit as in the oracle."""
        squares = ((y - y_true)[:, :2] ** 2).sum(axis=1)
        radius = self._radius(y_true)
        if kind == "missed":
            return (squares > radius * radius).astype(np.float64)
        if radius == 0.0:
            return (squares > 0).astype(np.float64)
        costs = np.minimum(squares / (radius * radius), 1.0)
        return np.sqrt(costs) if kind == "linear" else costs

    def score(self, y: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Fraction of parts within the radius, weighted by sample weights."""
        pairs = zip(y, y_pred, strict=True)
        missed = [self._costs("missed", *map(np.asarray, pair)) for pair in pairs]
        found = 1.0 - np.mean(missed, axis=1)
        return float(np.average(found, weights=sample_weight))

    def labelings(self, x: Any) -> Iterable[Any] | None:
        (x,), _ = self.check_data([x])
        places = [range(n) for n in x.shape[1:3]]
        if self.n_types > 1:
            places.append(range(self.n_types))
        own = list(product(*places))
        return map(np.array, product(own, repeat=len(self.parents)))


def _check_maps(x, i, n_parts):
    """Maps of features of an image, C-contiguous float32 or float64."""
    name = f"X[{i}]"
    x = as_array(name, x)
    if x.ndim != 4:
        raise ValueError(
            f"{name} must have shape (n_parts, n_rows, n_columns, n_features), or 1 in "
            f"place of n_parts; got shape {x.shape}."
        )
    if x.shape[0] not in (1, n_parts):
        raise ValueError(
            f"{name} has maps of {x.shape[0]} parts, but parents has {n_parts}. Pass one "
            "map per part, or a single map for all parts."
        )
    if 0 in x.shape:
        raise ValueError(
            f"{name} is empty, of shape {x.shape}: at least one position and one feature "
            "are needed."
        )
    checked = as_floats(name, x, *x.shape)
    return np.ascontiguousarray(x) if x.dtype == np.float32 else checked
