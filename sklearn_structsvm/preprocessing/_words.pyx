"""Rows of features of words: values of columns looked up once, rows put together in C.

A value (a word, a part of speech) is a row of a table. Its attributes are atoms, integers
from 0, or -1 for none. A template with one part has an array with the column of each
atom; one with several parts looks up pairs (prefix, atom).
"""
import re
import unicodedata

import numpy as np

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint64_t

# Extends the character before it: marks, joiners and modifiers of skin color.
cdef object JOINERS = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff]")
cdef dict SHAPES = {}
cdef str CHANGED = "The tables of features were changed after fit."


cdef extern from "_utils/_vector.h" nogil:
    void PREFETCH(const void* address) noexcept


cdef struct Entry:
    int64_t prefix
    int atom
    # -1 in an entry that is free.
    int value


cdef inline uint64_t mixed(uint64_t key) noexcept nogil:
    """A bijection that spreads the bits (the finalizer of SplitMix64)."""
    key = (key ^ (key >> 30)) * <uint64_t> 0xbf58476d1ce4e5b9
    key = (key ^ (key >> 27)) * <uint64_t> 0x94d049bb133111eb
    return key ^ (key >> 31)


cdef inline uint64_t place_of(int64_t prefix, int atom) noexcept nogil:
    return mixed(<uint64_t> prefix * <uint64_t> 0x9e3779b97f4a7c15 + <uint64_t> atom)


