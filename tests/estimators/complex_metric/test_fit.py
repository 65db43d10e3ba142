"""ComplexMetricClassifier: what a fit finds, certifies, refuses and leaves behind."""

import pickle
import warnings
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from _mixtures import (
    Spy,
    even_one_class,
    make_data,
    mixture_confusion,
    no_complaint_of_convergence,
)
from _options import placed
from _random_confusion import OF_CONFUSION, ONE_LABEL
from _seeds import new_rng
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, PredefinedSplit, RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm._utils.options import check_options
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm.confusion.lmo import LMO
from sklearn_structsvm.confusion.smoothing import smoothed_shares
from sklearn_structsvm.estimators.complex_metric import oracles, single_rule
from sklearn_structsvm.estimators.complex_metric.probabilities import class_probabilities
from sklearn_structsvm.metrics import (
    METRICS,
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    LinearLoss,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import (
    FEASIBILITY_TOL,
    InfeasibleConstraintError,
)
from sklearn_structsvm.solvers.confusion.named import SOLVERS

# Constraints of all kinds are tried, some of which do not need the groups.
pytestmark = pytest.mark.filterwarnings("ignore:sensitive_features were passed")

CONVEX = [name for name in OF_CONFUSION if getattr(METRICS[name], "convex", False)]
RATIOS = ["micro_f1", "kappa"]


def fitted_to(k, metric="g_mean", cv=None, **params):
    X, y, _ = make_data(k)
    params["cv"] = cv
    with warnings.catch_warnings():
        # Where classes overlap too much, the frequent one is all that zero-one knows.
        warnings.filterwarnings("ignore", "The classifier predicts", UserWarning)
        return X, y, placed(ComplexMetricClassifier)(metric=metric, **params).fit(X, y)


def limits_of(module, monkeypatch):
    """The list of the times that runs from this module will get."""
    limits = []

    def timed(problem, *, max_time, **options):
        limits.append(max_time)
        return run_column_generation(problem, max_time=max_time, **options)

    monkeypatch.setattr(module, "run_column_generation", timed)
    return limits


class TestCertificate:
    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("metric", CONVEX + RATIOS)
    def test_the_gap_is_at_most_tol_and_the_last_of_the_history(self, metric, k):
        _, _, model = fitted_to(k, metric)
        assert 0.0 < model.dual_gap_ <= 1e-3
        assert model.dual_gap_ == model.objective_ - model.dual_objective_
        for name in (
            "objective", "dual_objective", "dual_gap", "n_iter", "n_oracle_calls"
        ):  # fmt: skip
            assert model.history_[name][-1] == getattr(model, f"{name}_")

    @pytest.mark.parametrize("k", [2, 3, 4])
    @pytest.mark.parametrize("metric", ["zero_one", "h_mean", "min_max"])
    def test_confusions_are_those_of_predict_proba(self, metric, k):
        """On the labels, and what is certified on what is counted."""
        for confusion in ("labels", "probabilities"):
            X, y, model = fitted_to(k, metric, confusion=confusion)
            C = mixture_confusion(model, X, y)
            np.testing.assert_allclose(model.cell_confusions_, C, atol=1e-12)
            np.testing.assert_allclose(model.confusion_, C[0], atol=1e-12)
            assert model.mixture_weights_.sum() == pytest.approx(1)
            assert (np.diff(model.mixture_weights_) <= 0).all()
            if confusion == "probabilities":
                C = model.estimator_.predict_proba(X).T @ model.predict_proba(X) / len(X)
                C = C[np.newaxis]
            np.testing.assert_allclose(model.certified_confusions_, C, atol=1e-9)
            assert model.objective_ == pytest.approx(model.metric_.value(C[0]))

    @even_one_class
    @pytest.mark.parametrize("metric", ["g_mean", "f1", "min_max"])
    def test_by_default_two_classes_are_certified_on_smoothed_labels(self, metric):
        X, y, _ = make_data(2)
        inner = FrozenEstimator(LogisticRegression().fit(X, y))
        model = ComplexMetricClassifier(inner, metric, cv="prefit").fit(X, y)
        ones, cells = np.ones(len(X)), np.zeros(len(X), dtype=int)
        share = smoothed_shares(inner.predict_proba(X)[:, 1], y, ones, cells, 1)
        C = np.stack([1 - share, share]) @ model.predict_proba(X) / len(X)
        np.testing.assert_allclose(model.certified_confusions_[0], C, atol=1e-9)
        assert model.objective_ == pytest.approx(model.metric_.value(C))
        assert 0.0 < model.dual_gap_ <= 1e-3
        np.testing.assert_allclose(
            model.cell_confusions_, mixture_confusion(model, X, y), atol=1e-12
        )
        # With costs that only training knows, labels are counted as they are.
        costs = 1.0 - np.eye(2)[y]
        by_cost = ComplexMetricClassifier(inner, "expected_cost").fit(X, y, costs=costs)
        np.testing.assert_allclose(
            by_cost.certified_confusions_, by_cost.cell_confusions_
        )

    def test_labels_of_more_classes_get_the_gap_under_the_model_to_what_is_as_feasible(
        self,
    ):
        X, _, model = fitted_to(3, "h_mean", confusion="labels")
        eta, h = model.estimator_.predict_proba(X), model.predict_proba(X)
        best = fitted_to(3, "h_mean", confusion="probabilities", tol=1e-6)[2].objective_
        gap = model.metric_.value(eta.T @ h / len(X)) - best
        assert gap - 1e-9 <= model.dual_gap_ <= gap + 1e-3
        X, y, _ = make_data(3)
        # Which guessing meets, with recalls of a third.
        model = ComplexMetricClassifier(
            metric="zero_one", confusion="labels", cv=None,
            constraints=Recall(at_least=0.3),
        ).fit(X, y)  # fmt: skip
        assert model.constraint_violation_ <= 0
        eta, h = model.estimator_.predict_proba(X), model.predict_proba(X)
        C = eta.T @ h / len(X)
        recalls = C.diagonal() / C.sum(axis=1)
        relaxed = ComplexMetricClassifier(
            metric="zero_one", confusion="probabilities", tol=1e-6, cv=None,
            constraints=Recall(at_least=min(0.3, recalls.min())),
        ).fit(X, y)  # fmt: skip
        gap = model.metric_.value(C) - relaxed.objective_
        assert gap - 1e-6 <= model.dual_gap_ <= gap + 1e-3 + 1e-6
        assert model.dual_gap_ > 0.0

    def test_the_certificate_of_labels_takes_no_more_than_the_time_left(
        self, monkeypatch
    ):
        limits = limits_of(oracles, monkeypatch)
        X, y, _ = make_data(3)
        model = ComplexMetricClassifier(metric="h_mean", confusion="labels")
        model.set_params(solver_options__max_time=1e6).fit(X, y)
        assert 0.0 < limits[0] < 1e6
        assert model.n_oracle_calls_ > model.history_["n_oracle_calls"][-1]
        with no_complaint_of_convergence():
            model.set_params(solver_options__max_time=1e-9, cv=None).fit(X, y)
        assert limits[1] == 0.0
        # The gap of one iteration bounds how much better another classifier is, by what
        # the probabilities say as they are; "auto" may move them toward the labels.
        options = {"confusion": "probabilities", "tol": 1e-6, "cv": None}
        best = placed(ComplexMetricClassifier)(metric="h_mean", **options).fit(X, y)
        eta, h = model.estimator_.predict_proba(X), model.predict_proba(X)
        under_model = model.metric_.value(eta.T @ h / len(X))
        assert under_model - best.objective_ <= model.dual_gap_ + 1e-9

    @even_one_class
    def test_thresholds_of_the_folds_take_no_more_than_the_time_left(self, monkeypatch):
        limits = limits_of(single_rule, monkeypatch)
        X, y, _ = make_data(2)
        # A single rule, so that folds have thresholds; exact, so that nothing is left.
        model = ComplexMetricClassifier(metric="zero_one", cv=3)
        model.fit(X, y)
        model.set_params(solver_options__max_time=1e6).fit(X, y)
        model.set_params(solver_options__max_time=1e-9)
        with no_complaint_of_convergence():
            model.fit(X, y)
        assert limits[:3] == [None] * 3
        assert all(0.0 < limit < 1e6 for limit in limits[3:6])
        assert limits[6:] == [0.0] * 3


class TestWhatIsLearned:
    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("metric", ["zero_one", "balanced", "ordinal"])
    def test_one_classifier_is_enough_for_a_sum_of_costs_and_has_scores(self, k, metric):
        X, _, model = fitted_to(k, metric)
        assert len(model.mixture_weights_) == len(model.loss_matrices_) == 1
        assert set(np.unique(model.predict_proba(X))) <= {0.0, 1.0}
        scores = model.decision_function(X)
        assert scores.shape == ((len(X),) if k == 2 else (len(X), k))
        decided = (scores > 0).astype(int) if k == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), decided)

    def test_a_mixture_has_no_scores(self):
        # Where nothing is known, each label has to be predicted now and then.
        X, y, _ = fitted_to(3, "min_max")
        model = ComplexMetricClassifier(DummyClassifier(), "min_max").fit(X, y)
        assert len(model.mixture_weights_) == 3
        assert not hasattr(model, "decision_function")
        assert not hasattr(ComplexMetricClassifier(), "decision_function")

    @pytest.mark.parametrize("metric", ["g_mean", "micro_f1"])
    def test_names_of_classes_do_not_matter(self, metric):
        X, y, plain = fitted_to(2, metric)
        for names in map(np.array, (["no", "yes"], [-1, 1], [False, True], [3, 7])):
            named = ComplexMetricClassifier(metric=metric, cv=None).fit(X, names[y])
            np.testing.assert_array_equal(named.classes_, names)
            np.testing.assert_array_equal(named.loss_matrices_, plain.loss_matrices_)
            np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
            assert named.score(X, names[y]) == plain.score(X, y)

    def test_weights_reach_the_class_probabilities_or_it_is_told(self):
        X, y, _ = make_data(2)
        weights = np.where(y == 1, 5.0, 1.0)
        model = ComplexMetricClassifier().fit(X, y, sample_weight=weights)
        expected = default_classifier()
        expected.fit(X, y, weights * (weights.sum() / (weights @ weights)))
        np.testing.assert_allclose(model.estimator_.coef_, expected.coef_)
        model = ComplexMetricClassifier(KNeighborsClassifier(), cv=3)
        with pytest.warns(UserWarning, match="does not accept sample_weight"):
            model.fit(X, y, sample_weight=np.ones(len(y)))

    @pytest.mark.parametrize(
        ("k", "inner", "params"),
        [(2, None, {}), (3, GaussianNB(), {}),
         (2, None, {"constraint_confidence": 0.9, "constraint_calibration": "uniform"}),
         (3, GaussianNB(), {"constraint_confidence": 0.9}),
         (2, None, {"lmo": "weighted", "cv": None, "max_iter": 10})],
        ids=["plain", "three", "uniform", "held out", "weighted"],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_scale_of_weights_changes_nothing(self, k, inner, params):
        X, y, _ = make_data(k)
        weights = 1.0 + new_rng(0).integers(0, 3, len(y))
        if "constraint_confidence" in params:
            params = params | {"constraints": Recall(label=1, at_least=0.01)}
            if len(params) == 2:
                # Held-out examples count once.
                weights[:] = 1.0
        model = placed(ComplexMetricClassifier)(inner, "h_mean", **params)
        once = clone(model).fit(X, y, sample_weight=weights)
        # Powers of 2 are free of rounding.
        for scale in (2.0**-12, 2.0**20):
            again = clone(model).fit(X, y, sample_weight=scale * weights)
            np.testing.assert_allclose(
                again.predict_proba(X), once.predict_proba(X), atol=1e-9
            )
            assert again.objective_ == pytest.approx(once.objective_, abs=1e-9)
            assert again.dual_gap_ == pytest.approx(once.dual_gap_, abs=1e-9)
            if hasattr(once, "constraint_bounds_"):
                assert again.constraint_bounds_ == once.constraint_bounds_

    def test_a_margin_is_a_stricter_constraint(self):
        X, y, groups = make_data(2)

        def fitted(slack=0.05, **params):
            model = placed(ComplexMetricClassifier)(tol=1e-6, **params)
            model.set_params(constraints=EqualOpportunity(slack=slack))
            return model.fit(X, y, sensitive_features=groups)

        model = fitted(margin=0.02)
        assert model.objective_ == pytest.approx(fitted(0.03).objective_, abs=1e-5)
        # Of what was asked.
        assert model.constraint_violation_ <= -0.02 + 1e-6
        assert fitted(margin="auto").constraint_violation_ < 0.0
        found = fitted(margin=1.0).constraint_violation_
        assert found == pytest.approx(-0.05, abs=1e-6)
        with pytest.raises(ValueError, match="margin is for constraints without"):
            fitted(margin=1.0, constraint_confidence=0.9)
        curved = ComplexMetricClassifier(
            constraints=Quantification(0.9), solver_options={"margin": 0.1}
        )
        with pytest.raises(ValueError, match="margin supports only constraints on rates"):
            curved.fit(X, y)

    @pytest.mark.parametrize("lmo", ["plugin", "weighted"])
    def test_a_classifier_that_is_constant_says_so(self, lmo):
        X, y, _ = make_data(3)
        costs = LinearLoss(np.array([[0, 1, 1], [0, 1, 1], [0, 1, 1]]))
        model = ComplexMetricClassifier(metric=costs, solver_options={"lmo": lmo})
        words = r"predicts 'a' .* never \['b', 'c'\]"
        with pytest.warns(UserWarning, match=words) as caught:
            model.fit(X, np.array(list("abc"))[y])
        assert set(model.predict(X)) == {"a"}
        # Only the rules of probabilities blame these.
        assert ("probabilities" in str(caught[0].message)) == (lmo == "plugin")


@pytest.mark.parametrize("k", [2, 3])
def test_the_positive_label_is_the_one_that_is_named_and_an_attribute(k):
    X, y, groups = make_data(k)
    names = np.array(["ok", "fraud", "spam"][:k])[y]
    plain = ComplexMetricClassifier(metric=FBeta(pos_label=1)).fit(X, y)
    named = ComplexMetricClassifier(metric=FBeta(pos_label="fraud")).fit(X, names)
    assert plain.pos_label_ == 1 and named.pos_label_ == "fraud"
    assert named.objective_ == pytest.approx(plain.objective_, abs=1e-3)
    assert named.score(X, names) == pytest.approx(plain.score(X, y), abs=5e-3)
    assert fitted_to(k, "g_mean")[2].pos_label_ is None
    if k == 2:
        by_name = ComplexMetricClassifier(metric="f1").fit(X, y)
        np.testing.assert_array_equal(by_name.loss_matrices_, plain.loss_matrices_)
        for names in ([-1, 1], [False, True]):
            of_constraint = ComplexMetricClassifier(
                constraints=[Recall(at_least=0.3), EqualOpportunity(slack=0.1)]
            ).fit(X, np.array(names)[y], sensitive_features=groups)
            assert of_constraint.pos_label_ == names[1]


class TestProbabilities:
    def test_probabilities_are_held_out_by_default_where_classes_are_large_enough(self):
        X, y, _ = make_data(2)
        fits = []
        ComplexMetricClassifier(Spy(fits)).fit(X, y)
        assert len(fits) == 6 and fits[-1] == len(X)
        fits.clear()
        ComplexMetricClassifier(Spy(fits), cv=None).fit(X, y)
        assert fits == [len(X)]
        fits.clear()
        fitted = Spy(fits).fit(X, y)
        fits.clear()
        ComplexMetricClassifier(fitted, cv="prefit").fit(X, y)
        assert fits == []
        X, y, _ = make_data(3)
        # A warning would be an error here.
        rows = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y > 0)[:3]])
        ComplexMetricClassifier().fit(X[rows], (y[rows] > 0).astype(int))
        with pytest.raises(ValueError, match="^cv=5 cannot be") as caught:
            ComplexMetricClassifier().fit(X[:6], [0, 1, 2] * 2)
        assert caught.value.__notes__ == ["cv=5: use fewer folds, or cv=None for none."]
        one = np.arange(len(X)) == 7
        with pytest.raises(ValueError, match=r"cv=5 leaves only the class\(es\) \[Fal"):
            ComplexMetricClassifier().fit(X, one)

    def test_any_splitter_will_do_and_a_fold_without_a_class_is_told(self):
        X, y, _ = make_data(3)
        for cv in (
            RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
            [(np.arange(200), np.arange(200, 400))],
            PredefinedSplit(np.repeat([-1, 0], 200)),
        ):
            fits = []
            model = ComplexMetricClassifier(Spy(fits), cv=cv).fit(X, y)
            assert fits[-1] == len(X) and max(fits[:-1]) < len(X)
            assert model.dual_gap_ <= 1e-3
            assert model.confusion_.sum() == pytest.approx(1)
        order = np.argsort(y, kind="stable")
        model = ComplexMetricClassifier(cv=KFold(3))
        words = r"no training examples of the class.*\[0, 2\]"
        with pytest.warns(UserWarning, match=words):
            model.fit(X[order], np.repeat([0, 1, 2], [100, 180, 120]))

    @pytest.mark.parametrize("how", ["prefit", "frozen"])
    def test_a_fitted_classifier_is_taken_as_it_is_and_may_know_more_classes(self, how):
        X, y, _ = make_data(3)
        fits = []
        fitted = Spy(fits).fit(X, y)
        estimator = FrozenEstimator(fitted) if how == "frozen" else fitted
        cv = "prefit" if how == "prefit" else None
        model = ComplexMetricClassifier(estimator, "h_mean", cv=cv)
        model.set_params(confusion="labels")
        some = y != 2
        model.fit(X[some], y[some])
        assert fits == [len(X)]
        assert model.estimator_ is estimator
        assert model.classes_.tolist() == [0, 1, 2]
        assert 2 not in model.predict(X[some])
        with pytest.raises(ValueError, match=r"does not know: \[5\]"):
            model.fit(X, np.where(y == 0, 5, y))
        if how == "prefit":
            with pytest.raises(NotFittedError):
                ComplexMetricClassifier(Spy([]), cv="prefit").fit(X, y)

    def test_an_f_measure_of_a_class_that_is_not_there_is_no_division_by_0(self):
        X, y, _ = make_data(2)
        fitted = LogisticRegression().fit(X, y)
        model = ComplexMetricClassifier(fitted, "f1", cv="prefit", confusion="labels")
        X, y = X[y == 0], y[y == 0]
        with pytest.warns(UserWarning, match=r"0 for every .* at the probabilities\.$"):
            model.fit(X, y)
        with pytest.warns(UserWarning, match=r"probabilities and the sample weights\.$"):
            model.fit(X, y, sample_weight=1.0 + np.arange(len(y)))
        assert np.isfinite(model.loss_matrices_).all()

    def test_classes_of_a_fitted_classifier_may_come_in_any_order(self):
        class Known:
            classes_ = np.array(["b", "c", "a"])

            def predict_proba(self, X):
                return fitted.predict_proba(X)[:, [1, 2, 0]]

        X, y, _ = make_data(3)
        names = np.array(["a", "b", "c"])[y]
        fitted = LogisticRegression().fit(X, names)
        model = ComplexMetricClassifier(Known(), cv="prefit").fit(X, names)
        plain = ComplexMetricClassifier(fitted, cv="prefit").fit(X, names)
        assert model.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(model.loss_matrices_, plain.loss_matrices_)

    @pytest.mark.parametrize("precision", [np.float32, np.float64])
    def test_rounded_probabilities_decide_as_their_scores_do(self, precision):
        class Rounded:
            classes_ = np.array([0, 1])

            def predict_proba(self, X):
                one = X[:, 0]
                return np.column_stack([np.round(1 - one, 3), one]).astype(precision)

        one = np.linspace(0.0005, 0.9995, 1000)
        y = (new_rng(0).random(1000) < one).astype(int)
        model = ComplexMetricClassifier(Rounded(), "balanced", cv="prefit")
        model.fit(one[:, None], y)
        fine = np.linspace(0, 1, 100001)[:, None]
        scores = model.decision_function(fine)
        np.testing.assert_array_equal(model.predict(fine), scores > 0)
        P = class_probabilities(Rounded(), one[:, None], np.array([0, 1]))
        assert P.dtype == precision
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=4 * np.finfo(precision).eps)

    def test_what_are_no_probabilities_is_refused(self):
        class Bad(LogisticRegression):
            def predict_proba(self, X):
                return self.given(super().predict_proba(X))

        X, y, _ = make_data(3)
        for given, message in (
            (lambda P: P / 2, "predict_proba of Bad .* rows of sum 1; got .* row 0"),
            (lambda P: P - 0.5, r"probabilities, from 0 to 1; got -0.\d* at \(0, \d\)"),
            (lambda P: np.where(P > 0.5, np.nan, P), "must hold .* got nan at"),
            (lambda P: P[:, :2], r"must have shape \(\d+, 3\); got shape \(\d+, 2\)"),
            (lambda P: P[1:], r"must have shape \(\d+, 3\); got shape \(\d+, 3\)"),
            (lambda P: None, r"must have shape .* got shape \(\)"),
            (lambda P: [["a"]], "must hold real numbers; got dtype <U1"),
        ):
            Bad.given = staticmethod(given)
            with pytest.raises(ValueError, match=message):
                ComplexMetricClassifier(Bad()).fit(X, y)


