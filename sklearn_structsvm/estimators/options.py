"""Parameters that need others: one table, one check, one wording."""

from dataclasses import dataclass, field
from inspect import signature
from numbers import Number
from typing import Any

import numpy as np

from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.estimators.batch_losses import L1_LOSSES, LOSSES


@dataclass(frozen=True)
class Need:
    """A requirement of a parameter for another one.

    Attributes
    ----------
    values : tuple or None
        The values of the parameter with this requirement. None means all values except
        the default, False and empty ones.
    other : str
        The other parameter.
    allowed : tuple
        Its allowed values, or types of values.
    given : dict
        The requirement applies only if other parameters have these values. By default it
        always applies.
    hint : str
        Additional sentences for the error.
    """

    values: tuple[Any, ...] | None
    other: str
    allowed: tuple[Any, ...]
    hint: str = ""
    given: dict[str, Any] = field(default_factory=dict)


# The number of characters of a value in an error.
MAX_SHOWN = 60

PACKAGE = __name__.partition(".")[0]

NO_CACHE = Need(
    ("corrective",),
    "cache",
    ("auto", False),
    "Corrective steps keep the labelings that they need.",
)

_ORTHANT = ("owlqn", "owlqn*")
_SMOOTH = tuple(k for k in LOSSES if LOSSES[k].is_smooth)
_NOT_SMOOTH = (*(k for k in LOSSES if not LOSSES[k].is_smooth), ConfusionMetric)

_BATCH: dict[str, list[Need]] = {
    "k": [Need(None, "loss", tuple(k for k in LOSSES if LOSSES[k].takes_k))],
    "label_costs": [
        Need(
            None,
            "loss",
            tuple(k for k in LOSSES if LOSSES[k].takes_label_costs),
            "Use class_weight for weights of the classes.",
        )
    ],
    "class_weight": [
        Need(
            None,
            "loss",
            (*(k for k in LOSSES if LOSSES[k].takes_class_weight), ConfusionMetric),
            "The others count the rows of one class among the first k.",
        )
    ],
}


def _without_squares(other, *allowed):
    """The requirements of dual ascent if the penalty has no squares."""
    hint = "Or use l1_ratio=0.99, with which the penalty is strongly convex."
    return [
        Need((1.0,), other, allowed, hint, {"solver": solver})
        for solver in ("auto", "dual")
    ]


_CRF: dict[str, list[Need]] = {
    "sampling": [Need(None, "solver", ("auto", "dual"))],
    "acceleration": [Need(None, "solver", ("auto", "dual"))],
}

_UNIFORM = {"constraint_calibration": "uniform"}

