"""Bundle methods for regularized risk minimization, with a line search or without."""

import numpy as np

from sklearn_structsvm.solvers.batch.product_bundle import has_long_planes, make_bundle
from sklearn_structsvm.solvers.loop import run_passes

# Where on the way from the best point to the bundle's minimizer the line search's next
# plane is taken. OCAS has 0.1; on a9a and letter, with λ of 1e-3 to 1e-5, this takes half
# to 0.8 of the iterations to a gap of 1e-3, and half or twice of it is no better.
CUT_AT = 0.01

# The same where planes are long, as those of text: 165 iterations against 352 on
# reuters_usa with λ of 1e-5, and 100 against 145 on reuters90 with 1e-4.
CUT_LONG_AT = 0.1

# Scores of the best point are sums of scores known before; they are formed anew after so
# many of them, and before a run converges on them. A run that is cut short reports what
# they say, which is off by their rounding.
REFRESH_SCORES = 100

# Iterations in a row that change neither the best objective nor the dual one: all that is
# left of the gap is rounding.
MAX_UNCHANGED = 10


def run_bmrm(
    risk,
    lam,
    *,
    line_search=True,
    subproblem="qp",
    cut_at=None,
    w0=None,
    bundle=None,
    tol=1e-3,
    max_iter=1000,
    max_time=None,
    on_pass=None,
    history=None,
):
    """Minimize λ/2 ||w||² + R(w), R a convex risk that gives planes below itself.

    An iteration makes one product X W, one Xᵀ B and one column of the bundle's Gram
    matrix. With `line_search`, the best point moves to the minimum of the objective on
    the line to the bundle's minimizer [2]_ (for any risk that can search a line, so for
    multiclass and multilabel losses too), and the plane is taken a little beyond.
    Structures, of which only a max-oracle is known, are served by `run_cutting_plane`.

    Parameters
    ----------
    risk : Risk
    lam : float
        λ > 0.
    line_search : bool
        False takes the planes at the bundle's minimizers, the method of [1]_.
    subproblem : {"qp", "line"}
        The bundle is minimized exactly, or only between its last solution and the new
        plane: one step in one variable, which is all that the analysis of [1]_ needs
        (Theorem 5 of [3]_), and no planes are kept.
    cut_at : float or None
        In (0, 1]: with `line_search`, the plane is taken at (1 - cut_at) times the best
        point plus cut_at times the bundle's minimizer. 0.1 makes the method OCAS. None:
        0.01, or 0.1 for many features of which few are in a row.
    w0 : ndarray of shape (risk.n_weights,) or None
        Where to start: by default at the bundle's minimizer, zero where it is empty.
    bundle : Bundle or None
        Planes below the risk that are known already, for the same λ; more are added.
    tol : float
        Stop where the duality gap is at most this.
    max_iter : int
    max_time : float or None
        Seconds.
    on_pass : callable or None
        Called after each iteration, as for `run_bcfw`.
    history : History or None
        To be filled: a row for each iteration. "n_oracle_calls" counts planes.

    Returns
    -------
    SolverResult
        Of the best weights seen. "stalled" is where the gap is down to rounding.

    References
    ----------
    .. [1] Teo, Vishwanathan, Smola, Le, "Bundle methods for regularized risk
       minimization", JMLR 11, 2010.
    .. [2] Franc, Sonnenburg, "Optimized cutting plane algorithm for support vector
       machines", ICML 2008.
    .. [3] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
       SVMs", 2009.

    Examples
    --------
    A risk is what has these methods; here |w - 2|, with its two planes:

    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
    >>> class Distance:
    ...     n_weights = n_scores = 1
    ...     def empty(self):
    ...         return np.empty((1, 1))
    ...     def scores(self, w, out):
    ...         out[:] = w - 2.0
    ...         return out
    ...     def value(self, Z):
    ...         return abs(Z[0, 0])
    ...     def plane(self, Z, out):
    ...         out[:] = np.sign(Z)
    ...         return out, -2.0 * out[0, 0]
    ...     def gradient(self, B):
    ...         return B[0]
    >>> result = run_bmrm(Distance(), 1.0, line_search=False, tol=1e-12)
    >>> result.solution.tolist(), result.objective, result.status
    ([1.0], 1.5, 'converged')
    """
    if bundle is None:
        bundle = make_bundle(risk, lam) if subproblem == "qp" else MeanPlane(lam)
    elif bundle.lam != lam:
        raise ValueError(
            f"The bundle was made for λ = {bundle.lam}, and not for {lam}: "
            f"bundle.at({lam}) has its planes for that λ."
        )
    if w0 is None:
        w0 = bundle.weights if len(bundle.offsets) else np.zeros(risk.n_weights)
    if line_search:
        cut_at = default_cut(risk) if cut_at is None else cut_at
        method = _LineSearch(risk, lam, bundle, w0, cut_at)
    else:
        method = _Minimizers(risk, lam, bundle, w0)
    return run_passes(
        lambda deadline: "stalled" if method.improve() else None,
        lambda done: (method.row(tol), method.weights),
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        on_pass=on_pass,
        history=history,
    )


