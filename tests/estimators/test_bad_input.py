"""Bad input is refused before any work; the message names the item and the value."""

import numpy as np
import pytest
from _estimators import FLAT, KINDS, PythonMulticlass, as_objects, make_problem
from _options import placed
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM
from sklearn_structsvm.structures import ChainStructure

GOOD_X = [np.ones((2, 3)), np.zeros((3, 3)), np.ones((1, 3))]
GOOD_Y = [np.array([0, 1]), np.array([1, 1, 0]), np.array([2])]


def refused(X, y, message, structure=None, sample_weight=None, **params):
    """A fit of each estimator is refused and leaves nothing behind."""
    structure = ChainStructure() if structure is None else structure
    for model in (
        BCFWClassifier(structure),
        BCFWClassifierCV(structure, Cs=[0.1], cv=2),
        # The only search that asks nothing of a structure in Python.
        SlackRescaledSSVM(structure, solver_options={"search": "binary"}),
    ):
        if not set(params) <= set(model._settings()):
            continue
        model = placed(type(model))(**model.get_params(deep=False) | params)
        before = sorted(vars(model))
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight)
        assert sorted(vars(model)) == before


def swapped(items, i, item):
    return [item if j == i else other for j, other in enumerate(items)]


def fitted():
    return BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)


BAD_ITEMS = {
    "fewer features": (np.ones((3, 2)), r"X\[1\] has 2 features, but there were 3"),
    "NaN": (np.full((3, 3), np.nan), r"X\[1\] contains NaN or infinity.*nan"),
    "infinity": (np.full((3, 3), -np.inf), r"X\[1\] contains NaN or infinity.*-inf"),
    "one dimension": (np.ones(3), r"X\[1\] must be 2-D.*got shape \(3,\)"),
    "three dimensions": (np.ones((3, 3, 1)), r"X\[1\] must be 2-D.*\(3, 3, 1\)"),
    "text": (np.full((3, 3), "a"), r"X\[1\] must be numeric"),
    "ragged lists": ([[1.0, 2.0, 3.0], [1.0]], r"X\[1\] must be an array of numbers"),
    "complex": (np.ones((3, 3)) * 1j, r"X\[1\] must be numeric.*complex"),
    "nothing": (None, r"X\[1\] must be"),
    "objects": (np.array([[{}, 1, 2]] * 3, dtype=object), r"X\[1\] must be an array"),
    "sparse among dense": (sparse.csr_array(np.ones((3, 3))), r"X\[0\] is dense.*X\[1\]"),
}


@pytest.mark.parametrize(("item", "message"), BAD_ITEMS.values(), ids=BAD_ITEMS)
def test_a_sequence_that_cannot_be_used_is_named_in_all_calls(item, message):
    X = swapped(GOOD_X, 1, item)
    for container in (list, as_objects):
        refused(container(X), GOOD_Y, message)
    model = fitted()
    for ask in (
        model.predict, model.max_marginals, model.predict_k_best,
        lambda X: model.score(X, GOOD_Y),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            ask(X)


def test_sparse_sequences_and_numbers_of_features_and_labelings_are_looked_at():
    X = [sparse.csr_array(x) for x in GOOD_X]
    refused(swapped(X, 2, GOOD_X[2]), GOOD_Y, r"X\[0\] is sparse and X\[2\] is not")
    for bad in (np.nan, np.inf):
        X[1] = sparse.csr_array(np.full((3, 3), bad))
        refused(X, GOOD_Y, rf"X\[1\] contains NaN or infinity.*{bad}")
    with pytest.raises(ValueError, match=r"X\[0\] has 4 features.* 3 in fit"):
        fitted().predict([np.ones((2, 4))])
    for k, error in (
        (0, ValueError), (-1, ValueError), (1.5, TypeError), ((), TypeError),
    ):  # fmt: skip
        with pytest.raises(error, match="k must be"):
            fitted().predict_k_best(GOOD_X, k=k)


BAD_LABELS = {
    "too few": (np.array([0, 1]), r"y\[1\] has 2 labels for the 3 positions of X\[1\]"),
    "floats": (np.array([0.5, 1, 2]), r"y\[1\] has floating-point labels.*0.5"),
    "matrix": (np.ones((3, 1), dtype=int), r"y\[1\] must be a 1-D array.*\(3, 1\)"),
    "number": (1, r"y\[1\] is 1, but must be a list of labels"),
    "ragged": ([[0], [1, 2], [0]], r"y\[1\] must be a 1-D array"),
    "lists": (as_objects([[0], [1], [2]]), r"y\[1\] has the label \[0\]"),
    "no label": (np.array([], dtype=int), r"y\[1\] has 0 labels for the 3 positions"),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_cannot_be_used_are_named(labels, message):
    refused(GOOD_X, swapped(GOOD_Y, 1, labels), message)
    model = fitted()
    with pytest.raises(ValueError, match=message):
        model.score(GOOD_X, swapped(GOOD_Y, 1, labels))


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b"], ["a", "a", "b"], [1]],
        [["a", 1], ["a", "a", "b"], ["b"]],
        [[0, 1], np.array(["0", "1", "1"]), [1]],
        [["a", b"b"], ["a", "a", "b"], ["b"]],
        [["a", "b"], ["a", "a", "b"], [b"b"]],
        [as_objects(labels) for labels in (["a", "b"], ["a", "a", "b"], [1])],
    ],
    ids=["items", "one item", "digits", "bytes", "items of bytes", "objects"],
)
def test_numbers_beside_strings_are_not_made_strings(y):
    refused(GOOD_X, y, "y mixes labels")
    y = [*y[:2], as_objects([("c",)])]
    refused(GOOD_X, y, r"y\[2\] has the label \('c',\)|y mixes labels")


