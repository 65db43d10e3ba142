"""Bounds of sums over the labelings of graphs, against enumeration and trees."""

from itertools import product

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from scipy import sparse
from scipy.special import logsumexp

from sklearn_structsvm import CRFClassifier, CRFClassifierCV
from sklearn_structsvm.solvers.batch import lbfgs
from sklearn_structsvm.structures import MISSING, GraphStructure, grid_edges
from sklearn_structsvm.structures.tree_reweighted import (
    MAX_ROUNDS,
    PRECISION,
    BoundedLogLoss,
    ReweightedGraphs,
)

KINDS = ["potts", "symmetric", "directed"]


def random_graphs(rng, n=4, k=3, n_nodes=5):
    """Graphs with cycles, isolated nodes, and edges given twice."""
    X, y = [], []
    for _ in range(n):
        T = int(rng.integers(1, n_nodes + 1))
        ends = rng.integers(T, size=(2 * T, 2))
        edges = ends[ends[:, 0] != ends[:, 1]]
        X.append((rng.normal(size=(T, 2)), edges, rng.normal(size=(len(edges), 2))))
        y.append(rng.integers(k, size=T))
    y[0][:] = 0
    return X, [np.append(y_i[:0], y_i) for y_i in y]


def fitted(kind, X, y, k=3):
    structure = GraphStructure(transition=kind)
    X, y = structure.check_data(X, y)
    return structure.fit(X, y, classes=range(k)), X, y


def enumerated(structure, x, w, allowed=None):
    """log Z, and the labelings of one graph with their scores."""
    theta, tables = structure.potentials(x, w)
    places = np.arange(len(theta))
    labelings = np.array(list(product(range(theta.shape[1]), repeat=len(theta))))
    if allowed is not None:
        labelings = labelings[allowed[places, labelings].all(axis=1)]
    scores = theta[places, labelings].sum(axis=1)
    first, second = labelings[:, x[1][:, 0]], labelings[:, x[1][:, 1]]
    scores += tables[np.arange(len(tables)), first, second].sum(axis=1)
    return logsumexp(scores), labelings, scores


@pytest.mark.parametrize("kind", [*KINDS, False])
def test_each_round_gives_an_upper_bound_and_marginals_that_agree(kind):
    rng = new_rng(1)
    X, y = random_graphs(rng)
    structure, X, y = fitted(kind, X, y)
    w = rng.normal(size=structure.n_weights_) * 2.0
    exact = np.array([enumerated(structure, x, w)[0] for x in X])
    graphs = ReweightedGraphs(structure, X)
    theta, tables = graphs.potentials(w)
    edges = graphs.edges
    before, rounding = np.inf, 1e-10 * (1.0 + np.abs(exact))
    for _ in range(20):
        results, nodes, pairs = graphs.sums(theta, tables, 1, PRECISION, 1)
        bound, slack, entropy = results.T
        assert (bound >= exact - rounding).all()
        assert (bound <= before + rounding).all()
        assert (slack >= -rounding).all()
        assert (entropy >= -rounding).all()
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0)
        np.testing.assert_allclose(pairs.sum(axis=2), nodes[edges[:, 0]], atol=1e-9)
        np.testing.assert_allclose(pairs.sum(axis=1), nodes[edges[:, 1]], atol=1e-9)
        assert (pairs >= 0.0).all()
        before = bound
    # The slack tells how far the bound is from the least.
    least = graphs.sums(theta, tables, MAX_ROUNDS, PRECISION, 1)[0][:, 0]
    assert (bound - slack <= least + rounding).all()


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_exact_for_forests(kind):
    rng = new_rng(3)
    X, y = random_graphs(rng, n=3)
    for i, (features, _, _) in enumerate(X):
        T = len(features)
        edges = [(v, int(rng.integers(v))) for v in range(1, T)][1:]
        edges = rng.permutation(T)[np.reshape(edges, (-1, 2)).astype(int)]
        X[i] = features, edges, rng.normal(size=(len(edges), 2))
    structure, X, y = fitted(kind, X, y)
    w = rng.normal(size=structure.n_weights_) * 3.0
    marginals = structure.marginals(X, w)
    logs, entropies = structure.log_probabilities(X, y, w), structure.entropies(X, w)
    for x, y_i, found, log, entropy in zip(X, y, marginals, logs, entropies, strict=True):
        log_z, labelings, scores = enumerated(structure, x, w)
        p = np.exp(scores - log_z)
        expected = (np.eye(3)[labelings] * p[:, None, None]).sum(axis=0)
        np.testing.assert_allclose(found, expected, atol=1e-10)
        np.testing.assert_allclose(entropy, -p @ (scores - log_z), atol=1e-9)
        truth = (labelings == y_i).all(axis=1).argmax()
        np.testing.assert_allclose(log, scores[truth] - log_z, atol=1e-9)


