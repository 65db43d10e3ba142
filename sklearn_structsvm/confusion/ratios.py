"""Losses that are ratios of linear functions: F-beta, Jaccard, micro-F1."""

from numbers import Real
from typing import Any, Literal

import numpy as np

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.confusion.cells import positive_index
from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["FBeta", "Jaccard", "MacroF1", "MicroF1"]


class RatioMetric(ConfusionMetric):
    """Base: ψ(C) = <A, C> / <B, C>; a subclass gives `ratio(priors)`.

    ψ is not convex, but the sets on which it is at most t, and at least t, are. So
    bisection and Dinkelbach's method find its minimum. 0/0 is a loss of 1, which is a
    score of 0, like the default of scikit-learn's `zero_division`.
    """

    smooth = True

    def value(self, C: np.ndarray) -> float:
        A, B = self.ratio(C.sum(axis=1))  # type: ignore[misc]
        denominator = np.vdot(B, C)
        return float(np.vdot(A, C) / denominator) if denominator > 0.0 else 1.0

    def gradient(self, C: np.ndarray) -> np.ndarray:
        A, B = self.ratio(C.sum(axis=1))  # type: ignore[misc]
        # If the denominator is a smaller share of the sample, there is no gradient.
        return (A - self.value(C) * B) / max(np.vdot(B, C), SAME)


def one_class_ratio(index, n_classes, hit, kept, label_weight):
    """(A, B) of the loss 1 - N / D of one class against all others.

    N = `hit` TP and D = `label_weight` (TP + FN) + (TP + FP) - `kept` TP.
    """
    B = np.zeros((n_classes, n_classes))
    B[:, index] += 1.0
    B[index] += label_weight
    B[index, index] -= kept
    A = B.copy()
    A[index, index] -= hit
    return A, B


class OneClassMetric(RatioMetric):
    """Base: a ratio of one class's true positives, false positives and false negatives.

    A subclass gives `weights()`, the (hit, kept, label_weight) of `one_class_ratio`, and
    has a parameter `pos_label`.
    """

    def positive(self, n_classes: int) -> int:
        """Index of the positive class, see `positive_index`."""
        label = self.named_label()
        if label is not None:
            return self.index_of(label, "pos_label")
        classes = np.arange(n_classes) if self._classes is None else self._classes
        return positive_index(classes, None, type(self).__name__)

    def positive_label(self, classes: Any) -> Any:
        index = positive_index(classes, self.named_label(), type(self).__name__)
        return np.asarray(classes).tolist()[index]

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        k = len(priors)
        return one_class_ratio(self.positive(k), k, *self.weights())

    def entries(self, n_classes: int) -> np.ndarray:
        mask = np.zeros((n_classes, n_classes), dtype=bool)
        mask[:, self.positive(n_classes)] = True
        return mask

    def check(self, n_classes: int) -> None:
        self.positive(n_classes)


# How to average over classes: all of them equally, or each by its share of the sample.
AVERAGES = ("macro", "weighted")


def mean_value(C, average, hit, kept, label_weight):
    """1 - Σ_i w_i N_i / D_i over the classes that occur or are predicted."""
    weights, scores, *_ = _class_scores(C, average, hit, kept, label_weight)
    return float(1.0 - weights @ scores) if len(scores) else 1.0


def mean_gradient(C, average, hit, kept, label_weight):
    """Gradient of `mean_value`, with the set of classes in the mean held fixed."""
    weights, scores, counted, denominators = _class_scores(
        C, average, hit, kept, label_weight
    )
    G = np.zeros_like(C, dtype=np.float64)
    slope = weights / denominators
    G[:, counted] = scores * slope
    G[counted, counted] -= (hit + kept * scores) * slope
    return G


def mean_terms(priors, average, hit, kept, label_weight):
    """The ratios of all classes in the sample, with their weights."""
    k, priors = len(priors), np.asarray(priors)
    present = np.flatnonzero(priors > 0.0)
    weights = _weights(priors[present], average).tolist()
    return [
        (weight, *one_class_ratio(i, k, hit, kept, label_weight))
        for weight, i in zip(weights, present, strict=True)
    ]


