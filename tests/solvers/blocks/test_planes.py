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
from sklearn_structsvm.estimators.steps import make_ascent
from sklearn_structsvm.solvers.blocks import bcfw, exact
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.blocks.forecast import GapForecast, passes_at_pace
from sklearn_structsvm.solvers.blocks.mixture import (
    SEARCH_RTOL,
    PlaneMixture,
    minimize_on_segment,
)
from sklearn_structsvm.solvers.blocks.planes import (
    FEW_WEIGHTS,
    IDLE,
    SECOND_LOOK,
    SURELY,
    Planes,
)
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    flat,
)

LAM, N = 0.02, 8
STEPS = ("fw", "pairwise", "away", "corrective")
FLAT = ("binary", "multiclass", "multilabel")
CASES = [(kind, step) for kind in KINDS for step in STEPS]
CASES += [(kind, "exact") for kind in FLAT]


def start(problem, step, lam=LAM, p=None, **options):
    """An iterate after two passes of its steps."""
    p = problem.listed.uniform if p is None else p
    if step == "exact":
        bound = SimpleNamespace(
            structure=problem.structure, X=problem.X, y=problem.y, weights=p
        )
        iterate = make_ascent(bound, lam)
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
def test_planes_alone_reach_the_optimum(kind, step):
    problem = random_problem(kind)
    row, w = solve(begin(start(problem, step)), 1e-6)
    best = optimum(problem, LAM)
    assert row["objective"] >= best - 1e-9
    assert row["dual_objective"] <= best + 1e-9
    assert problem.listed.primal(w, LAM) == pytest.approx(row["objective"], rel=1e-9)


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_the_dual_never_falls_and_is_that_of_the_dual_variables(kind, step):
    problem = random_problem(kind)
    iterate = start(problem, step)
    planes, before = begin(iterate), iterate.dual_objective
    for _ in range(40):
        if not planes.has_turn:
            break
        planes.make_pass()
        after = iterate.dual_objective
        assert after >= before - 1e-14
        before = after
        if step == "fw":
            # Plain steps keep ν and ℓ alone, which tell the value.
            iterate.rebuild_weights()
            assert iterate.dual_objective == pytest.approx(after, abs=1e-12)
        else:
            assert dual_over_labelings(problem, iterate) == pytest.approx(
                after, abs=1e-12
            )


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


@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_planes_of_slack_rescaling_are_the_searched_labelings(kind):
    problem = random_problem(kind)
    oracle = SlackOracle(problem.make_oracle())
    iterate, _, _ = start_bcfw(oracle, problem.listed.uniform, LAM)
    iterate.run(visits(N, passes=2))
    row, _ = solve(begin(iterate), 1e-6)
    other, _, _ = start_bcfw(
        SlackOracle(problem.make_oracle()), problem.listed.uniform, LAM, step="pairwise"
    )
    result = run_bcfw(other, acceleration=False, tol=1e-6, max_iter=10**5, rng=0)
    assert result.status == "converged"
    assert abs(row["objective"] - result.objective) <= 2e-6


@pytest.mark.parametrize(("kind", "step"), [("chain", "corrective"), ("binary", "exact")])
def test_examples_without_weight_are_left_alone(kind, step):
    problem = random_problem(kind)
    p = np.array([0.3, 0.0, 0.1, 0.25, 0.0, 0.2, 0.1, 0.05])
    row, _ = solve(begin(start(problem, step, p=p)), 1e-6)
    best = optimum(problem, LAM, p)
    assert row["dual_objective"] - 1e-9 <= best <= row["objective"] + 1e-9


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


def test_a_slope_of_zero_but_for_rounding_does_not_end_the_search():
    found = minimize_on_segment(lambda t: (t - 0.5) + 1e-18)
    assert 0.5 * (1.0 - SEARCH_RTOL) <= found <= 0.5


