"""GraphStructure against enumeration, linprog and chains; see also `test_listed`."""

import sys
from itertools import combinations, product

import numpy as np
import pytest
from _cases import GRAPH_KINDS, graph_cases, list_graphs, some
from _estimators import assert_same_optimum
from _problems import Problem, optimum
from _seeds import new_rng
from hypothesis import given, settings
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import GraphStructure, grid_edges
from sklearn_structsvm.structures._graph import GraphOracle
from sklearn_structsvm.structures._probe import Probe


def test_k_best_labelings_and_max_marginals_are_of_forests_only():
    X, y = random_graphs()
    model = BCFWClassifier(GraphStructure(), tol=0.1, random_state=0).fit(X, y)
    for ask in (model.predict_k_best, model.max_marginals):
        with pytest.raises(ValueError, match="has a cycle"):
            ask(X)
    x, edges, z = X[0]
    forest = [(x, edges[:2], z[:2])]
    labelings, scores = model.predict_k_best(forest, k=3)
    np.testing.assert_array_equal(labelings[0][0], model.predict(forest)[0])
    marginals = model.max_marginals(forest)[0]
    np.testing.assert_allclose(marginals.max(axis=1), scores[0][0], rtol=1e-12)


def fitted(X, y, **options):
    """A structure and its checked data."""
    structure = GraphStructure(**options)
    X, y = structure.check_data(X, y)
    return structure.fit(X, y), X, y


def plain_list(X, y, k, kind):
    """Without weights of nodes and costs of labels."""
    return list_graphs(X, y, [np.ones(len(own)) for own in y], k, None, True, kind)


def attracting(case):
    """The case's weights, turned to where neighbors attract."""
    X = [(rows, edges, abs(of_edges)) for rows, edges, of_edges in case.X]
    lower, upper = clone(case.structure).set_params(attractive=True).fit(
        X, case.y, classes=case.structure.classes_
    ).weight_bounds() or (-np.inf, np.inf)
    return np.clip(case.w, lower, upper)


@some
@given(graph_cases(k=2))
def test_two_labels_are_decoded_exactly_where_they_attract(case):
    structure, w = case.structure, attracting(case)
    for i, (x, y) in enumerate(zip(case.X, case.y, strict=True)):
        x = (x[0], x[1], abs(x[2]))
        phi = [structure.joint_feature(x, name) for name in case.names[i]]
        scores, losses = np.array(phi) @ w, case.listed.loss[i]
        for lam in (0.0, 0.25, 1.0, 3.0):
            place = case.place(i, structure.loss_augmented_decode(x, y, w, lam))
            values = scores + lam * losses
            assert values[place] >= values.max() - 1e-12
        assert scores[case.place(i, structure.decode(x, w))] >= scores.max() - 1e-12


def relaxed_value(structure, x, y, w, lam):
    """max ⟨w, φ⟩ + lam · loss over the local polytope, by a linear program of its own."""
    theta, tables = structure.potentials(x, w)
    k, edges = theta.shape[1], x[1]
    truth = y[0] if isinstance(y, tuple) else y
    for v, a in product(range(len(theta)), range(k)):
        labels = np.array(truth)
        labels[v] = structure.classes_[a]
        theta[v, a] += lam * structure.loss(y, labels)
    rows, b = [], []
    size = theta.size + tables.size
    place = np.arange(theta.size, size).reshape(tables.shape)
    for v in range(len(theta)):
        rows.append(np.isin(np.arange(size), v * k + np.arange(k)).astype(float))
        b.append(1.0)
    for e, (u, v) in enumerate(edges):
        for a in range(k):
            for own, node in ((place[e, a], u * k + a), (place[e, :, a], v * k + a)):
                row = np.isin(np.arange(size), own).astype(float)
                row[node] = -1.0
                rows.append(row)
                b.append(0.0)
    c = np.append(theta, tables)
    return -linprog(-c, A_eq=np.array(rows), b_eq=b, bounds=(0, None)).fun


