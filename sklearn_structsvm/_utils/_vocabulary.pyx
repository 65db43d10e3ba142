"""Columns of names, from a hash table whose lookups overlap their waits for memory."""
from collections.abc import Mapping
from itertools import islice

import numpy as np

from cpython.array cimport array, resize_smart
from cpython.object cimport PyObject
from cython cimport floating
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sklearn_structsvm._utils._memory cimport grow


cdef extern from "_utils/_vector.h" nogil:
    void PREFETCH(const void* address) noexcept


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define OTHERS_WAIT 0
    #else
    #define OTHERS_WAIT 1
    #endif
    """
    # Whether no other thread changes a list while compiled code reads it.
    bint OTHERS_WAIT
    # These take pointers, because reference counting would write to each string.
    PyObject* PyList_GET_ITEM(object items, Py_ssize_t i)
    PyObject** PySequence_Fast_ITEMS(object items)
    PyObject** items_of "PySequence_Fast_ITEMS" (PyObject* items)
    Py_ssize_t size_of "PySequence_Fast_GET_SIZE" (PyObject* items)
    bint PyList_CheckExact(PyObject* value)
    bint PyTuple_CheckExact(PyObject* value)
    bint PyUnicode_CheckExact(PyObject* value)
    Py_ssize_t PyObject_Hash(PyObject* value) except? -1
    int PyUnicode_Compare(PyObject* left, PyObject* right) except? -1


cdef enum:
    # Names taken from an iterator at a time.
    CHUNK = 4096
    # Names whose lookups overlap.
    BLOCK = 32
    # Approximate number of bytes from the beginning of a string object to its text.
    HEADER = 48
    # Rows up to this length are sorted by insertion.
    SHORT_ROW = 64
    # A name that is no str, and is looked up in the dict.
    NO_STRING = -2


cdef struct Slot:
    PyObject* name
    uint32_t tag
    int column


cdef inline Py_ssize_t n_names(PyObject* token) noexcept:
    """Number of names of a token; -1 if it is no string, and no list or tuple."""
    if PyUnicode_CheckExact(token):
        return 1
    if PyList_CheckExact(token) or PyTuple_CheckExact(token):
        return size_of(token)
    return -1


cdef class Vocabulary:
    """A snapshot of a dict from names to columns, for lookups of many names.

    Each lookup in a dict of many strings waits for memory several times: for its index,
    the entry, the string and the integer. The table takes 30 to 60 bytes per name.
    """

    cdef readonly dict columns
    # Whether all names have the type str, so that they are compared as strings.
    cdef readonly bint is_plain
    # Keeps the strings of the slots alive.
    cdef list names
    cdef unsigned char[::1] memory
    cdef Slot* slots
    cdef uint64_t mask

    def __init__(self, dict columns):
        cdef Py_ssize_t i, size = 8
        cdef uint64_t place, hashed
        cdef PyObject* name
        self.columns, self.names = columns, list(columns)
        self.is_plain = all(type(key) is str for key in self.names)
        if not self.is_plain:
            return
        while 2 * size < 3 * len(self.names):
            size *= 2
        # NumPy asks the system for large pages, with which lookups are faster.
        self.memory = np.empty(size * sizeof(Slot), np.uint8)
        self.slots = <Slot*> &self.memory[0]
        memset(self.slots, 0, size * sizeof(Slot))
        self.mask = size - 1
        for i, column in enumerate(columns.values()):
            name = PyList_GET_ITEM(self.names, i)
            hashed = <uint64_t> PyObject_Hash(name)
            place = hashed & self.mask
            while self.slots[place].name != NULL:
                place = (place + 1) & self.mask
            self.slots[place] = Slot(name, <uint32_t> (hashed >> 32), column)

    def columns_of(self, names):
        """The columns of an iterable of names, dtype intc; -1 for unknown names."""
        names, found = iter(names), [np.empty(0, np.intc)]
        while chunk := list(islice(names, CHUNK)):
            if self.is_plain:
                found.append(self.columns_of_chunk(chunk))
            else:
                known = [self.columns.get(name, -1) for name in chunk]
                found.append(np.array(known, np.intc))
        return found[1] if len(found) == 2 else np.concatenate(found)

    cdef columns_of_chunk(self, list names):
        cdef Py_ssize_t i, n = len(names)
        result = np.empty(n, np.intc)
        cdef int[::1] columns = result
        if n > 0 and not self.find(PySequence_Fast_ITEMS(names), n, &columns[0]):
            for i in range(n):
                if columns[i] == NO_STRING:
                    columns[i] = self.columns.get(names[i], -1)
        return result

    def rows_of(self, list tokens):
        """The features of tokens that are strings, or lists or tuples of strings.

        Unknown names are left out; the others have the value 1, or the number of times
        that they are in a token.

        Returns
        -------
        tuple of (data, columns, indptr, is_tidy), or None
            As of `tidy_rows`. None if there is anything else in the tokens, or in the
            vocabulary.
        """
        cdef Py_ssize_t i, size, n = 0, n_tokens = len(tokens)
        cdef PyObject* token
        cdef PyObject** names = NULL
        cdef int[::1] columns
        cdef double[::1] values
        cdef Py_ssize_t[::1] starts
        cdef bint is_tidy
        if not (OTHERS_WAIT and self.is_plain):
            return None
        indptr = np.empty(n_tokens + 1, np.intp)
        starts = indptr
        starts[0] = 0
        for i in range(n_tokens):
            size = n_names(PyList_GET_ITEM(tokens, i))
            if size < 0:
                return None
            n += size
            starts[i + 1] = n
        if n == 0:
            return None
        found = np.empty(n, np.intc)
        columns = found
        try:
            grow(<void**> &names, n * sizeof(PyObject*), b"the names of features")
            for i in range(n_tokens):
                token = PyList_GET_ITEM(tokens, i) if i < len(tokens) else NULL
                size = starts[i + 1] - starts[i]
                # Memory for arrays was allocated, so garbage may have been collected,
                # by code of users that changes lists.
                if token == NULL or n_names(token) != size:
                    return None
                if PyUnicode_CheckExact(token):
                    names[starts[i]] = token
                elif size > 0:
                    memcpy(names + starts[i], items_of(token), size * sizeof(PyObject*))
            if not self.find(names, n, &columns[0]):
                return None
        finally:
            free(names)
        data = np.ones(n)
        values = data
        is_tidy = tidy(values, columns, starts)
        n = starts[n_tokens]
        return data[:n], found[:n], indptr, is_tidy

    cdef bint find(
            self, PyObject** names, Py_ssize_t n, int* columns) except -1:
        """Set the columns of names, NO_STRING for those that are no str; whether all are.

        It runs no code of users, which might change the names.
        """
        cdef Py_ssize_t i, j, start, count
        cdef uint64_t places[BLOCK]
        cdef uint32_t tags[BLOCK]
        cdef uint64_t hashed
        cdef PyObject* name
        cdef Slot* slot
        cdef bint are_strings = True
        for start in range(0, n, BLOCK):
            count = min(BLOCK, n - start)
            for j in range(start + BLOCK, min(start + 2 * BLOCK, n)):
                PREFETCH(names[j])
            for j in range(count):
                name = names[start + j]
                if not PyUnicode_CheckExact(name):
                    continue
                hashed = <uint64_t> PyObject_Hash(name)
                places[j], tags[j] = hashed & self.mask, <uint32_t> (hashed >> 32)
                PREFETCH(&self.slots[places[j]])
                PREFETCH(<char*> name + HEADER)
            for j in range(count):
                name = names[start + j]
                if PyUnicode_CheckExact(name):
                    slot = self.next_slot(&places[j], tags[j])
                    PREFETCH(slot.name)
                    PREFETCH(<char*> slot.name + HEADER)
            for j in range(count):
                i = start + j
                name = names[i]
                if not PyUnicode_CheckExact(name):
                    columns[i] = NO_STRING
                    are_strings = False
                    continue
                slot = self.next_slot(&places[j], tags[j])
                while slot.name != NULL and PyUnicode_Compare(slot.name, name) != 0:
                    places[j] = (places[j] + 1) & self.mask
                    slot = self.next_slot(&places[j], tags[j])
                columns[i] = -1 if slot.name == NULL else slot.column
        return are_strings

    cdef inline Slot* next_slot(self, uint64_t* place, uint32_t tag) noexcept nogil:
        """The first slot at or after a place that is free or has this tag."""
        while self.slots[place[0]].name != NULL and self.slots[place[0]].tag != tag:
            place[0] = (place[0] + 1) & self.mask
        return &self.slots[place[0]]


def names_of(
        tokens, array values, lengths, vectors, Py_ssize_t row, features_of, as_name):
    """Iterate over the names of the features of each token, as lists.

    Parameters
    ----------
    tokens : iterable of str, iterable of str, or mapping
    values, lengths : array, of types "d" and "q"
        The values of all features, and the number of features of each token, are
        appended.
    vectors : dict
        For `features_of`.
    row : int
        The place of the first token.
    features_of : callable
        (name, value, row, vectors) -> pairs of a name and a value, for values of a
        mapping that are neither a str nor a float with a value, which are fast to
        recognize.
    as_name : callable
        (name, row) -> the name as a str, for one that is none.
    """
    cdef list names
    for token in tokens:
        names = []
        if isinstance(token, (str, bytes)):
            add_value(values, 1.0)
            names.append(token if type(token) is str else as_name(token, row))
        elif type(token) is not dict and not isinstance(token, Mapping):
            for name in token:
                add_value(values, 1.0)
                names.append(name if type(name) is str else as_name(name, row))
        else:
            for name, value in token.items():
                if type(name) is not str:
                    name = as_name(name, row)
                if type(value) is str:
                    add_value(values, 1.0)
                    names.append(f"{name}={value}")
                elif type(value) is float and value == value:
                    add_value(values, value)
                    names.append(name)
                else:
                    for inner, number in features_of(name, value, row, vectors):
                        add_value(values, number)
                        names.append(inner)
        lengths.append(len(names))
        row += 1
        yield names


cdef int add_value(array values, double value) except -1:
    cdef Py_ssize_t n = len(values)
    resize_smart(values, n + 1)
    values.data.as_doubles[n] = value
    return 0


def tidy_rows(floating[::1] data, int[::1] columns, Py_ssize_t[::1] indptr):
    """Drop entries of negative columns, sort each row, and sum entries of equal columns.

    All of this is done in place.

    Returns
    -------
    bool
        Whether all rows are sorted and without duplicates. False if a row is too long to
        be sorted here: only its negative columns are dropped.
    """
    return tidy(data, columns, indptr)


cdef bint tidy(floating[::1] data, int[::1] columns, Py_ssize_t[::1] indptr):
    cdef Py_ssize_t i, p, q, stop, first, start = 0, end = 0
    cdef int column
    cdef floating value
    cdef bint is_short, is_tidy = True
    for i in range(indptr.shape[0] - 1):
        # Entries from `start` to `stop` move to the places from `first` to `end`.
        stop, first = indptr[i + 1], end
        is_short = stop - start <= SHORT_ROW
        is_tidy &= is_short
        for p in range(start, stop):
            column, value = columns[p], data[p]
            if column < 0:
                continue
            q = end
            end += 1
            while is_short and q > first and columns[q - 1] > column:
                columns[q], data[q] = columns[q - 1], data[q - 1]
                q -= 1
            columns[q], data[q] = column, value
        if is_short and end > first:
            q = first
            for p in range(first + 1, end):
                if columns[p] == columns[q]:
                    data[q] += data[p]
                else:
                    q += 1
                    columns[q], data[q] = columns[p], data[p]
            end = q + 1
        start = stop
        indptr[i + 1] = end
    return is_tidy
