"""The base class of metrics of confusion matrices."""

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm.confusion.answers import OF_METRICS, gate_methods
from sklearn_structsvm.confusion.cells import Cells, label_index
from sklearn_structsvm.confusion.scoring import Scored

# The step of a central difference relative to the scale of its variable. The cube root of
# the rounding unit balances rounding (unit / step) and curvature (step²).
CENTRAL_STEP = float(np.cbrt(np.finfo(np.float64).eps))


class ConfusionMetric(Scored, BaseEstimator):
    r"""Base class of metrics: a loss of the confusion matrix, to be minimized.

    Subclass it for a metric of your own. The loss :math:`\psi(C)` is a function of the
    confusion matrix C of shape (k, k), where :math:`C_{ij}` is the weighted fraction of
    examples that have label i and are predicted as j. A subclass must define `value`. It
    can also define:

    - `convex`: whether the loss is convex in C for fixed row sums. Tangents are then
      lower bounds, so the solvers can report a duality gap. Otherwise they find a
      solution that need not be optimal, without a bound.
    - `gradient`: by default central differences of `value`, which take 2k² evaluations.
      Your own gradient is compared with differences once before it is used (with
      `needs_groups`, only by :func:`~sklearn_structsvm.confusion.check_metric`).
    - `ratio` and `pieces`: exact forms for which there are special solvers.

    Read more in the :ref:`User Guide <guide-own-metrics>`.

    Attributes
    ----------
    convex : bool
        Whether the loss is convex for fixed row sums.
    smooth : bool
        Whether the loss has a gradient wherever no rate is 0 and the loss is not 0.
    needs_groups : bool
        Whether `value` and `gradient` take the matrices of the groups, of shape
        (n_groups, k, k), rather than the matrix of all examples.
    greater_is_better : bool
        Whether a call of the metric returns the score :math:`1 - \psi(C)` rather than the
        loss :math:`\psi(C)`.

    Examples
    --------
    The largest squared error rate of any class:

    >>> from sklearn_structsvm.confusion import ConfusionMetric
    >>> class WorstSquare(ConfusionMetric):
    ...     convex = True
    ...     def value(self, C):
    ...         rates = C.diagonal() / C.sum(axis=1)
    ...         return float(max((1 - rates) ** 2))
    >>> metric = WorstSquare()
    >>> metric(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    0.75
    """

    convex = False
    smooth = False
    needs_groups = False
    # Parameters that some lack: a single group, and the feature whose groups count.
    group: Any = None
    feature: Any = None
    greater_is_better = True
    # As given to `resolve`.
    _classes: np.ndarray | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check what the methods of a user's metric return."""
        super().__init_subclass__(**kwargs)
        gate_methods(cls, OF_METRICS)

    def value(self, C: np.ndarray) -> float:
        r"""Compute the loss.

        Parameters
        ----------
        C : ndarray of shape (k, k), or (n_groups, k, k) with `needs_groups`
            Confusion matrix, which sums to 1. Rows of classes that do not occur are zero.

        Returns
        -------
        loss : float
            The loss :math:`\psi(C)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method value(C).")

    def gradient(self, C: np.ndarray) -> np.ndarray:
        """Compute a gradient or, if the loss is convex, any subgradient at C.

        Only products with changes of C that keep the row sums matter, so the gradient is
        determined up to a constant per row. By default it is computed by differences
        along such changes, in steps of 6e-6 of the row sum. This gives about ten correct
        digits if the loss is smooth. Close to a kink it gives five, and so do the lower
        bounds that solvers compute from it; define `gradient` if you need more.

        Returns
        -------
        gradient : ndarray of the shape of C
            The gradient.
        """
        return gradient_by_differences(self.value, C)

    @property
    def _error_of_slopes(self) -> float:
        """How inexact slopes are; 0.0 for a `gradient` of its own."""
        if type(self).gradient is not ConfusionMetric.gradient:
            return 0.0
        # Close to a kink they change within a step.
        return CENTRAL_STEP**2 if self.smooth else CENTRAL_STEP

    def tangent(self, C: np.ndarray) -> tuple[np.ndarray, float]:
        r"""Compute the tangent at C.

        The tangent is the linear function :math:`\langle G, C' \rangle + h` of
        :math:`C'`. If the loss is convex, it is a lower bound on :math:`\psi(C')`. Use it
        rather than `value` and `gradient` for lower bounds: where the slope is infinite
        (the G-mean at a recall of 0), `gradient` is computed at a nearby point, and the
        tangent is the one at that point.

        Returns
        -------
        G : ndarray of the shape of C
            Coefficients.
        h : float
            Constant.
        """
        G = self.gradient(C)
        return G, float(self.value(C) - np.vdot(G, C))

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Write the loss as a ratio <A, C> / <B, C> for fixed row sums, or return None.

        Parameters
        ----------
        priors : ndarray of shape (k,)
            Row sums of C.

        Returns
        -------
        A, B : ndarrays of shape (k, k), or None
            Coefficients, with <B, C> >= 0.
        """
        return None

    def pieces(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        r"""Write the loss as a maximum of linear functions, or return None.

        For fixed row sums, :math:`\psi(C) = \max_p \langle G_p, C \rangle + h_p`.

        Parameters
        ----------
        priors : ndarray of shape (k,)
            Row sums of C.

        Returns
        -------
        G : ndarray of shape (p, k, k)
            Coefficients; p = 1 for a linear loss.
        h : ndarray of shape (p,)
            Constants.
        """
        return None

    def ratio_terms(
        self, priors: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray]] | None:
        """Bound the loss from below by a weighted sum of ratios, or return None.

        Minimizing each term separately gives a lower bound on a loss that is not convex.

        Returns
        -------
        terms : list of (weight, A, B), or None
            The sum of weight · <A, C> / <B, C> is at most the loss. It equals the loss
            unless a class that does not occur is predicted.
        """
        ratio = self.ratio(priors)
        return None if ratio is None else [(1.0, *ratio)]

    def entries(self, n_classes: int) -> np.ndarray:
        """Mask (k, k) of the entries of C on which the loss depends; by default all.

        Other entries need not be counted (Narasimhan et al., JMLR 2024, section 7.2).
        Loss matrices that are zero off the diagonal are k times cheaper to minimize.
        """
        return np.ones((n_classes, n_classes), dtype=bool)

    def check(self, n_classes: int) -> None:
        """Raise a ValueError if the metric is not defined for this number of classes."""

    def resolve(self, classes: Any) -> Self:
        """Return a copy that knows the labels of the rows and columns.

        Parameters
        ----------
        classes : array-like of shape (k,)
            Class labels.

        Returns
        -------
        metric : ConfusionMetric
            The copy.

        Raises
        ------
        ValueError
            If a parameter is a label that is not among `classes`, or `check` fails.
        """
        classes = np.asarray(classes)
        resolved = copy.copy(self)
        resolved._classes = classes
        resolved.check(len(classes))
        return resolved

    def index_of(self, label: Any, name: str) -> int:
        """Index of a label among the classes given to `resolve`."""
        if self._classes is None:
            raise ValueError(
                f"{name}={label!r} is a label: call resolve(classes) first, so that its "
                "row and column are known."
            )
        return label_index(self._classes, label, name)

    def score_of(self, C: np.ndarray) -> float:
        """The score 1 - ψ(C), or ψ(C) if not `greater_is_better`."""
        value = float(self.value(C))
        return 1.0 - value if self.greater_is_better else value

    def measured(self, C: np.ndarray, cells: Cells) -> float:
        """The score of a confusion tensor of shape (m, k, k)."""
        if self.needs_groups and cells.groups is None:
            raise ValueError(
                f"{type(self).__name__} is a metric of groups and needs "
                "sensitive_features, but none were passed."
            )
        C = cells.by_group(C) if self.needs_groups else cells.total(C)
        return self.resolve(cells.classes).score_of(C)


