"""
Confidence and k-best labelings of a sequence
=============================================

If a person reads the 40% least certain letters, the error on the rest falls from 21% to
about 7%, and a dictionary over the best 100 labelings of each word raises the share of
right words from 39% to 73%. You will use two things that scores tell without any
probabilities: by how much the best labeling is ahead of the best one with *another
label at this position* (max-marginals), and what the *next best* labelings are
(k-best).
"""

# %%
# We train a chain on handwritten words and predict words that it has not seen.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters

X, y = load_ocr_letters(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = BCFWClassifier(C=0.02, tol=0.02, random_state=0).fit(X_train, y_train)
predictions = model.predict(X_test)

# %%
# Margins of positions
# --------------------
# ``max_marginals`` returns, for each word, an array with one row per letter and one
# column per class. Each entry is the score of the best labeling that has this class at
# this position. The largest entry of a row belongs to the prediction. Its lead over the
# second largest is the margin of the position.


def margins(scores):
    second, first = np.sort(scores, axis=1)[:, -2:].T
    return first - second


margin = np.concatenate([margins(scores) for scores in model.max_marginals(X_test)])
right = np.concatenate(
    [labels == truth for labels, truth in zip(predictions, y_test, strict=True)]
)
print(f"median margin of right letters {np.median(margin[right]):.3f}")
print(f"median margin of wrong letters {np.median(margin[~right]):.3f}")

# %%
# If a person reads the least certain letters, what is the error rate of the others?

order = np.argsort(-margin)
share = np.arange(1, len(order) + 1) / len(order)
error = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
at_hand = np.searchsorted(share, 0.6)
print(f"error of all letters {error[-1]:.3f}, without 40% of them {error[at_hand]:.3f}")
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.plot(share, error)
ax.axhline(error[-1], color="0.6", linestyle=":", label="all letters")
ax.set(xlabel="share of letters read automatically", ylabel="error among them")
ax.set_ylim(bottom=0)
ax.legend()
plt.show()

# %%
# The k best labelings
# --------------------
# ``predict_k_best`` returns the best labelings of each sequence with their scores, best
# first. Below is a misread word whose true reading is among the first five.

labelings, scores = model.predict_k_best(X_test, k=5)


def rank_of_truth(i):
    """Place of the true word among the best five, or None."""
    hits = np.flatnonzero((labelings[i] == y_test[i]).all(axis=1))
    return hits[0] if len(hits) else None


ranks = [rank_of_truth(i) for i in range(len(X_test))]
misread = [i for i, rank in enumerate(ranks) if rank is not None and rank > 0]
i = max(misread, key=lambda i: len(y_test[i]))
print(f"truth: {''.join(y_test[i])}")
for labels, score in zip(labelings[i], scores[i], strict=True):
    print(f"{score:9.3f}  {''.join(labels)}")

# %%
# A later stage, such as a dictionary, can choose among these. How often is the true
# word on the list?

for k in (1, 2, 3, 5):
    found = np.mean([rank is not None and rank < k for rank in ranks])
    print(f"true word among the best {k}: {found:.2f}")

# %%
# Now we use all words of the data as a dictionary. For each word we take the first of
# the 100 best labelings that is in the dictionary, or the best labeling if none is.

dictionary = {"".join(labels) for labels in y}
labelings, _ = model.predict_k_best(X_test, k=100)
readings = [["".join(labels) for labels in rows] for rows in labelings]
chosen = [next((r for r in rows if r in dictionary), rows[0]) for rows in readings]
truth = ["".join(labels) for labels in y_test]
best = [rows[0] for rows in readings]
print(f"words read right, plain:           {np.mean(np.equal(best, truth)):.2f}")
print(f"words read right, with dictionary: {np.mean(np.equal(chosen, truth)):.2f}")