def test_the_pace_of_a_gap_is_that_of_its_logarithm():
    assert passes_at_pace(10, 1.0, 0.1, 1e-3) == pytest.approx(20.0)
    assert passes_at_pace(10, 1.0, 1e-4, 1e-3) == 0.0
    assert passes_at_pace(10, 1.0, 1.0, 1e-3) == np.inf
    assert passes_at_pace(10, 1.0, 0.5, 0.0) == np.inf


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


@pytest.mark.parametrize("n_weights", [13, 21, 216, 5000])
@pytest.mark.parametrize("n_passes", [16, 32, 128])
@pytest.mark.parametrize("share", [0.95, 1.05])
def test_planes_begin_where_many_more_passes_are_foreseen(
    n_weights, n_passes, share, monkeypatch
):
    """SURELY times what planes need; with many weights also twice the passes made."""
    begun = []
    monkeypatch.setattr(Planes, "begin", lambda self: begun.append(self))
    iterate = SimpleNamespace(
        weights=np.zeros(n_weights), estimated_gap=1.0, l1_ratio=0.0
    )
    planes = Planes(iterate, SimpleNamespace(ratio=1.0, tol=1e-3))
    planes.next_look = n_passes
    due = SURELY * planes.need
    if n_weights > FEW_WEIGHTS:
        due = max(due, 2 * n_passes)
    # The gap falls by a factor of ten in as many passes as are left after the last one.
    for k in range(n_passes):
        iterate.estimated_gap = 1e-2 * 10.0 ** ((n_passes - 1 - k) / (share * due))
        planes.after_pass()
    assert begun == ([] if share < 1.0 else [planes])


def test_planes_begin_where_block_gaps_close_and_the_certified_gap_does_not(monkeypatch):
    """So it may be with an L1 penalty after a warm start: blocks see other weights."""
    begun = []
    monkeypatch.setattr(Planes, "begin", lambda self: begun.append(self))
    iterate = SimpleNamespace(weights=np.zeros(13), estimated_gap=1.0, l1_ratio=0.5)
    forecast = SimpleNamespace(ratio=1.0, tol=1e-3, check=lambda: ({"dual_gap": 0.5},))
    planes = Planes(iterate, forecast)
    while not begun and planes.n_passes < 100:
        iterate.estimated_gap *= 0.1
        planes.after_pass()
        if iterate.estimated_gap <= forecast.tol:
            iterate.estimated_gap = forecast.check()[0]["dual_gap"]
            planes.check()
    assert begun == [planes]
    assert planes.n_passes == SECOND_LOOK


@pytest.mark.parametrize("ratio", [1.0, 10.0])
@pytest.mark.parametrize("share", [0.95, 1.05])
def test_what_is_foreseen_at_first_is_of_accelerated_steps(ratio, share, monkeypatch):
    """Plain ones need many more passes, and give way to those, not to planes."""
    begun = []
    monkeypatch.setattr(Planes, "begin", lambda self: begun.append(self))
    iterate = SimpleNamespace(
        weights=np.zeros(13),
        estimated_gap=1.0,
        lam=0.1,
        kappa=0.1 * (ratio - 1.0),
        l1_ratio=0.0,
    )
    accelerator = SimpleNamespace()
    planes = Planes(iterate, SimpleNamespace(ratio=1.0, tol=1e-3), accelerator)
    left = share * SURELY * planes.need
    accelerator.foreseen = np.sqrt(ratio) * left
    planes.after_pass()
    is_due = ratio > 1.0 and share > 1.0
    assert begun == ([planes] if is_due else [])


@pytest.mark.parametrize("step", ["pairwise", "exact"])
def test_planes_end_where_they_gain_nothing(step):
    iterate = start(random_problem("multiclass"), step)
    solve(begin(iterate), 1e-9)
    planes = begin(iterate)
    for _ in range(200):
        if not planes.has_turn:
            break
        planes.make_pass()
    assert not planes.has_turn
    assert planes.n_idle >= IDLE
    # The gaps of the blocks are those of another w: a check is due, and no more than one.
    assert planes.predicts_convergence()
    planes.check()
    assert not planes.is_back


