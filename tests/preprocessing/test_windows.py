"""WindowFeatures: rows with their surroundings, checked row by row."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.preprocessing import SequenceTransformer, WindowFeatures

STATISTICS = {"mean": [1, 4, 9], "std": [5, 100], "difference": 6}


def draw(dtype=np.float64):
    rng = new_rng()
    return [rng.normal(size=(T, 3)).astype(dtype) for T in (7, 0, 1, 30)]


def by_hand(x, before, after, windows, inside):
    """The features of a sequence, one row after another, in long double."""
    found, x = [], x.astype(np.longdouble)
    for t in range(len(x)):
        own = [x[t]]
        for k in range(-before, after + 1):
            if k:
                own.append(x[min(max(t + k, 0), len(x) - 1)])
        for kind, length in windows:
            rows = np.array([s for s in range(len(x)) if inside(t, s, length)])
            if kind == "mean":
                own.append(x[rows].mean(axis=0))
            elif kind == "std":
                own.append(x[rows].std(axis=0))
            else:
                later, earlier = x[rows[rows >= t]], x[rows[rows <= t]]
                own.append(later.mean(axis=0) - earlier.mean(axis=0))
        found.append(np.concatenate(own))
    return np.array(found, dtype=np.float64)


def in_rows(t, s, length):
    return t - (length - 1) // 2 <= s <= t + length // 2


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("after", [0, 40])
def test_features_are_those_of_the_rows_one_by_one(before, after):
    X = draw()
    model = WindowFeatures(before, after, STATISTICS)
    made = model.fit_transform(X)
    assert made[1].shape == (0, made[0].shape[1])
    for i in (0, 2, 3):
        expected = by_hand(X[i], before, after, model._windows(), in_rows)
        np.testing.assert_allclose(made[i], expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.transform([X[i]])[0], made[i])
    assert len(model.get_feature_names_out()) == made[0].shape[1]


def test_windows_are_of_time_where_rows_have_times():
    rng = new_rng()
    x = rng.normal(size=(40, 3))
    x[:, 1] = np.cumsum(rng.choice([0.0, 0.25, 1.0, 30.0], size=40))
    model = WindowFeatures(1, 1, {"mean": 2.5, "std": [1, 60.0]}, time=1)
    (made,) = model.fit_transform([x])
    times = x[:, 1]
    expected = by_hand(
        x[:, [0, 2]], 1, 1, model._windows(),
        lambda t, s, length: abs(times[t] - times[s]) <= length / 2,
    )  # fmt: skip
    np.testing.assert_allclose(made[:, 3:], expected[:, 2:], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(made[:, :3], x)
    with pytest.raises(ValueError, match=r"times of X\[1\] must be finite"):
        model.transform([x, x[::-1]])


def test_times_on_a_decimal_grid_are_not_rounded_out_of_their_windows():
    steps = np.arange(40.0)
    X = [np.column_stack([0.1 * steps, steps]), np.column_stack([steps, steps])]
    fine = WindowFeatures(0, 0, {"mean": [0.2, 0.6]}, time=0).fit_transform(X[:1])[0]
    coarse = WindowFeatures(0, 0, {"mean": [2, 6]}, time=0).fit_transform(X[1:])[0]
    np.testing.assert_array_equal(fine[:, 2:], coarse[:, 2:])


def test_infinite_values_and_sparse_rows_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        WindowFeatures().fit_transform([np.array([[1.0], [np.inf]])])
    with pytest.raises(TypeError, match="[Ss]parse"):
        WindowFeatures().fit([sparse.csr_array(np.eye(3))])


def test_large_columns_keep_their_digits():
    """A mean of times in seconds since 1970, and how far they are apart."""
    rng = new_rng()
    steps = rng.random(20_000)
    x = 1.7e9 + np.cumsum(steps)
    model = WindowFeatures(0, 0, {"mean": 101, "std": 101})
    (made,) = model.fit_transform([x[:, np.newaxis]])
    t = rng.integers(50, 19_950, size=20)
    near = [(x[s - 50 : s + 51] - x[s]) for s in t]
    np.testing.assert_allclose(made[t, 1] - x[t], [own.mean() for own in near], atol=1e-6)
    np.testing.assert_allclose(made[t, 2], [own.std() for own in near], rtol=1e-7)


def test_float32_and_missing_values_stay():
    X = draw(np.float32)
    made = WindowFeatures(1, 1, {"mean": 5, "std": 5}).fit_transform(X)
    assert {own.dtype for own in made} == {np.dtype(np.float32)}
    x = new_rng().normal(size=(20, 1))
    x[10] = np.nan
    (made,) = WindowFeatures(0, 0, {"mean": 3, "std": 3}).fit_transform([x])
    assert np.isnan(made[:, 1]).nonzero()[0].tolist() == [9, 10, 11]


def test_columns_have_names_and_frames_come_out_where_they_are_wanted():
    X = [pd.DataFrame(x, columns=["t", "a", "b"]) for x in draw()]
    for x in X:
        x["t"] = np.arange(len(x))
    model = WindowFeatures(1, 0, {"mean": [2, 4]}, time="t")
    made = clone(model.set_output(transform="pandas")).fit_transform(X)
    names = ["t", "a", "b", "a[-1]", "b[-1]", "mean(a, 2)", "mean(b, 2)", "mean(a, 4)",
             "mean(b, 4)"]  # fmt: skip
    assert made[3].columns.tolist() == names
    with config_context(transform_output="pandas"):
        other = WindowFeatures(1, 0).fit_transform(X)
    assert other[0].columns.tolist() == ["t", "a", "b", "t[-1]", "a[-1]", "b[-1]"]
    with pytest.raises(ValueError, match="feature names"):
        model.fit(X).transform([x.rename(columns={"a": "c"}) for x in X])


def test_scores_beside_features_stay_and_pipelines_take_the_windows():
    rng = new_rng()
    X = [(x, rng.normal(size=(len(x), 2))) for x in draw() if len(x)]
    made = WindowFeatures(1, 1).fit_transform(X)
    assert made[0][0].shape == (7, 9)
    assert made[0][1] is X[0][1]
    y = [np.arange(len(x)) % 2 for x, _ in X]
    windows = WindowFeatures(statistics={"mean": 3})
    pipe = make_pipeline(windows, SequenceTransformer(StandardScaler()), CRFClassifier())
    assert pipe.fit([x for x, _ in X], y).predict([X[0][0]])[0].shape == (7,)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (WindowFeatures(-1), ValueError, "before must be at least 0"),
        (WindowFeatures(statistics=["mean"]), TypeError, "statistics must be a dict"),
        (WindowFeatures(statistics={"mode": 3}), ValueError, "statistics has 'mode'"),
        (WindowFeatures(statistics={"mean": 2.5}), TypeError, r"statistics\['mean'\]"),
        (WindowFeatures(statistics={"mean": 0.0}, time=0), ValueError, "positive"),
        (WindowFeatures(time="t"), ValueError, "no column with the name time='t'"),
        (WindowFeatures(time=3), ValueError, "time=3 is not a column: X has 3"),
    ],
)
def test_windows_that_are_none_are_refused(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(draw())
