"""Paths of up to a million positions against products of matrices in long double."""

from functools import cached_property

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import BCFWClassifier, BMRMClassifier, CRFClassifier
from sklearn_structsvm.structures import ChainStructure, GraphStructure, TreeStructure

# Matrices that are multiplied at once: they are read a few times.
PIECE = 2**14
UNIT = np.finfo(float).eps


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        np.finfo(np.longdouble).eps >= UNIT, reason="long double is no longer than double"
    ),
]


class Path:
    """A path with random scores, and what follows from them in long double.

    With the matrices M_t[p, c] = exp(transition[p, c] + theta[t, c]), Z is a product, and
    products of many matrices are made by halves. Each is divided by its largest entry,
    whose logarithm is kept.
    """

    def __init__(self, T, k, scale, rng):
        self.T, self.k = T, k
        self.theta = scale * rng.normal(size=(T, k))
        self.transition = scale * rng.normal(size=(k, k))
        self.y = rng.integers(k, size=T)
        self.y[:k] = np.arange(k)
        self.places = [0, 1, T // 3, T // 2, T - 2, T - 1]

    def structure(self, kind):
        options = {"bias": False}
        if kind is ChainStructure:
            options |= {"first_bias": False, "last_bias": False}
        if kind is TreeStructure:
            options |= {"root_bias": False}
        return kind(**options).fit([self.item(kind)], [self.y])

    def item(self, kind):
        if kind is ChainStructure:
            return self.theta
        nodes = np.arange(self.T)
        if kind is TreeStructure:
            return self.theta, nodes - 1
        return self.theta, np.column_stack([nodes[:-1], nodes[1:]])

    @property
    def w(self):
        return np.concatenate([np.eye(self.k).ravel(), self.transition.ravel()])

    @cached_property
    def size(self):
        """The size of the terms of log Z, which rounding errors are a share of."""
        return float(np.abs(self.theta).max(axis=1).sum()) + self.T * float(
            np.abs(self.transition).max()
        )

    def score(self, y):
        """⟨θ, μ(y)⟩."""
        theta, transition = map(np.longdouble, (self.theta, self.transition))
        return theta[np.arange(self.T), y].sum() + transition[y[:-1], y[1:]].sum()

    def matrices(self, start, stop):
        """M_t / exp(the largest scores), and the sum of these."""
        theta = np.longdouble(self.theta[start:stop])
        transition = np.longdouble(self.transition)
        highest, widest = theta.max(axis=1, keepdims=True), transition.max()
        M = np.exp(transition - widest) * np.exp(theta - highest)[:, np.newaxis]
        return M, highest.sum() + len(theta) * widest

    def product(self, start, stop):
        """The product of M_t from start to stop - 1, and its logarithmic scale."""
        total, log = np.eye(self.k, dtype=np.longdouble), np.longdouble(0.0)
        for first in range(start, stop, PIECE):
            M, shift = self.matrices(first, min(first + PIECE, stop))
            log += shift
            while len(M) > 1:
                rest = M[len(M) // 2 * 2 :]
                M = np.einsum("tij,tjk->tik", M[: len(M) // 2 * 2 : 2], M[1::2])
                largest = M.max(axis=(1, 2), keepdims=True)
                log += np.log(largest).sum()
                M = np.concatenate([M / largest, rest])
            total = total @ M[0]
            log += np.log(total.max())
            total /= total.max()
        return total, log

    @cached_property
    def sums(self):
        """log Z, and rows in proportion to forward and backward sums at the places."""
        theta = np.longdouble(self.theta[0])
        forward, log_z = [np.exp(theta - theta.max())], theta.max()
        products = [
            self.product(here + 1, there + 1)
            for here, there in zip(self.places[:-1], self.places[1:], strict=True)
        ]
        for M, log in products:
            forward.append(forward[-1] @ M)
            log_z += log + np.log(forward[-1].max())
            forward[-1] = forward[-1] / forward[-1].max()
        log_z += np.log(forward[-1].sum())
        backward = [np.ones(self.k, dtype=np.longdouble)]
        for M, _ in reversed(products):
            backward.append(M @ backward[-1])
            backward[-1] = backward[-1] / backward[-1].max()
        return log_z, forward, backward[::-1]

    def marginals(self):
        """The probabilities of the labels at the places."""
        _, forward, backward = self.sums
        rows = [ahead * after for ahead, after in zip(forward, backward, strict=True)]
        return np.array([row / row.sum() for row in rows], dtype=float)

    def best_score(self):
        """The largest score of a labeling, as sums in the place of products."""
        theta, transition = np.longdouble(self.theta), np.longdouble(self.transition)
        best = theta[0]
        # The sums of all pairs of k x k matrices take room.
        piece = PIECE * 27 // self.k**3 + 1
        for first in range(1, self.T, piece):
            M = transition + theta[first : first + piece][:, np.newaxis]
            while len(M) > 1:
                rest = M[len(M) // 2 * 2 :]
                left, right = M[: len(M) // 2 * 2 : 2], M[1::2]
                sums = left[:, :, :, np.newaxis] + right[:, np.newaxis]
                M = np.concatenate([sums.max(axis=2), rest])
            best = (best[:, np.newaxis] + M[0]).max(axis=0)
        return best.max()


# Scores that are summed as numbers, and by logarithms.
# Wider ones would underflow in long double.
SIZES = [(1_000_000, 3, 1.0), (30_000, 3, 300.0), (300, 50, 1.0), (150, 50, 200.0)]
# Trees are checked and sorted in Python, node by node: a million take half a minute.
each_path = pytest.mark.parametrize(
    ("path", "kind"),
    [(size, ChainStructure) for size in SIZES]
    + [(size, TreeStructure) for size in SIZES if size[0] <= 100_000],
    indirect=["path"],
    scope="module",
)


@pytest.fixture(scope="module")
def path(request):
    T, k, scale = request.param
    return Path(T, k, scale, new_rng(T))


@each_path
def test_sums_over_paths_are_those_of_products_in_long_double(path, kind):
    structure, item = path.structure(kind), path.item(kind)
    nodes = structure.marginals([item], path.w)[0]
    scale = np.abs(path.theta).max()
    expected = path.marginals()
    assert nodes[path.places] == pytest.approx(expected, abs=1e-11 + 20 * UNIT * scale)
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
    log_p = structure.log_probabilities([item], [path.y], path.w)[0]
    expected = float(path.score(path.y) - path.sums[0])
    # Errors of a sum of T terms are of random signs: √T of them, not T.
    rounding = 20 * UNIT * np.sqrt(path.T) * path.size
    assert log_p == pytest.approx(expected, rel=0.0, abs=rounding)


@each_path
def test_entropies_of_paths_are_sums_of_those_of_their_steps(path, kind):
    """H = log Z - E f, with the expectations of sums that were compared above."""
    structure, item = path.structure(kind), path.item(kind)
    nodes = structure.marginals([item], path.w)[0]
    oracle = structure.make_oracle([item], [path.y])
    pairs = oracle.log_loss(np.ones(1), path.w)[1][-(path.k**2) :].reshape(path.k, path.k)
    np.add.at(pairs, (path.y[:-1], path.y[1:]), 1.0)
    expected = np.longdouble(nodes) * path.theta
    expected = expected.sum() + (np.longdouble(pairs) * path.transition).sum()
    found = structure.entropies([item], path.w)[0]
    rounding = 50 * UNIT * np.sqrt(path.T) * path.size
    assert found == pytest.approx(float(path.sums[0] - expected), rel=0.0, abs=rounding)
    assert found >= 0.0


@each_path
def test_the_best_labelings_of_paths_are_the_best_in_long_double(path, kind):
    structure, item = path.structure(kind), path.item(kind)
    best = path.best_score()
    rounding = UNIT * np.sqrt(path.T) * path.size
    found = structure.decode(item, path.w)
    assert float(best - path.score(found)) <= rounding
    labelings, scores = structure.k_best(item, path.w, 4)
    assert (labelings[0] == found).all() or scores[0] == scores[1]
    assert (np.diff(scores) <= 0.0).all()
    assert len({labels.tobytes() for labels in labelings}) == 4
    for labels, score in zip(labelings, scores, strict=True):
        assert float(path.score(labels)) == pytest.approx(score, abs=100 * rounding)
    # The second best differs somewhere, where it is the best with its label.
    most = structure.max_marginals(item, path.w)
    assert np.abs(most.max(axis=1) - scores[0]).max() <= 100 * rounding
    others = np.where(np.arange(path.k) == labelings[0][:, np.newaxis], -np.inf, most)
    assert others.max() == pytest.approx(scores[1], abs=100 * rounding)


@pytest.mark.parametrize(("T", "scale"), [(30_000, 1.0), (10_000, 100.0)])
def test_spans_of_long_chains_have_their_probabilities(T, scale):
    path = Path(T, 3, scale, new_rng(3))
    structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
    structure.fit([path.theta], [np.array(["B-x", "I-x", "O"])[path.y]])
    tags = structure.span_tables()
    joins = tags.goes_on.astype(bool)
    spans = structure.spans(path.theta, path.w, tags, threshold=0.2)
    assert spans
    chosen = [spans[len(spans) * i // 4] for i in range(1, 4)]
    for start, stop, _, probability in chosen:
        path.places = [0, start - 1, stop, T - 1]
        vars(path).pop("sums", None)
        _, forward, backward = path.sums
        M, _ = path.matrices(start, stop + 1)
        run = forward[1] @ np.where(joins, 0.0, M[0])
        total = forward[1] @ M[0]
        run[tags.types < 0] = 0.0
        for step in M[1:-1]:
            run, total = run @ np.where(joins, step, 0.0), total @ step
            run, total = run / total.max(), total / total.max()
        run, total = run @ np.where(joins, 0.0, M[-1]), total @ M[-1]
        expected = float(run @ backward[2] / (total @ backward[2]))
        assert probability == pytest.approx(expected, abs=1e-11 + 100 * UNIT * scale)


@pytest.mark.parametrize("of", [ChainStructure, TreeStructure, GraphStructure])
@pytest.mark.parametrize("make", [BCFWClassifier, CRFClassifier, BMRMClassifier])
def test_a_long_path_is_fitted_by_default(make, of):
    """One path whose labels are three, of which two are rare."""
    rng = new_rng()
    path = Path(4_000, 3, 1.0, rng)
    path.y = rng.choice(3, path.T, p=[0.95, 0.03, 0.02])
    path.theta = np.eye(3)[path.y] + rng.normal(size=(path.T, 3))
    X, y = [path.item(of)], [path.y]
    options = {} if make is BMRMClassifier else {"random_state": 0}
    model = make(of(), **options).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert model.score(X, y) >= np.mean(path.y == 0) - 0.01
