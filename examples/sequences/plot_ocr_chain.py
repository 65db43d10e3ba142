"""
Handwriting recognition with a chain (OCR)
==========================================

Reading whole words instead of one letter at a time lowers the letter error from 30% to
21%. A chain learns which letters follow each other, so its neighbors often give away a
letter that is hard to read. You will train one on the 626 handwritten words that ship
with the package, compare it with an unstructured classifier, and see what the fit says
about itself: the duality gap, a bound on how much better any other weights could be.
"""

# %%
# The data
# --------
# A word is an array with one row per letter, of 16 by 8 black or white pixels. Its
# labels are an array of characters. The data leave out the first letter of each word, a
# capital. There are 55 different words, so most test words were seen in training, in
# other people's handwriting.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.plotting import ConvergenceDisplay

X, y = load_ocr_letters(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
n_different = len({"".join(word) for word in y})
print(f"{len(X)} words, {n_different} different ones")
print(f"{len(X_train)} words to train on, {len(X_test)} to test on")
print(f"the first: {X_train[0].shape}, {''.join(y_train[0])!r}")

# %%
# One letter at a time
# --------------------
# The unstructured classifier gets all letters in one array, without the words.
# Cross-validation was used beforehand to choose ``C``, here and for the chain below.

letters = LinearSVC(C=0.1, random_state=0)
letters.fit(np.concatenate(X_train), np.concatenate(y_train))
letter_accuracy = letters.score(np.concatenate(X_test), np.concatenate(y_test))
print(f"letter error, one letter at a time: {1 - letter_accuracy:.3f}")

# %%
# Whole words
# -----------
# With one array per example in ``X``, the classifier trains a chain. In addition to the
# weights of the pixels it has one weight for each pair of adjacent letters. ``score``
# is the share of correct letters.
#
# ``tol=0.01`` says how close to the optimum the fit has to be. It is in units of the
# loss, here the share of wrong letters per word.

words = BCFWClassifier(C=0.02, tol=0.01, random_state=0)
words.fit(X_train, y_train)
print(f"letter error, whole words: {1 - words.score(X_test, y_test):.3f}")

# %%
# The figure shows four test words that only the chain reads correctly, with the output
# of each model below. Mistakes are red.

word_predictions = words.predict(X_test)
letter_predictions = [letters.predict(word) for word in X_test]

helped = [
    i
    for i, truth in enumerate(y_test)
    if (word_predictions[i] == truth).all() and (letter_predictions[i] != truth).any()
]
helped = sorted(helped, key=lambda i: -len(y_test[i]))[:4]
fig, axes = plt.subplots(4, figsize=(7, 5.5), layout="constrained")
for ax, i in zip(axes, helped, strict=True):
    images = X_test[i].reshape(-1, 16, 8)
    ax.imshow(np.hstack(list(images)), cmap="gray_r", aspect="equal")
    for t, (by_letter, by_word) in enumerate(
        zip(letter_predictions[i], word_predictions[i], strict=True)
    ):
        wrong = by_letter != y_test[i][t]
        style = {"color": "C3", "weight": "bold"} if wrong else {"color": "0.4"}
        ax.text(8 * t + 3.5, 18.5, by_letter, ha="center", va="center", **style)
        ax.text(8 * t + 3.5, 22.5, by_word, ha="center", va="center", color="C0")
    ax.text(-2, 18.5, "one letter at a time", ha="right", va="center", color="0.4")
    ax.text(-2, 22.5, "whole words", ha="right", va="center", color="C0")
    ax.set_xlim(0, 8 * len(y_test[helped[0]]))
    ax.set_axis_off()
plt.show()

# %%
# How far from optimal?
# ---------------------
# Every ten passes the fit computes its true duality gap. The gap is an upper bound on
# what could still be gained in the objective. So the optimum lies in the shaded band of
# the second plot.

print(f"objective {words.objective_:.4f}, at most {words.dual_gap_:.4f} above optimal")
print(f"{words.n_iter_} passes, step={words.step_!r}, cache={words.cache_}")

fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
ConvergenceDisplay.from_estimator(words, x="n_iter", ax=ax, name="chain")
ax.axhline(words.tol, color="k", linestyle=":", label="tol")
ax.legend()
fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
ConvergenceDisplay.from_estimator(words, x="n_iter", y="objective", ax=ax, name="chain")
ax.set_yscale("linear")
plt.show()

# %%
# Which letter follows which
# --------------------------
# ``weight_parts`` of the structure splits the weights into named parts. The transition
# weights have one row for each previous letter. The model has learned that *q* is
# followed by *u*, and that *-ing* is frequent.

transitions = words.structure_.weight_parts(words.coef_)["transition"]
k = len(words.classes_)
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
limit = abs(transitions).max()
image = ax.imshow(transitions, cmap="RdBu", vmin=-limit, vmax=limit)
ax.set(
    xticks=range(k),
    xticklabels=words.classes_,
    yticks=range(k),
    yticklabels=words.classes_,
    xlabel="letter",
    ylabel="letter before",
)
fig.colorbar(image, label="weight")
plt.show()
