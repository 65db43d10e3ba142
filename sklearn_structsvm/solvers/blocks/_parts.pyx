r"""Parts of an iterate, which several threads or machines move at once.

Each of K parts has its own blocks of an iterate, and weights v_k = v at the beginning of
a round. During the round it makes its steps as if its blocks had σ times the weight, so
that they allow for what the others do meanwhile: λ'/σ replaces λ' in `_proximal`. Let
δ_k = (v_k - v) / σ be the change due to its dual variables, δ = Σ_k δ_k, and Δℓ the
change of Σ_i p_i ℓ_i. All changes together are one direction, along which the dual
objective of the proximal problem,

    D'(α) = ℓ + min_{lower <= w <= upper} λ'/2 ‖w‖² - λ' ⟨v, w⟩ + const.,

whose gradient in v is -λ' w and has the Lipschitz constant λ', grows at γ by at least

    γ [Δℓ - λ' ⟨w, δ⟩] - γ² λ'/2 ‖δ‖²,

and without a box by exactly that. The round ends with the best γ in [0, 1]; α is then
α_before + γ (α - α_before), a convex combination of dual points. So D' never falls,
whatever σ is: σ only decides how large γ is, and σ = K makes it one, as
‖Σ δ_k‖² <= K Σ ‖δ_k‖² (CoCoA+: Ma, Smith, Jaggi, Jordan, Richtárik and Takáč, "Adding vs.
averaging in distributed primal-dual optimization", ICML 2015).

A sparse δ stays sparse: the parts mark the pages of their weights that they change, and
all other pages are left alone.
"""
import numpy as np

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from sklearn_structsvm._utils._matrix._features cimport PAGE, clip, soft_threshold
from sklearn_structsvm._utils._memory cimport no_memory
from sklearn_structsvm.solvers.blocks._barrier cimport Barrier
from sklearn_structsvm.solvers.blocks._block_dual cimport BlockDual

cdef struct Part:
    double* v
    double* w
    unsigned char* pages


