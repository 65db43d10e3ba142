from sklearn_structsvm._contract._oracle cimport BlockOracle, Plane
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets


# A search in progress, and what it has found.
cdef struct Search:
    Py_ssize_t i
    double one
    double* work
    # G = max g, which a search among candidates finds by itself.
    double max_loss
    # The best labeling so far, as in `BlockOracle.evaluate`, and its h g.
    int* labels
    double score
    double loss
    double value
    # An upper bound on the largest h g of all labelings.
    double bound
    # An upper bound on the largest h + λ g for the λ of the last query.
    double highest
    Py_ssize_t n_queries
    # A labeling just queried: its content, or its place in `plane`.
    int* queried
    bint on_plane
    Plane plane


cdef double begin_at(const Search* search) noexcept nogil


cdef class SlackSearch:
    cdef readonly BlockOracle oracle
    cdef readonly double rtol
    cdef readonly Py_ssize_t max_queries
    cdef public list trace
    cdef ActiveSets known
    cdef int kind

    cdef int find(self, Search* search, double lam, double slack) except -1 nogil
    cdef bint _scans_candidates(self) noexcept nogil
    cdef int _exact(self, Search* search) except -1 nogil
    cdef int _angular(self, Search* search, double lam) except -1 nogil
    cdef int _bisecting(self, Search* search, double lam) except -1 nogil
    cdef int _binary(self, Search* search) except -1 nogil
    cdef int _sarawagi(self, Search* search, double slack) except -1 nogil
    cdef double _slack_bound(
        self, Search* search, double lam, double slack) except? -1 nogil
    cdef int _ask(
        self, Search* search, double lam, double* h, double* g) except -1 nogil
    cdef bint _ask_within(
        self, Search* search, double lam, double alpha, double beta,
        bint strict_alpha, double* h, double* g) except? -1 nogil
    cdef int _read_plane(self, Search* search) except -1 nogil
    cdef int _consider(self, Search* search, double score, double loss) except -1 nogil
    cdef int _drop(self, Search* search, const int* labels) except -1 nogil
    cdef bint _is_done(self, const Search* search) noexcept nogil
