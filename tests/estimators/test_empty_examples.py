"""Items without nodes are skipped and labeled by nothing; parts that rarely meet."""

from itertools import product

import numpy as np
import pytest
from _estimators import PythonMulticlass, assert_same_fit
from _estimators import make_problem as data_of_rows
from _options import placed
from _seeds import new_rng
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
from sklearn_structsvm.structures import (
    MISSING,
    ChainStructure,
    GraphStructure,
    Structure,
    TreeStructure,
    check_structure,
)

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
    "slack": placed(SlackRescaledSSVM)(max_iter=2, search="bisecting", random_state=0),
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


@pytest.mark.parametrize(
    ("kind", "name"),
    # Pragam needs exact sums over all labelings.
    [pair for pair in product(NOTHING, ESTIMATORS) if pair != ("cycles", "pragam")],
)
def test_fit_skips_them_with_their_weights(kind, name):
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
    for given in ([], np.empty(0, dtype=object), ()):
        assert model.predict(given).shape == (0,)
    if (kind, name) == ("tree", "bcfw"):
        options = {"structure": structure, "eps": 0.5, "random_state": 0}
        paths = (placed(bcfw_path)(*data, **options) for data in ((X_all, y_all), (X, y)))
        np.testing.assert_array_equal(*(path.lambdas for path in paths))


@pytest.mark.parametrize("decoding", ["map", "mbr"])
@pytest.mark.parametrize("kind", ["chain", "chain-csr", "tree"])
def test_probabilities(kind, decoding):
    structure, X_all, y_all, places, X, y = with_nothing(kind)
    model = placed(CRFClassifier)(structure, tol=0.1, decoding=decoding).fit(X_all, y_all)
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


@pytest.mark.parametrize(
    ("kind", "model"),
    [*product(["chain", "tree"], [BCFWClassifier, CRFClassifier]),
     ("cycles", BCFWClassifier)],
)  # fmt: skip
def test_dask(kind, model):
    dask = pytest.importorskip("dask")
    bag = pytest.importorskip("dask.bag")
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


def test_labels_of_nothing_and_nothing_but_nothing_are_refused():
    for X, structure in (([[], []], "chain"), ([([], [])] * 2, "tree")):
        with pytest.raises(ValueError, match="X is empty: no example has anything"):
            BCFWClassifier(structure).fit(X, [[], []])
    structure, X, y, places, _, _ = with_nothing("chain")
    weights = np.ones(len(X))
    weights[places] = 0.0
    with pytest.raises(ValueError, match="must not be zero for every"):
        BCFWClassifier(structure).fit(X, y, weights)
    fitted = clone(structure).fit(*structure.check_data(X, y))
    with pytest.raises(ValueError, match="x is empty"):
        fitted.decode(np.empty((0, 5)), np.zeros(fitted.n_weights_))
    check_structure(structure, X[:4], y[:4], n_trials=1)
    X = [np.ones((2, 3)), [], np.zeros((1, 3))]
    with pytest.raises(ValueError, match=r"y\[1\] has 1 labels for the 0 positions"):
        BCFWClassifier("chain").fit(X, [[0, 1], [1], [0]])
    with pytest.raises(ValueError, match=r"y\[2\] has 0 labels for the 1 positions"):
        BCFWClassifier("chain").fit(X, [[0, 1], [], []])
    X = [(np.ones((2, 3)), [[0, 1]]), ([], [[0, 1]])]
    with pytest.raises(ValueError, match=r"X\[1\]\[1\] has the edge"):
        BCFWClassifier("graph").fit(X, [[0, 1], []])


EDGES = ([], [], []), (np.ones((2, 1)), [[0, 1]], np.ones((1, 2)))
WORDS = [], [{"word": "a"}, {"word": "b"}], [{"word": "b"}], []


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (BCFWClassifier(tol=0.5), [[], np.ones((2, 1)), np.zeros((1, 1))],
         [[], ["a", "b"], ["b"]]),
        (BCFWClassifier("graph", tol=0.5), [*EDGES], [([], []), ([0, 1], [1.0, 2.0])]),
        (make_pipeline(SequenceTransformer(), BCFWClassifier(C=10.0)), [*WORDS],
         [[], ["A", "B"], ["B"], []]),
        (BCFWClassifier(PythonMulticlass(), tol=0.5), None, None),
    ],
)  # fmt: skip
def test_items_of_other_forms_and_structures_may_be_empty(model, X, y):
    if X is None:
        problem = data_of_rows("custom")
        model.fit(problem.X, problem.y)
    else:
        found = model.fit(X, y).predict(X)
        assert len(found[0]) == 0 and found[0].dtype == found[1].dtype
    assert len(model.predict([])) == 0


def test_sequences_that_may_not_be_too_short():
    chain = ChainStructure(transitions=[(0, None), (None, 1)])
    X = [np.ones((2, 1)), [], np.zeros((3, 1))]
    model = BCFWClassifier(chain, tol=0.5).fit(X, [[0, 1], [], [0, 0, 1]])
    assert list(map(len, model.predict(X))) == [2, 0, 3]
    assert list(map(len, model.predict([[]]))) == [0]
    with pytest.raises(ValueError, match=r"X\[1\] has 1 positions"):
        model.predict([[], [[1.0]]])


SHORT = {"max_iter": 5, "random_state": 0}
KINDS = {"chain": ChainStructure, "tree": TreeStructure, "graph": GraphStructure}


