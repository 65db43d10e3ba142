"""Bounds on how far conditions may be off, against formulas and simulations."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.confusion import Cells
from sklearn_structsvm.confusion.moved import moved, spare_of
from sklearn_structsvm.confusion.tightening import find_bounds, uniform_deviation
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
)


def make_sample(rng, m, k, n=400):
    """Cells of each example, labels, weights, `Cells` and what `find_bounds` is given."""
    codes, y = rng.integers(0, m, n), rng.integers(0, k, n)
    weights = rng.random(n) + 0.5
    priors, squares = np.zeros((2, m, k))
    np.add.at(priors, (codes, y), weights)
    np.add.at(squares, (codes, y), weights**2)
    cells = Cells(priors / priors.sum(), np.arange(k), np.arange(m), list("abcd"[:m]))
    return codes, y, weights, cells, np.array([priors, squares])


@pytest.mark.parametrize("n", [20, 60, 200])
def test_the_statistic_is_hardly_exceeded_less_often_than_said(n):
    rng, n_draws, error = new_rng(n), 4000, 0.1
    u = np.sort(rng.random((n_draws, n)), axis=1)
    above, below = np.arange(1, n + 1) / n - u, u - np.arange(n) / n
    statistic = np.maximum(above.max(axis=1), below.max(axis=1))
    exceeded = (statistic > uniform_deviation(n, error)).mean()
    # Six standard deviations.
    assert error / 2 < exceeded < error + 6 * np.sqrt(error / n_draws)
    # And less often where there are ties.
    p = np.array([0.3, 0.7])
    counts = rng.multinomial(n, p, n_draws) / n
    exceeded = (np.abs(counts - p).max(axis=1) > uniform_deviation(n, error)).mean()
    assert exceeded < error + 6 * np.sqrt(error / n_draws)


def test_of_no_example_nothing_is_known():
    assert uniform_deviation(np.array([0.0, 1.0, 8.0]), 0.05).tolist() == [
        1.0, 1.0, np.sqrt(np.log(40) / 16)
    ]  # fmt: skip


@pytest.mark.parametrize("reference", ["overall", "groups"])
@pytest.mark.parametrize("kind", [DemographicParity, EqualOpportunity, EqualizedOdds])
def test_bounds_of_differences_are_those_of_their_rates(kind, reference):
    m, k = 3, 2
    *_, cells, sizes = make_sample(new_rng(0), m, k)
    (bounds,) = find_bounds([kind(reference=reference, pos_label=1)], cells, sizes, 0.9)
    labels = {DemographicParity: [None], EqualOpportunity: [1], EqualizedOdds: [0, 1]}
    expected = []
    for label in labels[kind]:
        at = slice(None) if label is None else [label]
        sums, squares = sizes[:, :, at].sum(axis=2)
        share = sums / sums.sum()
        eps = [
            uniform_deviation(n, 0.1 / (m * len(labels[kind]))) for n in sums**2 / squares
        ]
        for a in range(m):
            if reference == "overall":
                value = (1 - share[a]) * eps[a] + sum(
                    share[b] * eps[b] for b in range(m) if b != a
                )
                expected += [value, value]
            else:
                expected += [eps[a] + eps[b] for b in range(m) if b != a]
    np.testing.assert_allclose(bounds.values, expected, rtol=1e-12)
    assert bounds.by_group(cells.group_names).keys() <= {"a", "b", "c"}
    assert max(bounds.by_group(cells.group_names).values()) == bounds.values.max()


def test_bounds_of_rates():
    *_, cells, sizes = make_sample(new_rng(1), 2, 3)
    error = 0.05
    (bounds,) = find_bounds(
        [Recall(at_least=0.5, label=1, group="b")], cells, sizes, 0.95
    )
    n = sizes[0, 1, 1] ** 2 / sizes[1, 1, 1]
    assert bounds.values.tolist() == pytest.approx([uniform_deviation(n, error)])
    assert bounds.by_group(cells.group_names) == {"b": bounds.values[0]}
    (bounds,) = find_bounds([SelectionRate(at_most=0.5, group="a")], cells, sizes, 0.95)
    sums, squares = sizes[:, 0].sum(axis=1)
    assert bounds.values == pytest.approx(
        [uniform_deviation(sums**2 / squares, error)] * 3
    )
    assert spare_of(bounds.constraint) == np.inf


@pytest.mark.parametrize("k", [2, 3])
def test_no_rates_within_the_bands_break_a_tightened_condition(k):
    rng, m = new_rng(k), 3
    *_, cells, sizes = make_sample(rng, m, k, n=3000)
    pos_label = 1 if k == 2 else None
    constraints = [
        DemographicParity(slack=0.9, pos_label=pos_label),
        EqualizedOdds(slack=0.9, pos_label=pos_label, reference="groups"),
        EqualOpportunity(bound="ratio", ratio=0.5, pos_label=pos_label),
        Precision(at_least=0.2, per_group=True),
        Recall(at_least=0.1),
        SelectionRate(at_most=0.9, per_group=True),
    ]
    for constraint in constraints:
        (bounds,) = find_bounds([constraint], cells, sizes, 0.95)
        tight = moved(constraint, bounds.values, of_rates=False)
        G, h = constraint.linear(cells)
        n_strata = ((np.ptp(G, axis=3) > 0).any(axis=0)).sum()
        whole = (G == G[:, :, :1]).all() and not isinstance(constraint, Recall)
        error = 0.05 / (m if whole else n_strata)
        for _ in range(10):
            rates = rng.dirichlet(np.ones(k), (m, k))
            C = cells.priors[:, :, None] * rates
            # New rates: each stratum's move by its band, some weight from one prediction
            # to another one.
            drifted = C.copy()
            for a in range(m):
                i, j = rng.permutation(k)[:2]
                if whole:
                    sums, squares = sizes[:, a].sum(axis=1)
                    eps = uniform_deviation(sums**2 / squares, error)
                    step = min(eps * cells.priors[a].sum(), drifted[a, :, i].sum())
                    drifted[a, :, i] *= 1 - step / drifted[a, :, i].sum()
                    drifted[a, :, j] += step * cells.priors[a] / cells.priors[a].sum()
                    continue
                for label in range(k):
                    sums, squares = sizes[:, a, label]
                    eps = uniform_deviation(sums**2 / squares, error)
                    step = min(eps * cells.priors[a, label], drifted[a, label, i])
                    drifted[a, label, i] -= step
                    drifted[a, label, j] += step
            before = np.tensordot(G, C, axes=3)
            after = np.tensordot(G, drifted, axes=3)
            assert (after <= before + bounds.values + 1e-12).all()
            if tight.violation(C, cells) <= 0:
                assert constraint.violation(drifted, cells) <= 1e-12


def test_differences_have_no_more_to_spare_than_their_slack():
    *_, cells, sizes = make_sample(new_rng(2), 2, 2)
    (bounds,) = find_bounds([EqualOpportunity(slack=0.001)], cells, sizes, 0.95)
    assert (bounds.values > 0.001).all()
    _, h = moved(bounds.constraint, bounds.values, of_rates=False).linear(cells)
    assert h.tolist() == [0.0] * len(h)


def test_all_constraints_hold_together():
    *_, cells, sizes = make_sample(new_rng(3), 2, 2)
    one = Recall(at_least=0.5, label=1)
    other = Recall(at_least=0.5, label=0)
    alone = find_bounds([one], cells, sizes, 0.95)[0].values
    together = find_bounds([one, other], cells, sizes, 0.9)[0].values
    np.testing.assert_allclose(alone, together)
    again = find_bounds([one, one], cells, sizes, 0.95)
    np.testing.assert_allclose(again[1].values, alone)


def test_what_is_no_rate_has_no_bound():
    *_, cells, sizes = make_sample(new_rng(4), 2, 2)
    with pytest.raises(ValueError, match="on rates; got Quantification"):
        find_bounds([Quantification(0.1)], cells, sizes, 0.95)
