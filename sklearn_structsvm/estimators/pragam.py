"""PragamClassifier: accelerated gradients on the dual of hinge losses."""

from sklearn_structsvm.estimators.batch import BATCH_CONSTRAINTS, BatchClassifier
from sklearn_structsvm.risks import BinaryHinge
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.structures import BinaryStructure


class PragamClassifier(BatchClassifier):
    """Linear support vector machine by Nesterov's excessive gap technique.

    Minimises over W, and for two classes over b ::

        1/2 ||W||² + C Σ_i s_i H_i(Wᵀx_i + b)

    for sample weights s_i and a hinge loss H_i: for two classes max(0, 1 - y z); for
    more max_c cost(y, c) + z_c - z_y; for an indicator of several labels the same maximum
    over all pairs of a label y that the example has and a label c that it has not. The
    gap falls as 1 / n_iter² where that of bundle methods falls as 1 / n_iter [1]_. What
    is reported is of the normalised form λ/2 ||W||² + (Σ_i s_i H_i) / Σ_i s_i with
    λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    loss : {"hinge", "slack_hinge"}, default="hinge"
        "slack_hinge": cost(y, c) multiplies (1 + z_c - z_y) instead of being the margin
        (one label per example).
    C : float, default=1.0
        Inverse strength of the regularization.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        What it costs to give a class (column) for the true one (row), in the order of
        `classes_`; for several labels the margin between a present label (row) and an
        absent one. None for 1 off the diagonal.
    fit_intercept : bool, default=True
        Whether there is an intercept. For two classes it is b, and not regularized
        (Pragam-b): there the problem is that of `sklearn.svm.SVC`, and not the one of
        LinearSVC and the other estimators here, whose objective is never less. For more
        classes, and for several labels, it is the weight of a constant feature, as it is
        for them.
    intercept_scaling : float, default=1.0
        Value of that feature: the larger, the less the intercepts are regularized. Of no
        effect for two classes.
    classes : array-like or None, default=None
        All labels, where those of y may be only a part, as in a fold of a
        cross-validation. None: those of y.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the examples of a class.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=10000
        Iterations, each of about one and a half products X W and Xᵀ B.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    n_jobs : int or None, default=None
        Threads, where the package was built with OpenMP.
    verbose : int, default=0
        Print a line per iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        A row for each class or label; one row for two classes.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
    classes_ : ndarray
        The labels.
    threshold_ : float
        For several labels: those are predicted whose score exceeds it. Chosen for the
        fewest wrong labels in training.
    structure_ : Structure
        How scores become predictions.
    dual_gap_ : float
        An upper bound on how far `objective_` is from the optimum, computed at `coef_`.
    objective_, dual_objective_ : float
        Of the normalised form, at `coef_`.
    n_iter_ : int
        Iterations.
    n_oracle_calls_ : int
        Products Xᵀ B, of one dual point each.
    history_ : dict of ndarray
        A row per iteration: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    SubLBFGSClassifier : Quasi-Newton steps.
    BMRMClassifier : Bundle methods.

    Notes
    -----
    The dual point has a number for each class of each example, and for each pair of
    labels where there are several: for many labels, that is much memory.

    References
    ----------
    .. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
       SVMs", 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import PragamClassifier
    >>> X, y = make_classification(random_state=0)
    >>> model = PragamClassifier(C=0.1).fit(X, y)
    >>> model.dual_gap_ <= 1e-3
    True
    """

    _parameter_constraints: dict = BATCH_CONSTRAINTS
    takes_dask = False

    def __init__(
        self,
        loss="hinge",
        *,
        C=1.0,
        label_costs=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        tol=1e-3,
        max_iter=10_000,
        max_time=None,
        n_jobs=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.label_costs = label_costs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _solver(self, problem, risk):
        frees_intercept = self.fit_intercept and isinstance(risk, BinaryHinge)
        return "Pragam", run_pragam, {"fit_intercept": frees_intercept}

    def _make_risk(self, problem, bias, **options):
        if isinstance(problem.structure, BinaryStructure) and bias:
            # The solver appends b to the weights, where the structure has the weight of
            # its constant feature: with a value of 1 they are the same.
            problem.structure.bias_ = 1.0
            bias = 0.0
        return super()._make_risk(problem, bias=bias, **options)
