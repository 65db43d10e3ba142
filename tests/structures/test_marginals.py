"""Marginals of chains and trees against all their labelings, at any temperature."""

import numpy as np
import pytest
from _forests import KINDS, random_forests
from _seeds import new_rng
from scipy import sparse
from scipy.special import logsumexp

from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk

# Sums of products, and of the few largest terms: transitions as far apart as 300
# temperatures part the two.
TEMPERATURES = (1e6, 1.0, 0.05, 0.004, 1e-5, 1e-9)
SETTINGS = (
    {},
    {"normalize_loss": False},
    {"transition": False},
    {"emission": False},
    {"bias": False, "label_costs": True},
    {"layout": "csr", "label_costs": True},
    {"k": 2, "longest": 5},
)


def softened(listed, p, w, temperature):
    """The risk, its soft bound, and joint feature and loss of the distributions."""
    risk = soft = loss = 0.0
    plane = np.zeros(listed.d)
    for i in range(listed.n):
        values = listed.values(i, w)
        log_z = logsumexp(values / temperature)
        P = np.exp(values / temperature - log_z)
        risk += p[i] * values.max()
        soft += p[i] * temperature * (log_z - np.log(len(values)))
        plane += p[i] * P @ listed.delta(i)
        loss += p[i] * P @ listed.loss[i]
    return risk, soft, plane, loss


def weights_of_examples(n, seed):
    p = new_rng(seed).uniform(size=n)
    p[0] = 0.0
    return p / p.sum()


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_soft_maxima_and_marginals_are_those_of_all_labelings(kind, params):
    structure, X, y, listed = random_forests(kind, **params)
    p = weights_of_examples(listed.n, 1)
    risk = EmpiricalRisk(structure.make_oracle(X, y), p)
    for seed, temperature in enumerate(TEMPERATURES):
        w = new_rng(seed).standard_normal(listed.d)
        hard, soft, plane, loss = softened(listed, p, w, temperature)
        scale = 1.0 + np.abs(w).sum()
        assert risk.soften(w, temperature) == pytest.approx(
            (hard, soft), abs=1e-13 * scale + 1e-14 * temperature
        )
        assert soft <= hard + 1e-12 * scale
        # Scores are known to rounding, which a low temperature makes the more of.
        rounding = 1e-12 + 1e-15 * scale / temperature
        V, found = risk.soft_plane()
        np.testing.assert_allclose(V, plane, atol=rounding * scale)
        assert found == pytest.approx(loss, abs=rounding)


@pytest.mark.parametrize("kind", KINDS)
def test_an_infinite_temperature_makes_all_labelings_as_probable(kind):
    structure, X, y, listed = random_forests(kind)
    risk = EmpiricalRisk(structure.make_oracle(X, y), listed.uniform)
    w = new_rng(0).standard_normal(listed.d)
    hard, soft = risk.soften(w, np.inf)
    assert hard == pytest.approx(listed.hinge(w), abs=1e-12)
    mean = np.mean([listed.values(i, w).mean() for i in range(listed.n)])
    assert soft == pytest.approx(mean, abs=1e-12)
    means = [listed.delta(i).mean(axis=0) for i in range(listed.n)]
    np.testing.assert_allclose(risk.soft_plane()[0], np.mean(means, axis=0), atol=1e-13)


@pytest.mark.parametrize("temperature", [1.0, 1e-3])
@pytest.mark.parametrize("kind", KINDS)
def test_marginals_of_edges_agree_with_those_of_their_nodes(kind, temperature):
    # The polytope of Appendix E.1 of Saha et al., summed over the edges of an example.
    structure, X, y, listed = random_forests(kind)
    oracle = structure.make_oracle(X, y)
    EmpiricalRisk(oracle, listed.uniform).soften(
        new_rng(3).standard_normal(listed.d), temperature
    )
    nodes, edges = oracle.get_blocks()
    k = nodes.shape[1]
    edges = sparse.csr_array(edges, shape=(listed.n, k * k)).toarray().reshape(-1, k, k)
    bounds = np.cumsum([0] + [len(labels) for labels in y])
    for i, (start, stop) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        # Less those of the truth, whose rows sum to one as well.
        np.testing.assert_allclose(nodes[start:stop].sum(axis=1), 0.0, atol=1e-13)
        assert edges[i].sum() == pytest.approx(0.0, abs=1e-12)
        if kind == "chain":
            own = nodes[start:stop]
            np.testing.assert_allclose(edges[i].sum(axis=1), own[:-1].sum(axis=0),
                                       atol=1e-12)  # fmt: skip
            np.testing.assert_allclose(edges[i].sum(axis=0), own[1:].sum(axis=0),
                                       atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_depends_on_the_threads(kind):
    structure, X, y, listed = random_forests(kind, n=40)
    w = new_rng(0).standard_normal(listed.d)
    results = []
    for n_threads in (1, 2):
        risk = EmpiricalRisk(structure.make_oracle(X, y), listed.uniform)
        results.append((*risk.soften(w, 0.01, n_threads), *risk.soft_plane()[0]))
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_far_beyond_the_temperature_neither_overflow_nor_vanish(kind):
    structure, X, y, listed = random_forests(kind, seed=5)
    risk = EmpiricalRisk(structure.make_oracle(X, y), listed.uniform)
    w = 1e6 * new_rng(1).standard_normal(listed.d)
    hard, soft = risk.soften(w, 1e-6)
    V, loss = risk.soft_plane()
    assert soft == pytest.approx(hard, rel=1e-9)
    # All mass is on the most violating labelings.
    assert loss + V @ w == pytest.approx(hard, rel=1e-9)
