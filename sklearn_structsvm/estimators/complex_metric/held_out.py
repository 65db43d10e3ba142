"""Constraints that are tested on held-out rows, from strict to loose.

The rules are those of one parameter: each condition is made stricter by so many of its
standard errors. They are chosen by the other rows, so that the held-out ones are new to
them, and tested in an order that is fixed before (fixed-sequence testing): from the rule
that seems surest to looser ones, until one is not certified. That a rule is certified
and violates a constraint takes an error of the test of the first one that does, however
many are tested (Angelopoulos, Bates, Candès, Jordan, Lei, "Learn then Test", 2021).
"""

from dataclasses import dataclass, replace
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.compat import _check_method_params
from sklearn_structsvm._utils.tables import listed_names
from sklearn_structsvm._utils.tolerances import SAME, rounded_up
from sklearn_structsvm.confusion.binomial_tests import (
    RateSums,
    allowance,
    empty_of,
    enough_factor,
    one_standard_error,
    p_value,
    rate_sums,
)
from sklearn_structsvm.confusion.counts import count
from sklearn_structsvm.confusion.moved import moved
from sklearn_structsvm.confusion.tightening import refuse_curved, refuse_many_pairs
from sklearn_structsvm.estimators.complex_metric.over_probabilities import routes_metadata
from sklearn_structsvm.estimators.complex_metric.pairs import for_pairs
from sklearn_structsvm.estimators.complex_metric.probabilities import class_probabilities
from sklearn_structsvm.estimators.complex_metric.task import (
    bounds_uniformly,
    promise_words,
    refuse_empty_counts,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# By how many standard errors conditions are made stricter (looser if negative), at most
# and from the surest rule downwards. Steps are wide where rules are so sure that tests
# of those in between are hardly needed.
STEP = 0.25
SHIFTS = np.append(np.arange(6.0, 3.0, -2.0 * STEP), np.arange(3.0, -4.0 - STEP, -STEP))


@dataclass
class HeldOut:
    """Rows that no rule is chosen by.

    `predict_params`: for `predict_proba` of the classifier. `cells`: of all rows.
    `share`: of these rows among all.
    """

    given: Any
    predict_params: dict
    task: Any
    cells: Any
    share: float

    def counter(self, estimator, found, n_threads):
        """A function: mixture -> counts (m, k, k) of what it predicts for the rows."""
        task, n, X = self.task, len(self.task.y), self.given.X
        finder, P = found["cell_finder_"], X
        if "estimator_" in found:
            k = len(task.classes)
            classes = task.classes
            if finder.group_blind:
                classes = np.arange(k * finder.n_unseen_groups)
            P = class_probabilities(
                found["estimator_"], X, classes, **self.predict_params
            )
        cells = finder.find(X, n, self.given.metadata["sensitive_features"])
        uniforms = found["row_hash_"].choices(X, n)

        def counts(mixture):
            used = P if mixture.correction is None else mixture.correction(P)
            knows_costs = mixture.needs_costs and np.ndim(task.costs) == 3
            costs = task.costs if knows_costs else None
            codes = mixture.predict(used, cells, uniforms, n_threads, costs)
            return count(task.codes, task.y, codes, np.ones(n), self.cells.shape)

        return counts


def hold_out(estimator, task, given):
    """Divide the rows at random into those to choose rules by and those to test them by.

    Returns the `HeldOut`, or None if there are no constraints, or none that are tested;
    and the task and what is given of the other rows. ValueError for constraints that
    are not on rates, and weights that are not all equal.
    """
    is_tested = estimator.constraint_confidence is not None
    if not is_tested or bounds_uniformly(estimator) or not task.constraints:
        return None, task, given
    refuse_curved(task.constraints)
    refuse_many_pairs(task.constraints, task.cells)
    cv = estimator.cv
    if not (cv is None or isinstance(cv, (str, Integral)) or hasattr(cv, "split")):
        raise ValueError(
            "A cv that lists rows cannot be used with held-out calibration, which "
            "divides the rows before. Pass a number of folds or a splitter."
        )
    used = np.flatnonzero(task.weights > 0.0)
    if np.ptp(task.weights[used]) > 0.0:
        raise ValueError(
            "The exact bounds of held-out examples count each example once, but "
            "sample_weight has different weights. Use "
            "constraint_calibration='uniform', which counts effective examples."
        )
    share = estimator._options.constraint_calibration
    rng = check_random_state(
        0 if estimator.random_state is None else estimator.random_state
    )
    order = rng.permutation(used)
    n = round(share * len(used))
    if not 0 < n < len(used):
        raise ValueError(
            f"constraint_calibration={share} of {len(used)} examples leaves none to "
            "choose a rule by, or none to test it by."
        )
    held, rest = np.sort(order[:n]), np.sort(order[n:])

    tested = task.take(held)
    refuse_empty_counts(
        task.constraints, tested.cells, promise_words(estimator), "held-out "
    )
    predict_params = {}
    if routes_metadata() and estimator._is_plugin:
        routed = given.routed(estimator)
        params = routed.estimator.predict_proba
        if estimator._options.group_estimator is not None:
            params = for_pairs(params, routed.group_estimator.predict_proba)
        predict_params = _check_method_params(given.X, params, held)
    share = n / len(used)
    test = HeldOut(given.take(held), predict_params, tested, task.cells, share)
    return test, task.take(rest), given.take(rest)


@dataclass
class _Rule:
    """The solution with conditions that are stricter by `shift` standard errors."""

    shift: float
    constraints: list
    solved: Any
    surety: float

    @property
    def solution(self):
        """The mixture, or the single rule."""
        return self.solved.result.solution


class CertifiedSearch:
    """Finds the loosest rule that held-out rows certify.

    `found`: fitted attributes known before. `solve`: (problem, max_time) -> Solved.
    """

    def __init__(self, estimator, oracle, found, solve, held_out, n_threads):
        self.estimator, self.oracle, self.solve = estimator, oracle, solve
        self.held_out = held_out
        self.asked = list(oracle.task.constraints)
        self.error = 1.0 - estimator.constraint_confidence
        self.count = held_out.counter(estimator, found, n_threads)
        left = estimator._options.max_time
        self.deadline = np.inf if left is None else perf_counter() + left
        self.errors = None
        # Rules by shift that are tested again, or not yet.
        self.known = {}
        self.p_values, self.n_calls = [], 0

    def run(self):
        """The certified `_Rule`.

        InfeasibleConstraintError if none is, with the number of examples that would do.
        """
        plain = self.known[0.0] = self.rule(0.0)
        n = len(self.held_out.task.y)
        cells = self.oracle.task.problem(self.oracle.lmo).cells
        counts = n * plain.solution.confusion[: cells.n_cells]
        self.errors = [one_standard_error(c, cells, counts) for c in self.asked]
        plain.surety = self.surety(plain, n)
        rule = start = self.surest(plain, n)
        best, first = None, None
        shifts = iter(SHIFTS[SHIFTS < start.shift].tolist())
        while True:
            if best is None or not _is_same(rule, best):
                counts = self.counts(rule)
                sums = self.sums(counts)
                first = (sums, counts) if first is None else first
                self.p_values.append(p_value(sums, self.error))
                if self.p_values[-1] > self.error:
                    break
            elif rule.shift <= 0.0:
                # No condition matters any more.
                break
            best = rule
            shift = next(shifts, None)
            if shift is None or perf_counter() >= self.deadline:
                break
            try:
                rule = self.known.get(shift) or self.rule(shift)
            except InfeasibleConstraintError:
                # No single rule, where there is one for stricter conditions.
                break
        if best is None:
            raise self.refusal(start, *first)
        return best

    def counts(self, rule):
        """Of the held-out rows, by cell, label and prediction."""
        return self.count(self.oracle.attributes(rule.solution)["mixture_"])

    def sums(self, counts):
        """The conditions with the counts of the held-out rows."""
        cells = self.held_out.cells
        return RateSums.of([rate_sums(c, cells, counts) for c in self.asked])

    def rule(self, shift):
        """The solution; InfeasibleConstraintError if there is none."""
        constraints = self.asked
        if shift != 0.0:
            constraints = [
                moved(c, shift * e) for c, e in zip(self.asked, self.errors, strict=True)
            ]
        task = replace(self.oracle.task, constraints=constraints)
        left = None
        if np.isfinite(self.deadline):
            left = max(self.deadline - perf_counter(), 0.0)
        problem = task.problem(self.oracle.lmo)
        solved = self.solve(problem, left, n_searches=len(SHIFTS))
        self.n_calls += solved.result.n_oracle_calls
        return _Rule(shift, constraints, solved, -np.inf)

    def expected(self, rule, n):
        """The conditions with the counts of n examples."""
        cells = self.oracle.task.problem(self.oracle.lmo).cells
        counts = n * rule.solution.confusion[: cells.n_cells]
        return RateSums.of([rate_sums(c, cells, counts) for c in self.asked])

    def surety(self, rule, n):
        """By how many standard errors all conditions seem to be met."""
        return float(self.expected(rule, n).spares.min(initial=np.inf))

    def surest(self, plain, n):
        """The rule that seems to be surest, by ever stricter conditions."""
        best, shift, step = plain, 0.0, 1.0
        while shift < SHIFTS[0] and step >= STEP:
            try:
                rule = self.rule(shift + step)
            except InfeasibleConstraintError:
                step *= 0.5
                continue
            shift += step
            # Twice a step that was halved is known to be too much.
            step *= 1.0 if step == 1.0 else 0.5
            self.known[shift] = rule
            rule.surety = self.surety(rule, n)
            if rule.surety > best.surety:
                best = rule
            elif best.surety < shift:
                # There is no slack left, or stricter conditions are on fewer examples.
                break
        return best

    def refusal(self, rule, sums, counts):
        """The error of the first rule that was tested, which says what would do."""
        nothing = empty_of(sums, counts, self.held_out.cells)
        n, share = len(self.held_out.task.y), self.held_out.share
        # By what is expected, since many p-values may be 1.
        expected = self.expected(rule, n)
        worst = expected[int(expected.spares.argmin())]
        looser = allowance(sums, self.error)
        name = self.held_out.cells.words_of
        sizes = [f"{counts[own].sum():,.0f} {name(own)}" for own in worst.among]
        words = f"What decides are rates of {' and '.join(sizes)}."
        if nothing:
            words = f"There are no held-out {listed_names(nothing, str)}."
        strictest = sums[sums.decisive(self.error)[1]]
        # Otherwise nothing would be asked any more.
        if strictest.bound + looser * strictest.unit < strictest.costs.sum():
            least = rounded_up(looser)
            words += (
                f" The rule would pass constraints that are {least} looser. For these"
            )
            words += " another rule is chosen, which may need a little more."
        # No number of examples does what no stricter rule was found for.
        is_spare = rule.shift > 0.0 or rule.surety >= STEP
        factor = enough_factor(rule.surety * is_spare, self.error, share)
        if factor is not None and factor > 1.0:
            enough = _rounded(int(np.ceil(n / share * factor)))
            words += f" As asked, it takes about {enough:,} examples in all."
        if factor is not None and factor <= 1.0:
            words += " As many other examples might do: this was chance, or the "
            words += "probabilities are wrong."
        return InfeasibleConstraintError(
            f"No rule is certified to meet the constraints with "
            f"{promise_words(self.estimator)}: the {n:,} held-out examples are too few. "
            f"{words} {self.plainly()}",
            looser,
        )

    def plainly(self):
        """A sentence about the rule without confidence, by the held-out rows."""
        spare = self.sums(self.counts(self.known[0.0])).spares.min(initial=np.inf)
        if not np.isfinite(spare):
            return "They say nothing about the rule without a confidence."
        verb = "meet" if spare >= 0.0 else "violate"
        return (
            f"Without a confidence, the rule seems to {verb} them on the held-out "
            f"examples, by {abs(spare):.1f} standard errors."
        )


def _is_same(rule, other):
    confusions = [each.solution.confusion for each in (rule, other)]
    return np.allclose(*confusions, rtol=0.0, atol=SAME)


def _rounded(n):
    """To two digits, upwards."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // unit) * unit
