"""Weights of examples, checked."""

import numpy as np

from sklearn_structsvm._utils.borders import as_array

NO_NUMBERS = "sample_weight must hold numbers"


def check_weights(sample_weight, n_samples, *, item="sample", may_vanish=False):
    """s_i in float64.

    `sample_weight` (n_samples,), number: a number is the weight of every example; None
    means 1. `may_vanish`: whether all weights may be zero, as in a part of the data.
    Returns (n_samples,), possibly the array that was given. ValueError for another
    shape, weights that are not numbers, not finite or negative, and for those whose sum
    is zero or beyond float64.
    """
    if isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight must be a number for each {item}; got {sample_weight!r}. "
            "Weights by class are class_weight, of the classifier."
        )
    is_list = isinstance(sample_weight, list | tuple) and len(sample_weight) > 0
    if is_list and np.ndim(sample_weight[0]):
        raise ValueError(
            f"sample_weight must be one number for each {item}; sample_weight[0] has "
            f"the shape {np.shape(sample_weight[0])}. Weights of the positions of a "
            "sequence belong in y, as pairs (labels, weights)."
        )
    given = as_array("sample_weight", 1.0 if sample_weight is None else sample_weight)
    try:
        if np.iscomplexobj(given):
            raise TypeError("they are complex")
        # NumPy's strings would show their type in the error.
        given = given.astype(object) if given.dtype.kind in "SU" else given
        weights = np.require(np.atleast_1d(given), np.float64, "CA")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{NO_NUMBERS}: {error}.") from error
    if given.ndim == 0:
        weights = np.full(n_samples, weights[0])
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight for each {item}; "
            f"got {weights.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0.0))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] must be finite and >= 0; got {weights[bad[0]]}."
        )
    if not may_vanish:
        total_weight(weights, item=item)
    return weights


def total_weight(weights, name="sample_weight", *, item="sample"):
    """Σ_i s_i.

    ValueError if there are no weights, or if the sum is zero or beyond float64.
    """
    if len(weights) == 0:
        raise ValueError(f"There must be a {item}.")
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise ValueError(
            f"The sum of {name} is too large for a float64. Divide the weights by the "
            "largest of them."
        )
    if not total > 0.0:
        raise ValueError(f"{name} must not be zero for every {item}.")
    return total


def normalized_lambda(C, total):
    """λ = 1 / (C Σ_i s_i). ValueError if it is beyond float64."""
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        lam = float(np.divide(1.0, np.multiply(float(C), float(total))))
    if not 0.0 < lam < np.inf:
        raise ValueError(
            f"C={C} times the sum of the weights, {total:.3g}, is too "
            f"{'large' if lam == 0.0 else 'small'} for a float64: choose another C, or "
            "other units of sample_weight."
        )
    return lam


def effective_number(weights):
    """(Σ s)² / Σ s²: how many examples of equal weight say as much (Kish).

    `weights`: not negative, of any scale.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm._utils.weights import effective_number
    >>> effective_number(np.array([0.25, 0.25, 0.25])), effective_number(np.zeros(3))
    (3.0, 0.0)
    """
    most = weights.max(initial=0.0)
    if not most > 0.0:
        return 0.0
    # Squares of tiny weights would vanish.
    shares = weights / most
    return float(shares.sum() ** 2 / (shares @ shares))


def effective_weights(weights):
    """Weights in the same proportions whose sum is their `effective_number`."""
    number = effective_number(weights)
    if number == 0.0:
        return weights
    shares = weights / weights.max()
    return shares * (number / shares.sum())
