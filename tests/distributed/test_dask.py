"""Fits on Dask arrays and data frames: the optimum of the in-memory fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from _dask_data import (
    COSTS,
    EXACT,
    SIZES,
    check_the_same,
    check_the_threshold,
    da,
    divided,
    problems,
    rows,
)
from _estimators import distance
from _options import placed
from _seeds import cache_by_seed, new_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import label_binarize

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.distributed.blocks import DistributedBlocks
from sklearn_structsvm.distributed.rows import check_chunks
from sklearn_structsvm.solvers.blocks.dual_start import DualStart
from sklearn_structsvm.structures import MulticlassStructure, MultilabelStructure

DUAL = {"C": 0.1, "tol": 1e-6, "max_iter": 10**5, "random_state": 0}
SUMS = {"C": 0.1, "tol": 1e-7, "max_iter": 10**4, "random_state": 0}


@cache_by_seed
def fits():
    """Models with rows, labels and weights, by name."""
    found = {}
    for name, (*data, options) in problems().items():
        found[f"sublbfgs, {name}"] = placed(SubLBFGSClassifier)(**EXACT, **options), *data
        # How rows are read does not depend on who solves their problem.
        if name in ("two classes", "four classes", "several labels"):
            for solver in ("hybrid", "wolfe"):
                own = (
                    {"solver": "hybrid"}
                    if solver == "hybrid"
                    else {"line_search": solver}
                )
                model = placed(SubLBFGSClassifier)(**own, **EXACT)
                found[f"{solver}, {name}"] = model, *data
            found[f"bmrm, {name}"] = BMRMClassifier(**EXACT), *data
        if {"label_costs", "loss"} & set(options):
            continue
        found[f"crf, {name}"] = placed(CRFClassifier)(**SUMS, **options), *data
        if name != "pairs of labels":
            found[f"bcfw, {name}"] = placed(BCFWClassifier)(**DUAL, **options), *data
    X, y, s = rows()
    several = problems()["several labels"][1]
    for loss in ("logistic", "squared_hinge"):
        for solver in ("owlqn", "owlqn*"):
            model = SubLBFGSClassifier(loss, penalty="l1", solver=solver, tol=1e-4)
            model.set_params(class_weight="balanced", C=0.1, max_iter=10**4)
            found[f"{solver}, {loss}"] = model, *rows(2)
    for k in (2, 4):
        model = SubLBFGSClassifier("squared_hinge", **EXACT | {"tol": 1e-8})
        found[f"squared hinge, {k}"] = model, *rows(k)
    # Weights of zero leave examples out, and chunks, but not their labels.
    order, none = np.argsort(y, kind="stable"), s.copy()
    none[SIZES[0] + 1 :] = none[:10] = 0.0
    for loss in ("hinge", "slack_hinge"):
        own = SubLBFGSClassifier(loss, **EXACT), X[order], y[order], none
        found[f"no weights, {loss}"] = own
    plain = BCFWClassifier(**DUAL | {"tol": 1e-3}, solver_options={"acceleration": False})
    bounds = {"coef_bounds": (-0.1, 0.1)}
    return found | {
        "costs": (BCFWClassifier(MulticlassStructure(COSTS), **DUAL), X, y, s),
        "named": (BCFWClassifier(MultilabelStructure(), **DUAL), X, several, s),
        "bounds": (BCFWClassifier(**DUAL, solver_options=bounds), X, y, s),
        "pairwise": (BCFWClassifier(**DUAL, step="pairwise"), X, several, s),
        "plain rounds": (plain, X, y, s),
        "slack": (SlackRescaledSSVM(**DUAL), X, several, s),
        "margin": (SlackRescaledSSVM(**DUAL, rescaling="margin"), X, y, s),
    }


@pytest.mark.parametrize("name", list(fits()))
def test_the_optimum_is_that_of_the_fit_in_memory(name, monkeypatch):
    model, X, y, s = fits()[name]
    model, kind = clone(model), name.partition(", ")[2]
    here = clone(model).fit(X, y, sample_weight=s)
    if not isinstance(model, SubLBFGSClassifier | BMRMClassifier):
        monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: 3)
    data = {"X": divided(X), "y": divided(y), "sample_weight": divided(s)}
    model.fit(**data)
    assert max(model.dual_gap_, here.dual_gap_) <= model.tol
    gap = max(model.dual_gap_, here.dual_gap_) + 1e-12
    assert abs(model.objective_ - here.objective_) <= gap
    if model.get_params().get("penalty") != "l1":
        apart = distance(model, here, model.C * s.sum()) + 1e-9
        assert np.linalg.norm(model.coef_ - here.coef_) <= apart
    assert hasattr(model, "step_") == hasattr(here, "step_")
    if hasattr(model, "step_"):
        assert (here.step_ == "exact") == (model.step_ == "exact")
    np.testing.assert_array_equal(model.classes_, here.classes_)
    assert model.classes_.dtype == here.classes_.dtype
    assert model.n_features_in_ == here.n_features_in_
    assert hasattr(model, "threshold_") == hasattr(here, "threshold_")
    if hasattr(model, "threshold_"):
        check_the_threshold(model, X, y, s)
    if hasattr(model, "predict_proba"):
        proba = here.predict_proba(X)
        np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-2)
    assert model.predict(data["X"]).compute().shape == y.shape
    if kind == "four classes" or kind not in problems():
        np.testing.assert_array_equal(clone(model).fit(**data).coef_, model.coef_)


@pytest.mark.parametrize(
    "model", [BCFWClassifier(random_state=0), CRFClassifier(), SubLBFGSClassifier()]
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_single_precision_stays_and_gives_the_bits_of_the_same_numbers(kind, model):
    X, y, s = rows()
    X = X.astype(np.float32)
    (chunk,) = check_chunks(0, [kind(X)], [y], [s], "model")
    assert chunk.X.dtype == np.float32
    fits = [
        clone(model).fit(divided(kind(own)), divided(y), sample_weight=divided(s))
        for own in (X, X.astype(np.float64))
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].dual_gap_ == fits[1].dual_gap_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_matrix_estimate_of_the_curvature_has_a_certificate_too():
    """How far its steps come is a matter of rounding, which differs with the division."""
    X, y, _ = rows()
    best = SubLBFGSClassifier(C=0.1, tol=1e-6).fit(X, y).objective_
    model = SubLBFGSClassifier(solver="subbfgs", C=0.1).fit(divided(X), divided(y))
    assert model.dual_objective_ - 1e-9 <= best <= model.objective_ + 1e-6
    assert model.objective_ <= model.history_["objective"][0]


@pytest.mark.parametrize("name", ["two classes", "four classes", "sparse rows"])
@pytest.mark.parametrize("n_rounds", [1, 4])
def test_what_comes_after_the_dual_start_has_its_bound(name, n_rounds, monkeypatch):
    X, y, s, options = problems()[name]
    monkeypatch.setattr("sklearn_structsvm.distributed.rows.n_places", lambda: 3)
    monkeypatch.setattr(DualStart, "is_slow", property(lambda s: s.n_made == n_rounds))
    model = placed(SubLBFGSClassifier)(solver="dual-hybrid", **EXACT, **options)
    here = clone(model).fit(X, y, sample_weight=s)
    plane, kept = DistributedBlocks.plane, []

    def keep(iterate):
        kept.append(iterate.dual_objective)
        return plane(iterate)

    monkeypatch.setattr(DistributedBlocks, "plane", keep)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)
    (bound,) = kept
    after = model.history_["n_iter"] > n_rounds
    assert model.history_["dual_objective"][after].min() >= bound - 1e-12


def test_a_warm_start_goes_on_from_the_last_fit():
    X, y, _ = rows()
    data = divided(X), divided(y)
    model = SubLBFGSClassifier(C=0.1, tol=1e-6, warm_start=True).fit(*data)
    again = clone(model).fit(*data).fit(*data)
    # How soon new bounds are found is another matter.
    assert again.history_["objective"][0] == pytest.approx(model.objective_, rel=1e-9)
    assert again.objective_ == pytest.approx(model.objective_, abs=1e-6)


def test_a_fit_can_be_pickled_and_knows_nothing_of_its_workers():
    X, y, _ = rows()
    several = label_binarize(y, classes=range(4))
    model = BMRMClassifier(C=0.1).fit(divided(X), divided(several))
    blob = pickle.dumps(model)
    assert len(blob) < 20_000
    np.testing.assert_array_equal(pickle.loads(blob).predict(X), model.predict(X))


def test_limits_and_callbacks_work_as_for_arrays(capsys):
    X, y, _ = rows()
    model = SubLBFGSClassifier(C=0.1, tol=0.0, max_iter=3, verbose=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.fit(divided(X), divided(y))
    assert model.n_iter_ == 3 and "pass 3" in capsys.readouterr().out


# Data frames


def frames(n_partitions=3):
    dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    X, y, s = rows()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["tree"] = np.array(["ash", "elm", "fir", "oak"])[y]
    frame["weight"] = s
    frame["row"] = np.arange(len(y))
    return frame, dd.from_pandas(frame, npartitions=n_partitions)


def test_data_frames_of_unknown_length_are_as_good():
    frame, parts = frames()
    names = [name for name in frame if name.startswith("x")]
    # Of the last partition, nothing is left.
    kept, parts = frame[frame["row"] < 150], parts[parts["row"] < 150]
    model = SubLBFGSClassifier(**EXACT, class_weight="balanced")
    here = clone(model).fit(kept[names], kept["tree"], sample_weight=kept["weight"])
    model.fit(parts[names], parts["tree"], sample_weight=parts["weight"])
    check_the_same(model, here)
    np.testing.assert_array_equal(model.feature_names_in_, names)
    apart = distance(model, here, model.C * kept["weight"].sum())
    rows = np.hstack([frame[names], np.ones((len(frame), 1))])
    np.testing.assert_allclose(
        model.decision_function(frame[names]),
        here.decision_function(frame[names]),
        atol=apart * np.linalg.norm(rows, axis=1).max(),
    )
    # Arrays of chunks of unknown length are the same.
    again = clone(model).fit(
        parts[names].to_dask_array(),
        parts["tree"],
        sample_weight=parts["weight"].to_dask_array(),
    )
    assert again.objective_ == model.objective_


def test_an_indicator_may_be_a_frame():
    frame, parts = frames()
    names = [name for name in frame if name.startswith("x")]
    labels = (parts[names[:3]] > 0.0).astype(int)
    model = BMRMClassifier(**EXACT)
    present = (frame[names[:3]] > 0.0).astype(int)
    here = clone(model).fit(frame[names], present)
    check_the_same(model.fit(parts[names], labels), here)
    check_the_threshold(model, frame[names], present.to_numpy(), np.ones(len(frame)))
    fewer = parts[parts["weight"] > 1.0]
    with pytest.raises(ValueError, match="chunk 0, X has 100 rows, and y"):
        SubLBFGSClassifier().fit(parts[names], fewer["tree"])


def test_a_column_of_labels_is_taken_with_a_warning():
    X, y, _ = rows()
    column = da.from_array(y[:, np.newaxis], chunks=(SIZES, 1))
    model = SubLBFGSClassifier(C=0.1)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model.fit(divided(X), column)
    assert model.objective_ == clone(model).fit(divided(X), divided(y)).objective_


# Predictions of collections.


def test_predictions_of_collections_are_lazy_and_those_of_the_rows():
    X = new_rng(0).standard_normal((90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    Y = (X[:, :3] > 0).astype(int)
    models = [
        SubLBFGSClassifier(C=0.1).fit(X, y),
        BCFWClassifier(C=0.1, random_state=0).fit(X, y),
        BCFWClassifier(C=0.1, random_state=0).fit(X, Y),
        ComplexMetricClassifier(LogisticRegression(), random_state=0).fit(X, y),
    ]
    array = da.from_array(X, chunks=((50, 30, 10), 4))
    dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    for model in models:
        expected = model.predict(X)
        dense = model.predict(array)
        assert isinstance(dense, da.Array) and dense.shape == expected.shape
        assert dense.dtype == expected.dtype
        np.testing.assert_array_equal(dense.compute(), expected)
        csr = model.predict(array.map_blocks(sparse.csr_array))
        np.testing.assert_array_equal(csr.compute(), expected)
        frame = pd.DataFrame(X, columns=["p", "q", "r", "s"])
        model.fit(frame, y)
        lazy = model.predict(dd.from_pandas(frame, npartitions=3))
        np.testing.assert_array_equal(lazy.compute(), model.predict(frame))
