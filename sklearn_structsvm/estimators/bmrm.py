"""BMRMClassifier: bundle methods for hinge losses and for structures."""

from functools import partial

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm.estimators.batch import (
    BATCH_CONSTRAINTS,
    SAMPLE_LOSSES,
    BatchClassifier,
)
from sklearn_structsvm.estimators.problem import STRUCTURE_CONSTRAINT
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane


class BMRMClassifier(BatchClassifier):
    """Support vector machine, structured or not, by bundle methods.

    Minimises over w ::

        1/2 ||w||² + C Σ_i s_i H_i(w)

    for sample weights s_i and a hinge loss H_i: for two classes max(0, 1 - y ⟨w, x⟩); for
    more max_c cost(y, c) + ⟨w_c - w_y, x⟩; for an indicator of several labels the same
    maximum over all pairs of a label y that the example has and a label c that it has
    not; for a structure as in `BCFWClassifier`. Each iteration adds a cutting plane, a
    linear function below the sum of the losses, and minimises over all of them [1]_. With
    a line search [2]_ this is OCAS, for any of these losses; over a structure it is
    SVMstruct [3]_. What is reported is of the normalised form
    λ/2 ||w||² + (Σ_i s_i H_i(w)) / Σ_i s_i with λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        "auto" reads y: two classes, several classes, an indicator of labels to be
        ranked, or (where X holds one 2-D item per example) sequences of labels. A
        structure, named or read from sequences, is asked for its most violating outputs
        by the cutting planes of SVMstruct; it has a loss of its own. For the names see
        `BCFWClassifier`.
    loss : {"hinge", "slack_hinge", "f1", "jaccard", "zero_one", "break_even", \
            "precision_at_k", "recall_at_k", "roc_auc"} or ConfusionMetric, \
            default="hinge"
        "slack_hinge": cost(y, c) multiplies (1 + ⟨w_c - w_y, x⟩) instead of being the
        margin (one label per example). For structures see `SlackRescaledSSVM`.
        Or a loss of the whole sample, for two classes: "f1", "jaccard", "zero_one", or a
        metric such as ``FBeta(2.0)`` that is a ratio of linear functions of the confusion
        matrix, where ``classes_[1]`` counts if no `pos_label` is given; "break_even",
        "precision_at_k", "recall_at_k", of the k rows of the highest scores; "roc_auc".
        In their place in the formula stands C Σ_i s_i R(w), R a structural hinge over the
        labelings of all rows at once [4]_; see the guide.
    line_search : bool, default=True
        Whether to move to the minimum on the line to the planes' minimiser, and to take
        the next plane a little beyond. Of no effect for a structure.
    subproblem : {"qp", "line"}, default="qp"
        Minimise over all cutting planes, or only between the last solution and the new
        plane, which is cheaper a step and takes many more. Not for a structure.
    formulation : {"one-slack", "n-slack"}, default="one-slack"
        For a structure: planes of all examples together, or a set of outputs for each
        example.
    C : float, default=1.0
        Inverse strength of the regularization.
    k : int, float or None, default=None
        For "precision_at_k" and "recall_at_k": how many rows, or what share of them.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        What it costs to give a class (column) for the true one (row), in the order of
        `classes_`; for several labels the margin between a present label (row) and an
        absent one. None for 1 off the diagonal. Not for a structure, which has its own.
    fit_intercept : bool, default=True
        Whether there is an intercept. As in LinearSVC it is the weight of a constant
        feature, and regularized.
    intercept_scaling : float, default=1.0
        Value of that feature: the larger, the less the intercept is regularized.
    classes : array-like or None, default=None
        All labels, where those of y may be only a part, as in a fold of a
        cross-validation. None: those of y.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the examples of a class, or for chains and trees the
        costs of the positions whose true label it is.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=1000
        Iterations, of one plane each as a rule.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit. Not for a structure.
    n_jobs : int or None, default=None
        Threads, where the package was built with OpenMP.
    random_state : int, RandomState instance or None, default=None
        Orders the examples for ``formulation="n-slack"``.
    verbose : int, default=0
        Print a line per iteration.

    Attributes
    ----------
    coef_ : ndarray
        Of shape (1, n_features) for two classes, (n_classes, n_features) or
        (n_labels, n_features); for other than flat structures w, of shape (d,).
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        For rows of X, not for other than flat structures.
        For "roc_auc", "break_even" and losses of `k` rows, which know no intercept,
        a threshold that is chosen after training: for the fewest wrong labels, or for k
        positive ones.
    classes_ : ndarray
        The labels, for structures that have them.
    threshold_ : float
        For labels that are ranked: those are predicted whose score exceeds it. Chosen
        for the fewest wrong labels in training.
    structure_ : Structure
        How scores become predictions.
    dual_gap_ : float
        An upper bound on how far `objective_` is from the optimum, computed at `coef_`.
    objective_, dual_objective_ : float
        Of the normalised form, at `coef_`.
    n_iter_ : int
        Iterations.
    n_oracle_calls_ : int
        Evaluations of the risk with a subgradient; for a structure calls of its
        max-oracle, of which each such evaluation takes one per example.
    history_ : dict of ndarray
        A row per iteration: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    n_features_in_ : int
        Features of an example, or of a position of a sequence.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    SubLBFGSClassifier : Quasi-Newton steps first, and then stabilised bundle steps.
    BCFWClassifier : Block-coordinate Frank-Wolfe, for structures too.

    References
    ----------
    .. [1] Teo, Vishwanathan, Smola, Le, "Bundle methods for regularized risk
       minimization", JMLR 11, 2010.
    .. [2] Franc, Sonnenburg, "Optimized cutting plane algorithm for support vector
       machines", ICML 2008.
    .. [3] Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", Machine
       Learning 77, 2009.
    .. [4] Joachims, "A support vector method for multivariate performance measures",
       ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm import BMRMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BMRMClassifier().fit(X, y)
    >>> model.dual_gap_ <= 1e-3
    True

    Trained for the F-measure of a rare class:

    >>> from sklearn_structsvm.metrics import FBeta
    >>> rare = BMRMClassifier(loss=FBeta(pos_label=1)).fit(X, y == 2)
    >>> rare.dual_gap_ <= 1e-3
    True

    Sequences of labels:

    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> BMRMClassifier(C=0.1, tol=0.01).fit(X, y).predict(X).shape
    (40,)
    """

    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        **SAMPLE_LOSSES,
        "structure": STRUCTURE_CONSTRAINT,
        "line_search": ["boolean"],
        "subproblem": [StrOptions({"qp", "line"})],
        "formulation": [StrOptions({"one-slack", "n-slack"})],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
    }
    takes_sequences = True

    def __init__(
        self,
        structure="auto",
        *,
        loss="hinge",
        line_search=True,
        subproblem="qp",
        formulation="one-slack",
        C=1.0,
        k=None,
        label_costs=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.structure = structure
        self.loss = loss
        self.line_search = line_search
        self.subproblem = subproblem
        self.formulation = formulation
        self.C = C
        self.k = k
        self.label_costs = label_costs
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self, problem, risk):
        options = {"line_search": self.line_search, "subproblem": self.subproblem}
        return "BMRM", run_bmrm, options

    def fit(self, X, y, sample_weight=None):
        """Train on examples and their outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            Rows, or for other than flat structures a sequence of n items, such as
            arrays or CSR matrices of shape (T_i, n_features) for chains. Or, if y and
            sample_weight are too, a Dask collection chunked by rows.
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
        solve = partial(
            run_cutting_plane,
            problem.make_oracle(),
            problem.weights,
            problem.lam(self.C),
            form=self.formulation,
            rng=self._rng(),
            **self._limits(),
        )
        self._run(problem, data, transaction, solve, "Cutting planes")

    def _read_structure(self, X, y, classes):
        structure = super()._read_structure(X, y, classes)
        if structure.flat and self.formulation != "one-slack":
            raise ValueError(
                f"formulation={self.formulation!r} needs a structure to ask for outputs: "
                "name it, as in structure=MulticlassStructure()."
            )
        return structure

    def _for_rows(self):
        return [
            *super()._for_rows(),
            ("subproblem", self.subproblem != "qp", "all planes are minimised over"),
            ("warm_start", self.warm_start, "cutting planes start from nothing"),
        ]
