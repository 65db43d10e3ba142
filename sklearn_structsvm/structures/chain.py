"""Sequences of labels with first-order transitions."""

from itertools import accumulate

import numpy as np

from sklearn_structsvm._utils._matrix._features import as_features
from sklearn_structsvm.structures import transitions as tables
from sklearn_structsvm.structures import validation
from sklearn_structsvm.structures._chain import ChainOracle
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.forest import ForestStructure


class ChainStructure(ForestStructure):
    """A label for each position of a sequence, adjacent ones depending on each other.

    With x_t the features of position t and one-hot labels e, ::

        φ(x, y) = [ Σ_t x_t ⊗ e_{y_t},  Σ_t e_{y_t},  e_{y_1},  e_{y_T},
                    Σ_t e_{y_{t-1}} ⊗ e_{y_t} ],

    the emissions, a bias, a bias of the first and of the last position, and the
    transitions, flattened one after another; each part can be left out. The loss is
    the Hamming distance or the sum of label costs over the positions.

    Parameters
    ----------
    emission, transition, bias, first_bias, last_bias : bool
        Which parts the model has.
    normalize_loss : bool
        Whether the loss of a sequence is divided by its length, as in [1]_.
    label_costs : array-like of shape (n_classes, n_classes) or None
        ``label_costs[truth, label]`` >= 0 of one position, zero on the diagonal, in
        the order of ``classes_``; None for 1 off the diagonal.
    transitions : {"bio", "bioes", "iobes"}, ndarray of bool, list of pairs or None
        Which labels may follow which (where `transition` says whether pairs of labels
        have weights). What is forbidden is never predicted, has the probability 0, and
        is no labeling that training compares with; a true labeling that has it is an
        error. None: all may.

        - "bio": labels are "O", "B-x" and "I-x" for types x, and "I-x" comes after
          "B-x" or "I-x" only. "bioes", or "iobes": chunks of several positions end with
          "E-x", and those of one are "S-x".
        - A mask of shape (n_classes, n_classes), True where the next label (column) may
          follow the previous one (row), in the order of ``classes_``; or with one more
          row, for the labels that may come first, and column, for those that may come
          last.
        - Forbidden pairs (previous label, next label), in which None stands for the
          beginning or the end.

    Attributes
    ----------
    allowed_ : ndarray of shape (n_classes + 1, n_classes + 1), dtype bool, or None
        What `transitions` stand for, as a mask with row and column of beginning and end.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Features of a position.
    n_weights_ : int
        Length of φ.

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

    _biases = ("bias", "first_bias", "last_bias")
    _item, _place = "sequence", "position"
    _forbidden = "begins with {!r}", "has {!r} before {!r}", "ends with {!r}"

    def __init__(
        self,
        emission=True,
        transition=True,
        bias=True,
        first_bias=True,
        last_bias=True,
        normalize_loss=True,
        label_costs=None,
        transitions=None,
    ):
        self.emission = emission
        self.transition = transition
        self.bias = bias
        self.first_bias = first_bias
        self.last_bias = last_bias
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs
        self.transitions = transitions

    def _checked(self, X, y=None):
        X = validation.check_items(X, getattr(self, "n_features_in_", None))
        return X, None if y is None else validation.check_labels(y, X)

    def make_oracle(self, X, y):
        rows, offsets = validation.stack(X)
        return ChainOracle(
            as_features(rows if self.emission else rows[:, :0], len(self.classes_)),
            offsets,
            self._truth(X, y),
            self.label_costs_,
            bias=self.bias,
            first=self.first_bias,
            last=self.last_bias,
            transition=self.transition,
            normalize=self.normalize_loss,
            allowed=self.allowed_,
        )

    def _forest(self, X):
        offsets = np.array([0, *accumulate(x.shape[0] for x in X)])
        parents = np.arange(offsets[-1]) - 1
        parents[offsets[:-1]] = -1
        return parents, offsets

    def _refuse_impossible(self, X):
        tables.check_lengths(self.allowed_, [x.shape[0] for x in X])

    def _split_nodes(self, X, rows):
        """Rows of all positions, sequence by sequence."""
        ends = list(accumulate(x.shape[0] for x in X))
        return as_object_array(
            [rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        )

    def joint_feature(self, x, y):
        (x,), (y,) = self.check_data([x], [y])
        k = len(self.classes_)
        one_hot = np.eye(k)[self._encode([y])]
        parts = []
        if self.emission:
            parts.append(x.T @ one_hot)
        if self.bias:
            parts.append(one_hot.sum(axis=0))
        if self.first_bias:
            parts.append(one_hot[0])
        if self.last_bias:
            parts.append(one_hot[-1])
        if self.transition:
            parts.append(one_hot[:-1].T @ one_hot[1:])
        return np.concatenate([np.ravel(part) for part in parts])

    def potentials(self, x, w):
        """Scores θ of shape (T, n_classes) and transitions, (n_classes, n_classes).

        The score of a labeling is Σ_t θ[t, y_t] + Σ_t transitions[y_{t-1}, y_t];
        the transitions are None where the model has none.
        """
        parts = self.weight_parts(w)
        theta = np.zeros((x.shape[0], len(self.classes_)))
        if self.emission:
            theta += x @ parts["emission"]
        if self.bias:
            theta += parts["bias"]
        if self.first_bias:
            theta[0] += parts["first_bias"]
        if self.last_bias:
            theta[-1] += parts["last_bias"]
        return theta, parts.get("transition")
