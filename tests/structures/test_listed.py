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
    "graph of two labels": graph_cases(k=2),
    "graph with cycles": graph_cases(k=3).filter(
        lambda c: c.structure.inference_ == "lp"
    ),
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


SUMMED = ("binary", "multiclass", "multilabel", "chain", "chain with edges", "tree")
# Of sums: the last ones need logarithms of numbers far apart.
SCALES = (0.0, 1.0, 30.0, 300.0, 3000.0)
# Sums of products, and of the few largest terms: transitions as far apart as 300
# temperatures part the two.
TEMPERATURES = (np.inf, 1e6, 1.0, 0.05, 0.004, 1e-5, 1e-9)


def of_each(cases):
    return pytest.mark.parametrize("kind", cases)


def check_all(cases, n, checks):
    @settings(max_examples=n)
    @given(cases, st.integers(1, 30))
    def check(case, k):
        for own in checks:
            own(case, k) if own in OF_NUMBERS else own(case)

    check()


def check_slack(case):
    for one in (1.0, 0.3, 5.0):
        check_candidates(case, one)


def check_violated(case, k):
    check_most_violating(case, (1.0, 0.5)[k % 2])


OF_NUMBERS = (check_k_best, check_lattice, check_violated)
DECODED = [check_features_and_losses, check_batch_equals_single_calls,
           check_scores_of_the_solver]  # fmt: skip
CLAIMS = {kind: [*DECODED, check_slack] for kind in FLAT | FORESTS}
for kind in RELAXED:
    CLAIMS[kind] = [check_features_and_losses]
for kind in ("multilabel", "pairs", "hierarchy"):
    CLAIMS[kind] += [check_scores_of_labels]
for kind in FORESTS:
    CLAIMS[kind] += [check_k_best, check_max_marginals, check_lattice, check_violated]
for kind in ("chain", "chain with edges", "tree"):
    CLAIMS[kind] += [check_potentials]


@of_each(CLAIMS)
def test_answers_are_those_of_the_list(kind):
    check_all((FLAT | FORESTS | RELAXED)[kind], 16, CLAIMS[kind])


@of_each(IN_PARTS)
def test_with_any_of_their_parts_decodings_are_exact(kind):
    check_all(IN_PARTS[kind], 3, DECODED)


@of_each(BARRED)
def test_answers_are_chosen_from_what_is_allowed(kind):
    few = [lambda case, k=k: check_k_best(case, k) for k in (1, 3, 100)]
    claims = [check_slack, check_max_marginals, check_best_labelings, check_lattice]
    check_all(BARRED[kind], 8, [*DECODED, *claims, *few])


@of_each(FLAT | FORESTS | RELAXED | BARRED)
def test_they_are_what_training_takes_them_for(kind):
    if kind in BARRED:
        more = [lambda case: assume(max(map(len, case.names)) > 1)]
        check_all(BARRED[kind], 2, [*more, check_it])
    else:
        n = 6 if kind in RELAXED else 3
        check_all((FLAT | FORESTS | RELAXED)[kind], n, [check_it])


BETWEEN = {kind: FLAT[kind] for kind in FLAT if kind != "hierarchy"} | DYADIC


@of_each(BETWEEN)
def test_constrained_decode_finds_the_best_labeling_within_the_angle(kind):
    @settings(max_examples=20)
    @given(BETWEEN[kind], angles())
    def check(case, angle):
        check_constrained_decoding(case, *angle)

    check()


@of_each(REAL)
def test_steps_are_those_of_the_textbook(kind):
    n_steps = 0

    @settings(max_examples=20)
    @given(REAL[kind], st.sampled_from(["fw", "pairwise", "away"]))
    def check(case, step):
        nonlocal n_steps
        check_slack(case)
        if case.listed.n > 1:
            n_steps += check_steps(case, step)

    check()
    assert n_steps > 20


@of_each([*SUMMED, *BARRED])
def test_sums_and_soft_maxima_are_those_of_the_list(kind):
    claims = [lambda case, scale=scale: check_sums(case, scale) for scale in SCALES]
    if kind in ("chain", "tree") or kind in BARRED:
        claims += [
            lambda case, own=own: check_soft_maxima(case, own) for own in TEMPERATURES
        ]
    check_all((FLAT | FORESTS | BARRED)[kind], 5, claims)
