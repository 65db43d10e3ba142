"""SlackRescaledSSVM: its objective by brute force, its solvers, searches and refusals."""

from dataclasses import dataclass

import _seeds
import numpy as np
import pytest
from _estimators import (
    ACCURATE,
    assert_same_fit,
    assert_same_labels,
    assert_same_optimum,
    crossed,
    exact_ssvm,
    gaps_of,
    however_near,
    make_problem,
)
from _options import placed
from _problems import random_problem, solve_listed
from _references import Listed, list_chains, random_chains
from _seeds import cache_by_seed, new_rng
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    Structure,
)
from sklearn_structsvm.structures.constrained import in_angle

SOLVERS = {
    "bcfw": {"step": "pairwise"}, "bcfw fw": {"step": "fw"},
    "bcfw away": {"step": "away", "sampling": "uniform"}, "sgd": {"solver": "sgd"},
    "n-slack": {"solver": "cutting_plane"}, "one-slack": {"solver": "one_slack"},
}  # fmt: skip
each_solver = pytest.mark.parametrize("options", SOLVERS.values(), ids=SOLVERS)
# Those that get anywhere near the optimum.
FAST = {name: SOLVERS[name] for name in SOLVERS if name not in ("bcfw fw", "sgd")}
each_fast_solver = pytest.mark.parametrize("options", FAST.values(), ids=FAST)
INEXACT = ("bisecting", "binary", "sarawagi")


class Coded(Structure):
    """Classes y with features x ⊗ codes[y] and any costs, all in Python.

    `serves` names the searches: by the angle, by the product, or neither.
    """

    def __init__(self, codes, costs, serves="angle"):
        self.codes = codes
        self.costs = costs
        self.serves = serves

    @property
    def has_constrained_decode(self):
        return self.serves == "angle"

    @property
    def has_slack_augmented_decode(self):
        return self.serves == "product"

    def joint_feature(self, x, y):
        return np.outer(x, self.codes[y]).ravel()

    def loss(self, y_true, y):
        return float(self.costs[y_true, y])

    def _scores(self, x, w):
        return self.codes @ (x @ w.reshape(len(x), -1))

    def decode(self, x, w):
        return int(self._scores(x, w).argmax())

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return int((self._scores(x, w) + lam * self.costs[y_true]).argmax())

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        scores, g = self._scores(x, w), self.costs[y_true]
        h = 1.0 + scores - scores[y_true]
        values = np.where(
            [
                in_angle(*point, alpha, beta, strict_alpha, strict_beta)
                for point in zip(h, g, strict=True)
            ],
            h + lam * g,
            -np.inf,
        )
        return int(values.argmax()) if values.max() > -np.inf else None

    def slack_augmented_decode(self, x, y_true, w, one=1.0):
        scores = self._scores(x, w)
        return int((self.costs[y_true] * (one + scores - scores[y_true])).argmax())


@dataclass
class Written:
    """A problem of which all labelings are written out."""

    structure: Structure
    X: object
    y: object
    listed: Listed
    params: dict

    def model(self, **params):
        defaults = {"random_state": 0, "C": 0.3, "max_iter": 10**5}
        return exact_ssvm(self.structure, **defaults | self.params | params)

    def fit(self, **params):
        return self.model(**params).fit(self.X, self.y)

    def lam(self, model):
        return 1.0 / (model.C * self.listed.n)

    def primal(self, model):
        w = model._weights
        hinges = [
            (self.listed.loss[i] * (1.0 + self.listed.delta(i) @ w)).max()
            for i in range(self.listed.n)
        ]
        return 0.5 * self.lam(model) * w @ w + np.mean(hinges)


# "whole": losses that are whole numbers, of which decoders make use; others are real.
WRITTEN = (
    "multiclass", "multilabel", "chain", "whole chain", "weighted chain", "custom",
    "custom product",
)  # fmt: skip
written_kinds = pytest.mark.parametrize("kind", WRITTEN)
EXACT = [
    (kind, search)
    for kind in WRITTEN
    for search in ("angular", "exact")
    # A structure in Python that cannot maximize the product.
    if (kind, search) != ("custom", "exact")
]


