"""ComplexMetricClassifier: any metric and constraint of the confusion matrix."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import ClassifierMixin

from sklearn_structsvm._utils.compat import HasMethods, Interval, StrOptions
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.lmo.base import LMO
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.confusion.rates import RateConstraint
from sklearn_structsvm.estimators.complex_metric.fitting import SOLVERS, TrainedMixture


class ComplexMetricClassifier(TrainedMixture):
    """Best classifier for any metric of the confusion matrix, under constraints on it.

    Minimises over randomised classifiers h ::

        ψ(C[h])   subject to   φ_q(C[h]) <= 0 for each constraint q

    where C[h]_aij is the share of the examples that are of group a, have label i and are
    predicted j; ψ is 1 minus a score such as the G-mean of the recalls, and the
    constraints are such as "the groups' recalls differ by at most 0.05" [1]_. The
    classifier of class probabilities inside is trained as it is; what is learned here is
    how to decide by its probabilities. For one matrix of costs L that is the plug-in
    rule, argmin_j Σ_i η_i(x) L_ij. Metrics that are no sum of costs need a mixture of
    such rules, with as many losses L: the solver finds both losses and mixture, each loss
    for a call of a linear minimisation oracle (LMO), and a bound that no classifier which
    decides by these probabilities can go below.

    The learned classifier is a randomised one: rule t decides with probability
    ``mixture_weights_[t]``. Where one rule is the best, as for sums of costs, it is
    deterministic.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Gives the class probabilities η, by `predict_proba`. Is cloned and fitted, unless
        it is a ``FrozenEstimator`` or ``cv="prefit"``. Its probabilities should mean what
        they say: see ``CalibratedClassifierCV``, which also makes probabilities of the
        scores of SVMs. It is given the labels as they are: for one that takes 0, 1, ...,
        k - 1 only, as XGBoost's does, encode `y` (``LabelEncoder``). None for logistic
        regression.
    metric : str, ConfusionMetric or rate, default="g_mean"
        The loss ψ: a name, such as "g_mean", "recall" or "micro_f1" (any key of
        ``sklearn_structsvm.metrics.METRICS``); or an object of
        :mod:`sklearn_structsvm.metrics`, or of a class of your own. The
        names of metrics of one label, such as "f1", stand for those of label 1 or True;
        for other labels use an object, ``FBeta(pos_label="fraud")`` or
        ``Recall(label="fraud")``.
    constraints : Constraint or sequence of Constraint, default=()
        All of them must hold.
    lmo : {"plugin", "weighted"} or LMO, default="plugin"
        What finds a classifier for a loss. "plugin": the rule above. "weighted":
        `estimator` is fitted anew for each loss, to examples weighted by their costs; it
        needs no probabilities and sees no groups. Or an object of your own, for which
        `estimator` is not used: see
        :class:`~sklearn_structsvm.confusion.lmo.LMO`.
    solver : {"auto", "column_generation", "frank_wolfe", "gda", "ellipsoid", \
"bisection"}, default="auto"
        With constraints the last four are SplitFW, ConGDA, ConEllipsoid and ConBisection
        of the paper. Frank-Wolfe is for smooth metrics, bisection for ratios of linear
        functions such as F-measures. "auto" is column generation, which is for all and
        takes the fewest calls.
    solver_options : dict or None, default=None
        More arguments of the solver's function, such as ``{"step": "line_search"}`` for
        Frank-Wolfe. An unknown name or a wrong value is an error that lists what there
        is, before any work.
    confusion : {"auto", "labels", "probabilities"}, default="auto"
        What C counts, for ``lmo="plugin"``. "labels": the labels of the examples. For
        two classes the best of all thresholds (of each group) is found for these; for
        more, or with `group_blind`, the rule above is only nearly the best.
        "probabilities": the class probabilities of the examples, as if they were right;
        the rule is the best one for any number of classes. "auto": labels for two
        classes; for more probabilities, which go half the way to the labels before, where
        these contradict them (see `label_factors_`). So the bound is true, of what is
        counted. Sample weights are numbers of examples there.
    group_blind : bool, default=False
        Whether to decide without the group, so that `sensitive_features` are needed in
        `fit` only. False: there is a rule for each group. True, for ``lmo="plugin"``: the
        probabilities are those of group and label together, P(a, i | x), and the rule for
        costs L is argmin_j Σ_a Σ_i P(a, i | x) L_aij, the best of all that see x alone.
        Constraints and metrics of groups mean what they do otherwise.
    group_estimator : classifier or None, default=None
        For ``group_blind=True``. None: `estimator` is fitted to the pairs (group, label),
        numbered a * n_classes + i for ``groups_[a]`` and ``classes_[i]``, and one that is
        fitted already must have been fitted to these. A classifier: it is fitted to the
        groups, `estimator` to the labels, and P(a, i | x) is the product of their
        probabilities, which is right where group and label are independent given x. It is
        fitted to the values of the sensitive feature, or to their places in ``groups_``
        where there are several columns.
    constraint_confidence : float or None, default=None
        Above 0 and below 1: constraints are to hold for new examples, with this
        probability over the draw of the training examples. Each is tightened by a bound
        on how far its rates may be off in groups of their size, for all thresholds at
        once, by the Dvoretzky-Kiefer-Wolfowitz inequality (see `constraint_bounds_`).
        Labels are counted then, and constraints must be on rates. That is proven for two
        classes, probabilities that are not of these examples (``cv="prefit"``) and groups
        whose shares stay; for more classes and for `group_blind` it is the same bound,
        and not proven.
    cv : int, splitter, iterable, "prefit" or None, default=None
        Where the probabilities come from that the mixture is chosen by. None: a fit to
        all examples gives those of the same examples, which is right for classifiers that
        hardly overfit, such as logistic regression with few features. Folds: fits to the
        rest of each fold give those of the fold, and for `predict` there is a fit to all.
        "prefit": `estimator` is fitted already, and `fit` should get other examples than
        it was fitted to. Folds are of no effect for other LMOs than "plugin".
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this, in units of ψ, and the constraints hold.
    max_iter : int, default=1000
        Iterations, with one call of the LMO each as a rule.
    max_time : float or None, default=None
        Seconds of the solver, at least one iteration of it. How far a fit gets in them is
        chance: the only thing here that keeps one from being repeated bit for bit.
    random_state : int, RandomState instance or None, default=None
        Seeds the hash that `predict` chooses a rule by: another seed divides the rows
        otherwise. None is a seed too, always the same. Nothing else is random here; the
        estimator and `predict` have a `random_state` of their own.
    n_jobs : int or None, default=None
        Folds at once, and threads of the LMO and of predictions.
    verbose : int, default=0
        Print a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the order of all rows and columns.
    mixture_weights_ : ndarray of shape (n_mixture,)
        Probabilities of the classifiers of the mixture, the largest first.
    loss_matrices_ : ndarray of shape (n_mixture, n_cells, n_classes, n_classes)
        The loss of each: [t, a, i, j] is what it costs rule t to predict j for label i in
        cell a.
    classifiers_ : list of length n_mixture
        The fitted classifiers; not for ``lmo="plugin"``.
    estimator_ : classifier
        The source of the probabilities; for ``lmo="plugin"`` only. With `group_blind` its
        classes are the numbers of the pairs (group, label); of two classifiers it has
        them as its `estimator_` and `group_estimator_`.
    label_factors_ : ndarray of shape (n_classes, n_classes) or None
        Where the labels contradict the probabilities of `estimator_`, at a level of 1 %,
        ``confusion="auto"`` multiplies these by it (and has them sum to 1), in training
        and in predictions: [b, i] is for class i where the rule of balanced costs
        predicts b. None where they are taken as they are, as with `group_blind`. For
        ``lmo="plugin"`` only.
    metric_ : ConfusionMetric
        ψ for these classes.
    pos_label_ : label or None
        The label that counts as positive for the metric, or else for the first constraint
        that singles one out; None where all labels count alike.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the mixture, expected over its draws, as shares of the
        training examples' labels (of the held-out ones, with `cv`).
    cell_confusions_ : ndarray of shape (n_cells, n_classes, n_classes)
        The same for each cell; they sum to `confusion_`. The cells are the groups. For
        a churn constraint each group is divided by the baseline's label, which varies
        fastest. There is one cell where groups are not needed.
    certified_confusions_ : ndarray of shape (n_cells, n_classes, n_classes)
        As counted by the solver; differs from `cell_confusions_` where that counts
        probabilities.
    objective_ : float
        ψ of `certified_confusions_`.
    dual_objective_ : float
        A lower bound of ψ over all classifiers that meet the constraints and decide by
        these probabilities (and by the group, where `groups_` is not None, but for
        `group_blind`).
    dual_gap_ : float
        How far the mixture may be from the best, at most: `objective_ - dual_objective_`.
        For "labels" of more than two classes, or with `group_blind`, it and
        `dual_objective_` are of the class probabilities instead: under these, no
        classifier that violates the constraints as little as the mixture does is better
        by more. inf for metrics that are neither convex nor made of ratios, and an
        estimate for other LMOs than "plugin".
    constraint_violation_ : float
        The largest violation of a constraint by `certified_confusions_`, in the
        constraint's own units, as a call of the constraint has it; not positive where all
        are met, -inf without constraints. What rounding makes of 0, as where rates are to
        be equal, is 0.
    threshold_ : float
        For two classes and one rule: ``classes_[1]`` is predicted where its probability
        is above it; -inf and inf where always and never, nan where below. An
        AttributeError says why there is none: more classes, a mixture of several rules,
        rules for groups, or costs that the rule depends on.
    thresholds_ : dict of {group: float}
        The same for each group, where there are `groups_`.
    cv_thresholds_ : ndarray of shape (n_folds,) or (n_folds, n_groups)
        With folds for `cv`, and where there is a threshold: those that the held-out part
        of each fold alone would lead to (on average, where that is a mixture). Their
        spread says how well the threshold is known.
    constraint_bounds_ : list of dict
        With `constraint_confidence`: for each constraint, by the group whose size tells
        most (None without groups), how far its conditions may be off on new examples.
        They were made stricter by that, or, where differences between groups have no more
        slack than that, as strict as can be, and a warning names the groups and the slack
        that could be asked for.
    groups_ : ndarray of shape (n_groups,) or None
        Groups that the classifier, or with `group_blind` the fit, tells apart: values of
        the sensitive feature, or tuples of them where there are several columns. None
        where it needs no groups.
    solver_ : str
        What solver="auto" stood for.
    n_iter_, n_oracle_calls_ : int
        Iterations, and calls of the LMO, those for `dual_gap_` included.
    history_ : dict of ndarray
        A row per check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "constraint_violation".
    n_features_in_ : int
        Where the fitted estimator has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where the fitted estimator has it.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Makes probabilities mean what they say.
    sklearn.model_selection.TunedThresholdClassifierCV : One threshold of two classes.

    Notes
    -----
    **What is guaranteed of predictions.** Let C be the confusion matrix of the mixture on
    some examples, `predict_proba` being its expectation for each.

    - ``predict(X)`` is a deterministic function of the row: the rule is chosen by a hash
      of its values [2]_ (and not of its group), as float32, in the columns that `fit`
      saw, of data frames by name. So a row is decided alike in every process, batch and
      format, dense or sparse, in single precision, with its columns in another order or
      beside others. Over rows that all differ, the confusion matrix is C but for what as
      many independent draws would leave, of the order of 1/√n; also where many of them
      have the same probabilities, as in the leaves of a tree. Rows that occur many times
      stay together: no hash can divide them, so that with few distinct rows it may be far
      from C. For the same reason all columns of `fit` count, those too that `estimator`
      ignores.
    - ``predict(X, random_state=...)`` draws a rule for each row independently: its
      expected confusion matrix is exactly C, repeated rows included, but a row may get
      another label with another seed.
    - A constraint that holds for C in training holds for predictions up to that sampling
      error, and on other examples up to that of estimation as well.

    Where the mixture predicts one class only for all training examples, a warning names
    the others. Convergence short of `tol` is a ``ConvergenceWarning``.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Tavker, Khurana, Netrapalli, Agarwal, "Consistent
       multiclass algorithms for complex metrics and constraints", JMLR, 2024.
    .. [2] Cotter, Gupta, Narasimhan, "On making stochastic classifiers deterministic",
       NeurIPS 2019.

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
    0.50

    The most probable classes would never be the rarest one:

    >>> print(f"{h_mean_score(y, model.estimator_.predict(X)):.2f}")
    0.00

    Groups whose recalls may differ from the overall one by 0.02:

    >>> import numpy as np
    >>> group = np.where(X[:, 0] > 0, "old", "young")
    >>> model = ComplexMetricClassifier(constraints=EqualOpportunity(slack=0.02))
    >>> model = model.fit(X, y > 0, sensitive_features=group)
    >>> model.constraint_violation_ <= 0
    True
    >>> model.predict(X, sensitive_features=group).shape
    (1000,)

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
    estimator_: ClassifierMixin
    label_factors_: np.ndarray | None
    metric_: ConfusionMetric
    pos_label_: object
    confusion_: np.ndarray
    cell_confusions_: np.ndarray
    certified_confusions_: np.ndarray
    objective_: float
    dual_objective_: float
    dual_gap_: float
    constraint_violation_: float
    constraint_bounds_: list[dict]
    groups_: np.ndarray | None
    cv_thresholds_: np.ndarray
    solver_: str
    n_iter_: int
    n_oracle_calls_: int
    history_: dict[str, np.ndarray]
    n_features_in_: int
    feature_names_in_: np.ndarray

    _parameter_constraints: dict = {
        # What it needs depends on `lmo` and `cv`.
        "estimator": [HasMethods(["fit"]), HasMethods(["predict_proba"]), None],
        "metric": [str, ConfusionMetric, RateConstraint],
        "constraints": [list, tuple, Constraint],
        "lmo": [StrOptions({"plugin", "weighted"}), LMO],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "solver_options": [dict, None],
        "confusion": [StrOptions({"auto", "labels", "probabilities"})],
        "group_blind": ["boolean"],
        "constraint_confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "group_estimator": [HasMethods(["fit"]), HasMethods(["predict_proba"]), None],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator=None,
        metric="g_mean",
        constraints=(),
        *,
        lmo="plugin",
        solver="auto",
        solver_options=None,
        confusion="auto",
        group_blind=False,
        group_estimator=None,
        constraint_confidence=None,
        cv=None,
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.metric = metric
        self.constraints = constraints
        self.lmo = lmo
        self.solver = solver
        self.solver_options = solver_options
        self.confusion = confusion
        self.group_blind = group_blind
        self.group_estimator = group_estimator
        self.constraint_confidence = constraint_confidence
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X,
        y,
        sample_weight=None,
        *,
        sensitive_features=None,
        costs=None,
        **fit_params,
    ):
        """Fit the class probabilities, and find the mixture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Or whatever the classifier takes.
        y : array-like of shape (n_samples,)
            Labels: strings, numbers or booleans.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples, in the confusion matrix and in the fit
            of `estimator`.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), \
data frame or None, default=None
            The group of each example: strings, numbers or booleans, none missing. With
            several columns the groups are the combinations that occur. Not used where
            neither the metric nor a constraint is of groups, but for `group_blind`.
        costs : array-like of shape (n_samples, n_classes) or \
(n_samples, n_classes, n_classes), default=None
            What predictions cost for each example, for ``metric="expected_cost"`` and
            bounds on it; else not used. Columns are in the order of the sorted labels.
            [r, i, j]: predicting j, if its label is i. This is known of new examples too,
            and rules depend on it: pass it to `predict`. [r, j]: predicting j, the label
            being what it is. This is known in training only, and rules see features only.
        **fit_params : dict
            Handed on to `fit` of `estimator`; with metadata routing, what it and `cv`
            ask for.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleConstraintError
            A ``ValueError``, where no classifier meets the constraints; it names the
            smallest violation that can be reached. The estimator stays as it was.
        ValueError
            Before any fit, for labels or groups that a constraint names and that are not
            there, groups that are needed and missing, a single class.
        """
        return self._fit_or_restore(
            X, y, sample_weight, sensitive_features, costs, fit_params
        )
