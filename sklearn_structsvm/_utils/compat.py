"""All of scikit-learn that is private, untyped, or not in every supported version."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import sklearn
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing
from sklearn.utils._array_api import _convert_to_numpy, get_namespace
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    # Typed, unlike scikit-learn's: a decorated function keeps its type.
    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]: ...
    def validate_params(
        constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
    ) -> Callable[[Method], Method]: ...

else:
    from sklearn.utils._param_validation import validate_params
    from sklearn.utils.metaestimators import available_if


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks: nothing is reported."""

        def _init_callback_context(self, **kwargs):
            return None

        def set_callbacks(self, *callbacks: Any) -> Any:
            if callbacks:
                raise ImportError("Callbacks need scikit-learn 1.9 or later.")
            return self

    def with_callbacks(method):
        return method


# Before, a scorer that stands for a meta-estimator's `score` asks for nothing that its
# parts ask for.
ROUTES_TO_DEFAULT_SCORES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def lost_metadata_words(name="sensitive_features"):
    """Words to add to an error about missing metadata: why it may be lost."""
    words = (
        f" cross_val_score takes them as params={{{name!r}: ...}}, with "
        "sklearn.set_config(enable_metadata_routing=True)."
    )
    if ROUTES_TO_DEFAULT_SCORES or not sklearn.get_config()["enable_metadata_routing"]:
        return words
    return words + (
        " scikit-learn before 1.8 hands no metadata to the default score of a pipeline, "
        "in cross-validation and searches: give them scoring=metric.scorer(), of a "
        "metric of sklearn_structsvm.metrics, or update scikit-learn."
    )


def accepts_weights(scorer):
    """Whether a scorer, or any callable of (estimator, X, y), takes `sample_weight`."""
    if isinstance(scorer, _BaseScorer):
        scorer = scorer._score_func
    try:
        return "sample_weight" in signature(scorer).parameters
    except ValueError:  # some builtins have no signature
        return False


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "RealNotInt",
    "StrOptions",
    "_BaseScorer",
    "_check_method_params",
    "_convert_to_numpy",
    "_safe_indexing",
    "_safe_split",
    "accepts_weights",
    "available_if",
    "get_namespace",
    "lost_metadata_words",
    "validate_parameter_constraints",
    "validate_params",
    "with_callbacks",
]
