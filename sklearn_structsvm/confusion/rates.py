"""Rates of a class, such as recall and precision, as metrics and constraints.

A rate with a bound is a constraint. Without a bound it is a metric of one class.
"""

from typing import Any

import numpy as np

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.rate_constraint import RateConstraint

__all__ = ["FalsePositiveRate", "Precision", "Recall", "SelectionRate", "Specificity"]


class Recall(RateConstraint):
    r"""Recall of a class, as a metric or a constraint.

    .. math:: \frac{C_{ii}}{\sum_j C_{ij}}

    Without a bound it is a metric, as in ``metric=Recall(pos_label="ill")``, and a call
    returns the rate. With a bound it is a constraint, and a call returns the violation.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one number, one number per class in sorted order, or
        ``{label: bound}``, which leaves the other classes unbounded. A single number
        applies to the class `pos_label`.
    target, slack : float, dict or array-like of shape (k,), default=None
        Alternative to bounds: the rate must be within `slack` of `target`.
    pos_label : label, default=None
        The class. None means 1 for labels 0 and 1 or -1 and 1, and True for booleans. For
        more than two classes, a single bound without `pos_label` applies to each class.
        For other pairs of labels, and for a metric of more than two classes, `pos_label`
        is required.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the rate in every group.
    label : label, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Recall
    >>> y_true = ["ill", "ill", "well", "well"]
    >>> y_pred = ["ill", "well", "well", "well"]
    >>> Recall(pos_label="ill")(y_true, y_pred)
    0.5
    >>> round(Recall(pos_label="ill", at_least=0.9)(y_true, y_pred), 3)
    0.4
    """

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        N = np.zeros(cells.shape)
        N[mask, index, index] = 1.0
        return N, cells.priors[mask, index].sum()


class FalsePositiveRate(RateConstraint):
    r"""False positive rate of a class, as a metric or a constraint.

    .. math:: \frac{\sum_{j \neq i} C_{ji}}{\sum_{j \neq i} \sum_l C_{jl}}

    Without a bound it is a metric for which smaller is better, and a call returns the
    rate. With a bound it is a constraint, and a call returns the violation.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one number, one number per class in sorted order, or
        ``{label: bound}``, which leaves the other classes unbounded. A single number
        applies to the class `pos_label`.
    target, slack : float, dict or array-like of shape (k,), default=None
        Alternative to bounds: the rate must be within `slack` of `target`.
    pos_label : label, default=None
        The class. None means 1 for labels 0 and 1 or -1 and 1, and True for booleans. For
        more than two classes, a single bound without `pos_label` applies to each class.
        For other pairs of labels, and for a metric of more than two classes, `pos_label`
        is required.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the rate in every group.
    label : label, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import FalsePositiveRate
    >>> constraint = FalsePositiveRate(pos_label="ill", at_most=0.25)
    >>> constraint(["ill", "ill", "well", "well"], ["ill", "well", "well", "ill"])
    0.25
    """

    more_is_better = False

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        N = np.zeros(cells.shape)
        N[mask, :, index] = 1.0
        N[mask, index, index] = 0.0
        return N, np.delete(cells.priors[mask], index, axis=1).sum()


class Specificity(RateConstraint):
    r"""Specificity of a class (true negative rate), as a metric or a constraint.

    .. math:: \frac{\sum_{j \neq i} \sum_{l \neq i} C_{jl}}
       {\sum_{j \neq i} \sum_l C_{jl}}

    This is one minus the :class:`FalsePositiveRate`. Without a bound it is a metric, and
    a call returns the rate. With a bound it is a constraint, and a call returns the
    violation.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one number, one number per class in sorted order, or
        ``{label: bound}``, which leaves the other classes unbounded. A single number
        applies to the class `pos_label`.
    target, slack : float, dict or array-like of shape (k,), default=None
        Alternative to bounds: the rate must be within `slack` of `target`.
    pos_label : label, default=None
        The class. None means 1 for labels 0 and 1 or -1 and 1, and True for booleans. For
        more than two classes, a single bound without `pos_label` applies to each class.
        For other pairs of labels, and for a metric of more than two classes, `pos_label`
        is required.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the rate in every group.
    label : label, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Specificity
    >>> y_true, y_pred = ["ill", "ill", "well", "well"], ["ill", "well", "well", "ill"]
    >>> Specificity(pos_label="ill")(y_true, y_pred)
    0.5
    """

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        N = np.zeros(cells.shape)
        N[mask] = 1.0
        N[:, index] = 0.0
        N[:, :, index] = 0.0
        return N, np.delete(cells.priors[mask], index, axis=1).sum()


