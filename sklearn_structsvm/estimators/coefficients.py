"""The solvers' weights w as the attributes `coef_` and `intercept_`."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import as_dense, as_floats
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm.structures import Structure

ZERO = np.zeros(1)


def weight_attributes(structure, weights):
    """The fitted attributes that follow from the structure and its weights."""
    coef, intercept = parts_of(structure, weights)
    attributes = {"structure_": structure, "coef_": coef}
    if intercept is not None:
        attributes["intercept_"] = intercept
    if structure.has_classes:
        attributes["classes_"] = structure.classes_
    return attributes


def joined_weights(structure, attributes, *, finite=True):
    """w from `coef_` and `intercept_`. ValueError if they do not fit the structure."""
    parts = {"coef_": None, "intercept_": None}
    for name, shape in shapes_of_weights(structure).items():
        given = as_dense(attributes.get(name), *shape)
        parts[name] = as_floats(name, given, *shape, finite=finite)
    weights = structure.join_weights(*parts.values())
    if np.shape(weights) != (structure.n_weights_,):
        raise Answer("join_weights", structure).fault(
            f"have shape ({structure.n_weights_},)", f"shape {np.shape(weights)}"
        )
    return weights


def parts_of(structure, weights):
    """`coef_` and `intercept_` of weights, by `split_weights`."""
    answer = Answer("split_weights", structure)
    coef, intercept = answer.pair(structure.split_weights(weights))
    for part in (coef, intercept):
        if not (isinstance(part, np.ndarray) or part is intercept is None):
            raise answer.fault("be a pair of arrays, or None for no intercept", part)
    return coef, intercept


def shapes_of_weights(structure):
    """The shapes of `coef_` and, if there is one, `intercept_`."""
    # One number for all of them.
    zeros = np.ndarray(structure.n_weights_, buffer=ZERO, strides=(0,))
    coef, intercept = parts_of(structure, zeros)
    shapes = {"coef_": coef.shape}
    if intercept is not None:
        shapes["intercept_"] = intercept.shape
    return shapes


class SparseCoefficientsMixin:
    """`coef_` as a sparse array, with the methods of scikit-learn's linear models."""

    coef_: Any
    structure_: Structure

    def sparsify(self) -> Self:
        """Convert `coef_` to a sparse array, in place.

        A model in which most weights are zero then takes little memory, and little room
        in a file. `intercept_` stays as it is. Predictions are the same. Each call makes
        the weights dense first, which takes about a millisecond per million.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        with damage_refused(self):
            check_is_fitted(self)
            now = snapshot(self)
            coef = now.coef_
            if not sparse.issparse(coef):
                coef = as_floats("coef_", coef, *np.shape(coef))
            now.coef_ = sparse.csr_array(coef)
        return self

    def densify(self) -> Self:
        """Convert `coef_` back to an array, in place.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        with damage_refused(self):
            check_is_fitted(self)
            now = snapshot(self)
            if sparse.issparse(now.coef_):
                shape = shapes_of_weights(now.structure_)["coef_"]
                now.coef_ = as_dense(now.coef_, *shape)
        return self
