"""Values of C, and fits that go from one of them to the next."""

import warnings
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import Interval
from sklearn_structsvm.estimators.base import Fit
from sklearn_structsvm.estimators.method import run
from sklearn_structsvm.estimators.remedies import cut_words

# The largest number of values of C. Larger numbers were probably meant as something else.
CS_CONSTRAINT = [Interval(Integral, 2, 10**6, closed="both"), "array-like"]


def given_grid(Cs):
    """The given values, sorted and without duplicates, or None for a number of values.

    ValueError if they are not positive, finite numbers.
    """
    if isinstance(Cs, Integral):
        return None
    try:
        values = as_array("Cs", Cs)
    except ValueError:
        values = np.empty(0)
    is_number = values.ndim == 1 and len(values) and values.dtype.kind in "iuf"
    if not is_number or not ((values > 0) & np.isfinite(values)).all():
        raise ValueError(f"Cs must be positive, finite numbers; got {Cs!r}.")
    return np.unique(values.astype(np.float64))


def make_grid(Cs, ends):
    """The given values, or a number of them between `ends()`."""
    given = given_grid(Cs)
    return np.geomspace(*ends(), Cs) if given is None else given


def warm_fits(estimator, problem, Cs):
    """Fit one C after another, each from the last solution. Yields the gaps.

    The caller warns of fits that are cut short, see `warn_of_gaps`.
    """
    estimator.set_params(warm_start=True)
    for C in Cs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with Fit(estimator.set_params(C=float(C))) as fit:
                run(fit, problem, fit.estimator._method(problem, fit.previous))
        yield estimator.dual_gap_


def warn_of_gaps(estimator, problem, Cs, is_short, fits, where):
    """Warn if fits ended above `tol`.

    `is_short` (n_Cs, n) bool: for each C, the fits above `tol`.
    """
    if is_short.any():
        advice = cut_words(
            estimator, problem, "increase max_iter or max_time", "use smaller Cs"
        )
        warn_caller(
            f"{is_short.sum()} of {is_short.size} {fits} ended with a duality gap above "
            f"tol={estimator.tol:.3g}, from C={Cs[is_short.any(axis=1)][0]:.3g} on; see "
            f"{where}. {advice}",
            ConvergenceWarning,
        )
