"""Labels of any kind, their classes and weights, and what structure="auto" reads."""

import numpy as np
import pytest
from _estimators import (
    ACCURATE,
    as_objects,
    assert_same_labels,
    assert_same_optimum,
    however_near,
    make_problem,
)
from scipy import sparse

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
)

NAMES = {
    "strings": np.array(["a", "bb", "ccc"]),
    "objects": np.array(["a", "bb", "ccc"], dtype=object),
    "gaps": np.array([-5, 3, 1000]),
    "booleans": np.array([False, True]),
}


def renamed(problem, names):
    if problem.kind.startswith("chain"):
        return [names[labels] for labels in problem.y]
    return names[problem.y]


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_labels_of_any_kind_come_back_as_they_were_given(kind, names):
    problem = make_problem(kind)
    if len(names) < 3 and kind != "binary":
        pytest.skip("needs three labels")
    model = problem.estimator().fit(problem.X, renamed(problem, names))
    plain = problem.fitted()
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.classes_, names[: len(plain.classes_)])
    predicted = model.predict(problem.X)
    expected = plain.predict(problem.X)
    if kind == "chain":
        assert all(labels.dtype == names.dtype for labels in predicted)
        assert_same_labels(predicted, [names[labels] for labels in expected])
    else:
        assert predicted.dtype == names.dtype
        np.testing.assert_array_equal(predicted, names[expected])


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_classes_may_name_labels_that_y_lacks(kind):
    problem = make_problem(kind)
    y = renamed(problem, np.array([10, 30, 40]))
    model = problem.estimator(classes=[40, 20, 10, 30]).fit(problem.X, y)
    np.testing.assert_array_equal(model.classes_, [10, 20, 30, 40])
    if kind == "multiclass":
        assert model.coef_.shape == (4, 4)
        assert model.decision_function(problem.X).shape == (problem.n, 4)
    unseen = renamed(problem, np.full(3, 20))
    assert 0 <= model.score(problem.X, unseen) <= 1


@pytest.mark.parametrize(
    ("classes", "structure"),
    [([0, 1], BinaryStructure), ([0, 1, 2], MulticlassStructure)],
)
def test_auto_reads_the_kind_of_problem_off_classes(classes, structure):
    problem = make_problem("binary")
    model = BCFWClassifier(solver_options={"classes": classes}).fit(problem.X, problem.y)
    assert type(model.structure_) is structure


@however_near
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_of_flat_structures_are_weights_of_their_examples(kind, weighted):
    problem = make_problem(kind)
    by_class = {0: 0.5, 1: 3.0, 2: 1.5}
    if kind == "binary":
        del by_class[2]
    s = np.linspace(1, 2, problem.n) if weighted else np.ones(problem.n)
    model = problem.estimator(class_weight=by_class, **ACCURATE)
    model.fit(problem.X, problem.y, s)
    products = s * np.array([by_class[c] for c in problem.y])
    expected = problem.estimator(**ACCURATE).fit(problem.X, problem.y, products)
    assert_same_optimum(model, expected, products.sum())


@however_near
@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_balanced_weights_are_the_inverse_frequencies(kind):
    problem = make_problem(kind)
    labels = np.concatenate([np.atleast_1d(y) for y in problem.y])
    counts = np.bincount(labels)
    by_class = dict(enumerate(len(labels) / (len(counts) * counts)))
    balanced = problem.fitted(class_weight="balanced", **ACCURATE)
    named = problem.fitted(class_weight=by_class, **ACCURATE)
    assert_same_optimum(balanced, named, problem.n)


@however_near
def test_class_weights_of_chains_multiply_the_costs_of_positions():
    problem = make_problem("chain")
    by_class = {0: 0.5, 1: 3.0, 2: 1.5}
    costs = np.array([[0.5], [3.0], [1.5]]) * (1 - np.eye(3))
    model = problem.fitted(class_weight=by_class, **ACCURATE)
    expected = BCFWClassifier(
        ChainStructure(label_costs=costs), random_state=0, **ACCURATE
    ).fit(problem.X, problem.y)
    assert_same_optimum(model, expected, problem.n)


@pytest.mark.parametrize("kind", ["multilabel", "custom"])
def test_class_weight_is_refused_where_it_has_no_meaning(kind):
    with pytest.raises(ValueError, match="class_weight cannot be used with"):
        make_problem(kind).fitted(class_weight="balanced")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_class_weights_that_are_none_are_refused(kind, weight):
    with pytest.raises(ValueError, match=f"class_weight .* got {weight} for class 1"):
        make_problem(kind).fitted(class_weight={1: weight})


AUTO = {
    "binary": BinaryStructure,
    "multiclass": MulticlassStructure,
    "multilabel": MultilabelStructure,
    "multilabel-csr": MultilabelStructure,
    "chain": ChainStructure,
    "chain-csr": ChainStructure,
}


@pytest.mark.parametrize("kind", AUTO)
def test_auto_gives_the_fit_of_the_structure_it_reads(kind):
    problem = make_problem(kind)
    model = problem.fitted(structure="auto")
    assert type(model.structure_) is AUTO[kind]
    np.testing.assert_array_equal(model.coef_, problem.fitted().coef_)


@pytest.mark.parametrize(
    "form",
    [tuple, as_objects, np.stack, lambda items: [x.tolist() for x in items]],
    ids=["tuple", "objects", "3-D", "nested lists"],
)
def test_auto_knows_sequences_in_any_container(form):
    problem = make_problem("chain")
    X, y = [x[:1] for x in problem.X], [labels[:1] for labels in problem.y]
    model = BCFWClassifier(tol=0.1).fit(form(X), y)
    assert type(model.structure_) is ChainStructure
    assert len(model.predict(form(X))) == problem.n


def test_a_sparse_indicator_is_an_indicator():
    problem = make_problem("multilabel")
    model = problem.estimator().fit(problem.X, sparse.csr_matrix(problem.y))
    np.testing.assert_array_equal(model.coef_, problem.fitted().coef_)


def test_one_label_in_a_column_is_an_indicator_where_the_structure_is_named():
    problem = make_problem("multilabel")
    Y = problem.y[:, :1]
    model = problem.estimator().fit(problem.X, Y)
    assert model.coef_.shape == (1, 5)
    assert model.predict(problem.X).shape == (problem.n, 1)
