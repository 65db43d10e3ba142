"""
Correct a tagger where it is least certain
==========================================

A person has time to look at some entities, not at all of them. Which ones? You will
train a tagger from sentences in which half of the labels are hidden, ask for the
probability of each entity that it finds in others, have the least probable ones looked
at, and decode again with what is then known.
"""

# %%
# Sentences
# ---------
# Who moved where, made up from a few patterns. A name may be a person's or a place's, and
# only the words around it tell.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import CRFClassifier, uncertainty
from sklearn_structsvm.metrics import entity_f1_score
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import MISSING, ChainStructure

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
BEFORE = {"PER": ["Ann", "Ben", "Dora", "May"], "LOC": ["New", "North", "May"]}
START = ["Ber", "Hol", "Kar", "Lin", "Mon", "Ros"]
END = ["ton", "er", "ley", "lin", "son"]


def make_sentence(rng):
    words, tags = [], []
    for part in rng.choice(PATTERNS).split():
        name = [part]
        if part in BEFORE:
            name = [str(rng.choice(START)) + str(rng.choice(END))]
            if rng.random() < 0.4:
                name.insert(0, str(rng.choice(BEFORE[part])))
        words += name
        tags += [f"B-{part}", f"I-{part}"][: len(name)] if part in BEFORE else ["O"]
    return words, tags


def features(words):
    padded = ["<s>", *words, "</s>"]
    return [
        {
            "word": word.lower(),
            "ending": word[-3:],
            "capital": float(word[0].isupper()),
            "previous": padded[t],
            "next": padded[t + 2],
        }
        for t, word in enumerate(words)
    ]


rng = np.random.default_rng(0)
sentences, tags = zip(*(make_sentence(rng) for _ in range(380)), strict=True)
X = [features(words) for words in sentences]
X_train, y_train, X_new, y_new = X[:80], tags[:80], X[80:], tags[80:]

# %%
# Half of the labels are hidden
# -----------------------------
# Nobody has tagged every word: of each sentence for training, about half of the tags are
# ``MISSING``. The fit maximizes the likelihood of those that are there.

y_half = [
    [tag if rng.random() < 0.5 else MISSING for tag in labels] for labels in y_train
]
tagger = make_pipeline(
    SequenceTransformer(),
    CRFClassifier(ChainStructure(transitions="bio"), tol=0.01, random_state=0),
).fit(X_train, y_half)

# %%
# Entities and their probabilities
# --------------------------------
# An entity is right if its type and both of its ends are right, so its probability is
# that of the whole. The sentence here is the one whose labeling is least certain.

crf, rows = tagger[-1], tagger[:-1].transform(X_new)
worst = int(uncertainty(tagger, X_new).argmax())
print(" ".join(sentences[80 + worst]))
for span in crf.predict_spans(rows, threshold=0.1)[worst]:
    name = " ".join(sentences[80 + worst][span.start : span.stop])
    print(f"{name}: {span.type} with probability {span.probability:.2f}")

# %%
# A person looks at the least probable ones
# -----------------------------------------
# The person says the right tag of the first word of an entity, and nothing else.
# ``allowed`` keeps it, and everything else is decoded again: the words after it follow.


def correct(order, n):
    """F1 after the first n entities of an order were looked at, decoded again or not."""
    known = [[None] * len(labels) for labels in y_new]
    for i, span in order[:n]:
        known[i][span.start] = y_new[i][span.start]
    again = crf.predict(rows, allowed=known)
    replaced = [
        [tag if own is None else own for tag, own in zip(*pair, strict=True)]
        for pair in zip(predicted, known, strict=True)
    ]
    return entity_f1_score(y_new, again), entity_f1_score(y_new, replaced)


predicted = tagger.predict(X_new)
spans = [(i, s) for i, own in enumerate(crf.predict_spans(rows)) for s in own]
by_probability = sorted(spans, key=lambda pair: pair[1].probability)
at_random = [spans[j] for j in np.random.default_rng(1).permutation(len(spans))]
counts = list(range(0, 121, 20))
results = {
    "least probable, decoded again": [correct(by_probability, n)[0] for n in counts],
    "least probable, tags replaced": [correct(by_probability, n)[1] for n in counts],
    "at random, decoded again": [correct(at_random, n)[0] for n in counts],
}
for name, scores in results.items():
    print(f"{name}: F1 {scores[0]:.3f} -> {scores[-1]:.3f}")

# %%
# The least probable entities have more mistakes than others. Decoding again repairs some
# tags that nobody has looked at: those of the words after a corrected one.

fig, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
for (name, scores), style in zip(results.items(), ["-", "--", ":"], strict=True):
    ax.plot(counts, scores, style, marker=".", label=name)
ax.set(xlabel=f"Entities looked at, of {len(spans)}", ylabel="F1 of entities")
ax.legend()
plt.show()
