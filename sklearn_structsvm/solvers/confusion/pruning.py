"""Weights of classifiers that are known: the best ones, and as few as may be."""

import numpy as np

from sklearn_structsvm.solvers.confusion.bounds import Bounds
from sklearn_structsvm.solvers.confusion.master import make_master
from sklearn_structsvm.solvers.confusion.mixture import MET, Columns, Mixture

# Features whose singular values are below this share of the largest are combinations of
# the others.
DEPENDENT = 1e-10

# What rounding leaves of a weight.
NOTHING = 1e-15

# Points are reduced so many more at a time than their mean has dimensions.
AT_ONCE = 64

# A classifier of less weight costs as much to ask as any other, and is hardly ever drawn.
LEAST_WEIGHT = 1e-6

# Share of `tol` that the value may rise where a mixture is made smaller.
RISE = 1e-2

# The largest weight that is moved for rounding's sake: a classifier that is hardly
# inside the constraints itself would take nearly all.
MOST_PULLED = 1e-4

# Programs of `best_weights`. Ten are what the most curved constraints took.
MAX_ROUNDS = 50

# How much finer than the gap each of them is solved.
FINER = 10.0


def best_weights(problem, columns, *, tol, weights=None):
    """The mixture of known classifiers that is best, and meets the constraints.

    min ψ(Σ_t α_t C_t) + price · (largest violation)⁺ over α in the simplex, with a price
    high enough for a violation of 0 where there is such an α: section 8.2 of the paper,
    with ψ itself where that has Σ_t α_t ψ(C_t).

    Parameters
    ----------
    problem : ConfusionProblem
    columns : Columns
    tol : float
        How far the value may be from the least one.
    weights : ndarray of shape (T,) or None
        Where to start.

    Returns
    -------
    weights : ndarray of shape (T,)
    minorant : Minorant
        That shows it: its least value at the columns is the mixture's, but for `tol`.
    """
    master, bounds = make_master(problem, columns), Bounds(problem)
    if weights is not None:
        master.weights = np.asarray(weights, dtype=np.float64)
    gap, low, of_low, best, n_still = 1.0, -np.inf, None, None, 0
    for _ in range(MAX_ROUNDS):
        minorant = master.solve(min(gap, 1.0), min(gap, 1.0) / FINER)
        merit, value, violation = master.merit(columns.mix(master.weights))
        key = max(violation - MET, 0.0), value
        if best is None or key < best[0]:
            best = key, master.weights
        within = float((columns.flat @ minorant.L.ravel()).min()) + minorant.h
        if bounds.lower(minorant, within) > low or of_low is None:
            low, of_low = bounds.lower(minorant, within), minorant
        n_still = n_still + 1 if master.stuck else 0
        # A program that leads nowhere is to be solved more exactly, as if the gap were
        # smaller.
        gap = max(merit - low, 0.0) / FINER**n_still
        master.set_price(gap)
        if gap <= tol and violation <= MET:
            break
    return best[1], of_low


def reduce_support(weights, features):
    """Weights of fewer points with the same mean (Carathéodory).

    While there are more points with weight than the mean has dimensions and one, there
    are changes of the weights that leave the mean as it is; one of them empties a point.

    Parameters
    ----------
    weights : ndarray of shape (T,)
        Non-negative, of sum 1.
    features : ndarray of shape (T, f)

    Returns
    -------
    weights : ndarray of shape (T,)
        At most rank + 1 of them positive; `weights @ features` is the same but for
        rounding.

    Examples
    --------
    The middle of a square is that of one of its diagonals:

    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.confusion.pruning import reduce_support
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> weights = reduce_support(np.full(4, 0.25), corners)
    >>> int((weights > 0).sum()) <= 3, (weights @ corners).round(12).tolist()
    (True, [0.5, 0.5])
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
    """One batch of `reduce_support`: all that leave go at once."""
    # Changes of the weights that leave the mean and the sum: the null space of pointsᵀ.
    _, sizes, V = np.linalg.svd(points.T, full_matrices=True)
    free = V[int((sizes > DEPENDENT * sizes[0]).sum()) :]
    while len(free):
        way, free = free[0], free[1:]
        size = np.abs(way)
        moves = size > DEPENDENT * size.max()
        # A point that is empty already, by a tie, is the first to be reached.
        reach = np.where(moves, left / np.where(moves, size, 1.0), np.inf)
        out = int(np.argmin(reach))
        left = left - way * (left[out] / way[out])
        left[left < NOTHING] = 0.0
        left[out] = 0.0
        # The other changes are combined with this one so as to leave the point empty.
        free = free - np.outer(free[:, out] / way[out], way)
    return left


def fewest(problem, mixture):
    """A mixture of fewer classifiers, with the same ψ and the same constraints' values.

    Parameters
    ----------
    problem : ConfusionProblem
    mixture : Mixture
    """
    features = problem.features(mixture.confusions)
    return _part(mixture, reduce_support(mixture.weights, features))


def sparsify(problem, mixture, *, tol):
    """What to return: a mixture as good as this one, of few classifiers.

    Those of next to no weight go, and the weights of the others are optimised again
    where the constraints want it.

    Parameters
    ----------
    problem : ConfusionProblem
    mixture : Mixture
    tol : float
        Of the run; the value rises by no more than a share of it.
    """
    value = problem.value(mixture.confusion)
    allowed = 0.0 if problem.violation(mixture.confusion) <= 0.0 else MET
    smaller = fewest(problem, mixture)
    for candidate in (smaller, _without_lightest(problem, smaller, tol)):
        C = candidate.confusion
        if problem.violation(C) <= allowed and problem.value(C) <= value + RISE * tol:
            mixture = candidate
    return _pulled_inside(problem, mixture)


def _pulled_inside(problem, mixture):
    """What meets the constraints but for rounding, so that it meets them exactly.

    A little more weight goes to the classifier that is furthest inside, if one is.
    """
    violation = problem.violation(mixture.confusion)
    if not 0.0 < violation <= MET:
        return mixture
    each = [problem.violation(C) for C in mixture.confusions]
    inmost = int(np.argmin(each))
    if not each[inmost] < -MET:
        return mixture
    share = 2.0 * violation / (violation - each[inmost])
    if share > MOST_PULLED:
        return mixture
    weights = (1.0 - share) * mixture.weights
    weights[inmost] += share
    return Mixture(weights, mixture.handles, mixture.confusions)


def _without_lightest(problem, mixture, tol):
    heavy = np.where(mixture.weights >= LEAST_WEIGHT, mixture.weights, 0.0)
    if heavy.all():
        return mixture
    mixture = _part(mixture, heavy)
    if not problem.constrained:
        return mixture
    columns = Columns(problem.shape)
    for C, handle in zip(mixture.confusions, mixture.handles, strict=True):
        columns.add(C, handle)
    weights, _ = best_weights(
        problem, columns, tol=RISE * tol, weights=mixture.weights
    )
    return columns.mixture(weights)


def _part(mixture, weights):
    """The mixture with other weights, without the classifiers that have none."""
    kept = np.flatnonzero(weights)
    return Mixture(
        weights[kept] / weights[kept].sum(),
        [mixture.handles[t] for t in kept],
        mixture.confusions[kept],
    )
