"""Empirical risks whose losses are functions of a few scores per example."""

from sklearn_structsvm.risks.base import Risk
from sklearn_structsvm.risks.binary import BinaryHinge
from sklearn_structsvm.risks.logistic import Logistic
from sklearn_structsvm.risks.multiclass import MulticlassHinge
from sklearn_structsvm.risks.multilabel import MultilabelHinge

__all__ = ["BinaryHinge", "Logistic", "MulticlassHinge", "MultilabelHinge", "Risk"]
