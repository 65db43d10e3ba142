"""Shared by structures with a label for each node."""

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils._matrix._added_scores import BarredScores, TableScores
from sklearn_structsvm._utils._matrix._features import FeaturesBeside
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import (
    as_array,
    as_dense,
    as_floats,
    check_integer,
    check_sequence,
    check_shape,
)
from sklearn_structsvm._utils.columns import (
    largest_entry,
    mean_sizes,
    n_entries,
    sum_of_squares,
    transposed_product,
)
from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.labels import (
    class_weight_vector,
    encode,
    label_cost_matrix,
    learn_classes,
    listed,
    split_weights,
    unseen,
)
from sklearn_structsvm._utils.own_indices import with_own_indices
from sklearn_structsvm._utils.sequence_scores import token_accuracy_score
from sklearn_structsvm._utils.tables import square_by_label
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._k_best import k_best, max_marginals
from sklearn_structsvm.structures.allowed_labels import (
    BARRED,
    NoAllowedLabeling,
    as_allowed_labels,
    check_allowed_labels,
)
from sklearn_structsvm.structures.base import Structure
from sklearn_structsvm.structures.hidden_labels import (
    NOTHING_KNOWN,
    known_places,
    members_of,
    split_hidden,
)


class NodeStructure(Structure):
    """Labels of nodes with features, with dependent pairs of labels.

    A subclass has parameters named as the parts of its weights: "emission", "transition",
    and those of `_biases`; and "normalize_loss" and "label_costs". It defines the form of
    an example by `_rows`, and the use of the weights.
    """

    has_classes = splits_hidden = True
    _parameter_constraints: dict[str, Any] = {
        **dict.fromkeys(("transition", "bias", "normalize_loss"), ["boolean"]),
        "emission": ["boolean", StrOptions({"given", "both"})],
    }

    # The weight parts with one number per class, in order.
    _biases: tuple[str, ...] = ("bias",)
    # Names for an example and for one of its nodes.
    _item, _place = "example", "node"

    def _rows(self, x):
        """The node data of an example: features, or a pair of features and scores."""
        return x

    def _features(self, x):
        """The matrix of features of an example's nodes."""
        return self._rows(x)[0] if self._has_both else self._rows(x)

    def _scores(self, x):
        """The scores of another model, which may be an example's only data."""
        return self._rows(x)[1] if self._has_both else self._rows(x)

    def _check_rows(self, rows, part="", kind="sequence"):
        """The checked result of `_rows` for each example; `part` and `kind` name it."""
        n_features = getattr(self, "n_features_in_", None)
        if self._is_given:
            return validation.check_scores(rows, n_features, part=part, kind=kind)
        if not self._has_both:
            return validation.check_items(rows, n_features, part=part, kind=kind)
        n_scores = len(self.classes_) if hasattr(self, "classes_") else None
        return validation.check_pairs(rows, n_features, n_scores, part=part, kind=kind)

    def _n_entries(self, x):
        of_scores = n_entries(self._scores(x)) if self._has_both else 0
        return n_entries(self._features(x)) + of_scores

    def _largest_feature(self, X):
        largest = super()._largest_feature(X)
        if not self._has_both:
            return largest
        return float(np.max([largest, largest_entry(*map(self._scores, X))]))

    def _with_own_indices(self, X):
        return list(map(with_own_indices, X))

    def _is_empty(self, x):
        return self._features(x).shape[0] == 0

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
    ) -> Self:
        """Learn the classes and the number of features.

        Parameters
        ----------
        X : sequence of n examples
            Input data.
        y : sequence of n label arrays of shape (T_i,)
            True labels.
        classes : array-like or None, default=None
            All class labels, if y may lack some.
        class_weight : dict, "balanced" or None, default=None
            Weights of the classes. They multiply the costs of the nodes with that true
            label.

        Returns
        -------
        self : object
            The fitted structure.
        """
        X, y = self._check_anew(X, y)
        self._learn_checked(X, y, classes, class_weight)
        return self

    def _learn_checked(self, X, y, classes=None, class_weight=None):
        """`fit` to data as checked."""
        self._check_parameters()
        self._learn(X, self.joined_labels(y), classes, class_weight)
        self._check_truth(X, y)

    def _learn(self, X, labels, classes, class_weight):
        """Set the fitted attributes, from these labels of any nodes."""
        self.n_features_in_ = self._features(X[0]).shape[1]
        self.classes_ = learn_classes(labels, classes)
        weight = class_weight_vector(class_weight, self.classes_, labels)
        costs = square_by_label("label_costs", self.label_costs, self.classes_)
        self.label_costs_ = label_cost_matrix(costs, len(self.classes_), weight)
        if self._is_given or self._has_both:
            self._check_scores(X)
        self.n_weights_ = self._count_weights()
        if self.n_weights_ == 0:
            names = ", ".join(["emission", "transition", *self._biases[:-1]])
            raise ValueError(
                f"{type(self).__name__} needs at least one part: {names} and "
                f"{self._biases[-1]} are all False."
            )

    def _check_truth(self, X, y):
        """ValueError if true labels are ruled out."""

    def split_hidden(self, y: Any) -> tuple[Any, Any]:
        """A known y and its hidden entries; see `hidden_labels.split_hidden`."""
        return split_hidden(y, self._labels_of, self._with_labels)

    def learn_partial(
        self, X: Any, y: Any, entries: Any, classes: Any, class_weight: Any
    ) -> tuple[Any, Any]:
        """Same as `fit`, if some labels are hidden.

        Parameters
        ----------
        X, y : sequences of n examples and labelings, as checked
            The data, with arbitrary labels in place of hidden ones.
        entries : list of n lists
            As `hidden_labels.split_hidden` returns them.
        classes, class_weight : as for `fit`
            Weights of "balanced" classes are those of the known labels.

        Returns
        -------
        y : list of n labelings
            Allowed labelings.
        allowed : AllowedLabels
            Masks of the labels that the nodes may have.
        """
        self._check_parameters()
        parts = [
            self._at_nodes(y_i, known_places(own))
            for y_i, own in zip(y, entries, strict=True)
        ]
        known = self.joined_labels(parts)
        members = sorted(members_of(entries), key=repr)
        both = self.joined_labels([known, members]) if members else known
        if len(both) == 0:
            raise ValueError(NOTHING_KNOWN)
        classes = learn_classes(both, classes)
        self._learn(X, known, classes, class_weight)
        allowed = check_allowed_labels(
            entries, self._starts(X), self.classes_, self._place, name="y"
        )
        if all(own.all() for own in allowed):
            raise ValueError(NOTHING_KNOWN)
        try:
            labels = self._best_allowed(X, np.zeros(self.n_weights_), allowed)
        except NoAllowedLabeling as error:
            raise ValueError(error.of(error.item, "y")) from None
        return list(map(self._with_labels, y, labels)), allowed

    def _best_allowed(self, X, w, allowed):
        """Same as `decode_batch`, restricted to allowed labels."""
        raise NotImplementedError

    def _labels_of(self, y):
        """The labels of an example's nodes, without their weights."""
        return split_weights(y)[0]

    def known_nodes(self, y: Any, y_pred: Any, entries: Any) -> tuple[Any, Any]:
        """Labelings and predictions at the nodes with known labels."""
        places = list(map(known_places, entries))
        return (
            list(map(self._at_nodes, y, places)),
            [own[at] for own, at in zip(y_pred, places, strict=True)],
        )

    def _at_nodes(self, y, places):
        """The part of a labeling that belongs to these nodes."""
        labels, weights = split_weights(y)
        return labels[places] if weights is None else (labels[places], weights[places])

    def _with_labels(self, y, labels):
        """The same with other labels."""
        weights = split_weights(y)[1]
        return labels if weights is None else (labels, weights)

    def _loss_options(self, y, truth, known=None):
        """How an oracle computes the loss: `costs`, `normalize` and `cost_rows`.

        `truth` has the codes of y, which may be None, as for an oracle that only decodes.
        """
        weights = None
        if truth is not None:
            weights = _weights_of_all(y, self._unit)
        costs, rows = self._costs(self.label_costs_, truth, known, weights)
        normalize = self.normalize_loss and weights is None
        return {"costs": costs, "normalize": normalize, "cost_rows": rows}

    @staticmethod
    def _costs(costs, truth, known, weights):
        """Rows of costs of labels, and the row of each node; None if it is its label.

        The cost of a label is the smallest one that it has for a label that `known`
        allows, times the weight of the node.
        """
        rows = None
        if known is not None:
            masks, rows = np.unique(np.concatenate(known), axis=0, return_inverse=True)
            costs = np.array([costs[mask].min(axis=0) for mask in masks])
            rows = rows.ravel().astype(np.intc)
        if weights is None:
            return costs, rows
        # Nodes of the same weight and label share a row.
        values, at = np.unique(weights, return_inverse=True)
        both = at * len(costs) + (truth if rows is None else rows)
        used, rows = np.unique(both, return_inverse=True)
        at, own = np.divmod(used, len(costs))
        return values[at, np.newaxis] * costs[own], rows.astype(np.intc)

    def _added_costs(self, costs, y, truth, known=None):
        """Costs that are added to the scores of nodes: `_costs` with a row for each."""
        costs, rows = self._costs(costs, truth, known, _weights_of_all(y))
        return costs, np.asarray(truth if rows is None else rows, dtype=np.intp)

    def _with_costs(self, features, costs, *y, order=slice(None)):
        """Features of nodes, in an order, which add these costs to scores; None: none.

        `y`: the other arguments of `_added_costs`.
        """
        if costs is None:
            return features
        costs, rows = self._added_costs(costs, *y)
        return FeaturesBeside(features, TableScores(costs, rows[order]))

    @property
    def _is_given(self):
        """Whether the features are label scores of another model."""
        return self.emission == "given"

    @property
    def _has_both(self):
        """Whether such scores are combined with features that have weights."""
        return self.emission == "both"

    def _check_scores(self, X):
        scores, k = self._scores(X[0]), len(self.classes_)
        if scores.shape[1] != k:
            raise ValueError(
                f"emission={self.emission!r} needs a score for each of the {k} classes, "
                f"sorted: {listed(self.classes_)}. X has {scores.shape[1]} columns. If y "
                "lacks some classes, name all by the option `classes` of the estimator."
            )

    def _fitted_shapes(self):
        n = len(self.classes_)
        return {"n_features_in_": (), "label_costs_": (n, n)}

    def _count_weights(self):
        return sum([prod(shape) for _, shape in self._parts()])

    def _parts(self):
        """Names and shapes of the parts that the model has, in their order."""
        k, parts = len(self.classes_), []
        if self.emission:
            own = (1,) if self._is_given else (self.n_features_in_, k)
            parts.append(("emission", own))
        if self._has_both:
            parts.append(("scale", (1,)))
        parts += [(name, (k,)) for name in self._biases if getattr(self, name)]
        if self.transition:
            parts.append(("transition", self._transition_shape()))
        return parts

    def _transition_shape(self):
        return len(self.classes_), len(self.classes_)

    def weight_parts(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Split the weight vector into its named parts.

        Parameters
        ----------
        w : ndarray or sparse array of shape (`n_weights_`,)
            Weight vector, such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            The parts that the model has: "emission" of shape (n_features, n_classes), or
            of shape (1,) if it is "given", "scale" of shape (1,) if it is "both", biases
            of shape (n_classes,), and "transition" of shape (n_classes, n_classes),
            indexed by the label of the previous position or parent, and then by the label
            itself.
        """
        n = self.n_weights_
        w = as_floats("w", as_dense(w, n), n, finite=False)
        parts, at = {}, 0
        for name, shape in self._parts():
            size = prod(shape)
            parts[name] = np.reshape(w[at : at + size], shape)
            at += size
        return parts

    def _node_features(self, X, order=None, allowed=None):
        """Features of the nodes of all examples, as kernels read them.

        Labels that are not allowed have lower scores than all others.
        """
        features = self._unmasked_features(X, order)
        if allowed is None:
            return features
        allowed = as_allowed_labels(allowed)
        if order is not None:
            starts = allowed.bounds
            allowed = allowed.in_order(order + np.repeat(starts[:-1], np.diff(starts)))
        barred = BarredScores(features.n_rows, allowed.nodes, allowed.masks, BARRED)
        return FeaturesBeside(features, barred)

    def _unmasked_features(self, X, order):
        items, k = list(map(self._features, X)), len(self.classes_)
        if not self.emission:
            return as_features(np.empty((sum(item.shape[0] for item in items), 0)))
        features = as_features(items, k, order, self._is_given)
        if not self._has_both:
            return features
        scores = as_features(list(map(self._scores, X)), k, order, given=True)
        return FeaturesBeside(features, scores)

    def _lengths(self, X):
        """Nodes of each example."""
        return [self._features(x).shape[0] for x in X]

    def _starts(self, X):
        """The start of each example's nodes, and the end of the last one's."""
        return validation.starts_of(map(self._features, X))

    def _matrices(self, X):
        return map(self._features, X)

    def _mean_squares(self, X, weights):
        k = len(self.classes_)
        squares, of_scores, n_nodes = np.zeros(self.n_features_in_), 0.0, 0.0
        for x, weight in zip(X, weights, strict=True):
            features = self._features(x)
            squares += weight * sum_of_squares(features)
            n_nodes += weight * features.shape[0]
            if self._has_both:
                of_scores += weight * sum_of_squares(self._scores(x)).sum()
        each = np.repeat(squares / k, k)
        sizes = {
            "emission": squares.sum(keepdims=True) / k if self._is_given else each,
            "scale": np.array([of_scores / k]),
            "bias": np.full(k, n_nodes / k),
            "transition": self._mean_squares_of_pairs(X, weights, n_nodes),
        }
        # Other biases belong to one node of an example.
        one = np.full(k, np.sum(weights) / k)
        return np.concatenate([sizes.get(name, one) for name, _ in self._parts()])

    def _mean_squares_of_pairs(self, X, weights, n_nodes):
        k = len(self.classes_)
        return np.full(k * k, n_nodes / k**2)

    def _centered(self, w):
        centered, at = np.array(w), 0
        for name, shape in self._parts():
            part = centered[at : at + prod(shape)].reshape(shape)
            at += part.size
            # Each node has one label, so that a number may be added to all of them.
            if name != "transition" and shape[-1] == len(self.classes_):
                part -= part.mean(axis=-1, keepdims=True)
        return centered

    def _mean_sizes(self, X, weights):
        k, n_nodes = len(self.classes_), float(np.dot(weights, self._lengths(X)))
        each = mean_sizes(list(map(self._features, X)), weights)
        sizes = {
            # With given scores, a node has one of them.
            "emission": each.sum(keepdims=True) if self._is_given else np.repeat(each, k),
            "transition": self._mean_sizes_of_pairs(X, weights, n_nodes),
        }
        if self._has_both:
            scores = mean_sizes(list(map(self._scores, X)), weights)
            sizes["scale"] = scores.sum(keepdims=True)
        nodes = np.full(k, n_nodes)
        return np.concatenate([sizes.get(name, nodes) for name, _ in self._parts()])

    def _mean_sizes_of_pairs(self, X, weights, n_nodes):
        return np.full(prod(self._transition_shape()), n_nodes)

    def _bias_nodes(self, x):
        """For each bias, an index of the nodes at which it counts."""
        return {"bias": slice(None)}

    def _join_parts(self, x, nodes, transition):
        """The joint feature, from the marginals of the nodes and the last part."""
        features = self._features(x)
        if self._is_given:
            emission = (features * nodes).sum()
        else:
            emission = transposed_product(features, nodes)
        parts = {"emission": emission, "transition": transition}
        if self._has_both:
            parts["scale"] = (self._scores(x) * nodes).sum()
        for name, at in self._bias_nodes(x).items():
            parts[name] = nodes[at].sum(axis=0)
        return np.concatenate([np.ravel(parts[name]) for name, _ in self._parts()])

    def _node_scores(self, x, parts):
        """Scores of the labels of each node, shape (T, k), from the parts of w."""
        features = self._features(x)
        theta = np.zeros((features.shape[0], len(self.classes_)))
        if self._is_given:
            theta += features * parts["emission"]
        elif self.emission:
            theta += features @ parts["emission"]
        if self._has_both:
            theta += self._scores(x) * parts["scale"]
        for name, at in self._bias_nodes(x).items():
            if name in parts:
                theta[at] += parts[name]
        return theta

    def _check_one(self, x, y=None):
        """The checked example (x, y) alone; ValueError if it has nothing to label."""
        (x,), y = self.check_data([x], None if y is None else [y])
        if self._is_empty(x):
            raise ValueError("x is empty, and has nothing to label.")
        return x, None if y is None else y[0]

    def decode(self, x: Any, w: np.ndarray) -> Any:
        x, _ = self._check_one(x)
        return self._compiled_decode([x], w)[0]

    def _topological_potentials(self, x, w):
        """The potentials with parents before their children, as `_k_best` takes them.

        Returns `order` (T,), or slice: the nodes in this order, as an index; `theta`
        (T, k); `transition` (k, k) or (T, k, k) or None; `parents` (T,), or None for a
        chain.
        """
        raise NotImplementedError

    def k_best(
        self, x: Any, w: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best labelings of one example and their scores.

        `allowed`, of shape (T, n_classes), says which labels the nodes may have.

        Returns
        -------
        labelings : ndarray of shape (m, T)
            The best labeling first; m is k, or the number of labelings if that is
            smaller.
        scores : ndarray of shape (m,)
            Scores in decreasing order.
        """
        check_integer("k", k, 1)
        x, _ = self._check_one(x)
        order, *potentials = self._lowered_potentials(x, w, allowed)
        theta, transition, parents = potentials
        found, scores = k_best(theta, transition, k, parents)
        labels = np.empty_like(found)
        labels[:, order] = found
        keep = ~self._impossible([x] * len(labels), labels.ravel())
        if allowed is not None:
            keep &= scores > -0.5 * BARRED
            self._refuse_conflicts([x], [allowed], ~keep[:1])
        return self.classes_[labels[keep]], scores[keep]

    def max_marginals(
        self, x: Any, w: np.ndarray, allowed: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute the best score with each class at each node: (T, n_classes).

        `allowed`, of shape (T, n_classes), says which labels the nodes may have. Entries
        of the others are -inf.
        """
        x, _ = self._check_one(x)
        order, *potentials = self._lowered_potentials(x, w, allowed)
        found = max_marginals(*potentials)
        result = np.empty_like(found)
        result[order] = found
        if allowed is not None:
            result[~allowed] = -np.inf
        return result

    def _lowered_potentials(self, x, w, allowed):
        """The same, with barred labels below all others.

        This large distance costs no digits: each node has an allowed label, so `_k_best`
        never adds the score of a barred label to one that counts.
        """
        order, theta, transition, parents = self._topological_potentials(x, w)
        if allowed is not None:
            allowed = as_array("allowed", allowed)
            check_shape("allowed", allowed, *theta.shape)
            if allowed.dtype != bool:
                raise ValueError(f"allowed must be a mask; got dtype {allowed.dtype}.")
            theta = np.where(allowed[order], theta, -BARRED)
        return order, theta, transition, parents

    def _refuse_conflicts(self, X, allowed, is_bad):
        """The error for the first of the bad examples, which have no labeling.

        If only `allowed` bars labels there is none, because each node has some left.
        """

    def _impossible(self, X, labels):
        """Whether encoded labelings, one after another, are impossible for all scores."""
        return np.zeros(len(X), dtype=bool)

    def labelings(self, x: Any) -> Iterable[Any] | None:
        (x,), _ = self.check_data([x])
        n_nodes = self._features(x).shape[0]
        return map(np.array, product(self.classes_, repeat=n_nodes))

    def loss(self, y_true: Any, y: Any) -> float:
        costs, labels = self._node_costs(y_true), self._encode([y])
        if len(costs) != len(labels):
            raise ValueError(
                f"Labelings of lengths {len(costs)} and {len(labels)} cannot be compared."
            )
        own = np.take_along_axis(costs, labels[:, np.newaxis], axis=1)
        return float(own.sum() * self._unit(y_true))

    def _node_costs(self, y):
        """The cost of each label of each node, times the node's weight: (T, k)."""
        costs, weights = self.label_costs_[self._encode([y])], split_weights(y)[1]
        return costs if weights is None else np.asarray(weights)[:, np.newaxis] * costs

    def score(self, y: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Accuracy over nodes, by their weights times those of the examples."""
        return token_accuracy_score(y, y_pred, sample_weight=sample_weight)

    def joined_labels(self, y: Any) -> np.ndarray:
        """All labels, one example after another."""
        y = list(map(self._labels_of, y))
        for i, own in enumerate(y):
            if type(own) is not np.ndarray or own.ndim == 0:
                check_sequence(f"y[{i}]", own, "a sequence of labels")
                y[i] = as_array(f"y[{i}]", own)
        y = [own for own in y if len(own)] or [np.empty(0, dtype=object)]
        kinds = {own.dtype.kind for own in y}
        if len(kinds) > 1 and not kinds.isdisjoint("US"):
            # numpy would convert 1 to "1" beside "a".
            y = [y_i.astype(object) for y_i in y]
        return np.concatenate(y)

    def unseen_labels(self, y: Any) -> list[Any]:
        return unseen(self.joined_labels(y).tolist(), self.classes_)

    def _any_labels(self, X):
        """Labels for an oracle that is only asked to decode."""
        lengths = [self._features(x).shape[0] for x in X]
        return [np.repeat(self.classes_[:1], length) for length in lengths]

    def _unit(self, y):
        """The factor of the costs of an example's nodes."""
        labels, weights = split_weights(y)
        total = len(labels) if weights is None else np.sum(weights)
        return 1.0 / total if self.normalize_loss and total > 0 else 1.0

    def _encode(self, y, offsets=None):
        def where(place):
            if offsets is None:
                return f"{self._place} {place}"
            i = int(np.searchsorted(offsets, place, side="right")) - 1
            return f"{self._item} {i}, {self._place} {place - offsets[i]}"

        return encode(self.joined_labels(y), self.classes_, where=where)


def _weights_of_all(y, unit=None):
    """The weights of all nodes, times the unit of their example; None if y has none."""
    parts = list(map(split_weights, y))
    if all(weights is None for _, weights in parts):
        return None
    return np.concatenate(
        [
            (np.ones(len(labels)) if weights is None else weights)
            * (1.0 if unit is None else unit(y_i))
            for y_i, (labels, weights) in zip(y, parts, strict=True)
        ]
    )


def depths_of(parents):
    """The number of ancestors of each node; -1 on a cycle."""
    children = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[children], np.arange(-1, len(parents) + 1))
    depths = np.full(len(parents), -1)
    level, depth = children[starts[0] : starts[1]], 0
    while len(level):
        depths[level] = depth
        depth += 1
        level = np.concatenate(
            [children[starts[v + 1] : starts[v + 2]] for v in level.tolist()]
        )
    return depths


def places_in(order, nodes):
    """The places of nodes in an order; -1 stays -1."""
    places = np.full(len(order) + 1, -1)
    places[order] = np.arange(len(order))
    return places[nodes]