cdef class PairTable:
    """A map from pairs (prefix, atom) to numbers from 0."""

    cdef unsigned char[::1] memory
    cdef Entry* entries
    cdef uint64_t mask

    def __init__(self, const int64_t[::1] prefixes, const int[::1] atoms,
                 const int[::1] values):
        cdef Py_ssize_t i
        self.reserve(prefixes.shape[0])
        if not prefixes.shape[0] == atoms.shape[0] == values.shape[0]:
            raise ValueError("The arrays of a table of pairs have different lengths.")
        for i in range(prefixes.shape[0]):
            self.entry(prefixes[i], atoms[i])[0] = Entry(prefixes[i], atoms[i], values[i])

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Make room for n pairs, and forget those that there are."""
        cdef Py_ssize_t i, size = 8
        while 2 * size < 3 * n:
            size *= 2
        self.memory = np.empty(size * sizeof(Entry), np.uint8)
        self.entries = <Entry*> &self.memory[0]
        self.mask = size - 1
        for i in range(size):
            self.entries[i].value = -1
        return 0

    cdef inline void fetch(self, int64_t prefix, int atom) noexcept nogil:
        """Have the memory of an entry on its way, before it is asked for."""
        PREFETCH(self.entries + (place_of(prefix, atom) & self.mask))

    cdef inline Entry* entry(self, int64_t prefix, int atom) noexcept nogil:
        """The entry of a pair, or the free one where it would be."""
        cdef uint64_t place = place_of(prefix, atom) & self.mask
        cdef Entry* found = self.entries + place
        while found.value >= 0 and (found.prefix != prefix or found.atom != atom):
            place = (place + 1) & self.mask
            found = self.entries + place
        return found


def group_pairs(const int64_t[::1] prefixes, const int[::1] atoms):
    """Number the distinct pairs by their first places.

    Returns
    -------
    groups : ndarray of shape (n,), intc
        The number of each pair.
    first : ndarray of shape (n_groups,), intc
        The place of its first occurrence.
    """
    cdef Py_ssize_t i, n = prefixes.shape[0], ahead = 16
    cdef int n_groups = 0
    cdef Entry* entry
    cdef PairTable table = PairTable(prefixes[:0], atoms[:0], atoms[:0])
    groups, first = np.empty(n, np.intc), np.empty(n, np.intc)
    cdef int[::1] group = groups, places = first
    table.reserve(n)
    for i in range(n):
        if i + ahead < n:
            table.fetch(prefixes[i + ahead], atoms[i + ahead])
        entry = table.entry(prefixes[i], atoms[i])
        if entry.value < 0:
            entry[0] = Entry(prefixes[i], atoms[i], n_groups)
            places[n_groups] = i
            n_groups += 1
        group[i] = entry.value
    return groups, first[:n_groups].copy()


def rows_of_values(list values, dict known, int n_rows, bint may_lack):
    """Rows of values, those of unknown ones after the `n_rows` that there are.

    Returns
    -------
    rows : ndarray of shape (n,), intc
    new : dict
        The rows of the unknown values.
    bad : int
        The place of a value that is no str (nor None, if a value may lack), or -1.
    """
    cdef Py_ssize_t i, n = len(values)
    cdef dict more = {}
    result = np.empty(n, np.intc)
    cdef int[::1] rows = result
    for i in range(n):
        value = values[i]
        if not (isinstance(value, str) or (may_lack and value is None)):
            return result, {}, i
        if type(value) is not str and value is not None:  # Such as str_ of NumPy.
            value = str.__str__(value)
        row = known.get(value)
        if row is None:
            row = more.get(value)
            if row is None:
                row = n_rows + len(more)
                more[value] = row
        rows[i] = row
    return result, more, -1


def atoms_of(list strings, vocabularies, list numbers, Py_ssize_t n):
    """Atoms of the attributes of n values, -1 for None and for unknown strings.

    Parameters
    ----------
    strings : list of lists of n str or None
        Those of each attribute.
    vocabularies : list of dict, or None
        The atoms of strings, of each attribute. None takes hashes.
    numbers : list of int, or None
        The first integers, to which more are added: unknown strings get the same objects
        in all vocabularies. None adds no strings.

    Returns
    -------
    ndarray of shape (n, n_attributes), intc
    """
    cdef Py_ssize_t i, j
    cdef list own
    cdef dict vocabulary
    result = np.empty((n, len(strings)), np.intc)
    cdef int[:, ::1] atoms = result
    for j in range(len(strings)):
        own = strings[j]
        vocabulary = None if vocabularies is None else vocabularies[j]
        if numbers is not None and vocabulary is not None:
            numbers += range(len(numbers), len(vocabulary) + n)
        for i in range(n):
            string = own[i]
            if string is None:
                atoms[i, j] = -1
            elif vocabulary is None:
                atoms[i, j] = hashed_atom(string)
            elif numbers is not None:
                atoms[i, j] = vocabulary.setdefault(string, numbers[len(vocabulary)])
            else:
                atoms[i, j] = vocabulary.get(string, -1)
    return result


cdef int hashed_atom(str string) except -1:
    """A number of 31 bits that depends on the string alone (FNV-1a of its UTF-8)."""
    cdef Py_ssize_t j, size
    cdef const char* text
    cdef uint64_t hashed = <uint64_t> 0xcbf29ce484222325
    try:
        text = PyUnicode_AsUTF8AndSize(string, &size)
    except UnicodeEncodeError:  # Surrogates have no UTF-8.
        string = string.encode("utf-8", "backslashreplace").decode()
        text = PyUnicode_AsUTF8AndSize(string, &size)
    for j in range(size):
        hashed = (hashed ^ <unsigned char> text[j]) * <uint64_t> 0x100000001b3
    return <int> (mixed(hashed) >> 33)


def letters_of(list words):
    """The characters of words as a reader counts them: with their marks, in lists.

    A word is itself if each code point is a character.
    """
    cdef list letters, result = []
    cdef bint joins, is_mark
    for word in words:
        if word.isascii():
            result.append(word)
            continue
        letters, joins = [], False
        for letter in word:
            is_mark = unicodedata.category(letter)[0] == "M"
            is_mark = is_mark or JOINERS.match(letter) is not None
            is_mark = is_mark or u"\u1160" <= letter <= u"\u11ff"  # In Korean.
            if letters and (joins or is_mark):
                letters[len(letters) - 1] += letter
            else:
                letters.append(letter)
            joins = letter == u"\u200d"
        result.append(word if len(letters) == len(word) else letters)
    return result


def affixes(list words, Py_ssize_t size, bint at_end):
    """Prefixes or suffixes of this many characters; None for words with fewer.

    `words` are those of `letters_of`.
    """
    cdef list result = []
    cdef Py_ssize_t n
    for letters in words:
        n = len(letters)
        own = None
        if n >= size:
            own = letters[n - size:] if at_end else letters[:size]
            if type(own) is list:
                own = "".join(own)
        result.append(own)
    return result


cdef str shape_of_letter(str letter):
    cdef str kind = unicodedata.category(letter)
    if kind == "Lu" or kind == "Lt":
        return "X"
    if kind == "Ll":
        return "x"
    if kind[0] == "L":
        return "c"  # Of a script without cases.
    if kind[0] == "N":
        return "d"
    return "" if kind[0] == "M" else letter


def shapes(list words, bint is_short):
    """The kinds of the letters of words: X, x, c (no case), d, or what it is.

    Short ones have each run of equal kinds once.
    """
    cdef list result = []
    cdef str word, shape, last
    for word in words:
        shape, last = "", ""
        for letter in word:
            kind = SHAPES.get(letter)
            if kind is None:
                kind = shape_of_letter(letter)
                if letter < u"\u0250":
                    SHAPES[letter] = kind
            # A mark, which has none, belongs to the run of its letter.
            if kind and not (is_short and kind == last):
                shape += kind
                last = kind
        result.append(shape)
    return result


def match_phrases(const int[::1] words, const Py_ssize_t[::1] starts, PairTable table,
                  const unsigned char[::1] is_end):
    """Mark the phrases of sentences, leftmost and longest first.

    Parameters
    ----------
    words : ndarray of shape (n,)
        Numbers of the words, -1 for one that is in no phrase.
    starts : ndarray of shape (n_sentences + 1,)
    table : PairTable
        The node after each node and word; the root is 0.
    is_end : ndarray of shape (n_nodes,)
        Whether a phrase ends at the node.

    Returns
    -------
    ndarray of shape (n,), intc
        0 outside, 1 at the first word of a phrase, and 2 at the others.
    """
    cdef Py_ssize_t i, t, p, stop
    cdef int node
    result = np.zeros(words.shape[0], np.intc)
    cdef int[::1] marks = result
    for i in range(starts.shape[0] - 1):
        t = starts[i]
        while t < starts[i + 1]:
            node, p, stop = 0, t, t
            while p < starts[i + 1] and words[p] >= 0:
                node = table.entry(node, words[p]).value
                if not 0 <= node < is_end.shape[0]:
                    break
                p += 1
                if is_end[node]:
                    stop = p
            for p in range(t, stop):
                marks[p] = 1 if p == t else 2
            t = max(stop, t + 1)
    return result


cdef inline Py_ssize_t row_at(const int* rows, Py_ssize_t start, Py_ssize_t n,
                              Py_ssize_t p, Py_ssize_t reach) noexcept nogil:
    """The row of the value at position p of a sentence of n, also beyond its ends.

    The first `reach` rows of a table are those before the beginning, the nearest first;
    then come those behind the end.
    """
    if p < 0:
        return min(-p, reach) - 1
    if p >= n:
        return reach + min(p - n, reach - 1)
    return rows[start + p]


cdef inline Py_ssize_t position(
        Py_ssize_t t, Py_ssize_t n, int offset, bint is_absolute) noexcept nogil:
    if not is_absolute:
        return t + offset
    return n + offset if offset < 0 else offset - 1


def shifted_rows(const int[::1] rows, const Py_ssize_t[::1] starts, int offset,
                 bint is_absolute, Py_ssize_t reach):
    """The rows of the values that stand at an offset from each position."""
    cdef Py_ssize_t i, t, n
    result = np.empty(rows.shape[0], np.intc)
    cdef int[::1] shifted = result
    for i in range(starts.shape[0] - 1):
        n = starts[i + 1] - starts[i]
        for t in range(n):
            shifted[starts[i] + t] = row_at(
                &rows[0], starts[i], n, position(t, n, offset, is_absolute), reach)
    return result


cdef struct Column:
    # The rows of the values of words; atoms of values that are known, and of others.
    const int* rows
    Py_ssize_t n_atoms, n_known
    const int* known
    const int* new


cdef int point(Column* column, tuple arrays, Py_ssize_t n, Py_ssize_t reach) except -1:
    cdef const int[::1] rows = arrays[0]
    cdef const int[:, ::1] known = arrays[1], new = arrays[2]
    cdef Py_ssize_t i
    column.n_known, column.n_atoms = known.shape[0], known.shape[1]
    if (column.n_known < 2 * reach or reach < 1 or rows.shape[0] != n
            or new.shape[1] != column.n_atoms):
        raise ValueError(CHANGED)
    for i in range(n):
        if not 0 <= rows[i] < column.n_known + new.shape[0]:
            raise ValueError(CHANGED)
    column.rows = &rows[0] if n > 0 else NULL
    column.known = &known[0, 0] if column.n_atoms > 0 else NULL
    column.new = &new[0, 0] if column.n_atoms > 0 and new.shape[0] > 0 else NULL
    return 0


cdef inline const int* atoms_at(const Column* column, Py_ssize_t start, Py_ssize_t n,
                                Py_ssize_t p, Py_ssize_t reach) noexcept nogil:
    """The atoms of the value at position p; see `row_at`."""
    cdef Py_ssize_t row = row_at(column.rows, start, n, p, reach) - column.n_known
    if row < 0:
        return column.known + (row + column.n_known) * column.n_atoms
    return column.new + row * column.n_atoms


def make_rows(list columns, const Py_ssize_t[::1] starts, Py_ssize_t reach,
              const int[:, ::1] places, const int[:, ::1] singles,
              const int[::1] known, const int[:, ::1] others, const int[:, ::1] parts,
              PairTable table, Py_ssize_t n_features, bint are_hashed):
    """Columns of the features of each word.

    Parameters
    ----------
    columns : list of (rows, known, new)
        Of each column of the input: the rows of its values (n,), and the atoms of known
        and of new values (n_rows, n_attributes).
    starts : ndarray of shape (n_sentences + 1,)
    reach : int
        See `row_at`.
    places : ndarray of shape (n_places, 3), intc
        Where values stand: column, offset, and whether it is absolute.
    singles : ndarray of shape (n_singles, 3), intc
        Of each template with one part: place, attribute, and where atom 0 of its family
        is in `known`, or the number of the family if columns are hashes.
    known : ndarray
        The column of each atom of each family, or -1; before them that of atom -1.
    others : ndarray of shape (n_others, 2), intc
        Of each template with several parts, or none: its family, and the end of its
        parts.
    parts : ndarray of shape (n_parts, 2), intc
        Place and attribute.
    table : PairTable
        The node after each prefix and atom, and the column after the last one.
    n_features : int
        The number of columns of the result.
    are_hashed : bool
        Whether columns are hashes.

    Returns
    -------
    indices : ndarray, intc
    indptr : ndarray of shape (n + 1,), intp
    """
    cdef Py_ssize_t i, c, t, n, k, j, p, start, first, base, end = 0
    cdef Py_ssize_t n_columns = len(columns), n_words = starts[starts.shape[0] - 1]
    cdef Py_ssize_t n_places = places.shape[0], n_singles = singles.shape[0]
    cdef Py_ssize_t n_others = others.shape[0], n_parts = parts.shape[0]
    cdef int value, atom
    cdef bint is_whole = True
    cdef int64_t prefix
    cdef uint64_t hashed
    cdef unsigned char[::1] memory = np.empty(
        n_columns * sizeof(Column) + n_places * sizeof(int*) + 1, np.uint8)
    cdef Column* column = <Column*> &memory[0]
    # The atoms of the value at each place.
    cdef const int** own = <const int**> (column + n_columns)
    for c in range(n_columns):
        point(&column[c], columns[c], n_words, reach)
    for p in range(n_places):
        is_whole &= 0 <= places[p, 0] < n_columns
    for k in range(n_singles + n_parts):
        p, j = 0, 0
        if k < n_singles:
            p, j = singles[k, 0], singles[k, 1]
        else:
            p, j = parts[k - n_singles, 0], parts[k - n_singles, 1]
        is_whole = is_whole and 0 <= p < n_places
        is_whole = is_whole and 0 <= j < column[places[p, 0]].n_atoms
    for k in range(n_others):
        is_whole &= (others[k - 1, 1] if k > 0 else 0) <= others[k, 1] <= n_parts
    if not is_whole:
        raise ValueError(CHANGED)
    indptr = np.zeros(n_words + 1, np.intp)
    indices = np.empty(n_words * (n_singles + n_others), np.intc)
    cdef Py_ssize_t[::1] ends = indptr
    cdef int[::1] found = indices
    with nogil:
        for i in range(starts.shape[0] - 1):
            start, n = starts[i], starts[i + 1] - starts[i]
            for t in range(n):
                for p in range(n_places):
                    own[p] = atoms_at(&column[places[p, 0]], start, n, position(
                        t, n, places[p, 1], places[p, 2]), reach)
                # Of the entries of all pairs the waits overlap.
                first = 0
                for k in range(n_others):
                    if others[k, 1] > first + 1 and not are_hashed:
                        table.fetch(
                            (<int64_t> others[k, 0] + 1) << 32
                            | own[parts[first, 0]][parts[first, 1]],
                            own[parts[first + 1, 0]][parts[first + 1, 1]])
                    first = others[k, 1]
                for k in range(n_singles):
                    atom, base = own[singles[k, 0]][singles[k, 1]], singles[k, 2]
                    value = -1
                    if not are_hashed:
                        is_whole &= 0 <= base + atom < known.shape[0]
                        if is_whole:
                            value = known[base + atom]
                    elif atom >= 0:
                        value = <int> (place_of((base + 1) << 32, atom) % n_features)
                    if value >= 0:
                        found[end] = value
                        end += 1
                first = 0
                for k in range(n_others):
                    prefix, value = (<int64_t> others[k, 0] + 1) << 32, -1
                    hashed = mixed(prefix)
                    if first == others[k, 1]:  # It is the same everywhere.
                        value = table.entry(prefix, 0).value
                        if are_hashed:
                            value = <int> (hashed % n_features)
                    for j in range(first, others[k, 1]):
                        atom, value = own[parts[j, 0]][parts[j, 1]], -1
                        if atom < 0:
                            break
                        if are_hashed:
                            hashed = place_of(<int64_t> hashed, atom)
                            value = <int> (hashed % n_features)
                        elif j == first:
                            prefix |= atom
                        else:
                            value = table.entry(prefix, atom).value
                            prefix = value
                            if value < 0:
                                break
                    if 0 <= value < n_features:
                        found[end] = value
                        end += 1
                    first = others[k, 1]
                ends[start + t + 1] = end
    if not is_whole:
        raise ValueError(CHANGED)
    # Of the rest there may be much; nobody else sees it.
    indices.resize(end, refcheck=False)
    return indices, indptr
