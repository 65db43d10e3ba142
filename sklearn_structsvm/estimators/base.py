"""What all estimators do alike: fit all or nothing, pickle, report to callbacks."""

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._version import __version__


class AtomicFitMixin:
    """For estimators whose `fit` is `_fit_or_restore`, around a `_fit` of their own."""

    def __getstate__(self):
        return super().__getstate__() | {"_sklearn_structsvm_version": __version__}

    def __setstate__(self, state):
        version = state.pop("_sklearn_structsvm_version", "unknown")
        if version != __version__:
            warn_caller(
                f"This {type(self).__name__} was saved by sklearn-structsvm {version} "
                f"and is read by {__version__}, which may break or mislead.",
                UserWarning,
            )
        super().__setstate__(state)

    def _fit_or_restore(self, *data):
        """`_fit` from a clean slate; where it fails, all is as it was before.

        `_fit` gets the data and, after them, the `Transaction` that it is part of.
        """
        with Transaction(self) as transaction:
            self._fit(*data, transaction)
        return self


class Transaction:
    """A fit that leaves all it set, or where it raises what was there before.

    Attributes
    ----------
    before : dict
        The attributes of the previous fit.
    """

    def __init__(self, estimator):
        self.estimator = estimator
        self.before = self._fitted()
        self.is_committed = False

    def commit(self):
        """What has been set stays, whatever is raised from now on.

        That may be an interrupt, or a warning that was turned into an error.
        """
        self.is_committed = True

    def __enter__(self):
        self._drop()
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None and not self.is_committed:
            self._drop()
            vars(self.estimator).update(self.before)

    def _fitted(self):
        attributes = vars(self.estimator).items()
        return {name: value for name, value in attributes if _is_fitted_attribute(name)}

    def _drop(self):
        for name in self._fitted():
            delattr(self.estimator, name)


def _is_fitted_attribute(name):
    return name == "_dual_state" or (name.endswith("_") and not name.startswith("_"))


def require_y(estimator, y):
    """ValueError, in scikit-learn's words, where y is None."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )


class PassReporter:
    """Reports each pass of a solver to the callbacks of an estimator, and to `verbose`.

    Parameters
    ----------
    estimator : estimator with CallbackSupportMixin
    data : dict
        X, y and metadata, handed to the callbacks.
    snapshot : callable
        () -> dict of the fitted attributes that the estimator would have now.
    """

    def __init__(self, estimator, data, snapshot):
        self.estimator = estimator
        self.data = data
        self.snapshot = snapshot
        self.listened = bool(getattr(estimator, "_skl_callbacks", None))
        self.root = estimator._init_callback_context(max_subtasks=estimator.max_iter)
        self.task = None

    def begin(self):
        if self.listened:
            self.root.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            self._next_task()

    def __call__(self, n_iter, row, done):
        """After a pass, the last one where `done`; whether a callback asks to stop.

        `row` is the last one of the history, None before the first.
        """
        name = type(self.estimator).__name__
        if self.estimator.verbose and row is not None and row["n_iter"] == n_iter:
            print(
                f"[{name}] pass {n_iter}, {row['seconds']:.1f} s: "
                f"objective {row['objective']:.6g}, duality gap {row['dual_gap']:.3g}"
            )
        if not self.listened:
            return False
        stop = self.task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=self.snapshot(),
            **self.data,
        )
        if not (stop or done):
            self._next_task()
        return bool(stop)

    def end(self):
        if self.listened:
            self.root.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=self.snapshot(),
                **self.data,
            )

    def _next_task(self):
        self.task = self.root.subcontext(task_name="pass")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
