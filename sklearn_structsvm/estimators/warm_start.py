"""The state that a fit keeps, and when the next fit may start from it."""

from dataclasses import dataclass
from pickle import PicklingError

import joblib

from sklearn_structsvm._utils.borders import check_entries
from sklearn_structsvm._utils.caller import warn_caller


@dataclass
class WarmStart:
    """The start of a fit.

    Attributes
    ----------
    fingerprint : str or None
        Tells the examples and the structure from others. None if nothing is kept.
    state : dict or None
        The dual point of the previous fit, or None if it cannot be reused.
    """

    fingerprint: str | None
    state: dict | None


def find_warm_start(estimator, problem, previous, entries, **others):
    """The `WarmStart` that an estimator's `warm_start` asks for.

    Parameters
    ----------
    estimator : StructuredClassifier
    problem : LocalProblem or RemoteProblem
    previous : dict
        Attributes of the previous fit.
    entries : tuple of str
        What every state has.
    **others : dict
        Parameters that the state depends on, beside the examples and the structure.
    """
    if not estimator.warm_start:
        return WarmStart(None, None)
    structure = problem.structure
    try:
        fingerprint = joblib.hash(
            (problem.y, structure.get_params(), structure.n_weights_, others)
        )
    except PicklingError as error:
        raise ValueError(
            "warm_start=True requires labels and a structure that can be pickled: "
            f"{error}"
        ) from error
    kept = previous.get("_dual_state")
    if kept is None:
        return WarmStart(fingerprint, None)
    check_entries("_dual_state", kept, "key", "state")
    check_entries("_dual_state['state']", kept["state"], *entries)
    if not (isinstance(kept["key"], str) and kept["key"] == fingerprint):
        names = " or ".join(["y or the structure", *others])
        warn_of_cold_start(f"{names} is not that", "dual point is")
        return WarmStart(fingerprint, None)
    return WarmStart(fingerprint, kept["state"])


def warn_of_cold_start(other, useless):
    """Say what is other than in the previous fit, and what of that fit is of no use."""
    warn_caller(
        f"warm_start=True, but {other} of the previous fit, whose {useless} of no "
        "use here: starting anew.",
        UserWarning,
    )
