"""Logistic regression on columns as they come: the default classifier."""

from functools import partial

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

from sklearn_structsvm._utils.tables import refuse_odd_columns


class ScaledLogisticRegression(LogisticRegression):
    """Logistic regression on scaled columns; `coef_` is of the columns as they are."""

    def fit(self, X, y, sample_weight=None):
        refuse_odd_columns(X, with_missing=True)
        dtypes = [np.float64, np.float32]
        checked = check_array(X, accept_sparse="csc", dtype=dtypes, estimator=self)
        weights = _check_sample_weight(sample_weight, checked)
        scaled, centers, scales = scaled_columns(checked, weights)
        super().fit(scaled, y, sample_weight)
        coef = self.coef_ / scales
        self.intercept_ = (self.intercept_ - coef @ centers).astype(checked.dtype)
        self.coef_ = coef.astype(checked.dtype)
        validate_data(self, X, skip_check_array=True)
        return self

    def decision_function(self, X):
        refuse_odd_columns(X, with_missing=True)
        return super().decision_function(X)


def default_classifier():
    """The default probability model."""
    classifier = ScaledLogisticRegression(max_iter=1000)
    if get_config()["enable_metadata_routing"]:
        classifier.set_fit_request(sample_weight=True)
    return classifier


def scaled_columns(X, weights):
    """Scaled columns, what was subtracted from them, and what they were divided by."""
    # Columns that are mostly zero, such as indicators and counts of words, are divided by
    # their largest size. Others are standardized, whether X is dense or sparse.
    shares = weights / weights.sum()
    used = shares > 0.0
    is_full = X.astype(bool).T @ shares > 0.5
    sizes, stack = abs(X[used]).max(axis=0), np.hstack
    if is_sparse := sparse.issparse(X):
        sizes, stack = sizes.toarray().ravel(), partial(sparse.hstack, format="csc")
    sizes = np.where(sizes < np.finfo(float).tiny, 1.0, sizes).astype(float)
    # Squares of what is at most 1 do not overflow.
    scaled = X @ sparse.diags(1.0 / sizes, format="csc")
    few, full = scaled[:, ~is_full], scaled[:, is_full]
    full = full.toarray() if is_sparse else full
    # Without a row there is nothing left of a constant column.
    row = full[used.argmax()]
    full = full - row
    means = shares @ full
    full -= means
    spreads = np.sqrt(shares @ full**2)
    spreads[spreads == 0.0] = 1.0
    centers, scales = np.zeros(len(sizes)), np.ones(len(sizes))
    centers[is_full], scales[is_full] = row + means, spreads
    places = np.argsort(np.argsort(is_full, kind="stable"))
    scaled = stack([few, full / spreads])[:, places]
    return scaled, centers * sizes, scales * sizes
