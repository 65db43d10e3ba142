"""Axes, styles and contents that no display can draw are refused by their names."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _estimators import make_problem

from sklearn_structsvm import ComplexMetricClassifier, CRFClassifier
from sklearn_structsvm.metrics import DemographicParity
from sklearn_structsvm.plotting import (
    AchievableSetDisplay,
    ChainWeightsDisplay,
    ConvergenceDisplay,
    FairnessReport,
    RegularizationPathDisplay,
    SegmentsDisplay,
    TaggingDisplay,
    ThresholdDisplay,
    TradeoffDisplay,
    fairness_report,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning"),
]

RATES = ("selection rate", "recall", "false positive rate", "precision")
BY_GROUP = {"group": ["f", "all"], "n": [3, 3], "positives": [1, 1]} | {
    f"{rate}{end}": [0.5, 0.5] for rate in RATES for end in ("", " low", " high")
}
PROMISES = {
    "constraint": ["Recall()"], "promised": ["in training"], "violation": [0.1],
    "new rows": [0.2], "margin": [0.3], "holds": [False], "p value": [0.5],
    "broken p value": [0.5],
}  # fmt: skip
HISTORY = {
    name: [1.0, 2.0]
    for name in ("n_iter", "seconds", "objective", "dual_objective", "dual_gap")
}
CONTENTS = {
    AchievableSetDisplay: {
        "achievable": [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]],
        "axis_names": ("x", "y"),
        "feasible": [[0.0, 0.1], [0.1, 0.0], [0.0, 0.0]],
        "contours": ([0.0, 1.0], [0.0, 1.0], [[0.0, 0.5], [0.5, 1.0]]),
        "found": [0.2, 0.3],
        "classifiers": [[0.2, 0.2], [0.2, 0.4]],
        "path": [[0.0, 0.1], [0.2, 0.3]],
        "most_probable": [0.1, 0.1],
    },
    ChainWeightsDisplay: {"labels": ["a", "b"], "transition": np.eye(2),
                          "emission": np.ones((3, 2)), "feature_names": ["f", "g", "h"]},
    ConvergenceDisplay: {"history": HISTORY},
    FairnessReport: {"by_group": BY_GROUP, "promises": PROMISES, "pos_label": 1,
                     "confidence_level": 0.95},
    RegularizationPathDisplay: {"kind": "score", "param_range": [0.1, 1.0],
                                "values": [[0.5, 0.6], [0.6, 0.7]], "reference": 1.0},
    SegmentsDisplay: {"labels": ["a", "b"],
                      "labelings": {"true": ["a", "b", "b"]},
                      "proba": [0.5, 0.6, 0.9],
                      "times": [0.0, 0.5, 2.0]},
    TaggingDisplay: {"labels": ["a", "b"], "proba": [[0.5, 0.5], [0.1, 0.9]],
                     "taggings": [["a", "b"]], "tagging_proba": [0.4],
                     "tokens": ["the", "cat"]},
    ThresholdDisplay: {"thresholds": [0.1, 0.5], "scores": {"Recall": [0.5, 0.6]},
                       "violated": [True, False], "threshold": 0.3,
                       "cv_thresholds": [0.2, 0.4], "rule_thresholds": [0.2, 0.4],
                       "rule_weights": [0.5, 0.5], "mixture_scores": {"Recall": 0.5}},
    TradeoffDisplay: {"levels": [0.1, 0.2],
                      "test_scores": [0.5, 0.6],
                      "test_violations": [0.0, 0.1],
                      "train_scores": [[0.5, 0.6], [0.6, 0.7]]},
}  # fmt: skip
# Any two things are names of axes or tokens, and any thing is a label.
PARTS = [
    (kind, name) for kind, contents in CONTENTS.items() for name in contents
    if name not in ("pos_label", "axis_names", "tokens")
]  # fmt: skip


@pytest.mark.parametrize("kind", CONTENTS)
def test_contents_that_fit_are_drawn(kind):
    assert kind(**CONTENTS[kind]).plot().figure_ is not None


@pytest.mark.parametrize("junk", ["none such", [[1, 2], [3]], 1j], ids=repr)
@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_contents_that_are_none_are_refused_by_name(kind, name, junk):
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        kind(**CONTENTS[kind] | {name: junk}).plot()
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (AchievableSetDisplay, "limits", [1.0], r"limits must have shape \(2,\)"),
        (AchievableSetDisplay, "contours", ([0], [0], [[0, 1]]), r"contours\[2\] must"),
        (SegmentsDisplay, "times", [0.0, 2.0, 1.0], "times must not decrease"),
        (SegmentsDisplay, "proba", [0.5], "proba must have shape"),
        (SegmentsDisplay, "labelings", {}, "The series is empty"),
        (SegmentsDisplay, "labelings", {"b": ["z"]}, r"labelings\['b'\] has the label"),
        (TaggingDisplay, "taggings", [["a", "z"]], r"taggings\[0\] has the label 'z'"),
        (TaggingDisplay, "taggings", [["a"]], r"taggings\[0\] must have shape \(2,\)"),
        (TaggingDisplay, "tagging_proba", [0.4, 0.1], "tagging_proba must have shape"),
        (TaggingDisplay, "tokens", 3.0, "tokens must be None or a sequence"),
        (ConvergenceDisplay, "history", HISTORY | {"dual_gap": "x"}, r"history\['dual_g"),
        (ThresholdDisplay, "scores", {"F1": "x"}, r"scores\['F1'\] must hold numbers"),
        (ThresholdDisplay, "mixture_scores", {"Recall": "x"}, r"mixture_scores\['Reca"),
        (RegularizationPathDisplay, "end", "x", "end must hold numbers"),
        (FairnessReport, "by_group", BY_GROUP | {"n": [1]}, r"by_group\['n'\] must be"),
        (FairnessReport, "by_group", BY_GROUP | {"n": [1, "x"]}, r"by_group\['n'\] m"),
        (FairnessReport, "promises", {}, "promises has no column 'constraint'"),
    ],
)
def test_contents_of_another_form_are_refused_by_name(kind, name, value, words):
    with pytest.raises((ValueError, TypeError), match=f"^{words}"):
        kind(**CONTENTS[kind] | {name: value}).plot()
    assert plt.get_fignums() == []


@pytest.mark.parametrize("part", ["by_group", "promises"])
@pytest.mark.parametrize("read", [str, FairnessReport.to_frames])
def test_tables_of_a_report_are_refused_where_they_are_read(part, read):
    report = FairnessReport(**CONTENTS[FairnessReport])
    read(report)
    setattr(report, part, {"group": [1]})
    with pytest.raises(ValueError, match=f"^{part} has no column"):
        read(report)


@pytest.mark.parametrize("ax", ["x", 1.0, {}, np.ones(2), object], ids=repr)
@pytest.mark.parametrize("kind", CONTENTS)
def test_what_is_no_axes_is_refused(kind, ax):
    display = kind(**CONTENTS[kind])
    with pytest.raises(TypeError, match="^ax must be matplotlib Axes"):
        display.plot(ax)
    assert plt.get_fignums() == []


def test_no_axes_for_the_maps_of_weights_are_refused():
    with pytest.raises(ValueError, match="^ax holds no Axes"):
        ChainWeightsDisplay(**CONTENTS[ChainWeightsDisplay]).plot(ax=[])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AchievableSetDisplay, {"contour_kw": 3.0}),
        (AchievableSetDisplay, {"mark_kw": "x"}),
        (ConvergenceDisplay, {"y": "objective", "fill_between_kw": [1]}),
        (RegularizationPathDisplay, {"fill_between_kw": 1}),
    ],
)
def test_styles_that_are_no_dicts_are_refused(kind, options):
    with pytest.raises(TypeError, match="_kw must be a dict or None"):
        kind(**CONTENTS[kind]).plot(**options)
    assert plt.get_fignums() == []


def test_names_of_a_level_are_a_sequence():
    problem = make_problem("binary")
    model = ComplexMetricClassifier(constraints=DemographicParity())
    with pytest.raises(ValueError, match="^param_name must be a name or a sequence"):
        TradeoffDisplay.from_estimator(
            model, problem.X, problem.y, param_name=0.5, param_range=[0.1]
        )


def test_probabilities_of_predictions_are_numbers():
    with pytest.raises(ValueError, match="^y_proba must hold numbers"):
        AchievableSetDisplay.from_predictions([0, 1], [{}, {}])


def test_a_report_of_what_cannot_predict_is_refused():
    problem = make_problem("chain")
    model = CRFClassifier(max_iter=1).fit(problem.X, problem.y)
    model.predict = None
    with pytest.raises(TypeError, match="has no method predict"):
        fairness_report(model, problem.X, [0, 1], sensitive_features=[0, 1], pos_label=1)