def test_labels_that_are_not_allowed_are_left_out_of_the_sums():
    rng = new_rng(4)
    X, y = random_graphs(rng)
    structure, X, y = fitted("directed", X, y)
    w = rng.normal(size=structure.n_weights_)
    allowed = [rng.random((len(x[0]), 3)) < 0.6 for x in X]
    for mask in allowed:
        mask[np.arange(len(mask)), rng.integers(3, size=len(mask))] = True
    graphs = ReweightedGraphs(structure, X)
    sums = graphs.sums(*graphs.potentials(w, allowed), MAX_ROUNDS, PRECISION, 1)
    for x, mask, bound in zip(X, allowed, sums[0][:, 0], strict=True):
        exact = enumerated(structure, x, w, mask)[0]
        assert bound >= exact - 1e-10 * (1.0 + abs(exact))
    assert (sums[1][~np.concatenate(allowed)] == 0.0).all()
    for own, mask in zip(structure.marginals(X, w, 1, allowed), allowed, strict=True):
        np.testing.assert_allclose(own[mask.sum(axis=1) == 1].max(initial=1.0), 1.0)
    logs = structure.log_probabilities(X, y, w, 1, allowed)
    known = [m[np.arange(len(y_i)), y_i].all() for m, y_i in zip(allowed, y, strict=True)]
    np.testing.assert_array_equal(np.isfinite(logs), known)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_loss(kind):
    rng = new_rng(5)
    X, y = random_graphs(rng)
    structure, X, y = fitted(kind, X, y)
    loss, p = BoundedLogLoss(structure, X, y), rng.dirichlet(np.ones(len(X)))
    w, d = rng.normal(size=(2, structure.n_weights_))
    loss.tighten(p, rng.normal(size=len(w)), 1e-2)
    h = 1e-5
    slope = (loss.log_loss(p, w + h * d)[0] - loss.log_loss(p, w - h * d)[0]) / (2 * h)
    np.testing.assert_allclose(loss.log_loss(p, w)[1] @ d, slope, rtol=1e-6, atol=1e-6)


def test_threads_give_the_same_bits():
    rng = new_rng(6)
    X, y = random_graphs(rng, n=9)
    structure, X, y = fitted("directed", X, y)
    w = rng.normal(size=structure.n_weights_)
    for one, two in zip(
        structure.marginals(X, w, 1), structure.marginals(X, w, 3), strict=True
    ):
        np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------ as a user meets it


def small_grids(n=6, k=3, shape=(2, 3)):
    rng = new_rng(7)
    X, y = [], []
    for _ in range(n):
        labels = np.repeat(rng.integers(k, size=shape[0]), shape[1])
        features = np.eye(k)[labels] + rng.normal(size=(len(labels), k))
        X.append((features, grid_edges(shape)))
        y.append(labels)
    y[0][:k] = range(k)
    return X, y


def test_the_certificate_is_one_and_bounds_the_log_loss():
    X, y = small_grids()
    model = CRFClassifier("graph", tol=1e-4).fit(X, y)
    assert model.solver_ == "lbfgs" and 0.0 <= model.dual_gap_ <= 1e-4
    tight = CRFClassifier("graph", tol=1e-8).fit(X, y)
    # Both brackets hold the least value.
    assert model.dual_objective_ <= tight.objective_ + 1e-9
    assert tight.dual_objective_ <= model.objective_ + 1e-9
    structure, w = model.structure_, model.coef_
    checked, _ = structure.check_data(X)
    bounds = model.log_likelihood(X, y)
    for x, y_i, bound in zip(checked, y, bounds, strict=True):
        log_z, labelings, scores = enumerated(structure, x, w)
        assert bound <= scores[(labelings == np.array(y_i)).all(axis=1)][0] - log_z + 1e-9
    lam = 1.0 / len(X)
    mean = 0.5 * lam * w @ w - bounds.mean()
    assert mean <= model.objective_ + 1e-9


