"""The compiled path from names of features to the rows of a matrix."""

import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from sklearn_structsvm._utils._vocabulary import Vocabulary, tidy_rows
from sklearn_structsvm._utils.tokens import TokenVectorizer
from tests._seeds import new_rng

# Texts of one, two and four bytes a character.
LETTERS = ["a", "b", "é", "ж", "漢", "😀"]


def random_names(rng, n):
    lengths = rng.integers(60, size=n)
    return ["".join(rng.choice(LETTERS, size=length)) for length in lengths]


@pytest.mark.parametrize("n_known", [0, 1, 6, 5000])
def test_columns_are_those_of_the_dict(n_known):
    rng = new_rng()
    known = random_names(rng, n_known)
    columns = {name: j for j, name in enumerate(dict.fromkeys(known))}
    # Copies of the known names, beside others that are mostly unknown.
    names = ["".join([*name]) for name in known] + random_names(rng, 5000)
    rng.shuffle(names)
    found = Vocabulary(columns).columns_of(iter(names))
    assert found.dtype == np.intc
    assert found.tolist() == [columns.get(name, -1) for name in names]
    assert Vocabulary(columns).columns_of([]).shape == (0,)


@pytest.mark.parametrize("others", [[], [2, ("b", 1), np.str_("d")]])
def test_names_are_those_that_are_equal(others):
    columns = {name: j for j, name in enumerate(["a", "c", *others])}
    names = [np.str_("a"), 2, 2.0, True, None, ("b", 1), "d", np.str_("c"), b"a"] * 20
    vocabulary = Vocabulary(columns)
    assert vocabulary.is_plain == (not others)
    found = vocabulary.columns_of(names)
    assert found.tolist() == [columns.get(name, -1) for name in names]
    with pytest.raises(TypeError, match="unhashable"):
        vocabulary.columns_of(["a", ["c"]])


def rows_by_definition(columns, tokens):
    """Pairs of a column and a count, sorted, of each token."""
    names = [[token] if isinstance(token, str) else token for token in tokens]
    known = [[columns[name] for name in own if name in columns] for own in names]
    return [sorted(Counter(own).items()) for own in known]


@pytest.mark.parametrize("most", [4, 30, 100])
def test_rows_are_those_of_the_names_of_each_token(most):
    rng = new_rng()
    names = ["".join([*name]) for name in random_names(rng, 40)]
    columns = {name: j for j, name in enumerate(rng.permutation(names[:30]).tolist())}
    vocabulary = Vocabulary(columns)
    for _ in range(20):
        tokens = [rng.choice(names, rng.integers(most)).tolist() for _ in range(12)]
        tokens += [tuple(tokens[0]), names[0], names[39], [], ()]
        rng.shuffle(tokens)
        data, indices, indptr, is_tidy = vocabulary.rows_of(tokens)
        assert is_tidy or most > 64
        found = sparse.csr_matrix((data, indices, indptr), (len(tokens), 30))
        found.sum_duplicates()
        rows = [
            list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
            for row in found
        ]
        assert rows == rows_by_definition(columns, tokens)


@pytest.mark.parametrize(
    "token", [{"a": 1.0}, ["a", 1], [np.str_("a")], np.array(["a"]), None, b"a", {"a"}]
)
def test_rows_of_other_tokens_are_left_to_others(token):
    vocabulary = Vocabulary({"a": 0})
    assert vocabulary.rows_of([["a"]] * 40 + [token]) is None
    assert vocabulary.rows_of([token] + [["a"]] * 40) is None
    assert vocabulary.rows_of([]) is None and vocabulary.rows_of([[], ()]) is None
    assert Vocabulary({"a": 0, 1: 1}).rows_of([["a"]]) is None
    with pytest.raises(TypeError, match="integer"):
        Vocabulary({"a": "b"})
    with pytest.raises(OverflowError):
        Vocabulary({"a": 2**40})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("longest", [8, 64, 65, 200])
def test_rows_are_those_of_scipy(dtype, longest):
    rng = new_rng()
    lengths = np.append(rng.integers(longest, size=30), longest)
    rng.shuffle(lengths)
    indptr = np.append(0, np.cumsum(lengths))
    columns = rng.integers(-10, 40, size=indptr[-1]).astype(np.intc)
    # Sums of these are exact in any order.
    data = rng.integers(-8, 8, size=indptr[-1]).astype(dtype)
    known = columns >= 0
    ends = np.append(0, np.cumsum(known))[indptr]
    expected = sparse.csr_matrix((data[known], columns[known], ends), (31, 40))
    expected.sum_duplicates()
    is_tidy = tidy_rows(data, columns, indptr)
    assert is_tidy == (longest <= 64)
    n = indptr[-1]
    found = sparse.csr_matrix((data[:n], columns[:n], indptr), (31, 40))
    if is_tidy:
        assert found.has_canonical_format
    else:
        found.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_a_vectorizer_reads_its_vocabulary_as_it_is_now():
    tokens = [["a", "b"], ["c"]]
    vectorizer = TokenVectorizer().fit(tokens)
    before = vectorizer.transform(tokens).toarray()
    copied = pickle.loads(pickle.dumps(vectorizer))
    assert vars(copied).keys() == vars(TokenVectorizer().fit(tokens)).keys()
    np.testing.assert_array_equal(copied.transform(tokens).toarray(), before)
    vectorizer.vocabulary_ = {"a": 1, "b": 2, "c": 0}
    after = vectorizer.transform(tokens).toarray()
    np.testing.assert_array_equal(after, before[:, [2, 0, 1]])
