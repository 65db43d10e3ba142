"""Nesterov's excessive gap technique over structures: Pragam with marginals for its dual.

The method of [1]_ keeps a dual point, and smooths the primal objective with a strongly
convex function of it. For structures, the paper chooses the squared length of the
marginals of the cliques. Each step is then a projection onto their polytope: a quadratic
program for each example, which its Algorithm 3 solves by rounds of conjugate gradients.
Here the function is the relative entropy to the uniform distribution over the labelings.
It is strongly convex as well, and has closed forms: the smoothed maximum is a
log-partition function, and its maximizers are the marginals of an exponential family. One
sweep of sum-product over a tree and back computes both, up to rounding. So marginals are
consistent by construction, no inner iterations add errors to the condition, and no dual
variable has to be stored: with

    P_w,μ(y) in proportion to exp(H_i(y; w) / μ),    H_i affine in w,

the paper's step from P_w,μ (its gradient mapping, with a Bregman divergence for the
squared distance) along the dual gradient at β, which is H at w(β), ends at

    P_w⁺,μ⁺    for w⁺ = (1 - τ) w + τ w(β), μ⁺ = (1 - τ) μ,

exactly the distributions with which the next iteration begins. An iteration is one sweep
over all examples, and the dual point, a mixture of such distributions, is represented by
its joint feature V and its loss alone.

The paper leaves open how to choose the Lipschitz constant L, of which a true value is far
too large. Here it is estimated: each sweep yields all terms of the inequality that
maintains the excessive gap condition, so each step is as long as the inequality allows
(`EntropicExcessiveGap.holds`).
"""

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.loop import Rounding, certified, run_passes

# An estimate of the Lipschitz constant grows by this factor if the condition fails, and
# shrinks by the other factor after each step for which it holds. One sweep in seven is
# repeated.
ESTIMATE_GROWTH = 1.2
ESTIMATE_DECAY = 0.97


def run_excessive_gap(
    oracle, weights, lam, *, max_iter=10_000, n_threads=1, rounding=None, **limits
):
    """Minimize λ/2 ||w||² + Σ_i p_i max_y [L_i(y) - ⟨w, φ(x_i, y_i) - φ(x_i, y)⟩].

    The gap falls as 4 L D / ((k + 1) (k + 2)), or twice that because L is estimated,
    where L = Σ_i p_i r_i² / (4 λ) with r_i the largest distance between joint features of
    two labelings of example i, and D = Σ_i p_i log(number of its labelings). It needs
    memory for a few vectors of the length of w and for the oracle's blocks.

    `oracle`: an oracle that `has_marginals`. Its blocks are overwritten. `weights`,
    `lam` as for `start_bcfw`. `n_threads`: for the oracle. `**limits`: as for
    `run_passes`. "n_oracle_calls" counts examples. Each call finds the most violating
    labeling and the marginals of an example. Returns the `SolverResult` for the best
    weights seen. "stalled" if only rounding is left of the gap. TypeError if the oracle
    has no marginals.

    .. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
       SVMs", 2009, Algorithm 1 and Appendix E.
    .. [2] Nesterov, "Excessive gap technique in nonsmooth convex minimization", SIAM
       Journal on Optimization 16, 2005.
    """
    method = EntropicExcessiveGap(oracle, weights, lam, n_threads, rounding)
    return run_passes(
        lambda deadline: "stalled" if method.improve() else None,
        lambda done: (method.row(), method.weights, method.risk.most_negative_gap),
        max_iter=max_iter,
        method="excessive_gap",
        **limits,
    )


