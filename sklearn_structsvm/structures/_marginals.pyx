"""Marginals of labelings of a forest, by sum-product from the leaves and back.

The labelings y have the probabilities exp((⟨θ, μ(y)⟩ + unit · L(y)) / temperature) / Z. A
node hands its parent, for each label of that, the logarithm of the sum over all labelings
of what is below; on the way back the marginals of a node are those of its parent times
the probabilities of its labels given the parent's, which sum to one whatever was rounded.

Sums of exponentials are products with the matrix exp(edge / temperature), one exponential
for each label of a node, as long as none of its entries vanishes beside the largest. At
lower temperatures they are taken entry by entry from the largest term down to where terms
are rounding, which by then are few.
"""
from libc.math cimport exp, log
from libc.string cimport memset

from sklearn_structsvm.structures._forest cimport (
    Forest, costs_of, fill, highest_of, parent_of)


cdef extern from "_utils/_vector.h" nogil:
    void vector_add_max_plus(
        Py_ssize_t k, const double* previous, const double* transition,
        double* current) noexcept
    void vector_axpy(Py_ssize_t k, double a, const double* x, double* y) noexcept

# exp(-WIDEST) squared and its inverse are normal numbers.
cdef double WIDEST = 300.0

# Of terms that are smaller than the largest by this factor, as many as there are labels
# do not change the sum.
cdef double ROUNDING = -45.0


cdef Py_ssize_t marginals_room(Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Doubles that `forest_marginals` needs to work with."""
    return 2 * n * k + k * k + k


cdef double forest_marginals(
        const Forest* forest, double unit, double temperature, double* room,
        double* nodes, double* edges) noexcept nogil:
    """log Z; the marginals of the nodes, and summed over edges those of the pairs.

    Parameters
    ----------
    forest : Forest
    unit : double
        What the costs are multiplied by.
    temperature : double
        > 0.
    room : double[marginals_room(n, k)]
    nodes : double[n, k]
    edges : double[k, k]
        The child's label first; not touched where the forest has no edges.
    """
    cdef Py_ssize_t n = forest.n, k = forest.k, v, c
    cdef double* table = room
    cdef double* pairs = room + 2 * n * k
    cdef const double* cost
    cdef double least, most, by = 1.0 / temperature
    for v in range(n):
        cost = costs_of(forest, v)
        for c in range(k):
            table[v * k + c] = (forest.theta[v * k + c] + unit * cost[c]) * by
    if forest.edge == NULL:
        return from_products(forest, 0.0, table, table + n * k, pairs, nodes, edges)
    memset(edges, 0, k * k * sizeof(double))
    least = most = forest.edge[0]
    for c in range(k * k):
        least = min(least, forest.edge[c])
        most = max(most, forest.edge[c])
    if (most - least) * by <= WIDEST:
        for c in range(k * k):
            pairs[c] = exp((forest.edge[c] - most) * by)
        return from_products(
            forest, most * by, table, table + n * k, pairs, nodes, edges)
    for c in range(k * k):
        pairs[c] = forest.edge[c] * by
    return from_largest(forest, table, table + n * k, pairs, nodes, edges)


cdef double root(Py_ssize_t k, double* row, double* marginals) noexcept nogil:
    """log Σ exp(row), which leaves the shares of the labels."""
    cdef Py_ssize_t c
    cdef double top = highest_of(k, row, &c), total = 0.0
    for c in range(k):
        marginals[c] = exp(row[c] - top)
        total += marginals[c]
    for c in range(k):
        marginals[c] /= total
    return top + log(total)


cdef double from_products(
        const Forest* forest, double shift, double* table, double* sums,
        const double* factors, double* nodes, double* edges) noexcept nogil:
    """As above, with factors exp(edge / temperature - shift) in (0, 1]."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, p, c, parent
    cdef double* row
    cdef double* total
    cdef const double* above
    cdef double* share = <double*> factors + k * k
    cdef double top, value, log_z = 0.0
    for v in range(n):
        parent = parent_of(forest, v)
        row = table + v * k
        if parent == n:
            log_z += root(k, row, nodes + v * k)
            continue
        total = sums + v * k
        fill(k, 0.0, total)
        top = highest_of(k, row, &p)
        for p in range(k):
            row[p] = exp(row[p] - top)
            vector_axpy(k, row[p], factors + p * k, total)
        for c in range(k):
            table[parent * k + c] += log(total[c]) + top + shift
    for v in range(n - 1, -1, -1):
        parent = parent_of(forest, v)
        if parent == n:
            continue
        row, total, above = table + v * k, sums + v * k, nodes + parent * k
        for c in range(k):
            share[c] = above[c] / total[c]
        for p in range(k):
            value = 0.0
            for c in range(k):
                value += factors[p * k + c] * share[c]
            nodes[v * k + p] = row[p] * value
            vector_axpy(k, row[p], share, edges + p * k)
    if forest.edge != NULL:
        for c in range(k * k):
            edges[c] *= factors[c]
    return log_z


cdef double from_largest(
        const Forest* forest, double* table, double* messages,
        const double* pairs, double* nodes, double* edges) noexcept nogil:
    """As above, with pairs = edge / temperature that may lie far apart."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, p, c, parent
    cdef const double* row
    cdef const double* above
    cdef double* message
    cdef double* total = <double*> pairs + k * k
    cdef double value, log_z = 0.0
    for v in range(n):
        parent = parent_of(forest, v)
        row = table + v * k
        if parent == n:
            log_z += root(k, table + v * k, nodes + v * k)
            continue
        message = messages + v * k
        fill(k, 0.0, message)
        vector_add_max_plus(k, row, pairs, message)
        fill(k, 0.0, total)
        for p in range(k):
            for c in range(k):
                value = row[p] + pairs[p * k + c] - message[c]
                if value > ROUNDING:
                    total[c] += exp(value)
        for c in range(k):
            message[c] += log(total[c])
            table[parent * k + c] += message[c]
    for v in range(n - 1, -1, -1):
        parent = parent_of(forest, v)
        if parent == n:
            continue
        row, message, above = table + v * k, messages + v * k, nodes + parent * k
        for p in range(k):
            nodes[v * k + p] = 0.0
            for c in range(k):
                value = row[p] + pairs[p * k + c] - message[c]
                if value > ROUNDING and above[c] > 0.0:
                    value = above[c] * exp(value)
                    nodes[v * k + p] += value
                    edges[p * k + c] += value
    return log_z
