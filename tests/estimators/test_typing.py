"""What an editor can complete: parameters by the signature, attributes by annotations."""

import inspect
import re
from importlib.resources import files
from typing import get_type_hints

import pytest

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
    assert len(names) >= 10
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


def test_annotations_are_offered_to_type_checkers():
    assert files(sklearn_structsvm).joinpath("py.typed").is_file()
