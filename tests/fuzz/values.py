"""Random arguments: valid values, and damaged ones.

Values depend on the names of arguments, so a new function gets sensible values if it uses
common names. All other arguments get a value of `ODD`.
"""

import copy
import inspect

import numpy as np
from _untouched import tangled
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_structsvm import confusion, metrics, structures
from sklearn_structsvm.confusion import make_cells
from sklearn_structsvm.datasets import make_chains, make_poses
from sklearn_structsvm.metrics import METRICS

NUMBERS = (0, 1, 2, -1, 0.5, 1e-9, 5e-324, 1e308, -0.0, np.nan, np.inf, -np.inf, 2**40)
ODD = (
    *NUMBERS, None, True, "auto", "none such", b"x", "", (), [], {}, [[1, 2], [3]],
    {"a": 1}, 1j, object(), object, np.array(3.0), np.ones(2), np.zeros((0, 3)),
    np.array(["a", "b"], dtype=object),
)  # fmt: skip
FLAT = ("binary", "classes", "indicator")
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
LABELS = ([0, 1, 2], [-1, 1, 7], ["a", "b", "c"], [False, True, True], [0.0, 1.0, 2.0])


class Task:
    """Data of one kind and random size, with the names of arguments for them."""

    def __init__(self, rng, kind):
        self.rng, self.kind = rng, kind
        self.n_weights = 7
        n, self.f, self.k = int(rng.integers(6, 30)), 3, 2 if kind == "binary" else 3
        self.labels = LABELS[rng.integers(len(LABELS))][: self.k]
        if kind == "parts":
            data = make_poses(4, shape=(6, 5), random_state=int(rng.integers(99)))
            self.X, self.y, self.parents = data.X, data.y, data.parents
            n = len(self.X)
        elif kind in ("chains", "trees", "graphs"):
            n = min(n, 8)
            self.X, y = make_chains(
                n, n_features=self.f, n_classes=3, max_length=5, n_active=2,
                random_state=int(rng.integers(99)),
            )  # fmt: skip
            if rng.random() < 0.3:
                self.X = list(map(self.pick([sparse.csr_array, tangled]), self.X))
            self.y = [np.array(self.labels)[y_i] for y_i in y]
            if kind == "trees":
                self.X = [(x, np.arange(x.shape[0]) - 1) for x in self.X]
            if kind == "graphs":
                self.X = [(x, self.edges(x.shape[0])) for x in self.X]
        else:
            codes = np.arange(n) % self.k
            self.y = np.array(self.labels)[codes]
            self.X = rng.normal(size=(n, self.f)).round(2) + 2.0 * np.eye(self.f)[codes]
            if kind == "indicator":
                self.y = (rng.random((n, 3)) < 0.5).astype(int)
            if rng.random() < 0.3:
                kept = rng.random((n, self.f)) < 0.5
                form = self.pick([sparse.csr_array, tangled])
                self.X = form(np.where(kept, self.X, 0))
        self.n = n

    @classmethod
    def of(cls, rng, X, y):
        """A task of given data."""
        task = cls(rng, "chains")
        task.X, task.y, task.kind, task.n = X, y, "given", 0 if y is None else len(y)
        return task

    def edges(self, n):
        """A circle, or a path where it would have one edge twice."""
        edges = np.column_stack([np.arange(n), np.arange(1, n + 1) % n])
        return edges if n > 2 else edges[: n - 1]

    def probabilities(self):
        """Those of the labels, in the form of y."""
        k = len(self.labels)
        if self.kind in FLAT:
            proba = self.rng.dirichlet(np.ones(k), size=self.n)
            return proba[:, -1] if k == 2 and self.rng.random() < 0.5 else proba
        return [self.rng.dirichlet(np.ones(k), size=len(own)) for own in self.y]

    def allowed(self):
        """None, or for each item what its positions may be."""
        if self.kind not in ("chains", "trees", "graphs") or self.rng.random() < 0.5:
            return None
        forms = [
            lambda own: None,
            lambda own: np.ones((len(own), self.k), dtype=bool),
            lambda own: own,
            lambda own: [None, *({label, self.labels[0]} for label in own[1:].tolist())],
        ]
        return [self.pick(forms)(own) for own in self.y]

    def classifier(self):
        model = LogisticRegression(max_iter=20)
        return model.fit(self.X, self.y) if self.kind in ("binary", "classes") else model

    def groups(self):
        return self.rng.choice(["f", "m"], self.n)

    def cells(self):
        codes, classes = np.arange(self.n) % self.k, np.arange(self.k)
        return make_cells(codes, np.ones(self.n), classes)[1]

    def tensor(self):
        return self.rng.dirichlet(np.ones(self.k**2)).reshape(self.k, self.k)

    def metric(self):
        if self.rng.random() < 0.6:
            return self.pick(list(METRICS))
        return self.instance(metrics, confusion.ConfusionMetric)

    def constraint(self):
        return self.instance(metrics, confusion.Constraint)

    def structure(self):
        """A random structure that can be fitted to this task."""
        return self.instance(structures, structures.Structure, self.suits)

    def suits(self, structure):
        """Whether a structure is of this kind of data."""
        if structure.flat:
            kind = "classes" if structure.multi_class else "binary"
            return self.kind == ("indicator" if structure.multi_label else kind)
        try:
            return self.kind not in FLAT and bool(structure.check_data(self.X))
        except (ValueError, TypeError):
            return False

    def instance(self, module, base, suits=lambda thing: True):
        """An object of a random class of a module."""
        names = [
            name for name in module.__all__
            if isinstance(kind := getattr(module, name), type) and issubclass(kind, base)
            and kind is not base
        ]  # fmt: skip
        for _ in range(50):
            kind = getattr(module, self.pick(names))
            try:
                thing = kind(**self.arguments(kind))
                if suits(thing):
                    return thing
            except (TypeError, ValueError):
                continue
        raise ValueError(f"no {base.__name__} could be made")

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def arguments(self, function, share=0.2):
        """Keyword arguments of a function: all required ones, and some others."""
        result = {}
        constraints = getattr(function, "_parameter_constraints", {})
        for name, parameter in inspect.signature(function).parameters.items():
            needed = parameter.default is parameter.empty
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if name == "solver_options":
                result[name] = self.options(function, share)
            elif name != "self" and (needed or self.rng.random() < share):
                result[name] = self.value(name, constraints.get(name), parameter.default)
        return result

    def options(self, function, share):
        """Some of the options of an estimator."""
        table = getattr(function, "_option_table", {})
        return {
            name: self.value(name, option.allowed, option.default)
            for name, option in table.items()
            if self.rng.random() < share
        }

    def value(self, name, constraints=None, default=None):
        """A sensible value for an argument of this name."""
        rng = self.rng
        if name in MEANT:
            return MEANT[name](self)
        if constraints and not isinstance(constraints, str):
            return self.permitted(self.pick(constraints))
        if isinstance(default, bool):
            return bool(rng.integers(2))
        if isinstance(default, (int, float)):
            return self.pick([default, 0.1, 1, 2])
        return self.pick(ODD) if default is inspect.Parameter.empty else default

    def permitted(self, constraint):
        """A value that scikit-learn's validation of parameters lets pass."""
        if isinstance(constraint, StrOptions):
            return self.pick(sorted(constraint.options))
        if isinstance(constraint, Interval):
            low = max(constraint.left or 0, -10)
            value = low + self.pick([0.01, 0.1, 1, 2])
            return int(np.ceil(value)) if "Integral" in str(constraint.type) else value
        simple = {"boolean": True, dict: {}, None: None, "verbose": 0, "random_state": 1}
        return simple.get(constraint) if _hashable(constraint) else None


