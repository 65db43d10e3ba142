"""Features of tokens, in the format of CRFsuite, and vectors beside them."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from numbers import Number

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from sklearn_structsvm._utils._vocabulary import Vocabulary, names_of, tidy_rows
from sklearn_structsvm._utils.pieces import LARGEST_INDEX, csr_of_parts
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import column_names, is_missing

# The name of the vector of a token that is a pair: its columns are vector[0], ...
PAIR_NAME = "vector"
# Vectors that at least this share of the tokens has are dense columns: as many bytes of
# float32 as CSR would take, and less time.
DENSE_SHARE = 0.5
# Kinds of the types of numbers and flags, as arrays have them.
NUMERIC = "biuf"


class TokenError(ValueError):
    """What is wrong with the token at the place `row` of all tokens.

    `kind` is the error that users get.
    """

    def __init__(self, row, fault, kind=ValueError):
        super().__init__(row, fault, kind)
        self.row, self.fault, self.kind = row, fault, kind

    def __str__(self):
        return f"Token {self.row} {self.fault}"


class TokenVectorizer(  # type: ignore[call-arg]
    DictVectorizer, auto_wrap_output_keys=None
):
    """`DictVectorizer` of tokens in the format of CRFsuite: see `SequenceTransformer`.

    Its features, in a fraction of the time and the memory: no dict is made of a token, no
    list of all values, and what can be left to iterators in C is. Vectors of tokens are
    columns behind those of the attributes: `vectors_` has the first column and the length
    of each. They are copied once, to their places in the CSR matrix, or in the array of
    the columns from `dense_from_` on.
    """

    def fit(self, X, y=None):
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        return self.fit_transform_pieces([X])

    def fit_transform_pieces(self, pieces):
        """`fit_transform` of an iterable of lists of tokens, none of which is kept."""
        # An unknown name gets the next place.
        places = defaultdict()
        places.default_factory = places.__len__
        is_pair, read, n_rows = None, [], 0
        vectors = defaultdict(lambda: (array("q"), []))
        for tokens in pieces:
            is_pair = _check_tokens(tokens, is_pair, "before", n_rows)
            read.append(
                _read_tokens(
                    tokens, is_pair, vectors, n_rows,
                    lambda names: np.fromiter(map(places.__getitem__, names), np.intc),
                )
            )  # fmt: skip
            n_rows += len(tokens)
        if not read:
            read.append((np.empty(0), np.empty(0, np.intc), np.empty(0, np.intp)))
        data, indices, lengths = (
            parts[0] if len(parts) == 1 else np.concatenate(parts)
            for parts in zip(*read, strict=True)
        )
        indptr = np.append(0, np.cumsum(lengths, dtype=np.intp))
        names = sorted(places)
        self.vectors_, self.is_pair_ = {}, bool(is_pair)
        self.matrix_dtype_ = _dtype_beside(vectors)
        enough = DENSE_SHARE * n_rows
        is_dense = {name: len(rows) >= enough for name, (rows, _) in vectors.items()}
        for name in sorted(sorted(vectors), key=is_dense.__getitem__):
            rows, arrays = vectors[name]
            self.vectors_[name] = len(names), len(arrays[0])
            own = [f"{name}[{k}]" for k in range(len(arrays[0]))]
            if taken := places.keys() & own:
                raise TokenError(
                    rows[0],
                    f"has the vector {name!r}, but its column {min(taken)!r} is an "
                    "attribute as well. Rename one of them.",
                )
            names += own
        self.feature_names_ = names
        self.dense_from_ = min(
            (first for name, (first, _) in self.vectors_.items() if is_dense[name]),
            default=len(names),
        )
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        rank = np.fromiter(map(self.vocabulary_.__getitem__, places), np.intc)
        return self._matrix(data, rank[indices], indptr, vectors)

    def transform(self, X):
        is_pair = _check_tokens(X, self.is_pair_, "in fit")
        table = self._attribute_table()
        rows = table.rows_of(X) if type(X) is list else None
        if rows is not None:
            return self._with_vectors(*rows, {})
        vectors = defaultdict(lambda: (array("q"), []))
        data, indices, lengths = _read_tokens(X, is_pair, vectors, 0, table.columns_of)
        indptr = np.append(0, np.cumsum(lengths, dtype=np.intp))
        return self._matrix(data, indices, indptr, vectors)

    def _attribute_table(self):
        """Columns of attributes by name. Those of vectors are for their arrays alone."""
        known, table = vars(self).get("_table", (None, None))
        if known is not self.vocabulary_:
            known, n = self.vocabulary_, self.n_attributes
            own = known if n == len(known) else {k: j for k, j in known.items() if j < n}
            table = Vocabulary(own)
            self._table = known, table
        return table

    @property
    def n_attributes(self):
        """The number of columns before those of vectors."""
        firsts = [first for first, _ in self.vectors_.values()]
        return min(firsts, default=len(self.vocabulary_))

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_table"}

    def _matrix(self, data, indices, indptr, vectors):
        """The matrix of these rows, without the entries of negative indices."""
        data = data.astype(self.matrix_dtype_, copy=False)
        is_tidy = tidy_rows(data, indices, indptr)
        n = indptr[-1]
        return self._with_vectors(data[:n], indices[:n], indptr, is_tidy, vectors)

    def _with_vectors(self, data, indices, indptr, is_tidy, vectors):
        """The matrix of these rows, of known features, and of the vectors."""
        kind = _index_type(len(data))
        matrix = csr_of_parts(
            sparse.csr_matrix,
            (len(indptr) - 1, self.dense_from_),
            data.astype(self.matrix_dtype_, copy=False),
            indices.astype(kind, copy=False),
            indptr.astype(kind, copy=False),
            is_canonical=is_tidy,
        )
        if not is_tidy:
            matrix.sum_duplicates()
        often, rarely = {}, {}
        for name, part in vectors.items():
            if name in self.vectors_:
                first, length = self.vectors_[name]
                _check_vectors(name, *part, length)
                (rarely if first < self.dense_from_ else often)[name] = part
        if rarely:
            self._add_vectors(matrix, rarely)
        if self.dense_from_ == len(self.vocabulary_):
            return matrix
        dense = self._dense_columns(matrix.shape[0], often)
        return SplitMatrix([matrix, dense]) if self.dense_from_ else dense

    def _dense_columns(self, n_rows, vectors):
        """The array of these vectors, with zeros for tokens that lack one."""
        width = len(self.vocabulary_) - self.dense_from_
        result = np.zeros((n_rows, width), dtype=self.matrix_dtype_)
        for name, part in vectors.items():
            first, length = self.vectors_[name]
            own = result[:, first - self.dense_from_ :][:, :length]
            for row, vector in zip(*part, strict=True):
                own[row] = vector
        return result

    def _add_vectors(self, matrix, vectors):
        """Put the vectors behind the attributes of their rows."""
        sizes = np.diff(matrix.indptr).astype(np.int64)
        ends = sizes.copy()
        for name, (rows, _) in vectors.items():
            ends[np.frombuffer(rows, np.int64)] += self.vectors_[name][1]
        np.cumsum(ends, out=ends)
        indptr = np.append(0, ends).astype(_index_type(ends[-1]))
        data = np.empty(ends[-1], dtype=matrix.dtype)
        indices = np.empty(ends[-1], dtype=indptr.dtype)
        own = np.arange(matrix.nnz) + np.repeat(indptr[:-1] - matrix.indptr[:-1], sizes)
        data[own], indices[own] = matrix.data, matrix.indices
        free = (indptr[:-1] + sizes).tolist()
        # By the order of columns, so that indices are sorted in each row.
        for name in sorted(vectors, key=self.vectors_.__getitem__):
            first, length = self.vectors_[name]
            columns = np.arange(first, first + length, dtype=indptr.dtype)
            for row, vector in zip(*vectors[name], strict=True):
                start, free[row] = free[row], free[row] + length
                data[start : free[row]] = vector
                indices[start : free[row]] = columns
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr


def _dtype_beside(vectors):
    """float32 if all vectors are exact in it and there is one; else float64."""
    kinds = {array.dtype for _, arrays in vectors.values() for array in arrays}
    is_single = kinds and np.result_type(np.float32, *kinds) == np.float32
    return np.float32 if is_single else np.float64


def _index_type(size):
    return np.intc if size <= LARGEST_INDEX else np.int64


def _check_vectors(name, rows, arrays, length):
    for place, (row, vector) in enumerate(zip(rows, arrays, strict=True)):
        if len(vector) != length:
            raise TokenError(
                row,
                f"has a vector {name!r} of length {len(vector)}, but those of the tokens "
                f"in fit have length {length}.",
            )
        if place and rows[place - 1] == row:
            raise TokenError(row, f"has two vectors {name!r}. Rename one of them.")


def _check_tokens(rows, were_pairs, where, start=0):
    """Whether the tokens, whose places begin at `start`, are pairs, as others were.

    Raises TypeError for matrices, data frames and arrays of numbers, which have columns.
    """
    kind = getattr(getattr(rows, "dtype", None), "kind", "O")
    are_numbers = sparse.issparse(rows) or kind in NUMERIC + "c"
    if are_numbers or (not isinstance(rows, list) and column_names(rows) is not None):
        raise TypeError(
            "SequenceTransformer without a transformer takes lists of tokens; got "
            f"sequences that make up one {type(rows).__name__}. Pass a transformer, such "
            "as SequenceTransformer(StandardScaler())."
        )
    if not len(rows):
        return were_pairs
    is_pair = _are_pairs(rows, start)
    if were_pairs not in (None, is_pair):
        now_pair = "is a pair of attributes and a vector, and none was"
        not_pair = "is no pair of attributes and a vector, as all were"
        raise TokenError(start, f"{not_pair if were_pairs else now_pair} {where}.")
    return is_pair


def _are_pairs(tokens, start):
    """Whether the tokens are pairs of attributes and a vector: all of them, or none."""
    if tuple not in set(map(type, tokens)):
        return False
    flags = [_is_pair(token) for token in tokens]
    if any(flags) and not all(flags):
        raise TokenError(
            start + flags.index(not flags[0]),
            f"is {'no' if flags[0] else 'a'} pair of attributes and a vector, unlike the "
            "token before it. Either all tokens are pairs or none is.",
        )
    return flags[0]


def _is_pair(token):
    return (
        type(token) is tuple
        and len(token) == 2
        and hasattr(token[1], "__array__")
        and not isinstance(token[1], str)
    )


def _read_tokens(tokens, are_pairs, vectors, start, places_of):
    """Data and places of features of a list of tokens, and how many each token has.

    Their vectors are added to the others: for each name, the rows that have one, and the
    arrays. The first token is row `start`.
    """
    if are_pairs:
        for row, (_, vector) in enumerate(tokens, start):
            if not _add_vector(vectors, PAIR_NAME, row, vector):
                raise TokenError(
                    row, f"is a pair, but its vector {vector!r} does not hold numbers."
                )
        tokens = [attributes for attributes, _ in tokens]
    kinds = set(map(type, tokens))
    are_lists = all(issubclass(kind, (list, tuple)) for kind in kinds)
    if are_lists and set(map(type, chain.from_iterable(tokens))) <= {str}:
        names, values, lengths = chain.from_iterable(tokens), None, map(len, tokens)
    else:
        values, lengths = array("d"), array("q")
        names = chain.from_iterable(
            names_of(tokens, values, lengths, vectors, start, _features_of, _as_name)
        )
    try:
        indices = places_of(names)
    except (TypeError, OverflowError):
        _explain(tokens, start)
        raise
    data = np.ones(len(indices)) if values is None else np.frombuffer(values)
    return data, indices, np.fromiter(lengths, np.intp, len(tokens))


def _explain(tokens, start):
    """Raise the error about the first token that cannot be read, if there is one."""
    for row, token in enumerate(tokens, start):
        if fault := _fault(token):
            raise TokenError(row, fault, TypeError) from None


def _fault(token):
    """What is wrong with a token, or an inner dict of one; None if it can be read."""
    if _is_pair(token):
        token = token[0]
    if isinstance(token, (str, bytes)):
        return None
    if not isinstance(token, Iterable):
        return f"is {token!r}; it must be a dict, a list of strings or a string."
    for name in token:
        if not isinstance(name, (str, bytes)):
            return f"has the name {name!r}; names of features must be strings."
        value = token[name] if isinstance(token, Mapping) else None
        if isinstance(value, Number) and not _is_double(value):
            return f"has {value!r} as {name!r}; it must be a real number."
        if isinstance(value, Mapping) and (fault := _fault(value)):
            return fault
    return None


def _is_double(number):
    try:
        float(number)
    except (TypeError, OverflowError):
        return False
    return True


def _add_vector(vectors, name, row, value):
    """Add the value to the vectors of its name; False if it does not hold numbers."""
    if np.ma.is_masked(value):
        raise TokenError(row, f"has masked entries in the array {name!r}.")
    vector = np.asarray(value)
    if vector.dtype.kind not in NUMERIC:
        return False
    if vector.ndim != 1:
        raise TokenError(
            row, f"has an array of shape {vector.shape} as {name!r}; it must be 1-D."
        )
    rows, arrays = vectors[name]
    rows.append(row)
    arrays.append(vector)
    return True


def _features_of(name, value, row, vectors):
    """Pairs of the name of a feature and its value, of an entry of a token's dict."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and not _is_scalar(value):
        value = value.item()
    if isinstance(value, (str, bytes)):
        yield f"{name}={_as_text(value, row)}", 1.0
    elif isinstance(value, Mapping):
        for inner, own in value.items():
            yield from _features_of(f"{name}:{_as_name(inner, row)}", own, row, vectors)
    elif isinstance(value, Number) or _is_scalar(value):
        if is_missing(value):
            raise _missing(name, value, row)
        yield name, value
    elif hasattr(value, "__array__") and _add_vector(vectors, name, row, value):
        return
    elif isinstance(value, Iterable):
        for own in value:
            if not isinstance(own, (str, bytes)):
                raise TokenError(
                    row,
                    f"lists {own!r} as {name!r}; only strings can be listed. If it is a "
                    "vector, pass an array of numbers.",
                    TypeError,
                )
            yield f"{name}={_as_text(own, row)}", 1.0
    elif is_missing(value):
        raise _missing(name, value, row)
    else:
        raise TokenError(
            row,
            f"has {value!r} as {name!r}; it must be a number, a string, a list of "
            "strings, a 1-D array or a dict.",
            TypeError,
        )


def _as_text(value, row):
    """A string, or UTF-8 as one."""
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise TokenError(row, f"has {value!r}, which is not UTF-8 ({error}).") from None


def _as_name(name, row):
    if isinstance(name, (str, bytes)):
        return _as_text(name, row)
    raise TokenError(
        row, f"has the name {name!r}; names of features must be strings.", TypeError
    )


def _missing(name, value, row):
    return TokenError(
        row,
        f"has {value!r} as {name!r}, a missing value: leave {name!r} out, or use a value "
        "for it, such as 'unknown' or 0.",
    )


def _is_scalar(value):
    """Whether it is a number or a flag of NumPy, such as the result of a comparison."""
    return (
        isinstance(value, (np.generic, np.ndarray))
        and value.ndim == 0
        and value.dtype.kind in NUMERIC
    )
