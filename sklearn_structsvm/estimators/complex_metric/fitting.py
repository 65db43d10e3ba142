"""From training data to a task and the oracle of its solver."""

from functools import partial

import numpy as np
from sklearn.utils import (
    Bunch,
    assert_all_finite,
    check_random_state,
    get_tags,
    indexable,
)
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import refuse_masked
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.complex_metric.correction import LabelCorrection
from sklearn_structsvm.estimators.complex_metric.oracles import (
    ClassifierOracle,
    PluginOracle,
    counted_as,
    smoothed,
)
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    feature_attributes,
)
from sklearn_structsvm.estimators.complex_metric.pairs import (
    IndependentPairs,
    check_prefit_groups,
    check_prefit_pairs,
    for_pairs,
    group_labels,
)
from sklearn_structsvm.estimators.complex_metric.predicting import RandomizedClassifier
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    check_classifier,
    class_probabilities,
    fit_to_labels,
    held_out_probabilities,
    prefit_classes,
)
from sklearn_structsvm.estimators.complex_metric.routing import routes_metadata
from sklearn_structsvm.estimators.complex_metric.row_hash import RowHash
from sklearn_structsvm.estimators.complex_metric.task import (
    make_task,
    read_constraints,
    refuse_empty_counts,
    warn_of_empty_counts,
)
from sklearn_structsvm.estimators.complex_metric.thresholds import Thresholds
from sklearn_structsvm.solvers.confusion.named import find_solver


