"""What sets promise: by exchange of all examples, and for a known distribution."""

from math import floor

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from scipy import sparse
from scipy.stats import betabinom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from sklearn_structsvm import (
    BCFWClassifier,
    ConformalClassifier,
    CRFClassifier,
    StackedStructureClassifier,
)
from sklearn_structsvm._utils.calibration import allowed_rank, error_level
from sklearn_structsvm.datasets import make_chains, make_hierarchical, make_multilabel
from sklearn_structsvm.structures import HierarchicalStructure, MultilabelStructure

N = 21
LEVEL = 0.8


class KnownProbabilities(ClassifierMixin, BaseEstimator):
    """Two classes, the second with the probability that X holds."""

    classes_ = np.arange(2)

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def problem(kind):
    """A fitted model, and X and y of N + 1 other examples."""
    n = 60 + N + 1
    if kind in ("chain", "stacked"):
        X, y = make_chains(n, n_features=3, n_classes=4, random_state=new_seed(0))
        model = CRFClassifier(C=0.2, tol=1e-2, max_iter=50, random_state=0)
        if kind == "stacked":
            model = StackedStructureClassifier(LogisticRegression(), cv=3)
    elif kind == "classes":
        rng = new_rng(0)
        y = rng.integers(4, size=n)
        X = rng.standard_normal((n, 2)) + 0.7 * y[:, np.newaxis]
        y[:4] = np.arange(4)
        model = LogisticRegression()
    elif kind == "labels":
        X, y = make_multilabel(n, n_features=4, n_classes=4, random_state=new_seed(0))
        y[0], y[1] = 0, 1
        model = OneVsRestClassifier(LogisticRegression())
    else:
        X, y, edges = make_hierarchical(n, random_state=new_seed(0))
        X = X.toarray() if sparse.issparse(X) else X
        structure = HierarchicalStructure(edges)
        model = BCFWClassifier(structure, C=0.1, tol=0.1, random_state=0)
    return model.fit(X[:60], y[:60]), X[60:], y[60:]


def without(items, i):
    return [item for j, item in enumerate(items) if j != i]


def leave_each_out(model, X, y, **params):
    """For each example, its set's coverage by the calibration with all others."""
    is_list = isinstance(X, list) or X.dtype == object
    whole, share = [], []
    for i in range(len(y)):
        rest = (without(X, i), without(y, i))
        if not is_list:
            rest = tuple(map(np.array, rest))
        own = ConformalClassifier(
            FrozenEstimator(model), confidence_level=LEVEL, **params
        ).fit(*rest)
        report = own.set_report(X[i : i + 1], y[i : i + 1])
        whole.append(report["coverage"])
        share.append(report["average_coverage"])
    return np.array(whole), np.array(share)


@pytest.mark.parametrize(
    ("kind", "scores"),
    [
        ("classes", ("lac", "aps", "raps", "margin")),
        ("chain", ("lac", "margin", "likelihood")),
        ("stacked", ("lac", "margin")),
        ("labels", ("lac", "margin")),
        ("hierarchy", ("margin",)),
    ],
)
def test_of_all_exchanges_no_more_miss_the_truth_than_is_allowed(kind, scores):
    model, X, y = problem(kind)
    for score in scores:
        whole, _ = leave_each_out(model, X, y, conformity_score=score)
        assert (whole == 0.0).sum() <= allowed_rank(LEVEL, N)


@pytest.mark.parametrize("kind", ["chain", "labels", "hierarchy"])
def test_on_average_no_more_labels_are_missed_than_is_allowed(kind):
    model, X, y = problem(kind)
    _, share = leave_each_out(model, X, y, coverage="average")
    assert (1.0 - share).sum() <= float(error_level(LEVEL) * (N + 1)) + 1e-9


@pytest.mark.filterwarnings("ignore:Fewer than")
def test_no_class_is_missed_more_often_than_is_allowed():
    model, X, y = problem("classes")
    whole, _ = leave_each_out(model, X, y, condition="class")
    for label in range(4):
        n = (y == label).sum() - 1
        assert (whole[y == label] == 0.0).sum() <= max(allowed_rank(LEVEL, n), 0)


