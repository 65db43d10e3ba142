"""Linear classifiers trained by quasi-Newton methods for nonsmooth functions."""

from functools import partial
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.estimators.batch import (
    BATCH_CONSTRAINTS,
    BATCH_NEEDS,
    SAMPLE_LOSSES,
    BatchClassifier,
)
from sklearn_structsvm.estimators.batch_losses import L1_LOSSES, LOSSES, loss_of
from sklearn_structsvm.estimators.constraints import COUNT
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.named_structures import has_exact_steps
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.estimators.remedies import CUTTING_PLANES
from sklearn_structsvm.estimators.steps import ExactSteps
from sklearn_structsvm.solvers.batch.newton import run_newton
from sklearn_structsvm.solvers.batch.owlqn import run_owlqn
from sklearn_structsvm.solvers.batch.proximal_newton import run_proximal_newton
from sklearn_structsvm.solvers.batch.sublbfgs import run_sublbfgs
from sklearn_structsvm.solvers.blocks.dual_start import DualStart

# The options of the solver's function, by penalty and solver.
SOLVER_OPTIONS: dict[str, dict[str, dict]] = {
    "l2": {
        "dual-hybrid": {"hybrid": True},
        "hybrid": {"hybrid": True},
        "sublbfgs": {"hybrid": False},
        "subbfgs": {"full_matrix": True},
        "newton": {},
    },
    "l1": {
        "newton": {},
        "owlqn": {"direction": "owlqn"},
        "owlqn*": {"direction": "sub"},
    },
}


ORTHANT = ("owlqn", "owlqn*")
_SMOOTH = tuple(k for k in LOSSES if LOSSES[k].is_smooth)
_NOT_SMOOTH = (*(k for k in LOSSES if not LOSSES[k].is_smooth), ConfusionMetric)


