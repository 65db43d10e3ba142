"""Parameters of structures are checked as those of estimators are."""

from functools import partial

import numpy as np
import pytest
from _structures import ALL, data_of
from sklearn import config_context
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.structures import (
    ChainStructure,
    HierarchicalStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    Structure,
)

KINDS = [kind for kind in ALL if not kind.endswith(("csr", "binary", "multiclass"))]
NO_FLAGS = [np.zeros(2), "yes", None, 1, [], np.nan]
NO_LISTS = [3.5, True]


def wrong_parameters(structure):
    """Names, and values that they must not have."""
    for name, value in structure.get_params(deep=False).items():
        if isinstance(value, bool):
            yield from ((name, bad) for bad in NO_FLAGS)
        elif name in ("edges", "leaves"):
            yield from ((name, bad) for bad in NO_LISTS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_that_is_none_is_named(kind):
    structure, X, y = data_of(kind)
    checked = (X, y) if structure.flat else structure.check_data(X, y)
    for name, bad in wrong_parameters(structure):
        wrong = clone(structure).set_params(**{name: bad})
        words = f"The '{name}' parameter of {type(structure).__name__} must be"
        with pytest.raises(ValueError, match=words):
            BCFWClassifier(wrong).fit(X, y)
        with pytest.raises(ValueError, match=words):
            wrong.fit(*checked)


@pytest.mark.parametrize(
    ("kind", "name", "bad"),
    [
        ("parts", "radius", np.inf),
        ("parts", "radius", 10**400),
        ("parts", "reference", [[1, 2], [3]]),
        ("forest", "leaves", [[1]]),
        ("forest", "leaves", np.full((2, 2), np.nan)),
    ],
)
def test_values_that_numpy_cannot_read_are_refused_by_name(kind, name, bad):
    structure, X, y = data_of(kind)
    structure = clone(structure).set_params(**{name: bad})
    with pytest.raises(ValueError, match=f"^{name} must "):
        BCFWClassifier(structure).fit(X, y)


LABELS, PAIRS = MultilabelStructure, PairwiseMultilabelStructure
TREE = partial(HierarchicalStructure, [("r", "x"), ("q", "x"), ("r", "y"), ("q", "z")])
NEGATIVE = {"label_costs": [[1, 1], [1, -1], [1, 1]]}


@pytest.mark.parametrize(
    ("make", "parameters", "options", "message"),
    [
        *(row for make in (LABELS, PAIRS, TREE) for row in [
            (make, {"label_costs": [[1, 1]]}, {}, r"shape \(3, 2\).* got \(1, 2\)"),
            (make, NEGATIVE, {}, "must be >= 0; got -1"),
        ]),
        (LABELS, {}, {"class_weight": "balanced"}, "class_weight cannot be used"),
        (LABELS, {}, {"classes": ["a", "b"]}, "each of the 3 columns of y; got 2"),
        (TREE, {"inference": "bp"}, {}, "'tree', 'lp'; got 'bp'"),
        (TREE, {"inference": "tree"}, {}, "the node 'x' has more than one parent"),
        (TREE, {}, {"class_weight": "balanced"}, "label_costs of HierarchicalStructure"),
        (TREE, {}, {"classes": ["x", "y", "w"]}, "the hierarchy, 'x', 'y', 'z'"),
        (PAIRS, {"pairs": "some"}, {}, "'all', 'tree' or an array .*got 'some'"),
        (PAIRS, {"pairs": [0, 1]}, {}, r"two integers.* shape \(2,\)"),
        (PAIRS, {"pairs": [[0.0, 1.0]]}, {}, "two integers.* type float64"),
        (PAIRS, {"pairs": [[0, 3]]}, {}, r"columns of y, 0 to 2; got \(0, 3\)"),
        (PAIRS, {"pairs": [[-1, 0]]}, {}, r"columns of y, 0 to 2; got \(-1, 0\)"),
        (PAIRS, {"pairs": [[1, 1]]}, {}, r"two different labels; got \(1, 1\)"),
        (PAIRS, {"pairs": [[0, 1], [1, 0]]}, {}, r"each pair once; got \(1, 0\) again"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_the_labels_are_refused(
    make, parameters, options, message
):
    X, Y = np.zeros((2, 1)), np.array([[1, 0, 1], [0, 0, 1]])
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(X, Y, **options)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, 0, 2], [0, 0, 1]], "got .*2.* in row 0, column 2"),
        ([[1, 0], [0, 1]], r"must have shape \(n_samples, 3\); got \(2, 2\)"),
        ([1, 0, 1], r"must have shape \(n_samples, 3\); got \(3,\)"),
    ],
)
def test_what_is_no_indicator_is_refused_after_fit(bad, message):
    X, Y = np.zeros((2, 1)), np.array([[1, 0, 1], [0, 0, 1]])
    with pytest.raises(ValueError, match=message):
        LABELS().fit(X, Y).make_oracle(X, np.array(bad))


def test_too_many_labels_to_enumerate_are_refused():
    with pytest.raises(ValueError, match="up to 18 labels; got 19. Use 'roof'"):
        PAIRS("tree", "enumerate").fit(np.zeros((2, 1)), np.zeros((2, 19), dtype=int))


def test_every_estimator_checks():
    X, y = data_of("chain")[1:]
    wrong = ChainStructure(bias=np.zeros(2))
    words = "The 'bias' parameter of ChainStructure must be"
    for kind in (
        BCFWClassifier, BCFWClassifierCV, BMRMClassifier, CRFClassifier, SlackRescaledSSVM
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            kind(structure=wrong).fit(X, y)
    with pytest.raises(ValueError, match="The 'bias' parameter of"):
        bcfw_path(X, y, structure=wrong)


def test_dask_checks():
    bag = pytest.importorskip("dask.bag")
    X, y = (bag.from_sequence(items, npartitions=2) for items in data_of("chain")[1:])
    with pytest.raises(ValueError, match="The 'bias' parameter of ChainStructure must"):
        BCFWClassifier(ChainStructure(bias=np.zeros(2))).fit(X, y)


def test_it_can_be_switched_off():
    X, y = data_of("chain")[1:]
    with config_context(skip_parameter_validation=True):
        BCFWClassifier(ChainStructure(bias=1), tol=0.5).fit(X, y)


def test_a_structure_of_your_own_may_say_what_its_parameters_are():
    class Own(ChainStructure):
        _parameter_constraints = {"size": ["boolean"]}

        def __init__(self, size=0):
            super().__init__()
            self.size = size

    with pytest.raises(ValueError, match="The 'size' parameter of Own must be"):
        BCFWClassifier(Own()).fit(*data_of("chain")[1:])
    assert Structure._parameter_constraints == {}


@pytest.mark.parametrize("kind", ["cycles", "tree"])
@pytest.mark.parametrize("convert", [tuple, list])
def test_graphs_and_trees_without_their_structure(kind, convert):
    structure, X, y = data_of(kind)
    X = [convert(x) for x in X]
    words = rf"X\[0\] is a {convert.__name__} of arrays.* structure=GraphStructure"
    for model in (
        BCFWClassifier(), BCFWClassifier("chain"), BCFWClassifier("multiclass"),
        CRFClassifier(), SlackRescaledSSVM(), BMRMClassifier(),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    model = BCFWClassifier(tol=0.5).fit([x[0] for x in X], y)
    with pytest.raises(ValueError, match=words):
        model.predict(X)
    BCFWClassifier(structure, tol=0.5).fit(X, y)