class TestConstraints:
    @pytest.mark.parametrize(
        "constraint",
        [EqualOpportunity(slack=0.05), EqualOpportunity(slack=0.0),
         EqualizedOdds(slack=0.05), DemographicParity(slack=0.05),
         DemographicParity(bound="ratio", ratio=0.8), Recall(at_least=0.6),
         Precision(label=0, at_least=0.1), SelectionRate(target="priors", slack=0.01),
         Quantification(at_most=0.01)],
        ids=repr,
    )  # fmt: skip
    def test_a_constraint_holds_for_the_mixture_on_the_training_labels(self, constraint):
        X, y, groups = make_data(2)
        params = {"cv": None, "confusion": "labels"}
        model = placed(ComplexMetricClassifier)(constraints=constraint, **params)
        model.fit(X, y, sensitive_features=groups)
        grouped = constraint.needs_groups
        assert (model.groups_ is not None) == grouped
        if grouped:
            assert model.groups_.tolist() == ["old", "young"]
        metadata = {"sensitive_features": groups} if grouped else {}
        measured = constraint(
            y, model.predict_proba(X, **metadata), labels=model.classes_,
            sensitive_features=groups,
        )  # fmt: skip
        # What solvers take for met.
        assert measured <= FEASIBILITY_TOL
        assert measured == pytest.approx(model.constraint_violation_, abs=1e-8)
        free = placed(ComplexMetricClassifier)(**params).fit(X, y)
        # Rules of a group of its own may be better than one rule for all.
        if not grouped:
            assert model.objective_ >= free.dual_objective_ - 1e-12
        assert free.constraint_violation_ == -np.inf
        assert model.dual_gap_ <= 1e-3

    @pytest.mark.parametrize("per_group", [False, True])
    def test_churn_is_counted_against_the_baseline(self, per_group):
        X, y, groups = make_data(3)
        baseline = LogisticRegression().fit(X[:, :3], y)
        churn = Churn(Truncated(baseline), at_most=0.1, per_group=per_group)
        known = {"sensitive_features": groups} if per_group else {}
        model = ComplexMetricClassifier(metric="h_mean", constraints=churn, cv=None)
        P = model.fit(X, y, **known).predict_proba(X, **known)
        same = P[np.arange(len(X)), baseline.predict(X[:, :3])]
        assert model.cell_confusions_.shape == (6 if per_group else 3, 3, 3)
        assert (model.groups_ is None) == (not per_group)
        for group in ("old", "young"):
            rows = groups == group if per_group else slice(None)
            assert 1 - same[rows].mean() <= 0.1 + 1e-12

    def test_a_fair_classifier_may_be_a_baseline_and_groups_are_left_alone_without_need(
        self,
    ):
        X, y, groups = make_data(2)
        fair = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.05))
        fair.fit(X, y, sensitive_features=groups)
        model = ComplexMetricClassifier(constraints=[Churn(fair, at_most=0.05)], cv=None)
        model.fit(X, y, sensitive_features=groups)
        changed = model.predict_proba(X, sensitive_features=groups)[
            np.arange(len(X)), fair.predict(X, sensitive_features=groups)
        ]
        assert 1 - changed.mean() <= 0.05 + 1e-12
        with pytest.warns(UserWarning, match="sensitive_features .* ignored"):
            model = ComplexMetricClassifier().fit(X, y, sensitive_features=groups)
        plain = ComplexMetricClassifier().fit(X, y)
        assert model.groups_ is None
        np.testing.assert_array_equal(model.loss_matrices_, plain.loss_matrices_)
        np.testing.assert_array_equal(
            model.predict(X, sensitive_features=groups), plain.predict(X)
        )


