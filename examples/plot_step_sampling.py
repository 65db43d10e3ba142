"""
Steps, sampling, caching and acceleration
=========================================

Block-coordinate Frank-Wolfe trains on one example at a time. Four choices decide how
fast it converges: which *step* it takes on the example, how the next example is
*sampled*, whether the labelings found before are *cached*, and whether the passes are
*accelerated*. All of them reach the same optimum. This example shows how the duality gap
falls with each, on 209 handwritten words.
"""

# %%
# There is one fit for each choice, all of 300 passes. A pass is as many steps as there
# are words.

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.plotting import ConvergenceDisplay

X, y = load_ocr_letters(return_X_y=True)
X, y = X[::3], y[::3]

# The fits are cut at 300 passes on purpose, and say so.
warnings.filterwarnings("ignore", category=ConvergenceWarning)


def fit(**choices):
    lam = 0.05
    model = BCFWClassifier(
        C=1 / (lam * len(X)),
        tol=1e-6,
        max_iter=300,
        gap_check_interval=20,
        random_state=0,
        **{"sampling": "gap", "acceleration": False} | choices,
    )
    return model.fit(X, y)


# %%
# Steps
# -----
# A plain Frank-Wolfe step mixes the new labeling into all previous ones, whose weights
# shrink but never vanish. A *pairwise* step moves weight from the worst of them to the
# new one. An *away* step takes weight from the worst one only. So both can drop bad
# labelings. A *corrective* step optimises the weights of all stored labelings almost
# exactly, and makes two passes over them before the oracle is called again. To reach a
# small gap, all three need fewer passes. The price is that the labelings have to be
# stored.

STEPS = ("fw", "away", "pairwise", "corrective")
models = {step: fit(step=step, cache=False) for step in STEPS}
fig, ax = plt.subplots(layout="constrained")
for step, model in models.items():
    ConvergenceDisplay.from_estimator(model, x="n_iter", ax=ax, name=step)
ax.set_title("steps, with gap sampling")
plt.show()

# %%
# Sampling
# --------
# A word whose own gap is zero cannot improve the objective. With ``sampling="gap"``
# words are drawn in proportion to their last known share of the duality gap, instead of
# uniformly or once per pass. This helps most if the examples differ a lot in
# difficulty.

samplings = {
    sampling: fit(step="pairwise", cache=False, sampling=sampling)
    for sampling in ("uniform", "permuted")
} | {"gap": models["pairwise"]}
fig, ax = plt.subplots(layout="constrained")
for sampling, model in samplings.items():
    ConvergenceDisplay.from_estimator(model, x="n_iter", ax=ax, name=sampling)
ax.set_title("sampling, with pairwise steps")
plt.show()

# %%
# Caching
# -------
# With ``cache=True`` a stored labeling is reused if it promises enough progress. The
# max-oracle (here the Viterbi algorithm) is called only if none does. This saves many
# oracle calls. It saves time only if a call is expensive, and here it takes
# microseconds.

models["pairwise, cache"] = fit(step="pairwise", cache=True)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, x in zip(axes, ("n_oracle_calls", "seconds"), strict=True):
    for name in ("fw", "pairwise", "pairwise, cache"):
        ConvergenceDisplay.from_estimator(models[name], x=x, ax=ax, name=name)
plt.show()

# %%
# Acceleration
# ------------
# Accelerated passes solve an easier problem, in which the weights are pulled towards a
# moving centre (see :ref:`guide-acceleration`). They use each word once per pass,
# because a new centre changes all gaps. With corrective steps this is the default.

accelerated = {"sampling": "permuted", "acceleration": True}
models["pairwise, accelerated"] = fit(step="pairwise", **accelerated)
models["corrective, accelerated"] = fit(step="corrective", **accelerated)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, x in zip(axes, ("n_oracle_calls", "seconds"), strict=True):
    for name in models:
        if name.startswith(("pairwise", "corrective")) and "cache" not in name:
            ConvergenceDisplay.from_estimator(models[name], x=x, ax=ax, name=name)
plt.show()

# %%
# What to choose
# --------------
# Keep the defaults. They estimate the cost of the max-oracle from the sizes of the
# problem, and switch to acceleration if many passes are expected.

model = BCFWClassifier(max_iter=1).fit(X, y)
print(f"auto, here: step={model.step_!r}, cache={model.cache_}")
