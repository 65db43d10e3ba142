"""The relaxation of labels with pairwise potentials, by maximum flow.

Over indicators Y in {0, 1}^k, Σ_l q_l Y_l + Σ_e J_e Y_l Y_m is hard to maximize as soon
as some J_e are negative. Its relaxation over the local polytope,

    max Σ_l q_l μ_l + Σ_e J_e p_e   over   max(0, μ_l + μ_m - 1) <= p_e <= min(μ_l, μ_m),

has a solution of entries 0, 1/2 and 1. It is a minimum cut of a graph with two nodes
per label, one for Y_l and one for 1 - Y_l, which are made opposite only at the
end: roof duality (Hammer, Hansen and Simeone, 1984), in the form of Boros and Hammer
(2002). With a_l = q_l + Σ_{e at l} J_e / 2 the objective is, up to a constant,

    Σ_l a_l Y_l - Σ_e |J_e| / 2 · [Y_l differs from Y_m]      (from 1 - Y_m for J_e < 0),

so that an arc and its reverse have the same capacity, and each node either supplies or
demands. Labels of weight 0 or 1 have that value in every best labeling: persistency.

If no J_e is negative, the two halves of the graph are not connected, and one of them is
enough: its cut is a best labeling, the one with the fewest labels.
"""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import as_floats, check_indices

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport fabs, fmax, fmin

from sklearn_structsvm._contract._oracle cimport CHUNK
from sklearn_structsvm.structures._max_flow cimport (
    Network, find_max_flow, flow_scratch_size, on_source_side)

# A label is flipped only for a gain beyond this share of the largest possible gain, so
# that no two flips undo each other.
cdef double VALUE_ROUNDING = tolerances.VALUE_ROUNDING


def adjacency(Py_ssize_t k, pairs):
    """The pairs of each label, in the layout of `Graph`.

    Parameters
    ----------
    k : int
    pairs : ndarray of shape (m, 2)
        Labels, in [0, k).

    Returns
    -------
    first : ndarray of shape (k + 1,), dtype intc
    other, reverse, pair : ndarray of shape (2 m + 1,), dtype intc
        One entry more than needed, so that each array has an address.
    """
    m = len(pairs)
    ends = np.asarray(pairs).ravel(order="F")
    order = np.argsort(ends, kind="stable")
    place = np.empty(2 * m, dtype=np.intc)
    place[order] = np.arange(2 * m)
    mates = (np.arange(2 * m) + m) % max(2 * m, 1)
    first = np.searchsorted(ends[order], np.arange(k + 1))
    slots = ends[mates][order], place[mates][order], order % max(m, 1)
    return first.astype(np.intc), *(np.append(s, 0).astype(np.intc) for s in slots)


