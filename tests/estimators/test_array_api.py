"""Arrays of other libraries than NumPy, by scikit-learn's `array_api_dispatch`.

SciPy reads the variable that turns this on when it is imported: without it, these tests
run in a process of their own.
"""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sklearn
from _estimators import make_problem
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm._utils.compat import ROUTES_TO_DEFAULT_SCORES

xp = pytest.importorskip("array_api_strict")

VARIABLE = "SCIPY_ARRAY_API"

is_on = os.environ.get(VARIABLE) == "1"
needs_dispatch = pytest.mark.skipif(not is_on, reason=f"{VARIABLE} is not 1")
ROUNDING = {"float64": 1e-12, "float32": 1e-4}
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")

LINEAR = [
    BCFWClassifier(random_state=0),
    BCFWClassifierCV(Cs=[0.1, 1.0], cv=2, random_state=0),
    SlackRescaledSSVM(random_state=0), SubLBFGSClassifier(), BMRMClassifier(),
    PragamClassifier(), CRFClassifier(),
    CRFClassifier(solver_options={"decoding": "mbr"}),
    CRFClassifierCV(Cs=[0.1, 1.0], cv=2),
]  # fmt: skip
OTHERS = [
    ComplexMetricClassifier(LogisticRegression(), cv=None),
    MultilabelMetricClassifier(cv=None),
]
for_each_linear = pytest.mark.parametrize("model", LINEAR, ids=repr)
for_each = pytest.mark.parametrize("model", [*LINEAR, *OTHERS], ids=repr)


@pytest.fixture
def dispatch():
    with ExitStack() as stack:
        try:
            stack.enter_context(sklearn.config_context(array_api_dispatch=True))
        except ImportError as error:
            pytest.skip(str(error))
        yield


def data_for(model, kind="multiclass"):
    kind = "multilabel" if isinstance(model, MultilabelMetricClassifier) else kind
    problem = make_problem(kind, n=40)
    return problem.X, np.asarray(problem.y)


def fitted(model, kind="multiclass", classes=None):
    X, y = data_for(model, kind)
    return clone(model).fit(X, y if classes is None else np.array(classes)[y]), X


def lead(scores, kind):
    """By how much each decision is ahead of the other one, or of the next best."""
    if kind != "multiclass":
        return np.abs(scores)
    return np.diff(np.sort(scores, axis=1)[:, -2:])[:, 0]


def is_foreign(array):
    return type(array).__module__.startswith("array_api_strict")


@pytest.mark.skipif(is_on, reason="this is that process")
def test_the_others_pass_in_a_process_with_dispatch():
    # -P: the package is the one under test, not the one in the working directory.
    options = ["-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-P", "-m", "pytest", *options, __file__]
    done = subprocess.run(
        command, env=os.environ | {VARIABLE: "1"}, cwd=Path(__file__).parents[2],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # Where scikit-learn lacks array-api-compat, as 1.6 does, all of them are skipped.
    if not re.search(r"\b[1-9]\d\d? passed", done.stdout):
        pytest.skip("no dispatch in that process: " + done.stdout[-300:])


@needs_dispatch
@for_each_linear
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("binary", "float32"), ("multiclass", "float64"), ("multilabel", "float32")],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_are_in_the_library_and_on_the_device_of_the_rows(
    dispatch, model, kind, dtype
):
    model, X = fitted(model, kind)
    X = X.astype(dtype)
    device = xp.Device("device1")
    rows = xp.asarray(X, device=device)
    for method in METHODS:
        if not hasattr(model, method):
            continue
        found, expected = getattr(model, method)(rows), getattr(model, method)(X)
        assert is_foreign(found) and found.device == device
        found = np.asarray(xp.asarray(found, device=xp.Device("CPU_DEVICE")))
        assert found.shape == expected.shape
        if method == "predict":
            assert found.dtype == expected.dtype
            clear = lead(model.decision_function(X), kind) > ROUNDING[dtype]
            np.testing.assert_array_equal(found[clear], expected[clear])
            continue
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, expected, rtol=ROUNDING[dtype], atol=ROUNDING[dtype]
        )


