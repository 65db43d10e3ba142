"""Methods that follow each other: one makes passes until it is slow, then the next."""

import numpy as np

from sklearn_structsvm.solvers.loop import certified, run_passes


class Turn:
    """Steps of a method that goes on from weights of another one.

    Until they find better weights, those are returned, and the bound that was known
    remains. Any object with `method`, `move`, `check`, `predicts_convergence`, `is_over`
    and `then` can have a turn.

    `steps`: as for `run_steps`. `row`: what was known before, as a row of the history;
    None if nothing was. `w` (d,): the weights that it describes. `then` or None: (row,
    w) -> the turn that follows once these make no progress. `is_over`: () -> whether
    the turn that follows makes the next pass. `is_cheap`: whether a check costs next to
    nothing, so that each pass is followed by one.
    """

    # No weights are better than `weights`.
    best_weights = None

    def __init__(
        self, steps, row=None, w=None, then=None, is_over=lambda: False, is_cheap=True
    ):
        self.steps, self.row, self.w = steps, row, w
        self.then, self.is_over, self.is_cheap = then, is_over, is_cheap

    @property
    def method(self):
        return self.steps.method

    def move(self, deadline):
        return None if self.steps.move(deadline) else "stalled"

    def predicts_convergence(self):
        return self.is_cheap

    def check(self, done=False):
        row, before = self.steps.row(), self.row
        if before is None:
            return row, self.steps.weights
        is_better = row["objective"] <= before["objective"]
        least = max(row["dual_objective"], before["dual_objective"])
        objective = row["objective"] if is_better else before["objective"]
        # That of the other weights is known to the history.
        error = row["rounding"] if is_better else 0.0
        n_calls = before["n_oracle_calls"] + row["n_oracle_calls"]
        row = certified(objective, least, error, n_calls)
        return row, self.steps.weights if is_better else self.w

    @property
    def weights(self):
        return self.check()[1]

    def rebuild_weights(self):
        """Do nothing: this method has only weights."""

    def get_state(self):
        """Same as for `MarginalAscent`, which also starts from weights alone."""
        return {"weights": np.array(self.weights)}


class Turns:
    """Passes of one method after another, for `run_passes`.

    A turn ends before a pass if it `is_over`, or after one in which it has stalled.

    `turn`: the first one. `history`: its `method` becomes that of the last pass.
    """

    def __init__(self, turn, history):
        self.turn, self.history = turn, history
        self.found = None
        history.begin()

    def move(self, deadline):
        if self.turn.is_over():
            self._hand_over()
        self.found = None
        status = self.turn.move(deadline)
        self.history.method = self.turn.method
        return None if status == "stalled" and self._hand_over() else status

    def _hand_over(self):
        """Begin the next turn. Returns whether there is one."""
        if self.turn.then is None:
            return False
        row, w, *_ = self.found or self.turn.check()
        self.turn = self.turn.then(row, w)
        return True

    def check(self, done=False):
        self.found = self.turn.check(done)
        return self.found

    def predicts_convergence(self):
        return self.turn.predicts_convergence()


def run_turns(turn, history, **limits):
    """`run_passes` of a turn and those that follow it."""
    turns = Turns(turn, history)
    limits["predicts_convergence"] = turns.predicts_convergence
    return run_passes(turns.move, turns.check, history=history, **limits)
