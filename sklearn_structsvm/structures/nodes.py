"""What structures with a label for each of several nodes have in common."""

from itertools import product
from math import prod

import numpy as np

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.labels import (
    class_weight_vector,
    encode,
    label_cost_matrix,
    learn_classes,
    unseen,
)
from sklearn_structsvm._utils.sequence_scores import token_accuracy_score
from sklearn_structsvm.structures._k_best import k_best, max_marginals
from sklearn_structsvm.structures.base import Structure, as_object_array


class NodeStructure(Structure):
    """Labels of nodes with features, pairs of them depending on each other.

    A subclass has parameters named as the parts of its weights: "emission",
    "transition", and those of `_biases`; and "normalize_loss" and "label_costs". It
    says what an example is by `_features` and what its weights are good for.
    """

    has_classes = True

    # Parts of the weights that have one number per class, in their order.
    _biases: tuple[str, ...] = ("bias",)
    # Words for an example and for one node of it.
    _item, _place = "example", "node"

    def _features(self, x):
        """The matrix of features of an example's nodes."""
        return x

    def fit(self, X, y, *, classes=None, class_weight=None):
        """Learn the classes and the number of features.

        Parameters
        ----------
        X : sequence of n examples
        y : sequence of n label arrays of shape (T_i,)
        classes : array-like or None
            All labels there are, where y may lack some.
        class_weight : dict, "balanced" or None
            Multiplies the costs of the nodes whose true label is the class.

        Returns
        -------
        self
        """
        labels = self.joined_labels(y)
        self.n_features_in_ = self._features(X[0]).shape[1]
        self.classes_ = learn_classes(labels, classes)
        weight = class_weight_vector(class_weight, self.classes_, labels)
        self.label_costs_ = label_cost_matrix(
            self.label_costs, len(self.classes_), weight
        )
        self.n_weights_ = self._count_weights()
        if self.n_weights_ == 0:
            names = ", ".join(["emission", "transition", *self._biases[:-1]])
            raise ValueError(
                f"{type(self).__name__} needs at least one part: {names} and "
                f"{self._biases[-1]} are all False."
            )
        return self

    def _fitted_shapes(self):
        n = len(self.classes_)
        return {"n_features_in_": (), "label_costs_": (n, n)}

    def _count_weights(self):
        return sum(prod(shape) for _, shape in self._parts())

    def _parts(self):
        """Names and shapes of the parts that the model has, in their order."""
        k = len(self.classes_)
        parts = [("emission", (self.n_features_in_, k))]
        parts += [(name, (k,)) for name in self._biases]
        parts += [("transition", (k, k))]
        return [(name, shape) for name, shape in parts if getattr(self, name)]

    def weight_parts(self, w):
        """The weights by name, as far as the model has them.

        Parameters
        ----------
        w : ndarray of shape (`n_weights_`,)
            Such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            "emission" of shape (n_features, n_classes), biases of shape (n_classes,),
            "transition" of shape (n_classes, n_classes), the label of the previous
            position, or of the parent, first.
        """
        w = as_floats("w", w, self.n_weights_, finite=False)
        parts, at = {}, 0
        for name, shape in self._parts():
            size = prod(shape)
            parts[name] = np.reshape(w[at : at + size], shape)
            at += size
        return parts

    def decode(self, x, w):
        return self._compiled_decode([x], w)[0]

    def _from_the_roots(self, x, w):
        """An order of the nodes, parents first, and potentials and parents in it.

        As `_k_best` takes them; here those of a chain.
        """
        return slice(None), *self.potentials(x, w), None

    def k_best(self, x, w, k):
        """The k best labelings of one example, best first, and their scores.

        Returns
        -------
        labelings : ndarray of shape (m, T)
            m <= k: as many as there are.
        scores : ndarray of shape (m,)
            ⟨w, φ(x, y)⟩, decreasing.
        """
        order, theta, transition, parents = self._from_the_roots(x, w)
        found, scores = k_best(theta, transition, k, parents)
        labels = np.empty_like(found)
        labels[:, order] = found
        keep = ~self._impossible(labels.ravel(), np.full(len(labels), len(theta)))
        return self.classes_[labels[keep]], scores[keep]

    def max_marginals(self, x, w):
        """Entry (v, c): the score of the best labeling of x that has class c at v."""
        order, *potentials = self._from_the_roots(x, w)
        found = max_marginals(*potentials)
        result = np.empty_like(found)
        result[order] = found
        return result

    def _impossible(self, labels, lengths):
        """Which labelings cannot be, whatever the scores; encoded, one after another."""
        return np.zeros(len(lengths), dtype=bool)

    def labelings(self, x):
        n_nodes = self._features(x).shape[0]
        return map(np.array, product(self.classes_, repeat=n_nodes))

    def loss(self, y_true, y):
        truth, labels = self._encode([y_true]), self._encode([y])
        if len(truth) != len(labels):
            raise ValueError(
                f"Labelings of lengths {len(truth)} and {len(labels)} cannot be compared."
            )
        return float(self.label_costs_[truth, labels].sum() * self._unit(len(truth)))

    def score(self, y, y_pred, sample_weight=None):
        """Token accuracy; an example's weight counts for each of its nodes."""
        return token_accuracy_score(y, y_pred, sample_weight=sample_weight)

    def joined_labels(self, y):
        """All labels, one example after another."""
        y = [np.asarray(y_i) for y_i in y]
        if len({y_i.dtype.kind if y_i.dtype.kind in "US" else "" for y_i in y}) > 1:
            # numpy makes 1 to "1" beside "a".
            y = [y_i.astype(object) for y_i in y]
        return np.concatenate(y)

    def unseen_labels(self, y):
        return unseen(self.joined_labels(y).tolist(), self.classes_)

    def _any_labels(self, X):
        """Labels for an oracle that is only asked to decode."""
        lengths = [self._features(x).shape[0] for x in X]
        return [np.repeat(self.classes_[:1], length) for length in lengths]

    def _unit(self, length):
        return 1.0 / length if self.normalize_loss else 1.0

    def _encode(self, y, offsets=None):
        def where(place):
            if offsets is None:
                return f"{self._place} {place}"
            i = int(np.searchsorted(offsets, place, side="right")) - 1
            return f"{self._item} {i}, {self._place} {place - offsets[i]}"

        return encode(self.joined_labels(y), self.classes_, where=where)


