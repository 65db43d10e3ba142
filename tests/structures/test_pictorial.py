"""PictorialStructure against enumeration, and as a user meets it."""

from itertools import product

import numpy as np
import pytest
from _cases import (
    LAMS,
    TOLERANCE,
    Case,
    check_batch_equals_single_calls,
    check_it,
    check_scores_of_the_solver,
    few,
    forests,
    quarters,
)
from _estimators import assert_same_optimum
from _problems import Problem, assert_same_weights
from _references import Listed, Textbook, visits
from _seeds import new_rng, new_seed
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_poses
from sklearn_structsvm.structures import PictorialStructure, check_structure
from sklearn_structsvm.structures._probe import Probe

COSTS = ("squared", "linear", "missed")


def feature(x, labeling, parents, anchors, unit):
    """φ part by part, from its definition."""
    T = anchors.shape[1]
    unary, bias = np.zeros((len(parents), T, x.shape[3])), np.zeros((len(parents), T))
    pairs, springs = np.zeros(anchors.shape[:3]), np.zeros((*anchors.shape[:3], 4))
    e = 0
    for v, (row, column, t) in enumerate(labeling):
        unary[v, t] = x[v if len(x) > 1 else 0, row, column]
        bias[v, t] = 1.0
        if parents[v] >= 0:
            up, left, s = labeling[parents[v]]
            down = (row - up - anchors[e, t, s, 0]) / unit
            across = (column - left - anchors[e, t, s, 1]) / unit
            pairs[e, t, s] = 1.0
            springs[e, t, s] = -down, -(down**2), -across, -(across**2)
            e += 1
    return np.concatenate([part.ravel() for part in (unary, bias, pairs, springs)])


def loss(truth, labeling, cost, radius, reference, normalize):
    if reference is not None:
        a, b = (np.array(truth[part][:2]) for part in reference)
        radius = radius * np.hypot(*(a - b))
    total = 0.0
    for true, found in zip(truth, labeling, strict=True):
        squared = (true[0] - found[0]) ** 2 + (true[1] - found[1]) ** 2
        if cost == "missed":
            total += squared > radius * radius
        elif squared:
            share = min(1.0, squared / (radius * radius)) if radius else 1.0
            total += share if cost == "squared" else share**0.5
    return total / len(truth) if normalize else float(total)


def list_pictures(structure, X, y):
    """All labelings of each, with a type even where there is only one."""
    problem = Listed([], [], [], [])
    options = structure.get_params()
    names = ("cost", "radius", "reference", "normalize_loss")
    own = [options[name] for name in names]
    for x, truth in zip(X, y, strict=True):
        places = list(product(*map(range, (*x.shape[1:3], structure.n_types))))
        labelings = list(product(places, repeat=len(truth)))
        problem.labelings.append(labelings)
        problem.truth.append(labelings.index(tuple(map(tuple, truth))))
        phi = [
            feature(x, c, structure.parents, structure.anchors_, structure.unit_)
            for c in labelings
        ]
        problem.phi.append(np.array(phi))
        problem.loss.append(np.array([loss(truth, c, *own) for c in labelings]))
    return problem


def as_given(labeling, n_types):
    return np.array(labeling)[:, : 2 + (n_types > 1)]


