"""Label sequences with first-order transitions."""

from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix._features import FeaturesBeside
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.columns import (
    mean_sizes,
    n_entries,
    sum_of_squares,
    transposed_product,
)
from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._chain import ChainOracle
from sklearn_structsvm.structures._edge_chain import EdgeChainOracle
from sklearn_structsvm.structures._k_best import check_potentials
from sklearn_structsvm.structures._run_lengths import k_best_runs, run_marginals
from sklearn_structsvm.structures.allowed_labels import NoLongRuns
from sklearn_structsvm.structures.base import boxed
from sklearn_structsvm.structures.chain_curvature import ChainCurvature
from sklearn_structsvm.structures.forest import ForestStructure
from sklearn_structsvm.structures.spans import Span, TagTables, scheme_of


class ChainStructure(ForestStructure):
    r"""Label sequences, with dependencies between adjacent positions.

    With the features :math:`x_t` of position t and one-hot vectors e, the joint feature
    map concatenates

    - emissions, :math:`\sum_t x_t \otimes e_{y_t}`;
    - a bias, :math:`\sum_t e_{y_t}`;
    - biases of the first and the last position, :math:`e_{y_1}` and :math:`e_{y_T}`;
    - transitions, :math:`\sum_{t > 1} e_{y_{t-1}} \otimes e_{y_t}`.

    Each part can be left out. Decoding is exact, by the Viterbi algorithm. The loss is
    the sum of label costs over the positions, which are 1 for each error by default. In
    training y may be a pair (labels, weights), with a weight :math:`\omega_t` for each
    position, by which its errors count:

    .. math:: L(y, y') = \sum_t \omega_t \, c(y_t, y'_t) / \sum_t \omega_t.

    With `edge_features`, transitions depend on what lies between two positions, such as
    the time: an item is a pair (features, edge_features), with a row :math:`z_t` of edge
    features for each of the T - 1 steps, and the joint feature map has also
    :math:`\sum_{t > 1} z_t \otimes e_{y_{t-1}} \otimes e_{y_t}`. If z is the logarithm of
    a gap, a long gap can make a change of label likelier. Scale z like features. All that
    chains can do is as exact as before. A thread needs memory for five tables of
    :math:`k^2` numbers at each position, for k classes, and training for one table (a
    CRF for two) for each sequence and edge feature.

    Read more in the :ref:`User Guide <guide-chains>`.

    Parameters
    ----------
    emission : bool, "given" or "both", default=True
        Whether features have weights. "given" is for features that are scores already, a
        column for each class in the order of `classes_`, such as the logits of a network
        or ``predict_log_proba`` of another classifier: they have one weight together,
        their scale. "both" is for items that are pairs (features, scores): the features,
        dense or CSR, have weights, and the dense scores beside them have their scale.
    transition, bias, first_bias, last_bias : bool, default=True
        Which other parts the model has.
    normalize_loss : bool, default=True
        Whether to divide the loss of a sequence by its length, as in [1]_, or by the sum
        of its weights.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        ``label_costs[truth, label]`` is the cost of one wrong label: nonnegative, zero on
        the diagonal, in the order of `classes_`. None means 1 off the diagonal.
    transitions : str, ndarray of bool, list of pairs or None, default=None
        Which labels may follow which. Forbidden transitions are never predicted, have
        probability 0, and are excluded from the maximum in training. A true labeling that
        contains one raises an error. This does not depend on `transition`, which says
        whether pairs of labels have weights.

        - None allows all transitions.
        - "bio" is for labels "O", "B-x" and "I-x" of types x: "I-x" may follow only "B-x"
          and "I-x". In "bioes", also called "iobes", chunks of several positions end with
          "E-x" and single positions are "S-x". "iob1", "bilou" and "bmes" are those of
          :func:`~sklearn_structsvm.preprocessing.convert_tags`. "runs" allows all, and
          says that `predict_spans` reads each run of a label but "O" as an entity.
        - A mask of shape (n_classes, n_classes), in the order of `classes_`, is True
          where the next label (column) may follow the previous one (row). An additional
          row says which labels may come first, and an additional column which may come
          last.
        - A list of forbidden pairs (previous label, next label). None in a pair stands
          for the beginning or the end.
    edge_features : bool, default=False
        Whether items are pairs (features, edge_features), dense or CSR; with
        ``emission="both"``, ((features, scores), edge_features).

    Attributes
    ----------
    allowed_ : ndarray of shape (n_classes + 1, n_classes + 1), dtype bool, or None
        The allowed transitions as a mask, including the row for the beginning and the
        column for the end.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_edge_features_ : int
        Number of features of an edge, with `edge_features`.
    n_features_in_ : int
        Number of features of a position.
    n_weights_ : int
        Dimension of the joint feature map.

    References
    ----------
    .. [1] Osokin et al., "Minding the gaps for block Frank-Wolfe optimization of
       structured SVMs", ICML 2016, appendix I.1.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_chains
    >>> from sklearn_structsvm.structures import ChainStructure
    >>> X, y = make_chains(n_samples=5, n_features=4, n_classes=3, random_state=0)
    >>> structure = ChainStructure(first_bias=False, last_bias=False).fit(X, y)
    >>> structure.n_weights_ == 4 * 3 + 3 + 3 * 3
    True
    >>> float(structure.loss(y[0], y[0]))
    0.0
    """

    _parameter_constraints = ForestStructure._parameter_constraints | dict.fromkeys(
        ("first_bias", "last_bias", "edge_features"), ["boolean"]
    )
    _dual_is_of_labels = True
    _biases = ("bias", "first_bias", "last_bias")
    _item, _place = "sequence", "position"
    _forbidden = "begins with {!r}", "has {!r} before {!r}", "ends with {!r}"

    def __init__(
        self,
        emission: bool | Literal["given", "both"] = True,
        transition: bool = True,
        bias: bool = True,
        first_bias: bool = True,
        last_bias: bool = True,
        normalize_loss: bool = True,
        label_costs: ArrayLike | None = None,
        transitions: str | ArrayLike | None = None,
        edge_features: bool = False,
    ) -> None:
        self.emission = emission
        self.transition = transition
        self.bias = bias
        self.first_bias = first_bias
        self.last_bias = last_bias
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs
        self.transitions = transitions
        self.edge_features = edge_features

    def _check_parameters(self):
        super()._check_parameters()
        if self.edge_features and not self.transition:
            raise ValueError(
                "edge_features=True needs transition=True: edges have no weights "
                "otherwise."
            )

    def _rows(self, x):
        return x[0] if self.edge_features else x

    def _checked(self, X, y=None):
        if not self.edge_features:
            X = self._check_rows(X)
            return X, None if y is None else validation.check_labels(y, X)
        parts, why = "(features, edge_features)", " with edge_features=True"
        rows, edges = zip(*validation.list_of_pairs(X, parts, why=why), strict=True)
        rows = self._check_rows(list(rows), "[0]")
        known = getattr(self, "n_edge_features_", None)
        edges = validation.check_edge_rows(edges, rows, known)
        if y is not None:
            y = validation.check_labels(y, rows, part="[0]")
        return list(zip(rows, edges, strict=True)), y

    def _learn(self, X, labels, classes, class_weight):
        if self.edge_features:
            self.n_edge_features_ = X[0][1].shape[1]
        super()._learn(X, labels, classes, class_weight)

    def _fitted_shapes(self):
        own = {"n_edge_features_": ()} if self.edge_features else {}
        return super()._fitted_shapes() | own

    def _transition_shape(self):
        shape = super()._transition_shape()
        return (1 + self.n_edge_features_, *shape) if self.edge_features else shape

    def weight_parts(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Split the weight vector into its named parts.

        Parameters
        ----------
        w : ndarray or sparse array of shape (`n_weights_`,)
            Weight vector, such as the `coef_` of an estimator.

        Returns
        -------
        dict of ndarray
            The parts that the model has: "emission" of shape (n_features, n_classes), or
            of shape (1,) if it is "given", "scale" of shape (1,) if it is "both", biases
            of shape (n_classes,), "transition" of shape (n_classes, n_classes), indexed
            by the label of the previous position, and then by the label itself, and
            "edge_transition" of shape (n_edge_features, n_classes, n_classes).
        """
        parts = super().weight_parts(w)
        if self.edge_features:
            own = parts["transition"]
            parts |= {"transition": own[0], "edge_transition": own[1:]}
        return parts

    def _n_entries(self, x):
        of_edges = n_entries(x[1]) if self.edge_features else 0
        return super()._n_entries(x) + of_edges

    def _edge_matrices(self, X):
        return (x[1] for x in X) if self.edge_features else ()

    def _mean_squares_of_pairs(self, X, weights, n_nodes):
        own = super()._mean_squares_of_pairs(X, weights, n_nodes)
        if not self.edge_features:
            return own
        squares = sum(w * sum_of_squares(x[1]) for x, w in zip(X, weights, strict=True))
        return np.concatenate([own, np.repeat(squares / len(own), len(own))])

    def _mean_sizes_of_pairs(self, X, weights, n_nodes):
        sizes = super()._mean_sizes_of_pairs(X, weights, n_nodes)
        if self.edge_features:
            k = len(self.classes_)
            own = mean_sizes([x[1] for x in X], weights)
            sizes[k * k :] = np.repeat(own, k * k)
        return sizes

    def _sum_of_pairs(self, x, before, after):
        total = super()._sum_of_pairs(x, before, after)
        if not self.edge_features:
            return total
        pairs = before[:, :, np.newaxis] * after[:, np.newaxis]
        of_edges = transposed_product(x[1], pairs.reshape(len(pairs), total.size))
        return np.concatenate([np.ravel(total), np.ravel(of_edges)])

    def potentials(self, x: Any, w: np.ndarray) -> Any:
        """Compute the scores of labels and of transitions.

        The score of a labeling is the sum of ``theta[t, y[t]]`` over positions t, plus
        the sum of ``transitions[y[t - 1], y[t]]`` over positions t > 0, or of
        ``transitions[t - 1, y[t - 1], y[t]]`` with `edge_features`. `transitions` is None
        if the model has none.

        Returns
        -------
        theta : ndarray of shape (T, n_classes)
            Scores of the labels at each position.
        transitions : ndarray of shape (n_classes, n_classes) or None
            Scores of the transitions; of shape (T - 1, n_classes, n_classes) with
            `edge_features`.
        """
        if not self.edge_features:
            return super().potentials(x, w)
        (x,), _ = self._checked([x])
        parts, k = self.weight_parts(w), len(self.classes_)
        of_edges = parts["edge_transition"].reshape(-1, k * k)
        pairs = np.reshape(x[1] @ of_edges, (-1, k, k)) + parts["transition"]
        return self._node_scores(x, parts), pairs

    def make_oracle(
        self,
        X: Any,
        y: Any,
        allowed: Any = None,
        known: Any = None,
        added: Any = None,
    ) -> BlockOracle:
        truth = self._truth(X, y)
        features = self._node_features(X, allowed=allowed)
        features = self._with_costs(features, added, y, truth, known)
        nodes = features, self._starts(X)
        options = self._loss_options(y, truth, known) | {
            "bias": self.bias,
            "first": self.first_bias,
            "last": self.last_bias,
            "allowed": self.allowed_,
        }
        if not self.edge_features:
            return ChainOracle(*nodes, truth, transition=self.transition, **options)
        edges = as_features([x[1] for x in X])
        ones = as_features(np.ones((edges.n_rows, 1)))
        return EdgeChainOracle(*nodes, FeaturesBeside(ones, edges), truth, **options)

    @property
    def _has_curvature(self) -> bool:
        """Whether `_make_curvature` knows the features, which another model may give."""
        return not (self._is_given or self._has_both or self.edge_features)

    def _make_curvature(self, X, weights, labels=None, added=None, centers=None):
        """The second derivatives of the log-loss of data as checked.

        Or of the logarithms of the sums over labelings of these labels alone. `added`:
        numbers that are added to the scores of all positions, or None. `centers`: what
        is subtracted from the features, or None.
        """
        return ChainCurvature(self, X, weights, labels, added, centers)

    def _forest(self, X):
        offsets = self._starts(X)
        parents = np.arange(offsets[-1]) - 1
        parents[offsets[:-1]] = -1
        return parents, offsets

    def _order(self, x):
        return slice(None), None

    def _edges(self, x):
        return slice(None, -1), slice(1, None)

    def _bias_nodes(self, x):
        return {
            "bias": slice(None),
            "first_bias": slice(0, 1),
            "last_bias": slice(-1, None),
        }

    def _barred_potentials(self, x, w, allowed):
        """Potentials that score forbidden labelings -inf; `allowed` may be None."""
        theta, transition = self.potentials(x, w)
        if transition is None:
            transition = np.zeros((len(self.classes_), len(self.classes_)))
        if transition.ndim == 3:
            transition = tables.by_node(transition, len(theta))
        theta, transition = check_potentials(theta, transition)
        if allowed is not None:
            theta = np.where(allowed, theta, -np.inf)
        if self.allowed_ is not None:
            theta, transition = tables.barred(self.allowed_, theta, transition)
        return theta, transition

    def _of_long_runs(self, of_one, X, w, lengths, allowed):
        """What a function of potentials finds if runs of label k are lengths[k] long."""
        found = []
        for i, x in enumerate(X):
            own = None if allowed is None else allowed[i]
            theta, transition = self._barred_potentials(x, w, own)
            least = lengths
            if len(theta) < lengths.min():
                # A sequence that is shorter than all of them is one run.
                least = np.full_like(lengths, len(theta))
            found.append(of_one(theta, transition, least))
            if found[-1] is None:
                raise NoLongRuns(i)
        return found

    def _best_runs(
        self, X: Any, w: np.ndarray, lengths: Any, allowed: Any = None, k: int = 1
    ) -> Any:
        """The k best labelings with such runs, and their scores, of each sequence."""
        found = self._of_long_runs(partial(k_best_runs, k=k), X, w, lengths, allowed)
        return [(self.classes_[codes], scores) for codes, scores in found]

    def _least_costly_runs(
        self, X: Any, w: np.ndarray, lengths: Any, allowed: Any = None
    ) -> Any:
        """The labelings with such runs of the least expected cost; see `_best_runs`."""

        def of_one(theta, transition, least):
            sums = run_marginals(theta, transition, least)
            if sums is None:
                return None
            gains = np.where(np.isneginf(theta), theta, -sums[0] @ self.label_costs_)
            return k_best_runs(
                gains, np.where(np.isneginf(transition), transition, 0.0), least
            )

        found = self._of_long_runs(of_one, X, w, lengths, allowed)
        return [(self.classes_[codes], scores) for codes, scores in found]

    def _run_sums(self, X: Any, w: np.ndarray, lengths: Any, allowed: Any = None) -> Any:
        """Marginals over labelings with such runs, and the logs of their sums."""
        return self._of_long_runs(run_marginals, X, w, lengths, allowed)

    def span_tables(self) -> TagTables:
        """The tables of entity tags. ValueError if the classes are not entity tags."""
        return TagTables(self.classes_, scheme_of(self.transitions))

    def spans(
        self,
        x: Any,
        w: np.ndarray,
        tags: TagTables,
        threshold: float | None = None,
        labels: np.ndarray | None = None,
        allowed: np.ndarray | None = None,
    ) -> list[Span]:
        """Compute the probabilities of spans of one sequence, each as a whole.

        These are the spans described by `labels` or, without labels, all spans with at
        least the probability `threshold`. `tags` are the `span_tables`. `allowed`, of
        shape (T, n_classes), says which labels the positions may have.
        """
        theta, transition = self._barred_potentials(x, w, allowed)
        found = tags.spans(theta, transition, threshold, labels)
        if found is None:
            self._refuse_conflicts([x], [allowed], np.ones(1, dtype=bool))
        return found

    def _refuse_impossible(self, X):
        tables.check_lengths(self.allowed_, np.diff(self._starts(X)).tolist())

    def _split_nodes(self, X, rows):
        """Rows of all positions, sequence by sequence."""
        if len(X) == 1:
            return boxed([rows])
        bounds = pairwise(self._starts(X).tolist())
        return boxed([rows[start:end] for start, end in bounds])
