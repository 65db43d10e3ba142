"""Linear programs over one polytope, solved repeatedly with other objectives.

The oracles of a relaxation are such programs: max c·z over {0 <= z <= 1, A z <= b}, where
the polytope is that of the structure and c comes from the weights. Its constrained
λ-oracle has two more rows, the rays of `maximize_between`. The simplex method of HiGHS
starts from the basis of the previous call. If there is a faster way to maximize without
the rays, the function `maximize_between` needs only that.

HiGHS is an optional dependency: ``pip install highspy``.
"""

from functools import cache
from threading import Lock

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.borders import check_floats, check_integer, check_sparse
from sklearn_structsvm._utils.tolerances import SAME, VALUE_ROUNDING
from sklearn_structsvm.structures.constrained import MAX_MULTIPLIER_STEPS

# A linear program's z counts as 0, 1/2 or 1 within this.
SNAPPED = 10 * SAME
# The names of HiGHS for its simplex methods. The dual one comes first: every variable has
# two bounds, so it can start a new objective from the last basis after moving nonbasic
# variables to the right bounds. For 150 nodes with 8 labels and 434 edges, it takes 8,500
# cheap iterations, and a few hundred if the objective is near the last one. The primal
# method takes 32,000, or 12,000 with presolve.
DUAL, PRIMAL = 1, 4


