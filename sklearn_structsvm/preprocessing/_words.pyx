"""Rows of features of words: values of columns looked up once, rows put together in C.

A value (a word, a part of speech) is a row of a table. Its attributes are atoms, integers
from 0, or -1 for none. A template with one part finds its columns in a list that each
value has for each offset; one with several parts looks up pairs (prefix, atom).
"""
import re
import unicodedata

import numpy as np

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

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
    new : list
        The unknown values.
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
            return result, [], i
        if type(value) is not str and value is not None:  # Such as str_ of NumPy.
            value = str.__str__(value)
        row = known.get(value)
        if row is None:
            row = more.get(value)
            if row is None:
                row = n_rows + len(more)
                more[value] = row
        rows[i] = row
    return result, list(more), -1


def atoms_of(list strings, vocabularies, bint grow, Py_ssize_t n):
    """Atoms of the attributes of n values, -1 for None and for unknown strings.

    Parameters
    ----------
    strings : list of lists of n str or None
        Those of each attribute.
    vocabularies : list of dict, or None
        The atoms of strings, of each attribute. None takes hashes.
    grow : bool
        Whether unknown strings are added.

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
        for i in range(n):
            string = own[i]
            if string is None:
                atoms[i, j] = -1
            elif vocabulary is None:
                atoms[i, j] = hashed_atom(string)
            elif grow:
                atoms[i, j] = vocabulary.setdefault(string, len(vocabulary))
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


def lists_of_atoms(const int[:, ::1] atoms, const int[:, ::1] slots, const int[::1] flat,
                   Py_ssize_t n_offsets, Py_ssize_t n_hashed):
    """Columns of the features of values, one list for each value and offset.

    Parameters
    ----------
    atoms : ndarray of shape (n, n_attributes)
    slots : ndarray of shape (n_slots, 3), intc
        Of each template with one part: the number of its offset, weakly rising, its
        attribute, and where its family begins in `flat`, or the number of the family.
    flat : ndarray
        The column of each atom of each family, or -1; before them that of atom -1.
    n_offsets : int
    n_hashed : int
        The number of columns if they are hashed, or 0.

    Returns
    -------
    starts : ndarray of shape (n * n_offsets + 1,), intp
    columns : ndarray, intc
    atoms : ndarray
    """
    cdef Py_ssize_t i, k, place, end = 0, n = atoms.shape[0], n_slots = slots.shape[0]
    cdef int atom, column
    starts, columns = np.zeros(n * n_offsets + 1, np.intp), np.empty(n * n_slots, np.intc)
    cdef Py_ssize_t[::1] ends = starts
    cdef int[::1] found = columns
    for k in range(n_slots):
        if not (0 <= slots[k, 0] < n_offsets and 0 <= slots[k, 1] < atoms.shape[1]):
            raise ValueError(CHANGED)
    for i in range(n):
        for k in range(n_slots):
            atom = atoms[i, slots[k, 1]]
            if n_hashed > 0:
                column = -1
                if atom >= 0:
                    column = <int> (
                        place_of((<int64_t> slots[k, 2] + 1) << 32, atom) % n_hashed)
            else:
                place = <Py_ssize_t> slots[k, 2] + 1 + atom
                if not 0 <= place < flat.shape[0]:
                    raise ValueError(CHANGED)
                column = flat[place]
            if column >= 0:
                found[end] = column
                end += 1
            ends[i * n_offsets + slots[k, 0] + 1] = end
    return starts, columns[:end], np.asarray(atoms)


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


cdef struct Lists:
    # Of the rows of a table: where the lists of each row and offset start in `columns`
    # (n_rows * n_offsets + 1), and the atoms of each row.
    Py_ssize_t n_rows
    const Py_ssize_t* starts
    const int* columns
    const int* atoms


cdef struct Column:
    const int* rows
    Py_ssize_t n_offsets
    const int* offsets
    const unsigned char* is_absolute
    Py_ssize_t n_atoms
    Lists known
    Lists new


cdef struct Part:
    Py_ssize_t column
    int offset
    bint is_absolute
    Py_ssize_t attribute


cdef inline const Lists* lists_of(const Column* column, Py_ssize_t* row) noexcept nogil:
    if row[0] < column.known.n_rows:
        return &column.known
    row[0] -= column.known.n_rows
    return &column.new


cdef int point(Lists* lists, arrays, Py_ssize_t n_offsets) except -1:
    cdef const Py_ssize_t[::1] own_starts = arrays[0]
    cdef const int[::1] own_columns = arrays[1]
    cdef const int[:, ::1] own_atoms = arrays[2]
    if own_starts.shape[0] != own_atoms.shape[0] * n_offsets + 1:
        raise ValueError(CHANGED)
    lists.n_rows = own_atoms.shape[0]
    lists.starts = &own_starts[0]
    lists.columns = &own_columns[0] if own_columns.shape[0] > 0 else NULL
    lists.atoms = NULL
    if own_atoms.shape[0] > 0 and own_atoms.shape[1] > 0:
        lists.atoms = &own_atoms[0, 0]
    return 0


cdef int check_rows(const Column* column, Py_ssize_t n, Py_ssize_t reach) except -1:
    cdef Py_ssize_t i, n_rows = column.known.n_rows + column.new.n_rows
    if column.known.n_rows < 2 * reach or reach < 1:
        raise ValueError(CHANGED)
    for i in range(n):
        if not 0 <= column.rows[i] < n_rows:
            raise ValueError(CHANGED)
    return 0


def make_rows(list columns, const Py_ssize_t[::1] starts, Py_ssize_t reach,
              const int[:, ::1] parts, const int[::1] families, PairTable table,
              Py_ssize_t n_features, bint are_hashed):
    """Columns of the features of each word.

    Parameters
    ----------
    columns : list of (rows, offsets, flags, known, new)
        Of each column of the input: the rows of its values (n,); offsets (n_offsets,),
        and flags of those that are absolute; and the lists of known and of new values,
        of `lists_of_atoms`.
    starts : ndarray of shape (n_sentences + 1,)
    reach : int
        See `row_at`.
    parts : ndarray of shape (n_parts, 5), intc
        Of the templates with several parts: template, column, offset, whether it is
        absolute, and attribute.
    families : ndarray of shape (n_templates,), intc
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
    cdef Py_ssize_t i, c, d, t, n, k, j, start, row, at, end = 0, room = 0
    cdef Py_ssize_t n_columns = len(columns), n_words = starts[starts.shape[0] - 1]
    cdef Py_ssize_t n_templates = families.shape[0], n_parts = parts.shape[0], size
    cdef int value
    cdef int64_t prefix
    cdef uint64_t hashed
    cdef const Lists* lists
    cdef const int[::1] rows, column_offsets
    cdef const unsigned char[::1] flags
    own = np.empty(max(n_columns, 1) * sizeof(Column), np.uint8)
    cdef unsigned char[::1] memory = own
    cdef Column* column = <Column*> &memory[0]
    indptr = np.zeros(n_words + 1, np.intp)
    cdef Py_ssize_t[::1] ends = indptr
    for c in range(n_columns):
        rows, column_offsets, flags, known, new = columns[c]
        column[c].rows = &rows[0] if n_words > 0 else NULL
        column[c].n_offsets = column_offsets.shape[0]
        column[c].offsets = &column_offsets[0] if column[c].n_offsets else NULL
        column[c].is_absolute = &flags[0] if column[c].n_offsets else NULL
        column[c].n_atoms = known[2].shape[1]
        point(&column[c].known, known, column[c].n_offsets)
        point(&column[c].new, new, column[c].n_offsets)
        check_rows(&column[c], n_words, reach)
    # The parts of template k are those from firsts[k] to firsts[k + 1].
    firsts_, atoms_ = np.zeros(n_templates + 1, np.intc), np.empty(n_parts, np.intc)
    cdef int[::1] firsts = firsts_, atoms = atoms_
    for j in range(n_parts):
        c, k = parts[j, 1], parts[j, 0]
        if not (0 <= c < n_columns and 0 <= parts[j, 4] < column[c].n_atoms
                and (parts[j - 1, 0] if j > 0 else 0) <= k < n_templates):
            raise ValueError(CHANGED)
        firsts[k + 1] = j + 1
    for k in range(n_templates):
        firsts[k + 1] = max(firsts[k], firsts[k + 1])
    # As many entries as there can be.
    for i in range(starts.shape[0] - 1):
        n = starts[i + 1] - starts[i]
        for t in range(n):
            for c in range(n_columns):
                for d in range(column[c].n_offsets):
                    row = row_at(
                        column[c].rows, starts[i], n,
                        position(t, n, column[c].offsets[d], column[c].is_absolute[d]),
                        reach)
                    lists = lists_of(&column[c], &row)
                    at = row * column[c].n_offsets + d
                    room += lists.starts[at + 1] - lists.starts[at]
    room += n_words * n_templates
    indices = np.empty(room, np.intc)
    cdef int[::1] found = indices
    with nogil:
        for i in range(starts.shape[0] - 1):
            start, n = starts[i], starts[i + 1] - starts[i]
            for t in range(n):
                for c in range(n_columns):
                    for d in range(column[c].n_offsets):
                        row = row_at(
                            column[c].rows, start, n,
                            position(
                                t, n, column[c].offsets[d], column[c].is_absolute[d]),
                            reach)
                        lists = lists_of(&column[c], &row)
                        at = row * column[c].n_offsets + d
                        size = lists.starts[at + 1] - lists.starts[at]
                        if size > 0:
                            memcpy(
                                &found[end], lists.columns + lists.starts[at],
                                size * sizeof(int))
                            end += size
                # First the atoms of all parts, then entries, whose waits overlap.
                for j in range(n_parts):
                    c = parts[j, 1]
                    row = row_at(
                        column[c].rows, start, n,
                        position(t, n, parts[j, 2], parts[j, 3]), reach)
                    lists = lists_of(&column[c], &row)
                    atoms[j] = lists.atoms[row * column[c].n_atoms + parts[j, 4]]
                    k = parts[j, 0]
                    if j == firsts[k] + 1 and not are_hashed:
                        table.fetch(<int64_t> (families[k] + 1) << 32 | atoms[j - 1],
                                    atoms[j])
                for k in range(n_templates):
                    prefix, value = (<int64_t> families[k] + 1) << 32, -1
                    hashed = mixed(prefix)
                    if firsts[k] == firsts[k + 1]:  # It is the same everywhere.
                        value = table.entry(prefix, 0).value
                        if are_hashed:
                            value = <int> (hashed % n_features)
                    for j in range(firsts[k], firsts[k + 1]):
                        value = -1
                        if atoms[j] < 0:
                            break
                        if are_hashed:
                            hashed = place_of(<int64_t> hashed, atoms[j])
                            value = <int> (hashed % n_features)
                        elif j == firsts[k]:
                            prefix |= atoms[j]
                        else:
                            value = table.entry(prefix, atoms[j]).value
                            prefix = value
                            if value < 0:
                                break
                    if 0 <= value < n_features:
                        found[end] = value
                        end += 1
                ends[start + t + 1] = end
    return indices[:end], indptr
