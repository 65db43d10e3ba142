"""The best weights of known classifiers, and as few of them as possible."""

import numpy as np
from scipy.optimize import linprog

from sklearn_structsvm._utils.threads import one_blas_thread
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO, SAME, UNNOTICED
from sklearn_structsvm.solvers.accuracy import FINAL_SHARE, INNER_SHARE, MAX_PROGRAMS
from sklearn_structsvm.solvers.confusion.bounds import LowerBounds
from sklearn_structsvm.solvers.confusion.master import make_master
from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL, Columns, Mixture

# Points are reduced in batches that exceed the dimension of their mean by this number.
AT_ONCE = 64


def best_weights(problem, columns, *, tol, weights=None):
    """The best mixture of known classifiers that satisfies the constraints.

    min ψ(C) + price · (excess of C)⁺ for C = Σ_t α_t C_t, α in the simplex, with a price
    high enough for an excess of 0 if some α allows it. This is section 8.2 of the paper,
    but with ψ itself instead of Σ_t α_t ψ(C_t).

    `tol`: the largest distance of the value from the minimum. `weights` (T,) or None:
    the start. Returns `weights` (T,); `minorant`: the proof: its smallest value at the
    columns is the mixture's, up to `tol`.
    """
    master, bounds = make_master(problem, columns), LowerBounds(problem)
    if weights is not None:
        master.weights = np.asarray(weights, dtype=np.float64)
    gap, low, of_low, best, n_still = 1.0, -np.inf, None, None, 0
    for _ in range(MAX_PROGRAMS):
        minorant = master.solve(min(gap, 1.0), INNER_SHARE * min(gap, 1.0))
        merit, value, excess = master.merit(columns.mix(master.weights))
        key = max(excess - FEASIBILITY_TOL, 0.0), value
        if best is None or key < best[0]:
            best = key, master.weights
        within = float((columns.flat @ minorant.L.ravel()).min()) + minorant.h
        if bounds.lower(minorant, within) > low or of_low is None:
            low, of_low = bounds.lower(minorant, within), minorant
        n_still = n_still + 1 if master.stuck else 0
        # A program without progress is solved more exactly, as if the gap were smaller.
        gap = max(merit - low, 0.0) * INNER_SHARE**n_still
        master.set_price(gap)
        if gap <= tol and excess <= FEASIBILITY_TOL:
            break
    return best[1], of_low


def reduce_support(weights, features):
    """Weights of fewer points with the same mean (Carathéodory).

    As long as more points have weight than the dimension of the mean plus one, some
    changes of the weights do not change the mean. One of these empties a point.

    `features` (T, f). `weights` (T,): non-negative, of sum 1. Returns `weights` (T,): at
    most rank + 1 of them positive; `weights @ features` is the same but for rounding.
    """
    weights = np.array(weights, dtype=np.float64)
    points = np.column_stack([features, np.ones(len(weights))])
    todo, held = np.flatnonzero(weights), np.zeros(0, dtype=int)
    while len(todo):
        room = max(AT_ONCE + points.shape[1] - len(held), 1)
        support, todo = np.concatenate([held, todo[:room]]), todo[room:]
        weights[support] = _reduce(weights[support], points[support])
        held = support[weights[support] > 0.0]
    return weights / weights.sum()


def _reduce(left, points):
    """Reduce one batch of `reduce_support`, removing all its points at once."""
    # Changes of the weights that keep the mean and the sum: the null space of pointsᵀ,
    # all of which V has if there are not more points than features.
    n, f = points.shape
    _, sizes, V = np.linalg.svd(points.T, full_matrices=n > f)
    free = V[int((sizes > SAME * sizes[0]).sum()) :]
    while len(free):
        way, free = free[0], free[1:]
        size = np.abs(way)
        moves = size > SAME * size.max()
        # A point that is already empty, because of a tie, is reached first.
        reach = np.where(moves, left / np.where(moves, size, 1.0), np.inf)
        out = int(np.argmin(reach))
        left = left - way * (left[out] / way[out])
        left[left < ROUNDED_ZERO] = 0.0
        left[out] = 0.0
        # The other changes are combined with this one so that the point stays empty.
        free = free - np.outer(free[:, out] / way[out], way)
        free[:, out] = 0.0
    return left


def fewest(problem, mixture):
    """A mixture of fewer classifiers, with the same values of ψ and the constraints."""
    features = problem.features(mixture.confusions)
    return _part(mixture, reduce_support(mixture.weights, features))


def sparsify(problem, mixture, *, tol):
    """A mixture as good as this one, of few classifiers.

    Classifiers of negligible weight are dropped. If the constraints require it, the
    weights of the others are optimized again. If one classifier is as good alone, it is
    the result: rounding may favor a mixture of two that have the same value.

    `tol`: the tolerance of the run. The value rises by at most a share of it.
    """
    value = problem.value(mixture.confusion)
    allowed = 0.0 if problem.violation(mixture.confusion) <= 0.0 else FEASIBILITY_TOL
    smaller = fewest(problem, mixture)
    candidates = (
        smaller,
        _without_lightest(problem, smaller, tol),
        _best_alone(problem, smaller, allowed),
    )
    for candidate in candidates:
        C = candidate.confusion
        if (
            problem.violation(C) <= allowed
            and problem.value(C) <= value + FINAL_SHARE * tol
        ):
            mixture = candidate
    C = mixture.confusion
    if problem.violation(C) > 0.0 and problem.excess(C) <= UNNOTICED:
        flat = mixture.confusions.reshape(len(mixture.weights), -1)
        exact = _part(mixture, meet_exactly(problem, flat, mixture.weights))
        if problem.value(exact.confusion) <= value + FINAL_SHARE * tol:
            return exact
    return mixture


