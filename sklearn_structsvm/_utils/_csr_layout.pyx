"""Checks of CSR matrices: of indices, and of all that a list of them needs."""
from scipy import sparse

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

cdef object MATRIX = sparse.csr_matrix, ARRAY = sparse.csr_array

ctypedef fused index_t:
    int
    int64_t

cdef enum:
    OUTSIDE
    WITHIN
    CANONICAL


def csr_layout(const int[::1] indices, const int[::1] indptr, Py_ssize_t n_entries,
               Py_ssize_t n_rows, Py_ssize_t n_columns):
    """Whether all indices are within the matrix, and whether it is canonical.

    It is canonical if the columns of each row are sorted and without duplicates.

    Parameters
    ----------
    indices, indptr : ndarray, dtype intc
    n_entries : int
        The number of values, some of which may be unused.
    n_rows, n_columns : int
        The shape of the matrix.

    Returns
    -------
    is_within, is_canonical : bool
    """
    return within_and_canonical(indices, indptr, n_entries, n_rows, n_columns)


def csr_layout_of_longs(
        const int64_t[::1] indices, const int64_t[::1] indptr, Py_ssize_t n_entries,
        Py_ssize_t n_rows, Py_ssize_t n_columns):
    """The same for 64-bit indices."""
    return within_and_canonical(indices, indptr, n_entries, n_rows, n_columns)


def are_sound(list items, Py_ssize_t n_columns):
    """Whether all items are CSR matrices with rows, of this width, in the usual types.

    These are float32 or float64, and 32-bit indices. The indices are within the matrix,
    and the values finite. False says nothing about what is wrong.
    """
    for item in items:
        if type(item) is not MATRIX and type(item) is not ARRAY:
            return False
        shape = item.shape
        if len(shape) != 2 or shape[0] < 1 or shape[1] != n_columns:
            return False
        try:
            if not is_sound(item.data, item.indices, item.indptr, shape[0], n_columns):
                return False
        except (AttributeError, TypeError, ValueError):
            return False
    return n_columns > 0


cdef bint is_sound(
        data, const int[::1] indices, const int[::1] indptr, Py_ssize_t n_rows,
        Py_ssize_t n_columns) except -1:
    cdef Py_ssize_t p, n_entries = min(len(data), indices.shape[0])
    cdef const double[::1] doubles
    cdef const float[::1] floats
    cdef int n_bad = 0
    if indptr.shape[0] != n_rows + 1:
        return False
    if layout(indices, indptr, n_entries, n_rows, n_columns) == OUTSIDE:
        return False
    if data.itemsize == sizeof(double):
        doubles = data
        for p in range(doubles.shape[0]):
            n_bad |= not fabs(doubles[p]) < INFINITY
    else:
        floats = data
        for p in range(floats.shape[0]):
            n_bad |= not fabs(floats[p]) < INFINITY
    return n_bad == 0


cdef within_and_canonical(
        const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t n_entries,
        Py_ssize_t n_rows, Py_ssize_t n_columns):
    cdef int found
    n_entries = min(n_entries, indices.shape[0])
    if indptr.shape[0] != n_rows + 1:
        return False, False
    with nogil:
        found = layout(indices, indptr, n_entries, n_rows, n_columns)
    return found >= WITHIN, found == CANONICAL


cdef int layout(
        const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t n_entries,
        Py_ssize_t n_rows, Py_ssize_t n_columns) noexcept nogil:
    cdef Py_ssize_t i, p
    cdef int found = CANONICAL
    if indptr[0] != 0 or indptr[n_rows] > n_entries:
        return OUTSIDE
    for i in range(n_rows):
        if indptr[i + 1] < indptr[i]:
            return OUTSIDE
    for i in range(n_rows):
        for p in range(indptr[i], indptr[i + 1]):
            if not 0 <= indices[p] < n_columns:
                return OUTSIDE
            if p > indptr[i] and indices[p] <= indices[p - 1]:
                found = WITHIN
    return found
