"""Multilabel classifiers for metrics of many labels."""

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._contract.answers import checked_folds
from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import as_canonical, refuse_masked
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import HasMethods, Interval, StrOptions
from sklearn_structsvm._utils.indicators import as_indicator
from sklearn_structsvm._utils.tables import column_names, listed_names
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.diagnostics import label_diagnostics
from sklearn_structsvm.confusion.function_metric import shown
from sklearn_structsvm.confusion.label_metric import (
    ABSENT_PRESENT,
    label_confusions,
)
from sklearn_structsvm.confusion.label_rows import LabelRows
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.rate_constraint import RateConstraint
from sklearn_structsvm.confusion.ratios import FBeta
from sklearn_structsvm.confusion.registry import get_metric, read_constraints
from sklearn_structsvm.estimators.base import fit_aside, require_y
from sklearn_structsvm.estimators.complex_metric.label_excess import (
    warn_of_excess,
    warn_of_few,
)
from sklearn_structsvm.estimators.complex_metric.label_predicting import (
    LabelPredictor,
    as_rows,
    label_probabilities,
    stacked,
)
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    LabelSigmoids,
    ThresholdRule,
    TopLabelsRule,
    choose_thresholds,
)
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    refuse_misspelt,
    unwrapped,
)
from sklearn_structsvm.estimators.complex_metric.probabilities import (
    check_classifier,
    fit_probabilities,
    held_out_parts,
)
from sklearn_structsvm.estimators.complex_metric.row_hash import row_uniforms
from sklearn_structsvm.estimators.constraints import TIME_OPTION
from sklearn_structsvm.estimators.inner import UNFITTED, feature_attributes, supports
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.solvers.confusion.block_ascent import rounding_of_rows

ONLY_THRESHOLDS = "It is for thresholds only."


