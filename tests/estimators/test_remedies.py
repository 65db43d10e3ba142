"""What a ConvergenceWarning says is to be done, and that it helps."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
from _estimators import PythonMulticlass
from _options import placed, set_placed
from _seeds import new_rng, new_seed
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.estimators.remedies import convergence_message, scaling_words
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.solvers.loop import HISTORY_KEYS, SolverResult
from sklearn_structsvm.structures import ChainStructure, GraphStructure


def warning_of(fit):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always", ConvergenceWarning)
        fit()
    return [str(w.message) for w in record if w.category is ConvergenceWarning]


def good_rows(n=120):
    return make_classification(
        n, n_features=4, n_informative=3, n_redundant=0, n_classes=3,
        n_clusters_per_class=1, random_state=new_seed(0),
    )  # fmt: skip


def ended(gaps, status="max_iter", objective=1.0):
    """A result whose gap was checked every ten passes."""
    gaps = np.asarray(gaps, dtype=float)
    n_iter = 10 * np.arange(len(gaps))
    history = dict.fromkeys(HISTORY_KEYS, np.zeros(len(gaps)))
    history |= {"dual_gap": gaps, "n_iter": n_iter, "seconds": 0.1 * n_iter}
    return SolverResult(
        np.zeros(1), objective, objective - gaps[-1], gaps[-1], -np.inf, n_iter[-1], 1,
        status, history,
    )  # fmt: skip


def words_of(estimator, result, X=None, y=None):
    if X is None:
        X, y = good_rows()
    problem = bind_local(estimator, X, y)
    return convergence_message(estimator, problem, result, "It")


STALLED = np.full(101, 0.3)
# Another ten of these passes and the gap is at 1e-3.
NEARLY_DONE = 10.0 ** -np.linspace(0.0, 2.7, 91)
SLOW = 10.0 ** -np.linspace(0.0, 0.1, 101)


def test_columns_are_named_with_their_sizes_and_scaling_them_helps():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = BCFWClassifier(random_state=0)
    words = words_of(model, ended(STALLED), X, y)
    assert (
        "Scale the features with StandardScaler: they differ in size ('proline'" in words
    )
    assert re.search(
        "'proline' is about 8[0-9]0, 'nonflavanoid_phenols' about 0[.]", words
    )
    assert "'alcohol', 'ash', 'alcalinity_of_ash' and 1 other are far from 0" in words
    assert not warning_of(lambda: make_pipeline(StandardScaler(), model).fit(X, y))


def test_columns_without_names_are_counted_and_another_estimator_helps():
    rng = new_rng(0)
    X = np.c_[rng.normal(40.0, 1.0, size=(300, 2)), rng.standard_normal(300)]
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 40.0).astype(int)
    problem = bind_local(BCFWClassifier(), X, y)
    words = convergence_message(BCFWClassifier(C=10.0), problem, ended(STALLED), "BCFW")
    assert "columns 0 and 1 are far from 0 compared to their spread. Or try" in words
    assert "they differ in size (column" in words
    assert "BMRMClassifier, which solves the same problem" in words
    assert not warning_of(lambda: BMRMClassifier(C=10.0).fit(X, y))
    one = bind_local(BCFWClassifier(), X[:, [0, 2]] * [0.01, 1.0], y)
    words = scaling_words(BCFWClassifier(), one)
    assert words.endswith(": column 0 is far from 0 compared to its spread.")
    # Scores of another model share a weight.
    given = BCFWClassifier(ChainStructure(emission="given"))
    items = [X[:, :2]], [np.arange(300) % 2]
    assert scaling_words(given, bind_local(given, *items)) == ""


@pytest.mark.parametrize("emission", [True, "both", "graph"])
def test_sequences_are_scaled_by_what_there_is_for_them(emission):
    X, y = make_chains(30, n_features=3, n_classes=3, random_state=new_seed(1))
    X, structure = [x + 30.0 for x in X], ChainStructure()
    if emission == "both":
        X = [(x, np.zeros((len(x), 3))) for x in X]
        structure = ChainStructure(emission="both")
    elif emission == "graph":
        paths = [np.column_stack([range(len(x) - 1), range(1, len(x))]) for x in X]
        X, structure = list(zip(X, paths, strict=True)), GraphStructure()
    model = BCFWClassifier(structure, random_state=0)
    words = words_of(model, ended(STALLED), X, y)
    scaler = "SequenceTransformer(StandardScaler())"
    assert f"Scale the features with {scaler}: columns 0, 1 and 2 are far" in words
    scaled = make_pipeline(SequenceTransformer(StandardScaler()), model)
    assert not warning_of(lambda: scaled.fit(X, y))


def test_sparse_columns_are_not_centered():
    rng = new_rng(2)
    counts = (rng.random((200, 6)) < 0.3) * 1.0
    X = sparse.csr_matrix(counts * [1, 1, 1, 1, 1, 5000.0])
    y = np.arange(200) % 2
    model = BCFWClassifier(structure="binary", step="pairwise", max_iter=3)
    (words,) = warning_of(lambda: model.fit(X, y))
    assert "with MaxAbsScaler: they differ in size (column 5 is about 5000, " in words
    assert "from 0" not in words
    again = warning_of(lambda: make_pipeline(MaxAbsScaler(), model).fit(X, y))
    assert not any("features" in words for words in again)


def test_rare_ones_constants_and_good_columns_are_left_alone():
    rng = new_rng(3)
    n = 500
    rare = (rng.random((n, 30)) < 0.02) * 1.0
    good = rng.normal(1.0, 1.0, size=(n, 2)) * [1.0, 3.0]
    y = np.arange(n) % 2
    for X in (rare, np.c_[rare, good, np.ones(n), np.zeros(n)]):
        for layout in (np.asarray, sparse.csr_matrix):
            problem = bind_local(BCFWClassifier(), layout(X), y)
            assert scaling_words(BCFWClassifier(), problem) == ""
    words = convergence_message(BCFWClassifier(), problem, ended([1.0, 0.9]), "BCFW")
    assert words.endswith(" Increase max_iter, or use a smaller C.")
    # Of features that a structure alone knows nothing is claimed.
    X, y = good_rows(30)
    model = BCFWClassifier(PythonMulticlass(), max_iter=1)
    (words,) = warning_of(lambda: model.fit(list(X), y.tolist()))
    assert "Scale the features. Or increase max_iter, or use a smaller C." in words


def test_features_of_edges_are_columns_that_are_named_apart():
    rng = new_rng(9)
    chains, y = raw_edges("time of edges", rng)
    problem = bind_local(BCFWClassifier(EDGES), chains, y)
    words = scaling_words(BCFWClassifier(EDGES), problem)
    scalers = "SequenceTransformer(StandardScaler(), edge_transformer={}())"
    start = f"Scale the features with {scalers.format('StandardScaler')}: they differ in "
    assert words.startswith(f"{start}size (edge feature 1 is about 1.7e+09, column ")
    assert words.endswith(" and edge feature 1 is far from 0 compared to its spread.")
    # A constant column stands for the bias, so that edges of graphs are not centered.
    graphs, own = raw_edges("time of edges of graphs", rng)
    problem = bind_local(BCFWClassifier("graph"), graphs, own)
    words = scaling_words(BCFWClassifier("graph"), problem)
    start = f"Scale the features with {scalers.format('MaxAbsScaler')}: they differ in "
    assert words.startswith(f"{start}size (edge feature 1 is about 1.7e+09, column ")
    assert "far from" not in words
    near = [(1e5 * x, z[:, :1] + rng.normal(size=(len(z), 1))) for x, z in chains]
    problem = bind_local(BCFWClassifier(EDGES), near, y)
    words = scaling_words(BCFWClassifier(EDGES), problem)
    assert "edge feature 0 about" in words and "edge_transformer" in words
    # Ones are as good as a bias.
    large = [(1e5 * x, z[:, :1]) for x, z in chains]
    problem = bind_local(BCFWClassifier(EDGES), large, y)
    words = scaling_words(BCFWClassifier(EDGES), problem)
    assert "SequenceTransformer(StandardScaler()): they are large (column" in words
    good = [(x, z[:, :1]) for x, z in chains]
    problem = bind_local(BCFWClassifier(EDGES), good, y)
    assert scaling_words(BCFWClassifier(EDGES), problem) == ""


@pytest.mark.parametrize("limit", ["max_iter", "max_time"])
def test_more_passes_are_advised_where_the_gap_falls_and_not_where_it_has_stalled(limit):
    model = BCFWClassifier(solver_options={"max_time": 9.0})
    words = words_of(model, ended(NEARLY_DONE, limit))
    enough = {"max_iter": "max_iter (about 1000", "max_time": "max_time (about 100 s"}[
        limit
    ]
    assert words.endswith(f"Increase {enough} may do), or use a smaller C.")
    assert f"stopped at {limit}=" in words
    words = words_of(model, ended(STALLED, limit))
    assert f"A larger {limit} would help little. Try BMRMClassifier" in words
    assert "ncrease" not in words
    words = words_of(BCFWClassifier(), ended(SLOW))
    assert "At this rate, max_iter would have to be about 3" in words
    assert "ncrease" not in words


CHAIN = make_chains(6, n_features=3, n_classes=2, random_state=new_seed(0))
PLANES = "BMRMClassifier, which solves the same problem by cutting planes"


@pytest.mark.parametrize(
    ("estimator", "way"),
    [(BCFWClassifier(), PLANES),
     (BCFWClassifier("chain"), PLANES.replace(",", " with this structure,")),
     (BCFWClassifier(solver_options={"algorithm": "batch"}), "algorithm='block'"),
     (BCFWClassifier(step="fw", solver_options={"acceleration": False}),
      "step='auto' and acceleration='auto'"),
     (BCFWClassifier(step="corrective", solver_options={"sampling": "gap"}),
      "sampling='auto'"),
     (BCFWClassifier(solver_options={"coef_bounds": (-1.0, 1.0)}), None),
     (SlackRescaledSSVM(), "solver='cutting_plane'"),
     (SlackRescaledSSVM(solver="sgd"), "solver='bcfw'"),
     (SlackRescaledSSVM(solver="cutting_plane"), "solver='bcfw'"),
     (CRFClassifier(), None), (CRFClassifier(solver="dual"), "solver='auto'"),
     (CRFClassifier(solver="lbfgs"), "solver='newton'"),
     (CRFClassifier("chain", solver="lbfgs"), "solver='newton'"),
     (BMRMClassifier("chain"),
      "BCFWClassifier with this structure, which solves the same problem"),
     (SubLBFGSClassifier(), PLANES), (SubLBFGSClassifier(solver="sublbfgs"), None),
     (SubLBFGSClassifier("squared_hinge"), None),
     (SubLBFGSClassifier("squared_hinge", solver="sublbfgs"), "solver='newton'"),
     (PragamClassifier(loss="hinge", structure="chain"), "BMRMClassifier with this")],
    ids=repr,
)  # fmt: skip
def test_each_estimator_has_its_other_way(estimator, way):
    data = CHAIN if estimator.structure == "chain" else good_rows()
    words = words_of(estimator, ended(STALLED), *data)
    if way is None:
        assert "ry " not in words and words.endswith("se a smaller C.")
    else:
        assert f"ry {way}" in words and words.endswith(", or use a smaller C.")


@pytest.mark.parametrize(
    ("params", "way"),
    [
        ({}, "SubLBFGSClassifier, which solves the same problem"),
        ({"line_search": False}, "line_search=True"),
        ({"subproblem": "line"}, "subproblem='qp'"),
    ],
)
def test_rows_of_bundle_methods_have_other_ways(params, way):
    X, y = good_rows()
    model = placed(BMRMClassifier)(max_iter=60, tol=1e-14, **params)
    problem = bind_local(model, X, y)
    problem.risk = object()
    words = convergence_message(model, problem, ended(STALLED), "BMRM")
    assert f"ry {way}, or use" in words


def test_the_gap_decides_where_rounding_ends_a_fit_and_bounds_are_kept():
    words = words_of(BCFWClassifier(), ended([1.0, 1e-7], "stalled"))
    assert words.endswith("Rounding errors prevent further progress. Use a larger tol.")
    words = words_of(BCFWClassifier(), ended([1.0, 1e67], "stalled"))
    assert words.endswith("progress. Use a smaller C.")
    X = [(np.eye(2), [[0, 1]])] * 4
    y = [[0, 1], [1, 0]] * 2
    for cls in (BCFWClassifier, SlackRescaledSSVM):
        words = words_of(cls(GraphStructure(attractive=True)), ended(STALLED), X, y)
        assert "ry " not in words


SCALED = "Scale the features with StandardScaler: they differ in size (column 12 is about"


def test_paths_and_folds_say_the_same():
    X, y = load_wine(return_X_y=True)
    (words,) = warning_of(lambda: bcfw_path(X, y, max_iter=20, random_state=0))
    assert SCALED in words and words.endswith(" Or increase max_iter.")
    cut = BCFWClassifierCV(Cs=5, max_iter=20, cv=2, tol=10.0, random_state=0)
    (words,) = warning_of(lambda: cut.fit(X, y))
    assert SCALED in words and words.endswith(" Or increase max_iter, or end Cs there.")
    with pytest.raises(ValueError, match=re.escape(SCALED)):
        cut.set_params(Cs=[1.0, 10.0], max_iter=2).fit(X, y)
    crf = CRFClassifierCV(Cs=[0.1, 1.0], max_iter=1, cv=2)
    final, folds = warning_of(lambda: crf.fit(X, y))
    assert SCALED in final and SCALED in folds
    assert folds.endswith("Or increase max_iter or max_time, or use smaller Cs.")


def remedied(model, words):
    """The models that a warning advises, by what it says; forecasts only may do."""
    models = {}
    if found := re.search(r"Scale the features with ([^:]*):", words):
        scaler = eval(found[1])
        scaler = scaler() if isinstance(scaler, type) else scaler
        models[found[0]] = make_pipeline(scaler, clone(model))
    if found := re.findall(r"(?:[Tt]ry|and) (\w+)=('?[\w.]+'?)", words):
        own = {name: eval(value) for name, value in found}
        models[str(own)] = set_placed(clone(model), **own)
    if found := re.search(r"[Tt]ry (B\w+|SubLBFGSClassifier)", words):
        structure = {}
        if "with this structure" in words:
            structure["structure"] = model.structure
        models[found[0]] = globals()[found[1]](C=model.C, **structure)
    if "use a smaller C" in words:
        models["C"] = clone(model).set_params(C=1e-3 * model.C)
    assert models, words
    return models


EDGES = ChainStructure(edge_features=True)
SVM = partial(BCFWClassifier, random_state=0)


def raw_edges(kind, rng):
    """Chains or graphs with edges whose features are of a kind, one of them sparse."""
    X, y = [], []
    for T in rng.integers(3, 8, size=20):
        edges = np.c_[np.arange(T - 1), np.arange(1, T)]
        if "graph" in kind:
            edges = np.r_[edges, [[0, T - 1]]]
        own = 1.7e9 + 3e7 * rng.random(len(edges))
        if "money" in kind:
            own = rng.lognormal(9.0, 2.0, size=len(edges))
        features = np.c_[np.ones(len(edges)), own]
        if "sparse" in kind:
            features = sparse.csr_array(features)
        x = rng.normal(size=(T, 3))
        X.append((x, edges, features) if "graph" in kind else (x, features))
        y.append((x[:, 0] + rng.normal(size=T) > 0.0).astype(int))
    return X, y


def raw_kind(kind, rng, n=200):
    """Columns of a kind, and labels that depend on some of them."""
    if "edges" in kind:
        return raw_edges(kind, rng)
    Z = rng.normal(size=(n, 5))
    score = Z[:, 0] - Z[:, 1] + 0.5 * rng.logistic(size=n)
    X = {
        "money": lambda: rng.lognormal(9.0, 2.0, size=(n, 4)),
        "time": lambda: np.c_[1.7e9 + 3e7 * rng.random(n), Z],
        "large": lambda: 1e8 * (Z + 3.0),
        "wide": lambda: rng.normal(size=(n, 300)) * np.logspace(-2, 3, 300),
        "far": lambda: Z + 40.0,
        "chains": lambda: Z,
    }[kind]()
    y = (score > 0.0).astype(int)
    if kind == "chains":
        # Long ones, whose gradients are as long.
        X, y = [X[:100] + 3.0, X[100:] + 3.0], [y[:100], y[100:]]
    return X, y


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (PragamClassifier(max_iter=50), "money"),
        (PragamClassifier(max_iter=50), "time"),
        (PragamClassifier(max_iter=50), "large"),
        (PragamClassifier(structure="chain", max_iter=50), "chains"),
        (CRFClassifier(C=10.0, solver="dual", max_iter=100), "far"),
        (SubLBFGSClassifier("logistic", solver="owlqn", penalty="l1", C=1e4), "large"),
        (BCFWClassifier(l1_ratio=0.9, C=1e3, random_state=0, max_iter=30), "large"),
        (BCFWClassifier(l1_ratio=0.9, random_state=0, max_iter=30), "wide"),
        (BCFWClassifier(C=1e3, random_state=0, max_iter=10), "large"),
        (SubLBFGSClassifier("logistic", penalty="l1", max_iter=30), "wide"),
        (SubLBFGSClassifier(penalty="l1", C=1e3, max_iter=5), "large"),
        (CRFClassifier(l1_ratio=1.0, random_state=0, max_iter=2), "time"),
        (SlackRescaledSSVM(random_state=0, max_iter=3), "money"),
        (BMRMClassifier(max_iter=3), "money"),
        (placed(BMRMClassifier)(subproblem="line", max_iter=60), "money"),
        (BMRMClassifier(C=1e3, max_iter=60), "wide"),
        (BMRMClassifier("chain", C=1e3, max_iter=30), "chains"),
        (placed(SVM)(step="fw", acceleration=False, max_iter=60), "far"),
        (placed(SVM)(step="corrective", sampling="gap", max_iter=10), "far"),
        (placed(SVM)(algorithm="batch", max_iter=60), "far"),
        (
            SubLBFGSClassifier("squared_hinge", solver="sublbfgs", C=1e3, max_iter=30),
            "far",
        ),
        (CRFClassifier(C=1e3, solver="lbfgs", max_iter=30), "time"),
        (
            CRFClassifier("chain", C=1e3, l1_ratio=0.5, solver="lbfgs", max_iter=9),
            "chains",
        ),
        (CRFClassifier(EDGES, l1_ratio=1.0, C=1e3, random_state=0), "time of edges"),
        (SVM(EDGES, l1_ratio=0.9, C=1e3, max_iter=20), "money of edges"),
        (SVM("graph", l1_ratio=0.9, C=1e3, max_iter=20), "time of edges of graphs"),
        (CRFClassifier(EDGES, random_state=0, max_iter=20), "time of edges"),
        (BCFWClassifier(EDGES, random_state=0, max_iter=3), "money of edges"),
        (BMRMClassifier(EDGES, max_iter=3), "sparse edges"),
        (PragamClassifier(structure=EDGES, max_iter=20), "time of edges"),
        (SlackRescaledSSVM(EDGES, random_state=0, max_iter=3), "time of edges"),
        (CRFClassifier("graph", random_state=0, max_iter=3), "time of edges of graphs"),
        (BCFWClassifier("graph", random_state=0, max_iter=3), "money of edges, graph"),
        (BMRMClassifier("graph", max_iter=3), "sparse edges of graphs"),
    ],
    ids=repr,
)
def test_each_remedy_that_a_warning_names_works_on_the_data_that_raised_it(model, kind):
    X, y = raw_kind(kind, new_rng(8))
    (words,) = warning_of(lambda: clone(model).fit(X, y))
    # Such a fit is cut short here; what is advised is not.
    model = clone(model).set_params(max_iter=type(model)().max_iter)
    for way, advised in remedied(model, words).items():
        assert not warning_of(lambda advised=advised: advised.fit(X, y)), way
