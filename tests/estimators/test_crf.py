"""CRFClassifier: probabilities against enumeration and LogisticRegression, and misuse."""

from itertools import product

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import make_chains, make_multilabel
from sklearn_structsvm.metrics import (
    log_likelihood_scorer,
    neg_token_log_loss_scorer,
    token_accuracy_scorer,
    token_log_loss,
)
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import (
    MISSING,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    Structure,
    TreeStructure,
)


def chains(n=20, offset=0):
    return make_chains(
        n, n_features=3, n_classes=3, max_length=4, random_state=new_seed(offset)
    )


def trees(n=20):
    X, y = chains(n)
    rng = new_rng()
    parents = [[-1, *rng.integers(0, range(1, len(x)))] for x in X]
    return list(zip(X, parents, strict=True)), y


def classes(n=60, k=3):
    return make_classification(
        n, n_features=6, n_informative=4, n_classes=k, random_state=new_seed()
    )


def data_of(kind):
    if kind == "chain":
        return ChainStructure(), *chains()
    if kind == "chain-csr":
        X, y = chains()
        return ChainStructure(), [sparse.csr_matrix(x) for x in X], y
    if kind == "tree":
        return TreeStructure(), *trees()
    if kind == "multilabel":
        X, Y = make_multilabel(30, n_features=4, n_classes=3, random_state=new_seed())
        return MultilabelStructure(), X, Y
    return "auto", *classes(k={"binary": 2, "multiclass": 3}[kind])


KINDS = ["chain", "chain-csr", "tree", "binary", "multiclass", "multilabel"]
SEQUENCES = ["chain", "chain-csr", "tree"]
SOLVERS = [
    (kind, solver)
    for kind, solver in product(KINDS, ["dual", "lbfgs", "newton"])
    if solver != "newton" or kind not in SEQUENCES
]


def fitted(kind, **params):
    structure, X, y = data_of(kind)
    params = {"random_state": 0, "C": 0.5} | params
    return placed(CRFClassifier)(structure, **params).fit(X, y), X, y


def enumerated(model, x):
    """Labelings of one example and the logarithms of their probabilities."""
    structure = model.structure_
    labelings = [np.asarray(labels) for labels in structure.labelings(x)]
    intercept = getattr(model, "intercept_", None)
    w = structure.join_weights(model.coef_, intercept)
    scores = np.array([structure.joint_feature(x, labels) @ w for labels in labelings])
    return labelings, scores - logsumexp(scores)


@pytest.mark.parametrize(("kind", "solver"), SOLVERS)
def test_probabilities_are_those_of_the_enumeration(kind, solver):
    model, X, y = fitted(kind, solver=solver)
    proba, logs = model.predict_proba(X), model.predict_log_proba(X)
    likelihood, entropy = model.log_likelihood(X, y), model.entropy(X)
    most_probable = model.predict(X)
    k_best = model.predict_k_best(X, 4) if kind in SEQUENCES else None
    for i in range(6):
        labelings, log_p = enumerated(model, X[i])
        p = np.exp(log_p)
        values = [1] if kind == "multilabel" else model.classes_
        listed = np.array(labelings)
        marginals = np.array([p @ (listed == value) for value in values]).T
        assert np.reshape(marginals, proba[i].shape) == pytest.approx(proba[i], abs=1e-9)
        assert np.exp(logs[i]) == pytest.approx(proba[i])

        def of(labels, labelings=labelings, log_p=log_p):
            return log_p[[np.array_equal(own, labels) for own in labelings]].item()

        assert likelihood[i] == pytest.approx(of(y[i]), abs=1e-9)
        assert entropy[i] == pytest.approx(-p @ log_p, abs=1e-9)
        assert of(most_probable[i]) == pytest.approx(log_p.max(), abs=1e-12)
        if k_best is not None:
            found, shares = (part[i] for part in k_best)
            assert shares == pytest.approx(np.sort(p)[::-1][:4], abs=1e-10)
            assert [np.exp(of(own)) for own in found] == pytest.approx(shares, abs=1e-10)


