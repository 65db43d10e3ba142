"""
Hierarchical text classification
================================

With 100 documents, a hierarchy of topics raises the micro F1 from 0.28 to 0.37; with
800 it is still ahead. Topics are the leaves of a tree, and of most of them there are
few documents. :class:`~sklearn_structsvm.structures.HierarchicalStructure` gives
weights to the inner nodes as well, so that what sibling topics share is learned from
all of them.
"""

# %%
# The data are bags of words. Each word is drawn from one of the document's topics or
# from a node above it. Some topics are frequent, most are rare.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from sklearn_structsvm import SlackRescaledSSVM
from sklearn_structsvm.datasets import make_hierarchical
from sklearn_structsvm.structures import HierarchicalStructure, MultilabelStructure

X, Y, edges = make_hierarchical(
    n_samples=1200,
    n_features=2000,
    n_nodes=40,
    n_leaves=30,
    sparse=True,
    random_state=0,
)
X = normalize(X)
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=0)
print(f"{Y.shape[1]} topics, {Y.sum(axis=1).mean():.1f} a document")
least, median, most = np.percentile(Y_train.sum(axis=0), [0, 50, 100])
print(f"documents of a topic: {least:.0f} to {most:.0f}, median {median:.0f}")

# %%
# We train both models by slack rescaling, on more and more of the documents.

structures = {
    "independent topics": MultilabelStructure(),
    "hierarchy": HierarchicalStructure(edges),
}
sizes = [100, 200, 400, 800]
fig, ax = plt.subplots(layout="constrained")
for name, structure in structures.items():
    scores = []
    for n in sizes:
        model = SlackRescaledSSVM(structure, C=1.0, tol=0.02, random_state=0)
        Y_pred = model.fit(X_train[:n], Y_train[:n]).predict(X_test)
        scores.append(f1_score(Y_test, Y_pred, average="micro"))
    ax.plot(sizes, scores, marker="o", label=name)
    for at in (0, -1):
        print(f"{name}: micro F1 {scores[at]:.3f} with {sizes[at]} documents")
ax.set(xlabel="documents to learn from", ylabel="micro F1", xscale="log")
ax.set_xticks(sizes, sizes, minor=False)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# Inner nodes carry about as much weight as topics do. This is what topics share.

weights = np.linalg.norm(model.coef_, axis=1)
nodes = model.structure_.nodes_
inner = ~np.isin(nodes, model.classes_)
fig, ax = plt.subplots(layout="constrained")
order = np.argsort(weights)[::-1]
colors = np.where(inner[order], "C1", "C0")
ax.bar(np.arange(len(order)), weights[order], color=colors)
ax.bar(0, 0, color="C1", label="inner nodes")
ax.bar(0, 0, color="C0", label="topics")
ax.set(xlabel="nodes", ylabel="norm of the weights", xticks=[])
ax.legend()
plt.show()
