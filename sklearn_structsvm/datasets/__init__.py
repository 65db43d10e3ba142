"""Data sets: generators, one small data set included, two to download; tagged text."""

from ._chunking import chunking_attributes
from ._conll import read_conll, write_conll
from ._conll2000 import fetch_conll2000
from ._generators import make_chains, make_hierarchical, make_multilabel
from ._ocr import fetch_ocr_letters, load_ocr_letters
from ._poses import make_poses
from ._segmentation import make_segmentation
from ._snakes import make_snakes

__all__ = [
    "chunking_attributes",
    "fetch_conll2000",
    "fetch_ocr_letters",
    "load_ocr_letters",
    "make_chains",
    "make_hierarchical",
    "make_multilabel",
    "make_poses",
    "make_segmentation",
    "make_snakes",
    "read_conll",
    "write_conll",
]
