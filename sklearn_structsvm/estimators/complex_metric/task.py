"""From the arguments of a fit to the solvers' problem."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import check_classes, refuse_masked
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import (
    _check_method_params,
    _safe_indexing,
    lost_metadata_words,
)
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.labels import encode, refuse_missing
from sklearn_structsvm._utils.tables import listed_names
from sklearn_structsvm._utils.weights import check_weights, effective_weights
from sklearn_structsvm.confusion.cells import Cells, same_name
from sklearn_structsvm.confusion.counts import make_cells
from sklearn_structsvm.confusion.function_metric import FunctionMetric
from sklearn_structsvm.confusion.mean_costs import check_costs
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import get_metric, read_constraints
from sklearn_structsvm.confusion.scoring import baseline_labels
from sklearn_structsvm.confusion.tightening import find_bounds
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.complex_metric.over_probabilities import routes_metadata
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    check_classifier,
    prefit_classes,
)
from sklearn_structsvm.reading.fit_data import FitData
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# In a smaller group, one example moves a rate by more than the default slack of 0.05.
TINY_GROUP = 20


class CellFinder:
    """Finds the cell of the confusion tensor for each example.

    `groups`: None if neither the metric nor a constraint uses groups. `baseline`
    (classifier or None): the baseline of a churn constraint. `group_blind`: whether the
    groups of new examples are unknown.
    """

    def __init__(self, groups, baseline, classes, group_blind=False):
        self.groups, self.baseline, self.classes = groups, baseline, classes
        self.group_blind = group_blind

    @property
    def n_unseen_groups(self):
        """The number of groups that look the same to the rules."""
        return len(self.groups.names) if self.group_blind else 1

    def find(self, X, n_samples, sensitive_features):
        """Cells of new examples, shape (n_samples,).

        If groups are unknown, a cell is given by its place within its group.

        ValueError if groups are missing, or did not occur in training.
        """
        check_classes(self.classes)
        if not isinstance(self.group_blind, bool):
            raise ValueError(
                f"cell_finder_.group_blind must be True or False; got "
                f"{self.group_blind!r}: it was changed after fit."
            )
        if self.groups is not None:
            self.groups.check()
        if self.groups is None or self.group_blind:
            group_codes = np.zeros(n_samples, dtype=np.intp)
        elif sensitive_features is None:
            raise ValueError(
                "This classifier was fitted with groups, and depends on them: pass "
                f"sensitive_features.{lost_metadata_words()}"
            )
        else:
            group_codes = self.groups.encode(sensitive_features, n_samples)
        baseline = self.baseline_codes(X, sensitive_features)
        if baseline is None:
            return group_codes
        return group_codes * len(self.classes) + baseline

    def baseline_codes(self, X, sensitive_features):
        """Codes of the baseline's labels, or None without a baseline."""
        if self.baseline is None:
            return None
        if self.group_blind:
            # It must not see groups in training either, or it would later predict other
            # labels.
            sensitive_features = None
        labels = baseline_labels(self.baseline, X, sensitive_features)
        return encode(labels, self.classes, "The prediction of the baseline")


@dataclass
class Task:
    """The metric to minimize, and the examples.

    `metric`: resolved to the classes. `y`, `codes` (n,): codes of the labels, and
    cells. `weights` (n,): not negative, not all 0; of any scale. `cells`: of the
    labels' counts. `costs` (n, k) or (n, k, k) or None: individual costs, if the metric
    or a constraint uses them.
    """

    metric: object
    constraints: tuple
    finder: CellFinder
    classes: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    codes: np.ndarray
    cells: Cells
    costs: np.ndarray | None = None

    def positive_label(self):
        """The first positive label of the metric or of a constraint, or None."""
        labels = (
            part.positive_label(self.classes) for part in (self.metric, *self.constraints)
        )
        return next((label for label in labels if label is not None), None)

    def bounds(self, confidence):
        """`ConfidenceBounds` of each constraint: how far new examples may be off."""
        if not self.constraints:
            return []
        m, k = self.cells.priors.shape
        key, weights = self.codes * k + self.y, effective_weights(self.weights)
        sizes = [
            np.bincount(key, weights=w, minlength=m * k).reshape(m, k)
            for w in (weights, weights**2)
        ]
        return find_bounds(self.constraints, self.cells, np.array(sizes), confidence)

    def take(self, rows):
        """The task on some of the examples, which may be repeated."""
        y, weights, codes = self.y[rows], self.weights[rows], self.codes[rows]
        if not weights.any():
            raise ValueError("All held-out examples have a weight of zero.")
        m, k = self.cells.priors.shape
        priors = np.bincount(codes * k + y, weights=weights, minlength=m * k)
        priors /= weights.sum()
        cells = replace(self.cells, priors=priors.reshape(m, k))
        costs = None if self.costs is None else self.costs[rows]
        return replace(self, y=y, weights=weights, codes=codes, cells=cells, costs=costs)

    def problem(self, oracle):
        """The solvers' problem, with the row sums that the oracle counts."""
        cells = replace(
            self.cells,
            priors=np.asarray(oracle.priors_),
            label_priors=self.cells.priors,
        )
        return ConfusionProblem(self.metric, oracle, cells, self.constraints)