# Requirements by names of estimators (which also apply to subclasses), then by
# parameters. Parameters that all solvers have, such as `tol`, have none. Neither do
# parameters that are ignored so that one grid can contain several solvers.
NEEDS: dict[str, dict[str, list[Need]]] = {
    "BCFWClassifier": {
        "step": [
            Need(("exact", "corrective", "pairwise", "away"), "algorithm", ("block",)),
            Need(("exact",), "cache", ("auto", False)),
            Need(("exact",), "average", (False,)),
            Need(("exact",), "coef_bounds", (None,), "Use step='auto'."),
            NO_CACHE,
        ],
        "l1_ratio": [
            Need(None, "step", ("auto", "corrective", "fw", "pairwise", "away")),
            Need(None, "algorithm", ("block",)),
            Need(None, "average", (False,)),
            Need(None, "coef_bounds", (None,)),
        ],
        "cache": [Need(None, "algorithm", ("block",))],
        "sampling": [Need(None, "algorithm", ("block",))],
        "acceleration": [Need(None, "algorithm", ("block",))],
    },
    "BCFWClassifierCV": {"step": [NO_CACHE]},
    "SlackRescaledSSVM": {
        "step": [Need(None, "solver", ("bcfw",))],
        "acceleration": [Need(None, "solver", ("bcfw",))],
        "warm_start": [
            Need(None, "solver", ("bcfw",), "Only it keeps its dual solution.")
        ],
        "sampling": [
            Need(
                ("gap",),
                "solver",
                ("bcfw",),
                "With solver='sgd' use 'permuted' or 'uniform'.",
            ),
            Need(None, "solver", ("bcfw", "sgd")),
        ],
        "average": [Need(None, "solver", ("bcfw", "sgd"))],
        "search": [
            Need(
                ("sarawagi",),
                "solver",
                ("cutting_plane", "one_slack"),
                "Only cutting planes know the slack of each example. search='binary' "
                "does not need it.",
            )
        ],
    },
    "CRFClassifier": {
        **_CRF,
        "l1_ratio": [
            Need(
                (1.0,),
                "solver",
                ("auto", "dual", "newton"),
                "Or use l1_ratio=0.99: without squares in the penalty, OWL-QN cannot "
                "tell how far it is from the optimum.",
            ),
            *_without_squares("acceleration", "auto", True),
            *_without_squares("sampling", "auto", "uniform", "permuted"),
        ],
    },
    "CRFClassifierCV": _CRF,
    "BMRMClassifier": _BATCH,
    "SubLBFGSClassifier": {
        **_BATCH,
        "loss": [Need(("logistic",), "penalty", ("l1",))],
        "penalty": [Need(("l1",), "loss", tuple(L1_LOSSES))],
        "solver": [
            Need(("dual-hybrid", "hybrid", "sublbfgs", "subbfgs"), "penalty", ("l2",)),
            Need(_ORTHANT, "penalty", ("l1",)),
            Need(("dual-hybrid", "hybrid"), "loss", _NOT_SMOOTH, "Use solver='newton'."),
            Need(_ORTHANT, "loss", _SMOOTH, "Use solver='newton'."),
            Need(("newton",), "loss", _SMOOTH, given={"penalty": "l2"}),
        ],
        "line_search": [
            Need(None, "penalty", ("l2",), "OWL-QN has a line search of its own.")
        ],
        "buffer": [
            Need(
                None, "solver", ("auto", "dual-hybrid", "hybrid", "sublbfgs", *_ORTHANT)
            ),
            # For these, "auto" can take Newton's method, which has no buffer.
            Need(None, "solver", _ORTHANT, given={"penalty": "l1"}),
            Need(
                None,
                "solver",
                ("sublbfgs",),
                given={"penalty": "l2", "loss": "squared_hinge"},
            ),
        ],
    },
    "ComplexMetricClassifier": {
        "group_estimator": [Need(None, "group_blind", (True,))],
        "constraint_confidence": [
            Need(None, "confusion", ("auto", "labels"), given=_UNIFORM),
            Need(
                None,
                "lmo",
                ("plugin",),
                "Only it uses class probabilities.",
                given=_UNIFORM,
            ),
        ],
        "cv": [
            Need(("prefit",), "lmo", ("plugin",), "Only it uses class probabilities.")
        ],
        "confusion": [
            Need(
                ("probabilities",),
                "lmo",
                ("plugin",),
                "Only it uses class probabilities.",
            )
        ],
        "group_blind": [
            Need(None, "lmo", ("plugin",), "Only it uses class probabilities.")
        ],
    },
    "MultilabelMetricClassifier": {
        name: [
            Need(values, "labels_per_row", (None,), "It is for thresholds only."),
            Need(values, "average", ("macro", "micro"), "It is for thresholds only."),
        ]
        for name, values in (("constraints", None), ("confusion", ("labels",)))
    },
}


# Allowed values of parameters if the examples stay with the workers of a cluster, by
# names of estimators.
_DASK_BLOCKS: dict[str, tuple[Any, ...]] = {
    "algorithm": ("block",),
    "average": (False, "auto"),
    "step": ("auto", "exact", "corrective", "pairwise", "away"),
    "sampling": ("auto", "permuted"),
    "warm_start": (False,),
    "l1_ratio": (0.0,),
}
DASK_OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "BCFWClassifier": _DASK_BLOCKS,
    "SlackRescaledSSVM": {"solver": ("bcfw",), **_DASK_BLOCKS},
    "CRFClassifier": {"solver": ("auto", "lbfgs"), "warm_start": (False,)},
}


