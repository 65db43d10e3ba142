"""Random problems, and what a fit says of them against what is true.

Everything is compared with the objective in long double, at the returned weights and at
those of a solver that shares no code with the package.
"""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from calls import Broken
from convex import LONG, ROUNDING, Convex
from listed import (
    chain_features,
    each_label,
    graph_features,
    labels_of_nodes,
    one_against_rest,
    one_class,
    ranked_labels,
    slack_rescaled,
    tree_features,
    without_loss,
)
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import sklearn_structsvm as package
from sklearn_structsvm import structures

# Searches for the worst violation may end within this share of it.
SEARCH = 1.1e-6
ROWS = ("binary", "classes", "labels")
NODES = ("chain", "tree", "forest")


@dataclass
class Data:
    """Examples as the package takes them, and as groups of rows of scores."""

    kind: str
    X: object
    y: object
    examples: list
    structure: object = "auto"
    # The value of the constant feature, and whether its weight is penalized.
    bias: float = 0.0
    is_bias_free: bool = False

    def chosen(self, places):
        X = self.X[places] if hasattr(self.X, "shape") else [self.X[i] for i in places]
        y = self.y[places] if hasattr(self.y, "shape") else [self.y[i] for i in places]
        return X, y

    def weights_of(self, model):
        coef = np.asarray(model.coef_, LONG)
        if self.kind in NODES:
            return coef
        if self.bias:
            own = np.asarray(model.intercept_, LONG)[:, np.newaxis] / LONG(self.bias)
            coef = np.concatenate([coef, own], axis=1)
        return coef.T.ravel()

    def convex(self, loss, C, l1_ratio, places, weights, bounds=None):
        """The normalized objective of a fit to these examples."""
        groups = [
            (weight, A, b)
            for i, weight in zip(places, np.asarray(weights, LONG), strict=True)
            for A, b in self.examples[i]
            if weight > 0
        ]
        total = np.asarray(weights, LONG).sum()
        weights, A, b = zip(*groups, strict=True)
        sizes = [len(own) for own in b]
        d = A[0].shape[1]
        lam = 1 / (LONG(C) * total) * np.ones(d, LONG)
        if self.is_bias_free:
            lam[-1] = 0
        lower, upper = bounds or (np.full(d, -np.inf), np.full(d, np.inf))
        return Convex(
            loss,
            np.concatenate(A),
            np.concatenate(b),
            np.cumsum([0, *sizes[:-1]]),
            np.array(weights, LONG) / total,
            lam * (1 - LONG(l1_ratio)),
            lam * LONG(l1_ratio),
            lower,
            upper,
        )


def some_column(rng, n):
    """A column as tables have them, or of any size."""
    ways = [
        lambda: rng.normal(size=n) * 10.0 ** rng.uniform(-12, 12),
        lambda: 10.0 ** rng.uniform(6, 12) * (1.0 - 1e-3 * rng.random(n)),
        lambda: rng.integers(1990, 2025, n),
        lambda: np.arange(n) + 1e5,
        lambda: rng.poisson(2.0, n),
        lambda: np.round(rng.lognormal(8.0, 2.0, n), 2),
        lambda: rng.standard_cauchy(n),
        lambda: rng.integers(0, 2, n),
        lambda: np.full(n, rng.normal()),
        lambda: np.zeros(n),
    ]
    return np.asarray(ways[rng.integers(len(ways))](), dtype=float)


def some_matrix(rng, n, f):
    """Plain columns, or others among them."""
    X = rng.normal(size=(n, f))
    if rng.random() < 0.5:
        for j in range(f):
            if rng.random() < 0.5:
                X[:, j] = some_column(rng, n)
    elif rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.1:
        X[:, -1] = X[:, 0] * (1.0 + 1e-9 * (rng.random() < 0.5))
    return X


def some_form(rng, x):
    """Dense, or CSR, in double or single precision, and the numbers that it has."""
    if rng.random() < 0.15 and np.abs(x).max(initial=0.0) < 1e30:
        x = x.astype(np.float32)
    return sparse.csr_array(x) if rng.random() < 0.3 else x


def some_costs(rng, shape):
    costs = rng.uniform(0.5, 1.5, size=shape)
    if shape[0] == shape[1]:
        np.fill_diagonal(costs, 0.0)
    return costs


