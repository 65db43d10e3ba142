"""CRFClassifier: conditional random fields with a certificate of optimality."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if

from sklearn_structsvm._utils.borders import as_floats, check_choice, check_sparse
from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.problem import (
    has_exact_steps,
    make_distributed_problem,
    make_problem,
    named_structure,
)
from sklearn_structsvm.estimators.structured import (
    PROBLEM_CONSTRAINTS,
    DualPoint,
    StructuredClassifier,
    knows,
)
from sklearn_structsvm.risks import Logistic, Multinomial
from sklearn_structsvm.solvers.batch.lbfgs import run_lbfgs
from sklearn_structsvm.solvers.batch.newton import run_newton
from sklearn_structsvm.solvers.blocks._crf import MarginalAscent
from sklearn_structsvm.solvers.blocks.crf import certify, run_crf
from sklearn_structsvm.structures import MulticlassStructure
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
            f"{type(self).__name__} needs a structure over whose labelings sums can be "
            "computed: ChainStructure, TreeStructure, BinaryStructure, "
            f"MulticlassStructure or MultilabelStructure; got {self.structure!r}. "
            "BCFWClassifier takes any."
        )

    def predict(self, X):
        """Predict the output of each example, by `decoding`.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, indicators, or an object array holding one labeling per
            example. Of a Dask collection one, or of delayed parts such a list, that is
            computed when it is asked for.
        """
        check_choice("decoding", self.decoding, DECODINGS)
        if self.decoding == "map" or holds_dask(X):
            return super().predict(X)
        X = self._check_X(X)
        return self.structure_.least_costly(X, self._marginals(X))

    def _marginals(self, X):
        with self._reading() as w:
            return self.structure_.marginals(X, w, self._n_threads(X))

    def predict_proba(self, X):
        """Probabilities of the classes, of each position where there are several.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Of the classes in the order of `classes_`; or of each label that it is
            present. For chains and trees an object array of shape (n,), whose item i has
            shape (T_i, n_classes): the marginals of the distribution over the labelings.
        """
        return self._marginals(self._check_X(X))

    def predict_log_proba(self, X):
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray
            As of `predict_proba`; -inf where a probability is too small for a number.
        """
        proba = self._marginals(self._check_X(X))
        with np.errstate(divide="ignore"):
            if self.structure_.flat:
                return np.log(proba)
            return as_object_array([np.log(item) for item in proba])

    def log_likelihood(self, X, y):
        """log p(y_i | x_i) of each example: of the whole of its labeling.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
            -inf for a labeling with a label that was not there in `fit`.
        """
        X = self._check_X(X)
        require_y(self, y)
        if not self.structure_.flat:
            _, y = self.structure_.check_data(X, y)
        else:
            check_sparse(y, "y")
            y = y.toarray() if sparse.issparse(y) else np.asarray(y)
            check_consistent_length(X, y)
        n_threads = count_threads(self.n_jobs)
        return self.structure_.log_probabilities(X, y, self._weights, n_threads)

    def entropy(self, X):
        """Entropy of p(y | x_i) of each example, in nats: how unsure the model is.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
            From 0, where one labeling is certain, to the logarithm of their number.
        """
        X = self._check_X(X)
        return self.structure_.entropies(X, self._weights, count_threads(self.n_jobs))

    @available_if(knows("k_best"))
    def predict_k_best(self, X, k=5):
        """The k most probable labelings of each example, with their probabilities.

        Parameters
        ----------
        X : sequence of n examples
            Sequences or trees, as in `fit`.
        k : int

        Returns
        -------
        labelings : ndarray of shape (n,), dtype object
            Item i has shape (m_i, T_i), most probable labeling first; m_i is k, or less
            where there are fewer labelings.
        probabilities : ndarray of shape (n,), dtype object
            Item i has shape (m_i,).
        """
        labelings, scores = super().predict_k_best(X, k)
        X = self._check_X(X)
        best = [items[0] for items in labelings]
        n_threads = count_threads(self.n_jobs)
        logs = self.structure_.log_probabilities(X, best, self._weights, n_threads)
        probabilities = [
            np.exp(log + (values - values[0]))
            for log, values in zip(logs, scores, strict=True)
        ]
        return labelings, as_object_array(probabilities)