def _class_scores(C, average, hit, kept, label_weight):
    hits, rows, columns = C.diagonal(), C.sum(axis=1), C.sum(axis=0)
    counted = np.flatnonzero(rows + columns > 0.0)
    denominators = (label_weight * rows + columns - kept * hits)[counted]
    scores = hit * hits[counted] / denominators
    return _weights(rows[counted], average), scores, counted, denominators


def _weights(shares, average):
    if average == "weighted":
        return shares / shares.sum()
    return np.full(len(shares), 1.0 / max(len(shares), 1))


# Larger numbers have no square.
MOST_BETA = float(np.sqrt(np.finfo(np.float64).max))


class FBeta(OneClassMetric):
    r"""One minus the F-measure of one class.

    .. math:: \psi(C) = 1 - \frac{(1 + \beta^2) \, TP}
       {(1 + \beta^2) \, TP + \beta^2 \, FN + FP}

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    beta : float, default=1.0
        Positive weight: recall is considered `beta` times as important as precision.
    pos_label : label or None, default=None
        The positive class; all others form the negative class. None means 1 for labels 0
        and 1 or -1 and 1, and True for booleans. It is required for other labels.
    label : label or None, default=None
        Another name for `pos_label`.

    Notes
    -----
    This is Example 2 of Narasimhan et al. (JMLR 2024).

    The score is 0 if the class neither occurs nor is predicted (0/0). For averages over
    classes see :class:`MacroF1` and :class:`MicroF1`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import FBeta
    >>> FBeta()([0, 0, 1, 1, 1], [0, 1, 1, 1, 0])
    0.666...
    >>> FBeta(pos_label="y")(["n", "n", "y", "y", "y"], ["n", "y", "y", "y", "n"])
    0.666...
    """

    def __init__(
        self, beta: float = 1.0, pos_label: Any = None, *, label: Any = None
    ) -> None:
        self.beta = beta
        self.pos_label = pos_label
        self.label = label

    def weights(self) -> tuple[float, ...]:
        """(hit, kept, label_weight), see `one_class_ratio`."""
        # A power that overflows would be an error, and this is infinite.
        square = self.beta * self.beta
        return 1.0 + square, 0.0, square

    def check(self, n_classes: int) -> None:
        if not (isinstance(self.beta, Real) and 0.0 < self.beta <= MOST_BETA):
            raise ValueError(
                f"beta must be a positive number whose square is finite, got "
                f"{self.beta!r}."
            )
        super().check(n_classes)


class Jaccard(OneClassMetric):
    r"""One minus the Jaccard index of one class, or averaged over classes.

    .. math:: \psi(C) = 1 - \frac{TP}{TP + FP + FN}

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    average : {'binary', 'macro', 'weighted', 'micro'}, default='binary'
        'binary' is the index of one class. 'macro' is the mean over the classes, and
        'weighted' the mean by their shares of the sample; both are neither convex nor a
        ratio. 'micro' pools the counts of all classes, and is a function of the accuracy.
    pos_label : label or None, default=None
        The positive class for 'binary', as for :class:`FBeta`.
    label : label or None, default=None
        Another name for `pos_label`.

    Notes
    -----
    The score of a class that neither occurs nor is predicted (0/0) is 0. The macro
    average leaves out such classes.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Jaccard
    >>> Jaccard()([0, 0, 1, 1, 1], [0, 1, 1, 1, 0])
    0.5
    """

    def __init__(
        self,
        average: Literal["binary", "macro", "weighted", "micro"] = "binary",
        pos_label: Any = None,
        *,
        label: Any = None,
    ) -> None:
        self.average = average
        self.pos_label = pos_label
        self.label = label

    def weights(self) -> tuple[float, ...]:
        """(hit, kept, label_weight), see `one_class_ratio`."""
        return 1.0, 1.0, 1.0

    def value(self, C: np.ndarray) -> float:
        if self.average in AVERAGES:
            return mean_value(C, self.average, *self.weights())
        return super().value(C)

    def gradient(self, C: np.ndarray) -> np.ndarray:
        if self.average in AVERAGES:
            return mean_gradient(C, self.average, *self.weights())
        return super().gradient(C)

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if self.average in AVERAGES:
            return None
        if self.average == "micro":
            eye = np.eye(len(priors))
            return 2.0 * (1.0 - eye), 2.0 - eye
        return super().ratio(priors)

    def ratio_terms(
        self, priors: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray]] | None:
        if self.average in AVERAGES:
            return mean_terms(priors, self.average, *self.weights())
        return super().ratio_terms(priors)

    def entries(self, n_classes: int) -> np.ndarray:
        if self.average in AVERAGES:
            return np.ones((n_classes, n_classes), dtype=bool)
        if self.average == "micro":
            return np.eye(n_classes, dtype=bool)
        return super().entries(n_classes)

    def positive_label(self, classes: Any) -> Any:
        return super().positive_label(classes) if self.average == "binary" else None

    def check(self, n_classes: int) -> None:
        check_choice("average", self.average, ("binary", *AVERAGES, "micro"))
        if self.average == "binary":
            super().check(n_classes)


