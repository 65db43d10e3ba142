"""Constraints that are tightened so as to hold for new examples, whatever the rule."""

import warnings

import numpy as np
import pytest
from _mixtures import Scored, make_data, recalls_of_groups
from _options import placed, set_placed
from _seeds import new_rng
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion.tightening import find_bounds
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualOpportunity,
    Precision,
    Quantification,
    Recall,
    SelectionRate,
    confusion_tensor,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# Constraints of all kinds are tried, some of which do not need the groups.
pytestmark = pytest.mark.filterwarnings("ignore:sensitive_features were passed")


def confident(constraints, confidence=0.95, **params):
    return placed(ComplexMetricClassifier)(
        constraints=constraints,
        constraint_confidence=confidence,
        solver_options={"constraint_calibration": "uniform"},
        **params,
    )


def test_the_constraint_holds_for_the_population_as_often_as_said():
    rng, n_fits, slack = new_rng(0), 40, 0.3
    held = {None: 0, 0.8: 0}
    # Without the constraint the recalls are .75 and .31.
    for _ in range(n_fits):
        groups = (rng.random(600) < 0.4).astype(int)
        u = rng.random(600)
        of_one = np.where(groups, 0.6 * u, u)
        y = (rng.random(600) < of_one).astype(int)
        for confidence in held:
            fair = EqualOpportunity(slack=slack, reference="groups")
            model = confident(fair, confidence, metric="zero_one", estimator=Scored())
            model.set_params(cv="prefit", confusion="labels").fit(
                of_one[:, None], y, sensitive_features=groups
            )
            one, other = recalls_of_groups(model)
            held[confidence] += abs(one - other) <= slack
            if confidence is not None:
                (bounds,) = model.constraint_bounds_
                assert model.constraint_violation_ <= 1e-9 - max(bounds.values())
    # The probability is at least .8, less six standard deviations of the share.
    assert held[0.8] / n_fits >= 0.8 - 6 * 0.4 / np.sqrt(n_fits)
    assert held[0.8] > held[None]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "constraint",
    [
        EqualOpportunity(slack=0.8),
        DemographicParity(slack=0.5, reference="groups"),
        Recall(at_least=0.2, label=1),
        # Label 1 is the label of a fifth of the rows: it may always be predicted.
        Precision(at_least=0.1, label=1),
        SelectionRate(target="priors", slack=0.25),
        Churn(LogisticRegression(), at_most=0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("params", [{}, {"group_blind": True}, {"cv": 3}], ids=str)
def test_what_is_met_is_met_by_more_than_the_bound(k, constraint, params):
    X, y, groups = make_data(k)
    for label in range(k):
        # In equal parts: of fewer in a group a recall is not known to .8.
        rows = np.flatnonzero(y == label)
        groups[rows[::2]], groups[rows[1::2]] = "old", "young"
    if isinstance(constraint, Churn):
        constraint.baseline.fit(X, y)
    model = confident(constraint, metric="h_mean", **params)
    model.fit(X, y, sensitive_features=groups)
    metadata = {}
    if model.groups_ is not None:
        metadata["sensitive_features"] = groups
    if isinstance(constraint, Churn):
        metadata["y_baseline"] = constraint.baseline.predict(X)
    _, cells = confusion_tensor(y, y, labels=np.arange(k), **metadata)
    (bounds,) = find_bounds([constraint], cells, [cells.priors * len(y)] * 2, 0.95)
    assert (bounds.values > 0).all()
    G, h = constraint.linear(cells)
    left = np.tensordot(G, model.cell_confusions_, axes=3) + h + bounds.values
    assert left.max() <= 1e-9
    expected = bounds.by_group(cells.group_names)
    assert model.constraint_bounds_ == [pytest.approx(expected)]


def test_without_constraints_there_is_nothing_to_tighten():
    X, y, _ = make_data(2)
    model = confident((), metric="h_mean").fit(X, y)
    # Which are labels that are counted, whatever is asked for.
    free = ComplexMetricClassifier(metric="h_mean", confusion="labels").fit(X, y)
    assert model.constraint_bounds_ == []
    np.testing.assert_array_equal(model.loss_matrices_, free.loss_matrices_)
    assert not hasattr(free, "constraint_bounds_")


def test_more_examples_are_tightened_less_and_weights_count():
    X, y, groups = make_data(2, n=2000)
    widths = []
    for n, weights in ((300, None), (2000, None), (2000, 7.0), (2000, "some")):
        if weights == "some":
            w = (np.arange(n) < 300).astype(float)
        else:
            w = None if weights is None else np.full(n, weights)
        model = confident(Recall(at_least=0.3, label=1), cv=None)
        model.fit(X[:n], y[:n], sample_weight=w, sensitive_features=groups[:n])
        widths.append(model.constraint_bounds_[0][None])
    assert widths[0] > 2 * widths[1]
    assert widths[1] == pytest.approx(widths[2])
    assert widths[0] == pytest.approx(widths[3])


def test_groups_that_are_too_small_are_named_with_the_slack_they_allow():
    X, y, groups = make_data(2, n=1000)
    groups = np.where(np.arange(1000) < 60, "few", groups)
    model = confident(EqualOpportunity(slack=0.1))
    with pytest.warns(
        UserWarning, match=r"too small for EqualOpp.*'few' \(slack="
    ) as caught:
        model.fit(X, y, sensitive_features=groups)
    (bounds,) = model.constraint_bounds_
    words = str(caught[0].message)
    assert f"'few' (slack={bounds['few']:.3g})" in words
    # All that is possible is done: for those there is nothing left.
    assert model.constraint_violation_ == pytest.approx(-0.1, abs=1e-6)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Groups are too small")
        enough = float(f"{max(bounds.values()) + 5e-4:.3f}")
        model.set_params(constraints=EqualOpportunity(slack=enough))
        model.fit(X, y, sensitive_features=groups)


def test_what_cannot_be_met_says_how_much_could_be():
    X, y, _ = make_data(2)
    with pytest.raises(InfeasibleConstraintError) as caught:
        confident(SelectionRate(target=0.5, slack=0.01, label=1)).fit(X, y)
    words, low = str(caught.value), caught.value.smallest_violation
    assert "With constraint_confidence=0.95" in words and "slack=" in words
    enough = SelectionRate(target=0.5, slack=0.011 + low, label=1)
    assert confident(enough).fit(X, y).constraint_violation_ < 0
    too_much = Recall(at_least=0.99, label=1)
    ComplexMetricClassifier(constraints=too_much).fit(X, y)
    with pytest.raises(InfeasibleConstraintError, match="looser. "):
        confident(too_much).fit(X, y)


class TestMisuse:
    @pytest.mark.parametrize("confidence", [0.0, 1.0, 95, "high"])
    def test_what_is_no_probability(self, confidence):
        X, y, _ = make_data(2)
        with pytest.raises(ValueError, match="constraint_confidence"):
            confident((), confidence).fit(X, y)

    @pytest.mark.parametrize(
        ("params", "words"),
        [
            ({"confusion": "probabilities"}, "requires confusion='auto' or 'labels'"),
            ({"lmo": "weighted"}, "constraint_confidence=0.95 requires lmo='plugin'"),
            ({"constraints": Quantification(0.1)}, "constraints on rates"),
        ],
    )
    def test_what_it_does_not_go_with(self, params, words):
        X, y, _ = make_data(2)
        with pytest.raises(ValueError, match=words):
            set_placed(confident(Recall(at_least=0.1)), **params).fit(X, y)
