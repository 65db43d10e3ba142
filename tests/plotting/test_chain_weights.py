"""What ChainWeightsDisplay draws, read back from the artists."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _seeds import new_rng, new_seed
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.plotting import ChainWeightsDisplay
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure

draw = ChainWeightsDisplay.from_estimator
SENTENCES = [
    [{"word": "the"}, {"word": "cat"}, {"word": "sleeps"}],
    [{"word": "a"}, {"word": "dog"}],
]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]


def fitted(structure="chain", model=CRFClassifier):
    X, y = make_chains(20, n_features=7, n_classes=3, random_state=new_seed(0))
    return model(structure, C=0.1, tol=0.1, random_state=0).fit(X, y)


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.parametrize("kind", [CRFClassifier, BCFWClassifier])
def test_the_transitions_are_those_of_the_weights(kind):
    model = fitted(model=kind)
    display = draw(model)
    weights = model.structure_.weight_parts(model.coef_)["transition"]
    image, axes = display.images_[0], display.axes_[0]
    assert_array_equal(image.get_array(), weights)
    assert ticks(axes.xaxis) == ticks(axes.yaxis) == list(map(str, model.classes_))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Label", "Previous label")
    low, high = image.get_clim()
    assert -low == high == np.abs(weights).max()


def test_features_are_the_heaviest_grouped_by_their_label():
    emission = new_rng(0).normal(size=(30, 3))
    names = np.array([f"word={j}" for j in range(30)])
    display = ChainWeightsDisplay(
        labels=["a", "b", "c"], emission=emission, feature_names=names
    ).plot(n_features=8)
    largest = np.abs(emission).max(axis=1)
    assert set(display.shown_) == set(np.argsort(largest)[-8:])
    label = np.abs(emission).argmax(axis=1)[display.shown_]
    assert (np.diff(label) >= 0).all()
    assert (np.diff(emission[display.shown_, label])[np.diff(label) == 0] <= 0).all()
    (image,) = display.images_
    assert_array_equal(image.get_array(), emission[display.shown_])
    assert ticks(display.ax_.yaxis) == names[display.shown_].tolist()


def test_a_pipeline_tells_the_names_of_features():
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", random_state=0))
    display = draw(model.fit(SENTENCES, TAGS))
    names = ["word=a", "word=cat", "word=dog", "word=sleeps", "word=the"]
    assert sorted(ticks(display.axes_[1].yaxis)) == names
    (determiners,) = np.flatnonzero(np.array(display.labels) == "DET")
    shown = dict(zip(ticks(display.axes_[1].yaxis), display.shown_, strict=True))
    assert display.emission[shown["word=the"], determiners] > 0


def test_features_without_names_are_numbered():
    hashed = SequenceTransformer(FeatureHasher(16))
    model = make_pipeline(hashed, CRFClassifier("chain", random_state=0))
    display = draw(model.fit(SENTENCES, TAGS), n_features=3)
    assert ticks(display.axes_[1].yaxis) == [f"x{j}" for j in display.shown_]
    assert ticks(draw(fitted()).axes_[1].yaxis)[0].startswith("x")


@pytest.mark.parametrize("part", ["transition", "emission"])
def test_a_model_without_one_part_has_one_heat_map(part):
    display = draw(fitted(ChainStructure(**{part: False})))
    assert len(display.axes_) == len(display.images_) == 1
    title = "Features" if part == "transition" else "Transitions"
    assert display.ax_.get_title() == title


def test_scores_that_are_given_have_no_heat_map_of_their_scale():
    X, y = make_chains(20, n_features=3, n_classes=3, random_state=new_seed(0))
    display = draw(CRFClassifier(ChainStructure(emission="given")).fit(X, y))
    assert display.ax_.get_title() == "Transitions" and len(display.images_) == 1
    pairs = [(x, x) for x in X]
    display = draw(CRFClassifier(ChainStructure(emission="both")).fit(pairs, y))
    assert display.images_[1].get_array().shape == (3, 3)


def test_axes_are_used_where_given():
    model = fitted()
    figure, axes = plt.subplots(1, 2)
    display = draw(model, ax=axes, cmap="PuOr")
    assert display.axes_ == list(axes)
    assert display.figure_ is figure
    assert all(image.get_cmap().name == "PuOr" for image in display.images_)
    _, one = plt.subplots()
    assert display.plot(ax=one).axes_ == [one]
    assert one.get_title() == "Transitions"


def test_misuse_is_told():
    model = fitted()
    with pytest.raises(NotFittedError):
        draw(CRFClassifier("chain"))
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(TypeError, match="ChainStructure or TreeStructure; got Logistic"):
        draw(LogisticRegression().fit(X, y))
    with pytest.raises(TypeError, match="ChainStructure or TreeStructure; got BCFW"):
        draw(BCFWClassifier(random_state=0).fit(X, y))
    with pytest.raises(ValueError, match="one name for each of the 7 features"):
        draw(model, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="n_features must be at least 1; got 0"):
        draw(model, n_features=0)
    with pytest.raises(ValueError, match=r"emission must have shape \(4, 2\)"):
        ChainWeightsDisplay(labels=["a", "b"], emission=np.eye(4)).plot()
    with pytest.raises(ValueError, match="Neither transitions nor features"):
        ChainWeightsDisplay(labels=["a", "b"]).plot()
