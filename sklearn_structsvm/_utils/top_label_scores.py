"""Scores of the k labels that rank first in each row, among many labels."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sklearn_structsvm._utils.borders import (
    as_floats,
    check_integer,
    check_shape,
    check_sparse,
)
from sklearn_structsvm._utils.indicators import as_indicator, largest_of_rows
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.weights import check_weights

__all__ = ["label_propensities", "ndcg_at_k_score", "precision_at_k_score"]


@with_plain_calls
def precision_at_k_score(
    y_true: Any,
    y_score: Any,
    k: int,
    *,
    propensities: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of right labels among the k that rank first in each row.

    .. math:: \frac{\sum_i s_i \sum_{l \in \mathrm{top}_k(i)} y_{il}}{k \sum_i s_i}

    With propensities, a correct label counts :math:`1 / p_l`, where :math:`p_l` is the
    probability that label l was recorded where it applies. The score is then relative to
    that of the best k labels of each row [1]_:

    .. math::

        \frac{\sum_i s_i \sum_{l \in \mathrm{top}_k(i)} y_{il} / p_l}
        {\sum_i s_i \max_{|T| \le k} \sum_{l \in T} y_{il} / p_l}

    Read more in the :ref:`User Guide <guide-top-labels>`.

    Parameters
    ----------
    y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Label indicator matrix.
    y_score : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Scores or probabilities. Of a sparse matrix only stored entries rank. Ties go to
        the first label.
    k : int
        Number of labels of a row that count, from 1 to n_labels.
    propensities : array-like of shape (n_labels,), default=None
        In (0, 1], for example by :func:`label_propensities` of the training labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    score : float
        From 0 to 1; with propensities 0 if no row has a label.

    Raises
    ------
    ValueError
        For arguments of other shapes or values.

    References
    ----------
    .. [1] Jain, Prabhu, Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking and other missing label applications", KDD 2016.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import precision_at_k_score
    >>> y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> y_score = [[0.9, 0.5, 0.3, 0.1], [0.2, 0.7, 0.4, 0.6]]
    >>> precision_at_k_score(y_true, y_score, k=2)
    0.5
    """
    gains, best, weights, _ = _top_gains(y_true, y_score, k, propensities, sample_weight)
    if propensities is None:
        return float(weights @ gains.sum(axis=1) / (k * weights.sum()))
    return _share(weights @ gains.sum(axis=1), weights @ best.sum(axis=1))