class Truncated:
    """A fitted classifier of the first three features."""

    def __init__(self, model):
        self.model = model

    def predict(self, X):
        return self.model.predict(X[:, :3])


class TestSolvers:
    @pytest.mark.parametrize("fair", [False, True], ids=["free", "fair"])
    @pytest.mark.parametrize("solver", sorted(SOLVERS))
    def test_all_agree_within_their_gaps(self, solver, fair):
        X, y, groups = make_data(2)
        model = ComplexMetricClassifier(
            metric="f1" if solver == "bisection" else "q_mean",
            constraints=EqualOpportunity(slack=0.02) if fair else (),
            solver_options={"solver": solver},
            tol=5e-3,
        ).fit(X, y, sensitive_features=groups)
        auto = clone(model).set_params(solver_options__solver="auto", tol=1e-3)
        auto.fit(X, y, sensitive_features=groups)
        assert model.solver_ == solver and auto.solver_ in SOLVERS
        assert model.dual_gap_ <= 5e-3
        assert model.dual_objective_ <= auto.objective_ + 1e-12
        assert auto.dual_objective_ <= model.objective_ + 1e-12
        if fair:
            assert model.constraint_violation_ <= 0

    def test_options_reach_the_solver(self):
        X, y, _ = make_data(4)
        model = placed(ComplexMetricClassifier)(
            metric="h_mean", tol=1e-4, solver="frank_wolfe", step="paper"
        )
        slow = model.fit(X, y).n_oracle_calls_
        model.set_params(solver_options__step="fully_corrective")
        assert model.fit(X, y).n_oracle_calls_ < slow

    def test_what_an_option_is_by_default_may_be_said(self):
        for solver in dict.fromkeys(chain(*SOLVERS.values())):
            options = {k: option.default for k, option in solver.OPTIONS.items()}
            check_options("a solver", options, solver.OPTIONS)


