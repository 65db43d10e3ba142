"""Probabilities of entities, and how uncertain labelings are, beside enumeration."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, CRFClassifier, CRFClassifierCV, uncertainty
from sklearn_structsvm._utils.tags import entities_of
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BIO = ["B-x", "B-y", "I-x", "I-y", "O"]
BIOES = ["B-x", "E-x", "I-x", "O", "S-x", "S-y"]
CASES = {
    "plain": (ChainStructure(), BIO),
    "without transitions": (ChainStructure(transition=False), BIO),
    "bio": (ChainStructure(transitions="bio"), BIO),
    "bioes": (ChainStructure(transitions="bioes"), BIOES),
    "bioes of any order": (ChainStructure(), BIOES),
    "bans without transitions": (
        ChainStructure(transition=False, transitions=[(None, "O"), ("I-x", None)]),
        BIO,
    ),
    "bare tags": (ChainStructure(emission="given"), ["B", "I", "O"]),
    "iob1": (ChainStructure(transitions="iob1"), BIO),
    "bilou": (ChainStructure(transitions="bilou"), ["B-x", "I-x", "L-x", "O", "U-x"]),
    "bmes": (ChainStructure(transitions="bmes"), ["B", "E", "M", "O", "S"]),
    "runs": (ChainStructure(transitions="runs"), ["B-x", "O", "y"]),
    "no O": (ChainStructure(), ["B-x", "I-x", "I-y"]),
}


def make_tagger(name, rng, scale=1.0):
    """A tagger with weights drawn at random, and items of up to four positions."""
    structure, classes = CASES[name]
    n_features = len(classes) if structure.emission == "given" else 2
    X = [rng.standard_normal((T, n_features)) for T in (1, 2, 3, 4)]
    # Of which a sequence of any length may consist.
    one = next(tag for tag in ("S-x", "U-x", "S", "I-x", "B-x", "B") if tag in classes)
    if structure.transitions != "iob1" and one == "I-x":
        one = "B-x"
    y = [np.full(len(x), one) for x in X]
    model = CRFClassifier(
        structure, solver_options={"classes": classes}, max_iter=1, random_state=0
    )
    model.fit(X, y)
    model.coef_ = scale * rng.standard_normal(len(model.coef_))
    return model, X


def enumerate_spans(model, x, mask=None):
    """The probability of each span, by the definition."""
    labelings = list(map(list, model.structure_.labelings(x)))
    if mask is not None:
        codes = np.searchsorted(model.classes_, labelings)
        kept = mask[np.arange(len(x)), codes].all(axis=1)
        labelings = [labels for labels, keep in zip(labelings, kept, strict=True) if keep]
    scores = [model.coef_ @ model.structure_.joint_feature(x, y) for y in labelings]
    p = np.exp(scores - np.max(scores))
    p /= p.sum()
    spans = {}
    for labels, share in zip(labelings, p, strict=True):
        entities = entities_of(labels, scheme_of(model))
        if isinstance(scheme := model.structure.transitions, str):
            # Where the scheme rules, strict scores know the same entities.
            assert entities_of(labels, scheme, strict=True) == entities
        for type_, first, last in entities:
            span = first, last + 1, type_
            spans[span] = spans.get(span, 0.0) + share
    return spans


def scheme_of(model):
    return "runs" if model.structure.transitions == "runs" else None


def draw_mask(model, x, rng):
    mask = rng.uniform(size=(len(x), len(model.classes_))) < 0.6
    labelings = list(model.structure_.labelings(x))
    chosen = labelings[rng.integers(len(labelings))]
    mask[np.arange(len(x)), np.searchsorted(model.classes_, chosen)] = True
    return mask


@pytest.mark.parametrize("with_masks", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_all_spans_have_the_sums_of_their_labelings(name, with_masks):
    rng = new_rng(0, with_masks)
    model, X = make_tagger(name, rng, scale=2.0)
    masks = [draw_mask(model, x, rng) for x in X] if with_masks else None
    found = model.predict_spans(X, threshold=1e-300, allowed=masks)
    for i, x in enumerate(X):
        expected = enumerate_spans(model, x, masks[i] if with_masks else None)
        assert [span[:3] for span in found[i]] == sorted(expected)
        for *at, p in found[i]:
            assert p == pytest.approx(expected[tuple(at)], rel=1e-10)


# With scores far apart many sums underflow.
@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("name", CASES)
def test_spans_of_the_prediction(name, scale):
    model, X = make_tagger(name, new_rng(1), scale)
    for decoding in ("map", "mbr"):
        model.set_params(solver_options__decoding=decoding)
        found, labelings = model.predict_spans(X), model.predict(X)
        for x, spans, labels in zip(X, found, labelings, strict=True):
            entities = entities_of(labels, scheme_of(model))
            own = {(first, last + 1, type_) for type_, first, last in entities}
            assert [span[:3] for span in spans] == sorted(own)
            expected = enumerate_spans(model, x)
            for *at, p in spans:
                assert p == pytest.approx(expected[tuple(at)], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("name", CASES)
def test_a_threshold_leaves_out_what_is_less_probable(name):
    rng = new_rng(2)
    model, X = make_tagger(name, rng)
    # Empty items have none.
    X = [X[0][:0], *X, X[0][:0]]
    every = model.predict_spans(X, threshold=np.nextafter(0.0, 1.0))
    assert every[0] == every[-1] == [] and every[0] is not every[-1]
    assert len(model.predict_spans([])) == 0
    for threshold in (1e-300, 0.5, 0.1, 0.01, rng.uniform(0.0, 0.2)):
        found = model.predict_spans(X, threshold=threshold)
        for spans, own in zip(found, every, strict=True):
            assert spans == [span for span in own if span.probability >= threshold]


def test_the_spans_of_a_position_have_the_probability_that_it_is_in_one():
    rng = new_rng(3)
    model, X = make_tagger("plain", rng)
    X = [*X, rng.standard_normal((40, 2)), 50.0 * rng.standard_normal((40, 2))]
    outside = list(model.classes_).index("O")
    found = model.predict_spans(X, threshold=1e-300)
    for spans, proba in zip(found, model.predict_proba(X), strict=True):
        covered = np.zeros(len(proba))
        for span in spans:
            covered[span.start : span.stop] += span.probability
        np.testing.assert_allclose(covered, 1.0 - proba[:, outside], atol=1e-12)


def test_a_long_sequence_is_as_precise_as_its_parts():
    rng = new_rng(4)
    model, _ = make_tagger("bio", rng)
    part = rng.standard_normal((10, 2))
    # Where a label is given, what comes before and after is independent.
    x = np.tile(part, (300, 1))
    single, whole = ["O", *[None] * 8, "O"], ["O", *[None] * 8, "O"] * 300
    (short,) = model.predict_spans([part], threshold=0.01, allowed=[single])
    (spans,) = model.predict_spans([x], threshold=0.01, allowed=[whole])
    # Both ends have biases of their own, which a given label makes irrelevant.
    assert len(spans) == 300 * len(short)
    for i, span in enumerate(spans):
        same = short[i % len(short)]
        assert (span.start % 10, span.type) == (same.start, same.type)
        assert span.probability == pytest.approx(same.probability, rel=1e-9)


def test_the_product_of_marginals_is_something_else():
    classes = np.array(["B-x", "I-x", "O"])
    structure = ChainStructure(emission="given", bias=False, first_bias=False,
                               last_bias=False, transitions="bio")  # fmt: skip
    X = [np.zeros((3, 3))]
    model = CRFClassifier(
        structure, solver_options={"classes": classes}, max_iter=1, random_state=0
    )
    model.fit(X, [np.array(["B-x", "I-x", "O"])])
    parts = model.structure_.weight_parts(model.coef_)
    # All labels alike, but for pairs that go on.
    parts["transition"][:] = [[0.0, 3.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    model.coef_ = np.concatenate([parts["emission"], parts["transition"].ravel()])
    expected = enumerate_spans(model, X[0])
    (spans,) = model.predict_spans(X, threshold=0.1)
    for *at, p in spans:
        assert p == pytest.approx(expected[tuple(at)])
    (proba,) = model.predict_proba(X)
    product = proba[0, 0] * proba[1, 1] * proba[2, 1]
    assert dict(((s.start, s.stop), s.probability) for s in spans)[0, 3] > 1.05 * product


def test_other_labels_structures_thresholds_and_conflicts_are_refused():
    model, X = make_tagger("bio", new_rng(5))
    allowed = [None, None, [None, "O", "I-x"], None]
    for threshold in (None, 0.5):
        with pytest.raises(ValueError, match=r"allowed\[2\].*X\[2\].* 1 fits those"):
            model.predict_spans(X, threshold=threshold, allowed=allowed)
    for threshold in (0, 0.0, -1.0, 1.5, np.nan, True, "all"):
        with pytest.raises(ValueError, match="threshold must be None or a number above"):
            model.predict_spans(X, threshold=threshold)
    X, y = [np.eye(2)] * 3, [np.array(["B-x", "NOUN"])] * 3
    model = CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="entity tags .* one of the classes is 'NOUN'"):
        model.predict_spans(X)
    for structure in (CRFClassifier("tree"), BCFWClassifier("chain")):
        assert not hasattr(structure, "predict_spans")


KINDS = "margin", "least_confidence", "entropy"


def fitted(cls, structure="chain"):
    X, y = make_chains(12, n_features=3, n_classes=3, random_state=new_seed(0))
    X, y = [x[:4] for x in X], [own[:4] for own in y]
    if structure == "tree":
        X = [(x, np.arange(len(x)) - 1) for x in X]
    if structure == "graph":
        paths = [np.column_stack([range(len(x) - 1), range(1, len(x))]) for x in X]
        X = list(zip(X, paths, strict=True))
    return cls(structure, C=0.1, tol=0.1, random_state=0).fit(X, y), X


def scores_of(model, x):
    """The scores of all labelings, the best first."""
    structure = model.structure_
    scores = [model.coef_ @ structure.joint_feature(x, y) for y in structure.labelings(x)]
    return np.sort(scores)[::-1]


@pytest.mark.parametrize("structure", ["chain", "graph"])
def test_margins_of_scores(structure):
    model, X = fitted(BCFWClassifier, structure)
    for x, value in zip(X, uncertainty(model, X), strict=True):
        scores = scores_of(model, x)
        assert value == pytest.approx(scores[1] - scores[0], abs=1e-10)


@pytest.mark.parametrize("name", ["chain", "tree", *CASES])
def test_each_kind_is_its_definition(name):
    if name in CASES:
        model, X = make_tagger(name, new_rng(6))
    else:
        model, X = fitted(CRFClassifier, name)
    found = {kind: uncertainty(model, X, kind=kind) for kind in KINDS}
    for i, x in enumerate(X):
        p = np.exp(scores_of(model, x))
        p /= p.sum()
        assert found["margin"][i] == pytest.approx(p[1] - p[0], abs=1e-12)
        assert found["least_confidence"][i] == pytest.approx(1.0 - p[0], abs=1e-12)
        assert found["entropy"][i] == pytest.approx(-np.sum(p * np.log(p)), abs=1e-10)
    np.testing.assert_array_equal(uncertainty(model, X), found["margin"])


def test_nothing_is_uncertain_if_all_labels_are_known():
    (crf, X), (svm, _) = fitted(CRFClassifier), fitted(BCFWClassifier)
    X = [*X, X[0][:0]]
    known = list(svm.predict(X))
    expected = {"margin": -1.0, "least_confidence": 0.0, "entropy": 0.0}
    for kind in KINDS:
        found = uncertainty(crf, X, kind=kind, allowed=known)
        np.testing.assert_allclose(found, expected[kind], atol=1e-10)
    np.testing.assert_array_equal(uncertainty(svm, X, allowed=known), -np.inf)
    assert [len(uncertainty(crf, [], kind=kind)) for kind in KINDS] == [0, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_is_as_its_last_step(kind):
    rng = new_rng(1)
    X = [rng.standard_normal((3, 2)) for _ in range(6)]
    y = [np.array(["a", "b", "c"])] * 6
    model = CRFClassifier("chain", random_state=0)
    pipeline = make_pipeline(SequenceTransformer(StandardScaler()), model).fit(X, y)
    allowed = [[None, {"a", "b"}, None]] * 6
    expected = uncertainty(
        pipeline[-1], pipeline[:-1].transform(X), kind=kind, allowed=allowed
    )
    np.testing.assert_array_equal(
        uncertainty(pipeline, X, kind=kind, allowed=allowed), expected
    )
    alone = make_pipeline(model).fit(X, y)
    np.testing.assert_array_equal(
        uncertainty(alone, X, kind=kind), uncertainty(alone[-1], X, kind=kind)
    )


def test_what_an_estimator_lacks_is_said():
    svm, X = fitted(BCFWClassifier)
    for kind in ("least_confidence", "entropy"):
        with pytest.raises(TypeError, match=f"{kind}.* requires a CRFClassifier"):
            uncertainty(svm, X, kind=kind)
    with pytest.raises(ValueError, match="kind must be"):
        uncertainty(svm, X, kind="least_confident")
    with pytest.raises(NotFittedError):
        uncertainty(CRFClassifier(), X)
    flat = CRFClassifier().fit(np.eye(4), [0, 1, 0, 1])
    for kind in ("margin", "least_confidence"):
        with pytest.raises(TypeError, match="over sequences, trees or forests"):
            uncertainty(flat, np.eye(4), kind=kind)
    entropies = uncertainty(flat, np.eye(4), kind="entropy")
    np.testing.assert_array_equal(entropies, flat.entropy(np.eye(4)))
