"""SequenceTransformer and split_sequences: any transformer, any container, misuse."""

import pickle
import warnings
import weakref
from collections import Counter
from operator import is_

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from joblib import parallel_config
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.preprocessing import (
    SequenceTransformer,
    SplitMatrix,
    sequences,
    split_sequences,
)
from sklearn_structsvm.structures import ChainStructure

WORDS = ["the", "cat", "dog", "barks", "a"]


def dense(item):
    return item.toarray() if hasattr(item, "toarray") else np.asarray(item)


def draw_lengths(rng):
    return rng.integers(1, 6, size=7)


def cut(rows, lengths):
    ends = np.cumsum(lengths)
    return [rows[end - n : end] for end, n in zip(ends, lengths, strict=True)]


def numbers(rng, n):
    return rng.normal(size=(n, 3))


def frames(rng, n):
    frame = pd.DataFrame(numbers(rng, n), columns=["a", "b", "c"])
    return frame.assign(word=rng.choice(WORDS, size=n))


def words(rng, n):
    return rng.choice(WORDS, size=n).tolist()


def dicts(rng, n):
    return [{"word": word, "length": len(word)} for word in words(rng, n)]


TRANSFORMERS = {
    "scaler": (StandardScaler(), numbers),
    "csr": (StandardScaler(with_mean=False),
            lambda rng, n: sparse.csr_array(numbers(rng, n))),
    "pipeline": (make_pipeline(StandardScaler(), PCA(2)), numbers),
    "dicts": (DictVectorizer(), dicts),
    "dicts, dense": (DictVectorizer(sparse=False), dicts),
    "hasher": (FeatureHasher(2**8), dicts),
    "words": (TfidfVectorizer(analyzer="char"), words),
    "one-hot": (OneHotEncoder(), lambda rng, n: np.array(words(rng, n))[:, np.newaxis]),
    "columns": (make_column_transformer(
                    (StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["word"])
                ),
                frames),
}  # fmt: skip
each = pytest.mark.parametrize("name", TRANSFORMERS)


@each
def test_it_is_the_transformer_of_all_rows(name):
    transformer, draw = TRANSFORMERS[name]
    rng = new_rng(0)
    lengths = draw_lengths(rng)
    rows = draw(rng, lengths.sum())
    X = cut(rows, lengths)
    expected = dense(clone(transformer).fit_transform(rows))
    model = SequenceTransformer(clone(transformer))
    for made in (model.fit_transform(X), model.fit(X).transform(X)):
        assert [item.shape[0] for item in made] == lengths.tolist()
        np.testing.assert_allclose(np.concatenate(list(map(dense, made))), expected)
    again = pickle.loads(pickle.dumps(clone(model).fit(X))).transform(X[1:3])
    np.testing.assert_allclose(dense(again[0]), dense(made[1]))
    if hasattr(model.transformer_, "get_feature_names_out"):
        names = model.get_feature_names_out()
        assert names.tolist() == model.transformer_.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", ["scaler", "dicts", "csr"])
def test_what_comes_out_shares_the_memory_of_one_matrix(name):
    transformer, draw = TRANSFORMERS[name]
    rng = new_rng(0)
    lengths = draw_lengths(rng)
    made = SequenceTransformer(transformer).fit_transform(
        cut(draw(rng, lengths.sum()), lengths)
    )
    for item in made:
        values = item.data if sparse.issparse(item) else item
        first = made[0].data if sparse.issparse(item) else made[0]
        assert values.base is not None
        assert np.shares_memory(values.base, first.base)


def random_token(rng, form):
    """A token and the same as a dict for `DictVectorizer`."""
    names = rng.choice(["a", "b", "c", "d=e", "", "new", "é"], rng.integers(4))
    if form == "strings":
        names = names.tolist()
        return names, dict(Counter(names))
    values = [
        rng.choice(WORDS).item(), float(rng.standard_normal()), int(rng.integers(-2, 3)),
        True, np.float32(0.5), ["x", "y", "x"], ("x",),
    ]  # fmt: skip
    token = {str(name): values[rng.integers(len(values))] for name in names}
    return token, token


@pytest.mark.parametrize("form", ["strings", "dicts", "both"])
def test_it_reads_tokens_as_a_dict_vectorizer_does(form):
    rng = new_rng(4)
    forms = ["strings", "dicts"] if form == "both" else [form]
    for _ in range(20):
        sets = [
            [random_token(rng, rng.choice(forms)) for _ in range(rng.integers(1, 9))]
            for _ in range(2)
        ]
        model, vectorizer = SequenceTransformer(), DictVectorizer()
        train, other = ([token for token, _ in part] for part in sets)
        expected, unseen = ([as_dict for _, as_dict in part] for part in sets)
        (made,) = model.fit_transform([train])
        expected = vectorizer.fit_transform(expected)
        assert type(made) is type(expected)
        np.testing.assert_array_equal(made.toarray(), expected.toarray())
        assert made.has_canonical_format
        names = model.get_feature_names_out().tolist()
        assert names == vectorizer.get_feature_names_out().tolist()
        (made,) = SequenceTransformer().fit([train]).transform([other])
        np.testing.assert_array_equal(
            made.toarray(), vectorizer.transform(unseen).toarray()
        )
        if not names:
            continue
        # What it learned is what scikit-learn's has.
        (made,) = model.transform([train])
        assert model.transformer_.inverse_transform(made) == (
            vectorizer.inverse_transform(vectorizer.transform([d for _, d in sets[0]]))
        )


