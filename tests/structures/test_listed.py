"""What most structures share, against lists of all their labelings."""

from itertools import combinations

import numpy as np
import pytest
from _cases import (
    CHAIN_PARTS,
    TREE_PARTS,
    angles,
    binary_cases,
    chain_cases,
    check_batch_equals_single_calls,
    check_best_labelings,
    check_candidates,
    check_constrained_decoding,
    check_features_and_losses,
    check_it,
    check_k_best,
    check_lattice,
    check_max_marginals,
    check_most_violating,
    check_potentials,
    check_scores_of_labels,
    check_scores_of_the_solver,
    check_soft_maxima,
    check_steps,
    check_sums,
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
REAL = {
    "multiclass of real costs": multiclass_cases(real=True),
    "multilabel of real costs": multilabel_cases(8, real=True),
    "chain of real costs": chain_cases(lengths=(1, 3, 5), real=True),
    "tree of real costs": tree_cases(sizes=(1, 3, 5), real=True),
    "forest of real costs": graph_cases(is_forest=True, real=True),
    "pairs of real costs": pairwise_cases(real=True),
    "hierarchy of real costs": hierarchy_cases(real=True),
}


def of_each(cases):
    return pytest.mark.parametrize("cases", cases.values(), ids=cases)


def check_all(cases, n, *checks):
    @settings(max_examples=n)
    @given(cases, st.integers(1, 30))
    def check(case, k):
        for own in checks:
            own(case, k) if own in (check_k_best, check_lattice) else own(case)

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


@of_each(FLAT | FORESTS | BARRED | REAL)
def test_candidates_of_slack_rescaling_have_the_maximum_over_the_list(cases):
    @settings(max_examples=20)
    @given(cases, st.sampled_from([1.0, 0.3, 5.0]))
    def check(case, one):
        check_candidates(case, one)

    check()


@of_each({kind: FLAT[kind] for kind in ("multilabel", "pairs", "hierarchy")})
def test_scores_of_labels_are_differences_of_the_best_of_the_list(cases):
    check_all(cases, 25, check_scores_of_labels)


@of_each(REAL)
def test_steps_are_those_of_the_textbook(cases):
    n_steps = 0

    @settings(max_examples=10)
    @given(cases, st.sampled_from(["fw", "pairwise", "away"]))
    def check(case, step):
        nonlocal n_steps
        if case.listed.n > 1:
            n_steps += check_steps(case, step)

    check()
    assert n_steps > 20


SUMMED = ("binary", "multiclass", "multilabel", "chain", "chain with edges", "tree")


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 300.0, 3000.0])
@of_each({kind: (FLAT | FORESTS)[kind] for kind in SUMMED} | BARRED)
def test_sums_over_labelings_are_those_of_the_list(cases, scale):
    check_all(cases, 4, lambda case: check_sums(case, scale))


@of_each(FORESTS | BARRED)
def test_lattices_hold_the_labelings_near_the_best_of_the_list(cases):
    check_all(cases, 10, check_lattice)


# Sums of products, and of the few largest terms: transitions as far apart as 300
# temperatures part the two.
@pytest.mark.parametrize("temperature", [np.inf, 1e6, 1.0, 0.05, 0.004, 1e-5, 1e-9])
@of_each({kind: FORESTS[kind] for kind in ("chain", "tree")} | BARRED)
def test_soft_maxima_are_those_of_the_list(cases, temperature):
    check_all(cases, 5, lambda case: check_soft_maxima(case, temperature))


@of_each(FORESTS)
def test_the_most_violating_labeling_of_the_list_is_found(cases):
    @settings(max_examples=25)
    @given(cases, st.sampled_from([1.0, 0.5]))
    def check(case, one):
        check_most_violating(case, one)

    check()
