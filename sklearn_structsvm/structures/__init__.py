"""What is predicted: features, loss and decoding of each kind of output."""

from sklearn_structsvm.structures.base import Structure
from sklearn_structsvm.structures.chain import ChainStructure
from sklearn_structsvm.structures.flat import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)

__all__ = [
    "BinaryStructure",
    "ChainStructure",
    "MulticlassStructure",
    "MultilabelStructure",
    "Structure",
]
