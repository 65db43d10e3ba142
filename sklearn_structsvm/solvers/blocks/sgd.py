"""Stochastic subgradient descent for structural SVMs, with a certificate."""

import numpy as np

from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks._sgd import SubgradientSteps
from sklearn_structsvm.solvers.blocks.bcfw import make_pass
from sklearn_structsvm.solvers.loop import Rounding, certified, run_passes


def run_sgd(
    oracle,
    weights,
    lam,
    *,
    sampling="permuted",
    average=True,
    gap_check_interval=10,
    n_threads=1,
    rng=None,
    rounding=None,
    **limits,
):
    """Minimize λ/2 ||w||² + Σ_i p_i max_y [L_i(y) - ⟨w, φ(x_i, y_i) - φ(x_i, y)⟩].

    The subgradient method of [1]_ on one example at a time, with the steps 1 / (λ t) of
    [2]_ and the weighted average of the iterates of [3]_.

    The gap is certified although the method does not use the dual: its iterates are
    combinations of labelings, and any such combination gives a dual point. The dual bound
    is the best one seen, and is valid for all iterates. It is tight after complete
    permuted passes. Blocks drawn with replacement are drawn unevenly, and the bound then
    closes slowly.

    `weights`, `lam` as for `start_bcfw`. `sampling` ({"permuted", "uniform"}): how a
    pass draws its blocks among those of positive weight. `average`: return 2 / (k (k +
    1)) Σ_t t w_t over all k steps instead of the last iterate. `gap_check_interval`,
    `n_threads`, `rng` as for `run_bcfw`. `**limits` as for `run_passes`. Returns the
    `SolverResult` for the best weights seen, beginning with zero.

    .. [1] Ratliff, Bagnell, Zinkevich, "(Online) subgradient methods for structured
       prediction", AISTATS 2007.
    .. [2] Shalev-Shwartz, Singer, Srebro, Cotter, "Pegasos: primal estimated sub-gradient
       solver for SVM", Mathematical Programming 127, 2011.
    .. [3] Lacoste-Julien, Schmidt, Bach, "A simpler approach to obtaining an O(1/t)
       convergence rate for the projected stochastic subgradient method", 2012.
    """
    rng = np.random.default_rng(rng)
    iterate = SubgradientSteps(oracle, weights, lam, average)
    risk = EmpiricalRisk(oracle, weights)
    rounding = Rounding() if rounding is None else rounding
    dual_objective = -np.inf

    def check(done):
        nonlocal dual_objective
        w = iterate.average_weights() if average else iterate.weights
        objective = 0.5 * lam * w.dot(w) + risk.ask(w, n_threads)
        risk.release_answers()
        bound = iterate.dual_objective()
        bound -= rounding.of_values(iterate.weights, 2.0 * bound)
        error = rounding.of_values(w, objective)
        dual_objective = max(dual_objective, bound - error)
        n_calls = iterate.n_steps + risk.n_oracle_calls
        row = certified(objective, dual_objective, error, n_calls)
        return row, w.copy(), risk.most_negative_gap

    return run_passes(
        lambda deadline: make_pass(iterate, sampling, rng, deadline),
        check,
        gap_check_interval=gap_check_interval,
        method="sgd",
        **limits,
    )
