"""
Noun phrase chunking with sparse features
=========================================

Forty sentences are enough to find phrases in others with an F1 of 0.85. Tags such as
``B-NP`` (a noun phrase begins) and ``I-NP`` (it goes on) turn the search for phrases
into sequence labeling. You will make sparse matrices of thousands of binary attributes,
score whole phrases, and see which attributes have the largest weights. The same steps
train on the CoNLL-2000 data that :func:`~sklearn_structsvm.datasets.fetch_conll2000`
downloads.
"""

# %%
# A small text
# ------------
# Each word has its part of speech, and phrases are in brackets.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import chunking_attributes
from sklearn_structsvm.metrics import (
    entity_f1_score,
    entity_f1_scorer,
    token_accuracy_score,
)
from sklearn_structsvm.structures import ChainStructure

TEXT = """
[NP The/DT ferry/NN] [VP leaves/VBZ] [PP at/IN] [NP noon/NN] ./. [NP She/PRP] [VP
bought/VBD] [NP two/CD tickets/NNS] [PP for/IN] [NP the/DT crossing/NN] ./. [NP The/DT
old/JJ harbor/NN] [VP was/VBD] [ADJP quiet/JJ] [PP in/IN] [NP the/DT morning/NN] ./.
[NP A/DT gull/NN] [VP watched/VBD] [NP the/DT boats/NNS] [PP from/IN] [NP a/DT roof/NN]
./. [NP They/PRP] [VP had/VBD waited/VBN] [PP for/IN] [NP almost/RB three/CD hours/NNS]
./. [ADVP Slowly/RB] [NP the/DT fog/NN] [VP lifted/VBD] [PP from/IN] [NP the/DT bay/NN]
./. [NP The/DT captain/NN] [VP did/VBD not/RB want/VB to/TO sail/VB] [PP before/IN] [NP
noon/NN] ./. [NP Fresh/JJ bread/NN and/CC coffee/NN] [VP were/VBD sold/VBN] [PP on/IN]
[NP the/DT pier/NN] ./. [NP Children/NNS] [VP threw/VBD] [NP stones/NNS] [PP into/IN]
[NP the/DT water/NN] ./. [NP The/DT wind/NN] [VP turned/VBD] [ADVP suddenly/RB] ./. [NP
Our/PRP$ neighbor/NN] [VP keeps/VBZ] [NP bees/NNS] [PP behind/IN] [NP the/DT barn/NN]
./. [NP It/PRP] [VP is/VBZ] [ADJP very/RB cold/JJ] [PP in/IN] [NP the/DT mountains/NNS]
./. [NP The/DT train/NN] [PP to/TO] [NP the/DT north/NN] [VP was/VBD delayed/VBN] [ADVP
again/RB] ./. [NP He/PRP] [VP wanted/VBD to/TO repair/VB] [NP the/DT broken/JJ clock/NN]
./. [NP The/DT baker/NN] [VP opened/VBD] [NP the/DT shop/NN] and/CC [VP lit/VBD] [NP
the/DT oven/NN] ./. [NP Heavy/JJ rain/NN] [VP fell/VBD] [PP on/IN] [NP the/DT empty/JJ
streets/NNS] ./. [NP The/DT teacher/NN] [VP has/VBZ read/VBN] [NP all/DT the/DT
letters/NNS] ./. [PP After/IN] [NP dinner/NN] [NP we/PRP] [VP walked/VBD] [PP along/IN]
[NP the/DT river/NN] ./. [NP The/DT new/JJ bridge/NN] [VP will/MD be/VB finished/VBN]
[PP in/IN] [NP spring/NN] ./. [NP Nobody/NN] [VP could/MD find/VB] [NP the/DT key/NN]
[PP of/IN] [NP the/DT chapel/NN] ./. [NP The/DT doctor/NN] [VP came/VBD] [ADVP early/RB]
but/CC [VP left/VBD] [ADVP late/RB] ./. [NP A/DT small/JJ dog/NN] [VP slept/VBD] [PP
under/IN] [NP the/DT table/NN] ./. [NP The/DT river/NN] [VP is/VBZ] [ADJP deep/JJ and/CC
dark/JJ] [PP near/IN] [NP the/DT mill/NN] ./. [ADVP Yesterday/RB] [NP the/DT market/NN]
[VP closed/VBD] [PP at/IN] [NP five/CD] ./. [NP My/PRP$ sister/NN] [VP plays/VBZ] [NP
the/DT violin/NN] [ADVP rather/RB well/RB] ./. [NP The/DT workers/NNS] [VP were/VBD
carrying/VBG] [NP sacks/NNS] [PP of/IN] [NP salt/NN] ./. [NP You/PRP] [VP should/MD
always/RB close/VB] [NP the/DT gate/NN] ./. [NP The/DT judge/NN] [VP seemed/VBD] [ADJP
tired/JJ] [PP after/IN] [NP the/DT long/JJ trial/NN] ./. [PP In/IN] [NP the/DT attic/NN]
[NP they/PRP] [VP found/VBD] [NP a/DT map/NN and/CC two/CD coins/NNS] ./. [NP The/DT
snow/NN] [VP melts/VBZ] [ADVP quickly/RB] [PP in/IN] [NP April/NNP] ./. [NP The/DT
farmer/NN] [VP sold/VBD] [NP his/PRP$ horse/NN] [PP to/TO] [NP a/DT young/JJ couple/NN]
./. [NP We/PRP] [VP hope/VBP to/TO see/VB] [NP you/PRP] [ADVP soon/RB] ./. [NP The/DT
lamp/NN] [PP on/IN] [NP the/DT desk/NN] [VP does/VBZ not/RB work/VB] ./. [NP Two/CD
of/IN the/DT windows/NNS] [VP have/VBP been/VBN painted/VBN] [ADJP blue/JJ] ./. [NP
The/DT singer/NN] [VP forgot/VBD] [NP the/DT second/JJ verse/NN] ./. [ADVP Perhaps/RB]
[NP the/DT letter/NN] [VP never/RB arrived/VBD] ./. [NP The/DT soup/NN] [VP was/VBD]
[ADJP too/RB hot/JJ] [VP to/TO eat/VB] ./. [NP An/DT honest/JJ answer/NN] [VP would/MD
have/VB helped/VBN] [NP everybody/NN] ./. [NP The/DT last/JJ guests/NNS] [VP left/VBD]
[PP before/IN] [NP midnight/NN] ./. [NP Some/DT birds/NNS] [VP fly/VBP] [PP to/TO] [NP
the/DT south/NN] [PP in/IN] [NP autumn/NN] ./.
"""


