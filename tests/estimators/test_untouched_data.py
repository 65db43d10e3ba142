"""No call writes to what a user passes; repeated entries of CSR matrices are summed."""

import inspect

import numpy as np
import pytest
from _seeds import new_rng
from _untouched import contents, tangled, untouched
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

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
from sklearn_structsvm.metrics import precision_at_k_score
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import (
    GraphStructure,
    HierarchicalStructure,
    PairwiseMultilabelStructure,
    TreeStructure,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*converge"),
]

FAST = {"max_iter": 5, "random_state": 0}
GRID = FAST | {"Cs": [0.1, 1.0], "cv": 2}
LEAVES = [("p", "a"), ("p", "b"), ("q", "c")]
LOGISTIC = LogisticRegression()
MODELS = {
    "CRF": ("rows", CRFClassifier(**FAST)),
    "CRF newton": ("rows", CRFClassifier(solver="newton", max_iter=5)),
    "CRF l1": ("rows", CRFClassifier(l1_ratio=1.0, **FAST)),
    "CRF cv": ("rows", CRFClassifierCV(**GRID)),
    "BCFW": ("rows", BCFWClassifier(**FAST)),
    "BCFW l1": ("rows", BCFWClassifier(l1_ratio=0.5, **FAST)),
    "BCFW cv": ("rows", BCFWClassifierCV(**GRID | {"max_iter": 50})),
    "slack": ("rows", SlackRescaledSSVM(**FAST)),
    "BMRM": ("rows", BMRMClassifier(max_iter=5)),
    "Pragam": ("rows", PragamClassifier(max_iter=5)),
    "subLBFGS": ("rows", SubLBFGSClassifier(max_iter=5)),
    "squared hinge": ("rows", SubLBFGSClassifier(loss="squared_hinge", max_iter=5)),
    "metric": ("rows", ComplexMetricClassifier(LOGISTIC, metric="macro_f1")),
    "metric of CRF": ("rows", ComplexMetricClassifier(CRFClassifier(max_iter=5), cv=2)),
    "conformal": ("rows", ConformalClassifier(LOGISTIC, random_state=0)),
    "labels": ("labels", BCFWClassifier(**FAST)),
    "labels CRF": ("labels", CRFClassifier(**FAST)),
    "label metric": ("labels", MultilabelMetricClassifier(OneVsRestClassifier(LOGISTIC))),
    "pairs": ("labels", BCFWClassifier(PairwiseMultilabelStructure("all"), **FAST)),
    "hierarchy": ("labels", BCFWClassifier(HierarchicalStructure(LEAVES), **FAST)),
    "chain": ("chain", CRFClassifier("chain", **FAST)),
    "chain newton": ("chain", CRFClassifier("chain", solver="newton", max_iter=3)),
    "chain svm": ("chain", BCFWClassifier("chain", **FAST)),
    "chain planes": ("chain", BMRMClassifier("chain", max_iter=5)),
    "split": ("split", CRFClassifier("chain", **FAST)),
    "tree": ("tree", CRFClassifier(TreeStructure(), **FAST)),
    "graph": ("graph", BCFWClassifier(GraphStructure(), **FAST)),
    "graph CRF": ("graph", CRFClassifier(GraphStructure(), **FAST)),
}
# Methods that return figures, graphs or the model itself.
OTHERS = ("fit", "get_", "set_", "densify", "sparsify", "more_")


def make_data(kind, form):
    """Examples with many zeros, of which the matrices have this form, and labels."""
    rng = new_rng(0)

    def features(n):
        return (rng.integers(-16, 17, (n, 4)) * rng.integers(0, 2, (n, 4))).astype(float)

    if kind in ("rows", "labels"):
        n = 60
        X, codes = features(n), np.arange(n) % 3
        y = codes if kind == "rows" else np.eye(3, dtype=int)[codes]
        return form(X), y
    X, y = [], []
    for n in (3, 4, 2, 5, 3, 4):
        x, rest = form(features(n)), np.arange(n) - 1
        if kind == "split":
            x = SplitMatrix([rng.integers(-4, 5, (n, 2)).astype(float), x])
        if kind == "tree":
            x = x, rest
        if kind == "graph":
            x = x, np.column_stack([rest % n, np.arange(n)])[n == 2 :]
        X.append(x)
        y.append(np.arange(n) % 3)
    return X, y


