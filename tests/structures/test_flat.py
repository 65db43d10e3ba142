"""Structures with a row per example, against enumeration of their labelings."""

import pytest
from _cases import (
    angles,
    binary_cases,
    check_batch_equals_single_calls,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_scores_of_the_solver,
    few,
    multiclass_cases,
    multilabel_cases,
    some,
)
from hypothesis import given
from hypothesis import strategies as st

of_each = pytest.mark.parametrize(
    "cases",
    [binary_cases(), multiclass_cases(), multilabel_cases()],
    ids=["binary", "multiclass", "multilabel"],
)


@of_each
@some
@given(data=st.data())
def test_joint_feature_and_loss_are_those_of_the_definition(cases, data):
    check_features_and_losses(data.draw(cases))


@of_each
@few
@given(data=st.data())
def test_it_is_what_training_takes_it_for(cases, data):
    check_it(data.draw(cases))


@of_each
@some
@given(data=st.data())
def test_decoding_many_examples_equals_decoding_each(cases, data):
    check_batch_equals_single_calls(data.draw(cases))


@of_each
@some
@given(data=st.data())
def test_the_solver_sees_the_scores_of_the_joint_features(cases, data):
    check_scores_of_the_solver(data.draw(cases))


@of_each
@some
@given(data=st.data(), angle=angles())
def test_constrained_decode_finds_the_best_labeling_within_the_angle(cases, data, angle):
    check_constrained_decoding(data.draw(cases), *angle)
