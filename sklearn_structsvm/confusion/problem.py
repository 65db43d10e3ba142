"""A metric, constraints and an oracle as the solvers see them."""

import copy

import numpy as np

from sklearn_structsvm._utils.conditions import Conditions, largest_violation
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.tolerances import ROUNDED_ZERO
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.lmo.plugin import PluginLMO
from sklearn_structsvm.confusion.lmo.thresholds import ThresholdLMO
from sklearn_structsvm.confusion.registry import get_metric


class ConfusionProblem:
    """Minimize ψ(C) over the achievable confusion tensors C that meet the constraints.

    min ψ(C)  over C in 𝒞  with  <G[p], C> + h[p] <= 0 for all p and φ_q(C) <= 0 for all q

    (OP2 of the paper; OP1 without constraints). 𝒞 is accessible only through the oracle.
    All tensors here have the shape (m, k, k). A metric of the (k, k) matrix of all
    examples gets the sum over the cells, and a metric that needs groups the sum over the
    cells of each group.

    `metric`: resolved to the classes. `oracle`: L (m, k, k) → (C, handle, bound): a
    classifier of small <L, C>, whatever stands for it, and a number that <L, C'> is not
    below for any C' in 𝒞 if `exact`. A fitted `PluginLMO` or `ThresholdLMO`, or the
    `CheckedLMO` of any other. `cells`: its `priors` are the row sums of all of 𝒞.

    Attributes: `priors` (m, k). `convex`, `smooth`: as the metric is. `exact`,
    `separable`, `n_terms`: as of `Minimizer`. `unit`: the relative error of what the
    oracle and the metric compute, if it is not that of doubles; else 0.0. `examples`:
    () -> cells and masses of the examples, or None; see `PluginLMO`. `piece_halves`:
    None, since no piece of a metric belongs to a parity in halves. `conditions`: the
    linear ones of all constraints, parities in halves. D has ones (for a lower half
    zeros) where a condition is not one on a rate multiplied by <D[p], C>. `linear`: the
    same without halves, G (p, m, k, k) and h (p,) of each pair of groups.
    `convex_constraints`: the φ_q. `leveled`: constraints that are linear at given
    levels only. Neither `linear` nor `convex_constraints` has them, but `between`.
    """

    piece_halves = None

    def __init__(self, metric, oracle, cells, constraints=()):
        self.metric = metric
        self.oracle = oracle
        self.cells = cells
        self.shape = cells.shape
        self.priors = np.asarray(cells.priors, dtype=np.float64)
        # With individual costs there is an additional slab, see `CostLMO`.
        self.costs = None if oracle.cost_range is None else oracle
        if self.costs is not None:
            slab = np.eye(1, self.shape[-1])
            self.priors = np.concatenate([self.priors, slab])
            self.shape = (len(self.priors), *self.shape[1:])
        self.convex = bool(metric.convex)
        self.smooth = bool(metric.smooth)
        self.exact = bool(oracle.exact)
        self.separable = bool(oracle.separable)
        self.examples = oracle.examples
        self.n_terms = oracle.n_terms
        # Of probabilities by which an oracle chooses, and of slopes by differences.
        self.unit = max(oracle.unit, metric._error_of_slopes)
        self._take(constraints)

    def _take(self, constraints):
        """Set the conditions of constraints."""
        self.constraints = tuple(constraints)
        self.leveled = [c for c in self.constraints if c.has_levels]
        # A rate without examples says nothing, which is no more than a violation of 0.
        says_nothing = any(c.empty_counts(self.cells) for c in self.constraints)
        self._least = 0.0 if says_nothing else -np.inf
        self._linear = None
        self.conditions, has_denominators = self._all_conditions()
        self._flat_linear = self.conditions.G.reshape(-1, int(np.prod(self.shape)))
        # None if all of them are 1.
        self._flat_denominators = None
        if has_denominators:
            self._flat_denominators = self.conditions.D.reshape(self._flat_linear.shape)
        self.convex_constraints = [
            ConvexConstraint(part, self.cells, self._padded)
            for constraint in self.constraints
            if constraint.has_convex
            for part in constraint.convex_parts(self.cells)
        ]

    @classmethod
    def from_probabilities(
        cls,
        metric,
        probabilities,
        y=None,
        *,
        constraints=(),
        sample_weight=None,
        sensitive_features=None,
    ):
        """The problem of all plug-in rules of given class probabilities.

        `probabilities` (n, k): of the labels 0, ..., k - 1. `y` (n,): labels to count
        (for two classes exactly, over all thresholds). None counts the probabilities.
        `sensitive_features` (n,) or (n, p) or None: each group is a cell. ValueError if
        the metric or a constraint rejects the data, or if the probabilities, labels,
        weights or groups are invalid.
        """
        n, k = np.shape(probabilities)
        codes = groups = names = None
        if sensitive_features is not None:
            found = Groups(sensitive_features, n)
            codes, names = found.codes, found.names
            groups = np.arange(len(names))
        if y is None:
            lmo = PluginLMO("probabilities")
        else:
            lmo = ThresholdLMO() if k == 2 else PluginLMO("labels")
        lmo.fit(probabilities, y, sample_weight, codes)
        cells = Cells(lmo.priors_, np.arange(k), groups, names)
        for constraint in constraints:
            constraint.check(cells)
        return cls(get_metric(metric, cells.classes), lmo, cells, constraints)

    @property
    def constrained(self):
        """Whether there is any constraint."""
        return bool(len(self.conditions.h) or self.convex_constraints or self.leveled)

    @property
    def n_levels(self):
        """How many levels the constraints have together."""
        return sum(c.n_levels(self.cells) for c in self.leveled)

    def levels(self, C):
        """(low, high), shape (n_levels,): the levels at which C meets the conditions."""
        both = [c.levels(self._of_cells(C), self.cells) for c in self.leveled]
        return tuple(map(np.concatenate, zip(*both, strict=True)))

    def between(self, low, high, strict=False):
        """The problem with linear conditions for a box of levels.

        `strict`: whether conditions are sufficient, rather than necessary.
        """
        constraints, start = [], 0
        for constraint in self.constraints:
            if constraint.has_levels:
                end = start + constraint.n_levels(self.cells)
                constraint = constraint.between(
                    self.cells, low[start:end], high[start:end], strict
                )
                start = end
            constraints.append(constraint)
        problem = copy.copy(self)
        problem._take(constraints)
        return problem

    def linearized(self, L):
        """The problem with the linear metric <L, C>, L of shape (m, k, k)."""
        return LinearProblem(self, L)

    @property
    def uniform(self):
        """The confusion tensor of the uniformly random classifier, which is inside 𝒞."""
        k = self.shape[-1]
        C = np.repeat(self.priors[:, :, None] / k, k, axis=2)
        if self.costs is not None:
            low, high = self.costs.cost_range
            share = (self.costs.uniform_cost - low) / (high - low) if high > low else 0.0
            C[-1, 0] = 0.0
            C[-1, 0, :2] = share, 1.0 - share
        return C

    def _cost(self):
        """(G, h): the mean cost is <G, C> + h."""
        low, high = self.costs.cost_range
        G = np.zeros(self.shape)
        G[-1, 0, 0] = high - low
        return G, low

    @property
    def linear(self):
        """(G, h) of all linear conditions, those on pairs of groups one by one."""
        if self._linear is None:
            parts = [self._linear_of(constraint) for constraint in self.constraints]
            self._linear = (
                np.concatenate([np.zeros((0, *self.shape)), *(G for G, _ in parts)]),
                np.concatenate([np.zeros(0), *(h for _, h in parts)]),
            )
        return self._linear

    def _linear_of(self, constraint):
        """The linear conditions of a constraint on tensors with the slab, if any."""
        if constraint.needs_costs:
            G, h = self._cost()
            return G[None], np.array([constraint.measured_cost(h)])
        G, h = constraint.linear(self.cells)
        return self._padded(G), h

    def _all_conditions(self):
        """The `conditions`, and whether any has a denominator of its own."""
        none = np.zeros((0, *self.shape))
        G, h, D, halves = [none], [np.zeros(0)], [none], [np.zeros(0, dtype=int)]
        n_levels, varies = 0, False
        for constraint in self.constraints:
            if constraint.needs_costs:
                own_G, own_h = self._linear_of(constraint)
                own_D, own_halves = None, np.zeros(1, dtype=int)
            else:
                own_G, own_h, own_D, own_halves = constraint._conditions(self.cells)
                own_G = self._padded(own_G)
            varies = varies or own_D is not None
            if own_D is None:
                # <1, C> is 1. The lower half adds nothing to that.
                own_D = np.ones((len(own_h), *self.cells.shape))
                own_D[own_halves < 0] = 0.0
            G.append(own_G)
            h.append(own_h)
            D.append(self._padded(own_D))
            halves.append(own_halves + n_levels * np.sign(own_halves))
            n_levels += own_halves.max(initial=0)
        return Conditions(*map(np.concatenate, (G, h, D, halves))), varies

    def _padded(self, G):
        """Append zeros for the slab of costs, if any, to an array (..., m, k, k)."""
        if self.costs is None:
            return G
        return np.concatenate([G, np.zeros_like(G[..., :1, :, :])], axis=-3)

    def _of_cells(self, C):
        return C if self.costs is None else C[:-1]

    def lmo(self, L):
        """(C, handle, bound) of the oracle; L is of shape (m, k, k)."""
        return self.oracle(L)

    def value(self, C):
        """ψ(C)."""
        if self.metric.needs_costs:
            G, h = self._cost()
            return float(np.vdot(G, C) + h)
        return float(self.metric.value(self._gather(C)))

    def gradient(self, C):
        """∇ψ(C), of shape (m, k, k)."""
        if self.metric.needs_costs:
            return self._cost()[0]
        return self._spread(self.metric.gradient(self._gather(C)))

    def tangent(self, C):
        """(G, h): <G, C'> + h touches ψ at C or nearby, and is below it if convex."""
        if self.metric.needs_costs:
            return self._cost()
        G, h = self.metric.tangent(self._gather(C))
        return self._spread(G), float(h)

    def ratio(self):
        """(A, B) with ψ(C) = <A, C> / <B, C>, or None."""
        ratio = self._closed_form(self.metric.ratio)
        return None if ratio is None else tuple(map(self._spread, ratio))

    def pieces(self):
        """(G, h) with ψ(C) = max_p <G[p], C> + h[p], or None; G (p, m, k, k)."""
        if self.metric.needs_costs:
            G, h = self._cost()
            return G[None], np.array([h])
        pieces = self._closed_form(self.metric.pieces)
        if pieces is None:
            return None
        G, h = pieces
        return np.array([self._spread(piece) for piece in G]), np.asarray(h, dtype=float)

    def ratio_terms(self):
        """List of (weight, A, B) with Σ weight <A, C> / <B, C> <= ψ(C), or None."""
        terms = self._closed_form(self.metric.ratio_terms)
        if terms is None:
            return None
        return [(w, self._spread(A), self._spread(B)) for w, A, B in terms]

    def entries(self):
        """Mask (m, k, k) of the entries that ψ or a constraint depends on."""
        mask = np.zeros(self.shape, dtype=bool)
        mask |= self._spread(self.metric.entries(self.shape[-1])) != 0
        if self.metric.needs_costs:
            mask[-1, 0, 0] = True
        mask |= (self.conditions.G != 0.0).any(axis=0)
        if self.convex_constraints:
            mask[: self.cells.n_cells] = True
        return mask

    def features(self, tensors):
        """Linear functions of each tensor that determine ψ and the constraints.

        `tensors` (T, m, k, k). Returns (T, f).
        """
        n = len(tensors)
        if self.convex_constraints:
            return tensors[:, self.entries()]
        mask = self.metric.entries(self.shape[-1])
        if self.metric.needs_costs:
            gathered = tensors[:, -1, 0, 0]
        else:
            gathered = [self._gather(C)[..., mask].ravel() for C in tensors]
        rows = tensors.reshape(n, -1) @ self._flat_linear.T
        return np.concatenate([np.reshape(gathered, (n, -1)), rows], axis=1)

    def violation(self, C):
        """The largest violation, each in its constraint's own units; -inf without any.

        For a rate without examples it is at least 0. Rounding errors around 0 count as 0.
        """
        worst = max(self._largest(C, self._flat_denominators), self._least)
        return 0.0 if 0.0 < worst <= ROUNDED_ZERO else worst

    def excess(self, C):
        """The largest of <G[p], C> + h[p] and φ_q(C); -inf without constraints.

        For rates with a varying denominator, such as precision, this is the violation
        times the denominator, which makes it convex. Solvers minimize it. If it is
        positive, the violation is at least as large.
        """
        return self._largest(C, None)

    def _largest(self, C, denominators):
        flat = C.reshape(-1)
        worst = largest_violation(
            self._flat_linear @ flat + self.conditions.h,
            None if denominators is None else denominators @ flat,
            self.conditions.halves,
        )
        leveled = (c.violation(self._of_cells(C), self.cells) for c in self.leveled)
        return max([worst, *(phi.value(C) for phi in self.convex_constraints), *leveled])

    def _closed_form(self, method):
        """A form of a metric of all examples, for the class priors."""
        if self.metric.needs_groups or self.metric.needs_costs:
            return None
        return method(self._of_cells(self.priors).sum(axis=0))

    def _gather(self, C):
        C = self._of_cells(C)
        return self.cells.by_group(C) if self.metric.needs_groups else C.sum(axis=0)

    def _spread(self, G):
        """Repeat the coefficients of a sum over cells (of a group) for each cell."""
        if self.metric.needs_groups and np.ndim(G) == 3:
            groups = self.cells.groups
            G = np.asarray(G)[
                np.zeros(self.cells.n_cells, int) if groups is None else groups
            ]
        return self._padded(np.broadcast_to(G, self.cells.shape))