cdef Py_ssize_t roof_scratch_size(
        Py_ssize_t n_labels, Py_ssize_t n_pairs) noexcept nogil:
    """Doubles of scratch memory for `roof`: both halves of the network, and its flow."""
    cdef Py_ssize_t integers = 2 * n_labels + 1 + 8 * n_pairs
    return (2 * n_labels + 4 * n_pairs
            + (integers * sizeof(int) + flow_scratch_size(2 * n_labels)) // 8 + 2)


cdef void roof(
        const Graph* graph, const double* q, const double* J, double* scratch,
        double* mu) noexcept nogil:
    """Set mu to the weights of the labels at a best point of the relaxation."""
    cdef int k = graph.n_labels, n_slots = 2 * graph.n_pairs, j, slot
    cdef bint is_one_half = True
    cdef double* capacity = scratch + 2 * k
    cdef int* integers = <int*> (capacity + 2 * n_slots)
    cdef void* flow
    cdef Network network
    for slot in range(graph.n_pairs):
        is_one_half = is_one_half and J[slot] >= 0.0
    for j in range(k):
        scratch[j] = q[j]
        for slot in range(graph.first[j], graph.first[j + 1]):
            scratch[j] += 0.5 * J[graph.pair[slot]]
            capacity[slot] = 0.5 * fabs(J[graph.pair[slot]])
    network.excess = scratch
    network.capacity = capacity
    if is_one_half:
        flow = integers
        network.n_nodes = k
        network.first = graph.first
        network.head = graph.other
        network.mate = graph.reverse
    else:
        flow = integers + 2 * k + 2 + 4 * n_slots
        double_up(graph, J, scratch, integers)
        network.n_nodes = 2 * k
        network.first = integers
        network.head = integers + 2 * k + 1
        network.mate = network.head + 2 * n_slots
    find_max_flow(&network, flow)
    for j in range(k):
        # Nodes that supplies can still reach are 1.
        mu[j] = on_source_side(flow, j)
        if not is_one_half:
            mu[j] = 0.5 * (mu[j] + (not on_source_side(flow, k + j)))


cdef void double_up(
        const Graph* graph, const double* J, double* excess, int* first) noexcept nogil:
    """Add the second half of the network, and all arcs; those of J < 0 lead across."""
    cdef int k = graph.n_labels, n_slots = 2 * graph.n_pairs, j, slot, side, to
    cdef double* capacity = excess + 2 * k
    cdef int* head = first + 2 * k + 1
    cdef int* mate = head + 2 * n_slots
    for j in range(k):
        excess[k + j] = -excess[j]
        first[j] = graph.first[j]
        first[k + j] = n_slots + graph.first[j]
    first[2 * k] = 2 * n_slots
    for slot in range(n_slots):
        capacity[n_slots + slot] = capacity[slot]
        for side in range(2):
            to = side ^ (J[graph.pair[slot]] < 0.0)
            head[side * n_slots + slot] = to * k + graph.other[slot]
            mate[side * n_slots + slot] = to * n_slots + graph.reverse[slot]


cdef double weight_of_both(double J, double left, double right) noexcept nogil:
    """The best p for the weights of both labels of a pair."""
    return fmin(left, right) if J > 0.0 else fmax(left + right - 1.0, 0.0)


cdef void round_off(
        const Graph* graph, const double* q, const double* J, const double* mu,
        double* labels, double* gains) noexcept nogil:
    """Start from the labels of weight 1, then flip single labels while one gains.

    gains[l] is the contribution of label l to the score, given the other labels.
    """
    cdef int k = graph.n_labels, j, slot
    cdef double gain, sign, least = 0.0
    cdef bint has_gained = True
    for j in range(k):
        labels[j] = mu[j] == 1.0
    for j in range(k):
        gains[j] = q[j]
        gain = fabs(q[j])
        for slot in range(graph.first[j], graph.first[j + 1]):
            gains[j] += J[graph.pair[slot]] * labels[graph.other[slot]]
            gain += fabs(J[graph.pair[slot]])
        least = fmax(least, VALUE_ROUNDING * gain)
    while has_gained:
        has_gained = False
        for j in range(k):
            sign = 1.0 - 2.0 * labels[j]
            if sign * gains[j] > least:
                has_gained = True
                labels[j] = 1.0 - labels[j]
                for slot in range(graph.first[j], graph.first[j + 1]):
                    gains[graph.other[slot]] += sign * J[graph.pair[slot]]


cdef class RoofDuality:
    """The relaxation for k labels and given pairs of them.

    Parameters
    ----------
    k : int
    pairs : array-like of shape (m, 2)
        Labels, in [0, k).
    """

    def __init__(self, Py_ssize_t k, pairs):
        pairs = np.array(pairs, dtype=np.intc).reshape(-1, 2)
        check_indices("pairs", pairs, k)
        self.k = k
        self.scratch_size = roof_scratch_size(k, len(pairs))
        self.pairs = pairs
        self.first, self.other, self.reverse, self.pair = adjacency(k, pairs)
        self.graph.n_labels = <int> k
        self.graph.n_pairs = <int> len(pairs)
        self.graph.first = &self.first[0]
        self.graph.other = &self.other[0]
        self.graph.reverse = &self.reverse[0]
        self.graph.pair = &self.pair[0]

    def __reduce__(self):
        return RoofDuality, (self.k, np.asarray(self.pairs))

    def maximize(self, q, J):
        """A point (μ, p) of the local polytope with the largest q·μ + J·p.

        Parameters
        ----------
        q : array-like of shape (k,)
        J : array-like of shape (m,)

        Returns
        -------
        ndarray of shape (k + m,)
            Of entries 0, 1/2 and 1.
        """
        cdef const double[::1] single = self._checked(q, self.k)
        cdef const double[::1] pairwise = self._checked(J, self.pairs.shape[0])
        cdef double[::1] scratch = np.empty(self.scratch_size)
        result = np.empty(self.k + pairwise.shape[0])
        cdef double[::1] z = result
        with nogil:
            self.solve(&single[0], &pairwise[0] if pairwise.shape[0] else NULL,
                       &scratch[0], &z[0])
        return result

    cdef void solve(
            self, const double* q, const double* J, double* scratch,
            double* z) noexcept nogil:
        """The result of `maximize`, into z."""
        cdef Py_ssize_t e
        roof(&self.graph, q, J, scratch, z)
        for e in range(self.pairs.shape[0]):
            z[self.k + e] = weight_of_both(J[e], z[self.pairs[e, 0]], z[self.pairs[e, 1]])

    def decode_all(self, q, J, int n_threads=1):
        """Labels of high score for each row of q.

        Labels that the relaxation settles are optimal. The others are absent at first;
        then single labels are flipped while one of them gains.

        Parameters
        ----------
        q : array-like of shape (n, k)
        J : array-like of shape (m,)
        n_threads : int

        Returns
        -------
        labels : ndarray of shape (n, k)
        gains : ndarray of shape (n, k)
            What each label adds to the score, given the other labels. Labels that are
            present do not lower it, and labels that are absent would not raise it.
        """
        cdef const double[:, ::1] single = np.ascontiguousarray(q, dtype=np.float64)
        cdef const double[::1] pairwise = self._checked(J, self.pairs.shape[0])
        cdef Py_ssize_t i, first, stop, n = single.shape[0], k = self.k
        cdef int t
        if single.shape[1] != k:
            raise ValueError(f"q must have {k} columns; got {single.shape[1]}.")
        n_threads = max(1, min(n_threads, n))
        labels, gains = np.zeros((n, k)), np.zeros((n, k))
        cdef double[:, ::1] labels_out = labels, gains_out = gains
        cdef double[:, ::1] mu = np.zeros((n_threads, k))
        cdef double[:, ::1] scratch = np.empty((n_threads, self.scratch_size))
        cdef const double* J_at = &pairwise[0] if pairwise.shape[0] else NULL
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            stop = min(first + CHUNK, n)
            for i in prange(
                    first, stop, nogil=True, num_threads=n_threads, schedule="static"):
                t = threadid()
                self.decode(&single[i, 0], J_at, &scratch[t, 0], &mu[t, 0],
                            &labels_out[i, 0], &gains_out[i, 0])
        return labels, gains

    cdef void decode(
            self, const double* q, const double* J, double* scratch,
            double* mu, double* labels, double* gains) noexcept nogil:
        """The result of `decode_all` for one row."""
        roof(&self.graph, q, J, scratch, mu)
        round_off(&self.graph, q, J, mu, labels, gains)

    def _checked(self, values, Py_ssize_t n):
        return as_floats("potentials", values, n)
