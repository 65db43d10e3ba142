"""The sequence scores, against hand-written cases, slow references and seqeval."""

from itertools import pairwise

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from sklearn_structsvm.metrics import (
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_score,
    entity_recall_score,
    token_accuracy_score,
    token_accuracy_scorer,
)

ENTITY_SCORES = [entity_precision_score, entity_recall_score, entity_f1_score]
TAGS = ["O", "B-X", "I-X", "E-X", "S-X", "B-Y-Z", "I-Y-Z", "E-Y-Z", "S-Y-Z", "B", "I"]


def object_array(sequences):
    array = np.empty(len(sequences), dtype=object)
    for i, sequence in enumerate(sequences):
        array[i] = np.array(sequence)
    return array


@st.composite
def tagged_pairs(draw, tags=TAGS):
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    tag = st.sampled_from(tags)
    return [
        [draw(st.lists(tag, min_size=t, max_size=t)) for t in lengths] for _ in range(2)
    ]


def entities_by_boundaries(tags):
    """Slow reference: cut where conlleval's two tables cut."""
    parts = [("O", "")] + [(t[0], t[2:]) for t in tags] + [("O", "")]
    ends, starts = [], []
    for t, ((before, type_before), (after, type_after)) in enumerate(pairwise(parts)):
        if before != "O" and (
            before + after in {"BB", "BS", "BO", "IB", "IS", "IO"}
            or before in "ES"
            or type_before != type_after
        ):
            ends.append((type_before, t - 1))
        if after != "O" and (
            after in "BS"
            or before + after in {"EE", "EI", "SE", "SI", "OE", "OI"}
            or type_before != type_after
        ):
            starts.append(t)
    return {(k, s, e) for s, (k, e) in zip(starts, ends, strict=True)}


def reference_scores(y_true, y_pred, weights):
    """Micro precision, recall and F1 by sets over all sequences."""
    right = predicted = true = 0.0
    for tags_true, tags_pred, weight in zip(y_true, y_pred, weights, strict=True):
        found, wanted = map(entities_by_boundaries, (tags_pred, tags_true))
        right += weight * len(found & wanted)
        predicted += weight * len(found)
        true += weight * len(wanted)
    ratios = [(right, predicted), (right, true), (2 * right, predicted + true)]
    return [a / b if b else 0.0 for a, b in ratios]


# --- token accuracy


def test_accuracy_weights_tokens_by_their_sequence_and_skips_empty_ones():
    y_true, y_pred = [[1, 2, 3], [4]], [[1, 2, 0], [0]]
    score = token_accuracy_score(y_true, y_pred, sample_weight=[2, 3])
    assert score == pytest.approx((2 * 2) / (2 * 3 + 3 * 1))
    assert token_accuracy_score([[1, 2], [3]], object_array([[1.0, 2.0], ["3"]])) == (
        pytest.approx(2 / 3)
    )
    assert token_accuracy_score([[], [1]], [[], [1]], sample_weight=[5, 1]) == 1.0


@pytest.mark.parametrize("container", [list, object_array, np.array])
def test_accuracy_takes_lists_object_arrays_and_rectangles(container):
    y_true, y_pred = [["a", "b"], ["b", "b"]], [["a", "a"], ["b", "b"]]
    assert token_accuracy_score(container(y_true), container(y_pred)) == 0.75


@given(
    pairs=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1), min_size=1
    )
)
def test_accuracy_is_the_mean_over_the_flat_tokens(pairs):
    y_true = [[a for a, _ in pair] for pair in pairs]
    y_pred = [[b for _, b in pair] for pair in pairs]
    flat = np.concatenate(y_true) == np.concatenate(y_pred)
    assert token_accuracy_score(y_true, y_pred) == pytest.approx(flat.mean())


# --- entities


