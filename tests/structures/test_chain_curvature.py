"""Second derivatives of the log-losses of chains against sums over all labelings."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse
from scipy.special import softmax

from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import ChainStructure
from sklearn_structsvm.structures.allowed_labels import AllowedLabels

CLASSES = ["a", "b", "c"]


def covariance(structure, x, w, mask=None):
    """Of the joint feature of one sequence, over the labelings that are allowed."""
    labelings = [np.array(labels) for labels in product(CLASSES, repeat=x.shape[0])]
    allowed = structure.allowed_
    if allowed is not None:
        k = len(CLASSES)
        codes = [[k, *map(CLASSES.index, labels), k] for labels in labelings]
        labelings = [
            labels
            for labels, own in zip(labelings, codes, strict=True)
            if all(allowed[a, b] for a, b in zip(own, own[1:], strict=False))
        ]
    if mask is not None:
        codes = [list(map(CLASSES.index, labels)) for labels in labelings]
        fits = [mask[np.arange(len(own)), own].all() for own in codes]
        labelings = [own for own, fit in zip(labelings, fits, strict=True) if fit]
    features = np.array([structure.joint_feature(x, labels) for labels in labelings])
    probabilities = softmax(features @ w)
    features = features - probabilities @ features
    return features.T @ (probabilities[:, np.newaxis] * features)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"bias": False, "last_bias": False},
        {"transition": False},
        {"emission": False},
        {"first_bias": False, "last_bias": False, "bias": False},
        {"transitions": [("a", "b"), (None, "c"), ("b", None)]},
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", ["array", "csr", "split"])
def test_the_hessian_is_the_covariance_over_all_labelings(params, form, monkeypatch):
    rng = new_rng()
    X = [rng.normal(size=(length, 2)) for length in (1, 4, 2, 4, 3)]
    y = [["a"] * len(x) for x in X]
    structure = ChainStructure(**params).fit(X, y, classes=CLASSES)
    items = X
    if form == "csr":
        items = [sparse.csr_array(x) for x in X]
    elif form == "split":
        items = [SplitMatrix([x[:, :1], sparse.csr_array(x[:, 1:])]) for x in X]
    p = np.array([0.3, 0.2, 0.0, 0.4, 0.1])
    w = rng.normal(size=structure.n_weights_)
    expected = sum(own * covariance(structure, x, w) for own, x in zip(p, X, strict=True))
    curvature = structure._make_curvature(items, p)
    np.testing.assert_allclose(curvature.at(w), expected, rtol=0.0, atol=1e-12)
    # Labels that positions may have, "a" among them.
    masks = [rng.random((len(x), 3)) < [1.0, 0.5, 0.5] for x in X]
    bounds = np.append(0, np.cumsum([len(x) for x in X]))
    labels = AllowedLabels(bounds, np.arange(14), np.concatenate(masks))
    some = structure._make_curvature(items, p, labels)
    expected_of_some = sum(
        own * covariance(structure, x, w, mask)
        for own, x, mask in zip(p, X, masks, strict=True)
    )
    np.testing.assert_allclose(some.at(w), expected_of_some, rtol=0.0, atol=1e-12)
    monkeypatch.setattr("sklearn_structsvm.structures.chain_curvature.MOST_NUMBERS", 1)
    np.testing.assert_allclose(curvature.at(w), expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(some.at(w), expected_of_some, rtol=0.0, atol=1e-12)


def test_the_hessian_of_a_long_sequence_is_positive_semidefinite():
    rng = new_rng()
    labels = rng.choice(3, 20_000, p=[0.95, 0.03, 0.02])
    X = [np.eye(3)[labels] + rng.normal(size=(20_000, 3))]
    structure = ChainStructure().fit(X, [labels])
    curvature = structure._make_curvature(X, np.ones(1))
    for scale in (0.0, 1.0):
        H = curvature.at(scale * rng.normal(size=structure.n_weights_))
        values = np.linalg.eigvalsh(H)
        assert values[0] >= -1e-12 * values[-1]


def test_the_hessian_is_accurate_where_scores_are_huge():
    rng = new_rng()
    X = [rng.normal(size=(3, 2)) for _ in range(4)]
    structure = ChainStructure().fit(X, [["a"] * 3] * 4, classes=CLASSES)
    w = 1e3 * rng.normal(size=structure.n_weights_)
    p = np.full(4, 0.25)
    expected = sum(0.25 * covariance(structure, x, w) for x in X)
    found = structure._make_curvature(X, p).at(w)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
