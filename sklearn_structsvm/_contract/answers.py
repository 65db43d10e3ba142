"""The gate: what users' code returns is checked here before anything else reads it.

The methods of a structure, a transformer, a classifier, an LMO, a metric or a splitter
are a user's own. A kernel trusts lengths and indices, and a solver trusts numbers. So
every value that such a method returns passes one of the methods of `Answer`.
"""

import reprlib
from collections.abc import Iterable
from inspect import isroutine
from math import inf, isfinite
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._utils.borders import as_contiguous, check_sparse, fits, scan_csr
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.tolerances import FOREIGN_ROUNDING

# Types of NumPy that are real numbers.
REAL = "fiub"
DOUBLE = np.dtype(np.float64)


class Answer:
    """What a method returned, with the words for an error.

    Errors are ValueError. They name the method, its owner, the example and the value.

    `owner` (object or str): whose method it is, or its name. `example` (int, str or
    None): for which example it was called, if it was called for one.
    """

    __slots__ = ("example", "method", "owner")

    def __init__(self, method, owner, example=None):
        self.method, self.owner, self.example = method, owner, example

    def __str__(self):
        owner = self.owner
        if isroutine(owner) or isinstance(owner, type):
            owner = owner.__name__
        elif not isinstance(owner, str):
            owner = type(owner).__name__
        return f"{self.method} of {owner}"

    def fault(self, rule, found):
        """The error: what the answer must be, and what it is."""
        where = "" if self.example is None else f" for example {self.example}"
        return ValueError(f"{self} must {rule}; got {found}{where}.")

    def number(self, value, least=-inf, most=inf):
        """A finite number as a float."""
        number = value
        if not isinstance(value, float):
            try:
                array = np.asarray(value)
                # Numbers of other libraries are objects to NumPy.
                is_number = array.ndim == 0 and array.dtype.kind in REAL + "O"
                number = float(value) if is_number else np.nan
            except (TypeError, ValueError, OverflowError):
                number = np.nan
        if least <= number <= most and isfinite(number):
            return number
        raise self.fault(f"be a finite number{_bounds(least, most)}", brief(value))

    def array(self, values, *shape, least=-inf, most=inf, finite=True, rule=None):
        """Numbers of this shape as a C-contiguous array; float32 stays.

        An arbitrary length is given by its name, as for `check_shape`. A rule has the
        words for the bounds.
        """
        array = self._numbers(values)
        if not fits(array.shape, shape):
            expected = str(shape).replace("'", "")
            raise self.fault(f"have shape {expected}", f"shape {array.shape}")
        extremes = (array.min(), array.max()) if array.size else ()
        # Both are NaN if an entry is.
        if all(least <= x <= most and (isfinite(x) or not finite) for x in extremes):
            return array
        bad = ~((array >= least) & (array <= most))
        bad |= finite & ~np.isfinite(array)
        at = tuple(np.argwhere(bad)[0].tolist())
        raise self.fault(
            rule or f"hold {'finite ' * finite}numbers{_bounds(least, most)}",
            f"{array[at]} at {at[0] if len(at) == 1 else at}",
        )

    def probabilities(self, values, n, k, least=-FOREIGN_ROUNDING):
        """Shares of the classes, or of labels, (n, k), from 0 to 1 up to rounding."""
        most, rule = 1.0 + FOREIGN_ROUNDING, "hold probabilities, from 0 to 1"
        return self.array(values, n, k, least=least, most=most, rule=rule)

    def of_each(self, values, n):
        """A list, array, matrix or table with an entry for each of n, as it is."""
        try:
            found = values.shape[0] if hasattr(values, "shape") else len(values)
        except (TypeError, IndexError):
            found = brief(values)
        if found != n:
            raise self.fault(f"have {n} entries, one for each that was asked for", found)
        if sparse.issparse(values):
            self._check_sparse(values)
        return values

    def by_example(self, values):
        """Pairs of the answer for an example, and its value."""
        for i, value in enumerate(values):
            yield Answer(self.method, self.owner, i), value

    def _check_sparse(self, matrix):
        try:
            check_sparse(matrix, "its matrix")
        except ValueError as error:
            raise self.fault("be a sound sparse matrix", f"{error}"[:-1]) from None

    def places(self, values, n, part):
        """Places of some of n examples, given by their numbers or by a mask."""
        array = np.asarray(values)
        if array.dtype == bool and array.shape == (n,):
            return np.flatnonzero(array)
        rule = f"have places from 0 to {n - 1} in its {part} part"
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            found = f"an array of shape {array.shape} and dtype {array.dtype}"
            raise self.fault(rule, found)
        bad = (array < 0) | (array >= n)
        if bad.any():
            raise self.fault(rule, array[bad][0])
        return array.astype(np.intp, copy=False)

    def codes(self, values, n, stop):
        """n integers in [0, stop), of dtype intp."""
        return check_codes(values, n, stop, str(self))

    def pair(self, values):
        """A tuple or list of two, as it is."""
        if not isinstance(values, (tuple, list)) or len(values) != 2:
            raise self.fault("be a pair", brief(values))
        return values

    def _numbers(self, values):
        if np.ma.is_masked(values):
            raise self.fault("hold numbers", "masked entries")
        try:
            array = np.asarray(values)
            if array.dtype == object:
                array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self.fault(f"hold numbers ({error})", brief(values)) from error
        if array.dtype.kind not in REAL:
            raise self.fault("hold real numbers", f"dtype {array.dtype}")
        single = array.dtype == np.float32
        return as_contiguous(array, np.float32 if single else np.float64)

    def length(self, values):
        """The length of a vector, dense or a sparse row or column."""
        shape = self._shape(values)
        size = max(shape, default=0)
        if size == 0 or np.prod(shape) != size:
            raise self.fault("be a vector of shape (d,) or (1, d)", f"shape {shape}")
        return size

    def _shape(self, values):
        try:
            return tuple(values.shape if hasattr(values, "shape") else np.shape(values))
        except ValueError as error:
            raise self.fault(f"be an array ({error})", brief(values)) from error

    def vector(self, values, size):
        """A vector, dense or a sparse row, as (indices, values) without zeros.

        Indices are sorted, and entries of the same index are summed.

        Returns `indices` (intp) and `values` (float64).
        """
        # At once for what most structures return.
        if type(values) is np.ndarray and values.dtype is DOUBLE:
            if values.shape == (size,) and isfinite(values.dot(values)):
                kept = values.nonzero()[0]
                return kept, values[kept]
        shape = self._shape(values)
        if shape != (size,) and self.length(values) != size:
            raise self.fault(f"have shape ({size},)", f"shape {shape}")
        if sparse.issparse(values):
            indices, values = self._entries(values, size)
        else:
            values = self._numbers(values).ravel()
            indices = None
        # A finite sum of squares has finite terms.
        if not isfinite(values.dot(values)) and not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            place = at if indices is None else indices[at]
            raise self.fault("be finite", f"{values[at]} at {place}")
        kept = values.nonzero()[0]
        values = values[kept].astype(np.float64, copy=False)
        return kept if indices is None else indices[kept], values

    def _entries(self, row, size):
        """Indices, sorted and distinct, and values of a sparse vector, zeros included."""
        indices, values, is_sorted = self._stored(row, size)
        values = self._numbers(values)
        if not is_sorted:
            indices, places = np.unique(indices, return_inverse=True)
            values = np.bincount(places, weights=values, minlength=len(indices))
        return indices.astype(np.intp, copy=False), values

    def _stored(self, row, size):
        """The entries as they are stored, and whether they are known to be sorted."""
        if row.format == "csr" and row.shape[-1] == size:
            layout = row.indices, row.indptr, len(row.data), 1, size
            is_within, is_sorted = scan_csr(*layout)
            if not is_within:
                self._check_row(*layout)
            stop = row.indptr[1]
            return row.indices[:stop], row.data[:stop], is_sorted
        if len(row.shape) == 2:
            self._check_sparse(row)
        entries = row.tocoo()
        # One of them is zero in a row or a column.
        coords = getattr(entries, "coords", None) or (entries.row, entries.col)
        return self.indices(sum(coords), size), entries.data, False

    def _check_row(self, indices, indptr, n_entries, n_rows, size):
        n_entries = min(len(indices), n_entries)
        if len(indptr) != 2 or indptr[0] != 0 or not 0 <= indptr[1] <= n_entries:
            raise self.fault(f"have an indptr from 0 to {n_entries}", brief(indptr))
        self.indices(indices[: indptr[1]], size)

    def check_sorted(self, row):
        """ValueError if a sound CSR row has an index twice, or has them out of order.

        Otherwise they are summed, or sorted, each time: the first hides a mistake, and
        both take time.
        """
        if not sparse.issparse(row) or row.format != "csr":
            return
        steps = np.diff(row.indices)
        bad = np.flatnonzero(steps <= 0)
        if len(bad):
            at = bad[0]
            first, second = row.indices[at : at + 2].tolist()
            found = f"the index {first} before {second}"
            rule = "have each index once" if first == second else "have sorted indices"
            raise self.fault(rule, found)

    def indices(self, values, stop):
        """Integers in [0, stop), as they are."""
        if values.dtype.kind not in "iu":
            raise self.fault("have integers as indices", f"dtype {values.dtype}")
        if len(values) and not (values.min() >= 0 and values.max() < stop):
            bad = values[(values < 0) | (values >= stop)][0]
            raise self.fault(f"have indices from 0 to {stop - 1}", f"the index {bad}")
        return values