@dataclass
class Given:
    """What a fit was given, for the classifiers that it fits.

    `metadata`: `sample_weight`, `sensitive_features` and `costs`; None if not given.
    """

    X: Any
    labels: np.ndarray
    fit_params: dict
    metadata: dict

    def routed(self, estimator):
        """The metadata for the classifiers of `estimator`, as of `route_fit`."""
        return estimator._routed_fit(self.fit_params, **self.metadata)

    def take(self, rows):
        """The same for some of the rows."""
        metadata = {
            name: None if values is None else _safe_indexing(values, rows)
            for name, values in self.metadata.items()
        }
        fit_params = _check_method_params(self.X, self.fit_params, rows)
        X = _safe_indexing(self.X, rows)
        return Given(X, self.labels[rows], fit_params, metadata)


def bounds_uniformly(estimator):
    """Whether constraints are tightened by a bound for all rules."""
    is_uniform = isinstance(estimator._options.constraint_calibration, str)
    return estimator.constraint_confidence is not None and is_uniform


def promise_words(estimator):
    """The parameter that promises constraints, with its value."""
    return f"constraint_confidence={estimator.constraint_confidence}"


def read_task(estimator, X, y, fit_params, metadata, is_comparison=False):
    """The `Task` and what was `Given`, after all checks that need no fit.

    In a comparison there are fits with other constraints.
    """
    require_y(estimator, y)
    refuse_foreign(X=X, y=y, **metadata)
    refuse_masked("X", X)
    refuse_missing(y)
    rows, y = indexable(X, y)
    _refuse_several(estimator, X, y)
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    weights = check_weights(metadata["sample_weight"], len(labels))
    _check_combination(estimator, labels)
    classifier, classes = estimator._classifier(), np.unique(labels)
    if estimator._is_plugin and estimator._is_fitted_already(classifier):
        if not estimator.group_blind or estimator._options.group_estimator is not None:
            classes = prefit_classes(classifier, labels)
    task = make_task(
        estimator.metric, estimator.constraints, classes, rows, labels, weights,
        metadata["sensitive_features"], metadata["costs"], estimator.group_blind,
        estimator._options.min_group_size,
    )  # fmt: skip
    used = {"sensitive_features": task.finder.groups, "costs": task.costs}
    for name, own in used.items():
        # Fits that differ only in constraints include one without them.
        if metadata[name] is not None and own is None and not is_comparison:
            _warn_of_unused(estimator, name)
    if not (task.constraints or is_comparison or estimator.constraint_confidence is None):
        words = f"{promise_words(estimator)} promises nothing without constraints: "
        warn_caller(f"{words}pass some, such as Recall(at_least=0.8).")
    if estimator.constraint_confidence is None:
        warn_of_empty_counts(task.constraints, task.cells)
    else:
        refuse_empty_counts(task.constraints, task.cells, promise_words(estimator))
    if task.costs is not None and not estimator._is_plugin:
        raise ValueError(
            "Individual costs of the examples require lmo='plugin'; got "
            f"lmo={estimator._options.lmo!r}."
        )
    if task.costs is not None and bounds_uniformly(estimator):
        raise ValueError(
            "constraint_calibration='uniform' does not support rules that depend on "
            "individual costs of the examples."
        )
    return task, Given(X, labels, fit_params, metadata)


def _refuse_several(estimator, X, y):
    """ValueError if the examples have several labels each."""
    first = y[0] if isinstance(y, list | tuple | np.ndarray) and len(y) else 0
    n_labels = np.size(first) if np.ndim(first) else 1
    if n_labels == 1:
        return
    name = type(estimator).__name__
    given = f"{name} needs one label per row, but y[0] has {n_labels}"
    if FitData(X, y).has_items:
        raise ValueError(
            f"{given}. For sequences there are CRFClassifier and BCFWClassifier."
        )
    raise ValueError(f"{given}. For several labels there is MultilabelMetricClassifier.")


