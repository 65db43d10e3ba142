"""Labels that are not known: objectives beside enumeration, steps, misuse."""

import copy
import pickle

import numpy as np
import pytest
from _callbacks import Recorder
from _options import placed
from _seeds import new_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    CRFClassifier,
    CRFClassifierCV,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    bcfw_path,
)
from sklearn_structsvm.estimators.partial_labels import Maxima
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.structures import (
    MISSING,
    ChainStructure,
    GraphStructure,
    MulticlassStructure,
    Structure,
    TreeStructure,
    check_structure,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LABELS = np.array(["a", "b", "c"])
BANS = [("a", "c"), (None, "b")]
COSTS = [[0, 1, 5], [2, 0, 1], [1, 3, 0]]
STRUCTURES = {
    "chain": ChainStructure(),
    "chain of bans": ChainStructure(transitions=BANS),
    "chain with costs": ChainStructure(label_costs=COSTS, normalize_loss=False),
    "chain without transitions": ChainStructure(transition=False, transitions=BANS),
    "tree": TreeStructure(),
    "tree of bans": TreeStructure(transitions=BANS, label_costs=COSTS),
    "forest": GraphStructure(label_costs=COSTS),
    "two labels": GraphStructure(attractive=True),
    "messages": GraphStructure(inference="messages"),
}
EXACT = [name for name in STRUCTURES if name != "messages"]
WITH_SUMS = [name for name in STRUCTURES if name.startswith(("chain", "tree"))]


def draw_data(name, rng, n=6, hidden=0.4):
    """Items, and labels of which some are sets or missing."""
    structure = STRUCTURES[name]
    labels = LABELS[:2] if name == "two labels" else LABELS
    X, y = [], []
    for _ in range(n):
        T = int(rng.integers(1, 5))
        x = rng.standard_normal((T, 2))
        # Neither table forbids a labeling of "a" and "b" that begins with "a".
        codes = rng.integers(2, size=T)
        if structure.__class__ is not GraphStructure and "bans" in name:
            codes[:] = 0
        elif "without" in name:
            codes[0] = 0
        own = labels[codes].astype(object)
        parents = np.array([rng.integers(-1, v) if v else -1 for v in range(T)])
        children = np.flatnonzero(parents >= 0)
        edges = np.column_stack([children, parents[children]])
        if isinstance(structure, TreeStructure):
            x = x, parents
        elif isinstance(structure, GraphStructure):
            is_cyclic = name != "forest"
            x = x, np.column_stack(np.triu_indices(T, 1)) if is_cyclic else edges
        for t in range(T):
            if rng.random() < hidden:
                others = rng.choice(labels, 1)
                own[t] = MISSING if rng.random() < 0.5 else {own[t], *others}
        X.append(x)
        y.append(own)
    # What it takes for a fit.
    y[0][0], y[1][0] = "a", {"a", "b"}
    return X, y, labels


def options_of(labels):
    return {"solver_options": {"classes": labels}, "random_state": 0}


def bound_problem(cls, structure, labels, X, y, s=None):
    return bind_local(cls(structure, **options_of(labels)), X, y, s)


class Enumerated:
    """Scores, losses and joint features of all labelings, by the definitions."""

    def __init__(self, problem):
        self.lam, self.weights = problem.lam, problem.weights
        structure = problem.structure
        self.features, self.losses, self.is_allowed = [], [], []
        for x, mask in zip(problem.X, problem.allowed, strict=True):
            labelings, classes = list(structure.labelings(x)), structure.classes_
            codes = np.array([np.searchsorted(classes, own) for own in labelings])
            self.features.append([structure.joint_feature(x, own) for own in labelings])
            self.is_allowed.append(mask[np.arange(len(mask)), codes].all(axis=1))
            unit = 1.0 / len(mask) if structure.normalize_loss else 1.0
            costs = [structure.label_costs_[own].min(axis=0) for own in mask]
            of_labels = np.array(costs)[np.arange(len(mask)), codes]
            self.losses.append(unit * of_labels.sum(axis=1))
            assert (self.losses[-1][self.is_allowed[-1]] == 0.0).all()

    def log_loss(self, w):
        value, gradient = 0.0, np.zeros(len(w))
        for phi, is_allowed, p in zip(
            self.features, self.is_allowed, self.weights, strict=True
        ):
            phi = np.array(phi)
            for sign, rows in ((1.0, phi), (-1.0, phi[is_allowed])):
                scores = rows @ w
                value += sign * p * logsumexp(scores)
                gradient += sign * p * (np.exp(scores - logsumexp(scores)) @ rows)
        return value, gradient

    def hinge(self, w):
        return sum(
            p * ((phi @ w + loss).max() - (phi @ w)[is_allowed].max())
            for phi, loss, is_allowed, p in zip(
                map(np.array, self.features),
                self.losses, self.is_allowed, self.weights, strict=True,
            )
        )  # fmt: skip


def objective_of(model, enumerated):
    """At `coef_`, by the definition."""
    w, lam = model.coef_, enumerated.lam(model.C)
    of_sums = isinstance(model, CRFClassifier)
    loss = enumerated.log_loss(w)[0] if of_sums else enumerated.hinge(w)
    return loss + 0.5 * lam * w @ w


def check_completions(problem, w):
    """That the best completions are those of enumeration."""
    enumerated = Enumerated(problem)
    bounds = problem.structure.weight_bounds()
    w = w if bounds is None else np.clip(w, *bounds)
    found, a = Maxima(problem.make_completions(), problem.weights).at(w)
    references = [
        problem.structure.joint_feature(x, own)
        for x, own in zip(problem.X, problem.y, strict=True)
    ]
    expected = sum(
        p * ((np.array(phi) @ w)[is_allowed].max() - reference @ w)
        for phi, is_allowed, p, reference in zip(
            enumerated.features, enumerated.is_allowed, problem.weights, references,
            strict=True,
        )
    )  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-12)
    assert a @ w == pytest.approx(found, abs=1e-12)


