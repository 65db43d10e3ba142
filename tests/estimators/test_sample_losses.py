"""Losses of the whole sample in BMRMClassifier and SubLBFGSClassifier."""

import pickle

import numpy as np
import pytest
from _estimators import SAMPLE_LOSSES
from _options import placed
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

from sklearn_structsvm import BMRMClassifier, PragamClassifier, SubLBFGSClassifier
from sklearn_structsvm.metrics import FBeta, GMean, MacroF1

# Data are random, and what holds does so there as well.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The fit with loss=.* is no better than zero weights"
)

CLASSES = [BMRMClassifier, SubLBFGSClassifier]
for_each_class = pytest.mark.parametrize("make", CLASSES)
LOSSES = SAMPLE_LOSSES
for_each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def make_data(n=150, weights=(0.8,)):
    return make_classification(
        n, n_features=6, n_informative=4, weights=weights, class_sep=2.0,
        n_clusters_per_class=1,
        random_state=new_seed(0),
    )  # fmt: skip


@for_each_loss
def test_the_solvers_agree(loss):
    X, y = make_data()
    models = [
        placed(BMRMClassifier)(**loss, tol=1e-7),
        placed(BMRMClassifier)(**loss, solver_options={"line_search": False}, tol=1e-7),
        placed(SubLBFGSClassifier)(**loss, tol=1e-7),
        placed(SubLBFGSClassifier)(
            **loss, solver_options={"line_search": "wolfe"}, tol=1e-7
        ),
    ]
    for model in models:
        model.fit(X, y)
        assert -1e-14 <= model.dual_gap_ <= 1e-7
        assert model.objective_ == pytest.approx(models[0].objective_, abs=2e-7)
        again = clone(model).set_params(warm_start=True).fit(sparse.csr_array(X), y)
        for _ in range(2):
            assert again.objective_ == pytest.approx(model.objective_, abs=2e-7)
            again.fit(X, y)


@for_each_class
def test_the_error_rate_is_the_hinge_and_a_metric_by_name_the_metric(make):
    X, y = make_data()
    for options in ({}, {"class_weight": "balanced"}, {"fit_intercept": False}):
        one = make(loss="zero_one", tol=1e-8, **options).fit(X, y)
        other = make(loss="hinge", tol=1e-8, **options).fit(X, y)
        assert one.objective_ == pytest.approx(other.objective_, abs=2e-8)
    names = np.array(["no", "yes"])[y]
    one = make(loss="f1").fit(X, y)
    for loss in (FBeta(), FBeta(pos_label="yes"), "f1"):
        other = make(loss=loss).fit(X, names)
        np.testing.assert_array_equal(other.coef_, one.coef_)
    flipped = make(loss=FBeta(pos_label=0), tol=1e-7).fit(X, 1 - y)
    accurate = make(loss="f1", tol=1e-7).fit(X, y)
    assert flipped.objective_ == pytest.approx(accurate.objective_, abs=2e-7)


@for_each_class
def test_predictions_are_the_first_k_rows_or_by_the_area_of_the_fewest_mistakes(make):
    X, y = make_data()
    for options, count in [
        ({"loss": "break_even"}, y.sum()),
        ({"loss": "precision_at_k", "k": 40}, 40),
        ({"loss": "recall_at_k", "k": 60}, 60),
        ({"loss": "precision_at_k", "k": 0.3}, 45),
    ]:
        model = make(**options).fit(X, y)
        scores = model.decision_function(X)
        # Rows that are tied go to the same side.
        tied = 2e-9 * np.abs(scores).max()
        if np.diff(np.sort(scores)).min() > tied:
            assert model.predict(X).sum() == count
        np.testing.assert_array_equal(scores > 0, model.predict(X))
        np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_)
        # The threshold is not part of what is minimized.
        bare = make(**options, fit_intercept=False).fit(X, y)
        np.testing.assert_array_equal(bare.coef_, model.coef_)
        assert bare.intercept_ == 0.0
        assert bare.objective_ == model.objective_
    model = make(loss="roc_auc").fit(X, y)
    scores = X @ model.coef_[0]
    fewest = min(np.sum((scores > cut) != y) for cut in [-np.inf, *scores])
    assert np.sum(model.predict(X) != y) == fewest


