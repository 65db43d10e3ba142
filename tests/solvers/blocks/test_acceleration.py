"""Accelerated steps: the certificate at the weights, the guard, warm starts."""

import numpy as np
import pytest
from _options import placed
from _problems import (
    KINDS,
    PRESENTED,
    dual_of_box,
    explicit_alpha,
    explicit_distributions,
    optimum,
    random_box,
    random_problem,
    uneven_weights,
)
from _references import visits
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.datasets import make_classification

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks import acceleration
from sklearn_structsvm.solvers.blocks.acceleration import Acceleration
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw

LAM, N = 0.05, 8
STEPS = ["fw", "pairwise", "away", "corrective"]
FLAT = [pair for pair in PRESENTED if pair[0] not in ("chain", "custom")]


def wander(solver, seed=0):
    """Passes with centers that no one would choose."""
    rng = new_rng(seed)
    for blocks in np.split(visits(solver.oracle.n_blocks, passes=18), 9):
        yield
        solver.run(blocks)
        if solver.kappa == 0.0 or rng.random() < 0.3:
            solver.set_kappa(solver.lam * rng.choice([0.0, 0.5, 9.0, 1e3]))
        if solver.kappa > 0.0:
            solver.extrapolate(rng.uniform(-0.5, 2.0))


@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize("step", STEPS[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_at_the_weights_is_primal_minus_dual(kind, step, has_box):
    problem = random_problem(kind)
    lower, upper, box = random_box(new_rng(1), problem.listed.d, 0.4, has_box)
    p = uneven_weights(empty=())
    solver = problem.solver(LAM, p, step=step, **box)
    for _ in wander(solver):
        row, weights, lowest = certify(solver)
        alpha = explicit_distributions(problem, solver, 1e-12)
        v, loss = problem.listed.dual_point(alpha, LAM, p)
        assert solver.loss == pytest.approx(loss, rel=1e-12)
        scale = 1.0 + np.abs(v).max() + np.abs(solver.weights).max()
        # κ / λ up to 1e3 is what a difference of v and z is multiplied by.
        np.testing.assert_allclose(solver.dual_image(), v, rtol=0, atol=1e-11 * scale)
        assert ((weights >= lower) & (weights <= upper)).all()
        primal = problem.listed.primal(weights, LAM, p)
        dual = dual_of_box(v, loss, LAM, lower, upper)
        size = 1.0 + abs(primal) + abs(dual)
        assert row["dual_gap"] == pytest.approx(primal - dual, abs=1e-10 * size)
        assert row["objective"] == pytest.approx(primal, rel=1e-11)
        assert min(lowest, solver.proximal_gap()) >= -1e-12 * size
    assert solver.n_steps > 0


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_decreases_the_dual_of_the_proximal_problem(kind, step):
    solver = random_problem(kind).solver(LAM, step=step)
    solver.set_kappa(9 * LAM)
    for blocks in visits(N, passes=10).reshape(10, -1):
        dual = -np.inf
        for i in blocks:
            solver.run(np.array([i]))
            w = solver.weights
            now = solver.loss - 0.5 * 10 * LAM * w @ w
            assert now >= dual - 1e-13 * (1.0 + w @ w)
            dual = now
        solver.extrapolate(0.5)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_accelerated_steps_reach_the_optimum(kind, step):
    problem, lam = random_problem(kind), 0.3
    best = optimum(problem, lam)
    tol = 1e-3 if step == "fw" else 1e-6
    solver = problem.solver(lam, step=step)
    result = run_bcfw(solver, acceleration=True, tol=tol, max_iter=10**5, rng=0)
    assert result.status == "converged"
    assert solver.kappa > 0.0
    primal = problem.listed.primal(result.solution, lam)
    assert -1e-9 <= primal - best <= result.gap + 1e-12
    assert result.gap <= tol


@pytest.mark.parametrize("kind", KINDS)
def test_random_problems_are_solved_to_eight_digits(kind):
    """By the dual variables, over all labelings, and by cutting planes of all of them.

    With few weights, accelerated block steps may stall; the default never does.
    """
    rng, n_stalls = new_rng(7), 0
    for seed in range(30):
        problem = random_problem(kind, seed=seed, n_features=int(rng.integers(1, 5)))
        lam, step = 10.0 ** rng.uniform(-2.0, 1.0), str(rng.choice(STEPS[1:]))
        p = rng.uniform(0.2, 1.0, size=N)
        p /= p.sum()
        has_box = rng.random() < 0.4
        lower, upper, box = random_box(rng, problem.listed.d, 0.5, has_box)
        solver = problem.solver(lam, p, step=step, **box)
        options = {"tol": 1e-9, "max_iter": 3000, "rng": seed}
        result = run_bcfw(solver, acceleration=True, **options)
        if result.status != "converged":
            n_stalls += 1
            result = run_bcfw(solver, **options)
        assert result.status == "converged"
        v, loss = problem.listed.dual_point(explicit_alpha(problem, solver), lam, p)
        dual = dual_of_box(v, loss, lam, lower, upper)
        primal = problem.listed.primal(result.solution, lam, p)
        assert -1e-12 <= primal - dual <= 1.1e-9
        if not has_box:
            assert abs(primal - optimum(problem, lam, p)) <= 1e-8
    assert n_stalls <= 5


@pytest.mark.parametrize("ratio", [40.0, 1e3, 1e6])
def test_the_guard_ends_a_stall(ratio, monkeypatch):
    """From terms far too strong: without it the gap stands."""
    X, y = make_chains(n_samples=40, random_state=new_seed(0))
    monkeypatch.setattr(acceleration, "RATIO", ratio)

    def start(self):
        self.iterate.set_kappa((ratio - 1.0) * self.iterate.lam)
        monkeypatch.setattr(acceleration, "RATIO", 10.0)

    monkeypatch.setattr(Acceleration, "start", start)
    model = BCFWClassifier(
        C=0.1, tol=1e-5, max_iter=3000, solver_options={"acceleration": True}
    )
    assert model.set_params(random_state=0).fit(X, y).dual_gap_ <= 1e-5


def test_few_passes_are_not_accelerated_and_many_are():
    X, y = make_chains(n_samples=40, random_state=new_seed(0))
    few, many = (
        BCFWClassifier(C=C, tol=tol, warm_start=True, random_state=0).fit(X, y)
        for C, tol in ((1e-4, 0.1), (1.0, 1e-4))
    )
    assert "center" not in few._dual_state["state"]
    assert "center" in many._dual_state["state"]


class Scripted:
    """An iterate whose gap falls by a factor in each pass, another one if accelerated."""

    def __init__(self, plain, accelerated):
        self.factors = [plain, accelerated]
        self.lam, self.kappa = 1.0, 0.0
        self.estimated_gap = self.dual_objective = 1.0

    def set_kappa(self, kappa):
        self.kappa = kappa

    def extrapolate(self, beta):
        pass

    def make_pass(self):
        self.estimated_gap *= self.factors[int(self.kappa > 0.0)]
        self.dual_objective = 3.0


def test_momentum_ends_where_the_gap_rises():
    iterate = Scripted(0.9, 0.5)
    accelerator = Acceleration(iterate, 1e-9, passes_per_step=1, at_once=True)
    betas = []
    iterate.extrapolate = betas.append
    for gap in (1.0, 0.5, 0.6, 0.7, 0.4):
        iterate.estimated_gap = gap
        accelerator.after_pass()
        # Each move waits for the next pass.
        made = len(betas)
        accelerator.before_pass()
        assert len(betas) == made + 1
        accelerator.before_pass()
        assert len(betas) == made + 1
    full = (1.0 - np.sqrt(0.1)) / (1.0 + np.sqrt(0.1))
    # After a rise, the next gap is the first of new momentum.
    assert betas == pytest.approx([full, full, 0.0, full, full])


@pytest.mark.parametrize(
    "options", [{"sampling": "gap"}, {"average": True}, {"algorithm": "batch"}]
)
def test_what_acceleration_does_not_go_with_has_none(options):
    X, y = make_chains(n_samples=20, random_state=new_seed(0))
    model = placed(BCFWClassifier)(
        C=1.0, tol=0.0, max_iter=40, warm_start=True, random_state=0, **options
    )
    with pytest.warns(UserWarning, match="gap"):
        model.fit(X, y)
    assert "center" not in model._dual_state["state"]


@pytest.mark.parametrize("step", ["exact", "corrective", "pairwise", "fw"])
def test_a_warm_start_goes_on_at_the_weights(step):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=3, flip_y=0.3, random_state=new_seed(0)
    )
    model = BCFWClassifier(
        C=10.0, step=step,
        solver_options={"acceleration": True}, tol=1e-2, max_iter=2000, warm_start=True,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert "center" in model._dual_state["state"]
    gap, objective = model.dual_gap_, model.objective_
    model.set_params(max_iter=1, tol=2 * gap).fit(X, y)
    # The first check is of the weights that the last fit ended with. It may have returned
    # better ones that it had seen before.
    assert model.n_iter_ == 0
    assert gap * (1 - 1e-6) <= model.dual_gap_ <= 1.1 * gap
    assert objective * (1 - 1e-9) <= model.objective_ <= objective + 0.1 * gap
    # A state as it was before there was acceleration begins at its dual point.
    del model._dual_state["state"]["center"]
    model.set_params(max_iter=10**4, tol=0.5 * gap).fit(X, y)
    assert model.dual_gap_ <= 0.5 * gap


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda ratio, z, w: (ratio, z[:-1], w), "center must have shape"),
        (lambda ratio, z, w: (ratio, z, w[:, np.newaxis]), "weights before"),
        (lambda ratio, z, w: (ratio, np.full_like(z, np.nan), w), "center"),
        (lambda ratio, z, w: (-1.0, z, w), "proximal term must be positive"),
        (lambda ratio, z, w: (np.nan, z, w), "proximal term must be finite"),
    ],
)
def test_a_damaged_center_is_refused(damage, message):
    problem = random_problem("chain")
    solver = problem.solver(LAM, step="pairwise")
    solver.set_kappa(9 * LAM)
    solver.run(visits(N, passes=2))
    solver.extrapolate(0.5)
    state = solver.get_state()
    other = problem.solver(LAM, step="pairwise")
    other.set_state(state)
    np.testing.assert_allclose(other.weights, solver.weights, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=message):
        problem.solver(LAM, step="pairwise").set_state(
            state | {"center": damage(*state["center"])}
        )


