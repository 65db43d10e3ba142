"""Newton's method for few weights of structures with sums, with an elastic net."""

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.solvers.batch.elastic_net import SparseLogLoss
from sklearn_structsvm.solvers.batch.feasible_image import feasible_point
from sklearn_structsvm.solvers.batch.l1_newton import LEAST_SCALE
from sklearn_structsvm.solvers.batch.proximal_newton import ModelSteps

# On a chain, Newton's method takes about ten steps, whose Hessian costs as much as a pass
# for each 5 weights. Others go on with it if they need more passes than that.
PASSES_PER_WEIGHT = 2.0

# -log p for the least probability p, which is the most that an entropy changes by for a
# change of p.
MOST_SURPRISE = 745.0


class ChainNewtonSteps(ModelSteps):
    """Steps that minimize Ω(w) + Σ_i p_i log Σ_y exp ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩.

    They are those of `proximal_newton`, with the certificate of `elastic_net`.

    `oracle`, `weights`, `lam`, `l1_ratio`, `n_threads`, `w0`, `rounding`: as for
    `run_elastic_net`. `hessian`: w -> second derivatives of the loss at w. `nodes` or
    None: w -> the positions as rows of a `SmoothRisk` in the first weights, its response
    at w, the sum of their weights, and how many edges each has. They make dual points
    feasible if columns are so large that λ is a rounding error. Oracle calls are sums
    over labelings of an example; a Hessian counts as `n_passes` for each.

    `concave` or None: a function to subtract, as for `run_lbfgs`, with ρ = 0. `bend`: w
    -> its second derivatives. Where the difference is not convex, steps are those for its
    tangent plane, which bounds the difference from above.

    `centered` (CenteredWeights) or None, with ρ = 0: the variables of the steps, and of
    `hessian` and `bend`. `most_passes`: what all Hessians may cost.
    """

    def __init__(
        self,
        oracle,
        weights,
        hessian,
        lam,
        l1_ratio,
        n_threads=1,
        w0=None,
        rounding=None,
        nodes=None,
        concave=None,
        bend=None,
        centered=None,
        n_passes=1,
        most_passes=np.inf,
        coupled=(0, 1),
    ):
        self.objective = SparseLogLoss(
            oracle, weights, lam, l1_ratio, n_threads, w0, rounding, concave
        )
        self.hessian, self.n_hessians, self.nodes = hessian, 0, nodes
        self.n_passes, self.most_passes = n_passes, most_passes
        self.bend, self.centered, self.coupled = bend, centered, coupled
        self.largest = np.zeros(len(self.objective.weights))

    @property
    def weights(self):
        return self.objective.weights

    def row(self):
        row = self.objective.row()
        n_passes = self.n_hessians * self.n_passes
        row["n_oracle_calls"] += n_passes * np.count_nonzero(self.objective.p)
        return row

    def move(self, deadline=np.inf):
        """Make one step. Returns whether there was one."""
        if (self.n_hessians + 1) * self.n_passes > self.most_passes:
            return False
        H, ridge = self._hessian(self.hessian), self.objective.ridge
        if self.centered is not None:
            H += ridge * self.centered.more
        diagonal = np.diagonal(H) + ridge
        if not np.isfinite(diagonal).all():
            return False
        # Where probabilities are close to 0 and 1, little is left of large terms.
        self.largest = np.maximum(self.largest, diagonal)
        diagonal = np.maximum(diagonal, SUM_ROUNDING * self.largest)
        diagonal += LEAST_SCALE * diagonal.max(initial=0.0)
        diagonal[diagonal <= 0.0] = 1.0
        own = np.arange(len(H))
        if self.bend is not None:
            bent = H - self._hessian(self.bend)
            if self._minimize_model(bent, own, diagonal, most_damping=self.damping):
                return True
        n_last, moved = self.n_last, self._minimize_model(H, own, diagonal)
        return (moved and self.n_last == n_last) or self._fit_bounds() or moved

    def _hessian(self, of):
        self.n_hessians += 1
        return of(self.objective.weights)

    def _slopes(self):
        slopes = super()._slopes()
        return slopes if self.centered is None else self.centered.slopes(slopes)

    def _moved(self, own, change):
        if self.centered is None:
            return super()._moved(own, change)
        return self.centered.moved(self.objective.weights, change)

    def _size(self):
        if self.centered is None:
            return super()._size()
        # The best bound may be that no loss is negative.
        return self.objective.square_of(self.objective.smooth_gradient)

    def _fit_bounds(self):
        """Bring the dual point within its bounds. Returns whether the gap halves."""
        objective = self.objective
        lam, errors = objective.lam, objective.rounding.of_means
        if self.nodes is None or not self._is_rough():
            return False
        risk, response, total, degrees = self.nodes(objective.weights)
        n, B = risk.n_weights, risk.coefficients(response)
        penalties = lam / total, objective.ridge / total
        found = feasible_point(risk, response, B, objective.weights[:n], *penalties)
        if found is None:
            return False
        # The probabilities of an edge change by no more than those of both its ends do,
        # no single one by more than half of that, and entropies by a multiple.
        entropy, image = objective.point
        moved = total * np.abs(found[0] - B).sum(axis=1)
        others = np.abs(image[n:]) + errors[n:] + 0.5 * float(degrees @ moved)
        sizes = np.append(total * found[1], others)
        lost = MOST_SURPRISE * float((degrees + np.abs(degrees - 1.0)) @ moved)
        return objective.raise_bound(entropy - lost, sizes)


