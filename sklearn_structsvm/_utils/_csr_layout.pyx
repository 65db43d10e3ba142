"""Checks of items in one scan: the indices of CSR matrices, and finite values."""
import numpy as np
from scipy import sparse

from cpython.buffer cimport PyBUF_ND, PyBuffer_Release, PyObject_GetBuffer
from cython cimport floating
from libc.stdint cimport int64_t, uintptr_t

cdef object MATRIX = sparse.csr_matrix, ARRAY = sparse.csr_array
cdef object SINGLE = np.dtype(np.float32), DOUBLE = np.dtype(np.float64)

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

    It is canonical if the columns of each row are sorted and without duplicates. Both are
    False, and say nothing, for arrays that are not aligned.

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


def are_sound(list items, width):
    """Whether items are arrays, or CSR matrices, with rows and as many columns.

    They are of the usual types: float32 or float64, contiguous and aligned. Indices have
    32 bits, and the columns of each row rise. Their values are finite. False says nothing
    about what is wrong.

    Parameters
    ----------
    items : list
        At least one.
    width : int or None
        The number of columns; None for that of the first item.
    """
    cdef Py_ssize_t n_columns
    cdef bint is_dense = type(items[0]) is np.ndarray
    try:
        # Tuples are read without a check of their lengths.
        if len(items[0].shape) != 2:
            return False
        n_columns = items[0].shape[1] if width is None else width
        for item in items:
            shape = item.shape
            if len(shape) != 2 or shape[0] < 1 or shape[1] != n_columns:
                return False
            if is_dense:
                if type(item) is not np.ndarray or not are_finite(item, 2):
                    return False
            elif type(item) is not MATRIX and type(item) is not ARRAY:
                return False
            elif not is_canonical(
                    item.indices, item.indptr, len(item.data), shape[0], n_columns):
                return False
            elif not are_finite(item.data, 1):
                return False
    except (AttributeError, BufferError, IndexError, TypeError, ValueError):
        return False
    return n_columns > 0


cdef bint is_canonical(
        const int[::1] indices, const int[::1] indptr, Py_ssize_t n_entries,
        Py_ssize_t n_rows, Py_ssize_t n_columns) except -1:
    if indptr.shape[0] != n_rows + 1:
        return False
    n_entries = min(n_entries, indices.shape[0])
    return layout(indices, indptr, n_entries, n_rows, n_columns) == CANONICAL


cdef bint are_finite(array, int ndim) except -1:
    """Whether the values of an array are finite and aligned; an error for other types."""
    cdef Py_buffer view
    cdef bint is_single, found
    if array.dtype is not SINGLE and array.dtype is not DOUBLE:
        return False
    is_single = array.dtype is SINGLE
    PyObject_GetBuffer(array, &view, PyBUF_ND)
    if view.ndim != ndim or <uintptr_t> view.buf % view.itemsize != 0:
        found = False
    elif is_single:
        found = all_finite(<const float*> view.buf, view.len // sizeof(float))
    else:
        found = all_finite(<const double*> view.buf, view.len // sizeof(double))
    PyBuffer_Release(&view)
    return found


cdef bint all_finite(const floating* values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t p
    cdef floating size
    cdef int n_bad = 0
    for p in range(n):
        size = values[p] - values[p]
        n_bad |= size != 0
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


cdef bint is_aligned(const index_t[::1] array) noexcept nogil:
    return not array.shape[0] or <uintptr_t> &array[0] % sizeof(index_t) == 0


cdef int layout(
        const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t n_entries,
        Py_ssize_t n_rows, Py_ssize_t n_columns) noexcept nogil:
    cdef Py_ssize_t i, p
    cdef int found = CANONICAL
    if not is_aligned(indptr) or not is_aligned(indices):
        return OUTSIDE
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
