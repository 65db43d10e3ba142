"""Oracle of a forest whose leaves are labels: messages from the leaves to the roots.

A node is on if one of the leaves below it is, so an inner node that is on has a child
that is on. μ(Y) marks the nodes that are on. Values are differences from the empty
labeling. With θ_n the score of node n, plus λ times its change of the loss if n is a
leaf, d_n is the best value of the subtree of n if n is on,

    d_n = θ_n + Σ_c max(d_c, 0),    or θ_n + max_c d_c if no d_c > 0,

over the children c.

`candidates` replaces that maximum by a front: the labelings of a subtree that no other
exceeds in both score and loss, and that can still be part of a maximizer of h g, with the
margin h = one + score and the loss g. They cannot if the rest of the forest leaves h < 0.
If this test keeps many, a sharper one drops more: h g <= K² / (4 λ) for the largest
K = h + λ g that the rest admits (Choi, Meshi and Srebro 2016, Lemma 5), so labelings are
dropped if their bound is below the h g of a known labeling.
"""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import check_shape, check_starts

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memmove

from sklearn_structsvm._utils._matrix._features cimport Features
from sklearn_structsvm._contract._oracle cimport (
    CALL, Plane, reserve_points, reserve_scratch)
from sklearn_structsvm.structures._flat cimport MultilabelOracle

# Above the rounding errors of the sums of all scores, and of all costs, relative to them.
cdef double SUM_ROUNDING = tolerances.SUM_ROUNDING
# With more entries per node of the forest than this, the search for a λ pays.
cdef Py_ssize_t ENTRIES_PER_NODE = 8
# Steps of that search at most. It ends once K² / (4 λ) is this close to a known h g.
cdef int MAX_LAMBDA_STEPS = 10
cdef double TIGHT = 1.01
# The fronts give up beyond this many entries: 128 MB.
cdef Py_ssize_t MAX_ENTRIES = 1 << 22


# A labeling of the subtrees of some children. `part` is the entry of the last of them,
# and `prev` that of the ones before; 0 if all is off.
cdef struct Entry:
    double score
    double loss
    int prev
    int part
    int owner


# Entries, stored one after another; those below `top` stay. New ones have a value
# score + lam * loss of at least `floor`, and losses that differ by more than `tie`.
cdef struct Arena:
    Entry* entries
    Py_ssize_t top
    Py_ssize_t limit
    double lam
    double floor
    double tie


cdef inline Py_ssize_t append_entry(
        const Arena* arena, Py_ssize_t start, Py_ssize_t stop, const Entry* entry
        ) noexcept nogil:
    """Append an entry to a front of falling losses unless inferior; return its end."""
    cdef Entry* entries = arena.entries
    if entry.score + arena.lam * entry.loss < arena.floor:
        return stop
    if stop > start:
        if entry.score <= entries[stop - 1].score:
            return stop
        if entries[stop - 1].loss - entry.loss <= arena.tie:
            stop -= 1
    entries[stop] = entry[0]
    return stop + 1


cdef Py_ssize_t merge_fronts(
        const Arena* arena, Py_ssize_t u, Py_ssize_t u_stop, Py_ssize_t v,
        Py_ssize_t v_stop, int x, bint x_is_part, int owner, Py_ssize_t at
        ) noexcept nogil:
    """Merge front u with front v plus entry x, writing from `at` on; return the end."""
    cdef Entry* entries = arena.entries
    cdef Py_ssize_t stop = at
    cdef Entry entry
    entry.owner = owner
    while u < u_stop or v < v_stop:
        if v < v_stop:
            entry.score = entries[v].score + entries[x].score
            entry.loss = entries[v].loss + entries[x].loss
        if v == v_stop or u < u_stop and (
                entries[u].loss > entry.loss
                or entries[u].loss == entry.loss and entries[u].score >= entry.score):
            stop = append_entry(arena, at, stop, &entries[u])
            u += 1
        else:
            entry.prev = <int> v if x_is_part else x
            entry.part = x if x_is_part else <int> v
            stop = append_entry(arena, at, stop, &entry)
            v += 1
    return stop


