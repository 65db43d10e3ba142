"""Newton's method, also under an elastic net: optima, certificates, raw columns."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.optimize import minimize

from sklearn_structsvm.risks import Logistic, Multinomial, ProximalHinge, SquaredHinge
from sklearn_structsvm.solvers.batch import newton, proximal_newton
from sklearn_structsvm.solvers.batch.feasible_image import second_derivatives
from sklearn_structsvm.solvers.batch.newton import NewtonSteps, run_newton
from sklearn_structsvm.solvers.batch.proximal_newton import run_proximal_newton

KINDS = ("binary", "multilabel", "multinomial", "squares", "squares of k")
# The hinge is minimized under the L1 norm alone.
CASES = [(kind, ratio) for kind in KINDS for ratio in (0.0, 0.4, 1.0)] + [("hinge", 1.0)]


def make_risk(kind, X, rng, s=None, k=3, **options):
    n = X.shape[0]
    y = rng.integers(2 if kind in ("binary", "squares", "hinge") else k, size=n)
    y[:2] = 0, 1
    if kind == "multilabel":
        y = rng.integers(2, size=(n, k))
    if kind in ("multinomial", "squares of k"):
        options["n_classes"] = k
    losses = {"multinomial": Multinomial, "hinge": ProximalHinge}
    if kind.startswith("squares"):
        losses[kind] = SquaredHinge
    return losses.get(kind, Logistic)(X, y, s, **options)


def random_risk(rng, kind, ratio):
    """Of any shape, with a λ."""
    n, d, k = rng.integers(3, 30), rng.integers(1, 10), rng.integers(2, 5)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.5:
        X[rng.random(X.shape) < 0.5] = 0.0
        X[0] = 1.0
        X = sparse.csr_array(X)
    s = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    s[:2] = 0.5, 1.0
    risk = make_risk(kind, X, rng, s, k, bias=rng.choice([0.0, 2.0]))
    if ratio == 0.0:
        return risk, 10.0 ** rng.uniform(-4, 0)
    # A share of the one from which on all weights are zero.
    slopes = risk.gradient(risk.plane(risk.scores(np.zeros(risk.n_weights)))[0])
    return risk, np.abs(slopes).max() * 10.0 ** rng.uniform(-2, 0) / ratio


def run(risk, lam, ratio, **options):
    if ratio == 0.0:
        return run_newton(risk, lam, **options)
    return run_proximal_newton(risk, lam, ratio, **options)


def objective(risk, lam, ratio, w):
    Z = risk.scores(w)
    loss = risk.hinge(Z) if isinstance(risk, ProximalHinge) else risk.value(Z)
    return lam * (0.5 * (1.0 - ratio) * w @ w + ratio * np.abs(w).sum()) + loss


@pytest.mark.parametrize(("kind", "ratio"), CASES)
def test_the_gap_is_never_below_the_truth_and_the_optimum_is_where_runs_end(kind, ratio):
    rng = new_rng(KINDS.index(kind) if kind in KINDS else 9)
    for _ in range(20 if ratio == 0.0 else 5):
        risk, lam = random_risk(rng, kind, ratio)
        # As near as rounding lets it come.
        best = run(risk, lam, ratio, tol=0.0, max_iter=300)
        assert best.status in ("stalled", "converged", "max_iter")
        assert -1e-12 <= best.gap <= 1e-6 or best.status == "max_iter"
        result = run(risk, lam, ratio, tol=10.0 ** rng.uniform(-6, -1))
        w, history = result.solution, result.history
        assert result.status == "converged"
        assert result.objective == pytest.approx(objective(risk, lam, ratio, w), rel=1e-9)
        rounding = 1e-12 * (1.0 + abs(best.objective))
        assert (history["dual_objective"] <= best.objective + rounding).all()
        excess = history["objective"] - best.objective
        assert (history["dual_gap"] >= excess - rounding).all()
        assert (np.diff(history["objective"]) <= rounding).all()
        if ratio == 0.0:
            B, offset = risk.plane(risk.scores(w))
            gradient = risk.gradient(B) + lam * w
            # The minimum is not negative.
            gap = min(0.5 * gradient @ gradient / lam, objective(risk, lam, ratio, w))
            # Or a better bound was found before.
            known = result.objective - history["dual_objective"][:-1].max(initial=-np.inf)
            assert result.gap == pytest.approx(min(gap, known), rel=1e-4)
        again = run(risk, lam, ratio, tol=2.0 * result.gap, w0=w)
        assert again.status == "converged"
        assert again.history["objective"][0] == pytest.approx(result.objective, rel=1e-12)


@pytest.mark.parametrize(("kind", "ratio"), CASES[:-1])
def test_the_optimum_is_that_of_another_solver(kind, ratio):
    rng = new_rng(KINDS.index(kind), 1)
    for _ in range(5):
        risk, lam = random_risk(rng, kind, ratio)
        d = risk.n_weights

        def halves(u, risk=risk, lam=lam, d=d):
            """Of w = u - v with both not negative, for a solver of smooth problems."""
            w = u[:d] - u[d:]
            B, offset = risk.plane(risk.scores(w))
            g = risk.gradient(B)
            slope = g + lam * (1.0 - ratio) * w
            value = offset + g @ w + lam * (0.5 * (1.0 - ratio) * w @ w + ratio * u.sum())
            return value, np.concatenate([slope, -slope]) + lam * ratio

        options = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 10**4}
        other = minimize(
            halves, np.zeros(2 * d), jac=True, bounds=[(0.0, None)] * (2 * d),
            options=options,
        ).fun  # fmt: skip
        result = run(risk, lam, ratio, tol=1e-10)
        assert result.dual_objective <= other + 1e-12
        assert result.objective <= other * (1.0 + 1e-9) + 1e-10


OTHERS = {
    "preconditioner": [(newton, "MAX_DENSE", 0)],
    "parts": [(proximal_newton, "MOST_OF_ALL", 0), (proximal_newton, "LEAST_OTHERS", 2)],
    "steps": [
        (proximal_newton, "MOST_OF_ALL", -1),
        (proximal_newton, "MOST_MODELED", -1),
    ],
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("kind", "ratio"), CASES)
def test_other_preconditioners_parts_and_steps_reach_the_same_optimum(
    kind, ratio, other, monkeypatch
):
    rng = new_rng(3)
    for shape in ((60, 25), (60, 5))[kind == "hinge" :]:
        risk = make_risk(kind, rng.normal(size=shape), rng, bias=1.0)
        one = run(risk, 0.02, ratio, tol=1e-9)
        with monkeypatch.context() as patch:
            for constant in OTHERS[other]:
                patch.setattr(*constant)
            two = run(risk, 0.02, ratio, tol=1e-9)
            left = run(risk, 0.02, ratio, tol=1e-18 if kind != "hinge" else 1e-9)
        assert one.status == two.status == "converged"
        assert abs(one.objective - two.objective) <= 1.1e-9
        assert two.dual_objective <= one.objective + 1e-14
        # They end where only rounding is left.
        assert left.gap <= 1e-9


def test_blocks_are_the_whole_hessian_of_two_classes():
    """So that the first direction needs one product."""
    rng = new_rng()
    X = rng.standard_normal((40, 5)) @ np.diag(10.0 ** np.arange(5))
    steps = NewtonSteps(Logistic(X, rng.integers(0, 2, 40), bias=1.0), 1e-3, 1e-9)
    before = steps.n_passes
    assert steps.move()
    assert steps.n_passes - before <= 3


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_the_model_has_the_second_derivatives_of_the_risk(kind, form):
    rng = new_rng()
    X = rng.normal(size=(15, 4)).round(1)
    X = {"dense": X, "sparse": sparse.csr_array(X), "float32": np.float32(X)}[form]
    risk = make_risk(kind, X, rng, rng.uniform(0.0, 2.0, 15), bias=1.0)
    w = rng.normal(size=risk.n_weights)
    own = np.flatnonzero(rng.random(risk.n_weights) < 0.7)
    _, response = risk.respond(risk.scores(w))
    H = second_derivatives(risk, response, risk.curvatures(response), own)
    for k, j in enumerate(own):
        unit = np.zeros(risk.n_weights)
        unit[j] = 1.0
        column = risk.gradient(risk.curved(response, risk.scores(unit)))
        np.testing.assert_allclose(H[:, k], column[own], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_raw_columns_are_solved_in_few_steps(kind, ratio):
    """Sizes from 1e-4 to 1e4, and offsets of up to a hundred times the spread."""
    rng = new_rng(KINDS.index(kind))
    X = rng.normal(size=(80, 6)) + rng.normal(size=6) * 10.0 ** rng.uniform(-1, 2, 6)
    X *= 10.0 ** rng.uniform(-4, 4, 6)
    risk = make_risk(kind, X, rng, rng.uniform(0.0, 2.0, 80), bias=1.0)
    result = run(risk, 1e-3, ratio, tol=1e-6, max_iter=200)
    w = result.solution
    assert result.status == "converged" and result.gap <= 1e-6
    value = objective(risk, 1e-3, ratio, w)
    assert result.objective == pytest.approx(value, rel=1e-12)
    # No other weights are below the certificate.
    for size in (1e-6, 1e-3, 1e-1):
        other = w * (1.0 + size * rng.normal(size=len(w)))
        assert objective(risk, 1e-3, ratio, other) >= result.dual_objective - 1e-12
    # A penalty above all gradients leaves nothing.
    assert not run(risk, 1e12, 1.0).solution.any()


@pytest.mark.parametrize("kind", ["binary", "squares"])
def test_a_weight_whose_gain_is_lost_in_rounding_is_freed(kind):
    """Its slope exceeds λ by 3e-9 of it, but its gap counts."""
    rng, lam, loss = new_rng(), 0.1, {"binary": Logistic, "squares": SquaredHinge}[kind]
    for _ in range(20):
        X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
        X[:, 0] += y
        only = loss(X[:, :1], y)
        w = run(only, lam, 1.0, tol=1e-14).solution
        slopes = loss(X, y).gradient(only.plane(only.scores(w))[0])
        X[:, 1] *= lam * (1.0 + 3e-9) / np.abs(slopes[1])
        assert run(loss(X, y), lam, 1.0, w0=np.append(w, 0.0), tol=1e-12).gap <= 1e-12


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e150, 1e160, 1e300])
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_squares_that_overflow_have_no_certificate_but_weights(ratio, scale, form):
    rng = new_rng()
    X = form(scale * rng.standard_normal((40, 4)))
    result = run(make_risk("multinomial", X, rng), 0.1, ratio, max_iter=10)
    assert result.status in ("stalled", "max_iter")
    assert np.isfinite(result.solution).all()


def test_an_objective_below_the_tolerance_is_its_own_certificate():
    """Of rows that are separable, the gradient by a column of 1e3 bounds nothing."""
    rng = new_rng()
    X = rng.standard_normal((60, 90)) * np.logspace(-2, 3, 90)
    risk = SquaredHinge(X, rng.integers(3, size=60), n_classes=3, bias=1.0)
    result = run_newton(risk, 1e-8, tol=1e-3, max_iter=50)
    assert result.status == "converged"
    assert (result.history["dual_objective"] >= 0.0).all()
    assert result.gap <= result.objective <= 1e-3
