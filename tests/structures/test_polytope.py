"""Polytope against scipy's linprog."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from sklearn_structsvm.structures.polytope import Polytope, maximize_product

highspy = pytest.importorskip("highspy")

ACCURACY = 1e-8
SQUARE = np.zeros((0, 2)), np.zeros(0)


@st.composite
def polytopes(draw):
    """A, b and a generator: random rows through the unit cube, some of them empty."""
    rng = new_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(0, 6)), draw(st.integers(1, 6))
    A = rng.integers(-2, 3, size=(m, n)).astype(float)
    b = A @ rng.random(n) + draw(st.sampled_from([-0.3, 0.0, 0.4]))
    return A, b, rng


def assert_is_best(z, c, A, b):
    """z is a feasible point of largest c·z, or None where there is none."""
    reference = linprog(-c, A_ub=A, b_ub=b, bounds=(0, 1), method="highs")
    assert (z is None) == (reference.status == 2)
    if z is not None:
        assert ((z >= 0) & (z <= 1)).all()
        size = np.abs(A).sum(axis=1) + np.abs(b)
        assert (A @ z <= b + ACCURACY * np.maximum(size, 1)).all()
        assert c @ z == pytest.approx(-reference.fun, rel=ACCURACY, abs=ACCURACY)


@settings(max_examples=20)
@given(polytopes(), st.sampled_from([1e-6, 1.0, 1e6]))
def test_one_instance_answers_any_mix_of_questions(problem, scale):
    A, b, rng = problem
    polytope = Polytope(sparse.csr_matrix(A), b)
    for _ in range(8):
        c, h, g = scale * rng.normal(size=(3, A.shape[1]))
        h0, g0 = scale * rng.normal(size=2)
        alpha, beta = rng.choice([0.0, 0.3, 2.0, np.inf]), rng.choice([0.0, 0.2, 1.5])
        if alpha == np.inf:
            ray, limit = -h, h0
        else:
            ray, limit = g - alpha * h, alpha * h0 - g0
        rows = np.vstack([A, beta * h - g, ray])
        limits = np.append(b, [g0 - beta * h0, limit])
        # The reference has absolute tolerances.
        scaled = np.append(np.ones(len(b)), [1 / scale, 1 / scale])
        z = polytope.maximize_between(c, h, h0, g, g0, alpha, beta)
        assert_is_best(z, c / scale, rows * scaled[:, np.newaxis], limits * scaled)
        try:
            z = polytope.maximize(c)
        except ValueError:
            z = None
        assert_is_best(z, c / scale, A, b)


def test_rays_of_an_extreme_slope_are_no_trouble():
    c, h, g = np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    for alpha, beta in ((1e150, 1e-150), (1e150, 0.0), (np.inf, 1e-150)):
        z = Polytope(*SQUARE).maximize_between(c, h, 0.0, g, 0.0, alpha, beta)
        np.testing.assert_allclose(z, [1.0, 1.0])


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_a_copy_has_a_solver_of_its_own(duplicate):
    polytope = Polytope([[1.0, 1.0]], [1.0])
    polytope.maximize([1.0, 2.0])
    np.testing.assert_array_equal(duplicate(polytope).maximize([2.0, 1.0]), [1.0, 0.0])
    np.testing.assert_array_equal(polytope.maximize([1.0, 2.0]), [0.0, 1.0])


def test_threads_may_share_it():
    rng = new_rng(0)
    polytope, objectives = Polytope(*SQUARE), rng.normal(size=(200, 2))
    wrong = []

    def ask(some):
        for c in some:
            if not np.array_equal(polytope.maximize(c), c > 0):
                wrong.append(c)

    threads = [threading.Thread(target=ask, args=(objectives[t::4],)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(
    not hasattr(highspy.Highs, "resetGlobalScheduler"),
    reason="this highspy cannot undo what the other user asks for",
)
def test_another_user_of_highs_may_have_asked_for_more_threads():
    highspy.Highs.resetGlobalScheduler(True)
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", 2)
    other.run()
    try:
        z = Polytope(*SQUARE).maximize([1.0, -1.0])
    finally:
        highspy.Highs.resetGlobalScheduler(True)
    np.testing.assert_array_equal(z, [1.0, 0.0])


def test_without_highs_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ImportError, match="pip install highspy"):
        Polytope(*SQUARE).maximize([1.0, 1.0])


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        ([[1.0, 1.0]], [1.0, 2.0], r"b must have shape \(1,\); got \(2,\)"),
        ([[np.nan, 1.0]], [1.0], r"A\.data must be finite"),
        ([[1.0, 1.0]], [np.inf], "b must be finite"),
    ],
)
def test_what_is_no_polytope_is_refused(A, b, message):
    with pytest.raises(ValueError, match=message):
        Polytope(A, b)


def test_questions_that_make_no_sense_are_refused():
    square = Polytope(*SQUARE)
    with pytest.raises(ValueError, match="c must hold 2 finite numbers"):
        square.maximize([1.0])
    with pytest.raises(ValueError, match="c must hold 2 finite numbers; got .* NaN"):
        square.maximize([1.0, np.nan])
    with pytest.raises(ValueError, match="alpha must be >= 0.* got alpha=-1"):
        square.maximize_between([1, 1], [1, 0], 0, [0, 1], 0, alpha=-1)
    with pytest.raises(ValueError, match="beta=inf"):
        square.maximize_between([1, 1], [1, 0], 0, [0, 1], 0, beta=np.inf)
    with pytest.raises(ValueError, match="The polytope is empty"):
        Polytope([[1.0]], [-1.0]).maximize([1.0])


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_product_is_that_of_the_polygon(seed):
    """Against all mixtures of two corners of a random polytope, on a fine grid."""
    rng = new_rng(seed)
    # As of a truth, without loss and with a margin of h0: no product is below zero.
    corners = np.vstack([np.zeros(3), rng.uniform(size=(11, 3))])
    h, g, h0 = rng.normal(size=3), rng.uniform(size=3), rng.uniform(1.0, 2.0)

    def maximize(c):
        return corners[np.argmax(corners @ c)]

    z = maximize_product(maximize, h, h0, g, 0.0)
    shares = np.linspace(0, 1, 401)[:, np.newaxis]
    best = 0.0
    for a in corners:
        for b in corners:
            mixed = (1 - shares) * a + shares * b
            margins = mixed @ h + h0
            best = max(best, np.max(margins * (mixed @ g) * (margins > 0)))
    value = (z @ h + h0) * (z @ g)
    assert value >= best - 1e-12
    assert value <= best * (1 + 1e-4) + 1e-12
