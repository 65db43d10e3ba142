"""Transformers of rows over all sequences, and tables split into sequences."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import (
    as_array,
    check_sequence,
    is_empty,
    refuse_masked,
)
from sklearn_structsvm._utils.caller import warn_if_swapped
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.mistakes import meant, with_plain_calls
from sklearn_structsvm._utils.pieces import MIN_PIECE
from sklearn_structsvm._utils.sequences import (
    check_item,
    nothing,
    one_table,
    put_back,
    row_labels,
    rows_of,
    stacked,
    used_items,
)
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import (
    codes_by_first_row,
    column_names,
    concatenated,
    from_column,
    joined_columns,
    n_rows,
    row_type,
    rows_at,
    split_rows,
    without_column,
)
from sklearn_structsvm._utils.tokens import TokenError, TokenVectorizer

__all__ = ["SequenceTransformer", "split_sequences"]


def _transformer_has(name):
    def check(self):
        # The transformer's own AttributeError is more helpful.
        getattr(self._inner, name)
        return True

    return check


class SequenceTransformer(
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
        - a list of strings, each of which is a feature;
        - a single string; or
        - a pair ``(attributes, vector)`` of one of these and a 1-D array of numbers, such
          as an embedding. Its columns are ``vector[0]``, ``vector[1]`` and so on. Either
          all tokens are pairs or none is.

        In a dict, values may be 1-D arrays of numbers as well: that of ``"left"`` has the
        columns ``left[0]``, ``left[1]`` and so on. Arrays of one name must have the same
        length in all tokens. A token without it has zeros there.
    edge_transformer : estimator or None, default=None
        Transformer of the features of edges, which are the last entries of items such as
        (features, edge_features) or (features, edges, edge_features). It is applied to
        the edges of all items. None leaves them as they are.

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.
    edge_transformer_ : SequenceTransformer
        The fitted transformer of the features of edges. Defined only with
        `edge_transformer`.
    n_features_in_ : int
        Number of columns of its input. Defined only if the transformer has it.
    feature_names_in_ : ndarray of str
        Names of the columns of its input. Defined only if the transformer has them.

    See Also
    --------
    split_sequences : Splits a table into sequences by a column of identifiers.
    SplitMatrix : Dense columns beside sparse ones.

    Notes
    -----
    The output is a list of views of one matrix: arrays, CSR matrices, `SplitMatrix` or,
    with `set_output`, data frames.

    Without a transformer, the attributes are a CSR matrix. Vectors stand behind them:
    first, in the CSR matrix, those that fewer than half of the tokens in `fit` have, and
    then all others as one array. With both kinds, items are `SplitMatrix`. They are
    float32 if the vectors in `fit` are (or have a type that float32 represents exactly),
    and float64 otherwise. float32 rounds numbers among the attributes; strings and flags
    have the value 1 and stay exact.

    ``make_union(SequenceTransformer(a), SequenceTransformer(b))`` joins the columns of
    each sequence: arrays if both are arrays, CSR matrices if both are sparse, and
    otherwise `SplitMatrix`, so that arrays stay arrays. A `SequenceTransformer` of such
    items gives its transformer CSR matrices; so scale columns before they are joined. The
    union itself does not support `set_output`; ``SequenceTransformer(make_union(a, b))``
    does, and makes CSR matrices of an array and a sparse matrix.

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

    def __init__(self, transformer: Any = None, *, edge_transformer: Any = None) -> None:
        self.transformer = transformer
        self.edge_transformer = edge_transformer

    @property
    def _inner(self):
        return getattr(self, "transformer_", self.transformer)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformer to the rows of all sequences.

        Parameters
        ----------
        X : sequence or iterator of n sequences
            Each sequence is an array, a CSR matrix or a data frame with T_i rows, or a
            list of T_i tokens. Some may be empty. In tuples such as (features, edges) or
            (features, scores) features are transformed, and all else stays as it is.
            Without a transformer, an iterator is read piece by piece, and no token is
            kept.
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
        if self._reads_pieces(X):
            self.fit_transform(X, **params)
            return self
        warn_if_swapped(X, y)
        transformer = self._unfitted(params)
        rows, lengths, rests = one_table(X)
        edges = self._unfitted_edges()
        if edges is not None:
            edges.fit(_edges_of(rests))
        call = partial(transformer.fit, **params)
        _placed(call, rows, lengths, *row_labels(y, lengths))
        self._set_fitted(transformer, edges)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Fit the transformer and transform the same sequences."""
        warn_if_swapped(X, y)
        transformer, edges = self._unfitted(params), self._unfitted_edges()
        if self._reads_pieces(X):
            pieces = _Pieces(X)
            out = _placed(transformer.fit_transform_pieces, pieces, pieces.lengths)
            lengths = np.array(pieces.lengths)
            if not any(pieces.lengths):
                raise nothing()
            rests = [None] * len(lengths)
        else:
            rows, lengths, rests = one_table(X)
            if edges is not None:
                rests = _with_edges(rests, edges.fit_transform(_edges_of(rests)))
            call = partial(transformer.fit_transform, **params)
            out = _placed(call, rows, lengths, *row_labels(y, lengths))
        items = self._sequences(transformer, "fit_transform", out, lengths, rests)
        self._set_fitted(transformer, edges)
        return items

    def transform(self, X: Any) -> list[Any]:
        """Transform the rows of each sequence.

        Parameters
        ----------
        X : sequence of n sequences
            As in `fit`.

        Returns
        -------
        list of n arrays, CSR matrices, `SplitMatrix` or data frames with T_i rows
            Transformed sequences.
        """
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        if self._reads_pieces(X):
            return self._transform_pieces(_Pieces(X))
        items, rests = rows_of(X)
        if self.edge_transformer is not None:
            rests = _with_edges(rests, self.edge_transformer_.transform(_edges_of(rests)))
        if all(map(is_empty, items)):
            # There is nothing to transform, of whatever type it would be.
            return SequenceList(put_back([], rest) for rest in rests)
        rows, lengths = stacked(items)
        transformer = self.transformer_
        with damage_refused(self):
            out = _placed(transformer.transform, rows, lengths)
            return self._sequences(transformer, "transform", out, lengths, rests)

    def _transform_pieces(self, pieces):
        result = SequenceList()
        for tokens in pieces:
            first, n_before = len(result), sum(pieces.lengths[: len(result)])
            try:
                with damage_refused(self):
                    out = self.transformer_.transform(tokens)
            except TokenError as error:
                error.row += n_before
                raise _with_place(error, pieces.lengths) from None
            result += split_rows(out, pieces.lengths[first:])
        return result

    def _sequences(self, transformer, method, out, lengths, rests):
        """The rows that the transformer returned, one sequence after another."""
        if self.transformer is not None:
            out = Answer(method, transformer).of_each(out, lengths.sum())
        return SequenceList(map(put_back, split_rows(out, lengths), rests))

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
            if not hasattr(transformer, "set_output"):
                raise ValueError(
                    f"set_output requires a transformer that has it; got {transformer!r}."
                )
            transformer.set_output(transform=transform)
        return self

    def _unfitted(self, params):
        """The transformer to fit, which takes the place of `transformer_` afterwards."""
        given = self.transformer
        if given is None and params:
            raise TypeError(f"Parameters of fit need a transformer; got {list(params)}.")
        return TokenVectorizer() if given is None else clone(given)

    def _unfitted_edges(self):
        """The same of features of edges; None if they stay as they are."""
        given = self.edge_transformer
        return None if given is None else SequenceTransformer(given)

    def _set_fitted(self, transformer, edges):
        self.transformer_ = transformer
        if edges is not None:
            self.edge_transformer_ = edges

    def _reads_pieces(self, X):
        """Whether X is read piece by piece."""
        is_simple = self.transformer is None and self.edge_transformer is None
        return isinstance(X, Iterator) and is_simple

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


