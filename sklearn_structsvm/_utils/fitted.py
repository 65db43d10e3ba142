"""Attributes that only a fit sets, before it."""

from typing import TYPE_CHECKING

from sklearn.exceptions import NotFittedError


class FittedAttributes:
    """Mixin: an attribute that only a fit sets is missing with `NotFittedError`.

    These are the public names that end with an underscore and, before the fit, private
    ones. The error is an AttributeError as well.
    """

    # Hidden from type checkers, for which every attribute would exist.
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if hasattr(type(self), name):
                # A property that needs one of them: its own error.
                return object.__getattribute__(self, name)
            kind = type(self).__name__
            is_private = name.startswith("_") and not name.startswith("__")
            is_early = is_private and not any(map(is_of_fit, vars(self)))
            if is_early or is_of_fit(name):
                raise NotFittedError(
                    f"This {kind} is not fitted yet, and has no {name}: call its fit "
                    "first, or take that of a fitted estimator."
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def is_of_fit(name):
    """Whether a name is that of a public attribute that a fit sets."""
    return name.endswith("_") and not name.startswith("_")
