"""A structure of one's own, in plain Python, in the block-coordinate solver."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from _problems import assert_same_weights
from _references import Listed, Textbook, visits
from _seeds import new_rng
from _wrong_rows import LAYOUTS, NO_INDICES, row_of, with_index
from scipy import sparse

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    SlackRescaledSSVM,
    bcfw_path,
)
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import Structure

CODES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, 0.0]])
COSTS = np.array(
    [[0.0, 1.0, 0.7, 1.3], [0.9, 0.0, 1.1, 0.6], [0.8, 1.2, 0.0, 1.4], [0.5, 1, 1.6, 0]]
)

# Four labels in each of the forms that a labeling may have.
KINDS = {
    "integer": [0, 1, 2, 3],
    "string": ["a", "bb", "ccc", ""],
    "tuple": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "list": [[], [0], [0, [1]], [2]],
    "nested list": [[0, [1]], [1, [0]], [[0], 1], [[1], 0]],
    "nested tuple": [(0, (1,)), (1, (0, 0)), ((0,), 1), ((1, 1), 0)],
    "string or number": ["1", 1, "a", 2],
    "array": [np.array([0, 0]), np.array([0, 1]), np.array([1, 0]), np.array([1, 1])],
    "ragged array": [np.arange(length) for length in range(4)],
    "object array": [np.array(["a", k, None], dtype=object) for k in range(4)],
    "dict": [{"a": 0}, {"a": 1}, {"b": [0]}, {}],
    "frozenset": [frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})],
}


class Coded(Structure):
    """φ(x, y) = x ⊗ code of y, for four labels of any form."""

    def __init__(self, kind="integer", as_sparse=False):
        self.kind = kind
        self.as_sparse = as_sparse

    def index(self, y):
        same = [
            type(y) is type(label) and np.array_equal(y, label)
            if isinstance(y, np.ndarray)
            else y == label
            for label in KINDS[self.kind]
        ]
        return same.index(True)

    def joint_feature(self, x, y):
        feature = np.outer(x, CODES[self.index(y)]).ravel()
        return sparse.csr_array(feature[np.newaxis]) if self.as_sparse else feature

    def loss(self, y_true, y):
        return COSTS[self.index(y_true), self.index(y)]

    def decode(self, x, w):
        scores = CODES @ (x @ w.reshape(-1, 2))
        return KINDS[self.kind][scores.argmax()]

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        scores = CODES @ (x @ w.reshape(-1, 2)) + lam * COSTS[self.index(y_true)]
        return KINDS[self.kind][scores.argmax()]


class Uneven(Coded):
    variable_length = True


def make(kind="integer", as_sparse=False, n=7, seed=0):
    rng = new_rng(seed)
    X, truth = list(rng.standard_normal((n, 3))), rng.integers(4, size=n)
    y = [KINDS[kind][c] for c in truth]
    phi = [np.array([np.outer(x, code).ravel() for code in CODES]) for x in X]
    listed = Listed([list(range(4))] * n, list(truth), phi, [COSTS[c] for c in truth])
    structure = Coded(kind, as_sparse)
    structure.variable_length = kind in ("list", "ragged array")
    return structure.fit(X, y), X, y, listed


def solver(structure, X, y, lam=0.05, **options):
    n = len(X)
    return BlockFrankWolfe(structure.make_oracle(X, y), np.full(n, 1 / n), lam, **options)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("kind", "step"),
    [*((kind, "pairwise") for kind in KINDS), ("list", "fw"), ("list", "away")],
)
def test_steps_are_those_of_the_textbook_for_labels_of_any_form(kind, step, as_sparse):
    structure, X, y, listed = make(kind, as_sparse)
    mine = solver(structure, X, y, step=step)
    reference = Textbook(listed, 0.05, step=step).run(visits(7, passes=15))
    mine.run(reference.visited)
    assert_same_weights(mine.weights, reference.w)
    assert mine.loss == pytest.approx(reference.loss_blocks.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", ["list", "ragged array"])
def test_a_labeling_of_another_length_is_refused_unless_allowed(kind):
    structure, X, y, _ = make(kind)
    structure.variable_length = False
    with pytest.raises(ValueError, match=r"loss_augmented_decode.*example \d"):
        solver(structure, X, y).run(np.arange(7))


@pytest.mark.parametrize("step", ["pairwise", "away"])
def test_each_labeling_is_kept_once(step):
    structure, X, y, _ = make("array")
    mine = solver(structure, X, y, step=step, cache_size=50)
    mine.run(np.tile(np.arange(7), 40))
    for atoms in mine.get_state()["atoms"]:
        kept = [tuple(labeling) for labeling, _, _ in atoms]
        assert len(set(kept)) == len(kept) <= 4


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
def test_steps_over_cached_labelings_call_nothing_of_the_structure(as_sparse):
    structure, X, y, listed = make(as_sparse=as_sparse)
    mine = solver(structure, X, y, step="corrective")
    for _ in range(3):
        mine.run(np.arange(7))
    before = mine.dual_objective
    for name in ("joint_feature", "loss", "loss_augmented_decode"):
        setattr(structure, name, None)
    mine.run_cached(np.tile(np.arange(7), 9))
    assert mine.dual_objective >= before - 1e-15
    alpha = np.zeros((7, 4))
    for i, atoms in enumerate(mine.get_state()["atoms"]):
        for labeling, mass, _ in atoms:
            alpha[i, structure.index(labeling)] += mass
    weights, loss = listed.dual_point(alpha, 0.05)
    np.testing.assert_allclose(mine.weights, weights, rtol=0, atol=1e-12)
    assert mine.loss == pytest.approx(loss, abs=1e-14)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "blocks must be a list or tuple of length 7"),
        ([([6], [1.0])] * 7, r"indices of block 0 must be integers in \[0, 6\)"),
        ([([-1], [1.0])] * 7, "indices of block 0"),
        ([([0.5], [1.0])] * 7, "indices of block 0"),
        ([([1, 1], [1.0, 1.0])] * 7, "distinct"),
        ([([1], [1.0, 1.0])] * 7, "values of block 0"),
        ([([1], [np.nan])] * 7, "values of block 0"),
    ],
)
def test_a_state_of_other_weights_is_refused(blocks, message):
    structure, X, y, _ = make()
    mine = solver(structure, X, y)
    state = mine.get_state()
    with pytest.raises(ValueError, match=message):
        mine.set_state(state | {"blocks": blocks})


@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
def test_an_oracle_that_raises_leaves_a_consistent_dual_point(step):
    class Fails(Coded):
        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            calls.append(1)
            if len(calls) == 40:
                raise RuntimeError("call 40")
            return super().loss_augmented_decode(x, y_true, w, lam)

    calls = []
    _, X, y, _ = make()
    mine = solver(Fails().fit(X, y), X, y, step=step)
    with pytest.raises(RuntimeError, match="call 40"):
        mine.run(np.tile(np.arange(7), 20))
    before = mine.weights.copy()
    mine.rebuild_weights()
    np.testing.assert_allclose(mine.weights, before, rtol=0, atol=1e-13)
    hinge, gap = mine.check_gaps()
    w = mine.weights
    assert hinge + 0.05 * w @ w - mine.loss == pytest.approx(gap, abs=1e-14)


@pytest.mark.parametrize(
    "value",
    [-1.0, float("nan"), float("inf"), None, "much", [1.0], 1j, np.float32("inf")],
    ids=str,
)
def test_a_loss_that_is_none_is_refused(value):
    structure, X, y, _ = make()
    structure.loss = lambda y_true, y: value
    found = re.escape(repr(value.item() if isinstance(value, np.generic) else value))
    message = f"loss of Coded must be a finite number >= 0; got {found} for example 0"
    with pytest.raises(ValueError, match=message):
        solver(structure, X, y)


@pytest.mark.parametrize("kind", [int, np.float32, np.int8, Fraction, Decimal, np.array])
def test_a_loss_may_be_a_number_of_any_type(kind):
    class Counted(Coded):
        def loss(self, y_true, y):
            return self.number(y_true != y)

    _, X, y, _ = make()
    results = []
    for own in (float, kind):
        Counted.number = staticmethod(own)
        mine = solver(Counted().fit(X, y), X, y)
        mine.run(np.tile(np.arange(7), 3))
        results.append(np.append(mine.weights, mine.loss))
    np.testing.assert_array_equal(*results)


def refused(feature, message, of_the_truth=False):
    """The joint feature of example 2 is this one where the label is another, or the true.

    At w = 0 the maximum is a wrong label.
    """
    structure, X, y, _ = make()

    def broken(x, label):
        if x is X[2] and (label == y[2]) == of_the_truth:
            return feature
        return Coded.joint_feature(structure, x, label)

    structure.joint_feature = broken
    with pytest.raises(ValueError, match=message):
        solver(structure, X, y).run(np.array([2]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("index", NO_INDICES.values(), ids=NO_INDICES)
def test_an_index_out_of_range_is_refused(index, layout):
    message = rf"^joint_feature of Coded must .* got .*{index(6)} for example 2\.$"
    row = with_index(layout, 6, index(6))
    refused(row, message)
    if layout == "csr":
        row.indices = row.indices.astype(np.int64)
        row.indptr = row.indptr.astype(np.int64)
        refused(row, message)


@pytest.mark.parametrize("indptr", [[0, 3], [1, 2], [0, -1], [0], [0, 1, 2]], ids=str)
def test_a_row_that_ends_elsewhere_is_refused(indptr):
    row = row_of(6, [0, 1])
    row.indptr = np.array(indptr, dtype=np.int32)
    refused(row, "joint_feature of Coded must have an indptr .* for example 2")


def test_indices_that_are_no_integers_are_refused():
    row = row_of(6, [0, 1])
    row.indices = np.array([0.0, 1.5])
    refused(row, "must have integers as indices; got dtype float64 for example 2")


class Sparse(Coded):
    """Its joint features in some layout."""

    def joint_feature(self, x, y):
        return self.layout(super().joint_feature(x, y))


def in_disorder(phi):
    """The row with unsorted indices, each twice with half of the value."""
    places = np.tile(np.arange(len(phi))[::-1], 2)
    return row_of(len(phi), places, phi[places] / 2)


@pytest.mark.parametrize(
    "layout",
    [
        in_disorder,
        lambda phi: list(phi),
        lambda phi: phi[:, np.newaxis],
        lambda phi: np.asfortranarray(phi[np.newaxis]),
        lambda phi: np.repeat(phi, 2)[::2],
        lambda phi: phi.astype(object),
        *(
            lambda phi, own=own: sparse.csr_array(phi[np.newaxis]).asformat(own)
            for own in ("csc", "coo", "bsr", "lil", "dok", "dia")
        ),
        lambda phi: sparse.coo_array(phi[:, np.newaxis]),
        lambda phi: sparse.csr_matrix(phi[np.newaxis]),
        lambda phi: sparse.coo_array(phi),
    ],
)
def test_joint_features_may_have_any_sound_layout(layout):
    _, X, y, _ = make()
    results = []
    for own in (lambda phi: phi, layout):
        structure = Sparse()
        structure.layout = own
        mine = solver(structure.fit(X, y), X, y)
        mine.run(np.tile(np.arange(7), 5))
        results.append(mine.weights.copy())
    np.testing.assert_allclose(*results, rtol=0, atol=1e-14)


@pytest.mark.parametrize("answer", [None, {1, 2}, {"a": {1}}], ids=str)
@pytest.mark.parametrize("method", ["loss_augmented_decode", "decode"])
def test_an_answer_that_is_no_labeling_is_refused(method, answer):
    structure, X, y, _ = make()
    setattr(structure, method, lambda *args: answer)
    message = rf"^{method} of Coded must be a.* for example \d\.$"
    with pytest.raises(ValueError, match=message):
        if method == "decode":
            structure.decode_batch(X, np.zeros(6))
        solver(structure, X, y).run(np.arange(7))


@pytest.mark.parametrize("n_weights", [0, -1, 2.5, None, True, "six"])
def test_a_length_that_is_none_is_refused(n_weights):
    class Odd(Coded):
        def fit(self, X, y):
            self.n_weights_ = n_weights
            return self

    _, X, y, _ = make()
    message = f"fit of Odd must set n_weights_.* got {n_weights!r}"
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(Odd()).fit(X, y)


def bounded(lower, upper):
    return {"weight_bounds": lambda self: (np.full(6, lower), upper)}


WRONG_METHODS = {
    "nothing checked": ({"check_data": lambda self, X, y=None: None},
                        "check_data of Broken must be a pair; got None"),
    "a labeling lost": ({"check_data": lambda self, X, y=None: (X, y and y[1:])},
                        "check_data of Broken must have 7 entries, .* got 6"),
    "no number of examples": ({"check_data": lambda self, X, y=None: (iter(X), y)},
                              "check_data of Broken must have"),
    "bounds of another length": (
        {"weight_bounds": lambda self: (np.zeros(5), np.ones(6))},
        r"weight_bounds of Broken must have shape \(6,\); got shape \(5,\)",
    ),
    "bounds that are not numbers": (
        bounded(np.nan, np.ones(6)),
        "weight_bounds of Broken must hold numbers; got nan at 0",
    ),
    "bounds that cross": (bounded(1.0, np.zeros(6)), "got 1.0 and 0.0 of weight 0"),
    "one bound": ({"weight_bounds": lambda self: 0.0}, "weight_bounds of Broken must be"),
    "no oracle": ({"make_oracle": lambda self, X, y: None},
                  "make_oracle of Broken must return a BlockOracle; got NoneType"),
    "an oracle of fewer examples": (
        {"make_oracle": lambda self, X, y: Structure.make_oracle(self, X[1:], y[1:])},
        "make_oracle of Broken must have n_blocks = 7; got 6",
    ),
    "weights that are no pair": ({"split_weights": lambda self, w: w},
                                 "split_weights of Broken must be a pair"),
    "weights that are no array": ({"split_weights": lambda self, w: (w.tolist(), None)},
                                  "split_weights of Broken must be a pair of arrays"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("methods", "message"), WRONG_METHODS.values(), ids=WRONG_METHODS
)
def test_what_other_methods_return_is_checked(methods, message):
    _, X, y, _ = make()
    broken = type("Broken", (Coded,), methods)()
    with pytest.raises((ValueError, TypeError), match=message):
        BCFWClassifier(broken, max_iter=2).fit(X, y)


@pytest.mark.parametrize(
    ("methods", "message"),
    [({"decode_batch": lambda self, X, w, n_threads=1: [0] * (len(X) - 1)},
      "decode_batch of Broken must have 7 entries, .* got 6"),
     ({"decode_batch": lambda self, X, w, n_threads=1: None}, "got None"),
     ({"join_weights": lambda self, coef, intercept: coef[1:]},
      r"join_weights of Broken must have shape \(6,\); got shape \(5,\)"),
     ({"loss": lambda self, y_true, y: None},
      "loss of Broken must be a finite number >= 0; got None for example 0")],
)  # fmt: skip
def test_what_predictions_ask_for_is_checked(methods, message):
    _, X, y, _ = make()
    model = BCFWClassifier(Coded(), tol=0.1, random_state=0).fit(X, y)
    broken = type("Broken", (Coded,), methods)()
    vars(broken).update(vars(model.structure_))
    model.structure_ = broken
    with pytest.raises(ValueError, match=message):
        model.score(X, y)


@pytest.mark.parametrize(
    "fit",
    [
        lambda own, X, y: BCFWClassifier(own).fit(X, y),
        lambda own, X, y: BCFWClassifier(own, l1_ratio=0.5).fit(X, y),
        lambda own, X, y: BCFWClassifier(own, solver_options={"algorithm": "batch"}).fit(
            X, y
        ),
        lambda own, X, y: BCFWClassifierCV(own, cv=2).fit(X, y),
        lambda own, X, y: bcfw_path(X, y, structure=own),
        lambda own, X, y: BMRMClassifier(structure=own).fit(X, y),
        lambda own, X, y: SlackRescaledSSVM(
            own, solver_options={"search": "bisecting"}
        ).fit(X, y),
    ],
)
def test_every_estimator_of_structures_refuses_what_is_out_of_range(fit):
    class Off(Coded):
        def joint_feature(self, x, y):
            phi = super().joint_feature(x, y)
            return row_of(6, [*range(5), 6], phi) if self.index(y) else phi

    _, X, _, _ = make()
    with pytest.raises(ValueError, match="joint_feature of Off .* got the index 6"):
        fit(Off(), X, [0] * len(X))


@pytest.mark.parametrize("of_the_truth", [True, False])
@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (np.ones(7), r"shape \(6,\).*example 2"),
        (np.ones(5), r"shape \(6,\).*example 2"),
        (np.full(6, np.nan), "finite; got nan at 0 for example 2"),
        (np.array([0, 0, 0, -np.inf, 0, 0]), "finite; got -inf at 3 for example 2"),
        (row_of(6, [1, 4], [0.0, np.inf]), "finite; got inf at 4 for example 2"),
        (np.ones(6) + 1j, "real numbers; got dtype complex128 for example 2"),
        (row_of(6, [0], [1j]), "real numbers; got dtype complex128 for example 2"),
        (np.array(list("abcdef")), "real numbers; got dtype <U1 for example 2"),
        (np.array([[1], [1, 2], 0, 0, 0, 0], dtype=object), "numbers .*example 2"),
        ([[1.0], [2.0, 3.0]], "be an array .*example 2"),
        (None, r"vector .* got shape \(\) for example 2"),
        ("six", r"vector .* got shape \(\) for example 2"),
        (np.ones((2, 3)), r"vector .* got shape \(2, 3\) for example 2"),
        (sparse.csr_array((1, 7)), r"shape \(6,\); got shape \(1, 7\) for example 2"),
        (sparse.csr_array((2, 6)), r"vector .* got shape \(2, 6\) for example 2"),
        (sparse.csr_array((0, 6)), r"vector .* got shape \(0, 6\) for example 2"),
    ],
)
def test_a_joint_feature_unlike_that_of_fit_is_refused(feature, message, of_the_truth):
    refused(feature, message, of_the_truth)


@pytest.mark.parametrize("shape", [(2, 3), (0,), ()])
def test_a_joint_feature_that_is_no_vector_is_refused(shape):
    structure, X, y, _ = make()
    structure.joint_feature = lambda x, y: np.ones(shape)
    with pytest.raises(ValueError, match="of Coded must be a vector .* for example 0"):
        structure.fit(X, y)


@pytest.mark.parametrize(
    ("name", "n_arguments"),
    [
        ("joint_feature", 2),
        ("loss", 2),
        ("decode", 2),
        ("loss_augmented_decode", 3),
        ("constrained_decode", 6),
    ],
)
def test_a_method_that_is_missing_is_named(name, n_arguments):
    with pytest.raises(NotImplementedError, match=f"does not define {name}|{name}"):
        getattr(Structure(), name)(*[None] * n_arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_fit_predict_and_score_labels_of_any_form(kind):
    structure, X, y, listed = make(kind, n=12)
    # A clone is fitted, and has what the class says of lengths.
    kind_of = Uneven if structure.variable_length else Coded
    model = BCFWClassifier(kind_of(kind), tol=0.05, random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == (12,)
    best = [(phi @ model.coef_).argmax() for phi in listed.phi]
    assert list(map(structure.index, predicted)) == best
    losses = [structure.loss(*pair) for pair in zip(y, predicted, strict=True)]
    assert model.score(X, y) == pytest.approx(1.0 - np.mean(losses))
    weights = np.arange(12.0)
    expected = 1.0 - np.average(losses, weights=weights)
    assert model.score(X, y, weights) == pytest.approx(expected)
