"""Chains in which some labels may not follow others, against lists of what may be."""

import pickle
from itertools import product

import numpy as np
import pytest
from _allowed import (
    check_least_costly,
    check_likelihood,
    check_no_probability,
    check_optimum,
    check_probabilities,
    log_probabilities,
)
from _cases import (
    TOLERANCE,
    angles,
    candidate_points,
    chain_cases,
    check_batch_equals_single_calls,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_k_best,
    check_max_marginals,
    check_scores_of_the_solver,
    few,
    some,
)
from _references import is_allowed
from _seeds import new_rng
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from sklearn_structsvm import (
    BCFWClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.structures import ChainStructure, check_structure

PARTS = [
    ("emission", "bias", "first_bias", "last_bias", "transition"),
    ("emission", "bias"),
    ("transition",),
]


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_all_decodings_choose_from_what_is_allowed(parts):
    @few
    @given(chain_cases(parts, barred=True))
    def check(case):
        check_features_and_losses(case)
        check_batch_equals_single_calls(case)
        check_scores_of_the_solver(case)
        check_max_marginals(case)
        for k in (1, 3, 40):
            check_k_best(case, k)

    check()


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_it_is_what_training_takes_it_for(parts):
    @settings(max_examples=4)
    @given(chain_cases(parts, barred=True))
    def check(case):
        assume(max(map(len, case.names)) > 1)
        check_it(case)

    check()


@some
@given(chain_cases(barred=True))
def test_predictions_are_the_best_of_what_is_allowed(case):
    found = case.structure.decode_batch(case.X, case.w)
    for i, labels in enumerate(found):
        scores = case.listed.phi[i] @ case.w
        place = case.place(i, labels)
        assert scores[place] >= scores.max() - TOLERANCE
        np.testing.assert_array_equal(case.structure.decode(case.X[i], case.w), labels)
        for lam in (0.0, 1.0):
            labels = case.structure.loss_augmented_decode(
                case.X[i], case.y[i], case.w, lam
            )
            values = scores + lam * case.listed.loss[i]
            assert values[case.place(i, labels)] >= values.max() - TOLERANCE


@some
@given(chain_cases(dyadic=True, barred=True), angles())
def test_constrained_decode_stays_with_what_is_allowed(case, angle):
    check_constrained_decoding(case, *angle)


@some
@given(chain_cases(lengths=(1, 3, 4), barred=True), st.sampled_from([0.0, 1.0, 3.0]))
def test_candidates_of_slack_rescaling_are_allowed_and_have_the_maximum(case, one):
    for i in range(case.listed.n):
        labels, scores, losses = candidate_points(case.oracle(), i, case.w, one)
        all_scores = case.listed.values(i, case.w, 0.0)
        expected = (case.listed.loss[i] * (one + all_scores)).max()
        products = losses * (one + scores)
        assert abs(max(products, default=0.0) - max(expected, 0.0)) <= 1e-10
        mask = case.structure.allowed_
        assert all(is_allowed(row, mask) for row in labels)


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
    rng = new_rng(0, int(10 * scale))
    problem = random_problem(rng, longest=60, scale=scale, density=0.4)
    structure, X, y, w = problem
    oracle = structure.make_oracle(X, y)
    for i, x in enumerate(X):
        theta, transition = structure.potentials(x, w)
        best = best_by_mistakes(theta, transition, structure.allowed_, y[i])
        expected = (np.arange(len(best)) / len(x) * (1.0 + best - best[0]))[1:]
        labels, scores, losses = candidate_points(oracle, i, w)
        found = max(losses * (1.0 + scores), default=0.0)
        assert found == pytest.approx(max(expected.max(), 0.0), rel=1e-9, abs=1e-9)
        assert all(is_allowed(row, structure.allowed_) for row in labels)


def random_problem(rng, k=4, n=4, longest=5, scale=1.0, density=0.6, **params):
    """(structure, X, y, w, its listing): a mask with true labelings that it allows."""
    lengths = rng.integers(1, longest + 1, size=n)
    y = [rng.integers(k, size=T) for T in lengths]
    mask = rng.random((k + 1, k + 1)) < density
    for labels in y:
        mask[np.append(k, labels), np.append(labels, k)] = True
    X = [rng.standard_normal((T, 3)) for T in lengths]
    structure = ChainStructure(transitions=mask, **params)
    structure.fit(X, y, classes=range(k))
    return structure, X, y, scale * rng.standard_normal(structure.n_weights_)


@pytest.mark.parametrize("transition", [True, False])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 300.0, 3000.0])
def test_probabilities_are_those_of_what_is_allowed(scale, transition):
    for trial in range(4):
        rng = new_rng(trial, int(scale))
        check_probabilities(*random_problem(rng, scale=scale, transition=transition))


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


