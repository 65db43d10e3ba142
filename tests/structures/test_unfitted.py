"""Structures before their fit, and their own public fits."""

import pickle
from inspect import signature

import numpy as np
import pytest
from _estimators import assert_same_labels
from _structures import ALL, STRUCTURES, data_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import ChainStructure, GraphStructure, Structure
from sklearn_structsvm.structures.ranking import RankingStructure

# Methods that only move arrays about, or that a structure need not have.
NO_FIT_NEEDED = {
    "check_data", "complete", "constrained_decode", "example_weights", "fit",
    "get_metadata_routing", "get_params", "join_weights", "joined_labels", "known_nodes",
    "labelings", "learn_partial", "present_scores", "score", "set_params",
    "slack_augmented_decode", "split_hidden", "split_weights", "unseen_labels",
    "weight_bounds", "with_threshold",
}  # fmt: skip
# The same for some: distances of parts, what is for forests only, what there is none of.
NOT_OF = {
    "parts": {"loss"},
    "cycles": {"k_best", "max_marginals"},
    "ranking": {"make_oracle", "loss_augmented_decode"},
}


def arguments_of(method, X, y):
    """Arguments for a method of a structure, by their names."""
    x = X[[0]] if hasattr(X, "tocsr") else X[0]
    values = {
        "x": x,
        "X": X,
        "y": y[0],
        "y_true": y[0],
        "w": np.zeros(3),
        "lam": 1.0,
        "alpha": 1.0,
        "beta": 0.0,
        "k": 2,
        "marginals": [np.ones((len(y_i), 2)) for y_i in map(np.atleast_1d, y)],
        "tags": None,
    }
    names = [n for n, p in signature(method).parameters.items() if p.default is p.empty]
    if "X" in names:
        values["y"] = y
    return [values[name] for name in names]


def public_methods(structure):
    for name in dir(type(structure)):
        is_request = name.startswith("set_") and name.endswith("_request")
        if name.startswith("_") or name in NO_FIT_NEEDED or is_request:
            continue
        if callable(getattr(type(structure), name)):
            yield name


@pytest.mark.parametrize("kind", [*ALL, "ranking"])
def test_every_method_that_needs_a_fit_says_so(kind):
    structure, X, y = data_of("multilabel" if kind == "ranking" else kind)
    structure = RankingStructure() if kind == "ranking" else clone(structure)
    methods = set(public_methods(structure)) - NOT_OF.get(kind, set())
    assert {"check_fitted", "decode", "joint_feature"} <= methods
    for name in sorted(methods):
        method = getattr(structure, name)
        words = f"This {type(structure).__name__} is not fitted yet"
        with pytest.raises(NotFittedError, match=words):
            method(*arguments_of(method, X, y))


def test_attributes_of_a_fit_are_none_before_it_and_none_are_blamed_on_it_after():
    structure = GraphStructure()
    for name in ("classes_", "n_weights_", "relaxed", "_polytopes"):
        assert not hasattr(structure, name)
        with pytest.raises(NotFittedError, match="This GraphStructure is not fitted yet"):
            getattr(structure, name)
    for name in ("color", "__color__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
            getattr(structure, name)
        assert not isinstance(caught.value, NotFittedError)
    structure = ChainStructure().fit([np.eye(2)], [[0, 1]])
    with pytest.raises(AttributeError, match="has no attribute '_polytopes'") as caught:
        _ = structure._polytopes
    assert not isinstance(caught.value, NotFittedError)
    structure = ChainStructure()
    assert structure.fit([np.eye(2)], [[0, 1]]).n_features_in_ == 2
    assert structure.fit([np.eye(3)], [[0, 1, 2]]).n_features_in_ == 3


def raw(kind):
    """A structure, and data as users write them."""
    structure, X, y = data_of(kind)
    if not structure.flat:
        X, y = tuple(X), [np.asarray(labels).tolist() for labels in y]
    elif not hasattr(X, "tocsr"):
        X, y = X.tolist(), y.tolist()
    return clone(structure), X, y


@pytest.mark.parametrize("kind", STRUCTURES)
def test_estimators_of_each_structure_are_searched_scored_cloned_and_pickled(kind):
    structure, X, y = data_of(kind, 3)
    model = BCFWClassifier(structure, tol=0.1, random_state=0)
    grid = {"structure__normalize_loss": [True, False]}
    best = GridSearchCV(model, grid, cv=2).fit(X, y).best_estimator_
    found = best.predict(X)
    assert_same_labels(pickle.loads(pickle.dumps(best)).predict(X), found)
    threads = clone(best).set_params(n_jobs=2).fit(X, y)
    assert_same_labels(threads.predict(X), found)
    score = best.structure_.score(y, found)
    assert best.score(X, y) == pytest.approx(score) and score > 0.4


@pytest.mark.parametrize("kind", ALL)
def test_a_public_fit_is_that_to_checked_data(kind):
    structure, X, y = raw(kind)
    other = clone(structure)
    if structure.flat:
        other.fit(X if hasattr(X, "shape") else np.array(X), np.array(y))
    else:
        other.fit(*structure.check_data(X, y))
    structure.fit(X, y)
    assert structure.n_weights_ == other.n_weights_
    w = np.linspace(-1.0, 1.0, structure.n_weights_)
    x = X[[0]] if hasattr(X, "tocsr") else X[0]
    np.testing.assert_array_equal(structure.decode(x, w), other.decode(x, w))
    assert structure.loss(y[0], y[0]) == 0.0
    assert structure.joint_feature(x, y[0]).shape == w.shape


def test_a_fit_of_ones_own_replaces_that_of_the_library():
    class Own(ChainStructure):
        def fit(self, X, y, *, classes=None, class_weight=None):
            self.seen_ = len(X)
            return super().fit(X, y, classes=classes, class_weight=class_weight)

    structure = Own()
    structure._fit_checked([np.eye(2)], [np.array([0, 1])])
    assert structure.seen_ == 1 and structure.n_features_in_ == 2


class Plain(Structure):
    def joint_feature(self, x, y):
        return np.ones(2)


NO_DATA = (None, 5, "ab", {"a": 1}, object(), np.array(5), iter([1]), [], lambda: 0)


@pytest.mark.parametrize("kind", [*(k for k in ALL if "csr" not in k), "plain"])
def test_a_fit_to_what_are_no_data_names_the_argument(kind):
    structure, X, y = (Plain(), [1], [1]) if kind == "plain" else raw(kind)
    for wrong in NO_DATA:
        with pytest.raises(ValueError, match=r"^X(\[0\])?\b"):
            clone(structure).fit(wrong, y)
        with pytest.raises(ValueError, match="y"):
            clone(structure).fit(X, wrong)
