"""The labelings kept for each block: cached ones, and those of cutting planes.

Cached labelings are the atoms of a block's active set. If steps need the individual dual
variables α_i of a block, these are the masses of the atoms. Each plane keeps one labeling
per block. A labeling that nothing keeps any longer is released to the oracle.
"""
import numpy as np

from sklearn_structsvm._utils.borders import check_shape

from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets, Atoms
from sklearn_structsvm.solvers.blocks._proximal cimport ProximalIterate

# A labeling without mass for this many passes is dropped. If many are cached, those that
# have been without mass for the longest time are dropped, too.
cdef enum:
    IDLE_PASSES = 20
    MANY_LABELINGS = 80


cdef class BlockLabelings(ProximalIterate):
    """The weights of a dual point, and the labelings kept of each block.

    Parameters
    ----------
    oracle : BlockOracle
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1. Blocks of weight 0 are skipped.
    lam : float
        λ > 0.
    lower, upper : ndarray of shape (n_weights,) or None
        Box constraints on w.
    l1_ratio : float
        ρ of the elastic net.
    keeps_mass : bool
        Whether to keep the masses α of labelings, and not only ν_i and ℓ_i.
    keeps_gram : bool
        Whether to keep the inner products of their joint features.
    cache_size : int
        Labelings kept per block; those with mass always stay. 0 for no cache.
    whole : BlockLabelings or None
        If given, this is a part of it: an iterate with its own weights, which moves those
        dual variables of the whole whose blocks no other part has. See `_parts`.
    """

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam, *,
                 lower=None, upper=None, double l1_ratio=0.0, bint keeps_mass=False,
                 bint keeps_gram=False, Py_ssize_t cache_size=0,
                 BlockLabelings whole=None):
        cdef Py_ssize_t n = oracle.n_blocks, i
        check_shape("weights", weights, n)
        super().__init__(oracle.n_weights, lam, lower, upper, l1_ratio)
        self.oracle = oracle
        self.p = weights
        self.is_part = whole is not None
        self.cache_size = cache_size
        self.keeps_mass = keeps_mass
        self.keeps_atoms = keeps_mass or cache_size > 0
        self.n_active_blocks = np.count_nonzero(weights)
        self.work = np.zeros(max(oracle.work_size, 1))
        self.first = np.zeros(max(oracle.direction_size, 1))
        self.labels = np.zeros(max(oracle.max_labels, 1), dtype=np.intc)
        self.atoms = self.planes = None
        if not self.keeps_atoms:
            return
        if self.is_part:
            self.atoms = ActiveSets(whole.atoms.lengths(), keeps_gram, whole.atoms)
            return
        self.atoms = ActiveSets(self._lengths(), keeps_gram)
        for i in range(n):
            oracle.true_labels(i, &self.labels[0])
            self.atoms.add(i, &self.labels[0], 0.0)
            self.atoms.sets[i].alpha[0] = keeps_mass
            if keeps_gram:
                self.atoms.sets[i].gram[0] = 0.0

    def _lengths(self):
        """Length of a labeling of each block."""
        cdef Py_ssize_t i
        return np.array([self.oracle.n_labels(i) for i in range(self.oracle.n_blocks)],
                        dtype=np.intp)

    # ------------------------------------------------------- cached labelings

    cdef Py_ssize_t scan(
            self, Py_ssize_t i, double* work, double* best_value,
            Py_ssize_t* away, double* away_value, Py_ssize_t* n_active
            ) except -2 nogil:
        """Find the best cached labeling of block i, and the worst active one."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c, best = -1, n_labels = self.oracle.n_labels(i)
        cdef double score, loss, value
        for c in range(atoms.count):
            self.oracle.evaluate(
                i, work, atoms.labels + c * n_labels, &score, &loss)
            value = score + loss
            if best < 0 or value > best_value[0]:
                best = c
                best_value[0] = value
            if atoms.alpha[c] > 0.0:
                n_active[0] += 1
                if away[0] < 0 or value < away_value[0]:
                    away[0] = c
                    away_value[0] = value
        if n_active[0] == 1:
            # The masses sum to one up to rounding, which is corrected here.
            atoms.alpha[away[0]] = 1.0
        return best

    cdef Py_ssize_t add_atom(
            self, Py_ssize_t i, const int* labels, double loss) except -1 nogil:
        """Add a labeling, with its row of the Gram matrix; return its place.

        The potentials of block i have to be recomputed afterwards.
        """
        cdef Py_ssize_t c, s = self.atoms.add(i, labels, loss)
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef double one = 1.0
        cdef double* row
        if not self.atoms.keeps_gram:
            return s
        row = atoms.gram + s * atoms.capacity
        self.oracle.direction(i, 0.0, 1, &one, labels, &self.first[0], NULL)
        self.oracle.image(i, &self.first[0], &self.work[0])
        self.oracle.evaluate_each(i, &self.work[0], s + 1, atoms.labels, row)
        for c in range(s):
            atoms.gram[c * atoms.capacity + s] = row[c]
        return s

    cdef int tidy(self, Py_ssize_t i) except -1 nogil:
        """Drop atoms without mass: all of them, or the stalest beyond the cache size."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        if self.cache_size > 0:
            return self.keep_at_most(i, self.cache_size)
        for c in range(atoms.count - 1, -1, -1):
            if atoms.alpha[c] == 0.0:
                self.drop_atom(i, c)
        return 0

    cdef int forget_idle(self, Py_ssize_t i) except -1 nogil:
        """Drop labelings that have had no mass for a long time."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        cdef long long now = self.atoms.clock
        for c in range(atoms.count - 1, -1, -1):
            if atoms.alpha[c] > 0.0:
                atoms.last_used[c] = now
            elif now - atoms.last_used[c] > IDLE_PASSES * self.n_active_blocks:
                self.drop_atom(i, c)
        return self.keep_at_most(i, MANY_LABELINGS)

    cdef int keep_at_most(self, Py_ssize_t i, Py_ssize_t most) except -1 nogil:
        """Drop the stalest labelings; all that have mass stay."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        while atoms.count > most:
            c = self.atoms.stalest(i)
            if c < 0:
                break
            self.drop_atom(i, c)
        return 0

    cdef int drop_atom(self, Py_ssize_t i, Py_ssize_t c) except -1 nogil:
        """Drop a cached labeling; the last one takes its place."""
        cdef int* labels = self.atoms.sets[i].labels + c * self.oracle.n_labels(i)
        if self.planes is None or self.planes.find(i, labels) < 0:
            self.oracle.release(i, labels)
        self.atoms.remove(i, c)
        return 0

    cdef int let_go(self, Py_ssize_t i, const int* labels) except -1 nogil:
        """Release a labeling, unless it is cached or a plane has it."""
        if self.keeps_atoms and self.atoms.find(i, labels) >= 0:
            return 0
        if self.planes is not None and self.planes.find(i, labels) >= 0:
            return 0
        self.oracle.release(i, labels)
        return 0

    def largest_cached(self):
        """max(0, largest value at w of the cached labelings) of each block."""
        cdef Py_ssize_t i, away, n_active
        cdef double best, away_value
        values = np.zeros(self.oracle.n_blocks)
        cdef double[::1] largest = values
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &self.w[0], &self.work[0])
                    away = -1
                    n_active = 0
                    self.scan(i, &self.work[0], &best, &away, &away_value, &n_active)
                    largest[i] = max(best, 0.0)
        return values

    def extend(self, const int[::1] labels, const Py_ssize_t[::1] starts, double eps):
        """Cache one labeling per block, if it violates more than the cached ones.

        Parameters
        ----------
        labels, starts : ndarray of dtype intc and intp
            The labeling of block i begins at starts[i].
        eps : float
            By how much the value L_i + ⟨θ_i, μ(y) - μ(y_i)⟩ at w must exceed the largest
            value of a cached labeling. Other labelings are released, and so are cached
            ones that a new one displaces; there is always room for a new one.

        Returns
        -------
        n_added : int
        """
        cdef Py_ssize_t i, away, n_active, c, n_added = 0
        cdef double best, away_value, score, loss
        cdef double* work = &self.work[0]
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] == 0.0:
                    continue
                c = self.atoms.find(i, &labels[starts[i]])
                if c >= 0:
                    self.atoms.touch(i, c)
                    continue
                self.oracle.potentials(i, &self.w[0], work)
                away = -1
                n_active = 0
                self.scan(i, work, &best, &away, &away_value, &n_active)
                self.oracle.evaluate(i, work, &labels[starts[i]], &score, &loss)
                if score + loss > best + eps:
                    self.tidy(i)
                    self.add_atom(i, &labels[starts[i]], loss)
                    n_added += 1
                else:
                    self.let_go(i, &labels[starts[i]])
        return n_added

    def gram(self, Py_ssize_t i):
        """Inner products of the joint features of block i's cached labelings."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t a, b
        gram = np.empty((atoms.count, atoms.count))
        for a in range(atoms.count):
            for b in range(atoms.count):
                gram[a, b] = atoms.gram[a * atoms.capacity + b]
        return gram

    @property
    def active_blocks(self):
        """Indices of the blocks of positive weight."""
        return np.flatnonzero(self.p)

    @property
    def movable_blocks(self):
        """Blocks with several cached labelings."""
        cdef Py_ssize_t i
        counts = np.empty(self.oracle.n_blocks, dtype=np.intp)
        cdef Py_ssize_t[::1] count = counts
        for i in range(self.oracle.n_blocks):
            count[i] = self.atoms.sets[i].count
        return np.flatnonzero((counts > 1) & (np.asarray(self.p) > 0.0))

    @property
    def block_weights(self):
        """p, a view."""
        return np.asarray(self.p)

    # ------------------------------------------------------- planes, see `mixture`

    def hold_plane(self, Py_ssize_t j, const int[::1] labels,
                   const Py_ssize_t[::1] starts, Py_ssize_t most):
        """Keep a labeling of each block as plane j, replacing the previous ones.

        Parameters
        ----------
        j : int
        labels, starts : ndarray of dtype intc and intp
            The labeling of block i begins at starts[i]. A released one is held again.
        most : int
            The largest number of planes, at most 255; the same in all calls.
        """
        cdef Py_ssize_t i, c, other, n = self.oracle.n_blocks
        cdef unsigned char none = 255
        if self.planes is None:
            self.planes = ActiveSets(self._lengths())
            self.places = np.full((n, most), none, dtype=np.uint8)
        with nogil:
            for i in range(n):
                if self.p[i] == 0.0:
                    continue
                c = self.planes.find(i, &labels[starts[i]])
                if c < 0:
                    c = self.planes.add(
                        i, &labels[starts[i]], self.oracle.loss(i, &labels[starts[i]]))
                other = self.places[i, j]
                self.places[i, j] = <unsigned char> c
                if other != none:
                    self._forget_place(i, other, most)

    cdef int _forget_place(
            self, Py_ssize_t i, Py_ssize_t c, Py_ssize_t most) except -1 nogil:
        """Drop a labeling if no plane has it any more."""
        cdef Py_ssize_t j, last = self.planes.sets[i].count - 1
        cdef int* labels = self.planes.sets[i].labels + c * self.oracle.n_labels(i)
        for j in range(most):
            if self.places[i, j] == c:
                return 0
        if not self.keeps_atoms or self.atoms.find(i, labels) < 0:
            self.oracle.release(i, labels)
        self.planes.remove(i, c)
        for j in range(most):
            if self.places[i, j] == last:
                self.places[i, j] = <unsigned char> c
        return 0
