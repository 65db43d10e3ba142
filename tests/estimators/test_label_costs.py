"""Costs of labels in conditional random fields: the softmax-margin, by enumeration."""

from itertools import product

import numpy as np
import pytest
from _listed_crf import Listed
from _seeds import new_rng
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier, CRFClassifierCV, crf_path
from sklearn_structsvm.structures import (
    MISSING,
    BinaryStructure,
    ChainStructure,
    GraphStructure,
    MulticlassStructure,
    TreeStructure,
)

K = 3
STRUCTURES = {
    "chain": ChainStructure(),
    "chain, some pairs": ChainStructure(transitions=[("b", "c")]),
    "tree": TreeStructure(),
    "graph": GraphStructure(),
    "binary": BinaryStructure(),
    "multiclass": MulticlassStructure(),
}
SOLVERS = {
    "chain": ("auto", "dual", "lbfgs", "newton"),
    "chain, some pairs": ("dual", "lbfgs", "newton"),
    "tree": ("auto", "dual", "lbfgs"),
    "graph": ("lbfgs",),
    "binary": ("auto", "dual", "lbfgs", "newton"),
    "multiclass": ("auto", "dual", "lbfgs", "newton"),
}


def draw(kind, rng, n=6):
    """X, y, and costs."""
    k = 2 if kind == "binary" else K
    names = np.array(["a", "b", "c"])[:k]
    costs = rng.uniform(0.0, 4.0, size=(k, k))
    np.fill_diagonal(costs, 0.0)
    if kind in ("binary", "multiclass"):
        X = rng.normal(size=(3 * n, 3))
        return X, np.concatenate([names, rng.choice(names, 3 * n - k)]), costs
    sizes = rng.integers(1, 5, size=n)
    sizes[0] = k
    X = [rng.normal(size=(size, 2)) for size in sizes]
    y = [rng.choice(names, size) for size in sizes]
    y[0] = names[::-1].copy()
    if kind == "chain, some pairs":
        y = [np.sort(labels)[::-1] for labels in y]
    parents = [np.array([-1, *rng.integers(0, range(1, len(x)))]) for x in X]
    if kind == "tree":
        X = list(zip(X, parents, strict=True))
    if kind == "graph":
        # Their bounds are exact.
        edges = [np.column_stack([own[1:], np.arange(1, len(own))]) for own in parents]
        X = list(zip(X, edges, strict=True))
    return X, y, costs


class ListedCosts(Listed):
    """The normalized objective over all labelings."""

    def __init__(self, model, X, y, costs, s, allowed=None, weights=None):
        self.structure = structure = model.structure_
        if structure.flat:
            X, y = list(X), list(y)
        else:
            X, y = structure.check_data(X, y)
        places = {label: c for c, label in enumerate(model.classes_.tolist())}
        self.p, total = s / s.sum(), s.sum()
        self.lam, self.l1_ratio = 1.0 / (model.C * total), model.l1_ratio
        self.terms = []
        for i, (x, truth) in enumerate(zip(X, y, strict=True)):
            all_of = list(self.labelings(structure, x))
            phi = np.array([structure.joint_feature(x, own) for own in all_of])
            codes = np.array([[places[c] for c in np.atleast_1d(own)] for own in all_of])
            sets = [[places[c]] for c in np.atleast_1d(truth)]
            if allowed is not None:
                sets = [[places[c] for c in own] for own in allowed[i]]
            table = np.array([costs[own].min(axis=0) for own in sets])
            of_nodes = np.ones(len(sets)) if weights is None else weights[i]
            cost = table[np.arange(len(sets)), codes] @ of_nodes
            is_true = [
                all(c in own for c, own in zip(row, sets, strict=True)) for row in codes
            ]
            self.terms.append((phi, cost, np.array(is_true)))

    @staticmethod
    def labelings(structure, x):
        if isinstance(structure, GraphStructure):
            return map(np.array, product(structure.classes_, repeat=len(x[0])))
        return structure.labelings(x)

    def sums(self, w):
        value, gradient = 0.0, 0.0
        for p, (phi, cost, is_true) in zip(self.p, self.terms, strict=True):
            scores, own = phi @ w + cost, phi[is_true] @ w
            every, ours = logsumexp(scores), logsumexp(own)
            value += p * (every - ours)
            shares = np.exp(scores - every)
            shares[is_true] -= np.exp(own - ours)
            gradient = gradient + p * shares @ phi
        return value, gradient

    def loss(self, w):
        return self.sums(w)[0]

    def gradient(self, w):
        return (1.0 - self.l1_ratio) * self.lam * w + self.sums(w)[1]