def test_a_labeling_that_is_forbidden_has_no_probability():
    check_no_probability(*random_problem(new_rng(3), density=0.2))


def test_least_costly_labelings_are_allowed_and_of_least_cost():
    rng = new_rng(4)
    costs = rng.random((4, 4)) * (1 - np.eye(4))
    structure, X, _, w = random_problem(rng, n=8, density=0.3, label_costs=costs)
    check_least_costly(structure, X, w, costs)


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


def test_a_scheme_of_one_type_needs_no_name():
    structure = ChainStructure(transitions="bio")
    structure.fit([np.zeros((3, 1))], [["B", "I", "O"]])
    assert len(list(structure.labelings(np.zeros((2, 1))))) == 5


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


@pytest.mark.parametrize(
    ("transitions", "words"),
    [
        ("bilou", "'bio', 'bioes', 'iobes'"),
        ("bio", "'B-...', 'I-...'; got 'a'"),
        (np.ones((3, 2), dtype=bool), r"\(2, 2\).*\(3, 3\).*got \(3, 2\)"),
        (np.ones((2, 2)), "must be a boolean.*float64"),
        ([("a", "c")], r"transitions\[0\] has 'c'"),
        ([("a", "b"), ("a",)], r"transitions\[1\] must be a forbidden pair"),
        (["ab"], r"transitions\[0\] must be a forbidden pair"),
        ([(["a"], "b")], r"transitions\[0\] has \['a'\]"),
        ([(None, None)], r"transitions\[0\] has no label"),
        (3, "list of forbidden pairs; got 3"),
        ([("a", "b")], r"y\[1\] has 'a' before 'b' \(sequence 1, position 2\)"),
        ([(None, "b")], r"y\[0\] begins with 'b' \(sequence 0, position 0\)"),
        ([("b", None)], r"y\[1\] ends with 'b' \(sequence 1, position 2\)"),
    ],
)
def test_what_cannot_be_meant_is_refused(transitions, words):
    X, y = [np.zeros((2, 1)), np.zeros((3, 1))], [["b", "a"], ["a", "a", "b"]]
    with pytest.raises(ValueError, match=words):
        ChainStructure(transitions=transitions).fit(X, y)
    with pytest.raises(ValueError, match=words):
        BCFWClassifier(ChainStructure(transitions=transitions)).fit(X, y)


def test_a_truth_that_is_forbidden_is_refused_after_fit_too():
    X, y = [np.zeros((2, 1))], [["b", "a"]]
    structure = ChainStructure(transitions=[("a", "b")]).fit(X, y)
    w = np.zeros(structure.n_weights_)
    words = r"y\[0\] has 'a' before 'b'"
    with pytest.raises(ValueError, match=words):
        structure.make_oracle(X, [np.array(["a", "b"])])
    with pytest.raises(ValueError, match=words):
        structure.loss_augmented_decode(X[0], ["a", "b"], w)
    with pytest.raises(ValueError, match=words):
        structure.constrained_decode(X[0], ["a", "b"], w, 1.0, np.inf, 0.0)


def test_a_length_without_labeling_is_refused_by_the_name_of_its_item():
    pairs = [("a", "a"), ("b", "b"), ("b", "a")]
    X, y = [np.ones((2, 1)), np.ones((1, 1))], [["a", "b"], ["a"]]
    models = [
        BCFWClassifier(ChainStructure(transitions=pairs), random_state=0).fit(X, y),
        CRFClassifier(ChainStructure(transitions=pairs), random_state=0).fit(X, y),
    ]
    X = [np.ones((1, 1)), np.ones((3, 1))]
    for model in models:
        calls = [model.predict, lambda X, m=model: m.predict_k_best(X, 2)]
        if isinstance(model, CRFClassifier):
            calls += [model.predict_proba]
        for call in calls:
            with pytest.raises(ValueError, match=r"X\[1\] has 3 positions"):
                call(X)
    structure, w = models[0].structure_, models[0].coef_
    for call in (
        structure.decode,
        structure.max_marginals,
        lambda x, w: structure.k_best(x, w, 1),
    ):
        with pytest.raises(ValueError, match="3 positions"):
            call(X[1], w)


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
    BCFWClassifier(C=1.0, max_iter=30, tol=0.05),
    BCFWClassifier(C=1.0, max_iter=30, tol=0.05, step="corrective"),
    SlackRescaledSSVM(C=1.0, max_iter=30, tol=0.05),
    SlackRescaledSSVM(C=1.0, max_iter=30, tol=0.05, search="bisecting"),
    CRFClassifier(C=1.0, max_iter=100, tol=0.05),
    CRFClassifier(C=1.0, max_iter=100, tol=0.05, solver="lbfgs"),
    CRFClassifier(C=1.0, max_iter=100, tol=0.05, decoding="mbr"),
]


