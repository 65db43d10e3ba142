"""Sampling in proportion to weights that change: O(log n) to update and to draw.

Each inner node is the sum of its two children, recomputed on every update, so that
rounding never accumulates.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape


cdef class SumTree:
    """Non-negative weights of `size` items, all zero at first."""

    def __init__(self, Py_ssize_t size):
        self.size = size
        self.leaves = 1
        while self.leaves < size:
            self.leaves *= 2
        self.nodes = np.zeros(2 * self.leaves)

    cdef void update(self, Py_ssize_t i, double value) noexcept nogil:
        cdef Py_ssize_t node = self.leaves + i
        self.nodes[node] = value if value > 0.0 else 0.0
        node //= 2
        while node >= 1:
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]
            node //= 2

    cdef void rebuild(self, const double[::1] values) noexcept nogil:
        cdef Py_ssize_t i, node
        for i in range(self.size):
            self.nodes[self.leaves + i] = values[i] if values[i] > 0.0 else 0.0
        for node in range(self.leaves - 1, 0, -1):
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    cdef double total(self) noexcept nogil:
        return self.nodes[1]

    cdef Py_ssize_t find(self, double uniform) noexcept nogil:
        """The item at `uniform` in [0, 1) of the total; its weight is positive."""
        cdef Py_ssize_t node = 1
        cdef double mass = uniform * self.nodes[1]
        while node < self.leaves:
            node *= 2
            # The second test keeps rounding from leading to an empty side.
            if mass >= self.nodes[node] and self.nodes[node + 1] > 0.0:
                mass -= self.nodes[node]
                node += 1
        return node - self.leaves

    def set_weights(self, values):
        """Replace all weights."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        check_shape("values", values, self.size)
        self.rebuild(values)

    def set_weight(self, Py_ssize_t i, double value):
        """Replace one weight."""
        check_indices("i", i, self.size)
        self.update(i, value)

    def draw(self, double uniform):
        """The item found at `uniform` in [0, 1)."""
        return self.find(uniform)
