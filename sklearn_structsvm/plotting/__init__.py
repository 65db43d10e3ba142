"""Displays of how a fit converged and of regularization paths.

Needs matplotlib, which ``pip install "sklearn-structsvm[plot]"`` brings; it is imported
when the first plot is drawn.
"""

from sklearn_structsvm.plotting._convergence import ConvergenceDisplay
from sklearn_structsvm.plotting._path import RegularizationPathDisplay

__all__ = ["ConvergenceDisplay", "RegularizationPathDisplay"]
