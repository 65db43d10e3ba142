"""Chains and trees where some labels may not follow others; see also `test_listed`."""

import pickle
from itertools import product

import numpy as np
import pytest
from _cases import allow, candidate_points
from _forests import random_parents
from _options import placed
from _references import is_allowed, is_allowed_tree
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.structures import ChainStructure, TreeStructure, check_structure

KINDS = {"chain": ChainStructure, "tree": TreeStructure}
of_each = pytest.mark.parametrize("kind", KINDS)


def may_be(structure, x, labels):
    if isinstance(structure, TreeStructure):
        return is_allowed_tree(labels, x[1], structure.allowed_)
    return is_allowed(labels, structure.allowed_)


def log_probabilities(structure, x, w):
    """All labelings that are allowed, by a filter, and their log-probabilities."""
    n = len(x[1]) if isinstance(structure, TreeStructure) else x.shape[0]
    every = product(range(len(structure.classes_)), repeat=n)
    labelings = [labels for labels in every if may_be(structure, x, labels)]
    scores = np.array([structure.joint_feature(x, list(c)) @ w for c in labelings])
    return labelings, scores - logsumexp(scores)


def best_by_mistakes(theta, transition, allowed, truth):
    """Entry g: the best score of an allowed labeling with g labels that are wrong."""
    k, T = len(allowed) - 1, len(truth)
    best = np.full((k, T + 1), -np.inf)
    for c in np.flatnonzero(allowed[k, :k]):
        best[c, int(c != truth[0])] = theta[0, c]
    for t in range(1, T):
        before, best = best, np.full((k, T + 1), -np.inf)
        for a, c in np.argwhere(allowed[:k, :k]):
            wrong = int(c != truth[t])
            gain = before[a] + transition[a, c] + theta[t, c]
            gain = np.append(-np.inf, gain[:-1]) if wrong else gain
            best[c] = np.maximum(best[c], gain)
    return best[allowed[:k, k]].max(axis=0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_slack_rescaling_of_long_chains_has_the_maximum_of_what_is_allowed(scale):
    problem = barred_problem("chain", int(10 * scale), longest=60, density=0.4)
    structure, X, y, w = *problem[:3], scale * problem[3]
    oracle = structure.make_oracle(X, y)
    for i, x in enumerate(X):
        theta, transition = structure.potentials(x, w)
        best = best_by_mistakes(theta, transition, structure.allowed_, y[i])
        expected = (np.arange(len(best)) / len(x) * (1.0 + best - best[0]))[1:]
        labels, scores, losses = candidate_points(oracle, i, w)
        found = max(losses * (1.0 + scores), default=0.0)
        assert found == pytest.approx(max(expected.max(), 0.0), rel=1e-9, abs=1e-9)
        assert all(is_allowed(row, structure.allowed_) for row in labels)


def barred_problem(kind, seed, k=4, n=4, longest=5, scale=1.0, density=0.5, **params):
    """(structure, X, y, w): a mask with true labelings that it allows."""
    rng = new_rng(seed, int(scale))
    sizes = rng.integers(1, longest + 1, size=n)
    X = [rng.standard_normal((T, 3)) for T in sizes]
    y = [rng.integers(k, size=T) for T in sizes]
    parents = [random_parents(T, rng) for T in sizes]
    if kind == "chain":
        parents = [np.arange(T) - 1 for T in sizes]
    mask = rng.random((k + 1, k + 1)) < density
    for labels, above in zip(y, parents, strict=True):
        allow(mask, labels, above)
    X = X if kind == "chain" else list(zip(X, parents, strict=True))
    structure = KINDS[kind](transitions=mask, **params).fit(X, y, classes=range(k))
    return structure, X, y, scale * rng.standard_normal(structure.n_weights_)


def test_labels_that_come_back_from_next_to_nothing_are_summed():
    """Two tracks without a way between them; the poorer alone may come last."""
    mask = np.eye(3, dtype=bool)
    mask[2] = True
    mask[0, 2], mask[1, 2] = True, False
    for step in (1.0, 50.0, 200.0, 290.0, 1000.0):
        for T in (1, 2, 3, 10):
            x = np.ones((T, 1))
            structure = ChainStructure(transitions=mask, bias=False, first_bias=False)
            structure.fit([x], [np.zeros(T, dtype=int)], classes=[0, 1])
            w = np.zeros(structure.n_weights_)
            w[:2] = 0.0, step
            nodes = structure.marginals([x], w)[0]
            assert (nodes[:, 1] == 0.0).all()
            np.testing.assert_allclose(nodes[:, 0], 1.0, rtol=1e-15)
            assert structure.entropies([x], w)[0] == pytest.approx(0.0, abs=1e-9)
            assert structure.log_probabilities([x], [[0] * T], w)[0] == pytest.approx(0)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_numbers_and_logarithms_agree(scale):
    """A pair that is wide, but never met, sends all to logarithms."""
    rng = new_rng(0, int(scale))
    k = 9
    mask = rng.random((k + 1, k + 1)) < 0.4
    # Label 0 is met by nobody who did not begin with it, and nobody may.
    mask[1:, 0], mask[:k, k], mask[k, 1:] = False, True, True
    for c in range(k):
        mask[c, 1 + c % (k - 1)] = True
    mask[1, 1] = True
    X = [rng.standard_normal((T, 2)) for T in (1, 2, 40, 300)]
    y = [np.ones(len(x), dtype=int) for x in X]
    structure = ChainStructure(transitions=mask).fit(X, y, classes=range(k))
    w = scale * rng.standard_normal(structure.n_weights_)
    wide = w.copy()
    allowed = np.flatnonzero(mask[0, :k])
    structure.weight_parts(wide)["transition"][0, allowed] = -1e5
    assert (wide != w).any()
    narrow, logs = (structure.marginals(X, weights) for weights in (w, wide))
    for one, other in zip(narrow, logs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(
        structure.entropies(X, w), structure.entropies(X, wide), atol=1e-7
    )


@of_each
def test_a_labeling_that_is_forbidden_has_no_probability(kind):
    structure, X, y, w = barred_problem(kind, 3, density=0.2)
    for x, truth in zip(X, y, strict=True):
        for labels in product(range(len(structure.classes_)), repeat=len(truth)):
            logs = structure.log_probabilities([x], [list(labels)], w)
            assert np.isfinite(logs[0]) == may_be(structure, x, labels)
    logs = structure.log_probabilities([X[0], X[0]], [y[0], [9] * len(y[0])], w)
    assert np.isfinite(logs[0])
    assert logs[1] == -np.inf


@of_each
def test_least_costly_labelings_are_allowed_and_of_least_cost(kind):
    costs = new_rng(4).random((4, 4)) * (1 - np.eye(4))
    structure, X, _, w = barred_problem(kind, 4, n=8, density=0.3, label_costs=costs)
    marginals = structure.marginals(X, w)
    for i, labels in enumerate(structure.least_costly(X, marginals)):
        risks = {
            c: sum(marginals[i][t] @ costs[:, label] for t, label in enumerate(c))
            for c in log_probabilities(structure, X[i], w)[0]
        }
        assert risks[tuple(labels.tolist())] == pytest.approx(min(risks.values()))


# ------------------------------------------------------------------ names of schemes


def spells(tags, scheme):
    """Whether tags are made of whole chunks, by a grammar of one chunk after another."""
    t = 0
    while t < len(tags):
        prefix, _, name = tags[t].partition("-")
        if tags[t] == "O" or (prefix == "S" and scheme != "bio"):
            t += 1
        elif prefix == "B":
            t += 1
            while t < len(tags) and tags[t] == f"I-{name}":
                t += 1
            if scheme != "bio":
                if t == len(tags) or tags[t] != f"E-{name}":
                    return False
                t += 1
        else:
            return False
    return True


def test_schemes_with_other_letters_allow_the_same_and_one_type_needs_no_name():
    tables = []
    for scheme, letters in (("bioes", "BIES"), ("bilou", "BILU"), ("bmes", "BMES")):
        classes = ["O", *(f"{letter}-{name}" for letter in letters for name in "XY")]
        structure = ChainStructure(transitions=scheme)
        structure.fit([np.zeros((1, 1))], [["O"]], classes=classes)
        order = np.append([classes.index(name) for name in structure.classes_], 9)
        place = np.argsort(order)
        tables.append(structure.allowed_[np.ix_(place, place)])
    assert (tables[0] == tables[1]).all() and (tables[0] == tables[2]).all()
    structure = ChainStructure(transitions="bio")
    structure.fit([np.zeros((3, 1))], [["B", "I", "O"]])
    assert len(list(structure.labelings(np.zeros((2, 1))))) == 5


@pytest.mark.parametrize("scheme", ["bio", "bioes", "iobes"])
def test_a_scheme_allows_what_spells_chunks(scheme):
    prefixes = "BI" if scheme == "bio" else "BIES"
    classes = ["O", *(f"{p}-{name}" for p in prefixes for name in ("X", "Y-Z"))]
    structure = ChainStructure(transitions=scheme)
    structure.fit([np.zeros((1, 1))], [["O"]], classes=classes)
    for T in (1, 2, 3):
        found = {tuple(y.tolist()) for y in structure.labelings(np.zeros((T, 1)))}
        expected = {c for c in product(classes, repeat=T) if spells(c, scheme)}
        assert found == expected


def test_forbidden_pairs_are_a_mask():
    x, y = np.zeros((2, 1)), ["b", "a"]
    pairs = [("a", "b"), (None, "a"), ("b", None)]
    structure = ChainStructure(transitions=pairs).fit([x], [y])
    expected = [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
    np.testing.assert_array_equal(structure.allowed_, np.array(expected, dtype=bool))
    np.testing.assert_array_equal(list(structure.labelings(x)), [["b", "a"]])
    mask = np.array(expected, dtype=bool)
    for given_mask in (mask, mask[:2, :2]):
        again = ChainStructure(transitions=given_mask).fit([x], [y])
        np.testing.assert_array_equal(again.allowed_[:2, :2], mask[:2, :2])
        assert again.allowed_[2].all() == (len(given_mask) == 2)


WRONG = {
    "chain": [
        ("bi", "'iob1', 'bio', 'bioes', 'bilou', 'bmes'"),
        ("bio", "'B-...', 'I-...'; got 'a'"),
        (np.ones((2, 2)), "must be a boolean.*float64"),
        ([("a", "b"), ("a",)], r"transitions\[1\] must be a forbidden pair"),
        (["ab"], r"transitions\[0\] must be a forbidden pair"),
        ([(["a"], "b")], r"transitions\[0\] has \['a'\]"),
        ([(None, None)], r"transitions\[0\] has no label"),
        (3, "list of forbidden pairs; got 3"),
        ([("a", "b")], r"y\[1\] has 'a' before 'b' \(sequence 1, position 2\)"),
        ([(None, "b")], r"y\[0\] begins with 'b' \(sequence 0, position 0\)"),
        ([("b", None)], r"y\[1\] ends with 'b' \(sequence 1, position 2\)"),
    ],
    "tree": [
        ("bio", "transitions of a TreeStructure must.*Named schemes are for sequences"),
        ([("a", "b")], r"y\[1\] has 'a' above 'b' \(tree 1, node 2\)"),
        ([(None, "b")], r"y\[0\] has the root 'b' \(tree 0, node 0\)"),
        ([("b", None)], r"y\[1\] has the leaf 'b' \(tree 1, node 2\)"),
    ],
}
for pairs in WRONG.values():
    pairs += [
        (np.ones((3, 2), dtype=bool), r"\(2, 2\).*\(3, 3\).*got \(3, 2\)"),
        ([("a", "c")], r"transitions\[0\] has 'c'"),
    ]


@pytest.mark.parametrize(
    ("kind", "transitions", "words"),
    [(kind, *pair) for kind, pairs in WRONG.items() for pair in pairs],
)
def test_what_cannot_be_meant_or_breaks_it_is_refused(kind, transitions, words):
    X, y = [np.zeros((2, 1)), np.zeros((3, 1))], [["b", "a"], ["a", "a", "b"]]
    X = X if kind == "chain" else [(x, np.arange(len(x)) - 1) for x in X]
    structure = KINDS[kind](transitions=transitions)
    for own in (structure, BCFWClassifier(structure), CRFClassifier(structure)):
        with pytest.raises(ValueError, match=words):
            own.fit(X, y)


@of_each
def test_a_truth_that_is_forbidden_is_refused_after_fit_too(kind):
    x, bad = np.zeros((2, 1)), ["a", "b"]
    x = x if kind == "chain" else (x, np.array([-1, 0]))
    structure = KINDS[kind](transitions=[("a", "b")]).fit([x], [["b", "a"]])
    w = np.zeros(structure.n_weights_)
    for call in (
        lambda: structure.make_oracle([x], [np.array(bad)]),
        lambda: structure.loss_augmented_decode(x, bad, w),
        lambda: structure.constrained_decode(x, bad, w, 1.0, np.inf, 0.0),
    ):
        with pytest.raises(ValueError, match=r"y\[0\] has 'a' (before|above) 'b'"):
            call()


@of_each
def test_an_item_without_labeling_is_refused_by_its_name(kind):
    # Nothing may follow "b", which alone may follow "a".
    X, y = [np.ones((T, 1)) for T in (2, 1, 3)], [["a", "b"], ["a"]]
    X = X if kind == "chain" else [(x, np.arange(len(x)) - 1) for x in X]
    structure = KINDS[kind](transitions=[("a", "a"), ("b", "b"), ("b", "a")])
    words = "3 positions" if kind == "chain" else "a tree without a labeling"
    for make in (BCFWClassifier, CRFClassifier):
        model = make(structure, random_state=0).fit(X[:2], y)
        calls = [model.predict, lambda X, m=model: m.predict_k_best(X, 2)]
        if make is CRFClassifier:
            calls += [model.predict_proba]
        for call in calls:
            with pytest.raises(ValueError, match=rf"X\[1\] (has|is) {words}"):
                call(X[1:])
        own, w = model.structure_, model.coef_
        for call in (own.decode, own.max_marginals, lambda *xw, s=own: s.k_best(*xw, 1)):
            with pytest.raises(ValueError, match=words.removeprefix("a tree ")):
                call(X[2], w)


# ------------------------------------------------------------------ estimators


def tagged(n, rng, n_features=4, noise=1.5):
    """Sentences whose tags are hard to tell apart, but spell chunks."""
    tags = ["O", "B-x", "I-x", "B-y", "I-y"]
    centers = rng.standard_normal((5, n_features))
    X, y = [], []
    for _ in range(n):
        labels = []
        for _ in range(rng.integers(1, 4)):
            kind = rng.integers(3)
            if kind == 0:
                labels.append(0)
            else:
                start = 1 if kind == 1 else 3
                labels += [start] + [start + 1] * rng.integers(0, 3)
        X.append(centers[labels] + noise * rng.standard_normal((len(labels), n_features)))
        y.append(np.array(tags)[labels])
    return X, y, tags


MODELS = [
    BCFWClassifier(max_iter=30, tol=0.05),
    BCFWClassifier(max_iter=30, tol=0.05, step="corrective"),
    SlackRescaledSSVM(max_iter=30, tol=0.05),
    SlackRescaledSSVM(max_iter=30, tol=0.05, solver_options={"search": "bisecting"}),
    PragamClassifier(max_iter=50, tol=0.05),
    CRFClassifier(max_iter=100, tol=0.05),
    CRFClassifier(max_iter=100, tol=0.05, solver_options={"decoding": "mbr"}),
    CRFClassifier(
        max_iter=100, tol=0.05, solver="lbfgs", solver_options={"decoding": "mbr"}
    ),
]


@pytest.mark.parametrize("kind", ["chain", "without transitions", "tree"])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_prediction_has_what_is_forbidden(model, kind):
    rng, free = new_rng(7), TreeStructure()
    if kind == "tree":
        structure, X, y, _ = barred_problem("tree", 6, n=12, density=0.3)
        # Forests of roots that are leaves, and all parts of those that can be labeled.
        test = [(3.0 * rng.standard_normal(x.shape), parents) for x, parents in 3 * X]
        classes = range(4)
    else:
        free = ChainStructure(transition=kind == "chain")
        structure = clone(free).set_params(transitions="bio")
        X, y, classes = tagged(20, rng)
        test = [3.0 * rng.standard_normal((T, 4)) for T in range(1, 30)]

    def is_valid(x, labels):
        if kind == "tree":
            return is_allowed_tree(labels, x[1], structure.allowed_)
        return spells(labels, "bio")

    model = clone(model).set_params(solver_options__classes=classes, structure=free)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    # Not for nothing.
    assert kind == "tree" or not all(map(is_valid, test, model.fit(X, y).predict(test)))
    predicted = model.set_params(structure=structure).fit(X, y).predict(test)
    assert all(map(is_valid, test, predicted))
    again = pickle.loads(pickle.dumps(model)).predict(test)
    for one, other in zip(predicted, again, strict=True):
        np.testing.assert_array_equal(one, other)
    if hasattr(model, "predict_k_best"):
        for x, found in zip(test, model.predict_k_best(test, 5)[0], strict=True):
            assert all(is_valid(x, labels) for labels in found)
            assert kind == "tree" or len(found) in (3, 5)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [("chain", np.asarray), ("chain", sparse.csr_array), ("tree", lambda x: x)],
    ids=["dense chain", "csr chain", "tree"],
)
@pytest.mark.parametrize("slack", [False, True])
def test_training_reaches_the_optimum_over_what_is_allowed(kind, layout, slack):
    """The dual gap is valid for the risk over a list of labelings."""
    structure, X, y, _ = barred_problem(kind, 9, k=3, longest=4)
    make, C = (SlackRescaledSSVM if slack else BCFWClassifier), 2.0
    options = {"tol": 1e-5, "max_iter": 20_000, "random_state": new_seed(0)}
    k = len(structure.classes_)
    model = make(
        structure, C=C, solver_options={"classes": range(k)}, step="corrective", **options
    )
    model.fit([layout(x) for x in X], y)
    w, n, risk = model.coef_, len(X), 0.0
    for x, truth in zip(X, y, strict=True):
        values = []
        for labels in log_probabilities(model.structure_, x, w)[0]:
            labels = np.array(labels)
            score = (structure.joint_feature(x, labels)
                     - structure.joint_feature(x, truth)) @ w  # fmt: skip
            loss = structure.loss(truth, labels)
            values.append(loss * (1 + score) if slack else loss + score)
        risk += max(values) / n
    # Searches of slack rescaling end once they bound the largest violation to this share,
    # and the objective uses their bounds.
    rtol = model._search_rtol if slack else 0.0
    excess = rtol / (1.0 - rtol) * risk
    primal = risk + w @ w / (2 * C * n)
    assert primal - 1e-9 <= model.objective_ <= primal + excess + 1e-9
    assert model.dual_gap_ <= 1e-5


@of_each
def test_crf_training_has_the_likelihood_of_what_is_allowed(kind):
    structure, X, y, _ = barred_problem(kind, 12, k=3, longest=4)
    options = {"C": 1.0, "classes": range(len(structure.classes_)), "tol": 1e-6}
    found = []
    for solver in ("dual", "lbfgs"):
        model = placed(CRFClassifier)(
            structure, solver=solver, max_iter=5000, random_state=0, **options
        ).fit(X, y)
        w, n, logs = model.coef_, len(X), []
        for x, truth in zip(X, y, strict=True):
            labelings, log_p = log_probabilities(model.structure_, x, w)
            logs.append(log_p[labelings.index(tuple(truth.tolist()))])
        objective = w @ w / (2 * n) - np.mean(logs)
        assert model.objective_ == pytest.approx(objective, abs=1e-9)
        np.testing.assert_allclose(model.log_likelihood(X, y), logs, atol=1e-9)
        found.append(model.objective_)
    assert found[0] == pytest.approx(found[1], abs=2e-6)


@of_each
def test_what_forbids_nothing_changes_no_bit(kind):
    _, X, y, _ = barred_problem(kind, 13, n=12)
    for make in (BCFWClassifier, SlackRescaledSSVM, CRFClassifier):
        free, *others = (
            make(KINDS[kind](transitions=t), tol=0.1, random_state=0).fit(X, y)
            for t in (None, np.ones((4, 4), dtype=bool), [])
        )
        for model in others:
            np.testing.assert_array_equal(model.coef_, free.coef_)


@pytest.mark.parametrize(
    "damaged", [np.ones((2, 2), dtype=bool), np.ones((6, 6)), "bio", [[True]]]
)
def test_a_damaged_table_is_refused(damaged):
    X, y, _ = tagged(10, new_rng(15))
    structure = ChainStructure(transitions="bio")
    model = BCFWClassifier(structure, tol=0.1, random_state=0).fit(X, y)
    model.structure_.allowed_ = damaged
    with pytest.raises(ValueError, match="allowed_ must be a boolean array"):
        pickle.loads(pickle.dumps(model)).predict(X)


def test_long_chains_are_decoded_and_summed():
    structure = ChainStructure(transitions="bio", last_bias=False)
    x = new_rng(16).standard_normal((5000, 2))
    tags = ["O", "B-x", "I-x"]
    structure.fit([x], [np.array(["O"]).repeat(5000)], classes=tags)
    w = new_rng(17).standard_normal(structure.n_weights_)
    assert spells(structure.decode(x, w), "bio")
    nodes = structure.marginals([x], w)[0]
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0)
    assert nodes[0, structure.classes_.tolist().index("I-x")] == 0.0
    assert np.isfinite(structure.entropies([x], w)).all()


def test_check_structure_knows_that_losses_are_added_up_in_another_order():
    # Six sixths are 1 or, one after another, the number just below.
    rng = new_rng(22)
    X, y = [rng.normal(size=(6, 2)) for _ in range(2)], [np.arange(6) % 2] * 2
    check_structure(ChainStructure(), X, y, n_trials=1)
