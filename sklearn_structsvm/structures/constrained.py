"""The exact constrained λ-oracle of chains, forests and independent labels.

The search works in the plane of h (margin) and g (loss), see `constrained_argmax`.

1. The λ-oracle alone often satisfies the constraints: one Viterbi pass.
2. Otherwise it violates one of them, s(y) = a h + b g >= 0. The labelings are then
   searched in decreasing order of the Lagrangian h + λ g + μ s, which bounds the value of
   every feasible labeling from above. Any μ >= 0 is valid. The one with the tightest
   bound leaves the fewest labelings to examine. One multiplier is enough: if the best
   labeling lies outside of the cone between two rays, the best point of the labelings'
   convex hull inside lies on the ray that was crossed.
3. Labelings are partitioned as in `k_best`. A part is dropped if its maximum of
   a constraint's s is negative, for then no labeling in it is feasible, or if its maximum
   of h + λ g is not above the value of the best feasible labeling so far. In a forest
   whose parents come first, the rest after a prefix consists of several trees, whose
   maxima add up.
"""

import heapq
from numbers import Real
from operator import itemgetter

import numpy as np

from sklearn_structsvm.structures._constrained import coordinate_path, deviations
from sklearn_structsvm.structures._k_best import (
    check_potentials,
    complete,
    suffix_scores,
)

# Relative to the largest possible sum and per position: far above the rounding of
# reordered sums (about 3 units each), so that rounding drops no part.
SLACK = 32 * np.finfo(np.float64).eps
# The search for the multiplier ends after a few steps, but rounding could prolong it.
MAX_MULTIPLIER_STEPS = 30


def constrained_argmax(
    theta,
    transition,
    costs,
    truth,
    lam,
    alpha,
    beta,
    strict_alpha=False,
    strict_beta=True,
    *,
    parents=None,
    max_parts=200_000,
):
    r"""Best labeling of a chain or forest between two rays of the (h, g) plane, or None.

    .. math:: \operatorname{argmax}_y\; h(y) + \lambda g(y)
        \quad\text{over}\quad \{y : \beta h(y) < g(y) \le \alpha h(y)\},

    with h(y) = 1 + f(y) - f(truth), f(y) = Σ_t theta[t, y_t] +
    Σ_{t >= 1} transition[y_{t-1}, y_t], and g(y) = Σ_t costs[t, y_t]: eq. (8) of the
    reference with the strictness of its Algorithm 2. In a forest y_{t-1} reads
    y_parent(t), and roots have no transition.

    The search is exact (see the module). It takes O(T K²) if the λ-oracle already
    satisfies the constraints and O(T K) per labeling looked at beyond that. These are
    few as a rule, but exponentially many in the worst case, in time and in memory:
    whether a labeling lies on a given ray is a subset-sum problem, which is NP-hard.

    `theta` (T, K): scores of the labels, position by position; finite.
    `transition` (K, K), or (T, K, K) if they differ: scores of pairs of labels, that of
      the previous position, or of the parent, first. None for independent labels: a
      multilabel problem has K = 2, a multiclass problem T = 1.
    `costs` (T, K): loss >= 0 of each label at each position, costs[t, truth[t]] = 0.
    `truth` (T,): the true label indices, in [0, K).
    `lam`: λ >= 0, finite.
    `alpha`, `beta`: slopes g/h of the upper and of the lower ray; alpha >= 0, which may
      be infinite, and beta >= 0, finite. See `in_angle` for what they mean where h is
      not positive.
    `strict_alpha`, `strict_beta`: whether labelings on the upper and on the lower ray
      are left out.
    `parents` (T,): of a forest: parents[t] < t, and -1 for a root. None for a chain,
      that is parents[t] = t - 1. Any such order will do, but where all that is below a
      position comes right after it, the search finds more parts to be copies.
    `max_parts`: where to give up; about 5 s and 100 MB away.
    Returns (T,) intc, or None if no labeling satisfies the constraints. Among equally
      good labelings the choice depends on the arguments alone.
    ValueError if a shape or a value is not as described. RuntimeError if `max_parts`
      parts of the labelings did not settle it.

    Choi, H., Meshi, O. and Srebro, N. (2016). Fast and scalable structural SVM with
    slack rescaling. AISTATS 2016, section 4.5 and appendix F.
    """
    check_rays(lam, alpha, beta)
    problem = _Plane(theta, transition, costs, truth, parents)

    def is_feasible(point):
        return in_angle(*point, alpha, beta, strict_alpha, strict_beta)

    objective = (1.0, lam)
    # s(y) >= 0 for both constraints, scaled so that no coefficient exceeds 1.
    upper = (1.0, -1.0 / alpha) if alpha > 1 else (alpha, -1.0)
    lower = (-1.0, 1.0 / beta) if beta > 1 else (-beta, 1.0)
    best = problem.argmax(objective)
    point = problem.point(best)
    if is_feasible(point):
        return best
    crossed = min(upper, lower, key=lambda s: _value(s, point))
    guide = _tightest_bound(problem, objective, crossed, point)
    constraints = upper, lower
    return _branch_and_bound(
        problem, guide, objective, constraints, is_feasible, max_parts
    )


