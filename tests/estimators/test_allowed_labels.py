"""Predictions among some labels only: `allowed`, beside enumeration of all labelings."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure, GraphStructure, TreeStructure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

K = 3
NOT_SO = [("a", "c"), (None, "b"), ("b", None)]
STRUCTURES = {
    "chain": ChainStructure(), "chain of bans": ChainStructure(transitions=NOT_SO),
    "chain without transitions": ChainStructure(transition=False, transitions=NOT_SO),
    "chain with costs": ChainStructure(label_costs=[[0, 1, 5], [2, 0, 1], [1, 3, 0]]),
    "given scores": ChainStructure(emission="given"), "tree": TreeStructure(),
    "tree of bans": TreeStructure(transitions=NOT_SO), "forest": GraphStructure(),
    "two labels": GraphStructure(), "messages": GraphStructure(inference="messages"),
    "expansion": GraphStructure(transition="potts", inference="expansion"),
    "lp": GraphStructure(inference="lp"),
}  # fmt: skip
CYCLES = ("two labels", "messages", "expansion", "lp")
EXACT = [name for name in STRUCTURES if name not in ("messages", "expansion", "lp")]
WITH_SUMS = [name for name in EXACT if name not in ("forest", "two labels")]
WITH_ORDER = [name for name in EXACT if name != "two labels"]


def make_model(name, rng, cls=BCFWClassifier, n=6):
    """A model with weights drawn at random, and items."""
    structure, classes = STRUCTURES[name], np.array(["a", "b", "c"])
    if name == "two labels":
        classes = classes[:2]
    X, y = [], []
    for i in range(n):
        T = 1 if i == 0 else int(rng.integers(2, 5))
        x = rng.standard_normal((T, K if name == "given scores" else 2))
        parents = np.array([rng.integers(-1, v) if v else -1 for v in range(T)])
        children = np.flatnonzero(parents >= 0)
        edges = np.column_stack([children, parents[children]])
        if name in CYCLES:
            edges = np.column_stack(np.triu_indices(T, 1))
        if isinstance(structure, TreeStructure):
            x = x, parents
        elif isinstance(structure, GraphStructure):
            x = x, edges
        X.append(x)
        # Of one label, which no table here forbids.
        y.append(np.full(T, "a"))
    model = cls(structure, solver_options={"classes": classes}, max_iter=1)
    model.set_params(random_state=0).fit(X, y)
    model.coef_ = 2.0 * rng.standard_normal(len(model.coef_))
    if name == "two labels":
        # Edges between equal labels are liked, so that a cut finds the best labeling.
        size = model.structure_.weight_parts(model.coef_)["transition"].size
        model.coef_[-size:] = (np.eye(2)[np.newaxis] * rng.uniform()).ravel()
    return model, X


def nodes_of(x):
    return len(x[0]) if isinstance(x, tuple) else len(x)


def draw_masks(model, X, rng):
    """Masks that leave each node a label, and each item a labeling."""
    k, masks = len(model.classes_), []
    for x in X:
        mask = rng.uniform(size=(nodes_of(x), k)) < 0.5
        labelings = list(model.structure_.labelings(x))
        chosen = labelings[rng.integers(len(labelings))]
        mask[np.arange(len(mask)), np.searchsorted(model.classes_, chosen)] = True
        masks.append(mask)
    return masks


def enumerate_allowed(model, x, mask):
    """Encoded labelings that are allowed, and their scores, by the definition."""
    structure = model.structure_
    codes, scores = [], []
    for labels in structure.labelings(x):
        own = np.searchsorted(model.classes_, labels)
        if mask[np.arange(len(own)), own].all():
            codes.append(own)
            scores.append(model.coef_ @ structure.joint_feature(x, labels))
    return np.array(codes), np.array(scores)


def best_of(codes, scores, mask):
    """The best score of a labeling with each label, at each node."""
    table = np.full(mask.shape, -np.inf)
    for own, score in zip(codes, scores, strict=True):
        at = np.arange(len(own)), own
        table[at] = np.maximum(table[at], score)
    return table


def shares_of(codes, p, mask):
    """Marginals of nodes."""
    nodes = np.zeros(mask.shape)
    for own, share in zip(codes, p, strict=True):
        nodes[np.arange(len(own)), own] += share
    return nodes


@pytest.mark.parametrize("name", ["messages", "expansion", "lp"])
def test_approximate_decoders_keep_to_what_is_allowed(name):
    rng = new_rng(1)
    model, X = make_model(name, rng)
    masks = draw_masks(model, X, rng)
    for mask, labels in zip(masks, model.predict(X, allowed=masks), strict=True):
        found = np.searchsorted(model.classes_, labels)
        assert mask[np.arange(len(mask)), found].all()
    # With one label each there is nothing to approximate.
    eye = np.eye(len(model.classes_), dtype=bool)
    single = [eye[mask.argmax(axis=1)] for mask in masks]
    for mask, labels in zip(single, model.predict(X, allowed=single), strict=True):
        assert labels.tolist() == model.classes_[mask.argmax(axis=1)].tolist()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("repeat", range(3))
def test_the_best_labelings_and_max_marginals_are_those_of_the_allowed(name, repeat):
    rng = new_rng(repeat, 2)
    model, X = make_model(name, rng)
    masks = draw_masks(model, X, rng)
    if name in WITH_ORDER:
        labelings, k_scores = model.predict_k_best(X, k=7, allowed=masks)
        tables = model.max_marginals(X, allowed=masks)
    for i, labels in enumerate(model.predict(X, allowed=masks)):
        codes, scores = enumerate_allowed(model, X[i], masks[i])
        found = np.searchsorted(model.classes_, labels)
        score = scores[(codes == found).all(axis=1)].item()
        assert score == pytest.approx(scores.max(), abs=1e-9)
        if name not in WITH_ORDER:
            continue
        expected = np.sort(scores)[::-1][:7]
        np.testing.assert_allclose(k_scores[i], expected, atol=1e-9)
        found = np.searchsorted(model.classes_, labelings[i])
        assert len({tuple(row) for row in found.tolist()}) == len(expected)
        assert all((codes == row).all(axis=1).any() for row in found)
        np.testing.assert_allclose(tables[i], best_of(codes, scores, masks[i]), atol=1e-9)


def of_integers(x, rng):
    if isinstance(x, tuple):
        return of_integers(x[0], rng), *x[1:]
    return rng.integers(-1, 2, x.shape).astype(float)


# Small integers make many labelings the best, and sums of scores exact.
@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=5)
@given(repeat=st.integers(0, 10_000))
def test_ties_are_broken_among_the_allowed(name, repeat):
    rng = new_rng(repeat, 9)
    cls = CRFClassifier if name in WITH_SUMS else BCFWClassifier
    model, X = make_model(name, rng, cls, n=3)
    X = [of_integers(x, rng) for x in X]
    model.coef_ = rng.integers(-1, 2, len(model.coef_)).astype(float)
    if name == "two labels":
        size = model.structure_.weight_parts(model.coef_)["transition"].size
        model.coef_[-size:] = np.eye(2).ravel() * rng.integers(2)
    masks = draw_masks(model, X, rng)
    labels = model.predict(X, allowed=masks)
    if name in WITH_ORDER:
        labelings, k_scores = model.predict_k_best(X, k=100, allowed=masks)
        tables = model.max_marginals(X, allowed=masks)
    if name in WITH_SUMS:
        proba = model.predict_proba(X, allowed=masks)
        best = model.log_likelihood(X, labels, allowed=masks)
    for i, (x, mask) in enumerate(zip(X, masks, strict=True)):
        codes, scores = enumerate_allowed(model, x, mask)
        found = np.searchsorted(model.classes_, labels[i])
        assert (codes[scores == scores.max()] == found).all(axis=1).any()
        if name in WITH_ORDER:
            n_found = min(len(codes), 100)
            found = [tuple(np.searchsorted(model.classes_, own)) for own in labelings[i]]
            assert len(set(found)) == len(found) == n_found
            assert set(found) <= {tuple(own) for own in codes}
            if name not in WITH_SUMS:  # scores, not probabilities
                assert list(k_scores[i]) == list(np.sort(scores)[::-1][:n_found])
            np.testing.assert_array_equal(tables[i], best_of(codes, scores, mask))
        if name in WITH_SUMS:
            p = np.exp(scores - logsumexp(scores))
            np.testing.assert_allclose(proba[i], shares_of(codes, p, mask), atol=1e-12)
            assert best[i] == pytest.approx(np.log(p.max()), abs=1e-12)


# With scores far apart sums are made of logarithms.
@pytest.mark.parametrize("name", WITH_SUMS)
@pytest.mark.parametrize(("repeat", "scale"), [(0, 1.0), (1, 1.0), (2, 100.0)])
def test_sums_are_those_over_the_allowed(name, repeat, scale):
    rng = new_rng(repeat, 3)
    model, X = make_model(name, rng, CRFClassifier)
    model.coef_ *= scale
    masks = draw_masks(model, X, rng)
    proba = model.predict_proba(X, allowed=masks)
    logs = model.predict_log_proba(X, allowed=masks)
    entropies = model.entropy(X, allowed=masks)
    risks = model.set_params(solver_options__decoding="mbr").predict(X, allowed=masks)
    best, k_proba = model.predict_k_best(X, k=2, allowed=masks)
    likelihoods = model.log_likelihood(X, [own[0] for own in best], allowed=masks)
    # Of labelings without a thought of what is allowed.
    others = [np.full(nodes_of(x), "a") for x in X]
    of_others = model.log_likelihood(X, others, allowed=masks)
    for i, (x, mask) in enumerate(zip(X, masks, strict=True)):
        codes, scores = enumerate_allowed(model, x, mask)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        nodes = shares_of(codes, p, mask)
        np.testing.assert_allclose(proba[i], nodes, atol=1e-12 * scale)
        assert (proba[i][~mask] == 0.0).all()
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(logs[i], np.log(proba[i]))
        entropy = -np.sum(p[p > 0.0] * np.log(p[p > 0.0]))
        assert entropies[i] == pytest.approx(entropy, abs=1e-9 * scale)
        np.testing.assert_allclose(k_proba[i], np.sort(p)[::-1][:2], atol=1e-12 * scale)
        assert likelihoods[i] == pytest.approx(np.log(p.max()), abs=1e-9 * scale)
        is_other = (codes == 0).all(axis=1)
        expected = -np.inf
        if is_other.any():
            expected = scores[is_other].sum() - logsumexp(scores)
        assert of_others[i] == pytest.approx(expected, abs=1e-9 * scale)
        costs = nodes @ model.structure_.label_costs_
        at = np.arange(len(mask))
        least = min(costs[at, own].sum() for own in codes)
        found = np.searchsorted(model.classes_, risks[i])
        assert (codes == found).all(axis=1).any()
        assert costs[at, found].sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("name", ["chain of bans", "tree", "two labels"])
def test_all_labels_allowed_are_the_plain_call(name):
    rng = new_rng(4)
    model, X = make_model(name, rng)
    plain = model.predict(X)
    k = len(model.classes_)
    ones = [np.ones((nodes_of(x), k), dtype=bool) for x in X]
    for allowed in ([None] * len(X), ones, [[None] * nodes_of(x) for x in X]):
        found = model.predict(X, allowed=allowed)
        assert all(np.array_equal(a, b) for a, b in zip(found, plain, strict=True))


def test_labels_sets_and_masks_say_the_same():
    rng = new_rng(5)
    model, X = make_model("chain", rng)
    masks = [np.ones((len(x), K), dtype=bool) for x in X]
    words = [[None] * len(x) for x in X]
    masks[1][:2], words[1][:2] = [[0, 1, 0], [1, 0, 1]], ["b", {"a", "c"}]
    masks[2][0], words[2][0] = [1, 1, 0], ("a", "b")
    masks[3][1], words[3][1] = [0, 0, 1], np.str_("c")
    by_mask, by_word = (model.predict(X, allowed=own) for own in (masks, words))
    assert all(np.array_equal(a, b) for a, b in zip(by_mask, by_word, strict=True))
    assert by_word[1][0] == "b"


def test_empty_items_and_small_pieces_keep_their_masks(monkeypatch):
    monkeypatch.setattr("sklearn_structsvm._utils.pieces.PIECE", 1, raising=False)
    rng = new_rng(6)
    model, X = make_model("chain", rng)
    X = [X[1], X[1][:0], X[2], X[1][:0], X[3]]
    allowed = [["b"] * len(X[0]), [], None, None, ["c"] * len(X[4])]
    found = model.predict(X, allowed=allowed)
    assert [len(own) for own in found] == [len(x) for x in X]
    assert set(found[0]) == {"b"}
    assert set(found[4]) == {"c"}
    best = model.predict_k_best(X, allowed=allowed)[0]
    assert [len(own[0]) for own in best] == [len(x) for x in X]


# Nothing may end with b, nor begin with it, and c does not follow a.
CONFLICTS = {2: [None, None, "b"], 1: [None, "a", "c"]}


@pytest.mark.parametrize("cls", [BCFWClassifier, CRFClassifier])
@pytest.mark.parametrize("name", ["chain of bans", "tree of bans"])
def test_a_conflict_with_transitions_names_item_and_node(name, cls):
    model, X = make_model(name, new_rng(7), cls)
    rows = new_rng(8).standard_normal((3, 2))
    bad = (rows, np.array([-1, 0, 1])) if name.startswith("tree") else rows
    empty = (rows[:0], np.zeros(0, dtype=int)) if name.startswith("tree") else rows[:0]
    X = [empty, X[1], bad]
    calls = [model.predict, model.predict_k_best, model.max_marginals]
    if cls is CRFClassifier:
        calls += [model.predict_proba, model.entropy]
    for call, (node, own) in product(calls, CONFLICTS.items()):
        with pytest.raises(
            ValueError, match=rf"allowed\[2\].*X\[2\].* {node} fits those"
        ):
            call(X, allowed=[[], None, own])


class Frame:
    """Iterates over the names of its columns, as data frames do."""

    columns = ("a", "b", "c")

    def __len__(self):
        return 7

    def __getitem__(self, i):
        return self.columns[i]


def test_what_is_not_understood_is_refused():
    model, _ = make_model("chain", new_rng(11))
    X = [np.zeros((2, 2))] * 2
    for allowed, words in [
        (3, "allowed must be None or a sequence"),
        ([None], "allowed has 1 entries, but X has 2 items"),
        ([["a"], None], r"allowed\[0\] has 1 entries for 2 positions"),
        ([None, ["a", "d"]], r"allowed\[1\]\[1\] has 'd', which is not one of"),
        ([None, ["a", {"b", 7}]], r"allowed\[1\]\[1\] has 7"),
        ([None, [set(), "a"]], r"allowed\[1\] leaves position 0 no label"),
        ([None, [["a"], [["b"]]]], r"allowed\[1\]\[1\] has \['b'\]"),
        ([None, ["a", [("b", [])]]], r"allowed\[1\]\[1\] has \('b', \[\]\)"),
        ([None, "ab"], r"allowed\[1\] must be None, a mask"),
        ([np.ones((2, 2), dtype=bool), None], r"allowed\[0\] must be a mask of shape"),
        ([np.zeros((2, 3), dtype=bool), None], r"allowed\[0\] leaves position 0"),
        ([Frame(), None], r"allowed\[0\] is a Frame. Pass a boolean"),
    ]:
        for call in (model.predict, model.predict_k_best, model.max_marginals):
            with pytest.raises(ValueError, match=words):
                call(X, allowed=allowed)


def test_structures_without_nodes_and_dask_collections_are_refused():
    X, y = np.eye(3), [0, 1, 2]
    with pytest.raises(ValueError, match="allowed requires a ChainStructure"):
        BCFWClassifier().fit(X, y).predict(X, allowed=[[0], [1], [2]])
    dask = pytest.importorskip("dask")
    model, X = make_model("chain", new_rng(12))
    with pytest.raises(ValueError, match="allowed cannot be used with Dask"):
        model.predict([dask.delayed(X)], allowed=[None] * len(X))


def test_a_pipeline_passes_it_on():
    rng = new_rng(13)
    X = [rng.standard_normal((3, 2)) for _ in range(6)]
    y = [np.array(["a", "b", "c"])] * 6
    allowed = [["c", None, {"a", "b"}]] * 6
    scaler = SequenceTransformer(StandardScaler())
    plain = make_pipeline(scaler, CRFClassifier("chain", random_state=0)).fit(X, y)
    with config_context(enable_metadata_routing=True):
        tagger = CRFClassifier("chain", random_state=0)
        tagger.set_predict_request(allowed=True).set_predict_proba_request(allowed=True)
        routed = make_pipeline(scaler, tagger).fit(X, y)
        found = routed.predict(X, allowed=allowed)
        proba = routed.predict_proba(X, allowed=allowed)
    for a, b, p in zip(found, plain.predict(X, allowed=allowed), proba, strict=True):
        assert a[0] == "c" and a[2] != "c" and np.array_equal(a, b)
        np.testing.assert_allclose(p[0], [0.0, 0.0, 1.0], atol=1e-12)
