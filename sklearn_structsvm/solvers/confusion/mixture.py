"""Mixtures of classifiers, which is what the solvers of confusion problems find."""

from dataclasses import dataclass

import numpy as np

# Confusion tensors that agree to this many decimals are the same: sums of the same shares
# of a sample, in another order.
DECIMALS = 13

# Constraints count as met up to this, in their own units. What the solvers return meets
# them exactly, or but for rounding if no classifier has anything to spare, as for a
# rate that is to be equal to a number; this is for what curved constraints leave of that.
FEASIBILITY_TOL = 1e-9

# Weights of a mixture below this are left out: they are what a program's tolerance makes
# of zero.
NO_WEIGHT = 1e-12


class InfeasibleConstraintError(ValueError):
    """Error raised if no achievable confusion matrices satisfy all constraints.

    Read more in the :ref:`User Guide <guide-infeasible>`.

    Attributes
    ----------
    smallest_violation : float
        Lower bound, greater than 0, on the largest constraint violation of any
        classifier, in the units of the constraints. If the LMO is not exact, the
        violation of the classifier that came closest.
    """

    def __init__(self, message, smallest_violation):
        super().__init__(message)
        self.smallest_violation = smallest_violation

    def __reduce__(self):
        # An exception's own takes only the message back.
        return type(self), (*self.args, self.smallest_violation)


@dataclass
class Mixture:
    """A randomized classifier.

    Attributes
    ----------
    weights : ndarray of shape (T,)
        Probabilities of the classifiers, all positive, sum 1.
    handles : list of length T
        What the oracle returned for each of them.
    confusions : ndarray of shape (T, m, k, k)
        Their confusion tensors.
    """

    weights: np.ndarray
    handles: list
    confusions: np.ndarray

    @property
    def confusion(self):
        """Σ_t weights[t] confusions[t]."""
        return np.tensordot(self.weights, self.confusions, axes=1)


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
        """The tensors, of shape (T, m, k, k); a view."""
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
