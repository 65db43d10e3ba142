"""TreeStructure against chains, and as users meet it; see also `test_listed`."""

import numpy as np
import pytest
from _cases import TREE_PARTS

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import TreeStructure

ROWS = np.ones((3, 2))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (ROWS, r"X\[1\] must be a pair \(features, parents\); got ndarray"),
        ((ROWS, [-1, 0, 0], 1), r"X\[1\] must be a pair.* got tuple of 3 items"),
        ((ROWS[0], [-1, 0, 0]), r"X\[1\]\[0\] must be 2-D"),
        ((np.ones((3, 5)), [-1, 0, 0]), r"X\[1\]\[0\] has 5 features.* 2 in X\[0\]\[0\]"),
        ((ROWS * np.nan, [-1, 0, 0]), r"X\[1\]\[0\] contains NaN"),
        ((ROWS, [-1, 0]), r"X\[1\]\[1\] has 2 parents for the 3 nodes of X\[1\]\[0\]"),
        ((ROWS, [[-1, 0, 0]]), r"X\[1\]\[1\] must be a 1-D array.*\(1, 3\)"),
        ((ROWS, [[-1], 0, 0]), r"X\[1\]\[1\] must be a 1-D array"),
        ((ROWS, [-1.0, 0.0, 0.0]), r"X\[1\]\[1\] must hold integers.*float64"),
        ((ROWS, [-1, 0, 3]), r"X\[1\]\[1\] has the parent 3 for node 2.* 0 ... 2"),
        ((ROWS, [-1, -2, 0]), r"X\[1\]\[1\] has the parent -2 for node 1"),
        ((ROWS, [-1, 2, 1]), r"X\[1\]\[1\] has a cycle.* node 1 never"),
        ((ROWS, [-1, 0, 2]), r"X\[1\]\[1\] has a cycle.* node 2 never"),
        ((ROWS, [1, 2, 0]), r"X\[1\]\[1\] has a cycle.* node 0 never"),
    ],
)
def test_an_example_that_is_no_forest_is_named(x, message):
    good = (np.ones((2, 2)), [-1, 0])
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(TreeStructure()).fit([good, x], [[0, 1], [0, 1, 1]])


def test_labels_that_are_too_few_or_unknown_are_named():
    X, y = [(ROWS, [-1, 0, 0])] * 2, [[0, 1, 1], [1, 0, 1]]
    with pytest.raises(
        ValueError, match=r"y\[1\] has 2 labels for the 3 nodes of X\[1\]"
    ):
        BCFWClassifier(TreeStructure()).fit(X, [y[0], y[1][:2]])
    model = BCFWClassifier(TreeStructure(), random_state=0, tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"y has the label 7 \(tree 1, node 2\)"):
        model.structure_.make_oracle(*model.structure_.check_data(X, [y[0], [0, 1, 7]]))


def test_a_model_without_any_part_is_refused():
    structure = TreeStructure(**dict.fromkeys(TREE_PARTS, False))
    message = "at least one part: emission, transition, bias and root_bias are all False"
    with pytest.raises(ValueError, match=message):
        structure.fit([(ROWS, np.array([-1, 0, 0]))], [[0, 1, 0]])


@pytest.mark.parametrize("step", [1.0, 50.0, 200.0, 290.0, 1000.0])
@pytest.mark.parametrize("n_leaves", [1, 2, 5, 20])
def test_a_root_that_its_leaves_speak_against_is_summed(step, n_leaves):
    """Label 0 is next to nothing at every node, and all that the root may have."""
    T = n_leaves + 2
    parents = np.array([*[n_leaves] * n_leaves, n_leaves + 1, -1])
    mask = np.eye(3, dtype=bool)
    mask[:, 2], mask[2, 0] = True, True
    x = np.ones((T, 1)), parents
    structure = TreeStructure(transitions=mask, bias=False, root_bias=False)
    structure.fit([x], [np.zeros(T, dtype=int)], classes=[0, 1])
    w = np.zeros(structure.n_weights_)
    w[:2] = 0.0, step
    nodes = structure.marginals([x], w)[0]
    assert (nodes[:, 1] == 0.0).all()
    np.testing.assert_allclose(nodes[:, 0], 1.0, rtol=1e-15)
    assert structure.entropies([x], w)[0] == pytest.approx(0.0, abs=1e-9)
    assert structure.log_probabilities([x], [[0] * T], w)[0] == pytest.approx(0)
