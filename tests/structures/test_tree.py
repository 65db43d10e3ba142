"""TreeStructure against enumeration of all its labelings, and against chains."""

import pickle
from itertools import product

import numpy as np
import pytest
from _cases import (
    NAMES,
    TOLERANCE,
    Case,
    angles,
    check_batch_equals_single_calls,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_k_best,
    check_max_marginals,
    check_scores_of_the_solver,
    costs,
    few,
    layouts,
    quarters,
    some,
)
from _estimators import assert_same_optimum
from _problems import Problem
from _references import Listed, Textbook, messy_csr, random_costs, visits
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import ChainStructure, TreeStructure
from sklearn_structsvm.structures._callback import CallbackOracle

PARTS = ("emission", "bias", "root_bias", "transition")
COMBINATIONS = [
    tuple(part for part, present in zip(PARTS, chosen, strict=True) if present)
    for chosen in product((True, False), repeat=len(PARTS))
    if any(chosen)
]


def tree_feature(x, parents, labels, k, parts=PARTS):
    features = {
        "emission": np.zeros((x.shape[1], k)),
        "bias": np.zeros(k),
        "root_bias": np.zeros(k),
        "transition": np.zeros((k, k)),
    }
    for v, label in enumerate(labels):
        features["emission"][:, label] += x[v]
        features["bias"][label] += 1
        if parents[v] < 0:
            features["root_bias"][label] += 1
        else:
            features["transition"][labels[parents[v]], label] += 1
    return np.concatenate([[]] + [features[p].ravel() for p in PARTS if p in parts])


def list_trees(X, y, k, costs=None, normalize=True, parts=PARTS):
    costs = 1.0 - np.eye(k) if costs is None else np.asarray(costs, dtype=float)
    problem = Listed([], [], [], [])
    for (x, parents), truth in zip(X, y, strict=True):
        labelings = list(product(range(k), repeat=len(truth)))
        unit = 1.0 / len(truth) if normalize else 1.0
        problem.labelings.append(labelings)
        problem.truth.append(labelings.index(tuple(map(int, truth))))
        problem.phi.append(
            np.array([tree_feature(x, parents, c, k, parts) for c in labelings])
        )
        losses = [unit * costs[truth, list(c)].sum() for c in labelings]
        problem.loss.append(np.array(losses))
    return problem


@st.composite
def forests(draw, T):
    """Parents of T nodes in any order."""
    order = draw(st.permutations(range(T)))
    parents = np.full(T, -1)
    for at in range(1, T):
        above = draw(st.integers(-1, at - 1))
        parents[order[at]] = order[above] if above >= 0 else -1
    return parents


@st.composite
def tree_cases(draw, parts=PARTS, sizes=(1, 2, 3, 4)):
    n, d, k = (draw(st.integers(*bounds)) for bounds in ((1, 3), (1, 2), (2, 3)))
    sizes = [draw(st.sampled_from(sizes)) for _ in range(n)]
    X = [(draw(quarters((T, d))), draw(forests(T))) for T in sizes]
    y = [np.array(draw(st.lists(st.integers(0, k - 1), min_size=T, max_size=T)))
         for T in sizes]  # fmt: skip
    label_costs, normalize = draw(costs(k)), draw(st.booleans())
    names = draw(st.permutations(draw(st.sampled_from(NAMES))))[:k]
    classes, layout = np.sort(names), draw(layouts())
    structure = TreeStructure(
        **{part: part in parts for part in PARTS},
        normalize_loss=normalize,
        label_costs=label_costs,
    )
    X_given, y_given = structure.check_data(
        [(layout(x), parents.tolist()) for x, parents in X],
        [classes[labels] for labels in y],
    )
    structure.fit(X_given, y_given, classes=names)
    listed = list_trees(X, y, k, label_costs, normalize, parts)
    return Case(
        structure=structure,
        X=X_given,
        y=y_given,
        items=X_given,
        names=[[classes[list(c)] for c in all_c] for all_c in listed.labelings],
        listed=listed,
        w=draw(quarters(listed.d)),
    )


