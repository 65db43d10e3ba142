"""Scores of another model as emissions, alone or beside features: one weight, a scale."""

import numpy as np
import pytest
from _problems import solve_listed
from _references import Listed
from _seeds import cache_by_seed, new_rng
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
)
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    TreeStructure,
    check_structure,
)

N, K, D = 10, 3, 4
STRUCTURES = {
    "chain": ChainStructure(emission="given"),
    "tree": TreeStructure(emission="given"),
    "graph": GraphStructure(emission="given", transition="directed"),
    "edges": ChainStructure(emission="given", edge_features=True),
    "edges both sparse": ChainStructure(emission="both", edge_features=True),
    "alone": ChainStructure("given", False, False, False, False),
    "chain both": ChainStructure(emission="both"),
    "chain both sparse": ChainStructure(emission="both", first_bias=False),
    "tree both": TreeStructure(emission="both"),
    "tree both sparse": TreeStructure(emission="both"),
    "graph both": GraphStructure(emission="both", transition="directed"),
    "alone both": ChainStructure("both", False, False, False, False),
}


def make_data(kind, n=N, longest=4, dtype=np.float64):
    """Items and labels, which lean to the largest score."""
    rng = new_rng(0)
    scores = [rng.standard_normal((T, K)) for T in rng.integers(1, longest + 1, n)]
    y = [np.argmax(x + rng.standard_normal(x.shape), axis=1) for x in scores]
    scores = [x.astype(dtype) for x in scores]
    if "both" in kind:
        features = [rng.standard_normal((len(x), D)).astype(dtype) for x in scores]
        for x, labels in zip(features, y, strict=True):
            x[:, 0] += labels
        if "sparse" in kind:
            features = [sparse.csr_array(np.where(x > 0.3, x, 0.0)) for x in features]
        lengths, scores = list(map(len, scores)), list(zip(features, scores, strict=True))
    else:
        lengths = list(map(len, scores))
    kind = kind.split()[0]
    if kind == "tree":
        parents = [[-1, *(rng.integers(v) for v in range(1, T))] for T in lengths]
        return [(x, np.array(p)) for x, p in zip(scores, parents, strict=True)], y
    if kind == "edges":
        edges = [rng.standard_normal((T - 1, 2)).astype(dtype) for T in lengths]
        return list(zip(scores, edges, strict=True)), y
    if kind == "graph":
        edges = [[(v, v + 1) for v in range(T - 1)] for T in lengths]
        return [
            (x, np.array(e, dtype=int).reshape(-1, 2))
            for x, e in zip(scores, edges, strict=True)
        ], y
    return scores, y


def listed_of(structure, X, y):
    """The problem written out by the structure's own definitions."""
    labelings = [list(structure.labelings(x)) for x in X]
    truth = [
        next(j for j, given in enumerate(own) if (given == labels).all())
        for own, labels in zip(labelings, y, strict=True)
    ]
    phi = [
        np.array([structure.joint_feature(x, labels) for labels in own])
        for x, own in zip(X, labelings, strict=True)
    ]
    loss = [
        np.array([structure.loss(labels, other) for other in own])
        for labels, own in zip(y, labelings, strict=True)
    ]
    return Listed(labelings, truth, phi, loss)


@pytest.mark.parametrize(
    ("kind", "dtype"), [*zip(STRUCTURES, 6 * [np.float32, np.float64], strict=True)]
)
def test_all_is_consistent_with_the_joint_feature(kind, dtype):
    X, y = make_data(kind, n=3, longest=3, dtype=dtype)
    check_structure(STRUCTURES[kind], X, y, n_trials=1)


