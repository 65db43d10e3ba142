"""Random confusion problems of every kind, with optima by linear programs."""

from functools import cached_property

import numpy as np
from _confusion_problems import FiniteOracle, check_result, random_tensors
from scipy.optimize import linprog

from sklearn_structsvm import metrics
from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.confusion import Cells
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.confusion.registry import METRICS, get_metric
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.confusion.named import SOLVERS

TOL = 1e-3

# What the linear programs' optima are right to.
ACCURACY = 1e-6

# A least excess that is nearer to 0 than this may be either side of it.
UNDECIDED = 1e-7

# The feasibility tolerance of HiGHS. Its default is 1e-7.
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
NO_POINT = 2
NO_SENSE = 4

PARITIES = (metrics.DemographicParity, metrics.EqualOpportunity, metrics.EqualizedOdds)
BOUNDED = ("zero_one", "balanced", "min_max", "g_mean", "h_mean", "q_mean", "kappa")
# All metrics that are functions of the confusion matrix.
OF_CONFUSION = [name for name, kind in METRICS.items() if not kind.needs_costs]

# For metrics of one label, the name of its parameter.
LABEL_PARAMETERS = {
    name: next(iter({"pos_label", "label"} & {*kind().get_params()}))
    for name, kind in METRICS.items()
    if {"pos_label", "label"} & {*kind().get_params()}
}
ONE_LABEL = [*LABEL_PARAMETERS]


def random_metric(rng, k, name=None):
    """One of `METRICS`, with parameters."""
    label = int(rng.integers(k))
    if name is None:
        name = str(rng.choice([*OF_CONFUSION, "linear"]))
    if name == "linear":
        return metrics.LinearLoss(rng.normal(size=(k, k)) - 2.0 * np.eye(k))
    if name == "f1":
        return metrics.FBeta(float(rng.choice([0.5, 1.0, 2.0])), pos_label=label)
    if name == "jaccard":
        return metrics.Jaccard(
            str(rng.choice(["binary", "macro", "micro"])), pos_label=label
        )
    if name == "kappa":
        return metrics.CohenKappa([None, "linear", "quadratic"][rng.integers(3)])
    if name in ONE_LABEL:
        return METRICS[name](**{LABEL_PARAMETERS[name]: label})
    return name


def random_constraint(rng, C, cells):
    """A constraint that the tensor satisfies with no, little or much slack."""
    m, k, _ = cells.shape
    spare = float(rng.choice([0.0, 1e-3, 5e-2, 0.2]))
    label, group = int(rng.integers(k)), int(rng.integers(m))
    options = {"label": label} if rng.random() < 0.6 else {}
    selected = [{}]
    if m > 1:
        selected += [{"group": group}, {"per_group": True}]
    selected = selected[rng.integers(len(selected))]

    def bounded(kind, at, *args, **options):
        """A constraint whose bound is the value at C plus the slack."""
        start = float(at == "at_least")
        away = kind(*args, **{at: start}, **options).violation(C, cells)
        away = (away if np.isfinite(away) else 1.0) + spare
        bound = start - away if at == "at_least" else away
        if kind is not metrics.MetricBound:
            bound = float(np.clip(bound, 0.0, 1.0))
        return kind(*args, **{at: bound}, **options)

    def parity(kind):
        compared = {"reference": str(rng.choice(["overall", "groups"]))}
        compared["pos_label"] = label if k > 2 and rng.random() < 0.5 else None
        if compared["pos_label"] is None and k == 2:
            compared["pos_label"] = 1
        if rng.random() < 0.5:
            away = kind(slack=0.0, **compared).violation(C, cells) + spare
            return kind(slack=float(np.clip(away, 0.0, 1.0)), **compared)
        away = kind(bound="ratio", ratio=1.0, **compared).violation(C, cells) + spare
        ratio = float(np.clip(1.0 - away, 0.0, 1.0))
        return kind(bound="ratio", ratio=ratio, **compared)

    def divergence():
        away = metrics.Quantification(1.0, **selected).violation(C, cells) + 1.0 + spare
        return metrics.Quantification(max(away, 1e-6), **selected)

    def metric_bound():
        name = str(rng.choice([*BOUNDED, *ONE_LABEL]))
        metric = random_metric(rng, k, name)
        if name == "jaccard":
            metric = metrics.Jaccard(pos_label=label)
        is_cost = name == "false_positive_rate"
        at = "at_most" if is_cost else "at_least"
        return bounded(metrics.MetricBound, at, metric, **selected)

    makers = [
        lambda: bounded(metrics.Recall, "at_least", **options, **selected),
        lambda: bounded(metrics.Precision, "at_least", **options, **selected),
        lambda: bounded(metrics.Precision, "at_most", **options, **selected),
        lambda: bounded(metrics.SelectionRate, "at_most", **options, **selected),
        lambda: bounded(metrics.FalsePositiveRate, "at_most", **options, **selected),
        lambda: metrics.SelectionRate(target="priors", slack=spare, **selected),
        divergence,
        metric_bound,
    ]
    if m > 1:
        makers += [lambda: parity(PARITIES[rng.integers(3)])] * 2
    return makers[rng.integers(len(makers))]()