@needs_dispatch
@for_each_linear
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_keep_their_type_and_words_are_numpy_s(dispatch, model):
    for classes in ([False, True], [-1, 1], [1.0, 2.0]):
        own, X = fitted(model, "binary", classes)
        found = np.asarray(own.predict(xp.asarray(X)))
        np.testing.assert_array_equal(found, own.predict(X))
        assert found.dtype == np.array(classes).dtype
    # No other library has words.
    own, X = fitted(model, classes=["ash", "elm", "fir"])
    devices = ["CPU_DEVICE"]
    if ROUTES_TO_DEFAULT_SCORES:
        # Before 1.8, scikit-learn brings home arrays of PyTorch and CuPy alone.
        devices.append("device1")
    for device in devices:
        found = own.predict(xp.asarray(X, device=xp.Device(device)))
        np.testing.assert_array_equal(found, own.predict(X))
        assert isinstance(found, np.ndarray)


@needs_dispatch
def test_rows_are_checked_as_numpy_s_are(dispatch):
    model, X = fitted(SubLBFGSClassifier())
    with pytest.raises(ValueError, match="X has 3 features, but SubLBFGS.* expecting 4"):
        model.predict(xp.asarray(X[:, :3]))
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(xp.asarray(X))
    whole = np.arange(8).reshape(2, 4)
    found = model.decision_function(xp.asarray(whole))
    np.testing.assert_allclose(np.asarray(found), model.decision_function(whole))


@needs_dispatch
@for_each
def test_a_fit_to_them_says_what_to_do_before_any_work(dispatch, model):
    X, y = data_for(model)
    model = clone(model)
    remedy = r"NumPy arrays are needed: pass np\.asarray\({}\)"
    for name, arguments in {
        "X": (xp.asarray(X), y),
        "y": (X, xp.asarray(y)),
        "sample_weight": (X, y, xp.ones(len(y))),
    }.items():
        with pytest.raises(TypeError, match=f"^{name} is a.*{remedy.format(name)}"):
            model.fit(*arguments)
    assert not hasattr(model, "classes_") and not hasattr(model, "n_features_in_")
    assert not get_tags(model).array_api_support


@needs_dispatch
def test_what_else_takes_none_says_so_too(dispatch):
    X, y = data_for(None)
    rows = xp.asarray(X)
    crf = CRFClassifier().fit(X, y)
    mixture = ComplexMetricClassifier(LogisticRegression(), cv=None).fit(X, y)
    labels = fitted(MultilabelMetricClassifier(cv=None))[0]
    for call in (
        lambda: crf.score(rows, y), lambda: crf.entropy(rows),
        lambda: crf.log_likelihood(rows, y), lambda: mixture.predict(rows),
        lambda: mixture.predict_proba(rows), lambda: mixture.score(rows, y),
        lambda: labels.predict(rows), lambda: labels.predict_proba(rows),
        lambda: bcfw_path(rows, y),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"X is a .* pass np\.asarray\(X\)"):
            call()
    for call in (
        lambda: crf.score(X, xp.asarray(y)),
        lambda: crf.log_likelihood(X, xp.asarray(y)),
    ):
        with pytest.raises(TypeError, match=r"y is a .* pass np\.asarray\(y\)"):
            call()
    problem = make_problem("chain")
    foreign = [xp.asarray(x) for x in problem.X]
    for model in (BCFWClassifier(random_state=0), CRFClassifier()):
        for call in (
            partial(clone(model).fit, foreign, problem.y),
            partial(model.fit(problem.X, problem.y).predict, foreign),
        ):
            words = r"X holds a .* pass \[np\.asarray\(x\) for x in X\]"
            with pytest.raises(TypeError, match=words):
                call()
    groups = xp.asarray(y)
    with pytest.raises(TypeError, match="^sensitive_features is a"):
        mixture.fit(X, y, sensitive_features=groups)


@needs_dispatch
@for_each_linear
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numpy_s_are_as_without_dispatch(dispatch, model):
    with sklearn.config_context(array_api_dispatch=False):
        expected, X = fitted(model)
    found, _ = fitted(model)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@for_each_linear
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_dispatch_they_are_what_numpy_makes_of_them(model):
    model, X = fitted(model)
    found = model.predict(xp.asarray(X))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, model.predict(X))
