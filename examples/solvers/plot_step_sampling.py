"""
Block-coordinate Frank-Wolfe: steps, sampling, cache
====================================================

Corrective steps reach a gap of 1e-6, and accelerated ones take a sixth fewer oracle calls
for it; the other steps are still at 2e-2 to 7e-4 when they end.
Four choices decide how fast block-coordinate Frank-Wolfe converges: the *step* on an
example, how the next example is *sampled*, whether labelings are *cached*, and whether
passes are *accelerated*. You will see the duality gap fall with each, on 209
handwritten words. All of them reach the same optimum, and the defaults choose for you.
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
print(f"{len(X)} words")

# The fits are cut at 300 passes on purpose, and say so.
warnings.filterwarnings("ignore", category=ConvergenceWarning)


def fit(step, **options):
    lam = 0.05
    usual = {"sampling": "gap", "acceleration": False, "gap_check_interval": 20}
    model = BCFWClassifier(
        C=1 / (lam * len(X)),
        step=step,
        tol=1e-6,
        max_iter=300,
        random_state=0,
        solver_options=usual | options,
    )
    return model.fit(X, y)


# %%
# Steps
# -----
# A plain Frank-Wolfe step mixes the new labeling into all previous ones, whose weights
# shrink but never vanish. A *pairwise* step moves weight from the worst of them to the
# new one. An *away* step takes weight from the worst one only. So both can drop bad
# labelings. A *corrective* step optimizes the weights of all stored labelings almost
# exactly, and makes passes over them before the oracle is called again. To reach a
# small gap, all three need fewer passes. The price is that the labelings have to be
# stored.

STEPS = {"fw": "o", "away": "^", "pairwise": "s", "corrective": "D"}  # and markers
models = {step: fit(step=step, cache=False) for step in STEPS}
fig, ax = plt.subplots(layout="constrained")
for step, model in models.items():
    style = {"marker": STEPS[step], "markersize": 4}
    ConvergenceDisplay.from_estimator(model, x="n_iter", ax=ax, name=step, **style)
ax.set_title("steps, with gap sampling")
plt.show()

# %%
# Sampling
# --------
# A word whose own gap is zero cannot improve the objective. With the option
# ``sampling="gap"``, words are drawn in proportion to their last known share of the
# duality gap, instead of uniformly or once per pass. This helps most if the examples
# differ a lot in difficulty.

samplings = {
    sampling: fit(step="pairwise", cache=False, sampling=sampling)
    for sampling in ("uniform", "permuted")
} | {"gap": models["pairwise"]}
fig, ax = plt.subplots(layout="constrained")
for marker, (sampling, model) in zip("o^s", samplings.items(), strict=True):
    style = {"marker": marker, "markersize": 4}
    ConvergenceDisplay.from_estimator(model, x="n_iter", ax=ax, name=sampling, **style)
ax.set_title("sampling, with pairwise steps")
plt.show()

# %%
# Caching
# -------
# With the option ``cache=True`` a stored labeling is reused if it promises enough
# progress. The max-oracle (here the Viterbi algorithm) is called only if none does. This
# saves many oracle calls. It saves time only if a call is expensive, and here it takes
# microseconds.

models["pairwise, cache"] = fit(step="pairwise", cache=True)
for x in ("n_oracle_calls", "seconds"):
    fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
    for marker, name in zip("osv", ("fw", "pairwise", "pairwise, cache"), strict=True):
        style = {"marker": marker, "markersize": 4}
        ConvergenceDisplay.from_estimator(models[name], x=x, ax=ax, name=name, **style)
plt.show()

# %%
# Acceleration
# ------------
# Accelerated passes solve an easier problem, in which the weights are pulled toward a
# moving center (see :ref:`guide-acceleration`). They use each word once per pass,
# because a new center changes all gaps. With corrective steps this is the default.

accelerated = {"sampling": "permuted", "acceleration": True}
models["pairwise, accelerated"] = fit(step="pairwise", **accelerated)
models["corrective, accelerated"] = fit(step="corrective", **accelerated)
for x in ("n_oracle_calls", "seconds"):
    fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
    for name in ("pairwise", "corrective"):
        for suffix, line in (("", "--"), (", accelerated", "-")):
            style = {"linestyle": line, "marker": STEPS[name], "markersize": 4}
            ConvergenceDisplay.from_estimator(
                models[name + suffix], x=x, ax=ax, name=name + suffix, **style
            )
plt.show()

# %%
# What to choose
# --------------
# Keep the defaults. They estimate the cost of the max-oracle from the sizes of the
# problem, and switch to acceleration if many passes are expected.

for name, model in models.items():
    calls = model.history_["n_oracle_calls"][-1]
    print(f"{name:24}gap {model.dual_gap_:.0e} after {calls:6} oracle calls")
model = BCFWClassifier(max_iter=1).fit(X, y)
print(f"auto, here: step={model.step_!r}, cache={model.cache_}")
