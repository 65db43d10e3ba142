"""What AchievableSetDisplay draws, against enumeration of thresholds and rules."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _mixtures import even_one_class, make_data
from _options import placed
from _seeds import cache_by_seed, new_rng
from matplotlib.path import Path
from scipy.spatial import ConvexHull
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier, metrics
from sklearn_structsvm.plotting import AchievableSetDisplay

draw = AchievableSetDisplay.from_estimator
draw_predictions = AchievableSetDisplay.from_predictions

# An outline leaves out so much of the set at most, in both recalls.
MISSED = 5e-3


@cache_by_seed
def fitted(k=2, metric="h_mean", groups=False, **params):
    """(X, y, metadata, model), which are only looked at."""
    X, y, of_group = make_data(k)
    metadata = {"sensitive_features": of_group} if groups else {}
    if k == 2:
        # Which are counted in the display.
        params = {"confusion": "labels"} | params
    model = placed(ComplexMetricClassifier)(metric=metric, **{"cv": None} | params)
    return X, y, metadata, model.fit(X, y, **metadata)


def thresholdings(eta):
    """Predictions of class 1 (n_rules, n) by all thresholds, and turned round."""
    above = eta >= np.append(np.unique(eta), np.inf)[:, None]
    return np.concatenate([above, ~above])


def recalls_of(decided, y):
    """Recalls of both classes (n_rules, 2)."""
    right = (~decided[:, y == 0]).mean(axis=1), decided[:, y == 1].mean(axis=1)
    return np.column_stack(right)


def is_within(outline, points, slack=MISSED):
    """Whether each point is in a polygon, or not further than `slack` outside."""
    hull = ConvexHull(outline)
    return (points @ hull.equations[:, :2].T + hull.equations[:, 2] <= slack).all(axis=1)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestSet:
    def test_two_classes_have_the_hull_of_all_thresholds(self):
        X, y, _, model = fitted()
        points = recalls_of(thresholdings(model.estimator_.predict_proba(X)[:, 1]), y)
        display = draw(model, X, y)
        assert is_within(display.achievable, points).all()
        assert is_within(points, display.achievable, 1e-12).all()
        np.testing.assert_array_equal(display.line_.get_xydata()[:-1], display.achievable)

    def test_groups_have_a_threshold_each(self):
        X, y, metadata, model = fitted(
            groups=True, constraints=metrics.DemographicParity(slack=1.0)
        )
        eta = model.estimator_.predict_proba(X)[:, 1]
        old = metadata["sensitive_features"] == "old"
        both = thresholdings(eta)
        pairs = new_rng(0).integers(len(both), size=(500, 2))
        points = recalls_of(np.where(old, both[pairs[:, 0]], both[pairs[:, 1]]), y)
        display = draw(model, X, y, **metadata)
        assert is_within(display.achievable, points).all()
        alone = draw_predictions(y, eta)
        assert is_within(display.achievable, alone.achievable).all()
        assert not is_within(alone.achievable, display.achievable).all()

    @pytest.mark.parametrize("confusion", ["probabilities", "labels"])
    def test_rules_of_several_classes_are_in_the_set(self, confusion):
        X, y, _, model = fitted(3, confusion=confusion)
        eta = model.estimator_.predict_proba(X)
        display = draw(model, X, y, entries=(0, 2), path=False)
        rng = new_rng(0)
        for _ in range(300):
            gains = np.diag(rng.uniform(0.05, 1.0, size=3))
            gains[1] = 0.0  # its recall is not drawn
            rule = np.eye(3)[np.argmax(eta @ gains, axis=1)]
            truth = eta if confusion == "probabilities" else np.eye(3)[y]
            C = truth.T @ rule
            point = (C.diagonal() / C.sum(axis=1))[[0, 2]]
            # Rules that are not the best for what is counted leave steps of an example.
            slack = MISSED if confusion == "probabilities" else 1 / (y == 2).sum()
            assert is_within(display.achievable, point[None], slack).all()

    def test_entries_may_be_off_the_diagonal_of_a_group_and_shares_of_all(self):
        X, y, metadata, model = fitted(
            3, groups=True, constraints=metrics.DemographicParity(slack=0.3),
            confusion="probabilities",
        )  # fmt: skip
        display = draw(
            model, X, y, entries=(2, (0, 1)), normalize=False, group="old", **metadata
        )
        eta, h = model.estimator_.predict_proba(X), model.predict_proba(X, **metadata)
        old = metadata["sensitive_features"] == "old"
        C = eta[old].T @ h[old] / len(X)
        np.testing.assert_allclose(display.found, [C[2, 2], C[0, 1]], atol=1e-9)
        shares = eta[old].sum(axis=0) / len(X)
        np.testing.assert_allclose(display.achievable.max(axis=0), shares[[2, 0]])
        assert display.ax_.get_xlabel() == "Share of right 2, group old"
        assert display.ax_.get_ylabel() == "Share that is 0, predicted 1, group old"

    def test_weights_count_as_repeated_rows(self):
        X, y, _, model = fitted()
        weights = new_rng(0).integers(0, 3, size=len(y))
        weighted = draw(model, X, y, sample_weight=weights)
        rows = np.repeat(np.arange(len(y)), weights)
        repeated = draw(model, X[rows], y[rows])
        np.testing.assert_allclose(weighted.achievable, repeated.achievable)
        np.testing.assert_allclose(weighted.found, repeated.found)
        np.testing.assert_allclose(weighted.most_probable, repeated.most_probable)


class TestMarks:
    def test_star_is_the_mixture_and_crosses_are_its_classifiers(self):
        X, y, _, model = fitted(
            metric="min_max", constraints=metrics.SelectionRate(label=1, at_most=0.3)
        )
        display = draw(model, X, y)
        C = model.confusion_
        np.testing.assert_allclose(display.found, C.diagonal() / C.sum(axis=1))
        assert len(model.mixture_weights_) > 1
        np.testing.assert_allclose(display.classifiers_.get_xydata(), display.classifiers)
        np.testing.assert_allclose(
            model.mixture_weights_ @ display.classifiers, display.found
        )
        np.testing.assert_allclose(display.found_.get_xydata(), display.found[None])

    @pytest.mark.parametrize("k", [2, 3])
    def test_path_ends_at_the_mixture_and_has_a_point_for_each_check(self, k):
        X, y, _, model = fitted(k, metric="min_max")
        display = draw(model, X, y)
        np.testing.assert_allclose(display.path[-1], display.found, atol=1e-9)
        assert len(display.path) >= len(model.history_["n_iter"])
        np.testing.assert_array_equal(display.path_.get_xydata(), display.path)
        without = draw(model, X, y, path=False)
        assert without.path_ is None
        np.testing.assert_array_equal(without.found, display.found)

    def test_circle_is_the_probability_model_and_dashed_contour_the_mixture(self):
        X, y, _, model = fitted()
        before = clone(model).get_params(), dict(vars(model))
        C, _ = metrics.confusion_tensor(y, model.estimator_.predict(X))
        display = draw(model, X, y)
        recalls = C[0].diagonal() / C[0].sum(axis=1)
        np.testing.assert_allclose(display.most_probable, recalls)
        best = display.best_contour_.levels[0]
        assert best == pytest.approx(1 - model.objective_, abs=1e-3)
        assert Path(display.set_.get_xy()).contains_point(display.achievable.mean(axis=0))
        assert display.feasible is None and display.feasible_ is None
        # Other examples than those of the fit.
        other = draw(model, X[:150], y[:150], path=False)
        h = model.predict_proba(X[:150])
        expected = [h[y[:150] == i, i].mean() for i in (0, 1)]
        np.testing.assert_allclose(other.found, expected)
        assert all(vars(model)[name] is value for name, value in before[1].items())
        assert list(vars(model)) == list(before[1])

    @even_one_class
    def test_one_classifier_has_no_crosses(self):
        X, y, _, model = fitted(metric="zero_one")
        display = draw(model, X, y)
        assert len(model.mixture_weights_) == 1 and display.classifiers_ is None
        assert "classifiers in the mixture" not in legend(display)


class TestContours:
    @pytest.mark.parametrize("normalize", [True, False])
    @pytest.mark.parametrize("entries", [(0, 1), (1, (0, 1))])
    def test_contours_are_those_of_the_score(self, normalize, entries):
        X, y, _, model = fitted()
        display = draw(model, X, y, entries=entries, normalize=normalize)
        x_grid, y_grid, values = display.contours
        assert values.shape == (len(y_grid), len(x_grid))
        priors = np.bincount(y) / len(y)
        a, b = 30, 50
        scale = np.ones(2)
        if not normalize:
            scale = priors if entries == (0, 1) else priors[::-1]
        first, second = x_grid[a] / scale[0], y_grid[b] / scale[1]
        recalls = (first, second) if entries == (0, 1) else (1 - second, first)
        # Predictions of these recalls, as probabilities of class 1.
        h = np.where(y == 1, recalls[1], 1 - recalls[0])
        expected = metrics.HMean()(y, np.column_stack([1 - h, h]), labels=[0, 1])
        assert values[b, a] == pytest.approx(expected)
        assert display.contours_ is not None

    @pytest.mark.parametrize(
        "params", [{"k": 3}, {"groups": True, "constraints": metrics.EqualOpportunity()}]
    )
    def test_there_are_none_where_the_entries_do_not_determine_the_metric(self, params):
        X, y, metadata, model = fitted(**params)
        group = "old" if metadata else None
        display = draw(model, X, y, group=group, path=False, **metadata)
        assert display.contours is None and display.contours_ is None
        assert display.best_contour_ is None
        if metadata:
            assert draw(model, X, y, path=False, **metadata).contours is not None

    def test_two_entries_of_a_row_determine_nothing(self):
        X, y, _, model = fitted()
        display = draw(model, X, y, entries=(0, (0, 1)))
        assert display.contours is None
        # A segment: the two sum to 1.
        np.testing.assert_allclose(display.achievable.sum(axis=1), 1.0)
        assert len(display.achievable) == 2


class TestFeasible:
    def test_of_thresholds_and_their_mixtures_it_has_those_that_meet_the_constraint(self):
        X, y, _, model = fitted(constraints=metrics.SelectionRate(label=1, at_most=0.2))
        display = draw(model, X, y)
        priors = np.bincount(y) / len(y)

        def coverage(points):
            return (1 - points[:, 0]) * priors[0] + points[:, 1] * priors[1]

        assert (coverage(display.feasible) <= 0.2 + 1e-6).all()
        both = thresholdings(model.estimator_.predict_proba(X)[:, 1])
        points, rng = recalls_of(both, y), new_rng(0)
        shares = rng.dirichlet(np.ones(3) / 3, size=3000)
        chosen = points[rng.integers(len(points), size=(3000, 3))]
        mixed = (shares[:, :, None] * chosen).sum(axis=1)
        met = coverage(mixed) <= 0.2
        assert met.sum() > 100
        assert is_within(display.feasible, mixed[met], 2 * MISSED).all()
        assert is_within(display.achievable, display.feasible).all()

    def test_constraints_of_groups_leave_what_pairs_of_thresholds_can_do(self):
        X, y, metadata, model = fitted(
            groups=True, constraints=metrics.EqualOpportunity(slack=0.05)
        )
        eta = model.estimator_.predict_proba(X)[:, 1]
        old = metadata["sensitive_features"] == "old"
        both = thresholdings(eta)
        pairs = new_rng(0).integers(len(both), size=(4000, 2))
        decided = np.where(old, both[pairs[:, 0]], both[pairs[:, 1]])
        first, second = (decided[:, (y == 1) & part].mean(axis=1) for part in (old, ~old))
        met = np.abs(first - second) <= 0.05
        assert met.sum() > 100
        display = draw(model, X, y, **metadata)
        assert is_within(display.feasible, recalls_of(decided[met], y), 2 * MISSED).all()
        assert is_within(display.feasible, display.found[None], 2 * MISSED).all()
        assert "constraints met" in legend(display)

    def test_convex_constraints_of_several_classes_contain_the_mixture(self):
        X, y, _, model = fitted(3, constraints=metrics.Quantification(at_most=0.02))
        display = draw(model, X, y)
        assert is_within(display.feasible, display.found[None], 2 * MISSED).all()
        assert is_within(display.achievable, display.feasible, 1e-3).all()
        eta, rng = model.estimator_.predict_proba(X), new_rng(0)
        p = eta.mean(axis=0)
        shares = np.linspace(0, 0.99, 34)[:, np.newaxis]
        points = []
        for _ in range(500):
            rules = (eta @ rng.normal(size=(3, 3)) for _ in range(2))
            h = sum(np.eye(3)[np.argmax(rule, axis=1)] for rule in rules) / 2
            # Of labels drawn by their frequencies, as many others as may be.
            q = (1 - shares) * p + shares * h.mean(axis=0)
            share = shares[np.log(p / q) @ p <= 0.02].max()
            h = (1 - share) * p + share * h
            points.append(((eta * h).mean(axis=0) / p)[:2])
        assert is_within(display.feasible, np.array(points), 2 * MISSED).all()

    def test_where_nothing_is_left_the_set_is_drawn_without_a_mixture(self):
        X, y, _, model = fitted()
        impossible = [metrics.Recall(at_least=[0.99, 0.99])]
        display = draw_predictions(
            y, model.estimator_.predict_proba(X), metric="g_mean", constraints=impossible
        )
        assert display.feasible.shape == (0, 2)
        assert display.feasible_ is None and display.found_ is None
        assert len(display.achievable) > 2


class TestPredictions:
    def test_same_is_drawn_from_probabilities_as_from_the_estimator(self):
        X, y, metadata, model = fitted(
            groups=True, constraints=metrics.EqualOpportunity(slack=0.0)
        )
        one = draw(model, X, y, **metadata)
        other = draw_predictions(
            y, model.estimator_.predict_proba(X), metric="h_mean",
            constraints=metrics.EqualOpportunity(slack=0.0), **metadata,
        )  # fmt: skip
        for name in ("achievable", "feasible", "found", "path", "most_probable"):
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), atol=model.tol / 10
            )

    def test_columns_are_those_of_the_labels_or_of_the_second_class(self):
        X, y, _, model = fitted()
        eta = model.estimator_.predict_proba(X)
        names = np.array(["no", "yes"])[y]
        one, other = draw_predictions(names, eta), draw_predictions(names, eta[:, 1])
        np.testing.assert_allclose(one.achievable, other.achievable)
        assert other.ax_.get_xlabel() == "Recall of no"
        # Without a metric the set alone is drawn.
        assert one.contours is None and one.found is None
        assert one.path_ is None and one.classifiers_ is None
        X, y, _, model = fitted(3)
        eta = model.estimator_.predict_proba(X)
        display = draw_predictions(
            y, eta[:, ::-1], labels=[2, 1, 0], entries=(0, 2), name="mine"
        )
        assert legend(display) == ["mine", "mine, most probable class"]
        expected = draw_predictions(y, eta, entries=(0, 2))
        np.testing.assert_allclose(display.achievable, expected.achievable)

    def test_labels_and_probabilities_that_are_none_are_refused(self):
        proba = np.full((3, 2), 0.5)
        hidden = np.ma.masked_array(proba, mask=proba > 0.4)
        for y, own, message in [
            ([0, 1, [1]], proba, "y_true must be an array"),
            (np.ma.masked_array([0, 1, 1], [1, 0, 0]), proba, "y_true has a masked"),
            ([0, 1, 1], hidden, "y_proba is a masked array"),
            ([0, 1, 1], proba * np.nan, "y_proba must be finite"),
            ([0, 1, 1], proba.astype(str), "y_proba must hold numbers"),
            ([0, 1, 1], np.ones((3, 3)) / 3, r"column for each of the labels \[0, 1\]"),
        ]:
            with pytest.raises(ValueError, match=message):
                draw_predictions(y, own)
        X, y, _, model = fitted()
        with pytest.raises(ValueError, match="y must be an array"):
            draw(model, X, [y.tolist(), [0]])

    def test_a_baseline_needs_the_rows(self):
        X, y, _, model = fitted()
        churn = metrics.Churn(model.estimator_, at_most=0.2)
        with pytest.raises(ValueError, match="Constraints with a baseline need X"):
            draw_predictions(y, model.estimator_.predict_proba(X), constraints=churn)
        display = draw(ComplexMetricClassifier(constraints=churn).fit(X, y), X, y)
        assert len(display.feasible) > 2


class TestStyle:
    def test_axes_are_used_again_in_other_colors_and_styles(self):
        X, y, _, model = fitted()
        first = draw(model, X, y, name="a", ls=":", contour_kw={"levels": [0.2, 0.4]})
        assert first.line_.get_linestyle() == ":"
        assert first.contours_.levels.tolist() == [0.2, 0.4]
        second = draw(model, X, y, name="b", ax=first.ax_, mark_kw={"c": "black"})
        assert second.ax_ is first.ax_ and len(plt.get_fignums()) == 1
        assert first.line_.get_color() != second.line_.get_color()
        assert second.found_.get_color() == second.path_.get_color() == "black"
        assert {text.split(",")[0] for text in legend(second)} == {"a", "b"}
        assert first.plot(name="again") is first and first.ax_ is not second.ax_
        assert legend(first)[0] == "again"

    def test_legend_is_below_the_axes_and_not_cut_off(self):
        X, y, _, model = fitted(constraints=metrics.SelectionRate(label=1, at_most=0.2))
        display = draw(model, X, y)
        display.figure_.canvas.draw()
        box = display.ax_.get_legend().get_window_extent()
        assert box.y1 < display.ax_.xaxis.label.get_window_extent().y0
        assert box.y0 >= 0 and box.x0 >= 0 and box.x1 <= display.figure_.bbox.x1


class TestRefused:
    def test_estimators_of_another_kind(self):
        X, y, _ = make_data(2)
        with pytest.raises(NotFittedError):
            draw(ComplexMetricClassifier(), X, y)
        with pytest.raises(TypeError, match="lmo='plugin'; got LogisticRegression"):
            draw(LogisticRegression().fit(X, y), X, y)
        weighted = ComplexMetricClassifier(
            solver_options={"lmo": "weighted"}, tol=0.1
        ).fit(X, y)
        with pytest.raises(TypeError, match="lmo='plugin'; got ComplexMetric"):
            draw(weighted, X, y)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"entries": (0, 7)}, "entries=7 is not a class"),
            ({"entries": (0, (1, 7))}, "entries=7 is not a class"),
            ({"entries": (0, 0)}, "two different entries"),
            ({"entries": (0, (0, 0))}, "two different entries"),
            ({"entries": (0, 1, 2)}, r"must be two.*\(0, 1, 2\)"),
            ({"entries": 0}, "must be two.*got 0"),
            ({"entries": (0, (1, 1, 1))}, r"a pair \(label, prediction\); got \(1, 1, 1"),
            ({"group": "old"}, "group='old' needs sensitive_features"),
        ],
    )
    def test_what_is_not_there_is_named_before_a_figure_is_made(self, options, message):
        X, y, _, model = fitted()
        with pytest.raises(ValueError, match=message):
            draw(model, X, y, **options)
        assert plt.get_fignums() == []

    def test_class_without_examples_has_no_recall(self):
        X, y, _, model = fitted(3, confusion="labels")
        known = y < 2
        with pytest.raises(ValueError, match="no example with label 2"):
            draw(model, X[known], y[known], entries=(0, 2))
        assert len(draw(model, X[known], y[known], path=False).achievable) > 2
