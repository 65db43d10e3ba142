"""
Choosing C with a regularization path
=====================================

One path gives solutions for *all* values of C, each certified to be within ``eps`` of
the optimum, and cross-validation along it chooses C. You will follow a path with
:func:`~sklearn_structsvm.bcfw_path`, check its promise between the breakpoints, and
choose with :class:`~sklearn_structsvm.BCFWClassifierCV`, which does for C what
scikit-learn's ``LassoCV`` does for ``alpha``.
"""

# %%
# The whole path
# --------------
# λ and the ``C`` of :class:`~sklearn_structsvm.BCFWClassifier` express the same thing:
# :math:`\lambda = 1 / (C n)` for n examples. The path starts at a large λ where the
# solution is known in closed form, and ends at ``min_lambda``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold, train_test_split

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, bcfw_path
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.plotting import RegularizationPathDisplay
from sklearn_structsvm.structures import ChainStructure

X, y = make_chains(n_samples=200, class_sep=2.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=100, random_state=0)

path = bcfw_path(X_train, y_train, eps=0.1, min_lambda=1e-3, random_state=0)
print(f"{len(path.lambdas)} breakpoints from λ = {path.lambdas[0]:.3g}")
print(f"to {path.lambdas[-1]:.3g}, in {path.n_iter[-1]:.0f} passes over the data")

# %%
# At its own breakpoint, each solution is certified to 0.9 ``eps``. From there its gap
# grows as λ falls. When it reaches ``eps``, the next breakpoint begins. The larger λ,
# the smaller the weights and the cheaper each breakpoint.

fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
RegularizationPathDisplay.from_path(path, ax=ax)
ax.set_ylim(0, 1.5 * path.eps)
fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
RegularizationPathDisplay.from_path(path, kind="norm", ax=ax)
plt.show()

# %%
# Checking the guarantee
# ----------------------
# The path is guaranteed to be within ``eps`` of the optimum at any λ, not only at its
# breakpoints. ``path.coef(lam)`` gives the weights. Here we compare their objective
# with the lower bound of an accurate fit, at a few values of λ between the breakpoints.

structure = ChainStructure().fit(X_train, y_train)


def hinge(w, x, truth):
    found = structure.loss_augmented_decode(x, truth, w)
    difference = structure.joint_feature(x, found) - structure.joint_feature(x, truth)
    return structure.loss(truth, found) + w @ difference


def objective(w, lam):
    pairs = zip(X_train, y_train, strict=True)
    return lam / 2 * w @ w + np.mean([hinge(w, x, truth) for x, truth in pairs])


print("     λ   objective on the path   at most above the optimum")
for lam in (10.0, 1.0, 0.1, 0.03):
    accurate = BCFWClassifier(C=1 / (lam * len(X_train)), tol=1e-3, random_state=0).fit(
        X_train, y_train
    )
    value = objective(path.coef(lam), lam)
    print(f"{lam:6.2f} {value:15.4f} {value - accurate.dual_objective_:23.4f}")

# %%
# Choosing C
# ----------
# :class:`~sklearn_structsvm.BCFWClassifierCV` computes one path for each fold, scores
# all values in ``Cs`` on the test part of the fold, and refits with the best value on
# all data.

model = BCFWClassifierCV(
    Cs=np.geomspace(1e-3, 3, 25), cv=KFold(5), tol=0.01, random_state=0
)
model.fit(X_train, y_train)
print(f"C = {model.C_:.3g}, accuracy on the test data {model.score(X_test, y_test):.3f}")

display = RegularizationPathDisplay.from_estimator(
    model, score_name="Share of right labels"
)
display.ax_.set_ylim(bottom=0.65)
plt.show()

# %%
# Solutions within 0.1 of the optimum are cheap and rank the values of ``C`` well. The
# final fit at the chosen value has the accuracy ``tol``.

print(f"duality gap of the final fit: {model.dual_gap_:.4f}")
# sphinx_gallery_thumbnail_number = 3