@st.composite
def pictorial_cases(draw):
    # Parts, types and positions, whose labelings are not more than 256.
    n_parts, T, areas = draw(
        st.sampled_from(
            [
                (1, 2, [(2, 3), (4, 1)]),
                (2, 1, [(2, 4), (1, 5), (3, 3)]),
                (2, 2, [(2, 3), (1, 7)]),
                (3, 1, [(2, 3), (1, 4), (5, 1)]),
                (4, 1, [(2, 2), (1, 3)]),
                (3, 2, [(1, 3), (2, 1)]),
            ]
        )
    )
    parents = draw(forests(n_parts))
    n, F = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    X, y = [], []
    for _ in range(n):
        shape = draw(st.sampled_from(areas))
        X.append(draw(quarters((draw(st.sampled_from([1, n_parts])), *shape, F))))
        columns = [st.integers(0, size - 1) for size in (*shape, T)]
        y.append(draw(st.lists(st.tuples(*columns), min_size=n_parts, max_size=n_parts)))
    E = int((parents >= 0).sum())
    structure = PictorialStructure(
        parents.tolist(), T, anchors=draw(st.none() | quarters((E, T, T, 2))),
        convex=draw(st.booleans()), cost=draw(st.sampled_from(COSTS)),
        radius=draw(st.sampled_from([0.0, 1.0, 1.5, 2.0, 100.0])),
        reference=draw(st.sampled_from([None, (0, n_parts - 1)])),
        normalize_loss=draw(st.booleans()),
    )  # fmt: skip
    given_y = [as_given(labeling, T) for labeling in y]
    layout = draw(st.sampled_from([np.asarray, np.asfortranarray, np.ndarray.tolist]))
    X_given, y_given = structure.check_data([layout(x) for x in X], given_y)
    structure.fit(X_given, y_given)
    listed = list_pictures(structure, X, y)
    names = [[as_given(c, T) for c in every] for every in listed.labelings]
    w = draw(quarters(listed.d))
    return Case(structure, X_given, y_given, X_given, names, listed, w)


@settings(max_examples=18)
@given(pictorial_cases())
def test_features_and_losses_are_as_defined_and_decoding_is_exact(case):
    """Whatever the sign of the weights."""
    for i, (x, y) in enumerate(zip(case.items, case.y, strict=True)):
        for c, name in [*enumerate(case.names[i])][i::7]:
            found = case.structure.joint_feature(x, name)
            np.testing.assert_allclose(found, case.listed.phi[i][c], rtol=0, atol=1e-12)
            assert abs(case.structure.loss(y, name) - case.listed.loss[i][c]) <= TOLERANCE
    check_scores_of_the_solver(case)
    check_batch_equals_single_calls(case)
    oracle = case.oracle()
    for i in range(case.listed.n):
        for lam in LAMS:
            labels, score, loss, _ = Probe(oracle, i, case.w).best(lam)
            best = case.listed.values(i, case.w, lam).max()
            assert abs(score + lam * loss - best) <= 1e-11
            name = case.structure._decoded(labels)[0]
            assert case.listed.loss[i][case.place(i, name)] == pytest.approx(loss)


@few
@given(pictorial_cases())
def test_it_is_what_training_takes_it_for(case):
    check_it(case)


def pictures(n=6, n_types=1, n_features=2, seed=0, shape=(2, 3), n_parts=3):
    """Random ones, small enough to be listed."""
    rng = new_rng(seed)
    X = [rng.normal(size=(n_parts, *shape, n_features)) for _ in range(n)]
    high = [*shape, n_types][: 2 + (n_types > 1)]
    return X, [rng.integers(high, size=(n_parts, len(high))) for _ in range(n)]


def problem_of(structure, X, y):
    X, y = structure.check_data(X, y)
    structure.fit(X, y)
    T = structure.n_types
    full = y if T > 1 else [np.pad(labeling, [(0, 0), (0, 1)]) for labeling in y]
    return Problem(structure, X, y, list_pictures(structure, X, full))


@pytest.mark.parametrize("step", ["fw", "pairwise"])
@pytest.mark.parametrize("n_types", [1, 2])
def test_iterates_are_those_of_algorithm_9_and_keep_to_the_bounds(n_types, step):
    shape = (2, 3) if n_types == 1 else (1, 3)
    X, y = pictures(n_types=n_types, shape=shape)
    problem = problem_of(PictorialStructure([1, -1, 1], n_types), X, y)
    lower, upper = problem.structure.weight_bounds()
    # Some of the unary weights are given: at weights of 0 labelings would tie.
    given_w = np.arange(0, 6 * n_types, 2)
    lower[given_w] = upper[given_w] = new_rng(2).normal(scale=0.3, size=len(given_w))
    options = {"step": step, "lower": lower, "upper": upper}
    reference = Textbook(problem.listed, 0.05, **options).run(visits(len(X), passes=10))
    assert len(reference.visited) > 5 * len(X)
    solver = problem.solver(0.05, **options)
    for block in reference.visited:
        solver.run(np.array([block]))
        parts = problem.structure.weight_parts(solver.weights)
        assert parts["deformation"][..., [1, 3]].min() >= 0.0
    assert_same_weights(solver.weights, reference.w, 1e-11)


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("step", ["auto", "fw", "pairwise", "away", "corrective"])
def test_certificates_are_never_below_the_truth(step, convex):
    X, y = pictures()
    structure = PictorialStructure([-1, 0, 1], convex=convex, radius=1.5)
    model = BCFWClassifier(structure, C=1.0, step=step, tol=0.02, random_state=0)
    model.set_params(max_iter=10**5).fit(X, y)
    problem = problem_of(structure, X, y)
    listed, lam = problem.listed, 1.0 / len(X)
    assert model.dual_gap_ <= 0.02
    assert model.objective_ == pytest.approx(listed.primal(model.coef_, lam), rel=1e-9)
    lower, upper = model.structure_.weight_bounds() or (-np.inf, np.inf)
    assert (model.coef_ >= lower).all()
    rng = new_rng(1)
    for scale in (0.0, 0.01, 0.1, 1.0):
        w = model.coef_ + scale * rng.normal(size=len(model.coef_))
        assert listed.primal(np.clip(w, lower, upper), lam) >= model.dual_objective_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("search", ["binary", "bisecting"])
