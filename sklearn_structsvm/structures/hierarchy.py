"""Labels that are leaves of a hierarchy and share the weights of their ancestors."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import check_choice, check_shape
from sklearn_structsvm._utils.labels import listed, plain
from sklearn_structsvm.structures._callback import CallbackOracle
from sklearn_structsvm.structures._hierarchy import HierarchyOracle
from sklearn_structsvm.structures.flat import FlatStructure
from sklearn_structsvm.structures.hierarchy_graph import read_hierarchy
from sklearn_structsvm.structures.indicator import IndicatorLabels
from sklearn_structsvm.structures.polytope import (
    SNAPPED,
    Polytope,
    maximize_product,
    snapped,
)


class HierarchicalStructure(IndicatorLabels, FlatStructure):
    r"""Label sets in a hierarchy, in which labels share the weights of their ancestors.

    The hierarchy is a directed acyclic graph whose leaves are the labels. Every node n
    has a weight vector :math:`w_n`. The score of a set Y of leaves is

    .. math:: f(x, Y) = \sum_{n \,\in\, \bigcup_{y \in Y} A(y)}
        \langle w_n, x \rangle,

    where A(y) consists of y and its ancestors. The joint feature map is
    :math:`\phi(x, Y) = x \otimes u(Y)`, where u(Y) is the indicator vector of the union
    [1]_ [2]_. The loss is the Hamming loss of the sets, or the sum of the costs of wrong
    labels.

    If no node has two parents, maxima are found exactly by message passing. In other
    graphs they come from a linear program [2]_, in which a labeling is a vector z with an
    entry in [0, 1] for each node, subject to

    .. math:: z_c \le z_n \text{ for each child } c \text{ of } n, \qquad
        z_n \le \sum_c z_c.

    An integral z is some u(Y). Training includes fractional z in the maximum, so its
    objective is an upper bound on that over sets. Predictions consist of the leaves with
    :math:`z \ge 1/2`.

    Read more in the :ref:`User Guide <guide-flat>`.

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2)
        Pairs (parent, child) of node names, all integers or all strings.
    leaves : array-like of shape (n_leaves,) or None, default=None
        The nodes without children, in the order of the columns of y. None means sorted
        order.
    inference : {"auto", "tree", "lp"}, default="auto"
        "tree" is for forests, and "lp" for any graph. "auto" is "tree" where possible.
        "lp" needs HiGHS: ``pip install highspy``.
    normalize_loss : bool, default=False
        Whether to divide the loss by the number of leaves.
    label_costs : array-like of shape (n_leaves, 2) or None, default=None
        Costs of a wrong label: column 0 if it is predicted but absent, column 1 if it is
        missed. None means 1.

    Attributes
    ----------
    nodes_ : ndarray of shape (n_nodes,)
        Names of the nodes, parents before their children. They are the rows of `coef_`.
    classes_ : ndarray of shape (n_leaves,)
        Names of the leaves, which are the columns of y.
    inference_ : {"tree", "lp"}
        Inference in use, with "auto" resolved.
    n_features_in_, n_weights_ : int
        Number of features of an example, and dimension of the joint feature map.

    References
    ----------
    .. [1] Cai, L. and Hofmann, T. (2004). Hierarchical document categorization with
       support vector machines. CIKM 2004.
    .. [2] Choi, H., Meshi, O. and Srebro, N. (2016). Fast and scalable structural SVM
       with slack rescaling. AISTATS 2016, sections 5.1 and 5.2.

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import HierarchicalStructure
    >>> edges = [("animal", "cat"), ("animal", "dog"), ("plant", "oak")]
    >>> X = [[1.0, 0.0, 0.2], [1.0, 0.0, -0.2], [0.0, 1.0, 0.0], [1.0, 1.0, 0.2]]
    >>> Y = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]
    >>> structure = HierarchicalStructure(edges)
    >>> model = BCFWClassifier(structure, step="pairwise", random_state=0).fit(X, Y)
    >>> model.classes_.tolist(), model.structure_.nodes_.tolist()
    (['cat', 'dog', 'oak'], ['animal', 'cat', 'dog', 'plant', 'oak'])
    >>> model.predict([[0.0, 1.0, 0.1], [1.0, 0.0, 0.3]]).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """

    _parameter_constraints = IndicatorLabels._parameter_constraints | {
        "edges": ["array-like"],
        "leaves": ["array-like", None],
    }

    def __init__(
        self,
        edges: ArrayLike,
        leaves: ArrayLike | None = None,
        inference: Literal["auto", "tree", "lp"] = "auto",
        normalize_loss: bool = False,
        label_costs: ArrayLike | None = None,
    ) -> None:
        self.edges = edges
        self.leaves = leaves
        self.inference = inference
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs

    def _fit_labels(self, y, classes, class_weight):
        self._check_indicator(y, class_weight)
        graph = read_hierarchy(self.edges, self.leaves)
        check_choice("inference", self.inference, ("auto", "tree", "lp"))
        twice = np.flatnonzero(np.bincount(graph.children) > 1)
        self.inference_ = self.inference
        if self.inference == "auto":
            self.inference_ = "lp" if len(twice) else "tree"
        elif self.inference == "tree" and len(twice):
            raise ValueError(
                "inference='tree' requires a forest, but the node "
                f"{plain(graph.nodes[twice[0]])!r} has more than one parent. Use 'lp' or "
                "'auto'."
            )
        self._graph = graph
        self.nodes_ = graph.nodes
        self.classes_ = graph.nodes[graph.leaves]
        if classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes must be the leaves of the hierarchy, {listed(self.classes_)}, "
                "in the order of the columns of y, or None."
            )
        self._encode(y)
        self._fit_costs()
        if self.inference_ == "lp":
            self._polytope = Polytope(*graph.inequalities())

    # A labeling of the relaxation contains all nodes.
    variable_length = True
    labelings = IndicatorLabels.labelings

    def check_fitted(self) -> None:
        self._graph.check()
        check_shape("nodes_", self.nodes_, len(self._graph.nodes))
        check_shape("classes_", self.classes_, len(self._graph.leaves))
        if self.inference_ == "lp" and self._polytope.n_variables != self._k:
            raise ValueError(
                f"The polytope has {self._polytope.n_variables} variables for {self._k} "
                "nodes: it was changed after fit."
            )
        super().check_fitted()

    @property
    def _k(self):
        return len(self.nodes_)

    @property
    def relaxed(self) -> bool:  # type: ignore[override]
        return getattr(self, "inference_", self.inference) == "lp"

    @property
    def has_constrained_decode(self) -> bool:  # type: ignore[override]
        return self.relaxed

    @property
    def has_slack_augmented_decode(self) -> bool:  # type: ignore[override]
        return self.relaxed

    def make_oracle(self, X: Any, y: Any) -> BlockOracle:
        U = self._graph.switch_on(self._encode(np.asarray(y)))
        if self.inference_ == "lp":
            truths = list(U.astype(np.float64))
            return CallbackOracle(self, self._items(X), truths, self.n_weights_)
        costs = np.zeros((self._k, 2))
        costs[self._graph.leaves] = self.label_costs_
        graph = self._graph
        return HierarchyOracle(
            as_features(X),
            U,
            costs,
            self.bias_,
            np.ascontiguousarray(graph.starts, dtype=np.intp),
            np.ascontiguousarray(graph.children, dtype=np.intp),
        )

    def decision_function(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Compute the scores of the leaves, of shape (n_samples, n_leaves).

        In a forest, the score of a leaf is the best score of a set with the leaf minus
        that of a set without it. In other graphs it is z - 1/2 for the solution z of the
        linear program. Leaves with positive scores are predicted. Of the leaves with
        score zero, the linear program predicts all, and a forest as many as its best set
        has.
        """
        theta = self._node_scores(X, w)
        if self.inference_ == "tree":
            return self._graph.leaf_margins(theta)
        sizes = np.abs(theta).max(axis=1, keepdims=True)
        k = len(self._graph.leaves)
        # A share of the largest score by which a prediction prefers fewer and earlier
        # leaves. If sets tie, the linear program's answer would depend on previous ones.
        unwanted = 1e-7 * np.where(sizes > 0, sizes, 1.0)
        theta[:, self._graph.leaves] -= unwanted * np.linspace(1.0, 2.0, k)
        z = np.array([self._maximize(row) for row in theta])
        return z[:, self._graph.leaves] - (0.5 - SNAPPED)

    def decode_batch(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        if self.inference_ == "lp":
            return (self.decision_function(X, w) > 0.0).astype(np.int64)
        oracle = self._compiled_oracle(X, np.zeros((X.shape[0], len(self.classes_))))
        return self._leaves_of(oracle.decode(w, 0.0, n_threads))

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Joint feature vector of shape (d,), or a sparse row if x is sparse.

        y is an indicator vector of leaves, or any z of shape (n_nodes,).
        """
        if not sparse.issparse(x):
            return super().joint_feature(x, y)
        row = sparse.csr_array(x).reshape((1, -1))
        if self.bias_:
            row = sparse.hstack([row, [[self.bias_]]])
        return sparse.kron(row, self._marginals(y)[np.newaxis], format="csr")

    def loss(self, y_true: Any, y: Any) -> float:
        """Sum of the costs of wrong leaves, for an indicator of leaves or any z."""
        truth, z = (self._marginals(labels)[self._graph.leaves] for labels in (y_true, y))
        costs = self.label_costs_[np.arange(len(truth)), (truth > 0.5).astype(np.intp)]
        return float(costs @ np.abs(z - truth))

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        """Maximize score plus `lam` times loss; with "lp" over all vectors z."""
        x = np.reshape(x, (1, -1)) if not sparse.issparse(x) else x
        if self.inference_ == "tree":
            oracle = self._compiled_oracle(x, np.asarray([y_true]))
            return self._leaves_of(oracle.decode(w, lam))[0]
        loss, _ = self._linear_loss(y_true)
        return self._maximize(self._node_scores(x, w)[0] + lam * loss)

    def constrained_decode(
        self,
        x: Any,
        y_true: Any,
        w: np.ndarray,
        lam: float,
        alpha: float,
        beta: float,
        strict_alpha: bool = False,
        strict_beta: bool = True,
    ) -> Any:
        """Find the best z between two rays (inference "lp" only).

        Both rays are always included, since otherwise a best z need not exist. For
        forests use the `candidates` of the oracle.
        """
        if self.inference_ == "tree":
            raise NotImplementedError(
                "HierarchicalStructure has constrained_decode with inference='lp' only."
            )
        x = np.reshape(x, (1, -1)) if not sparse.issparse(x) else x
        theta = self._node_scores(x, w)[0]
        loss, loss_of_none = self._linear_loss(y_true)
        z = self._polytope.maximize_between(
            theta + lam * loss,
            h=theta,
            h0=1.0 - theta @ self._marginals(y_true),
            g=loss,
            g0=loss_of_none,
            alpha=alpha,
            beta=beta,
        )
        return None if z is None else snapped(z)

    def slack_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, one: float = 1.0
    ) -> Any:
        """Find the most violating z of slack rescaling (inference "lp" only)."""
        x = np.reshape(x, (1, -1)) if not sparse.issparse(x) else x
        theta = self._node_scores(x, w)[0]
        loss, loss_of_none = self._linear_loss(y_true)
        z = maximize_product(
            self._polytope.maximize,
            h=theta,
            h0=one - theta @ self._marginals(y_true),
            g=loss,
            g0=loss_of_none,
        )
        return snapped(z)

    def _node_scores(self, X, w):
        return super().decision_function(X, w)

    def _maximize(self, scores):
        return snapped(self._polytope.maximize(scores))

    def _linear_loss(self, y_true):
        """Coefficients of the nodes and constant of loss(y_true, z)."""
        truth = self._marginals(y_true)[self._graph.leaves] > 0.5
        added = np.where(truth, -self.label_costs_[:, 1], self.label_costs_[:, 0])
        loss = np.zeros(self._k)
        loss[self._graph.leaves] = added
        return loss, self.label_costs_[truth, 1].sum()

    def _encode(self, Y):
        k = len(self.classes_)
        if Y.ndim != 2 or Y.shape[1] != k:
            raise ValueError(
                f"y must have one column for each of the {k} leaves of the hierarchy, "
                f"{listed(self.classes_)}; got shape {Y.shape}."
            )
        return super()._encode(Y)

    def _marginals(self, y):
        """u(y) of an indicator of leaves, or y itself if it is a z."""
        y = np.asarray(y)
        if y.shape == (self._k,):
            return y.astype(np.float64)
        return self._graph.switch_on(self._encode(y[np.newaxis]))[0].astype(np.float64)

    def _leaves_of(self, on):
        return on.reshape(-1, self._k)[:, self._graph.leaves].astype(np.int64)
