"""Tests of forbidden transitions for chains and trees, by enumeration of labelings."""

from itertools import product

import numpy as np
import pytest
from _options import placed
from _references import is_allowed, is_allowed_tree
from _seeds import new_seed
from scipy.special import logsumexp

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM
from sklearn_structsvm.structures import TreeStructure


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


def check_probabilities(structure, X, y, w):
    marginals, entropies = structure.marginals(X, w), structure.entropies(X, w)
    logs, k = structure.log_probabilities(X, y, w), len(structure.classes_)
    for i, x in enumerate(X):
        labelings, log_p = log_probabilities(structure, x, w)
        p, labels = np.exp(log_p), np.array(labelings)
        expected = np.stack([p @ (labels == c) for c in range(k)], axis=1)
        np.testing.assert_allclose(marginals[i], expected, atol=1e-9)
        possible = np.stack([(labels == c).any(axis=0) for c in range(k)], axis=1)
        assert (marginals[i][~possible] == 0.0).all()
        assert entropies[i] == pytest.approx(-p[p > 0] @ log_p[p > 0], abs=1e-8)
        place = labelings.index(tuple(y[i].tolist()))
        assert logs[i] == pytest.approx(log_p[place], rel=1e-9, abs=1e-9)


def check_no_probability(structure, X, y, w):
    """Log-probabilities of a forbidden labeling and of an unknown label."""
    for x, truth in zip(X, y, strict=True):
        for labels in product(range(len(structure.classes_)), repeat=len(truth)):
            logs = structure.log_probabilities([x], [list(labels)], w)
            assert np.isfinite(logs[0]) == may_be(structure, x, labels)
    logs = structure.log_probabilities([X[0], X[0]], [y[0], [9] * len(y[0])], w)
    assert np.isfinite(logs[0])
    assert logs[1] == -np.inf


def check_least_costly(structure, X, w, costs):
    marginals = structure.marginals(X, w)
    for i, labels in enumerate(structure.least_costly(X, marginals)):
        risks = {
            c: sum(marginals[i][t] @ costs[:, label] for t, label in enumerate(c))
            for c in log_probabilities(structure, X[i], w)[0]
        }
        assert risks[tuple(labels.tolist())] == pytest.approx(min(risks.values()))


def check_optimum(structure, X, y, slack, layout=lambda x: x):
    """The dual gap is valid for the risk over a list of labelings."""
    kind, C = (SlackRescaledSSVM if slack else BCFWClassifier), 2.0
    options = {"tol": 1e-5, "max_iter": 20_000, "random_state": new_seed(0)}
    k = len(structure.classes_)
    model = kind(
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


def check_likelihood(structure, X, y):
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