def answers(model, X, y):
    """What every public method of a model returns, by its name; data stay as they are."""
    given = {"X": X, "y": y}
    with untouched(**given):
        model.fit(X, y)
    found = {}
    for name in dir(model):
        if name.startswith(("_", *OTHERS)) or not callable(getattr(model, name, None)):
            continue
        method = getattr(model, name)
        parameters = inspect.signature(method).parameters.values()
        needed = {p.name for p in parameters if p.default is p.empty and p.kind < 2}
        if needed and needed <= set(given):
            with untouched(**given):
                try:
                    found[name] = method(**{own: given[own] for own in needed})
                except (NotImplementedError, ValueError) as error:
                    found[name] = str(error)
    assert "predict" in found
    return found


@pytest.mark.parametrize("name", MODELS)
def test_entries_may_be_repeated_and_in_any_order(name):
    kind, model = MODELS[name]
    plain, other = (
        answers(model, *make_data(kind, form)) for form in (sparse.csr_array, tangled)
    )
    assert {k: contents(v) for k, v in plain.items()} == {
        k: contents(v) for k, v in other.items()
    }


@pytest.mark.parametrize("path", [crf_path, bcfw_path])
def test_paths_do_not_change_data(path):
    X, y = make_data("rows", tangled)
    y = (y > 0).astype(int)
    with untouched(X=X, y=y):
        found = path(X, y, random_state=0)
    expected = path(make_data("rows", sparse.csr_array)[0], y, random_state=0)
    assert contents(found.coefs) == contents(expected.coefs)


def test_indices_changed_by_hand_are_looked_at_and_repeated_ones_of_a_row_summed():
    rng = new_rng(1)
    y, scores = rng.integers(0, 2, (20, 5)), rng.integers(1, 9, (20, 5)) / 8.0
    with untouched(y=y, entries=(entries := tangled(scores))):
        found = precision_at_k_score(y, entries, 2)
    assert found == precision_at_k_score(y, scores, 2)
    X, y = make_data("rows", sparse.csr_array)
    assert X.has_canonical_format
    model = CRFClassifier(**FAST).fit(X, y)
    row = slice(*X.indptr[:2])
    X.indices[row], X.data[row] = X.indices[row][::-1].copy(), X.data[row][::-1].copy()
    with untouched(X=X):
        again = CRFClassifier(**FAST).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    X, y = make_data("rows", tangled)
    model = SlackRescaledSSVM(**FAST).fit(X, y)
    structure, w = model.structure_, new_rng(2).normal(size=model.structure_.n_weights_)
    for name, more in {
        "decode": (w,), "loss_augmented_decode": (y[0], w), "joint_feature": (y[0],)
    }.items():  # fmt: skip
        with untouched(x=X[[0]]):
            found = getattr(structure, name)(X[[0]], *more)
        expected = getattr(structure, name)(X[[0]].toarray().ravel(), *more)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["metric", "conformal", "label metric"])
def test_inner_classifiers_get_a_matrix_that_they_may_tidy_up(name):
    kind, model = MODELS[name]
    (X, y), seen = make_data(kind, tangled), []

    class Spy(LogisticRegression):
        def _spied(self, method, X, *args):
            seen.append(X)
            X.sum_duplicates()
            return getattr(super(), method)(X, *args)

        def fit(self, X, y):
            return self._spied("fit", X, y)

        def predict_proba(self, X):
            return self._spied("predict_proba", X)

    inner = OneVsRestClassifier(Spy()) if kind == "labels" else Spy()
    answers(clone(model).set_params(estimator=inner), X, y)
    assert seen
