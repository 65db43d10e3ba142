"""Conditional random fields with a certificate of optimality."""

from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.columns import describe_columns
from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm._utils.labels import (
    class_weight_vector,
    label_cost_matrix,
    split_weights,
)
from sklearn_structsvm._utils.tables import square_by_label
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.estimators.constraints import (
    BLOCK_OPTIONS,
    BLOCKS_OF_ONE_C,
    GAP_CHECKS,
    Option,
)
from sklearn_structsvm.estimators.dual_ascent import MOST_MEMORY
from sklearn_structsvm.estimators.method import Method
from sklearn_structsvm.estimators.named_structures import (
    StructureName,
    has_exact_steps,
    has_written_hessian,
)
from sklearn_structsvm.estimators.options import Need
from sklearn_structsvm.estimators.partial_labels import likelihood_steps
from sklearn_structsvm.estimators.probabilistic import (
    DECODINGS,
    ProbabilisticClassifier,
)
from sklearn_structsvm.estimators.warm_start import WarmStart, find_warm_start
from sklearn_structsvm.estimators.weight_bounds import refuse_bounds
from sklearn_structsvm.risks import Logistic, Multinomial
from sklearn_structsvm.solvers.batch.chain_newton import (
    PASSES_PER_WEIGHT,
    CenteredWeights,
    ChainNewtonSteps,
)
from sklearn_structsvm.solvers.batch.elastic_net import SparseSteps, run_elastic_net
from sklearn_structsvm.solvers.batch.lbfgs import LBFGSSteps, run_lbfgs
from sklearn_structsvm.solvers.batch.newton import NewtonSteps, run_newton
from sklearn_structsvm.solvers.batch.proximal_newton import (
    MOST_MODELED,
    ProximalNewtonSteps,
    run_proximal_newton,
)
from sklearn_structsvm.solvers.batch.quasi_newton import lbfgs_memory
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent, dual_memory
from sklearn_structsvm.solvers.blocks.crf import certify, run_crf
from sklearn_structsvm.solvers.loop import run_steps
from sklearn_structsvm.solvers.turns import Turn
from sklearn_structsvm.structures import ChainStructure, Structure, TreeStructure
from sklearn_structsvm.structures.chain_curvature import node_rows
from sklearn_structsvm.structures.nodes import NodeStructure

# Parameters of the dual ascent.
DUAL_NEEDS = {
    "sampling": [Need(None, "solver", ("auto", "dual"))],
    "acceleration": [Need(None, "solver", ("auto", "dual"))],
}


def _without_squares(other, *allowed):
    """The requirements of dual ascent if the penalty has no squares."""
    hint = "Or use l1_ratio=0.99, with which the penalty is strongly convex."
    return [
        Need((1.0,), other, allowed, hint, {"solver": solver})
        for solver in ("auto", "dual")
    ]


