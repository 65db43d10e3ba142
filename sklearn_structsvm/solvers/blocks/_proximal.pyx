r"""Weights of a dual point, drawn toward a center: accelerated block steps move these.

A dual point α of

    P(w) = λ/2 ‖w‖² + H(w) over lower <= w <= upper,    H(w) = Σ_i p_i max_y H_i(y),

has u = Aα = -(1/λ) Σ_i p_i (joint feature of ν_i), the loss ℓ = Σ_i p_i ℓ_i and the dual
objective D(α) = ℓ + min_w λ/2 ‖w‖² - λ ⟨u, w⟩, whose minimum is at c = clip(u). The same
α is a dual point of the proximal problem P(w) + κ/2 ‖w - z‖² with a center z. With
λ' = λ + κ, its weights there are

    v = (λ u + κ z) / λ',    w = clip(v).

So block steps on the proximal problem are those on P itself, with these weights w and
with λ' instead of λ: along a direction Δ of block i, v changes by
-(p_i / λ') (joint feature of Δ).

*The certificate.* α stays a dual point of P, so D(α) <= min P whatever κ and z are. For
any w, with g_i = p_i [max_y H_i(y) - ℓ_i - ⟨θ_i, ν_i⟩] at w, Σ_i p_i ⟨θ_i, ν_i⟩ is
-λ ⟨u, w⟩, and thus

    P(w) - D(α) = Σ g_i - λ ⟨u, w⟩ + λ/2 ‖w‖² + λ ⟨u, c⟩ - λ/2 ‖c‖²
                = Σ g_i + λ/2 (‖w - u‖² - ‖c - u‖²).

The last term is `proximal_gap`. It is not negative, as c is the point of the box nearest
to u; without a box it is λ/2 ‖w - u‖². It is zero if κ is.

*Elastic net.* With the penalty

    Ω(w) = λ ((1 - ρ)/2 ‖w‖² + ρ ‖w‖₁)

instead of λ/2 ‖w‖², c minimizes Ω(w) - λ ⟨u, w⟩ over the box, and with
λ' = (1 - ρ) λ + κ

    v = (λ u + κ z) / λ',    w = clip(S(v, ρ λ / λ')),

where S moves each number toward zero by the second argument, but not past zero. As
before, the conjugate of the penalty is smooth with the constant 1/λ', and the steps are
the same. In the gap, Ω(w) + λ ⟨u, c - w⟩ - Ω(c) replaces the last term. For ρ = 1, κ must
be positive, and D(α) is -inf unless all |u_j| <= 1.

*Subtracting a plane.* If a plane ⟨a, w⟩ + b is subtracted from P, as a step of
`concave_convex` does, u is Aα + a/λ. Everything above still holds, except that b is
subtracted from D as well: Σ_i p_i ⟨θ_i, ν_i⟩ is ⟨a, w⟩ - λ ⟨u, w⟩.

*The path.* If λ, κ and the dual mass are scaled by ρ, then u, v and w do not change, g_i
becomes g_i + (1 - ρ) m_i with m_i = p_i (ℓ_i + ⟨θ_i, ν_i⟩), and the gap becomes

    P(w) - D(α) + (1 - ρ) [D(α) - λ/2 ‖w‖²],

at this w and at any other; at this one, D(α) - λ/2 ‖w‖² = Σ m_i - `proximal_gap`. The gap
is linear in ρ: if both ends are ε-optimal, so are all λ in between.

*Acceleration* (Lin, Mairal and Harchaoui, "A universal catalyst for first-order
optimization", NeurIPS 2015) moves the center to y = w + β (w - w'), where w' are the
weights at the last center, β = (1 - √q) / (1 + √q) and q = λ / λ'.
"""
import numpy as np

from sklearn_structsvm._utils.borders import as_floats, as_tuple, check_shape, restore
from sklearn_structsvm.solvers.loop import Rounding

from libc.math cimport sqrt
from sklearn_structsvm._utils._matrix._features cimport soft_threshold


