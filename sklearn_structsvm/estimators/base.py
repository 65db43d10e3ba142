"""What all estimators do alike: fit all or nothing, pickle, report to callbacks."""

from sklearn import get_config

from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import with_callbacks
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._version import __version__
from sklearn_structsvm.estimators.options import check_needs


class AtomicFitMixin(DocumentedMixin):
    """For estimators whose `fit` is `_fit_or_restore`, around a `_fit` of their own."""

    def __getstate__(self):
        return super().__getstate__() | {"_sklearn_structsvm_version": __version__}

    def __setstate__(self, state):
        version = state.pop("_sklearn_structsvm_version", "unknown")
        if version != __version__:
            warn_caller(
                f"This {type(self).__name__} was saved by sklearn-structsvm {version} "
                f"and is loaded by version {__version__}. It may fail or give wrong "
                "results.",
                UserWarning,
            )
        super().__setstate__(state)

    @with_callbacks
    def _fit_or_restore(self, *data):
        """`_fit` from a clean slate; where it fails, all is as it was before.

        `_fit` gets the data and, after them, the `Transaction` that it is part of.
        However it ends, callbacks that it set up are torn down.
        """
        if not get_config()["skip_parameter_validation"]:
            self._validate_params()
        check_needs(self)
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


class Task:
    """A part of a fit that callbacks are told of, where there are any.

    Parameters
    ----------
    estimator : estimator with CallbackSupportMixin
    data : dict
        X, y and metadata, handed to the callbacks.
    context : CallbackContext or None
        Of scikit-learn; None where nobody listens.
    """

    def __init__(self, estimator, data, context):
        self.estimator = estimator
        self.data = data
        self.context = context

    @classmethod
    def whole_fit(cls, estimator, data, n_parts):
        """The task of a fit that has at most so many parts."""
        context = estimator._init_callback_context(max_subtasks=n_parts)
        if not getattr(estimator, "_skl_callbacks", None):
            context = None
        return cls(estimator, data, context)

    @property
    def listened(self):
        return self.context is not None

    def part(self, name, n_parts=0):
        """One of its parts, that has itself at most so many."""
        context = self.context
        if self.listened:
            context = context.subcontext(task_name=name, max_subtasks=n_parts)
        return Task(self.estimator, self.data, context)

    def begin(self):
        if self.listened:
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return self

    def end(self, snapshot=None):
        """Whether a callback asks to stop here.

        `snapshot` is a callable () -> dict of the fitted attributes that the estimator
        would have now. It is called for those who want a fitted estimator.
        """
        return self.listened and self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=snapshot, **self.data
        )


class PassReporter:
    """Reports each pass of a solver to callbacks, and to `verbose`.

    Parameters
    ----------
    task : Task
        Whose parts the passes are.
    snapshot : callable
        As for `Task.end`.
    """

    def __init__(self, task, snapshot):
        self.task = task
        self.snapshot = snapshot
        self.this_pass = None

    def begin(self):
        self.task.begin()
        self._next_pass()

    def __call__(self, n_iter, row, done):
        """After a pass, the last one where `done`; whether a callback asks to stop.

        `row` is the last one of the history, None before the first.
        """
        # Not all estimators have that parameter.
        verbose = getattr(self.task.estimator, "verbose", False)
        if verbose and row is not None and row["n_iter"] == n_iter:
            print(
                f"[{type(self.task.estimator).__name__}] pass {n_iter}, "
                f"{row['seconds']:.1f} s: objective {row['objective']:.6g}, duality gap "
                f"{row['dual_gap']:.3g}"
            )
        stop = self.this_pass.end(self.snapshot)
        if not (stop or done):
            self._next_pass()
        return stop

    def end(self):
        self.task.end(self.snapshot)

    def _next_pass(self):
        self.this_pass = self.task.part("pass").begin()