@pytest.mark.parametrize("form", ["strings", "dicts", "both", "words", "pairs"])
@pytest.mark.parametrize("emission", [True, "both"])
def test_one_sentence_a_call_gets_what_all_at_once_get(form, emission):
    rng = new_rng()

    def draw(n):
        if form == "words":
            return rng.choice([*WORDS, "new"], n).tolist()
        own = {"both": ["strings", "dicts"], "pairs": ["strings"]}.get(form, [form])
        tokens = [random_token(rng, rng.choice(own))[0] for _ in range(n)]
        if form == "pairs":
            return [(token, rng.normal(size=2)) for token in tokens]
        return tokens

    lengths = [*draw_lengths(rng), 1]
    X, X_test = ([draw(n) for n in lengths] for _ in range(2))
    y = [rng.integers(3, size=n) for n in lengths]
    y[0][:], y[-1][0] = 0, 2
    model = SequenceTransformer().fit(X)
    made = model.transform(X_test)
    scores = [rng.normal(size=(n, 3)) for n in lengths]

    def with_scores(items, of):
        return list(zip(items, of, strict=True)) if emission == "both" else items

    crf = CRFClassifier(ChainStructure(emission=emission), random_state=0, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        crf.set_params(solver_options__classes=[0, 1, 2]).fit(
            with_scores(model.transform(X), scores), y
        )
    X_all = with_scores(made, scores)
    allowed = [[None] * (n - 1) + [{0, 1}] for n in lengths]
    calls = {
        "predict": lambda X, own: crf.predict(X),
        "allowed": lambda X, own: crf.predict(X, allowed=own),
        "predict_proba": lambda X, own: crf.predict_proba(X),
        "max_marginals": lambda X, own: crf.max_marginals(X, allowed=own),
        "predict_k_best": lambda X, own: crf.predict_k_best(X, 3)[1],
        "entropy": lambda X, own: crf.entropy(X),
    }
    for name, call in calls.items():
        together = call(X_all, allowed)
        for i, sentence in enumerate(X_test):
            (item,) = model.transform([sentence])
            assert type(item) is type(made[i])
            np.testing.assert_array_equal(dense(item), dense(made[i]))
            (alone,) = call(with_scores([item], scores[i : i + 1]), allowed[i : i + 1])
            if name in ("predict", "allowed"):
                np.testing.assert_array_equal(alone, together[i], err_msg=name)
            else:
                np.testing.assert_allclose(alone, together[i], 1e-9, 1e-9, err_msg=name)


def test_the_global_output_leaves_items_of_tokens_as_they_are():
    with config_context(transform_output="pandas"):
        (item,) = SequenceTransformer().fit_transform([[["a"], ["b"]]])
    assert sparse.issparse(item)


def test_values_that_cannot_be_read_are_named_in_fit_and_transform():
    wrong = {
        "missing value": (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT,
                          np.ma.masked, np.array(None)),
        "only strings can be listed": (["a", 1], [b"a", None], {1}, [0.5], [["a"]]),
        "must be a number, a string": (object(), object),
        "real number|1-D|numbers": (3j, np.array([["a"]])),
    }  # fmt: skip
    good = [[{"f": "x"}], [{"f": 1.0}, {"f": True}]]
    model = SequenceTransformer().fit(good)
    for words, values in wrong.items():
        for value in values:
            X = [[{"f": "x"}], [{"f": 1.0}, {"f": value}]]
            found = []
            for method in (SequenceTransformer().fit, model.transform):
                with pytest.raises((TypeError, ValueError), match=words) as error:
                    method(X)
                assert str(error.value).startswith("X[1][1] ")
                assert "'f'" in str(error.value)
                found.append((type(error.value), str(error.value)))
            assert found[0] == found[1]
    with pytest.raises(ValueError, match=r"^X\[0\]\[0\] has None as 'left:f'"):
        model.transform([[{"left": {"f": None}}]])
    with pytest.raises(ValueError, match=r"^X\[0\]\[0\] has nan as 'new'"):
        model.transform([[{"new": float("nan")}]])


def test_scalars_of_numpy_are_scalars():
    values = {
        1.0: (np.bool_(True), np.array(True), np.array(1), np.float32(1), np.array(1.0)),
        "s": (np.str_("s"), np.array("s"), np.bytes_(b"s"), np.array(b"s"),
              np.array("s", dtype=object)),
    }  # fmt: skip
    for plain, others in values.items():
        model = SequenceTransformer()
        (expected,) = model.fit_transform([[{"f": plain}, {"g": "x"}]])
        for value in others:
            own = SequenceTransformer()
            (found,) = own.fit_transform([[{"f": value}, {"g": "x"}]])
            assert own.transformer_.feature_names_ == model.transformer_.feature_names_
            np.testing.assert_array_equal(found.toarray(), expected.toarray())


@pytest.mark.parametrize(
    "tokens",
    [
        [{"word": "sün", "x": 1.0, "of": {"a": "b"}, "l": ["p", "q"]}, {"word": ""}],
        [["sün", "f=1"], [], ["b"]],
        ["sün", "b"],
    ],
)
def test_bytes_are_utf_8(tokens):
    def encoded(value):
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict):
            return {encoded(key): encoded(own) for key, own in value.items()}
        return list(map(encoded, value)) if isinstance(value, list) else value

    model, other = SequenceTransformer(), SequenceTransformer()
    (expected,) = model.fit_transform([tokens])
    (found,) = other.fit_transform([encoded(tokens)])
    names = model.get_feature_names_out()
    np.testing.assert_array_equal(other.get_feature_names_out(), names)
    for own in (found, model.transform([encoded(tokens)])[0]):
        np.testing.assert_array_equal(own.toarray(), expected.toarray())
    wrong = {"a": b"\xff"} if isinstance(tokens[0], dict) else [b"\xff"]
    for method in (SequenceTransformer().fit, model.transform):
        with pytest.raises(ValueError, match=r"^X\[1\]\[0\] has b'.*not UTF-8"):
            method([tokens, [wrong]])


def test_dicts_in_dicts_and_words_alone_are_features():
    model = SequenceTransformer().fit(
        [[{"next": {"word": "cat", "far": {"n": 2}}, "w": ["a", "b"]}, {"n": 3}]]
    )
    assert model.get_feature_names_out().tolist() == [
        "n",
        "next:far:n",
        "next:word=cat",
        "w=a",
        "w=b",
    ]
    (made,) = SequenceTransformer().fit_transform([["the", "cat", "the"]])
    np.testing.assert_array_equal(made.toarray(), [[0, 1], [1, 0], [0, 1]])


