"""Parts that were never tried together: items, labels, estimators and options."""

import warnings

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.structures import (
    MISSING,
    ChainStructure,
    GraphStructure,
    Structure,
    TreeStructure,
)

SHORT = {"max_iter": 5, "random_state": 0}
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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


@unfinished
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
        found = super().decode(x, w)
        return (found[:1], found[1:])

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        found = super().loss_augmented_decode(x, sum(y_true, ()), w, lam)
        return (found[:1], found[1:])


@pytest.mark.parametrize("kind", [Bits, Nested])
def test_own_structures_with_any_tuples_as_outputs_warm_start(kind):
    X = [np.eye(3)[:2], np.zeros((0, 3)), np.eye(3)]
    y = [(0, 1), (), (0, 1, 1)]
    if kind is Nested:
        y = [(own[:1], own[1:]) for own in y]
    model = BCFWClassifier(kind(), warm_start=True, random_state=0).fit(X, y)
    cold = BCFWClassifier(kind(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, cold.coef_)
    # Another fit starts where this one has ended, with another example in front.
    model.fit([X[2], *X], [y[2], *y])
    assert 0.0 <= model.dual_gap_ <= model.tol


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("emission", [True, "both"])
@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
@unfinished
def test_items_of_long_doubles_are_read_as_doubles(kind, emission, form):
    rng = new_rng(0)
    structure = {"chain": ChainStructure, "tree": TreeStructure, "graph": GraphStructure}
    plain = [rng.normal(size=(3, 2)) for _ in range(8)]
    scores = rng.normal(size=(3, 2))
    models = []
    for dtype in (np.float64, np.longdouble):
        X = [form(own.astype(dtype)) for own in plain]
        if emission == "both":
            X = [(own, scores.astype(dtype)) for own in X]
        X = [item(kind, own) for own in X]
        own = structure[kind](emission=emission)
        models.append(CRFClassifier(own, **SHORT).fit(X, [np.array([0, 1, 0])] * 8))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("seed", range(4))
def test_a_huge_c_over_cycles_ends_with_a_warning_at_most(seed):
    rng, X, y = new_rng(seed), [], []
    for n in rng.integers(3, 6, size=8):
        circle = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
        X.append((rng.integers(-16, 17, (n, 3)) / 8.0, circle))
        y.append(rng.integers(0, 3, n))
    model = CRFClassifier("graph", C=1e9, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.dual_gap_ > 0.0 and np.isfinite(model.coef_).all()


@pytest.fixture
def fitted(request):
    kind, emission = request.param
    rng, own = new_rng(0), {"emission": emission}
    structure = {
        "chain": ChainStructure(**own, first_bias=True, last_bias=True),
        "tree": TreeStructure(**own, root_bias=True),
        "graph": GraphStructure(**own),
    }[kind]

    def features(n):
        x = rng.normal(size=(n, 2))
        return (x, rng.normal(size=(n, 2))) if emission == "both" else x

    X = [item(kind, features(n)) for n in (3, 4, 5)]
    y = [np.arange(n) % 2 for n in (3, 4, 5)]
    model = BCFWClassifier(structure, **SHORT).fit(X, y)
    none = (np.zeros((0, 2)),) * 2 if emission == "both" else np.zeros((0, 2))
    return model, item(kind, none)


@pytest.mark.parametrize(
    "fitted",
    [(kind, own) for kind in ("chain", "tree", "graph") for own in (True, "both")],
    indirect=True,
)
@unfinished
def test_empty_items_have_an_empty_feature_and_no_answer(fitted):
    model, x = fitted
    structure, w = model.structure_, model.coef_
    assert not structure.joint_feature(x, []).any()
    assert structure.loss([], []) == 0.0
    assert model.predict([x])[0].shape == (0,)
    methods = {
        "decode": (w,), "loss_augmented_decode": ([], w), "k_best": (w, 2),
        "max_marginals": (w,), "constrained_decode": ([], w, 1.0, 2.0, 0.5),
    }  # fmt: skip
    if isinstance(structure, GraphStructure):
        del methods["constrained_decode"]
    for name, arguments in methods.items():
        with pytest.raises(ValueError, match="^x is empty, and has nothing to label"):
            getattr(structure, name)(x, *arguments)
