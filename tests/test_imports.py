"""Kernels keep to the contracts that import-linter holds Python to; little is loaded."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "sklearn_structsvm"
KERNELS = sorted((ROOT / PACKAGE).rglob("_*.p[yx][xd]"))


def layered_contracts():
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract["type"] == "layers":
            (container,) = contract["containers"]
            yield container, contract["layers"]


def imported(path):
    """The modules of the package that a kernel imports, cimports or includes."""
    text = path.read_text(encoding="utf-8")
    yield from re.findall(rf"^from ({PACKAGE}[\w.]*) c?import", text, re.MULTILINE)
    for header in re.findall(r'^cdef extern from "(\w.*)\.h"', text, re.MULTILINE):
        yield f"{PACKAGE}.{header.replace('/', '.')}"


def floor_of(module, container, layers):
    """The layer that a module is of, from the top, and its name in the layer."""
    if not module.startswith(f"{container}."):
        return None
    name = module[len(container) + 1 :].split(".")[0]
    for level, layer in enumerate(layers):
        if name in re.split(r" [|:] ", layer):
            return level, name
    raise AssertionError(f"{module} is in no layer of {container}")


@pytest.mark.parametrize("container, layers", [*layered_contracts()])
def test_kernels_import_downwards_only(container, layers):
    pairs = [(path, module) for path in KERNELS for module in imported(path)]
    for path, module in pairs:
        source = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        own = floor_of(source, container, layers)
        assert module != PACKAGE, "nothing imports the package's face"
        other = floor_of(module, container, layers)
        if own is None or other is None or own == other:
            continue
        assert own[0] < other[0], f"{source} imports {module}"


def test_kernels_were_found():
    assert len(KERNELS) > 40


def test_solvers_ask_no_object_which_attributes_it_has():
    """What they need of an iterate, an oracle, a risk or a problem is declared there."""
    paths = [*(ROOT / PACKAGE / "solvers").rglob("*.py")]
    paths += (ROOT / PACKAGE / "solvers").rglob("*.pyx")
    asked = re.compile(r"\b(?:has|get)attr\(")
    asking = [path for path in paths if asked.search(path.read_text(encoding="utf-8"))]
    assert len(paths) > 40 and not asking


LOADED = """
import json, sys
import sklearn.linear_model
before = set(sys.modules)
import sklearn_structsvm
import sklearn_structsvm.plotting
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def test_the_face_and_displays_load_no_package_that_scikit_learn_does_not():
    """Those of the extras above all, such as Dask, matplotlib and skl2onnx."""
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    others = set(json.loads(done.stdout)) - sys.stdlib_module_names
    assert PACKAGE in others
    # Cython names its own after itself.
    others = {name for name in others if not name.startswith("_cy")}
    assert others <= {PACKAGE, "sklearn", "scipy", "numpy", "joblib"}
