from sklearn_structsvm.structures._qpbo cimport Graph

# How often all labels are typically expanded.
cdef enum:
    EXPANSIONS = 3

# The largest number of rounds, each a forward and a backward sweep of messages.
cdef enum:
    MAX_ROUNDS = 100


# A graph over k labels. Node v scores nodes[v * k + c] with label c. Edge e scores
# edges[e * n_weights + weight_of[a * k + b]] with labels a and b at ends[2 * e] and
# ends[2 * e + 1], or 0 if that entry of weight_of is -1.
cdef struct ScoredGraph:
    Graph graph
    Py_ssize_t k
    Py_ssize_t n_weights
    const int* ends
    const int* weight_of
    const double* nodes
    const double* edges


cdef inline double pair_score(
        const ScoredGraph* scored, Py_ssize_t e, int a, int b) noexcept nogil:
    cdef int place = scored.weight_of[a * scored.k + b]
    return scored.edges[e * scored.n_weights + place] if place >= 0 else 0.0


cdef inline double link(
        const ScoredGraph* scored, Py_ssize_t e, Py_ssize_t v, int c, int d
        ) noexcept nogil:
    """The score of edge e if node v has label c, and its other end label d."""
    if scored.ends[2 * e] == v:
        return pair_score(scored, e, c, d)
    return pair_score(scored, e, d, c)


cdef Py_ssize_t message_scratch_size(
    Py_ssize_t n_nodes, Py_ssize_t n_edges, Py_ssize_t k, Py_ssize_t n_weights
    ) noexcept nogil
cdef double decode_scored(
    const ScoredGraph* scored, bint expands, double* scratch, double* cut,
    int* labels) noexcept nogil
cdef double total_score(const ScoredGraph* scored, const int* labels) noexcept nogil
