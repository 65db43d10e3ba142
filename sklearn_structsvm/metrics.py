"""Scores, metrics and constraints: all that users import to measure and to optimise.

Scores of sequences of labels; scores of labels that scikit-learn does not have; and the
metrics and constraints that `ComplexMetricClassifier` takes, which are callables as well
and have `.scorer()` for the parameter ``scoring``.
"""

from sklearn_structsvm import confusion
from sklearn_structsvm._utils import sequence_scores
from sklearn_structsvm._utils.sequence_scores import *
from sklearn_structsvm.confusion import *
from sklearn_structsvm.confusion import functions
from sklearn_structsvm.confusion.functions import *

__all__ = []
__all__ += sequence_scores.__all__
__all__ += confusion.__all__
__all__ += functions.__all__
