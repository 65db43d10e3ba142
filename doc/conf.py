"""Sphinx settings. `make doc` builds offline; see intersphinx below."""

import inspect
import json
import os
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util.inspect import stringify_signature
from sphinx_gallery.directives import imgsgnode

from sklearn_structsvm import __version__

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one

import versions

HERE = Path(__file__).parent
ROOT = HERE.parent
project = "sklearn-structsvm"
author = "the sklearn-structsvm developers"
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
copyright = author
version = release = __version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "measured",
    "recorded",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "install_command.rst"]
# Single backticks in a docstring are names and values of Python.
default_role = "literal"

autosummary_generate = True
# What a structure offers to solvers, and what all estimators inherit, is left out. So is
# what solvers call of metrics and constraints: it stands with their base classes.
autosummary_context = {
    "hidden": [
        "check_data",
        "decode_batch",
        "decision_function",
        "example_weights",
        "fit",
        "join_weights",
        "joined_labels",
        "least_costly",
        "make_oracle",
        "potentials",
        "present_scores",
        "score",
        "split_weights",
        "unseen_labels",
        "weight_bounds",
    ],
}
numpydoc_show_class_members = False
# In the list on the right, long names would be cut off.
toc_object_entries_show_parents = "hide"
# Types are told in words, below the signature.
autodoc_typehints = "none"

# Links to the pages of other projects need a network: SPHINX_INTERSPHINX=1 make doc
if os.environ.get("SPHINX_INTERSPHINX") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "python": ("https://docs.python.org/3", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "ignore_pattern": r"demo\.py$",
    "copyfile_regex": r"names\.txt",
    "subsection_order": "reading_order.section_place",
    "within_subsection_order": "reading_order.ReadingOrder",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("sklearn_structsvm",),
    "reference_url": {"sklearn_structsvm": None},
    "download_all_examples": False,
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
    "thumbnail_size": (560, 392),
    "image_srcset": ["2x"],
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "min_reported_time": 1e6,
}

# Figures of the guide are drawn by doc/figures/*.py, anew where a script has changed.
plot_basedir = "figures"
plot_formats = ["svg"]
plot_html_show_formats = plot_html_show_source_link = False
plot_apply_rcparams = True
plot_rcparams = {"axes.grid": False, "svg.hashsalt": project}

# What is copied is what one types.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas without a network: all of MathJax that TeX needs, fonts included, is one file.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").submodule_search_locations[0])
MATHJAX /= "static/mathjax/tex-svg-full.js"
mathjax_path = MATHJAX.name
# A command that it does not know is an error, which doc/check_pages.py finds.
mathjax3_config = {"tex": {"packages": {"[-]": ["noundefined"]}}}

# Of the versions that are published side by side, which this is; see doc/versions.py.
SITE_VERSION = os.environ.get("SITE_VERSION", "dev")
# Pages that are opened as files cannot read the list of versions: they offer none.
ONE_VERSION = """
if (location.protocol === "file:") {
    delete DOCUMENTATION_OPTIONS.theme_switcher_json_url;
    document.documentElement.classList.add("one-version");
}
"""

html_static_path = ["_static", str(MATHJAX)]
html_theme = "pydata_sphinx_theme"
html_css_files = ["site.css"]
html_logo = html_favicon = "_static/logo.svg"
html_title = project
html_show_sourcelink = False
html_sidebars = {
    page: []
    for page in (
        "index",
        "getting_started",
        "which_estimator",
        "install",
        "changelog",
        "papers",
        "benchmarks",
        "search",
        "genindex",
    )
}
# The gallery has its lines of code in full instead.
html_sidebars["auto_examples/**"] = []
html_context = {"default_mode": "auto"}
html_theme_options = {
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "logo": {"text": project},
    "icon_links": [{"name": "Source", "url": SOURCE, "icon": "fa-brands fa-github"}],
    "navbar_persistent": ["search-button"],  # the field leaves no room for one row
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "switcher": {"json_url": "../versions.json", "version_match": SITE_VERSION},
    "check_switcher": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}


def from_markdown(text):
    """reStructuredText of the changelog, which uses few of Markdown's forms."""
    text = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", text)
    text = re.sub(r"\[([^\]]+)\]\((\S+?)\)", r"`\1 <\2>`__", text)
    lines = []
    for line in text.splitlines():
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            title = re.sub(r"[\[\]]", "", heading[2])
            lines += ["", title, "=-~"[len(heading[1]) - 1] * len(title), ""]
        else:
            lines.append(line)
    return "\n".join(lines)


def read_changelog(app, docname, source):
    if docname == "changelog":
        source[0] = from_markdown((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def box_pictures(app, doctree):
    """Each picture of an example in a box, which scrolls where the page is narrow."""
    for picture in list(doctree.findall(imgsgnode)):
        if "sphx-glr-single-img" in picture["class"]:
            box = nodes.compound(classes=["picture"])
            picture.replace_self(box)
            box += picture


def write_versions(app, error):
    """For a site that is looked at alone; the published list is that of all folders."""
    if error is None and app.builder.format == "html":
        listed = json.dumps(versions.entries([SITE_VERSION]))
        (Path(app.outdir) / "versions.json").write_text(listed)


def of_constructor(app, what, name, obj, options, signature, returned):
    """The signature of `__init__`, where `__new__` only refuses misspelt names."""
    if what == "class" and signature == "(*args, **params)":
        signature = stringify_signature(inspect.signature(obj), show_annotation=False)
    return signature, returned


def setup(app):
    app.add_js_file(None, body=ONE_VERSION, priority=900)
    app.connect("autodoc-process-signature", of_constructor)
    app.connect("source-read", read_changelog)
    app.connect("doctree-read", box_pictures)
    app.connect("build-finished", write_versions)
