"""How a mixture is trained: from data to an oracle, and from its solver to a fit."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import (
    Bunch,
    assert_all_finite,
    check_random_state,
    get_tags,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import check_sparse
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
from sklearn_structsvm.confusion.tightening import Tightened
from sklearn_structsvm.estimators.base import FitProgress, PassReporter, require_y
from sklearn_structsvm.estimators.complex_metric.correction import LabelCorrection
from sklearn_structsvm.estimators.complex_metric.oracles import (
    ClassifierOracle,
    PluginOracle,
    counted_as,
    smoothed,
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
from sklearn_structsvm.estimators.complex_metric.routing import route_fit
from sklearn_structsvm.estimators.complex_metric.row_hash import RowHash
from sklearn_structsvm.estimators.complex_metric.task import make_task, read_constraints
from sklearn_structsvm.estimators.complex_metric.thresholds import (
    Thresholds,
    fold_thresholds,
)
from sklearn_structsvm.solvers.confusion.mixture import MET, InfeasibleConstraintError
from sklearn_structsvm.solvers.confusion.named import AUTO, find_solver
from sklearn_structsvm.solvers.loop import History

# A share of the predictions below this is what sums of weights leave of zero.
ROUNDING = 1e-12


class TrainedMixture(Thresholds, RandomizedClassifier):
    """A randomized classifier with a `_fit` to (X, y, weights, groups, metadata).

    Attributes
    ----------
    _shared : dict or None
        Where fits to the same data, which differ in constraints alone, keep the
        probabilities that they share.
    """

    _shared: dict | None = None

    def _fit(
        self, X, y, sample_weight, sensitive_features, costs, fit_params, transaction
    ):
        require_y(self, y)
        refuse_foreign(
            X=X, y=y, sample_weight=sample_weight, sensitive_features=sensitive_features,
            costs=costs,
        )  # fmt: skip
        data = {"X": X, "y": y}
        for name, values in data.items():
            check_sparse(values, name)
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
            sensitive_features, costs, self.group_blind,
        )  # fmt: skip
        if task.costs is not None and not self._is_plugin:
            raise ValueError(
                "Individual costs of the examples require lmo='plugin'; got "
                f"lmo={self.lmo!r}."
            )
        if task.costs is not None and self.constraint_confidence is not None:
            raise ValueError(
                "constraint_confidence does not support rules that depend on individual "
                "costs of the examples."
            )
        if self._is_plugin:
            routed = self._routed_fit(
                sample_weight, sensitive_features, costs, fit_params
            )
            if self.group_blind:
                oracle, found = self._plugin_of_pairs(task, X, routed)
            else:
                oracle, found = self._plugin(task, classifier, X, labels, classes, routed)
        else:
            oracle, found = self._other_lmo(task, classifier, X, fit_params)
        found |= {
            "classes_": classes,
            "metric_": task.metric,
            "pos_label_": task.positive_label(),
            "cell_finder_": task.finder,
            "row_hash_": RowHash(data["X"], self._hash_seed()),
            "groups_": task.finder.groups and task.finder.groups.array,
        }
        metadata = {
            "sample_weight": sample_weight,
            "sensitive_features": sensitive_features,
            "costs": costs,
        }
        metadata = {k: v for k, v in metadata.items() if v is not None} | fit_params
        self._solve(oracle, found, data | {"metadata": metadata}, transaction)

    def _hash_seed(self):
        """Without a random state the same in all fits: a fit changes no division."""
        if self.random_state is None:
            return 0
        return check_random_state(self.random_state).randint(1, 2**31 - 1)

    def _check_combination(self, labels):
        """Error for parameters that contradict each other or the number of labels."""
        constraints = read_constraints(self.constraints)
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

    def _routed_fit(self, sample_weight, sensitive_features, costs, fit_params):
        """Metadata for the classifiers and the splitter, as a Bunch."""
        to_fit = {
            name: None if self._is_fitted_already(classifier) else classifier
            for name, classifier in self._classifiers().items()
        }
        return route_fit(
            self, to_fit, fit_params, sample_weight=sample_weight,
            sensitive_features=sensitive_features, costs=costs,
        )  # fmt: skip

    def _plugin_of_pairs(self, task, X, routed):
        """As `_plugin`, from the probabilities of pairs (group, label)."""
        classifier, classes = self._classifier(), task.classes
        k, groups = len(classes), task.finder.groups
        # Cells of a group are side by side.
        group = task.codes // (task.cells.n_cells // len(groups.names))
        pairs = group * k + task.y
        if self.group_estimator is not None:
            names = group_labels(groups)
            if self._is_fitted_already(self.group_estimator):
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

        `y` is what the classifier is fitted to, and `classes` what its probabilities are
        wanted of.
        """
        shared = {} if self._shared is None else self._shared
        if "probabilities" not in shared:
            shared["probabilities"] = self._probabilities(
                classifier, X, y, classes, routed, names
            )
        model, probabilities, rows, folds = shared["probabilities"]
        if self.constraint_confidence is not None:
            counted = "labels"
        else:
            counted = counted_as(self.confusion, len(task.classes), task.costs)
            if self.confusion == "auto":
                counted = smoothed(counted, task)
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
            "estimator_": model,
            "label_factors_": None if correction is None else correction.factors,
        }
        return oracle, found | _feature_attributes(model)

    def _probabilities(self, classifier, X, y, classes, routed, names):
        """The fitted classifier, probabilities, and with folds their rows and which."""
        rows = folds = None
        if self._is_fitted_already():
            model = classifier
        else:
            if self.cv is not None:
                rows, probabilities, folds = held_out_probabilities(
                    classifier, X, y, classes, self.cv, routed, self.n_jobs, names
                )
            model = fit_to_labels(clone(classifier), X, y, **routed.estimator.fit)
        if rows is None:
            probabilities = class_probabilities(
                model, X, classes, **routed.estimator.predict_proba
            )
        return model, probabilities, rows, folds

    def _other_lmo(self, task, classifier, X, fit_params):
        """As `_plugin`, for LMOs that find classifiers."""
        if fit_params:
            raise TypeError(
                f"With lmo={self.lmo!r}, fit does not accept {sorted(fit_params)}. Only "
                "lmo='plugin' passes parameters other than weights to the estimator."
            )
        lmo = self.lmo
        if isinstance(lmo, str):
            lmo = WeightedLMO(classifier)
        return ClassifierOracle(task, lmo, X), {}

    def _solve(self, oracle, found, data, transaction):
        """Run the solver, report, store and warn."""
        problem = asked = oracle.task.problem(oracle.lmo)
        if self.constraint_confidence is not None:
            bounds = oracle.task.bounds(self.constraint_confidence)
            tightened = [Tightened(b) for b in bounds]
            oracle.task = replace(oracle.task, constraints=tightened)
            problem = oracle.task.problem(oracle.lmo)
            names = oracle.task.cells.group_names
            found = found | {"constraint_bounds_": [b.by_group(names) for b in bounds]}
        history = History()
        name, solver = find_solver(self.solver, problem.constrained)
        found = found | {"solver_": name}

        def snapshot():
            return found | oracle.attributes(history.solution)

        reporter = PassReporter(FitProgress.of_fit(self, data, self.max_iter), snapshot)
        reporter.begin()
        try:
            result = solver.run(
                problem,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                on_pass=reporter,
                history=history,
                **(self.solver_options or {}),
            )
        except InfeasibleConstraintError as error:
            if self.constraint_confidence is None:
                raise
            raise infeasible_with_confidence(self, bounds, error) from None
        found = found | oracle.attributes(result.solution)
        if "estimator_" not in found:
            for one in found["classifiers_"]:
                found |= _feature_attributes(getattr(one, "classifier", one))
        vars(self).update(found)
        left, deadline = self.max_time, np.inf
        if left is not None:
            deadline = history.started + left
            left = max(deadline - perf_counter(), 0.0)
        bound, gap, n_more = oracle.certificate(result, self.tol, self.max_iter, left)
        self.confusion_ = self.cell_confusions_.sum(axis=0)
        cells = slice(oracle.task.cells.n_cells)
        self.certified_confusions_ = result.solution.confusion[cells]
        self.objective_ = float(result.objective)
        self.dual_objective_ = float(bound)
        self.dual_gap_ = float(gap)
        self.constraint_violation_ = asked.violation(result.solution.confusion)
        self._note_cv_thresholds(oracle, deadline)
        self.n_iter_ = result.n_iter
        self.n_oracle_calls_ = result.n_oracle_calls + n_more
        self.history_ = result.history
        transaction.commit()
        reporter.end()
        warn_of_shortfall(self, result)
        warn_of_constant(self)
        if self.constraint_confidence is not None:
            warn_of_small_groups(self, bounds)

    def _note_cv_thresholds(self, oracle, deadline):
        """Where there are folds, and one rule of two classes by features alone."""
        vars(self).pop("cv_thresholds_", None)
        if getattr(oracle, "folds", None) is None:
            return
        try:
            self._single_rule("cv_thresholds_")
        except AttributeError:
            return
        found = fold_thresholds(
            oracle,
            oracle.folds,
            tol=self.tol,
            max_iter=self.max_iter,
            deadline=deadline,
        )
        self.cv_thresholds_ = found[:, 0] if found.shape[1] == 1 else found


