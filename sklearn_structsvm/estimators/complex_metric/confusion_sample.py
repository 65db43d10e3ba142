"""Examples whose confusion tensors are counted, and the plane that shows them."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_array, as_floats
from sklearn_structsvm._utils.labels import as_classes, encode
from sklearn_structsvm._utils.outlines import convex_outline, swept_outline
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.counts import as_labels, make_cells
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.complex_metric.oracles import PluginOracle, counted_as
from sklearn_structsvm.estimators.complex_metric.predicting import RandomizedClassifier
from sklearn_structsvm.estimators.complex_metric.task import Task, make_task
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError
from sklearn_structsvm.solvers.confusion.named import find_solver
from sklearn_structsvm.solvers.loop import History

# `make_task` needs a metric even if the user asked for none.
_ANY_METRIC = "zero_one"

# Accuracy of outlines, as a share of the set's larger side: less than a pixel, or about
# a pixel if each point takes a program of its own.
OUTLINE_TOL = 1e-3
FEASIBLE_TOL = 5e-3


class ConfusionSample:
    """A task, the oracle of its examples' class probabilities, and a solver for it.

    `cells`: with the row sums that the oracle counts.
    """

    def __init__(self, task, P, confusion):
        counted = counted_as(confusion, len(task.classes))
        self.task = task
        self.lmo = PluginOracle(task, P, counted, n_threads=1).lmo
        self.problem = task.problem(self.lmo)
        self.cells = self.problem.cells

    @classmethod
    def of_estimator(cls, estimator, X, y, sample_weight, sensitive_features):
        """The sample of a fitted ComplexMetricClassifier and any examples.

        TypeError for other estimators, and if `lmo` is not "plugin".
        """
        check_is_fitted(estimator)
        is_known = isinstance(estimator, RandomizedClassifier)
        if not is_known or not estimator.mixture_.needs_probabilities:
            raise TypeError(
                "estimator must be a ComplexMetricClassifier with lmo='plugin'; got "
                f"{estimator!r}."
            )
        y = as_labels(y, "y")
        weights = check_weights(sample_weight, len(y))
        finder, classes = estimator.cell_finder_, estimator.classes_
        constraints = read_constraints(estimator.constraints)
        if any(part.needs_costs for part in (estimator.metric_, *constraints)):
            raise ValueError(
                "Metrics and constraints with individual costs of the examples are not "
                "functions of the confusion matrix, so they cannot be drawn."
            )
        P, _, _ = estimator._mixture_input(
            "predict_proba", X, sensitive_features, None, {}
        )
        groups = finder.groups
        if groups is not None:
            groups = groups.of(sensitive_features, len(y))
        baseline = finder.baseline_codes(X, sensitive_features)
        labels = encode(y, classes)
        codes, cells = make_cells(labels, weights, classes, groups, baseline)
        task = Task(
            estimator.metric_, constraints, finder, classes, labels, weights, codes, cells
        )
        return cls(task, P, estimator.confusion)

    @classmethod
    def of_predictions(cls, y_true, y_proba, problem, metadata, confusion):
        """The sample of given labels and probabilities, without an estimator.

        `problem` (metric or None, constraints), `metadata` (labels, sample_weight,
        sensitive_features), each may be None. ValueError if the probabilities do not
        match the labels, or the metric or a constraint refuses the data.
        """
        (metric, constraints), (labels, sample_weight, groups) = problem, metadata
        y = as_labels(y_true, "y_true")
        classes = np.unique(y) if labels is None else as_classes(labels, "labels")
        P = as_array("y_proba", y_proba)
        P = as_floats("y_proba", P, *P.shape)
        if P.ndim == 1:
            P = np.column_stack([1 - P, P])
        if P.shape != (len(y), len(classes)):
            raise ValueError(
                f"y_proba must have {len(y)} rows, and one column for each of the labels "
                f"{classes.tolist()}; got shape {P.shape}."
            )
        constraints = read_constraints(constraints)
        if any(constraint.needs_baseline for constraint in constraints):
            raise ValueError("Constraints with a baseline need X: use from_estimator.")
        task = make_task(
            _ANY_METRIC if metric is None else metric,
            constraints,
            classes,
            None,
            y,
            check_weights(sample_weight, len(y)),
            groups,
        )
        return cls(task, P, confusion)

    def most_probable(self):
        """Confusion tensor of the classifier that predicts the most probable class."""
        k = len(self.task.classes)
        return self.lmo.confusion(np.broadcast_to(1.0 - np.eye(k), self.cells.shape))

    def solve(self, solver, options):
        """The mixture that a solver finds, and the confusion tensors of its iterates.

        Returns `confusions` (n_mixture, m, k, k): one per classifier; empty if no
        classifier meets the constraints; `weights` (n_mixture,); `path` (list of (m, k,
        k)): one per row of the history, and the final one.
        """
        history, path = History(), []

        def look(n_iter, row, done):
            if history.solution is not None and len(history.rows) > len(path):
                path.append(history.solution.confusion)

        _, solver_class = find_solver(solver, self.problem.constrained)
        try:
            result = solver_class.run(
                self.problem, on_pass=look, history=history, **options
            )
        except InfeasibleConstraintError:
            return [], [], path
        mixture = result.solution
        path.append(mixture.confusion)
        return mixture.confusions, mixture.weights, path


class ConfusionPlane:
    """Two entries of a confusion tensor as coordinates.

    `entries` (pair, each a label or a pair (label, prediction)): a label stands for its
    diagonal entry; None for the first two labels. `normalize`: whether to divide by the
    row sum, so that entries are shares of a label's examples, such as recalls. `group`
    or None: count only the examples of this group.

    Attributes: `U` (2, m, k, k): the coordinates of C are <U[0], C> and <U[1], C>.
    `limits` (2,): upper bounds of the coordinates. ValueError for entries, labels or
    groups that do not exist or have no examples.
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
                # A tenth of the accuracy that is visible.
                problem.linearized(L),
                tol=5e-4,
                max_iter=200,
            )
            return self.project(result.solution.confusion)

        try:
            return convex_outline(support, tol=FEASIBLE_TOL)
        except InfeasibleConstraintError:
            return np.empty((0, 2))

    def scores(self, metric):
        """A metric over the plane, or None if the coordinates do not determine it.

        They do for two classes, with one coordinate per label and without groups.

        Returns None, or x (n,), y (n,) and values (n, n), where values[b, a] is the
        score at x[a] and y[b].
        """
        (first, _), (second, _) = self.indices
        if (
            self.cells.n_classes != 2
            or first == second
            or metric.needs_groups
            or not self.is_all
        ):
            return None
        x, y = (np.linspace(0.0, limit, 81) for limit in self.limits)
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
