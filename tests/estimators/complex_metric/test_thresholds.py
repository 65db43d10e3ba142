"""The number that a rule is: text, thresholds and predictions say the same."""

import operator
from functools import partial

import numpy as np
import pytest
from _mixtures import noisy_rows
from _seeds import new_rng, new_seed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.tree import DecisionTreeClassifier

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm.estimators.complex_metric.thresholds import (
    NamedThresholds,
    named_losses,
)
from sklearn_structsvm.metrics import (
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    LinearLoss,
    Precision,
    Recall,
    SelectionRate,
)

COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
LABELS = np.array(["bad", "good"])


def costs_of(pos_label):
    """A false positive costs 3, a missed one 4: no label is named."""
    other = LABELS[LABELS != pos_label][0]
    return LinearLoss({(other, pos_label): 3.0, (pos_label, other): 4.0})


class Score(ClassifierMixin, BaseEstimator):
    """The first column of X is the probability of one of two labels."""

    def __init__(self, label="bad", dtype="float64"):
        self.label, self.dtype = label, dtype

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0].astype(self.dtype)
        pair = [p, 1 - p] if self.label == self.classes_[0] else [1 - p, p]
        return np.column_stack(pair)


def draw(seed, decimals=2, n=60):
    rng = new_rng(seed)
    p = rng.beta(1, 2, n).round(decimals)
    return p[:, None], LABELS[(rng.random(n) >= p).astype(int)]


def rules_of(model):
    """(group or None, label, sign, threshold, other label) of each line."""
    table = model.rule_.columns
    groups = table.get("group", [None] * len(table["label"]))
    names = ("label", "sign", "threshold", "otherwise")
    return list(zip(groups, *(table[name] for name in names), strict=True))


def around(values):
    """These numbers, their neighbors, and all percents."""
    values = np.array([v for v in values if np.isfinite(v)])
    near = [np.nextafter(values, end) for end in (-1.0, 2.0)]
    found = np.concatenate([values, *near, np.arange(101) / 100, [0.1 + 0.2]])
    return np.unique(found[(found >= 0) & (found <= 1)])


def check_all_agree(model, group=None):
    for name, label, sign, at, other in rules_of(model):
        if group is not None and name not in (group, None):
            continue
        X = around([at, 1.0 - at])[:, None]
        p = model.estimator_.predict_proba(X)[:, list(model.classes_).index(label)]
        given = {} if group is None else {"sensitive_features": [group] * len(X)}
        said = np.where(COMPARE[sign](p.astype(float), at), label, other)
        np.testing.assert_array_equal(model.predict(X, **given), said)
        scores = model.decision_function(X, **given)
        np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], said)
        P = model.predict_proba(X, **given)
        np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], said)
        told = model.threshold_ if group is None else model.thresholds_[group]
        assert told == at or (np.isnan(told) and sign[0] == "<")
        if np.isfinite(at):
            line = f"{label} if p({label}) {sign} {at!r}, else {other}"
            assert line in str(model.rule_)


@pytest.mark.filterwarnings("ignore:The classifier predicts")
@pytest.mark.parametrize(("score_of", "dtype"), [("bad", "float64"), ("good", "float32")])
@pytest.mark.parametrize("named", LABELS)
@pytest.mark.parametrize("metric", [FBeta, Precision, Recall, costs_of])
def test_text_thresholds_and_predictions_agree_on_ties(metric, named, score_of, dtype):
    if metric in (Precision, Recall):
        other = Recall if metric is Precision else Precision
        metric, constraints = metric(label=named), other(label=named, at_least=0.3)
    else:
        metric, constraints = metric(pos_label=named), ()
    for seed in range(2):
        X, y = draw(seed)
        X = X if score_of == "bad" else np.round(1 - X, 2)
        for counted in ("auto", "labels", "probabilities"):
            model = ComplexMetricClassifier(
                Score(score_of, dtype).fit(X, y), metric, constraints, cv="prefit",
                randomized=False, confusion=counted,
            )  # fmt: skip
            model.fit(X, y)
            if model.pos_label_ is not None:
                assert rules_of(model)[0][1] == named
            check_all_agree(model)


