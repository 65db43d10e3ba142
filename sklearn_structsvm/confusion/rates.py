"""Bounds on rates: recall, precision, coverage, false positives, by class and group."""

from numbers import Real

import numpy as np

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm.confusion.constraint import Constraint

__all__ = ["Coverage", "FalsePositiveRate", "Precision", "Recall"]


def selected_groups(constraint, cells):
    """Group indices that `group` and `per_group` name; [None] is all the examples."""
    if constraint.group is not None and constraint.per_group:
        raise ValueError("Give group, one of them, or per_group=True, but not both.")
    if constraint.per_group:
        if cells.groups is None:
            raise ValueError(
                f"{type(constraint).__name__} with per_group=True needs "
                "sensitive_features: none were given."
            )
        return list(range(cells.n_groups))
    if constraint.group is not None:
        return [cells.group_index(constraint.group)]
    return [None]


def one_per_group(constraint, cells):
    """What `per_group` stands for: the same constraint on each group."""
    if not constraint.per_group:
        return [constraint]
    options = constraint.get_params(deep=False) | {"per_group": False}
    return [type(constraint)(**options | {"group": name}) for name in cells.group_names]


class SelectiveConstraint(Constraint):
    """Base: of all examples, of those of one group, or of each group's."""

    @property
    def needs_groups(self):
        """Whether `group` or `per_group` is set."""
        if not isinstance(self.per_group, (bool, np.bool_)):
            raise ValueError(f"per_group must be True or False, got {self.per_group!r}.")
        return self.group is not None or bool(self.per_group)


class RateConstraint(SelectiveConstraint):
    """Base: lower and upper bounds on a rate of each class.

    A subclass gives `rate_of(index, mask, cells)`. The parameters of all are those of
    :class:`Recall`, and a rate whose denominator no classifier can make positive (no
    example of the class in the group) is not bounded.
    """

    def __init__(
        self,
        *,
        at_least=None,
        at_most=None,
        target=None,
        slack=None,
        label=None,
        group=None,
        per_group=False,
    ):
        self.at_least = at_least
        self.at_most = at_most
        self.target = target
        self.slack = slack
        self.label = label
        self.group = group
        self.per_group = per_group

    def rate_of(self, index, mask, cells):
        """Numerator and denominator of the rate of class `index` in some cells.

        Parameters
        ----------
        index : int
        mask : ndarray of bool, shape (m,)
            The cells.
        cells : Cells

        Returns
        -------
        N : ndarray of shape (m, k, k)
            The rate is <N, C> / D.
        D : float, or ndarray of shape (m, k, k)
            A constant, or the linear function <D, C>, which is at most 1.
        """
        raise NotImplementedError

    def bounds(self, cells):
        """Lower and upper bound of each class's rate, (k,) each; ±inf for none."""
        k = cells.n_classes
        one_sided = self.at_least is not None or self.at_most is not None
        if self.target is not None:
            if self.slack is None or one_sided:
                raise ValueError(
                    f"{type(self).__name__}: target goes with slack, and not with "
                    "at_least or at_most."
                )
            check_number(self.slack, "slack", 0.0, 1.0)
            target = self._by_class(self.target, "target", cells)
            return target - self.slack, target + self.slack
        if self.slack is not None:
            raise ValueError(f"{type(self).__name__}: slack goes with target only.")
        if not one_sided:
            raise ValueError(
                f"{type(self).__name__} needs at_least, at_most, or target and slack."
            )
        lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
        if self.at_least is not None:
            lower = self._by_class(self.at_least, "at_least", cells, -np.inf)
        if self.at_most is not None:
            upper = self._by_class(self.at_most, "at_most", cells, np.inf)
        if (lower > upper).any():
            raise ValueError(
                f"at_least={self.at_least!r} is above at_most={self.at_most!r}."
            )
        return lower, upper

    def _by_class(self, value, name, cells, free=np.nan):
        """A number, one for each class, or a dict by label, as an array (k,).

        Classes that are not bounded have `free`.
        """
        k = cells.n_classes
        result = np.full(k, free)
        if isinstance(value, dict):
            wanted = {cells.class_index(key, name): v for key, v in value.items()}
        elif isinstance(value, str):
            raise ValueError(f"{name} must be a number, got {value!r}.")
        elif as_array(name, value).ndim == 0:
            wanted = dict.fromkeys(range(k), value)
        elif np.shape(value) == (k,):
            wanted = dict(enumerate(np.asarray(value).tolist()))
        else:
            raise ValueError(
                f"{name} must be a number, a dict by label or {k} numbers, got {value!r}."
            )
        if self.label is not None:
            index = cells.class_index(self.label)
            if np.ndim(value) or isinstance(value, dict):
                raise ValueError(f"With label={self.label!r}, {name} must be a number.")
            wanted = {index: value}
        for i, bound in wanted.items():
            result[i] = check_number(bound, name, 0.0, 1.0)
        return result

    def _bounded(self, cells):
        """(lower, upper, N, D) of each class and group that is bounded."""
        lower, upper = self.bounds(cells)
        for group in selected_groups(self, cells):
            mask = cells.cells_of(group)
            for i in range(cells.n_classes):
                bounds = lower[i], upper[i]
                if not np.isfinite(bounds).any():
                    continue
                N, D = self.rate_of(i, mask, cells)
                if np.ndim(D) or D > 0.0:
                    yield *bounds, N, D

    def linear(self, cells):
        G, h = [np.zeros((0, *cells.shape))], []
        for sign, bound, N, D in self._one_sided(cells):
            # sign (rate - bound) <= 0, multiplied by a denominator that can vary.
            if np.ndim(D):
                G.append(sign * (N - bound * D)[None])
                h.append(0.0)
            else:
                G.append((sign / D) * N[None])
                h.append(-sign * bound)
        return np.concatenate(G), np.array(h)

    def denominators(self, cells):
        denominators = [D for *_, D in self._one_sided(cells)]
        varies = bool(denominators) and np.ndim(denominators[0]) > 0
        return np.array(denominators) if varies else None

    def _one_sided(self, cells):
        """(sign, bound, N, D) of each bound: sign (rate - bound) <= 0."""
        for lower, upper, N, D in self._bounded(cells):
            for sign, bound in ((-1.0, lower), (1.0, upper)):
                if np.isfinite(bound):
                    yield sign, bound, N, D


