"""C chosen by cross-validation, along a path or by fits that start from one another."""

import pickle
import re
import warnings
from itertools import product

import numpy as np
import pytest
from _estimators import KINDS, assert_same_fit, assert_same_labels, make_problem
from _options import placed
from _seeds import new_rng
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    CRFClassifier,
    CRFClassifierCV,
    bcfw_path,
)
from sklearn_structsvm.estimators.base import Fit
from sklearn_structsvm.estimators.bcfw_path import find_path
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.metrics import (
    entity_precision_score,
    log_likelihood_scorer,
    token_accuracy_score,
    token_accuracy_scorer,
)
from sklearn_structsvm.structures import ChainStructure, PairwiseMultilabelStructure

CS = [0.01, 0.1, 1.0]


def cv_model(problem, **params):
    defaults = {"Cs": CS, "cv": 3, "step": "pairwise", "cache": False}
    params = defaults | {"max_iter": 10**4, "random_state": 0} | params
    return placed(BCFWClassifierCV)(problem.structure, **params)


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


def some_weights():
    """Zeros among them, but not in all of a fold."""
    return new_rng(9).integers(0, 4, size=24) + 0.5 * (np.arange(24) % 12 == 0)


@pytest.mark.parametrize(
    ("kind", "weighted"),
    [(kind, True) for kind in ("multiclass", "multilabel", "chain", "chain-csr")]
    + [("chain", False)],
)
def test_scores_are_those_of_the_path_of_each_fold(kind, weighted):
    problem = make_problem(kind, n=24)
    weights = some_weights() if weighted else np.ones(24)
    model = cv_model(problem, cv=KFold(2)).fit(problem.X, problem.y, weights)
    structure = model.structure_
    for fold, (train, test) in enumerate(KFold(2).split(problem.X)):
        lambdas = 1.0 / (np.array(CS) * weights[train].sum())
        options = {"classes": model.classes_, "cache": False}
        estimator = placed(BCFWClassifier)(
            clone(structure), step="pairwise", random_state=0, **options
        )
        bound = bind_local(estimator, *problem.take(train), weights[train])
        path, _ = find_path(estimator, bound, min_lambda=lambdas[-1], wanted=lambdas)
        X, y = problem.take(test)
        expected = [
            structure.score(y, structure.decode_batch(X, path.coef(lam)), weights[test])
            for lam in lambdas
        ]
        np.testing.assert_array_equal(model.scores_path_[:, fold], expected)
    single = problem.estimator(C=model.C_, classes=model.classes_)
    single.fit(problem.X, problem.y, weights)
    np.testing.assert_array_equal(model.coef_, single.coef_)


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_a_grid_of_a_number_of_values_runs_from_the_first_breakpoint(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem, Cs=5, eps=0.2).fit(problem.X, problem.y)
    assert model.Cs_.shape == (5,) and model.scores_path_.shape == (5, 3)
    ratios = model.Cs_[1:] / model.Cs_[:-1]
    np.testing.assert_allclose(ratios, ratios[0])
    options = {"structure": problem.structure, "eps": 0.2, "min_lambda": 1e9}
    first = bcfw_path(problem.X, problem.y, **options).lambdas[0]
    assert model.Cs_[0] == pytest.approx(1 / (first * problem.n), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "splitter"), [("binary", StratifiedKFold(3)), ("chain", KFold(3))]
)
def test_equal_choices_of_values_folds_and_scorers_give_equal_fits(kind, splitter):
    """Classes are stratified, and sequences are not; values of C are sorted, and once."""
    problem = make_problem(kind, n=24)
    plain = cv_model(problem).fit(problem.X, problem.y)
    ways = [{"cv": splitter}, {"Cs": (1, 0.01, 1.0, 0.1, 0.01)}, {"n_jobs": 2**40}]
    if kind == "chain":
        ways += [{"scoring": token_accuracy_scorer}, {"cv": KFold(3).split(problem.X)}]
    for params in ways:
        model = cv_model(problem, **params)
        with parallel_config("threading"):
            assert_same_fit(model.fit(problem.X, problem.y), plain)
        np.testing.assert_array_equal(model.Cs_, CS)
    if kind == "chain":
        with pytest.raises(ValueError, match="cv yields no folds. If it is an iterator"):
            model.fit(problem.X, problem.y)
    first, second = (
        cv_model(problem, heuristic=True).fit(problem.X, problem.y) for _ in range(2)
    )
    assert_same_fit(first, second)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_fold_may_lack_a_label(kind):
    problem = make_problem(kind, n=24)
    rare = 0
    y = [np.where(labels == rare, 1, labels) for labels in problem.y]
    y[0] = 0 * np.asarray(problem.y[0]) + rare
    y = np.array(y) if kind == "multiclass" else y
    model = cv_model(problem, cv=KFold(3)).fit(problem.X, y)
    assert np.isfinite(model.scores_path_).all()
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


