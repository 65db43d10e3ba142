"""
Steps, sampling and caching
===========================

Block-coordinate Frank-Wolfe trains on one example at a time. Three choices decide how
fast it converges: which *step* it takes on the example, how the next example is
*sampled*, and whether the labelings found before are *cached*. All of them reach the
same optimum. This example shows how the duality gap falls with each, on 209 handwritten
words.
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
        **choices,
    )
    return model.fit(X, y)


# %%
# Steps
# -----
# A plain Frank-Wolfe step mixes a new labeling into all those found before, which then
# fade but never vanish. A *pairwise* step moves weight from the worst of them to the new
# one, and an *away* step takes it from the worst alone, so both can drop what turned out
# wrong. At the start there is little to choose. To a small gap, they need fewer passes;
# the price is to keep the labelings in memory.

models = {step: fit(step=step, cache=False) for step in ("fw", "away", "pairwise")}
fig, ax = plt.subplots(layout="constrained")
for step, model in models.items():
    ConvergenceDisplay.from_estimator(model, x="n_iter", ax=ax, name=step)
ax.set_title("steps, with gap sampling")
plt.show()

# %%
# Sampling
# --------
# A word whose own gap is zero has nothing to give. With ``sampling="gap"``, the default,
# words are drawn in proportion to their share of the duality gap as last seen, instead
# of uniformly or each once a pass. The more the examples differ in difficulty, the more
# this helps.

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
# What to choose
# --------------
# ``sampling="gap"`` always. Plain steps without a cache for a quick fit to a moderate
# gap where the oracle is cheap; pairwise steps for a small gap; pairwise steps and a
# cache where the oracle is expensive, as that of a structure in Python. ``step="auto"``
# and ``cache="auto"``, the defaults, decide by timing a few calls.

model = BCFWClassifier(max_iter=1).fit(X, y)
print(f"auto, here: step={model.step_!r}, cache={model.cache_}")
