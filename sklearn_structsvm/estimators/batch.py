"""What the batch classifiers share: from y to a risk, and from a risk to a fit."""

from functools import partial
from math import ceil
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm._utils.threads import one_blas_thread
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.ratios import OneClassMetric
from sklearn_structsvm.confusion.registry import METRICS, get_metric
from sklearn_structsvm.distributed.dask_problem import make_dask_problem
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.problem import (
    check_remote_scale,
    make_problem,
    named_structure,
    read_structure,
)
from sklearn_structsvm.estimators.structured import StructuredClassifier, joined_weights
from sklearn_structsvm.risks import (
    BinaryHinge,
    ConfusionHinge,
    Logistic,
    MulticlassHinge,
    MultilabelHinge,
    RocAucHinge,
    TopKHinge,
)
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)
from sklearn_structsvm.structures.ranking import RankingStructure, best_threshold

# Losses of the whole sample, by their names: of the confusion table, and of the order of
# the scores.
TABLE_LOSSES = {"f1", "jaccard", "zero_one"}
TOP_LOSSES = {"break_even", "precision_at_k", "recall_at_k"}
ORDER_LOSSES = {"roc_auc", *TOP_LOSSES}
NEEDS_K = {"precision_at_k", "recall_at_k"}

BATCH_CONSTRAINTS = {
    "loss": [StrOptions({"hinge", "slack_hinge"})],
    "C": [Interval(Real, 0, None, closed="neither")],
    "label_costs": ["array-like", None],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "classes": ["array-like", None],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


# Beside those, for an estimator that trains losses of the whole sample.
SAMPLE_LOSSES = {
    "loss": [
        StrOptions({"hinge", "slack_hinge", *TABLE_LOSSES, *ORDER_LOSSES}),
        ConfusionMetric,
    ],
    "k": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0, 1, closed="neither"),
        None,
    ],
}

# Of scores relative to the largest one; further ones may be rounding.
TIED_DIGITS = 9


