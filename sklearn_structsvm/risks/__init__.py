"""Empirical risks whose losses are functions of a few scores per example."""

from sklearn_structsvm._contract.risk import Risk
from sklearn_structsvm.risks.hinge import BinaryHinge, MulticlassHinge, MultilabelHinge
from sklearn_structsvm.risks.logistic import Logistic, Multinomial
from sklearn_structsvm.risks.multivariate import ConfusionHinge, RocAucHinge, TopKHinge
from sklearn_structsvm.risks.proximal_hinge import ProximalHinge
from sklearn_structsvm.risks.squared_hinge import SquaredHinge

__all__ = [
    "BinaryHinge",
    "ConfusionHinge",
    "Logistic",
    "MulticlassHinge",
    "MultilabelHinge",
    "Multinomial",
    "ProximalHinge",
    "Risk",
    "RocAucHinge",
    "SquaredHinge",
    "TopKHinge",
]
