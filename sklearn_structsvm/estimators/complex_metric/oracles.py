"""Oracles of a task: their answers for loss tensors, and the fitted attributes."""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, indexable

from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.diagnostics import label_diagnostics, numbers_of_rows
from sklearn_structsvm.confusion.lmo.checked import CheckedLMO
from sklearn_structsvm.confusion.lmo.costs import CostLMO
from sklearn_structsvm.confusion.lmo.plugin import PluginLMO
from sklearn_structsvm.confusion.lmo.thresholds import ThresholdLMO
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
from sklearn_structsvm.confusion.moved import moved
from sklearn_structsvm.confusion.roc_points import RocPoints
from sklearn_structsvm.confusion.smoothing import smoothed_shares
from sklearn_structsvm.estimators.complex_metric.correction import LabelCorrection
from sklearn_structsvm.estimators.complex_metric.mixtures import (
    ClassifierMixture,
    PluginMixture,
)
from sklearn_structsvm.estimators.complex_metric.pairs import pairs_of
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    class_probabilities,
    fit_probabilities,
    fit_to_labels,
    held_out_probabilities,
)
from sklearn_structsvm.estimators.complex_metric.row_hash import RowHash
from sklearn_structsvm.estimators.complex_metric.task import bounds_uniformly
from sklearn_structsvm.estimators.complex_metric.thresholds import named_losses
from sklearn_structsvm.estimators.inner import feature_attributes
from sklearn_structsvm.solvers.confusion.bounds import certified_gap, ratio_form
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL, Mixture


def counted_as(confusion, n_classes, costs=None):
    """The meaning of confusion="auto".

    For two classes a rule is a threshold, which is optimal for the labels, unless it also
    uses individual costs.
    """
    if confusion != "auto":
        return confusion
    by_threshold = n_classes == 2 and np.ndim(costs) != 3
    return "labels" if by_threshold else "probabilities"


def counted_by(estimator, task):
    """What the rules of a classifier are counted by, as of `PluginOracle`."""
    if bounds_uniformly(estimator):
        return "labels"
    counted = counted_as(estimator.confusion, len(task.classes), task.costs)
    is_plain = task.costs is None and not task.finder.group_blind
    by_shares = estimator.confusion == "auto" and counted == "labels" and is_plain
    return "smoothed" if by_shares else counted


def find_probabilities(estimator, task, given):
    """The `Probabilities` by which plug-in rules are chosen.

    Of pairs (group, label) if rules do not see the group.
    """
    X, y = indexable(given.X, given.labels)
    classifier, classes, names = estimator._classifier(), task.classes, None
    routed = given.routed(estimator)
    if task.finder.group_blind:
        classifier, y, names = pairs_of(estimator, task, classifier, routed)
        classes = np.arange(len(names))
    hold_out = partial(
        held_out_probabilities,
        classes=classes,
        cv=estimator.cv,
        n_jobs=estimator.n_jobs,
        names=names,
        with_seen=counted_by(estimator, task) == "smoothed",
    )
    return fit_probabilities(
        classifier,
        X,
        y,
        routed,
        fit=None if estimator._is_fitted_already() else fit_to_labels,
        read=partial(class_probabilities, classes=classes),
        hold_out=None if estimator.cv is None else hold_out,
        weights=task.weights,
    )


def make_oracle(estimator, task, given, probabilities):
    """The oracle of a task, and the fitted attributes that are known with it.

    Without `Probabilities` it finds classifiers.
    """
    known = {
        "classes_": task.classes,
        "metric_": task.metric,
        "pos_label_": task.positive_label(),
        "cell_finder_": task.finder,
        "row_hash_": RowHash(given.X, _hash_seed(estimator.random_state)),
        "groups_": task.finder.groups and task.finder.groups.array,
    }
    if probabilities is None:
        return _other_oracle(estimator, task, given), known
    model, P, rows = probabilities.model, probabilities.P, probabilities.rows
    if rows is not None:
        task = task.take(rows)
    counted, correction = counted_by(estimator, task), None
    is_corrected = estimator.confusion == "auto" and counted == "probabilities"
    if is_corrected and len(task.classes) > 2 and not task.finder.group_blind:
        correction = LabelCorrection.fit(P, task.y, task.weights)
        P = correction(P)
    n_threads = count_threads(estimator.n_jobs)
    oracle = PluginOracle(task, P, counted, n_threads, correction, probabilities.folds)
    known |= {
        "counted_": counted,
        "estimator_": model,
        "label_factors_": None if correction is None else correction.factors,
    }
    return oracle, known | feature_attributes(model)


def _other_oracle(estimator, task, given):
    """The oracle of an LMO that finds classifiers."""
    if given.fit_params:
        raise TypeError(
            f"With lmo={estimator._options.lmo!r}, fit does not accept "
            f"{sorted(given.fit_params)}. Only lmo='plugin' passes parameters other than "
            "weights to the estimator."
        )
    lmo = estimator._options.lmo
    if isinstance(lmo, str):
        lmo = WeightedLMO(estimator._classifier())
    (X,) = indexable(given.X)
    return ClassifierOracle(task, lmo, X)


