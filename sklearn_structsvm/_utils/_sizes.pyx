"""Sizes of the entries of arrays, each array read once and none copied."""
import numpy as np

from sklearn_structsvm._utils._matrix._rows import as_features_type

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from cython cimport floating
from libc.math cimport NAN, fabs

cdef object SINGLE = np.dtype(np.float32), DOUBLE = np.dtype(np.float64)


def largest_size(list arrays):
    """The largest absolute value in arrays; 0.0 without any, NaN if there is one."""
    cdef Py_buffer view
    cdef double largest = 0.0, size
    for array in arrays:
        PyObject_GetBuffer(readable(array), &view, PyBUF_C_CONTIGUOUS)
        if view.itemsize == sizeof(float):
            size = _largest(<const float*> view.buf, view.len // view.itemsize)
        else:
            size = _largest(<const double*> view.buf, view.len // view.itemsize)
        PyBuffer_Release(&view)
        if not size <= largest:
            largest = size
        if size != size:
            break
    return largest


def add_sizes(list items, const double[::1] weights, double[::1] sums):
    """Add p_i Σ_v |x_ivj| of arrays x_i to the sum of each column j; return the sums."""
    cdef Py_buffer view
    cdef Py_ssize_t i
    for i, item in enumerate(items):
        PyObject_GetBuffer(readable(item), &view, PyBUF_C_CONTIGUOUS)
        if view.itemsize == sizeof(float):
            _add(<const float*> view.buf, view.shape[0], weights[i], sums)
        else:
            _add(<const double*> view.buf, view.shape[0], weights[i], sums)
        PyBuffer_Release(&view)
    return np.asarray(sums)


cdef readable(array):
    """The array as it is read below, copied if it must be."""
    flags = array.flags
    is_known = array.dtype is SINGLE or array.dtype is DOUBLE
    if is_known and flags.c_contiguous and flags.aligned:
        return array
    return as_features_type(array)


cdef double _largest(const floating* values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t p
    cdef floating size, largest = 0.0
    cdef int n_bad = 0
    for p in range(n):
        size = <floating> fabs(values[p])
        largest = size if size > largest else largest
        n_bad |= size != size
    return NAN if n_bad else largest


cdef void _add(const floating* values, Py_ssize_t n_rows, double weight,
               double[::1] sums) noexcept nogil:
    cdef Py_ssize_t v, j, d = sums.shape[0]
    for v in range(n_rows):
        for j in range(d):
            sums[j] += weight * fabs(values[v * d + j])
