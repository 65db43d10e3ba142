"""Groups whose precisions are close: certified mixtures, and exact single rules."""

from itertools import product

import numpy as np
import pytest
from _mixtures import Scored
from _seeds import new_rng
from scipy.optimize import linprog

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion import Cells, get_metric
from sklearn_structsvm.confusion.binomial_tests import rate_sums
from sklearn_structsvm.confusion.problem import ConfusionProblem
from sklearn_structsvm.metrics import (
    EqualizedOdds,
    EqualOpportunity,
    Precision,
    PredictiveParity,
    Recall,
)
from sklearn_structsvm.plotting import fairness_report
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.confusion.named import SOLVERS

TOL = 1e-3
KINDS = [
    PredictiveParity(slack=0.03),
    PredictiveParity(slack=0.03, reference="overall"),
    PredictiveParity(bound="ratio", ratio=0.95),
    PredictiveParity(bound="ratio", ratio=0.95, reference="overall"),
]
of_kinds = pytest.mark.parametrize("parity", KINDS, ids=repr)

pytestmark = pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")


def sample(rng, n, n_groups=2):
    p, groups = rng.random(n), np.arange(n) % n_groups
    y = (rng.random(n) < p * np.where(groups == 0, 0.7, 1.0)).astype(int)
    return p, y, groups


def tensors(p, y, groups):
    """For each group, (2, 2) counts of each threshold, as shares of all examples."""
    found = []
    for a in np.unique(groups):
        rows = groups == a
        rules = np.array([p[rows] >= cut for cut in [*np.unique(p[rows]), np.inf]])
        of = [[(said == j) & (y[rows] == i) for j in (0, 1)] for i in (0, 1) for said in
              [rules]]  # fmt: skip
        counts = np.array([[m.sum(axis=1) for m in row] for row in of])
        found.append(counts.transpose(2, 0, 1) / len(p))
    return found


def cells_of(by_group):
    priors = np.array([C[0].sum(axis=1) for C in by_group])
    m = len(by_group)
    return Cells(priors, np.arange(2), np.arange(m), list(range(m)))


def is_met(parity, C):
    """By the definition, of the (m, 2, 2) tensor of two classes."""
    n, hits = C[:, :, 1].sum(axis=1), C[:, 1, 1]
    used = n > 1e-12
    rates = hits[used] / n[used]
    if not used.any():
        return True
    others = [hits.sum() / n.sum()] if parity.reference == "overall" else rates
    for one, other in product(rates, others):
        high, low = max(one, other), min(one, other)
        if parity.bound == "difference" and high - low > parity.slack + 1e-8:
            return False
        if parity.bound == "ratio" and low < parity.ratio * high - 1e-8:
            return False
    return True


def best_at_level(parity, by_group, level):
    """The least error of mixtures at a level, by a linear program; inf without any."""
    sizes = [len(C) for C in by_group]
    hits = [C[:, 1, 1] for C in by_group]
    said = [C[:, :, 1].sum(axis=1) for C in by_group]
    is_overall = parity.reference == "overall"
    low, high = level - parity.slack * is_overall, level + parity.slack
    if parity.bound == "ratio":
        low, high = parity.ratio * level, level / parity.ratio if is_overall else level
    rows = []
    for a in range(len(by_group)):
        for sign, bound in ((-1.0, low), (1.0, high)):
            row = [np.zeros(size) for size in sizes]
            row[a] = sign * (hits[a] - bound * said[a])
            rows.append(np.concatenate(row))
    if is_overall:
        row = np.concatenate(hits) - level * np.concatenate(said)
        rows += [row, -row]
    each = np.zeros((len(sizes), sum(sizes)))
    for a, end in enumerate(np.cumsum(sizes)):
        each[a, end - sizes[a] : end] = 1.0
    errors = np.concatenate([C[:, 0, 1] + C[:, 1, 0] for C in by_group])
    result = linprog(errors, rows, np.zeros(len(rows)), each, np.ones(len(sizes)))
    return result.fun if result.status == 0 else np.inf


