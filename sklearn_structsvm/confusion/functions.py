"""Scores of predictions, and disparities between groups, as functions.

Most are made from the metrics and constraints of the same name, by `_measure` and `_gap`.
Those with parameters of their own, or without such an object, are written out.
"""

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_structsvm._utils.borders import check_zero_division
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm.confusion.costs import ExpectedCost
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
)
from sklearn_structsvm.confusion.linear import LinearLoss, Ordinal
from sklearn_structsvm.confusion.ratios import MicroF1
from sklearn_structsvm.confusion.recalls import GMean, HMean, MinMax, QMean

__all__ = [
    "cost_loss",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "expected_cost_score",
    "g_mean_score",
    "h_mean_score",
    "micro_f1_score",
    "min_recall_score",
    "ordinal_loss",
    "q_mean_score",
    "quantification_loss",
]

# The shared parts of the docstrings.
_SHARED_TEXTS = {
    "<SAMPLE>": """
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels, of any type.
""",
    "<WEIGHTS>": """
    labels : array-like of shape (k,), default=None
        All classes, in order. None uses those that occur, in sorted order.
    sample_weight : array-like of shape (n,), default=None
        Non-negative weights of the examples, not all 0.
""",
    "<GROUPS>": """
    sensitive_features : array-like of shape (n,) or (n, p), or data frame
        Group of each example. For several columns, groups are combinations that occur.
""",
    "<COMPARISON>": """
    pos_label : label, default=None
        The positive class. None means 1 for labels 0 and 1 or -1 and 1, True for
        booleans, and the worst class if there are more than two. Other pairs of labels
        require it, unless the difference is the same for both classes.
    reference : {'groups', 'overall'}, default='groups'
        Whether to compare groups with each other (as `between_groups` in fairlearn), or
        with all examples. The constraint of the same name has the same default.
""",
}


Function = TypeVar("Function", bound=Callable[..., Any])


def _document(function: Function, doc: str) -> Function:
    """Set a docstring, with what is shared in it filled in; errors in plain words.

    It is not indented: Python 3.13 and newer compile docstrings so, older ones do not.
    """
    doc = cleandoc(doc)
    for name, part in _SHARED_TEXTS.items():
        doc = doc.replace(name, cleandoc(part))
    function.__doc__ = doc
    return with_plain_calls(function)


def _filled(function: Function) -> Function:
    return _document(function, function.__doc__ or "")


