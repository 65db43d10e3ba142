"""Newton's method for smooth risks, by conjugate gradients, with a certificate."""

from time import perf_counter

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.backtracking import backtrack
from sklearn_structsvm._utils.pieces import mean_width, row_pieces, take_rows
from sklearn_structsvm._utils.tolerances import VALUE_ROUNDING
from sklearn_structsvm.solvers.accuracy import ROUGH_SHARE
from sklearn_structsvm.solvers.batch.composite import Composite
from sklearn_structsvm.solvers.loop import rounding_of, run_steps

# Products with the Hessian for a direction.
MAX_PRODUCTS = 1000

# With at most this many dense features, the Hessian of each score is inverted to
# precondition. It is computed from a part of the examples, this many per feature: more
# would take longer than the products that they save.
MAX_DENSE = 64
ROWS_PER_FEATURE = 100

# Its condition number, after scaling to a diagonal of 1, is at most the inverse of this.
LEAST_DAMPING = 1e-10


def run_newton(risk, lam, *, tol=1e-3, w0=None, **limits):
    """Minimize P(w) = λ/2 ||w||² + R(w) for a smooth risk R.

    Preconditioned conjugate gradients solve the Newton equations, no more exactly than is
    useful [1]_. The preconditioner is the inverse of the Hessian's diagonal blocks, one
    for each score, if there are few dense features, and its diagonal otherwise. Steps are
    shortened until they pay, without products with X. P is strongly convex, so it is at
    most ||∇P(w)||² / 2λ above its minimum, which is not negative.

    `w0` (n_weights,) or None: zero by default. `tol`, `**limits`: as for `run_passes`.
    A pass is a Newton step. Returns a `SolverResult`: "stalled" if no step decreases
    the gradient beyond rounding. Oracle calls are passes over an example: for the
    objective and its gradient, and for each product with the Hessian.

    .. [1] Nocedal, Wright, "Numerical optimization", 2nd edition, 2006, section 7.1.
    """
    # Squares of huge features overflow. The gap is then infinite, which reports the
    # problem.
    with np.errstate(over="ignore", invalid="ignore"):
        steps = NewtonSteps(risk, lam, tol, w0)
    return run_steps(steps, tol=tol, **limits)


class NewtonSteps(Composite):
    """Newton steps, one at a time, and P at the last one with its `gradient`."""

    method = "newton"

    def __init__(self, risk, lam, tol, w0=None):
        super().__init__(risk.n_weights, rounding_of(risk), ridge=lam, w0=w0)
        # No loss is negative.
        self.risk, self.dual_objective = risk, 0.0
        # If the gradient is this small, the gap is `tol`.
        self.target = np.sqrt(2.0 * lam * tol)
        self.n_passes = 0
        # The last of these four holds B and products of the scores with the Hessian.
        self.scores, self.along, self.response, self.room = (
            risk.empty() for _ in range(4)
        )
        w, scores = self.weights, risk.scores(self.weights, out=self.scores)
        self._take(w, scores, self._value(w, scores), self._gradient(w))
        self.first_norm = self.norm
        self.preconditioner = make_preconditioner(risk)

    def n_calls(self):
        return self.n_passes * np.count_nonzero(self.risk.weights)

    def _value(self, w, scores):
        """P(w); the response is stored."""
        return self.penalized(w, self.risk.respond(scores, out=self.response)[0])

    def _gradient(self, w):
        B = self.risk.coefficients(self.response, out=self.room)
        self.n_passes += 1
        return self.risk.gradient(B) + self.ridge * w

    def _take(self, w, scores, value, gradient):
        self.take(w, value)
        self.scores, self.gradient = scores, gradient
        self.norm = float(np.linalg.norm(gradient))
        self.note(value - self.square_of(gradient))

    @np.errstate(over="ignore", invalid="ignore")
    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        direction, along = self._direction(deadline)
        slope = float(self.gradient @ direction)
        if not slope < 0.0:
            return False

        def attempt(step):
            w, scores = self.weights + step * direction, self.scores + step * along
            return self._value(w, scores), step * slope, (w, scores)

        if -slope <= VALUE_ROUNDING * abs(self.value):
            # The objective can no longer decide, but the gradient can.
            value, _, (w, scores) = attempt(1.0)
            gradient = self._gradient(w)
            is_better = np.linalg.norm(gradient) < 0.5 * self.norm
        else:
            step, value, found = backtrack(attempt, self.value)
            is_better = step > 0.0
            if is_better:
                w, scores = found
                gradient = self._gradient(w)
        if is_better:
            self._take(w, scores, value, gradient)
        return is_better

    def _direction(self, deadline):
        """-H⁻¹ ∇P and its scores, by conjugate gradients that stop at `deadline`."""
        risk, residual = self.risk, -self.gradient
        # So the last directions are the most accurate.
        share = min(ROUGH_SHARE, np.sqrt(self.norm / self.first_norm))
        enough = max(share * self.norm, ROUGH_SHARE * self.target)
        apply = self.preconditioner(self.response, self.ridge)
        direction, scores = np.zeros_like(residual), np.zeros_like(self.scores)
        mapped = apply(residual)
        conjugate, product = mapped.copy(), float(residual @ mapped)
        for _ in range(MAX_PRODUCTS):
            along = risk.scores(conjugate, out=self.along)
            curved = risk.curved(self.response, along, out=self.room)
            image = risk.gradient(curved) + self.ridge * conjugate
            self.n_passes += 1
            curvature = float(conjugate @ image)
            if not curvature > 0.0:
                break
            length = product / curvature
            direction += length * conjugate
            risk.moved(scores, along, length, out=scores)
            residual -= length * image
            if np.linalg.norm(residual) <= enough or perf_counter() >= deadline:
                break
            mapped = apply(residual)
            before, product = product, float(residual @ mapped)
            conjugate *= product / before
            conjugate += mapped
        return direction, scores


