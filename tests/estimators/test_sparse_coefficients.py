"""`sparsify`: the same model, whose weights take the room of those that are not zero."""

import pickle
from itertools import product

import numpy as np
import pytest
from _seeds import new_seed
from _structures import ALL, data_of
from scipy import sparse
from sklearn.base import clone
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


@pytest.mark.parametrize(
    ("kind", "cls"), [*product(ALL, [BCFWClassifier]), *product(["binary"], OF_ROWS)]
)
def test_a_sparse_model_predicts_the_same(kind, cls):
    structure, X, y = data_of(kind)
    model = cls(max_iter=2)
    if cls is BCFWClassifier:
        model.set_params(structure=structure, random_state=0)
    for method in ("sparsify", "densify"):
        with pytest.raises(NotFittedError):
            getattr(model, method)()
    model.fit(X, y)
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


@pytest.mark.parametrize(
    "model",
    [CRFClassifier(solver="dual", random_state=0), CRFClassifier(solver="lbfgs"),
     SubLBFGSClassifier()],
)  # fmt: skip
def test_a_warm_start_does_not_mind(model):
    X, y = make_chains(12, n_classes=2, random_state=new_seed(1))
    if isinstance(model, SubLBFGSClassifier):
        X, y = np.concatenate(X), np.concatenate(y)
    model.set_params(warm_start=True)
    models = [clone(model).fit(X, y), clone(model).fit(X, y).sparsify()]
    dense, other = (model.set_params(C=2.0).fit(X, y).coef_ for model in models)
    assert not sparse.issparse(other)
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
