"""Scores of another model as emissions: what is learned is their scale and the rest."""

import numpy as np
import pytest
from _problems import solve_listed
from _references import Listed
from _seeds import new_rng
from scipy import sparse

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

N, K = 10, 3
STRUCTURES = {
    "chain": ChainStructure(emission="given"),
    "tree": TreeStructure(emission="given"),
    "graph": GraphStructure(emission="given", transition="directed"),
    "alone": ChainStructure("given", False, False, False, False),
}


def make_data(kind, n=N, longest=4, dtype=np.float64):
    """Items and labels, which lean to the largest score."""
    rng = new_rng(0)
    scores = [rng.standard_normal((T, K)) for T in rng.integers(1, longest + 1, n)]
    y = [np.argmax(x + rng.standard_normal(x.shape), axis=1) for x in scores]
    scores = [x.astype(dtype) for x in scores]
    if kind == "tree":
        parents = [[-1, *(rng.integers(v) for v in range(1, len(x)))] for x in scores]
        return [(x, np.array(p)) for x, p in zip(scores, parents, strict=True)], y
    if kind == "graph":
        edges = [[(v, v + 1) for v in range(len(x) - 1)] for x in scores]
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_all_is_consistent_with_the_joint_feature(kind, dtype):
    X, y = make_data(kind, dtype=dtype)
    check_structure(STRUCTURES[kind], X, y)


def test_the_first_weight_is_the_scale():
    X, y = make_data("chain")
    structure = ChainStructure(emission="given").fit(X, y)
    scale, labels = structure.joint_feature(X[0], y[0])[0], y[0]
    assert scale == pytest.approx(X[0][np.arange(len(labels)), labels].sum(), rel=1e-14)
    w = np.zeros(structure.n_weights_)
    w[0] = 2.0
    np.testing.assert_array_equal(structure.decode(X[0], w), X[0].argmax(axis=1))
    np.testing.assert_allclose(structure.marginals([X[0]], w)[0].sum(axis=1), 1.0)
    assert structure.weight_parts(w)["emission"].tolist() == [2.0]


@pytest.mark.parametrize(
    "model",
    [
        BCFWClassifier(tol=1e-5, max_iter=10**4, random_state=0),
        BCFWClassifier(step="pairwise", tol=1e-5, max_iter=10**4, random_state=0),
        BMRMClassifier(tol=1e-5, max_iter=10**4),
        SlackRescaledSSVM(
            rescaling="margin", step="pairwise", tol=1e-5, max_iter=10**4, random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_objective_is_that_of_enumeration(kind, model):
    X, y = make_data(kind)
    model.set_params(structure=STRUCTURES[kind]).fit(X, y)
    listed = listed_of(model.structure_, X, y)
    _, best = solve_listed(listed, 1.0 / (model.C * N), tol=1e-8)
    assert best - 1e-7 <= model.objective_ <= best + model.dual_gap_ + 1e-7


@pytest.mark.parametrize("solver", ["dual", "lbfgs"])
@pytest.mark.parametrize("kind", ["chain", "tree", "alone"])
def test_probabilities_are_those_of_enumeration(kind, solver):
    X, y = make_data(kind)
    model = CRFClassifier(
        STRUCTURES[kind], solver=solver, tol=1e-8, max_iter=10**4, random_state=0
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
    with pytest.raises(ValueError, match="pass classes= to the estimator"):
        BCFWClassifier(STRUCTURES["chain"]).fit(X, few)
    model = BCFWClassifier(STRUCTURES["chain"], classes=[0, 1, 2], random_state=0)
    assert model.fit(X, few).coef_.shape == (1 + 3 * K + K * K,)


def test_sparse_scores_are_refused():
    X, y = make_data("chain")
    with pytest.raises(ValueError, match=r"use x\.toarray\(\) for each item"):
        BCFWClassifier(STRUCTURES["chain"]).fit([sparse.csr_array(x) for x in X], y)