ONE = Recall(at_least=0.1)
# Parameters, the error and its words; that of groups is told by the group's name.
REFUSED = [
    ({"constraints": EqualOpportunity(slack=0.1)}, ValueError, "sensitive_features"),
    ({"constraints": [Recall(label="maybe", at_least=0.5)]}, ValueError, "'maybe'"),
    ({"constraints": [Recall(group="x", at_least=0.5)]}, ValueError, "sensitive_feat"),
    ({"metric": FBeta(pos_label="maybe")}, ValueError, "'maybe'"),
    ({"constraints": [Quantification(at_most=0.0)]}, ValueError, "at_most"),
    ({"constraints": Recall(group="nobody", at_least=0.5)}, ValueError,
     "'nobody'.*'old', 'young'"),
    ({"constraints": ["fair"]}, TypeError, "constraints"),
    ({"constraints": [EqualOpportunity]}, TypeError, "constraints"),
    ({"constraints": "fair"}, TypeError, "Write an object"),
    ({"constraints": ["true_positive_rate_parity"]}, TypeError, "EqualOpportunity"),
    ({"constraints": Churn("best", at_most=0.1)}, ValueError,
     "baseline must be a fitted classifier"),
    ({"constraints": [Churn(DummyClassifier(), at_most=0.1) for _ in range(2)]},
     ValueError, "several baselines"),
    ({"lmo": lambda L: None}, ValueError, "'lmo' parameter"),
    ({"lmo": "best"}, ValueError, "'lmo' parameter"),
    ({"lmo": LMO}, ValueError, r"write LMO\(\)"),
    ({"metric": "g-mean"}, ValueError, "g-mean"),
    ({"lmo": "weighted", "cv": "prefit"}, ValueError, "lmo"),
    ({"lmo": "weighted", "confusion": "probabilities"}, ValueError, "lmo"),
    ({"cv": "all"}, ValueError, "cv"),
    *(
        ({"metric": "h_mean", "solver": solver, "constraints": constraints,
          "solver_options": options}, TypeError, words)
        for solver, constraints, options, words in [
            ("frank_wolfe", (), {"nonsense": 1}, "'nonsense' is not .* solver, step"),
            ("frank_wolfe", (), {"tol": 1.0}, "write tol=1.0"),
            ("gda", (), {"step": "paper"}, "'step' .*, step_sizes"),
            ("auto", (), {1: 2}, "1 is not .*with solver='column_generation'"),
            ("frank_wolfe", ONE, {"radius": 1.0},
             "'radius' .*with solver='frank_wolfe' with constraints"),
        ]
    ),
    *(
        ({"metric": "micro_f1", "solver": solver, "constraints": constraints,
          "solver_options": {option: value}}, ValueError,
         rf"'{option}' parameter of the solver_options of .*{words}")
        for solver, constraints, option, value, words in [
            ("frank_wolfe", (), "step", "longest", "one of 'away', .*'paper'"),
            ("frank_wolfe", ONE, "step", "away", "one of 'line_search', 'paper'"),
            ("frank_wolfe", ONE, "penalty", 0.0, r"float in the range \(0.0, inf\)"),
            ("frank_wolfe", ONE, "dual_steps", (), "some positive numbers"),
            ("gda", (), "step_sizes", (0.1,), "2 positive numbers"),
            ("gda", (), "step_sizes", 0.1, "2 positive numbers"),
            ("gda", (), "average", "no", "bool"),
            ("ellipsoid", (), "radius", np.inf, r"float in the range \(0.0, inf\)"),
            ("ellipsoid", (), "recombine_interval", 2.5, r"int in the range \[1, inf\)"),
            ("bisection", (), "inner", None, "one of .*'gda'"),
            ("bisection", (), "inner_max_iter", 0, r"int in the range \[1, inf\)"),
        ]
    ),
]  # fmt: skip