def random_problem(rng, metric=None, kind="any"):
    """A problem of a `FiniteOracle`, usually with a classifier that is feasible.

    Parameters
    ----------
    metric : str or None
        As of `random_metric`.
    kind : {"any", "free", "never", "absent"}
        "free" has no constraints. "never": half of the classifiers never predict one of
        the classes in some groups. "absent": the sample lacks a class, or a group does.
    """
    k, m = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    tensors, _ = random_tensors(rng, int(rng.integers(5, 30)), m, k)
    label = int(rng.integers(k))
    if kind == "never":
        out = tensors[..., label] * (rng.random((len(tensors), m)) < 0.5)[:, :, None]
        tensors[..., label] -= out
        tensors[..., (label + 1) % k] += out
    if kind == "absent":
        cells = slice(None) if rng.random() < 0.5 else int(rng.integers(m))
        tensors[:, cells, label] = 0.0
        tensors /= tensors[0].sum()
    groups = (np.arange(m), list(range(m))) if m > 1 else ()
    cells = Cells(tensors[0].sum(axis=2), np.arange(k), *groups)
    constraints = []
    if kind != "free":
        C = np.tensordot(rng.dirichlet(np.full(len(tensors), 0.3)), tensors, axes=1)
        n = int(rng.integers(1, 4))
        constraints = [random_constraint(rng, C, cells) for _ in range(n)]
    if kind == "never":
        # So most classifiers that predict the class satisfy the constraint only by never
        # doing so.
        constraints.append(metrics.Precision(label=label, at_least=0.97))
    for constraint in constraints:
        constraint.check(cells)
    metric = get_metric(random_metric(rng, k, metric), cells.classes)
    return ConfusionProblem(metric, FiniteOracle(tensors), cells, constraints)


