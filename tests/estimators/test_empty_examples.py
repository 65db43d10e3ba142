"""Sequences, trees and graphs without nodes: skipped by fit, and labeled by nothing."""

import numpy as np
import pytest
from _estimators import PythonMulticlass, assert_same_fit
from _estimators import make_problem as data_of_rows
from _options import placed
from _structures import data_of
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure, GraphStructure, check_structure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Examples without a node, as they may be given, and their labelings.
NOTHING = {
    "chain": [[], np.empty((0, 5)), np.empty(0), ()],
    "chain-csr": [sparse.csr_array((0, 5)), [], sparse.csc_matrix((0, 5))],
    "tree": [([], []), (np.empty((0, 3)), np.empty(0, dtype=int))],
    "cycles": [([], []), (np.empty((0, 3)), np.empty((0, 2), dtype=int)), ([], [], [])],
}
ESTIMATORS = {
    "bcfw": BCFWClassifier(max_iter=2, random_state=0),
    "slack": SlackRescaledSSVM(
        max_iter=2, solver_options={"search": "bisecting"}, random_state=0
    ),
    "bmrm": BMRMClassifier(max_iter=2, random_state=0),
    "crf": CRFClassifier(max_iter=2, random_state=0),
    "pragam": PragamClassifier(max_iter=2),
}


def with_nothing(kind):
    """A structure, X and y with empty examples, the places of the others, and they."""
    structure, X, y = data_of(kind)
    nothing = NOTHING[kind]
    if kind == "cycles":
        nothing = nothing[:2]
    X_all = [nothing[0], *X[:2], *nothing[1:], *X[2:], nothing[0]]
    y_all = [[], *y[:2], *([] for _ in nothing[1:]), *y[2:], np.empty(0)]
    places = [1, 2, *range(2 + len(nothing), len(X_all) - 1)]
    return structure, X_all, y_all, places, X, y


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", NOTHING)
def test_fit_skips_them_with_their_weights(kind, name):
    if kind == "cycles" and name == "pragam":
        pytest.skip("it needs exact sums over all labelings")
    structure, X_all, y_all, places, X, y = with_nothing(kind)
    model = clone(ESTIMATORS[name]).set_params(structure=structure)
    weights = np.full(len(X_all), 1e3)
    weights[places] = np.arange(1, len(X) + 1)
    model.fit(X_all, y_all, weights)
    assert_same_fit(model, clone(model).fit(X, y, weights[places]))
    alone = model.predict(X)
    labels = model.predict(X_all)
    assert labels.shape == (len(X_all),) and labels.dtype == object
    for i, labeling in enumerate(labels):
        assert len(labeling) == len(y_all[i])
        assert labeling.dtype == model.classes_.dtype
    for i, labeling in zip(places, alone, strict=True):
        np.testing.assert_array_equal(labels[i], labeling)
    assert model.score(X_all, y_all) == model.score(X, y)


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_is_predicted_of_nothing(kind):
    structure, X, y = data_of(kind)
    model = BCFWClassifier(structure, tol=0.5).fit(X, y)
    for given in ([], np.empty(0, dtype=object), ()):
        assert model.predict(given).shape == (0,)
    labels = model.predict(NOTHING[kind][:1] * 2)
    assert [len(labeling) for labeling in labels] == [0, 0]


@pytest.mark.parametrize("decoding", ["map", "mbr"])
@pytest.mark.parametrize("kind", ["chain", "chain-csr", "tree"])
def test_probabilities(kind, decoding):
    structure, X_all, y_all, places, X, y = with_nothing(kind)
    model = CRFClassifier(structure, tol=0.1, solver_options={"decoding": decoding}).fit(
        X_all, y_all
    )
    empty = sorted(set(range(len(X_all))) - set(places))
    k = len(model.classes_)
    assert [len(labels) for labels in model.predict(X_all)] == list(map(len, y_all))
    for method in (model.predict_proba, model.predict_log_proba, model.max_marginals):
        found = method(X_all)
        assert all(found[i].shape == (0, k) for i in empty)
        for i, alone in zip(places, method(X), strict=True):
            np.testing.assert_array_equal(found[i], alone)
        assert len(method([])) == 0
    # One labeling is possible, and certain.
    assert (model.log_likelihood(X_all, y_all)[empty] == 0.0).all()
    np.testing.assert_array_equal(
        model.log_likelihood(X_all, y_all)[places], model.log_likelihood(X, y)
    )
    assert (model.entropy(X_all)[empty] == 0.0).all()
    assert model.entropy([]).shape == (0,)
    labelings, shares = model.predict_k_best(X_all, 3)
    for i in empty:
        assert labelings[i].shape == (1, 0) and shares[i].tolist() == [1.0]
    assert [len(part) for part in model.predict_k_best([])] == [0, 0]


@pytest.mark.parametrize("model", [BCFWClassifierCV, CRFClassifierCV])
def test_cross_validation(model):
    structure, X_all, y_all, _, _, _ = with_nothing("chain")
    model = model(structure=structure, Cs=[0.01, 0.1], cv=3, random_state=0)
    model.fit(X_all, y_all, np.ones(len(X_all)))
    assert len(model.predict(X_all)[0]) == 0
    assert np.isfinite(model.scores_path_).all()
    # Folds are of all examples, as they were given.
    half = np.arange(len(X_all))
    model.set_params(cv=[(half, half), (half[1:], half)]).fit(X_all, y_all)
    scores = cross_val_score(BCFWClassifier(structure, tol=0.5), X_all, y_all, cv=2)
    assert np.isfinite(scores).all()


