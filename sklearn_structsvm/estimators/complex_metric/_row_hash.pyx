"""A hash of each row as float32, which depends only on its values and their columns."""
import numpy as np

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy


ctypedef fused real:
    float
    double

ctypedef fused index:
    int
    long long

# The constants of splitmix64: an odd number near 2^64 divided by the golden ratio, and
# the two multipliers of Stafford's thirteenth mixing function.
cdef uint64_t GOLDEN_STEP = 0x9E3779B97F4A7C15ULL
cdef uint64_t FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9ULL
cdef uint64_t SECOND_MULTIPLIER = 0x94D049BB133111EBULL

# Every NaN counts as this one.
cdef uint32_t NOT_A_NUMBER = 0x7FC00000U


cdef inline uint64_t _mix(uint64_t z) noexcept nogil:
    """A bijection; flipping one bit flips every other bit about half of the time."""
    z = (z ^ (z >> 30)) * FIRST_MULTIPLIER
    z = (z ^ (z >> 27)) * SECOND_MULTIPLIER
    return z ^ (z >> 31)


cdef inline uint64_t _entry(float value, uint64_t column) noexcept nogil:
    """The term of an entry in the hash of its row; none for a zero of either sign."""
    cdef uint32_t bits
    if value == 0.0:
        return 0
    if value != value:
        bits = NOT_A_NUMBER
    else:
        memcpy(&bits, &value, sizeof(float))
    return _mix(bits ^ column)


cdef inline double _uniform(uint64_t hashed, uint64_t seed) noexcept nogil:
    """The upper 53 bits as a number in [0, 1)."""
    return <double> (_mix(hashed + (seed + 1) * GOLDEN_STEP) >> 11) * 2.0 ** -53


cdef inline uint64_t _column(Py_ssize_t j) noexcept nogil:
    return _mix(<uint64_t> (j + 1) * GOLDEN_STEP)


def hash_dense(const real[:, :] X, uint64_t seed, double[::1] out):
    """Write a number in [0, 1) for each row of X."""
    cdef Py_ssize_t i, j, n_columns = X.shape[1]
    cdef uint64_t[::1] keys = np.empty(n_columns, dtype=np.uint64)
    cdef uint64_t hashed
    with nogil:
        for j in range(n_columns):
            keys[j] = _column(j)
        for i in range(X.shape[0]):
            hashed = 0
            for j in range(n_columns):
                hashed += _entry(<float> X[i, j], keys[j])
            out[i] = _uniform(hashed, seed)


def hash_sparse(
        const real[::1] data, const index[::1] indices, const index[::1] indptr,
        uint64_t seed, double[::1] out):
    """Write a number in [0, 1) for each row of a CSR matrix without duplicates."""
    cdef Py_ssize_t i, e
    cdef uint64_t hashed
    with nogil:
        for i in range(indptr.shape[0] - 1):
            hashed = 0
            for e in range(indptr[i], indptr[i + 1]):
                hashed += _entry(<float> data[e], _column(indices[e]))
            out[i] = _uniform(hashed, seed)
