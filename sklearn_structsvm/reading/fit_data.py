"""X, y and weights as a fit was given them. What they are is asked here, once."""

from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    is_empty,
    refuse_masked,
)
from sklearn_structsvm._utils.indicators import refuse_lists
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import refuse_odd_columns
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.structures.validation import refuse_tokens


class FitData:
    """X, y and sample_weight of a fit.

    `is_remote`: whether they are Dask collections, or lists of their parts.
    """

    def __init__(self, X, y=None, sample_weight=None):
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.is_remote = holds_dask(X, y, sample_weight)

    @cached_property
    def has_items(self):
        """Whether each example is a matrix of its own, such as a sequence, and no row."""
        X = self.X
        if isinstance(X, np.ndarray) and X.ndim != 1:
            return X.ndim == 3
        is_table = isinstance(X, SplitMatrix) or (hasattr(X, "iloc") and X.ndim != 1)
        if sparse.issparse(X) or is_table or not hasattr(X, "__len__"):
            return False
        first = next((x for x in X if not is_empty(x)), None)
        try:
            return sparse.issparse(first) or np.ndim(first) == 2
        except ValueError:  # a row of rows of different lengths
            return False

    def check_local(self):
        """Raise an error unless this is memory that NumPy reads, with an example."""
        refuse_foreign(X=self.X, y=self.y, sample_weight=self.sample_weight)
        if isinstance(self.X, (list, tuple)) and len(self.X) == 0:
            raise ValueError("X is empty: at least one example is needed.")

    def check_rows(self, estimator, is_indicator=False):
        """Check X and y as scikit-learn's linear classifiers do.

        `is_indicator`: whether a column of y says which rows have one label.
        """
        refuse_odd_columns(self.X)
        refuse_tokens(self.X)
        has_items = self.has_items
        X, y = as_canonical(self.X), as_canonical(self.y, "y")
        refuse_masked("X", X)
        refuse_missing(y)
        if has_items:
            raise ValueError(
                f"structure={estimator.structure!r} takes one row of X per example, but "
                "X holds a 2-D item for each. For sequences use structure='chain'."
            )
        refuse_lists(y)
        if isinstance(y, (list, tuple)):
            y = as_array("y", y)
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            multi_output=True,
        )
        check_classification_targets(y)
        if sparse.issparse(y):
            y = y.toarray()
        if y.ndim == 2 and y.shape[1] == 1 and not is_indicator:
            y = column_or_1d(y, warn=True)
        self.X, self.y = X, y