def default_cut(risk):
    """Where on the way to the bundle's minimizer to take the next plane."""
    return CUT_LONG_AT if has_long_planes(risk) else CUT_AT


class MeanPlane:
    """A bundle of one plane, the weighted mean of all that were added.

    The weight of each new one maximizes the dual, λ min_w ½ ||w||² + ⟨a, w⟩ + b, on the
    segment between the two, in closed form: coordinate ascent on the bundle's dual with
    the coordinate of the steepest slope.

    Attributes
    ----------
    weights : ndarray of shape (d,)
        -a / λ.
    dual_objective : float
    offsets : list of float
        b, where there is a plane.
    """

    def __init__(self, lam):
        self.lam = lam
        self.offsets = []
        self.dual_objective = -np.inf

    def add(self, plane, offset):
        if not self.offsets:
            self.plane, self.offsets = plane.copy(), [offset]
            return
        step = plane - self.plane
        rise = self.lam * (offset - self.offsets[0]) - self.plane @ step
        square = step @ step
        # Parallel planes: the higher one.
        share = min(max(rise / square, 0.0), 1.0) if square > 0.0 else float(rise > 0.0)
        self.plane += share * step
        self.offsets[0] += share * (offset - self.offsets[0])

    def cut(self, risk, B, offset):
        self.add(risk.gradient(B), offset)

    def solve(self):
        self.weights = self.plane / -self.lam
        self.dual_objective = float(
            self.offsets[0] - 0.5 * self.lam * self.weights @ self.weights
        )


class _Minimizers:
    """Planes at the minimizers of the bundle, and the best of these points."""

    def __init__(self, risk, lam, bundle, w0):
        self.risk, self.lam, self.bundle = risk, lam, bundle
        self.dual_objective = -np.inf
        self.n_planes = self.n_unchanged = 0
        # Memory of n k numbers is slow to get: what there is is used again.
        self.B, room = risk.empty(), risk.empty()
        self.weights = np.array(w0, dtype=np.float64)
        self.scores = risk.scores(self.weights, room)
        self.objective = self.evaluate(self.weights, self.scores)
        self.cut(self.scores)

    def evaluate(self, w, scores):
        return float(0.5 * self.lam * w @ w + self.risk.value(scores))

    def cut(self, scores):
        """Add the plane at a point, and move the bundle's minimizer."""
        B, offset = self.risk.plane(scores, out=self.B)
        self.bundle.cut(self.risk, B, offset)
        self.bundle.solve()
        self.n_planes += 1
        self.dual_objective = max(self.dual_objective, self.bundle.dual_objective)

    def improve(self):
        """One iteration; whether nothing changes any more."""
        before = self.objective, self.dual_objective
        self.cut(self.move(self.bundle.weights))
        unchanged = before == (self.objective, self.dual_objective)
        self.n_unchanged = self.n_unchanged + 1 if unchanged else 0
        return self.n_unchanged >= MAX_UNCHANGED

    def move(self, target):
        """Update the best point; returns the scores of where to cut."""
        self.scores = self.risk.scores(target, self.scores)
        objective = self.evaluate(target, self.scores)
        if objective < self.objective:
            self.weights, self.objective = target, objective
        return self.scores

    def row(self, tol):
        return {
            "objective": self.objective,
            "dual_objective": self.dual_objective,
            "dual_gap": self.objective - self.dual_objective,
            "n_oracle_calls": self.n_planes,
        }


class _LineSearch(_Minimizers):
    """The best point on the line to each minimizer, and planes a little beyond."""

    def __init__(self, risk, lam, bundle, w0, cut_at):
        super().__init__(risk, lam, bundle, w0)
        self.cut_at = cut_at
        # `scores` are the best point's.
        self.along, self.other = risk.empty(), risk.empty()
        self.n_sums = 0

    def move(self, target):
        direction = target - self.weights
        risk = self.risk
        there = risk.scores(target, self.along)
        self.along = along = risk.moved(there, self.scores, -1.0, out=there)
        step = risk.line_search(
            self.scores,
            along,
            float(self.weights @ direction),
            float(direction @ direction),
            self.lam,
        )
        # A new array: what the history holds stays as it was.
        self.weights = self.weights + step * direction
        self.scores = risk.moved(self.scores, along, step, out=self.scores)
        self.n_sums += 1
        if self.n_sums >= REFRESH_SCORES:
            self.refresh()
        self.objective = self.evaluate(self.weights, self.scores)
        ahead = self.cut_at * (1.0 - step)
        self.other = risk.moved(self.scores, along, ahead, out=self.other)
        return self.other

    def refresh(self):
        self.scores = self.risk.scores(self.weights, self.scores)
        self.n_sums = 0

    def row(self, tol):
        if self.n_sums > 0 and self.objective - self.dual_objective <= tol:
            self.refresh()
            self.objective = self.evaluate(self.weights, self.scores)
        return super().row(tol)
