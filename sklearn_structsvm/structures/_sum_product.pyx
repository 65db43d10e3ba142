"""Sums over the labelings of a forest: log-partition function and marginals.

With the score f(y) = Σ_v theta[v, y_v] + Σ_v edge[y_v, y_parent(v)], a labeling has the
probability exp(f(y)) / Z. Messages go up from the leaves,

    m_v(c)   = exp(theta[v, c]) Π_{children u} s_u(c),
    s_v(q)   = Σ_c m_v(c) exp(edge[c, q]),

and probabilities b_v of the nodes come down from the roots, where b_v = m_v, with

    r_v(q)   = b_p(q) / s_v(q),     p = parent(v),
    b_v(c)   = m_v(c) Σ_q exp(edge[c, q]) r_v(q),

so that m_v(c) exp(edge[c, q]) r_v(q) is the probability of the pair (c, q).

Each m_v is divided by its sum, whose logarithm is added to log Z, so that no number grows
with the length of a chain. If the scores of each node's labels are within MAX_SPREAD of
each other, and those of pairs as well, no entry of a message underflows: it is at least
exp(-2 MAX_SPREAD) / k of the largest. (In a tree, where many children add up, entries may
underflow. The nodes above can make up for a factor of at most exp(MAX_SPREAD), so that
nothing relevant is lost.) All other forests are summed in the logarithmic domain. That
takes an exponential for each pair of labels that matters, and few do if scores are far
apart.

In a chain, each edge may have scores of its own (see `edge_stride`). Chains whose edges
share them, in which all labels are possible, and whose scores are within MAX_SPREAD over
all nodes, are summed by `_chain_marginals.h`, which takes less than half as long.

The scores of labels may be below BARRED, such as -inf, and pairs may be forbidden. That
makes labelings impossible: their probabilities are exactly zero. Later nodes can then
depend on a label no matter how improbable it was. So the logarithmic domain is also used
if a message has an entry below LEAST, unless all terms of the entry are zero, or if a
node of a tree has an entry below LEAST that is not zero. At least one labeling must be
possible.
"""
from sklearn_structsvm.structures import allowed_labels

from libc.math cimport INFINITY, exp, isfinite, isnan, log
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm

from sklearn_structsvm.structures._forest cimport (
    Forest, edge_of, fill, parent_of)


cdef extern from "structures/_sum_product.h" nogil:
    void vector_exp(
        Py_ssize_t k, const double* x, double shift, double* out) noexcept
    void vector_range(
        Py_ssize_t k, const double* x, double* lowest, double* highest) noexcept
    void vector_multiply(Py_ssize_t n, const double* x, double* out) noexcept
    double vector_multiply_normalized(
        Py_ssize_t k, const double* x, double* out) noexcept
    void vector_divide(Py_ssize_t k, const double* x, double* y) noexcept
    void vector_times(
        Py_ssize_t k, const double* x, const double* matrix, double* out) noexcept


cdef extern from "structures/_chain_marginals.h" nogil:
    ctypedef struct chain_sums_t:
        pass

    Py_ssize_t chain_room(Py_ssize_t n, Py_ssize_t k) noexcept
    void chain_lay_out(
        Py_ssize_t n, Py_ssize_t k, double* room, chain_sums_t* sums) noexcept
    double chain_log_sum(
        Py_ssize_t n, Py_ssize_t k, const double* theta, const double* edge,
        double most, const chain_sums_t* sums, double* nodes) noexcept
    void chain_pairs(
        Py_ssize_t n, Py_ssize_t k, const chain_sums_t* sums, double* edges) noexcept


# The largest spread of scores for sums without logarithms. exp(-2 * 300) is a normal
# number, and so are its products with k and 1 / k.
cdef double MAX_SPREAD = 300.0

# Labels with lower scores are impossible. This is half of what `allowed_labels` adds to
# the scores of such labels.
cdef double BARRED = -0.5 * allowed_labels.BARRED

# Terms whose logarithms are this far below the largest do not change a sum, even if there
# are as many of them as labels.
cdef double NOTHING = -45.0

