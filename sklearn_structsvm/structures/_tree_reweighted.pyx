"""Tree-reweighted sum-product: an upper bound of log Z of any graph, and marginals.

The nodes of a graph have an order in which each node v but the first of a component has
neighbors before it. Draw a random tree that connects each of these nodes to a neighbor
before it: v to u by the edge e = (u, v) with probability ρ_e, where Σ_e ρ_e = 1 over the
edges e that end at v. Labels are summed out from the last node to the first. With

    s_v(b) = theta_v(b) + Σ_{e from v} f_e(b),
    λ_e(b) = ρ_e s_v(b) + δ_e(b),   Σ_{e to v} δ_e = 0,
    f_e(a) = ρ_e log Σ_b exp((theta_e(a, b) + λ_e(b)) / ρ_e),

Hölder's inequality says that Σ_b exp(s_v(b) + Σ_e theta_e(a_e, b)) is at most
exp(Σ_e f_e(a_e)). So D(δ) = Σ log Σ_a exp s_v(a), over the first nodes of components, is
at least log Z for all δ, and equal to it on forests. D is convex and smooth. Its
derivatives are computed from the first nodes down:

    μ_e(a, b) = μ_u(a) q_e(b | a),   q_e(b | a) ~ exp((theta_e(a, b) + λ_e(b)) / ρ_e),
    μ_v = Σ_e ρ_e μ_v^e,             μ_v^e(b) = Σ_a μ_e(a, b).

At the minimum, all μ_v^e of a node are the same. The step ρ_e (log m_v - log μ_v^e), with
the geometric mean m_v, is a descent step, because the slope along it is a sum of
divergences. It takes the place of the gradient in conjugate directions (Polak, Ribière),
which begin anew where the last direction makes the slope worse.

The bound is that of Wainwright, Jaakkola and Willsky, "A new class of upper bounds on the
log partition function", 2005, for these trees. Elimination by Hölder's inequality, with
steps that make marginals match, is weighted mini-bucket elimination: Liu and Ihler,
"Bounding the partition function using Hölder's inequality", ICML 2011.

If the tables μ_e are changed to agree with μ_v, they form a point of the local polytope.
Its score plus H(first nodes) + Σ_e ρ_e H_e(v | u) is at most min D; `slack` is the excess
of D over it.
"""
import numpy as np

from sklearn_structsvm._utils import backtracking, tolerances

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport log
from libc.string cimport memcpy, memset


cdef extern from "structures/_sum_product.h" nogil:
    void vector_exp(
        Py_ssize_t k, const double* x, double shift, double* out) noexcept
    void vector_range(
        Py_ssize_t k, const double* x, double* lowest, double* highest) noexcept
    double vector_multiply_normalized(
        Py_ssize_t k, const double* x, double* out) noexcept


# Smaller probabilities count as this one.
cdef double TINY = tolerances.TINY

# How many graphs are solved between two checks for signals.
cdef enum:
    CHUNK = 64

cdef double SUFFICIENT_DECREASE = backtracking.SUFFICIENT_DECREASE
cdef int MAX_HALVINGS = backtracking.MAX_HALVINGS

# After a step that is not halved, the next one is longer by this factor.
cdef double GROWTH = 1.5


# One graph: see `tree_reweighted`.
cdef struct Graph:
    Py_ssize_t n, m, k
    const int* ends
    const double* rho
    const double* theta
    const double* tables


cdef double log_normalize(Py_ssize_t k, double* x) noexcept nogil:
    """Replace x by exp(x) over its sum; return the logarithm of the sum."""
    cdef double lowest, highest
    vector_range(k, x, &lowest, &highest)
    vector_exp(k, x, highest, x)
    return highest + log(vector_multiply_normalized(k, NULL, x))


cdef double go_up(
        const Graph* graph, const double* delta, double* s, double* q) noexcept nogil:
    """Return D and set q_e; the rows of first nodes in `s` become their probabilities."""
    cdef Py_ssize_t k = graph.k, e = graph.m, v, a, b
    cdef const int* ends = graph.ends
    cdef double rho, total = 0.0
    cdef double* row
    cdef double* own
    cdef const double* table
    memcpy(s, graph.theta, graph.n * k * sizeof(double))
    for v in range(graph.n - 1, -1, -1):
        own = s + v * k
        if e == 0 or ends[2 * e - 1] != v:
            total += log_normalize(k, own)
            continue
        while e > 0 and ends[2 * e - 1] == v:
            e -= 1
            rho = graph.rho[e]
            for a in range(k):
                row = q + (e * k + a) * k
                table = graph.tables + (e * k + a) * k
                for b in range(k):
                    row[b] = own[b] + (table[b] + delta[e * k + b]) / rho
                s[ends[2 * e] * k + a] += rho * log_normalize(k, row)
    return total