def takes(search, name):
    return search != "sarawagi" or name == "n-slack"


@cache_by_seed
def written(kind, scale=1.0):
    """One of `WRITTEN`, its costs multiplied by `scale`."""
    rng = new_rng(1)
    if "custom" in kind:
        y, codes = list(np.arange(8) % 4), rng.standard_normal((4, 3))
        costs = scale * rng.uniform(0.2, 3.0, size=(4, 4)) * (1 - np.eye(4))
        X = list(rng.standard_normal((8, 3)))
        phi = [np.array([np.outer(x, code).ravel() for code in codes]) for x in X]
        listed = Listed([[0, 1, 2, 3]] * 8, y, phi, [costs[c] for c in y])
        serves = "product" if kind == "custom product" else "angle"
        return Written(Coded(codes, costs, serves), X, y, listed, {})
    if "chain" in kind:
        X, y, costs = random_chains(n=8)
        params = {}
        if kind == "whole chain":
            costs = np.array([[0.0, 1, 3], [2, 0, 1], [1, 1, 0]])
        normalize = kind != "whole chain"
        structure = ChainStructure(label_costs=scale * costs, normalize_loss=normalize)
        if kind == "weighted chain":
            by_class = {0: 0.5, 1: 3.0, 2: 1.5}
            params = {"class_weight": by_class}
            costs = np.array([[by_class[c]] for c in range(3)]) * costs
        listed = list_chains(X, y, 3, scale * costs, normalize)
        return Written(structure, X, y, listed, params)
    problem = random_problem(kind)
    structure = problem.structure
    listed = Listed(**vars(problem.listed))
    listed.loss = [scale * loss for loss in listed.loss]
    structure = type(structure)(label_costs=scale * np.asarray(structure.label_costs))
    params = {"intercept_scaling": 1.5}
    return Written(structure, problem.X, problem.y, listed, params)


@cache_by_seed
def optimum(kind, C=0.3, rescaling="slack"):
    """The least objective within 1e-11, by cutting planes over the list."""
    listed = written(kind).listed
    listed = listed.slack_rescaled() if rescaling == "slack" else listed
    return solve_listed(listed, 1.0 / (C * listed.n), tol=1e-11)[0]


# The objective, and the certificates


@pytest.mark.parametrize(("case", "name"), crossed(EXACT, SOLVERS, each=2))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_certified_is_true_of_the_objective_written_out(case, name):
    (kind, search), options = case, SOLVERS[name]
    problem, best = written(kind), optimum(kind)
    model = problem.fit(search=search, tol=1e-2, max_iter=300, **options)
    assert abs(model.objective_ - problem.primal(model)) <= 1e-12
    assert model.dual_objective_ <= best + 1e-11
    assert model.objective_ >= best - 1e-11
    assert abs(model.objective_ - model.dual_objective_ - model.dual_gap_) <= 1e-13
    assert model.dual_gap_ <= 1e-2 or model.n_iter_ == 300


@pytest.mark.parametrize(
    ("kind", "name", "search_rtol"),
    [*((*pair, 1e-7) for pair in crossed(WRITTEN, FAST, each=2)),
     *((kind, name, 0.0) for kind in ("weighted chain", "custom") for name in FAST)],
)  # fmt: skip
def test_all_solvers_reach_one_objective(kind, name, search_rtol):
    best, options = optimum(kind), FAST[name]
    model = written(kind).fit(tol=1e-6 * best, search_rtol=search_rtol, **options)
    assert abs(model.objective_ - best) <= 1e-6 * best
    if search_rtol:
        model = written(kind).fit(rescaling="margin", tol=1e-8, **options)
        assert abs(model.objective_ - optimum(kind, 0.3, "margin")) <= 1e-8 + 1e-11


