"""Fits on Dask collections: the optimum of the in-memory fit, and workers that die."""

import logging
import os
import pickle
import signal
import sys
from functools import partial
from time import monotonic, sleep

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.preprocessing import label_binarize

from sklearn_structsvm import (
    BMRMClassifier,
    PragamClassifier,
    SubLBFGSClassifier,
    _dask_parts,
)
from sklearn_structsvm.structures import MulticlassStructure

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

# Rows that are no multiple of each other, one alone, and none.
SIZES = (150, 1, 89, 0, 60)
COSTS = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 0.5], [1, 1, 3, 0]])

ESTIMATORS = {
    "hybrid": SubLBFGSClassifier,
    "sublbfgs, wolfe": partial(SubLBFGSClassifier, line_search="wolfe"),
    "bmrm": BMRMClassifier,
}
# λ is about 0.03, the gap far below what is asked of the objectives.
EXACT = {"C": 0.1, "tol": 1e-10, "max_iter": 3000}


def rows(n_classes=4, seed=0):
    n = sum(SIZES)
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=n_classes, flip_y=0.2, random_state=seed
    )
    return X, y, np.random.default_rng(seed).uniform(0.2, 2.0, n)


def divided(data, sizes=SIZES):
    """A dask.array of these chunks, of sparse ones where the data are sparse."""
    if sparse.issparse(data):
        return divided(data.toarray(), sizes).map_blocks(sparse.csr_array)
    return da.from_array(data, chunks=(sizes, *data.shape[1:]))


def problems():
    X, y, s = rows()
    two = (y > 1).astype(int)
    several = label_binarize(y, classes=range(4)) | (X[:, :4] > 1.0)
    few = sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    names = np.array(["ash", "elm", "fir", "oak"])[y]
    named = {
        "two classes": (X, two, {}),
        "costs of two classes": (X, two, {"label_costs": [[0, 1], [3, 0]]}),
        "without an intercept": (X, two, {"fit_intercept": False}),
        "four classes": (X, y, {}),
        "names": (X, names, {"class_weight": {"elm": 3.0}}),
        "balanced": (X, np.minimum(y, 2), {"class_weight": "balanced"}),
        "costs": (X, y, {"label_costs": COSTS, "intercept_scaling": 2.0}),
        "rescaled": (X, y, {"label_costs": COSTS, "loss": "slack_hinge"}),
        "sparse rows": (few, y, {}),
        "single precision": (X.astype(np.float32), y, {}),
        "several labels": (X, several, {}),
        "pairs of labels": (few, several, {"label_costs": COSTS}),
        "a class that is not there": (X, y, {"classes": [0, 1, 2, 3, 7]}),
    }
    return {name: (X, y, s, options) for name, (X, y, options) in named.items()}


def check_the_same(model, other, rel=1e-8):
    assert model.objective_ == pytest.approx(other.objective_, rel=rel)
    assert model.coef_.shape == other.coef_.shape
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    assert model.classes_.dtype == other.classes_.dtype
    assert model.n_features_in_ == other.n_features_in_
    if hasattr(other, "threshold_"):
        assert model.threshold_ == pytest.approx(other.threshold_, abs=1e-4)


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize(("X", "y", "s", "options"), problems().values(), ids=problems())
def test_the_optimum_is_that_of_the_fit_in_memory(make, X, y, s, options):
    model = make(**EXACT, **options)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert model.dual_gap_ <= 1e-10
    check_the_same(model, here)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("solver", ["owlqn", "owlqn*"])
def test_the_l1_penalty_has_the_same_optimum_too(solver):
    X, y, s = rows(2)
    model = SubLBFGSClassifier("logistic", penalty="l1", solver=solver, tol=1e-9)
    model.set_params(class_weight="balanced", C=0.1)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)
    np.testing.assert_array_equal(model.coef_ == 0.0, here.coef_ == 0.0)


def test_a_matrix_estimate_of_the_curvature_leads_the_same_way():
    X, y, _ = rows()
    model = SubLBFGSClassifier(solver="subbfgs", C=0.1, tol=1e-3)
    here = clone(model).fit(X, y)
    model.fit(divided(X), divided(y))
    assert max(model.dual_gap_, here.dual_gap_) <= 1e-3
    assert model.objective_ == pytest.approx(here.objective_, abs=1e-3)


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
    assert again.n_iter_ < model.n_iter_ // 2
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
    np.testing.assert_array_equal(model.predict(frame[names]), here.predict(frame[names]))
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
    here = clone(model).fit(frame[names], (frame[names[:3]] > 0.0).astype(int))
    check_the_same(model.fit(parts[names], labels), here)


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


