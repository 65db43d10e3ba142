"""
Named entity recognition with a CRF
===================================

.. index:: ! NER, ! named entity recognition, ! POS tagging, ! CRF

This example turns a file of tagged sentences into a tagger with an F1 of 0.92 on the
names in new sentences. You will read the file, search over a pipeline, look at the
weights, keep the model in a file, and ask it for the tags of a new sentence: how sure
it is, why, and what else they could be.
"""

# %%
# Sentences
# ---------
# The sentences are short and made up from a few patterns: who moved where. The names of
# persons (PER) and places (LOC) are tagged as B(egin), I(nside) and O(utside). Names
# are composed of syllables, so most names in the test part are new. The same name may
# be a person's or a place's.

import io

import joblib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import read_conll, write_conll
from sklearn_structsvm.inspection import explain
from sklearn_structsvm.metrics import entity_f1_scorer, entity_report
from sklearn_structsvm.plotting import ChainWeightsDisplay, TaggingDisplay
from sklearn_structsvm.preprocessing import WordFeatures
from sklearn_structsvm.structures import ChainStructure

PATTERNS = [
    "PER moved from LOC to LOC",
    "yesterday PER met PER in LOC",
    "LOC is larger than LOC",
    "the road to LOC was closed",
    "PER of LOC won the race",
    "few people know PER",
    "few people know LOC",
    "PER lost to PER",
    "LOC lost to LOC",
    "nobody saw PER leave LOC",
]
FIRST = ["Ann", "Ben", "Carl", "Dora", "Ed", "Fay", "Gus", "Ida", "Lena", "May"]
START, MIDDLE = ["Ber", "Hol", "Kar", "Lin", "Mon", "Ros", "Stan"], ["", "den", "ti"]
END = {"PER": ["son", "er", "ley", "lin"], "LOC": ["ton", "er", "ley", "lin"]}


def make_name(kind, rng):
    name = rng.choice(START) + rng.choice(MIDDLE) + rng.choice(END[kind])
    before = {"PER": [*FIRST, "Dr"], "LOC": ["New", "North", "May"]}[kind]
    return [str(rng.choice(before)), str(name)] if rng.random() < 0.4 else [str(name)]


def make_sentence(rng):
    words, tags = [], []
    for part in rng.choice(PATTERNS).split():
        name = make_name(part, rng) if part in END else [part]
        words += name
        tags += [f"B-{part}", f"I-{part}"][: len(name)] if part in END else ["O"]
    return words, tags


rng = np.random.default_rng(0)
sentences, y = zip(*(make_sentence(rng) for _ in range(400)), strict=True)
print(list(zip(sentences[0], y[0], strict=True)))

# %%
# A file
# ------
# Tagged text usually comes with one word per line and its tag behind it. Here the file is
# a buffer.

file = io.StringIO()
write_conll(file, sentences, y)
print(file.getvalue()[:60])
file.seek(0)
X, y = read_conll(file)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# A pipeline in a grid search
# ---------------------------
# ``WordFeatures`` makes sparse matrices of words, their affixes, shapes and neighbors.
# ``ChainStructure`` says that these are sequences, so scikit-learn accepts ``y`` as a
# list of lists of strings. With ``transitions="bio"`` a name can only continue if it has
# begun. Each fold fits its own transformer, so no features come from held-out sentences.

tagger = Pipeline(
    [
        ("features", WordFeatures()),
        (
            "crf",
            CRFClassifier(ChainStructure(transitions="bio"), tol=0.01, random_state=0),
        ),
    ]
)
grid = {"crf__C": [0.01, 0.1, 1.0, 10.0]}
search = GridSearchCV(tagger, grid, scoring=entity_f1_scorer, cv=3)
search.fit(X_train, y_train)
for C, score in zip(grid["crf__C"], search.cv_results_["mean_test_score"], strict=True):
    print(f"C = {C:5}: entity F1 {score:.3f}")

best = search.best_estimator_
report = entity_report(y_test, best.predict(X_test))
for kind in ("PER", "LOC", "micro avg"):
    print(f"held-out sentences: F1 {report[kind]['f1-score']:.3f} of {kind}")
print(f"above the optimum by at most {best['crf'].dual_gap_:.4f}")

# %%
# What was learned
# ----------------
# The left plot shows that inside tags follow tags of their own kind. The right plot
# shows the features with the largest weights: endings that are typical for one kind of
# name, neighboring words, and capitals.

display = ChainWeightsDisplay.from_estimator(best, n_features=18)
plt.show()

# %%
# Saving the tagger
# -----------------
# Save the whole pipeline like any other of scikit-learn's. A file name works as well as
# this buffer.

file = io.BytesIO()
joblib.dump(best, file)
print(f"{file.tell() / 1024:.0f} KiB")
file.seek(0)
tagger = joblib.load(file)

# %%
# A new sentence
# --------------
# The plot shows the tags and the probability of each tag at each word and, above, what
# speaks most for the tag of each word and against the second best one. "near" did not
# occur in training, "May" can be a first name or part of a place name, and "Westiley"
# can be either.

words = "yesterday May met Lena Holley near Westiley".split()
display = TaggingDisplay.from_estimator(
    tagger, words, tokens=words, k=3, n_contributions=3
)
plt.show()

# %%
# The solid line connects the tags that are *jointly* most probable, the others are the
# next best taggings. As a list:

matrix = tagger[:-1].transform([words])
taggings, probabilities = tagger[-1].predict_k_best(matrix, k=4)
for tagging, p in zip(taggings[0], probabilities[0], strict=True):
    print(
        f"{p:.3f}", *(f"{w}/{t}" for w, t in zip(words, tagging, strict=True) if t != "O")
    )

# %%
# Why is "Westiley" what it is said to be? The contributions are numbers that sum to the
# difference of two scores:

why = explain(tagger, words)[-1]
print(f"{why.label}, not {why.other}: {why.difference:.2f} = the sum of")
for name, value in why.contributions[:6]:
    print(f"{value:+.2f} {name}")
# sphinx_gallery_thumbnail_number = 2
