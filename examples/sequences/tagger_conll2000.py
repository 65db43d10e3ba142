"""
Chunking CoNLL-2000, coming from sklearn-crfsuite
=================================================

This example reaches an F1 of 93.5 on the test sentences of CoNLL-2000, with the feature
dicts and BIO tags that you have for sklearn-crfsuite, in a pipeline that you can search
and shrink: an L1 penalty leaves one weight in fifty at the same F1. See :ref:`crfsuite`
for everything else. This script downloads 3 MB unless the data are there, and takes a few
minutes. The outputs below were recorded; building these pages does not run the script.
"""

# %%
# Sentences
# ---------
# There are nearly nine thousand sentences for training and two thousand for testing:
# words with their parts of speech, and tags such as ``B-NP`` (a noun phrase begins) and
# ``I-NP`` (it continues). ``SKLEARN_STRUCTSVM_DATA`` sets the data directory; the
# default is scikit-learn's.

import io
import os
from time import process_time

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.metrics import entity_f1_score, entity_f1_scorer
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure

data_home = os.environ.get("SKLEARN_STRUCTSVM_DATA")
train, test = (
    fetch_conll2000(subset=subset, data_home=data_home) for subset in ("train", "test")
)

# %%
# Features stay as they are
# -------------------------
# There is a dict for each token. Keep the function that you already have. This one uses
# the word, its part of speech and two neighbors on each side.


def word2features(sentence, i):
    word, pos = sentence[i]
    features = {
        "bias": 1.0,
        "word": word.lower(),
        "suffix": word[-3:],
        "title": word.istitle(),
        "digit": word.isdigit(),
        "pos": pos,
        "pos-": pos[:2],
    }
    for step in (-2, -1, 1, 2):
        if 0 <= i + step < len(sentence):
            word, pos = sentence[i + step]
            features[f"{step:+d}"] = {"word": word.lower(), "pos": pos, "pos-": pos[:2]}
        else:
            features[f"{step:+d}"] = "none"
    if i > 0:
        features["-1 pos pos"] = f"{sentence[i - 1][1]} {sentence[i][1]}"
    if i < len(sentence) - 1:
        features["pos +1 pos"] = f"{sentence[i][1]} {sentence[i + 1][1]}"
    return features


def sent2features(sentence):
    return [word2features(sentence, i) for i in range(len(sentence))]


X_train, X_test = ([sent2features(s) for s in part.tokens] for part in (train, test))
# Lists of lists of strings, as sklearn-crfsuite has them.
y_train, y_test = ([tags.tolist() for tags in part.target] for part in (train, test))

# %%
# The search
# ----------
# ``CRF(algorithm="lbfgs", c2=1.0)`` becomes ``CRFClassifier("chain", C=0.5)``, because
# C is 1 / (2 c2). A ``SequenceTransformer`` comes first. With ``transitions="bio"`` a
# phrase can only continue if it has begun. The score is the F1 of whole phrases. The
# seconds are those of one core that was shared with other programs.

tagger = Pipeline(
    [
        ("features", SequenceTransformer()),
        (
            "crf",
            CRFClassifier(ChainStructure(transitions="bio"), tol=0.01, random_state=0),
        ),
    ]
)
search = GridSearchCV(tagger, {"crf__C": [0.1, 0.5, 2.0]}, scoring=entity_f1_scorer, cv=3)
start = process_time()
search.fit(X_train, y_train)
print(f"ten fits in {process_time() - start:.0f} s of CPU time")
for C, score in zip([0.1, 0.5, 2.0], search.cv_results_["mean_test_score"], strict=True):
    print(f"C = {C}: F1 {100 * score:.2f}")

# %%
# Held-out sentences
# ------------------
# The gap says how far from the optimum the fit can be at most.

best = search.best_estimator_
crf = best["crf"]
y_pred = best.predict(X_test)
print(f"test F1 {100 * entity_f1_score(y_test, y_pred):.2f}")
print(f"objective {crf.objective_:.3f}, above the optimum by at most {crf.dual_gap_:.3f}")
print(f"{best[:-1].get_feature_names_out().size} features, {crf.coef_.size} weights")

# %%
# A small tagger
# --------------
# With ``l1_ratio`` the penalty is an elastic net, CRFsuite's ``c1`` and ``c2``, and most
# weights are exactly zero. ``sparsify`` then stores only the others. Both taggers have
# the same ``C``.

small = clone(best).set_params(crf__l1_ratio=0.5).fit(X_train, y_train)
taggers = {"L2": best, "elastic net": small}
counts = [np.count_nonzero(tagger["crf"].coef_) for tagger in taggers.values()]
small["crf"].sparsify()


def megabytes(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.tell() / 1e6


for (name, tagger), count in zip(taggers.items(), counts, strict=True):
    f1 = 100 * entity_f1_score(y_test, tagger.predict(X_test))
    print(f"{name:11}  test F1 {f1:.2f}  weights that are not zero {count:9,}")
    print(
        f"{'':11}  CRF {megabytes(tagger['crf']):.2f} MB, all {megabytes(tagger):.2f} MB"
    )

# %%
# Most of the small file is the vocabulary of the features. :ref:`guide-tag-text` and
# :doc:`plot_tagging` go on from here: probabilities, explanations, and a model in a file.
