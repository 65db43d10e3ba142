"""Random problems, and what a fit says of them against what is true.

Everything is compared with the objective in long double, at the returned weights and at
those of a solver that shares no code with the package.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
from calls import Broken
from convex import LONG, ROUNDING, Convex
from large import LongChains, ManyClasses
from listed import (
    all_labels,
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

    def convex(self, loss, C, l1_ratio, places, weights):
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
        return Convex(
            loss,
            np.concatenate(A),
            np.concatenate(b),
            np.cumsum([0, *sizes[:-1]]),
            np.array(weights, LONG) / total,
            lam * (1 - LONG(l1_ratio)),
            lam * LONG(l1_ratio),
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


def some_rows(rng, kind, list_one, has_bias=True):
    """Rows of X with their labels, and each row as groups."""
    n, f = int(rng.integers(6, 30)), int(rng.integers(1, 6))
    k = 2 if kind == "binary" else int(rng.integers(3, 5))
    X = some_matrix(rng, n, f)
    size = np.abs(X).max(axis=0)
    scores = X / np.where(size > 0, size, 1.0) @ rng.normal(size=(f, k)) * 3.0
    scores += rng.normal(size=scores.shape)
    y = (scores > 0).astype(int) if kind == "labels" else scores.argmax(axis=1)
    if kind != "labels":
        y[:k] = np.arange(k)
    bias = 10.0 ** rng.integers(-1, 2) if has_bias and rng.random() < 0.7 else 0.0
    costs = np.ones((k, 2)) if list_one in (each_label, all_labels) else 1.0 - np.eye(k)
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



def some_data(rng, kind, list_labels=each_label, has_bias=True):
    if kind in NODES:
        return some_nodes(rng, kind)
    list_one = list_labels if kind == "labels" else one_class
    return some_rows(rng, kind, list_one, has_bias)


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
    return options | {"max_iter": 100, "warm_start": True}


def bcfw(rng, kind, ratio):
    exact = ["exact"] if kind in ROWS and ratio == 0.0 else []
    options = some_steps(rng, *exact) | {"l1_ratio": ratio}
    data = some_data(rng, kind)
    return package.BCFWClassifier(data.structure, **options), data, "max"


def crf(rng, kind, ratio):
    solvers = ["auto"] * 3 + ["dual"] * (kind != "forest")
    solvers += ["newton"] * (kind in (*ROWS, "chain")) + ["lbfgs"] * (ratio < 1.0)
    options = {"solver": pick(rng, solvers), "random_state": int(rng.integers(99))}
    options |= {"max_iter": 200, "l1_ratio": ratio, "warm_start": True}
    data = with_other(some_data(rng, kind), without_loss)
    return package.CRFClassifier(data.structure, **options), data, "log"


def bcfw_cv(rng, kind):
    data = some_data(rng, kind)
    options = {"Cs": [1e-3, 1e-2], "cv": 2, "max_iter": 100, "random_state": 0}
    return package.BCFWClassifierCV(data.structure, **options), data, "max"


def crf_cv(rng, kind):
    data = with_other(some_data(rng, kind), without_loss)
    options = {"Cs": [1e-2, 1.0], "cv": 2, "max_iter": 100, "random_state": 0}
    options["l1_ratios"] = pick(rng, [[0.0], [0.5], [1.0]])
    return package.CRFClassifierCV(data.structure, **options), data, "log"


def slack(rng, kind):
    solver = pick(rng, ["bcfw"] * 3 + ["cutting_plane", "one_slack", "sgd"])
    options = some_steps(rng) if solver == "bcfw" else {"random_state": 0}
    options |= {"max_iter": 100, "solver": solver}
    data = with_other(some_data(rng, kind, all_labels), slack_rescaled)
    return package.SlackRescaledSSVM(data.structure, **options), data, "max"


NAMED = {"binary": "binary", "classes": "multiclass", "labels": "multilabel"}


def planes(rng, kind):
    """`BMRMClassifier` over a structure."""
    data = some_data(rng, kind)
    structure = NAMED.get(kind, data.structure)
    form = pick(rng, ["one-slack", "n-slack"])
    model = package.BMRMClassifier(structure, formulation=form, max_iter=200)
    return model, data, "max"


def bmrm(rng, kind, loss="hinge"):
    data = some_data(rng, kind, ranked_labels)
    if loss == "slack_hinge":
        data = with_other(data, slack_rescaled)
    options = {"line_search": bool(rng.integers(2)), "warm_start": True}
    return package.BMRMClassifier(loss=loss, **options), data, "max"


def pragam(rng, kind):
    data = some_data(rng, kind, ranked_labels)
    if kind == "binary" and data.bias:
        data.is_bias_free = True
        for groups in data.examples:
            for A, _ in groups:
                A[:, -1] /= LONG(data.bias)
        data.bias = 1.0
    model = package.PragamClassifier(structure=data.structure, max_iter=200)
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
    options = {"solver": solver, "penalty": penalty, "max_iter": 200}
    options |= {"warm_start": True}
    model = package.SubLBFGSClassifier(loss, **options)
    data = some_rows(rng, kind, list_one)
    change = {"logistic": without_loss, "slack_hinge": slack_rescaled}.get(loss, list)
    of = {"logistic": "log", "squared_hinge": "squares"}.get(loss, "max")
    return model, with_other(data, change), of


ANY = (*ROWS, *NODES)
FOREST = ("chain", "tree")


def many_classes(rng, is_likelihood):
    """Up to 300 classes, with fits by two methods."""
    k, f = int(10.0 ** rng.uniform(1.3, 2.48)), 3
    n = int(rng.integers(k, 2 * k))
    X, y = rng.normal(size=(n, f)), np.append(np.arange(k), rng.integers(k, size=n - k))
    X[:, 0] *= 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.5 else 1.0
    convex = ManyClasses(
        "log" if is_likelihood else "max",
        [x[np.newaxis] for x in X.astype(LONG)],
        y[:, np.newaxis],
        k, LONG(0), 0.0,
    )  # fmt: skip
    options = {"fit_intercept": False}
    if is_likelihood:
        models = [package.CRFClassifier(solver=own, **options) for own in ("auto", "lbfgs")]
    else:
        models = [package.BCFWClassifier(**options), package.SubLBFGSClassifier(**options)]
    return models, X, y, convex


def long_chains(rng, is_likelihood):
    """Up to 100,000 positions, with fits by two methods."""
    T = int(10.0 ** (2.0 + 3.0 * rng.random() ** 6))
    k, f = int(rng.integers(2, 5)), 2
    n = int(rng.integers(1, max(2, 1000 // T)))
    y = [rng.integers(k, size=T) for _ in range(n)]
    for own in y:
        repeated = rng.random(T) < 0.7
        own[1:] = np.where(repeated[1:], own[:-1], own[1:])
        own[:k] = np.arange(k)
    X = [rng.normal(size=(T, f)) + np.outer(own, [1.0, -0.5]) for own in y]
    loss = "log" if is_likelihood else "max"
    convex = LongChains(loss, [x.astype(LONG) for x in X], y, k, LONG(0), 0.0)
    if is_likelihood:
        models = [package.CRFClassifier("chain", solver=own) for own in ("auto", "lbfgs")]
    else:
        models = [package.BCFWClassifier("chain"), package.BMRMClassifier("chain")]
    return models, X, y, convex


def check_large(rng, make):
    """Two fits of one problem, each judged by both."""
    models, X, y, convex = make(rng, bool(rng.integers(2)))
    C, tol = 10.0 ** rng.uniform(-3, 1), 10.0 ** rng.integers(-4, -1)
    convex.lam = 1 / (LONG(C) * len(y))
    warned = []
    for model in models:
        model.set_params(C=C, tol=tol, max_iter=50)
        warned.append(fit(model, X, y, np.ones(len(y))))
        coef = np.asarray(model.coef_, LONG)
        convex.points.append(coef.T.ravel())
    for model, w, own in zip(models, convex.points, warned, strict=True):
        judge(model, convex, w, own)


def bcfw_path(rng, data, eps, lambdas):
    """Weights and gaps at random places of a path."""
    path = package.bcfw_path(
        data.X, data.y, structure=data.structure, fit_intercept=False, eps=eps,
        max_iter=100, random_state=0,
    )  # fmt: skip
    lambdas = lambdas[lambdas >= path.end]
    return lambdas, [path.coef(lam) for lam in lambdas], [eps] * len(lambdas)


def crf_path(rng, data, eps, lambdas, ratio):
    """Weights and gaps of all fits."""
    options = {"l1_ratio": ratio, "tol": eps, "max_iter": 100, "random_state": 0}
    if data.kind in ROWS:
        options |= {"fit_intercept": bool(data.bias)}
        options |= {"intercept_scaling": data.bias or 1.0}
    Cs = np.sort(1.0 / (len(data.examples) * lambdas))
    path = package.crf_path(data.X, data.y, structure=data.structure, Cs=Cs, **options)
    coefs = path.coefs.toarray() if sparse.issparse(path.coefs) else path.coefs
    n_outputs = 1 if path.intercepts is None else path.intercepts.shape[1]
    weights = []
    for at, coef in enumerate(coefs):
        own = 0.0 if path.intercepts is None else path.intercepts[at]
        coef = coef if data.kind in NODES else coef.reshape(n_outputs, -1)
        weights.append(data.weights_of(SimpleNamespace(coef_=coef, intercept_=own)))
    return 1.0 / (len(data.examples) * path.Cs), weights, path.dual_gaps


def check_path(rng, make):
    """Weights of a path, each with the gap that is promised for it."""
    is_crf = make is not bcfw_path
    data = some_data(rng, pick(rng, (*ROWS, *FOREST)), has_bias=is_crf)
    n, eps = len(data.examples), 10.0 ** rng.integers(-4, 0)
    lambdas, ratio, loss = 10.0 ** rng.uniform(-3, 1, size=3), 0.0, "max"
    if is_crf:
        ratio, loss = pick(rng, [0.0, 0.5, 1.0]), "log"
        make = partial(crf_path, ratio=ratio)
        data = with_other(data, without_loss)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = make(rng, data, eps, lambdas)
    is_short = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    for lam, w, gap in zip(*found, strict=True):
        convex = data.convex(loss, 1.0 / (n * LONG(lam)), ratio, range(n), np.ones(n))
        value = float(convex.value(w))
        said = {"objective_": value, "dual_objective_": value - gap, "dual_gap_": gap}
        judge(SimpleNamespace(**said, tol=eps), convex, w, is_short)


def pick(rng, options):
    return options[rng.integers(len(options))]


def check_fits(rng, row):
    """Fit a model of a family, and often once more after a change."""
    make, kinds, others = row
    arguments = [pick(rng, others)] if others else []
    if arguments and isinstance(arguments[0], tuple):
        arguments = arguments[0]
    model, data, loss = make(rng, pick(rng, kinds), *arguments)
    model.set_params(tol=10.0 ** rng.integers(-8, 0))
    has_c = "C" in model.get_params()
    if has_c:
        model.set_params(C=10.0 ** rng.uniform(-4, 4))
    if data.kind in ROWS:
        model.set_params(fit_intercept=bool(data.bias), intercept_scaling=data.bias or 1.0)
    n = len(data.examples)
    places, weights = np.arange(n), np.ones(n)
    n_fits = 1 + int(rng.integers(1, 4)) * (rng.random() < 0.4) * has_c
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
        warned = fit(model, *data.chosen(places), own)
        ratio = float(getattr(model, "penalty", "") == "l1")
        ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", ratio))
        C = model.C if has_c else model.C_
        convex = data.convex(loss, C, ratio, places, own)
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
        f"{model!r}: objective {said!r} (truly {value}), bound {bound!r} (above {best} at "
        f"{np.asarray(at, float).tolist()}), gap {gap!r}, tol {model.tol:g}, zero weights {zero}, "
        f"rounding {rounding:.2g}"
    )
    if not -rounding <= said - value <= rounding + inexact:
        raise Broken(f"objective: {found}")
    if not bound <= best + ROUNDING * (convex.size(at) + abs(best)):
        raise Broken(f"false bound: {found}")
    if gap < 0.0:
        raise Broken(f"negative gap: {found}")
    if gap < value - best - rounding:
        raise Broken(f"false gap: {found}")
    if not abs(gap - (said - bound)) <= rounding + 1e-9 * abs(gap):
        raise Broken(f"gap is not the difference: {found}")
    if gap > model.tol and not warned:
        raise Broken(f"silent: {found}")
    if said > zero + rounding:
        raise Broken(f"worse than zero weights: {found}")


# Functions with the kinds of data that they take, and their other arguments.
FITS = {
    "BCFW": (bcfw, ANY, (0.0,)),
    "BCFW, CV": (bcfw_cv, (*ROWS, *FOREST), ()),
    "CRF, CV": (crf_cv, (*ROWS, *FOREST), ()),
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
FAMILIES = (
    {name: partial(check_fits, row=row) for name, row in FITS.items()}
    | {f"{make.__name__}": partial(check_path, make=make) for make in (bcfw_path, crf_path)}
    | {
        "many classes": partial(check_large, make=many_classes),
        "long chains": partial(check_large, make=long_chains),
    }
)


def check_problem(rng, family):
    """Fit a random problem of a family.

    Raises
    ------
    Broken
        With what is wrong.
    """
    FAMILIES[family](rng)
