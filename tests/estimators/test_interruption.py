"""A fit that is cut off loses nothing, and a warm start goes on from where it was."""

from functools import partial
from itertools import product

import joblib
import numpy as np
import pytest
from _estimators import (
    FLAT,
    KINDS,
    PythonMulticlass,
    assert_same_fit,
    fitted_attributes,
    for_each_estimator,
    make_problem,
)
from _options import placed, set_placed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.solvers.loop import HISTORY_KEYS

pytestmark = pytest.mark.thread_unsafe(reason="there is one fuse")


class Fuse:
    """Raises its error at the n-th call from now, where n is set."""

    error = left = None
    stays_broken = False


def burn():
    if Fuse.left is not None:
        Fuse.left -= 1
        if Fuse.left <= 0:
            Fuse.left = 0 if Fuse.stays_broken else None
            raise Fuse.error


@pytest.fixture(autouse=True)
def no_fuse_is_lit():
    Fuse.left, Fuse.stays_broken = None, False


def spied(make_problem, error, **params):
    """An estimator over a structure in Python whose fuse is lit by `Fuse.left = n`."""
    Fuse.error = error
    problem = make_problem("custom", n=12)
    structure = PythonMulticlass(spy=burn)
    return problem, placed(problem.model)(structure, **{"random_state": 0} | params)


def state(model):
    return joblib.hash({k: v for k, v in vars(model).items() if k != "structure"})


ERRORS = [KeyboardInterrupt(), RuntimeError("the oracle gave up")]


SOLVERS = {
    "bcfw": (BCFWClassifier, {}),
    "slack": (SlackRescaledSSVM, {}),
    **{name: (SlackRescaledSSVM, {"solver": name})
       for name in ("sgd", "cutting_plane", "one_slack")},
}  # fmt: skip


