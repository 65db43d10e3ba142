"""TreeStructure against enumeration of all its labelings, and against chains."""

import pickle
from itertools import count, product

import numpy as np
import pytest
from _allowed import (
    check_least_costly,
    check_likelihood,
    check_no_probability,
    check_optimum,
    check_probabilities,
)
from _cases import (
    NAMES,
    TOLERANCE,
    Case,
    angles,
    candidate_points,
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
from _forests import random_parents
from _problems import Problem
from _references import (
    Textbook,
    is_allowed_tree,
    list_labelings,
    messy_csr,
    random_costs,
    visits,
)
from _seeds import new_rng
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
from sklearn_structsvm.structures import (
    ChainStructure,
    TreeStructure,
    check_structure,
)
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


def list_trees(X, y, k, costs=None, normalize=True, parts=PARTS, mask=None):
    costs = 1.0 - np.eye(k) if costs is None else np.asarray(costs, dtype=float)

    def labelings(i):
        found = product(range(k), repeat=len(y[i]))
        return [c for c in found if mask is None or is_allowed_tree(c, X[i][1], mask)]

    def loss(i, labels):
        total = costs[y[i], list(labels)].sum()
        return total * (1.0 / len(labels)) if normalize else total

    return list_labelings(
        y, labelings, lambda i, labels: tree_feature(*X[i], labels, k, parts), loss
    )


@st.composite
def forests(draw, T):
    """Parents of T nodes in any order."""
    order = draw(st.permutations(range(T)))
    parents = np.full(T, -1)
    for at in range(1, T):
        above = draw(st.integers(-1, at - 1))
        parents[order[at]] = order[above] if above >= 0 else -1
    return parents


def allow(mask, labels, parents):
    """Let a mask allow a labeling."""
    k = len(mask) - 1
    mask[np.where(parents < 0, k, labels[parents]), labels] = True
    mask[labels[~np.isin(np.arange(len(labels)), parents)], k] = True


@st.composite
def tree_cases(draw, parts=PARTS, sizes=(1, 2, 3, 4), barred=False):
    n, d, k = (draw(st.integers(*bounds)) for bounds in ((1, 3), (1, 2), (2, 3)))
    sizes = [draw(st.sampled_from(sizes)) for _ in range(n)]
    X = [(draw(quarters((T, d))), draw(forests(T))) for T in sizes]
    y = [np.array(draw(st.lists(st.integers(0, k - 1), min_size=T, max_size=T)))
         for T in sizes]  # fmt: skip
    label_costs, normalize = draw(costs(k)), draw(st.booleans())
    names = draw(st.permutations(draw(st.sampled_from(NAMES))))[:k]
    classes, layout = np.sort(names), draw(layouts())
    mask = None
    if barred:
        mask = draw(hnp.arrays(bool, (k + 1, k + 1)))
        for (_, parents), labels in zip(X, y, strict=True):
            allow(mask, labels, parents)
    structure = TreeStructure(
        **{part: part in parts for part in PARTS},
        normalize_loss=normalize,
        label_costs=label_costs,
        transitions=mask,
    )
    X_given, y_given = structure.check_data(
        [(layout(x), parents.tolist()) for x, parents in X],
        [classes[labels] for labels in y],
    )
    structure.fit(X_given, y_given, classes=names)
    listed = list_trees(X, y, k, label_costs, normalize, parts, mask)
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


# ------------------------------------------------------------- labels that may not be


@pytest.mark.parametrize(
    "parts", [PARTS, ("emission", "bias"), ("transition",)], ids="+".join
)
def test_all_decodings_choose_from_what_is_allowed(parts):
    @few
    @given(tree_cases(parts, barred=True))
    def check(case):
        check_features_and_losses(case)
        check_batch_equals_single_calls_in_any_order(case)
        check_scores_of_the_solver(case)
        check_max_marginals(case)
        for k in (1, 3, 100):
            check_k_best(case, k)

    check()


@settings(max_examples=8)
@given(tree_cases(barred=True))
def test_with_bars_it_is_what_training_takes_it_for(case):
    assume(max(map(len, case.names)) > 1)
    check_it(case)


@some
@given(tree_cases(sizes=(1, 2, 4), barred=True), angles())
def test_constrained_decode_stays_with_what_is_allowed(case, angle):
    check_constrained_decoding(case, *angle)


@some
@given(tree_cases(barred=True), st.sampled_from([0.0, 1.0, 3.0]))
def test_candidates_of_slack_rescaling_are_allowed_and_have_the_maximum(case, one):
    for i in range(case.listed.n):
        labels, scores, losses = candidate_points(case.oracle(), i, case.w, one)
        all_scores = case.listed.values(i, case.w, 0.0)
        expected = (case.listed.loss[i] * (one + all_scores)).max()
        products = losses * (one + scores)
        assert abs(max(products, default=0.0) - max(expected, 0.0)) <= 1e-10
        assert len(labels) <= len(case.listed.labelings[i])


def barred_problem(seed, k=4, n=4, largest=5, scale=1.0, density=0.5, **params):
    """(structure, X, y, w): a mask with true labelings that it allows."""
    rng = new_rng(seed, int(scale))
    sizes = rng.integers(1, largest + 1, size=n)
    X = [(rng.standard_normal((T, 3)), random_parents(T, rng)) for T in sizes]
    y = [rng.integers(k, size=T) for T in sizes]
    mask = rng.random((k + 1, k + 1)) < density
    for (_, parents), labels in zip(X, y, strict=True):
        allow(mask, labels, parents)
    structure = TreeStructure(transitions=mask, **params).fit(X, y, classes=range(k))
    return structure, X, y, scale * rng.standard_normal(structure.n_weights_)


@pytest.mark.parametrize("transition", [True, False])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 300.0, 3000.0])
def test_probabilities_are_those_of_what_is_allowed(scale, transition):
    for trial in range(4):
        check_probabilities(*barred_problem(trial, scale=scale, transition=transition))


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


