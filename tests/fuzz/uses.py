"""Whole uses: data in some form, options, weights, and what is done with the model.

What is checked needs no reference. Equal content gives equal answers, in any form, batch
and order; two fits of one problem have bounds that do not contradict each other; users'
arrays are as they were; and what is refused is named.
"""

import pickle
import re
import warnings
from inspect import signature
from time import perf_counter

import numpy as np
from _options import set_placed, setting
from _untouched import untouched
from calls import CLEAR, KINDS, Broken
from forms import FRAMES, other_form, other_labels, other_vector
from other_ways import as_table, computed, da, dask, in_parts
from rules import RULES, check_rule, some_groups, some_options
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from values import Task

from sklearn_structsvm import ConformalClassifier, CRFClassifier
from sklearn_structsvm.structures import MISSING, GraphStructure, Structure

ANSWERS = (
    "predict", "decision_function", "predict_proba", "entropy", "max_marginals",
    "predict_set",
)  # fmt: skip
DISTRIBUTED = (
    "BCFWClassifier", "BMRMClassifier", "CRFClassifier", "SlackRescaledSSVM",
    "SubLBFGSClassifier",
)  # fmt: skip
EXACT = ("exact", "forest", "tree", "enumerate")
INNER = (
    None, LogisticRegression(), GaussianNB(), DummyClassifier(),
    DecisionTreeClassifier(max_depth=2, random_state=0),
)  # fmt: skip
# Shares of the size of an objective: what two sums in another order differ by.
ROUNDING = 1e-9


class Use:
    """A fitted model with its data, and what is asked of it."""

    def __init__(self, call):
        self.rng = call.rng
        self.model = call.estimator(spoiled=0.0, kinds=KINDS[:-1])
        if type(self.model) is ConformalClassifier and self.rng.random() < 0.4:
            call.task = Task(self.rng, KINDS[self.rng.integers(3, 6)])
            structure = {"chains": "chain", "trees": "tree", "graphs": "graph"}
            inner = CRFClassifier(structure[call.task.kind], max_iter=10, random_state=0)
            self.model.set_params(estimator=inner, confidence_level=0.6)
        elif "estimator" in self.model.get_params(deep=False):
            self.model.set_params(estimator=INNER[self.rng.integers(len(INNER))])
        self.is_rule = type(self.model).__name__ in RULES
        # That of rules is drawn, as a search for a single one can take long.
        fixed = {"max_time": None, "random_state": 0, "verbose": 0, "warm_start": False}
        if self.is_rule:
            fixed |= some_options(call.task, type(self.model).__name__)
        names = self.model._settings()
        if "Cs" in names:
            fixed |= {"Cs": [0.1, 1.0], "cv": 2, "max_iter": 5}
        set_placed(self.model, **{k: v for k, v in fixed.items() if k in names})
        self.task = task = call.task
        self.X, self.y = in_eighths(task.X), task.y
        self.vary()
        self.options, self.warned = {}, []
        taken = signature(self.model.fit).parameters
        if "sample_weight" in taken and self.rng.random() < 0.4:
            weights = self.rng.integers(0, 4, task.n) / 2.0
            self.options["sample_weight"] = np.where(weights.any(), weights, 1.0)
        if "sensitive_features" in taken and self.rng.random() < 0.7:
            self.options["sensitive_features"] = some_groups(self.rng, task.n)

    def vary(self):
        """Scores beside features or in their place, features of edges, an empty item."""
        structure = self.model.get_params().get("structure")
        if self.task.kind not in ("chains", "trees", "graphs"):
            return
        if isinstance(structure, Structure) and self.rng.random() < 0.3:
            k = len(np.unique(np.concatenate(self.y)))
            emission = ("given", "both")[self.rng.integers(2)]
            structure.set_params(emission=emission)
            self.X = [self.with_scores(x, k, emission == "both") for x in self.X]
        elif self.task.kind == "chains" and self.rng.random() < 0.15:
            self.X = [*self.X, self.X[0][:0]]
            self.y = [*self.y, self.y[0][:0]]
            self.task.n += 1
        if self.task.kind == "graphs" and self.rng.random() < 0.3:
            n_edges = [len(x[1]) for x in self.X]
            self.X = [
                (*x, self.rng.integers(0, 9, size=(m, 2)) / 8.0)
                for x, m in zip(self.X, n_edges, strict=True)
            ]

    def with_scores(self, x, k, beside):
        features = x[0] if isinstance(x, tuple) else x
        scores = self.rng.integers(-8, 9, size=(len(features), k)) / 8.0
        new = (features, scores) if beside else scores
        return (new, *x[1:]) if isinstance(x, tuple) else new

    @property
    def is_certified(self):
        """Whether bounds of a rule are of what it counts, in any order of the rows."""
        model = self.model
        return (
            len(self.task.labels) == 2
            and self.task.kind != "indicator"
            and setting(model, "lmo", "plugin") == "plugin"
            and not getattr(model, "group_blind", False)
            and getattr(model, "cv", None) is None
            and getattr(model, "constraint_confidence", None) is None
            and setting(model, "margin") != "auto"
        )

    def refit(self, X, y, options=None, **params):
        """Another fit of the same parameters, but for these."""
        model = set_placed(clone(self.model), **params)
        options = self.options if options is None else options
        return self.kept(model.fit, X, y, **options)

    def kept(self, function, *args, **kwargs):
        """Call it, and compare its arguments with what they were."""
        with untouched(args=args, **kwargs):
            return function(*args, **kwargs)

    def ask(self, model, method, X, places=None):
        """An answer of a method, of some of the rows if `places` are given."""
        function, given = getattr(model, method), {}
        if "sensitive_features" in signature(function).parameters:
            if "sensitive_features" in self.options:
                own = self.options["sensitive_features"]
                given["sensitive_features"] = own if places is None else own[places]
        return self.kept(function, X, **given)

    def answers(self):
        """The names of methods that this model has an answer for, with their answers."""
        found = {}
        for name in ANSWERS:
            if hasattr(self.model, name):
                try:
                    found[name] = self.ask(self.model, name, self.X)
                except CLEAR:
                    continue
        return found


