"""Probabilities of labels by row, for all labels or only for some."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import as_array, check_shape, check_sparse
from sklearn_structsvm._utils.own_indices import with_own_indices
from sklearn_structsvm._utils.tolerances import FOREIGN_ROUNDING


@dataclass(frozen=True, eq=False)
class LabelRows:
    """η of shape (n, L), stored by row. Entries that are not stored are 0.

    `starts` (n + 1,), intp. `labels` (ndarray of int32): the label of each entry. A
    label occurs at most once per row. `eta` (ndarray of float64): in (0, 1].
    `n_labels`: L. `is_complete`: whether others are 0, and not only unknown.
    """

    starts: np.ndarray
    labels: np.ndarray
    eta: np.ndarray
    n_labels: int
    is_complete: bool = False

    def __len__(self):
        return len(self.starts) - 1

    @classmethod
    def of(cls, probabilities, name="probabilities"):
        """Read an array or a sparse matrix, without making it dense.

        ValueError if the shape is wrong, or if a number is not a probability.
        """
        if sparse.issparse(probabilities):
            check_sparse(probabilities, name)
            # A user's classifier may keep the matrix, and change it.
            matrix = with_own_indices(probabilities.tocsr())
        else:
            dense = as_array(name, probabilities)
            check_shape(name, dense, "n_samples", "n_labels")
            matrix = _stored(dense)
        if not np.all(matrix.data):
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        eta = np.asarray(matrix.data, dtype=np.float64)
        is_share = (eta >= -FOREIGN_ROUNDING) & (eta <= 1.0 + FOREIGN_ROUNDING)
        bad = np.flatnonzero(~is_share)
        if len(bad):
            row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
            raise ValueError(
                f"{name} must be from 0 to 1; got {eta[bad[0]]} for row {row}, label "
                f"{matrix.indices[bad[0]]}."
            )
        return cls(
            matrix.indptr.astype(np.intp),
            matrix.indices.astype(np.int32, copy=False),
            np.clip(eta, 0.0, 1.0),
            int(matrix.shape[1]),
            not sparse.issparse(probabilities),
        )

    def matrix(self):
        """The probabilities as a CSR matrix."""
        shape = len(self), self.n_labels
        return sparse.csr_array((self.eta, self.labels, self.starts), shape=shape)


def _stored(dense):
    """The CSR form of an array with few zeros."""
    n, n_labels = dense.shape
    if not np.all(dense):
        return sparse.csr_array(dense)
    labels = np.tile(np.arange(n_labels, dtype=np.int32), n)
    starts = np.arange(n + 1, dtype=np.intp) * n_labels
    found = sparse.csr_array((dense.ravel(), labels, starts), shape=dense.shape)
    found.has_canonical_format = True
    return found