class TestRefusals:
    def test_constraints_that_no_classifier_meets_are_found_and_the_last_fit_is_left(
        self,
    ):
        X, y, _ = make_data(2)

        def model(spare):
            least = Recall(at_least=0.99 - spare)
            most = SelectionRate(label=1, at_most=min(0.1 + spare, 1.0))
            return ComplexMetricClassifier(constraints=[least, most])

        impossible = model(0.0)
        with pytest.raises(InfeasibleConstraintError) as caught:
            impossible.fit(X, y)
        smallest = caught.value.smallest_violation
        assert 0 < smallest < 1
        assert f"{smallest:.3g}"[:4] in str(caught.value)
        assert not [name for name in vars(impossible) if name.endswith("_")]
        with pytest.raises(NotFittedError):
            impossible.predict(X)
        # The error comes back whole from another process.
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        assert again.smallest_violation == smallest
        # That violation can be reached, and no smaller one.
        with pytest.raises(InfeasibleConstraintError):
            model(smallest - 0.01).fit(X, y)
        assert model(smallest + 0.01).fit(X, y).constraint_violation_ <= 0
        X, y, model = fitted_to(2)
        before = pickle.dumps(model)
        model.constraints = [Recall(at_least=0.99), SelectionRate(label=1, at_most=0.1)]
        with pytest.raises(InfeasibleConstraintError):
            model.fit(X[:200], y[:200])
        model.constraints = ()
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize(("params", "error", "words"), REFUSED)
    def test_what_makes_no_sense_is_refused_before_any_fit(self, params, error, words):
        X, y, groups = make_data(2)
        known = {"sensitive_features": groups} if words.startswith("'nobody'") else {}
        fits = []
        with pytest.raises(error, match=words):
            placed(ComplexMetricClassifier)(**{"estimator": Spy(fits)} | params).fit(
                X, y, **known
            )
        assert fits == []

    def test_labels_and_weights_that_do_not_suit_are_refused_before_any_fit(self):
        cases = [("g_mean", ["a"], r"one class.*\['a'\]")]
        for metric in ONE_LABEL:
            cases.append((metric, ["ok", "fraud"], r"one of \['fraud', 'ok'\]"))
            cases.append((metric, [0, 1, 2], "Only binary .*pos_label"))
        fits = []
        for metric, labels, words in cases:
            X, y, _ = make_data(max(len(labels), 2))
            with pytest.raises(ValueError, match=words):
                model = ComplexMetricClassifier(Spy(fits), metric)
                model.fit(X, np.array(labels)[y % len(labels)])
        for weights, words in (
            (np.zeros(len(y)), "zero"),
            (-np.ones(len(y)), ">= 0; got -1"),
            (np.ones(3), "shape"),
        ):
            with pytest.raises(ValueError, match=words):
                ComplexMetricClassifier(Spy(fits)).fit(X, y, sample_weight=weights)
        assert fits == []

    def test_a_run_that_is_cut_short_says_how_far_it_is(self):
        X, y, _ = make_data(4)
        model = ComplexMetricClassifier(metric="min_max", max_iter=2, tol=1e-6)
        message = "max_iter=2, with a gap of"
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        # No other solver is advised than the one that it was.
        assert str(caught[0].message).endswith("Increase max_iter.")
        assert model.dual_gap_ > 1e-6 and model.n_iter_ == 2
        best = ComplexMetricClassifier(metric="min_max").fit(X, y)
        assert model.dual_objective_ <= best.objective_
        model.set_params(solver_options__solver="gda")
        with pytest.warns(ConvergenceWarning, match="or use solver='column_generation'"):
            model.fit(X, y)


