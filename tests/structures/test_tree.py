"""TreeStructure against chains, and as users meet it; see also `test_listed`."""

import pickle

import numpy as np
import pytest
from _cases import TOLERANCE, TREE_PARTS, list_trees, some, tree_cases
from _estimators import assert_same_optimum
from _options import placed
from _problems import Problem, assert_same_weights
from _references import Textbook, messy_csr, random_costs, visits
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import ChainStructure, TreeStructure
from sklearn_structsvm.structures._callback import CallbackOracle


@some
@given(tree_cases(), st.sampled_from([1.0, 0.5]))
def test_angular_search_by_constrained_decode_finds_the_most_violating(case, one):
    structure = case.structure
    oracle = CallbackOracle(structure, case.X, case.y, structure.n_weights_)
    for i in range(case.listed.n):
        found = find_most_violating(oracle, i, case.w, search="angular", one=one)
        exact = find_most_violating(case.oracle(), i, case.w, search="exact", one=one)
        g, f = case.listed.loss[i], case.listed.values(i, case.w, 0.0)
        best = max(0.0, (g * (one + f)).max())
        assert found.value == pytest.approx(best, rel=1e-9, abs=TOLERANCE)
        assert found.value == pytest.approx(exact.value, rel=1e-9, abs=TOLERANCE)


def test_constrained_decode_of_a_path_is_that_of_the_chain_whatever_the_order():
    rng = new_rng(0)
    for T in (1, 2, 5, 12):
        x, truth = rng.standard_normal((T, 3)), rng.integers(3, size=T)
        chain = ChainStructure(last_bias=False).fit([x], [truth], classes=np.arange(3))
        order = rng.permutation(T)
        place = np.append(np.argsort(order), -1)
        path = (x[order], place[(np.arange(T) - 1)[order]])
        tree = TreeStructure().fit([path], [truth[order]], classes=np.arange(3))
        w = rng.standard_normal(chain.n_weights_)
        for angle in ((np.inf, 0.0), (0.3, 0.2), (0.1, 0.05), (0.01, 0.0)):
            expected = chain.constrained_decode(x, truth, w, 1.0, *angle)
            found = tree.constrained_decode(path, truth[order], w, 1.0, *angle)
            np.testing.assert_equal(found, None if expected is None else expected[order])


@settings(max_examples=10)
@given(tree_cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_means_nothing(case, random):
    structure = case.structure
    for (features, parents), truth in zip(case.X, case.y, strict=True):
        order = np.array(random.sample(range(len(parents)), len(parents)))
        place = np.append(np.argsort(order), -1)
        renumbered = (features[order], place[parents[order]])
        turned = structure._at_nodes(truth, order)
        # Ties are broken by order, so scores are compared.
        for lam in (0.0, 1.0):
            scores = []
            for x, y in (((features, parents), truth), (renumbered, turned)):
                labels = structure.loss_augmented_decode(x, y, case.w, lam)
                phi = structure.joint_feature(x, labels)
                scores.append(case.w @ phi + lam * structure.loss(y, labels))
            assert abs(scores[0] - scores[1]) <= TOLERANCE


def random_forests(n, k=3, n_features=2, seed=0):
    rng = new_rng(seed)
    shapes = ([-1], [-1, 0], [2, 2, -1], [-1, 0, 1], [1, -1, -1])
    parents = [np.array(shapes[i % len(shapes)]) for i in range(n)]
    X = [(rng.standard_normal((len(p), n_features)), p) for p in parents]
    y = [rng.integers(k, size=len(p)) for p in parents]
    y[0][0], y[1][0], y[-1][-1] = 0, 1, k - 1
    return X, y, random_costs(k, rng)


@pytest.mark.parametrize("present", [np.asarray, messy_csr], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalize_loss": False},
        {"transition": False},
        {"bias": False, "root_bias": False},
        # More nodes than features, and so other norms.
        {"n_features": 1},
    ],
)
def test_iterates_are_those_of_the_textbook(options, present):
    options = dict(options)
    X, y, label_costs = random_forests(8, n_features=options.pop("n_features", 3))
    structure = TreeStructure(label_costs=label_costs, **options)
    X_given, _ = structure.check_data([(present(x), parents) for x, parents in X], y)
    structure.fit(X_given, y)
    parts = [part for part in TREE_PARTS if options.get(part, True)]
    listed = list_trees(X, y, 3, label_costs, options.get("normalize_loss", True), parts)
    solver = Problem(structure, X_given, y, listed).solver(0.05)
    reference = Textbook(listed, 0.05).run(visits(8, passes=15))
    solver.run(reference.visited)
    assert_same_weights(solver.weights, reference.w)


