"""Conditional random fields for many values of C, each fitted from the one before."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sklearn_structsvm._utils.borders import check_entries, check_shape
from sklearn_structsvm._utils.mistakes import validate_params
from sklearn_structsvm._utils.options import check_options
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.grid_of_c import (
    CS_CONSTRAINT,
    given_grid,
    make_grid,
    warm_fits,
    warn_of_gaps,
)
from sklearn_structsvm.estimators.named_structures import StructureName
from sklearn_structsvm.estimators.problem import bind_local, check_scale
from sklearn_structsvm.solvers.batch.elastic_net import run_elastic_net
from sklearn_structsvm.structures import Structure

# The ends of a grid with a given number of values.
SMALLEST_C, LARGEST_C = 1e-3, 1e2


@dataclass
class CRFPath:
    r"""Conditional random fields for increasing values of C.

    Read more in the :ref:`User Guide <guide-crf-path>`.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, in increasing order.
    coefs : ndarray or csr_array of shape (n_Cs, d)
        The `coef_` of :class:`CRFClassifier` for each C, as a row: of d weights for
        structures, and for flat data of n_features weights for one class or label after
        another. Sparse if `l1_ratio` is not 0.
    intercepts : ndarray of shape (n_Cs, n_intercepts) or None
        The `intercept_` for each C. None for structures, whose biases are among `coefs`.
    objectives, dual_gaps : ndarray of shape (n_Cs,)
        The normalized objective for each C, and its duality gap.
    n_iter : ndarray of shape (n_Cs,), dtype int
        Passes or steps of each fit. 0 where all weights are known to be zero.
    """

    Cs: np.ndarray
    coefs: np.ndarray | sparse.csr_array
    intercepts: np.ndarray | None
    objectives: np.ndarray
    dual_gaps: np.ndarray
    n_iter: np.ndarray

    def __setstate__(self, state):
        check_entries(type(self).__name__, state, *(own.name for own in fields(self)))
        vars(self).update(state)

    @property
    def n_nonzeros(self) -> np.ndarray:
        """For each C, the number of nonzero weights, including intercepts."""
        check_shape("coefs", self.coefs, "n_Cs", "n_weights")
        counts = (self.coefs != 0.0).sum(axis=1)
        if self.intercepts is not None:
            check_shape("intercepts", self.intercepts, len(counts), "n_intercepts")
            counts = counts + np.count_nonzero(self.intercepts, axis=1)
        return np.asarray(counts, dtype=np.intp)


@validate_params(
    {
        **{
            name: constraint
            for name, constraint in CRFClassifier._parameter_constraints.items()
            if name not in ("C", "verbose", "warm_start")
        },
        "Cs": CS_CONSTRAINT,
    },
    prefer_skip_nested_validation=False,
)
def crf_path(
    X: Any,
    y: Any,
    *,
    structure: StructureName | Structure = "auto",
    sample_weight: ArrayLike | None = None,
    Cs: int | ArrayLike = 10,
    l1_ratio: float = 0.0,
    fit_intercept: bool = True,
    class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
    label_costs: ArrayLike | None = None,
    solver: Literal["auto", "dual", "lbfgs", "newton"] = "auto",
    tol: float = 1e-3,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    solver_options: dict[str, Any] | None = None,
) -> CRFPath:
    r"""Fit conditional random fields for increasing values of C.

    The problem is that of :class:`CRFClassifier`, and each fit starts from the solution
    before. With an L1 penalty all weights are zero up to

    .. math::

        C_0 = \frac{\rho}{\|g\|_\infty}, \qquad
        g = \sum_i s_i \Bigl(\phi(x_i, y_i) - \frac{1}{|Y_i|}
        \sum_{y \in Y_i} \phi(x_i, y)\Bigr),

    where :math:`\rho` is `l1_ratio`, :math:`s_i` are the sample weights and :math:`Y_i`
    is the set of labelings of example i. Above :math:`C_0` some are not.

    Read more in the :ref:`User Guide <guide-crf-path>`.

    Parameters
    ----------
    X, y, sample_weight : as in `CRFClassifier.fit`
        Training data, in memory. With hidden labels each fit is a concave-convex
        procedure of its own that starts from the solution before, and its gap is that of
        the last convex step.
    structure : "auto", str or Structure, default="auto"
        See `CRFClassifier`.
    Cs : int or array-like, default=10
        Values of C. An int sets the number of values, which are then evenly spaced on a
        logarithmic scale: from :math:`C_0` to 1000 :math:`C_0` with an L1 penalty, and
        from 0.001 to 100 without, or if no weight ever leaves zero.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 (squared L2 norm) to 1 (L1 norm).
    fit_intercept, class_weight, label_costs : optional
        See `CRFClassifier`. The intercept is penalized, so that it is among the weights
        that are zero up to :math:`C_0`.
    solver : optional
        See `CRFClassifier`.
    tol : float, default=1e-3
        Each fit stops once its duality gap is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the data, for each fit. If this or `max_time` cuts
        fits short, a ConvergenceWarning is issued.
    n_jobs : int or None, default=None
        Number of threads, see `CRFClassifier`.
    random_state : int, RandomState instance or None, default=None
        Controls the order in which examples are drawn. With an int and a fixed `n_jobs`,
        paths are reproducible bit for bit.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        intercept_scaling, classes : optional
            See `CRFClassifier`. The intercept is penalized, so that it is among the
            weights that are zero up to :math:`C_0`.
        sampling, acceleration, gap_check_interval : optional
            See `CRFClassifier`.
        max_time : float or None, default=None
            Time limit in seconds, for each fit. A path that is cut short by it is not
            reproducible bit for bit.

    Returns
    -------
    path : CRFPath
        The weights for each C, with their duality gaps.

    Raises
    ------
    ValueError
        If `CRFClassifier.fit` would reject the data, or if a parameter is out of range.

    See Also
    --------
    CRFClassifierCV : Chooses C by cross-validation along such paths.
    bcfw_path : Solutions of structural SVMs for all values of C.
    sklearn.svm.l1_min_c : :math:`C_0` of rows of two classes, for ``loss="log"``.

    Examples
    --------
    >>> from sklearn_structsvm import crf_path
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> path = crf_path(X, y, Cs=5, l1_ratio=0.9, random_state=0)
    >>> path.coefs.shape
    (5, 78)
    >>> int(path.n_nonzeros[0]), bool(path.n_nonzeros[1] > 0)
    (0, True)
    >>> bool(path.dual_gaps.max() <= 1e-3)
    True
    """
    given_grid(Cs)
    options = dict(CRFClassifier._option_table)
    del options["decoding"]
    check_options("crf_path", solver_options, options)
    estimator = CRFClassifier(
        structure,
        l1_ratio=l1_ratio,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        label_costs=label_costs,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
        random_state=random_state,
        solver_options=solver_options,
    )
    estimator._check_parameters()
    problem = bind_local(estimator, X, y, sample_weight)
    estimator._bind_costs(problem)
    # This rejects solvers and L1 penalties that the structure does not support.
    estimator._resolved_solver(problem, None)
    first = _first_C(estimator, problem) if l1_ratio > 0.0 else 0.0
    # With an L1 penalty, the grid begins where the first weight leaves zero, and ends at
    # this many times this C.
    ends = (first, 1e3 * first) if 0.0 < first < np.inf else (SMALLEST_C, LARGEST_C)
    grid = make_grid(Cs, lambda: ends)
    check_scale(estimator, problem, float(grid[-1]))
    points = [_zero_point(estimator, problem, C) for C in grid[grid <= first]]
    for _ in warm_fits(estimator, problem, grid[grid > first]):
        found = vars(estimator)
        others = (found[name] for name in ("objective_", "dual_gap_", "n_iter_"))
        points.append((found["coef_"], found.get("intercept_"), *others))
    coefs, intercepts, objectives, gaps, n_iter = zip(*points, strict=True)
    stacked = sparse.vstack if l1_ratio > 0.0 else np.vstack
    to_row = sparse.csr_array if l1_ratio > 0.0 else np.asarray
    path = CRFPath(
        grid,
        stacked([to_row(coef.reshape(1, -1)) for coef in coefs]),
        None if intercepts[0] is None else np.array(intercepts),
        *map(np.array, (objectives, gaps, n_iter)),
    )
    is_short = (path.dual_gaps > tol)[:, np.newaxis]
    warn_of_gaps(estimator, problem, grid, is_short, "fits", "path.dual_gaps")
    return path


def _first_C(estimator, problem):
    """The largest C for which zero weights are optimal, or inf if they always are."""
    oracle, weights, squares = problem.make_sums()
    zero = np.zeros(oracle.n_weights)
    _, gradient = oracle.log_loss(weights, zero, count_threads(estimator.n_jobs))
    sizes = np.abs(gradient)
    # Sums of terms of this size leave this much in place of zero.
    if (sizes <= np.finfo(np.float64).eps * np.sqrt(squares)).all():
        return np.inf
    return estimator.l1_ratio / (float(sizes.max()) * float(problem.total))


def _zero_point(estimator, problem, C):
    """Zero weights, if they are optimal, with their certificate."""
    oracle, weights, _ = problem.make_sums()
    result = run_elastic_net(
        oracle,
        weights,
        problem.lam(C),
        estimator.l1_ratio,
        # At once.
        tol=np.inf,
        rounding=problem.rounding,
        n_threads=count_threads(estimator.n_jobs),
    )
    coef, intercept = problem.structure.split_weights(result.solution)
    return coef, intercept, result.objective, result.gap, result.n_iter
