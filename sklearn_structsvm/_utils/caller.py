"""Warnings that point at the line that called the library."""

import os
import sys
import warnings
from pathlib import Path

import sklearn

# A trailing separator, as "sklearn_structsvm" begins with "sklearn".
_OWN_FOLDERS = tuple(
    str(folder) + os.sep
    for folder in (Path(__file__).parents[1], Path(sklearn.__file__).parent)
)


def warn_caller(message, category):
    """`warnings.warn`, reported for the innermost frame outside of the library.

    The function that warns need not know how many calls lie between. Frames of
    scikit-learn are skipped, too: its decorators and pipelines call `fit` for a user.
    """
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
