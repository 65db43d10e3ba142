"""Examples with class probabilities, on which confusion tensors are counted."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_array, as_floats
from sklearn_structsvm._utils.labels import as_classes, encode
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.counts import as_labels, make_cells
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.complex_metric.oracles import PluginOracle, counted_as
from sklearn_structsvm.estimators.complex_metric.task import (
    Task,
    make_task,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError
from sklearn_structsvm.solvers.confusion.named import find_solver
from sklearn_structsvm.solvers.loop import History

# `make_task` needs a metric even if the user asked for none.
_ANY_METRIC = "zero_one"


class ConfusionSample:
    """A task, the oracle of its examples' class probabilities, and a solver for it.

    Attributes
    ----------
    task : Task
    cells : Cells
        With the row sums that the oracle counts.
    lmo : PluginLMO or ThresholdLMO
    problem : ConfusionProblem
    """

    def __init__(self, task, probabilities, confusion):
        counted = counted_as(confusion, len(task.classes))
        self.task = task
        self.lmo = PluginOracle(task, probabilities, counted, n_threads=1).lmo
        self.problem = task.problem(self.lmo)
        self.cells = self.problem.cells

    @classmethod
    def of_estimator(cls, estimator, X, y, sample_weight, sensitive_features):
        """The sample of a fitted ComplexMetricClassifier and any examples.

        Raises
        ------
        NotFittedError
        TypeError
            For other estimators, and if `lmo` is not "plugin".
        """
        check_is_fitted(estimator)
        mixture = getattr(estimator, "mixture_", None)
        if not getattr(mixture, "needs_probabilities", False):
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
        probabilities, _, _ = estimator._mixture_input(
            "predict_proba", X, sensitive_features, None, {}
        )
        groups = finder.groups
        if groups is not None:
            groups = groups.of(sensitive_features, len(y))
        baseline = finder.baseline_codes(X, sensitive_features)
        labels = encode(y, classes)
        codes, cells = make_cells(labels, weights, classes, groups, baseline)
        task = Task(
            estimator.metric_,
            constraints,
            finder,
            classes,
            labels,
            weights,
            codes,
            cells,
        )
        return cls(task, probabilities, estimator.confusion)

    @classmethod
    def of_predictions(cls, y_true, y_proba, problem, metadata, confusion):
        """The sample of given labels and probabilities, without an estimator.

        Parameters
        ----------
        problem : (metric or None, constraints)
        metadata : (labels, sample_weight, sensitive_features), each may be None

        Raises
        ------
        ValueError
            If the probabilities do not match the labels, or the metric or a constraint
            refuses the data.
        """
        (metric, constraints), (labels, sample_weight, groups) = problem, metadata
        y = as_labels(y_true, "y_true")
        classes = np.unique(y) if labels is None else as_classes(labels, "labels")
        probabilities = as_array("y_proba", y_proba)
        probabilities = as_floats("y_proba", probabilities, *probabilities.shape)
        if probabilities.ndim == 1:
            probabilities = np.column_stack([1 - probabilities, probabilities])
        if probabilities.shape != (len(y), len(classes)):
            raise ValueError(
                f"y_proba must have {len(y)} rows, and one column for each of the labels "
                f"{classes.tolist()}; got shape {probabilities.shape}."
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
        return cls(task, probabilities, confusion)

    def most_probable(self):
        """Confusion tensor of the classifier that predicts the most probable class."""
        k = len(self.task.classes)
        return self.lmo.confusion(np.broadcast_to(1.0 - np.eye(k), self.cells.shape))

    def solve(self, solver, options):
        """The mixture that a solver finds, and the confusion tensors of its iterates.

        Returns
        -------
        confusions : ndarray of shape (n_mixture, m, k, k)
            One per classifier; empty if no classifier meets the constraints.
        weights : ndarray of shape (n_mixture,)
        path : list of ndarray of shape (m, k, k)
            One per row of the history, and the final one.
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
