"""Displays of fits, weights, regularization paths, labelings and confusion matrices.

They need matplotlib (``pip install matplotlib``), which is imported when
the first plot is drawn.
"""

from sklearn_structsvm.plotting._achievable_set import AchievableSetDisplay
from sklearn_structsvm.plotting._chain_weights import ChainWeightsDisplay
from sklearn_structsvm.plotting._convergence import ConvergenceDisplay
from sklearn_structsvm.plotting._fairness_report import (
    FairnessReport,
    fairness_report,
)
from sklearn_structsvm.plotting._path import RegularizationPathDisplay
from sklearn_structsvm.plotting._segments import SegmentsDisplay
from sklearn_structsvm.plotting._tagging import TaggingDisplay
from sklearn_structsvm.plotting._threshold import ThresholdDisplay
from sklearn_structsvm.plotting._tradeoff import TradeoffDisplay

__all__ = [
    "AchievableSetDisplay",
    "ChainWeightsDisplay",
    "ConvergenceDisplay",
    "FairnessReport",
    "RegularizationPathDisplay",
    "SegmentsDisplay",
    "TaggingDisplay",
    "ThresholdDisplay",
    "TradeoffDisplay",
    "fairness_report",
]
