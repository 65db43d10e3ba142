"""Groups that are known in `fit` and not to predictions: rules of P(group, label | x)."""

import pickle
import warnings
from itertools import product

import numpy as np
import pytest
import sklearn
from _mixtures import Boosted, make_data, no_complaint_of_convergence
from _options import placed, set_placed
from _seeds import new_rng
from scipy import sparse
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    LinearLoss,
    confusion_tensor,
)
from sklearn_structsvm.plotting import AchievableSetDisplay, TradeoffDisplay
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

FAIR = EqualOpportunity(slack=0.02)
TOL = 1e-6


class Pairs:
    """Probabilities of pairs that are the features, or a function of them."""

    def __init__(self, n_pairs, of=np.asarray):
        self.classes_ = np.arange(n_pairs)
        self.of = of

    def predict_proba(self, X):
        return self.of(X)


def blind(*args, **params):
    return placed(ComplexMetricClassifier)(*args, group_blind=True, **params)


def exact_fit(Q, y, groups, metric, constraint, weights=None, of=np.asarray, X=None):
    """By given probabilities of pairs, which are counted; almost to the optimum."""
    model = blind(
        Pairs(Q.shape[1], of), metric, constraint, cv="prefit", tol=TOL,
        confusion="probabilities",
    )  # fmt: skip
    with no_complaint_of_convergence():
        warnings.filterwarnings("ignore", "The classifier predicts")
        return model.fit(
            Q if X is None else X, y, sample_weight=weights, sensitive_features=groups
        )


def least(tensors, costs, constraint, cells):
    """Of a mixture of confusion tensors (T, m, k, k): a linear program, or None."""
    G, h = constraint.linear(cells)
    n = len(tensors)
    flat = tensors.reshape(n, -1)
    found = linprog(
        flat @ costs.ravel(), A_ub=(flat @ G.reshape(len(G), -1).T).T, b_ub=-h,
        A_eq=np.ones((1, n)), b_eq=[1.0], bounds=(0, None),
    )  # fmt: skip
    return found.fun if found.status == 0 else None


def random_sample(rng, n, g, k):
    """Probabilities of pairs, labels and groups; all pairs occur."""
    Q = rng.dirichlet(np.full(g * k, 0.5), n)
    pairs = rng.permutation(np.arange(n) % (g * k))
    return Q, pairs % k, pairs // k


def cells_of(Q, weights, g, k):
    """The cells of g groups under a model of the pairs."""
    _, cells = confusion_tensor(
        np.tile(np.arange(k), g), np.tile(np.arange(k), g),
        sensitive_features=np.repeat(np.arange(g), k),
        sample_weight=weights @ Q / weights.sum(),
    )  # fmt: skip
    return cells


@pytest.mark.parametrize(
    "constraint", [DemographicParity, EqualOpportunity, EqualizedOdds]
)
@pytest.mark.parametrize(("n", "g", "k"), [(8, 2, 2), (6, 3, 2), (6, 2, 3)])
def test_no_mixture_of_all_rules_is_better(constraint, n, g, k):
    rng = new_rng(n, g, k)
    for slack in (0.0, 0.05, 0.3):
        Q, y, groups = random_sample(rng, n, g, k)
        weights = rng.random(n) + 0.1
        costs = rng.random((k, k)) * (1 - np.eye(k))
        fair = constraint(slack=slack, pos_label=1 if k == 2 else None)
        cells = cells_of(Q, weights, g, k)
        model = exact_fit(Q, y, groups, LinearLoss(costs), fair, weights)
        rules = np.array(list(product(range(k), repeat=n)))
        # (T, n, k) -> (T, pairs, k): every rule there is on these rows.
        shares = weights / weights.sum()
        tensors = np.einsum("r,rq,trj->tqj", shares, Q, np.eye(k)[rules])
        tensors = tensors.reshape(-1, g, k, k)
        best = least(tensors, np.broadcast_to(costs, (g, k, k)), fair, cells)
        assert model.dual_objective_ <= best + 1e-8
        assert model.objective_ >= best - 1e-8
        assert model.dual_gap_ <= TOL
        assert model.constraint_violation_ <= 1e-9
        np.testing.assert_allclose(model.certified_confusions_.sum(axis=2), cells.priors)
        # What is predicted is what is certified.
        P = model.predict_proba(Q)
        found = np.einsum("r,rq,rj->qj", shares, Q, P).reshape(g, k, k)
        np.testing.assert_allclose(found, model.certified_confusions_, atol=1e-12)


