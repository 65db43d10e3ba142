"""Mixtures: classifiers, each with the probability of deciding about a row."""

import numpy as np

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import (
    as_floats,
    as_tuple,
    check_floats,
    check_integer,
    check_sequence,
)
from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm.confusion.lmo.costs import rule_costs
from sklearn_structsvm.confusion.lmo.plugin import by_pair, mixture_proba, predict_plugin
from sklearn_structsvm.estimators.complex_metric.thresholds import NamedThresholds


class RandomizedRule:
    """Base of mixtures: predictions from those of each classifier.

    `weights` (T,): positive, of sum 1. `needs_probabilities`, `needs_cells`,
    `needs_costs`: what the classifiers need.
    """

    def codes(self, t, P, cells, costs=None, n_threads=1):
        """Codes of the labels that classifier t predicts.

        By class probabilities P, or by rows if it does not need any.
        """
        raise NotImplementedError

    def predict(self, P, cells, uniforms, n_threads=1, costs=None):
        """Codes of the labels. A number in [0, 1) for each row chooses its classifier."""
        if len(self.weights) == 1:
            return self.codes(0, P, cells, costs, n_threads)
        chosen = np.searchsorted(np.cumsum(self.weights), uniforms, side="right")
        # The weights may sum to slightly less than 1.
        chosen = np.minimum(chosen, len(self.weights) - 1)
        codes = np.empty(len(uniforms), dtype=np.intp)
        for t in np.unique(chosen):
            rows = np.flatnonzero(chosen == t)
            part = _safe_indexing(P, rows)
            own = None if costs is None else costs[rows]
            codes[rows] = self.codes(t, part, cells[rows], own, n_threads)
        return codes

    def proba(self, P, cells, n_threads=1, costs=None):
        """The probability of each label in `predict`, for random uniforms."""
        found, rows = np.zeros((len(cells), self.n_classes)), np.arange(len(cells))
        for t, weight in enumerate(self.weights):
            found[rows, self.codes(t, P, cells, costs, n_threads)] += weight
        return found


