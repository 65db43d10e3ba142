"""Features of words: against plain Python, in all forms of sentences, and in streams."""

import os
import pickle
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.preprocessing import (
    SequenceTransformer,
    SplitMatrix,
    WordFeatures,
    split_sequences,
)
from sklearn_structsvm.preprocessing.feature_tables import FeatureTables

WORDS = "The the cat Cats U.S. 1999 12 well-known naïve Ärger и Он 東京 a x1".split()
PARTS = ["DT", "NN", "NNS", "CD"]


def sentences(rng, n=8, words=WORDS):
    return [rng.choice(words, size=rng.integers(6)).tolist() for _ in range(n)]


def with_parts(rng, X):
    return [[(word, str(rng.choice(PARTS))) for word in x] for x in X]


def rendered(features, X):
    """The names of the features of each word, each as often as its value."""
    names = features.get_feature_names_out()
    return [
        [sorted(np.repeat(names[row.indices], row.data.astype(int))) for row in rows(x)]
        for x in features.transform(X)
    ]


def rows(x):
    return [x[t : t + 1] for t in range(x.shape[0])]


def shape_of(word):
    kinds = [
        "X" if c.isupper() else "x" if c.islower() else "c" if c.isalpha() else c
        for c in word
    ]
    return "".join("d" if c.isdigit() else c for c in kinds)


def short_of(word):
    return re.sub(r"(.)\1+", r"\1", shape_of(word))


def expected(x, affixes=6, window=1, ngrams=2):
    """Names of the default features, one word after another."""
    words = [own if isinstance(own, str) else own[0] for own in x]
    parts = None if x and isinstance(x[0], str) else [own[1] for own in x]

    def at(values, t):
        return "<s>" if t < 0 else "</s>" if t >= len(values) else values[t]

    lower = [re.sub(r"\d", "0", word.lower()) for word in words]
    found = []
    for t in range(len(x)):
        names = []

        def add(d, text, names=names):
            names.append((f"{d:+d}:" if d else "") + text)

        for d in range(-window, window + 1):
            add(d, f"lower={at(lower, t + d)}")
            if not 0 <= t + d < len(x):
                continue
            word, low = words[t + d], lower[t + d]
            if d == 0:
                add(d, f"word={word}")
                for k in range(1, min(affixes, len(word)) + 1):
                    add(d, f"prefix={low[:k]}")
                    add(d, f"suffix={low[-k:]}")
            elif affixes >= 3 and len(low) >= 3:
                add(d, f"suffix={low[-3:]}")
            add(d, f"shape={shape_of(word)}")
            add(d, f"short={short_of(word)}")

        if window:
            for d in (-window - 1, window + 1):
                add(d, f"lower={at(lower, t + d)}")
            if ngrams > 1:
                pair = f"-1:lower={at(lower, t - 1)}|+1:lower={at(lower, t + 1)}"
                names.append(pair)

        def runs(values, name, reach, longest, names=names, t=t):
            for size in range(2, longest + 1):
                for d in range(-reach, reach - size + 2):
                    own = [
                        (f"{k:+d}:" if k else "") + f"{name}={at(values, t + k)}"
                        for k in range(d, d + size)
                    ]
                    names.append("|".join(own))

        runs(lower, "lower", window, ngrams)
        start, shapes = len(names), [short_of(word) for word in words]
        runs(shapes, "short", window, ngrams + (ngrams > 1))
        # There is no shape of the beginning and the end.
        names[start:] = [name for name in names[start:] if "s>" not in name]
        if parts is not None:
            for d in range(-window - 1, window + 2):
                add(d, f"column1={at(parts, t + d)}")
            runs(parts, "column1", window + 1, ngrams + (ngrams > 1))
            for d in range(-window, window + 1):
                for k in range(max(d - 1, -window), min(d + 1, window) + 1):
                    if ngrams > 1:
                        start = f"{d:+d}:" * (d != 0) + f"lower={at(lower, t + d)}|"
                        own = f"column1={at(parts, t + k)}"
                        names.append(start + f"{k:+d}:" * (k != 0) + own)
        found.append(sorted(names))
    return found


def kept(X, **options):
    """Names of the features of these sentences; those of neighbors occur twice."""
    counts = Counter(name for x in X for word in expected(x, **options) for name in word)
    of_neighbors = {name for name in counts if re.match(r"[-+]\d:", name) or "|" in name}
    return {name for name, n in counts.items() if n > (name in of_neighbors)}