def test_a_path():
    structure, X_all, y_all, _, X, y = with_nothing("tree")
    options = {"structure": structure, "eps": 0.5, "random_state": 0}
    path, alone = (
        placed(bcfw_path)(*data, **options) for data in ((X_all, y_all), (X, y))
    )
    np.testing.assert_array_equal(path.lambdas, alone.lambdas)


@pytest.mark.parametrize("model", [BCFWClassifier, CRFClassifier])
@pytest.mark.parametrize("kind", ["chain", "tree", "cycles"])
def test_dask(kind, model):
    dask = pytest.importorskip("dask")
    bag = pytest.importorskip("dask.bag")
    if kind == "cycles" and model is CRFClassifier:
        pytest.skip("bounds of sums need data in memory")
    structure, X_all, y_all, places, X, y = with_nothing(kind)
    # The last part has nothing else.
    X_all, y_all = X_all + NOTHING[kind][:1] * 20, y_all + [[]] * 20
    weights = np.full(len(X_all), 7.0)
    weights[places] = 1.0
    lazy = [
        bag.from_sequence(list(items), npartitions=4) for items in (X_all, y_all, weights)
    ]
    solver = {"solver": "lbfgs"} if model is CRFClassifier else {}
    with dask.config.set(scheduler="synchronous"):
        model = model(structure, tol=1e-3, max_iter=300, **solver).fit(*lazy)
        labels = model.predict(lazy[0]).compute()
    assert model.dual_gap_ <= 1e-3
    here = clone(model).set_params(tol=1e-3).fit(X, y)
    assert abs(here.objective_ - model.objective_) <= 2e-3
    assert list(map(len, labels)) == list(map(len, y_all))


def test_where_everything_is_empty():
    for X, structure in (([[], []], "chain"), ([([], [])] * 2, "tree")):
        with pytest.raises(ValueError, match="X is empty: no example has anything"):
            BCFWClassifier(structure).fit(X, [[], []])
    structure, X_all, y_all, places, _, _ = with_nothing("chain")
    weights = np.ones(len(X_all))
    weights[places] = 0.0
    with pytest.raises(ValueError, match="must not be zero for every"):
        BCFWClassifier(structure).fit(X_all, y_all, weights)


def test_labels_of_nothing_and_nothing_for_labels_are_refused():
    X = [np.ones((2, 3)), [], np.zeros((1, 3))]
    with pytest.raises(ValueError, match=r"y\[1\] has 1 labels for the 0 positions"):
        BCFWClassifier("chain").fit(X, [[0, 1], [1], [0]])
    with pytest.raises(ValueError, match=r"y\[2\] has 0 labels for the 1 positions"):
        BCFWClassifier("chain").fit(X, [[0, 1], [], []])
    X = [(np.ones((2, 3)), [[0, 1]]), ([], [[0, 1]])]
    with pytest.raises(ValueError, match=r"X\[1\]\[1\] has the edge"):
        BCFWClassifier("graph").fit(X, [[0, 1], []])


def test_sequences_that_may_not_be_too_short():
    chain = ChainStructure(transitions=[(0, None), (None, 1)])
    X = [np.ones((2, 1)), [], np.zeros((3, 1))]
    model = BCFWClassifier(chain, tol=0.5).fit(X, [[0, 1], [], [0, 0, 1]])
    assert list(map(len, model.predict(X))) == [2, 0, 3]
    assert list(map(len, model.predict([[]]))) == [0]
    with pytest.raises(ValueError, match=r"X\[1\] has 1 positions"):
        model.predict([[], [[1.0]]])


def test_structure_auto_reads_on_and_labels_are_kept():
    X = [[], np.ones((2, 1)), np.zeros((1, 1))]
    model = BCFWClassifier(tol=0.5).fit(X, [[], ["a", "b"], ["b"]])
    assert isinstance(model.structure_, ChainStructure)
    assert model.classes_.tolist() == ["a", "b"] and model.predict(X)[0].dtype.kind == "U"


def test_graphs_with_weights_and_features_of_edges():
    X = [([], [], []), (np.ones((2, 1)), [[0, 1]], np.ones((1, 2)))]
    model = BCFWClassifier("graph", tol=0.5).fit(X, [([], []), ([0, 1], [1.0, 2.0])])
    assert isinstance(model.structure_, GraphStructure)
    assert list(map(len, model.predict(X))) == [0, 2]


def test_words():
    X = [[], [{"word": "a"}, {"word": "b"}], [{"word": "b"}], []]
    y = [[], ["A", "B"], ["B"], []]
    model = make_pipeline(SequenceTransformer(), BCFWClassifier(C=10.0)).fit(X, y)
    assert [labels.tolist() for labels in model.predict(X)] == y
    assert list(map(len, model.predict([[], []]))) == [0, 0]
    assert len(model.predict([])) == 0


def test_a_structure_of_your_own_predicts_nothing_of_nothing():
    problem = data_of_rows("custom")
    model = BCFWClassifier(PythonMulticlass(), tol=0.5).fit(problem.X, problem.y)
    assert model.predict([]).shape == (0,)


def test_kernels_never_see_them():
    structure, X, y = data_of("chain")
    structure = clone(structure).fit(*structure.check_data(X, y))
    with pytest.raises(ValueError, match="x is empty"):
        structure.decode(np.empty((0, 5)), np.zeros(structure.n_weights_))
    structure, X_all, y_all, _, _, _ = with_nothing("chain")
    check_structure(structure, X_all[:4], y_all[:4], n_trials=1)
