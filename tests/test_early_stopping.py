"""Early stopping: when it stops, what it holds out, and that it works in other tools."""

import pickle
import re

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    CRFClassifier,
    PragamClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.callbacks import EarlyStopping
from sklearn_structsvm.datasets import make_chains

needs_callbacks = pytest.mark.skipif(
    not hasattr(BCFWClassifier, "_init_callback_context")
    or BCFWClassifier._init_callback_context.__module__.startswith("sklearn_structsvm"),
    reason="scikit-learn has callbacks from 1.9 on",
)
pytestmark = needs_callbacks


def make_data(n=120, n_classes=3):
    X, y = make_classification(
        n, n_informative=5, n_classes=n_classes, flip_y=0.3, random_state=new_seed(0)
    )
    return X, np.array(["a", "b", "c"])[y]


def endless(**params):
    """A model that would go on for very long."""
    return PragamClassifier(C=0.01, tol=0.0, max_iter=60, **params)


class Scripted:
    """A scorer whose scores are known beforehand."""

    def __init__(self, scores):
        self.scores, self.seen = iter(scores), []

    def __call__(self, estimator, X, y):
        self.seen.append((estimator.coef_.copy(), X, y))
        return next(self.scores)


@pytest.mark.parametrize(
    ("scores", "options", "n_iter", "best"),
    [
        ([0.5, 0.6, 0.6, 0.6, 0.9], {"n_iter_no_change": 2}, 4, (2, 0.6)),
        ([0.5, 0.4, 0.6, 0.5, 0.5, 0.9], {"n_iter_no_change": 2}, 5, (3, 0.6)),
        # Improvements of at most `tol` do not count, but the best one is the best one.
        ([0.5, 0.55, 0.6, 0.9], {"n_iter_no_change": 2, "tol": 0.1}, 3, (3, 0.6)),
        ([0.5, 0.5, 0.9], {"n_iter_no_change": 1}, 2, (1, 0.5)),
        ([-2.0, -1.0, -1.5], {"n_iter_no_change": 1}, 3, (2, -1.0)),
    ],
)
def test_a_fit_stops_once_the_score_has_not_improved(scores, options, n_iter, best):
    X, y = make_data()
    scorer = Scripted(scores)
    stopping = EarlyStopping(X, y, scoring=scorer, **options)
    model = endless().set_callbacks(stopping).fit(X, y)
    assert model.n_iter_ == n_iter
    assert (stopping.best_iter_, stopping.best_score_) == best
    assert stopping.validation_scores_.tolist() == scores[:n_iter]
    assert stopping.stopped_
    np.testing.assert_array_equal(model.coef_, scorer.seen[-1][0])
    best_coef = scorer.seen[best[0] - 1][0]
    np.testing.assert_array_equal(stopping.best_estimator_.coef_, best_coef)
    # The certificate is that of the weights that are kept.
    assert model.dual_gap_ == model.history_["dual_gap"][-1]


