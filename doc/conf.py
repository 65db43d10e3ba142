"""Sphinx settings. `make doc` builds offline; see INTERSPHINX below."""

import os
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import matplotlib

from sklearn_structsvm import __version__

HERE = Path(__file__).parent
ROOT = HERE.parent

matplotlib.use("Agg")

project = "sklearn-structsvm"
author = "the sklearn-structsvm developers"
copyright = f"2025, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
# Single backticks in a docstring are names and values of Python.
default_role = "literal"
nitpicky = False

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Links to other projects' pages need a network: SPHINX_INTERSPHINX=1 make doc.
if os.environ.get("SPHINX_INTERSPHINX") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"demo\.py$",
    "within_subsection_order": "sphinxext_order.ReadingOrder",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("sklearn_structsvm",),
    "reference_url": {"sklearn_structsvm": None},
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e6,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = project
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
