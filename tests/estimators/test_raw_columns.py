"""Default fits to columns as they come end within `tol`, at the objective as defined."""

import numpy as np
import pytest
from _estimators import linear_objective
from _seeds import new_rng
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SubLBFGSClassifier,
)

CRF, SVM = CRFClassifier(random_state=0), BCFWClassifier(random_state=0)
# Columns by a generator and standard normal columns.
COLUMNS = {
    "year": lambda rng, Z: np.c_[rng.integers(1990, 2025, len(Z)), Z],
    "row id": lambda rng, Z: np.c_[np.arange(len(Z)) + 1e5, Z],
    "money": lambda rng, Z: np.c_[rng.lognormal(9.0, 2.0, len(Z)), Z],
    "Cauchy": lambda rng, Z: np.c_[rng.standard_cauchy(len(Z)), Z],
    "offset": lambda rng, Z: np.c_[rng.normal(1e3, 1.0, len(Z)), Z],
    "time": lambda rng, Z: np.c_[1.7e9 + 3e7 * rng.random(len(Z)), Z],
    "time of labels": lambda rng, Z: COLUMNS["time"](rng, Z),
    "times of labels": lambda rng, Z: 1.7e9 + 3e7 * rng.random(Z.shape),
    "times of a day": lambda rng, Z: 1.7e9 + 1e5 * rng.random(Z.shape),
    "large": lambda rng, Z: 1e8 * (Z + 3.0),
    "many": lambda rng, Z: Z,
    "many of all scales": lambda rng, Z: Z * np.logspace(-2, 3, Z.shape[1]),
    "scales and offsets": lambda rng, Z: (
        (Z + 3.0 * rng.normal(size=Z.shape[1])) * 10.0 ** rng.uniform(0, 4, Z.shape[1])
    ),
    "a table": lambda rng, Z: np.c_[
        rng.lognormal(8.0, 1.5, len(Z)), rng.integers(18, 90, len(Z)),
        rng.normal(1e4, 3.0, len(Z)), rng.random((len(Z), 2)) * [1.0, 1e-3],
        rng.random(len(Z)) < 0.02, Z,
    ],
}  # fmt: skip


def with_l1(model, *ratios):
    return [clone(model).set_params(l1_ratio=ratio) for ratio in ratios]


def of_l1(*losses):
    return [SubLBFGSClassifier(loss, penalty="l1") for loss in losses]


# Models, columns, forms of examples, numbers of classes, values of C, and most passes.
CASES = [
    ([CRF], ["time of labels"], ["chains", "trees"], 3, (1.0, 1e3), 1000),
    ([CRF], ["many of all scales"], ["chains"], 3, (1.0, 1e3), 700),
    (with_l1(CRF, 1.0), ["scales and offsets"], ["chains"], 3, (0.1, 10.0), 400),
    (with_l1(CRF, 0.5, 1.0), ["time of labels"], ["rows", "chains"], 3, (1.0, 1e3), 100),
    (with_l1(CRF, 0.5), ["time", "times of labels"], ["rows"], 3, (1.0, 1e3), 100),
    (with_l1(CRF, 1.0), ["time", "times of labels"], ["chains"], 3, (1.0, 1e3), 100),
    (with_l1(CRF, 1.0), ["time"], ["rows"], 3, (1e3,), 100),
    (with_l1(CRF, 0.9, 1.0), ["times of a day"], ["chains"], 3, (1e-3, 1e3, 1e4), 100),
    (with_l1(CRF, 0.5, 1.0), ["times of a day"], ["rows"], 3, (1.0, 1e3), 100),
    (with_l1(CRF, 1.0), ["large"], ["rows", "chains"], 3, (1e3,), 1000),
    (with_l1(CRF, 0.5, 1.0), ["time", "time of labels"], ["trees"], 3, (1.0, 1e3), 400),
    (with_l1(SVM, 0.0, 0.5), ["time"], ["rows"], 2, (1e-3, 1.0, 1e3), 500),
    (with_l1(SVM, 0.0, 0.9), ["time"], ["chains"], 2, (1e-3, 1.0, 1e3), 500),
    (with_l1(SVM, 0.0, 0.9), ["large"], ["rows"], 3, (1e-3, 1.0, 1e3), 500),
    (with_l1(SVM, 0.5), ["many"], ["rows"], 3, (1.0, 1e3), 200),
    (with_l1(SVM, 0.5, 0.95), ["a table"], ["rows"], 2, (0.01, 1.0), 1000),
    (of_l1("hinge"), ["year", "row id", "money", "Cauchy", "offset"], ["rows"], 2,
     (1e-3, 1.0, 1e3), 100),
    (of_l1("squared_hinge"), ["row id", "money"], ["rows"], 2, (1e-3, 1.0, 1e3), 100),
    (of_l1("logistic"), ["a table"], ["rows"], 2, (0.1, 1.0, 100.0), 1000),
    ([BMRMClassifier()], ["large"], ["rows"], 2, (0.1,), 1000),
    ([PragamClassifier()], ["large"], ["rows"], 3, (1.0, 1e3), 1500),
    ([PragamClassifier()], ["time"], ["rows"], 2, (1.0, 1e3), 1500),
]  # fmt: skip


