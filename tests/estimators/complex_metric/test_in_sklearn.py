"""ComplexMetricClassifier among pipelines, searches, calibrators, and with routing."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from _mixtures import Boosted, Spy, make_data, no_complaint_of_convergence
from _seeds import new_rng
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, ComplexMetricClassifier, SubLBFGSClassifier
from sklearn_structsvm._utils.compat import ROUTES_TO_DEFAULT_SCORES
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.weights import effective_weights
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    GMean,
    HMean,
    Recall,
    SelectionRate,
    g_mean_score,
)

FAIR = EqualOpportunity(slack=0.05)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class TestParameters:
    def test_it_is_a_classifier_whose_parts_are_reached_cloned_and_say_what_it_takes(
        self,
    ):
        assert is_classifier(ComplexMetricClassifier())
        X, y, _ = make_data(2)
        frame = pd.DataFrame(X, columns=list("abcde"))
        for lmo in ("plugin", "weighted"):
            with no_complaint_of_convergence():
                model = ComplexMetricClassifier(
                    solver_options={"lmo": lmo}, max_iter=20
                ).fit(frame, y)
            assert model.feature_names_in_.tolist() == list("abcde")
            with pytest.raises(ValueError, match="feature names"):
                model.predict(frame[list("edcba")])
        # It shows in a notebook.
        assert "ComplexMetricClassifier" in model._repr_html_()
        model = ComplexMetricClassifier(LogisticRegression(), HMean(), [FAIR])
        model.set_params(estimator__C=0.5, metric=GMean())
        copy = clone(model)
        assert copy.estimator.C == 0.5
        assert type(copy.get_params()["metric"]) is GMean
        assert copy.constraints[0].slack == 0.05
        assert copy.constraints[0] is not FAIR
        dense = ComplexMetricClassifier(CalibratedClassifierCV(Boosted()))
        for model, is_sparse in ((copy, True), (dense, False)):
            assert sklearn.utils.get_tags(model).input_tags.sparse == is_sparse


class TestOverOtherClassifiers:
    @pytest.mark.parametrize("kind", [BCFWClassifier, SubLBFGSClassifier])
    @pytest.mark.parametrize("k", [2, 3])
    def test_calibrated_margins_are_probabilities(self, kind, k):
        X, y, _ = make_data(k)
        calibrated = CalibratedClassifierCV(kind(C=0.1), cv=3)
        model = ComplexMetricClassifier(calibrated, "h_mean").fit(X, y)
        assert model.dual_gap_ <= 1e-3
        assert model.score(X, y) >= HMean()(y, calibrated.fit(X, y).predict(X))
        assert model.n_features_in_ == X.shape[1]

    @pytest.mark.parametrize("k", [2, 3])
    def test_classifiers_in_the_manner_of_xgboost(self, k):
        X, y, _ = make_data(k)
        model = ComplexMetricClassifier(Boosted(), "h_mean", cv=3)
        model.fit(X, y, sample_weight=np.ones(len(y)), eval_set=[(X, y)])
        assert model.estimator_.evaluated is not None
        assert model.dual_gap_ <= 1e-3
        assert model.predict(X).shape == y.shape
        assert clone(model).get_params()["estimator__n_estimators"] == 3
        frozen = FrozenEstimator(model.estimator_)
        again = ComplexMetricClassifier(frozen, "h_mean").fit(X, y)
        prefit = ComplexMetricClassifier(model.estimator_, "h_mean", cv="prefit")
        prefit.fit(X, y)
        np.testing.assert_array_equal(again.predict(X), prefit.predict(X))
        with pytest.raises(NotFittedError):
            ComplexMetricClassifier(Boosted(), cv="prefit").fit(X, y)

    @pytest.mark.parametrize("cv", [None, 3])
    def test_those_that_want_other_labels_are_told_how(self, cv):
        X, y, _ = make_data(2)
        model = ComplexMetricClassifier(Boosted(), cv=cv)
        with pytest.raises(ValueError, match="Invalid classes") as caught:
            model.fit(X, np.array(["no", "yes"])[y])
        (note,) = caught.value.__notes__
        assert "['no', 'yes']" in note and "LabelEncoder" in note
        # Other complaints get no such advice.
        with pytest.raises(ValueError, match="NaN") as caught:
            model.fit(np.where(X > 2, np.nan, X), y)
        assert not hasattr(caught.value, "__notes__")

    @pytest.mark.parametrize("enabled", [False, True])
    def test_any_object_with_probabilities_will_do_as_it_is(self, enabled):
        class Known:
            classes_ = ["no", "yes"]

            def predict_proba(self, X):
                one = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
                return np.column_stack([1 - one, one])

        X, y, groups = make_data(2)
        fair = EqualOpportunity(slack=0.05, pos_label="yes")
        model = ComplexMetricClassifier(Known(), constraints=fair, cv="prefit")
        with sklearn.config_context(enable_metadata_routing=enabled):
            model.fit(X, np.array(["no", "yes"])[y], sensitive_features=groups)
            predicted = model.predict(X, sensitive_features=groups)
        assert set(predicted) == {"no", "yes"}


class TestWithoutRouting:
    @pytest.mark.parametrize("routing", [False, True])
    def test_a_pipeline_hands_groups_to_its_last_step(self, routing):
        X, y, groups = make_data(2)
        fair = ComplexMetricClassifier(constraints=FAIR, cv=None, confusion="labels")
        model = make_pipeline(StandardScaler(), fair)
        name = "sensitive_features"
        known = {name: groups}
        with sklearn.config_context(enable_metadata_routing=routing):
            model.fit(
                X, y, **{("" if routing else "complexmetricclassifier__") + name: groups}
            )
            predicted = model.predict(X, **known)
            P = model.predict_proba(X, **known)
            assert not routing or model.score(X, y, **known) > 0.5
        assert FAIR(y, P, labels=[0, 1], **known) <= 1e-12
        assert (P[np.arange(len(X)), predicted] > 0).all()

    @pytest.mark.parametrize(
        "scoring", [None, GMean(), make_scorer(g_mean_score)], ids=str
    )
    def test_a_search_scores_by_any_metric(self, scoring):
        X, y, _ = make_data(3)
        names = np.array(["a", "b", "c"])[y]
        grid = {"estimator__C": [0.01, 1.0], "metric": ["h_mean", GMean()]}
        model = ComplexMetricClassifier(LogisticRegression(), cv=2)
        search = GridSearchCV(model, grid, scoring=scoring, cv=2)
        with no_complaint_of_convergence():
            search.fit(X, names)
        assert 0.3 < search.best_score_ <= 1
        assert search.predict(X).shape == names.shape

    @pytest.mark.parametrize("how", ["prefit", "frozen"])
    def test_a_fitted_estimator_takes_no_fit_parameters(self, how):
        X, y, _ = make_data(2)
        fitted = LogisticRegression().fit(X, y)
        model = ComplexMetricClassifier(fitted, cv="prefit")
        if how == "frozen":
            model = ComplexMetricClassifier(FrozenEstimator(fitted))
        with pytest.raises(TypeError, match="sample_weights"):
            model.fit(X, y, sample_weights=np.ones(len(y)))
        model.fit(X, y, sample_weight=np.ones(len(y)))

    @pytest.mark.parametrize("routing", [False, True])
    @pytest.mark.parametrize("lmo", ["plugin", "weighted"])
    def test_what_nobody_takes_is_refused(self, lmo, routing):
        X, y, _ = make_data(2)
        model = ComplexMetricClassifier(solver_options={"lmo": lmo}, max_iter=5)
        with no_complaint_of_convergence():
            model.fit(X, y)
        with sklearn.config_context(enable_metadata_routing=routing):
            for method in ("fit", "predict", "predict_proba", "score"):
                data = (X, y) if method in ("fit", "score") else (X,)
                with pytest.raises(TypeError, match="nonsense"):
                    getattr(model, method)(*data, nonsense=1)


class Asking(Spy):
    """Wants groups as well, in `fit` and in `predict_proba`."""

    __metadata_request__fit = {"sensitive_features": True}
    __metadata_request__predict_proba = {"sensitive_features": True}

    def fit(self, X, y, sample_weight=None, sensitive_features=None):
        assert len(sensitive_features) == len(X)
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X, sensitive_features=None):
        assert len(sensitive_features) == len(X)
        return super().predict_proba(X)


@pytest.mark.usefixtures("routing")
class TestRouting:
    @pytest.mark.parametrize("inside", [False, True], ids=["alone", "pipeline"])
    @pytest.mark.parametrize("metric", [None, GMean(), FAIR], ids=str)
    def test_a_search_does_not_lose_the_groups(self, inside, metric):
        # Made here: imbalanced-learn, which another test imports, adds a method to the
        # routing of scorers, and those made before lack it.
        scoring = None if metric is None else metric.scorer()
        if inside and scoring is None and not ROUTES_TO_DEFAULT_SCORES:
            pytest.skip("loses them before scikit-learn 1.8, as the next test says")
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(LogisticRegression(), constraints=[FAIR], cv=2)
        name = "estimator__C"
        if inside:
            model = make_pipeline(StandardScaler(), model)
            name = f"complexmetricclassifier__{name}"
        search = GridSearchCV(model, {name: [0.01, 1.0]}, scoring=scoring, cv=2)
        search.fit(X, y, sensitive_features=groups)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        # The search itself takes no metadata to predict.
        best = search.best_estimator_
        assert len(best.predict(X, sensitive_features=groups)) == len(X)

    def test_a_pipeline_that_loses_the_groups_says_what_to_do(self):
        X, y, groups = make_data(2)
        fair = ComplexMetricClassifier(constraints=FAIR, cv=None, confusion="labels")
        model = make_pipeline(StandardScaler(), fair)
        score = partial(
            cross_val_score, model, X, y, params={"sensitive_features": groups}, cv=3,
            error_score="raise",
        )  # fmt: skip
        if ROUTES_TO_DEFAULT_SCORES:
            scores = score()
        else:
            hint = (
                r"before 1\.8 hands no metadata .* give them scoring=metric\.scorer\(\)"
            )
            with pytest.raises(ValueError, match=f"pass sensitive_features. .* {hint}"):
                score()
            # What they do without being told to raise it.
            with pytest.warns(UserWarning, match=hint):
                nan = score(error_score=np.nan)
            assert np.isnan(nan).all()
            scores = score(scoring=GMean().scorer())
        np.testing.assert_array_equal(scores, score(scoring=GMean().scorer()))

    def test_several_scores_with_weights_and_groups(self):
        X, y, groups = make_data(2)
        weights = new_rng(0).random(len(y))
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = ComplexMetricClassifier(estimator, constraints=FAIR)
        model.set_fit_request(sample_weight=True)
        scoring = {
            "g_mean": GMean().scorer().set_score_request(sample_weight=True),
            "unfair": FAIR.scorer().set_score_request(sample_weight=False),
        }
        params = {"sample_weight": weights, "sensitive_features": groups}
        scores = cross_validate(
            model, X, y, scoring=scoring, params=params, cv=3, return_estimator=True
        )
        folds = zip(scores["estimator"], StratifiedKFold(3).split(X, y), strict=True)
        for j, (fold, (_, test)) in enumerate(folds):
            assert fold.groups_.tolist() == ["old", "young"]
            own = {"sensitive_features": groups[test]}
            predicted = fold.predict(X[test], **own)
            value = g_mean_score(y[test], predicted, sample_weight=weights[test])
            assert scores["test_g_mean"][j] == pytest.approx(value)
            value = FAIR.scorer()(fold, X[test], y[test], **own)
            assert scores["test_unfair"][j] == pytest.approx(value)

    def test_weights_reach_only_who_asks_for_them(self):
        X, y, _ = make_data(2)
        weights = np.where(y == 1, 5.0, 1.0)
        for asks in (False, True):
            estimator = LogisticRegression().set_fit_request(sample_weight=asks)
            model = ComplexMetricClassifier(estimator).fit(X, y, sample_weight=weights)
            alone = LogisticRegression().fit(X, y, weights if asks else None)
            np.testing.assert_allclose(model.estimator_.coef_, alone.coef_)
            share = 5 * (y == 1).sum() / weights.sum()
            assert model.confusion_[1].sum() == pytest.approx(share)
        # The one by default asks, and gets weights of a scale of its own.
        model = ComplexMetricClassifier().fit(X, y, sample_weight=weights)
        own = effective_weights(weights)
        alone = default_classifier().fit(X, y, own)
        np.testing.assert_allclose(model.estimator_.coef_, alone.coef_)
        with pytest.raises(ValueError, match="not explicitly set"):
            silent = ComplexMetricClassifier(LogisticRegression())
            silent.fit(X, y, sample_weight=weights)

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_weights_reach_the_last_step_of_a_pipeline_inside(self, n_jobs):
        X, y, _ = make_data(2)
        weights = np.where(y == 1, 5.0, 1.0)
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = ComplexMetricClassifier(make_pipeline(scaler, inner), cv=2, n_jobs=n_jobs)
        model.fit(X, y, sample_weight=weights)
        alone = LogisticRegression().fit(StandardScaler().fit_transform(X), y, weights)
        np.testing.assert_allclose(model.estimator_[-1].coef_, alone.coef_)

    def test_the_splitter_gets_its_groups(self):
        X, y, _ = make_data(2)
        persons = np.arange(len(X)) // 4
        model = ComplexMetricClassifier(KNeighborsClassifier(1), cv=GroupKFold(5))
        model.fit(np.repeat(X[::4], 4, axis=0), y, groups=persons)
        # Copies of a row are never on both sides of a split.
        assert model.objective_ > 0.2
        with pytest.raises(ValueError, match="groups"):
            model.fit(X, y)

    @pytest.mark.parametrize("cv", [None, 3])
    def test_an_estimator_that_asks_gets_groups_everywhere(self, cv):
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(Asking([]), constraints=FAIR, cv=cv)
        model.fit(X, y, sensitive_features=groups)
        metadata = {"sensitive_features": groups}
        model.predict(X, **metadata)
        model.predict_proba(X, **metadata)
        model.score(X, y, **metadata)

    def test_weighted_fits_take_weights_and_groups(self):
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(
            solver_options={"lmo": "weighted"}, constraints=FAIR, max_iter=30
        )
        with no_complaint_of_convergence():
            model.fit(X, y, sample_weight=np.ones(len(y)), sensitive_features=groups)
        assert len(model.predict(X, sensitive_features=groups)) == len(X)


class TestPersistence:
    def test_no_examples_are_kept(self):
        X, y, groups = make_data(2, n=20000)
        model = ComplexMetricClassifier(constraints=FAIR)
        model.fit(X, y, sensitive_features=groups)
        assert len(pickle.dumps(model)) < 20000


class TestReports:
    def test_verbose_prints_a_line_per_iteration(self, capsys):
        X, y, _ = make_data(3)
        model = ComplexMetricClassifier(verbose=1).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == model.n_iter_
        assert all(re.match(r"\[ComplexMetricClassifier\] ", line) for line in lines)


def test_parameters_of_one_and_of_several_constraints_have_names():
    one = ComplexMetricClassifier(constraints=Recall(at_least=0.5))
    assert one.get_params()["constraints__at_least"] == 0.5
    one.set_params(constraints__at_least=0.7)
    assert one.constraints.at_least == 0.7
    two = ComplexMetricClassifier(
        constraints=[Recall(at_least=0.5), SelectionRate(at_most=0.4)]
    )
    copy = clone(two).set_params(
        constraints__0__at_least=0.6, constraints__1__at_most=0.3, tol=0.1
    )
    assert copy.get_params()["constraints__0__at_least"] == 0.6
    assert (copy.constraints[1].at_most, copy.tol) == (0.3, 0.1)
    assert two.constraints[0].at_least == 0.5
    assert "constraints__0__at_least" not in two.get_params(deep=False)
    for name in ("constraints__2__at_least", "constraints__0__slacks"):
        with pytest.raises(
            ValueError, match=f"Invalid parameter '{name}'. Valid parameters are"
        ):
            two.set_params(**{name: 0.1})