def _edges_of(rests):
    """The features of edges of each item, by what `rows_of` found beside its rows."""
    for i, rest in enumerate(rests):
        if rest is None:
            raise ValueError(
                f"X[{i}] has no features of edges: with edge_transformer, an item is "
                "(features, edge_features) or (features, edges, edge_features)."
            )
    return [beside[-1] for _, beside in rests]


def _with_edges(rests, edges):
    return [
        (inner, (*beside[:-1], own))
        for (inner, beside), own in zip(rests, edges, strict=True)
    ]


class SequenceList(list[Any]):
    """A list of sequences, of which `FeatureUnion` can join the columns, with weights.

    It multiplies the outputs of its transformers by weights, and calls `np.hstack`. NumPy
    would stack sequences of equal length, and join them along time. In all else this is a
    list, also to NumPy.
    """

    def __mul__(self, weight):
        items, rests = rows_of(self)
        items = (item if is_empty(item) else item * weight for item in items)
        return SequenceList(map(put_back, items, rests))

    def __array_function__(self, func, types, args, kwargs):
        axis = args[1] if len(args) > 1 else kwargs.get("axis")
        if func is np.hstack or (func is np.concatenate and axis == 1):
            return _joined_sequences(args[0])
        return func(*map(_without_protocol, args), **kwargs)


def _without_protocol(argument):
    """The argument with plain lists, as NumPy would read them without the class."""
    if isinstance(argument, SequenceList):
        return list(argument)
    if type(argument) in (list, tuple):
        return type(argument)(map(_without_protocol, argument))
    return argument


