"""Callbacks of scikit-learn 1.9, and what `verbose` prints with or without them."""

import re

import joblib
import numpy as np
import pytest
from _callbacks import Recorder
from _estimators import (
    ACCURATE,
    KINDS,
    assert_same_fit,
    for_each_estimator,
    make_problem,
)
from _mixtures import no_complaint_of_convergence
from sklearn.exceptions import NotFittedError

from sklearn_structsvm import BCFWClassifierCV

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    ProgressBar = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from 1.9 on"
)


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_task_for_each_pass(make_problem, kind):
    problem, recorder = make_problem(kind), Recorder()
    weights = np.ones(problem.n)
    model = problem.estimator().set_callbacks(recorder)
    model.fit(problem.X, problem.y, sample_weight=weights)
    assert recorder.passes == model.n_iter_
    assert recorder.begun.count("pass") == model.n_iter_
    assert len(recorder.ended) == model.n_iter_ + 1 and recorder.ended[-1] != "pass"
    assert recorder.set_up == recorder.torn_down == 1
    assert recorder.data[0] is problem.X and recorder.data[1] is problem.y
    assert recorder.metadata["sample_weight"] is weights


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_change_no_bit_of_a_fit(make_problem, kind):
    problem = make_problem(kind)
    model = problem.estimator().set_callbacks(Recorder())
    assert_same_fit(model.fit(problem.X, problem.y), problem.fitted())


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimator_handed_over_predicts_as_far_as_the_fit_has_come(
    make_problem, kind
):
    problem, recorder = make_problem(kind), Recorder()
    model = problem.estimator().set_callbacks(recorder).fit(problem.X, problem.y)
    first, last = recorder.fitted[0], recorder.fitted[-1]
    np.testing.assert_array_equal(last.coef_, model.coef_)
    assert not np.array_equal(first.coef_, last.coef_)
    for one in (first, last):
        assert 0 <= one.score(problem.X, problem.y) <= 1
        assert getattr(one, "n_features_in_", None) == getattr(
            model, "n_features_in_", None
        )


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", [1, 3])
def test_a_callback_ends_a_fit_with_a_certificate_and_without_a_warning(
    make_problem, kind, stop
):
    problem, recorder = make_problem(kind), Recorder(stop=stop)
    with no_complaint_of_convergence():
        best = problem.fitted(**ACCURATE)
    model = problem.estimator(tol=1e-10).set_callbacks(recorder)
    model.fit(problem.X, problem.y)
    assert model.n_iter_ == recorder.passes == stop
    assert model.history_["n_iter"][-1] == stop
    assert model.dual_gap_ > 1e-10
    assert best.dual_objective_ - 1e-13 <= model.objective_
    assert model.dual_objective_ <= best.objective_ + 1e-13
    assert recorder.torn_down == 1


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()], ids=repr)
def test_a_callback_that_raises_leaves_the_estimator_as_it_was(make_problem, error):
    problem, recorder = make_problem("chain"), Recorder(fail=2, error=error)
    model = problem.estimator()
    names = sorted(vars(model))
    with pytest.raises(type(error)):
        model.set_callbacks(recorder).fit(problem.X, problem.y)
    assert recorder.torn_down == 1
    assert sorted(set(vars(model)) - {"_skl_callbacks"}) == names
    with pytest.raises(NotFittedError):
        model.predict(problem.X)
    model.set_callbacks().fit(problem.X, problem.y)
    before = joblib.hash({k: v for k, v in vars(model).items() if k.endswith("_")})
    with pytest.raises(type(error)):
        model.set_callbacks(Recorder(fail=2, error=error)).fit(
            problem.X[:5], problem.y[:5]
        )
    after = joblib.hash({k: v for k, v in vars(model).items() if k.endswith("_")})
    assert after == before


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_goes_on_from_where_a_callback_raised(make_problem, kind):
    problem = make_problem(kind)
    recorder = Recorder(fail=3, error=RuntimeError("no"))
    model = problem.estimator(tol=1e-8, warm_start=True).set_callbacks(recorder)
    with pytest.raises(RuntimeError):
        model.fit(problem.X, problem.y)
    assert model.n_iter_ == 3 and model.dual_gap_ > 1e-8
    cut = model.dual_objective_
    model.set_callbacks().set_params(tol=1e-3).fit(problem.X, problem.y)
    assert model.history_["dual_objective"][0] == pytest.approx(cut, abs=1e-12)
    assert model.dual_gap_ <= 1e-3


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_a_scoring_monitor_sees_the_score_after_each_pass(make_problem, kind):
    problem = make_problem(kind)
    monitor = ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X, y)})
    model = problem.estimator().set_callbacks(monitor).fit(problem.X, problem.y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "pass"]
    assert len(rows) == model.n_iter_
    assert rows[-1]["score"] == model.score(problem.X, problem.y)


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_a_progress_bar_runs_to_its_end(make_problem, kind, capsys):
    pytest.importorskip("rich")
    problem = make_problem(kind)
    model = problem.estimator().set_callbacks(ProgressBar())
    assert_same_fit(model.fit(problem.X, problem.y), problem.fitted())
    assert type(model).__name__ in capsys.readouterr().out


@needs_callbacks
def test_callbacks_of_the_estimator_with_cross_validation_see_its_final_fit():
    problem, recorder = make_problem("chain"), Recorder()
    model = BCFWClassifierCV(
        problem.structure,
        Cs=[0.1, 1.0],
        cv=2,
        step="pairwise",
        cache=False,
        random_state=0,
    )
    model.set_callbacks(recorder).fit(problem.X, problem.y)
    assert recorder.passes == model.n_iter_


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_verbose_prints_a_line_for_each_check_after_a_pass(make_problem, kind, capsys):
    model = make_problem(kind).fitted(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    begin = rf"\[{type(model).__name__}\] pass (\d+),"
    checked = [int(re.match(begin, line)[1]) for line in lines]
    assert checked == model.history_["n_iter"][1:].tolist()
    assert lines[-1].endswith(f"duality gap {model.dual_gap_:.3g}")


@for_each_estimator
def test_nothing_is_printed_unless_asked_for(make_problem, capsys):
    make_problem("chain").fitted()
    assert capsys.readouterr() == ("", "")
