"""Risks in shards: the same as whole, also where these forget; searches over lists."""

import pickle

import numpy as np
import pytest
from _risks import KINDS, make_risk, sort_and_walk
from _seeds import new_rng
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sklearn_structsvm.distributed import merging
from sklearn_structsvm.distributed.merging import merge, search_line
from sklearn_structsvm.distributed.risk import DistributedRisk
from sklearn_structsvm.distributed.shard import ChunkRows, Shard
from sklearn_structsvm.risks import Logistic, MultilabelHinge, Risk, SquaredHinge
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.batch.owlqn import run_owlqn
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs
from sklearn_structsvm.structures.ranking import best_threshold

SIZES = (7, 1, 20, 32)


class Workers:
    """Shards in a list; before the questions that `loses` names, a shard is made anew."""

    def __init__(self, shards, loses=lambda number: ()):
        self.shards, self.loses = shards, loses
        self.n_questions = self.largest = 0

    def ask(self, question):
        for j in self.loses(self.n_questions):
            self.shards[j] = pickle.loads(pickle.dumps(self.shards[j]))
        self.n_questions += 1
        reply = merge([shard.answer(question) for shard in self.shards])
        if reply is not None:
            self.largest = max([self.largest, *(np.size(s) for s in reply.sums)])
        return reply


def divide(risk, X, y, weights, kind, options, sizes=SIZES, loses=lambda number: ()):
    """The risk, divided into shards of two chunks and of the rest."""
    rows, first = [], 0
    for n in sizes:
        chunk = slice(first, first + n)
        if weights[chunk].any():
            share = weights[chunk].sum() / weights.sum()
            rows.append(ChunkRows(X[chunk], y[chunk], weights[chunk], first, share))
        first += n
    assert first == len(y)
    groups = rows[:2], rows[2:], []
    shards = [Shard(kind, options, risk.n_weights, group) for group in groups]
    workers = Workers(shards, loses)
    return workers, DistributedRisk(
        workers.ask,
        n_samples=risk.n_samples,
        n_scores=risk.n_scores,
        n_weights=risk.n_weights,
        n_entries=risk.n_entries,
        kind=kind,
    )


def both(kind, seed=0, layout="dense", **division):
    """A risk in one piece, the workers, and the same risk with them."""
    rng = new_rng(seed)
    n = sum(SIZES)
    X = rng.normal(size=(n, 5))
    weights = rng.uniform(0.2, 2.0, n)
    weights[3] = weights[7] = 0.0
    if layout == "csr":
        X[rng.random(X.shape) < 0.5] = 0.0
        X = sparse.csr_array(X)
    if kind == "logistic":
        y = rng.integers(0, 2, n)
        risk, options = Logistic(X, y, weights, bias=0.5), {}
    elif kind == "squared":
        y, options = rng.integers(0, 3, n), {"n_classes": 3}
        risk = SquaredHinge(X, y, weights, bias=0.5, n_classes=3)
    else:
        risk = make_risk(kind, X, rng, weights, bias=0.5)
        options = {"label_costs": getattr(risk, "label_costs", None)}
        if kind == "binary":
            y = (risk.signs > 0).astype(int)
            options["label_costs"] = np.array([[0.0, 2.0], [0.5, 0.0]])
        elif isinstance(risk, MultilabelHinge):
            y = risk.present
        else:
            y, options["rescaled"] = risk.truth, risk.rescaled
    options["bias"] = 0.5
    return risk, *divide(risk, X, y, weights, type(risk), options, **division)


def always(number):
    """Every shard is made anew before every question."""
    return range(3)


def now_and_then(number):
    return [number % 3] if number % 5 == 4 else []