@with_plain_calls
def ndcg_at_k_score(
    y_true: Any,
    y_score: Any,
    k: int,
    *,
    propensities: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Normalized discounted cumulative gain of the k labels that rank first in each row.

    .. math::

        \frac{1}{\sum_i s_i} \sum_i s_i \, \frac{\sum_{t=1}^k y_{i l_t} / \log_2(t + 1)}
        {\sum_{t=1}^{\min(k, |y_i|)} 1 / \log_2(t + 1)},

    where :math:`l_t` is the label of row i that ranks t-th. A row without any label
    counts as 0. With propensities :math:`p_l`, a correct label counts :math:`1 / p_l`,
    and the score is relative to that of the best order [1]_.

    Read more in the :ref:`User Guide <guide-top-labels>`.

    Parameters
    ----------
    y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Label indicator matrix.
    y_score : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Scores or probabilities. Of a sparse matrix only stored entries rank. Ties go to
        the first label.
    k : int
        Number of labels of a row that count, from 1 to n_labels.
    propensities : array-like of shape (n_labels,), default=None
        In (0, 1], for example by :func:`label_propensities` of the training labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    score : float
        From 0 to 1; with propensities 0 if no row has a label.

    Raises
    ------
    ValueError
        For arguments of other shapes or values.

    References
    ----------
    .. [1] Jain, Prabhu, Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking and other missing label applications", KDD 2016.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import ndcg_at_k_score
    >>> y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> y_score = [[0.9, 0.5, 0.3, 0.1], [0.2, 0.7, 0.4, 0.6]]
    >>> round(ndcg_at_k_score(y_true, y_score, k=2), 3)
    0.807
    """
    gains, best, weights, sizes = _top_gains(
        y_true, y_score, k, propensities, sample_weight
    )
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    norms = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(sizes, k)]
    # Rows without a label have no gains.
    per_row = weights / np.where(norms > 0.0, norms, 1.0)
    found = per_row @ (gains @ discounts)
    if propensities is None:
        return float(found / weights.sum())
    return _share(found, per_row @ (best @ discounts))


@with_plain_calls
def label_propensities(y: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    r"""Estimate how likely each label is to be recorded where it applies.

    .. math:: p_l = \frac{1}{1 + c (n_l + b)^{-a}}, \quad c = (\log n - 1) (b + 1)^a,

    where label l is in :math:`n_l` of the n rows: rare labels are missed more often.
    This is the model of Jain et al. [1]_, with their constants a and b for Wikipedia;
    they take a = 0.6 and b = 2.6 for products of Amazon.

    Read more in the :ref:`User Guide <guide-top-labels>`.

    Parameters
    ----------
    y : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Label indicator matrix of the training data, of at least 3 rows.
    a, b : float, default=0.55, 1.5
        Parameters of the model: a is at least 0, and b is positive.

    Returns
    -------
    propensities : ndarray of shape (n_labels,)
        In (0, 1].

    Raises
    ------
    ValueError
        If y is not an indicator matrix of at least 3 rows.

    References
    ----------
    .. [1] Jain, Prabhu, Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking and other missing label applications", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.metrics import label_propensities
    >>> y = np.zeros((1000, 2))
    >>> y[:500, 0] = y[:5, 1] = 1
    >>> label_propensities(y).round(2).tolist()
    [0.76, 0.22]
    """
    matrix, _ = as_indicator(y)
    n = matrix.shape[0]
    if n < 3:
        raise ValueError(f"The propensity model needs at least 3 rows; y has {n}.")
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number; got {value!r}.")
    if not (np.isfinite([a, b]).all() and a >= 0.0 and b > 0.0):
        raise ValueError(f"a must be at least 0, and b must be positive; got {a}, {b}.")
    c = (np.log(n) - 1.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + c * (matrix.sum(axis=0) + b) ** -a)


def _top_gains(y_true, y_score, k, propensities, sample_weight):
    """Gains of the first labels and of the best, each (n, k); weights and sizes."""
    truth, _ = as_indicator(y_true)
    n, n_labels = truth.shape
    if sparse.issparse(y_score):
        check_sparse(y_score, "y_score")
        check_shape("y_score", y_score, n, n_labels)
        scores = y_score.tocsr()
        as_floats("y_score", scores.data, scores.nnz)
    else:
        scores = as_floats("y_score", y_score, n, n_labels)
    check_integer("k", k, 1, n_labels)
    gain = np.ones(n_labels)
    if propensities is not None:
        p = as_floats("propensities", propensities, n_labels)
        if not ((p > 0.0) & (p <= 1.0)).all():
            raise ValueError("propensities must be greater than 0 and at most 1.")
        gain = 1.0 / p
    weights = check_weights(sample_weight, n)
    top = largest_of_rows(scores, k)
    # The rank of a label is its place in the row.
    rows = np.repeat(np.arange(n), np.diff(top.indptr))
    ranks = np.arange(top.nnz) - top.indptr[rows]
    gains = np.zeros((n, k))
    worth = truth @ sparse.dia_array((gain[None], [0]), shape=(n_labels, n_labels))
    gains[rows, ranks] = np.asarray(worth.tocsr()[rows, top.indices]).ravel()
    best, best_of = np.zeros((n, k)), largest_of_rows(worth, k)
    rows = np.repeat(np.arange(n), np.diff(best_of.indptr))
    best[rows, np.arange(best_of.nnz) - best_of.indptr[rows]] = best_of.data
    return gains, best, weights, np.diff(truth.indptr)


def _share(found, possible):
    return float(found / possible) if possible > 0.0 else 0.0
