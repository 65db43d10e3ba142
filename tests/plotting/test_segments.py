"""What SegmentsDisplay draws, read back from the artists."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, StackedStructureClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.plotting import SegmentsDisplay
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import MISSING

draw = SegmentsDisplay.from_estimator


def fitted():
    X, y = make_chains(12, n_features=5, n_classes=3, random_state=new_seed(0))
    pipe = make_pipeline(
        SequenceTransformer(StandardScaler()),
        StackedStructureClassifier(LogisticRegression(), cv=3),
    )
    return pipe.fit(X, y), X[0], y[0]


def labels_of(display, row, n, k=3):
    """The labeling that a bar shows, at the middles of the rows."""
    found = np.full(n, -1)
    for label, bars in enumerate(display.bars_[row * k : (row + 1) * k]):
        for path in bars.get_paths():
            low, high = path.vertices[:, 0].min(), path.vertices[:, 0].max()
            middles = np.arange(n) + 0.5
            found[(low < middles) & (middles < high)] = label
    return found


def test_it_draws_the_true_the_raw_and_the_structured_labels():
    model, x, y = fitted()
    display = draw(model, x, y)
    assert list(display.labelings) == ["true", "LogisticRegression", "with structure"]
    for row, own in enumerate(display.labelings.values()):
        places = np.searchsorted(display.labels, own)
        np.testing.assert_array_equal(labels_of(display, row, len(x)), places)
    np.testing.assert_array_equal(display.labelings["true"], y)
    raw = model[-1].estimator_.predict(model[0].transform([x])[0])
    np.testing.assert_array_equal(display.labelings["LogisticRegression"], raw)
    (labels,) = model.predict([x])
    (proba,) = model.predict_proba([x])
    np.testing.assert_array_equal(
        display.proba, proba[np.arange(len(x)), np.searchsorted(display.labels, labels)]
    )
    ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert ticks == [*display.labelings, "probability"]
    heights = display.line_.get_ydata()[:-1]
    np.testing.assert_allclose(3.4 - heights, 0.8 * display.proba)


def test_short_segments_are_left_out_where_they_are_not_wanted():
    model, x, _ = fitted()
    display = draw(model, x, min_length=len(x))
    assert len(set(display.labelings["with structure"].tolist())) == 1
    assert "true" not in display.labelings


def test_times_and_a_model_without_probabilities():
    X, y = make_chains(5, n_classes=3, random_state=new_seed(0))
    model = BCFWClassifier("chain", random_state=0).fit(X, y)
    times = np.cumsum(new_rng().random(len(X[0])))
    display = draw(model, X[0], times=times, alpha=0.5)
    assert display.line_ is None
    assert display.ax_.get_xlim()[0] == times[0]
    assert display.bars_[0].get_alpha() == 0.5
    one = SegmentsDisplay(labels=["a"], labelings={"it": ["a"]}).plot()
    assert one.ax_.get_xlim() == (0.0, 1.0)


def test_missing_labels_are_gaps_of_a_bar():
    model, x, y = fitted()
    hidden = [None, *y[1:-1].tolist(), MISSING]
    found = labels_of(draw(model, x, hidden), 0, len(x))
    places = np.searchsorted(model.classes_, y)
    np.testing.assert_array_equal(found, [-1, *places[1:-1], -1])


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        draw(StackedStructureClassifier(LogisticRegression()), np.ones((2, 2)))