def _rename(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    return _document(function, doc)


def _measure(
    kind: Any,
    name: str,
    title: str,
    value: str,
    *,
    unit: str = "score : float\n        Between 0 and 1.",
) -> Callable[..., float]:
    """Make the function that computes a metric without parameters."""

    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        return kind()(y_true, y_pred, labels=labels, sample_weight=sample_weight)

    return _rename(
        function,
        name,
        rf"""{title}

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    <SAMPLE>
    <WEIGHTS>

    Returns
    -------
    {unit}

    See Also
    --------
    {kind.__name__} : The metric, for optimization.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import {name}
    >>> {name}([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0])
    {value}
    """,
    )


g_mean_score = _measure(
    GMean,
    "g_mean_score",
    r"""Geometric mean of the recalls of the classes, :math:`(\prod_i r_i)^{1/k}`.

    It is 0 if the recall of any class is 0. It agrees with `geometric_mean_score` of
    imbalanced-learn, except for a class that is predicted but does not occur in `y_true`:
    such a class has no recall, and is left out here.""",
    "0.707...",
)

h_mean_score = _measure(
    HMean,
    "h_mean_score",
    r"""Harmonic mean of the recalls of the classes, :math:`k / \sum_i (1 / r_i)`.

    It is 0 if the recall of any class is 0. Classes that do not occur in `y_true` are
    left out.""",
    "0.666...",
)

q_mean_score = _measure(
    QMean,
    "q_mean_score",
    r"""One minus the quadratic mean of the error rates of the classes.

    .. math:: 1 - \sqrt{\frac{1}{k} \sum_i (1 - r_i)^2}

    Classes that do not occur in `y_true` are left out.""",
    "0.646...",
)

min_recall_score = _measure(
    MinMax,
    "min_recall_score",
    r"""Smallest recall of any class, :math:`\min_i r_i`; one minus the min-max loss.

    Classes that do not occur in `y_true` are left out.""",
    "0.5",
)

ordinal_loss = _measure(
    Ordinal,
    "ordinal_loss",
    r"""Mean absolute difference between the ranks of label and prediction.

    .. math:: \sum_{ij} |i - j| \, C_{ij}

    The rank of a label is its index among the sorted classes. If some classes do not
    occur, pass all of them as `labels`.""",
    "0.166...",
    unit="loss : float\n        Between 0 and k - 1; smaller is better.",
)


@_filled
def cost_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    costs: Any,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean cost of the predictions, :math:`\sum_{ij} L_{ij} C_{ij}`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    <SAMPLE>
    costs : array-like of shape (k, k) or dict
        As for `LinearLoss`.

    <WEIGHTS>

    Returns
    -------
    loss : float
        Smaller is better.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import cost_loss
    >>> cost_loss(["ill", "well"], ["well", "well"], costs={("ill", "well"): 10.0})
    5.0
    """
    metric = LinearLoss(costs)
    return metric(y_true, y_pred, labels=labels, sample_weight=sample_weight)


@_filled
def expected_cost_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    costs: Any,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Mean cost of the predictions, with individual costs for each example.

    Read more in the :ref:`User Guide <guide-costs>`.

    Parameters
    ----------
    <SAMPLE>
    costs : array-like of shape (n, k) or (n, k, k), or data frame
        Entry [r, j] is the cost of predicting class j for example r. Entry [r, i, j] is
        that cost if the label is i. Classes are in the order of `labels`; the columns of
        a data frame are the labels, in any order.

    <WEIGHTS>

    Returns
    -------
    loss : float
        Smaller is better.

    See Also
    --------
    ExpectedCost : The metric, for optimization, and its scorer.
    cost_loss : The same costs for all examples.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import expected_cost_score
    >>> costs = [[0.0, 900.0], [50.0, 0.0], [20.0, 0.0]]
    >>> expected_cost_score([0, 1, 1], [0, 0, 1], costs=costs)
    16.6...
    """
    return ExpectedCost()(
        y_true, y_pred, costs=costs, labels=labels, sample_weight=sample_weight
    )


@_filled
def micro_f1_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    default_label: Any = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    zero_division: float | Literal["warn"] = "warn",
) -> float:
    r"""Pooled F1 score of all classes but a default one (micro-F1).

    .. math:: \frac{2 \sum_{i \neq 0} C_{ii}}{2 - \sum_j C_{0j} - \sum_j C_{j0}}

    Class 0 is the default class ("nothing here"). The result is the same as that of
    scikit-learn's ``f1_score(average="micro")`` with all classes but the default one as
    `labels`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    <SAMPLE>
    default_label : label, default=None
        The default class. None uses the first of the sorted labels, whatever it means: 0
        for labels 0, 1, 2, but "B" for labels "B", "I", "O".

    <WEIGHTS>

    zero_division : {'warn', 0, 1, np.nan}, default='warn'
        The score if all labels and predictions are the default class (0/0). 'warn' means
        0 with an `UndefinedMetricWarning`.

    Returns
    -------
    score : float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import micro_f1_score
    >>> micro_f1_score(["O", "O", "x", "y", "y"], ["O", "x", "x", "y", "O"])
    0.666...
    """
    filler = check_zero_division(zero_division)
    C, cells = confusion_tensor(
        y_true, y_pred, labels=labels, sample_weight=sample_weight
    )
    metric = MicroF1(default_label)
    metric = metric.resolve(cells.classes) if cells.n_classes > 1 else metric
    _, B = metric.ratio(cells.class_priors)
    if np.vdot(B, cells.total(C)) > 0.0:
        return metric.score_of(cells.total(C))
    if isinstance(zero_division, str):
        warn_caller(
            "Micro-F1 is ill-defined and set to 0.0: all labels and predictions are the "
            "default class. Use the parameter zero_division to control this.",
            UndefinedMetricWarning,
        )
    return filler


