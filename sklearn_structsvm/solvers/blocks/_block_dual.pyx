"""The dual variables of all blocks, the weights they give, and the gap between them.

With p_i = s_i / Σs the weight of block i and A the map from dual variables to
weights, the dual point is stored as ν_i and ℓ_i = Σ_y α_i(y) L_i(y) (see
`sklearn_structsvm._contract._oracle`), so that

    v = Aα = -(1/λ) Σ_i p_i · (joint feature of ν_i),    w = clip(v, lower, upper),
    block gap  g_i = p_i [ max_y H_i(y) - (ℓ_i + ⟨θ_i, ν_i⟩) ].

With a proximal term or an L1 penalty, the weights differ: see `_proximal`. `_bcfw` and
`_crf` move the dual variables. Corrections change the masses α_i and ℓ_i only, and ν_i is
computed from these when it is needed.
"""
import numpy as np

from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm._utils.borders import as_floats, as_tuple, check_shape, restore
from sklearn_structsvm._utils.threads import whole_lines

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy

from sklearn_structsvm._contract._oracle cimport CHUNK, BlockOracle
from sklearn_structsvm.solvers.blocks._active_sets cimport Atoms, ask_for_atoms
from sklearn_structsvm.solvers.blocks._block_labelings cimport BlockLabelings
from sklearn_structsvm.solvers.blocks._sum_tree cimport SumTree