def weights_of(model):
    w = model.structure_.join_weights(model.coef_, getattr(model, "intercept_", None))
    return np.ravel(w)


@pytest.mark.parametrize(
    ("kind", "l1_ratio"),
    [*product(STRUCTURES, [0.0]), *product([*STRUCTURES][:3], [0.5, 1.0]),
     *product([*STRUCTURES][4:], [0.5, 1.0])],
)  # fmt: skip
def test_fits_end_at_the_certified_minimum_of_the_listed_objective(kind, l1_ratio):
    rng = new_rng()
    X, y, costs = draw(kind, rng)
    s = rng.uniform(0.5, 2.0, size=len(y))
    C, best = 10.0 ** rng.uniform(-1.0, 0.5), None
    for solver in SOLVERS[kind]:
        if (solver, l1_ratio) == ("lbfgs", 1.0):
            continue
        model = CRFClassifier(
            STRUCTURES[kind], C=C, l1_ratio=l1_ratio, label_costs=costs, solver=solver,
            tol=1e-6, max_iter=20_000, random_state=0,
        ).fit(X, y, s)  # fmt: skip
        listed = ListedCosts(model, X, y, costs, s)
        best = listed.sparse_optimum() if best is None else best
        value = listed.primal(weights_of(model))
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        assert model.dual_gap_ <= 1e-6
        assert model.dual_objective_ <= best + 1e-9


@pytest.mark.parametrize(
    ("kind", "solver"),
    [(kind, own) for kind in ("chain", "tree", "binary", "multiclass")
     for own in SOLVERS[kind][1:]],
)  # fmt: skip
def test_costs_of_zero_change_no_bit(kind, solver):
    X, y, costs = draw(kind, new_rng())
    plain = CRFClassifier(STRUCTURES[kind], solver=solver, random_state=0).fit(X, y)
    model = clone(plain).set_params(label_costs=0.0 * costs).fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.dual_objective_ == plain.dual_objective_
    found = zip(model.predict(X), plain.predict(X), strict=True)
    assert all(np.array_equal(a, b) for a, b in found)


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_class_weights_multiply_the_costs_of_nodes(kind):
    X, y, costs = draw(kind, new_rng())
    weights = {"a": 3.0, "c": 0.5}
    factors = np.array([[3.0], [1.0], [0.5]])

    def fitted(y=y, **params):
        return CRFClassifier(STRUCTURES[kind], random_state=0, **params).fit(X, y)

    for own in (costs, None):
        base = 1.0 - np.eye(K) if own is None else own
        model = fitted(label_costs=own, class_weight=weights)
        other = fitted(label_costs=factors * base)
        assert np.array_equal(model.coef_, other.coef_)
        # Decisions of least cost are by the structure's own.
        assert np.array_equal(model.structure_.label_costs_, 1.0 - np.eye(K))
    if kind == "chain":
        # Balanced are the labels that are known.
        y = [*map(list, y)]
        known = np.concatenate(y)[np.arange(sum(map(len, y))) != sum(map(len, y[:-1]))]
        y[-1][0] = MISSING
        counts = np.array([(known == label).sum() for label in "abc"])
        balanced = dict(zip("abc", len(known) / (K * counts), strict=True))
        model, other = (fitted(y, class_weight=own) for own in ("balanced", balanced))
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-9)


def test_weights_of_positions_in_parts_count_as_in_memory():
    bag, rng = pytest.importorskip("dask.bag"), new_rng()
    X, y, _ = draw("chain", rng)
    Y = [(labels, rng.choice([0.5, 9.0], size=len(labels))) for labels in y]
    parts = [bag.from_sequence(items, npartitions=2) for items in (X, Y)]
    near, far = (
        BCFWClassifier("chain", C=1.0, tol=1e-4, max_iter=10**4, random_state=0)
        for _ in range(2)
    )
    assert abs(near.fit(X, Y).objective_ - far.fit(*parts).objective_) <= 1e-4
    with pytest.warns(UserWarning, match="weights of positions"):
        CRFClassifier("chain").fit(*parts)


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_weights_of_nodes_multiply_their_costs(kind):
    rng, best = new_rng(), None
    X, y, costs = draw(kind, rng)
    weights = [rng.choice([0.0, 0.5, 3.0], size=len(labels)) for labels in y]
    for solver in SOLVERS[kind]:
        options = {"solver": solver, "tol": 1e-6, "max_iter": 20_000, "random_state": 0}
        model = CRFClassifier(STRUCTURES[kind], label_costs=costs, **options)
        model.fit(X, list(zip(y, weights, strict=True)))
        listed = ListedCosts(model, X, y, costs, np.ones(len(y)), weights=weights)
        best = listed.sparse_optimum() if best is None else best
        value = listed.primal(weights_of(model))
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        assert model.dual_gap_ <= 1e-6
        assert model.dual_objective_ <= best + 1e-9
        words = r"pass, for example, label_costs=1 - numpy.eye"
        with pytest.warns(UserWarning, match=words):
            clone(model).set_params(label_costs=None).fit(X, [(y[0], weights[0]), *y[1:]])


