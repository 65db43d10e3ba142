"""What most structures share, against lists of all their labelings."""

from itertools import combinations

import pytest
from _cases import (
    CHAIN_PARTS,
    TREE_PARTS,
    angles,
    binary_cases,
    chain_cases,
    check_batch_equals_single_calls,
    check_best_labelings,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_k_best,
    check_max_marginals,
    check_potentials,
    check_scores_of_the_solver,
    dag_cases,
    graph_cases,
    hierarchy_cases,
    multiclass_cases,
    multilabel_cases,
    pairwise_cases,
    tree_cases,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

FLAT = {
    "binary": binary_cases(),
    "multiclass": multiclass_cases(),
    "multilabel": multilabel_cases(),
    "pairs": pairwise_cases(),
    "hierarchy": hierarchy_cases(),
}
FORESTS = {
    "chain": chain_cases(),
    "chain with edges": chain_cases(edges=True),
    "tree": tree_cases(),
    "forest": graph_cases(is_forest=True),
}
RELAXED = {
    "graph": graph_cases(),
    "roof": pairwise_cases("roof"),
    "linear program": pairwise_cases("lp"),
    "hierarchy by lp": hierarchy_cases(inference="lp"),
    "dag": dag_cases(),
}
# Some parts alone, and labels that some pairs of neighbors may not have.
IN_PARTS, BARRED = {}, {}
for kind, cases, every in (
    ("chain", chain_cases, CHAIN_PARTS), ("tree", tree_cases, TREE_PARTS)
):  # fmt: skip
    for size in range(1, len(every) + 1):
        for parts in combinations(every, size):
            IN_PARTS[f"{kind} of {'+'.join(parts)}"] = cases(parts)
    for parts in (every, ("emission", "bias"), ("transition",)):
        BARRED[f"barred {kind} of {'+'.join(parts)}"] = cases(parts, barred=True)
for parts in (CHAIN_PARTS, ("transition",)):
    kind = f"barred chain with edges of {'+'.join(parts)}"
    BARRED[kind] = chain_cases(parts, barred=True, edges=True)
# Losses divided by these are exact, which decides what lies on a ray.
DYADIC = {
    "chain": chain_cases(lengths=(1, 2, 4)),
    "chain without transitions": chain_cases(("emission", "bias"), (1, 2, 4)),
    "barred chain": chain_cases(lengths=(1, 2, 4), barred=True),
    "chain with edges": chain_cases(lengths=(1, 2, 4), edges=True),
    "barred chain with edges": chain_cases(lengths=(1, 2, 4), barred=True, edges=True),
    "tree": tree_cases(sizes=(1, 2, 4)),
    "tree without transitions": tree_cases(("emission", "bias"), (1, 2, 4)),
    "barred tree": tree_cases(sizes=(1, 2, 4), barred=True),
}


def of_each(cases):
    return pytest.mark.parametrize("cases", cases.values(), ids=cases)


def check_all(cases, n, *checks):
    @settings(max_examples=n)
    @given(cases, st.integers(1, 30))
    def check(case, k):
        for own in checks:
            own(case, k) if own is check_k_best else own(case)

    check()


@of_each(FLAT | FORESTS)
def test_decodings_are_exact(cases):
    check_all(
        cases, 25, check_features_and_losses, check_batch_equals_single_calls,
        check_scores_of_the_solver,
    )  # fmt: skip


@of_each(IN_PARTS)
def test_with_any_of_their_parts_decodings_are_exact(cases):
    check_all(
        cases, 4, check_features_and_losses, check_batch_equals_single_calls,
        check_scores_of_the_solver,
    )  # fmt: skip


@of_each(BARRED)
def test_decodings_choose_from_what_is_allowed(cases):
    check_all(
        cases, 8, check_features_and_losses, check_batch_equals_single_calls,
        check_scores_of_the_solver, check_max_marginals, check_best_labelings,
        *(lambda case, k=k: check_k_best(case, k) for k in (1, 3, 100)),
    )  # fmt: skip


@of_each(RELAXED)
def test_joint_features_and_losses_are_those_of_the_definition(cases):
    check_all(cases, 25, check_features_and_losses)


@of_each(FLAT | FORESTS | RELAXED)
def test_they_are_what_training_takes_them_for(cases):
    check_all(cases, 4, check_it)


@of_each(BARRED)
def test_with_bars_they_are_what_training_takes_them_for(cases):
    check_all(cases, 2, lambda case: assume(max(map(len, case.names)) > 1), check_it)


@of_each({kind: FLAT[kind] for kind in FLAT if kind != "hierarchy"} | DYADIC)
def test_constrained_decode_finds_the_best_labeling_within_the_angle(cases):
    @settings(max_examples=20)
    @given(cases, angles())
    def check(case, angle):
        check_constrained_decoding(case, *angle)

    check()


@of_each(FORESTS)
def test_k_best_labelings_and_max_marginals_are_those_of_the_list(cases):
    check_all(cases, 25, check_k_best, check_max_marginals)


@of_each({kind: FORESTS[kind] for kind in ("chain", "chain with edges", "tree")})
def test_potentials_add_up_to_the_score_of_the_joint_feature(cases):
    check_all(cases, 25, check_potentials)