class Programs:
    """Linear programs in the weights of all tensors of a `FiniteOracle`.

    Curved constraints and metrics are approximated by tangents, at each optimum of a
    program and where the way to it from an inner point meets the curve (Veinott's method
    of supporting hyperplanes). The solvers under test use other methods.

    Parameters
    ----------
    problem : ConfusionProblem
    tensors : ndarray of shape (T, m, k, k) or None
        Parts of which confusion tensors are sums; those of the oracle if None.
    units : ndarray of shape (T,) or None
        Of each unit, parts are mixed; all are of one unit if None.
    """

    def __init__(self, problem, tensors=None, units=None):
        self.problem = problem
        self.tensors = problem.oracle.tensors if tensors is None else tensors
        n = len(self.tensors)
        self.units = np.zeros(n, dtype=int) if units is None else units
        G, h = problem.linear
        self.linear = [self.along(*row) for row in zip(G, h, strict=True)]
        # Tangents of curved constraints.
        self.tangents, self._least = [], {}

    def along(self, G, h):
        """<G, C> + h, as a sum over the units."""
        h = h / (self.units.max() + 1)
        return np.tensordot(self.tensors, G, axes=3) + h

    def mix(self, weights):
        return np.tensordot(weights, self.tensors, axes=1)

    def scaled(self, weights):
        """Weights that sum to 1 in each unit, without what HiGHS leaves of zeros."""
        weights = np.where(weights > SAME, weights, 0.0)
        return weights / np.bincount(self.units, weights)[self.units]

    def solve(self, costs=0.0, pieces=None, relaxed=None, enough=np.inf, curve=None):
        """(min, weights) of costs · α + max(pieces α) under the constraints.

        With `relaxed`, constraints ("all", or those that are "curved") may be exceeded by
        a common amount, which is minimized as well, down to -1 (below 0 to half of what
        is possible). `curve` is a function of
        C whose tangents are added to the pieces. Weights are None if there are none, or
        if the minimum is known to be `enough`.
        """
        pieces, inner = [] if pieces is None else [*pieces], None
        if curve is not None:
            uniform = self.scaled(np.ones(len(self.tensors)))
            pieces.append(self.along(*curve.tangent(self.mix(uniform))))
        before = None
        while True:
            found = self._program(costs, pieces, relaxed)
            if found.status == NO_POINT:
                return np.inf, None
            assert found.status == 0, found.message
            if found.fun >= enough:
                return found.fun, None
            # Weights, the largest piece, the excess.
            outer = np.append(self.scaled(found.x[:-2]), found.x[-2:])
            limits = [(phi, -1, self.tangents) for phi in self.problem.convex_constraints]
            limits += [] if curve is None else [(curve, -2, pieces)]
            crossed = [limit for limit in limits if self._above(limit, outer) > 1e-9]
            # Programs satisfy their rows to EXACT after scaling, so repeating rows would
            # not help.
            if not crossed or np.array_equal(found.x, before):
                return found.fun, outer[:-2]
            before = found.x
            if inner is None:
                inner = self._inner(relaxed, pieces, curve)
            if inner is not None:
                point, outer = self._between(inner, outer, crossed)
                if relaxed is not None and point[-1] <= 0.5 * found.fun < 0.0:
                    return point[-1], point[:-2]
                value = np.dot(np.broadcast_to(costs, len(self.tensors)), point[:-2])
                if value + point[-2:].sum() <= found.fun + 1e-9:
                    return found.fun, point[:-2]
                inner = 0.5 * (inner + point)
            for curved, _, tangents in crossed:
                tangents.append(self.along(*curved.tangent(self.mix(outer[:-2]))))

    def _between(self, inner, outer, crossed):
        """Points below and above all curves, next to each other."""
        low, high = 0.0, 1.0
        for _ in range(40):
            step = 0.5 * (low + high)
            point = inner + step * (outer - inner)
            above = max(self._above(limit, point) for limit in crossed)
            low, high = (low, step) if above > 0.0 else (step, high)
        return inner + low * (outer - inner), inner + high * (outer - inner)

    def _program(self, costs, pieces, relaxed):
        """The solution of the linear program of all rows and pieces so far."""
        n = len(self.tensors)
        of_unit = np.arange(self.units.max() + 1)[:, np.newaxis] == self.units
        rows = np.reshape([*self.linear, *self.tangents], (-1, n))
        given = np.full(len(rows), -1.0)
        if relaxed == "curved":
            given[: len(self.linear)] = 0.0
        A = np.column_stack([rows, np.zeros(len(rows)), given])
        if pieces:
            under = np.column_stack([pieces, -np.ones(len(pieces))])
            A = np.vstack([A, np.pad(under, ((0, 0), (0, 1)))])
        for method in ("highs", "highs-ipm", "highs-ds"):
            found = linprog(
                [*np.broadcast_to(costs, n), float(bool(pieces)), relaxed is not None],
                A_ub=A,
                b_ub=np.zeros(len(A)),
                A_eq=np.pad(of_unit.astype(float), ((0, 0), (0, 2))),
                b_eq=np.ones(len(of_unit)),
                bounds=[(0.0, None)] * n
                + [(None, None) if pieces else (0.0, 0.0)]
                + [(0.0, 0.0) if relaxed is None else (-1.0, None)],
                method=method,
                options=EXACT,
            )
            # Numbers that HiGHS could not make sense of by one method.
            if found.status != NO_SENSE:
                break
        return found

    def _above(self, limit, point):
        """How far a curved function is above its limit, by its tangent.

        Where a recall is 0, the G-mean is above all of its tangents.
        """
        curved, at, _ = limit
        C = self.mix(point[:-2])
        G, h = curved.tangent(C)
        return np.vdot(G, C) + h - point[at]

    def _inner(self, relaxed, pieces, curve):
        """A point below all curves; None if there is none."""
        weights, excess = self.scaled(np.ones(len(self.tensors))), 0.0
        if relaxed == "curved":
            weights = self._least_of("all")[1]
        elif relaxed is None and self.problem.constrained:
            least, weights = self._least_of("all")
            if least > -UNDECIDED:
                least, weights = self._least_of("curved")
            if least >= 0.0:
                return None
        C = self.mix(weights)
        if relaxed is not None:
            above = [phi.value(C) for phi in self.problem.convex_constraints]
            above += [row @ weights for row in self.linear if relaxed == "all"]
            excess = 1.0 + max(above)
        largest = max((piece @ weights for piece in pieces), default=0.0)
        if curve is not None:
            largest = 1.0 + max(largest, curve.value(C))
        return np.append(weights, [largest, excess])

    def _least_of(self, relaxed):
        if relaxed not in self._least:
            self._least[relaxed] = self.solve(relaxed=relaxed)
        return self._least[relaxed]

    def least_excess(self):
        """The smallest excess (-inf without constraints), and its mixture."""
        if not self.problem.constrained:
            return -np.inf, None
        least, weights = self._least_of("all")
        return least, self.mix(weights)

    @cached_property
    def optimum(self):
        """Lower and upper bounds of the smallest feasible ψ.

        They are None if no program finds them.
        """
        problem = self.problem
        if problem.pieces() is not None:
            pieces = [self.along(*row) for row in zip(*problem.pieces(), strict=True)]
            return (self.solve(pieces=pieces)[0],) * 2
        if problem.ratio() is not None:
            return (self._least_ratio(*problem.ratio()),) * 2
        if not problem.convex:
            return None
        low, weights = self.solve(curve=problem)
        return low, problem.value(self.mix(weights))

    def _least_ratio(self, A, B):
        """Dinkelbach's method, from the largest denominator."""
        above, below = self.along(A, 0.0), self.along(B, 0.0)
        least = self.problem.value(self.mix(self.solve(-below)[1]))
        while True:
            _, weights = self.solve(above - least * below, enough=-1e-12)
            if weights is None:
                return least
            value = self.problem.value(self.mix(weights))
            if value >= least:
                return least
            least = value


