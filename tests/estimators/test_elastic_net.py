"""l1_ratio of CRFs and of margins: the problem, zeros, warm starts and misuse."""

import warnings
from itertools import product

import numpy as np
import pytest
from _options import placed
from _references import logistic_regression
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.estimators import crf as estimator
from sklearn_structsvm.solvers.blocks import crf
from sklearn_structsvm.structures import ChainStructure

TOL = 1e-4


def chains(n=30):
    return make_chains(
        n, n_features=5, n_classes=3, max_length=5, random_state=new_seed()
    )


def fitted(X, y, structure="auto", **params):
    params = {"l1_ratio": 0.6, "tol": TOL, "random_state": 0} | params
    return placed(CRFClassifier)(structure, **params).fit(X, y)


def objective(model, coef, log_loss):
    """As the docstring has it, over n examples of weight 1, divided by C n."""
    sizes = model.l1_ratio * np.abs(coef).sum()
    squares = 0.5 * (1.0 - model.l1_ratio) * np.square(coef).sum()
    return (sizes + squares) / (model.C * len(log_loss)) + np.mean(log_loss)


def assert_same_optimum(model, other):
    assert model.dual_gap_ <= model.tol and other.dual_gap_ <= other.tol
    assert model.objective_ >= other.dual_objective_ - 1e-12
    assert other.objective_ >= model.dual_objective_ - 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_rows_have_the_objective_of_logistic_regression(k, l1_ratio):
    rng = new_rng(k)
    X, y = rng.normal(size=(60, 8)), rng.integers(k, size=60)
    options = {"C": 0.3, "l1_ratio": l1_ratio, "fit_intercept": False}
    model = fitted(X, y, **options)
    peer = logistic_regression(solver="saga", max_iter=500, tol=1e-6, **options)
    peer.fit(X, y)
    values = []
    for coef in (model.coef_, peer.coef_):
        scores = X @ coef.T
        scores = np.hstack([np.zeros_like(scores), scores]) if k == 2 else scores
        log_loss = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
        values.append(objective(model, coef, log_loss))
    assert values[0] == pytest.approx(model.objective_, rel=1e-9)
    assert model.dual_objective_ <= values[1] + 1e-12
    assert model.dual_gap_ <= TOL


@pytest.mark.parametrize("emission", [True, "given", "both"])
@pytest.mark.parametrize("l1_ratio", [0.6, 1.0])
def test_chains_have_the_objective_of_the_docstring_and_exact_zeros(l1_ratio, emission):
    X, y = chains()
    scores = [new_rng(len(x)).normal(size=(len(x), 3)) for x in X]
    items = {True: X, "given": scores, "both": list(zip(X, scores, strict=True))}[
        emission
    ]
    structure = ChainStructure(emission=emission)
    model = fitted(items, y, structure, l1_ratio=l1_ratio, C=0.3)
    log_loss = -model.log_likelihood(items, y)
    assert model.objective_ == pytest.approx(objective(model, model.coef_, log_loss))
    assert model.dual_gap_ <= TOL
    assert emission is not True or model.solver_ == "dual"
    # A penalty ten times as large as any gradient at zero leaves nothing.
    assert not fitted(items, y, structure, l1_ratio=l1_ratio, C=1e-6).coef_.any()


def test_features_in_any_form_and_weights_as_repetitions_have_the_same_optimum():
    X, y = chains()
    X = [np.where(np.abs(x) > 0.7, x, 0.0).astype(np.float32) for x in X]
    dense = fitted([x.astype(np.float64) for x in X], y)
    single = fitted(X, y)
    assert single.coef_.tobytes() == dense.coef_.tobytes()
    assert_same_optimum(fitted([sparse.csr_matrix(x) for x in X], y), dense)
    assert_same_optimum(fitted(X, y, n_jobs=2), dense)
    rng = new_rng()
    rows, codes = raw_rows(rng, 40, 3), rng.integers(3, size=40)
    heavy = {0: 3, 1: 1, 2: 2}
    repeats = np.array([heavy[label] for label in codes])
    repeated = np.repeat(rows, repeats, axis=0), np.repeat(codes, repeats)
    for solver in ("auto", "newton"):
        model = fitted(rows, codes, solver=solver, class_weight=heavy)
        assert_same_optimum(model, fitted(*repeated, solver=solver))


