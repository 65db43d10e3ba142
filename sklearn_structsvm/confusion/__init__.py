"""Base classes and checks for metrics and constraints of your own.

The metrics and constraints themselves are in `sklearn_structsvm.metrics`.
"""

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.checks import check_gradient, check_metric
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.counts import make_cells
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.registry import get_metric

__all__ = [
    "Cells",
    "ConfusionMetric",
    "Constraint",
    "check_gradient",
    "check_metric",
    "get_metric",
    "make_cells",
]
