"""Fits on Dask collections: the optimum of the in-memory fit, and what is refused."""

import pickle
import sys
from functools import partial
from itertools import product

import numpy as np
import pytest
from _dask_data import (
    EXACT,
    SIZES,
    check_the_same,
    check_the_threshold,
    da,
    divided,
    problems,
    rows,
    spoilt,
)
from _estimators import distance
from _options import placed
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.preprocessing import label_binarize

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.distributed.rows import check_chunks
from sklearn_structsvm.structures import MulticlassStructure

ESTIMATORS = {
    "auto": SubLBFGSClassifier,
    "hybrid": partial(SubLBFGSClassifier, solver="hybrid"),
    "sublbfgs, wolfe": partial(
        SubLBFGSClassifier, solver_options={"line_search": "wolfe"}
    ),
    "bmrm": BMRMClassifier,
}


# How rows are read does not depend on who solves their problem.
CASES = [
    *product(problems(), ["auto"]),
    *product(["two classes", "four classes", "several labels"], [*ESTIMATORS][1:]),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_optimum_is_that_of_the_fit_in_memory(kind, name):
    X, y, s, options = problems()[kind]
    model = placed(ESTIMATORS[name])(**EXACT, **options)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert model.dual_gap_ <= 1e-10
    check_the_same(model, here)
    if hasattr(model, "threshold_"):
        check_the_threshold(model, X, y, s)
    assert model.predict(X).shape == y.shape


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


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("solver", ["owlqn", "owlqn*"])
def test_the_l1_penalty_has_the_same_optimum_too(solver, loss):
    X, y, s = rows(2)
    model = SubLBFGSClassifier(loss, penalty="l1", solver=solver, tol=1e-4)
    model.set_params(class_weight="balanced", C=0.1, max_iter=10**4)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert max(model.dual_gap_, here.dual_gap_) <= 1e-4
    # Objectives are as near as both certificates say, and there is but one near them.
    check_the_same(model, here, rel=1e-4 / here.objective_, atol=0.05)


def test_the_hinge_with_an_l1_penalty_needs_data_in_memory():
    X, y, _ = rows(2)
    with pytest.raises(TypeError, match="use loss='squared_hinge' or penalty='l2'"):
        SubLBFGSClassifier(penalty="l1").fit(divided(X), divided(y))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_squared_hinge_has_the_same_optimum_too(n_classes):
    X, y, s = rows(n_classes)
    model = SubLBFGSClassifier("squared_hinge", **EXACT | {"tol": 1e-8})
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert (here.solver_, model.solver_) == ("newton", "sublbfgs")
    assert max(model.dual_gap_, here.dual_gap_) <= 1e-8
    check_the_same(model, here, rel=1e-8 / here.objective_, atol=1e-2)
    with pytest.raises(ValueError, match="needs data in memory.* use solver='auto'"):
        model.set_params(solver="newton").fit(divided(X), divided(y))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_matrix_estimate_of_the_curvature_has_a_certificate_too():
    """How far its steps come is a matter of rounding, which differs with the division."""
    X, y, _ = rows()
    best = SubLBFGSClassifier(C=0.1, tol=1e-6).fit(X, y).objective_
    model = SubLBFGSClassifier(solver="subbfgs", C=0.1).fit(divided(X), divided(y))
    assert model.dual_objective_ - 1e-9 <= best <= model.objective_ + 1e-6
    assert model.objective_ <= model.history_["objective"][0]


@pytest.mark.parametrize("loss", ["hinge", "slack_hinge"])
def test_weights_of_zero_leave_examples_out_but_not_their_labels(loss):
    X, y, s = rows()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    # The last chunk holds all of class 3.
    s[SIZES[0] + 1 :] = 0.0
    s[:10] = 0.0
    model = SubLBFGSClassifier(loss, **EXACT)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)
    np.testing.assert_array_equal(model.classes_, range(4))


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
    pd = pytest.importorskip("pandas")
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


