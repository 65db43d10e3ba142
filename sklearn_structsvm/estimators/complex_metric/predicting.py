"""Predictions, scores and metadata of a classifier that is a mixture of several."""

import re
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    check_classes,
    check_shape,
    refuse_masked,
)
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.labels import (
    refuse_missing,
    unseen,
    unseen_words,
)
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.mean_costs import check_costs
from sklearn_structsvm.confusion.registry import METRICS
from sklearn_structsvm.confusion.scoring import counted_groups
from sklearn_structsvm.distributed.dask_workers import holds_dask, map_lazily
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    OverProbabilities,
    refuse_misspelt,
    routes_metadata,
)
from sklearn_structsvm.estimators.complex_metric.pairs import for_pairs
from sklearn_structsvm.estimators.complex_metric.probabilities import class_probabilities

# A parameter of one of several constraints.
PLACED = re.compile(r"constraints__(\d+)__(.+)")


def _has_scores(estimator):
    """Whether there are two classes, or a single rule, over class probabilities."""
    mixture = vars(estimator).get("mixture_")
    is_plugin = mixture is not None and mixture.needs_probabilities
    return is_plugin and (mixture.n_classes == 2 or np.shape(mixture.weights) == (1,))


def _is_multi_class(metric):
    """False for the names of metrics of two classes."""
    if not isinstance(metric, str) or metric not in METRICS:
        return True
    try:
        METRICS[metric]().resolve(range(3))
    except ValueError:
        return False
    return True