# Values of arguments by name. Arguments with other names get their default.
MEANT = {
    "X": lambda t: t.X,
    "y": lambda t: t.y,
    "y_true": lambda t: t.y,
    "y_pred": lambda t: t.y[::-1] if t.kind in ("binary", "classes") else t.y,
    "y_proba": lambda t: t.probabilities(),
    "y_score": lambda t: t.probabilities(),
    "propensities": lambda t: t.pick([None, np.full(3, 0.5)]),
    "allowed": lambda t: t.allowed(),
    "threshold": lambda t: t.pick([0.1, 0.9]),
    "priors": lambda t: t.tensor().sum(axis=1),
    "class_priors": lambda t: t.tensor().sum(axis=1),
    "response": lambda t: t.pick(["predict", "predict_proba"]),
    "name": lambda t: "label",
    "y_baseline": lambda t: t.y,
    "baseline": lambda t: t.y,
    "x": lambda t: t.X[[0]] if hasattr(t.X, "shape") else t.X[0],
    "w": lambda t: t.rng.normal(size=t.n_weights),
    "lam": lambda t: t.pick([0.0, 1.0, 2.5]),
    "alpha": lambda t: t.pick([0.0, 0.5, 2.0, np.inf]),
    "beta": lambda t: t.pick([0.0, 0.1, 1.0]),
    "k": lambda t: t.pick([1, 2, 5, 1000]),
    "C": lambda t: t.pick([1.0, 0.01, 100.0]),
    "Cs": lambda t: t.pick([3, [0.1, 1.0]]),
    "cv": lambda t: t.pick([None, 2, 3]),
    "scoring": lambda t: None,
    "sample_weight": lambda t: t.pick([None, t.rng.random(t.n), np.arange(t.n)]),
    "weights": lambda t: np.ones(t.n),
    "labels": lambda t: t.pick([None, t.labels]),
    "classes": lambda t: None if t.kind == "indicator" else t.labels,
    "class_weight": lambda t: None if t.kind == "indicator" else "balanced",
    "n_classes": lambda t: t.k,
    "label": lambda t: t.labels[0],
    "pos_label": lambda t: t.pick([None, t.labels[-1]]),
    "default_label": lambda t: t.pick([None, t.labels[0]]),
    "group": lambda t: t.pick([None, "f"]),
    "groups": lambda t: t.pick([None, t.groups()]),
    "sensitive_features": lambda t: t.pick([None, t.groups()]),
    "label_costs": lambda t: (
        np.ones((3, 2)) if t.kind == "indicator" else 1.0 - np.eye(t.k)
    ),
    "costs": lambda t: 1.0 - np.eye(t.k),
    "cells": lambda t: t.cells(),
    "confusion": lambda t: t.pick(["auto", "plugin", "labels"]),
    "metric": lambda t: t.metric(),
    "constraints": lambda t: [t.constraint() for _ in range(t.rng.integers(3))],
    "structure": lambda t: "auto" if t.rng.random() < 0.3 else t.structure(),
    "estimator": lambda t: t.pick([None, t.classifier()]),
    "edges": lambda t: [("p", "a"), ("p", "b"), ("q", "c"), t.pick(["qb", "rq"])],
    "leaves": lambda t: t.pick([None, ["a", "b", "c"]]),
    "pairs": lambda t: t.pick(["all", "tree", [[0, 1]]]),
    "tokens": lambda t: [["a", "b"], ["c"]],
    "at_least": lambda t: t.pick([None, 0.1, 0.9]),
    "at_most": lambda t: t.pick([None, 0.1, 0.9]),
    "target": lambda t: t.pick([None, 0.3]),
    "max_iter": lambda t: t.pick([1, 3, 20]),
    "max_time": lambda t: 1.0,
    "n_retries": lambda t: 0,
    "n_jobs": lambda t: t.pick([None, 1, 2]),
    "random_state": lambda t: 0,
    "download_if_missing": lambda t: False,
    "n_samples": lambda t: t.pick([1, 5]),
    "shape": lambda t: t.pick([(4, 5), (2, 3)]),
    "parents": lambda t: getattr(t, "parents", [-1, 0]),
}


