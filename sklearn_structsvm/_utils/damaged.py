"""The error about a fitted state that was damaged, by hand or in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from sklearn_structsvm._utils.fitted import is_of_fit

PACKAGE = __name__.partition(".")[0]
# What damage may leave in the place of an object of this package.
PLAIN = (bool, bytes, dict, float, int, list, np.ndarray, str, tuple, NoneType)


@contextmanager
def damage_refused(estimator: Any) -> Iterator[None]:
    """Within it, a state that was damaged is a ValueError that says so.

    That is where an attribute is missing of an object of this package, or of what is now
    in the place of one. Other errors, such as those of users' code, stay as they are.
    """
    try:
        yield
    except AttributeError as error:
        _refuse_damaged(estimator, error)
        raise


def _refuse_damaged(estimator, error):
    owner, name = error.obj, error.name
    # A property that exists has its own error.
    if name is None or isinstance(error, NotFittedError) or hasattr(type(owner), name):
        return
    if _is_own(owner):
        raise ValueError(
            f"This {type(owner).__name__} has no {name!r}: it was changed after fit, or "
            "its file is damaged."
        ) from error
    # What a sparse matrix has are attributes of each one, too.
    is_matrix = sparse.issparse(owner)
    if not (is_matrix or type(owner) in PLAIN) or not _is_raised_here(error):
        return
    places = [place for place, value in _fitted_parts(estimator) if value is owner]
    if places:
        what = f"a {type(owner).__name__}" if is_matrix else repr(owner)
        raise ValueError(
            f"{' or '.join(places)} has no {name!r}; got {what}: it was changed after "
            "fit, or its file is damaged."
        ) from error


def _is_own(thing):
    return type(thing).__module__.partition(".")[0] == PACKAGE


def _is_raised_here(error):
    """Whether it was raised by a line of this package."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] == PACKAGE


def _fitted_parts(owner: Any, start: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted names and the values of what is fitted, at any depth."""
    for name, value in vars(owner).items():
        if start or is_of_fit(name):
            yield f"{start}{name}", value
            if _is_own(value) and hasattr(value, "__dict__"):
                yield from _fitted_parts(value, f"{start}{name}.")
