"""Preprocessing: from tokens and tables to the sequences that structures accept."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from numbers import Number
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction import DictVectorizer
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import is_empty
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.pieces import take_rows
from sklearn_structsvm._utils.tables import column_names

__all__ = ["SequenceTransformer", "split_sequences"]


def _transformer_has(name):
    def check(self):
        # An AttributeError of the transformer says more than one of ours.
        getattr(self._inner, name)
        return True

    return check


class SequenceTransformer(  # type: ignore[call-arg]
    DocumentedMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Apply a transformer of rows to the rows of all sequences.

    The rows of all sequences are concatenated and passed to the transformer. Its output
    is split into sequences again. All transformers of scikit-learn can therefore be used
    for sequences, also in pipelines and grid searches.

    Read more in the :ref:`User Guide <guide-words>`.

    Parameters
    ----------
    transformer : estimator or None, default=None
        Transformer of rows, such as `DictVectorizer`, `FeatureHasher`, `StandardScaler`,
        `OneHotEncoder`, `TfidfVectorizer`, a `ColumnTransformer` or a `Pipeline`. None
        uses a `DictVectorizer` for tokens in the format of CRFsuite. A token is then

        - a dict, in which strings become binary features (``{"word": "the"}`` is
          ``word=the``) and dicts are nested (``{"next": {"word": "the"}}`` is
          ``next:word=the``);
        - a list of strings, each of which is a feature; or
        - a single string.

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.
    n_features_in_ : int
        Number of columns of its input. Defined only if the transformer has it.
    feature_names_in_ : ndarray of str
        Names of the columns of its input. Defined only if the transformer has them.

    See Also
    --------
    split_sequences : Splits a table into sequences by a column of identifiers.

    Notes
    -----
    The output is a list of views of one matrix: arrays, CSR matrices or, with
    `set_output`, data frames.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.preprocessing import SequenceTransformer
    >>> X = [
    ...     [{"word": "the", "bias": 1.0}, {"word": "cat", "bias": 1.0}],
    ...     [{"word": "a", "bias": 1.0}, {"word": "dog", "bias": 1.0}, {"word": "barks"}],
    ... ]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> model = make_pipeline(SequenceTransformer(), BCFWClassifier(random_state=0))
    >>> model.fit(X, y).predict([[{"word": "the"}, {"word": "dog"}]])[0].tolist()
    ['DET', 'NOUN']
    >>> model[0].get_feature_names_out().tolist()
    ['bias', 'word=a', 'word=barks', 'word=cat', 'word=dog', 'word=the']
    """

    _public_module = "sklearn_structsvm.preprocessing"

    def __init__(self, transformer: Any = None) -> None:
        self.transformer = transformer

    @property
    def _inner(self):
        return getattr(self, "transformer_", self.transformer)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformer to the rows of all sequences.

        Parameters
        ----------
        X : sequence of n sequences
            Each sequence is an array, a CSR matrix or a data frame with T_i rows, or a
            list of T_i tokens. Some may be empty.
        y : sequence of n arrays of shape (T_i,), or None, default=None
            Labels of the rows, for transformers that use them. Ignored if there is not
            one label per row.
        **params : dict
            Parameters passed to the `fit` method of the transformer.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        rows, lengths = join_sequences(X)
        self._start().fit(rows, *_labels(y, lengths), **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Fit the transformer and transform the same sequences."""
        rows, lengths = join_sequences(X)
        out = self._start().fit_transform(rows, *_labels(y, lengths), **params)
        return _split(out, lengths)

    def transform(self, X: Any) -> list[Any]:
        """Transform the rows of each sequence.

        Parameters
        ----------
        X : sequence of n sequences
            As in `fit`.

        Returns
        -------
        list of n arrays, CSR matrices or data frames with T_i rows
            Transformed sequences.
        """
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        if hasattr(X, "__len__") and all(map(is_empty, X)):
            # Nothing to transform, of whatever type it would be.
            return [[] for _ in X]
        rows, lengths = join_sequences(X)
        return _split(self.transformer_.transform(rows), lengths)

    @available_if(_transformer_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Get the names of the output columns."""
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

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
        if self.transformer is None:
            if transform not in (None, "default"):
                raise ValueError(
                    "set_output requires a transformer with dense output, such as "
                    "SequenceTransformer(DictVectorizer(sparse=False))."
                )
            return self
        for transformer in {id(t): t for t in (self.transformer, self._inner)}.values():
            transformer.set_output(transform=transform)
        return self

    def _start(self):
        given = self.transformer
        self.transformer_ = _TokenVectorizer() if given is None else clone(given)
        return self.transformer_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "transformer_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the rows, if the transformer has it."""
        return self._inner.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the rows, if the transformer has them."""
        return self._inner.feature_names_in_


def split_sequences(table: Any, ids: Any) -> list[Any]:
    """Split a table with one row per token into sequences.

    Read more in the :ref:`User Guide <guide-words>`.

    Parameters
    ----------
    table : data frame (pandas or polars), Arrow table, array, CSR matrix or list
        Features or labels of all sequences, with one row per token.
    ids : array-like of shape (n_rows,), or str
        Identifier of the sequence of each row, or the name of the column that holds it.
        The column is removed from the result.

    Returns
    -------
    list
        The rows of each sequence, in their order and of the type of `table`. Sequences
        are in the order of their first rows.

    Raises
    ------
    ValueError
        If `ids` does not have one number or string per row, or names no column.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_structsvm.preprocessing import split_sequences
    >>> table = pd.DataFrame(
    ...     {"sentence": [1, 1, 2], "word": ["the", "cat", "barks"], "length": [3, 3, 5]}
    ... )
    >>> [frame.shape for frame in split_sequences(table, "sentence")]
    [(2, 2), (1, 2)]
    >>> split_sequences(["DET", "NOUN", "VERB"], table["sentence"])
    [['DET', 'NOUN'], ['VERB']]
    """
    if isinstance(ids, str):
        names = column_names(table) or []
        if ids not in names:
            raise ValueError(
                f"ids={ids!r} is not a column of the table. Its columns are {names}."
            )
        ids, table = table[ids], _without(table, ids)
    ids, n_rows = np.asarray(ids), _n_rows(table)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"ids must have one entry for each of the {n_rows} rows; got an array of "
            f"shape {ids.shape}."
        )
    if n_rows == 0:
        raise ValueError("The table is empty: at least one row is needed.")
    _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    codes = rank[codes]
    if (np.diff(codes) < 0).any():
        table = _take(table, np.argsort(codes, kind="stable"))
    return _split(table, np.bincount(codes))


def join_sequences(X):
    """The rows of all sequences below one another, and how many each has.

    Returns
    -------
    rows : as the items of X are
    lengths : ndarray of shape (n,)

    Raises
    ------
    TypeError, ValueError
        If X is one sequence, or holds items of several types, or nothing but empty ones.
    """
    _check_sequences(X)
    items = list(X)
    used = [i for i, item in enumerate(items) if not is_empty(item)]
    if not used:
        raise ValueError("X is empty: at least one sequence with a token is needed.")
    first = items[used[0]]
    for i in used:
        item = items[i]
        if isinstance(item, (str, bytes, Mapping)) or not hasattr(item, "__len__"):
            if not sparse.issparse(item):
                raise TypeError(
                    f"X[{i}] is {item!r}, a single token. X must be a list of sequences, "
                    "each a list of tokens. To pass a single sequence, use [sequence]."
                )
        if _kind(item) != _kind(first):
            raise TypeError(
                f"X[{i}] has type {type(item).__name__}, but X[{used[0]}] has type "
                f"{type(first).__name__}. All sequences must have the same type."
            )
    lengths = np.array([0 if is_empty(item) else _n_rows(item) for item in items])
    return _concatenated([items[i] for i in used]), lengths


def _check_sequences(X):
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        raise TypeError(
            f"X is one {type(X).__name__} of shape {tuple(shape)}, but must be a list of "
            "sequences. To pass a single sequence, use [X]; to split a table into "
            "sequences, use split_sequences."
        )
    if isinstance(X, (str, bytes, Mapping)) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a list of sequences; got {type(X).__name__}.")


def _kind(item):
    if isinstance(item, (list, tuple)) or (
        isinstance(item, np.ndarray) and item.ndim == 1
    ):
        return "tokens"
    return "sparse" if sparse.issparse(item) else type(item)


def _n_rows(item):
    return item.shape[0] if hasattr(item, "shape") else len(item)


def _concatenated(items):
    first = items[0]
    if _kind(first) == "tokens":
        return list(chain.from_iterable(items))
    if sparse.issparse(first):
        return sparse.vstack(items, format="csr")
    library = type(first).__module__.partition(".")[0]
    if library == "pandas":
        import pandas

        return pandas.concat(items)
    if library == "polars":
        import polars

        return polars.concat(items)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.concat_tables(items)
    return np.concatenate(items)


def _split(rows, lengths):
    """Views of the rows, so many for each sequence."""
    ends = np.cumsum(lengths).tolist()
    pairs = list(zip([0, *ends[:-1]], ends, strict=True))
    if sparse.issparse(rows):
        rows = rows if rows.format == "csr" else rows.tocsr()
        if len(pairs) == 1:
            return [rows]
        return [take_rows(rows, slice(*pair)) for pair in pairs]
    if hasattr(rows, "iloc"):
        return [rows.iloc[start:stop] for start, stop in pairs]
    if hasattr(rows, "column_names"):
        return [rows.slice(start, stop - start) for start, stop in pairs]
    return [rows[start:stop] for start, stop in pairs]


def _set_parts(matrix, data, indices, indptr):
    """Give an empty CSR matrix its parts, which its constructor would check and copy."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr


def _take(table, places):
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if hasattr(table, "column_names"):
        return table.take(places)
    if hasattr(table, "shape"):
        return table[places]
    return [table[place] for place in places.tolist()]


def _without(table, name):
    if hasattr(table, "iloc"):
        return table.drop(columns=name)
    return (
        table.drop_columns(name) if hasattr(table, "drop_columns") else table.drop(name)
    )


def _labels(y, lengths):
    """Arguments for `fit`: the labels of all rows, if that is what y is."""
    if y is None or [np.shape(own) for own in y] != [(n,) for n in lengths.tolist()]:
        return ()
    return (np.concatenate([np.asarray(own) for own in y if len(own)]),)


class _TokenVectorizer(DictVectorizer):
    """`DictVectorizer` of tokens as CRFsuite has them: see `SequenceTransformer`.

    Its features, in a fraction of the time and the memory: no dict is made of a token, no
    list of all values, and what can be left to iterators in C is.
    """

    def fit(self, X, y=None):
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        # Asked for a name that it lacks, it gives it the next place.
        places = defaultdict()
        places.default_factory = places.__len__
        data, indices, indptr = _read_tokens(
            X, lambda names: map(places.__getitem__, names)
        )
        self.feature_names_ = sorted(places)
        columns = range(len(places))
        self.vocabulary_ = dict(zip(self.feature_names_, columns, strict=True))
        rank = np.fromiter(map(self.vocabulary_.__getitem__, places), np.intc)
        return self._matrix(data, rank[indices], indptr)

    def transform(self, X):
        data, indices, indptr = _read_tokens(
            X, lambda names: map(self.vocabulary_.get, names, repeat(-1))
        )
        known = indices >= 0
        if not known.all():
            counts = np.zeros(len(known) + 1, dtype=indptr.dtype)
            np.cumsum(known, out=counts[1:])
            indptr = counts[indptr]
            data, indices = data[known], indices[known]
        return self._matrix(data, indices, indptr)

    def _matrix(self, data, indices, indptr):
        matrix = sparse.csr_matrix((len(indptr) - 1, len(self.vocabulary_)))
        _set_parts(matrix, data, indices.astype(indptr.dtype, copy=False), indptr)
        matrix.sum_duplicates()
        return matrix


def _read_tokens(tokens, places_of):
    """Data, places of features and bounds of the rows, of a list of tokens."""
    if all(issubclass(kind, (list, tuple)) for kind in set(map(type, tokens))):
        names, values, lengths = chain.from_iterable(tokens), None, map(len, tokens)
    else:
        values, lengths = array("d"), array("q")
        names = _names_of(tokens, values, lengths)
    indices = np.fromiter(places_of(names), np.intc)
    data = np.ones(len(indices)) if values is None else np.frombuffer(values)
    ends = np.cumsum(np.fromiter(lengths, np.intp))
    kind = np.intc if len(indices) <= np.iinfo(np.intc).max else np.int64
    return data, indices, np.append(0, ends).astype(kind)


def _names_of(tokens, values, lengths):
    """Names of the features of all tokens; their values and numbers go to the others."""
    for token in tokens:
        start = len(values)
        if isinstance(token, str):
            values.append(1.0)
            yield token
        elif not isinstance(token, Mapping):
            for name in token:
                values.append(1.0)
                yield name
        else:
            for name, value in token.items():
                # Most are of these types, and the others take longer to tell.
                if type(value) is str:
                    values.append(1.0)
                    yield f"{name}={value}"
                elif type(value) is float:
                    values.append(value)
                    yield name
                else:
                    for inner, number in _features_of(name, value):
                        values.append(number)
                        yield inner
        lengths.append(len(values) - start)


def _features_of(name, value):
    """Pairs of the name of a feature and its value, of an entry of a token's dict."""
    if isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif isinstance(value, Number) or value is None:
        yield name, np.nan if value is None else value
    elif isinstance(value, Mapping):
        for inner, own in value.items():
            yield from _features_of(f"{name}:{inner}", own)
    elif isinstance(value, Iterable):
        for own in value:
            if not isinstance(own, str):
                raise TypeError(
                    "The values of a token's feature can be listed only if they are "
                    f"strings; got {own!r} in {name!r}: {value!r}."
                )
            yield f"{name}={own}", 1.0
    else:
        raise TypeError(
            "The value of a token's feature must be a number, a string, a list of "
            f"strings or a dict; got {value!r} for {name!r}."
        )
