"""Base class of the estimators that minimize a risk over all rows of X at once."""

from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_array, as_dense
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.threads import one_blas_thread
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.estimators.batch_losses import (
    LOSSES,
    SAMPLE_LOSS,
    loss_of,
    losses_of,
)
from sklearn_structsvm.estimators.coefficients import (
    joined_weights,
    shapes_of_weights,
    weight_attributes,
)
from sklearn_structsvm.estimators.constraints import (
    COUNT,
    DATA,
    DATA_OPTIONS,
    LIMITS,
    SHARE,
)
from sklearn_structsvm.estimators.method import run
from sklearn_structsvm.estimators.named_structures import (
    infer_structure,
    named_structure,
)
from sklearn_structsvm.estimators.options import Need, refuse_row_options
from sklearn_structsvm.estimators.problem import bind_data
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.estimators.warm_start import warn_of_cold_start
from sklearn_structsvm.structures import BinaryStructure, MultilabelStructure
from sklearn_structsvm.structures.ranking import RankingStructure, best_threshold

BATCH_CONSTRAINTS = {
    **DATA,
    **LIMITS,
    "loss": [StrOptions({"hinge", "slack_hinge"})],
    "label_costs": ["array-like", None],
}

# What parameters of losses of rows need.
BATCH_NEEDS = {
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


# Additional constraints of an estimator that supports losses of the whole sample.
SAMPLE_LOSSES = {
    "loss": [
        StrOptions({"hinge", "slack_hinge", *(k for k in LOSSES if LOSSES[k].of_sample)}),
        ConfusionMetric,
    ],
    "k": [*COUNT, *SHARE, None],
}

# Parameters that only risks of rows have, and the reason.
RISK_OPTIONS = {
    "loss": "see SlackRescaledSSVM for their slacks",
    "label_costs": "a structure has its own loss",
}


class BatchClassifier(StructuredClassifier):
    """A linear classifier that minimizes a regularized risk over all rows at once.

    A subclass has the parameters of `BATCH_CONSTRAINTS` and optionally `warm_start`, and
    chooses the method that minimizes a risk in `_risk_method`. If it `takes_sequences`,
    it has the parameter `structure`, and chooses the method for data other than rows in
    `_structured_method`.
    """

    threshold_: float

    _option_table = DATA_OPTIONS
    # y decides. A subclass may make it a parameter.
    structure = "auto"
    warm_start = False
    penalty = "l2"
    # Parameters that need rows of X, and why.
    _row_options: ClassVar[dict[str, str]] = {}
    takes_sequences = False
    takes_dask = True
    takes_dask_items = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        name = self.loss
        loss = losses_of(self).get(name if isinstance(name, str) else "", SAMPLE_LOSS)
        if tags.classifier_tags is not None and not loss.multi_label:
            tags.classifier_tags.multi_label = False
            tags.classifier_tags.multi_class = loss.multi_class
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. `SubLBFGSClassifier` and `BMRMClassifier` also accept a Dask
            collection chunked by rows, if y and sample_weight are Dask collections too.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels of any type, or a label indicator matrix.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight)

    def _fit_within(self, fit, X, y, sample_weight):
        with bind_data(self, X, y, sample_weight) as problem:
            method = self._method(problem, fit.previous)
            has_risk = problem.risk is not None
            with one_blas_thread() if has_risk else nullcontext():
                run(fit, problem, method)
            self._warn_of_zero(problem.risk)

    def _method(self, problem, previous):
        structure = problem.structure
        if named_structure(self.structure) is not None or not structure.flat:
            return self._structured_method(problem)
        options = self._limits()
        n_threads = options.pop("n_threads")
        risk_options = {"bias": self._risk_bias(structure), "n_threads": n_threads}
        problem.risk = loss_of(self).make_risk(self, problem, risk_options)
        w0 = self._start(structure, previous)
        if w0 is not None and self._is_no_worse_than_zero(w0, problem):
            options["w0"] = w0
        return self._risk_method(problem, options)

    def _risk_method(self, problem, options):
        """The method that minimizes `problem.risk`, with the common options."""
        raise NotImplementedError

    def _structured_method(self, problem):
        """The method for a structure that was named or inferred from sequences."""
        raise NotImplementedError

    def _risk_bias(self, structure):
        """The value of the constant feature that a risk adds."""
        return structure.bias_

    def _check_parameters(self):
        super()._check_parameters()
        structure = named_structure(self.structure)
        if structure is not None:
            refuse_row_options(self, type(structure).__name__)
        if loss_of(self).takes_k and self.k is None:
            raise ValueError(
                f"loss={self.loss!r} requires k, a number of rows or a fraction of them."
            )

    def _check_dask(self):
        if loss_of(self).of_sample:
            raise TypeError(
                f"loss={self.loss!r} sorts all rows of the sample by their scores, so it "
                "does not support Dask collections."
            )
        if not self.takes_dask:
            raise TypeError(
                f"{type(self).__name__} does not support Dask collections, because it "
                "keeps dual variables for each example. Use SubLBFGSClassifier, "
                "BCFWClassifier or BMRMClassifier."
            )
        if named_structure(self.structure) is not None:
            raise ValueError(
                f"structure={self.structure!r} needs data in memory. Dask collections "
                "require structure='auto'."
            )

    def _warn_of_zero(self, risk):
        """Warn if zero weights minimize a hinge over labelings of the whole sample."""
        if not loss_of(self).of_sample:
            return
        if self.objective_ >= risk.value(np.zeros((risk.n_samples, 1))) - self.tol:
            warn_caller(
                f"The fit with loss={self.loss!r} is no better than zero weights, within "
                "tol. The classes overlap too much for this loss, or C is too small. "
                "Try loss='roc_auc', or train another classifier and let "
                "ComplexMetricClassifier choose its threshold.",
            )

    def _infer_structure(self, has_items, y, classes):
        """Infer the structure from y, and check that the parameters agree with it."""
        structure, loss = infer_structure(has_items, y, classes), loss_of(self)
        if not structure.flat:
            if not self.takes_sequences:
                raise ValueError(
                    f"{type(self).__name__} needs one row of X per example, but X holds "
                    "a 2-D item for each. For sequences use BCFWClassifier, "
                    "SlackRescaledSSVM, BMRMClassifier or PragamClassifier."
                )
            refuse_row_options(self, "sequences")
            return structure
        is_binary = isinstance(structure, BinaryStructure)
        if not loss.multi_class:
            if not is_binary:
                penalty = " with penalty='l1'" * (self.loss == "hinge")
                others = "For more classes use ComplexMetricClassifier; for"
                raise ValueError(
                    f"Only binary classification is supported. loss={self.loss!r}"
                    f"{penalty} needs one label per example, of two classes. "
                    f"{others if loss.of_sample else 'For'} one binary problem per class "
                    "or label, use OneVsRestClassifier."
                )
            return structure.set_params(label_costs=self.label_costs)
        if isinstance(structure, MultilabelStructure):
            if not loss.multi_label:
                ways = {
                    "slack_hinge": "SlackRescaledSSVM for a loss of label sets",
                    "squared_hinge": "OneVsRestClassifier for one problem per label",
                }
                raise ValueError(
                    f"loss={self.loss!r} needs one label per example. For a label "
                    f"indicator use loss='hinge', or {ways[self.loss]}."
                )
            structure = RankingStructure()
        if self.loss == "slack_hinge" and is_binary and self.label_costs is not None:
            raise ValueError(
                "loss='slack_hinge' supports label_costs for more than two classes "
                "only. For two classes use class_weight, which is equivalent."
            )
        return structure.set_params(label_costs=self.label_costs)

    def _attributes_at(self, problem, weights):
        structure = problem.structure
        if not isinstance(structure, RankingStructure):
            found = weight_attributes(structure, weights)
            return found | self._threshold_intercept(problem, weights)
        structure = problem.with_threshold(weights)
        found = weight_attributes(structure, weights)
        return found | {"threshold_": structure.threshold_}

    def _threshold_intercept(self, problem, weights):
        """The intercept (a threshold) that a loss of the order of scores leaves open."""
        if not (loss_of(self).is_order and problem.structure.bias_):
            return {}
        risk = problem.risk
        scores = risk.scores(weights)[:, 0]
        # At the optimum, many rows have the same score, which does not distinguish them.
        size = float(np.abs(scores).max()) or 1.0
        scores = size * np.round(scores / size, 9)
        above = risk.above(scores)
        threshold = best_threshold(
            np.concatenate([scores, scores]),
            np.repeat([True, False], len(scores)),
            np.concatenate([above, risk.weights - above]),
        )
        return {"intercept_": np.array([-threshold])}

    def _start(self, structure, previous):
        """The weights of the previous fit, if they are wanted and usable."""
        if not self.warm_start or "coef_" not in previous:
            return None
        shape = shapes_of_weights(structure)["coef_"]
        coef = as_array("coef_", as_dense(previous["coef_"], *shape))
        same_classes = np.array_equal(previous.get("classes_"), structure.classes_)
        # A fit to sequences has no intercept.
        if "intercept_" not in previous or coef.shape != shape or not same_classes:
            warn_of_cold_start(
                "the features or classes are not those", "coefficients are"
            )
            return None
        w0 = joined_weights(structure, previous)
        if loss_of(self).is_order and structure.bias_:
            # It has a threshold, but no weight.
            w0[-1] = 0.0
        return w0

    def _is_no_worse_than_zero(self, w, problem):
        """Whether to start from w, which was found for other data or another C."""
        risk = problem.risk
        size = np.abs(w).sum() if self.penalty == "l1" else 0.5 * w.dot(w)
        value, there = (risk.value(risk.scores(own)) for own in (w, np.zeros_like(w)))
        return problem.lam(self.C) * size + value <= there