class BatchClassifier(StructuredClassifier):
    """A linear classifier that minimises a regularised risk over all rows at once.

    A subclass has the parameters of `BATCH_CONSTRAINTS`, perhaps `warm_start`, and says
    in `_solver` what minimises a risk. One that `takes_sequences` has the parameter
    `structure`, and says in `_train_structure` what is done with another than rows.
    """

    threshold_: float

    # y decides. A subclass may make it a parameter.
    structure = "auto"
    takes_sequences = False
    takes_dask = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None and self.loss != "hinge":
            tags.classifier_tags.multi_label = False
            tags.classifier_tags.multi_class = self.loss == "slack_hinge"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. `SubLBFGSClassifier` also accepts a Dask collection chunked by
            rows, if y and sample_weight are Dask collections too.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels of any type, or a label indicator matrix.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit_or_restore(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, transaction):
        self._check_combination()
        problem = self._make_problem(X, y, sample_weight)
        has_risk = named_structure(self.structure) is None and problem.structure.flat
        train = self._train if has_risk else self._train_structure
        train(problem, (X, y, sample_weight), transaction)

    def _make_problem(self, X, y, sample_weight):
        data = X, y, sample_weight
        if not holds_dask(*data):
            return make_problem(self, *data, self._read_structure)
        if self._has_sample_loss():
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
        problem = make_dask_problem(self, *data, self._read_structure)
        return check_remote_scale(self, problem)

    def _check_combination(self):
        """ValueError for parameters that contradict each other, whatever the data."""
        structure = named_structure(self.structure)
        if structure is not None:
            self._check_for_structure(type(structure).__name__)
        k, loss = getattr(self, "k", None), self.loss
        if k is None and loss in NEEDS_K:
            raise ValueError(
                f"loss={loss!r} requires k, a number of rows or a fraction of them."
            )

    def _has_sample_loss(self):
        """Whether the loss is one of the whole sample."""
        is_metric = isinstance(self.loss, ConfusionMetric)
        return is_metric or self.loss in TABLE_LOSSES | ORDER_LOSSES

    def _for_rows(self):
        """Names of parameters that only the risks know, whether set, and why not."""
        return [
            ("loss", self.loss != "hinge", "see SlackRescaledSSVM for their slacks"),
            ("label_costs", self.label_costs is not None, "a structure has its own loss"),
        ]

    def _check_for_structure(self, structure):
        """ValueError for what only the risks know."""
        for name, is_set, reason in self._for_rows():
            if is_set:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is for rows whose structure is read "
                    f"from y, and not for {structure}: {reason}."
                )

    def _train_structure(self, problem, data, transaction):
        """As `_train`, of a structure that was named or read from sequences."""
        raise NotImplementedError

    def _train(self, problem, data, transaction):
        limits = self._limits()
        n_threads = limits.pop("n_threads")
        try:
            bias = problem.structure.bias_
            risk = self._make_risk(problem, bias=bias, n_threads=n_threads)
            problem.risk = risk
            name, run, options = self._solver(problem, risk)
            w0 = self._start(problem.structure, transaction.previous)
            if w0 is not None:
                options["w0"] = w0
            solve = partial(run, risk, problem.lam(self.C), **limits, **options)
            with one_blas_thread():
                self._run(problem, data, transaction, solve, name)
        finally:
            problem.release()
        if self._has_sample_loss():
            self._warn_of_zero(risk)

    def _warn_of_zero(self, risk):
        """Of a hinge over labelings of the sample zero may be the minimiser."""
        if self.objective_ >= risk.value(np.zeros((risk.n_samples, 1))) - self.tol:
            warn_caller(
                f"The fit with loss={self.loss!r} is no better than zero weights, within "
                "tol. The classes overlap too much for this loss, or C is too small. "
                "Try loss='roc_auc', or train another classifier and let "
                "ComplexMetricClassifier choose its threshold.",
                UserWarning,
            )

    def _solver(self, problem, risk):
        """Name, function of (risk, lam, ...) and further arguments of the solver."""
        raise NotImplementedError

    def _read_structure(self, X, y, classes):
        """What y says of the structure, and what the parameters say to that."""
        structure = read_structure(X, y, classes)
        if not structure.flat:
            if not self.takes_sequences:
                raise ValueError(
                    f"{type(self).__name__} needs one row of X per example, but X holds "
                    "a 2-D item for each. For sequences use BCFWClassifier, "
                    "SlackRescaledSSVM, BMRMClassifier or PragamClassifier."
                )
            self._check_for_structure("sequences")
            return structure
        if self.loss == "logistic":
            if not isinstance(structure, BinaryStructure):
                raise ValueError(
                    "Only binary classification is supported. loss='logistic' needs one "
                    "label per example, of two classes."
                )
            return structure
        if self._has_sample_loss():
            if not isinstance(structure, BinaryStructure):
                raise ValueError(
                    f"Only binary classification is supported. loss={self.loss!r} needs "
                    "one label per example, of two classes. For more classes use "
                    "ComplexMetricClassifier; for one binary problem per class or "
                    "label, OneVsRestClassifier."
                )
            return structure
        if isinstance(structure, MultilabelStructure):
            structure = RankingStructure()
        self._check_slack(structure)
        return structure.set_params(label_costs=self.label_costs)

    def _check_slack(self, structure):
        if self.loss != "slack_hinge":
            return
        if isinstance(structure, RankingStructure):
            raise ValueError(
                "loss='slack_hinge' needs one label per example. For a label indicator "
                "use loss='hinge', or SlackRescaledSSVM for a loss of label sets."
            )
        if isinstance(structure, BinaryStructure) and self.label_costs is not None:
            raise ValueError(
                "loss='slack_hinge' supports label_costs for more than two classes "
                "only. For two classes use class_weight, which is equivalent."
            )

    def _make_risk(self, problem, **options):
        """The risk of the problem's rows, with the arguments that all risks take."""
        structure = problem.structure
        if self._has_sample_loss():
            return self._make_sample_risk(problem, **options)
        kind = BinaryHinge
        if self.loss == "logistic":
            kind = Logistic
        else:
            options["label_costs"] = structure.label_costs_
        if isinstance(structure, RankingStructure):
            kind = MultilabelHinge
        elif isinstance(structure, MulticlassStructure):
            kind = MulticlassHinge
            options["rescaled"] = self.loss == "slack_hinge"
        return problem.make_risk(kind, options)

    def _make_sample_risk(self, problem, **options):
        """The risk of a loss of the whole sample."""
        structure = problem.structure
        y = encode(problem.y, structure.classes_)
        if self.loss == "roc_auc":
            return RocAucHinge(problem.X, y, problem.weights, **options)
        # How many rows each row stands for.
        counts = problem.weights * problem.total
        by_class = structure.example_weights(problem.y)
        if by_class is not None:
            shares = [by_class[y == code][:1].sum() for code in (0, 1)]
            if min(shares) == 0.0:
                raise ValueError(
                    f"loss={self.loss!r} needs rows of both classes with nonzero "
                    f"class_weight; got class_weight={self.class_weight!r}."
                )
            counts = counts / by_class
            options["class_weight"] = shares
        if self.loss not in TOP_LOSSES:
            metric = self._metric(structure.classes_)
            return ConfusionHinge(problem.X, y, metric, counts, **options)
        k = self.k if self.loss in NEEDS_K else None
        if isinstance(k, Real) and not isinstance(k, Integral):
            k = ceil(k * round(float(counts.sum())))
        is_recall = self.loss == "recall_at_k"
        return TopKHinge(problem.X, y, k, counts, recall=is_recall, **options)

    def _metric(self, classes):
        """The metric that `loss` stands for, of ``classes_[1]`` by default."""
        metric = METRICS[self.loss]() if isinstance(self.loss, str) else self.loss
        is_of_one_class = isinstance(metric, OneClassMetric)
        if is_of_one_class and metric.pos_label is None:
            metric = clone(metric).set_params(pos_label=classes[1])
        return get_metric(metric, classes)

    def _cut_off(self, problem, weights):
        """What an order of the scores leaves open: where the positive class begins."""
        if self.loss not in ORDER_LOSSES or not problem.structure.bias_:
            return {}
        risk = problem.risk
        scores = risk.scores(weights)[:, 0]
        # At the optimum the scores of many rows are the same, and tell no two apart.
        size = float(np.abs(scores).max()) or 1.0
        scores = size * np.round(scores / size, TIED_DIGITS)
        above = risk.above(scores)
        threshold = best_threshold(
            np.concatenate([scores, scores]),
            np.repeat([True, False], len(scores)),
            np.concatenate([above, risk.weights - above]),
        )
        return {"intercept_": np.array([-threshold])}

    def _snapshot(self, problem, history, dual):
        cut_off = self._cut_off(problem, history.solution)
        return super()._snapshot(problem, history, dual) | cut_off

    def _store(self, problem, result, dual):
        super()._store(problem, result, dual)
        vars(self).update(self._cut_off(problem, result.solution))

    def _start(self, structure, before):
        """Weights of the previous fit, where they are asked for and of use."""
        if not getattr(self, "warm_start", False) or "coef_" not in before:
            return None
        coef = as_array("coef_", before["coef_"])
        shape = structure.split_weights(np.zeros(structure.n_weights_))[0].shape
        same_classes = np.array_equal(before.get("classes_"), structure.classes_)
        # A fit to sequences has no intercept.
        if "intercept_" not in before or coef.shape != shape or not same_classes:
            self._warn_of_cold_start(
                "the features or classes are not those", "coefficients are"
            )
            return None
        w0 = joined_weights(structure, before)
        if self.loss in ORDER_LOSSES and structure.bias_:
            # A threshold, and no weight.
            w0[-1] = 0.0
        return w0

    def _weight_attributes(self, structure, weights):
        attributes = super()._weight_attributes(structure, weights)
        if isinstance(structure, RankingStructure):
            attributes["threshold_"] = structure.threshold_
        return attributes

    def _structure_at(self, problem, weights):
        if isinstance(problem.structure, RankingStructure):
            return problem.with_threshold(weights)
        return problem.structure
