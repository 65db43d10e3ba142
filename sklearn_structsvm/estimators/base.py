"""Shared by all estimators: all-or-nothing fits, pickling and callbacks."""

from contextlib import ExitStack
from typing import ClassVar

import numpy as np
from sklearn import get_config

from sklearn_structsvm._utils.arrays import refuse_swapped
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import with_callbacks
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.labels import plain
from sklearn_structsvm._utils.options import OptionsMixin
from sklearn_structsvm._utils.snapshots import Draft, FittedAside
from sklearn_structsvm._utils.tables import misreadings_told, warn_of_other_order
from sklearn_structsvm._utils.weights import NO_NUMBERS
from sklearn_structsvm._version import __version__
from sklearn_structsvm.confusion.cells import NO_POSITIVE
from sklearn_structsvm.estimators.constraints import check_ranges
from sklearn_structsvm.estimators.inner import learned
from sklearn_structsvm.estimators.options import Need, check_needs


class AtomicFitMixin(FittedAside, OptionsMixin, DocumentedMixin):
    """For estimators whose `fit` calls `fit_aside`, and which fit in `_fit_within`.

    `_needs`: by the names of parameters and options, what they need of others. Those
    that all solvers have, such as `tol`, need nothing. Neither do those that are ignored
    so that one grid can contain several solvers.
    """

    _needs: ClassVar[dict[str, list[Need]]] = {}

    # Not all estimators have this parameter.
    verbose: int = 0

    def __getstate__(self):
        return super().__getstate__() | {"_sklearn_structsvm_version": __version__}

    def __setstate__(self, state):
        version = state.pop("_sklearn_structsvm_version", "unknown")
        if version != __version__:
            warn_caller(
                f"This {type(self).__name__} was saved by sklearn-structsvm {version} "
                f"and is loaded by version {__version__}. It may fail or give wrong "
                "results.",
            )
        super().__setstate__(state)

    def _check_parameters(self):
        """Raise ValueError for contradicting parameters, before looking at the data."""
        self._check_options()
        owner, settings = type(self).__name__, self._settings()
        check_ranges(owner, settings, self._parameter_constraints)
        allowed = {name: option.allowed for name, option in self._option_table.items()}
        check_ranges(f"{owner}'s solver_options", settings, allowed)
        check_needs(self)


def fit_aside(estimator, fit_within=None, /, **arguments):
    """Fit an estimator: all or nothing, aside from those who read, and told to callbacks.

    Callbacks may hold out data, and are torn down however the fit ends.

    `fit_within`: None for the method ``_fit_within`` of the estimator. `**arguments`:
    the arguments of its `fit`: X, y and metadata, with those that only its inner
    estimators know in a dict `fit_params`. They go to ``fit_within(draft, fit,
    **arguments)``. Returns the estimator.
    """
    X = arguments["X"]
    warn_of_other_order(X, arguments)
    with damage_refused(estimator), Fit(estimator) as fit, ExitStack() as stack:
        stack.enter_context(misreadings_told(X, {}))
        draft = fit.estimator
        for callback in learned(draft, "_skl_callbacks", ()):
            if hasattr(callback, "holding_out"):
                stack.enter_context(callback.holding_out(draft, arguments))
        fit.data = _data_for_callbacks(**arguments)
        fit_within = fit_within or type(draft)._fit_within
        try:
            with_callbacks(lambda draft: fit_within(draft, fit, **arguments))(draft)
        except (TypeError, ValueError) as error:
            refuse_swapped(X, arguments["y"])
            if words := _line_that_works(str(error), arguments):
                raise ValueError(f"{error} {words}") from error
            raise
    return estimator


def _line_that_works(message, arguments):
    """What to write, after an error for which it depends on the arguments of `fit`."""
    if NO_POSITIVE in message:
        labels, counts = np.unique(arguments["y"], return_counts=True)
        return f"For the rarest label write pos_label={plain(labels[counts.argmin()])!r}."
    name = "sensitive_features" if "sensitive_features" in arguments else "groups"
    if NO_NUMBERS not in message or not {name, "fit_params"} & set(arguments):
        return ""
    return f"Pass groups by name: fit(X, y, {name}=...)."


