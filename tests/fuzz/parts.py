"""Random calls of what is around the estimators, and of all methods of the parts.

Structures, metrics and constraints, displays, transformers of tokens, converters to ONNX.
"""

import copy
import inspect
from functools import cache

import numpy as np
from _models import MODELS
from _untouched import untouched
from calls import CLEAR, ESTIMATORS, KINDS, OTHERS, Call, methods_of, public
from damage import damage, saved_and_read
from decisions import KINDS as DECISIONS
from decisions import check_decision
from problems import FAMILIES, check_problem
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from some_tokens import some_table, some_tokens
from uses import check_use
from values import FLAT, ODD, Task, spoil

from sklearn_structsvm import confusion, metrics, plotting, structures
from sklearn_structsvm.onnx import register_converters
from sklearn_structsvm.preprocessing import (
    SequenceTransformer,
    SplitMatrix,
    split_sequences,
)

# How often each kind of call is made.
SHARES = {
    "fit": 20, "state": 18, "other": 12, "structure": 12, "measure": 10, "display": 8,
    "words": 8, "convert": 4, "file": 8, "problem": 10, "decision": 5, "use": 20,
}  # fmt: skip

STRUCTURES = [kind for kind in OTHERS.values() if isinstance(kind, type)]
STRUCTURES = [kind for kind in STRUCTURES if issubclass(kind, structures.Structure)]
# What users call of a structure, for an example.
OF_EXAMPLES = (
    "fit", "decode", "loss_augmented_decode", "constrained_decode", "joint_feature",
    "slack_augmented_decode", "loss", "labelings", "k_best", "max_marginals",
)  # fmt: skip
# What estimators call, with examples that they have checked and weights that they have.
OF_BATCHES = "decode_batch", "marginals", "log_probabilities", "entropies"
MEASURES = [
    value for value in public(metrics).values()
    if isinstance(value, type)
    and issubclass(value, (confusion.ConfusionMetric, confusion.Constraint))
]  # fmt: skip
SCORES = {
    name: value for name, value in (public(metrics) | public(confusion)).items()
    if not isinstance(value, type)
}  # fmt: skip
# What solvers call of metrics and constraints gets tensors and cells that fit.
OF_MEASURES = (
    "value", "gradient", "tangent", "ratio", "pieces", "ratio_terms", "entries", "check",
    "resolve", "score_of", "measured", "linear", "denominators", "violation",
    "positive_label",
)  # fmt: skip
# Estimators and kinds of data for each display.
COMPLEX = ("ComplexMetricClassifier",), FLAT[:2]
OVER_CHAINS = ("BCFWClassifier", "CRFClassifier"), ("chains",)
DISPLAYS = {
    "AchievableSetDisplay": COMPLEX,
    "ChainWeightsDisplay": OVER_CHAINS,
    "ConvergenceDisplay": (tuple(ESTIMATORS), KINDS),
    "RegularizationPathDisplay": (("BCFWClassifierCV", "CRFClassifierCV"), FLAT[:2]),
    "SegmentsDisplay": OVER_CHAINS,
    "TaggingDisplay": OVER_CHAINS,
    "ThresholdDisplay": COMPLEX,
    "TradeoffDisplay": COMPLEX,
    "fairness_report": COMPLEX,
}
MAKERS = ("from_estimator", "from_predictions", "from_history", "from_path")
TRANSFORMERS = (
    StandardScaler(), DictVectorizer(), DictVectorizer(sparse=False),
    FeatureHasher(8, input_type="string"), TfidfVectorizer(analyzer=list),
    OneHotEncoder(handle_unknown="ignore"), make_pipeline(DictVectorizer(), None),
    "passthrough", StandardScaler, 3,
)  # fmt: skip


@cache
def model_of(name):
    """One of `MODELS`, by its name, with its data."""
    return MODELS[name][1]()