cdef class Parts:
    """An iterate and its parts.

    Parameters
    ----------
    whole : BlockDual
    parts : list of BlockDual
    """

    cdef BlockDual whole
    cdef list parts
    cdef Py_ssize_t n_parts
    cdef Part* at
    cdef double sigma
    cdef readonly Py_ssize_t n_pages
    # γ of the last round; of each part, ⟨w, δ⟩ and ‖δ‖² over its pages, and its Δℓ.
    cdef readonly double gamma
    cdef double[:, ::1] found
    cdef bint is_over
    cdef Barrier barrier

    def __init__(self, BlockDual whole, list parts):
        cdef Py_ssize_t k, d = whole.v.shape[0]
        cdef BlockDual part
        self.whole = whole
        self.parts = parts
        self.n_parts = len(parts)
        self.sigma = 1.0
        self.n_pages = (d + PAGE - 1) // PAGE
        self.found = np.zeros((self.n_parts, 3))
        self.barrier = Barrier(self.n_parts)
        self.at = <Part*> malloc(max(self.n_parts, 1) * sizeof(Part))
        if self.at == NULL:
            no_memory("the parts of an iterate")
        for k in range(self.n_parts):
            part = parts[k]
            part.pages = np.zeros(self.n_pages, dtype=np.uint8)
            self.at[k].v, self.at[k].w = &part.v[0], &part.w[0]
            self.at[k].pages = &part.pages[0]

    def __dealloc__(self):
        free(self.at)

    def refresh(self, double sigma):
        """Begin rounds with this σ, and the weights and the threshold of the whole."""
        cdef BlockDual part
        self.sigma, self.is_over = sigma, False
        self.barrier.mend()
        for part in self.parts:
            part.lam = self.whole.proximal_lam() / sigma
            part.kappa = part.l1_ratio = 0.0
            part.threshold = self.whole.threshold
            np.asarray(part.v)[...] = self.whole.v
            if part.is_mapped:
                np.asarray(part.w)[...] = self.whole.w

    cdef bint _difference(
            self, Py_ssize_t page, Py_ssize_t n, double* delta) noexcept nogil:
        """Compute δ on a page; return False if no part has changed the page."""
        cdef Py_ssize_t k, j, start = page * PAGE
        cdef double scale = 1.0 / self.sigma
        cdef const double* v = &self.whole.v[start]
        cdef const double* mine
        cdef bint is_changed = False
        for k in range(self.n_parts):
            if not self.at[k].pages[page]:
                continue
            mine = self.at[k].v + start
            for j in range(n):
                delta[j] = scale * (mine[j] - v[j]) + (delta[j] if is_changed else 0.0)
            is_changed = True
        return is_changed

    cdef void _compare(
            self, Py_ssize_t first, Py_ssize_t last, double* found) noexcept nogil:
        """⟨w, δ⟩ and ‖δ‖², over the pages from first to last."""
        cdef Py_ssize_t page, start, n, j
        cdef double[PAGE] delta
        found[0] = found[1] = 0.0
        for page in range(first, last):
            start = page * PAGE
            n = min(PAGE, self.whole.v.shape[0] - start)
            if self._difference(page, n, delta):
                for j in range(n):
                    found[0] += self.whole.w[start + j] * delta[j]
                    found[1] += delta[j] * delta[j]

    cdef void _join(
            self, double gamma, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Move the weights of the whole by γ δ, and copy them to the parts."""
        cdef Py_ssize_t page, k, start, n, j
        cdef double* v
        cdef double* w
        cdef bint has_box = self.whole.has_box, is_mapped = self.whole.is_mapped
        cdef double threshold = self.whole.threshold
        cdef double[PAGE] delta
        for page in range(first, last):
            start = page * PAGE
            n = min(PAGE, self.whole.v.shape[0] - start)
            if not self._difference(page, n, delta):
                continue
            v, w = &self.whole.v[start], &self.whole.w[start]
            for j in range(n):
                v[j] += gamma * delta[j]
            if threshold > 0.0:
                soft_threshold(n, v, threshold, w)
            if has_box:
                clip(n, w if threshold > 0.0 else v, &self.whole.lower[start],
                     &self.whole.upper[start], w)
            for k in range(self.n_parts):
                self.at[k].pages[page] = False
                memcpy(self.at[k].v + start, v, n * sizeof(double))
                if is_mapped:
                    memcpy(self.at[k].w + start, w, n * sizeof(double))

    cdef double _best_step(self) noexcept nogil:
        """The best γ along the sum of all parts' changes."""
        cdef Py_ssize_t k
        cdef double loss_change = 0.0, product = 0.0, norm = 0.0
        for k in range(self.n_parts):
            product += self.found[k, 0]
            norm += self.found[k, 1]
            loss_change += self.found[k, 2]
        return self.whole.best_gamma(loss_change, product, norm)

    def make_rounds(self, Py_ssize_t k, const Py_ssize_t[::1] blocks, Py_ssize_t n_rounds,
                    bint cached, Py_ssize_t first, Py_ssize_t last, is_over):
        """The rounds of part k, while other threads make those of the other parts.

        Parameters
        ----------
        k : int
        blocks : ndarray of intp
            Those of part k, in the order of the steps; each occurs at most once.
        n_rounds : int
        cached : bool
            Whether the steps are those of `run_cached`.
        first, last : int
            The pages that this thread combines.
        is_over : callable
            Asked after each round, by the thread of the first part: whether it was the
            last one.

        Returns
        -------
        float
            The sum of the gaps that `run_cached` sums up, or zero.
        """
        cdef BlockDual part = self.parts[k]
        cdef Py_ssize_t r, start, stop = 0, n = blocks.shape[0]
        cdef double gap = 0.0, gamma = 1.0
        try:
            with nogil:
                for r in range(n_rounds):
                    start, stop = stop, n * (r + 1) // n_rounds
                    part.save_before(blocks[start:stop])
                    gap += part.make_steps(blocks[start:stop], cached, k == 0)
                    if not self.barrier.wait(k):
                        break
                    self._compare(first, last, &self.found[k, 0])
                    self.found[k, 2] = part.loss_change
                    if not self.barrier.wait(k):
                        break
                    gamma = self._best_step()
                    self._join(gamma, first, last)
                    if k == 0:
                        self.gamma = gamma
                        with gil:
                            self.is_over = is_over()
                    if not self.barrier.wait(k):
                        break
                    part.scale_changes(blocks[start:stop], gamma)
                    if self.is_over:
                        break
        except BaseException:
            self.leave()
            raise
        return gap if cached else 0.0

    def leave(self):
        """End the rounds of all parts, which would wait for this thread."""
        self.barrier.leave()
