"""Exact block ascent on the dual of SVMs with one feature vector per example.

With p_i = s_i / Σs, θ_i = Wᵀx_i and the dual point stored as for plain steps of `_bcfw`,
ν_i = Σ_y α_i(y) (μ(y) - μ(y_i)) and ℓ_i = Σ_y α_i(y) L_i(y),

    W = -(1/λ) Σ_i p_i x_i ⊗ ν_i,
    block gap  g_i = p_i Σ_y α_i(y) [max_z H_i(z) - H_i(y)].

With all blocks but i fixed, θ_i moves by -β_i Δν_i, β_i = p_i ‖x_i‖² / λ, and the best
ν_i is known in closed form; see `_exact_blocks`. With a proximal term, see `_proximal`,
λ' replaces λ. An example whose gap was small rests for the next sweeps. Nothing here
decides when to stop.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_tuple, check_shape, restore

from cpython.pycapsule cimport PyCapsule_GetPointer
from cython.parallel cimport prange, threadid
from libc.stdint cimport uint32_t, uint64_t

from sklearn_structsvm._utils._matrix._rows cimport (
    Rows, ask_for, rows_add, rows_ask, rows_scores)
from sklearn_structsvm._utils._matrix._widen cimport no_room

# A gap is small below this share of the sweep's mean. Of shares from 0.03 to 1, and rests
# of up to 7 to 127 sweeps, these took few steps on all of text, census and letter data.
cdef double SMALL_GAP = 0.1
# An example rests for 1 sweep, then for 3, 7, ... as its gap stays small.
cdef int LONGEST_REST = 31

# How many steps ahead memory is prefetched, as the processor cannot predict the order:
# first where a row starts, and then the row.
cdef Py_ssize_t START_AHEAD = 24
cdef Py_ssize_t ROW_AHEAD = 12

# The average of w is updated after a sweep, but only once the rows of the steps since the
# last update had this many times the entries of a column of w.
cdef Py_ssize_t ENTRIES_PER_WEIGHT = 8
# w after sweep t has a weight of about t**3: the first half of the sweeps has 1/16 of the
# total weight.
cdef double AVERAGE_POWER = 3.0


cdef struct BitGenerator:
    # How the struct begins that NumPy publishes for random numbers in C. With its header,
    # the kernels would be built for one major version of NumPy.
    void* state
    uint64_t (*next_uint64)(void* state) noexcept nogil
    uint32_t (*next_uint32)(void* state) noexcept nogil


cdef class ExactAscent(ProximalIterate):
    """The iterate of exact block ascent; a subclass knows the shape of a block.

    Parameters
    ----------
    rows : Rows
    k : int
        Scores per example.
    weights : ndarray of shape (n,)
        p_i, non-negative, summing to 1. Examples of weight 0 are skipped.
    lam : float
        λ > 0.
    """

    is_rows = True

    def __init__(self, Rows rows, Py_ssize_t k, const double[::1] weights, double lam):
        cdef Py_ssize_t n = rows.n_rows
        check_shape("weights", weights, n)
        super().__init__((rows.n_features + (rows.bias != 0.0)) * k, lam)
        self.rows = rows
        self.k = k
        self.p = weights
        self.active_blocks = np.flatnonzero(weights)
        self.curvatures = rows.squared_norms() * np.asarray(weights)
        self.average = np.zeros(len(self.w))
        self.nu = np.zeros((n, k))
        self.loss_bar = np.zeros(n)
        self.gaps = np.zeros(n)
        # θ and Δν, and what a subclass needs in addition.
        self.work = np.zeros(5 * k)
        self.changed = np.zeros(k + 1, dtype=np.intc)
        self.order = self.active_blocks.copy()
        self.rests = np.zeros(n, dtype=np.intc)
        self.waits = np.zeros(n, dtype=np.intc)
        self.small = 0.0
        self.held = None
        self.n_steps = self.n_oracle_calls = self.n_averaged = 0
        self.entries = 0.0
        self.entries_per_step = <double> rows.starts[n] / n

    # ------------------------------------------------------------------ steps

    cdef Py_ssize_t maximize(
            self, Py_ssize_t i, const double* theta, double* delta, double* gap
            ) noexcept nogil:
        """Move ν_i to its best point, by `delta`; `gap` is g_i / p_i before the move.

        Returns how many entries of ν_i changed and lists them in `changed`. If any did,
        `delta` is 0 for the others.
        """
        return 0

    cdef double hinge_and_gap(
            self, Py_ssize_t i, const double* theta, double* gap) noexcept nogil:
        """max_y H_i(y), and g_i / p_i."""
        return 0.0

    cdef double hinge_and_slope(
            self, Py_ssize_t i, const double* theta, const double* along, double step,
            double* slope) noexcept nogil:
        """max_y H_i(y) at the scores θ + step · along, and its derivative in the step."""
        return 0.0

    cdef int step(self, Py_ssize_t i) except -1 nogil:
        """Maximize over block i."""
        cdef double* theta = &self.work[0]
        cdef double* delta = theta + self.k
        cdef double gap
        cdef Py_ssize_t n_changed
        if rows_scores(&self.rows.view, i, &self.w[0], self.k, theta):
            no_room()
        n_changed = self.maximize(i, theta, delta, &gap)
        if n_changed and rows_add(
                &self.rows.view, i, -self.p[i] / self.proximal_lam(), delta, n_changed,
                &self.changed[0], self.k, &self.w[0]):
            no_room()
        self.gaps[i] = self.p[i] * gap
        return 0

    def run(self, const Py_ssize_t[::1] blocks):
        """One step on each of the given blocks, in their order."""
        cdef Py_ssize_t b, i, n = blocks.shape[0]
        with nogil:
            for b in range(n):
                if b + START_AHEAD < n:
                    i = blocks[b + START_AHEAD]
                    ask_for(&self.rows.starts[i], 1)
                    ask_for(&self.p[i], 1)
                    ask_for(&self.curvatures[i], 1)
                    ask_for(&self.gaps[i], 1)
                if b + ROW_AHEAD < n:
                    i = blocks[b + ROW_AHEAD]
                    ask_for(&self.nu[i, 0], self.k * sizeof(double))
                    rows_ask(&self.rows.view, i)
                self.step(blocks[b])
        self.n_steps += n
        self.n_oracle_calls += n
        self.entries += n * self.entries_per_step

    def draw_sweep(self, rng):
        """The examples that do not rest, in a random order."""
        cdef Py_ssize_t b, other, i, n = 0
        cdef Py_ssize_t[::1] order = self.order
        cdef BitGenerator* bits = <BitGenerator*> PyCapsule_GetPointer(
            rng.bit_generator.capsule, "BitGenerator")
        with rng.bit_generator.lock, nogil:
            for b in range(order.shape[0]):
                i = order[b]
                if self.waits[i] > 0:
                    self.waits[i] -= 1
                else:
                    order[b] = order[n]
                    order[n] = i
                    n += 1
            for b in range(n - 1, 0, -1):
                # Almost uniform, since n is far below 2**32.
                other = (<uint64_t> bits.next_uint32(bits.state) * (b + 1)) >> 32
                i = order[b]
                order[b] = order[other]
                order[other] = i
        return np.asarray(order)[:n]

    def end_sweep(self, const Py_ssize_t[::1] blocks):
        """Let the blocks just swept rest if their gaps were small."""
        cdef Py_ssize_t b, i, n = blocks.shape[0]
        cdef double total = 0.0
        if n == 0:
            return
        with nogil:
            for b in range(n):
                total += self.gaps[blocks[b]]
            self.small = SMALL_GAP * total / n
            for b in range(n):
                i = blocks[b]
                if self.gaps[i] > self.small:
                    self.rests[i] = 0
                else:
                    self.rests[i] = min(2 * self.rests[i] + 1, LONGEST_REST)
                    self.waits[i] = self.rests[i]

    def update_average(self):
        """Update the average of w (Shamir and Zhang 2013, section 3.1), if it is due.

        With acceleration there is none, since w is ahead of its average.
        """
        cdef Py_ssize_t j
        cdef double share
        if self.kappa > 0.0 or self.is_part:
            self.n_averaged = 0
            return
        if self.entries < ENTRIES_PER_WEIGHT * self.rows.n_features:
            return
        self.entries = 0.0
        self.n_averaged += 1
        share = (AVERAGE_POWER + 1.0) / (AVERAGE_POWER + self.n_averaged)
        with nogil:
            for j in range(self.w.shape[0]):
                self.average[j] += share * (self.w[j] - self.average[j])

    # ------------------------------------------------------------------ parts

    def become_part(self):
        """Become a part of an iterate that is kept elsewhere; a part keeps no average."""
        self.is_part = True
        self.average = np.zeros(0)

    def snapshot(self, blocks):
        """Save the dual variables of these blocks before a round, for `scale_update`."""
        self.before = np.asarray(self.nu)[blocks], np.asarray(self.loss_bar)[blocks]
        self.loss_before = self.loss

    def scale_update(self, blocks, double gamma):
        """Scale the last round's change of these blocks by gamma."""
        if gamma == 1.0:
            return
        for now, before in zip((self.nu, self.loss_bar), self.before):
            now = np.asarray(now)
            now[blocks] = before + gamma * (now[blocks] - before)

    @property
    def loss_change(self):
        """The change of Σ p_i ℓ_i in this round."""
        return self.loss - self.loss_before

    def forget_counts(self):
        """Count steps and calls from zero again."""
        self.n_steps = self.n_oracle_calls = 0

    # ----------------------------------------------------------- certificates

    def check_gaps(self, int n_threads=1):
        """True gaps of all blocks at w; returns (Σ p_i H_i, Σ g_i).

        Examples whose gaps are not small no longer rest.
        """
        cdef Py_ssize_t i
        hinge = self._pass(self.w, True, n_threads)
        for i in range(self.p.shape[0]):
            if self.gaps[i] > self.small:
                self.waits[i] = self.rests[i] = 0
        return hinge, float(np.sum(self.gaps))

    def hinge(self, const double[::1] w, int n_threads=1):
        """Σ p_i max_y L_i(y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩ at any w."""
        check_shape("w", w, self.w.shape[0])
        return self._pass(w, False, n_threads)

    def _pass(self, const double[::1] w, bint keep_gaps, int n_threads):
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef Py_ssize_t b, n = blocks.shape[0], k = self.k
        cdef int failed = 0
        # Without weights the rows need not be read: their scores are zero.
        cdef const double* weights = &w[0] if np.any(w) else NULL
        n_threads = max(1, min(n_threads, n))
        cdef double[::1] theta = np.zeros(n_threads * k), hinges = np.zeros(n)
        if n_threads == 1:
            with nogil:
                for b in range(n):
                    failed |= self._check(
                        blocks[b], weights, &theta[0], keep_gaps, &hinges[b])
        else:
            for b in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
                failed |= self._check(
                    blocks[b], weights, &theta[threadid() * k], keep_gaps, &hinges[b])
        if failed:
            no_room()
        self.n_oracle_calls += n
        # Summed in order, whatever the number of threads.
        return float(np.sum(hinges))

    cdef bint _check(
            self, Py_ssize_t i, const double* w, double* theta, bint keep_gap,
            double* hinge) noexcept nogil:
        """Set p_i max_y H_i(y); returns whether it is out of memory."""
        cdef double gap
        if w and rows_scores(&self.rows.view, i, w, self.k, theta):
            return True
        hinge[0] = self.p[i] * self.hinge_and_gap(i, theta, &gap)
        if keep_gap:
            self.gaps[i] = self.p[i] * gap
        return False

    @property
    def estimated_gap(self):
        """The gap if all block gaps were as last seen; some are stale."""
        return float(np.sum(self.gaps)) + self.proximal_gap()

    @property
    def block_gaps(self):
        """p_i g_i as last seen, a view."""
        return np.asarray(self.gaps)

    @property
    def loss(self):
        """Σ p_i ℓ_i."""
        return float(np.dot(self.p, self.loss_bar))

    @property
    def dual_objective(self):
        """D(α) of the dual point itself, whatever the proximal term."""
        return float(self.dual_value(self.loss))

    def plane(self):
        """B, offset and Xᵀ B of the plane below the risk that the dual point defines.

        The plane is Σ_i p_i Σ_y α_i(y) H_i(y), which is at most
        R(w) = Σ_i p_i max_y H_i(y). Its minimum with the regularizer is the dual
        objective.
        """
        B = np.asarray(self.p)[:, np.newaxis] * np.asarray(self.nu)
        return B, self.loss, -self.lam * self.dual_image()

    @property
    def average_weights(self):
        """The average, a view; None if there is none yet."""
        return np.asarray(self.average) if self.n_averaged else None

    # ------------------------------------------------------- planes, see `mixture`

    def scores(self, const double[::1] w, int n_threads=1):
        """θ_i = Wᵀx_i of all examples, of shape (n, k); zero if p_i is."""
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef Py_ssize_t b, n = blocks.shape[0]
        cdef int failed = 0
        check_shape("w", w, self.w.shape[0])
        found = np.zeros((self.rows.n_rows, self.k))
        cdef double[:, ::1] theta = found
        if not np.any(w):
            return found
        for b in prange(n, nogil=True, num_threads=max(1, min(n_threads, n)),
                        schedule="static"):
            failed |= rows_scores(
                &self.rows.view, blocks[b], &w[0], self.k, &theta[blocks[b], 0])
        if failed:
            no_room()
        self.n_oracle_calls += n
        return found

    def hinge_along(self, const double[:, ::1] theta, const double[:, ::1] along,
                    double step):
        """Σ p_i max_y H_i(y) with the scores θ + step · along, and its slope."""
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef Py_ssize_t b, i
        cdef double hinge = 0.0, total = 0.0, slope
        with nogil:
            for b in range(blocks.shape[0]):
                i = blocks[b]
                hinge += self.p[i] * self.hinge_and_slope(
                    i, &theta[i, 0], &along[i, 0], step, &slope)
                total += self.p[i] * slope
        return hinge, total

    cdef Py_ssize_t answer(
            self, Py_ssize_t i, const double* theta, unsigned char* held, double* delta,
            double* loss) noexcept nogil:
        """Write the labeling of the largest H_i to `held`; its μ(y) - μ(y_i) and L_i(y).

        Returns how many entries of `delta` are nonzero, and lists them in `changed`.
        """
        return 0

    cdef void mix_block(
            self, Py_ssize_t i, double kept, Py_ssize_t n, const Py_ssize_t* planes,
            const double* shares, const unsigned char* held) noexcept nogil:
        """Scale ν_i and ℓ_i by `kept`, and add the shares of n labelings held."""

    def cut(self, const double[:, ::1] theta, Py_ssize_t j, Py_ssize_t most):
        """(a, b) of the plane ⟨a, w⟩ + b below the risk, by the answers to these scores.

        The answers are held as number j of at most `most`, the same in all calls.
        """
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef Py_ssize_t b, i, n_changed
        cdef double* delta = &self.work[0] + self.k
        cdef double loss, b_total = 0.0
        a_total = np.zeros(self.w.shape[0])
        cdef double[::1] target = a_total
        if self.held is None:
            self.held = np.zeros((self.rows.n_rows, most, self.n_held_bytes), np.uint8)
        with nogil:
            for b in range(blocks.shape[0]):
                i = blocks[b]
                n_changed = self.answer(
                    i, &theta[i, 0], &self.held[i, j, 0], delta, &loss)
                b_total += self.p[i] * loss
                if n_changed and rows_add(
                        &self.rows.view, i, self.p[i], delta, n_changed,
                        &self.changed[0], self.k, &target[0]):
                    no_room()
        return a_total, b_total

    def take_plane(self, const double[::1] w, Py_ssize_t j, Py_ssize_t most,
                   int n_threads=1, bint cached=False):
        """(Σ p_i max_y H_i(y), a, b) at any w; the plane is held as number j."""
        theta = self.scores(w, n_threads)
        hinge, _ = self.hinge_along(theta, theta, 0.0)
        return hinge, *self.cut(theta, j, most)

    def mix(self, const double[::1] shares, u):
        """Replace α by shares[0] α plus the other shares of the planes; u is its image.

        Shares are non-negative and sum to 1; share j + 1 is that of plane j.
        """
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef const Py_ssize_t[::1] planes = np.flatnonzero(shares[1:])
        cdef Py_ssize_t b, n = planes.shape[0]
        if n:
            with nogil:
                for b in range(blocks.shape[0]):
                    self.mix_block(blocks[b], shares[0], n, &planes[0], &shares[1],
                                   &self.held[blocks[b], 0, 0])
        self.set_dual_image(u)

    # ------------------------------------------------------------ dual states

    def rebuild_weights(self):
        """w from the blocks."""
        cdef const Py_ssize_t[::1] blocks = self.active_blocks
        cdef Py_ssize_t b, i, c
        np.asarray(self.w)[...] = 0.0
        for c in range(self.k):
            self.changed[c] = c
        with nogil:
            for b in range(blocks.shape[0]):
                i = blocks[b]
                if rows_add(
                        &self.rows.view, i, -self.p[i] / self.lam, &self.nu[i, 0],
                        self.k, &self.changed[0], self.k, &self.w[0]):
                    no_room()
        self.draw_to_center()

    def get_state(self):
        """The dual point, picklable, as for plain steps of `BlockFrankWolfe`.

        It includes the average, which may be the better weights.
        """
        state = {"blocks": np.array(self.nu), "loss": np.array(self.loss_bar)}
        state |= self.primal_state()
        if self.n_averaged:
            state["average"] = np.array(self.average)
        if self.is_part:
            state["before"] = self.before, self.loss_before
        return state

    def set_state(self, state):
        """Start from a dual point of the same examples, at any λ and weights.

        Raises
        ------
        ValueError
            If the dual point is not one of these examples.
        """
        restore("blocks", self.nu, state["blocks"])
        restore("loss", self.loss_bar, state["loss"])
        # Of a part, what `snapshot` had saved.
        self.before, self.loss_before = as_tuple(
            "before", state.get("before", (None, 0.0)), 2)
        self.rebuild_weights()
        if "average" in state:
            # It counts as the average of one sweep, and soon has little weight.
            restore("average", self.average, state["average"])
            self.n_averaged = 1
        self.restore_primal(state)