@pytest.mark.parametrize("named", LABELS)
def test_groups_and_mixtures_have_the_thresholds_of_the_named_label(named):
    X, y = draw(0, n=200)
    group = np.where(new_rng(1).random(200) < 0.4, "b", "a")
    constraint = EqualOpportunity(slack=0.3, pos_label=named)
    model = ComplexMetricClassifier(
        Score().fit(X, y), FBeta(pos_label=named), constraint, cv="prefit",
        randomized=False,
    ).fit(X, y, sensitive_features=group)  # fmt: skip
    for name in ("a", "b"):
        check_all_agree(model, name)
    # A mixture draws between them.
    X, y = draw(2, n=200)
    model = ComplexMetricClassifier(
        Score().fit(X, y), FBeta(pos_label=named),
        Recall(label=named, at_least=0.4, at_most=0.45), cv="prefit",
        confusion="labels",
    ).fit(X, y)  # fmt: skip
    cuts = model.mixture_.cuts()
    assert cuts.named == list(LABELS).index(named)
    p = model.estimator_.predict_proba(X)[:, cuts.named]
    compare = operator.gt if cuts.named else operator.ge
    shares = sum(
        w * compare(p, at)
        for w, at in zip(model.mixture_weights_, cuts.at[:, 0], strict=True)
    )
    found = model.predict_proba(X)[:, cuts.named]
    np.testing.assert_allclose(found, shares, atol=1e-12)
    counted = [p @ (y == name) / 200 for name in LABELS for p in model.predict_proba(X).T]
    np.testing.assert_allclose(model.confusion_.ravel(), counted, atol=1e-12)


def test_thresholds_are_those_that_scikit_learn_finds():
    """In the same terms, for a positive label that sorts first."""
    X, y = make_classification(1500, weights=[0.9], flip_y=0.05, random_state=new_seed(1))
    label = np.where(y == 1, "default", "paid")
    model = ComplexMetricClassifier(LogisticRegression(), FBeta(pos_label="default"))
    model.fit(X, label)
    scoring = make_scorer(f1_score, pos_label="default")
    other = TunedThresholdClassifierCV(LogisticRegression(), scoring=scoring)
    other.fit(X, label)
    for found, threshold in (
        (model, model.threshold_), (other, other.best_threshold_),
    ):  # fmt: skip
        p = found.estimator_.predict_proba(X)[:, 0]
        np.testing.assert_array_equal(found.predict(X) == "default", p >= threshold)
    folds = model.cv_thresholds_
    assert folds.shape == (5,) and folds.min() <= model.threshold_ <= folds.max()


def test_a_threshold_between_neighboring_numbers_tells_them_apart():
    """As between 0.3 and 0.1 + 0.2, which a forest may return for equal votes."""
    rng = new_rng(3)
    p = np.concatenate([[0.3, 0.1 + 0.2, 0.7, 1 - 0.3, 1e-9], rng.random(200)])
    p = np.unique(np.concatenate([p, np.nextafter(p, 0), np.nextafter(p, 1)]))
    p = np.unique(np.clip(p, 0, 1))
    q = 1.0 - p
    for at in np.unique(q):
        for below in (False, True):
            sign = -1.0 if below else 1.0
            L = np.zeros((1, 1, 2, 2))
            L[0, 0, :, 1] = sign * at, sign * (at - 1.0)
            cuts = NamedThresholds(named_losses(L, q), 0)
            assert cuts.below[0, 0] == below
            P, where = np.column_stack([p, q]), (0, np.zeros(len(p), dtype=int))
            expected = (q < at) if below else (q > at)
            near = at * (1 - at) == 0.0 or at in q
            assert near
            np.testing.assert_array_equal(cuts.codes(where, P), expected.astype(int))


@pytest.mark.parametrize("named", [0, 1])
def test_cuts_are_the_plugin_rule_of_any_costs(named):
    rng = new_rng(4)
    P = rng.dirichlet([1.0, 1.0], size=200)
    for _ in range(200):
        L = rng.integers(-2, 3, (1, 1, 2, 2)) * rng.choice([0.5, 1.0, 3.0])
        cuts, where = NamedThresholds(L, named), (0, np.zeros(len(P), dtype=int))
        costs = P @ L[0, 0]
        clear = np.abs(costs[:, 0] - costs[:, 1]) > 1e-12
        clear |= np.ptp(L[0, 0], axis=1).max() == 0.0
        codes = cuts.codes(where, P)
        np.testing.assert_array_equal(codes[clear], costs.argmin(axis=1)[clear])
        scores = cuts.scores(where, P)
        np.testing.assert_allclose(scores, costs[:, 0] - costs[:, 1], atol=1e-12)
        np.testing.assert_array_equal(scores > 0, codes == 1)


