"""Options that an estimator takes in one dict, so that its constructor stays short."""

from collections.abc import Mapping
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

from sklearn import get_config

from sklearn_structsvm._utils.compat import (
    Interval,
    InvalidParameterError,
    validate_parameter_constraints,
)
from sklearn_structsvm._utils.mistakes import meant, with_plain_refusals

# Valid values of parameters and options.
POSITIVE = [Interval(Real, 0, None, closed="neither")]
COUNT = [Interval(Integral, 1, None, closed="left")]

# With it `set_params` sets one option and keeps the others.
PREFIX = "solver_options__"


class Option(NamedTuple):
    """An option: its default, and its valid values as scikit-learn's constraints."""

    default: Any
    allowed: list[Any]


class OptionsMixin:
    """For estimators with a parameter `solver_options`; before `BaseEstimator`.

    `_option_table`: the options by name. The docstring of a class explains them.
    """

    _option_table: ClassVar[dict[str, Option]] = {}
    solver_options: dict[str, Any] | None = None

    def __new__(cls, *args: Any, **params: Any) -> Self:
        refuse_misplaced(cls, params, TypeError)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict
            Parameters by name, as for the constructor. Those of an inner estimator are
            named like ``estimator__C``. An option is named like
            ``solver_options__max_time``, and the others stay as they are.

        Returns
        -------
        self : object
            The estimator.
        """
        refuse_misplaced(type(self), params, ValueError)
        options = {
            name.removeprefix(PREFIX): params.pop(name)
            for name in list(params)
            if self._option_table and name.startswith(PREFIX)
        }
        super().set_params(**params)  # type: ignore[misc]
        if options:
            self.solver_options = (self.solver_options or {}) | options
        return self

    @property
    def _options(self):
        """The values of all options, as attributes."""
        return SimpleNamespace(**with_defaults(self.solver_options, self._option_table))

    def _settings(self):
        """The values of all parameters and options, by name."""
        params = self.get_params(deep=False)
        return params | with_defaults(self.solver_options, self._option_table)

    def _check_options(self):
        owner, params = type(self).__name__, self.get_params(deep=False)
        for name, value in (self.solver_options or {}).items():
            if name in params:
                raise InvalidParameterError(
                    f"{name!r} is a parameter of {owner}, not one of its solver_options: "
                    f"write {name}={value!r}."
                )
        owner, table = self._known_options()
        check_options(owner, self.solver_options, table)

    def _known_options(self):
        """What takes the options, in words, and the table of all of them."""
        return type(self).__name__, self._option_table


def with_defaults(given, table):
    """The values of all options in a table."""
    # Anything else is answered when it is checked.
    given = given if isinstance(given, Mapping) else {}
    return {name: given.get(name, option.default) for name, option in table.items()}


@with_plain_refusals
def check_options(owner, given, table):
    """An error, as for a parameter, for an unknown option or a value of a wrong kind.

    `owner`: the class or function that was given them.
    """
    if not given:
        return
    for name in given:
        if name not in table:
            raise InvalidParameterError(
                f"{name!r} is not among the solver_options of {owner}."
                f"{meant(name, table)} They are: {', '.join(sorted(table))}."
            )
    if not get_config()["skip_parameter_validation"]:
        constraints = {name: table[name].allowed for name in given}
        owner = f"the solver_options of {owner}"
        validate_parameter_constraints(constraints, given, owner)


def refuse_misplaced(cls, params, kind):
    """An error that says where an option belongs that was given as a parameter."""
    misplaced = {name: params[name] for name in params if name in cls._option_table}
    if misplaced:
        words = ", ".join(f"{name!r}: {value!r}" for name, value in misplaced.items())
        listed = ", ".join(misplaced)
        raise kind(
            f"{cls.__name__} takes {listed} in its solver_options: write "
            f"solver_options={{{words}}}."
        )
