"""Labels of any kind, their weights, and those that were not there in fit."""

import re

import numpy as np
import pytest
from _estimators import (
    ACCURATE,
    KINDS,
    as_objects,
    assert_same_labels,
    assert_same_optimum,
    however_near,
    make_problem,
)
from _mixtures import even_one_class
from _random_confusion import OF_CONFUSION, ONE_LABEL
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, learning_curve

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.confusion.registry import METRICS
from sklearn_structsvm.metrics import LinearLoss, token_accuracy_scorer
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    TreeStructure,
)

FLAT = [
    BCFWClassifier(tol=0.05), BCFWClassifierCV(Cs=[0.1, 1.0], cv=2, tol=0.05),
    SlackRescaledSSVM(tol=0.05), SubLBFGSClassifier(), BMRMClassifier(),
    PragamClassifier(tol=0.05),
]  # fmt: skip


def warned(score, *names):
    """What `score()` returns, once it has warned of these labels and nothing else."""
    with pytest.warns(UserWarning, match="not seen in fit") as record:
        value = score()
    (warning,) = record
    message = re.sub(r" Did you mean .*\?", "", str(warning.message))
    assert message == (
        f"y has labels that were not seen in fit: {', '.join(names)}. "
        "They count as wrong."
    )
    assert warning.filename == __file__
    return value


@pytest.mark.parametrize("model", FLAT, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("kind", "names"), [("binary", ["a", "b", "c", "d"]), ("multiclass", [0, 1, 2, 3])]
)
def test_the_accuracy_is_that_of_scikit_learn(model, kind, names):
    problem = make_problem(kind)
    names = np.array(names)
    y = names[problem.y]
    before = model.fit(problem.X, y).predict(problem.X)
    other = y.copy()
    other[[1, 4, 5]] = names[3]
    weights = np.arange(1.0, problem.n + 1)
    right = before == other
    assert not right[[1, 4, 5]].any()
    found = warned(lambda: model.score(problem.X, other, weights), repr(names[3].item()))
    assert found == pytest.approx(np.average(right, weights=weights))
    theirs = LogisticRegression().fit(problem.X, y)
    assert theirs.score(problem.X, other) == np.mean(theirs.predict(problem.X) == other)
    other[:] = names[3]
    found = warned(lambda: model.score(problem.X, other), repr(names[3].item()))
    assert found == 0.0
    np.testing.assert_array_equal(model.predict(problem.X), before)
    # Each label is named once, and not very many.
    shown = (*(str(label) for label in range(100, 107)), "...")
    if names[0] == 0:
        many = 100 + np.arange(problem.n) % 9
        warned(lambda: model.score(problem.X, many), *shown)


def sequences(tree):
    chain = make_problem("chain", n=20)
    if not tree:
        return chain, ChainStructure(), chain.X
    parents = [np.arange(len(labels)) - 1 for labels in chain.y]
    return chain, TreeStructure(), list(zip(chain.X, parents, strict=True))


@pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
def test_a_token_of_an_unseen_label_is_wrong_and_the_others_are_as_they_were(tree):
    problem, structure, X = sequences(tree)
    model = BCFWClassifier(structure, tol=0.05).fit(X, problem.y)
    y = [np.array(labels) for labels in problem.y]
    y[3][0], y[7][0] = 9, 8
    predicted = model.predict(X)
    right = np.concatenate(
        [labels == guess for labels, guess in zip(y, predicted, strict=True)]
    )
    found = warned(lambda: model.score(X, y), "9", "8")
    # Scorers of one's own choice see the labels as they are.
    assert found == np.mean(right) == token_accuracy_scorer(model, X, y)
    # Each guess is right, but for the first sequence: what looks alike is no label.
    y = [labels.tolist() for labels in predicted]
    y[0] = [str(label) for label in y[0]]
    names = dict.fromkeys(repr(label) for label in y[0])
    found = warned(lambda: model.score(X, y), *names)
    assert found == pytest.approx(1.0 - len(y[0]) / sum(map(len, y)))


