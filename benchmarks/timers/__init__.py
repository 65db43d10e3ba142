"""The figures that are watched over time, an asv benchmark each: see `make bench-quick`.

Times are CPU seconds of one thread. An estimator that an older commit does not have is
skipped there: asv compares two commits only where no timer failed. CoNLL-2000 does not
ship: it is read from the folder that SKLEARN_STRUCTSVM_DATA names, or from
scikit-learn's, and its benchmarks are skipped where it is in neither.
"""

import os
import resource
import subprocess
import sys
import warnings
from functools import cache
from time import process_time

import numpy as np
from sklearn.datasets import (
    load_digits,
    make_classification,
    make_multilabel_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale

import sklearn_structsvm
from sklearn_structsvm import datasets
from sklearn_structsvm.structures import ChainStructure

warnings.simplefilter("ignore", ConvergenceWarning)
# Of asv_checkout.py: the build that is to be measured, not what else is installed.
BUILD = os.environ.get("ASV_PYTHONPATH", "")
if not sklearn_structsvm.__file__.startswith(BUILD):
    raise ImportError(f"{sklearn_structsvm.__file__} is not in {BUILD}")
# A gap_check_interval that leaves the checks at the start and at the end.
NO_CHECKS = 10**9


@cache
def words(step=1, length=None):
    """Every so many of the 626 words of OCR-small, the first so many of those."""
    X, y = datasets.load_ocr_letters(return_X_y=True)
    return X[::step][:length], y[::step][:length]


@cache
def sentences():
    """CoNLL-2000's 8936 of training."""
    try:
        return datasets.fetch_conll2000(
            data_home=os.environ.get("SKLEARN_STRUCTSVM_DATA"),
            download_if_missing=False,
            return_X_y=True,
        )
    except OSError as error:
        raise NotImplementedError("CoNLL-2000 is not there") from error


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    return scale(X), y


@cache
def rows():
    """Rows of three classes, and a classifier of their probabilities."""
    X, y = make_classification(20_000, n_classes=3, n_informative=5, random_state=0)
    return X, y, LogisticRegression().fit(X, y)


@cache
def labeled():
    """Rows with some of twenty labels, and a classifier of their probabilities."""
    X, Y = make_multilabel_classification(2_000, n_classes=20, random_state=0)
    return X, Y, OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)


@cache
def lmo():
    """The oracle, and costs to ask it for."""
    from sklearn_structsvm.confusion.lmo.plugin import PluginLMO

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(7), size=400_000)
    y = (P.cumsum(axis=1) > rng.random((len(P), 1))).argmax(axis=1)
    return PluginLMO(n_threads=1).fit(P, y), rng.random((1, 7, 7))


def estimator(name, *args, **params):
    """By name, so that a commit without it has the other figures."""
    if not hasattr(sklearn_structsvm, name):
        raise NotImplementedError(f"there is no {name} yet")
    return getattr(sklearn_structsvm, name)(*args, **params)


def fit_conll():
    params = {"C": 0.01, "tol": 0.02, "max_iter": 10, "random_state": 0}
    estimator("BCFWClassifier", ChainStructure(), **params).fit(*sentences())


# Over what to fit, with which arguments, and the parameters.
FITS = {
    "BCFWClassifier": (words, (5,), {"random_state": 0}),
    "BCFWClassifierCV": (words, (5, 40), {"cv": 3, "random_state": 0}),
    "CRFClassifier": (words, (5,), {"random_state": 0}),
    "CRFClassifierCV": (words, (5, 40), {"cv": 3, "random_state": 0}),
    "SlackRescaledSSVM": (words, (5, 10), {"tol": 0.01, "random_state": 0}),
    "StackedStructureClassifier": (words, (5, 40), {"estimator": GaussianNB()}),
    "SubLBFGSClassifier": (digits, (), {"C": 0.1}),
    "BMRMClassifier": (digits, (), {"C": 0.1}),
    "PragamClassifier": (digits, (), {"C": 0.1}),
}
PREFIT = {
    "ComplexMetricClassifier": (rows, {"metric": "g_mean"}),
    "MultilabelMetricClassifier": (labeled, {"labels_per_row": 3}),
    "ConformalClassifier": (rows, {}),
}


class _Times:
    """How asv measures: few runs, in turns with those of the other commit."""

    timer = process_time
    number = 1
    repeat = 2
    rounds = 2
    warmup_time = 0.05
    timeout = 120


class Ocr(_Times):
    """BCFW over chains on OCR-small, lambda = 0.01."""

    def setup(self):
        self.X, self.y = words()
        self.C = 1.0 / (0.01 * len(self.X))

    def fit(self, **params):
        params |= {"C": self.C, "random_state": 0}
        model = estimator("BCFWClassifier", ChainStructure(), **params)
        model.fit(self.X, self.y)

    def time_ten_passes(self):
        self.fit(
            tol=0.0,
            max_iter=10,
            step="fw",
            solver_options={"cache": False, "gap_check_interval": NO_CHECKS},
        )

    def time_to_gap(self):
        self.fit(tol=1e-3)


class Conll(_Times):
    """CoNLL-2000: 8936 sentences, 1.6 million weights."""

    repeat = 1
    warmup_time = 0.0

    def setup(self):
        sentences()

    def time_fit(self):
        fit_conll()

    def peakmem_fit(self):
        fit_conll()


class Lmo(_Times):
    """The linear minimization of ComplexMetricClassifier, 400,000 rows of 7 classes."""

    def setup(self):
        self.lmo, self.costs = lmo()

    def time_twenty_calls(self):
        for _ in range(20):
            self.lmo(self.costs)


class Fits(_Times):
    """A fit of each estimator on a small set."""

    params = [*FITS, *PREFIT]
    param_names = ["estimator"]

    def setup(self, name):
        if name in PREFIT:
            load, options = PREFIT[name]
            self.X, self.y, model = load()
            self.model = estimator(name, model, cv="prefit", **options)
        else:
            load, sizes, options = FITS[name]
            self.X, self.y = load(*sizes)
            structure = [ChainStructure()] if load is words else []
            self.model = estimator(name, *structure, **options)

    def time_fit(self, name):
        self.model.fit(self.X, self.y)


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Import(_Times):
    """A new interpreter that imports the package."""

    timer = staticmethod(seconds_of_children)
    warmup_time = 0.0

    def time_import(self):
        subprocess.run([sys.executable, "-c", "import sklearn_structsvm"], check=True)
