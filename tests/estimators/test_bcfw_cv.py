"""BCFWClassifierCV: C chosen along the path by cross-validation."""

import numpy as np
import pytest
from _estimators import KINDS, assert_same_fit, assert_same_labels, make_problem
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.model_selection import KFold, StratifiedKFold

from sklearn_structsvm import BCFWClassifierCV, bcfw_path
from sklearn_structsvm.metrics import token_accuracy_score, token_accuracy_scorer

CS = [0.01, 0.1, 1.0]


def cv_model(problem, **params):
    defaults = {
        "Cs": CS, "cv": 3, "step": "pairwise", "cache": False, "max_iter": 10**4,
        "random_state": 0,
    }  # fmt: skip
    return BCFWClassifierCV(problem.structure, **defaults | params)


@pytest.mark.parametrize("kind", KINDS)
def test_the_final_fit_is_that_at_the_chosen_c(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem).fit(problem.X, problem.y)
    assert model.scores_path_.shape == (3, 3)
    np.testing.assert_array_equal(model.Cs_, CS)
    means = model.scores_path_.mean(axis=1)
    # The smallest of the best.
    assert model.C_ == CS[int(np.flatnonzero(means == means.max())[0])]
    classes = getattr(model, "classes_", None)
    single = problem.fitted(C=model.C_, classes=classes)
    np.testing.assert_array_equal(model.coef_, single.coef_)
    for name in ("objective_", "dual_objective_", "dual_gap_", "n_iter_", "step_"):
        assert getattr(model, name) == getattr(single, name)
    assert_same_labels(model.predict(problem.X), single.predict(problem.X))
    assert model.score(problem.X, problem.y) == single.score(problem.X, problem.y)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "chain", "chain-csr"])
def test_scores_are_those_of_the_path_of_each_fold(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem, cv=KFold(2)).fit(problem.X, problem.y)
    structure = model.structure_
    for fold, (train, test) in enumerate(KFold(2).split(problem.X)):
        lambdas = 1.0 / (np.array(CS) * len(train))
        path = bcfw_path(
            *problem.take(train),
            structure=problem.structure,
            classes=model.classes_,
            min_lambda=lambdas[-1],
            step="pairwise",
            cache=False,
            random_state=0,
        )
        X, y = problem.take(test)
        expected = [
            structure.score(y, structure.decode_batch(X, path.coef(lam)))
            for lam in lambdas
        ]
        np.testing.assert_array_equal(model.scores_path_[:, fold], expected)


def test_weights_count_in_training_and_in_the_scores():
    problem = make_problem("chain", n=24)
    weights = np.zeros(problem.n)
    weights[:12] = 1.0
    cv = [(np.arange(0, 24, 2), np.arange(1, 24, 2))]
    model = cv_model(problem, cv=cv).fit(problem.X, problem.y, weights)
    half = make_problem("chain", n=24)
    half.X, half.y = half.take(np.arange(12))
    cv = [(np.arange(0, 12, 2), np.arange(1, 12, 2))]
    expected = cv_model(half, cv=cv).fit(half.X, half.y)
    np.testing.assert_allclose(model.scores_path_, expected.scores_path_, atol=1e-12)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "scoring", [token_accuracy_scorer, make_scorer(token_accuracy_score)]
)
def test_a_scorer_may_be_named(scoring):
    problem = make_problem("chain", n=24)
    named = cv_model(problem, scoring=scoring).fit(problem.X, problem.y)
    assert_same_fit(named, cv_model(problem).fit(problem.X, problem.y))


def test_a_loss_chooses_the_least():
    problem = make_problem("multiclass", n=24)
    scoring = make_scorer(zero_one_loss, greater_is_better=False)
    model = cv_model(problem, scoring=scoring).fit(problem.X, problem.y)
    plain = cv_model(problem).fit(problem.X, problem.y)
    np.testing.assert_allclose(model.scores_path_, plain.scores_path_ - 1.0, atol=1e-14)
    assert model.C_ == plain.C_


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_a_grid_of_a_number_of_values_runs_from_the_first_breakpoint(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem, Cs=5, eps=0.2).fit(problem.X, problem.y)
    assert model.Cs_.shape == (5,) and model.scores_path_.shape == (5, 3)
    ratios = model.Cs_[1:] / model.Cs_[:-1]
    np.testing.assert_allclose(ratios, ratios[0])
    path = bcfw_path(
        problem.X, problem.y, structure=problem.structure, eps=0.2, min_lambda=1e9
    )
    assert model.Cs_[0] == pytest.approx(1 / (path.lambdas[0] * problem.n), rel=1e-9)


def test_values_of_c_are_sorted():
    problem = make_problem("binary", n=24)
    model = cv_model(problem, Cs=[1.0, 0.01, 0.1]).fit(problem.X, problem.y)
    assert_same_fit(model, cv_model(problem).fit(problem.X, problem.y))


def test_classes_are_stratified_and_sequences_are_not():
    flat, chain = make_problem("binary", n=24), make_problem("chain", n=24)
    for problem, splitter in ((flat, StratifiedKFold(3)), (chain, KFold(3))):
        by_number = cv_model(problem).fit(problem.X, problem.y)
        named = cv_model(problem, cv=splitter).fit(problem.X, problem.y)
        assert_same_fit(by_number, named)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_fold_may_lack_a_label(kind):
    problem = make_problem(kind, n=24)
    rare = 0
    y = [np.where(labels == rare, 1, labels) for labels in problem.y]
    y[0] = np.asarray(problem.y[0]) * 0 + rare
    y = np.array(y) if kind == "multiclass" else y
    model = cv_model(problem, cv=KFold(3)).fit(problem.X, y)
    assert np.isfinite(model.scores_path_).all()
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_a_heuristic_path_and_one_seed_give_one_result(kind):
    problem = make_problem(kind, n=24)
    first, second = (
        cv_model(problem, heuristic=True).fit(problem.X, problem.y) for _ in range(2)
    )
    assert_same_fit(first, second)


@pytest.mark.parametrize("bad", [[0.1, -1.0], [], [0.0], [[1.0]], [np.nan]])
def test_values_that_are_no_c_are_refused(bad):
    problem = make_problem("binary")
    with pytest.raises(ValueError, match="Cs must be positive"):
        cv_model(problem, Cs=bad).fit(problem.X, problem.y)
