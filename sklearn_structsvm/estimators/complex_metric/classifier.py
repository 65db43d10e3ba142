"""Classifiers for any metric and constraint of the confusion matrix."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from sklearn_structsvm._utils.borders import as_canonical
from sklearn_structsvm._utils.compat import HasMethods, Interval, StrOptions
from sklearn_structsvm._utils.options import Option, check_options, refuse_unknown
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
from sklearn_structsvm.estimators.complex_metric.over_probabilities import (
    refuse_misspelt,
)
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
    r"""Classifier for any metric of the confusion matrix, under constraints.

    Over all randomized classifiers h it solves

    .. math:: \min_h \; \psi(C[h]) \quad \text{s.t.} \quad \phi_q(C[h]) \le 0

    for constraints q. Here :math:`C[h]_{aij}` is the fraction of examples from group a
    with label i that h predicts as j. The loss :math:`\psi` is for example 1 minus the
    G-mean of the recalls, and a constraint is for example "the recalls of the groups
    differ by at most 0.05" [1]_.

    A given `estimator` predicts class probabilities :math:`\eta_i(x)`. What is learned
    here is how to turn them into decisions. If the metric is a sum of costs, given by a
    loss matrix L, the best decision is the plug-in rule :math:`\arg\min_j \sum_i
    \eta_i(x) L_{ij}`. Other metrics need a mixture of such rules, each with its own loss
    matrix. The solver finds the loss matrices and the mixture by calls of a linear
    minimization oracle (LMO). It also finds a lower bound on :math:`\psi` that holds for
    every classifier based on these probabilities.

    The result is a randomized classifier: rule t decides with probability
    ``mixture_weights_[t]``. It is deterministic if a single rule is optimal, as for sums
    of costs. ``randomized=False`` finds the best single rule, one that can be written
    down, and bounds what it costs.

    Read more in the :ref:`User Guide <guide-complex-metrics>`.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Classifier that provides the class probabilities by `predict_proba`. It is cloned
        and fitted, unless it is a ``FrozenEstimator`` or ``cv="prefit"``. Its
        probabilities should be calibrated: see ``CalibratedClassifierCV``, which also
        turns the scores of SVMs into probabilities. It is given the labels as they are.
        For a classifier that needs labels 0, ..., k - 1, such as XGBoost's, encode `y`
        with ``LabelEncoder``. None means logistic regression.
    metric : str, ConfusionMetric, rate or callable, default="g_mean"
        The loss :math:`\psi`: a name such as "g_mean", "recall" or "micro_f1" (any key of
        ``sklearn_structsvm.metrics.METRICS``, or scikit-learn's name, such as
        "f1_macro"), an object of :mod:`sklearn_structsvm.metrics`, or a user-defined
        metric. Names of metrics of one class, such as "f1", refer to label 1 or True. For
        other labels pass an object, such as ``FBeta(pos_label="fraud")`` or
        ``Recall(pos_label="fraud")``.

        For two classes it may also be a score of (y_true, y_pred), or what
        scikit-learn's `make_scorer` returns. All thresholds are then tried, as with
        ``randomized=False``. There is no certificate: `dual_gap_` is inf.
    constraints : Constraint or sequence of Constraint, default=()
        Constraints on the confusion matrices. All of them must hold.
    randomized : bool, default=True
        Whether the result may be a mixture of rules. False finds the best single rule: a
        threshold for two classes, a loss matrix (class weights, for metrics of recalls)
        for more, one per group if there are groups. `dual_gap_` then bounds its distance
        from the best mixture, and `rule_` has it in words.

        - For two classes the search is exact: no other thresholds, of all groups jointly,
          are better. If it takes long, it ends as soon as none can be better by more than
          `tol`. Rules predict a class above a threshold of its probability, never below.
          For metrics that are neither convex nor ratios, and many combinations of
          thresholds, it is a local search.
        - For more classes, with `group_blind`, and for costs that `predict` is given, it
          is a local search from the rules of the mixture.
        - For an `lmo` other than "plugin", it is the best of the classifiers found.

        If no single rule satisfies the constraints, the error says so.
    confusion : {"auto", "labels", "probabilities"}, default="auto"
        What C counts, for ``lmo="plugin"``. The certificate refers to what is counted.

        - "labels" counts the labels of the examples. For two classes, the best of all
          thresholds (per group) is found, also if it is the best of few examples by
          chance. For more classes, or with `group_blind`, the plug-in rule is only nearly
          optimal.
        - "probabilities" counts the predicted class probabilities, as if they were
          correct. The plug-in rule is then optimal for any number of classes.
        - "auto" is between the two, and nearer to the labels the more there are. For two
          classes it counts labels that are smoothed over examples with similar
          probabilities, and finds the best threshold (per group) for them. For more
          classes it counts probabilities, after it has calibrated them and moved them
          toward the labels, see `label_factors_`. Examples of weights w are as many as
          :math:`(\sum w)^2 / \sum w^2` in both. With `group_blind`, a uniform
          `constraint_calibration`, or costs that are known in training only, labels of
          two classes are counted as they are.
    group_blind : bool, default=False
        Whether decisions may not depend on the group. `sensitive_features` are then
        needed in `fit` only, and metrics and constraints of groups keep their meaning.
        False learns a rule per group. True requires ``lmo="plugin"`` and uses the joint
        probabilities of group and label: the rule for costs L is :math:`\arg\min_j \sum_a
        \sum_i P(a, i \mid x) L_{aij}`, which is the best rule based on x alone.
    constraint_confidence : float or None, default=None
        Probability, between 0 and 1, with which all constraints shall hold for new
        examples, over the draw of the training examples. Constraints must then be on
        rates. None asks for them on the training examples only. If no rule can be
        certified, `fit` raises an error that says how many examples would do. A rate
        among no examples, such as the recall of a label that a group lacks, is never
        certified, and the error names them.
    cv : int, float, splitter, iterable, "prefit" or None, default=5
        Where the probabilities used for choosing the mixture come from.

        - Folds: out-of-fold probabilities. `predict` uses a fit to all examples, which
          makes six fits for ``cv=5``. Folds have no effect for an `lmo` other than
          "plugin". If smoothed labels of two classes are counted, each fold's log odds
          are moved to the scale of the fit to all examples, by quantiles.
        - A float between 0 and 1: out-of-fold probabilities of this share of the
          examples, drawn at random.
        - None: from a fit to all examples, evaluated on the same examples. This suits
          classifiers that hardly overfit, such as logistic regression with few features.
        - "prefit": `estimator` is already fitted. Pass other examples to `fit`.
    tol : float, default=1e-3
        Stop once `dual_gap_`, in units of :math:`\psi`, is at most this value and the
        constraints hold.
    max_iter : int, default=1000
        Maximum number of iterations. Each usually makes one LMO call.
    random_state : int, RandomState instance or None, default=None
        Seed of the hash by which `predict` chooses a rule for each row. None is a fixed
        seed. Nothing else here is random; `estimator` and `predict` have their own
        `random_state`.
    n_jobs : int or None, default=None
        Number of folds that are processed in parallel, and of threads for the LMO and for
        predictions.
    verbose : int, default=0
        If nonzero, print one line per iteration.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"min_group_size": 50}``:

        lmo : {"plugin", "weighted"} or LMO, default="plugin"
            How to find the best classifier for a loss matrix.

            - "plugin" is the plug-in rule above.
            - "weighted" refits `estimator` for each loss matrix, on examples weighted by
              their costs. It needs no probabilities, and does not use the groups.
            - A user-defined :class:`~sklearn_structsvm.confusion.lmo.LMO` replaces
              `estimator`.
        solver : str, default="auto"
            The optimization algorithm: "column_generation", "frank_wolfe" (for smooth
            metrics), "gda", "ellipsoid" or "bisection" (for ratios of linear functions,
            such as F-measures). With constraints the last four are SplitFW, ConGDA,
            ConEllipsoid and ConBisection of [1]_. "auto" is column generation, which
            works for all metrics and needs the fewest LMO calls.
        group_estimator : classifier or None, default=None
            Classifier for the groups, for ``group_blind=True``.

            - None: `estimator` predicts pairs (group, label). It is fitted to the numbers
              a * n_classes + i of the pairs of ``groups_[a]`` and ``classes_[i]``. A
              prefitted one must have been fitted to these numbers.
            - A classifier is fitted to the groups, and `estimator` to the labels. Their
              product is used for :math:`P(a, i \mid x)`, which is correct if group and
              label are independent given x. It is fitted to the values of the sensitive
              feature or, for several columns or numbers with a pooled group, to the
              indices in ``groups_``.
        min_group_size : int, "warn" or None, default="warn"
            Groups of fewer training examples are pooled, with a warning that lists them.
            The rates of a few examples are mostly chance, so that constraints on them say
            little of new examples. "warn" pools nothing, and lists groups of fewer than
            20: one example moves their rates by more than a slack of 0.05. None says
            nothing.

            - The pooled group is named "other", as is a group of that name in the data,
              which becomes a part of it. For `predict` its members keep their own names.
            - With several columns, small values are pooled in each column first. Then
              small combinations are pooled: to "other" in all columns but those that are
              the `feature` of a constraint, whose values must be counted separately.
            - Examples of weight zero do not count. A constraint on a `group` that is
              pooled is an error. So is a group that did not occur in training, as without
              pooling; combinations of known values are known if the pooled one occurred.
        constraint_calibration : float or "uniform", default=0.5
            How to make sure of `constraint_confidence`.

            - A float is the fraction of the examples to hold out, drawn at random. The
              others train `estimator` and give rules from strict to loose, which are
              tested one after the other on the held-out examples, by exact binomial
              bounds on the very rates that are constrained (Clopper-Pearson, and an exact
              bound for differences) [3]_. The guarantee is exact for `predict`, whatever
              the `estimator`, the `lmo` and the number of classes. It needs examples of
              equal weight. With ``cv="prefit"`` and ``confusion="probabilities"``, 0.8
              mostly costs less.
            - "uniform" uses all examples for both. Each constraint is tightened by the
              Dvoretzky-Kiefer-Wolfowitz bound on the error of its rates, which depends on
              the group sizes and holds for all thresholds at once, see
              `constraint_bounds_`. Labels are then counted. The guarantee is proven for
              two classes, if the probabilities come from other examples (``cv="prefit"``)
              and the fractions of the groups do not change. For more classes and for
              `group_blind` the same bound is used as a heuristic.
        margin : "auto", float or None, default=None
            How much stricter constraints are in training, because those that are just met
            there are violated by about every other sample of new examples. "auto" is one
            standard error of each rate, or difference of rates, at the rule without a
            margin, a number a margin in units of the constraint. A slack is not tightened
            below 0. For constraints on rates; not with `constraint_confidence`, which is
            stricter and promises something.
        max_time : float or None, default=None
            Time limit of the solver in seconds. It makes at least one iteration. A fit
            that is cut short by it is not reproducible bit for bit.
        step, step_sizes, dual_steps, penalty, radius, average, deep_cuts, inner, ...
            Those of the chosen `solver`, such as ``{"solver": "frank_wolfe", "step":
            "away"}``. An unknown name gets an error that lists them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of all rows and columns.
    mixture_weights_ : ndarray of shape (n_mixture,)
        Probabilities of the classifiers of the mixture, in decreasing order.
    loss_matrices_ : ndarray of shape (n_mixture, n_cells, n_classes, n_classes)
        Loss matrices of the rules: entry [t, a, i, j] is the cost, in rule t, of
        predicting j for label i in cell a.
    classifiers_ : list of length n_mixture
        The fitted classifiers. Not defined for ``lmo="plugin"``.
    estimator_ : classifier
        The fitted source of the probabilities (``lmo="plugin"`` only). With
        `group_blind`, its classes are the numbers of the pairs (group, label). If there
        is a `group_estimator`, its attributes `estimator_` and `group_estimator_` are the
        two fitted classifiers.
    counted_ : {"labels", "smoothed", "probabilities"}
        What `confusion` counts. Defined only for ``lmo="plugin"``.
    label_factors_ : ndarray of shape (n_classes, n_classes) or None
        Correction of the calibrated probabilities by ``confusion="auto"``, in training
        and prediction (``lmo="plugin"`` only). Row b applies if the rule of balanced
        costs predicts b: the probability of class i is multiplied by entry [b, i], then
        all are normalized. None if the probabilities are used as they are: for two
        classes, with `group_blind`, and for other values of `confusion`.
    metric_ : ConfusionMetric
        The metric :math:`\psi`, bound to these classes.
    pos_label_ : label or None
        The positive label of the metric or, if it has none, of the first constraint that
        has one. None if all labels are treated alike.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Expected confusion matrix of the mixture on the training labels (on held-out
        predictions with `cv`), as fractions of the examples.
    diagnostics_ : dict of ndarray of shape (n_classes,)
        What to look at before trusting the rule, for each class and on the same examples:
        the "share" that has it, "predicted_share", the numbers "rows" and
        "predicted_rows" (effective numbers, if examples have weights) and, for
        ``lmo="plugin"``, "expected_share" by the probabilities and "calibration_error",
        the mean distance of the probabilities from the share of such examples that have
        the class, over ten bins.
    cell_confusions_ : ndarray of shape (n_cells, n_classes, n_classes)
        The same per cell; their sum is `confusion_`. The cells are the groups. For a
        churn constraint, each group is further divided by the baseline's label, which
        varies fastest. There is one cell if no groups are needed.
    certified_confusions_ : ndarray of shape (n_cells, n_classes, n_classes)
        Confusion matrices as the solver counts them, see `confusion`. They differ from
        `cell_confusions_` unless it counts labels.
    objective_ : float
        Value of :math:`\psi` at `certified_confusions_`. For its value on the labels,
        see `confusion_`.
    dual_objective_ : float
        Lower bound on :math:`\psi` for all classifiers that satisfy the constraints and
        are based on these probabilities. They may depend on the group if `groups_` is not
        None, and `group_blind` and `common_rule_` are False.
    dual_gap_ : float
        Upper bound on the suboptimality of the mixture: `objective_ - dual_objective_`.
        If labels of more than two classes are counted, or labels with `group_blind`, it
        is the gap under the class probabilities instead: if these are right, no
        classifier with at most the constraint violation of the mixture is better by
        more. It may then exceed `tol`, and `dual_objective_` is `objective_` minus it. It
        is inf for metrics that are neither convex nor made of ratios, and an estimate for
        an `lmo` other than "plugin".
    common_rule_ : bool
        Whether all groups have the same rule, because the best one without the
        constraints meets them, as they are counted. Groups get rules of their own only if
        the constraints need them: the difference is mostly noise otherwise, and new
        examples violate the constraints more. False without constraints on groups, and
        with `constraint_confidence` or `group_blind`.
    mixture_objective_ : float
        With ``randomized=False``: `objective_` of the best mixture that was found. The
        difference is the price of a single rule. It may be negative, because the mixture
        is optimal only up to `tol`.
    constraint_violation_ : float
        Largest constraint violation of `certified_confusions_`, in the units of the
        constraint. It is at most 0 if all constraints hold, and -inf without constraints.
        Violations within rounding error count as 0, and so does a constraint on a rate
        among no examples, of which a warning names the group and the label.
    threshold_ : float
        For two classes and a single rule: the label that is named, `pos_label_` (or else
        ``classes_[1]``), is predicted if its probability exceeds the threshold. Where it
        is exactly the threshold, ``classes_[0]`` is predicted. -inf means always, inf
        means never, and NaN means below rather than above a threshold. Otherwise the
        AttributeError says why there is no threshold: more classes, a mixture of several
        rules, rules per group, or rules that depend on costs.
    thresholds_ : dict of {group: float}
        Threshold per group, if there are `groups_`.
    rule_ : WrittenRule
        The rule in words, ``str(rule_)``, and as a table, ``rule_.columns``, if there is
        a single rule over class probabilities. Otherwise the AttributeError says why
        there is none.
    cv_thresholds_ : ndarray of shape (n_folds,) or (n_folds, n_groups)
        With folds for `cv`, and if there is a threshold: the threshold chosen on the
        held-out part of each fold alone (the mean threshold, for a mixture). Their spread
        shows how well the threshold is determined.
    calibration_p_values_ : ndarray of shape (n_tested,)
        With `constraint_confidence` and held-out examples: for each rule that was tested,
        from strict to loose, the p-value of "a constraint is violated on new examples".
        The rule in use is the last one with a p-value of at most 1 -
        `constraint_confidence`. Other attributes are then of the examples that were not
        held out: there, `constraint_violation_` may be positive.
    constraint_bounds_ : list of dict
        With `constraint_confidence` and ``constraint_calibration="uniform"``, one entry
        per constraint: for each group whose size matters (None without groups), the bound
        on the error of its rates on new examples. Each condition was tightened by its
        bound. If the bound exceeds the allowed slack of a difference between groups, the
        condition was tightened as far as possible, and a warning lists the groups and a
        slack that is feasible.
    groups_ : ndarray of shape (n_groups,) or None
        Groups that the classifier (with `group_blind`, only the fit) distinguishes:
        values of the sensitive feature, or tuples for several columns. None if groups are
        not needed.
    pooled_groups_ : dict of {group: int}
        Groups that `min_group_size` pooled, with their numbers of training examples.
    solver_ : str
        The solver in use, with "auto" resolved.
    n_iter_, n_oracle_calls_ : int
        Numbers of iterations and of LMO calls, including those for `dual_gap_`.
    history_ : dict of ndarray
        Progress at each check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap", "constraint_violation" and "method", the solver.
    n_features_in_ : int
        Number of features seen in `fit`. Defined only if the fitted estimator has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if the fitted estimator has them.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Calibrates probabilities.
    sklearn.model_selection.TunedThresholdClassifierCV : Tunes one threshold, for two
        classes.

    Notes
    -----
    **Guarantees for predictions.** Let C be the expected confusion matrix of the mixture
    on some examples, as given by `predict_proba`.

    - ``predict(X)`` is a deterministic function of the row. The rule is chosen by a hash
      of the row's values [2]_ as float32, in the columns seen in `fit`, matched by name
      for data frames. The group does not enter the hash. A row is therefore decided in
      the same way in every process and batch, dense or sparse, in single or double
      precision, and with its columns in another order or among additional ones.
    - If all rows differ, the confusion matrix of ``predict(X)`` deviates from C only as
      independent draws would, by the order of :math:`1/\sqrt{n}`. This holds even if many
      rows have equal probabilities, as in the leaves of a tree. Identical rows always get
      the same label, so with few distinct rows the deviation can be large. For this
      reason the hash uses all columns seen in `fit`, even those that `estimator` ignores.
    - ``predict(X, random_state=...)`` draws a rule for each row independently. Its
      expected confusion matrix is exactly C, even with identical rows, but the label of a
      row depends on the seed.
    - A constraint that holds in training, for what `confusion` counts, holds for
      predictions up to this sampling error, and for new examples up to the estimation
      error as well.

    A warning is issued if the mixture predicts a single class for all training examples.
    A ``ConvergenceWarning`` is issued if a solver stops before it is done. If the metric
    is neither convex nor a ratio, such as macro-F1, it may be done at a stationary point:
    then `dual_gap_` bounds the distance from the optimum, and may exceed `tol`.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", JMLR, 2024.
    .. [2] Cotter, Gupta, Narasimhan, "On making stochastic classifiers deterministic",
       NeurIPS 2019.
    .. [3] Angelopoulos, Bates, Candès, Jordan, Lei, "Learn then test: Calibrating
       predictive algorithms to achieve risk control", Annals of Applied Statistics, 2025.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.metrics import EqualOpportunity, h_mean_score
    >>> X, y = make_classification(
    ...     n_samples=1000, n_classes=3, n_informative=4, weights=[0.8, 0.15, 0.05],
    ...     class_sep=0.5, random_state=0)
    >>> model = ComplexMetricClassifier(metric="h_mean").fit(X, y)
    >>> model.dual_gap_ <= 1e-3
    True
    >>> print(f"{model.objective_:.2f}")
    0.54

    The most probable classes would never be the rarest one:

    >>> print(f"{h_mean_score(y, model.estimator_.predict(X)):.2f}")
    0.00

    Groups whose recalls may differ from one another by 0.02:

    >>> import numpy as np
    >>> group = np.where(X[:, 0] > 0, "old", "young")
    >>> model = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.02))
    >>> model = model.fit(X, y > 0, sensitive_features=group)
    >>> model.constraint_violation_ <= 0
    True
    >>> model.predict(X, sensitive_features=group).shape
    (1000,)

    A single rule, in words:

    >>> model.set_params(randomized=False).fit(X, y > 0, sensitive_features=group)
    ... # doctest: +ELLIPSIS
    ComplexMetricClassifier(...)
    >>> print(model.rule_)  # doctest: +ELLIPSIS
    g_mean with EqualOpportunity(slack=0.02):
      group old: True if p(True) > 0..., else False
      group young: True if p(True) > 0..., else False
    >>> model.dual_gap_ <= 0.01
    True

    The same by a rule that does not know the group:

    >>> model.set_params(group_blind=True).fit(X, y > 0, sensitive_features=group)
    ... # doctest: +ELLIPSIS
    ComplexMetricClassifier(...)
    >>> model.predict(X).shape
    (1000,)
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

    def _check_options(self):
        name, given = type(self).__name__, self.solver_options or {}
        table, others = self._option_table, self._options_of_solver()
        own = {key: given[key] for key in given if key not in others}
        check_options(name, own, table)
        _, solver = find_solver(self._options.solver, bool(self.constraints))
        refuse_unknown(f"{name} with {solver.CALLED}", others, table | solver.OPTIONS)
        solver.check_options(others)

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
