"""Bounds on a rate of a class or of a group, and rates without bounds as metrics."""

from numbers import Real
from typing import Any

import numpy as np

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.mistakes import of_percent
from sklearn_structsvm.confusion.cells import Cells, positive_index
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.ratios import OneClassMetric


def selected_groups(constraint, cells):
    """The group indices given by `group` and `per_group`; [None] is all examples."""
    if constraint.group is not None and constraint.per_group:
        raise ValueError("Pass either group or per_group=True, but not both.")
    if constraint.per_group:
        if cells.groups is None:
            raise ValueError(
                f"{type(constraint).__name__} with per_group=True needs "
                "sensitive_features, but none were passed."
            )
        return list(range(cells.n_groups))
    if constraint.group is not None:
        return [cells.group_index(constraint.group)]
    return [None]


def one_per_group(constraint, cells):
    """The constraints given by `per_group`: the same one for each group."""
    if not constraint.per_group:
        return [constraint]
    options = constraint.get_params(deep=False) | {"per_group": False}
    return [type(constraint)(**options | {"group": name}) for name in cells.group_names]


class SelectiveConstraint(Constraint):
    """Base class: for all examples, for one group, or for each group."""

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        """Whether `group` or `per_group` is set."""
        if not isinstance(self.per_group, (bool, np.bool_)):
            raise ValueError(f"per_group must be True or False, got {self.per_group!r}.")
        return self.group is not None or bool(self.per_group)

    def counted(self, cells: Cells) -> list[np.ndarray]:
        found = []
        for group in selected_groups(self, cells):
            found.append(np.zeros(cells.shape, dtype=bool))
            found[-1][cells.cells_of(group)] = True
        return found


class RateConstraint(SelectiveConstraint):
    """Base: lower and upper bounds on a rate of one class, or of each.

    A subclass gives `rate_of(index, mask, cells)`. The parameters of all are those of
    :class:`Recall`, and a rate is not bounded if no classifier can make its denominator
    positive (no example of the class in the group), which `empty_counts` names. Without
    bounds the object represents the metric that `resolve` returns.

    `more_is_better`: whether larger values of the rate are better.
    """

    more_is_better = True

    def __init__(
        self,
        *,
        at_least: Any = None,
        at_most: Any = None,
        target: Any = None,
        slack: Any = None,
        pos_label: Any = None,
        group: Any = None,
        per_group: bool = False,
        label: Any = None,
    ) -> None:
        self.at_least = at_least
        self.at_most = at_most
        self.target = target
        self.slack = slack
        self.pos_label = pos_label
        self.group = group
        self.per_group = per_group
        self.label = label

    @property
    def is_metric(self) -> bool:
        """Whether there is no bound, so that the rate is a metric."""
        bounds = self.at_least, self.at_most, self.target, self.slack
        return all(bound is None for bound in bounds)

    @property
    def greater_is_better(self) -> bool:  # type: ignore[override]
        """Whether a greater value of a call (the rate, or the violation) is better."""
        return self.is_metric and self.more_is_better

    def measured(self, C: np.ndarray, cells: Cells) -> float:
        """The rate or, with bounds, the violation."""
        if self.is_metric:
            return self.resolve(cells.classes).measured(C, cells)
        return super().measured(C, cells)

    def resolve(self, classes: Any) -> ConfusionMetric:
        """Return the metric that a rate without bounds stands for.

        Parameters
        ----------
        classes : array-like of shape (k,)
            Class labels.

        Returns
        -------
        metric : ConfusionMetric
            The loss 1 - rate, or the rate itself if a smaller rate is better.

        Raises
        ------
        ValueError
            If there are bounds or groups, if the label is unknown, or if it is missing
            and cannot be inferred.
        """
        name = type(self).__name__
        if not self.is_metric:
            raise ValueError(
                f"metric={self!r} has bounds, so it is a constraint. As a metric use "
                f"{name}(pos_label=...)."
            )
        if self.needs_groups:
            raise ValueError(
                f"metric={self!r}: as a metric, {name} does not support group or "
                "per_group."
            )
        return RateMetric(type(self)(), self.named_label()).resolve(classes)

    def positive_label(self, classes: Any) -> Any:
        label = self.named_label()
        bounds = [b for b in (self.at_least, self.at_most, self.target) if b is not None]
        one_number = bool(bounds) and all(isinstance(bound, Real) for bound in bounds)
        is_implied = len(classes) == 2 and (self.is_metric or one_number)
        if label is None and not is_implied:
            return None
        index = positive_index(classes, label, type(self).__name__)
        return np.asarray(classes).tolist()[index]

    def rate_of(
        self, index: int, mask: np.ndarray, cells: Cells
    ) -> tuple[np.ndarray, Any]:
        """Numerator and denominator of the rate of a class in some cells.

        Parameters
        ----------
        index : int
            Index of the class.
        mask : ndarray of bool, shape (m,)
            Mask of the cells.
        cells : Cells
            All cells.

        Returns
        -------
        N : ndarray of shape (m, k, k)
            The rate is <N, C> / D.
        D : float, or ndarray of shape (m, k, k)
            A constant, or the coefficients of a linear function <D, C> that is at most 1.
        """
        raise NotImplementedError

    def bounds(self, cells: Cells) -> Any:
        """Lower and upper bounds on the rate of each class; ±inf means none."""
        k = cells.n_classes
        one_sided = self.at_least is not None or self.at_most is not None
        if self.target is not None:
            if self.slack is None or one_sided:
                raise ValueError(
                    f"{type(self).__name__}: target requires slack, and cannot be "
                    "combined with at_least or at_most."
                )
            check_number(self.slack, "slack", 0.0, 1.0)
            target = self._by_class(self.target, "target", cells)
            return target - self.slack, target + self.slack
        if self.slack is not None:
            raise ValueError(f"{type(self).__name__}: slack requires target.")
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
        k, label = cells.n_classes, self.named_label()
        result = np.full(k, free)
        if isinstance(value, dict):
            wanted = {cells.class_index(key, name): v for key, v in value.items()}
        elif isinstance(value, str):
            raise ValueError(f"{name} must be a number, got {value!r}.")
        elif as_array(name, value).ndim == 0:
            wanted = dict.fromkeys(range(k), value)
            if k == 2 and label is None:
                # As in scikit-learn, a rate of two classes refers to the positive one.
                index = positive_index(cells.classes, None, type(self).__name__)
                wanted = {index: value}
        elif np.shape(value) == (k,):
            wanted = dict(enumerate(np.asarray(value).tolist()))
        else:
            raise ValueError(
                f"{name} must be a number, a dict by label or {k} numbers, got {value!r}."
            )
        if label is not None:
            index = cells.class_index(label, "pos_label")
            if np.ndim(value) or isinstance(value, dict):
                raise ValueError(f"With pos_label={label!r}, {name} must be a number.")
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
                if np.any(D > 0.0):
                    yield *bounds, N, D

    def counted(self, cells: Cells) -> list[np.ndarray]:
        lower, upper = self.bounds(cells)
        found = []
        for group in selected_groups(self, cells):
            mask = cells.cells_of(group)
            for i in np.flatnonzero((lower > 0.0) | (upper < 1.0)).tolist():
                N, D = self.rate_of(i, mask, cells)
                among = np.zeros(cells.shape, dtype=bool)
                if np.ndim(D):
                    among[mask, :, i] = True
                else:
                    among |= N.any(axis=2, keepdims=True)
                found.append(among)
        return found

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        G, h = [np.zeros((0, *cells.shape))], []
        for sign, bound, N, D in self._one_sided(cells):
            # sign (rate - bound) <= 0, multiplied by a denominator that varies.
            if np.ndim(D):
                G.append(sign * (N - bound * D)[None])
                h.append(0.0)
            else:
                G.append((sign / D) * N[None])
                h.append(-sign * bound)
        return np.concatenate(G), np.array(h)

    def denominators(self, cells: Cells) -> np.ndarray | None:
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
    """The value as a float. ValueError if it is not a number in [low, high]."""
    if isinstance(value, Real) and low <= value <= high:
        return float(value)
    percent = of_percent(value) if isinstance(value, Real) and high == 1.0 else ""
    raise ValueError(
        f"{name} must be a number from {low} to {high}, got {value!r}.{percent}"
    )