@cache_by_seed
def best_objective(kind):
    """The optimum over the listed labelings, for C = 1."""
    X, y = make_data(kind)
    listed = listed_of(clone(STRUCTURES[kind]).fit(X, y), X, y)
    return solve_listed(listed, 1.0 / N, tol=1e-8)[1]


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(tol=1e-4, max_iter=10**4, random_state=0),
        BMRMClassifier(tol=1e-4, max_iter=10**4),
        SlackRescaledSSVM(
            rescaling="margin", step="pairwise", tol=1e-4, max_iter=10**4, random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_objective_is_that_of_enumeration(kind, model):
    X, y = make_data(kind)
    model.set_params(structure=STRUCTURES[kind]).fit(X, y)
    best = best_objective(kind)
    assert model.C == 1.0
    assert best - 1e-7 <= model.objective_ <= best + model.dual_gap_ + 1e-7


@pytest.mark.parametrize("solver", ["dual", "lbfgs"])
@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if "graph" not in kind])
def test_probabilities_are_those_of_enumeration(kind, solver):
    X, y = make_data(kind)
    model = CRFClassifier(
        STRUCTURES[kind], solver=solver, tol=1e-4, max_iter=10**4, random_state=0
    ).fit(X, y)
    structure, w = model.structure_, model.coef_
    risk = 0.0
    for x, labels, found in zip(X, y, model.predict_proba(X), strict=True):
        own = np.array(list(structure.labelings(x)))
        scores = np.array([structure.joint_feature(x, z) @ w for z in own])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        places = range(len(labels))
        expected = [[p[own[:, t] == c].sum() for c in range(K)] for t in places]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        risk -= np.log(p[(own == labels).all(axis=1)].sum()) / N
    objective = w @ w / (2 * model.C * N) + risk
    assert model.objective_ == pytest.approx(objective, rel=1e-9)


def test_a_scale_learned_on_log_probabilities_calibrates_them():
    """Alone, it is temperature scaling: of probabilities that are true it is about 1."""
    rng = new_rng(1)
    X = [np.log(rng.dirichlet(np.ones(K), size=30)) for _ in range(200)]
    y = [np.array([rng.choice(K, p=np.exp(p)) for p in x]) for x in X]
    model = CRFClassifier(STRUCTURES["alone"], C=1e3, random_state=0).fit(X, y)
    # Six standard errors: the information of a position is the variance of its log p.
    logs = np.concatenate(X)
    means = (np.exp(logs) * logs).sum(axis=1)
    information = (np.exp(logs) * logs**2).sum() - (means**2).sum()
    assert abs(model.coef_[0] - 1.0) < 6.0 / np.sqrt(information)


def test_scores_are_needed_for_each_class():
    X, y = make_data("chain", n=30)
    message = "needs a score for each of the 3 classes, sorted: 0, 1, 2. X has 2 columns"
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(STRUCTURES["chain"]).fit([x[:, :2] for x in X], y)
    few = [np.zeros(len(labels), dtype=int) for labels in y]
    few[0][0] = 1
    with pytest.raises(ValueError, match="option .classes. of the estimator"):
        BCFWClassifier(STRUCTURES["chain"]).fit(X, few)
    model = BCFWClassifier(
        STRUCTURES["chain"], solver_options={"classes": [0, 1, 2]}, random_state=0
    )
    assert model.fit(X, few).coef_.shape == (1 + 3 * K + K * K,)


def test_sparse_scores_are_refused():
    X, y = make_data("chain")
    with pytest.raises(ValueError, match=r"X\[0\] must be dense scores"):
        BCFWClassifier(STRUCTURES["chain"]).fit([sparse.csr_array(x) for x in X], y)


def test_the_weight_after_the_emissions_is_the_scale_beside_them():
    structure = ChainStructure(emission="both")
    X, y = structure.check_data(*make_data("chain both"))
    structure.fit(X, y)
    w = new_rng(1).standard_normal(structure.n_weights_)
    parts = structure.weight_parts(w)
    assert parts["emission"].shape == (D, K)
    assert parts["scale"].tolist() == [w[D * K]]
    features, scores = X[0]
    expected = features @ parts["emission"] + parts["scale"] * scores + parts["bias"]
    expected[0] += parts["first_bias"]
    expected[-1] += parts["last_bias"]
    np.testing.assert_allclose(structure.potentials(X[0], w)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["chain both", "tree both", "graph both"])
def test_pairs_are_taken_as_they_are_passed(kind):
    X, y = make_data(kind)
    model = BCFWClassifier(STRUCTURES[kind], random_state=0).fit(X, y)
    structure, w = model.structure_, model.coef_
    checked, _ = structure.check_data(X)
    for x, own in zip(X, checked, strict=True):
        assert len(list(structure.labelings(x))) == K ** own[0].shape[0]
        for found, expected in zip(
            structure.k_best(x, w, 2), structure.k_best(own, w, 2), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            structure.max_marginals(x, w), structure.max_marginals(own, w)
        )
        np.testing.assert_array_equal(structure.decode(x, w), model.predict([x])[0])