def meet_exactly(problem, flat, weights):
    """The nearest weights that satisfy constraints which are violated by rounding only.

    If the classifiers leave room, the new slack equals the present excess e. In units of
    e, the changes δ of the weights solve a linear program: min |δ|₁ with α + e δ in the
    simplex and no condition above -e (or, if that fails, above 0). Equality conditions
    have no slack. The smallest change satisfies them as well, without a program.

    `flat` (T, m k k): confusion tensors. `weights` (T,): weights with a positive excess
    of at most `UNNOTICED`. Returns `weights` (T,): the same weights if no others
    are better.
    """
    C, n = np.reshape(weights @ flat, problem.shape), len(weights)
    excess, violation = problem.excess(C), problem.violation(C)
    G, h, _, halves = problem.conditions
    tangents = [phi.tangent(C) for phi in problem.convex_constraints]
    G = np.array([*G, *(slopes for slopes, _ in tangents)]).reshape(-1, flat.shape[1])
    h = np.append(h, [offset for _, offset in tangents])
    halves = np.append(halves, np.zeros(len(tangents), dtype=int))
    sides, h, values = _split_sums(halves, h, G @ C.ravel() + h)
    rows = G @ flat.T + h[:, None]
    # Sums of shares are accurate to four units of rounding.
    rounding = 4.0 * np.finfo(float).eps * (np.abs(G) @ C.ravel() + np.abs(h))
    moved = _least_change(rows[np.abs(values) <= excess], weights)
    if problem.violation(np.reshape(moved @ flat, problem.shape)) == 0.0:
        return moved
    # Others are too far from their limit to matter if weights change by that little.
    near = values > -excess / UNNOTICED
    rows, ends, rounding = rows[near], -values[near] / excess, rounding[near] / excess
    sides = sides[near]
    for spare in (1.0, -rounding):
        found = linprog(
            np.append(np.ones(2 * n), np.zeros(sides.shape[1])),
            A_ub=np.hstack([rows, -rows, sides]),
            b_ub=ends - spare,
            A_eq=np.append(np.repeat([1.0, -1.0], n), np.zeros(sides.shape[1]))[None],
            b_eq=[0.0],
            bounds=[(0.0, None)] * n
            + [(0.0, weight / excess) for weight in weights]
            + [(None, None)] * sides.shape[1],
        )
        if found.status != 0:
            continue
        change = found.x[:n] - found.x[n : 2 * n]
        moved = np.maximum(weights + excess * change, 0.0)
        moved /= moved.sum()
        if problem.violation(np.reshape(moved @ flat, problem.shape)) < violation:
            return moved
    return weights


def _split_sums(halves, h, values):
    """Place each level's variable between its halves.

    Returns `sides` (p, number of levels): the coefficients of the variables; `h`,
    `values` (p,): for variables for which the largest upper and lower half are equal.
    """
    sides = np.zeros((len(halves), halves.max(initial=0)))
    for e in range(1, sides.shape[1] + 1):
        upper, lower = halves == e, halves == -e
        middle = 0.5 * (values[upper].max() - values[lower].max())
        sides[upper, e - 1], sides[lower, e - 1] = -1.0, 1.0
        h, values = h + middle * sides[:, e - 1], values + middle * sides[:, e - 1]
    return sides, h, values


def _least_change(rows, weights):
    """The weights with the smallest relative changes for which all these rows are 0."""
    wanted = np.vstack([rows, np.ones(len(weights))]) * weights
    with one_blas_thread():
        shares = np.linalg.lstsq(wanted, np.append(-rows @ weights, 0.0), rcond=None)[0]
    moved = np.maximum(weights * (1.0 + shares), 0.0)
    return moved / moved.sum()


def _best_alone(problem, mixture, allowed):
    """The best of a mixture's classifiers among those that meet the constraints."""
    values = [
        problem.value(C) if problem.violation(C) <= allowed else np.inf
        for C in mixture.confusions
    ]
    return _part(mixture, np.eye(len(values))[int(np.argmin(values))])


def _without_lightest(problem, mixture, tol):
    # Another classifier costs as much time as any, and is hardly ever drawn.
    heavy = np.where(mixture.weights >= UNNOTICED, mixture.weights, 0.0)
    if heavy.all():
        return mixture
    mixture = _part(mixture, heavy)
    if not problem.constrained:
        return mixture
    columns = Columns(problem.shape)
    start = columns.add_all(mixture.parts())
    weights, _ = best_weights(problem, columns, tol=FINAL_SHARE * tol, weights=start)
    return columns.mixture(weights)


def _part(mixture, weights):
    """The mixture with other weights, without classifiers of weight zero."""
    kept = np.flatnonzero(weights)
    return Mixture(
        weights[kept] / weights[kept].sum(),
        [mixture.handles[t] for t in kept],
        mixture.confusions[kept],
    )
