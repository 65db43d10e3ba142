"""What `export_tagger` writes predicts what the tagger predicts, to the last tie."""

import ast
import json
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.export import export_tagger, numpy_tagger
from sklearn_structsvm.export.numpy_tagger import Tagger
from sklearn_structsvm.preprocessing import SequenceTransformer, SplitMatrix
from sklearn_structsvm.structures import ChainStructure, TreeStructure

MAX_LINES = 100
TAGS = ["B-x", "I-x", "O"]


def exported(model, folder):
    export_tagger(model, folder / "tagger.npz")
    return Tagger(folder / "tagger.npz")


def as_lists(labelings):
    return [labels.tolist() for labels in labelings]


def with_ties(model, rng):
    """Small integers as weights, of which sums are exact: many labelings are tied."""
    model.coef_ = rng.integers(-2, 3, size=model.coef_.shape).astype(float)
    return model


def chain_model(structure, X, rng):
    """A classifier of `TAGS`; "B-x" alone is a labeling that all rules below allow."""
    model = BCFWClassifier(
        structure, solver_options={"classes": TAGS}, max_iter=1, tol=1.0
    )
    return with_ties(model.fit(X, [["B-x"] * np.shape(x)[0] for x in X]), rng)


def tagger_of(X, rng, structure=None):
    transformer = SequenceTransformer().fit(X)
    model = chain_model(structure or ChainStructure(), transformer.transform(X), rng)
    return make_pipeline(transformer, model)


# Halves, of which products and sums are exact, in float32 too.
NUMBERS = [2, -1.5, 0.5, np.float32(2.5), np.int8(-3), Fraction(1, 2), Decimal("1.5")]
VALUES = {
    "flags": [True, False, np.True_, np.False_, np.array(True)],
    "numbers": [*NUMBERS, np.array(0.5)],
    "strings": ["the", "cat", "", "a=b", np.str_("dog"), "é\n", "\ud800", "zero\0"],
    "lists": [["x", "y", "x"], ("x",), {"y"}, np.array(["x", "z"]), []],
    "dicts": [{"a": "the", "b": {"c": True, "b": 2}}, {"a": ["x"], "c": 0.5}, {}],
}
UNSEEN = {"strings": ["new"], "lists": [["new", "x"]], "dicts": [{"new": {"a": True}}]}


def a_vector(rng, size, dtype):
    return (rng.integers(0, 9, size=size) / 2).astype(dtype)


def a_token(rng, form, dtype, *, is_new):
    """A token; a new one may have names and values that others have not."""
    if form == "words":
        return str(rng.choice(["the", "cat", "a", "", *["new"] * is_new]))
    if form == "lists of strings":
        kind = [list, tuple, np.array, set][rng.integers(4)]
        return kind(rng.choice(["a", "b=c", "bias", *["new"] * is_new], 3).tolist())
    if form == "pairs":
        own = rng.choice(["words", "flags", "mixed"])
        return a_token(rng, own, dtype, is_new=is_new), a_vector(rng, 3, dtype)
    kinds = [*VALUES] if form in ("mixed", "vectors") else [form]
    token = {}
    for name in rng.choice(["a", "b", "c", "a:b", ""], rng.integers(4), replace=False):
        kind = rng.choice(kinds)
        values = VALUES[kind] + (UNSEEN.get(kind, []) if is_new else [])
        token[str(name)] = values[rng.integers(len(values))]
    if form == "vectors":
        for name, size in [("v", 2), ("left", 3)]:
            if rng.random() < 0.5:
                vector = a_vector(rng, size, dtype)
                token[name] = {"v": vector} if name == "left" else vector
    if is_new and rng.random() < 0.5:
        # Names of vectors are none of attributes.
        new = {"v[0]": 1.0, "left": True, "w": np.ones(4), "n": "the"}
        name = rng.choice([*new])
        token.setdefault(str(name), new[name])
    return token


def sentences(rng, n, form, dtype=float, *, is_new=False):
    lengths = rng.integers(0, 6, size=n)
    lengths[0] = 5
    return [
        [a_token(rng, form, dtype, is_new=is_new) for _ in range(size)]
        for size in lengths
    ]


FORMS = [*VALUES, "mixed", "words", "lists of strings"]