def test_steps_compare_slopes_of_the_same_messages(monkeypatch):
    """So the curvature along each is positive, by the conditions of the line search."""
    products, update = [], lbfgs.update_pair

    def noted(inverse, step, change):
        products.append(step @ change)
        update(inverse, step, change)

    monkeypatch.setattr(lbfgs, "update_pair", noted)
    rng, edges = new_rng(8), grid_edges((9, 9))
    y = [np.kron(rng.integers(4, size=(3, 3)), np.ones((3, 3), int)) for _ in range(3)]
    X = [(rng.normal(size=(81, 4)) + 0.3 * np.eye(4)[own.ravel()], edges) for own in y]
    structure, y = GraphStructure(emission="given"), [own.ravel() for own in y]
    CRFClassifier(structure, C=10.0, solver_options={"classes": range(4)}).fit(X, y)
    assert len(products) > 5 and min(products) > 0.0


def test_sparse_features_are_as_good_as_arrays_and_scores_may_stand_beside_them():
    X, y = small_grids()
    model = CRFClassifier("graph", tol=1e-6).fit(X, y)
    rows = [(sparse.csr_array(x), edges) for x, edges in X]
    same = CRFClassifier("graph", tol=1e-6).fit(rows, y)
    assert abs(model.objective_ - same.objective_) <= 1e-6
    both = [((x, x), edges) for x, edges in X]
    more = CRFClassifier(GraphStructure(emission="both"), tol=1e-6).fit(both, y)
    assert more.objective_ <= model.objective_ + 1e-6


def test_predictions_by_marginals_have_the_most_probable_labels():
    X, y = small_grids()
    model = CRFClassifier("graph", solver_options={"decoding": "mbr"}).fit(X, y)
    for labels, proba in zip(model.predict(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(labels, model.classes_[proba.argmax(axis=1)])
    allowed = [[{0, 1}] + [None] * (len(y_i) - 1) for y_i in y]
    for labels in model.predict(X, allowed=allowed):
        assert labels[0] in (0, 1)
    with pytest.raises(ValueError, match="The graph has a cycle"):
        model.predict_k_best(X)
    unseen = [np.full(len(y_i), 9) for y_i in y]
    assert (model.log_likelihood(X, unseen) == -np.inf).all()
    assert (model.entropy(X) >= 0.0).all()


def test_c_is_chosen_and_fits_start_from_one_another():
    X, y = small_grids()
    model = CRFClassifierCV(
        "graph", Cs=[0.01, 0.1], cv=2, solver_options={"classes": [0, 1, 2]}
    ).fit(X, y)
    assert (model.dual_gaps_path_ <= model.tol).all()
    again = CRFClassifier("graph", warm_start=True, tol=1e-6).fit(X, y)
    first = again.n_iter_
    assert again.fit(X, y).n_iter_ <= first


@pytest.mark.parametrize(
    "options", [{"solver": "dual"}, {"solver": "newton"}, {"l1_ratio": 0.5}]
)
def test_what_needs_exact_sums_is_refused(options):
    with pytest.raises(ValueError, match="GraphStructure needs solver='lbfgs'"):
        placed(CRFClassifier)("graph", **options).fit(*small_grids())


def test_dask_collections_of_graphs_are_refused():
    bag = pytest.importorskip("dask.bag")
    X, y = (bag.from_sequence(items, npartitions=2) for items in small_grids())
    with pytest.raises(ValueError, match="GraphStructure needs data in memory"):
        CRFClassifier("graph").fit(X, y)


def test_hidden_labels_of_graphs_are_refused():
    X, y = small_grids()
    y[1] = [MISSING, *y[1][1:].tolist()]
    with pytest.raises(ValueError, match="may not be hidden.*'graph'.*final_estimator"):
        CRFClassifier("graph").fit(X, y)
