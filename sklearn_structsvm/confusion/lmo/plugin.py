"""The plug-in rule: the oracle over a sample, and what its classifiers predict.

Algorithms 9 and 10 of Narasimhan et al.: for a loss tensor L (m, k, k), the classifier
that minimizes <L, C> given a model of the class probabilities η predicts, for an x of
cell a, argmin_j Σ_i η_i(x) L[a, i, j] (Proposition 5). The classifier is represented by L
alone.

Algorithm 10 takes the group a = A(x) to be a function of x. If the group is not a
function of x and must not be used, <L, C> is the mean over x of Σ_a Σ_i P(a, i | x) L[a,
i, h(x)] which is smallest for h(x) = argmin_j Σ_a Σ_i P(a, i | x) L[a, i, j]: the same
rule with pairs of group and label as classes. If P(a | x) is 0 or 1, it is the rule of
Algorithm 10.
"""

import numpy as np
from sklearn.base import clone

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo._plugin import PluginBlocks, top_classes
from sklearn_structsvm.confusion.lmo.arguments import (
    as_cells,
    as_losses,
    as_probabilities,
)
from sklearn_structsvm.confusion.lmo.base import LMO, Minimizer

COUNTED = ("probabilities", "labels")

# This many rows are enough to estimate the class shares if these only determine an order
# of rows.
ROWS_FOR_SHARES = 4096