# Columns of the vectors of `vector_tokens`, in the order of their names.
VECTORS = {"left:v": 2, "v": 3, "vector": 12}


def vector_tokens(rng, form, n, dtype=np.float32):
    """Tokens with vectors, and the matrix of their columns made by hand."""
    plain = [random_token(rng, "dicts")[0] for _ in range(n)]
    names = ["vector"] if form == "pairs" else ["left:v", "v"]
    drawn = {name: rng.normal(0, 10, (n, VECTORS[name])).astype(dtype) for name in names}
    # Integers may all be zero, but a vector of zeros stands for none here.
    for own in drawn.values():
        own[~own.any(axis=1), 0] = 1
    if form == "pairs":
        return list(zip(plain, drawn["vector"], strict=True)), plain, drawn
    tokens = []
    for t, token in enumerate(plain):
        own = {}
        # Some tokens lack a vector.
        if rng.random() < 0.7:
            own["v"] = drawn["v"][t]
        else:
            drawn["v"][t] = 0
        if rng.random() < 0.7:
            own["left"] = {"v": drawn["left:v"][t]}
        else:
            drawn["left:v"][t] = 0
        tokens.append({**own, **token} if rng.random() < 0.5 else {**token, **own})
    return tokens, plain, drawn


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("form", ["pairs", "dicts"])
def test_vectors_are_columns_behind_those_of_the_attributes(form, dtype):
    rng = new_rng(7)
    for _ in range(8):
        lengths = [0, *draw_lengths(rng), 0]
        sets = [vector_tokens(rng, form, sum(lengths), dtype) for _ in range(2)]
        model = SequenceTransformer().fit(cut(sets[0][0], lengths))
        vectorizer = DictVectorizer().fit(sets[0][1])
        shares = {name: own.any(axis=1).mean() for name, own in sets[0][2].items()}
        is_dense = {name: form == "pairs" or shares[name] >= 0.5 for name in shares}
        names = sorted(
            (name for name in shares if form == "pairs" or shares[name]),
            key=lambda name: (is_dense[name], name),
        )
        assert model.get_feature_names_out().tolist() == [
            *vectorizer.get_feature_names_out().tolist(),
            *(f"{name}[{k}]" for name in names for k in range(VECTORS[name])),
        ]
        is_single = np.dtype(dtype).itemsize <= 4
        for tokens, plain, drawn in sets:
            made = model.transform(cut(tokens, lengths))
            assert {item.dtype for item in made} == {
                np.dtype(np.float32 if is_single else np.float64)
            }
            assert [item.shape[0] for item in made] == list(lengths)
            expected = np.hstack(
                [vectorizer.transform(plain).toarray(), *(drawn[name] for name in names)]
            ).astype(made[0].dtype)
            rows = np.vstack([item.toarray() for item in made])
            np.testing.assert_array_equal(rows, expected)
            n_dense = sum(VECTORS[name] for name in names if is_dense[name])
            for item in made:
                *rest, last = item.matrices if n_dense else (item, np.empty((0, 0)))
                assert type(last) is np.ndarray and last.shape[1] == n_dense
                assert all(matrix.has_canonical_format for matrix in rest)
        made = SequenceTransformer().fit_transform(cut(sets[0][0], lengths))
        for copied in (clone(model).fit(cut(sets[0][0], lengths)), model):
            again = pickle.loads(pickle.dumps(copied)).transform(cut(sets[0][0], lengths))
            for item, other in zip(again, made, strict=True):
                np.testing.assert_array_equal(item.toarray(), other.toarray())


def test_attributes_of_a_pair_are_all_that_a_token_may_be():
    vector = np.array([0.5, 2.0])
    (made,) = SequenceTransformer().fit_transform(
        [[("the", vector), (["a", "the"], vector), ({"a": 3}, -vector), ({}, vector)]]
    )
    expected = [[0, 1, 0.5, 2], [1, 1, 0.5, 2], [3, 0, -0.5, -2], [0, 0, 0.5, 2]]
    np.testing.assert_array_equal(made.toarray(), expected)
    # Two strings are a list of them, of whatever type.
    (made,) = SequenceTransformer().fit_transform([[("a", np.str_("b"))]])
    assert made.shape == (1, 2)
    # So are arrays of strings.
    model = SequenceTransformer().fit([[{"w": np.array(["a", "b"])}]])
    assert model.get_feature_names_out().tolist() == ["w=a", "w=b"]


def test_vectors_that_fit_had_not_are_left_out():
    model = SequenceTransformer().fit([[{"v": np.ones(2, np.float32)}]])
    (made,) = model.transform([[{"u": np.ones(9), "v": np.array([1, 2])}]])
    np.testing.assert_array_equal(made, [[1, 2]])
    assert made.dtype == np.float32


@pytest.mark.parametrize("n_vectors", [1, 3])
@pytest.mark.parametrize("form", ["dict", "list"])
def test_an_attribute_named_as_a_column_of_a_vector_is_an_unknown_one(form, n_vectors):
    """Whether few tokens or most have the vector, so that it is sparse or dense."""
    tokens = [{"w": "a", "v": np.ones(2)}] * n_vectors + [{"w": "b"}] * (4 - n_vectors)
    model = SequenceTransformer().fit([tokens])
    new = {"dict": {"w": "a", "v[1]": 5.0}, "list": ["w=a", "v[1]"]}[form]
    (made,) = model.transform([[new]])
    np.testing.assert_array_equal(made.toarray(), [[1, 0, 0, 0]])
    (made,) = pickle.loads(pickle.dumps(model)).transform([[new]])
    np.testing.assert_array_equal(made.toarray(), [[1, 0, 0, 0]])


def test_a_transformer_of_split_sequences_sees_all_columns():
    rng = new_rng(9)
    lengths = draw_lengths(rng)
    X = cut(vector_tokens(rng, "pairs", lengths.sum())[0], lengths)
    items = SequenceTransformer().fit_transform(X)
    assert isinstance(items[0], SplitMatrix)
    (whole,) = SequenceTransformer().fit_transform([sum(X, [])])
    expected = MaxAbsScaler().fit_transform(whole.tocsr()).toarray()
    made = make_pipeline(SequenceTransformer(), SequenceTransformer(MaxAbsScaler()))
    made = np.vstack([item.toarray() for item in made.fit_transform(X)])
    np.testing.assert_array_equal(made, expected)


