"""Checks of arrays before a kernel reads them, once, where they enter.

A kernel trusts lengths and indices. Whatever comes from outside (an argument, a pickle,
an attribute that was set by hand) is checked here first; errors name it.
"""

import reprlib
from collections.abc import Mapping, Set
from datetime import date
from math import isfinite
from numbers import Integral, Real

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils._csr_layout import csr_layout, csr_layout_of_longs
from sklearn_structsvm._utils.mistakes import meant

SECONDS = " Make seconds: np.asarray({}, 'datetime64[ms]').astype(float) / 1000."
# The arrays of sparse matrices, by format: a damaged file may have others in their place.
COMPRESSED = ("data", "indices", "indptr")
PARTS = {"csr": COMPRESSED, "csc": COMPRESSED, "bsr": COMPRESSED, "coo": ("data",)}


def is_empty(item):
    """Whether a list, an array or a matrix has no rows."""
    if type(item) is list:
        return not item
    if sparse.issparse(item):
        return item.shape[0] == 0
    return not isinstance(item, (str, bytes, Mapping)) and (
        hasattr(item, "__len__") and getattr(item, "ndim", 1) > 0 and len(item) == 0
    )


def check_sequence(name, items, words, error=ValueError):
    """Error unless `items` is a list, or like one; the words say of what."""
    if isinstance(items, list):
        return
    has_length = hasattr(items, "__len__") and getattr(items, "ndim", 1) > 0
    is_other = isinstance(items, (str, bytes, Mapping, Set)) or sparse.issparse(items)
    is_other |= getattr(items, "__iter__", True) is None
    if not has_length or is_other:
        raise error(f"{name} must be {words}; got {type(items).__name__}.")


def refuse_masked(name, values):
    """ValueError for masked entries, of which NumPy takes what is behind the mask."""
    if isinstance(values, (list, tuple)):
        for i, own in enumerate(values):
            if isinstance(own, np.ma.MaskedArray):
                refuse_masked(f"{name}[{i}]", own)
    if not isinstance(values, np.ma.MaskedArray):
        return
    masked = np.argwhere(np.ma.getmaskarray(values))
    if len(masked):
        at = ", ".join(map(str, masked[0].tolist()))
        raise ValueError(
            f"{name} is a masked array, and its entry [{at}] is masked. Masks are not "
            "read: fill the entries, for example by sklearn.impute, or leave them out."
        )


def as_array(name, values):
    """np.asarray of the argument `name`; ValueError if it is ragged or masked."""
    refuse_masked(name, values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array: {_uneven(name, values) or error}"
        ) from error


def _uneven(name, values):
    """Words for two items of a list that have different shapes, or None."""
    if not isinstance(values, (list, tuple)):
        return None
    shapes = []
    for own in values:
        try:
            shapes.append(np.shape(own))
        except ValueError:
            return "its parts have different lengths."
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is None:
        return None
    first, other = (reprlib.repr(values[i]) for i in (0, odd))
    return f"{name}[0] is {first}, and {name}[{odd}] is {other}."


def as_dense(weights, *shape):
    """Weights as they were before `sparsify`, which may have made a row of a vector."""
    if not sparse.issparse(weights):
        return weights
    dense = weights.toarray()
    return dense.reshape(shape) if dense.size == np.prod(shape) else dense


def as_floats(name, values, *shape, finite=True):
    """`values` as a C-contiguous, aligned float64 array of this shape.

    A model may have millions of weights, of which one example needs a few: with
    ``finite=False`` they are not checked, and the caller must check its results.

    ValueError if they have another shape, or are not finite numbers.
    """
    if not finite and type(values) is np.ndarray and values.shape == shape:
        if _are_doubles(values) and values.flags.aligned:
            return values
    array = as_array(name, values)
    check_shape(name, array, *shape)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            hint = SECONDS.format(name) if isinstance(array.flat[0], date) else ""
            raise ValueError(f"{name} must hold numbers: {error}.{hint}") from error
    if array.dtype.kind not in "fiub":
        hint = SECONDS.format(name) if array.dtype.kind == "M" else ""
        raise ValueError(f"{name} must hold numbers; got dtype {array.dtype}.{hint}")
    if finite and not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite; got {array[~np.isfinite(array)].flat[0]}."
        )
    return as_contiguous(array, np.float64)


