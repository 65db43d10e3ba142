"""What a constraint on confusion matrices is; the base class of the user's own ones."""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_structsvm.confusion.scoring import Scored

# What is predicted with less than this probability is never predicted: rounding leaves
# as much of nothing where shares are summed.
NEVER = 1e-14


class Constraint(Scored, BaseEstimator):
    """A condition on the confusion tensor C of shape (m, k, k); subclass it for your own.

    A subclass gives linear conditions (`linear`), or one convex function that must not be
    positive (`has_convex`, `convex_value`, `convex_gradient`), or both. Row sums of C are
    constants, `cells.priors`, and may be used as such. A bound on a ratio of linear
    functions, such as precision, becomes linear when it is multiplied by the denominator;
    `denominators` says which that was.

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

    def denominators(self, cells):
        """What the linear conditions were multiplied by: <D[p], C>, from 0 to 1.

        The violation of condition p is (<G[p], C> + h[p]) / <D[p], C>; where that is 0/0,
        as the precision of a class that is never predicted, the condition is met.

        Parameters
        ----------
        cells : Cells

        Returns
        -------
        D : ndarray of shape (p, m, k, k), or None for ones
        """
        return None

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

    def convex_parts(self, cells):
        """Constraints that together are the convex condition; for `has_convex`.

        The largest of several functions has kinks where the solvers' programs expect
        curves, so that they take each of them on its own. This default is the constraint
        itself.
        """
        return [self]

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
        D = self.denominators(cells)
        worst = largest_violation(
            np.tensordot(G, C, axes=3) + h,
            None if D is None else np.tensordot(D, C, axes=3),
        )
        return max(worst, self.convex_value(C, cells)) if self.has_convex else worst

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


def largest_violation(values, denominators=None):
    """Of linear conditions, in their own units; -inf without any.

    Parameters
    ----------
    values : ndarray of shape (p,)
        <G[p], C> + h[p].
    denominators : ndarray of shape (p,) or None
        <D[p], C>; conditions for which this is 0 count only where there are no others,
        and then as 0.
    """
    if denominators is None:
        return float(values.max(initial=-np.inf))
    counts = denominators > NEVER
    if len(values) and not counts.any():
        return 0.0
    return float((values[counts] / denominators[counts]).max(initial=-np.inf))