@settings(max_examples=12)
@given(graph_cases())
def test_other_graphs_are_decoded_over_the_local_polytope(case):
    structure = case.structure
    for i, (x, y) in enumerate(zip(case.X, case.y, strict=True)):
        for lam in (0.0, 1.0):
            point = structure.loss_augmented_decode(x, y, case.w, lam)
            value = structure.joint_feature(x, point) @ case.w
            value += lam * structure.loss(y, point)
            best = relaxed_value(structure, x, y, case.w, lam)
            assert value == pytest.approx(best, abs=1e-7)
            labelings = case.listed.phi[i] @ case.w + lam * case.listed.loss[i]
            assert value >= labelings.max() - 1e-7
        # No other label of a single node scores more than the predicted one.
        labels = structure.decode(x, case.w)
        score = structure.joint_feature(x, labels) @ case.w
        for v, name in product(range(len(labels)), structure.classes_):
            other = labels.copy()
            other[v] = name
            assert structure.joint_feature(x, other) @ case.w <= score + 1e-9


def test_labels_of_a_fractional_point_are_improved_one_by_one():
    """Three nodes that are to differ, of two labels, as the third one costs more."""
    x = (np.zeros((3, 1)), [[0, 1], [1, 2], [2, 0]])
    structure, (x,), (y,) = fitted([x], [[0, 1, 2]], inference="lp")
    w = np.zeros(structure.n_weights_)
    structure.weight_parts(w)["bias"][2] = -10.0
    w[-1] = -1.0
    point = structure.loss_augmented_decode(x, y, w, 0.0)
    np.testing.assert_allclose(point[:9].reshape(3, 3), [[0.5, 0.5, 0.0]] * 3, atol=1e-9)
    assert sorted(set(structure.decode(x, w))) == [0, 1]


