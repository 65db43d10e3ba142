"""
Active learning with warm starts
================================

Labels cost time, so a model should ask for the ones that teach it most. You will start
with 60 handwritten words, and add 25 in each of ten rounds: the words that the model
reads with the least margin. Each fit continues from the one before, and takes fewer
passes than a fit from nothing.
"""

# %%
# The data
# --------
# All letters occur somewhere, but perhaps not among the first words, so the classes are
# passed to the estimator.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters

X, y = load_ocr_letters(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
classes = np.unique(np.concatenate([*y, *y_test]))
first, per_round, n_rounds = 60, 25, 10

# %%
# Which words to ask for
# ----------------------
# The margin of a word is the difference between the scores of its two best readings.


def margins(model, words):
    _, scores = model.predict_k_best(words, 2)
    return np.array([best - second for best, second in scores])


def learn(by_margin):
    """Test errors and passes of each round, warm, and from nothing."""
    rng = np.random.default_rng(0)
    order = list(rng.permutation(len(X)))
    known, rest = order[:first], order[first:]
    model = BCFWClassifier(
        C=0.1,
        tol=0.01,
        solver_options={"classes": classes},
        warm_start=True,
        random_state=0,
    )
    errors, warm, cold = [], [], []
    for _ in range(n_rounds + 1):
        words, labels = [X[i] for i in known], [y[i] for i in known]
        model.fit(words, labels)
        warm.append(model.n_iter_)
        cold.append(clone(model).fit(words, labels).n_iter_)
        errors.append(1 - model.score(X_test, y_test))
        if by_margin:
            rest = [rest[i] for i in np.argsort(margins(model, [X[i] for i in rest]))]
        known, rest = known + rest[:per_round], rest[per_round:]
    return errors, warm, cold


results = {"least margin": learn(True), "at random": learn(False)}
for name, (errors, warm, cold) in results.items():
    print(
        f"{name}: letter error {errors[0]:.3f} -> {errors[-1]:.3f}; passes of ten "
        f"rounds {sum(warm[1:])}, from nothing {sum(cold[1:])}"
    )

# %%
# The words with the least margin lower the error faster. Warm starts save a part of the
# passes in each round: the old words keep their part of the solution, and only the new
# ones start at their true labels.

sizes = first + per_round * np.arange(n_rounds + 1)
fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
for name, (errors, _, _) in results.items():
    ax.plot(sizes, errors, marker=".", label=name)
ax.set(xlabel="Labeled words", ylabel="Letter error on test words")
ax.legend()
_, warm, cold = results["least margin"]
fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
ax.plot(sizes, cold, marker=".", color="0.6", label="from nothing")
ax.plot(sizes, warm, marker=".", color="C0", label="warm start")
ax.set(xlabel="Labeled words", ylabel="Passes to a gap of 0.01", ylim=(0, None))
ax.legend()
plt.show()
