"""Shared by the solvers of confusion problems: options, and how to run them."""

from numbers import Real

import numpy as np

from sklearn_structsvm._utils.compat import Interval
from sklearn_structsvm._utils.options import COUNT, Option, check_options
from sklearn_structsvm.solvers.confusion.level_search import run_over_levels

# Some solvers optimize the weights of all found classifiers at intervals: the first
# interval, in iterations. Later ones are longer.
RECOMBINE_INTERVAL = Option(25, COUNT)


class PositiveNumbers(Interval):
    """The valid values of an option that holds positive numbers, `n` of them or any."""

    def __init__(self, n=None):
        super().__init__(Real, 0.0, None, closed="neither")
        self.n = n

    def is_satisfied_by(self, values):
        if np.ndim(values) != 1 or len(values) != (self.n or max(len(values), 1)):
            return False
        return all(map(super().is_satisfied_by, values))

    def __str__(self):
        return f"{self.n or 'some'} positive numbers"


class ConfusionSolver:
    """A solver of confusion problems: `run` repeats its `move`.

    A subclass makes an `Incumbent`, and reports the results of its moves to it. The
    algorithms whose numbers the subclasses name are those of [1]_, "the paper".

    `options`: values of `OPTIONS`, all of which become attributes.

    Attributes: `CALLED`: its name in errors. `MAX_ITER`: of `run` by default.

    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", 2022.
    """

    CALLED: str
    MAX_ITER = 5000
    OPTIONS: dict[str, Option] = {}

    def __init__(self, problem, tol, max_iter, options):
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        for name, option in self.OPTIONS.items():
            setattr(self, name, options.get(name, option.default))

    def move(self):
        """Make one iteration. Returns None, or the status that ends the run."""
        raise NotImplementedError

    @classmethod
    def run(
        cls,
        problem,
        *,
        tol=1e-3,
        max_iter=None,
        max_time=None,
        on_pass=None,
        history=None,
        **options,
    ):
        """Solve a problem.

        `tol`: stop if value - bound is at most this and the constraints are met.
        `max_iter` or None: `MAX_ITER` by default.
        `max_time` or None: seconds.
        `on_pass` or None: called after each iteration with its number, the last row of
          the history (a dict) and whether the run ends here anyway. A true return value
          ends it.
        `history` or None: gets a row for each iteration, about the best mixture so far.
          "dual_gap" is inf as long as it violates a constraint.
        `**options`: options of the solver.
        Returns a `SolverResult` whose solution is a `Mixture`.
        InfeasibleConstraintError if no classifier satisfies the constraints. The
          message states the smallest violation. TypeError, ValueError for invalid
          options, and for problems that the solver does not support.
        """
        check_options(cls.CALLED, options, cls.OPTIONS)
        max_iter = cls.MAX_ITER if max_iter is None else max_iter
        if problem.leveled:
            return run_over_levels(
                cls.run,
                problem,
                tol=tol,
                max_iter=max_iter,
                max_time=max_time,
                on_pass=on_pass,
                history=history,
                **options,
            )
        solver = cls(problem, tol, max_iter, options)
        return solver.incumbent.run(
            solver.move,
            max_iter=max_iter,
            max_time=max_time,
            on_pass=on_pass,
            history=history,
        )