class Polytope:
    """{z : 0 <= z <= 1, A z <= b}, and its points where a linear function is largest.

    The first rows may be equations.

    It may be pickled and copied; the solver is then set up anew. Calls from several
    threads wait for one another.

    `A` (m, n), also sparse, `b` (m,). `n_equations`: this many rows, the first ones,
    are equations A z = b. ValueError if shapes do not agree, or A or b is not finite.
    """

    def __init__(self, A, b, n_equations=0):
        check_sparse(A, "A")
        A = sparse.csr_array(A, dtype=np.float64)
        self.A = A
        self.b = np.ascontiguousarray(b, dtype=np.float64)
        self.n_equations = n_equations
        self._check()
        self._forget_solver()

    @property
    def n_variables(self):
        """Length of z."""
        return self.A.shape[1]

    def maximize(self, c):
        """A z with the largest c·z.

        `c` (n,). Returns (n,). ValueError if no z is in the polytope, or c is not
        finite. ImportError if HiGHS is not installed.
        """
        z = self._solve(c, ())
        if z is None:
            raise ValueError("The polytope is empty: no z satisfies A z <= b.")
        return z

    def maximize_between(self, c, h, h0, g, g0, alpha=np.inf, beta=0.0):
        """Maximize c·z over β (h·z + h0) <= g·z + g0 <= α (h·z + h0).

        Both rays belong to the set: one without them has points of larger and larger
        c·z, but none of the largest.

        `c`, `h`, `g` (n,). `alpha`: >= 0, or infinite, which stands for 0 <= h·z + h0.
        `beta`: >= 0, finite. Returns (n,), or None if no z satisfies both inequalities.
        They hold up to 1e-9 times their largest coefficient.
        """
        if not (alpha >= 0 and 0 <= beta < np.inf):
            raise ValueError(
                "alpha must be >= 0, beta >= 0 and finite; "
                f"got alpha={alpha!r} and beta={beta!r}."
            )
        h, g = self._vector(h, "h"), self._vector(g, "g")
        lower = (beta * h - g, g0 - beta * h0)
        upper = (-h, h0) if alpha == np.inf else (g - alpha * h, alpha * h0 - g0)
        return self._solve(c, (lower, upper))

    def __getstate__(self):
        # Plain arrays, which skops reads without trusting a type.
        A = self.A
        return {
            "A": (A.data, A.indices, A.indptr),
            "shape": A.shape,
            "b": self.b,
            "n_equations": self.n_equations,
        }

    def __setstate__(self, state):
        self.A, self.b = sparse.csr_array(state["shape"]), state["b"]
        self.n_equations = state["n_equations"]
        self.A.data, self.A.indices, self.A.indptr = state["A"]
        self._check()
        self._forget_solver()

    def _check(self):
        check_sparse(self.A, "A")
        check_floats("A.data", self.A.data, "n_entries")
        check_floats("b", self.b, self.A.shape[0])
        check_integer("n_equations", self.n_equations, 0, self.A.shape[0])

    def _forget_solver(self):
        self._highs = None
        self._n_rays = 0
        self._lock = Lock()

    def _vector(self, values, name):
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (self.n_variables,) or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must hold {self.n_variables} finite numbers; got an array of "
                f"shape {values.shape}{' with NaN or infinity' * (values.ndim == 1)}."
            )
        return values

    def _solve(self, c, rays):
        """Argmax of c·z with the rows a·z <= limit of `rays`; None if infeasible."""
        c = self._vector(c, "c")
        columns = np.arange(self.n_variables, dtype=np.int32)
        with self._lock:
            highs = self._solver()
            highs.changeColsCost(len(columns), columns, _scaled(c)[0])
            if self._n_rays:
                rows = len(self.b) + np.arange(self._n_rays, dtype=np.int32)
                highs.deleteRows(self._n_rays, rows)
            self._n_rays = len(rays)
            for row in rays:
                a, limit = _scaled(*row)
                highs.addRow(-np.inf, limit, len(columns), columns, a)
            if not self._run(highs):
                return None
            z = np.array(highs.getSolution().col_value)
        return np.clip(z, 0.0, 1.0) + 0.0  # no -0.0

    def _run(self, highs):
        """Whether there is an optimum, which HiGHS then has."""
        statuses = load_highs().HighsModelStatus
        for strategy in (DUAL, PRIMAL):
            highs.setOptionValue("simplex_strategy", strategy)
            if highs.run() == load_highs().HighsStatus.kError:
                # All instances in a process share their threads, and others may have
                # requested another number. 0 takes the existing ones.
                highs.setOptionValue("threads", 0)
                highs.run()
            status = highs.getModelStatus()
            if status == statuses.kOptimal:
                return True
            if status == statuses.kInfeasible:
                return False
            # Problems caused by a basis disappear without it.
            highs.clearSolver()
        raise RuntimeError(
            f"HiGHS found no optimum: {highs.modelStatusToString(status)}."
        )

    def _solver(self):
        if self._highs is None:
            self._check()
            highspy = load_highs()
            highs = _silent_highs()()
            options = {
                "output_flag": False,
                "presolve": "off",
                "solver": "simplex",
                "parallel": "off",
                "threads": 1,
                "primal_feasibility_tolerance": SAME,
                "dual_feasibility_tolerance": SAME,
            }
            for name, value in options.items():
                highs.setOptionValue(name, value)
            m, n = self.A.shape
            lp = highspy.HighsLp()
            lp.sense_ = highspy.ObjSense.kMaximize
            lp.num_col_, lp.num_row_ = n, m
            lp.col_cost_ = lp.col_lower_ = np.zeros(n)
            lp.col_upper_ = np.ones(n)
            is_equation = np.arange(m) < self.n_equations
            lp.row_lower_ = np.where(is_equation, self.b, -np.inf)
            lp.row_upper_ = self.b
            lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
            lp.a_matrix_.start_ = self.A.indptr
            lp.a_matrix_.index_ = self.A.indices
            lp.a_matrix_.value_ = self.A.data
            highs.passModel(lp)
            self._highs = highs
        return self._highs


