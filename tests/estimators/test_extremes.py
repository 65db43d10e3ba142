"""Data and parameters at the ends of their ranges."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from _estimators import (
    ACCURATE,
    FLAT,
    KINDS,
    assert_same_optimum,
    distance,
    for_each_estimator,
    however_near,
)
from _seeds import new_seed
from _structures import ALL, data_of
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
    crf_path,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import ChainStructure

for_each_structured = pytest.mark.parametrize(
    "cls",
    [BCFWClassifier, SlackRescaledSSVM, CRFClassifier, BMRMClassifier, PragamClassifier],
)


def features(problem, change):
    X = problem.X
    return [change(x) for x in X] if isinstance(X, list) else change(X)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_features_of_zero_leave_what_biases_can_do_and_a_tiny_c_tiny_weights(
    make_problem, kind
):
    problem = make_problem(kind)
    model = problem.estimator().fit(features(problem, lambda x: 0 * x), problem.y)
    assert model.dual_gap_ <= 1e-3
    if kind in FLAT:
        np.testing.assert_array_equal(model.coef_, 0)
    if kind == "custom":
        # Without biases, the largest loss is the objective. A structure in Python may
        # round h otherwise than a search does, which allows 1e-14.
        np.testing.assert_array_equal(model.coef_, 0)
        assert model.objective_ == pytest.approx(1.0, rel=1e-13)
        assert abs(model.dual_gap_) <= 1e-13
    model.predict(problem.X)
    model = problem.fitted(C=1e-8)
    assert 0 < np.abs(model.coef_).max() < 1e-5
    assert -1e-14 <= model.dual_gap_ <= 1e-3


def off_by_one_byte(x):
    """The same numbers where no processor would put them, but Dask and files may."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(off_by_one_byte, x))
    if sparse.issparse(x):
        x = x.copy()
        for part in ("data", "indices", "indptr"):
            setattr(x, part, off_by_one_byte(getattr(x, part)))
        return x
    x = np.asarray(x)
    copy = np.zeros(x.nbytes + 1, dtype=np.uint8)[1:].view(x.dtype).reshape(x.shape)
    copy[...] = x
    assert x.nbytes == 0 or not copy.flags.aligned
    return copy


ROWS = [BMRMClassifier(), PragamClassifier(), SubLBFGSClassifier()]


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        *product(ALL, [BCFWClassifier()]),
        *product(KINDS[:-1], [SlackRescaledSSVM()]),
        *product(["binary", "multilabel-csr"], ROWS),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_makes_no_difference_where_numbers_lie(kind, model):
    structure, X, y = data_of(kind)
    if "structure" in model.get_params() and model not in ROWS:
        model = clone(model).set_params(structure=structure, random_state=0)
    model = clone(model).set_params(max_iter=2)
    weights = np.ones(len(y))
    same = clone(model).fit(X, y, sample_weight=weights)
    X, moved = off_by_one_byte(X), X
    model.fit(X, y, sample_weight=off_by_one_byte(weights))
    np.testing.assert_array_equal(model.coef_, same.coef_)
    expected = same.predict(moved)
    same.coef_ = off_by_one_byte(same.coef_)
    for found in (model.predict(X), same.predict(moved)):
        for labels, before in zip(found, expected, strict=True):
            np.testing.assert_array_equal(labels, before)


STEPS = ("fw", "pairwise", "away", "corrective")