@pytest.mark.parametrize(
    "options",
    [{}, {"affixes": 0}, {"window": 2, "ngrams": 3}, {"window": 0}, {"ngrams": 1}],
    ids=str,
)
@pytest.mark.parametrize("has_parts", [False, True])
def test_each_word_has_the_features_that_its_neighborhood_spells(options, has_parts):
    rng = new_rng(1)
    X = [*sentences(rng), WORDS[:3]]
    X = with_parts(rng, X) if has_parts else X
    features = WordFeatures(**options)
    made = features.fit_transform(X)
    names = kept(X, **options)
    spelled = [expected(x, **options) for x in X]
    spelled = [[[n for n in own if n in names] for own in words] for words in spelled]
    assert rendered(features, X) == spelled
    for own, again in zip(made, features.transform(X), strict=True):
        assert own.dtype == np.float32 and (own != again).nnz == 0
        # The columns of each row rise, as it says.
        parts = own.data, own.indices, own.indptr
        assert sparse.csr_array(parts, shape=own.shape).has_canonical_format


def test_unseen_features_are_left_out():
    rng = new_rng(2)
    X, new = sentences(rng, words=WORDS[:8]), sentences(rng, words=WORDS[4:])
    features = WordFeatures().fit(X)
    known = set(features.get_feature_names_out())
    assert known == kept(X)
    found = [[sorted(known.intersection(word)) for word in expected(x)] for x in new]
    assert rendered(features, new) == found


def test_features_are_kept_that_enough_words_have():
    X = sentences(new_rng(3))
    names = [name for x in X for word in expected(x) for name in word]
    often = {name for name in names if names.count(name) >= 3}
    assert set(WordFeatures(min_count=3).fit(X).get_feature_names_out()) == often
    with pytest.raises(ValueError, match="min_count"):
        WordFeatures(min_count=1000).fit(X)


def test_the_order_of_features_is_that_of_names_and_not_of_sentences():
    X = sentences(new_rng(4))
    first, second = WordFeatures().fit(X), WordFeatures().fit(X[::-1])
    names = first.get_feature_names_out()
    np.testing.assert_array_equal(names, second.get_feature_names_out())
    own = [name for name in names if name.startswith("lower=") and "|" not in name]
    assert own == sorted(own)


def test_copies_and_pickles_make_the_same_features():
    rng = new_rng(5)
    X, new = sentences(rng), sentences(rng)
    features = WordFeatures(gazetteers={"pet": ["the cat"]}).fit(X)
    again = pickle.loads(pickle.dumps(features))
    other = clone(features).fit(X)
    assert rendered(again, new) == rendered(features, new) == rendered(other, new)


class Token:
    def __init__(self, text, pos_):
        self.text, self.pos_ = text, pos_


def test_sentences_may_have_all_forms():
    rng = new_rng(6)
    pairs = with_parts(rng, [*sentences(rng), ["the", "cat"]])
    names = ["text", "pos_"]
    frames = [pd.DataFrame(x, columns=names) for x in pairs]
    forms = {
        "tuples": pairs,
        "lists": [[list(own) for own in x] for x in pairs],
        "dicts": [[dict(zip(names, own, strict=True)) for own in x] for x in pairs],
        "tokens": [tuple(Token(*own) for own in x) for x in pairs],
        "frames": frames,
        "arrays": [np.array(x, dtype=object).reshape(-1, 2) for x in pairs],
        "series": pd.Series(pairs),
    }
    found = [WordFeatures(columns=names).fit_transform(X) for X in forms.values()]
    for own in found[1:]:
        for x, y in zip(own, found[0], strict=True):
            assert x.shape == y.shape and (x != y).nnz == 0
    lengths = list(map(len, pairs))
    table = pd.concat(frames).assign(i=np.repeat(range(len(pairs)), lengths))
    made = WordFeatures().fit_transform(split_sequences(table, "i"))
    assert [x.shape[0] for x in made] == [n for n in lengths if n]
    words = [[own[0] for own in x] for x in pairs]
    tokens = [[SimpleNamespace(text=word) for word in x] for x in words]
    own, other = WordFeatures().fit(tokens), WordFeatures().fit(words)
    assert rendered(own, words) == rendered(other, tokens)


def test_values_of_further_columns_may_be_numbers_or_lacking():
    X = [[("a", 1, None), ("b", 2.0, "x")], [("c", np.nan, True)]]
    names = set(WordFeatures(ngrams=1).fit(X).get_feature_names_out())
    own = {name for name in names if re.match("column[12]=", name)}
    assert own == {"column1=1", "column1=2.0", "column2=x", "column2=True"}


