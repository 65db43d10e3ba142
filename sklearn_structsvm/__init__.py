"""Structured prediction and complex metrics for scikit-learn."""

__version__ = "0.1.0"

from sklearn_structsvm._bcfw import BCFWClassifier
from sklearn_structsvm._bcfw_path import BCFWClassifierCV, bcfw_path
from sklearn_structsvm._slack_rescaling import SlackRescaledSSVM

__all__ = ["BCFWClassifier", "BCFWClassifierCV", "SlackRescaledSSVM", "bcfw_path"]
