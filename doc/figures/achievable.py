"""Recalls that can be had together, contours of a metric, and a solver's way."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.plotting import AchievableSetDisplay

X, y = make_classification(
    n_samples=2000, weights=[0.9], class_sep=0.4, flip_y=0.15, random_state=0
)
model = ComplexMetricClassifier(
    LogisticRegression(),
    metric="q_mean",
    solver_options={"solver": "frank_wolfe", "step": "paper"},
    tol=0.002,
    cv=None,
    confusion="labels",
).fit(X, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 4.5), layout="constrained")
display = AchievableSetDisplay.from_estimator(model, X, y, ax=left)
display.plot(ax=right)
handles, labels = right.get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=3)
for ax in (left, right):
    ax.get_legend().remove()
    ax.set_aspect("equal")

# The square around the solver's way, a little larger.
x, y = display.path_.get_data()
side = 1.35 * max(x.max() - x.min(), y.max() - y.min())
corner = [(values.max() + values.min() - side) / 2 for values in (x, y)]
left.add_patch(plt.Rectangle(corner, side, side, facecolor="none", edgecolor="k"))
right.set(
    xlim=(corner[0], corner[0] + side), ylim=(corner[1], corner[1] + side), ylabel=""
)
left.set_title("all classifiers, and the score's contours", fontsize="medium")
right.set_title("the square, and the solver's steps", fontsize="medium")
