"""The minimum of a convex quadratic function with an L1 penalty, by active sets."""

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.solvers.qp._active_factor import ActiveFactor

# The number of entries that are freed at once: at first this many, half as many after
# some turned back, and otherwise twice as many.
MOST_FREED = 64


def minimize_sparse_quadratic(A, b, penalties, x):
    """Minimize ½ xᵀ A x + ⟨b, x⟩ + Σ_j penalties_j |x_j|.

    The minimum for given signs of the nonzero entries solves a system of equations. A
    step goes along the line toward it, to the best among its end and the points where a
    sign changes and the entry becomes zero [1]_. Once no point with these signs is
    better, entries whose gradient exceeds their penalty are freed.

    `A` (m, m): positive definite. `b`, `penalties` (m,): penalties are positive. `x`
    (m,): where to start. Returns (m,): the minimizer, with exact zeros. It is never worse
    than the start. LinAlgError if A is not positive definite, except for rounding.

    .. [1] Lee, Battle, Raina, Ng, "Efficient sparse coding algorithms", NIPS 2006.
    """
    factor = ActiveFactor(A)
    for j in np.flatnonzero(x):
        factor.add(j)
    x = np.array(x)
    gradient = A @ x + b
    settled, most = False, MOST_FREED
    for _ in range(100 + 3 * len(b)):
        signs = np.sign(x)
        if settled:
            # In the meantime, only the gradient of active entries was updated.
            gradient = A @ x + b
            beyond = np.abs(gradient) - (1.0 + SAME) * penalties
            beyond[x != 0.0] = 0.0
            freed = np.argsort(-beyond, kind="stable")[:most]
            freed = freed[beyond[freed] > 0.0]
            if not len(freed):
                break
            signs[freed] = -np.sign(gradient[freed])
            for j in freed:
                factor.add(j)
        target = _best_of_signs(factor, b, penalties, signs)
        if settled:
            # Only the first entry is sure not to turn back.
            turned = freed[target[freed] * signs[freed] < 0.0]
            most = 2 * most if not len(turned) else max(1, most // 2)
            if len(turned):
                signs[turned] = 0.0
                _keep_active(factor, signs)
                target = _best_of_signs(factor, b, penalties, signs)
        direction = target - x
        # At the target, the gradient equals minus that of the penalty.
        along = np.where(signs == 0.0, 0.0, -gradient - penalties * signs)
        step, crossed = _best_step(x, direction, gradient, along, penalties)
        if step > 0.0:
            x = target if step == 1.0 else x + step * direction
            x[crossed] = 0.0
            gradient += step * along
            is_end = step == 1.0 and not (x * signs < 0.0).any()
        elif settled and most == 1:
            break
        else:
            is_end, most = True, 1 if settled else most
        settled = is_end
        _keep_active(factor, x)
    return x


def _best_of_signs(factor, b, penalties, signs):
    """The minimizer for given signs; its own signs may differ."""
    active = factor.active
    target = np.zeros(len(b))
    target[active] = factor.solve(-(b[active] + penalties[active] * signs[active]))
    if not np.isfinite(target).all():
        raise np.linalg.LinAlgError("A is not positive definite.")
    return target


def _keep_active(factor, x):
    """Keep only nonzero entries active."""
    for place in np.flatnonzero(x[factor.active] == 0.0)[::-1]:
        factor.remove(place)


def _best_step(x, direction, gradient, along, penalties):
    """The best step among 1 and the sign changes, and the entries that become 0."""
    moved = np.flatnonzero(direction)
    x, direction, penalties = x[moved], direction[moved], penalties[moved]
    turned = np.flatnonzero(x * direction < 0.0)
    zeros = -x[turned] / direction[turned]
    steps = np.append(np.unique(zeros[zeros < 1.0]), 1.0)
    values = steps * (gradient[moved] @ direction)
    values += 0.5 * steps**2 * (direction @ along[moved])
    for k, step in enumerate(steps):
        values[k] += penalties @ (np.abs(x + step * direction) - np.abs(x))
    best = int(np.argmin(values))
    if not values[best] < 0.0:
        return 0.0, moved[:0]
    return float(steps[best]), moved[turned[zeros == steps[best]]]
