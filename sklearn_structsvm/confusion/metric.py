"""What a metric of confusion matrices is; the base class of the user's own ones."""

import copy

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm.confusion.cells import label_index
from sklearn_structsvm.confusion.scoring import Scored

# Step of a central difference relative to the scale of its variable: the cube root of the
# rounding unit balances rounding (unit / step) and curvature (step²).
STEP = float(np.cbrt(np.finfo(np.float64).eps))


class ConfusionMetric(Scored, BaseEstimator):
    r"""A loss ψ(C) of the confusion matrix, to be minimised; subclass it for your own.

    C has shape (k, k) and sums to 1; C[i, j] is the weighted share of the examples that
    have label i and are predicted j. All that a subclass must have is `value`. What else
    it can say of itself makes the search faster, or its certificate possible:

    - `convex`: ψ is convex in C, where the row sums of C do not change. Then the linear
      function that touches it at one point is nowhere above it, and the solvers can say
      how far they are from the best. Where it is False they still search, but what they
      find need not be the best, and no bound is known.
    - `gradient`: by default central differences of `value`, which cost 2k² values. Your
      own, by hand or by automatic differentiation, is compared with differences once
      before it is used (with `needs_groups` only by
      :func:`~sklearn_structsvm.confusion.check_metric`).
    - `ratio` and `pieces`: exact forms for which there are special solvers.

    Attributes
    ----------
    convex : bool
        Whether ψ is convex on the matrices of given row sums.
    smooth : bool
        Whether ψ has a gradient wherever no rate is 0 and the loss is not 0.
    needs_groups : bool
        True: `value` and `gradient` take the (n_groups, k, k) matrices of the groups.
        False: the (k, k) one of all examples.
    greater_is_better : bool
        True: what users see is the score 1 - ψ(C). False: it is ψ(C) itself, a cost.

    Examples
    --------
    The square of the error of a two-class problem's rarer side:

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
    greater_is_better = True

    def value(self, C):
        """The loss ψ(C), a float.

        Parameters
        ----------
        C : ndarray of shape (k, k), or (n_groups, k, k) with `needs_groups`
            Sums to 1. Rows of a class that the sample lacks are zero.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method value(C).")

    def gradient(self, C):
        """A gradient of ψ at C, or any subgradient where it is convex without one.

        Only its products with changes of C that leave the row sums as they are matter, so
        it is determined up to a constant for each row. This default takes differences
        along such changes, in steps of 6e-6 of the row sum: about ten digits are right
        where ψ is smooth.

        Returns
        -------
        gradient : ndarray of the shape of C
        """
        return gradient_by_differences(self.value, C)

    def tangent(self, C):
        """The linear function that touches ψ at C: ψ(C') ≥ <G, C'> + h if ψ is convex.

        Use this and not value and gradient for lower bounds: where ψ falls infinitely
        fast (the G-mean at a recall of 0), `gradient` is taken at a point close by, and
        the tangent is the one at that point, so that it is still below ψ everywhere.

        Returns
        -------
        G : ndarray of the shape of C
        h : float
        """
        G = self.gradient(C)
        return G, float(self.value(C) - np.vdot(G, C))

    def ratio(self, priors):
        """ψ as <A, C> / <B, C> for matrices of row sums `priors`, or None.

        Parameters
        ----------
        priors : ndarray of shape (k,)

        Returns
        -------
        A, B : ndarrays of shape (k, k), or None
            <B, C> >= 0.
        """
        return None

    def pieces(self, priors):
        """ψ as max_p <G[p], C> + h[p] for matrices of row sums `priors`, or None.

        Parameters
        ----------
        priors : ndarray of shape (k,)

        Returns
        -------
        G : ndarray of shape (p, k, k)
        h : ndarray of shape (p,)
            p = 1 where ψ is linear.
        """
        return None

    def ratio_terms(self, priors):
        """ψ bounded from below by a weighted sum of ratios, or None.

        The sum of the least values that the terms take, each on its own, is a lower
        bound of ψ where it is not convex.

        Returns
        -------
        terms : list of (weight, A, B), or None
            Σ weight <A, C> / <B, C> ≤ ψ(C), with equality unless a class that the sample
            lacks is predicted.
        """
        ratio = self.ratio(priors)
        return None if ratio is None else [(1.0, *ratio)]

    def entries(self, n_classes):
        """Mask (k, k) of the entries that `gradient` may be other than 0 at.

        All others need not be counted (section 7.2 of the paper), and a loss matrix that
        is zero off the diagonal is k times cheaper to minimise. This default is all.
        """
        return np.ones((n_classes, n_classes), dtype=bool)

    def check(self, n_classes):
        """Raise a ValueError where the metric is not defined for this many classes."""

    def resolve(self, classes):
        """A copy that knows the labels of the rows and columns.

        Parameters
        ----------
        classes : array-like of shape (k,)

        Raises
        ------
        ValueError
            Where a parameter is a label that is not among them, or `check` fails.
        """
        classes = np.asarray(classes)
        resolved = copy.copy(self)
        resolved._classes = classes
        resolved.check(len(classes))
        return resolved

    def index_of(self, label, name):
        """Index of a label among the classes that `resolve` was given."""
        classes = getattr(self, "_classes", None)
        if classes is None:
            raise ValueError(
                f"{name}={label!r} is a label: call resolve(classes) first, so that its "
                "row and column are known."
            )
        return label_index(classes, label, name)

    def score_of(self, C):
        """What users see of ψ(C): 1 - ψ(C), or ψ(C) if not `greater_is_better`."""
        value = float(self.value(C))
        return 1.0 - value if self.greater_is_better else value

    def measured(self, C, cells):
        """`score_of` the matrices that `value` takes, of a tensor (m, k, k)."""
        if self.needs_groups and cells.groups is None:
            raise ValueError(
                f"{type(self).__name__} is a metric of groups and needs "
                "sensitive_features: none were given."
            )
        C = cells.by_group(C) if self.needs_groups else cells.total(C)
        return self.resolve(cells.classes).score_of(C)


def gradient_by_differences(value, C):
    """Gradient of `value` at C along moves of mass within a row.

    The reference of a row is its largest entry, at which the result is 0; elsewhere it is
    the change of the value for mass moved from there. Where an entry is less than a step
    the differences are one-sided, of second order, so that no matrix with a negative
    entry is ever evaluated. Rows without mass are left at 0.

    Parameters
    ----------
    value : callable
        (..., k, k) → float.
    C : ndarray of shape (..., k, k)

    Returns
    -------
    gradient : ndarray of the shape of C
    """
    C = np.array(C, dtype=np.float64)
    gradient = np.zeros_like(C)
    at_C = float(value(C))
    for row in np.ndindex(C.shape[:-1]):
        total = C[row].sum()
        if not total > 0.0:
            continue
        step = STEP * total
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