COSTS = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [0.5, 3.0, 0.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_mbr_decoding_has_the_least_expected_loss(kind):
    structure, X, y = data_of(kind)
    if kind == "multiclass":
        structure = MulticlassStructure(label_costs=COSTS)
    elif kind == "multilabel":
        structure = MultilabelStructure(label_costs=[[1, 3], [2, 1], [1, 1]])
    elif kind in SEQUENCES:
        structure = clone(structure).set_params(label_costs=COSTS)
    model = placed(CRFClassifier)(structure, C=0.1, random_state=0, decoding="mbr")
    predicted = model.fit(X, y).predict(X)
    for i in range(4):
        labelings, log_p = enumerated(model, X[i])
        p = np.exp(log_p)
        risks = [
            sum(
                share * model.structure_.loss(truth, labels)
                for share, truth in zip(p, labelings, strict=True)
            )
            for labels in labelings
        ]
        chosen = [np.array_equal(labels, predicted[i]) for labels in labelings]
        assert risks[chosen.index(True)] == pytest.approx(min(risks), abs=1e-9)


def assert_same_model(model, other, X, atol):
    assert model.coef_ == pytest.approx(other.coef_, abs=atol)
    assert model.predict_proba(X) == pytest.approx(other.predict_proba(X), abs=atol)
    assert np.array_equal(model.predict(X), other.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    # λ/2 ‖w - w*‖² <= gap, of ours, which the dual's has no more than 16 digits of.
    ("solver", "atol"),
    [("auto", 1e-8), ("newton", 1e-8), ("lbfgs", 1e-7), ("dual", 1e-6)],
)
@pytest.mark.parametrize(("k", "C"), [(2, 1.0), (3, 0.01), (3, 1.0)])
def test_flat_fits_are_those_of_logistic_regression(C, k, solver, atol):
    X, y = classes(k=k)
    weights = new_rng().integers(0, 3, size=len(y)).astype(float)
    weights[:k] = 1.0
    for rows in (X, sparse.csr_array(X)):
        other = LogisticRegression(
            C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-14, max_iter=1000
        ).fit(X, y, weights)
        model = CRFClassifier(
            C=C, fit_intercept=False, solver=solver, tol=1e-20, max_iter=2000,
            random_state=0,
        ).fit(rows, y, weights)  # fmt: skip
        assert_same_model(model, other, rows, atol)


def test_auto_is_newton_for_more_rows_than_features_or_where_ascent_is_slow():
    X, y = new_rng().standard_normal((6, 6)), np.arange(6) % 2
    assert CRFClassifier().fit(X, y).solver_ == "newton"
    assert CRFClassifier(random_state=0).fit(X[:5], y[:5]).solver_ == "dual"
    assert fitted("chain")[0].solver_ == fitted("tree")[0].solver_ == "dual"
    assert fitted("chain", solver="lbfgs")[0].solver_ == "lbfgs"
    rng = new_rng()
    X, y = 30.0 + rng.standard_normal((40, 60)), np.arange(40) % 4
    with pytest.warns(ConvergenceWarning):
        CRFClassifier(solver="dual", C=1e3, max_iter=100).fit(X, y)
    model = CRFClassifier(C=1e3, max_iter=100).fit(X, y)
    assert model.solver_ == "newton" and model.dual_gap_ <= model.tol
    optimum = CRFClassifier(solver="newton", C=1e3, tol=1e-9).fit(X, y)
    assert model.objective_ - optimum.objective_ <= model.dual_gap_ + 1e-9
    assert (np.diff(model.history_["n_iter"]) > 0).all()
    assert (np.diff(model.history_["n_oracle_calls"]) > 0).all()
    assert (np.diff(model.history_["dual_objective"]) >= -1e-12)[-5:].all()


def raw_chains(C=0.1, n=40):
    """Chains with columns from 1 to 1e4, and a model that ascent alone cannot fit."""
    X, y = make_chains(n, n_features=5, n_classes=3, random_state=new_seed())
    return CRFClassifier(C=C, random_state=0), [x * np.geomspace(1, 1e4, 5) for x in X], y


def test_slow_ascent_is_replaced_on_chains_of_raw_columns_and_a_warm_start_goes_on():
    model, X, y = raw_chains()
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(solver="dual", max_iter=200).fit(X, y)
    model.set_params(max_iter=200, warm_start=True).fit(X, y)
    assert model.solver_ == "lbfgs" and model.dual_gap_ <= model.tol
    # A line search knows values to about 1e-15, and the gap is a squared gradient / 2λ:
    # with columns of 1e4, so second derivatives of 1e8, it can be had to some 1e-6.
    at_once = clone(model).set_params(solver="lbfgs", tol=1e-4).fit(X, y)
    assert at_once.objective_ >= model.dual_objective_ - 1e-9
    assert model.objective_ - at_once.objective_ <= model.tol
    assert model.fit(X, y).n_iter_ <= 1


def test_what_follows_ascent_keeps_its_bound_until_it_has_a_better_one():
    """A fit that ends just after the change is no worse than one that ends before."""
    model, X, y = raw_chains(C=1.0)

    def fitted(max_iter, **params):
        return clone(model).set_params(max_iter=max_iter, **params).fit(X, y)

    with pytest.warns(ConvergenceWarning):
        # Mostly at once, but gaps that go up and down may conceal for a while how slow
        # ascent is.
        last = next(k for k in range(21, 200) if fitted(k).solver_ != "dual")
        before, after = fitted(last, solver="dual"), fitted(last + 1)
    assert after.solver_ == "lbfgs"
    assert after.objective_ <= before.objective_ + 1e-9
    assert after.dual_gap_ <= before.history_["dual_gap"][-2] + 1e-9


def sensor_chain(n_positions):
    """One long sequence, such as a day of a sensor, with two rare labels of three."""
    rng = new_rng()
    labels = rng.choice(3, n_positions, p=[0.95, 0.03, 0.02])
    return [np.eye(3)[labels] + rng.normal(size=(n_positions, 3))], [labels]


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_a_long_sequence_is_fitted_by_default(l1_ratio):
    X, y = sensor_chain(20_000)
    model = CRFClassifier("chain", l1_ratio=l1_ratio, random_state=0).fit(X, y)
    assert model.dual_gap_ <= model.tol
    if l1_ratio == 0.0:
        there = CRFClassifier("chain", solver="lbfgs").fit(X, y)
        assert model.solver_ in ("dual", "lbfgs")
        assert abs(model.objective_ - there.objective_) <= model.tol
        assert model.score(X, y) == pytest.approx(there.score(X, y), abs=1e-3)


def test_newton_takes_split_items_as_arrays_and_is_for_rows_and_chains():
    X, y = chains()
    split = [SplitMatrix([x[:, :2], sparse.csr_array(x[:, 2:])]) for x in X]
    for params in ({"solver": "newton"}, {"C": 100.0}, {"C": 100.0, "l1_ratio": 1.0}):
        model = placed(CRFClassifier)("chain", random_state=0, **params).fit(X, y)
        same = placed(CRFClassifier)("chain", random_state=0, **params).fit(split, y)
        assert same.solver_ == model.solver_
        assert same.objective_ == pytest.approx(model.objective_, abs=2e-3)

    class Mine(MulticlassStructure):
        pass

    X, y = classes()
    for structure, data in ((TreeStructure(), trees()), (Mine(), (X, y))):
        with pytest.raises(
            ValueError, match="solver='newton' requires structure=BinaryStructure"
        ):
            CRFClassifier(structure, solver="newton").fit(*data)
    X_, y_ = chains()
    scores = [np.ones((len(x), 3)) for x in X_]
    both = list(zip(X_, scores, strict=True))
    for items, emission in ((scores, "given"), (both, "both")):
        model = CRFClassifier(ChainStructure(emission=emission), solver="newton")
        with pytest.raises(ValueError, match="without scores of another model"):
            model.fit(items, y_)
    assert CRFClassifier(Mine(), solver="lbfgs").fit(X, y).solver_ == "lbfgs"


def test_intercepts_are_of_a_constant_feature_and_class_weights_of_examples():
    X, y = classes(k=3)
    options = {"tol": 1e-12, "max_iter": 5000, "random_state": 0}
    model = placed(CRFClassifier)(intercept_scaling=2.5, **options).fit(X, y)
    extended = np.column_stack([X, np.full(len(X), 2.5)])
    other = CRFClassifier(fit_intercept=False, **options).fit(extended, y)
    assert model.coef_ == pytest.approx(other.coef_[:, :-1], abs=1e-4)
    assert model.intercept_ == pytest.approx(2.5 * other.coef_[:, -1], abs=1e-4)
    weight = {0: 2.0, 1: 0.5, 2: 1.0}
    model = CRFClassifier(class_weight=weight, **options).fit(X, y)
    other = CRFClassifier(**options).fit(X, y, [weight[label] for label in y])
    assert model.coef_ == pytest.approx(other.coef_, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "solvers"),
    [
        *product(["chain"], product(["dual", "lbfgs"], repeat=2)),
        *product(["multiclass"], product(["dual", "lbfgs", "newton"], repeat=2)),
    ],
)
def test_a_warm_start_goes_on_whatever_the_solver(kind, solvers):
    model, X, y = fitted(kind, solver=solvers[0], tol=1e-6, warm_start=True)
    model.set_params(solver=solvers[1], tol=1e-5).fit(X, y)
    # That of lbfgs has the weights of a dual point; that of dual is the other way round.
    assert model.n_iter_ <= 3
    cold, *_ = fitted(kind, solver=solvers[1], tol=1e-7)
    model.set_params(C=1.0, tol=1e-7).fit(X, y)
    cold.set_params(C=1.0).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, abs=1e-7)


