"""Structures by name, and what is said of X that has no features yet."""

import numpy as np
import pytest
from _seeds import new_seed
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import get_tags

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.datasets import make_chains, make_multilabel
from sklearn_structsvm.estimators.named_structures import STRUCTURES, named_structure
from sklearn_structsvm.structures import ChainStructure

MODELS = [
    BCFWClassifier(tol=0.05, random_state=0),
    BCFWClassifierCV(Cs=[0.1], cv=2, random_state=0),
    SlackRescaledSSVM(tol=0.05, random_state=0),
    BMRMClassifier(C=0.1, tol=0.05),
    PragamClassifier(C=0.1, tol=0.05),
    CRFClassifier(C=0.1, tol=0.05, random_state=0),
    CRFClassifierCV(Cs=[0.1], cv=2, tol=0.05, random_state=0),
]
each = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def sentences(n=18):
    """Sequences whose labels are lists, as people have them."""
    X, y = make_chains(n, n_features=4, n_classes=3, random_state=new_seed(0))
    return X, [[f"tag{label}" for label in labels] for labels in y]


@each
def test_a_name_is_the_structure_with_its_default_parameters(model):
    X, y = sentences()
    named = type(model)(**model.get_params() | {"structure": "chain"}).fit(X, y)
    given = type(model)(**model.get_params() | {"structure": ChainStructure()}).fit(X, y)
    assert named.structure == "chain"
    assert isinstance(named.structure_, ChainStructure)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    if isinstance(model, BCFWClassifier):
        options = {"eps": 0.2, "min_lambda": 0.5, "random_state": 0}
        paths = (bcfw_path(X, y, structure=own, **options)
                 for own in ("chain", ChainStructure()))  # fmt: skip
        np.testing.assert_array_equal(*(path.coefs for path in paths))


@pytest.mark.parametrize("name", sorted(STRUCTURES))
def test_tags_are_those_of_the_structure(name):
    given = BCFWClassifier(named_structure(name))
    assert get_tags(BCFWClassifier(name)) == get_tags(given)
    for method in ("predict_k_best", "max_marginals", "decision_function"):
        assert hasattr(BCFWClassifier(name), method) == hasattr(given, method)
    if name in ("multilabel", "pairwise", "binary", "multiclass"):
        X, Y = make_multilabel(n_samples=20, n_classes=3, random_state=new_seed(0))
        y = Y if name in ("multilabel", "pairwise") else np.arange(20) % 2
        model = BCFWClassifier(name, tol=0.1, random_state=0).fit(X, y)
        assert type(model.structure_) is type(given.structure)
    if name == "pairwise":
        words = "can sum over all labelings.*got 'pairwise'"
        with pytest.raises(ValueError, match=words):
            CRFClassifier(name).fit(X, Y)


@each
@pytest.mark.parametrize("structure", ["chains", "Chain", ChainStructure])
def test_an_unknown_name_is_refused_by_fit_and_by_nothing_before_it(model, structure):
    model = type(model)(**model.get_params() | {"structure": structure})
    if isinstance(structure, str):
        assert is_classifier(model)  # as "auto", until it is refused
    with pytest.raises(ValueError, match="'structure' parameter of .* must be"):
        model.fit(*sentences())


@pytest.mark.parametrize("kind", [BCFWClassifier, CRFClassifier, SlackRescaledSSVM])
def test_cross_validation_takes_lists_of_lists_for_a_chain_by_name(kind):
    X, y = sentences()
    model = kind(
        "chain", solver_options={"classes": ["tag0", "tag1", "tag2"]}, tol=0.1,
        random_state=0,
    )  # fmt: skip
    assert not is_classifier(model)
    as_arrays = [np.array(labels) for labels in y]
    expected = cross_val_score(model, X, as_arrays, cv=3)
    np.testing.assert_array_equal(cross_val_score(model, X, y, cv=3), expected)
    search = GridSearchCV(model, {"C": [1.0]}, cv=3).fit(X, y)
    assert search.best_score_ == pytest.approx(expected.mean())
    predicted = cross_val_predict(model, X, y, cv=3)
    assert list(map(len, predicted)) == list(map(len, y))


def test_scikit_learn_itself_refuses_lists_of_lists_for_auto():
    # Should this fail one day, then the docstrings of `structure` promise too little.
    X, y = sentences()
    with pytest.raises(ValueError, match="legacy multi-label"):
        cross_val_score(BCFWClassifier(random_state=0), X, y, cv=3)


TOKENS = {
    "strings": [["the", "cat"], ["sleeps"]],
    "dicts": [[{"word": "the"}, {"word": "cat"}], [{"word": "sleeps"}]],
    "lists of strings": [[["word=the"], ["word=cat"]], [["word=sleeps"]]],
    "object arrays": [np.array([{"a": 1}, {"b": 1}], dtype=object), np.array(["c"])],
    "one sentence": ["the", "cat"],
    "array of words": np.array(["the", "cat"]),
    "dicts alone": [{"word": "the"}, {"word": "cat"}],
}


@pytest.mark.parametrize("structure", ["auto", "chain", "multiclass"])
@pytest.mark.parametrize("X", TOKENS.values(), ids=TOKENS)
def test_tokens_without_features_are_sent_to_the_transformer(X, structure):
    words = r"X\[0\].* is .*(SequenceTransformer|WordFeatures)\(\)"
    with pytest.raises(ValueError, match=words):
        BCFWClassifier(structure).fit(X, [["a", "b"], ["a"]])
    data = sentences()
    if structure == "multiclass":
        data = np.concatenate(data[0]), np.concatenate(data[1])
    model = BCFWClassifier(structure, tol=0.1, random_state=0).fit(*data)
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] is 'the'.*WordFeatures"):
        model.predict([["the", "cat"]])
    # Numbers that are written as strings are rows.
    if structure == "multiclass":
        X, y = [["1", "0"], ["0", "1"], ["1", "1"]], [0, 1, 0]
        expected = model.fit(np.array(X, dtype=float), y).coef_
        np.testing.assert_array_equal(model.fit(X, y).coef_, expected)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_one_sequence_is_told_how_to_be_a_list(library):
    X, y = sentences()
    one = X[0]
    if library != "numpy":
        one = pytest.importorskip(library).DataFrame(one)
    model = BCFWClassifier("chain", tol=0.1, random_state=0)
    with pytest.raises(ValueError, match=r"got one .* single sequence, use \[X\]"):
        model.fit(one, y[0])
    with pytest.raises(ValueError, match=r"single sequence, use \[X\]"):
        model.fit(X, y).predict(one)
