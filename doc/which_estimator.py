"""Writes "Which estimator?" as a list of outputs, each beside a link to its estimator."""

from pathlib import Path
from xml.sax.saxutils import escape

import sklearn_structsvm

FILE = Path(__file__).parent / "generated" / "which_estimator.html"

# What one output is, the estimator for it, and a few words about that.
STEPS = [
    (
        "One label per row, scored by something other than accuracy",
        "ComplexMetricClassifier",
        "G-mean, F1, fairness, coverage",
    ),
    (
        "Several labels per row: best macro-F1, or exactly k labels",
        "MultilabelMetricClassifier",
        "thresholds, or the best labels of a row",
    ),
    (
        "One label, by a linear classifier",
        "SubLBFGSClassifier",
        "or BCFWClassifier, BMRMClassifier, PragamClassifier",
    ),
    (
        "A sequence or a tree, and you want probabilities",
        "CRFClassifier",
        "conditional random fields",
    ),
    (
        "A sequence, tree, graph, image parts, or any output you can decode",
        "BCFWClassifier",
        "structural SVM, margin rescaling",
    ),
    (
        "The same, and you have a classifier of its rows",
        "StackedStructureClassifier",
        "a structure over its out-of-fold scores",
    ),
    (
        "The same, but near misses must cost less",
        "SlackRescaledSSVM",
        "slack rescaling",
    ),
    (
        "Any of these, as sets that contain the truth",
        "ConformalClassifier",
        "as often as you ask",
    ),
    (
        "You do not know C",
        "BCFWClassifierCV",
        "or CRFClassifierCV: cross-validation along the whole path",
    ),
]


def draw():
    """The list as HTML."""
    lines = ['<dl class="which-estimator">']
    for output, name, says in STEPS:
        lines += [
            f"<dt>{escape(output)}</dt>",
            f'<dd><a href="{page(name)}">{name}</a> <span>{escape(says)}</span></dd>',
        ]
    return "\n".join([*lines, "</dl>"])


def page(name):
    """Address of an estimator's page; AttributeError where there is no such estimator."""
    return f"generated/sklearn_structsvm.{getattr(sklearn_structsvm, name).__name__}.html"


def write(app):
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(draw(), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