class SelectionRate(RateConstraint):
    r"""How often a class is predicted: its selection rate.

    .. math:: \sum_j C_{ji}

    In a group, this is divided by the group's fraction of the examples. Without a bound
    it is a metric for which greater is better, and a call returns the rate. With a bound
    it is a constraint, and a call returns the violation.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one number, one number per class in sorted order, or
        ``{label: bound}``, which leaves the other classes unbounded. A single number
        applies to the class `pos_label`.
    target, slack : float, dict or array-like of shape (k,), default=None
        Alternative to bounds: the rate must be within `slack` of `target`. "priors" means
        the label frequencies of the whole sample.
    pos_label : label, default=None
        The class. None means 1 for labels 0 and 1 or -1 and 1, and True for booleans. For
        more than two classes, a single bound without `pos_label` applies to each class.
        For other pairs of labels, and for a metric of more than two classes, `pos_label`
        is required.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the rate in every group.
    label : label, default=None
        Another name for `pos_label`.

    Examples
    --------
    Predict each class as often as it occurs:

    >>> from sklearn_structsvm.metrics import SelectionRate
    >>> constraint = SelectionRate(target="priors", slack=0.01)
    >>> round(constraint(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 3)
    0.24
    """

    def _by_class(self, value, name, cells, free=np.nan):
        if name == "target" and isinstance(value, str) and value == "priors":
            # Rounding may put it above 1.
            value = np.minimum(cells.label_shares.sum(axis=0), 1.0)
            label = self.named_label()
            if label is not None:
                value = float(value[cells.class_index(label, "pos_label")])
        return super()._by_class(value, name, cells, free)

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        N = np.zeros(cells.shape)
        N[mask, :, index] = 1.0
        return N, cells.priors[mask].sum()


class Precision(RateConstraint):
    r"""Precision of a class, as a metric or a constraint.

    .. math:: \frac{C_{ii}}{\sum_j C_{ji}}

    Without a bound it is a metric, and a call returns the rate, which is 0 for a class
    that is never predicted. With a bound it is a constraint, and a call returns the
    violation. A bound becomes linear after multiplication by the denominator, and a class
    that is never predicted satisfies it.

    Read more in the :ref:`User Guide <guide-constraints>`.

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one number, one number per class in sorted order, or
        ``{label: bound}``, which leaves the other classes unbounded. A single number
        applies to the class `pos_label`.
    target, slack : float, dict or array-like of shape (k,), default=None
        Alternative to bounds: the rate must be within `slack` of `target`.
    pos_label : label, default=None
        The class. None means 1 for labels 0 and 1 or -1 and 1, and True for booleans. For
        more than two classes, a single bound without `pos_label` applies to each class.
        For other pairs of labels, and for a metric of more than two classes, `pos_label`
        is required.
    group : group, default=None
        Count only the examples of this group: a value of the sensitive feature, or a
        tuple of values for several columns. None counts all examples.
    per_group : bool, default=False
        Whether to bound the rate in every group.
    label : label, default=None
        Another name for `pos_label`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Precision
    >>> constraint = Precision(pos_label="ill", at_least=0.75)
    >>> constraint(["ill", "ill", "well", "well"], ["ill", "well", "well", "ill"])
    0.25
    """

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        N, D = np.zeros(cells.shape), np.zeros(cells.shape)
        # Relative to the share of these cells, the most that can be predicted.
        mass = cells.priors[mask].sum()
        if mass > 0.0:
            N[mask, index, index] = 1.0 / mass
            D[mask, :, index] = 1.0 / mass
        return N, D