@pytest.mark.parametrize(
    "constraint", [DemographicParity, EqualOpportunity, EqualizedOdds]
)
def test_equal_rates_of_many_groups_end_at_tol(constraint):
    rng, fair = new_rng(13), constraint(slack=0.0, pos_label=1)
    for n in (200, 200, 1000):
        model = exact_fit(*random_sample(rng, n, 5, 2), "balanced", fair)
        assert model.dual_gap_ <= TOL
        assert model.constraint_violation_ <= 1e-9


def test_the_bound_of_a_sum_of_ratios_takes_no_descents():
    rng, fair = new_rng(14), EqualizedOdds(slack=0.0)
    model = blind(Pairs(12), "macro_f1", fair, cv="prefit", confusion="labels")
    for _ in range(3):
        Q, y, groups = random_sample(rng, 200, 4, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Q, y, sensitive_features=groups)
        # Each of three ratios takes a few calls.
        assert model.n_oracle_calls_ <= model.history_["n_oracle_calls"][-1] + 30
        assert np.isfinite(model.dual_gap_)


def two_shifted_groups(x):
    """P(group, label | x) of normal x in two groups, and the density of x."""
    densities = np.array([0.6, 0.4]) * np.exp(-((x[:, None] - [-0.7, 0.7]) ** 2) / 2)
    of_one = expit(1.5 * x[:, None] + [0.5, -0.5])
    joint = densities[:, :, None] * np.stack([1 - of_one, of_one], axis=2)
    density = joint.sum(axis=(1, 2))
    return (joint / density[:, None, None]).reshape(len(x), 4), density


@pytest.mark.parametrize("slack", [0.0, 0.1, 0.2])
def test_the_optimum_of_a_distribution_on_the_line(slack):
    # Trapezoids on a fine grid, of a function that is continuous: the dual of the least
    # error at equal rates has one multiplier of either sign.
    x = np.linspace(-8, 8, 8001)
    Q, density = two_shifted_groups(x)
    weights = density / density.sum()
    of_group = np.stack([Q[:, :2].sum(axis=1), Q[:, 2:].sum(axis=1)], axis=1)
    shares = weights @ of_group
    difference = of_group[:, 0] / shares[0] - of_group[:, 1] / shares[1]
    if_zero, if_one = Q[:, 1] + Q[:, 3], Q[:, 0] + Q[:, 2]

    def dual(multiplier):
        least_cost = np.minimum(if_zero, if_one + multiplier * difference)
        return weights @ least_cost - abs(multiplier) * slack

    best = -minimize_scalar(
        lambda m: -dual(m), bounds=(-2, 2), method="bounded", options={"xatol": 1e-9}
    ).fun
    assert dual(0.0) < best  # it does cost something
    fair = DemographicParity(slack=slack, reference="groups")
    y, groups = np.arange(len(x)) % 2, np.arange(len(x)) // 2 % 2
    model = exact_fit(Q, y, groups, "zero_one", fair, weights)
    assert model.dual_objective_ <= best + 1e-7
    assert model.objective_ == pytest.approx(best, abs=2 * TOL)

    # And by labels that are drawn: six standard deviations of rates of that many rows.
    rng, n = new_rng(3), 20_000
    groups = (rng.random(n) < 0.4).astype(int)
    drawn = rng.standard_normal(n) + np.where(groups, 0.7, -0.7)
    y = (rng.random(n) < expit(1.5 * drawn + 0.5 - groups)).astype(int)
    model = blind(
        Pairs(4, lambda X: two_shifted_groups(X[:, 0])[0]), "zero_one", fair, cv="prefit"
    )
    model.fit(drawn[:, None], y, sensitive_features=groups)
    assert model.constraint_violation_ <= 1e-9
    P = model.predict_proba(x[:, None])
    rate = P[:, 1] * weights @ difference
    assert abs(rate) <= slack + 6 * 0.5 * np.sqrt(1 / (0.6 * n) + 1 / (0.4 * n))
    error = weights @ (P[:, 0] * if_zero + P[:, 1] * if_one)
    assert error <= best + 6 * 0.5 / np.sqrt(n) + 0.02


