"""The plug-in rule (Algorithms 9 and 10 of Narasimhan et al.) over a sample, in one pass.

Class probabilities are kept in blocks of rows of one cell and one label, class by class
within a block, so that each cost is read once for many rows and nothing of the size of
the sample is written. Each block, or run of blocks, has its own sums, which are added in
a fixed order: results are the same bit for bit whatever the number of threads.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape
from sklearn_structsvm.confusion.lmo._costs import reduce_costs

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int32_t


cdef extern from "confusion/lmo/_plugin.h" nogil:
    enum:
        BLOCK_ROWS
        PADDING
        WIDEST_BYTES
    ctypedef struct plugin_block:
        Py_ssize_t rows
        Py_ssize_t padded
        Py_ssize_t k
        Py_ssize_t q
        int single
        int separable
        const void* costs
        const void* P
    void block_tally(
        const plugin_block* block, const double* w, double* room,
        double* tally) noexcept
    void block_sums(
        const plugin_block* block, const void* w, const double* totals, double* room,
        double* sums) noexcept
    void block_choices(const plugin_block* block, int32_t* chosen) noexcept


ctypedef fused real:
    float
    double

# How far the sum of a row's probabilities may be from one. In half precision it is off by
# about 1e-3.
cdef double SUM_ATOL = 1e-2

# One thread processes fewer numbers than this before a second one has started.
cdef Py_ssize_t MIN_NUMBERS = 100_000

# Blocks that share one set of sums, k² numbers, so that sums take less memory than the k
# numbers of each row.
cdef Py_ssize_t RUN_BLOCKS = 8


cdef Py_ssize_t _pack_block(
        const real[:, :] P, const Py_ssize_t* rows, Py_ssize_t count, Py_ssize_t padded,
        real* out) noexcept nogil:
    """Copy rows of P class by class; return the first that is no distribution, or -1."""
    cdef Py_ssize_t k = P.shape[1], i, r, bad = -1
    cdef real value
    cdef double total
    cdef bint negative
    for r in range(count):
        total = 0.0
        negative = False
        for i in range(k):
            value = P[rows[r], i]
            out[i * padded + r] = value
            total += value
            negative |= value < 0
        # Written so that NaN fails, too.
        if (negative or not fabs(total - 1.0) <= SUM_ATOL) and bad < 0:
            bad = rows[r]
    for i in range(k):
        for r in range(count, padded):
            out[i * padded + r] = 0
    return bad


def _pack(
        const real[:, :] P, const Py_ssize_t[::1] order, const Py_ssize_t[::1] first,
        const Py_ssize_t[::1] rows, const Py_ssize_t[::1] starts, real[::1] out,
        Py_ssize_t[::1] bad, int n_threads):
    cdef Py_ssize_t b, n_blocks = rows.shape[0], k = P.shape[1]
    for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        bad[b] = _pack_block(
            P, &order[first[b]], rows[b], starts[b + 1] - starts[b], &out[starts[b] * k])


def top_classes(const real[:, :] P, const real[::1] scale, int n_threads=1):
    """Two classes per row: the likeliest, and the one of the largest scaled probability.

    They are returned as one int32 per row: k times the second, plus the first.
    """
    cdef Py_ssize_t n = P.shape[0], r
    cdef int32_t[::1] top
    out = np.empty(n, dtype=np.int32)
    top = out
    for r in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        top[r] = _top_of_row(P, scale, r)
    return out


cdef inline int32_t _top_of_row(
        const real[:, :] P, const real[::1] scale, Py_ssize_t r) noexcept nogil:
    cdef int32_t i, k = <int32_t> P.shape[1], first = 0, second = 0
    cdef real value, best = P[r, 0], scaled = best * scale[0]
    for i in range(1, k):
        value = P[r, i]
        first = i if value > best else first
        best = value if value > best else best
        value = value * scale[i]
        second = i if value > scaled else second
        scaled = value if value > scaled else scaled
    return second * k + first


def _aligned(size, dtype):
    """An array aligned for vectors, so that none straddles two cache lines."""
    size = max(size, 1)
    itemsize = np.dtype(dtype).itemsize
    raw = np.empty(size + WIDEST_BYTES // itemsize, dtype=dtype)
    skip = -raw.ctypes.data % WIDEST_BYTES // itemsize
    return raw[skip:skip + size]


cdef class PluginBlocks:
    """Class probabilities in blocks, and the plug-in rule over them.

    Parameters
    ----------
    P : ndarray of shape (n, k), float32 or float64
    order : ndarray of shape (n_kept,), intp
        Rows to keep, segment after segment. Similar rows are best placed side by side.
    ends : ndarray of shape (n_segments,), intp
        Where in `order` each segment ends; the rows of a segment belong to one cell.
    cells : ndarray of shape (n_segments,), intp
        Cell of each segment, ascending.
    labels : ndarray of shape (n_segments,), intp, or None
        Label of each segment, which `count` needs.
    weights : ndarray of shape (n,), float64, or None
    n_threads : int

    Raises
    ------
    ValueError
        If a row has a negative number, or its sum is not one.
    """

    cdef readonly Py_ssize_t n_classes
    cdef readonly bint single
    cdef Py_ssize_t n_rows, n_cells
    cdef bint weighted, labeled
    cdef Py_ssize_t itemsize, n_blocks
    cdef object data_keep, weights_keep, own_weights_keep
    cdef const char* data
    cdef const double* weights
    cdef const char* own_weights
    cdef const Py_ssize_t[::1] order
    # Of block b: its first row in `order`, its number of rows, and its place among padded
    # rows.
    cdef Py_ssize_t[::1] first
    cdef Py_ssize_t[::1] rows
    cdef Py_ssize_t[::1] starts
    cdef Py_ssize_t[::1] cells
    cdef Py_ssize_t[::1] labels
    # Weighted sums of the probabilities of each class over each block.
    cdef double[:, ::1] totals
    # Where runs of blocks of one cell start, to be summed together.
    cdef Py_ssize_t[::1] runs

    def __init__(self, P, order, ends, cells, labels=None, weights=None, n_threads=1):
        self.n_classes = P.shape[1]
        self.n_rows = len(P)
        self.n_cells = np.max(cells, initial=-1) + 1
        self.single = P.dtype == np.float32
        self.itemsize = P.dtype.itemsize
        self.order = order
        self.weighted, self.labeled = weights is not None, labels is not None
        self._cut(np.diff(ends, prepend=0), ends, cells, labels)
        data = _aligned(self.starts[self.n_blocks] * self.n_classes, P.dtype)
        bad = np.full(self.n_blocks, -1, dtype=np.intp)
        _pack(P, order, self.first, self.rows, self.starts, data, bad,
              self._threads(n_threads))
        bad = bad[bad >= 0]
        if len(bad):
            row = bad.min()
            raise ValueError(
                "Class probabilities must be >= 0 and sum to one; "
                f"got {np.asarray(P[row]).tolist()} in row {row}.")
        self.data_keep, self.data = data, <const char*> <size_t> data.ctypes.data
        if self.weighted:
            self._copy_weights(weights, P.dtype)
        self.totals = np.empty((self.n_blocks, self.n_classes))
        if self.single:
            self._add_totals[float](data)
        else:
            self._add_totals[double](data)

    def _cut(self, sizes, ends, cells, labels):
        """Cut segments into blocks, and these into runs."""
        n_cuts = (sizes + BLOCK_ROWS - 1) // BLOCK_ROWS
        segment = np.repeat(np.arange(len(sizes)), n_cuts)
        self.n_blocks = len(segment)
        cut = np.arange(self.n_blocks) - np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
        self.first = (ends - sizes)[segment] + cut * BLOCK_ROWS
        rows = np.minimum(sizes[segment] - cut * BLOCK_ROWS, BLOCK_ROWS)
        self.rows = rows
        padded = (rows + PADDING - 1) // PADDING * PADDING
        self.starts = np.concatenate(([0], np.cumsum(padded))).astype(np.intp)
        of_block = cells[segment]
        self.cells = of_block
        self.labels = labels[segment] if labels is not None else None
        starts = np.flatnonzero(np.diff(of_block, prepend=-1))
        runs = [
            np.arange(start, stop, RUN_BLOCKS)
            for start, stop in zip(starts, [*starts[1:], self.n_blocks], strict=True)
        ]
        self.runs = np.concatenate([*runs, [self.n_blocks]]).astype(np.intp)

    def _copy_weights(self, const double[::1] weights, dtype):
        cdef Py_ssize_t b, r
        cdef double[::1] out
        copied = _aligned(self.starts[self.n_blocks], np.float64)
        copied[:] = 0.0
        out = copied
        with nogil:
            for b in range(self.n_blocks):
                for r in range(self.rows[b]):
                    out[self.starts[b] + r] = weights[self.order[self.first[b] + r]]
        self.weights_keep = copied
        self.weights = <const double*> <size_t> copied.ctypes.data
        if self.single:
            narrow = _aligned(len(copied), np.float32)
            narrow[:] = copied
            copied = narrow
        self.own_weights_keep = copied
        self.own_weights = <const char*> <size_t> copied.ctypes.data

    cdef void _add_totals(self, const real[::1] data):
        cdef Py_ssize_t b, i, r, padded, k = self.n_classes
        cdef double total
        cdef const real* p
        with nogil:
            for b in range(self.n_blocks):
                padded = self.starts[b + 1] - self.starts[b]
                for i in range(k):
                    p = &data[self.starts[b] * k + i * padded]
                    total = 0.0
                    for r in range(self.rows[b]):
                        if self.weighted:
                            total += self.weights[self.starts[b] + r] * p[r]
                        else:
                            total += p[r]
                    self.totals[b, i] = total

    cdef int _check(self, Py_ssize_t m, Py_ssize_t k, Py_ssize_t q) except -1:
        if k != self.n_classes or q < 1 or m < self.n_cells:
            raise ValueError(
                f"Loss tensors of shape ({m}, {k}, {q}) do not fit {self.n_cells} cells "
                f"and {self.n_classes} classes.")
        return 0

    cdef int _threads(self, int n_threads) noexcept nogil:
        cdef Py_ssize_t numbers = self.starts[self.n_blocks] * self.n_classes
        return n_threads if numbers >= MIN_NUMBERS else 1

    cdef plugin_block _block(
            self, Py_ssize_t b, Py_ssize_t q, const char* costs, Py_ssize_t stride,
            const unsigned char* separable) noexcept nogil:
        cdef plugin_block block
        cdef Py_ssize_t a = self.cells[b]
        block.rows = self.rows[b]
        block.padded = self.starts[b + 1] - self.starts[b]
        block.k = self.n_classes
        block.q = q
        block.single = self.single
        block.separable = separable[a]
        block.costs = costs + a * stride
        block.P = self.data + self.starts[b] * self.n_classes * self.itemsize
        return block

    def count(self, const double[:, :, ::1] L, int n_threads=1):
        """Weight of the rows of each cell and label that get each prediction.

        Parameters
        ----------
        L : ndarray of shape (m, k, q)
            Costs of predicting each of q things, for each class.
        n_threads : int

        Returns
        -------
        ndarray of shape (m, k, q)
        """
        cdef Py_ssize_t b, q = L.shape[2], n_blocks = self.n_blocks, j, stride
        cdef int threads = self._threads(n_threads)
        cdef const char* costs
        cdef const unsigned char[::1] separable
        cdef double[:, ::1] tallies
        cdef double[:, :, ::1] C
        if not self.labeled:
            raise ValueError("Labels are counted only where y was given.")
        self._check(L.shape[0], L.shape[1], L.shape[2])
        reduced, separable = reduce_costs(L, self.single)
        costs, stride = <const char*> <size_t> reduced.ctypes.data, reduced.strides[0]
        # The q sums of a block are followed by room for partial sums.
        tallies = np.empty((n_blocks, 5 * q if self.weighted else q))
        out = np.zeros((L.shape[0], L.shape[1], q))
        C = out
        for b in prange(n_blocks, nogil=True, num_threads=threads, schedule="static"):
            self._tally(b, q, costs, stride, &separable[0], &tallies[b, 0])
        with nogil:
            for b in range(n_blocks):
                for j in range(q):
                    C[self.cells[b], self.labels[b], j] += tallies[b, j]
        return out

    cdef void _tally(
            self, Py_ssize_t b, Py_ssize_t q, const char* costs, Py_ssize_t stride,
            const unsigned char* separable, double* tally) noexcept nogil:
        cdef plugin_block block = self._block(b, q, costs, stride, separable)
        if self.weighted:
            block_tally(&block, self.weights + self.starts[b], tally + q, tally)
        else:
            block_tally(&block, NULL, NULL, tally)

    def sum(self, const double[:, :, ::1] L, int n_threads=1):
        """Weighted sum of the probabilities of each class over each prediction's rows.

        Parameters
        ----------
        L : ndarray of shape (m, k, q)
            Costs of predicting each of q things, for each class.
        n_threads : int

        Returns
        -------
        ndarray of shape (m, k, q)
        """
        cdef Py_ssize_t run, n_runs = self.runs.shape[0] - 1, k = self.n_classes, e
        cdef Py_ssize_t stride, a, q = L.shape[2]
        cdef int threads = self._threads(n_threads)
        cdef const char* costs
        cdef const unsigned char[::1] separable
        cdef double[:, ::1] sums
        cdef double[:, :, ::1] C
        self._check(L.shape[0], L.shape[1], L.shape[2])
        reduced, separable = reduce_costs(L, self.single)
        costs, stride = <const char*> <size_t> reduced.ctypes.data, reduced.strides[0]
        # The k q sums of a run are followed by room for k numbers.
        sums = np.zeros((n_runs, k * q + k))
        out = np.zeros((L.shape[0], k, q))
        C = out
        for run in prange(n_runs, nogil=True, num_threads=threads, schedule="static"):
            self._sum_run(run, q, costs, stride, &separable[0], &sums[run, 0])
        with nogil:
            for run in range(n_runs):
                a = self.cells[self.runs[run]]
                for e in range(k * q):
                    (&C[a, 0, 0])[e] += sums[run, e]
        return out

    cdef void _sum_run(
            self, Py_ssize_t run, Py_ssize_t q, const char* costs, Py_ssize_t stride,
            const unsigned char* separable, double* sums) noexcept nogil:
        cdef Py_ssize_t b, k = self.n_classes
        cdef plugin_block block
        cdef const char* weights
        for b in range(self.runs[run], self.runs[run + 1]):
            block = self._block(b, q, costs, stride, separable)
            weights = NULL
            if self.weighted:
                weights = self.own_weights + self.starts[b] * self.itemsize
            block_sums(&block, weights, &self.totals[b, 0], sums + k * q, sums)

    def predict(self, const double[:, :, ::1] L, int32_t[::1] out, int n_threads=1):
        """Write the prediction for each row that was kept.

        Parameters
        ----------
        L : ndarray of shape (m, k, q)
        out : ndarray of shape (n,), int32
        n_threads : int
        """
        cdef Py_ssize_t b, n_blocks = self.n_blocks, q = L.shape[2], stride
        cdef int threads = self._threads(n_threads)
        cdef const char* costs
        cdef const unsigned char[::1] separable
        check_shape("out", out, self.n_rows)
        self._check(L.shape[0], L.shape[1], L.shape[2])
        reduced, separable = reduce_costs(L, self.single)
        costs, stride = <const char*> <size_t> reduced.ctypes.data, reduced.strides[0]
        for b in prange(n_blocks, nogil=True, num_threads=threads, schedule="static"):
            self._predict_block(b, q, costs, stride, &separable[0], out)

    cdef void _predict_block(
            self, Py_ssize_t b, Py_ssize_t q, const char* costs, Py_ssize_t stride,
            const unsigned char* separable, int32_t[::1] out) noexcept nogil:
        cdef int32_t[BLOCK_ROWS] chosen
        cdef plugin_block block = self._block(b, q, costs, stride, separable)
        cdef const Py_ssize_t* rows = &self.order[self.first[b]]
        cdef Py_ssize_t r
        block_choices(&block, chosen)
        for r in range(block.rows):
            out[rows[r]] = chosen[r]

    def mix(self, const double[:, :, :, ::1] Ls, const double[::1] mixture,
            double[:, ::1] out, int n_threads=1):
        """Add to each row the mixture's weights of the classes that it predicts.

        Parameters
        ----------
        Ls : ndarray of shape (T, m, k, q)
        mixture : ndarray of shape (T,)
        out : ndarray of shape (n, q)
        n_threads : int
        """
        cdef Py_ssize_t b, n_blocks = self.n_blocks, T = Ls.shape[0], m = Ls.shape[1]
        cdef Py_ssize_t k = Ls.shape[2], q = Ls.shape[3], stride
        cdef int threads = self._threads(n_threads)
        cdef const char* costs
        cdef const unsigned char[::1] separable
        if T == 0:
            return
        self._check(m, k, q)
        check_shape("mixture", mixture, T)
        check_shape("out", out, self.n_rows, q)
        reduced, separable = reduce_costs(
            np.asarray(Ls).reshape(T * m, k, q), self.single)
        costs, stride = <const char*> <size_t> reduced.ctypes.data, reduced.strides[0]
        for b in prange(n_blocks, nogil=True, num_threads=threads, schedule="static"):
            self._mix_block(b, T, m, q, costs, stride, &separable[0], mixture, out)

    cdef void _mix_block(
            self, Py_ssize_t b, Py_ssize_t T, Py_ssize_t m, Py_ssize_t q,
            const char* costs, Py_ssize_t stride, const unsigned char* separable,
            const double[::1] mixture, double[:, ::1] out) noexcept nogil:
        cdef int32_t[BLOCK_ROWS] chosen
        cdef const Py_ssize_t* rows = &self.order[self.first[b]]
        cdef Py_ssize_t t, r
        cdef plugin_block block
        cdef double weight
        cdef double* shares = &out[0, 0]
        for t in range(T):
            block = self._block(
                b, q, costs + t * m * stride, stride, separable + t * m)
            block_choices(&block, chosen)
            weight = mixture[t]
            for r in range(block.rows):
                shares[rows[r] * q + chosen[r]] += weight
