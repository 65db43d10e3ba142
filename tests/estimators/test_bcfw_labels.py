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
@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_class_weights_are_weights_of_examples_or_costs_of_positions(kind):
    problem = make_problem(kind)
    labels = np.concatenate([np.atleast_1d(y) for y in problem.y])
    counts, s = np.bincount(labels), np.linspace(1, 2, problem.n)
    balanced = dict(enumerate(len(labels) / (len(counts) * counts)))
    data = problem.X, problem.y
    for given, own in (("balanced", balanced), ({0: 0.5, 1: 3.0}, {0: 0.5, 1: 3.0})):
        model = problem.estimator(class_weight=given, **ACCURATE)
        # Balanced are the labels, whatever the weights of their examples.
        model.fit(*data, s)
        by_class = np.array([own.get(c, 1.0) for c in range(len(counts))])
        if kind == "chain":
            costs = by_class[:, np.newaxis] * (1 - np.eye(3))
            structure, products = ChainStructure(label_costs=costs), s
        else:
            structure, products = problem.structure, s * by_class[problem.y]
        expected = problem.estimator(structure=structure, **ACCURATE)
        expected.fit(*data, products)
        assert_same_optimum(model, expected, products.sum())
    for weight in (-1.0, np.nan, np.inf):
        words = f"class_weight .* got {weight} for class 1"
        with pytest.raises(ValueError, match=words):
            problem.fitted(class_weight={1: weight})
    for other in ("multilabel", "custom"):
        with pytest.raises(ValueError, match="class_weight cannot be used with"):
            make_problem(other).fitted(class_weight="balanced")


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


def test_an_indicator_may_be_sparse_or_one_column_where_the_structure_is_named():
    problem = make_problem("multilabel")
    model = problem.estimator().fit(problem.X, sparse.csr_matrix(problem.y))
    np.testing.assert_array_equal(model.coef_, problem.fitted().coef_)
    model.fit(problem.X, problem.y[:, :1])
    assert model.coef_.shape == (1, 5)
    assert model.predict(problem.X).shape == (problem.n, 1)