def in_eighths(X):
    """Dense data of the same kind, rounded to multiples of 1/8."""
    if isinstance(X, list):
        return [in_eighths(x) for x in X]
    if isinstance(X, tuple):
        return (in_eighths(X[0]), *X[1:])
    return np.round((X.toarray() if sparse.issparse(X) else X) * 8.0) / 8.0


def taken(data, places):
    return data[places] if hasattr(data, "shape") else [data[i] for i in places]


def taken_options(options, places):
    return {name: own[places] for name, own in options.items()}


def same(one, other, exact):
    """Whether two answers are equal, numbers up to rounding unless `exact`."""
    if sparse.issparse(one) or sparse.issparse(other):
        one, other = (v.toarray() if sparse.issparse(v) else v for v in (one, other))
    if len(one) != len(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        other = np.asarray(other)
        if one.shape != other.shape:
            return False
        if exact or one.dtype.kind != "f":
            return np.array_equal(one, other)
        return np.allclose(one, other, rtol=1e-7, atol=1e-9)
    if not hasattr(one[0], "__len__") or isinstance(one[0], str):
        return list(one) == list(other)
    return all(same(a, b, exact) for a, b in zip(one, other, strict=True))


def contradict(use, one, other, what):
    """Bounds of two fits of one problem, neither of which may be above an objective."""
    if not hasattr(one, "dual_objective_") or use.task.kind == "hidden":
        return
    if any(getattr(one, n, 0) != getattr(other, n, 0) for n in ("C_", "l1_ratio_")):
        return  # They chose others of the values that were tried.
    if use.is_rule and not use.is_certified:
        return
    top = min(one.objective_, other.objective_)
    bound = max(one.dual_objective_, other.dual_objective_)
    if bound > top + ROUNDING * (1.0 + abs(top)):
        found = [(m.objective_, m.dual_objective_) for m in (one, other)]
        raise Broken(f"{what}: bounds contradict each other: {found}")


def check_forms(use):
    """The same numbers in another form, in training and in prediction."""
    name, X = other_form(use.rng, use.X)
    kind, y = other_labels(use.rng, use.y)
    options = {k: other_vector(use.rng, own) for k, own in use.options.items()}
    other = use.refit(X, y, options)
    contradict(use, use.model, other, f"{name} with {kind}")
    equal = same(np.asarray(use.model.classes_), np.asarray(other.classes_), exact=True)
    if hasattr(other, "classes_") and not equal:
        raise Broken(f"classes of {kind}: {other.classes_}")
    if name in FRAMES:
        return
    for method, answer in use.answers().items():
        found = use.ask(use.model, method, X)
        if method == "predict_set" and not has_equal_scores(use, X):
            continue
        if not same(answer, found, exact=False):
            raise Broken(f"{method} of {name}: {found} for {answer}")


def has_equal_scores(use, X):
    """Whether other classifiers compute the same in this form, to the last bit.

    The score of a calibration example may be exactly the threshold.
    """
    inner = use.model.estimator_
    return all(
        same(getattr(inner, name)(use.X), getattr(inner, name)(X), exact=True)
        for name in ("predict_proba", "decision_function")
        if hasattr(inner, name)
    )


def check_order(use):
    """The examples in another order."""
    order = use.rng.permutation(use.task.n)
    other = use.refit(
        taken(use.X, order), taken(use.y, order), taken_options(use.options, order)
    )
    contradict(use, use.model, other, "order")


def check_doubled(use):
    """Every example twice, and half of C."""
    if "C" not in use.model.get_params() or getattr(use.model, "loss", "hinge") not in (
        "hinge", "squared_hinge", "logistic", "slack_hinge"
    ):  # fmt: skip
        return
    twice = np.repeat(np.arange(use.task.n), 2)
    options = taken_options(use.options, twice)
    C = use.model.C / 2.0
    other = use.refit(taken(use.X, twice), taken(use.y, twice), options, C=C)
    contradict(use, use.model, other, "doubled")


def check_names(use):
    """Other labels of the same order give the same weights, bit for bit."""
    model = use.model
    own = model.get_params()
    if use.task.kind == "indicator" or use.is_rule or not hasattr(model, "coef_"):
        return
    if model._settings().get("classes") is not None or isinstance(
        own.get("class_weight"), dict
    ):
        return
    old = np.unique(use.task.labels)
    new = np.array(["k", "m", "q"])[: len(old)]

    def renamed(labels):
        return new[np.searchsorted(old, labels)]

    y = use.y
    y = renamed(y) if isinstance(y, np.ndarray) else [renamed(labels) for labels in y]
    other = use.refit(use.X, y)
    if not np.array_equal(model.coef_, other.coef_):
        raise Broken(f"names: {other.coef_} for {model.coef_}")
    found, answer = other.predict(use.X), model.predict(use.X)
    if isinstance(answer, np.ndarray) and answer.dtype != object:
        answer = renamed(answer)
    else:
        answer = [renamed(labels) for labels in answer]
    if not same(answer, found, exact=True):
        raise Broken(f"names: {found} for {answer}")


def check_pickle(use):
    other = pickle.loads(pickle.dumps(use.model))
    for method, answer in use.answers().items():
        if not same(answer, use.ask(other, method, use.X), exact=True):
            raise Broken(f"{method} of a pickle")


def check_pieces(use):
    """In two parts, one at a time, and in reverse order."""
    n = use.task.n
    cut = use.rng.integers(1, n)
    ways = [[np.arange(cut), np.arange(cut, n)], np.arange(n)[:, np.newaxis]]
    ways.append([np.arange(n)[::-1]])
    for method, answer in use.answers().items():
        for parts in ways:
            for places in parts:
                found = use.ask(use.model, method, taken(use.X, places), places)
                expected = taken(answer, places)
                if not same(expected, found, exact=False):
                    raise Broken(f"{method} of rows {places}: {found} for {expected}")


def check_threads(use):
    if "n_jobs" not in use.model.get_params(deep=False):
        return
    answers = use.answers()
    contradict(use, use.model, use.refit(use.X, use.y, n_jobs=2), "threads")
    before = use.model.n_jobs
    use.model.set_params(n_jobs=3)
    for method, answer in answers.items():
        found = use.ask(use.model, method, use.X)
        if not same(answer, found, exact=True):
            raise Broken(f"{method} by three threads: {found} for {answer}")
    use.model.set_params(n_jobs=before)


def check_again(use):
    """Equal inputs give equal bits, unless a clock ended the fit."""
    limit, start = setting(use.model, "max_time"), perf_counter()
    other = use.refit(use.X, use.y)
    # A search for a single rule has the same clock, but no history.
    seconds = max(use.seconds, perf_counter() - start)
    if limit is not None and seconds > 0.1 * limit:
        return
    for name in ("coef_", "objective_", "dual_gap_", "n_iter_", "thresholds_"):
        one = getattr(use.model, name, None)
        if isinstance(one, (np.ndarray, float, int)):
            if not np.array_equal(one, getattr(other, name), equal_nan=True):
                raise Broken(f"another fit has {name} {getattr(other, name)} for {one}")


def check_hidden(use):
    """Unknown labels, by name and as the set of all labels."""
    model = use.model
    if use.task.kind not in ("chains", "trees", "graphs"):
        return
    if not getattr(model, "takes_hidden_labels", False):
        return
    every = set(np.unique(np.concatenate(use.y)).tolist())
    hides = [use.rng.random(len(labels)) < 0.2 for labels in use.y]
    hides[0][:] = False

    def with_hidden(value):
        return [
            [value if is_hidden else label for label, is_hidden in
             zip(labels.tolist(), hidden, strict=True)]
            for labels, hidden in zip(use.y, hides, strict=True)
        ]  # fmt: skip

    models = []
    for value in (MISSING, every):
        own = clone(model).set_params(solver_options__classes=sorted(every))
        models.append(use.kept(own.fit, use.X, with_hidden(value), **use.options))
    if not np.array_equal(models[0].coef_, models[1].coef_):
        raise Broken("hidden labels are not the same as sets of all labels")


def check_objective(use):
    """The objective over listed labelings, where the structure lists them."""
    model = use.model
    name = type(model).__name__
    structure = getattr(model, "structure_", None)
    if name not in ("BCFWClassifier", "CRFClassifier") or getattr(
        model, "class_weight", None
    ) is not None or not hasattr(structure, "labelings"):  # fmt: skip
        return
    # Relaxations are maximized over more than the labelings, and the sums of graphs with
    # cycles are bounds.
    if getattr(structure, "inference_", "exact") not in EXACT:
        return
    if name == "CRFClassifier" and isinstance(structure, GraphStructure):
        return
    weights = use.options.get("sample_weight", np.ones(use.task.n))
    X, y = use.X, use.y
    if not structure.flat:
        X, y = structure.check_data(X, y)
        # Examples without positions are left out.
        weights = np.where([structure._is_empty(x) for x in X], 0.0, weights)
    w = model._weights
    total = 0.0
    for x, labels, weight in zip(X, y, weights, strict=True):
        listed = list(structure.labelings(x))
        if len(listed) > 300:
            return
        scores = np.array([structure.joint_feature(x, own) @ w for own in listed])
        scores -= structure.joint_feature(x, labels) @ w
        if name == "CRFClassifier":
            costs = getattr(model, "label_costs", None)
            if costs is not None:
                truth, *codes = (
                    np.searchsorted(model.classes_, np.atleast_1d(own))
                    for own in (labels, *listed)
                )
                scores = scores + [np.asarray(costs)[truth, own].sum() for own in codes]
            total += weight * logsumexp(scores)
        else:
            loss = [structure.loss(labels, own) for own in listed]
            total += weight * (scores + loss).max()
    ratio = model.l1_ratio
    penalty = (1 - ratio) / 2 * w @ w + ratio * np.abs(w).sum()
    value = (penalty / model.C + total) / weights.sum()
    if abs(value - model.objective_) > ROUNDING * (1.0 + abs(value)):
        raise Broken(f"objective_ is {model.objective_}, by enumeration {value}")


def check_own(use):
    """The same features, losses and labelings by a structure in Python."""
    model = use.model
    structure = getattr(model, "structure_", None)
    takes_others = type(model).__name__ in ("BCFWClassifier", "BMRMClassifier")
    if not takes_others or not hasattr(structure, "labelings") or structure.flat:
        return
    kept = [i for i, labels in enumerate(use.y) if len(labels)]
    found = as_table(structure, taken(use.X, kept), taken(use.y, kept))
    if found is None or getattr(structure, "inference_", "exact") not in EXACT:
        return
    options = taken_options(use.options, kept)
    table, X, y = found
    contradict(use, model, use.refit(X, y, options, structure=table), "own structure")


def check_dask(use):
    """The same examples in parts."""
    name = type(use.model).__name__
    if da is None or name not in DISTRIBUTED:
        return
    X, y, options = in_parts(use.rng, use.X, use.y, use.options)
    with dask.config.set(scheduler="synchronous"):
        contradict(use, use.model, use.refit(X, y, options), "Dask")
        answer = use.ask(use.model, "predict", use.X)
        found = computed(use.ask(use.model, "predict", X))
    if not same(answer, found, exact=True) and not is_tied(use, answer, found):
        raise Broken(f"predict of parts: {found} for {answer}")


def is_tied(use, answer, found):
    """Whether all rows that differ have two best scores that are equal up to rounding."""
    structure = getattr(use.model, "structure_", None)
    if structure is None or not structure.flat or np.shape(answer) != np.shape(found):
        return False
    scores = use.ask(use.model, "decision_function", use.X)
    if np.ndim(scores) == 1:
        scores = np.column_stack([scores, np.zeros(len(scores))])
    best = np.sort(scores, axis=1)[answer != found]
    return bool((best[:, -1] - best[:, -2] <= ROUNDING * np.abs(scores).max()).all())


CHECKS = (
    check_forms, check_order, check_doubled, check_names, check_pickle, check_pieces,
    check_threads, check_again, check_hidden, check_objective, check_own, check_dask,
)  # fmt: skip


def check_use(call):
    """A fit and a few of the checks. Clear errors pass if they name a parameter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use = fitted_use(call)
        if use.is_rule:
            call.name = f"use of {type(use.model).__name__}(what it says)"
            check_rule(use)
        # Most kinds of data do not come in each form, so that this may end the use.
        for at in [*(use.rng.permutation(len(CHECKS) - 1)[:2] + 1), 0]:
            call.name = f"use of {type(use.model).__name__}({CHECKS[at].__name__})"
            CHECKS[at](use)


def fitted_use(call):
    """The first of some random uses whose parameters go together."""
    while True:
        use, start = Use(call), perf_counter()
        try:
            with warnings.catch_warnings(record=True) as use.warned:
                warnings.simplefilter("always")
                use.kept(use.model.fit, use.X, use.y, **use.options)
            use.seconds = perf_counter() - start
            return use
        except CLEAR as error:
            check_refusal(use.model, error)


def check_refusal(model, error):
    """What is refused is a parameter or an argument, by its name."""
    parameters = model.get_params()
    names = {part for name in parameters for part in name.split("__")}
    names |= {"n_splits", *signature(model.fit).parameters, *model._settings()}
    for value in parameters.values():
        parts = value if isinstance(value, (list, tuple)) else [value]
        parts = [part for part in parts if hasattr(part, "get_params")]
        names |= {type(part).__name__ for part in parts}
        names.update(*(part.get_params() for part in parts))
    if names.isdisjoint(re.findall(r"\w+", str(error))):
        raise Broken(f"a refusal without a name: {error}")