def test_values_that_are_no_c_and_numbers_that_make_no_grid_are_refused():
    problem = make_problem("binary")
    words = "Cs must be positive|The 'Cs' parameter of BCFWClassifierCV must"
    for bad in [
        [0.1, -1.0], [], [0.0], [[1.0]], [np.nan], [np.inf], ["0.1"], ["a"], [0.1j],
        [True, True], [[1.0], [1.0, 2.0]], np.array(0.1), [None],
        0, 1, -3, True, 2.5, "many", None, 2**63,
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=words):
            cv_model(problem, Cs=bad).fit(problem.X, problem.y)


def test_raw_columns_of_very_different_sizes_have_a_score_for_each_c():
    rng, n = new_rng(4), 300
    columns = {
        "age": rng.integers(18, 90, n), "income": rng.lognormal(10, 1, n),
        "zip": rng.integers(10_000, 99_999, n), "rate": rng.normal(2e-5, 5e-6, n),
    }  # fmt: skip
    score = columns["age"] / 15 + np.log(columns["income"]) + rng.standard_normal(n)
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    model = BCFWClassifierCV(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The best C")
        model.fit(np.column_stack(list(columns.values())), y)
    assert np.isfinite(model.scores_path_).all()
    # The zip code says nothing, and drowns the others where C is small.
    means = model.scores_path_.mean(axis=1)
    assert means.max() > means[0] + 0.1


def test_a_limit_ends_the_paths_of_features_that_are_not_scaled():
    X, y = load_wine(return_X_y=True)
    model = BCFWClassifierCV(Cs=12, tol=1.0, max_iter=10, random_state=0)
    message = (
        "The paths of 5 of 5 folds were cut short by max_iter=10, so that C above .* has "
        "no score. Scale the features"
    )
    with pytest.warns(ConvergenceWarning, match=message) as record:
        model.fit(X, y)
    assert {warning.filename for warning in record} == {__file__}
    # What the paths have reached is kept, and what is chosen among.
    is_scored = np.isfinite(model.scores_path_)
    assert is_scored[0].all() and not is_scored[-1].any()
    assert (is_scored[1:] <= is_scored[:-1]).all()
    means = model.scores_path_[is_scored.all(axis=1)].mean(axis=1)
    assert model.C_ == model.Cs_[means.argmax()] > model.Cs_[0]
    # Time limits them as well. The first C lies where a path is known in closed form.
    model = BCFWClassifierCV(Cs=[1e-12, 1.0], solver_options={"max_time": 1e-9}, cv=2)
    with pytest.warns(ConvergenceWarning, match="2 of 2 folds .*by max_time=1e-09"):
        model.set_params(random_state=0).fit(X, y)
    assert np.isfinite(model.scores_path_).tolist() == [[True, True], [False, False]]
    assert model.C_ == 1e-12
    # Where no C was reached none is chosen.
    model = BCFWClassifierCV(Cs=[10.0, 1.0], max_iter=3, cv=2, random_state=0)
    message = "No C can be chosen: max_iter=3 cut the path .* before C=1, .* smaller Cs"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_limit_cuts_a_path_and_changes_nothing_before(kind):
    problem = make_problem(kind, n=24)
    whole = cv_model(problem, Cs=8, tol=1.0).fit(problem.X, problem.y)
    with pytest.warns(ConvergenceWarning, match="were cut short by max_iter=10"):
        cut = cv_model(problem, Cs=8, tol=1.0, max_iter=10)
        cut.fit(problem.X, problem.y)
    is_scored = np.isfinite(cut.scores_path_)
    assert 3 <= is_scored.sum() < is_scored.size
    np.testing.assert_array_equal(
        cut.scores_path_[is_scored], whole.scores_path_[is_scored]
    )


def test_a_warning_turned_error_leaves_the_fit_that_it_warns_of():
    X, y = load_wine(return_X_y=True)
    # The final fit warns, or where its tol is large enough the paths alone do.
    for tol, message in ((1.0, "The paths of"), (0.0, "BCFW stopped at max_iter=10")):
        model = BCFWClassifierCV(Cs=5, tol=tol, max_iter=10, cv=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            with pytest.raises(ConvergenceWarning, match=message):
                model.fit(X, y)
        assert model.scores_path_.shape == (len(model.Cs_), 2)
        assert model.C_ in model.Cs_ and model.predict(X).shape == y.shape


def test_a_c_whose_score_is_not_a_number_is_not_chosen():
    rng = new_rng(7)
    y = [np.where(rng.random(6) < 0.25, "B-A", "O") for _ in range(40)]
    X = [(tags == "B-A") + 0.1 * rng.standard_normal(6) for tags in y]
    scorer = make_scorer(entity_precision_score, zero_division=np.nan)
    model = BCFWClassifierCV(
        ChainStructure(), Cs=[1e-5, 1e-3, 0.1, 1.0], cv=3,
        solver_options={"eps": 0.03}, scoring=scorer,
        tol=0.05, random_state=0,
    )  # fmt: skip
    with pytest.warns(UserWarning) as record:
        model.fit([x[:, np.newaxis] for x in X], y)
    (warning,) = record
    assert warning.filename == __file__
    assert str(warning.message) == (
        "The mean score of C=1e-05, 0.001 is not finite, because the score of a fold is "
        "not. C was chosen among the other values."
    )
    assert np.isnan(model.scores_path_[:2]).any(axis=1).all()
    assert np.isfinite(model.scores_path_[2:]).all()
    assert model.C_ == 0.1


def fold_scores(scores):
    """A scorer that draws these, a row for each C and a column for each fold."""
    drawn = np.transpose(scores).ravel().tolist()
    return lambda *args: drawn.pop(0)


def constant(score):
    return lambda *args: score


def test_scores_that_are_no_finite_numbers_are_none():
    problem = make_problem("multiclass", n=24)
    for value in (np.nan, np.inf, -np.inf):
        model = cv_model(problem, scoring=constant(value))
        before = sorted(vars(model))
        words = f"every C is {value}, so no C can be chosen"
        with pytest.raises(ValueError, match=words):
            model.fit(problem.X, problem.y)
        assert sorted(vars(model)) == before
    scores = [[np.inf, -np.inf], [0.25, 0.5], [-np.inf, 0.5]]
    model = cv_model(problem, cv=2, scoring=fold_scores(scores))
    with pytest.warns(UserWarning, match="score of C=0.01, 1.0 is not finite"):
        model.fit(problem.X, problem.y)
    assert model.C_ == 0.1
    for score in (1, True, np.float32(0.5), np.array(0.5), np.int64(3)):
        model = cv_model(problem, scoring=constant(score)).fit(problem.X, problem.y)
        assert (model.scores_path_ == float(score)).all()
    for score in (None, "0.5", 1j, np.ones(2), {"accuracy": 0.5}):
        message = rf"scoring must return a number, got {re.escape(repr(score))} \("
        with pytest.raises(ValueError, match=message):
            cv_model(problem, scoring=constant(score)).fit(problem.X, problem.y)


@pytest.mark.parametrize("cls", [BCFWClassifierCV, CRFClassifierCV])
def test_scorers_see_the_c_that_they_score_and_get_the_weights_they_accept(cls):
    problem = make_problem("chain", n=24)
    weights, seen = new_rng(3).uniform(0.1, 5.0, size=24), []

    def scorer(estimator, X, y):
        seen.append((estimator.C, np.abs(estimator.coef_).max()))
        return estimator.score(X, y)

    models = [
        cls(problem.structure, Cs=CS, cv=2, scoring=scoring, random_state=0).fit(
            problem.X, problem.y, weights
        )
        for scoring in (
            scorer, None, token_accuracy_scorer, make_scorer(token_accuracy_score)
        )
    ]  # fmt: skip
    assert [C for C, _ in seen] == CS + CS
    # Weights that are those of each C.
    assert len({size for _, size in seen}) > 2
    for model in models[2:]:
        assert_same_fit(models[1], model)
        np.testing.assert_array_equal(models[1].scores_path_, model.scores_path_)


@pytest.mark.parametrize("cls", [BCFWClassifierCV, CRFClassifierCV])
@pytest.mark.parametrize("routing", [False, True])
def test_groups_are_for_the_splitter(cls, routing):
    problem = make_problem("chain", n=24)
    groups = np.arange(24) % 5
    splits = list(GroupKFold(3).split(problem.X, groups=groups))
    model = cls(problem.structure, Cs=CS, cv=GroupKFold(3), random_state=0)
    with config_context(enable_metadata_routing=routing):
        model.fit(problem.X, problem.y, groups=groups)
        with pytest.raises(TypeError, match="other"):
            clone(model).fit(problem.X, problem.y, groups=groups, other=groups)
    listed = clone(model).set_params(cv=splits).fit(problem.X, problem.y)
    assert_same_fit(model, listed)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        model.fit(problem.X, problem.y)


def test_a_scorer_that_requests_weights_gets_them_by_routing():
    problem = make_problem("multiclass", n=24)
    weights = new_rng(3).uniform(0.1, 5.0, size=24)
    with config_context(enable_metadata_routing=True):
        scorers = [
            make_scorer(accuracy_score).set_score_request(sample_weight=asked)
            for asked in (True, False)
        ]
        asked, not_asked = (
            cv_model(problem, scoring=s).fit(problem.X, problem.y, weights)
            for s in scorers
        )
        plain = cv_model(problem).fit(problem.X, problem.y, weights)
    np.testing.assert_allclose(asked.scores_path_, plain.scores_path_)
    assert (asked.scores_path_ != not_asked.scores_path_).any()


def test_refit_chooses_as_in_a_grid_search_or_the_simplest_within_one_standard_error():
    problem = make_problem("multiclass", n=24)
    # The mean of the best is 0.8, its standard error 0.1 / sqrt(3) = 0.0577.
    scores = np.array([[0.74, 0.74, 0.74], [0.75, 0.74, 0.76], [0.7, 0.8, 0.9]])

    def least_spread(results):
        assert [p["C"] for p in results["params"]] == list(results["param_C"]) == CS
        splits = np.column_stack([results[f"split{k}_test_score"] for k in range(3)])
        np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=1))
        return int(np.argmin(results["std_test_score"]))

    for refit, chosen in (
        ("best", 1.0), ("one_standard_error", 0.1), (least_spread, 0.01)
    ):  # fmt: skip
        model = cv_model(problem, refit=refit, scoring=fold_scores(scores))
        assert model.fit(problem.X, problem.y).C_ == chosen
    for bad, error in ((3, ValueError), (-1, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="refit must return"):
            cv_model(problem, refit=constant(bad)).fit(problem.X, problem.y)


def test_folds_that_tell_nothing_are_refused_before_any_work():
    problem, every = make_problem("multiclass"), np.arange(16)
    for cv, message in [
        ([], "cv yields no folds"),
        ([(every, every), ([], every)], "Fold 1 of cv has no examples in its training p"),
        ([(every, np.arange(0))], "Fold 0 of cv has no examples in its test part"),
        ([(every, np.zeros(16, bool))], "Fold 0 of cv has no examples in its test part"),
        (1000, "cv=1000 needs at least as many examples"),
        (1, "'cv' parameter of BCFWClassifierCV must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            cv_model(problem, cv=cv).fit(problem.X, problem.y)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_fold_whose_weights_are_zero_is_named(kind):
    problem, words = make_problem(kind, n=24), "part of fold 1 of cv have sample_weight 0"
    weights = np.ones(24)
    weights[8:16] = 0.0
    with pytest.raises(ValueError, match=f"test {words}"):
        cv_model(problem, cv=KFold(3)).fit(problem.X, problem.y, weights)

    def unweighted(estimator, X, y):
        return estimator.score(X, y)

    model = cv_model(problem, cv=KFold(3), scoring=unweighted, classes=[0, 1, 2])
    model.fit(problem.X, problem.y, weights)
    assert np.isfinite(model.scores_path_).all()
    with pytest.raises(ValueError, match=f"training {words}"):
        model.fit(problem.X, problem.y, 1.0 - weights)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
def test_an_example_of_weight_k_counts_as_k_examples(kind):
    """In the final fit to `tol`; along a path it does to `eps`, see test_path.py."""
    problem = make_problem(kind, n=24)
    weights = new_rng(8).integers(0, 4, size=24)
    weights[[0, 12]] = 1
    rows = np.repeat(np.arange(24), weights)
    halves = [np.flatnonzero(at < 12) for at in (np.arange(24), rows)]
    cvs = [[(half, np.setdiff1d(np.arange(n), half))] for half, n in zip(
        halves, (24, len(rows)), strict=True)]  # fmt: skip
    known = {} if kind == "multilabel" else {"classes": np.unique(np.hstack(problem.y))}
    accurate = {"Cs": [0.1], "tol": 1e-13, "max_iter": 10**5, **known}
    weighted = cv_model(problem, cv=cvs[0], **accurate)
    weighted.fit(problem.X, problem.y, weights.astype(float))
    repeated = cv_model(problem, cv=cvs[1], **accurate).fit(*problem.take(rows))
    assert abs(weighted.objective_ - repeated.objective_) <= 1e-12
    scale = np.abs(repeated.coef_).max()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5 * scale)


RATIOS = [0.0, 0.5, 0.9]
WITH_SUMS = ["binary", "multiclass", "multilabel", "multilabel-csr", "chain", "chain-csr"]


def crf_model(problem, **params):
    params = {"Cs": CS, "cv": 3, "random_state": 0} | params
    return placed(CRFClassifierCV)(problem.structure, **params)


@pytest.mark.parametrize(
    ("kind", "ratios"),
    [*product(WITH_SUMS, [None]), *product(["binary", "chain-csr"], [RATIOS])],
)
def test_the_final_fit_is_that_at_the_chosen_c_and_l1_ratio(kind, ratios):
    problem = make_problem(kind, n=24)
    given = {} if ratios is None else {"l1_ratios": [0.9, 0.0, 0.5, 0.5]}
    model = crf_model(problem, decoding="mbr", **given).fit(problem.X, problem.y)
    scores = np.reshape(model.scores_path_, (-1, 3, 3))
    assert model.scores_path_.shape == model.dual_gaps_path_.shape
    assert scores.shape == (len(ratios or [0.0]), 3, 3)
    np.testing.assert_array_equal(model.Cs_, CS)
    means = scores.mean(axis=2)
    ratio, best = np.argwhere(means == means.max())[0]
    assert model.C_ == CS[best] and model.l1_ratio_ == (ratios or [0.0])[ratio]
    if ratios is not None:
        np.testing.assert_array_equal(model.l1_ratios_, RATIOS)
    classes = None if "multilabel" in kind else model.classes_
    single = CRFClassifier(
        problem.structure, C=model.C_, l1_ratio=model.l1_ratio_, random_state=0,
        solver_options={"decoding": "mbr", "classes": classes},
    ).fit(problem.X, problem.y)  # fmt: skip
    np.testing.assert_array_equal(model.coef_, single.coef_)
    for name in ("objective_", "dual_gap_", "n_iter_", "solver_"):
        assert getattr(model, name) == getattr(single, name)
    for method in ("predict", "predict_proba"):
        found = (getattr(own, method)(problem.X) for own in (model, single))
        assert_same_labels(*found)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_scores_are_those_of_fits_that_start_anew(kind):
    problem, splitter = make_problem(kind, n=24), KFold(2)
    weights = some_weights()
    options = {"tol": 1e-9, "max_iter": 10**4, "random_state": 0}
    model = crf_model(problem, cv=splitter, scoring=log_likelihood_scorer, **options)
    model.fit(problem.X, problem.y, weights)
    assert (model.dual_gaps_path_ <= 1e-9).all()
    options |= {"structure": problem.structure, "classes": model.classes_}
    for fold, (train, test) in enumerate(splitter.split(problem.X)):
        for C, found in zip(CS, model.scores_path_[:, fold], strict=True):
            single = placed(CRFClassifier)(C=C, **options)
            single.fit(*problem.take(train), weights[train])
            score = log_likelihood_scorer(single, *problem.take(test), weights[test])
            # λ/2 ‖w - w*‖² <= gap.
            assert found == pytest.approx(score, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize(
    ("kind", "solver"), [("multiclass", "newton"), ("chain", "dual")]
)
def test_each_fit_starts_from_the_one_before(kind, solver, monkeypatch):
    problem = make_problem(kind, n=24)
    fits = []
    commit = Fit.commit

    def counted(fit):
        commit(fit)
        model = fit.estimator
        if isinstance(model, CRFClassifier):
            fits.append((model.C, model.n_iter_, model.history_["dual_gap"][0]))

    monkeypatch.setattr(Fit, "commit", counted)
    Cs = np.geomspace(0.1, 0.11, 4)
    crf_model(problem, Cs=Cs, cv=KFold(2), tol=1e-6, solver=solver).fit(
        problem.X, problem.y
    )
    for fold in (fits[:4], fits[4:8]):
        assert [C for C, *_ in fold] == Cs.tolist()
        # C is nearly the same.
        assert all(gap < 0.1 * fold[0][2] for _, _, gap in fold[1:])
    assert len(fits) == 9


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_folds_in_parallel_give_the_same_and_it_survives_a_file(kind):
    problem = make_problem(kind, n=24)
    model = crf_model(problem).fit(problem.X, problem.y)
    with parallel_config("threading"):
        many = crf_model(problem, n_jobs=2).fit(problem.X, problem.y)
    restored = pickle.loads(pickle.dumps(model))
    grid = crf_model(problem, Cs=6).fit(problem.X, problem.y).Cs_
    np.testing.assert_allclose(grid, np.geomspace(1e-3, 1e2, 6))
    for other in (many, restored):
        np.testing.assert_array_equal(model.scores_path_, other.scores_path_)
        np.testing.assert_array_equal(model.coef_, other.coef_)


def test_fits_that_fall_short_are_told_of_once():
    problem = make_problem("chain", n=24)
    model = crf_model(problem, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning) as record:
        model.fit(problem.X, problem.y)
    final, folds = (str(warning.message) for warning in record)
    assert final.startswith("Dual ascent stopped at max_iter=1")
    assert folds.startswith("9 of 9 fits to folds ended with a duality gap above")
    assert "from C=0.01 on" in folds
    assert (model.dual_gaps_path_ > 1e-9).all()


def test_structures_without_sums_and_ratios_that_are_none_are_refused():
    problem = make_problem("chain", n=24)
    words = "CRFClassifierCV needs a structure that can sum"
    with pytest.raises(ValueError, match=words):
        CRFClassifierCV(PairwiseMultilabelStructure()).fit(problem.X, problem.y)
    for name in ("predict_proba", "entropy", "predict_k_best"):
        assert hasattr(CRFClassifierCV(ChainStructure()), name)
    for ratios in ([], 0.5, [-0.1], [0.5, 1.5], ["a"], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="l1_ratios"):
            crf_model(problem, l1_ratios=ratios).fit(problem.X, problem.y)


def test_each_l1_ratio_has_the_path_that_it_has_alone_and_refit_chooses_among_all():
    problem = make_problem("chain", n=24)
    both = crf_model(problem, l1_ratios=[0.0, 0.5]).fit(problem.X, problem.y)
    for ratio, scores, gaps in zip(
        both.l1_ratios_, both.scores_path_, both.dual_gaps_path_, strict=True
    ):
        alone = crf_model(problem, l1_ratios=[ratio]).fit(problem.X, problem.y)
        np.testing.assert_array_equal(alone.scores_path_, scores[np.newaxis])
        np.testing.assert_array_equal(alone.dual_gaps_path_, gaps[np.newaxis])
    plain = crf_model(problem).fit(problem.X, problem.y)
    np.testing.assert_array_equal(plain.scores_path_, both.scores_path_[0])
    assert plain.l1_ratio_ == 0.0
    seen = {}

    def last(results):
        seen.update(results)
        return len(results["params"]) - 1

    model = crf_model(problem, l1_ratios=RATIOS, refit=last).fit(problem.X, problem.y)
    assert (model.l1_ratio_, model.C_) == (0.9, 1.0)
    assert seen["params"][4] == {"l1_ratio": 0.5, "C": 0.1}
    np.testing.assert_array_equal(seen["param_l1_ratio"], np.repeat(RATIOS, 3))
    np.testing.assert_array_equal(seen["param_C"], np.tile(CS, 3))
    np.testing.assert_array_equal(
        seen["split1_test_score"], model.scores_path_[..., 1].ravel()
    )
    careful = crf_model(problem, l1_ratios=RATIOS, refit="one_standard_error")
    careful.fit(problem.X, problem.y)
    means = careful.scores_path_.mean(axis=2)
    ratio, best = np.argwhere(means == means.max())[0]
    spread = careful.scores_path_[ratio, best].std() / np.sqrt(2)
    enough = means[ratio] >= means[ratio, best] - spread
    assert careful.l1_ratio_ == RATIOS[ratio]
    assert careful.C_ == CS[int(np.argmax(enough))]
