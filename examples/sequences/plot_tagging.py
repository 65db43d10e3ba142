"""
Named entity recognition with a CRF
===================================

.. index:: ! NER, ! named entity recognition, ! POS tagging, ! CRF

From a file of tagged words to a tagger that is tuned, explained and saved, in fifteen
lines; then a closer look at what it has learned and at how sure it is of a new sentence.
"""

# %%
# Fifteen lines
# -------------
# The :download:`file <names.txt>` has a word and its tag on each line, and an empty line
# after each sentence.
# Its sentences are short and made up from a few patterns: who moved where. The names of
# persons (PER) and places (LOC) are tagged as B(egin), I(nside) and O(utside); they are
# composed of syllables, so most names in a held-out fold are new, and the same name may
# be a person's or a place's.

import joblib
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import read_conll
from sklearn_structsvm.inspection import explain
from sklearn_structsvm.metrics import entity_f1_scorer
from sklearn_structsvm.preprocessing import WordFeatures

X, y = read_conll("names.txt")
tagger = make_pipeline(WordFeatures(), CRFClassifier("chain", random_state=0))
grid = {"crfclassifier__C": [0.3, 1.0, 3.0]}
search = GridSearchCV(tagger, grid, scoring=entity_f1_scorer, cv=3).fit(X, y)
why = explain(search.best_estimator_, "nobody saw May leave North Westiley".split())
print(search.best_params_, why[2].label, *why[2].contributions[:3])
joblib.dump(search.best_estimator_, "tagger.joblib")

# %%
# ``WordFeatures`` makes sparse matrices of words, their affixes, shapes and neighbors.
# Each fold fits its own, so no features come from held-out sentences. ``explain`` says
# what speaks for the tag of each word and against the second best one: here of "May",
# which can be a first name or part of a place name.

# %%
# How good is it?
# ---------------
# With ``transitions="bio"`` a name can only continue if it has begun. The scores are of
# whole names in held-out sentences.

import matplotlib.pyplot as plt
from sklearn.model_selection import cross_val_predict

from sklearn_structsvm.metrics import entity_report
from sklearn_structsvm.plotting import ChainWeightsDisplay, TaggingDisplay
from sklearn_structsvm.structures import ChainStructure

best = search.best_estimator_
best.set_params(crfclassifier__structure=ChainStructure(transitions="bio")).fit(X, y)
report = entity_report(y, cross_val_predict(best, X, y, cv=3))
for kind in ("PER", "LOC", "micro avg"):
    print(f"F1 {report[kind]['f1-score']:.3f} of {kind}")
print(f"above the optimum by at most {best[-1].dual_gap_:.4f}")

# %%
# What was learned
# ----------------
# The left plot shows that inside tags follow tags of their own kind. The right plot
# shows the features with the largest weights: endings that are typical for one kind of
# name, neighboring words, and capitals.

display = ChainWeightsDisplay.from_estimator(best, n_features=18)
plt.show()

# %%
# A new sentence
# --------------
# The plot shows the tags and the probability of each tag at each word and, above, what
# speaks most for the tag of each word and against the second best one. "near" did not
# occur in training, and "Westiley" can be a person or a place.

words = "yesterday May met Lena Holley near Westiley".split()
display = TaggingDisplay.from_estimator(best, words, tokens=words, k=3, n_contributions=3)
plt.show()

# %%
# The solid line connects the tags that are *jointly* most probable, the others are the
# next best taggings. As a list:

matrix = best[:-1].transform([words])
taggings, probabilities = best[-1].predict_k_best(matrix, k=4)
for tagging, p in zip(taggings[0], probabilities[0], strict=True):
    print(
        f"{p:.3f}", *(f"{w}/{t}" for w, t in zip(words, tagging, strict=True) if t != "O")
    )
# sphinx_gallery_thumbnail_number = 2