def words(n=12, seed=0):
    rng = new_rng(seed)
    y = [rng.integers(3, size=T) for T in rng.integers(1, 7, size=n)]
    return [np.eye(3)[labels] + rng.standard_normal((len(labels), 3)) for labels in y], y


# With a larger one pairwise steps can take more than 10**5 passes.
C = 0.1


def fit_accurately(structure, X, y):
    options = {"step": "pairwise", "cache": False, "tol": 1e-8, "max_iter": 10**5}
    return placed(BCFWClassifier)(structure, C=C, random_state=0, **options).fit(X, y)


def test_trees_that_are_paths_have_the_optimum_of_chains():
    X, y = words()
    paths = [(x, np.arange(len(x)) - 1) for x in X]
    assert_same_optimum(
        fit_accurately(TreeStructure(), paths, y),
        fit_accurately(ChainStructure(last_bias=False), X, y),
        C * len(X),
    )


def random_trees(n=12, seed=0):
    X, y = words(n, seed)
    rng = new_rng(seed)
    return [
        (x, np.array([-1] + [rng.integers(-1, v) for v in range(1, len(x))])) for x in X
    ], y


def test_an_estimator_of_trees_is_fitted_cloned_scored_and_pickled():
    X, y = random_trees()
    model = BCFWClassifier(TreeStructure(root_bias=False), random_state=0, tol=0.05)
    assert model.get_params()["structure__root_bias"] is False
    model = clone(model.set_params(structure__normalize_loss=False)).fit(X, y)
    predictions = model.predict(X)
    assert [len(labels) for labels in predictions] == [len(labels) for labels in y]
    right = np.concatenate(predictions) == np.concatenate(y)
    assert model.score(X, y) == pytest.approx(right.mean())
    again = pickle.loads(pickle.dumps(model)).predict(X)
    np.testing.assert_array_equal(np.concatenate(again), np.concatenate(predictions))


def test_sparse_features_have_the_optimum_of_dense_ones():
    X, y = random_trees()
    as_csr = [(sparse.csr_array(x), parents) for x, parents in X]
    assert_same_optimum(
        fit_accurately(TreeStructure(), as_csr, y),
        fit_accurately(TreeStructure(), X, y),
        C * len(X),
    )


ROWS = np.ones((3, 2))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (ROWS, r"X\[1\] must be a pair \(features, parents\); got ndarray"),
        ((ROWS, [-1, 0, 0], 1), r"X\[1\] must be a pair.* got tuple of 3 items"),
        ((ROWS[0], [-1, 0, 0]), r"X\[1\]\[0\] must be 2-D"),
        ((np.ones((3, 5)), [-1, 0, 0]), r"X\[1\]\[0\] has 5 features.* 2 in X\[0\]\[0\]"),
        ((ROWS * np.nan, [-1, 0, 0]), r"X\[1\]\[0\] contains NaN"),
        ((ROWS, [-1, 0]), r"X\[1\]\[1\] has 2 parents for the 3 nodes of X\[1\]\[0\]"),
        ((ROWS, [[-1, 0, 0]]), r"X\[1\]\[1\] must be a 1-D array.*\(1, 3\)"),
        ((ROWS, [[-1], 0, 0]), r"X\[1\]\[1\] must be a 1-D array"),
        ((ROWS, [-1.0, 0.0, 0.0]), r"X\[1\]\[1\] must hold integers.*float64"),
        ((ROWS, [-1, 0, 3]), r"X\[1\]\[1\] has the parent 3 for node 2.* 0 ... 2"),
        ((ROWS, [-1, -2, 0]), r"X\[1\]\[1\] has the parent -2 for node 1"),
        ((ROWS, [-1, 2, 1]), r"X\[1\]\[1\] has a cycle.* node 1 never"),
        ((ROWS, [-1, 0, 2]), r"X\[1\]\[1\] has a cycle.* node 2 never"),
        ((ROWS, [1, 2, 0]), r"X\[1\]\[1\] has a cycle.* node 0 never"),
    ],
)
def test_an_example_that_is_no_forest_is_named(x, message):
    good = (np.ones((2, 2)), [-1, 0])
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(TreeStructure()).fit([good, x], [[0, 1], [0, 1, 1]])