ONE, TWO = np.ones(1), np.ones(2)


@pytest.mark.parametrize(
    "fitted, X, words",
    [(None, [[{"v": TWO}], [], [{}, {"v": ONE}]], r"X\[2\]\[1\].*'v' of length 1.*2"),
     (None, [[("a", TWO), ("b", ONE)]], r"X\[0\]\[1\].*'vector' of length 1.*length 2"),
     ([[{"v": TWO}]], [[], [{"v": ONE}]], r"X\[1\]\[0\].*length 1.*in fit.*length 2"),
     (None, [[("a", ONE)], [("b", ONE), {"b": 1}]], r"X\[1\]\[1\] is no pair"),
     (None, [[{"b": 1}, ("a", ONE)]], r"X\[0\]\[1\] is a pair"),
     ([[("a", ONE)]], [[], [{"a": 1}]], r"X\[1\]\[0\] is no pair"),
     ([[{"a": 1}]], [[("a", ONE)]], r"X\[0\]\[0\] is a pair"),
     (None, [[({}, ONE.astype(str))]], r"X\[0\]\[0\].*does not hold numbers"),
     (None, [[{"v": TWO[:, None]}]], r"X\[0\]\[0\].*shape \(2, 1\) as 'v'.*1-D"),
     (None, [[{"v": TWO, "v[1]": 1}]], r"X\[0\]\[0\].*column 'v\[1\]'.*Rename"),
     (None, [[({"vector": ONE}, ONE)]], r"X\[0\]\[0\] has two vectors 'vector'")],
)  # fmt: skip
def test_vectors_that_are_wrong_are_errors_that_name_the_token(fitted, X, words):
    model = SequenceTransformer()
    if fitted is None:
        for method in (model.fit, model.fit_transform):
            with pytest.raises(ValueError, match=words):
                method(X)
    else:
        with pytest.raises(ValueError, match=words):
            model.fit(fitted).transform(X)


def test_a_list_of_numbers_is_told_to_be_an_array():
    with pytest.raises(TypeError, match="pass an array"):
        SequenceTransformer().fit([[{"v": [0.5, 1.0]}]])


def attributes_of(tokens):
    return [attributes for attributes, _ in tokens]


def vectors_of(tokens):
    return np.array([vector for _, vector in tokens])


UNIONS = {
    "arrays": (StandardScaler(), PCA(2), numbers),
    "sparse": (DictVectorizer(), FeatureHasher(2**4), dicts),
    "dense and sparse": (DictVectorizer(sparse=False), DictVectorizer(), dicts),
    "pairs": (
        make_pipeline(
            FunctionTransformer(attributes_of), DictVectorizer(dtype=np.float32)
        ),
        FunctionTransformer(vectors_of),
        lambda rng, n: vector_tokens(rng, "pairs", n)[0],
    ),
    "pairs, dense": (
        make_pipeline(FunctionTransformer(attributes_of), DictVectorizer(sparse=False)),
        FunctionTransformer(vectors_of),
        lambda rng, n: vector_tokens(rng, "pairs", n)[0],
    ),
}
# Of these, one transformer returns arrays and the other CSR matrices.
SPLIT = "dense and sparse", "pairs"


@pytest.mark.parametrize("weights", [None, [2, 0.5]])
@pytest.mark.parametrize("are_equal", [True, False], ids=["equal", "ragged"])
@pytest.mark.parametrize("name", UNIONS)
def test_a_union_of_them_is_that_of_the_transformers(name, are_equal, weights):
    """Also where all sequences have one length, so that NumPy could stack them."""
    first, second, draw = UNIONS[name]
    rng = new_rng(5)
    lengths = [3] * 4 if are_equal else [0, *draw_lengths(rng), 0]
    rows = draw(rng, sum(lengths))
    X = cut(rows, lengths)
    options = {"n_jobs": 2 if weights else None}
    if weights:
        options["transformer_weights"] = dict(zip("ab", weights, strict=True))

    def union(*of):
        return FeatureUnion([*zip("ab", of, strict=True)], **options)

    of_them = union(*(SequenceTransformer(clone(t)) for t in (first, second)))
    within = SequenceTransformer(union(clone(first), clone(second)))
    with parallel_config("threading"):
        expected = union(clone(first), clone(second)).fit_transform(rows)
        for model in (of_them, within):
            for made in (model.fit_transform(X), model.transform(X)):
                assert [item.shape[0] for item in made] == list(lengths)
                assert {item.dtype for item in made} == {expected.dtype}
                if name in SPLIT and model is of_them:
                    assert {type(item) for item in made} == {SplitMatrix}
                else:
                    kinds = {sparse.issparse(item) for item in made}
                    assert kinds == {sparse.issparse(expected)}
                made = np.concatenate(list(map(dense, made)))
                np.testing.assert_allclose(made, dense(expected), atol=1e-12)
            empty = model.transform([[], []])
            assert [len(item) for item in empty] == [0, 0]


def test_a_union_copies_no_array_beside_csr():
    rng = new_rng(10)
    lengths = [0, *draw_lengths(rng)]
    tokens, vectors = words(rng, sum(lengths)), rng.normal(size=(sum(lengths), 3))
    union = make_union(
        SequenceTransformer(),
        SequenceTransformer(FunctionTransformer(lambda tokens: vectors)),
        SequenceTransformer(CountVectorizer(analyzer="char")),
    )
    items = union.fit_transform(cut(tokens, lengths))
    for item in items[1:]:
        kinds = [sparse.issparse(matrix) for matrix in item.matrices]
        assert kinds == [True, False, True]
        assert np.shares_memory(item.matrices[1], vectors)
    np.testing.assert_array_equal(
        np.concatenate([item.matrices[1] for item in items]), vectors
    )
    names = make_union(SequenceTransformer()).fit(cut(tokens, lengths))
    assert names.get_feature_names_out()[-1] == f"sequencetransformer__{max(tokens)}"
    # What is split already stands beside others as it is.
    pairs = cut(vector_tokens(rng, "pairs", sum(lengths))[0], lengths)
    own = SequenceTransformer().fit_transform(pairs)
    twice = make_union(*(SequenceTransformer() for _ in "ab")).fit_transform(pairs)
    for item, half in zip(twice, own, strict=True):
        np.testing.assert_array_equal(item.toarray(), np.hstack(2 * [half.toarray()]))


