"""Scores, metrics and constraints: what to import for measuring and optimizing.

The module has scores of label sequences, scores of labels that scikit-learn lacks, and
the metrics and constraints that `ComplexMetricClassifier` takes. These can also be
called like functions, and have a method ``.scorer()`` for the parameter ``scoring``.
"""

from sklearn_structsvm import confusion
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
from sklearn_structsvm.confusion import *
from sklearn_structsvm.confusion import functions

# For mypy, which does not follow the `__all__` of these into that of `confusion`.
from sklearn_structsvm.confusion.agreement import *
from sklearn_structsvm.confusion.churn import *
from sklearn_structsvm.confusion.costs import *
from sklearn_structsvm.confusion.fairness import *
from sklearn_structsvm.confusion.functions import *
from sklearn_structsvm.confusion.linear import *
from sklearn_structsvm.confusion.metric_bound import *
from sklearn_structsvm.confusion.predictive_parity import *
from sklearn_structsvm.confusion.quantification import *
from sklearn_structsvm.confusion.rates import *
from sklearn_structsvm.confusion.ratios import *
from sklearn_structsvm.confusion.recalls import *

__all__ = []
__all__ += entity_scores.__all__
__all__ += segment_scores.__all__
__all__ += sequence_scores.__all__
__all__ += top_label_scores.__all__
__all__ += confusion.__all__
__all__ += functions.__all__
