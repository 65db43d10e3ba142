"""Accelerated steps: the certificate at the weights, the guard, warm starts."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from _options import placed
from _problems import (
    KINDS,
    dual_of_box,
    explicit_alpha,
    optimum,
    random_box,
    random_problem,
)
from _references import visits
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.datasets import make_classification

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks import acceleration
from sklearn_structsvm.solvers.blocks.acceleration import Acceleration
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw

LAM, N = 0.05, 8
STEPS = ["fw", "pairwise", "away", "corrective"]


@pytest.mark.parametrize("kind", KINDS)
def test_random_problems_are_solved_to_eight_digits(kind):
    """By the dual variables, over all labelings, and by cutting planes of all of them.

    With few weights, accelerated block steps may stall; the default never does.
    """
    rng, n_stalls = new_rng(7), 0
    for seed in range(20):
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


@pytest.mark.parametrize("ratio", [40.0, 1e6])
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


def test_momentum_ends_where_the_gap_rises():
    betas = []
    iterate = SimpleNamespace(
        lam=1.0, kappa=0.0, estimated_gap=1.0, dual_objective=1.0,
        extrapolate=betas.append,
    )  # fmt: skip
    iterate.set_kappa = partial(setattr, iterate, "kappa")
    accelerator = Acceleration(iterate, 1e-9, passes_per_step=1, at_once=True)
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("options", "is_accelerated"),
    [
        ({"tol": 1e-4}, True),
        # Few passes are not worth it.
        ({"C": 1e-4, "tol": 0.1}, False),
        ({"sampling": "gap"}, False),
        ({"average": True}, False),
        ({"algorithm": "batch"}, False),
    ],
    ids=str,
)
def test_many_passes_are_accelerated_where_that_goes_with_the_options(
    options, is_accelerated
):
    X, y = make_chains(n_samples=40, random_state=new_seed(0))
    model = placed(BCFWClassifier)(
        **{"C": 1.0, "tol": 0.0, "max_iter": 60, "random_state": 0} | options
    ).fit(X, y)
    assert ("accelerated" in model.history_["method"]) == is_accelerated


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
    assert gap * (1 - 1e-6) <= model.dual_gap_ <= model.tol
    assert objective * (1 - 1e-9) <= model.objective_ <= objective + gap
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


@pytest.mark.parametrize("acceleration", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_short_fits_reach_what_one_long_fit_does(acceleration):
    problem = random_problem("chain")
    model = BCFWClassifier(clone(problem.structure), C=2.0, random_state=0)
    model.set_params(step="pairwise", warm_start=True, tol=1e-3)
    model.set_params(solver_options={"acceleration": acceleration})
    gap, duals = np.inf, [0.0]
    while gap > 1e-3 and len(duals) < 3000:
        model.set_params(max_iter=3).fit(problem.X, problem.y)
        gap = model.dual_gap_
        duals.append(model.dual_objective_)
    # That of the accelerated problem grows, not that of the problem itself.
    assert acceleration or (np.diff(duals) >= -1e-14).all()
    assert gap <= 1e-3
    assert abs(model.objective_ - optimum(problem, 1.0 / (2.0 * N))) <= gap + 1e-10
