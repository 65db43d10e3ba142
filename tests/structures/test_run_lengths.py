"""Labelings whose runs of equal labels have a least length, beside all labelings."""

from itertools import groupby, product

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import BCFWClassifier, CRFClassifier, uncertainty
from sklearn_structsvm.structures import ChainStructure, TreeStructure

CLASSES = np.array(["run", "sit", "walk"])
LENGTHS = [2, 3, {"sit": 3}, {"run": 2, "walk": 4}, 9]


def fitted(structure=None, model=CRFClassifier, seed=0):
    rng = new_rng(seed)
    X = [rng.normal(size=(rng.integers(4, 9), 3)) for _ in range(8)]
    y = [CLASSES[rng.integers(3, size=len(x))] for x in X]
    y[0][:3] = CLASSES
    structure = structure or ChainStructure()
    return model(structure, C=10.0, tol=0.01, random_state=0).fit(X, y), rng


def are_long(labels, least):
    """Whether all runs are long enough; one run if no label's could be."""
    length_of = least.get if isinstance(least, dict) else lambda label, _: least
    runs = [(label, len(list(run))) for label, run in groupby(labels)]
    if len(labels) < min(length_of(label, 1) for label in CLASSES.tolist()):
        return len(runs) == 1
    return all(n >= length_of(label, 1) for label, n in runs)


def listed(model, x, least, allowed=None):
    """All labelings with long runs, and their scores."""
    theta, transition = model.structure_.potentials(x, model.coef_)
    found = []
    for codes in product(range(3), repeat=len(x)):
        if allowed is not None and not all(allowed[t, k] for t, k in enumerate(codes)):
            continue
        table = model.structure_.allowed_
        if table is not None:
            ends = [(3, codes[0]), *zip(codes, codes[1:], strict=False), (codes[-1], 3)]
            if not all(table[pair] for pair in ends):
                continue
        if are_long(CLASSES[list(codes)].tolist(), least):
            score = theta[np.arange(len(x)), codes].sum()
            pairs = zip(codes, codes[1:], strict=False)
            score += sum(0.0 if transition is None else transition[p] for p in pairs)
            found.append((codes, score))
    return [np.array(codes) for codes, _ in found], np.array([own for _, own in found])


@pytest.mark.parametrize("least", LENGTHS, ids=str)
@pytest.mark.parametrize(
    "structure",
    [ChainStructure(), ChainStructure(transition=False),
     ChainStructure(transitions=[("run", "sit"), ("sit", "walk"), ("walk", "run"),
                                 *((c, c) for c in CLASSES.tolist())])],
    ids=["all", "none", "some"],
)  # fmt: skip
def test_labelings_and_probabilities_are_those_of_enumeration(structure, least):
    if isinstance(structure.transitions, list):
        model, rng = fitted(ChainStructure())
        forbidden = structure.transitions
        structure = ChainStructure(transitions=None)
        table = np.ones((4, 4), dtype=bool)
        table[:3, :3] = [[(a, b) in forbidden for b in CLASSES] for a in CLASSES]
        model.structure_.allowed_ = table
    else:
        model, rng = fitted(structure)
    for T in (1, 2, 5, 7):
        x = 3.0 * rng.normal(size=(T, 3))
        labelings, scores = listed(model, x, least)
        (labels,) = model.predict([x], min_length=least)
        best = CLASSES[labelings[scores.argmax()]]
        np.testing.assert_array_equal(labels, best)
        weights = np.exp(scores - scores.max())
        marginals = np.zeros((T, 3))
        for codes, weight in zip(labelings, weights / weights.sum(), strict=True):
            marginals[np.arange(T), codes] += weight
        (proba,) = model.predict_proba([x], min_length=least)
        np.testing.assert_allclose(proba, marginals, atol=1e-12)
        order = np.argsort(-scores)[:6]
        (found,), (shares,) = model.predict_k_best([x], 6, min_length=least)
        expected = [CLASSES[labelings[i]] for i in order]
        np.testing.assert_array_equal(found, expected)
        expected = weights[order] / weights.sum()
        np.testing.assert_allclose(shares, expected, rtol=1e-9)


def test_labels_that_are_known_stay():
    model, rng = fitted()
    x = rng.normal(size=(7, 3))
    allowed = rng.random((7, 3)) < 0.8
    allowed[:, 0] = True
    labelings, scores = listed(model, x, 3, allowed)
    (labels,) = model.predict([x], min_length=3, allowed=[allowed])
    np.testing.assert_array_equal(labels, CLASSES[labelings[scores.argmax()]])
    (found,), (shares,) = model.predict_k_best([x], 999, min_length=3, allowed=[allowed])
    np.testing.assert_array_equal(
        found, [CLASSES[labelings[i]] for i in np.argsort(-scores)]
    )
    np.testing.assert_allclose(shares.sum(), 1.0)


