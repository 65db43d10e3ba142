"""
Imbalanced classes: the G-mean and the worst recall
===================================================

The most probable class finds 10% of the cases of the hardest class, balanced class
weights find 29%, and a classifier trained for the worst recall 45%. Scores such as the
geometric mean of the recalls belong to the whole confusion matrix. You will train for
two of them with :class:`~sklearn_structsvm.ComplexMetricClassifier`, which takes the
class probabilities of any classifier and learns how to decide by them, for any number
of classes.
"""

# %%
# The data are grades of a condition. They overlap, and the more severe grades are
# rarer. In addition there is a rare condition that is easy to recognize.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, recall_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import GMean, g_mean_score, min_recall_score
from sklearn_structsvm.plotting import AchievableSetDisplay, ConvergenceDisplay

names = np.array(["none", "mild", "moderate", "severe", "other"])
shares = [0.70, 0.15, 0.08, 0.05, 0.02]
centers = np.array([[0.0, 0.0], [1.2, 0.0], [2.0, 0.0], [2.8, 0.0], [0.0, 4.0]])
rng = np.random.default_rng(0)
labels = rng.choice(5, size=8000, p=shares)
X = centers[labels] + rng.normal(size=(8000, 2))
y = names[labels]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=y, train_size=0.5, random_state=0
)

# %%
# We compare four ways to decide: the most probable class; the most probable class after
# a fit with balanced class weights; and, with the probabilities of the first model, the
# best mixtures for two metrics.

models = {
    "most probable class": LogisticRegression(),
    "balanced class weights": LogisticRegression(class_weight="balanced"),
    "G-mean": ComplexMetricClassifier(LogisticRegression(), metric="g_mean"),
    "worst recall": ComplexMetricClassifier(LogisticRegression(), metric="min_recall"),
}
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
print("                        accuracy   G-mean   worst recall")
for shift, (name, model) in zip((-0.3, -0.1, 0.1, 0.3), models.items(), strict=True):
    predicted = model.fit(X_train, y_train).predict(X_test)
    accuracy = accuracy_score(y_test, predicted)
    g_mean, worst = g_mean_score(y_test, predicted), min_recall_score(y_test, predicted)
    print(f"{name:22}{accuracy:10.3f}{g_mean:9.3f}{worst:15.3f}")
    recalls = recall_score(y_test, predicted, average=None, labels=names)
    ax.bar(np.arange(len(names)) + shift, recalls, width=0.19, label=name)
ticks = [f"{name}\n{share:.0%}" for name, share in zip(names, shares, strict=True)]
ax.set_xticks(np.arange(len(names)), ticks)
ax.set(xlabel="class, and its share", ylabel="recall, on new examples")
ax.legend(loc="upper center")
plt.show()

# %%
# Balanced weights treat rare classes as if they were frequent, but do not consider
# which classes are hard. So "mild" and "moderate" have low recalls. Optimizing the
# metric takes care of this.
#
# What the certificate says
# -------------------------
# The classifier is a mixture: it picks one of a few rules, with the probabilities
# ``mixture_weights_``. Rule t predicts the class with the least expected cost under the
# cost matrix ``loss_matrices_[t]``. The fit ends with a certificate: if the class
# probabilities are correct, no way to use them improves the score of the mixture by
# more than ``dual_gap_``.

for name in ("G-mean", "worst recall"):
    model = models[name]
    score, bound = 1 - model.objective_, 1 - model.dual_objective_
    print(f"{name}: {score:.4f}, by these probabilities at most {bound:.4f}")
    print(f"  after {model.n_oracle_calls_} calls of the oracle;", end=" ")
    print(f"weights {model.mixture_weights_.round(3).tolist()}")

# %%
# The first plot shows which recalls of two classes can be achieved together, with the
# rules and their mixture. The second plot shows convergence. Each call of the oracle
# finds one more rule. The score of the best mixture so far and the upper bound approach
# each other.

fig, ax = plt.subplots(figsize=(5, 4.8), layout="constrained")
AchievableSetDisplay.from_estimator(
    models["worst recall"], X_train, y_train, entries=("mild", "moderate"), ax=ax
)
fig, ax = plt.subplots(figsize=(5, 4.8), layout="constrained")
for name in ("G-mean", "worst recall"):
    ConvergenceDisplay.from_estimator(models[name], x="n_oracle_calls", name=name, ax=ax)
plt.show()

# %%
# Predictions
# -----------
# ``predict`` selects the rule for each row by a hash of the row, so the prediction is
# deterministic: equal rows always get equal labels. ``predict_proba`` returns the
# probability that the mixture predicts each class. For the probability of the class
# itself, ask ``estimator_``.

model = models["worst recall"]
h, eta = model.predict_proba(X_test), model.estimator_.predict_proba(X_test)
row = h.max(axis=1).argmin()
print(model.classes_)
print(f"predicted with probability   {h[row].round(2)}")
print(f"probabilities of the classes {eta[row].round(2)}")
agreed = (h.max(axis=1) > 1 - 1e-9).mean()
print(f"{agreed:.0%} of the rows get the same label from all rules")

# %%
# Choosing the base classifier
# ----------------------------
# Each metric is also a scorer: pass ``GMean().scorer()`` as ``scoring=``. Here a grid
# search chooses the classifier that provides the probabilities. The mixture is found with
# probabilities from ``cv`` held-out folds, so models that overfit gain nothing by it.

search = GridSearchCV(
    ComplexMetricClassifier(metric="g_mean", cv=3),
    {"estimator": [LogisticRegression(), GaussianNB(), KNeighborsClassifier(50)]},
    scoring=GMean().scorer(),
    cv=3,
)
search.fit(X_train, y_train)
for candidate, score in zip(
    search.cv_results_["param_estimator"],
    search.cv_results_["mean_test_score"],
    strict=True,
):
    print(f"{str(candidate):36} {score:.3f}")
print(f"the best of them on new examples: {search.score(X_test, y_test):.3f}")
