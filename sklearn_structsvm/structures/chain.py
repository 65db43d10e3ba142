"""Label sequences with first-order transitions."""

from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._chain import ChainOracle
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

    Each part can be left out. The loss is the Hamming loss or the sum of label costs over
    the positions. Decoding is exact, by the Viterbi algorithm.

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
        Whether to divide the loss of a sequence by its length, as in [1]_.
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

    Attributes
    ----------
    allowed_ : ndarray of shape (n_classes + 1, n_classes + 1), dtype bool, or None
        The allowed transitions as a mask, including the row for the beginning and the
        column for the end.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
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
        ("first_bias", "last_bias"), ["boolean"]
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
    ) -> None:
        self.emission = emission
        self.transition = transition
        self.bias = bias
        self.first_bias = first_bias
        self.last_bias = last_bias
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs
        self.transitions = transitions

    def _checked(self, X, y=None):
        X = self._check_rows(X)
        return X, None if y is None else validation.check_labels(y, X)

    def make_oracle(
        self, X: Any, y: Any, allowed: Any = None, known: Any = None
    ) -> BlockOracle:
        costs, cost_rows = self._costs(known)
        return ChainOracle(
            self._node_features(X, allowed=allowed),
            self._starts(X),
            self._truth(X, y),
            costs,
            bias=self.bias,
            first=self.first_bias,
            last=self.last_bias,
            transition=self.transition,
            normalize=self.normalize_loss,
            allowed=self.allowed_,
            cost_rows=cost_rows,
        )

    @property
    def _has_curvature(self) -> bool:
        """Whether `_make_curvature` knows the features, which another model may give."""
        return not (self._is_given or self._has_both)

    def _make_curvature(self, X, weights, labels=None):
        """The second derivatives of the log-loss of data as checked.

        Or of the logarithms of the sums over labelings of these labels alone.
        """
        return ChainCurvature(self, X, weights, labels)

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

    def _run_sums(
        self, X: Any, w: np.ndarray, lengths: Any, allowed: Any = None
    ) -> Any:
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
