"""Models of CRFsuite: files written here byte by byte, and by python-crfsuite."""

import struct

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.export import from_crfsuite


def table(names):
    """A table of names, without the hash tables that find their numbers."""
    start, records, places = 24 + 256 * 8, b"", []
    for number, name in enumerate(names):
        places.append(start + len(records))
        text = name.encode() + b"\0"
        records += struct.pack("<II", number, len(text)) + text
    end = start + len(records)
    header = struct.pack("<4s5I", b"CQDB", end + 4 * len(names), 0, 0x62445371,
                         len(names), end)  # fmt: skip
    return header + bytes(256 * 8) + records + struct.pack(f"<{len(names)}I", *places)


def model_file(labels, attributes, emission, transition):
    """The bytes of a model with all weights that are not zero."""
    body = b""
    for kind, weights in enumerate((emission, transition)):
        for source, target in np.argwhere(weights).tolist():
            body += struct.pack("<3Id", kind, source, target, weights[source, target])
    features = struct.pack("<4sII", b"FEAT", 12 + len(body), len(body) // 20) + body
    tables = [table(labels), table(attributes)]
    at = 48 + np.cumsum([0, len(features), len(tables[0]), len(tables[1])])
    data = features + b"".join(tables)
    header = struct.pack("<4sI4sI3I5I", b"lCRF", 48 + len(data), b"FOMC", 100,
                         len(body) // 20, len(labels), len(attributes),
                         *at[:3].tolist(), at[3], at[3])  # fmt: skip
    return header + data


LABELS = ["O", "B", "É"]
ATTRIBUTES = ["word:the", "bias", "length", "+1:word:x:", "a=b", "word=dog"]
TOKENS = [
    ({"word": "the", "bias": True, "length": 2.5}, [("word:the", 1), ("length", 2.5)]),
    ({"bias": 0.5, "+1": {"word": "x:"}}, [("+1:word:x:", 1)]),
    (["a=b", "word=dog", "unknown"], [("a=b", 1), ("word=dog", 1)]),
    ({"word": ["the", "cat"]}, [("word:the", 1)]),
]


def test_scores_are_those_of_the_weights(tmp_path):
    rng = new_rng(1)
    emission, transition = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    emission[0, 1] = 0.0
    path = tmp_path / "model"
    path.write_bytes(model_file(LABELS, ATTRIBUTES, emission, transition))
    tagger = from_crfsuite(path)
    tokens, values = zip(*TOKENS, strict=True)
    bias = [1.0, 0.5, 0.0, 0.0]
    theta = np.array(
        [
            sum(value * emission[ATTRIBUTES.index(name)] for name, value in own)
            + emission[1] * b
            for own, b in zip(values, bias, strict=True)
        ]
    )
    order = np.argsort(LABELS)
    assert tagger[-1].classes_.tolist() == sorted(LABELS)
    matrix = tagger[:-1].transform([list(tokens)])
    model = tagger[-1]
    found, pairs = model.structure_.potentials(matrix[0], model.coef_)
    np.testing.assert_allclose(found, theta[:, order], atol=1e-12)
    np.testing.assert_array_equal(pairs, transition[np.ix_(order, order)])
    assert np.isnan(model.dual_gap_)


def test_tags_and_probabilities_are_those_of_python_crfsuite(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng, path = new_rng(2), str(tmp_path / "model")
    words = ["the", "cat", "x:y", "Ä", "a"]

    def drawn():
        return [
            {
                "word": str(rng.choice(words)),
                "up": bool(rng.integers(2)),
                "n": rng.random(),
                "next": {"word": str(rng.choice(words))},
                "all": ["p", "q:r"],
            }
            for _ in range(rng.integers(1, 6))
        ]

    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 20}, verbose=False)
    for _ in range(40):
        tokens = drawn()
        trainer.append(tokens, [str(rng.choice(LABELS)) for _ in tokens])
    trainer.train(path)
    peer = pycrfsuite.Tagger()
    peer.open(path)
    tagger, X = from_crfsuite(path), [drawn() for _ in range(20)]
    tags = tagger.predict(X)
    logs = tagger[-1].log_likelihood(tagger[:-1].transform(X), tags)
    probabilities = tagger.predict_proba(X)
    for tokens, own, log, proba in zip(X, tags, logs, probabilities, strict=True):
        expected = peer.tag(tokens)
        assert own.tolist() == expected
        assert np.exp(log) == pytest.approx(peer.probability(expected), abs=1e-6)
        for t in range(len(tokens)):
            marginals = [peer.marginal(label, t) for label in tagger.classes_]
            np.testing.assert_allclose(proba[t], marginals, atol=1e-6)
    peer.close()


def test_a_file_that_is_no_model_is_refused(tmp_path):
    rng, path = new_rng(3), tmp_path / "model"
    data = model_file(LABELS, ATTRIBUTES, np.ones((6, 3)), np.ones((3, 3)))
    for broken in (b"", b"lCRF", b"x" * 100, data[:60], data[: len(data) // 2]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="is not a model of CRFsuite"):
            from_crfsuite(path)
    for _ in range(50):
        place = int(rng.integers(len(data)))
        path.write_bytes(data[:place] + bytes([rng.integers(256)]) + data[place + 1 :])
        try:
            from_crfsuite(path)
        except ValueError:
            pass