def random_graphs(n=8, k=2, seed=0, sizes=(4, 7), n_edge_features=2):
    """Cycles of nodes with a chord, and features of edges."""
    rng = new_rng(seed)
    X, y = [], []
    for T in rng.integers(*sizes, size=n):
        at = np.arange(T)
        edges = np.vstack([np.column_stack([at, (at + 1) % T]), [[0, T // 2]]])
        X.append(
            (rng.normal(size=(T, 2)), edges,
             rng.uniform(0.1, 1.0, size=(len(edges), n_edge_features))),
        )  # fmt: skip
        y.append(rng.integers(k, size=T))
    y[0][:k] = np.arange(k)
    return X, y


@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_the_optimum_where_neighbors_attract_is_that_of_all_labelings(kind):
    """By cutting planes over the list, where the bounds do not bind."""
    X, y = random_graphs()
    # Neighbors are alike.
    y = [np.sort(y_i) for y_i in y]
    structure = GraphStructure(transition=kind, attractive=True)
    model = BCFWClassifier(structure, C=0.02, tol=1e-8, max_iter=10**5, random_state=0)
    model.fit(X, y)
    lower, upper = model.structure_.weight_bounds()
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    listed = plain_list(X, y, 2, kind)
    lam = 1.0 / (0.02 * len(X))
    primal = listed.primal(model.coef_, lam) / lam
    assert primal * lam == pytest.approx(model.objective_, rel=1e-9)
    assert model.objective_ >= optimum(Problem(structure, X, y, listed), lam) - 1e-9


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_a_relaxed_fit_is_certified_and_bounds_the_hinge_of_labelings(kind, k):
    X, y = random_graphs(n=5, k=k, sizes=(4, 5))
    structure = GraphStructure(transition=kind, inference="lp")
    model = BCFWClassifier(structure, C=0.5, tol=1e-4, max_iter=5000, random_state=0)
    model.fit(X, y)
    assert model.structure_.relaxed and model.dual_gap_ <= 1e-4
    listed = plain_list(X, y, k, kind)
    lam = 1.0 / (0.5 * len(X))
    assert model.objective_ >= listed.primal(model.coef_, lam) - 1e-9
    # No weights have a smaller objective than the dual one, of the labelings or not.
    rng = new_rng(1)
    for scale in (0.0, 0.1, 1.0):
        w = model.coef_ + scale * rng.normal(size=len(model.coef_))
        hinges = [
            relaxed_value(model.structure_, x, y_i, w, 1.0)
            - model.structure_.joint_feature(x, y_i) @ w
            for x, y_i in zip(X, y, strict=True)
        ]
        assert 0.5 * lam * w @ w + np.mean(hinges) >= model.dual_objective_ - 1e-7


@pytest.mark.parametrize(
    ("inference", "k", "is_forest", "settled"),
    [
        ("auto", 3, False, "messages"),
        ("messages", 3, False, "messages"),
        ("expansion", 3, False, "expansion"),
        ("lp", 3, False, "lp"),
        ("auto", 2, False, "flow"),
        ("lp", 2, False, "flow"),
        ("auto", 3, True, "forest"),
        ("lp", 3, True, "forest"),
    ],
)
def test_a_structure_says_how_its_graphs_are_decoded(inference, k, is_forest, settled):
    X, y = random_graphs(k=k)
    if is_forest:
        X = [(x, edges[:2], z[:2]) for x, edges, z in X]
    structure, X, y = fitted(X, y, inference=inference)
    assert structure.inference_ == settled
    assert structure.relaxed == (settled != "forest")
    # Only linear programs are asked in Python.
    assert (type(structure.make_oracle(X, y)) is GraphOracle) == (settled != "lp")


def test_many_labels_on_cycles_need_no_linear_program_by_default(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    X, y = random_graphs(k=4, sizes=(5, 7))
    model = BCFWClassifier("graph", C=0.05, tol=0.01, random_state=0).fit(X, y)
    assert model.structure_.inference_ == "messages" and model.dual_gap_ <= 0.01
    assert [len(labels) for labels in model.predict(X)] == [len(y_i) for y_i in y]
    with pytest.raises(ImportError, match="Linear programs need HiGHS"):
        model.set_params(structure=GraphStructure(inference="lp")).fit(X, y)


@pytest.mark.parametrize("inference", ["messages", "expansion"])
@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_messages_bound_all_labelings_and_the_relaxation(kind, inference):
    rng, n_exact = new_rng(0), 0
    X, y = random_graphs(n=5, k=3, sizes=(3, 6))
    structure, X, y = fitted(X, y, transition=kind, inference=inference)
    oracle = structure.make_oracle(X, y)
    for i, (x, y_i) in enumerate(zip(X, y, strict=True)):
        w = rng.normal(size=structure.n_weights_)
        listed = plain_list([x], [y_i], 3, kind)
        for lam in (0.0, 1.0):
            labels, score, loss, bound = Probe(oracle, i, w).best(lam)
            values = listed.values(0, w, lam)
            found = values[listed.labelings[0].index(tuple(labels.tolist()))]
            assert score + lam * loss == pytest.approx(found, abs=1e-9)
            assert bound >= values.max() - 1e-9
            truth = structure.joint_feature(x, y_i) @ w
            assert bound >= relaxed_value(structure, x, y_i, w, lam) - truth - 1e-7
            # The truth is one of them.
            assert found >= -1e-9
            n_exact += found >= values.max() - 1e-9
    assert n_exact > 0


@pytest.mark.parametrize("inference", ["messages", "expansion"])
@pytest.mark.parametrize("search", ["bisecting", "binary", "sarawagi"])
def test_searches_by_messages_bound_all_labelings(search, inference):
    """With what the bounds leave open beyond the labelings found."""
    rng = new_rng(0)
    X, y = random_graphs(n=10, k=3, sizes=(3, 6))
    structure, X, y = fitted(X, y, transition="directed", inference=inference)
    oracle = structure.make_oracle(X, y)
    for i, (x, y_i) in enumerate(zip(X, y, strict=True)):
        w = rng.normal(size=structure.n_weights_)
        listed = plain_list([x], [y_i], 3, "directed")
        violations = (1.0 + listed.values(0, w, 0.0)) * listed.loss[0]
        found = find_most_violating(oracle, i, w, search=search, slack=0.1)
        assert found.value <= violations.max() + 1e-9
        assert found.bound >= violations.max() - 1e-9


@given(graph_cases(k=3))
@some
def test_no_change_of_any_nodes_to_one_label_gains_after_expansion(case):
    """Where neighbors attract."""
    structure = clone(case.structure).set_params(
        inference="expansion", transition="potts"
    )
    structure.fit(case.X, case.y, classes=case.structure.classes_)
    w = np.resize(case.w, structure.n_weights_)
    w[-structure.n_edge_features_ :] = abs(w[-structure.n_edge_features_ :])
    for x in case.X:
        x = (x[0], x[1], abs(x[2]))
        found = structure.decode(x, w)
        score = structure.joint_feature(x, found) @ w
        for label, change in product(
            structure.classes_, product([0, 1], repeat=len(found))
        ):
            other = np.where(np.array(change, dtype=bool), label, found)
            assert structure.joint_feature(x, other) @ w <= score + 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", ["messages", "expansion"])
@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_a_fit_by_messages_is_certified_for_the_labelings(kind, inference):
    X, y = random_graphs(k=3, sizes=(4, 6))
    model = BCFWClassifier(
        GraphStructure(transition=kind, inference=inference),
        C=0.5,
        tol=1e-3,
        max_iter=100,
        random_state=0,
    ).fit(X, y)
    listed = plain_list(X, y, 3, kind)
    lam = 1.0 / (0.5 * len(X))
    assert model.objective_ >= listed.primal(model.coef_, lam) - 1e-9
    assert model.dual_gap_ == pytest.approx(model.objective_ - model.dual_objective_)
    best = optimum(Problem(model.structure_, X, y, listed), lam)
    assert model.dual_objective_ <= best + 1e-9 <= model.objective_ + 2e-9
    assert all(set(labels) <= {0, 1, 2} for labels in model.predict(X))


def test_a_fit_ends_where_only_the_bounds_are_left():
    X, y = random_graphs(k=3, sizes=(4, 6))
    structure = GraphStructure(transition="directed", inference="expansion")
    model = BCFWClassifier(structure, C=0.5, tol=1e-3, max_iter=10**4, random_state=0)
    with pytest.warns(ConvergenceWarning, match="upper bounds on the other labelings"):
        model.fit(X, y)
    assert model.n_iter_ < 1000 and model.dual_gap_ > 1e-3
    # What it finds is violated by no more.
    oracle = model.structure_.make_oracle(*model.structure_.check_data(X, y))
    found = 0.0
    for i in range(len(X)):
        _, score, loss, _ = Probe(oracle, i, model.coef_).best(1.0)
        found += (score + loss) / len(X)
    primal = 0.5 / (0.5 * len(X)) * model.coef_ @ model.coef_ + found
    assert primal - model.dual_objective_ <= 1e-3 + 1e-9


@pytest.mark.parametrize("inference", ["messages", "expansion"])
def test_the_best_labels_of_an_image_of_many_labels_are_found(inference):
    """Which one node at a time does not."""
    rng = new_rng(0)
    truth = np.repeat(np.arange(6), 100).reshape(20, 30)
    features = np.eye(6)[truth.ravel()] + 0.4 * rng.normal(size=(600, 6))
    structure = GraphStructure(inference=inference)
    X, y = structure.check_data([(features, grid_edges((20, 30)))], [truth.ravel()])
    structure.fit(X, y)
    w = np.concatenate([np.eye(6).ravel(), np.zeros(6), [0.3]])
    labels, score, _, bound = Probe(structure.make_oracle(X, y), 0, w).best(0.0)
    # Scores are those above the true labeling.
    assert score <= bound + 1e-9
    if inference == "messages":
        # To less than what one node is worth.
        assert bound <= score + 0.5
    else:
        # No labeling costs more than twice what the best does (Boykov, Veksler and Zabih
        # 2001, theorem 6.1), where a cost is what is lacking of a bound of all scores.
        edges, known = grid_edges((20, 30)), truth.ravel()
        true_score = features[np.arange(600), known].sum()
        true_score += 0.3 * (known[edges[:, 0]] == known[edges[:, 1]]).sum()
        most = features.max(axis=1).sum() + 0.3 * len(edges) - true_score
        assert most - score <= 2.0 * (most - bound) + 1e-9
    assert (features.argmax(axis=1) == truth.ravel()).mean() < 0.93
    assert (labels == truth.ravel()).mean() > 0.97
    np.testing.assert_array_equal(structure.decode(X[0], w), labels)


def test_bounds_of_the_structure_and_of_the_user_both_hold():
    X, y = random_graphs()
    structure = GraphStructure(attractive=True)
    model = BCFWClassifier(
        structure, C=10.0, random_state=0, solver_options={"coef_bounds": (-1.0, 0.25)}
    )
    with_user = model.fit(X, y)
    assert with_user.structure_.weight_parts(with_user.coef_)["transition"].min() >= 0.0
    assert with_user.coef_.min() >= -1.0 and with_user.coef_.max() <= 0.25
    with pytest.raises(ValueError, match="lower bound above the upper one"):
        model.set_params(solver_options__coef_bounds=(-2.0, -1.0)).fit(X, y)


class Narrow(GraphStructure):
    """All weights within one half."""

    def weight_bounds(self):
        return np.full(self.n_weights_, -0.5), np.full(self.n_weights_, 0.5)


def test_a_path_knows_bounds_of_0_alone():
    X, y = random_graphs()
    with pytest.raises(ValueError, match="a path, unless they are 0 or infinite"):
        bcfw_path(X, y, structure=Narrow())
    search = BCFWClassifierCV(GraphStructure(attractive=True), Cs=3, cv=2, random_state=0)
    search.fit(X, y)
    assert search.structure_.weight_parts(search.coef_)["transition"].min() >= 0.0


@pytest.mark.parametrize("heuristic", [False, True])
def test_a_path_keeps_to_the_bounds_and_to_its_promise(heuristic):
    X, y = random_graphs(n=12)
    structure = GraphStructure(transition="symmetric", attractive=True)
    path = bcfw_path(
        X, y, structure=structure, eps=0.05, min_lambda=1e-3, heuristic=heuristic,
        random_state=0,
    )  # fmt: skip
    lower, upper = (
        GraphStructure(transition="symmetric", attractive=True)
        .fit(*structure.check_data(X, y))
        .weight_bounds()
    )
    for lam in [*np.exp(new_rng(0).uniform(np.log(path.lambdas[-1]), 1.0, size=4)), 3.0]:
        w = path.coef(lam)
        assert (w >= lower).all() and (w <= upper).all()
        model = BCFWClassifier(
            structure, C=1.0 / (lam * len(X)), tol=1e-4, max_iter=10**4, random_state=0
        ).fit(X, y)
        oracle = model.structure_.make_oracle(*model.structure_.check_data(X, y))
        hinges = []
        for i in range(len(X)):
            _, score, loss, _ = Probe(oracle, i, w).best(1.0)
            hinges.append(score + loss)
        objective = 0.5 * lam * w @ w + np.mean(hinges)
        assert objective >= model.dual_objective_ - 1e-9
        if not heuristic:
            assert objective - model.objective_ <= 0.05 + 1e-9


def test_searches_that_a_graph_does_not_have_are_not_advised():
    X, y = random_graphs()
    model = SlackRescaledSSVM(
        GraphStructure(), solver_options={"search": "bisecting"}, tol=1e-9, max_iter=5,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="is inexact.* use a larger tol"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="'bisecting', 'binary', 'sarawagi'"):
        SlackRescaledSSVM(GraphStructure()).fit(X, y)


def test_edges_given_twice_count_twice_and_nodes_without_edges_are_nodes():
    structure = GraphStructure(transition="directed")
    X = [(np.eye(4)[:, :2], [[0, 1], [0, 1], [1, 0]])]
    (x,), y = structure.check_data(X, [[0, 1, 1, 0]])
    structure.fit([x], y)
    parts = structure.weight_parts(structure.joint_feature(x, y[0]))
    np.testing.assert_array_equal(parts["transition"][0], [[0, 2], [1, 0]])
    np.testing.assert_array_equal(parts["bias"], [2, 2])


@pytest.mark.parametrize("kind", ["graph", "tree", "chain"])
def test_what_a_node_weighs_counts_in_loss_and_score(kind):
    X, y = random_graphs()
    if kind != "graph":
        X = [x[0] if kind == "chain" else (x[0], np.arange(len(x[0])) - 1) for x in X]
    weights = [np.where(np.arange(len(y_i)) == 0, 0.0, 2.0) for y_i in y]
    Y = list(zip(y, weights, strict=True))
    changed = [(np.append(1 - y_i[:1], y_i[1:]), w) for y_i, w in Y]
    model = BCFWClassifier(kind, C=1.0, tol=1e-3, random_state=0).fit(X, Y)
    predictions = model.predict(X)
    right = np.concatenate(
        [(p == y_i)[1:] for p, y_i in zip(predictions, y, strict=True)]
    )
    assert model.score(X, Y) == pytest.approx(right.mean())
    assert model.score(X, changed) == pytest.approx(right.mean())
    for (y_i, w), other in zip(Y, changed, strict=True):
        assert model.structure_.loss((y_i, w), other[0]) == 0.0


def test_a_hundred_thousand_nodes_are_trained_on():
    rng = new_rng(0)
    truth = np.zeros((320, 320), dtype=int)
    truth[40:200, 60:250] = 1
    features = truth.reshape(-1, 1) + rng.normal(size=(320 * 320, 1))
    X, y = [(features - 0.5, grid_edges((320, 320)))], [truth.ravel()]
    structure = GraphStructure(attractive=True)
    model = BCFWClassifier(structure, C=100.0, tol=0.02, random_state=0).fit(X, y)
    # A threshold alone gets 69 % of them right.
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("connectivity", [4, 8])
def test_grid_edges_are_those_of_neighbors(connectivity):
    edges = grid_edges((3, 4), connectivity)
    places = np.array(list(product(range(3), range(4))))
    pairs = {
        (a, b)
        for a, b in combinations(range(12), 2)
        if np.abs(places[a] - places[b]).sum() == 1
        or (connectivity == 8 and np.abs(places[a] - places[b]).max() == 1)
    }
    assert {tuple(sorted(edge)) for edge in edges.tolist()} == pairs
    assert len(edges) == len(pairs)
    assert grid_edges((1, 1)).shape == (0, 2)


def test_grids_that_are_none_are_refused():
    with pytest.raises(ValueError, match="connectivity must be 4 or 8; got 6"):
        grid_edges((2, 2), 6)
    with pytest.raises(ValueError, match="number of columns of shape must be"):
        grid_edges((2, 0))
    for shape in (4, (1, 2, 3), None, "ab", {2, 3}, np.array(4)):
        with pytest.raises(ValueError, match=r"shape must be \(rows, columns\); got"):
            grid_edges(shape)
    with pytest.raises(TypeError, match="number of rows of shape must be an integer"):
        grid_edges([[1, 2], [3]])


ROWS, EDGES = np.ones((3, 2)), [[0, 1], [1, 2]]


GRAPH, LABELS = (ROWS, EDGES), [0, 1, 1]
OF_EDGES, ATTRACTS = (*GRAPH, np.ones((2, 1))), {"attractive": True}


def with_of_edges(edge_features, message):
    return [OF_EDGES, (*GRAPH, edge_features)], LABELS, ATTRACTS, message


def with_labels(y, message):
    return [GRAPH] * 2, y, {}, message


@pytest.mark.parametrize(
    ("X", "y", "parameters", "message"),
    [
        *(
            ([GRAPH, x], LABELS, {}, message)
            for x, message in [
                (ROWS, r"X\[1\] must be a tuple \(features, edges\) or .* got ndarray"),
                ((ROWS,), r"X\[1\] must be a tuple.* got tuple of 1 items"),
                ((ROWS[0], EDGES), r"X\[1\]\[0\] must be 2-D"),
                ((ROWS * np.nan, EDGES), r"X\[1\]\[0\] contains NaN"),
                ((ROWS, [[0, 3]]), r"X\[1\]\[1\] has the edge \(0, 3\); .* 0 to 2"),
                ((ROWS, [[0, -1]]), r"has the edge \(0, -1\)"),
                ((ROWS, [[1, 1]]), r"has an edge from node 1 to itself: leave it out"),
                ((ROWS, [0, 1]), r"X\[1\]\[1\] must hold two integers"),
                ((ROWS, [[0.0, 1.0]]), r"must hold two integers.* float64"),
                ((ROWS, [[0, 1], [2]]), r"X\[1\]\[1\] must be an array"),
                (OF_EDGES, r"Either all graphs must have edge features, or"),
            ]
        ),
        with_of_edges(np.ones((3, 1)), r"X\[1\]\[2\] has 3 rows for the 2 edges"),
        with_of_edges(np.ones((2, 4)), r"X\[1\]\[2\] has 4 features.* 1 in X\[0\]\[2\]"),
        with_of_edges(np.ones(2), r"X\[1\]\[2\] must be 2-D"),
        with_of_edges(
            -np.ones((2, 1)), r"X\[1\]\[2\] has the value -1.0: with attractive"
        ),
        with_of_edges(None, r"X\[1\] has none, and X\[0\] has some"),
        with_labels([0, 1], r"y\[1\] has 2 labels for the 3 nodes of X\[1\]\[0\]"),
        with_labels([0.0, 1.0, 2.5], r"y\[1\] has floating-point labels"),
        with_labels((LABELS, [1.0, 1.0]), r"y\[1\]\[1\] must have shape"),
        with_labels((LABELS, [1.0, -1.0, 1.0]), r"y\[1\]\[1\] has the weight -1.0"),
        with_labels((LABELS, [1.0, np.inf, 1.0]), r"y\[1\]\[1\] must be finite"),
        *(
            ([GRAPH] * 2, LABELS, parameters, message)
            for parameters, message in [
                ({"transition": "ising"}, "'transition' parameter of Graph.* must be"),
                ({"inference": "magic"}, "'inference' parameter of Graph.* must be"),
                (
                    dict.fromkeys(["emission", "bias", "transition"], False),
                    "at least one",
                ),
            ]
        ),
    ],
)
def test_what_makes_no_graphs_is_refused(X, y, parameters, message):
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(GraphStructure(**parameters)).fit(X, [LABELS, y])


def test_graphs_in_parts_have_the_optimum_of_graphs_in_memory():
    bag = pytest.importorskip("dask.bag")
    X, y = random_graphs()
    Y = [(y_i, np.arange(1.0, len(y_i) + 1)) for y_i in y]
    model = BCFWClassifier(
        GraphStructure(attractive=True), C=0.1, tol=1e-5, max_iter=10**4, random_state=0
    )
    parts = [bag.from_sequence(items, npartitions=2) for items in (X, Y)]
    far = clone(model).fit(*parts)
    assert_same_optimum(far, clone(model).fit(X, Y), 0.1 * len(X))
    for labels, other in zip(
        far.predict(parts[0]).compute(scheduler="sync"), far.predict(X), strict=True
    ):
        np.testing.assert_array_equal(labels, other)
    wider = [(x, e, np.column_stack([z, z])) for x, e, z in X]
    mixed = bag.from_sequence([*X[:4], *wider[4:]], npartitions=2)
    with pytest.raises(ValueError, match="has 4 features, but there were 2"):
        model.fit(mixed, parts[1])
