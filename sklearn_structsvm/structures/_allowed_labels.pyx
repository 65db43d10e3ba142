"""Read what users pass as `allowed`: find the nodes at which some labels are barred.

Most nodes may have any label. These cost a few instructions each, and nothing later.
"""
import numpy as np

from sklearn_structsvm._utils.labels import MISSING

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBuffer_Release, PyObject_GetBuffer)
from libc.string cimport memchr, memcpy, memset


cdef Py_ssize_t read_mask(
        own, Py_ssize_t start, Py_ssize_t T, Py_ssize_t k, Py_ssize_t count,
        Py_ssize_t* nodes, unsigned char* rows) except -2:
    """Append the nodes that a mask restricts; return the new count, or -1 if invalid."""
    cdef Py_buffer view
    cdef const unsigned char* row
    cdef Py_ssize_t t
    try:
        PyObject_GetBuffer(own, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_ND)
    except (BufferError, ValueError):
        return -1
    try:
        if not (view.ndim == 2 and view.format[0] == c"?" and view.shape[0] == T
                and view.shape[1] == k):
            return -1
        row = <const unsigned char*> view.buf
        for t in range(T):
            if memchr(row, 0, k) != NULL:
                nodes[count] = start + t
                memcpy(rows + count * k, row, k)
                count += 1
            row += k
    finally:
        PyBuffer_Release(&view)
    return count


def read_allowed(list allowed, const Py_ssize_t[::1] bounds, Py_ssize_t k, dict codes,
                 regular, code_of):
    """Nodes at which labels are barred.

    Parameters
    ----------
    allowed : list of n objects
        For each example: None, a boolean array of shape (T_i, k), or a list of T_i items.
        An item is a label, a set of labels, or None or `MISSING` for any label.
    bounds : ndarray of shape (n + 1,), dtype intp
        Example i has the nodes bounds[i]:bounds[i + 1].
    k : int
        Number of classes.
    codes : dict
        Maps a label to its place among the classes.
    regular : callable
        (i, item of example i) -> one of the forms above, or an error.
    code_of : callable
        (i, t, label) -> the place of a label that is not in `codes`, or an error.

    Returns
    -------
    nodes : ndarray of shape (m,), dtype intp
        In increasing order.
    masks : ndarray of shape (m, k), dtype bool
        Which labels these nodes may have.
    """
    cdef Py_ssize_t n = bounds.shape[0] - 1, i, t, T, start, found, count = 0
    cdef Py_ssize_t n_nodes = bounds[n]
    # Pages that are never written take no memory.
    nodes, masks = np.empty(n_nodes, dtype=np.intp), np.empty((n_nodes, k), dtype=bool)
    cdef Py_ssize_t[::1] node_view = nodes
    cdef unsigned char[:, ::1] mask_view = masks.view(np.uint8)
    cdef Py_ssize_t* node = &node_view[0] if n_nodes > 0 else NULL
    cdef unsigned char* rows = &mask_view[0, 0] if n_nodes > 0 and k > 0 else NULL
    cdef unsigned char* row
    array, missing = np.ndarray, MISSING
    for i in range(n):
        own = allowed[i]
        if own is None:
            continue
        start = bounds[i]
        T = bounds[i + 1] - start
        if type(own) is not list or len(<list> own) != T:
            found = -1
            if isinstance(own, array):
                found = read_mask(own, start, T, k, count, node, rows)
            if found < 0:
                own = regular(i, own)
                if isinstance(own, array):
                    found = read_mask(own, start, T, k, count, node, rows)
                elif len(<list?> own) != T:
                    raise ValueError(
                        f"allowed[{i}] has {len(<list> own)} entries for {T} nodes.")
            if found >= 0:
                count = found
                continue
        for t in range(T):
            entry = (<list> own)[t]
            if entry is None or entry is missing:
                continue
            node[count] = start + t
            row = rows + count * k
            memset(row, 0, k)
            count += 1
            if type(entry) is str:
                row[find(entry, i, t, codes, code_of)] = 1
            elif isinstance(entry, (set, frozenset, list, tuple)):
                for label in entry:
                    row[find(label, i, t, codes, code_of)] = 1
            else:
                row[find(entry, i, t, codes, code_of)] = 1
    return nodes[:count], masks[:count]


cdef inline Py_ssize_t find(
        label, Py_ssize_t i, Py_ssize_t t, dict codes, code_of) except -1:
    try:
        return <Py_ssize_t> codes[label]
    except (KeyError, TypeError):
        return <Py_ssize_t> code_of(i, t, label)
