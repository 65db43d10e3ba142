"""Support vector machines trained by the excessive gap technique."""

from functools import partial
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.estimators.batch import (
    BATCH_CONSTRAINTS,
    RISK_OPTIONS,
    BatchClassifier,
)
from sklearn_structsvm.estimators.dual_ascent import MOST_MEMORY
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.named_structures import (
    STRUCTURE_CONSTRAINT,
    StructureName,
)
from sklearn_structsvm.estimators.remedies import planes_for
from sklearn_structsvm.estimators.weight_bounds import refuse_bounds
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.solvers.batch.sublbfgs import MAX_PASSES_BEFORE_LONG_PLANES
from sklearn_structsvm.solvers.blocks._crf import dual_memory
from sklearn_structsvm.solvers.blocks.excessive_gap import run_excessive_gap
from sklearn_structsvm.structures import BinaryStructure, Structure


class PragamClassifier(BatchClassifier):
    r"""Linear classifier, of chains and trees too, by an accelerated dual gradient.

    Its gap is proven to fall with the square of the number of iterations; in practice the
    other estimators are faster:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn_structsvm import PragamClassifier
    >>> X, y = make_classification(random_state=0)
    >>> PragamClassifier(C=0.1).fit(X, y).dual_gap_ <= 1e-3
    True

    `predict` returns the class, or the labels of a chain or tree, with the highest score.

    Read more in the :ref:`User Guide <guide-pragam>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        The structure to predict. "auto" infers it from the data: two classes, several
        classes, a label indicator matrix whose labels are ranked or, if X holds one 2-D
        array per example, label sequences. Sequences, and a `ChainStructure` or
        `TreeStructure` passed as an object or by name ("chain", "tree"), have a loss of
        their own. Their dual variables are edge marginals; entropy smoothing lets
        sum-product solve each step. Other structures are not supported.
    loss : {"hinge", "slack_hinge"}, default="hinge"
        "slack_hinge" multiplies the cost L(y, c) by the violation 1 + z_c - z_y rather
        than adding it to the score (one label per example). For structures see
        `SlackRescaledSSVM`.
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        Cost of predicting a class (column) for a true class (row), in the order of
        `classes_`. For several labels, the required margin between a present label (row)
        and an absent one (column). None means 1 off the diagonal. Not for structures,
        which have their own loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept (rows of X only). For two classes it is b, which is
        not regularized (Pragam-b). The problem is then that of `sklearn.svm.SVC` rather
        than that of `LinearSVC` and the other estimators here, so its minimum is at most
        theirs. For several classes or labels the intercept is the weight of a constant
        feature, so it is regularized, as in the other estimators.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class or,
        for chains and trees, the costs of the positions with that true label.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=10000
        Maximum number of iterations. Each costs about one and a half products X W and
        Xᵀ B or, for a structure, usually one pass over the examples.
    n_jobs : int or None, default=None
        Number of threads, if the package was built with OpenMP.
    verbose : int, default=0
        If nonzero, print one line per iteration.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercepts less.
            Ignored for two classes.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, with one row per class or label. Two classes share one row. For chains
        and trees, the weight vector of shape (d,).
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Intercepts (flat structures only).
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
        Number of iterations.
    n_oracle_calls_ : int
        Number of products Xᵀ B, each for one dual point. For a structure, the number of
        examples for which the most violating output and the marginals were computed.
    history_ : dict of ndarray
        Progress at each iteration: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method": "excessive_gap" or, after 1,000
        iterations on rows of X, "planes", as of `BMRMClassifier`.
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    SubLBFGSClassifier : Quasi-Newton steps.
    BMRMClassifier : Bundle methods.
    BCFWClassifier : Block-coordinate Frank-Wolfe, much faster on chains and trees.

    Notes
    -----
    The weights W and, for two classes, the intercept b solve

    .. math::

        \min_{W, b} \; \frac{1}{2} \|W\|^2 + C \sum_i s_i H_i(W^\top x_i + b)

    for sample weights :math:`s_i` and a hinge loss :math:`H_i` of the scores z:

    - two classes, :math:`y_i = \pm 1`: :math:`\max(0, 1 - y_i z)`;
    - several classes: :math:`\max_c \; L(y_i, c) + z_c - z_{y_i}`, where :math:`L` is
      given by `label_costs`;
    - several labels: the same maximum over all pairs of a label y that the example has
      and a label c that it does not have (label ranking);
    - chains and trees: as in `BCFWClassifier`.

    The method is an accelerated gradient method. Its duality gap decreases as
    :math:`1 / t^2` in the number of iterations t, while that of bundle methods decreases
    as :math:`1 / t` [1]_.

    Results are reported for the normalized objective
    :math:`\frac{\lambda}{2} \|W\|^2 + \frac{1}{\sum_i s_i} \sum_i s_i H_i`, where
    :math:`\lambda = 1 / (C \sum_i s_i)`.

    For rows of X, the dual solution has one number per example and class or, with several
    labels, per example and pair of labels. Many labels therefore take a lot of memory.
    For chains and trees only the joint feature of the dual solution is kept.

    The paper projects marginals onto their polytope by an iterative method. Here the
    distance is a relative entropy, so sum-product computes the projections exactly.

    References
    ----------
    .. [1] Saha, Zhang, Vishwanathan, "Lower bounds for BMRM and faster rates for training
       SVMs", 2009.
    """

    _row_options = RISK_OPTIONS
    _parameter_constraints: dict = {
        **BATCH_CONSTRAINTS,
        "structure": STRUCTURE_CONSTRAINT,
    }
    takes_dask = False
    takes_sequences = True

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        loss: Literal["hinge", "slack_hinge"] = "hinge",
        C: float = 1.0,
        label_costs: ArrayLike | None = None,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        n_jobs: int | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.loss = loss
        self.C = C
        self.label_costs = label_costs
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            One row per example. For chains and trees, a sequence with one item per
            example, such as arrays or CSR matrices of shape (T_i, n_features).
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
        return f"{planes_for(problem)}, which needs fewer iterations"

    def _risk_method(self, problem, options):
        is_binary = isinstance(problem.structure, BinaryStructure)
        options["fit_intercept"] = self.fit_intercept and is_binary
        options["planes_after"] = MAX_PASSES_BEFORE_LONG_PLANES
        data = problem.risk, problem.lam(self.C)
        return Method("Pragam", partial(run_pragam, *data, **options))

    def _risk_bias(self, structure):
        if not (isinstance(structure, BinaryStructure) and structure.bias_):
            return structure.bias_
        # The solver appends b to the weights, if the structure has the weight of its
        # constant feature: with a value of 1 they are the same.
        structure.bias_ = 1.0
        return 0.0

    def _structured_method(self, problem):
        oracle = problem.make_oracle()
        if not oracle.has_marginals:
            raise TypeError(
                f"structure={type(problem.structure).__name__} has no marginals, which "
                "PragamClassifier needs. Use ChainStructure, TreeStructure, or "
                "structure='auto' for rows of X. For other structures use "
                "BCFWClassifier or BMRMClassifier."
            )
        refuse_bounds(problem.structure, type(self).__name__)
        # There are no log factors.
        needed = dual_memory(oracle) // 2
        if needed > MOST_MEMORY:
            warn_caller(
                f"PragamClassifier keeps the marginals of {oracle.n_blocks} examples, "
                f"which take {needed / 1e9:.1f} GB. BCFWClassifier solves the same "
                "problem with less.",
            )
        data = oracle, problem.weights, problem.lam(self.C)
        limits = self._limits() | {"rounding": problem.rounding}
        return Method("Pragam", partial(run_excessive_gap, *data, **limits))