@pytest.mark.filterwarnings("ignore:Fewer than")
def test_no_group_and_no_length_is_missed_more_often_than_is_allowed():
    model, X, y = problem("chain")
    groups = np.arange(len(y)) % 2
    missed = np.zeros(2)
    for i in range(len(y)):
        own = ConformalClassifier(
            FrozenEstimator(model), confidence_level=LEVEL, condition="group"
        ).fit(without(X, i), without(y, i), sensitive_features=np.delete(groups, i))
        sets = own.predict_set(X[i : i + 1], sensitive_features=groups[[i]])
        missed[groups[i]] += not sets[0][np.arange(len(y[i])), y[i]].all()
    assert (missed <= allowed_rank(LEVEL, (N + 1) // 2 - 1)).all()
    whole, _ = leave_each_out(model, X, y, condition="length")
    strata = np.array([len(own).bit_length() for own in y])
    for stratum in np.unique(strata):
        n = (strata == stratum).sum() - 1
        assert (whole[strata == stratum] == 0.0).sum() <= allowed_rank(LEVEL, n)


@pytest.mark.parametrize("params", [{}, {"conformity_score": "aps", "randomized": True}])
def test_coverage_of_a_known_distribution_is_within_its_band(params):
    """Given n continuous scores, the number of new ones covered is beta-binomial."""
    rng = new_rng(1)
    n, n_new = 99, 4000
    X = rng.random((n + n_new, 1))
    y = (rng.random(n + n_new) < X[:, 0]).astype(int)
    known = KnownProbabilities().fit(X, y)
    model = ConformalClassifier(known, cv="prefit", random_state=1, **params)
    model.fit(X[:n], y[:n])
    covered = round(model.set_report(X[n:], y[n:])["coverage"] * n_new)
    low, high = betabinom(n_new, 90, 10).ppf([1e-9, 1.0 - 1e-9])
    assert low <= covered <= high


def test_coverage_of_stacked_chains_is_within_its_band():
    n, n_new = 99, 1500
    X, y = make_chains(20 + n + n_new, random_state=new_seed(3))
    stacked = StackedStructureClassifier(LogisticRegression(), cv=3).fit(X[:20], y[:20])
    model = ConformalClassifier(stacked, cv="prefit").fit(X[20 : 20 + n], y[20 : 20 + n])
    report = model.set_report(X[20 + n :], y[20 + n :])
    low, high = betabinom(n_new, 90, 10).ppf([1e-9, 1.0 - 1e-9])
    assert low <= round(report["coverage"] * n_new) <= high


@pytest.mark.parametrize("cv", [0.5, 4])
def test_a_class_that_sets_hardly_ever_hold_is_named(cv):
    """A rare class among the features of another one; sets are for all together."""
    rng = new_rng(2)
    y = np.repeat(["common", "other", "rare"], [500, 460, 40])
    X = rng.normal(size=(1000, 1)) + 4.0 * (y == "other")[:, None]
    model = ConformalClassifier(LogisticRegression(), cv=cv, random_state=0)
    with pytest.warns(UserWarning, match=r"the class 'rare' \(0\.\d\d of .*'class'"):
        model.fit(X, y)
    rare = y == "rare"
    assert model.set_report(X[rare], y[rare])["coverage"] < 0.8
    model.set_params(condition="class").fit(X, y)
    assert model.set_report(X[rare], y[rare])["coverage"] > 0.6
    # Classes alike are covered alike, but for chance.
    even = rng.choice(["a", "b", "c"], size=300)
    model.set_params(condition=None).fit(X[:300], even)


def test_labelings_are_in_the_product_by_their_smallest_marginal_or_by_likelihood():
    model, X, y = problem("chain")
    own = ConformalClassifier(FrozenEstimator(model)).fit(X, y)
    marginals = model.predict_proba(X)
    smallest = [p[np.arange(len(t)), t].min() for p, t in zip(marginals, y, strict=True)]
    assert own.thresholds_ == np.sort(1.0 - np.array(smallest))[-floor((N + 2) / 10)]
    sets = own.predict_set(X)
    for p, found in zip(marginals, sets, strict=True):
        np.testing.assert_array_equal(found, 1.0 - p <= own.thresholds_)
    own = ConformalClassifier(FrozenEstimator(model), conformity_score="likelihood")
    own.fit(X, y)
    logs = model.log_likelihood(X, y)
    gaps = model.log_likelihood(X, model.predict(X)) - logs
    np.testing.assert_allclose(
        own.thresholds_, np.sort(gaps)[-floor((N + 2) / 10)], atol=1e-9
    )
    found = own.predict_lattice(X)
    near = np.abs(gaps - own.thresholds_) < 1e-9
    for truth, lattice, gap, tie in zip(y, found, gaps, near, strict=True):
        assert tie or (truth in lattice) == (gap <= own.thresholds_)
    sets = own.predict_set(X)
    for lattice, nodes in zip(found, sets, strict=True):
        np.testing.assert_array_equal(lattice.nodes, nodes)


def test_an_unseen_label_is_never_covered_and_counts_in_calibration():
    model, X, y = problem("chain")
    y = [own.copy() for own in y]
    for own in y[:3]:
        own[0] = 9
    own = ConformalClassifier(FrozenEstimator(model), confidence_level=LEVEL).fit(X, y)
    assert own.thresholds_ < np.inf
    assert own.set_report(X[:3], y[:3])["coverage"] == 0.0
    for words in y:
        words[0] = 9
    own.conformalize(X, y)
    assert own.thresholds_ == np.inf
    report = own.set_report(X, y)
    assert report["n_full"] == sum(map(len, y)) and report["coverage"] == 0.0


def test_a_row_without_labels_needs_none():
    X = new_rng().standard_normal((30, 3))
    y = np.zeros((30, 3), dtype=int)
    fitted = MultilabelStructure()
    truth = np.eye(3, dtype=int)[np.arange(30) % 3]
    model = CRFClassifier(fitted, random_state=0).fit(X, truth)
    for coverage in ("whole", "average"):
        own = ConformalClassifier(FrozenEstimator(model), coverage=coverage).fit(X, y)
        assert not own.predict_set(X).any()
        assert own.set_report(X, y)["average_coverage"] == 1.0


def test_decisions_in_place_of_probabilities_are_warned_of():
    rng = new_rng(4)
    X = rng.integers(2, size=(200, 1)).astype(float)
    y = np.where(np.arange(200) % 3, X[:, 0], 1.0 - X[:, 0]).astype(int)
    known = FrozenEstimator(KnownProbabilities().fit(X, y))
    # All rows are calibrated with: of a part that is drawn, a fifth may be wrong.
    model = ConformalClassifier(known, confidence_level=LEVEL)
    with pytest.warns(UserWarning, match="decisions in place of probabilities"):
        model.fit(X, y)
    assert model.predict_set(X).all()