def _check_combination(estimator, labels):
    """Raise an error if parameters contradict each other or the number of labels."""
    is_certified = estimator.constraint_confidence is not None
    if estimator._options.margin is not None and is_certified:
        raise ValueError(
            "margin is for constraints without a constraint_confidence, which finds "
            "a margin of its own."
        )
    kind = type_of_target(labels)
    if kind != "binary" and not get_tags(estimator).classifier_tags.multi_class:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}, but metric={estimator.metric!r} is a metric of one class. For more "
            "classes pass it as an object with a pos_label."
        )
    for name, classifier in estimator._classifiers().items():
        check_classifier(
            classifier,
            "predict_proba" if estimator._is_plugin else "predict",
            " CalibratedClassifierCV makes probabilities of a decision_function; "
            "lmo='weighted' needs none.",
            name,
        )


def _warn_of_unused(estimator, name):
    """UserWarning that nothing uses the groups or costs that were passed to `fit`."""
    routed = routes_metadata() and any(
        get_routing_for_object(classifier).consumes(method, [name])
        for classifier in estimator._classifiers().values()
        for method in ("fit", "predict_proba")
    )
    if not routed:
        what, user = "groups", "constraints, such as EqualOpportunity(slack=0.05)"
        if name == "costs":
            what, user = name, "metric=ExpectedCost()"
        warn_caller(
            f"{name} were passed, but neither the metric nor a constraint uses {what}: "
            f"they are ignored. Pass {user}, or leave the {what} out.",
        )


def make_task(
    metric,
    constraints,
    classes,
    X,
    y,
    weights,
    sensitive_features,
    costs=None,
    group_blind=False,
    min_group_size="warn",
):
    """Check everything that can be checked before a fit.

    `weights` (n,) as of `Task`. `min_group_size` (int, "warn" or None): groups of fewer
    examples are pooled, with a warning; "warn" pools nothing. ValueError if the
    classes, labels or groups do not suit the metric or the constraints.
    """
    if len(classes) < 2:
        raise ValueError(
            "There must be at least two classes; the data has only one class, "
            f"{classes.tolist()}."
        )
    metric = get_metric(metric, classes)
    if isinstance(metric, FunctionMetric):
        metric.n_examples = int(np.count_nonzero(weights))
    constraints = read_constraints(constraints)
    groups = None
    if sensitive_features is not None:
        groups = Groups(sensitive_features, len(y))
    needed = [part for part in (metric, *constraints) if part.needs_groups]
    if needed and groups is None:
        raise ValueError(
            f"{needed[0]!r} uses groups: pass sensitive_features to fit."
            f"{lost_metadata_words()}"
        )
    if group_blind and groups is None:
        raise ValueError(
            "group_blind=True requires groups: pass sensitive_features to fit."
        )
    # If groups are not needed, all share one classifier.
    if not needed and not group_blind:
        groups = None
    if groups is not None and min_group_size not in (None, "warn"):
        _pool(groups, min_group_size, weights > 0.0, (metric, *constraints), needed)
    if groups is not None:
        _refuse_single_rows(groups, weights > 0.0, needed)
    finder = CellFinder(groups, _baseline(constraints), classes, bool(group_blind))
    baseline = finder.baseline_codes(X, sensitive_features)
    y = encode(y, classes)
    codes, cells = make_cells(y, weights, classes, finder.groups, baseline)
    for constraint in constraints:
        constraint.check(cells)
    if costs is not None:
        costs = check_costs(costs, len(y), classes)
    of_costs = [part for part in (metric, *constraints) if part.needs_costs]
    if of_costs and costs is None:
        raise ValueError(
            f"{of_costs[0]!r} uses individual costs of the examples: pass costs to fit."
        )
    costs = costs if of_costs else None
    if costs is not None and group_blind:
        raise ValueError(
            f"{of_costs[0]!r} uses individual costs of the examples, which "
            "group_blind=True does not support."
        )
    if groups is not None:
        if groups.pooled:
            _warn_of_pooled(groups, min_group_size, weights > 0.0)
        if min_group_size == "warn":
            _warn_of_tiny(groups, weights > 0.0)
        groups.forget_codes()
    return Task(metric, constraints, finder, classes, y, weights, codes, cells, costs)