def _feature_attributes(model):
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def warn_of_shortfall(estimator, result):
    """ConvergenceWarning where a run ended before it was done."""
    ran_out = result.status in ("max_iter", "max_time")
    is_done = result.status in ("converged", "stationary")
    is_violated = result.violation > MET
    if result.status == "stopped" or (is_done and not is_violated):
        return
    lacks = []
    if result.gap > estimator.tol and np.isfinite(result.gap):
        lacks.append(
            f"a gap of {result.gap:.3g} > tol={estimator.tol:.3g}: the metric is at most "
            "that far from its optimum"
        )
    if is_violated:
        lacks.append(f"a constraint violated by {estimator.constraint_violation_:.3g}")
    if not lacks and not ran_out:
        return
    if not ran_out:
        end, remedy = "found nothing more to do", "Use a larger tol, or another solver."
    else:
        limit = getattr(estimator, result.status)
        end = f"stopped at {result.status}={limit}"
        remedy = f"Increase {result.status}"
        remedy += "." if estimator.solver_ == AUTO else f", or use solver='{AUTO}'."
    what = " and ".join(lacks) or "no bound on how far it is from its optimum"
    warn_caller(
        f"{estimator.solver_} {end}, with {what}. {remedy}",
        ConvergenceWarning,
    )