data = partial(noisy_rows, n=150, cut=0.5)


def test_every_loss_matrix_has_its_threshold():
    for L, threshold in [
        ([[0, 1], [1, 0]], 0.5), ([[0, 1], [3, 0]], 0.25), ([[1, 0], [1, 0]], -np.inf),
        ([[0, 1], [0, 1]], np.inf), ([[0, 0], [0, 0]], np.inf),
        ([[0, -2], [0, -1]], -np.inf), ([[0, 1], [0, 2]], np.inf),
        ([[1, 0], [0, 1]], np.nan),
    ]:  # fmt: skip
        found = NamedThresholds(np.array(L, dtype=float), 1).told
        np.testing.assert_equal(found, threshold)


def test_groups_have_a_threshold_each():
    X, y = data(2)
    group = np.where(X[:, 1] > 0, "a", "b")
    bound = Recall(at_least=0.01, per_group=True)
    model = ComplexMetricClassifier(metric="zero_one", constraints=bound)
    model.fit(X, y, sensitive_features=group)
    assert list(model.thresholds_) == ["a", "b"]
    P = model.estimator_.predict_proba(X)[:, 1]
    each = np.array([model.thresholds_[name] for name in group])
    guess = model.predict(X, sensitive_features=group)
    np.testing.assert_array_equal(guess, P > each)
    with pytest.raises(AttributeError, match="See thresholds_"):
        _ = model.threshold_


def test_where_there_is_no_threshold_it_is_said_why():
    X, y = data(3)
    group = np.where(X[:, 1] > 0, "a", "b")
    plain = ComplexMetricClassifier(metric="zero_one")
    with pytest.raises(AttributeError, match="no threshold_ before fit"):
        _ = plain.threshold_
    three = plain.fit(X, y + (X[:, 0] > 1))
    with pytest.raises(AttributeError, match="no threshold_: there are 3 classes"):
        _ = three.threshold_
    # No share of 150 rows is that.
    mixed = ComplexMetricClassifier(
        metric="zero_one", constraints=SelectionRate(target=0.3337, slack=0.0)
    ).fit(X, y)
    with pytest.raises(AttributeError, match=r"the classifier is a mixture of \d rules"):
        _ = mixed.threshold_
    fair = ComplexMetricClassifier(constraints=EqualizedOdds(slack=0.01, pos_label=1))
    fair.fit(X, y, sensitive_features=group)
    assert not hasattr(fair, "thresholds_")
    other = ComplexMetricClassifier(
        DecisionTreeClassifier(max_depth=1), solver_options={"lmo": "weighted"}
    )
    with pytest.raises(AttributeError, match="decide without class probabilities"):
        _ = other.fit(X, y).threshold_
    with pytest.raises(AttributeError, match="has no rules per group"):
        _ = plain.fit(X, y).thresholds_
    costs = np.ones((len(y), 2, 2)) - np.eye(2)
    known = ComplexMetricClassifier(metric="expected_cost").fit(X, y, costs=costs)
    with pytest.raises(AttributeError, match="depends on the costs of the example"):
        _ = known.threshold_


def test_thresholds_of_folds_are_those_of_fits_to_their_held_out_part():
    X, y = data(4, n=300)
    folds = StratifiedKFold(3)
    options = {"metric": "f1", "confusion": "labels"}
    model = ComplexMetricClassifier(cv=folds, **options).fit(X, y)
    alone = []
    for train, test in folds.split(X, y):
        inner = default_classifier().fit(X[train], y[train])
        part = ComplexMetricClassifier(FrozenEstimator(inner), **options)
        alone.append(part.fit(X[test], y[test]).threshold_)
    np.testing.assert_allclose(model.cv_thresholds_, alone)
    # A fit without folds leaves none behind.
    model.set_params(cv=None).fit(X, y)
    assert not hasattr(model, "cv_thresholds_")
    group = np.where(X[:, 1] > 0, "a", "b")
    model.set_params(
        cv=3, metric="zero_one", constraints=Recall(at_least=0.01, per_group=True)
    ).fit(X, y, sensitive_features=group)
    assert model.cv_thresholds_.shape == (3, 2)
    by_costs = ComplexMetricClassifier(metric="expected_cost", cv=3)
    by_costs.fit(X, y, costs=np.column_stack([4.0 * y, 1.0 - y]))
    assert by_costs.cv_thresholds_.shape == (3,)
