"""Warm starts after examples were added, removed, changed or put in another order."""

import warnings
from itertools import product

import numpy as np
import pytest
from _estimators import assert_same_fit, make_problem
from _options import placed
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_chains, make_poses
from sklearn_structsvm.structures import (
    GraphStructure,
    PairwiseMultilabelStructure,
    PictorialStructure,
    TreeStructure,
)

MODELS = {
    "exact": BCFWClassifier(C=0.1, random_state=0),
    "plain": BCFWClassifier(C=0.1, step="fw", random_state=0),
    "pairwise": BCFWClassifier(C=0.1, step="pairwise", random_state=0),
    "corrective": BCFWClassifier(C=0.1, step="corrective", random_state=0),
    "slack": SlackRescaledSSVM(C=0.1, random_state=0),
    "crf": CRFClassifier(C=0.1, solver="dual", random_state=0),
    "lbfgs": CRFClassifier(C=0.1, solver="lbfgs"),
}
KINDS = [
    "multiclass", "multilabel", "pairs", "chain", "chain-csr", "tree", "graph",
    "weighted graph", "custom",
]  # fmt: skip


def data_of(kind, n):
    if kind == "pairs":
        X = new_rng(5).standard_normal((n, 4))
        return PairwiseMultilabelStructure(), X, (X[:, :3] > 0.2).astype(int)
    problem = make_problem("chain" if kind.endswith(("tree", "graph")) else kind, n=n)
    structure, X, y = problem.structure, problem.X, problem.y
    if kind == "tree":
        parents = [np.array([-1, *np.maximum(np.arange(1, len(x)) - 2, 0)]) for x in X]
        return TreeStructure(), list(zip(X, parents, strict=True)), y
    if kind == "weighted graph":
        y = [(labels, new_rng(5).random(len(labels))) for labels in y]
    if kind.endswith("graph"):
        edges = [np.column_stack([range(len(x) - 1), range(1, len(x))]) for x in X]
        return GraphStructure(), list(zip(X, edges, strict=True)), y
    return structure, X, y


def take(data, places):
    if isinstance(data, list):
        return [data[i] for i in places]
    return data[np.asarray(places)]


def changes(n, rng):
    """By a name, the examples that come next; numbers from n on are new ones."""
    return {
        "added": list(range(n + 5)),
        "removed": sorted(rng.choice(n, n - 4, replace=False)),
        "permuted": list(rng.permutation(n)),
        "all": list(rng.permutation([*range(4, n), *range(n, n + 6)])),
    }


def has_sums(kind, name):
    """Whether there are the sums over all labelings that the method may need."""
    is_exact = kind not in ("custom", "pairs") and not kind.endswith("graph")
    return is_exact or name not in ("crf", "lbfgs")


# What a kind of data does to the state of a method shows where all changes at once. Each
# change by itself needs every method, and not every kind.
CASES = [
    (kind, name, "all")
    for kind in KINDS
    for name in (MODELS if kind in KINDS[::3] else ("exact", "pairwise", "crf"))
    if has_sums(kind, name)
]
CASES += product(["chain"], MODELS, ["added", "removed", "permuted"])


@pytest.mark.parametrize(("kind", "name", "change"), CASES)
def test_the_certificates_agree_with_those_of_a_cold_fit(kind, name, change):
    structure, X, y = data_of(kind, 26)
    model = clone(MODELS[name]).set_params(structure=structure)
    if kind not in ("multilabel", "pairs", "custom"):
        model.set_params(solver_options__classes=[0, 1, 2])
    before, after = list(range(20)), changes(20, new_rng(0))[change]
    model.set_params(tol=1e-2, max_iter=10**4, warm_start=True)
    model.fit(take(X, before), take(y, before))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(take(X, after), take(y, after))
    cold = clone(model).set_params(warm_start=False, tol=1e-3)
    cold.fit(take(X, after), take(y, after))
    assert model.dual_gap_ <= 1e-2
    assert model.dual_objective_ <= cold.objective_ + 1e-9
    assert cold.dual_objective_ <= model.objective_ + 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("l1_ratio", [0.0, 0.95])
@pytest.mark.parametrize("step", ["fw", "pairwise", "corrective"])
def test_examples_that_leave_by_a_weight_of_zero_come_back_as_dual_points(step, l1_ratio):
    rng = new_rng(11)
    X = [rng.standard_normal((T, 3)) for T in rng.integers(1, 7, 10)]
    y = [rng.integers(0, 3, len(x)) for x in X]
    params = {"classes": [0, 1, 2], "step": step, "l1_ratio": l1_ratio, "tol": 1e-9}
    model = placed(BCFWClassifier)("chain", warm_start=True, max_iter=60, **params)
    for C in (0.01, 0.1, 0.1, 1.0, 0.1, 0.1):
        some = list(rng.permutation(10)[: rng.integers(4, 10)])
        weights = np.append(rng.integers(0, 3, len(some) - 1), 1.0)
        data = take(X, some), take(y, some), weights
        model.set_params(C=C).fit(*data)
        cold = placed(BCFWClassifier)("chain", C=C, max_iter=200, **params).fit(*data)
        assert model.dual_objective_ <= cold.objective_
        assert cold.dual_objective_ <= model.objective_


