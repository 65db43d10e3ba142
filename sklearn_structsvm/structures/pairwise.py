"""Multilabel classification with interactions between pairs of labels."""

from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.borders import (
    as_array,
    as_dense,
    as_floats,
    check_choice,
    check_indices,
    check_shape,
)
from sklearn_structsvm.structures._callback import CallbackOracle
from sklearn_structsvm.structures._pairwise import (
    MAX_LABELS,
    EnumerationOracle,
    decode_all,
    flip_scores,
)
from sklearn_structsvm.structures._pairwise_relaxation import RelaxationOracle
from sklearn_structsvm.structures._qpbo import RoofDuality
from sklearn_structsvm.structures.constrained import check_rays
from sklearn_structsvm.structures.flat import FlatStructure, as_row
from sklearn_structsvm.structures.indicator import IndicatorLabels
from sklearn_structsvm.structures.polytope import (
    Polytope,
    load_highs,
    maximize_between,
    maximize_product,
    snapped,
)

PAIRWISE_INFERENCES = ("auto", "enumerate", "roof", "lp")


class PairwiseMultilabelStructure(IndicatorLabels, FlatStructure):
    r"""Several labels per example, with interactions between pairs of labels.

    A Markov random field over an indicator vector :math:`Y \in \{0, 1\}^k` [1]_. Its
    score sums over the labels l and over the chosen pairs (l, m):

    .. math:: \langle w, \phi(x, Y) \rangle = \sum_l Y_l (\langle w_l, x \rangle + b_l)
        + \sum_{(l, m)} V_{lm}[Y_l, Y_m].

    Labels can therefore attract or exclude one another. The joint feature map
    concatenates :math:`x \otimes Y`, in features-first order with a last row for the
    intercepts, and the indicators of the combinations 00, 01, 10 and 11 of each pair.

    Finding the best label set is NP-hard. For up to 18 labels all :math:`2^k` sets are
    enumerated, which is exact and takes 0.02 ms for 14 labels and 0.3 ms for 18. For more
    labels, a relaxation over the local polytope is solved instead. Training then includes
    its fractional labelings in the maximum: the hinge loss is at least that of the label
    sets, and the certificate refers to the relaxed problem. For margin rescaling with
    pairs that form a forest, the relaxation is exact. For slack rescaling it is not,
    since mixtures of label sets may violate the margin more than any single set.

    Read more in the :ref:`User Guide <guide-dependent-labels>`.

    Parameters
    ----------
    pairs : "all", "tree" or array-like of shape (n_pairs, 2), default="all"
        Pairs of columns of y that interact. "tree" uses the spanning tree with the
        largest mutual information in y [2]_.
    inference : {"auto", "enumerate", "roof", "lp"}, default="auto"
        How to find the best label set.

        - "enumerate" tries all sets.
        - "roof" solves the relaxation by roof duality [3]_, that is by maximum flow.
        - "lp" solves the relaxation as a linear program. It takes a hundred times as long
          and needs HiGHS (``pip install highspy``).
        - "auto" enumerates for up to 18 labels, and uses roof duality for more.
    normalize_loss : bool, default=False
        Whether to divide the Hamming loss by the number of labels.
    label_costs : array-like of shape (n_labels, 2) or None, default=None
        Costs of a wrong label: column 0 if it is predicted but absent, column 1 if it is
        missed. None means 1.

    Attributes
    ----------
    pairs_ : ndarray of shape (n_pairs, 2)
        Pairs in use.
    inference_ : {"enumerate", "roof", "lp"}
        Inference in use, with "auto" resolved.
    classes_ : ndarray of shape (n_labels,)
        Column indices of y.
    n_weights_ : int
        Dimension of the joint feature map: (n_features + 1) · n_labels + 4 · n_pairs with
        intercepts, n_labels less without.

    See Also
    --------
    MultilabelStructure : Independent labels.

    Notes
    -----
    The `coef_` of an estimator is the whole weight vector. `weight_parts` splits it.
    There is no `intercept_`.

    `decision_function` has one score per label: with enumeration, that of the best set
    with it minus that of the best set without it; with a relaxation, what it adds to the
    score of the predicted set. Up to ties, labels with positive scores are predicted.

    With a relaxation, predictions contain the labels that it determines, which are
    optimal. The others, with weight 1/2, start as absent; then single labels are flipped
    as long as this increases the score.

    References
    ----------
    .. [1] Finley, T. and Joachims, T. (2008). Training structural SVMs when exact
       inference is intractable. ICML 2008.
    .. [2] Chow, C. and Liu, C. (1968). Approximating discrete probability
       distributions with dependence trees. IEEE Trans. Information Theory 14.
    .. [3] Boros, E. and Hammer, P. (2002). Pseudo-Boolean optimization. Discrete
       Applied Mathematics 123.

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> from sklearn_structsvm.structures import PairwiseMultilabelStructure
    >>> X, Y = make_multilabel(n_samples=60, n_classes=4, random_state=0)
    >>> model = BCFWClassifier(PairwiseMultilabelStructure(), C=0.1, random_state=0)
    >>> model.fit(X, Y).predict(X).shape == Y.shape
    True
    >>> parts = model.structure_.weight_parts(model.coef_)
    >>> parts["pair"].shape
    (6, 2, 2)
    """

    # A labeling of the relaxation contains the pairs as well.
    variable_length = True
    labelings = IndicatorLabels.labelings

    def __init__(
        self,
        pairs: Literal["all", "tree"] | ArrayLike = "all",
        inference: Literal["auto", "enumerate", "roof", "lp"] = "auto",
        normalize_loss: bool = False,
        label_costs: ArrayLike | None = None,
    ) -> None:
        self.pairs = pairs
        self.inference = inference
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs

    def check_fitted(self) -> None:
        check_shape("pairs_", self.pairs_, "n_pairs", 2)
        super().check_fitted()
        check_indices("pairs_", self.pairs_, self._k)

    def _count_weights(self):
        return super()._count_weights() + 4 * len(self.pairs_)

    def _mean_sizes(self, X, weights):
        # A pair of labels has one of its four values.
        sizes = super()._mean_sizes(X, weights)
        return np.append(sizes, np.ones(4 * len(self.pairs_)))

    @property
    def _n_node_weights(self):
        return self.n_weights_ - 4 * len(self.pairs_)

    def _fit_labels(self, y, classes, class_weight):
        k = self._check_indicator(y, class_weight)
        self._fit_classes(classes, k)
        self._fit_costs()
        self.pairs_ = _read_pairs(self.pairs, self._encode(y))
        self.inference_ = _read_inference(self.inference, k)
        self._roof = RoofDuality(k, self.pairs_)
        if self.inference_ == "lp":
            load_highs()
            self._polytope = pairwise_polytope(k, self.pairs_)

    @property
    def _k(self):
        return len(self.classes_)

    @property
    def relaxed(self) -> bool:  # type: ignore[override]
        return self.inference_ != "enumerate"

    @property
    def has_slack_augmented_decode(self) -> bool:  # type: ignore[override]
        return getattr(self, "inference_", self.inference) == "lp"

    def make_oracle(self, X: Any, y: Any) -> BlockOracle:
        encoded = self._encode(np.asarray(y))
        if self.inference_ != "lp":
            exact = self.inference_ == "enumerate"
            oracle = EnumerationOracle if exact else RelaxationOracle
            return oracle(
                as_features(X),
                encoded,
                self.label_costs_,
                self.bias_,
                np.ascontiguousarray(self.pairs_, dtype=np.intp),
            )
        truths = [self._labeling(row) for row in encoded]
        return CallbackOracle(self, self._items(X), truths, self.n_weights_)

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Joint feature vector of shape (d,), or a CSR row if x is sparse.

        `y` is an indicator vector, or a labeling of the relaxation: the weights of the
        labels, followed by the weight of both labels being present, for each pair.
        """
        z = self._labeling(y)
        mu, both = z[: self._k], z[self._k :]
        first, second = mu[self.pairs_].T
        pairs = np.column_stack(
            [1.0 - first - second + both, second - both, first - both, both]
        )
        if sparse.issparse(x):
            row = sparse.coo_array(x).reshape((1, -1)).tocsr()
            values, places = row.data, row.indices
        else:
            values, places = np.ravel(x), np.arange(self.n_features_in_)
        if self.bias_:
            values = np.append(values, self.bias_)
            places = np.append(places, self.n_features_in_)
        values = np.append(np.outer(values, mu), pairs)
        if not sparse.issparse(x):
            return values
        places = np.add.outer(places * np.intp(self._k), np.arange(self._k))
        places = np.append(places, np.arange(self._n_node_weights, self.n_weights_))
        shape = (1, self.n_weights_)
        return sparse.csr_array((values, places, [0, len(values)]), shape=shape)

    def loss(self, y_true: Any, y: Any) -> float:
        """Sum of the costs of wrong labels, in proportion for fractional ones."""
        truth = self._labeling(y_true)[: self._k]
        costs, _ = self._costs(truth)
        return float(costs @ np.abs(self._labeling(y)[: self._k] - truth))

    def decision_function(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Compute scores of shape (n_samples, k), as described in the class's Notes."""
        singles, both = self._energies(X, w)
        if self.inference_ == "enumerate":
            return decode_all(singles, self._matrix_of_pairs(both), gains=True)
        return self._roof.decode_all(singles, both)[1]

    def decode_batch(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        singles, both = self._energies(X, w)
        if self.inference_ == "enumerate":
            pairwise = self._matrix_of_pairs(both)
            return self._labels(decode_all(singles, pairwise, n_threads=n_threads))
        return self._labels(self._roof.decode_all(singles, both, n_threads)[0])

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        """Maximize score plus `lam` times loss over label sets or over the relaxation.

        A labeling of the relaxation has shape (k + n_pairs,): the weights of the labels,
        and for each pair the weight of both being present.
        """
        if self.inference_ == "enumerate":
            oracle = self._compiled_oracle(as_row(x), np.asarray([y_true]))
            return self._labels(oracle.decode(w, lam))[0]
        (h, _), (g, _) = self._margin_and_loss(x, y_true, w)
        return self._maximize(h + lam * g)

    def constrained_decode(
        self,
        x: Any,
        y_true: Any,
        w: np.ndarray,
        lam: float,
        alpha: float,
        beta: float,
        strict_alpha: bool = False,
        strict_beta: bool = True,
    ) -> Any:
        """Maximize h + `lam` g subject to β h < g ≤ α h; None if this is infeasible.

        Enumeration covers all label sets with the requested strictness. The relaxation
        has infinitely many labelings, of which none may be the best strictly between the
        rays. It therefore always includes both rays, and the angle is empty if alpha <
        beta.
        """
        check_rays(lam, alpha, beta)
        if self.inference_ == "enumerate":
            return self._enumerate_within(
                x, y_true, w, lam, alpha, beta, strict_alpha, strict_beta
            )
        (h, h0), (g, g0) = self._margin_and_loss(x, y_true, w)
        if alpha < beta:
            return None
        if self.inference_ == "lp":
            return self._polytope.maximize_between(h + lam * g, h, h0, g, g0, alpha, beta)
        return maximize_between(self._maximize, h, h0, g, g0, lam, alpha, beta)

    def slack_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, one: float = 1.0
    ) -> Any:
        """Find the most violating labeling of the relaxation (inference "lp" only)."""
        if self.inference_ != "lp":
            raise NotImplementedError(
                "PairwiseMultilabelStructure has slack_augmented_decode with "
                f"inference='lp' only; it has {self.inference_!r}."
            )
        (h, h0), (g, g0) = self._margin_and_loss(x, y_true, w, one)
        return snapped(maximize_product(self._polytope.maximize, h, h0, g, g0))

    def split_weights(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return w, None

    def join_weights(self, coef: np.ndarray, intercept: Any) -> np.ndarray:
        return coef

    def weight_parts(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Split the weight vector into its named parts.

        Parameters
        ----------
        w : ndarray or sparse array of shape (`n_weights_`,)
            Weight vector, such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            "node" of shape (n_labels, n_features), "intercept" of shape (n_labels,), and
            "pair" of shape (n_pairs, 2, 2), which holds :math:`V_{lm}[Y_l, Y_m]` for the
            rows (l, m) of `pairs_`.
        """
        w = as_floats("w", as_dense(w, self.n_weights_), self.n_weights_)
        coef, intercept = self._matrix(w[: self._n_node_weights])
        return {
            "node": np.ascontiguousarray(coef.T),
            "intercept": intercept,
            "pair": np.reshape(w[self._n_node_weights :], (-1, 2, 2)),
        }

    def _labeling(self, y):
        """An indicator or a labeling of the relaxation as the latter."""
        y = as_array("y", y)
        k, m = self._k, len(self.pairs_)
        if y.shape == (k + m,) and y.dtype.kind == "f":
            return y
        mu = self._encode(y[np.newaxis])[0].astype(np.float64)
        return np.append(mu, mu[self.pairs_].prod(axis=1))

    def _costs(self, truth):
        """Cost of each label if it is wrong, and the sign of flipping it."""
        present = truth.astype(np.intp)
        return self.label_costs_[np.arange(self._k), present], 1.0 - 2.0 * present

    def _energies(self, X, w):
        """Scores of single labels and of pairs being present, above those of nothing."""
        w = as_floats("w", w, self.n_weights_)
        singles = super().decision_function(X, w[: self._n_node_weights])
        pair = np.reshape(w[self._n_node_weights :], (-1, 2, 2))
        first, second = self.pairs_.T
        alone = np.bincount(first, pair[:, 1, 0] - pair[:, 0, 0], self._k)
        alone += np.bincount(second, pair[:, 0, 1] - pair[:, 0, 0], self._k)
        both = pair[:, 0, 0] - pair[:, 0, 1] - pair[:, 1, 0] + pair[:, 1, 1]
        return np.ascontiguousarray(singles + alone), np.ascontiguousarray(both)

    def _matrix_of_pairs(self, both):
        pairwise = np.zeros((self._k, self._k))
        first, second = self.pairs_.T
        pairwise[first, second] = pairwise[second, first] = both
        return pairwise

    def _margin_and_loss(self, x, y_true, w, one=1.0):
        """(h, h0) and (g, g0): margin h·z + h0 and loss g·z + g0 of a labeling z."""
        singles, both = self._energies(as_row(x), w)
        truth = self._labeling(y_true)
        costs, signs = self._costs(truth[: self._k])
        h = np.append(singles[0], both)
        g = np.append(costs * signs, np.zeros(len(both)))
        return (h, one - h @ truth), (g, -(g @ truth))

    def _maximize(self, c):
        if self.inference_ == "lp":
            return self._polytope.maximize(c)
        return self._roof.maximize(c[: self._k], c[self._k :])

    def _enumerate_within(
        self, x, y_true, w, lam, alpha, beta, strict_alpha, strict_beta
    ):
        truth = self._encode(np.asarray([y_true]))[0]
        singles, both = self._energies(as_row(x), w)
        costs, signs = self._costs(truth)
        pairwise = self._matrix_of_pairs(both)
        # Flips are relative to the truth: see _pairwise.pyx.
        scores = flip_scores(
            signs * (singles[0] + pairwise @ truth), pairwise * np.outer(signs, signs)
        )
        h, g = 1.0 + scores, flip_scores(costs, np.zeros((self._k, self._k)))
        inside = _in_angle(h, g, alpha, beta, strict_alpha, strict_beta)
        if not inside.any():
            return None
        best = np.where(inside, h + lam * g, -np.inf).argmax()
        return self._labels(truth ^ (best >> np.arange(self._k) & 1))[0]


def pairwise_polytope(k, pairs):
    """max(0, μ_l + μ_m - 1) <= p <= min(μ_l, μ_m) over z = (μ, p) in [0, 1]^(k + m).

    `pairs` (m, 2).
    """
    m = len(pairs)
    rows, ones = np.arange(m), np.ones(m)
    both = sparse.csr_array((ones, (rows, k + rows)), shape=(m, k + m))
    first, second = (
        sparse.csr_array((ones, (rows, ends)), shape=(m, k + m)) for ends in pairs.T
    )
    A = sparse.vstack([both - first, both - second, first + second - both])
    return Polytope(A, np.repeat([0.0, 0.0, 1.0], m))


def _read_pairs(pairs, Y):
    """`pairs` as an array of shape (m, 2). ValueError if it is invalid."""
    k = Y.shape[1]
    if isinstance(pairs, str):
        if pairs not in ("all", "tree"):
            raise ValueError(
                f"pairs must be 'all', 'tree' or an array of shape (n_pairs, 2); "
                f"got {pairs!r}."
            )
        chosen = list(combinations(range(k), 2)) if pairs == "all" else _tree(Y)
        return np.array(chosen, dtype=np.intp).reshape(-1, 2)
    given = as_array("pairs", pairs)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            "pairs must hold two integers, columns of y, in each row; got an array of "
            f"shape {given.shape} and type {given.dtype}."
        )
    seen = set()
    for pair in map(tuple, given.tolist()):
        if not (0 <= min(pair) and max(pair) < k):
            raise ValueError(f"pairs must hold columns of y, 0 to {k - 1}; got {pair}.")
        if pair[0] == pair[1]:
            raise ValueError(f"pairs must be of two different labels; got {pair}.")
        if frozenset(pair) in seen:
            raise ValueError(f"pairs must contain each pair once; got {pair} again.")
        seen.add(frozenset(pair))
    return np.ascontiguousarray(given, dtype=np.intp)


def _read_inference(inference, k):
    check_choice("inference", inference, PAIRWISE_INFERENCES)
    if inference == "auto":
        return "enumerate" if k <= MAX_LABELS else "roof"
    if inference == "enumerate" and k > MAX_LABELS:
        raise ValueError(
            "inference='enumerate' tries all 2**k label sets and supports up to "
            f"{MAX_LABELS} labels; got {k}. Use 'roof' or 'auto'."
        )
    return inference


def _tree(Y):
    """Edges of a spanning tree of the columns with the largest mutual information."""
    information = _mutual_information(Y)
    # All values are positive, because zero means that there is no edge.
    lengths = 1.0 + information.max() - information
    edges = minimum_spanning_tree(np.triu(lengths, 1)).nonzero()
    return sorted(zip(*(ends.tolist() for ends in edges), strict=True))


def _mutual_information(Y):
    """I(Y_l; Y_m) in nats of the columns of an indicator, shape (k, k)."""
    n = len(Y)
    # Axes: absent or present for both labels, then the labels.
    values = np.stack([1 - Y, Y]).astype(np.float64)
    joint = values.swapaxes(1, 2)[:, np.newaxis] @ values / n
    alone = values.mean(axis=1)
    independent = alone[:, np.newaxis, :, np.newaxis] * alone[:, np.newaxis]
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
    return (joint * np.log(ratio)).sum(axis=(0, 1))


def _in_angle(h, g, alpha, beta, strict_alpha, strict_beta):
    """`constrained.in_angle` of many points."""
    right = h > 0
    slope = np.divide(g, h, out=g.copy(), where=right)
    low = np.where(right, beta, beta * h)
    above = slope > low if strict_beta else slope >= low
    if alpha == np.inf:
        return above & (right if strict_alpha else h >= 0)
    high = np.where(right, alpha, alpha * h)
    return above & (slope < high if strict_alpha else slope <= high)