def test_sets_of_labels_have_no_unseen_ones_but_a_shape_and_may_be_sparse_or_a_column():
    problem = make_problem("multilabel")
    model = problem.fitted()
    for bad, message in [
        (problem.y[:, :2], r"y must have shape \(n_samples, 3\); got \(16, 2\)"),
        (problem.y + 1, "must be a label indicator of 0 and 1; got 2"),
        (problem.y.astype(str), "y must hold numbers"),
        ([[1, 0, 1], [1]], "y must be an array"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.score(problem.X, bad)
    other = problem.estimator().fit(problem.X, sparse.csr_matrix(problem.y))
    np.testing.assert_array_equal(other.coef_, model.coef_)
    other.fit(problem.X, problem.y[:, :1])
    assert other.coef_.shape == (1, 5)
    assert other.predict(problem.X).shape == (problem.n, 1)


@however_near
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_searches_and_learning_curves_have_a_number_where_a_part_lacks_a_label(kind):
    problem = make_problem(kind, n=24)
    # Labels in turn, of which the first half lacks 2; learning curves begin with it.
    y = [
        np.arange(i, i + np.size(own)) % (2 if i < 12 else 3)
        for i, own in enumerate(problem.y)
    ]
    y = y if kind == "chain" else np.concatenate(y)
    model = problem.estimator(tol=0.1, max_iter=100)
    cv = [(np.arange(18), np.arange(18, 24))]
    with pytest.warns(UserWarning, match="not seen in fit: 2"):
        _, train, test = learning_curve(
            model, problem.X, y, cv=cv, train_sizes=[6, 18], error_score="raise"
        )
    assert np.isfinite(train).all() and np.isfinite(test).all()
    cv = [(np.arange(12), np.arange(12, 24)), (np.arange(12, 24), np.arange(12))]
    grid = {"C": [0.1, 1.0]}
    with pytest.warns(UserWarning, match="not seen in fit: 2"):
        search = GridSearchCV(model, grid, cv=cv, error_score="raise", refit=False)
        search.fit(problem.X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    search.set_params(estimator__solver_options__classes=[0, 1, 2]).fit(problem.X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@even_one_class
@pytest.mark.parametrize("name", [name for name in OF_CONFUSION if name not in ONE_LABEL])
def test_a_metric_has_a_class_more_that_is_never_predicted(name):
    problem = make_problem("binary", n=40)
    model = ComplexMetricClassifier(metric=name).fit(problem.X, problem.y)
    y = problem.y.copy()
    y[:5] = 2
    found = warned(lambda: model.score(problem.X, y), "2")
    assert found == model.metric_.scorer()(model, problem.X, y)
    assert found < model.score(problem.X, model.predict(problem.X))


@even_one_class
@pytest.mark.parametrize("names", [[0, 1, 2], ["no", "yes", "perhaps"]])
def test_the_positive_label_is_the_one_of_fit(names):
    problem, names = make_problem("binary", n=40), np.array(names)
    y = names[problem.y]
    metric = METRICS["f1"](pos_label=names[1].item())
    named = "f1" if names[0] == 0 else metric
    model = ComplexMetricClassifier(metric=named).fit(problem.X, y)
    other = y.copy()
    other[:5] = names[2]
    found = warned(lambda: model.score(problem.X, other), repr(names[2].item()))
    guesses = model.predict(problem.X)
    assert found == pytest.approx(f1_score(other == names[1], guesses == names[1]))
    # Costs of a label that is not known are asked for.
    model.set_params(metric=LinearLoss([[0, 1], [2, 0]])).fit(problem.X, y)
    with pytest.warns(UserWarning, match="not seen in fit"):
        with pytest.raises(ValueError, match=r"costs must have shape \(3, 3\)"):
            model.score(problem.X, other)


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


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_labels_of_any_kind_come_back_as_they_were_given(kind):
    problem = make_problem(kind)
    plain = problem.fitted()
    expected = plain.predict(problem.X)
    for names in list(NAMES.values())[: None if kind == "binary" else 3]:
        model = problem.estimator().fit(problem.X, renamed(problem, names))
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.classes_, names[: len(plain.classes_)])
        predicted = model.predict(problem.X)
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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "custom"])
def test_auto_gives_the_fit_of_the_structure_it_reads(kind):
    problem = make_problem(kind)
    model = problem.fitted(structure="auto")
    assert type(model.structure_) is type(problem.structure)
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
