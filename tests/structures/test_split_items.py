"""Items whose columns are split into arrays and CSR matrices, against those in one."""

import pickle
import tracemalloc

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.estimators.fingerprints import fingerprints
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    TreeStructure,
    check_structure,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

K = 3
STRUCTURES = {
    "chain": ChainStructure(),
    "chain both": ChainStructure(emission="both"),
    "tree": TreeStructure(),
    "tree both": TreeStructure(emission="both"),
    "graph": GraphStructure(),
    "graph both": GraphStructure(emission="both", transition="directed"),
}
# Kinds and numbers of columns, from left to right.
SPLITS = {
    "dense first": [("dense", 5), ("sparse", 8)],
    "sparse first": [("sparse", 8), ("dense", 5)],
    "one": [("dense", 4)],
    "many": [("sparse", 1), ("dense", 70), ("dense", 2), ("sparse", 90), ("sparse", 4)],
    "no width": [("dense", 0), ("sparse", 6), ("dense", 3), ("sparse", 0)],
}


def draw_matrix(rng, kind, n_rows, width, dtype=np.float64):
    rows = rng.standard_normal((n_rows, width)).astype(dtype)
    if kind == "dense":
        return rows
    return sparse.csr_array(rows * (rng.random(rows.shape) < 0.3))


def draw_items(rng, lengths, split, dtypes=(np.float32, np.float64)):
    kinds = {j: rng.choice(dtypes) for j in range(len(SPLITS[split]))}
    return [
        SplitMatrix(
            [
                draw_matrix(rng, kind, T, width, kinds[j])
                for j, (kind, width) in enumerate(SPLITS[split])
            ]
        )
        for T in lengths
    ]


def as_examples(rng, kind, items):
    """Chains, trees or graphs of these items, by equal draws of `rng` equal ones."""
    if "both" in kind:
        items = [(x, rng.standard_normal((len(x), K))) for x in items]
    if kind.startswith("chain"):
        return items
    lengths = [len(x[0]) if "both" in kind else len(x) for x in items]
    above = [np.array([-1, *(rng.integers(v) for v in range(1, T))]) for T in lengths]
    if kind.startswith("graph"):
        above = [np.c_[np.arange(1, len(p)), p[1:]] for p in above]
    return list(zip(items, above, strict=True))


def make_data(kind, split, n=20, longest=6, seed=0):
    """The same examples with split items, with arrays and with CSR matrices; labels."""
    rng = new_rng(seed)
    items = draw_items(rng, rng.integers(1, longest + 1, n), split)
    y = [
        np.argmax(x.toarray()[:, :K] + rng.standard_normal((len(x), K)), axis=1)
        for x in items
    ]
    y[0][:1], y[1][:1], y[2][:1] = range(K)
    # Arrays, as those have lengths.
    dense = [x.toarray() for x in items]
    found = [as_examples(new_rng(seed, 1), kind, own) for own in (items, dense)]
    places = [x[0] if kind != "chain" else x for x in found[1]]
    if "both" in kind and kind != "chain both":
        places = [x[0] for x in places]
    packed = [
        _with_features(kind, x, sparse.csr_array(own))
        for x, own in zip(found[1], places, strict=True)
    ]
    return *found, packed, y


def _with_features(kind, x, features):
    """An example with other features."""
    if kind == "chain":
        return features
    if kind == "chain both" or "both" not in kind:
        return features, *x[1:]
    return (features, x[0][1]), *x[1:]