class TrainedMixture(Thresholds, RandomizedClassifier):
    """A randomized classifier that turns training data into a task and its oracle.

    Attributes
    ----------
    _shared : dict or None
        The probabilities shared by fits to the same data that differ only in constraints.
    """

    _shared: dict | None = None

    @property
    def _bounds_uniformly(self):
        """Whether constraints are tightened by a bound for all rules."""
        is_uniform = isinstance(self.constraint_calibration, str)
        return self.constraint_confidence is not None and is_uniform

    def _warn_of_unused_groups(self):
        """UserWarning that nothing uses the groups that were passed to `fit`."""
        # Fits that differ only in constraints include one without them.
        is_comparison = self._shared is not None
        routed = routes_metadata() and any(
            get_routing_for_object(classifier).consumes(method, ["sensitive_features"])
            for classifier in self._classifiers().values()
            for method in ("fit", "predict_proba")
        )
        if not (is_comparison or routed):
            warn_caller(
                "sensitive_features were passed, but neither the metric nor a constraint "
                "uses groups: they are ignored. Pass constraints, such as "
                "EqualOpportunity(slack=0.05), or leave the groups out.",
                UserWarning,
            )

    @property
    def _promised(self):
        return f"constraint_confidence={self.constraint_confidence}"

    def _task(self, X, y, sample_weight, sensitive_features, costs):
        """The metric to minimize, the examples, and their labels."""
        require_y(self, y)
        refuse_foreign(
            X=X, y=y, sample_weight=sample_weight, sensitive_features=sensitive_features,
            costs=costs,
        )  # fmt: skip
        refuse_masked("X", X)
        refuse_missing(y)
        X, y = indexable(X, y)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        weights = check_weights(sample_weight, len(labels))
        self._check_combination(labels)
        classifier, classes = self._classifier(), np.unique(labels)
        if self._is_plugin and self._is_fitted_already(classifier):
            if not self.group_blind or self.group_estimator is not None:
                classes = prefit_classes(classifier, labels)
        task = make_task(
            self.metric, self.constraints, classes, X, labels, weights,
            sensitive_features, costs, self.group_blind, self.min_group_size,
        )  # fmt: skip
        if sensitive_features is not None and task.finder.groups is None:
            self._warn_of_unused_groups()
        if self.constraint_confidence is None:
            warn_of_empty_counts(task.constraints, task.cells)
        else:
            refuse_empty_counts(task.constraints, task.cells, self._promised)
        if task.costs is not None and not self._is_plugin:
            raise ValueError(
                "Individual costs of the examples require lmo='plugin'; got "
                f"lmo={self.lmo!r}."
            )
        if task.costs is not None and self._bounds_uniformly:
            raise ValueError(
                "constraint_calibration='uniform' does not support rules that depend on "
                "individual costs of the examples."
            )
        return task, labels

    def _oracle(self, task, X, labels, fit_params, metadata):
        """The oracle of a task, and the fitted attributes known with it."""
        rows, labels = indexable(X, labels)
        if not self._is_plugin:
            oracle, of_model = self._other_lmo(task, rows, fit_params), {}
        else:
            routed = self._routed_fit(fit_params, **metadata)
            if self.group_blind:
                oracle, of_model = self._plugin_of_pairs(task, rows, routed)
            else:
                oracle, of_model = self._plugin(
                    task, self._classifier(), rows, labels, task.classes, routed
                )
        return oracle, of_model | {
            "classes_": task.classes,
            "metric_": task.metric,
            "pos_label_": task.positive_label(),
            "cell_finder_": task.finder,
            "row_hash_": RowHash(X, self._hash_seed()),
            "groups_": task.finder.groups and task.finder.groups.array,
        }

    def _hash_seed(self):
        """The seed; without a random state it is the same in all fits."""
        if self.random_state is None:
            return 0
        return check_random_state(self.random_state).randint(1, 2**31 - 1)

    def _check_combination(self, labels):
        """Raise an error if parameters contradict each other or the number of labels."""
        constraints = read_constraints(self.constraints)
        if self.margin is not None and self.constraint_confidence is not None:
            raise ValueError(
                "margin is for constraints without a constraint_confidence, which finds "
                "a margin of its own."
            )
        _, solver = find_solver(self.solver, bool(constraints))
        solver.check_options(self.solver_options or {})
        kind = type_of_target(labels)
        if kind != "binary" and not get_tags(self).classifier_tags.multi_class:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, but metric={self.metric!r} is a metric of one class. For more "
                "classes pass it as an object with a pos_label."
            )
        if self._is_plugin:
            for name, classifier in self._classifiers().items():
                check_classifier(
                    classifier,
                    "predict_proba",
                    " CalibratedClassifierCV makes probabilities of a decision_function; "
                    "lmo='weighted' needs none.",
                    name,
                )

    def _plugin_of_pairs(self, task, X, routed):
        """Same as `_plugin`, from the probabilities of pairs (group, label)."""
        classifier, classes = self._classifier(), task.classes
        k, groups = len(classes), task.finder.groups
        # The cells of a group are adjacent.
        group = task.codes // (task.cells.n_cells // len(groups.names))
        pairs = group * k + task.y
        if self.group_estimator is not None:
            names = group_labels(groups)
            if self._is_fitted_already(self.group_estimator):
                if groups.pooled:
                    raise ValueError(
                        "group_estimator was fitted before, to groups that "
                        f"min_group_size={self.min_group_size} pools. Pass it unfitted, "
                        "or pool the groups before both fits and leave out "
                        "min_group_size."
                    )
                check_prefit_groups(self.group_estimator, names)
            classifier = IndependentPairs(
                classifier, self.group_estimator, classes, names
            )
            routed.estimator = Bunch(
                fit=for_pairs(routed.estimator.fit, routed.group_estimator.fit),
                predict_proba=for_pairs(
                    routed.estimator.predict_proba, routed.group_estimator.predict_proba
                ),
            )
            if self._is_fitted_already():
                classifier = classifier.as_fitted()
        elif self._is_fitted_already():
            check_prefit_pairs(classifier, pairs, k * len(groups.names))
        names = [(name, label) for name in groups.names for label in classes.tolist()]
        return self._plugin(
            task, classifier, X, pairs, np.arange(len(names)), routed, names
        )

    def _plugin(self, task, classifier, X, y, classes, routed, names=None):
        """The oracle of the plug-in rule and the attributes that are known with it.

        The classifier is fitted to `y`, and must return probabilities of `classes`.
        """
        if self._bounds_uniformly:
            counted = "labels"
        else:
            counted = counted_as(self.confusion, len(task.classes), task.costs)
            if self.confusion == "auto":
                counted = smoothed(counted, task)
        shared = {} if self._shared is None else self._shared
        if "probabilities" not in shared:
            shared["probabilities"] = self._fit_probabilities(
                classifier,
                X,
                y,
                routed,
                fit=fit_to_labels,
                read=partial(class_probabilities, classes=classes),
                hold_out=partial(
                    held_out_probabilities,
                    classes=classes,
                    cv=self.cv,
                    n_jobs=self.n_jobs,
                    names=names,
                    with_seen=counted == "smoothed",
                ),
                weights=task.weights,
            )
        model, probabilities, rows, folds = shared["probabilities"]
        used = slice(None) if rows is None else rows
        correction = None
        is_corrected = self.confusion == "auto" and counted == "probabilities"
        if is_corrected and len(task.classes) > 2 and not self.group_blind:
            correction = LabelCorrection.fit(
                probabilities, task.y[used], task.weights[used]
            )
        if correction is not None:
            probabilities = correction(probabilities)
        oracle = PluginOracle(
            task if rows is None else task.take(rows),
            probabilities,
            counted,
            count_threads(self.n_jobs),
            correction,
        )
        oracle.folds = folds
        found = {
            "counted_": counted,
            "estimator_": model,
            "label_factors_": None if correction is None else correction.factors,
        }
        return oracle, found | feature_attributes(model)

    def _other_lmo(self, task, X, fit_params):
        """The oracle of an LMO that finds classifiers."""
        if fit_params:
            raise TypeError(
                f"With lmo={self.lmo!r}, fit does not accept {sorted(fit_params)}. Only "
                "lmo='plugin' passes parameters other than weights to the estimator."
            )
        lmo = self.lmo
        if isinstance(lmo, str):
            lmo = WeightedLMO(self._classifier())
        return ClassifierOracle(task, lmo, X)
