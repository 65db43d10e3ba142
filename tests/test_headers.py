"""The C headers of the kernels, as a compiler without GNU's extensions reads them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import sklearn_structsvm

PACKAGE = Path(sklearn_structsvm.__file__).parent
COMPILER = next(filter(None, map(shutil.which, ("gcc", "clang"))), None)
ALL = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("_*.h")}
# The others are read several times by one of these, with other types.
GUARDED = sorted(name for name, path in ALL.items() if "#ifndef" in path.read_text())
# C libraries define INFINITY and the like by builtins.
EXTENSIONS = re.compile(r"__attribute__|__builtin_(?!inf|nan|huge)|__restrict__|#pragma")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no gcc or clang")


def compiled(header, *words):
    command = [COMPILER, *words, "-std=c99", "-DSKLEARN_STRUCTSVM_PLAIN_LOOPS"]
    result = subprocess.run(
        [*command, f"-I{PACKAGE}", "-x", "c", "-"],
        input=f'#include "{header}"\n',
        text=True,
        capture_output=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("header", GUARDED)
def test_without_extensions_a_header_is_plain_c(header):
    strictly = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
    compiled(header, "-fsyntax-only", *strictly, "-Wno-unused-function")
    source = ""
    for line in compiled(header, "-E").splitlines():
        if line.startswith("# "):
            source = line.split('"')[1]
        elif source.startswith(str(PACKAGE)):
            assert not EXTENSIONS.search(line), line


def test_all_headers_are_read():
    read = "".join(compiled(header, "-E") for header in GUARDED)
    assert all(f'{name}"' in read for name in ALL)
