"""Losses that are linear in the confusion matrix."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.tables import square_by_label
from sklearn_structsvm.confusion.metric import ConfusionMetric

__all__ = ["LinearLoss", "Ordinal", "ZeroOne"]


class CostMetric(ConfusionMetric):
    """Base of the linear losses; a subclass gives `cost_matrix(n_classes)`."""

    convex = True
    smooth = True

    def cost_matrix(self, n_classes: int) -> np.ndarray:
        """L of shape (k, k), L[i, j] the cost of predicting j for label i."""
        raise NotImplementedError

    def value(self, C: np.ndarray) -> float:
        return float(np.vdot(self.cost_matrix(len(C)), C))

    def gradient(self, C: np.ndarray) -> np.ndarray:
        return self.cost_matrix(len(C)).copy()

    def pieces(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.cost_matrix(len(priors))[None], np.zeros(1)

    def ratio(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        L = self.cost_matrix(len(priors))
        return L, np.ones_like(L)

    def entries(self, n_classes: int) -> np.ndarray:
        return self.cost_matrix(n_classes) != 0.0


class LinearLoss(CostMetric):
    r"""Mean cost of the predictions, for a given cost matrix.

    .. math:: \psi(C) = \sum_{ij} L_{ij} C_{ij}

    This is Example 1 of Narasimhan et al. (JMLR 2024).

    Read more in the :ref:`User Guide <guide-metrics>`.

    Parameters
    ----------
    costs : array-like of shape (k, k), or dict
        Cost matrix L: entry [i, j] is the cost of predicting class j for label i, in the
        order of the sorted labels; rows and columns of a data frame go by their names. Or
        a dict ``{(label, prediction): cost}``, in which missing costs are 0. Costs may be
        negative, and the diagonal may be nonzero.

    Examples
    --------
    Missing an "ill" costs ten times as much as a false alarm:

    >>> from sklearn_structsvm.metrics import LinearLoss
    >>> metric = LinearLoss({("ill", "well"): 10.0, ("well", "ill"): 1.0})
    >>> metric(["ill", "well", "well", "ill"], ["ill", "ill", "well", "well"])
    2.75
    """

    greater_is_better = False
    _instead: ClassVar = {
        "pos_label": "Name the labels in the costs: "
        "LinearLoss({(label, prediction): cost, ...})."
    }

    def __init__(self, costs: ArrayLike | dict[Any, Any]) -> None:
        self.costs = costs

    def __str__(self) -> str:
        """In one line, for messages."""
        if not hasattr(self.costs, "shape"):
            return repr(self)
        shape = np.shape(self.costs)
        short = f"<{type(self.costs).__name__} of shape {shape}>"
        rows = np.asarray(self.costs).tolist()
        return f"LinearLoss(costs={rows if max(shape, default=0) < 4 else short})"

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if isinstance(self.costs, dict):
            # Files of skops are JSON, whose keys cannot be pairs.
            state = state | {"costs": None, "_items": list(self.costs.items())}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_items" in state:
            state["costs"] = dict(state.pop("_items"))
        super().__setstate__(state)

    def cost_matrix(self, n_classes: int) -> np.ndarray:
        if isinstance(self.costs, dict):
            L: Any = np.zeros((n_classes, n_classes), dtype=object)
            for pair, cost in self.costs.items():
                label, prediction = _pair(pair)
                i = self.index_of(label, "a label in costs")
                L[i, self.index_of(prediction, "a prediction in costs")] = cost
        else:
            labels = range(n_classes) if self._classes is None else self._classes
            L = square_by_label("costs", self.costs, labels)
        return as_floats("costs", L, n_classes, n_classes)

    def check(self, n_classes: int) -> None:
        self.cost_matrix(n_classes)


def _pair(pair):
    if isinstance(pair, tuple) and len(pair) == 2:
        return pair
    raise ValueError(f"Keys of costs must be pairs (label, prediction), got {pair!r}.")


class ZeroOne(CostMetric):
    """One minus accuracy: the fraction of wrong predictions (zero-one loss).

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import ZeroOne
    >>> ZeroOne()(["a", "b", "b", "b"], ["a", "b", "b", "a"])
    0.75
    """

    def cost_matrix(self, n_classes: int) -> np.ndarray:
        return 1.0 - np.eye(n_classes)

    def entries(self, n_classes: int) -> np.ndarray:
        return np.eye(n_classes, dtype=bool)


class Ordinal(CostMetric):
    r"""Mean absolute difference between the ranks of label and prediction.

    .. math:: \psi(C) = \sum_{ij} |i - j| \, C_{ij}

    The rank of a label is its index among the sorted classes. To score a sample in which
    some classes do not occur, pass all classes as `labels`.

    Read more in the :ref:`User Guide <guide-metrics>`.

    Examples
    --------
    >>> from sklearn_structsvm.metrics import Ordinal
    >>> Ordinal()([1, 2, 3, 3], [1, 2, 3, 1])
    0.5
    """

    greater_is_better = False

    def cost_matrix(self, n_classes: int) -> np.ndarray:
        ranks = np.arange(n_classes, dtype=np.float64)
        return np.abs(ranks[:, None] - ranks)
