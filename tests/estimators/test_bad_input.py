"""Bad input is refused before any work; the message names the item and the value."""

import numpy as np
import pytest
from _estimators import FLAT, KINDS, PythonMulticlass, as_objects, make_problem
from _options import placed
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
)

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
bad_items = pytest.mark.parametrize(
    ("item", "message"), BAD_ITEMS.values(), ids=BAD_ITEMS
)


@bad_items
@pytest.mark.parametrize("container", [list, as_objects])
def test_a_sequence_that_cannot_be_used_is_named_in_fit(item, message, container):
    refused(container(swapped(GOOD_X, 1, item)), GOOD_Y, message)


@bad_items
def test_a_sequence_that_cannot_be_used_is_named_in_predict_and_score(item, message):
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    X = swapped(GOOD_X, 1, item)
    for ask in (
        model.predict,
        model.max_marginals,
        model.predict_k_best,
        lambda X: model.score(X, GOOD_Y),
    ):
        with pytest.raises(ValueError, match=message):
            ask(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_in_a_sparse_sequence_is_named(bad):
    X = [sparse.csr_array(x) for x in GOOD_X]
    X[1] = sparse.csr_array(np.full((3, 3), bad))
    refused(X, GOOD_Y, rf"X\[1\] contains NaN or infinity.*{bad}")


def test_dense_among_sparse_sequences_is_named():
    X = [sparse.csr_array(x) for x in GOOD_X]
    refused(swapped(X, 2, GOOD_X[2]), GOOD_Y, r"X\[0\] is sparse and X\[2\] is not")


def test_other_features_than_in_fit_are_named():
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=r"X\[0\] has 4 features.* 3 in fit"):
        model.predict([np.ones((2, 4))])


BAD_LABELS = {
    "too few": (np.array([0, 1]), r"y\[1\] has 2 labels for the 3 positions of X\[1\]"),
    "floats": (np.array([0.5, 1, 2]), r"y\[1\] has floating-point labels.*0.5"),
    "matrix": (np.ones((3, 1), dtype=int), r"y\[1\] must be a 1-D array.*\(3, 1\)"),
    "number": (1, r"y\[1\] must be a 1-D array"),
    "ragged": ([[0], [1, 2], [0]], r"y\[1\] must be a 1-D array"),
    "lists": (as_objects([[0], [1], [2]]), r"y\[1\] has the label \[0\]"),
    "no label": (np.array([], dtype=int), r"y\[1\] has 0 labels for the 3 positions"),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_cannot_be_used_are_named(labels, message):
    refused(GOOD_X, swapped(GOOD_Y, 1, labels), message)
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=message):
        model.score(GOOD_X, swapped(GOOD_Y, 1, labels))


def test_labels_that_cannot_be_sorted_are_refused():
    y = [np.array(["a", "b"]), np.array(["a", "a", "b"]), as_objects([("c",)])]
    refused(GOOD_X, y, r"y\[2\] has the label \('c',\)")
    y[2] = as_objects([1])
    refused(GOOD_X, [labels.astype(object) for labels in y], "y mixes labels")


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b"], ["a", "a", "b"], [1]],
        [["a", 1], ["a", "a", "b"], ["b"]],
        [[0, 1], np.array(["0", "1", "1"]), [1]],
        [["a", b"b"], ["a", "a", "b"], ["b"]],
        [["a", "b"], ["a", "a", "b"], [b"b"]],
    ],
    ids=["items", "one item", "digits", "bytes", "items of bytes"],
)
def test_numbers_beside_strings_are_not_made_strings(y):
    refused(GOOD_X, y, "y mixes labels")


def test_y_must_be_there_and_as_long_as_x():
    for structure in (ChainStructure(), PythonMulticlass()):
        refused(GOOD_X, None, "requires y to be passed", structure)
        refused(GOOD_X, GOOD_Y[:2], "same length; got 3 and 2", structure)
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.score(GOOD_X, None)


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


@pytest.mark.parametrize("structure", [ChainStructure(), PythonMulticlass()])
def test_no_example_at_all_is_refused(structure):
    refused([], [], "X is empty", structure)
    refused(as_objects([]), as_objects([]), "X is empty", structure)


@pytest.mark.parametrize("kind", FLAT)
def test_no_row_at_all_is_refused(kind):
    problem = make_problem(kind)
    refused(problem.X[:0], problem.y[:0], "0 sample", problem.structure)


@pytest.mark.parametrize("X", [np.ones((4, 3)), sparse.csr_array(np.ones((4, 3)))])
def test_one_matrix_is_no_sequence_of_sequences(X):
    refused(X, [0, 1, 0, 1], r"X must be a sequence of n items.*\(4, 3\)")
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="X must be a sequence of n items"):
        model.predict(X)


@pytest.mark.parametrize("X", ["text", 3, None])
def test_what_is_no_sequence_is_refused(X):
    refused(X, GOOD_Y, "X must be a sequence")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_a_single_class_is_refused_by_name(kind):
    problem = make_problem(kind)
    y = [np.full(np.shape(labels), 7) for labels in problem.y]
    y = y if kind == "chain" else np.array(y)
    # For BinaryStructure and "auto" too.
    refused(problem.X, y, "only one class: 7", problem.structure)
    refused(problem.X, y, "only one class: 7", "auto")