@pytest.mark.parametrize(
    "other, words",
    [
        (FunctionTransformer(lambda X: np.ones((len(X), 2))), "1 of the union.*ndarray"),
        (FunctionTransformer(), "1 of the union.*tokens without columns"),
        (FunctionTransformer(lambda X: [np.ones((9, 1))] * len(X)), "different lengths"),
    ],
)
def test_a_union_with_what_is_no_transformer_of_sequences_says_so(other, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make_union(SequenceTransformer(), other).fit_transform([[{"a": 1}], [{"b": 1}]])


def test_what_comes_out_is_a_list_to_numpy():
    made = SequenceTransformer(StandardScaler()).fit_transform(
        [np.eye(2), np.ones((2, 2))]
    )
    assert isinstance(made, list)
    assert np.shape(made) == (2, 2, 2) and np.asarray(made).shape == (2, 2, 2)
    assert np.concatenate(made).shape == np.vstack(made).shape == (4, 2)
    assert np.concatenate([made, made]).shape == (4, 2, 2)
    np.testing.assert_array_equal(np.sum(made, axis=0), made[0] + made[1])
    # Which of these functions FeatureUnion calls depends on the version of scikit-learn.
    for joined in (np.hstack((made, made)), np.concatenate((made, made), axis=1)):
        assert [item.shape for item in joined] == [(2, 4), (2, 4)]


def test_a_transformer_sees_the_labels_of_the_rows():
    rng = new_rng(0)
    lengths = draw_lengths(rng)
    rows = numbers(rng, lengths.sum())
    labels = (rows[:, 1] > 0).astype(int)
    model = SequenceTransformer(SelectKBest(k=1))
    made = model.fit_transform(cut(rows, lengths), cut(labels, lengths))
    np.testing.assert_array_equal(np.concatenate(made), rows[:, [1]])
    # One label for each sequence is none of a row.
    SequenceTransformer(StandardScaler()).fit(cut(rows, lengths), np.zeros(len(lengths)))


def test_frames_come_out_where_they_are_asked_for():
    transformer, draw = TRANSFORMERS["scaler"][0], frames
    rng = new_rng(0)
    lengths = draw_lengths(rng)
    X = cut(draw(rng, lengths.sum())[["a", "b"]], lengths)
    model = SequenceTransformer(clone(transformer)).set_output(transform="pandas")
    made = clone(model).fit(X).transform(X)
    assert [frame.shape for frame in made] == [(n, 2) for n in lengths]
    assert made[0].columns.tolist() == ["a", "b"]
    assert clone(model).fit(X).feature_names_in_.tolist() == ["a", "b"]
    assert model.fit(X).n_features_in_ == 2
    arrays = model.set_output(transform="default").transform(X)
    assert isinstance(arrays[0], np.ndarray)
    with pytest.raises(ValueError, match="sparse=False"):
        SequenceTransformer().set_output(transform="pandas")


def test_a_search_over_a_pipeline_of_dicts():
    rng = new_rng(0)
    lengths = np.full(24, 4)
    tokens = dicts(rng, lengths.sum())
    labels = np.array(["long" if t["length"] > 3 else "short" for t in tokens])
    model = make_pipeline(
        SequenceTransformer(DictVectorizer()),
        BCFWClassifier(ChainStructure(), tol=0.01, random_state=0),
    )
    grid = {
        "sequencetransformer__transformer__sparse": [True, False],
        "bcfwclassifier__C": [1e-3, 1.0],
    }
    search = GridSearchCV(model, grid, cv=3, n_jobs=2)
    with parallel_config("threading"):
        search.fit(cut(tokens, lengths), cut(labels, lengths))
    assert search.best_score_ == 1.0 and search.best_params_["bcfwclassifier__C"] == 1.0
    # A word that no sequence had is no feature.
    unseen = search.predict([[{"word": "owl", "length": 3}, {"length": 5}]])
    without = search.predict([[{"length": 3}, {"length": 5}]])
    assert unseen[0].tolist() == without[0].tolist()


@pytest.mark.parametrize(
    "X, error, words",
    [
        ([], ValueError, "X is empty"),
        (["the", "cat"], TypeError, r"X\[0\] is 'the', a single token.*\[sequence\]"),
        ([{"a": 1}], TypeError, "a single token"),
        ("the cat", TypeError, "list of sequences; got str"),
        (np.zeros((3, 2)), TypeError, r"one ndarray of shape \(3, 2\).*\[X\]"),
        (pd.DataFrame({"a": [1]}), TypeError, "split_sequences"),
        ([[], []], ValueError, "X is empty: at least one sequence with a token"),
        ([np.zeros((2, 2)), [{"a": 1}]], TypeError, r"X\[1\] has type list"),
        (sparse.eye_array(2), TypeError, r"X is one \w+ of shape \(2, 2\).*\[X\]"),
        (np.array(1.0), TypeError, "X must be a list of sequences; got ndarray"),
        (5, TypeError, "X must be a list of sequences; got int"),
        ([np.array(1.0)], TypeError, r"X\[0\] is array\(1\.\), a single token"),
        ([{"a", "b"}], TypeError, r"X\[0\] is {.*}, a single token"),
        ([None], TypeError, r"X\[0\] is None, a single token"),
        ([["a", None]], TypeError, r"^X\[0\]\[1\] is None; it must be a dict"),
        ([["a"], [["b"], 5]], TypeError, r"^X\[1\]\[1\] is 5; it must be a dict"),
        ([[["a"], [["b"]]]], TypeError, r"^X\[0\]\[1\] has the name \['b'\]; names of"),
        ([[(None, np.ones(2))]], TypeError, r"^X\[0\]\[0\] is None; it must be a dict"),
        ([np.arange(3.0)], TypeError, r"^X\[0\]\[0\] is .*0.0.*; it must be a dict"),
        ([np.eye(2)], TypeError, r"takes lists of tokens; .* one ndarray. Pass a trans"),
        ([sparse.eye_array(2)], TypeError, r"takes lists of tokens; .* Pass a transform"),
        ([pd.DataFrame({"a": [1]})], TypeError, r"one DataFrame. Pass a transformer"),
        ([[["a"], [1]]], TypeError, r"^X\[0\]\[1\] has the name 1; names of features"),
    ],
)
def test_what_is_no_list_of_sequences_is_an_error_that_says_what_to_write(
    X, error, words
):
    for method in ("fit", "fit_transform"):
        with pytest.raises(error, match=words):
            getattr(SequenceTransformer(), method)(X)
    if "X is empty" not in words:
        for fitted in (["a", "b"], [["a"], {"b": 2.0}]):
            with pytest.raises((error, ValueError), match=f"{words}|is a pair"):
                SequenceTransformer().fit([fitted]).transform(X)


@pytest.mark.parametrize("y", [None, [0, 1], [[0], [1, 1]]])
def test_labels_that_are_not_one_per_row_are_left_out(y):
    X = [np.eye(2), np.ones((1, 2))]
    seen = []

    class Spy(StandardScaler):
        def fit(self, X, *y):
            seen.append(y)
            return super().fit(X)

    SequenceTransformer(Spy()).fit(X, y)
    SequenceTransformer(Spy()).fit(X, [[0, 1], [2]])
    assert seen[0] == () and seen[1][0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["items", "tokens", "pairs"])
def test_masks_of_vectors_and_items_are_refused(kind):
    hidden = np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]])
    X = {
        "items": [np.eye(2), hidden],
        "tokens": [[{"v": np.ones(2)}], [{"v": hidden[0]}]],
        "pairs": [[("a", np.ones(2))], [("a", hidden[0])]],
    }[kind]
    model = SequenceTransformer(StandardScaler() if kind == "items" else None)
    if kind == "items":
        X[0] = np.ma.masked_array(X[0])
    with pytest.raises(ValueError, match=r"^X\[1\](\[0\] has| is a) masked"):
        model.fit(X)
    model.fit(X[:1])
    with pytest.raises(ValueError, match=r"^X\[1\](\[0\] has| is a) masked"):
        model.transform(X)


