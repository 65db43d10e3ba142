"""Estimators with random options and data: (model, data, its loss)."""

from types import SimpleNamespace

import numpy as np
from _options import placed
from convex import LONG
from large import LongChains, ManyClasses
from listed import (
    all_labels,
    one_against_rest,
    one_class,
    ranked_labels,
    slack_rescaled,
    whole_sample,
    without_loss,
)
from scipy import sparse
from some_data import NODES, ROWS, pick, some_data, some_rows, with_other

import sklearn_structsvm as package

ANY = (*ROWS, *NODES)
FOREST = ("chain", "tree")


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
    return placed(package.BCFWClassifier)(data.structure, **options), data, "max"


def crf(rng, kind, ratio):
    data = with_other(some_data(rng, kind), without_loss)
    has_newton = kind == "chain" and not data.structure.edge_features
    solvers = ["auto"] * 3 + ["dual"] * (kind != "forest")
    solvers += ["newton"] * (kind in ROWS or has_newton) + ["lbfgs"] * (ratio < 1.0)
    options = {"solver": pick(rng, solvers), "random_state": int(rng.integers(99))}
    options |= {"max_iter": 200, "l1_ratio": ratio, "warm_start": True}
    return placed(package.CRFClassifier)(data.structure, **options), data, "log"


def bcfw_cv(rng, kind):
    data = some_data(rng, kind)
    options = {"Cs": [1e-3, 1e-2], "cv": 2, "max_iter": 100, "random_state": 0}
    return placed(package.BCFWClassifierCV)(data.structure, **options), data, "max"


def crf_cv(rng, kind):
    data = with_other(some_data(rng, kind), without_loss)
    options = {"Cs": [1e-2, 1.0], "cv": 2, "max_iter": 100, "random_state": 0}
    options["l1_ratios"] = pick(rng, [[0.0], [0.5], [1.0]])
    return placed(package.CRFClassifierCV)(data.structure, **options), data, "log"


def slack(rng, kind):
    solver = pick(rng, ["bcfw"] * 3 + ["cutting_plane", "one_slack", "sgd"])
    options = some_steps(rng) if solver == "bcfw" else {"random_state": 0}
    options |= {"max_iter": 100, "solver": solver}
    data = with_other(some_data(rng, kind, all_labels), slack_rescaled)
    return placed(package.SlackRescaledSSVM)(data.structure, **options), data, "max"


NAMED = {"binary": "binary", "classes": "multiclass", "labels": "multilabel"}


def planes(rng, kind):
    """`BMRMClassifier` over a structure."""
    data = some_data(rng, kind)
    structure = NAMED.get(kind, data.structure)
    form = pick(rng, ["one-slack", "n-slack"])
    model = package.BMRMClassifier(
        structure, solver_options={"formulation": form}, max_iter=200
    )
    return model, data, "max"


def bmrm(rng, kind, loss="hinge"):
    data = some_data(rng, kind, ranked_labels)
    if loss == "slack_hinge":
        data = with_other(data, slack_rescaled)
    options = {"line_search": bool(rng.integers(2)), "warm_start": True}
    return placed(package.BMRMClassifier)(loss=loss, **options), data, "max"


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
    model = placed(package.SubLBFGSClassifier)(loss, **options)
    data = some_rows(rng, kind, list_one)
    change = {"logistic": without_loss, "slack_hinge": slack_rescaled}.get(loss, list)
    of = {"logistic": "log", "squared_hinge": "squares"}.get(loss, "max")
    return model, with_other(data, change), of


def of_sample(rng, kind, loss):
    """Losses of the whole sample, of few rows."""
    data = some_rows(rng, kind, one_class, has_bias=False)
    n = int(rng.integers(4, 7))
    data.X, data.y = data.chosen(np.arange(n))
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    data.examples = [whole_sample(X.astype(LONG), data.y, loss)] + [[]] * (n - 1)
    data.is_whole = True
    kinds = (package.SubLBFGSClassifier, package.BMRMClassifier)
    return pick(rng, kinds)(loss=loss, max_iter=200), data, "max"


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
    "sample": (of_sample, ROWS[:1], ("zero_one", "f1", "jaccard", "roc_auc")),
    "hinge": (sublbfgs, ROWS, (("hinge", "l2"),)),
    "slack hinge": (sublbfgs, ROWS[:2], (("slack_hinge", "l2"),)),
    "squared hinge": (sublbfgs, ROWS[:2], (("squared_hinge", "l2"),)),
    "hinge, L1": (sublbfgs, ROWS[:1], (("hinge", "l1"),)),
    "squared hinge, L1": (sublbfgs, ROWS[:2], (("squared_hinge", "l1"),)),
    "logistic, L1": (sublbfgs, ROWS[:1], (("logistic", "l1"),)),
}


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
        models = [
            placed(package.CRFClassifier)(solver=own, **options)
            for own in ("auto", "lbfgs")
        ]
    else:
        models = [
            placed(package.BCFWClassifier)(**options),
            placed(package.SubLBFGSClassifier)(**options),
        ]
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
    path = placed(package.crf_path)(
        data.X, data.y, structure=data.structure, Cs=Cs, **options
    )
    coefs = path.coefs.toarray() if sparse.issparse(path.coefs) else path.coefs
    n_outputs = 1 if path.intercepts is None else path.intercepts.shape[1]
    weights = []
    for at, coef in enumerate(coefs):
        own = 0.0 if path.intercepts is None else path.intercepts[at]
        coef = coef if data.kind in NODES else coef.reshape(n_outputs, -1)
        weights.append(data.weights_of(SimpleNamespace(coef_=coef, intercept_=own)))
    return 1.0 / (len(data.examples) * path.Cs), weights, path.dual_gaps