def test_averages_pool_types_as_documented():
    y_true = [["B-X", "B-X", "B-X", "O", "B-Y"]]
    y_pred = [["B-X", "B-X", "O", "O", "I-Z"]]
    # Types X, Y, Z: right 2 0 0, predicted 2 0 1, true 3 1 0.
    f1 = np.array([4 / 5, 0, 0])
    assert_allclose(entity_f1_score(y_true, y_pred, average=None), f1)
    assert_allclose(entity_f1_score(y_true, y_pred, average="macro"), f1.mean())
    weighted = (3 * f1[0] + 1 * f1[1]) / 4
    assert_allclose(entity_f1_score(y_true, y_pred, average="weighted"), weighted)
    assert_allclose(entity_f1_score(y_true, y_pred, average="micro"), 4 / 7)


def test_a_weight_counts_like_copies_of_the_sequence():
    y_true = [["B-X", "I-X"], ["B-Y", "B-Y"], ["O", "B-X"]]
    y_pred = [["B-X", "O"], ["B-Y", "O"], ["O", "B-X"]]
    weights = [3, 1, 2]
    for score in ENTITY_SCORES:
        for average in ("micro", "macro", "weighted"):
            weighted = score(y_true, y_pred, average=average, sample_weight=weights)
            copied = score(
                np.repeat(object_array(y_true), weights),
                np.repeat(object_array(y_pred), weights),
                average=average,
            )
            assert weighted == pytest.approx(copied)


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("zero_division", [0, 1, np.nan])
def test_zero_division_fills_only_what_is_undefined(average, zero_division):
    options = {"average": average, "zero_division": zero_division}
    nothing, something = [["O", "O"]], [["B-X", "O"]]
    for score in ENTITY_SCORES:
        assert_array_equal(score(nothing, nothing, **options), zero_division)
    assert_array_equal(
        entity_precision_score(something, nothing, **options), zero_division
    )
    assert entity_precision_score(nothing, something, **options) == 0
    assert_array_equal(entity_recall_score(nothing, something, **options), zero_division)
    assert entity_recall_score(something, nothing, **options) == 0
    assert entity_f1_score(something, nothing, **options) == 0
    assert entity_f1_score(nothing, something, **options) == 0


def test_what_is_undefined_warns_or_is_left_out_of_the_mean_as_nan():
    y_true, y_pred = [["B-X", "B-Y"]], [["B-X", "O"]]
    options = {"average": "macro", "zero_division": np.nan}
    assert entity_precision_score(y_true, y_pred, **options) == 1.0
    with pytest.warns(UndefinedMetricWarning, match="no predicted entity"):
        assert entity_precision_score([["B-X"]], [["O"]]) == 0
    with pytest.warns(UndefinedMetricWarning, match="no true nor predicted entity"):
        assert entity_f1_score([["O"]], [["O"]]) == 0


@settings(deadline=None)
@given(pair=tagged_pairs(), weight=st.integers(1, 3))
def test_entities_agree_with_the_boundary_tables(pair, weight):
    y_true, y_pred = pair
    weights = [weight] + [1] * (len(y_true) - 1)
    got = [
        score(y_true, y_pred, sample_weight=weights, zero_division=0)
        for score in ENTITY_SCORES
    ]
    assert_allclose(got, reference_scores(y_true, y_pred, weights))


@settings(deadline=None)
@given(
    pair=tagged_pairs(),
    average=st.sampled_from(["micro", "macro", "weighted", None]),
    zero_division=st.sampled_from([0, 1]),
)
def test_entity_scores_equal_seqeval(pair, average, zero_division):
    seqeval = pytest.importorskip("seqeval.metrics")
    y_true, y_pred = pair
    if all(tag == "O" for tags in y_true + y_pred for tag in tags):
        return  # seqeval then divides by the number of types, which is zero
    options = {"average": average, "zero_division": zero_division}
    theirs = [seqeval.precision_score, seqeval.recall_score, seqeval.f1_score]
    for ours, their in zip(ENTITY_SCORES, theirs, strict=True):
        assert_allclose(ours(y_true, y_pred, **options), their(y_true, y_pred, **options))


# --- bad input


ALL_SCORES = [token_accuracy_score, *ENTITY_SCORES]