def columns(rows):
    return {name: rows[name].to_numpy() for name in ("a", "b")}


TABLES = {
    "frame": lambda rows: rows,
    "array": lambda rows: rows[["a", "b"]].to_numpy(),
    "sparse": lambda rows: sparse.csr_array(rows[["a", "b"]].to_numpy()),
    "list": lambda rows: rows["word"].tolist(),
    "series": lambda rows: rows["word"],
    "polars": lambda rows: pytest.importorskip("polars").DataFrame(columns(rows)),
    "arrow": lambda rows: pytest.importorskip("pyarrow").table(columns(rows)),
}


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("kind", TABLES)
def test_tables_are_cut_by_ids_and_joined_again(kind, is_sorted):
    rng = new_rng(0)
    ids = np.repeat(["z", "b", "q"], [3, 1, 4])
    if not is_sorted:
        ids = rng.permutation(ids)
    order = [*dict.fromkeys(ids.tolist())]
    table = TABLES[kind](frames(rng, len(ids)))
    parts = split_sequences(table, ids)
    assert len(parts) == 3
    for name, part in zip(order, parts, strict=True):
        np.testing.assert_array_equal(dense(part), dense(table)[ids == name])
        assert type(part) is type(table)


def test_a_column_of_ids_is_named_and_left_out():
    rng = new_rng(0)
    frame = frames(rng, 5).assign(sentence=[4, 4, 1, 1, 1])
    parts = split_sequences(frame, "sentence")
    assert [part.shape for part in parts] == [(2, 4), (3, 4)]
    assert "sentence" not in parts[0].columns
    with pytest.raises(ValueError, match="'page' is not a column"):
        split_sequences(frame, "page")
    with pytest.raises(ValueError, match="each of the 5 rows"):
        split_sequences(frame, [1, 2])
    with pytest.raises(ValueError, match="empty"):
        split_sequences([], [])
    for table in (None, 5, np.array(5.0), object(), iter("ab"), {"a": [1]}, "ab"):
        for ids in ([0, 1], "a"):
            with pytest.raises(TypeError, match="^table must be a data frame, an array"):
                split_sequences(table, ids)
    hidden = np.ma.masked_array([[1], [2]], mask=[[False], [True]])
    with pytest.raises(ValueError, match=r"^table is a masked array.*entry \[1, 0\]"):
        split_sequences(hidden, [0, 1])
    with pytest.raises(ValueError, match=r"^ids is a masked array.*entry \[1\]"):
        split_sequences([3, 4], hidden[:, 0])
    with pytest.raises(ValueError, match="^ids must be an array"):
        split_sequences([3, 4], [[0], [1, 2]])
    parts = SequenceTransformer(TRANSFORMERS["columns"][0]).fit_transform(parts)
    assert [part.shape[0] for part in parts] == [2, 3]


