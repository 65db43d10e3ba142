"""What was meant: the words of answers to misspelt names, values and calls."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, isfunction, signature
from typing import Any, Self, TypeVar

from sklearn_structsvm._utils import compat

Method = TypeVar("Method", bound=Callable[..., Any])


def meant(given, choices, likeness=0.65):
    """The words "Did you mean 'chain'?" if a choice is like what was given; else ''."""
    found = closest(given, choices, likeness)
    return f" Did you mean {found[0]!r}?" if found else ""


def closest(given, choices, likeness=0.65):
    """A list of the choice that was meant, or of none.

    Neither case nor punctuation counts, nor whether it is one or several. Choices may be
    any labels. `likeness`: that of `difflib`, from 0 to 1. One or two letters are like
    anything else.
    """
    same = [choice for choice in choices if str(choice) == str(given)]
    if same:
        return same[:1]
    # Of equal ones the last is taken: that with the same letters, in another order.
    letters = sorted(str(given))
    ordered = sorted(choices, key=lambda choice: sorted(str(choice)) == letters)
    by_key = {_key(choice): choice for choice in ordered}
    key = _key(given)
    for own in (key, f"{key}s", key.removesuffix("s")) if key else ():
        if own in by_key:
            return [by_key[own]]
    close = get_close_matches(key, by_key, 3, likeness) if len(key) > 2 else []
    close.sort(key=lambda own: sorted(own) != sorted(key))
    return [by_key[own] for own in close[:1]]


def _key(value):
    return re.sub(r"[\W_]", "", str(value)).lower()


def in_plain_words(message):
    """scikit-learn's message about the value of a parameter, as a reader wants it.

    Classes go by their own names and choices are in order; the choice that was meant, the
    object of a class or the share of a percentage follows.
    """
    message = re.sub(r"instance of '[\w.]*?(\w+)'", r"instance of \1", message)
    message = re.sub("an instance of bool or an instance of bool_?", "a bool", message)
    message = message.replace(".__init__ must", " must")
    listed = re.findall(r"a str among \{(.*?)\}", message)
    for names in listed:
        ordered = ", ".join(sorted(names.split(", ")))
        ordered = f"one of {ordered}" if "," in ordered else ordered
        message = message.replace(f"a str among {{{names}}}", ordered)
    choices = sorted(re.findall(r"'(.*?)'", ", ".join(listed)))
    if found := re.search(r"Got '(.*)' instead", message):
        return message + meant(found[1], choices)
    if found := re.search(r"Got <class '[\w.]*?(\w+)'> instead", message):
        name = found[1]
        return message.replace(found[0], f"Got a class instead: write {name}()")
    found = re.search(r"range .0(?:\.0)?, 1(?:\.0)?[)\]].* Got ([\d.]+) instead", message)
    return message + of_percent(float(found[1])) if found else message


def of_percent(number):
    """Words for a number that should have been a share."""
    return f" For {number:g}% write {number / 100:g}." if 2 < number < 100 else ""


def check_call(function, args, given):
    """TypeError in plain words for arguments that a function does not have, or lacks.

    `args`, `given`: by position, with the object or class of a method, and by name.
    """
    expected = signature(function)
    try:
        expected.bind(*args, **given)
    except TypeError:
        name, kind, parameters = function.__name__, None, dict(expected.parameters)
        if args and next(iter(parameters), "") in ("self", "cls"):
            del parameters[next(iter(parameters))]
            owner, *args = args
            kind = owner if isinstance(owner, type) else type(owner)
            if not hasattr(kind, name):
                raise TypeError(
                    f"{name} is a method of objects: make one first, by its class with "
                    "parentheses, and call it on that."
                ) from None
            name = f"{kind.__name__}.{name}".removesuffix(".__init__")
        words = _fault_of_call(name, kind, parameters, args, given)
        raise TypeError(f"{name} {words}") from None
    bound = expected.bind(*args, **given).arguments
    names = [name for name in ("estimator", "model") if name in bound]
    model = bound[names[0]] if names else expected
    if type(model).__module__.partition(".")[0] in ("builtins", "numpy", "pandas"):
        kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty
        own = [n for n, p in expected.parameters.items() if (p.kind, p.default) == kinds]
        own, name = [n for n in own if n != "cls"], function.__qualname__
        raise TypeError(
            f"{name} takes an estimator first; got {type(model).__name__}: write "
            f"{name}({', '.join(own)})."
        ) from None


def _fault_of_call(name, kind, parameters, args, given):
    """What is wrong with a call: an unknown name, too many or too few arguments.

    `kind` or None: the class that the function belongs to. A class is named like its
    `__init__`.
    """
    kinds = [parameter.kind for parameter in parameters.values()]
    unknown = [own for own in given if own not in parameters]
    if unknown and Parameter.VAR_KEYWORD not in kinds:
        words = _of_another(unknown[0], parameters, kind, name)
        return f"has no parameter {unknown[0]!r}.{words}"
    places = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    by_place = [own for own, p in parameters.items() if p.kind in places]
    if len(args) > len(by_place) and Parameter.VAR_POSITIONAL not in kinds:
        most = f"only {', '.join(by_place)}" if by_place else "nothing"
        others = [
            own for own, p in parameters.items() if p.kind is Parameter.KEYWORD_ONLY
        ]
        by_name = f"; all else by name, as in {name}({others[0]}=...)" if others else ""
        return f"takes {most} by position{by_name}."
    passed = by_place[: len(args)]
    for own in passed:
        if own in given:
            return f"got {own!r} twice: by position and by name."
    left = {own: p for own, p in parameters.items() if own not in passed}
    needed = next(
        own
        for own, p in left.items()
        if p.default is Parameter.empty
        and (p.kind is Parameter.POSITIONAL_ONLY or own not in given)
        and p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    )
    return f"needs the argument {needed!r}."


def _of_another(given, parameters, kind, name):
    """What was meant by a name that is not a parameter.

    A class may say what to write instead of a parameter, in `_instead`.
    """
    is_method = kind is not None and name != kind.__name__
    if given in (instead := getattr(kind, "_instead", {})) and not is_method:
        return f" {instead[given]}"
    options = () if is_method else getattr(kind, "_option_table", ())
    if words := meant(given, [*parameters, *options]):
        return words
    if is_method and given in signature(kind).parameters:
        return f" It is one of {kind.__name__}: write {kind.__name__}({given}=...)."
    return f" It has {', '.join(parameters)}."


def with_plain_calls(function: Method) -> Method:
    """The function or method with the errors of `check_call`."""

    @wraps(function)
    def call(*args, **given):
        try:
            return function(*args, **given)
        except TypeError:
            check_call(function, args, given)
            raise

    return call  # type: ignore[return-value]


def with_plain_refusals(function):
    """The function, with the errors of `in_plain_words`."""

    @wraps(function)
    def call(*args, **given):
        try:
            return function(*args, **given)
        except compat.InvalidParameterError as error:
            message = in_plain_words(str(error))
            raise compat.InvalidParameterError(message) from None

    return call


def require(package, caller):
    """The module of this name; ImportError with what to install if it is missing."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError(
            f"{caller} needs {name}, which is not installed: pip install {name}"
        ) from error


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
) -> Callable[[Method], Method]:
    """scikit-learn's decorator, with errors in plain words."""
    check = compat.validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )

    def decorate(function):
        return with_plain_refusals(with_plain_calls(check(function)))

    return decorate


class ExplainsMistakes:
    """Answers to misspelt parameters of a class; before `BaseEstimator`.

    Methods that read what was fitted have them by `of_one_fit`.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in ("__init__", "fit", "fit_transform", "transform"):
            if isfunction(method := vars(cls).get(name)):
                setattr(cls, name, with_plain_calls(method))

    @classmethod
    @cache
    def _get_param_names(cls):
        """Those of the constructor, which are the same in each of a fit's many calls."""
        return super()._get_param_names()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of objects in them by names such as ``estimator__C``."""
        model: Any = self
        for name in params:
            own, known = name.partition("__")[0], model.get_params(deep=False)
            if own in known:
                continue
            inner = [k for k in model.get_params() if k.endswith(f"__{name}")]
            others = f" Did you mean {inner[0]!r}?" if inner else meant(own, known)
            raise ValueError(
                f"Invalid parameter {own!r} for estimator {type(self).__name__}."
                f"{others} Valid parameters are: {sorted(known)}."
            )
        return super().set_params(**params)  # type: ignore[misc]

    @with_plain_refusals
    def _validate_params(self):
        super()._validate_params()
