"""Conditional random fields with a certificate of optimality."""

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_consistent_length

from sklearn_structsvm._utils.arrays import foreign_namespace, refuse_foreign
from sklearn_structsvm._utils.borders import as_floats, check_choice, check_sparse
from sklearn_structsvm._utils.compat import (
    Interval,
    StrOptions,
    available_if,
)
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.problem import (
    StructureName,
    has_exact_steps,
    make_distributed_problem,
    make_problem,
    named_structure,
    refuse_bounds,
)
from sklearn_structsvm.estimators.structured import (
    PROBLEM_CONSTRAINTS,
    DualPoint,
    StructuredClassifier,
    knows,
)
from sklearn_structsvm.risks import Logistic, Multinomial
from sklearn_structsvm.solvers.batch.lbfgs import LBFGSSteps, run_lbfgs
from sklearn_structsvm.solvers.batch.newton import NewtonSteps, run_newton
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent
from sklearn_structsvm.solvers.blocks.crf import Successor, certify, run_crf
from sklearn_structsvm.structures import MulticlassStructure, Structure
from sklearn_structsvm.structures.base import as_object_array

DECODINGS = ("map", "mbr")

# What parameters may be where the examples stay with the workers of a cluster.
DASK_OPTIONS = {"solver": ("auto", "lbfgs"), "warm_start": (False,)}


def log_loss(problem, n_threads):
    """The risk of a flat problem."""
    structure = problem.structure
    options = {"bias": structure.bias_, "n_threads": n_threads}
    if isinstance(structure, MulticlassStructure):
        options["n_classes"] = len(structure.classes_)
        return problem.make_risk(Multinomial, options)
    return problem.make_risk(Logistic, options)