@pytest.mark.parametrize("draw", range(2))
@pytest.mark.parametrize(
    ("form", "dtype"),
    [(form, float) for form in FORMS]
    + [(form, dtype) for form in ("vectors", "pairs") for dtype in (float, "f4", "u1")],
)
def test_tokens_of_every_kind_get_the_labels_of_predict(form, dtype, draw, tmp_path):
    rng = new_rng(draw)
    tagger = tagger_of(sentences(rng, 8, form, dtype), rng)
    X = sentences(rng, 40, form, dtype, is_new=True)
    found = exported(tagger, tmp_path).predict(X)
    assert as_lists(found) == as_lists(tagger.predict(X))


def test_numbers_beside_float32_vectors_are_rounded_as_in_predict(tmp_path):
    X = [[({"n": 1.0}, np.ones(1, np.float32))] * 2]
    tagger = tagger_of(X, new_rng(), ChainStructure(transition=False, bias=False))
    n_classes = len(TAGS)
    emission = np.zeros((2, n_classes))
    # As float32, 0.1 exceeds this weight of the vector; as float64, it does not.
    emission[:, 1:] = [[1.0, 0.0], [0.0, 0.1 + 1e-10]]
    tagger[-1].coef_[:] = 0.0
    tagger[-1].coef_[: emission.size] = emission.ravel()
    X = [[({"n": 0.1}, np.ones(1, np.float32))]]
    assert as_lists(tagger.predict(X)) == [["I-x"]]
    assert as_lists(exported(tagger, tmp_path).predict(X)) == [["I-x"]]


def test_sequences_of_tokens_may_be_what_the_transformer_takes(tmp_path):
    words = ["a", "b", "a"]
    X = [words, tuple(words), np.array(words), pd.Series(words), np.array(words, object)]
    rng = new_rng()
    tagger = tagger_of([words, ["c", "d"]], rng)
    module = exported(tagger, tmp_path)
    for x in X:
        assert as_lists(module.predict([x])) == as_lists(tagger.predict([x]))


RULES = {
    "any": None,
    "bio": "bio",
    "pairs": [(None, "O"), ("O", "O"), ("I-x", None)],
    "mask": np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=bool),
}
PARTS = [
    {},
    {"transition": False},
    {"bias": False, "first_bias": False},
    {"last_bias": False, "emission": False},
    {"transition": False, "bias": False, "first_bias": False, "last_bias": False},
]


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: "-".join(parts) or "all")
@pytest.mark.parametrize("rules", RULES)
def test_transitions_and_parts_count_as_in_predict(rules, parts, tmp_path):
    rng = new_rng(len(rules), len(parts))
    chain = ChainStructure(transitions=RULES[rules], **parts)
    tagger = tagger_of(sentences(rng, 12, "words"), rng, chain)
    X = sentences(rng, 40, "words", is_new=True)
    module = exported(tagger, tmp_path)
    assert as_lists(module.predict(X)) == as_lists(tagger.predict(X))
    # Masks that leave the labeling "B-x", ..., "B-x", which all of these rules allow.
    masks = [rng.random((len(x), 3)) < 0.5 for x in X]
    for mask in masks:
        mask[:, 0] = True
    masks[1] = None
    features = tagger[:-1].transform(X)
    expected = tagger[-1].predict(features, allowed=masks)
    assert as_lists(module.predict(X, allowed=masks)) == as_lists(expected)


def items_of(form, rng, n):
    items = [rng.integers(-2, 3, size=(size, 4)) / 2 for size in rng.integers(1, 6, n)]
    kinds = {
        "arrays": np.array,
        "csr": sparse.csr_array,
        "split": lambda x: SplitMatrix([x, sparse.csr_array(x)]),
        "lists": np.ndarray.tolist,
        "frames": pd.DataFrame,
        "integers": lambda x: (2 * x).astype(int),
    }
    return list(map(kinds[form], items))


@pytest.mark.parametrize(
    "form", ["arrays", "csr", "split", "lists", "frames", "integers"]
)
def test_items_with_features_need_no_transformer(form, tmp_path):
    rng = new_rng()
    model = chain_model(ChainStructure(), items_of(form, rng, 8), rng)
    X = [*items_of(form, rng, 40), []]
    for own in (model, make_pipeline(model)):
        found = exported(own, tmp_path).predict(X)
        assert as_lists(found) == as_lists(model.predict(X))


