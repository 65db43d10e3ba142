"""The ellipsoid method for convex metrics, with or without constraints."""

import numpy as np

from sklearn_structsvm._utils.options import POSITIVE, Option
from sklearn_structsvm.solvers.confusion.column_generation import least_violated
from sklearn_structsvm.solvers.confusion.incumbent import Incumbent
from sklearn_structsvm.solvers.confusion.slack_variables import (
    MetricLagrangian,
    MetricMinimizer,
    check_convex,
)
from sklearn_structsvm.solvers.confusion.solver import (
    RECOMBINE_INTERVAL,
    ConfusionSolver,
)


class Ellipsoid:
    """{center + B u : |u| <= 1} in d dimensions.

    `radius`: it starts as the ball of this radius around 0.
    """

    def __init__(self, d, radius):
        self.center, self.B = np.zeros(d), radius * np.eye(d)

    def cut(self, w, depth=0.0):
        """Shrink to the smallest ellipsoid around the part with (x - center)·w >= depth.

        `w` (d,). `depth` >= 0. Returns False, and does nothing, if nothing would be left.
        """
        along = self.B.T @ w
        length = float(np.linalg.norm(along))
        if not length > depth:
            return False
        along /= length
        share, d = depth / length, len(w)
        shift = (1.0 + d * share) / (d + 1.0)
        toward = self.B @ along
        self.center = self.center + shift * toward
        if d == 1:
            self.B *= 0.5 * (1.0 - share)
            return True
        across = d * np.sqrt((1.0 - share**2) / (d**2 - 1.0))
        # The half axis along the cut, relative to its former length.
        half = d * (1.0 - share) / (d + 1.0)
        self.B *= across
        self.B += np.outer((half - across) * toward, along)
        return True


class EllipsoidMethod(ConfusionSolver):
    """Minimize a convex ψ over the achievable confusion tensors, smooth or not.

    Algorithms 3 and 7 of the paper (Ellipsoid and ConEllipsoid): the ellipsoid method for
    the maximum of the dual function

        f(λ, μ) = min over 𝒞 of <λ, C> + min over ξ of ψ(ξ) - <λ, ξ> + Σ_k μ_k φ_k(ξ),

    whose values are lower bounds, and the best mixture of the classifiers that its
    evaluations found. O(d² log(d / ε)) calls of the oracle (Theorems 14 and 18), d the
    number of rates that matter (see `Coordinates`) and of constraints.

    The ellipsoid is kept as {c + B u : |u| <= 1}. A step multiplies B by a matrix that is
    a multiple of the identity but in one direction, in O(d²), so B Bᵀ is positive
    definite even after rounding. The product in Algorithm 3(a), line 7, with its roots
    and inverses, is not. Of that algorithm, t = 1 / (d + 1) is the shift of the center in
    units of the half axis, and the half space kept is (x - c)ᵀ w >= 0: with w a
    supergradient of f at c that is where f can be larger; w = -c keeps the ball
    (Algorithm 3, line 6, where λ and A are those of the step before: the ones with a
    tilde), and w = (0, max(-μ, 0)) keeps μ >= 0. With d = 1 the divisor b of line 5 is 0;
    an interval is halved instead.

    Here ξ is in {C >= 0 with the problem's row sums}, which is smaller than the paper's
    simplex. Iterations that cut for the ball or for μ >= 0 call no oracle.

    `radius`: a; the multipliers at the optimum must be in this ball. 2 L in theory, L a
    Lipschitz constant of ψ, plus (L + 1) / r with constraints that can be met with r to
    spare. `deep_cuts`: cut off everything where f is known to be below its best value,
    instead of only half of the ellipsoid. `recombine_interval`: iterations between two
    recombinations at first; there are fewer later.
    """

    CALLED = "solver='ellipsoid'"
    OPTIONS = {
        # Slopes of metrics by rates are at most 1 (except for the G-mean), and
        # multipliers of constraints rarely above 10. The value 1000 of the paper's
        # experiments takes more iterations to shrink.
        "radius": Option(100.0, POSITIVE),
        "deep_cuts": Option(True, ["boolean"]),
        "recombine_interval": RECOMBINE_INTERVAL,
    }

    def __init__(self, problem, tol, max_iter, options):
        super().__init__(problem, tol, max_iter, options)
        check_convex(problem, "ellipsoid")
        self.incumbent = Incumbent(problem, tol, least_violated, recombines=True)
        self.lagrangian = MetricLagrangian(problem)
        self.slack = MetricMinimizer(self.lagrangian, tol)
        self.coordinates = self.lagrangian.coordinates
        self.n = self.coordinates.n
        self.ellipsoid = Ellipsoid(self.n + self.lagrangian.n_multipliers, self.radius)
        self.xi = self.coordinates.of(problem.uniform)
        self.best = -np.inf
        self.t = 0

    def move(self):
        w, depth = self.outside()
        if w is None:
            w, depth = self.supergradient()
        went_on = self.ellipsoid.cut(w, depth if self.deep_cuts else 0.0)
        if self.incumbent.is_due(self.t, self.recombine_interval):
            self.incumbent.recombine()
        # Nothing better than the best multipliers is left.
        return None if went_on else "stalled"

    def outside(self):
        """The cut back to the ball and to μ >= 0, if the center is outside."""
        x = self.ellipsoid.center
        size = float(np.linalg.norm(x))
        if size > self.radius:
            return -x, size * (size - self.radius)
        negative = np.maximum(-x[self.n :], 0.0)
        if negative.any():
            w = np.concatenate([np.zeros(self.n), negative])
            return w, float(negative @ negative)
        return None, 0.0

    def supergradient(self):
        """A supergradient of the dual function at the center, and its cut's depth."""
        self.t += 1
        x = self.ellipsoid.center
        multipliers, mu = x[: self.n], x[self.n :]
        C, _, _, least = self.incumbent.ask(self.coordinates.loss(multipliers))
        levels, of_levels = self.lagrangian.levels(mu)
        least += of_levels
        self.xi, value, low = self.slack.minimize(
            multipliers, mu, self.xi, enough=self.best - least
        )
        terms = np.abs(multipliers).sum(), np.abs(mu).sum(), value, low
        self.incumbent.note_dual(least + low, *terms)
        self.best = max(self.best, least + low)
        away = self.coordinates.of(C) - self.xi
        w = np.concatenate([away, self.lagrangian.constraints(self.xi, levels)])
        return w, max(self.best - (least + value), 0.0)


run_ellipsoid = EllipsoidMethod.run
