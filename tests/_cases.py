"""Small instances of the built-in structures, and claims about each of them.

Numbers are multiples of a quarter, so ties are frequent and sums are exact.
"""

from dataclasses import dataclass

import numpy as np
from _references import (
    CHAIN_PARTS,
    Listed,
    list_binary,
    list_chains,
    list_multiclass,
    list_multilabel,
    messy_csr,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    check_structure,
)
from sklearn_structsvm.structures._probe import Probe

# An example costs a dozen decodings of everything.
some = settings(max_examples=25)
# The same for `check_structure`, which makes more calls.
few = settings(max_examples=8)

LAMS = (0.0, 0.25, 1.0, 3.0)

# The rounding of reordered sums of a few quarters, and of thirds if losses are
# normalized.
TOLERANCE = 1e-12

NAMES = [
    ["dog", "cat", "zebra", "a rather long name"],
    [-7, 3, 40, 41],
    [10**12, 10**12 + 1, -(10**12), 0],
]


@dataclass
class Case:
    """A fitted structure, its data, and the same problem with all labelings listed.

    Attributes
    ----------
    X, y : what `make_oracle` takes
    items : list of what the single calls take as x
    names : list of labelings as the structure gives them, in the order of `listed`
    """

    structure: object
    X: object
    y: object
    items: list
    names: list
    listed: Listed
    w: np.ndarray

    def place(self, i, labeling):
        same = [np.array_equal(name, labeling) for name in self.names[i]]
        assert sum(same) == 1, f"{labeling!r} is no labeling of example {i}"
        return same.index(True)

    def truth(self, i):
        return self.names[i][self.listed.truth[i]]

    def oracle(self):
        return self.structure.make_oracle(self.X, self.y)


def quarters(shape, largest=8):
    return hnp.arrays(float, shape, elements=st.integers(-largest, largest)).map(
        lambda values: values / 4
    )


def costs(k, off_diagonal=True):
    """A cost matrix with zero diagonal, or None for the default one."""

    def zero_diagonal(values):
        values = np.abs(values)
        np.fill_diagonal(values, 0.0)
        return values

    return st.none() | quarters((k, k)).map(zero_diagonal)


@st.composite
def layouts(draw):
    """The forms of rows: dense, and CSR with unsorted indices and the like."""
    seed = draw(st.none() | st.integers(0, 99))
    return np.asarray if seed is None else lambda X: messy_csr(X, seed)


@st.composite
def single_label_cases(draw, structure, listing, k):
    n, d = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    X = draw(quarters((n, d)))
    y = draw(hnp.arrays(int, n, elements=st.integers(0, k - 1)))
    label_costs = draw(costs(k))
    bias = draw(st.sampled_from([0.0, 1.0, 2.5]))
    names = draw(st.permutations(draw(st.sampled_from(NAMES))))[:k]
    classes = np.sort(names)
    X_given = draw(layouts())(X)
    fitted = structure(label_costs=label_costs).fit(
        X_given, classes[y], classes=names, bias=bias
    )
    listed = listing(X, y, label_costs, bias)
    return Case(
        structure=fitted,
        X=X_given,
        y=classes[y],
        items=[X_given[[i]] for i in range(n)],
        names=[list(classes)] * n,
        listed=listed,
        w=draw(quarters(listed.d)),
    )


@st.composite
def multiclass_cases(draw):
    k = draw(st.integers(2, 4))

    def listing(X, y, costs, bias):
        return list_multiclass(X, y, k, costs, bias)

    return draw(single_label_cases(MulticlassStructure, listing, k))


def binary_cases():
    return single_label_cases(BinaryStructure, list_binary, 2)


@st.composite
def multilabel_cases(draw):
    n, d, k = (draw(st.integers(1, 3)) for _ in range(3))
    X = draw(quarters((n, d)))
    Y = draw(hnp.arrays(int, (n, k), elements=st.integers(0, 1)))
    label_costs = draw(st.none() | quarters((k, 2)).map(np.abs))
    normalize = draw(st.booleans())
    bias = draw(st.sampled_from([0.0, 1.0, 2.5]))
    X_given = draw(layouts())(X)
    structure = MultilabelStructure(normalize, label_costs)
    scaled = (np.ones((k, 2)) if label_costs is None else label_costs) / (
        k if normalize else 1
    )
    listed = list_multilabel(X, Y, scaled, bias)
    return Case(
        structure=structure.fit(X_given, Y, bias=bias),
        X=X_given,
        y=Y,
        items=[X_given[[i]] for i in range(n)],
        names=listed.labelings,
        listed=listed,
        w=draw(quarters(listed.d)),
    )


