"""The relaxation of labels with pairwise potentials, by maximum flow.

Over indicators Y in {0, 1}^k, Σ_l q_l Y_l + Σ_e J_e Y_l Y_m is hard to maximise as soon
as some J_e are negative. Its relaxation over the local polytope,

    max Σ_l q_l μ_l + Σ_e J_e p_e   over   max(0, μ_l + μ_m - 1) <= p_e <= min(μ_l, μ_m),

has a solution of entries 0, 1/2 and 1. It is a minimum cut of a graph with two nodes
per label, one for Y_l and one for 1 - Y_l, that are bound to be opposite only in the
end: roof duality (Hammer, Hansen and Simeone, 1984), in the form of Boros and Hammer
(2002). With a_l = q_l + Σ_{e at l} J_e / 2 the objective is, up to a constant,

    Σ_l a_l Y_l - Σ_e |J_e| / 2 · [Y_l differs from Y_m]      (from 1 - Y_m for J_e < 0),

so that an arc and its reverse have the same capacity, and a node either a supply or a
demand. Labels of weight 0 or 1 have that value in every best labeling: persistency.

The flow is found by Dinic's algorithm. Capacities become exactly zero when they are
used up, so that it ends whatever rounding does.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_floats, check_indices

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport fabs, fmax, fmin

from sklearn_structsvm._contract._oracle cimport CHUNK

# A label is flipped only for a gain beyond the rounding of sums, relative to the largest
# one that can occur, so that no two flips undo each other.
cdef double ROUNDING = 1e-13


# A flow under construction: `capacity` of side * n_slots + slot is what is left.
cdef struct Flow:
    const Graph* graph
    const double* J
    double* supply
    double* capacity
    Py_ssize_t* level
    Py_ssize_t* current
    Py_ssize_t* queue
    Py_ssize_t last_level


cdef void attach(
        Flow* flow, const Graph* graph, double* reals, Py_ssize_t* integers
        ) noexcept nogil:
    flow.graph = graph
    flow.supply = reals
    flow.capacity = reals + 2 * graph.k
    flow.level = integers
    flow.current = integers + 2 * graph.k
    flow.queue = integers + 4 * graph.k


cdef void prepare(
        Flow* flow, const double* q, const double* J) noexcept nogil:
    cdef const Graph* graph = flow.graph
    cdef Py_ssize_t k = graph.k, j, slot
    cdef double total
    flow.J = J
    for j in range(k):
        total = q[j]
        for slot in range(graph.first[j], graph.first[j + 1]):
            total += 0.5 * J[graph.pair[slot]]
            flow.capacity[slot] = 0.5 * fabs(J[graph.pair[slot]])
            flow.capacity[graph.n_slots + slot] = flow.capacity[slot]
        flow.supply[j] = total
        flow.supply[k + j] = -total


cdef bint find_levels(Flow* flow) noexcept nogil:
    """Distances from supplies; whether there is a demand at one of them."""
    cdef const Graph* graph = flow.graph
    cdef Py_ssize_t k = graph.k, head = 0, tail = 0, v, u, slot, side, label
    flow.last_level = -1
    for v in range(2 * k):
        flow.level[v] = -1
        if flow.supply[v] > 0.0:
            flow.level[v] = 0
            flow.queue[tail] = v
            tail += 1
    while head < tail:
        v = flow.queue[head]
        head += 1
        if flow.level[v] == flow.last_level:
            break
        side = v // k
        label = v - side * k
        for slot in range(graph.first[label], graph.first[label + 1]):
            if flow.capacity[side * graph.n_slots + slot] > 0.0:
                u = (side ^ (flow.J[graph.pair[slot]] < 0.0)) * k + graph.other[slot]
                if flow.level[u] < 0:
                    flow.level[u] = flow.level[v] + 1
                    flow.queue[tail] = u
                    tail += 1
                    if flow.supply[u] < 0.0:
                        flow.last_level = flow.level[u]
    return flow.last_level >= 0


cdef double push(Flow* flow, Py_ssize_t v, double amount) noexcept nogil:
    """Send up to `amount` on from v to demands; what of it was sent."""
    cdef const Graph* graph = flow.graph
    cdef Py_ssize_t k = graph.k, side = v // k, label = v - side * k, to, u, at, slot
    cdef double left = amount, sent
    if flow.level[v] == flow.last_level:
        if flow.supply[v] < 0.0:
            sent = fmin(amount, -flow.supply[v])
            flow.supply[v] += sent
            return sent
        return 0.0
    while flow.current[v] < graph.first[label + 1]:
        slot = flow.current[v]
        at = side * graph.n_slots + slot
        if flow.capacity[at] > 0.0:
            to = side ^ (flow.J[graph.pair[slot]] < 0.0)
            u = to * k + graph.other[slot]
            if flow.level[u] == flow.level[v] + 1:
                sent = push(flow, u, fmin(left, flow.capacity[at]))
                if sent > 0.0:
                    flow.capacity[at] -= sent
                    flow.capacity[to * graph.n_slots + graph.reverse[slot]] += sent
                    if sent == left:
                        return amount
                    left -= sent
        flow.current[v] += 1
    return amount - left


cdef void cut(
        Flow* flow, const double* q, const double* J, double* mu) noexcept nogil:
    """mu: the weights of the labels in a best point of the relaxation."""
    cdef Py_ssize_t k = flow.graph.k, v, j
    prepare(flow, q, J)
    while find_levels(flow):
        for v in range(2 * k):
            flow.current[v] = flow.graph.first[v % k]
        for v in range(2 * k):
            if flow.supply[v] > 0.0 and flow.level[v] == 0:
                flow.supply[v] -= push(flow, v, flow.supply[v])
    # Nodes that supplies still reach are 1.
    for j in range(k):
        mu[j] = 0.5 * ((flow.level[j] >= 0) + (flow.level[k + j] < 0))


cdef void round_off(
        const Graph* graph, const double* q, const double* J, const double* mu,
        double* labels, double* gains) noexcept nogil:
    """Labels of weight 1, then single flips while one of them gains.

    gains[l] is what label l adds to the score beside the other labels.
    """
    cdef Py_ssize_t k = graph.k, j, slot, best
    cdef double gain, highest, size = 0.0
    for j in range(k):
        labels[j] = mu[j] == 1.0
    for j in range(k):
        gains[j] = q[j]
        gain = fabs(q[j])
        for slot in range(graph.first[j], graph.first[j + 1]):
            gains[j] += J[graph.pair[slot]] * labels[graph.other[slot]]
            gain += fabs(J[graph.pair[slot]])
        size = fmax(size, gain)
    while True:
        best = -1
        highest = ROUNDING * size
        for j in range(k):
            gain = -gains[j] if labels[j] else gains[j]
            if gain > highest:
                highest = gain
                best = j
        if best < 0:
            return
        labels[best] = 1.0 - labels[best]
        for slot in range(graph.first[best], graph.first[best + 1]):
            gains[graph.other[slot]] += (
                (2.0 * labels[best] - 1.0) * J[graph.pair[slot]])


cdef class RoofDuality:
    """The relaxation for k labels and given pairs of them.

    Parameters
    ----------
    k : int
    pairs : array-like of shape (m, 2)
        Labels, in [0, k).
    """

    def __init__(self, Py_ssize_t k, pairs):
        pairs = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        check_indices("pairs", pairs, k)
        m = len(pairs)
        ends = pairs.ravel(order="F")
        order = np.argsort(ends, kind="stable")
        place = np.empty(2 * m, dtype=np.intp)
        place[order] = np.arange(2 * m)
        mates = (np.arange(2 * m) + m) % max(2 * m, 1)
        self.k = k
        self.n_reals = 2 * k + 4 * m
        self.n_integers = 6 * k
        self.pairs = pairs
        self.first = np.searchsorted(ends[order], np.arange(k + 1)).astype(np.intp)
        # One more, so that each has an address.
        self.other = np.append(ends[mates][order], 0)
        self.reverse = np.append(place[mates][order], 0)
        self.pair = np.append(order % max(m, 1), 0)
        self.graph.k = k
        self.graph.n_slots = 2 * m
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
        cdef double[::1] reals = np.empty(self.n_reals)
        cdef Py_ssize_t[::1] integers = np.empty(self.n_integers, dtype=np.intp)
        result = np.empty(self.k + pairwise.shape[0])
        cdef double[::1] z = result
        with nogil:
            self.solve(&single[0], &pairwise[0] if pairwise.shape[0] else NULL,
                       &reals[0], &integers[0], &z[0])
        return result

    cdef void solve(
            self, const double* q, const double* J, double* reals, Py_ssize_t* integers,
            double* z) noexcept nogil:
        """What `maximize` says, into z."""
        cdef Py_ssize_t e, left, right
        cdef Flow flow
        attach(&flow, &self.graph, reals, integers)
        cut(&flow, q, J, z)
        for e in range(self.pairs.shape[0]):
            left, right = self.pairs[e, 0], self.pairs[e, 1]
            if J[e] > 0.0:
                z[self.k + e] = fmin(z[left], z[right])
            else:
                z[self.k + e] = fmax(z[left] + z[right] - 1.0, 0.0)

    def decode_all(self, q, J, int n_threads=1):
        """Labels of high score for each row of q.

        Those that the relaxation settles are the best; the others are absent at first,
        and then single labels are flipped while one of them gains.

        Parameters
        ----------
        q : array-like of shape (n, k)
        J : array-like of shape (m,)
        n_threads : int

        Returns
        -------
        labels : ndarray of shape (n, k)
        gains : ndarray of shape (n, k)
            What each label adds to the score beside the other labels. Those present do
            not lower it, and those absent would not raise it.
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
        cdef double[:, ::1] reals = np.empty((n_threads, self.n_reals))
        cdef Py_ssize_t[:, ::1] integers = np.empty(
            (n_threads, self.n_integers), dtype=np.intp)
        cdef const double* J_at = &pairwise[0] if pairwise.shape[0] else NULL
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            stop = min(first + CHUNK, n)
            for i in prange(
                    first, stop, nogil=True, num_threads=n_threads, schedule="static"):
                t = threadid()
                self.decode(
                    &single[i, 0], J_at, &reals[t, 0], &integers[t, 0], &mu[t, 0],
                    &labels_out[i, 0], &gains_out[i, 0])
        return labels, gains

    cdef void decode(
            self, const double* q, const double* J, double* reals, Py_ssize_t* integers,
            double* mu, double* labels, double* gains) noexcept nogil:
        """What `decode_all` says, of one row."""
        cdef Flow flow
        attach(&flow, &self.graph, reals, integers)
        cut(&flow, q, J, mu)
        round_off(&self.graph, q, J, mu, labels, gains)

    def _checked(self, values, Py_ssize_t n):
        return as_floats("potentials", values, n)
