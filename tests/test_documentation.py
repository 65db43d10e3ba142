"""Everything public is documented: on the API pages, and in the guide."""

import ast
import builtins
import importlib
import inspect
import json
import re
import runpy
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import sklearn_structsvm
from sklearn_structsvm import metrics, structures
from sklearn_structsvm._utils.documentation import DOCUMENTATION, DocumentedMixin

DOC = Path(__file__).parents[1] / "doc"
README = (DOC.parent / "README.md").read_text(encoding="utf-8")


def pages(folder):
    paths = sorted((DOC / folder).glob("*.rst"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


API, GUIDE = pages("api"), pages("guide")
PUBLIC = (
    *("", ".metrics", ".structures", ".confusion", ".datasets", ".plotting", ".export"),
    ".inspection",
)


def entries():
    """Full names of what the summaries of the API pages list."""
    module, listing, found = None, False, set()
    for line in API.splitlines():
        if current := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = current[1]
        elif line and not line.startswith(" "):
            listing = line == ".. autosummary::"
        elif listing and (name := re.fullmatch(r"   ~?(\w[\w.]*)", line)):
            found.add(f"{module}.{name[1]}")
    return found


MODULES = [importlib.import_module(f"sklearn_structsvm{name}") for name in PUBLIC]
NAMES = [
    (getattr(module, name), name)
    for module in MODULES
    for name in module.__all__
    if name != "__version__"
]


def test_every_public_name_is_in_the_api_page_and_every_entry_exists():
    assert len({name for _, name in NAMES}) == len(NAMES), "a name of two modules"
    for thing, name in NAMES:
        listed = [entry for entry in entries() if entry.rpartition(".")[2] == name]
        if listed:
            module, _, attribute = listed[0].rpartition(".")
            assert len(listed) == 1, name
            assert getattr(importlib.import_module(module), attribute) is thing
        else:
            assert not callable(thing) or name.endswith("_scorer"), (
                f"No page of doc/api lists {name}: metrics are in metrics.rst, scores in "
                "scores.rst."
            )
            assert f"``{name}``" in API
    for entry in entries():
        module, _, name = entry.rpartition(".")
        assert hasattr(importlib.import_module(module), name), entry


# Imports all of the package as Python 3.13 and newer do, which compile docstrings without
# their indentation, and prints the docstrings. Modules that never read a docstring are
# taken as they are.
STRIPPED = """
import ast, inspect, json, pkgutil, sys
from importlib import import_module, machinery

class Loader(machinery.SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path)
        if b"__doc__" not in source:
            return super().get_code(name)
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                if doc := ast.get_docstring(node, clean=True):
                    node.body[0].value.value = doc
        return compile(tree, self.path, "exec", dont_inherit=True)

def hook(path):
    if not path.startswith(sys.argv[1]):
        raise ImportError
    loaders = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES)
    return machinery.FileFinder(path, loaders, (Loader, machinery.SOURCE_SUFFIXES))

sys.path_hooks.insert(0, hook)
sys.path_importer_cache.clear()
sys.path.insert(0, sys.argv[1])
docs = {}
package = import_module("sklearn_structsvm")
for found in pkgutil.walk_packages(package.__path__, "sklearn_structsvm."):
    module = import_module(found.name)
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        docs[module.__name__, name] = inspect.getdoc(value)
        if inspect.isclass(value):
            for own in vars(value):
                docs[module.__name__, name, own] = inspect.getdoc(getattr(value, own))
print(json.dumps([*docs.items()]))
"""


def test_docstrings_do_not_depend_on_how_python_compiles_them():
    root = str(Path(sklearn_structsvm.__file__).parents[1])
    command = [sys.executable, "-c", STRIPPED, root]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) > 1000
    for (module, *names), doc in found:
        thing = importlib.import_module(module)
        for name in names:
            thing = getattr(thing, name)
        assert inspect.getdoc(thing) == doc, (module, names)


GUIDE_LABELS = set(re.findall(r"^\.\. _(guide-[\w-]+):$", GUIDE, flags=re.MULTILINE))


def test_every_entry_of_the_api_page_links_to_the_guide():
    link = re.compile(r"^Read more in the :ref:`User Guide <(.+)>`\.$", re.MULTILINE)
    for entry in entries():
        module, _, name = entry.rpartition(".")
        doc = inspect.getdoc(getattr(importlib.import_module(module), name))
        labels = link.findall(doc)
        assert len(labels) == 1 and labels[0] in GUIDE_LABELS, entry
        assert "\n-----" not in doc[: doc.index("Read more")], entry


def represented():
    """Public classes with an HTML representation, by their entries in the API pages."""
    for entry in sorted(entries()):
        module, _, name = entry.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        if isinstance(thing, type) and issubclass(thing, DocumentedMixin):
            # Those without parameters are what one subclasses.
            if name not in ("ConfusionMetric", "Constraint", "Structure"):
                yield thing, entry


def test_html_representations_link_to_the_page_of_the_class():
    for kind, entry in represented():
        parameters = inspect.signature(kind).parameters.items()
        needed = [name for name, own in parameters if own.default is own.empty]
        page = f"{DOCUMENTATION}generated/{entry}.html"
        shown = kind(**dict.fromkeys(needed))._repr_html_()
        assert f'href="{page}"' in shown, entry


def test_subclasses_of_users_do_not_link_to_pages_that_are_not_there():
    class Mine(structures.Structure):
        pass

    assert Mine()._get_doc_link() == ""


def test_the_address_of_the_documentation_is_that_of_the_project():
    urls = tomllib.loads((DOC.parent / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Documentation"] == DOCUMENTATION


def test_every_estimator_structure_and_metric_is_in_the_guide():
    estimators = [name for name in sklearn_structsvm.__all__ if name[0].isupper()]
    for name in estimators:
        doc = inspect.getdoc(getattr(sklearn_structsvm, name))
        begins = doc[: doc.index("Parameters\n")]
        assert len(re.findall("^>>> (?!from|import)", begins, re.M)) in (2, 3), name
    for name in (*estimators, *structures.__all__):
        assert re.search(rf"\b{name}\b", GUIDE), name
    which = (DOC / "which_estimator.rst").read_text(encoding="utf-8")
    for name in {*sklearn_structsvm.__all__} - {"__version__"}:
        assert f":`{name}`" in which, name
    missing = [name for name in metrics.METRICS if f'``"{name}"``' not in GUIDE]
    assert not missing, f"The table of doc/guide/complex_metrics.rst lacks {missing}."


CONCEPTS = re.findall(
    r"^(\d+)\. \*\*.+\*\* \(``(\w+)`` in ``([\w/.]+)``\)\.",
    (DOC / "guide" / "inside.rst").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def test_forty_concepts_are_defined_in_the_files_that_are_said():
    assert [int(number) for number, _, _ in CONCEPTS] == list(range(1, 41))
    for _, name, file in CONCEPTS:
        text = (DOC.parent / "sklearn_structsvm" / file).read_text(encoding="utf-8")
        defined = rf"^(cdef )?(class|def|struct) {name}\b"
        assert re.search(defined, text, flags=re.MULTILINE), name


def test_the_map_for_contributors_has_every_room():
    text = (DOC.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(
        r"^```\n(plotting/.+?)^```$", text, flags=re.DOTALL | re.MULTILINE
    )
    package = DOC.parent / "sklearn_structsvm"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    top = set(re.findall(r"^(\w+)/ ", drawn, flags=re.MULTILINE)) | {"onnx"}
    assert top == rooms
    for name in re.findall(r"^   (\w+)/ ", drawn, flags=re.MULTILINE):
        assert [*package.glob(f"*/{name}/__init__.py")], name


def test_every_link_for_contributors_leads_to_a_file():
    text = (DOC.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        assert (DOC.parent / target).exists(), target


def test_every_example_has_its_place_in_the_gallery():
    listed = runpy.run_path(str(DOC / "reading_order.py"))["EXAMPLES"]
    examples = DOC.parent / "examples"
    scripts = {path.relative_to(examples).as_posix() for path in examples.rglob("*.py")}
    listed = [f"{folder}/{name}" for folder, names in listed.items() for name in names]
    assert sorted(listed) == sorted(scripts - {"demo.py"})


FIGURES = re.findall(r"^\.\. plot:: (\S+)\n((?:   .*\n)+)", GUIDE, flags=re.MULTILINE)


def test_every_figure_is_in_the_guide_once_and_described():
    scripts = sorted(path.name for path in (DOC / "figures").glob("*.py"))
    assert sorted(name for name, _ in FIGURES) == scripts
    for name, options in FIGURES:
        assert re.match(r"   :alt: \S.{40,}", options), name


@pytest.mark.parametrize(
    "snippet",
    re.findall(r"^```python\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE),
)
def test_every_snippet_of_the_readme_runs(snippet, capsys):
    exec(compile(snippet, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("\n") >= snippet.count("print(")
    lines = [line for line in snippet.splitlines() if line and "import " not in line]
    assert len(lines) <= 6 and "print(" in snippet


def test_links_of_the_readme_lead_to_files_or_pages_and_to_no_source():
    for target in re.findall(r"(?:\]\(|src=\")(?!https?:)([^)\"]+)", README):
        assert (DOC.parent / target).exists(), target
    for page in re.findall(rf"\]\({DOCUMENTATION}([^)\"]+)\.html\)", README):
        assert (DOC / f"{page}.rst").exists(), page
    assert not re.search(r"\]\([^)]*\.rst\)", README)


def test_all_pages_install_by_one_command():
    command = (DOC / "install_command.rst").read_text(encoding="utf-8")
    assert re.search(r"^pip install .*$", README, re.MULTILINE)[0] in command
    for page in ("index", "install", "getting_started"):
        text = (DOC / f"{page}.rst").read_text(encoding="utf-8")
        assert ".. include:: install_command.rst" in text


def test_the_landing_page_shows_the_code_of_the_readme():
    text = (DOC / "index.rst").read_text(encoding="utf-8")
    shown = re.findall(r"literalinclude:: generated/(\w+)\.py", text)
    assert tuple(shown) == runpy.run_path(str(DOC / "measured.py"))["JOBS"]
    assert len(shown) == README.count("```python")


# What a reader of the pages has already.
READERS_OWN = {
    "X",
    "y",
    "X_new",
    "X_validation",
    "y_validation",
    "group",
    "group_new",
} | {"estimator", "y_true", "y_proba", "y_proba_new", "network", "batches", "n_labels"}


@pytest.mark.parametrize("path", sorted(DOC.glob("**/*.rst")), ids=lambda p: p.stem)
def test_blocks_of_code_import_what_they_use(path):
    """Blocks that no doctest runs, since they need other packages or machines."""
    text = path.read_text(encoding="utf-8")
    start = r"^( *)\.\. code-block:: python\n\n"
    for _, block in re.findall(rf"{start}((?:\1 +.*\n|\n)+)", text, re.M):
        tree = ast.parse(textwrap.dedent(block))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        defined = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {a.asname or a.name.partition(".")[0] for a in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.arg):
                defined.add(node.arg)
        assert used <= defined | READERS_OWN | set(dir(builtins))


def test_the_figures_of_the_readmes_are_those_measured():
    """`python doc/measured.py` writes them."""
    measured = runpy.run_path(str(DOC / "measured.py"))
    for path, text in measured["with_tables"]():
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "record", [pytest.param(path, id=path.stem) for path in DOC.glob("recorded/*.json")]
)
def test_what_is_recorded_of_an_example_is_of_its_present_code(record):
    """`python doc/recorded.py` runs it anew."""
    (path,) = (DOC.parent / "examples").glob(f"*/{record.stem}.py")
    source = path.read_text(encoding="utf-8")
    blocks = json.loads(record.read_text(encoding="utf-8"))
    for block in blocks:
        assert block["code"].strip() in source
        for figure in block["figures"]:
            assert (record.parent / figure).exists()
    code = ast.parse(source).body[1:]
    kept = ast.parse("\n".join(block["code"] for block in blocks)).body
    assert [*map(ast.dump, code)] == [*map(ast.dump, kept)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_example_of_superpixels_runs_where_scikit_image_is():
    pytest.importorskip("skimage")
    path = DOC.parent / "examples" / "sequences" / "superpixels.py"
    found = runpy.run_path(str(path))
    assert found["final"].structure_.inference_ == "messages"
    alone, context = (found["painted"](found[name]) for name in ("alone", "context"))
    assert (context != found["truth"]).mean() < (alone != found["truth"]).mean()


CHECK = runpy.run_path(str(DOC / "check_numbers.py"))


@pytest.fixture(scope="module")
def benchmarks():
    return CHECK["read_benchmarks"]()


@pytest.mark.parametrize(
    "page", [pytest.param(path, id=path.stem) for path in CHECK["PAGES"]]
)
def test_every_figure_of_a_page_is_in_the_source_that_it_names(page, benchmarks):
    """`make doc` checks those of the examples, too."""
    missing = [*CHECK["page_errors"](page, benchmarks)]
    assert not missing, f"Name the source of {missing}: see doc/check_numbers.py."


@pytest.mark.parametrize(
    ("said", "source", "found"),
    [
        ("takes .59 of the passes", "| 0.588 |", True),
        ("takes .59 of the passes", "| 0.58 |", False),
        ("in 22 of 24 pairs", "22 of 24", True),
        ("in 22 of 24 pairs", "22 and 24", False),
        ("12 % of the rows", "0.12", True),
        ("26 to 167 requests", "26, 167", True),
        ("26 to 167 requests", "27, 167", False),
        ("Theorem 3 of Python 3.11, ``tol=0.2``, to 1e-3", "", True),
    ],
)
def test_a_figure_is_found_where_a_number_rounds_to_it(said, source, found):
    assert (not [*CHECK["missing"](said, CHECK["Numbers"](source))]) == found


def test_another_measurement_makes_another_readme():
    measured = runpy.run_path(str(DOC / "measured.py"))
    claims = measured["read_claims"]()
    for claim in claims.values():
        claim["cases"] = {case: [1.0, 77.0] for case in claim["cases"]}
    assert "**77** (77 to 77)" in measured["readme_table"](claims)
    assert "**77** (77 to 77)" not in README


def test_every_estimator_has_a_timer_and_every_timer_a_title():
    timers = runpy.run_path(str(DOC.parent / "benchmarks/timers/__init__.py"))
    timed = {*timers["FITS"], *timers["PREFIT"]}
    assert timed == {name for name in sklearn_structsvm.__all__ if name[0].isupper()}
    names = {
        f"{group}.{name}"
        for group, methods in timers.items()
        if isinstance(methods, type) and "timer" in dir(methods)
        for name in dir(methods)
        if name.startswith(("time_", "peakmem_"))
    }
    measured = runpy.run_path(str(DOC / "measured.py"))
    assert names - {"Fits.time_fit"} == set(measured["TIMERS"])
    assert {*measured["TIMERS"].values(), *timed} == set(measured["TIMED"])
