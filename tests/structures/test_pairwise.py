"""PairwiseMultilabelStructure against enumeration, linprog and scikit-learn."""

from itertools import combinations, product

import numpy as np
import pytest
from _cases import LAMS, candidate_points, dense
from _references import Listed, Textbook, flat_feature, visits
from _seeds import new_rng
from scipy import sparse
from scipy.optimize import linprog
from sklearn.metrics import mutual_info_score

from sklearn_structsvm import SlackRescaledSSVM
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import PairwiseMultilabelStructure
from sklearn_structsvm.structures._qpbo import RoofDuality
from sklearn_structsvm.structures.pairwise import pairwise_polytope

RELAXED = ["roof", "lp"]


@pytest.mark.parametrize("k", [5, 8, 11])
@pytest.mark.parametrize("equal", [True, False])
def test_nothing_changes_where_labels_are_many(k, equal):
    rng = new_rng(k)
    X, Y = rng.normal(size=(4, 2)), rng.integers(2, size=(4, k))
    costs = np.full((k, 2), 0.7) if equal else rng.random((k, 2))
    structure = PairwiseMultilabelStructure(label_costs=costs).fit(X, Y)
    w = rng.normal(size=structure.n_weights_)
    labelings = np.array(list(product((0, 1), repeat=k)))
    pair = structure.weight_parts(w)["pair"]
    first, second = structure.pairs_.T
    scores = X @ w[: 2 * k].reshape(2, k) @ labelings.T
    scores += sum(
        V[labelings[:, a], labelings[:, b]]
        for V, a, b in zip(pair, first, second, strict=True)
    )
    oracle = structure.make_oracle(X, Y)
    for i in range(4):
        wrong = labelings != Y[i]
        losses = wrong @ costs[np.arange(k), Y[i]]
        margins = scores[i] - scores[i][~wrong.any(axis=1)]
        _, s, g = candidate_points(oracle, i, w)
        assert (g * (1 + s)).max() == pytest.approx((losses * (1 + margins)).max())
        for lam in (0.0, 2.0):
            label = oracle.decode(w, lam).reshape(4, k)[i]
            place = np.flatnonzero((labelings == label).all(axis=1))
            assert (margins + lam * losses)[place] == pytest.approx(
                (margins + lam * losses).max()
            )
    np.testing.assert_array_equal(
        structure.decode_batch(X, w, n_threads=2), labelings[scores.argmax(axis=1)]
    )
    np.testing.assert_array_equal(
        structure.decision_function(X, w) > 0, structure.decode_batch(X, w)
    )


# ------------------------------------------------------------------ relaxation


def random_energy(k, seed, integers=False):
    """q, J and pairs for which every label is as good as its absence, but for noise."""
    rng = new_rng(seed)
    pairs = [pair for pair in combinations(range(k), 2) if rng.random() < 0.8]
    pairs = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    noise, J = rng.normal(size=k), 2 * rng.normal(size=len(pairs))
    if integers:
        noise, J = np.round(noise), 2 * np.round(J)
    share = np.bincount(pairs.ravel(), np.repeat(J, 2), k) / 2
    return noise - share, J, pairs


def value_of_relaxation(q, J, pairs):
    polytope = pairwise_polytope(len(q), pairs)
    c = np.append(q, J)
    A = polytope.A if len(polytope.b) else None
    b = polytope.b if len(polytope.b) else None
    return -linprog(-c, A_ub=A, b_ub=b, bounds=(0, 1), method="highs").fun


def assert_in_local_polytope(z, k, pairs):
    mu, both, tiny = z[:k], z[k:], 1e-9
    first, second = mu[pairs].T
    assert ((mu >= -tiny) & (mu <= 1 + tiny)).all()
    assert (both <= np.minimum(first, second) + tiny).all()
    assert (both >= np.maximum(first + second - 1, 0) - tiny).all()


