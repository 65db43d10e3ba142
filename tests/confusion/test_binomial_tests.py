"""Constraints as statements on binomial rates."""

import numpy as np
import pytest
from _seeds import new_rng
from scipy.stats import binom

from sklearn_structsvm import ComplexMetricClassifier, metrics
from sklearn_structsvm._utils.conditions import largest_violation
from sklearn_structsvm.confusion.binomial_tests import (
    RateSum,
    RateSums,
    _whole_sums,
    allowance,
    broken_p_value,
    enough_factor,
    one_standard_error,
    p_value,
    rate_sums,
)
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.moved import moved


def random_counts(k, n=4000, n_groups=3, seed=0):
    """Counts (m, k, k) and the cells of their shares."""
    shares = new_rng(seed).dirichlet(np.ones(n_groups * k * k) * 5)
    counts = new_rng(seed + 1).multinomial(n, shares).reshape(n_groups, k, k)
    priors = counts.sum(axis=2) / n
    cells = Cells(priors, np.arange(k), np.arange(n_groups), list("abc"[:n_groups]))
    return counts.astype(float), cells


CONSTRAINTS = [
    (metrics.Recall(at_least=0.4, label=1), 1),
    (metrics.Recall(at_most=0.9, label=1, group="b"), 1),
    (metrics.Specificity(at_least=0.2, label=1), 1),
    (metrics.SelectionRate(at_most=0.7, label=1), 1),
    (metrics.Precision(at_least=0.3, label=1), 1),
    (metrics.Precision(at_most=0.9, label=1, per_group=True), 1),
    (metrics.MetricBound("zero_one", at_most=0.8), 1),
    (metrics.EqualOpportunity(slack=0.3, reference="groups", pos_label=1), 2),
    (metrics.EqualOpportunity(slack=0.3, reference="overall", pos_label=1), 2),
    (metrics.EqualOpportunity(bound="ratio", reference="groups", pos_label=1), 2),
    (metrics.DemographicParity(slack=0.3, reference="groups"), 2),
    (metrics.EqualizedOdds(slack=0.3, reference="groups"), 2),
]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("constraint", "n_rates"), CONSTRAINTS, ids=str)
def test_the_rates_are_those_that_the_constraint_is_about(k, constraint, n_rates):
    counts, cells = random_counts(k)
    found = rate_sums(constraint, cells, counts)
    C = counts / counts.sum()
    G, h = constraint.linear(cells)
    D = constraint.denominators(cells)
    violations = np.tensordot(G, C, axes=3) + h
    if D is not None:
        violations = violations / np.tensordot(D, C, axes=3)
    assert found.violations == pytest.approx(violations, abs=1e-12)
    assert max(violations) == pytest.approx(constraint.violation(C, cells))
    for each in found:
        # As few as can be, and of different examples, so that tests of them are sharp.
        assert len(each.costs) == n_rates and each.independent
        assert (each.k <= each.n).all() and (each.costs > 0).all()


def test_a_precision_is_among_the_predicted():
    counts, cells = random_counts(2)
    (found,) = rate_sums(metrics.Precision(at_least=0.3, label=1), cells, counts)
    assert found.n[0] == counts[:, :, 1].sum()
    # Of what is wrong among them there may be 0.7.
    assert found.k[0] == counts[:, 0, 1].sum() and found.bound == pytest.approx(0.7)


def test_more_than_two_values_are_a_sum_of_rates():
    counts, cells = random_counts(3, n_groups=1)
    ordinal = metrics.MetricBound("ordinal", at_most=1.5)
    sums = rate_sums(ordinal, cells, counts)
    (found,) = sums
    assert not found.independent and len(found.costs) > 1
    C = counts / counts.sum()
    assert sums.violations == pytest.approx([ordinal.violation(C, cells)])
    assert 0.0 <= found.p_value(0.05) <= 1.0


def test_a_group_without_held_out_examples_is_not_certified():
    counts, cells = random_counts(2)
    fair = metrics.EqualOpportunity(slack=0.9, reference="groups", pos_label=1)
    assert p_value(rate_sums(fair, cells, counts), 0.05) <= 0.05
    counts[1] = 0.0
    assert p_value(rate_sums(fair, cells, counts), 0.05) == 1.0


def test_a_shift_moves_the_violation_by_as_much():
    counts, cells = random_counts(2)
    C = counts / counts.sum()
    for constraint in (c for c, _ in CONSTRAINTS):
        strict = moved(constraint, np.full(len(constraint.linear(cells)[1]), 0.02))
        before, after = (c.violation(C, cells) for c in (constraint, strict))
        assert after - before == pytest.approx(0.02)


def test_a_shift_of_the_numerator_moves_a_ratio_by_a_multiple_of_it():
    counts, cells = random_counts(2)
    C = counts / counts.sum()
    precision = metrics.Precision(at_least=0.7, label=1)
    strict = moved(precision, 0.02, of_rates=False)
    before, after = (c.violation(C, cells) for c in (precision, strict))
    assert after - before == pytest.approx(0.02 / C[..., 1].sum())


@pytest.mark.parametrize("bound", [1.05, 1.2])
def test_four_of_five_samples_that_are_said_to_be_enough_are_certified(bound):
    # A rate of one group, and one minus that of another one.
    p, n = np.array([0.6, 0.4]), np.array([50.0, 300.0])
    small = RateSums.of([RateSum(np.ones(2), p * n, n, bound)])
    factor = enough_factor(small.spares[0], 0.05, 0.5)
    larger, rng, certified = np.round(factor * n), new_rng(3), []
    for _ in range(200):
        # The rule is as wrong as the other half of the rows has made it.
        true = p + rng.normal(size=2) * np.sqrt(p * (1.0 - p) / larger)
        k = rng.binomial(larger.astype(int), true)
        found = RateSum(np.ones(2), k, larger, bound).p_value(0.05)
        certified.append(found <= 0.05)
    # Five standard errors of the share.
    assert 0.65 <= np.mean(certified) <= 0.95
    assert enough_factor(-0.1, 0.05, 0.5) is None


