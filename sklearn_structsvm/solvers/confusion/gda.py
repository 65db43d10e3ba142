"""Gradient descent-ascent for convex metrics, without constraints and with them."""

import numpy as np

from sklearn_structsvm.solvers.confusion.column_generation import least_violated
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.slack_variables import (
    MetricLagrangian,
    check_convex,
    project_solid_simplex,
)
from sklearn_structsvm.solvers.confusion.solver import (
    BOOLEAN,
    POSITIVE_NUMBER,
    RECOMBINE_INTERVAL,
    TWO_POSITIVE_NUMBERS,
    ConfusionSolver,
    Option,
)


class GDA(ConfusionSolver):
    """Minimize a convex ψ over the achievable confusion tensors, smooth or not.

    Algorithms 2 and 6 of the paper (GDA and ConGDA). With slack variables ξ = C for ψ and
    the constraints φ to be functions of, the Lagrangian

        ψ(ξ) + <λ, C - ξ> + Σ_k μ_k φ_k(ξ)

    is minimized over achievable C by a call of the oracle with the loss λ, gradient steps
    are made in ξ and in the multipliers, and these are projected onto {|λ| <= radius} and
    {μ >= 0, Σ μ <= radius}. The classifiers' average comes within ε of the best in
    O(1 / ε²) calls (Theorems 13 and 17).

    Here ξ is in {C >= 0 with the problem's row sums}, smaller than the paper's simplex,
    and everything is measured in rates of the rows (section 8.2). The oracle's argument
    is not divided by its norm, which changes no answer. In algorithm 6, line 7, the index
    of ξ^{t+1} is that of the iteration: it is the ξ of the next one.

    For any ξ the tangent of ψ + Σ μ φ there is below ψ where the constraints are met, so
    that with its slope G, min over 𝒞 of <λ, C> plus min over all C of those row sums of
    <G - λ, C>, and the tangent's offset, bounds ψ at no further call. Now and then the
    weights of the classifiers found are optimized, and the multipliers of that give a
    bound for one more call.

    Parameters
    ----------
    step_sizes : (float, float)
        Of ξ, and of λ and μ.
    radius : float
        2 L (1 + 1 / r) and 2 / r in theory, L a Lipschitz constant and r how much the
        constraints can be met with to spare.
    recombine_interval : int
        Iterations between two recombinations at first; there are fewer later.
    average : bool
        Return the average of all classifiers, as the algorithms do, and not their best
        mixture, which meets the constraints (section 8.2). That no classifier meets them
        is not found out then.
    """

    CALLED = "solver='gda'"
    OPTIONS = {
        # The paper chooses both from 0.001, 0.01 and 0.1 by the training objective; of
        # the nine pairs these reach a gap of 1e-3 first, or nearly, on most of its data
        # sets and metrics.
        "step_sizes": Option((0.1, 0.1), TWO_POSITIVE_NUMBERS),
        "radius": Option(100.0, POSITIVE_NUMBER),
        "average": Option(False, BOOLEAN),
        "recombine_interval": RECOMBINE_INTERVAL,
    }

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        check_convex(problem, "gda")
        self.lagrangian = MetricLagrangian(problem)
        self.coordinates = self.lagrangian.coordinates
        self.incumbent = Incumbent(
            problem, tol, least_violated, recombines=not self.average
        )
        self.xi = self.coordinates.of(problem.uniform)
        self.mu = np.zeros(self.lagrangian.n_multipliers)
        # Any multipliers may come first; those at the minimum are the slopes there.
        self.multipliers = self.lagrangian.tangent(self.xi, self.mu)[0]
        self.counts = np.zeros(0)
        self.t = 0

    def move(self):
        z = self.coordinates
        C, index, is_new, least = self.incumbent.ask(z.loss(self.multipliers))
        if is_new:
            self.counts = np.append(self.counts, 0.0)
        slopes, offset = self.lagrangian.tangent(self.xi, self.mu)
        rest = z.least(slopes - self.multipliers)
        self.incumbent.note_dual(least + rest + offset)
        values = self.lagrangian.constraints(self.xi)
        away = z.of(C) - self.xi
        down, up = self.step_sizes
        self.xi = z.project(self.xi - down * (slopes - self.multipliers))
        self.multipliers = onto_ball(self.multipliers + up * away, self.radius)
        self.mu = project_solid_simplex(self.mu + up * values, self.radius)
        self.t += 1
        if self.average:
            self.counts[index] += 1.0
            self.incumbent.replace(self.counts / self.counts.sum())
        elif self.incumbent.is_due(self.t, self.recombine_interval):
            self.incumbent.recombine()


def onto_ball(x, radius):
    """The nearest point of norm at most `radius`."""
    size = np.linalg.norm(x)
    return x if size <= radius else radius / size * x


run_gda = GDA.run