# Small integers make several completions the best.
@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=8)
@given(repeat=st.integers(0, 10_000), hidden=st.floats(0.0, 0.9), is_whole=st.booleans())
def test_completions_are_the_best_that_are_allowed(name, repeat, hidden, is_whole):
    rng = new_rng(repeat, 2)
    X, y, labels = draw_data(name, rng, hidden=hidden)
    if is_whole:
        X = [(np.round(x[0]), *x[1:]) if isinstance(x, tuple) else np.round(x) for x in X]
    problem = bound_problem(BCFWClassifier, STRUCTURES[name], labels, X, y)
    w = rng.standard_normal(problem.structure.n_weights_)
    check_completions(problem, np.round(w) if is_whole else w)


def ends_of_steps(history):
    step = history["step"]
    return np.flatnonzero(np.append(step[1:] != step[:-1], True))


def check_procedure(model, tol):
    """What a fit says of itself, whatever it is of."""
    history = model.history_
    ends = ends_of_steps(history)
    assert (np.diff(history["step"]) >= 0).all()
    assert (np.diff(history["objective"][ends]) <= 0.0).all()
    assert (np.diff(history["n_oracle_calls"]) >= 0).all()
    assert model.objective_ == history["objective"][-1]
    assert model.dual_gap_ <= tol or model.n_iter_ == model.max_iter
    difference = model.objective_ - model.dual_objective_
    assert model.dual_gap_ == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize("solver", ["auto", "dual", "lbfgs"])
def test_a_likelihood_never_falls_from_step_to_step(solver):
    names = [*WITH_SUMS, *["forest"] * (solver != "dual")]
    for repeat in range(2 * len(names)):
        rng = new_rng(repeat, 2)
        name = names[repeat % len(names)]
        X, y, labels = draw_data(name, rng, n=5)
        C, tol = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-6, -2)
        model = placed(CRFClassifier)(
            STRUCTURES[name], C=C, tol=tol, solver=solver, **options_of(labels)
        ).fit(X, y)
        check_procedure(model, tol)
        if repeat < 4 or name == "forest":
            check_certificate_of_likelihood(model, X, y, labels, name, rng)


