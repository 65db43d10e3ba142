"""Shared by the solvers of confusion problems: options, and how to run them."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from sklearn_structsvm.solvers.confusion.level_search import run_over_levels


class Kind(NamedTuple):
    """The valid values of an option, as a check and in words."""

    is_right: Any
    words: str


@dataclass(frozen=True)
class Option:
    """An option of a solver: its default and its valid values."""

    default: Any
    kind: Kind


def _is_positive(value):
    return isinstance(value, Real) and 0.0 < value < np.inf


def _are_positive(values):
    return np.ndim(values) == 1 and len(values) > 0 and all(map(_is_positive, values))


def _is_count(value):
    return isinstance(value, (int, np.integer)) and value > 0


POSITIVE_NUMBER = Kind(_is_positive, "a positive number")
POSITIVE_NUMBERS = Kind(_are_positive, "positive numbers")
TWO_POSITIVE_NUMBERS = Kind(
    lambda v: _are_positive(v) and len(v) == 2, "two positive numbers"
)
POSITIVE_INTEGER = Kind(_is_count, "a positive integer")
BOOLEAN = Kind(lambda value: isinstance(value, (bool, np.bool_)), "True or False")


def choice(default, *names):
    """An option whose value is one of these names."""

    def is_right(value):
        return isinstance(value, str) and value in names

    return Option(default, Kind(is_right, f"one of {names}"))


# Some solvers optimize the weights of all found classifiers at intervals: the first
# interval, in iterations. Later ones are longer.
RECOMBINE_INTERVAL = Option(25, POSITIVE_INTEGER)


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
    def check_options(cls, options):
        """Raise an error for unknown options and invalid values."""
        for name, value in options.items():
            if name not in cls.OPTIONS:
                known = sorted(cls.OPTIONS)
                takes = f"the options {known}" if known else "no options"
                raise TypeError(
                    f"solver_options has {name!r}, but {cls.CALLED} accepts {takes}."
                )
            is_right, words = cls.OPTIONS[name].kind
            if not is_right(value):
                raise ValueError(
                    f"solver_options[{name!r}] of {cls.CALLED} must be {words}; "
                    f"got {value!r}."
                )

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
        cls.check_options(options)
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