def test_slack_rescaling_is_certified_by_searches_that_ask_the_max_oracle(search):
    X, y = pictures(n=4)
    structure = PictorialStructure([-1, 0, 1])
    # Such a search is not exact, and may leave a gap.
    model = SlackRescaledSSVM(
        structure, solver_options={"search": search}, C=1.0, tol=0.01, max_iter=50
    )
    model.set_params(random_state=0).fit(X, y)
    squares = model.structure_.weight_parts(model.coef_)["deformation"][..., [1, 3]]
    assert squares.min() >= 0.0
    listed = problem_of(structure, X, y).listed.slack_rescaled()
    truth = listed.primal(model.coef_, 1.0 / len(X))
    assert model.dual_objective_ <= truth + 1e-9 <= model.objective_ + 2e-9


@pytest.mark.parametrize("shape", [(70, 40), (20, 80)])
def test_large_grids_have_the_best_labeling_of_a_double_loop(shape):
    rng = new_rng(0)
    X = [rng.normal(size=(2, *shape, 1))]
    y = [rng.integers(shape, size=(2, 2))]
    structure = PictorialStructure([-1, 0], anchors=[[[[3.5, -2.0]]]])
    X, y = structure.check_data(X, y)
    structure.fit(X, y)
    for convex in (True, False):
        w = rng.normal(size=structure.n_weights_)
        squares = structure.weight_parts(w)["deformation"]
        squares[:] *= [[[[0.1, 0.02, 0.1, 0.02]]]]
        if convex:
            squares[:] = abs(squares)
        labels = structure.decode(X[0], w)
        own, below = (w[part] * X[0][part, ..., 0] + w[2 + part] for part in range(2))
        best = -np.inf
        for row, column in product(*map(range, shape)):
            d = np.indices(shape) - np.array([row + 3.5, column - 2.0]).reshape(2, 1, 1)
            d /= structure.unit_
            a, b, c, e = squares[0, 0, 0]
            costs = a * d[0] + b * d[0] ** 2 + c * d[1] + e * d[1] ** 2
            best = max(best, own[row, column] + (below - costs).max())
        found = structure.joint_feature(X[0], labels) @ w - w[4]
        assert found == pytest.approx(best, abs=1e-9)


def test_types_are_learned_and_anchors_are_means():
    rng = new_rng(0)
    # A child to the left of its parent, of type 0, or two below it, of type 1.
    X, y = [], []
    for k in range(30):
        t = k % 2
        root = rng.integers(3, 6, size=2)
        child = root + [(0, -2), (2, 0)][t]
        x = 0.1 * rng.normal(size=(2, 9, 9, 2))
        x[0, *root, 0] += 1.0
        x[1, *child, t] += 1.0
        X.append(x)
        y.append(np.array([[*root, 0], [*child, t]]))
    structure = PictorialStructure([-1, 0], 2)
    model = BCFWClassifier(structure, C=10.0, tol=0.01, random_state=0).fit(X, y)
    anchors = model.structure_.anchors_
    np.testing.assert_allclose(anchors[0, :, 0], [[0, -2], [2, 0]])
    # No parent is of type 1: its anchors are those of the edge.
    np.testing.assert_allclose(anchors[0, :, 1], [[1, -1], [1, -1]])
    assert model.structure_.unit_ == pytest.approx(np.sqrt(80 / 6))
    assert (np.stack([*model.predict(X)]) == np.stack(y)).all(axis=(1, 2)).mean() > 0.9
    again = clone(structure).set_params(anchors=anchors + 1.0).fit(X, y)
    np.testing.assert_array_equal(again.anchors_, anchors + 1.0)


