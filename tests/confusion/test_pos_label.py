"""Which label counts as positive: never another than the user would think."""

from inspect import signature

import numpy as np
import pytest
from _random_confusion import ONE_LABEL
from sklearn.metrics import f1_score, jaccard_score

from sklearn_structsvm import metrics
from sklearn_structsvm.confusion import get_metric
from sklearn_structsvm.metrics import (
    METRICS,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    GMean,
    Jaccard,
    MetricBound,
    MicroF1,
)

Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
GUESS = np.array([0, 1, 1, 1, 1, 1, 0, 1])
GROUPS = np.array(list("abababab"))

# Names of 0 and 1, the second of which counts by itself.
PLAIN = [(0, 1), (-1, 1), (False, True), (0.0, 1.0)]
OTHER = [("ok", "fraud"), ("fraud", "ok"), ("0", "1"), (1, 2), (0, 2), (3, -1)]


def named(names, codes):
    return np.array(names)[codes]


@pytest.mark.parametrize("names", PLAIN, ids=str)
@pytest.mark.parametrize(
    ("metric", "score"), [(FBeta, f1_score), (Jaccard, jaccard_score)]
)
def test_of_zero_and_one_and_booleans_the_positive_label_is_plain(metric, score, names):
    y, guess = named(names, Y), named(names, GUESS)
    assert metric()(y, guess) == pytest.approx(score(y, guess))
    # In whatever order they are given.
    assert metric()(y, guess, labels=names[::-1]) == pytest.approx(score(y, guess))
    assert metric().positive_label(np.array(names)) == names[1]


@pytest.mark.parametrize("names", OTHER, ids=str)
@pytest.mark.parametrize("metric", [FBeta(), Jaccard()], ids=str)
def test_of_other_labels_it_must_be_said(metric, names):
    y, guess = named(names, Y), named(names, GUESS)
    first, second = sorted(names)
    with pytest.raises(
        ValueError, match=rf"pos_label to one of \[{first!r}, {second!r}\]"
    ):
        metric(y, guess)
    for label in names:
        found = type(metric)(pos_label=label)(y, guess)
        score = f1_score if isinstance(metric, FBeta) else jaccard_score
        assert found == pytest.approx(score(y, guess, pos_label=label))


@pytest.mark.parametrize("name", ONE_LABEL)
def test_a_name_says_of_which_object_the_label_is_a_parameter(name):
    kind = METRICS[name].__name__
    with pytest.raises(
        ValueError, match=rf"metric='{name}' is {kind}\(\).*\['fraud', 'ok'\]"
    ):
        get_metric(name, ["fraud", "ok"])


@pytest.mark.parametrize("names", OTHER, ids=str)
@pytest.mark.parametrize(
    "constraint",
    [EqualOpportunity(), EqualOpportunity(bound="ratio"),
     DemographicParity(bound="ratio"), EqualizedOdds(bound="ratio"),
     MetricBound("f1", at_least=0.5)],
    ids=str,
)  # fmt: skip
def test_constraints_ask_where_the_answer_depends_on_it(constraint, names):
    y, guess = named(names, Y), named(names, GUESS)
    with pytest.raises(ValueError, match="pos_label to one of"):
        constraint(y, guess, sensitive_features=GROUPS)


@pytest.mark.parametrize("reference", ["groups", "overall"])
@pytest.mark.parametrize("kind", [DemographicParity, EqualizedOdds])
def test_where_both_labels_have_the_same_differences_neither_is_asked_for(
    kind, reference
):
    y, guess = named(("ok", "fraud"), Y), named(("ok", "fraud"), GUESS)
    found = [
        kind(pos_label=label, reference=reference)(y, guess, sensitive_features=GROUPS)
        for label in (None, "ok", "fraud")
    ]
    assert found[0] == pytest.approx(found[1]) == pytest.approx(found[2])
    assert kind().positive_label(["fraud", "ok"]) is None
    assert kind(pos_label="ok").positive_label(["fraud", "ok"]) == "ok"


@pytest.mark.parametrize(
    "measure",
    [GMean(), MicroF1(), Jaccard("macro"), Jaccard("micro"), EqualizedOdds()],
    ids=str,
)
def test_what_singles_no_label_out_has_none(measure):
    assert measure.positive_label(["fraud", "ok"]) is None


@pytest.mark.parametrize("name", [*metrics.__all__])
def test_both_names_of_the_label_are_accepted(name):
    kind = getattr(metrics, name)
    if not (isinstance(kind, type) and "pos_label" in signature(kind).parameters):
        return
    bound = {"at_least": 0.1} if hasattr(kind, "rate_of") and name[:2] != "Pr" else {}
    bound = {} if name == "PredictiveParity" else bound
    y, guess = named(("ok", "fraud"), Y), named(("ok", "fraud"), GUESS)
    found = [
        kind(**bound, **{word: "ok"})(y, guess, sensitive_features=GROUPS)
        for word in ("pos_label", "label")
    ]
    assert found[0] == found[1]
    assert kind(**bound, label="ok").positive_label(["fraud", "ok"]) == "ok"
    both = kind(**bound, label="ok", pos_label="fraud")
    with pytest.raises(ValueError, match="two names of one parameter"):
        both(y, guess, sensitive_features=GROUPS)
