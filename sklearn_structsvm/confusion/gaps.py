"""How far the rates of groups are apart, as functions."""

from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
)

_PARAMETERS = """
    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions, of any kind.

    sensitive_features : array-like of shape (n,) or (n, p), or data frame
        The group of each example; with several columns, their combinations that occur.

    sample_weight : array-like of shape (n,), default=None
        Not negative, and not all 0.

    labels : array-like of shape (k,), default=None
        All classes, in order; by default those that occur, sorted.

    pos_label : label, default=None
        The class that counts. None is the second of two classes, or the worst of more.

    reference : {'groups', 'overall'}, default='groups'
        Compare each two groups (fairlearn's `between_groups`), or each with all examples
        together, which is what the constraint of the same name bounds by default.

    Returns
    -------
"""


def _documented(function):
    """Fill in the parameters that all these functions share."""
    function.__doc__ = function.__doc__.replace("    <PARAMETERS>\n", _PARAMETERS[1:])
    return function


def _disparity(constraint, y_true, y_pred, sensitive_features, sample_weight, labels):
    C, cells = confusion_tensor(
        y_true,
        y_pred,
        labels=labels,
        sample_weight=sample_weight,
        sensitive_features=sensitive_features,
    )
    constraint.check(cells)
    return constraint.disparity(C, cells)


@_documented
def demographic_parity_difference(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Largest difference between groups in how often a class is predicted.

    <PARAMETERS>
    difference : float
        Between 0 and 1; 0 is parity. As fairlearn's for labels 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import demographic_parity_difference
    >>> demographic_parity_difference(
    ...     [0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    0.5
    """
    constraint = DemographicParity(pos_label=pos_label, reference=reference)
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )


@_documented
def demographic_parity_ratio(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Smallest ratio between groups of how often a class is predicted.

    <PARAMETERS>
    ratio : float
        Between 0 and 1; 1 is parity, also where no group has the prediction at all. As
        fairlearn's for labels 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import demographic_parity_ratio
    >>> demographic_parity_ratio(
    ...     [0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    0.5
    """
    constraint = DemographicParity(
        bound="ratio", pos_label=pos_label, reference=reference
    )
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )


@_documented
def equal_opportunity_difference(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Largest difference between groups in the recall of a class.

    A group without examples of the class has no recall and is left out.

    <PARAMETERS>
    difference : float
        Between 0 and 1; 0 is equal opportunity. As fairlearn's for labels 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import equal_opportunity_difference
    >>> equal_opportunity_difference(
    ...     [0, 1, 1, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    0.5
    """
    constraint = EqualOpportunity(pos_label=pos_label, reference=reference)
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )


@_documented
def equal_opportunity_ratio(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Smallest ratio between groups of the recalls of a class.

    A group without examples of the class has no recall and is left out.

    <PARAMETERS>
    ratio : float
        Between 0 and 1; 1 is equal opportunity. As fairlearn's for labels 0 and 1.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import equal_opportunity_ratio
    >>> equal_opportunity_ratio(
    ...     [0, 1, 1, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    0.5
    """
    constraint = EqualOpportunity(bound="ratio", pos_label=pos_label, reference=reference)
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )


@_documented
def equalized_odds_difference(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Largest difference between groups in the rate of a prediction given the label.

    With two classes, of the true and the false positive rate.

    <PARAMETERS>
    difference : float
        Between 0 and 1; 0 is equalized odds. As fairlearn's for labels 0 and 1, with its
        default `agg="worst_case"`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import equalized_odds_difference
    >>> equalized_odds_difference(
    ...     [0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    1.0
    """
    constraint = EqualizedOdds(pos_label=pos_label, reference=reference)
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )


@_documented
def equalized_odds_ratio(
    y_true,
    y_pred,
    *,
    sensitive_features,
    sample_weight=None,
    labels=None,
    pos_label=None,
    reference="groups",
):
    """Smallest ratio between groups of the rates of a prediction given the label.

    With two classes, of the true or the false positive rates.

    <PARAMETERS>
    ratio : float
        Between 0 and 1; 1 is equalized odds. As fairlearn's for labels 0 and 1, with its
        default `agg="worst_case"`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import equalized_odds_ratio
    >>> equalized_odds_ratio(
    ...     [0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    0.0
    """
    constraint = EqualizedOdds(bound="ratio", pos_label=pos_label, reference=reference)
    return _disparity(
        constraint, y_true, y_pred, sensitive_features, sample_weight, labels
    )