cdef void go_down(
        const Graph* graph, double* s, const double* q, double* arriving,
        double* nodes) noexcept nogil:
    """Compute μ_v^e and μ_v."""
    cdef Py_ssize_t k = graph.k, e = 0, v, a, b
    cdef const int* ends = graph.ends
    cdef double share
    for v in range(graph.n):
        if e == graph.m or ends[2 * e + 1] != v:
            memcpy(nodes + v * k, s + v * k, k * sizeof(double))
            continue
        memset(nodes + v * k, 0, k * sizeof(double))
        while e < graph.m and ends[2 * e + 1] == v:
            memset(arriving + e * k, 0, k * sizeof(double))
            for a in range(k):
                share = nodes[ends[2 * e] * k + a]
                for b in range(k):
                    arriving[e * k + b] += share * q[(e * k + a) * k + b]
            for b in range(k):
                nodes[v * k + b] += graph.rho[e] * arriving[e * k + b]
            e += 1


cdef double find_step(
        const Graph* graph, const double* arriving, double* step) noexcept nogil:
    """The step of δ, and how fast D falls along it."""
    cdef Py_ssize_t k = graph.k, first = 0, stop, e, b
    cdef double mean, fall = 0.0
    while first < graph.m:
        stop = first
        while stop < graph.m and graph.ends[2 * stop + 1] == graph.ends[2 * first + 1]:
            stop += 1
        for b in range(k):
            mean = 0.0
            for e in range(first, stop):
                step[e * k + b] = log(max(arriving[e * k + b], TINY))
                mean += graph.rho[e] * step[e * k + b]
            for e in range(first, stop):
                step[e * k + b] = graph.rho[e] * (mean - step[e * k + b])
                fall -= arriving[e * k + b] * step[e * k + b]
        first = stop
    return fall


cdef double plogp(double p) noexcept nogil:
    return p * log(p) if p > 0.0 else 0.0


cdef double value_at_consistent(
        const Graph* graph, const double* q, const double* arriving,
        const double* nodes, double* room, double* pairs, double* entropy
        ) noexcept nogil:
    """The score plus the entropy of a point of the local polytope with these nodes."""
    cdef Py_ssize_t k = graph.k, e = 0, u, v, a, b
    cdef double value = 0.0, own, lack, kept, H = 0.0
    cdef double* rows = room
    cdef double* columns = room + k
    cdef double* table
    for v in range(graph.n):
        own = 0.0
        for b in range(k):
            if nodes[v * k + b] > 0.0:
                value += graph.theta[v * k + b] * nodes[v * k + b]
                own += plogp(nodes[v * k + b])
        if e == graph.m or graph.ends[2 * e + 1] != v:
            H -= own
        while e < graph.m and graph.ends[2 * e + 1] == v:
            u = graph.ends[2 * e]
            table = pairs + e * k * k
            lack = 0.0
            for b in range(k):
                columns[b] = nodes[v * k + b]
            for a in range(k):
                rows[a] = nodes[u * k + a]
                for b in range(k):
                    kept = q[(e * k + a) * k + b] * nodes[u * k + a]
                    if arriving[e * k + b] > nodes[v * k + b]:
                        kept *= nodes[v * k + b] / arriving[e * k + b]
                    table[a * k + b] = kept
                    rows[a] -= kept
                    columns[b] -= kept
                rows[a] = max(rows[a], 0.0)
                lack += rows[a]
            for a in range(k):
                H += graph.rho[e] * plogp(nodes[u * k + a])
                for b in range(k):
                    if lack > 0.0:
                        table[a * k + b] += rows[a] * max(columns[b], 0.0) / lack
                    if table[a * k + b] > 0.0:
                        value += graph.tables[(e * k + a) * k + b] * table[a * k + b]
                        H -= graph.rho[e] * plogp(table[a * k + b])
            e += 1
    entropy[0] = H
    return value + H


cdef void solve(
        const Graph* graph, int max_rounds, double tol, double* delta, double* work,
        double* nodes, double* pairs, double* result) noexcept nogil:
    """Same as `tree_reweighted`, for one graph."""
    cdef Py_ssize_t k = graph.k, size = graph.m * k, e, j, a
    cdef double* s = work
    cdef double* q = s + graph.n * k
    cdef double* arriving = q + size * k
    cdef double* step = arriving + size
    cdef double* trial = step + size
    cdef double* way = trial + size
    cdef double* before = way + size
    cdef double* room = before + size
    cdef double bound = go_up(graph, delta, s, q), other, fall, length = 1.0
    cdef double last = 1.0, share, slope
    cdef int rounds = 0, halvings
    while True:
        go_down(graph, s, q, arriving, nodes)
        if max_rounds == 0:
            for e in range(graph.m):
                for a in range(k):
                    for j in range(k):
                        pairs[(e * k + a) * k + j] = (
                            nodes[graph.ends[2 * e] * k + a] * q[(e * k + a) * k + j])
            result[0] = bound
            return
        result[0] = bound
        result[1] = bound - value_at_consistent(
            graph, q, arriving, nodes, room, pairs, result + 2)
        if result[1] <= tol * graph.n or rounds == max_rounds:
            return
        fall, share, slope = find_step(graph, arriving, step), 0.0, 0.0
        if rounds > 0:
            for j in range(size):
                share += (before[j] - arriving[j]) * step[j] / last
        for j in range(size):
            way[j] = step[j] + (share * way[j] if share > 0.0 else 0.0)
            slope -= arriving[j] * way[j]
        memcpy(before, arriving, size * sizeof(double))
        last = fall
        if slope < fall:
            slope = fall
            memcpy(way, step, size * sizeof(double))
        halvings = 0
        while halvings < MAX_HALVINGS:
            for j in range(size):
                trial[j] = delta[j] + length * way[j]
            other = go_up(graph, trial, s, q)
            if other <= bound - SUFFICIENT_DECREASE * length * slope:
                break
            length *= 0.5
            halvings += 1
        if halvings == MAX_HALVINGS:
            return
        bound = other
        memcpy(delta, trial, size * sizeof(double))
        if halvings == 0:
            length *= GROWTH
        rounds += 1