def refuse_empty_counts(constraints, cells, promised, of=""):
    """InfeasibleConstraintError if a rate that is promised is among no examples.

    `promised`: the parameter that promises it, with its value.
    """
    for constraint in constraints:
        nothing = constraint.empty_counts(cells)
        if nothing:
            raise InfeasibleConstraintError(
                f"{constraint!r} cannot be promised with {promised}: there are no {of}"
                f"{listed_names(nothing, str)}. A rate of none may be anything (its "
                "p-value is 1). Merge groups or labels that are too rare, or leave them "
                "out of the constraint.",
                1.0,
            )


def warn_of_empty_counts(constraints, cells, C=None):
    """UserWarning for rates that are among no examples, or no predictions of C."""
    for constraint in constraints:
        nothing = constraint.empty_counts(cells, C)
        if nothing:
            warn_caller(
                f"{constraint!r} says nothing where there are no examples to count: "
                f"there are no {listed_names(nothing, str)}. New examples may violate "
                "it there by any amount.",
            )


def _pool(groups, min_size, used, parts, needed):
    """Pool small groups; ValueError if a metric or a constraint names one of them."""
    features = [part.feature for part in parts]
    kept = [feature for feature in features if feature is not None]
    combined = any(part.feature is None for part in needed)
    groups.pool(min_size, used, kept, combined)
    for part in parts:
        group = part.group
        for name, size, code in groups.pooled:
            if group is not None and same_name(name, group):
                raise ValueError(
                    f"{part!r} is about group {name!r}, which has only {size} examples "
                    f"and is pooled by min_group_size={min_size}. Use group="
                    f"{groups.names[code]!r} for the pooled group, or a smaller "
                    "min_group_size."
                )


def _warn_of_tiny(groups, used):
    """UserWarning that lists groups whose rates are mostly chance."""
    sizes = np.bincount(groups.codes[used], minlength=len(groups.names)).tolist()
    pairs = zip(groups.names, sizes, strict=True)
    tiny = [(name, size) for name, size in pairs if 0 < size < TINY_GROUP]
    if tiny:
        warn_caller(
            f"Groups of fewer than {TINY_GROUP} examples: "
            f"{listed_names(tiny, '{0[0]!r} ({0[1]})'.format)}. A constraint that they "
            "meet in training says little about new examples. "
            f"min_group_size={TINY_GROUP} pools them; min_group_size=None leaves them as "
            "they are.",
        )


def _refuse_single_rows(groups, used, needed):
    """ValueError if the groups that are compared have hardly any more than one row.

    Most of them then have one label only, and each of the others its own rule for it: a
    continuous column, for example, as it is.
    """
    codes = groups.codes[used]
    for part in needed:
        if part.group is not None:
            continue
        sizes = groups.sizes(codes, part.feature)
        if 2 * len(sizes) > len(codes):
            least = min(sizes)
            raise ValueError(
                f"sensitive_features has {len(sizes)} groups, the smallest of {least} "
                f"row{'s' if least > 1 else ''}: bin them, for example by quantiles, or "
                f"pool them by min_group_size. {len(codes)} rows are too few for "
                f"{part!r}."
            )


def _warn_of_pooled(groups, min_size, used):
    """UserWarning that lists the groups that were pooled, and pools that are small."""
    members = {}
    for name, size, code in groups.pooled:
        members.setdefault(code, []).append((name, size))
    listed = "; ".join(
        f"{listed_names(found, '{0[0]!r} ({0[1]})'.format)} as {groups.names[code]!r}"
        for code, found in members.items()
    )
    words = (
        f"Groups of fewer than min_group_size={min_size} examples are pooled: {listed}."
    )
    sizes = np.bincount(groups.codes[used], minlength=len(groups.names)).tolist()
    small = [(groups.names[c], sizes[c]) for c in members if sizes[c] < min_size]
    if small:
        words += (
            f" Pooled groups that are still smaller: "
            f"{listed_names(small, '{0[0]!r} ({0[1]})'.format)}. Constraints on so few "
            "examples say little; assign them to other groups if you can."
        )
    warn_caller(words)


def _baseline(constraints):
    """The classifier with which constraints compare, or None."""
    baselines = [c.baseline for c in constraints if c.needs_baseline]
    if any(other is not baselines[0] for other in baselines[1:]):
        raise ValueError(
            "constraints use several baselines; only one baseline is supported."
        )
    return baselines[0] if baselines else None
