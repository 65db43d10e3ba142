"""BCFWClassifier(l1_ratio=...): the optimum, zeros, all steps, warm starts and misuse."""

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng, new_seed
from scipy.optimize import minimize

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_chains

TOL = 1e-3


def chains(n=25):
    return make_chains(
        n, n_features=5, n_classes=3, max_length=5, random_state=new_seed()
    )


def fitted(X, y, structure="auto", **params):
    params = {"C": 0.2, "l1_ratio": 0.5, "tol": TOL, "random_state": 0} | params
    return placed(BCFWClassifier)(structure, **params).fit(X, y)


def penalty(model, n):
    w = model.coef_.ravel()
    squares = 0.5 * (1.0 - model.l1_ratio) * w @ w
    return (squares + model.l1_ratio * np.abs(w).sum()) / (model.C * n)


def assert_same_optimum(model, other):
    assert max(model.dual_gap_, other.dual_gap_) <= TOL
    assert model.objective_ >= other.dual_objective_ - 1e-12
    assert other.objective_ >= model.dual_objective_ - 1e-12


@pytest.mark.parametrize("l1_ratio", [0.3, 0.9])
def test_the_optimum_is_that_of_quadratic_programming(l1_ratio):
    rng = new_rng()
    n, k, d = 12, 3, 2
    X, y = rng.normal(size=(n, d)), np.arange(n) % k
    model = fitted(X, y, l1_ratio=l1_ratio, fit_intercept=False, max_iter=5000)
    scores = X @ model.coef_.T
    margins = (np.arange(k) != y[:, np.newaxis]) + scores
    hinge = np.mean(margins.max(axis=1) - scores[np.arange(n), y])
    assert model.objective_ == pytest.approx(penalty(model, n) + hinge, rel=1e-9)
    # Of positive parts, negative parts and slacks.
    lam, m = 1.0 / (model.C * n), k * d

    def value(z):
        w = z[:m] - z[m : 2 * m]
        sizes = l1_ratio * z[: 2 * m].sum()
        return lam * (0.5 * (1.0 - l1_ratio) * w @ w + sizes) + z[2 * m :].mean()

    def room(z):
        Z = X @ (z[:m] - z[m : 2 * m]).reshape(k, d).T
        own = Z[np.arange(n), y][:, np.newaxis]
        loss = np.arange(k) != y[:, np.newaxis]
        return (z[2 * m :][:, np.newaxis] - loss - Z + own).ravel()

    start = np.concatenate([np.zeros(2 * m), np.ones(n)])
    found = minimize(
        value, start, method="SLSQP", bounds=[(0.0, None)] * len(start),
        constraints={"type": "ineq", "fun": room}, options={"maxiter": 500},
    )  # fmt: skip
    assert model.dual_gap_ <= TOL
    # What it finds is feasible but for its tolerance.
    lacking = max(-room(found.x).min(), 0.0)
    assert found.fun + lacking >= model.dual_objective_ - 1e-9
    assert model.objective_ <= found.fun + lacking + TOL


@pytest.mark.parametrize("step", ["fw", "pairwise", "away", "corrective"])
def test_all_steps_reach_the_same_optimum(step):
    X, y = chains()
    options = {"step": step, "max_iter": 5000}
    model = fitted(X, y, **options)
    assert_same_optimum(model, fitted(X, y))
    assert_same_optimum(fitted(X, y, acceleration=False, **options), model)
    assert_same_optimum(fitted(X, y, sampling="gap", **options), model)
    if step == "corrective":
        assert_same_optimum(fitted(X, y, n_jobs=2, **options), model)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("l1_ratio", [0.5, 0.95])
def test_raw_columns_are_certified(C, l1_ratio):
    """Without planes, a thousand passes leave a gap as large as the objective."""
    rng, n = new_rng(3), 200
    columns = [
        rng.lognormal(8.0, 1.5, n),
        rng.integers(18, 90, n),
        rng.normal(1e4, 3.0, n),
        rng.random(n),
    ]
    X = np.column_stack(columns).astype(float)
    y = np.log(X[:, 0]) + X[:, 3] + rng.standard_normal(n) > 8.5
    model = fitted(X, y, C=C, l1_ratio=l1_ratio)
    w, b = model.coef_[0], model.intercept_[0]
    margins, both = np.where(y, 1.0, -1.0) * (X @ w + b), np.append(w, b)
    sizes = 0.5 * (1.0 - l1_ratio) * both @ both + l1_ratio * np.abs(both).sum()
    value = sizes / (C * n) + np.maximum(0.0, 1.0 - margins).mean()
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.dual_gap_ <= TOL


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("columns", ["time stamps", "time stamps in chains", "1e8"])
def test_default_fits_to_huge_columns_end_within_the_tolerance(columns, l1_ratio, C):
    """The weights of the dual point need a billion times the accuracy of its planes."""
    rng, n = new_rng(6), 200
    Z = rng.normal(size=(n, 7))
    X = 1e8 * (Z + 3.0) if columns == "1e8" else np.c_[1.7e9 + 3e7 * rng.random(n), Z]
    score = Z[:, 0] - Z[:, 1] + rng.logistic(size=n)
    ends = [1 / 3, 2 / 3] if columns == "1e8" else [0.5]
    y = np.digitize(score, np.quantile(score, ends))
    if columns == "time stamps in chains":
        X, y = (list(part.reshape(n // 5, 5, *part.shape[1:])) for part in (X, y))
    # A fit that ends above `tol` warns.
    model = BCFWClassifier(C=C, l1_ratio=l1_ratio, random_state=0).fit(X, y)
    assert model.n_iter_ <= 500


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_three_classes_of_fewer_rows_than_columns_end_soon(C):
    """Plain steps do not within a thousand passes."""
    rng = new_rng(9)
    X = rng.standard_normal((200, 300))
    score = X[:, 0] - X[:, 1] + 0.5 * rng.logistic(size=200)
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    model = BCFWClassifier(C=C, l1_ratio=0.5, random_state=0).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert model.n_iter_ <= 200


def test_a_penalty_above_all_gradients_leaves_nothing():
    X, y = chains()
    assert not fitted(X, y, C=1e-6).coef_.any()


def test_a_warm_start_goes_on_at_another_penalty():
    X, y = chains()
    model = BCFWClassifier(tol=TOL, warm_start=True, random_state=0, max_iter=5000)
    for C, l1_ratio in ((0.1, 0.0), (0.1, 0.5), (0.2, 0.9), (0.2, 0.0)):
        n_iter = model.set_params(C=C, l1_ratio=l1_ratio).fit(X, y).n_iter_
        assert_same_optimum(model, fitted(X, y, C=C, l1_ratio=l1_ratio))
        # With an L1 penalty, the best weights and the best bound may be of two passes.
        assert model.fit(X, y).n_iter_ <= max(n_iter // 4, 1)


def test_labels_that_are_missing_are_refused():
    X, y = chains()
    y = [[None, *labels[1:]] for labels in y]
    with pytest.raises(ValueError, match="cannot learn: use l1_ratio=0"):
        fitted(X, y, "chain")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"l1_ratio": 1.0}, "l1_ratio"),
        ({"step": "exact"}, "l1_ratio=0.5 requires step='auto'"),
        ({"algorithm": "batch"}, "requires algorithm='block'"),
        ({"average": True}, "requires average=False"),
        ({"coef_bounds": (0.0, None)}, "requires coef_bounds=None"),
    ],
)
def test_what_does_not_go_together_is_refused(params, words):
    X, y = new_rng().normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=words):
        fitted(X, y, **params)
