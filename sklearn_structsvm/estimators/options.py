"""Parameters that need others: one check, one wording. Each estimator has its table."""

from dataclasses import dataclass, field
from inspect import signature
from numbers import Number
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Need:
    """A requirement of a parameter for another one.

    `values`: the values of the parameter with this requirement. None means all values
    except the default, False and empty ones. `other`: the other parameter. `allowed`:
    its allowed values, or types of values. `given`: the requirement applies only if
    other parameters have these values. By default it always applies. `hint`: additional
    sentences for the error.
    """

    values: tuple[Any, ...] | None
    other: str
    allowed: tuple[Any, ...]
    hint: str = ""
    given: dict[str, Any] = field(default_factory=dict)


PACKAGE = __name__.partition(".")[0]


def check_needs(estimator):
    """Raise ValueError if a parameter or option requires another value of a second one.

    Requirements that depend on the data are checked later.
    """
    defaults, params = _defaults(estimator), estimator._settings()
    for name, needs in estimator._needs.items():
        value, default = params[name], defaults[name]
        for need in needs:
            if _has(need, value, default) and _is_where(need, params):
                other = params[need.other]
                if not _is_one(other, need.allowed):
                    raise ValueError(_words(name, value, need, other))


def check_dask_options(estimator):
    """ValueError if a parameter of an estimator needs data in memory."""
    params = estimator._settings()
    for name, allowed in estimator._dask_options.items():
        value = params[name]
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} needs data in memory; with Dask it must be "
                f"{' or '.join(map(repr, allowed))}."
            )


def refuse_row_options(estimator, structure):
    """ValueError if a parameter is for rows, and the data are of a structure."""
    defaults, params = _defaults(estimator), estimator._settings()
    for name, reason in estimator._row_options.items():
        value = params[name]
        if not _is_one(value, (defaults[name],)):
            raise ValueError(
                f"{name}={value!r} is for rows whose structure is read from y, and not "
                f"for {structure}: {reason}."
            )


def _defaults(estimator):
    """Defaults of the class of this package that an estimator belongs to, by name."""
    kinds = type(estimator).__mro__
    kind = next(kind for kind in kinds if kind.__module__.startswith(PACKAGE))
    params = signature(kind.__init__).parameters
    options = {name: option.default for name, option in kind._option_table.items()}
    return {name: param.default for name, param in params.items()} | options


def _has(need, value, default):
    """Whether a value has the requirement."""
    if need.values is not None:
        return _is_one(value, need.values)
    asks_for_nothing = isinstance(value, (bool, np.bool_, list, tuple)) and not value
    return not (asks_for_nothing or _is_one(value, (default,)))


def _is_where(need, params):
    return all(_is_one(params[k], (v,)) for k, v in need.given.items())


def _is_one(value, allowed):
    """Whether a value is one of those allowed, or of their types."""
    # The comparison of an array would be an array.
    is_plain = value is None or isinstance(value, (str, Number, np.bool_))
    return any(
        isinstance(value, one) if isinstance(one, type) else is_plain and value == one
        for one in allowed
    )


def _words(name, value, need, other):
    allowed = [
        f"a {one.__name__}" if isinstance(one, type) else repr(one)
        for one in need.allowed
    ]
    listed = " or ".join(
        [", ".join(allowed[:-1]), allowed[-1]] if allowed[1:] else allowed
    )
    where = [f"{k}={v!r}" for k, v in need.given.items()]
    where = f" with {' and '.join(where)}" if where else ""
    hint = f" {need.hint}" if need.hint else ""
    return (
        f"{_shown(name, value)} requires {need.other}={listed}{where}; got "
        f"{_shown(need.other, other)}.{hint}"
    )


def _shown(name, value):
    """A parameter with its value, which is abbreviated if it is long."""
    words = repr(value)
    if len(words) > 60 or "\n" in words:
        words = f"{type(value).__name__}(...)"
    return f"{name}={words}"
