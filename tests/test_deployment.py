"""The decoder that the documentation has says what the tagger does, to the last tie."""

import doctest
from pathlib import Path

import numpy as np
import pytest
from _seeds import new_rng
from sklearn.pipeline import make_pipeline

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure

PAGE = Path(__file__).parents[1] / "doc" / "guide" / "deployment.rst"
MAX_LINES = 20


def code():
    """By their first words, the examples of the section from the trained tagger on."""
    text = PAGE.read_text(encoding="utf-8")
    text = text[text.index("\nChains in NumPy\n") :]
    examples = [example.source for example in doctest.DocTestParser().get_examples(text)]
    starts = ("crf =", "parts =", "forbid =", "np.savez(", "def ", "model = dict(")
    return [source for source in examples if source.startswith(starts)]


def tokens(rng, n, words):
    lengths = rng.integers(1, 6, size=n)
    return [[{"word": w} for w in rng.choice(words, size=size)] for size in lengths]


@pytest.mark.parametrize("transitions", ["bio", [(None, "O"), ("O", "O"), ("I-x", None)]])
@pytest.mark.parametrize("draw", range(5))
def test_the_decoder_predicts_what_the_tagger_predicts(draw, transitions, tmp_path):
    rng = new_rng(draw)
    X = tokens(rng, 12, list("abcd"))
    chain = ChainStructure(transitions=transitions)
    # A sequence that both kinds of rules allow, whatever its length.
    y = [["B-x"] * len(x) for x in X]
    model = BCFWClassifier(chain, classes=["B-x", "I-x", "O"], max_iter=1, tol=1.0)
    tagger = make_pipeline(SequenceTransformer(), model).fit(X, y)
    # Small integers, of which sums are exact: many labelings are tied.
    tagger[-1].coef_ = rng.integers(-2, 3, size=tagger[-1].coef_.shape).astype(float)
    names = {"np": np, "tagger": tagger, "path": tmp_path / "tagger.npz"}
    for source in code():
        exec(source, names)
    X = tokens(rng, 40, list("abcde"))
    for sentence, expected in zip(X, tagger.predict(X), strict=True):
        found = names["decode"](
            names["features"](sentence, names["model"]), names["model"]
        )
        assert found.tolist() == expected.tolist()


def test_it_is_short():
    (decoder,) = (source for source in code() if source.startswith("def decode"))
    assert len(decoder.splitlines()) <= MAX_LINES