def spoil(rng, value):
    """The same value with a defect."""
    if rng.random() < 0.15:
        return ODD[rng.integers(len(ODD))]
    if isinstance(value, (list, tuple)) and len(value) and rng.random() < 0.7:
        items = list(value)
        at = rng.integers(len(items))
        items[at] = spoil(rng, items[at])
        return type(value)(items) if rng.random() < 0.9 else items[:-1]
    if sparse.issparse(value):
        return spoil_sparse(rng, value)
    try:
        array = np.array(value)
    except ValueError:
        return list(value)[:-1]
    return spoil_array(rng, array, ODD) if array.ndim else ODD[rng.integers(len(ODD))]


def spoil_array(rng, array, entries=NUMBERS):
    """Another shape, type, layout or entry."""
    import pandas as pd

    damage = [
        lambda a: a[:-1], lambda a: np.concatenate([a, a[:1]]), lambda a: a[:0],
        lambda a: a[..., :-1], lambda a: a[..., :0], lambda a: a[0], lambda a: a[None],
        lambda a: a.ravel(), lambda a: a.T, lambda a: np.asfortranarray(a),
        lambda a: a.astype(object), lambda a: a.astype(str), lambda a: a.astype(complex),
        lambda a: a.astype(np.float32), lambda a: a.astype(np.int8), lambda a: a[::2],
        lambda a: a.astype(bool), lambda a: a.tolist(), lambda a: a * 1e200,
        lambda a: a * 0, lambda a: pd.DataFrame(a), lambda a: pd.Series(list(a)),
        lambda a: spoil_sparse(rng, sparse.csr_array(a)),
    ]  # fmt: skip
    try:
        if rng.random() < 0.5:
            return damage[rng.integers(len(damage))](array)
        array = array.copy() if rng.random() < 0.5 else array.astype(object)
        array.flat[rng.integers(array.size)] = entries[rng.integers(len(entries))]
    except (TypeError, ValueError, IndexError, OverflowError):
        pass  # This cannot go wrong with it.
    return array


def spoil_sparse(rng, matrix):
    """Another format, or indices out of order or out of bounds."""
    matrix = copy.deepcopy(matrix).asformat(FORMATS[rng.integers(len(FORMATS))])
    parts = [part for part in ("indices", "indptr", "data") if hasattr(matrix, part)]
    if rng.random() < 0.5 and matrix.format in ("csr", "csc", "bsr"):
        part = parts[rng.integers(len(parts))]
        array = getattr(matrix, part)
        if len(array) and rng.random() < 0.6:
            bad = [-1, 7, 0, 10**6, 2**31 - 1][rng.integers(5)]
            array[rng.integers(len(array))] = bad
        else:
            setattr(matrix, part, array[:-1] if rng.random() < 0.5 else array[::-1])
    return matrix


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True
