"""
Calibrated probabilities of a CRF
=================================

When a conditional random field is 80% sure of a letter, it is right about four times in
five, or a little more often. The scores of a structural SVM rank letters as well, but a
softmax of them is not a probability. You will compare both by calibration curves and
log-loss, look at the probabilities of whole words, and decode for the fewest wrong
letters.
"""

# %%
# Both models read the words that ship with the package. Cross-validation chooses the
# regularization: by log-likelihood for the CRF and by accuracy for the SVM.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.calibration import calibration_curve
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.metrics import (
    log_likelihood_scorer,
    token_accuracy_score,
    token_accuracy_scorer,
    token_log_loss,
)
from sklearn_structsvm.structures import ChainStructure

X, y = load_ocr_letters(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
letters = np.unique(np.concatenate(y))
folds = KFold(3, shuffle=True, random_state=0)


def search(model, Cs, scorer):
    model.set_params(solver_options__classes=letters, tol=0.02, random_state=0)
    found = GridSearchCV(model, {"C": Cs}, scoring=scorer, cv=folds)
    return found.fit(X_train, y_train).best_estimator_


field = search(CRFClassifier(ChainStructure()), [0.2, 0.8, 3.2], log_likelihood_scorer)
# Its margin is to be one for each wrong letter: scores of the size of log odds.
by_letters = ChainStructure(normalize_loss=False)
machine = search(BCFWClassifier(by_letters), [0.003, 0.01, 0.03], token_accuracy_scorer)
for model in (field, machine):
    accuracy = token_accuracy_score(y_test, model.predict(X_test))
    print(f"{type(model).__name__:15} C={model.C:<5} letters right: {accuracy:.3f}")

# %%
# For the CRF, ``predict_proba`` returns the probabilities of the letters at each
# position. For the SVM there are max-marginals: the score of the best word that has
# this letter at this position. A softmax makes them look like probabilities.

proba = {
    "CRFClassifier": field.predict_proba(X_test),
    "BCFWClassifier, softmax of scores": [
        softmax(scores, axis=1) for scores in machine.max_marginals(X_test)
    ],
}
truth = np.concatenate(y_test)
_, calibrated = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
_, ranked = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
calibrated.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="calibrated")
for name, items in proba.items():
    table = np.concatenate(items)
    sure = table.max(axis=1)
    hit = letters[table.argmax(axis=1)] == truth
    rate, said = calibration_curve(hit, sure, n_bins=8, strategy="quantile")
    calibrated.plot(said, rate, marker="o", label=name)
    order = np.argsort(-sure)
    kept = np.arange(1, len(order) + 1)
    ranked.plot(kept / len(order), np.cumsum(~hit[order]) / kept, label=name)
    loss = token_log_loss(y_test, items, labels=letters)
    print(f"{name}: log loss of a letter {loss:.3f}, says {sure.mean():.2f} on average")
calibrated.set(xlabel="probability of the letter read", ylabel="share that is right")
ranked.set(xlabel="share of letters read automatically", ylabel="error among them")
ranked.set_ylim(bottom=0)
for ax in (calibrated, ranked):
    ax.legend()
plt.show()

# %%
# Both models rank letters from certain to uncertain about equally well, as the second
# plot shows. In the first, the probabilities of the CRF are close to the diagonal,
# so you can add them up, compare them with costs, or show them to a decision maker.
# Those of the SVM are far from it, by an amount that depends on its C and its loss.
#
# Words as a whole
# ----------------
# ``log_likelihood`` is the log-probability of a whole word, ``entropy`` measures the
# uncertainty about it, and ``predict_k_best`` lists the most probable words.

unsure = np.argsort(-field.entropy(X_test))[0]
words, probabilities = field.predict_k_best(X_test[unsure : unsure + 1], k=4)
print(f"truth: {''.join(y_test[unsure])}")
for word, p in zip(words[0], probabilities[0], strict=True):
    print(f"{p:6.3f}  {''.join(word)}")

# %%
# The most probable word may differ from the sequence of the most probable letters.
# The option ``decoding="mbr"`` predicts the latter. If the probabilities are correct,
# this minimizes the expected number of wrong letters, but fewer words are entirely right.

for decoding in ("map", "mbr"):
    predicted = field.set_params(solver_options__decoding=decoding).predict(X_test)
    words_right = list(map(np.array_equal, predicted, y_test))
    accuracy = token_accuracy_score(y_test, predicted)
    print(f"{decoding}: letters {accuracy:.3f}, words {np.mean(words_right):.3f} right")