def warn_of_constant(estimator):
    """UserWarning where the mixture predicts one class only."""
    predicted = estimator.confusion_.sum(axis=0) > ROUNDING
    if predicted.sum() != 1:
        return
    (always,) = estimator.classes_[predicted].tolist()
    never = estimator.classes_[~predicted].tolist()
    by, look_at = "of those that the LMO found", "LMO"
    if hasattr(estimator, "estimator_"):
        by, look_at = "by the class probabilities", "probabilities"
    warn_caller(
        f"The classifier predicts {always!r} for every training example and never "
        f"{never}: {by} nothing else is better for metric={estimator.metric!r} and the "
        f"constraints. Have a look at the {look_at} and the sample weights.",
        UserWarning,
    )


def infeasible_with_confidence(estimator, bounds, error):
    """The InfeasibleConstraintError of constraints that were tightened."""
    low = error.smallest_violation
    tightened = [
        f"{b.constraint!r} by up to {min(b.values.max(), b.spare):.3g}"
        for b in bounds
        if len(b.values)
    ]
    slacks = [
        f"slack={b.constraint.slack + low:.3g}"
        for b in bounds
        if getattr(b.constraint, "slack", None) is not None
    ]
    least = f", as {' or '.join(slacks)} does" if slacks else ""
    return InfeasibleConstraintError(
        f"With constraint_confidence={estimator.constraint_confidence} constraints are "
        f"tightened: {'; '.join(tightened)}. No classifier meets them then. The least "
        f"that can be asked at this confidence is {low:.3g} looser{least}. ({error})",
        low,
    )


def warn_of_small_groups(estimator, bounds):
    """UserWarning where a group is too small for the slack that was asked."""
    names = estimator.groups_
    for b in bounds:
        small = {}
        for group, value in zip(b.groups, b.values.tolist(), strict=True):
            if value > b.spare:
                small[group] = max(value, small.get(group, 0.0))
        if not small:
            continue
        listed = ", ".join(
            f"{names.tolist()[group]!r} (slack={value:.3g})"
            for group, value in sorted(small.items())
        )
        warn_caller(
            f"Groups are too small for {b.constraint!r} at constraint_confidence="
            f"{estimator.constraint_confidence}. With nothing left of the slack in "
            f"training, the least that could be asked for is: {listed}.",
            UserWarning,
        )