def check_certificate_of_likelihood(model, X, y, labels, name, rng):
    """No other weights are better in the convex problem at `coef_` than is said."""
    problem = bound_problem(CRFClassifier, STRUCTURES[name], labels, X, y)
    enumerated, lam, w = Enumerated(problem), problem.lam(model.C), model.coef_
    value, gradient = enumerated.log_loss(w)
    assert model.objective_ == pytest.approx(value + 0.5 * lam * w @ w, rel=1e-9)

    def full(w):
        sums = [logsumexp(np.array(phi) @ w) for phi in enumerated.features]
        return problem.weights @ sums

    slope = np.zeros(len(w))
    for phi, p in zip(map(np.array, enumerated.features), problem.weights, strict=True):
        slope += p * (np.exp(phi @ w - logsumexp(phi @ w)) @ phi)
    slope -= gradient
    for scale in (1e-3, 1e-1, 1.0):
        other = w + scale * rng.standard_normal(len(w))
        convex = full(other) - full(w) + value - slope @ (other - w)
        bound = convex + 0.5 * lam * other @ other
        assert bound >= model.dual_objective_ - 1e-9 * (1.0 + abs(bound))


@pytest.mark.parametrize("name", EXACT)
def test_a_latent_hinge_never_rises_from_step_to_step(name):
    for repeat in range(3):
        rng = new_rng(repeat, 3)
        X, y, labels = draw_data(name, rng, n=5)
        C, tol = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-3, -1)
        options = {"C": C, "tol": tol} | options_of(labels)
        model = placed(BCFWClassifier)(STRUCTURES[name], **options).fit(X, y)
        check_procedure(model, tol)
        problem = bound_problem(BCFWClassifier, STRUCTURES[name], labels, X, y)
        expected = objective_of(model, Enumerated(problem))
        # With cycles, training is over a relaxation.
        if name == "two labels":
            assert model.objective_ >= expected - 1e-9
        else:
            assert model.objective_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("step", ["fw", "pairwise", "away", "corrective"])
@pytest.mark.parametrize("average", [False, True])
def test_steps_and_averages_of_all_kinds_are_certified(step, average):
    X, y, labels = draw_data("chain", new_rng(4), n=8)
    options = {"step": step, "average": average, "acceleration": not average}
    model = placed(BCFWClassifier)(
        "chain", tol=1e-2, **options, **options_of(labels)
    ).fit(X, y)
    check_procedure(model, 1e-2)
    loss = Enumerated(bound_problem(BCFWClassifier, "chain", labels, X, y))
    assert model.objective_ == pytest.approx(objective_of(model, loss), abs=1e-9)


def test_approximate_decoders_never_let_the_objective_rise():
    X, y, labels = draw_data("messages", new_rng(5), n=6)
    model = placed(BCFWClassifier)(
        STRUCTURES["messages"], tol=1e-2, max_iter=200, **options_of(labels)
    ).fit(X, y)
    ends = ends_of_steps(model.history_)
    assert (np.diff(model.history_["objective"][ends]) <= 0.0).all()


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
@pytest.mark.parametrize("name", ["chain of bans", "tree"])
def test_with_nothing_hidden_it_is_the_plain_fit(cls, name):
    X, y, labels = draw_data(name, new_rng(6), hidden=0.0)
    y[1][0] = "a"
    ways = [own.astype(str) for own in y], y, [[{label} for label in own] for own in y]
    fits = [cls(STRUCTURES[name], **options_of(labels)).fit(X, own) for own in ways]
    for model in fits:
        assert "step" not in model.history_
        assert model.coef_.tobytes() == fits[0].coef_.tobytes()


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
@pytest.mark.parametrize("T", [1, 5])
@pytest.mark.parametrize(("columns", "C"), [
    ("time", 1e-3), ("time", 1.0), ("time", 1e3), ("scales", 1.0)])  # fmt: skip
