"""What the methods of a structure return, through the gate, as estimators take it.

All of them may be a user's own. Values for one example pass it in `_callback.pyx`.
"""

import numpy as np

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._contract.answers import Answer, brief


def checked_data(structure, X, y=None):
    """(X, y) of `check_data`, with a labeling for each example."""
    answer = Answer("check_data", structure)
    X, y = answer.pair(structure.check_data(X, y))
    answer.of_each(X, len(X) if hasattr(X, "__len__") else None)
    if y is not None:
        answer.of_each(y, len(X))
    return X, y


def fit_to_checked(structure, X, y, **options):
    """Fit a structure to checked data. ValueError if it does not set `n_weights_`."""
    structure._fit_checked(X, y, **options)
    check_n_weights(structure)


def check_n_weights(structure):
    """ValueError if a structure does not know the length of the joint feature."""
    n_weights = getattr(structure, "n_weights_", None)
    is_integer = isinstance(n_weights, (int, np.integer)) and n_weights is not True
    if not (is_integer and n_weights >= 1):
        raise Answer("fit", structure).fault(
            "set n_weights_, the length of the joint feature, to an integer >= 1",
            brief(n_weights),
        )


def oracle_of(structure, X, y, *allowed, **known):
    """The `BlockOracle` of these examples.

    TypeError if `make_oracle` returns anything else. ValueError if its sizes are not
    those of the examples and the weights.
    """
    oracle = structure.make_oracle(X, y, *allowed, **known)
    if not isinstance(oracle, BlockOracle):
        raise TypeError(
            f"make_oracle of {type(structure).__name__} must return a BlockOracle; got "
            f"{type(oracle).__name__}."
        )
    n_blocks = X.shape[0] if structure.flat else len(X)
    for name, found, expected in (
        ("n_blocks", oracle.n_blocks, n_blocks),
        ("n_weights", oracle.n_weights, structure.n_weights_),
    ):
        if found != expected:
            raise Answer("make_oracle", structure).fault(
                f"have {name} = {expected}", found
            )
    return oracle


def bounds_of(structure):
    """(lower, upper) of `weight_bounds`, or None."""
    answer, bounds = Answer("weight_bounds", structure), structure.weight_bounds()
    if bounds is None:
        return None
    lower, upper = (
        answer.array(side, structure.n_weights_, finite=False)
        for side in answer.pair(bounds)
    )
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        at = wrong[0]
        found = f"{lower[at]} and {upper[at]} of weight {at}"
        raise answer.fault("have lower bounds that are not above the upper ones", found)
    return lower, upper
