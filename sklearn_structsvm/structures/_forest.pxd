# A forest of labeled nodes, children before their parents.
cdef struct Forest:
    Py_ssize_t n
    Py_ssize_t k
    # The parent of each node, or -1. NULL for a chain, where it is the next node.
    const Py_ssize_t* parent
    # Scores of the labels, n x k.
    const double* theta
    # True labels; NULL if all are 0.
    const int* truth
    # Rows of k costs of labels, and the row of each node; NULL if they are in order.
    const double* costs
    const int* cost_rows
    # Scores of the pairs of labels of a child and its parent, the child's first; NULL
    # if there are none. The next node's are `edge_stride` further on; 0 if all are alike.
    const double* edge
    Py_ssize_t edge_stride


cdef inline Py_ssize_t parent_of(const Forest* forest, Py_ssize_t v) noexcept nogil:
    """The parent of v; n, the root above all roots, if v is a root."""
    if forest.edge == NULL:
        return forest.n
    if forest.parent == NULL:
        return v + 1
    return forest.parent[v] if forest.parent[v] >= 0 else forest.n


cdef inline Py_ssize_t true_label(const Forest* forest, Py_ssize_t v) noexcept nogil:
    return 0 if forest.truth == NULL else forest.truth[v]


cdef inline const double* costs_of(const Forest* forest, Py_ssize_t v) noexcept nogil:
    return forest.costs + forest.k * (
        v if forest.cost_rows == NULL else forest.cost_rows[v])


cdef inline const double* edge_of(const Forest* forest, Py_ssize_t v) noexcept nogil:
    return forest.edge + v * forest.edge_stride


cdef inline double true_edge(
        const Forest* forest, Py_ssize_t v, Py_ssize_t parent) noexcept nogil:
    return edge_of(forest, v)[
        true_label(forest, v) * forest.k + true_label(forest, parent)]


cdef inline void fill(Py_ssize_t n, double value, double* x) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        x[j] = value


cdef inline double highest_of(
        Py_ssize_t n, const double* x, Py_ssize_t* place) noexcept nogil:
    cdef Py_ssize_t j
    cdef double highest = x[0]
    place[0] = 0
    for j in range(1, n):
        if x[j] > highest:
            highest = x[j]
            place[0] = j
    return highest
