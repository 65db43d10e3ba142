"""
Embeddings beside attributes
============================

Attributes, such as the word itself, are precise for frequent words, but of little help
with words that are not in the training text. Embeddings describe every word, with
noise. You will pass both to a chain in one pipeline. The error is 17.0% with
attributes, 17.3% with embeddings, and 9.5% with both. The features of both take 1.6 MB,
about as much as those of each, 0.3 MB and 1.4 MB.
"""

# %%
# Words of a made-up language
# ---------------------------
# Each word has a usual tag, and some words have a second one, so that the context
# decides. About half of the words have the ending that is typical of their tag. The
# embedding of a word is a float32 vector with 64 entries: the center of its tag plus a
# lot of noise.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.preprocessing import SequenceTransformer, SplitMatrix

TAGS = np.array(["ADJ", "ADV", "DET", "NOUN", "PREP", "VERB"])
N_WORDS, N_ENTRIES, N_SENTENCES = 6000, 64, 800

rng = np.random.default_rng(0)
usual = rng.integers(len(TAGS), size=N_WORDS)
second = np.where(rng.random(N_WORDS) < 0.2, rng.integers(len(TAGS), size=N_WORDS), usual)
endings = np.where(rng.random(N_WORDS) < 0.5, usual, rng.integers(10, size=N_WORDS))
centers = rng.normal(size=(len(TAGS), N_ENTRIES))
noise = rng.normal(scale=4.5, size=(N_WORDS, N_ENTRIES))
embeddings = (centers[usual] + noise).astype(np.float32)
follows = rng.dirichlet(np.full(len(TAGS), 0.4), size=len(TAGS))
of_tag = np.where(usual == np.arange(len(TAGS))[:, np.newaxis], 0.8, 0.0)
of_tag += np.where(second == np.arange(len(TAGS))[:, np.newaxis], 0.2, 0.0)
chances = np.cumsum(of_tag / np.arange(10, N_WORDS + 10), axis=1)  # Zipf's law


def draw_sentence():
    """Words, as numbers, and their tags."""
    tags = [rng.integers(len(TAGS))]
    for _ in range(rng.integers(5, 20)):
        tags.append(rng.choice(len(TAGS), p=follows[tags[-1]]))
    words = [np.searchsorted(chances[t], rng.random() * chances[t, -1]) for t in tags]
    return words, TAGS[tags]


sentences, y = zip(*(draw_sentence() for _ in range(N_SENTENCES)), strict=True)
half = N_SENTENCES // 2
known = {word for words in sentences[:half] for word in words}
unseen = [word not in known for words in sentences[half:] for word in words]
print(f"{np.mean(unseen):.0%} of the test words are not in the training sentences")

# %%
# Three sets of features
# ----------------------
# To have both, make each token a pair of its attributes and its vector. Vectors alone
# need no transformer: a sentence is an array with one row per word.


def attributes_of(words, t):
    """The word, its ending and the words beside it."""
    own = {"word": f"w{words[t]}", "ending": f"-{endings[words[t]]}"}
    before = {"before": f"w{words[t - 1]}"} if t > 0 else {}
    after = {"after": f"w{words[t + 1]}"} if t + 1 < len(words) else {}
    return own | before | after


def n_bytes(item):
    """Bytes of an array, of a CSR matrix or of both."""
    if isinstance(item, SplitMatrix):
        return sum(map(n_bytes, item.matrices))
    parts = [item.data, item.indices, item.indptr] if issparse(item) else [item]
    return sum(part.nbytes for part in parts)


attributes = [[attributes_of(words, t) for t in range(len(words))] for words in sentences]
vectors = [embeddings[words] for words in sentences]
both = [list(zip(*pair, strict=True)) for pair in zip(attributes, vectors, strict=True)]

train, test = slice(half), slice(half, None)
models, errors, sizes = {}, {}, {}
for name, X, first in [
    ("attributes", attributes, SequenceTransformer()),
    ("embeddings", vectors, "passthrough"),
    ("both", both, SequenceTransformer()),
]:
    model = make_pipeline(first, CRFClassifier("chain", C=1.0, random_state=0))
    models[name] = model.fit(X[train], y[train])
    errors[name] = 1 - model.score(X[test], y[test])
    items = model[:-1].transform(X[train])
    sizes[name] = sum(n_bytes(item) for item in items) / 1e6
    print(
        f"{name:10}: error {errors[name]:.3f}, {sizes[name]:.2f} MB of features, "
        f"{items[0].dtype}, {items[0].shape[1]} columns"
    )

# %%
# Each entry of an embedding is a column with a name. They follow those of the
# attributes:

print(models["both"][:-1].get_feature_names_out()[[0, 1, -2, -1]].tolist())

# %%
# Memory
# ------
# With both, each sentence is a :class:`~sklearn_structsvm.preprocessing.SplitMatrix`: the
# attributes are a CSR matrix and the embeddings an array, as each is when alone. One CSR
# matrix would also store the column of each entry of an embedding, 8 bytes instead of 4.
# One array would be much larger. See :ref:`guide-words` for the time this takes.

items = models["both"][:-1].transform(both[train])
print(items[0])
print(f"as CSR matrices: {sum(n_bytes(item.tocsr()) for item in items) / 1e6:.1f} MB")
print(f"as arrays: {sum(len(x) * x.shape[1] * 4 for x in items) / 1e6:.0f} MB")

for values, label, form in [
    (errors, "Error on test words", "%.3f"),
    (sizes, "Features of the training words in MB", "%.2f"),
]:
    fig, ax = plt.subplots(figsize=(5, 2.4), layout="constrained")
    bars = ax.barh(list(values), list(values.values()), color=["0.7", "0.7", "C0"])
    ax.bar_label(bars, fmt=form, padding=3)
    ax.set(xlabel=label, xlim=(0, 1.2 * max(values.values())))
    ax.invert_yaxis()
plt.show()