def spoilt(at, value):
    X, y, s = rows()
    parts = {"X": X, "y": y.astype(float), "s": s}
    parts[at[0]][at[1:]] = value
    return tuple(divided(data) for data in parts.values())


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (("X", 160, 2), np.nan, "(?s)Chunk 2 of the Dask collection: .*X contains NaN"),
        (("y", 5), np.inf, "Chunk 0 of the Dask collection: .*y contains infinity"),
        (("y", 5), 0.5, "Chunk 0 of the Dask collection: Unknown label type: cont"),
        (("s", 299), -1.0, "Chunk 4 .*sample_weight must be finite and >= 0; got -1"),
        (("s", 299), np.nan, "Chunk 4 .*sample_weight must be finite and >= 0; got nan"),
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
        "y in memory": ((X_, y), TypeError, "y must be a Dask collection, as X is one"),
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
        "no weight": ((X_, y_, 0 * s_), ValueError, "weight of zero"),
        "no rows": (
            (X_[:0], y_[:0]),
            ValueError,
            r"Found array with 0 sample\(s\)",
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
    with pytest.raises(TypeError, match="SubLBFGSClassifier and BMRMClassifier do"):
        PragamClassifier().fit(divided(X), divided(y))
    with pytest.raises(ValueError, match="needs data in memory"):
        BMRMClassifier(MulticlassStructure()).fit(divided(X), divided(y))


def test_without_dask_it_is_said_how_to_get_it(monkeypatch):
    X, y, _ = rows()
    data = divided(X), divided(y)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install \"sklearn-structsvm\[dask\]\""):
        SubLBFGSClassifier().fit(*data)
    # Nobody else needs it.
    SubLBFGSClassifier(C=0.1).fit(X, y)


# A cluster of two workers, each a process


def start_cluster():
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with start_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def mortal_client():
    """Of a cluster that one test has to itself."""
    from distributed import Client

    with start_cluster() as cluster, Client(cluster) as client:
        yield client


def tasks(client):
    """Keys of all that the scheduler knows."""
    return client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.tasks))


def wait_until(holds, seconds=60.0):
    until = monotonic() + seconds
    while not holds() and monotonic() < until:
        sleep(0.05)
    assert holds()


CLUSTERED = {
    "hybrid": (SubLBFGSClassifier(**EXACT), "four classes"),
    "bmrm": (BMRMClassifier(**EXACT), "several labels"),
    "owlqn": (SubLBFGSClassifier("logistic", penalty="l1", C=0.1, tol=1e-9), "two classes"),
}


@pytest.mark.parametrize(("model", "kind"), CLUSTERED.values(), ids=CLUSTERED)
def test_a_cluster_reaches_the_optimum_of_the_fit_in_memory(client, model, kind):
    X, y, s, _ = problems()[kind]
    model = clone(model).set_params(C=0.01)
    here = clone(model).fit(X, y, sample_weight=s)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    check_the_same(model, here)
    # Nothing is left with the workers.
    wait_until(lambda: not tasks(client))


def test_rows_never_leave_their_worker(client, monkeypatch):
    X, y, _ = rows()
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)
    chunks = (3000,) * 4
    received = []
    gather = client.gather

    def watched(futures, *args, **kwargs):
        results = gather(futures, *args, **kwargs)
        received.append(len(pickle.dumps(results)))
        return results

    monkeypatch.setattr(client, "gather", watched)
    model = SubLBFGSClassifier(C=1e-4)
    model.fit(divided(X, chunks), divided(y, chunks))
    # From each of two workers as many breakpoints as were asked for, or twice as many,
    # of three numbers each.
    assert len(received) > 20 and max(received) < 2 * 2 * 1024 * 24 + 2000
    assert max(received) < 0.2 * X.nbytes
    here = clone(model).fit(X, y)
    assert model.objective_ == pytest.approx(here.objective_, abs=1e-3)


def test_collections_that_are_kept_by_the_workers_stay_there(client):
    X, y, _ = rows()
    data = [d.persist() for d in (divided(X), divided(y))]
    before = tasks(client)
    model = BMRMClassifier(C=0.01).fit(*data)
    assert model.dual_gap_ <= 1e-3
    wait_until(lambda: tasks(client) == before)


def test_errors_of_the_workers_are_those_of_the_data(client):
    X, y, s = spoilt(("X", 160, 2), np.nan)
    with pytest.raises(ValueError, match="(?s)Chunk 2 of the Dask coll.*X contains NaN"):
        SubLBFGSClassifier().fit(X, y, sample_weight=s)
    wait_until(lambda: not tasks(client))


@pytest.mark.parametrize(
    ("model", "kind", "large", "at"),
    [
        (SubLBFGSClassifier(**EXACT), "two classes", 2**20, 20),
        # All vectors are scattered.
        (BMRMClassifier(**EXACT), "two classes", 0, 20),
        (SubLBFGSClassifier("logistic", penalty="l1", tol=1e-9), "two classes", 2**20, 12),
    ],
    ids=["hybrid", "bmrm", "owlqn"],
)
def test_a_fit_goes_on_where_a_worker_is_killed(
    mortal_client, model, kind, large, at, monkeypatch
):
    X, y, s, _ = problems()[kind]
    model = clone(model).set_params(C=0.01)
    here = clone(model).fit(X, y, sample_weight=s)
    ask, homes = _dask_parts.ClusterParts.ask, []

    def ask_and_kill(parts, question):
        homes.append(parts.homes)
        if len(homes) == at:
            assert len(set(parts.homes)) == 2
            (pid,) = mortal_client.run(os.getpid, workers=parts.homes[:1]).values()
            # Windows knows but one way.
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        return ask(parts, question)

    monkeypatch.setattr(_dask_parts, "LARGE", large)
    monkeypatch.setattr(_dask_parts.ClusterParts, "ask", ask_and_kill)
    model.fit(divided(X), divided(y), sample_weight=divided(s))
    assert len(homes) > at + 10
    # Another one took over.
    assert homes[at - 1][0] not in homes[-1]
    check_the_same(model, here)
