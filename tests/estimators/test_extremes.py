"""Data and parameters at the ends of their ranges."""

import warnings

import numpy as np
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
from _mixtures import no_complaint_of_convergence
from _problems import solve_listed
from _references import list_chains
from _seeds import new_seed
from _structures import data_of
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

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
def test_features_of_zero_leave_what_biases_can_do(make_problem, kind):
    problem = make_problem(kind)
    model = problem.estimator().fit(features(problem, lambda x: 0 * x), problem.y)
    assert model.dual_gap_ <= 1e-3
    if kind in FLAT:
        np.testing.assert_array_equal(model.coef_, 0)
    model.predict(problem.X)


def off_by_one_byte(x):
    """The same numbers where no processor would put them, but Dask and files may."""
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


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_it_makes_no_difference_where_numbers_lie(make_problem, kind):
    problem = make_problem(kind)
    X, weights = features(problem, off_by_one_byte), off_by_one_byte(np.ones(problem.n))
    model = problem.estimator(random_state=0).fit(X, problem.y, sample_weight=weights)
    same = problem.estimator(random_state=0).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    expected = same.predict(problem.X)
    same.coef_ = off_by_one_byte(same.coef_)
    for found in (model.predict(X), same.predict(problem.X)):
        for labels, before in zip(found, expected, strict=True):
            np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize("kind", ["cycles", "tree"])
def test_it_makes_no_difference_where_edges_lie(kind):
    structure, X, y = data_of(kind)
    moved = [tuple(map(off_by_one_byte, x)) for x in X]
    models = [
        BCFWClassifier(structure, max_iter=2, random_state=0, tol=1.0).fit(own, y)
        for own in (X, moved)
    ]
    np.testing.assert_array_equal(*(model.coef_ for model in models))
    for labels, same in zip(models[0].predict(moved), models[1].predict(X), strict=True):
        np.testing.assert_array_equal(labels, same)