def test_one_sequence_with_one_label_is_refused_with_a_way_out():
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0.0), ("C", -1.0), ("C", np.nan), ("C", np.inf), ("C", "1"),
        ("tol", -1e-3), ("max_iter", 0), ("max_iter", 1.5), ("max_time", 0),
        ("gap_check_interval", 0), ("intercept_scaling", 0.0), ("structure", "chains"),
        ("structure", ChainStructure), ("step", "newton"), ("sampling", "cyclic"),
        ("cache", "yes"), ("algorithm", "sgd"), ("class_weight", "equal"),
        ("rescaling", "both"), ("search", "linear"), ("solver", "adam"),
        ("average", "never"),
    ],
)  # fmt: skip
def test_a_parameter_out_of_its_range_is_named_with_its_value(name, value):
    problem = make_problem("binary")
    kinds = BCFWClassifier, SlackRescaledSSVM
    for kind in (kind for kind in kinds if name in kind()._settings()):
        owner = f"(the solver_options of )?{kind.__name__}"
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {owner}"):
            placed(kind)(**{name: value}).fit(problem.X, problem.y)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1.0, -1.0), r"lower bound above the upper one: 1.0 > -1.0"),
        ((0.0, np.nan), "upper bound of coef_bounds has NaN"),
        ((np.zeros(3), 1.0), r"lower bound.*\(1, 4\).*\(3,\)"),
        ((0.0,), "coef_bounds"),
        ((-1.0, 0.0, 1.0), "coef_bounds"),
        (("a", 1.0), "lower bound of coef_bounds"),
    ],
)
def test_bounds_that_make_no_box_are_refused(bounds, message):
    problem = make_problem("binary")
    refused(problem.X, problem.y, message, BinaryStructure(), coef_bounds=bounds)


def test_batch_steps_are_plain():
    problem = make_problem("binary")
    for options in ({"step": "pairwise"}, {"step": "away"}, {"cache": True}):
        refused(
            problem.X, problem.y, "requires algorithm='block'", BinaryStructure(),
            algorithm="batch", **options,
        )  # fmt: skip


@pytest.mark.parametrize("costs", [np.ones((3, 3)), np.zeros((2, 3)), -np.eye(3)[::-1]])
def test_costs_that_are_none_are_refused(costs):
    for kind, structure in [
        ("multiclass", MulticlassStructure),
        ("chain", ChainStructure),
    ]:
        problem = make_problem(kind)
        refused(problem.X, problem.y, "label_costs must", structure(label_costs=costs))


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_values_of_flat_data_are_refused(kind, bad):
    problem = make_problem(kind)
    X = problem.X.copy()
    X[2, 1] = bad
    refused(X, problem.y, "NaN|infinity", problem.structure)
    with pytest.raises(ValueError, match="NaN|infinity"):
        problem.fitted().predict(X)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_continuous_targets_are_refused(kind):
    problem = make_problem(kind)
    for structure in ("auto", problem.structure):
        refused(problem.X, problem.y + 0.5, "(?i)continuous|label type", structure)


class Wrong(PythonMulticlass):
    """Labels all positions of a sequence, and gets something wrong."""

    def __init__(self, n_classes=3, spy=None, fault=None):
        super().__init__(n_classes, spy)
        self.fault = fault

    def joint_feature(self, x, y):
        phi = np.zeros((self.n_classes, x.shape[1]))
        np.add.at(phi, np.asarray(y), x[: len(y)])
        if self.fault == "short feature" and np.sum(y) == 0:
            return phi.ravel()[:-1]
        if self.fault == "NaN feature" and np.sum(y) == 0:
            return phi.ravel() * np.nan
        return phi.ravel()

    def loss(self, y_true, y):
        if self.fault == "negative loss":
            return -1.0
        if self.fault == "NaN loss":
            return np.nan
        n = min(len(y), len(y_true))
        return float(np.sum(np.asarray(y)[:n] != np.asarray(y_true)[:n]))

    def decode(self, x, w):
        return self.loss_augmented_decode(x, np.full(len(x), -1), w, 0.0)

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        scores = x @ w.reshape(self.n_classes, -1).T
        labels = (scores + lam * (np.arange(3) != y_true[:, None])).argmax(axis=1)
        return labels[:-1] if self.fault == "short labeling" else labels


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("short labeling", r"shape|length"),
        ("negative loss", r"loss of Wrong must be.*-1.0 for example \d"),
        ("NaN loss", r"loss of Wrong must be.*nan for example \d"),
        ("short feature", r"joint_feature of Wrong must have shape \(9,\).*example \d"),
        ("NaN feature", r"joint_feature of Wrong must be finite; got nan.*example \d"),
    ],
)
def test_a_structure_that_answers_nonsense_is_refused(fault, message):
    X = [x + np.eye(3)[: len(x)] for x in GOOD_X]
    y = [np.array([1, 2]), np.array([1, 2, 1]), np.array([2])]
    refused(X, y, message, Wrong(fault=fault))
    BCFWClassifier(Wrong(), tol=0.1).fit(X, y)


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [(0, ValueError, "k must be"), (-1, ValueError, "k must be"),
     (1.5, TypeError, "k must be an integer"), ((), TypeError, "k must be an integer")],
)  # fmt: skip
def test_a_number_of_labelings_that_is_none_is_refused(k, error, message):
    model = BCFWClassifier(ChainStructure(), tol=0.5).fit(GOOD_X, GOOD_Y)
    with pytest.raises(error, match=message):
        model.predict_k_best(GOOD_X, k=k)