def _hash_seed(random_state):
    """The seed; without a random state it is the same in all fits."""
    if random_state is None:
        return 0
    return check_random_state(random_state).randint(1, 2**31 - 1)


class PluginOracle:
    """The plug-in rule as the oracle of a task.

    `counted` ({"labels", "smoothed", "probabilities"}). `correction` or None: the
    correction that was applied to the probabilities. `folds` (list of slice or None):
    the part of the probabilities that belongs to each fold, if there are any.

    Attributes: `lmo` (PluginLMO, ThresholdLMO or CostLMO). `rules_are_losses`: whether
    handles are loss tensors.
    """

    rules_are_losses = True

    def __init__(self, task, P, counted, n_threads, correction=None, folds=None):
        self.task, self.n_threads = task, n_threads
        self.correction, self.folds = correction, folds
        self.n_cells = task.cells.n_cells
        self.named = 1
        if task.cells.n_classes == 2 and not task.finder.group_blind:
            self.named = int(task.positive_label() != task.classes[0])
        if self.named == 0:
            # What is compared is the probability of the named label.
            named = np.asarray(P, dtype=np.float64)[:, 0]
            P = np.column_stack([named, 1.0 - named])
        self.data = P, task.y, task.weights, task.codes, task.cells.n_cells
        self.counted, self.shares = counted, None
        if counted == "smoothed":
            scores = np.ascontiguousarray(self.data[0][:, 1])
            self.shares = smoothed_shares(scores, *self.data[1:])
        if task.costs is not None:
            self.data += (task.costs,)
            self.lmo = CostLMO(counted).fit(*self.data)
        else:
            self.lmo = self._fitted_lmo()

    def _fitted_lmo(self):
        """The LMO without individual costs, fitted to the data."""
        finder, k = self.task.finder, self.task.cells.n_classes
        if self.counted == "probabilities" or k != 2 or finder.group_blind:
            return self._plugin(self.counted)
        smooth = self.counted == "smoothed"
        lmo = ThresholdLMO(smooth=smooth, n_threads=self.n_threads)
        return lmo.fit(*self.data, shares=self.shares)

    def _plugin(self, counted):
        n_groups = self.task.finder.n_unseen_groups
        lmo = PluginLMO(counted, n_groups=n_groups, n_threads=self.n_threads)
        return lmo.fit(*self.data)

    @property
    def _prices_costs(self):
        """Whether rules depend on individual costs."""
        return self.task.costs is not None and self.lmo.knows_costs

    def roc_points(self):
        """The `RocPoints` of all rules, or None if rules are not thresholds."""
        task = self.task
        if task.cells.n_classes != 2 or task.finder.group_blind or self._prices_costs:
            return None
        P, y, weights, cells, m = self.data[:5]
        scores = np.ascontiguousarray(P[:, 1])
        shares = self.shares
        if shares is None:
            shares = scores if self.counted == "probabilities" else y
        shares = shares.astype(np.float64)
        if task.costs is None:
            return RocPoints(scores, shares, weights, cells, m)
        costs = self.lmo.costs[self.lmo.counted]
        return RocPoints(scores, shares, weights, cells, m, costs, self.lmo.cost_range)

    def counted_confusion(self, L):
        """The confusion tensor of a rule, as the solver counts it."""
        if self.shares is None:
            return self.lmo.confusion(L)
        P, _, weights, cells, m = self.data
        key = cells * 2 + self.lmo.predict(L, P, cells)
        weights = weights / weights.sum()
        masses = weights * (1.0 - self.shares), weights * self.shares
        both = [np.bincount(key, mass, 2 * m).reshape(m, 2) for mass in masses]
        return np.stack(both, axis=1)

    def take(self, rows):
        """The oracle for some of the examples."""
        return PluginOracle(
            self.task.take(rows), self.data[0][rows], self.counted, self.n_threads
        )

    def attributes(self, mixture):
        """Fitted attributes of a `Mixture`, beginning with the heaviest classifier."""
        weights, handles, _ = _sorted(mixture)
        handles = np.array(handles).reshape(len(weights), *self.lmo.shape_)
        m = self.n_cells
        losses = np.ascontiguousarray(handles[:, :m])
        own_costs = None
        if self._prices_costs:
            prices = np.array([self.lmo.price(L) for L in handles])
            own_costs = prices, self.lmo.mean_costs
        if self.named == 0 and isinstance(self.lmo, ThresholdLMO):
            losses = named_losses(losses, self.data[0][:, 1])
        return {
            "mixture_": PluginMixture(
                weights,
                losses,
                own_costs,
                self.correction,
                self.task.finder.n_unseen_groups,
                self.named,
            ),
            "mixture_weights_": weights,
            "loss_matrices_": losses,
            "cell_confusions_": self.lmo.mixture_confusion(handles, weights, "labels")[
                :m
            ],
        }

    def in_all_cells(self, mixture):
        """The `Mixture` as one of rules of all cells, which it is."""
        return mixture

    def diagnostics(self, confusion):
        """The `label_diagnostics` of a rule with this confusion matrix."""
        P, y, weights = self.data[:3]
        k = self.task.cells.n_classes
        # For pairs (group, label), the labels of a group are adjacent.
        P = P.reshape(len(y), -1, k).sum(axis=1)
        return label_diagnostics(P, np.eye(k)[y], weights, confusion.sum(axis=0))

    def certificate(self, result, tol, max_iter, max_time):
        """(bound, gap) of a result, and the number of LMO calls for them.

        If the rule is not optimal for what is counted, the gap is the model's: the
        mixture's value under the model, minus the bound for all classifiers that violate
        the constraints, under the model, by at most as much. The bound is then the
        mixture's value in what is counted, minus this gap.
        """
        if self.lmo.exact:
            return result.dual_objective, result.gap, 0
        if self.task.costs is not None:
            model = CostLMO("probabilities").fit(*self.data)
        else:
            model = self._plugin("probabilities")
        problem = self.task.problem(model)
        C = model.mixture_confusion(result.solution.handles, result.solution.weights)
        slack = max(problem.excess(C), 0.0) + FEASIBILITY_TOL
        relaxed = [moved(c, -slack, of_rates=False) for c in self.task.constraints]
        task = replace(self.task, constraints=relaxed)
        relaxed = task.problem(model)
        if not (relaxed.convex or ratio_form(relaxed) is not None):
            # The bound is that of its ratios, whatever descents find.
            max_iter = 1
        best = run_column_generation(
            relaxed, tol=tol, max_iter=max_iter, max_time=max_time
        )
        _, gap = certified_gap(problem, C, best.dual_objective)
        bound = result.objective - gap
        return bound, result.objective - bound, best.n_oracle_calls


