"""The steps on one example: their names, and what each of them can do."""

from dataclasses import dataclass
from typing import Literal

StepName = Literal["auto", "exact", "corrective", "fw", "pairwise", "away"]

# Of all structures; exact steps are for rows alone.
BlockStepName = Literal["auto", "corrective", "fw", "pairwise", "away"]


@dataclass(frozen=True)
class Step:
    """What a kind of steps can do.

    `is_plain`: whether it forgets which labelings have dual mass, so that parts of the
    examples cannot be moved at once and merged. `takes_cache`: whether it can use a
    cache of labelings. `takes_l1`: whether the penalty may be an elastic net.
    `is_fast`: whether no other step reaches an optimum sooner.
    """

    is_plain: bool = False
    takes_cache: bool = True
    takes_l1: bool = True
    is_fast: bool = False


# Beside this table, a step has its code in `_bcfw`, and its words in the docstring of
# `BCFWClassifier`.
STEPS = {
    "exact": Step(takes_cache=False, takes_l1=False, is_fast=True),
    "corrective": Step(takes_cache=False, is_fast=True),
    "fw": Step(is_plain=True),
    "pairwise": Step(),
    "away": Step(),
}


def steps_that(**traits):
    """The names of the steps with these attributes."""
    has = traits.items()
    return tuple(name for name, step in STEPS.items() if has <= vars(step).items())
