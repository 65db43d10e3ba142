"""ThresholdDisplay: curves, the chosen threshold, and where constraints fail."""

import numpy as np
import pytest
from _seeds import new_rng
from sklearn.metrics import f1_score, precision_score, recall_score

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    EqualOpportunity,
    FBeta,
    Precision,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.plotting import ThresholdDisplay


def data(n=120):
    rng = new_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0.5, "yes", "no")
    y[:2] = ["no", "yes"]
    return X, y, rng.integers(1, 4, size=n)


def test_curves_are_the_scores_of_the_thresholds():
    X, y, weights = data()
    score = X[:, 0]
    display = ThresholdDisplay.from_predictions(
        y == "yes", score, metric="f1", sample_weight=weights
    )
    known = {
        "Precision of True": precision_score,
        "Recall of True": recall_score,
        "F beta of True": f1_score,
    }
    assert [line.get_label() for line in display.lines_] == list(known)
    for line, function in zip(display.lines_, known.values(), strict=True):
        thresholds, values = line.get_data()
        assert (np.diff(thresholds) > 0).all()
        for threshold, value in zip(thresholds[::4], values[::4], strict=True):
            guess = score > threshold
            if not guess.any() and function is precision_score:
                assert np.isnan(value)
                continue
            expected = function(y == "yes", guess, sample_weight=weights, zero_division=0)
            assert value == pytest.approx(expected)


@pytest.mark.parametrize(
    "params",
    [
        {"metric": FBeta(pos_label="no")},
        {"constraints": Recall(label="no", at_least=0.5)},
        {"metric": Precision(label="no")},
    ],
    ids=repr,
)
def test_precision_and_recall_are_of_the_positive_label_and_say_so(params):
    X, y, _ = data()
    score = -X[:, 0]
    display = ThresholdDisplay.from_predictions(y, score, **params)
    of_no = ["Precision of 'no'", "Recall of 'no'"]
    assert list(display.scores)[:2] == of_no
    for i in range(0, len(display.thresholds), 10):
        # The named label is predicted above the threshold.
        guess = np.where(score >= display.thresholds[i], "no", "yes")
        expected = recall_score(y, guess, pos_label="no")
        assert display.scores[of_no[1]][i] == pytest.approx(expected)
        if (guess == "no").any():
            expected = precision_score(y, guess, pos_label="no")
            assert display.scores[of_no[0]][i] == pytest.approx(expected)
    assert display.ax_.get_xlabel() == "Threshold of the probability of 'no'"
    last = display.lines_[-1].get_label()
    expected = {"metric": "F beta of 'no'", "constraints": "G mean"}
    assert last == expected[next(iter(params))] or last in of_no


def test_the_scores_of_a_mixture_are_marked():
    X, y, weights = data()
    # No share of these rows is that.
    model = ComplexMetricClassifier(
        metric="zero_one",
        constraints=SelectionRate(target=0.33337, slack=0.0, label="yes"),
        confusion="labels", cv=None,
    ).fit(X, y)  # fmt: skip
    display = ThresholdDisplay.from_estimator(model, X, y, sample_weight=weights)
    cuts, shares = display.rule_thresholds, display.rule_weights
    if cuts is None:
        # Label 1 is predicted below a threshold by chance, which is not marked.
        assert (np.diff(model.loss_matrices_[:, 0, :, 1]) > 0).any()
        return
    np.testing.assert_array_equal(shares, model.mixture_weights_)
    assert display.chosen_ is None
    assert len(display.rules_) == np.isfinite(cuts).sum()
    p = model.estimator_.predict_proba(X)[:, 1]
    predicted = sum(s * (p > cut) for s, cut in zip(shares, cuts, strict=True))
    hits = weights @ (predicted * (y == "yes"))
    found = display.mixture_scores
    assert found["Precision of 'yes'"] == pytest.approx(hits / (weights @ predicted))
    assert found["Recall of 'yes'"] == pytest.approx(hits / weights[y == "yes"].sum())
    if len(display.rules_):
        heights = [float(dot.get_ydata()[0]) for dot in display.points_]
        assert heights == [found[name] for name in display.scores]
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert labels.count("rule of the mixture") == 1
    with pytest.raises(ValueError, match=r"rule_thresholds must have shape \(n_rules,\)"):
        ThresholdDisplay.from_predictions(y, p, labels=["no", "yes"], rule_thresholds=0.3)


def test_the_chosen_threshold_and_those_of_the_folds_are_marked():
    X, y, _ = data()
    model = ComplexMetricClassifier(metric="kappa", cv=4).fit(X, y)
    display = ThresholdDisplay.from_estimator(model, X, y, linewidth=3)
    assert display.threshold == model.threshold_
    assert list(display.chosen_.get_xdata()) == [model.threshold_] * 2
    np.testing.assert_array_equal(display.folds_.get_xdata(), model.cv_thresholds_)
    assert display.lines_[0].get_linewidth() == 3
    assert display.violated_ is None
    assert display.ax_.get_xlabel() == "Threshold of the probability of 'yes'"
    assert display.plot(display.ax_).figure_ is display.figure_


def test_where_a_constraint_fails_is_shaded():
    X, y, _ = data()
    constraint = Recall(label="yes", at_least=0.6)
    metric = Precision(label="yes")
    model = ComplexMetricClassifier(metric=metric, constraints=constraint).fit(X, y)
    display = ThresholdDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.violated, display.lines_[1].get_ydata() < 0.6)
    assert display.violated_ is not None
    # The metric is one of the curves already.
    names = [line.get_label() for line in display.lines_]
    assert names == ["Precision of 'yes'", "Recall of 'yes'"]


def test_many_scores_are_thinned_out():
    y = np.arange(5000) % 2
    display = ThresholdDisplay.from_predictions(y, new_rng(1).random(5000))
    assert len(display.thresholds) <= 500


def test_what_has_no_threshold_is_refused():
    X, y, weights = data()
    three = np.where(X[:, 1] > 1, "perhaps", y)
    model = ComplexMetricClassifier().fit(X, three)
    with pytest.raises(ValueError, match="two classes; got 3"):
        ThresholdDisplay.from_estimator(model, X, three)
    with pytest.raises(ValueError, match="two classes; got 3"):
        ThresholdDisplay.from_predictions(three, X[:, 0])
    with pytest.raises(ValueError, match="uses groups or individual costs"):
        ThresholdDisplay.from_predictions(y, X[:, 0], constraints=EqualOpportunity())
    with pytest.raises(ValueError, match="uses groups or individual costs"):
        ThresholdDisplay.from_predictions(y, X[:, 0], metric="expected_cost")
    hidden = np.ma.masked_array(y, mask=np.arange(len(y)) == 3)
    with pytest.raises(ValueError, match=r"y_true has a masked label \(row 3\)"):
        ThresholdDisplay.from_predictions(hidden, X[:, 0])
    with pytest.raises(ValueError, match="y_true must be an array"):
        ThresholdDisplay.from_predictions([["no"], ["no", "yes"]], [0.5, 0.5])
    with pytest.raises(TypeError, match="a fitted ComplexMetricClassifier"):
        ThresholdDisplay.from_estimator(ComplexMetricClassifier(), X, y)
    with pytest.raises(ValueError, match=r"scores\['a'\] must have shape"):
        ThresholdDisplay(thresholds=[0.1, 0.2], scores={"a": [1.0]}).plot()
