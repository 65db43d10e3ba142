"""Features of tokens, in the format of CRFsuite, as a sparse matrix."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from numbers import Number

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer


class TokenVectorizer(DictVectorizer):
    """`DictVectorizer` of tokens in the format of CRFsuite: see `SequenceTransformer`.

    Its features, in a fraction of the time and the memory: no dict is made of a token, no
    list of all values, and what can be left to iterators in C is.
    """

    def fit(self, X, y=None):
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        # An unknown name gets the next place.
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
                # Most values have these types, which are fast to recognize.
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


def _set_parts(matrix, data, indices, indptr):
    """Fill an empty CSR matrix: its constructor would check and copy the arrays."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
