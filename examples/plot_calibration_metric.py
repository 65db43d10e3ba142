"""
Probabilities that mean what they say
=====================================

:class:`~sklearn_structsvm.ComplexMetricClassifier` decides by class probabilities: which
costs are best, and what score can be reached, is computed as if they were right. Scores
of support vector machines are no probabilities. scikit-learn's ``CalibratedClassifierCV``
makes some of them, and this example shows what that is worth.
"""

# %%
# Four classes, two of them rare, and a support vector machine.

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
# What comes to mind first is the softmax of the scores: positive numbers that sum to 1,
# and that is all that can be said for them. The others are fitted to held-out scores: for
# each class a sigmoid, or any monotone function. A fit believes in a score, its
# ``1 - objective_``, and is certified to be at most ``tol`` from the best there is if the
# belief is right. New examples tell whether it was.


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
print("                      log loss   G-mean: believed   on new examples")
for name, source in sources.items():
    model = ComplexMetricClassifier(source, metric="g_mean").fit(X_train, y_train)
    loss = log_loss(y_test, model.estimator_.predict_proba(X_test))
    believed, found = 1 - model.objective_, scorer(model, X_test, y_test)
    print(f"{name:20}{loss:10.3f}{believed:19.3f}{found:18.3f}")
    models[name] = model

# %%
# Beliefs and facts
# -----------------
# The probabilities say what recalls each rule will have, and so which can be achieved:
# here those of the largest and of the smallest class, on new examples. The other outline
# is that of the recalls which such rules do have on the labels. Were the probabilities
# right, the two would be one.

fig, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, name in zip(axes, ("softmax", "isotonic"), strict=True):
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
plt.show()

# %%
# Two classes
# -----------
# Of two classes, each rule is a threshold, and the best ones are found on the labels of
# the training examples, not by belief. All that counts is in which order the
# probabilities put the examples, and a sigmoid leaves that as it is.

rare_train, rare_test = np.isin(y_train, ["C", "D"]), np.isin(y_test, ["C", "D"])
print("          G-mean: in training   on new examples")
for name, source in sources.items():
    if name == "softmax":  # its scores have a column for each of several classes
        continue
    model = ComplexMetricClassifier(source, metric="g_mean").fit(X_train, rare_train)
    found = scorer(model, X_test, rare_test)
    print(f"{name:20}{1 - model.objective_:11.3f}{found:18.3f}")