class CRFClassifier(ProbabilisticClassifier):
    """Conditional random field: probabilities of labelings, with a certificate.

    Minimises over w ::

        1/2 ||w||² - C Σ_i s_i log p(y_i | x_i, w),
        p(y | x, w) = exp ⟨w, φ(x, y)⟩ / Σ_y' exp ⟨w, φ(x, y')⟩,

    for sample weights s_i and a joint feature φ that the structure defines: a
    linear-chain conditional random field for sequences, the same for trees, and logistic
    regression for flat data. What is reported is of the normalised form
    λ/2 ||w||² - (Σ_i s_i log p(y_i | x_i, w)) / Σ_i s_i with λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted: a `ChainStructure`, `TreeStructure`, `BinaryStructure`,
        `MulticlassStructure` or `MultilabelStructure`, over whose labelings sums can be
        computed. "auto" reads y: two classes, several classes, a multilabel indicator, or
        (where X holds one 2-D item per example) sequences of labels. Or a name: see
        `BCFWClassifier`. The losses of the structure have a part in ``decoding="mbr"``
        alone.
    C : float, default=1.0
        Inverse strength of the regularization. That of CRFsuite is c2 = 1 / (2 C).
    fit_intercept : bool, default=True
        Whether flat structures get an intercept. As in LinearSVC it is the weight of a
        constant feature, and regularized, other than that of LogisticRegression.
    intercept_scaling : float, default=1.0
        Value of that feature: the larger, the less the intercept is regularized.
    classes : array-like or None, default=None
        All labels, where those of y may be only a part, as in a fold of a
        cross-validation. None: those of y.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the examples of a class. For flat structures with one
        label per example.
    solver : {"auto", "dual", "lbfgs", "newton"}, default="auto"
        "dual" is ascent of the dual, one example at a time, over their distributions
        [1]_, accelerated [2]_. "lbfgs" makes quasi-Newton steps on all examples at once;
        its sums take all of `n_jobs` threads. "newton", for flat structures, makes Newton
        steps by conjugate gradients: the fastest by far to high accuracy, and for large
        C. "auto": newton for flat structures with no more features than examples, else
        dual; of Dask collections lbfgs, the only one that trains on them.
    sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
        How ``solver="dual"`` draws examples: by their share of the duality gap,
        uniformly, or each once per pass in a random order. "auto": permuted.
    acceleration : bool or "auto", default="auto"
        Whether its steps are accelerated. "auto": once a dozen passes or more are
        foreseen, but not with ``sampling="gap"``. True: from the first pass on.
    decoding : {"map", "mbr"}, default="map"
        What `predict` returns. "map": the most probable labeling. "mbr" (minimum Bayes
        risk): the labeling of least expected loss, that is, of the Hamming distance or
        the label costs of the structure; for the Hamming distance each position's most
        probable label. It can be set after fit.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=1000
        Passes over the data.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    gap_check_interval : int, default=10
        Passes of ``solver="dual"`` between two computations of the true gap, each of
        which costs about half a pass. It is computed sooner where the gaps of the
        examples, as last seen, let expect that `tol` is reached. The others have it for
        nothing.
    warm_start : bool, default=False
        Keep the dual point, or for other solvers the weights, and start the next fit
        from there. Its y must be the same; C, the sample weights, X and the solver may
        differ.
        A fit by "dual" that is interrupted then leaves the estimator as far as it got.
    n_jobs : int or None, default=None
        Threads. Steps of "dual" are made by all of them, each on a part of the examples,
        and joined ten times a pass; a `sampling` other than permuted, and fewer than a
        few hundred examples are for one thread. Gap checks, the other solvers and
        predictions use them where the package was built with OpenMP.
    random_state : int, RandomState instance or None, default=None
        Which examples are drawn. With an int a fit is repeated bit for bit whatever the
        load of the machine, for the same `n_jobs`.
    verbose : int, default=0
        Print a line per gap check.

    Attributes
    ----------
    coef_ : ndarray
        For flat structures of shape (1, n_features), (n_classes, n_features) or
        (n_labels, n_features); else w, of shape (d,), whose parts
        ``structure_.weight_parts(coef_)`` names.
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Flat structures only.
    classes_ : ndarray
        The labels.
    structure_ : Structure
        The structure, fitted.
    dual_gap_ : float
        An upper bound on how far `objective_` is from the optimum, computed at
        `coef_`.
    objective_, dual_objective_ : float
        Of the normalised form, at `coef_`.
    n_iter_ : int
        Passes; steps of "lbfgs" and "newton".
    n_oracle_calls_ : int
        Sums over the labelings of an example, those of the gap checks included, and its
        products with a Hessian.
    history_ : dict of ndarray
        What the gap checks saw: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    solver_ : str
        What "auto" stood for.
    n_features_in_ : int
        Features of an example, or of a position of a sequence.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    CRFClassifierCV : Chooses C by cross-validation.
    BCFWClassifier : Margins in the place of probabilities; any structure.
    sklearn.linear_model.LogisticRegression : Flat data, intercept not regularized.

    Notes
    -----
    The intercept aside, a flat fit has the coefficients of LogisticRegression with the
    same C. A chain with C = 1 / (2 c2) has those of CRFsuite with all transitions and
    states, ``ChainStructure(bias=False, first_bias=False, last_bias=False)`` having the
    same features.

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
        structure="auto",
        *,
        C=1.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        solver="auto",
        sampling="auto",
        acceleration="auto",
        decoding="map",
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        gap_check_interval=10,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
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

    def fit(self, X, y, sample_weight=None):
        """Train on examples and their outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            Rows, or for chains and trees a sequence of n items, such as arrays or CSR
            matrices of shape (T_i, n_features). Or a Dask array or data frame of rows, a
            Dask bag of such items, or a list of delayed lists of them; y and
            sample_weight are such ones too then.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or sequence
            Class labels of any kind, an indicator, or one labeling per example.
        sample_weight : array-like of shape (n_samples,) or None
            Non-negative weights of the examples.

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, transaction):
        data = (X, y, sample_weight)
        self._check_structure()
        if holds_dask(*data):
            with make_distributed_problem(self, *data, DASK_OPTIONS) as problem:
                self._check_class_weight(problem)
                self.solver_ = "lbfgs"
                # As many as there are; their weights are with them.
                oracle = problem.make_sums()
                weights = np.broadcast_to(1.0, oracle.n_blocks)
                self._train_lbfgs(problem, oracle, weights, data, transaction)
            return
        problem = make_problem(self, X, y, sample_weight)
        self._check_class_weight(problem)
        key = self._dual_key(problem, {})
        state = self._warm_state(key, transaction.before, {})
        self.solver_ = self._settle_solver(problem)
        if self.solver_ != "dual":
            w0 = None
            if state is not None:
                w0 = as_floats("weights", state["weights"], problem.structure.n_weights_)
            if self.solver_ == "newton":
                self._train_newton(problem, data, transaction, w0)
            else:
                oracle = problem.make_oracle()
                self._train_lbfgs(problem, oracle, problem.weights, data, transaction, w0)
            if key is not None:
                state = {"weights": self._weights}
                self._dual_state = {"key": key, "state": state}
            return
        lam = problem.lam(self.C)
        ascent = MarginalAscent(problem.make_oracle(), problem.weights, lam)
        if state is not None:
            ascent.set_state(state)
        limits = self._limits()
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
                **limits,
            ),
            "Dual ascent",
            dual=DualPoint(ascent, partial(certify, ascent, limits["n_threads"]), key),
        )

    def _settle_solver(self, problem):
        """What `solver` stands for."""
        structure = problem.structure
        # As exact steps do, it takes rows and classes as they are.
        has_newton = has_exact_steps(structure)
        if self.solver == "newton" and not has_newton:
            raise ValueError(
                "solver='newton' is for BinaryStructure, MulticlassStructure and "
                f"MultilabelStructure; for {type(structure).__name__} use 'dual' or "
                "'lbfgs'."
            )
        if self.solver != "auto":
            return self.solver
        # With more features, vectors of their length are what takes the time of a Newton
        # step, and the dual is the smaller problem.
        is_tall = has_newton and structure.n_features_in_ <= len(problem.weights)
        return "newton" if is_tall else "dual"

    def _train_newton(self, problem, data, transaction, w0):
        limits = self._limits()
        risk = log_loss(problem, limits.pop("n_threads"))
        solve = partial(run_newton, risk, problem.lam(self.C), w0=w0, **limits)
        self._run(problem, data, transaction, solve, "Newton's method")

    def _train_lbfgs(self, problem, oracle, weights, data, transaction, w0=None):
        lam = problem.lam(self.C)
        solve = partial(run_lbfgs, oracle, weights, lam, w0=w0, **self._limits())
        remedy = "" if holds_dask(*data) else "solver='dual' or "
        self._run(problem, data, transaction, solve, "L-BFGS", remedy=remedy)

    def _check_class_weight(self, problem):
        structure = problem.structure
        if self.class_weight is not None and not structure.flat:
            raise ValueError(
                f"class_weight has no meaning for {type(structure).__name__} here: it "
                "would weigh positions, and what is summed up are labelings. Use "
                "sample_weight, or label_costs of the structure with decoding='mbr'."
            )
