"""Parameters and options of an estimator in one dict, as tests vary them."""

from functools import partial
from inspect import signature


def allowed_of(kind):
    """The constraints of all parameters and options of an estimator, by name."""
    options = {name: option.allowed for name, option in kind._option_table.items()}
    return kind._parameter_constraints | options


def placed(kind):
    """A class or a function that takes its `solver_options` as keywords as well."""
    known = kind.keywords if isinstance(kind, partial) else {}

    def make(*args, **params):
        names = signature(kind).parameters
        options = {name: params.pop(name) for name in [*params] if name not in names}
        if options:
            given = params.get("solver_options", known.get("solver_options"))
            params["solver_options"] = (given or {}) | options
        return kind(*args, **params)

    return make


def setting(model, name, default=None):
    """The value of a parameter, or of an option that was given."""
    options = getattr(model, "solver_options", None) or {}
    return options.get(name, getattr(model, name, default))


def set_placed(model, **params):
    """`set_params` of parameters and options."""
    prefix = "solver_options__"
    places = {name: prefix + name for name in model._option_table}
    return model.set_params(**{places.get(k, k): v for k, v in params.items()})