class CheapestOfSome(LMO):
    """Knows seven logistic regressions, two of them constant, and picks the cheapest."""

    def fit(self, X, y, sample_weight=None, cells=None, n_cells=1):
        super().fit(X, y, sample_weight, cells, n_cells)
        grid = [{0: 1, 1: w} for w in (1e-6, 0.2, 1, 2, 5, 20, 1e6)]
        self.models_ = [LogisticRegression(class_weight=w).fit(X, y) for w in grid]
        self.tensors_ = [self.count(model.predict(X)) for model in self.models_]
        return self

    def __call__(self, L):
        best = int(np.argmin([np.vdot(L, C) for C in self.tensors_]))
        return self.tensors_[best], self.models_[best]


class TestOtherOracles:
    @pytest.mark.parametrize("lmo", ["weighted", CheapestOfSome()], ids=str)
    @pytest.mark.parametrize("fair", [False, True])
    def test_the_mixture_is_of_classifiers(self, lmo, fair):
        X, y, groups = make_data(2)
        names = np.array(["no", "yes"])[y]
        constraints = EqualOpportunity(slack=0.1, pos_label="yes") if fair else ()
        model = placed(ComplexMetricClassifier)(
            metric="h_mean", constraints=constraints, lmo=lmo, max_iter=50
        )
        with no_complaint_of_convergence():
            model.fit(X, names, sensitive_features=groups)
        metadata = {"sensitive_features": groups} if fair else {}
        P = model.predict_proba(X, **metadata)
        T = len(model.mixture_weights_)
        assert len(model.classifiers_) == len(model.loss_matrices_) == T
        by_hand = sum(
            weight * np.eye(2)[np.asarray(classifier.predict(X))]
            for weight, classifier in zip(
                model.mixture_weights_, model.classifiers_, strict=True
            )
        )
        np.testing.assert_allclose(P, by_hand)
        C = mixture_confusion(model, X, names, **metadata)
        np.testing.assert_allclose(model.cell_confusions_, C, atol=1e-12)
        predicted = model.predict(X, **metadata)
        assert set(predicted) == {"no", "yes"}
        assert (P[np.arange(len(X)), np.searchsorted(["no", "yes"], predicted)] > 0).all()
        assert not hasattr(model, "decision_function")
        assert not hasattr(model, "estimator_")
        assert not hasattr(lmo, "models_")
        if fair:
            assert model.constraint_violation_ <= 0
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(model)).predict(X, **metadata), predicted
        )

    def test_an_lmo_gets_weights_whose_mean_is_1(self):
        class Weighed(CheapestOfSome):
            def fit(self, X, y, sample_weight=None, cells=None, n_cells=1):
                seen.append(sample_weight)
                return super().fit(X, y, sample_weight, cells, n_cells)

        X, y, _ = make_data(2)
        seen, weights = [], np.where(y == 1, 30.0, 10.0)
        model = ComplexMetricClassifier(solver_options={"lmo": Weighed()})
        with no_complaint_of_convergence():
            for own in (None, weights):
                model.fit(X, y, sample_weight=own)
        np.testing.assert_allclose(seen, [np.ones(len(y)), weights / weights.mean()])

    def test_a_bound_of_ones_own_is_the_certificate(self):

        class Exact(CheapestOfSome):
            exact = True

        class Lower(Exact):
            def __call__(self, L):
                C, handle = super().__call__(L)
                return C, handle, float(np.vdot(L, C)) - 0.01

        X, y, _ = make_data(2)
        model = ComplexMetricClassifier(
            metric="balanced", solver_options={"lmo": Exact()}
        ).fit(X, y)
        assert model.dual_gap_ <= 1e-9
        with no_complaint_of_convergence():
            lower = clone(model).set_params(solver_options__lmo=Lower()).fit(X, y)
        assert lower.objective_ == model.objective_
        assert lower.dual_gap_ == pytest.approx(0.01, abs=1e-3)

    def test_an_lmo_keeps_no_examples_and_predictions_that_are_no_labels_are_refused(
        self,
    ):
        class OneMore(CheapestOfSome):
            def predict(self, handle, X, cells):
                return super().predict(handle, X, cells) + 1

        X, y, _ = make_data(2)
        weighted = {"solver_options": {"lmo": "weighted"}, "max_iter": 20}
        with no_complaint_of_convergence():
            model = ComplexMetricClassifier(
                solver_options={"lmo": OneMore()}, max_iter=5
            ).fit(X, y)
            # It needs no probabilities.
            without = ComplexMetricClassifier(LinearSVC(), **weighted).fit(X, y)
        with pytest.raises(ValueError, match="predict of OneMore must be among"):
            model.predict(X)
        assert len(pickle.dumps(without)) < X.nbytes


def test_several_features_are_constrained_each_for_itself():
    X, y, groups = make_data(2, n=600)
    frame = pd.DataFrame({"age": groups, "sign": X[:, 1] > 0})
    constraints = [
        EqualOpportunity(slack=0.02, feature="age"),
        DemographicParity(slack=0.03, feature="sign"),
    ]
    model = ComplexMetricClassifier(constraints=constraints, confusion="labels", cv=None)
    model.fit(X, y, sensitive_features=frame)
    P = model.predict_proba(X, sensitive_features=frame[["sign", "age"]])
    for constraint, feature in zip(constraints, ("age", "sign"), strict=True):
        alone = constraint.set_params(feature=None)
        held = alone(y, P, labels=[0, 1], sensitive_features=frame[feature])
        assert held <= 1e-9
