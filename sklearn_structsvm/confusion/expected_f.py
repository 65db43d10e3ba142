"""The set of labels with the largest expected F-measure for each row."""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm.confusion._expected_f import best_sizes
from sklearn_structsvm.confusion.ratios import MOST_BETA


def best_sets(rows, beta=1.0, only=0):
    r"""Sets of labels that maximize the expected F-measure of each row.

    .. math:: \max_{S} \; E \frac{(1 + \beta^2) |S \cap T|}{\beta^2 |T| + |S|}

    where the labels in T occur independently, each with its probability. The best set of
    a given size then consists of the most probable labels [1]_. One pass over the sizes,
    with the distribution of \|T\| without one label, finds the best size in O(m²) for m
    labels with positive probability. The algorithm of [2]_ has the same order for
    rational β²; the general one of [3]_ is for dependent labels. 0/0 is 0.

    `beta`: β. `only`: the only allowed size of a set, for `values`. 0 allows all sizes.
    Returns `matrix` (CSR (n, L), int64): the indicator of the sets; `values` (n,):
    their expected F-measures.

    .. [1] Lewis, "Evaluating and optimizing autonomous text classification systems",
       SIGIR 1995.
    .. [2] Ye, Chai, Lee, Chieu, "Optimizing F-measures: a tale of two approaches", ICML
       2012.
    .. [3] Waegeman, Dembczyński, Jachnik, Cheng, Hüllermeier, "On the Bayes-optimality of
       F-measure maximizers", JMLR 2014.
    """
    beta = as_floats("beta", beta)
    if not abs(beta) <= MOST_BETA:
        raise ValueError(f"The square of beta must be finite; got {beta}.")
    n, lengths = len(rows), np.diff(rows.starts)
    by_row = np.repeat(np.arange(n), lengths)
    order = np.lexsort((rows.labels, -rows.eta, by_row))
    sizes, values = np.empty(n, dtype=np.intp), np.empty(n)
    room = np.empty((3, lengths.max(initial=0) + 1))
    best_sizes(rows.starts, rows.eta[order], float(beta) ** 2, only, room, sizes, values)
    ranks = np.arange(len(order)) - rows.starts[by_row]
    kept = np.sort(order[ranks < sizes[by_row]])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    ones = np.ones(len(kept), dtype=np.int64)
    matrix = sparse.csr_array((ones, rows.labels[kept], starts), shape=(n, rows.n_labels))
    return matrix, values
