"""Labels that were not there in fit count as wrong where predictions are scored."""

import re
import warnings

import numpy as np
import pytest
from _estimators import assert_same_labels, however_near, make_problem
from _mixtures import even_one_class
from _random_confusion import OF_CONFUSION, ONE_LABEL
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
from sklearn_structsvm.structures import ChainStructure, TreeStructure

FLAT = [
    BCFWClassifier(tol=0.05),
    BCFWClassifierCV(Cs=[0.1, 1.0], cv=2, tol=0.05),
    SlackRescaledSSVM(tol=0.05),
    SubLBFGSClassifier(),
    BMRMClassifier(),
    PragamClassifier(tol=0.05),
]


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
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("names", [[0, 1, 2, 3], ["a", "b", "c", "d"]])
def test_the_accuracy_is_that_of_scikit_learn(model, kind, names):
    problem = make_problem(kind)
    names = np.array(names)
    y = names[problem.y]
    model.fit(problem.X, y)
    other = y.copy()
    other[[1, 4, 5]] = names[3]
    weights = np.arange(1.0, problem.n + 1)
    right = model.predict(problem.X) == other
    assert not right[[1, 4, 5]].any()
    found = warned(lambda: model.score(problem.X, other, weights), repr(names[3].item()))
    assert found == pytest.approx(np.average(right, weights=weights))
    theirs = LogisticRegression().fit(problem.X, y)
    assert theirs.score(problem.X, other) == np.mean(theirs.predict(problem.X) == other)
    other[:] = names[3]
    found = warned(lambda: model.score(problem.X, other), repr(names[3].item()))
    assert found == 0.0


def test_the_warning_names_each_label_once_and_not_very_many():
    problem = make_problem("multiclass")
    model = problem.fitted()
    y = problem.y.copy()
    y[:4] = [9, 7, 9, 7]
    warned(lambda: model.score(problem.X, y), "9", "7")
    shown = (*(str(label) for label in range(100, 107)), "...")
    warned(lambda: model.score(problem.X, np.arange(100, 100 + problem.n)), *shown)


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
    assert warned(lambda: model.score(X, y), "9", "8") == np.mean(right)


@pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
def test_labels_of_another_type_are_never_taken_for_those_of_fit(tree):
    problem, structure, X = sequences(tree)
    model = BCFWClassifier(structure, tol=0.05).fit(X, problem.y)
    guesses = model.predict(X)
    # Each guess is right, but for the first sequence: what looks alike is no label.
    y = [labels.tolist() for labels in guesses]
    y[0] = [str(label) for label in y[0]]
    n_tokens = sum(len(labels) for labels in y)
    names = dict.fromkeys(repr(label) for label in y[0])
    found = warned(lambda: model.score(X, y), *names)
    assert found == pytest.approx(1.0 - len(y[0]) / n_tokens)


def test_sets_of_labels_have_no_unseen_ones_but_a_shape():
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


def test_scorers_of_ones_own_choice_see_the_labels_as_they_are():
    problem = make_problem("chain", n=20)
    model = problem.fitted(tol=0.05)
    y = [np.array(labels) for labels in problem.y]
    y[3][:] = 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_scorer = token_accuracy_scorer(model, problem.X, y)
    assert warned(lambda: model.score(problem.X, y), "9") == by_scorer


def test_predictions_never_have_an_unseen_label():
    problem = make_problem("multiclass")
    model = problem.fitted()
    before = model.predict(problem.X)
    warned(lambda: model.score(problem.X, np.full(problem.n, 7)), "7")
    assert_same_labels(model.predict(problem.X), before)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


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


@even_one_class
def test_costs_of_a_label_that_is_not_known_are_asked_for():
    problem = make_problem("binary", n=40)
    model = ComplexMetricClassifier(metric=LinearLoss([[0, 1], [2, 0]]))
    model.fit(problem.X, problem.y)
    with pytest.warns(UserWarning, match="not seen in fit: 2"):
        with pytest.raises(ValueError, match=r"costs must have shape \(3, 3\)"):
            model.score(problem.X, problem.y + 1)