def test_a_score_is_the_share_of_parts_within_the_radius():
    y = [np.array([[0, 0], [0, 4], [3, 3]])]
    found = [np.array([[1, 0], [0, 6], [3, 3]])]
    parents = [-1, 0, 0]
    for radius, reference, share in [
        (1.0, None, 2 / 3),
        (2.0, None, 1.0),
        (0.0, None, 1 / 3),
        (0.25, (0, 1), 2 / 3),
        (0.5, (1, 0), 1.0),
    ]:
        structure = PictorialStructure(parents, radius=radius, reference=reference)
        assert structure.score(y, found) == pytest.approx(share)
    structure = PictorialStructure(parents, radius=1.0)
    assert structure.score(y * 2, [*found, *y], [1.0, 3.0]) == pytest.approx(11 / 12)


def poses(n=12, **options):
    return make_poses(n, shape=(18, 14), random_state=new_seed(0), **options)


def test_single_precision_has_the_optimum_of_the_same_numbers():
    X, y = pictures()
    X = [x.astype(np.float32) for x in X]
    model = BCFWClassifier(PictorialStructure([-1, 0, 1]), C=1.0, random_state=0)
    wide = clone(model).fit([x.astype(float) for x in X], y)
    np.testing.assert_array_equal(model.fit(X, y).coef_, wide.coef_)


def test_a_dual_state_has_the_size_of_w_and_not_of_the_positions():
    data = poses(4)
    structure = PictorialStructure(data.parents)
    X, y = structure.check_data(data.X, data.y)
    oracle = structure.fit(X, y).make_oracle(X, y)
    assert oracle.get_blocks().shape == (4, structure.n_weights_)
    assert structure.n_weights_ < X[0].size


def test_a_labeling_off_the_grid_of_its_image_is_refused():
    X, y = pictures(n=1)
    other, z = pictures(n=1, shape=(4, 4))
    structure = PictorialStructure([-1, 0, 1])
    X, y = structure.check_data(X + other, y + z)
    oracle = structure.fit(X, y).make_oracle(X, y)
    last = np.array([0, 1, 2] * 2 + [0, 3, 3], dtype=np.intc)
    np.testing.assert_array_equal(oracle.labeling_from_object(1, last), last)
    with pytest.raises(
        ValueError, match=r"labeling of example 0 must be .* \[0, 2\); got 3"
    ):
        oracle.labeling_from_object(0, last)


@pytest.mark.parametrize("unit", [0.0, -1.0, np.nan])
def test_a_unit_that_is_none_is_refused(unit):
    X, y = pictures(n=2)
    model = BCFWClassifier(PictorialStructure([-1, 0, 1]), tol=0.1, random_state=0)
    model.fit(X, y).structure_.unit_ = unit
    with pytest.raises(ValueError, match="unit_? must be"):
        model.predict(X)


def test_poses_in_parts_have_the_optimum_of_poses_in_memory():
    bag = pytest.importorskip("dask.bag")
    X, y = pictures(n=8)
    structure = PictorialStructure([-1, 0, 1], anchors=np.zeros((2, 1, 1, 2)))
    model = BCFWClassifier(
        structure, step="corrective", C=0.1, tol=1e-5, max_iter=10**4, random_state=0
    )
    # The unit is learned from the first part.
    X, y = X + X, y + y
    far = clone(model).fit(*[bag.from_sequence(items, npartitions=2) for items in (X, y)])
    assert_same_optimum(far, clone(model).fit(X, y), 0.1 * len(X))


def test_check_structure_takes_poses_too_many_to_list():
    data = poses(3)
    check_structure(PictorialStructure(data.parents), data.X, data.y, n_trials=2)


