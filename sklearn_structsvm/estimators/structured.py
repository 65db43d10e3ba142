"""What the estimators over a structure share: all but what they solve, and by what."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_structsvm._utils.arrays import foreign_namespace, refuse_foreign
from sklearn_structsvm._utils.borders import (
    as_floats,
    check_entries,
    check_integer,
    check_sparse,
    is_empty,
)
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    available_if,
)
from sklearn_structsvm._utils.labels import refuse_missing, unseen_words
from sklearn_structsvm._utils.pieces import item_pieces, mean_width, row_pieces, take_rows
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.distributed.blocks import BlockSteps, ExactSteps, as_it_is
from sklearn_structsvm.distributed.dask_workers import holds_dask, map_lazily
from sklearn_structsvm.estimators.base import (
    AtomicFitMixin,
    FitProgress,
    PassReporter,
    require_y,
)
from sklearn_structsvm.estimators.problem import (
    STRUCTURE_CONSTRAINT,
    check_nothing_to_learn,
    is_flat,
    make_ascent,
    named_structure,
    wrong_words,
)
from sklearn_structsvm.estimators.remedies import shortfall_words
from sklearn_structsvm.solvers.blocks import exact
from sklearn_structsvm.solvers.blocks.bcfw import certify, run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.exact import run_exact
from sklearn_structsvm.solvers.loop import History
from sklearn_structsvm.structures import Structure
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.validation import refuse_tokens

PROBLEM_CONSTRAINTS = {
    "structure": STRUCTURE_CONSTRAINT,
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "classes": ["array-like", None],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "sampling": [StrOptions({"auto", "gap", "uniform", "permuted"})],
    "acceleration": ["boolean", StrOptions({"auto"})],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}

# Types of rows that `predict` does not copy as a whole; what is none of them becomes the
# first. They are converted piece by piece.
ROW_TYPES = (
    np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_
)  # fmt: skip

# How a structure finds labelings with an upper bound that may stay above them.
LOOSE_INFERENCES = ("auto", "messages", "expansion")

TRAINING_CONSTRAINTS = {
    **PROBLEM_CONSTRAINTS,
    "C": [Interval(Real, 0, None, closed="neither")],
    "step": [StrOptions({"auto", "fw", "pairwise", "away", "corrective"})],
    "cache": ["boolean", StrOptions({"auto"})],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "gap_check_interval": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
}


@dataclass
class DualPoint:
    """What a solver moves, and what the next fit needs to go on from there.

    Attributes
    ----------
    iterate : BlockFrankWolfe, ExactAscent or MarginalAscent
    certify : callable
        () -> a row of the history about the iterate, and its weights.
    key : str or None
        Tells the examples and the structure from others; None where nothing is kept.
    settled : dict
        What "auto" was settled to, by the names of fitted attributes.
    """

    iterate: object
    certify: object
    key: str | None
    settled: dict = field(default_factory=dict)

    def cut(self, history):
        """The result of a run that was interrupted, certified where it was cut."""
        self.iterate.rebuild_weights()
        history.note(*self.certify())
        return history.result("stopped")


def knows(name):
    """Whether an estimator's structure can answer `name`."""

    def check(estimator):
        structure = getattr(estimator, "structure_", None)
        if structure is None:
            structure = named_structure(estimator.structure)
        # Of a damaged one the method itself tells.
        return not isinstance(structure, Structure) or hasattr(structure, name)

    return check


def joined_weights(structure, attributes, *, finite=True):
    """w of `coef_` and `intercept_`; ValueError where they do not fit the structure."""
    # One number for all of them.
    zeros = np.ndarray(structure.n_weights_, buffer=np.zeros(1), strides=(0,))
    parts = []
    for name, like in zip(
        ("coef_", "intercept_"), structure.split_weights(zeros), strict=True
    ):
        part = None
        if like is not None:
            part = as_floats(name, attributes.get(name), *like.shape, finite=finite)
        parts.append(part)
    return structure.join_weights(*parts)


