"""The dual variables of all blocks, the weights they give, and the gap between them.

With p_i = s_i / Σs the weight of block i and A the map of dual variables to
weights, the dual point is kept as ν_i and ℓ_i = Σ_y α_i(y) L_i(y) (see
`sklearn_structsvm._contract._oracle`), so that

    v = Aα = -(1/λ) Σ_i p_i · (joint feature of ν_i),    w = clip(v, lower, upper),
    block gap  g_i = p_i [ max_y H_i(y) - (ℓ_i + ⟨θ_i, ν_i⟩) ].

With a proximal term, see `_proximal`, the weights are others. What moves the dual
variables is `_bcfw`, and `_crf`.
"""
import numpy as np

from sklearn_structsvm.solvers.blocks._joint_oracle import JointOracle
from sklearn_structsvm._utils.borders import as_floats, as_tuple, check_shape, restore

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy

from sklearn_structsvm._contract._oracle cimport CHUNK, BlockOracle
from sklearn_structsvm.solvers.blocks._active_sets cimport ActiveSets, Atoms
from sklearn_structsvm.solvers.blocks._proximal cimport ProximalIterate
from sklearn_structsvm.solvers.blocks._sum_tree cimport SumTree

# A labeling that had no mass for this many passes goes, and with many cached the ones
# that had none for longest.
cdef enum:
    IDLE_PASSES = 20
    MANY_LABELINGS = 80


