"""Dual ascent over the marginals of conditional random fields.

The dual of λ/2 ‖w‖² + Σ_i p_i log Σ_y exp ⟨θ_i, μ(y) - μ(y_i)⟩ is that of `_block_dual`
with the entropy H(α_i) instead of the loss ℓ_i, and a block's gap is p_i times the
Kullback-Leibler divergence of α_i from the distribution that the weights give. So α_i is
stored as a distribution of that kind, by its log factors η_i, with its marginals in ν_i
and its entropy in ℓ_i. If costs c_i are added to the scores (the softmax-margin of
Gimpel, Smith, "Softmax-margin CRFs", NAACL 2010), they are part of θ_i, and the dual has
the terms ⟨c_i, ν_i⟩, too.

A step goes from η to η' = η + γ (θ - η), and the marginals move by Δ. With
A = ⟨θ - η, Δ⟩, which is >= 0, and the squared norm Q of Δ's joint feature, the dual grows
by p [H' - H + ⟨θ, Δ⟩ - (p / 2λ') Q]. As the entropy is concave and has the gradient -η',
H' - H >= -⟨η', Δ⟩, and so the dual grows by at least

    p [(1 - γ) A - (p / 2λ') Q].

What is missing is the divergence of the old distribution from the new one,

    H' - H + ⟨η', Δ⟩ >= 0,

which is about γ A / 2. If the dual does not grow, a shorter step is tried: no line search
over the entropy is needed. For small Δ, A is proportional to γ and Q to γ², and the dual
grows most at γ* = 1 / (1 + (p / λ') Q / (γ A)). The next step on the block starts with
this length. The divergence before the step is A / 2γ up to higher orders, which serves as
the block's gap until the next check.

Le Priol, Piché, Lacoste-Julien, "Adaptive stochastic dual coordinate ascent for
conditional random fields", UAI 2018, take mixtures of marginals with a line search as
steps; this geometric mixture stores α_i in as many numbers as θ_i has.
"""
import numpy as np

from sklearn_structsvm._utils import tolerances
from sklearn_structsvm._utils.borders import as_floats, restore

from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dasum

from sklearn_structsvm._contract._oracle cimport BlockOracle
from sklearn_structsvm.solvers.blocks._block_dual cimport BlockDual


cdef extern from "_utils/_vector.h" nogil:
    void ask_ahead(Py_ssize_t n, const double* x) noexcept


# At first the true labels have these log odds: the weights are then close to zero. With
# lower odds, they are far off if λ is small; with higher odds, the first steps are
# wasted.
cdef double ODDS = 10.0

# The lengths of the first, longest and shortest step on a block; no step is more than
# STEP_GROWTH times as long as the one before.
cdef double FIRST_STEP = 0.1
cdef double LONGEST_STEP = 1.0 - tolerances.SUM_ROUNDING
cdef double LEAST_STEP = 1e-8
cdef double STEP_GROWTH = 4.0

# After a refused step, the share of the estimated best step that is tried next; and the
# number of trials in a visit.
cdef double SHARE_OF_BEST = 0.9
cdef enum:
    MOST_TRIALS = 20

# Mixtures with the truth that are tried: shares of the mass that has to go to the truth
# to be feasible without squares in the penalty.
LESS = np.append(0.25 ** np.arange(7), 0.0)

# Replaces probabilities that underflow.
cdef double TINY = tolerances.TINY


def dual_memory(BlockOracle oracle):
    """Bytes that a `MarginalAscent` takes: log factors and marginals of all blocks."""
    cdef Py_ssize_t i, n = 0
    for i in range(oracle.n_blocks):
        n += oracle.n_factors(i)
    return 2 * sizeof(double) * n


