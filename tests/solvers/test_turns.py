"""Methods that follow each other: what the later ones keep of the earlier ones."""

import numpy as np
import pytest

from sklearn_structsvm.solvers.loop import History, certified, run_passes
from sklearn_structsvm.solvers.turns import Turn, Turns


class Given:
    """Steps with given objectives and bounds, which stall when there are no more."""

    def __init__(self, method, *values):
        self.method, self.values, self.n_made = method, values, 0

    @property
    def weights(self):
        return np.array([self.values[self.n_made][0]])

    def move(self, deadline):
        if self.n_made + 1 == len(self.values):
            return False
        self.n_made += 1
        return True

    def row(self):
        return certified(*self.values[self.n_made], 0.125, self.n_made + 1)


def run(first, *followers, **limits):
    def then_of(followers):
        if not followers:
            return None
        steps, *others = followers
        return lambda row, w: Turn(steps, row, w, then_of(others))

    history = History()
    turns = Turns(Turn(first, then=then_of(followers)), history)
    return run_passes(turns.move, turns.check, tol=0.0, history=history, **limits)


def test_the_best_weights_and_the_best_bound_of_all_turns_remain():
    first = Given("blocks", (9.0, 0.0), (5.0, 2.0))
    second = Given("lbfgs", (8.0, 1.0), (6.0, 3.0), (4.0, 3.0))
    result = run(first, second, Given("newton", (7.0, -1.0), (3.5, 2.0)))
    history = result.history
    assert result.status == "stalled" and result.solution == [3.5]
    assert history["objective"].tolist() == [9.0, 5.0, 5.0, 5.0, 4.0, 4.0, 3.5, 3.5]
    assert history["dual_objective"].tolist() == [0.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    assert history["n_oracle_calls"].tolist() == [1, 2, 3, 4, 5, 6, 7, 7]
    assert history["method"].tolist() == [
        "start", "blocks", "blocks", "lbfgs", "lbfgs", "lbfgs", "newton", "newton",
    ]  # fmt: skip


def test_a_turn_that_is_over_leaves_the_next_pass_to_the_one_that_follows():
    first = Given("blocks", (9.0, 0.0), (5.0, 2.0), (4.5, 2.0))
    followers = []

    def then(row, w):
        followers.append((row["objective"], w.tolist()))
        return Turn(Given("lbfgs", (4.75, 1.0), (4.0, 1.0)), row, w)

    history = History()
    turns = Turns(Turn(first, then=then, is_over=lambda: first.n_made == 1), history)
    result = run_passes(turns.move, turns.check, tol=0.0, history=history)
    assert followers == [(5.0, [5.0])]
    assert result.history["objective"].tolist() == [9.0, 5.0, 4.0, 4.0]
    assert result.history["method"].tolist() == ["start", "blocks", "lbfgs", "lbfgs"]


@pytest.mark.parametrize("is_checked", [False, True])
def test_what_a_check_has_found_is_not_computed_again(is_checked):
    first, n_rows = Given("blocks", (9.0, 0.0), (5.0, 2.0)), []
    first.row = lambda: n_rows.append(1) or Given.row(first)
    then = Turn(Given("lbfgs", (6.0, 1.0), (4.0, 1.0)))
    turns = Turns(Turn(first, then=lambda row, w: then), History())
    turns.turn.is_over = lambda: first.n_made == 1
    turns.move(np.inf)
    if is_checked:
        turns.check()
    turns.move(np.inf)
    assert len(n_rows) == 1 and turns.turn is then
