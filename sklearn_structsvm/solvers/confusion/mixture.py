"""Mixtures of classifiers, the results of the solvers of confusion problems."""

from dataclasses import dataclass

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME, SUM_ROUNDING

# Confusion tensors that agree to this many decimals are equal: the same shares of a
# sample may be summed in another order.
DECIMALS = 13

# Constraints count as satisfied up to this, in their own units. The solvers' results
# satisfy them exactly, or up to rounding if no classifier has room to spare (as for a
# rate that must equal a number). This tolerance covers the error of curved constraints.
FEASIBILITY_TOL = SAME


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
        # The default would keep only the message.
        return type(self), (*self.args, self.smallest_violation)


@dataclass
class Mixture:
    """A randomized classifier.

    `weights` (T,): probabilities of the classifiers, all positive, sum 1. `handles`
    (list of length T): what the oracle returned for each of them. `confusions` (T, m,
    k, k): their confusion tensors.
    """

    weights: np.ndarray
    handles: list
    confusions: np.ndarray

    @property
    def confusion(self):
        """Σ_t weights[t] confusions[t]."""
        return np.tensordot(self.weights, self.confusions, axes=1)

    def parts(self):
        """(weight, C, handle) of each classifier."""
        return zip(self.weights, self.confusions, self.handles, strict=True)


class Columns:
    """The classifiers found so far, with a row for the confusion tensor of each."""

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
        """Add a classifier. Returns its index, and whether its tensor is new."""
        row, n = np.asarray(C, dtype=np.float64).reshape(-1), len(self)
        key = key_of_tensor(row)
        if key in self._known:
            return self._known[key], False
        if n == len(self._flat):
            self._flat = np.concatenate([self._flat, np.empty_like(self._flat)])
        self._flat[n] = row
        self.handles.append(handle)
        self._known[key] = n
        return n, True

    def add_all(self, classifiers):
        """Add (weight, C, handle) of some. Returns weights (T,) of all columns."""
        added = [(weight, self.add(*rest)[0]) for weight, *rest in classifiers]
        weights = np.zeros(len(self))
        np.add.at(weights, [index for _, index in added], [weight for weight, _ in added])
        return weights / weights.sum()

    def keep(self, indices):
        """Drop all other classifiers."""
        self._flat[: len(indices)] = self._flat[indices]
        self.handles = [self.handles[i] for i in indices]
        self._known = {key_of_tensor(row): t for t, row in enumerate(self.flat)}

    def mix(self, weights):
        """The confusion tensor of a mixture, shape (m, k, k)."""
        return (weights @ self.flat[: len(weights)]).reshape(self.shape)

    def mixture(self, weights):
        """The `Mixture` of the columns that have weight."""
        kept = np.flatnonzero(weights > SUM_ROUNDING)
        weights = weights[kept]
        return Mixture(
            weights / weights.sum(),
            [self.handles[i] for i in kept],
            self.flat[kept].reshape(-1, *self.shape),
        )


def key_of_tensor(row):
    """Bytes that are equal for tensors that agree to `DECIMALS`."""
    # Adding 0 turns a -0.0 from rounding into 0.0.
    return (np.round(row, DECIMALS) + 0.0).tobytes()
