"""Mixin of the classifiers over the probabilities of another one."""

import copy

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._utils.compat import CallbackSupportMixin
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.weights import check_weights, effective_weights
from sklearn_structsvm.estimators.base import AtomicFitMixin
from sklearn_structsvm.estimators.complex_metric.fold_scales import on_scale_of
from sklearn_structsvm.estimators.complex_metric.routing import route_fit


class OverProbabilities(
    AtomicFitMixin, CallbackSupportMixin, MetaEstimatorMixin, ClassifierMixin,
    BaseEstimator,
):  # fmt: skip
    """For estimators with parameters `estimator` and `cv`: metadata, tags, probabilities.

    Attributes
    ----------
    PREDICTIONS : tuple of str
        The methods that need probabilities.
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
        classifier = self._classifier()
        if hasattr(classifier, "__sklearn_tags__"):
            tags.input_tags = copy.copy(get_tags(classifier).input_tags)
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

    def _fit_probabilities(
        self, classifier, X, y, routed, *, fit, read, hold_out, weights=None
    ):
        """Fit the classifier, unless it is already fitted, and get its probabilities.

        Parameters
        ----------
        fit : callable
            (classifier, X, y, **params) -> classifier.
        read : callable
            (classifier, X, **params) -> probabilities.
        hold_out : callable
            (classifier, X, y, routed) -> rows, probabilities, folds and seen rows, if
            there is `cv`. Given seen rows, probabilities are moved to the model's scale.
        weights : ndarray or None
            Weights of the rows, for this move.

        Returns
        -------
        model : classifier
            Fitted to all rows.
        probabilities : what `read` returns
        rows, folds
            None without folds: the probabilities are then those of all rows.
        """
        rows = folds = None
        if self._is_fitted_already():
            model = classifier
        else:
            if self.cv is not None:
                rows, probabilities, folds, seen = hold_out(classifier, X, y, routed)
            model = fit(clone(classifier), X, y, **routed.estimator.fit)
        if rows is None or seen is not None:
            fitted = read(model, X, **routed.estimator.predict_proba)
            if rows is None:
                probabilities = fitted
            else:
                probabilities = on_scale_of(fitted, probabilities, folds, seen, weights)
        return model, probabilities, rows, folds


def feature_attributes(model):
    """`n_features_in_` and `feature_names_in_`, if the fitted model has them."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def unwrapped(model, X):
    """The deciding estimator inside pipelines and the like, and its X."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, (GridSearchCV, RandomizedSearchCV)):
            model = getattr(model, "best_estimator_", model.estimator)
        elif isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model) > 1 and X is not None else X
            model = model[-1]
        else:
            return snapshot(model), X
