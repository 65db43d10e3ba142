"""Callbacks of scikit-learn 1.9, and what `verbose` prints with or without them."""

import re
import threading

import joblib
import numpy as np
import pytest
import sklearn
from _callbacks import Recorder
from _estimators import (
    ACCURATE,
    ITERATIVE,
    assert_same_fit,
    assert_same_labels,
    for_each_estimator,
    make_problem,
)
from _mixtures import no_complaint_of_convergence
from _options import placed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    ComplexMetricClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.estimators.base import PassReporter
from sklearn_structsvm.metrics import EqualOpportunity

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    ProgressBar = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from 1.9 on"
)


@for_each_estimator
@needs_callbacks
@pytest.mark.parametrize("kind", ["multilabel-csr", "chain", "custom"])
def test_a_callback_ends_a_fit_with_a_certificate_and_a_warm_start_goes_on(
    make_problem, kind
):
    problem = make_problem(kind)
    with no_complaint_of_convergence():
        best = problem.fitted(**ACCURATE)
    for stop in (1, 3):
        recorder = Recorder(stop=stop)
        model = problem.estimator(tol=1e-10).set_callbacks(recorder)
        model.fit(problem.X, problem.y)
        assert model.n_iter_ == recorder.passes == stop
        assert model.history_["n_iter"][-1] == stop
        assert model.dual_gap_ > 1e-10
        assert best.dual_objective_ - 1e-13 <= model.objective_
        assert model.dual_objective_ <= best.objective_ + 1e-13
        assert recorder.torn_down == 1
    recorder = Recorder(fail=3, error=RuntimeError("no"))
    model = problem.estimator(tol=1e-8, warm_start=True).set_callbacks(recorder)
    with pytest.raises(RuntimeError):
        model.fit(problem.X, problem.y)
    assert model.n_iter_ == 3 and model.dual_gap_ > 1e-8
    cut = model.dual_objective_
    model.set_callbacks().set_params(tol=1e-3).fit(problem.X, problem.y)
    assert model.history_["dual_objective"][0] == pytest.approx(cut, abs=1e-12)
    assert model.dual_gap_ <= 1e-3


def test_verbose_prints_a_line_for_each_check_after_a_pass(capsys):
    model = make_problem("chain").fitted(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    checked = [
        int(re.match(r"\[BCFWClassifier\] pass (\d+),", line)[1]) for line in lines
    ]
    assert checked == model.history_["n_iter"][1:].tolist()
    assert lines[-1].endswith(f"duality gap {model.dual_gap_:.3g}")


# What is the same for every estimator that iterates.

FAIR = EqualOpportunity(slack=0.05)
ROUGH = {"tol": 1e-3, "random_state": 0}
for_each_iterative = pytest.mark.parametrize(
    ("kind", "model"), ITERATIVE.values(), ids=ITERATIVE.keys()
)
# The last one of each class.
for_each_class = pytest.mark.parametrize(
    ("kind", "model"), {type(pair[1]): pair for pair in ITERATIVE.values()}.values()
)
whether_it_converges = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)


def data_of(kind):
    problem = make_problem(kind, n=24)
    return problem.X, problem.y


def monitor_of_scores():
    # Not all have scorers of their own.
    return ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X, y)})


def check_nothing_is_left(model):
    """No thread that draws, and no attribute of a fit that is going on."""
    drawing = [type(thread).__name__ for thread in threading.enumerate()]
    assert "RichProgressMonitor" not in drawing
    assert {name for name in vars(model) if "callback" in name} <= {"_skl_callbacks"}


@needs_callbacks
@for_each_iterative
@whether_it_converges
def test_every_iterative_estimator_has_a_bar_and_a_monitor(kind, model, capsys):
    pytest.importorskip("rich")
    X, y = data_of(kind)
    if isinstance(model, MultilabelMetricClassifier):
        # By default a simple rule may replace the one that was searched for.
        model = clone(model).set_params(confusion="probabilities")
    plain = clone(model).fit(X, y)
    recorder, monitor = Recorder(), monitor_of_scores()
    model = clone(model).set_callbacks(ProgressBar(), monitor, recorder).fit(X, y)
    first, last = recorder.fitted[0], recorder.fitted[-1]
    assert 0 <= first.score(X, y) <= 1
    assert recorder.data[0] is X and recorder.data[1] is y
    assert_same_labels(last.predict(X), model.predict(X))
    if hasattr(model, "coef_"):
        assert_same_fit(model, plain)
        # Of CRFs, what leaves probabilities as they are is taken off at the end.
        if not isinstance(model, (CRFClassifier, CRFClassifierCV)):
            np.testing.assert_array_equal(last.coef_, model.coef_)
    else:
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        assert model.objective_ == plain.objective_
    assert recorder.passes == model.n_iter_ == recorder.begun.count("pass")
    assert recorder.set_up == recorder.torn_down == 1 and recorder.ended[-1] != "pass"
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "pass"]
    assert len(rows) == model.n_iter_
    assert rows[-1]["score"] == pytest.approx(model.score(X, y), abs=1e-12)
    assert {row["estimator_name"] for row in rows} == {type(model).__name__}
    assert type(model).__name__ in capsys.readouterr().out
    check_nothing_is_left(model)
    # It may end the fit.
    if len(rows) > 2 and not type(model).__name__.endswith("CV"):
        model = clone(model).set_callbacks(Recorder(stop=2)).fit(X, y)
        assert model.n_iter_ == model.history_["n_iter"][-1] == 2