def test_items_of_more_than_a_tile_are_scored_to_their_end():
    rng = new_rng(3)
    X = [(rng.standard_normal((12000, D)), rng.standard_normal((12000, K)))]
    structure = ChainStructure("both", False, False, False, False)
    structure.fit(*structure.check_data(X, [X[0][1].argmax(axis=1)]))
    w = rng.standard_normal(structure.n_weights_)
    theta, _ = structure.potentials(X[0], w)
    np.testing.assert_array_equal(structure.decode(X[0], w), theta.argmax(axis=1))


@pytest.mark.parametrize("kind", ["chain both", "chain both sparse"])
def test_weights_are_those_of_the_same_numbers_in_float64(kind):
    X, y = make_data(kind, dtype=np.float32)
    wide = [tuple(part.astype(np.float64) for part in x) for x in X]
    fits = [
        BCFWClassifier(STRUCTURES[kind], random_state=0).fit(items, y).coef_
        for items in (X, wide)
    ]
    np.testing.assert_array_equal(*fits)


def test_a_warm_start_tells_pairs_from_one_another():
    X, y = make_data("chain both")
    model = BCFWClassifier(
        STRUCTURES["chain both"], warm_start=True, random_state=0, tol=1e-2
    ).fit(X, y)
    objective = model.objective_
    assert model.fit(X[::-1], y[::-1]).n_iter_ <= 1
    assert model.objective_ == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda X: [x for x, _ in X], r"X\[0\] must be a pair .*got ndarray"),
     (lambda X: [*X[:4], X[4][0], *X[5:]], r"X\[4\] must be a pair .*got ndarray"),
     (lambda X: [*X[:4], (*X[4], X[4]), *X[5:]],
      r"X\[4\] must be a pair .*got tuple of 3 items"),
     (lambda X: [(x, sparse.csr_array(z)) for x, z in X],
      r"X\[0\]\[1\] must be dense scores"),
     (lambda X: [*X[:4], (X[4][0], X[4][1][:, :2]), *X[5:]],
      r"X\[4\]\[1\] has 2 scores, but there were 3 in X\[0\]\[1\]"),
     (lambda X: [*X[:4], (X[4][0][:, :2], X[4][1]), *X[5:]],
      r"X\[4\]\[0\] has 2 features, but there were 4 in X\[0\]\[0\]"),
     (lambda X: [*X[:4], (X[4][0], np.repeat(X[4][1], 2, axis=0)), *X[5:]],
      r"X\[4\] has (\d+) rows of features and \d+ of scores"),
     (lambda X: [*X[:4], (X[4][0], X[4][1] * np.nan), *X[5:]],
      r"X\[4\]\[1\] contains NaN or infinity"),
     (lambda X: [(x, z[:, :2]) for x, z in X],
      "needs a score for each of the 3 classes, sorted: 0, 1, 2. X has 2 columns")],
)  # fmt: skip
def test_what_is_wrong_with_a_pair_is_named(change, message):
    X, y = make_data("chain both")
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(STRUCTURES["chain both"]).fit(change(X), y)


def test_a_pair_in_a_tree_is_named_by_its_place():
    X, y = make_data("tree both")
    X[3] = (X[3][0][0], X[3][1])
    with pytest.raises(ValueError, match=r"X\[3\]\[0\] must be a pair .*got ndarray"):
        BCFWClassifier(STRUCTURES["tree both"]).fit(X, y)


def test_predictions_need_the_scores_of_fit():
    X, y = make_data("chain both")
    model = BCFWClassifier(STRUCTURES["chain both"], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] has 2 scores, but there were 3"):
        model.predict([(X[0][0], X[0][1][:, :2])])
    with pytest.raises(ValueError, match="emission='both' for"):
        BCFWClassifier(ChainStructure()).fit(X, y)
    empty = model.predict([([], []), X[0]])
    assert [len(labels) for labels in empty] == [0, len(y[0])]
