"""Data of each kind for the estimators, and misbehaving structures in Python."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from _options import placed
from _seeds import new_seed
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import _safe_indexing

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains, make_multilabel
from sklearn_structsvm.metrics import FBeta, LinearLoss
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    Structure,
)
from sklearn_structsvm.structures.constrained import in_angle

# An accuracy near rounding. Most fits reach it. The number of passes depends on the data
# and is never asserted: claims of tests hold for any remaining gap.
ACCURATE = {"step": "pairwise", "tol": 1e-12, "max_iter": 10**4}
however_near = pytest.mark.filterwarnings("ignore:BCFW stopped at max_iter")

FLAT = ("binary", "multiclass", "multilabel")
KINDS = (*FLAT, "multilabel-csr", "chain", "chain-csr", "custom")
# Kinds whose y scikit-learn's checks cannot generate.
STRUCTURED = KINDS[2:]


# Options of losses of the whole sample.
SAMPLE_LOSSES = {
    "f1": {"loss": "f1"},
    "f2": {"loss": FBeta(2.0)},
    "jaccard": {"loss": "jaccard"},
    "zero_one": {"loss": "zero_one"},
    "costs": {"loss": LinearLoss([[0.0, 1.0], [4.0, 0.0]])},
    "break_even": {"loss": "break_even"},
    "precision_at_k": {"loss": "precision_at_k", "k": 0.6},
    "recall_at_k": {"loss": "recall_at_k", "k": 0.5},
    "roc_auc": {"loss": "roc_auc"},
}


class PythonMulticlass(Structure):
    """Predicts one of `n_classes` integers for a feature vector, in pure Python.

    `spy` is called before each decoding in training, so tests can count, wait or raise
    there. If `product` is true, it finds the most violating label of slack rescaling
    directly, without a search.
    """

    def __init__(self, n_classes=3, spy=None, product=False):
        self.n_classes = n_classes
        self.spy = spy
        self.product = product

    @property
    def has_slack_augmented_decode(self):
        return self.product

    def joint_feature(self, x, y):
        phi = np.zeros((self.n_classes, len(x)))
        phi[y] = x
        return phi.ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w):
        return int((w.reshape(self.n_classes, -1) @ x).argmax())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        if self.spy is not None:
            self.spy()
        wrong = np.arange(self.n_classes) != y_true
        return int((w.reshape(self.n_classes, -1) @ x + lam * wrong).argmax())

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        if self.spy is not None:
            self.spy()
        scores = w.reshape(self.n_classes, -1) @ x
        g = (np.arange(self.n_classes) != y_true).astype(float)
        h = 1.0 + scores - scores[y_true]
        inside = [
            in_angle(*point, alpha, beta, strict_alpha, strict_beta)
            for point in zip(h, g, strict=True)
        ]
        values = np.where(inside, h + lam * g, -np.inf)
        return int(values.argmax()) if any(inside) else None

    def slack_augmented_decode(self, x, y_true, w, one=1.0):
        scores = w.reshape(self.n_classes, -1) @ x
        wrong = np.arange(self.n_classes) != y_true
        return int((wrong * (one + scores - scores[y_true])).argmax())


class ExactSSVM(SlackRescaledSSVM):
    """A `SlackRescaledSSVM` with exact searches."""

    _search_rtol = 0.0


def exact_ssvm(structure, **params):
    """An `ExactSSVM`, optionally with settings that are not parameters."""
    names = params.keys() & {"search_rtol", "max_queries"}
    settings = {name: params.pop(name) for name in names}
    model = placed(ExactSSVM)(structure, **params)
    for name, value in settings.items():
        setattr(model, f"_{name}", value)
    return model


@dataclass
class Problem:
    """X and y of one kind, their structure, and an estimator to fit."""

    kind: str
    structure: Structure
    X: object
    y: object
    model: type

    @property
    def n(self):
        return len(self.y)

    @property
    def flat(self):
        return self.structure.flat

    def estimator(self, **params):
        """An estimator that reaches its tol quickly on little data."""
        defaults = {"max_iter": 10**4}
        if params.get("solver", "bcfw") == "bcfw":
            defaults["step"] = "pairwise"
            if self.model is not SlackRescaledSSVM:
                defaults["cache"] = False
        defaults |= {"structure": self.structure, "random_state": 0}
        if self.model is SlackRescaledSSVM:
            if params.get("tol", 1.0) <= ACCURATE["tol"]:
                # The bounds of the angles have larger rounding errors than that.
                defaults["search"] = "exact"
                if self.kind == "custom":
                    defaults["structure"] = PythonMulticlass(product=True)
        is_slack = self.model is SlackRescaledSSVM
        build = exact_ssvm if is_slack else placed(self.model)
        return build(**defaults | params)

    def fitted(self, **params):
        return self.estimator(**params).fit(self.X, self.y)

    def take(self, indices):
        """X and y of some examples."""
        indices = np.asarray(indices)
        return _safe_indexing(self.X, indices), _safe_indexing(self.y, indices)


def make_problem(kind, n=16, seed=0, model=BCFWClassifier):
    if kind in ("binary", "multiclass", "custom"):
        k = 2 if kind == "binary" else 3
        X, y = make_classification(
            n, n_features=4, n_informative=3, n_redundant=0, n_classes=k,
            n_clusters_per_class=1, class_sep=0.5, random_state=new_seed(seed),
        )  # fmt: skip
        structure = {
            "binary": BinaryStructure(),
            "multiclass": MulticlassStructure(),
            "custom": PythonMulticlass(),
        }[kind]
        if kind == "custom":
            X, y = list(X), y.tolist()
        return Problem(kind, structure, X, y, model)
    if kind in ("multilabel", "multilabel-csr"):
        X, y = make_multilabel(n, n_features=5, n_classes=3, random_state=new_seed(seed))
        X = sparse.csr_matrix(X * (X > 0)) if kind.endswith("csr") else X
        return Problem(kind, MultilabelStructure(), X, y, model)
    X, y = make_chains(
        n, n_features=5, n_classes=3, max_length=6, sparse=kind.endswith("csr"),
        n_active=3, random_state=new_seed(seed),
    )  # fmt: skip
    return Problem(kind, ChainStructure(), X, y, model)


# Each estimator once, at its quickest: what it shares with its like is tried above.
EVERY_ESTIMATOR = [
    BCFWClassifier("multiclass", random_state=0),
    BCFWClassifierCV("multiclass", Cs=[0.1, 1.0], cv=2, tol=0.1, random_state=0),
    BMRMClassifier(tol=0.1),
    CRFClassifier("multiclass", tol=0.1, random_state=0),
    CRFClassifierCV("multiclass", Cs=[0.1, 1.0], cv=2, tol=0.1, random_state=0),
    ComplexMetricClassifier(cv=2, random_state=0),
    ConformalClassifier(random_state=0),
    MultilabelMetricClassifier(cv=2),
    PragamClassifier(tol=0.1),
    SlackRescaledSSVM("multiclass", tol=0.1, random_state=0),
    SubLBFGSClassifier(tol=0.1),
]


# All that iterate, in each of their ways: the kind of data, and an estimator.
ROUGH = {"tol": 1e-3, "random_state": 0}
LABELS = {"estimator": MultiOutputClassifier(GaussianNB()), "cv": None}

ITERATIVE = {
    "bcfw": ("chain", BCFWClassifier(**ROUGH)),
    "bcfw-exact": ("binary", BCFWClassifier(step="exact", **ROUGH)),
    "bcfw-batch": ("chain", placed(BCFWClassifier)(algorithm="batch", max_iter=9)),
    "bcfw-warm": ("chain", BCFWClassifier(warm_start=True, **ROUGH)),
    "bcfw-cv": ("chain", BCFWClassifierCV(Cs=[0.1, 1.0], cv=2, random_state=0)),
    "crf-dual": ("chain", CRFClassifier(solver="dual", **ROUGH)),
    "crf-lbfgs": ("chain", CRFClassifier(solver="lbfgs", **ROUGH)),
    "crf-newton": ("multiclass", CRFClassifier(solver="newton", **ROUGH)),
    "crf-cv": ("chain", CRFClassifierCV(Cs=[0.1, 1.0], cv=2, random_state=0)),
    "slack": ("chain", SlackRescaledSSVM(**ROUGH)),
    "slack-sgd": ("chain", SlackRescaledSSVM(solver="sgd", max_iter=5, random_state=0)),
    "slack-cutting-planes": ("chain", SlackRescaledSSVM(solver="cutting_plane", **ROUGH)),
    "slack-one-slack": ("chain", SlackRescaledSSVM(solver="one_slack", **ROUGH)),
    "sublbfgs": ("binary", SubLBFGSClassifier()),
    "bmrm": ("multiclass", BMRMClassifier()),
    "bmrm-structure": ("chain", BMRMClassifier(structure=ChainStructure())),
    "pragam": ("binary", PragamClassifier()),
    "pragam-structure": ("chain", PragamClassifier(structure=ChainStructure(), C=0.1)),
    "metric": ("multiclass", ComplexMetricClassifier(GaussianNB(), cv=None)),
    "sublbfgs-ranking": ("multilabel", SubLBFGSClassifier()),
    "bmrm-ranking": ("multilabel", BMRMClassifier()),
    "metric-weighted": (
        "binary", placed(ComplexMetricClassifier)(GaussianNB(), lmo="weighted")
    ),
    "thresholds": ("multilabel", MultilabelMetricClassifier(**LABELS)),
    "top-labels": ("multilabel", MultilabelMetricClassifier(labels_per_row=1, **LABELS)),
    "top-labels-mixture": (
        "multilabel",
        MultilabelMetricClassifier(metric="g_mean", labels_per_row=2, **LABELS),
    ),
}  # fmt: skip


# For tests of every estimator over a structure.
for_each_estimator = pytest.mark.parametrize(
    "make_problem",
    [partial(make_problem, model=model) for model in (BCFWClassifier, SlackRescaledSSVM)],
    ids=["bcfw", "slack"],
)


def crossed(first, second, each=1):
    """Pairs in which each value has `each` partners at least; with axes of their own."""
    first, second = list(first), list(second)
    n = max(len(first), len(second))
    return list(
        dict.fromkeys(
            (first[i % len(first)], second[(i + i // len(second) + k) % len(second)])
            for k in range(each)
            for i in range(n)
        )
    )


def gaps_of(*models):
    return np.maximum([model.dual_gap_ for model in models], 0.0) + 1e-14


def distance(first, second, total):
    """The largest distance between two weights near the same optimum.

    By strong convexity, λ/2 ||w - w*||² <= gap, with 1/λ = C Σ s = `total`.
    """
    return np.sqrt(2.0 * gaps_of(first, second) * total).sum()


def assert_same_optimum(first, second, total, weights=None):
    """Check that objectives and weights agree to within both certificates.

    `weights` replaces the coef_ of both in the comparison.
    """
    one, other = (first.coef_, second.coef_) if weights is None else weights
    assert np.linalg.norm(one - other) <= distance(first, second, total)
    assert abs(first.objective_ - second.objective_) <= gaps_of(first, second).max()


def linear_objective(
    model, X, y, *, C, loss="hinge", l1=0.0, s=None, costs=None, free=False, scaling=1.0
):
    """Penalty over C Σ s plus the mean loss, by the definitions, at `coef_`.

    `l1` is the share of the L1 norm, and a free intercept is no part of the penalty. A
    squared hinge of several classes is that of each against the rest.
    """
    s = np.ones(len(y)) if s is None else s
    W, b = model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))
    w = W.ravel() if free else np.append(W, b / scaling)
    size = l1 * np.abs(w).sum() + 0.5 * (1.0 - l1) * w @ w
    Z, is_one = X @ W.T + b, len(W) == 1
    costs = 1.0 - np.eye(max(len(W), 2)) if costs is None else np.asarray(costs)
    if np.ndim(y) == 2:
        counted = (y == 1)[:, :, np.newaxis] & (y == 0)[:, np.newaxis]
        pairs = costs + Z[:, np.newaxis] - Z[:, :, np.newaxis]
        losses = np.where(counted, pairs, 0.0).max(axis=(1, 2))
    elif is_one or loss == "squared_hinge":
        present = np.equal.outer(y, model.classes_[1:] if is_one else model.classes_)
        wrong, right = costs.sum(axis=1) if is_one else (1.0, 1.0)
        scores = np.where(present, 1, -1) * Z
        losses = np.maximum(0.0, np.where(present, right, wrong) - scores)
        losses = losses**2 if loss == "squared_hinge" else losses
        losses = np.logaddexp(0.0, -scores) if loss == "logistic" else losses
        losses = losses.sum(axis=1)
    else:
        truth = np.searchsorted(model.classes_, y)
        own = Z[np.arange(len(Z)), truth]
        losses = (costs[truth] + Z - own[:, np.newaxis]).max(axis=1)
    return size / (C * s.sum()) + s @ losses / s.sum()


def assert_same_labels(first, second):
    """Check that predictions of any form are equal, item by item."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def as_objects(items):
    """A one-dimensional object array of items."""
    result = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        result[i] = item
    return result


def fitted_attributes(estimator):
    """The attributes set by a fit, without the dual state and callbacks' data."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


def assert_same_fit(first, second):
    """Check that fitted attributes are equal bit for bit, except for seconds."""
    mine, other = fitted_attributes(first), fitted_attributes(second)
    assert sorted(mine) == sorted(other)
    of_arrays = {"history_", "diagnostics_"}
    for name in mine.keys() - {"structure_"} - of_arrays:
        np.testing.assert_array_equal(mine[name], other[name], err_msg=name)
    for name in mine.keys() & of_arrays:
        for key in mine[name].keys() - {"seconds"}:
            np.testing.assert_array_equal(mine[name][key], other[name][key], err_msg=key)