@pytest.mark.parametrize("structure", ["chain", "multiclass"])
def test_quasi_newton_and_newton_steps_find_the_optimum_of_ascent(structure):
    if structure == "chain":
        X, y = chains()
    else:
        rng = new_rng()
        X, y = rng.normal(size=(50, 6)), rng.integers(3, size=50)
    weights = new_rng(1).uniform(0.0, 2.0, len(X)).round()
    weights[:3] = 1.0
    model = CRFClassifier(structure, warm_start=True, tol=TOL, random_state=0)
    for l1_ratio, solver in product((0.2, 0.9, 1.0), ("lbfgs", "newton")):
        if (l1_ratio, solver) == (1.0, "lbfgs"):
            continue
        cold = clone(model).set_params(C=0.1, l1_ratio=l1_ratio).fit(X, y, weights)
        # Each goes on where another has ended.
        for own in (solver, "dual", solver):
            model.set_params(C=0.1, l1_ratio=l1_ratio, solver=own).fit(X, y, weights)
            assert_same_optimum(model, cold)
            assert model.solver_ == own
        assert model.n_iter_ <= 1


def raw_rows(rng, n, d):
    """Columns far from zero, and of sizes from 1e-3 to 1e3."""
    X = rng.normal(size=(n, d)) + 30.0 * rng.normal(size=d)
    return X * 10.0 ** rng.uniform(-3, 3, d)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "l1_ratio"),
    [("binary", 0.5), ("multiclass", 1.0), ("multilabel", 0.5), ("multilabel", 1.0),
     ("wide", 0.5), ("wide", 1.0), ("sparse", 1.0), ("float32", 0.5)],
)  # fmt: skip
def test_the_default_call_certifies_raw_rows(kind, l1_ratio):
    rng = new_rng(len(kind))
    X = raw_rows(rng, 40, 60) if kind == "wide" else raw_rows(rng, 80, 6)
    y = rng.integers(2 if kind == "binary" else 3, size=len(X))
    structure = "auto"
    if kind == "multilabel":
        y, structure = rng.integers(2, size=(len(X), 3)), "multilabel"
    elif kind == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    elif kind == "float32":
        X = X.astype(np.float32)
    weights = rng.uniform(0.1, 2.0, len(y))
    params = {"l1_ratio": l1_ratio, "C": 10.0, "tol": 1e-3}
    model = placed(CRFClassifier)(structure, random_state=0, warm_start=True, **params)
    model.fit(X, y, sample_weight=weights)
    assert model.dual_gap_ <= 1e-3
    there = placed(CRFClassifier)(structure, solver="newton", **params)
    there.fit(X, y, sample_weight=weights)
    assert there.dual_gap_ <= 1e-3
    assert there.objective_ >= model.dual_objective_ - 1e-12
    assert model.objective_ >= there.dual_objective_ - 1e-12
    # It goes on where it has ended.
    assert model.fit(X, y, sample_weight=weights).n_iter_ <= 1


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_stuck_chains_go_on_with_another_solver(solver, monkeypatch):
    X, y = chains()
    there = fitted(X, y, C=0.1)
    assert there.solver_ == "dual"
    if solver == "lbfgs":
        monkeypatch.setattr(estimator, "has_written_hessian", lambda structure: False)
        monkeypatch.setattr(
            CRFClassifier, "_has_differenced_newton", lambda model, problem: False
        )
    for name in ("FIRST_FORECAST", "STUCK_AFTER"):
        monkeypatch.setattr(crf, name, 2)
    monkeypatch.setattr(crf, "SLOW_IF_LEFT", -1.0)
    monkeypatch.setattr(estimator, "PASSES_PER_WEIGHT", 0.0)
    options = {"gap_check_interval": 1, "warm_start": True, "tol": 1e-7}
    model = fitted(X, y, C=0.1, **options)
    assert model.solver_ == solver
    methods = model.history_["method"].tolist()
    name = {"newton": "newton", "lbfgs": "owlqn"}[solver]
    assert methods == ["start"] + 2 * ["accelerated"] + (len(methods) - 3) * [name]
    assert model.dual_gap_ <= 1e-7
    assert_same_optimum(model, there)
    log_loss = -model.log_likelihood(X, y)
    assert model.objective_ == pytest.approx(objective(model, model.coef_, log_loss))
    # It goes on where it has ended.
    assert model.fit(X, y).n_iter_ <= 1
    assert model.solver_ == solver


@pytest.mark.parametrize("stops", ["stalls", "makes no progress"])
def test_ascent_goes_on_where_newton_does_not(stops, monkeypatch):
    X, y = chains()
    there = fitted(X, y, C=0.1)
    moves = []
    monkeypatch.setattr(crf, "FIRST_FORECAST", 2)
    monkeypatch.setattr(crf, "SLOW_IF_LEFT", -1.0)
    monkeypatch.setattr(estimator, "PASSES_PER_WEIGHT", 0.0)

    def move(self, deadline):
        moves.append(deadline)
        return stops != "stalls"

    monkeypatch.setattr(estimator.ChainNewtonSteps, "move", move)
    options = {"gap_check_interval": 1, "warm_start": True}
    model = fitted(X, y, C=0.1, **options)
    assert 1 <= len(moves) <= 4
    assert model.solver_ == "dual"
    methods = model.history_["method"]
    assert np.count_nonzero(methods == "newton") == len(moves)
    assert methods[0] == "start" and methods[-1] == "accelerated"
    assert_same_optimum(model, there)
    assert (np.diff(model.history_["n_oracle_calls"]) >= 0).all()
    assert (np.diff(model.history_["objective"]) <= 1e-12).all()
    assert (np.diff(model.history_["dual_objective"]) >= -1e-12).all()
    assert model.fit(X, y).n_iter_ <= 1


