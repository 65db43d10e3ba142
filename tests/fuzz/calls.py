"""One random call of the public interface for each number."""

import inspect

import numpy as np
from _untouched import untouched
from damage import damage, saved_and_read
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from values import MEANT, ODD, Task, spoil

import sklearn_structsvm
from sklearn_structsvm import (
    bcfw_path,
    confusion,
    crf_path,
    datasets,
    metrics,
    plotting,
    structures,
)

KINDS = ("binary", "classes", "indicator", "chains", "trees", "graphs", "parts")
# Exceptions named in the documentation. All others are raw, whatever they say.
CLEAR = (ValueError, TypeError, NotFittedError, RuntimeError, NotImplementedError)
SKIPPED = ("get_", "set_", "fetch_")
# Methods of structures to which estimators pass arrays that they have made or checked.
# The documentation does not list them.
INNER = ("join_weights", "least_costly", "present_scores")


def public(module):
    """Functions and classes that a module exports."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: value for name, value in found.items()
        if callable(value) and not name.startswith(SKIPPED)
    }  # fmt: skip


# One needs a classifier to be made.
ESTIMATORS = {
    name: value
    for name, value in public(sklearn_structsvm).items()
    if isinstance(value, type) and name != "StackedStructureClassifier"
}
OTHERS = {
    f"{module.__name__.split('.')[-1]}.{name}": value
    for module in (sklearn_structsvm, metrics, confusion, structures, datasets, plotting)
    for name, value in public(module).items()
    if value not in ESTIMATORS.values()
}


def methods_of(thing):
    """Names of the public methods of an object."""
    return sorted(
        name for name in dir(thing)
        if not name.startswith(("_", *SKIPPED)) and callable(getattr(thing, name, None))
        and not (name in INNER and isinstance(thing, structures.Structure))
    )  # fmt: skip


class Broken(Exception):
    """A call had a result, but not the right one."""


class Call:
    """The calls, step by step, so that a failure can name the last one."""

    def __init__(self, seed, number):
        self.rng = np.random.default_rng([seed, number])
        self.name = self.kind = "?"

    def run(self, shares):
        """A call of one of these kinds of calls, which are methods, by their shares."""
        share = np.array([*shares.values()], dtype=float)
        self.kind = self.rng.choice([*shares], p=share / share.sum())
        getattr(self, self.kind)()

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def fit(self):
        """Call an estimator on data that may be spoiled."""
        model = self.estimator(spoiled=0.05)
        self.ask(model, "fit", spoiled=0.4)
        self.ask(model, spoiled=0.6)

    def state(self):
        """Call an estimator with damaged attributes, by hand or in a pickle."""
        model = self.estimator(spoiled=0.0)
        if "warm_start" in model.get_params():
            model.set_params(warm_start=bool(self.rng.integers(2)))
        try:
            self.ask(model, "fit")
        except CLEAR:
            return
        for _ in range(self.rng.integers(1, 3)):
            damage(self.rng, model)
        if self.rng.random() < 0.3:
            model = saved_and_read(self.rng, model)
        self.ask(model, "fit" if self.rng.random() < 0.3 else None)

    def other(self):
        """A function, or an object and one of its methods."""
        self.name = self.pick(sorted(OTHERS))
        target = OTHERS[self.name]
        if not isinstance(target, type):
            self.task = Task(self.rng, self.pick(KINDS))
            self.call(target, spoiled=0.5)
        elif hasattr(target, "from_estimator"):
            name = self.name
            model = self.estimator(spoiled=0.0)
            self.ask(model, "fit")
            self.name = name
            given = {"estimator": model}
            self.call(target.from_estimator, spoiled=0.3, only=MEANT, given=given)
        else:
            self.task = Task(self.rng, self.pick(KINDS))
            if issubclass(target, structures.Structure):
                thing = self.task.structure()
                self.ask(thing, "fit")
                self.task.n_weights = thing.n_weights_
                self.ask(thing, only=["w"], spoiled=0.5)
            elif issubclass(target, (confusion.ConfusionMetric, confusion.Constraint)):
                self.ask(self.make(target, spoiled=0.2), "__call__", spoiled=0.5)
            else:
                self.make(target, spoiled=0.2)

    def estimator(self, spoiled, names=None, kinds=KINDS):
        """One of all estimators, or of these, for data of one of these kinds."""
        name = self.pick(sorted(ESTIMATORS if names is None else names))
        self.name, kind = name, ESTIMATORS[name]
        if "structure" not in inspect.signature(kind).parameters:
            flat = KINDS[: 3 if get_tags(kind()).classifier_tags.multi_label else 2]
            kinds = [own for own in kinds if own in flat]
        self.task = Task(self.rng, self.pick(kinds))
        return self.make(kind, spoiled)

    def make(self, kind, spoiled):
        """An object with a few random parameters, and fewer that are spoiled."""
        arguments = self.task.arguments(kind)
        parameters = inspect.signature(kind).parameters
        for name in [*arguments]:
            if self.rng.random() < spoiled:
                arguments[name] = self.pick(ODD)
        own = self.task.kind not in ("binary", "classes", "chains")
        if own and "structure" in parameters:
            arguments.setdefault("structure", self.task.structure())
        if "max_time" in getattr(kind, "_option_table", {}):
            arguments.setdefault("solver_options", {"max_time": 1.0})
        if "max_iter" in parameters:
            arguments.setdefault("max_iter", 20)
        return kind(**arguments)

    def ask(self, thing, method=None, **options):
        """Call a method of an object, or a random one if none is named."""
        if method is None:
            method = self.pick(methods_of(thing) + ["__call__"] * callable(thing))
        self.name = f"{self.name.split('(')[0]}({method})"
        return self.call(getattr(thing, method), **options)

    def call(self, function, spoiled=0.0, only=None, given=None):
        arguments = self.task.arguments(function) | (given or {})
        if function in (bcfw_path, crf_path):
            # A path without a limit may take long, as its documentation says.
            arguments.setdefault("solver_options", {"max_time": 1.0})
        if isinstance(getattr(function, "__self__", None), structures.Structure):
            self.single(arguments)
        names = sorted(arguments if only is None else set(only) & set(arguments))
        if names and self.rng.random() < spoiled:
            name = self.pick(names)
            arguments[name] = spoil(self.rng, arguments[name])
        with untouched(**arguments):
            return function(**arguments)

    def single(self, arguments):
        """Methods of a structure that concern one example take one labeling."""
        if {"x", "y_true"} & set(arguments):
            labels = {"y", "y_true"} & set(arguments)
            arguments |= {name: arguments[name][0] for name in labels}