class CenteredWeights:
    """Weights as those of centered features and of the bias that these need.

    It is an exact change of variables. Without it, the curvature that two columns of Unix
    time leave is less than the rounding errors of their Hessian. The penalty of a bias
    that makes up for means a million times the spreads is as stiff, so the features are
    rotated until a single one has a mean.

    `means`, `spreads` (d,). `n_weights`: the first are the d * `n_classes` of the
    features, and the next the `n_classes` of the bias. `is_rotated`: False for an L1
    penalty, whose steps are those of the weights.

    Attributes: `more` (n_weights, n_weights): what the penalty of these variables has
    more than half their square.
    """

    def __init__(self, means, spreads, n_classes, n_weights, is_rotated=True):
        self.means, self.n_classes, self.is_rotated = means, n_classes, is_rotated
        spreads = np.maximum(spreads, np.sqrt(SUM_ROUNDING) * np.abs(means))
        scales = 1.0 / np.where(spreads > 0.0, spreads, 1.0)
        d = len(means)
        normal = is_rotated * scales * means
        size = np.sqrt(normal @ normal)
        first = np.copysign(size, -normal[0])
        normal[0] -= first
        square = normal @ normal
        self.rotation = np.zeros((d + 1, d + 1))
        self.rotation[d, d] = 1.0
        reflection = np.eye(d)
        if square > 0.0:
            reflection -= np.outer(normal, 2.0 / square * normal)
        self.rotation[:d, :d] = scales[:, np.newaxis] * reflection
        to_weights = self.rotation.copy()
        to_weights[d, 0] = -first if square > 0.0 else 0.0
        more = to_weights.T @ to_weights - np.eye(d + 1)
        self.more = np.zeros((n_weights, n_weights))
        end = (d + 1) * n_classes
        for c in range(n_classes):
            self.more[c:end:n_classes, c:end:n_classes] = more

    def _turned(self, rows, rotation=None):
        """The product of the transpose of the rotation with the first rows."""
        rotation = self.rotation if rotation is None else rotation
        first, rest = np.split(rows, [len(rotation) * self.n_classes])
        tables = first.reshape(len(rotation), -1)
        return np.concatenate([(rotation.T @ tables).reshape(first.shape), rest])

    def hessian(self, H):
        """Second derivatives by the variables, from those by weights of features."""
        return self._turned(self._turned(H).T)

    def slopes(self, gradient):
        """Derivatives by the variables, from those by the weights."""
        size = len(self.means) * self.n_classes
        centered = gradient.copy()
        of_bias = gradient[size : size + self.n_classes]
        centered[:size] -= np.outer(self.means, of_bias).ravel()
        return self._turned(centered)

    def moved(self, w, change):
        """The weights after a change of the variables."""
        k, size = self.n_classes, len(self.means) * self.n_classes
        target = w.copy()
        first = change[: size + k].reshape(-1, k)
        target[: size + k] += (self.rotation @ first).ravel()
        target[size + k :] += change[size + k :]
        # The bias makes up for what the others have moved, rounding included.
        moves = (target[:size] - w[:size]).reshape(-1, k)
        target[size : size + k] -= self.means @ moves
        return target

    def differences(self, gradient, w, squares):
        """Second derivatives by the variables, by differences of derivatives.

        Without a rotation, they are those by the weights.
        `gradient`: w -> derivatives by the weights. `squares` (n_weights,): the sizes of
        second derivatives by the weights.
        """
        # The best steps for slopes with errors as large, for variables of size one.
        steps = np.cbrt(SUM_ROUNDING) / np.sqrt(np.maximum(squares, 1.0))
        steps[: len(self.rotation) * self.n_classes] = np.cbrt(SUM_ROUNDING)
        H = np.empty((len(w), len(w)))
        for j, step in enumerate(steps):
            change = np.zeros(len(w))
            change[j] = step
            ahead, behind = (
                self.slopes(gradient(self.moved(w, sign * change))) for sign in (1, -1)
            )
            H[j] = (ahead - behind) / (2.0 * step)
        H = 0.5 * (H + H.T)
        if self.is_rotated:
            return H
        inverse = np.diag(1.0 / np.diagonal(self.rotation))
        inverse[-1, :-1] = self.means
        return self._turned(self._turned(H, inverse).T, inverse)