class RateMetric(OneClassMetric):
    """The metric that a rate without bounds represents.

    `pos_label` or None: the class.
    """

    def __init__(self, rate, pos_label=None):
        self.rate = rate
        self.pos_label = pos_label

    @property
    def __name__(self):
        return self.rate.__name__

    @property
    def greater_is_better(self):
        return self.rate.more_is_better

    @property
    def convex(self):
        """Whether the rate is linear, which is true for all but the precision."""
        return np.ndim(self._parts(np.ones(2) / 2, 0)[1]) == 0

    def _parts(self, priors, index):
        """N of shape (k, k), and D: a number or of this shape."""
        cells = Cells.single(priors)
        N, D = self.rate.rate_of(index, np.ones(1, dtype=bool), cells)
        return N[0], D[0] if np.ndim(D) else float(D)

    def value(self, C):
        A, B = self.ratio(C.sum(axis=1))
        if not np.vdot(B, C) > 0.0:  # the rate is 0
            return float(self.greater_is_better)
        return super().value(C)

    def ratio(self, priors):
        N, B = self._parts(priors, self.positive(len(priors)))
        if np.ndim(B) == 0:
            # For matrices with these row sums, <1, C> is Σ priors.
            B = np.full(N.shape, B / np.sum(priors))
        return (B - N if self.greater_is_better else N), B

    def pieces(self, priors):
        N, D = self._parts(priors, self.positive(len(priors)))
        if np.ndim(D):
            return None
        sign = -1.0 if self.greater_is_better else 1.0
        slope = sign * N[None] / D if D > 0.0 else np.zeros((1, *N.shape))
        return slope, np.full(1, float(self.greater_is_better))

    def entries(self, n_classes):
        priors = np.full(n_classes, 1.0 / n_classes)
        N, D = self._parts(priors, self.positive(n_classes))
        return (N != 0.0) | ((D != 0.0) & (np.ndim(D) > 0))

    def positive(self, n_classes):
        if self.pos_label is not None:
            return self.index_of(self.pos_label, "pos_label")
        classes = np.arange(n_classes) if self._classes is None else self._classes
        return positive_index(classes, None, type(self.rate).__name__)

    def positive_label(self, classes):
        return np.asarray(classes).tolist()[self.resolve(classes).positive(len(classes))]
