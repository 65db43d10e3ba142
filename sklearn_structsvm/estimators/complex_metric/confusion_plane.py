"""Projection of confusion tensors onto two of their entries."""

import numpy as np

from sklearn_structsvm._utils.outlines import convex_outline, swept_outline
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# Contours of a metric: its values on a grid of this many points a side.
_N_GRID = 81

# Accuracy of outlines, as a share of the set's larger side: less than a pixel, or about
# a pixel if each point takes a program of its own.
OUTLINE_TOL = 1e-3
FEASIBLE_TOL = 5e-3

# Limits of these programs: a tenth of the accuracy that is visible.
_PROGRAM_TOL = 5e-4
_PROGRAM_ITER = 200


class ConfusionPlane:
    """Two entries of a confusion tensor as coordinates.

    Parameters
    ----------
    cells : Cells
    entries : pair, each a label or a pair (label, prediction), or None
        A label stands for its diagonal entry; None for the first two labels.
    normalize : bool
        Whether to divide by the row sum, so that entries are shares of a label's
        examples, such as recalls.
    group : group or None
        Count only the examples of this group.

    Attributes
    ----------
    U : ndarray of shape (2, m, k, k)
        The coordinates of C are <U[0], C> and <U[1], C>.
    names : list of two str
    limits : ndarray of shape (2,)
        Upper bounds of the coordinates.

    Raises
    ------
    ValueError
        For entries, labels or groups that do not exist or have no examples.
    """

    def __init__(self, cells, entries=None, *, normalize=True, group=None):
        self.cells, self.normalize = cells, normalize
        self.is_all = group is None
        mask = cells.cells_of(None if self.is_all else cells.group_index(group))
        if entries is None:
            entries = np.asarray(cells.classes)[:2].tolist()
        self.indices = _read_entries(entries, cells)
        self.U = np.zeros((2, *cells.shape))
        self.names, self.limits = [], np.ones(2)
        for axis, (i, j) in enumerate(self.indices):
            label, prediction = np.asarray(cells.classes)[[i, j]].tolist()
            share = cells.priors[mask, i].sum()
            if not share > 0.0:
                where = "" if self.is_all else f" in group {group!r}"
                raise ValueError(f"There is no example with label {label!r}{where}.")
            self.U[axis, mask, i, j] = 1.0 / share if normalize else 1.0
            if not normalize:
                self.limits[axis] = share
            self.names.append(_axis_name(label, prediction, normalize, group))

    def project(self, C):
        """Coordinates (..., 2) of tensors of shape (..., m, k, k)."""
        flat = np.asarray(C, dtype=np.float64)
        flat = flat.reshape(*flat.shape[:-3], -1)
        return flat @ self.U.reshape(2, -1).T

    def achievable(self, lmo):
        """Outline of the confusion tensors of all mixtures of an LMO's classifiers."""

        def support(direction):
            C, _, _ = lmo(-np.tensordot(direction, self.U, axes=1))
            return self.project(C)

        if lmo.exact:
            return convex_outline(support, tol=OUTLINE_TOL)
        return swept_outline(support)

    def feasible(self, lmo, constraints):
        """Outline of those that meet the constraints; without rows if none does."""

        problem = ConfusionProblem(_Linear(), lmo, self.cells, constraints)

        def support(direction):
            L = -np.tensordot(direction, self.U, axes=1)
            result = run_column_generation(
                problem.linearized(L), tol=_PROGRAM_TOL, max_iter=_PROGRAM_ITER
            )
            return self.project(result.solution.confusion)

        try:
            return convex_outline(support, tol=FEASIBLE_TOL)
        except InfeasibleConstraintError:
            return np.empty((0, 2))

    def scores(self, metric):
        """A metric over the plane, or None if the coordinates do not determine it.

        They do for two classes, with one coordinate per label and without groups.

        Returns
        -------
        (x, y, values), arrays of shape (n,), (n,) and (n, n), or None
            values[b, a] is the score at x[a] and y[b].
        """
        (first, _), (second, _) = self.indices
        if (
            self.cells.n_classes != 2
            or first == second
            or metric.needs_groups
            or not self.is_all
        ):
            return None
        x, y = (np.linspace(0.0, limit, _N_GRID) for limit in self.limits)
        values = [[metric.score_of(self._matrix(a, b)) for a in x] for b in y]
        return x, y, np.array(values)

    def _matrix(self, *coordinates):
        """The (2, 2) confusion matrix with these coordinates."""
        priors = self.cells.class_priors
        C = np.empty((2, 2))
        for (i, j), value in zip(self.indices, coordinates, strict=True):
            C[i, j] = value * priors[i] if self.normalize else value
            C[i, 1 - j] = priors[i] - C[i, j]
        return C


class _Linear(ConfusionMetric):
    """What linear functions of all cells have in common."""

    convex = True
    smooth = True
    needs_groups = True


def _read_entries(entries, cells):
    """Indices (label, prediction) of both entries."""
    if isinstance(entries, str) or not hasattr(entries, "__len__") or len(entries) != 2:
        raise ValueError(
            f"entries must be two labels or pairs (label, prediction); got {entries!r}."
        )
    found = []
    for entry in entries:
        pair = entry if isinstance(entry, tuple) else (entry, entry)
        if len(pair) != 2:
            raise ValueError(
                "Each of entries must be a label or a pair (label, prediction); got "
                f"{entry!r}."
            )
        found.append(tuple(cells.class_index(label, "entries") for label in pair))
    if found[0] == found[1]:
        raise ValueError(f"entries must be two different entries; got {entries!r}.")
    return found


def _axis_name(label, prediction, normalize, group):
    if label == prediction:
        name = f"Recall of {label}" if normalize else f"Share of right {label}"
    elif normalize:
        name = f"Share of {label} predicted {prediction}"
    else:
        name = f"Share that is {label}, predicted {prediction}"
    return name if group is None else f"{name}, group {group}"
