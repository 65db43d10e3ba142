"""Callbacks for `set_callbacks`, in the terms of scikit-learn's own."""

from contextlib import contextmanager
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.compat import Interval, accepts_weights
from sklearn_structsvm._utils.mistakes import validate_params
from sklearn_structsvm._utils.scorers import by_name, refuse_unsuitable

# Attributes that an estimator has only during a fit, or that lead back to its callbacks.
_OF_A_FIT = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx")


class EarlyStopping:
    """Stop a fit once its score on a validation part no longer improves.

    The score is computed after each pass that has new weights. The fit stops if the best
    score has not improved by more than `tol` in `n_iter_no_change` scores in a row, as in
    `MLPClassifier`. A fit that meets its own `tol` or `max_iter` earlier ends there.
    Quasi-Newton and bundle solvers may have new weights at gap checks only, which are up
    to ten passes apart.

    The estimator keeps the weights that it ends with, and `dual_gap_` is their
    certificate. `best_estimator_` has the weights of the best pass and no certificate.

    Callbacks need scikit-learn 1.9. Clones share them: in a `GridSearchCV` the attributes
    are those of the last fit in this process, which is the final one. In a `Pipeline`,
    set this callback on the last step, and give no `X_val`, or an `X_val` that the other
    steps have transformed.

    Read more in the :ref:`User Guide <guide-early-stopping>`.

    Parameters
    ----------
    X_val : {array-like, sparse matrix} or sequence, default=None
        Validation data, as `fit` takes them. None holds out a part of the training data.
    y_val : array-like or sequence, default=None
        True labels of `X_val`.
    sample_weight_val : array-like of shape (n_val,), default=None
        Weights of the validation examples, for scorers that accept them.
    validation_fraction : float, default=0.1
        Share of the training examples to hold out, with equal shares of the classes where
        there is one label per example. Not with `X_val`. Only estimators of this package
        hold out data.
    scoring : str, callable or None, default=None
        The score, as in scikit-learn: higher is better. None is the estimator's `score`.
    n_iter_no_change : int, default=5
        Number of consecutive scores without an improvement.
    tol : float, default=1e-4
        Smaller improvements do not count.
    random_state : int, RandomState instance or None, default=0
        Controls which examples are held out.

    Attributes
    ----------
    best_score_ : float
        The highest score of a pass.
    best_iter_ : int
        The first pass that had it; passes are counted from 1.
    best_estimator_ : estimator
        A copy of the estimator with the weights of that pass. Only what predictions need
        is set.
    validation_scores_ : ndarray of shape (n_scores,)
        The score after each pass that had new weights.
    stopped_ : bool
        Whether this callback ended the fit.

    See Also
    --------
    sklearn.callback.ScoringMonitor : Records scores on the training data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.callbacks import EarlyStopping
    >>> X, y = load_digits(return_X_y=True)
    >>> stopping = EarlyStopping(n_iter_no_change=3)
    >>> model = BCFWClassifier(tol=1e-9, random_state=0).set_callbacks(stopping)
    >>> model = model.fit(X, y)
    >>> stopping.stopped_, model.n_iter_ >= stopping.best_iter_
    (True, True)
    >>> stopping.best_estimator_.predict(X).shape
    (1797,)
    """

    best_score_: float
    best_iter_: int
    best_estimator_: Any
    validation_scores_: np.ndarray
    stopped_: bool

    @validate_params(
        {
            "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
            "scoring": [str, callable, None],
            "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
            "tol": [Interval(Real, 0.0, None, closed="left")],
            "random_state": ["random_state"],
        },
        prefer_skip_nested_validation=True,
    )
    def __init__(
        self,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight_val: Any = None,
        validation_fraction: float = 0.1,
        scoring: Any = None,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together.")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val requires X_val and y_val.")
        self.X_val, self.y_val = X_val, y_val
        self.sample_weight_val = sample_weight_val
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        # Fits in progress, by the estimator's id, since several threads may fit.
        self._held_out: dict[Any, Any] = {}
        self._runs: dict[Any, Any] = {}

    def __getstate__(self):
        # Another process does not take part in the fits of this one.
        return vars(self) | {"_held_out": {}, "_runs": {}}

    @contextmanager
    def holding_out(self, estimator, arguments):
        """A context in which `fit` has the remaining arguments.

        Estimators of this package call it before they look at the data.

        Parameters
        ----------
        estimator : estimator
        arguments : dict
            The arguments of `fit` by name, which are changed in place. All of them except
            X and y must have an entry for each example.
        """
        if self.X_val is not None or arguments.get("y") is None:
            yield
            return
        names = [
            k for k, v in arguments.items() if v is not None and not isinstance(v, dict)
        ]
        data = [arguments[name] for name in names]
        if any(hasattr(one, "dask") for one in data):
            raise TypeError(
                "EarlyStopping holds out no part of Dask collections. Pass X_val and "
                "y_val, in memory."
            )
        more = [v for v in arguments.values() if isinstance(v, dict) and v]
        if more:
            raise TypeError(
                "EarlyStopping does not divide metadata such as "
                f"{sorted(more[0])[0]!r}. Pass X_val and y_val."
            )
        parts = train_test_split(
            *data,
            test_size=self.validation_fraction,
            random_state=self.random_state,
            stratify=self._strata(arguments["y"]),
        )
        arguments.update(zip(names, parts[::2], strict=True))
        held = dict(zip(names, parts[1::2], strict=True))
        weights = held.get("sample_weight")
        self._held_out[id(estimator)] = held["X"], held["y"], weights
        try:
            yield
        finally:
            del self._held_out[id(estimator)]

    def _strata(self, y):
        """The classes, if each example has one and each part can have all of them."""
        if sparse.issparse(y) or np.ndim(next(iter(y), ())) > 0:
            return None
        if type_of_target(y) not in ("binary", "multiclass"):
            return None
        counts = np.unique(y, return_counts=True)[1]
        n_held = self.validation_fraction * len(y)
        least = min(n_held, len(y) - n_held)
        return y if counts.min() >= 2 and least >= len(counts) else None

    def setup(self, estimator, context):
        """Start to watch a fit."""
        data = self.X_val, self.y_val, self.sample_weight_val
        if self.X_val is None:
            if id(estimator) not in self._held_out:
                raise ValueError(
                    f"{type(estimator).__name__} holds out no part of its training data. "
                    "Pass X_val and y_val to EarlyStopping."
                )
            data = self._held_out[id(estimator)]
        self._runs[id(estimator)] = _Run(self._make_score(estimator, *data))

    def _make_score(self, estimator, X, y, weights):
        """A function of a fitted estimator."""
        if self.scoring is None:
            takes_weights = "sample_weight" in signature(estimator.score).parameters
            extra = (weights,) if weights is not None and takes_weights else ()
            answer = Answer("score", estimator)
            return lambda fitted: answer.number(fitted.score(X, y, *extra))
        is_item = isinstance(X, list) and len(getattr(X[0], "shape", ())) == 2
        if is_item and np.ndim(y[0]):
            refuse_unsuitable(self.scoring, y[0])
        scorer = check_scoring(estimator, by_name(self.scoring))
        extra = {}
        if weights is not None and accepts_weights(scorer):
            extra = {"sample_weight": weights}
        answer = Answer("scoring", "EarlyStopping")
        return lambda fitted: answer.number(scorer(fitted, X, y, **extra))

    def teardown(self, estimator, context):
        """Keep the results of a fit."""
        run = self._runs.pop(id(estimator), None)
        if run is not None and run.scores:
            self.best_score_, self.best_iter_ = run.best_score, run.best_iter
            self.best_estimator_ = run.best
            self.validation_scores_ = np.array(run.scores)
            self.stopped_ = run.stopped

    def on_fit_task_begin(self, estimator, context):
        """Nothing to do."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        """Score the pass. Returns whether to stop."""
        is_pass = context.parent is not None and context.max_subtasks == 0
        if fitted_estimator is None or not is_pass:
            return False
        run = self._runs[id(estimator)]
        return run.take(fitted_estimator, context.task_id + 1, self)


class _Run:
    """A fit that is watched."""

    def __init__(self, score):
        self.score, self.scores = score, []
        self.last = None
        self.best, self.best_iter, self.best_score = None, 0, -np.inf
        # The score that later scores have to exceed, and how many did not.
        self.mark, self.waited = -np.inf, 0
        self.stopped = False

    def take(self, fitted, n_iter, options):
        """Score another pass. Returns whether to stop."""
        weights = getattr(fitted, "coef_", None)
        if weights is not None and np.array_equal(weights, self.last):
            return False
        self.last = weights
        score = self.score(fitted)
        self.scores.append(score)
        if self.best is None or score > self.best_score:
            for name in _OF_A_FIT:
                vars(fitted).pop(name, None)
            self.best, self.best_iter, self.best_score = fitted, n_iter, score
        if score > self.mark + options.tol:
            self.mark, self.waited = score, 0
        else:
            self.waited += 1
        self.stopped = self.waited >= options.n_iter_no_change
        return self.stopped
