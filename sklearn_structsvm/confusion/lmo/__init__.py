"""Linear minimization oracles (LMOs) over the achievable confusion tensors."""

from sklearn_structsvm.confusion.lmo.base import LMO
from sklearn_structsvm.confusion.lmo.weighted import WeightedLMO

__all__ = ["LMO", "WeightedLMO"]