# What a structure does to a step shows with two of them.
@for_each_estimator
@pytest.mark.parametrize(
    ("kind", "step", "acceleration", "C", "first_weights"),
    [*((kind, "pairwise", True, 1e8, [1.0, 1.0]) for kind in KINDS),
     *((kind, own, False, 1e8, [1.0, 1.0]) for kind in ("chain", "custom")
       for own in STEPS),
     *(("binary", own, False, 1.0, [1e12, 1e24]) for own in STEPS),
     *(("binary", "pairwise", True, C, [1e12, 1e24]) for C in (1e-8, 1.0, 1e8))],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_huge_c_or_weight_still_ends_with_finite_numbers_and_a_certificate(
    make_problem, kind, step, acceleration, C, first_weights
):
    problem = make_problem(kind)
    weights = np.append(first_weights, np.ones(problem.n - 2)) / first_weights[0]
    options = {"step": step, "acceleration": acceleration, "max_iter": 30}
    model = problem.estimator(C=C, **options).fit(problem.X, problem.y, weights)
    history = model.history_
    assert np.isfinite(model.coef_).all() and np.isfinite(history["objective"]).all()
    scale = 1.0 + np.abs(history["objective"])
    assert (history["dual_gap"] >= -1e-12 * scale).all()
    # Rounding may cost the dual a little of what the weights' scale is. That of the
    # accelerated problem grows, not that of the problem itself.
    growth = np.diff(history["dual_objective"])
    assert acceleration or (growth >= -1e-9 * scale[1:]).all()


@however_near
@for_each_estimator
def test_sequences_of_one_position_are_a_multiclass_problem(make_problem):
    """Of the three biases, one constant feature of length sqrt(3) is left."""
    problem = make_problem("multiclass", n=30)
    flat = problem.fitted(intercept_scaling=np.sqrt(3), **ACCURATE)
    X, y = list(problem.X[:, np.newaxis]), list(problem.y[:, np.newaxis])
    chain = problem.estimator(structure=ChainStructure(), **ACCURATE).fit(X, y)
    emission = chain.coef_[:12].reshape(4, 3)
    assert_same_optimum(chain, flat, problem.n, weights=(emission.T, flat.coef_))
    np.testing.assert_array_equal(chain.coef_[-9:], 0)
    # Each of two scores is as near as the weights.
    scores, taken = flat.decision_function(problem.X), np.concatenate(chain.predict(X))
    behind = scores.max(axis=1) - scores[np.arange(30), taken]
    lengths = np.sqrt(np.square(problem.X).sum(axis=1) + 3.0)
    assert (behind <= 2.0 * distance(chain, flat, problem.n) * lengths).all()


def test_a_very_long_sequence_is_one_example_among_others():
    options = {"n_features": 4, "n_classes": 3, "random_state": new_seed(0)}
    X, y = make_chains(1, min_length=5000, max_length=5000, **options)
    others = make_chains(5, n_features=4, n_classes=3, random_state=new_seed(1))
    X, y = X + others[0], y + others[1]
    model = BCFWClassifier(
        ChainStructure(), C=1e-3, tol=0.05, step="fw", solver_options={"cache": False}
    ).fit(X, y)
    assert model.dual_gap_ <= 0.05
    assert model.predict(X)[0].shape == (5000,)
    marginals = model.max_marginals(X[:1])[0]
    best = model.predict_k_best(X[:1], k=2)[1][0]
    np.testing.assert_allclose(marginals.max(axis=1), best[0], rtol=1e-9)


@pytest.mark.parametrize(
    "cls", [BCFWClassifier, BMRMClassifier, PragamClassifier, SlackRescaledSSVM,
            SubLBFGSClassifier]
)  # fmt: skip
def test_a_lambda_that_overflows_is_refused(cls):
    X, y = make_chains(12, n_classes=2, random_state=new_seed(0))
    rows, labels = np.concatenate(X), np.concatenate(y)
    data = [(rows, labels), (X, y)][: 1 if cls is SubLBFGSClassifier else 2]
    for own in data:
        with pytest.raises(ValueError, match=r"C=1e-311 times .* is too small"):
            cls(C=1e-311).fit(*own)
        smallest = np.full(len(own[1]), 5e-324)
        words = "C=.* times the sum of the weights.*too small"
        with pytest.raises(ValueError, match=words):
            cls().fit(*own, sample_weight=smallest)


@pytest.mark.parametrize(
    ("scale", "layout"),
    [(-1e160, np.asarray), (1e200, sparse.csr_array), (1e300, np.asarray)],
)
@for_each_structured
def test_features_whose_squares_overflow_are_refused(cls, scale, layout):
    X, y = make_chains(12, random_state=new_seed(0))
    words = r"X has features as large as .* squares overflow. Scale them down"
    with pytest.raises(ValueError, match=words):
        cls().fit([layout(scale * x) for x in X], y)
    rows, labels = layout(scale * np.concatenate(X)), np.concatenate(y)
    with pytest.raises(ValueError, match=words):
        cls().fit(rows, labels)
    with pytest.raises(ValueError, match=words):
        bcfw_path(rows, labels)


FITS_TO_ROWS = {
    "bcfw": BCFWClassifier().fit,
    "pairwise": BCFWClassifier(step="pairwise").fit,
    "cutting planes": BCFWClassifier(solver_options={"algorithm": "batch"}).fit,
    "bcfw cv": BCFWClassifierCV(Cs=2).fit, "bcfw path": bcfw_path,
    "bmrm": BMRMClassifier().fit, "crf": CRFClassifier().fit,
    "crf cv": CRFClassifierCV(Cs=2).fit, "crf path": crf_path,
    "l1": SubLBFGSClassifier(penalty="l1").fit,
    "newton": CRFClassifier(solver="newton").fit, "pragam": PragamClassifier().fit,
    "ranking": SubLBFGSClassifier(loss="roc_auc").fit, "slack": SlackRescaledSSVM().fit,
    "sublbfgs": SubLBFGSClassifier().fit,
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "layout"), [(np.nan, np.asarray), (-np.inf, sparse.csr_array)]
)
@pytest.mark.parametrize("name", FITS_TO_ROWS)
def test_values_that_are_assumed_to_be_finite_and_are_not_are_named(name, value, layout):
    X, y = make_classification(random_state=new_seed(0))
    X[7, 2] = value
    message = f"X contains NaN or infinity: the value {abs(value)} was found"
    with config_context(assume_finite=True), pytest.raises(ValueError, match=message):
        FITS_TO_ROWS[name](layout(X), y)
    if name == "bcfw":
        chains = [layout(x) for x in np.split(X, 5)], np.split(y, 5)
        with config_context(assume_finite=True):
            with pytest.raises(
                ValueError, match=rf"X\[0\] contains NaN or .* {value} was"
            ):
                BCFWClassifier().fit(*chains)


