"""Synthetic problems: shapes, reproducibility, and the dependence they promise."""

from functools import partial

import numpy as np
import pytest
from _seeds import new_seed
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, GaussianNB

from sklearn_structsvm.datasets import (
    make_chains,
    make_hierarchical,
    make_multilabel,
    make_poses,
    make_segmentation,
    make_snakes,
)
from sklearn_structsvm.structures import GraphStructure, PictorialStructure


def dense(items):
    return [x.toarray() if sparse.issparse(x) else x for x in items]


def viterbi(scores, log_transition):
    """Best path for token scores (T, K) and transition scores (K, K)."""
    best, back = scores[0], []
    for row in scores[1:]:
        through = best[:, None] + log_transition
        back.append(through.argmax(axis=0))
        best = through.max(axis=0) + row
    path = [best.argmax()]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return np.array(path[::-1])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_chains_have_the_shapes_asked_for(is_sparse):
    X, y = make_chains(
        40, n_features=7, n_classes=3, min_length=2, max_length=4, sparse=is_sparse,
        random_state=new_seed(0),
    )  # fmt: skip
    assert len(X) == len(y) == 40
    assert {len(labels) for labels in y} == {2, 3, 4}
    assert set(np.concatenate(y)) == {0, 1, 2}
    for x, labels in zip(X, y, strict=True):
        assert x.shape == (len(labels), 7)
        assert x.dtype == np.float64 and labels.dtype == np.int64
        assert (sparse.issparse(x) and x.format == "csr") == is_sparse


@pytest.mark.parametrize("make", [make_chains, make_multilabel, make_hierarchical])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_an_int_reproduces_and_another_differs(make, is_sparse):
    def flat(seed):
        X, y, *edges = make(20, sparse=is_sparse, random_state=seed)
        X, y = (X, y) if make is make_chains else ([X], [y, *edges])
        y = [np.ravel(part) for part in y]
        return np.vstack(dense(X)), np.concatenate(y)

    for one, same, other in zip(flat(3), flat(3), flat(4), strict=True):
        assert_array_equal(one, same)
        assert one.shape != other.shape or (one != other).any()


@pytest.mark.parametrize(
    ("make", "structure"),
    [
        (make_poses, PictorialStructure(make_poses(1).parents)),
        (make_segmentation, GraphStructure(attractive=True)),
        (partial(make_segmentation, n_superpixels=15), GraphStructure(attractive=True)),
        (make_snakes, GraphStructure()),
    ],
)
def test_an_int_reproduces_images_that_the_structure_takes(make, structure):
    seed = new_seed(0)
    made = [make(3, shape=(9, 9), random_state=s) for s in (seed, seed, seed + 1)]
    one, same, other = (np.array(data.get("images", data.X)) for data in made)
    assert_array_equal(one, same)
    assert (one != other).any()
    if "nodes" in made[0]:
        assert_array_equal(made[0].nodes, made[1].nodes)
    X, y = structure.check_data(made[0].X, made[0].y)
    assert len(X) == len(y) == 3


def test_sparse_tokens_are_binary_and_canonical():
    X, _ = make_chains(
        30, n_features=8, n_active=5, sparse=True, random_state=new_seed(0)
    )
    for x in X:
        counts = np.diff(x.indptr)
        assert counts.min() >= 1 and counts.max() <= 5
        rebuilt = sparse.csr_matrix((x.data, x.indices, x.indptr), shape=x.shape)
        assert rebuilt.has_canonical_format
        assert_array_equal(x.data, 1.0)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_chain_model_beats_a_model_of_single_tokens(is_sparse):
    X, y = make_chains(600, sparse=is_sparse, class_sep=1.0, random_state=new_seed(0))
    X = dense(X)
    model = BernoulliNB(fit_prior=False) if is_sparse else GaussianNB(priors=[0.2] * 5)
    model.fit(np.vstack(X[:300]), np.concatenate(y[:300]))
    transition = np.ones((5, 5))
    for labels in y[:300]:
        np.add.at(transition, (labels[:-1], labels[1:]), 1)
    log_transition = np.log(transition / transition.sum(axis=1, keepdims=True))
    scores = [model.predict_joint_log_proba(x) for x in X[300:]]
    truth = np.concatenate(y[300:])
    token_error = np.mean(np.concatenate([s.argmax(axis=1) for s in scores]) != truth)
    paths = [viterbi(s, log_transition) for s in scores]
    chain_error = np.mean(np.concatenate(paths) != truth)
    assert 0 < chain_error < 0.8 * token_error, (chain_error, token_error)