def test_a_warm_start_with_other_labels_starts_anew_and_wrong_weights_are_refused():
    model, X, y = fitted("chain", warm_start=True)
    with pytest.warns(UserWarning, match="starting anew"):
        model.fit(X, [np.roll(model.classes_, 1)[labels] for labels in y])
    model, X, y = fitted("chain", warm_start=True, solver="lbfgs")
    model._dual_state["state"]["weights"] = np.zeros(3)
    for solver in ("lbfgs", "dual"):
        with pytest.raises(ValueError, match="must have shape"):
            model.set_params(solver=solver).fit(X, y)


def test_too_few_passes_are_said():
    for kind, solver in (("chain", "dual"), ("chain", "lbfgs"), ("binary", "newton")):
        with pytest.warns(ConvergenceWarning, match="duality gap"):
            fitted(kind, solver=solver, max_iter=2, tol=1e-12)


@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_extreme_strengths_of_regularization_end_somewhere_sound(C):
    for kind, solver in (("chain", "auto"), ("binary", "newton"), ("binary", "dual")):
        structure, X, y = data_of(kind)
        model = CRFClassifier(structure, C=C, solver=solver, max_iter=30, random_state=0)
        with np.errstate(all="ignore"):
            try:
                model.fit(X, y)
            except ConvergenceWarning:
                continue
        assert np.isfinite(model.coef_).all() and model.dual_gap_ >= -1e-9