@written_kinds
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_subgradients_approach_the_optimum_within_their_certificate(kind, average):
    problem, listed = written(kind), written(kind).listed.slack_rescaled()
    for passes in (10, 100) if "custom" in kind else (10, 100, 1000):
        model = problem.fit(solver="sgd", average=average, max_iter=passes, tol=1e-8)
        left = model.objective_ - optimum(kind)
        assert -1e-11 <= left <= model.dual_gap_ + 1e-11
        assert left <= listed.subgradient_bound(problem.lam(model), passes * listed.n)


@written_kinds
def test_margin_rescaling_is_the_other_estimators_bit_for_bit(kind):
    problem = written(kind)
    params = problem.model(tol=1e-3, **SOLVERS["bcfw"]).get_params(deep=False)
    shared = BCFWClassifier().get_params(deep=False).keys() & params.keys()
    params = {name: params[name] for name in shared}
    params |= {"average": False}
    expected = placed(BCFWClassifier)(**params).fit(problem.X, problem.y)
    model = problem.fit(rescaling="margin", tol=1e-3, **SOLVERS["bcfw"])
    assert model.n_queries_ == model.n_oracle_calls_
    del model.n_queries_
    assert_same_fit(model, expected)


@however_near
@pytest.mark.parametrize("kind", WRITTEN)
def test_losses_times_c_are_the_same_as_c_times_the_strength(kind):
    problem = written(kind, 8.0)
    # Its objective is 8 times the other, and has as much more rounding.
    scaled = problem.fit(C=0.05, **ACCURATE | {"tol": 8.0 * ACCURATE["tol"]})
    stronger = written(kind).fit(C=0.4, **ACCURATE)
    gaps = gaps_of(scaled, stronger) * (1.0, 8.0)
    # Each is a sum of some fifty terms.
    rounding = 2e-14 * scaled.objective_
    assert abs(scaled.objective_ - 8.0 * stronger.objective_) <= gaps.max() + rounding
    apart = np.linalg.norm(scaled._weights - stronger._weights)
    assert apart <= np.sqrt(2.0 * gaps / problem.lam(scaled)).sum()
    margin = {"rescaling": "margin", **ACCURATE, "tol": 1e-8}
    scaled = written(kind, 8.0).fit(C=0.05, **margin)
    stronger = written(kind).fit(C=0.4, **margin)
    assert np.abs(scaled._weights - stronger._weights).max() > 0.01


@however_near
@pytest.mark.parametrize("kind", ["multiclass", "chain", "custom"])
@each_fast_solver
def test_all_solvers_weigh_examples(kind, options):
    problem = written(kind)
    weights = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 2.0])
    take = np.repeat(np.arange(8), weights.astype(int))
    known = {} if kind == "custom" else {"classes": [0, 1, 2]}
    params = {"tol": 1e-10, "max_iter": 10**4, **known, **options}
    weighted = problem.model(**params).fit(problem.X, problem.y, weights)
    X, y = ([items[i] for i in take] for items in (problem.X, problem.y))
    repeated = problem.model(**params).fit(X, y)
    found = weighted._weights, repeated._weights
    assert_same_optimum(weighted, repeated, weighted.C * weights.sum(), found)


def test_a_best_labeling_that_is_the_worst_atom_by_rounding_ends_its_step(monkeypatch):
    """On these data the oracle's sum is greater than that of `scan` in the last digit."""
    monkeypatch.setattr(_seeds, "_current", 2131722325)
    problem = written("chain")
    weights = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 2.0])
    model = problem.model(tol=1e-10, max_iter=10**4, classes=[0, 1, 2], step="pairwise")
    assert model.fit(problem.X, problem.y, weights).dual_gap_ <= 1e-10