def draw(columns, form, k):
    rng, n = new_rng(5), 200
    Z = rng.normal(size=(n, 300 if columns.startswith("many") else 7))
    X = COLUMNS[columns](rng, Z)
    score = Z[:, 0] - Z[:, 1] + rng.logistic(size=n)
    if columns.endswith("of labels"):
        # A slope by the time itself is noise to L-BFGS.
        score += 4.0 * (X[:, 0] > 1.715e9)
    y = np.digitize(score, np.quantile(score, np.arange(1, k) / k))
    if form != "rows":
        X, y = (list(part.reshape(n // 5, 5, *part.shape[1:])) for part in (X, y))
    if form == "trees":
        X = [(x, np.array([-1, 0, 0, 1, 1])) for x in X]
    return X, y


def value_of(model, X, y):
    """The objective at the coefficients, by its definition."""
    own = model.get_params()
    l1 = own.get("l1_ratio", float(own.get("penalty") == "l1"))
    if isinstance(model, CRFClassifier):
        w = np.append(model.coef_.ravel(), getattr(model, "intercept_", []))
        size = l1 * np.abs(w).sum() + 0.5 * (1.0 - l1) * w @ w
        return size / (model.C * len(y)) - np.mean(model.log_likelihood(X, y))
    value = linear_objective(model, X, y, C=model.C, loss=own.get("loss", "hinge"), l1=l1)
    if isinstance(model, PragamClassifier) and len(model.classes_) == 2:
        # Its intercept is not regularized.
        value -= 0.5 * model.intercept_[0] ** 2 / (model.C * len(y))
    return value


@pytest.mark.parametrize(
    ("model", "columns", "form", "k", "Cs", "most"),
    [
        pytest.param(model, name, form, *rest, id=f"{model!r}-{name}-{form}")
        for models, columns, forms, *rest in CASES
        for model in models
        for name in columns
        for form in forms
    ],
)
def test_a_default_fit_to_raw_columns_ends_soon_within_its_tolerance(
    model, columns, form, k, Cs, most
):
    X, y = draw(columns, form, k)
    if form == "trees":
        model = clone(model).set_params(structure="tree")
    for C in Cs:
        # A fit that ends above `tol` warns, and warnings are errors.
        fitted = clone(model).set_params(C=C).fit(X, y)
        assert fitted.dual_gap_ <= fitted.tol
        assert fitted.n_iter_ <= most
        if form == "rows" or isinstance(model, CRFClassifier):
            value = value_of(fitted, X, y)
            assert fitted.objective_ == pytest.approx(value, rel=1e-6, abs=1e-9)
