"""Structural SVMs trained by block-coordinate Frank-Wolfe."""

from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.estimators.constraints import (
    BLOCK_OPTIONS,
    BLOCKS_OF_ONE_C,
    CACHE_OPTION,
    DASK_BLOCKS,
    GAP_CHECKS,
)
from sklearn_structsvm.estimators.dual_ascent import exact_steps, frank_wolfe
from sklearn_structsvm.estimators.named_structures import (
    StructureName,
    has_exact_steps,
)
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.estimators.remedies import CUTTING_PLANES, planes_for, slow_options
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.estimators.weight_bounds import check_bounds
from sklearn_structsvm.solvers.blocks.steps import StepName, steps_that
from sklearn_structsvm.structures import Structure

NO_CACHE = Need(
    steps_that(takes_cache=False),
    "cache",
    ("auto", False),
    "These steps keep what they need.",
)


class BCFWClassifier(StructuredClassifier):
    r"""Structural support vector machine: predicts sequences, trees, graphs, rows.

    For outputs that are more than one label, without probabilities, or with costs of
    errors:

    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = BCFWClassifier("chain", C=0.1, tol=0.01, random_state=0).fit(X, y)
    >>> model.predict(X)[0].shape == y[0].shape
    True

    `predict` returns the output of each example with the highest score: an array of
    labels for sequences, trees and graphs, a label for rows. `dual_gap_` bounds how far
    `objective_` is from its minimum, per example and in units of the loss.

    Read more in the :ref:`User Guide <guide-training>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted: an object, or the name of one with default parameters:
        "binary", "multiclass", "multilabel", "pairwise", "chain", "tree" or "graph".
        "auto" infers one of the first three, or "chain", from the data. In a search over
        sequences, pass "chain": scikit-learn must know it before the fit.
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 (squared L2 norm) to below 1. With
        more than 0, many weights are exactly zero, biases included. With more than 2,048
        weights, scale the features then.
    fit_intercept : bool, default=True
        Whether to fit an intercept (flat structures only). As in `LinearSVC`, the
        intercept is the weight of a constant feature, so it is regularized.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class or,
        for chains and trees, the costs of the positions with that true label.
    step : {"auto", "exact", "corrective", "fw", "pairwise", "away"}, default="auto"
        How the dual variables of one example are updated.

        - "exact" solves for them, all others fixed, as LIBLINEAR does [2]_ [3]_, for
          binary, multiclass and multilabel structures. Not with `average`, `coef_bounds`,
          ``l1_ratio > 0``, ``cache=True`` or ``algorithm="batch"``.
        - "corrective" nearly optimizes over the labelings that were found, several times
          between two calls of the max-oracle.
        - "fw", "pairwise" and "away" are the steps of [1]_.
        - "auto" takes exact steps if it can, corrective ones with ``l1_ratio > 0`` or if
          a call of the max-oracle is expensive, as for chains and your own structures
          (pairwise ones with `average` or ``cache=True``), and plain ones otherwise.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the data.
    warm_start : bool, default=False
        Whether to start from the dual solution of the previous fit. C, the sample weights
        and some of the examples may change. An interrupted fit keeps its progress.
    n_jobs : int or None, default=None
        Number of threads, for built-in structures: of corrective, pairwise and away
        steps, on more than a few hundred examples; of gap checks and `predict`.
    random_state : int, RandomState instance or None, default=None
        Controls the order in which examples are drawn. With an int and a fixed `n_jobs`,
        fits are reproducible bit for bit.
    verbose : int, default=0
        If nonzero, print one line per gap check.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercept less.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
            How examples are drawn: in proportion to their gaps (exact steps skip
            those with small gaps for longer and longer), uniformly, or once per pass.
        acceleration : bool or "auto", default="auto"
            Whether to accelerate the steps [4]_, which needs far fewer passes for a small
            `tol` or a large `C`. "auto" begins once a dozen more passes are expected; if
            steps are far slower than cutting planes [5]_, these take over. Not with
            `average`, ``algorithm="batch"``, or ``sampling="gap"`` for other than exact
            steps.
        cache : bool or "auto", default="auto"
            Whether to try the labelings found before, ahead of calling the max-oracle.
            "auto" does so if a call is expensive. Corrective steps need no cache.
        algorithm : {"block", "batch"}, default="block"
            "batch" makes one step on all examples per pass, as in papers.
        average : bool, default=False
            Whether to return the weighted average of the iterates if a fit ends early.
        coef_bounds : (lower, upper) or None, default=None
            Box constraints on `coef_`: numbers, or arrays of the shape of `coef_`.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.
        gap_check_interval : int, default=10
            Number of passes between two computations of the gap, each of which costs
            about one pass; fewer if the gap seems to have fallen.

    Attributes
    ----------
    coef_ : ndarray
        Weight vector. Its shape is (1, n_features), (n_classes, n_features) or
        (n_labels, n_features) for flat structures, and (d,) for others, where d is the
        dimension of the joint feature map.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Intercepts (flat structures only).
    classes_ : ndarray
        Class labels, for structures that have them.
    structure_ : Structure
        The fitted structure.
    dual_gap_ : float
        Duality gap at `coef_`: an upper bound on the suboptimality of `objective_`.
    objective_, dual_objective_ : float
        Normalized objective at `coef_`, and a lower bound on its minimum.
    n_iter_ : int
        Number of passes over the data.
    n_oracle_calls_ : int
        Number of calls of the max-oracle, including those of the gap checks.
    history_ : dict of ndarray
        Progress at each gap check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method": "blocks", "accelerated" or "planes"
        made the last pass.
    step_, cache_ : str, bool
        The settings in use, with "auto" resolved.
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    BCFWClassifierCV : Chooses C along the regularization path.
    bcfw_path : Solutions for all values of C.

    Notes
    -----
    The weight vector w solves

    .. math::

        \min_w \; \frac{1 - \rho}{2} \|w\|_2^2 + \rho \|w\|_1 + C \sum_i s_i H_i(w)

    for the `l1_ratio` :math:`\rho`, sample weights :math:`s_i` and the structured hinge
    loss with margin rescaling,

    .. math::

        H_i(w) = \max_y \; L(y_i, y)
        + \langle w, \phi(x_i, y) - \phi(x_i, y_i) \rangle.

    The structure defines the loss :math:`L` and the joint feature map :math:`\phi`. The
    solver works on the dual problem [1]_ and certifies its solution by the duality gap.

    Results are reported for the normalized objective, which is :math:`\lambda =
    1 / (C \sum_i s_i)` times this one: :math:`\frac{\lambda}{2} \|w\|^2 +
    \frac{1}{\sum_i s_i} \sum_i s_i H_i(w)` for :math:`\rho = 0`.

    There is no `partial_fit`: the dual solution has one block of variables per training
    example, so a certificate needs all of them. To continue training on the same
    examples, use `warm_start`.

    With hidden labels, the hinge is that of latent variables [6]_: the maximum over all
    labelings, of the loss at known labels plus the score, less the best score of those
    that are allowed. The problem is then not convex: `dual_gap_` and `dual_objective_`
    are of the convex problem that stands for it at `coef_`, `objective_` is that of the
    problem itself, and ``history_["step"]`` numbers the convex problems. `objective_`
    need not be the global minimum. The first weights take up to 30 steps of L-BFGS on the
    marginal likelihood (or passes over the known labels, if a structure has no sums):
    `n_oracle_calls_` counts their calls, and `n_iter_` does not count these steps.

    References
    ----------
    .. [1] Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien, "Minding the gaps for
       block Frank-Wolfe optimization of structured SVMs", ICML 2016.
    .. [2] Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method
       for large-scale linear SVM", ICML 2008.
    .. [3] Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large
       scale multi-class linear SVMs", KDD 2008.
    .. [4] Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization",
       NeurIPS 2015.
    .. [5] Franc, Sonnenburg, "Optimized cutting plane algorithm for large-scale risk
       minimization", JMLR 10, 2009.
    .. [6] Yu, Joachims, "Learning structural SVMs with latent variables", ICML 2009.
    """

    takes_hidden_labels = takes_completions = True
    step_: str
    cache_: bool

    _needs: ClassVar[dict[str, list[Need]]] = {
        "step": [
            Need(steps_that(is_plain=False), "algorithm", ("block",)),
            Need(("exact",), "average", (False,)),
            Need(("exact",), "coef_bounds", (None,), "Use step='auto'."),
            NO_CACHE,
        ],
        "l1_ratio": [
            Need(None, "step", ("auto", *steps_that(takes_l1=True))),
            Need(None, "algorithm", ("block",)),
            Need(None, "average", (False,)),
            Need(None, "coef_bounds", (None,)),
        ],
        "cache": [Need(None, "algorithm", ("block",))],
        "sampling": [Need(None, "algorithm", ("block",))],
        "acceleration": [Need(None, "algorithm", ("block",))],
    }
    _dask_options: ClassVar = {
        "algorithm": ("block",),
        **DASK_BLOCKS,
        "l1_ratio": (0.0,),
    }
    _parameter_constraints: dict = {
        **BLOCKS_OF_ONE_C,
        "l1_ratio": [Interval(Real, 0, 1, closed="left")],
        "step": [StrOptions(set(get_args(StepName)))],
    }
    _option_table: ClassVar = {
        **BLOCK_OPTIONS,
        **GAP_CHECKS,
        **CACHE_OPTION,
        "algorithm": Option("block", [StrOptions({"block", "batch"})]),
        "average": Option(False, ["boolean"]),
        "coef_bounds": Option(None, [tuple, list, None]),
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        step: StepName = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.step = step
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
            chains. Dask collections are accepted too: an array or data frame of rows, a
            bag of items, or a list of delayed lists of items. Then y and sample_weight
            must be such collections as well.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or sequence
            Class labels of any type, a label indicator matrix, or one labeling per
            example. Labels of chains, trees and graphs may be `structures.MISSING`, or a
            set of labels one of which is the true one; see :ref:`guide-hidden`. In a pair
            (labels, weights) each node has a weight, which multiplies its costs.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight)

    def _method(self, problem, previous):
        options = self._options
        bounds = check_bounds(options.coef_bounds, problem.structure)
        if self.l1_ratio > 0.0:
            self._refuse_bounded_weights(problem.structure)
        if self._makes_exact_steps(problem.structure):
            return exact_steps(self, problem, previous)
        return frank_wolfe(
            self,
            problem,
            previous,
            average=options.average,
            bounds=bounds,
            algorithm=options.algorithm,
            cache=options.cache,
            l1_ratio=self.l1_ratio,
        )

    def _another_way(self, problem):
        options, structure = self._options, problem.structure
        if options.algorithm == "batch":
            return "algorithm='block'"
        slow = slow_options(self)
        if slow or problem.is_remote or self.l1_ratio > 0.0:
            return slow
        if options.coef_bounds is not None or structure.weight_bounds() is not None:
            return ""
        return f"{planes_for(problem)}, {CUTTING_PLANES}"

    def _refuse_bounded_weights(self, structure):
        if structure.weight_bounds() is not None:
            raise ValueError(
                f"{type(structure).__name__} bounds its weights, which l1_ratio="
                f"{self.l1_ratio} does not allow. Use l1_ratio=0."
            )

    def _makes_exact_steps(self, structure):
        if self.step not in ("auto", "exact"):
            return False
        has_steps = has_exact_steps(structure)
        if self.step == "exact" and not has_steps:
            raise ValueError(
                "step='exact' requires structure=BinaryStructure, MulticlassStructure or "
                f"MultilabelStructure; got structure={type(structure).__name__}. Use "
                "step='auto'."
            )
        options = self._options
        return has_steps and not (
            options.cache is True
            or options.algorithm == "batch"
            or options.average
            or options.coef_bounds is not None
            or self.l1_ratio > 0.0
        )
