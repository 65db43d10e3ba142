"""How a mixture is trained: from data to an oracle, and from its solver to a fit."""

from time import perf_counter

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import (
    Bunch,
    assert_all_finite,
    check_random_state,
    get_tags,
    indexable,
)
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO
from sklearn_structsvm.estimators.base import PassReporter
from sklearn_structsvm.estimators.complex_metric.oracles import (
    ClassifierOracle,
    PluginOracle,
    counted_as,
)
from sklearn_structsvm.estimators.complex_metric.predicting import (
    RandomisedClassifier,
    routes_metadata,
)
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    check_classifier,
    class_probabilities,
    fit_to_labels,
    held_out_probabilities,
    prefit_classes,
)
from sklearn_structsvm.estimators.complex_metric.solvers import (
    find_solver,
    warn_of_constant,
    warn_of_shortfall,
)
from sklearn_structsvm.estimators.complex_metric.task import make_task
from sklearn_structsvm.solvers.loop import History


class TrainedMixture(RandomisedClassifier):
    """A randomised classifier with a `_fit` to (X, y, weights, groups, metadata)."""

    def _fit(self, X, y, sample_weight, sensitive_features, fit_params, transaction):
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        data = {"X": X, "y": y}
        X, y = indexable(X, y)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        weights = check_weights(sample_weight, len(labels))
        self._check_combination(labels)
        classifier, classes = self._classifier(), np.unique(labels)
        if self._is_plugin and self._is_fitted_already():
            classes = prefit_classes(classifier, labels)
        task = make_task(
            self.metric, self.constraints, classes, X, labels, weights,
            sensitive_features,
        )  # fmt: skip
        if self._is_plugin:
            routed = self._routed_fit(
                classifier, sample_weight, sensitive_features, fit_params
            )
            oracle, found = self._plugin(task, classifier, X, labels, routed)
        else:
            oracle, found = self._other_lmo(task, classifier, X, fit_params)
        found |= {
            "classes_": classes,
            "metric_": task.metric,
            "pos_label_": task.positive_label(),
            "cell_finder_": task.finder,
            "hash_seed_": self._hash_seed(),
            "groups_": task.finder.groups and task.finder.groups.array,
        }
        metadata = {
            "sample_weight": sample_weight,
            "sensitive_features": sensitive_features,
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
        kind = type_of_target(labels)
        if kind != "binary" and not get_tags(self).classifier_tags.multi_class:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, and metric={self.metric!r} is of one class against one other: "
                "for more, name it as an object with a pos_label."
            )
        if self._is_plugin:
            check_classifier(
                self._classifier(),
                "predict_proba",
                " CalibratedClassifierCV makes probabilities of a decision_function; "
                "lmo='weighted' needs none.",
            )
            return
        for name, is_set in (
            ("cv", isinstance(self.cv, str)),
            ("confusion", self.confusion == "probabilities"),
        ):
            if is_set:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is about class probabilities, which "
                    f"only lmo='plugin' uses; got lmo={self.lmo!r}."
                )

    def _routed_fit(self, classifier, sample_weight, sensitive_features, fit_params):
        """Metadata for the classifier and the splitter, as a Bunch."""
        if routes_metadata():
            if sample_weight is not None:
                fit_params = fit_params | {"sample_weight": sample_weight}
            if sensitive_features is not None:
                fit_params = fit_params | {"sensitive_features": sensitive_features}
            return process_routing(self, "fit", **fit_params)
        if self._is_fitted_already():
            if fit_params:
                raise TypeError(
                    f"fit takes no {sorted(fit_params)}, since the estimator is fitted "
                    "already and gets none."
                )
        elif sample_weight is not None:
            if has_fit_parameter(classifier, "sample_weight"):
                fit_params = fit_params | {"sample_weight": sample_weight}
            else:
                warn_caller(
                    f"fit of {type(classifier).__name__} does not take sample_weight: "
                    "the confusion matrix is weighted, the class probabilities are not. "
                    "A pipeline takes weights with metadata routing, see "
                    "sklearn.set_config(enable_metadata_routing=True).",
                    UserWarning,
                )
        return Bunch(
            estimator=Bunch(fit=fit_params, predict_proba={}), splitter=Bunch(split={})
        )

    def _plugin(self, task, classifier, X, y, routed):
        """The oracle of the plug-in rule and the attributes that are known with it."""
        rows = None
        if self._is_fitted_already():
            model = classifier
        else:
            if self.cv is not None:
                rows, probabilities = held_out_probabilities(
                    classifier, X, y, task.classes, self.cv, routed, self.n_jobs
                )
            model = fit_to_labels(clone(classifier), X, y, **routed.estimator.fit)
        if rows is None:
            probabilities = class_probabilities(
                model, X, task.classes, **routed.estimator.predict_proba
            )
        else:
            task = task.take(rows)
        oracle = PluginOracle(
            task,
            probabilities,
            counted_as(self.confusion, len(task.classes)),
            effective_n_jobs(self.n_jobs),
        )
        return oracle, {"estimator_": model} | _feature_attributes(model)

    def _other_lmo(self, task, classifier, X, fit_params):
        """As `_plugin`, for LMOs that find classifiers."""
        if fit_params:
            raise TypeError(
                f"With lmo={self.lmo!r}, fit takes no {sorted(fit_params)}: only the "
                "estimator of lmo='plugin' gets more than weights."
            )
        lmo = self.lmo
        if isinstance(lmo, str):
            lmo = WeightedLMO(classifier)
        return ClassifierOracle(task, lmo, X), {}

    def _solve(self, oracle, found, data, transaction):
        """Run the solver, report, store and warn."""
        problem = oracle.task.problem(oracle.lmo)
        history = History()
        name, run = find_solver(self.solver, problem)
        found = found | {"solver_": name}

        def snapshot():
            return found | oracle.attributes(history.solution)

        reporter = PassReporter(self, data, snapshot)
        reporter.begin()
        result = run(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            on_pass=reporter,
            history=history,
            **(self.solver_options or {}),
        )
        found = found | oracle.attributes(result.solution)
        if "estimator_" not in found:
            for one in found["classifiers_"]:
                found |= _feature_attributes(getattr(one, "classifier", one))
        vars(self).update(found)
        left = self.max_time
        if left is not None:
            left = max(left - (perf_counter() - history.started), 0.0)
        bound, gap, n_more = oracle.certificate(result, self.tol, self.max_iter, left)
        self.confusion_ = self.cell_confusions_.sum(axis=0)
        self.certified_confusions_ = result.solution.confusion
        self.objective_ = float(result.objective)
        self.dual_objective_ = float(bound)
        self.dual_gap_ = float(gap)
        self.constraint_violation_ = problem.own_violation(result.solution.confusion)
        self.n_iter_ = result.n_iter
        self.n_oracle_calls_ = result.n_oracle_calls + n_more
        self.history_ = result.history
        transaction.commit()
        reporter.end()
        warn_of_shortfall(self, result)
        warn_of_constant(self)


def _feature_attributes(model):
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}