# Parameters that only risks of rows have, and the reason, by names of estimators.
_RISKS: dict[str, str] = {
    "loss": "see SlackRescaledSSVM for their slacks",
    "label_costs": "a structure has its own loss",
}
ROW_OPTIONS: dict[str, dict[str, str]] = {
    "BMRMClassifier": {
        **_RISKS,
        "line_search": "each point would cost a decoding",
        "subproblem": "all planes are minimized over",
        "warm_start": "cutting planes start from nothing",
    },
    "PragamClassifier": _RISKS,
}


def check_needs(estimator):
    """Raise ValueError if a parameter requires another value of a second one.

    Requirements that depend on the data are checked later.
    """
    kind = _named_in(NEEDS, estimator)
    if kind is None:
        return
    defaults = signature(kind.__init__).parameters
    for name, needs in NEEDS[kind.__name__].items():
        value, default = getattr(estimator, name), defaults[name].default
        for need in needs:
            if _has(need, value, default) and _is_where(need, estimator):
                other = getattr(estimator, need.other)
                if not _is_one(other, need.allowed):
                    raise ValueError(_words(name, value, need, other))


def check_dask_options(estimator):
    """ValueError if a parameter of an estimator needs data in memory."""
    kind = _named_in(DASK_OPTIONS, estimator)
    if kind is None:
        return
    for name, allowed in DASK_OPTIONS[kind.__name__].items():
        value = getattr(estimator, name, allowed[0])
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} needs data in memory; with Dask it must be "
                f"{' or '.join(map(repr, allowed))}."
            )


def refuse_row_options(estimator, structure):
    """ValueError if a parameter is for rows, and the data are of a structure."""
    kind = _named_in(ROW_OPTIONS, estimator)
    defaults = signature(kind.__init__).parameters
    for name, reason in ROW_OPTIONS[kind.__name__].items():
        value = getattr(estimator, name)
        if not _is_one(value, (defaults[name].default,)):
            raise ValueError(
                f"{name}={value!r} is for rows whose structure is read from y, and not "
                f"for {structure}: {reason}."
            )


def _named_in(table, estimator):
    """The class of this package that an estimator belongs to, if a table names it."""
    for kind in type(estimator).__mro__:
        if kind.__name__ in table and kind.__module__.startswith(PACKAGE):
            return kind
    return None


def _has(need, value, default):
    """Whether a value has the requirement."""
    if need.values is not None:
        return _is_one(value, need.values)
    asks_for_nothing = isinstance(value, (bool, np.bool_, list, tuple)) and not value
    return not (asks_for_nothing or _is_one(value, (default,)))


def _is_where(need, estimator):
    return all(_is_one(getattr(estimator, k), (v,)) for k, v in need.given.items())


def _is_one(value, allowed):
    """Whether a value is one of those allowed, or of their types."""
    # The comparison of an array would be an array.
    is_plain = value is None or isinstance(value, (str, Number, np.bool_))
    return any(
        isinstance(value, one) if isinstance(one, type) else is_plain and value == one
        for one in allowed
    )


def _words(name, value, need, other):
    allowed = [
        f"a {one.__name__}" if isinstance(one, type) else repr(one)
        for one in need.allowed
    ]
    listed = " or ".join(
        [", ".join(allowed[:-1]), allowed[-1]] if allowed[1:] else allowed
    )
    where = [f"{k}={v!r}" for k, v in need.given.items()]
    where = f" with {' and '.join(where)}" if where else ""
    hint = f" {need.hint}" if need.hint else ""
    return (
        f"{_shown(name, value)} requires {need.other}={listed}{where}; got "
        f"{_shown(need.other, other)}.{hint}"
    )


def _shown(name, value):
    """A parameter with its value, which is abbreviated if it is long."""
    words = repr(value)
    if len(words) > MAX_SHOWN or "\n" in words:
        words = f"{type(value).__name__}(...)"
    return f"{name}={words}"