@for_each_class
def test_weights_are_numbers_of_rows_and_an_optimum_of_zero_is_told(make):
    X, y = make_data()
    rng = new_rng(2)
    counts = rng.integers(1, 4, len(y))
    many = np.repeat(np.arange(len(y)), counts)
    for loss in ("f1", "break_even", "roc_auc"):
        one = make(loss=loss, tol=1e-7).fit(X, y, counts)
        other = make(loss=loss, tol=1e-7).fit(X[many], y[many])
        assert one.objective_ == pytest.approx(other.objective_, abs=2e-7)
    weights = rng.random(len(y))
    make(loss="roc_auc").fit(X, y, weights)
    with pytest.raises(ValueError, match="integers"):
        make(loss="f1").fit(X, y, weights)
    weighted = make(loss="f1", class_weight={0: 0.3, 1: 1.7}).fit(X, y, counts)
    assert weighted.dual_gap_ <= 1e-3
    # Equal rows of both classes: none can be above the other.
    X, y = np.ones((20, 1)), np.repeat([0, 1], [15, 5])
    for loss in ("f1", "roc_auc", "break_even"):
        with pytest.warns(
            UserWarning, match="no better than zero weights.*overlap too much"
        ):
            make(loss=loss).fit(X, y)


def test_it_is_searched_and_kept_as_any_other():
    X, y = make_data()
    grid = {"loss": ["hinge", "f1", FBeta(2.0)], "C": [0.1, 1.0]}
    search = GridSearchCV(BMRMClassifier(), grid, scoring="f1", cv=3).fit(X, y)
    Y = np.column_stack([y, 1 - y, X[:, 0] > 0])
    model = OneVsRestClassifier(BMRMClassifier(loss="f1")).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    best = search.best_estimator_
    kept = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(kept.predict(X), best.predict(X))
    model = SubLBFGSClassifier(loss=FBeta(2.0), C=0.5)
    again = clone(model)
    assert again.loss is not model.loss
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.fit(X, y).coef_)


@for_each_class
def test_what_does_not_go_together_is_refused(make):
    X, y = make_data()
    none, three, two_labels = 0 * y, np.arange(len(y)) % 3, np.column_stack([y, 1 - y])
    several = "two classes. For more classes use ComplexMetricClassifier"
    cases = [
        ({"loss": "precision_at_k"}, y, "loss='precision_at_k' requires k"),
        ({"loss": "recall_at_k", "k": 151}, y, r"k must be one of 1, ..., 150.*got 151"),
        ({"loss": "f1", "class_weight": {0: 0.0}}, y, "nonzero class_weight"),
        ({"loss": GMean()}, y, "GMean.. is no ratio.*ComplexMetricClassifier"),
        ({"loss": MacroF1()}, y, "MacroF1.. is no ratio.*ComplexMetricClassifier"),
        ({"loss": FBeta(pos_label=5)}, y, "pos_label=5 is not a class"),
        ({"loss": FBeta(beta=-1.0)}, y, "beta must be a positive number"),
        ({"loss": "roc_auc", "classes": [0, 1]}, none, "rows of both classes"),
        *(({"loss": loss}, y, "The 'loss' parameter") for loss in ("f2", GMean)),
        *(
            ({"loss": loss}, labels, several)
            for loss in ("f1", "roc_auc", FBeta())
            for labels in (three, two_labels)
        ),
    ]
    for options, labels, words in cases:
        with pytest.raises(ValueError, match=words):
            placed(make)(**options).fit(X, labels)
    own = {
        SubLBFGSClassifier: ({"solver": "dual-hybrid"}, "does not support loss='f1'"),
        BMRMClassifier: (
            {"structure": "multiclass"},
            "is for rows whose structure is re",
        ),
    }[make]
    with pytest.raises(ValueError, match=own[1]):
        make(loss="f1", **own[0]).fit(X, y)
    with pytest.raises(ValueError, match="The 'loss' parameter of PragamClassifier"):
        PragamClassifier(loss="f1").fit(X, y)
    array = pytest.importorskip("dask.array")
    parts = array.from_array(X, chunks=(50, 6)), array.from_array(y, chunks=50)
    for loss in ("roc_auc", FBeta()):
        with pytest.raises(TypeError, match="sorts all rows of the sample"):
            make(loss=loss).fit(*parts)