def check_number(value, name, low, high):
    """The value as a float; a ValueError where it is none, or out of [low, high]."""
    if isinstance(value, Real) and low <= value <= high:
        return float(value)
    raise ValueError(f"{name} must be a number from {low} to {high}, got {value!r}.")


class Recall(RateConstraint):
    r"""Bound the recall, the share of a class's examples that are predicted as it.

    .. math:: \frac{C_{ii}}{\sum_j C_{ij}}

    Parameters
    ----------
    at_least, at_most : float, dict or array-like of shape (k,), default=None
        Bounds in [0, 1]: one for all classes, one for each class (in their sorted order),
        or ``{label: bound}``, which leaves other classes free.
    target, slack : default=None
        Instead of bounds: within `slack` of `target`, which is of the same forms.
    label : label, default=None
        The only class that is bounded; None is each of them.
    group : group, default=None
        Count the examples of this group only (a value of `sensitive_features`, or a tuple
        of values where they are several columns). None is all examples together.
    per_group : bool, default=False
        Bound the rate in every group.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Recall
    >>> constraint = Recall(label="ill", at_least=0.9)
    >>> y_pred = ["ill", "well", "well", "well"]
    >>> round(constraint(["ill", "ill", "well", "well"], y_pred), 3)
    0.4
    """

    def rate_of(self, index, mask, cells):
        N = np.zeros(cells.shape)
        N[mask, index, index] = 1.0
        return N, cells.priors[mask, index].sum()


class FalsePositiveRate(RateConstraint):
    r"""Bound the share of the other classes' examples that are predicted as a class.

    .. math:: \frac{\sum_{j \neq i} C_{ji}}{\sum_{j \neq i} \sum_l C_{jl}}

    Its parameters are those of :class:`Recall`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import FalsePositiveRate
    >>> constraint = FalsePositiveRate(label="ill", at_most=0.25)
    >>> constraint(["ill", "ill", "well", "well"], ["ill", "well", "well", "ill"])
    0.25
    """

    def rate_of(self, index, mask, cells):
        N = np.zeros(cells.shape)
        N[mask, :, index] = 1.0
        N[mask, index, index] = 0.0
        return N, np.delete(cells.priors[mask], index, axis=1).sum()


class Coverage(RateConstraint):
    r"""Bound the share of the examples that are predicted as a class.

    .. math:: \sum_j C_{ji}

    in a group divided by the group's share. Its parameters are those of
    :class:`Recall`, and `target` may be "priors", the shares of the labels (of the
    whole sample).

    Examples
    --------
    The paper's coverage constraint: predict each class as often as it occurs.

    >>> from sklearn_structsvm.metrics import Coverage
    >>> constraint = Coverage(target="priors", slack=0.01)
    >>> round(constraint(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 3)
    0.24
    """

    def _by_class(self, value, name, cells, free=np.nan):
        if name == "target" and isinstance(value, str) and value == "priors":
            # Which may be above 1 by rounding.
            value = np.minimum(cells.label_shares.sum(axis=0), 1.0)
            if self.label is not None:
                value = float(value[cells.class_index(self.label)])
        return super()._by_class(value, name, cells, free)

    def rate_of(self, index, mask, cells):
        N = np.zeros(cells.shape)
        N[mask, :, index] = 1.0
        return N, cells.priors[mask].sum()


class Precision(RateConstraint):
    r"""Bound the precision, the share of the predictions of a class that are right.

    .. math:: \frac{C_{ii}}{\sum_j C_{ji}}

    The condition is linear after multiplication by the denominator, and a class that is
    never predicted meets it. Its parameters are those of :class:`Recall`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Precision
    >>> constraint = Precision(label="ill", at_least=0.75)
    >>> constraint(["ill", "ill", "well", "well"], ["ill", "well", "well", "ill"])
    0.25
    """

    def rate_of(self, index, mask, cells):
        N, D = np.zeros(cells.shape), np.zeros(cells.shape)
        # Of the share of these cells, which is all that can be predicted.
        mass = cells.priors[mask].sum()
        if mass > 0.0:
            N[mask, index, index] = 1.0 / mass
            D[mask, :, index] = 1.0 / mass
        return N, D