def some_rows(rng, kind, list_one):
    """Rows of X with their labels, and each row as groups."""
    n, f = int(rng.integers(6, 40)), int(rng.integers(1, 7))
    k = 2 if kind == "binary" else int(rng.integers(3, 5))
    X = some_matrix(rng, n, f)
    size = np.abs(X).max(axis=0)
    scores = X / np.where(size > 0, size, 1.0) @ rng.normal(size=(f, k)) * 3.0
    scores += rng.normal(size=scores.shape)
    y = (scores > 0).astype(int) if kind == "labels" else scores.argmax(axis=1)
    if kind != "labels":
        y[:k] = np.arange(k)
    bias = 0.0 if rng.random() < 0.3 else 10.0 ** rng.integers(-1, 2)
    costs = np.ones((k, 2)) if list_one is each_label else 1.0 - np.eye(k)
    X = some_form(rng, X)
    long = (X.toarray() if sparse.issparse(X) else X).astype(LONG)
    if bias:
        long = np.column_stack([long, np.full(n, LONG(bias))])
    examples = [list_one(x, own, k, costs) for x, own in zip(long, y, strict=True)]
    return Data(kind, X, y, examples, bias=float(bias))


def some_nodes(rng, kind):
    """Sequences, trees or acyclic graphs, each with all its labelings."""
    n, f, k = int(rng.integers(3, 9)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    sizes = rng.integers(1, 5, size=n)
    sizes[0] = max(sizes[0], k)
    starts = np.cumsum([0, *sizes])
    rows = some_matrix(rng, starts[-1], f)
    size = np.abs(rows).max(axis=0)
    scores = rows / np.where(size > 0, size, 1.0) @ rng.normal(size=(f, k)) * 2.0
    y = (scores + rng.normal(size=scores.shape)).argmax(axis=1)
    y[:k] = np.arange(k)
    X, labels, examples = [], [], []
    costs = 1.0 - np.eye(k) if rng.random() < 0.7 else some_costs(rng, (k, k))
    transition = ("potts", "symmetric", "directed")[rng.integers(3)]
    normalize = rng.random() < 0.7
    is_single, is_sparse = rng.random() < 0.15, rng.random() < 0.3
    for a, b in zip(starts[:-1], starts[1:], strict=True):
        T, x, own = b - a, rows[a:b], y[a:b]
        x = x.astype(np.float32) if is_single else x
        parents = np.array([-1, *(rng.integers(-1, v) for v in range(1, T))])
        children = np.flatnonzero(parents >= 0)
        edges = np.column_stack([parents[children], children])
        features = chain_features
        if kind == "chain":
            edges = np.column_stack([np.arange(T - 1), np.arange(1, T)])
        elif kind == "tree":
            features = partial(tree_features, roots=parents < 0)
        else:
            features = partial(graph_features, kind=transition)
        share = LONG(1) / T if normalize else LONG(1)
        examples.append(
            labels_of_nodes(x.astype(LONG), edges, own, k, costs, features, share)
        )
        item = sparse.csr_array(x) if is_sparse else x
        X.append({"chain": item, "tree": (item, parents), "forest": (item, edges)}[kind])
        labels.append(own)
    options = {"label_costs": costs, "normalize_loss": normalize}
    structure = {
        "chain": structures.ChainStructure,
        "tree": structures.TreeStructure,
        "forest": partial(structures.GraphStructure, transition=transition),
    }[kind](**options)
    return Data(kind, X, labels, examples, structure)



def some_data(rng, kind, list_one=one_class):
    if kind in NODES:
        return some_nodes(rng, kind)
    return some_rows(rng, kind, each_label if kind == "labels" else list_one)


def with_other(data, change):
    """The same data with other rows for each labeling."""
    data.examples = [change(groups) for groups in data.examples]
    return data


def some_steps(rng, *more):
    """Options of block steps that go together."""
    steps = ["auto"] * 4 + ["corrective", "fw", "pairwise", "away", *more]
    options = {"step": pick(rng, steps), "random_state": int(rng.integers(99))}
    options["sampling"] = pick(rng, ["auto", "auto", "gap", "uniform", "permuted"])
    options["acceleration"] = pick(rng, ["auto", "auto", True, False])
    return options | {"max_iter": 300, "warm_start": True}


def bcfw(rng, kind, ratio):
    exact = ["exact"] if kind in ROWS and ratio == 0.0 else []
    options = some_steps(rng, *exact) | {"l1_ratio": ratio}
    data = some_data(rng, kind)
    return package.BCFWClassifier(data.structure, **options), data, "max"


def crf(rng, kind, ratio):
    solvers = ["auto"] * 3 + ["dual"] * (kind != "forest")
    solvers += ["newton"] * (kind in (*ROWS, "chain")) + ["lbfgs"] * (ratio < 1.0)
    options = {"solver": pick(rng, solvers), "random_state": int(rng.integers(99))}
    options |= {"max_iter": 500, "l1_ratio": ratio, "warm_start": True}
    data = with_other(some_data(rng, kind), without_loss)
    return package.CRFClassifier(data.structure, **options), data, "log"


def slack(rng, kind):
    solver = pick(rng, ["bcfw"] * 3 + ["cutting_plane", "one_slack", "sgd"])
    options = some_steps(rng) if solver == "bcfw" else {"random_state": 0}
    options |= {"max_iter": 200, "solver": solver}
    data = with_other(some_data(rng, kind), slack_rescaled)
    return package.SlackRescaledSSVM(data.structure, **options), data, "max"


NAMED = {"binary": "binary", "classes": "multiclass", "labels": "multilabel"}


def planes(rng, kind):
    """`BMRMClassifier` over a structure."""
    data = some_data(rng, kind)
    structure = NAMED.get(kind, data.structure)
    form = pick(rng, ["one-slack", "n-slack"])
    model = package.BMRMClassifier(structure, formulation=form, random_state=0)
    return model, data, "max"


def bmrm(rng, kind, loss="hinge"):
    list_one = ranked_labels if kind == "labels" else one_class
    data = some_rows(rng, kind, list_one)
    if loss == "slack_hinge":
        data = with_other(data, slack_rescaled)
    options = {"line_search": bool(rng.integers(2)), "warm_start": True}
    return package.BMRMClassifier(loss=loss, **options), data, "max"


def pragam(rng, kind):
    list_one = ranked_labels if kind == "labels" else one_class
    data = some_nodes(rng, kind) if kind in NODES else some_rows(rng, kind, list_one)
    if kind == "binary" and data.bias:
        data.is_bias_free = True
        for groups in data.examples:
            for A, _ in groups:
                A[:, -1] /= LONG(data.bias)
        data.bias = 1.0
    model = package.PragamClassifier(structure=data.structure, max_iter=1000)
    return model, data, "max"


SOLVERS = {
    ("hinge", "l2"): ["auto", "auto", "hybrid", "sublbfgs", "subbfgs"],
    ("slack_hinge", "l2"): ["auto", "hybrid", "sublbfgs"],
    ("squared_hinge", "l2"): ["auto", "newton", "sublbfgs"],
    ("hinge", "l1"): ["auto"],
    ("squared_hinge", "l1"): ["auto", "newton", "owlqn", "owlqn*"],
    ("logistic", "l1"): ["auto", "newton", "owlqn", "owlqn*"],
}


def sublbfgs(rng, kind, loss="hinge", penalty="l2"):
    list_one = one_against_rest if loss == "squared_hinge" else one_class
    list_one = ranked_labels if kind == "labels" else list_one
    solvers = SOLVERS[loss, penalty]
    solver = pick(rng, ["auto"] if kind == "labels" else solvers)
    options = {"solver": solver, "penalty": penalty, "warm_start": True}
    model = package.SubLBFGSClassifier(loss, **options)
    data = some_rows(rng, kind, list_one)
    change = {"logistic": without_loss, "slack_hinge": slack_rescaled}.get(loss, list)
    of = {"logistic": "log", "squared_hinge": "squares"}.get(loss, "max")
    return model, with_other(data, change), of


ANY = (*ROWS, *NODES)
FOREST = ("chain", "tree")
# Functions with the kinds of data that they take, and their other arguments.
FAMILIES = {
    "BCFW": (bcfw, ANY, (0.0,)),
    "BCFW, elastic net": (bcfw, ANY, (0.3, 0.9, 0.99)),
    "CRF": (crf, ANY, (0.0,)),
    "CRF, elastic net": (crf, (*ROWS, *FOREST), (0.3, 0.9)),
    "CRF, L1": (crf, (*ROWS, *FOREST), (1.0,)),
    "slack rescaling": (slack, ANY, ()),
    "BMRM, structures": (planes, ANY, ()),
    "BMRM": (bmrm, ROWS, ("hinge",)),
    "BMRM, slack": (bmrm, ROWS[:2], ("slack_hinge",)),
    "Pragam": (pragam, (*ROWS, *FOREST), ()),
    "hinge": (sublbfgs, ROWS, (("hinge", "l2"),)),
    "slack hinge": (sublbfgs, ROWS[:2], (("slack_hinge", "l2"),)),
    "squared hinge": (sublbfgs, ROWS[:2], (("squared_hinge", "l2"),)),
    "hinge, L1": (sublbfgs, ROWS[:1], (("hinge", "l1"),)),
    "squared hinge, L1": (sublbfgs, ROWS[:2], (("squared_hinge", "l1"),)),
    "logistic, L1": (sublbfgs, ROWS[:1], (("logistic", "l1"),)),
}


def pick(rng, options):
    return options[rng.integers(len(options))]


def check_problem(rng, name):
    """Fit a model of this family, and often once more after a change.

    Raises
    ------
    Broken
        With what is wrong.
    """
    make, kinds, others = FAMILIES[name]
    arguments = [pick(rng, others)] if others else []
    if arguments and isinstance(arguments[0], tuple):
        arguments = arguments[0]
    model, data, loss = make(rng, pick(rng, kinds), *arguments)
    model.set_params(tol=10.0 ** rng.integers(-8, 0), C=10.0 ** rng.uniform(-4, 4))
    if data.kind in ROWS:
        scaling = getattr(data, "scaling", data.bias) or 1.0
        model.set_params(fit_intercept=bool(data.bias), intercept_scaling=scaling)
    n = len(data.examples)
    places, weights = np.arange(n), np.ones(n)
    n_fits = 1 + int(rng.integers(4)) * (rng.random() < 0.4)
    for at in range(n_fits):
        if at or rng.random() < 0.3:
            weights = pick(rng, [np.ones(n), rng.random(n), rng.integers(0, 3, n) * 2.0])
        if at and rng.random() < 0.6:
            places = rng.permutation(n)[: rng.integers(2, n + 1)]
        if at and rng.random() < 0.6:
            model.set_params(C=model.C * 10.0 ** rng.uniform(-1, 1))
        own = weights[places]
        if not keeps_labels(data, places, own):
            continue
        ratio = getattr(model, "l1_ratio", float(getattr(model, "penalty", "") == "l1"))
        convex = data.convex(loss, model.C, ratio, places, own)
        warned = fit(model, *data.chosen(places), own)
        judge(model, convex, data.weights_of(model), warned)


def keeps_labels(data, places, weights):
    """Whether the same labels are left, so that the weights are as many."""
    if data.kind == "labels":
        return weights.any()
    y = [np.atleast_1d(data.y[i]) for i, w in zip(places, weights, strict=True) if w > 0]
    return len(y) > 0 and set(np.concatenate(y)) == set(
        np.concatenate([np.atleast_1d(own) for own in data.y])
    )


def fit(model, X, y, weights):
    """Fit, and return whether there was a `ConvergenceWarning`. Others are wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights)
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            raise Broken(f"raw warning: {warning.message}")
    return any(issubclass(w.category, ConvergenceWarning) for w in caught)


def judge(model, convex, w, warned):
    """Compare what a fit says with the problem."""
    value, size = convex.value(w), convex.size(w)
    said, bound, gap = model.objective_, model.dual_objective_, model.dual_gap_
    rounding = ROUNDING * (size + abs(value))
    inexact = SEARCH * value if isinstance(model, package.SlackRescaledSSVM) else 0.0
    zero = convex.value(np.zeros(len(w)))
    best, at = min([convex.minimum(), (value, w)], key=lambda pair: pair[0])
    found = (
        f"objective {said!r} (truly {value}), bound {bound!r} (above {best} at "
        f"{np.asarray(at, float)}), gap {gap!r}, tol {model.tol:g}, zero weights {zero}, "
        f"rounding {rounding:.2g}"
    )
    if not -rounding <= said - value <= rounding + inexact:
        raise Broken(f"objective: {found}")
    if not bound <= best + ROUNDING * (convex.size(at) + abs(best)):
        raise Broken(f"false bound: {found}")
    if gap < 0.0 or gap < value - best - rounding:
        raise Broken(f"false gap: {found}")
    if not abs(gap - (said - bound)) <= rounding + 1e-9 * abs(gap):
        raise Broken(f"gap is not the difference: {found}")
    if gap > model.tol and not warned:
        raise Broken(f"silent: {found}")
    if said > zero + rounding:
        raise Broken(f"worse than zero weights: {found}")
