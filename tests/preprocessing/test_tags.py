"""Schemes of tags: converted, read, allowed and told apart, against seqeval."""

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm._utils.tags import LETTERS, entities_of, first_fault
from sklearn_structsvm.metrics import (
    entity_f1_score,
    entity_precision_score,
    entity_recall_score,
    entity_report,
)
from sklearn_structsvm.preprocessing import convert_tags
from sklearn_structsvm.structures import ChainStructure

SEQEVAL = {"iob1": "IOB1", "bio": "IOB2", "bioes": "IOBES", "bilou": "BILOU"}
# The lenient mode of seqeval does not know the others.
AS_BIOES = str.maketrans("LU", "ES")


def classes_of(scheme, types=("X", "Y-Z")):
    letters = [letter for letter in LETTERS[scheme] if letter != "O"]
    return ["O", *(f"{letter}-{name}" for letter in letters for name in types)]


def drawn(rng, scheme, n=2000):
    """Tags of the scheme in any order: few sequences are correct."""
    tags = classes_of(scheme)
    return [rng.choice(tags, size=rng.integers(1, 8)).tolist() for _ in range(n)]


def drawn_entities(rng, n=50, apart=False):
    """Correct tags of runs, or of entities by a scheme, drawn entity by entity."""
    sequences = []
    for _ in range(n):
        found, t, last = [], 0, None
        for _ in range(rng.integers(5)):
            name = str(rng.choice(["X", "Y"]))
            t += int(rng.integers(2)) or (apart and name == last)
            size = int(rng.integers(1, 4))
            found.append((name, t, t + size - 1))
            t, last = t + size, name
        sequences.append((set(found), t + int(rng.integers(2))))
    return sequences


def spelled(entities, n, scheme):
    """The tags of entities, written down position by position."""
    tags = ["O"] * n
    ends = {(last, name) for name, _, last in entities}
    for name, first, last in entities:
        for t in range(first, last + 1):
            begins, stops = t == first, t == last
            if scheme == "runs":
                tags[t] = name
                continue
            if scheme == "iob1":
                letter = "B" if begins and (first - 1, name) in ends else "I"
            elif scheme == "bio":
                letter = "B" if begins else "I"
            else:
                whole, begin, end, inside = {
                    "bioes": "SBEI", "bilou": "UBLI", "bmes": "SBEM"
                }[scheme]  # fmt: skip
                letter = whole if begins and stops else begin if begins else inside
                letter = end if stops and not begins else letter
            tags[t] = f"{letter}-{name}"
    return tags


ALL = [*LETTERS, "runs"]


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_tags_are_converted_from_each_scheme_to_each_other(source, target):
    drawn = drawn_entities(new_rng(1), apart="runs" in (source, target))
    y = [spelled(*own, source) for own in drawn]
    assert convert_tags(y, source, target) == [spelled(*own, target) for own in drawn]


def test_names_of_one_scheme_and_tags_without_types_are_read():
    y = [np.array(["B", "I", "B", "O"])]
    assert convert_tags(y, "iob2", "bioul") == [["B", "L", "U", "O"]]
    assert convert_tags(y, "bio", "bmes") == [["B", "E", "S", "O"]]
    assert convert_tags([], "bio", "iobes") == []


def test_tags_that_no_scheme_allows_are_repaired_as_conlleval_reads_them():
    y = [["O", "I-X", "I-X", "B-X", "I-Y"]]
    repaired = convert_tags(y, "bio", "bio", repair=True)
    assert repaired == [["O", "B-X", "I-X", "B-X", "B-Y"]]
    assert entities_of(repaired[0], "bio", strict=True) == entities_of(y[0])
    with pytest.raises(ValueError, match="must be a tag of 'bio'"):
        convert_tags([["BX"]], "bio", "bio", repair=True)


@pytest.mark.parametrize("scheme", LETTERS)
def test_tags_are_correct_that_their_own_entities_spell(scheme):
    wrong = 0
    for tags in drawn(new_rng(2), scheme, n=500):
        is_right = spelled(entities_of(tags, scheme), len(tags), scheme) == tags
        assert (first_fault(scheme, [tags]) is None) == is_right, tags
        wrong += not is_right
    assert 0 < wrong < 500