def _are_doubles(array):
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64
    return is_array and array.flags.c_contiguous


def as_contiguous(array, dtype):
    """``np.require(array, dtype, "CA")``, at once for what is like that already."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, dtype, "CA")


def check_floats(name, array, *shape):
    """ValueError if an attribute is not an array such as `as_floats` returns."""
    are_doubles = _are_doubles(array)
    # A finite sum of squares has finite terms.
    if are_doubles and array.shape == shape and isfinite(np.vdot(array, array)):
        return
    as_floats(name, array, *shape)
    if not are_doubles:
        raise ValueError(f"{name} must be a C-contiguous array of float64.")


def restore(name, target, values):
    """Fill a view with numbers of its shape; raises the errors of `as_floats`."""
    array = np.asarray(target)
    array[...] = as_floats(name, values, *array.shape)


def check_entries(name, state, *keys):
    """ValueError if a saved state is not a dictionary with these keys."""
    if not isinstance(state, dict):
        raise ValueError(
            f"{name} must be a dict; got {type(state).__name__}: it was changed after "
            "fit."
        )
    for key in keys:
        if key not in state:
            raise ValueError(f"{name} must have {key!r}: it was changed after fit.")


def as_tuple(name, values, length):
    """A list or tuple of this length as a tuple; ValueError for anything else."""
    if not isinstance(values, (list, tuple)) or len(values) != length:
        found = f" of length {len(values)}" if isinstance(values, (list, tuple)) else ""
        raise ValueError(
            f"{name} must be a list or tuple of length {length}; got "
            f"{type(values).__name__}{found}."
        )
    return tuple(values)


def check_shape(name, array, *shape):
    """ValueError if an array or a view has another shape.

    An arbitrary length is given by its name: ``check_shape("w", w, "n", 2)``.
    """
    found = array.shape if hasattr(array, "shape") else as_array(name, array).shape
    if fits(found, shape):
        return
    listed = str(shape).replace("'", "")
    raise ValueError(f"{name} must have shape {listed}; got {found}.")


def fits(found, shape):
    """Whether a shape is the expected one, in which names stand for any length."""
    if found == shape:
        return True
    return len(found) == len(shape) and all(
        isinstance(n, str) or n == m for n, m in zip(shape, found, strict=True)
    )


def check_classes(classes):
    """ValueError if the labels that a fit found are no longer a 1-D array."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        kind = type(classes).__name__
        found = f"{kind} of shape {as_array('classes_', classes).shape}"
        raise ValueError(
            f"classes_ must be a 1-D array; got {found}: it was changed after fit."
        )


def check_integer(name, value, least, most=np.inf):
    """TypeError if a value is not an integer, ValueError if it is out of bounds.

    True is not an integer here: NumPy accepts it as a length only in some places.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if not least <= value <= most:
        bounds = f"at least {least}" if most == np.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be {bounds}; got {value!r}.")


def check_choice(name, value, choices):
    """ValueError that names the choices if the value is not one of them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"{name} must be one of {listed}; got {value!r}.{meant(value, choices)}"
        )