def test_labels_that_were_not_seen_have_no_likelihood():
    model, X, y = fitted("chain")
    strange = [np.full(len(labels), 77) for labels in y[:2]]
    logs = model.log_likelihood(X[:4], [*strange, *y[2:4]])
    assert np.isneginf(logs).tolist() == [True, True, False, False]
    assert log_likelihood_scorer(model, X[:1], strange[:1]) == -np.inf
    for scorer in (neg_token_log_loss_scorer, log_likelihood_scorer):
        with pytest.raises(TypeError, match="such as CRFClassifier; got BCFWClassifier"):
            scorer(BCFWClassifier(), [np.ones((1, 1))], [["a"]])


def test_a_grid_search_goes_by_the_probabilities():
    X, y = chains(30)
    model = CRFClassifier(
        ChainStructure(), solver_options={"classes": [0, 1, 2]}, random_state=0
    )
    scorers = {
        "accuracy": token_accuracy_scorer,
        "tokens": neg_token_log_loss_scorer,
        "labelings": log_likelihood_scorer,
    }
    search = GridSearchCV(
        model, {"C": [1e-5, 1.0]}, scoring=scorers, refit="tokens", cv=KFold(3)
    ).fit(X, y)
    for name in scorers:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    # With hardly any weights all labels are as probable.
    tokens = search.cv_results_["mean_test_tokens"]
    assert tokens[0] == pytest.approx(-np.log(3), rel=0.05)
    assert search.best_score_ == tokens.max()


