"""Valid values of parameters, in the groups that estimators share."""

from numbers import Integral, Real
from typing import get_args

from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm._utils.options import COUNT, POSITIVE, Option
from sklearn_structsvm.estimators.named_structures import STRUCTURE_CONSTRAINT
from sklearn_structsvm.solvers.blocks.steps import BlockStepName, steps_that

NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]
SHARE = [Interval(Real, 0, 1, closed="neither")]


def check_ranges(owner, values, constraints):
    """ValueError for a number that is out of its range.

    scikit-learn's `skip_parameter_validation` skips the other checks of parameters, but
    with other numbers certificates are wrong, and memory is not what kernels expect.

    `owner`: the class or function. `values`, `constraints`: by the names of parameters.
    """
    for name, allowed in constraints.items():
        # Anything beside an interval may allow other numbers.
        if not isinstance(allowed, list) or not set(map(type, allowed)) <= CLOSED:
            continue
        intervals = [one for one in allowed if isinstance(one, Interval)]
        value = values[name]
        is_number = isinstance(value, Real) and bool(intervals)
        if is_number and not any(value in interval for interval in intervals):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be "
                f"{' or '.join(map(str, intervals))}. Got {value!r} instead."
            )


# Types of constraints that allow no numbers, beside intervals.
CLOSED = {Interval, StrOptions, type(None)}

# Parameters for reading X and y.
DATA = {
    "fit_intercept": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "n_jobs": [Integral, None],
    "solver_options": [dict, None],
}

# Limits of a solver.
LIMITS = {
    "C": POSITIVE,
    "tol": NON_NEGATIVE,
    "max_iter": COUNT,
    "verbose": ["verbose"],
}

# Options of all estimators over structures and rows.
TIME_OPTION = {"max_time": Option(None, [*POSITIVE, None])}
DATA_OPTIONS = {
    "intercept_scaling": Option(1.0, POSITIVE),
    "classes": Option(None, ["array-like", None]),
    **TIME_OPTION,
}

# Parameters of methods that visit one example at a time, for one C or several.
BLOCKS = {
    **DATA,
    "structure": STRUCTURE_CONSTRAINT,
    "random_state": ["random_state"],
}

# Their options.
BLOCK_OPTIONS = {
    "sampling": Option("auto", [StrOptions({"auto", "gap", "uniform", "permuted"})]),
    "acceleration": Option("auto", ["boolean", StrOptions({"auto"})]),
    **DATA_OPTIONS,
}

# The same for a single C.
BLOCKS_OF_ONE_C = {**BLOCKS, **LIMITS, "warm_start": ["boolean"]}
GAP_CHECKS = {"gap_check_interval": Option(10, COUNT)}

# Frank-Wolfe steps on one example.
BLOCK_STEP = {"step": [StrOptions(set(get_args(BlockStepName)))]}
CACHE_OPTION = {"cache": Option("auto", ["boolean", StrOptions({"auto"})])}

# The values that parameters may have if the examples are on the workers of a cluster.
DASK_BLOCKS = {
    "average": (False, "auto"),
    "step": ("auto", *steps_that(is_plain=False)),
    "sampling": ("auto", "permuted"),
    "warm_start": (False,),
}