@pytest.mark.parametrize("scheme", SEQEVAL)
def test_entities_are_those_of_both_modes_of_seqeval(scheme):
    schemes = pytest.importorskip("seqeval.scheme")
    from seqeval.metrics.sequence_labeling import get_entities

    kind = getattr(schemes, SEQEVAL[scheme])
    letters = AS_BIOES if scheme == "bilou" else {}
    for tags in drawn(new_rng(3), scheme):
        strict = {e.to_tuple()[1:] for e in schemes.Tokens(tags, kind).entities}
        strict = {(name, first, end - 1) for name, first, end in strict}
        assert entities_of(tags, scheme, strict=True) == strict, tags
        lenient = set(get_entities([tag.translate(letters) for tag in tags]))
        assert entities_of(tags) == entities_of(tags, scheme) == lenient, tags


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("scheme", SEQEVAL)
def test_scores_and_reports_are_those_of_seqeval(scheme, strict):
    metrics = pytest.importorskip("seqeval.metrics")
    from seqeval import scheme as schemes

    rng = new_rng(4)
    y_true = drawn(rng, scheme, n=300)
    keep = classes_of(scheme)
    y_pred = [
        [tag if rng.random() < 0.7 else str(rng.choice(keep)) for tag in tags]
        for tags in y_true
    ]
    given, options = (y_true, y_pred), {}
    if strict:
        options = {"mode": "strict", "scheme": getattr(schemes, SEQEVAL[scheme])}
    elif scheme == "bilou":
        given = [[[tag.translate(AS_BIOES) for tag in own] for own in y] for y in given]
    theirs = metrics.classification_report(*given, output_dict=True, **options)
    report = entity_report(y_true, y_pred, scheme=scheme, strict=strict)
    assert list(report) == list(theirs)
    for name, scores in theirs.items():
        for key, score in scores.items():
            assert report[name][key] == pytest.approx(score), (name, key)
    for key, function in (
        ("precision", entity_precision_score),
        ("recall", entity_recall_score),
        ("f1-score", entity_f1_score),
    ):
        score = function(y_true, y_pred, scheme=scheme, strict=strict)
        assert score == pytest.approx(report["micro avg"][key])


def test_bmes_is_bioes_with_another_letter():
    rng = new_rng(5)
    y = drawn(rng, "bioes", n=200)
    other = [[tag.replace("I-", "M-") for tag in tags] for tags in y]
    for strict in (False, True):
        for tags, own in zip(y, other, strict=True):
            found = entities_of(own, "bmes", strict=strict)
            assert found == entities_of(tags, "bioes", strict=strict)


def test_runs_of_labels_are_entities():
    y_true, y_pred = (
        [["Street", "Street", "O", "City"]],
        [["Street", "City", "O", "City"]],
    )
    report = entity_report(y_true, y_pred, scheme="runs")
    assert report["City"]["precision"] == 0.5 and report["Street"]["recall"] == 0.0
    assert report["micro avg"]["f1-score"] == 0.4
    assert report["macro avg"]["support"] == 2


def test_a_report_without_entities_has_averages_only():
    report = entity_report([["O"]], [["O"]], zero_division=1)
    assert list(report) == ["micro avg", "macro avg", "weighted avg"]
    assert report["micro avg"] == {
        "precision": 1.0, "recall": 1.0, "f1-score": 1.0, "support": 0.0
    }  # fmt: skip


@pytest.mark.parametrize(
    "source, tags, message",
    [
        ("bio", ["O", "I-LOC"], r"y\[1\]\[1\] is 'I-LOC', which follows 'O'.* iob1\.$"),
        ("bio", ["I-LOC"], r"y\[1\]\[0\] is 'I-LOC', which is first.* iob1\.$"),
        ("iob1", ["O", "B-X"], r"'B-X', which follows 'O'.* are bio\.$"),
        ("bioes", ["B-X", "I-X"], r"'I-X', which follows 'B-X' and is last.* bio\.$"),
        ("bio", ["B-X", "L-X"], r"'L-X', which is no tag of it: 'bio'.* bilou\.$"),
        ("bio", ["B-X", 1], r"1, which is no tag of it: 'bio' has no such tags\.$"),
        ("runs", ["X", None], r"None, which is no tag of it"),
    ],
)
def test_a_scheme_that_tags_contradict_is_named_with_theirs(source, tags, message):
    with pytest.raises(ValueError, match=message):
        convert_tags([["O"], tags], source, "bio")


def test_a_fit_says_which_scheme_its_tags_have():
    X, y = [np.eye(2)] * 2, [["I-X", "O"], ["I-X", "B-X"]]
    model = CRFClassifier(ChainStructure(transitions="bio"))
    with pytest.raises(ValueError, match=r"`transitions` forbids. These tags are iob1\."):
        model.fit(X, y)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="position 1 right behind another one"):
        convert_tags([["B-X", "B-X"]], "bio", "runs")
    with pytest.raises(ValueError, match="strict=True needs a scheme"):
        entity_f1_score([["O"]], [["O"]], strict=True)
    with pytest.raises(
        ValueError, match=r"y_true\[0\]\[0\] must be a tag of 'bio', which"
    ):
        entity_f1_score([["S-X"]], [["O"]], scheme="bio")