@pytest.mark.parametrize("solver", ["auto", "dual", "lbfgs"])
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_hidden_labels_cost_what_their_cheapest_label_does(kind, solver):
    rng = new_rng()
    X, y, costs = draw(kind, rng)
    names = ["a", "b", "c"]
    allowed = [[[label] for label in labels.tolist()] for labels in y]
    for own in allowed[1:]:
        own[rng.integers(len(own))] = names
        own[rng.integers(len(own))] = names[:2]
    given = [
        [MISSING if len(own) == K else own[0] if len(own) == 1 else set(own)
         for own in labels]
        for labels in allowed
    ]  # fmt: skip
    s = rng.uniform(0.5, 2.0, size=len(y))
    weights = [rng.choice([0.5, 3.0], size=len(labels)) for labels in y]
    model = CRFClassifier(
        STRUCTURES[kind], label_costs=costs, solver=solver, tol=1e-5, random_state=0,
        max_iter=5000,
    ).fit(X, list(zip(given, weights, strict=True)), s)  # fmt: skip
    listed = ListedCosts(model, X, y, costs, s, allowed, weights)
    assert model.objective_ == pytest.approx(listed.primal(weights_of(model)), rel=1e-9)
    assert model.dual_gap_ <= 1e-5
    # A stationary point, by the gap: λ/2 ||w - w'||² is at most that.
    gradient = listed.gradient(weights_of(model))
    # A Lipschitz constant of the gradient of the losses.
    spreads = [np.square(phi - phi[0]).sum(axis=1).max() for phi, _, _ in listed.terms]
    smoothness = listed.lam + listed.p @ spreads
    assert gradient @ gradient <= 2.0 * 1e-5 * smoothness**2 / listed.lam


def test_a_path_and_a_choice_of_c_have_the_same_costs():
    X, y, costs = draw("chain", new_rng(), n=9)
    path = crf_path(X, y, Cs=[0.1, 1.0], label_costs=costs, random_state=0)
    options = {"solver_options": {"label_costs": costs}, "random_state": 0}
    model = CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=3, **options).fit(X, y)
    one = CRFClassifier("chain", C=model.C_, label_costs=costs, random_state=0)
    assert np.array_equal(model.coef_, one.fit(X, y).coef_)
    listed = ListedCosts(one, X, y, costs, np.ones(len(y)))
    at = [0.1, 1.0].index(model.C_)
    assert listed.primal(path.coefs[at]) == pytest.approx(path.objectives[at], rel=1e-9)


@pytest.mark.parametrize("solver", ["dual", "lbfgs"])
def test_a_warm_start_takes_other_costs(solver):
    X, y, costs = draw("chain", new_rng())
    model = CRFClassifier("chain", solver=solver, warm_start=True, random_state=0)
    model.set_params(tol=1e-6, max_iter=5000)
    for own in (None, costs, 3.0 * costs):
        model.set_params(label_costs=own).fit(X, y)
        known = np.zeros((K, K)) if own is None else own
        listed = ListedCosts(model, X, y, known, np.ones(len(y)))
        value = listed.primal(weights_of(model))
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        assert model.dual_gap_ <= 1e-6


def test_what_is_no_matrix_of_costs_is_refused():
    X, y, _ = draw("chain", new_rng())
    for costs, words in (
        ([[0.0, 1.0], [1.0, 0.0]], "label_costs must have shape"),
        (np.eye(3), "zero on the diagonal"),
        ([[0, -1, 1], [1, 0, 1], [1, 1, 0]], "label_costs must be >= 0"),
        ([[0, np.nan, 1], [1, 0, 1], [1, 1, 0]], "label_costs"),
    ):
        with pytest.raises(ValueError, match=words):
            CRFClassifier("chain", label_costs=costs).fit(X, y)
    Y = np.eye(2, dtype=int)[[0, 1] * 4]
    with pytest.raises(ValueError, match="MultilabelStructure has several labels"):
        CRFClassifier("multilabel", label_costs=1.0 - np.eye(2)).fit(np.ones((8, 2)), Y)