cdef void solve_one(
        Py_ssize_t n, Py_ssize_t m, Py_ssize_t k, const int* ends, const double* rho,
        const double* theta, const double* tables, int max_rounds, double tol,
        double* delta, double* work, double* nodes, double* pairs, double* result
        ) noexcept nogil:
    cdef Graph graph
    graph.n, graph.m, graph.k = n, m, k
    graph.ends, graph.rho, graph.theta, graph.tables = ends, rho, theta, tables
    solve(&graph, max_rounds, tol, delta, work, nodes, pairs, result)


def tree_reweighted(
        const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] edge_offsets,
        const int[:, ::1] ends, const double[::1] rho, const double[:, ::1] theta,
        const double[:, :, ::1] tables, double[:, ::1] delta, double tol,
        int max_rounds, int n_threads=1):
    """Bounds of log Z of n graphs, and marginals.

    Parameters
    ----------
    offsets : ndarray of shape (n + 1,), dtype intp
        The nodes of graph i, in their order, are rows offsets[i]:offsets[i + 1].
    edge_offsets : ndarray of shape (n + 1,), dtype intp
        Same as `offsets`, for the edges.
    ends : ndarray of shape (n_edges, 2), dtype intc
        u and v > u of each edge, counted from the graph's first node, sorted by v.
    rho : ndarray of shape (n_edges,)
        Summing to 1 over the edges with the same v.
    theta : ndarray of shape (n_nodes, k)
        Scores; -inf for labels that a node may not have, which must not be all.
    tables : ndarray of shape (n_edges, k, k)
        Scores, indexed by the labels of u and v.
    delta : ndarray of shape (n_edges, k)
        The starting point, such as zeros; changed in place.
    tol : float
        A graph of T nodes is solved once its slack is at most T tol.
    max_rounds : int
        0 leaves `delta` as it is.
    n_threads : int

    Returns
    -------
    results : ndarray of shape (n, 3)
        D, the slack and the entropy; D alone if `max_rounds` is 0.
    nodes : ndarray of shape (n_nodes, k)
    pairs : ndarray of shape (n_edges, k, k)
        A point of the local polytope; if `max_rounds` is 0, the derivatives of D.
    """
    cdef Py_ssize_t n = len(offsets) - 1, k = theta.shape[1], i, first, stop
    cdef Py_ssize_t T = np.diff(offsets).max(), m = np.diff(edge_offsets).max()
    n_threads = max(1, min(n_threads, <int> n))
    cdef double[:, ::1] work = np.empty((n_threads, T * k + m * k * (k + 5) + 2 * k))
    nodes, pairs = np.empty_like(theta), np.empty_like(tables)
    results = np.zeros((n, 3))
    cdef double[:, ::1] result = results, mu = nodes
    cdef double[:, :, ::1] edges_out = pairs
    # Without edges there is nothing to point to.
    cdef bint has_edges = tables.shape[0] > 0
    cdef const int* of_ends = &ends[0, 0] if has_edges else NULL
    cdef const double* of_rho = &rho[0] if has_edges else NULL
    cdef const double* of_tables = &tables[0, 0, 0] if has_edges else NULL
    cdef double* of_delta = &delta[0, 0] if has_edges else NULL
    cdef double* of_pairs = &edges_out[0, 0, 0] if has_edges else NULL
    for first in range(0, n, CHUNK):
        PyErr_CheckSignals()
        stop = min(first + CHUNK, n)
        for i in prange(
                first, stop, nogil=True, num_threads=n_threads, schedule="static"):
            solve_one(
                offsets[i + 1] - offsets[i], edge_offsets[i + 1] - edge_offsets[i], k,
                of_ends + 2 * edge_offsets[i], of_rho + edge_offsets[i],
                &theta[0, 0] + offsets[i] * k, of_tables + edge_offsets[i] * k * k,
                max_rounds, tol, of_delta + edge_offsets[i] * k,
                &work[threadid(), 0], &mu[0, 0] + offsets[i] * k,
                of_pairs + edge_offsets[i] * k * k, &result[i, 0])
    return results, nodes, pairs