def in_angle(h, g, alpha, beta, strict_alpha=False, strict_beta=True):
    """Whether β h < g <= α h: the membership that `constrained_argmax` goes by.

    For h > 0 the slopes g/h are compared, so that a ray drawn through a labeling,
    α = g/h in floating point, has that labeling exactly on it, and a strict inequality
    leaves it out. With α infinite the right inequality reads h >= 0, and h > 0 where
    it is strict: the g-axis is the ray of slope ∞. The paper leaves this open, and
    its Lemmas 7 to 10 hold either way, since Φ = h g is 0 on the axis: Lemma 8 is
    about labelings of larger Φ, and no maximizer is lost or won there. For the same
    reason h <= 0 with finite α, where only g = h = 0 (or α = 0) can satisfy both,
    follows the inequalities as they stand.

    `h`, `g`: margin 1 + f(y) - f(y_true), and loss >= 0. `alpha`, `beta`: slopes of the
    two rays, alpha >= 0 or infinite, beta >= 0 and finite. `strict_alpha`,
    `strict_beta`: whether the upper and the lower ray itself is left out.
    """
    if h > 0:
        slope, low, high = g / h, beta, alpha
    else:
        slope, low, high = g, beta * h, alpha * h if alpha < np.inf else np.nan
    above = slope > low if strict_beta else slope >= low
    if alpha == np.inf:
        return above and (h > 0 if strict_alpha else h >= 0)
    return above and (slope < high if strict_alpha else slope <= high)


class _Plane:
    """The labelings of one chain or forest as points (h, g), and maxima of a h + b g."""

    def __init__(self, theta, transition, costs, truth, parents):
        self.theta, self.transition = check_potentials(theta, transition)
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)
        self.truth = np.ascontiguousarray(truth, dtype=np.intc)
        T, K = self.theta.shape
        if self.costs.shape != (T, K):
            raise ValueError(f"costs must have shape {(T, K)}; got {self.costs.shape}.")
        if not (np.isfinite(self.costs).all() and (self.costs >= 0).all()):
            raise ValueError("costs must be finite and not negative.")
        if self.truth.shape != (T,):
            raise ValueError(f"truth must have shape {(T,)}; got {self.truth.shape}.")
        if self.truth.min() < 0 or self.truth.max() >= K:
            raise ValueError(f"truth must hold indices in [0, {K}); got {truth!r}.")
        steps = np.arange(T)
        if self.costs[steps, self.truth].any():
            raise ValueError("costs must be zero at the true labels.")
        self.parents = steps - 1 if parents is None else _as_forest(parents, T)
        # Node potentials of h: the truth's share is subtracted position by position.
        self.margins = self.theta - self.theta[steps, self.truth, np.newaxis]
        self.margins[0] += 1.0
        if transition is not None:
            of_pairs = np.broadcast_to(self.transition, (T, K, K))
            edges = of_pairs[steps, self.truth[self.parents], self.truth]
            self.margins -= np.where(self.parents < 0, 0.0, edges)[:, np.newaxis]

    def path(self, y):
        """h - 1 and g of y as they add up, of shape (2, T + 1)."""
        return coordinate_path(
            self.theta, self.transition, self.costs, self.truth, y, self.parents
        )

    def point(self, y):
        """h(y), g(y)."""
        return _end(self.path(y))

    def potentials(self, direction):
        """Nodes and edges whose sum over a labeling is a h + b g."""
        a, b = direction
        edges = None if self.transition is None else a * self.transition
        return a * self.margins + b * self.costs, edges

    def argmax(self, direction):
        """A labeling of largest a h + b g."""
        nodes, edges = self.potentials(direction)
        y = np.empty(len(nodes), dtype=np.intc)
        suffixes = suffix_scores(nodes, edges, self.parents)
        complete(y, 0, suffixes, edges, self.parents)
        return y

    def choices(self):
        """For each position t, an index of the labels on which part t depends.

        These are the label of t, and earlier labels that transitions from t on use.
        """
        last_read = list(range(len(self.theta)))
        if self.transition is not None:
            for t, parent in enumerate(self.parents.tolist()):
                if parent >= 0:
                    last_read[parent] = t
        result, read = [], []
        for t in range(len(last_read)):
            read = [v for v in read if last_read[v] >= t] + [t]
            result.append(itemgetter(*read))
        return result

    def rounding(self, direction):
        """A bound of the rounding error of a sum a h + b g."""
        a, b = map(abs, direction)
        size = 1.0 + 2.0 * np.abs(self.theta).max(axis=1).sum()
        if self.transition is not None:
            size += 2.0 * len(self.theta) * np.abs(self.transition).max()
        size = a * size + b * self.costs.max(axis=1).sum()
        return SLACK * (len(self.theta) + 1) * size


