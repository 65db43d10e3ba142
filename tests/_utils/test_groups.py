"""Groups that are too small are pooled."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng

from sklearn_structsvm._utils.groups import Groups


def pooled(features, min_size, used=None, **options):
    n = len(features)
    groups = Groups(features, n)
    groups.pool(min_size, np.ones(n, dtype=bool) if used is None else used, **options)
    return groups


def by_hand(rows, min_size, used, kept=()):
    """The name of each row's group: values of each column, then combinations."""
    rows = [list(row) for row in rows]
    for j in range(len(rows[0])):
        sizes = Counter(row[j] for row, u in zip(rows, used, strict=True) if u)
        for row in rows:
            row[j] = row[j] if sizes[row[j]] >= min_size else "other"
    rows = [tuple(row) for row in rows]
    sizes = Counter(row for row, u in zip(rows, used, strict=True) if u)
    for i, row in enumerate(rows):
        if sizes[row] < min_size:
            rows[i] = tuple(v if j in kept else "other" for j, v in enumerate(row))
    return rows


def draw(rng, *numbers, n=300):
    """Columns of this many values, of which the last ones are rare."""
    columns = []
    for k in numbers:
        p = 0.6 ** np.arange(k)
        columns.append(rng.choice([f"v{i}" for i in range(k)], size=n, p=p / p.sum()))
    return np.column_stack(columns)


@pytest.mark.parametrize("kept", [(), (0,), ("second",)])
def test_groups_are_those_that_are_pooled_by_hand(kept):
    rng = new_rng(0)
    table = pd.DataFrame(draw(rng, 6, 4), columns=["first", "second"])
    used = rng.random(len(table)) < 0.9
    places = [{"second": 1}.get(k, k) for k in kept]
    expected = by_hand(table.to_numpy(), 20, used, places)
    groups = pooled(table, 20, used, kept=kept)
    assert [groups.names[code] for code in groups.codes] == expected
    assert set(groups.names) == set(expected)
    # Other rows, and columns in another order, find the same groups.
    rows = rng.permutation(len(table))
    codes = groups.encode(table.iloc[rows, ::-1], len(rows))
    np.testing.assert_array_equal(codes, groups.codes[rows])


def test_one_column_is_pooled_by_its_values():
    rng = new_rng(1)
    values = draw(rng, 8)[:, 0]
    used = np.ones(len(values), dtype=bool)
    expected = [name for (name,) in by_hand(values[:, None], 25, used)]
    groups = pooled(values, 25)
    assert [groups.names[code] for code in groups.codes] == expected
    assert groups.names == [*sorted(set(expected) - {"other"}), "other"]
    sizes = Counter(values.tolist())
    assert {name: size for name, size, _ in groups.pooled} == {
        name: size for name, size in sizes.items() if size < 25
    }
    np.testing.assert_array_equal(groups.encode(values, len(values)), groups.codes)


def test_names_stay_what_they_are_beside_the_pooled_group():
    groups = pooled([10] * 5 + [2] * 4 + [3, 4], 3)
    assert groups.names == [2, 10, "other"]
    assert groups.encode([3, 10, 4, 2], 4).tolist() == [2, 1, 2, 0]
    # A group that is named like the pooled one becomes part of it.
    groups = pooled(["a"] * 5 + ["other"] * 4 + ["b"], 3)
    assert groups.names == ["a", "other"]
    assert [name for name, *_ in groups.pooled] == ["b"]
    assert groups.encode(["b", "other", "a"], 3).tolist() == [1, 1, 0]
    features = draw(new_rng(2), 3, 2)
    plain, groups = Groups(features, len(features)), pooled(features, 1)
    assert groups.names == plain.names and not groups.pooled
    np.testing.assert_array_equal(groups.codes, plain.codes)


def test_new_combinations_are_known_by_their_pooled_values():
    rows = [("f", "x")] * 4 + [("m", "x")] * 4 + [("f", "y")] * 3
    rows += [("m", "z")] * 2 + [("m", "v")] + [("f", "v")]
    groups = pooled(np.array(rows), 3)
    assert groups.names == [
        ("f", "x"), ("f", "y"), ("m", "x"), ("m", "other"), ("other", "other"),
    ]  # fmt: skip
    # No example had the first of these.
    new, old, rare = groups.encode(np.array([("f", "z"), ("f", "v"), ("m", "v")]), 3)
    assert groups.names[rare] == ("m", "other")
    assert groups.names[old] == groups.names[new] == ("other", "other")
    for unknown in (("m", "u"), ("m", "y")):
        with pytest.raises(ValueError, match="did not occur in fit"):
            groups.encode(np.array([unknown]), 1)


def test_there_must_be_a_group_that_is_large_enough():
    with pytest.raises(ValueError, match="min_group_size=3 .* largest one has 2"):
        pooled(["a", "b", "a"], 3)
    table = pd.DataFrame({"sex": ["f", "m"] * 3, "age": range(6)})
    with pytest.raises(ValueError, match="column 'age' of sensitive_features"):
        pooled(table, 2)
    rows = np.array([("f", "x"), ("f", "y"), ("m", "x"), ("m", "y")])
    with pytest.raises(ValueError, match="All groups of sensitive_features"):
        pooled(rows, 2)
    assert pooled(rows, 2, kept=(0,)).names == [("f", "other"), ("m", "other")]


def test_combinations_are_not_pooled_if_each_column_is_counted_by_itself():
    rows = np.array([("f", "x")] * 3 + [("m", "y")] * 3 + [("f", "y")])
    assert not pooled(rows, 2, kept=(0, 1), combined=False).pooled
    with pytest.raises(ValueError, match=r"such as \('f', 'y'\), cannot be pooled"):
        pooled(rows, 2, kept=(0, 1))