@st.composite
def chain_cases(draw, parts=CHAIN_PARTS, lengths=(1, 2, 3), dyadic=False, barred=False):
    n, d, k = (draw(st.integers(*bounds)) for bounds in ((1, 3), (1, 2), (2, 3)))
    T = [draw(st.sampled_from((1, 2, 4) if dyadic else lengths)) for _ in range(n)]
    X = [draw(quarters((t, d))) for t in T]
    y = [draw(hnp.arrays(int, t, elements=st.integers(0, k - 1))) for t in T]
    label_costs = draw(costs(k))
    normalize = draw(st.booleans())
    names = draw(st.permutations(draw(st.sampled_from(NAMES))))[:k]
    classes = np.sort(names)
    layout = draw(layouts())
    X_given, y_given = [layout(x) for x in X], [classes[labels] for labels in y]
    mask = None
    if barred:
        mask = draw(hnp.arrays(bool, (k + 1, k + 1)))
        for labels in y:
            mask[np.append(k, labels), np.append(labels, k)] = True
    structure = ChainStructure(
        **{part: part in parts for part in CHAIN_PARTS},
        normalize_loss=normalize,
        label_costs=label_costs,
        transitions=mask,
    )
    structure.fit(X_given, y_given, classes=names)
    listed = list_chains(X, y, k, label_costs, normalize, parts, mask)
    return Case(
        structure=structure,
        X=X_given,
        y=y_given,
        items=X_given,
        names=[[classes[list(c)] for c in all_c] for all_c in listed.labelings],
        listed=listed,
        w=draw(quarters(listed.d)),
    )


def candidate_points(oracle, i, w, one=1.0):
    """Labelings that include a maximizer of loss · (one + score), scores and losses."""
    points = Probe(oracle, i, w).candidates(one)
    labels, scores, losses = zip(*points, strict=True) if points else ([], [], [])
    return np.array(labels), np.array(scores), np.array(losses)


def check_it(case):
    """Check that decoders, claims and oracle of the structure agree."""
    check_structure(case.structure, case.X, case.y, n_trials=2)


def check_features_and_losses(case):
    for i, item in enumerate(case.items):
        for c, name in enumerate(case.names[i]):
            feature = case.structure.joint_feature(item, name)
            assert feature.shape == (case.structure.n_weights_,)
            np.testing.assert_array_equal(feature, case.listed.phi[i][c])
            loss = case.structure.loss(case.truth(i), name)
            assert abs(loss - case.listed.loss[i][c]) <= TOLERANCE


def check_k_best(case, k):
    for i, item in enumerate(case.items):
        labelings, scores = case.structure.k_best(item, case.w, k)
        all_scores = case.listed.phi[i] @ case.w
        expected = np.sort(all_scores)[::-1][:k]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)
        places = [case.place(i, labeling) for labeling in labelings]
        assert len(set(places)) == len(places)
        np.testing.assert_allclose(all_scores[places], scores, rtol=0, atol=TOLERANCE)


def check_max_marginals(case):
    for i, item in enumerate(case.items):
        found = case.structure.max_marginals(item, case.w)
        scores = case.listed.phi[i] @ case.w
        labelings = np.array(case.listed.labelings[i])
        for v, c in np.ndindex(*found.shape):
            expected = scores[labelings[:, v] == c].max(initial=-np.inf)
            np.testing.assert_allclose(found[v, c], expected, rtol=0, atol=TOLERANCE)


def check_batch_equals_single_calls(case):
    for lam in LAMS:
        together = case.oracle().decode(case.w, lam)
        # A new oracle each time, whose labelings are examined one after another, by
        # class.
        alone = [
            case.structure.make_oracle(case.X[i : i + 1], case.y[i : i + 1]).decode(
                case.w, lam
            )
            for i in range(case.listed.n)
        ]
        np.testing.assert_array_equal(together, np.concatenate(alone))


def check_scores_of_the_solver(case):
    """The oracle's ⟨w, φ(x, y) - φ(x, y_i)⟩ agrees with the joint features."""
    solver = BlockFrankWolfe(case.oracle(), case.listed.uniform, 1.0)
    for lam in LAMS:
        expected = case.listed.hinge(case.w, lam=lam)
        assert abs(solver.hinge(case.w, lam) - expected) <= TOLERANCE


def check_constrained_decoding(case, lam, alpha, beta, strict_alpha, strict_beta):
    for i, item in enumerate(case.items):
        g = case.listed.loss[i]
        h = 1.0 + case.listed.values(i, case.w, 0.0)
        above = g > beta * h if strict_beta else g >= beta * h
        if np.isinf(alpha):
            below = h > 0 if strict_alpha else h >= 0
        else:
            below = g < alpha * h if strict_alpha else g <= alpha * h
        label = case.structure.constrained_decode(
            item, case.truth(i), case.w, lam, alpha, beta, strict_alpha, strict_beta
        )
        allowed = np.flatnonzero(above & below)
        if len(allowed) == 0:
            assert label is None
        else:
            place = case.place(i, label)
            assert place in allowed
            values = h + lam * g
            assert values[place] >= values[allowed].max() - TOLERANCE


def angles():
    """(lam, alpha, beta, strict_alpha, strict_beta) of the constrained λ-oracle."""
    slopes = st.integers(0, 12).map(lambda value: value / 4)
    return st.tuples(
        st.sampled_from(LAMS),
        slopes | st.just(np.inf),
        slopes,
        st.booleans(),
        st.booleans(),
    )
