"""Classifiers for any metric and constraint of the confusion matrix."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from sklearn_structsvm._utils.borders import as_canonical
from sklearn_structsvm._utils.compat import HasMethods, Interval, StrOptions
from sklearn_structsvm._utils.options import Option, check_options
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.lmo.base import LMO
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.rate_constraint import RateConstraint
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.estimators.complex_metric.held_out import hold_out
from sklearn_structsvm.estimators.complex_metric.oracles import (
    find_probabilities,
    make_oracle,
)
from sklearn_structsvm.estimators.complex_metric.over_probabilities import refuse_misspelt
from sklearn_structsvm.estimators.complex_metric.predicting import RandomizedClassifier
from sklearn_structsvm.estimators.complex_metric.solving import solve, store
from sklearn_structsvm.estimators.complex_metric.task import read_task
from sklearn_structsvm.estimators.complex_metric.written_rule import (
    WrittenRule,
    write_rule,
)
from sklearn_structsvm.estimators.constraints import (
    COUNT,
    NON_NEGATIVE,
    SHARE,
    TIME_OPTION,
)
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.solvers.confusion.named import SOLVERS, find_solver


class ComplexMetricClassifier(RandomizedClassifier):
    r"""The best decisions for any metric of the confusion matrix, under constraints.

    For scores other than accuracy, such as the F1 of a rare class, the worst recall or a
    cost, with bounds on other rates or on differences between groups. It decides by the
    class probabilities of `estimator`:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> model = ComplexMetricClassifier(metric="f1").fit(X, y)
    >>> print(model.rule_)  # doctest: +ELLIPSIS
    f1: 1 if p(1) > ..., else 0

    `predict` applies this rule. If the best decisions are a mixture of several rules, it
    chooses one by a hash of the row, so that equal rows get equal labels. `predict_proba`
    is the probability that the *rule* predicts each class; for the probability of the
    class, ask `estimator_`. `dual_gap_` bounds how much better any other classifier on
    these probabilities could be.

    Read more in the :ref:`User Guide <guide-complex-metrics>`.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Source of the class probabilities. It is cloned and fitted to the labels as they
        are, unless it is a ``FrozenEstimator`` or ``cv="prefit"``. Wrap SVMs in
        ``CalibratedClassifierCV``. None means logistic regression on scaled columns.
    metric : str, ConfusionMetric, rate or callable, default="g_mean"
        What to optimize: a name such as "g_mean", "recall" or "micro_f1" (any key of
        ``sklearn_structsvm.metrics.METRICS``, or scikit-learn's name), or an object of
        :mod:`sklearn_structsvm.metrics`. Names of metrics of one class, such as "f1",
        refer to label 1 or True; for other labels pass an object, such as
        ``FBeta(pos_label="fraud")``.

        For two classes also a score of (y_true, y_pred), or what `make_scorer` returns:
        all thresholds are then tried, without a certificate.
    constraints : Constraint or sequence of Constraint, default=()
        Conditions that must all hold, such as ``Precision(at_least=0.9)``.
    randomized : bool, default=True
        Whether the result may be a mixture of rules. False finds the best single rule: a
        threshold for two classes, a loss matrix for more, one per group if there are
        groups. For more classes, and with `group_blind`, the search is local; `dual_gap_`
        bounds the distance from the best mixture.
    confusion : {"auto", "labels", "probabilities"}, default="auto"
        What is counted, and certified: labels; probabilities, as if they were correct; or
        something between, nearer to the labels the more there are.
    group_blind : bool, default=False
        Whether decisions may not depend on the group, so that `sensitive_features` are
        needed in `fit` only. False learns a rule per group where constraints need it.
    constraint_confidence : float or None, default=None
        Probability with which all constraints, on rates, shall hold for new examples. If
        no rule can be certified, an error says how many examples would do. None asks for
        the constraints on the training examples only.
    cv : int, float, splitter, iterable, "prefit" or None, default=5
        Which probabilities the rule is chosen by.

        - Folds: out-of-fold probabilities. `predict` uses one more fit, to all examples.
        - A float between 0 and 1: those of this share of the examples, drawn at random.
        - None: of the examples that `estimator` is fitted to. For those that hardly
          overfit, such as logistic regression with few features.
        - "prefit": `estimator` is already fitted. Pass other examples to `fit`.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value and the constraints hold.
    max_iter : int, default=1000
        Maximum number of iterations.
    random_state : int, RandomState instance or None, default=None
        Seed of the hash by which `predict` chooses rules, and of what is held out. None
        is a fixed seed of the hash.
    n_jobs : int or None, default=None
        Number of folds that are processed in parallel, and of threads.
    verbose : int, default=0
        If nonzero, print one line per iteration.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"min_group_size": 50}``:

        min_group_size : int, "warn" or None, default="warn"
            Groups of fewer training examples are pooled as "other", with a warning.
            "warn" pools nothing, and lists groups of fewer than 20. None says nothing.
        margin : "auto", float or None, default=None
            How much stricter constraints are in training. "auto" is one standard error of
            each rate. Not with `constraint_confidence`.
        constraint_calibration : float or "uniform", default=0.5
            The share of the examples to hold out for `constraint_confidence`. Rules from
            strict to loose are tested on them, by exact bounds [3]_. "uniform" holds
            nothing out, and tightens each constraint by a bound for all thresholds, which
            is proven for two classes and ``cv="prefit"``.
        lmo : {"plugin", "weighted"} or LMO, default="plugin"
            The plug-in rule; `estimator`, refitted to weighted examples for each loss
            matrix; or an oracle of your own.
        group_estimator : classifier or None, default=None
            With `group_blind`, a classifier of groups. None fits `estimator` to the pairs
            of group a and label i, as numbers a * n_classes + i.
        solver : str, default="auto"
            "column_generation", which "auto" takes, or "frank_wolfe", "gda", "ellipsoid"
            or "bisection" of [1]_.
        max_time : float or None, default=None
            Time limit of the solver in seconds.
        step, step_sizes, dual_steps, penalty, radius, average, deep_cuts, inner, ...
            Those of the chosen `solver`. An unknown name gets an error that lists them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    rule_ : WrittenRule
        The rule in words, ``str(rule_)``, and as a table, ``rule_.columns``. If there is
        no single rule, the AttributeError says why.
    threshold_ : float
        For two classes and a single rule: `pos_label_` (or ``classes_[1]``) is predicted
        above it.
    thresholds_ : dict of {group: float}
        Threshold per group, if there are `groups_`.
    cv_thresholds_ : ndarray of shape (n_folds,) or (n_folds, n_groups)
        The thresholds that each fold alone would give.
    estimator_ : classifier
        The fitted source of the probabilities.
    dual_gap_ : float
        Upper bound on the suboptimality: `objective_ - dual_objective_`. If labels of
        more than two classes are counted, or labels with `group_blind`, it is that under
        the probabilities. It is inf for metrics that are neither convex nor made of
        ratios, and an estimate for an `lmo` other than "plugin".
    objective_, dual_objective_ : float
        The loss, 1 minus the score, of what is counted, and a lower bound for all
        classifiers on these probabilities that meet the constraints.
    mixture_objective_ : float
        With ``randomized=False``: `objective_` of the best mixture found.
    constraint_violation_ : float
        Largest violation of what is counted, at most 0 if all constraints hold, -inf
        without constraints.
    calibration_p_values_ : ndarray of shape (n_tested,)
        P-values of the rules that were tested for `constraint_confidence`.
    constraint_bounds_ : list of dict
        By how much a "uniform" `constraint_calibration` tightened each constraint.
    confusion_, cell_confusions_ : ndarray
        Expected confusion matrix on the training labels, and that of each group.
    certified_confusions_ : ndarray of shape (n_cells, n_classes, n_classes)
        Confusion matrices as the solver counts them.
    diagnostics_ : dict of ndarray of shape (n_classes,)
        What to look at before trusting the rule, such as the "predicted_share".
    mixture_weights_ : ndarray of shape (n_mixture,)
        Probabilities of the rules, in decreasing order.
    loss_matrices_ : ndarray of shape (n_mixture, n_cells, n_classes, n_classes)
        Entry [t, a, i, j] is the cost, in rule t, of predicting j for label i in cell a.
    classifiers_ : list of length n_mixture
        The fitted classifiers, for an `lmo` other than "plugin".
    groups_ : ndarray of shape (n_groups,) or None
        The groups that are distinguished; tuples for several columns.
    pooled_groups_ : dict of {group: int}
        Groups that were pooled, with their numbers of training examples.
    common_rule_ : bool
        Whether all groups have the same rule, because it meets the constraints.
    metric_ : ConfusionMetric
        The metric, bound to these classes.
    pos_label_ : label or None
        The positive label of the metric or of a constraint.
    counted_ : {"labels", "smoothed", "probabilities"}
        What `confusion` counts.
    label_factors_ : ndarray of shape (n_classes, n_classes) or None
        Corrections of the calibrated probabilities, by the class that balanced costs
        would predict.
    solver_ : str
        The solver in use, with "auto" resolved.
    n_iter_, n_oracle_calls_ : int
        Numbers of iterations and of calls of the oracle.
    history_ : dict of ndarray
        Progress at each check; "method" says which solver made it.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of features, if the fitted estimator has them.

    See Also
    --------
    MultilabelMetricClassifier : The same for several labels per row.
    sklearn.model_selection.TunedThresholdClassifierCV : Tunes one threshold.

    Notes
    -----
    Over randomized classifiers h it solves

    .. math:: \min_h \; \psi(C[h]) \quad \text{s.t.} \quad \phi_q(C[h]) \le 0

    for constraints q. Here :math:`C[h]_{aij}` is the share of examples from group a with
    label i that h predicts as j. For a loss matrix L the best rule is
    :math:`\arg\min_j \sum_i \eta_i(x) L_{ij}`; other metrics may need a mixture of such
    rules, which the solver finds by calls of a linear minimization oracle [1]_.

    ``predict(X)`` hashes the row's values as float32 [2]_, and not the group. With few
    distinct rows its confusion matrix may be far from that of the mixture. Then use
    ``predict(X, random_state=...)``, which draws a rule for each row.

    References
    ----------
    .. [1] Narasimhan et al., "Consistent multiclass algorithms for complex metrics and
       constraints", JMLR, 2024.
    .. [2] Cotter, Gupta, Narasimhan, "On making stochastic classifiers deterministic",
       NeurIPS 2019.
    .. [3] Angelopoulos et al., "Learn then test", Annals of Applied Statistics, 2025.
    """

    # What a fit sets, for editors and type checkers.
    classes_: np.ndarray
    mixture_weights_: np.ndarray
    loss_matrices_: np.ndarray
    classifiers_: list
    counted_: str
    estimator_: ClassifierMixin
    label_factors_: np.ndarray | None
    metric_: ConfusionMetric
    pos_label_: object
    confusion_: np.ndarray
    diagnostics_: dict[str, np.ndarray]
    cell_confusions_: np.ndarray
    certified_confusions_: np.ndarray
    common_rule_: bool
    mixture_objective_: float
    objective_: float
    dual_objective_: float
    dual_gap_: float
    constraint_violation_: float
    constraint_bounds_: list[dict]
    calibration_p_values_: np.ndarray
    groups_: np.ndarray | None
    cv_thresholds_: np.ndarray
    solver_: str
    n_iter_: int
    n_oracle_calls_: int
    history_: dict[str, np.ndarray]
    n_features_in_: int
    feature_names_in_: np.ndarray

    _needs: ClassVar[dict[str, list[Need]]] = {
        "group_estimator": [Need(None, "group_blind", (True,))],
        "constraint_confidence": [
            Need(
                None,
                "confusion",
                ("auto", "labels"),
                given={"constraint_calibration": "uniform"},
            ),
            Need(
                None,
                "lmo",
                ("plugin",),
                "Only it uses class probabilities.",
                given={"constraint_calibration": "uniform"},
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
    }
    _parameter_constraints: dict = {
        # What it needs depends on `lmo` and `cv`.
        "estimator": [HasMethods(["fit"]), HasMethods(["predict_proba"]), None],
        # `get_metric` and `read_constraints` say what to write.
        "metric": "no_validation",
        "constraints": "no_validation",
        "randomized": ["boolean"],
        "confusion": [StrOptions({"auto", "labels", "probabilities"})],
        "group_blind": ["boolean"],
        "constraint_confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "cv": [
            Interval(Real, 0, 1, closed="neither"),
            "cv_object",
            StrOptions({"prefit"}),
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "solver_options": [dict, None],
    }
    _instead: ClassVar = {
        "pos_label": "It is of the metric: write metric=FBeta(pos_label=...), say.",
        "scoring": "The score to optimize is the metric: write metric=...",
    }
    _option_table: ClassVar = {
        "lmo": Option("plugin", [StrOptions({"plugin", "weighted"}), LMO]),
        "solver": Option("auto", [StrOptions({"auto", *SOLVERS})]),
        "constraint_calibration": Option(0.5, [StrOptions({"uniform"}), *SHARE]),
        "margin": Option(None, [StrOptions({"auto"}), *NON_NEGATIVE, None]),
        "group_estimator": Option(
            None, [HasMethods(["fit"]), HasMethods(["predict_proba"]), None]
        ),
        "min_group_size": Option("warn", [*COUNT, StrOptions({"warn"}), None]),
        **TIME_OPTION,
    }

    def __init__(
        self,
        estimator: Any = None,
        metric: str | ConfusionMetric | RateConstraint | Callable[..., Any] = "g_mean",
        constraints: Constraint | list[Constraint] | tuple[Constraint, ...] = (),
        *,
        randomized: bool = True,
        confusion: Literal["auto", "labels", "probabilities"] = "auto",
        group_blind: bool = False,
        constraint_confidence: float | None = None,
        cv: Any = 5,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.constraints = constraints
        self.randomized = randomized
        self.confusion = confusion
        self.group_blind = group_blind
        self.constraint_confidence = constraint_confidence
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver_options = solver_options

    def _known_options(self):
        owner, table = super()._known_options()
        # The solver decides which others there are.
        name = self._options.solver
        check_options(owner, {"solver": name}, table)
        _, solver = find_solver(name, bool(self.constraints))
        return f"{owner} with {solver.CALLED}", table | solver.OPTIONS

    def _options_of_solver(self):
        """The options that are not in the table: those of the solver alone."""
        given, table = self.solver_options or {}, self._option_table
        return {name: given[name] for name in given if name not in table}

    @property
    @of_one_fit
    def rule_(self) -> WrittenRule:
        """The rule in words and as a table, if there is a single one."""
        self._single_rule("rule_", is_threshold=False)
        return write_rule(self)

    @property
    def pooled_groups_(self) -> dict[Any, int]:
        """The groups that were pooled, with their numbers of training examples."""
        groups = self.cell_finder_.groups
        return {} if groups is None else {name: size for name, size, _ in groups.pooled}

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        costs: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the class probabilities and find the optimal mixture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or whatever `estimator` accepts.
        y : array-like of shape (n_samples,)
            Class labels: strings, numbers or booleans.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples, used in the confusion matrix and in the
            fit of `estimator`. Their scale matters only to a given `estimator`, which
            gets them as they are.
        sensitive_features : array-like or data frame, default=None
            Shape (n_samples,) or (n_samples, n_columns). Group of each example: strings,
            numbers or booleans, without missing values. For several columns, the groups
            are the combinations that occur, and constraints of a `feature` are about the
            values of one column; `predict` matches the columns of a data frame
            by name. Ignored, with a warning, if neither the metric nor a constraint uses
            groups, unless `group_blind` is True.
        costs : array-like or data frame, default=None
            Shape (n_samples, n_classes) or (n_samples, n_classes, n_classes). Costs of
            predictions for each example, for ``metric="expected_cost"`` and for
            constraints on it, with classes in sorted order. The columns of a data frame
            are the labels, in any order. Entry [r, i, j] is the cost of predicting j if
            the label is i. Such costs are known for new examples too, and the rules
            depend on them: pass them to `predict`. Entry [r, j] is the cost of predicting
            j for the actual label. Such costs are known in training only, and the rules
            depend on the features alone.
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
            A ``ValueError``, if no classifier or, with ``randomized=False``, no single
            rule satisfies the constraints. It states the smallest achievable violation.
            The estimator remains unchanged.
        ValueError
            Before any fit, if a constraint names labels or groups that do not occur, if
            groups are needed but missing, if no group has `min_group_size` examples, or
            if there is only one class.
        """
        return fit_aside(
            self,
            X=X,
            y=y,
            sample_weight=sample_weight,
            sensitive_features=sensitive_features,
            costs=costs,
            fit_params=fit_params,
        )

    def _fit_within(
        self, fit, X, y, fit_params, sample_weight=None, sensitive_features=None,
        costs=None, shared=None,
    ):  # fmt: skip
        """Fit, with probabilities that fits with other constraints may have `shared`."""
        refuse_misspelt(self, fit_params)
        X, y = as_canonical(X), as_canonical(y, "y")
        metadata = {
            "sample_weight": sample_weight,
            "sensitive_features": sensitive_features,
            "costs": costs,
        }
        task, given = read_task(self, X, y, fit_params, metadata, shared is not None)
        held_out, task, given = hold_out(self, task, given)
        shared = {} if shared is None else shared
        if self._is_plugin and "P" not in shared:
            shared["P"] = find_probabilities(self, task, given)
        oracle, known = make_oracle(self, task, given, shared.get("P"))
        solution = solve(fit, oracle, known, held_out)
        store(fit, solution)