@each_solver
@pytest.mark.parametrize(
    "structure",
    [
        MulticlassStructure(np.zeros((3, 3))),
        MultilabelStructure(label_costs=np.zeros((3, 2))),
        ChainStructure(label_costs=np.zeros((3, 3))),
        Coded(np.eye(3), np.zeros((3, 3))),
    ],
    ids=lambda structure: type(structure).__name__,
)
@pytest.mark.filterwarnings("ignore:There is nothing to learn:UserWarning")
def test_where_nothing_costs_anything_there_is_nothing_to_do(structure, options):
    kind = type(structure).__name__.lower().removesuffix("structure")
    problem = make_problem("custom" if kind == "coded" else kind)
    for search in ("angular", "binary", "bisecting"):
        model = exact_ssvm(structure, search=search, **options)
        model.fit(problem.X, problem.y)
        np.testing.assert_array_equal(model._weights, 0)
        assert model.n_iter_ == 0 and model.objective_ == model.dual_gap_ == 0


@each_solver
@pytest.mark.parametrize("kind", ["multilabel", "chain", "custom"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_example_is_enough(kind, options):
    problem = make_problem(kind)
    known = {"classes": [0, 1, 2]} if kind == "chain" else {}
    model = exact_ssvm(problem.structure, tol=0.1, **known, **options)
    X, y = problem.take([0])
    assert_same_labels(model.fit(X, y).predict(X), y)
    assert model.dual_gap_ <= 0.1


# Searches


LIMITS = [(kind, 1000) for kind in WRITTEN]
LIMITS += [("multilabel", 1), ("weighted chain", 3), ("custom", 1)]


@pytest.mark.parametrize("search", ["angular", *INEXACT])
@pytest.mark.parametrize(("case", "name"), crossed(LIMITS, SOLVERS))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_an_inexact_search_or_one_of_few_calls_certifies_is_true(case, name, search):
    (kind, limit), problem = case, written(case[0])
    options = SOLVERS[name if takes(search, name) else "n-slack"]
    model = problem.fit(
        search=search, max_queries=limit, max_iter=20, tol=1e-6, **options
    )
    primal, listed, w = problem.primal(model), problem.listed, model._weights
    assert np.isfinite(model.objective_) and model.objective_ >= primal - 1e-12
    assert model.dual_objective_ <= optimum(kind) + 1e-11
    assert model.dual_gap_ >= primal - optimum(kind) - 1e-11
    assert model.n_queries_ <= limit * model.n_oracle_calls_
    if limit == 1000 or search not in ("angular", "bisecting"):
        # K(λ)² / (4 λ) is no more than max h max g for the λ between the two, and H G is
        # had at once where λ = 0 is asked first. Where two searches begin may be any λ.
        most = [
            listed.loss[i].max() * (1.0 + listed.delta(i) @ w).max()
            for i in range(listed.n)
        ]
        squares = 0.5 * problem.lam(model) * w @ w
        assert model.objective_ <= squares + np.mean(most) + 1e-12


@pytest.mark.parametrize(
    ("search", "name"),
    [(own, name) for own in INEXACT for name in SOLVERS if takes(own, name)],
)
def test_the_warning_of_an_inexact_search_names_it_and_points_to_the_caller(search, name):
    problem, options = written("multilabel"), SOLVERS[name]
    # Either may come first, where nothing that is found is violated any more.
    ended = "(made no further progress|stopped at max_iter=200)"
    message = rf"{ended}.*search='{search}' is inexact.*use search='angular'"
    model = problem.model(search=search, tol=1e-6, max_iter=200, **options)
    with pytest.warns(ConvergenceWarning, match=message) as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1 and record[0].filename == __file__
    assert model.dual_gap_ > 1e-6
    assert model.n_queries_ > model.n_oracle_calls_


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"search_rtol": 0.3}, r"a fraction of 0.3 .*after 1000 calls"),
        ({"max_queries": 1}, r"after 1 calls.*: use search='exact', or a larger tol"),
    ],
)
def test_the_warning_of_a_search_that_is_cut_off_names_its_limits(limit, message):
    problem = written("weighted chain")
    model = problem.model(solver="cutting_plane", tol=1e-9, **limit)
    with pytest.warns(ConvergenceWarning, match=f"no further progress.*{message}"):
        model.fit(problem.X, problem.y)
    primal = problem.primal(model)
    assert primal - 1e-12 <= model.objective_
    assert model.dual_objective_ <= optimum("weighted chain") + 1e-11


