"""Support vector machines trained by bundle methods."""

from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.confusion.metric import ConfusionMetric
from sklearn_structsvm.estimators.batch import (
    BATCH_CONSTRAINTS,
    BATCH_NEEDS,
    RISK_OPTIONS,
    SAMPLE_LOSSES,
    BatchClassifier,
)
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.named_structures import (
    STRUCTURE_CONSTRAINT,
    StructureName,
)
from sklearn_structsvm.estimators.weight_bounds import refuse_bounds
from sklearn_structsvm.solvers.batch.bmrm import run_bmrm
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.structures import Structure


class BMRMClassifier(BatchClassifier):
    r"""Linear or structured classifier, trained by cutting planes (bundle method).

    For hinge losses of rows, for metrics of the whole sample such as the F1, and for any
    structure, where it is the method of SVMstruct:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn_structsvm import BMRMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> BMRMClassifier(loss="f1").fit(X, y == 2).dual_gap_ <= 1e-3
    True

    `predict` returns the class, or the structured output, with the highest score.

    Read more in the :ref:`User Guide <guide-batch>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        The structure to predict. "auto" infers it from the data: two classes, several
        classes, a label indicator matrix whose labels are ranked or, if X holds one 2-D
        array per example, label sequences. Structures that are named, or inferred from
        sequences, have a loss of their own, and are trained with the cutting planes of
        SVMstruct. See `BCFWClassifier` for the names.
    loss : str or ConfusionMetric, default="hinge"
        The loss function.

        - "hinge" is the loss above.
        - "slack_hinge" multiplies the cost L(y, c) by the violation 1 + ⟨w_c - w_y, x⟩
          rather than adding it to the score (one label per example). For structures see
          `SlackRescaledSSVM`.
        - Multivariate losses, defined on the whole sample, for two classes: "f1",
          "jaccard", "zero_one", "break_even", "precision_at_k" and "recall_at_k" (of the
          k rows with the highest scores), "roc_auc", or a metric such as ``FBeta(2.0)``
          that is a ratio of linear functions of the confusion matrix. The positive class
          is ``classes_[1]`` unless the metric has a `pos_label`.

        For a multivariate loss the second term of the objective is C Σ_i s_i R(w), where
        R is a structural hinge loss over the labelings of the whole sample [4]_. See the
        user guide.
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization.
    k : int, float or None, default=None
        For "precision_at_k" and "recall_at_k": the number of rows, or their fraction.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        Cost of predicting a class (column) for a true class (row), in the order of
        `classes_`. For several labels, the required margin between a present label (row)
        and an absent one (column). None means 1 off the diagonal. Not for structures,
        which have their own loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept (flat structures only). As in `LinearSVC`, the
        intercept is the weight of a constant feature, so it is regularized.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class or,
        for chains and trees, the costs of the positions with that true label.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of iterations. Each usually adds one cutting plane.
    warm_start : bool, default=False
        Whether to start from the coefficients of the previous fit. Not for structures.
    n_jobs : int or None, default=None
        Number of threads, if the package was built with OpenMP.
    random_state : int, RandomState instance or None, default=None
        Controls the order of the examples for ``formulation="n-slack"``.
    verbose : int, default=0
        If nonzero, print one line per iteration.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        line_search : bool, default=True
            Whether to search on the line toward the minimizer of the cutting planes, move
            to the minimum, and take the next plane a little beyond it. Not for
            structures.
        subproblem : {"qp", "line"}, default="qp"
            Whether to minimize over all cutting planes, or only between the last solution
            and the new plane. "line" is cheaper per step and needs many more steps. Not
            for structures.
        formulation : {"one-slack", "n-slack"}, default="one-slack"
            For structures: cutting planes of all examples together, or one set of outputs
            per example.
        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercept less.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.

    Attributes
    ----------
    coef_ : ndarray
        Weight vector. Its shape is (1, n_features), (n_classes, n_features) or
        (n_labels, n_features) for flat structures, and (d,) for others, where d is the
        dimension of the joint feature map.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Intercepts (flat structures only). The losses "roc_auc", "break_even",
        "precision_at_k" and "recall_at_k" do not depend on an intercept. For them it is
        set after training, to minimize the number of wrong labels or to predict k
        positives.
    classes_ : ndarray
        Class labels, for structures that have them.
    threshold_ : float
        For label ranking: labels whose score exceeds the threshold are predicted. It
        minimizes the number of wrong labels in training.
    structure_ : Structure
        The fitted structure, which turns scores into predictions.
    dual_gap_ : float
        Duality gap at `coef_`: an upper bound on the suboptimality of `objective_`.
    objective_, dual_objective_ : float
        Normalized objective at `coef_`, and a lower bound on its minimum.
    n_iter_ : int
        Number of iterations.
    n_oracle_calls_ : int
        Number of evaluations of the risk and its subgradient. For structures, the number
        of max-oracle calls; each evaluation takes one per example.
    history_ : dict of ndarray
        Progress at each iteration: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method", which is "planes", or "start" before
        the first iteration.
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    SubLBFGSClassifier : Quasi-Newton steps, followed by stabilized bundle steps.
    BCFWClassifier : Block-coordinate Frank-Wolfe, for structures too.

    Notes
    -----
    The weight vector w solves

    .. math::

        \min_w \; \frac{1}{2} \|w\|^2 + C \sum_i s_i H_i(w)

    for sample weights :math:`s_i` and a hinge loss :math:`H_i`:

    - two classes, :math:`y_i = \pm 1`: :math:`\max(0, 1 - y_i \langle w, x_i \rangle)`;
    - several classes: :math:`\max_c \; L(y_i, c) + \langle w_c - w_{y_i}, x_i \rangle`,
      where :math:`L` is given by `label_costs`;
    - several labels: the same maximum over all pairs of a label y that the example has
      and a label c that it does not have (label ranking);
    - a structure: as in `BCFWClassifier`.

    Each iteration adds a cutting plane, which is a linear lower bound on the sum of the
    losses, and minimizes the regularized maximum of all planes [1]_. With a line search
    [2]_ this is OCAS, for any of these losses. Over a structure it is SVMstruct [3]_,
    with planes taken between the best weights so far and the minimizer, which needs a
    third of the oracle calls.

    Results are reported for the normalized objective
    :math:`\frac{\lambda}{2} \|w\|^2 + \frac{1}{\sum_i s_i} \sum_i s_i H_i(w)`, where
    :math:`\lambda = 1 / (C \sum_i s_i)`.

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
    """

    _needs = BATCH_NEEDS
    _row_options: ClassVar = {
        **RISK_OPTIONS,
        "line_search": "each point would cost a decoding",
        "subproblem": "all planes are minimized over",
        "warm_start": "cutting planes start from nothing",
    }
    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        **SAMPLE_LOSSES,
        "structure": STRUCTURE_CONSTRAINT,
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
    }
    _option_table: ClassVar = {
        **BatchClassifier._option_table,
        "line_search": Option(True, ["boolean"]),
        "subproblem": Option("qp", [StrOptions({"qp", "line"})]),
        "formulation": Option("one-slack", [StrOptions({"one-slack", "n-slack"})]),
    }
    takes_sequences = True

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        loss: Literal[
            "hinge",
            "slack_hinge",
            "f1",
            "jaccard",
            "zero_one",
            "break_even",
            "precision_at_k",
            "recall_at_k",
            "roc_auc",
        ]
        | ConfusionMetric = "hinge",
        C: float = 1.0,
        k: int | float | None = None,
        label_costs: ArrayLike | None = None,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.loss = loss
        self.C = C
        self.k = k
        self.label_costs = label_costs
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            One row per example for flat structures. For others, a sequence with one item
            per example, such as arrays or CSR matrices of shape (T_i, n_features) for
            chains. A Dask collection chunked by rows is accepted too, if y and
            sample_weight are Dask collections as well.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or sequence
            Class labels of any type, an indicator matrix, or one labeling per example.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return super().fit(X, y, sample_weight)

    def _another_way(self, problem):
        if problem.is_remote or problem.risk is not None:
            if self._options.subproblem == "line":
                return "subproblem='qp'"
            if not self._options.line_search:
                return "line_search=True"
            return "SubLBFGSClassifier, which solves the same problem"
        return "BCFWClassifier with this structure, which solves the same problem"

    def _risk_method(self, problem, options):
        solve = partial(
            run_bmrm,
            problem.risk,
            problem.lam(self.C),
            line_search=self._options.line_search,
            subproblem=self._options.subproblem,
            **options,
        )
        return Method("BMRM", solve)

    def _structured_method(self, problem):
        refuse_bounds(problem.structure, type(self).__name__)
        solve = partial(
            run_cutting_plane,
            problem.make_oracle(),
            problem.weights,
            problem.lam(self.C),
            form=self._options.formulation,
            rng=self._rng(),
            rounding=problem.rounding,
            **self._limits(),
        )
        return Method("Cutting planes", solve)

    def _infer_structure(self, has_items, y, classes):
        structure = super()._infer_structure(has_items, y, classes)
        formulation = self._options.formulation
        if structure.flat and formulation != "one-slack":
            raise ValueError(
                f"formulation={formulation!r} needs a structure. Pass one, such "
                "as structure=MulticlassStructure()."
            )
        return structure