@pytest.mark.parametrize(("kind", "layout"), FLAT)
def test_exact_steps_are_accelerated_with_a_true_gap(kind, layout):
    problem, lam = random_problem(kind, layout), 1e-3
    model = BCFWClassifier(
        clone(problem.structure),
        C=1 / (lam * N),
        solver_options={"intercept_scaling": 1.5},
        random_state=0,
    )
    model.set_params(tol=1e-9, max_iter=10**5).fit(problem.X, problem.y)
    w = model.structure_.join_weights(model.coef_, model.intercept_)
    primal = problem.listed.primal(w, lam)
    best = optimum(problem, lam)
    assert model.step_ == "exact"
    assert model.objective_ == pytest.approx(primal, rel=1e-10)
    assert -1e-9 <= primal - best <= model.dual_gap_ + 1e-12 <= 1e-9 + 1e-12


@pytest.mark.parametrize("step", ["corrective", "pairwise"])
def test_slack_rescaling_is_accelerated_with_a_true_gap(step):
    X, y = make_chains(n_samples=30, n_classes=3, random_state=new_seed(0))
    options = {"C": 0.3, "tol": 1e-4, "random_state": 0, "max_iter": 5000}
    plain = placed(SlackRescaledSSVM)(
        step=step, solver_options={"acceleration": False}, **options
    ).fit(X, y)
    fast = placed(SlackRescaledSSVM)(
        step=step, solver_options={"acceleration": True}, **options
    ).fit(X, y)
    for one, other in ((plain, fast), (fast, plain)):
        assert one.dual_gap_ <= 1e-4
        assert one.dual_objective_ <= other.objective_ + 1e-10


def test_acceleration_that_has_no_place_is_refused():
    X, y = make_chains(n_samples=5, random_state=new_seed(0))
    for model in (
        BCFWClassifier(
            solver_options={"algorithm": "batch", "acceleration": True},
        ),
        SlackRescaledSSVM(solver="sgd", solver_options={"acceleration": True}),
    ):
        with pytest.raises(ValueError, match="acceleration=True"):
            model.fit(X, y)