def test_a_rate_is_broken_where_so_few_would_be_rare_if_it_held():
    counts = np.array([[[50.0, 0.0], [62.0, 38.0]]])
    cells = Cells(counts.sum(axis=2) / counts.sum(), np.arange(2), np.arange(1), ["a"])
    for low in (0.3, 0.4, 0.5):
        sums = rate_sums(metrics.Recall(at_least=low, label=1), cells, counts)
        expected = 1.0 if low < 0.38 else binom.cdf(38, 100, low)
        assert broken_p_value(sums, 0.05) == pytest.approx(expected)


def test_the_allowance_is_what_would_be_certified():
    counts, cells = random_counts(2, n=300)
    for kind in (metrics.Recall, metrics.Precision):
        low = allowance(rate_sums(kind(at_least=0.97, label=1), cells, counts), 0.05)
        looser = kind(at_least=0.97 - low, label=1)
        assert p_value(rate_sums(looser, cells, counts), 0.05) <= 0.05
        stricter = kind(at_least=0.97 - low + 0.01, label=1)
        assert p_value(rate_sums(stricter, cells, counts), 0.05) > 0.05


@pytest.mark.parametrize("bound", ["difference", "ratio"])
@pytest.mark.parametrize("kind", [metrics.DemographicParity, metrics.EqualizedOdds])
def test_pairs_of_many_groups_are_those_of_the_conditions(kind, bound):
    counts = new_rng(6).integers(0, 60, (7, 2, 2)).astype(float)
    counts[0] += 1.0
    priors = counts.sum(axis=2) / counts.sum()
    cells = Cells(priors, np.arange(2), np.arange(7), list("abcdefg"))
    limit = {"slack": 0.1} if bound == "difference" else {"ratio": 0.8}
    fair = kind(bound=bound, reference="groups", **limit)
    assert fair._conditions(cells).halves.any()
    found = rate_sums(fair, cells, counts)
    whole = _whole_sums(fair.linear(cells)[0], fair.linear(cells)[1],
                        fair.denominators(cells), cells, counts)  # fmt: skip
    assert found.violations == pytest.approx(RateSums.of(whole).violations)
    for pair, one in zip(found, whole, strict=True):
        np.testing.assert_allclose(sorted(pair.costs), sorted(one.costs))
        assert sorted(pair.k / pair.costs) == pytest.approx(sorted(one.k / one.costs))
        assert pair.bound == pytest.approx(one.bound)
        assert pair.unit == pytest.approx(one.unit)
    for error in (0.05, 0.3):
        exact = max(one.p_value(error) for one in whole)
        p, index = found.decisive(error)
        assert p == pytest.approx(max(exact, min(p, 0.1 * error)))
        if exact > 0.1 * error:
            assert found[index].p_value(error) == pytest.approx(exact)


def test_two_halves_that_are_stricter_are_so_by_an_error_of_each_pair():
    counts = new_rng(12).integers(20, 60, (6, 2, 2)).astype(float)
    priors = counts.sum(axis=2) / counts.sum()
    cells = Cells(priors, np.arange(2), np.arange(6), list("abcdef"))
    fair = metrics.EqualOpportunity(slack=0.5)
    by = one_standard_error(fair, cells, counts)
    halves = fair._conditions(cells).halves
    upper, lower = by[halves > 0], by[halves < 0]
    pairs = rate_sums(fair, cells, counts).standard_errors
    of_pairs = [upper[a] + lower[b] for a in range(6) for b in range(6) if a != b]
    assert (np.array(of_pairs) >= np.array(pairs) - 1e-12).all()
    assert max(of_pairs) <= np.sqrt(2.0) * max(pairs)
    # Groups of equal errors get exactly these.
    even = np.tile([[30.0, 10.0], [10.0, 30.0]], (6, 1, 1))
    priors = even.sum(axis=2) / even.sum()
    cells = Cells(priors, np.arange(2), np.arange(6), list("abcdef"))
    by = one_standard_error(fair, cells, even)
    np.testing.assert_allclose(by, rate_sums(fair, cells, even).standard_errors[0] / 2.0)
    # The conditions stay in halves, and are no stricter than without any slack.
    strict = moved(fair, by)._conditions(cells)
    assert len(strict.h) == 12
    np.testing.assert_allclose(strict.h, fair._conditions(cells).h + by)
    least = moved(metrics.EqualOpportunity(slack=0.01), by)._conditions(cells)
    assert largest_violation(least.h, None, least.halves) <= 1e-12


@pytest.mark.parametrize("confidence", ["uniform", 0.5])
def test_more_pairs_of_groups_than_can_be_tested_are_refused(confidence):
    n = 2400
    X, y, groups = np.arange(n)[:, None] % 7, np.arange(n) % 2, np.arange(n) // 2 % 120
    model = ComplexMetricClassifier(
        constraints=metrics.EqualOpportunity(), constraint_confidence=0.9,
        solver_options={"constraint_calibration": confidence, "min_group_size": None},
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"120 groups, which are 14,400 pairs"):
        model.fit(X, y, sensitive_features=groups)