def test_a_labeling_that_is_forbidden_has_no_probability():
    check_no_probability(*barred_problem(3, density=0.2))


def test_least_costly_labelings_are_allowed_and_of_least_cost():
    costs = new_rng(4).random((4, 4)) * (1 - np.eye(4))
    structure, X, _, w = barred_problem(4, n=8, density=0.3, label_costs=costs)
    check_least_costly(structure, X, w, costs)


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


@pytest.mark.parametrize(
    ("transitions", "words"),
    [
        (
            "bio",
            "transitions of a TreeStructure must be .*Named schemes are for sequences",
        ),
        (np.ones((3, 2), dtype=bool), r"\(2, 2\).*\(3, 3\).*got \(3, 2\)"),
        ([("a", "c")], r"transitions\[0\] has 'c'"),
        ([("a", "b")], r"y\[1\] has 'a' above 'b' \(tree 1, node 2\)"),
        ([(None, "b")], r"y\[0\] has the root 'b' \(tree 0, node 0\)"),
        ([("b", None)], r"y\[1\] has the leaf 'b' \(tree 1, node 2\)"),
    ],
)
def test_what_cannot_be_meant_or_breaks_it_is_refused(transitions, words):
    X = [(np.zeros((2, 1)), [-1, 0]), (np.zeros((3, 1)), [-1, 0, 1])]
    y = [["b", "a"], ["a", "a", "b"]]
    for fit in (
        TreeStructure(transitions=transitions).fit,
        BCFWClassifier(TreeStructure(transitions=transitions)).fit,
        CRFClassifier(TreeStructure(transitions=transitions)).fit,
    ):
        with pytest.raises(ValueError, match=words):
            fit(X, y)