class MultilabelMetricClassifier(LabelPredictor):
    r"""Which of many labels each row gets, for a metric such as macro-F1.

    For multilabel classifiers with probabilities. Rare labels hardly ever reach one half,
    so they need thresholds of their own:

    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn_structsvm import MultilabelMetricClassifier
    >>> X, Y = make_multilabel_classification(n_samples=500, random_state=0)
    >>> model = MultilabelMetricClassifier(metric="f1", average="macro").fit(X, Y)
    >>> model.predict(X).shape == Y.shape
    True

    `predict` returns an indicator matrix. It compares the probability of each label with
    its threshold or, with `labels_per_row`, chooses the k labels with the largest gains.

    Read more in the :ref:`User Guide <guide-many-labels>`.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Classifier that provides the probabilities by `predict_proba`. It may return an
        array of shape (n_samples, n_labels), as do ``OneVsRestClassifier``,
        ``ClassifierChain`` and ``CRFClassifier("multilabel")``; a list with one array per
        label, as do ``MultiOutputClassifier`` and forests; or a sparse matrix that holds
        only the most probable labels, which is never made dense. It is cloned and fitted,
        unless it is a ``FrozenEstimator`` or ``cv="prefit"``. None means one logistic
        regression per label, on scaled columns.
    metric : str or ConfusionMetric, default="f1"
        The metric :math:`\psi` of a label that is present (1) or absent (0): the name of
        a metric of two classes, such as "f1", "jaccard" or "mcc" (a key of
        ``sklearn_structsvm.metrics.METRICS``), or an object such as ``FBeta(beta=2)``.
        With ``LinearLoss({(1, 0): 5.0, (0, 1): 1.0})`` a missed label costs as much as
        five false ones.
    average : {"macro", "weighted", "micro", "samples"}, default="macro"
        How to average over labels, as in scikit-learn's `f1_score`: the mean over labels,
        each alike or weighted by the rows that have it, over all pairs of a row and a
        label, or over rows. "samples" is for F-measures.
    labels_per_row : int or None, default=None
        Exact number of labels to predict for each row. None chooses the best number.
    n_candidates : int or None, default=None
        At most so many labels are predicted for a row, of those with the largest
        probabilities. All others count as probability 0. The probabilities are then
        computed for some rows at a time and kept as a sparse matrix, so that thousands
        of labels fit into memory. None means all labels.
    constraints : Constraint or sequence of Constraint, default=()
        Constraints on each label or, for "micro", on all labels together. For example
        ``Precision(at_least=0.9)``, or ``SelectionRate(at_most=0.01)`` to predict a label
        for at most 1% of the rows. Not with `labels_per_row` or "samples".
    confusion : {"auto", "labels", "probabilities"}, default="auto"
        From what the confusion matrix C is counted, to which the certificate and any
        constraints refer.

        - "labels" counts the labels in y. Not with `labels_per_row` or "samples".
        - "probabilities" counts the predicted probabilities, as if they were correct.
        - "auto" calibrates the probabilities by a sigmoid per label, and counts these
          with `labels_per_row` or "samples". For thresholds it counts a mean of both: the
          labels with weight n / (n + 100) if n rows have the label, and the calibrated
          probabilities for the rest. The precision of a label counts three more
          predictions, with its share of hits, because that of few rows is mostly chance.
          With sample weights w, n rows are as many as :math:`(\sum w)^2 / \sum w^2`.
          Simple rules (thresholds of .5, the most probable labels, or thresholds
          for y) are used if they are better on halves of the rows that chose neither.
    cv : int, float, splitter, iterable, "prefit" or None, default=5
        Where the probabilities used for choosing the rule come from.

        - Folds: out-of-fold probabilities. `predict` uses a fit to all rows.
        - A float between 0 and 1: the same for this share of the rows, drawn at random.
        - None: from a fit to all rows, evaluated on the same rows. They are too confident
          if the classifier overfits.
        - "prefit": `estimator` is already fitted. Pass other rows to `fit`.
    tol : float, default=1e-4
        Stop an iterative search once the gap is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the rows in an iterative search.
    n_jobs : int or None, default=None
        Number of folds that are processed in parallel.
    verbose : int, default=0
        If nonzero, print one line per pass of an iterative search.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        max_time : float or None, default=None
            Time limit of an iterative search in seconds. It makes at least one pass. A
            fit that is cut short by it is not reproducible bit for bit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Column indices of y: 0, ..., n_labels - 1.
    estimator_ : classifier
        The fitted source of the probabilities.
    label_names_ : list
        Names of the labels: of the columns of y, if it is a data frame, or `classes_`.
    rule_ : WrittenRule
        The rule in words, ``print(model.rule_)``, and as a table, ``rule_.columns``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted if its probability, calibrated by `label_sigmoids_` if
        `average` is "micro", exceeds its threshold; inf means never.
        Not defined with `labels_per_row` or for "samples".
    gains_ : ndarray of shape (n_labels, 2)
        With `labels_per_row`: the gain of predicting label l is
        ``gains_[l, 0] + gains_[l, 1] * η_l``, with η calibrated by `label_sigmoids_`. The
        labels with the largest gains are predicted; ties go to the first label.
    label_sigmoids_ : ndarray of shape (n_labels, 2) or None
        By ``confusion="auto"`` with `labels_per_row`, "micro" or "samples": coefficients
        a and b of each label's calibration :math:`\sigma(a \operatorname{logit} \eta +
        b)`.
        Probabilities of 0 stay 0. None if the probabilities are used as they are.
    metric_ : ConfusionMetric
        The metric :math:`\psi`.
    confusion_ : ndarray of shape (n_labels, 2, 2)
        Confusion matrix of each label on the training labels (on held-out predictions
        with `cv`), as fractions of the rows.
    diagnostics_ : dict of ndarray of shape (n_labels,)
        What to look at before trusting the rule, for each label and on the same rows:
        "share" of the rows that have it, "expected_share" by the probabilities,
        "predicted_share", the numbers "rows" and "predicted_rows" (effective numbers, if
        rows have weights), and "calibration_error", the mean distance of the
        probabilities from the share of such rows that have the label, over ten bins.
    objective_ : float
        Value of the objective, computed from what `confusion` counts. For its value on
        the labels see `confusion_`.
    dual_objective_ : float
        Lower bound on the objective for all rules of the same kind: thresholds, choices
        of `labels_per_row` labels, or label sets. It is -inf with `labels_per_row` for
        metrics that are neither convex nor ratios.
    dual_gap_ : float
        Upper bound on the suboptimality of the rule: `objective_ - dual_objective_`. For
        thresholds it is what rounding may lose. It is larger where a simple rule is used
        since it is better on labels. For ratios it is usually larger than `tol`,
        because the bound comes from a relaxation in which rows can exchange labels: only
        the number of all predictions is fixed, and each label may take its most probable
        rows. More passes do not close it.
    n_iter_ : int
        Number of passes; 1 if no iterations are needed.
    history_ : dict of ndarray
        Progress of an iterative search after each pass: "n_iter", "n_oracle_calls",
        "seconds", "objective", "dual_objective" and "dual_gap". Defined only if
        `labels_per_row` and `metric` need such a search.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of features, if the fitted estimator has them.

    See Also
    --------
    ComplexMetricClassifier : For one label per row, and for groups.

    Notes
    -----
    A given `estimator` predicts the probability :math:`\eta_l(x)` that row x has label l.
    Depending on `average`, the objective is

    - "macro": :math:`\min \frac{1}{L} \sum_l \psi(C_l)`;
    - "weighted": the same with weights of the labels, by how often they occur;
    - "micro": :math:`\min \psi\bigl(\frac{1}{L} \sum_l C_l\bigr)`;
    - "samples": the minimum of the mean over rows of 1 minus the F-measure of the row.

    Here :math:`C_l` is the 2 × 2 confusion matrix of label l, :math:`L` is the number of
    labels, and :math:`\psi` is a metric of two classes, such as 1 - F1.

    For thresholds, all candidates are tried, so the result is optimal for any metric
    [1]_. With k labels per row, the best sets follow from one linear gain per label [2]_.
    It is found directly if the metric is linear (recall, costs) or pooled, by column
    generation if it is convex, and by block coordinate ascent [3]_, with a bound, for
    ratios such as macro-F1. "samples" assumes that the labels of a row are independent
    given the row.

    The ratio 0/0 of a label that neither occurs nor is predicted is a score of 0, as with
    scikit-learn's ``zero_division=0``.

    `predict` decides for each row independently. `predict_batch` decides for many rows
    jointly, to optimize the expected metric.

    References
    ----------
    .. [1] Narasimhan et al., "Consistent multiclass algorithms for complex metrics and
       constraints", JMLR, 2024.
    .. [2] Schultheis et al., "Consistent algorithms for multi-label classification with
       macro-at-k metrics", ICLR 2024.
    .. [3] Schultheis et al., "Generalized test utilities for long-tail performance in
       extreme multi-label classification", NeurIPS 2023.

    Examples
    --------
    Two labels for each row:

    >>> model = MultilabelMetricClassifier(labels_per_row=2).fit(X, Y)
    >>> set(model.predict(X).sum(axis=1).tolist())
    {2}
    """

    # What a fit sets, for editors and type checkers.
    classes_: np.ndarray
    estimator_: ClassifierMixin
    label_names_: list
    thresholds_: np.ndarray
    gains_: np.ndarray
    label_sigmoids_: np.ndarray | None
    metric_: ConfusionMetric
    confusion_: np.ndarray
    diagnostics_: dict[str, np.ndarray]
    objective_: float
    dual_objective_: float
    dual_gap_: float
    n_iter_: int
    history_: dict[str, np.ndarray]
    n_features_in_: int
    feature_names_in_: np.ndarray

    _needs: ClassVar[dict[str, list[Need]]] = {
        name: [
            Need(values, "labels_per_row", (None,), ONLY_THRESHOLDS),
            Need(values, "average", ("macro", "weighted", "micro"), ONLY_THRESHOLDS),
        ]
        for name, values in (("constraints", None), ("confusion", ("labels",)))
    }
    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), HasMethods(["predict_proba"]), None],
        # `get_metric` and `read_constraints` say what to write.
        "metric": "no_validation",
        "average": [StrOptions({"macro", "weighted", "micro", "samples"})],
        "labels_per_row": [Interval(Integral, 1, None, closed="left"), None],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "constraints": "no_validation",
        "confusion": [StrOptions({"auto", "labels", "probabilities"})],
        "cv": [
            Interval(Real, 0, 1, closed="neither"),
            "cv_object",
            StrOptions({"prefit"}),
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "solver_options": [dict, None],
    }
    _option_table = TIME_OPTION

    def __init__(
        self,
        estimator: Any = None,
        metric: str | ConfusionMetric | RateConstraint = "f1",
        average: Literal["macro", "weighted", "micro", "samples"] = "macro",
        *,
        labels_per_row: int | None = None,
        n_candidates: int | None = None,
        constraints: Constraint | list[Constraint] | tuple[Constraint, ...] = (),
        confusion: Literal["auto", "labels", "probabilities"] = "auto",
        cv: Any = 5,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.average = average
        self.labels_per_row = labels_per_row
        self.n_candidates = n_candidates
        self.constraints = constraints
        self.confusion = confusion
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the probabilities and find the optimal decision rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or whatever `estimator` accepts.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            Label indicator matrix. If it is sparse, predictions are sparse as well. Of
            scikit-learn's classifiers only ``OneVsRestClassifier`` is given a sparse one,
            others a dense copy.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the rows, used in the confusion matrices and, if it
            supports them, in the fit of `estimator`. Their scale matters only to a given
            `estimator`, which gets them as they are.
        **fit_params : dict
            Parameters passed to the `fit` method of `estimator`. With metadata routing
            enabled, parameters requested by `estimator` and `cv`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        InfeasibleConstraintError
            A ``ValueError``, if no threshold of a label satisfies the constraints.
        ValueError
            Before any fit, if y is not an indicator matrix, or if parameters contradict
            each other.
        """
        return fit_aside(
            self, X=X, y=y, sample_weight=sample_weight, fit_params=fit_params
        )

    def _fit_within(self, fit, X, y, sample_weight, fit_params):
        self._decide(fit, *self._find_rows(X, y, sample_weight, fit_params))

    def _find_rows(self, X, y, sample_weight, fit_params):
        """`LabelRows` of the classifier, those by which rules decide, weights, labels."""
        refuse_misspelt(self, fit_params)
        require_y(self, y)
        refuse_foreign(X=X, y=y, sample_weight=sample_weight)
        X = as_canonical(X)
        refuse_masked("X", X)
        truth, self.sparse_output_ = _labels_of(X, y)
        names = column_names(y)
        if not sparse.issparse(y):
            y = np.asarray(y)
        elif not _takes_sparse_labels(self._classifier()):
            y = y.toarray()
        X, y = indexable(X, y)
        n_rows, n_labels = truth.shape
        weights = check_weights(sample_weight, n_rows)
        self.metric_ = self._check_combination(n_labels)
        classifier = self._classifier()
        routed = self._routed_fit(fit_params, sample_weight=sample_weight)
        if self._is_fitted_already() and supports(classifier, "fit"):
            # Without `fit` there is no other source.
            check_is_fitted(classifier, msg=UNFITTED)
        read = partial(
            label_probabilities, n_labels=n_labels, n_candidates=self.n_candidates
        )
        constant = np.flatnonzero(np.isin(truth.sum(axis=0), [0, n_rows]))
        hold_out = partial(
            _hold_out, read=read, constant=constant, cv=self.cv, n_jobs=self.n_jobs
        )
        found = fit_probabilities(
            classifier,
            X,
            y,
            routed,
            fit=None if self._is_fitted_already() else _plain_fit,
            read=read,
            hold_out=None if self.cv is None else hold_out,
        )
        self.estimator_ = found.model
        if found.rows is not None:
            truth, weights = truth[found.rows], weights[found.rows]
            if not weights.any():
                raise ValueError("All held-out examples have a weight of zero.")
        raw = as_rows(found.P, classifier)
        self.label_sigmoids_ = None
        sigmoids, rows = self._calibrated(raw, weights, truth)
        if sigmoids is not None:
            self.label_sigmoids_, self.label_floor_ = sigmoids.values, sigmoids.floor
        self.classes_ = np.arange(n_labels)
        self.label_names_ = self.classes_.tolist() if names is None else names
        vars(self).update(feature_attributes(self.estimator_))
        return raw, rows, weights, truth

    def _decide(self, fit, raw, rows, weights, truth):
        """Choose the rule; report, store and warn."""
        counted = truth if self._counts_labels() else None
        reporter = fit.reporter()
        choice = self._choose_and_tell(reporter, rows, weights, counted, self.metric_)
        if (
            self.confusion == "auto"
            and not read_constraints(self.constraints)
            and (self.labels_per_row is not None or self.average != "samples")
        ):
            choice, rows = self._or_simple(choice, raw, rows, weights, truth)
        vars(self).update(_rule_attributes(choice.rule))
        self.confusion_ = label_confusions(truth, choice.rule.indicator(rows), weights)
        self.diagnostics_ = label_diagnostics(
            rows.matrix(), truth, weights, self.confusion_[:, :, 1].sum(axis=1)
        )
        self.objective_ = float(choice.objective)
        error = rounding_of_rows(rows).of_values(0.0, 1.0, choice.objective)
        self.dual_objective_ = float(min(choice.bound, choice.objective - error))
        self.dual_gap_ = self.objective_ - self.dual_objective_
        self.n_iter_ = choice.n_iter
        if choice.history is not None:
            self.history_ = choice.history
        fit.commit()
        # All attributes are set now.
        reporter.progress.end(dict)
        if self.labels_per_row is None:
            remedy = "limit it by a constraint, such as SelectionRate(at_most=...) or "
            remedy += "Precision(at_least=...)."
            if self.average == "samples":
                remedy = "have a look at the probabilities."
            warn_of_excess(self.diagnostics_, self.label_names_, len(rows), remedy)
        by_label = self.average not in ("micro", "samples")
        told = self._warn_of_left_out() if by_label else ()
        why = f"nothing else is better for metric={shown(self.metric)}"
        why += " and the constraints" if self.constraints else ""
        is_auto = self.confusion == "auto"
        remedy = "" if is_auto else " confusion='auto' lets more rows decide."
        warn_of_few(self.diagnostics_, self.label_names_, why, told, by_label, remedy)
        if choice.status in ("max_iter", "max_time"):
            limit = choice.status
            at = self._settings()[limit]
            warn_caller(
                f"The search stopped at {limit}={at} with a gap of "
                f"{self.dual_gap_:.3g}. Increase {limit}.",
                ConvergenceWarning,
            )

    def _calibrated(self, raw, weights, truth):
        """`LabelSigmoids` or None, and the `LabelRows` by which rules decide."""
        is_auto = self.confusion == "auto"
        if not is_auto or (self._counts_labels() and self.average != "micro"):
            return None, raw
        sigmoids = LabelSigmoids.fit(raw, weights, truth)
        return sigmoids, sigmoids(raw)

    def _or_simple(self, choice, raw, rows, weights, truth):
        """The choice or a simple one, whichever y says is better; its rows.

        They are judged on each half of the rows, chosen by the other.
        """
        # The order of the rows does not matter.
        P, parts = raw.matrix(), []
        order = np.lexsort((weights, row_uniforms(truth), row_uniforms(P)))
        for of in (order[::2], order[1::2]):
            half = replace(LabelRows.of(P[of]), is_complete=raw.is_complete)
            parts.append((half, weights[of], truth[of]))
        if choice.status == "max_time" or not all(part[1].any() for part in parts):
            return choice, rows
        pairs = zip(parts, parts[::-1], strict=True)
        best = int(np.argmin(np.sum([self._judged(*pair) for pair in pairs], axis=0)))
        if best == 0:
            return choice, rows
        self.label_sigmoids_ = None
        if self.labels_per_row is not None and self.average in ("micro", "samples"):
            return self._choose(raw, weights, None, self.metric_), raw
        rule = self._simple(raw, weights, truth)[best - 1]
        labels, of, bound = rule.indicator(raw), rows.matrix(), choice.bound
        if self.labels_per_row is None:
            # What counts are the labels, as they do for thresholds that fit them.
            of, bound = truth, self._by_labels(raw, weights, truth).bound
        loss = self._loss(labels, of, weights)
        return replace(choice, rule=rule, objective=loss, bound=bound), raw

    def _judged(self, given, others):
        """Losses of the own rule and of simple ones that are chosen by other rows."""
        sigmoids, rows = self._calibrated(*others)
        counted = others[2] if self._counts_labels() else None
        rule = self._choose(rows, others[1], counted, self.metric_, shrink=True).rule
        raw, weights, truth = given
        found = [rule.indicator(raw if sigmoids is None else sigmoids(raw))]
        found += [rule.indicator(raw) for rule in self._simple(*others)]
        return [self._loss(labels, truth, weights) for labels in found]

    def _simple(self, raw, weights, truth):
        """Rules of probabilities as they are: thresholds of .5, and those for y."""
        k, cuts = self.labels_per_row, [np.full(raw.n_labels, 0.5)]
        if self.average != "samples" and (k is None or self.average != "micro"):
            # No label is predicted everywhere of which something is known, or others not.
            is_known = np.bincount(raw.labels, minlength=raw.n_labels) > 0
            least = np.where(raw.is_complete & ~is_known, -np.inf, 0.0)
            values = self._by_labels(raw, weights, truth).rule.values
            cuts.append(np.maximum(values, least))
        if k is None:
            return [ThresholdRule(values) for values in cuts]
        gains = [np.column_stack([-np.clip(c, 0.0, 1.0), np.ones(len(c))]) for c in cuts]
        return [TopLabelsRule(each - [each[0, 0], 0.0], k) for each in gains]

    def _by_labels(self, raw, weights, truth):
        """The `Choice` of the thresholds that fit y best."""
        options = self.metric_, self.average, (), self.label_names_, False
        return choose_thresholds(raw, weights, truth, *options)

    def _warn_of_left_out(self):
        """UserWarning for labels of which constraints say nothing; these labels."""
        told = []
        for constraint in read_constraints(self.constraints):
            never, absent = [], []
            for label, C in zip(self.label_names_, self.confusion_, strict=True):
                cells = Cells.single(C.sum(axis=1), ABSENT_PRESENT)
                if constraint.empty_counts(cells):
                    absent.append(label)
                elif constraint.empty_counts(cells, C[None]):
                    never.append(label)
            told += never
            for labels, why in ((absent, "absent or present in every row"),
                                (never, "never or always predicted")):  # fmt: skip
                if labels:
                    warn_caller(
                        f"{constraint!r} says nothing about the label(s) "
                        f"{listed_names(labels)}, which are {why}. New rows may violate "
                        "it there by any amount.",
                    )
        return told

    def _counts_labels(self):
        """Whether C counts the labels."""
        at_once = self.labels_per_row is None and self.average != "samples"
        return at_once and self.confusion != "probabilities"

    def _check_combination(self, n_labels):
        """The metric, after a check for contradicting parameters."""
        words = set(self.metric.split("_")) if isinstance(self.metric, str) else set()
        for average in words.intersection(("macro", "micro", "samples", "weighted")):
            name = self.metric.replace(average, "").strip("_")
            raise ValueError(
                f"metric={self.metric!r} averages over the classes of one label. To "
                f"average over labels use metric={name!r}, average={average!r}."
            )
        metric = get_metric(self.metric, ABSENT_PRESENT)
        if metric.needs_groups or metric.needs_costs:
            of = "groups" if metric.needs_groups else "the costs of each example"
            raise ValueError(
                f"metric={self.metric!r} is a metric of {of}, not of labels."
            )
        check_classifier(self._classifier(), "predict_proba")
        k, samples = self.labels_per_row, self.average == "samples"
        if k is not None and k > n_labels:
            raise ValueError(f"labels_per_row={k} exceeds the {n_labels} labels of y.")
        if k is not None and self.n_candidates is not None and k > self.n_candidates:
            raise ValueError(
                f"labels_per_row={k} exceeds n_candidates={self.n_candidates}."
            )
        if samples and not (isinstance(metric, FBeta) and metric.positive(2) == 1):
            raise ValueError(
                "average='samples' supports only F-measures, such as metric='f1' or "
                f"FBeta(beta=...); got metric={self.metric!r}."
            )
        for constraint in read_constraints(self.constraints):
            if (
                constraint.needs_groups
                or constraint.needs_baseline
                or constraint.needs_costs
            ):
                raise ValueError(
                    f"{constraint!r} is not supported: it uses groups, a baseline or "
                    "individual costs of the examples."
                )
            constraint.check(Cells.single([0.5, 0.5], ABSENT_PRESENT))
        return metric

    def _choose_and_tell(self, reporter, *arguments):
        """`_choose` with its passes reported, or a single one without a search."""
        reporter.begin()

        def on_pass(n_iter, row, done, rule):
            reporter.snapshot = lambda: _rule_attributes(rule())
            return reporter(n_iter, row, done)

        shrink = self.confusion == "auto"
        choice = self._choose(*arguments, shrink=shrink, on_pass=on_pass)
        if reporter.snapshot is None and choice.n_iter:
            on_pass(choice.n_iter, None, True, lambda: choice.rule)
        return choice


def _takes_sparse_labels(classifier):
    """Whether a classifier is given sparse labels as they are.

    Of scikit-learn's, some refuse them, and others read them as something else.
    """
    final, _ = unwrapped(classifier, None)
    is_known = isinstance(final, OneVsRestClassifier)
    return is_known or type(final).__module__.partition(".")[0] != "sklearn"


def _rule_attributes(rule):
    found = {"label_rule_": rule}
    for name, part in (("thresholds_", "values"), ("gains_", "gains")):
        if part in vars(rule):
            found[name] = vars(rule)[part]
    return found


def _labels_of(X, y):
    """`as_indicator(y)`; the error says if X is what y should be."""
    try:
        return as_indicator(y)
    except ValueError as error:
        try:
            as_indicator(X)
        except (TypeError, ValueError):
            raise error from None
        raise ValueError(
            f"{error} X does hold 0 and 1 only. If they are swapped, write fit(X, y)."
        ) from error


def _plain_fit(classifier, X, y, **params):
    try:
        # What a user's `fit` returns need not be the classifier.
        classifier.fit(X, y, **params)
        return classifier
    except ValueError as error:
        # In the words of scikit-learn.
        if "1d array" not in str(error):
            raise
        kind = type(classifier).__name__
        raise ValueError(
            f"{kind} takes one label per row, but y has {y.shape[1]}: write estimator="
            f"OneVsRestClassifier({kind}(...)) or MultiOutputClassifier({kind}(...))."
        ) from error


def _hold_out(classifier, X, y, routed, *, read, constant, cv, n_jobs):
    """The same as `held_out_probabilities` returns."""
    folds = checked_folds(cv, X, y, **routed.splitter.split)
    with warnings.catch_warnings():
        # scikit-learn's classifiers warn of this; only the fit to all rows should.
        labels = "|".join(map(str, constant.tolist()))
        said = rf"Label (not )?({labels}) is present in all training examples"
        warnings.filterwarnings("ignore", said, UserWarning)
        rows, parts = held_out_parts(
            classifier, X, y, _plain_fit, read, folds, routed, n_jobs
        )
    return rows, stacked(parts), folds, None
