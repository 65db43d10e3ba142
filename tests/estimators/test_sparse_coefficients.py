"""`sparsify`: the same model, whose weights take the room of those that are not zero."""

import pickle

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng, new_seed
from _structures import ALL, data_of
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SequenceTransformer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OF_ROWS = (BMRMClassifier, PragamClassifier, SlackRescaledSSVM, SubLBFGSClassifier)


def equal(a, b):
    return len(a) == len(b) and all(
        np.array_equal(u, v) for u, v in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("kind", ALL)
def test_a_sparse_model_predicts_the_same(kind):
    structure, X, y = data_of(kind)
    model = BCFWClassifier(structure, max_iter=2, random_state=0).fit(X, y)
    before, weights = model.predict(X), model.coef_.copy()
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_)
    again = pickle.loads(pickle.dumps(model))
    assert equal(again.predict(X), before)
    assert again.score(X, y) == model.score(X, y)
    if hasattr(model.structure_, "weight_parts"):
        parts = model.structure_.weight_parts(model.coef_)
        dense = model.structure_.weight_parts(weights)
        for name in dense:
            np.testing.assert_array_equal(parts[name], dense[name])
    np.testing.assert_array_equal(model.densify().coef_, weights)
    np.testing.assert_array_equal(model.densify().coef_, weights)


@pytest.mark.parametrize("cls", OF_ROWS)
def test_so_it_is_for_other_estimators(cls):
    rng = new_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    model = cls(max_iter=3).fit(X, y)
    scores, weights = model.decision_function(X), model.coef_.copy()
    np.testing.assert_array_equal(model.sparsify().decision_function(X), scores)
    np.testing.assert_array_equal(model.densify().coef_, weights)


@pytest.mark.parametrize("solver", ["dual", "lbfgs"])
def test_a_warm_start_does_not_mind(solver):
    X, y = make_chains(12, random_state=new_seed(1))
    params = {"solver": solver, "warm_start": True, "random_state": 0}
    models = [placed(CRFClassifier)("chain", **params).fit(X, y) for _ in range(2)]
    models[1].sparsify()
    dense, other = (model.set_params(C=2.0).fit(X, y).coef_ for model in models)
    assert not sparse.issparse(other)
    np.testing.assert_array_equal(other, dense)


def test_a_warm_start_of_rows_reads_sparse_weights():
    X = new_rng(2).standard_normal((40, 3))
    y = (X[:, 0] > 0.0).astype(int)
    models = [SubLBFGSClassifier(warm_start=True).fit(X, y) for _ in range(2)]
    models[1].sparsify()
    dense, other = (model.fit(X, y).coef_ for model in models)
    np.testing.assert_array_equal(other, dense)


def test_a_file_has_the_size_of_the_weights_that_are_not_zero():
    X, y = make_chains(12, n_features=5, random_state=new_seed(3))
    wide = [sparse.csr_array(np.hstack([x, np.zeros((len(x), 10_000))])) for x in X]
    sizes = []
    for data in X, wide:
        model = BCFWClassifier("chain", random_state=0).fit(data, y).sparsify()
        sizes.append(len(pickle.dumps(model)))
    n_weights = len(model.structure_.classes_) * 10_000
    assert sizes[1] - sizes[0] < 0.01 * 8 * n_weights


def test_features_are_selected_by_their_weights():
    X, y = make_chains(60, n_features=4, random_state=new_seed(4))
    wide = [np.hstack([x, np.zeros((len(x), 3))]) for x in X]
    model = CRFClassifier("chain", random_state=0).fit(wide, y).sparsify()
    selection = SelectFromModel(
        FrozenEstimator(model), prefit=True, threshold=1e-9,
        importance_getter=size_of_emissions,
    )  # fmt: skip
    few = SequenceTransformer(selection).fit_transform(wide)
    assert all(np.array_equal(a, b) for a, b in zip(few, X, strict=True))


def size_of_emissions(model):
    emission = model.structure_.weight_parts(model.coef_)["emission"]
    return np.abs(emission).max(axis=1)


@pytest.mark.parametrize("method", ["sparsify", "densify"])
def test_a_model_has_to_be_fitted_first(method):
    with pytest.raises(NotFittedError):
        getattr(CRFClassifier(), method)()
