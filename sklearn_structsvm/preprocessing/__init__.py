"""Preprocessing: from tokens and tables to the sequences that structures accept."""

from sklearn_structsvm._utils.split_matrix import SplitMatrix

from .linked import linked_items
from .sequences import SequenceTransformer, split_sequences
from .tags import convert_tags
from .windows import WindowFeatures
from .words import WordFeatures

__all__ = [
    "SequenceTransformer",
    "SplitMatrix",
    "WindowFeatures",
    "WordFeatures",
    "convert_tags",
    "linked_items",
    "split_sequences",
]