class MacroF1(ConfusionMetric):
    r"""One minus the mean F1 score over the classes (macro-F1).

    .. math:: \psi(C) = 1 - \sum_i w_i
       \frac{2 C_{ii}}{\sum_j C_{ij} + \sum_j C_{ji}}

    A sum of ratios is neither convex nor quasi-convex. Solvers find a local minimum, and
    a bound from the best F1 of each class separately. Classes that neither occur nor are
    predicted are left out; a class that is predicted but does not occur has an F1 of 0.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    average : {'macro', 'weighted'}, default='macro'
        'macro' weights all classes equally, 'weighted' by their shares of the sample, as
        in scikit-learn's `f1_score`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MacroF1
    >>> MacroF1()(["a", "a", "b", "b", "c"], ["a", "a", "b", "c", "c"])
    0.777...
    """

    smooth = True
    _weights = (2.0, 0.0, 1.0)  # see `one_class_ratio`

    def __init__(self, average: Literal["macro", "weighted"] = "macro") -> None:
        self.average = average

    def value(self, C: np.ndarray) -> float:
        return mean_value(C, self.average, *self._weights)

    def gradient(self, C: np.ndarray) -> np.ndarray:
        return mean_gradient(C, self.average, *self._weights)

    def ratio_terms(
        self, priors: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray]] | None:
        return mean_terms(priors, self.average, *self._weights)

    def check(self, n_classes: int) -> None:
        check_choice("average", self.average, AVERAGES)


class MicroF1(RatioMetric):
    r"""One minus the pooled F1 score of all classes but a default one (micro-F1).

    .. math:: \psi(C) = 1 - \frac{2 \sum_{i \neq 0} C_{ii}}
       {2 - \sum_j C_{0j} - \sum_j C_{j0}}

    Class 0 is the default class ("nothing here"). This is the usual measure of
    information extraction, Example 4 of Narasimhan et al. (JMLR 2024). The micro-average
    over all classes is the accuracy, see :class:`ZeroOne`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    default_label : label or None, default=None
        The default class. None uses the first of the sorted labels, whatever it means: 0
        for labels 0, 1, 2, but "B" for labels "B", "I", "O".

    Attributes
    ----------
    default_label_ : label
        The default class in use, for `metric_` of a fitted
        :class:`~sklearn_structsvm.ComplexMetricClassifier`.

    Notes
    -----
    The score is 0 if only the default class occurs and is predicted (0/0).

    Examples
    --------
    >>> from sklearn_structsvm.metrics import MicroF1
    >>> MicroF1(default_label="O")(["O", "O", "x", "y", "y"], ["O", "x", "x", "y", "O"])
    0.666...
    """

    def __init__(self, default_label: Any = None) -> None:
        self.default_label = default_label

    def default(self) -> Any:
        """Index of the default class."""
        if self.default_label is None:
            return 0
        return self.index_of(self.default_label, "default_label")

    def resolve(self, classes: Any) -> ConfusionMetric:
        resolved = super().resolve(classes)
        resolved.default_label_ = np.asarray(classes).tolist()[resolved.default()]
        return resolved

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k, default = len(priors), self.default()
        B = np.full((k, k), 2.0)
        B[default] -= 1.0
        B[:, default] -= 1.0
        A = B.copy()
        others = np.flatnonzero(np.arange(k) != default)
        A[others, others] -= 2.0
        return A, B

    def entries(self, n_classes: int) -> np.ndarray:
        mask = np.eye(n_classes, dtype=bool)
        mask[:, self.default()] = True
        return mask

    def check(self, n_classes: int) -> None:
        if n_classes < 2:
            raise ValueError(
                "MicroF1 requires at least one class besides the default one."
            )
        self.default()
