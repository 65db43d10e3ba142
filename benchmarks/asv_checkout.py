"""Environment in which asv runs a commit: asv's own interpreter, a build of the commit.

A commit is built once, into ``build/asv/<commit>``. Where its kernels are those of the
checkout, the checkout's libraries are copied and nothing is compiled.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from asv.environment import Environment
from asv.util import check_output

ROOT = Path(__file__).parents[1]
BUILDS = ROOT / "build" / "asv"
# What a build takes; README.md is read for the package's metadata.
SOURCES = ["sklearn_structsvm", "setup.py", "pyproject.toml", "README.md"]
KERNELS = ["*.pyx", "*.pxd", "*.h", "setup.py"]
VERSIONS = ["numpy", "scipy", "scikit-learn"]
ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"
)


def git(*command, **options):
    return subprocess.run(["git", *command], cwd=ROOT, check=True, **options)


def compiled_alike(commit):
    """Tell whether checkout and commit have the same kernels."""
    command = ["git", "diff", "--quiet", commit, "--", *KERNELS]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def build(commit):
    """Return the folder with the commit's package; build it unless it is there."""
    folder = BUILDS / commit[:12]
    done = folder / ".built"
    if done.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = git("archive", commit, *SOURCES, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=files, check=True)
    if compiled_alike(commit):
        package = ROOT / "sklearn_structsvm"
        for library in [*package.rglob("*.so"), *package.rglob("*.pyd")]:
            shutil.copy2(library, folder / library.relative_to(ROOT))
    else:
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        with open(folder / "build.log", "w") as log:
            subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=True)
    done.touch()
    return folder


class Checkout(Environment):
    """asv's environment of that kind; it has no folder and nothing to install."""

    tool_name = "checkout"

    def __init__(self, conf, python, requirements, tagged_env_vars):
        self._commit = self._folder = None
        # The base class reads them before it sets them.
        self._python, self._tagged_env_vars = python, tagged_env_vars
        self._requirements = {name: version(name) for name in VERSIONS}
        super().__init__(conf, python, self._requirements, tagged_env_vars)

    @classmethod
    def matches(cls, python):
        return True

    @property
    def name(self):
        """Name without versions; the results have them."""
        return f"{self.tool_name}-py{self._python}"

    @property
    def installed_commit_hash(self):
        return self._commit

    def check_presence(self):
        return True

    def create(self):
        pass

    def install_project(self, conf, repo, commit_hash=None):
        self._commit, self._folder = commit_hash, build(commit_hash)
        self._set_commit_hash(commit_hash)

    def run(self, args, **options):
        folder = str(self._folder)
        environ = options.pop("env", None) or os.environ
        # asv's runner undoes PYTHONPATH alone; what a timer starts reads nothing else.
        environ = environ | ONE_THREAD | {"PYTHONPATH": folder, "ASV_PYTHONPATH": folder}
        return check_output([sys.executable, *args], env=environ, **options)
