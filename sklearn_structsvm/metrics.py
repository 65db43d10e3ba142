"""Scores, metrics to optimize, constraints and scorers.

Scores are functions of true and predicted labels:

- Sequences: `token_accuracy_score`, `token_log_loss`, `entity_f1_score`,
  `entity_precision_score`, `entity_recall_score`, `entity_report`, `segment_f1_score`,
  `segment_edit_score`, `segment_count_ratio`.
- Many labels: `precision_at_k_score`, `ndcg_at_k_score`, `label_propensities`.
- Rows: `g_mean_score`, `h_mean_score`, `q_mean_score`, `min_recall_score`,
  `micro_f1_score`, `cost_loss`, `expected_cost_score`, `ordinal_loss`,
  `quantification_loss`, `confusion_tensor`.
- Groups: `demographic_parity_difference`, `demographic_parity_ratio`,
  `equal_opportunity_difference`, `equal_opportunity_ratio`,
  `equalized_odds_difference`, `equalized_odds_ratio`.

Metrics to optimize are objects or names for the parameter `metric` (`METRICS`):

- Accuracy and costs: `ZeroOne`, `LinearLoss`, `ExpectedCost`, `Ordinal`.
- Recalls of the classes: `Balanced`, `GMean`, `HMean`, `QMean`, `MinMax`.
- Precision and recall: `FBeta`, `MacroF1`, `MicroF1`, `Jaccard`.
- Agreement beyond chance: `CohenKappa`, `MatthewsCorrelation`.

Constraints are objects for the parameter `constraints`; rates without a bound, metrics:

- Rates: `Recall`, `Precision`, `Specificity`, `FalsePositiveRate`, `SelectionRate`.
- Groups: `DemographicParity`, `EqualOpportunity`, `EqualizedOdds`, `PredictiveParity`.
- Others: `Quantification`, `Churn`, `MetricBound`.

Scorers are for the parameter `scoring` of scikit-learn: `token_accuracy_scorer`,
`entity_f1_scorer`, `segment_f1_scorer`, `segment_edit_scorer`, `log_likelihood_scorer`,
`segment_count_ratio_scorer`, `neg_token_log_loss_scorer`, and what `scorer()` of metrics
and constraints returns.
"""

from sklearn_structsvm._utils import (
    entity_scores,
    segment_scores,
    sequence_scores,
    top_label_scores,
)
from sklearn_structsvm._utils.entity_scores import *
from sklearn_structsvm._utils.segment_scores import *
from sklearn_structsvm._utils.sequence_scores import *
from sklearn_structsvm._utils.top_label_scores import *
from sklearn_structsvm.confusion import (
    agreement,
    churn,
    costs,
    fairness,
    functions,
    linear,
    metric_bound,
    predictive_parity,
    quantification,
    rates,
    ratios,
    recalls,
)
from sklearn_structsvm.confusion.agreement import *
from sklearn_structsvm.confusion.churn import *
from sklearn_structsvm.confusion.costs import *
from sklearn_structsvm.confusion.counts import confusion_tensor
from sklearn_structsvm.confusion.fairness import *
from sklearn_structsvm.confusion.functions import *
from sklearn_structsvm.confusion.linear import *
from sklearn_structsvm.confusion.metric_bound import *
from sklearn_structsvm.confusion.predictive_parity import *
from sklearn_structsvm.confusion.quantification import *
from sklearn_structsvm.confusion.rates import *
from sklearn_structsvm.confusion.ratios import *
from sklearn_structsvm.confusion.recalls import *
from sklearn_structsvm.confusion.registry import METRICS

__all__ = ["METRICS", "confusion_tensor"]
__all__ += entity_scores.__all__
__all__ += segment_scores.__all__
__all__ += sequence_scores.__all__
__all__ += top_label_scores.__all__
__all__ += functions.__all__
__all__ += agreement.__all__
__all__ += costs.__all__
__all__ += linear.__all__
__all__ += ratios.__all__
__all__ += recalls.__all__
__all__ += churn.__all__
__all__ += fairness.__all__
__all__ += metric_bound.__all__
__all__ += predictive_parity.__all__
__all__ += quantification.__all__
__all__ += rates.__all__