# If no pair is impossible, no entry of a message is smaller. Its product with
# exp(-MAX_SPREAD), which a score of a node may be, is a normal number.
cdef double LEAST = 1e-131


cdef Py_ssize_t sum_room(Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Doubles that `sum_product` needs for a forest of n nodes: two rows a node."""
    return max(2 * n * k + 2 * k * k + k, chain_room(n, k))


cdef inline double maximum(Py_ssize_t n, const double* x) noexcept nogil:
    cdef double lowest, highest
    vector_range(n, x, &lowest, &highest)
    return highest


cdef inline void add_to_sum(double term, double* total, double* rest) noexcept nogil:
    """total += term, with its rounding error in `rest`: there may be a million terms."""
    cdef double found = total[0] + term
    cdef double added = found - total[0]
    if isfinite(found):
        rest[0] += (total[0] - (found - added)) + (term - added)
    total[0] = found


cdef double log_sum_exp(Py_ssize_t n, const double* x) noexcept nogil:
    cdef Py_ssize_t j
    cdef double highest = maximum(n, x), total = 0.0
    if highest == -INFINITY:
        return highest
    for j in range(n):
        if x[j] - highest > NOTHING:
            total += exp(x[j] - highest)
    return highest + log(total)


cdef bint is_narrow(Py_ssize_t n, const double* x, double* highest) noexcept nogil:
    """Whether scores are within MAX_SPREAD of each other; also finds the highest."""
    cdef Py_ssize_t j
    cdef double lowest
    vector_range(n, x, &lowest, highest)
    if lowest < BARRED:
        lowest = highest[0]
        for j in range(n):
            lowest = x[j] if x[j] >= BARRED and x[j] < lowest else lowest
    return highest[0] - lowest <= MAX_SPREAD


cdef bint is_lost(
        Py_ssize_t k, const double* row, const double* factor, const double* message,
        bint* has_zeros) noexcept nogil:
    """Whether a message has an entry that is too small, although it has nonzero terms."""
    cdef Py_ssize_t p, q
    cdef double lowest, highest
    vector_range(k, message, &lowest, &highest)
    if lowest >= LEAST:
        return False
    has_zeros[0] = True
    for q in range(k):
        if message[q] >= LEAST:
            continue
        if message[q] > 0.0:
            return True
        for p in range(k):
            if row[p] > 0.0 and factor[p * k + q] > 0.0:
                return True
    return False


cdef bint is_small(Py_ssize_t k, const double* row, double highest) noexcept nogil:
    """Whether an entry other than -inf is more than MAX_SPREAD below the highest."""
    cdef Py_ssize_t c
    for c in range(k):
        if row[c] > -INFINITY and row[c] - highest < -MAX_SPREAD:
            return True
    return False


cdef double sum_nodes(const Forest* forest, double* room, double* nodes) noexcept nogil:
    """Same as `sum_product`, without edges."""
    cdef Py_ssize_t v, k = forest.k
    cdef const double* theta
    cdef double* row
    cdef double highest, total = 0.0, rest = 0.0
    for v in range(forest.n):
        theta = forest.theta + v * k
        row = room if nodes == NULL else nodes + v * k
        highest = maximum(k, theta)
        vector_exp(k, theta, highest, row)
        highest += log(vector_multiply_normalized(k, NULL, row))
        add_to_sum(highest, &total, &rest)
    return total + rest


cdef inline Py_ssize_t n_tables(const Forest* forest) noexcept nogil:
    """Tables of scores of pairs: one, or one for each edge of a chain."""
    return 1 if forest.edge_stride == 0 else forest.n - 1


cdef const double* masked_edge(
        const Forest* forest, Py_ssize_t v, const double* allowed_pairs, double* masked
        ) noexcept nogil:
    """The scores of the pairs at the edge of v; -inf for those that are forbidden."""
    cdef const double* edge = edge_of(forest, v)
    cdef Py_ssize_t c
    if allowed_pairs == NULL:
        return edge
    for c in range(forest.k * forest.k):
        masked[c] = edge[c] if allowed_pairs[c] != 0.0 else -INFINITY
    return masked


cdef bint edge_factor(
        const Forest* forest, Py_ssize_t v, const double* allowed_pairs, double* factor,
        double* highest) noexcept nogil:
    """Write the exponentials of these scores; false if they are too far apart."""
    cdef Py_ssize_t size = forest.k * forest.k
    if not is_narrow(size, edge_of(forest, v), highest):
        return False
    vector_exp(size, edge_of(forest, v), highest[0], factor)
    if allowed_pairs != NULL:
        vector_multiply(size, allowed_pairs, factor)
    return True


cdef void transpose_factor(
        Py_ssize_t k, const double* factor, double* transposed) noexcept nogil:
    cdef Py_ssize_t v, c
    for v in range(k):
        for c in range(k):
            transposed[c * k + v] = factor[v * k + c]


cdef double sum_logarithms(
        const Forest* forest, const double* allowed_pairs, double* room, double* nodes,
        double* edges) noexcept nogil:
    """Same as `sum_product`, in the logarithmic domain."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, p, c, q
    cdef const double* edge
    # log m_v and log s_v.
    cdef double* up = room
    cdef double* message = up + n * k
    cdef double* row = message + n * k
    cdef double* masked = row + k
    cdef double* own = edges
    cdef double total = 0.0, rest = 0.0, value
    memcpy(up, forest.theta, n * k * sizeof(double))
    for v in range(n):
        p = parent_of(forest, v)
        value = log_sum_exp(k, up + v * k)
        add_to_sum(value, &total, &rest)
        for c in range(k):
            up[v * k + c] -= value
        if p == n:
            continue
        edge = masked_edge(forest, v, allowed_pairs, masked)
        for q in range(k):
            for c in range(k):
                row[c] = up[v * k + c] + edge[c * k + q]
            message[v * k + q] = log_sum_exp(k, row)
            up[p * k + q] += message[v * k + q]
    if nodes == NULL:
        return total + rest
    if edges != NULL:
        memset(edges, 0, n_tables(forest) * k * k * sizeof(double))
    for v in range(n - 1, -1, -1):
        p = parent_of(forest, v)
        if p == n:
            for c in range(k):
                nodes[v * k + c] = exp(up[v * k + c])
            vector_multiply_normalized(k, NULL, nodes + v * k)
            continue
        edge = masked_edge(forest, v, allowed_pairs, masked)
        if edges != NULL:
            own = edges + v * forest.edge_stride
        # Given the parent's label, probabilities sum to one in spite of rounding.
        fill(k, 0.0, nodes + v * k)
        for q in range(k):
            if nodes[p * k + q] == 0.0:
                continue
            for c in range(k):
                row[c] = up[v * k + c] + edge[c * k + q]
            vector_exp(k, row, maximum(k, row), row)
            vector_multiply_normalized(k, NULL, row)
            for c in range(k):
                value = nodes[p * k + q] * row[c]
                nodes[v * k + c] += value
                if edges != NULL:
                    own[c * k + q] += value
    return total + rest


cdef double sum_chain(
        const Forest* forest, double* room, double* nodes, double* edges
        ) noexcept nogil:
    """Same as `sum_product`, for a chain; NaN if scores are too far apart."""
    cdef double total
    cdef chain_sums_t sums
    chain_lay_out(forest.n, forest.k, room, &sums)
    total = chain_log_sum(
        forest.n, forest.k, forest.theta, forest.edge, MAX_SPREAD, &sums, nodes)
    if edges != NULL and not isnan(total):
        chain_pairs(forest.n, forest.k, &sums, edges)
    return total


cdef double sum_product(
        const Forest* forest, const double* allowed_pairs, double* room, double* nodes,
        double* edges) noexcept nogil:
    """log Z of a forest, and its marginals.

    Parameters
    ----------
    forest : Forest
        The edges share one table of scores (`edge_stride` is 0) or, in a chain, have one
        each. Costs are ignored.
    allowed_pairs : k x k doubles, or NULL if all are allowed
        0 for the pairs of labels that are forbidden, and 1 for the others.
    room : `sum_room` doubles
    nodes : n x k doubles, or NULL if only log Z is needed
        Set to the probabilities of the labels of each node.
    edges : k x k doubles, or for each edge of a chain if it has its own scores, or NULL
        Set to the expected number of each pair of labels of a child and its parent.
    """
    cdef Py_ssize_t n = forest.n, k = forest.k, v, p, c, q
    cdef double* up = room
    cdef double* message = up + n * k
    cdef double* factor = message + n * k
    cdef double* transposed = factor + k * k
    cdef double* row
    cdef const double* before
    cdef double total = 0.0, rest = 0.0, highest, widest, one = 1.0, zero = 0.0
    cdef int m = <int> k, inner = <int> n
    cdef bint has_zeros = False, is_shared = forest.edge_stride == 0
    if forest.edge == NULL:
        if edges != NULL:
            memset(edges, 0, k * k * sizeof(double))
        return sum_nodes(forest, room, nodes)
    if forest.parent == NULL and allowed_pairs == NULL and is_shared:
        total = sum_chain(forest, room, nodes, edges)
        if not isnan(total):
            return total
        total = 0.0
    if is_shared and not edge_factor(forest, 0, allowed_pairs, factor, &widest):
        return sum_logarithms(forest, allowed_pairs, room, nodes, edges)
    if forest.parent != NULL:
        memcpy(up, forest.theta, n * k * sizeof(double))
    for v in range(n):
        row = up + v * k
        p = parent_of(forest, v)
        before = NULL
        if forest.parent == NULL:
            if not is_narrow(k, forest.theta + v * k, &highest):
                return sum_logarithms(forest, allowed_pairs, room, nodes, edges)
            vector_exp(k, forest.theta + v * k, highest, row)
            if v > 0:
                before = message + (v - 1) * k
        else:
            highest = maximum(k, row)
            if allowed_pairs != NULL and is_small(k, row, highest):
                return sum_logarithms(forest, allowed_pairs, room, nodes, edges)
            vector_exp(k, row, highest, row)
        highest += log(vector_multiply_normalized(k, before, row))
        add_to_sum(highest, &total, &rest)
        if p == n:
            continue
        if not is_shared and not edge_factor(forest, v, allowed_pairs, factor, &widest):
            return sum_logarithms(forest, allowed_pairs, room, nodes, edges)
        vector_times(k, row, factor, message + v * k)
        add_to_sum(widest, &total, &rest)
        if allowed_pairs != NULL and is_lost(
                k, row, factor, message + v * k, &has_zeros):
            return sum_logarithms(forest, allowed_pairs, room, nodes, edges)
        if forest.parent != NULL:
            for c in range(k):
                up[p * k + c] += log(message[v * k + c])
    total += rest
    if nodes == NULL:
        return total
    if is_shared:
        transpose_factor(k, factor, transposed)
    for v in range(n - 1, -1, -1):
        row = nodes + v * k
        p = parent_of(forest, v)
        if p == n:
            memcpy(row, up + v * k, k * sizeof(double))
            fill(k, 0.0, message + v * k)
            continue
        if not is_shared:
            edge_factor(forest, v, allowed_pairs, factor, &widest)
            transpose_factor(k, factor, transposed)
        if has_zeros:
            # Where a message is zero, so is the numerator.
            for c in range(k):
                if message[v * k + c] == 0.0:
                    message[v * k + c] = 1.0
        vector_divide(k, nodes + p * k, message + v * k)
        vector_times(k, message + v * k, transposed, row)
        vector_multiply_normalized(k, up + v * k, row)
        for c in range(0 if is_shared or edges == NULL else k):
            for q in range(k):
                edges[v * k * k + c * k + q] = (
                    up[v * k + c] * factor[c * k + q] * message[v * k + q])
    if edges != NULL and is_shared:
        # Row-major C = UᵀR is column-major Cᵀ = RᵀU to BLAS.
        dgemm("N", "T", &m, &m, &inner, &one, message, &m, up, &m, &zero, edges, &m)
        for c in range(k * k):
            edges[c] *= factor[c]
    return total