@pytest.mark.parametrize(
    "model", [BMRMClassifier(), PragamClassifier(), SubLBFGSClassifier()], ids=str
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_it_makes_no_difference_where_numbers_of_a_matrix_lie(model, form):
    X, y = make_classification(random_state=new_seed())
    model = model.fit(off_by_one_byte(form(X)), y, off_by_one_byte(np.ones(len(X))))
    same = clone(model).fit(form(X), y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


@for_each_estimator
def test_without_features_and_biases_the_objective_is_the_largest_loss(make_problem):
    problem = make_problem("custom")
    model = problem.estimator().fit(features(problem, lambda x: 0 * x), problem.y)
    np.testing.assert_array_equal(model.coef_, 0)
    # A structure in Python may round h otherwise than a search does, which allows 1e-14.
    assert model.objective_ == pytest.approx(1.0, rel=1e-13)
    assert abs(model.dual_gap_) <= 1e-13


@for_each_estimator
@pytest.mark.parametrize("kind", FLAT)
def test_a_constant_feature_is_one_more_intercept(make_problem, kind):
    problem = make_problem(kind)
    X = np.hstack([problem.X, np.ones((problem.n, 1))])
    model = problem.estimator().fit(X, problem.y)
    np.testing.assert_allclose(model.coef_[:, -1], model.intercept_, atol=1e-12)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_c_leaves_tiny_weights(make_problem, kind):
    model = make_problem(kind).fitted(C=1e-8)
    assert 0 < np.abs(model.coef_).max() < 1e-5
    assert -1e-14 <= model.dual_gap_ <= 1e-3


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("step", "acceleration"),
    [*((s, False) for s in ("fw", "pairwise", "away", "corrective")), ("pairwise", True)],
)
def test_a_huge_c_still_ends_with_finite_numbers_and_a_certificate(
    make_problem, kind, step, acceleration
):
    problem = make_problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = problem.fitted(C=1e8, step=step, acceleration=acceleration, max_iter=30)
    history = model.history_
    assert np.isfinite(model.coef_).all() and np.isfinite(history["objective"]).all()
    scale = 1.0 + np.abs(history["objective"])
    assert (history["dual_gap"] >= -1e-12 * scale).all()
    # Rounding may cost the dual a little of what the weights' scale is. That of the
    # accelerated problem grows, not that of the problem itself.
    growth = np.diff(history["dual_objective"])
    assert acceleration or (growth >= -1e-9 * scale[1:]).all()


@for_each_estimator
def test_the_gap_of_a_huge_c_is_primal_minus_dual(make_problem):
    problem = make_problem("binary")
    with no_complaint_of_convergence():
        model = problem.fitted(C=1e8, max_iter=30)
    scores = (problem.X @ model.coef_.T + model.intercept_)[:, 0]
    losses = np.maximum(0, 1 - np.where(problem.y == 1, 1, -1) * scores)
    squares = (model.coef_**2).sum() + (model.intercept_**2).sum()
    primal = squares / (2 * 1e8 * problem.n) + losses.mean()
    assert abs(model.objective_ - primal) <= 1e-9 * max(1.0, primal)


@pytest.mark.parametrize("T", [1, 2, 7])
def test_a_single_sequence_is_enough(T):
    X, y = make_chains(
        1, n_features=3, n_classes=2, min_length=T, max_length=T, random_state=new_seed(0)
    )
    model = BCFWClassifier(
        ChainStructure(), solver_options={"classes": [0, 1]}, random_state=0
    ).fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert [len(labels) for labels in model.predict(X)] == [T]


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
    X, y = make_chains(
        1,
        n_features=4,
        n_classes=3,
        min_length=5000,
        max_length=5000,
        random_state=new_seed(0),
    )
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


@for_each_estimator
@pytest.mark.parametrize("acceleration", [False, True])
def test_features_of_very_different_scales_end_with_a_certificate(
    make_problem, acceleration
):
    problem = make_problem("chain")
    scales = 10.0 ** np.arange(-6, 4, 2)
    X = [x * scales for x in problem.X]
    listed = list_chains(X, problem.y, 3)
    if problem.model is SlackRescaledSSVM:
        listed = listed.slack_rescaled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = problem.estimator(acceleration=acceleration, max_iter=300)
        model.fit(X, problem.y)
    assert model.objective_ == pytest.approx(
        listed.primal(model.coef_, 1.0 / problem.n), rel=1e-12
    )
    upper, lower = solve_listed(listed, 1.0 / problem.n)
    assert model.dual_objective_ <= upper and lower <= model.objective_
    assert abs(model.objective_ - model.dual_objective_ - model.dual_gap_) <= 1e-12
    # That of the accelerated problem grows, not that of the problem itself.
    growth = np.diff(model.history_["dual_objective"])
    assert acceleration or (growth.min() >= -1e-12 and growth[0] > 0)


@for_each_estimator
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
def test_an_example_may_outweigh_all_others(make_problem, C):
    problem = make_problem("binary")
    weights = np.full(problem.n, 1e-12)
    weights[0], weights[1] = 1.0, 1e12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = problem.estimator(C=C, max_iter=30).fit(problem.X, problem.y, weights)
    assert np.isfinite(model.coef_).all()
    assert model.dual_gap_ >= -1e-12 * (1 + abs(model.objective_))


@for_each_estimator
@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_a_lambda_that_overflows_is_refused(make_problem, kind):
    problem = make_problem(kind)
    with pytest.raises(ValueError, match=r"C=1e-310 times .* is too small"):
        problem.fitted(C=1e-310)
    smallest = np.full(problem.n, 5e-324)
    with pytest.raises(ValueError, match="C=.* times the sum of the weights.*too small"):
        problem.estimator().fit(problem.X, problem.y, sample_weight=smallest)


@pytest.mark.parametrize("cls", [SubLBFGSClassifier, BMRMClassifier, PragamClassifier])
def test_batch_classifiers_refuse_it_as_well(cls):
    with pytest.raises(ValueError, match=r"C=1e-310 times .* is too small"):
        cls(C=1e-310).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [-1e160, 1e200, 1e300])
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


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("name", FITS_TO_ROWS)
def test_values_that_are_assumed_to_be_finite_and_are_not_are_named(name, value, layout):
    X, y = make_classification(random_state=new_seed(0))
    X[7, 2] = value
    message = f"X contains NaN or infinity: the value {abs(value)} was found"
    with config_context(assume_finite=True), pytest.raises(ValueError, match=message):
        FITS_TO_ROWS[name](layout(X), y)
    chains = [layout(x) for x in np.split(X, 5)], np.split(y, 5)
    with config_context(assume_finite=True):
        with pytest.raises(ValueError, match=rf"X\[0\] contains NaN or .* {value} was"):
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


@pytest.mark.parametrize("cls", [BCFWClassifierCV, CRFClassifierCV])
def test_so_is_one_among_others_before_any_fold(cls):
    X, y = make_chains(12, random_state=new_seed(0))
    with pytest.raises(ValueError, match=r"C=1e\+300 is too large"):
        cls(Cs=[1e300, 1.0], cv=[]).fit(X, y)


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


@pytest.mark.parametrize(
    "cls", [BCFWClassifier, SlackRescaledSSVM, BMRMClassifier, PragamClassifier]
)
def test_no_examples_are_refused_by_name(cls):
    with pytest.raises(ValueError, match="X is empty"):
        cls().fit([], [])


def test_a_series_of_arrays_is_a_list_of_sequences():
    pd = pytest.importorskip("pandas")
    X, y = make_chains(12, random_state=new_seed(0))
    model = BCFWClassifier(C=0.1, random_state=0)
    expected = clone(model).fit(X, y).coef_
    model.fit(pd.Series(list(X)), pd.Series(list(y)))
    np.testing.assert_array_equal(model.coef_, expected)
