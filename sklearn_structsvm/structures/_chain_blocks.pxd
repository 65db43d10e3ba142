from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm.structures._edge_sums cimport EdgeSums, Table

# With this few labels, the entries that labelings touch are not listed: processing all
# entries takes no longer.
cdef enum:
    FEW_LABELS = 8


cdef class ChainBlocks(BlockOracle):
    cdef Features features
    cdef const Py_ssize_t[::1] offsets
    cdef const int[::1] y
    # The row of `costs` for each position: its label, unless others were given.
    cdef const int[::1] cost_rows
    cdef const double[:, ::1] costs
    cdef Py_ssize_t k
    cdef bint has_bias, has_first, has_last, has_transition, normalize
    # Places of the parts in w (if they are present) and in `work`.
    cdef Py_ssize_t bias_at, first_at, last_at, transition_at, table_at, soft_at, sums_at
    cdef Py_ssize_t pairs_at, rows_at, read_at
    # Whether the pairs of `forest` are the transpose of those in the weights.
    cdef bint is_flipped
    # Places of the parts in a direction: nodes at 0, then these.
    cdef Py_ssize_t edges_at, sum_at, product_at, outer_at
    cdef Py_ssize_t nodes_room_at, edges_room_at, flag_at
    cdef const double[::1] grams
    cdef const Py_ssize_t[::1] gram_at
    # Whether `allowed` forbids anything, and whether it forbids labels at the ends.
    # `forbidden` is 1 for what it forbids, previous label first; the last row is the
    # beginning and the last column the end. In a tree, the child's label comes before its
    # parent's, leaves are beginnings and roots are ends.
    cdef bint has_forbidden, has_forbidden_ends
    cdef const double[:, ::1] forbidden
    # 1 for allowed pairs and 0 for the others, and the logarithms of these.
    cdef const double[:, ::1] allowed_pairs, log_allowed
    cdef double[::1] log_counts
    # Places of the masked potentials in `work`: for maxima and sums, and for a front.
    cdef Py_ssize_t masked_at, front_at
    cdef double[:, ::1] nodes
    cdef EdgeSums edges
    cdef const double[::1] no_edges

    cdef int bind(
        self, Features features, const Py_ssize_t[::1] offsets, const int[::1] y,
        const double[:, ::1] costs, bint bias, bint first, bint last, bint transition,
        bint normalize, allowed, cost_rows) except -1
    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) noexcept nogil
    cdef void set_pairs(self, double* work, const double* pairs) noexcept nogil
    cdef const double* pairs(self, const double* work) noexcept nogil
    cdef Table node_table(self, double* out) noexcept nogil
    cdef Table edge_table(self, double* out) noexcept nogil
    cdef void add_atoms(
        self, Py_ssize_t i, Py_ssize_t n, const double* a, const int* s,
        double* out) noexcept nogil
    cdef void add_nodes(
        self, Py_ssize_t i, Py_ssize_t n, const Py_ssize_t* moved, const double* a,
        const int* s, const Table* nodes) noexcept nogil
    cdef int complete(
        self, Py_ssize_t i, double* out, double* squared_norm) except -1 nogil
    cdef void add_place_biases(
        self, Py_ssize_t last, double coef, const double* direction, const Table* nodes,
        double* target) noexcept nogil
    cdef double find_outer(self, Py_ssize_t i, double* out) except -1.0 nogil


cdef void add(Py_ssize_t n, double coef, const double* x, double* y) noexcept nogil
cdef double dot(Py_ssize_t n, const double* x, const double* y) noexcept nogil
