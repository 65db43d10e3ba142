"""Confusion tensors by their few entries that matter (section 7.2 of the paper)."""

import numpy as np


class Coordinates:
    """The entries that a problem depends on, each divided by its row sum.

    z[c] = C[a, i, j] / π[a, i] for the entries (a, i, j) that the metric or a constraint
    depends on; in rows where these are all, one is left out, as it is 1 minus the
    others. The G-mean of k classes has k coordinates, the recalls; with a constraint on
    two classes and m groups there are 2 m of them, those of section 8.2.

    All C >= 0 of the row sums are in the set Z = {z >= 0, sum over each row <= 1}, which
    takes the place of the simplex that the paper's slack variables are in: it is smaller,
    and metrics are convex where the row sums are what they are.

    Parameters
    ----------
    problem : ConfusionProblem

    Attributes
    ----------
    n : int
    groups : ndarray of shape (n_rows, n)
        Which coordinates are in each row, as 0 and 1.
    """

    def __init__(self, problem):
        self.shape = problem.shape
        k = self.shape[-1]
        used = problem.entries().reshape(-1, k)
        priors = problem.priors.ravel()
        index, rest, row = [], [], []
        self.rest_of_rows = np.zeros(len(priors), dtype=int)
        for r in np.flatnonzero(priors > 0.0):
            columns = np.flatnonzero(used[r])
            if len(columns) == k:
                # Any of them but the diagonal.
                left_out = 1 if r % k == 0 else 0
                columns = np.delete(columns, left_out)
            else:
                left_out = int(np.flatnonzero(~used[r])[0])
            self.rest_of_rows[r] = left_out
            index.extend(r * k + columns)
            rest.extend([r * k + left_out] * len(columns))
            row.extend([r] * len(columns))
        self.index, self.rest = np.array(index, dtype=int), np.array(rest, dtype=int)
        self.priors = priors
        self.scale = priors[np.array(row, dtype=int)]
        rows, self.row = np.unique(np.array(row, dtype=int), return_inverse=True)
        self.n = len(self.index)
        self.groups = np.zeros((len(rows), self.n))
        self.groups[self.row, np.arange(self.n)] = 1.0
        self.members = [np.flatnonzero(group) for group in self.groups]
        # Is Z a box?
        self.single = len(rows) == self.n

    def of(self, C):
        """The coordinates of a tensor."""
        return np.reshape(C, -1)[self.index] / self.scale

    def tensor(self, z):
        """A tensor of these coordinates and the problem's row sums."""
        k = self.shape[-1]
        C = np.zeros((len(self.priors), k))
        C.reshape(-1)[self.index] = z * self.scale
        C[np.arange(len(C)), self.rest_of_rows] += self.priors - C.sum(axis=1)
        return C.reshape(self.shape)

    def slopes(self, G):
        """The gradient by the coordinates, of a function whose gradient by C is G."""
        flat = np.reshape(G, -1)
        return self.scale * (flat[self.index] - flat[self.rest])

    def constant(self, G):
        """<G, C> minus the slopes times the coordinates."""
        rest = np.reshape(G, (len(self.priors), -1))
        return float(self.priors @ rest[np.arange(len(rest)), self.rest_of_rows])

    def loss(self, multipliers):
        """L with <L, C> = multipliers times the coordinates."""
        L = np.zeros(len(self.priors) * self.shape[-1])
        L[self.index] = multipliers / self.scale
        return L.reshape(self.shape)

    def lowest(self, slopes):
        """The point of Z where slopes · z is least."""
        if self.single:
            return (slopes < 0.0).astype(np.float64)
        z = np.zeros(self.n)
        for members in self.members:
            best = members[np.argmin(slopes[members])]
            z[best] = float(slopes[best] < 0.0)
        return z

    def least(self, slopes):
        """The least slopes · z over Z."""
        return float(slopes @ self.lowest(slopes))

    def project(self, z):
        """The nearest point of Z."""
        z = np.maximum(z, 0.0)
        if self.single:
            return np.minimum(z, 1.0)
        for members in self.members:
            if z[members].sum() > 1.0:
                z[members] = _onto_simplex(z[members])
        return z


def _onto_simplex(z):
    """The nearest point of the simplex."""
    falling = np.sort(z)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(z) + 1)
    return np.maximum(z - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