class CRFClassifier(ProbabilisticClassifier):
    r"""Conditional random field: probabilities of sequences, trees, graphs and rows.

    For tags of words and other outputs whose labels depend on each other. For rows it is
    logistic regression:

    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = CRFClassifier("chain", C=0.1, random_state=0).fit(X, y)
    >>> model.predict_proba(X)[0].shape == (len(y[0]), len(model.classes_))
    True

    `predict` returns the most probable labels of each example as a whole or, with the
    option ``decoding="mbr"``, those with the least expected errors. `dual_gap_` bounds
    how far `objective_` is from its minimum.

    Read more in the :ref:`User Guide <guide-probabilities>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted: an object, or a name, "binary", "multiclass", "multilabel",
        "chain", "tree" or "graph". "auto" infers it from the data, except for the last
        two. In a search over sequences, pass "chain". The loss of the structure matters
        only for ``decoding="mbr"``.
    C : float, default=1.0
        Inverse regularization strength: smaller values regularize more.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 (squared L2 norm) to 1 (L1 norm). With
        more than 0, many weights are exactly zero. With 1 a fit takes more passes.
        CRFsuite calls :math:`\rho / C` `c1`, and :math:`(1 - \rho) / (2 C)` `c2`.
    fit_intercept : bool, default=True
        Whether to fit an intercept (flat structures only): the weight of a constant
        feature, which is regularized, as in `LinearSVC`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class or,
        for chains, trees and graphs, the costs of the positions with that true label.
    label_costs : array-like of shape (n_classes, n_classes) or None, default=None
        Costs of training (softmax-margin): where a class (row) is the true label, the
        cost of each class (column) is added to its score, in the order of `classes_`.
        High costs of a rare class find more of it, at less precision. None means no costs
        or, with a `class_weight` for chains, trees and graphs, 1 off the diagonal. Must
        be None for multilabel data. Weights of nodes in y multiply them.
    solver : {"auto", "dual", "lbfgs", "newton"}, default="auto"
        The optimization algorithm.

        - "dual" is accelerated [2]_ stochastic dual coordinate ascent, which updates the
          distribution over the labelings of one example at a time [1]_.
        - "lbfgs" takes quasi-Newton steps on all examples at once, in `n_jobs` threads.
        - "newton" takes Newton steps (flat structures, and sequences with at most 2,048
          weights): the fewest for high accuracy, large `C` and raw columns [4]_.
        - "auto" is "newton" for flat structures with no more features than examples and
          ``l1_ratio=0``, "lbfgs" for graphs, Dask collections and hidden labels, and
          otherwise "dual". It goes on with another one where that is slow. It takes
          "lbfgs", with a warning, if "dual" would take more memory than that and 2 GiB.

        With ``l1_ratio > 0``, "lbfgs" is OWL-QN [3]_, which takes many more passes. It
        needs ``l1_ratio < 1``, as does Dask.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the data.
    warm_start : bool, default=False
        Whether to start from the dual solution of the previous fit or, where there is
        none, from its weights. C, l1_ratio, the weights, the solver and some of the
        examples may change. An interrupted fit of "dual" keeps its progress.
    n_jobs : int or None, default=None
        Number of threads: of "dual", on more than a few hundred examples, of the other
        solvers, of gap checks and of predictions.
    random_state : int, RandomState instance or None, default=None
        Controls the order in which examples are drawn. With an int and a fixed `n_jobs`,
        fits are reproducible bit for bit.
    verbose : int, default=0
        If nonzero, print one line per gap check.
    solver_options : dict or None, default=None
        Rarely needed options, such as ``{"max_time": 60}``:

        decoding : {"map", "mbr"}, default="map"
            What `predict` returns. "map" is the most probable labeling. "mbr" (minimum
            Bayes risk) is the labeling with the smallest expected loss, by the Hamming
            loss or the label costs of the structure. For the Hamming loss it consists of
            the most probable label at each position. It may be changed after `fit`.
        intercept_scaling : float, default=1.0
            Value of the constant feature. Larger values regularize the intercept less.
        classes : array-like or None, default=None
            All class labels. Pass them if y may lack some, as in a fold.
        sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
            How ``solver="dual"`` draws examples: in proportion to their block duality
            gaps, uniformly, or once per pass in random order. "auto" is "permuted".
        acceleration : bool or "auto", default="auto"
            Whether to accelerate the steps of ``solver="dual"``. "auto" begins once a
            dozen more passes are expected, but never with ``sampling="gap"``. With
            ``l1_ratio=1`` it cannot be False.
        max_time : float or None, default=None
            Time limit in seconds. A fit that is cut short by it is not reproducible.
        gap_check_interval : int, default=10
            Number of passes of ``solver="dual"`` between two computations of the gap,
            each of which costs about half a pass.

    Attributes
    ----------
    coef_ : ndarray
        Weight vector. Its shape is (1, n_features), (n_classes, n_features) or
        (n_labels, n_features) for flat structures, and (d,) for others, where d is the
        dimension of the joint feature map. ``structure_.weight_parts(coef_)`` splits it
        into named parts.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Intercepts (flat structures only).
    classes_ : ndarray
        Class labels.
    structure_ : Structure
        The fitted structure.
    dual_gap_ : float
        Duality gap at `coef_`: an upper bound on the suboptimality of `objective_`.
    objective_, dual_objective_ : float
        Normalized objective at `coef_`, and a lower bound on its minimum.
    n_iter_ : int
        Number of passes over the data or, for "lbfgs" and "newton", of steps.
    n_oracle_calls_ : int
        Number of times that the labelings of an example were summed over (including gap
        checks) or that its Hessian was multiplied by a vector.
    history_ : dict of ndarray
        Progress at each gap check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective", "dual_gap" and "method": "blocks", "accelerated", "newton",
        "lbfgs" or "owlqn" made the last pass.
    solver_ : str
        The solver that the fit ended with, with "auto" resolved.
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, if it has any.

    See Also
    --------
    CRFClassifierCV : Chooses C by cross-validation.
    crf_path : Fits for increasing values of C.
    BCFWClassifier : Maximizes margins rather than likelihood, for any structure.
    sklearn.linear_model.LogisticRegression : Flat data, with an unregularized intercept.

    Notes
    -----
    The weight vector w solves

    .. math::

        \min_w \; \frac{1 - \rho}{2} \|w\|_2^2 + \rho \|w\|_1
        - C \sum_i s_i \log p(y_i \mid x_i, w)

    for the `l1_ratio` :math:`\rho`, sample weights :math:`s_i` and the probabilities

    .. math::

        p(y \mid x, w) = \frac{\exp \langle w, \phi(x, y) \rangle}
        {\sum_{y'} \exp \langle w, \phi(x, y') \rangle}.

    The structure defines the joint feature map :math:`\phi`.

    Results are reported for the normalized objective, which is :math:`\lambda =
    1 / (C \sum_i s_i)` times this one: :math:`\frac{\lambda}{2} \|w\|_2^2 -
    \frac{1}{\sum_i s_i} \sum_i s_i \log p(y_i \mid x_i, w)` for :math:`\rho = 0`.

    Apart from the intercept, a flat fit has the same coefficients as `LogisticRegression`
    with the same C and l1_ratio. A chain with C = 1 / (c1 + 2 c2) and l1_ratio = c1 C has
    the same coefficients as CRFsuite with all transitions and states;
    ``ChainStructure(bias=False, first_bias=False, last_bias=False)`` has the same
    features.

    With costs :math:`c(y_i, y)`, summed over positions by their weights, the loss of an
    example is the softmax-margin [6]_ :math:`\log \sum_y \exp(\langle w, \phi(x_i, y) -
    \phi(x_i, y_i) \rangle + c(y_i, y))`. `objective_` and its bound are those of this
    loss, and probabilities are those of the weights without costs.

    For graphs with cycles, an upper bound takes the place of the logarithm of the sum
    over all labelings: the tree-reweighted one [5]_, minimized along with the weights.
    `objective_` is that of the bound, `dual_gap_` certifies the convex problem with it,
    and `log_likelihood` is a lower bound. For graphs
    `l1_ratio` must be 0, and with cycles no labels hidden.

    With hidden labels, :math:`p(y_i \mid x_i, w)` is the probability of all labelings
    that are allowed. The problem is then not convex, and `objective_` need not be its
    minimum. `dual_gap_` and `dual_objective_` are of a convex problem that stands for it
    at `coef_`. ``history_["step"]`` numbers these problems, and is 0 for steps on the
    problem itself.

    References
    ----------
    .. [1] Le Priol, Piché, Lacoste-Julien, "Adaptive stochastic dual coordinate ascent
       for conditional random fields", UAI 2018.
    .. [2] Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization",
       NeurIPS 2015.
    .. [3] Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML
       2007.
    .. [4] Lee, Sun, Saunders, "Proximal Newton-type methods for minimizing composite
       functions", SIAM Journal on Optimization 24, 2014.
    .. [5] Wainwright, Jaakkola, Willsky, "A new class of upper bounds on the log
       partition function", IEEE Trans. Information Theory 51, 2005.
    .. [6] Gimpel, Smith, "Softmax-margin CRFs: training log-linear models with cost
       functions", NAACL 2010.
    """

    takes_hidden_labels = True
    solver_: str

    _needs: ClassVar[dict[str, list[Need]]] = {
        **DUAL_NEEDS,
        "l1_ratio": [
            Need(
                (1.0,),
                "solver",
                ("auto", "dual", "newton"),
                "Or use l1_ratio=0.99: without squares in the penalty, OWL-QN cannot "
                "tell how far it is from the optimum.",
            ),
            *_without_squares("acceleration", "auto", True),
            *_without_squares("sampling", "auto", "uniform", "permuted"),
        ],
    }
    _dask_options: ClassVar = {"solver": ("auto", "lbfgs"), "warm_start": (False,)}
    _parameter_constraints: dict = {
        **BLOCKS_OF_ONE_C,
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "solver": [StrOptions({"auto", "dual", "lbfgs", "newton"})],
        "label_costs": ["array-like", None],
    }
    _option_table: ClassVar = {
        **BLOCK_OPTIONS,
        **GAP_CHECKS,
        "decoding": Option("map", [StrOptions(set(DECODINGS))]),
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        label_costs: ArrayLike | None = None,
        solver: Literal["auto", "dual", "lbfgs", "newton"] = "auto",
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
        self.label_costs = label_costs
        self.solver = solver
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
            example. Labels of chains and trees may be `structures.MISSING`, or a set of
            labels one of which is the true one; see :ref:`guide-hidden`. In a pair
            (labels, weights) each node has a weight, which multiplies its costs.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight)

    def _another_way(self, problem):
        if problem.is_remote:
            return ""
        ratio = self.l1_ratio
        if ratio > 0.0 and has_exact_steps(problem.structure):
            return "solver='newton'" if self.solver in ("dual", "lbfgs") else ""
        if has_written_hessian(problem.structure) and not problem.has_hidden:
            return "solver='newton'" if self.solver != "newton" else ""
        if ratio == 1.0:
            return "l1_ratio=0.99, which needs fewer passes"
        if ratio > 0.0:
            return "solver='auto'" if self.solver == "lbfgs" else ""
        if self.solver == "lbfgs" and has_exact_steps(problem.structure):
            return "solver='newton'"
        return "solver='auto'" if self.solver in ("dual", "lbfgs") else ""

    def _method(self, problem, previous):
        self._bind_costs(problem)
        refuse_bounds(problem.structure, type(self).__name__)
        start = find_warm_start(self, problem, previous, ("weights",))
        if start.kept is not None:
            start.kept["C"] = self.C
        solver, dual = self._resolved_solver(problem, start.state), None
        if problem.has_hidden and self.solver == "auto":
            newton, is_cheap = None, has_written_hessian(problem.structure)
            if is_cheap:
                newton = partial(self._chain_newton, problem)
            elif self._has_differenced_newton(problem):
                newton = partial(self._differenced_newton, problem)
            options = {"newton": newton, "is_cheap": is_cheap}
            return likelihood_steps(self, problem, start, **options)
        if solver == "dual":
            dual = problem.make_oracle()
            if self.solver == "auto" and is_too_large(dual):
                solver, dual = "lbfgs", None
        if problem.has_hidden:
            return likelihood_steps(self, problem, start, dual)
        if solver == "dual":
            is_same_C = (
                start.state is not None and previous["_dual_state"].get("C") == self.C
            )
            return self._dual_ascent(problem, dual, start, is_same_C)
        w0 = None
        if start.state is not None:
            n_weights = problem.structure.n_weights_
            w0 = as_floats("weights", start.state["weights"], n_weights)
            if not self._is_no_worse_than_zero(w0, problem):
                w0 = None
        lam, options = problem.lam(self.C), self._limits() | {"w0": w0}
        kept = {"kept": start.kept, "resolved": {"solver_": solver}}
        if solver == "newton" and self._has_chain_newton(problem):
            own = options.pop("n_threads"), options.pop("w0")
            solve = partial(run_steps, self._chain_newton(problem, lam, *own), **options)
            return Method("Newton's method", solve, **kept)
        if solver == "newton":
            risk = make_log_loss(problem, options.pop("n_threads"))
            if self.l1_ratio > 0.0:
                ratio = self.l1_ratio
                solve = partial(run_proximal_newton, risk, lam, ratio, **options)
            else:
                solve = partial(run_newton, risk, lam, **options)
            return Method("Newton's method", solve, **kept)
        oracle, weights, options["squares"] = problem.make_sums()
        options["rounding"] = problem.rounding
        if self.l1_ratio > 0.0:
            ratio = self.l1_ratio
            solve = partial(run_elastic_net, oracle, weights, lam, ratio, **options)
            return Method("OWL-QN", solve, **kept)
        solve = partial(run_lbfgs, oracle, weights, lam, **options)
        return Method("L-BFGS", solve, **kept)

    def _is_no_worse_than_zero(self, w, problem):
        # Data or C may be others than those that w was found for.
        oracle, weights, _ = problem.make_sums()
        ratio, n_threads = self.l1_ratio, self._limits()["n_threads"]
        size = ratio * np.abs(w).sum() + (1.0 - ratio) * 0.5 * w.dot(w)
        pair = w, np.zeros_like(w)
        value, there = (oracle.log_loss(weights, own, n_threads)[0] for own in pair)
        return problem.lam(self.C) * size + value <= there

    def _dual_ascent(self, problem, oracle, start, is_same_C):
        lam, limits = problem.lam(self.C), self._limits()
        n_threads = limits["n_threads"]
        has_costs = problem.costs is not None
        ascent = MarginalAscent(
            oracle, problem.weights, lam, self.l1_ratio, has_costs=has_costs
        )
        ascent.rounding = problem.rounding
        state = start.state
        if state is not None:
            if self.l1_ratio == 1.0 and not is_same_C:
                # Without squares, the dual point of another C is farther from the optimum
                # than the distributions that its weights give.
                state = {"weights": state["weights"]}
            at_truth = ascent.dual_objective
            ascent.set_state(state, start.places)
            is_far = self.l1_ratio == 1.0 or ascent.dual_objective < at_truth
            if start.has_moved and is_far:
                # What canceled in the dual point may no longer do so. Without squares in
                # the penalty, it is then far from the few that are feasible.
                return self._dual_ascent(problem, oracle, WarmStart(start.kept), False)

        def begin(name, steps, row, w):
            method.iterate = turn = Turn(steps, row, w)
            method.certify = turn.check
            method.resolved["solver_"] = name
            return turn

        def hand_over(row, w):
            name, steps, then = self._successor(problem, lam, n_threads)
            turn = begin(name, steps, row, w)
            if then is not None:
                turn.then = lambda row, w: begin("newton", then(w), row, w)
            return turn

        def take_back():
            method.iterate, method.certify = ascent, partial(certify, ascent, n_threads)
            method.resolved["solver_"] = "dual"

        is_sparse = self.l1_ratio > 0.0
        has_chain_newton = self._has_chain_newton(problem)
        least_left = 0.0
        if is_sparse and has_chain_newton:
            least_left = min(PASSES_PER_WEIGHT * oracle.n_weights, self.max_iter)
        solve = partial(
            run_crf,
            ascent,
            sampling=self._options.sampling,
            acceleration=self._options.acceleration,
            gap_check_interval=self._options.gap_check_interval,
            rng=self._rng(),
            successor=hand_over if self.solver == "auto" else None,
            least_left=least_left,
            take_back=take_back if is_sparse else None,
            **limits,
        )
        method = Method(
            "Dual ascent",
            solve,
            ascent,
            partial(certify, ascent, n_threads),
            start.kept,
            {"solver_": "dual"},
        )
        return method

    def _successor(self, problem, lam, n_threads):
        """The solver that replaces a slow ascent: its name, its steps, and what follows.

        It starts from zero: the scores after ascent are too large for Newton's method,
        which would need a hundred times as many products. What follows is (w) -> steps
        from where L-BFGS stalls, on columns as raw as Unix time, or None. It stalls near
        the optimum, but the gradient by a column of 1e9 is noise to it. A few steps of
        Newton's method take that away, so that there is a certificate. With an L1
        penalty Newton's method is the successor itself; without, L-BFGS does well.
        """
        if has_exact_steps(problem.structure):
            risk = make_log_loss(problem, n_threads)
            if self.l1_ratio > 0.0:
                return "newton", ProximalNewtonSteps(risk, lam, self.l1_ratio), None
            return "newton", NewtonSteps(risk, lam, self.tol), None
        then = None
        if self._has_chain_newton(problem):
            then = partial(self._chain_newton, problem, lam, n_threads)
            if self.l1_ratio > 0.0:
                return "newton", then(), None
        elif self._has_differenced_newton(problem):
            then = partial(self._differenced_newton, problem, lam, n_threads)
        oracle, weights, squares = problem.make_sums()
        options = {"n_threads": n_threads, "squares": squares}
        options["rounding"] = problem.rounding
        if self.l1_ratio > 0.0:
            steps = SparseSteps(oracle, weights, lam, self.l1_ratio, **options)
            return "lbfgs", steps, then
        return "lbfgs", LBFGSSteps(oracle, weights, lam, **options), then

    def _chain_newton(self, problem, lam, n_threads, w0=None, concave=None):
        oracle, weights, _ = problem.make_sums()
        centered = self._centered(problem) if self.l1_ratio == 0.0 else None
        hessian = self._curvature(problem, centered)
        bend = concave and self._curvature(problem, centered, problem.allowed)
        data, nodes = (oracle, weights, hessian, lam, self.l1_ratio), nodes_of(problem)
        data += n_threads, w0, problem.rounding, nodes, concave, bend, centered
        return ChainNewtonSteps(*data, coupled=coupled_weights(problem.structure))

    def _differenced_newton(self, problem, lam, n_threads, w0, concave=None):
        """The same for other structures, by differences of slopes."""
        oracle, weights, squares = problem.make_sums()
        centered = self._centered(problem)

        def slopes(w):
            return oracle.log_loss(weights, w, n_threads)[1]

        hessian = partial(centered.differences, slopes, squares=squares)
        bend = concave and partial(
            centered.differences, lambda w: concave.at(w)[1], squares=squares
        )
        data = oracle, weights, hessian, lam, self.l1_ratio, n_threads, w0
        data += problem.rounding, nodes_of(problem)
        # The penalty of centered columns is no L1 norm.
        centered = centered if self.l1_ratio == 0.0 else None
        options = {"concave": concave, "bend": bend, "centered": centered}
        options |= {"n_passes": 2 * len(w0), "most_passes": self.max_iter}
        options["coupled"] = coupled_weights(problem.structure)
        return ChainNewtonSteps(*data, **options)

    def _has_differenced_newton(self, problem):
        """Whether it may go on where L-BFGS stalls, with no more passes than allowed."""
        structure = problem.structure
        if problem.is_remote or (problem.has_hidden and self.l1_ratio > 0.0):
            return False
        kinds = ChainStructure, TreeStructure
        is_known = type(structure) in kinds and structure.emission is True
        few = 2 * structure.n_weights_ <= self.max_iter
        return is_known and structure.bias and few

    def _curvature(self, problem, centered, labels=None):
        """w -> second derivatives by the variables of steps."""
        if centered is None:
            return problem.make_curvature(labels).at
        curvature = problem.make_curvature(labels, centered.means)
        return lambda w: centered.hessian(curvature.at(w))

    def _centered(self, problem):
        """The variables for which columns are centered, or None."""
        structure = problem.structure
        if not (structure.emission and structure.bias):
            return None
        _, means, spreads = describe_columns(structure._matrices(problem.X))
        sizes = len(structure.classes_), structure.n_weights_
        return CenteredWeights(means, spreads, *sizes, self.l1_ratio == 0.0)

    def _has_chain_newton(self, problem):
        """Whether sequences have few enough weights for Newton's method."""
        known = not (problem.is_remote or problem.has_hidden)
        return known and has_written_hessian(problem.structure)

    def _resolved_solver(self, problem, state):
        """The resolved solver. `state` is that of the previous fit, or None."""
        if problem.is_remote:
            if problem.structure.has_bounded_sums:
                raise ValueError(
                    f"{type(problem.structure).__name__} needs data in memory here: with "
                    "Dask there are sums over the labelings of chains and trees only."
                )
            if self.l1_ratio == 1.0:
                raise ValueError(
                    "l1_ratio=1.0 needs data in memory; with Dask it must be below 1, "
                    "for example l1_ratio=0.99."
                )
            return "lbfgs"
        structure = problem.structure
        if structure.has_bounded_sums:
            if problem.has_hidden and structure.relaxed:
                raise ValueError(
                    "Labels of graphs with cycles may not be hidden here: a difference "
                    "of two bounds is no bound. Use BCFWClassifier('graph'); of a "
                    "StackedStructureClassifier it is the final_estimator."
                )
            if self.solver in ("dual", "newton") or self.l1_ratio > 0.0:
                raise ValueError(
                    f"{type(structure).__name__} needs solver='lbfgs' (or 'auto') and "
                    f"l1_ratio=0; got solver={self.solver!r} and "
                    f"l1_ratio={self.l1_ratio}."
                )
            return "lbfgs"
        # Like exact steps, it uses rows and classes directly.
        has_newton = has_exact_steps(structure)
        is_few = self._has_chain_newton(problem)
        if self.solver == "newton" and not (has_newton or is_few):
            raise ValueError(
                "solver='newton' requires structure=BinaryStructure, MulticlassStructure "
                "or MultilabelStructure, or a ChainStructure with at most "
                f"{MOST_MODELED} weights, without scores of another model (emission="
                "'given' or 'both') and with all labels known; got "
                f"structure={structure!r} with {structure.n_weights_} weights. Use "
                "solver='dual' or 'lbfgs'."
            )
        if self.solver != "auto":
            return self.solver
        # If there are only weights, ascent was left or never begun.
        has_weights = state is not None and "factors" not in state
        if has_weights and is_few and self.l1_ratio > 0.0:
            return "newton"
        if self.l1_ratio > 0.0 and not has_weights:
            return "dual"
        # With more features, vectors of their length dominate the time of a Newton step,
        # and the dual is the smaller problem.
        is_tall = has_newton and structure.n_features_in_ <= len(problem.weights)
        if is_tall or has_weights:
            return "newton" if has_newton else "lbfgs"
        return "dual"

    def _bind_costs(self, problem):
        """Set the costs that are added to scores in training, if there are any."""
        structure, costs = problem.structure, self.label_costs
        weight = None if structure.flat else self.class_weight
        if costs is None and weight is None:
            if isinstance(structure, NodeStructure):
                y = problem.example[1] if problem.is_remote else problem.y
                warn_of_weights(structure, y)
            return
        name = "class_weight" if costs is None else "label_costs"
        if problem.is_remote:
            raise ValueError(f"{name} of {structure!r} needs data in memory.")
        if structure.multi_label:
            raise ValueError(
                "label_costs compares one label with another, but "
                f"{type(structure).__name__} has several labels: leave it at None."
            )
        if weight is not None:
            labels = problem.targets.known_labels(structure)
            weight = class_weight_vector(weight, structure.classes_, labels)
        costs = square_by_label("label_costs", costs, structure.classes_)
        problem.costs = label_cost_matrix(costs, len(structure.classes_), weight)


