"""Rows that know the rows before and after them."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from sklearn_structsvm._utils.borders import check_integer, is_empty
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.labels import listed
from sklearn_structsvm._utils.sequences import one_table, put_back, rows_of, stacked
from sklearn_structsvm._utils.tables import refuse_odd_columns, split_rows
from sklearn_structsvm.preprocessing.sequences import SequenceList

STATISTICS = ("mean", "std", "difference")


class WindowFeatures(
    DocumentedMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Add the rows beside each row, and statistics of windows around it, to its features.

    A classifier that labels one row at a time then sees its surroundings. All numbers
    count as measurements: encode those that are codes of categories before.

    Read more in the :ref:`User Guide <guide-windows>`.

    Parameters
    ----------
    before, after : int, default=1
        How many rows before and after each row are put beside it. At its ends, the first
        or last row of the sequence stands for those that are missing.
    statistics : dict or None, default=None
        For each statistic the length of its window, or several: ``{"mean": [5, 25],
        "std": 25}``. "mean" and "std" are over the rows of the window, whose middle is
        the row itself, up to the ends of the sequence; "difference" is the mean of the
        row and those after it less that of the row and those before it.
    time : str, int or None, default=None
        Name or place of a column with the times of the rows, as numbers, which are not
        decreasing. Lengths are then in its unit: a window has the rows whose time differs
        from that of the row by at most half of its length. None means lengths in rows.
        The column itself is kept, and has no other features.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the rows.
    feature_names_in_ : ndarray of str
        Names of the columns. Defined only for data frames.

    See Also
    --------
    SequenceTransformer : Applies a transformer of single rows.
    StackedStructureClassifier : A structure on top of a classifier of rows.

    Notes
    -----
    Means and deviations are merged from those of windows of half the length. No long sums
    are subtracted, so the digits stay: also those of columns that are large and nearly
    constant, such as times. A missing value makes the statistics of its windows missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.preprocessing import WindowFeatures
    >>> X = [np.array([[1.0], [2.0], [6.0]]), np.array([[5.0]])]
    >>> windows = WindowFeatures(before=1, after=0, statistics={"mean": 3})
    >>> windows.fit_transform(X)[0]
    array([[1. , 1. , 1.5],
           [2. , 1. , 3. ],
           [6. , 2. , 4. ]])
    >>> windows.get_feature_names_out().tolist()
    ['x0', 'x0[-1]', 'mean(x0, 3)']
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    _public_module = "sklearn_structsvm.preprocessing"

    def __init__(
        self,
        before: int = 1,
        after: int = 1,
        statistics: Mapping[str, Any] | None = None,
        time: str | int | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.statistics = statistics
        self.time = time

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters, and learn the names of the columns.

        Parameters
        ----------
        X : sequence of n sequences
            Each is an array or a data frame of numbers with T_i rows. Some may be empty.
            Of tuples such as (features, scores) the features are taken.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        self._windows()
        self._read(one_table(X)[0], reset=True)
        self._time_column()
        return self

    def transform(self, X: Any) -> list[Any]:
        """Add the features of their surroundings to the rows of each sequence.

        Parameters
        ----------
        X : sequence of n sequences
            As in `fit`.

        Returns
        -------
        list of n arrays or data frames with T_i rows
            All columns as they are, those of the rows before and after, and statistics.
            float32 if the rows are.
        """
        check_is_fitted(self)
        items, rests = rows_of(X)
        if all(map(is_empty, items)):
            return SequenceList(put_back([], rest) for rest in rests)
        table, lengths = stacked(items)
        with damage_refused(self):
            out = self._named(self._features(self._read(table, reset=False), lengths))
        return SequenceList(map(put_back, split_rows(out, lengths), rests))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Get the names of the output columns."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        others = [names[j] for j in self._others()]
        beside = [f"{name}[{k:+d}]" for k in self._offsets() for name in others]
        made = [f"{kind}({name}, {n})" for kind, n in self._windows() for name in others]
        return np.array([*names, *beside, *made], dtype=object)

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Set the container of the output sequences, as in scikit-learn's `set_output`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            The container. None leaves it unchanged.

        Returns
        -------
        self : object
            The transformer.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _named(self, rows):
        """Rows in the container that is wanted, with the names of their columns."""
        names = self.get_feature_names_out()
        rename = FunctionTransformer(feature_names_out=lambda *_: names)
        config = vars(self).get("_sklearn_output_config")
        if config is not None:
            rename.set_output(**config)
        return rename.fit_transform(rows)

    def _read(self, table, reset):
        refuse_odd_columns(table, windows=True)
        return validate_data(
            self, table, reset=reset, dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )  # fmt: skip

    def _offsets(self):
        return [k for k in range(-self.before, self.after + 1) if k]

    def _windows(self):
        """The pairs of a statistic and a length, checked as all parameters are."""
        check_integer("before", self.before, 0)
        check_integer("after", self.after, 0)
        found = []
        statistics = {} if self.statistics is None else self.statistics
        if not isinstance(statistics, Mapping):
            raise TypeError(
                "statistics must be a dict of lengths, such as {'mean': 5}; got "
                f"{statistics!r}."
            )
        for kind, lengths in statistics.items():
            if kind not in STATISTICS:
                raise ValueError(
                    f"statistics has {kind!r}, which is not one of {listed(STATISTICS)}."
                )
            for length in np.atleast_1d(lengths).tolist():
                name = f"statistics[{kind!r}]"
                if self.time is None:
                    check_integer(name, length, 1)
                elif not (isinstance(length, Real) and 0.0 < length < np.inf):
                    raise ValueError(f"{name} must be positive; got {length!r}.")
                found.append((kind, length))
        return found

    def _time_column(self):
        """The place of the column of times, or None."""
        if self.time is None or isinstance(self.time, str):
            names = vars(self).get("feature_names_in_", np.empty(0, dtype=object))
            found = np.flatnonzero(names == self.time)
            if self.time is not None and not len(found):
                raise ValueError(f"X has no column with the name time={self.time!r}.")
            return int(found[0]) if len(found) else None
        check_integer("time", self.time, 0)
        if self.time >= self.n_features_in_:
            raise ValueError(
                f"time={self.time!r} is not a column: X has {self.n_features_in_}."
            )
        return self.time

    def _others(self):
        own = self._time_column()
        return [j for j in range(self.n_features_in_) if j != own]

    def _features(self, rows, lengths):
        """All output columns of the stacked rows of sequences of these lengths."""
        others, at = rows[:, self._others()], np.arange(len(rows))
        stops = np.repeat(np.cumsum(lengths), lengths)
        starts = stops - np.repeat(lengths, lengths)
        columns = [rows]
        columns += [others[np.clip(at + k, starts, stops - 1)] for k in self._offsets()]
        exact = others.astype(np.float64, copy=False)
        for kind, length in self._windows():
            if self.time is None:
                low = np.maximum(at - (length - 1) // 2, starts)
                high = np.minimum(at + length // 2 + 1, stops)
            else:
                times = rows[:, self._time_column()]
                low, high = _windows_of_time(times, lengths, length)
            if kind == "difference":
                found = _moments(exact, at, high)[0] - _moments(exact, low, at + 1)[0]
            else:
                found = _moments(exact, low, high)[kind == "std"]
            columns.append(found.astype(rows.dtype, copy=False))
        return np.hstack(columns)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _windows_of_time(times, lengths, length):
    """The rows [low, high) at most half of `length` away in time, of each row.

    Up to rounding: the times 0.1, 0.2, ... are as far from each other as they say.
    """
    low, high, start = [], [], 0
    for i, own in enumerate(split_rows(times.astype(np.float64), lengths)):
        if not (np.diff(own) >= 0.0).all() or not np.isfinite(own).all():
            raise ValueError(f"The times of X[{i}] must be finite, and sorted.")
        reach = 0.5 * length + 4.0 * np.spacing(np.abs(own).max(initial=0.0))
        low.append(start + np.searchsorted(own, own - reach))
        high.append(start + np.searchsorted(own, own + reach, side="right"))
        start += len(own)
    return np.concatenate(low), np.concatenate(high)


def _moments(rows, low, high):
    """Means and standard deviations of rows[low[t] : high[t]], for each t.

    They are merged from blocks of 1, 2, 4, ... rows, of which each window has at most one
    of a size. So nothing is subtracted but neighboring means.
    """
    n, at = high - low, low.copy()
    mean, squares = np.zeros((2, len(low), rows.shape[1]))
    size, means, spreads = 1, rows, np.zeros_like(rows)
    while True:
        own = np.flatnonzero(n & size)
        found, block = (n[own] & (size - 1))[:, np.newaxis], at[own]
        step = means[block] - mean[own]
        mean[own] += step * (size / (found + size))
        squares[own] += spreads[block] + step**2 * (found * (size / (found + size)))
        at[own] += size
        if not (n >= 2 * size).any():
            return mean, np.sqrt(squares / n[:, np.newaxis])
        step = means[size:] - means[:-size]
        spreads = spreads[:-size] + spreads[size:] + step**2 * (0.5 * size)
        means = means[:-size] + 0.5 * step
        size *= 2
