"""Draws "Which estimator?" as an SVG whose boxes are links, in the page's own colors."""

from pathlib import Path
from xml.sax.saxutils import escape

import sklearn_structsvm

FILE = Path(__file__).parent / "generated" / "which_estimator.svg"

# Questions down the left side; their answers, each a box that links to its page.
STEPS = [
    ("What is one output?", None, None),
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
        "or BCFWClassifier, BMRMClassifier",
    ),
    (
        "A sequence, a tree: and you want probabilities",
        "CRFClassifier",
        "conditional random fields",
    ),
    (
        "A sequence, tree, graph, image parts, or any output you can decode",
        "BCFWClassifier",
        "structural SVM, margin rescaling",
    ),
    (
        "The same, and near misses must cost less",
        "SlackRescaledSSVM",
        "slack rescaling, exact",
    ),
    (
        "You do not know C",
        "BCFWClassifierCV",
        "cross-validation along the whole path",
    ),
]
WIDTH, ROW, BOX = 900, 62, 44


def draw():
    """The SVG as text."""
    height = ROW * len(STEPS) + 10
    parts = [
        f'<svg class="which-estimator" viewBox="0 0 {WIDTH} {height}" '
        'xmlns="http://www.w3.org/2000/svg" role="img" '
        'aria-label="Which estimator: a question, and what answers it">'
    ]
    for i, (question, answer, says) in enumerate(STEPS):
        y = 6 + ROW * i
        width = 200 if answer is None else 440
        x = 0 if answer is None else 40
        parts.append(
            f'<rect class="question" x="{x + 1}" y="{y}" width="{width}" height="{BOX}" '
            f'rx="8"/><text x="{x + 14}" y="{y + 27}">{escape(question)}</text>'
        )
        if answer is None:
            continue
        middle = y + BOX // 2
        parts.append(
            f'<path class="arrow" d="M20 {6 + BOX} V{middle} H40"/>'
            f'<path class="arrow" d="M481 {middle} H{520} m-7 -4 l7 4 l-7 4"/>'
            f'<a href="{page(answer)}"><rect class="answer" x="521" y="{y}" width="370" '
            f'height="{BOX}" rx="8"/><text x="535" y="{y + 19}">{answer}</text></a>'
            f'<text class="says" x="535" y="{y + 36}">{escape(says)}</text>'
        )
    return "".join([*parts, "</svg>"])


def page(name):
    """Address of an estimator's page; AttributeError where there is no such estimator."""
    return f"generated/sklearn_structsvm.{getattr(sklearn_structsvm, name).__name__}.html"


def write(app):
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(draw(), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
