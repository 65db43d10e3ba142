"""Structures with one feature vector per example: binary, multiclass, multilabel."""

from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import entr, expit, log_expit, log_softmax
from sklearn.metrics import accuracy_score
from sklearn.utils.extmath import safe_sparse_dot

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils._matrix._added_scores import TableScores
from sklearn_structsvm._utils._matrix._features import FeaturesBeside
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm._utils.arrays import (
    as_codes,
    as_in,
    foreign_namespace,
    row_argmax,
    row_softmax,
    sigmoid,
    take_labels,
    with_zeros,
)
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    as_floats,
    check_shape,
)
from sklearn_structsvm._utils.columns import mean_sizes_of_rows
from sklearn_structsvm._utils.labels import (
    class_weight_vector,
    encode,
    label_cost_matrix,
    learn_classes,
    unseen,
)
from sklearn_structsvm._utils.own_indices import with_own_indices
from sklearn_structsvm._utils.tables import square_by_label
from sklearn_structsvm.structures._flat import MulticlassOracle, MultilabelOracle
from sklearn_structsvm.structures.base import Structure
from sklearn_structsvm.structures.constrained import constrained_argmax
from sklearn_structsvm.structures.indicator import IndicatorLabels


class FlatStructure(Structure):
    """φ(x, y) = x ⊗ μ(y): one score Wᵀx per class or label, W of shape (F, k).

    With a constant feature (`bias` of `fit` not zero), W has one more row. A subclass
    defines μ(y). Weights are flattened features-first.
    """

    flat = True
    _dual_is_of_labels = True
    has_classes = True

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        bias: float = 0.0,
    ) -> Self:
        """Learn the classes and the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Input data.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels, or a label indicator matrix.
        classes : array-like or None, default=None
            All class labels, if y may lack some.
        class_weight : dict, "balanced" or None, default=None
            Weights of the classes.
        bias : float
            Value of a constant feature for the intercepts, or 0 for no intercepts.

        Returns
        -------
        self : object
            The fitted structure.
        """
        X, y = X if hasattr(X, "shape") else as_array("X", X), as_array("y", y)
        check_shape("X", X, "n_samples", "n_features")
        check_shape("y", y, X.shape[0], *y.shape[1:])
        self._learn_checked(X, y, classes, class_weight, bias)
        return self

    def _learn_checked(self, X, y, classes=None, class_weight=None, bias=0.0):
        """`fit` to data as checked, of which X may lack the rows."""
        self._check_parameters()
        self.bias_ = float(as_floats("bias", bias))
        self.n_features_in_ = X.shape[1]
        self._fit_labels(np.asarray(y), classes, class_weight)
        self.n_weights_ = self._count_weights()

    def _coded(self, y):
        """y as kernels read it, with its costs.

        Of labels that are present or absent: an indicator of shape (n, k), costs of shape
        (k, 2). Of classes: their places, of shape (n,), costs of shape (k, k).
        """
        raise NotImplementedError

    def _with_own_indices(self, X):
        return with_own_indices(X)

    def _items(self, X):
        return [X[[i]] for i in range(X.shape[0])] if sparse.issparse(X) else list(X)

    def _matrices(self, X):
        return [X]

    def _largest_feature(self, X):
        return max(super()._largest_feature(X), self.bias_)

    def decision_function(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Compute the scores of the classes or labels, of shape (n_samples, k)."""
        coef, intercept = self._matrix(w)
        if foreign_namespace(X) is not None:
            return X @ as_in(X, coef) + as_in(X, intercept)
        return safe_sparse_dot(X, coef, dense_output=True) + intercept

    def decode_batch(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        return self._labels(self._predict(self.decision_function(X, w)))

    def decode(self, x: Any, w: np.ndarray) -> Any:
        return self._compiled_decode(as_row(x), w)[0]

    def joint_feature(self, x: Any, y: Any) -> Any:
        x = np.append(_dense(x), self.bias_) if self.bias_ else _dense(x)
        return np.outer(x, self._marginals(y)).ravel()

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        oracle = self._compiled_oracle(as_row(x), np.asarray([y_true]))
        return self._labels(oracle.decode(w, lam))[0]

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
        theta, costs, truth = self._tables(
            self.decision_function(as_row(x), w)[0], self._encode([y_true])[0]
        )
        labels = constrained_argmax(
            theta, None, costs, truth, lam, alpha, beta, strict_alpha, strict_beta
        )
        return None if labels is None else self._labels(labels)[0]

    def score(self, y: Any, y_pred: Any, sample_weight: Any = None) -> float:
        return accuracy_score(y, y_pred, sample_weight=sample_weight)

    def present_scores(self, scores: np.ndarray) -> np.ndarray:
        """Bring scores into the shape of scikit-learn's decision functions."""
        return scores

    def example_weights(self, y: Any) -> np.ndarray | None:
        """Factors of the sample weights due to `class_weight`; None if all are equal."""
        return None

    def _mean_sizes(self, X, weights):
        sizes = mean_sizes_of_rows(X, weights)
        if self.bias_:
            sizes = np.append(sizes, self.bias_)
        return np.repeat(sizes, self._k)

    def _fitted_shapes(self):
        return {"n_features_in_": (), "bias_": ()}

    def _count_weights(self):
        return (self.n_features_in_ + (self.bias_ != 0.0)) * self._k

    def split_weights(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        coef, intercept = self._matrix(w)
        return np.ascontiguousarray(coef.T), intercept

    def join_weights(self, coef: np.ndarray, intercept: Any) -> np.ndarray:
        W = np.transpose(coef)
        if self.bias_:
            W = np.vstack([W, intercept / self.bias_])
        return np.ravel(W)

    def _matrix(self, w):
        n = self.n_features_in_
        rows = n + (self.bias_ != 0.0)
        W = as_floats("w", w, rows * self._k).reshape(rows, self._k)
        intercept = self.bias_ * W[n] if self.bias_ else np.zeros(self._k)
        return W[:n], intercept


class _SingleLabel(FlatStructure):
    """One label per example."""

    def _fit_labels(self, y, classes, class_weight):
        if y.ndim != 1:
            raise ValueError(
                f"{type(self).__name__} needs one label per example, y of shape "
                f"(n_samples,); got {y.shape}. For a label indicator use "
                "MultilabelStructure or structure='auto'."
            )
        self.classes_ = learn_classes(y, classes)
        self._class_weight = class_weight_vector(class_weight, self.classes_, y)
        costs = square_by_label("label_costs", self.label_costs, self.classes_)
        self.label_costs_ = label_cost_matrix(costs, len(self.classes_))

    def _fitted_shapes(self):
        n = len(self.classes_)
        return super()._fitted_shapes() | {"label_costs_": (n, n)}

    def _encode(self, y):
        return encode(y, self.classes_)

    def _labels(self, encoded):
        return take_labels(self.classes_, encoded)

    def labelings(self, x: Any) -> Iterable[Any] | None:
        return self.classes_

    def loss(self, y_true: Any, y: Any) -> float:
        truth, label = self._encode([y_true, y])
        return self.label_costs_[truth, label]

    def unseen_labels(self, y: Any) -> list[Any]:
        return unseen(as_array("y", y).ravel().tolist(), self.classes_)

    def marginals(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Probabilities of the classes, ∝ exp ⟨w, φ(x, y)⟩; (n_samples, n_classes)."""
        return row_softmax(self._class_scores(X, w))

    def entropies(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Entropy of the distribution over the classes of each example, (n_samples,)."""
        return entr(self.marginals(X, w)).sum(axis=1)

    def log_probabilities(
        self, X: Any, y: Any, w: np.ndarray, n_threads: int = 1
    ) -> np.ndarray:
        """log p(y_i) of each example, (n_samples,); -inf for unseen labels."""
        logs = log_softmax(self._class_scores(X, w), axis=1)
        places = {label: c for c, label in enumerate(self.classes_.tolist())}
        labels = as_array("y", y).ravel().tolist()
        codes = np.array([places.get(label, -1) for label in labels])
        return np.where(codes < 0, -np.inf, logs[np.arange(len(codes)), codes])

    def least_costly(self, X: Any, marginals: Any) -> np.ndarray:
        """The labels of smallest expected cost, given the result of `marginals`."""
        costs = marginals @ as_in(marginals, self.label_costs_)
        return self._labels(row_argmax(-costs))

    def _added_scores(self, costs):
        """What costs of labels add to scores: a line for each true class."""
        raise NotImplementedError

    def _with_costs(self, X, y, costs):
        """Features of rows, which add these costs to scores; None adds nothing."""
        features = as_features(X)
        if costs is None:
            return features
        codes = self._encode(y).astype(np.intp)
        return FeaturesBeside(features, TableScores(self._added_scores(costs), codes))

    def _class_scores(self, X, w):
        """⟨w, φ(x, y)⟩ of all classes."""
        return self.decision_function(X, w)

    def example_weights(self, y: Any) -> np.ndarray | None:
        if self._class_weight is None:
            return None
        return self._class_weight[self._encode(y)]


class BinaryStructure(_SingleLabel):
    r"""Two classes that share one weight vector.

    With classes coded as -1 and 1, the joint feature map is :math:`\phi(x, y) = y x / 2`
    up to a constant. The hinge loss is

    .. math:: \max(0, \mathrm{cost} - y \langle w, x \rangle),

    and ``classes_[1]`` is predicted if :math:`\langle w, x \rangle > 0`.

    Read more in the :ref:`User Guide <guide-flat>`.

    Parameters
    ----------
    label_costs : array-like of shape (2, 2) or None, default=None
        ``label_costs[truth, label]`` is the cost of a wrong label. None means 1 off the
        diagonal.

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import BinaryStructure
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> BCFWClassifier(random_state=0).fit(X, y).predict([[0.5]]).item()
    'no'
    >>> missed_yes_costs_more = BinaryStructure(label_costs=[[0, 1], [5, 0]])
    >>> model = BCFWClassifier(missed_yes_costs_more, random_state=0).fit(X, y)
    >>> model.predict([[0.5]]).item()
    'yes'
    """

    _k = 1

    def __init__(self, label_costs: ArrayLike | None = None) -> None:
        self.label_costs = label_costs

    def _fit_labels(self, y, classes, class_weight):
        super()._fit_labels(y, classes, class_weight)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"multiclass: {len(self.classes_)} classes, such as "
                f"{self.classes_[:3].tolist()}. Use MulticlassStructure or "
                "structure='auto'."
            )

    def _coded(self, y):
        indicator = self._encode(y)[:, np.newaxis].astype(np.int8)
        return indicator, np.array([[self.label_costs_[0, 1], self.label_costs_[1, 0]]])

    def make_oracle(self, X: Any, y: Any, added: Any = None) -> BlockOracle:
        features = self._with_costs(X, y, added)
        return MultilabelOracle(features, *self._coded(y), self.bias_)

    def _added_scores(self, costs):
        # The score is that of the second class, and the first has none.
        return np.array([[costs[0, 1]], [-costs[1, 0]]])

    def _class_scores(self, X, w):
        return with_zeros(self.decision_function(X, w))

    def _predict(self, scores):
        return as_codes(scores[:, 0] > 0.0)

    def present_scores(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 0]

    def _marginals(self, y):
        return self._encode([y]).astype(np.float64)

    def _tables(self, scores, truth):
        theta = np.array([[0.0, scores[0]]])
        return theta, self.label_costs_[[truth]], np.array([truth], dtype=np.intc)


class MulticlassStructure(_SingleLabel):
    r"""Several classes, with one weight vector each (Crammer and Singer, 2001).

    The joint feature map is :math:`\phi(x, y) = x \otimes e_y`, with one-hot vectors e.
    The hinge loss is

    .. math:: \max_c \; \mathrm{label\_costs}[y, c] + \langle w_c - w_y, x \rangle.

    Read more in the :ref:`User Guide <guide-flat>`.

    Parameters
    ----------
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        ``label_costs[truth, label]`` is the cost of one wrong label: nonnegative, zero on
        the diagonal, in the order of `classes_`. None means 1 off the diagonal.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import MulticlassStructure
    >>> X, y = load_iris(return_X_y=True)
    >>> ordinal = MulticlassStructure(label_costs=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> model = BCFWClassifier(ordinal, max_iter=5000, random_state=0).fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    """

    multi_class = True

    def __init__(self, label_costs: ArrayLike | None = None) -> None:
        self.label_costs = label_costs

    @property
    def _k(self):
        return len(self.classes_)

    def _centered(self, w):
        W = np.reshape(w, (-1, self._k))
        return np.ravel(W - W.mean(axis=1, keepdims=True))

    def _coded(self, y):
        return self._encode(y), self.label_costs_

    def make_oracle(self, X: Any, y: Any, added: Any = None) -> BlockOracle:
        features = self._with_costs(X, y, added)
        return MulticlassOracle(features, *self._coded(y), self.bias_)

    def _added_scores(self, costs):
        return costs

    def _predict(self, scores):
        return row_argmax(scores)

    def present_scores(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 1] - scores[:, 0] if self._k == 2 else scores

    def _marginals(self, y):
        return np.eye(self._k)[self._encode([y])[0]]

    def _tables(self, scores, truth):
        theta = scores[np.newaxis]
        return theta, self.label_costs_[[truth]], np.array([truth], dtype=np.intc)


class MultilabelStructure(IndicatorLabels, FlatStructure):
    r"""Independent labels, each present or absent.

    The joint feature map is :math:`\phi(x, Y) = x \otimes Y` for an indicator vector
    :math:`Y \in \{0, 1\}^k`. The hinge loss is the sum over labels l of

    .. math:: \max(0, \mathrm{cost} \pm \langle w_l, x \rangle).

    Read more in the :ref:`User Guide <guide-flat>`.

    Parameters
    ----------
    normalize_loss : bool, default=False
        Whether to divide the Hamming loss by the number of labels. With False, the
        problem is equivalent to one binary support vector machine per label with the same
        C.
    label_costs : array-like of shape (n_labels, 2) or None, default=None
        Costs of a wrong label: column 0 if it is predicted but absent, column 1 if it is
        missed. None means 1.

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> X, Y = make_multilabel(n_samples=60, random_state=0)
    >>> BCFWClassifier(C=0.1, random_state=0).fit(X, Y).predict(X).shape == Y.shape
    True
    """

    def __init__(
        self, normalize_loss: bool = False, label_costs: ArrayLike | None = None
    ) -> None:
        self.normalize_loss = normalize_loss
        self.label_costs = label_costs

    def _fit_labels(self, y, classes, class_weight):
        self._fit_classes(classes, self._check_indicator(y, class_weight))
        self._fit_costs()

    @property
    def _k(self):
        return len(self.classes_)

    def _coded(self, y):
        return self._encode(np.asarray(y)), self.label_costs_

    def make_oracle(self, X: Any, y: Any) -> BlockOracle:
        return MultilabelOracle(as_features(X), *self._coded(y), self.bias_)

    def _predict(self, scores):
        return as_codes(scores > 0.0)

    def _marginals(self, Y):
        return self._encode(np.asarray([Y]))[0].astype(np.float64)

    def marginals(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Compute the probabilities of the labels, of shape (n_samples, n_labels)."""
        return sigmoid(self.decision_function(X, w))

    def entropies(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Compute the entropy of the distribution over label sets of each example."""
        scores = self.decision_function(X, w)
        return (entr(expit(scores)) + entr(expit(-scores))).sum(axis=1)

    def log_probabilities(
        self, X: Any, y: Any, w: np.ndarray, n_threads: int = 1
    ) -> np.ndarray:
        """Compute the log-probability of the label set of each example."""
        signs = 2.0 * self._encode(np.asarray(y)) - 1.0
        return log_expit(signs * self.decision_function(X, w)).sum(axis=1)

    def least_costly(self, X: Any, marginals: Any) -> np.ndarray:
        """Find the label sets with the smallest expected cost, given the marginals."""
        costs = as_in(marginals, self.label_costs_)
        is_cheaper = marginals * costs[:, 1] > (1.0 - marginals) * costs[:, 0]
        return self._labels(as_codes(is_cheaper))

    def _tables(self, scores, truth):
        theta = np.column_stack([np.zeros(self._k), scores])
        costs = np.zeros((self._k, 2))
        rows = np.arange(self._k)
        costs[rows, 1 - truth] = self.label_costs_[rows, truth]
        return theta, costs, truth.astype(np.intc)


def as_row(x):
    """One example as a matrix of one row."""
    return as_canonical(x, "x") if sparse.issparse(x) else _dense(x).reshape(1, -1)


def _dense(x):
    if sparse.issparse(x):
        return as_canonical(x, "x").toarray().ravel()
    x = as_array("x", x)
    return as_floats("x", x, *x.shape).ravel()