cdef class BlockDual(BlockLabelings):
    """The dual point of all blocks and, for some steps, the labelings that make it up.

    Parameters are those of `BlockLabelings`.
    """

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam, *,
                 BlockDual whole=None, **options):
        cdef Py_ssize_t n = oracle.n_blocks
        super().__init__(oracle, weights, lam, whole=whole, **options)
        self.n_oracle_calls = 0
        self.gap = np.inf
        self.loss_change = 0.0
        self.loss_bar = np.zeros(n)
        self.gaps = np.full(n, np.inf)
        self.hinges = np.zeros(n)
        self.means = np.zeros(n)
        self.excesses = np.zeros(n)
        self.is_behind = np.zeros(n, dtype=np.uint8)
        self.tree = SumTree(n)
        if self.is_part:
            self.loss_bar, self.gaps = whole.loss_bar, whole.gaps
            self.is_behind = whole.is_behind

    # ------------------------------------------------------------------ steps

    cdef double visit(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        """Make a step on block i; subclasses implement it."""
        return 0.0

    cdef int catch_up(self, Py_ssize_t i) except -1 nogil:
        """Compute ν_i if corrections have left it behind the masses."""
        cdef Atoms* atoms
        if not self.is_behind[i]:
            return 0
        atoms = &self.atoms.sets[i]
        self.oracle.direction(
            i, -1.0, atoms.count, atoms.alpha, atoms.labels, &self.first[0], NULL)
        self.oracle.move(i, 1.0, &self.first[0])
        self.is_behind[i] = False
        return 0

    def catch_up_all(self):
        """The same for all blocks."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.oracle.n_blocks):
                self.catch_up(i)

    cdef int map_block(self, Py_ssize_t i, const double* direction) except -1 nogil:
        """Update w from v where a direction of block i has changed v."""
        cdef const double* v = &self.v[0]
        if self.threshold > 0.0:
            self.oracle.shrink(i, direction, v, self.threshold, &self.w[0])
            v = &self.w[0]
        if self.has_box:
            self.oracle.project(
                i, direction, v, &self.lower[0], &self.upper[0], &self.w[0])
        return 0

    cdef double make_steps(
            self, const Py_ssize_t[::1] blocks, bint cached, bint checks
            ) except? -1.0 nogil:
        """The steps of `run` or `run_cached`; returns the sum of the blocks' gaps.

        `checks`: whether signals are looked for meanwhile, which takes the GIL.
        """
        cdef Py_ssize_t k, n = blocks.shape[0]
        cdef double gap = 0.0
        for k in range(n):
            if checks and k % CHUNK == 0:
                with gil:
                    PyErr_CheckSignals()
            if self.keeps_atoms and k + 1 < n:
                ask_for_atoms(self.atoms, blocks[k + 1])
            gap += self.visit(blocks[k], cached)
        return gap

    def run(self, const Py_ssize_t[::1] blocks):
        """One step on each of the given blocks, in their order."""
        with nogil:
            self.make_steps(blocks, False, True)

    def run_cached(self, const Py_ssize_t[::1] blocks):
        """Same steps as `run`, but toward cached labelings, without calling the oracle.

        Returns
        -------
        float
            Sum of the gaps of the blocks with respect to their cached labelings, each
            as it was before its step.
        """
        cdef double gap
        with nogil:
            gap = self.make_steps(blocks, True, True)
        return gap

    def run_by_gap(self, const double[::1] uniforms):
        """One step for each number in [0, 1), on a block drawn by its gap.

        Returns how many steps were made: fewer if all known gaps are zero.
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

    # ------------------------------------------------------- planes, see `mixture`

    def take_plane(self, const double[::1] w, Py_ssize_t j, Py_ssize_t most,
                   int n_threads=1, bint cached=False):
        """(Σ p_i max_y H_i(y), a, b) at any w; the answers are held as plane number j.

        The plane is ⟨a, w⟩ + b. With `cached`, the answers are the best cached
        labelings, and no oracle is called.
        """
        known = self.atoms if cached else None
        if self.risk is None or self.is_risk_cached != cached:
            self.risk = EmpiricalRisk(self.oracle, np.asarray(self.p), known=known)
            self.is_risk_cached = cached
        if cached:
            hinge = self.risk.recall(w, n_threads)
        else:
            hinge = self.risk.ask(w, n_threads)
            self.n_oracle_calls += self.n_active_blocks
        self.hold_plane(j, *self.risk.answers, most)
        return hinge, *self.risk.plane()

    cdef int keep_share(self, Py_ssize_t i, double share) except -1:
        """What α_i keeps of its mass, of which the rest goes to the truth.

        ν_i is scaled by `scale_blocks`.
        """
        cdef Py_ssize_t c, truth
        cdef Atoms* atoms
        self.loss_bar[i] *= share
        if not self.keeps_mass:
            return 0
        atoms = &self.atoms.sets[i]
        for c in range(atoms.count):
            atoms.alpha[c] *= share
        self.oracle.true_labels(i, &self.labels[0])
        truth = self.atoms.find(i, &self.labels[0])
        if truth < 0:
            truth = self.add_atom(i, &self.labels[0], 0.0)
        atoms.alpha[truth] += 1.0 - share
        return 0

    def mix(self, const double[::1] shares, u):
        """Replace α by shares[0] α plus the other shares of the planes; u is its image.

        Shares are non-negative and sum to 1; share j + 1 is that of plane j.
        """
        cdef Py_ssize_t i, j, c, s, m = shares.shape[0] - 1, n_labels
        cdef Atoms* atoms
        cdef Atoms* planes
        cdef double* coefs
        cdef double loss
        self.planes.reserve(256)
        self.catch_up_all()
        self.oracle.scale_blocks(shares[0])
        coefs = self.planes.coefs
        for i in range(self.oracle.n_blocks):
            if self.p[i] == 0.0:
                # It has no plane, and must be as it is with any other weight.
                self.keep_share(i, shares[0])
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

    cdef void save_before(self, const Py_ssize_t[::1] blocks) noexcept nogil:
        """Save the dual variables of these blocks, for `scale_changes`."""
        cdef Py_ssize_t b
        for b in range(blocks.shape[0]):
            self.atoms.save_masses(blocks[b])
        self.loss_change = 0.0

    cdef int scale_changes(
            self, const Py_ssize_t[::1] blocks, double gamma) except -1 nogil:
        """Scale the changes of these blocks since `save_before` by gamma.

        Labelings may be dropped afterwards, as after a step of the whole.
        """
        cdef Py_ssize_t b, i, c
        cdef double change, loss_change
        cdef bint is_moved
        cdef Atoms* atoms
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
                if not self.is_behind[i]:
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
        return 0

    def snapshot(self, const Py_ssize_t[::1] blocks):
        """Save the dual variables of these blocks before a round, for `scale_update`."""
        self.save_before(blocks)

    def scale_update(self, const Py_ssize_t[::1] blocks, double gamma):
        """Scale the last round's change of these blocks by gamma."""
        self.scale_changes(blocks, gamma)

    # ----------------------------------------------------------- certificates

    cdef int _mean(
            self, Py_ssize_t i, double* work, double* values, double* mean
            ) except -1 nogil:
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩), for the potentials in `work`."""
        cdef Atoms* atoms
        cdef Py_ssize_t c
        cdef double score = 0.0
        if self.is_behind[i]:
            atoms = &self.atoms.sets[i]
            self.oracle.evaluate_each(i, work, atoms.count, atoms.labels, values)
            for c in range(atoms.count):
                score += atoms.alpha[c] * values[c]
        else:
            self.oracle.block_score(i, work, &score)
        mean[0] = self.p[i] * (self.loss_bar[i] + score)
        return 0

    cdef int _check(
            self, Py_ssize_t i, const double* w, double lam, double* work,
            int* labels, double* hinge, double* mean, double* excess
            ) except -1 nogil:
        """p_i max_y H_i(y), or a bound, and p_i (ℓ_i + ⟨θ_i, ν_i⟩); H_i has lam L_i.

        `excess` is the bound minus p_i times the value of the labeling found. `work` has
        room for the values of the cached labelings at its end.
        """
        cdef double score, loss, value
        self.oracle.potentials(i, w, work)
        self._mean(i, work, work + self.work.shape[0], mean)
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
        if self.keeps_atoms:
            n_work += self.atoms.most
        n_work = whole_lines(n_work)
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

        Each block's terms are stored and summed in order, so that the result does not
        depend on the number of threads.
        """
        self._pass(self.w, 1.0, self.hinges, self.means, self.excesses, n_threads)
        np.subtract(self.hinges, self.means, out=np.asarray(self.gaps))
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(self.gaps)
        self.bound_excess = np.sum(self.excesses)
        return float(np.sum(self.hinges)), self.gap

    def check_means(self):
        """p_i (ℓ_i + ⟨θ_i, ν_i⟩) of all blocks, without calling the oracle."""
        cdef Py_ssize_t i
        cdef double* values = self.atoms.values if self.keeps_atoms else NULL
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &self.w[0], &self.work[0])
                    self._mean(i, &self.work[0], values, &self.means[i])
        return float(np.sum(self.means))

    def hinge(self, const double[::1] w, double lam=1.0, int n_threads=1):
        """Σ p_i max_y lam L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩ at any w."""
        check_shape("w", w, self.oracle.n_weights)
        hinges, means, excesses = np.zeros((3, self.oracle.n_blocks))
        self._pass(w, lam, hinges, means, excesses, n_threads)
        return float(np.sum(hinges))

    @property
    def estimated_gap(self):
        """The gap if all block gaps were as last seen; some are stale."""
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
    def loss(self):
        """Σ p_i ℓ_i."""
        return float(np.dot(self.p, self.loss_bar))

    @property
    def dual_objective(self):
        return self.dual_value(self.loss)

    def dual_point(self):
        """(Aα, Σ p_i ℓ_i) of the iterate."""
        return self.dual_image(), self.loss

    # ------------------------------------------------------------ dual states

    def rebuild_weights(self):
        """Recompute v and w from the blocks, after the blocks, λ or p have changed."""
        cdef Py_ssize_t i
        self.catch_up_all()
        np.asarray(self.v)[...] = 0.0
        if self.minus_a is not None:
            np.asarray(self.v)[...] = np.divide(self.minus_a, self.lam)
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.direction(i, 1.0, 0, NULL, NULL, &self.first[0], NULL)
                    self.oracle.scatter(i, -self.p[i] / self.lam, &self.first[0],
                                        &self.v[0])
        self.draw_to_center()

    def set_lambda(self, double lam):
        """Change λ, and κ in proportion, but not the dual point."""
        self.kappa *= lam / self.lam
        self.lam = lam
        self.set_threshold()
        self.rebuild_weights()

    def rescale(self, double lam):
        """Change λ, and κ in proportion, but not w.

        If λ becomes ρ λ, mass 1 - ρ of each block goes to the truth: Proposition 1 of the
        paper, with lines 14 to 22 of its Algorithm 7. The block gaps are those of the
        last check, updated by equation (12).
        """
        cdef Py_ssize_t i
        cdef double rho = lam / self.lam
        self.catch_up_all()
        self.oracle.scale_blocks(rho)
        gaps = np.asarray(self.gaps)
        gaps += (1.0 - rho) * np.asarray(self.means)
        self.lam = lam
        self.kappa *= rho
        self.tree.rebuild(self.gaps)
        self.gap = np.sum(gaps)
        for i in range(self.oracle.n_blocks):
            self.keep_share(i, rho)

    def get_state(self):
        """The dual point, picklable; see `set_state`."""
        cdef Py_ssize_t i, c, n_labels
        cdef Atoms* atoms
        self.catch_up_all()
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
            state["atoms"] = saved
            if self.is_part:
                state["before"] = [
                    [self.atoms.sets[i].before[c] for c in range(len(saved[i]))]
                    for i in range(len(saved))]
        return state

    def set_state(self, state):
        """Start from a dual point of the same examples, at any λ and weights.

        Raises
        ------
        ValueError
            If the dual point is not one of these examples.
        """
        cdef Py_ssize_t i, c, n = self.oracle.n_blocks
        cdef int[::1] labels
        if self.keeps_mass and "atoms" not in state:
            raise ValueError(
                "The dual point was found by plain steps, or exact ones, and has no "
                "active sets, which pairwise, away and corrective steps need.")
        self.oracle.set_blocks(state["blocks"])
        np.asarray(self.is_behind)[...] = False
        restore("loss", self.loss_bar, state["loss"])
        if self.keeps_mass:
            atoms = as_tuple("atoms (active sets)", state["atoms"], n)
            for i in range(n):
                if not isinstance(atoms[i], list):
                    raise ValueError(f"The active set of example {i} must be a list.")
                self.atoms.sets[i].count = 0
                if not atoms[i]:
                    # A new example starts at its truth.
                    self.oracle.true_labels(i, &self.labels[0])
                    c = self.add_atom(i, &self.labels[0], 0.0)
                    self.atoms.sets[i].alpha[c] = 1.0
                for atom in atoms[i]:
                    saved, alpha, loss = as_tuple("An atom", atom, 3)
                    labels = self.oracle.labeling_from_object(i, saved)
                    alpha, loss = as_floats("mass and loss", (alpha, loss), 2)
                    c = self.add_atom(i, &labels[0], loss)
                    self.atoms.sets[i].alpha[c] = alpha
            # Of a part, what `snapshot` had saved.
            before = state.get("before", [()] * n)
            for i, masses in enumerate(as_tuple("masses before", before, n)):
                masses = as_floats("masses before", masses, len(masses))
                for c in range(min(len(masses), self.atoms.sets[i].count)):
                    self.atoms.sets[i].before[c] = masses[c]
        self.rebuild_weights()
        self.restore_primal(state)
