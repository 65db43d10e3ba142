"""Structured prediction and complex metrics for scikit-learn."""

__version__ = "0.1.0"

from sklearn_structsvm._bcfw import BCFWClassifier
from sklearn_structsvm._bcfw_path import BCFWClassifierCV, bcfw_path
from sklearn_structsvm._bmrm import BMRMClassifier
from sklearn_structsvm._complex_metric import ComplexMetricClassifier
from sklearn_structsvm._pragam import PragamClassifier
from sklearn_structsvm._slack_rescaling import SlackRescaledSSVM
from sklearn_structsvm._sublbfgs import SubLBFGSClassifier

__all__ = [
    "BCFWClassifier",
    "BCFWClassifierCV",
    "BMRMClassifier",
    "ComplexMetricClassifier",
    "PragamClassifier",
    "SlackRescaledSSVM",
    "SubLBFGSClassifier",
    "bcfw_path",
]
