"""What fits and predictions take beside their data."""

import subprocess
import sys
import tracemalloc
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    StackedStructureClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_poses
from sklearn_structsvm.estimators import crf, pragam
from sklearn_structsvm.solvers.batch.quasi_newton import (
    BUFFER,
    FEWEST_PAIRS,
    MOST_BYTES_OF_PAIRS,
    count_pairs,
)
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent, dual_memory
from sklearn_structsvm.structures import ChainStructure, PictorialStructure

pytestmark = [
    pytest.mark.thread_unsafe(reason="memory is traced of all threads"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def added(call):
    """Bytes that a call takes at most, and what it returns."""
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def size_of(X):
    if isinstance(X, list):
        return sum(map(size_of, X))
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes


def rows(kind, n_samples=4000, n_features=250):
    rng = new_rng(0)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    y = (X[:, 0] + rng.normal(size=n_samples) > 0).astype(int)
    if kind == "csr":
        X = sparse.csr_array(X * (X > 0))
    return X, y


FITS = {
    "bcfw": lambda structure: BCFWClassifier(structure, max_iter=2),
    "pairwise": lambda structure: BCFWClassifier(structure, step="pairwise", max_iter=2),
    "crf": lambda structure: CRFClassifier(structure, solver="dual", max_iter=2),
    "lbfgs": lambda structure: CRFClassifier(structure, solver="lbfgs", max_iter=2),
    "newton": lambda structure: CRFClassifier(structure, solver="newton", max_iter=2),
    "slack": lambda structure: SlackRescaledSSVM(structure, max_iter=1),
    "bmrm": lambda structure: BMRMClassifier(structure, max_iter=2),
    "sublbfgs": lambda structure: SubLBFGSClassifier(max_iter=2),
    "pragam": lambda structure: PragamClassifier(max_iter=2),
}
LOGISTIC = ["crf", "lbfgs", "newton"]


@pytest.mark.parametrize(
    ("name", "kind", "n_features"),
    [*product(FITS, ["float32"], [300]), *product(["bcfw", "bmrm"], ["float64"], [300]),
     *product(LOGISTIC, ["float64", "csr to read"], [250]),
     *product(LOGISTIC, ["float64", "csr"], [50])],
)  # fmt: skip
def test_a_fit_to_rows_takes_a_part_of_them(name, kind, n_features):
    form = "csr" if kind.startswith("csr") else "dense"
    X, y = rows(form, 4000 if n_features == 250 else 10_000, n_features)
    X, own = X.astype("float64" if form == "csr" else kind), 0
    if kind == "csr to read":
        X.indices, X.indptr = X.indices.copy(), X.indptr.copy()
        X.indices.flags.writeable = X.indptr.flags.writeable = False
    elif kind == "csr":
        own = X.indices.nbytes + X.indptr.nbytes
    FITS[name]("auto").fit(X[:100], y[:100])
    most, _ = added(lambda: FITS[name]("auto").fit(X, y))
    # Some numbers for each row, a piece of X, and indices that others can write to.
    share = 0.2 if name in LOGISTIC else 0.3
    assert most < share * size_of(X) + 220 * len(y) + own


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [*product(["bcfw", "crf", "lbfgs", "bmrm"], ["chain", "tree"], [np.float32]),
     *product(["bcfw", "bmrm"], ["graph"], [np.float32]), ("bcfw", "graph", np.float64),
     *product(["bcfw", "lbfgs"], ["chain", "tree"], [np.float64])],
)  # fmt: skip
def test_a_fit_to_sequences_takes_a_part_of_them(name, kind, dtype):
    X, y = sequences(kind, 100, 60, dtype)
    features = [x[0] for x in X] if kind in ("tree", "graph") else X
    FITS[name](kind).fit(X[:5], y[:5])
    most, _ = added(lambda: FITS[name](kind).fit(X, y))
    # Some numbers for each position, and of graphs for each edge: more of them, the more
    # labelings are at hand.
    each = 400 if kind == "graph" else 300
    assert most < 0.3 * size_of(features) + each * sum(map(len, y))


class Idle(ClassifierMixin, BaseEstimator):
    """A classifier of rows that takes hardly any memory."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((X.shape[0], len(self.classes_)), 1.0 / len(self.classes_))


@pytest.mark.parametrize("kind", ["dense", "csr", "frame", "graph"])
def test_a_stacked_fit_concatenates_the_rows_once(kind):
    """Beside them there are the rows of one fold, which its fit or its scores need."""
    X, y = sequences(kind, 300, 60, np.float64)
    features = [x[0] for x in X] if kind == "graph" else X
    size = size_of(features)
    if kind == "frame":
        X = list(map(pd.DataFrame, X))
    cv = [(np.arange(150, 300), np.arange(150)), (np.arange(150), np.arange(150, 300))]
    for folds, most in (("prefit", 1.0), (cv, 1.5)):
        base = Idle().fit(features[0], [0, 1])
        model = StackedStructureClassifier(base, BCFWClassifier(max_iter=1), cv=folds)
        model.fit(X[:4], y[:4]) if folds == "prefit" else None
        taken, _ = added(lambda model=model: model.fit(X, y))
        assert taken < most * size + 500 * sum(map(len, y))


WITH_LITTLE_MEMORY = """
import resource, sys
import numpy as np
from sklearn_structsvm import BCFWClassifier

n, folder = int(sys.argv[1]), sys.argv[2]
X = [np.load(f"{folder}/{i}.npy", mmap_mode="r") for i in range(n)]
y = [(x[:, 0] > 0).astype(int) for x in X]
model = BCFWClassifier(max_iter=2, tol=0.0, random_state=0).fit(X[:2], y[:2])
with open("/proc/self/status") as status:
    held = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
limit = 1024 * held + sum(x.nbytes for x in X) // 2
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model.fit(X, y)
assert model.score(X, y) > 0.8
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_DATA")
def test_memory_maps_larger_than_memory_are_trained_and_predicted(tmp_path):
    """Memory is limited to half of X; file-backed pages are not part of that."""
    rng, n = new_rng(3), 12
    for i in range(n):
        np.save(tmp_path / f"{i}.npy", rng.random((4000, 500), dtype=np.float32) - 0.5)
    args = [sys.executable, "-W", "ignore", "-c", WITH_LITTLE_MEMORY, str(n)]
    done = subprocess.run([*args, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def sequences(kind, n_samples, most=30, dtype=np.float32):
    rng = new_rng(1)
    X = [
        rng.standard_normal((length, 250), dtype=np.float32).astype(dtype)
        for length in rng.integers(most // 2, most, size=n_samples)
    ]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    if kind == "csr":
        X = [sparse.csr_array(x * (x > 0)) for x in X]
    if kind == "tree":
        X = [(x, np.repeat([-1, 0], [1, len(x) - 1])) for x in X]
    if kind == "graph":
        X = [(x, [(0, v) for v in range(1, len(x))]) for x in X]
    return X, y


def calls_of(model, X, y):
    """What is asked of a fitted model, by names, and the size of the answers."""
    names = "predict", "decision_function", "predict_proba", "predict_log_proba"
    calls = {
        name: lambda name=name: getattr(model, name)(X)
        for name in (*names, "entropy")
        if hasattr(model, name)
    }
    calls["score"] = lambda: model.score(X, y)
    if hasattr(model, "log_likelihood"):
        calls["log_likelihood"] = lambda: model.log_likelihood(X, y)
    return calls


def assert_little_is_added(model, X, y, features, n_labels):
    # Answers, and a few numbers for each label.
    own = 2 * 8 * n_labels * len(model.classes_) + 60 * n_labels
    for name, call in calls_of(model, X, y).items():
        most, _ = added(call)
        assert most < 0.1 * size_of(features) + own, name


@pytest.mark.parametrize(
    ("kind", "dtype", "model"),
    [("dense", np.float32, CRFClassifier), ("csr", np.float64, CRFClassifier),
     ("dense", np.float64, BCFWClassifier), ("csr", np.float32, BCFWClassifier)],
)  # fmt: skip
def test_predictions_of_rows_take_a_piece_of_them(kind, dtype, model):
    X, y = rows(kind, 8000, 300)
    X = X.astype(dtype)
    model = model(max_iter=1).fit(X[:200], y[:200])
    assert_little_is_added(model, X, y, X, len(y))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("dense", np.float32), ("dense", np.float64), ("csr", np.float32),
     ("tree", np.float32), ("graph", np.float32)],
)  # fmt: skip
def test_predictions_of_sequences_take_a_piece_of_them(kind, dtype):
    X, y = sequences(kind, 80, 100, dtype)
    model = BCFWClassifier if kind == "graph" else CRFClassifier
    structure = {"dense": "chain", "csr": "chain"}.get(kind, kind)
    model = model(structure, max_iter=1).fit(X[:5], y[:5])
    features = [x[0] for x in X] if kind in ("tree", "graph") else X
    n_labels = sum(map(len, y))
    assert_little_is_added(model, X, y, features, n_labels + 20 * len(X))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("dense", np.float32), ("csr", np.float32), ("fortran", np.float32),
     ("dense", np.int32), ("csr", np.float64), ("fortran", np.float64),
     ("sequences", np.float32)],
)  # fmt: skip
def test_pieces_answer_as_the_whole(kind, dtype):
    if kind == "sequences":
        X, y = sequences("dense", 300)
    else:
        X, _ = rows("csr" if kind == "csr" else "dense", 1000, 100)
        X = (3 * X).astype(dtype)
        X = np.asfortranarray(X) if kind == "fortran" else X
        y = new_rng(2).integers(0, 3, size=1000)
    model = CRFClassifier(C=0.01, max_iter=3).fit(X, y)
    for name, call in calls_of(model, X, y).items():
        if name == "score":
            continue
        whole = call()
        for part in (slice(5), slice(-5, None)):
            few = X[part] if kind == "sequences" else X[part].astype(np.float64)
            alone = calls_of(model, few, y[part])[name]()
            for found, expected in zip(whole[part], alone, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_predictions_of_images_take_a_piece_of_them():
    data = make_poses(60, shape=(24, 24), random_state=new_seed(0))
    X = [np.repeat(x, 8, axis=3).astype(np.float32) for x in data.X]
    model = BCFWClassifier(PictorialStructure(data.parents), max_iter=1, random_state=0)
    model.fit(X[:3], data.y[:3])
    most, labels = added(lambda: model.predict(X))
    # An image takes room for its scores too.
    assert most < 0.1 * size_of(X) + 10 * size_of(X[:1])
    whole = model.predict([x.astype(np.float64) for x in X])
    np.testing.assert_array_equal(np.stack(labels), np.stack(whole))


@pytest.mark.parametrize("n_classes", [3, 20])
@pytest.mark.parametrize("make", [BCFWClassifier, CRFClassifier])
def test_a_long_sequence_takes_at_most_30_numbers_for_each_position_and_label(
    make, n_classes
):
    """240 bytes: 720 MB for 1,000,000 positions and 3 labels; 240 MB in predictions."""
    n_positions = 20_000
    rng = new_rng()
    y = rng.integers(n_classes, size=n_positions)
    X = [np.eye(n_classes)[y][:, :3] + rng.normal(size=(n_positions, 3))]
    model = make("chain", max_iter=25, random_state=0)
    of_fit, model = added(lambda: model.fit(X, [y]))
    asked = [model.predict]
    if make is CRFClassifier:
        asked += [model.predict_proba, model.entropy]
    # Beside what does not depend on the length.
    assert of_fit <= 30 * 8 * n_positions * n_classes + 2**20
    for ask in asked:
        of_call, _ = added(lambda ask=ask: ask(X))
        assert of_call <= 10 * 8 * n_positions * n_classes + 2**20


def tagged(n_sequences, n_classes, length=4):
    """Sequences with an attribute for each position, and many labels."""
    rng = new_rng()
    y = rng.integers(0, n_classes, size=(n_sequences, length))
    attributes = (y + rng.integers(0, 2, size=y.shape)) % n_classes
    eye = sparse.identity(n_classes, format="csr")
    return [eye[own] for own in attributes], list(y)


def test_the_estimated_memory_of_dual_ascent_is_what_it_keeps():
    X, y = tagged(20, 15)
    structure = ChainStructure().fit(X, y, classes=range(15))
    oracle = structure.make_oracle(X, y)
    ascent = MarginalAscent(oracle, np.full(20, 0.05), 0.1)
    ascent.run(np.arange(20))
    nodes, (edges, _, _) = oracle.get_blocks()
    kept = ascent.get_state()["factors"].nbytes + nodes.nbytes + edges.nbytes
    assert dual_memory(oracle) == kept


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_too_many_labels_for_dual_ascent_are_for_lbfgs(l1_ratio, monkeypatch):
    """The default says so with the number, before it allocates."""
    X, y = tagged(150, 100)
    model = CRFClassifier("chain", l1_ratio=l1_ratio, max_iter=2, random_state=0)
    model.set_params(solver_options__classes=range(100))
    needed = 16 * 150 * (100**2 + 4 * 100)
    assert added(lambda: clone(model).fit(X, y))[1].solver_ == "dual"
    monkeypatch.setattr(crf, "MOST_MEMORY", needed - 1)
    with pytest.warns(UserWarning, match=rf"takes {needed / 1e9:.1f} GB.*solver='lbfgs'"):
        memory, fitted = added(lambda: clone(model).fit(X, y))
    assert fitted.solver_ == "lbfgs"
    assert memory < needed
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert clone(model).set_params(solver="dual").fit(X, y).solver_ == "dual"


def test_pragam_says_what_its_marginals_take(monkeypatch):
    X, y = tagged(40, 30)
    needed = 8 * 40 * (30**2 + 4 * 30)
    monkeypatch.setattr(pragam, "MOST_MEMORY", needed - 1)
    options = {"classes": range(30)}
    model = PragamClassifier(structure="chain", solver_options=options, max_iter=1)
    with pytest.warns(UserWarning, match=rf"take {needed / 1e9:.1f} GB. BCFWClassifier"):
        model.fit(X, y)


def test_many_weights_leave_fewer_pairs_for_lbfgs():
    assert count_pairs(1000) == BUFFER
    for n_weights in (10**7, 10**9):
        n_pairs = count_pairs(n_weights)
        assert n_pairs == FEWEST_PAIRS or 16 * n_weights * n_pairs <= MOST_BYTES_OF_PAIRS
        assert FEWEST_PAIRS <= n_pairs < BUFFER
