"""Deprecated parameters: a warning if they are set, a default value if not."""

from dataclasses import dataclass
from typing import Any

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import Hidden, StrOptions

# The default of a deprecated parameter, and the constraint that allows it.
NOT_SET = "deprecated"
MAY_BE_UNSET = Hidden(StrOptions({NOT_SET}))


@dataclass(frozen=True)
class Deprecated:
    """A parameter that will be removed.

    Attributes
    ----------
    value : object
        The value if it is not set.
    since, until : str
        The version that deprecates it, and the first one without it.
    advice : str
        What to do instead.
    """

    value: Any
    since: str
    until: str
    advice: str


def value_of(estimator, name):
    """The value of a parameter, whether it is deprecated or not."""
    value = getattr(estimator, name)
    if name in estimator._deprecated and is_unset(value):
        return estimator._deprecated[name].value
    return value


def warn_of_deprecated(estimator):
    """FutureWarning for each deprecated parameter that is set."""
    for name, one in estimator._deprecated.items():
        if not is_unset(getattr(estimator, name)):
            warn_caller(
                f"The parameter {name} of {type(estimator).__name__} is deprecated since "
                f"version {one.since} and will be removed in {one.until}. {one.advice}",
                FutureWarning,
            )


def is_unset(value):
    """Whether a deprecated parameter has its default."""
    return isinstance(value, str) and value == NOT_SET