def test_a_truth_that_is_forbidden_is_refused_after_fit_too():
    X, y = [(np.zeros((2, 1)), np.array([-1, 0]))], [["b", "a"]]
    structure = TreeStructure(transitions=[("a", "b")]).fit(X, y)
    w, bad = np.zeros(structure.n_weights_), ["a", "b"]
    for call in (
        lambda: structure.make_oracle(X, [np.array(bad)]),
        lambda: structure.loss_augmented_decode(X[0], bad, w),
        lambda: structure.constrained_decode(X[0], bad, w, 1.0, np.inf, 0.0),
    ):
        with pytest.raises(ValueError, match=r"y\[0\] has 'a' above 'b'"):
            call()


def test_a_tree_without_labeling_is_refused_by_its_place():
    # Nothing may stand below "b", which alone may stand below "a".
    pairs = [("a", "a"), ("b", "b"), ("b", "a")]
    X = [(np.ones((2, 1)), np.array([-1, 0])), (np.ones((1, 1)), np.array([-1]))]
    y = [["a", "b"], ["a"]]
    for kind in (BCFWClassifier, CRFClassifier):
        model = kind(TreeStructure(transitions=pairs), random_state=0).fit(X, y)
        deep = (np.ones((3, 1)), np.array([-1, 0, 1]))
        calls = [model.predict, lambda X, m=model: m.predict_k_best(X, 2)]
        if kind is CRFClassifier:
            calls += [model.predict_proba]
        for call in calls:
            with pytest.raises(ValueError, match=r"X\[1\] is a tree without a labeling"):
                call([X[0], deep])
        structure, w = model.structure_, model.coef_
        for call in (structure.decode, structure.max_marginals):
            with pytest.raises(ValueError, match="without a labeling"):
                call(deep, w)


MODELS = [
    BCFWClassifier(max_iter=30, tol=0.05),
    SlackRescaledSSVM(max_iter=30, tol=0.05),
    SlackRescaledSSVM(max_iter=30, tol=0.05, search="bisecting"),
    PragamClassifier(max_iter=50, tol=0.05),
    CRFClassifier(max_iter=50, tol=0.05),
    CRFClassifier(max_iter=50, tol=0.05, solver="lbfgs", decoding="mbr"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_prediction_has_what_is_forbidden(model):
    structure, X, y, _ = barred_problem(6, n=12, density=0.3)
    model = clone(model).set_params(structure=structure, classes=range(4))
    if hasattr(model, "random_state"):
        model.set_params(random_state=0)
    model.fit(X, y)
    rng, mask = new_rng(7), structure.allowed_
    # Forests of roots that are leaves, and all parts of those that can be labeled.
    test = [(3.0 * rng.standard_normal(x.shape), parents) for x, parents in 3 * X]
    for (_, parents), labels in zip(test, model.predict(test), strict=True):
        assert is_allowed_tree(labels, parents, mask)
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(model.predict(test), again.predict(test), strict=True):
        np.testing.assert_array_equal(one, other)
    if hasattr(model, "predict_k_best"):
        for x, found in zip(test, model.predict_k_best(test, 5)[0], strict=True):
            assert all(is_allowed_tree(labels, x[1], mask) for labels in found)


@pytest.mark.parametrize("slack", [False, True])
def test_training_reaches_the_optimum_over_what_is_allowed(slack):
    check_optimum(*barred_problem(8, k=3, largest=4)[:3], slack)


def test_crf_training_has_the_likelihood_of_what_is_allowed():
    check_likelihood(*barred_problem(9, k=3, largest=4)[:3])


def test_what_forbids_nothing_changes_no_bit():
    _, X, y, _ = barred_problem(10, n=12)
    for kind in (BCFWClassifier, SlackRescaledSSVM, CRFClassifier):
        models = [
            kind(TreeStructure(transitions=t), tol=0.1, random_state=0).fit(X, y)
            for t in (None, np.ones((4, 4), dtype=bool), [])
        ]
        for model in models[1:]:
            np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_check_structure_lists_what_is_allowed():
    # Its classes are the labels that occur: all three of the mask.
    draws = (barred_problem(seed, k=3, largest=4) for seed in count(11))
    structure, X, y, _ = next(d for d in draws if len({*np.concatenate(d[2])}) == 3)
    check_structure(clone(structure), X, y, n_trials=2)
