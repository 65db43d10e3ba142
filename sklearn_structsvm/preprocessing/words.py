"""Features of the words of sentences."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils._vocabulary import tidy_rows
from sklearn_structsvm._utils.borders import check_integer
from sklearn_structsvm._utils.caller import warn_if_swapped
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.pieces import LARGEST_INDEX, csr_of_parts
from sklearn_structsvm._utils.sequences import check_item, check_sequences, nothing
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import (
    column_at,
    column_names,
    from_column,
    is_missing,
    split_rows,
)
from sklearn_structsvm.preprocessing.feature_tables import FeatureTables, ValueFault
from sklearn_structsvm.preprocessing.gazetteers import Gazetteer
from sklearn_structsvm.preprocessing.sequences import SequenceList
from sklearn_structsvm.preprocessing.templates import default_plan, translated_plan


def _has_names(estimator):
    return estimator.n_features is None


class WordFeatures(
    DocumentedMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Features of words: lists of words become CSR matrices, as taggers take them.

    A word has features of its own form and of its neighbors. The defaults were chosen by
    cross-validation on two English corpora. You can also pass a template of CRF++ or
    Wapiti.

    Read more in the :ref:`User Guide <guide-tag-text>`.

    Parameters
    ----------
    template : str, path, list of str or None, default=None
        Template of features in the language of CRF++ or Wapiti: a file, its text, or its
        lines, such as ``["U00:%x[-1,0]/%x[0,0]", "U01:%x[0,1]"]``. The features have the
        names that these programs give them. None makes the default features, with the
        options below.
    columns : list of str or None, default=None
        Names of the columns of a word, its form first: keys if words are dicts,
        attributes if they are tokens of spaCy (``["text", "pos_"]``), columns of data
        frames, or just names for words that are tuples. None takes all that the first
        word has; of tokens with an attribute `text`, that alone.
    affixes : int, default=6
        Maximum length of prefixes and suffixes, in characters as a reader counts them:
        combining marks stay with their letter.
    window : int, default=1
        Number of neighbors on each side whose features a word has as well. Further
        columns have one neighbor more and, unless this is 0, so have forms.
    ngrams : int, default=2
        Maximum length of sequences of neighboring words that are features: 2 are pairs.
        Of short shapes and of further columns they are one longer, and each column makes
        pairs with words at most one position apart.
    min_count : int, default=1
        Number of words in `fit` that must have a feature, or it is left out. Default
        features of neighbors must have at least 2.
    n_features : int or None, default=None
        If given, features get one of so many columns by a hash, and no word is
        remembered: for streams, and for data that do not fit into memory. The hash is the
        same on each machine.
    gazetteers : dict of lists of phrases, or None, default=None
        Names, places and the like, by the name of the list. A phrase is a string, or a
        tuple of words; case does not count. From the left, the longest phrases are marked
        by B at their first word and I at the others, and a word has the marks of its
        neighbors, too.
    clusters : dict of mappings, or None, default=None
        The cluster of each word, by the name of the clustering. If all clusters are paths
        of bits, as those of Brown clustering, their first 4, 6, 10 and 20 bits are
        features. A word is looked up as it is and then in lower case.
    vectors : mapping or None, default=None
        The embedding of each word, an array, such as a dict or the `KeyedVectors` of
        gensim. They are looked up like clusters, and stand beside the features as
        float32. A word without one has zeros.

    Attributes
    ----------
    tables_ : object
        What was learned of words and their features.
    columns_ : list of str
        Names of the columns of a word, its form first.

    See Also
    --------
    SequenceTransformer : Features that you list yourself, such as in dicts.

    Notes
    -----
    The default features of a word are, with the names that they have in
    `get_feature_names_out`,

    - its form (``word=Cat``), and the same in lower case with each digit as 0
      (``lower=cat``);
    - prefixes and suffixes of the latter (``prefix=c``), up to the whole word;
    - its shape with runs of equal kinds of letters as they are and as one
      (``shape=Xxx``, ``short=Xx``), where X is a capital, x a small letter, c a letter
      without case, and d a digit;
    - of its neighbors the form in lower case, the suffix of three letters and the shape
      (``-1:lower=the``, ``+1:short=x``), and of words next to these the form, with
      ``<s>`` before the beginning and ``</s>`` behind the end;
    - pairs of neighbors (``-1:lower=the|lower=cat``), and the words on both sides; pairs
      and triples of short shapes;
    - further columns as they are (``column1=NN``), with pairs and triples, and each
      together with words (``lower=cat|-1:column1=DT``).

    Shapes also tell kinds of characters, and ``<s>`` and ``</s>`` positions: as features
    of their own, these made no fewer errors by cross-validation.

    Their columns are in the order of their kinds, and sorted by name within a kind.
    Values of further columns that are no strings are written as strings; None and NaN
    have no features. The matrices are float32, in which ones are exact.

    Templates: ``%x[-1,0]`` is column 0 of the word before. Equal names are one feature,
    whatever line made them. With more than one of them at a word, its value is their
    number, as in CRF++. From Wapiti there are ``%t``, ``%m`` and capitals, and positions
    ``[@1,0]`` from the beginning or the end; letters of its regular expressions are those
    of ASCII. Where a template has nothing that CRF++ does not know, words outside of the
    sentence are CRF++'s ``_B-1`` and ``_B+1``, and else Wapiti's ``_x-1`` and ``_x+1``. A
    line ``B`` stands for the transitions that chains always have; features of pairs of
    labels that depend on words are an error. A new combination of values is known only by
    all of its values.

    Each distinct word is analyzed once in a call. All else is compiled, and takes about
    as long as to copy the matrix.

    References
    ----------
    .. [1] T. Kudo, "CRF++: Yet another CRF toolkit", 2005.
    .. [2] T. Lavergne, O. Cappé, F. Yvon, "Practical very large scale CRFs", ACL 2010.
    .. [3] L. Ratinov, D. Roth, "Design challenges and misconceptions in named entity
       recognition", CoNLL 2009.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.preprocessing import WordFeatures
    >>> X = [["The", "cat", "sleeps"], ["A", "dog", "barks", "."]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "PUNCT"]]
    >>> model = make_pipeline(WordFeatures(), CRFClassifier("chain", random_state=0))
    >>> model.fit(X, y).predict([["The", "dog", "sleeps", "."]])[0].tolist()
    ['DET', 'NOUN', 'VERB', 'PUNCT']
    >>> features = WordFeatures(["U0:%x[-1,0]/%x[0,0]"]).fit([["The", "cat"]])
    >>> features.get_feature_names_out().tolist()
    ['U0:The/cat', 'U0:_B-1/The']
    """

    _public_module = "sklearn_structsvm.preprocessing"

    def __init__(
        self,
        template: Any = None,
        *,
        columns: Any = None,
        affixes: int = 6,
        window: int = 1,
        ngrams: int = 2,
        min_count: int = 1,
        n_features: int | None = None,
        gazetteers: Any = None,
        clusters: Any = None,
        vectors: Any = None,
    ) -> None:
        self.template = template
        self.columns = columns
        self.affixes = affixes
        self.window = window
        self.ngrams = ngrams
        self.min_count = min_count
        self.n_features = n_features
        self.gazetteers = gazetteers
        self.clusters = clusters
        self.vectors = vectors

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the features of sentences.

        Parameters
        ----------
        X : sequence or iterator of n sentences
            Each sentence is a list of words, a document of spaCy, or a data frame with
            one row per word. A word is a string, a tuple, a dict, or a token with an
            attribute `text`. Sentences may be empty.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted transformer.

        Raises
        ------
        TypeError, ValueError
            If something is no sentence or no word, of which the message has the place; if
            an option is wrong, or a line of the template, of which it has the number.
        """
        warn_if_swapped(X, y)
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> list[Any]:
        """Learn the features of sentences, and transform the same ones."""
        warn_if_swapped(X, y)
        return self._items(*self._learn(X))

    @property
    def columns_(self) -> list[str]:
        """Names of the columns of a word, its form first."""
        return self.tables_.columns

    def transform(self, X: Any) -> list[Any]:
        """Make the features of sentences; those that `fit` did not see are left out.

        Parameters
        ----------
        X : sequence or iterator of n sentences
            As in `fit`.

        Returns
        -------
        list of n CSR arrays or `SplitMatrix` with T_i rows
            Views of one matrix.
        """
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        tables = self.tables_
        with damage_refused(self):
            flat, starts, _ = _read(X, tables.columns)
            return self._items(*_found(tables.rows, tables, flat, starts))

    def _learn(self, X):
        """Fit, and return what `_items` takes."""
        self._check_options()
        flat, starts, names = _read(X, None if self.columns is None else self.columns)
        if not starts[-1]:
            raise nothing()
        gazetteers = {
            name: Gazetteer(name, phrases)
            for name, phrases in (self.gazetteers or {}).items()
        }
        clusters = self.clusters or {}
        if self.template is not None:
            plan = translated_plan(self.template, len(names))
        else:
            plan = default_plan(
                names,
                affixes=self.affixes,
                window=self.window,
                ngrams=self.ngrams,
                clusters={name: _are_bits(own) for name, own in clusters.items()},
                gazetteers=gazetteers,
            )
        n_columns = len(names) + len(gazetteers)
        tables = FeatureTables(plan, n_columns, clusters, self.n_features)
        tables.columns, tables.gazetteers = names, gazetteers
        tables.n_vector_columns = None if self.vectors is None else _width(self.vectors)
        found = _found(tables.fit, tables, flat, starts, starts, self.min_count)
        if not tables.n_features:
            raise ValueError(
                f"No feature occurs in {self.min_count} words: min_count is too large."
            )
        # At once, for those who read it meanwhile.
        self.tables_ = tables
        return found

    def _items(self, tables, words, starts, found):
        """The matrices of sentences, of rows of values that were found."""
        if len(starts) == 1:
            return SequenceList()
        indices, indptr = tables.transform(found, starts)
        data = np.ones(len(indices), np.float32)
        is_tidy = tables.is_sorted or tidy_rows(data, indices, indptr)
        n = indptr[-1]
        kind = np.intc if n <= LARGEST_INDEX else np.int64
        indptr = indptr.astype(kind, copy=False)
        matrix = csr_of_parts(
            sparse.csr_array,
            (len(indptr) - 1, tables.n_features),
            data[:n],
            indices[:n].astype(kind, copy=False),
            indptr,
            is_canonical=is_tidy,
        )
        if not is_tidy:
            matrix.sum_duplicates()
        if tables.n_vector_columns is not None:
            vectors = self._vectors(words, tables.n_vector_columns)
            matrix = SplitMatrix([matrix, vectors])
        return SequenceList(split_rows(matrix, starts[1:] - starts[:-1]))

    def _vectors(self, words, width):
        """The vector of each word, zeros for those that have none."""
        places = {}
        rows = [places.setdefault(word, len(places)) for word in words]
        found = np.zeros((len(places), width), np.float32)
        for word, row in places.items():
            vector = _vector_of(word, self.vectors)
            if vector is not None:
                found[row] = vector
        return found[rows]

    def _check_options(self):
        check_integer("affixes", self.affixes, 0)
        check_integer("window", self.window, 0)
        check_integer("ngrams", self.ngrams, 1)
        check_integer("min_count", self.min_count, 1)
        for name in ("gazetteers", "clusters"):
            own = getattr(self, name)
            if own is not None and not isinstance(own, Mapping):
                raise TypeError(f"{name} must be None or a dict by name; got {own!r}.")
        if self.n_features is not None:
            check_integer("n_features", self.n_features, 1, LARGEST_INDEX)
            if self.min_count > 1:
                raise ValueError(
                    "min_count must be 1 with n_features: what is hashed is not counted."
                )
        if self.template is not None and (self.gazetteers or self.clusters):
            raise ValueError(
                "template cannot be combined with gazetteers or clusters: add what they "
                "say to the words as further columns."
            )

    @available_if(_has_names)
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Get the names of the columns."""
        check_is_fitted(self)
        tables = self.tables_
        own = [f"vector[{k}]" for k in range(tables.n_vector_columns or 0)]
        return np.concatenate([tables.names(), np.array(own, object)])

    def __sklearn_is_fitted__(self):
        return hasattr(self, "tables_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _are_bits(table):
    """Whether the clusters of words are paths in a tree, such as 0110."""
    return all(set(str(own)) <= {"0", "1"} for own in table.values())


def _vector_of(word, vectors):
    for own in (word, word.lower()):
        if own in vectors:
            return vectors[own]
    return None


def _width(vectors):
    """The length of the vectors, whatever holds them."""
    if hasattr(vectors, "vector_size"):
        return int(vectors.vector_size)
    first = next(iter(vectors), None)
    if first is None:
        raise ValueError("vectors is empty.")
    return len(vectors[first])


def _found(find, tables, flat, starts, *args):
    """What `_items` takes: `find` finds rows of the values of columns, and of marks."""
    marks = [own.marks(flat[0], starts) for own in tables.gazetteers.values()]
    columns = [*flat, *marks]
    try:
        found = find(columns, *args)
    except ValueFault as fault:
        i = int(np.searchsorted(starts, fault.row, side="right")) - 1
        value = columns[fault.column][fault.row]
        raise TypeError(
            f"X[{i}][{fault.row - int(starts[i])}] has {value!r} as "
            f"{tables.columns[fault.column]!r}; it must be a string."
        ) from None
    # Only vectors need the words themselves.
    return tables, None if tables.n_vector_columns is None else flat[0], starts, found


def _read(X, names):
    """The values of each column of all sentences in one list, and where they start.

    Returns `flat` (list of lists); `starts` (n + 1,), intp; `names`: of the columns.
    """
    X = check_sequences(X)
    if names is not None:
        names = [names] if isinstance(names, str) else list(names)
    flat, starts = None, np.zeros(len(X) + 1, np.intp)
    for i, sentence in enumerate(X):
        if type(sentence) is not list:
            sentence = from_column(sentence)
        check_item(sentence, i)
        n = len(sentence)
        starts[i + 1] = starts[i] + n
        if not n:
            continue
        if names is None:
            names = _names_of(sentence)
        own = _columns_of(sentence, names, i)
        if flat is None:
            flat = [[] for _ in names]
        for values, more in zip(flat, own, strict=True):
            values += more
    flat = flat or [[] for _ in names or ["word"]]
    for values in flat[1:]:
        if not set(map(type, values)) <= {str}:
            values[:] = map(_as_text, values)
    return flat, starts, names or ["word"]


def _as_text(value):
    """The text of a value of a further column; None where it is missing."""
    return None if is_missing(value) else str(value)


def _names_of(sentence):
    """Names of the columns of the words of a sentence, the word's first."""
    names = column_names(sentence)
    if names is not None:
        return list(map(str, names))
    token = next(iter(sentence))
    if isinstance(token, Mapping):
        return list(token)
    if isinstance(token, str | bytes) or hasattr(token, "text"):
        return ["word"]
    try:
        return ["word", *(f"column{j}" for j in range(1, len(token)))]
    except TypeError:
        return ["word"]


def _decoded(word):
    """UTF-8 as a string, as CRFsuite reads it; other bytes stay, to be refused."""
    try:
        return word.decode() if isinstance(word, bytes) else word
    except UnicodeDecodeError:
        return word


def _columns_of(sentence, names, i):
    """The values of each column of a sentence."""
    columns = column_names(sentence)
    if columns is not None:
        columns = list(map(str, columns))
        lacking = [name for name in names if name not in columns]
        if lacking:
            raise ValueError(f"X[{i}] lacks the column {lacking[0]!r}; it has {columns}.")
        return [column_at(sentence, columns.index(name)).tolist() for name in names]
    words = sentence if type(sentence) is list else list(sentence)
    token = words[0]
    if isinstance(token, bytes):
        words = list(map(_decoded, words))
        token = words[0]
    if isinstance(token, str):
        if len(names) > 1:
            raise ValueError(
                f"X[{i}][0] is only the word {token!r}; the columns are {names}."
            )
        return [words]
    if isinstance(token, Mapping):
        return [[own.get(name) for own in words] for name in names]
    if hasattr(token, "text"):
        called = ["text" if name == "word" else name for name in names]
        return [[getattr(own, name) for own in words] for name in called]
    try:
        found = [*zip(*words, strict=True)]
    except (TypeError, ValueError):
        found = []
    if len(found) != len(names):
        _refuse_ragged(words, names, i)
    return found


def _refuse_ragged(words, names, i):
    for t, own in enumerate(words):
        if isinstance(own, str) or not hasattr(own, "__len__") or len(own) != len(names):
            raise ValueError(
                f"X[{i}][{t}] is {own!r}, but each word must have the {len(names)} "
                f"columns {names}."
            )
    raise TypeError(f"X[{i}] does not hold words, or tuples of {names}.")