@pytest.mark.parametrize(
    "model", [endless(), SubLBFGSClassifier(tol=1e-6), BCFWClassifier(tol=1e-6)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_estimator_has_the_best_score(model):
    X, y = make_data()
    stopping = EarlyStopping(X[:40], y[:40], n_iter_no_change=2)
    clone(model).set_callbacks(stopping).fit(X[40:], y[40:])
    score = stopping.best_estimator_.score(X[:40], y[:40])
    assert score == stopping.best_score_ == stopping.validation_scores_.max()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_part_is_held_out_with_its_weights(layout):
    X, y = make_data()
    X = np.hstack([X, np.arange(len(X))[:, np.newaxis] / len(X)])
    seen = []

    def score(y_true, y_pred, sample_weight=None):
        seen.append((y_true, sample_weight))
        return accuracy_score(y_true, y_pred)

    weights = new_rng(1).uniform(0.5, 2.0, len(y))
    scorer = make_scorer(score)
    stopping = EarlyStopping(
        validation_fraction=0.25, scoring=scorer, n_iter_no_change=1000
    )
    model = SubLBFGSClassifier(tol=1e-3).set_callbacks(stopping)
    fits = [model.fit(layout(X), y, sample_weight=weights).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*fits)
    held, own = seen[0]
    assert len(held) == 30 and len(own) == 30
    # Each held-out label comes with the weight of its example.
    of = dict(zip(weights, y, strict=True))
    assert [of[w] for w in own] == held.tolist()
    # What is left is what is trained on.
    rest = ~np.isin(weights, own)
    # As a set: the order is that of the split.
    plain = SubLBFGSClassifier(tol=1e-5).fit(X[rest], y[rest], weights[rest])
    assert model.objective_ <= plain.objective_ + 1e-3 + 1e-9
    assert model.objective_ >= plain.dual_objective_ - 1e-9


# Passes that leave the best weights as they are have no score, so fits may go on.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_have_equal_shares_of_both_parts_unless_one_has_one_example():
    X, y = make_data(n_classes=2)
    scorer = Scripted([0.0] * 100)
    stopping = EarlyStopping(validation_fraction=0.5, scoring=scorer)
    endless().set_callbacks(stopping).fit(X, y)
    _, _, held = scorer.seen[0]
    for label in "ab":
        assert abs(2 * (held == label).sum() - (y == label).sum()) <= 2
    y[0] = "c"
    scorer = Scripted([0.0] * 100)
    endless().set_callbacks(EarlyStopping(scoring=scorer)).fit(X, y)
    assert len(scorer.seen[0][2]) == 12


@pytest.mark.parametrize("make", [BCFWClassifier, CRFClassifier])
def test_sequences_are_held_out_too(make):
    X, y = make_chains(30, random_state=new_seed(0))
    stopping = EarlyStopping(validation_fraction=0.2, n_iter_no_change=1)
    model = make(tol=1e-9).set_callbacks(stopping).fit(X, y)
    assert model.n_iter_ >= len(stopping.validation_scores_) >= 1
    assert stopping.best_estimator_.predict(X).shape == (30,)


def test_the_final_fit_of_a_cross_validation_stops_too():
    X, y = make_data()
    stopping = EarlyStopping(X, y, n_iter_no_change=1)
    model = BCFWClassifierCV(Cs=[0.1, 1.0], cv=2, random_state=0)
    model.set_callbacks(stopping).fit(X, y)
    assert len(stopping.validation_scores_) >= 1


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_searches_and_pipelines_stop_each_of_their_fits(n_jobs):
    X, y = make_data()
    stopping = EarlyStopping(n_iter_no_change=1, scoring="accuracy")
    inner = endless().set_callbacks(stopping)
    pipeline = make_pipeline(StandardScaler(), inner)
    grid = {"pragamclassifier__C": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(X, y)
    best = search.best_estimator_[-1]
    # The attributes are those of the final fit.
    assert best.n_iter_ >= stopping.best_iter_
    np.testing.assert_array_equal(stopping.best_estimator_.classes_, best.classes_)
    plain = clone(inner).set_params(C=best.C)
    again = plain.fit(search.best_estimator_[:-1].transform(X), y)
    np.testing.assert_array_equal(again.coef_, best.coef_)


def test_a_copy_in_another_process_is_as_new():
    X, y = make_data()
    stopping = EarlyStopping(n_iter_no_change=1)
    model = endless().set_callbacks(stopping).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.fit(X, y).coef_, model.coef_)
    assert not hasattr(stopping.best_estimator_, "_skl_callbacks")


def test_a_fit_that_fails_leaves_nothing_behind():
    X, y = make_data()
    stopping = EarlyStopping()
    with pytest.raises(ValueError, match="NaN"):
        endless().set_callbacks(stopping).fit(np.full_like(X, np.nan), y)
    assert not stopping._held_out and not stopping._runs
    with pytest.raises(ValueError, match="requires y to be passed"):
        endless().set_callbacks(stopping).fit(X, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"validation_fraction": 0.0}, "'validation_fraction' parameter"),
        ({"validation_fraction": 1.5}, "'validation_fraction' parameter"),
        ({"n_iter_no_change": 0}, "'n_iter_no_change' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"scoring": 3}, "'scoring' parameter"),
        ({"X_val": [[1.0]]}, "must be given together"),
        ({"sample_weight_val": [1.0]}, "requires X_val and y_val"),
    ],
)
def test_bad_options_are_refused_at_once(options, words):
    with pytest.raises(ValueError, match=words):
        EarlyStopping(**options)


@pytest.mark.parametrize("score", [np.nan, None, "good", [0.5], 1j], ids=str)
def test_scores_that_are_no_numbers_are_refused(score):
    X, y = make_data()
    stopping = EarlyStopping(X, y, scoring=lambda estimator, X, y: score)
    message = f"scoring of EarlyStopping must be a finite number; got {score!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        endless().set_callbacks(stopping).fit(X, y)


def test_estimators_of_others_hold_out_nothing():
    X, y = make_data()
    model = LogisticRegression().set_callbacks(EarlyStopping())
    with pytest.raises(ValueError, match="holds out no part .* Pass X_val and y_val"):
        model.fit(X, y)