@of_kinds
def test_the_best_mixture_of_all_levels_is_found(parity):
    p, y, groups = sample(new_rng(0), 60)
    by_group = tensors(p, y, groups)
    problem = ConfusionProblem.from_probabilities(
        "zero_one", Scored().predict_proba(p[:, None]), y, constraints=[parity],
        sensitive_features=groups,
    )  # fmt: skip
    result = run_column_generation(problem, tol=TOL)
    assert is_met(parity, result.solution.confusion)
    assert result.gap <= TOL
    assert result.objective - result.dual_objective <= TOL + 1e-12
    for level in np.linspace(0.0, 1.0, 41):
        assert result.dual_objective <= best_at_level(parity, by_group, level) + 1e-7


def fit(p, y, groups, metric, constraints, **params):
    params = {"confusion": "labels", "randomized": False} | params
    model = ComplexMetricClassifier(Scored(), metric, constraints, cv="prefit", **params)
    return model.fit(p[:, None], y, sensitive_features=groups)


@pytest.mark.parametrize("metric", ["zero_one", "f1"])
@of_kinds
def test_a_single_rule_is_the_best_of_all_thresholds(parity, metric):
    p, y, groups = sample(new_rng(1), 40)
    model = fit(p, y, groups, metric, parity)
    psi = get_metric(metric, np.arange(2))
    best = min(
        psi.value(sum(pair))
        for pair in product(*tensors(p, y, groups))
        if is_met(parity, np.array(pair))
    )
    assert is_met(parity, model.cell_confusions_)
    assert abs(model.objective_ - best) < 1e-9
    assert model.dual_objective_ <= best + 1e-9


def test_three_groups_and_another_constraint_by_enumeration():
    p, y, groups = sample(new_rng(2), 36, n_groups=3)
    both = [PredictiveParity(slack=0.1), EqualOpportunity(slack=0.3)]
    by_group = tensors(p, y, groups)
    cells = cells_of(by_group)
    model = fit(p, y, groups, "balanced", both)
    psi = get_metric("balanced", np.arange(2))
    best = min(
        psi.value(C.sum(axis=0))
        for C in map(np.array, product(*by_group))
        if is_met(both[0], C) and both[1].violation(C, cells) <= 1e-9
    )
    assert abs(model.objective_ - best) < 1e-9


def test_of_more_classes_each_label_has_a_level():
    rng = new_rng(3)
    P, groups = rng.dirichlet(np.ones(3), size=60), np.arange(60) % 2
    P[groups == 1, 2] *= 0.5
    P /= P.sum(axis=1, keepdims=True)
    problem = ConfusionProblem.from_probabilities(
        "balanced", P, constraints=[PredictiveParity(slack=0.1)],
        sensitive_features=groups,
    )  # fmt: skip
    assert problem.n_levels == 3
    result = run_column_generation(problem, tol=0.01)
    assert result.gap <= 0.01
    C = result.solution.confusion
    for label in range(3):
        said = C[:, :, label].sum(axis=1)
        rates = C[said > 1e-12, label, label] / said[said > 1e-12]
        assert np.ptp(rates) <= 0.1 + 1e-8 if len(rates) else True
    # No rule that meets the constraint is better than the bound.
    for L in rng.random((200, 2, 3, 3)):
        one, _, _ = problem.lmo(L)
        if problem.violation(one) <= 0.0:
            assert problem.value(one) >= result.dual_objective - 1e-9


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_all_solvers_agree(name):
    p, y, groups = sample(new_rng(5), 60)
    problem = ConfusionProblem.from_probabilities(
        "f1" if name == "bisection" else "g_mean", Scored().predict_proba(p[:, None]), y,
        constraints=[PredictiveParity(slack=0.02)], sensitive_features=groups,
    )  # fmt: skip
    best = run_column_generation(problem, tol=TOL)
    other = SOLVERS[name][True].run(problem, tol=0.05, max_iter=60)
    assert other.dual_objective <= best.objective + 1e-9
    if other.violation <= FEASIBILITY_TOL:
        assert best.dual_objective <= other.objective + 1e-9