def test_frames_of_other_lengths_are_refused():
    frame, parts = frames()
    names = [name for name in frame if name.startswith("x")]
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


# What is refused


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (("X", 160, 2), np.nan, "(?s)Chunk 2 of the Dask collection: .*X contains NaN"),
        (("y", 5), np.inf, "Chunk 0 of the Dask collection: .*y contains infinity"),
        (("y", 5), 0.5, "Chunk 0 of the Dask collection: Unknown label type: cont"),
        (("s", 299), -1.0, r"Chunk 4 .*sample_weight\[59\] must be finite .* got -1"),
        (("s", 299), np.nan, r"Chunk 4 .*sample_weight\[59\] must be finite .* got nan"),
    ],
)
def test_bad_values_are_refused_where_they_are(at, value, message):
    X, y, s = spoilt(at, value)
    model = SubLBFGSClassifier(C=0.1).fit(divided(rows()[0]), divided(rows()[1]))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=s)
    assert vars(model) == before


def refusals():
    X, y, s = rows()
    X_, y_, s_ = divided(X), divided(y), divided(s)
    other = (100, 100, 100)
    several = label_binarize(y, classes=range(4))
    return {
        "y in memory": ((X_, y), TypeError, "y must be .* the row chunks of X"),
        "X in memory": ((X, y_), TypeError, "X must be a dask.array .* got ndarray"),
        "no y": ((X_, None), TypeError, "y must be a Dask collection.* got NoneType"),
        "weights in memory": ((X_, y_, s), TypeError, "sample_weight must be a Dask"),
        "other chunks": (
            (X_, divided(y, other)),
            ValueError,
            "X has 5 chunk.s. of 150, 1, 89, 0, 60 rows, and y 3 of 100, 100, 100",
        ),
        "columns": (
            (da.from_array(X, chunks=(100, 4)), divided(y, other)),
            ValueError,
            r"X must be chunked by rows alone: use X.rechunk\(\{1: -1\}\)",
        ),
        "one dimension": ((y_, y_), ValueError, "X must be a 2-D collection; got 1"),
        "one class": ((X_, 0 * y_), ValueError, "only one class: 0"),
        "no weight": ((X_, y_, 0 * s_), ValueError, "must not be zero"),
        "too much weight": ((X_, y_, 0 * s_ + 1e308), ValueError, "too large"),
        "no rows": ((X_[:0], y_[:0]), ValueError, r"Found array with 0 sample\(s\)"),
        "labels of two kinds": (
            (X_, divided(np.where(y > 0, np.array("a", dtype=object), 1))),
            ValueError,
            "y mixes labels that cannot be sorted",
        ),
        "labels of a kind for each chunk": (
            (X_, divided(np.repeat(np.array(["a", 1], dtype=object), [150, 150]))),
            ValueError,
            "y mixes labels that cannot be sorted",
        ),
        "no indicator": ((X_, divided(2 * several)), ValueError, "0 and 1; got 2"),
        "many kinds": (
            (X_, divided(several * np.arange(4))),
            ValueError,
            "multiclass-multioutput",
        ),
    }


@pytest.mark.parametrize(
    ("data", "error", "message"), refusals().values(), ids=refusals()
)
def test_what_makes_no_problem_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        SubLBFGSClassifier().fit(*data)


def test_estimators_that_take_no_collections_say_which_do():
    X, y, _ = rows()
    with pytest.raises(TypeError, match="BCFWClassifier or BMRM"):
        PragamClassifier().fit(divided(X), divided(y))
    with pytest.raises(ValueError, match="needs data in memory"):
        BMRMClassifier(MulticlassStructure()).fit(divided(X), divided(y))


def test_without_dask_it_is_said_how_to_get_it(monkeypatch):
    X, y, _ = rows()
    data = divided(X), divided(y)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match="pip install .*distributed"):
        SubLBFGSClassifier().fit(*data)
    # Nobody else needs it.
    SubLBFGSClassifier(C=0.1).fit(X, y)