class StructuredClassifier(
    AtomicFitMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Prediction, scores, and a `_fit` made of a problem and a solver.

    A subclass says in `_fit` what problem is solved by what, see `_train_bcfw`,
    `_train_exact` and `_run`.
    """

    # What every dual point has that a fit keeps.
    _dual_entries: tuple[str, ...] = ("blocks", "loss")

    # What a fit sets, for editors and type checkers.
    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    structure_: Structure
    objective_: float
    dual_objective_: float
    dual_gap_: float
    n_iter_: int
    n_oracle_calls_: int
    history_: dict[str, np.ndarray]
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        structure = named_structure(self.structure)
        if structure is None or structure.flat:
            # structure="auto" takes what there is.
            tags.input_tags.sparse = True
            multi_class = getattr(structure, "multi_class", True)
            multi_label = getattr(structure, "multi_label", True)
            tags.classifier_tags.multi_class = multi_class
            tags.classifier_tags.multi_label = multi_label
            if multi_label and not multi_class:
                tags.target_tags.single_output = False
                tags.target_tags.multi_output = True
        else:
            # Sequences and other structures: as a classifier, scikit-learn would
            # choose the splitter and the meaning of accuracy by what y looks like.
            tags.estimator_type = None
            tags.classifier_tags = None
            tags.input_tags.two_d_array = False
        return tags

    @property
    def _weights(self):
        """w, once the state is seen to fit together: it may have been set by hand."""
        self._check_fitted_structure()
        return joined_weights(self.structure_, vars(self))

    def _check_fitted_structure(self):
        """ValueError where `structure_` was changed into what cannot predict."""
        structure = self.structure_
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure_ must be a Structure; got {structure!r}: it was changed "
                "after fit."
            )
        try:
            structure.check_fitted()
        except AttributeError as error:
            raise ValueError(
                f"structure_ is not a fitted structure, {error}: it was changed after "
                "fit."
            ) from error

    def _n_threads(self, X):
        n_items = X.shape[0] if self.structure_.flat else len(X)
        return count_threads(self.n_jobs, n_items)

    @contextmanager
    def _reading(self):
        """w, for what looks for NaN in the few numbers that it makes of it.

        Where it finds any, the error names the attribute. `_check_X` comes before.
        """
        w = joined_weights(self.structure_, vars(self), finite=False)
        try:
            yield w
        except ValueError:
            joined_weights(self.structure_, vars(self))
            raise

    def _check_X(self, X, *, takes_foreign=False):
        """X as the structure takes it, of another library's arrays where it may be."""
        if "structure_" not in vars(self):
            check_is_fitted(self)
        self._check_fitted_structure()
        xp = foreign_namespace(X)
        if xp is not None:
            if not (takes_foreign and self.structure_.flat):
                refuse_foreign(X=X)
            return validate_data(self, X, reset=False, dtype=[xp.float64, xp.float32])
        if self.structure_.flat:
            refuse_tokens(X)
            check_sparse(X)
            return validate_data(
                self, X, reset=False, accept_sparse="csr", dtype=list(ROW_TYPES)
            )
        if is_empty(X):
            return []
        return self.structure_.check_data(X)[0]

    def _ask(self, X, call, nothing=None, y=None):
        """call(X), piece by piece, and `nothing` where an example has nothing to label.

        What is made of X, such as rows of float64 below one another, takes no more room
        than for a piece.

        Parameters
        ----------
        X, y : as of `_check_X`, and labels of it or None
        call : callable
            X, or X and y, of some examples, none of them empty -> an answer for each.
        nothing : number or any other object
        """
        structure = self.structure_
        if structure.flat:
            return self._ask_rows(X, call, y)
        places = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        sizes = [structure._n_entries(X[i]) for i in places]
        pieces = item_pieces(sizes, count_threads(self.n_jobs, len(X)))
        if len(pieces) == 1 and len(places) == len(X) > 0:
            return call(X) if y is None else call(X, y)
        answers = [nothing] * len(X)
        for piece in pieces:
            own = places[piece]
            if not own:
                continue
            data = [[items[i] for i in own] for items in (X, y) if items is not None]
            for i, answer in zip(own, call(*data), strict=True):
                answers[i] = answer
        if isinstance(nothing, float):
            return np.array(answers, dtype=np.float64)
        result = np.empty(len(X), dtype=object)
        for i, answer in enumerate(answers):
            result[i] = answer
        return result

    def _ask_rows(self, X, call, y):
        if foreign_namespace(X) is not None:
            return call(X)
        n_rows = X.shape[0]
        pieces = [slice(None)]
        if self.structure_.has_classes:
            # Scores take room as well.
            width = mean_width(X) + 4 * len(self.structure_.classes_)
            pieces = row_pieces(n_rows, width)
        result = None
        for piece in pieces:
            rows = X if len(pieces) == 1 else take_rows(X, piece)
            if sparse.issparse(rows):
                rows = rows.astype(np.float64, copy=False)
            else:
                rows = np.require(rows, np.float64, "CA")
            found = call(rows) if y is None else call(rows, y[piece])
            if len(pieces) == 1:
                return found
            if result is None:
                result = np.empty((n_rows, *found.shape[1:]), found.dtype)
            result[piece] = found
        return result

    def _no_labels(self):
        """The labeling of an example that has nothing to label."""
        return getattr(self.structure_, "classes_", np.empty(0, dtype=object))[:0]

    def _no_scores(self):
        """Numbers for each class, of such an example."""
        return np.empty((0, len(self.structure_.classes_)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the best output for each example.

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
        if holds_dask(X):
            check_is_fitted(self)
            return map_lazily(self, "predict", X, self._empty_prediction())
        X = self._check_X(X, takes_foreign=True)
        n_threads = self._n_threads(X)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X: self.structure_.decode_batch(X, w, n_threads),
                self._no_labels(),
            )

    def _empty_prediction(self):
        if not self.structure_.flat:
            return np.empty(0, dtype=object)
        X = np.zeros((1, self.n_features_in_))
        return self.structure_.decode_batch(X, self._weights)[:0]

    @available_if(lambda self: is_flat(getattr(self, "structure_", self.structure)))
    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes or labels (flat structures only).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Input data.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
            Scores. For two classes they are positive where ``classes_[1]`` is predicted.
        """
        X = self._check_X(X, takes_foreign=True)
        structure, w = self.structure_, self._weights

        def present(X):
            return structure.present_scores(structure.decision_function(X, w))

        return self._ask(X, present)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Score the predictions for X against y.

        The score is the accuracy for flat structures (subset accuracy if there are
        several labels), the accuracy per position for chains, and 1 minus the mean loss
        for user-defined structures. Labels that were not seen in `fit` count as wrong,
        and a warning lists them.

        Parameters
        ----------
        X, y : as in `fit`
            Test data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the examples.

        Returns
        -------
        score : float
            Higher is better.
        """
        refuse_foreign(X=X, y=y, sample_weight=sample_weight)
        y_pred = self.predict(X)
        require_y(self, y)
        if not self.structure_.flat:
            _, y = self.structure_.check_data(X, y)
        else:
            check_sparse(y, "y")
            refuse_missing(y)
            y = y.toarray() if sparse.issparse(y) else y
        unseen = self.structure_.unseen_labels(y)
        if unseen:
            warn_caller(unseen_words(unseen), UserWarning)
        return self.structure_.score(y, y_pred, sample_weight=sample_weight)

    @available_if(knows("k_best"))
    def predict_k_best(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best labelings of each example, with their scores.

        Available for chains, trees, and graphs without cycles.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        k : int, default=5
            Number of labelings.

        Returns
        -------
        labelings : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i, T_i), with the best labeling first. m_i is k, or the
            number of labelings if that is smaller.
        scores : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i,). The difference between the first two scores measures
            how confident the prediction is.
        """
        check_integer("k", k, 1)
        X = self._check_X(X)
        with self._reading() as w:
            pairs = self._ask(
                X,
                lambda X: [self.structure_.k_best(x, w, k) for x in X],
                (self._no_labels()[np.newaxis], np.zeros(1)),
            )
        labelings, scores = np.empty((2, len(X)), dtype=object)
        for i, pair in enumerate(pairs):
            labelings[i], scores[i] = pair
        return labelings, scores

    @available_if(knows("max_marginals"))
    def max_marginals(self, X: Any) -> np.ndarray:
        """Compute max-marginals: the best score with each class at each position.

        Available for chains, trees, and graphs without cycles.

        Parameters
        ----------
        X : as in `fit`
            Input data.

        Returns
        -------
        ndarray of shape (n_samples,), dtype object
            Item i has shape (T_i, n_classes). The maximum of each row is the score of the
            best labeling. Its distance to the second largest entry is the margin by which
            the predicted label of that position wins.
        """
        X = self._check_X(X)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X: as_object_array(
                    [self.structure_.max_marginals(x, w) for x in X]
                ),
                self._no_scores(),
            )

    def _weight_attributes(self, structure, weights):
        """What there is to know of a fit once the weights are known."""
        coef, intercept = structure.split_weights(weights)
        attributes = {"structure_": structure, "coef_": coef}
        if intercept is not None:
            attributes["intercept_"] = intercept
        if structure.has_classes:
            attributes["classes_"] = structure.classes_
        return attributes

    def _set_weights(self, structure, weights):
        vars(self).update(self._weight_attributes(structure, weights))

    def _set_result(self, structure, result):
        self._set_weights(structure, result.solution)
        self.objective_ = float(result.objective)
        self.dual_objective_ = float(result.dual_objective)
        self.dual_gap_ = float(result.gap)
        self.n_iter_ = result.n_iter
        self.n_oracle_calls_ = result.n_oracle_calls
        self.history_ = result.history

    def _rng(self):
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    def _limits(self):
        """The arguments that all solvers have in common."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "max_time": self.max_time,
            "n_threads": count_threads(self.n_jobs),
        }

    def _train_bcfw(
        self,
        problem,
        oracle,
        data,
        transaction,
        *,
        average,
        bounds=None,
        kind=None,
        is_batch=False,
        **options,
    ):
        """Run BCFW from the dual point of the previous fit, if there is one.

        Parameters
        ----------
        problem : Problem
        oracle : BlockOracle
        data : (X, y, sample_weight) as they came
        transaction : Fit
        average, bounds : as for `start_bcfw`
        kind : dict or None
            Parameters that the dual point depends on, beside the examples and the
            structure.
        is_batch : bool
            Batch steps are plain ones and keep no active sets.
        **options
            More arguments of `run_bcfw`.
        """
        kind = {} if kind is None else kind
        key = self._dual_key(problem, kind)
        iterate, step, cache = start_bcfw(
            oracle,
            problem.weights,
            problem.lam(self.C),
            step="fw" if is_batch else self.step,
            cache=False if is_batch else self.cache,
            average=average,
            bounds=bounds,
            state=self._with_active_sets(
                self._warm_state(key, transaction.previous, kind), is_batch
            ),
        )
        n_threads = count_threads(self.n_jobs)
        check = partial(certify, iterate, average, self.tol, n_threads)
        self._run_bcfw(
            problem,
            data,
            transaction,
            DualPoint(iterate, check, key, {"step_": step, "cache_": cache}),
            average=average,
            rng=self._rng(),
            **options,
        )

    def _train_distributed(
        self, problem, data, transaction, *, wrap=as_it_is, bounds=None, is_exact=False
    ):
        """The same over parts that stay with workers; returns the iterate.

        Parameters
        ----------
        problem : DaskProblem or DaskSequences
        data, transaction, bounds : as for `_train_bcfw`
        wrap : callable
            From the structure's oracle to the one that is asked; picklable.
        is_exact : bool
            Whether steps are exact, with neither of the two.
        """
        step = "corrective" if self.step == "auto" else self.step
        steps = BlockSteps(step, self.cache, bounds, wrap)
        if is_exact:
            step, steps = "exact", ExactSteps(make_ascent)
        rng = self._rng()
        iterate = problem.make_iterate(
            problem.lam(self.C), steps, int(rng.integers(2**31))
        )
        settled = {"step_": step, "cache_": self.cache is True}
        self._run_bcfw(
            problem,
            data,
            transaction,
            DualPoint(iterate, partial(certify, iterate), None, settled),
            team=iterate,
            sampling="permuted",
            acceleration=self.acceleration,
            # Rounds of exact steps are too many without.
            at_once=is_exact,
            rng=rng,
        )
        return iterate

    def _run_bcfw(self, problem, data, transaction, dual, **options):
        """Run BCFW on an iterate, with these arguments beside the usual ones."""
        solve = partial(
            run_bcfw,
            dual.iterate,
            gap_check_interval=self.gap_check_interval,
            **self._limits(),
            **options,
        )
        self._run(problem, data, transaction, solve, "BCFW", dual=dual)

    def _train_exact(self, problem, data, transaction):
        """The same by exact steps; the structure must have them."""
        key = self._dual_key(problem, {})
        state = self._warm_state(key, transaction.previous, {})
        ascent = make_ascent(problem, problem.lam(self.C))
        if state is not None:
            ascent.set_state(state)
        limits = self._limits()
        check = partial(exact.certify, ascent, self.tol, limits["n_threads"])
        self._run(
            problem,
            data,
            transaction,
            partial(
                run_exact,
                ascent,
                sampling="gap" if self.sampling == "auto" else self.sampling,
                acceleration=self.acceleration,
                gap_check_interval=self.gap_check_interval,
                rng=self._rng(),
                **limits,
            ),
            "BCFW",
            dual=DualPoint(ascent, check, key, {"step_": "exact", "cache_": False}),
        )

    def _run(self, problem, data, transaction, solve, name, *, dual=None):
        """Solve, report and store.

        Parameters
        ----------
        problem, data, transaction : as for `_train_bcfw`
        solve : callable
            (on_pass, history) -> SolverResult.
        name : str
            For the warning where it does not converge.
        dual : DualPoint or None
            That `solve` moves. Where it is to be kept for a warm start, a run that is
            interrupted leaves the estimator as far as it got.
        """
        X, y, sample_weight = data
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        wrong = wrong_words(problem.structure, getattr(self, "loss", None))
        history = History(wrong)
        reporter = PassReporter(
            self._fit_task({"X": X, "y": y, "metadata": metadata}),
            partial(self._snapshot, problem, history, dual),
        )
        reporter.begin()
        try:
            result = solve(on_pass=reporter, history=history)
        except BaseException:
            if dual is not None and dual.key is not None:
                # Where not even a certificate can be had, as the structure's own code
                # fails, what was before is restored.
                self._store(problem, dual.cut(history), dual)
                transaction.commit()
            raise
        is_optimal_at_zero = result.objective == 0.0 == result.n_iter
        if is_optimal_at_zero and not problem.structure.flat:
            if not check_nothing_to_learn(problem):
                raise ValueError(f"The objective is zero at zero weights: {wrong}")
        self._store(problem, result, dual)
        transaction.commit()
        reporter.end()
        if result.status in ("stalled", "max_iter", "max_time"):
            doubt = self._doubt(problem, result)
            words = shortfall_words(self, problem, result, name, doubt)
            warn_caller(words, ConvergenceWarning)

    def _fit_task(self, data):
        return FitProgress.of_fit(self, data, self.max_iter)

    def _snapshot(self, problem, history, dual):
        """The fitted attributes that a run would leave now."""
        now = None if dual is None else getattr(dual.iterate, "best_weights", None)
        if now is None:
            now = history.solution if dual is None else dual.iterate.weights
        return self._weight_attributes(self._structure_at(problem, now), now.copy())

    def _store(self, problem, result, dual):
        self._set_result(self._structure_at(problem, result.solution), result)
        if dual is not None:
            vars(self).update(dual.settled)
            if dual.key is not None:
                self._dual_state = {"key": dual.key, "state": dual.iterate.get_state()}

    def _structure_at(self, problem, weights):
        """The fitted structure, with what of it depends on the weights."""
        return problem.structure

    def _doubt(self, problem, result):
        """Why no solver may close the gap, in a sentence; empty for an exact oracle."""
        if self.structure_.relaxed and result.status == "stalled":
            is_loose = getattr(self.structure_, "inference", None) in LOOSE_INFERENCES
            remedy = " The structure's inference='lp' can, on small graphs." * is_loose
            return (
                "No labeling found by the structure violates its margin by more than "
                "tol. The remaining gap comes from upper bounds on the other labelings, "
                f"and no solver can close it.{remedy}"
            )
        return ""

    def _dual_key(self, problem, kind):
        """What tells the examples and the structure of a dual point from others."""
        if not self.warm_start:
            return None
        structure = problem.structure
        try:
            return joblib.hash(
                (problem.y, structure.get_params(), structure.n_weights_, kind)
            )
        except PicklingError as error:
            raise ValueError(
                "warm_start=True requires labels and a structure that can be pickled: "
                f"{error}"
            ) from error

    def _warm_state(self, key, before, kind):
        """The dual point of the fit before, None where there is none of use."""
        kept = before.get("_dual_state")
        if key is None or kept is None:
            return None
        check_entries("_dual_state", kept, "key", "state")
        check_entries("_dual_state['state']", kept["state"], *self._dual_entries)
        if not (isinstance(kept["key"], str) and kept["key"] == key):
            others = " or ".join(["y or the structure", *kind])
            self._warn_of_cold_start(f"{others} is not that", "dual point is")
            return None
        return kept["state"]

    def _with_active_sets(self, state, is_batch):
        """A dual point for the steps that are asked for, None where it has too little."""
        if state is None or is_batch or self.step in ("auto", "fw"):
            return state
        if "corners" not in state:
            self._warn_of_cold_start(
                "the step is not that", "dual point has no active sets and is"
            )
            return None
        return state

    def _warn_of_cold_start(self, other, useless):
        warn_caller(
            f"warm_start=True, but {other} of the previous fit, whose {useless} of no "
            "use here: starting anew.",
            UserWarning,
        )