def test_values_of_one_column_are_the_groups():
    rng = new_rng(6)
    p, y, groups = sample(rng, 120)
    columns = np.column_stack([groups, rng.integers(2, size=120)])
    parity = PredictiveParity(slack=0.0, feature=0)
    model = fit(p, y, columns, "zero_one", parity, randomized=True)
    first = np.array([name[0] for name in model.groups_])
    by_first = [model.cell_confusions_[first == a].sum(axis=0) for a in (0, 1)]
    assert is_met(parity, np.array(by_first))


@of_kinds
def test_counts_are_tested_for_the_violation_itself(parity):
    counts = new_rng(7).integers(1, 30, size=(3, 2, 2)).astype(float)
    C = counts / counts.sum()
    cells = Cells(C.sum(axis=2), np.arange(2), np.arange(3), ["a", "b", "c"])
    sums = rate_sums(parity, cells, counts)
    values = [each.costs @ (each.k / each.n) - each.bound for each in sums]
    if parity.bound == "difference":
        assert abs(max(values) - parity.violation(C, cells)) < 1e-12
    else:
        assert (max(values) > 0.0) == (parity.violation(C, cells) > 0.0)


def test_held_out_examples_certify_precisions_if_that_can_be_asked():
    p, y, groups = sample(new_rng(8), 4000)
    parity = PredictiveParity(slack=0.3)
    model = ComplexMetricClassifier(
        Scored(), "balanced", parity, cv="prefit", constraint_confidence=0.95
    ).fit(p[:, None], y, sensitive_features=groups)
    assert (model.calibration_p_values_ <= 0.05).any()
    report = fairness_report(model, p[:, None], y, sensitive_features=groups)
    assert report.promises["constraint"] == ["PredictiveParity(slack=0.3)"]
    model.set_params(solver_options__constraint_calibration="uniform")
    with pytest.raises(ValueError, match="constraint_calibration=0.5"):
        model.fit(p[:, None], y, sensitive_features=groups)
    p, y, groups = sample(new_rng(9), 60)
    X, names = p[:, None], np.array(["no", "yes"])[y]
    model = ComplexMetricClassifier(cv=None, constraints=PredictiveParity())
    with pytest.raises(ValueError, match="uses groups: pass sensitive_features"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"set pos_label to one of \['no', 'yes'\]"):
        model.fit(X, names, sensitive_features=groups)
    # A precision above every one that there is, which leaves no level.
    asked = [PredictiveParity(), Recall(at_least=1.0), Precision(at_least=0.99)]
    with pytest.raises(InfeasibleConstraintError):
        model.set_params(constraints=asked).fit(X, y, sensitive_features=groups)


def test_a_group_without_predictions_is_left_out():
    counts = np.array([[[3.0, 1.0], [1.0, 3.0]], [[4.0, 0.0], [4.0, 0.0]]])
    cells = Cells(counts.sum(axis=2) / 16, np.arange(2), np.arange(2), ["a", "b"])
    for parity in KINDS:
        assert parity.violation(counts / 16, cells) <= 0.0
        nothing = np.array([[[4.0, 0.0], [4.0, 0.0]]] * 2) / 16
        assert parity.violation(nothing, cells) <= 0.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_single_rule_is_found_however_short_the_time_is():
    p, y, groups = sample(new_rng(7), 60)
    both = [EqualizedOdds(slack=0.5), PredictiveParity(slack=0.3)]
    for constraints in (both, both[1:]):
        model = ComplexMetricClassifier(
            Scored(), "balanced", constraints, cv="prefit", randomized=False,
            solver_options={"max_time": 1e-9},
        )  # fmt: skip
        model.fit(p[:, None], y, sensitive_features=groups)
        assert model.constraint_violation_ <= 1e-9
        assert model.dual_objective_ <= model.objective_ + 1e-9