cdef bint reserve(Plane* plane, Arena* arena, Py_ssize_t n_entries) except -1 nogil:
    """Make room for this many entries; return False if they are beyond the limit."""
    if n_entries > arena.limit:
        return False
    arena.entries = <Entry*> reserve_scratch(plane, n_entries * sizeof(Entry))
    return True


cdef Py_ssize_t add_child(
        Plane* plane, Arena* arena, Py_ssize_t a, Py_ssize_t a_stop, Py_ssize_t b,
        Py_ssize_t b_stop, int owner) except -1 nogil:
    """Write the front of a, b and their sums at `top`; return its end, 0 past limit."""
    cdef Py_ssize_t top = arena.top, stop = top, end, n, longer
    longer = max(a_stop - a, b_stop - b)
    if not reserve(plane, arena, top + (a_stop - a) + (b_stop - b)):
        return 0
    stop = merge_fronts(arena, a, a_stop, b, b_stop, 0, False, owner, top)
    for n in range(min(a_stop - a, b_stop - b)):
        if not reserve(plane, arena, stop + (stop - top) + longer):
            return 0
        if a_stop - a <= b_stop - b:
            end = merge_fronts(
                arena, top, stop, b, b_stop, <int> (a + n), False, owner, stop)
        else:
            end = merge_fronts(
                arena, top, stop, a, a_stop, <int> (b + n), True, owner, stop)
        memmove(&arena.entries[top], &arena.entries[stop], (end - stop) * sizeof(Entry))
        stop = top + end - stop
    return stop