def warn_of_weights(structure, y):
    """Say so if nodes have weights, which a likelihood has no place for."""
    if any(split_weights(own)[1] is not None for own in y):
        warn_caller(
            f"y has weights of {structure._place}s, which multiply costs. Without costs "
            "they count in `score` only: pass, for example, label_costs="
            f"1 - numpy.eye({len(structure.classes_)}).",
        )


def is_too_large(oracle):
    """Whether ascent needs too much memory and L-BFGS less; warns if so."""
    needed, instead = dual_memory(oracle), lbfgs_memory(oracle.n_weights)
    if needed <= MOST_MEMORY or instead >= needed:
        return False
    warn_caller(
        f"solver='dual' would keep a distribution for each of {oracle.n_blocks} "
        f"examples, which takes {needed / 1e9:.1f} GB. So solver='lbfgs' is used, which "
        f"takes about {instead / 1e9:.1f} GB. Choose a solver to hide this warning.",
    )
    return True


def make_log_loss(problem, n_threads):
    """The risk of a flat problem."""
    structure = problem.structure
    options = {"bias": structure.bias_, "n_threads": n_threads}
    if problem.costs is not None:
        codes = structure._encode(problem.y)
        options["shift"] = structure._added_scores(problem.costs)[codes]
    if structure.multi_class:
        options["n_classes"] = len(structure.classes_)
        return problem.make_risk(Multinomial, options)
    return problem.make_risk(Logistic, options)


