"""Structures: the joint features, loss and decoders of each kind of output."""

from sklearn_structsvm._utils.grids import grid_edges
from sklearn_structsvm.structures.base import Structure
from sklearn_structsvm.structures.chain import ChainStructure
from sklearn_structsvm.structures.checks import check_structure
from sklearn_structsvm.structures.flat import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)
from sklearn_structsvm.structures.graph import GraphStructure
from sklearn_structsvm.structures.hidden_labels import MISSING
from sklearn_structsvm.structures.hierarchy import HierarchicalStructure
from sklearn_structsvm.structures.pairwise import PairwiseMultilabelStructure
from sklearn_structsvm.structures.pictorial import PictorialStructure
from sklearn_structsvm.structures.tree import TreeStructure

__all__ = [
    "MISSING",
    "BinaryStructure",
    "ChainStructure",
    "GraphStructure",
    "HierarchicalStructure",
    "MulticlassStructure",
    "MultilabelStructure",
    "PairwiseMultilabelStructure",
    "PictorialStructure",
    "Structure",
    "TreeStructure",
    "check_structure",
    "grid_edges",
]
