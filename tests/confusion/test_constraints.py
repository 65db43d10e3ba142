"""Constraints: forms against values computed from labels, and what is none."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from sklearn import metrics as sk
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from sklearn_structsvm.confusion import Cells, ConfusionMetric, Constraint
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    FBeta,
    GMean,
    LinearLoss,
    MetricBound,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
    Specificity,
    confusion_tensor,
)

CLASSES = np.array(["a", "b", "c"])
GROUPS = ["f", "m"]
BASELINE = DummyClassifier(strategy="constant", constant="a").fit([[0], [0]], ["a", "b"])

LINEAR = [
    Recall(at_least=0.6),
    Recall(at_most=0.4, label="b"),
    Recall(target=0.5, slack=0.1, group="m"),
    Recall(at_least={"a": 0.7, "c": 0.2}, at_most={"a": 0.9}, per_group=True),
    FalsePositiveRate(at_most=0.1, label="c"),
    FalsePositiveRate(at_most=[0.1, 0.2, 0.3], per_group=True),
    SelectionRate(target="priors", slack=0.01),
    SelectionRate(target=[0.2, 0.3, 0.5], slack=0.0, group="f"),
    SelectionRate(target="priors", slack=0.05, label="a"),
    SelectionRate(at_most=0.2, label="a", per_group=True),
    DemographicParity(slack=0.02),
    DemographicParity(reference="groups", pos_label="b"),
    EqualOpportunity(slack=0.02),
    EqualOpportunity(reference="groups", slack=0.0),
    EqualizedOdds(slack=0.02),
    EqualizedOdds(reference="groups", pos_label="c"),
    Churn(BASELINE, 0.3),
    Churn(BASELINE, 0.3, label="b"),
    Churn(BASELINE, 0.3, label="c", per_group=True),
    MetricBound("balanced", at_least=0.5),
    MetricBound("min_max", at_most=0.3, group="m"),
    MetricBound("zero_one", at_most=0.3, per_group=True),
    MetricBound(LinearLoss([[0, 1, 2], [3, 0, 1], [1, 1, 0]]), at_most=0.5),
]
# Linear after multiplication by what is positive: of the same sign as the violation.
SCALED = [
    Precision(at_least=0.5),
    Precision(at_most=0.5, label="b", group="f"),
    Precision(target=0.5, slack=0.1, per_group=True),
    DemographicParity(bound="ratio"),
    EqualOpportunity(bound="ratio", reference="groups"),
    EqualizedOdds(bound="ratio", ratio=0.5),
    MetricBound("micro_f1", at_least=0.5),
    MetricBound(FBeta(2.0, pos_label="b"), at_least=0.5, per_group=True),
    MetricBound("kappa", at_most=0.5, group="f"),
]
CONVEX = [
    Quantification(0.05),
    Quantification(0.01, target=[0.2, 0.3, 0.5]),
    Quantification(0.01, target={"a": 0.5, "b": 0.5}, group="m"),
    Quantification(0.01, per_group=True),
    MetricBound("g_mean", at_least=0.5),
    MetricBound("h_mean", at_least=0.5, group="f"),
    MetricBound("q_mean", at_most=0.4, per_group=True),
]
ALL = [*LINEAR, *SCALED, *CONVEX]


def tensor(rng, concentration=1.0, priors=None):
    """A random tensor with two groups and three baseline labels, and its cells."""
    if priors is None:
        priors = rng.dirichlet(np.ones(18)).reshape(6, 3)
    rows = rng.gamma(concentration, size=(6, 3, 3)) + 1e-12
    cells = Cells(
        priors, CLASSES, groups=np.repeat([0, 1], 3), group_names=GROUPS,
        baseline=np.tile([0, 1, 2], 2),
    )  # fmt: skip
    return rows / rows.sum(axis=-1, keepdims=True) * priors[:, :, None], cells


def sample(seed=0, n=150):
    rng = new_rng(seed)
    y = rng.integers(3, size=n)
    guess = np.where(rng.random(n) < 0.6, y, rng.integers(3, size=n))
    groups = np.array(GROUPS)[rng.integers(2, size=n)]
    return CLASSES[y], CLASSES[guess], groups, rng.integers(4, size=n) / 2.0


@pytest.mark.parametrize("constraint", LINEAR, ids=repr)
def test_linear_conditions_have_the_value_of_the_violation(constraint):
    rng = new_rng(0)
    for _ in range(20):
        C, cells = tensor(rng, 10 ** rng.uniform(-1, 1))
        constraint.check(cells)
        G, h = constraint.linear(cells)
        assert G.shape == (len(h), 6, 3, 3)
        values = np.tensordot(G, C, axes=3) + h
        assert values.max() == pytest.approx(constraint.violation(C, cells), abs=1e-12)


@pytest.mark.parametrize("constraint", SCALED, ids=repr)
def test_scaled_conditions_have_the_sign_of_the_violation(constraint):
    rng = new_rng(0)
    signs = set()
    for _ in range(60):
        C, cells = tensor(rng, 10 ** rng.uniform(-1, 2))
        constraint.check(cells)
        G, h = constraint.linear(cells)
        met = (np.tensordot(G, C, axes=3) + h).max() <= 0.0
        assert met == (constraint.violation(C, cells) <= 0.0)
        signs.add(bool(met))
    assert not constraint.has_convex
    assert False in signs


@pytest.mark.parametrize("constraint", CONVEX, ids=repr)
def test_convex_conditions_are_above_their_tangents(constraint):
    assert constraint.has_convex
    rng = new_rng(0)
    for _ in range(20):
        C, cells = tensor(rng, 10 ** rng.uniform(-1, 1))
        # Below a billionth of a recall the tangent is that at a billionth.
        C = 0.999 * C + 0.001 / 3.0 * cells.priors[..., np.newaxis]
        constraint.check(cells)
        assert len(constraint.linear(cells)[1]) == 0
        value = partial(constraint.convex_value, cells=cells)
        assert value(C) == constraint.violation(C, cells)
        G, h = constraint.convex_tangent(C, cells)
        np.testing.assert_array_equal(G, constraint.convex_gradient(C, cells))
        assert np.vdot(G, C) + h == pytest.approx(value(C), abs=1e-12)
        for concentration in (0.1, 1.0, 10.0):
            other, _ = tensor(rng, concentration, cells.priors)
            assert np.vdot(G, other) + h <= value(other) + 1e-12
            middle = 0.3 * C + 0.7 * other
            assert value(middle) <= 0.3 * value(C) + 0.7 * value(other) + 1e-12


@pytest.mark.parametrize("constraint", ALL, ids=repr)
def test_constraints_are_cloned_and_pickled(constraint):
    C, cells = tensor(new_rng(1))
    expected = constraint.violation(C, cells)
    for copy in (clone(constraint), pickle.loads(pickle.dumps(constraint))):
        assert copy is not constraint
        assert copy.get_params().keys() == constraint.get_params().keys()
        assert copy.violation(C, cells) == expected
    if isinstance(constraint, Churn):
        # The baseline stays fitted, inside of a list as well.
        assert clone([constraint])[0].baseline is BASELINE


@pytest.mark.parametrize("group", [None, "f", "m"])
@pytest.mark.parametrize("label", CLASSES)
def test_rates_agree_with_scikit_learn(label, group):
    y, guess, groups, weights = sample()
    rows = np.ones(len(y), dtype=bool) if group is None else groups == group
    s = {"sample_weight": weights[rows]}
    one = {"labels": [label], "average": "macro", **s}
    is_true, is_said = y[rows] == label, guess[rows] == label
    of_others = sk.recall_score(~is_true, ~is_said, **s)
    expected = {
        Recall: sk.recall_score(y[rows], guess[rows], **one),
        Precision: sk.precision_score(y[rows], guess[rows], **one),
        SelectionRate: np.average(is_said, weights=weights[rows]),
        FalsePositiveRate: 1.0 - of_others,
        Specificity: of_others,
    }
    for kind, rate in expected.items():
        # As a metric, by one of its two names for two labels, and as a constraint.
        metric = kind(label=label)(y[rows], guess[rows], **s)
        assert metric == pytest.approx(rate)
        assert kind()(is_true, is_said, **s) == pytest.approx(rate)
        for bounds, violation in (
            ({"at_least": 0.5}, 0.5 - rate),
            ({"at_most": 0.2}, rate - 0.2),
            ({"target": 0.4, "slack": 0.05}, abs(rate - 0.4) - 0.05),
        ):
            constraint = kind(label=label, group=group, **bounds)
            found = constraint(y, guess, sensitive_features=groups, sample_weight=weights)
            assert found == pytest.approx(violation, abs=1e-12)


@pytest.mark.parametrize("kind", [Recall, Precision, SelectionRate, FalsePositiveRate])
def test_bounds_without_a_label_or_in_every_group_are_the_worst_of_each(kind):
    y, guess, groups, _ = sample()
    call = {"sensitive_features": groups}
    each = [kind(at_least=0.5, label=c)(y, guess, **call) for c in CLASSES]
    assert kind(at_least=0.5)(y, guess) == pytest.approx(max(each), abs=1e-12)
    each = [kind(at_least=0.5, group=g)(y, guess, **call) for g in GROUPS]
    found = kind(at_least=0.5, per_group=True)(y, guess, **call)
    assert found == pytest.approx(max(each), abs=1e-12)


def test_bounds_by_class_are_one_for_each():
    y, guess, _, _ = sample()
    bounds = {"a": 0.9, "b": 0.1, "c": 0.6}
    each = [Recall(at_least=v, label=c)(y, guess) for c, v in bounds.items()]
    worst = pytest.approx(max(each), abs=1e-12)
    assert Recall(at_least=bounds)(y, guess) == worst
    assert Recall(at_least=list(bounds.values()))(y, guess) == worst
    assert Recall(at_least={"b": 0.1})(y, guess) == pytest.approx(each[1], abs=1e-12)


def test_a_class_that_is_never_predicted_meets_every_bound_on_precision():
    constraint = Precision(label="b", at_least=0.9)
    assert constraint(["a", "b"], ["a", "a"]) == 0.0
    C, cells = confusion_tensor(["a", "b"], ["a", "a"])
    G, h = constraint.linear(cells)
    assert np.tensordot(G, C, axes=3) + h <= 0.0


def test_parity_is_the_papers_table():
    y, guess, groups, weights = sample()
    parity, opportunity, odds = [0.0], [0.0], [0.0]
    for group in GROUPS:
        inside = groups == group
        for i in CLASSES:
            share = np.average(guess[inside] == i, weights=weights[inside])
            parity.append(abs(share - np.average(guess == i, weights=weights)))
            for j in CLASSES:
                rows, all_rows = inside & (y == i), y == i
                rate = np.average(guess[rows] == j, weights=weights[rows])
                overall = np.average(guess[all_rows] == j, weights=weights[all_rows])
                odds.append(abs(rate - overall))
                if i == j:
                    opportunity.append(odds[-1])
    call = {"sensitive_features": groups, "sample_weight": weights}
    for constraint, differences in (
        (DemographicParity(slack=0.03, reference="overall"), parity),
        (EqualOpportunity(slack=0.03, reference="overall"), opportunity),
        (EqualizedOdds(slack=0.03, reference="overall"), odds),
    ):
        assert constraint(y, guess, **call) == pytest.approx(max(differences) - 0.03)


def test_a_group_without_examples_of_a_class_is_left_out_and_proves_nothing():
    y, guess = [0, 1, 0, 0], [0, 1, 1, 0]
    C, cells = confusion_tensor(y, guess, sensitive_features=["f", "f", "m", "m"])
    assert EqualOpportunity().violation(C, cells) == 0.0
    for constraint in (
        EqualOpportunity(),
        EqualOpportunity(reference="groups"),
        Recall(at_least=0.5, per_group=True),
        MetricBound("balanced", at_least=0.3, per_group=True),
    ):
        G, h = constraint.linear(cells)
        assert np.isfinite(G).all() and np.isfinite(h).all()
        assert np.isfinite(constraint.violation(C, cells))


def test_churn_is_the_share_of_changed_predictions():
    y, guess, groups, weights = sample()
    baseline = np.where(np.arange(len(y)) % 3 == 0, "b", guess)
    call = {"sensitive_features": groups, "sample_weight": weights,
            "y_baseline": baseline}  # fmt: skip
    for rows, constraint in (
        (slice(None), Churn(BASELINE, 0.1)),
        (baseline == "b", Churn(BASELINE, 0.1, label="b")),
        (groups == "m", Churn(BASELINE, 0.1, group="m")),
    ):
        changed = guess[rows] != baseline[rows]
        expected = np.average(changed, weights=weights[rows]) - 0.1
        assert constraint(y, guess, **call) == pytest.approx(expected, abs=1e-12)


def test_quantification_is_the_divergence_and_finite_where_that_is_not():
    y, guess, groups, _ = sample()
    p, q = (np.array([np.mean(v == c) for c in CLASSES]) for v in (y, guess))
    assert Quantification(0.01)(y, guess) == pytest.approx(p @ np.log(p / q) - 0.01)
    each = [
        Quantification(0.01, group=g)(y, guess, sensitive_features=groups) for g in GROUPS
    ]
    constraint = Quantification(0.01, per_group=True)
    assert constraint(y, guess, sensitive_features=groups) == max(each)
    assert 0.0 < Quantification(0.01)(y, np.where(guess == "a", "b", guess)) < np.inf


def test_continuing_the_logarithm_changes_no_point_within_the_bound():
    rng = new_rng(0)
    cells = Cells.single([0.2, 0.3, 0.5], CLASSES)
    for _ in range(2000):
        p = rng.dirichlet(np.full(3, 0.3)) * 0.97 + 0.01
        p /= p.sum()
        q = rng.dirichlet(np.full(3, 0.3)) * (1 - 1e-9) + 1e-9 / 3
        constraint = Quantification(10 ** rng.uniform(-3, 0), target=p)
        exact = p @ np.log(p / q) - constraint.at_most
        found = constraint.violation(np.outer([0.2, 0.3, 0.5], q)[None], cells)
        assert (found <= 0.0) == (exact <= 0.0)
        assert found <= exact + 1e-12
        if exact <= 0.0:
            assert found == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-8])
def test_a_rare_class_that_is_never_predicted_is_out_of_the_bound(share):
    p = np.array([0.5, 0.5 - share, share])
    cells = Cells.single(p, CLASSES)
    # Never, hardly ever, as often as it occurs.
    C = {q: np.outer(p, [0.5, 0.5 - q, q])[None] for q in (0.0, 1e-11 * share, share)}
    for at_most in (1e-3, 1e-2, 1.0):
        constraint = Quantification(at_most)
        never, hardly, right = (constraint.violation(D, cells) for D in C.values())
        assert never > 0.0
        # Steeper than the logarithm next to 0, and the same elsewhere.
        assert right == pytest.approx(-at_most)
        q = 1e-11 * share
        exact = p @ np.log(p / [0.5, 0.5 - q, q]) - at_most
        assert (hardly <= 0.0) == (exact <= 0.0)
        G, h = constraint.convex_tangent(np.zeros(cells.shape), cells)
        assert np.vdot(G, C[q]) + h <= hardly + 1e-9
        assert np.vdot(G, C[share]) + h <= right + 1e-9


def test_bounds_of_metrics_are_in_the_metrics_own_units():
    y, guess, groups, weights = sample()
    g_mean = GMean()(y, guess, sample_weight=weights)
    for bound in ({"at_least": 0.9}, {"at_most": 0.1}):
        found = MetricBound(GMean(), **bound)(y, guess, sample_weight=weights)
        assert found == pytest.approx(0.9 - g_mean)
    rows = groups == "m"
    f1 = sk.f1_score(y[rows], guess[rows], labels=["c"], average="macro")
    constraint = MetricBound(FBeta(pos_label="c"), at_least=0.9, group="m")
    assert constraint(y, guess, sensitive_features=groups) == pytest.approx(0.9 - f1)


def test_a_metric_of_groups_can_be_bounded():
    class WorstGroup(ConfusionMetric):
        convex = needs_groups = True

        def value(self, C):
            return float((1 - C.trace(axis1=1, axis2=2) / C.sum(axis=(1, 2))).max())

    constraint = MetricBound(WorstGroup(), at_most=0.3)
    assert constraint.needs_groups and constraint.has_convex
    y, guess, groups, _ = sample()
    worst = max(np.mean(y[groups == g] != guess[groups == g]) for g in GROUPS)
    assert constraint(y, guess, sensitive_features=groups) == pytest.approx(worst - 0.3)
    C, cells = tensor(new_rng(0))
    G, h = constraint.convex_tangent(C, cells)
    assert G.shape == cells.shape
    assert np.vdot(G, C) + h == pytest.approx(constraint.violation(C, cells))
    with pytest.raises(ValueError, match="supports neither group nor per_group"):
        MetricBound(WorstGroup(), at_most=0.3, group="m").check(cells)


def test_a_users_constraint_needs_linear_alone():
    class NoMoreLastThanFirst(Constraint):
        def linear(self, cells):
            G = np.zeros((1, *cells.shape))
            G[..., -1], G[..., 0] = 1.0, -1.0
            return G, np.zeros(1)

    y, guess, _, _ = sample()
    expected = np.mean(guess == "c") - np.mean(guess == "a")
    assert NoMoreLastThanFirst()(y, guess) == pytest.approx(expected)


def test_each_feature_counts_for_itself():
    rng = new_rng(40)
    y, predicted = rng.integers(0, 2, (2, 300))
    sex, race = rng.choice(["f", "m"], 300), rng.choice(["a", "b", "c"], 300)
    both = pd.DataFrame({"sex": sex, "race": race})
    for kind in (DemographicParity, EqualOpportunity, EqualizedOdds):
        for bound in ("difference", "ratio"):
            for place, name in enumerate(both.columns):
                alone = kind(bound=bound, pos_label=1)(
                    y, predicted, sensitive_features=both[name]
                )
                for features, feature in ((both, name), (both.to_numpy(), place)):
                    constraint = kind(bound=bound, feature=feature, pos_label=1)
                    found = constraint(y, predicted, sensitive_features=features)
                    assert found == pytest.approx(alone, abs=1e-12)
    with pytest.raises(ValueError, match=r"'age' is not a column.*'sex', 'race'"):
        EqualOpportunity(feature="age")(y, predicted, sensitive_features=both)
    with pytest.raises(ValueError, match=r"feature=2 is not a column.*\[0, 1\]"):
        EqualOpportunity(feature=2)(y, predicted, sensitive_features=both.to_numpy())


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Recall(), "needs at_least, at_most, or target"),
        (Recall(at_least=1.5), "at_least must be a number from 0.0 to 1.0, got 1.5"),
        (Recall(at_least="priors"), "at_least must be a number, got 'priors'"),
        (Recall(at_least=0.5, at_most=0.4), "at_least=0.5 is above at_most=0.4"),
        (Recall(target=0.5), "target requires slack"),
        (Recall(at_least=0.5, slack=0.1), "slack requires target"),
        (Recall(at_least=0.5, label="x"), "label='x' is not a class"),
        (Recall(at_least={"x": 0.5}), "at_least='x' is not a class"),
        (Recall(at_least=[0.1, 0.2]), "a dict by label or 3 numbers"),
        (Recall(at_least=[[0.1], [0.2, 0.3]]), "at_least must be an array"),
        (Recall(at_least=[0.1] * 3, label="a"), "at_least must be a number"),
        (Recall(at_least=0.5, group="x"), "group='x' is not a group"),
        (Recall(at_least=0.5, group="f", per_group=True), "but not both"),
        (Recall(at_least=0.5, per_group=np.ones(2)), "per_group must be True or False"),
        (Quantification(0.1, per_group=[]), "per_group must be True or False"),
        (DemographicParity(slack=-1), "slack must be a number from 0.0"),
        (DemographicParity(bound="ratio", ratio=1.2), "ratio must be a number"),
        (DemographicParity(bound=np.array(["ratio"])), "bound must be one of"),
        (EqualOpportunity(pos_label=1), "pos_label=1 is not a class"),
        (Churn(np.ones(2), 0.1), "baseline must be a fitted classifier"),
        (Churn(BASELINE, 2), "at_most must be a number from 0.0 to 1.0"),
        (Churn(BASELINE, 0.1, label="x"), "label='x' is not a class"),
        (Quantification(0.0), "at_most must be positive"),
        (Quantification(-1.0), "at_most must be a number"),
        (Quantification(0.1, target=[1.0]), r"target must have shape \(3,\)"),
        (Quantification(0.1, target=[0.5, 0.6, 0.1]), "target must be 3 non-negative"),
        (Quantification(0.1, target={"a": "all"}), "target must hold numbers"),
        (Quantification(0.1, target={"x": 1.0}), "target='x' is not a class"),
        (MetricBound("g_mean"), "exactly one of at_most and at_least"),
        (MetricBound("g_mean", at_most=0.1, at_least=0.9), "exactly one of at_most"),
        (MetricBound("macro_f1", at_least=0.5), "MacroF1 cannot be bounded"),
        (MetricBound("ordinal", at_least=0.5), "Ordinal is a cost"),
        (MetricBound("f1", at_least=0.5), r"FBeta.*pos_label to one of \['a', 'b', 'c'"),
        (MetricBound("nothing", at_least=0.5), "metric='nothing' is unknown"),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value),
)
def test_constraints_that_make_no_sense_are_refused(constraint, message):
    with pytest.raises(ValueError, match=message):
        constraint.check(tensor(new_rng())[1])


@pytest.mark.parametrize(
    "constraint",
    [
        DemographicParity(),
        EqualOpportunity(),
        EqualizedOdds(),
        Recall(at_least=0.5, per_group=True),
        Recall(at_least=0.5, group="m"),
        Quantification(0.1, group="m"),
        Quantification(0.1, per_group=True),
        MetricBound("g_mean", at_least=0.5, per_group=True),
        Churn(BASELINE, 0.1, group="m"),
    ],
    ids=repr,
)
def test_constraints_on_groups_ask_for_them(constraint):
    assert constraint.needs_groups
    with pytest.raises(ValueError, match="needs sensitive_features"):
        constraint(["a", "b"], ["a", "b"], y_baseline=["a", "b"])


def test_churn_asks_for_the_baselines_labels():
    with pytest.raises(ValueError, match="y_baseline"):
        Churn(BASELINE, 0.1)(["a", "b"], ["a", "b"])
    C, cells = np.eye(2)[np.newaxis] / 2, Cells.single([0.5, 0.5])
    with pytest.raises(ValueError, match="y_baseline"):
        Churn(BASELINE, 0.1).violation(C, cells)


@pytest.mark.parametrize("at_most", [None, "x", -1.0, np.nan])
def test_a_bound_that_is_no_number_is_refused_where_it_is_used(at_most):
    C, cells = np.eye(2)[np.newaxis] / 2, Cells.single([0.5, 0.5])
    with pytest.raises(ValueError, match="^at_most must be a number"):
        Quantification(at_most).violation(C, cells)