def check_solver(solver, problem, max_iter, tol=TOL, programs=None):
    """All that holds of its answer, whatever it is; returns it, None if there is none."""
    programs = Programs(problem) if programs is None else programs
    excess, nearest = programs.least_excess()
    try:
        result = SOLVERS[solver][problem.constrained].run(
            problem, tol=tol, max_iter=max_iter
        )
    except InfeasibleConstraintError as error:
        assert excess > 0.0
        reached = problem.violation(nearest)
        assert 0.0 < error.smallest_violation <= reached + FEASIBILITY_TOL
        return None
    assert excess < UNDECIDED
    check_result(result, problem, tol)
    C = result.solution.confusion
    assert result.violation <= FEASIBILITY_TOL
    # As a user measures it.
    for constraint in problem.constraints:
        assert constraint.violation(C, problem.cells) <= FEASIBILITY_TOL
    best = programs.optimum if excess <= 0.0 else None
    if best is not None:
        low, high = best
        assert result.dual_objective <= high + ACCURACY
        assert result.objective >= low - ACCURACY
        if result.status == "converged":
            assert result.objective <= high + tol + ACCURACY
    return result


def jumps_upwards(problem, C, tensors):
    """Whether ψ, discontinuous at C, rises on the way to all these.

    A class that is absent and never predicted has no error: its ratio is 0 / 0. Slopes do
    not see what its first prediction costs, so that they never get small.
    """
    steps = [1e-9 * (D - C) for D in tensors]
    rises = [problem.value(C + step) - problem.value(C) for step in steps]
    slopes = [(problem.gradient(C) * step).sum() for step in steps]
    return min(rises) > -1e-12 and rises[np.argmin(slopes)] > 1e-3
