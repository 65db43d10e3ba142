"""Preprocessing: from tokens and tables to the sequences that structures accept."""

from sklearn_structsvm._utils.split_matrix import SplitMatrix

from .sequences import SequenceTransformer, split_sequences
from .words import WordFeatures

__all__ = ["SequenceTransformer", "SplitMatrix", "WordFeatures", "split_sequences"]