def test_labels_that_are_too_few_or_unknown_are_named():
    X, y = [(ROWS, [-1, 0, 0])] * 2, [[0, 1, 1], [1, 0, 1]]
    with pytest.raises(
        ValueError, match=r"y\[1\] has 2 labels for the 3 nodes of X\[1\]"
    ):
        BCFWClassifier(TreeStructure()).fit(X, [y[0], y[1][:2]])
    model = BCFWClassifier(TreeStructure(), random_state=0, tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"y has the label 7 \(tree 1, node 2\)"):
        model.structure_.make_oracle(*model.structure_.check_data(X, [y[0], [0, 1, 7]]))


def test_a_model_without_any_part_is_refused():
    structure = TreeStructure(**dict.fromkeys(TREE_PARTS, False))
    message = "at least one part: emission, transition, bias and root_bias are all False"
    with pytest.raises(ValueError, match=message):
        structure.fit([(ROWS, np.array([-1, 0, 0]))], [[0, 1, 0]])


@pytest.mark.parametrize("step", [1.0, 50.0, 200.0, 290.0, 1000.0])
@pytest.mark.parametrize("n_leaves", [1, 2, 5, 20])
def test_a_root_that_its_leaves_speak_against_is_summed(step, n_leaves):
    """Label 0 is next to nothing at every node, and all that the root may have."""
    T = n_leaves + 2
    parents = np.array([*[n_leaves] * n_leaves, n_leaves + 1, -1])
    mask = np.eye(3, dtype=bool)
    mask[:, 2], mask[2, 0] = True, True
    x = np.ones((T, 1)), parents
    structure = TreeStructure(transitions=mask, bias=False, root_bias=False)
    structure.fit([x], [np.zeros(T, dtype=int)], classes=[0, 1])
    w = np.zeros(structure.n_weights_)
    w[:2] = 0.0, step
    nodes = structure.marginals([x], w)[0]
    assert (nodes[:, 1] == 0.0).all()
    np.testing.assert_allclose(nodes[:, 0], 1.0, rtol=1e-15)
    assert structure.entropies([x], w)[0] == pytest.approx(0.0, abs=1e-9)
    assert structure.log_probabilities([x], [[0] * T], w)[0] == pytest.approx(0)


def test_forbidden_pairs_are_a_mask_and_a_path_is_a_chain():
    pairs = [("a", "b"), (None, "a"), ("b", None)]
    rng = new_rng(5)
    X = [rng.standard_normal((T, 2)) for T in (2, 5, 9)]
    y = [["b"] * (len(x) - 1) + ["a"] for x in X]
    paths = [(x, np.arange(len(x)) - 1) for x in X]
    tree = TreeStructure(transitions=pairs).fit(paths, y)
    chain = ChainStructure(transitions=pairs, last_bias=False).fit(X, y)
    np.testing.assert_array_equal(tree.allowed_, chain.allowed_)
    again = TreeStructure(transitions=tree.allowed_).fit(paths, y)
    np.testing.assert_array_equal(again.allowed_, chain.allowed_)
    w = 3.0 * rng.standard_normal(chain.n_weights_)
    for method in ("decode_batch", "marginals", "entropies"):
        one, other = (getattr(s, method)(d, w) for s, d in ((tree, paths), (chain, X)))
        for a, b in zip(one, other, strict=True):
            if method == "decode_batch":
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, atol=1e-9)