@pytest.mark.parametrize("transition", [True, False])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_prediction_has_an_invalid_tag(model, transition):
    X, y, tags = tagged(20, new_rng(7))
    test = [new_rng(8, T).standard_normal((T, 4)) * 3 for T in range(1, 30)]
    model.set_params(random_state=0, classes=tags)
    free = model.set_params(structure=ChainStructure(transition=transition)).fit(X, y)
    # Not for nothing.
    assert not all(spells(tags, "bio") for tags in free.predict(test))
    structure = ChainStructure(transition=transition, transitions="bio")
    model.set_params(structure=structure).fit(X, y)
    assert all(spells(tags, "bio") for tags in model.predict(test))
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(model.predict(test), again.predict(test), strict=True):
        np.testing.assert_array_equal(one, other)
    for labelings in model.predict_k_best(test, 5)[0]:
        assert len(labelings) in (3, 5)
        assert all(spells(tags, "bio") for tags in labelings)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("slack", [False, True])
def test_training_reaches_the_optimum_over_what_is_allowed(layout, slack):
    structure, X, y, _ = random_problem(new_rng(9), k=3, longest=4, density=0.5)
    check_optimum(structure, X, y, slack, layout)


# Transitions may leave one labeling to each example.
@pytest.mark.filterwarnings("ignore:There is nothing to learn:UserWarning")
def test_the_optimum_is_that_of_all_labelings_in_a_list():
    """A structure in Python that lists what may be has the same optimum."""
    structure, X, y, _ = random_problem(new_rng(10), k=3, longest=3, density=0.5)

    class ByList(ChainStructure):
        def decode(self, x, w):
            return self.loss_augmented_decode(x, y[0][:1].repeat(x.shape[0]), w, 0.0)

        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            def value(labels):
                return self.joint_feature(x, labels) @ w + lam * self.loss(y_true, labels)

            return np.array(max(log_probabilities(self, x, w)[0], key=value))

    own = ByList(transitions=structure.transitions)
    options = {"C": 1.0, "classes": range(3), "tol": 1e-5, "step": "corrective"}
    found = [
        BCFWClassifier(s, random_state=0, **options).fit(X, y).objective_
        for s in (structure, own)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-5)


# Transitions may leave one labeling to each example.
@pytest.mark.filterwarnings("ignore:There is nothing to learn:UserWarning")
def test_batch_solvers_see_the_same_risk():
    structure, X, y, _ = random_problem(new_rng(11), k=3, longest=3, density=0.5)
    options = {"C": 1.0, "classes": range(3), "tol": 1e-3, "max_iter": 5000}
    one = PragamClassifier(structure=structure, **options).fit(X, y)
    other = BCFWClassifier(structure, random_state=0, **options).fit(X, y)
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-3)


def test_crf_training_has_the_likelihood_of_what_is_allowed():
    check_likelihood(*random_problem(new_rng(12), k=3, longest=4, density=0.5)[:3])


def test_what_forbids_nothing_changes_no_bit():
    X, y, tags = tagged(20, new_rng(13))
    mask = np.ones((5, 5), dtype=bool)
    for kind in (BCFWClassifier, SlackRescaledSSVM, CRFClassifier):
        models = [
            kind(ChainStructure(transitions=t), tol=0.1, random_state=0).fit(X, y)
            for t in (None, mask, [])
        ]
        for model in models[1:]:
            np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_threads_change_nothing():
    structure, X, y, w = random_problem(new_rng(14), n=40, longest=9)
    one, other = (structure.marginals(X, w, n) for n in (1, 3))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    one, other = (structure.decode_batch(X, w, n) for n in (1, 3))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


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


def test_check_structure_lists_what_is_allowed():
    X, y, _ = tagged(6, new_rng(18))
    check_structure(ChainStructure(transitions="bio"), X, y, n_trials=2)


def test_check_structure_knows_that_losses_are_added_up_in_another_order():
    # Six sixths are 1 or, one after another, the number just below.
    rng = new_rng(22)
    X, y = [rng.normal(size=(6, 2)) for _ in range(2)], [np.arange(6) % 2] * 2
    check_structure(ChainStructure(), X, y, n_trials=1)