@pytest.mark.parametrize(("cls", "params"), SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize(
    ("error", "call"), [*zip(ERRORS * 2, [1, 12, 13, 50], strict=True)], ids=repr
)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(cls, params, error, call):
    make = partial(make_problem, model=cls)
    problem, model = spied(make, error, tol=1e-9, max_iter=9999, **params)
    before = state(model)
    Fuse.left = call
    with pytest.raises(type(error)):
        model.fit(problem.X, problem.y)
    assert Fuse.left is None
    assert state(model) == before
    with pytest.raises(NotFittedError):
        model.predict(problem.X)
    assert model.set_params(tol=0.05).fit(problem.X, problem.y).dual_gap_ <= 0.05
    before, Fuse.left = state(model.set_params(tol=1e-9)), call
    with pytest.raises(type(error)):
        model.fit([2 * x for x in problem.X], problem.y[::-1])
    assert state(model) == before


@for_each_estimator
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
def test_an_interrupted_warm_start_is_certified_where_it_was_cut_and_goes_on(
    make_problem, step
):
    options = {"step": step, "tol": 1e-9, "max_iter": 10**5}
    problem, model = spied(make_problem, KeyboardInterrupt(), warm_start=True, **options)
    Fuse.left = 40
    with pytest.raises(KeyboardInterrupt):
        model.fit(problem.X, problem.y)
    assert tuple(model.history_) == (*HISTORY_KEYS, "method")
    assert model.history_["dual_gap"][-1] == model.dual_gap_ > 1e-9
    if isinstance(model, SlackRescaledSSVM):
        assert model.n_queries_ > model.n_oracle_calls_ > problem.n
    # The certificate is that of the coefficients.
    lam, w = 1 / problem.n, model.coef_
    losses = [
        max(
            model.structure_.loss(y, c) + w @ model.structure_.joint_feature(x, c)
            for c in range(3)
        )
        - w @ model.structure_.joint_feature(x, y)
        for x, y in zip(problem.X, problem.y, strict=True)
    ]
    assert abs(model.objective_ - (lam / 2 * w @ w + np.mean(losses))) <= 1e-12
    cut = model.dual_objective_
    model.set_params(tol=1e-3).fit(problem.X, problem.y)
    assert model.history_["dual_objective"][0] == pytest.approx(cut, abs=1e-12)
    assert model.dual_gap_ <= 1e-3


@for_each_estimator
def test_a_warm_start_whose_structure_stays_broken_keeps_the_last_good_state(
    make_problem,
):
    problem, model = spied(make_problem, RuntimeError("broken"), warm_start=True)
    model.fit(problem.X, problem.y).set_params(tol=1e-9)
    before = state(model)
    Fuse.left, Fuse.stays_broken = 40, True
    with pytest.raises(RuntimeError, match="broken"):
        model.set_params(C=3.0).fit(problem.X, problem.y)
    assert state(model.set_params(C=1.0)) == before


@pytest.mark.parametrize(
    ("model", "kind", "step"),
    [*product([BCFWClassifier, SlackRescaledSSVM], KINDS, ["pairwise"]),
     *product([BCFWClassifier, SlackRescaledSSVM], ["chain", "custom"], ["fw", "away"]),
     *product([BCFWClassifier], FLAT, ["exact"])],
)  # fmt: skip
def test_a_warm_start_has_nothing_to_do_and_goes_on_at_a_new_problem(model, kind, step):
    problem = make_problem(kind, model=model)
    options = {"step": step, "max_iter": 10**5}
    model = problem.fitted(warm_start=True, **options)
    first, coef = model.dual_objective_, model.coef_
    model.fit(problem.X, problem.y)
    assert model.n_iter_ == 0 and model.dual_gap_ <= 1e-3
    if step == "exact":
        np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    assert model.dual_objective_ == pytest.approx(first, abs=1e-12)
    model.set_params(C=1.05).fit(problem.X, problem.y)
    cold = problem.fitted(C=1.05, **options)
    assert model.dual_gap_ <= 1e-3
    assert abs(model.objective_ - cold.objective_) <= 1e-3
    # How soon the last digits come is chance; the first ones are there: at 0 the gap is
    # the largest losses' mean, of which the weights times 1.05 add at most 5%.
    largest = cold.history_["dual_gap"][0]
    assert model.history_["dual_gap"][0] <= 1.05 * 1e-3 + 0.05 * largest
    if kind == "chain":
        data = [1.1 * x for x in problem.X], problem.y, np.linspace(1, 2, problem.n)
        model.fit(*data)
        assert model.dual_gap_ <= 1e-3
        cold = clone(model).set_params(warm_start=False).fit(*data)
        assert abs(model.objective_ - cold.objective_) <= 1e-3


@for_each_estimator
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_a_warm_start_with_another_y_warns_and_starts_anew(make_problem, kind):
    problem = make_problem(kind)
    model = problem.fitted(warm_start=True)
    y = [(labels + 1) % 3 for labels in problem.y]
    with pytest.warns(UserWarning, match="warm_start=True.*no example is one") as record:
        model.fit(problem.X, y)
    assert len(record) == 1 and record[0].filename == __file__
    assert_same_fit(model, problem.estimator(warm_start=True).fit(problem.X, y))


@for_each_estimator
def test_without_warm_start_no_dual_state_is_kept(make_problem):
    problem = make_problem("chain")
    assert not hasattr(problem.fitted(), "_dual_state")
    model = problem.fitted(warm_start=True)
    model.set_params(warm_start=False).fit(problem.X, problem.y)
    assert_same_fit(model, problem.fitted())
    assert sorted(fitted_attributes(model)) == sorted(fitted_attributes(problem.fitted()))
    assert not hasattr(model, "_dual_state")


@pytest.mark.parametrize(
    "model",
    [BCFWClassifier(step="fw"), BCFWClassifier(), SlackRescaledSSVM(),
     SlackRescaledSSVM(solver="cutting_plane")],
    ids=str,
)  # fmt: skip
def test_max_time_is_looked_at_after_each_call_of_a_structure_in_python(model):
    problem, n_seen = make_problem("custom", n=12), []
    structure = PythonMulticlass(spy=lambda: n_seen.append(1), product=True)
    model = set_placed(clone(model), structure=structure, max_time=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(problem.X, problem.y)
    # Checks of the gap before and after, and a step in between.
    assert len(n_seen) <= 12 + 1 + 12
