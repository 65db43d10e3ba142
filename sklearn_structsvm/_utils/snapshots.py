"""Estimators that answer in some threads while another one fits them.

A fit works on a `Draft`, which replaces the fitted attributes by a single assignment. A
method that reads several attributes works on a `snapshot`, so that all are of one fit.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.fitted import is_of_fit
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tables import misreadings_told, warn_of_other_order

Method = TypeVar("Method", bound=Callable[..., Any])

# Fitted attributes whose names do not say so.
PRIVATE = ("_calibrated", "_dual_state")

# What no attribute is.
NOTHING = object()


class FittedAside:
    """Marks estimators whose fits work on a `Draft`."""


def snapshot(estimator):
    """The estimator as it is now, whatever another thread fits later.

    It shares the estimator's attributes, so it costs next to nothing, and what is set in
    it stays, unless there is another fit in between. Other estimators than those of this
    package are returned as they are.
    """
    if not isinstance(estimator, FittedAside):
        return estimator
    return _made(type(estimator), vars(estimator))


def of_one_fit(method: Method) -> Method:
    """Decorates a method: it works on a snapshot. Damaged attributes are a ValueError."""

    @wraps(method)
    def reading(estimator, *args, **kwargs):
        fitted = _made(type(estimator), vars(estimator))
        given = dict(zip(("X", "y"), args, strict=False)) | kwargs
        warn_of_other_order(given.get("X"), given)
        with damage_refused(fitted), misreadings_told(given.get("X"), vars(fitted)):
            return method(fitted, *args, **kwargs)

    return with_plain_calls(reading)  # type: ignore[return-value]


class Draft:
    """A copy of an estimator to work on, until it replaces what is fitted.

    `estimator`: the copy. It shares the values of the original's attributes.
    """

    def __init__(self, original):
        self.original, self.before = original, vars(original).copy()
        self.estimator = _made(type(original), self.before.copy())

    def take_fitted(self):
        """Remove the fitted attributes from the copy, and return them as a dict."""
        own = vars(self.estimator)
        return {name: own.pop(name) for name in list(own) if is_fitted_attribute(name)}

    def replace(self):
        """Give the original what is fitted in the copy, and what was changed there.

        Its other attributes stay as they are now: another thread may have set a parameter
        since the draft was made. The last of several drafts replaces all that is fitted.
        """
        found = {
            name: value
            for name, value in vars(self.estimator).items()
            if is_fitted_attribute(name) or value is not self.before.get(name, NOTHING)
        }
        old = vars(self.original)
        kept = _not_fitted(old)
        self.original.__dict__ = now = kept | found
        # What another thread has set while these lines ran.
        now.update(
            (name, value)
            for name, value in _not_fitted(old).items()
            if value is not kept.get(name, NOTHING)
        )


def is_fitted_attribute(name):
    return name in PRIVATE or is_of_fit(name)


def _not_fitted(attributes):
    # A copy cannot change while it is read.
    items = attributes.copy().items()
    return {name: value for name, value in items if not is_fitted_attribute(name)}


def _made(kind, attributes):
    made = kind.__new__(kind)
    made.__dict__ = attributes
    return made
