"""Warnings that point at the line that called the library."""

import os
import sys
import warnings
from itertools import chain
from pathlib import Path

import sklearn

# A trailing separator, as "sklearn_structsvm" begins with "sklearn".
_OWN_FOLDERS = tuple(
    str(folder) + os.sep
    for folder in (Path(__file__).parents[1], Path(sklearn.__file__).parent)
)


def warn_caller(message, category=UserWarning):
    """`warnings.warn` for the innermost frame outside of the library and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_if_swapped(X, y):
    """UserWarning if y has more different strings than there are words in X."""
    if not all(isinstance(o, list) and o and isinstance(o[0], list) for o in (X, y)):
        return
    try:
        words, labels = (set(chain.from_iterable(own)) for own in (X, y))
    except TypeError:  # dicts, or what has other mistakes
        return
    if len(words) < len(labels) and all(isinstance(own, str) for own in words | labels):
        told = (
            f"X has {len(words)} different words, and y {len(labels)} different labels."
        )
        warn_caller(f"{told} Make sure that X and y are not swapped.")