def maximize_between(maximize, h, h0, g, g0, lam, alpha, beta):
    """argmax h(z) + lam g(z) over β h(z) <= g(z) <= α h(z), using only `maximize`.

    For a polytope of which `maximize` is the linear oracle, with h(z) = h·z + h0,
    g(z) = g·z + g0 >= 0 and α >= β. In the plane of h and g it is a convex polygon, and
    what is sought is its point of largest h + λ g between two rays. If the largest of
    all is beyond one of them, s(z) < 0, the best one lies on that ray: it is where the
    edge of the polygon crosses the ray that belongs to the least max_z h + λ g + μ s
    over μ >= 0. Each step tries the μ at which the best point so far on the one side
    and that on the other tie, until no third point is better there.

    `h`, `g` (n,). `maximize`: ``maximize(c)``: a point z of the polytope with the
    largest c·z. Returns (n,), or None if no point lies between the rays.
    """
    objective = h + lam * g
    outside = maximize(objective)
    # s(z) = direction·z + offset, scaled so that neither h nor g has a factor above 1.
    upper = (1.0, -1.0 / alpha) if alpha > 1 else (alpha, -1.0)
    lower = (-1.0, 1.0 / beta) if beta > 1 else (-beta, 1.0)
    sides = []
    for a, b in (upper, lower):
        direction, offset = a * h + b * g, a * h0 + b * g0
        sides.append((direction @ outside + offset, direction, offset))
    s_outside, direction, offset = min(sides, key=lambda side: side[0])
    rounding = VALUE_ROUNDING * (np.abs(direction).sum() + abs(offset))
    if s_outside >= -rounding:
        return outside
    inside = maximize(direction)
    s_inside = direction @ inside + offset
    if s_inside < -rounding:
        return None
    for _ in range(MAX_MULTIPLIER_STEPS):
        room = s_inside - s_outside
        loss = objective @ outside - objective @ inside
        if room <= 0.0 or loss <= 0.0:
            break
        guide = objective + loss / room * direction
        z = maximize(guide)
        if guide @ (z - outside) <= VALUE_ROUNDING * np.abs(guide).sum():
            break
        s = direction @ z + offset
        if s < 0.0:
            outside, s_outside = z, s
        else:
            inside, s_inside = z, s
    if s_inside <= 0.0:
        return inside
    share = s_inside / (s_inside - s_outside)
    return share * outside + (1.0 - share) * inside


def maximize_product(maximize, h, h0, g, g0):
    """argmax h(z) g(z) over points of a polytope with h(z) > 0, using only `maximize`.

    Arguments as for `maximize_between`. The polygon in the plane of h and g is convex,
    so that the best point is on the edge at which a hyperbola touches it. Of two corners
    to both sides of it, the λ at which they tie leads to a corner in between, or shows
    that they are the ends of that edge; then the best mixture of the two is the answer.

    Returns (n,).
    """

    def point(z):
        return h @ z + h0, g @ z + g0

    flat, steep = maximize(h), maximize(g)
    for _ in range(MAX_MULTIPLIER_STEPS):
        (h_flat, g_flat), (h_steep, g_steep) = point(flat), point(steep)
        if g_steep <= g_flat or h_flat <= h_steep:
            break
        lam = (h_flat - h_steep) / (g_steep - g_flat)
        direction = h + lam * g
        z = maximize(direction)
        if direction @ (z - flat) <= VALUE_ROUNDING * np.abs(direction).sum():
            break
        # The hyperbola through z has the tangent of λ = h/g there.
        h_z, g_z = point(z)
        if h_z > lam * g_z:
            flat = z
        else:
            steep = z
    return _best_mixture(flat, point(flat), steep, point(steep))


def _best_mixture(a, point_a, b, point_b):
    """a + t (b - a), 0 <= t <= 1, of the largest product of its coordinates."""
    (h, g), (dh, dg) = point_a, np.subtract(point_b, point_a)
    # The product is h g + t (h dg + g dh) + t² dh dg.
    slope, curvature = h * dg + g * dh, 2.0 * dh * dg
    if curvature < 0.0:
        share = np.clip(-slope / curvature, 0.0, 1.0)
    else:
        share = float(slope + 0.5 * curvature > 0.0)
    return (1.0 - share) * a + share * b


def snapped(z):
    """z with values near 0, 1/2 and 1 rounded to these, so equal points are equal."""
    halves = np.rint(2.0 * z) / 2.0
    return np.where(np.abs(z - halves) <= SNAPPED, halves, z)


def _scaled(a, limit=0.0):
    size = np.abs(a).max(initial=0.0)
    return (a / size, limit / size) if size > 0 else (a, limit)


@cache
def _silent_highs():
    """A class of HiGHS instances that print nothing.

    The original class prints a banner on creation, before options can be set.
    """

    class SilentHighs(load_highs().Highs):
        def enableCallbacks(self):
            # Called by `__init__`; the banner would be the first line logged.
            self.silent()
            super().enableCallbacks()

    return SilentHighs


def load_highs():
    """The module of HiGHS. An ImportError says how to install it."""
    try:
        import highspy
    except ImportError as error:
        raise ImportError(
            "Linear programs need HiGHS, which is not installed: pip install highspy"
        ) from error
    return highspy
