"""
A loan rule in one line for each group, with a promise
======================================================

.. index:: ! decision rule, threshold, fairness

Someone who is refused a loan may ask by which rule. A mixture of rules that is drawn by
chance is no good answer. You will find the best single rule, read it in words, see what
it costs compared with the best mixture, and make it keep a promise to each group: those
who would repay get a loan in at least six of ten cases, with confidence 0.95.
"""

# %%
# A probability for each applicant
# --------------------------------
# The data are of two groups. The score says less about applicants from the country. A
# classifier is fitted to one part of the data, the rule to another one.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import Precision, Recall

rng = np.random.default_rng(0)
n = 24000
group = np.where(rng.random(n) < 0.7, "town", "country")
is_town = group == "town"
y = np.where(rng.random(n) < np.where(is_town, 0.45, 0.35), "repaid", "default")
signal = np.where(y == "repaid", 1.0, -1.0) * np.where(is_town, 0.9, 0.6)
X = np.column_stack([signal + rng.normal(size=n), is_town, rng.normal(size=n)])
fit, rule, test = np.split(np.arange(n), [8000, 16000])
probability = FrozenEstimator(LogisticRegression().fit(X[fit], y[fit]))

# %%
# The rule
# --------
# The loans given should be repaid as often as possible, and of those who would repay, at
# least 60 percent should get one, in each group.

options = {
    "metric": Precision(pos_label="repaid"),
    "constraints": Recall(pos_label="repaid", at_least=0.6, per_group=True),
    "confusion": "labels",
}
mixture = ComplexMetricClassifier(probability, **options)
mixture.fit(X[rule], y[rule], sensitive_features=group[rule])
single = ComplexMetricClassifier(probability, **options, randomized=False)
single.fit(X[rule], y[rule], sensitive_features=group[rule])
print(single.rule_)
print(f"precision of the best mixture, {len(mixture.mixture_weights_)} rules:", end=" ")
print(f"{1 - mixture.objective_:.4f}")
print(f"precision of the single rule: {1 - single.objective_:.4f}")
print(f"no rule and no mixture has more than {1 - single.dual_objective_:.4f}")

# %%
# The same as a table, for ``pandas.DataFrame`` or a report:

for name, column in single.rule_.columns.items():
    print(f"{name:10} {column}")

# %%
# The promise
# -----------
# The constraint holds for the applicants that the rule was chosen by. For new ones it may
# be missed by a little. ``constraint_confidence`` asks for as much more as it takes for
# the promise to hold for new applicants of each group.

promised = ComplexMetricClassifier(
    probability,
    **options,
    randomized=False,
    constraint_confidence=0.95,
    solver_options={"constraint_calibration": "uniform"},
)
promised.fit(X[rule], y[rule], sensitive_features=group[rule])
print(promised.rule_)
print("                     recall in town   in the country   precision")
recalls = {}
for name, model in {"single rule": single, "with a promise": promised}.items():
    guess = model.predict(X[test], sensitive_features=group[test])
    recalls[name] = [
        recall_score(
            y[test][group[test] == one], guess[group[test] == one], pos_label="repaid"
        )
        for one in ("town", "country")
    ]
    precision = precision_score(y[test], guess, pos_label="repaid")
    print(f"{name:17}{recalls[name][0]:18.3f}{recalls[name][1]:17.3f}{precision:12.3f}")

# %%
# The thresholds
# --------------
# Each group has its own threshold. The promise lowers both, the one of the smaller group
# by more.

p = single.estimator_.predict_proba(X[test])[:, 1]
for one in ("town", "country"):
    fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
    rows = (group[test] == one) & (y[test] == "repaid")
    cuts = np.sort(p[rows])
    ax.plot(cuts, 1 - np.arange(len(cuts)) / len(cuts), color="C0")
    for name, model, style in (
        ("single rule", single, "--"),
        ("with a promise", promised, "-"),
    ):
        ax.axvline(model.thresholds_[one], color="0.3", linestyle=style, label=name)
    ax.axhline(0.6, color="C3", linewidth=1)
    ax.set(
        title=one,
        xlabel="threshold of the probability of repayment",
        ylabel="recall on new applicants",
    )
    ax.legend()
plt.show()