class EntropicExcessiveGap:
    """w_k and a dual point α_k with λ/2 ||w_k||² + R_μ(w_k) <= D(α_k).

    R_μ is the risk with soft maxima, each lower by at most μ log(number of labelings).
    D(α) = loss(α) - ||V(α)||² / (2 λ), where V is the joint feature of α minus that of
    the truth, and w(α) = -V / λ.

    `weights`: the best w_k. `objective`, `dual_objective`: the best seen. `w`, `V`,
    `loss`, `mu` (ndarray, ndarray, float, float): the iterate. `lipschitz`: the
    estimate of L.
    """

    def __init__(self, oracle, weights, lam, n_threads=1, rounding=None):
        self.rounding = Rounding() if rounding is None else rounding
        self.risk = EmpiricalRisk(oracle, weights)
        self.lam, self.n_threads = lam, n_threads
        # The joint feature of the truth, which is that of no weights.
        self.objective, self.dual_objective = np.inf, 0.0
        zero = np.zeros(oracle.n_weights)
        self.sweep(zero, np.inf)
        if self.objective == 0.0:
            # If no w changes the scores, this is the optimum.
            return
        # At the w of the uniform distributions the condition holds with μ = L.
        w, mu = self.V_soft / -lam, self.objective
        while True:
            smooth = 0.5 * lam * float(w @ w) + self.sweep(w, mu)
            value = self.dual_value(self.V_soft, self.loss_soft)
            if smooth <= value + SUM_ROUNDING * abs(smooth):
                break
            mu *= 2.0
            check_finite(mu, smooth)
        self.lipschitz = mu
        self.move(w, mu, self.V_soft, self.loss_soft)

    def sweep(self, w, mu):
        """R_μ(w), and the joint feature and the loss of its maximizers."""
        risk, self.soft_risk = self.risk.soften(w, mu, self.n_threads)
        self.V_soft, self.loss_soft = self.risk.soft_plane()
        objective = 0.5 * self.lam * float(w @ w) + risk
        if objective < self.objective:
            self.objective, self.weights = objective, w
            self.error = self.rounding.of_values(w, objective)
        return self.soft_risk

    def dual_value(self, V, loss):
        return loss - 0.5 * float(V @ V) / self.lam

    def move(self, w, mu, V, loss):
        self.w, self.mu, self.V, self.loss = w, mu, V, loss
        # The sweep that led here.
        self.V_sharp, self.risk_sharp = self.V_soft, self.soft_risk
        value = self.dual_value(V, loss)
        value -= self.rounding.of_values(V / self.lam, loss, loss - value)
        self.dual_objective = max(self.dual_objective, value - self.error)

    def improve(self):
        """Make one step. Returns whether there is none that exceeds rounding."""
        # A smoothing below this share of the objective is lost in rounding.
        while self.mu > 1e-16 * self.objective:
            # The largest τ with τ² L <= (1 - τ) μ.
            tau = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * self.lipschitz / self.mu))
            ahead = self.V_sharp - self.V
            beta = self.V + tau * ahead
            w = self.w + tau * (beta / -self.lam - self.w)
            mu = (1.0 - tau) * self.mu
            self.sweep(w, mu)
            if self.holds(tau, w, ahead):
                V = self.V + tau * (self.V_soft - self.V)
                loss = self.loss + tau * (self.loss_soft - self.loss)
                self.move(w, mu, V, loss)
                self.lipschitz *= ESTIMATE_DECAY
                return False
            self.lipschitz *= ESTIMATE_GROWTH
            check_finite(self.lipschitz)
        return True

    def holds(self, tau, w, ahead):
        """Whether the step keeps the condition that holds at the iterate.

        This follows the proof of the paper's theorem on Algorithm 1, but with the dual's
        quadratic term and the divergence themselves instead of their bounds. For α⁺ - β =
        τ (ã - α_μ), the dual is below its tangent at β by τ² ||V(ã) - V(α_μ)||² / (2 λ).
        This loss is made up by the divergence (1 - τ) μ KL(ã, α_μ) and by the height of
        the tangent above the dual at α. Any slack in the condition is kept: if it were
        spent on a smaller μ, it would soon be gone, and the iterates would be worse.
        """
        change = self.V_soft - self.V_sharp
        lost = change @ change - (1.0 - tau) * (ahead @ ahead)
        # ⟨ã, H(w⁺)⟩ and ⟨ã, H(w)⟩. Minus the soft maxima, these are the divergences from
        # the uniform distribution times the temperatures.
        new = self.loss_soft + self.V_soft @ w
        old = self.loss_soft + self.V_soft @ self.w
        won = new - self.soft_risk - (1.0 - tau) * (old - self.risk_sharp)
        check_finite(lost, won)
        rounding = SUM_ROUNDING * (abs(new) + abs(old))
        return 0.5 * tau**2 / self.lam * lost <= won + rounding

    def row(self):
        bound, n_calls = self.dual_objective, self.risk.n_oracle_calls
        return certified(self.objective, bound, self.error, n_calls)


def check_finite(*values):
    """Raise ValueError for a value that no step could repair."""
    if not np.isfinite(values).all():
        raise ValueError(
            "The squared length of a joint feature overflows: scale the features down, "
            "or try a smaller C."
        )