cdef class ProximalIterate:
    """λ, κ and the weights of a dual point.

    Attributes
    ----------
    lam, kappa, l1_ratio : float
        λ > 0, κ >= 0 and ρ from 0 to 1. κ is 0 at first, so that w = c. With ρ > 0, κ is
        λ at first and the center is zero: with a small quadratic penalty, c may be very
        large.
    has_box, is_mapped : bool
        Whether w has box constraints, and whether w differs from v.
    is_rows, is_remote : bool
        Whether the examples are rows, so that `hinge_along` searches along a line, and
        whether they are in other processes.
    """

    is_rows = False
    is_remote = False

    def __init__(self, Py_ssize_t n_weights, double lam, lower=None, upper=None,
                 double l1_ratio=0.0):
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.kappa = 0.0
        self.bound_excess = 0.0
        self.best_weights = None
        self.best_hinge = np.nan
        self.minus_a, self.minus_b = None, 0.0
        self.rounding, self.best_bound = Rounding(), -np.inf
        self.v = np.zeros(n_weights)
        self.w = self.v
        self.z = self.w_before = np.zeros(0)
        self.has_box = lower is not None
        self.is_mapped = self.has_box or l1_ratio > 0.0
        if l1_ratio > 0.0:
            self.kappa = lam
            self.z, self.w_before = np.zeros(n_weights), np.zeros(n_weights)
        if self.is_mapped:
            self.w = np.zeros(n_weights)
        self.set_threshold()
        if self.has_box:
            self.lower, self.upper = lower, upper
            check_shape("lower", self.lower, n_weights)
            check_shape("upper", self.upper, n_weights)
            self._map()

    cdef double proximal_lam(self) noexcept nogil:
        """λ' = (1 - ρ) λ + κ."""
        return (1.0 - self.l1_ratio) * self.lam + self.kappa

    cdef void set_threshold(self) noexcept nogil:
        self.threshold = self.l1_ratio * self.lam / self.proximal_lam()

    def clipped(self, v):
        """v within the box."""
        return np.clip(v, self.lower, self.upper) if self.has_box else v

    def _map(self):
        """Compute w from v."""
        cdef double[::1] w = self.w
        if self.threshold > 0.0:
            with nogil:
                soft_threshold(w.shape[0], &self.v[0], self.threshold, &w[0])
        if self.has_box:
            v = self.w if self.threshold > 0.0 else self.v
            np.clip(v, self.lower, self.upper, out=np.asarray(self.w))

    def weights_of(self, u):
        """c: the weights of a dual point with u = Aα if there is no center."""
        if self.l1_ratio > 0.0:
            u = u - np.clip(u, -self.l1_ratio, self.l1_ratio)
            u /= 1.0 - self.l1_ratio
        return self.clipped(u)

    def penalty(self, w):
        """Ω(w) minus the plane that is subtracted."""
        if self.minus_a is None:
            return self._norms(w)
        return self._norms(w) - w.dot(self.minus_a) - self.minus_b

    def subtract_plane(self, a, double b):
        """From now on minimize P(w) - ⟨a, w⟩ - b, without changing α."""
        check_shape("a", a, self.v.shape[0])
        self.minus_a, self.minus_b = a, b
        self.rebuild_weights()

    def _norms(self, w):
        """Ω(w)."""
        squares = 0.5 * self.lam * w.dot(w)
        if self.l1_ratio == 0.0:
            return squares
        sizes = self.lam * float(np.abs(w).sum())
        return (1.0 - self.l1_ratio) * squares + self.l1_ratio * sizes

    @property
    def weights(self):
        """w, a view."""
        return np.asarray(self.w)

    def dual_image(self):
        """u = Aα."""
        if self.kappa == 0.0:
            return np.multiply(1.0 - self.l1_ratio, self.v)
        u = np.multiply(self.proximal_lam() / self.lam, self.v)
        u -= np.multiply(self.kappa / self.lam, self.z)
        return u

    def dual_value(self, double loss):
        """D(α) of the current dual point, whose loss is `loss`."""
        return self.dual_value_of(self.dual_image(), loss) - self.minus_b

    def dual_value_of(self, u, double loss):
        """D of any dual point, from its Aα and its loss."""
        if self.l1_ratio == 1.0 and np.abs(u).max(initial=0.0) > 1.0:
            return -np.inf
        if self.l1_ratio == 1.0 and not self.has_box:
            return loss
        c = self.weights_of(u)
        if self.l1_ratio > 0.0:
            return loss - self.lam * u.dot(c) + self._norms(c)
        return loss - self.lam * (u.dot(c) - 0.5 * c.dot(c))

    @property
    def size_of_losses(self):
        """The sizes of the terms of which the loss is a difference, if it is one."""
        return 0.0

    @property
    def largest_factor(self):
        """The largest number that marginals are computed from, if they are."""
        return 0.0

    def lower_bound(self):
        """D(α) of the dual point alone, lowered by the rounding errors of its terms.

        Unlike the difference of P(w) and the gap, it has no terms of the size of w. The
        error of u counts as well: with few squares in the penalty, D falls steeply
        where u is beyond its bounds.
        """
        rounding, loss = self.rounding, self.loss
        error = rounding.of_means / self.lam
        error *= 1.0 + self.largest_factor / rounding.n_terms
        u = self.dual_image()
        value = self.dual_value_of(u + np.sign(u) * error, loss)
        if not np.isfinite(value):
            return -np.inf
        # The loss is a sum of the changes by all steps, also those of earlier fits.
        terms = 32.0 * loss, value - loss, self.minus_b, self.size_of_losses
        return value - self.minus_b - rounding.of_values(0.0, *terms)

    def proximal_gap(self):
        """The part of the gap at w in addition to Σ g_i."""
        cdef double ratio = self.proximal_lam() / self.lam
        cdef double share = self.kappa / self.lam, gap = 0.0, u, away
        cdef Py_ssize_t j
        if self.kappa == 0.0:
            return 0.0
        if self.l1_ratio == 1.0 and not self.has_box:
            # Elsewhere w is zero, and |u| at most 1.
            used = self._used()
            weights = self.weights[used]
            image = np.multiply(ratio, np.asarray(self.v)[used])
            image -= np.multiply(share, np.asarray(self.z)[used])
            gap = self._norms(weights) - self.lam * image.dot(weights)
            return gap - self.dual_value_of(image, 0.0)
        if self.l1_ratio > 0.0:
            image, weights = self.dual_image(), self.weights
            gap = self._norms(weights) - self.lam * image.dot(weights)
            return gap - self.dual_value_of(image, 0.0)
        with nogil:
            for j in range(self.v.shape[0]):
                u = ratio * self.v[j] - share * self.z[j]
                away = self.w[j] - u
                gap += away * away
                if self.has_box:
                    away = min(max(u, self.lower[j]), self.upper[j]) - u
                    gap -= away * away
        return 0.5 * self.lam * gap

    def _used(self):
        """Which weights or centers are not zero."""
        cdef Py_ssize_t j, n = 0, m = self.v.shape[0]
        cdef const double* w = &self.w[0]
        cdef const double* z = &self.z[0]
        for j in range(m):
            n += w[j] != 0.0 or z[j] != 0.0
        places = np.empty(n, dtype=np.intp)
        cdef Py_ssize_t[::1] out = places
        n = 0
        for j in range(m):
            if w[j] != 0.0 or z[j] != 0.0:
                out[n] = j
                n += 1
        return places

    def keep_weights(self, weights, double objective=float("nan")):
        """Store these as the best weights so far, or None; nothing may change them."""
        self.best_weights = weights
        if weights is not None:
            self.best_hinge = objective - self.penalty(weights)

    def better_weights(self, double objective, double slack, int n_threads=1):
        """(w, P(w)) of the best weights so far, or None if they are not good enough.

        They must be better than `objective`, or worse by at most `slack`.
        """
        best = self.best_weights
        if best is None:
            return None, objective
        if np.isnan(self.best_hinge):
            self.best_hinge = self.hinge(best, n_threads=n_threads)
        there = self.best_hinge + self.penalty(best)
        if there < objective or there - objective <= slack:
            return best, there
        self.keep_weights(None)
        return None, objective

    # ------------------------------------------------------------------- parts

    @property
    def unclipped_weights(self):
        """v, a view: the weights before they are mapped."""
        return np.asarray(self.v)

    def set_weights(self, const double[::1] v, double lam):
        """Set v and λ' from elsewhere, for a part of another iterate."""
        check_shape("v", v, self.v.shape[0])
        self.lam, self.kappa = lam, 0.0
        self.set_threshold()
        np.asarray(self.v)[...] = v
        self._map()

    def set_dual_image(self, const double[::1] u):
        """Set Aα from elsewhere."""
        check_shape("u", u, self.v.shape[0])
        np.asarray(self.v)[...] = u
        self.draw_to_center()

    def advance(self, const double[::1] delta, double gamma):
        """Move the weights to v + γ δ."""
        check_shape("delta", delta, self.v.shape[0])
        np.asarray(self.v)[...] += np.multiply(gamma, delta)
        self._map()

    @property
    def has_best_step(self):
        """Whether it can take a share of its parts' steps; see `best_step`."""
        return True

    def best_step(self, double loss_change, double product, double norm):
        """γ in [0, 1] along δ, with ⟨w, δ⟩ and ‖δ‖²; see `_parts`."""
        return self.best_gamma(loss_change, product, norm)

    cdef double best_gamma(
            self, double loss_change, double product, double norm) noexcept nogil:
        """The same."""
        cdef double lam = self.proximal_lam()
        cdef double gain = loss_change - lam * product
        if not gain > 0.0:
            return 0.0
        return min(gain / (lam * norm), 1.0) if norm > 0.0 else 1.0

    # ------------------------------------------------------------------ center

    def set_kappa(self, double kappa):
        """Change κ, but not α and the center; the first center is w."""
        if self.kappa == 0.0:
            self.z = np.array(self.w)
            self.w_before = np.array(self.w)
        np.asarray(self.v)[...] = self.dual_image()
        self.kappa = kappa
        if kappa == 0.0:
            self.z = self.w_before = np.zeros(0)
        self.set_threshold()
        self.draw_to_center()

    def draw_to_center(self):
        """Replace v = u by v = (λ u + κ z) / λ', and update w."""
        v = np.asarray(self.v)
        if self.kappa > 0.0 or self.l1_ratio > 0.0:
            v *= self.lam / self.proximal_lam()
        if self.kappa > 0.0:
            v += np.multiply(self.kappa / self.proximal_lam(), self.z)
        self._map()

    def extrapolate(self, double beta):
        """Move the center to w + β (w - w')."""
        cdef double share = self.kappa / self.proximal_lam(), w, y
        cdef Py_ssize_t j
        with nogil:
            for j in range(self.v.shape[0]):
                w = self.w[j]
                y = w + beta * (w - self.w_before[j])
                self.w_before[j] = w
                self.v[j] += share * (y - self.z[j])
                self.z[j] = y
        self._map()

    def extrapolate_each(self, double[::1] t):
        """The same with a momentum per weight, β = (t - 1) / t' as its t grows to t'.

        It restarts at t = 1 if w - z and w - w' have opposite signs: the restart of
        O'Donoghue and Candès, "Adaptive restart for accelerated gradient schemes", 2015,
        weight by weight.
        """
        cdef double share = self.kappa / self.proximal_lam(), y, change, before
        cdef Py_ssize_t j
        check_shape("t", t, self.v.shape[0])
        cdef double* v = &self.v[0]
        cdef double* w = &self.w[0]
        cdef double* z = &self.z[0]
        cdef double* w_before = &self.w_before[0]
        with nogil:
            for j in range(self.v.shape[0]):
                if w[j] == 0.0 and z[j] == 0.0:
                    if w_before[j] != 0.0:
                        w_before[j] = 0.0
                    continue
                change = w[j] - w_before[j]
                before = t[j] if (w[j] - z[j]) * change >= 0.0 else 1.0
                t[j] = 0.5 * (1.0 + sqrt(1.0 + 4.0 * before * before))
                y = w[j] + (before - 1.0) / t[j] * change
                w_before[j] = w[j]
                v[j] += share * (y - z[j])
                z[j] = y
                # Where neither was nonzero, v has not changed.
                soft_threshold(1, &v[j], self.threshold, &w[j])
        if self.has_box:
            self._map()

    def primal_state(self):
        """All that a warm start at w needs besides the dual point; picklable."""
        state = {}
        if self.best_weights is not None:
            state["best"] = np.array(self.best_weights)
        if self.kappa > 0.0:
            state["center"] = (self.kappa / self.lam, np.array(self.z),
                               np.array(self.w_before))
        return state

    def restore_primal(self, state):
        """Restore a state from `primal_state`."""
        self.keep_weights(None)
        if "best" in state:
            self.keep_weights(np.array(self.v))
            restore("best", self.best_weights, state["best"])
        if "center" not in state:
            return
        ratio, z, w_before = as_tuple("center", state["center"], 3)
        ratio = float(as_floats("The proximal term", ratio))
        if not 0.0 < ratio < np.inf:
            raise ValueError(f"The proximal term must be positive; got {ratio!r} λ.")
        np.asarray(self.v)[...] = self.dual_image()
        self.z, self.w_before = np.array(self.v), np.array(self.v)
        restore("center", self.z, z)
        restore("weights before", self.w_before, w_before)
        self.kappa = ratio * self.lam
        self.set_threshold()
        self.draw_to_center()