class SubLBFGSClassifier(BatchClassifier):
    r"""Fast linear classifier of rows, by quasi-Newton, bundle and dual steps.

    For hinge, squared hinge and logistic losses, with L2 or L1 penalty, and for metrics
    of the whole sample such as the F1:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm import SubLBFGSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SubLBFGSClassifier(C=1.0).fit(X, y)
    >>> model.coef_.shape, model.dual_gap_ <= 1e-3
    ((3, 4), True)

    `predict` returns the class with the highest score. With an indicator matrix as y, it
    returns the labels whose scores are above `threshold_`.

    Read more in the :ref:`User Guide <guide-batch>`.

    Parameters
    ----------
    loss : str or ConfusionMetric, default="hinge"
        The loss function.

        - "hinge" is the hinge loss above.
        - "slack_hinge" multiplies the cost L(y, c) by the violation 1 + ⟨w_c - w_y, x⟩
          rather than adding it to the score (one label per example).
        - "squared_hinge" is the default of `LinearSVC` (one label per example).
        - "logistic" is for two classes, with ``penalty="l1"``.
        - Multivariate losses, defined on the whole sample, for two classes: "f1",
          "jaccard", "zero_one", "break_even", "precision_at_k" and "recall_at_k" (of the
          k rows with the highest scores), "roc_auc", or a metric such as ``FBeta(2.0)``
          that is a ratio of linear functions of the confusion matrix. The positive class
          is ``classes_[1]`` unless the metric has a `pos_label`.

        For a multivariate loss the second term of the objective is C Σ_i s_i R(w), where
        R is a structural hinge loss over the labelings of the whole sample. See the user
        guide.
    penalty : {"l2", "l1"}, default="l2"
        The penalty. "l1" sets many coefficients to zero. It is for the losses "hinge"
        (two classes), "squared_hinge" and "logistic".
    solver : str, default="auto"
        The optimization algorithm.

        - "sublbfgs" estimates the curvature from the last `buffer` steps.
        - "subbfgs" keeps a full matrix, so it is only for few weights.
        - "hybrid" starts as "sublbfgs", and switches to bundle steps with a line search
          once progress becomes slow. It closes the duality gap sooner.
        - "dual-hybrid" first makes passes of dual coordinate ascent, as `BCFWClassifier`
          does, for as long as these are fast, and reuses what they found. It is for one
          label per example.
        - "newton" takes Newton steps by conjugate gradients. It is for the squared hinge
          and for ``penalty="l1"``, where steps are among the coefficients that are not
          zero. The hinge is smoothed for them, by the method of multipliers. It is for
          data in memory.
        - "owlqn" and "owlqn*" are for smooth losses with ``penalty="l1"``: OWL-QN, and
          OWL-QN* with the direction finding of [1]_.
        - "auto" is "dual-hybrid" for the hinge with one label per example, "hybrid" for
          other losses that are not smooth, and "newton" for the squared hinge and for
          ``penalty="l1"``. It is "owlqn" for the logistic loss with more features than
          examples and, on Dask collections, "sublbfgs" for the squared hinge or "owlqn"
          with ``penalty="l1"``.
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization.
    k : int, float or None, default=None
        For "precision_at_k" and "recall_at_k": the number of rows, or their fraction.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        Cost of predicting a class (column) for a true class (row), in the order of
        `classes_`. For several labels, the required margin between a present label (row)
        and an absent one (column). None means 1 off the diagonal.
    fit_intercept : bool, default=True
        Whether to fit an intercept. As in `LinearSVC`, the intercept is the weight of a
        constant feature, so it is regularized.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of steps.
    warm_start : bool, default=False
        Whether to start from the coefficients of the previous fit, without passes in the
        dual.
    n_jobs : int or None, default=None
        Number of threads, if the package was built with OpenMP. The result does not
        depend on it. Passes in the dual use one thread: with many cores and dense rows,
        "hybrid" may be faster.
    verbose : int, default=0
        If nonzero, print one line per gap check.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        line_search : {"exact", "wolfe"}, default="exact"
            Line search of the quasi-Newton steps. Smooth losses always use "wolfe".
        buffer : int, default=15
            Number of recent steps used to estimate the curvature. Not for "subbfgs" and
            "newton".
        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercept less.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, with one row per class or label. Two classes share one row.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Intercepts. The losses "roc_auc", "break_even", "precision_at_k" and "recall_at_k"
        do not depend on an intercept. For them it is set after training, to minimize the
        number of wrong labels or to predict k positives.
    classes_ : ndarray
        Class labels.
    threshold_ : float
        For several labels: labels whose score exceeds the threshold are predicted. It
        minimizes the number of wrong labels in training.
    structure_ : Structure
        The fitted structure, which turns scores into predictions.
    dual_gap_ : float
        Duality gap at `coef_`: an upper bound on the suboptimality of `objective_`.
    objective_, dual_objective_ : float
        Normalized objective at `coef_`, and a lower bound on its minimum.
    n_iter_ : int
        Number of steps, including passes in the dual.
    n_oracle_calls_ : int
        Number of evaluations of the risk and its subgradient, including passes in the
        dual.
    history_ : dict of ndarray
        Progress at each gap check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method": "blocks" or "accelerated" (exact steps
        on the dual), "sublbfgs", "planes" (bundle steps), "newton" or "owlqn" made the
        last pass.
    solver_ : str
        The solver in use, with "auto" resolved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    BMRMClassifier : Bundle methods, for structures too.
    PragamClassifier : An accelerated gradient method for the dual.

    Notes
    -----
    The weights W solve

    .. math::

        \min_W \; \frac{1}{2} \|W\|^2 + C \sum_i s_i H_i(W)

    for sample weights :math:`s_i` and a loss :math:`H_i`. The hinge loss is the default:

    - two classes, :math:`y_i = \pm 1`: :math:`\max(0, 1 - y_i \langle w, x_i \rangle)`;
    - several classes: :math:`\max_c \; L(y_i, c) + \langle w_c - w_{y_i}, x_i \rangle`,
      where :math:`L` is given by `label_costs`;
    - several labels: the same maximum over all pairs of a label y that the example has
      and a label c that it does not have (label ranking).

    With ``loss="squared_hinge"`` it is :math:`\max(0, 1 - y_i \langle w, x_i \rangle)^2`
    for two classes. For several classes it is the sum of these losses of all classes,
    each against the rest: W has the weights of as many independent problems.

    With ``penalty="l1"`` the problem is

    .. math::

        \min_W \; \|W\|_1 + C \sum_i s_i H_i(W)

    for the squared hinge or, for two classes, the hinge or the logistic loss
    :math:`\log(1 + \exp(-y_i \langle w, x_i \rangle))`.

    Each step costs about one product X W and one product Xᵀ B [1]_. Results are reported
    for the objective divided by :math:`C \sum_i s_i`, in which the penalty has the factor
    :math:`\lambda = 1 / (C \sum_i s_i)`.

    References
    ----------
    .. [1] Yu, Vishwanathan, Günter, Schraudolph, "A quasi-Newton approach to nonsmooth
       convex optimization problems in machine learning", JMLR 11, 2010.
    """

    solver_: str

    _needs: ClassVar[dict[str, list[Need]]] = {
        **BATCH_NEEDS,
        "loss": [Need(("logistic",), "penalty", ("l1",))],
        "penalty": [Need(("l1",), "loss", tuple(L1_LOSSES))],
        "solver": [
            Need(("dual-hybrid", "hybrid", "sublbfgs", "subbfgs"), "penalty", ("l2",)),
            Need(ORTHANT, "penalty", ("l1",)),
            Need(("dual-hybrid", "hybrid"), "loss", _NOT_SMOOTH, "Use solver='newton'."),
            Need(ORTHANT, "loss", _SMOOTH, "Use solver='newton'."),
            Need(("newton",), "loss", _SMOOTH, given={"penalty": "l2"}),
        ],
        "line_search": [
            Need(None, "penalty", ("l2",), "OWL-QN has a line search of its own.")
        ],
        "buffer": [
            Need(None, "solver", ("auto", "dual-hybrid", "hybrid", "sublbfgs", *ORTHANT)),
            # For these, "auto" can take Newton's method, which has no buffer.
            Need(None, "solver", ORTHANT, given={"penalty": "l1"}),
            Need(
                None,
                "solver",
                ("sublbfgs",),
                given={"penalty": "l2", "loss": "squared_hinge"},
            ),
        ],
    }
    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        **SAMPLE_LOSSES,
        "loss": [StrOptions({"squared_hinge", "logistic"}), *SAMPLE_LOSSES["loss"]],
        "penalty": [StrOptions(set(SOLVER_OPTIONS))],
        "solver": [StrOptions({"auto", *SOLVER_OPTIONS["l2"], *SOLVER_OPTIONS["l1"]})],
        "warm_start": ["boolean"],
    }
    _option_table: ClassVar = {
        **BatchClassifier._option_table,
        "line_search": Option("exact", [StrOptions({"exact", "wolfe"})]),
        "buffer": Option(15, COUNT),
    }

    def __init__(
        self,
        loss: Literal[
            "hinge",
            "slack_hinge",
            "squared_hinge",
            "logistic",
            "f1",
            "jaccard",
            "zero_one",
            "break_even",
            "precision_at_k",
            "recall_at_k",
            "roc_auc",
        ]
        | ConfusionMetric = "hinge",
        *,
        penalty: Literal["l2", "l1"] = "l2",
        solver: Literal[
            "auto",
            "dual-hybrid",
            "hybrid",
            "sublbfgs",
            "subbfgs",
            "newton",
            "owlqn",
            "owlqn*",
        ] = "auto",
        C: float = 1.0,
        k: int | float | None = None,
        label_costs: ArrayLike | None = None,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.C = C
        self.k = k
        self.label_costs = label_costs
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver_options = solver_options

    def _risk_method(self, problem, options):
        risk, lam = problem.risk, problem.lam(self.C)
        solver = self._resolved_solver(problem)
        resolved = {"solver_": solver}
        if solver == "newton":
            if self.penalty == "l1":
                solve = partial(run_proximal_newton, risk, lam, 1.0, **options)
            else:
                solve = partial(run_newton, risk, lam, **options)
            return Method("Newton's method", solve, resolved=resolved)
        options |= {
            "buffer": self._options.buffer,
            **SOLVER_OPTIONS[self.penalty][solver],
        }
        if self.penalty == "l1":
            solve = partial(run_owlqn, risk, lam, **options)
            return Method("OWL-QN", solve, resolved=resolved)
        options["line_search"] = "wolfe" if risk.smooth else self._options.line_search
        if solver == "dual-hybrid":
            ascent, _ = problem.make_iterate(lam, ExactSteps())
            options["make_start"] = partial(DualStart, ascent)
            options["n_threads"] = risk.n_threads
        solve = partial(run_sublbfgs, risk, lam, **options)
        return Method("subBFGS", solve, resolved=resolved)

    def _resolved_solver(self, problem):
        """The resolved solver."""
        lacks_start = self._lacks_dual_start(problem)
        if self.solver == "dual-hybrid" and lacks_start:
            raise ValueError(
                f"solver='dual-hybrid' does not support {lacks_start}. Use "
                "solver='hybrid'."
            )
        if self.solver == "newton" and problem.is_remote:
            raise ValueError(
                "solver='newton' needs data in memory. For Dask collections use "
                "solver='auto'."
            )
        if self.solver != "auto":
            return self.solver
        if self.penalty == "l1":
            if problem.is_remote:
                return "owlqn"
            # With more features than rows, models of many weights take longer than the
            # hundreds of steps that they save.
            is_tall = problem.structure.n_features_in_ <= len(problem.weights)
            return "newton" if self.loss != "logistic" or is_tall else "owlqn"
        if loss_of(self).is_smooth:
            return "sublbfgs" if problem.is_remote else "newton"
        return "hybrid" if lacks_start else "dual-hybrid"

    def _check_dask(self):
        super()._check_dask()
        if self.penalty == "l1" and self.loss == "hinge":
            raise TypeError(
                "loss='hinge' with penalty='l1' needs data in memory. For Dask "
                "collections use loss='squared_hinge' or penalty='l2'."
            )

    def _another_way(self, problem):
        if self.penalty == "l1":
            is_newton = self._resolved_solver(problem) == "newton"
            return "" if is_newton or problem.is_remote else "solver='newton'"
        if loss_of(self).is_smooth:
            slow = self.solver in ("sublbfgs", "subbfgs") and not problem.is_remote
            return "solver='newton'" if slow else ""
        if self.solver in ("sublbfgs", "subbfgs"):
            # Its `_convergence_hint` says so.
            return ""
        return f"BMRMClassifier, {CUTTING_PLANES}"

    def _lacks_dual_start(self, problem):
        """The reason why dual ascent does not apply, or ''."""
        if self.loss != "hinge":
            return f"loss={self.loss!r}"
        if not has_exact_steps(problem.structure):
            return "several labels per example"
        return ""

    def _convergence_hint(self, problem, result):
        is_smooth = loss_of(self).is_smooth
        if self.solver in ("sublbfgs", "subbfgs") and not is_smooth:
            return (
                "The planes that quasi-Newton steps leave may be a loose bound on the "
                "optimum: solver='hybrid' closes the gap."
            )
        return ""
