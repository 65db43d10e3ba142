"""Sums over the blocks of a dual point for `feasible_shares`."""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from sklearn_structsvm.solvers.blocks._block_dual cimport BlockDual


def blocks_of(BlockDual dual):
    """p_i and ℓ_i of all blocks, and the number of log factors."""
    cdef Py_ssize_t i, n_factors = 0
    for i in range(dual.oracle.n_blocks):
        n_factors += dual.oracle.n_factors(i)
    return np.array(dual.p), np.array(dual.loss_bar), n_factors


def block_images(BlockDual dual, const Py_ssize_t[::1] weights, Py_ssize_t most):
    """What each block adds to some entries of u = Aα, or None if it is too much.

    Parameters
    ----------
    dual : BlockDual
    weights : ndarray of shape (m,)
        The entries.
    most : int
        The number of nonzero terms beyond which it is too much.

    Returns
    -------
    data, places, indptr : ndarray
        The rows of a CSR matrix of shape (n_blocks, m).
    """
    cdef Py_ssize_t i, j, weight, n = dual.oracle.n_blocks, m = weights.shape[0]
    cdef Py_ssize_t count = 0
    cdef double[::1] image = np.zeros(dual.oracle.n_weights)
    all_data, all_places = np.zeros(most + m), np.zeros(most + m, dtype=np.intp)
    indptr = np.zeros(n + 1, dtype=np.intp)
    cdef double[::1] data = all_data
    cdef Py_ssize_t[::1] places = all_places, ends = indptr
    for j in range(m):
        if not 0 <= weights[j] < dual.oracle.n_weights:
            raise IndexError(f"There is no weight {weights[j]}.")
    with nogil:
        for i in range(n):
            if dual.p[i] > 0.0:
                dual.oracle.direction(i, 1.0, 0, NULL, NULL, &dual.first[0], NULL)
                dual.oracle.scatter(
                    i, -dual.p[i] / dual.lam, &dual.first[0], &image[0])
                # Other entries of the image are never read.
                for j in range(m):
                    weight = weights[j]
                    if image[weight] != 0.0:
                        data[count] = image[weight]
                        places[count] = j
                        image[weight] = 0.0
                        count += 1
            ends[i + 1] = count
            if count > most:
                break
    if count > most:
        return None
    return all_data[:count], all_places[:count], indptr


def image_of(BlockDual dual, const double[::1] shares):
    """u if a share of each block's distribution is kept, and the rest is the truth."""
    cdef Py_ssize_t i
    check_shape("shares", shares, dual.oracle.n_blocks)
    u = np.zeros(dual.oracle.n_weights)
    cdef double[::1] out = u
    with nogil:
        for i in range(dual.oracle.n_blocks):
            if dual.p[i] > 0.0:
                dual.oracle.direction(i, 1.0, 0, NULL, NULL, &dual.first[0], NULL)
                dual.oracle.scatter(
                    i, -shares[i] * dual.p[i] / dual.lam, &dual.first[0], &out[0])
    return u


def nearest_shares(const double[::1] data, const Py_ssize_t[::1] blocks,
                   const Py_ssize_t[::1] indptr, const double[::1] p, int n_sweeps):
    """Minimize Σ_i p_i (1 - s_i)² over s in [0, 1] with Σ_i a_ij s_i <= 1 for all j.

    `data`, `blocks` and `indptr` are the columns of the CSC matrix a. Multipliers y >= 0
    of the constraints give s_i = clip(1 - (a y)_i / p_i), and each sweep makes a step on
    one after the other. The constraints hold in the limit.
    """
    cdef Py_ssize_t i, j, e, m = indptr.shape[0] - 1, n = p.shape[0]
    cdef int n_made = 0
    cdef double beyond, curvature, before, change
    shares = np.ones(n)
    cdef double[::1] s = shares, moved = np.zeros(n), y = np.zeros(m)
    for e in range(blocks.shape[0]):
        if not 0 <= blocks[e] < n:
            raise IndexError(f"There is no block {blocks[e]}.")
    with nogil:
        while n_made < n_sweeps:
            n_made += 1
            for j in range(m):
                beyond = -1.0
                curvature = 0.0
                for e in range(indptr[j], indptr[j + 1]):
                    beyond += data[e] * s[blocks[e]]
                    curvature += data[e] * data[e] / p[blocks[e]]
                before = y[j]
                if curvature == 0.0 or (beyond <= 0.0 and before == 0.0):
                    continue
                y[j] = max(before + beyond / curvature, 0.0)
                change = y[j] - before
                for e in range(indptr[j], indptr[j + 1]):
                    i = blocks[e]
                    moved[i] += change * data[e] / p[i]
                    s[i] = min(max(1.0 - moved[i], 0.0), 1.0)
    return shares