def test_the_optimum_of_three_classes_and_groups_in_the_square():
    # Gauss and Legendre's nodes of each side.
    nodes, of_node = np.polynomial.legendre.leggauss(24)
    X = np.array(list(product(nodes, nodes)))
    weights = np.outer(of_node, of_node).ravel()
    rng = new_rng(7)
    of_group = softmax(X @ rng.standard_normal((2, 3)), axis=1)
    logits = np.einsum("rd,dai->rai", X, 2 * rng.standard_normal((2, 3, 3)))
    Q = (of_group[:, :, None] * softmax(logits, axis=2)).reshape(len(X), 9)
    fair = EqualOpportunity(slack=0.03)
    cells = cells_of(Q, weights, 3, 3)
    y, groups = np.arange(len(X)) % 3, np.arange(len(X)) // 3 % 3
    model = exact_fit(Q, y, groups, "min_max", fair, weights)
    # The worst recall of all randomized rules, the share of each prediction at each node
    # and the loss for variables.
    n, shares = len(X), weights / weights.sum()
    of_rows = np.einsum("r,rq,jl->rjql", shares, Q, np.eye(3)).reshape(n * 3, 9, 3)
    of_rows = of_rows.reshape(n * 3, 3, 3, 3)
    G, h = fair.linear(cells)
    on_constraints = np.tensordot(of_rows, G, axes=([1, 2, 3], [1, 2, 3])).T
    recalls = np.einsum("vaii->iv", of_rows) / cells.class_priors[:, None]
    found = linprog(
        np.append(np.zeros(3 * n), 1.0),
        A_ub=sparse.csr_array(np.block([
            [on_constraints, np.zeros((len(G), 1))], [-recalls, -np.ones((3, 1))]
        ])),
        b_ub=np.append(-h, -np.ones(3)),
        A_eq=sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, 3))),
                            sparse.csr_array((n, 1))]),
        b_eq=np.ones(n), bounds=(0, None),
    )  # fmt: skip
    assert model.dual_objective_ <= found.fun + 1e-7
    assert model.objective_ == pytest.approx(found.fun, abs=2 * TOL)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("confusion", ["labels", "probabilities"])
@pytest.mark.parametrize(
    "group_estimator", [None, LogisticRegression()], ids=["one", "two"]
)
@pytest.mark.parametrize("cv", [None, 3])
def test_constraints_are_met_as_confusion_is_counted(k, confusion, group_estimator, cv):
    X, y, groups = make_data(k)
    weights = new_rng(k).integers(0, 3, len(y)) / 2
    model = blind(
        LogisticRegression(), "h_mean", FAIR, group_estimator=group_estimator, cv=cv,
        confusion=confusion,
    )  # fmt: skip
    model.fit(X, y, sample_weight=weights, sensitive_features=groups)
    assert model.constraint_violation_ <= 1e-9
    assert model.groups_.tolist() == ["old", "young"]
    assert 0 < model.dual_gap_ < (1e-3 if confusion == "probabilities" else np.inf)
    if cv is None:
        P = model.predict_proba(X)
        C, _ = confusion_tensor(
            y, P, labels=np.arange(k), sample_weight=weights, sensitive_features=groups
        )
        np.testing.assert_allclose(C, model.cell_confusions_, atol=1e-12)
    # "auto" counts labels of two classes.
    auto = clone(model).set_params(confusion="auto")
    auto.fit(X, y, sample_weight=weights, sensitive_features=groups)
    if (k == 2) == (confusion == "labels"):
        np.testing.assert_array_equal(auto.loss_matrices_, model.loss_matrices_)