def test_runs_of_the_least_expected_cost_are_those_of_enumeration():
    rng = new_rng()
    costs = rng.random((3, 3)) * (1 - np.eye(3))
    model, rng = fitted(ChainStructure(label_costs=costs))
    model.set_params(solver_options__decoding="mbr")
    for T in (2, 7):
        x = 3.0 * rng.normal(size=(T, 3))
        labelings, _ = listed(model, x, {"sit": 3, "walk": 2})
        (proba,) = model.predict_proba([x], min_length={"sit": 3, "walk": 2})
        expected = [(proba @ costs)[np.arange(T), codes].sum() for codes in labelings]
        (labels,) = model.predict([x], min_length={"sit": 3, "walk": 2})
        np.testing.assert_array_equal(labels, CLASSES[labelings[np.argmin(expected)]])


def test_scores_of_the_k_best_are_those_of_their_labelings():
    model, rng = fitted(model=BCFWClassifier)
    model.coef_ = rng.normal(size=model.coef_.shape)
    X = [rng.normal(size=(T, 3)) for T in (6, 0, 30)]
    labelings, scores = model.predict_k_best(X, 4, min_length={"sit": 3})
    assert [own.shape for own in labelings] == [(4, 6), (1, 0), (4, 30)]
    assert scores[1].tolist() == [0.0]
    for own, values in zip(labelings, scores, strict=True):
        assert len(set(map(tuple, own.tolist()))) == len(own)
        assert (np.diff(values) <= 0).all()
    listed_labelings, listed_scores = listed(model, X[0], {"sit": 3})
    order = np.argsort(-listed_scores)[:4]
    np.testing.assert_array_equal(
        labelings[0], CLASSES[[listed_labelings[i] for i in order]]
    )
    np.testing.assert_allclose(scores[0], listed_scores[order])


def test_uncertainty_and_long_series_have_the_probabilities_of_long_runs():
    model, rng = fitted()
    X = [rng.normal(size=(T, 3)) for T in (6, 9)]
    _, shares = model.predict_k_best(X, 2, min_length=3)
    found = uncertainty(model, X, min_length=3)
    np.testing.assert_allclose(found, [own[1] - own[0] for own in shares])
    found = uncertainty(model, X, kind="least_confidence", min_length=3)
    np.testing.assert_allclose(found, [1.0 - own[0] for own in shares])
    with pytest.raises(ValueError, match="min_length requires another kind"):
        uncertainty(model, X, kind="entropy", min_length=3)
    x = rng.normal(size=(20_000, 3))
    (proba,) = model.predict_proba([x], min_length=4)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-14)


def test_long_series_have_no_short_run_and_length_one_changes_nothing():
    model, rng = fitted(model=BCFWClassifier)
    X = [rng.normal(size=(T, 3)) for T in (5, 0, 9)]
    for own, plain in zip(model.predict(X, min_length=1), model.predict(X), strict=True):
        np.testing.assert_array_equal(own, plain)
    x = 10.0 * rng.normal(size=(5000, 3))
    (labels,) = model.predict([x], min_length={"run": 20, "sit": 7})
    runs = [(label, len(list(run))) for label, run in groupby(labels)]
    for name, least in {"run": 20, "sit": 7}.items():
        assert min((n for label, n in runs if label == name), default=least) >= least


@pytest.mark.parametrize(
    ("least", "error", "message"),
    [
        (0, ValueError, "min_length must be at least 1"),
        (1.5, TypeError, "min_length must be an integer"),
        ({"fly": 2}, ValueError, "min_length has the label 'fly'"),
        ({"sit": 0}, ValueError, r"min_length\['sit'\] must be at least 1"),
    ],
)
def test_lengths_that_are_none_are_refused(least, error, message):
    model, rng = fitted()
    with pytest.raises(error, match=message):
        model.predict([rng.normal(size=(4, 3))], min_length=least)


def test_what_has_no_runs_refuses_them():
    model, rng = fitted()
    x = rng.normal(size=(4, 3))
    only = [["run", "sit", "run", "sit"]]
    with pytest.raises(ValueError, match=r"min_length leaves X\[0\] no labeling"):
        model.predict([x], min_length=2, allowed=only)
    with pytest.raises(ValueError, match=r"min_length leaves X\[1\] no labeling"):
        model.predict_proba([x, x], min_length=2, allowed=[None, only[0]])
    model.set_params(solver_options__decoding="mbr")
    with pytest.raises(ValueError, match=r"min_length leaves X\[0\] no labeling"):
        model.predict([x], min_length=2, allowed=only)
    trees = [(x, np.array([-1, 0, 0, 1]))]
    tree = CRFClassifier(TreeStructure()).fit(trees * 2, [["a", "b", "a", "b"]] * 2)
    with pytest.raises(ValueError, match="min_length requires a ChainStructure"):
        tree.predict(trees, min_length=2)