def checked_folds(cv, X, y, *, classifier=False, **for_split):
    """The folds that a splitter or an iterable yields: places of examples, in pairs.

    Masks become places. ValueError for places out of range, and for negative ones, which
    NumPy would count from the end.

    `cv`, `y`, `classifier` as of scikit-learn's `check_cv`. A share holds out that many
    examples, drawn at random, once. `**for_split`: further arguments of the splitter.
    """
    n, result = _num_samples(X), []
    groups, words = for_split.get("groups"), None
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        del for_split["groups"]
        words = f"groups are not used with cv={cv}: write cv=GroupKFold({cv or 5})."
    elif np.ndim(groups) == 1 and len(set(np.ravel(groups).tolist())) == n > 1:
        words = "Each example has a group of its own: the folds are as without groups."
    if words:
        warn_caller(words)
    if isinstance(cv, Real) and 0.0 < cv < 1.0:
        kind = StratifiedShuffleSplit if classifier else ShuffleSplit
        cv = kind(1, test_size=cv, random_state=0)
    if cv is None or isinstance(cv, Integral):
        folds = _numbered_folds(5 if cv is None else cv, X, y, classifier, for_split)
    elif isinstance(cv, str) or hasattr(cv, "split") or not isinstance(cv, Iterable):
        folds = check_cv(cv, y, classifier=classifier).split(X, y, **for_split)
    else:
        folds = cv
    for k, fold in enumerate(folds):
        answer = Answer(f"fold {k}", "cv")
        parts = zip(answer.pair(fold), ("training", "test"), strict=True)
        result.append(tuple(answer.places(part, n, name) for part, name in parts))
    return result


def _numbered_folds(cv, X, y, classifier, for_split):
    """The folds of a number, which is called by its name."""
    refuse_many_folds(cv, _num_samples(X))
    try:
        yield from check_cv(cv, y, classifier=classifier).split(X, y, **for_split)
    except ValueError as error:
        raise ValueError(str(error).replace("n_splits", "cv")) from None


def refuse_many_folds(cv, n):
    """ValueError for more folds than examples."""
    if n < cv:
        raise ValueError(f"cv={cv} needs at least as many examples; got n_samples={n}.")


def brief(value):
    """A value for an error message, cut off if it is long."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return reprlib.repr(value)


def _bounds(least, most):
    """Words for bounds that are finite."""
    both = [f">= {least:g}"] * (least > -inf) + [f"<= {most:g}"] * (most < inf)
    return " " * bool(both) + " and ".join(both)