def gradient_by_differences(value, C):
    """Gradient of `value` at C along moves of mass within a row.

    The largest entry of a row is its reference, where the result is 0. Elsewhere it is
    the change of the value per mass that is moved from the reference. If an entry is
    smaller than a step, differences are one-sided and of second order, so no matrix with
    a negative entry is evaluated. Rows without mass get 0.

    `C` (..., k, k). `value`: (..., k, k) → float. Returns an array of the shape of C.
    """
    C = np.array(C, dtype=np.float64)
    gradient = np.zeros_like(C)
    at_C = float(value(C))
    for row in np.ndindex(C.shape[:-1]):
        total = C[row].sum()
        if not total > 0.0:
            continue
        step = CENTRAL_STEP * total
        source = (*row, int(np.argmax(C[row])))
        for j in range(C.shape[-1]):
            target = (*row, j)
            if target == source:
                continue
            up = float(value(_move(C, source, target, step)))
            if C[target] >= step:
                down = float(value(_move(C, source, target, -step)))
                gradient[target] = (up - down) / (2 * step)
            else:
                further = float(value(_move(C, source, target, 2 * step)))
                gradient[target] = (4 * up - further - 3 * at_C) / (2 * step)
    return gradient


def _move(C, source, target, amount):
    """C with mass moved from one entry to another."""
    moved = C.copy()
    moved[source] -= amount
    moved[target] += amount
    return moved