@pytest.mark.parametrize("scaling", [1e160, 1e308])
@for_each_structured
def test_a_bias_whose_square_overflows_is_not_blamed_on_the_features(cls, scaling):
    X, y = make_chains(12, random_state=new_seed(0))
    with pytest.raises(ValueError, match="^intercept_scaling=.* is too large"):
        cls(solver_options={"intercept_scaling": scaling}).fit(
            np.concatenate(X), np.concatenate(y)
        )


@pytest.mark.parametrize("C", [1e160, 1e300])
@for_each_structured
def test_a_c_whose_weights_overflow_is_refused(cls, C):
    X, y = make_chains(12, random_state=new_seed(0))
    words = r"C=1e\+\d+ is too large for features as large as .*try a smaller C"
    for data in ((X, y), (np.concatenate(X), np.concatenate(y))):
        with pytest.raises(ValueError, match=words):
            cls(C=C).fit(*data)
    if cls in (BCFWClassifier, CRFClassifier):
        search = {BCFWClassifier: BCFWClassifierCV, CRFClassifier: CRFClassifierCV}[cls]
        with pytest.raises(ValueError, match=r"C=1e\+\d+ is too large"):
            # Before any fold.
            search(Cs=[C, 1.0], cv=[]).fit(X, y)


def test_features_of_edges_and_parts_may_overflow_too():
    words = "X has features as large as 1e\\+160"
    node, edges = np.ones((2, 1)), np.array([[0, 1]])
    X = [(node, edges, np.array([[value]])) for value in (1.0, 1e160)]
    with pytest.raises(ValueError, match=words):
        BCFWClassifier("graph").fit(X, [[0, 1], [1, 0]])


@pytest.mark.parametrize("cls", [BCFWClassifier, SlackRescaledSSVM])
def test_weights_of_zero_for_all_classes_are_refused(cls):
    X, y = make_chains(12, random_state=new_seed(0))
    zero = dict.fromkeys(np.unique(np.concatenate(y)).tolist(), 0)
    for data in ((X, y), (np.concatenate(X), np.concatenate(y))):
        with pytest.raises(ValueError, match="class_weight must not be zero for every"):
            cls(class_weight=zero).fit(*data)


def test_a_series_of_arrays_is_a_list_of_sequences():
    X, y = make_chains(12, random_state=new_seed(0))
    model = BCFWClassifier(C=0.1, random_state=0)
    expected = clone(model).fit(X, y).coef_
    model.fit(pd.Series(list(X)), pd.Series(list(y)))
    np.testing.assert_array_equal(model.coef_, expected)
