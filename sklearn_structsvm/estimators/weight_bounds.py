"""Box constraints on weights, from a parameter and from a structure."""

import numpy as np

from sklearn_structsvm._utils.borders import refuse_masked
from sklearn_structsvm.structures.answers import bounds_of


def check_bounds(coef_bounds, structure):
    """`coef_bounds`, within those of the structure, as two vectors of the length of w.

    Returns two arrays, or None if there are no bounds. ValueError for NaN, a shape
    other than that of `coef_`, or lower > upper.
    """
    own = bounds_of(structure)
    if coef_bounds is None:
        return own
    if len(coef_bounds) != 2:
        raise ValueError(
            f"coef_bounds must be a pair (lower, upper); got {len(coef_bounds)} item(s)."
        )
    coef, intercept = structure.split_weights(np.zeros(structure.n_weights_))
    sides = []
    for name, side, free in zip(
        ("lower", "upper"), coef_bounds, (-np.inf, np.inf), strict=True
    ):
        refuse_masked(f"The {name} bound of coef_bounds", side)
        try:
            side = np.broadcast_to(np.asarray(side, dtype=np.float64), coef.shape)
        except ValueError as error:
            raise ValueError(
                f"The {name} bound of coef_bounds must be a number or have the shape of "
                f"coef_, {coef.shape}; got shape {np.shape(side)}."
            ) from error
        if np.isnan(side).any():
            raise ValueError(f"The {name} bound of coef_bounds has NaN.")
        if intercept is not None:
            intercept = np.full_like(intercept, free)
        sides.append(structure.join_weights(side, intercept).astype(np.float64))
    lower, upper = sides
    if own is not None:
        lower, upper = np.maximum(lower, own[0]), np.minimum(upper, own[1])
    if (lower > upper).any():
        at = int(np.flatnonzero(lower > upper)[0])
        raise ValueError(
            f"coef_bounds has a lower bound above the upper one: {lower[at]} > "
            f"{upper[at]} for weight {at}."
        )
    return lower, upper


def refuse_bounds(structure, what):
    """Raise ValueError if a structure bounds its weights and the method cannot."""
    if structure.weight_bounds() is not None:
        raise ValueError(
            f"{type(structure).__name__} bounds its weights, which {what} does not "
            "support. Use BCFWClassifier, or a structure without bounds, such as "
            "GraphStructure(attractive=False) or PictorialStructure(..., convex=False)."
        )
