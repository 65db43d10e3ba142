"""The base class of constraints on confusion matrices."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm._utils.conditions import Conditions, largest_violation
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO
from sklearn_structsvm.confusion.answers import OF_CONSTRAINTS, gate_methods
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.scoring import Scored


class Constraint(Scored, BaseEstimator):
    """Base class of constraints on the confusion tensor.

    Subclass it for a constraint of your own on the confusion tensor C of shape (m, k, k),
    for m cells and k classes. A subclass defines linear conditions (`linear`), one convex
    function that must not be positive (`has_convex`, `convex_value`, `convex_gradient`),
    or both. The row sums of C are constants, `cells.priors`, and may be used as such. A
    bound on a ratio of linear functions, such as precision, becomes linear after
    multiplication by the denominator, which `denominators` returns.

    Read more in the :ref:`User Guide <guide-own-metrics>`.

    Attributes
    ----------
    needs_groups : bool
        Whether the constraint needs groups (`sensitive_features`).
    needs_baseline : bool
        Whether cells must distinguish the labels that a baseline classifier assigns.
    has_convex : bool
        Whether there is a convex condition besides the linear ones.
    has_levels : bool
        Whether the conditions are linear only for a given level, as for
        :class:`~sklearn_structsvm.metrics.PredictiveParity`.

    Examples
    --------
    At most a tenth of the examples may be predicted as the last class:

    >>> import numpy as np
    >>> from sklearn_structsvm.confusion import Cells, Constraint
    >>> class FewLast(Constraint):
    ...     def linear(self, cells):
    ...         G = np.zeros((1, *cells.shape))
    ...         G[..., -1] = 1.0
    ...         return G, np.array([-0.1])
    >>> C = np.array([[[0.5, 0.1], [0.2, 0.2]]])
    >>> round(FewLast().violation(C, Cells.single([0.6, 0.4])), 3)
    0.2
    """

    needs_groups = False
    # Parameters that some lack: a single group, and the feature whose groups count.
    group: Any = None
    feature: Any = None
    # And by how much a condition may be missed.
    slack: Any = None
    needs_baseline = False
    has_convex = False
    has_levels = False
    greater_is_better = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check what the methods of a user's constraint return."""
        super().__init_subclass__(**kwargs)
        gate_methods(cls, OF_CONSTRAINTS)

    def linear(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        r"""Linear conditions of the constraint.

        Condition p is :math:`\langle G_p, C \rangle + h_p \le 0`.

        Parameters
        ----------
        cells : Cells
            The cells of the confusion tensor.

        Returns
        -------
        G : ndarray of shape (p, m, k, k)
            Coefficients. There may be no conditions, p = 0.
        h : ndarray of shape (p,)
            Constants.
        """
        return np.zeros((0, *cells.shape)), np.zeros(0)

    def denominators(self, cells: Cells) -> np.ndarray | None:
        r"""Denominators by which the linear conditions were multiplied.

        The violation of condition p is :math:`(\langle G_p, C \rangle + h_p) / \langle
        D_p, C \rangle`, with a denominator between 0 and 1. If it is 0/0, such as for the
        precision of a class that is never predicted, the violation is 0.

        Parameters
        ----------
        cells : Cells
            The cells of the confusion tensor.

        Returns
        -------
        D : ndarray of shape (p, m, k, k), or None
            Coefficients of the denominators. None means that they are 1.
        """
        return None

    def counted(self, cells: Cells) -> list[np.ndarray]:
        """The entries that the rates of the constraint are among.

        A rate among none says nothing, and is never certified. By default they are the
        entries that the denominators of its conditions count.

        Parameters
        ----------
        cells : Cells
            The cells of the confusion tensor.

        Returns
        -------
        list of ndarray of bool, shape (m, k, k)
            For each rate, the entries of C whose sum it is divided by.
        """
        D = self._conditions(cells).D
        return [] if D is None else list(D != 0.0)

    def empty_counts(self, cells: Cells, C: np.ndarray | None = None) -> list[str]:
        """Names of those of `counted` that are of no example.

        Parameters
        ----------
        cells : Cells
            The cells of the confusion tensor.
        C : ndarray of shape (m, k, k) or None, default=None
            Confusion tensor. None names what is empty whatever is predicted.

        Returns
        -------
        list of str
        """
        return list(
            dict.fromkeys(
                cells.words_of(mask)
                for mask in self.counted(cells)
                if not cells.label_shares[mask.any(axis=2)].sum() > 0.0
                or (C is not None and not C[mask].sum() > ROUNDED_ZERO)
            )
        )

    def _conditions(self, cells: Cells) -> Conditions:
        """The linear conditions in the shortest form."""
        G, h = self.linear(cells)
        return Conditions(G, h, self.denominators(cells), np.zeros(len(h), dtype=int))

    def convex_value(self, C: np.ndarray, cells: Cells) -> float:
        """Value of the convex function that must not be positive, for `has_convex`."""
        raise NotImplementedError(f"{type(self).__name__} has no convex condition.")

    def convex_gradient(self, C: np.ndarray, cells: Cells) -> np.ndarray:
        """A subgradient of `convex_value`, of the shape of C, for `has_convex`."""
        raise NotImplementedError(f"{type(self).__name__} has no convex condition.")

    def convex_tangent(self, C: np.ndarray, cells: Cells) -> tuple[np.ndarray, float]:
        """Tangent (G, h) at C: convex_value(C') >= <G, C'> + h for all C'."""
        G = self.convex_gradient(C, cells)
        return G, float(self.convex_value(C, cells) - np.vdot(G, C))

    def convex_parts(self, cells: Cells) -> list["Constraint"]:
        """Split the convex condition into equivalent constraints, for `has_convex`.

        A maximum of several functions has kinks that slow down the solvers, so they treat
        its parts separately. By default the only part is the constraint itself.
        """
        return [self]

    def violation(self, C: np.ndarray, cells: Cells) -> float:
        """Constraint violation at C, in the units of the constraint.

        Parameters
        ----------
        C : ndarray of shape (m, k, k)
            Confusion tensor.
        cells : Cells
            Its cells.

        Returns
        -------
        violation : float
            At most 0 if the constraint holds; not below it if a rate has no examples.
        """
        G, h, D, halves = self._conditions(cells)
        worst = largest_violation(
            np.tensordot(G, C, axes=3) + h,
            None if D is None else np.tensordot(D, C, axes=3),
            halves,
        )
        if self.has_convex:
            worst = max(worst, self.convex_value(C, cells))
        return max(worst, 0.0) if self.empty_counts(cells, C) else worst

    def measured(self, C: np.ndarray, cells: Cells) -> float:
        """The violation, after `check`: the value of a call of the constraint."""
        self.check(cells)
        return self.violation(C, cells)

    def check(self, cells: Cells) -> None:
        """Raise a ValueError if the constraint makes no sense for these cells.

        Examples are unknown labels or groups, missing groups, and bounds out of range.
        They are found before any work is done.
        """
        if self.needs_groups and cells.groups is None:
            raise ValueError(
                f"{type(self).__name__} is a constraint on groups and needs "
                "sensitive_features, but none were passed."
            )
        self._conditions(cells)