def test_token_log_loss_is_its_definition():
    y_true = [["a", "b"], ["b"], ["c"]]
    proba = [[[0.9, 0.1], [0.25, 0.75]], [[0.0, 1.0]], [[0.5, 0.5]]]
    weight = [1.0, 2.0, 0.0]
    loss = token_log_loss(y_true, proba, labels=["a", "b"], sample_weight=weight)
    assert loss == pytest.approx(-(np.log(0.9) + np.log(0.75)) / 4)
    unseen = token_log_loss(y_true[2:], proba[2:], labels=["a", "b"])
    assert unseen == pytest.approx(-np.log(np.finfo(float).eps))


HALVES = [[[0.5, 0.5]]]
NO_LOSS = [
    *(([["a"], ["b"]], proba, ["a", "b"], words) for proba, words in [
        (HALVES, "y_true has 2 sequences but y_proba has 1"),
        ([[[0.5, 0.5]], [[1.0]]], r"y_proba\[1\] must have shape"),
        ([[[0.5, 0.5]], [[2.0, -1.0]]], r"y_proba\[1\] must hold probabilities"),
        ([[[0.5, 0.5]], [[np.nan, 1.0]]], r"y_proba\[1\] must be finite"),
        ("ab", "y_proba must be a list"),
        (sparse.eye_array(2), "y_proba must be a list"),
    ]),
    *(([["b"]], HALVES, labels, words) for labels, words in [
        (None, r"labels must have shape \(n_classes,\)"),
        (2, r"labels must have shape \(n_classes,\)"),
        (np.eye(2), r"labels must have shape \(n_classes,\); got \(2, 2\)"),
        ([["a"], ["b", "c"]], "labels must be an array"),
        ([], "labels is empty"),
        (["a", None], "labels has the label None"),
        (np.ma.masked_array(["a", "b"], [0, 1]), "labels has a masked label"),
        ([{}, "b"], "labels contains what cannot be one: .*unhash"),
        (["b", "b"], "labels holds a label twice"),
        ({"a", "b"}, "labels must be a list of labels, whose order counts"),
    ]),
    *((y_true, HALVES, ["a", "b"], words) for y_true, words in [
        (None, "y_true must be a list of label sequences; got NoneType"),
        (sparse.eye_array(2), "y_true must be a list"),
        ([5], r"y_true\[0\] must be a 1-D sequence of labels, got 5"),
        ([[{}]], r"y_true\[0\] contains what cannot be a label: .*unhashable"),
        ([np.ma.masked_array(["b"], [True])], r"y_true\[0\] has a masked label"),
    ]),
]  # fmt: skip


def test_what_has_no_log_loss_is_refused():
    for y_true, proba, labels, words in NO_LOSS:
        with pytest.raises(ValueError, match=words):
            token_log_loss(y_true, proba, labels=labels)


class OfMyOwn(Structure):
    pass


def test_structures_without_sums_and_decodings_that_do_not_exist_are_refused():
    model, X, y = fitted("chain")
    words = "ChainStructure, TreeStructure, GraphStructure, BinaryStructure"
    for structure in (PairwiseMultilabelStructure(), OfMyOwn()):
        with pytest.raises(ValueError, match=words):
            CRFClassifier(structure).fit(X, y)
    with pytest.raises(ValueError, match="decoding must be one of 'map', 'mbr'"):
        model.set_params(solver_options__decoding="mpa").predict(X)
    with pytest.raises(ValueError, match="decoding"):
        model.fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_other_examples_no_fit_and_damaged_weights_are_refused(kind):
    model, X, y = fitted(kind)
    with pytest.raises(ValueError, match="length|numbers of samples|inconsistent"):
        model.log_likelihood(X, y[:-1])
    with pytest.raises(ValueError, match="not fitted|fit"):
        clone(model).predict_proba(X)
    assert hasattr(model, "predict_k_best") == (kind in SEQUENCES)
    model.coef_ = model.coef_[..., :-1]
    for ask in (model.predict_proba, model.entropy, model.predict):
        with pytest.raises(ValueError, match="^coef_ must"):
            ask(X)
    with pytest.raises(ValueError, match="^coef_ must"):
        model.log_likelihood(X, y)


