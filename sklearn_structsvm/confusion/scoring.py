"""Metrics and constraints as callables and scikit-learn scorers."""

import re
from inspect import Parameter, signature
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.compat import _BaseScorer, lost_metadata_words
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.labels import unique_of
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.mean_costs import mean_cost

# The beginnings of words in a name such as GMean or MicroF1.
WORD_START = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


class Scored(DocumentedMixin):
    """Mixin that makes an object with `measured(C, cells)` callable.

    `needs_costs`: whether it depends on individual costs of the examples.
    """

    greater_is_better = True
    needs_costs = False
    _public_module = "sklearn_structsvm.metrics"
    # Parameters that some lack.
    pos_label: Any = None
    label: Any = None
    baseline: Any = None

    def measured_cost(self, cost: float) -> float:
        """The value shown to users for a mean cost, if the object `needs_costs`."""
        raise NotImplementedError

    def measured(self, C: np.ndarray, cells: Cells) -> float:
        """The value shown to users for the confusion tensor C of shape (m, k, k)."""
        raise NotImplementedError

    def named_label(self) -> Any:
        """The parameter `pos_label`, or `label`, which stands for it.

        Raises
        ------
        ValueError
            If both are given.
        """
        pos_label, label = self.pos_label, self.label
        if pos_label is not None and label is not None and pos_label != label:
            raise ValueError(
                f"pos_label={pos_label!r} and label={label!r} are two names of one "
                "parameter: pass only pos_label."
            )
        return label if pos_label is None else pos_label

    def positive_label(self, classes: Any) -> Any:
        """The positive label; None if all labels are treated alike.

        Parameters
        ----------
        classes : array-like of shape (k,)
            Class labels.
        """
        return None

    @property
    def __name__(self):
        """The name that scikit-learn shows for a scorer of this object."""
        return re.sub(WORD_START, "_", type(self).__name__).lower()

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *args: Any,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        sensitive_features: Any = None,
        y_baseline: ArrayLike | None = None,
        costs: Any = None,
    ) -> float:
        """The measure of predictions or, given (estimator, X, y), of an estimator.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            Labels of any kind; `y_pred` may be probabilities, of shape (n, k), with
            `labels`.
        sample_weight : array-like of shape (n,) or None, default=None
        labels : array-like of shape (k,) or None, default=None
            All classes, in order. By default the sorted classes that occur.
        sensitive_features : array-like of shape (n,) or (n, p) or None, default=None
            The groups, if they are needed.
        y_baseline : array-like of shape (n,) or None, default=None
            The labels of a baseline classifier, if they are needed.
        costs : array-like of shape (n, k) or (n, k, k) or None, default=None
            The costs of each example, if they are needed.

        Returns
        -------
        measure : float
            For an estimator, the sign is such that greater is better, so the object
            itself can be used as ``scoring=``.
        """
        if args:
            if len(args) > 1 or not hasattr(y_true, "predict"):
                raise TypeError(
                    f"{self.__name__} takes y_true and y_pred, or estimator, X and y, as "
                    "positional arguments. Pass all others by name."
                )
            scorer = self.scorer()
            return scorer(
                y_true,
                y_pred,
                *args,
                sample_weight=sample_weight,
                sensitive_features=sensitive_features,
                costs=costs,
            )
        if self.needs_costs:
            if costs is None:
                raise ValueError(
                    f"{self!r} uses individual costs of the examples: pass costs."
                    + lost_metadata_words("costs")
                )
            return self.measured_cost(
                mean_cost(
                    y_true, y_pred, costs, sample_weight=sample_weight, labels=labels
                )
            )
        return self.measured(
            *confusion_tensor(
                y_true,
                y_pred,
                sample_weight=sample_weight,
                labels=labels,
                sensitive_features=sensitive_features,
                y_baseline=y_baseline,
            )
        )

    def scorer(
        self, *, response: Literal["predict", "predict_proba"] = "predict"
    ) -> "ConfusionScorer":
        """Make a scorer for the parameter ``scoring``.

        With metadata routing enabled, the scorer requests `sensitive_features`, and
        passes them on to the estimator's `predict` if it accepts them. To request
        `sample_weight`, use ``.scorer().set_score_request(sample_weight=True)``.

        Parameters
        ----------
        response : {'predict', 'predict_proba'}, default='predict'
            Whether to count predicted labels or probabilities. With 'predict_proba', the
            score of a randomized classifier is that of its expected confusion matrix
            rather than of one draw. Other classifiers are treated as if they drew labels
            from their probabilities.

        Returns
        -------
        scorer : callable
            ``scorer(estimator, X, y, sample_weight=None, sensitive_features=None)``
            returns a float. Greater is better.
        """
        check_choice("response", response, ("predict", "predict_proba"))
        sign = 1 if self.greater_is_better else -1
        return ConfusionScorer(self, sign, {}, response_method=response)