cdef class BlockDual(ProximalIterate):
    """The dual point of all blocks, and of some the labelings that it is made of.

    Parameters
    ----------
    oracle : BlockOracle
    weights : ndarray of shape (n_blocks,)
        p_i, non-negative, summing to 1. Blocks of weight 0 are left alone.
    lam : float
        λ > 0.
    lower, upper : ndarray of shape (n_weights,) or None
        Box constraints on w.
    keeps_mass : bool
        Whether the masses α of labelings are kept, and not ν_i and ℓ_i alone.
    keeps_gram : bool
        Whether the inner products of their joint features are.
    cache_size : int
        Labelings kept per block beside those with mass; 0 for no cache.
    whole : BlockDual or None
        Whose part this is to be: an iterate with weights of its own, which moves the dual
        variables of the whole, of blocks that no other part has. See `_parts`.
    """

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam, *,
                 lower=None, upper=None, bint keeps_mass=False, bint keeps_gram=False,
                 Py_ssize_t cache_size=0, BlockDual whole=None):
        cdef Py_ssize_t n = oracle.n_blocks, i
        check_shape("weights", weights, n)
        super().__init__(oracle.n_weights, lam, lower, upper)
        self.oracle = oracle
        self.p = weights
        self.is_part = whole is not None
        self.cache_size = cache_size
        self.keeps_mass = keeps_mass
        self.keeps_atoms = keeps_mass or cache_size > 0
        self.n_active_blocks = np.count_nonzero(weights)
        self.n_oracle_calls = 0
        self.gap = np.inf
        self.loss_change = 0.0
        self.loss_bar = np.zeros(n)
        self.gaps = np.full(n, np.inf)
        self.hinges = np.zeros(n)
        self.means = np.zeros(n)
        self.excesses = np.zeros(n)
        self.tree = SumTree(n)
        self.work = np.zeros(max(oracle.work_size, 1))
        self.first = np.zeros(max(oracle.direction_size, 1))
        self.labels = np.zeros(max(oracle.max_labels, 1), dtype=np.intc)
        self.atoms = self.planes = None
        if self.is_part:
            self.loss_bar, self.gaps = whole.loss_bar, whole.gaps
            if self.keeps_atoms:
                self.atoms = ActiveSets(
                    whole.atoms.lengths(), keeps_gram, whole.atoms)
        elif self.keeps_atoms:
            self.atoms = ActiveSets(
                np.array([oracle.n_labels(i) for i in range(n)], dtype=np.intp),
                keeps_gram)
            for i in range(n):
                oracle.true_labels(i, &self.labels[0])
                self.atoms.add(i, &self.labels[0], 0.0)
                self.atoms.sets[i].alpha[0] = keeps_mass
                if keeps_gram:
                    self.atoms.sets[i].gram[0] = 0.0

    # ------------------------------------------------------------------ steps

    cdef double visit(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        """A step on block i, which a subclass says how to make."""
        return 0.0

    def run(self, const Py_ssize_t[::1] blocks):
        """One step on each of the given blocks, in their order."""
        cdef Py_ssize_t k, first, n = blocks.shape[0]
        for first in range(0, n, CHUNK):
            PyErr_CheckSignals()
            with nogil:
                for k in range(first, min(first + CHUNK, n)):
                    self.visit(blocks[k])

    def run_by_gap(self, const double[::1] uniforms):
        """One step for each number in [0, 1), on a block drawn by its gap.

        Returns how many steps were made: fewer where all known gaps are zero.
        """
        cdef Py_ssize_t k = 0, stop, n = uniforms.shape[0]
        while k < n and self.tree.total() > 0.0:
            PyErr_CheckSignals()
            stop = min(k + CHUNK, n)
            with nogil:
                while k < stop and self.tree.total() > 0.0:
                    self.visit(self.tree.find(uniforms[k]))
                    k += 1
        return k

    # ------------------------------------------------------- cached labelings

    cdef Py_ssize_t scan(
            self, Py_ssize_t i, double* work, double* best_value,
            Py_ssize_t* away, double* away_value, Py_ssize_t* n_active
            ) except -2 nogil:
        """Best cached labeling of block i, and the worst active one."""
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
            # The masses sum to one up to rounding, which ends here.
            atoms.alpha[away[0]] = 1.0
        return best

    cdef Py_ssize_t add_atom(
            self, Py_ssize_t i, const int* labels, double loss) except -1 nogil:
        """Take in a labeling, with its row of the Gram matrix; its place.

        Potentials of block i have to be found again afterwards.
        """
        cdef Py_ssize_t c, s = self.atoms.add(i, labels, loss)
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t n_labels = self.oracle.n_labels(i)
        cdef double one = 1.0, product
        if not self.atoms.keeps_gram:
            return s
        self.oracle.direction(i, 0.0, 1, &one, labels, &self.first[0], NULL)
        self.oracle.image(i, &self.first[0], &self.work[0])
        for c in range(s + 1):
            self.oracle.evaluate(
                i, &self.work[0], atoms.labels + c * n_labels, &product, &loss)
            atoms.gram[s * atoms.capacity + c] = product
            atoms.gram[c * atoms.capacity + s] = product
        return s

    cdef int tidy(self, Py_ssize_t i) except -1 nogil:
        """Forget atoms without mass, all of them or the stalest beyond the cache."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        if self.cache_size > 0:
            return self.keep_at_most(i, self.cache_size)
        for c in range(atoms.count - 1, -1, -1):
            if atoms.alpha[c] == 0.0:
                self.drop_atom(i, c)
        return 0

    cdef int forget_idle(self, Py_ssize_t i) except -1 nogil:
        """Let labelings go that have had no mass for long."""
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
        """Let the stalest labelings go; all that have mass stay."""
        cdef Atoms* atoms = &self.atoms.sets[i]
        cdef Py_ssize_t c
        while atoms.count > most:
            c = self.atoms.stalest(i)
            if c < 0:
                break
            self.drop_atom(i, c)
        return 0

    cdef int drop_atom(self, Py_ssize_t i, Py_ssize_t c) except -1 nogil:
        """Let a cached labeling go; the last one takes its place."""
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
        """Take one labeling per block to those cached where it violates more than they.

        Parameters
        ----------
        labels, starts : ndarray of dtype intc and intp
            The labeling of block i begins at starts[i].
        eps : float
            By how much the value L_i + ⟨θ_i, μ(y) - μ(y_i)⟩ at w must exceed the largest
            one of those cached. Labelings that do not are released, and so are those
            beyond the cache that a new one replaces; there is always room for it.

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

    # ------------------------------------------------------- planes, see `mixture`

    def hold_plane(self, Py_ssize_t j, const int[::1] labels,
                   const Py_ssize_t[::1] starts, Py_ssize_t most):
        """Keep a labeling of each block as plane j, in place of those that it had.

        Parameters
        ----------
        j : int
        labels, starts : ndarray of dtype intc and intp
            The labeling of block i begins at starts[i]. A released one is held again.
        most : int
            How many planes there may be, at most 255; the same in all calls.
        """
        cdef Py_ssize_t i, c, other, n = self.oracle.n_blocks
        cdef unsigned char none = 255
        if self.planes is None:
            self.planes = ActiveSets(
                np.array([self.oracle.n_labels(i) for i in range(n)], dtype=np.intp))
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
        """Let a labeling go that no plane has any more."""
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

    def take_plane(self, const double[::1] w, Py_ssize_t j, Py_ssize_t most,
                   int n_threads=1, bint cached=False):
        """(Σ p_i max_y H_i(y), a, b) at any w, and the answers held as plane number j.

        The plane is ⟨a, w⟩ + b. With `cached` the answers are the best cached
        labelings, and no oracle is asked.
        """
        known = self.atoms if cached else None
        if self.joint is None or self.is_joint_cached != cached:
            self.joint = JointOracle(self.oracle, np.asarray(self.p), known=known)
            self.is_joint_cached = cached
        if cached:
            hinge = self.joint.recall(w, n_threads)
        else:
            hinge = self.joint.ask(w, n_threads)
            self.n_oracle_calls += self.n_active_blocks
        self.hold_plane(j, *self.joint.answers, most)
        return hinge, *self.joint.plane()

    def mix(self, const double[::1] shares, u):
        """α becomes shares[0] α and the other shares of the planes held; u its image.

        Shares are non-negative and sum to 1; share j + 1 is that of plane j.
        """
        cdef Py_ssize_t i, j, c, s, m = shares.shape[0] - 1, n_labels
        cdef Atoms* atoms
        cdef Atoms* planes
        cdef double* coefs
        cdef double loss
        self.planes.reserve(256)
        self.oracle.scale_blocks(shares[0])
        coefs = self.planes.coefs
        for i in range(self.oracle.n_blocks):
            if self.p[i] == 0.0:
                continue
            planes = &self.planes.sets[i]
            n_labels = self.oracle.n_labels(i)
            for c in range(planes.count):
                coefs[c] = 0.0
            for j in range(m):
                coefs[self.places[i, j]] += shares[j + 1]
            loss = shares[0] * self.loss_bar[i]
            for c in range(planes.count):
                loss += coefs[c] * planes.loss[c]
            self.oracle.direction(
                i, 0.0, planes.count, coefs, planes.labels, &self.first[0], NULL)
            self.oracle.move(i, 1.0, &self.first[0])
            self.loss_bar[i] = loss
            if not self.keeps_mass:
                continue
            atoms = &self.atoms.sets[i]
            for s in range(atoms.count):
                atoms.alpha[s] *= shares[0]
            for c in range(planes.count):
                if coefs[c] > 0.0:
                    s = self.atoms.find(i, planes.labels + c * n_labels)
                    if s < 0:
                        s = self.add_atom(
                            i, planes.labels + c * n_labels, planes.loss[c])
                    atoms.alpha[s] += coefs[c]
        self.set_dual_image(u)

    # ------------------------------------------------------------------ parts

    def remember(self, const Py_ssize_t[::1] blocks):
        """Note the dual variables of the blocks of a part's next round, for `settle`."""
        cdef Py_ssize_t b
        for b in range(blocks.shape[0]):
            self.atoms.remember(blocks[b])
        self.loss_change = 0.0

    def settle(self, const Py_ssize_t[::1] blocks, double gamma):
        """Scale the last round's change of these blocks by gamma.

        Labelings may go thereafter, as after a step of the whole.
        """
        cdef Py_ssize_t b, i, c
        cdef double change, loss_change
        cdef bint is_moved
        cdef Atoms* atoms
        with nogil:
            for b in range(blocks.shape[0]):
                i = blocks[b]
                atoms = &self.atoms.sets[i]
                loss_change = 0.0
                is_moved = False
                for c in range(atoms.count if gamma < 1.0 else 0):
                    change = (gamma - 1.0) * (atoms.alpha[c] - atoms.before[c])
                    self.atoms.coefs[c] = change
                    loss_change += change * atoms.loss[c]
                    is_moved = is_moved or change != 0.0
                if is_moved:
                    self.oracle.direction(
                        i, 0.0, atoms.count, self.atoms.coefs, atoms.labels,
                        &self.first[0], NULL)
                    self.oracle.move(i, 1.0, &self.first[0])
                    for c in range(atoms.count):
                        atoms.alpha[c] = atoms.before[c] + gamma * (
                            atoms.alpha[c] - atoms.before[c])
                    self.loss_bar[i] += loss_change
                if self.atoms.keeps_gram:
                    self.forget_idle(i)
                else:
                    self.tidy(i)

    # ----------------------------------------------------------- certificates

    cdef int _check(
            self, Py_ssize_t i, const double* w, double lam, double* work,
            int* labels, double* hinge, double* mean, double* excess
            ) except -1 nogil:
        """p_i max_y H_i(y), or a bound, and p_i (ℓ_i + ⟨θ_i, ν_i⟩); loss times lam.

        `excess` is what the bound is above the value of the labeling that was found.
        """
        cdef double score, loss, value
        self.oracle.potentials(i, w, work)
        self.oracle.block_score(i, work, &score)
        mean[0] = self.p[i] * (self.loss_bar[i] + score)
        self.oracle.max_oracle(i, lam, work, labels, &score, &loss)
        value = score + lam * loss
        hinge[0] = self.p[i] * self.oracle.upper_bound(i, work, value)
        excess[0] = hinge[0] - self.p[i] * value
        self.let_go(i, labels)
        return 0

    def _pass(self, const double[::1] w, double lam, double[::1] hinges,
              double[::1] means, double[::1] excesses, int n_threads):
        cdef Py_ssize_t i, n = self.oracle.n_blocks
        cdef Py_ssize_t n_work = self.work.shape[0], n_labels = self.labels.shape[0]
        cdef int t
        if not self.oracle.thread_safe or n_threads < 1:
            n_threads = 1
        cdef double[::1] work = np.zeros(n_threads * n_work)
        cdef int[::1] labels = np.zeros(n_threads * n_labels, dtype=np.intc)
        if n_threads == 1:
            with nogil:
                for i in range(n):
                    if self.p[i] > 0.0:
                        self._check(i, &w[0], lam, &work[0], &labels[0],
                                    &hinges[i], &means[i], &excesses[i])
        else:
            for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
                if self.p[i] > 0.0:
                    t = threadid()
                    self._check(i, &w[0], lam, &work[t * n_work],
                                &labels[t * n_labels], &hinges[i], &means[i],
                                &excesses[i])
        self.n_oracle_calls += self.n_active_blocks

    def check_gaps(self, int n_threads=1):
        """True gaps of all blocks at w; returns (Σ p_i H_i, Σ g_i).

        Each block's terms are stored and summed in their order, so that the
        result does not depend on the number of threads.
        """
        self._pass(self.w, 1.0, self.hinges, self.means, self.excesses, n_threads)
        np.subtract(self.hinges, self.means, out=np.asarray(self.gaps))
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(self.gaps)
        self.bound_excess = np.sum(self.excesses)
        return float(np.sum(self.hinges)), self.gap

    def check_means(self):
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩) of all blocks, without asking the oracle."""
        cdef Py_ssize_t i
        cdef double score
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &self.w[0], &self.work[0])
                    self.oracle.block_score(i, &self.work[0], &score)
                    self.means[i] = self.p[i] * (self.loss_bar[i] + score)
        return float(np.sum(self.means))

    def hinge(self, const double[::1] w, double lam=1.0, int n_threads=1):
        """Σ p_i max_y lam L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩ at any w."""
        check_shape("w", w, self.oracle.n_weights)
        hinges, means, excesses = np.zeros((3, self.oracle.n_blocks))
        self._pass(w, lam, hinges, means, excesses, n_threads)
        return float(np.sum(hinges))

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
    def known_gap(self):
        """The gap by those of the blocks as last seen, some of them stale."""
        return self.tree.total() + self.proximal_gap()

    @property
    def block_gaps(self):
        """The block gaps as last seen."""
        return np.array(self.gaps)

    @property
    def block_means(self):
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩) as last checked."""
        return np.array(self.means)

    @property
    def block_weights(self):
        """p, a view."""
        return np.asarray(self.p)

    @property
    def active_blocks(self):
        """Indices of the blocks of positive weight."""
        return np.flatnonzero(self.p)

    @property
    def movable_blocks(self):
        """Those with several cached labelings."""
        cdef Py_ssize_t i
        counts = np.empty(self.oracle.n_blocks, dtype=np.intp)
        cdef Py_ssize_t[::1] count = counts
        for i in range(self.oracle.n_blocks):
            count[i] = self.atoms.sets[i].count
        return np.flatnonzero((counts > 1) & (np.asarray(self.p) > 0.0))

    @property
    def loss(self):
        """Σ p_i ℓ_i."""
        return float(np.dot(self.p, self.loss_bar))

    @property
    def dual_objective(self):
        return self.dual_value(self.loss)

    def dual_point(self):
        """(Aα, Σ p_i ℓ_i) of the iterate."""
        return self.image_of_dual(), self.loss

    # ------------------------------------------------------------ dual states

    def rebuild_weights(self):
        """v and w from the blocks: after the blocks, λ or the weights changed."""
        cdef Py_ssize_t i
        np.asarray(self.v)[...] = 0.0
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.direction(i, 1.0, 0, NULL, NULL, &self.first[0], NULL)
                    self.oracle.scatter(i, -self.p[i] / self.lam, &self.first[0],
                                        &self.v[0])
        self.draw_to_center()

    def set_lambda(self, double lam):
        """Change λ and κ with it, the dual point staying as it is."""
        self.kappa *= lam / self.lam
        self.lam = lam
        self.rebuild_weights()

    def rescale(self, double rho):
        """λ *= rho with w unchanged, and κ: mass 1 - rho of each block goes to the truth.

        Proposition 1 of the paper, with lines 14 to 22 of its Algorithm 7; the
        block gaps are those of the last check, updated by equation (12).
        """
        cdef Py_ssize_t i, c, truth
        cdef Atoms* atoms
        self.oracle.scale_blocks(rho)
        gaps = np.asarray(self.gaps)
        gaps += (1.0 - rho) * np.asarray(self.means)
        self.lam *= rho
        self.kappa *= rho
        np.asarray(self.loss_bar)[...] *= rho
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(gaps)
        if not self.keeps_mass:
            return
        for i in range(self.oracle.n_blocks):
            atoms = &self.atoms.sets[i]
            for c in range(atoms.count):
                atoms.alpha[c] *= rho
            self.oracle.true_labels(i, &self.labels[0])
            truth = self.atoms.find(i, &self.labels[0])
            if truth < 0:
                truth = self.add_atom(i, &self.labels[0], 0.0)
            atoms.alpha[truth] += 1.0 - rho

    def get_state(self):
        """The dual point, picklable; see `set_state`."""
        cdef Py_ssize_t i, c, n_labels
        cdef Atoms* atoms
        state = {"blocks": self.oracle.get_blocks(), "loss": np.array(self.loss_bar)}
        state |= self.primal_state()
        if self.keeps_mass:
            saved = []
            for i in range(self.oracle.n_blocks):
                atoms = &self.atoms.sets[i]
                n_labels = self.oracle.n_labels(i)
                mine = []
                for c in range(atoms.count):
                    memcpy(&self.labels[0], atoms.labels + c * n_labels,
                           n_labels * sizeof(int))
                    mine.append((
                        self.oracle.labeling_to_object(i, self.labels[:n_labels]),
                        atoms.alpha[c], atoms.loss[c]))
                saved.append(mine)
            state["corners"] = saved
        return state

    def set_state(self, state):
        """Start from a dual point of the same examples, at any λ and weights.

        Raises
        ------
        ValueError
            Where it is none of these examples.
        """
        cdef Py_ssize_t i, c, n = self.oracle.n_blocks
        cdef int[::1] labels
        if self.keeps_mass and "corners" not in state:
            raise ValueError(
                "The dual point was found by plain steps, or exact ones, and has no "
                "active sets, which pairwise, away and corrective steps need.")
        self.oracle.set_blocks(state["blocks"])
        restore("loss", self.loss_bar, state["loss"])
        if self.keeps_mass:
            atoms = as_tuple("corners (active sets)", state["corners"], n)
            for i in range(n):
                if not isinstance(atoms[i], list):
                    raise ValueError(f"The active set of example {i} must be a list.")
                self.atoms.sets[i].count = 0
                for atom in atoms[i]:
                    saved, alpha, loss = as_tuple("An atom", atom, 3)
                    labels = self.oracle.labeling_from_object(i, saved)
                    alpha, loss = as_floats("mass and loss", (alpha, loss), 2)
                    c = self.add_atom(i, &labels[0], loss)
                    self.atoms.sets[i].alpha[c] = alpha
        self.rebuild_weights()
        self.restore_primal(state)
