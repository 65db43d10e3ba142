"""Labels of the nodes of any graph."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.columns import (
    mean_sizes,
    n_entries,
    sum_of_squares,
    transposed_product,
)
from sklearn_structsvm._utils.compat import Options, StrOptions
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._callback import CallbackOracle
from sklearn_structsvm.structures._graph import GraphOracle
from sklearn_structsvm.structures.allowed_labels import as_allowed_labels, lowered
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.graph_data import (
    check_graphs,
    pair_weights,
    rooted_forest,
)
from sklearn_structsvm.structures.graph_relaxation import (
    best_point,
    half_integral_point,
    is_point,
    rounded_labels,
)
from sklearn_structsvm.structures.nodes import NodeStructure, places_in
from sklearn_structsvm.structures.polytope import load_highs
from sklearn_structsvm.structures.tree_reweighted import SumBounds

TRANSITIONS = ("potts", "symmetric", "directed")
GRAPH_INFERENCES = ("auto", "messages", "expansion", "lp")


class GraphStructure(SumBounds):
    r"""Labels of the nodes of a graph, with dependencies along its edges.

    An example x is a tuple (features, edges) or (features, edges, edge_features): one row
    of features for each of T nodes, one row of two node indices for each of m edges, and
    one row of features for each edge (by default the number 1). A labeling y is an array
    of T labels. In training it may be a pair (labels, weights); the weights multiply the
    loss of each node, for example by the number of pixels of a superpixel. With one-hot
    vectors e, the joint feature map concatenates

    - emissions, :math:`\sum_v x_v \otimes e_{y_v}`;
    - a bias, :math:`\sum_v e_{y_v}`;
    - transitions, :math:`\sum_{(u, v)} z_{uv} \otimes t(y_u, y_v)`, for edge features z.

    Each part can be left out. The encoding t says what an edge sees of the labels:
    whether they are equal ("potts"), which two labels they are ("symmetric"), or which is
    at the first and which at the second end ("directed"). The loss is the weighted
    Hamming loss or the weighted sum of label costs over the nodes.

    The decoder depends on the graph:

    - Forests are decoded exactly, by max-sum in :math:`O(T k^2)` for k classes.
    - Two labels are decoded by maximum flow [1]_. This is exact if neighbors attract:
      t(0, 0) + t(1, 1) scores at least as much as t(0, 1) + t(1, 0) on every edge.
      `attractive` constrains the weights accordingly. Otherwise the relaxation over the
      local polytope is solved, by roof duality.
    - More labels on graphs with cycles are decoded by message passing [3]_, by default,
      or by expansion moves [4]_, both for many thousands of nodes. For a few hundred
      nodes, a linear program over the local polytope is a third choice. See `inference`.

    Training with a relaxation includes its fractional labelings in the maximum [2]_. The
    hinge loss is then at least that of the labelings, and the certificate refers to the
    relaxed problem. Predictions are rounded. With messages and expansion moves, the
    certificate refers to the labelings and is an upper bound.

    Read more in the :ref:`User Guide <guide-graphs>`.

    Parameters
    ----------
    emission : bool, "given" or "both", default=True
        Whether features of nodes have weights; "given" and "both", with (features,
        scores) in the place of the features, as in :class:`ChainStructure`.
    bias : bool, default=True
        Whether the model has a bias.
    transition : {"potts", "symmetric", "directed"} or False, default="potts"
        What an edge sees of the labels at its ends. False means a model without edges.
    attractive : bool, default=False
        Whether to bound the weights so that neighbors attract: the weights of pairs of
        equal labels are at least 0 and, for "symmetric" and "directed", all others are at
        most 0. Edge features must then be nonnegative. Supported by estimators that take
        `coef_bounds` and by regularization paths.
    inference : {"auto", "messages", "expansion", "lp"}, default="auto"
        How to decode graphs with cycles and more than two labels.

        - "messages" finds good and often optimal labelings, and an upper bound on all of
          them, so that `dual_gap_` is valid for the labelings as well. The gap cannot
          become smaller than the remaining difference between bound and labeling.
        - "expansion" is the fastest. It finds labelings that cannot be improved by
          changing any set of nodes to one label (if neighbors attract), and a valid but
          loose upper bound.
        - "lp" solves the relaxation, so training can reach any `tol`. A call takes some
          hundred times as long as one of "messages", and needs HiGHS
          (``pip install highspy``).
        - "auto" is "messages".

        If only the bounds keep the gap open, training ends with a `ConvergenceWarning`
        once no labeling found violates its margin by more than `tol`.
    normalize_loss : bool, default=True
        Whether to divide the loss of an example by the sum of its node weights.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        ``label_costs[truth, label]`` is the cost of one wrong label: nonnegative, zero on
        the diagonal, in the order of `classes_`. None means 1 off the diagonal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    inference_ : {"forest", "flow", "messages", "expansion", "lp"}
        How the graphs seen in `fit` are decoded: "forest" if none has a cycle, "flow" for
        two labels, otherwise `inference` with "auto" resolved. Certificates are of the
        objective itself with "forest", and otherwise of a relaxation or bound.
    n_features_in_ : int
        Number of features of a node.
    n_edge_features_ : int
        Number of features of an edge; 1 if none are given.
    n_weights_ : int
        Dimension of the joint feature map.

    See Also
    --------
    TreeStructure : Rooted trees with edges of one kind.
    ChainStructure : Sequences, where each position depends on the previous one.
    sklearn_structsvm.structures.grid_edges : The edges of a grid of pixels.

    Notes
    -----
    An edge from a node to itself raises an error. An edge given twice counts twice. Nodes
    may be isolated. In training every node needs a label. If the label of a node is
    unknown, leave out the node and its edges, or give it a plausible label with weight 0.

    `CRFClassifier` sums over the labelings exactly if a graph is a forest, and
    otherwise computes a tree-reweighted upper bound [5]_ of the sum. Node weights
    multiply its `label_costs`; without these, they only count in `score`.

    Slack rescaling is exact if all graphs are forests. For other graphs use a search of
    `SlackRescaledSSVM` that needs only the max-oracle: ``search="bisecting"``,
    ``"binary"`` or ``"sarawagi"``. The k best labelings and max-marginals are available
    for forests only.

    References
    ----------
    .. [1] Boros, E. and Hammer, P. (2002). Pseudo-Boolean optimization. Discrete
       Applied Mathematics 123.
    .. [2] Finley, T. and Joachims, T. (2008). Training structural SVMs when exact
       inference is intractable. ICML 2008.
    .. [3] Kolmogorov, V. (2006). Convergent tree-reweighted message passing for energy
       minimization. IEEE Trans. Pattern Analysis and Machine Intelligence 28.
    .. [4] Boykov, Y., Veksler, O. and Zabih, R. (2001). Fast approximate energy
       minimization via graph cuts. The same, 23.
    .. [5] Wainwright, M., Jaakkola, T. and Willsky, A. (2005). A new class of upper
       bounds on the log partition function. IEEE Trans. Information Theory 51.

    Examples
    --------
    In two small images of dark (0) and light (1) pixels, the light pixels form an object,
    except for an isolated one:

    >>> import numpy as np
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import GraphStructure, grid_edges
    >>> images = [
    ...     np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1]]),
    ...     np.array([[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1]]),
    ... ]
    >>> y = [image.ravel() for image in images]
    >>> y[0][-1] = y[1][4] = 0
    >>> X = [(image.reshape(-1, 1) - 0.5, grid_edges((3, 4))) for image in images]
    >>> structure = GraphStructure(attractive=True)
    >>> model = BCFWClassifier(structure, C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)[0].reshape(3, 4)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [1, 1, 0, 0]])
    """

    _parameter_constraints = NodeStructure._parameter_constraints | {
        "transition": [StrOptions(set(TRANSITIONS)), Options(bool, {False})],
        "attractive": ["boolean"],
        "inference": [StrOptions(set(GRAPH_INFERENCES))],
    }
    _item, _place = "graph", "node"
    # A labeling of the relaxation has entries for each label of a node, and for each pair
    # of labels of an edge.
    variable_length = True

    def __init__(
        self,
        emission: bool | Literal["given", "both"] = True,
        transition: Literal["potts", "symmetric", "directed", False] = "potts",
        bias: bool = True,
        attractive: bool = False,
        inference: Literal["auto", "messages", "expansion", "lp"] = "auto",
        normalize_loss: bool = True,
        label_costs: ArrayLike | None = None,
    ) -> None:
        self.emission = emission
        self.transition = transition
        self.bias = bias
        self.attractive = attractive
        self.inference = inference
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs

    def _rows(self, x):
        return x[0]

    def _n_entries(self, x):
        return super()._n_entries(x) + n_entries(x[2])

    @property
    def relaxed(self) -> bool:  # type: ignore[override]
        return self.has_cycles_

    def _edge_matrices(self, X):
        return (x[2] for x in X)

    def check_data(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        X = check_graphs(
            X,
            self._check_rows,
            getattr(self, "n_edge_features_", None),
            attractive=self.attractive,
        )
        if y is not None:
            rows = [x[0] for x in X]
            y = validation.check_labels(y, rows, part="[0]", place="node")
        return X, y

    def _learn(self, X, labels, classes, class_weight):
        self.n_edge_features_ = X[0][2].shape[1]
        super()._learn(X, labels, classes, class_weight)
        self.has_cycles_ = bool(self.transition) and any(
            forest is None for forest in map(rooted_forest, X)
        )
        self.inference_ = self._resolve_inference()
        if self.inference_ == "lp":
            load_highs()
        self._polytopes: dict[Any, Any] = {}

    def _resolve_inference(self):
        """The decoder of the graphs of `fit`."""
        if not self.has_cycles_:
            return "forest"
        if len(self.classes_) == 2:
            return "flow"
        return "messages" if self.inference == "auto" else self.inference

    def _transition_shape(self):
        return self.n_edge_features_, self._pair_of.max() + 1

    def _fitted_shapes(self):
        return super()._fitted_shapes() | {"n_edge_features_": ()}

    _pair_of = property(lambda self: pair_weights(self.transition, len(self.classes_)))

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Bounds of the weights if `attractive`, otherwise None.

        Returns
        -------
        tuple of two ndarrays of shape (`n_weights_`,), or None
            Lower and upper bounds.
        """
        if not (self.attractive and self.transition):
            return None
        lower, upper = np.full((2, self.n_weights_), [[-np.inf], [np.inf]])
        n_pairs = self._pair_of.max() + 1
        equal = np.isin(np.arange(n_pairs), np.diag(self._pair_of))
        start = self.n_weights_ - self.n_edge_features_ * n_pairs
        lower[start:] = np.tile(np.where(equal, 0.0, -np.inf), self.n_edge_features_)
        upper[start:] = np.tile(np.where(equal, np.inf, 0.0), self.n_edge_features_)
        return lower, upper

    def weight_parts(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Split the weight vector into its named parts.

        Parameters
        ----------
        w : ndarray or sparse array of shape (`n_weights_`,)
            Weight vector, such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            As for :class:`ChainStructure`, but "transition" has the shape
            (n_edge_features, n_classes, n_classes): labels of both ends.
        """
        parts = super().weight_parts(w)
        if self.transition:
            places = self._pair_of
            weights = np.where(places < 0, 0.0, parts["transition"][:, places])
            parts["transition"] = weights
        return parts

    def make_oracle(
        self, X: Any, y: Any, allowed: Any = None, known: Any = None
    ) -> BlockOracle:
        if not self._is_compiled(X):
            if known is not None:
                raise ValueError(
                    "Graphs with cycles cannot be learned from hidden labels with "
                    "inference='lp': use inference='auto'."
                )
            load_highs()
            return CallbackOracle(self, self._items(X), list(y), self.n_weights_)
        return self._graph_oracle(X, y, allowed is None, allowed, known)

    def _is_compiled(self, X):
        """Whether no graph needs a linear program."""
        if len(self.classes_) == 2 or not self.transition or self.inference != "lp":
            return True
        return all(rooted_forest(x) is not None for x in X)

    def _graph_oracle(self, X, y, relaxed, allowed=None, known=None):
        if not self.transition:
            X = [(x[0], x[1][:0], x[2][:0]) for x in X]
        if any(len(x) != 3 for x in X):
            raise ValueError("X must hold graphs as check_data returns them.")
        _, edges, edge_features = zip(*X, strict=True)
        offsets = self._starts(X)
        labels = self._encode(y, offsets)
        return GraphOracle(
            self._node_features(X, allowed=allowed),
            offsets,
            as_features(edge_features),
            validation.starts_of(edge_features),
            np.concatenate(edges).astype(np.intc),
            list(map(rooted_forest, X)),
            labels,
            pair_of=self._pair_of,
            bias=self.bias,
            relaxed=relaxed,
            expands=self.inference == "expansion",
            **self._loss_options(y, labels, known),
        )

    def _best_allowed(self, X, w, allowed):
        return self.decode_batch(X, w, allowed=allowed)

    def decode_batch(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        compiled = [self._is_compiled([x]) for x in X]
        allowed = None if allowed is None else as_allowed_labels(allowed)
        decoded: Iterator[np.ndarray] = iter(())
        if easy := np.flatnonzero(compiled).tolist():
            own = [X[i] for i in easy]
            masks = None if allowed is None else allowed.take(easy)
            oracle = self._graph_oracle(own, self._any_labels(own), False, masks)
            labels = self.classes_[oracle.decode(w, 0.0, n_threads)]
            decoded = iter(np.split(labels, np.cumsum(self._lengths(own))[:-1]))
        return as_object_array(
            [
                next(decoded) if is_easy else self._rounded(x, w, allowed and allowed[i])
                for i, (x, is_easy) in enumerate(zip(X, compiled, strict=True))
            ]
        )

    def _rounded(self, x, w, mask):
        theta, tables = self.potentials(x, w)
        theta = theta if mask is None else lowered(theta, mask, tables)
        return self.classes_[rounded_labels(theta, tables, x[1])]

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        """Maximize score plus `lam` times loss over labelings or over a relaxation.

        Returns
        -------
        ndarray of shape (T,), or (T k + m k²,)
            Labels or, if the maximizer over the local polytope is fractional, the weights
            of the labels of each node, followed by those of the pairs of labels of each
            edge.
        """
        x, y_true = self._check_one(x, y_true)
        if not self._is_compiled([x]):
            theta, tables = self.potentials(x, w)
            theta += lam * self._unit(y_true) * self._node_costs(y_true)
            point = best_point(theta, tables, x[1], self._polytopes)
            return point if is_point(point) else self.classes_[point]
        oracle = self._graph_oracle([x], [y_true], relaxed=True)
        return self._named(oracle.decode(w, lam), x)

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Joint feature vector; `y` may also be a point of the relaxation."""
        (x,), _ = self.check_data([x])
        return self._point_feature(x, *self._marginals(x, y))

    def _point_feature(self, x, nodes, pairs):
        """The joint feature vector from weights of labels and pairs of labels."""
        transition = None
        if self.transition:
            places = self._pair_of.ravel()
            seen = np.zeros((len(pairs), places.max() + 1))
            for pair in np.flatnonzero(places >= 0):
                seen[:, places[pair]] += pairs[:, pair]
            transition = transposed_product(x[2], seen)
        return self._join_parts(x, nodes, transition)

    def loss(self, y_true: Any, y: Any) -> float:
        """Sum of the label costs, each multiplied by the weight of its node.

        `y` may also be a point of the relaxation.
        """
        labels = self._labels_of(y)
        if not is_point(labels):
            return super().loss(y_true, labels)
        costs = self._node_costs(y_true)
        if len(labels) < costs.size:
            raise ValueError(f"A point of {len(labels)} weights is too short.")
        return float(labels[: costs.size] @ costs.ravel() * self._unit(y_true))

    def potentials(self, x: Any, w: np.ndarray) -> Any:
        """Compute the scores of node labels and of edge label pairs.

        Returns
        -------
        theta : ndarray of shape (T, n_classes)
            Scores of the labels of each node.
        tables : ndarray of shape (m, n_classes, n_classes)
            Scores of the label pairs of each edge, indexed by the labels of the first and
            the second end.
        """
        (x,), _ = self.check_data([x])
        return self._graph_potentials(x, w)

    def _graph_potentials(self, x, w):
        parts, k = self.weight_parts(w), len(self.classes_)
        theta = self._node_scores(x, parts)
        if not self.transition:
            return theta, np.zeros((len(x[1]), k, k))
        flat = parts["transition"].reshape(self.n_edge_features_, -1)
        return theta, (x[2] @ flat).reshape(-1, k, k)

    def _mean_squares_of_pairs(self, X, weights, n_nodes):
        squares = sum(w * sum_of_squares(x[2]) for x, w in zip(X, weights, strict=True))
        seen = self._pair_of[self._pair_of >= 0]
        return np.outer(squares, np.bincount(seen) / self._pair_of.size).ravel()

    def _mean_sizes_of_pairs(self, X, weights, n_nodes):
        sizes = mean_sizes([x[2] for x in X], weights)
        return np.repeat(sizes, self._transition_shape()[1])

    def _topological_potentials(self, x, w):
        edges = x[1] if self.transition else x[1][:0]
        forest = rooted_forest((self._features(x), edges))
        if forest is None:
            raise ValueError(
                "The graph has a cycle. With structure=GraphStructure there are k best "
                "labelings and max-marginals of forests only."
            )
        order, above, leading = forest[:, ::-1]
        theta, tables = self.potentials(x, w)
        transition = None
        if len(edges):
            is_parent_first = edges[leading, 0] == above
            transition = np.where(
                is_parent_first[:, np.newaxis, np.newaxis],
                tables[leading],
                tables[leading].swapaxes(1, 2),
            )
        return order, theta[order], transition, places_in(order, above)

    def _marginals(self, x, y):
        """Weights of the labels of nodes, (T, k), and of pairs of edges, (m, k²)."""
        features, edges, _ = x
        T, m, k = features.shape[0], len(edges), len(self.classes_)
        labels = self._labels_of(y)
        if is_point(labels):
            as_floats("y", labels, T * k + m * k * k)
            return labels[: T * k].reshape(T, k), labels[T * k :].reshape(m, k * k)
        _, (labels,) = self.check_data([x], [labels])
        codes = self._encode([labels])
        pairs = codes[edges[:, 0]] * k + codes[edges[:, 1]]
        return np.eye(k)[codes], np.eye(k * k)[pairs]

    def _named(self, decoded, x):
        """The labeling of the oracle, or a point of the relaxation."""
        T = x[0].shape[0]
        if len(self.classes_) != 2 or len(decoded) == T or not (decoded[:T] == 2).any():
            return self.classes_[decoded[:T]]
        return half_integral_point(decoded, T, x[1])