def check_convergence(model, X, y, most):
    model.fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.n_iter_ <= most


def raw_rows(name):
    rng = new_rng(5)
    Z = rng.standard_normal((300, 3))
    y = (Z[:, 0] + 0.3 * rng.standard_normal(300) > 0).astype(int)
    three = np.digitize(Z[:, 0] + 0.3 * rng.standard_normal(300), [-0.5, 0.5])
    return {
        "wine": (*load_wine(return_X_y=True), 1.0),
        "cancer": (*load_breast_cancer(return_X_y=True), 1.0),
        "iris": (*load_iris(return_X_y=True), 1e3),
        "offset": (Z + 40.0, y, 10.0),
        "offset, three classes": (Z + 40.0, three, 10.0),
        "columns": (Z * [1.0, 1e3, 1e6] + [5.0, 0.0, 1e6], y, 1.0),
    }[name]


@pytest.mark.parametrize(
    "name", ["wine", "cancer", "iris", "offset", "offset, three classes", "columns"]
)
def test_raw_rows_converge_by_default(name):
    """Block steps alone make 1,000 passes, and end far from the optimum."""
    X, y, C = raw_rows(name)
    check_convergence(BCFWClassifier(C=C, random_state=0), X, y, 150)


@pytest.mark.parametrize("Model", [BCFWClassifier, SlackRescaledSSVM])
@pytest.mark.parametrize(("offset", "top"), [(30.0, 1.0), (0.0, 1e3)])
def test_raw_chains_converge_by_default(offset, top, Model):
    X, y = make_chains(60, n_features=4, n_classes=3, random_state=new_seed(6))
    scales = np.geomspace(1.0, top, 4)
    X = [scales * np.asarray(x) + offset for x in X]
    C = 1.0 if top == 1.0 else 0.01
    check_convergence(Model(ChainStructure(), C=C, random_state=0), X, y, 300)


def test_raw_counts_of_several_labels_converge_by_default():
    """With two passes over the cached labelings after each pass, 600 are needed."""
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=new_seed(7))
    check_convergence(SlackRescaledSSVM(random_state=0), X, Y, 400)


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_a_path_over_raw_columns_is_complete(name):
    """Without planes 5,000 passes end at a λ a hundred times as large."""
    X, y, _ = raw_rows(name)
    classes, y = np.unique(y, return_inverse=True)
    structure = BinaryStructure() if len(classes) == 2 else MulticlassStructure()
    path = bcfw_path(
        X, y, structure=structure, min_lambda=0.005, max_iter=1000, random_state=0
    )
    assert path.end <= 0.005
    assert path.gaps.max() <= path.eps
    # The certificates are those of the weights returned, also between two breakpoints.
    structure.fit(X, y, bias=1.0)
    for k in range(0, len(path.lambdas) - 1, 10):
        lam = np.sqrt(path.lambdas[k] * path.lambdas[k + 1])
        C = 1.0 / (lam * len(y))
        best = BCFWClassifier(C=C, tol=1e-4, max_iter=10**4, random_state=0).fit(X, y)
        w = path.coef(lam)
        value = 0.5 * lam * w @ w + _hinge_of_classes(X, y, w, len(classes))
        assert value <= best.objective_ + path.eps + 1e-9