@pytest.mark.parametrize("emission", ["given", "both"])
@pytest.mark.parametrize("form", ["arrays", "csr"])
def test_scores_of_another_model_count_as_in_predict(form, emission, tmp_path):
    rng = new_rng()

    def items(n):
        X = items_of(form, rng, n)
        scores = [rng.integers(-2, 3, size=(x.shape[0], 3)) / 2 for x in X]
        return scores if emission == "given" else list(zip(X, scores, strict=True))

    chain = ChainStructure(emission=emission, transitions=RULES["mask"])
    X = items(8)
    y = [["B-x"] * len(x if emission == "given" else x[1]) for x in X]
    model = BCFWClassifier(chain, solver_options={"classes": TAGS}, max_iter=1, tol=1.0)
    with_ties(model.fit(X, y), rng)
    X = items(40)
    found = exported(model, tmp_path).predict(X)
    assert as_lists(found) == as_lists(model.predict(X))


SOLVERS = {
    "BCFWClassifier": BCFWClassifier("chain", random_state=0),
    "BCFWClassifierCV": BCFWClassifierCV("chain", Cs=[0.1], cv=2, random_state=0),
    "BMRMClassifier": BMRMClassifier(structure="chain"),
    "CRFClassifier": CRFClassifier("chain", random_state=0),
    "CRFClassifierCV": CRFClassifierCV("chain", Cs=[0.1], cv=2, random_state=0),
    "PragamClassifier": PragamClassifier(structure="chain"),
    "SlackRescaledSSVM": SlackRescaledSSVM("chain", random_state=0),
    "sparse weights": CRFClassifier("chain", l1_ratio=0.9, random_state=0),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_classifier_of_chains_is_exported(name, tmp_path):
    X, y = make_chains(20, n_features=5, n_classes=3, random_state=new_seed())
    model = SOLVERS[name].set_params(tol=1e-2).fit(X, y)
    if name == "sparse weights":
        model.sparsify()
        assert sparse.issparse(model.coef_)
    found = exported(model, tmp_path).predict(X)
    assert as_lists(found) == as_lists(model.predict(X))


@pytest.mark.parametrize(
    "labels",
    [("a", "bcd"), (3, -1), (True, False), (np.uint8(2), np.uint8(200)), (b"a", b"b"),
     (np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))],
    ids=lambda labels: type(labels[0]).__name__,
)  # fmt: skip
@pytest.mark.parametrize("dtype", [None, object])
def test_classes_are_of_any_type_that_arrays_hold(labels, dtype, tmp_path):
    X, y = make_chains(10, n_classes=2, random_state=new_seed())
    y = [np.array([labels[c] for c in own], dtype=dtype) for own in y]
    model = CRFClassifier("chain", random_state=0).fit(X, y)
    found = exported(model, tmp_path).predict(X)
    assert as_lists(found) == as_lists(model.predict(X))
    assert type(found[0].tolist()[0]) is type(np.array(labels).tolist()[0])


