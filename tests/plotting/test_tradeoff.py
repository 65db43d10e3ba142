"""What TradeoffDisplay draws, and that from_estimator's fits are those it says."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from _mixtures import Spy, make_data
from _seeds import new_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    LinearLoss,
    Recall,
    SelectionRate,
    confusion_tensor,
)
from sklearn_structsvm.plotting import TradeoffDisplay

RESULTS = {
    "levels": [0.2, 0.0, 0.1],
    "test_scores": [[0.7, 0.8], [0.4, 0.6], [0.5, 0.6]],
    "test_violations": [[-0.1, 0.0], [0.1, 0.3], [0.0, 0.1]],
    "train_scores": [[0.8, 0.8], [0.6, 0.6], [0.7, 0.7]],
    "train_violations": [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
    "unconstrained_scores": [0.8, 0.9],
}
ONE_SPLIT = ShuffleSplit(1, test_size=0.4, random_state=0)


def plotted(**changes):
    return TradeoffDisplay(**RESULTS | changes).plot()


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def bounded(constraints=None, **params):
    constraints = EqualOpportunity(slack=0.5) if constraints is None else constraints
    params = {"cv": None, "confusion": "labels"} | params
    return ComplexMetricClassifier(metric="g_mean", constraints=constraints, **params)


SLACK = "constraints__slack"


def along(model, X, y, level, values, **options):
    params = {"param_name": level, "param_range": values}
    return TradeoffDisplay.from_estimator(model, X, y, **params, **options)


class TestPlot:
    def test_lines_are_means_bands_deviations_and_the_dotted_one_has_no_constraint(self):
        display = plotted()
        assert [line.get_xdata().tolist() for line in display.lines_] == [
            [0, 0.1, 0.2]
        ] * 4
        expected = [[0.5, 0.55, 0.75], [0.6, 0.7, 0.8], [0.2, 0.05, -0.05], [0, 0, 0]]
        found = [line.get_ydata() for line in display.lines_]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert [line.axes for line in display.lines_] == list(np.repeat(display.axes_, 2))
        assert len({line.get_color() for line in display.lines_}) == 1
        assert [line.get_linestyle() for line in display.lines_] == ["-", "--"] * 2
        assert len(display.fill_betweens_) == 2
        corners = display.fill_betweens_[0].get_paths()[0].vertices
        at_zero = corners[corners[:, 0] == 0.0][:, 1]
        assert (at_zero.min(), at_zero.max()) == pytest.approx((0.4, 0.6))
        one = {key: [row[0] for row in RESULTS[key]] for key in ("test_scores",)}
        assert plotted(**one, test_violations=[0, 0, 0]).fill_betweens_ == []
        np.testing.assert_allclose(display.reference_.get_ydata(), 0.85)
        assert legend(display) == [
            "held out",
            "training",
            "held out, without the constraint",
        ]
        assert plotted(unconstrained_scores=None).reference_ is None

    def test_levels_that_cannot_be_reached_are_triangles_and_training_may_be_missing(
        self,
    ):
        display = plotted(test_scores=[[0.7, 0.8], [0.4, np.nan], [0.5, 0.6]])
        assert np.isnan(display.lines_[0].get_ydata()).tolist() == [True, False, False]
        assert display.infeasible_.get_xdata().tolist() == [0.0]
        assert "cannot be met" in legend(display)
        display.figure_.canvas.draw()
        assert plotted().infeasible_ is None
        assert len(plotted(train_scores=None, train_violations=None).lines_) == 2

    def test_axes_stand_above_one_another_or_are_used_again_in_other_styles(self):
        display = plotted(level_name="slack", score_name="G-mean")
        above, below = display.axes_
        assert display.ax_ is above and above.get_position().y0 > below.get_position().y1
        assert below.get_xlabel() == "slack" and above.get_ylabel() == "G-mean"
        assert display.figure_.axes == [above, below]
        assert len(plt.get_fignums()) == 1
        first = plotted(name="a")
        second = TradeoffDisplay(**RESULTS, name="b").plot(first.axes_)
        assert second.ax_ is first.ax_ and len(plt.get_fignums()) == 2
        assert first.lines_[0].get_color() != second.lines_[0].get_color()
        assert {text.split(",")[0] for text in legend(second)} == {"a", "b"}
        _, ax = plt.subplots()
        alone = TradeoffDisplay(**RESULTS).plot(ax)
        assert alone.axes_.tolist() == [ax, None] and len(alone.lines_) == 2
        assert ax.get_xlabel() == "Level of the constraint"
        display = TradeoffDisplay(**RESULTS).plot(
            c="red", ls=":", fill_between_kw={"alpha": 0.7}, name="mine"
        )
        assert {line.get_color() for line in display.lines_} == {"red"}
        assert {line.get_linestyle() for line in display.lines_} == {":"}
        assert {band.get_alpha() for band in display.fill_betweens_} == {0.7}
        assert legend(display)[0] == "mine, held out"
        _, axes = plt.subplots(3)
        with pytest.raises(ValueError, match="one or two Axes; got 3"):
            TradeoffDisplay(**RESULTS).plot(axes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"levels": []}, r"levels must be 1-D and not empty; got shape \(0,\)"),
            ({"test_scores": [1, 2]}, r"test_scores must have 3 rows.*\(2,\)"),
            ({"train_violations": np.ones((3, 1, 1))}, r"train_violations.*\(3, 1, 1\)"),
        ],
    )
    def test_shapes_that_do_not_fit_are_refused(self, changes, message):
        with pytest.raises(ValueError, match=message):
            plotted(**changes)
        assert plt.get_fignums() == []

    def test_missing_matplotlib_is_reported_with_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match="needs matplotlib.*pip install"):
            plotted()


class TestFits:
    @pytest.mark.parametrize("cv_inside", [None, 3])
    def test_results_are_those_of_a_fit_to_the_training_part_at_the_level(
        self, cv_inside
    ):
        X, y, groups = make_data(2)
        weights = new_rng(0).integers(0, 3, size=len(y))
        levels = [0.0, 0.1]
        display = along(
            bounded(cv=cv_inside), X, y, SLACK, levels, cv=ONE_SPLIT,
            sample_weight=weights, sensitive_features=groups,
        )  # fmt: skip
        ((train, test),) = ONE_SPLIT.split(X, y)
        for row, level in enumerate(levels):
            constraint = EqualOpportunity(slack=level)
            model = bounded(constraint, cv=cv_inside).fit(
                X[train], y[train], weights[train], sensitive_features=groups[train]
            )
            for part, rows in (("train", train), ("test", test)):
                C, cells = confusion_tensor(
                    y[rows],
                    model.predict_proba(X[rows], sensitive_features=groups[rows]),
                    labels=[0, 1],
                    sample_weight=weights[rows],
                    sensitive_features=groups[rows],
                )
                recalls = C.sum(axis=0).diagonal() / C.sum(axis=(0, 2))
                scores = getattr(display, f"{part}_scores")
                # Two runs of a solver agree as far as its tolerance says.
                assert scores[row, 0] == pytest.approx(
                    np.sqrt(recalls.prod()), abs=model.tol
                )
                violations = getattr(display, f"{part}_violations")
                assert violations[row, 0] == pytest.approx(
                    constraint.violation(C, cells), abs=model.tol
                )
        free = ComplexMetricClassifier(metric="g_mean", cv=cv_inside, confusion="labels")
        free.fit(X[train], y[train], weights[train])
        C, _ = confusion_tensor(
            y[test], free.predict_proba(X[test]), labels=[0, 1],
            sample_weight=weights[test],
        )  # fmt: skip
        recalls = C[0].diagonal() / C[0].sum(axis=1)
        assert display.unconstrained_scores == pytest.approx([np.sqrt(recalls.prod())])
        assert (display.levels == levels).all() and display.level_name == "slack"

    def test_training_examples_meet_every_level_and_more_slack_costs_less(self):
        X, y, groups = make_data(2)
        # The shares of labels in each part of a group: the best rules are those of y.
        parts = np.digitize(X[:, 0], [-1.0, -0.5, 0.0, 0.5, 1.0])
        X = np.column_stack([parts + 6 * np.unique(groups, return_inverse=True)[1]])
        display = along(
            bounded(estimator=DecisionTreeClassifier()), X, y, SLACK, [0.05, 0.0, 0.02],
            cv=3, sensitive_features=pd.DataFrame({"age": groups}),
        )  # fmt: skip
        assert display.train_scores.shape == display.test_violations.shape == (3, 3)
        assert (display.train_violations <= 1e-8).all()
        assert (np.diff(display.train_scores[[1, 2, 0]], axis=0) >= -1e-3).all()
        assert display.ax_.get_ylabel() == "G mean"

    @pytest.mark.parametrize(
        ("param_range", "message"),
        [
            (0.1, r"param_range must have shape \(n_levels,\); got \(\)"),
            ([[0.1], [0.1, 0.2]], "param_range must be an array"),
            (["all"], "param_range must hold numbers"),
        ],
    )
    def test_levels_that_are_none_are_refused(self, param_range, message):
        X, y, groups = make_data(2)
        with pytest.raises(ValueError, match=message):
            along(bounded(), X, y, SLACK, param_range, sensitive_features=groups)

    def test_sparse_rows_beyond_their_columns_and_other_estimators_are_refused(self):
        X, y, groups = make_data(2)
        X = sparse.csr_array(X)
        X.indices[0] = 10**6
        with pytest.raises(ValueError, match=r"^X\.indices must be integers"):
            along(bounded(), X, y, SLACK, [0.1], sensitive_features=groups)
        X, y, _ = make_data(2)
        with pytest.raises(TypeError, match="LogisticRegression has no 'metric'"):
            along(LogisticRegression(), X, y, SLACK, [0.1])

    @pytest.mark.parametrize(("cv_inside", "n_fits"), [(None, 1), (3, 4)])
    def test_class_probabilities_are_fitted_once_for_each_split(self, cv_inside, n_fits):
        X, y, _ = make_data(2)
        fits = []
        along(
            bounded(
                SelectionRate(at_most=0.9, label=1), estimator=Spy(fits), cv=cv_inside
            ),
            X,
            y,
            "constraints__at_most",
            [0.2, 0.3, 0.4],
            cv=2,
        )
        assert len(fits) == 2 * n_fits

    def test_levels_that_cannot_be_met_are_nan(self):
        X, y, _ = make_data(3)
        display = along(
            bounded(Recall(at_least=0.5)), X, y, "constraints__at_least", [0.3, 0.99],
            cv=ONE_SPLIT,
        )  # fmt: skip
        assert np.isnan(display.test_scores).ravel().tolist() == [False, True]
        assert display.infeasible_.get_xdata().tolist() == [0.99]

    def test_held_out_part_without_the_group_of_a_constraint_has_no_violation(self):
        X, y, _ = make_data(2)
        groups = np.where(np.arange(len(X)) < 20, "few", "many")
        display = along(
            bounded(Recall(at_least=0.5, group="few")), X, y, "constraints__at_least",
            [0.1], cv=[(np.arange(200), np.arange(200, 400))], sensitive_features=groups,
        )  # fmt: skip
        assert np.isnan(display.test_violations).all()
        assert np.isfinite(display.test_scores).all()
        assert np.isfinite(display.train_violations).all()

    def test_each_constraint_that_is_named_gets_the_level(self):
        X, y, _ = make_data(3)
        constraints = [
            SelectionRate(label=0, at_most=0.9),
            SelectionRate(label=1, at_least=0.1),
            SelectionRate(label=2, at_most=0.9),
        ]
        display = along(
            bounded(constraints, confusion="labels"), X, y,
            ["constraints__0__at_most", "constraints__2__at_most"], [0.45], cv=ONE_SPLIT,
        )  # fmt: skip
        ((train, _),) = ONE_SPLIT.split(X, y)
        model = bounded(
            [constraints[1], *(SelectionRate(label=i, at_most=0.45) for i in (0, 2))],
            confusion="labels",
        ).fit(X[train], y[train])
        h = model.predict_proba(X[train]).mean(axis=0)
        violation = max(h[0] - 0.45, h[2] - 0.45, 0.1 - h[1])
        assert display.train_violations[0, 0] == pytest.approx(violation, abs=1e-3)

    def test_costs_are_drawn_with_the_sign_that_makes_greater_better(self):
        X, y, _ = make_data(2)
        model = ComplexMetricClassifier(
            metric=LinearLoss([[0, 1], [5, 0]]),
            constraints=SelectionRate(label=1, at_most=1.0),
        )
        display = along(model, X, y, "constraints__at_most", [0.5], cv=ONE_SPLIT)
        assert display.test_scores[0, 0] < 0
        assert display.ax_.get_ylabel() == "Minus linear loss"
        named = along(
            model, X, y, "constraints__at_most", [0.5], cv=ONE_SPLIT,
            score_name="minus costs",
        )  # fmt: skip
        assert named.ax_.get_ylabel() == "minus costs"

    def test_the_estimator_and_its_constraints_stay_as_they_were(self):
        X, y, groups = make_data(2)
        model = bounded()
        params = clone(model).get_params()
        along(model, X, y, SLACK, [0.1], cv=ONE_SPLIT, sensitive_features=groups)
        assert str(model.get_params()) == str(params)
        assert not hasattr(model, "classes_")

    @pytest.mark.parametrize(
        ("constraints", "name", "message"),
        [
            (EqualOpportunity(slack=0.1), "constraints__at_most", "got 'constraints"),
            (EqualOpportunity(slack=0.1), "slack", "'constraints__slack'.*got 'slack'"),
            (EqualOpportunity(slack=0.1), "constraints__ratio", "no effect with bound"),
            (EqualOpportunity(bound="ratio"), SLACK, "has no effect"),
            ([Recall(at_least=0.1)], "constraints__at_least", "__0__at_least'.*got"),
            ([Recall(at_least=0.1)], "constraints__1__at_least", "__0__at_least'.*got"),
            ((), SLACK, "must be a parameter of a constraint"),
            (EqualOpportunity(), "metric", "must be a parameter of a constraint"),
        ],
    )
    def test_level_that_no_constraint_has_is_refused(self, constraints, name, message):
        X, y, groups = make_data(2)
        with pytest.raises(ValueError, match=message):
            along(bounded(constraints), X, y, name, [0.1], sensitive_features=groups)
        assert plt.get_fignums() == []
