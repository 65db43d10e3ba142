"""Displays of how a fit converged, of regularization paths and of labelings.

Needs matplotlib, which ``pip install "sklearn-structsvm[plot]"`` brings; it is imported
when the first plot is drawn.
"""

from sklearn_structsvm.plotting._convergence import ConvergenceDisplay
from sklearn_structsvm.plotting._label_map import LabelMapDisplay
from sklearn_structsvm.plotting._path import RegularizationPathDisplay

__all__ = ["ConvergenceDisplay", "LabelMapDisplay", "RegularizationPathDisplay"]