class CommonOracle(PluginOracle):
    """The rules that are the same in all cells, without constraints.

    What they are counted by are the shares that the oracle of all rules counts, so that
    both agree on the value of a rule.

    `full` (PluginOracle): without individual costs, and not blind to groups.
    """

    def __init__(self, full):
        self.full, self.n_threads = full, full.n_threads
        self.correction, self.folds = full.correction, full.folds
        self.named = full.named
        self.counted, self.shares = full.counted, full.shares
        # What is returned is of all cells.
        task, self.n_cells = full.task, full.n_cells
        codes = np.zeros_like(task.codes)
        cells = Cells(task.cells.priors.sum(axis=0)[None], task.classes)
        self.task = replace(task, constraints=(), codes=codes, cells=cells)
        self.data = (*full.data[:3], codes, 1)
        self.lmo = self._fitted_lmo()

    def take(self, rows):
        return CommonOracle(self.full.take(rows))

    def in_all_cells(self, mixture):
        """A `Mixture` of these rules as one of rules of all cells."""
        handles = [np.repeat(L, self.full.n_cells, axis=0) for L in mixture.handles]
        confusions = np.array([self.full.counted_confusion(L) for L in handles])
        return Mixture(mixture.weights, handles, confusions)

    def attributes(self, mixture):
        return self.full.attributes(self.in_all_cells(mixture))


class ClassifierOracle:
    """An LMO that finds classifiers as the oracle of a task.

    `lmo`: the LMO, of which a copy is fitted.
    """

    rules_are_losses = False
    folds = None

    def __init__(self, task, lmo, X):
        lmo = clone(lmo)
        # Weights with mean 1, as fits to this many examples expect.
        weights = task.weights * (len(task.y) / task.weights.sum())
        m, k = task.cells.n_cells, task.cells.n_classes
        lmo.fit(X, task.y, sample_weight=weights, cells=task.codes, n_cells=m)
        self.task, self.predictor = task, lmo.without_examples()
        self.lmo = CheckedLMO(
            lmo, task.y, task.codes, task.weights, n_cells=m, n_classes=k
        )

    def roc_points(self):
        """None: rules are not thresholds."""

    def attributes(self, mixture):
        """Same as for `PluginOracle`."""
        weights, handles, confusions = _sorted(mixture)
        classifiers = [classifier for _, classifier in handles]
        k = self.task.cells.n_classes
        return {
            "mixture_": ClassifierMixture(weights, classifiers, self.predictor, k),
            "mixture_weights_": weights,
            "loss_matrices_": np.array([L for L, _ in handles]),
            "classifiers_": classifiers,
            "cell_confusions_": np.tensordot(weights, confusions, axes=1),
        }

    def in_all_cells(self, mixture):
        """Same as for `PluginOracle`."""
        return mixture

    def diagnostics(self, confusion):
        """Same as for `PluginOracle`, without the entries about probabilities."""
        shares = confusion.sum(axis=1), confusion.sum(axis=0)
        numbers = numbers_of_rows(*shares, self.task.weights)
        return {"share": shares[0], "predicted_share": shares[1], **numbers}

    def certificate(self, result, tol, max_iter, max_time):
        """Same as for `PluginOracle`, but an estimate, since an LMO may be inexact."""
        return result.dual_objective, result.gap, 0


def _sorted(mixture):
    order = np.argsort(-mixture.weights, kind="stable")
    handles = [mixture.handles[i] for i in order]
    return mixture.weights[order], handles, mixture.confusions[order]
