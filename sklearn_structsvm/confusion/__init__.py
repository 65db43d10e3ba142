"""Metrics and constraints of the confusion matrix, and the oracles that minimise it."""

from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.checks import check_gradient, check_metric
from sklearn_structsvm.confusion.churn import Churn
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.counts import confusion_tensor, make_cells
from sklearn_structsvm.confusion.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
)
from sklearn_structsvm.confusion.linear import LinearLoss, Ordinal, ZeroOne
from sklearn_structsvm.confusion.matthews import MatthewsCorrelation
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.metric_bound import MetricBound
from sklearn_structsvm.confusion.quantification import Quantification
from sklearn_structsvm.confusion.rates import (
    Coverage,
    FalsePositiveRate,
    Precision,
    Recall,
)
from sklearn_structsvm.confusion.ratios import (
    CohenKappa,
    FBeta,
    Jaccard,
    MacroF1,
    MicroF1,
)
from sklearn_structsvm.confusion.recalls import Balanced, GMean, HMean, MinMax, QMean
from sklearn_structsvm.confusion.registry import METRICS, get_metric

__all__ = [
    "Balanced",
    "Cells",
    "Churn",
    "CohenKappa",
    "ConfusionMetric",
    "Constraint",
    "Coverage",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "FBeta",
    "FalsePositiveRate",
    "GMean",
    "HMean",
    "Jaccard",
    "LinearLoss",
    "METRICS",
    "MacroF1",
    "MatthewsCorrelation",
    "MetricBound",
    "MicroF1",
    "MinMax",
    "Ordinal",
    "Precision",
    "QMean",
    "Quantification",
    "Recall",
    "ZeroOne",
    "check_gradient",
    "check_metric",
    "confusion_tensor",
    "get_metric",
    "make_cells",
]
