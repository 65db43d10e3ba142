"""Cutting planes for structural SVMs: one slack variable per example, or one for all."""

from functools import partial
from time import perf_counter

import numpy as np

from sklearn_structsvm.solvers.accuracy import INNER_SHARE, ROUGH_SHARE
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks.bcfw import CACHE_SIZE
from sklearn_structsvm.solvers.blocks.mixture import (
    IDLE,
    MAX_INNER,
    MOST_KEPT,
    PlaneMixture,
)
from sklearn_structsvm.solvers.loop import STEPS_PER_LOOK, Rounding, certified, run_passes
from sklearn_structsvm.solvers.qp.bundle import Bundle
from sklearn_structsvm.solvers.qp.center import Center

# Labelings kept per example of an expensive oracle, in the one-slack form.
PLANE_CACHE_SIZE = 10


def run_cutting_plane(
    oracle,
    weights,
    lam,
    *,
    form="n-slack",
    cache_size=None,
    tol=1e-3,
    n_threads=1,
    rng=None,
    rounding=None,
    **limits,
):
    """Minimize λ/2 ||w||² + Σ_i p_i max_y [L_i(y) - ⟨w, φ(x_i, y_i) - φ(x_i, y)⟩].

    Each round asks the oracle for the most violating labeling of every example, and
    solves the problem anew over the labelings found so far: with a working set for each
    example [1]_, or with one plane for all examples and round [2]_. Planes taken at the
    solutions of the programs zigzag. So they are taken between the best weights seen and
    the solution, which needs a third of the rounds. Where passes over the working sets do
    not solve the program, as on raw columns, planes over them do.

    `oracle`: if it has an array `slacks`, each round first sets it to the slack
      variables ξ_i of the examples, the largest values over the cached labelings.
    `weights`, `lam` as for `start_bcfw`.
    `form` ({"n-slack", "one-slack"}): "one-slack" keeps vectors of the length of w:
      usually a few dozen, and at most 100 or as many as fit into 512 MB, whichever is
      more, but never more than 1000.
    `cache_size` or None: "n-slack": the size of a working set above which labelings
      without dual mass are dropped, 50 by default. "one-slack": labelings kept per
      example. Planes are made from them before the oracle is called again. They pay if
      the oracle is expensive: the default is 10 if it declares no `relative_cost` (a
      structure in Python), and 0 otherwise.
    `rng` (numpy.random.Generator, seed or None): determines the order of the examples
      in passes over the working sets. Default: 0.
    `tol`, `**limits`: as for `run_passes`. A pass is a round. A round that has begun to
      call the oracle is finished.
    Returns the `SolverResult` for the best weights seen. "stalled" if no labeling
      is violated by half of `tol`, and the rest of the gap is the oracle's.

    .. [1] Tsochantaridis, Joachims, Hofmann, Altun, "Large margin methods for structured
       and interdependent output variables", JMLR 6, 2005.
    .. [2] Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", Machine
       Learning 77, 2009.
    """
    if form == "n-slack":
        size = CACHE_SIZE if cache_size is None else cache_size
        rng = np.random.default_rng(0 if rng is None else rng)
        model = _WorkingSets(oracle, weights, lam, size, rng)
    else:
        if cache_size is None:
            is_expensive = oracle.relative_cost == np.inf
            cache_size = PLANE_CACHE_SIZE if is_expensive else 0
        model = _JointPlanes(oracle, weights, lam, cache_size)
    model.n_threads = n_threads
    rounding = Rounding() if rounding is None else rounding
    center, least = model.center, -np.inf

    def check(done):
        nonlocal least
        w, risk = model.weights, model.risk
        model.learn(0.5 * lam * w.dot(w) + model.ask())
        bound, dual_w = model.dual_objective, model.dual_weights
        bound -= rounding.of_values(dual_w, bound, lam * dual_w.dot(dual_w))
        error = rounding.of_values(center.best, center.objective)
        least = max(least, bound - error)
        row = certified(center.objective, least, error, risk.n_oracle_calls)
        terms = partial(risk.size_of_terms, w)
        return row, center.best, risk.most_negative_gap, terms

    return run_passes(
        lambda deadline: (
            "stalled" if model.improve(ROUGH_SHARE * tol, deadline) else None
        ),
        check,
        tol=tol,
        method="planes",
        **limits,
    )