cdef class MarginalAscent(BlockDual):
    """The distributions of all blocks and the steps they can make.

    Parameters
    ----------
    oracle : BlockOracle
        An oracle that `has_sums`, with its initial dual state.
    weights, lam, l1_ratio, whole
        As for `BlockDual`.
    has_costs : bool
        Whether scores have parts that do not depend on the weights.
    """

    cdef readonly long long n_steps
    cdef bint has_costs
    cdef Py_ssize_t[::1] starts
    cdef double[::1] factors, tilted, lengths

    def __init__(self, BlockOracle oracle, const double[::1] weights, double lam,
                 double l1_ratio=0.0, MarginalAscent whole=None,
                 bint has_costs=False):
        cdef Py_ssize_t i, n = oracle.n_blocks
        super().__init__(oracle, weights, lam, l1_ratio=l1_ratio, whole=whole)
        self.n_steps = 0
        self.has_costs = has_costs
        if self.is_part:
            self.starts, self.factors = whole.starts, whole.factors
            self.lengths, self.tilted = whole.lengths, np.zeros_like(whole.tilted)
            return
        oracle.keep_grams()
        sizes = np.array([oracle.n_factors(i) for i in range(n)], dtype=np.intp)
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.factors = np.zeros(max(self.starts[n], 1))
        self.tilted = np.zeros(max(sizes.max(initial=0), 1))
        self.lengths = np.full(n, FIRST_STEP)
        for i in range(n):
            oracle.true_factors(i, ODDS, &self.factors[self.starts[i]])
        self._place_blocks()

    def _restore_some(self, state, places):
        before = as_floats("factors", state["factors"], np.size(state["factors"]))
        starts = np.asarray(state["starts"])
        is_known = starts.dtype.kind == "i" and starts.ndim == 1
        if not is_known or len(starts) <= places.max() + 1:
            raise ValueError("starts must be where the factors of each block are.")
        mine, factors = np.asarray(self.starts), np.asarray(self.factors)
        for i in np.flatnonzero(places >= 0):
            block = before[starts[places[i]]:starts[places[i] + 1]]
            restore("factors", factors[mine[i]:mine[i + 1]], block)

    def _place_blocks(self):
        """Compute marginals, entropies and weights from the factors."""
        cdef Py_ssize_t i, n = self.oracle.n_blocks
        cdef double slopes[2]
        with nogil:
            for i in range(n):
                if self.p[i] > 0.0:
                    self.oracle.load_factors(
                        i, &self.factors[self.starts[i]], &self.work[0])
                    self.oracle.tilt(
                        i, 0.0, &self.work[0], &self.factors[self.starts[i]],
                        &self.tilted[0], &self.first[0], NULL, slopes, &self.loss_bar[i])
                    self.oracle.move(i, 1.0, &self.first[0])
        self.n_oracle_calls += self.n_active_blocks
        self.rebuild_weights()

    cdef double visit(self, Py_ssize_t i, bint cached=False) except? -1.0 nogil:
        cdef double* work = &self.work[0]
        cdef double* factors = &self.factors[self.starts[i]]
        cdef double p = self.p[i], scale = p / self.proximal_lam()
        cdef double gamma = self.lengths[i], best, slope, growth, norm, entropy
        cdef double slopes[2]
        cdef int trial
        ask_ahead(self.starts[i + 1] - self.starts[i], factors)
        self.oracle.potentials(i, &self.w[0], work)
        self.n_steps += 1
        for trial in range(MOST_TRIALS):
            self.oracle.tilt(
                i, gamma, work, factors, &self.tilted[0], &self.first[0], &norm, slopes,
                &entropy)
            self.n_oracle_calls += 1
            slope = slopes[0]
            if trial == 0:
                self.gaps[i] = max(0.5 * p * slope / gamma, 0.0)
                self.tree.update(i, self.gaps[i])
            # If the marginals move only by rounding, because they are close to one or
            # zero or already those of the weights, the next step may have any length.
            best = LONGEST_STEP
            if slope > 0.0:
                best = min(1.0 / (1.0 + scale * norm / (gamma * slope)), LONGEST_STEP)
            growth = (1.0 - gamma) * slope - 0.5 * scale * norm
            growth += max(entropy - self.loss_bar[i] + slopes[1], 0.0)
            if slope <= 0.0 or growth >= 0.0:
                self.lengths[i] = max(min(best, STEP_GROWTH * gamma), LEAST_STEP)
                self.oracle.move(i, 1.0, &self.first[0])
                self.oracle.scatter(i, -scale, &self.first[0], &self.v[0])
                if self.is_part:
                    self.oracle.mark(i, &self.first[0], &self.pages[0])
                if self.is_mapped:
                    self.map_block(i, &self.first[0])
                self.loss_bar[i] = entropy
                memcpy(factors, &self.tilted[0],
                       (self.starts[i + 1] - self.starts[i]) * sizeof(double))
                return self.gaps[i]
            gamma = max(min(SHARE_OF_BEST * best, 0.5 * gamma), LEAST_STEP)
        self.lengths[i] = gamma
        return self.gaps[i]

    cdef int _check(
            self, Py_ssize_t i, const double* w, double lam, double* work,
            int* labels, double* hinge, double* mean, double* excess
            ) except -1 nogil:
        """p_i log Σ_y exp ⟨θ_i, μ(y) - μ(y_i)⟩, and p_i (H_i + ⟨θ_i, ν_i⟩)."""
        cdef double score, value
        self.oracle.potentials(i, w, work)
        self.oracle.block_score(i, work, &score)
        mean[0] = self.p[i] * (self.loss_bar[i] + score)
        self.oracle.log_sum(i, work, &value)
        hinge[0] = self.p[i] * value
        excess[0] = 0.0
        return 0

    @property
    def step_lengths(self):
        """The γ that the next step on each block tries first."""
        return np.asarray(self.lengths)

    def cost_terms(self):
        """⟨c_i, ν_i⟩ of all blocks for the costs c_i, the scores of zero weights."""
        cdef Py_ssize_t i
        terms = np.zeros(self.oracle.n_blocks)
        if not self.has_costs:
            return terms
        cdef double[::1] out = terms, zero = np.zeros(max(self.oracle.n_weights, 1))
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.potentials(i, &zero[0], &self.work[0])
                    self.oracle.block_score(i, &self.work[0], &out[i])
        return terms

    @property
    def loss(self):
        """Σ_i p_i (H_i + ⟨c_i, ν_i⟩)."""
        return float(np.dot(self.p, self.loss_bar) + np.dot(self.p, self.cost_terms()))

    def true_log_losses(self):
        """-log α_i(y_i) of all blocks."""
        cdef Py_ssize_t i
        cdef double score
        losses = np.zeros(self.oracle.n_blocks)
        cdef double[::1] out = losses
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self.oracle.load_factors(
                        i, &self.factors[self.starts[i]], &self.work[0])
                    self.oracle.block_score(i, &self.work[0], &score)
                    # With H = log Z - ⟨η, mean⟩, this is log Z - ⟨η, μ(y_i)⟩.
                    out[i] = max(self.loss_bar[i] + score, 0.0)
        return losses

    def dual_value_of(self, u, double loss):
        """D of the dual point, or of the best of its mixtures with the truth.

        A mixture of a share s of α and 1 - s of the true labelings has the image s u and
        the entropy

            s (H_i - a_i L_i) - s (1 - a_i) log s - m log m,    m = 1 - s + s a_i,

        where L_i = -log a_i is the log loss of α_i(y_i) = a_i. Without squares in the
        penalty, s has to make the mixture feasible.
        """
        if self.l1_ratio == 0.0:
            return super().dual_value_of(u, loss)
        sizes = np.abs(u)
        sizes = sizes[sizes > self.l1_ratio]
        if not len(sizes):
            return loss
        shares = 1.0 - (1.0 - self.l1_ratio / sizes.max()) * LESS
        entropies, losses = np.asarray(self.loss_bar), self.true_log_losses()
        likely = np.exp(-losses)
        rest = entropies - likely * losses
        costs, values = float(np.dot(self.p, self.cost_terms())), []
        for share in shares[:1] if self.l1_ratio == 1.0 else shares:
            truth = 1.0 - share + share * likely
            mixed = share * (rest - (1.0 - likely) * np.log(max(share, TINY)))
            mixed -= truth * np.log(np.maximum(truth, TINY))
            value = np.dot(self.p, mixed - entropies) + (share - 1.0) * costs
            if self.l1_ratio < 1.0:
                beyond = np.maximum(share * sizes - self.l1_ratio, 0.0)
                value -= 0.5 * self.lam * beyond.dot(beyond) / (1.0 - self.l1_ratio)
            values.append(value)
        return loss + max(values)

    @property
    def size_of_losses(self):
        """Σ_i p_i |η_i|, sums of magnitudes: entropies are differences of such terms."""
        cdef Py_ssize_t i
        cdef int size, one = 1
        cdef double total = 0.0
        for i in range(self.oracle.n_blocks):
            if self.p[i] > 0.0:
                size = <int> (self.starts[i + 1] - self.starts[i])
                total += self.p[i] * dasum(&size, &self.factors[self.starts[i]], &one)
        return total + float(np.dot(self.p, np.abs(self.cost_terms())))

    @property
    def largest_factor(self):
        """The largest |η|: logarithms of marginals have its rounding error."""
        factors = np.asarray(self.factors)
        return float(max(factors.max(), -factors.min()))

    def size_of_terms(self):
        """Σ_i p_i (|θ_i| + |η_i|), sums of magnitudes.

        Sums over labelings are as large as scores, entropies are differences of both, and
        a block's gap is a difference of entropies. All may be zero except for rounding,
        for example if only one labeling is possible.
        """
        cdef Py_ssize_t i
        cdef int size, one = 1
        cdef double entropy, total = 0.0
        cdef double slopes[2]
        cdef double* factors
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] == 0.0:
                    continue
                factors = &self.factors[self.starts[i]]
                size = <int> (self.starts[i + 1] - self.starts[i])
                self.oracle.potentials(i, &self.w[0], &self.work[0])
                self.oracle.tilt(i, 1.0, &self.work[0], factors, &self.tilted[0],
                                 &self.first[0], NULL, slopes, &entropy)
                total += self.p[i] * (
                    dasum(&size, &self.tilted[0], &one) + dasum(&size, factors, &one))
        return total

    def take_result(self, row, w):
        """Keep the best weights and the bound that another solver has found."""
        self.keep_weights(w, row["objective"])
        self.best_bound = max(self.best_bound, row["dual_objective"])
        self.n_oracle_calls = row["n_oracle_calls"]

    def go_to(self, const double[::1] w):
        """Make the distributions that weights w give the dual point."""
        cdef Py_ssize_t i
        as_floats("w", w, self.oracle.n_weights)
        with nogil:
            for i in range(self.oracle.n_blocks):
                if self.p[i] > 0.0:
                    self._take_factors(i, &w[0])
        self._place_blocks()

    cdef int _take_factors(self, Py_ssize_t i, const double* w) except -1 nogil:
        cdef double entropy
        cdef double slopes[2]
        cdef Py_ssize_t size = self.starts[i + 1] - self.starts[i]
        cdef double* factors = &self.factors[self.starts[i]]
        self.oracle.potentials(i, w, &self.work[0])
        self.oracle.tilt(i, 1.0, &self.work[0], factors, &self.tilted[0],
                         &self.first[0], NULL, slopes, &entropy)
        memcpy(factors, &self.tilted[0], size * sizeof(double))
        return 0

    # ------------------------------------------------------------------ parts

    def part(self, weights):
        """The part of the iterate made of the blocks with nonzero `weights`."""
        return MarginalAscent(
            self.oracle, weights, self.lam, self.l1_ratio, whole=self,
            has_costs=self.has_costs)

    def begin_pass_of(self, MarginalAscent part):
        """Pass the latest gaps on to a part."""
        part.tree.rebuild(np.where(np.asarray(part.p) > 0.0, self.gaps, 0.0))

    def end_pass_of(self, MarginalAscent part):
        """Add the counts of a part."""
        self.n_steps += part.n_steps
        self.n_oracle_calls += part.n_oracle_calls
        part.forget_counts()
        self.tree.rebuild(self.gaps)

    def forget_counts(self):
        """Count steps and calls from zero again."""
        self.n_steps = self.n_oracle_calls = 0

    cdef void save_before(self, const Py_ssize_t[::1] blocks) noexcept nogil:
        """Do nothing: the steps of a part are kept."""

    cdef int scale_changes(
            self, const Py_ssize_t[::1] blocks, double gamma) except -1 nogil:
        """Do nothing, for the same reason."""
        return 0

    @property
    def can_be_parted(self):
        """Whether several threads may move it at once."""
        return self.oracle.thread_safe

    @property
    def has_best_step(self):
        """False: a mixture of two distributions has no log factors of this form.

        So all steps of the parts are kept. The dual ascends if each part allows for the
        worst that the others can do: σ is the number of parts.
        """
        return False

    cdef double best_gamma(
            self, double loss_change, double product, double norm) noexcept nogil:
        """1: the whole step."""
        return 1.0

    # ------------------------------------------------------------------ states

    def get_state(self):
        """The dual point, picklable; see `set_state`."""
        state = {"factors": np.array(self.factors), "starts": np.array(self.starts),
                 "weights": np.array(self.w)}
        return state | self.primal_state()

    def set_state(self, state, places=None):
        """Start from a dual point of the same examples, at any λ and weights.

        Any finite log factors are a dual point. If the state has only weights, the dual
        point is the one that they give. With `places`, example i takes block places[i],
        and stays as it is if that is -1.

        Raises
        ------
        ValueError
            If lengths differ.
        """
        if self.kappa > 0.0:
            # With an L1 penalty, the first center.
            restore("weights", self.z, state["weights"])
            restore("weights", self.w_before, state["weights"])
        if "factors" not in state:
            self.go_to(as_floats("weights", state["weights"], self.oracle.n_weights))
            return
        if places is None:
            restore("factors", self.factors, state["factors"])
        else:
            self._restore_some(state, places)
        self._place_blocks()
        self.restore_primal(state)