class PluginLMO(Minimizer, LMO):
    """The plug-in rule over a sample: the best classifier for a loss tensor, in one pass.

    P, in `fit` and in `predict`, contains class probabilities. For rules that do not see
    the groups, it contains those of the pairs (group, label), with groups varying
    slowest. Handles are loss tensors.

    `counted` ({"probabilities", "labels"}): what C is. "probabilities": C[a, i, j] is
    the mean of η_i(x) over the predictions j in cell a, the confusion under the model;
    for it the plug-in rule is the best of all classifiers. "labels": shares of the
    sample's labels, as in Algorithm 9; for them the rule is a good classifier, not the
    best one. `n_groups`: g, where the rules are not to see the groups: P has g k
    columns, and of the m cells the first m / g are of the first group, and so on. A
    rule sees no more of a cell than its place among those of its group. `n_threads`: no
    bit of a result depends on it.

    Attributes: `exact`: whether bounds are true: for "probabilities". `shape_`: (m, k,
    k). `priors_` (m, k): Σ_j C[a, i, j], which no classifier changes. `n_terms`: the
    number of examples, of which entries are sums. `unit`: the unit roundoff of the
    probabilities, by which choices are made.

    If off-diagonal costs are sums of one number for the label and one for the
    prediction, a row takes k multiplications; else it takes k².
    """

    def __init__(self, counted="probabilities", *, n_groups=1, n_threads=1):
        self.counted = counted
        self.n_groups = n_groups
        self.n_threads = n_threads

    @property
    def exact(self):
        """Whether bounds are valid."""
        return self.counted == "probabilities"

    @property
    def separable(self):
        """Whether C[a] depends on L[a] only, for each cell a."""
        return self.n_groups == 1

    def fit(self, P, y=None, sample_weight=None, cells=None, n_cells=None):
        """Read the sample once.

        `P` (n, g k): class probabilities of each example. float32 values are processed
        in float32, in half the time, and others in float64. `y` (n,): labels as 0, ...,
        k - 1; None if only probabilities are counted. `cells` (n,): 0, ..., n_cells -
        1; None for all zero. ValueError for probabilities that are negative or do not
        sum to one, labels or cells out of range, and weights that are negative, not
        finite or all zero.
        """
        P = as_probabilities(P)
        n, k = len(P), _n_labels(P, self.n_groups)
        check_choice("counted", self.counted, COUNTED)
        if self.counted == "labels" and y is None:
            raise ValueError("counted='labels' needs y.")
        y = None if y is None else check_codes(y, n, k)
        cells, m = as_cells(cells, n, n_cells)
        weights = check_weights(sample_weight, n)
        self.shape_ = (m, k, k)
        # The rule sees pairs of group and label, and the remaining part of the cell.
        group, cells = np.divmod(cells, m // self.n_groups)
        if self.n_groups > 1 and y is not None:
            y = group * k + y
        k = P.shape[1]
        key = cells if y is None else cells * k + y
        self._examples = P, cells, weights
        ties = likely_choices(P, weights, self.n_threads) if self.exact else None
        order, ends, keys = segments(key, weights, ties)
        by_label = (keys, None) if y is None else np.divmod(keys, k)
        if np.ptp(weights[order]) == 0.0:
            weights = None
        self._blocks = PluginBlocks(P, order, ends, *by_label, weights, self.n_threads)
        self.priors_ = self._confusion(np.zeros(self.shape_), self.counted).sum(axis=2)
        self.n_terms, self.unit = n, float(np.finfo(P.dtype).eps) / 2.0
        return self

    def examples(self):
        """(cells, masses) of the examples, shapes (n,) and (n, k), or None.

        All classifiers are the rules that assign each example a class, or several with
        weights, if bounds are valid for them.
        """
        if not (self.exact and self.separable):
            return None
        P, cells, weights = self._examples
        masses = np.asarray(P, dtype=np.float64) * weights[:, None]
        return cells, masses / weights.sum()

    def __call__(self, L):
        """The plug-in classifier of L.

        `L` (m, k, k). Returns `C` (m, k, k): its confusion tensor; `handle` (m, k, k):
        a copy of L, from which `predict` predicts; `bound`: <L, C>, which is the
        minimum over all classifiers if `exact`.
        """
        L = as_losses(L, self.shape_).copy()
        C = self._confusion(L, self.counted)
        return C, L, float(np.vdot(L, C))

    def confusion(self, L, counted=None):
        """Confusion tensor of the plug-in classifier of L.

        `counted` or None: by default that of the class.
        """
        return self._confusion(as_losses(L, self.shape_), counted or self.counted)

    def predict(self, handle, P, cells=None):
        """Labels that the plug-in classifier of a loss tensor gives."""
        return predict_plugin(
            P, handle, cells, n_groups=self.n_groups, n_threads=self.n_threads
        )

    def without_examples(self):
        """An unfitted copy, which is all that `predict` needs."""
        return clone(self)

    def mixture_confusion(self, Ls, weights, counted=None):
        """Confusion tensor of a randomized classifier, the mean over its parts."""
        tensors = [self.confusion(L, counted) for L in Ls]
        return np.tensordot(weights, tensors, axes=1)

    def _confusion(self, L, counted):
        L = by_pair(L, self.n_groups)
        if counted == "labels":
            C = self._blocks.count(L, self.n_threads)
        else:
            C = self._blocks.sum(L, self.n_threads)
        C /= C.sum()
        return by_cell(C, self.n_groups)


def by_pair(L, n_groups):
    """Convert loss tensors from cells and labels to pairs (group, label).

    `L` (..., g p, k, q): losses for p cells in each of g groups. The result is a copy
    if g > 1. Returns (..., p, g k, q).
    """
    if n_groups == 1:
        return L
    *rest, m, k, q = L.shape
    p = m // n_groups
    split = np.moveaxis(L.reshape(*rest, n_groups, p, k, q), -4, -3)
    return np.ascontiguousarray(split.reshape(*rest, p, n_groups * k, q))


def by_cell(C, n_groups):
    """The inverse of `by_pair`, of one tensor."""
    if n_groups == 1:
        return C
    p, pairs, q = C.shape
    k = pairs // n_groups
    split = np.moveaxis(C.reshape(p, n_groups, k, q), 1, 0)
    return split.reshape(n_groups * p, k, q)


def _n_labels(P, n_groups):
    """The number k of classes, given probabilities of shape (n, g k)."""
    k, rest = divmod(P.shape[1], n_groups)
    if rest:
        raise ValueError(
            f"Probabilities of pairs of {n_groups} groups and the labels must have as "
            f"many columns for each group; got shape {P.shape}."
        )
    return k


def predict_plugin(P, L, cells=None, *, n_groups=1, n_threads=1):
    """Predictions of the plug-in classifier of a loss tensor.

    `L` (g p, k, k), or (k, k). `P` (n, g k): probabilities of the classes, or of the
    pairs of group and label if g > 1. `cells` (n,): the cell of each row within its
    group, 0, ..., p - 1. None means all zero. `n_groups`: g. Returns (n,), intp:
    argmin_j Σ_i η_i L[a, i, j], or with groups argmin_j Σ_ai η_ai L[a, i, j]; the first
    one in case of ties.
    """
    P = as_probabilities(P)
    n, k = len(P), _n_labels(P, n_groups)
    L = by_pair(as_losses(L, (-1, k, k)), n_groups)
    chosen = np.zeros(n, dtype=np.int32)
    if n:
        _blocks_by_cell(P, cells, len(L), n_threads).predict(L, chosen, n_threads)
    return chosen.astype(np.intp)


def mixture_proba(P, Ls, weights, cells=None, *, n_groups=1, n_threads=1):
    """How probable each prediction of a randomized plug-in classifier is.

    `P` (n, g k), `Ls` (T, g p, k, k). `weights` (T,): the probability of each plug-in
    classifier. `cells`, `n_groups` as of `predict_plugin`. Returns (n, k), float64: sum
    of the weights of the classifiers that predict each class.
    """
    P = as_probabilities(P)
    n, k = len(P), _n_labels(P, n_groups)
    Ls = np.asarray(Ls, dtype=np.float64)
    T, m = Ls.shape[:2]
    losses = as_losses(Ls.reshape(-1, k, k), (T * m, k, k)).reshape(T, m, k, k)
    losses = by_pair(losses, n_groups)
    weights = np.require(weights, np.float64, "CA")
    if weights.shape != (T,):
        raise ValueError(f"weights must have shape ({T},); got {weights.shape}.")
    out = np.zeros((n, k))
    if n:
        blocks = _blocks_by_cell(P, cells, losses.shape[1], n_threads)
        blocks.mix(losses, weights, out, n_threads)
    return out


def _blocks_by_cell(P, cells, m, n_threads):
    cells, _ = as_cells(cells, len(P), m)
    order, ends, found = segments(cells, None, None)
    return PluginBlocks(P, order, ends, found, None, None, n_threads)


def likely_choices(P, weights, n_threads):
    """A key for each row. Many rules treat rows with equal keys alike.

    The key contains the choices of the rules with equal and with balanced costs. Sums
    over the rows with the same choice are faster if these rows are adjacent.
    """
    rows = np.flatnonzero(weights)
    rows = rows[:: max(1, len(rows) // ROWS_FOR_SHARES)]
    shares = P[rows].mean(axis=0, dtype=np.float64)
    balanced = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0.0)
    return top_classes(P, balanced.astype(P.dtype), n_threads)


def segments(key, weights, ties):
    """The rows in the order of their keys, without rows of weight zero.

    `weights` (n,) or None. `key` (n,), int: not negative. `ties` (n,), int or None:
    order of the rows with equal keys. Not negative. Returns `order` (n_kept,), intp;
    `ends` (ndarray, intp): the end of each occurring key's rows in `order`; `keys`
    (ndarray, intp): the keys that occur, ascending.
    """
    if ties is None:
        order = _stable_order(key)
    else:
        order = _stable_order(ties)
        order = order[_stable_order(key[order])]
    if weights is not None:
        order = order[weights[order] > 0.0]
    in_order = key[order]
    ends = np.flatnonzero(np.append(np.diff(in_order) != 0, True)) + 1
    return order, ends, in_order[ends - 1].astype(np.intp)


def _stable_order(values):
    """Indices that sort the values, in linear time if they fit into 16 bits."""
    values = values.astype(np.min_scalar_type(int(values.max(initial=0))))
    return np.argsort(values, kind="stable")
