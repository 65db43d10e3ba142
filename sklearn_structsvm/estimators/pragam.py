"""PragamClassifier: accelerated gradients on the dual of hinge losses."""

from functools import partial

from sklearn_structsvm.estimators.batch import BATCH_CONSTRAINTS, BatchClassifier
from sklearn_structsvm.estimators.problem import STRUCTURE_CONSTRAINT, refuse_bounds
from sklearn_structsvm.risks import BinaryHinge
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.solvers.blocks.excessive_gap import run_excessive_gap
from sklearn_structsvm.structures import BinaryStructure


class PragamClassifier(BatchClassifier):
    """Support vector machine, of rows or chains and trees, by excessive gaps.

    Minimises over W, and for two classes over b ::

        1/2 ||W||² + C Σ_i s_i H_i(Wᵀx_i + b)

    for sample weights s_i and a hinge loss H_i: for two classes max(0, 1 - y z); for
    more max_c cost(y, c) + z_c - z_y; for an indicator of several labels the same maximum
    over all pairs of a label y that the example has and a label c that it has not; for
    chains and trees as in `BCFWClassifier`. By Nesterov's excessive gap technique, the
    gap falls as 1 / n_iter² where that of bundle methods falls as 1 / n_iter [1]_. What
    is reported is of the normalised form λ/2 ||W||² + (Σ_i s_i H_i) / Σ_i s_i with
    λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    loss : {"hinge", "slack_hinge"}, default="hinge"
        "slack_hinge": cost(y, c) multiplies (1 + z_c - z_y) instead of being the margin
        (one label per example). For structures see `SlackRescaledSSVM`.
    structure : "auto", str or Structure, default="auto"
        "auto" reads y: two classes, several classes, an indicator of labels to be
        ranked, or (where X holds one 2-D item per example) sequences of labels. Those,
        and a `ChainStructure` or `TreeStructure` that is named ("chain", "tree"), have a
        loss of their own, and a dual in the marginals of their edges, which is smoothed
        by an entropy so that sum-product solves each step. Other structures have no
        marginals.
    C : float, default=1.0
        Inverse strength of the regularization.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        What it costs to give a class (column) for the true one (row), in the order of
        `classes_`; for several labels the margin between a present label (row) and an
        absent one. None for 1 off the diagonal. Not for a structure, which has its own.
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
        Multiplies the weights of the examples of a class, or for chains and trees the
        costs of the positions whose true label it is.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=10000
        Iterations, each of about one and a half products X W and Xᵀ B, or for a structure
        of one pass over the examples as a rule.
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
        A row for each class or label; one row for two classes. For chains and trees w,
        of shape (d,).
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        For rows of X, not for chains and trees.
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
        Products Xᵀ B, of one dual point each; for a structure examples that were asked
        for their most violating output and their marginals.
    history_ : dict of ndarray
        A row per iteration: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    n_features_in_ : int
        Features of an example, or of a position of a sequence.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    SubLBFGSClassifier : Quasi-Newton steps.
    BMRMClassifier : Bundle methods.
    BCFWClassifier : Block-coordinate Frank-Wolfe: of chains and trees, by far the faster.

    Notes
    -----
    The dual point of rows has a number for each class of each example, and for each pair
    of labels where there are several: for many labels, that is much memory. That of
    chains and trees is known by its joint feature alone.

    The paper projects marginals onto their polytope, by an iterative method. Where the
    distance is a relative entropy, they are those of exponential families: exact, and
    consistent as they are.

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

    Sequences of labels:

    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> PragamClassifier(C=0.1, tol=0.05).fit(X, y).predict(X).shape
    (40,)
    """

    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        "structure": STRUCTURE_CONSTRAINT,
    }
    takes_dask = False
    takes_sequences = True

    def __init__(
        self,
        loss="hinge",
        *,
        structure="auto",
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
        self.structure = structure
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

    def fit(self, X, y, sample_weight=None):
        """Train on examples and their outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            Rows, or for chains and trees a sequence of n items, such as arrays or CSR
            matrices of shape (T_i, n_features).
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or sequence
            Class labels of any kind, an indicator, or one labeling per example.
        sample_weight : array-like of shape (n_samples,) or None
            Non-negative weights of the examples.

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, sample_weight)

    def _train_structure(self, problem, data, transaction):
        oracle = problem.make_oracle()
        if not oracle.has_marginals:
            raise TypeError(
                f"structure={type(problem.structure).__name__} has no marginals, which "
                "PragamClassifier needs: ChainStructure and TreeStructure have them, and "
                "for rows of X structure='auto' reads y. BCFWClassifier and "
                "BMRMClassifier take any structure."
            )
        refuse_bounds(problem.structure, type(self).__name__)
        solve = partial(
            run_excessive_gap,
            oracle,
            problem.weights,
            problem.lam(self.C),
            **self._limits(),
        )
        self._run(problem, data, transaction, solve, "Pragam")

    def _make_risk(self, problem, bias, **options):
        if isinstance(problem.structure, BinaryStructure) and bias:
            # The solver appends b to the weights, where the structure has the weight of
            # its constant feature: with a value of 1 they are the same.
            problem.structure.bias_ = 1.0
            bias = 0.0
        return super()._make_risk(problem, bias=bias, **options)
