"""What editors complete and checkers check: the annotations of all that is public."""

import ast
import inspect
import re
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from sklearn.utils._param_validation import make_constraint

import sklearn_structsvm

ESTIMATORS = [
    value
    for value in map(vars(sklearn_structsvm).get, sklearn_structsvm.__all__)
    if inspect.isclass(value)
]
each_estimator = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


def documented(cls, section):
    """The names that a section of a class's docstring tells of."""
    text = inspect.getdoc(cls)
    end = r"(?=\n\n\w[^\n]*\n-+\n|\Z)"
    body = re.search(rf"^{section}\n-+\n(.*?){end}", text, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", body[1], re.MULTILINE)
    return {name.strip() for head in heads for name in head.split(",")}


@each_estimator
def test_every_documented_attribute_is_annotated(cls):
    names = documented(cls, "Attributes")
    assert len(names) >= 6
    assert all(name.endswith("_") for name in names)
    properties = {
        name
        for name, value in inspect.getmembers(
            cls, lambda value: isinstance(value, property)
        )
        if "return" in value.fget.__annotations__
    }
    assert names <= set(get_type_hints(cls)) | properties


@each_estimator
def test_every_parameter_is_documented_and_in_the_signature(cls):
    assert documented(cls, "Parameters") == set(inspect.signature(cls).parameters)


def public_functions():
    """All that users call, by name: functions, constructors, methods, properties."""
    for name in ("", ".confusion", ".confusion.lmo", ".datasets", ".export",
                 ".inspection", ".metrics", ".plotting", ".preprocessing",
                 ".structures"):  # fmt: skip
        module = import_module(f"sklearn_structsvm{name}")
        for value in map(vars(module).get, module.__all__):
            if inspect.isfunction(value):
                yield value.__qualname__, value
            elif inspect.isclass(value):
                yield from methods(value)


def methods(cls):
    for owner in cls.__mro__:
        if not owner.__module__.startswith("sklearn_structsvm"):
            continue
        for name, value in vars(owner).items():
            value = getattr(value, "fn", value)  # of `available_if`
            value = getattr(value, "__func__", getattr(value, "fget", value))
            called = not name.startswith("_") or name in ("__init__", "__call__")
            if called and inspect.isfunction(value):
                yield f"{owner.__name__}.{name}", value


FUNCTIONS = dict(public_functions())


def test_every_public_function_says_its_types():
    """A call of one that does not is an error of `mypy --strict`."""
    for name, function in FUNCTIONS.items():
        parameters = list(inspect.signature(function).parameters)
        of_a_class = "." in name
        said = set(function.__annotations__)
        assert {*parameters[of_a_class:], "return"} <= said, name


def alternatives(annotation):
    """The types and values that a union lists."""
    kind = get_origin(annotation)
    if kind in (UnionType, Union):
        return [one for part in get_args(annotation) for one in alternatives(part)]
    return list(get_args(annotation)) if kind is Literal else [annotation]


def strings_validated(constraints):
    """The strings that scikit-learn's constraints list; None where any is taken."""
    options = [getattr(c, "options", ()) for c in map(make_constraint, constraints)]
    return {one for some in options for one in some if isinstance(one, str)}


@each_estimator
def test_what_a_constructor_says_it_takes_is_what_fit_accepts(cls):
    hints = get_type_hints(cls.__init__)
    signature = inspect.signature(cls).parameters
    for name, constraints in cls._parameter_constraints.items():
        said = alternatives(hints[name])
        # Duck-typed (estimators, splitters), or with errors that say what to write.
        if Any in said or constraints == "no_validation":
            continue
        takes = [make_constraint(constraint) for constraint in constraints]
        if str not in said:
            strings = {one for one in said if isinstance(one, str)}
            assert strings == strings_validated(constraints), name
        for value in (signature[name].default, *(x for x in said if x is not Any)):
            value = None if value is type(None) else value
            if isinstance(value, (str, type(None))):
                assert any(c.is_satisfied_by(value) for c in takes), (name, value)
        assert (type(None) in said) == any(c.is_satisfied_by(None) for c in takes), name


def test_compiled_classes_that_users_meet_have_a_stub_that_agrees():
    """Those that a public signature names; the others are not met."""
    named = [one for f in FUNCTIONS.values() for one in f.__annotations__.values()]
    met = {one for annotation in named for one in alternatives(annotation)}
    compiled = {
        one
        for one in met
        if inspect.isclass(one)
        and one.__module__.startswith("sklearn_structsvm")
        and sys.modules[one.__module__].__file__.endswith(tuple(EXTENSION_SUFFIXES))
    }
    assert [cls.__name__ for cls in compiled] == ["BlockOracle"]
    for cls in compiled:
        module = Path(sys.modules[cls.__module__].__file__)
        stub = ast.parse((module.parent / f"{module.name.split('.')[0]}.pyi").read_text())
        (body,) = (n.body for n in stub.body if isinstance(n, ast.ClassDef))
        stated = {
            node.name: [argument.arg for argument in node.args.args] for node in body
        }
        there = {name: v for name, v in vars(cls).items() if not name.startswith("_")}
        assert stated == {
            name: list(inspect.signature(value).parameters)
            if callable(value)
            else ["self"]
            for name, value in there.items()
        }


def test_annotations_are_offered_to_type_checkers():
    assert files(sklearn_structsvm).joinpath("py.typed").is_file()