def coupled_weights(structure):
    """Number of weights of features and biases of nodes, and of labels."""
    n_pairs = np.prod(structure._transition_shape()) if structure.transition else 0
    return structure.n_weights_ - n_pairs, len(structure.classes_)


def nodes_of(problem):
    """What makes rows of nodes; None with costs, features of edges or `allowed_`."""
    structure = problem.structure
    has_all = structure.allowed_ is None and problem.costs is None
    is_bare = has_all and len(structure._transition_shape()) == 2
    return partial(rows_of_nodes, problem) if is_bare else None


def rows_of_nodes(problem, w):
    """Nodes of chains and trees as rows; see `ChainNewtonSteps`."""
    structure, X = problem.structure, problem.X
    shares = np.repeat(problem.weights, structure._lengths(X))
    used = shares > 0.0
    marginals = np.concatenate(list(structure.marginals(X, w)))[used]
    truth = structure._truth(X, problem.y)[used]
    rows, k = node_rows(structure, X)[used], len(structure.classes_)
    risk = Multinomial(rows, truth, shares[used], n_classes=k)
    parents, _ = structure._forest(X)
    degrees = np.bincount(parents + 1, minlength=len(parents) + 1)[1:] + (parents >= 0)
    return risk, marginals, float(shares.sum()), degrees[used]