class PluginMixture(RandomizedRule):
    """Plug-in classifiers of loss tensors, each with its probability.

    `loss_matrices` (T, m, k, k). `weights` (T,): positive, of sum 1. `own_costs` ((T,),
    (m, k, k)) or None: if rules depend on individual costs: each rule's price per unit
    of cost, and the mean costs, which replace costs that are not given. `correction` or
    None: the correction of the probabilities before a decision. `n_groups`: as for
    `PluginLMO`: g > 1 if rules do not see the group, so probabilities belong to pairs.
    `named` ({0, 1}): for two classes, the place of the label whose probability is
    compared with a threshold.
    """

    needs_probabilities = needs_cells = True

    def __init__(
        self, weights, loss_matrices, own_costs=None, correction=None, n_groups=1, named=1
    ):
        self.weights = weights
        self.loss_matrices = loss_matrices
        self.own_costs = own_costs
        self.correction = correction
        self.n_groups = n_groups
        self.named = named

    @property
    def n_classes(self):
        """The number of labels."""
        return self.loss_matrices.shape[-1]

    @property
    def needs_costs(self):
        """Whether rules depend on costs of the example."""
        return self.own_costs is not None

    def mean_losses(self):
        """Loss tensors with the mean costs in place of individual ones."""
        if self.own_costs is None:
            return self.loss_matrices
        prices, means = self.own_costs
        return self.loss_matrices + prices[:, None, None, None] * means

    def cuts(self):
        """The `NamedThresholds` of all rules, (T, m); None if there are none."""
        if self.n_classes != 2 or self.n_groups > 1:
            return None
        return NamedThresholds(self.mean_losses(), self.named)

    def _expected(self, t, P, cells, costs):
        """Cost of each prediction by rule t, for examples with costs."""
        P = P.astype(np.float64, copy=False)
        own = np.einsum("ri,rij->rj", P, costs)
        return rule_costs(P, self.loss_matrices[t], cells, self.own_costs[0][t], own)

    def check(self, n_classes):
        """Raise ValueError if the state was changed after the fit and is inconsistent."""
        shape = "n_classifiers", "n_cells", n_classes, n_classes
        check_floats("mixture_.loss_matrices", self.loss_matrices, *shape)
        check_floats("mixture_.weights", self.weights, len(self.loss_matrices))
        if self.own_costs is not None:
            prices, means = as_tuple("mixture_.own_costs", self.own_costs, 2)
            check_floats("mixture_.own_costs[0]", prices, len(self.weights))
            shape = self.loss_matrices.shape[1:]
            check_floats("mixture_.own_costs[1]", means, *shape)
        if self.correction is not None:
            shares, factors = self.correction.shares, self.correction.factors
            calibration = self.correction.calibration
            as_floats("mixture_.correction.floor", self.correction.floor)
            check_floats("mixture_.correction.calibration", calibration, n_classes + 1)
            check_floats("mixture_.correction.shares", shares, n_classes)
            check_floats("mixture_.correction.factors", factors, n_classes, n_classes)
        n_cells = self.loss_matrices.shape[1]
        check_integer("mixture_.n_groups", self.n_groups, 1)
        check_integer("mixture_.named", self.named, 0, 1)
        if n_cells % self.n_groups:
            raise ValueError(
                f"mixture_.n_groups must divide the {n_cells} cells; got {self.n_groups}."
            )

    def codes(self, t, P, cells, costs=None, n_threads=1):
        """The plug-in rule of a loss tensor."""
        if costs is not None:
            return self._expected(t, P, cells, costs).argmin(axis=1)
        cuts = self.cuts()
        if cuts is not None:
            return cuts.codes((t, cells), P)
        return predict_plugin(
            P, self.mean_losses()[t], cells, n_groups=self.n_groups, n_threads=n_threads
        )

    def proba(self, P, cells, n_threads=1, costs=None):
        """Same as for `RandomizedRule`, in one pass if rules are not thresholds."""
        if costs is not None or self.cuts() is not None:
            return super().proba(P, cells, n_threads, costs)
        return mixture_proba(
            P,
            self.mean_losses(),
            self.weights,
            cells,
            n_groups=self.n_groups,
            n_threads=n_threads,
        )

    def scores(self, P, cells, costs=None):
        """The negative expected cost of each class, averaged over the classifiers."""
        if costs is not None:
            return -sum(
                weight * self._expected(t, P, cells, costs)
                for t, weight in enumerate(self.weights)
            )
        cuts = self.cuts()
        if cuts is not None:
            found = np.zeros((len(P), 2))
            for t, weight in enumerate(self.weights):
                found[:, 1] += weight * cuts.scores((t, cells), P)
            return found
        losses = np.tensordot(self.weights, self.mean_losses(), axes=1)
        loss = by_pair(losses, self.n_groups)
        scores = np.empty((len(P), loss.shape[-1]))
        for cell in np.unique(cells):
            rows = cells == cell
            scores[rows] = -(P[rows] @ loss[cell])
        return scores


class ClassifierMixture(RandomizedRule):
    """The classifiers that an LMO found, each with its probability.

    `weights` (T,). `classifiers`: the handles of `lmo`, which predicts with them.
    """

    needs_probabilities = needs_costs = False
    correction = None

    def __init__(self, weights, classifiers, lmo, n_classes):
        self.weights = weights
        self.classifiers = classifiers
        self.lmo = lmo
        self.n_classes = n_classes

    @property
    def needs_cells(self):
        """Whether predictions depend on the cells."""
        return self.lmo.needs_cells

    def check(self, n_classes):
        """Same as for `PluginMixture`."""
        check_sequence("mixture_.classifiers", self.classifiers, "a list")
        check_floats("mixture_.weights", self.weights, len(self.classifiers))
        if self.n_classes != n_classes:
            raise ValueError(
                f"mixture_.n_classes must be {n_classes}, the number of classes_; "
                f"got {self.n_classes}."
            )

    def codes(self, t, X, cells, costs=None, n_threads=1):
        """Predictions of one of the LMO's classifiers."""
        predicted = self.lmo.predict(self.classifiers[t], X, cells)
        answer = Answer("predict", self.lmo)
        return answer.codes(predicted, len(cells), self.n_classes)
