"""Gradient descent-ascent for convex metrics, with or without constraints."""

import numpy as np

from sklearn_structsvm._utils.options import POSITIVE, Option
from sklearn_structsvm.solvers.confusion.column_generation import least_violated
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.slack_variables import (
    MetricLagrangian,
    check_convex,
    project_solid_simplex,
)
from sklearn_structsvm.solvers.confusion.solver import (
    RECOMBINE_INTERVAL,
    ConfusionSolver,
    PositiveNumbers,
)


class GDA(ConfusionSolver):
    """Minimize a convex ψ over the achievable confusion tensors, smooth or not.

    Algorithms 2 and 6 of the paper (GDA and ConGDA). With slack variables ξ = C as
    arguments of ψ and the constraints φ, the Lagrangian

        ψ(ξ) + <λ, C - ξ> + Σ_k μ_k φ_k(ξ)

    is minimized over achievable C by a call of the oracle with the loss λ, gradient steps
    are made in ξ and in the multipliers, and these are projected onto {|λ| <= radius} and
    {μ >= 0, Σ μ <= radius}. The classifiers' average comes within ε of the best in
    O(1 / ε²) calls (Theorems 13 and 17).

    Here ξ is in {C >= 0 with the problem's row sums}, which is smaller than the paper's
    simplex, and everything is measured in rates of the rows (section 8.2). The oracle's
    argument is not divided by its norm, which changes no answer. In algorithm 6, line 7,
    the index of ξ^{t+1} is that of the iteration: it is the ξ of the next one.

    For any ξ the tangent of ψ + Σ μ φ there is below ψ where the constraints are met, so
    ψ is bounded by min over 𝒞 of <λ, C>, plus min of <G - λ, C> over all C with these row
    sums (G is the tangent's slope), plus the tangent's offset. This needs no further
    call. The levels of halves of conditions are slack variables as ξ is, in a box. At
    intervals the weights of the found classifiers are optimized. Their
    multipliers give a bound for one more call.

    `step_sizes` (float, float): the step sizes of ξ, and of λ and μ. `radius`: 2 L (1 +
    1 / r) and 2 / r in theory, with a Lipschitz constant L, and r the slack with which
    the constraints can be satisfied. `recombine_interval`: iterations between two
    recombinations at first; there are fewer later. `average`: return the average of all
    classifiers, as the algorithms do, instead of their best mixture, which satisfies
    the constraints (section 8.2). Infeasible constraints are then not detected.
    """

    CALLED = "solver='gda'"
    OPTIONS = {
        # The paper chooses both from 0.001, 0.01 and 0.1 by the training objective. On
        # most of its data sets and metrics, these values reach a gap of 1e-3 first, or
        # nearly first, among the nine pairs.
        "step_sizes": Option((0.1, 0.1), [PositiveNumbers(2)]),
        "radius": Option(100.0, POSITIVE),
        "average": Option(False, ["boolean"]),
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
        self.levels = 0.5 * (self.lagrangian.low + self.lagrangian.high)
        # The first multipliers are arbitrary. At the minimum they equal these slopes.
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
        rest += self.lagrangian.levels(self.mu)[1]
        terms = np.abs(slopes).sum(), np.abs(self.multipliers).sum(), offset, rest
        self.incumbent.note_dual(least + rest + offset, *terms)
        values = self.lagrangian.constraints(self.xi, self.levels)
        away = z.of(C) - self.xi
        down, up = self.step_sizes
        self.xi = z.project(self.xi - down * (slopes - self.multipliers))
        along = self.mu[: len(self.lagrangian.ends)] @ self.lagrangian.sides
        self.levels = np.clip(
            self.levels - down * along, self.lagrangian.low, self.lagrangian.high
        )
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
