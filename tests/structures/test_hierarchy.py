"""HierarchicalStructure against enumeration of the sets of leaves."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from _cases import (
    LAMS,
    Case,
    angles,
    candidate_points,
    dag_cases,
    hierarchy_cases,
    list_sets,
    some,
)
from _references import flat_feature, messy_csr
from _seeds import cache_by_seed, new_rng, new_seed
from hypothesis import given, settings
from scipy.optimize import linprog

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_hierarchical
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import HierarchicalStructure

# An inner node with a single child, leaves on three levels, two roots.
FOREST = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("c", "f"), ("g", "h")]
# The leaf z has two parents, and its ancestors are all but y.
DAG = [("r", "p"), ("r", "q"), ("p", "y"), ("p", "z"), ("q", "z"), ("q", "x")]


def most_violating(case, i, one):
    """Largest loss times margin over all sets."""
    return (case.listed.loss[i] * (one + case.listed.values(i, case.w, 0.0))).max()


@cache_by_seed
def deep_forest(with_costs):
    """Twelve leaves: as many labelings as it takes for fronts to be cut by a λ."""
    rng = new_rng(0)
    edges = [(rng.integers(n), n) for n in range(1, 5)]
    edges += [(n % 5, n) for n in range(5, 17)]
    costs = rng.uniform(0.5, 1.5, size=(12, 2)) if with_costs else np.ones((12, 2))
    X, Y = rng.standard_normal((3, 3)), rng.integers(2, size=(3, 12))
    structure = HierarchicalStructure(edges, label_costs=costs).fit(X, Y)
    nodes, leaves = structure.nodes_.tolist(), structure.classes_.tolist()
    listed = list_sets(X, Y, edges, nodes, leaves, costs)
    w = rng.standard_normal(structure.n_weights_)
    return Case.of_rows(structure, X, Y, listed, w)


@pytest.mark.parametrize("one", [1.0, 0.3, 5.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("with_costs", [False, True])
def test_candidates_of_a_deep_forest_hold_the_most_violating_set(with_costs, scale, one):
    case = deep_forest(with_costs)
    case = replace(case, w=scale * case.w)
    oracle = case.oracle()
    for i in range(3):
        _, scores, losses = candidate_points(oracle, i, case.w, one)
        found = (losses * (one + scores)).max()
        assert found == pytest.approx(most_violating(case, i, one), rel=1e-12)
        inferior = (scores >= scores[:, np.newaxis]) & (losses >= losses[:, np.newaxis])
        np.testing.assert_array_equal(inferior, np.eye(len(scores), dtype=bool))


def subset_sums(n_leaves):
    """Every set of leaves has a cost of its own, and that is taken off its score."""
    edges = [("root", f"leaf {i:02}") for i in range(n_leaves)]
    costs = new_rng(0).uniform(0.5, 1.5, size=n_leaves)
    structure = HierarchicalStructure(edges, label_costs=np.column_stack([costs] * 2))
    X, Y = np.ones((1, 1)), np.zeros((1, n_leaves))
    return structure.fit(X, Y).make_oracle(X, Y), np.append(0.0, -costs), costs


def test_costs_whose_sums_all_differ_are_searched():
    oracle, w, costs = subset_sums(14)
    labelings, scores, losses = candidate_points(oracle, 0, w, 14.0)
    sums = np.array(list(product((0, 1), repeat=14))) @ costs
    assert (losses * (14.0 + scores)).max() == pytest.approx((sums * (14 - sums)).max())


def test_too_many_sums_of_costs_are_bounded():
    oracle, w, _ = subset_sums(30)
    for search in ("angular", "exact"):
        found = find_most_violating(oracle, 0, w, search=search, one=30.0)
        # h is 30 less a sum of costs, one of which is nearly 15.
        assert 0.0 <= found.value <= 15.0**2 - 1e-3 < found.bound < 1.01 * 15.0**2


def value_of(case, i, z, lam):
    """⟨w, φ(x, z) - φ(x, y_i)⟩ + lam · loss of a labeling z."""
    x = case.X[[i]].toarray()[0] if hasattr(case.X, "toarray") else case.X[i]
    score = flat_feature(x, z, case.structure.bias_) @ case.w
    score -= case.listed.phi[i][case.listed.truth[i]] @ case.w
    return score + lam * case.structure.loss(case.truth(i), z)


def program(case, i, lam, rays=()):
    """Largest h + lam g of a relaxed labeling by another solver: None where none is.

    `rays` are (a, b) of constraints a h + b g >= 0.
    """
    edges, structure = case.structure.edges, case.structure
    nodes, leaves = structure.nodes_.tolist(), structure.classes_.tolist()
    x = case.X[[i]].toarray()[0] if hasattr(case.X, "toarray") else case.X[i]
    x = np.append(x, structure.bias_) if structure.bias_ else x
    h, g = x @ case.w.reshape(len(x), -1), np.zeros(len(nodes))
    h0, g0 = 1.0 - case.listed.phi[i][case.listed.truth[i]] @ case.w, 0.0
    truth = case.listed.labelings[i][case.listed.truth[i]]
    for leaf, is_true, costs in zip(leaves, truth, structure.label_costs_, strict=True):
        g[nodes.index(leaf)] = -costs[1] if is_true else costs[0]
        g0 += costs[1] if is_true else 0.0
    A, b = [], []
    for parent in {parent for parent, _ in edges}:
        row = np.zeros(len(nodes))
        row[nodes.index(parent)] = 1.0
        for child in [child for above, child in edges if above == parent]:
            row[nodes.index(child)] -= 1.0
            A.append(np.eye(len(nodes))[nodes.index(child)])
            A[-1][nodes.index(parent)] = -1.0
            b.append(0.0)
        A.append(row)
        b.append(0.0)
    for on_h, on_g in rays:
        A.append(-on_h * h - on_g * g)
        b.append(on_h * h0 + on_g * g0)
    result = linprog(-h - lam * g, A, b, bounds=(0, 1))
    return h0 + lam * g0 - result.fun if result.status == 0 else None


@settings(max_examples=12)
@given(hierarchy_cases(inference="lp") | dag_cases())
def test_relaxed_labelings_are_those_of_the_linear_program(case):
    for lam in LAMS:
        for i, item in enumerate(case.items):
            z = case.structure.loss_augmented_decode(item, case.truth(i), case.w, lam)
            value = 1.0 + value_of(case, i, z, lam)
            assert value == pytest.approx(program(case, i, lam), abs=1e-7)
            # No set of leaves is better, and one that is found is the best.
            best = 1.0 + case.listed.values(i, case.w, lam).max()
            assert value >= best - 1e-7
            if np.isin(z, (0, 1)).all():
                assert value == pytest.approx(best, abs=1e-7)


@settings(max_examples=12)
@given(hierarchy_cases(inference="lp") | dag_cases(), angles())
def test_relaxed_labelings_between_two_rays_are_those_of_the_program(case, angle):
    lam, alpha, beta, *strict = angle
    upper = (1.0, 0.0) if np.isinf(alpha) else (alpha, -1.0)
    for i, item in enumerate(case.items):
        z = case.structure.constrained_decode(
            item, case.truth(i), case.w, lam, alpha, beta, *strict
        )
        best = program(case, i, lam, rays=[upper, (-beta, 1.0)])
        if best is None:
            assert z is None
        else:
            assert 1.0 + value_of(case, i, z, lam) == pytest.approx(best, abs=1e-6)


@some
@given(hierarchy_cases(inference="lp") | dag_cases())
def test_leaves_of_at_least_a_half_are_predicted(case):
    scores = case.structure.decision_function(case.X, case.w)
    predicted = case.structure.decode_batch(case.X, case.w)
    np.testing.assert_array_equal(predicted, scores > 0)
    for i in range(case.listed.n):
        # Where the linear program has a set of leaves, no set is better. (A set that
        # is nearly as good may be preferred.)
        if np.isclose(np.abs(scores[i]), 0.5).all():
            values = case.listed.phi[i] @ case.w
            assert values[case.place(i, predicted[i])] >= values.max() - 1e-5


@some
@given(dag_cases())
def test_predictions_do_not_depend_on_those_before(case):
    together = case.structure.decode_batch(case.X, case.w)
    backwards = case.structure.decode_batch(case.X[::-1], case.w)[::-1]
    np.testing.assert_array_equal(together, backwards)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("forest", "dense"),
        ("forest", "csr"),
        ("lp on a forest", "dense"),
        ("graph", "csr"),
    ],
)
def test_training_reaches_its_tol(kind, layout):
    n_extra_edges = 4 if kind == "graph" else 0
    X, Y, edges = make_hierarchical(
        30, n_features=5, n_nodes=9, n_leaves=5, n_extra_edges=n_extra_edges,
        random_state=new_seed(0),
    )  # fmt: skip
    inference = "lp" if kind.startswith("lp") else "auto"
    structure = HierarchicalStructure(edges, inference=inference)
    given = messy_csr(X) if layout == "csr" else X
    model = BCFWClassifier(
        structure, C=0.1, step="pairwise", tol=1e-3, random_state=0
    ).fit(given, Y)
    assert -1e-9 <= model.dual_gap_ <= 1e-3
    assert model.structure_.inference_ == ("tree" if kind == "forest" else "lp")
    assert model.coef_.shape == (9, 5) and model.intercept_.shape == (9,)
    # The sets' hinge is at most the relaxed one, and equal to it in a forest.
    structure = model.structure_
    nodes, leaves = structure.nodes_.tolist(), structure.classes_.tolist()
    listed = list_sets(X, Y, edges.tolist(), nodes, leaves, np.ones((5, 2)), 1.0)
    w = structure.join_weights(model.coef_, model.intercept_)
    objective = listed.primal(w, 1.0 / (0.1 * 30))
    if kind == "graph":
        assert objective <= model.objective_ + 1e-9
    else:
        assert objective == pytest.approx(model.objective_, abs=1e-8)
    scores = model.decision_function(given)
    assert scores.shape == (30, 5)
    np.testing.assert_array_equal(model.predict(given), scores > 0)
    commonest = np.maximum(Y.mean(axis=0), 1.0 - Y.mean(axis=0)).mean()
    assert (model.predict(given) == Y).mean() > commonest


@pytest.mark.parametrize("inference", ["auto", "lp"])
def test_columns_are_in_the_order_of_the_leaves(inference):
    X = np.eye(4)
    sorted_leaves, other = ["d", "e", "f", "h"], ["h", "e", "f", "d"]
    first = HierarchicalStructure(FOREST, inference=inference).fit(X, np.eye(4))
    second = HierarchicalStructure(FOREST, other, inference).fit(X, np.eye(4))
    assert first.classes_.tolist() == sorted_leaves
    assert second.classes_.tolist() == other
    np.testing.assert_array_equal(first.nodes_, second.nodes_)
    w = new_rng(0).standard_normal(first.n_weights_)
    columns = [sorted_leaves.index(leaf) for leaf in other]
    predicted = first.decode_batch(X, w)
    np.testing.assert_array_equal(second.decode_batch(X, w), predicted[:, columns])


def test_parents_come_before_their_children():
    edges = [("z", "y"), ("y", "x"), ("x", "a"), ("z", "b"), ("y", "b")]
    structure = HierarchicalStructure(edges).fit(np.ones((1, 1)), np.ones((1, 2)))
    nodes = structure.nodes_.tolist()
    assert sorted(nodes) == ["a", "b", "x", "y", "z"]
    assert all(nodes.index(parent) < nodes.index(child) for parent, child in edges)


@pytest.mark.parametrize(("edges", "has"), [(FOREST, False), (DAG, True)])
def test_only_relaxed_labelings_are_searched_between_rays(edges, has):
    Y = np.ones((1, 3 if has else 4))
    structure = HierarchicalStructure(edges).fit(np.ones((1, 1)), Y)
    assert structure.has_constrained_decode == has
    if not has:
        with pytest.raises(NotImplementedError, match="inference='lp' only"):
            structure.constrained_decode(np.ones(1), Y[0], np.ones(8), 1.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("edges", "leaves", "message"),
    [
        ([], None, "edges is empty"),
        (np.empty((0, 2), dtype=int), None, "edges is empty"),
        ([(0, 1, 2)], None, r"pairs .* got \(0, 1, 2\) in row 0"),
        ([(0, 1), "ab"], None, "pairs .* got 'ab' in row 1"),
        ([(0, "a")], None, "integers only or by strings only; got 'a' beside 0"),
        ([(0.5, 1.5)], None, "strings only; got 0.5"),
        ([("a", "b"), ("b", "b")], None, "its own child: 'b'"),
        ([(0, 1), (0, 2), (0, 1)], None, r"\(0, 1\) twice, in rows 0 and 2"),
        ([(0, 1), (1, 2), (2, 0)], None, "a cycle; got 0 -> 1 -> 2 -> 0"),
        ([(9, 1), (1, 2), (2, 1), (2, 3)], None, "a cycle; got 1 -> 2 -> 1"),
        (FOREST, ["d", "e", "f", "x"], "leaves has 'x', which is not in edges"),
        (FOREST, ["d", "e", "f", "a"], "'a', which has children, such as 'b'"),
        (FOREST, ["d", "e"], "must contain 'f', 'h', which have no children"),
        (FOREST, ["d", "e", "f", "h", "d"], "leaves has 'd' twice"),
    ],
)
def test_what_is_no_hierarchy_is_refused(edges, leaves, message):
    with pytest.raises(ValueError, match=message):
        HierarchicalStructure(edges, leaves).fit(np.ones((2, 1)), np.ones((2, 4)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, 0]], r"3 leaves of the hierarchy, 'x', 'y', 'z'; got shape \(1, 2\)"),
        ([[1, 0, 1, 0, 0, 1]], r"one column for each of the 3 leaves.*\(1, 6\)"),
        ([1, 0, 1], r"needs a label indicator y .*; got \(3,\)"),
        ([[1, 0, 1], [0, 2, 0]], "0 and 1; got .*2.* in row 1, column 1"),
    ],
)
def test_what_is_no_indicator_of_the_leaves_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(HierarchicalStructure(DAG)).fit(np.ones((len(bad), 1)), bad)


def test_a_long_list_of_leaves_is_broken_off():
    edges = [(0, n) for n in range(1, 100)]
    with pytest.raises(ValueError, match="99 leaves of the hierarchy, 1, .* 7, ...;"):
        HierarchicalStructure(edges).fit(np.ones((1, 1)), np.ones((1, 2)))