@pytest.mark.parametrize("name", ["exact", "pairwise", "corrective"])
def test_added_examples_leave_w_as_it_is(name):
    """With 1/2 ||w||² + C Σ H_i the dual point stays feasible, and w is the same."""
    X, y = make_chains(n_samples=40, n_classes=3, random_state=new_seed(1))
    model = clone(MODELS[name]).set_params(warm_start=True, tol=1e-4, max_iter=10**4)
    model.fit(X[:30], y[:30])
    w, dual = model.coef_, model.dual_objective_
    # Nothing moves before the first gap check, which is enough here.
    model.set_params(tol=100.0).fit(X, y)
    scale = np.abs(w).max()
    np.testing.assert_allclose(model.coef_, w, atol=1e-9 * scale)
    # In the normalized form there are 40 examples in the place of 30.
    assert model.dual_objective_ == pytest.approx(dual * 30 / 40, rel=1e-9)


@pytest.mark.parametrize("name", ["pairwise", "crf"])
def test_nothing_is_left_to_do_for_the_same_examples(name):
    """In another order, or with features that are changed a little."""
    X, y = make_chains(n_samples=40, n_classes=3, random_state=new_seed(2))
    model = clone(MODELS[name]).set_params(warm_start=True, tol=1e-4, max_iter=10**4)
    model.fit(X, y)
    order = new_rng(1).permutation(40)
    for features, labels in (
        (take(X, order), take(y, order)),
        ([x + 1e-9 for x in take(X, order)], take(y, order)),
    ):
        model.set_params(tol=2 * model.tol).fit(features, labels)
        assert model.n_iter_ == 0
    for entry in ("examples", "sizes"):
        good = model._dual_state[entry]
        for junk in (None, "x", np.zeros(3), [0.5], np.zeros((2, 2))):
            model._dual_state[entry] = junk
            with pytest.raises(ValueError, match="must"):
                model.fit(X, y)
        model._dual_state[entry] = good


@pytest.mark.parametrize("kind", ["custom", "graph", "images", "costs"])
@pytest.mark.parametrize("step", ["auto", "pairwise"])
def test_where_dual_points_depend_on_what_has_changed_fits_start_anew(kind, step):
    """Of features, of the places of parts in the training data, or of losses.

    Some blocks are Σ α φ(x, y), not marginals of y: of other x they are infeasible.
    """
    words = "the structure or what it learned"
    model = BCFWClassifier(C=0.1, step=step, warm_start=True, random_state=0)
    if kind == "images":
        data = make_poses(12, shape=(8, 8), random_state=0)
        model.set_params(structure=PictorialStructure(data.parents))
        model.fit(data.X[:9], data.y[:9])
        X, y = data.X, data.y
    elif kind == "costs":
        _, X, y = data_of("chain", 60)
        model.fit(X, y).set_params(class_weight={0: 0.1, 1: 5, 2: 1})
    else:
        structure, X, y = data_of(kind, 24)
        model.set_params(structure=structure).fit(X, y)
        X = [(x[0] + 1.0, x[1]) if kind == "graph" else x + 1.0 for x in X]
        words = "no example is one of the previous fit"
    with pytest.warns(UserWarning, match=words):
        model.fit(X, y)
    assert_same_fit(model, clone(model).fit(X, y))


@pytest.mark.parametrize("change", ["weights", "examples"])
@pytest.mark.parametrize("name", [*sorted({*MODELS} - {"lbfgs"}), "crf, L1"])
def test_refits_after_changes_begin_no_lower_than_others(name, change):
    """Large terms of a dual point that canceled need not do so with other weights."""
    kind = "multiclass" if name == "exact" else "chain"
    problem, rng = make_problem(kind, n=20), new_rng(5)
    X, y = [1e4 * np.asarray(x) for x in problem.X], list(problem.y)
    X = np.array(X) if name == "exact" else X
    model = clone(MODELS[name.split(",")[0]])
    model.set_params(warm_start=True, C=100.0, max_iter=20)
    if name == "crf, L1":
        model.set_params(l1_ratio=1.0)
    weights, kept = np.ones(20), 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weights)
        if change == "weights":
            weights = rng.uniform(0.1, 2.0, 20)
        else:
            kept = 15
        own = X[:kept], y[:kept], weights[:kept]
        model.fit(*own)
        cold = clone(model).fit(*own)
    first, zero = (m.history_["dual_objective"][0] for m in (model, cold))
    assert first >= zero - 1e-9 * abs(zero)
