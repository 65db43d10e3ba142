"""Labels and folds that look wrong are said once; scorers of this package have names."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng, new_seed
from sklearn.base import clone
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    CRFClassifier,
    CRFClassifierCV,
    metrics,
)
from sklearn_structsvm._utils.scorers import SCORERS
from sklearn_structsvm.callbacks import EarlyStopping
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import MISSING

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"max_iter": 3, "random_state": 0}
SEARCHES = [
    CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=2, random_state=0),
    BCFWClassifierCV("chain", Cs=[0.1, 1.0], cv=2, random_state=0),
]
ESTIMATORS = [CRFClassifier("chain", **SHORT), BCFWClassifier("chain", **SHORT)]


def chains(n=12):
    return make_chains(n, n_features=3, n_classes=3, random_state=new_seed(0))


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float32("nan"), pd.NA])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_labels_that_got_lost_are_counted(model, nothing):
    X, y = chains()
    lost, hidden = ([[own, *y_i.tolist()[1:]] for y_i in y] for own in (nothing, MISSING))
    n = sum(map(len, y))
    words = rf"None or NaN: {len(y)} of {n}, the first one at y\[0\]\[0\]"
    with pytest.warns(UserWarning, match=words) as caught:
        found = clone(model).fit(X, lost)
    assert sum("None or NaN" in str(own.message) for own in caught) == 1
    expected = clone(model).fit(X, hidden)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.score(X, lost) == found.score(X, hidden)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, list])
@pytest.mark.parametrize("model", [*ESTIMATORS, CRFClassifier("tree", **SHORT)])
def test_nan_in_a_float_column_of_integers_is_an_unknown_label(model, dtype):
    X, y = chains()
    if model.structure == "tree":
        X = [(x, np.arange(len(x)) - 1) for x in X]
    # The whole of a column with NaN is float, also sentences without one.
    lost = [own.astype(np.float64) for own in y]
    hidden = [own.tolist() for own in y]
    for own, other in zip(lost[1::2], hidden[1::2], strict=True):
        own[0], other[0] = np.nan, MISSING
    lost = [own.tolist() if dtype is list else own.astype(dtype) for own in lost]
    n = sum(map(len, y))
    words = rf"None or NaN: {len(y) // 2} of {n}, the first one at y\[1\]\[0\]"
    with pytest.warns(UserWarning, match=words):
        found = clone(model).fit(X, lost)
    expected = clone(model).fit(X, hidden)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert found.score(X, lost) == expected.score(X, hidden)


def words_as_labels(rng, n_once, n_often):
    labels = [f"w{i}" for i in range(n_once)]
    labels += [f"t{i}" for i in range(n_often) for _ in range(2)]
    labels = rng.permutation(labels).tolist()
    y = [labels[i : i + 4] for i in range(0, len(labels), 4)]
    return [rng.normal(size=(len(own), 2)) for own in y], y


@pytest.mark.parametrize("model", ESTIMATORS)
def test_a_set_of_labels_most_of_which_occur_once_is_said(model):
    X, y = words_as_labels(new_rng(0), 15, 9)
    with pytest.warns(UserWarning, match="^15 of 24 labels in y occur once, such as 'w"):
        model.fit(X, y)
    # These are fine: few labels, or no more than half of them once.
    for n_once, n_often in ((12, 8), (12, 12)):
        model.fit(*words_as_labels(new_rng(1), n_once, n_often))


@pytest.mark.parametrize("model", SEARCHES)
def test_searches_say_it_once(model):
    X, y = words_as_labels(new_rng(0), 15, 9)
    y = [[None, *own[1:]] for own in y]
    with pytest.warns(UserWarning) as caught:
        model.fit(X, y)
    texts = [str(warning.message) for warning in caught]
    assert sum("None or NaN" in text for text in texts) == 1
    assert sum("occur once" in text for text in texts) <= 1


def test_scorers_go_by_their_names():
    assert {f"{name}_scorer" for name in SCORERS} == {
        name for name in metrics.__all__ if name.endswith("_scorer")
    }
    assert not set(SCORERS) & set(get_scorer_names())


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("model", SEARCHES)
def test_searches_take_names_of_our_scorers(model, name):
    X, y = chains()
    if name == "entity_f1":
        y = [np.array(["O", "B-X", "I-X"])[own] for own in y]
    if model is SEARCHES[1] and name not in ("entity_f1", "token_accuracy"):
        pytest.skip("it has no probabilities")
    found = clone(model).set_params(scoring=name).fit(X, y)
    expected = clone(model).set_params(scoring=getattr(metrics, f"{name}_scorer"))
    expected.fit(X, y)
    np.testing.assert_array_equal(found.scores_path_, expected.scores_path_)
    assert found.C_ == expected.C_
    with pytest.raises(ValueError, match="none such"):
        clone(model).set_params(scoring="none such").fit(X, y)


def test_a_callback_takes_names_of_our_scorers():
    X, y = chains()
    stopping = EarlyStopping(X, y, scoring="token_accuracy")
    pytest.importorskip("sklearn.callback")
    BCFWClassifier("chain", **SHORT).set_callbacks(stopping).fit(X, y)


@pytest.mark.parametrize("cv", [StratifiedKFold(2), RepeatedStratifiedKFold()])
@pytest.mark.parametrize("model", SEARCHES)
def test_stratified_folds_are_refused_for_sequences(model, cv):
    X, y = chains()
    with pytest.raises(TypeError, match="one class per example.*use KFold or GroupKF"):
        clone(model).set_params(cv=cv).fit(X, y)
