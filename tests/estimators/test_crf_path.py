"""crf_path: certificates, where the first weight enters, weights of examples, misuse."""

import numpy as np
import pytest
from _estimators import make_problem
from _options import placed
from _seeds import new_rng
from _structures import data_of
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import l1_min_c

from sklearn_structsvm import CRFClassifier, crf_path
from sklearn_structsvm.structures import (
    MISSING,
    ChainStructure,
    PairwiseMultilabelStructure,
)

TOL = 1e-3
# What sums of rounding errors in an objective are below.
ROUNDING = 1e-12
KINDS = ["binary", "multiclass", "multilabel-csr", "chain", "chain-csr", "tree"]


def path_of(kind, **params):
    structure, X, y = data_of(kind)
    params = {"tol": TOL, "random_state": 0, "max_iter": 10**4} | params
    return placed(crf_path)(X, y, structure=structure, **params)


def with_weights(model, path, j):
    """A fitted model with the weights of a path."""
    coef = path.coefs[[j]]
    coef = coef.toarray() if sparse.issparse(coef) else coef
    model.coef_ = coef.reshape(np.shape(model.coef_))
    if path.intercepts is not None:
        model.intercept_ = path.intercepts[j]
    return model


def objective(model, X, y):
    """As the docstring of CRFClassifier has it, over C times the number of examples."""
    w = np.append(model.coef_, getattr(model, "intercept_", []))
    rho = model.l1_ratio
    penalty = rho * np.abs(w).sum() + 0.5 * (1.0 - rho) * w @ w
    return penalty / (model.C * len(y)) - np.mean(model.log_likelihood(X, y))


# What holds of the fits beside it holds if one is cut short, too.
@pytest.mark.filterwarnings("ignore:Dual ascent stopped")
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_each_point_is_certified_and_agrees_with_a_fit_that_starts_anew(kind, l1_ratio):
    structure, X, y = data_of(kind)
    path = path_of(kind, Cs=3, l1_ratio=l1_ratio)
    assert sparse.issparse(path.coefs) == (l1_ratio > 0.0)
    assert len(path.coefs.shape) == 2
    assert (path.dual_gaps <= TOL).all()
    assert (np.diff(path.Cs) > 0.0).all()
    for j, C in enumerate(path.Cs):
        model = CRFClassifier(
            structure, C=C, l1_ratio=l1_ratio, tol=TOL / 10, random_state=1,
            max_iter=10**4,
        ).fit(X, y)  # fmt: skip
        found = path.objectives[j]
        assert found - path.dual_gaps[j] <= model.objective_ + ROUNDING
        assert model.dual_objective_ <= found + ROUNDING
        n_nonzeros = np.count_nonzero(with_weights(model, path, j).coef_)
        n_nonzeros += np.count_nonzero(getattr(model, "intercept_", 0.0))
        assert n_nonzeros == path.n_nonzeros[j]
        assert objective(model, X, y) == pytest.approx(found, rel=1e-9)


def largest_sizes(X):
    """Sums of the absolute features of an item, and of the constant feature."""
    items = X if isinstance(X, list) else X[:, np.newaxis]
    items = [item[0] if isinstance(item, tuple) else item for item in items]
    return max(max(len(x), np.abs(x).sum(axis=0).max()) for x in items)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain", "tree"])
def test_all_weights_are_zero_up_to_the_first_c_and_not_beyond(kind, l1_ratio):
    _, X, y = data_of(kind)
    first = path_of(kind, Cs=2, l1_ratio=l1_ratio).Cs[0]
    # The variance of a feature within [a, b] is at most (b - a)²/4. A weight whose
    # gradient at zero is g then decreases the objective by (|g| - ρ λ)² / (2 curvature).
    lam = 1.0 / (4.0 * first * len(y))
    curvature = largest_sizes(X) ** 2 / 4.0 + (1.0 - l1_ratio) * lam
    decrease = (3.0 * l1_ratio * lam) ** 2 / (2.0 * curvature)
    path = path_of(
        kind, Cs=[4.0 * first, first, 0.1 * first], l1_ratio=l1_ratio, tol=decrease / 2.0
    )
    np.testing.assert_array_equal(path.Cs, [0.1 * first, first, 4.0 * first])
    np.testing.assert_array_equal(path.n_nonzeros[:2], 0)
    np.testing.assert_array_equal(path.n_iter[:2], 0)
    assert np.abs(path.dual_gaps[:2]).max() <= ROUNDING
    assert path.dual_gaps[2] <= decrease / 2.0
    assert path.n_nonzeros[2] > 0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_for_two_classes_the_first_c_is_that_of_scikit_learn(fit_intercept):
    rng = new_rng()
    X, y = rng.normal(size=(30, 4)), rng.integers(2, size=30)
    y[:2] = 0, 1
    bias = {"fit_intercept": fit_intercept, "intercept_scaling": 3.0}
    path = placed(crf_path)(X, y, Cs=2, l1_ratio=1.0, random_state=0, **bias)
    assert path.Cs[0] == pytest.approx(l1_min_c(X, y, loss="log", **bias))
    assert path.Cs[1] == pytest.approx(1000.0 * path.Cs[0])
    assert fit_intercept or not path.intercepts.any()


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_weights_of_examples_count_them(kind):
    problem = make_problem(kind, n=20)
    weights = new_rng(5).permutation(np.arange(20) % 3)
    options = {"structure": problem.structure, "Cs": 3, "l1_ratio": 0.7}
    options["random_state"] = 0
    options["classes"] = np.unique(np.concatenate([*map(np.atleast_1d, problem.y)]))
    weighted = placed(crf_path)(problem.X, problem.y, sample_weight=weights, **options)
    X, y = problem.take(np.repeat(np.arange(20), weights))
    repeated = placed(crf_path)(X, y, **options)
    np.testing.assert_allclose(weighted.Cs, repeated.Cs)
    np.testing.assert_allclose(
        weighted.objectives, repeated.objectives, rtol=0.0, atol=TOL + ROUNDING
    )