@pytest.mark.parametrize("parts", COMBINATIONS, ids="+".join)
def test_with_any_of_its_parts_all_decodings_are_exact(parts):
    @settings(max_examples=8)
    @given(tree_cases(parts))
    def check(case):
        check_features_and_losses(case)
        check_batch_equals_single_calls_in_any_order(case)
        check_scores_of_the_solver(case)

    check()


def check_batch_equals_single_calls_in_any_order(case):
    """The oracle's own order of nodes is the same for one tree as for all of them."""
    check_batch_equals_single_calls(case)
    together = case.structure.decode_batch(case.X, case.w)
    for x, labels in zip(case.X, together, strict=True):
        np.testing.assert_array_equal(case.structure.decode(x, case.w), labels)


@few
@given(tree_cases())
def test_it_is_what_training_takes_it_for(case):
    check_it(case)


@some
@given(tree_cases())
def test_potentials_add_up_to_the_score_of_the_joint_feature(case):
    for i, (features, parents) in enumerate(case.items):
        theta, transition = case.structure.potentials((features, parents), case.w)
        for c, labels in enumerate(case.listed.labelings[i]):
            score = theta[range(len(labels)), labels].sum()
            score += sum(
                transition[labels[p], labels[v]] for v, p in enumerate(parents) if p >= 0
            )
            assert abs(score - case.listed.phi[i][c] @ case.w) <= TOLERANCE


# Divided by these the losses stay exact, which decides who lies on a ray.
DYADIC = (1, 2, 4)


@settings(max_examples=100)
@given(tree_cases(sizes=DYADIC), angles())
def test_constrained_decode_finds_the_best_labeling_within_the_angle(case, angle):
    check_constrained_decoding(case, *angle)


@settings(max_examples=8)
@given(tree_cases(("emission", "bias"), DYADIC), angles())
def test_constrained_decode_needs_no_transitions(case, angle):
    check_constrained_decoding(case, *angle)


@some
@given(tree_cases(), st.integers(1, 30))
def test_the_k_best_labelings_are_those_of_the_sorted_list(case, k):
    check_k_best(case, k)


@some
@given(tree_cases())
def test_a_max_marginal_is_the_best_score_through_a_label(case):
    check_max_marginals(case)


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
    for (features, parents), truth in zip(case.X, case.y, strict=True):
        order = np.array(random.sample(range(len(parents)), len(parents)))
        place = np.append(np.argsort(order), -1)
        renumbered = (features[order], place[parents[order]])
        # Ties are broken by order, so scores are compared.
        for lam in (0.0, 1.0):
            scores = []
            for x, y in (((features, parents), truth), (renumbered, truth[order])):
                labels = case.structure.loss_augmented_decode(x, y, case.w, lam)
                phi = case.structure.joint_feature(x, labels)
                scores.append(case.w @ phi + lam * case.structure.loss(y, labels))
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
    parts = [part for part in PARTS if options.get(part, True)]
    normalize = options.get("normalize_loss", True)
    listed = list_trees(X, y, 3, label_costs, normalize, parts)
    solver = Problem(structure, X_given, y, listed).solver(0.05)
    reference = Textbook(listed, 0.05).run(visits(8, passes=15))
    solver.run(reference.visited)
    scale = np.abs(reference.w).max()
    np.testing.assert_allclose(solver.weights, reference.w, rtol=0, atol=1e-12 * scale)


def words(n=12, seed=0):
    rng = new_rng(seed)
    y = [rng.integers(3, size=T) for T in rng.integers(1, 7, size=n)]
    return [np.eye(3)[labels] + rng.standard_normal((len(labels), 3)) for labels in y], y


# With a larger one pairwise steps can take more than 10**5 passes.
C = 0.1


def fit_accurately(structure, X, y):
    options = {"step": "pairwise", "cache": False, "tol": 1e-8, "max_iter": 10**5}
    return BCFWClassifier(structure, C=C, random_state=0, **options).fit(X, y)


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
        ((ROWS[:0], []), r"X\[1\]\[0\] is empty: a tree needs at least 1 node"),
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
    structure = TreeStructure(**dict.fromkeys(PARTS, False))
    message = "at least one part: emission, transition, bias and root_bias are all False"
    with pytest.raises(ValueError, match=message):
        structure.fit([(ROWS, np.array([-1, 0, 0]))], [[0, 1, 0]])
