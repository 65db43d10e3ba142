"""What a constraint on confusion matrices is; the base class of the user's own ones."""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm.confusion.scoring import Scored


class Constraint(Scored, BaseEstimator):
    """A condition on the confusion tensor C of shape (m, k, k); subclass it for your own.

    A subclass gives linear conditions (`linear`), or one convex function that must not be
    positive (`has_convex`, `convex_value`, `convex_gradient`), or both. Row sums of C are
    constants, `cells.priors`, and may be used as such.

    Attributes
    ----------
    needs_groups : bool
        Whether it must know the groups (`sensitive_features`).
    needs_baseline : bool
        Whether cells must tell the labels that a baseline classifier gives apart.
    has_convex : bool
        Whether there is a condition besides the linear ones.

    Examples
    --------
    At most a tenth of the examples may be predicted to be of the last class:

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
    needs_baseline = False
    has_convex = False
    greater_is_better = False

    def linear(self, cells):
        """The linear conditions: <G[p], C> + h[p] <= 0 for each p.

        Parameters
        ----------
        cells : Cells

        Returns
        -------
        G : ndarray of shape (p, m, k, k)
        h : ndarray of shape (p,)
            p may be 0.
        """
        return np.zeros((0, *cells.shape)), np.zeros(0)

    def convex_value(self, C, cells):
        """The convex function that must not be positive; for `has_convex`."""
        raise NotImplementedError(f"{type(self).__name__} has no convex condition.")

    def convex_gradient(self, C, cells):
        """A subgradient of `convex_value`, of the shape of C; for `has_convex`."""
        raise NotImplementedError(f"{type(self).__name__} has no convex condition.")

    def convex_tangent(self, C, cells):
        """(G, h) with convex_value(C') >= <G, C'> + h for all C', equal at C."""
        G = self.convex_gradient(C, cells)
        return G, float(self.convex_value(C, cells) - np.vdot(G, C))

    def violation(self, C, cells):
        """How far C is from meeting the constraint, in its own units; <= 0 if it does.

        Parameters
        ----------
        C : ndarray of shape (m, k, k)
        cells : Cells

        Returns
        -------
        violation : float
        """
        G, h = self.linear(cells)
        values = list(np.tensordot(G, C, axes=3) + h)
        if self.has_convex:
            values.append(self.convex_value(C, cells))
        return float(max(values, default=-np.inf))

    def measured(self, C, cells):
        """The violation, after `check`; users see it when they call the object."""
        self.check(cells)
        return self.violation(C, cells)

    def check(self, cells):
        """Raise a ValueError where the constraint makes no sense for these cells.

        Labels and groups that are not there, groups that were not given, bounds out of
        range: found here, before any work.
        """
        if self.needs_groups and cells.groups is None:
            raise ValueError(
                f"{type(self).__name__} is a constraint on groups and needs "
                "sensitive_features: none were given."
            )
        self.linear(cells)