def rest_of(kind, n):
    """What follows the features of an item of n nodes: nothing, parents or a path."""
    above = np.arange(n) - 1
    return {"tree": (above,), "graph": (np.column_stack([above, above + 1])[1:],)}.get(
        kind, ()
    )


def item(kind, features):
    n = features[0].shape[0] if isinstance(features, tuple) else features.shape[0]
    rest = rest_of(kind, n)
    return (features, *rest) if rest else features


def test_graphs_of_pairs_learn_around_hidden_labels():
    rng = new_rng(0)
    features = [(rng.normal(size=(3, 2)), rng.normal(size=(3, 2))) for _ in range(8)]
    X = [item("graph", own) for own in features]
    y = [[0, MISSING, 1]] * len(X)
    model = BCFWClassifier(GraphStructure(emission="both"), **SHORT).fit(X, y)
    assert 0.0 <= model.dual_gap_ < np.inf and model.score(X, y) >= 0.5
    # Of emission="given" the items stay plain.
    given = [item("graph", own[1]) for own in features]
    BCFWClassifier(GraphStructure(emission="given"), **SHORT).fit(given, y)


class Bits(Structure):
    """As many bits as rows; their tuple may be empty."""

    def joint_feature(self, x, y):
        return np.append(np.asarray(y, dtype=float) @ x, sum(y))

    def loss(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def decode(self, x, w):
        return tuple((x @ w[:-1] + w[-1] > 0.0).astype(int).tolist())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        toward = np.where(np.asarray(y_true) == 1, -1.0, 1.0)
        return tuple((x @ w[:-1] + w[-1] + lam * toward > 0.0).astype(int).tolist())


class Nested(Bits):
    """The same, with each output as a ragged tuple of tuples."""

    def joint_feature(self, x, y):
        return super().joint_feature(x, sum(y, ()))

    def loss(self, y_true, y):
        return super().loss(sum(y_true, ()), sum(y, ()))

    def decode(self, x, w):
        return in_two(super().decode(x, w))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return in_two(super().loss_augmented_decode(x, sum(y_true, ()), w, lam))


def in_two(y):
    return y[:1], y[1:]


@pytest.mark.parametrize("kind", [Bits, Nested])
def test_own_structures_with_any_tuples_as_outputs_warm_start(kind):
    X = [np.eye(3)[:2], np.zeros((0, 3)), np.eye(3)]
    y = [(0, 1), (), (0, 1, 1)]
    if kind is Nested:
        y = [in_two(own) for own in y]
    model = BCFWClassifier(kind(), warm_start=True, random_state=0).fit(X, y)
    cold = BCFWClassifier(kind(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, cold.coef_)
    # Another fit starts where this one has ended, with another example in front.
    model.fit([X[2], *X], [y[2], *y])
    assert 0.0 <= model.dual_gap_ <= model.tol


@pytest.mark.parametrize(
    ("emission", "form"), [(True, sparse.csr_array), ("both", np.asarray)]
)
@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_items_of_long_doubles_are_read_as_doubles(kind, emission, form):
    rng = new_rng(0)
    plain = [rng.normal(size=(3, 2)) for _ in range(8)]
    scores = rng.normal(size=(3, 2))
    models = []
    for dtype in (np.float64, np.longdouble):
        X = [form(own.astype(dtype)) for own in plain]
        if emission == "both":
            X = [(own, scores.astype(dtype)) for own in X]
        X = [item(kind, own) for own in X]
        own = KINDS[kind](emission=emission)
        models.append(CRFClassifier(own, **SHORT).fit(X, [np.array([0, 1, 0])] * 8))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_huge_c_over_cycles_ends_with_a_warning_at_most():
    rng, X, y = new_rng(0), [], []
    for n in rng.integers(3, 6, size=8):
        circle = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
        X.append((rng.integers(-16, 17, (n, 3)) / 8.0, circle))
        y.append(rng.integers(0, 3, n))
    model = CRFClassifier("graph", C=1e9, max_iter=60)
    model.fit(X, y)
    assert model.dual_gap_ > 0.0 and np.isfinite(model.coef_).all()


@pytest.mark.parametrize("emission", [True, "both"])
@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_empty_items_have_an_empty_feature_and_no_answer(kind, emission):
    rng, cls = new_rng(0), KINDS[kind]

    def features(n):
        x = rng.normal(size=(n, 2))
        return item(kind, (x, rng.normal(size=(n, 2))) if emission == "both" else x)

    X, y = map(features, (3, 4, 5)), [np.arange(n) % 2 for n in (3, 4, 5)]
    model = BCFWClassifier(cls(emission=emission), **SHORT).fit([*X], y)
    structure, w, x = model.structure_, model.coef_, features(0)
    assert not structure.joint_feature(x, []).any()
    assert structure.loss([], []) == 0.0
    assert model.predict([x])[0].shape == (0,)
    methods = {
        "decode": (w,), "loss_augmented_decode": ([], w), "k_best": (w, 2),
        "max_marginals": (w,), "constrained_decode": ([], w, 1.0, 2.0, 0.5),
    }  # fmt: skip
    if kind == "graph":
        del methods["constrained_decode"]
    for name, arguments in methods.items():
        with pytest.raises(ValueError, match="^x is empty, and has nothing to label"):
            getattr(structure, name)(x, *arguments)