def test_parts_on_a_cluster_find_the_same_optimum():
    bag = pytest.importorskip("dask.bag")
    X, y = chains()
    here = fitted(X, y, "chain", C=0.1, solver="lbfgs")
    parts = (bag.from_sequence(of, npartitions=2) for of in (X, y))
    there = fitted(*parts, "chain", C=0.1)
    assert_same_optimum(there, here)
    parts = (bag.from_sequence(of, npartitions=2) for of in (X, y))
    with pytest.raises(ValueError, match=r"l1_ratio=1.0 needs data in memory"):
        fitted(*parts, "chain", l1_ratio=1.0)


@pytest.mark.parametrize("model", [CRFClassifier(), BCFWClassifier(max_iter=5000)])
def test_a_warm_start_goes_on_at_another_penalty(model):
    X, y = chains()
    model = clone(model).set_params(warm_start=True, tol=1e-3, random_state=0)
    most = 0.99 if isinstance(model, BCFWClassifier) else 1.0
    for C, l1_ratio in ((0.1, 0.0), (0.1, 0.5), (0.3, most), (0.2, 0.9), (0.2, 0.0)):
        n_iter = model.set_params(C=C, l1_ratio=l1_ratio).fit(X, y).n_iter_
        assert_same_optimum(model, clone(model).fit(X, y))
        # Of margins, the best weights and the best bound may be of two passes.
        few = n_iter // 4 if isinstance(model, BCFWClassifier) else 0
        assert model.fit(X, y).n_iter_ <= max(few, 1)


@pytest.mark.parametrize("step", ["fw", "pairwise", "away", "corrective"])
def test_all_block_steps_reach_the_same_optimum_of_margins(step):
    X, y = chains()
    options = {"l1_ratio": 0.5, "C": 0.2, "tol": 1e-3, "random_state": 0}
    model = placed(BCFWClassifier)(**options).fit(X, y)
    options |= {"step": step, "max_iter": 5000}
    for more in ({}, {"acceleration": False}, {"sampling": "gap"}, {"n_jobs": 2}):
        if step == "corrective" or "n_jobs" not in more:
            other = placed(BCFWClassifier)(**options, **more).fit(X, y)
            assert_same_optimum(other, model)
    # A penalty above all gradients leaves nothing.
    assert not model.set_params(C=1e-6).fit(X, y).coef_.any()


def test_ratios_that_are_none_too_many_weights_and_lost_labels_are_refused():
    X, y = chains()
    for l1_ratio, cls in product((1.5, -0.1), (CRFClassifier, BCFWClassifier)):
        with pytest.raises(ValueError, match="l1_ratio"):
            cls(l1_ratio=l1_ratio).fit(X, y)
    with pytest.raises(ValueError, match="l1_ratio"):
        BCFWClassifier(l1_ratio=1.0).fit(X, y)
    with pytest.raises(ValueError, match="at most 2048 weights"):
        fitted([np.tile(x, 150) for x in X], y, "chain", solver="newton")
    lost = [[None, *labels[1:]] for labels in y]
    with pytest.raises(ValueError, match="cannot learn from them: use l1_ratio=0"):
        BCFWClassifier("chain", l1_ratio=0.5).fit(X, lost)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "l1_ratio", "unit", "C"),
    [("rows", 0.5, 1.7e9, 100.0), ("rows", 0.99, 1.7e12, 1.0),
     ("chains", 0.5, 1.7e12, 1.0), ("chains", 0.99, 1.7e9, 100.0)],
)  # fmt: skip
def test_rounding_of_a_huge_first_objective_is_no_bound(unit, C, kind, l1_ratio):
    for k in range(2):
        rng = new_rng(k)
        y = rng.integers(0, 2, 200)
        times = unit * (1.0 - 1e-3 * rng.random(200))
        X = np.c_[times, y + rng.standard_normal(200)]
        if kind == "chains":
            X, y = list(X.reshape(50, 4, 2)), list(y.reshape(50, 4))
        model = fitted(X, y, tol=1e-3, C=C, l1_ratio=l1_ratio, max_iter=150)
        # Of each label, at weights of zero.
        seen = min(model.objective_, np.log(2.0) * (4.0 if kind == "chains" else 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = fitted(X, y, C=C, l1_ratio=l1_ratio, solver="newton", max_iter=50)
        assert 0.0 < model.dual_gap_ < np.inf
        assert model.dual_objective_ <= min(seen, other.objective_)
        assert other.dual_objective_ <= model.objective_
