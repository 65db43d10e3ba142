"""Mixtures of classifiers: what the solvers of confusion problems find and return."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

HISTORY_KEYS = (
    "n_iter",
    "n_oracle_calls",
    "seconds",
    "objective",
    "dual_objective",
    "dual_gap",
    "constraint_violation",
)

# Confusion tensors that agree to so many decimals are the same: sums of the same shares
# of a sample, in another order.
DECIMALS = 13

# Constraints count as met up to this. Where some classifier meets them with anything to
# spare, what the solvers return meets them exactly; where none does, as for a rate that
# is to be equal to a number, to this.
MET = 1e-9

# Weights of a mixture below this are left out: they are what a program's tolerance makes
# of zero.
NO_WEIGHT = 1e-12


class InfeasibleConstraintError(ValueError):
    """No achievable confusion tensor meets all constraints.

    Attributes
    ----------
    smallest_violation : float
        A lower bound of the largest violation of any classifier, greater than 0; for an
        LMO that is not exact the smallest that was found. Violations are those of rates
        and shares. That of a rate whose denominator varies, such as precision or a ratio
        of rates, is multiplied by the denominator.
    """

    def __init__(self, message, smallest_violation):
        super().__init__(message)
        self.smallest_violation = smallest_violation

    def __reduce__(self):
        # An exception's own takes only the message back.
        return type(self), (*self.args, self.smallest_violation)


@dataclass
class MixtureResult:
    """A randomised classifier, and how far it may be from the best one.

    Attributes
    ----------
    weights : ndarray of shape (T,)
        Probabilities of the classifiers, all positive, sum 1.
    handles : list of length T
        What the oracle returned for each of them.
    confusions : ndarray of shape (T, m, k, k)
        Their confusion tensors.
    confusion : ndarray of shape (m, k, k)
        That of the mixture.
    value : float
        ψ of `confusion`.
    bound : float
        A lower bound of ψ over all achievable tensors that meet the constraints, if the
        oracle is exact; -inf where none is known.
    gap : float
        value - bound.
    violation : float
        The largest violation of a constraint by `confusion`; -inf without constraints.
    n_iter, n_oracle_calls : int
    status : {"converged", "stationary", "stalled", "max_iter", "max_time", "stopped"}
        Why the run ended: "converged" where the gap is at most `tol` and the constraints
        are met, "stationary" at a point where a metric that is not convex has no
        direction of descent steeper than `tol`, "stalled" where the solver found nothing
        more to do.
    history : dict of ndarray
        `HISTORY_KEYS`, a row for each check.
    """

    weights: np.ndarray
    handles: list
    confusions: np.ndarray
    confusion: np.ndarray
    value: float
    bound: float
    gap: float
    violation: float
    n_iter: int
    n_oracle_calls: int
    status: str
    history: dict


@dataclass
class Mixture:
    """Weights, handles and confusion tensors of some classifiers."""

    weights: np.ndarray
    handles: list
    confusions: np.ndarray

    @property
    def confusion(self):
        """Σ_t weights[t] confusions[t]."""
        return np.tensordot(self.weights, self.confusions, axes=1)


class MixtureHistory:
    """What the checks of a run saw.

    A caller who hands it to a solver has it still where the run was interrupted.

    Attributes
    ----------
    started : float
        In seconds of `perf_counter`.
    n_iter : int
    rows : list of dict
    """

    def __init__(self):
        self.started = perf_counter()
        self.n_iter = 0
        self.rows = []
        self.gathering = None

    @property
    def mixture(self):
        """The `Mixture` that the last row is about, or None."""
        return None if self.gathering is None else self.gathering.best

    def note(self, row, gathering):
        """Append a row with the iteration and the time; returns it."""
        row = row | {"n_iter": self.n_iter, "seconds": perf_counter() - self.started}
        self.rows.append(row)
        self.gathering = gathering
        return row

    def result(self, status):
        """The `MixtureResult` at the last row."""
        row, mixture = self.rows[-1], self.gathering.best
        return MixtureResult(
            weights=mixture.weights,
            handles=mixture.handles,
            confusions=mixture.confusions,
            confusion=mixture.confusion,
            value=row["objective"],
            bound=row["dual_objective"],
            gap=row["dual_gap"],
            violation=row["constraint_violation"],
            n_iter=self.n_iter,
            n_oracle_calls=row["n_oracle_calls"],
            status=status,
            history={key: np.array([r[key] for r in self.rows]) for key in HISTORY_KEYS},
        )


class Columns:
    """Classifiers found so far, each with its confusion tensor as a row.

    Attributes
    ----------
    shape : tuple
        (m, k, k).
    handles : list of length T
    """

    def __init__(self, shape):
        self.shape = tuple(shape)
        self.handles = []
        self._flat = np.empty((8, int(np.prod(shape))))
        self._known = {}

    def __len__(self):
        return len(self.handles)

    @property
    def flat(self):
        """The tensors as rows, shape (T, m k k); a view."""
        return self._flat[: len(self)]

    @property
    def tensors(self):
        """Of shape (T, m, k, k); a view."""
        return self.flat.reshape(-1, *self.shape)

    def add(self, C, handle):
        """Its index, and whether its tensor was not there before."""
        row, n = np.asarray(C, dtype=np.float64).reshape(-1), len(self)
        key = _key(row)
        if key in self._known:
            return self._known[key], False
        if n == len(self._flat):
            self._flat = np.concatenate([self._flat, np.empty_like(self._flat)])
        self._flat[n] = row
        self.handles.append(handle)
        self._known[key] = n
        return n, True

    def keep(self, indices):
        """Forget all others."""
        self._flat[: len(indices)] = self._flat[indices]
        self.handles = [self.handles[i] for i in indices]
        self._known = {_key(row): t for t, row in enumerate(self.flat)}

    def mix(self, weights):
        """The confusion tensor of a mixture, shape (m, k, k)."""
        return (weights @ self.flat[: len(weights)]).reshape(self.shape)

    def mixture(self, weights):
        """The `Mixture` of the columns that have weight."""
        kept = np.flatnonzero(weights > NO_WEIGHT)
        weights = weights[kept]
        return Mixture(
            weights / weights.sum(),
            [self.handles[i] for i in kept],
            self.flat[kept].reshape(-1, *self.shape),
        )


def _key(row):
    # Adding 0 turns the -0.0 that rounding may leave into 0.0.
    return (np.round(row, DECIMALS) + 0.0).tobytes()


def run_iterations(
    move,
    gathering,
    history,
    *,
    tol,
    max_iter,
    max_time,
    check_interval=1,
    on_iteration=None,
):
    """Iterate, and look now and then whether a limit is met.

    Parameters
    ----------
    move : callable
        () -> None, or the status that ends the run.
    gathering : Gathering
        Its rows are those of the history.
    history : MixtureHistory
    tol : float
        Stop where a row's gap is at most this and its constraints are met.
    max_iter : int
    max_time : float or None
        Seconds.
    check_interval : int
        Iterations between two checks. The first and the last are always checked.
    on_iteration : callable or None
        Called after each iteration with its number, the last row of the history (a dict)
        and whether the run ends here anyway; a true answer ends it.

    Returns
    -------
    MixtureResult
    """
    if max_time is not None:
        gathering.deadline = history.started + max_time
    row = status = None
    while status is None:
        history.n_iter += 1
        status = move()
        if status is None and history.n_iter >= max_iter:
            status = "max_iter"
        elif status is None and perf_counter() >= gathering.deadline:
            status = "max_time"
        checked = status is not None or (history.n_iter - 1) % check_interval == 0
        if checked:
            row = history.note(gathering.row(status is not None), gathering)
            if row["dual_gap"] <= tol and row["constraint_violation"] <= MET:
                status = "converged"
        if on_iteration is not None:
            asked = on_iteration(history.n_iter, row, status is not None)
            if asked and status is None:
                status = "stopped"
                history.note(gathering.row(True), gathering)
    return history.result(status)
