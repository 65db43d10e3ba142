"""Arguments that random calls found raw errors for are refused by name."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from sklearn.feature_extraction.text import TfidfVectorizer

from sklearn_structsvm import BMRMClassifier, ConformalClassifier, cross_val_predict_proba
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.datasets import chunking_attributes, make_chains, make_poses
from sklearn_structsvm.preprocessing import SequenceTransformer, SplitMatrix
from sklearn_structsvm.structures import BinaryStructure, GraphStructure

RING = np.array([[0, 1], [1, 2], [2, 0]])


def fitted_binary():
    structure = BinaryStructure()
    structure.fit(np.eye(4), np.array([0, 1, 0, 1]))
    return structure, np.zeros(structure.n_weights_)


def decode_unchecked_graphs():
    X = [(np.eye(3), RING)]
    structure = GraphStructure().fit(*GraphStructure().check_data(X, [[0, 1, 0]]))
    structure.decode_batch(X, np.zeros(structure.n_weights_))


def sparsify_words():
    model = BMRMClassifier().fit(np.eye(4), [0, 1, 0, 1])
    model.coef_ = np.array([["a", "b", "c", "d"]], dtype=object)
    model.sparsify()


def constrained_decode_of_pairs():
    structure, w = fitted_binary()
    structure.constrained_decode(np.ones(4), [[0], [1, 2]], w, 1.0, 0.0, 1.0)


CALLS = {
    "tokens": (lambda: chunking_attributes(0.5), "tokens must be a list"),
    "constraints": (
        lambda: read_constraints(1j),
        "constraints must hold objects; got 1j",
    ),
    "set_output": (
        lambda: SequenceTransformer(TfidfVectorizer()).set_output(transform="pandas"),
        "set_output requires a transformer that has it; got TfidfVectorizer",
    ),
    "ragged labels": (lambda: ConformalClassifier().fit(np.eye(3), [[[0], [1, 2]]] * 3),
                      r"y\[0\] must be an array"),
    "ragged truth": (constrained_decode_of_pairs, "y must be an array"),
    "graphs": (decode_unchecked_graphs, "as check_data returns them"),
    "weights": (sparsify_words, "coef_ must hold numbers"),
    "columns": (lambda: SplitMatrix([np.array([["a"]], dtype=object)]),
                r"matrices\[0\] must hold numbers"),
    "infinite n_jobs": (lambda: cross_val_predict_proba(
                            BMRMClassifier(), *make_chains(4, random_state=new_seed()),
                            n_jobs=np.inf
                        ),
                        "n_jobs must be an integer; got inf"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_what_no_function_can_use_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_numbers_in_arrays_of_objects_are_numbers():
    seed = int(new_rng().integers(100))
    plain = make_poses(1, shape=(3, 5), random_state=seed)
    objects = make_poses(1, shape=np.array([3, 5], dtype=object), random_state=seed)
    np.testing.assert_array_equal(plain.X[0], objects.X[0])
    assert SplitMatrix([np.ones((2, 1), dtype=object)]).tocsr().sum() == 2.0