def make_preconditioner(risk):
    """The preconditioner that suits the features of a risk.

    Returns (A, λ) -> v ↦ M⁻¹ v, where M is like the Hessian at the response A.
    """
    n_features = risk.n_weights // risk.n_scores
    if sparse.issparse(risk.X) or n_features > MAX_DENSE:
        return Diagonal(risk)
    return Blocks(risk)


class Diagonal:
    """Preconditioner from the diagonal of the Hessian."""

    def __init__(self, risk):
        self.risk = risk
        # A piece contributes to each weight, which must not take longer than the piece
        # itself.
        least = 4 * risk.n_weights
        self.pieces = row_pieces(risk.X.shape[0], mean_width(risk.X), least)

    def __call__(self, A, lam):
        inverse = 1.0 / (self.of(self.risk.curvatures(A)) + lam)
        return lambda vector: inverse * vector

    def of(self, curvatures):
        """The diagonal of the Hessian, flat, of these second derivatives."""
        X, risk = self.risk.X, self.risk
        n_features = X.shape[1]
        diagonal = np.zeros((n_features + (risk.bias != 0.0), risk.n_scores))
        for piece in self.pieces:
            squares = take_rows(X, piece).astype(np.float64, copy=False)
            squares = squares.power(2) if sparse.issparse(X) else squares**2
            diagonal[:n_features] += squares.T @ curvatures[piece]
        if risk.bias:
            diagonal[n_features] = risk.bias**2 * curvatures.sum(axis=0)
        return diagonal.ravel()


class Blocks:
    """Preconditioner from diagonal blocks of the Hessian, one for each score."""

    def __init__(self, risk):
        self.risk = risk
        self.stride = max(1, len(risk.X) // (ROWS_PER_FEATURE * risk.X.shape[1]))
        self.X = risk.X[:: self.stride]
        self.pieces = row_pieces(*self.X.shape)

    def __call__(self, A, lam):
        k, bias, d = self.risk.n_scores, self.risk.bias, self.X.shape[1]
        n_features = d + (bias != 0.0)
        shares = np.sqrt(self.stride * self.risk.curvatures(A)[:: self.stride])
        blocks = np.zeros((k, n_features, n_features))
        room = np.empty((len(self.X[self.pieces[0]]), n_features))
        for piece in self.pieces:
            X = self.X[piece].astype(np.float64, copy=False)
            weighted = room[: len(X)]
            for c in range(k):
                own = shares[piece, c : c + 1]
                np.multiply(X, own, out=weighted[:, :d])
                if bias:
                    np.multiply(bias, own, out=weighted[:, d:])
                blocks[c] += weighted.T @ weighted
        places = np.arange(n_features)
        blocks[:, places, places] += lam
        scales = 1.0 / np.sqrt(blocks[:, places, places])
        blocks *= scales[:, :, np.newaxis] * scales[:, np.newaxis, :]
        blocks[:, places, places] = 1.0 + LEAST_DAMPING
        # M⁻¹ = Lᵀ L, which is symmetric even after rounding.
        L = np.linalg.inv(np.linalg.cholesky(blocks)) * scales[:, np.newaxis, :]
        across = L.transpose(0, 2, 1)

        def apply(vector):
            columns = vector.reshape(n_features, k).T[:, :, np.newaxis]
            return np.ascontiguousarray((across @ (L @ columns))[:, :, 0].T).ravel()

        return apply