@each_solver
@pytest.mark.parametrize(("limit", "value"), [("max_iter", 1), ("max_time", 1e-9)])
def test_a_fit_that_is_cut_short_warns_the_caller(options, limit, value):
    problem = written("chain")
    model = problem.model(**{"tol": 1e-9, **options, limit: value})
    with pytest.warns(ConvergenceWarning, match=f"stopped at {limit}={value}") as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1 and record[0].filename == __file__
    assert "inexact" not in str(record[0].message)
    assert model.n_iter_ == 1
    assert abs(model.objective_ - problem.primal(model)) <= 1e-12


@written_kinds
@each_solver
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_queries_are_those_of_the_searches(kind, options):
    problem, limits = written(kind), {"max_iter": 20, "tol": 1e-2, **options}
    model = problem.fit(**limits)
    assert model.n_queries_ >= model.n_oracle_calls_ >= problem.listed.n
    assert model.n_oracle_calls_ == model.history_["n_oracle_calls"][-1]
    if kind != "custom":
        # So they are with cached candidates: each search is one query.
        model = problem.fit(search="exact", **limits)
        assert model.n_queries_ == model.n_oracle_calls_


def test_the_search_may_change_between_fits_that_go_on():
    problem = written("chain")
    model = problem.model(warm_start=True, tol=1e-2, **SOLVERS["bcfw"])
    before = model.fit(problem.X, problem.y).dual_objective_
    model.set_params(solver_options__search="exact", tol=1e-6).fit(problem.X, problem.y)
    assert model.history_["dual_objective"][0] == pytest.approx(before, abs=1e-12)
    assert abs(model.objective_ - optimum("chain")) <= 1e-6


@pytest.mark.parametrize("kind", ["chain", "custom"])
def test_another_rescaling_starts_anew_with_a_warning(kind):
    problem = written(kind)
    model = problem.model(warm_start=True, **SOLVERS["bcfw"]).fit(problem.X, problem.y)
    model.set_params(rescaling="margin")
    message = "the structure or what it learned .* or rescaling"
    with pytest.warns(UserWarning, match=message) as record:
        model.fit(problem.X, problem.y)
    assert len(record) == 1 and record[0].filename == __file__
    fresh = problem.fit(warm_start=True, rescaling="margin", **SOLVERS["bcfw"])
    assert_same_fit(model, fresh)


# Refusals


@each_solver
@pytest.mark.parametrize(
    ("search", "message"),
    [("angular",
      "search='angular' needs.*constrained_decode or slack_augmented_decode.*Coded"),
     ("exact",
      "search='exact' needs.*slack_augmented_decode, which Coded does not have")],
)  # fmt: skip
def test_a_search_that_a_structure_cannot_serve_is_refused(search, message, options):
    problem = written("custom")
    structure = Coded(problem.structure.codes, problem.structure.costs, serves=None)
    model = exact_ssvm(structure, search=search, **options)
    before = sorted(vars(model))
    with pytest.raises(ValueError, match=f"{message}.*'bisecting', 'binary', 'sarawagi'"):
        model.fit(problem.X, problem.y)
    assert sorted(vars(model)) == before
    # Margin rescaling needs no search.
    model.set_params(rescaling="margin", tol=0.1).fit(problem.X, problem.y)


@each_solver
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((2, 2), 0.5, r"must be 0 where y is y_true; got 0.5 for example 2"),
        ((2, 2), -0.5, r"must be a finite number >= 0; got -0.5 for example 2"),
        ((2, 3), np.nan, r"must be a finite number >= 0; got nan for example 2"),
        ((2, 3), np.inf, r"must be a finite number >= 0; got inf for example 2"),
    ],
)
def test_a_loss_that_is_none_is_refused(options, place, value, message):
    problem = written("custom")
    costs = problem.structure.costs.copy()
    costs[place] = value
    model = exact_ssvm(Coded(problem.structure.codes, costs), **options)
    before = sorted(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(problem.X, problem.y)
    assert sorted(vars(model)) == before
