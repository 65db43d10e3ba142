"""What classifiers over the probabilities of others share: metadata and tags."""

import copy
from inspect import Parameter, signature

from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import _num_samples, has_fit_parameter

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import CallbackSupportMixin
from sklearn_structsvm._utils.mistakes import meant
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.weights import check_weights, effective_weights
from sklearn_structsvm.estimators.base import AtomicFitMixin
from sklearn_structsvm.estimators.inner import learned, tags_of


class OverProbabilities(
    AtomicFitMixin, CallbackSupportMixin, MetaEstimatorMixin, ClassifierMixin,
    BaseEstimator,
):  # fmt: skip
    """For estimators with parameters `estimator` and `cv`: metadata and tags.

    `PREDICTIONS`: the methods that need probabilities.
    """

    PREDICTIONS: tuple[str, ...]

    # False if the rules do not use probabilities.
    _is_plugin = True

    def _classifier(self):
        """`estimator`, or its default if None."""
        raise NotImplementedError

    def _classifiers(self):
        """The classifiers that provide probabilities, by the names of parameters."""
        return {"estimator": self._classifier()}

    def _is_fitted_already(self, *classifiers):
        """Whether these classifiers (or all of them) are used without a fit."""
        return isinstance(self.cv, str) or all(
            isinstance(classifier, FrozenEstimator)
            for classifier in classifiers or self._classifiers().values()
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        own = tags_of(self._classifier())
        if own is not None:
            tags.input_tags = copy.copy(own.input_tags)
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this estimator and its inner estimator.

        Returns
        -------
        routing : MetadataRouter
            The routing information.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if not self._is_plugin:
            return router
        for name, classifier in self._classifiers().items():
            mapping = MethodMapping().add(caller="fit", callee="predict_proba")
            if not self._is_fitted_already(classifier):
                mapping.add(caller="fit", callee="fit")
            for method in self.PREDICTIONS:
                mapping.add(caller=method, callee="predict_proba")
            router.add(method_mapping=mapping, **{name: classifier})
        return router.add(
            splitter=self.cv,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )

    def _routed_fit(self, fit_params, **metadata):
        """`route_fit` for the classifiers that will be fitted.

        The default classifier, whose penalty is per row, gets effective numbers of rows.
        """
        weights = metadata.get("sample_weight")
        if self.estimator is None and weights is not None:
            weights = check_weights(weights, _num_samples(weights))
            metadata["sample_weight"] = effective_weights(weights)
        to_fit = {
            name: None if self._is_fitted_already(classifier) else classifier
            for name, classifier in self._classifiers().items()
        }
        return route_fit(self, to_fit, fit_params, **metadata)


def routes_metadata():
    """Whether scikit-learn's metadata routing is on."""
    return bool(get_config()["enable_metadata_routing"])


def refuse_misspelt(meta, fit_params, method="fit"):
    """TypeError for what a method of a classifier over others would hand to those."""
    own = [
        name
        for name, parameter in signature(getattr(type(meta), method)).parameters.items()
        if name != "self" and parameter.kind is not Parameter.VAR_KEYWORD
    ]
    for name in fit_params:
        if words := meant(name, own, 0.8):
            raise TypeError(f"{method} got {name!r}.{words}")
        if name == "groups" and not routes_metadata():
            words = f"{method} got 'groups'. Groups for cv need metadata routing: "
            words += "sklearn.set_config(enable_metadata_routing=True)."
            if "sensitive_features" in own:
                words += " Groups of a metric or a constraint are sensitive_features."
            raise TypeError(words)
        if not routes_metadata() and not _passes_on(meta, method, name):
            inner = type(meta._classifier()).__name__
            raise TypeError(
                f"{method} has no parameter {name!r}, and neither has {inner}, to which "
                f"others go. It has {', '.join(own)}."
            )


def _passes_on(meta, method, name):
    """Whether a parameter may be one of the classifier."""
    if method != "fit":
        method = "predict_proba"
    elif meta._is_fitted_already():
        return True
    called = getattr(meta._classifier(), method, None)
    if called is None or not meta._is_plugin:
        return True
    known = signature(called).parameters
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in known.values())
    return takes_any or name in known


def route_fit(meta, classifiers, fit_params, *, sample_weight=None, **metadata):
    """Parameters that `fit` of a classifier over others passes on.

    `classifiers` (dict of {name: classifier or None}): the classifiers by the names of
    parameters; None if one is already fitted. Without routing, only "estimator" gets
    `fit_params`. `sample_weight`, `**metadata` or None: metadata that `meta` uses
    itself. Returns a `Bunch`: for each of the classifiers `fit` and `predict_proba`,
    for `splitter` `split`.
    """
    if routes_metadata():
        own = {"sample_weight": sample_weight, **metadata}
        own = {name: value for name, value in own.items() if value is not None}
        return process_routing(meta, "fit", **fit_params, **own)
    if classifiers["estimator"] is None and fit_params:
        raise TypeError(
            f"fit does not accept {sorted(fit_params)}, because the estimator is already "
            "fitted."
        )
    routed = Bunch(splitter=Bunch(split={}))
    for name, classifier in classifiers.items():
        of_fit = fit_params if name == "estimator" else {}
        routed[name] = Bunch(fit=of_fit, predict_proba={})
        if sample_weight is None or classifier is None:
            continue
        if has_fit_parameter(classifier, "sample_weight"):
            routed[name].fit = of_fit | {"sample_weight": sample_weight}
        else:
            warn_caller(
                f"fit of {type(classifier).__name__} does not accept sample_weight. The "
                "confusion matrix is weighted, but the probabilities are not. For "
                "pipelines and OneVsRestClassifier enable metadata routing, see "
                "sklearn.set_config(enable_metadata_routing=True).",
            )
    return routed


def unwrapped(model, X):
    """The deciding estimator inside pipelines and the like, and its X."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, (GridSearchCV, RandomizedSearchCV)):
            model = learned(model, "best_estimator_", model.estimator)
        elif isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model) > 1 and X is not None else X
            model = model[-1]
        else:
            return snapshot(model), X
