"""A function of labels and predictions, or a scorer made of one, as a metric."""

import warnings
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.labels import listed
from sklearn_structsvm.confusion.metric import ConfusionMetric

OWN_METRIC = """\
For other cases write a metric of the confusion matrix, where C[i, j] is the share of \
the examples with label i that are predicted as j:
    class Own(sklearn_structsvm.confusion.ConfusionMetric):
        def value(self, C): return 1 - ...  # a loss"""


class FunctionMetric(ConfusionMetric):
    """One minus a score of (y_true, y_pred), for two classes.

    Nothing is known of it but its values, so that there is no bound on the optimum.

    `function`: a score of labels and predictions, or what scikit-learn's `make_scorer`
    returns. `n_examples`: how many examples a function is shown that takes no
    `sample_weight`.
    """

    def __init__(self, function: Callable[..., Any], n_examples: int = 1000) -> None:
        self.function = function
        self.n_examples = n_examples

    def value(self, C: np.ndarray) -> float:
        function, sign, _ = _parts(self.function)
        return 1.0 - sign * Answer(_name(function), "metric").number(self._answer(C))

    def _answer(self, C):
        """What the function returns for labels and predictions of this matrix."""
        function, _, options = _parts(self.function)
        classes = np.asarray(self._classes)
        C = np.maximum(C, 0.0)
        true, predicted = np.nonzero(C)
        weights = self.n_examples * C[true, predicted]
        if _takes_weights(function):
            options = options | {"sample_weight": weights}
        else:
            counts = np.rint(weights).astype(np.intp)
            true, predicted = np.repeat(true, counts), np.repeat(predicted, counts)
        with warnings.catch_warnings():
            # Some of the decisions that are tried predict one class only.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return function(classes[true], classes[predicted], **options)

    def check(self, n_classes: int) -> None:
        function, *_ = _parts(self.function)
        name = _name(function)
        if getattr(self.function, "_response_method", "predict") != "predict":
            raise ValueError(
                f"metric={name} judges probabilities or their order, which no decision "
                "rule changes. Choose a score of predictions, such as "
                "'balanced_accuracy', 'f1' or 'mcc'."
            )
        if n_classes != 2:
            raise ValueError(
                f"metric={name} is a function of labels and predictions: its best "
                f"threshold can be searched for two classes, not for {n_classes}. "
                f"{OWN_METRIC}"
            )
        try:
            self._answer(np.full((2, 2), 0.25))
        except Exception as error:
            # Others know nothing of these labels, and speak of their own arguments.
            of_peers = str(function.__module__).startswith("sklearn.")
            raise TypeError(
                f"metric={name} must be a score of (y_true, y_pred), two arrays of the "
                f"labels {listed(self._classes)}; it fails for these"
                f"{f': {error}' if of_peers else '.'} Pass a name such as 'f1', or what "
                f"make_scorer({name}, ...) returns."
            ) from error
        right, wrong = self.value(np.eye(2) / 2), self.value(1 / 2 - np.eye(2) / 2)
        # A scorer says which is better.
        if right > wrong and function is self.function:
            raise ValueError(
                f"metric={name} is larger for wrong predictions than for right ones: it "
                f"is a loss. Pass make_scorer({name}, greater_is_better=False)."
            )


def _parts(function):
    """(function, sign, options) of a scorer or of a function."""
    if not hasattr(function, "_score_func"):
        return function, 1, {}
    return function._score_func, function._sign, function._kwargs


def _takes_weights(function):
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # some functions in C do not tell
        return False
    return any(
        p.name == "sample_weight" or p.kind is Parameter.VAR_KEYWORD for p in parameters
    )


def shown(metric):
    """A metric as a user may have given it, in one line."""
    if isinstance(metric, ConfusionMetric):
        return str(metric)
    return repr(metric) if isinstance(metric, str) else _name(metric)


def _name(function):
    return getattr(function, "__name__", repr(function))