@pytest.mark.parametrize(
    "labels", [(date(2020, 1, 1), date(2021, 1, 1)), ("a", "a\0"), (2**70, 1)]
)
def test_other_classes_are_refused(labels, tmp_path):
    X, y = make_chains(10, n_classes=2, random_state=new_seed())
    y = [np.array([labels[c] for c in own], dtype=object) for own in y]
    model = CRFClassifier("chain", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Classes must be .* without pickle; got "):
        export_tagger(model, tmp_path / "tagger.npz")
    assert not [*tmp_path.iterdir()]


def test_the_file_has_arrays_without_pickles(tmp_path):
    rng = new_rng()
    exported(tagger_of(sentences(rng, 8, "mixed"), rng), tmp_path)
    with np.load(tmp_path / "tagger.npz", allow_pickle=False) as arrays:
        assert {*arrays} >= {"classes", "emission", "transition"}
        assert all(arrays[name].dtype.kind in "Ufiu" for name in arrays)


def test_a_long_name_does_not_make_all_names_long(tmp_path):
    long = "x" * 10**6
    tagger = tagger_of([[f"w{i}" for i in range(2000)], [long]], new_rng())
    exported(tagger, tmp_path)
    assert (tmp_path / "tagger.npz").stat().st_size < 10**6


TARGET = """
import json, sys
blocked = ["sklearn_structsvm", "sklearn", "scipy", "joblib"]
sys.modules.update(dict.fromkeys(blocked))
sys.path.insert(0, sys.argv[1])
from numpy_tagger import Tagger
tagger = Tagger(sys.argv[1] + "/tagger.npz")
print(json.dumps([labels.tolist() for labels in tagger.predict(json.load(sys.stdin))]))
assert not [name for name in blocked if sys.modules[name]]
"""


def test_a_machine_with_numpy_alone_predicts_the_same(tmp_path):
    rng = new_rng()
    plain = {
        "flags": [True, False],
        "numbers": [2, -1.5],
        "strings": ["the", "é\n", "\ud800"],
        "lists": [["x", "y", "x"], []],
        "dicts": [{"a": "the", "b": {"c": True}}],
    }

    def draw(n):
        def token():
            names = rng.choice(["a", "b", "new"], 2, replace=False).tolist()
            kinds = rng.choice([*plain], 2).tolist()
            return {
                name: plain[kind][rng.integers(len(plain[kind]))]
                for name, kind in zip(names, kinds, strict=True)
            }

        return [[token() for _ in range(rng.integers(1, 6))] for _ in range(n)]

    chain = ChainStructure(transitions="bio")
    tagger = tagger_of(draw(6), rng, chain)
    made = tmp_path / "made"
    made.mkdir()
    export_tagger(tagger, made / "tagger.npz")
    target = shutil.copytree(made, tmp_path / "target")
    assert sorted(path.name for path in target.iterdir()) == [
        "numpy_tagger.py",
        "tagger.npz",
    ]
    X = draw(30)
    done = subprocess.run(
        [sys.executable, "-I", "-c", TARGET, str(target)],
        input=json.dumps(X), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == as_lists(tagger.predict(X))


def test_the_module_is_short_and_imports_numpy_alone():
    source = Path(numpy_tagger.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source)
    imported = {
        alias.name.partition(".")[0] if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"json", "collections.abc", "numbers", "numpy"}
    assert len(source.splitlines()) <= MAX_LINES


TOKENS, VECTORS = [[{"f": "a"}, {"g": 2.0}]], [[{"f": np.ones(2)}, {"f": np.ones(2)}]]
NOT_FINITE = [None, float("nan"), np.inf, np.float32("nan")]
REFUSED = [
    *([[[{"f": 1.0}, {"g": 2.0}]], [[{"f": 1.0}, {"f": value}]], [ValueError],
       "finite|infinity|missing"] for value in NOT_FINITE),
    *([TOKENS, [[{"f": value}]], [TypeError], None]
      for value in ([1, 2], object(), [["a"]], {"g": [None]})),
    # A vector of another length may be behind the last column.
    *([VECTORS, [[{"f": vector}]], [ValueError, IndexError], None]
      for vector in (np.ones(3), np.ones((2, 2)))),
    # One sequence in the place of several.
    *([TOKENS, X, [TypeError], r"use \[sequence\]|pass \[sequence\]"]
      for X in (["the", "a"], [{"f": "the"}, {"g": 2.0}])),
]  # fmt: skip


@pytest.mark.parametrize(("known", "X", "errors", "words"), REFUSED)
def test_what_predict_refuses_is_refused(known, X, errors, words, tmp_path):
    tagger = tagger_of(known, new_rng())
    module = exported(tagger, tmp_path)
    with pytest.raises(errors[0], match=words):
        tagger.predict(X)
    with pytest.raises(tuple(errors), match=words):
        module.predict(X)


@pytest.mark.parametrize("value", NOT_FINITE[1:])
def test_features_that_are_not_finite_are_refused(value, tmp_path):
    model = tagger_of([[{"f": 1.0}, {"g": 2.0}]], new_rng())[-1]
    for predict in (model.predict, exported(model, tmp_path).predict):
        with pytest.raises(ValueError, match="finite|infinity"):
            predict([np.array([[0.0, value]])])


def test_sequences_without_a_labeling_are_refused_as_in_predict(tmp_path):
    chain = ChainStructure(transitions=[("B-x", None), ("B-x", "B-x"), (None, "O")])
    X = [["a", "b"], ["b", "a"]]
    transformer = SequenceTransformer().fit(X)
    model = BCFWClassifier(chain, solver_options={"classes": TAGS}, max_iter=1, tol=1.0)
    model.fit(transformer.transform(X), [["B-x", "O"], ["I-x", "O"]])
    module = exported(make_pipeline(transformer, model), tmp_path)
    (item,) = transformer.transform([["a"]])
    mask = np.array([[True, False, False]])
    for call in (
        lambda: model.predict([item], allowed=[mask]),
        lambda: module.predict([["a"]], allowed=[mask]),
    ):
        with pytest.raises(ValueError, match="no labeling|No labeling"):
            call()


@pytest.mark.parametrize(
    "mask",
    [[None], ["O"], [[1, 1, 0]], [True], np.ones((1, 2), bool), np.ones((2, 3), bool)],
)
def test_only_masks_restrict_labels(mask, tmp_path):
    module = exported(tagger_of([["a", "b"]], new_rng()), tmp_path)
    with pytest.raises(ValueError, match=r"mask of shape \(1, 3\)"):
        module.predict([["a"]], allowed=[mask])


WORDS = [["a", "b"], ["b", "a", "a"]]
LABELS = [["x", "y"], ["y", "x", "x"]]


def fitted(model, X=WORDS):
    return model.fit(X, LABELS)


def scaled():
    return make_pipeline(
        SequenceTransformer(),
        SequenceTransformer(MaxAbsScaler()),
        CRFClassifier("chain", random_state=0),
    )


def search():
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", random_state=0))
    return GridSearchCV(model, {"crfclassifier__C": [1.0]}, cv=2)


MBR = CRFClassifier("chain", solver_options={"decoding": "mbr"}, random_state=0)
DICTS = [[{"w": word} for word in x] for x in WORDS]
ROWS = np.eye(4), [0, 1, 0, 1]
TREES = [(np.eye(2), [-1, 0]), (np.eye(3)[:, :2], [-1, 0, 0])]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fitted(make_pipeline(SequenceTransformer(), MBR)), "decoding='mbr'"),
        (lambda: fitted(scaled()), "model\\[-1\\]"),
        (
            lambda: fitted(make_pipeline(
                SequenceTransformer(DictVectorizer()), CRFClassifier("chain")), DICTS),
            "without a transformer",
        ),
        (lambda: CRFClassifier().fit(*ROWS), "over a ChainStructure"),
        (lambda: LogisticRegression().fit(*ROWS), "over a ChainStructure"),
        (lambda: fitted(CRFClassifier(TreeStructure()), TREES), "over a ChainStructure"),
        (lambda: fitted(search()), "over a ChainStructure"),
    ],
)  # fmt: skip
def test_what_has_no_form_in_arrays_is_refused(make, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        export_tagger(make(), tmp_path / "tagger.npz")
    assert not [*tmp_path.iterdir()]


def test_an_estimator_that_is_not_fitted_is_told_so(tmp_path):
    for model in (CRFClassifier("chain"), make_pipeline(CRFClassifier("chain"))):
        with pytest.raises(NotFittedError):
            export_tagger(model, tmp_path / "tagger.npz")


def test_exported_taggers_read_bytes_and_refuse_missing_values(tmp_path):
    X = [[{"w": "sün", "of": {"a": "b"}, "l": ["p"]}, {"w": "b", "n": 2.0}]] * 3
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", random_state=0))
    model.fit(X, [["A", "B"]] * 3)
    tagger = exported(model, tmp_path)
    as_bytes = [
        {b"w": "sün".encode(), "of": {b"a": b"b"}, "l": [b"p"]}, {"w": b"b", b"n": 2.0}
    ]  # fmt: skip
    np.testing.assert_array_equal(tagger.score(as_bytes), tagger.score(X[0]))
    assert as_lists(tagger.predict([as_bytes])) == as_lists(model.predict([as_bytes]))
    for value in (None, float("nan"), np.float32("nan")):
        for name in ("n", "new"):
            for made in (tagger, model):
                with pytest.raises(ValueError, match=f"'{name}'.* a missing value"):
                    made.predict([[{name: value}]])