def _tightest_bound(problem, objective, constraint, outside):
    """The direction h + λ g + μ s with the μ >= 0 that minimizes the maximum.

    `outside` is a point of largest h + λ g, with s < 0 (or s = 0). The maximum is
    convex and piecewise linear in μ: at its minimum two labelings tie, one on each
    side of s = 0. Each step takes the μ at which the two sides' points tie, until no
    third one is better there.
    """
    inside = problem.point(problem.argmax(constraint))
    guide = objective
    for _ in range(MAX_MULTIPLIER_STEPS):
        room = _value(constraint, inside) - _value(constraint, outside)
        loss = _value(objective, outside) - _value(objective, inside)
        if room <= problem.rounding(constraint) or loss <= 0:
            break
        mu = loss / room
        guide = tuple(o + mu * s for o, s in zip(objective, constraint, strict=True))
        point = problem.point(problem.argmax(guide))
        if _value(guide, point) <= _value(guide, outside) + problem.rounding(guide):
            break
        if _value(constraint, point) < 0:
            outside = point
        else:
            inside = point
    return guide


def check_rays(lam, alpha, beta):
    """TypeError or ValueError for what describes no rays."""
    for name, value in (("lam", lam), ("alpha", alpha), ("beta", beta)):
        if not isinstance(value, Real):
            raise TypeError(f"{name} must be a number; got {value!r}.")
    if not 0 <= lam < np.inf:
        raise ValueError(f"lam must be finite and not negative; got {lam!r}.")
    if not alpha >= 0:
        raise ValueError(f"alpha must be a number >= 0, or inf; got {alpha!r}.")
    if not 0 <= beta < np.inf:
        raise ValueError(f"beta must be finite and not negative; got {beta!r}.")


def _as_forest(parents, T):
    parents = np.asarray(parents)
    if parents.shape != (T,) or parents.dtype.kind not in "iu":
        raise ValueError(
            f"parents must be {T} integers; got {parents.dtype} of shape {parents.shape}."
        )
    bad = np.flatnonzero((parents < -1) | (parents >= np.arange(T)))
    if len(bad):
        raise ValueError(
            f"parents must come before their children, -1 for a root; got the parent "
            f"{parents[bad[0]]} for position {bad[0]}."
        )
    return np.ascontiguousarray(parents, dtype=np.intp)


def _end(path):
    margin, loss = path[:, -1].tolist()
    return 1.0 + margin, loss


def _value(direction, point):
    return direction[0] * point[0] + direction[1] * point[1]


def _branch_and_bound(problem, guide, objective, constraints, is_feasible, max_parts):
    """Feasible labeling of largest objective: best-first branch and bound, or None."""
    scores = [problem.potentials(d) for d in (guide, *constraints, objective)]
    suffixes = np.stack([suffix_scores(*p, problem.parents) for p in scores])
    nodes = np.stack([potentials[0] for potentials in scores])
    edges = guide_edges = None
    if problem.transition is not None:
        edges = np.stack([potentials[1] for potentials in scores])
        guide_edges = edges[0]
    lowest = np.array([[-problem.rounding(s)] for s in constraints])
    roots = problem.parents < 0
    highest = suffixes[1:3, roots].max(axis=2).sum(axis=1, keepdims=True)
    if (highest < lowest).any():
        return None
    padding = problem.rounding(guide)
    parents, choices = problem.parents, problem.choices()
    best, best_value = None, -np.inf
    # A part: its negative bound, its number (which breaks ties), and the origin of its
    # first labeling: another labeling, the position where they differ, and the label
    # there.
    start = np.zeros(len(problem.theta), dtype=np.intc)
    heap = [(-np.inf, 0, start, 0, suffixes[0, 0].argmax())]
    seen = set()
    while heap and -heap[0][0] > best_value:
        _, _, other, position, label = heapq.heappop(heap)
        labels = other.copy()
        labels[position] = label
        complete(labels, position + 1, suffixes[0], guide_edges, parents)
        path = problem.path(labels)
        point = _end(path)
        if _value(objective, point) > best_value and is_feasible(point):
            best, best_value = labels, _value(objective, point)
        following, highest = deviations(labels, position, nodes, edges, suffixes, parents)
        names = labels.tolist()
        bounds = np.minimum(highest[0] + padding, highest[3])
        open_parts = (highest[1:3] >= lowest).all(axis=0) & (bounds > best_value)
        for t in np.flatnonzero(open_parts).tolist():
            # Parts with equal prefix sums and equal remaining choices are copies of each
            # other. There are many if w = 0 or if potentials are small integers.
            part = (t, choices[t](names), *path[:, t])
            if part not in seen:
                seen.add(part)
                heapq.heappush(heap, (-bounds[t], len(seen), labels, t, following[t]))
        if len(seen) > max_parts:
            raise RuntimeError(
                f"The constrained oracle gave up after {len(seen)} parts (max_parts="
                f"{max_parts}); whether a labeling lies on a ray is an NP-hard "
                "question."
            )
    return best