class RandomizedClassifier(OverProbabilities):
    """Everything of `ComplexMetricClassifier` except `fit`.

    It uses the parameters `estimator`, `metric`, `lmo`, `cv`, `n_jobs`, `group_blind` and
    `group_estimator`.
    """

    PREDICTIONS = ("predict", "predict_proba", "decision_function", "score")

    # Groups and costs are requested by default, so users need no
    # set_fit_request(sensitive_features=True) and the like.
    __metadata_request__fit = {"sensitive_features": True, "costs": True}
    __metadata_request__predict = {"sensitive_features": True, "costs": True}
    __metadata_request__predict_proba = {"sensitive_features": True, "costs": True}
    __metadata_request__decision_function = {"sensitive_features": True, "costs": True}
    __metadata_request__score = {"sensitive_features": True, "costs": True}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of this estimator, its inner estimator and the constraints.

        The parameters of a single constraint are named like ``constraints__slack``, those
        of several constraints by position, like ``constraints__0__slack``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the inner estimator and the constraints.

        Returns
        -------
        params : dict
            Parameter names and values.
        """
        params = super().get_params(deep)
        if deep and isinstance(self.constraints, (list, tuple)):
            for i, constraint in enumerate(self.constraints):
                if isinstance(constraint, Constraint):
                    for name, value in constraint.get_params().items():
                        params[f"constraints__{i}__{name}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator, its inner estimator and the constraints.

        Parameters
        ----------
        **params : dict
            Parameter names, as in `get_params`, and values.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If a name is unknown.
        """
        placed = {key: PLACED.match(key) for key in params}
        others = {key: value for key, value in params.items() if not placed[key]}
        super().set_params(**others)
        for key, match in placed.items():
            if match is None:
                continue
            if key not in self.get_params():
                names = [name for name in self.get_params() if PLACED.match(name)]
                raise ValueError(
                    f"Invalid parameter {key!r}. Valid parameters are {names}."
                )
            self.constraints[int(match[1])].set_params(**{match[2]: params[key]})
        return self

    def _classifier(self):
        return default_classifier() if self.estimator is None else self.estimator

    def _classifiers(self):
        found = super()._classifiers()
        group_estimator = self._options.group_estimator
        if group_estimator is not None:
            found["group_estimator"] = group_estimator
        return found

    @property
    def _is_plugin(self):
        lmo = self._options.lmo
        return isinstance(lmo, str) and lmo == "plugin"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = _is_multi_class(self.metric)
        return tags

    @property
    @of_one_fit
    def threshold_(self) -> float:
        """The probability of the named label above which it is predicted."""
        found = self._single_rule("threshold_").cuts().told[0]
        if len(found) > 1:
            raise AttributeError(
                "There is no single threshold_, because the rules of the groups differ. "
                "See thresholds_."
            )
        return float(found[0])

    @property
    @of_one_fit
    def thresholds_(self) -> dict:
        """`threshold_` of each group, by its name."""
        found = self._single_rule("thresholds_").cuts().told[0].tolist()
        if self.groups_ is not None:
            check_shape("groups_", self.groups_, "n_groups")
        if self.groups_ is None or len(found) != len(self.groups_):
            raise AttributeError(
                "There are no thresholds_, because the classifier has no rules per group."
            )
        names = [name if np.ndim(name) == 0 else tuple(name) for name in self.groups_]
        return dict(zip(names, found, strict=True))

    def _single_rule(self, name, *, is_threshold=True):
        """The mixture if it is of one rule; AttributeError otherwise."""
        mixture = vars(self).get("mixture_")
        if mixture is None:
            raise AttributeError(f"There is no {name} before fit.")
        check_classes(self.classes_)
        mixture.check(len(self.classes_))
        if not mixture.needs_probabilities:
            why = "the classifiers of this lmo decide without class probabilities"
        elif is_threshold and len(self.classes_) != 2:
            why = f"there are {len(self.classes_)} classes"
        elif is_threshold and mixture.n_groups > 1:
            why = "the rule decides by probabilities of groups and labels"
        elif len(mixture.weights) > 1:
            why = (
                f"the classifier is a mixture of {len(mixture.weights)} rules; "
                "randomized=False finds the best single one"
            )
        elif mixture.needs_costs:
            why = "the rule depends on the costs of the example: predict(X, costs=...) "
            why += "takes the least expected cost, with a surcharge for constraints"
        else:
            return mixture
        raise AttributeError(f"There is no {name}: {why}.")

    def _routed(self, method, sensitive_features, costs, params):
        """The metadata for the classifier's `predict_proba`."""
        refuse_misspelt(self, params, method)
        if not routes_metadata():
            if params and not self._is_plugin:
                raise TypeError(
                    f"With lmo={self._options.lmo!r}, {method} does not accept "
                    f"{sorted(params)}. Only lmo='plugin' passes parameters to the "
                    "estimator."
                )
            return params
        if sensitive_features is not None:
            params = params | {"sensitive_features": sensitive_features}
        if costs is not None:
            params = params | {"costs": costs}
        if not self._is_plugin:
            # It is not asked for probabilities. If anything else is requested, that is an
            # error.
            process_routing(self, method, **params)
            return {}
        routed = process_routing(self, method, **params)
        if self._options.group_estimator is None:
            return routed.estimator.predict_proba
        return for_pairs(
            routed.estimator.predict_proba, routed.group_estimator.predict_proba
        )

    def _mixture_input(self, method, X, sensitive_features, costs, params):
        """The P (or rows) by which the mixture decides, the cells, the costs or None."""
        check_is_fitted(self)
        refuse_foreign(X=X, sensitive_features=sensitive_features, costs=costs)
        X = as_canonical(X)
        refuse_masked("X", X)
        check_classes(self.classes_)
        self.mixture_.check(len(self.classes_))
        params = self._routed(method, sensitive_features, costs, params)
        if self.mixture_.needs_probabilities:
            classes = self.classes_
            if self.mixture_.n_groups > 1:
                classes = np.arange(self.mixture_.n_groups * len(classes))
            P = class_probabilities(self.estimator_, X, classes, **params)
            n_samples = len(P)
            if self.mixture_.correction is not None:
                P = self.mixture_.correction(P)
        else:
            # Its classifiers decide by rows.
            (P,) = indexable(X)
            n_samples = _num_samples(P)
        if costs is not None:
            costs = check_costs(costs, n_samples, self.classes_)
            if not self.mixture_.needs_costs or costs.ndim == 2:
                # These costs depend on the true label, which is unknown at prediction.
                costs = None
        if not self.mixture_.needs_cells and sensitive_features is None:
            # Its classifiers see only the rows.
            return P, np.zeros(n_samples, dtype=np.intp), costs
        return P, self.cell_finder_.find(X, n_samples, sensitive_features), costs

    @of_one_fit
    def predict(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        costs: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        **params: Any,
    ) -> np.ndarray:
        """Predict the label of each row, by one classifier of the mixture.

        By default a hash of the row's values in the columns of `fit` selects the
        classifier. A row therefore always gets the same label, whatever other rows and
        columns come with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Input data, or whatever `estimator` accepts.
        sensitive_features : array-like or data frame, default=None
            Shape (n_samples,) or (n_samples, n_columns). Group of each row. Required if
            `groups_` is not None, unless `group_blind` is True or ``lmo="weighted"``.
            Ignored otherwise. If `fit` had a data frame, the columns of another one are
            matched by name.
        costs : array-like of shape (n_samples, n_classes, n_classes), default=None
            Costs of predictions for each row, if `fit` had costs of this form: entry [r,
            i, j] is the cost of predicting j if the label is i. None uses the mean costs
            of `fit`, so that only the features decide. Ignored otherwise.
        random_state : int, RandomState instance or None, default=None
            If not None, the classifier is drawn at random for each row, not by hashing.
        **params : dict
            Parameters passed to the `predict_proba` method of `estimator`. With metadata
            routing enabled, parameters requested by it.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.

        Raises
        ------
        ValueError
            If a group did not occur in training, or if `sensitive_features` lacks a
            column of `fit` or has one that `fit` did not have.
        """
        if holds_dask(X):
            check_is_fitted(self)
            options = {"sensitive_features": sensitive_features, "costs": costs, **params}
            if random_state is not None or any(v is not None for v in options.values()):
                raise ValueError("For a Dask collection, predict accepts only X.")
            return map_lazily(self, "predict", X, self.classes_[:0])
        P, cells, costs = self._mixture_input(
            "predict", X, sensitive_features, costs, params
        )
        uniforms = None
        if len(self.mixture_.weights) > 1:
            uniforms = self.row_hash_.choices(X, len(cells), random_state)
        n_threads = count_threads(self.n_jobs)
        codes = self.mixture_.predict(P, cells, uniforms, n_threads, costs)
        return self.classes_[codes]

    @of_one_fit
    def predict_proba(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        costs: ArrayLike | None = None,
        **params: Any,
    ) -> np.ndarray:
        """Compute the probability with which the mixture predicts each class.

        These are the frequencies of the labels of ``predict(X, random_state=...)``, and
        say little about which rows are more likely to have a label. Do not compute areas
        under ROC curves or log-losses from them: use `decision_function` for a ranking,
        and ``estimator_.predict_proba`` for estimates of the class probabilities.

        Parameters
        ----------
        X, sensitive_features, costs, **params : as in `predict`
            Input data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1, in the order of `classes_`. The entries are 0 and 1 if
            all classifiers of the mixture agree.
        """
        P, cells, costs = self._mixture_input(
            "predict_proba", X, sensitive_features, costs, params
        )
        return self.mixture_.proba(P, cells, count_threads(self.n_jobs), costs)

    @available_if(_has_scores)
    @of_one_fit
    def decision_function(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        costs: ArrayLike | None = None,
        **params: Any,
    ) -> np.ndarray:
        """Compute the negative expected cost of each class.

        Available for a single rule and, for two classes, for mixtures. It is what metrics
        of a ranking, such as ``scoring="roc_auc"``, and ``CalibratedClassifierCV`` use.
        For a mixture it is the mean over its rules. It then ranks rows as the
        probabilities of `estimator` do (in each group), but where the rules disagree its
        sign need not be the prediction, which is random there.

        Parameters
        ----------
        X, sensitive_features, costs, **params : as in `predict`
            Input data.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; a single rule predicts the class with the largest score. For two
            classes their difference, which is positive where ``classes_[1]`` is
            predicted.
        """
        if not _has_scores(self):
            # Another thread has fitted since the method was looked up.
            name = type(self).__name__
            raise AttributeError(f"This {name!r} has no attribute 'decision_function'")
        P, cells, costs = self._mixture_input(
            "decision_function", X, sensitive_features, costs, params
        )
        scores = self.mixture_.scores(P, cells, costs)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @of_one_fit
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        costs: ArrayLike | None = None,
        **params: Any,
    ) -> float:
        r"""Compute the metric of the predictions; higher is better.

        Parameters
        ----------
        X, sensitive_features, costs, **params : as in `predict`
            Test data.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the examples.

        Returns
        -------
        score : float
            The value of ``metric.scorer()``: :math:`1 - \psi(C)`, or :math:`-\psi(C)` for
            a metric whose values are costs. Labels that were not seen in `fit` form
            classes of their own that are never predicted, and a warning lists them.
        """
        refuse_missing(y)
        predicted = self.predict(
            X, sensitive_features=sensitive_features, costs=costs, **params
        )
        metric, labels = self.metric_, self.classes_
        new = unseen(as_array("y", y).ravel().tolist(), labels)
        if new:
            warn_caller(unseen_words(new, labels))
            labels = np.array([*labels.tolist(), *new], dtype=object)
            if self.pos_label_ is not None and "pos_label" in metric.get_params(False):
                # With more than two labels, the positive one cannot be guessed.
                metric = clone(metric).set_params(pos_label=self.pos_label_)
        measure = metric(
            y,
            predicted,
            labels=labels,
            sample_weight=sample_weight,
            sensitive_features=counted_groups(self, X, sensitive_features),
            costs=costs if metric.needs_costs else None,
        )
        return measure if metric.greater_is_better else -measure
