"""
A chain on top of another classifier
====================================

Any classifier that scores one position at a time can be read in context. You will train
a small neural network on single letters, and a chain on its log-probabilities. The chain
learns how far to trust them and which letters follow each other. This lowers the letter
error from 23% to 14%, and the fit has a certificate.
"""

# %%
# Scores of single letters
# ------------------------
# The words are those of :doc:`plot_ocr_chain`: one row of pixels per letter. The
# network sees one row at a time. Its scores of the letters that it was trained on would
# be too confident, so the chain is trained on out-of-fold ones: all letters of a word are
# in the same fold.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.structures import ChainStructure

X, y = load_ocr_letters(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
letters, labels = np.concatenate(X_train), np.concatenate(y_train)
words = np.repeat(np.arange(len(X_train)), [len(word) for word in X_train])
ends = np.cumsum([len(word) for word in X_train])[:-1]

network = MLPClassifier(
    [64], alpha=1.0, learning_rate_init=0.005, early_stopping=True, random_state=0
)
scores = cross_val_predict(
    network, letters, labels, groups=words, cv=GroupKFold(5), method="predict_log_proba"
)
scores_train = np.split(scores.astype(np.float32), ends)
network.fit(letters, labels)
scores_test = [network.predict_log_proba(word).astype(np.float32) for word in X_test]

# %%
# Items of the chain are now arrays with a row for each letter of the word and a column
# for each class, in sorted order. They stay float32, and the fit makes no copy of them.

n_bytes = sum(item.nbytes for item in scores_train)
print(f"{len(scores_train)} words, {n_bytes / 1e6:.1f} MB of scores")

# %%
# What the chain learns
# ---------------------
# With ``emission="given"`` features have one weight together, their scale: its inverse is
# the temperature of the scores. Beside it there are weights for single letters and for
# pairs of them.

on_top = CRFClassifier(ChainStructure(emission="given"), C=1.0, random_state=0)
on_top.fit(scores_train, y_train)
parts = on_top.structure_.weight_parts(on_top.coef_)
print(f"duality gap {on_top.dual_gap_:.1g} after {on_top.n_iter_} passes")
print(f"scale {parts['emission'].item():.2f}, {on_top.coef_.size} weights in all")

# %%
# Beside the network alone, and a chain on the pixels:

pixels = BCFWClassifier(C=0.02, tol=0.01, random_state=0).fit(X_train, y_train)
alone = network.score(np.concatenate(X_test), np.concatenate(y_test))
errors = {
    "network alone": 1 - alone,
    "chain on pixels": 1 - pixels.score(X_test, y_test),
    "chain on the network": 1 - on_top.score(scores_test, y_test),
}
for name, error in errors.items():
    print(f"{name}: letter error {error:.3f}")

fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
bars = ax.barh(list(errors), list(errors.values()), color=["0.7", "0.7", "C0"])
ax.bar_label(bars, fmt="%.3f", padding=3)
ax.set(xlabel="Letter error on test words", xlim=(0, 1.2 * max(errors.values())))
ax.invert_yaxis()
plt.show()