def _hinge_of_classes(X, y, w, n_classes):
    X = np.column_stack([X, np.ones(len(X))])
    if n_classes == 2:
        return np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w)).mean()
    scores = X @ w.reshape(-1, n_classes) + 1.0
    scores[np.arange(len(y)), y] -= 1.0
    return (scores.max(axis=1) - scores[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("solver", ["cutting_plane", "one_slack"])
@pytest.mark.parametrize("name", ["wine", "cancer", "offset", "columns"])
def test_cutting_planes_of_raw_rows_converge(name, solver):
    """Passes over the working sets left a gap of .13 and more after 1,000 rounds."""
    X, y, C = raw_rows(name)
    check_convergence(SlackRescaledSSVM(C=C, solver=solver, random_state=0), X, y, 150)


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_raw_rows_of_dask_arrays_converge_by_default(name):
    da = pytest.importorskip("dask.array")
    X, y, C = raw_rows(name)
    order = new_rng(7).permutation(len(y))
    X, y = (da.from_array(a[order], chunks=(200, *a.shape[1:])) for a in (X, y))
    check_convergence(BCFWClassifier(C=C, random_state=0), X, y, 300)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_planes_that_get_on_well_are_not_ended(C):
    """100 weights of chains, 100 of many labels: a turn is too short, its pace good."""
    X, y = make_chains(60, random_state=new_seed(7))
    X = [x * np.geomspace(1.0, 1e3, x.shape[1]) + 5.0 for x in X]
    check_convergence(BCFWClassifier(C=C, random_state=0), X, y, 1000)


def test_what_blocks_bring_after_planes_is_seen_in_certificates():
    """Gaps of blocks are of other weights than the best, whatever their ratio was."""
    planes = begin(start(random_problem("multiclass"), "pairwise"), tol=1e-9)
    planes.make_pass()
    planes.accelerator, planes.was_accelerated = None, False
    planes.end()
    gap = planes.check()[0]["dual_gap"]
    planes.forecast.ratio = 0.0
    planes.next_look = 2
    planes.after_pass()
    planes.after_pass()
    # No pass was made: all that is known is that blocks do not get on.
    assert planes.least_gap == gap
    assert planes.has_turn


def test_squares_of_raw_columns_begin_with_planes():
    """Of 300 weights, where the gap of blocks rises above that of w = 0."""
    X, y = load_wine(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    check_convergence(BCFWClassifier(random_state=0), X, y, 150)


def test_raw_rows_of_python_structures_take_few_calls_by_default():
    """As few as cutting planes that have a cache: cached labelings are used up first."""
    X, y, _ = raw_rows("iris")
    model = BCFWClassifier(PythonMulticlass(), C=100.0, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.n_oracle_calls_ <= 15 * len(y)


@pytest.mark.parametrize("kind", ["multiclass", "custom"])
@pytest.mark.parametrize("is_boxed", [False, True])
def test_cached_labelings_are_mixed_where_no_cost_is_declared(
    kind, is_boxed, monkeypatch
):
    """Whatever an oracle says of threads: a subclass has none, and costs the same."""
    Restricted = type("Restricted", (flat.MulticlassOracle,), {})
    monkeypatch.setattr(flat, "MulticlassOracle", Restricted)
    problem = random_problem(kind)
    oracle, d = problem.make_oracle(), problem.listed.d
    assert not oracle.thread_safe
    bounds = (np.full(d, -9.0), np.full(d, 9.0)) if is_boxed else None
    iterate, _, _ = start_bcfw(
        oracle, problem.listed.uniform, LAM, step="corrective", bounds=bounds
    )
    passes = bcfw.FrankWolfePasses(iterate, "permuted")
    assert passes.mixes_cached == (kind == "custom" and not is_boxed)


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


@pytest.mark.parametrize("step", ["exact", "corrective"])
def test_equal_inputs_give_equal_bits_however_many_threads(step):
    X, y, _ = raw_rows("cancer")
    fits = [
        BCFWClassifier(step=step, random_state=0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 1, 2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    if step == "exact":
        np.testing.assert_array_equal(fits[0].coef_, fits[2].coef_)
    assert fits[2].dual_gap_ <= 1e-3


@pytest.mark.parametrize("acceleration", [True, False])
def test_without_auto_there_are_no_planes(acceleration, monkeypatch):
    def fail(self, left):
        raise AssertionError("planes had a turn")

    monkeypatch.setattr(Planes, "begin", fail)
    solver = random_problem("chain").solver(LAM)
    run_bcfw(solver, acceleration=acceleration, tol=0.0, max_iter=70, rng=0)
