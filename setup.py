"""Build the compiled kernels; all that is declarative stands in pyproject.toml.

Every ``sklearn_structsvm/**/_*.pyx`` becomes an extension. The Cython directives
below hold for all of them, and no kernel sets its own. Environment variables, each 1
for yes:

``SKLEARN_STRUCTSVM_NO_OPENMP``
    build without OpenMP even where the compiler has it (the code then runs on one
    thread);
``SKLEARN_STRUCTSVM_TRACE``
    build with line tracing, for coverage of the kernels (slow: never for use);
``SKLEARN_STRUCTSVM_DEBUG``
    check every index of a view, and compile with assertions (``make debug``);
``SKLEARN_STRUCTSVM_SANITIZE``
    let the compiler watch memory and undefined behavior (``make sanitize``);
``SKLEARN_STRUCTSVM_STRICT``
    let no warning pass, neither Cython's nor the C compiler's (``.ci/run``).
"""

import os
import re
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

PACKAGE = "sklearn_structsvm"
# Memoryviews and the like are compiled once, into this module, and not into each.
SHARED = f"{PACKAGE}._cyutility"
NO_OPENMP, TRACE, DEBUG, SANITIZE, STRICT = (
    os.environ.get(f"SKLEARN_STRUCTSVM_{name}") == "1"
    for name in ("NO_OPENMP", "TRACE", "DEBUG", "SANITIZE", "STRICT")
)

# Generated C, objects and libraries of in-place builds, kept from one build to the
# next so that an edit recompiles one kernel; each variant has a folder of its own.
VARIANT = (
    "-trace" * TRACE + "-debug" * DEBUG + "-sanitize" * SANITIZE + "-serial" * NO_OPENMP
)
BUILD = f"build/{sys.implementation.cache_tag}{VARIANT}"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "freethreading_compatible": True,
    # Kernels are made anew from what Python objects hold, and what would pickle them is a
    # tenth of the code.
    "auto_pickle": False,
    "linetrace": TRACE,
}
Options.warning_errors = STRICT
MACROS = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if TRACE else []

# What keeps loops such as `m = x if x > m else m` from becoming vector code is errno,
# floating-point traps and the sign of zero, on none of which a kernel relies. NaN and
# infinity keep their meaning. MSVC knows none of these; its default is -O2 already.
OPTIMIZE = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros"]
# Python compiles without assertions unless it is told otherwise.
if DEBUG:
    OPTIMIZE += ["-UNDEBUG"]
# A multiply-add rounds once where a product and a sum round twice. Compilers choose one
# or the other loop by loop, even by where arrays lie (`y += a * x` has a second loop for
# arrays that may overlap): equal inputs would not give equal bits. So nothing is
# contracted, but in kernels that arithmetic limits, where either no loop has such a twin
# or all contract.
CONTRACTED = [
    "sklearn_structsvm._utils._matrix._products",
    "sklearn_structsvm.confusion.lmo._plugin",
]
# What waits for calls of Python, and not for arithmetic. -O2 takes the compiler a quarter
# less time, and GCC's later option is the one that counts.
OF_CALLS = [SHARED, f"{PACKAGE}.structures._callback", f"{PACKAGE}.structures._probe"]
# Python compiles with -g, which takes a third of the compiler's time and five sixths of
# the bytes; CFLAGS=-g brings it back.
if "-g" not in os.environ.get("CFLAGS", ""):
    OPTIMIZE += ["-g0"]
if STRICT:
    # Excused: what GCC says of code that Cython writes. It takes the number of a C line,
    # set before each jump to an error, for uninitialized, and an Ellipsis, tested by
    # its address, for an integer.
    OPTIMIZE += ["-Wall", "-Wextra", "-Werror"]
    OPTIMIZE += ["-Wno-maybe-uninitialized", "-Wno-array-bounds"]
SANITIZERS = ["-fsanitize=address,undefined"] if SANITIZE else []
if SANITIZE:
    OPTIMIZE = ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS]

PROGRAM = "int main(void) { return 0; }\n"
OPENMP_PROGRAM = """\
#include <omp.h>
int main(void) {
    int i, n = 0;
    #pragma omp parallel for reduction(+:n)
    for (i = 0; i < 4; i++) n += omp_get_num_threads() > 0;
    return n != 4;
}
"""