class ForestSums:
    """Sums over the labelings of nodes that make a forest, of a `NodeStructure`.

    A subclass says by `_split_nodes` how an oracle's rows are those of the examples.
    """

    def marginals(self, X, w, n_threads=1):
        """Probabilities of the classes of each node, p(y) being ∝ exp ⟨w, φ(x, y)⟩.

        Returns
        -------
        ndarray of shape (n,), dtype object
            Item i has shape (T_i, n_classes).
        """
        nodes, _, _ = self._sums(X, None, w, n_threads)
        return self._split_nodes(X, nodes)

    def entropies(self, X, w, n_threads=1):
        """Entropy of the distribution over the labelings of each example, (n,)."""
        return self._sums(X, None, w, n_threads)[1]

    def log_probabilities(self, X, y, w, n_threads=1):
        """log p(y_i) of the labeling of each example, (n,); -inf for what cannot be."""
        others = self._any_labels(X)
        has_none = np.zeros(len(X), dtype=bool)
        if self.unseen_labels(y):
            has_none[:] = [bool(self.unseen_labels([y_i])) for y_i in y]
            y = [others[i] if has_none[i] else y[i] for i in range(len(X))]
        has_none |= self._impossible(self._encode(y), [len(y_i) for y_i in y])
        y = [others[i] if has_none[i] else y[i] for i in range(len(X))]
        log_sums = self._sums(X, y, w, n_threads)[2]
        return np.where(has_none, -np.inf, np.minimum(-log_sums, 0.0))

    def least_costly(self, marginals):
        """Labelings of least expected loss, of what `marginals` returned."""
        best = [(nodes @ self.label_costs_).argmin(axis=1) for nodes in marginals]
        return as_object_array([self.classes_[labels] for labels in best])

    def _sums(self, X, y, w, n_threads):
        return self._compiled_oracle(X, y).marginals(w, n_threads)