@needs_callbacks
@for_each_class
@whether_it_converges
def test_callbacks_are_torn_down_where_a_fit_raises(kind, model, monkeypatch):
    pytest.importorskip("rich")
    X, y = data_of(kind)
    model = clone(model)
    # By the callback; by the estimator itself, after a pass and before the first.
    faults = (None, KeyboardInterrupt), ("__call__", RuntimeError), ("begin", ValueError)
    for name, error in faults:
        recorder = Recorder() if name else Recorder(fail=1, error=error())
        model.set_callbacks(ProgressBar(), recorder)
        with monkeypatch.context() as patch, pytest.raises(error):
            if name:
                patch.setattr(PassReporter, name, raise_(error()))
            model.fit(X, y)
        assert recorder.set_up == recorder.torn_down == 1
        check_nothing_is_left(model)
    # It can be fitted all the same.
    recorder = Recorder()
    if "warm_start" in model.get_params():
        # Where the first pass was cut off, there may be none left to make.
        model.set_params(warm_start=False)
    model.set_callbacks(recorder).fit(X, y)
    assert recorder.passes == model.n_iter_


def raise_(error):
    def method(self, *arguments):
        raise error

    return method


class Faulty(Recorder):
    def __init__(self, hook):
        super().__init__()
        self.hook = hook

    def setup(self, estimator, context):
        super().setup(estimator, context)
        self.fault("setup")

    def teardown(self, estimator, context):
        super().teardown(estimator, context)
        self.fault("teardown")

    def fault(self, hook):
        if hook == self.hook:
            raise RuntimeError(f"in {hook}")


@needs_callbacks
@pytest.mark.parametrize("hook", ["setup", "teardown"])
def test_a_callback_that_fails_does_not_keep_others_from_their_end(hook):
    X, y = data_of("chain")
    first, faulty, last = Recorder(), Faulty(hook), Recorder()
    model = BCFWClassifier(**ROUGH).set_callbacks(first, faulty, last)
    with pytest.raises(RuntimeError, match=f"in {hook}"):
        model.fit(X, y)
    for one in (first, faulty, last):
        assert one.set_up == one.torn_down
    assert last.set_up == (hook == "teardown")
    check_nothing_is_left(model)


@needs_callbacks
@whether_it_converges
@pytest.mark.parametrize("name", ["bcfw-cv", "crf-cv"])
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "search"])
def test_the_choice_of_C_tells_of_its_folds_and_of_its_final_fit(name, inside, capsys):
    pytest.importorskip("rich")
    kind, model = ITERATIVE[name]
    X, y = data_of(kind)
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    if inside:
        search = GridSearchCV(model, {"cv": [2]}, cv=KFold(2))
        search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)
        model = search.best_estimator_
    else:
        model.set_callbacks(recorder, ProgressBar()).fit(X, y)
    n_fits = 3 if inside else 1
    assert recorder.begun.count("fold") == recorder.ended.count("fold") == 2 * n_fits
    assert recorder.begun.count("final-fit") == n_fits
    assert recorder.set_up == recorder.torn_down == n_fits
    n = model.n_iter_
    assert recorder.begun[-1 - n :] == ["final-fit"] + ["pass"] * n
    shown = capsys.readouterr().out
    assert f"{type(model).__name__} - final-fit #2" in shown
    # Bars are parts of one fit, not fits of their own.
    assert f"{type(model)._final_class.__name__} - " not in shown
    assert shown.count(f"{'GridSearchCV' if inside else type(model).__name__} - fit") == 1


