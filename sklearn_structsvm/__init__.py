"""Structured prediction and complex metrics for scikit-learn."""

__version__ = "0.1.0"

from sklearn_structsvm._bcfw import BCFWClassifier

__all__ = ["BCFWClassifier"]