def test_hidden_labels_in_raw_columns_end_at_a_certificate(cls, T, C, columns):
    """Neither L-BFGS nor ascent ends: the slope by Unix time is noise to them."""
    rng, shape = new_rng(22), (200 // T, T, 1)
    Z, times = rng.standard_normal((*shape[:2], 4)), rng.random(shape)
    codes = (Z[..., 0] + 0.5 * rng.standard_normal(shape[:2]) > 0).astype(int)
    if columns == "time":
        X = [*np.concatenate([Z, 1.7e9 + 3e7 * times], axis=2)]
        codes += times[..., 0] > 0.5
    else:
        X = [*(Z * [1.0, 100.0, 1e-3, 1.0] + 30.0)]
    y = LABELS[codes].astype(object)
    y[rng.random(shape[:2]) < 0.5] = MISSING
    model = cls("chain", C=C, **options_of(LABELS)).fit(X, [*y])
    assert model.dual_gap_ <= model.tol
    check_procedure(model, model.tol)
    value = objective_of(model, Enumerated(bound_problem(cls, "chain", LABELS, X, [*y])))
    assert model.objective_ == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("costs", [None, COSTS])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_columns_a_million_spreads_from_zero_end_where_rounding_does(hidden, costs):
    """All but 1e-12 of the second derivatives is of their means."""
    rng = new_rng(24)
    X, y = [], []
    for T in rng.integers(1, 7, size=40):
        Z = rng.standard_normal((T, 3))
        score = Z[:, 0] - Z[:, 1] + rng.logistic(size=T)
        labels = LABELS[np.digitize(score, [-1.0, 1.0])].astype(object)
        labels[rng.random(T) < hidden] = MISSING
        X.append(1e3 * Z)
        y.append(labels)
    options = options_of(LABELS) | {"label_costs": costs, "max_iter": 300}
    model = CRFClassifier("chain", **options).fit([x + 1.7e8 for x in X], y)
    assert model.dual_gap_ <= model.tol
    # Scores are differences of terms of 1e6 or 1e7, so that probabilities have errors of
    # 1e-10, and slopes by the columns some of .1. The gap is 20 times their square.
    model.fit([x + 1.7e9 for x in X], y)
    assert model.dual_gap_ <= (10.0 if hidden else 1.0)


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
def test_a_weight_of_two_is_an_example_twice(cls):
    X, y, labels = draw_data("chain", new_rng(7))
    twice = np.arange(len(X)) % 2
    tol = 1e-9 if cls is CRFClassifier else 1e-6
    model = cls("chain", **options_of(labels) | {"tol": tol, "C": 0.1})
    weighted = clone(model).fit(X, y, sample_weight=1 + twice)
    repeated = clone(model).fit(X + X[1::2], y + y[1::2])
    loss = Enumerated(bound_problem(cls, "chain", labels, X, y, 1.0 + twice))
    for model in (weighted, repeated):
        assert model.objective_ == pytest.approx(objective_of(model, loss), abs=1e-9)


def test_balanced_class_weights_and_nodes_count_known_labels_alone():
    X = [np.eye(2)[[0, 1, 0]], np.eye(2)[[0, 0]]]
    y = [["a", "b", MISSING], [{"a", "b"}, "a"]]
    model = BCFWClassifier("chain", class_weight="balanced", random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.structure_.label_costs_, [[0.0, 0.75], [1.5, 0.0]], rtol=1e-12
    )
    # Nodes without a label need none, whatever their weight.
    X = [(np.array([[1.0], [-1.0], [0.5]]), np.array([[0, 1], [1, 2]]))]
    model = BCFWClassifier(GraphStructure(), random_state=0)
    model.fit(X, [([1, 0, MISSING], [1.0, 1.0, 0.0])])
    assert model.predict(X)[0][:2].tolist() == [1, 0]


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
def test_a_warm_start_goes_on_from_the_weights_before(cls):
    X, y, labels = draw_data("chain", new_rng(8), n=8)
    model = cls("chain", warm_start=True, tol=1e-2, **options_of(labels)).fit(X, y)
    before, calls = model.objective_, model.history_["n_oracle_calls"][0]
    model.fit(X, y)
    assert model.objective_ <= before + 1e-12
    assert model.n_iter_ == 0
    if cls is BCFWClassifier:
        # Those for the first weights and their plane are counted, too.
        assert calls >= model.history_["n_oracle_calls"][0] + 2 * len(X)
    model.set_params(tol=1e-3).fit(X, y)
    assert model.objective_ <= before + 1e-12
    check_procedure(model, 1e-3)


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
def test_a_fit_that_is_cut_short_has_a_certificate(cls):
    X, y, labels = draw_data("chain", new_rng(9), n=8)
    options = options_of(labels) | {"tol": 1e-9, "C": 100.0}
    loss = Enumerated(bound_problem(cls, "chain", labels, X, y))
    for max_iter in (1, 3, 7):
        model = cls("chain", max_iter=max_iter, **options).fit(X, y)
        assert model.n_iter_ <= max_iter
        assert model.objective_ == pytest.approx(objective_of(model, loss), rel=1e-9)


def known_labels(own):
    """Where labels are known, and these."""
    sets = [entry if isinstance(entry, set) else {entry} for entry in own]
    keep = np.array([len(s) == 1 and MISSING not in s for s in sets])
    return keep, np.array(
        [min(s) for s, is_kept in zip(sets, keep, strict=True) if is_kept]
    )


@pytest.mark.parametrize("name", ["chain", "forest"])
def test_scores_are_of_known_labels(name):
    X, y, labels = draw_data(name, new_rng(11))
    model = BCFWClassifier(STRUCTURES[name], **options_of(labels)).fit(X, y)
    sizes = [np.arange(1.0, 1 + len(own)) for own in y]
    if name == "chain":
        sizes = [np.ones(len(own)) for own in y]
    right, total = 0.0, 0.0
    for own, w, found in zip(y, sizes, model.predict(X), strict=True):
        keep, labels_of = known_labels(own)
        right += w[keep] @ (labels_of == found[keep])
        total += w[keep].sum()
    given = y if name == "chain" else list(zip(y, sizes, strict=True))
    assert model.score(X, given) == pytest.approx(right / total)


@pytest.mark.parametrize("cls", [CRFClassifierCV, BCFWClassifierCV])
def test_c_is_chosen_by_known_labels(cls):
    X, y, labels = draw_data("chain", new_rng(13), n=12)
    for own in y:
        own[0] = "a"
    y[3][0] = y[7][0] = y[11][0] = "b"
    model = cls("chain", Cs=[0.1, 1.0], cv=3, **options_of(labels)).fit(X, y)
    assert model.scores_path_.shape == (2, 3)
    assert np.isfinite(model.scores_path_).all()
    final = cls._final_class("chain", C=model.C_, **options_of(labels)).fit(X, y)
    assert model.coef_.tobytes() == final.coef_.tobytes()


def test_the_marker_is_one_object():
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING
    assert copy.deepcopy([MISSING])[0] is MISSING
    assert repr(MISSING) == "MISSING"


GOOD_X = [np.eye(2), np.eye(2)]
HALF = [["a", MISSING], ["b", "a"]]
TAGGER = ChainStructure(transitions=[("a", "b")])


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [(CRFClassifier("chain"), [[MISSING, MISSING]] * 2, "y has no known label"),
     (CRFClassifier("chain", solver_options={"classes": ["a", "b"]}),
      [[MISSING, {"a", "b"}], [MISSING, MISSING]], "y has no known label"),
     (BCFWClassifier("chain"), [["a", "b"], ["a", set()]], r"y\[1\] leaves"),
     (CRFClassifier("chain", solver_options={"classes": ["a", "b"]}),
      [["a", "b"], ["a", {"c", "d"}]],
      "not among `classes`"),
     (CRFClassifier("chain"), [[0, 1], [0, -100]], "Put MISSING in the place"),
     (CRFClassifier(TAGGER), [["a", {"b", "c"}], ["c", "b"]], None),
     (CRFClassifier(TAGGER), [["b", "c"], [{"a"}, {"b"}]], "which `transitions` forbids"),
     (CRFClassifier(ChainStructure(transitions=[("a", "b"), ("a", "d")])),
      [["b", "c"], ["a", {"b", "d"}]],
      r"y\[1\] and `transitions` leave X\[1\] no labeling"),
     (SlackRescaledSSVM("chain"), HALF, "use CRFClassifier or"),
     (CRFClassifier("chain", l1_ratio=0.5), HALF, "l1_ratio=0"),
     (CRFClassifier("chain", solver="newton"), HALF, "newton"),
     (CRFClassifier(MulticlassStructure()), ["a", MISSING], "rows without a label"),
     (BCFWClassifier("chain", l1_ratio=0.5), HALF, "l1_ratio=0"),
     (CRFClassifierCV("chain", l1_ratios=[0.0, 0.5]), HALF,
      "l1_ratio=0.5 cannot learn from them: use l1_ratio=0")],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_refused(model, y, words):
    X = np.eye(2) if model.structure.__class__ is MulticlassStructure else GOOD_X
    if words is None:
        model.fit(X, y)
        return
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize(
    "model", [BCFWClassifier(), CRFClassifier(), SubLBFGSClassifier()]
)
@pytest.mark.parametrize("labels", [["a", "b"], [0, 1]])
def test_rows_with_sets_of_labels_are_to_be_chains_of_one_position(model, labels):
    X = new_rng(22).standard_normal((12, 2))
    y = [*(labels * 5), set(labels), set(labels)]
    with pytest.raises(ValueError, match=r"set \{.*\} \(row 10\).*chains of one pos"):
        model.fit(X, y)
    if model.get_params().get("structure") is not None:
        model = copy.deepcopy(model).set_params(structure="chain")
        model.fit(X[:, np.newaxis], [[label] for label in y])
        assert model.dual_gap_ <= model.tol


def draw_path_data():
    return draw_data("chain", new_rng(21), n=12)[:2]


def test_each_point_of_a_path_is_a_procedure_from_the_one_before():
    X, y = draw_path_data()
    options = {"structure": "chain", "random_state": 0}
    path = placed(bcfw_path)(X, y, eps=0.02, min_lambda=0.07, **options)
    assert path.has_hidden and not path.complete
    assert path.lambdas[-1] == path.end == 0.07
    np.testing.assert_array_equal(np.log2(path.lambdas[:-1]) % 1.0, 0.0)
    assert (np.diff(path.lambdas) < 0.0).all()
    model = placed(BCFWClassifier)(tol=0.02, warm_start=True, **options)
    n_iter = n_calls = 0
    for i, lam in enumerate(path.lambdas):
        model.set_params(C=1.0 / (lam * len(X))).fit(X, y)
        n_iter, n_calls = n_iter + model.n_iter_, n_calls + model.n_oracle_calls_
        np.testing.assert_array_equal(path.coefs[i], model.coef_)
        np.testing.assert_array_equal(path.coef(lam), model.coef_)
        assert path.gaps[i] == model.dual_gap_ <= path.eps
        assert (path.n_iter[i], path.n_oracle_calls[i]) == (n_iter, n_calls)
    with pytest.raises(ValueError, match="only at its `lambdas`; got lam=0.09, next to"):
        path.coef(0.09)
    with pytest.raises(ValueError, match="lam must be positive"):
        path.coef(0.0)


def test_a_path_that_is_cut_short_ends_at_its_last_solution():
    X, y = draw_path_data()
    options = {"structure": "chain", "random_state": 0, "eps": 1e-3, "min_lambda": 1e-3}
    for limits in ({"max_iter": 3}, {"max_time": 1e-9}):
        (name,) = limits
        with pytest.warns(ConvergenceWarning, match=f"cut short by {name}=.* at lambda"):
            path = placed(bcfw_path)(X, y, **limits, **options)
        assert path.end > 1e-3
        assert (path.gaps <= 1e-3)[1:].all()
        assert path.n_iter[-1] <= limits.get("max_iter", np.inf)


def test_what_rests_on_convexity_is_refused_of_paths():
    for params in ({"heuristic": True}, {"kappa": 0.5}, {"min_lambda": 0.0}):
        with pytest.raises(ValueError, match="each value of lambda is a fit of its own"):
            placed(bcfw_path)(*draw_path_data(), structure="chain", **params)


def test_dask_collections_and_linear_programs_are_refused():
    X, y, labels = draw_data("messages", new_rng(14))
    X.append((np.eye(3)[:, :2], np.array([[0, 1], [1, 2], [0, 2]])))
    y.append(["a", "b", MISSING])
    with pytest.raises(ValueError, match="use inference='auto'"):
        BCFWClassifier(GraphStructure(inference="lp"), **options_of(labels)).fit(X, y)
    dask = pytest.importorskip("dask")
    X, y = [dask.delayed(GOOD_X)], [dask.delayed(HALF)]
    with pytest.raises(ValueError, match="MISSING"):
        CRFClassifier("chain").fit(X, y)


class SomewhereInIt(Structure):
    """Whether something is in a sequence, and where, which no label tells."""

    def joint_feature(self, x, y):
        label, place = y
        return label * np.append(x[place], 1.0)

    def loss(self, y_true, y):
        return float(y_true[0] != y[0])

    def decode(self, x, w):
        return self._best(x, w, 0.0, 0.0)

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self._best(x, w, lam * (y_true[0] != 0), lam * (y_true[0] != 1))

    def _best(self, x, w, zero, one):
        scores = x @ w[:-1] + w[-1]
        place = int(scores.argmax())
        return (1, place) if scores[place] + one > zero else (0, 0)

    def complete(self, x, y, w):
        if y[1] is not None or y[0] == 0:
            return y[0], y[1] or 0
        return 1, int((x.sum(axis=1) if w is None else x @ w[:-1]).argmax())

    def labelings(self, x):
        return [(0, 0), *((1, place) for place in range(len(x)))]


def draw_places(rng, n=40):
    """Sequences with a row that says so at a random place, and others."""
    X, y = [], []
    for i in range(n):
        x = 0.3 * rng.standard_normal((4, 3))
        x[:, 0] -= 1.0
        if i % 2:
            x[rng.integers(4), 0] += 2.0
        X.append(x)
        y.append((i % 2, None))
    return X, y


def test_a_structure_completes_labelings_itself():
    X, y = draw_places(new_rng(15))
    check_structure(SomewhereInIt(), X, y)
    check_structure(SomewhereInIt(), X, [(label, 0) for label, _ in y])
    model = BCFWClassifier(SomewhereInIt(), C=1.0, tol=1e-3, random_state=0).fit(X, y)
    check_procedure(model, 1e-3)
    w, lam = model.coef_, 1.0 / len(X)
    hinges = []
    for x, (label, _) in zip(X, y, strict=True):
        best = (x @ w[:-1]).max() + w[-1]
        values = (label, best + (1 - label))
        hinges.append(max(values) - (best if label else 0.0))
    expected = 0.5 * lam * w @ w + np.mean(hinges)
    assert model.objective_ == pytest.approx(expected, abs=1e-9)
    assert model.objective_ <= model.history_["objective"][0]
    # Others make nothing of completions.
    with pytest.raises(ValueError, match="has a method `complete`.*BCFWClassifier"):
        SlackRescaledSSVM(SomewhereInIt()).fit(X, y)
    with pytest.raises(ValueError, match="use BCFWClassifier"):
        CRFClassifier(SomewhereInIt()).fit(X, y)


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
def test_callbacks_hear_of_each_pass_of_all_steps_once(cls):
    pytest.importorskip("sklearn.callback")
    X, y, labels = draw_data("chain", new_rng(17), n=8)
    recorder = Recorder()
    model = cls("chain", tol=1e-3, **options_of(labels)).set_callbacks(recorder)
    model.fit(X, y)
    assert model.history_["step"][-1] >= (cls is BCFWClassifier)
    # The fit is a task, too.
    assert len(recorder.begun) == len(recorder.ended) == model.n_iter_ + 1


@pytest.mark.parametrize("cls", [CRFClassifier, BCFWClassifier])
def test_an_interrupted_fit_keeps_a_certified_solution_and_goes_on(cls):
    pytest.importorskip("sklearn.callback")
    X, y, labels = draw_data("chain", new_rng(18), n=8)
    options = options_of(labels) | {"tol": 1e-3, "warm_start": True}
    recorder = Recorder(fail=2, error=RuntimeError("no"))
    model = cls("chain", **options).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="no"):
        model.fit(X, y)
    problem = bound_problem(cls, "chain", labels, X, y)
    value = objective_of(model, Enumerated(problem))
    before = model.objective_
    assert before == pytest.approx(value, rel=1e-9)
    model.set_callbacks().fit(X, y)
    check_procedure(model, 1e-3)
    assert model.objective_ <= before + 1e-12
