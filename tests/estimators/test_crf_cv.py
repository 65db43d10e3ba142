"""CRFClassifierCV: C chosen over folds by fits that start from one another."""

import pickle

import numpy as np
import pytest
from _estimators import assert_same_labels, make_problem
from _options import placed
from _seeds import new_rng
from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from sklearn_structsvm import CRFClassifier, CRFClassifierCV
from sklearn_structsvm.estimators.base import Fit
from sklearn_structsvm.metrics import log_likelihood_scorer
from sklearn_structsvm.structures import ChainStructure, PairwiseMultilabelStructure

CS = [0.01, 0.1, 1.0]
KINDS = ["binary", "multiclass", "multilabel", "multilabel-csr", "chain", "chain-csr"]


def cv_model(problem, **params):
    params = {"Cs": CS, "cv": 3, "random_state": 0} | params
    return placed(CRFClassifierCV)(problem.structure, **params)


@pytest.mark.parametrize("kind", KINDS)
def test_the_final_fit_is_that_at_the_chosen_c(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem, decoding="mbr").fit(problem.X, problem.y)
    assert model.scores_path_.shape == model.dual_gaps_path_.shape == (3, 3)
    np.testing.assert_array_equal(model.Cs_, CS)
    means = model.scores_path_.mean(axis=1)
    assert model.C_ == CS[int(np.flatnonzero(means == means.max())[0])]
    single = CRFClassifier(
        problem.structure, C=model.C_, random_state=0,
        solver_options={
            "decoding": "mbr",
            "classes": None if "multilabel" in kind else model.classes_,
        },
    ).fit(problem.X, problem.y)  # fmt: skip
    np.testing.assert_array_equal(model.coef_, single.coef_)
    for name in ("objective_", "dual_gap_", "n_iter_", "solver_"):
        assert getattr(model, name) == getattr(single, name)
    assert_same_labels(model.predict(problem.X), single.predict(problem.X))
    pairs = zip(
        model.predict_proba(problem.X), single.predict_proba(problem.X), strict=True
    )
    assert all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
def test_scores_are_those_of_fits_that_start_anew(kind):
    problem, splitter = make_problem(kind, n=24), KFold(2)
    weights = new_rng(9).integers(0, 4, size=24) + 0.5 * (np.arange(24) % 12 == 0)
    options = {"tol": 1e-9, "max_iter": 10**4, "random_state": 0}
    model = cv_model(problem, cv=splitter, scoring=log_likelihood_scorer, **options)
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
    cv_model(problem, Cs=Cs, cv=KFold(2), tol=1e-6, solver=solver).fit(
        problem.X, problem.y
    )
    for fold in (fits[:4], fits[4:8]):
        assert [C for C, *_ in fold] == Cs.tolist()
        # C is nearly the same.
        assert all(gap < 0.1 * fold[0][2] for _, _, gap in fold[1:])
    assert len(fits) == 9


def test_a_number_of_values_is_a_grid():
    problem = make_problem("binary", n=24)
    model = cv_model(problem, Cs=6).fit(problem.X, problem.y)
    np.testing.assert_allclose(model.Cs_, np.geomspace(1e-3, 1e2, 6))


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_folds_in_parallel_give_the_same_and_it_survives_a_file(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem).fit(problem.X, problem.y)
    with parallel_config("threading"):
        many = cv_model(problem, n_jobs=2).fit(problem.X, problem.y)
    restored = pickle.loads(pickle.dumps(model))
    for other in (many, restored):
        np.testing.assert_array_equal(model.scores_path_, other.scores_path_)
        np.testing.assert_array_equal(model.coef_, other.coef_)


def test_fits_that_fall_short_are_told_of_once():
    problem = make_problem("chain", n=24)
    model = cv_model(problem, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning) as record:
        model.fit(problem.X, problem.y)
    final, folds = (str(warning.message) for warning in record)
    assert final.startswith("Dual ascent stopped at max_iter=1")
    assert folds.startswith("9 of 9 fits to folds ended with a duality gap above")
    assert "from C=0.01 on" in folds
    assert (model.dual_gaps_path_ > 1e-9).all()


