"""Tables with linked rows as graphs, in the containers that people have them in."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import BCFWClassifier, CRFClassifier, StackedStructureClassifier
from sklearn_structsvm.preprocessing import linked_items
from sklearn_structsvm.structures import MISSING, GraphStructure


def made(seed=0, n=30):
    """A table with identifiers in no order, and pairs."""
    rng = new_rng(seed)
    ids = [f"p{j}" for j in rng.permutation(n)]
    columns = {"id": ids, "age": rng.normal(size=n), "ill": rng.integers(2, size=n)}
    ends = rng.integers(n, size=(n // 2, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return pd.DataFrame(columns), [(ids[a], ids[b]) for a, b in ends], ends


def as_polars(table):
    return pytest.importorskip("polars").from_pandas(table)


def as_arrow(table):
    return pytest.importorskip("pyarrow").Table.from_pandas(table, preserve_index=False)


@pytest.mark.parametrize("kind", [pd.DataFrame, as_polars, as_arrow])
def test_items_are_the_connected_components(kind):
    table, pairs, ends = made()
    weights = np.arange(2.0 * len(pairs)).reshape(-1, 2)
    listed = pd.DataFrame(pairs, columns=["from", "to"]).assign(a=weights[:, 0])
    listed["b"] = weights[:, 1]
    X, y, order = linked_items(kind(table), kind(listed), id="id", y="ill")
    assert all(type(x[0]) is type(kind(table)) for x in X)
    # The links by rows of the table, with their features, are those of the pairs.
    stops = np.cumsum([len(labels) for labels in y])
    rows = np.split(order, stops[:-1])
    found = [
        (*own[edge].tolist(), *z.tolist())
        for own, (_, edges, features) in zip(rows, X, strict=True)
        for edge, z in zip(edges, features, strict=True)
    ]
    expected = zip(ends.tolist(), weights.tolist(), strict=True)
    assert sorted(found) == sorted((*a, *b) for a, b in expected)
    graph = np.zeros((30, 30))
    graph[tuple(ends.T)] = 1.0
    n_parts, parts = connected_components(graph, directed=False)
    assert len(X) == n_parts
    assert all(len(set(parts[own])) == 1 for own in rows)
    assert all((np.diff(own) > 0).all() for own in rows)
    firsts = [own[0] for own in rows]
    assert firsts == sorted(firsts)
    ages = np.concatenate([np.asarray(x[0]["age"]) for x in X])
    np.testing.assert_array_equal(ages, table["age"].to_numpy()[order])
    np.testing.assert_array_equal(np.concatenate(y), table["ill"].to_numpy()[order])


@pytest.mark.parametrize("features", [False, True])
def test_large_components_are_cut_where_few_links_cross(features):
    """Two cliques with one link between them, a path, a star, and links at random."""
    rng, most = new_rng(5), 12
    cliques = [(a, b) for a in range(20) for b in range(a) if (a < 10) == (b < 10)]
    path = np.column_stack([np.arange(20, 49), np.arange(21, 50)])
    star = np.column_stack([np.full(29, 50), np.arange(51, 80)])
    drawn = rng.integers(80, 120, size=(90, 2))
    ends = np.vstack([cliques, [(3, 15)], path, star, drawn[drawn[:, 0] != drawn[:, 1]]])
    ends = rng.permutation(120)[rng.permutation(ends)]
    pairs = pd.DataFrame(np.vstack([ends, ends[::3, ::-1]]))
    # A pair that is listed twice, in either direction, is one link without features.
    links = {frozenset(pair) for pair in ends.tolist()}
    n_links = len(pairs) if features else len(links)
    pairs = pairs.assign(z=np.arange(len(pairs))) if features else pairs
    table = pd.DataFrame({"id": np.arange(120), "x": rng.normal(size=120)})
    with pytest.warns(UserWarning, match=f"of {n_links} links") as warned:
        X, _, order = linked_items(table, pairs, id="id", max_rows=most)
    kept = sum(len(x[1]) for x in X)
    assert f"max_rows=12 leaves out {n_links - kept} of" in str(warned[0].message)
    rows = np.split(order, np.cumsum([len(x[0]) for x in X])[:-1])
    part = np.empty(120, int)
    for i, (own, x) in enumerate(zip(rows, X, strict=True)):
        part[own] = i
        graph = np.eye(len(own))
        graph[tuple(x[1].T)] = 1.0
        assert len(own) <= most and connected_components(graph, directed=False)[0] == 1
        assert {frozenset(pair) for pair in own[x[1]].tolist()} <= links
        np.testing.assert_array_equal(x[0]["x"], table["x"][own])
    is_within = [len(set(part[list(pair)])) == 1 for pair in links]
    assert features or kept == sum(is_within)
    with pytest.warns(UserWarning, match="leaves out"):
        again, _, same = linked_items(table, pairs, id="id", max_rows=most)
    np.testing.assert_array_equal(order, same)
    for own, other in zip(X, again, strict=True):
        np.testing.assert_array_equal(own[1], other[1])
    whole = linked_items(table, pairs, id="id", max_rows=120)[0]
    assert sum(len(x[1]) for x in whole) == n_links
    # Of the cliques only the link between them is lost.
    both = rng.permutation(120)[[*cliques, (3, 15)]]
    alone = table[table["id"].isin(both.ravel())]
    with pytest.warns(UserWarning, match="leaves out 1 of 91 links"):
        linked_items(alone, both, id="id", max_rows=10)


def test_items_are_groups_and_predictions_find_their_rows():
    table, _, _ = made()
    table["home"] = np.arange(30) % 7
    ids = table["id"].tolist()
    pairs = [(ids[j + 7], ids[j]) for j in range(23)]
    X, y, order = linked_items(table, pairs, id="id", y="ill", group="home")
    assert len(X) == 7 and X[0][0].columns.tolist() == ["age"]
    predicted = [x[0]["age"].to_numpy() for x in X]
    result = np.empty(30)
    result[order] = np.concatenate(predicted)
    np.testing.assert_array_equal(result, table["age"])
    X = [(x[0].to_numpy(), x[1]) for x in X]
    BCFWClassifier(GraphStructure(), max_iter=2, tol=1.0).fit(X, y)


def test_homes_alike_are_learned_as_from_graphs_by_hand():
    """Whether people smoke is noisy to see, and the same in most of a home."""
    rng, n = new_rng(4), 2400
    home = np.repeat(np.arange(n // 4), 4)
    smokes = (rng.random(n // 4)[home] < 0.5) ^ (rng.random(n) < 0.05)
    sign = smokes + 0.7 * rng.normal(size=n)
    table = pd.DataFrame({"id": np.arange(n), "sign": sign, "smokes": smokes.astype(int)})
    cycle = [(0, 1), (1, 2), (2, 3)]
    pairs = [(4 * h + a, 4 * h + b) for h in range(n // 4) for a, b in cycle]
    X, y, order = linked_items(table, pairs, id="id", y="smokes")
    by_hand = [(sign[home == h, None], np.array(cycle)) for h in range(n // 4)]
    model = StackedStructureClassifier(GaussianNB(), CRFClassifier("graph"))
    labels = np.split(smokes.astype(int), n // 4)
    own = clone(model).fit(by_hand[:300], labels[:300])
    coef = model.fit(X[:300], y[:300]).final_estimator_.coef_
    np.testing.assert_array_equal(coef, own.final_estimator_.coef_)
    np.testing.assert_array_equal(order, table["id"])
    alone = model.estimator_.score(table[["sign"]][1200:], table["smokes"][1200:])
    assert model.score(X[300:], y[300:]) == own.score(by_hand[300:], labels[300:])
    assert model.score(X[300:], y[300:]) > alone


def test_rows_without_labels_and_without_links_can_be_learned_from():
    table, pairs, _ = made(1)
    table["ill"] = ["yes" if own else "no" for own in table["ill"]]
    table["ill"] = table["ill"].where(table.index % 3 > 0, None)
    X, y, order = linked_items(table, pairs, id="id", y="ill")
    is_hidden = [label is MISSING for label in np.concatenate(y)]
    np.testing.assert_array_equal(is_hidden, order % 3 == 0)
    final = BCFWClassifier("graph", max_iter=2, tol=1.0)
    model = StackedStructureClassifier(DecisionTreeClassifier(), final, cv=3)
    labels = np.concatenate(model.fit(X, y).predict(X))
    assert len(labels) == len(order) == 30 and set(labels) <= {"yes", "no"}
    # The default takes forests: their sums are exact.
    X, y, _ = linked_items(table, table["id"].to_numpy().reshape(-1, 2), id="id", y="ill")
    forest = StackedStructureClassifier(GaussianNB(), cv=3).fit(X, y).final_estimator_
    assert forest.structure_.inference_ == "forest" and forest.dual_gap_ <= forest.tol
    X.append((X[0][0].iloc[[0, 1, 1]], [(0, 1), (1, 2), (2, 0)]))
    with pytest.raises(ValueError, match=r"final_estimator"):
        clone(model).set_params(final_estimator=None).fit(X, [*y, [MISSING, "no", "no"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "name"}, r"id='name' is not a column of the table. Its columns are 'id'"),
        ({"y": "sick"}, "y='sick' is not a column"),
        ({"group": "home"}, "group='home' is not a column"),
        ({"pairs": [("a", "b"), ("a", "z")]}, "1 of 2 pairs have an identifier that "
         "no row of the table has: 'z', first in row 1. Leave them out"),
        ({"pairs": [(i, "a") for i in range(19)]}, "19 of 19 .*: '0', '1', .* 11 more"),
        ({"pairs": [("b", "b")]}, "1 of 1 pairs link a row to itself: 'b'"),
        ({"max_rows": 0}, "max_rows must be at least 1"),
        ({"pairs": [("a",)]}, r"pairs must have two columns.*\(1, 1\)"),
        ({"pairs": ["ab"]}, "pairs must have two columns"),
        ({"ids": ["a", "b", "a"]}, "The identifier 'a' occurs in rows 0 and 2"),
        ({"ids": ["a", None, "b"]}, "Row 1 of the table has no 'id'"),
        ({"ids": ["a", pd.NA, "b"]}, "Row 1 of the table has no 'id'"),
        ({"group": "x", "pairs": [("a", "b"), ("b", "c")]}, "Row 1 of pairs links rows "
         "of different groups: 'x' is 0 and 1"),
        ({"pairs": pd.DataFrame({"a": ["a"], "b": ["b"], "z": ["far"]})}, "Column 2 of "
         "pairs must hold numbers"),
    ],
)  # fmt: skip
def test_mistakes_are_named(change, message):
    table = pd.DataFrame({"id": change.pop("ids", list("abc")), "x": [0, 0, 1]})
    options = {"pairs": [("a", "b")], "id": "id"} | change
    with pytest.raises(ValueError, match=message):
        linked_items(table, **options)
    with pytest.raises(TypeError, match="table must be a data frame"):
        linked_items(np.ones((3, 2)), [], id="id")