cdef class HierarchyOracle(MultilabelOracle):
    """Labels are the leaves of a forest; μ(Y) are its nodes that are on.

    Parameters
    ----------
    features : Features
    U : ndarray of shape (n, n_nodes), dtype int8
        Which nodes are on.
    costs : ndarray of shape (n_nodes, 2)
        costs[n, truth]: the cost of leaf n if it is wrong; 0 for inner nodes.
    bias : float
        The constant feature; 0 for none.
    starts, children : ndarray, dtype intp
        ``children[starts[n]:starts[n + 1]]`` are the children of node n, which come after
        n; for n = n_nodes, these are the roots.
    """

    cdef const Py_ssize_t[::1] starts
    cdef const Py_ssize_t[::1] children

    def __init__(self, Features features, const signed char[:, ::1] U,
                 const double[:, ::1] costs, double bias,
                 const Py_ssize_t[::1] starts, const Py_ssize_t[::1] children):
        super().__init__(features, U, costs, bias)
        check_shape("children", children, self.k)
        check_starts("starts", starts, self.k + 1, self.k)
        parents = np.repeat(np.append(np.arange(self.k), -1), np.diff(starts))
        if (np.sort(children) != np.arange(self.k)).any() or (children <= parents).any():
            raise ValueError("children must name each node once, after its parent.")
        self.starts = starts
        self.children = children
        # θ, d, the most that the rest of the forest adds to d, and the ends of fronts.
        self.work_size = 5 * self.k + 2
        # Upward, a node is set up, gets its score or its children's added, and its parent
        # compares it and adds it up. Downward, it is labeled, and compared again.
        self.relative_cost = (CALL + 7 * self.k) / <double> (CALL + self.k)
        self.thread_safe = self.has_candidates = type(self) is HierarchyOracle

    cdef double change(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        """The change of the loss if a leaf is switched on."""
        return -self.costs[n, 1] if self.Y[i, n] else self.costs[n, 0]

    cdef void send_up(
            self, Py_ssize_t i, double lam, const double* theta, double* d
            ) noexcept nogil:
        cdef Py_ssize_t n, j, c
        cdef double best, positive
        for n in range(self.k - 1, -1, -1):
            d[n] = theta[n]
            if self.starts[n] == self.starts[n + 1]:
                d[n] += lam * self.change(i, n)
                continue
            best = -INFINITY
            positive = 0.0
            for j in range(self.starts[n], self.starts[n + 1]):
                c = self.children[j]
                best = max(best, d[c])
                if d[c] > 0.0:
                    positive += d[c]
            d[n] += positive if best > 0.0 else best

    cdef int max_oracle(
            self, Py_ssize_t i, double lam, double* work,
            int* labels, double* score, double* loss) except -1 nogil:
        cdef double* d = work + self.k
        cdef Py_ssize_t n, j, c, best
        cdef bint is_on
        self.send_up(i, lam, work, d)
        for j in range(self.starts[self.k], self.starts[self.k + 1]):
            labels[self.children[j]] = d[self.children[j]] > 0.0
        for n in range(self.k):
            if self.starts[n] == self.starts[n + 1]:
                continue
            is_on = labels[n]
            best = self.children[self.starts[n]]
            for j in range(self.starts[n], self.starts[n + 1]):
                c = self.children[j]
                labels[c] = is_on and d[c] > 0.0
                if d[c] > d[best]:
                    best = c
            labels[best] = is_on
        return self.evaluate(i, work, labels, score, loss)

    cdef int candidates(
            self, Py_ssize_t i, double one, double* work, Plane* plane
            ) except -1 nogil:
        cdef double lam, least
        if self.fronts(i, one, 0.0, 0.0, work, plane, ENTRIES_PER_NODE * self.k):
            return 0
        self.tighten(i, one, work, &lam, &least)
        if not self.fronts(i, one, lam, least, work, plane, MAX_ENTRIES):
            # The labeling that is best for λ, with the bound for all.
            reserve_points(plane, 1)
            plane.count = 1
            self.max_oracle(
                i, lam, work, <int*> plane.scratch, plane.scores, plane.losses)
            least = one + plane.scores[0] + lam * plane.losses[0]
            plane.bound = 0.25 * least / lam * least * (1.0 + SUM_ROUNDING)
        return 0

    cdef void tighten(
            self, Py_ssize_t i, double one, double* work, double* lam, double* least
            ) noexcept nogil:
        """Find λ, and the least h + λ g of a labeling whose h g reaches a known one.

        K² / (4 λ) is smallest at the λ whose labeling has h = λ g. So each labeling's
        h / g is tried next, within a bracket.
        """
        cdef Py_ssize_t k = self.k, n, j
        cdef double* d = work + k
        cdef double* change = d + k
        cdef double low = 0.0, high = INFINITY, at, h, g, empty, truth, value
        cdef double known = 0.0, bound, lowest = INFINITY
        cdef int _step
        truth = empty = at = 0.0
        for n in range(k):
            at += max(self.costs[n, 0], self.costs[n, 1])
            if self.Y[i, n]:
                truth += work[n]
                empty += self.costs[n, 1]
        lam[0] = least[0] = 0.0
        if at == 0.0:
            return
        at = one / at
        for _step in range(MAX_LAMBDA_STEPS):
            self.send_up(i, at, work, d)
            self.loss_changes(i, d, change)
            value = one - truth + at * empty
            g = empty
            for j in range(self.starts[k], self.starts[k + 1]):
                n = self.children[j]
                if d[n] > 0.0:
                    value += d[n]
                    g += change[n]
            h = value - at * g
            bound = 0.25 * value / at * value
            if bound < lowest:
                lowest = bound
                lam[0] = at
            known = max(known, h * g)
            if lowest <= TIGHT * known:
                break
            if h > at * g:
                low = at
            else:
                high = at
            at = h / g if g > 0.0 else INFINITY
            if not low < at < high:
                if high == INFINITY:
                    at = 4.0 * low
                else:
                    at = sqrt(low * high) if low > 0.0 else 0.25 * high
        least[0] = 2.0 * sqrt(lam[0] * known)

    cdef void loss_changes(
            self, Py_ssize_t i, const double* d, double* change) noexcept nogil:
        """The change of the loss by the best labeling of a subtree with its root on."""
        cdef Py_ssize_t n, j, c, best
        for n in range(self.k - 1, -1, -1):
            if self.starts[n] == self.starts[n + 1]:
                change[n] = self.change(i, n)
                continue
            change[n] = 0.0
            best = self.children[self.starts[n]]
            for j in range(self.starts[n], self.starts[n + 1]):
                c = self.children[j]
                if d[c] > 0.0:
                    change[n] += change[c]
                if d[c] > d[best]:
                    best = c
            if d[best] <= 0.0:
                change[n] = change[best]

    cdef bint fronts(
            self, Py_ssize_t i, double one, double lam, double least, double* work,
            Plane* plane, Py_ssize_t limit) except -1 nogil:
        """Find the candidates with h + lam * g >= least; return False past the limit."""
        cdef Py_ssize_t k = self.k, n, m, j, c, a = 0, stop = 0
        cdef const double* theta = work
        cdef double* d = work + k
        cdef double* rest = d + k
        cdef Py_ssize_t* begins = <Py_ssize_t*> (rest + k)
        cdef Py_ssize_t* ends = begins + k + 1
        cdef double positive, node, truth = 0.0, empty = 0.0, size = one, total = 0.0
        cdef Arena arena
        self.send_up(i, lam, theta, d)
        self.send_down(theta, d, rest)
        for n in range(k):
            size += fabs(theta[n])
            total += max(self.costs[n, 0], self.costs[n, 1])
            if self.Y[i, n]:
                truth += theta[n]
                empty += self.costs[n, 1]
        least += truth - one - lam * empty - SUM_ROUNDING * (size + lam * total)
        arena.limit = limit
        arena.lam = lam
        arena.tie = SUM_ROUNDING * total
        arena.top = 1
        if not reserve(plane, &arena, k + 1):
            return False
        arena.entries[0] = Entry(score=0.0, loss=0.0, prev=0, part=0, owner=-1)
        for m in range(k + 1):
            # From the last node to the first, then the roots' common parent.
            n = k - 1 - m if m < k else k
            node = 0.0 if n == k else theta[n]
            a = arena.top
            if self.starts[n] == self.starts[n + 1]:
                if not reserve(plane, &arena, a + 1):
                    return False
                arena.entries[a] = Entry(
                    score=node, loss=self.change(i, n), prev=0, part=0, owner=<int> n)
                stop = arena.top = a + 1
            else:
                positive = 0.0
                for j in range(self.starts[n], self.starts[n + 1]):
                    positive += max(d[self.children[j]], 0.0)
                arena.floor = least - node - positive - (rest[n] if n < k else 0.0)
                for j in range(self.starts[n], self.starts[n + 1]):
                    c = self.children[j]
                    # What the children after c add is not in the entries yet.
                    arena.floor += max(d[c], 0.0)
                    stop = add_child(
                        plane, &arena, a, arena.top, begins[c], ends[c], <int> n)
                    if stop == 0:
                        return False
                    a = arena.top
                    arena.top = stop
                for j in range(a, stop):
                    arena.entries[j].score += node
            begins[n] = a
            ends[n] = stop
        if not reserve(plane, &arena, 2 * stop - a + 1):
            return False
        arena.top = merge_fronts(&arena, a, stop, 0, 1, 0, False, -1, stop)
        # Where `candidate` finds the points.
        arena.entries[0].prev = <int> stop
        plane.count = arena.top - stop
        reserve_points(plane, plane.count)
        for j in range(plane.count):
            plane.scores[j] = arena.entries[stop + j].score - truth
            plane.losses[j] = arena.entries[stop + j].loss + empty
        return True

    cdef void send_down(
            self, const double* theta, const double* d, double* rest) noexcept nogil:
        """The best score of everything outside the subtree of n if n is on."""
        cdef Py_ssize_t k = self.k, m, n, j, c
        cdef double positive
        for m in range(k + 1):
            # The roots' common parent, then from the first node to the last.
            n = m - 1 if m > 0 else k
            positive = 0.0
            for j in range(self.starts[n], self.starts[n + 1]):
                positive += max(d[self.children[j]], 0.0)
            if m > 0:
                positive += rest[n] + theta[n]
            for j in range(self.starts[n], self.starts[n + 1]):
                c = self.children[j]
                rest[c] = positive - max(d[c], 0.0)

    cdef int candidate(
            self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
            int* labels) except -1 nogil:
        cdef const Entry* entries = <const Entry*> plane.scratch
        cdef Py_ssize_t n
        cdef int at, part
        for n in range(self.k):
            labels[n] = (<const int*> plane.scratch)[n] if plane.bound > 0.0 else 0
        if plane.bound > 0.0:
            return 0
        # Until its turn comes, a node that is on holds the place of its entry.
        at = entries[0].prev + <int> j
        for n in range(-1, self.k):
            if n >= 0:
                at = labels[n]
                labels[n] = at != 0
            while at != 0:
                part = entries[at].part
                if part != 0:
                    labels[entries[part].owner] = part
                at = entries[at].prev
        return 0