class ConfusionScorer(_BaseScorer):
    """The scorer that `Scored.scorer` returns; it passes groups to `predict`."""

    def __init__(self, score_func, sign, kwargs, response_method):
        super().__init__(score_func, sign, kwargs, response_method=response_method)
        # The default requests: see scikit-learn's metadata routing. Version 1.8 does not
        # read them from a class, because a scorer has no `score`.
        self._metadata_request = MetadataRequest(owner=type(self).__name__)
        self.set_score_request(sensitive_features=True, costs=True, sample_weight=None)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> float:
        """Score an estimator; `sensitive_features` may be given by name.

        Unlike scikit-learn's own scorers, it takes them without metadata routing too.
        """
        if sample_weight is not None:
            kwargs["sample_weight"] = sample_weight
        return self._score(None, estimator, X, y_true, **kwargs)

    def set_score_request(self, **kwargs: Any) -> Self:
        """Request metadata, such as ``set_score_request(sample_weight=True)``.

        Requests for other metadata remain unchanged.
        """
        for name, alias in kwargs.items():
            self._metadata_request.score.add_request(param=name, alias=alias)
        return self

    def _score(
        self,
        method_caller,
        estimator,
        X,
        y_true,
        sample_weight=None,
        sensitive_features=None,
        costs=None,
    ):
        estimator, measure = snapshot(estimator), self._score_func
        response = respond(estimator, self._response_method, X, sensitive_features, costs)
        classes = getattr(estimator, "classes_", None)
        if self._response_method == "predict":
            known = {} if classes is None else {"classes_": classes}
            labels = unique_of(y_true=y_true, y_pred=response, **known)
        else:
            labels = unique_of(y_true=y_true, classes_=classes)
            probabilities = np.zeros((len(response), len(labels)))
            probabilities[:, np.searchsorted(labels, classes)] = response
            response = probabilities
        baseline = measure.baseline
        if baseline is not None:
            baseline = baseline_labels(baseline, X, sensitive_features)
        value = measure(
            y_true,
            response,
            labels=labels,
            sample_weight=sample_weight,
            sensitive_features=counted_groups(estimator, X, sensitive_features),
            y_baseline=baseline,
            costs=costs if measure.needs_costs else None,
        )
        return self._sign * value


def counted_groups(estimator, X, sensitive_features, with_absent=False):
    """Groups as a fitted classifier, or the last step of a pipeline, pools them.

    With `with_absent`, also those of its groups that do not occur here.
    """
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    finder = getattr(estimator, "cell_finder_", None)
    groups = getattr(finder, "groups", None)
    if sensitive_features is None or groups is None:
        return sensitive_features
    if groups.pooled or (with_absent and not finder.group_blind):
        return groups.of(sensitive_features, _num_samples(X))
    return sensitive_features


def check_baseline(baseline):
    """Raise ValueError if a constraint's baseline is not a classifier."""
    if not hasattr(baseline, "predict"):
        raise ValueError(f"baseline must be a fitted classifier, got {baseline!r}.")


def baseline_labels(baseline, X, sensitive_features):
    """Predictions of the classifier with which a constraint compares."""
    check_baseline(baseline)
    return respond(baseline, "predict", X, sensitive_features)


def respond(estimator, method, X, sensitive_features, costs=None):
    """`estimator.method(X)`, with groups and costs if given and understood.

    Costs of new examples are known only if they are given for each label, (n, k, k).
    """
    if not callable(getattr(estimator, method, None)):
        raise TypeError(
            f"A {type(estimator).__name__} has no method {method}, which is needed here."
        )
    given = {"sensitive_features": sensitive_features}
    if np.ndim(costs) == 3:
        given["costs"] = costs
    given = {
        name: values
        for name, values in given.items()
        if values is not None and takes(estimator, method, name)
    }
    found = getattr(estimator, method)(X, **given)
    answer, n = Answer(method, estimator), _num_samples(X)
    if method == "predict":
        return answer.of_each(found, n)
    return answer.probabilities(found, n, len(estimator.classes_))


def takes(estimator, method, name):
    """Whether `estimator.method(X, name=...)` is supported."""
    parameters = signature(getattr(estimator, method)).parameters
    if name in parameters:
        return True
    if all(p.kind is not Parameter.VAR_KEYWORD for p in parameters.values()):
        return False
    if get_config().get("enable_metadata_routing"):
        return bool(get_routing_for_object(estimator).consumes(method, [name]))
    # Without routing, a pipeline passes everything it does not know to its last step.
    steps = getattr(estimator, "steps", None)
    return bool(steps) and takes(steps[-1][1], method, name)
