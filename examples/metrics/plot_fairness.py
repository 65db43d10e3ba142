"""
Fairness: equal opportunity for two groups
==========================================

.. index:: ! fairness, ! equal opportunity

A constraint brings the difference between the recalls of two groups from 0.15 down to
0.05 on new examples, and the G-mean from 0.78 to 0.76. Creditworthy applicants should
get a loan equally often in both groups: that is *equal opportunity*. You will train
under such constraints with :class:`~sklearn_structsvm.ComplexMetricClassifier`, see
what they cost, and what happens when too much is asked.
"""

# %%
# The data have a score that is less informative for one group than for the other. This
# group is also smaller and has fewer positives.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import ShuffleSplit, train_test_split

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualOpportunity,
    Recall,
    demographic_parity_ratio,
    equal_opportunity_difference,
    g_mean_score,
)
from sklearn_structsvm.plotting import AchievableSetDisplay, TradeoffDisplay

rng = np.random.default_rng(0)
n = 20000
group = np.where(rng.random(n) < 0.7, "town", "country")
is_town = group == "town"
y = np.where(rng.random(n) < np.where(is_town, 0.35, 0.2), "repaid", "default")
signal = np.where(y == "repaid", 1.0, -1.0) * np.where(is_town, 0.9, 0.5)
X = np.column_stack(
    [signal + rng.normal(size=n), 0.5 * is_town + rng.normal(size=n), rng.normal(size=n)]
)
X_train, X_test, y_train, y_test, group_train, group_test = train_test_split(
    X, y, group, stratify=y, random_state=0
)

# %%
# With and without the constraint
# -------------------------------
# Pass the groups to ``fit`` and ``predict`` as ``sensitive_features``. In a pipeline or
# a grid search, scikit-learn's metadata routing passes them on.

models = {
    "no constraint": ComplexMetricClassifier(metric="g_mean"),
    "equal opportunity, 0.02": ComplexMetricClassifier(
        metric="g_mean", constraints=EqualOpportunity(slack=0.02, pos_label="repaid")
    ),
}
print("                          G-mean   difference of recalls")
predictions = {}
for name, model in models.items():
    # Without a constraint, groups are of no use.
    groups = (group_train, group_test) if model.constraints else (None, None)
    model.fit(X_train, y_train, sensitive_features=groups[0])
    y_pred = model.predict(X_test, sensitive_features=groups[1])
    difference = equal_opportunity_difference(
        y_test, y_pred, sensitive_features=group_test, pos_label="repaid"
    )
    print(f"{name:24}{g_mean_score(y_test, y_pred):8.3f}{difference:12.3f}")
    predictions[name] = y_pred

# %%
# In training the recalls of the two groups differ by no more than 0.02, for what the
# solver counts and the expected confusion matrix of the randomized classifier. The bound
# holds for every classifier that meets the constraint and decides by these class
# probabilities, group by group. On new examples the recalls may differ by more: those
# of the training examples are estimates, and the thresholds were chosen by them. With
# ``constraint_confidence=0.95`` the constraint holds for new examples, too.

model = models["equal opportunity, 0.02"]
print(f"violation in training: {model.constraint_violation_:.1e}")
print(f"G-mean in training: {1 - model.objective_:.4f}")
print(f"by these probabilities at most: {1 - model.dual_objective_:.4f}")

# %%
# The plot shows the recalls of both classes that can be achieved with a threshold for
# each group, and the part that satisfies the constraint. The dashed contour of the
# G-mean touches this part at one point, which is the solution.

AchievableSetDisplay.from_estimator(
    model, X_train, y_train, sensitive_features=group_train
)
plt.show()

# %%
# The cost of the constraint
# --------------------------
# Now we reduce the slack, on five splits. On the training examples every level is met.
# On held-out examples the recalls of the groups differ by a little more or less, by
# chance, because few of the rural applicants repaid. Without a constraint, the
# classifier does not use the groups. With one, it has a threshold for each group. So
# with a large slack it can be better than without a constraint.

TradeoffDisplay.from_estimator(
    model,
    X_train,
    y_train,
    sensitive_features=group_train,
    param_name="constraints__slack",
    param_range=[0.0, 0.01, 0.02, 0.05, 0.1, 0.15],
    cv=ShuffleSplit(5, test_size=0.3, random_state=0),
)
plt.show()

# %%
# Difference or ratio
# -------------------
# A difference of 0.05 is large between rates of 0.05 and 0.1, and small between rates
# near 1. The "four fifths" rule bounds a ratio instead: each group's rate of positive
# predictions must be at least 0.8 times that of the other. Here one rule for both groups
# meets either bound, so it is used.

parity = {
    "difference at most 0.1": {"slack": 0.1},
    "ratio at least 0.8": {"bound": "ratio", "ratio": 0.8},
}
print("demographic parity             G-mean   ratio")
for name, how in parity.items():
    constraint = DemographicParity(pos_label="repaid", **how)
    bounded = ComplexMetricClassifier(metric="g_mean", constraints=constraint)
    bounded.fit(X_train, y_train, sensitive_features=group_train)
    y_pred = bounded.predict(X_test, sensitive_features=group_test)
    ratio = demographic_parity_ratio(
        y_test, y_pred, sensitive_features=group_test, pos_label="repaid"
    )
    print(f"{name:28}{g_mean_score(y_test, y_pred):9.3f}{ratio:8.3f}")

# %%
# fairlearn's reports accept these predictions like any others.

try:
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import balanced_accuracy_score, recall_score
except ImportError:
    print("fairlearn is not installed: no MetricFrame.")
else:
    frame = MetricFrame(
        metrics={
            "recall": lambda t, p: recall_score(t, p, pos_label="repaid"),
            "selected": lambda t, p: selection_rate(t, p, pos_label="repaid"),
            "balanced accuracy": balanced_accuracy_score,
        },
        y_true=y_test,
        y_pred=predictions["equal opportunity, 0.02"],
        sensitive_features=group_test,
    )
    print(frame.by_group.round(3))
    print(frame.difference().round(3))

# %%
# Constraints that cannot be met
# ------------------------------
# Constraints can contradict each other, or ask for more than the class probabilities
# can distinguish. Then an error states the smallest violation that can be reached.

impossible = [
    Recall(pos_label=label, at_least=0.9) for label in ("repaid", "default")
]
try:
    ComplexMetricClassifier(constraints=impossible).fit(X_train, y_train)
except ValueError as error:
    print(textwrap.fill(str(error), 80))