class PartCall(Call):
    """The calls of `Call`, and these."""

    def structure(self):
        """A method of a structure, of one that is not fitted as well."""
        kind = self.pick(STRUCTURES)
        self.name = f"structures.{kind.__name__}"
        self.task = Task(self.rng, self.pick(KINDS))
        for _ in range(20):
            thing = self.make(kind, spoiled=0.03)
            if self.task.suits(thing):
                break
            self.task = Task(self.rng, self.pick(KINDS))
        if self.rng.random() < 0.9:
            self.ask(thing, "fit", spoiled=0.3)
            self.task.n_weights = thing.n_weights_
        methods = [m for m in (*OF_EXAMPLES, *OF_BATCHES) if hasattr(thing, m)]
        method = self.pick(methods)
        if method not in OF_BATCHES:
            return self.ask(thing, method, spoiled=0.6)
        X = self.task.X if thing.flat else thing.check_data(self.task.X)[0]
        names = inspect.signature(getattr(thing, method)).parameters
        given = {"X": X} | ({"allowed": None} if "allowed" in names else {})
        return self.ask(thing, method, only=["w"], given=given, spoiled=0.6)

    def measure(self):
        """A score, a scorer, or a method of a metric or a constraint."""
        if self.rng.random() < 0.5:
            name = self.pick(sorted(SCORES))
            if name.endswith("scorer"):
                given = {"estimator": self.fitted()}
                self.name = f"metrics.{name}"
                return self.call(SCORES[name], spoiled=0.5, given=given)
            self.name, words = f"metrics.{name}", name.startswith(("token", "entity"))
            kinds = ("chains",) if words else FLAT
            self.task = Task(self.rng, self.pick(kinds))
            return self.call(SCORES[name], spoiled=0.7)
        self.task = Task(self.rng, self.pick(FLAT[:2]))
        kind = self.pick(MEASURES)
        self.name = f"metrics.{kind.__name__}"
        thing = self.make(kind, spoiled=0.1)
        if self.rng.random() < 0.2:
            scorer = self.ask(thing, "scorer")
            model = self.fitted(kinds=FLAT[:2])
            return self.call(scorer, spoiled=0.5, given={"estimator": model})
        if self.rng.random() < 0.4:
            return self.ask(thing, "__call__", spoiled=0.7)
        given = {"cells": self.task.cells(), "C": self.task.tensor()}
        if isinstance(thing, confusion.Constraint):
            given["C"] = given["C"][np.newaxis]
        else:
            thing = thing.resolve(self.task.labels)
        method = self.pick([m for m in OF_MEASURES if hasattr(thing, m)])
        if method == "measured":
            given["C"] = given["C"].reshape(1, self.task.k, self.task.k)
        names = inspect.signature(getattr(thing, method)).parameters
        given = {name: value for name, value in given.items() if name in names}
        return self.ask(thing, method, given=given)

    def fitted(self, names=None, kinds=KINDS):
        """A fitted estimator; most random parameters do not go with others or y."""
        for _ in range(6):
            model = self.estimator(0.0, names, kinds)
            try:
                self.ask(model, "fit")
                return model
            except CLEAR:
                continue
        return model

    def display(self):
        """A display from anything, or with other contents, and its drawing."""
        import matplotlib.pyplot as plt

        try:
            self.draw(self.pick(sorted(DISPLAYS)))
        finally:
            plt.close("all")

    def draw(self, name):
        import matplotlib.pyplot as plt

        model = self.fitted(*DISPLAYS[name])
        self.name, kind = f"plotting.{name}", getattr(plotting, name)
        maker = self.pick([m for m in MAKERS if hasattr(kind, m)] or ["__call__"])
        axes = self.pick([None, None, plt.subplots()[1], plt.subplots(1, 2)[1]])
        given = {
            "estimator": model, "history": getattr(model, "history_", {}),
            "path": getattr(model, "path_", None), "x": self.task.X[0], "ax": axes,
            "kind": self.pick(["coef", "objective", "nonzeros"]),
            "param_name": self.pick(["C", "confidence", "tol", "constraints__slack"]),
            "param_range": [0.1, 0.2], "sensitive_features": self.task.groups(),
        }  # fmt: skip
        if name == "ConvergenceDisplay":
            given |= {"x": self.pick(["pass", "seconds"]), "y": "dual_gap"}
        function = kind if maker == "__call__" else getattr(kind, maker)
        self.name += f"({maker})"
        display = self.call_with(function, given)
        parts = {k: v for k, v in vars(display).items() if k[-1:] != "_"}
        if self.rng.random() < 0.5:
            self.name = f"plotting.{name}(contents)"
            part = self.pick(sorted(parts))
            display = type(display)(**parts | {part: spoil(self.rng, parts[part])})
        self.name = f"plotting.{name}(plot)"
        if hasattr(display, "to_frames") and self.rng.random() < 0.3:
            str(display)
            return display.to_frames()
        return self.call_with(display.plot, {"ax": axes, "name": "a$^$b"})

    def call_with(self, function, given, spoiled=0.5):
        """Call it with those of these arguments that it takes."""
        names = inspect.signature(function).parameters
        given = {name: value for name, value in given.items() if name in names}
        return self.call(function, spoiled=spoiled, given=given)

    def words(self):
        """Tokens and tables, and what transforms, splits and joins them."""
        try:
            self.read_words()
        except AttributeError as error:
            # DictVectorizer says so of what is no dict.
            if "has no attribute 'items'" not in str(error):
                raise

    def read_words(self):
        step = self.pick(["transform", "transform", "union", "pipeline", "split", "join"])
        self.name = f"preprocessing({step})"
        rng = self.rng
        if step == "split":
            return split_sequences(*some_table(rng))
        if step == "join":
            blocks = [some_table(rng)[0] for _ in range(rng.integers(1, 4))]
            matrix = SplitMatrix(self.pick([blocks, tuple(blocks), *blocks]))
            return self.pick([len, lambda m: m.toarray(), lambda m: m.tocsr(), lambda m:
                m[self.pick([0, [0, 1], slice(1), True, None, 99, "a", np.ones(2)])],
            ])(matrix)  # fmt: skip
        X, new = some_tokens(rng), some_tokens(rng)
        inner = None if rng.random() < 0.6 else self.pick(TRANSFORMERS)
        model = SequenceTransformer(inner)
        if step == "union":
            model = make_union(model, SequenceTransformer(), verbose=False)
        y = [["a", "b"][: len(x)] * 2 if np.ndim(x) else "a" for x in X]
        y = self.pick([y, None, y[:-1], [self.pick(ODD)], 3])
        with untouched(X=X, new=new, y=y):
            return self.transform(model, step, X, new, y)

    def transform(self, model, step, X, new, y):
        """A step of `read_words` with one of its transformers."""
        rng = self.rng
        if step == "pipeline":
            names = ["CRFClassifier", "BCFWClassifier"]
            model = make_pipeline(model, ESTIMATORS[self.pick(names)](max_iter=3))
            y = [["a", "b", "a"][: len(x)] if np.ndim(x) else "a" for x in X]
            return model.fit(X, y).predict(new)
        if rng.random() < 0.1:
            return model.transform(X)
        found = model.fit(X, y) if rng.random() < 0.5 else model.fit_transform(X, y)
        step = self.pick(["transform", "transform", "names", "output"])
        if step == "names":
            return model.get_feature_names_out()
        if step == "output":
            model.set_output(transform=self.pick(["pandas", "polars", "default", 3]))
        return found, model.transform(new)

    def use(self):
        """A whole use, checked against others of the same content."""
        check_use(self)

    def problem(self):
        """A fit that is compared with the optimum."""
        family = self.pick(sorted(FAMILIES))
        self.name = f"problem: {family}"
        check_problem(self.rng, family)

    def decision(self):
        """A mixture and a rule that are compared with the best."""
        kind = self.pick(sorted(DECISIONS))
        self.name = f"decision: {kind}"
        check_decision(self.rng, kind)

    def convert(self):
        """A classifier to ONNX, of labels of all kinds, or damaged."""
        from skl2onnx import to_onnx

        register_converters()
        names = [name for name in ESTIMATORS if name != "ConformalClassifier"]
        model = self.fitted(names, (*FLAT, "chains"))
        if self.rng.random() < 0.5:
            damage(self.rng, model)
        self.name = f"onnx({type(model).__name__})"
        X = self.task.X[:1]
        X = X.toarray() if hasattr(X, "toarray") else X
        to_onnx(model, spoil(self.rng, X) if self.rng.random() < 0.2 else X)

    def file(self):
        """A fitted estimator whose state was damaged before it was saved."""
        name = self.pick(sorted(MODELS))
        self.name = f"file of {name}"
        fitted = copy.deepcopy(model_of(name))
        for _ in range(self.rng.integers(1, 3)):
            damage(self.rng, fitted.model)
        model = saved_and_read(self.rng, fitted.model)
        self.task = Task.of(self.rng, fitted.X, fitted.y)
        names = methods_of(model)
        method = self.pick(["fit", "predict", "predict", "score", None])
        if method not in names:
            method = self.pick(names)
        self.name += f"({method})"
        self.call_with(getattr(model, method), fitted.options, spoiled=0.0)