def test_zeros_are_a_path_without_use_and_fits_that_are_cut_short_are_told_once():
    X = [np.zeros((3, 2)), np.zeros((3, 2))]
    y = [["a", "a", "b"], ["b", "b", "a"]]
    structure = ChainStructure(
        bias=False, first_bias=False, last_bias=False, transition=False
    )
    path = crf_path(X, y, structure=structure, Cs=3, l1_ratio=1.0)
    np.testing.assert_allclose(path.Cs, np.geomspace(1e-3, 1e2, 3))
    np.testing.assert_array_equal(path.n_nonzeros, 0)
    np.testing.assert_allclose(path.objectives, 3.0 * np.log(2.0))
    problem = make_problem("chain")
    with pytest.warns(ConvergenceWarning, match="of 3 fits ended with a duality") as told:
        path = crf_path(
            problem.X, problem.y, Cs=[0.1, 1.0, 10.0], tol=1e-9, max_iter=1,
            random_state=0,
        )  # fmt: skip
    assert len(told) == 1
    assert path.dual_gaps.max() > 1e-9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": 1}, "The 'Cs' parameter of crf_path must be"),
        ({"Cs": [0.1, 0.0]}, "Cs must be positive, finite numbers"),
        ({"Cs": []}, "Cs must be positive, finite numbers"),
        ({"l1_ratio": 1.5}, "The 'l1_ratio' parameter of crf_path must be"),
        ({"l1_ratio": 1.0, "solver": "lbfgs"}, "l1_ratio=0.99"),
        ({"structure": PairwiseMultilabelStructure()}, "needs a structure that can sum"),
    ],
)
def test_parameters_are_refused_before_data_are_read(params, message):
    with pytest.raises(ValueError, match=message):
        placed(crf_path)(None, None, **params)


def test_data_that_make_no_path_are_refused_and_hidden_labels_are_procedures():
    problem = make_problem("chain")
    labels = [[MISSING, *labels[1:]] for labels in problem.y[:-4]] + problem.y[-4:]
    path = crf_path(problem.X, labels, structure="chain", Cs=[0.1, 1.0], random_state=0)
    model = CRFClassifier("chain", random_state=0, warm_start=True)
    for i, C in enumerate(path.Cs):
        model.set_params(C=C).fit(problem.X, labels)
        np.testing.assert_array_equal(path.coefs[i], model.coef_)
        assert path.dual_gaps[i] == model.dual_gap_ <= model.tol
    with pytest.raises(ValueError, match="unknown labels.*use l1_ratio=0"):
        crf_path(problem.X, labels, structure="chain", l1_ratio=1.0)
    with pytest.raises(ValueError, match="label_costs must have shape"):
        crf_path(problem.X, problem.y, label_costs=[[0.0]], l1_ratio=1.0)
    with pytest.raises(ValueError, match="solver='newton' requires"):
        path_of("tree", solver="newton")
    with pytest.raises(ValueError, match="C=1e\\+160 is too large"):
        crf_path(problem.X, problem.y, Cs=[1.0, 1e160])
    # Graphs have a path of bounds, without an L1 penalty.
    path = path_of("cycles", Cs=3)
    assert (path.dual_gaps <= TOL).all() and path.intercepts is None
    with pytest.raises(ValueError, match="l1_ratio=0"):
        path_of("cycles", l1_ratio=1.0)
