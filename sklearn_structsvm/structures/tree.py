"""Labels of the nodes of rooted trees."""

from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils.borders import refuse_masked
from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._tree import TreeOracle
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.forest import ForestStructure
from sklearn_structsvm.structures.nodes import depths_of, places_in


class TreeStructure(ForestStructure):
    r"""Labels of the nodes of rooted trees, with dependencies between parent and child.

    An example x is a pair (features, parents): one row of features for each of T nodes,
    in any order, and the index of each node's parent, or -1 for a root. There may be
    several roots; the trees of one example share only the loss. With one-hot vectors e,
    the joint feature map concatenates

    - emissions, :math:`\sum_v x_v \otimes e_{y_v}`;
    - a bias, :math:`\sum_v e_{y_v}`;
    - a bias of the roots, :math:`\sum_{v \text{ root}} e_{y_v}`;
    - transitions, :math:`\sum_{v \text{ not root}} e_{y_{\mathrm{parent}(v)}} \otimes
      e_{y_v}`.

    Each part can be left out. A labeling y is an array of T labels. The loss is the
    Hamming loss or the sum of label costs over the nodes. In training y may be a pair
    (labels, weights), whose weights multiply the costs of the nodes.

    Decoding is exact, by max-sum from the leaves to the roots in :math:`O(T k^2)` for k
    classes. Slack rescaling is exact too; it takes at most :math:`O(T^2 k^2)` with equal
    costs.

    Read more in the :ref:`User Guide <guide-trees>`.

    Parameters
    ----------
    emission : bool, "given" or "both", default=True
        Whether features have weights. "given": features are scores of the classes
        already, and have one weight together. "both": an example is ((features, scores),
        parents). See :class:`ChainStructure`.
    transition, bias, root_bias : bool, default=True
        Which other parts the model has.
    normalize_loss : bool, default=True
        Whether to divide the loss of an example by its number of nodes, or by the sum of
        their weights.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        ``label_costs[truth, label]`` is the cost of one wrong label: nonnegative, zero on
        the diagonal, in the order of `classes_`. None means 1 off the diagonal.
    transitions : ndarray of bool, list of pairs or None, default=None
        Which labels the children of a node may have. Forbidden transitions are never
        predicted, have probability 0, and are excluded from the maximum in training. A
        true labeling that contains one raises an error. This does not depend on
        `transition`, which says whether pairs of labels have weights.

        - None allows all transitions.
        - A mask of shape (n_classes, n_classes), in the order of `classes_`, is True
          where a child may have a label (column) given that of its parent (row). An
          additional row says which labels roots may have, and an additional column which
          leaves may have.
        - A list of forbidden pairs (parent's label, child's label). None in a pair stands
          for what is above a root or below a leaf.

    Attributes
    ----------
    allowed_ : ndarray of shape (n_classes + 1, n_classes + 1), dtype bool, or None
        The allowed transitions as a mask, including the row for roots and the column for
        leaves.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of features of a node.
    n_weights_ : int
        Dimension of the joint feature map.

    See Also
    --------
    ChainStructure : Sequences, where each position depends on the previous one.

    Examples
    --------
    The words of two sentences are the nodes of their dependency trees. Each is a noun or
    not, which depends on one feature and on the label of its head:

    >>> import numpy as np
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import TreeStructure
    >>> X = [
    ...     (np.array([[1.0], [0.2], [0.9]]), [1, -1, 1]),
    ...     (np.array([[0.1], [0.8]]), [-1, 0]),
    ... ]
    >>> y = [["noun", "other", "noun"], ["other", "noun"]]
    >>> model = BCFWClassifier(TreeStructure(), random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    ['noun', 'other', 'noun']
    """

    _parameter_constraints = ForestStructure._parameter_constraints | {
        "root_bias": ["boolean"]
    }
    _biases = ("bias", "root_bias")
    _item, _place = "tree", "node"
    _forbidden = "has the root {!r}", "has {!r} above {!r}", "has the leaf {!r}"

    def __init__(
        self,
        emission: bool | Literal["given", "both"] = True,
        transition: bool = True,
        bias: bool = True,
        root_bias: bool = True,
        normalize_loss: bool = True,
        label_costs: ArrayLike | None = None,
        transitions: ArrayLike | None = None,
    ) -> None:
        self.emission = emission
        self.transition = transition
        self.bias = bias
        self.root_bias = root_bias
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs
        self.transitions = transitions

    def _rows(self, x):
        return x[0]

    def _checked(self, X, y=None):
        X = validation.list_of_pairs(X, "(features, parents)")
        rows = self._check_rows([x[0] for x in X], "[0]", "tree")
        X = [
            (item, _check_parents(x[1], item.shape[0], i))
            for i, (item, x) in enumerate(zip(rows, X, strict=True))
        ]
        if y is not None:
            y = validation.check_labels(y, rows, part="[0]", place="node")
        return X, y

    def _allowed(self):
        if isinstance(self.transitions, str):
            raise ValueError(
                "transitions of a TreeStructure must be a boolean array or a list of "
                "forbidden pairs (parent's label, child's label). Named schemes are for "
                f"sequences; got {self.transitions!r}."
            )
        return super()._allowed()

    def _forest(self, X):
        offsets = np.array([0, *accumulate(len(parents) for _, parents in X)])
        parents = np.concatenate([np.asarray(parents) for _, parents in X])
        starts = np.repeat(offsets[:-1], np.diff(offsets))
        return np.where(parents < 0, -1, parents + starts), offsets

    def _refuse_impossible(self, X):
        parents, offsets = self._forest(X)
        possible = tables.reachable(self.allowed_, parents).any(axis=1)
        if not possible.all():
            at = np.searchsorted(offsets, possible.argmin(), side="right") - 1
            raise ValueError(
                f"X[{at}] is a tree without a labeling that `transitions` allows."
            )

    def make_oracle(
        self,
        X: Any,
        y: Any,
        allowed: Any = None,
        known: Any = None,
        added: Any = None,
    ) -> BlockOracle:
        offsets = self._starts(X)
        order, parents = _deepest_first(X, offsets)
        own = order - np.repeat(offsets[:-1], np.diff(offsets))
        labels = self._truth(X, y)
        features = self._node_features(X, own, allowed)
        loss = self._loss_options(y, labels, known)
        if loss["cost_rows"] is not None:
            loss["cost_rows"] = loss["cost_rows"][order]
        return TreeOracle(
            self._with_costs(features, added, y, labels, known, order=order),
            offsets,
            parents,
            None if labels is None else labels[order],
            bias=self.bias,
            root=self.root_bias,
            transition=self.transition,
            allowed=self.allowed_,
            **loss,
        )

    def _order(self, x):
        return _depth_first(np.asarray(x[1]))

    def _edges(self, x):
        children = x[1] >= 0
        return x[1][children], children

    def _bias_nodes(self, x):
        return {"bias": slice(None), "root_bias": x[1] < 0}

    def _split_nodes(self, X, rows):
        """The rows of an oracle, tree by tree, in the given order of the nodes."""
        offsets = np.cumsum([0] + [len(parents) for _, parents in X])
        order, _ = _deepest_first(X, offsets)
        return as_object_array(np.split(_put_back(rows, order), offsets[1:-1]))


