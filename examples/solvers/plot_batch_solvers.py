"""
Batch solvers for linear SVMs: convergence
==========================================

The default of :class:`~sklearn_structsvm.SubLBFGSClassifier` closes the duality gap to
1e-4 in fewer iterations than any other batch solver here. If all losses can be listed,
solvers can work on all rows at once: each step costs about two products with the matrix
of features. You will compare quasi-Newton steps, bundle methods
(:class:`~sklearn_structsvm.BMRMClassifier`) and an accelerated gradient method for the
dual (:class:`~sklearn_structsvm.PragamClassifier`) on handwritten digits.
"""

# %%
# The data are handwritten digits. The regularization is weak, which is the hard case
# for these solvers.

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
# All fits aim at the same gap and have the same optimum. They differ in the time they
# take, and in how soon the certificate shows that they are done.

limits = {"C": C, "tol": 1e-4, "max_iter": 600}
models = {
    "SubLBFGS": SubLBFGSClassifier(**limits),
    "SubLBFGS (hybrid)": SubLBFGSClassifier(solver="hybrid", **limits),
    "SubLBFGS (quasi-Newton alone)": SubLBFGSClassifier(solver="sublbfgs", **limits),
    "BMRM with a line search": BMRMClassifier(**limits),
    "BMRM": BMRMClassifier(solver_options={"line_search": False}, **limits),
    "Pragam": PragamClassifier(**limits),
}
for model in models.values():
    model.fit(X, y)
lines = ["-", "--", ":", "-.", (0, (6, 2)), (0, (1, 3))]
for x, label in (("n_iter", "Iterations"), ("seconds", "Time (s)")):
    fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
    for line, (name, model) in zip(lines, models.items(), strict=True):
        style = {"linestyle": line, "marker": "", "linewidth": 2}
        ConvergenceDisplay.from_estimator(model, x=x, ax=ax, name=name, **style)
    ax.set_xlabel(label)
    ax.get_legend().remove()
    fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# With quasi-Newton steps alone, the gap falls more slowly than the objective: they
# improve the weights but hardly raise the lower bound. The bundle steps of the hybrid
# close the gap. The default starts with dual coordinate ascent, which gives a good
# lower bound at once, and switches when progress becomes slow.

for name, model in models.items():
    print(f"{name:30} objective {model.objective_:.5f}, gap {model.dual_gap_:.1e}")

# %%
# Sets of labels
# --------------
# The same estimators take a multilabel indicator matrix. Their hinge ranks every label
# that an example has above every label that it does not have. ``threshold_`` says where
# to cut the ranking. It is chosen to minimize the number of wrong labels in training.

X, Y = make_multilabel(n_samples=300, random_state=0)
model = SubLBFGSClassifier(C=1.0).fit(X, Y)
wrong = (model.predict(X) != Y).mean()
of_constant = ((Y.mean(axis=0) > 0.5) != Y).mean()
print(f"{wrong:.3f} of the labels are wrong; by a constant answer {of_constant:.3f}")
