"""Shared by estimators that choose C by cross-validation: folds, scores, choice."""

from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from sklearn_structsvm._contract.answers import checked_folds
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import (
    StrOptions,
    _check_method_params,
    _safe_indexing,
    accepts_weights,
)
from sklearn_structsvm._utils.labels import listed
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.scorers import by_name, refuse_unsuitable
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.estimators.base import Fit, fit_aside
from sklearn_structsvm.estimators.grid_of_c import CS_CONSTRAINT, make_grid, warm_fits
from sklearn_structsvm.estimators.method import run
from sklearn_structsvm.estimators.problem import bind_local, check_scale
from sklearn_structsvm.estimators.remedies import cut_words
from sklearn_structsvm.structures.nodes import NodeStructure

CV_CONSTRAINTS = {
    "Cs": CS_CONSTRAINT,
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "refit": [StrOptions({"best", "one_standard_error"}), callable],
}


@dataclass
class FoldPath:
    """The results of a fold.

    `scores`, `gaps`: scores, and duality gaps on the training part (NaN if unknown),
    for the first values of C. `stopped_by` ("max_iter", "max_time" or None): the limit
    that ended the path before the other values.
    """

    scores: list[float]
    gaps: list[float]
    stopped_by: str | None


class CrossValidatedMixin:
    """A fit to all data with the C of the best mean score over folds.

    A subclass has `_final_class`, the estimator whose C is chosen. Its methods `_range`
    and `_follow` define which values are tried, and how.
    """

    Cs: Any
    cv: Any
    scoring: Any
    max_iter: int
    verbose: int

    def _range(self, problem):
        """The smallest and largest C of a grid with a given number of values."""
        raise NotImplementedError

    def _follow(self):
        """A picklable function that computes the solutions of a fold.

        Returns (estimator, X, y, weights, Cs) -> path, stopped_by: an iterator that
        turns the estimator into the one for the next C and yields its duality gap, and
        the `stopped_by` of a `FoldPath`.
        """
        raise NotImplementedError

    def _penalties(self):
        """Dicts of parameters. All values of C are tried with each of them."""
        return [{}]

    def _keep(self, penalty, scores_path, gaps_path):
        """Set the attributes of the choice other than C, and all results.

        Scores and gaps have the shape (n_penalties, n_Cs, n_folds).
        """
        self.scores_path_ = scores_path[0]

    @with_plain_calls
    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Choose C by cross-validation and fit the model with it.

        Parameters
        ----------
        X, y, sample_weight : as for the estimator without cross-validation
            Training data.
        **params : dict
            Metadata for the splitter and the scorer, as they request them with
            scikit-learn's metadata routing. Without routing, only `groups` is accepted,
            for the splitter.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight, fit_params=params)

    def _fit_within(self, fit, X, y, sample_weight, fit_params=None):
        for_splits, for_scores = self._routed(sample_weight, fit_params)
        problem = bind_local(self, X, y, sample_weight)
        if isinstance(problem.structure, NodeStructure):
            labels = problem.structure.classes_ if problem.structure.has_classes else ()
            refuse_unsuitable(self.scoring, labels)
        n = len(problem.weights) if problem.structure.flat else len(problem.given[0])
        weights = check_weights(sample_weight, n)
        Cs = make_grid(self.Cs, lambda: self._range(problem))
        check_scale(self, problem, float(Cs[-1]))
        is_weighted = self.scoring is None or "sample_weight" in for_scores
        folds = self._folds(problem, weights, for_splits, is_weighted)
        final = self._classifier(problem.structure)
        if "sample_weight" in for_scores:
            for_scores = for_scores | {"sample_weight": weights}
        penalties = self._penalties()
        progress = fit.progress(len(penalties) * len(folds) + 1).begin()
        paths = [
            self._paths(
                folds,
                (
                    final.set_params(**penalty),
                    *problem.given,
                    weights,
                    Cs,
                    self.scoring,
                    for_scores,
                ),
                progress,
            )
            for penalty in penalties
        ]
        scores_path, gaps_path = np.stack(
            [self._scores_and_gaps(problem, Cs, own) for own in paths], axis=1
        )
        n_scored = [min(len(path.scores) for path in own) for own in paths]
        with np.errstate(invalid="ignore"):
            means = scores_path.mean(axis=2)
        chosen, best = self._choice(penalties, Cs, scores_path, means)
        final.set_params(**penalties[chosen], C=Cs[best], verbose=self.verbose)
        # Its passes are reported as parts of this fit.
        part = progress.part("final-fit", self.max_iter)
        final_fit = Fit(final).within(part)
        try:
            with final_fit:
                run(final_fit, problem, final_fit.estimator._method(problem, {}))
        finally:
            # This also happens if it ends with a warning that was turned into an error.
            if final_fit.is_committed:
                found = vars(final_fit.estimator)
                vars(self).update({k: v for k, v in found.items() if k.endswith("_")})
                self.Cs_, self.C_ = Cs, float(Cs[best])
                self._keep(penalties[chosen], scores_path, gaps_path)
                fit.commit()
        # All attributes are set now.
        progress.end(dict)
        for own, mean, n in zip(paths, means, n_scored, strict=True):
            stopped_by = [path.stopped_by for path in own]
            self._warn_of_cuts(problem, Cs, mean[:n], stopped_by)
        if self.refit == "best":
            _warn_of_end(Cs, best, scores_path[chosen])
        self._warn_of_gaps(problem)

    def get_metadata_routing(self) -> Any:
        """Get the metadata routing of this estimator, its splitter and its scorer.

        Returns
        -------
        routing : MetadataRouter
            The routing information.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=self.cv,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        if self.scoring is None:
            # The estimator's own score gets weights and everything else.
            return router
        scorer = get_scorer(by_name(self.scoring))
        to_score = MethodMapping().add(caller="fit", callee="score")
        return router.add(scorer=scorer, method_mapping=to_score)

    def _routed(self, sample_weight, params):
        """Metadata for the splitter, and for the scorer."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weights, **params)
            by_own_score = self.scoring is None
            return routed.splitter.split, weights if by_own_score else routed.scorer.score
        others = sorted(set(params) - {"groups"})
        if others:
            raise TypeError(
                f"fit does not accept {others} without metadata routing: enable it by "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        scoring = by_name(self.scoring)
        takes_weights = scoring is None or accepts_weights(get_scorer(scoring))
        return params, weights if takes_weights else {}

    def _scores_and_gaps(self, problem, Cs, paths):
        """Scores and gaps of each C and fold, NaN after a path was cut short.

        ValueError if a path has no score at all.
        """
        scores_path, gaps_path = np.full((2, len(Cs), len(paths)), np.nan)
        for k, path in enumerate(paths):
            scores_path[: len(path.scores), k] = path.scores
            gaps_path[: len(path.gaps), k] = path.gaps
        if min(len(path.scores) for path in paths) == 0:
            limit = next(path.stopped_by for path in paths if path.stopped_by)
            advice = cut_words(self, problem, f"increase {limit}", "try smaller Cs")
            at = self._settings()[limit]
            raise ValueError(
                f"No C can be chosen: {limit}={at} cut the path of a fold short before "
                f"C={Cs[0]:.3g}, the smallest. {advice}"
            )
        return scores_path, gaps_path

    def _choice(self, penalties, Cs, scores_path, means):
        """The indices of the penalty and of C chosen by `refit`."""
        n_penalties, n_Cs = means.shape
        penalty, best = divmod(_best(means.ravel()), n_Cs)
        if self.refit == "best":
            return penalty, best
        with np.errstate(invalid="ignore"):
            spreads = scores_path.std(axis=2)
        if self.refit == "one_standard_error":
            # The standard error of the mean, from the unbiased variance of the scores.
            error = spreads[penalty, best] / np.sqrt(max(scores_path.shape[2] - 1, 1))
            enough = means[penalty] >= means[penalty, best] - error
            return penalty, int(np.argmax(enough))
        params = [{**penalty, "C": float(C)} for penalty in penalties for C in Cs]
        results = {
            "params": params,
            "mean_test_score": means.ravel(),
            "std_test_score": spreads.ravel(),
        }
        for name in params[0]:
            results[f"param_{name}"] = np.array([own[name] for own in params])
        for k, scores in enumerate(scores_path.reshape(len(params), -1).T):
            results[f"split{k}_test_score"] = scores
        chosen = self._called(results, means.ravel())
        return divmod(chosen, n_Cs)

    def _called(self, results, means):
        """The choice of `refit`, if it is a callable."""
        chosen = self.refit(results)
        if not isinstance(chosen, Integral):
            raise TypeError(
                f"refit must return an integer, the place of C; got {chosen!r}."
            )
        if not (0 <= chosen < len(means) and np.isfinite(means[chosen])):
            raise ValueError(
                f"refit must return the place of a C with a score in all folds; got "
                f"{chosen}, and there are {len(means)} such values."
            )
        return int(chosen)

    def _paths(self, folds, args, progress):
        """The `FoldPath` of each fold. Folds are parts of the progress."""
        found = Parallel(
            n_jobs=min(effective_n_jobs(self.n_jobs), len(folds)),
            # Results one by one, which not all of joblib's backends support.
            return_as="generator" if progress.listened else "list",
        )(delayed(_score_fold)(*fold, *args, self._follow()) for fold in folds)
        found, paths = iter(found), []
        for _ in folds:
            fold = progress.part("fold").begin()
            paths.append(next(found))
            fold.end()
        return paths

    def _warn_of_gaps(self, problem):
        """Warn of gaps in folds that are too large, if they are known."""

    def _warn_of_cuts(self, problem, Cs, means, stopped_by):
        """Warn of values of C that were not candidates, with the reason."""
        undefined = Cs[: len(means)][~np.isfinite(means)]
        if len(undefined):
            warn_caller(
                f"The mean score of C={listed(undefined)} is not finite, because the "
                "score of a fold is not. C was chosen among the other values."
            )
        limits = [limit for limit in stopped_by if limit is not None]
        if limits:
            advice = cut_words(self, problem, f"increase {limits[0]}", "end Cs there")
            warn_caller(
                f"The paths of {len(limits)} of {len(stopped_by)} folds were cut short "
                f"by {limits[0]}={self._settings()[limits[0]]}, so that C above "
                f"{Cs[len(means) - 1]:.3g} has no score. {advice}",
                ConvergenceWarning,
            )

    def _classifier(self, structure):
        """The classifier for the chosen C and along the paths."""
        names = self._final_class._get_param_names()
        settings = self._settings()
        shared = {name: settings[name] for name in names if name in settings}
        # These parameters concern the folds and the final fit only.
        del shared["n_jobs"], shared["verbose"]
        shared["structure"] = clone(structure)
        shared["solver_options"] = options = {
            name: value
            for name, value in (self.solver_options or {}).items()
            if name in self._final_class._option_table
        }
        if structure.has_classes:
            # A fold may lack some of the labels.
            options["classes"] = structure.classes_
        return self._final_class(**shared)

    def _folds(self, problem, weights, for_splits, is_weighted):
        """Pairs of training and test examples that are not empty."""
        flat = problem.structure.flat
        X, y = problem.given if flat else (problem.given[0], None)
        if not flat and "Stratified" in type(self.cv).__name__:
            raise TypeError(
                f"cv={self.cv!r} needs one class per example, but here each example has "
                "several labels: use KFold or GroupKFold."
            )
        folds = checked_folds(self.cv, X, y, classifier=flat, **for_splits)
        if not folds:
            raise ValueError(
                "cv yields no folds. If it is an iterator, it may have been consumed by "
                "an earlier fit: pass a list or a splitter."
            )
        for k, (train, test) in enumerate(folds):
            parts = {"training": train, "test": test}
            for name, part in parts.items():
                if len(part) == 0:
                    raise ValueError(
                        f"Fold {k} of cv has no examples in its {name} part."
                    )
            if not is_weighted:
                # Then only training uses weights.
                del parts["test"]
            for name, part in parts.items():
                if not weights[part].any():
                    raise ValueError(
                        f"All examples in the {name} part of fold {k} of cv have "
                        "sample_weight 0."
                    )
        return folds


def _best(means):
    """The index of the best mean score, the first one in case of ties."""
    finite = np.isfinite(means)
    if not finite.any():
        raise ValueError(
            f"The mean score of every C is {means[0]}, so no C can be chosen. If the "
            "score is undefined for some predictions, set its value for them, for "
            "example with zero_division."
        )
    return int(np.argmax(np.where(finite, means, -np.inf)))


def _score_fold(train, test, estimator, X, y, weights, Cs, scoring, metadata, follow):
    """Scores on the test part, for each C that a path reaches.

    Returns a `FoldPath`.
    """
    estimator = clone(estimator)
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    X_train, y_train = _safe_indexing(X, train), _safe_indexing(y, train)
    path, stopped_by = follow(estimator, X_train, y_train, weights[train], Cs)
    scorer = check_scoring(estimator, scoring=by_name(scoring))
    kwargs = _check_method_params(X, metadata, indices=test)
    scores, gaps = [], []
    for gap in path:
        try:
            score = scorer(estimator, X_test, y_test, **kwargs)
        except TypeError as error:
            raise TypeError(
                "scoring must be a name, such as 'token_accuracy', what make_scorer "
                "returns, or a function of (estimator, X, y). The one given fails when "
                "it is called like that."
            ) from error
        scores.append(_as_number(score))
        gaps.append(gap)
    return FoldPath(scores, gaps, stopped_by)


def _as_number(score):
    """A scorer's result as a float, read as in scikit-learn's searches."""
    with suppress(AttributeError, ValueError):
        score = score.item()
    if not isinstance(score, Real):
        raise ValueError(
            f"scoring must return a number, got {score!r} ({type(score).__name__})."
        )
    return float(score)


def follow_fits(estimator, X, y, weights, Cs):
    """Fits that start from one another."""
    problem = bind_local(estimator, X, y, weights, warns=False)
    return warm_fits(estimator, problem, Cs), None


def _warn_of_end(Cs, best, scores):
    """Warn of a best C at an end that is clearly better: `scores` (n_Cs, n_folds)."""
    inner = {0: 1, len(Cs) - 1: len(Cs) - 2}.get(best, best) % len(Cs)
    with np.errstate(invalid="ignore"):
        gains = scores[best] - scores[inner]
        is_clear = gains.mean() > gains.std() / np.sqrt(max(len(gains) - 1, 1))
    if is_clear:
        more = [f"{Cs[best] * (Cs[best] / Cs[inner]) ** i:.3g}" for i in range(1, 4)]
        words = f"The best C, {Cs[best]:.3g}, is at an end of Cs, and clearly better than"
        words += f" {Cs[inner]:.3g}. Values beyond may be better: add {', '.join(more)}."
        warn_caller(words)
