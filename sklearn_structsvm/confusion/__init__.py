"""Metrics and constraints of confusion matrices, and their oracles."""

from sklearn_structsvm.confusion import (
    agreement,
    churn,
    costs,
    fairness,
    linear,
    metric_bound,
    predictive_parity,
    quantification,
    rates,
    ratios,
    recalls,
)
from sklearn_structsvm.confusion.agreement import *
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.checks import check_gradient, check_metric
from sklearn_structsvm.confusion.churn import *
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.costs import *
from sklearn_structsvm.confusion.counts import confusion_tensor, make_cells
from sklearn_structsvm.confusion.fairness import *
from sklearn_structsvm.confusion.linear import *
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.metric_bound import *
from sklearn_structsvm.confusion.predictive_parity import *
from sklearn_structsvm.confusion.quantification import *
from sklearn_structsvm.confusion.rates import *
from sklearn_structsvm.confusion.ratios import *
from sklearn_structsvm.confusion.recalls import *
from sklearn_structsvm.confusion.registry import METRICS, get_metric

__all__ = [
    "METRICS",
    "Cells",
    "ConfusionMetric",
    "Constraint",
    "check_gradient",
    "check_metric",
    "confusion_tensor",
    "get_metric",
    "make_cells",
]
# Users import metrics and constraints from the modules that define them.
__all__ += agreement.__all__
__all__ += churn.__all__
__all__ += costs.__all__
__all__ += fairness.__all__
__all__ += linear.__all__
__all__ += metric_bound.__all__
__all__ += predictive_parity.__all__
__all__ += quantification.__all__
__all__ += rates.__all__
__all__ += ratios.__all__
__all__ += recalls.__all__