class ProbabilisticClassifier(StructuredClassifier):
    """Predictions by p(y | x) of a conditional random field, its weights given."""

    def _check_structure(self):
        structure = named_structure(self.structure)
        if structure is None or structure.has_sums:
            return
        raise ValueError(
            f"{type(self).__name__} needs a structure that can sum over all labelings: "
            "ChainStructure, TreeStructure, BinaryStructure, MulticlassStructure or "
            f"MultilabelStructure; got {self.structure!r}. For other structures use "
            "BCFWClassifier."
        )

    def predict(self, X: Any) -> np.ndarray:
        """Predict the output of each example according to `decoding`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            One row per example for flat structures. For others, a sequence with one item
            per example, such as arrays or CSR matrices of shape (T_i, n_features) for
            chains.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, a label indicator matrix, or an object array with one labeling
            per example. For a Dask collection the result is a lazy collection, and for a
            list of delayed parts a list of delayed results.
        """
        check_choice("decoding", self.decoding, DECODINGS)
        if self.decoding == "map" or holds_dask(X):
            return super().predict(X)
        X = self._check_X(X, takes_foreign=True)
        structure, n_threads = self.structure_, self._n_threads(X)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X: structure.least_costly(X, structure.marginals(X, w, n_threads)),
                self._no_labels(),
            )

    def _marginals(self, X):
        with self._reading() as w:
            n_threads = self._n_threads(X)
            return self._ask(
                X,
                lambda X: self.structure_.marginals(X, w, n_threads),
                self._no_scores(),
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute the marginal probabilities of the classes.

        Parameters
        ----------
        X : as in `fit`
            Input data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Probabilities of the classes, in the order of `classes_`, or of the presence
            of each label. For chains and trees an object array of shape (n_samples,),
            whose item i has shape (T_i, n_classes): the marginals at each position.

        See Also
        --------
        cross_val_predict_proba : The same, by fits to other sequences.
        """
        return self._marginals(self._check_X(X, takes_foreign=True))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Compute the logarithms of the marginal probabilities.

        Parameters
        ----------
        X : as in `fit`
            Input data.

        Returns
        -------
        ndarray
            As for `predict_proba`, with -inf where a probability underflows to zero.
        """
        proba = self._marginals(self._check_X(X, takes_foreign=True))
        with np.errstate(divide="ignore"):
            if self.structure_.flat:
                xp = foreign_namespace(proba)
                return np.log(proba, out=proba) if xp is None else xp.log(proba)
            return as_object_array([np.log(item) for item in proba])

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        r"""Compute the log-likelihood of the whole labeling of each example.

        Parameters
        ----------
        X, y : as in `fit`
            Input data and labelings.

        Returns
        -------
        ndarray of shape (n_samples,)
            :math:`\log p(y_i \mid x_i)`, and -inf for a labeling with a label that was
            not seen in `fit`.
        """
        X = self._check_X(X)
        refuse_foreign(y=y)
        require_y(self, y)
        if not self.structure_.flat:
            _, y = self.structure_.check_data(X, y)
        else:
            check_sparse(y, "y")
            refuse_missing(y)
            y = y.toarray() if sparse.issparse(y) else np.asarray(y)
            check_consistent_length(X, y)
        return self._log_probabilities(X, y)

    def _log_probabilities(self, X, y):
        n_threads, w = count_threads(self.n_jobs), self._weights
        # There is one labeling of nothing.
        return self._ask(
            X,
            lambda X, y: self.structure_.log_probabilities(X, y, w, n_threads),
            nothing=0.0,
            y=y,
        )

    def entropy(self, X: Any) -> np.ndarray:
        r"""Compute the entropy of the predicted distribution of each example, in nats.

        Parameters
        ----------
        X : as in `fit`
            Input data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Entropies of :math:`p(y \mid x_i)`, from 0, if one labeling is certain, to the
            logarithm of the number of labelings.
        """
        X = self._check_X(X)
        n_threads, w = count_threads(self.n_jobs), self._weights
        return self._ask(
            X, lambda X: self.structure_.entropies(X, w, n_threads), nothing=0.0
        )

    @available_if(knows("k_best"))
    def predict_k_best(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most probable labelings of each example, with their probabilities.

        Parameters
        ----------
        X : sequence of n_samples examples
            Sequences or trees, as in `fit`.
        k : int, default=5
            Number of labelings.

        Returns
        -------
        labelings : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i, T_i), with the most probable labeling first. m_i is k,
            or the number of labelings if that is smaller.
        probabilities : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i,).
        """
        labelings, scores = super().predict_k_best(X, k)
        X = self._check_X(X)
        best = [items[0] for items in labelings]
        logs = self._log_probabilities(X, best)
        probabilities = [
            np.exp(log + (values - values[0]))
            for log, values in zip(logs, scores, strict=True)
        ]
        return labelings, as_object_array(probabilities)


class CRFClassifier(ProbabilisticClassifier):
    r"""Conditional random field with a certificate of optimality.

    The weight vector w solves

    .. math::

        \min_w \; \frac{1}{2} \|w\|^2 - C \sum_i s_i \log p(y_i \mid x_i, w)

    for sample weights :math:`s_i` and the probabilities

    .. math::

        p(y \mid x, w) = \frac{\exp \langle w, \phi(x, y) \rangle}
        {\sum_{y'} \exp \langle w, \phi(x, y') \rangle}.

    The structure defines the joint feature map :math:`\phi`. The model is a linear-chain
    conditional random field for sequences, a tree-structured one for trees, and logistic
    regression for flat data.

    Results are reported for the normalised objective :math:`\frac{\lambda}{2} \|w\|^2 -
    \frac{1}{\sum_i s_i} \sum_i s_i \log p(y_i \mid x_i, w)`, where
    :math:`\lambda = 1 / (C \sum_i s_i)`.

    Read more in the :ref:`User Guide <guide-probabilities>`.

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        The structure to predict: a `ChainStructure`, `TreeStructure`, `BinaryStructure`,
        `MulticlassStructure` or `MultilabelStructure`. These allow sums over all
        labelings. "auto" infers it from the data: binary, multiclass or multilabel
        targets or, if X holds one 2-D array per example, label sequences. A string
        selects a built-in structure, see `BCFWClassifier`. The loss of the structure
        matters only for ``decoding="mbr"``.
    C : float, default=1.0
        Inverse of the regularization strength. Must be positive; smaller values mean
        stronger regularization. The corresponding `c2` of CRFsuite is 1 / (2 C).
    fit_intercept : bool, default=True
        Whether to fit an intercept (flat structures only). As in `LinearSVC`, and unlike
        in `LogisticRegression`, the intercept is the weight of a constant feature, so it
        is regularized.
    intercept_scaling : float, default=1.0
        Value of the constant feature. Larger values regularize the intercept less.
    classes : array-like or None, default=None
        All class labels. Pass them if y may lack some, for example in a fold of a
        cross-validation. None uses the labels in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the weights of the examples of a class. Only
        for flat structures with one label per example.
    solver : {"auto", "dual", "lbfgs", "newton"}, default="auto"
        The optimization algorithm.

        - "dual" is accelerated [2]_ stochastic dual coordinate ascent, which updates the
          distribution over the labelings of one example at a time [1]_.
        - "lbfgs" takes quasi-Newton steps on all examples at once, and uses all `n_jobs`
          threads.
        - "newton" takes Newton steps by conjugate gradients (flat structures only). It is
          by far the fastest for high accuracy and for large `C`.
        - "auto" is "newton" for flat structures with no more features than examples,
          "lbfgs" for Dask collections, where it is the only choice, and otherwise "dual".
          If "dual" is expected to need many more passes, "auto" goes on with "newton"
          (flat structures) or "lbfgs".
    sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
        How ``solver="dual"`` draws examples: in proportion to their block duality gaps,
        uniformly, or once per pass in random order. "auto" is "permuted".
    acceleration : bool or "auto", default="auto"
        Whether to accelerate the steps of ``solver="dual"``. "auto" starts the
        acceleration once at least a dozen more passes are expected, but never with
        ``sampling="gap"``. True starts it at the first pass.
    decoding : {"map", "mbr"}, default="map"
        What `predict` returns. "map" is the most probable labeling. "mbr" (minimum Bayes
        risk) is the labeling with the smallest expected loss, by the Hamming loss or the
        label costs of the structure. For the Hamming loss it consists of the most
        probable label at each position. `decoding` may be changed after `fit`.
    tol : float, default=1e-3
        Stop once `dual_gap_` is at most this value.
    max_iter : int, default=1000
        Maximum number of passes over the data.
    max_time : float or None, default=None
        Time limit in seconds. A fit that is cut short by it is not reproducible bit for
        bit, because the number of passes then depends on the load of the machine.
    gap_check_interval : int, default=10
        Number of passes of ``solver="dual"`` between two computations of the duality gap,
        each of which costs about half a pass. The gap is computed earlier if the last
        known block gaps suggest that `tol` is reached. The other solvers compute the gap
        at no extra cost.
    warm_start : bool, default=False
        Whether to start from the dual solution (for the other solvers, the weights) of
        the previous fit. y must be the same; C, the sample weights, X and the solver may
        change. An interrupted fit of "dual" then keeps the progress it has made.
    n_jobs : int or None, default=None
        Number of threads. Steps of "dual" run in parallel: each thread works on a part of
        the examples, and the parts are merged ten times per pass. A `sampling` other than
        "permuted", and data with fewer than a few hundred examples use one thread. Gap
        checks, the other solvers and predictions use all threads if the package was built
        with OpenMP.
    random_state : int, RandomState instance or None, default=None
        Controls the order in which examples are drawn. With an int and a fixed `n_jobs`,
        fits are reproducible bit for bit.
    verbose : int, default=0
        If nonzero, print one line per gap check.

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
        Normalised objective at `coef_`, and a lower bound on its minimum.
    n_iter_ : int
        Number of passes over the data or, for "lbfgs" and "newton", of steps.
    n_oracle_calls_ : int
        Number of times that the labelings of an example were summed over (including gap
        checks) or that its Hessian was multiplied by a vector.
    history_ : dict of ndarray
        Progress at each gap check: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    solver_ : str
        The solver that the fit ended with, with "auto" resolved.
    n_features_in_ : int
        Number of features of an example or, for sequences, of a position.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names seen in `fit`. Defined only if X has column names.

    See Also
    --------
    CRFClassifierCV : Chooses C by cross-validation.
    BCFWClassifier : Maximises margins rather than likelihood, for any structure.
    sklearn.linear_model.LogisticRegression : Flat data, with an unregularized intercept.

    Notes
    -----
    Apart from the intercept, a flat fit has the same coefficients as `LogisticRegression`
    with the same C. A chain with C = 1 / (2 c2) has the same coefficients as CRFsuite
    with all transitions and states; ``ChainStructure(bias=False, first_bias=False,
    last_bias=False)`` has the same features.

    References
    ----------
    .. [1] Le Priol, Piché, Lacoste-Julien, "Adaptive stochastic dual coordinate ascent
       for conditional random fields", UAI 2018.
    .. [2] Lin, Mairal, Harchaoui, "A universal catalyst for first-order optimization",
       NeurIPS 2015.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = CRFClassifier(C=0.1, random_state=0).fit(X[:30], y[:30])
    >>> model.dual_gap_ <= 1e-3
    True
    >>> proba = model.predict_proba(X[30:])
    >>> proba[0].shape == (len(X[30]), len(model.classes_))
    True
    """

    solver_: str

    _dual_entries = ("weights",)
    _parameter_constraints: dict = {
        **PROBLEM_CONSTRAINTS,
        "C": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "dual", "lbfgs", "newton"})],
        "decoding": [StrOptions(set(DECODINGS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "gap_check_interval": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        structure: StructureName | Structure = "auto",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        solver: Literal["auto", "dual", "lbfgs", "newton"] = "auto",
        sampling: Literal["auto", "gap", "uniform", "permuted"] = "auto",
        acceleration: bool | Literal["auto"] = "auto",
        decoding: Literal["map", "mbr"] = "map",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        gap_check_interval: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.solver = solver
        self.sampling = sampling
        self.acceleration = acceleration
        self.decoding = decoding
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.gap_check_interval = gap_check_interval
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            example.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights of the examples. None gives each example a weight of 1.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit_or_restore(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, transaction):
        data = (X, y, sample_weight)
        self._check_structure()
        if holds_dask(*data):
            with make_distributed_problem(self, *data, DASK_OPTIONS) as problem:
                self._check_class_weight(problem)
                refuse_bounds(problem.structure, type(self).__name__)
                self.solver_ = "lbfgs"
                # As many as there are; their weights are with them.
                oracle = problem.make_sums()
                weights = np.broadcast_to(1.0, oracle.n_blocks)
                squares = oracle.mean_squares()
                self._train_lbfgs(problem, oracle, weights, squares, data, transaction)
            return
        problem = make_problem(self, X, y, sample_weight)
        self._check_class_weight(problem)
        refuse_bounds(problem.structure, type(self).__name__)
        key = self._dual_key(problem, {})
        state = self._warm_state(key, transaction.previous, {})
        self.solver_ = self._settle_solver(problem, state)
        if self.solver_ != "dual":
            w0 = None
            if state is not None:
                w0 = as_floats("weights", state["weights"], problem.structure.n_weights_)
            if self.solver_ == "newton":
                self._train_newton(problem, data, transaction, w0)
            else:
                oracle = problem.make_oracle()
                squares = problem.structure._mean_squares(problem.X, problem.weights)
                weights = problem.weights
                self._train_lbfgs(
                    problem, oracle, weights, squares, data, transaction, w0
                )
            if key is not None:
                state = {"weights": self._weights}
                self._dual_state = {"key": key, "state": state}
            return
        self._train_dual(problem, data, transaction, key, state)

    def _train_dual(self, problem, data, transaction, key, state):
        lam, limits = problem.lam(self.C), self._limits()
        n_threads = limits["n_threads"]
        ascent = MarginalAscent(problem.make_oracle(), problem.weights, lam)
        if state is not None:
            ascent.set_state(state)
        dual = DualPoint(
            ascent, partial(certify, ascent, n_threads), key, {"solver_": "dual"}
        )

        def hand_over(row):
            name, steps = self._make_steps(problem, lam, n_threads)
            dual.iterate = successor = Successor(steps, row, ascent.weights.copy())
            dual.certify = successor.check
            dual.settled["solver_"] = name
            return successor

        self._run(
            problem,
            data,
            transaction,
            partial(
                run_crf,
                ascent,
                sampling=self.sampling,
                acceleration=self.acceleration,
                gap_check_interval=self.gap_check_interval,
                rng=self._rng(),
                successor=hand_over if self.solver == "auto" else None,
                **limits,
            ),
            "Dual ascent",
            dual=dual,
        )

    def _make_steps(self, problem, lam, n_threads):
        """The solver that follows a slow ascent: its name, and steps of it.

        From zero: the scores that ascent leaves are too large for Newton's method, which
        takes a hundred times as many products from there.
        """
        if has_exact_steps(problem.structure):
            risk = log_loss(problem, n_threads)
            return "newton", NewtonSteps(risk, lam, self.tol)
        squares = problem.structure._mean_squares(problem.X, problem.weights)
        oracle = problem.make_oracle()
        steps = LBFGSSteps(oracle, problem.weights, lam, n_threads, squares=squares)
        return "lbfgs", steps

    def _settle_solver(self, problem, state):
        """What `solver` stands for, where `state` is that of a fit before, or None."""
        structure = problem.structure
        # As exact steps do, it takes rows and classes as they are.
        has_newton = has_exact_steps(structure)
        if self.solver == "newton" and not has_newton:
            raise ValueError(
                "solver='newton' requires structure=BinaryStructure, MulticlassStructure "
                f"or MultilabelStructure; got structure={type(structure).__name__}. Use "
                "solver='dual' or 'lbfgs'."
            )
        if self.solver != "auto":
            return self.solver
        # With more features, vectors of their length are what takes the time of a Newton
        # step, and the dual is the smaller problem.
        is_tall = has_newton and structure.n_features_in_ <= len(problem.weights)
        # Ascent was left, or not begun, where there are weights alone.
        has_weights = state is not None and "factors" not in state
        if is_tall or has_weights:
            return "newton" if has_newton else "lbfgs"
        return "dual"

    def _train_newton(self, problem, data, transaction, w0):
        limits = self._limits()
        risk = log_loss(problem, limits.pop("n_threads"))
        solve = partial(run_newton, risk, problem.lam(self.C), w0=w0, **limits)
        self._run(problem, data, transaction, solve, "Newton's method")

    def _train_lbfgs(self, problem, oracle, weights, squares, data, transaction, w0=None):
        solve = partial(
            run_lbfgs,
            oracle,
            weights,
            problem.lam(self.C),
            w0=w0,
            squares=squares,
            **self._limits(),
        )
        self._run(problem, data, transaction, solve, "L-BFGS")

    def _check_class_weight(self, problem):
        structure = problem.structure
        if self.class_weight is not None and not structure.flat:
            raise ValueError(
                f"class_weight cannot be used with {type(structure).__name__} here, "
                "because the likelihood is that of whole labelings. Use sample_weight, "
                "or decoding='mbr' with label_costs of the structure."
            )