@pytest.mark.parametrize(
    ("other", "token", "words"),
    [
        ("b", 3.0, "is 3.0; it must be a dict, a list of strings or a string"),
        ({"b": 1.0}, {None: 1.0}, "has the name None; names of features must be strings"),
        ({"b": 1.0}, {"a": 1j}, "has 1j as 'a'; it must be a real number"),
        ({"b": 1.0}, {"in": {"a": 10**400}}, "has 10.* as 'a'; it must be a real number"),
        (["b"], [["a"]], r"has the name \['a'\]; names of features must be strings"),
        (["b"], ["a", 1], "has the name 1; names of features must be strings"),
        ({"v": np.ones(2)}, {None: np.ones(2)}, "has the name None; names of features"),
    ],
)
def test_a_token_that_cannot_be_read_is_named_with_its_place(other, token, words):
    with pytest.raises(TypeError, match=rf"^X\[1\]\[1\] {words}"):
        SequenceTransformer().fit([[other], [other, token]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_sequences_of_other_columns_are_refused_by_their_place(kind):
    X = [kind(np.ones((2, 3))), kind(np.ones((1, 3))), kind(np.ones((2, 4)))]
    model = SequenceTransformer(StandardScaler(with_mean=False))
    with pytest.raises(ValueError, match=r"^X\[2\] has shape \(2, 4\), but X\[0\] has"):
        model.fit(X)
    with pytest.raises(ValueError, match=r"^X\[0\] has shape \(1, 2, 3\)"):
        model.fit([np.ones((1, 2, 3))])


@pytest.mark.parametrize("y", [3, 1.5, "ab", {"a": 1}])
def test_labels_that_are_no_sequence_are_refused(y):
    with pytest.raises(ValueError, match="^y must be None or a sequence"):
        SequenceTransformer().fit([["a"], ["b"]], y)


def sentences(n, kind):
    rng = new_rng(0)
    forms = {
        "dicts": lambda w: {"word": w, "size": float(len(w)), "in": {"x": w[:1]}},
        "lists": lambda w: [w, w[:1]],
        "strings": str,
        "pairs": lambda w: ({"word": w}, np.full(2, len(w), dtype=np.float32)),
        "rare vectors": lambda w: {"word": w} | ({"v": np.ones(2)} if w == "w7" else {}),
    }
    words = (rng.integers(0, 50, size=m) for m in rng.integers(0, 6, size=n))
    return [[forms[kind](f"w{i}") for i in own] for own in words]


def as_arrays(items):
    return [item.toarray() if hasattr(item, "toarray") else item for item in items]


@pytest.mark.parametrize("kind", ["dicts", "lists", "strings", "pairs", "rare vectors"])
def test_sentences_may_arrive_one_by_one(kind, monkeypatch):
    # Small pieces, so that there are many.
    monkeypatch.setattr(sequences, "MIN_PIECE", 7)
    X, new = sentences(40, kind), sentences(9, kind)
    model, other = SequenceTransformer(), SequenceTransformer()
    expected, found = model.fit_transform(X), other.fit_transform(iter(X))
    names = model.get_feature_names_out()
    later = model.transform(new), other.transform(x for x in new)
    for items, own in ((expected, found), later):
        assert len(items) == len(own) and type(own) is type(items)
        for a, b in zip(as_arrays(items), as_arrays(own), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(other.get_feature_names_out(), names)
    np.testing.assert_array_equal(
        SequenceTransformer().fit(iter(X)).get_feature_names_out(), names
    )


def test_tokens_that_have_arrived_are_not_kept(monkeypatch):
    monkeypatch.setattr(sequences, "MIN_PIECE", 10)

    class Token(dict):
        __hash__, __eq__ = object.__hash__, object.__eq__

    alive, most = weakref.WeakSet(), []

    def arriving():
        for i in range(100):
            tokens = [Token(word=f"w{i}", n=float(j)) for j in range(3)]
            alive.update(tokens)
            yield tokens
            most.append(len(alive))

    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", max_iter=2))
    y = [["a", "b", "a"]] * 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(arriving(), y)
    assert len(model.predict(arriving())) == 100
    assert max(most) <= 40


def test_errors_about_what_arrives_name_the_sequence(monkeypatch):
    monkeypatch.setattr(sequences, "MIN_PIECE", 2)
    good = [[{"a": 1.0}]] * 5
    model = SequenceTransformer().fit(good)
    for item, words in {
        "missing": ([{"a": 1.0}, {"a": None}], r"^X\[5\]\[1\] has None as 'a'"),
        "one token": ("b", r"^X\[5\] is 'b', a single token"),
        "array": (np.eye(2), r"^X\[5\] has type ndarray"),
    }.values():
        for method in (SequenceTransformer().fit, model.transform):
            with pytest.raises((TypeError, ValueError), match=words):
                method(iter([*good, item]))
    for none in ([], [[], []]):
        with pytest.raises(ValueError, match="^X is empty: at least one"):
            SequenceTransformer().fit(iter(none))
        assert len(model.transform(iter(none))) == len(none)
    pairs = [*good, [({"a": 1.0}, np.ones(2))]]
    with pytest.raises(ValueError, match=r"^X\[5\]\[0\] is a pair"):
        SequenceTransformer().fit(iter(pairs))
    scaler = SequenceTransformer(StandardScaler())
    items = [np.eye(2), np.ones((1, 2))]
    for found, own in zip(
        scaler.fit_transform(iter(items)), scaler.transform(iter(items)), strict=True
    ):
        np.testing.assert_array_equal(found, own)


def test_arrow_columns_of_lists_are_lists():
    pa = pytest.importorskip("pyarrow")
    X, y = [["a", "b"], ["b"], []], [["A", "B"], ["B"], []]
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", random_state=0))
    expected = model.fit(X, y).predict(X)
    column = pa.table({"words": X, "tags": y})
    for words, tags in (
        (pa.array(X), pa.array(y)),
        (column["words"], column["tags"]),
        ([pa.array(own, pa.string()) for own in X], y),
    ):
        found = model.fit(words, tags).predict(words)
        assert [own.tolist() for own in found] == [own.tolist() for own in expected]
        assert model.score(words, tags) == 1.0


@pytest.mark.parametrize("library, make", [("polars", "Series"), ("pyarrow", "array")])
def test_columns_may_hold_sequences_of_rows_and_of_labels(library, make):
    column = getattr(pytest.importorskip(library), make)
    X, y = [[[0.0, 1.0], [1.0, 0.5]], [[0.5, 0.0]]], [["a", "b"], ["b"]]
    expected = CRFClassifier("chain", random_state=0).fit(list(map(np.array, X)), y)
    found = CRFClassifier("chain", random_state=0).fit(column(X), column(y))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.score(column(X), column(y)) == expected.score(X, y)


def test_what_should_have_been_split_is_said():
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain"))
    with pytest.raises(TypeError, match=r"^X\[0\] is a generator, .*use list\(seq"):
        model.fit([(word for word in own) for own in [["a"], ["b"]]], [["A"], ["B"]])


RESTS = {
    "edges": lambda n: (np.column_stack([np.arange(n), np.roll(np.arange(n), 1)]),),
    "edge features": lambda n: (
        np.column_stack([np.arange(n - 1), np.arange(1, n)]), np.ones((n - 1, 2))
    ),
    "parents": lambda n: (np.arange(n) - 1,),
    "list of parents": lambda n: ((np.arange(n) - 1).tolist(),),
    "scores": lambda n: (np.ones((n, 3)),),
}  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize("rest", RESTS)
def test_features_are_transformed_in_items_of_all_kinds(rest, form):
    rng = new_rng(0)
    plain = [rng.normal(50, 3, size=(n, 2)) for n in (3, 5, 4)]
    scaler = StandardScaler(with_mean=form is not sparse.csr_array)
    model = SequenceTransformer(scaler)
    rests = [RESTS[rest](len(x)) for x in plain]
    X = [(form(x), *own) for x, own in zip(plain, rests, strict=True)]
    scaled = SequenceTransformer(scaler).fit_transform(list(map(form, plain)))
    for found in (model.fit_transform(X), model.transform(X)):
        for item, x, own in zip(found, scaled, rests, strict=True):
            assert type(item) is tuple and all(map(is_, item[1:], own))
            np.testing.assert_array_equal(*as_arrays([item[0], x]))
    pairs = zip(plain, rests, strict=True)
    nested = [((x, np.ones((len(x), 2))), own) for x, own in pairs]
    for item, x in zip(model.fit_transform(nested), model.transform(plain), strict=True):
        np.testing.assert_array_equal(item[0][0], x)
    empty = (np.zeros((0, 2)), *RESTS["edges"](0))
    assert model.transform([empty])[0][1] is empty[1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["chain", "chain and scores", "graph"])
def test_features_of_edges_are_transformed_too(kind, form):
    rng = new_rng(0)
    lengths = [3, 1, 5, 0, 4]
    nodes = [rng.normal(50, 3, size=(n, 2)) for n in lengths]
    edges = [form(rng.normal(1e6, 3, size=(max(n - 1, 0), 2))) for n in lengths]
    X = list(zip(nodes, edges, strict=True))
    if kind == "graph":
        X = [(x, np.zeros((z.shape[0], 2), int), z) for x, z in X]
    elif kind == "chain and scores":
        X = [((x, np.ones((len(x), 3))), z) for x, z in X]
    scaler = StandardScaler(with_mean=form is np.asarray)
    model = SequenceTransformer(StandardScaler(), edge_transformer=scaler)
    expected = SequenceTransformer(scaler).fit_transform(edges)
    apart = SequenceTransformer(StandardScaler()).fit_transform(X)
    for items in (model.fit_transform(X), model.fit(X).transform(X)):
        for item, given, rows, own in zip(items, X, apart, expected, strict=True):
            np.testing.assert_array_equal(*as_arrays([item[-1], own]))
            pair = (item[0], rows[0])
            if kind == "chain and scores":
                assert item[0][1] is given[0][1]
                pair = (item[0][0], rows[0][0])
            np.testing.assert_array_equal(*pair)
            assert all(map(is_, item[1:-1], given[1:-1]))
    assert model.edge_transformer_.n_features_in_ == 2
    assert clone(model).fit(X[:3]).edge_transformer_.transformer_.n_samples_seen_ == 6
    # An item without edges has as few of them afterwards.
    assert len(as_arrays(model.transform(X[1:2])[0])[-1]) == 0


def test_tokens_have_edges_to_be_transformed_and_items_without_any_are_named():
    rng = new_rng(1)
    y = [rng.integers(2, size=n) for n in (4, 1, 6, 5)]
    X = [([f"w{label}" for label in v], rng.normal(1e6, 1, (len(v) - 1, 1))) for v in y]
    step = SequenceTransformer(edge_transformer=StandardScaler())
    classifier = BCFWClassifier(ChainStructure(edge_features=True), random_state=0)
    model = make_pipeline(step, classifier).fit(iter(X), y)
    assert model.score(X, y) == 1.0
    assert [len(own) for own in model.predict(X[1:2])] == [1]
    with pytest.raises(ValueError, match=r"X\[0\] has no features of edges: with edge_"):
        clone(step).set_params(transformer=StandardScaler()).fit([np.eye(2)])
    with pytest.raises(ValueError, match=r"X\[1\] has no features of edges: with edge_"):
        model[0].transform([X[0], X[0][0]])


def test_graphs_of_tokens_and_of_raw_columns_are_fitted_in_pipelines():
    rng, edges = new_rng(0), RESTS["edge features"](6)[0]
    y = [rng.integers(0, 3, 6) for _ in range(12)]
    raw = [(rng.normal(1e4 + v[:, None], 1, (6, 4)), edges) for v in y]
    words = [([{"word": f"w{label}"} for label in v], edges) for v in y]
    for X, inner in ((raw, StandardScaler()), (words, None)):
        step = SequenceTransformer(inner)
        model = make_pipeline(step, BCFWClassifier("graph", random_state=0)).fit(X, y)
        again = BCFWClassifier("graph", random_state=0).fit(step.fit_transform(X), y)
        np.testing.assert_array_equal(model[-1].coef_, again.coef_)
        assert model.score(X, y) == again.score(step.transform(X), y)
    union = make_union(
        SequenceTransformer(StandardScaler()), SequenceTransformer(MinMaxScaler())
    )
    items = union.fit_transform(raw)
    assert items[0][0].shape == (6, 8) and items[0][1] is edges