@pytest.mark.parametrize(
    "X, error, message",
    [
        ([["a", 1]], TypeError, r"X\[0\]\[1\] has 1 as 'word'"),
        ([["a"], ["a", None]], TypeError, r"X\[1\]\[1\] has None"),
        (["a b"], TypeError, "one string"),
        ([[("a", "b"), ("a",)]], ValueError, r"X\[0\]\[1\] is \('a',\)"),
        ([[("a", "b")], ["a"]], ValueError, r"X\[1\]\[0\] is only the word 'a'"),
        ([[1, 2]], (TypeError, ValueError), r"X\[0\]"),
        ([[]], ValueError, "X is empty"),
        ("the cat", TypeError, "list of sequences"),
    ],
)
def test_what_is_no_word_is_named(X, error, message):
    with pytest.raises(error, match=message):
        WordFeatures().fit(X)


def test_empty_sentences_have_no_rows():
    features = WordFeatures().fit([["a"], []])
    assert [x.shape for x in features.transform([[], ["b"], []])] == [
        (n, len(features.get_feature_names_out())) for n in (0, 1, 0)
    ]
    assert features.transform([]) == []


@pytest.mark.parametrize(
    "word, prefixes, suffixes",
    [
        ("e\u0301xe\u0301", ["e\u0301", "e\u0301x"], ["e\u0301", "xe\u0301"]),
        ("नमस्ते", ["न", "नम"], ["ते", "स्ते"]),
        ("\U0001f468\u200d\U0001f469!?", ["\U0001f468\u200d\U0001f469"], ["?", "!?"]),
        ("東京都", ["東", "東京"], ["都", "京都"]),
    ],
)
def test_letters_keep_their_marks(word, prefixes, suffixes):
    names = WordFeatures(affixes=2, window=0).fit([[word]]).get_feature_names_out()
    assert {f"prefix={own}" for own in prefixes} <= set(names)
    assert {f"suffix={own}" for own in suffixes} <= set(names)


@pytest.mark.parametrize("word", ["qu\u0301quqx\u0301X", "مُحَمَّد", "กำลัง", "e\u0301\u0302"])
def test_marks_neither_are_nor_break_a_run_of_letters(word):
    bare = "".join(letter for letter in word if unicodedata.category(letter)[0] != "M")
    features = WordFeatures(affixes=0, window=0)
    shapes = [features.fit([[own]]).get_feature_names_out()[-2:] for own in (word, bare)]
    assert shapes[0].tolist() == shapes[1].tolist()


def test_hashed_features_need_no_vocabulary_and_few_collide():
    rng = new_rng(7)
    X, new = sentences(rng), sentences(rng)
    plain = WordFeatures().fit(2 * (X + new))
    hashed = WordFeatures(n_features=2**24).fit([["a"]])
    for x, y in zip(plain.transform(new), hashed.transform(new), strict=True):
        assert y.shape[1] == 2**24
        np.testing.assert_array_equal(x.sum(axis=1), y.sum(axis=1))
    # The same feature has the same column.
    places = sparse.vstack(hashed.transform(X)).indices, sparse.vstack(plain.transform(X))
    assert len(set(places[0])) == len(set(places[1].indices))
    assert not hasattr(hashed, "get_feature_names_out")
    crowded = WordFeatures(n_features=3).fit(X).transform(X)
    for x, y in zip(plain.transform(X), crowded, strict=True):
        np.testing.assert_array_equal(x.sum(axis=1), y.toarray().sum(axis=1))


HASHED = """
from sklearn_structsvm.preprocessing import WordFeatures
x = WordFeatures(n_features=2**20).fit([["a"]]).transform([["The", "cat", "\u6771"]])[0]
print(x.indices.tolist())
"""


