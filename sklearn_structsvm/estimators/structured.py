"""Base class of the structured estimators. Subclasses choose the solver."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.compat import CallbackSupportMixin
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.estimators.base import AtomicFitMixin
from sklearn_structsvm.estimators.coefficients import (
    SparseCoefficientsMixin,
    weight_attributes,
)
from sklearn_structsvm.estimators.inner import learned
from sklearn_structsvm.estimators.method import run
from sklearn_structsvm.estimators.named_structures import (
    infer_structure,
    traits_of,
)
from sklearn_structsvm.estimators.prediction import PredictionMixin
from sklearn_structsvm.estimators.problem import bind_data

# Decoders with upper bounds that may remain above the labelings found.
LOOSE_INFERENCES = ("auto", "messages", "expansion")


class StructuredClassifier(
    AtomicFitMixin,
    CallbackSupportMixin,
    SparseCoefficientsMixin,
    PredictionMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """An estimator over a structure.

    Its fit has two lines: `bind_data` turns X and y into a problem, and `run` solves it
    by the `Method` that `_method` chooses.
    """

    # Whether the items of a Dask collection may be other than rows.
    takes_dask_items = True
    # Whether labels of y may be hidden.
    takes_hidden_labels = False
    # Whether y may hold parts of labelings that the structure completes itself.
    takes_completions = False
    # Whether costs are those of training alone, beside those of the structure.
    has_costs_of_training = False
    # Parameters that some estimators lack, and what a fit is without them.
    loss: Any = None
    penalty = "l2"
    l1_ratio: Any = 0.0
    l1_ratios: Any = None
    # The values that parameters may have if the examples stay with the workers of a
    # cluster.
    _dask_options: ClassVar[dict[str, tuple]] = {}

    # What a fit sets, for editors and type checkers.
    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    objective_: float
    dual_objective_: float
    dual_gap_: float
    n_iter_: int
    n_oracle_calls_: int
    history_: dict[str, np.ndarray]
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _another_way(self, problem):
        """Options, or an estimator, that reach the same optimum sooner; may be empty."""
        return ""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # If it is missing, the methods themselves raise the error.
        traits = traits_of(learned(self, "structure"))
        # structure="auto" accepts any data.
        is_auto = traits is None
        if is_auto or traits.flat:
            tags.input_tags.sparse = True
            multi_class = is_auto or traits.multi_class
            multi_label = is_auto or traits.multi_label
            tags.classifier_tags.multi_class = multi_class
            tags.classifier_tags.multi_label = multi_label
            if multi_label and not multi_class:
                tags.target_tags.single_output = False
                tags.target_tags.multi_output = True
        else:
            # For sequences and other structures. For a classifier, scikit-learn would
            # choose the splitter and the meaning of accuracy from the form of y.
            tags.estimator_type = None
            tags.classifier_tags = None
            tags.input_tags.two_d_array = False
        return tags

    def _fit_within(self, fit, X, y, sample_weight):
        with bind_data(self, X, y, sample_weight) as problem:
            run(fit, problem, self._method(problem, fit.previous))

    def _method(self, problem, previous):
        """The `Method` for a problem, given the attributes of the previous fit."""
        raise NotImplementedError

    def _infer_structure(self, has_items, y, classes):
        """The structure that "auto" resolves to."""
        return infer_structure(has_items, y, classes)

    def _check_dask(self):
        """Raise an error if the parameters do not support Dask."""

    def _attributes_at(self, problem, weights):
        """The fitted attributes that depend on the weights."""
        return weight_attributes(problem.structure, weights)

    def _rng(self):
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    def _limits(self):
        """The arguments that all solvers have in common."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "max_time": self._options.max_time,
            "n_threads": count_threads(self.n_jobs),
        }

    def _convergence_hint(self, problem, result):
        """A sentence on why no solver may close the gap; '' for an exact oracle."""
        if self.structure_.relaxed and result.status == "stalled":
            is_loose = self.structure_.inference in LOOSE_INFERENCES
            remedy = " The structure's inference='lp' can, on small graphs." * is_loose
            return (
                "No labeling found by the structure violates its margin by more than "
                "tol. The remaining gap comes from upper bounds on the other labelings, "
                f"and no solver can close it.{remedy}"
            )
        return ""