def _joined_sequences(parts):
    """The columns of these lists of sequences, side by side.

    Arrays give an array, CSR matrices a CSR matrix, and both a `SplitMatrix`, which
    copies only adjacent blocks of the same kind.
    """
    for k, part in enumerate(parts):
        if not isinstance(part, (list, tuple)):
            raise TypeError(
                f"Transformer {k} of the union returned one {type(part).__name__}, but "
                "others returned a list of sequences. Use SequenceTransformer for all of "
                "them."
            )
    parts, rests = zip(*map(rows_of, parts), strict=True)
    items = _joined_rows(parts)
    return SequenceList(map(put_back, items, rests[0]))


def _joined_rows(parts):
    """The same, of rows without what stands beside them."""
    if all(is_empty(item) for part in parts for item in part):
        return SequenceList([] for _ in parts[0])
    used, lengths = zip(*map(used_items, parts), strict=True)
    for k, own in enumerate(lengths):
        if not np.array_equal(own, lengths[0]):
            raise ValueError(
                f"Transformers 0 and {k} of the union returned sequences of different "
                "lengths."
            )
    columns = []
    for k, items in enumerate(used):
        if row_type(items[0]) == "tokens":
            raise TypeError(
                f"Transformer {k} of the union returned tokens without columns, such as "
                f"{items[0][0]!r}. Use SequenceTransformer."
            )
        if isinstance(items[0], SplitMatrix):
            columns += zip(*(item.matrices for item in items), strict=True)
        else:
            columns.append(items)
    runs = [list(run) for _, run in groupby(columns, lambda run: sparse.issparse(run[0]))]
    if len(runs) == 1:
        return SequenceList(split_rows(_beside(runs[0]), lengths[0]))
    own_lengths = lengths[0][lengths[0] > 0]
    runs = [
        run[0] if len(run) == 1 else split_rows(_beside(run), own_lengths) for run in runs
    ]
    made = list(map(SplitMatrix, zip(*runs, strict=True)))
    places = (np.cumsum(lengths[0] > 0) - 1).tolist()
    return SequenceList(
        made[place] if length else made[0][:0]
        for place, length in zip(places, lengths[0], strict=True)
    )


def _beside(columns):
    """The rows of all items, with these blocks of their columns side by side."""
    return joined_columns([concatenated(items) for items in columns])


def _placed(call, rows, lengths, *args):
    """call(rows, ...), with the sequences of these lengths in errors about tokens."""
    try:
        return call(rows, *args)
    except TokenError as error:
        raise _with_place(error, lengths) from None
    except TypeError as error:
        if isinstance(rows, list) and isinstance(next(iter(rows), None), Mapping):
            raise TypeError(
                f"The transformer cannot read dicts, such as {rows[0]!r} ({error}). For "
                "these use SequenceTransformer() without a transformer."
            ) from error
        raise


def _with_place(error, lengths):
    """The error about a token, with its sequence and its position."""
    ends = np.cumsum(lengths)
    i = int(np.searchsorted(ends, error.row, side="right"))
    place = error.row - int(ends[i] - lengths[i])
    return error.kind(f"X[{i}][{place}] {error.fault}")


@with_plain_calls
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
    if not sparse.issparse(table):
        words = "a data frame, an array, a matrix or a list with one row per token"
        check_sequence("table", table, words, TypeError)
    if isinstance(ids, str):
        names = column_names(table) or []
        if ids not in names:
            raise ValueError(
                f"ids={ids!r} is not a column of the table. Its columns are {names}."
                f"{meant(ids, names)}"
            )
        ids, table = table[ids], without_column(table, ids)
    refuse_masked("table", table)
    ids, n = as_array("ids", ids), n_rows(table)
    if ids.shape != (n,):
        raise ValueError(
            f"ids must have one entry for each of the {n} rows; got an array of "
            f"shape {ids.shape}."
        )
    if n == 0:
        raise ValueError("The table is empty: at least one row is needed.")
    codes = codes_by_first_row(ids)
    if (np.diff(codes) < 0).any():
        table = rows_at(table, np.argsort(codes, kind="stable"))
    return split_rows(table, np.bincount(codes))


class _Pieces:
    """The tokens of sequences as they arrive, a list for a few sequences at a time.

    `lengths`: those of the sequences that have arrived.
    """

    def __init__(self, X):
        self.X, self.lengths = X, []

    def __iter__(self):
        tokens, n_given = [], 0
        for i, item in enumerate(self.X):
            item = from_column(item)
            check_item(item, i)
            if row_type(item) != "tokens":
                raise TypeError(
                    f"X[{i}] has type {type(item).__name__}; SequenceTransformer without "
                    "a transformer takes lists of tokens."
                )
            self.lengths.append(len(item))
            tokens += item
            if len(tokens) >= MIN_PIECE:
                yield tokens
                tokens, n_given = [], len(self.lengths)
        if n_given < len(self.lengths):
            yield tokens