def test_dependence_goes_from_none_to_labels_that_determine_the_next():
    _, y = make_chains(200, n_classes=4, dependence=1.0, random_state=new_seed(0))
    pairs = {(a, b) for labels in y for a, b in zip(labels, labels[1:], strict=False)}
    assert len(pairs) == 4
    assert all(a != b for a, b in pairs)
    _, y = make_chains(
        1000, n_classes=3, dependence=0.0, min_length=10, random_state=new_seed(0)
    )
    table = np.zeros((3, 3))
    for labels in y:
        np.add.at(table, (labels[:-1], labels[1:]), 1)
    assert np.abs(table / table.sum() - 1 / 9).max() < 0.02


@pytest.mark.parametrize("is_sparse", [False, True])
def test_multilabel_samples_have_the_shapes_asked_for(is_sparse):
    X, Y = make_multilabel(
        60, n_features=7, n_classes=6, n_labels=1.5, sparse=is_sparse,
        random_state=new_seed(0),
    )  # fmt: skip
    assert X.shape == (60, 7) and X.dtype == np.float64
    assert sparse.issparse(X) == is_sparse
    assert Y.shape == (60, 6) and Y.dtype == np.int64
    assert_array_equal(Y.sum(axis=0), 15)
    if is_sparse:
        assert_array_equal(X.sum(axis=1), 20)


def test_labels_of_a_sample_are_on_and_off_and_depend_on_one_another():
    for n_labels, per_label in ((0, 1), (4, 9)):
        seed = new_seed(0)
        _, Y = make_multilabel(10, n_classes=4, n_labels=n_labels, random_state=seed)
        assert_array_equal(Y.sum(axis=0), per_label)
    _, Y = make_multilabel(2000, n_factors=1, n_classes=4, random_state=new_seed(0))
    assert np.abs(np.corrcoef(Y.T)[np.triu_indices(4, 1)]).min() > 0.3


@pytest.mark.parametrize("is_sparse", [False, True])
def test_features_tell_the_labels(is_sparse):
    X, Y = make_multilabel(400, sparse=is_sparse, random_state=new_seed(0))
    [X] = dense([X])
    errors, rarer = [], []
    for label in Y.T:
        predicted = GaussianNB().fit(X[:200], label[:200]).predict(X[200:])
        errors.append(np.mean(predicted != label[200:]))
        rarer.append(min(label[200:].mean(), 1 - label[200:].mean()))
    # One label or another may have features like those of others.
    assert np.mean(errors) < 0.9 * np.mean(rarer)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_extra_edges", [0, 5])
def test_hierarchical_samples_have_the_shapes_asked_for(n_extra_edges, is_sparse):
    X, Y, edges = make_hierarchical(
        3000, n_features=7, n_nodes=11, n_leaves=6, n_labels=1.8,
        n_extra_edges=n_extra_edges, sparse=is_sparse, random_state=new_seed(0),
    )  # fmt: skip
    assert X.shape == (3000, 7) and X.dtype == np.float64
    assert sparse.issparse(X) == is_sparse
    assert Y.shape == (3000, 6) and Y.dtype == np.int64
    assert Y.sum(axis=1).min() == 1
    # Six standard deviations of the mean of a Poisson number.
    assert Y.sum() / 3000 == pytest.approx(1.8, abs=6.0 * np.sqrt(0.8 / 3000))
    assert edges.shape == (10 + n_extra_edges, 2) and edges.dtype == np.int64
    assert len(np.unique(edges, axis=0)) == len(edges)
    # Nodes 0 to 4 are above others, 5 to 10 are leaves; an inner one has one parent.
    assert set(edges[:, 0]) == set(range(5)) and (edges[:, 0] < edges[:, 1]).all()
    n_parents = np.bincount(edges[:, 1])
    assert_array_equal(n_parents[:5], [0, 1, 1, 1, 1])
    assert n_parents[5:].min() >= 1
    if is_sparse:
        assert_array_equal(X.sum(axis=1), 50)


