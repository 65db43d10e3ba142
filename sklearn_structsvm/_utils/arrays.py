"""Arrays of other libraries than NumPy: predictions from them, and errors for the rest.

They are recognized if scikit-learn's ``array_api_dispatch`` is on. Otherwise
`np.asarray` converts them.
"""

from numbers import Number

import numpy as np
from scipy.special import expit, softmax
from sklearn import get_config

from sklearn_structsvm._utils.compat import _convert_to_numpy, get_namespace


def foreign_namespace(X):
    """The namespace of an array; None for NumPy arrays and for other objects.

    For a list or a tuple, the namespace of its first item.
    """
    if isinstance(X, (list, tuple)) and len(X):
        X = X[0]
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack__"):
        return None
    return get_namespace(X)[0] if get_config()["array_api_dispatch"] else None


def refuse_foreign(**arrays):
    """TypeError that names the first array of another library than NumPy."""
    for name, values in arrays.items():
        if foreign_namespace(values) is None:
            continue
        many = isinstance(values, (list, tuple))
        kind = type(values[0] if many else values)
        what = f"[np.asarray(x) for x in {name}]" if many else f"np.asarray({name})"
        raise TypeError(
            f"{name} {'holds' if many else 'is'} a {kind.__module__}."
            f"{kind.__qualname__}, but NumPy arrays are needed: pass {what}, copied to "
            "the CPU first. (With array_api_dispatch, only predict, decision_function "
            "and predict_proba of linear classifiers of rows take other arrays.)"
        )


def as_in(X, values):
    """The NumPy array `values` in the library, device and dtype of X."""
    xp = foreign_namespace(X)
    if xp is None:
        return values
    return xp.asarray(np.array(values), dtype=X.dtype, device=X.device)


def as_codes(flags):
    """Booleans as integers."""
    xp = foreign_namespace(flags)
    return flags.astype(np.intc) if xp is None else xp.astype(flags, xp.int64)


def row_argmax(scores):
    """The column of the largest score in each row."""
    xp = foreign_namespace(scores)
    return scores.argmax(axis=1) if xp is None else xp.argmax(scores, axis=1)


def with_zeros(scores):
    """A column, preceded by a column of zeros."""
    xp = foreign_namespace(scores)
    if xp is None:
        return np.column_stack([np.zeros(len(scores)), scores])
    return xp.concat([xp.zeros_like(scores), scores], axis=1)


def sigmoid(scores):
    """1 / (1 + exp(-scores)); SciPy's would leave the device of X."""
    xp = foreign_namespace(scores)
    if xp is None:
        return expit(scores)
    return xp.exp(-xp.logaddexp(xp.zeros_like(scores), -scores))


def row_softmax(scores):
    """The softmax of each row; SciPy's leaves the device before version 1.16."""
    xp = foreign_namespace(scores)
    if xp is None:
        return softmax(scores, axis=1)
    powers = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


def take_labels(classes, codes):
    """classes[codes]; in the library of the codes unless they are strings or objects."""
    xp = foreign_namespace(codes)
    if xp is None:
        return classes[codes]
    if classes.dtype.kind in "biuf":
        classes = xp.asarray(np.array(classes), device=codes.device)
        return xp.take(classes, codes, axis=0)
    return classes[_convert_to_numpy(codes, xp)]


def refuse_swapped(X, y, call="fit(X, y)"):
    """ValueError if X holds a number where y holds a row of numbers.

    A structure of a user may take that, so ask only after another error.
    """
    dims = []
    for part in (X, y):
        if not isinstance(part, list | tuple | np.ndarray) or len(part) == 0:
            return
        if not isinstance(part[0], list | np.ndarray | Number):
            return
        try:
            first = np.asarray(part[0])
        except (TypeError, ValueError):
            return  # ragged, of which others say more
        if first.dtype.kind not in "fiub":
            return
        dims.append(first.ndim)
    if dims in ([0, 1], [1, 2]):
        raise ValueError(
            "X holds one number where y holds a row of numbers, as if they were swapped: "
            f"write {call}."
        )