def test_y_must_be_there_and_as_long_as_x_which_is_not_empty():
    for structure in (ChainStructure(), PythonMulticlass()):
        refused(GOOD_X, None, "requires y to be passed", structure)
        refused(GOOD_X, GOOD_Y[:2], "same length; got 3 and 2", structure)
    model = fitted()
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.score(GOOD_X, None)
    for structure in (ChainStructure(), PythonMulticlass()):
        refused([], [], "X is empty", structure)
        refused(as_objects([]), as_objects([]), "X is empty", structure)
    for kind in FLAT:
        problem = make_problem(kind)
        refused(problem.X[:0], problem.y[:0], "0 sample", problem.structure)


@pytest.mark.parametrize("kind", FLAT)
def test_a_sparse_y_is_looked_at_before_it_is_read(kind):
    problem = make_problem(kind)
    Y = sparse.csr_array(np.eye(problem.X.shape[0], 3))
    Y.indices[0] = 10**6
    message = r"^y\.indices must be integers in \[0, 3\)"
    refused(problem.X, Y, message, problem.structure)
    with pytest.raises(ValueError, match=message):
        problem.estimator(tol=0.5).fit(problem.X, problem.y).score(problem.X, Y)
    row = sparse.coo_array(np.ones(problem.X.shape[0]))
    if row.ndim == 1:  # since SciPy 1.13
        refused(problem.X, row, r"^y must have shape \(n_rows, n", problem.structure)


@pytest.mark.parametrize(
    "X", [np.ones((4, 3)), sparse.csr_array(np.ones((4, 3))), "text", 3, None]
)
def test_what_is_no_sequence_of_sequences_is_refused(X):
    words = "X must be a sequence"
    words += (
        "" if np.ndim(X) == 0 and not sparse.issparse(X) else r" of n items.*\(4, 3\)"
    )
    refused(X, [0, 1, 0, 1], words)
    with pytest.raises(ValueError, match=words):
        fitted().predict(X)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_a_single_class_is_refused_by_name(kind):
    problem = make_problem(kind)
    y = [np.full(np.shape(labels), 7) for labels in problem.y]
    y = y if kind == "chain" else np.array(y)
    # For BinaryStructure and "auto" too.
    for structure in (problem.structure, "auto"):
        refused(problem.X, y, "only one class: 7", structure)
        if kind == "multiclass":
            words = "(?i)continuous|label type"
            refused(problem.X, problem.y + 0.5, words, structure)
    if kind == "chain":
        refused(GOOD_X[:1], [np.array([5, 5])], "only one class: 5.*`classes`")


def test_classes_must_hold_all_labels_once():
    problem = make_problem("chain")
    for classes, message in [
        ([0, 1], "label 2, which is not among `classes`"),
        ([0, 1, 2, 2], "classes holds a label twice"),
    ]:
        refused(problem.X, problem.y, message, classes=classes)
    refused(problem.X, [0] * problem.n, "classes", PythonMulticlass(), classes=[0, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_none_are_refused(kind):
    problem = make_problem(kind)
    n = problem.n
    negative, nan = np.ones(n), np.ones(n)
    negative[2], nan[2] = -1.0, np.nan
    for weights, message in [
        (np.zeros(n), "(?s)zero.*weight|weight.*zero"),
        (np.ones(n + 1), rf"sample_weight must have shape \({n},\).* got \({n + 1},\)"),
        (np.ones((n, 2)), rf"sample_weight must have shape .* got \({n}, 2\)"),
        (negative, r"sample_weight\[2\] must be finite and >= 0; got -1.0"),
        (nan, r"sample_weight\[2\] must be finite and >= 0; got nan"),
        (np.full(n, 1e308), "sum of sample_weight .* too large"),
    ]:
        refused(problem.X, problem.y, message, problem.structure, sample_weight=weights)