def _check_parents(parents, n_nodes, i):
    """Parents as intp, after a check that they form a forest with this many nodes."""
    name = f"X[{i}][1]"
    refuse_masked(name, parents)
    try:
        parents = np.asarray(parents)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a 1-D array of the parents' places: {error}"
        ) from error
    if parents.ndim != 1:
        raise ValueError(
            f"{name} must be a 1-D array of the parents' places, -1 for a root; got "
            f"shape {parents.shape}. For edges use structure='graph'."
        )
    if len(parents) == n_nodes == 0:
        return np.empty(0, dtype=np.intp)
    if len(parents) != n_nodes:
        raise ValueError(
            f"{name} has {len(parents)} parents for the {n_nodes} nodes of X[{i}][0]."
        )
    return check_forest(name, parents)


def check_forest(name, parents):
    """Parents as intp, after a check that they form a forest."""
    n_nodes = len(parents)
    if parents.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold integers, -1 for a root; got dtype {parents.dtype}."
        )
    # A copy: a user may change them during a fit.
    parents = parents.astype(np.intp)
    bad = np.flatnonzero((parents < -1) | (parents >= n_nodes))
    if len(bad):
        raise ValueError(
            f"{name} has the parent {parents[bad[0]]} for node {bad[0]}; parents are "
            f"nodes 0 ... {n_nodes - 1}, or -1 for a root."
        )
    at = np.flatnonzero(depths_of(parents) < 0)
    if len(at):
        raise ValueError(
            f"{name} has a cycle: the ancestors of node {at[0]} never end at a root, "
            "whose parent is -1."
        )
    return parents


def _deepest_first(X, offsets):
    """Nodes of all trees in the order of an oracle, the deepest of each tree first.

    Returns `order` (ΣT_i,) intp: the original number of the node at each place;
    `parents` (ΣT_i,) intp: parents in this order, counted from the tree's first place.
    """
    order = np.empty(offsets[-1], dtype=np.intp)
    parents = np.empty(offsets[-1], dtype=np.intp)
    for (_, given), start, stop in zip(X, offsets[:-1], offsets[1:], strict=True):
        own = np.argsort(-depths_of(given), kind="stable")
        parents[start:stop] = places_in(own, given[own])
        order[start:stop] = own + start
    return order, parents


def _depth_first(parents):
    """Nodes, each followed directly by its descendants, and parents in this order.

    The largest subtree of a node comes last. So at any place, at most log2(T) + 1 nodes
    have some children before it and some after it.
    """
    children, sizes = [[] for _ in parents], np.ones(len(parents), dtype=np.intp)
    for v in np.argsort(-depths_of(parents), kind="stable").tolist():
        if parents[v] >= 0:
            sizes[parents[v]] += sizes[v]
            children[parents[v]].append(v)
    order, stack = [], np.flatnonzero(parents < 0).tolist()
    while stack:
        order.append(stack.pop())
        stack += sorted(children[order[-1]], key=lambda v: -sizes[v])
    return np.array(order), places_in(order, parents[order])


def _put_back(labels, order):
    """Labels of rows as labels of the nodes in their given order."""
    result = np.empty_like(labels)
    result[order] = labels
    return result
