"""What a fit says of a random problem, against what is true.

Everything is compared with the objective in long double, at the returned weights and at
those of a solver that shares no code with the package.
"""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
from calls import Broken
from convex import LONG, ROUNDING
from families import FITS, FOREST, bcfw_path, crf_path, long_chains, many_classes
from listed import without_loss
from sklearn.exceptions import ConvergenceWarning
from some_data import ROWS, pick, some_data, with_other

import sklearn_structsvm as package

# Searches for the worst violation may end within this share of it.
SEARCH = 1.1e-6


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
        model.set_params(fit_intercept=bool(data.bias))
        model.set_params(solver_options__intercept_scaling=data.bias or 1.0)
    n = len(data.examples)
    places, weights = np.arange(n), np.ones(n)
    n_fits = 1 + int(rng.integers(1, 4)) * (rng.random() < 0.4) * has_c
    for at in range(n_fits):
        if (at or rng.random() < 0.3) and not data.is_whole:
            weights = pick(rng, [np.ones(n), rng.random(n), rng.integers(0, 3, n) * 2.0])
        if at and rng.random() < 0.6 and not data.is_whole:
            places = rng.permutation(n)[: rng.integers(2, n + 1)]
        if at and rng.random() < 0.6:
            model.set_params(C=model.C * 10.0 ** rng.uniform(-1, 1))
        own = weights[places]
        if not keeps_labels(data, places, own):
            continue
        warned = fit(model, *data.chosen(places), own)
        ratio = float(getattr(model, "penalty", "") == "l1")
        ratio = model.get_params().get("l1_ratio", ratio)
        ratio = getattr(model, "l1_ratio_", ratio)
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
        f"{model!r}: objective {said!r} (truly {value}), bound {bound!r} (best is {best} "
        f"at {np.asarray(at, float).tolist()}), gap {gap!r}, tol {model.tol:g}, "
        f"zero weights {zero}, rounding {rounding:.2g}"
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
    # What has converged is near the optimum, and need not have seen zero weights.
    if said > zero + rounding + (model.tol if gap <= model.tol else 0.0):
        raise Broken(f"worse than zero weights: {found}")


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


# Ways to draw and check a problem, which take a generator.
FAMILIES = {name: partial(check_fits, row=row) for name, row in FITS.items()} | {
    "BCFW, path": partial(check_path, make=bcfw_path),
    "CRF, path": partial(check_path, make=crf_path),
    "many classes": partial(check_large, make=many_classes),
    "long chains": partial(check_large, make=long_chains),
}


def check_problem(rng, family):
    """Fit a random problem of a family.

    Raises
    ------
    Broken
        With what is wrong.
    """
    FAMILIES[family](rng)
