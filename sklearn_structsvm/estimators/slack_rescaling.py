"""Structural SVMs with slack rescaling."""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.options import Option
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.estimators.constraints import (
    BLOCK_OPTIONS,
    BLOCK_STEP,
    BLOCKS_OF_ONE_C,
    DASK_BLOCKS,
    GAP_CHECKS,
)
from sklearn_structsvm.estimators.dual_ascent import frank_wolfe
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.named_structures import StructureName
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.estimators.remedies import slow_options
from sklearn_structsvm.estimators.steps import as_it_is
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.estimators.weight_bounds import check_bounds, refuse_bounds
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks._slack_search import SEARCH_ROUNDING
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.sgd import run_sgd
from sklearn_structsvm.solvers.blocks.slack_search import (
    SEARCHES,
    check_search,
    served_searches,
)
from sklearn_structsvm.solvers.blocks.steps import BlockStepName
from sklearn_structsvm.structures import Structure

# Whether average="auto" returns the average of the iterates, by solver.
AVERAGES = {"bcfw": False, "sgd": True}


class SlackRescaledSSVM(StructuredClassifier):
    r"""Structural support vector machine with slack rescaling.

    Use it where some errors are much larger than others, as with many labels, long
    sequences or large hierarchies:

    >>> from sklearn_structsvm import SlackRescaledSSVM
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> X, Y = make_multilabel(n_samples=60, random_state=0)
    >>> model = SlackRescaledSSVM(C=0.1, tol=0.01, random_state=0).fit(X, Y)
    >>> model.predict(X).shape == Y.shape, model.dual_gap_ <= 0.01
    (True, True)

    `predict` returns the output of each example with the highest score, as for
    `BCFWClassifier`.

    Read more in the :ref:`User Guide <guide-slack>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted, see `BCFWClassifier`. In a search over sequences, pass "chain":
        scikit-learn must know it before the fit.
    rescaling : {"slack", "margin"}, default="slack"
        "margin" solves the problem of `BCFWClassifier`, for comparison in a grid search.
    solver : {"bcfw", "sgd", "cutting_plane", "one_slack"}, default="bcfw"
        Block-coordinate Frank-Wolfe, stochastic subgradient descent, or cutting planes:
        with a set of them for each example ("cutting_plane") or one for all examples
        ("one_slack").
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization.
    fit_intercept : bool, default=True
        Whether to fit an intercept (flat structures only). As in `LinearSVC`, the
        intercept is the weight of a constant feature, so it is regularized.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class or,
        for chains and trees, the costs of the positions with that true label.
    step : {"auto", "corrective", "fw", "pairwise", "away"}, default="auto"
        Type of steps, see `BCFWClassifier` (BCFW only).
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the data or, for cutting planes, of rounds.
    warm_start : bool, default=False
        Whether to start from the dual solution of the previous fit (BCFW only), see
        `BCFWClassifier`.
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

        search : str, default="angular"
            How to find the most violating output. ``rescaling="margin"`` needs no search
            and ignores this, so a grid can contain both.

            - "angular" always finds it. A user-defined structure must define
              `constrained_decode` or `slack_augmented_decode`.
            - "exact" always finds it, by scanning the best outputs of each loss value (a
              good one where these take more than 128 MB). All built-in structures list
              them, except `PairwiseMultilabelStructure` with ``inference="lp"``.
            - "bisecting", and the baselines "binary" and "sarawagi" (cutting planes only)
              of [1]_, need only the max-oracle, but may miss it. `dual_gap_` then
              includes the slack of their bounds.
        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercept less.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
            How BCFW and SGD draw examples: in proportion to their block duality gaps
            (BCFW only), uniformly, or once per pass in random order. "auto" is "gap" for
            BCFW without acceleration, and "permuted" otherwise.
        acceleration : bool or "auto", default="auto"
            Whether to accelerate the steps, see `BCFWClassifier` (BCFW only).
        average : bool or "auto", default="auto"
            Whether to return the weighted average of the iterates. BCFW does so only if a
            fit ends before it reaches `tol`. "auto" averages for SGD.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.
        gap_check_interval : int, default=10
            Number of passes between two computations of the duality gap, each of which
            costs about one pass. Cutting planes compute the gap in each round.

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
        Duality gap at `coef_`: an upper bound on the suboptimality of `objective_`. It is
        computed from the upper bounds of the searches, which are exact for "exact" and,
        within a fraction of 1e-6, for "angular".
    objective_, dual_objective_ : float
        Normalized objective at `coef_`, and a lower bound on its minimum. `objective_` is
        computed from upper bounds of the searches, so it is never below the true one.
    n_iter_ : int
        Number of passes or rounds.
    n_oracle_calls_ : int
        Number of searches, including those of the gap checks.
    n_queries_ : int
        Number of decoder calls in all searches: calls of the λ-oracle or the constrained
        λ-oracle.
    history_ : dict of ndarray
        Progress at each gap check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method": "blocks", "accelerated", "planes" or
        "sgd" made the last pass.
    step_, cache_ : str, bool
        The settings in use, with "auto" resolved (BCFW only).
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    BCFWClassifier : Margin rescaling, with a few more options.

    Notes
    -----
    The weight vector w solves

    .. math::

        \min_w \; \frac{1}{2} \|w\|^2 + C \sum_i s_i H_i(w)

    for sample weights :math:`s_i` and the structured hinge loss with slack rescaling,

    .. math::

        H_i(w) = \max_y \; L(y_i, y)
        \bigl(1 + \langle w, \phi(x_i, y) - \phi(x_i, y_i) \rangle\bigr).

    The structure defines the loss :math:`L` and the joint feature map :math:`\phi`.
    Margin rescaling, as in `BCFWClassifier`, requires a margin as large as the loss, so
    outputs with a large loss can determine the weights even if they would never be
    predicted. Slack rescaling can predict better where losses differ a lot, as in large
    label hierarchies. Rescaling the loss is equivalent to rescaling C.

    The maximized function is a product, which standard decoders cannot maximize. One of
    the searches of [1]_ finds the maximum with the structure's decoders.

    Results are reported for the normalized objective
    :math:`\frac{\lambda}{2} \|w\|^2 + \frac{1}{\sum_i s_i} \sum_i s_i H_i(w)`, where
    :math:`\lambda = 1 / (C \sum_i s_i)`.

    References
    ----------
    .. [1] Choi, Meshi, Srebro, "Fast and scalable structural SVM with slack rescaling",
       AISTATS 2016.
    """

    step_: str
    cache_: bool
    n_queries_: int

    # A search may stop within this fraction of the largest violation. It is small
    # compared with the tol of a fit, and far above rounding.
    _search_rtol = 1e-6
    # The largest number of decoder calls in one search. Most take about ten.
    _max_queries = 1000

    _needs: ClassVar[dict[str, list[Need]]] = {
        "step": [Need(None, "solver", ("bcfw",))],
        "acceleration": [Need(None, "solver", ("bcfw",))],
        "warm_start": [
            Need(None, "solver", ("bcfw",), "Only it keeps its dual solution.")
        ],
        "sampling": [
            Need(
                ("gap",),
                "solver",
                ("bcfw",),
                "With solver='sgd' use 'permuted' or 'uniform'.",
            ),
            Need(None, "solver", ("bcfw", "sgd")),
        ],
        "average": [Need(None, "solver", ("bcfw", "sgd"))],
        "search": [
            Need(
                ("sarawagi",),
                "solver",
                ("cutting_plane", "one_slack"),
                "Only cutting planes know the slack of each example. search='binary' "
                "does not need it.",
            )
        ],
    }
    _dask_options: ClassVar = {"solver": ("bcfw",), **DASK_BLOCKS}
    _parameter_constraints: dict = {
        **BLOCKS_OF_ONE_C,
        **BLOCK_STEP,
        "rescaling": [StrOptions({"slack", "margin"})],
        "solver": [StrOptions({"bcfw", "sgd", "cutting_plane", "one_slack"})],
    }
    _option_table: ClassVar = {
        **BLOCK_OPTIONS,
        **GAP_CHECKS,
        "search": Option("angular", [StrOptions(set(SEARCHES))]),
        "average": Option("auto", ["boolean", StrOptions({"auto"})]),
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        rescaling: Literal["slack", "margin"] = "slack",
        solver: Literal["bcfw", "sgd", "cutting_plane", "one_slack"] = "bcfw",
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        step: BlockStepName = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.rescaling = rescaling
        self.solver = solver
        self.C = C
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
            Class labels of any type, an indicator matrix, or one labeling per example.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight)

    def _method(self, problem, previous):
        wrap = as_it_is
        if self.rescaling == "slack":
            wrap = partial(
                _slack_oracle,
                search=self._options.search,
                rtol=self._search_rtol,
                max_queries=self._max_queries,
                name=type(problem.structure).__name__,
            )
            if problem.is_remote:
                # Rejected here instead of by the workers.
                wrap(problem.make_oracle())
        if self.solver == "bcfw":
            method = frank_wolfe(
                self,
                problem,
                previous,
                average=self._averages(),
                bounds=check_bounds(None, problem.structure),
                wrap=wrap,
                rescaling=self.rescaling,
            )
            asked = method.iterate if problem.is_remote else method.iterate.oracle
        else:
            asked = wrap(problem.make_oracle())
            method = self._method_without_state(problem, asked)
        if self.rescaling == "margin":
            method.count_queries = lambda result: result.n_oracle_calls
        else:
            method.count_queries = lambda result: asked.n_queries
        return method

    def _averages(self):
        average = self._options.average
        return AVERAGES[self.solver] if average == "auto" else bool(average)

    def _method_without_state(self, problem, oracle):
        """Stochastic subgradients or cutting planes, which have no state to keep."""
        refuse_bounds(problem.structure, f"solver={self.solver!r}")
        common = oracle, problem.weights, problem.lam(self.C)
        rounding = problem.rounding
        if self.rescaling == "slack":
            rounding = replace(rounding, of_maxima=SEARCH_ROUNDING)
        options = self._limits() | {"rng": self._rng(), "rounding": rounding}
        given = self._options
        if self.solver in ("cutting_plane", "one_slack"):
            form = "one-slack" if self.solver == "one_slack" else "n-slack"
            solve = partial(run_cutting_plane, *common, form=form, **options)
            return Method("Cutting planes", solve)
        solve = partial(
            run_sgd,
            *common,
            sampling="permuted" if given.sampling == "auto" else given.sampling,
            average=self._averages(),
            gap_check_interval=given.gap_check_interval,
            **options,
        )
        return Method("SGD", solve)

    def _another_way(self, problem):
        if self.solver != "bcfw":
            return "solver='bcfw'"
        slow = slow_options(self)
        is_bounded = problem.structure.weight_bounds() is not None
        if slow or is_bounded or problem.is_remote:
            return slow
        return "solver='cutting_plane'"

    def _convergence_hint(self, problem, result):
        search = self._options.search
        if self.rescaling == "margin" or search == "exact":
            return super()._convergence_hint(problem, result)
        # Some structures, such as graphs, have neither.
        served = served_searches(problem.make_oracle())
        finer = [s for s in ("angular", "exact") if s in served and s != search]
        remedy = " or ".join(repr(s) for s in finer)
        remedy = f"use {f'search={remedy}, or ' if finer else ''}a larger tol."
        if search != "angular":
            return (
                f"search={search!r} is inexact, and its bounds can leave a gap that "
                f"no solver closes: {remedy}"
            )
        rtol = self._search_rtol
        if result.status != "stalled" and rtol * result.objective < self.tol:
            return ""
        return (
            f"Searches may stop within a fraction of {rtol:.3g} of the largest "
            f"violation, or after {self._max_queries} calls of a decoder: "
            f"{remedy}"
        )


def _slack_oracle(oracle, search, rtol, max_queries, name):
    """The oracle that finds the most violating outputs with a structure's oracle."""
    check_search(oracle, search, name)
    return SlackOracle(oracle, search, rtol, max_queries)
