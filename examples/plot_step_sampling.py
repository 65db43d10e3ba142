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
# One fit for each choice, all of 300 passes. A pass is as many steps as there are words.

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
# A plain Frank-Wolfe step mixes a new labeling into all those found before, which then
# fade but never vanish. A *pairwise* step moves weight from the worst of them to the new
# one, and an *away* step takes it from the worst alone, so both can drop what turned out
# wrong. A *corrective* step makes the weights nearly the best there are for the labelings
# found so far, and goes over these twice before the oracle is asked again. To a small gap
# all three need fewer passes; the price is to keep the labelings in memory.

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
# A word whose own gap is zero has nothing to give. With ``sampling="gap"`` words are
# drawn in proportion to their share of the duality gap as last seen, instead of uniformly
# or each once a pass. The more the examples differ in difficulty, the more this helps.

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
# With ``cache=True`` a labeling found before is used again where it still promises
# enough progress, and the max-oracle (here the Viterbi algorithm) is called only where
# none does. Counted in calls of the oracle, this is a large gain. Counted in seconds it
# is one only where a call is expensive, and here it takes microseconds.

models["pairwise, cache"] = fit(step="pairwise", cache=True)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, x in zip(axes, ("n_oracle_calls", "seconds"), strict=True):
    for name in ("fw", "pairwise", "pairwise, cache"):
        ConvergenceDisplay.from_estimator(models[name], x=x, ax=ax, name=name)
plt.show()

# %%
# Acceleration
# ------------
# Accelerated passes are made on an easier problem, whose weights are drawn to a centre
# that moves ahead of them (see :ref:`guide-acceleration`). They take each word once a
# pass, as a new centre changes all of them. With corrective steps this is the default.

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
# The defaults: they count what a call of the max-oracle costs, from the sizes of the
# problem, and accelerate where many passes are foreseen.

model = BCFWClassifier(max_iter=1).fit(X, y)
print(f"auto, here: step={model.step_!r}, cache={model.cache_}")