@pytest.mark.parametrize("score", ALL_SCORES)
@pytest.mark.parametrize(
    "y_true, y_pred, message",
    [
        ([["O"], ["O", "O"]], [["O"], ["O"]], r"y_true\[1\] has 2 .*y_pred\[1\] has 1"),
        ([["O"]], [["O"], ["O"]], "y_true has 1 sequences but y_pred has 2"),
        (["O", "O"], ["O", "O"], r"y_true\[0\] must be a 1-D sequence"),
        ([[1], 3], [[1], [3]], r"y_true\[1\] must be a 1-D sequence .* got 3"),
        ([["O"]], [np.array([["O"]])], r"y_pred\[0\] must be a 1-D sequence"),
        ([["O"]], None, "y_pred must be a list"),
        ([["O"]], np.array(3.0), "y_pred must be a list"),
        ("O", [["O"]], "y_true must be a list"),
        ([["O"]], sparse.eye_array(1), "y_pred must be a list"),
        ({"O"}, [["O"]], "y_true must be a list"),
        ([["O"]], [np.ma.masked_array(["O"], [True])], r"y_pred\[0\] is a masked array"),
        ([np.ma.masked_array(["O"], [True])], [["O"]], r"y_true\[0\] has a masked label"),
    ],
)
def test_an_odd_item_is_named(score, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        score(y_true, y_pred)


@pytest.mark.parametrize("tag", ["X-B", "BX", "O-X", "", 1, None])
def test_a_label_that_is_no_entity_tag_is_named(tag):
    with pytest.raises(ValueError, match=r"y_pred\[1\]\[2\] must be an entity tag"):
        entity_f1_score([["O"], ["O"] * 3], [["O"], ["O", "B-X", tag]])


@pytest.mark.parametrize("score", ALL_SCORES)
@pytest.mark.parametrize(
    "sample_weight, message",
    [
        ([1.0], r"shape \(2,\), one weight for each sequence; got \(1,\)"),
        ([1.0, -1.0], r"sample_weight\[1\] .* got -1.0"),
        ([np.nan, 1.0], r"sample_weight\[0\] .* got nan"),
        ([0.0, 0.0], "must not be zero for every"),
    ],
)
def test_bad_weights_are_refused(score, sample_weight, message):
    y = [["B-X"], ["O"]]
    with pytest.raises(ValueError, match=message):
        score(y, y, sample_weight=sample_weight)


def test_accuracy_without_tokens_is_refused():
    with pytest.raises(ValueError, match="no token"):
        token_accuracy_score([[], []], [[], []])


@pytest.mark.parametrize(
    "options", [{"average": "samples"}, {"zero_division": "no"}, {"zero_division": 2}]
)
def test_unknown_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        entity_f1_score([["B-X"]], [["B-X"]], **options)


# --- scorers


class SignTagger(BaseEstimator):
    """Tags by a threshold on the first feature; predicts an object array."""

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return object_array([np.where(x[:, 0] > self.threshold, "B-X", "O") for x in X])


def tagging_problem():
    rng = new_rng(0)
    X = [rng.normal(size=(length, 2)) for length in rng.integers(2, 6, size=30)]
    return X, [np.where(x[:, 0] > 0.5, "B-X", "O") for x in X]


@pytest.mark.parametrize("scorer", [token_accuracy_scorer, entity_f1_scorer])
@pytest.mark.parametrize("container", [list, object_array])
def test_scorers_choose_among_taggers_in_a_grid_search(scorer, container):
    X, y = tagging_problem()
    grid = {"threshold": [-0.5, 0.5, 1.5]}
    search = GridSearchCV(SignTagger(), grid, scoring=scorer, cv=3)
    search.fit(X, container(y))
    assert search.best_params_ == {"threshold": 0.5}
    assert search.best_score_ == 1.0


def test_several_scorers_go_into_one_cross_validation():
    X, y = tagging_problem()
    scoring = {"f1": entity_f1_scorer, "accuracy": token_accuracy_scorer}
    results = cross_validate(SignTagger(), X, y, scoring=scoring, cv=KFold(3))
    for i, (_, test) in enumerate(KFold(3).split(X)):
        y_true = [y[j] for j in test]
        y_pred = SignTagger().predict([X[j] for j in test])
        assert results["test_f1"][i] == entity_f1_score(y_true, y_pred) < 1
        assert results["test_accuracy"][i] == token_accuracy_score(y_true, y_pred) < 1
