"""Data that users' code changes while a fit runs: the indices that kernels read."""

from itertools import product

import numpy as np
import pytest
import sklearn
from _callbacks import Recorder
from _seeds import new_rng
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import ChainStructure

has_callbacks = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
pytestmark = [
    pytest.mark.skipif(not has_callbacks, reason="callbacks need scikit-learn 1.9"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

LENGTH = 6


class Writer(Recorder):
    """A callback that makes indices far too large after each pass and each fold."""

    def __init__(self, arrays):
        super().__init__()
        self.arrays = arrays

    def on_fit_task_end(self, estimator, context, **data):
        super().on_fit_task_end(estimator, context, **data)
        if context.task_name in ("pass", "fold"):
            for array in self.arrays:
                array[...] = 2**30
        return False


def features(n=48, d=9):
    rng = new_rng(3)
    y = np.arange(n) // 3 % 2
    dense = np.where(rng.random((n, d)) < 0.4, rng.standard_normal((n, d)), 0.0)
    dense[:, 0] = y + 0.5 * rng.standard_normal(n)
    return dense, y


def data(form):
    """A new X of this form, y, the structure, and all arrays of indices in X."""
    dense, y = features()
    if form.startswith("rows"):
        X = sparse.csr_array(dense)
        if form == "rows of 64 bits":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X, y, "auto", [X.indices, X.indptr]
    bounds = [0, len(y)] if form.startswith("one ") else range(0, len(y) + 1, LENGTH)
    pieces = [slice(*pair) for pair in zip(bounds[:-1], bounds[1:], strict=True)]
    items = [sparse.csr_array(dense[own]) for own in pieces]
    labels = [y[own] for own in pieces]
    arrays = [array for item in items for array in (item.indices, item.indptr)]
    if form.endswith("chain"):
        return items, labels, "chain", arrays
    if form.endswith("split chain items"):
        items = [SplitMatrix([np.ones((x.shape[0], 1)), x]) for x in items]
        return items, labels, "chain", arrays
    if form.endswith("with scores"):
        items = [(x, np.ones((x.shape[0], 2))) for x in items]
        return items, labels, ChainStructure(emission="both"), arrays
    if form.endswith("tree"):
        parents = [np.arange(x.shape[0]) - 1 for x in items]
        return list(zip(items, parents, strict=True)), labels, "tree", arrays + parents
    edges = [np.arange(x.shape[0])[:, np.newaxis] + [0, 1] for x in items]
    edges = [own % len(own) for own in edges]
    of_edges = [sparse.csr_array(np.ones((len(own), 1))) for own in edges]
    arrays += edges + [getattr(x, a) for x in of_edges for a in ("indices", "indptr")]
    return list(zip(items, edges, of_edges, strict=True)), labels, "graph", arrays


ROWS = ("rows", "rows of 64 bits")
ITEMS = (
    "chain", "one chain", "split chain items", "one split chain items",
    "chain with scores", "one chain with scores", "tree", "one tree", "graph",
    "one graph",
)  # fmt: skip
OF_STRUCTURES = {
    "bcfw": BCFWClassifier(max_iter=4, tol=0.0, random_state=0),
    "pairwise": BCFWClassifier(step="pairwise", max_iter=4, tol=0.0, random_state=0),
    "cutting planes": BCFWClassifier(
        solver_options={"algorithm": "batch"}, max_iter=4, tol=0.0
    ),
    "sparse bcfw": BCFWClassifier(l1_ratio=0.5, max_iter=4, tol=0.0, random_state=0),
    "bcfw cv": BCFWClassifierCV(Cs=2, cv=2, max_iter=3, tol=0.0, random_state=0),
    "crf": CRFClassifier(solver="dual", max_iter=4, tol=0.0, random_state=0),
    "lbfgs": CRFClassifier(solver="lbfgs", max_iter=4, tol=0.0),
    "owlqn": CRFClassifier(solver="lbfgs", l1_ratio=0.5, max_iter=4, tol=0.0),
    "bmrm": BMRMClassifier(max_iter=4, tol=0.0),
    "margin": SlackRescaledSSVM(rescaling="margin", max_iter=3, tol=0.0, random_state=0),
}
OF_ROWS = {
    "sublbfgs": SubLBFGSClassifier(max_iter=4, tol=0.0),
    "pragam": PragamClassifier(max_iter=4, tol=0.0),
    "newton": CRFClassifier(solver="newton", max_iter=3, tol=0.0),
    "l1": SubLBFGSClassifier(penalty="l1", max_iter=3, tol=0.0),
    "auto": CRFClassifier(max_iter=3, tol=0.0, random_state=0),
}
# Each form by steps on blocks and on all, and each solver by some forms. Graphs with
# cycles have no exact sums.
CASES = [
    *product(OF_STRUCTURES | OF_ROWS, ROWS[:1]),
    *product(["bcfw", "crf", "bmrm", "l1", "newton"], ROWS[1:]),
    *product(OF_STRUCTURES, ["chain"]), *product(["bcfw", "bmrm"], ITEMS[1:]),
    *((name, "graph") for name in OF_STRUCTURES if name not in ("owlqn", "crf", "bmrm")),
    *product(["crf", "owlqn", "margin"], ["one chain", "split chain items"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_callback_that_writes_into_indices_changes_nothing(name, form):
    model, models = clone((OF_STRUCTURES | OF_ROWS)[name]), []
    for writes in (False, True):
        X, y, structure, arrays = data(form)
        if "structure" in model.get_params():
            model.set_params(structure=structure)
        writer = Writer(arrays if writes else [])
        models.append(clone(model).set_callbacks(writer).fit(X, y))
        assert {"pass", "fold"} & set(writer.ended)
    for attribute in ("coef_", "objective_", "dual_gap_"):
        np.testing.assert_array_equal(
            *(getattr(fitted, attribute) for fitted in models), err_msg=attribute
        )


class Returns(ClassifierMixin, BaseEstimator):
    """A classifier of labels that returns the same sparse matrix each time."""

    def fit(self, X, y):
        self.classes_ = np.arange(y.shape[1])
        return self

    def predict_proba(self, X):
        return self.kept


@pytest.mark.parametrize("params", [{}, {"labels_per_row": 1}, {"average": "samples"}])
def test_probabilities_that_a_classifier_keeps_may_change_afterwards(params):
    rng = new_rng(4)
    eta = np.where(rng.random((40, 6)) < 0.7, rng.random((40, 6)), 0.0)
    Y = (rng.random((40, 6)) < eta).astype(int)
    Y[:6] = np.eye(6)
    models = []
    for writes in (False, True):
        Returns.kept = sparse.csr_array(eta)
        arrays = [Returns.kept.indices, Returns.kept.indptr] if writes else []
        model = MultilabelMetricClassifier(Returns(), cv=None, **params)
        models.append(model.set_callbacks(Writer(arrays)).fit(eta, Y))
    assert models[0].objective_ == models[1].objective_


class Spoils(ChainStructure):
    """A chain with a decoder in Python that writes into its argument."""

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        x.indices[0] = 10**6
        return super().loss_augmented_decode(x, y_true, w, lam)


def test_a_method_of_a_structure_cannot_write_into_indices():
    X, y, _, _ = data("chain")
    with pytest.raises(ValueError, match="read-only"):
        BCFWClassifier(Spoils()).fit(X, y)