def test_hashes_are_the_same_in_each_process(capsys):
    exec(HASHED, {})
    there = subprocess.run(
        [sys.executable, "-c", HASHED], env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert capsys.readouterr().out == there and len(there) > 20


def phrases_in(words, phrases):
    """B and I at the words of phrases, from the left, the longest first."""
    marks, t, words = [None] * len(words), 0, [word.lower() for word in words]
    while t < len(words):
        ends = range(t + 1, min(t + 5, len(words)) + 1)
        size = max((e - t for e in ends if tuple(words[t:e]) in phrases), default=0)
        for k in range(size):
            marks[t + k] = "I" if k else "B"
        t += max(size, 1)
    return marks


@pytest.mark.parametrize("n_phrases, n_words", [(6, 3), (50_000, 300)])
def test_gazetteers_mark_the_longest_phrases(n_phrases, n_words):
    rng = new_rng(8)
    letters = [f"{letter}{k}" for letter in "abA" for k in range(n_words // 3)]
    X = [rng.choice(letters, size=12).tolist() for _ in range(20)]
    lower = np.char.lower(letters)
    sizes = rng.integers(1, 5, size=n_phrases).tolist()
    ends, drawn = np.cumsum(sizes).tolist(), rng.choice(lower, size=sum(sizes)).tolist()
    pairs = zip(ends, sizes, strict=True)
    phrases = {tuple(drawn[end - size : end]) for end, size in pairs}
    given = [" ".join(p) if k % 2 else p for k, p in enumerate(phrases)]
    features = WordFeatures(gazetteers={"list": given}, ngrams=1).fit(X)
    for x, names in zip(X, rendered(features, X), strict=True):
        found = [[n[5:] for n in own if n.startswith("list=")] for own in names]
        assert found == [[m] if m else [] for m in phrases_in(x, phrases)]


def test_clusters_are_attributes_of_words():
    brown = {"the": "0110", "cat": "011110", "x1": "1"}
    X = [["The", "cat", "dog", "x1"]]
    features = WordFeatures(clusters={"brown": brown, "kind": {"dog": "pet"}}, window=0)
    own = [
        [n for n in names if n.startswith(("brown", "kind"))]
        for names in rendered(features.fit(X), X)[0]
    ]
    assert own == [["brown=0110"], ["brown=0111", "brown=011110"], ["kind=pet"], []]


def test_vectors_stand_beside_the_features():
    vectors = {"the": np.arange(3.0), "Cat": np.ones(3)}
    X = [["The", "Cat", "dog"], []]
    features = WordFeatures(vectors=vectors)
    made, empty = features.fit_transform(X)
    assert isinstance(made, SplitMatrix) and empty.shape[0] == 0
    np.testing.assert_array_equal(made.matrices[1], [[0, 1, 2], [1, 1, 1], [0, 0, 0]])
    assert len(features.get_feature_names_out()) == made.shape[1]


def test_a_tagger_reads_words_also_beside_other_features():
    X = [["the", "cat"], ["a", "dog", "barks"], []]
    y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"], []]
    other = SequenceTransformer()
    for features in (WordFeatures(), make_union(WordFeatures(window=0), other)):
        model = make_pipeline(features, CRFClassifier("chain", C=10.0, random_state=0))
        assert model.fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"affixes": -1}, ValueError, "affixes"),
        ({"window": 1.5}, TypeError, "window"),
        ({"ngrams": 0}, ValueError, "ngrams"),
        ({"n_features": 8, "min_count": 2}, ValueError, "min_count must be 1"),
        ({"gazetteers": ["a"]}, TypeError, "gazetteers"),
        ({"gazetteers": {"a": "b c"}}, TypeError, r"gazetteers\['a'\]"),
        ({"gazetteers": {"a": ["b", 3]}}, TypeError, r"gazetteers\['a'\] contains 3;"),
        ({"vectors": {}}, ValueError, "vectors is empty"),
        ({"template": "U%x[0,0]", "clusters": {"a": {}}}, ValueError, "template"),
    ],
)
def test_wrong_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        WordFeatures(**options).fit([["a"]])


def test_a_damaged_state_is_refused():
    features = WordFeatures().fit([["a", "b"]])
    features.tables_.pairs = *features.tables_.pairs[:2], np.full(99, 1, np.intc)
    features = pickle.loads(pickle.dumps(features))
    with pytest.raises(ValueError, match="lengths"):
        features.transform([["a"]])


def test_bytes_are_read_as_utf_8():
    words = ["Ann", "東京"]
    features = WordFeatures().fit([words])
    given = features.transform([[word.encode() for word in words]])[0]
    assert (given != features.transform([words])[0]).nnz == 0
    with pytest.raises(TypeError, match=r"X\[0\]\[1\] has b'\\xff' as 'word'"):
        features.transform([[b"Ann", b"\xff"]])


def test_a_search_makes_the_same_features_once(tmp_path, monkeypatch):
    calls, fit = [], FeatureTables.fit
    monkeypatch.setattr(FeatureTables, "fit", lambda *args: calls.append(1) or fit(*args))
    rng = new_rng(9)
    X = [[*x, "a", "B"] for x in sentences(rng, n=12)]  # No fold lacks a tag.
    y = [[str(word[:1].isupper()) for word in x] for x in X]
    model = make_pipeline(
        WordFeatures(), CRFClassifier("chain", random_state=0), memory=str(tmp_path)
    )
    # That of the guide, and two kinds of features.
    grid = {"crfclassifier__C": [0.3, 1.0, 3.0], "wordfeatures__window": [1, 2]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert len(calls) == 3 * 2 + 1  # Of each fold and of the refit, whatever C is.
    again = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert len(calls) == 3 * 2 + 1 and search.best_params_ == again.best_params_
    model.memory = None
    alone = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert len(calls) == 3 * 2 + 1 + 3 * 2 * 3 + 1
    for own in (again, alone):
        scores = own.cv_results_["mean_test_score"]
        np.testing.assert_array_equal(scores, search.cv_results_["mean_test_score"])
