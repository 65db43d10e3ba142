"""Structured prediction and complex metrics for scikit-learn."""

from sklearn_structsvm._version import __version__
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.bcfw_cv import BCFWClassifierCV
from sklearn_structsvm.estimators.bcfw_path import bcfw_path
from sklearn_structsvm.estimators.bmrm import BMRMClassifier
from sklearn_structsvm.estimators.complex_metric.classifier import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.multilabel import (
    MultilabelMetricClassifier,
)
from sklearn_structsvm.estimators.conformal.classifier import ConformalClassifier
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.crf_cv import CRFClassifierCV
from sklearn_structsvm.estimators.crf_path import crf_path
from sklearn_structsvm.estimators.cross_val_proba import cross_val_predict_proba
from sklearn_structsvm.estimators.pragam import PragamClassifier
from sklearn_structsvm.estimators.slack_rescaling import SlackRescaledSSVM
from sklearn_structsvm.estimators.stacked import StackedStructureClassifier
from sklearn_structsvm.estimators.sublbfgs import SubLBFGSClassifier
from sklearn_structsvm.estimators.uncertainty import uncertainty

__all__ = [
    "BCFWClassifier",
    "BCFWClassifierCV",
    "BMRMClassifier",
    "CRFClassifier",
    "CRFClassifierCV",
    "ComplexMetricClassifier",
    "ConformalClassifier",
    "MultilabelMetricClassifier",
    "PragamClassifier",
    "SlackRescaledSSVM",
    "StackedStructureClassifier",
    "SubLBFGSClassifier",
    "__version__",
    "bcfw_path",
    "crf_path",
    "cross_val_predict_proba",
    "uncertainty",
]