class LinearProblem(ConfusionProblem):
    """min <L, C> under the constraints of another problem.

    `L` (m, k, k). `problem`: its metric depends on the same entries of C.
    """

    def __init__(self, problem, L):
        vars(self).update(vars(problem), L=L, convex=True, smooth=True)

    def value(self, C):
        """<L, C>."""
        return float(np.vdot(self.L, C))

    def gradient(self, C):
        """L."""
        return self.L

    def tangent(self, C):
        """(L, 0)."""
        return self.L, 0.0

    def pieces(self):
        """One piece."""
        return self.L[None], np.zeros(1)

    def ratio(self):
        """None, since `pieces` describes it."""
        return None

    def ratio_terms(self):
        """None."""
        return None


class ConvexConstraint:
    """φ(C) <= 0, for the cells of a problem."""

    def __init__(self, constraint, cells, padded):
        self.constraint, self.cells, self.padded = constraint, cells, padded

    def value(self, C):
        """φ(C)."""
        return float(self.constraint.convex_value(self._of_cells(C), self.cells))

    def gradient(self, C):
        """∇φ(C), of the shape of C."""
        return self.padded(self.constraint.convex_gradient(self._of_cells(C), self.cells))

    def tangent(self, C):
        """(G, h) with φ(C') >= <G, C'> + h for all C'."""
        G, h = self.constraint.convex_tangent(self._of_cells(C), self.cells)
        return self.padded(G), h

    def _of_cells(self, C):
        return C[: self.cells.n_cells]