class _WorkingSets:
    """The n-slack form: a dual point over a few labelings of each example."""

    def __init__(self, oracle, weights, lam, cache_size, rng):
        self.iterate = BlockFrankWolfe(
            oracle, weights, lam, step="pairwise", cache_size=max(cache_size, 1)
        )
        self.risk = EmpiricalRisk(oracle, weights, known=self.iterate.atoms)
        self.rng = rng
        self.mixture, self.center = None, Center()
        self.center.start(self.weights)

    @property
    def weights(self):
        return self.iterate.weights

    @property
    def dual_weights(self):
        return self.weights

    @property
    def dual_objective(self):
        w = self.weights
        return self.iterate.loss - 0.5 * self.iterate.lam * w.dot(w)

    def learn(self, objective):
        """Use the objective at `weights`."""
        self.center.note(self.weights, objective)
        self.gap = objective - self.dual_objective

    def ask(self):
        oracle = self.iterate.oracle
        if oracle.slacks is not None:
            oracle.slacks[:] = self.iterate.largest_cached()
        return self.risk.ask(self.weights, self.n_threads)

    def improve(self, eps, deadline):
        """Add what the oracle found. Returns whether there was nothing left to gain."""
        iterate = self.iterate
        n_added = iterate.extend(*self.risk.answers, eps)
        # Without new labelings there is no reason to stop early.
        target = INNER_SHARE * (self.gap if n_added > 0 else eps)
        blocks = iterate.movable_blocks
        chunk = STEPS_PER_LOOK if iterate.oracle.thread_safe else 1
        for k in range(MAX_INNER):
            order = self.rng.permutation(blocks)
            gap = 0.0
            for start in range(0, len(order), chunk):
                gap += iterate.run_cached(order[start : start + chunk])
                if perf_counter() >= deadline:
                    return False
            if gap <= target:
                return k == 0 and n_added == 0
        self._take_cached_planes(target, deadline)
        return False

    def _take_cached_planes(self, target, deadline):
        """Mix planes over working sets whose program pairwise steps did not solve."""
        if self.mixture is None:
            self.mixture = PlaneMixture(self.iterate, self.n_threads, cached=True)
        self.mixture.start(self.weights)
        n_idle = 0
        for _ in range(MOST_KEPT):
            n_idle = 0 if self.mixture.take() else n_idle + 1
            is_done = self.mixture.gap() <= target or n_idle >= IDLE
            if is_done or perf_counter() >= deadline:
                return


class _JointPlanes:
    """The one-slack form: planes below the risk, each of one labeling per example.

    `weights` (d,): where the oracle is called, a step of the `Center` ahead.
    """

    def __init__(self, oracle, weights, lam, cache_size):
        self.risk = EmpiricalRisk(oracle, weights, cache_size)
        self.cache_size = cache_size
        self.bundle = Bundle(oracle.n_weights, lam)
        # All labelings are the true ones.
        self.bundle.add(np.zeros(oracle.n_weights), 0.0)
        self.bundle.solve()
        self.weights, self.center = self.bundle.weights, Center()
        self.center.start(self.weights)

    @property
    def dual_weights(self):
        return self.bundle.weights

    @property
    def dual_objective(self):
        return self.bundle.dual_objective

    def learn(self, objective):
        """Use the objective at `weights`."""
        self.center.note(self.weights, objective)
        self.gap = self.center.objective - self.dual_objective

    def ask(self):
        oracle = self.risk.oracle
        if oracle.slacks is not None:
            self.risk.recall(self.weights, self.n_threads)
            oracle.slacks[:] = self.risk.block_values
        return self.risk.ask(self.weights, self.n_threads)

    def improve(self, eps, deadline):
        """Add what the oracle found. Returns whether there was nothing left to gain."""
        bundle, asked = self.bundle, self.weights
        plane, offset = self.risk.plane()
        self.risk.cache_answers()
        if plane @ bundle.weights + offset > bundle.slack + eps:
            bundle.add(plane, offset)
            bundle.solve()
            self._recall_planes(deadline)
        elif asked is bundle.weights:
            return True
        else:
            self.center.step = 1.0
        # At the minimizer itself, the bundle knows whether the plane cuts it off.
        is_damped = self.center.step < 1.0
        self.weights = self.center.toward(bundle.weights) if is_damped else bundle.weights
        return False

    def _recall_planes(self, deadline):
        """Add planes made of labelings that were found before."""
        bundle = self.bundle
        for _ in range(MAX_INNER if self.cache_size else 0):
            value = self.risk.recall(bundle.weights, self.n_threads)
            if value <= bundle.slack + INNER_SHARE * self.gap:
                break
            bundle.add(*self.risk.plane())
            bundle.solve()
            if perf_counter() >= deadline:
                break
