"""Shared by chains and trees: exact decoding, sums, forbidden labels."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures._k_best import k_best
from sklearn_structsvm.structures.allowed_labels import (
    NoAllowedLabeling,
    as_allowed_labels,
    lowered,
)
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.constrained import constrained_argmax
from sklearn_structsvm.structures.nodes import NodeStructure


class ForestStructure(NodeStructure):
    """Labels of nodes that depend on one another along the edges of a forest.

    A subclass defines the forest by `_forest`, `_order` and `_edges`, the allowed pairs
    of labels by `_allowed`, and makes oracles; if `y` is None, these only decode and sum.
    """

    # Whether `transitions` can forbid a first label, a pair, and a last label.
    _forbidden: tuple[str, str, str]

    def _forest(self, X):
        """Parents of all nodes of all examples, -1 for roots, and their bounds."""
        raise NotImplementedError

    def _order(self, x):
        """An index of the nodes, parents first, and their parents in this order.

        The parents are None for a chain.
        """
        raise NotImplementedError

    def _edges(self, x):
        """Indices of the parents, and of the nodes that have these parents."""
        raise NotImplementedError

    def _allowed(self):
        """The table of `transitions`."""
        return tables.allowed_transitions(self.transitions, self.classes_)

    def _refuse_impossible(self, X):
        """ValueError if `allowed_` leaves an example no labeling."""
        raise NotImplementedError

    def _learn(self, X, labels, classes, class_weight):
        super()._learn(X, labels, classes, class_weight)
        self.allowed_ = self._allowed()

    def _check_truth(self, X, y):
        if self.allowed_ is not None:
            self._truth(X, y)

    def check_data(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        X, y = self._checked(X, y)
        if y is None and getattr(self, "allowed_", None) is not None:
            tables.check_allowed(self.allowed_, len(self.classes_))
            self._check_possible(X)
        return X, y

    def _check_possible(self, X):
        if self.allowed_ is None or all(map(self._is_empty, X)):
            return
        if not tables.has_common_label(self.allowed_):
            self._refuse_impossible(X)

    def check_fitted(self) -> None:
        super().check_fitted()
        tables.check_allowed(self.allowed_, len(self.classes_))

    def _truth(self, X, y):
        """Encode labels after checking that `transitions` allow them.

        Returns None if y is None, after checking that X has possible labelings.
        """
        if y is None:
            self._check_possible(X)
            return None
        parents, offsets = self._forest(X)
        labels = self._encode(y, offsets)
        if self.allowed_ is None:
            return labels
        bad = tables.forbidden_places(self.allowed_, labels, parents)
        if not bad.any():
            return labels
        place = int(bad.argmax())
        i = int(np.searchsorted(offsets, place, side="right")) - 1
        k, names = len(self.classes_), self.classes_.tolist()
        parent = labels[parents[place]] if parents[place] >= 0 else k
        first, pair, last = self._forbidden
        if self.allowed_[parent, labels[place]]:
            what = last.format(names[labels[place]])
        elif parent < k:
            what = pair.format(names[parent], names[labels[place]])
        else:
            what = first.format(names[labels[place]])
        raise ValueError(
            f"y[{i}] {what} ({self._item} {i}, {self._place} {place - offsets[i]}), "
            "which `transitions` forbids."
            + tables.told_scheme(self.transitions, self._label_lists(labels, offsets))
        )

    def _label_lists(self, labels, offsets):
        names = self.classes_.tolist()
        return [
            [names[c] for c in labels[start:stop]] for start, stop in pairwise(offsets)
        ]

    def _impossible(self, X, labels):
        if self.allowed_ is None:
            return super()._impossible(X, labels)
        parents, offsets = self._forest(X)
        bad = tables.forbidden_places(self.allowed_, labels, parents)
        return np.logical_or.reduceat(bad, offsets[:-1])

    def _best_allowed(self, X, w, allowed):
        return self.decode_batch(X, w, allowed=allowed)

    def decode_batch(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        labels = self._oracle_of(X, None, allowed).decode(w, 0.0, n_threads)
        if allowed is not None and self.allowed_ is not None:
            allowed = as_allowed_labels(allowed)
            labels_of_nodes = np.concatenate(list(self._split_nodes(X, labels)))
            self._refuse_conflicts(X, allowed, allowed.violates(labels_of_nodes))
        return self._split_nodes(X, self.classes_[labels])

    def _oracle_of(self, X, y, allowed):
        """An oracle of the allowed labels, or of all labels."""
        if allowed is None:
            return self._compiled_oracle(X, y)
        return self._compiled_oracle(X, y, allowed)

    def _refuse_conflicts(self, X, allowed, is_bad):
        if self.allowed_ is None or not is_bad.any():
            return
        i = int(is_bad.argmax())
        parents, _ = self._forest([X[i]])
        possible = tables.below(self.allowed_, parents, allowed[i])
        possible[parents < 0] &= self.allowed_[-1, :-1]
        dead = ~possible.any(axis=1)
        # The scores above it belong to labels that are not barred.
        node = int(np.where(dead, tables.depths_of(parents), -1).argmax())
        raise NoAllowedLabeling(i, f"{self._place} {node}")

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        x, y_true = self._check_one(x, y_true)
        oracle = self._compiled_oracle([x], [y_true])
        return self._split_nodes([x], self.classes_[oracle.decode(w, lam)])[0]

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
        x, y_true = self._check_one(x, y_true)
        truth = self._truth([x], [y_true])
        costs = self._node_costs(y_true) * self._unit(y_true)
        more = lam * costs.max(axis=1).sum()
        order, theta, transition, parents = self._topological_potentials(x, w, more)
        found = constrained_argmax(
            theta, transition, costs[order], truth[order],
            lam, alpha, beta, strict_alpha, strict_beta, parents=parents,
        )  # fmt: skip
        if found is None:
            return None
        labels = np.empty_like(found)
        labels[order] = found
        # Forbidden labelings have the lowest scores, so one is found only if no allowed
        # one is feasible.
        return None if self._impossible([x], labels)[0] else self.classes_[labels]

    def joint_feature(self, x: Any, y: Any) -> Any:
        (x,), (y,) = self.check_data([x], [y])
        nodes = np.eye(len(self.classes_))[self._encode([y])]
        parents, children = self._edges(x)
        pairs = self._sum_of_pairs(x, nodes[parents], nodes[children])
        return self._join_parts(x, nodes, pairs)

    def _sum_of_pairs(self, x, before, after):
        """The transitions' part of the joint feature, from the labels at both ends."""
        return before.T @ after

    def potentials(self, x: Any, w: np.ndarray) -> Any:
        """Compute the scores of labels and of transitions.

        The score of a labeling is the sum of ``theta[v, y[v]]`` over nodes v, plus the
        sum of ``transitions[y[u], y[v]]`` over nodes v with a previous position, or a
        parent, u. `transitions` is None if the model has none.

        Returns
        -------
        theta : ndarray of shape (T, n_classes)
            Scores of the labels at each node.
        transitions : ndarray of shape (n_classes, n_classes) or None
            Scores of the transitions.
        """
        (x,), _ = self._checked([x])
        parts = self.weight_parts(w)
        return self._node_scores(x, parts), parts.get("transition")

    def _topological_potentials(self, x, w, more=0.0):
        """Potentials in which forbidden labelings score lowest, with a margin of `more`.

        `more` is the largest difference in any other score that will be added.
        """
        order, parents = self._order(x)
        theta, transition = Answer("potentials", self).pair(self.potentials(x, w))
        shape = self._features(x).shape[0], len(self.classes_)
        theta = Answer("potentials", self).array(theta, *shape)[order]
        if np.ndim(transition) == 3:
            transition = tables.by_node(transition, len(theta))
        if self.allowed_ is not None:
            self._check_possible([x])
            theta, transition = tables.penalized(
                self.allowed_, theta, transition, more, parents=parents
            )
        return order, theta, transition, parents

    def max_marginals(
        self, x: Any, w: np.ndarray, allowed: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute the best score with each class at each node: (T, n_classes).

        `allowed`, of shape (T, n_classes), says which labels the nodes may have. Entries
        are -inf where no labeling is allowed by it and by `transitions`.
        """
        x, _ = self._check_one(x)
        result = super().max_marginals(x, w, allowed)
        if self.allowed_ is not None:
            parents, _ = self._forest([x])
            own = True if allowed is None else allowed
            possible = tables.reachable(self.allowed_, parents, own)
            is_bad = ~possible.any(axis=1).all(keepdims=True)
            self._refuse_conflicts([x], [allowed], is_bad)
            result[~possible] = -np.inf
        return result

    def labelings(self, x: Any) -> Iterable[Any] | None:
        if self.allowed_ is None:
            return super().labelings(x)
        found = tables.all_labelings(self.allowed_, self._forest([x])[0])
        return (self.classes_[labels] for labels in found)

    def marginals(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the marginal probabilities of the classes at each node.

        `allowed` has a mask of the labels that nodes may have for each example, or None.

        Returns
        -------
        ndarray of shape (n,), dtype object
            Item i has shape (T_i, n_classes).
        """
        nodes, _, _ = self._sums(X, None, w, n_threads, allowed)
        return self._split_nodes(X, nodes)

    def edge_marginals(
        self, x: Any, w: np.ndarray, allowed: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute the probabilities of the pairs of labels at the edges of one example.

        Sums go from the last nodes to the first ones, and probabilities the other way.

        Parameters
        ----------
        x : object
            One example.
        w : ndarray of shape (`n_weights_`,)
            Weight vector.
        allowed : ndarray of shape (T, n_classes), dtype bool, or None, default=None
            The labels that nodes may have.

        Returns
        -------
        ndarray of shape (n_edges, n_classes, n_classes)
            Indexed by the label of the previous position, or of the parent, and then by
            the label itself. Edges are in the order of the latter nodes.
        """
        order, parents = self._order(x)
        theta, transition = self.potentials(x, w)
        T, k = theta.shape
        theta = theta if allowed is None else np.where(allowed, theta, -np.inf)
        if parents is None:
            parents = np.arange(T) - 1
        theta = theta[order]
        transition = np.zeros((k, k)) if transition is None else transition
        transition = tables.by_node(transition, T)
        if self.allowed_ is not None:
            theta[np.ix_(parents < 0, ~self.allowed_[k, :k])] = -np.inf
            theta[np.ix_(tables.leaves(parents), ~self.allowed_[:k, k])] = -np.inf
            transition = np.where(self.allowed_[:k, :k], transition, -np.inf)
        ahead = theta.copy()
        for v in range(T - 1, -1, -1):
            if parents[v] >= 0:
                ahead[parents[v]] += logsumexp(transition[v] + ahead[v], axis=1)
        if (ahead[parents < 0].max(axis=1) == -np.inf).any():
            self._refuse_conflicts([x], [allowed], np.ones(1, dtype=bool))
        nodes, pairs = np.zeros((T, k)), np.zeros((T, k, k))
        for v in range(T):
            if parents[v] < 0:
                nodes[v] = softmax(ahead[v])
                continue
            before = nodes[parents[v]]
            used = before > 0.0
            steps = softmax((transition[v] + ahead[v])[used], axis=1)
            pairs[v][used] = before[used, np.newaxis] * steps
            nodes[v] = pairs[v].sum(axis=0)
        result = np.empty_like(pairs)
        result[order] = pairs
        return result[self._edges(x)[1]]

    def entropies(
        self, X: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the entropy of the distribution over labelings of each example."""
        return self._sums(X, None, w, n_threads, allowed)[1]

    def log_probabilities(
        self, X: Any, y: Any, w: np.ndarray, n_threads: int = 1, allowed: Any = None
    ) -> np.ndarray:
        """Compute the log-probability of each labeling; -inf if it is forbidden."""
        others = self._any_labels(X)
        has_none = np.zeros(len(X), dtype=bool)
        if self.unseen_labels(y):
            has_none[:] = [bool(self.unseen_labels([y_i])) for y_i in y]
            y = [others[i] if has_none[i] else y[i] for i in range(len(X))]
        labels = self._encode(y)
        has_none |= self._impossible(X, labels)
        if allowed is not None:
            has_none |= as_allowed_labels(allowed).violates(labels)
        y = [others[i] if has_none[i] else y[i] for i in range(len(X))]
        log_sums = self._sums(X, y, w, n_threads, allowed)[2]
        return np.where(has_none, -np.inf, 0.0 - log_sums)

    def least_costly(self, X: Any, marginals: Any, allowed: Any = None) -> np.ndarray:
        """Find the labelings with the smallest expected loss, given the marginals."""
        benefits_of = [-nodes @ self.label_costs_ for nodes in marginals]
        if allowed is not None:
            benefits_of = list(map(lowered, benefits_of, allowed))
        if self.allowed_ is None:
            best = [benefits.argmax(axis=1) for benefits in benefits_of]
            return as_object_array([self.classes_[labels] for labels in best])
        result = []
        for x, nodes in zip(X, benefits_of, strict=True):
            order, parents = self._order(x)
            benefits = tables.penalized(
                self.allowed_, nodes[order], None, parents=parents
            )
            labels = np.empty(len(nodes), dtype=np.intp)
            labels[order] = k_best(*benefits, 1, parents)[0][0]
            result.append(self.classes_[labels])
        return as_object_array(result)

    def _any_labels(self, X):
        if self.allowed_ is None:
            return super()._any_labels(X)
        labels = self._compiled_oracle(X, None).decode(np.zeros(self.n_weights_))
        return self._split_nodes(X, self.classes_[labels])

    def _sums(self, X, y, w, n_threads, allowed=None):
        sums = self._oracle_of(X, y, allowed).marginals(w, n_threads)
        if allowed is not None and self.allowed_ is not None:
            # Barred labels keep probability, which may be NaN, only without others.
            allowed = as_allowed_labels(allowed)
            nodes = np.concatenate(list(self._split_nodes(X, sums[0])))
            is_bad = (nodes[allowed.nodes] != 0.0) & ~allowed.masks
            self._refuse_conflicts(X, allowed, allowed.any_of_each(is_bad.any(axis=1)))
        return sums
