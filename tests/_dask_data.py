"""Dask collections of small problems, and the claims that their fits share."""

import pickle

import numpy as np
import pytest
from _seeds import cache_by_seed, new_rng, new_seed
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.preprocessing import label_binarize

dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")
da = pytest.importorskip("dask.array")

# Rows in chunks of unrelated sizes, including one row and none.
SIZES = (150, 1, 89, 0, 60)
COSTS = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 0.5], [1, 1, 3, 0]])

# λ is about 0.03, and the gap is far below the accuracy that the tests require.
EXACT = {"C": 0.1, "tol": 1e-10, "max_iter": 3000}


def rows(n_classes=4, seed=0):
    n = sum(SIZES)
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=n_classes, flip_y=0.2,
        random_state=new_seed(seed),
    )  # fmt: skip
    return X, y, new_rng(seed).uniform(0.2, 2.0, n)


def divided(data, sizes=SIZES):
    """A dask.array with these chunks, which are sparse if the data are."""
    if sparse.issparse(data):
        return divided(data.toarray(), sizes).map_blocks(sparse.csr_array)
    return da.from_array(data, chunks=(sizes, *data.shape[1:]))


def in_bag(items, n_parts=3):
    """A dask.bag of this many parts and one that is empty."""
    items = list(items)
    parts = np.array_split(np.arange(len(items)), n_parts)
    lists = [dask.delayed([items[i] for i in part]) for part in parts]
    return bag.from_delayed([*lists, dask.delayed([])])


def disturbed_passes(iterate, rng):
    """Passes after which parts are lost with their workers, or handed over to others."""
    shards = iterate.workers.shards
    fresh = [pickle.dumps(shard) for shard in shards]
    for k in range(12):
        iterate.make_pass(None)
        event, j = rng.integers(4), rng.integers(len(shards))
        if event < 2:
            shards[j] = pickle.loads([fresh[j], pickle.dumps(shards[j])][event])
        if k == 3:
            iterate.set_kappa(9 * iterate.lam)
        if k > 3:
            iterate.extrapolate(0.5)
        yield


@cache_by_seed
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
        "digits": (X, y.astype(str), {"class_weight": "balanced", "classes": [*"32107"]}),
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


def check_the_same(model, other, rel=2e-8, atol=1e-4):
    assert model.objective_ == pytest.approx(other.objective_, rel=rel)
    assert model.coef_.shape == other.coef_.shape
    np.testing.assert_allclose(model.coef_, other.coef_, atol=atol)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    assert model.classes_.dtype == other.classes_.dtype
    assert model.n_features_in_ == other.n_features_in_
    assert hasattr(model, "threshold_") == hasattr(other, "threshold_")


def check_the_threshold(model, X, y, s):
    """Check, by trying all, that no cut between scores leaves fewer wrong labels.

    At an optimum, scores may be equal up to rounding. Cuts must not separate these.
    """
    weights, present = np.repeat(s, y.shape[1]), y.ravel() > 0
    scores = (model.decision_function(X) + model.threshold_).ravel()
    ordered = np.concatenate([[-np.inf], np.sort(scores), [np.inf]])
    wide = np.diff(ordered) > 1e-9
    least = min(weights @ ((scores > cut) != present) for cut in ordered[:-1][wide])
    clear = np.abs(scores - model.threshold_) > 1e-9
    wrong = weights @ (clear & ((scores > model.threshold_) != present))
    assert wrong <= least * (1.0 + 1e-9)


def spoilt(at, value):
    X, y, s = rows()
    parts = {"X": X, "y": y.astype(float), "s": s}
    parts[at[0]][at[1:]] = value
    return tuple(divided(data) for data in parts.values())
