"""What TaggingDisplay draws, read back from the artists."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.inspection import explain
from sklearn_structsvm.plotting import TaggingDisplay
from sklearn_structsvm.preprocessing import SequenceTransformer, WordFeatures
from sklearn_structsvm.structures import ChainStructure

draw = TaggingDisplay.from_estimator


def fitted(model=CRFClassifier):
    X, y = make_chains(20, n_features=7, n_classes=3, random_state=new_seed(0))
    return model("chain", C=0.1, tol=0.1, random_state=0).fit(X, y), X[0]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_it_draws_marginals_and_the_best_labelings_as_many_as_there_are():
    model, x = fitted()
    display = draw(model, x, k=3)
    proba = model.predict_proba([x])[0]
    assert_array_equal(display.image_.get_array(), proba.T)
    assert ticks(display.ax_.yaxis) == list(map(str, model.classes_))
    assert ticks(display.ax_.xaxis) == list(map(str, range(len(x))))
    for t, row in enumerate(proba):
        for j, p in enumerate(row):
            text = display.text_[j, t]
            assert (text is None) == (p < 0.01)
            assert text is None or text.get_text() == f"{p:.2f}"
    (taggings,), (chances,) = model.predict_k_best([x], 3)
    for line, tagging, p in zip(display.lines_, taggings, chances, strict=True):
        # Each within the row of its label.
        assert_array_equal(
            model.classes_[np.round(line.get_ydata()).astype(int)], tagging
        )
        assert line.get_label() == f"p = {p:.3f}"
    assert [line.get_linestyle() for line in display.lines_] == ["-", "--", ":"]
    assert len(draw(model, x[:1], k=9).lines_) == 3
    assert not draw(*fitted()).spans_


def test_a_pipeline_transforms_the_sentence_and_tokens_name_it():
    sentences = [[{"word": "the"}, {"word": "cat"}, {"word": "sleeps"}], [{"word": "a"}]]
    model = make_pipeline(SequenceTransformer(), CRFClassifier("chain", random_state=0))
    model.fit(sentences, [["DET", "NOUN", "VERB"], ["DET"]])
    display = draw(model, sentences[0], tokens="the cat sleeps".split())
    assert ticks(display.ax_.xaxis) == ["the", "cat", "sleeps"]
    assert_allclose(display.proba, model.predict_proba(sentences[:1])[0])
    assert display.plot(ax=display.figure_.subplots()) is display


def test_contributions_stand_above_the_positions_that_they_explain():
    sentences = [["the", "cat", "sleeps"], ["a", "dog"]]
    tags = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    model = make_pipeline(WordFeatures(), CRFClassifier("chain", random_state=0))
    model.fit(sentences, tags)
    display = draw(model, ["a", "cat"], n_contributions=2)
    found = explain(model, ["a", "cat"])
    for own, text in zip(found, display.explanations_, strict=True):
        first, *lines = text.get_text().split("\n")
        assert first == f"{own.label}, not {own.other}"
        expected = [f"{value:+.2f} {name}" for name, value in own.contributions[:2]]
        assert lines == expected
        assert text.get_position()[0] == own.position
    assert draw(model, ["a", "cat"]).explanations_ == []
    with pytest.raises(ValueError, match="n_contributions must be"):
        draw(model, ["a", "cat"], n_contributions=-1)


def test_a_label_that_alone_is_possible_has_no_contributions():
    X, y = [np.eye(2), -np.eye(2)], [["B-x", "I-x"], ["O", "O"]]
    structure = ChainStructure(transitions="bio")
    model = CRFClassifier(structure, C=10.0, random_state=0).fit(X, y)
    texts = draw(model, X[0], n_contributions=1).explanations_
    assert texts[0].get_text() == "B-x, no other"


def test_what_cannot_be_drawn_is_refused():
    model, x = fitted()
    with pytest.raises(ValueError, match=rf"one name for each of the {len(x)} positions"):
        draw(model, x, tokens=["a"])
    for tokens in (5, iter("ab"), {"a", "b"}):
        with pytest.raises(ValueError, match="^tokens must be None or a sequence of"):
            draw(model, x, tokens=tokens)
    with pytest.raises(ValueError, match="empty, so there is nothing to draw"):
        draw(model, x[:0])
    with pytest.raises(NotFittedError):
        draw(CRFClassifier("chain"), x)
    with pytest.raises(TypeError, match="needs a CRFClassifier over sequences"):
        draw(*fitted(BCFWClassifier))
    flat = CRFClassifier(random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(TypeError, match="needs a CRFClassifier over sequences"):
        draw(flat, np.eye(4)[:1])


@pytest.mark.parametrize(
    "scheme, tags",
    [
        (None, "B-$x$ I-$x$ O B-y"),
        ("iob1", "I-$x$ I-$x$ O I-y"),
        ("bio", "B-$x$ I-$x$ O B-y"),
        ("bioes", "B-$x$ E-$x$ O S-y"),
        ("bilou", "B-$x$ L-$x$ O U-y"),
        ("bmes", "B-$x$ E-$x$ O S-y"),
        ("runs", "$x$ $x$ O y"),
    ],
)
def test_entities_are_above_with_their_probabilities(scheme, tags):
    rng = new_rng(1)
    X = [rng.standard_normal((4, 2)) for _ in range(6)]
    structure = ChainStructure(transitions=scheme)
    model = CRFClassifier(structure, C=10.0, random_state=0).fit(X, [tags.split()] * 6)
    display = draw(model, X[0])
    (spans,) = model.predict_spans(X[:1])
    if scheme is not None:
        assert [span[:3] for span in spans] == [(0, 2, "$x$"), (3, 4, "y")]
    assert [text.get_text() for text in display.spans_] == [
        f"{span.type}\n{span.probability:.2f}" for span in spans
    ]
    for text, span in zip(display.spans_, spans, strict=True):
        x, y = text.get_position()
        assert x == pytest.approx((span.start + span.stop - 1) / 2)
        # Above the cells, but within the axes.
        assert display.ax_.get_ylim()[1] < y < -0.5
    assert (
        not TaggingDisplay(
            labels=model.classes_, proba=display.proba, taggings=[], tagging_proba=[]
        )
        .plot()
        .spans_
    )
