"""Cutting planes in turns with block steps: mixtures, certificates, turns, raw data."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from _estimators import PythonMulticlass
from _problems import (
    KINDS,
    alpha_of_moves,
    dual_of_box,
    explicit_alpha,
    optimum,
    random_box,
    random_problem,
    uneven_weights,
)
from _references import visits
from _seeds import new_rng, new_seed
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.preprocessing import PolynomialFeatures

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM, bcfw_path
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.solvers.blocks import bcfw, exact
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.blocks.forecast import GapForecast
from sklearn_structsvm.solvers.blocks.mixture import (
    SEARCH_RTOL,
    PlaneMixture,
    minimize_on_segment,
)
from sklearn_structsvm.solvers.blocks.planes import Planes

LAM = 0.02
STEPS = ("fw", "pairwise", "away", "corrective")
FLAT = ("binary", "multiclass", "multilabel")
CASES = [(kind, step) for kind in KINDS for step in STEPS]
CASES += [(kind, "exact") for kind in FLAT]


def start(problem, step, lam=LAM, p=None, **options):
    """An iterate after two passes of its steps."""
    p = problem.listed.uniform if p is None else p
    if step == "exact":
        iterate = problem.ascent(lam, p)
    else:
        iterate = problem.solver(lam, p, step=step, **options)
    blocks = visits(problem.n, passes=2)
    iterate.run(blocks[p[blocks] > 0.0])
    return iterate


def begin(iterate, tol=0.0, n_threads=1):
    """Planes that have the turn."""
    is_exact = iterate.is_rows
    certify = exact.certify if is_exact else bcfw.certify
    forecast = GapForecast(iterate, tol, partial(certify, iterate))
    planes = Planes(iterate, forecast, n_threads=n_threads)
    planes.begin()
    return planes


def solve(planes, tol, most=2000):
    """Planes until the gap is at most `tol`; the last row, and the weights it is of."""
    for _ in range(most):
        if not planes.has_turn:
            planes.begin()
        planes.make_pass()
        row, weights = planes.check()[:2]
        if row["dual_gap"] <= tol:
            return row, weights
    raise RuntimeError(f"a gap of {row['dual_gap']} is left")


def dual_over_labelings(problem, iterate, lam=LAM, p=None):
    """By the dual variables of all labelings, whatever the iterate says of itself."""
    state = iterate.get_state()
    if "atoms" in state:
        return problem.listed.dual(explicit_alpha(problem, iterate), lam, p)
    return problem.listed.dual(alpha_of_moves(problem, state["blocks"]), lam, p)


# ------------------------------------------------------------- mixtures, certificates


@pytest.mark.parametrize("l1_ratio", [0.3, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_planes_alone_close_the_gap_of_an_elastic_net(kind, l1_ratio):
    """The dual never falls, and both objectives are those of the definitions."""
    problem = random_problem(kind)
    iterate = start(problem, "corrective", l1_ratio=l1_ratio)
    planes, before = begin(iterate), iterate.dual_objective
    for _ in range(400):
        if not planes.has_turn:
            planes.begin()
        planes.make_pass()
        after = iterate.dual_objective
        assert after >= before - 1e-13
        before = after
        row, w = planes.check()[:2]
        if row["dual_gap"] <= 1e-4:
            break
    assert row["dual_gap"] <= 1e-4
    penalty = 0.5 * (1.0 - l1_ratio) * w @ w + l1_ratio * np.abs(w).sum()
    hinge = problem.listed.primal(w, LAM) - 0.5 * LAM * w @ w
    assert row["objective"] == pytest.approx(hinge + LAM * penalty, rel=1e-9)
    # The dual value by its definition, at the dual variables of all labelings.
    alpha = explicit_alpha(problem, iterate)
    u, loss = problem.listed.dual_point(alpha, LAM, problem.listed.uniform)
    c = np.sign(u) * np.maximum(np.abs(u) - l1_ratio, 0.0)
    value = loss - 0.5 * LAM / (1.0 - l1_ratio) * c @ c
    assert row["dual_objective"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_planes_alone_reach_the_optimum_and_never_lower_the_dual(kind, step):
    problem, p = random_problem(kind), uneven_weights()
    iterate = start(problem, step, p=p)
    planes, before = begin(iterate), iterate.dual_objective
    for _ in range(2000):
        if not planes.has_turn:
            planes.begin()
        planes.make_pass()
        after = iterate.dual_objective
        assert after >= before - 1e-14
        before = after
        row, w = planes.check()[:2]
        if row["dual_gap"] <= 1e-6:
            break
    if step == "fw":
        # Plain steps keep ν and ℓ alone, which tell the value.
        iterate.rebuild_weights()
        dual = iterate.dual_objective
    else:
        dual = dual_over_labelings(problem, iterate, p=p)
    assert dual == pytest.approx(after, abs=1e-12)
    best = optimum(problem, LAM, p)
    assert row["dual_objective"] - 1e-9 <= best <= row["objective"] + 1e-9
    assert row["dual_gap"] <= 1e-6
    assert problem.listed.primal(w, LAM, p) == pytest.approx(row["objective"], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
def test_planes_serve_objectives_less_a_plane_and_then_less_another(kind, step):
    problem, rng = random_problem(kind), new_rng(3)
    iterate = start(problem, step)
    planes, least = begin(iterate), np.inf
    for _ in range(2):
        a, b = 0.1 * rng.standard_normal(len(iterate.weights)), rng.standard_normal()
        iterate.subtract_plane(a, b)
        planes.restart(planes.forecast, planes.accelerator)
        assert planes.has_turn
        if np.isfinite(least):
            # Those of before are there, and are of the new objective.
            assert len(planes.mixture.bundle.offsets) > 1
        row, w = solve(planes, 1e-4)
        value = problem.listed.primal(w, LAM) - a @ w - b
        assert row["objective"] == pytest.approx(value, rel=1e-9, abs=1e-12)
        for _ in range(20):
            v = w + 0.1 * rng.standard_normal(len(w))
            least = problem.listed.primal(v, LAM) - a @ v - b
            assert row["dual_objective"] <= least + 1e-9
        iterate.rebuild_weights()
        assert iterate.dual_objective == pytest.approx(
            row["dual_objective"], rel=1e-9, abs=1e-11
        )


@pytest.mark.parametrize(
    ("kind", "step", "is_boxed"),
    [("chain", "pairwise", False), ("binary", "exact", False)]
    + [("multiclass", step, True) for step in STEPS],
)
def test_a_mixture_is_the_best_of_all(kind, step, is_boxed):
    problem, rng = random_problem(kind), new_rng(2)
    lower, upper, box = random_box(rng, problem.listed.d, 0.3, is_boxed)
    iterate = start(problem, step, **box)
    planes, before = begin(iterate), iterate.dual_objective
    for _ in range(12):
        u, loss = iterate.dual_image(), iterate.loss
        planes.make_pass()
        if not planes.has_turn:
            break
        images = np.vstack([[u], planes.mixture.bundle.planes[1:] / -LAM])
        losses = np.append(loss, planes.mixture.bundle.offsets[1:])
        others = rng.dirichlet(np.full(len(losses), 0.3), size=200)
        others = np.vstack([others, np.eye(len(losses))])
        values = [
            dual_of_box(share @ images, share @ losses, LAM, lower, upper)
            for share in others
        ]
        after = iterate.dual_objective
        allowed = 1e-9 * (1.0 + abs(after)) if is_boxed else 1e-12
        assert after >= max(values) - allowed
        assert after >= before - 1e-14
        before = after
    row, w = solve(planes, 1e-6)
    assert np.all((lower <= w) & (w <= upper))
    assert problem.listed.primal(w, LAM) == pytest.approx(row["objective"], rel=1e-9)


@pytest.mark.parametrize("step", ["fw", "corrective"])
def test_labelings_of_python_structures_are_held_as_long_as_a_plane_has_them(step):
    problem = random_problem("custom", n=5)
    problem.structure.loss_augmented_decode = partial(_noisy_decode, problem, new_rng(3))
    iterate = bcfw.BlockFrankWolfe(problem.make_oracle(), np.full(5, 0.2), LAM, step=step)
    planes = begin(iterate)
    for k in range(60):
        if not planes.has_turn:
            planes.begin()
        planes.make_pass()
        if k % 5 == 0:
            iterate.run(np.arange(5))
    # Three labels in all, each at one place, and the dual point is true to them.
    value = iterate.dual_objective
    iterate.rebuild_weights()
    assert iterate.dual_objective == pytest.approx(value, abs=1e-12)


def _noisy_decode(problem, rng, x, y_true, w, lam=1.0):
    """A labeling that is often not the best, so that they come and go."""
    values = problem.listed.values(x, w, lam)
    return int(values.argmax() if rng.random() < 0.5 else rng.integers(len(values)))


# --------------------------------------------------------------------------- segments


def test_a_segment_is_searched_for_the_least_of_a_convex_function():
    rng = new_rng(4)
    for _ in range(200):
        slopes, offsets = rng.standard_normal((2, rng.integers(1, 8)))
        curvature = rng.choice([0.0, rng.exponential()])
        scale = 10.0 ** rng.uniform(-6, 6)

        def value(t, c=curvature, a=slopes, b=offsets, s=scale):
            return (a[:, np.newaxis] * s * t + b[:, np.newaxis]).max(0) + c * (s * t) ** 2

        def slope(t, c=curvature, a=slopes, b=offsets, s=scale):
            return s * a[(a * s * t + b).argmax()] + 2.0 * c * s * s * t

        grid = np.concatenate([np.linspace(0, 1, 1001), np.logspace(-9, 0, 1001)])
        found = minimize_on_segment(slope)
        here = value(np.array([found]))[0]
        steepest = max(abs(slope(0.0)), abs(slope(1.0)))
        assert 0.0 <= found <= 1.0
        assert here <= value(np.zeros(1))[0]
        allowed = 2.0 * SEARCH_RTOL * found + 1e-9
        assert here <= value(grid).min() + allowed * steepest
    # A slope of zero but for rounding does not end the search.
    found = minimize_on_segment(lambda t: (t - 0.5) + 1e-18)
    assert 0.5 * (1.0 - SEARCH_RTOL) <= found <= 0.5


# ------------------------------------------------------------------------------ turns


def run_with_turns(problem, step, monkeypatch, tol=1e-6):
    """Planes after three passes of blocks, and blocks after three planes."""
    monkeypatch.setattr(Planes, "_foreseen_at_first", lambda self: np.inf)
    original = Planes.make_pass

    def make_pass(self):
        original(self)
        if self.has_turn and self.n_planes == 3:
            self.end()
            self.due = 1.0

    monkeypatch.setattr(Planes, "make_pass", make_pass)
    iterate = start(problem, step)
    run = run_exact if step == "exact" else run_bcfw
    return iterate, run(iterate, tol=tol, max_iter=20_000, rng=0)


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_blocks_and_planes_in_turns_reach_the_optimum(kind, step, monkeypatch):
    problem = random_problem(kind)
    iterate, result = run_with_turns(problem, step, monkeypatch)
    assert result.status == "converged"
    assert abs(result.objective - optimum(problem, LAM)) <= 1e-6 + 1e-9
    assert result.gap == pytest.approx(
        problem.listed.primal(result.solution, LAM) - iterate.dual_objective, abs=1e-10
    )


def raw_rows(name):
    rng = new_rng(5)
    Z = rng.standard_normal((300, 3))
    y = (Z[:, 0] + 0.3 * rng.standard_normal(300) > 0).astype(int)
    three = np.digitize(Z[:, 0] + 0.3 * rng.standard_normal(300), [-0.5, 0.5])
    squares = PolynomialFeatures(2, include_bias=False)
    return {
        "wine": (*load_wine(return_X_y=True), 1.0),
        "cancer": (*load_breast_cancer(return_X_y=True), 1.0),
        "iris": (*load_iris(return_X_y=True), 1e3),
        "offset": (Z + 40.0, y, 10.0),
        "offset, three classes": (Z + 40.0, three, 10.0),
        "columns": (Z * [1.0, 1e3, 1e6] + [5.0, 0.0, 1e6], y, 1.0),
        # Of 300 weights, where the gap of blocks rises above that of w = 0.
        "squares": (squares.fit_transform(load_wine().data), load_wine().target, 1.0),
    }[name]


ROWS = ("wine", "cancer", "iris", "offset", "offset, three classes", "columns", "squares")
CUTTING = {
    name: partial(SlackRescaledSSVM, solver=name)
    for name in ("cutting_plane", "one_slack")
}


@pytest.mark.parametrize(
    ("make", "name"),
    [(BCFWClassifier, name) for name in ROWS]
    + [(make, ROWS[k]) for make in CUTTING.values() for k in (0, 1, 3, 5)],
)
def test_raw_rows_converge_by_default(make, name):
    """Block steps alone make 1,000 passes, and end far from the optimum."""
    X, y, C = raw_rows(name)
    model = make(C=C, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-3 and model.n_iter_ <= 150


def raw_chains(name):
    """(X, y, C)."""
    n_classes, n_features = (10, 10) if name == "longer turns" else (3, 4)
    X, y = make_chains(
        30 if name == "longer turns" else 60,
        n_features=n_features,
        n_classes=n_classes,
        random_state=new_seed(6),
    )
    top, offset, C = {
        "offset": (1.0, 30.0, 1.0), "scales": (1e3, 0.0, 0.01),
        "longer turns": (1e3, 5.0, 0.1),
    }[name]  # fmt: skip
    return [x * np.geomspace(1.0, top, n_features) + offset for x in X], y, C


@pytest.mark.parametrize(
    ("make", "name", "most"),
    [
        (make, name, 300)
        for make in (BCFWClassifier, SlackRescaledSSVM)
        for name in ("offset", "scales")
    ]
    # Planes that get on well are not ended: a turn is too short.
    + [(BCFWClassifier, "longer turns", 1000)],
)
def test_raw_chains_converge_by_default(make, name, most):
    X, y, C = raw_chains(name)
    model = make(C=C, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-3 and model.n_iter_ <= most


def test_raw_counts_of_several_labels_converge_by_default():
    """With two passes over the cached labelings after each pass, 600 are needed."""
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=new_seed(7))
    model = SlackRescaledSSVM(random_state=0).fit(X, Y)
    assert model.dual_gap_ <= 1e-3 and model.n_iter_ <= 400


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_raw_rows_of_dask_arrays_and_their_paths_converge(name):
    """Without planes 5,000 passes of a path end at a λ a hundred times as large."""
    da = pytest.importorskip("dask.array")
    X, y, C = raw_rows(name)
    path = bcfw_path(X, y, min_lambda=0.02, max_iter=1000, random_state=0)
    assert path.end <= 0.02 and path.gaps.max() <= path.eps
    order = new_rng(7).permutation(len(y))
    X, y = (da.from_array(a[order], chunks=(200, *a.shape[1:])) for a in (X, y))
    model = BCFWClassifier(C=C, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-3 and model.n_iter_ <= 300


def test_raw_rows_of_python_structures_take_few_calls_by_default():
    """As few as cutting planes that have a cache: cached labelings are used up first."""
    X, y, _ = raw_rows("iris")
    model = BCFWClassifier(PythonMulticlass(), C=100.0, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.n_oracle_calls_ <= 15 * len(y)


def test_planes_over_cached_labelings_solve_their_problem():
    problem = random_problem("multiclass")
    iterate = start(problem, "corrective")
    calls = iterate.n_oracle_calls
    mixture = PlaneMixture(iterate)
    mixture.start(iterate.weights.copy())
    left = [mixture.take_cached() for _ in range(60)]
    assert iterate.n_oracle_calls == calls
    assert min(left) >= -1e-12
    w = iterate.weights
    best = 0.5 * LAM * w @ w + iterate.largest_cached() @ problem.listed.uniform
    assert best - iterate.dual_objective <= 1e-6


@pytest.mark.parametrize("step", ["exact", "fw", "corrective"])
def test_a_warm_start_begins_at_the_best_weights(step):
    X, y, _ = raw_rows("wine")
    model = BCFWClassifier(step=step, warm_start=True, random_state=0).fit(X, y)
    assert "best" in model._dual_state["state"]
    coef, gap = model.coef_.copy(), model.dual_gap_
    model.fit(X, y)
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-3)


@pytest.mark.parametrize("acceleration", [True, False])
def test_without_auto_there_are_no_planes(acceleration):
    solver = random_problem("chain").solver(LAM)
    result = run_bcfw(solver, acceleration=acceleration, tol=0.0, max_iter=70, rng=0)
    assert "planes" not in result.history["method"]


def test_gaps_of_blocks_that_close_without_the_true_one_leave_planes_their_turn():
    """As after a warm start, where few blocks were visited: 200 passes in place of 22."""
    iterate = SimpleNamespace(weights=np.zeros(3), l1_ratio=0.0, estimated_gap=1e-9)
    row = {"dual_gap": 1.0}
    forecast = SimpleNamespace(tol=1e-3, ratio=1.0, check=lambda: (row, iterate.weights))
    planes, begun = Planes(iterate, forecast), []
    planes.begin = lambda: begun.append(planes.n_passes)
    planes.check()
    for _ in range(8):
        planes.after_pass()
    assert begun == [8]