@pytest.mark.parametrize("constraints", [(), FAIR], ids=["free", "fair"])
@pytest.mark.parametrize(("k", "is_blind"), [(2, True), (3, True), (3, False)])
def test_the_bound_of_counted_labels_is_the_value_minus_the_gap(k, is_blind, constraints):
    # Labels may be better or worse than the probabilities say, so that a bound under
    # these may exceed the value for the labels.
    for seed in range(5):
        rng = new_rng(k, is_blind, seed)
        X, groups = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
        y = np.argmax(X @ rng.standard_normal((3, k)) + rng.gumbel(size=(60, k)), axis=1)
        y[:k] = range(k)
        model = blind(LogisticRegression(), "micro_f1", constraints, cv=None)
        model.set_params(group_blind=is_blind, confusion="labels")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(X, y, sensitive_features=groups)
            except InfeasibleConstraintError:
                continue
        assert model.dual_objective_ <= model.objective_
        assert model.dual_gap_ == model.objective_ - model.dual_objective_


def test_the_number_of_a_pair_is_as_documented_if_it_occurs():
    X, y, groups = make_data(3)
    model = blind(constraints=FAIR).fit(X, y, sensitive_features=groups)
    P = model.estimator_.predict_proba(X).reshape(len(X), 2, 3)
    is_old = (groups == model.groups_[0]).mean()
    # Maximum likelihood with an intercept has the shares of the sample.
    assert P[:, 0].sum(axis=1).mean() == pytest.approx(is_old, abs=1e-3)
    np.testing.assert_allclose(
        P.sum(axis=1).mean(axis=0), np.bincount(y) / len(y), atol=1e-3
    )
    X, y, _ = make_data(3)
    groups = np.where(y == 2, "a", np.where(X[:, 0] > 0, "a", "b"))
    model = blind(constraints=FAIR).fit(X, y, sensitive_features=groups)
    assert model.estimator_.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.cell_confusions_[1, 2].sum() == 0
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    "group_estimator", [None, LogisticRegression()], ids=["one", "two"]
)
def test_sparse_rows_and_any_groups_and_labels(group_estimator):
    X, y, names = make_data(2, n=300)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    y = np.array(["no", "yes"])[y]
    groups = np.column_stack([names, np.arange(300) % 2])
    fair = DemographicParity(slack=0.1)
    model = blind(LogisticRegression(), "g_mean", fair, group_estimator=group_estimator)
    model.fit(X, y, sensitive_features=groups)
    other = clone(model).fit(sparse.csr_array(X), y, sensitive_features=groups)
    assert len(model.groups_) == 4
    assert (other.predict(sparse.csr_array(X)) == model.predict(X)).mean() > 0.99
    np.testing.assert_allclose(other.objective_, model.objective_, atol=1e-3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_classifiers_that_are_fitted_already():
    X, y, groups = make_data(3)
    known = {"sensitive_features": groups}
    plain = LogisticRegression()
    of_pairs = LogisticRegression().fit(X, (groups == "young") * 3 + y)
    of_labels, of_groups = (LogisticRegression().fit(X, z) for z in (y, groups))
    frozen = FrozenEstimator(of_labels)
    fitted = blind(plain, constraints=FAIR, cv=None).fit(X, y, **known)
    two = blind(plain, constraints=FAIR, group_estimator=plain, cv=None)
    two.fit(X, y, **known)
    for inner, group_estimator, cv, expected in [
        (of_pairs, None, "prefit", fitted),
        (FrozenEstimator(of_pairs), None, 5, fitted),
        (of_labels, of_groups, "prefit", two),
        (frozen, plain, None, two),
        (frozen, FrozenEstimator(of_groups), 5, two),
    ]:
        model = blind(inner, constraints=FAIR, group_estimator=group_estimator, cv=cv)
        model.fit(X, y, **known)
        np.testing.assert_array_equal(model.loss_matrices_, expected.loss_matrices_)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    held_out = blind(frozen, constraints=FAIR, group_estimator=plain, cv=3)
    assert held_out.fit(X, y, **known).estimator_.estimator_ is frozen


def test_churn_and_groups_that_are_not_known_to_the_baseline_either():
    X, y, groups = make_data(2)
    baseline = LogisticRegression(C=0.01).fit(X, y)
    constraints = [Churn(baseline, at_most=0.1), FAIR]
    for confusion in ("labels", "probabilities"):
        model = blind(constraints=constraints, confusion=confusion, cv=None)
        model.fit(X, y, sensitive_features=groups)
        assert model.loss_matrices_.shape[1:] == (4, 2, 2)
        P = model.predict_proba(X)
        kept = P[np.arange(len(X)), baseline.predict(X)].mean()
        assert kept >= 0.9 - 1e-9
        assert model.constraint_violation_ <= 1e-9
    seeing = ComplexMetricClassifier(constraints=FAIR)
    seeing.fit(X, y, sensitive_features=groups)
    model = blind(constraints=[Churn(seeing, at_most=0.1), FAIR])
    with pytest.raises(ValueError, match="pass sensitive_features"):
        model.fit(X, y, sensitive_features=groups)


def test_groups_given_to_predictions_change_nothing_and_single_rules_have_scores():
    X, y, groups = make_data(2)
    model = blind(metric="zero_one", constraints=FAIR)
    model.fit(X, y, sensitive_features=groups)
    for method in ("predict", "predict_proba"):
        call = getattr(model, method)
        np.testing.assert_array_equal(call(X), call(X, sensitive_features=groups))
        # Not even groups that were not there.
        np.testing.assert_array_equal(call(X), call(X, sensitive_features=["?"] * len(X)))
    X, y, groups = make_data(3)
    model = blind(metric="zero_one", constraints=EqualOpportunity(slack=1.0))
    model.fit(X, y, sensitive_features=groups)
    scores = model.decision_function(X)
    assert scores.shape == (len(X), 3)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routing"])
def test_whatever_passes_no_metadata_to_predict_takes_it(routing):
    X, y, groups = make_data(2, n=240)
    known = {"sensitive_features": groups}
    model = blind(LogisticRegression(), "h_mean", EqualOpportunity(slack=0.1), cv=2)
    with sklearn.config_context(enable_metadata_routing=routing):
        for method in ("predict", "predict_proba"):
            found = cross_val_predict(model, X, y, params=known, method=method, cv=2)
            assert len(found) == len(X)
        _, _, curve = learning_curve(model, X, y, params=known, cv=2, train_sizes=[1.0])
        assert np.isfinite(curve).all()
        grid = {"estimator__C": [0.01, 1.0], "constraints": [(), FAIR]}
        search = GridSearchCV(model, grid, scoring="balanced_accuracy", cv=2)
        search.fit(X, y, **known)
        best = search.best_estimator_
        np.testing.assert_array_equal(search.predict(X), best.predict(X))
        assert np.isfinite(search.score(X, y))
        found = permutation_importance(best, X, y, n_repeats=2, random_state=0)
        assert found.importances.shape == (5, 2)
        step = "" if routing else "complexmetricclassifier__"
        pipeline = make_pipeline(StandardScaler(), model)
        pipeline.fit(X, y, **{f"{step}sensitive_features": groups})
        assert 0 <= pipeline.score(X, y) <= 1
        # Without routing these hand nothing to fit.
        members = [("fair", model), ("again", clone(model))]
        for whole in routing * [
            VotingClassifier(members, voting="soft"),
            # What is given to fit, it gives to the last one, too.
            StackingClassifier(members, clone(model), cv=2),
            BaggingClassifier(model, n_estimators=2, random_state=0),
            OneVsRestClassifier(model),
        ]:
            assert whole.fit(X, y, **known).predict(X).shape == y.shape
        TradeoffDisplay.from_estimator(
            model, X, y, param_name="constraints__slack", param_range=[0.1, 0.3], cv=2,
            **known,
        )  # fmt: skip
        AchievableSetDisplay.from_estimator(best, X, y, **known)


def test_metadata_is_routed_to_both_classifiers():
    X, y, groups = make_data(2)
    weights = np.where(y == 1, 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        one, two = (
            LogisticRegression().set_fit_request(sample_weight=asks)
            for asks in (True, False)
        )
        model = blind(one, constraints=FAIR, group_estimator=two)
        model.fit(X, y, sample_weight=weights, sensitive_features=groups)
        model.predict(X)
    of_labels = LogisticRegression().fit(X, y, weights)
    of_groups = LogisticRegression().fit(X, groups)
    np.testing.assert_allclose(model.estimator_.estimator_.coef_, of_labels.coef_)
    np.testing.assert_allclose(model.estimator_.group_estimator_.coef_, of_groups.coef_)
    without = blind(LogisticRegression(), constraints=FAIR, group_estimator=two)
    without.fit(X, y, sample_weight=weights, sensitive_features=groups)
    of_groups = LogisticRegression().fit(X, groups, weights)
    np.testing.assert_allclose(without.estimator_.group_estimator_.coef_, of_groups.coef_)


def test_classifiers_in_the_manner_of_xgboost_take_pairs():
    X, y, groups = make_data(2)
    fair = EqualizedOdds(slack=0.1)
    model = blind(Boosted(), constraints=fair, cv=2)
    model.fit(X, np.array(["no", "yes"])[y], sensitive_features=groups)
    assert set(model.predict(X)) == {"no", "yes"}


class TestMisuse:
    def test_groups_are_needed_in_fit_and_each_pair_in_a_fold(self):
        X, y, _ = make_data(2)
        with pytest.raises(ValueError, match="group_blind=True requires groups"):
            blind().fit(X, y)
        X, y, groups = make_data(2)
        groups = np.where(np.arange(len(y)) == np.flatnonzero(y == 1)[0], "rare", groups)
        with pytest.warns(UserWarning) as caught:
            blind(constraints=FAIR, cv=3).fit(X, y, sensitive_features=groups)
        words = [str(w.message) for w in caught]
        assert any("('rare', 1)" in word and "('rare', 0)" not in word for word in words)

    @pytest.mark.parametrize(
        ("params", "error", "words"),
        [
            ({"group_estimator": LogisticRegression(), "group_blind": False}, ValueError,
             "requires group_blind=True"),
            ({"lmo": "weighted"}, ValueError, "group_blind=True requires lmo='plugin'"),
            ({"group_estimator": StandardScaler()}, TypeError, "group_estimator must"),
            ({"group_blind": "yes"}, ValueError, "group_blind"),
        ],
    )  # fmt: skip
    def test_parameters_that_contradict_each_other(self, params, error, words):
        X, y, groups = make_data(2)
        model = set_placed(blind(constraints=FAIR), **params)
        with pytest.raises(error, match=words):
            model.fit(X, y, sensitive_features=groups)

    def test_fitted_classifiers_of_other_things(self):
        X, y, groups = make_data(2)
        of_labels = LogisticRegression().fit(X, y)
        three = np.where(X[:, 0] > 1, "child", groups)
        model = blind(of_labels, constraints=FAIR, cv="prefit")
        with pytest.raises(ValueError, match=r"pairs .* does not know: \[2, 3\]"):
            model.fit(X, y, sensitive_features=groups)
        model.set_params(estimator=LogisticRegression().fit(X, np.arange(len(X)) % 5))
        with pytest.raises(ValueError, match="numbers 0 to 3"):
            model.fit(X, y, sensitive_features=groups)
        model.set_params(
            estimator=of_labels,
            solver_options__group_estimator=LogisticRegression().fit(X, three),
        )
        with pytest.raises(ValueError, match=r"was fitted to the groups \['child'\]"):
            model.fit(X, y, sensitive_features=groups)
        with pytest.raises(ValueError, match=r"holds groups .* \['tall'\]"):
            model.fit(X, y, sensitive_features=np.where(groups == "old", "tall", groups))

    @pytest.mark.parametrize("n_groups", [0, 3])
    def test_a_state_that_was_changed(self, n_groups):
        X, y, groups = make_data(2)
        model = blind(constraints=FAIR).fit(X, y, sensitive_features=groups)
        model.mixture_.n_groups = n_groups
        with pytest.raises(ValueError, match="n_groups must (divide|be at)"):
            model.predict(X)
