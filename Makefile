# The targets set up all they need in .venv, once; afterwards they need no network.
#
#   make PYTHON=python3.13 test     another interpreter (after rm -rf .venv)
#   make test PYTEST="-k chain -x"  more arguments for pytest

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
KERNELS := $(shell find sklearn_structsvm -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

# Bytecode of the tests is kept: each process would compile them again.
unexport PYTHONDONTWRITEBYTECODE

# Prints what pyproject.toml asks for: the build, the package, or one of its extras; if
# OLDEST is set, the oldest versions that it allows.
define REQUIREMENTS
import os, re, sys, tomllib
table = tomllib.load(open("pyproject.toml", "rb"))
project = table["project"]
groups = {"build": table["build-system"]["requires"], "package": project["dependencies"]}
groups.update(project["optional-dependencies"])
lines = [line for name in sys.argv[1:] for line in groups[name]]
if os.environ.get("OLDEST"):
    lines = [re.sub(r">=([0-9.]+)(,<[0-9]+)?", r"==\1.*", line) for line in lines]
print(*lines, sep="\n")
endef
export REQUIREMENTS

# $(call install,groups): install these groups of requirements into the environment. What
# is imported is compiled then; to compile all modules takes as long as the rest of pip.
define install
$(PY) -c "$$REQUIREMENTS" $(1) > $(VENV)/requirements.txt && \
    $(PIP) install --quiet --no-compile --requirement $(VENV)/requirements.txt
endef

.PHONY: help demo test doc site lint bench bench-quick coverage debug sanitize parallel \
    fuzz oldest newest clean version release-notes release-check
.DELETE_ON_ERROR:

help:
	@echo "make demo      train on the shipped handwritten words"
	@echo "make test      the whole test suite, doctests included"
	@echo "make doc       the documentation, into doc/_build/html"
	@echo "make site      the documentation, looked at in a headless Chromium"
	@echo "make lint      ruff, cython-lint, codespell, import-linter, mypy"
	@echo "make bench     the benchmarks, which take long"
	@echo "make bench-quick  HEAD beside another commit, BASE=HEAD^, by a few timers"
	@echo "make coverage  line coverage of Python and of the kernels"
	@echo "make debug     the suite over kernels that check every index"
	@echo "make sanitize  the suite over kernels that the compiler's sanitizers watch"
	@echo "make parallel  the suite, each test in four threads at once"
	@echo "make fuzz      10,000 random calls of the public interface"
	@echo "make oldest    demo and suite with the oldest versions of all requirements"
	@echo "make newest    demo and suite with the newest Python of Debian's packages"
	@echo "make release-check  sdist and wheel, built, checked, and tested as installed"
	@echo "make clean     remove what was built, but not $(VENV)"

demo: $(VENV)/.built
	$(PY) examples/demo.py

# Two workers, each with one thread of the BLAS; -n 0 runs all in one process. Each takes
# half of the files, then tests of the other's: what a file prepares is prepared once.
test: $(VENV)/.built $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist worksteal $(PYTEST)

doc: $(VENV)/.built $(VENV)/.test $(VENV)/.doc
	$(PY) -m sphinx -W --keep-going -b html doc doc/_build/html
	$(PY) doc/check_links.py
	$(PY) doc/check_numbers.py

# Needs a Chromium; CHROMIUM=... says where it is.
site: doc $(VENV)/.dev
	$(PY) doc/check_pages.py

lint: $(VENV)/.built $(VENV)/.test $(VENV)/.dev
	$(VENV)/bin/ruff check .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint sklearn_structsvm
	$(VENV)/bin/codespell
	$(VENV)/bin/lint-imports
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --strict --config-file= --follow-imports=silent tests/test_typed_user.py

bench: $(VENV)/.built
	@set -e; for script in benchmarks/bench_*.py; do \
	    echo "== $$script"; $(PY) "$$script"; done

# Commits, so that what is not committed is not measured; each is built once. It fails
# where a timer of HEAD takes a fifth longer than that of BASE.
BASE ?= HEAD^
bench-quick: $(VENV)/.built $(VENV)/.bench
	cd benchmarks && ../$(VENV)/bin/asv machine --yes > /dev/null
	cd benchmarks && ../$(VENV)/bin/asv continuous --interleave-rounds --factor 1.2 \
	    --no-only-changed $(BASE) HEAD

# The traced kernels are slow, so the next target builds them anew without tracing.
coverage: $(VENV)/.built $(VENV)/.test $(VENV)/.dev
	rm $(VENV)/.built
	find sklearn_structsvm -name '*.so' -delete
	SKLEARN_STRUCTSVM_TRACE=1 $(PIP) install --quiet --no-build-isolation --no-deps -e .
	$(VENV)/bin/coverage run -m pytest $(PYTEST)
	$(VENV)/bin/coverage report

# Other builds have folders of their own and leave that of the checkout alone.
# $(call build,VARIABLE): build with that variable set, into build/<target>.
define build
find build/$@ -name '*.py' -delete 2>/dev/null || true
$(1)=1 $(PY) setup.py -q build --build-lib build/$@ --build-temp build/$@.temp
endef

# The suite over the package in build/<target>.
SUITE = -m pytest -c $(CURDIR)/pyproject.toml --rootdir $(CURDIR) -n 2 $(PYTEST) \
    --pyargs sklearn_structsvm $(CURDIR)/tests $(CURDIR)/doc
IN_BUILD = cd build/$@ && PYTHONPATH="$$PWD" OPENBLAS_NUM_THREADS=1

debug: $(VENV)/.built $(VENV)/.test
	$(call build,SKLEARN_STRUCTSVM_DEBUG)
	$(IN_BUILD) $(CURDIR)/$(PY) $(SUITE)

# What the sanitizers find ends the process.
sanitize: $(VENV)/.built $(VENV)/.test
	$(call build,SKLEARN_STRUCTSVM_SANITIZE)
	libraries="$$($(CC) -print-file-name=libasan.so) \
	    $$($(CC) -print-file-name=libstdc++.so)" && \
	$(IN_BUILD) LD_PRELOAD="$$libraries" PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0 \
	    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    $(CURDIR)/$(PY) $(SUITE)

# Each test in four threads at once; with PYTHON=python3.14t, and no GIL to help.
parallel: $(VENV)/.built $(VENV)/.test $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest \
	    --parallel-threads=4 -m "not slow" $(PYTEST) tests

# make fuzz FUZZ="--seed 3 --first 2000 --calls 500" goes on from there.
fuzz: $(VENV)/.built $(VENV)/.test
	$(PY) tests/fuzz/fuzz.py $(FUZZ)

# In copies of the checkout; .ci/stack says where.
oldest newest:
	.ci/stack $@

version:
	@sed -n 's/^__version__ = "\(.*\)"$$/\1/p' sklearn_structsvm/_version.py

# What the changelog says of this version; it is an error that it says nothing.
release-notes:
	mkdir -p dist
	awk -v heading="[$$($(MAKE) --silent version)]" \
	    '/^## / { on = ($$2 == heading); next } on' CHANGELOG.md > dist/release-notes.md
	grep --quiet . dist/release-notes.md

# All of a release but its upload. The wheel is built from the sdist, and tested alone in an
# environment of its own; in the sdist the README's two commands have to do.
release-check: $(VENV)/.release
	rm -rf dist build/release
	$(PY) -m build --outdir dist
	$(VENV)/bin/twine check --strict dist/*
	$(VENV)/bin/check-wheel-contents dist/*.whl
	mkdir -p build/release
	tar -xf dist/*.tar.gz -C build/release --strip-components 1
	$(MAKE) -C build/release demo test
	$(PYTHON) -m venv build/release/wheel
	build/release/wheel/bin/python -m pip --disable-pip-version-check install --quiet \
	    "$$(echo dist/*.whl)[test]"
	cd build/release/wheel && OPENBLAS_NUM_THREADS=1 bin/python -m pytest -n 2 \
	    -c $(CURDIR)/pyproject.toml --rootdir $(CURDIR) -m "not slow" $(PYTEST) \
	    --pyargs sklearn_structsvm $(CURDIR)/tests

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed: make PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What an older definition of the build left behind is not to be built upon.
$(VENV)/.build: pyproject.toml setup.py $(VENV)/.created
	rm -rf build $(VENV)/.installed
	$(call install,build)
	@touch $@

# Libraries of kernels that are gone go too; the others are copied back from build/. What
# the package needs comes while the compiler works, for pip the first time. The bytecode is
# written as pip does for packages: PYTHONDONTWRITEBYTECODE may be set, and without it an
# import takes a fifth longer.
$(VENV)/.built: $(VENV)/.build $(KERNELS)
	find sklearn_structsvm -name '*.so' -delete
	($(call install,package plot progress) && $(PY) -m compileall -q sklearn_structsvm) \
	    & installed=$$!; \
	    if test -e $(VENV)/.installed; then $(PY) setup.py -q build_ext --inplace; \
	    else $(PIP) install --quiet --no-build-isolation --no-deps -e .; \
	    fi > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }; wait $$installed
	@touch $(VENV)/.installed $@

# The extras, each when a target needs it.
EXTRAS := $(addprefix $(VENV)/.,test doc dev bench release)
$(EXTRAS): $(VENV)/.%: pyproject.toml $(VENV)/.created
	$(call install,$*)
	@touch $@

clean:
	rm -rf build dist *.egg-info doc/_build doc/auto_examples doc/generated \
	    doc/sg_execution_times.rst .coverage .pytest_cache .ruff_cache .hypothesis
	find sklearn_structsvm \( -name '*.so' -o -name '*.c' \) -delete
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	rm -f $(VENV)/.built
