"""
Calibrating an SVM for the G-mean
=================================

With calibrated probabilities the G-mean of a support vector machine rises from 0.52 to
0.66, and with a softmax of its scores only to 0.59, if
:class:`~sklearn_structsvm.ComplexMetricClassifier` decides by class probabilities as if
they were right. You will compare a softmax with scikit-learn's
``CalibratedClassifierCV``, and what each promises with what it delivers. By default the
classifier calibrates the probabilities itself, and the softmax does as well as the
others.
"""

# %%
# The data have four classes, two of them rare. The classifier is a support vector
# machine.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from sklearn_structsvm import (
    BCFWClassifier,
    ComplexMetricClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.metrics import GMean, g_mean_score
from sklearn_structsvm.plotting import AchievableSetDisplay

X, y = make_classification(
    n_samples=6000,
    n_features=20,
    n_informative=8,
    n_classes=4,
    n_clusters_per_class=1,
    weights=[0.7, 0.15, 0.1, 0.05],
    class_sep=0.8,
    flip_y=0.05,
    random_state=0,
)
y = np.array(["A", "B", "C", "D"])[y]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, train_size=0.5, random_state=0
)
svm = BCFWClassifier(C=0.01, tol=0.01, random_state=0)
predicted = svm.fit(X_train, y_train).predict(X_test)
print(f"accuracy {svm.score(X_test, y_test):.3f}")
print(f"G-mean   {g_mean_score(y_test, predicted):.3f}")

# %%
# Three kinds of probabilities
# ----------------------------
# The first idea is the softmax of the scores. This gives positive numbers that sum to
# 1, but they are not calibrated. The other two are fitted to held-out scores: a sigmoid
# for each class, or any monotone function.
#
# Each fit predicts its own score, ``1 - objective_``. With ``confusion="probabilities"``
# the probabilities are taken to be correct. If they are, this is within ``tol`` of the
# best possible score. New examples show whether they are. The last column is the score
# of the default, which corrects the probabilities by the labels.


class Softmax(ClassifierMixin, BaseEstimator):
    """The softmax of the scores of a classifier."""

    def __init__(self, classifier):
        self.classifier = classifier

    def fit(self, X, y):
        self.classifier_ = clone(self.classifier).fit(X, y)
        self.classes_ = self.classifier_.classes_
        return self

    def predict_proba(self, X):
        return softmax(self.classifier_.decision_function(X), axis=1)


sources = {
    "softmax": Softmax(svm),
    "sigmoid": CalibratedClassifierCV(svm, method="sigmoid"),
    "isotonic": CalibratedClassifierCV(svm, method="isotonic"),
    "isotonic, subLBFGS": CalibratedClassifierCV(
        SubLBFGSClassifier(C=0.01, tol=0.01), method="isotonic"
    ),
}
scorer = GMean().scorer(response="predict_proba")
models = {}
print("                      log loss   G-mean: believed   on new examples   by default")
for name, source in sources.items():
    model = ComplexMetricClassifier(
        source, metric="g_mean", confusion="probabilities", cv=None
    ).fit(X_train, y_train)
    loss = log_loss(y_test, model.estimator_.predict_proba(X_test))
    believed, found = 1 - model.objective_, scorer(model, X_test, y_test)
    default = ComplexMetricClassifier(source, metric="g_mean").fit(X_train, y_train)
    by_default = scorer(default, X_test, y_test)
    print(f"{name:20}{loss:10.3f}{believed:19.3f}{found:18.3f}{by_default:13.3f}")
    models[name] = model

# %%
# Predicted and actual recalls
# ----------------------------
# The probabilities predict the recalls of each rule, and so the set of recalls that can
# be achieved. The plots show this set for the largest and the smallest class on new
# examples, and the recalls that the same rules actually have on the labels. With
# correct probabilities the two outlines would coincide.

for name in ("softmax", "isotonic"):
    fig, ax = plt.subplots(figsize=(5.5, 6), layout="constrained")
    probabilities = models[name].estimator_.predict_proba(X_test)
    for confusion, told in (("probabilities", "believed"), ("labels", "on the labels")):
        AchievableSetDisplay.from_predictions(
            y_test,
            probabilities,
            confusion=confusion,
            entries=("A", "D"),
            name=told,
            ax=ax,
        )
    ax.set_title(name)
    ax.get_legend().remove()
    fig.legend(loc="outside lower center")
plt.show()

# %%
# Two classes
# -----------
# For two classes, each rule is a threshold, and the best thresholds are found with the
# labels of the training examples, smoothed a little. The order of the probabilities is
# what matters, and a sigmoid does not change it.

rare_train, rare_test = np.isin(y_train, ["C", "D"]), np.isin(y_test, ["C", "D"])
print("          G-mean: in training   on new examples")
for name, source in sources.items():
    if name == "softmax":  # its scores have a column for each of several classes
        continue
    model = ComplexMetricClassifier(source, metric="g_mean").fit(X_train, rare_train)
    found = scorer(model, X_test, rare_test)
    print(f"{name:20}{1 - model.objective_:11.3f}{found:18.3f}")