def read(text):
    """Sentences as (word, part of speech) pairs, and their chunk tags."""
    sentences, targets = [], []
    tokens, tags, phrase, begins = [], [], "O", False
    for part in text.split():
        if part.startswith("["):
            phrase, begins = part[1:], True
            continue
        word, pos = part.rstrip("]").rsplit("/", 1)
        tokens.append((word, pos))
        tags.append("O" if phrase == "O" else f"{'B' if begins else 'I'}-{phrase}")
        begins = False
        if part.endswith("]"):
            phrase = "O"
        if pos == ".":
            sentences.append(tokens)
            targets.append(np.array(tags))
            tokens, tags = [], []
    return sentences, targets


sentences, y = read(TEXT)
print(sentences[0][:4])
print(y[0][:4])

# %%
# Sparse items
# ------------
# :func:`~sklearn_structsvm.datasets.chunking_attributes` lists the attributes of each
# token: words and parts of speech in a window around it. scikit-learn's
# ``CountVectorizer`` gives each attribute a column. The result is one CSR matrix per
# sentence, which stays sparse during training.

attributes = [chunking_attributes(tokens) for tokens in sentences]
print(attributes[0][1][:4])

vectorizer = CountVectorizer(analyzer=list, dtype=np.float64)
vectorizer.fit([token for sentence in attributes for token in sentence])
X = [vectorizer.transform(sentence) for sentence in attributes]
print(f"{len(X)} sentences; the first: {X[0].shape}, {X[0].nnz} entries")

# %%
# Whole phrases
# -------------
# A phrase is correct if its type, its first word and its last word are. The option
# ``classes`` names all tags, because a fold may lack the rare ones.

tags = np.unique(np.concatenate(y))
model = BCFWClassifier(ChainStructure(), solver_options={"classes": tags}, random_state=0)
predictions = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
print(f"accuracy of tags {token_accuracy_score(y, predictions):.3f}")
print(f"F1 of phrases    {entity_f1_score(y, predictions):.3f}")

types = sorted({tag[2:] for tag in tags if tag != "O"})
print("of each type:")
for name, f1 in zip(types, entity_f1_score(y, predictions, average=None), strict=True):
    print(f"  {name:5} {f1:.3f}")

# %%
# The score is also a scorer for a grid search over ``C``:

search = GridSearchCV(
    model, {"C": [0.001, 0.01, 0.1, 1.0]}, scoring=entity_f1_scorer, cv=5
).fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")

# %%
# A new sentence
# --------------
# The vectorizer drops attributes that are not in the training text.

model = search.best_estimator_
new = [
    *[("An", "DT"), ("old", "JJ"), ("fisherman", "NN"), ("mended", "VBD")],
    *[("nets", "NNS"), ("on", "IN"), ("the", "DT"), ("pier", "NN"), (".", ".")],
]
(found,) = model.predict([vectorizer.transform(chunking_attributes(new))])
for (word, pos), tag in zip(new, found, strict=True):
    print(f"{word:10} {pos:4} {tag}")

# %%
# What was learned
# ----------------
# ``weight_parts`` of the structure splits the weights into named parts. The attribute
# weights have one column per tag, the transition weights one row per previous tag. The
# model has learned that a noun phrase continues once it has begun, and often follows a
# preposition.

parts = model.structure_.weight_parts(model.coef_)
names = vectorizer.get_feature_names_out()
for tag in ("B-NP", "I-NP", "B-PP"):
    best = np.argsort(-parts["emission"][:, list(tags).index(tag)])[:4]
    print(f"{tag}: {', '.join(names[best])}")

transitions = parts["transition"]
k = len(tags)
limit = abs(transitions).max()
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
image = ax.imshow(transitions, cmap="RdBu", vmin=-limit, vmax=limit)
ax.set_xticks(range(k), tags, rotation=90)
ax.set_yticks(range(k), tags)
ax.set(xlabel="tag", ylabel="tag before")
fig.colorbar(image, label="weight")
plt.show()