MAPS, PLACES = np.ones((2, 3, 4, 1)), [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (MAPS[0], r"X\[1\] must have shape \(n_parts, n_rows, .* got shape \(3, 4, 1\)"),
        (np.ones((3, 3, 4, 1)), r"X\[1\] has maps of 3 parts, but parents has 2"),
        (np.ones((2, 3, 4, 2)), r"X\[1\] has 2 features, but there were 1 in X\[0\]"),
        (MAPS[:, :0], r"X\[1\] is empty, of shape \(2, 0, 4, 1\)"),
        (MAPS * np.nan, r"X\[1\] must be finite"),
        (MAPS.astype(str), r"X\[1\] must hold numbers"),
        ([[1.0], [1.0, 2.0]], r"X\[1\] must be an array"),
    ],
)
def test_maps_that_do_not_fit_are_refused(x, message):
    model = BCFWClassifier(PictorialStructure([-1, 0]))
    with pytest.raises(ValueError, match=message):
        model.fit([MAPS, x], [PLACES] * 2)


@pytest.mark.parametrize(
    ("labeling", "message"),
    [
        ([[0, 1]], r"y\[1\] must have shape \(2, 2\); got \(1, 2\)"),
        ([[0, 1, 0], [2, 3, 0]], r"y\[1\] must have shape \(2, 2\); got \(2, 3\)"),
        ([[0, 1], [3, 3]], r"y\[1\] has the row 3 for part 1; there are 0 to 2"),
        ([[0, -1], [2, 3]], r"y\[1\] has the column -1 for part 0"),
        ([[0.0, 1.0], [2.0, 3.0]], r"y\[1\] must hold integers, \(row, column\)"),
        ([[0, 1], [2]], r"y\[1\] must be an array"),
    ],
)
def test_labelings_that_do_not_fit_are_refused(labeling, message):
    model = BCFWClassifier(PictorialStructure([-1, 0]))
    with pytest.raises(ValueError, match=message):
        model.fit([MAPS] * 2, [PLACES, labeling])


def test_types_that_do_not_exist_are_refused():
    model = BCFWClassifier(PictorialStructure([-1, 0], n_types=2))
    with pytest.raises(ValueError, match=r"y\[0\] has the type 2 for part 1"):
        model.fit([MAPS], [[[0, 1, 0], [2, 3, 2]]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"parents": []}, "parents is empty"),
        ({"parents": [[-1], [0]]}, r"parents must have shape \(n_parts,\)"),
        ({"parents": [1, 0]}, "parents has a cycle"),
        ({"parents": [-1, 2]}, "parents has the parent 2 for node 1"),
        ({"parents": [-1.0, 0.0]}, "parents must hold integers"),
        ({"n_types": 0}, "n_types must be"),
        ({"anchors": np.zeros((1, 2))}, r"anchors must have shape \(1, 1, 1, 2\)"),
        ({"radius": -1.0}, "radius == -1.0"),
        ({"radius": np.inf}, "radius must be finite"),
        ({"reference": (0, 2)}, "Each part of reference must be from 0 to 1; got 2"),
        ({"reference": (0,)}, r"reference must have shape \(2,\)"),
    ],
)
def test_parameters_that_are_none_are_refused(parameters, message):
    structure = PictorialStructure(**{"parents": [-1, 0]} | parameters)
    with pytest.raises(ValueError, match=message):
        BCFWClassifier(structure).fit([MAPS] * 2, [PLACES] * 2)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("parents", [{}, 1, 2], "parents must hold integers"),
        ("parents", [[-1], [0, 1]], "parents must be an array"),
        ("parents", [], "parents is empty"),
        ("n_types", "x", "PictorialStructure was changed after fit"),
        ("n_types", 2**40, "anchors_ must have shape"),
    ],
)
def test_a_structure_with_other_parameters_than_in_fit_is_refused(name, value, words):
    X, y = pictures(n=2)
    model = BCFWClassifier(PictorialStructure([-1, 0, 1]), tol=0.1, random_state=0)
    setattr(model.fit(X, y).structure_, name, value)
    with pytest.raises((ValueError, TypeError), match=words):
        model.predict(X)
