"""Several labels per example, as an indicator matrix: names, costs and loss."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from sklearn_structsvm._utils.arrays import foreign_namespace
from sklearn_structsvm._utils.borders import as_array, as_floats
from sklearn_structsvm._utils.labels import as_classes, as_costs, plain


class IndicatorLabels:
    """Several labels per example: an indicator with a column for each of `classes_`.

    The loss is the Hamming distance, or the sum of the costs of the wrong labels. A
    subclass has the parameters `normalize_loss` and `label_costs`.
    """

    multi_label = True
    _parameter_constraints: dict[str, Any] = {"normalize_loss": ["boolean"]}

    def _check_indicator(self, y, class_weight):
        """Columns of the indicator y."""
        name = type(self).__name__
        if class_weight is not None:
            raise ValueError(
                "class_weight cannot be used with several labels per example. Use "
                f"label_costs of {name}."
            )
        if y.ndim != 2:
            raise ValueError(
                f"{name} needs a label indicator y of shape (n_samples, n_labels); got "
                f"{y.shape}. For one label per row use structure='auto'."
            )
        return y.shape[1]

    def _fit_classes(self, classes, k):
        """`classes_`, the names of the k columns."""
        self.classes_ = np.arange(k) if classes is None else as_classes(classes)
        if len(self.classes_) != k:
            raise ValueError(
                f"classes must have one name for each of the {k} columns of y; got "
                f"{len(self.classes_)}."
            )

    def _fit_costs(self):
        """`label_costs_` of shape (k, 2), a column for each truth."""
        k = len(self.classes_)
        costs = np.ones((k, 2))
        if self.label_costs is not None:
            costs = as_costs(self.label_costs, k, 2)
        self.label_costs_ = costs / k if self.normalize_loss else costs

    def _fitted_shapes(self):
        return super()._fitted_shapes() | {"label_costs_": (len(self.classes_), 2)}

    def _encode(self, Y):
        k = len(self.classes_)
        values = as_floats("y", Y, "n_samples", k)
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            at = np.argwhere(wrong)[0]
            raise ValueError(
                f"y must be a label indicator of 0 and 1; got {plain(Y[tuple(at)])!r} in "
                f"row {at[0]}, column {at[1]}."
            )
        return values.astype(np.int8)

    def unseen_labels(self, y: Any) -> list[Any]:
        self._encode(as_array("y", y))
        return []

    def _labels(self, encoded):
        if foreign_namespace(encoded) is not None:
            return encoded
        return np.reshape(encoded, (-1, len(self.classes_))).astype(np.int64)

    def labelings(self, x: Any) -> Iterable[Any] | None:
        return map(np.array, product((0, 1), repeat=len(self.classes_)))

    def loss(self, y_true: Any, y: Any) -> float:
        truth, labels = self._encode(np.asarray([y_true, y]))
        wrong = truth != labels
        return float(self.label_costs_[wrong, truth[wrong]].sum())
