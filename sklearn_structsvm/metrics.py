"""Scores, metrics and constraints: all that users import to measure and to optimise.

Scores of sequences of labels; scores of labels that scikit-learn does not have; and the
metrics and constraints that `ComplexMetricClassifier` takes, which are callables as well
and have `.scorer()` for the parameter ``scoring``.
"""

from sklearn_structsvm._utils.sequence_scores import (
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_score,
    entity_recall_score,
    token_accuracy_score,
    token_accuracy_scorer,
)
from sklearn_structsvm.confusion.churn import Churn
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
)
from sklearn_structsvm.confusion.gaps import (
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equal_opportunity_ratio,
    equalized_odds_difference,
    equalized_odds_ratio,
)
from sklearn_structsvm.confusion.linear import LinearLoss, Ordinal, ZeroOne
from sklearn_structsvm.confusion.matthews import MatthewsCorrelation
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
from sklearn_structsvm.confusion.scores import (
    cost_loss,
    g_mean_score,
    h_mean_score,
    micro_f1_score,
    min_recall_score,
    ordinal_loss,
    q_mean_score,
    quantification_loss,
)

__all__ = [
    "Balanced",
    "Churn",
    "CohenKappa",
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
    "confusion_tensor",
    "cost_loss",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "entity_f1_score",
    "entity_f1_scorer",
    "entity_precision_score",
    "entity_recall_score",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "g_mean_score",
    "h_mean_score",
    "micro_f1_score",
    "min_recall_score",
    "ordinal_loss",
    "q_mean_score",
    "quantification_loss",
    "token_accuracy_score",
    "token_accuracy_scorer",
]
