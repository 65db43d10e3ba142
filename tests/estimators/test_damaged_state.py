"""A fitted state that was changed, by hand or in a file, is refused and never read."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
from _estimators import make_problem
from _models import MODELS
from _options import placed
from _saving import SAVED
from _structures import ALL, data_of
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM
from sklearn_structsvm.structures import ChainStructure, Structure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(kind, **params):
    structure, X, y = data_of(kind)
    options = {"step": "pairwise", "max_iter": 1, "gap_check_interval": 1}
    model = placed(BCFWClassifier)(structure, random_state=0, **options | params)
    return model.fit(X, y), X, y


WRONG_WEIGHTS = (
    lambda w: np.zeros(7), lambda w: np.zeros(0), lambda w: w[..., :-1],
    lambda w: np.append(w, w[..., :1], axis=-1), lambda w: w[np.newaxis], lambda w: 1.0,
    lambda w: w * np.nan, lambda w: w.astype(str),
)  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_weights_that_do_not_fit_are_refused_by_name(kind):
    model, X, _ = fitted(kind)
    for name in ("coef_", "intercept_"):
        if hasattr(model, name):
            kept = getattr(model, name)
            for damage in WRONG_WEIGHTS:
                setattr(model, name, damage(kept))
                with pytest.raises(ValueError, match=f"^{name} must"):
                    model.predict(X)
            setattr(model, name, kept)
    for size in (0, 1, 1000) if isinstance(X, list) else ():
        with pytest.raises(ValueError, match=rf"^w must have shape .* got \({size},\)"):
            model.structure_.decode(X[0], np.zeros(size))
    # Weights of any layout and type of number are taken.
    expected = model.predict(X)
    model.coef_ = np.asfortranarray(np.round(model.coef_, 2).astype(np.float32))
    assert len(model.predict(X)) == len(expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["chain", "chain-csr", "tree"])
def test_a_weight_that_is_written_later_is_noticed_where_it_is_read(kind, value):
    """By the scores that it makes, whichever: of a model that has predicted before."""
    model, X, _ = fitted(kind)
    model = pickle.loads(pickle.dumps(model))
    if kind == "chain-csr":
        X = [sparse.csr_array(np.ones(x.shape)) for x in X]
    expected = model.predict(X)
    calls = [model.predict, model.predict_k_best, model.max_marginals]
    for at in range(len(model.coef_)):
        kept, model.coef_[at] = model.coef_[at], value
        for call in calls:
            with pytest.raises(ValueError, match=f"^coef_ must be finite; got {value}"):
                call(X)
        model.coef_[at] = kept
    for labels, before in zip(model.predict(X), expected, strict=True):
        np.testing.assert_array_equal(labels, before)


def changed(change, *names):
    """A damage of the first of these attributes that a structure has."""

    def damage(structure):
        name = next(name for name in names if hasattr(structure, name))
        setattr(structure, name, change(getattr(structure, name)))

    return damage


def set_no_features(structure):
    structure.n_features_in_ = -int(getattr(structure, "bias_", 0.0) != 0.0)
    structure.n_weights_ = structure._count_weights()


CLASSES = "classes_", "n_types"
SET_CLASSES = changed(lambda c: np.append(c, c[-1:]) if np.ndim(c) else c + 1, *CLASSES)
DAMAGES = [
    changed(lambda costs: costs[:-1], "label_costs_", "anchors_"),
    SET_CLASSES,
    changed(lambda c: np.array(1) if np.ndim(c) else c + 1, *CLASSES),
    changed(lambda c: c.tolist() if np.ndim(c) else c + 1, *CLASSES),
    changed(lambda n: n + 1, "n_features_in_"),
    set_no_features,
    changed(lambda n: 10**9, "n_weights_"),
]


@pytest.mark.parametrize("kind", ALL)
def test_a_structure_whose_parts_no_longer_fit_together_is_refused(kind):
    # What comes from a file has not predicted yet, whatever the damage.
    files = SAVED if kind in ("chain", "forest") else ["pickle"]
    for file, damage in [*product([None], DAMAGES), *product(files, [SET_CLASSES])]:
        model, X, _ = fitted(kind)
        if file is not None:
            model = SAVED[file](model)
        damage(model.structure_)
        words = "must have shape|changed after fit|features"
        with pytest.raises(ValueError, match=words):
            model.predict(X)


# Entries of arrays that place a graph's nodes, or a structure's pairs of labels.
PLACES = [
    ("children", 0, 10**6), ("children", -1, -1), ("children", 0, 0),
    ("starts", 1, 10**6), ("leaves", 0, 10**6),
    *((name, None, 0) for name in ("nodes", "children", "leaves", "starts")),
]  # fmt: skip
PAIRS = [("pairs_", (0, 1), value) for value in (-1, 3, 10**6)] + [("pairs_", None, 0)]


@pytest.mark.parametrize(
    ("kind", "places"), [("forest", PLACES), ("graph", PLACES), ("pairs", PAIRS)]
)
def test_places_of_a_structure_that_lead_to_nowhere_are_refused(kind, places):
    for name, at, value in places:
        model, X, _ = fitted(kind)
        owner = model.structure_ if kind == "pairs" else model.structure_._graph
        words = f"{name} must"
        if at is None:
            setattr(owner, name, np.array(value))
            words = f"^{name} must have shape"
        else:
            getattr(owner, name)[at] = value
        with pytest.raises(ValueError, match=words):
            model.predict(X)


@pytest.mark.parametrize("part", ["indices", "indptr", "data", "b"])
def test_a_damaged_polytope_is_refused_where_it_is_read(part):
    model, X, _ = fitted("graph")
    polytope = model.structure_._polytope
    if part == "b":
        polytope.b = polytope.b[:-1]
    elif part == "data":
        polytope.A.data = polytope.A.data[:-1]
    else:
        getattr(polytope.A, part)[1] = 10**6
    for trip in SAVED.values():
        with pytest.raises(ValueError, match=r"^(A\.ind|b must)"):
            trip(model).predict(X)


def shorten_blocks(state):
    blocks = state["blocks"]
    several = isinstance(blocks, tuple)
    state["blocks"] = tuple(b[:-1] for b in blocks) if several else blocks[1:]


def change_a_labeling(change):
    def damage(state):
        (saved, *rest), *_ = state["atoms"][0]
        state["atoms"][0][0] = (change(saved), *rest)

    return damage


DUAL_DAMAGE = {
    "fewer blocks": shorten_blocks,
    "fewer losses": lambda state: state.update(loss=state["loss"][:-1]),
    "a loss of NaN": lambda state: state["loss"].__setitem__(0, np.nan),
    "no active set": lambda state: state["atoms"].pop(),
    "unknown label": change_a_labeling(lambda own: np.full_like(own, 10**6)),
    "long labeling": change_a_labeling(lambda own: np.append(own, own)),
}


@pytest.mark.parametrize(
    ("kind", "step"),
    [*((kind, "pairwise") for kind in ALL if kind != "graph"),
     *((kind, "auto") for kind in ("binary", "multiclass", "multilabel-csr"))],
)  # fmt: skip
def test_a_warm_start_from_a_damaged_dual_point_is_refused(kind, step):
    good, X, y = fitted(kind, warm_start=True, step=step)
    for damage in DUAL_DAMAGE if step == "pairwise" else [*DUAL_DAMAGE][:3]:
        if kind == "roof" and damage == "unknown label":
            continue  # Of the relaxation any numbers are one.
        model = copy.deepcopy(good)
        DUAL_DAMAGE[damage](model._dual_state["state"])
        with pytest.raises(ValueError, match="must|active sets"):
            model.fit(X, y)


JUNK = (None, "x", 5, {}, [], [None], np.zeros(3), [0.5])


@pytest.mark.parametrize(
    ("kind", "model"),
    [*product(["multiclass", "chain", "cycles"],
              [BCFWClassifier, SlackRescaledSSVM, CRFClassifier]),
     *product(["custom"], [BCFWClassifier, SlackRescaledSSVM])],
)  # fmt: skip
def test_a_dual_state_of_other_things_is_refused_by_name(kind, model):
    if kind == "custom":
        problem = make_problem(kind)
        structure, X, y = problem.structure, problem.X, problem.y
    else:
        structure, X, y = data_of(kind)
    model = model(structure, warm_start=True, max_iter=2, random_state=0)
    if kind == "cycles" and "search" in model._settings():
        model.set_params(solver_options__search="bisecting")
    if kind != "multiclass" and "step" in model.get_params():
        model.set_params(step="pairwise")
    good = model.fit(X, y)._dual_state

    def refused(damaged, words):
        model._dual_state = damaged
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)

    for junk in JUNK[1:]:
        refused(junk, "^_dual_state must")
    for key in good:
        refused({key: good[key]}, "^_dual_state must have '")
    for junk in JUNK:
        refused(good | {"state": junk}, r"^_dual_state\['state'\] must")
    for key in good["state"]:
        if key in ("weights", "starts") and "factors" in good["state"]:
            continue  # what has all goes on from the factors
        for junk in JUNK:
            refused(good | {"state": good["state"] | {key: junk}}, "must")
    model._dual_state = good
    model.fit(X, y)


@pytest.mark.parametrize("kind", ["multiclass", "chain", "tree", "cycles", "pairs"])
def test_a_structure_that_is_none_is_refused_by_name(kind):
    model, X, y = fitted(kind)
    if kind != "pairs":
        model = CRFClassifier(model.structure, max_iter=1).fit(X, y)
    good = model.structure_
    others = [None, "chain", 5, {}, object(), clone(good), Structure()]
    calls = [model.predict, lambda X: model.score(X, y)]
    if isinstance(model, CRFClassifier):
        calls += [
            model.predict_proba, model.entropy, lambda X: model.log_likelihood(X, y),
        ]  # fmt: skip
    if good.flat:
        calls.append(model.decision_function)
    elif kind != "cycles":
        calls += [model.predict_k_best, model.max_marginals]
    for other in others:
        model.structure_ = other
        # The base class has neither marginals nor k best labelings.
        for call in calls[: 2 if type(other) is Structure else None]:
            with pytest.raises(
                ValueError, match="^structure_ .*it was changed after fit"
            ):
                call(X)
    for name in ("classes_", "n_features_in_", "n_weights_", "label_costs_"):
        model.structure_ = copy.deepcopy(good)
        delattr(model.structure_, name)
        with pytest.raises(ValueError, match=f"^structure_ .*{name}"):
            model.predict(X)
        for junk in (None, "x", np.zeros((2, 2, 2)), -1):
            setattr(model.structure_, name, junk)
            with pytest.raises(ValueError, match=f"{name}|has n_weights_="):
                model.predict(X)
    model.structure_ = good
    model.predict(X)


def with_bad_indices(X):
    """X as CSR rows, or a list of those, with an index beyond the columns."""
    if isinstance(X, list):
        return [with_bad_indices(x) for x in X]
    X = sparse.csr_array(X, copy=True)
    X.indices[0] = 10**6
    return X


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "pairs", "forest", "chain"])
def test_sparse_rows_that_point_beyond_their_columns_are_refused(kind):
    model, X, y = fitted(kind)
    model.fit([sparse.csr_array(x) for x in X] if kind == "chain" else X, y)
    bad = with_bad_indices(list(X) if kind == "chain" else X)
    words = r"^X(\[0\])?\.indices must be integers in"
    for method in ("predict", "decision_function"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=words):
                getattr(model, method)(bad)
    with pytest.raises(ValueError, match=words):
        model.fit(bad, y)


def test_what_is_missing_or_exchanged_is_named():
    model, X, _, options = MODELS["groups"][1]()
    damaged = copy.deepcopy(model)
    del damaged.cell_finder_.groups
    with pytest.raises(ValueError, match="^This CellFinder has no 'groups': it was"):
        damaged.predict(X, **options)
    damaged.cell_finder_ = [1]
    with pytest.raises(ValueError, match=r"^cell_finder_ has no 'find'; got \[1\]: it"):
        damaged.predict(X, **options)
    damaged = copy.deepcopy(model)
    damaged.cell_finder_.groups = {}
    with pytest.raises(ValueError, match=r"^cell_finder_.groups has no 'check'; got {}"):
        damaged.predict(X, **options)
    damaged.cell_finder_.group_blind = None
    with pytest.raises(ValueError, match=r"^cell_finder_.group_blind must be True or F"):
        damaged.predict(X, **options)
    for kind in ("binary", "chain"):
        model, X, y = fitted(kind)
        del model.n_jobs
        for call in (model.predict, lambda X, model=model, y=y: model.fit(X, y)):
            with pytest.raises(ValueError, match="^This BCFWClassifier has no 'n_jobs'"):
                call(X)

    class Erring(ChainStructure):
        def decode_batch(self, X, w, *args, **options):
            return self.table

    # Errors of users' code stay what they are.
    model = BCFWClassifier(Erring(), max_iter=1, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="table"):
        model.predict(X)