def test_the_smallest_hierarchy_is_a_root_and_a_leaf():
    _, Y, edges = make_hierarchical(3, n_nodes=2, n_leaves=1, n_labels=1)
    assert edges.tolist() == [[0, 1]]
    assert_array_equal(Y, 1)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_features_tell_the_inner_nodes_above_the_leaves(is_sparse):
    """Samples of two leaves are more alike where the leaves have one parent.

    On average: a few nodes of one hierarchy may have features that are alike.
    """
    near, far = [], []
    for seed in range(20):
        X, Y, edges = make_hierarchical(
            1000, n_labels=1.0, class_sep=1.0, sparse=is_sparse,
            random_state=new_seed(1, seed),
        )  # fmt: skip
        [X] = dense([X])
        means = np.array([X[label == 1].mean(axis=0) for label in Y.T])
        parent = edges[np.argsort(edges[:, 1])][-10:, 0]
        one, other = np.triu_indices(10, 1)
        distances = np.square(means[one] - means[other]).sum(axis=1)
        same = parent[one] == parent[other]
        near.extend(distances[same])
        far.extend(distances[~same])
    assert np.mean(near) < 0.8 * np.mean(far)


@pytest.mark.parametrize(
    "make, parameter, value",
    [
        (make_chains, "n_samples", 0),
        (make_chains, "n_features", 1.5),
        (make_chains, "n_classes", 1),
        (make_chains, "n_features", True),
        (make_chains, "min_length", 0),
        (make_chains, "max_length", 2),
        (make_chains, "class_sep", -1.0),
        (make_chains, "dependence", 1.1),
        (make_chains, "n_active", 0),
        (make_multilabel, "n_samples", 1),
        (make_multilabel, "n_features", 0),
        (make_multilabel, "n_classes", 0),
        (make_multilabel, "n_labels", 6),
        (make_multilabel, "n_factors", 0),
        (make_multilabel, "class_sep", "1"),
        (make_multilabel, "n_active", 0),
        (make_hierarchical, "n_samples", 0),
        (make_hierarchical, "n_samples", True),
        (make_hierarchical, "n_features", 0.5),
        (make_hierarchical, "n_nodes", 1),
        (make_hierarchical, "n_leaves", 7),
        (make_hierarchical, "n_leaves", 16),
        (make_hierarchical, "n_labels", 0.5),
        (make_hierarchical, "n_extra_edges", 51),
        (make_hierarchical, "class_sep", -1),
        (make_hierarchical, "n_active", 0),
        (make_poses, "n_samples", 0),
        (make_poses, "shape", (0, 9)),
        (make_poses, "n_distractors", -1),
        (make_poses, "noise", -1.0),
        (make_segmentation, "kind", "lines"),
        (make_segmentation, "n_superpixels", 10**6),
        (make_segmentation, "shape", (0, 9)),
        (make_segmentation, "n_classes", 1),
        (make_segmentation, "noise", -1.0),
        (make_segmentation, "size", 0.0),
        (make_snakes, "n_parts", 65),
        (make_snakes, "n_parts", 0),
        (make_snakes, "noise", -1.0),
        (make_snakes, "n_samples", 0),
    ],
)
def test_a_parameter_out_of_range_is_named(make, parameter, value):
    with pytest.raises((TypeError, ValueError), match=parameter):
        make(**{parameter: value})
