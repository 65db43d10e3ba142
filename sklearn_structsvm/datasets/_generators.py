"""Synthetic problems whose labels depend on one another."""

from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state, check_scalar

from sklearn_structsvm._utils.borders import check_integer
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tables import split_rows


@with_plain_calls
def make_chains(
    n_samples: int = 100,
    *,
    n_features: int = 20,
    n_classes: int = 5,
    min_length: int = 3,
    max_length: int = 10,
    class_sep: float = 1.5,
    dependence: float = 0.8,
    sparse: bool = False,
    n_active: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[list[Any], list[np.ndarray]]:
    r"""Generate label sequences from a Markov chain, with features per token.

    The first label is uniform. Each further label is, with probability `dependence`, the
    successor of the previous label in a random cycle through all classes, and uniform
    otherwise. The features of a token depend only on its label,

    .. math:: x_t \sim N(\text{class\_sep} \cdot m_{y_t}, I), \qquad
              m_k \sim N(0, I / \text{n\_features}).

    If `sparse` is True, they are instead 1 for `n_active` draws from a distribution over
    the features proportional to :math:`\exp(\text{class\_sep} \cdot g_k)`, where
    :math:`g_k \sim N(0, I)`. A chain model therefore beats a model that labels each token
    separately, especially for high `dependence` and low `class_sep`.

    Read more in the :ref:`User Guide <guide-chains>`.

    Parameters
    ----------
    n_samples : int, default=100
        Number of sequences.
    n_features : int, default=20
        Number of features of a token.
    n_classes : int, default=5
        Number of labels.
    min_length, max_length : int, default=3, 10
        Range of the sequence lengths, which are uniformly distributed.
    class_sep : float, default=1.5
        Distance between the features of different classes.
    dependence : float, default=0.8
        Between 0 (independent labels) and 1 (each label determines the next).
    sparse : bool, default=False
        Whether to generate binary features in CSR matrices.
    n_active : int, default=5
        Number of draws of active features per token, if `sparse=True`. Repeated draws
        count once.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    X : list of n_samples ndarrays or CSR matrices, shape (length, n_features), float64
        The tokens of each sequence.
    y : list of n_samples ndarrays of shape (length,), int64
        Their labels, 0 to `n_classes - 1`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    make_multilabel : Dependent labels of single samples.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=50, n_features=10, random_state=0)
    >>> len(X), X[0].shape[1], len(X[0]) == len(y[0])
    (50, 10, True)
    """
    check_integer("n_samples", n_samples, 1)
    check_integer("n_features", n_features, 1)
    check_integer("n_classes", n_classes, 2)
    check_integer("min_length", min_length, 1)
    check_integer("max_length", max_length, min_length)
    check_scalar(class_sep, "class_sep", Real, min_val=0)
    check_scalar(dependence, "dependence", Real, min_val=0, max_val=1)
    check_integer("n_active", n_active, 1)
    rng = check_random_state(random_state)

    cycle = rng.permutation(n_classes)
    successor = np.empty_like(cycle)
    successor[cycle] = np.roll(cycle, -1)
    lengths = rng.randint(min_length, max_length + 1, size=n_samples)
    labels = rng.randint(n_classes, size=(n_samples, max_length))
    follows = rng.uniform(size=labels.shape) < dependence
    for t in range(1, max_length):
        labels[:, t] = np.where(follows[:, t], successor[labels[:, t - 1]], labels[:, t])
    y = labels[np.arange(max_length) < lengths[:, None]].astype(np.int64)

    if sparse:
        words = _word_distributions(n_classes, n_features, class_sep, rng)
        X = _draw_words(words, np.repeat(y[:, None], n_active, axis=1), rng)
    else:
        means = rng.normal(size=(n_classes, n_features)) / np.sqrt(n_features)
        X = class_sep * means[y] + rng.normal(size=(len(y), n_features))
    return split_rows(X, lengths), split_rows(y, lengths)


@with_plain_calls
def make_multilabel(
    n_samples: int = 100,
    *,
    n_features: int = 20,
    n_classes: int = 5,
    n_labels: float = 2.0,
    n_factors: int = 2,
    class_sep: float = 2.0,
    sparse: bool = False,
    n_active: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, np.ndarray]:
    r"""Generate a multilabel problem whose labels depend on one another.

    Labels depend on a few latent factors. Sample i has a random factor vector :math:`h_i
    \sim N(0, I)` of dimension `n_factors`, and label l a random loading vector
    :math:`a_l`. A sample has the label if :math:`\langle h_i, a_l \rangle +
    \varepsilon_{il}` is among the highest values for this label. Given the labels, the
    features are

    .. math:: x_i \sim N\Bigl(\text{class\_sep} \sum_{l \in Y_i} m_l, I\Bigr), \qquad
              m_l \sim N(0, I / \text{n\_features}).

    If `sparse` is True, they are instead counts of `n_active` draws, each from the
    distribution of one of the sample's labels or from the uniform distribution (see
    :func:`make_chains`).

    Read more in the :ref:`User Guide <guide-dependent-labels>`.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=20
        Number of features.
    n_classes : int, default=5
        Number of labels.
    n_labels : float, default=2.0
        Mean number of labels per sample. All labels are equally frequent; each occurs in
        at least one sample, and is absent from at least one.
    n_factors : int, default=2
        Number of latent factors. The fewer, the more dependent the labels.
    class_sep : float, default=2.0
        How far a label moves the features.
    sparse : bool, default=False
        Whether to generate counts in a CSR matrix.
    n_active : int, default=20
        Number of draws of active features per sample, if `sparse=True`.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float64
        The samples.
    Y : ndarray of shape (n_samples, n_classes), int64
        Label indicator matrix.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    make_chains : Label sequences.
    make_hierarchical : Labels that are leaves of a hierarchy.
    sklearn.datasets.make_multilabel_classification : Independent labels.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> X, Y = make_multilabel(n_samples=50, n_classes=4, random_state=0)
    >>> X.shape, Y.shape, float(Y.sum() / 50)
    ((50, 20), (50, 4), 2.0)
    """
    check_integer("n_samples", n_samples, 2)
    check_integer("n_features", n_features, 1)
    check_integer("n_classes", n_classes, 1)
    check_scalar(n_labels, "n_labels", Real, min_val=0, max_val=n_classes)
    check_integer("n_factors", n_factors, 1)
    check_scalar(class_sep, "class_sep", Real, min_val=0)
    check_integer("n_active", n_active, 1)
    rng = check_random_state(random_state)

    loadings = rng.normal(size=(n_classes, n_factors))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    scores = rng.normal(size=(n_samples, n_factors)) @ loadings.T
    # The part of a score that is independent of other labels; that from factors has 1.
    scores += 0.5 * rng.normal(size=scores.shape)
    n_positive = round(n_samples * n_labels / n_classes)
    n_positive = min(max(n_positive, 1), n_samples - 1)
    ranks = np.argsort(np.argsort(-scores, axis=0), axis=0)
    Y = (ranks < n_positive).astype(np.int64)

    return _draw_features(Y, n_features, class_sep, sparse and n_active, rng), Y


@with_plain_calls
def make_hierarchical(
    n_samples: int = 100,
    *,
    n_features: int = 50,
    n_nodes: int = 16,
    n_leaves: int = 10,
    n_labels: float = 2.0,
    n_extra_edges: int = 0,
    class_sep: float = 2.0,
    sparse: bool = False,
    n_active: int = 50,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, np.ndarray, np.ndarray]:
    r"""Generate a multilabel problem whose labels are the leaves of a hierarchy.

    The inner nodes form a random tree with root 0, and each leaf has a random inner node
    as its parent. The number of labels of a sample is one plus a Poisson variable. The
    l-th leaf in a random order is drawn with probability proportional to 1/l. With
    :math:`U_i` the labels of sample i and all their ancestors, the features are

    .. math:: x_i \sim N\Bigl(\text{class\_sep} \sum_{n \in U_i} m_n, I\Bigr), \qquad
              m_n \sim N(0, I / \text{n\_features}).

    If `sparse` is True, a sample is instead a bag of words: counts of `n_active` draws,
    each from the distribution of one of the nodes in :math:`U_i` or from the uniform
    distribution (see :func:`make_chains`).

    Read more in the :ref:`User Guide <guide-flat>`.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=50
        Number of features.
    n_nodes, n_leaves : int, default=16, 10
        Number of nodes, and number of leaves among them, which is at least half.
    n_labels : float, default=2.0
        Mean number of labels per sample, at least 1. (Samples that already have all
        leaves cannot have more.)
    n_extra_edges : int, default=0
        Number of additional edges from an inner node to a leaf that is not its child.
    class_sep : float, default=2.0
        How far a node moves the features.
    sparse : bool, default=False
        Whether to generate counts in a CSR matrix.
    n_active : int, default=50
        Number of draws of active features per sample, if `sparse=True`.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float64
        The samples.
    Y : ndarray of shape (n_samples, n_leaves), int64
        Indicator matrix of the leaves, which are the last `n_leaves` nodes.
    edges : ndarray of shape (n_nodes - 1 + n_extra_edges, 2), int64
        Pairs (parent, child) of nodes, 0 to `n_nodes - 1`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    make_multilabel : Labels without a hierarchy.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_hierarchical
    >>> X, Y, edges = make_hierarchical(n_nodes=5, n_leaves=3, random_state=0)
    >>> X.shape, Y.shape
    ((100, 50), (100, 3))
    >>> edges.tolist()
    [[0, 1], [0, 4], [1, 2], [1, 3]]
    """
    check_integer("n_samples", n_samples, 1)
    check_integer("n_features", n_features, 1)
    check_integer("n_nodes", n_nodes, 2)
    check_integer("n_leaves", n_leaves, (n_nodes + 1) // 2, n_nodes - 1)
    check_scalar(n_labels, "n_labels", Real, min_val=1, max_val=n_leaves)
    n_inner = n_nodes - n_leaves
    check_integer("n_extra_edges", n_extra_edges, 0, (n_inner - 1) * n_leaves)
    check_scalar(class_sep, "class_sep", Real, min_val=0)
    check_integer("n_active", n_active, 1)
    rng = check_random_state(random_state)

    parents, is_parent = _draw_hierarchy(n_inner, n_leaves, n_extra_edges, rng)
    popularity = rng.permutation(1.0 / np.arange(1, n_leaves + 1))
    n_drawn = np.minimum(1 + rng.poisson(n_labels - 1, size=n_samples), n_leaves)
    # Draws without replacement: the first of a race of exponential clocks.
    times = rng.exponential(size=(n_samples, n_leaves)) / popularity
    ranks = np.argsort(np.argsort(times, axis=1), axis=1)
    Y = (ranks < n_drawn[:, np.newaxis]).astype(np.int64)
    inner = Y @ is_parent.T
    for child, parent in reversed(list(enumerate(parents, start=1))):
        inner[:, parent] += inner[:, child]
    on = np.column_stack([inner > 0, Y]).astype(np.int64)

    X = _draw_features(on, n_features, class_sep, sparse and n_active, rng)
    edges = [
        np.column_stack([parents, np.arange(1, n_inner)]),
        np.argwhere(is_parent) + [0, n_inner],
    ]
    return X, Y, np.vstack(edges).astype(np.int64)


def _draw_hierarchy(n_inner, n_leaves, n_extra_edges, rng):
    """Parents of the inner nodes except the root; whether each is above each leaf."""
    parents = [rng.randint(n) for n in range(1, n_inner)]
    # Every inner node has a child.
    childless = np.setdiff1d(np.arange(n_inner), parents)
    above = np.append(childless, rng.randint(n_inner, size=n_leaves - len(childless)))
    is_parent = np.zeros((n_inner, n_leaves), dtype=bool)
    is_parent[rng.permutation(above), np.arange(n_leaves)] = True
    others = np.argwhere(~is_parent)
    extra = others[rng.permutation(len(others))[:n_extra_edges]]
    is_parent[tuple(extra.T)] = True
    return parents, is_parent


def _draw_features(Y, n_features, class_sep, n_active, rng):
    """Features of samples with the labels Y: dense, or counts of `n_active` draws."""
    n_samples, n_classes = Y.shape
    if n_active:
        words = _word_distributions(n_classes, n_features, class_sep, rng)
        words = np.vstack([words, np.full(n_features, 1 / n_features)])
        return _draw_words(words, _draw_topics(Y, n_active, rng), rng, binary=False)
    means = rng.normal(size=(n_classes, n_features)) / np.sqrt(n_features)
    return class_sep * Y @ means + rng.normal(size=(n_samples, n_features))


def _word_distributions(n_topics, n_features, class_sep, rng):
    """Distribution over the features for each topic, (n_topics, n_features)."""
    logits = class_sep * rng.normal(size=(n_topics, n_features))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _draw_topics(Y, n_draws, rng):
    """A label of the sample, or n_classes for none, for each of its draws."""
    n_samples, n_classes = Y.shape
    n_positive = Y.sum(axis=1, keepdims=True)
    positives_first = np.argsort(1 - Y, axis=1, kind="stable")
    which = rng.randint(n_positive + 1, size=(n_samples, n_draws))
    topics = np.take_along_axis(positives_first, np.minimum(which, n_classes - 1), axis=1)
    return np.where(which < n_positive, topics, n_classes)


def _draw_words(distributions, topics, rng, binary=True):
    """CSR matrix with one feature drawn for each topic of a row (n_rows, n_draws)."""
    n_features = distributions.shape[1]
    uniform = rng.uniform(size=topics.shape)
    words = np.empty(topics.shape, dtype=np.int32)
    for topic, distribution in enumerate(distributions):
        drawn = topics == topic
        words[drawn] = np.searchsorted(np.cumsum(distribution), uniform[drawn])
    # Rounding may leave the last cumulative sum below the draw.
    np.minimum(words, n_features - 1, out=words)
    indptr = np.arange(len(words) + 1) * words.shape[1]
    X = csr_matrix(
        (np.ones(words.size), words.ravel(), indptr), shape=(len(words), n_features)
    )
    X.sum_duplicates()
    if binary:
        X.data[:] = 1.0
    return X