def extensions():
    """One extension per kernel, and the one they share."""
    sources = sorted(path.as_posix() for path in Path(PACKAGE).rglob("_*.pyx"))
    modules = {source[: -len(".pyx")].replace("/", "."): source for source in sources}
    modules[SHARED] = f"{SHARED.replace('.', '/')}.c"
    return [
        Extension(
            name,
            [source],
            include_dirs=[PACKAGE],
            define_macros=MACROS,
            depends=sorted(headers(Path(source))),
        )
        for name, source in modules.items()
    ]


def headers(path):
    """The C headers that a file includes, be it by a cimport or by another header."""
    if not path.exists():  # the module that Cython generates
        return set()
    text = path.read_text(encoding="utf-8")
    found = set()
    for name in re.findall(r'(?:extern from|#include) "([^"]+)"', text):
        for folder in (Path(PACKAGE), path.parent):
            if (folder / name).exists():
                found |= {(folder / name).as_posix()} | headers(folder / name)
                break
    declared = re.findall(rf"from ({PACKAGE}[\w.]+) cimport", text)
    for other in [*map(cimported, declared), path.with_suffix(".pxd")]:
        if other != path and path.suffix != ".h":
            found |= headers(other)
    return found


def length(extension):
    """The bytes of its generated C."""
    return sum(os.path.getsize(source) for source in extension.sources)


def cimported(module):
    """The declarations of a compiled module."""
    return Path(*module.split(".")).with_suffix(".pxd")


class BuildKernels(build_ext):
    """`build_ext` that asks the compiler what it can do, and uses all cores."""

    def finalize_options(self):
        if self.inplace or self.editable_mode:
            self.build_lib = self.build_temp = BUILD
        super().finalize_options()
        if self.parallel is None:
            self.parallel = True

    def build_extensions(self):
        compile_args, link_args = self.optimize_flags(), [*SANITIZERS]
        openmp = None if NO_OPENMP else self.openmp_flags()
        if openmp is not None:
            compile_args += openmp[0]
            link_args += openmp[1]
        print(f"{PACKAGE}: flags {compile_args}, OpenMP {openmp is not None}")
        for extension in self.extensions:
            extension.extra_compile_args += compile_args
            if extension.name not in CONTRACTED and self.compiler.compiler_type != "msvc":
                extension.extra_compile_args.append("-ffp-contract=off")
            if extension.name in OF_CALLS and "-O3" in compile_args:
                extension.extra_compile_args.append("-O2")
            extension.extra_link_args += link_args
        # What takes longest goes first, so that no core waits for the last kernel.
        self.extensions.sort(key=length, reverse=True)
        super().build_extensions()

    def optimize_flags(self):
        if self.compiler.compiler_type == "msvc":
            return []
        return [flag for flag in OPTIMIZE if self.builds(PROGRAM, [flag], SANITIZERS)]

    def openmp_flags(self):
        """Flags to compile and to link with OpenMP, or None."""
        if self.compiler.compiler_type == "msvc":
            candidates = [(["/openmp"], [])]
        else:
            candidates = [(["-fopenmp"], ["-fopenmp"])]
        if sys.platform == "darwin":
            candidates.append((["-Xpreprocessor", "-fopenmp"], ["-lomp"]))
        for flags in candidates:
            if self.builds(OPENMP_PROGRAM, *flags):
                return flags
        return None

    def builds(self, program, compile_args, link_args):
        """Whether the compiler makes an executable of `program`."""
        with TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(program, encoding="ascii")
            try:
                objects = self.compiler.compile(
                    [str(source)], output_dir=folder, extra_postargs=compile_args
                )
                self.compiler.link_executable(
                    objects, "probe", output_dir=folder, extra_postargs=link_args
                )
            except (CompileError, LinkError):
                return False
        return True


def description():
    """README.md with whole addresses, as a package index has nothing beside it."""
    with open("pyproject.toml", "rb") as file:
        source = tomllib.load(file)["project"]["urls"]["Source"]
    version = Path(PACKAGE, "_version.py").read_text(encoding="utf-8").split('"')[-2]
    pages = f"{source}/blob/v{version}/"
    pictures = pages.replace("//github.com", "//raw.githubusercontent.com")
    pictures = pictures.replace("/blob/", "/")
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r'(<img src=")(?!https?:)', rf"\1{pictures}", text)
    return re.sub(r"(\]\()(?!https?:)", rf"\1{pages}", text)


# The guard is for the processes that cythonize starts: they may import this file.
if __name__ == "__main__":
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        ext_modules=cythonize(
            extensions(),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            # Cython.Coverage looks for the C beside its source.
            build_dir=None if TRACE else BUILD,
            nthreads=0 if sys.platform == "win32" else os.cpu_count() or 1,
        ),
        cmdclass={"build_ext": BuildKernels},
    )