def _data_for_callbacks(X, y, fit_params=None, **metadata):
    metadata |= fit_params or {}
    metadata = {name: value for name, value in metadata.items() if value is not None}
    return {"X": X, "y": y, "metadata": metadata}


class Fit:
    """One fit: all or nothing.

    ``with Fit(model) as fit`` checks the parameters and makes a draft, `fit.estimator`,
    which is to be fitted. If the block ends, or raises after `commit`, its attributes
    replace those of the previous fit, all at once. Until then, and if the block raises
    before, the model stays as it was.

    Attributes: `estimator` (AtomicFitMixin): the draft. It has no fitted attributes
    yet. `previous`: the attributes of the previous fit. `data`: X, y, metadata.
    """

    def __init__(self, estimator):
        self.draft = Draft(estimator)
        self.estimator = self.draft.estimator
        self.previous = self.draft.take_fitted()
        self.is_committed = False
        self.data, self.whole = {}, None

    def within(self, whole):
        """This fit, as a part of another one that is a `FitProgress`."""
        self.whole = whole
        return self

    def __enter__(self):
        if not get_config()["skip_parameter_validation"]:
            self.estimator._validate_params()
        self.estimator._check_parameters()
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None or self.is_committed:
            self.draft.replace()

    def commit(self):
        """Keep the attributes set so far, even if an exception follows.

        It may be an interrupt, or a warning that was turned into an error.
        """
        self.is_committed = True

    def progress(self, n_parts):
        """The `FitProgress` of this fit, with at most this many parts."""
        if self.whole is not None:
            return self.whole
        return FitProgress.of_fit(self.estimator, self.data, n_parts)

    def reporter(self, snapshot=None):
        """A `PassReporter` for at most `max_iter` passes."""
        return PassReporter(self.progress(self.estimator.max_iter), snapshot)


def require_y(estimator, y):
    """ValueError, in scikit-learn's words, if y is None."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )


class FitProgress:
    """A fit, or a part of one, that is reported to callbacks.

    `context`: that of scikit-learn, or None if there are no callbacks.
    """

    def __init__(self, estimator, data, context):
        self.estimator = estimator
        self.data = data
        self.context = context

    @classmethod
    def of_fit(cls, estimator, data, n_parts):
        """The progress of a complete fit with at most this many parts."""
        context = estimator._init_callback_context(max_subtasks=n_parts)
        if not learned(estimator, "_skl_callbacks"):
            context = None
        return cls(estimator, data, context)

    @property
    def listened(self):
        return self.context is not None

    def part(self, name, n_parts=0):
        """One of its parts, which itself has at most this many."""
        context = self.context
        if self.listened:
            context = context.subcontext(task_name=name, max_subtasks=n_parts)
        return FitProgress(self.estimator, self.data, context)

    def begin(self):
        if self.listened:
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return self

    def end(self, snapshot=None):
        """Whether a callback asks to stop here.

        `snapshot` is a callable () -> dict of the fitted attributes that the estimator
        would have now. It is called if a callback wants a fitted estimator.
        """
        return self.listened and self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=snapshot, **self.data
        )


class PassReporter:
    """Reports each pass of a solver to callbacks, and to `verbose`.

    `progress`: the passes are its parts. `snapshot` or None: as for `FitProgress.end`.
    """

    def __init__(self, progress, snapshot):
        self.progress = progress
        self.snapshot = snapshot
        self.this_pass = None

    def begin(self):
        self.progress.begin()
        self._next_pass()

    def __call__(self, n_iter, row, done):
        """Report a pass, the last one if `done`. Returns whether to stop.

        `row` is the last one of the history, None before the first.
        """
        estimator = self.progress.estimator
        if estimator.verbose and row is not None and row["n_iter"] == n_iter:
            print(
                f"[{type(estimator).__name__}] pass {n_iter}, "
                f"{row['seconds']:.1f} s: objective {row['objective']:.6g}, duality gap "
                f"{row['dual_gap']:.3g}"
            )
        stop = self.this_pass.end(self.snapshot)
        if not (stop or done):
            self._next_pass()
        return stop

    def end(self):
        self.progress.end(self.snapshot)

    def _next_pass(self):
        self.this_pass = self.progress.part("pass").begin()
