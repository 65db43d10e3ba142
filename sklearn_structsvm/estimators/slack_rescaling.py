"""SlackRescaledSSVM: structural SVMs whose margins do not grow with the loss."""

from functools import partial
from numbers import Integral, Real

from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.problem import (
    check_bounds,
    make_distributed_problem,
    make_problem,
    refuse_bounds,
)
from sklearn_structsvm.estimators.structured import (
    TRAINING_CONSTRAINTS,
    StructuredClassifier,
)
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.sgd import run_sgd
from sklearn_structsvm.solvers.blocks.slack_search import SEARCHES, check_search


class SlackRescaledSSVM(StructuredClassifier):
    """Structural support vector machine with slack rescaling.

    Minimises over w ::

        1/2 ||w||² + C Σ_i s_i H_i(w),
        H_i(w) = max_y L(y_i, y) (1 + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩),

    for sample weights s_i, a loss L and a joint feature φ that the structure defines.
    A wrong output costs in proportion to its loss, but only while it is not beaten by a
    margin of 1; with the margin rescaling of `BCFWClassifier` an output of large loss
    has to be beaten by a large margin, and one that nobody would predict can decide
    the weights. Slack rescaling can predict better where losses differ much, as in
    large hierarchies of labels, and to change the unit of the loss only changes C.

    The maximum is a product, which decoders cannot maximise. It is found exactly, by
    one of the searches of [1]_ on top of the structure's ordinary decoders. What is
    reported is of the normalised form λ/2 ||w||² + (Σ_i s_i H_i(w)) / Σ_i s_i with
    λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted. "auto" reads y: two classes, several classes, a multilabel
        indicator, or (where X holds one 2-D item per example) sequences of labels.
        Or its name: "binary", "multiclass", "multilabel", "pairwise", "chain", "tree" or
        "graph", with default parameters. Name it where scikit-learn has to know
        beforehand: it refuses a y that is a list of lists in a search or a
        cross-validation with "auto", and takes it with "chain".
    rescaling : {"slack", "margin"}, default="slack"
        "margin" minimises what `BCFWClassifier` does, for comparison in a grid search.
    search : {"angular", "exact", "bisecting", "binary", "sarawagi"}, default="angular"
        How the most violating output is found (slack rescaling only). "angular" always
        finds it; a structure of your own must define `constrained_decode` or
        `slack_augmented_decode` for it. "exact" scans the best outputs of each loss,
        where the structure can list them: all built-in ones can, but for
        `PairwiseMultilabelStructure` with inference="lp". The others need the
        max-oracle alone and can miss it; `dual_gap_` is then as large as their bounds
        make it. "sarawagi" needs ``solver="cutting_plane"``.
    solver : {"bcfw", "sgd", "cutting_plane"}, default="bcfw"
        Block-coordinate Frank-Wolfe, stochastic subgradients, or cutting planes.
    C : float, default=1.0
        Inverse strength of the regularization.
    fit_intercept : bool, default=True
        Whether flat structures get an intercept. As in LinearSVC it is the weight of a
        constant feature, and regularized.
    intercept_scaling : float, default=1.0
        Value of that feature: the larger, the less the intercept is regularized.
    classes : array-like or None, default=None
        All labels, where those of y may be only a part, as in a fold of a
        cross-validation. None: those of y.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the examples of a class, or for chains and trees the
        costs of the positions whose true label it is.
    search_rtol : float, default=1e-6
        A search may stop at an output whose violation is within this share of the
        largest. The gap accounts for it, so that `tol` should not be smaller than this
        share of the objective.
    max_queries : int, default=1000
        Calls of a decoder after which a search stops with what it has.
    formulation : {"n-slack", "one-slack"}, default="n-slack"
        Of the cutting planes: one set of them for each example, or one for all.
    step : {"auto", "corrective", "fw", "pairwise", "away"}, default="auto"
        Steps of BCFW, see `BCFWClassifier`.
    sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
        How BCFW and SGD draw examples: by their share of the duality gap (BCFW only),
        uniformly, or each once per pass in a random order. "auto": permuted, but gap for
        BCFW without acceleration.
    acceleration : bool or "auto", default="auto"
        Whether steps of BCFW are accelerated, see `BCFWClassifier`.
    cache : bool or "auto", default="auto"
        Whether BCFW tries the outputs found before, ahead of a search.
    average : bool or "auto", default="auto"
        Whether to return the weighted average of the iterates, by BCFW only where a fit
        ends before its `tol`. "auto": for SGD.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=1000
        Passes over the data; rounds of cutting planes.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    gap_check_interval : int, default=10
        Passes between two computations of the true gap, each of which costs about one
        pass. Cutting planes know it each round.
    warm_start : bool, default=False
        Keep the dual point and start the next fit from it (BCFW only); see
        `BCFWClassifier`.
    n_jobs : int or None, default=None
        Threads, for the built-in structures. Steps that keep labelings (corrective,
        pairwise and away ones) are made by all of them, each on a part of the examples,
        and joined ten times a pass; plain steps, averages, a `sampling` other than
        permuted, and fewer than a few hundred examples are for one thread. Gap checks and
        `predict` use them where the package was built with OpenMP.
    random_state : int, RandomState instance or None, default=None
        Which examples are drawn. With an int a fit is repeated bit for bit whatever the
        load of the machine, for the same `n_jobs`.
    verbose : int, default=0
        Print a line per gap check.

    Attributes
    ----------
    coef_ : ndarray
        For flat structures of shape (1, n_features), (n_classes, n_features) or
        (n_labels, n_features); else w, of shape (d,).
    intercept_ : ndarray of shape (`coef_.shape[0]`,)
        Flat structures only.
    classes_ : ndarray
        The labels, for structures that have them.
    structure_ : Structure
        The structure, fitted.
    dual_gap_ : float
        An upper bound on how far `objective_` is from the optimum, computed at `coef_`
        from the bounds that the searches give: they are exact for "angular" (within
        `search_rtol`) and "exact".
    objective_, dual_objective_ : float
        Of the normalised form, at `coef_`; `objective_` is counted with the searches'
        bounds and so never below the true one.
    n_iter_ : int
        Passes or rounds.
    n_oracle_calls_ : int
        Searches, those of the gap checks included.
    n_queries_ : int
        Calls of the decoders in all searches: of the λ-oracle, constrained or not.
    history_ : dict of ndarray
        What the gap checks saw: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    step_, cache_ : str, bool
        What "auto" was settled to (BCFW only).
    n_features_in_ : int
        Features of an example, or of a position of a sequence.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    BCFWClassifier : Margin rescaling, with a few more options.
    sklearn_structsvm.plotting.LabelMapDisplay : What a search sees.

    References
    ----------
    .. [1] Choi, Meshi, Srebro, "Fast and scalable structural SVM with slack rescaling",
       AISTATS 2016.

    Examples
    --------
    >>> from sklearn_structsvm import SlackRescaledSSVM
    >>> from sklearn_structsvm.datasets import make_multilabel
    >>> X, Y = make_multilabel(n_samples=60, random_state=0)
    >>> model = SlackRescaledSSVM(C=0.1, tol=0.01, random_state=0).fit(X, Y)
    >>> model.dual_gap_ <= 0.01
    True
    >>> model.predict(X).shape == Y.shape
    True
    """

    step_: str
    cache_: bool
    n_queries_: int

    _parameter_constraints: dict = {
        **TRAINING_CONSTRAINTS,
        "rescaling": [StrOptions({"slack", "margin"})],
        "search": [StrOptions(set(SEARCHES))],
        "solver": [StrOptions({"bcfw", "sgd", "cutting_plane"})],
        "search_rtol": [Interval(Real, 0, 1, closed="left")],
        "max_queries": [Interval(Integral, 1, None, closed="left")],
        "formulation": [StrOptions({"n-slack", "one-slack"})],
        "average": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        structure="auto",
        *,
        rescaling="slack",
        search="angular",
        solver="bcfw",
        C=1.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        classes=None,
        class_weight=None,
        search_rtol=1e-6,
        max_queries=1000,
        formulation="n-slack",
        step="auto",
        sampling="auto",
        acceleration="auto",
        cache="auto",
        average="auto",
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
        self.rescaling = rescaling
        self.search = search
        self.solver = solver
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.search_rtol = search_rtol
        self.max_queries = max_queries
        self.formulation = formulation
        self.step = step
        self.sampling = sampling
        self.acceleration = acceleration
        self.cache = cache
        self.average = average
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
            Rows, or for other than flat structures a sequence of n items, such as
            arrays or CSR matrices of shape (T_i, n_features) for chains. Or a Dask
            array or data frame of rows, a Dask bag of such items, or a list of delayed
            lists of them; y and sample_weight are such ones too then.
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
        self._check_combination()
        if holds_dask(X, y, sample_weight):
            self._fit_to_dask((X, y, sample_weight), transaction)
            return
        problem = make_problem(self, X, y, sample_weight)
        oracle = problem.make_oracle()
        if self.rescaling == "slack":
            check_search(oracle, self.search, type(problem.structure).__name__)
            oracle = SlackOracle(oracle, self.search, self.search_rtol, self.max_queries)
        data = (X, y, sample_weight)
        try:
            if self.solver == "bcfw":
                self._train_bcfw(
                    problem,
                    oracle,
                    data,
                    transaction,
                    average=self.average is True,
                    bounds=check_bounds(None, problem.structure),
                    kind={"rescaling": self.rescaling},
                    sampling=self.sampling,
                    acceleration=self.acceleration,
                )
            else:
                self._train_otherwise(problem, oracle, data, transaction)
        finally:
            if hasattr(self, "n_oracle_calls_"):
                self.n_queries_ = getattr(oracle, "n_queries", self.n_oracle_calls_)

    def _fit_to_dask(self, data, transaction):
        with make_distributed_problem(self, *data) as problem:
            bounds = check_bounds(None, problem.structure)
            if self.rescaling == "margin":
                self._train_distributed(problem, data, transaction, bounds=bounds)
                self.n_queries_ = self.n_oracle_calls_
                return
            name = type(problem.structure).__name__
            check_search(problem.make_oracle(), self.search, name)
            options = {"search": self.search, "rtol": self.search_rtol}
            wrap = partial(SlackOracle, max_queries=self.max_queries, **options)
            iterate = self._train_distributed(
                problem, data, transaction, wrap=wrap, bounds=bounds
            )
            self.n_queries_ = iterate.n_queries

    def _train_otherwise(self, problem, oracle, data, transaction):
        """By stochastic subgradients or cutting planes, which keep no state."""
        refuse_bounds(problem.structure, f"solver={self.solver!r}")
        options = self._limits() | {"rng": self._rng()}
        if self.solver == "sgd":
            name, run = "SGD", run_sgd
            options |= {
                "sampling": "permuted" if self.sampling == "auto" else self.sampling,
                "average": self.average is not False,
                "gap_check_interval": self.gap_check_interval,
            }
        else:
            name, run = "Cutting planes", run_cutting_plane
            options["form"] = self.formulation
        solve = partial(run, oracle, problem.weights, problem.lam(self.C), **options)
        self._run(problem, data, transaction, solve, name)

    def _doubt(self, result):
        if self.rescaling == "margin" or self.search == "exact":
            return super()._doubt(result)
        if self.search != "angular":
            return (
                f"search={self.search!r} is inexact, and its bounds can leave a gap that "
                "no solver closes: use search='angular' or 'exact', or a larger tol."
            )
        if result.status != "stalled" and (
            self.search_rtol * result.objective < self.tol
        ):
            return ""
        return (
            f"Searches may stop within search_rtol={self.search_rtol:.3g} of the largest "
            f"violation, or after max_queries={self.max_queries}: use a smaller and a "
            "larger one, or a larger tol."
        )

    def _check_combination(self):
        if self.search == "sarawagi" and self.solver != "cutting_plane":
            raise ValueError(
                "search='sarawagi' bounds the violation beyond the current slack of an "
                "example, which only solver='cutting_plane' has; got "
                f"solver={self.solver!r}. 'binary' is the same without a slack."
            )
        if self.solver == "sgd" and self.sampling == "gap":
            raise ValueError(
                "sampling='gap' needs the dual point of solver='bcfw'; "
                "use 'permuted' or 'uniform' with solver='sgd'."
            )
        if self.solver == "cutting_plane" and self.average is True:
            raise ValueError("average=True has no meaning for solver='cutting_plane'.")
        if self.solver != "bcfw" and self.acceleration is True:
            raise ValueError(
                f"acceleration=True needs solver='bcfw'; got solver={self.solver!r}."
            )
        if self.solver != "bcfw" and self.warm_start:
            raise ValueError(
                "warm_start=True needs solver='bcfw', which keeps its dual point; "
                f"got solver={self.solver!r}."
            )