def one_labeling(kind, n=8, scale=1.0):
    """Examples whose transitions leave one labeling each: 0, 1, 2, 0, ... downwards."""
    rng, mask = new_rng(50), np.zeros((4, 4), dtype=bool)
    mask[[3, 0, 1, 2], [0, 1, 2, 0]] = mask[:3, 3] = True
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(3, 20))
        parents = np.arange(-1, size - 1)
        if kind == "tree":
            parents[1:] = [rng.integers(0, t) for t in range(1, size)]
        depths = np.zeros(size, dtype=int)
        for t in range(1, size):
            depths[t] = depths[parents[t]] + 1
        nodes = scale * rng.standard_normal((size, 3))
        X.append(nodes if kind == "chain" else (nodes, parents))
        y.append(depths % 3)
    structure = {"chain": ChainStructure, "tree": TreeStructure}[kind]
    return structure(transitions=mask), X, y


@pytest.mark.filterwarnings("ignore:There is nothing to learn")
@pytest.mark.parametrize(
    ("solver", "C", "scale"),
    [("dual", 1e-3, 1.0), ("lbfgs", 1.0, 1.0), ("dual", 1e4, 1e6), ("lbfgs", 1e4, 1e6)],
)
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_where_one_labeling_is_possible_the_objective_is_zero(kind, C, scale, solver):
    structure, X, y = one_labeling(kind, scale=scale)
    model = CRFClassifier(structure, C=C, solver=solver, random_state=0).fit(X, y)
    assert 0.0 <= model.objective_ <= 1e-9
    assert abs(model.dual_gap_) <= 1e-9
    # Whatever the weights.
    model.coef_ = 100.0 * new_rng(51).standard_normal(model.coef_.shape)
    assert model.entropy(X).min() >= 0.0
    assert model.entropy(X).max() <= 1e-6 * scale
    likelihood = model.log_likelihood(X, y)
    assert likelihood.max() <= 0.0 and not np.signbit(likelihood[likelihood == 0.0]).any()


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_the_weights_of_the_classes_sum_to_zero(kind):
    rng = new_rng(8)
    y = rng.integers(0, 3, 120)
    X = (rng.standard_normal((120, 4)) + y[:, np.newaxis]) * [1.0, 10.0, 0.1, 30.0]
    if kind == "chain":
        X, y = list(X.reshape(30, 4, 4)), list(y.reshape(30, 4))
    model = CRFClassifier(solver="lbfgs", C=10.0, tol=1e-2).fit(X, y)
    coef = model.coef_ if kind == "multiclass" else model.coef_[:12].reshape(4, 3).T
    # Any of the weights of a class may be longer by the same: what it would gain to
    # shorten these is rounding.
    gain = 0.5 / (10.0 * len(y)) * (coef.sum(axis=0) ** 2).sum() / 3
    assert gain <= 1e-14 * model.objective_
    history, best = model.history_, clone(model).set_params(tol=1e-6).fit(X, y)
    assert history["objective"][-1] == model.objective_
    assert model.dual_objective_ <= best.objective_ <= model.objective_
    assert model.objective_ - best.dual_objective_ <= model.dual_gap_


@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_trees_with_large_columns_end_where_values_no_longer_fall(hidden):
    """The slopes by such columns are noise to L-BFGS, but not to Newton's method."""
    rng, n = new_rng(64), 40
    parents = np.array([-1, 0, 0, 1, 1])
    Z = rng.standard_normal((n, 5, 3))
    y = np.digitize(Z[..., 0] - Z[..., 1] + rng.logistic(size=(n, 5)), [-1.0, 1.0])
    y = y.astype(object)
    y[rng.random((n, 5)) < hidden] = MISSING
    items = [(1e8 * (z + 3.0), parents) for z in Z]
    model = CRFClassifier("tree", C=1e3, random_state=0).fit(items, [*y])
    assert model.dual_gap_ <= model.tol
    if not hidden:
        value = 0.5 * model.coef_ @ model.coef_ / (1e3 * n)
        value -= model.log_likelihood(items, [*y]).mean()
        assert model.objective_ == pytest.approx(value, rel=1e-6)
