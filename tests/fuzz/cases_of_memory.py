"""Fits that take some megabytes, and what is asked of the fitted models, by name.

Each estimator once on each kind of data that it takes, and its steps and solvers.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

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
    bcfw_path,
    crf_path,
)
from sklearn_structsvm.datasets import (
    make_chains,
    make_hierarchical,
    make_multilabel,
    make_poses,
)
from sklearn_structsvm.metrics import DemographicParity
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import (
    GraphStructure,
    HierarchicalStructure,
    PairwiseMultilabelStructure,
    PictorialStructure,
    Structure,
)

ASKED = (
    "predict", "decision_function", "predict_proba", "predict_k_best", "max_marginals",
    "entropy", "predict_set",
)  # fmt: skip
OF_FORESTS = ("predict_k_best", "max_marginals")


class PythonMulticlass(Structure):
    """Predicts one of three classes, in Python."""

    def joint_feature(self, x, y):
        return np.outer(np.arange(3) == y, x).ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def decode(self, x, w):
        return int((w.reshape(3, -1) @ x).argmax())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        wrong = np.arange(3) != y_true
        return int((w.reshape(3, -1) @ x + lam * wrong).argmax())


@dataclass
class Case:
    """A fit and its data. Both calls return all that they have found."""

    model: object
    X: object
    y: object
    params: dict = field(default_factory=dict)

    @property
    def has_cycles(self):
        return isinstance(self.model.get_params().get("structure"), GraphStructure)

    def fit(self):
        self.fitted = clone(self.model).fit(self.X, self.y, **self.params)
        return self.fitted

    def predict(self):
        return {
            name: getattr(self.fitted, name)(self.X, **self.params)
            for name in ASKED
            if hasattr(self.fitted, name) and not (self.has_cycles and name in OF_FORESTS)
        }


@dataclass
class PathCase:
    """The same for a function of X and y that returns a path, which predicts nothing."""

    function: object
    X: object
    y: object

    predict = None

    def fit(self):
        return self.function(self.X, self.y)


def dense(n_classes=3, dtype=np.float64, n=20_000, n_features=100):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    W = rng.standard_normal((n_features, n_classes))
    y = (X @ W + 5.0 * rng.standard_normal((n, n_classes))).argmax(axis=1)
    return X.astype(dtype), y


def csr(n_classes=3, dtype=np.float64):
    X, y = dense(n_classes)
    columns = np.random.default_rng(1).permutation(20 * X.shape[1])[: X.shape[1]]
    X = sparse.coo_array(X * (X > 1.0))
    X = sparse.csr_array((X.data, (X.row, columns[X.col])), shape=(len(y), 4000))
    return X.astype(dtype), y


def wide(kind, dtype=np.float32, n_classes=3):
    """Rows of more entries than the kernels convert on the stack."""
    X, y = dense(n_classes, dtype, n=400, n_features=4000)
    return (sparse.csr_array(X * (X > 0)) if kind == "csr" else X), y


def wide_chains(kind, n=80):
    X, y = wide(kind)
    cuts = range(0, len(y) - 4, 5)
    return [X[t : t + 5] for t in cuts][:n], [y[t : t + 5] for t in cuts][:n]


def chains(kind="dense", dtype=np.float64, n=1500, n_classes=5, length=30):
    X, y = make_chains(
        n, n_features=60, n_classes=n_classes, max_length=length,
        random_state=0, sparse=kind == "csr", n_active=8,
    )  # fmt: skip
    return [x.astype(dtype) for x in X], y


def trees():
    X, y = chains(n=600)
    return [(x, np.arange(len(x)) // 2 - (np.arange(len(x)) == 0)) for x in X], y


def graphs(n=300):
    X, y = chains(n=n, n_classes=2, length=15)
    at = [np.arange(len(x)) for x in X]
    return [(x, np.c_[a, (a + 1) % len(a)]) for x, a in zip(X, at, strict=True)], y


def tokens():
    rng = np.random.default_rng(2)
    X, y = [], []
    for _ in range(2000):
        words = rng.integers(2000, size=rng.integers(5, 20))
        X.append([
            {"word": f"w{w}", "last": str(w % 10), "n": float(w % 3), "odd": bool(w % 2)}
            for w in words
        ])  # fmt: skip
        y.append(["ABC"[w % 3] for w in words])
    return X, y


def indicators(k=6):
    return make_multilabel(8000, n_features=60, n_classes=k, random_state=0)


def python_rows(n=300):
    X, y = dense(n=n, n_features=2000)
    return list(X), y.tolist()


def leaves():
    X, Y, _ = make_hierarchical(3000, n_nodes=8, n_leaves=5, random_state=0)
    return X, Y


def poses():
    data = make_poses(60, shape=(48, 36), random_state=0)
    return data.X, data.y


def edges_of_leaves():
    return make_hierarchical(3000, n_nodes=8, n_leaves=5, random_state=0)[2]


def case(model, data, **params):
    return Case(model, *data(), params)


def conformal(model, data):
    X, y = data()
    return Case(ConformalClassifier(model, random_state=0), X, y)


def groups(data):
    X, y = data()
    sensitive = np.random.default_rng(3).integers(2, size=len(y))
    model = ComplexMetricClassifier(
        LogisticRegression(), metric="g_mean", constraints=[DemographicParity(slack=0.1)],
        random_state=0, max_iter=50,
    )  # fmt: skip
    return Case(model, X, y, {"sensitive_features": sensitive})


FEW = {"max_iter": 5, "random_state": 0}
ROWS = {
    "dense": dense,
    "float32": partial(dense, 3, np.float32),
    "csr": csr,
    "two classes": partial(dense, 2),
    "wide float32": partial(wide, "dense"),
    "wide csr float32": partial(wide, "csr"),
}
SEQUENCES = {
    "chain": ("chain", chains),
    "chain csr": ("chain", partial(chains, "csr")),
    "chain float32": ("chain", partial(chains, "dense", np.float32)),
    "wide chain": ("chain", partial(wide_chains, "dense")),
    "wide chain csr": ("chain", partial(wide_chains, "csr")),
    "tree": ("tree", trees),
}
OTHERS = {
    "graph": (GraphStructure(transition="directed"), graphs),
    "messages": (GraphStructure(transition="directed", inference="messages"), graphs),
    "multilabel": ("multilabel", indicators),
    "pairs": (PairwiseMultilabelStructure(), indicators),
    "roof": (PairwiseMultilabelStructure(inference="roof"), indicators),
    "hierarchy": (HierarchicalStructure(edges_of_leaves()), leaves),
    "parts": (PictorialStructure(make_poses(1).parents), poses),
    "python": (PythonMulticlass(), python_rows),
}
STEPS = ("fw", "pairwise", "away", "corrective")


def path(function, data, **params):
    return PathCase(partial(function, random_state=0, **params), *data())


def all_cases():
    for name, data in ROWS.items():
        yield f"bcfw {name}", case, BCFWClassifier(**FEW), data
        yield f"crf {name}", case, CRFClassifier(**FEW), data
        yield f"sublbfgs {name}", case, SubLBFGSClassifier(max_iter=20), data
        yield f"bmrm {name}", case, BMRMClassifier(max_iter=10), data
    for name in ("dense", "csr", "two classes", "wide float32"):
        data = ROWS[name]
        yield f"slack {name}", case, SlackRescaledSSVM(**FEW), data
        yield f"bcfw path {name}", partial(path, eps=0.5, max_iter=20), bcfw_path, data
        yield f"crf path {name}", partial(path, Cs=3, max_iter=5), crf_path, data
        yield f"pragam {name}", case, PragamClassifier(max_iter=10), data
        for step in STEPS:
            yield f"bcfw {step} {name}", case, BCFWClassifier(step=step, **FEW), data
        for solver in ("newton", "lbfgs", "dual"):
            yield f"crf {solver} {name}", case, CRFClassifier(solver=solver, **FEW), data
        model = BCFWClassifierCV(
            solver_options={"eps": 0.5}, cv=2, max_iter=20, random_state=0
        )
        yield f"bcfw cv {name}", case, model, data
        model = CRFClassifierCV(Cs=3, cv=2, max_iter=5, random_state=0)
        yield f"crf cv {name}", case, model, data
        model = ComplexMetricClassifier(
            LogisticRegression(max_iter=20), metric="g_mean", max_iter=50, random_state=0
        )
        yield f"complex metric {name}", case, model, data
        yield f"conformal {name}", conformal, CRFClassifier(**FEW), data
    for name, (structure, data) in (SEQUENCES | OTHERS).items():
        yield f"bcfw {name}", case, BCFWClassifier(structure, **FEW), data
        if name != "parts":
            yield f"bmrm {name}", case, BMRMClassifier(structure, max_iter=5), data
        if name not in ("parts", "messages", "roof", "pairs"):
            search = "bisecting" if name in ("graph", "python") else "angular"
            model = SlackRescaledSSVM(
                structure, solver_options={"search": search}, max_iter=2, random_state=0
            )
            yield f"slack {name}", case, model, data
    for name, (structure, data) in SEQUENCES.items():
        for solver in ("dual", "lbfgs"):
            model = CRFClassifier(structure, solver=solver, **FEW)
            yield f"crf {solver} {name}", case, model, data
        model = PragamClassifier(structure=structure, max_iter=5)
        yield f"pragam {name}", case, model, data
    for step in STEPS:
        for name in ("chain", "python"):
            structure, data = (SEQUENCES | OTHERS)[name]
            model = BCFWClassifier(structure, step=step, **FEW)
            yield f"bcfw {step} {name}", case, model, data
    for name, model in (("bcfw", BCFWClassifier), ("crf", CRFClassifier)):
        tagger = make_pipeline(SequenceTransformer(), model("chain", **FEW))
        yield f"{name} tokens", case, tagger, tokens
    data = partial(chains, n=400)
    model = BCFWClassifierCV(
        "chain", solver_options={"eps": 0.5}, cv=2, max_iter=10, random_state=0
    )
    yield "bcfw cv chain", case, model, data
    model = CRFClassifierCV("chain", Cs=3, cv=2, max_iter=5, random_state=0)
    yield "crf cv chain", case, model, data
    of_chains = partial(path, structure="chain")
    yield "bcfw path chain", partial(of_chains, eps=0.5, max_iter=10), bcfw_path, data
    yield "crf path chain", partial(of_chains, Cs=3, max_iter=5), crf_path, data
    yield "complex metric groups", groups, partial(dense, 2)
    model = MultilabelMetricClassifier(
        OneVsRestClassifier(LogisticRegression(max_iter=20))
    )
    yield "multilabel metric", case, model, indicators
    yield "conformal chain", conformal, CRFClassifier("chain", **FEW), chains


CASES = {name: partial(*call) for name, *call in all_cases()}
