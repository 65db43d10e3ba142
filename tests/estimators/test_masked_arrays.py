"""Masked arrays of NumPy: what is behind a mask is never taken for data."""

import numpy as np
import pytest
from _estimators import EVERY_ESTIMATOR
from _options import placed
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import (
    BCFWClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    MultilabelMetricClassifier,
    bcfw_path,
    crf_path,
)
from sklearn_structsvm.metrics import DemographicParity, ExpectedCost
from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    PictorialStructure,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def masked(values, hides=True):
    """The values with a mask, of one random entry or of none."""
    values = np.asarray(values)
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[new_rng(9).integers(mask.size)] = hides
    return np.ma.masked_array(values, mask)


def refused(name):
    """Raises of the argument of this name, with the place of the masked entry."""
    return pytest.raises(
        ValueError, match=rf"^{name} is a masked array, and its entry \[[\d, ]+\] is mask"
    )


def rows(n=24):
    rng = new_rng(0)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 2)) + y[:, np.newaxis], y


def labels_of(model, y):
    is_several = isinstance(model, MultilabelMetricClassifier)
    return np.stack([y, 1 - y], axis=1) if is_several else y


@pytest.mark.parametrize("model", EVERY_ESTIMATOR, ids=lambda e: type(e).__name__)
def test_masks_of_rows_and_weights_are_refused_unless_they_hide_nothing(model):
    X, y = rows(48)
    model, y = clone(model), labels_of(model, y)
    with refused("X"):
        model.fit(masked(X), y)
    if not isinstance(model, ConformalClassifier):
        with refused("sample_weight"):
            model.fit(X, y, sample_weight=masked(np.ones(len(y))))
    whole = masked(X, hides=False)
    expected = clone(model).fit(whole, y).predict(whole)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)
    methods = ("predict", "predict_proba", "decision_function", "predict_set", "score")
    for name in methods:
        if hasattr(model, name):
            with refused("X"):
                getattr(model, name)(masked(X), *([y] if name == "score" else []))


def structured():
    """For each form of items: a structure, and functions of items and of labelings."""
    rng = new_rng(1)
    X = [rng.standard_normal((4, 2)) for _ in range(3)]
    y = [np.array([0, 1, 1, 0])] * 3
    scores = [rng.standard_normal((4, 2)) for _ in range(3)]
    edges, parents = np.array([[0, 1], [1, 2]]), np.array([-1, 0, 1, 1])
    extra, weights = rng.standard_normal((2, 3)), np.ones(4)
    grids = [rng.standard_normal((2, 3, 4, 1)) for _ in range(3)]
    places = [np.array([[1, 2], [2, 2]])] * 3
    trees = [(x, parents) for x in X]
    graphs = [(x, edges, extra) for x in X]
    both = list(zip(X, scores, strict=True))
    weighted = [(own, weights) for own in y]
    return {
        "chain": ("chain", X, y, lambda x: masked(x), r"X\[1\]"),
        "scores": (
            ChainStructure(emission="both"), both, y, lambda x: (x[0], masked(x[1])),
            r"X\[1\]\[1\]",
        ),
        "given": (ChainStructure(emission="given"), scores, y, masked, r"X\[1\]"),
        "tree": ("tree", trees, y, lambda x: (masked(x[0]), x[1]), r"X\[1\]\[0\]"),
        "parents": ("tree", trees, y, lambda x: (x[0], masked(x[1])), r"X\[1\]\[1\]"),
        "graph": ("graph", graphs, y, lambda x: (masked(x[0]), *x[1:]), r"X\[1\]\[0\]"),
        "edges": (
            "graph", graphs, y, lambda x: (x[0], masked(x[1]), x[2]), r"X\[1\]\[1\]",
        ),
        "edge_features": (
            "graph", graphs, y, lambda x: (*x[:2], masked(x[2])), r"X\[1\]\[2\]",
        ),
        "parts": (PictorialStructure([1, -1]), grids, places, masked, r"X\[1\]"),
        "weights": ("graph", graphs, weighted, None, r"y\[1\]\[1\]"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", structured())
def test_masks_are_refused_in_each_form_of_items(kind):
    structure, X, y, change, name = structured()[kind]
    model = BCFWClassifier(structure, max_iter=3, random_state=new_seed(2))
    if change is None:
        with refused(name):
            model.fit(X, [y[0], (y[1][0], masked(y[1][1])), y[2]])
        return
    bad = [X[0], change(X[1]), X[2]]
    with refused(name):
        model.fit(bad, y)
    model.fit(X, y)
    for call in (model.predict, lambda X: model.score(X, y)):
        with refused(name):
            call(bad)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_k_best", "max_marginals", "entropy"]
)
def test_masks_are_refused_by_each_method_of_sequences(method):
    _, X, y, *_ = structured()["chain"]
    model = CRFClassifier("chain", max_iter=3, random_state=new_seed(3)).fit(X, y)
    with refused(r"X\[2\]"):
        getattr(model, method)([*X[:2], masked(X[2])])
    for allowed in (np.ones((4, 2), dtype=bool), y[0]):
        with refused(r"allowed\[0\]"):
            getattr(model, method)(X[:1], allowed=[masked(allowed)])


LOGISTIC = LogisticRegression()
OF_GROUPS = ComplexMetricClassifier(LOGISTIC, constraints=DemographicParity(slack=1.0))
OF_COSTS = ComplexMetricClassifier(LOGISTIC, metric=ExpectedCost(), cv=None)
SETS = ConformalClassifier(LOGISTIC, confidence_level=0.5, condition="group")
BARS, ROWS = masked(np.ones((2, 2), dtype=bool)), rows()
GROUPS, LIMITS = masked(np.arange(24) // 2 % 2), (masked(-np.ones((1, 2))), 1.0)


def test_masks_of_all_else_are_refused():
    X, y = ROWS
    items, labels = structured()["chain"][1:3]
    costs = MulticlassStructure(masked(1.0 - np.eye(2)))
    for name, fit, *data, given in [
        ("sensitive_features", OF_GROUPS.fit, X, y, {"sensitive_features": GROUPS}),
        ("sensitive_features", SETS.fit, X, y, {"sensitive_features": GROUPS}),
        ("costs", OF_COSTS.fit, X, y, {"costs": masked(np.ones((24, 2)))}),
        ("label_costs", BCFWClassifier(costs).fit, X, y, {}),
        ("The lower bound of coef_bounds",
         placed(BCFWClassifier)(coef_bounds=LIMITS).fit, X, y, {}),
        ("transitions", BCFWClassifier(ChainStructure(transitions=BARS)).fit, items,
         labels, {}),
        (r"X\[\d\]", CRFClassifier("chain").fit, masked(np.stack(items)), labels, {}),
        ("X", crf_path, masked(X), y, {}), ("X", bcfw_path, masked(X), y, {}),
        ("sample_weight", bcfw_path, X, y, {"sample_weight": masked(np.ones(24))}),
    ]:  # fmt: skip
        with refused(name):
            fit(*data, **given)
