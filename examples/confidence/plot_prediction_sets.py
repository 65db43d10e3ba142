"""
Words read with sets of letters
===============================

Handwriting can be hard to read. Instead of one letter for each image, this reader returns
a set of letters, such that the whole word is within its sets nine times in ten. You will
see how large these sets are, why neighboring letters make them smaller, and what happens
to images that are noisier than those before.
"""

# %%
# The words that ship with the package are split into three parts: to fit a conditional
# random field, to calibrate it, and to read. The promise needs only that the last two are
# alike, which they are, as the split is random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from sklearn_structsvm import ConformalClassifier, CRFClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.structures import ChainStructure

X, y = load_ocr_letters(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=350, random_state=0)
X_own, X_test, y_own, y_test = train_test_split(
    X_rest, y_rest, train_size=0.5, random_state=0
)
letters = np.unique(np.concatenate(y))
options = {"classes": letters}
params = {"C": 3.0, "tol": 0.01, "random_state": 0, "solver_options": options}
field = CRFClassifier(ChainStructure(), **params).fit(X_train, y_train)

reader = ConformalClassifier(FrozenEstimator(field), confidence_level=0.9)
reader.conformalize(X_own, y_own)
report = reader.set_report(X_test, y_test)
print(f"Words within their sets: {report['coverage']:.2f}")
print(f"Letters in a set: {report['mean_size']:.2f} of {len(letters)}")
print(f"Positions with a single letter: {report['n_single']}")
print(f"Positions where every letter is possible: {report['n_full']}")

# %%
# Each column is a position: its image, and below it the set, with the most probable
# letter on top. The true letter is blue, and orange where the set misses it.

sets, proba = reader.predict_set(X_test), field.predict_proba(X_test)
is_missed = [
    not own[np.arange(len(word)), np.searchsorted(letters, word)].all()
    for own, word in zip(sets, y_test, strict=True)
]
SHOWN = 12
fits = [i for i, own in enumerate(sets) if own.sum(axis=1).max() <= SHOWN]
words = {"".join(y_test[i]): i for i in fits if len(y_test[i]) == 6 and not is_missed[i]}
chosen = [*words.values()][:2] + [i for i in fits if is_missed[i]][:1]
figure, axes = plt.subplots(2, len(chosen), figsize=(8, 4), height_ratios=(1, 3.2))
for (above, below), i in zip(axes.T, chosen, strict=True):
    images = [x.reshape(16, 8) for x in X_test[i]]
    above.imshow(np.hstack(images), cmap="gray_r", aspect="auto")
    for t, truth in enumerate(y_test[i]):
        names = [c for c in np.argsort(-proba[i][t]) if sets[i][t, c]]
        for row, c in enumerate(names):
            is_true = letters[c] == truth
            color = "tab:blue" if is_true else "0.45"
            weight = "bold" if is_true else "normal"
            below.text(t, row, letters[c], color=color, weight=weight, ha="center")
        if truth not in letters[names]:
            below.text(
                t, len(names), truth, color="tab:orange", weight="bold", ha="center"
            )
    below.set(xlim=(-0.5, len(y_test[i]) - 0.5), ylim=(SHOWN + 0.5, -1))
    above.axis("off")
    below.axis("off")
    above.set_title("missed" if is_missed[i] else "contained")
figure.tight_layout()

# %%
# The same promise without neighbors
# ----------------------------------
#
# A model of single letters can be calibrated for whole words just as well. Its promise is
# the same. Its sets are larger, because it knows less.

alone = ChainStructure(transition=False, first_bias=False, last_bias=False)
single = CRFClassifier(alone, **params)
models = {"with neighbors": field, "letters alone": single.fit(X_train, y_train)}
levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
_, coverage = plt.subplots(figsize=(5, 3.8), layout="constrained")
_, size = plt.subplots(figsize=(5, 3.8), layout="constrained")
for name, model in models.items():
    reports = [
        ConformalClassifier(FrozenEstimator(model), confidence_level=level)
        .conformalize(X_own, y_own)
        .set_report(X_test, y_test)
        for level in levels
    ]
    coverage.plot(levels, [own["coverage"] for own in reports], "o-", label=name)
    size.plot(levels, [own["mean_size"] for own in reports], "o-", label=name)
    print(f"{name:15} letters in a set at 0.9: {reports[4]['mean_size']:.2f}")
coverage.plot(levels, levels, color="0.5", linestyle="--", label="promised")
coverage.set(xlabel="confidence level", ylabel="words within their sets")
size.set(xlabel="confidence level", ylabel="letters in a set")
coverage.legend()
size.legend()
plt.show()

# %%
# Whole words
# -----------
#
# Most words that can be made of these sets are unlikely. The alternative is the set of
# all words that are at most so many times less probable than the best one. It is
# described by a lattice, and counted. Here are words of the smallest of these sets.

speller = ConformalClassifier(FrozenEstimator(field), conformity_score="likelihood")
speller.conformalize(X_own, y_own)
lattices = speller.predict_lattice(X_test)
counts = np.array([lattice.count()[1] for lattice in lattices])
products = np.array([np.prod(own.sum(axis=1, dtype=float)) for own in sets])
covered = np.mean([word in own for word, own in zip(y_test, lattices, strict=True)])
print(f"Words in their lattices: {covered:.2f}")
print(f"Median number of words: {np.median(counts):.0f} in a lattice,")
print(f"{np.median(products):.0f} in a product of sets")
smallest = np.argmin(counts)
words = ["".join(word) for word in lattices[smallest].labelings()]
print(f"{''.join(y_test[smallest])!r} is among {words[:8]}")

# %%
# Where the promise ends
# ----------------------
#
# Flip a tenth of the pixels of the new words, and they are no longer like those that
# calibrated the sets. Nothing warns of it. Calibration with words that are as noisy
# restores the promise, by larger sets.

rng = np.random.default_rng(0)


def flipped(X):
    return [np.abs(x - (rng.random(x.shape) < 0.1)) for x in X]


noisy_own, noisy_test = flipped(X_own), flipped(X_test)
for name, sets_of in (
    ("calibrated before", reader),
    (
        "calibrated anew",
        ConformalClassifier(FrozenEstimator(field)).conformalize(noisy_own, y_own),
    ),
):
    report = sets_of.set_report(noisy_test, y_test)
    print(
        f"{name:18} words within their sets: {report['coverage']:.2f}, "
        f"letters in a set: {report['mean_size']:.2f}"
    )