@pytest.mark.parametrize("integers", [False, True])
def test_roof_duality_solves_the_relaxation(integers):
    settled = fractional = 0
    for k, seed in product((1, 2, 4, 7), range(10)):
        q, J, pairs = random_energy(k, seed, integers)
        z = RoofDuality(k, pairs).maximize(q, J)
        assert_in_local_polytope(z, k, pairs)
        assert set(z) <= {0.0, 0.5, 1.0}
        assert z @ np.append(q, J) == pytest.approx(value_of_relaxation(q, J, pairs))
        # Persistency: every best labeling has the labels that are settled, or where all
        # of them attract each other, some best one does.
        labelings = np.array(list(product((0, 1), repeat=k)))
        values = labelings @ q + labelings[:, pairs].prod(axis=2) @ J
        best = labelings[values >= values.max() - 1e-9]
        whole = z[:k] != 0.5
        has_them = (best[:, whole] == z[:k][whole]).all(axis=1)
        assert has_them.all() if (J < 0).any() else has_them.any()
        settled, fractional = settled + whole.sum(), fractional + (~whole).sum()
    assert settled > 0 and fractional > 0


def test_roof_duality_decides_all_of_a_tree_and_of_attracting_labels():
    for seed in range(8):
        q, J, pairs = random_energy(8, seed)
        tree = np.array([(a, a // 2) for a in range(1, 8)])
        assert set(RoofDuality(8, tree).maximize(q, J[:7])) <= {0.0, 1.0}
        assert set(RoofDuality(8, pairs).maximize(q, np.abs(J))) <= {0.0, 1.0}


def test_labels_that_are_not_settled_are_flipped_until_none_gains():
    for seed in range(8):
        q, J, pairs = random_energy(9, seed)
        roof = RoofDuality(9, pairs)
        Q = q + new_rng(seed).normal(size=(5, 9))
        labels, gains = roof.decode_all(Q, J)
        np.testing.assert_array_equal(roof.decode_all(Q, J, n_threads=2)[0], labels)
        np.testing.assert_array_equal(gains > 0, labels)
        dense_J = np.zeros((9, 9))
        dense_J[pairs[:, 0], pairs[:, 1]] = dense_J[pairs[:, 1], pairs[:, 0]] = J
        np.testing.assert_allclose(gains, Q + labels @ dense_J, rtol=0, atol=1e-12)
        for row, found in zip(Q, labels, strict=True):
            mu = roof.maximize(row, J)[:9]
            assert (found[mu != 0.5] == mu[mu != 0.5]).all()


def relaxed_problem(inference, seed=0, k=6, scale=1.0):
    rng = new_rng(seed)
    X, Y = rng.normal(size=(5, 3)), rng.integers(2, size=(5, k))
    costs = rng.random((k, 2)) + 0.2
    structure = PairwiseMultilabelStructure("all", inference, label_costs=costs)
    structure.fit(X, Y, bias=1.0)
    return structure, X, Y, scale * rng.normal(size=structure.n_weights_)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_features_and_losses_are_linear_in_the_labeling(layout):
    structure, X, Y, _ = relaxed_problem("roof", k=4)
    X = layout(X)
    labelings = np.array(list(product((0, 1), repeat=4)))
    shares = new_rng(0).dirichlet(np.ones(len(labelings)))
    both = labelings[:, structure.pairs_].prod(axis=2)
    mixed = np.append(shares @ labelings, shares @ both)
    phi = [dense(structure.joint_feature(X[[0]], y)) for y in labelings]
    np.testing.assert_allclose(
        dense(structure.joint_feature(X[[0]], mixed)), shares @ phi, rtol=0, atol=1e-14
    )
    losses = [structure.loss(Y[0], y) for y in labelings]
    assert structure.loss(Y[0], mixed) == pytest.approx(shares @ losses, rel=1e-14)


@pytest.mark.parametrize("inference", RELAXED)
def test_a_relaxed_oracle_bounds_all_labelings_and_keeps_its_word(inference):
    structure, X, Y, w = relaxed_problem(inference)
    labelings = list(product((0, 1), repeat=6))
    predicted = structure.decode_batch(X, w)
    np.testing.assert_array_equal(structure.decision_function(X, w) > 0, predicted)
    for x, truth in zip(X, Y, strict=True):
        for lam in LAMS:
            z = structure.loss_augmented_decode(x, truth, w, lam)
            assert_in_local_polytope(z, 6, structure.pairs_)

            def value(y, x=x, truth=truth, lam=lam):
                return w @ structure.joint_feature(x, y) + lam * structure.loss(truth, y)

            assert value(z) >= max(map(value, labelings)) - 1e-9


def reference_between(structure, x, truth, w, lam, alpha, beta):
    """max h + λ g over the local polytope between two rays, by linprog; or None."""
    k, pairs = Y_columns(structure), structure.pairs_
    (h, h0), (g, g0) = affine_margin_and_loss(structure, x, truth, w)
    polytope = pairwise_polytope(k, pairs)
    rows, limits = [beta * h - g], [g0 - beta * h0]
    rows.append(-h if alpha == np.inf else g - alpha * h)
    limits.append(h0 if alpha == np.inf else alpha * h0 - g0)
    result = linprog(
        -(h + lam * g), A_ub=sparse.vstack([polytope.A, np.array(rows)]),
        b_ub=np.append(polytope.b, limits), bounds=(0, 1), method="highs",
    )  # fmt: skip
    return None if result.status == 2 else -result.fun + h0 + lam * g0


def affine_margin_and_loss(structure, x, truth, w):
    """(h, h0) and (g, g0) with margin h·z + h0 and loss g·z + g0."""
    return [
        affine(f, Y_columns(structure) + len(structure.pairs_))
        for f in (
            lambda z: 1 + w @ (
                structure.joint_feature(x, z) - structure.joint_feature(x, truth)
            ),
            lambda z: signed_loss(structure, truth, z),
        )
    ]  # fmt: skip


def Y_columns(structure):
    return len(structure.classes_)


def signed_loss(structure, truth, z):
    costs = structure.label_costs_[np.arange(len(truth)), truth]
    return costs @ ((1 - 2 * truth) * (z[: len(truth)] - truth))


def affine(function, n):
    """Slope and value at zero of an affine function of n variables."""
    at_zero = function(np.zeros(n))
    return np.array([function(row) - at_zero for row in np.eye(n)]), at_zero


def margin_and_loss(structure, x, truth, w, z):
    change = structure.joint_feature(x, z) - structure.joint_feature(x, truth)
    return 1 + w @ change, structure.loss(truth, z)


def check_between(structure, x, truth, w, lam, alpha, beta):
    """The labeling between two rays, compared with the linear program; None for none."""
    expected = reference_between(structure, x, truth, w, lam, alpha, beta)
    z = structure.constrained_decode(x, truth, w, lam, alpha, beta)
    if expected is None:
        assert z is None
        return None
    assert_in_local_polytope(z, Y_columns(structure), structure.pairs_)
    margin, loss = margin_and_loss(structure, x, truth, w, z)
    assert beta * margin <= loss + 1e-8
    assert margin >= -1e-8 if alpha == np.inf else loss <= alpha * margin + 1e-8
    assert margin + lam * loss == pytest.approx(expected, rel=1e-7, abs=1e-7)
    return z


@pytest.mark.parametrize("inference", RELAXED)
def test_the_constrained_relaxation_is_the_linear_program_with_two_more_rows(inference):
    for seed in range(4):
        structure, X, Y, w = relaxed_problem(inference, seed, k=4, scale=0.3)
        rng = new_rng(seed)
        for x, truth in zip(X, Y, strict=True):
            lam = rng.choice([0.0, 0.5, 2.0])
            beta = rng.choice([0.0, 0.3, 1.5])
            alpha = beta + rng.choice([0.0, 0.2, 1.0, np.inf])
            check_between(structure, x, truth, w, lam, alpha, beta)


@pytest.mark.parametrize("inference", RELAXED)
def test_an_angle_turned_inside_out_is_empty(inference):
    structure, X, Y, w = relaxed_problem(inference)
    assert structure.constrained_decode(X[0], Y[0], w, 1.0, 0.5, 0.6) is None


# ------------------------------------------------- the compiled relaxation

PAIRS = [(0, 2), (2, 1), (0, 1)]


def vertices(k, pairs):
    """All half-integral points of the local polytope, its vertices among them."""
    points = []
    for mu in product([0.0, 0.5, 1.0], repeat=k):
        ends = [(max(0.0, mu[a] + mu[b] - 1.0), min(mu[a], mu[b])) for a, b in pairs]
        points += [[*mu, *both] for both in product(*ends)]
    return np.unique(points, axis=0)


def relaxed_feature(x, z, bias):
    mu, both = z[:3], z[3:]
    pairs = [
        [1 - mu[a] - mu[b] + p, mu[b] - p, mu[a] - p, p]
        for (a, b), p in zip(PAIRS, both, strict=True)
    ]
    return np.append(flat_feature(x, mu, bias), pairs)


def relaxed_listing(X, Y, costs, bias):
    labelings = list(vertices(3, PAIRS))
    truths = [np.append(t, [t[a] * t[b] for a, b in PAIRS]) for t in Y]
    return Listed(
        [labelings] * len(Y),
        [[np.array_equal(z, t) for z in labelings].index(True) for t in truths],
        [np.array([relaxed_feature(x, z, bias) for z in labelings]) for x in X],
        [np.abs(np.array(labelings)[:, :3] - t) @ costs[range(3), t] for t in Y],
    )


def small_relaxation(seed, layout=np.asarray, exclusive=False):
    rng = new_rng(seed)
    X, Y = 0.3 * rng.normal(size=(6, 2)), rng.integers(2, size=(6, 3))
    if exclusive:
        # Labels that repel one another are what makes a relaxation fractional.
        Y = np.eye(3, dtype=int)[rng.integers(3, size=6)]
    costs = rng.random((3, 2))
    structure = PairwiseMultilabelStructure(PAIRS, "roof", label_costs=costs)
    oracle = structure.fit(layout(X), Y, bias=1.5).make_oracle(layout(X), Y)
    return oracle, relaxed_listing(X, Y, costs, 1.5), X, Y, costs


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("step", ["fw", "pairwise", "away"])
def test_steps_of_the_relaxation_are_those_of_the_textbook(step, layout):
    fractional = (vertices(3, PAIRS) == 0.5).any(axis=1).tolist() * 6
    # Until one is used; away steps let go of it soon.
    for seed in range(1 if step == "away" else 10):
        oracle, listed, *_ = small_relaxation(seed, layout, exclusive=True)
        solver = BlockFrankWolfe(oracle, listed.uniform, 0.02, step=step)
        reference = Textbook(listed, 0.02, step=step).run(visits(6, passes=40))
        solver.run(reference.visited)
        np.testing.assert_allclose(
            solver.weights, reference.w, rtol=0, atol=1e-12 * np.abs(reference.w).max()
        )
        assert solver.loss == pytest.approx(reference.loss_blocks.sum(), rel=1e-12)
        used = [mass > 0 for alpha in reference.alpha for mass in alpha]
        if np.logical_and(used, fractional).any():
            break
    else:
        assert step == "away"


def largest_product(h, g):
    """max h g over the convex hull of points: over all lines between two of them."""
    dh, dg = np.subtract.outer(h, h), np.subtract.outer(g, g)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -(h * dg + g * dh) / (2 * dh * dg)
    share = np.clip(np.where(np.isfinite(share), share, 0.0), 0.0, 1.0)
    return ((h + share * dh) * (g + share * dg)).max()


@pytest.mark.parametrize("one", [0.3, 1.0, 5.0])
def test_a_mixture_of_two_vertices_is_the_most_violating_point(one):
    n_mixtures = n_vertices = 0
    for seed in range(8):
        oracle, listed, X, Y, costs = small_relaxation(seed)
        w = new_rng(seed).normal(size=listed.d)
        for i in range(6):
            margins = one + listed.values(i, w, 0.0)
            labelings, scores, losses = candidate_points(oracle, i, w, one)
            best = (losses * (one + scores)).argmax()
            assert losses[best] * (one + scores[best]) == pytest.approx(
                largest_product(margins, listed.loss[i]), rel=1e-12
            )
            n_mixtures += labelings[best][0] > 0
            n_vertices += labelings[best][0] == 0
            for labels, score, loss in zip(labelings, scores, losses, strict=True):
                # The second vertex's share, and then 2 a + 8 b of the two.
                share, ends = labels[0] / 2**30, labels[1:]
                z = ((1 - share) * (ends % 4) + share * (ends // 4)) / 2
                assert_in_local_polytope(z, 3, np.array(PAIRS))
                truth = listed.phi[i][listed.truth[i]]
                expected = w @ (relaxed_feature(X[i], z, 1.5) - truth)
                assert score == pytest.approx(expected, abs=1e-12)
                expected = np.abs(z[:3] - Y[i]) @ costs[range(3), Y[i]]
                assert loss == pytest.approx(expected, abs=1e-12)
    assert n_mixtures > 0 and n_vertices > 0


@pytest.mark.parametrize("inference", RELAXED)
def test_the_objective_of_slack_rescaling_is_that_of_the_vertices(inference):
    """It was up to 1.3e-3 above, by queries of linear programs that gave up."""
    structure, n = PairwiseMultilabelStructure(inference=inference), 8
    for C in (0.1, 10.0):
        rng = new_rng(0)
        X = rng.normal(size=(n, 3))
        Y = (rng.random((n, 3)) < 0.4).astype(int)
        model = SlackRescaledSSVM(structure, C=C, tol=1e-2, random_state=0).fit(X, Y)
        fitted, w = model.structure_, model.coef_
        Z = vertices(3, fitted.pairs_)
        violation = 0.0
        for x, truth in zip(X, Y, strict=True):
            (h, h0), (g, g0) = affine_margin_and_loss(fitted, x, truth, w)
            violation += max(largest_product(Z @ h + h0, Z @ g + g0), 0.0) / n
        objective = 0.5 / (C * n) * w @ w + violation
        # The searches of roof duality stop within search_rtol.
        assert model.objective_ == pytest.approx(objective, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize("one", [0.3, 1.0, 5.0])
def test_the_most_violating_point_is_found_by_linear_programs(one):
    for seed in range(6):
        structure, X, Y, w = relaxed_problem("lp", seed, k=3, scale=0.5)
        Z = vertices(3, structure.pairs_)
        for x, truth in zip(X, Y, strict=True):
            (h, h0), (g, g0) = affine_margin_and_loss(structure, x, truth, w)
            z = structure.slack_augmented_decode(x, truth, w, one)
            assert_in_local_polytope(z, 3, structure.pairs_)
            margin, loss = margin_and_loss(structure, x, truth, w, z)
            found = max((margin + one - 1.0) * loss, 0.0)
            expected = max(largest_product(Z @ h + h0 - 1.0 + one, Z @ g + g0), 0.0)
            assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_only_linear_programs_are_asked_for_the_most_violating_point():
    structure, X, Y, w = relaxed_problem("roof", 0, k=3, scale=0.5)
    assert not structure.has_slack_augmented_decode
    with pytest.raises(NotImplementedError, match="inference='lp' only; it has 'roof'"):
        structure.slack_augmented_decode(X[0], Y[0], w)


# -------------------------------------------------------------------- training


# ------------------------------------------------------------- pairs and errors


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_has_the_largest_mutual_information(seed):
    rng = new_rng(seed)
    hidden = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 5))
    Y = (hidden + rng.normal(size=(50, 5)) > 0.3).astype(int)
    structure = PairwiseMultilabelStructure("tree").fit(np.zeros((50, 1)), Y)

    shared = {
        (a, b): mutual_info_score(Y[:, a], Y[:, b]) for a, b in combinations(range(5), 2)
    }

    def information(edges):
        return sum(shared[tuple(edge)] for edge in edges)

    def spans(edges):
        reached = {0}
        for _ in edges:
            reached |= {v for edge in edges if reached & set(edge) for v in edge}
        return len(reached) == 5

    trees = filter(spans, combinations(combinations(range(5), 2), 4))
    assert spans(structure.pairs_)
    assert information(structure.pairs_) == pytest.approx(max(map(information, trees)))


def test_labels_without_any_information_have_a_tree_too():
    structure = PairwiseMultilabelStructure("tree").fit(np.zeros((4, 1)), np.ones((4, 3)))
    assert len(structure.pairs_) == 2
    alone = PairwiseMultilabelStructure("tree").fit(np.zeros((4, 1)), np.ones((4, 1)))
    assert alone.pairs_.shape == (0, 2)


@pytest.mark.parametrize(
    ("k", "inference"), [(18, "enumerate"), (19, "roof")], ids=["18", "19"]
)
def test_auto_enumerates_up_to_18_labels(k, inference):
    structure = PairwiseMultilabelStructure("tree")
    structure.fit(np.zeros((4, 1)), np.zeros((4, k), dtype=int))
    assert structure.inference_ == inference
