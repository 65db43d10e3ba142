"""The weights w that solvers know, as the attributes `coef_` and `intercept_`."""

import numpy as np

from sklearn_structsvm._utils.borders import as_floats


def weight_attributes(structure, weights):
    """The fitted attributes that follow from the structure and its weights."""
    coef, intercept = structure.split_weights(weights)
    attributes = {"structure_": structure, "coef_": coef}
    if intercept is not None:
        attributes["intercept_"] = intercept
    if structure.has_classes:
        attributes["classes_"] = structure.classes_
    return attributes


def joined_weights(structure, attributes, *, finite=True):
    """w of `coef_` and `intercept_`; ValueError if they do not fit the structure."""
    # One number for all of them.
    zeros = np.ndarray(structure.n_weights_, buffer=np.zeros(1), strides=(0,))
    parts = []
    for name, like in zip(
        ("coef_", "intercept_"), structure.split_weights(zeros), strict=True
    ):
        part = None
        if like is not None:
            part = as_floats(name, attributes.get(name), *like.shape, finite=finite)
        parts.append(part)
    return structure.join_weights(*parts)