@pytest.mark.parametrize("loses", [lambda number: (), always], ids=["kept", "lost"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kind", [*KINDS, "logistic", "squared"])
def test_a_divided_risk_has_the_values_and_planes_of_the_whole(kind, layout, loses):
    risk, _, divided = both(kind, layout=layout, loses=loses)
    rng = new_rng(1)
    for w in (np.zeros(risk.n_weights), rng.normal(size=risk.n_weights)):
        d = rng.normal(size=risk.n_weights)
        Z, D = risk.scores(w), risk.scores(d)
        there, along = divided.scores(w), divided.scores(d)
        assert divided.value(there) == pytest.approx(risk.value(Z), rel=1e-13)
        moved = divided.moved(there, along, 0.25)
        assert divided.value(moved) == pytest.approx(risk.value(Z + 0.25 * D), rel=1e-13)
        planes = []
        for toward, whole in ((None, None), (along, D)):
            B, offset = divided.plane(there, toward)
            A, known = risk.plane(Z, whole)
            assert offset == pytest.approx(known, abs=1e-13)
            np.testing.assert_allclose(
                divided.gradient(B), risk.gradient(A), rtol=0.0, atol=1e-13
            )
            assert divided.dot(B, along) == pytest.approx(risk.dot(A, D), abs=1e-13)
            planes.append((B, A))
        (B, A), (tied, of_all) = planes
        np.testing.assert_allclose(
            divided.gradient(tied - B), risk.gradient(of_all - A), rtol=0.0, atol=1e-13
        )


def test_random_directions_do_not_depend_on_the_division():
    risk, workers, divided = both("multiclass")
    along = divided.random_scores(seed=3)
    divided.plane(divided.scores(np.zeros(risk.n_weights)), along)
    rows = [Z for shard in workers.shards for Z in shard.rows[along.key]]
    used = np.concatenate([Z for Z in rows])
    of_the_seed = np.random.Generator(np.random.PCG64(3))
    drawn = of_the_seed.random((risk.n_samples, risk.n_scores))
    # A chunk whose weights are all zero is left out.
    np.testing.assert_array_equal(used, np.delete(drawn, 7, axis=0))
    np.testing.assert_array_equal(risk.random_scores(seed=3), drawn)


@pytest.mark.parametrize("loses", [lambda number: (), always], ids=["kept", "lost"])
@pytest.mark.parametrize("resolution", [1, 3, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_the_line_search_finds_the_step_of_the_whole(
    kind, resolution, loses, monkeypatch
):
    monkeypatch.setattr(merging, "RESOLUTION", resolution)
    monkeypatch.setattr(merging, "RESOLUTION_GROWTH", 2)
    for seed in range(3):
        risk, _, divided = both(kind, seed, loses=loses)
        rng = new_rng(seed)
        w = rng.normal(size=risk.n_weights) * rng.integers(0, 2)
        d = -risk.gradient(risk.plane(risk.scores(w), risk.random_scores())[0])
        lam = 10.0 ** -rng.integers(1, 5)
        Z, D = risk.scores(w), risk.scores(d)
        expected = sort_and_walk(risk.hinge, Z, D, lam * w @ d, lam * d @ d)
        found = divided.line_search(
            divided.scores(w), divided.scores(d), w @ d, d @ d, lam
        )
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-14)
        for share in (0.5, 2.0):
            most = divided.line_search(
                divided.scores(w), divided.scores(d), w @ d, d @ d, lam,
                largest=share * found,
            )  # fmt: skip
            assert most == pytest.approx(min(share, 1.0) * found, rel=1e-11, abs=1e-14)


@st.composite
def piecewise_lines(draw):
    """Slope, curvature and breakpoints, many of them equal, in a few lists."""
    count = st.integers(0, 40)
    shards = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(count)
        grid = st.integers(0, 12).map(lambda v: v / 4.0)
        points = draw(st.lists(grid, min_size=n, max_size=n))
        jumps = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
        order = np.argsort(points, kind="stable")
        shards.append((np.array(points)[order], np.array(jumps, float)[order]))
    return -draw(st.integers(0, 60)) / 1.0, draw(st.sampled_from([0.0, 0.5, 8.0])), shards


@given(piecewise_lines(), st.sampled_from([1, 2, 5]))
def test_buckets_lead_to_the_exact_minimum(problem, resolution):
    slope, curvature, shards = problem
    upper = 4.0

    def pieces(lower, upper, asked):
        size = max(1, resolution * asked // merging.RESOLUTION)
        found = []
        for points, jumps in shards:
            inside = (points > lower) & (points <= upper)
            found.append(
                merging.make_buckets(
                    points[inside],
                    jumps[inside],
                    max(1, np.count_nonzero(inside) // size),
                )
            )
        rise = sum(jumps[points <= lower].sum() for points, jumps in shards)
        lists = [np.concatenate(lists) for lists in zip(*found, strict=True)]
        return rise, 100.0, *lists

    found = search_line(pieces, slope, curvature, 0.0, upper)
    points = np.concatenate([p for p, _ in shards])
    jumps = np.concatenate([j for _, j in shards])

    def right(eta):
        return slope + curvature * eta + jumps[points <= eta].sum()

    def left(eta):
        return slope + curvature * eta + jumps[points < eta].sum()

    assert found == upper or right(found) >= -1e-10
    assert found == 0.0 or left(found) <= 1e-10
    # The least of all minimizers: before it, the function falls.
    if found > 0.0:
        assert right(found * (1.0 - 1e-9) - 1e-9) < 0.0


@pytest.mark.parametrize("resolution", [1, 4, 1024])
@pytest.mark.parametrize("digits", [0, 1, 6])
@pytest.mark.parametrize("seed", [0, 4, 5])
def test_the_threshold_is_that_of_all_scores_together(
    seed, digits, resolution, monkeypatch
):
    monkeypatch.setattr(merging, "RESOLUTION", resolution)
    monkeypatch.setattr(merging, "RESOLUTION_GROWTH", 2)
    rng = new_rng(seed)
    n, k = 60, 3
    X = np.round(rng.normal(size=(n, k)), digits)
    Y = (X + rng.normal(size=(n, k)) > rng.normal()).astype(int)
    if seed == 4:
        Y[:] = 0
    if seed == 5:
        Y[:], X[:] = 1, 0.0
    # All or none may be kept.
    weights = rng.integers(0, 3, n).astype(float)
    risk = MultilabelHinge(X, Y, weights)
    _, divided = divide(risk, X, Y, weights, MultilabelHinge, {})
    expected = best_threshold(X.ravel(), Y.ravel() != 0, np.repeat(risk.weights, k))
    assert divided.best_threshold(np.eye(k).ravel()) == pytest.approx(expected, abs=1e-12)


SOLVERS = {
    "hybrid": lambda risk: run_sublbfgs(risk, 0.01, hybrid=True, tol=1e-10),
    "wolfe": lambda risk: run_sublbfgs(
        risk, 0.01, hybrid=True, line_search="wolfe", tol=1e-10
    ),
    "bmrm": lambda risk: run_bmrm(risk, 0.01, tol=1e-10),
    "minimizers": lambda risk: run_bmrm(risk, 0.1, line_search=False, tol=1e-5),
}


@pytest.mark.parametrize("loses", [lambda number: (), now_and_then], ids=["kept", "lost"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_solvers_reach_the_optimum_whatever_shards_forget(solver, loses):
    for kind in ("binary", "rescaled", "pairs"):
        risk, workers, divided = both(kind, loses=loses)
        whole, result = solver(risk), solver(divided)
        assert whole.status == result.status == "converged"
        gap = max(whole.gap, result.gap) + 1e-12
        assert result.objective == pytest.approx(whole.objective, abs=gap)
        w = result.solution
        value = risk.value(risk.scores(w))
        assert value == pytest.approx(divided.value(divided.scores(w)), rel=1e-12)
        # No reply but has the length of w, and few numbers more.
        assert workers.largest == risk.n_weights


@pytest.mark.parametrize("direction", ["owlqn", "sub"])
@pytest.mark.parametrize(
    "loses", [lambda number: (), now_and_then, always], ids=["kept", "lost", "all lost"]
)
def test_the_certificate_of_the_l1_penalty_survives_a_mean_that_is_lost(direction, loses):
    risk, _, divided = both("logistic", loses=loses)
    # The bound is made of gradients: it tells 1e-6 where objectives tell its square.
    options = {"direction": direction, "tol": 1e-6, "max_iter": 20000}
    whole = run_owlqn(risk, 0.01, **options)
    result = run_owlqn(divided, 0.01, **options)
    assert whole.status == result.status == "converged"
    gap = max(whole.gap, result.gap) + 1e-12
    assert result.objective == pytest.approx(whole.objective, abs=gap)


def test_shards_forget_what_is_not_asked_for_again():
    risk, workers, divided = both("multiclass")
    run_sublbfgs(divided, 0.01, hybrid=True, tol=1e-6)
    assert max(len(shard.rows) for shard in workers.shards) <= 6
    shard = workers.shards[0]
    assert sum(X.X.nbytes for X in shard.chunks) < shard.__sizeof__() < 10_000


def test_a_divided_risk_answers_all_that_solvers_call_or_refuses_it():
    called = {"empty", "scores", "random_scores", "moved", "mixed", "value", "plane"}
    called |= {"gradient", "dot", "line_search", "dual_form"}
    assert all(hasattr(kind, name) for kind in (Risk, DistributedRisk) for name in called)
    _, _, divided = both("logistic")
    Z = divided.scores(np.zeros(divided.n_weights))
    with pytest.raises(NotImplementedError, match="no exact line search"):
        divided.line_search(Z, Z, 0.0, 0.0, 0.1)
    with pytest.raises(TypeError, match="not where the solver is"):
        divided.dual_form()
