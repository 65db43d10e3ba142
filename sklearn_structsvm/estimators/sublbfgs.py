"""SubLBFGSClassifier: quasi-Newton methods for hinge losses and for L1 penalties."""

from functools import partial
from numbers import Integral, Real

from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm.distributed.blocks import ExactSteps
from sklearn_structsvm.distributed.dask_problem import DaskProblem
from sklearn_structsvm.estimators.batch import (
    BATCH_CONSTRAINTS,
    SAMPLE_LOSSES,
    BatchClassifier,
)
from sklearn_structsvm.estimators.problem import has_exact_steps, make_ascent
from sklearn_structsvm.solvers.batch.owlqn import run_owlqn
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs
from sklearn_structsvm.solvers.blocks.dual_start import DualStart

# The options of the solver's function, by penalty and solver.
SOLVERS: dict[str, dict[str, dict]] = {
    "l2": {
        "dual-hybrid": {"hybrid": True},
        "hybrid": {"hybrid": True},
        "sublbfgs": {"hybrid": False},
        "subbfgs": {"full_matrix": True},
    },
    "l1": {"owlqn": {"direction": "owlqn"}, "owlqn*": {"direction": "sub"}},
}


class SubLBFGSClassifier(BatchClassifier):
    """Linear support vector machine by a quasi-Newton method for nonsmooth functions.

    Minimises over W ::

        1/2 ||W||² + C Σ_i s_i H_i(W)

    for sample weights s_i and a hinge loss H_i of the scores Wᵀx_i: for two classes
    max(0, 1 - y ⟨w, x⟩); for more max_c cost(y, c) + ⟨w_c - w_y, x⟩; for an indicator of
    several labels the same maximum over all pairs of a label y that the example has and a
    label c that it has not. Or, with ``loss="logistic"`` and ``penalty="l1"``, ::

        ||w||₁ + C Σ_i s_i ln(1 + exp(-y_i ⟨w, x_i⟩)).

    Each step costs about one product X W and one Xᵀ B [1]_. What is reported is of the
    form normalised by C Σ_i s_i, where the penalty has the factor λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    loss : {"hinge", "slack_hinge", "logistic", "f1", "jaccard", "zero_one", \
            "break_even", "precision_at_k", "recall_at_k", "roc_auc"} or \
            ConfusionMetric, default="hinge"
        "slack_hinge": cost(y, c) multiplies (1 + ⟨w_c - w_y, x⟩) instead of being the
        margin (one label per example). "logistic": two classes, with ``penalty="l1"``.
        Or a loss of the whole sample, for two classes: "f1", "jaccard", "zero_one", or a
        metric such as ``FBeta(2.0)`` that is a ratio of linear functions of the confusion
        matrix, where ``classes_[1]`` counts if no `pos_label` is given; "break_even",
        "precision_at_k", "recall_at_k", of the k rows of the highest scores; "roc_auc".
        In their place in the formula stands C Σ_i s_i R(w), R a structural hinge over the
        labelings of all rows at once; see the guide.
    penalty : {"l2", "l1"}, default="l2"
        "l1" is for the logistic loss.
    solver : {"auto", "dual-hybrid", "hybrid", "sublbfgs", "subbfgs", "owlqn", \
            "owlqn*"}, default="auto"
        "sublbfgs" keeps the last `buffer` steps, "subbfgs" a matrix of the squared number
        of weights, which only few weights allow. "hybrid" begins as "sublbfgs" and goes
        over to bundle steps with a line search where that becomes slow, which closes the
        gap sooner. "dual-hybrid" makes passes of coordinate ascent in the dual before, as
        BCFWClassifier does, as long as these are fast, and keeps what is known from them;
        it is for one label per example. For ``penalty="l1"``:
        OWL-QN, or OWL-QN* with the direction finding of [1]_. "auto": the first of
        "dual-hybrid", "hybrid" and "owlqn" that is for the problem.
    C : float, default=1.0
        Inverse strength of the regularization.
    k : int, float or None, default=None
        For "precision_at_k" and "recall_at_k": how many rows, or what share of them.
    line_search : {"exact", "wolfe"}, default="exact"
        Of the quasi-Newton steps of the hinge losses.
    buffer : int, default=15
        Steps that the estimate of the curvature is made of.
    direction_tol : float, default=1e-5
        Accuracy of direction finding.
    max_directions : int, default=20
        Directions tried in one step.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        What it costs to give a class (column) for the true one (row), in the order of
        `classes_`; for several labels the margin between a present label (row) and an
        absent one. None for 1 off the diagonal.
    fit_intercept : bool, default=True
        Whether there is an intercept. As in LinearSVC it is the weight of a constant
        feature, and regularized.
    intercept_scaling : float, default=1.0
        Value of that feature: the larger, the less the intercept is regularized.
    classes : array-like or None, default=None
        All labels, where those of y may be only a part, as in a fold of a
        cross-validation. None: those of y.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the examples of a class.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=1000
        Steps.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit, and not in the dual.
    n_jobs : int or None, default=None
        Threads, where the package was built with OpenMP. The result is the same for any
        number of them. Passes in the dual are one thread's work: with many cores and
        dense rows, "hybrid" may take less time.
    verbose : int, default=0
        Print a line per check of the gap.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        A row for each class or label; one row for two classes.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        For "roc_auc", "break_even" and losses of `k` rows, which know no intercept,
        a threshold that is chosen after training: for the fewest wrong labels, or for k
        positive ones.
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
        Steps, and passes of the start in the dual.
    n_oracle_calls_ : int
        Evaluations of the risk with a subgradient, and those passes.
    history_ : dict of ndarray
        What the gap checks saw: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    BMRMClassifier : Bundle methods, for structures too.
    PragamClassifier : An accelerated gradient method for the dual.

    References
    ----------
    .. [1] Yu, Vishwanathan, Günter, Schraudolph, "A quasi-Newton approach to nonsmooth
       convex optimization problems in machine learning", JMLR 11, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm import SubLBFGSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SubLBFGSClassifier().fit(X, y)
    >>> model.dual_gap_ <= 1e-3
    True
    >>> model.coef_.shape
    (3, 4)
    """

    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        **SAMPLE_LOSSES,
        "loss": [StrOptions({"logistic"}), *SAMPLE_LOSSES["loss"]],
        "penalty": [StrOptions(set(SOLVERS))],
        "solver": [StrOptions({"auto", *SOLVERS["l2"], *SOLVERS["l1"]})],
        "line_search": [StrOptions({"exact", "wolfe"})],
        "buffer": [Interval(Integral, 1, None, closed="left")],
        "direction_tol": [Interval(Real, 0, None, closed="left")],
        "max_directions": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        loss="hinge",
        *,
        penalty="l2",
        solver="auto",
        C=1.0,
        k=None,
        line_search="exact",
        buffer=15,
        direction_tol=1e-5,
        max_directions=20,
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
        verbose=0,
    ):
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.C = C
        self.k = k
        self.line_search = line_search
        self.buffer = buffer
        self.direction_tol = direction_tol
        self.max_directions = max_directions
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
        self.verbose = verbose

    def _solver(self, problem, risk):
        solver = self._chosen_solver(problem)
        options = {
            "buffer": self.buffer,
            "direction_tol": self.direction_tol,
            "max_directions": self.max_directions,
        }
        options |= SOLVERS[self.penalty][solver]
        if self.penalty == "l1":
            return "OWL-QN", run_owlqn, options
        options["line_search"] = self.line_search
        if solver == "dual-hybrid":
            ascent = self._make_ascent(problem, problem.lam(self.C))
            options["make_start"] = partial(DualStart, ascent)
            options["n_threads"] = getattr(risk, "n_threads", 1)
        return "subBFGS", run_sublbfgs, options

    def _make_ascent(self, problem, lam):
        if isinstance(problem, DaskProblem):
            return problem.make_iterate(lam, ExactSteps(make_ascent), 0)
        return make_ascent(problem, lam)

    def _chosen_solver(self, problem):
        lacks_start = self._lacks_dual_start(problem)
        if self.solver == "dual-hybrid" and lacks_start:
            raise ValueError(
                f"solver='dual-hybrid' is not for {lacks_start}: use solver='hybrid'."
            )
        if self.solver != "auto":
            return self.solver
        if self.penalty == "l1":
            return "owlqn"
        return "hybrid" if lacks_start else "dual-hybrid"

    def _lacks_dual_start(self, problem):
        """Why there is no dual ascent for the problem; empty where there is."""
        if self.loss != "hinge":
            return f"loss={self.loss!r}"
        if not has_exact_steps(problem.structure):
            return "several labels per example"
        return ""

    def _doubt(self, result):
        if self.solver in ("sublbfgs", "subbfgs"):
            return (
                "The planes that quasi-Newton steps leave can bound the optimum loosely: "
                "solver='hybrid' closes the gap."
            )
        if self.penalty == "l1" and result.status == "stalled":
            return (
                "That is rounding, to which the bound, made of gradients, is more "
                "sensitive than the objective: use a larger tol."
            )
        return ""

    def _check_combination(self):
        super()._check_combination()
        if (self.loss == "logistic") != (self.penalty == "l1"):
            raise ValueError(
                "loss='logistic' and penalty='l1' go together, and hinge losses with "
                f"penalty='l2'; got loss={self.loss!r}, penalty={self.penalty!r}."
            )
        if self.solver != "auto" and self.solver not in SOLVERS[self.penalty]:
            known = ", ".join(repr(name) for name in SOLVERS[self.penalty])
            raise ValueError(
                f"penalty={self.penalty!r} is for solver='auto', {known}; "
                f"got solver={self.solver!r}."
            )
        if self.penalty == "l1" and self.line_search != "exact":
            raise ValueError(
                f"line_search={self.line_search!r} is for penalty='l2'; OWL-QN has a "
                "line search of its own."
            )
        if self.loss == "logistic" and self.label_costs is not None:
            raise ValueError(
                "label_costs has no meaning for loss='logistic'; use class_weight."
            )