def check_zero_division(zero_division):
    """The value that stands for 0/0."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return 0.0
    if isinstance(zero_division, Real) and (
        zero_division in (0, 1) or np.isnan(zero_division)
    ):
        return float(zero_division)
    raise ValueError(
        f"zero_division must be 'warn', 0, 1 or np.nan, got {zero_division!r}."
    )


def check_indices(name, array, stop, start=0):
    """ValueError if an entry is not an integer in [start, stop)."""
    values = np.asarray(array)
    if values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers; got dtype {values.dtype}.")
    if values.size and not (start <= values.min() and values.max() < stop):
        bad = values[(values < start) | (values >= stop)].flat[0]
        raise ValueError(f"{name} must be integers in [{start}, {stop}); got {bad}.")


def check_starts(name, starts, n, stop):
    """ValueError if n + 1 integers do not increase (weakly) from 0 to `stop`."""
    check_shape(name, starts, n + 1)
    places = np.asarray(starts)
    check_indices(name, places[:0], stop + 1)
    if places[0] != 0 or places[-1] != stop or (places[1:] < places[:-1]).any():
        raise ValueError(f"{name} must rise from 0 to {stop}; got {places}.")


def as_canonical(X, name="X"):
    """X as checked; a copy of a CSR matrix unless the columns of its rows rise.

    All CSR input passes here, because SciPy sorts columns and sums repeated entries in
    place where a method needs it, also in methods that seem only to read (`power`, `max`,
    and `astype` of some versions). The matrix of a user would change. Its attribute
    `has_canonical_format` may be of indices that it had before, so they are looked at.
    """
    if not sparse.issparse(X):
        return X
    is_within, is_canonical = _layout(X)
    if is_canonical:
        return X
    if not is_within:
        check_sparse(X, name)
    if X.format != "csr":
        return X
    used = slice(X.indptr[-1])
    parts = X.data[used], X.indices[used], X.indptr
    own = type(X)(parts, shape=X.shape, copy=True)
    own.sum_duplicates()
    return own


def as_csr(X, name="X"):
    """A sparse matrix of any format as CSR, as `as_canonical` returns it."""
    X = as_canonical(X, name)
    return X if X.format == "csr" else as_canonical(X.tocsr(), name)


def _layout(X):
    """As `csr_layout`; both False for what is no CSR matrix with indices of one type."""
    if X.format != "csr" or X.ndim != 2 or not isinstance(X.data, np.ndarray):
        return False, False
    return scan_csr(X.indices, X.indptr, len(X.data), *X.shape)


def scan_csr(indices, indptr, n_entries, n_rows, n_columns):
    """As `csr_layout`, of indices of any type; both False says nothing of odd types."""
    try:
        scan = csr_layout if indices.dtype.itemsize == 4 else csr_layout_of_longs
        return scan(indices, indptr, n_entries, n_rows, n_columns)
    except (AttributeError, TypeError, ValueError):
        return False, False


def check_sparse(X, name="X"):
    """ValueError if X is sparse and not 2-D, or has indices out of bounds.

    Nobody else checks them: conversions read and write wherever the indices point.
    """
    if not sparse.issparse(X) or _layout(X)[0]:
        return
    check_shape(name, X, "n_rows", "n_columns")
    for part in PARTS.get(X.format, ()):
        if not isinstance(getattr(X, part), np.ndarray):
            found = type(getattr(X, part)).__name__
            raise ValueError(f"{name}.{part} must be an array; got {found}.")
    if X.format == "coo":
        # `coords` has them too, since SciPy 1.13.
        indices = X.row, X.col
        for axis, (places, size) in enumerate(zip(indices, X.shape, strict=True)):
            check_shape(f"{name}.coords[{axis}]", places, len(X.data))
            check_indices(f"{name}.coords[{axis}]", places, size)
    elif X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        lines, size = (n // b for n, b in zip(X.shape, block, strict=True))
        if X.format == "csc":
            lines, size = size, lines
        n_entries = min(len(X.indices), len(X.data))
        check_shape(f"{name}.indptr", X.indptr, lines + 1)
        if not 0 <= X.indptr[-1] <= n_entries:
            raise ValueError(
                f"{name}.indptr must end at {n_entries}, the number of entries; "
                f"got {X.indptr[-1]}."
            )
        check_starts(f"{name}.indptr", X.indptr, lines, X.indptr[-1])
        check_indices(f"{name}.indices", X.indices[: X.indptr[-1]], size)
