"""Confusion problems whose optima are known or computed by scipy."""

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.lmo.base import Minimizer
from sklearn_structsvm.confusion.metric_bound import MetricBound
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import get_metric
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL


class FiniteOracle(Minimizer):
    """An oracle whose achievable tensors are those of a list and their mixtures."""

    exact = True

    def __init__(self, tensors):
        self.tensors = np.asarray(tensors)
        self.n_calls = 0

    def __call__(self, L):
        self.n_calls += 1
        costs = np.tensordot(self.tensors, L, axes=3)
        best = int(np.argmin(costs))
        return self.tensors[best], best, float(costs[best])


class GaussianOracle(Minimizer):
    """All classifiers for two normal classes with means ±1/2 and variance 1.

    These are the distributions NormBal and NormImbal of figure 2. Handles are thresholds.
    """

    exact = True

    def __init__(self, positive=0.5):
        self.priors = np.array([1.0 - positive, positive])
        self.n_calls = 0

    def tensor(self, threshold, above=True):
        """The confusion of predicting 1 above the threshold, or below it."""
        rates = norm.sf(threshold + np.array([0.5, -0.5]))
        rates = rates if above else 1.0 - rates
        return (self.priors[:, None] * np.column_stack([1.0 - rates, rates]))[None]

    def __call__(self, L):
        self.n_calls += 1
        (L,) = L
        # Predicting 1 costs more than 0 by (1 - η) a + η b, and the odds rise as e^x.
        a, b = self.priors * (L[:, 1] - L[:, 0])
        if a * b >= 0.0:
            threshold, above = np.inf if a + b > 0.0 else -np.inf, True
        else:
            threshold, above = np.log(-a / b), b < 0.0
        C = self.tensor(threshold, above)
        return C, (threshold, above), float(np.vdot(L, C))


def gaussian_problem(metric, constraints=(), positive=0.5):
    """The problem of a `GaussianOracle`."""
    oracle = GaussianOracle(positive)
    cells = Cells.single(oracle.priors)
    return ConfusionProblem(get_metric(metric, cells.classes), oracle, cells, constraints)


def random_tensors(rng, n_tensors, n_cells, n_classes, n_points=12):
    """Tensors of plug-in classifiers with random costs for each cell.

    There are few points, so the best mixtures need several classifiers.
    """
    eta = rng.dirichlet(np.full(n_classes, 0.7), size=(n_cells, n_points))
    weights = rng.dirichlet(np.ones(n_cells * n_points)).reshape(n_cells, n_points)
    tensors = np.zeros((n_tensors, n_cells, n_classes, n_classes))
    for t in range(n_tensors):
        costs = rng.exponential(size=(n_cells, n_classes)) ** 1.5
        predicted = (eta * costs[:, None]).argmax(axis=2)
        for a, x in np.ndindex(n_cells, n_points):
            tensors[t, a, :, predicted[a, x]] += weights[a, x] * eta[a, x]
    return tensors, tensors[0].sum(axis=2)


def finite_problem(rng, metric, constraints=(), n_tensors=20, n_cells=1, n_classes=3):
    """A problem of a `FiniteOracle`; each cell is a group."""
    tensors, priors = random_tensors(rng, n_tensors, n_cells, n_classes)
    groups = np.arange(n_cells) if n_cells > 1 else None
    names = list(range(n_cells)) if n_cells > 1 else None
    cells = Cells(priors, np.arange(n_classes), groups, names)
    return ConfusionProblem(
        get_metric(metric, cells.classes), FiniteOracle(tensors), cells, constraints
    )


def linear_optimum(problem, G, h):
    """The minimum of max_p <G[p], C> + h[p] over mixtures under linear constraints."""
    tensors = problem.oracle.tensors
    n = len(tensors)
    pieces = np.tensordot(G, tensors, axes=([1, 2, 3], [1, 2, 3])) + h[:, None]
    rows = np.tensordot(problem.linear[0], tensors, axes=([1, 2, 3], [1, 2, 3]))
    rows = rows + problem.linear[1][:, None]
    A = np.block([[pieces, -np.ones((len(h), 1))], [rows, np.zeros((len(rows), 1))]])
    found = linprog(
        np.append(np.zeros(n), 1.0), A_ub=A, b_ub=np.zeros(len(A)),
        A_eq=np.append(np.ones(n), 0.0)[None], b_eq=[1.0],
        bounds=[(0.0, None)] * n + [(None, None)],
    )  # fmt: skip
    return found.fun if found.status == 0 else None


def check_result(result, problem, tol):
    """Check that a result is consistent, and that its gap is that of its bound."""
    mixture = result.solution
    assert (mixture.weights > 0.0).all()
    assert abs(mixture.weights.sum() - 1.0) <= 1e-12
    assert len(mixture.handles) == len(mixture.weights) == len(mixture.confusions)
    mixed = np.tensordot(mixture.weights, mixture.confusions, axes=1)
    np.testing.assert_allclose(mixture.confusion, mixed, atol=1e-15)
    np.testing.assert_allclose(mixed.sum(axis=2), problem.priors, atol=1e-12)
    assert result.objective == problem.value(result.solution.confusion)
    assert result.violation == problem.violation(result.solution.confusion)
    if np.isfinite(result.gap):
        assert result.gap == result.objective - result.dual_objective
        # No loss is negative, so a loss of zero is known to be the least.
        assert result.gap > 0.0 or result.objective == 0.0
    if result.status == "converged":
        assert result.gap <= tol
        curved = any(isinstance(own, MetricBound) for own in problem.constraints)
        assert result.violation <= (FEASIBILITY_TOL if curved else 0.0)
    for key, column in result.history.items():
        assert len(column) == len(result.history["n_iter"]), key
    assert result.history["dual_objective"][-1] == result.dual_objective
    assert result.history["objective"][-1] == result.objective
    bounds = result.history["dual_objective"]
    if problem.exact:
        # Each is lowered by the rounding error of its objective as well.
        assert (np.diff(bounds[np.isfinite(bounds)]) >= -1e-12).all()


def check_optimum(result, problem, best, tol, rounding=1e-9):
    """Check that a run has converged, and that `best` is between its bounds."""
    assert result.status == "converged"
    check_result(result, problem, tol)
    assert result.dual_objective <= best + rounding
    assert result.objective <= best + tol