@needs_callbacks
def test_folds_at_once_are_told_in_order():
    X, y = data_of("chain")
    recorder = Recorder()
    model = BCFWClassifierCV(Cs=[0.1, 1.0], cv=3, n_jobs=2, random_state=0)
    with joblib.parallel_backend("threading"):
        model.set_callbacks(recorder).fit(X, y)
    assert recorder.ended[:3] == ["fold"] * 3
    assert_same_fit(model, clone(model).set_params(n_jobs=1).set_callbacks().fit(X, y))


@needs_callbacks
@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routing"])
def test_a_monitor_s_scorer_gets_the_metadata_of_fit(routing):
    X, y = data_of("binary")
    groups, weights = np.arange(len(y)) % 2, 1.0 + np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=routing):
        scorer = FAIR.scorer()
        inner = LogisticRegression()
        model = ComplexMetricClassifier(inner, constraints=FAIR, cv=None)
        if routing:
            inner.set_fit_request(sample_weight=True)
            scorer.set_score_request(sample_weight=True)
        monitor = ScoringMonitor(scoring=scorer)
        metadata = {"sample_weight": weights, "sensitive_features": groups}
        model.set_callbacks(monitor).fit(X, y, **metadata)
        rows = monitor.get_logs().data
        assert rows[-1]["score"] == scorer(model, X, y, **metadata)


@needs_callbacks
def test_parts_on_workers_are_watched_as_well(capsys):
    pytest.importorskip("rich")
    da = pytest.importorskip("dask.array")
    X, y = data_of("binary")
    parts = da.from_array(X, chunks=(15, -1)), da.from_array(y, chunks=15)
    for model in (SubLBFGSClassifier(), CRFClassifier(**ROUGH)):
        recorder = Recorder()
        model.set_callbacks(ProgressBar(), recorder).fit(*parts)
        assert recorder.passes == model.n_iter_ > 0
        np.testing.assert_array_equal(recorder.fitted[-1].coef_, model.coef_)
        assert type(model).__name__ in capsys.readouterr().out
        check_nothing_is_left(model)


@pytest.mark.skipif(ProgressBar is not None, reason="this scikit-learn has callbacks")
def test_older_versions_say_that_they_have_no_callbacks():
    for _, model in ITERATIVE.values():
        with pytest.raises(ImportError, match="Callbacks need scikit-learn 1.9 or later"):
            clone(model).set_callbacks(Recorder())
        assert clone(model).set_callbacks() is not None


def test_parameters_are_checked_but_where_scikit_learn_is_told_not_to():
    X, y = data_of("binary")
    model = SubLBFGSClassifier(C=-1.0)
    with pytest.raises(ValueError, match="The 'C' parameter of SubLBFGSClassifier"):
        model.fit(X, y)
    # Easy enough for 20 iterations, whatever the data.
    easy = {"C": 1e-3, "max_iter": np.float64(20)}
    with sklearn.config_context(skip_parameter_validation=True):
        placed(SubLBFGSClassifier)(**easy).fit(X, y)


class Acting(Recorder):
    """Calls a function of the estimator that it gets after each pass."""

    def __init__(self, act, **options):
        super().__init__(**options)
        self.act = act

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.act(estimator)
        return super().on_fit_task_end(estimator, context)


@needs_callbacks
@for_each_class
@whether_it_converges
def test_a_model_answers_by_its_last_fit_until_the_next_one_ends(kind, model):
    X, y = data_of(kind)
    model, answers = clone(model).fit(X, y), []
    before = [*map(np.array, model.predict(X))]
    halves = [labels[: len(labels) // 2] for labels in (X, y)]
    model.set_callbacks(Acting(lambda estimator: answers.append(model.predict(X))))
    model.fit(*halves)
    assert len(answers) == model.n_iter_ > 0
    for answer in answers:
        for found, expected in zip(answer, before, strict=True):
            np.testing.assert_array_equal(found, expected)


@needs_callbacks
def test_what_a_callback_sets_in_the_estimator_is_set_in_the_model_once_the_fit_ends():
    X, y = data_of("chain")

    def change(estimator):
        estimator.set_params(C=2.0).note = "seen"
        seen.append((model.C, getattr(model, "note", None)))

    for fail in (1, None):
        seen, model = [], BCFWClassifier(**ROUGH)
        model.set_callbacks(Acting(change, fail=fail, error=RuntimeError("no")))
        if fail:
            with pytest.raises(RuntimeError, match="no"):
                model.fit(X, y)
            assert not hasattr(model, "note") and model.C == 1.0
        else:
            model.fit(X, y)
            assert model.note == "seen" and model.C == 2.0
        assert set(seen) == {(1.0, None)}