@pytest.mark.parametrize("split", ["many", "no width"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_all_is_consistent_with_the_joint_feature(kind, split):
    X, _, _, y = make_data(kind, split, n=3, longest=3)
    check_structure(STRUCTURES[kind], X, y, n_trials=1)


def test_features_of_edges_may_be_split():
    X, _, _, y = make_data("graph", "dense first", n=4, longest=3)
    features = draw_items(new_rng(5), [len(edges) for _, edges in X], "sparse first")
    X = [(*x, own) for x, own in zip(X, features, strict=True)]
    check_structure(GraphStructure(), X, y, n_trials=2)
    negative = SplitMatrix([np.ones((1, 2)), sparse.csr_array([[-1.0]])])
    model = BCFWClassifier(GraphStructure(transition="potts", attractive=True))
    with pytest.raises(ValueError, match=r"X\[0\]\[2\] has the value -1"):
        model.fit([(np.ones((2, 1)), [(0, 1)], negative)], [[0, 1]])


SAME_STEPS = {"sampling": "uniform", "acceleration": False, "random_state": 0}
MODELS = {
    "steps": placed(BCFWClassifier)(
        step="fw", solver_options={"cache": False}, max_iter=20, tol=0.0, **SAME_STEPS
    ),
    "dual": placed(CRFClassifier)(solver="dual", max_iter=5, tol=0.0, **SAME_STEPS),
}


@pytest.mark.parametrize(
    "kind, name, split",
    [
        (kind, name, split)
        for kind in STRUCTURES
        for name in MODELS
        # Columns are read in the same way whatever stands beside them.
        for split in (SPLITS if kind == "chain" else ("many", "no width"))
        # There are no sums over the labelings of a graph.
        if "graph" not in kind or name != "dual"
    ],
)
def test_steps_and_answers_are_those_of_one_matrix(name, kind, split):
    *forms, y = make_data(kind, split)
    split_model, *others = (
        clone(MODELS[name]).set_params(structure=STRUCTURES[kind]).fit(X, y)
        for X in forms
    )
    for X, other in zip(forms[1:], others, strict=True):
        np.testing.assert_allclose(split_model.coef_, other.coef_, atol=1e-9)
        assert split_model.objective_ == pytest.approx(other.objective_, rel=1e-9)
        assert split_model.dual_gap_ == pytest.approx(other.dual_gap_, abs=1e-9)
        # A model of one form answers for the other.
        for ask in ("decision_function", "predict_proba", "predict_log_proba"):
            if hasattr(other, ask):
                own, of_one = getattr(other, ask)(forms[0]), getattr(other, ask)(X)
                for one, two in zip(own, of_one, strict=True):
                    np.testing.assert_allclose(one, two, atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(random_state=0),
        BCFWClassifier(step="corrective", random_state=0),
        BCFWClassifier(
            step="pairwise", solver_options={"coef_bounds": (-0.2, 0.3)}, random_state=0
        ),
        BCFWClassifier(
            solver_options={"algorithm": "batch"}, max_iter=50, random_state=0
        ),
        BCFWClassifier(n_jobs=2, random_state=0),
        CRFClassifier(solver="dual", random_state=0),
        CRFClassifier(solver="lbfgs"),
        SlackRescaledSSVM(max_iter=30, random_state=0),
        BMRMClassifier(max_iter=50),
        PragamClassifier(max_iter=100),
    ],
    ids=repr,
)
def test_certificates_agree_with_those_of_one_matrix(model):
    """The optimum is between each objective less its gap and the objective."""
    *forms, y = make_data("chain", "sparse first")
    fits = [clone(model).set_params(structure="chain").fit(X, y) for X in forms]
    least = min(fit.objective_ for fit in fits)
    for fit in fits:
        assert fit.objective_ - fit.dual_gap_ <= least * (1 + 1e-9) + 1e-12


def test_empty_items_take_the_columns_of_the_others():
    X, _, _, y = make_data("chain", "sparse first")
    model = BCFWClassifier(max_iter=3, random_state=0).fit(X, y)
    again = clone(model).fit([[], X[0][:0], *X], [[], [], *y])
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert [len(labels) for labels in model.predict([[], X[0], X[1][:0]])] == [
        0,
        len(X[0]),
        0,
    ]


def test_dense_columns_are_not_copied():
    rng = new_rng(3)
    lengths = rng.integers(10, 20, 100)
    y = [rng.integers(K, size=T) for T in lengths]
    X = [
        SplitMatrix(
            [
                rng.standard_normal((T, 500), dtype=np.float32),
                draw_matrix(rng, "sparse", T, 20),
            ]
        )
        for T in lengths
    ]
    model = CRFClassifier("chain", max_iter=2, random_state=0).fit(X, y)
    for call in (model.fit, model.score):
        tracemalloc.start()
        try:
            call(X, y)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 0.5 * sum(x.matrices[0].nbytes for x in X)


def test_a_warm_start_knows_the_items_again():
    X, _, _, y = make_data("chain", "dense first")
    copies = pickle.loads(pickle.dumps(X))
    numbers = fingerprints(X, y)
    np.testing.assert_array_equal(fingerprints(copies, y), numbers)
    for j in range(2):
        values = copies[j].matrices[j]
        values = values.data if sparse.issparse(values) else values
        values += 1.0
    changed = (fingerprints(copies, y) != numbers).any(axis=1)
    assert not changed[2:].any()
    assert changed[0] and changed[1] == (copies[1].matrices[1].nnz > 0)
    model = BCFWClassifier(warm_start=True, tol=1e-3, random_state=0).fit(X, y)
    passes = model.n_iter_
    assert model.fit(X[::-1], y[::-1]).n_iter_ <= passes


def test_columns_that_differ_in_size_are_named():
    X, _, _, y = make_data("chain", "dense first", n=10)
    for x in X:
        x.matrices[0][:, 1] *= 1e6
    model = BCFWClassifier(max_iter=1, tol=0.0, random_state=0)
    with pytest.warns(match=r"each part of the union.*column 1 is about"):
        model.fit(X, y)


ONE = SplitMatrix([np.ones((2, 3)), sparse.csr_array(np.eye(2))])


@pytest.mark.parametrize(
    "item, words",
    [(np.ones((2, 5)), r"all split; X\[0\] is split and X\[1\] is not"),
     (sparse.csr_array(np.ones((2, 5))), r"X\[0\] is split and X\[1\] is not"),
     (SplitMatrix([np.ones((2, 2)), sparse.csr_array(np.ones((2, 3)))]),
      r"X\[0\] has 3 dense, 2 sparse columns and X\[1\] has 2 dense, 3 sparse"),
     (SplitMatrix([sparse.csr_array(np.eye(2)), np.ones((2, 3))]),
      r"X\[1\] has 2 sparse, 3 dense"),
     (SplitMatrix([np.full((2, 3), np.nan), sparse.csr_array(np.eye(2))]),
      r"X\[1\] contains NaN"),
     (SplitMatrix([np.ones((2, 3)), sparse.csr_array(1j * np.eye(2))]),
      r"X\[1\] must be numeric")],
)  # fmt: skip
def test_items_that_cannot_be_used_are_named(item, words):
    with pytest.raises(ValueError, match=words):
        BCFWClassifier("chain").fit([ONE, item], [[0, 1], [1, 0]])


def test_other_misuse_is_named():
    with pytest.raises(ValueError, match=r"matrices\[0\] must hold numbers; got dty"):
        SplitMatrix([np.ones((2, 3), complex), sparse.csr_array(np.eye(2))])
    y = [[0, 1], [1, 0]]
    damaged = sparse.csr_array(np.eye(2))
    damaged.indices = np.array([0, 9], dtype=np.intc)
    with pytest.raises(ValueError, match=r"matrices\[1\]\.indices"):
        BCFWClassifier("chain").fit([SplitMatrix([np.ones((2, 1)), damaged])] * 2, y)
    model = BCFWClassifier("chain", random_state=0).fit([ONE] * 2, y)
    with pytest.raises(ValueError, match="4 features, but there were 5 in fit"):
        model.predict([SplitMatrix([np.ones((2, 2)), sparse.csr_array(np.eye(2))])])
    for emission, pairs in [("given", [ONE] * 2), ("both", [(ONE, ONE)] * 2)]:
        with pytest.raises(ValueError, match=r"must be dense scores.*split matrix"):
            BCFWClassifier(ChainStructure(emission)).fit(pairs, y)
    nothing = [SplitMatrix([np.ones((2, 0)), sparse.csr_array((2, 0))])] * 2
    with pytest.raises(ValueError, match=r"X\[0\] has 0 features"):
        BCFWClassifier("chain").fit(nothing, y)
    for structure in ("auto", "multiclass", "chain"):
        some = "one array|one 2-D array|one SplitMatrix"
        with pytest.raises((TypeError, ValueError), match=some):
            BCFWClassifier(structure).fit(ONE, [0, 1])


@pytest.mark.parametrize(
    "matrices, words",
    [
        ([], "at least one"),
        ([np.ones((2, 1)), np.ones((3, 1))], r"same number of rows; got \[2, 3\]"),
        ([np.ones((2, 1)), np.ones(2)], r"matrices\[1\] must be 2-D; got shape \(2,\)"),
    ],
)
def test_matrices_that_do_not_stand_beside_one_another_are_refused(matrices, words):
    with pytest.raises(ValueError, match=words):
        SplitMatrix(matrices)


@pytest.mark.parametrize("split", SPLITS)
def test_it_is_the_matrix_of_all_columns(split):
    rng = new_rng(4)
    (x,) = draw_items(rng, [7], split)
    whole = x.toarray()
    assert x.shape == whole.shape and len(x) == 7 and x.dtype == whole.dtype
    np.testing.assert_array_equal(x.tocsr().toarray(), whole)
    for rows in (slice(2, 5), slice(None), slice(-2, 99), slice(0, 0), slice(5, 1, -2)):
        np.testing.assert_array_equal(x[rows].toarray(), whole[rows])
    for rows in ([3, 0, 3], rng.random(7) < 0.5):
        np.testing.assert_array_equal(x[rows].toarray(), whole[rows])
    for mine, given in zip(x[1:4].matrices, x.matrices, strict=True):
        if min(given.shape) and not sparse.issparse(given):
            assert np.shares_memory(mine, given)
    W = rng.normal(size=(whole.shape[1], 2))
    np.testing.assert_allclose(x @ W, whole @ W, atol=1e-12)
    np.testing.assert_allclose(x @ W[:, 0], whole @ W[:, 0], atol=1e-12)
    np.testing.assert_array_equal((x * 2.0).toarray(), 2.0 * whole)
    assert len(SplitMatrix([SplitMatrix([x]), x]).matrices) == 2 * len(x.matrices)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).toarray(), whole)
    assert f"of {SPLITS[split][0][1]} columns" in repr(x)


def test_it_is_no_sequence_of_rows():
    for index in (0, (slice(None), 1), np.eye(2)):
        with pytest.raises(TypeError, match="slices and by 1-D arrays"):
            ONE[index]
    with pytest.raises(TypeError, match="not iterable"):
        list(ONE)
    for make in (np.asarray, lambda x: np.array([x, x])):
        with pytest.raises(TypeError, match=r"use \.toarray\(\)"):
            make(ONE)
    for bad in (None, 5, np.array(5.0), sparse.eye_array(2), {1: np.eye(2)}, ONE):
        with pytest.raises(TypeError, match="^matrices must be a list of matrices; got"):
            SplitMatrix(bad)
    hidden = np.ma.masked_array(np.eye(2), mask=np.eye(2))
    with pytest.raises(ValueError, match=r"^matrices\[1\] is a masked array.*\[0, 0\]"):
        SplitMatrix([np.eye(2), hidden])
    other = sparse.coo_array(np.eye(2))
    assert SplitMatrix([other, [[1], [2]]]).matrices[0].format == "csr"
