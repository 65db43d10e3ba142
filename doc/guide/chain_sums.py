"""log Z of chains and its derivatives, by the package's forward-backward pass."""

import numpy as np

from sklearn_structsvm.structures import ChainStructure


def chain_sums(scores, lengths, first, last, transition):
    """Sum of log Z over all chains, and its derivatives by all but the lengths.

    `scores` of shape (sum of lengths, k) has the labels' scores at each position, chain
    after chain. `first` and `last` of shape (k,) and `transition` of shape (k, k) are
    added at the ends and between neighbors. No chain is empty.
    """
    X = np.split(scores, np.cumsum(lengths)[:-1])
    y = [np.zeros(length, dtype=int) for length in lengths]  # any labelings will do
    structure = ChainStructure(emission="given", bias=False)
    structure.fit(X, y, classes=range(scores.shape[1]))
    X, y = structure.check_data(X, y)
    w = np.concatenate([[1.0], first, last, np.ravel(transition)])
    # The loss of y is log Z - <w, phi(x, y)>: y is taken out of it, and of its gradient.
    loss, gradient = structure.make_oracle(X, y).log_loss(np.ones(len(X)), w)
    phi = sum(map(structure.joint_feature, X, y))
    parts = structure.weight_parts(gradient + phi)
    nodes = np.concatenate(structure.marginals(X, w))
    pairs = parts["transition"]
    return loss + phi @ w, nodes, parts["first_bias"], parts["last_bias"], pairs
