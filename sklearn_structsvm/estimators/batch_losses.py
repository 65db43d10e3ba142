"""The losses of the batch classifiers: one table of their risks and requirements."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral, Real
from typing import Any

from sklearn.base import clone

from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.ratios import OneClassMetric
from sklearn_structsvm.confusion.registry import METRICS, get_metric
from sklearn_structsvm.risks import (
    BinaryHinge,
    ConfusionHinge,
    Logistic,
    MulticlassHinge,
    MultilabelHinge,
    ProximalHinge,
    RocAucHinge,
    SquaredHinge,
    TopKHinge,
)


@dataclass(frozen=True)
class BatchLoss:
    """Properties of a loss that do not depend on the data.

    `make_risk`: (model, problem, options) -> Risk, for an estimator `model` with the
    parameters `loss`, `k` and `class_weight`, and the options that all risks take.
    `multi_class`, `multi_label`: whether it is defined for more than two classes, and
    for several labels. `of_sample`: whether it is a loss of the whole sample, not a sum
    over rows. `is_order`: whether it depends on the order of the scores alone, so that
    an intercept is a threshold that is set after training. `takes_k`: whether it
    depends on the first k rows, given by the parameter `k`. `is_smooth`: whether its
    risk is a `SmoothRisk`.
    """

    make_risk: Callable[..., Any]
    multi_class: bool = False
    multi_label: bool = False
    of_sample: bool = False
    is_order: bool = False
    takes_k: bool = False
    takes_class_weight: bool = True
    takes_label_costs: bool = False
    is_smooth: bool = False


def _row_hinge(model, problem, options):
    structure, kind = problem.structure, BinaryHinge
    options["label_costs"] = structure.label_costs_
    if structure.multi_label:
        kind = MultilabelHinge
    elif structure.multi_class:
        kind = MulticlassHinge
        options["rescaled"] = model.loss == "slack_hinge"
    return problem.make_risk(kind, options)


def _logistic(model, problem, options):
    return problem.make_risk(Logistic, options)


def _squared_hinge(model, problem, options):
    options["n_classes"] = len(problem.structure.classes_)
    return problem.make_risk(SquaredHinge, options)


def _proximal_hinge(model, problem, options):
    options["label_costs"] = problem.structure.label_costs_
    return problem.make_risk(ProximalHinge, options)


def _roc_auc(model, problem, options):
    y = encode(problem.y, problem.structure.classes_)
    return RocAucHinge(problem.X, y, problem.weights, **options)


def _confusion(model, problem, options):
    y, counts = _counted_rows(model, problem, options)
    classes = problem.structure.classes_
    metric = METRICS[model.loss]() if isinstance(model.loss, str) else model.loss
    if isinstance(metric, OneClassMetric) and metric.named_label() is None:
        metric = clone(metric).set_params(pos_label=classes[1])
    return ConfusionHinge(problem.X, y, get_metric(metric, classes), counts, **options)


def _top_k(model, problem, options):
    y, counts = _counted_rows(model, problem, options)
    k = model.k if loss_of(model).takes_k else None
    if isinstance(k, Real) and not isinstance(k, Integral):
        k = ceil(k * round(float(counts.sum())))
    is_recall = model.loss == "recall_at_k"
    return TopKHinge(problem.X, y, k, counts, recall=is_recall, **options)


def _counted_rows(model, problem, options):
    """Codes of the classes, and the number of rows that each row represents.

    Weights of the classes are put into the options.
    """
    structure = problem.structure
    y = encode(problem.y, structure.classes_)
    counts = problem.weights * problem.total
    by_class = structure.example_weights(problem.y)
    if by_class is not None:
        shares = [by_class[y == code][:1].sum() for code in (0, 1)]
        if min(shares) == 0.0:
            raise ValueError(
                f"loss={model.loss!r} needs rows of both classes with nonzero "
                f"class_weight; got class_weight={model.class_weight!r}."
            )
        counts = counts / by_class
        options["class_weight"] = shares
    return y, counts


SAMPLE_LOSS = BatchLoss(_confusion, of_sample=True)
_TOP = BatchLoss(_top_k, of_sample=True, is_order=True, takes_class_weight=False)

LOSSES = {
    "hinge": BatchLoss(
        _row_hinge, multi_class=True, multi_label=True, takes_label_costs=True
    ),
    "slack_hinge": BatchLoss(_row_hinge, multi_class=True, takes_label_costs=True),
    "squared_hinge": BatchLoss(_squared_hinge, multi_class=True, is_smooth=True),
    "logistic": BatchLoss(_logistic, is_smooth=True),
    "f1": SAMPLE_LOSS,
    "jaccard": SAMPLE_LOSS,
    "zero_one": SAMPLE_LOSS,
    "roc_auc": BatchLoss(_roc_auc, of_sample=True, is_order=True),
    "break_even": _TOP,
    "precision_at_k": replace(_TOP, takes_k=True),
    "recall_at_k": replace(_TOP, takes_k=True),
}

# Losses with an L1 penalty. The hinge is smoothed for it.
L1_LOSSES = {
    "hinge": BatchLoss(_proximal_hinge, takes_label_costs=True),
    "squared_hinge": LOSSES["squared_hinge"],
    "logistic": LOSSES["logistic"],
}


def losses_of(model):
    """The named losses of an estimator, by its penalty."""
    return L1_LOSSES if model.penalty == "l1" else LOSSES


def loss_of(model):
    """The `BatchLoss` of an estimator's parameters."""
    if isinstance(model.loss, ConfusionMetric):
        return SAMPLE_LOSS
    return losses_of(model)[model.loss]
