"""BCFWClassifier: structural SVMs by block-coordinate Frank-Wolfe."""

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.problem import (
    check_bounds,
    has_exact_steps,
    make_distributed_problem,
    make_problem,
)
from sklearn_structsvm.estimators.structured import (
    TRAINING_CONSTRAINTS,
    StructuredClassifier,
)


class BCFWClassifier(StructuredClassifier):
    """Structural support vector machine with a certificate of optimality.

    Minimises over w ::

        1/2 ||w||² + C Σ_i s_i H_i(w),
        H_i(w) = max_y L(y_i, y) + ⟨w, φ(x_i, y) - φ(x_i, y_i)⟩,

    for sample weights s_i, a loss L and a joint feature φ that the structure defines,
    by block-coordinate Frank-Wolfe on the dual [1]_. What is reported is of the
    normalised form λ/2 ||w||² + (Σ_i s_i H_i(w)) / Σ_i s_i with λ = 1 / (C Σ_i s_i).

    Parameters
    ----------
    structure : "auto", str or Structure, default="auto"
        What is predicted. "auto" reads y: two classes, several classes, a multilabel
        indicator, or (where X holds one 2-D item per example) sequences of labels.
        Or its name: "binary", "multiclass", "multilabel", "pairwise", "chain", "tree" or
        "graph", with default parameters. Name it where scikit-learn has to know
        beforehand: it refuses a y that is a list of lists in a search or a
        cross-validation with "auto", and takes it with "chain".
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
        Multiplies the weights of the examples of a class, or for chains the costs of
        the positions whose true label it is.
    step : {"auto", "exact", "corrective", "fw", "pairwise", "away"}, default="auto"
        How the dual variables of an example move. "exact", for binary, multiclass and
        multilabel y, makes them the best there are for the others as they stand: the
        method of LIBLINEAR [2]_ [3]_, and by far the fastest of these. "corrective" makes
        them nearly the best there are over the labelings found so far, which it keeps,
        and goes over these a few times between two calls of the max-oracle. "fw",
        "pairwise" and "away" are the plain, pairwise and away steps of [1]_; pairwise and
        away steps reach high accuracy sooner than plain ones and keep the labelings that
        carry dual mass. All but exact ones are for any structure. "auto": exact where
        that is possible, which it is not with `average`, `coef_bounds`, ``cache=True``
        or ``algorithm="batch"``; else corrective (with `average` or ``cache=True``
        pairwise) where a call of the max-oracle takes more operations than the scoring
        of a few known labelings, counted from the sizes of the problem, as it does for
        chains and for structures of your own; else plain.
    sampling : {"auto", "gap", "uniform", "permuted"}, default="auto"
        How examples are drawn: by their share of the duality gap, uniformly, or each
        once per pass in a random order. With exact steps "gap" goes through them in a
        random order too, and leaves out those whose gap has been small, for longer and
        longer: what other solvers call shrinking. "auto": permuted where other than
        exact steps may be accelerated, else gap.
    acceleration : bool or "auto", default="auto"
        Whether steps are accelerated [4]_: passes are made on the problem with a term
        that draws the weights to a centre, which moves ahead of them. It takes a fraction
        of the passes where many are needed, as to high accuracy or for large C, and the
        gap is as true. "auto": once a dozen passes or more are foreseen, but not with
        ``sampling="gap"`` (of other than exact steps), `average` or
        ``algorithm="batch"``. True: from the first pass on, as always on Dask
        collections.
    cache : bool or "auto", default="auto"
        Whether to try the labelings found before, ahead of a call of the max-oracle.
        "auto": with other than corrective steps, which need none, where a call takes more
        operations than scoring a hundred of them, as it does for structures of your own.
    algorithm : {"block", "batch"}, default="block"
        "batch" is classical Frank-Wolfe, one step on all examples a pass.
    average : bool, default=False
        Where a fit ends before its `tol`, return the weighted average of the iterates,
        which often predicts better than the last of them. Exact steps need not be asked:
        they end with the better of the two.
    coef_bounds : (lower, upper) or None, default=None
        Box constraints on `coef_`: numbers, or arrays of its shape.
    tol : float, default=1e-3
        Stop where `dual_gap_` is at most this.
    max_iter : int, default=1000
        Passes over the data.
    max_time : float or None, default=None
        Seconds. How far a fit gets in them is chance: the only thing that keeps one from
        being repeated bit for bit.
    gap_check_interval : int, default=10
        Passes between two computations of the true gap, each of which costs about one
        pass. It is computed sooner where the gaps of the examples, as last seen, have
        fallen to a tenth, or with exact steps where by their fall `tol` is reached.
    warm_start : bool, default=False
        Keep the dual point and start the next fit from it. Its y must be the same; C,
        the sample weights and X may differ. A fit that is interrupted then leaves the
        estimator as far as it got.
    n_jobs : int or None, default=None
        Threads, for the built-in structures. Steps that keep labelings (corrective,
        pairwise and away ones) are made by all of them, each on a part of the examples,
        and joined ten times a pass; exact and plain steps, a `sampling` other than
        permuted, averages, and fewer than a few hundred examples are for one thread. Gap
        checks and `predict` use them where the package was built with OpenMP.
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
        An upper bound on how far `objective_` is from the optimum, computed at
        `coef_`.
    objective_, dual_objective_ : float
        Of the normalised form, at `coef_`.
    n_iter_ : int
        Passes.
    n_oracle_calls_ : int
        Calls of the max-oracle, those of the gap checks included.
    history_ : dict of ndarray
        What the gap checks saw: "n_iter", "n_oracle_calls", "seconds", "objective",
        "dual_objective" and "dual_gap".
    step_, cache_ : str, bool
        What "auto" was settled to.
    n_features_in_ : int
        Features of an example, or of a position of a sequence.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Where X has column names.

    See Also
    --------
    BCFWClassifierCV : Chooses C along the regularization path.
    bcfw_path : Solutions for all C.

    Notes
    -----
    There is no `partial_fit`: the dual point has one block for each training example,
    and an optimum of examples that were thrown away could not be certified. To go on
    with the same examples use `warm_start`.

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

    Examples
    --------
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = BCFWClassifier(C=0.1, tol=0.01, random_state=0).fit(X[:30], y[:30])
    >>> model.dual_gap_ <= 0.01
    True
    >>> model.predict(X[30:]).shape
    (10,)
    """

    step_: str
    cache_: bool

    _parameter_constraints: dict = {
        **TRAINING_CONSTRAINTS,
        "step": [StrOptions({"auto", "exact", "corrective", "fw", "pairwise", "away"})],
        "algorithm": [StrOptions({"block", "batch"})],
        "average": ["boolean"],
        "coef_bounds": [tuple, list, None],
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
        step="auto",
        sampling="auto",
        acceleration="auto",
        cache="auto",
        algorithm="block",
        average=False,
        coef_bounds=None,
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
        self.step = step
        self.sampling = sampling
        self.acceleration = acceleration
        self.cache = cache
        self.algorithm = algorithm
        self.average = average
        self.coef_bounds = coef_bounds
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
        data = (X, y, sample_weight)
        if holds_dask(*data):
            with make_distributed_problem(self, *data) as problem:
                bounds = check_bounds(self.coef_bounds, problem.structure)
                is_exact = self._makes_exact_steps(problem.structure)
                self._train_distributed(
                    problem, data, transaction, bounds=bounds, is_exact=is_exact
                )
            return
        problem = make_problem(self, X, y, sample_weight)
        bounds = check_bounds(self.coef_bounds, problem.structure)
        self._check_combination()
        if self._makes_exact_steps(problem.structure):
            self._train_exact(problem, data, transaction)
            return
        self._train_bcfw(
            problem,
            problem.make_oracle(),
            data,
            transaction,
            average=self.average,
            bounds=bounds,
            is_batch=self.algorithm == "batch",
            sampling=self.sampling,
            acceleration=self.acceleration,
            algorithm=self.algorithm,
        )

    def _check_combination(self):
        if self.algorithm == "batch" and (
            self.step not in ("auto", "fw") or self.cache is True
        ):
            raise ValueError(
                "algorithm='batch' makes plain steps without a cache; got "
                f"step={self.step!r}, cache={self.cache!r}."
            )
        if self.algorithm == "batch" and self.acceleration is True:
            raise ValueError("acceleration=True is for algorithm='block'.")

    def _makes_exact_steps(self, structure):
        if self.step not in ("auto", "exact"):
            return False
        obstacles = {
            f"structure={type(structure).__name__}": not has_exact_steps(structure),
            "cache=True": self.cache is True,
            "algorithm='batch'": self.algorithm == "batch",
            "average=True": self.average,
            f"coef_bounds={self.coef_bounds!r}": self.coef_bounds is not None,
        }
        obstacles = [name for name, there in obstacles.items() if there]
        if obstacles and self.step == "exact":
            raise ValueError(
                "step='exact' is for BinaryStructure, MulticlassStructure and "
                "MultilabelStructure, one example at a time, without a cache, averaging "
                f"or bounds; got {', '.join(obstacles)}. Leave step='auto' for those."
            )
        return not obstacles
