"""
Batch solvers compared
======================

For one label per row, or a set of labels, all losses can be listed, and solvers can work
on all rows at once: each step costs about two products with the matrix of features. This
example shows how three of them close the duality gap on handwritten digits, of 64 pixels
each, in ten classes: quasi-Newton steps that hand over to bundle steps
(:class:`~sklearn_structsvm.SubLBFGSClassifier`, with a start in the dual and without),
bundle methods with a line search and without
(:class:`~sklearn_structsvm.BMRMClassifier`), and an accelerated gradient method for the
dual (:class:`~sklearn_structsvm.PragamClassifier`).
"""

# %%
# The data: digits, with little regularization, which is what is hard for such solvers.

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BMRMClassifier, PragamClassifier, SubLBFGSClassifier
from sklearn_structsvm.datasets import make_multilabel
from sklearn_structsvm.plotting import ConvergenceDisplay

X, y = load_digits(return_X_y=True)
X /= 16.0
C = 1.0

# The slower fits are cut on purpose, and say so.
warnings.filterwarnings("ignore", category=ConvergenceWarning)

# %%
# Each fit is asked for the same gap. All reach the same objective, or would: what differs
# is the time, and how soon the certificate says so.

limits = {"C": C, "tol": 1e-4, "max_iter": 600}
models = {
    "SubLBFGS": SubLBFGSClassifier(**limits),
    "SubLBFGS (hybrid)": SubLBFGSClassifier(solver="hybrid", **limits),
    "SubLBFGS (quasi-Newton alone)": SubLBFGSClassifier(solver="sublbfgs", **limits),
    "BMRM with a line search": BMRMClassifier(**limits),
    "BMRM": BMRMClassifier(line_search=False, **limits),
    "Pragam": PragamClassifier(**limits),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for name, model in models.items():
    model.fit(X, y)
    for ax, x in zip(axes, ("n_iter", "seconds"), strict=True):
        ConvergenceDisplay.from_estimator(model, x=x, ax=ax, name=name)
axes[0].set_xlabel("Iterations")
axes[1].get_legend().remove()
plt.show()

# %%
# The gap of the quasi-Newton steps alone stays behind their objective: they know where
# they are, and not that there is nothing below. The bundle steps of the hybrid close it.
# The default first makes passes of coordinate ascent in the dual, which bound the optimum
# at once, and leaves them where they become slow.

for name, model in models.items():
    print(f"{name:30} objective {model.objective_:.5f}, gap {model.dual_gap_:.1e}")

# %%
# Sets of labels
# --------------
# The same estimators take an indicator matrix of labels. Their hinge ranks every label
# that an example has above every one that it has not, and ``threshold_``, chosen for the
# fewest wrong labels in training, says where to cut the ranking.

X, Y = make_multilabel(n_samples=300, random_state=0)
model = SubLBFGSClassifier(C=1.0).fit(X, Y)
wrong = (model.predict(X) != Y).mean()
of_constant = ((Y.mean(axis=0) > 0.5) != Y).mean()
print(f"{wrong:.3f} of the labels are wrong; by a constant answer {of_constant:.3f}")
