"""Labels, tokens, features and groups of the data are shown as they are."""

import io
from html import escape
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import BCFWClassifier, ComplexMetricClassifier
from sklearn_structsvm.metrics import DemographicParity, FBeta, Recall
from sklearn_structsvm.plotting import (
    AchievableSetDisplay,
    ChainWeightsDisplay,
    SegmentsDisplay,
    TaggingDisplay,
    ThresholdDisplay,
)

# No formulas, although the first two look like some that are wrong, and no markup.
LABELS = ["a$^$b", "$x_{$", "<b>&\"'", "$x^2$"]


def chain_weights(label, other):
    return ChainWeightsDisplay(
        labels=[label, other],
        transition=np.eye(2),
        emission=np.eye(2),
        feature_names=[f"{label}=1", other],
    ).plot()


def tagging(label, other):
    return TaggingDisplay(
        labels=[label, other],
        proba=np.full((2, 2), 0.5),
        taggings=[[label, other]],
        tagging_proba=[0.25],
        tokens=[other, label],
    ).plot()


def segments(label, other):
    labelings = {"true": [label, other]}
    return SegmentsDisplay(labels=[label, other], labelings=labelings).plot()


def threshold(label, other):
    rng = new_rng(0)
    y = np.array([label, other] * 10, dtype=object)
    metric = FBeta(pos_label=label)
    return ThresholdDisplay.from_predictions(y, rng.random(20), metric=metric)


def achievable_set(label, other):
    rng = new_rng(1)
    y, groups = np.array([[label, other], [other, label]])[:, np.arange(40) % 2]
    X = (y == label)[:, None] + rng.standard_normal((40, 2))
    groups = groups[rng.permutation(40)]
    model = ComplexMetricClassifier(constraints=DemographicParity(slack=0.2))
    model.fit(X, y, sensitive_features=groups)
    return AchievableSetDisplay.from_estimator(
        model, X, y, sensitive_features=groups, group=label
    )


@pytest.mark.parametrize(
    ("draw", "label"),
    [*product([chain_weights, segments, tagging, threshold], LABELS)]
    + [(achievable_set, label) for label in LABELS[1:3]],
)
def test_labels_are_drawn_as_they_are(draw, label):
    with plt.rc_context({"svg.fonttype": "none"}):
        display = draw(label, "other")
        file = io.StringIO()
        display.figure_.savefig(file, format="svg")
    # Escaped, or this would not be XML; and not set as a formula, in several parts.
    tree = ElementTree.fromstring(file.getvalue())
    texts = ["".join(node.itertext()) for node in tree.findall(".//{*}text")]
    assert any(label in text or repr(label) in text for text in texts), texts


def test_the_names_of_a_legend_may_be_formulas():
    rng = new_rng(2)
    display = ThresholdDisplay.from_predictions(
        np.arange(20) % 2, rng.random(20), label=r"$\\alpha$"
    )
    (text,) = {text.get_parse_math() for text in display.ax_.get_legend().get_texts()}
    assert text


class Texts(HTMLParser):
    """The texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.texts = []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("label", LABELS)
def test_labels_are_escaped_in_notebooks(label):
    X, y = np.array([[0.0], [1.0]] * 10), np.array(["other", label] * 10, dtype=object)
    recall = Recall(label=label, at_least=0.1)
    models = [
        BCFWClassifier(
            solver_options={"classes": ["other", label]}, class_weight={label: 2.0}
        ),
        ComplexMetricClassifier(metric=FBeta(pos_label=label), constraints=recall),
        recall,
    ]
    for model in models:
        if hasattr(model, "fit"):
            model.fit(X, y)
        page = model._repr_html_()
        assert label not in page or label == escape(label)
        texts = Texts(page).texts
        assert any(repr(label) in text for text in texts), texts