@_filled
def quantification_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Divergence (Kullback-Leibler) of predicted from true class frequencies.

    .. math:: \sum_i \pi_i \log \frac{\pi_i}{q_i}

    Here :math:`\pi_i` is the frequency of label i and :math:`q_i` that of prediction i.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    <SAMPLE>
    <WEIGHTS>

    Returns
    -------
    loss : float
        In nats: 0 if the frequencies agree, and infinite if a class that occurs is never
        predicted.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import quantification_loss
    >>> round(quantification_loss(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 4)
    0.1438
    """
    C, cells = confusion_tensor(
        y_true, y_pred, labels=labels, sample_weight=sample_weight
    )
    used = cells.class_priors > 0.0
    p, q = cells.class_priors[used], cells.total(C).sum(axis=0)[used]
    if not q.all():
        return float("inf")
    return max(0.0, float(p @ np.log(p / q)))


_EXTREMES = {"difference": "Largest difference", "ratio": "Smallest ratio"}


def _gap(
    kind: Any, bound: str, rates: str, note: str, y_true: list[int], value: float
) -> Callable[..., float]:
    """How far apart the rates of a constraint on groups are, as a function."""

    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        reference: Literal["groups", "overall"] = "groups",
    ) -> float:
        constraint = kind(bound=bound, pos_label=pos_label, reference=reference)
        C, cells = confusion_tensor(
            y_true,
            y_pred,
            labels=labels,
            sample_weight=sample_weight,
            sensitive_features=sensitive_features,
        )
        constraint.check(cells)
        return constraint.disparity(C, cells)

    name = f"{kind().__name__}_{bound}"
    best = "0" if bound == "difference" else "1"
    return _rename(
        function,
        name,
        f"""{_EXTREMES[bound]} between groups {rates}.

    {note}

    Read more in the :ref:`User Guide <guide-groups>`.

    Parameters
    ----------
    <SAMPLE>
    <GROUPS>
    <WEIGHTS>
    <COMPARISON>

    Returns
    -------
    {bound} : float
        Between 0 and 1; {best} if all groups have the same rates. For labels 0 and 1 it
        agrees with fairlearn.

    See Also
    --------
    {kind.__name__} : The constraint.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import {name}
    >>> groups = ["f", "f", "m", "m"]
    >>> {name}({y_true}, [1, 1, 0, 1], sensitive_features=groups)
    {value}
    """,
    )


_PARITY = (
    "in how often a class is predicted",
    "If a class is not predicted for any group, the groups have the same rates.",
    [0, 1, 0, 1],
)
_OPPORTUNITY = (
    "in the recall of a class",
    "A group without examples of the class has no recall and is left out.",
    [0, 1, 1, 1],
)
_EQUAL_ODDS = (
    "in the rate of a prediction given the label",
    "For two classes, this is the worse of the true and the false positive rate,\n"
    '    as with `agg="worst_case"`, the default of fairlearn.',
    [0, 1, 0, 1],
)

demographic_parity_difference = _gap(DemographicParity, "difference", *_PARITY, 0.5)
demographic_parity_ratio = _gap(DemographicParity, "ratio", *_PARITY, 0.5)
equal_opportunity_difference = _gap(EqualOpportunity, "difference", *_OPPORTUNITY, 0.5)
equal_opportunity_ratio = _gap(EqualOpportunity, "ratio", *_OPPORTUNITY, 0.5)
equalized_odds_difference = _gap(EqualizedOdds, "difference", *_EQUAL_ODDS, 1.0)
equalized_odds_ratio = _gap(EqualizedOdds, "ratio", *_EQUAL_ODDS, 0.0)