def test_what_has_no_sums_is_refused():
    problem = make_problem("chain", n=24)
    with pytest.raises(
        ValueError, match="CRFClassifierCV needs a structure that can sum"
    ):
        CRFClassifierCV(PairwiseMultilabelStructure()).fit(problem.X, problem.y)
    for name in ("predict_proba", "entropy", "predict_k_best"):
        assert hasattr(CRFClassifierCV(ChainStructure()), name)


RATIOS = [0.0, 0.5, 0.9]


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain-csr"])
def test_the_final_fit_is_that_at_the_chosen_c_and_l1_ratio(kind):
    problem = make_problem(kind, n=24)
    model = cv_model(problem, l1_ratios=[0.9, 0.0, 0.5, 0.5], solver="dual")
    model.fit(problem.X, problem.y)
    assert model.scores_path_.shape == model.dual_gaps_path_.shape == (3, 3, 3)
    np.testing.assert_array_equal(model.l1_ratios_, RATIOS)
    means = model.scores_path_.mean(axis=2)
    ratio, best = np.argwhere(means == means.max())[0]
    assert (model.l1_ratio_, model.C_) == (RATIOS[ratio], CS[best])
    single = CRFClassifier(
        problem.structure, C=model.C_, l1_ratio=model.l1_ratio_, solver="dual",
        random_state=0, solver_options={"classes": model.classes_},
    ).fit(problem.X, problem.y)  # fmt: skip
    np.testing.assert_array_equal(model.coef_, single.coef_)
    assert model.dual_gap_ == single.dual_gap_


def test_each_l1_ratio_has_the_path_that_it_has_alone():
    problem = make_problem("chain", n=24)
    both = cv_model(problem, l1_ratios=[0.0, 0.5]).fit(problem.X, problem.y)
    for ratio, scores, gaps in zip(
        both.l1_ratios_, both.scores_path_, both.dual_gaps_path_, strict=True
    ):
        alone = cv_model(problem, l1_ratios=[ratio]).fit(problem.X, problem.y)
        np.testing.assert_array_equal(alone.scores_path_, scores[np.newaxis])
        np.testing.assert_array_equal(alone.dual_gaps_path_, gaps[np.newaxis])
    plain = cv_model(problem).fit(problem.X, problem.y)
    np.testing.assert_array_equal(plain.scores_path_, both.scores_path_[0])
    assert plain.l1_ratio_ == 0.0


def test_refit_chooses_among_all_pairs():
    problem = make_problem("chain", n=24)
    seen = {}

    def last(results):
        seen.update(results)
        return len(results["params"]) - 1

    model = cv_model(problem, l1_ratios=RATIOS, refit=last).fit(problem.X, problem.y)
    assert (model.l1_ratio_, model.C_) == (0.9, 1.0)
    assert seen["params"][4] == {"l1_ratio": 0.5, "C": 0.1}
    np.testing.assert_array_equal(seen["param_l1_ratio"], np.repeat(RATIOS, 3))
    np.testing.assert_array_equal(seen["param_C"], np.tile(CS, 3))
    np.testing.assert_array_equal(
        seen["split1_test_score"], model.scores_path_[..., 1].ravel()
    )
    careful = cv_model(problem, l1_ratios=RATIOS, refit="one_standard_error")
    careful.fit(problem.X, problem.y)
    means = careful.scores_path_.mean(axis=2)
    ratio, best = np.argwhere(means == means.max())[0]
    spread = careful.scores_path_[ratio, best].std() / np.sqrt(2)
    enough = means[ratio] >= means[ratio, best] - spread
    assert careful.l1_ratio_ == RATIOS[ratio]
    assert careful.C_ == CS[int(np.argmax(enough))]


@pytest.mark.parametrize(
    "ratios", [[], 0.5, [-0.1], [0.5, 1.5], ["a"], [[0.1]], [np.nan]], ids=str
)
def test_l1_ratios_that_are_none_are_refused(ratios):
    problem = make_problem("binary", n=12)
    with pytest.raises(ValueError, match="l1_ratios"):
        cv_model(problem, l1_ratios=ratios).fit(problem.X, problem.y)
