"""Data and classifiers shared by the tests of ComplexMetricClassifier."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm.metrics import confusion_tensor

WEIGHTS = {2: [0.8], 3: [0.6, 0.3], 4: [0.5, 0.2, 0.2]}


# If classes overlap too much, some metrics only ever predict the frequent one.
even_one_class = pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")


def make_data(k=3, n=400, seed=0):
    """Unbalanced classes that overlap, and groups that matter: (X, y, groups)."""
    X, y = make_classification(
        n, n_features=5, n_informative=4, n_redundant=0, n_classes=k,
        n_clusters_per_class=1, weights=WEIGHTS[k], class_sep=0.5, flip_y=0.1,
        random_state=new_seed(seed),
    )  # fmt: skip
    rng = new_rng(seed)
    groups = np.where(X[:, 0] + rng.standard_normal(n) > 0.5, "old", "young")
    return X, y, groups


def mixture_confusion(model, X, y, **metadata):
    """The confusion tensor of the mixture's probabilities and the labels."""
    C, _ = confusion_tensor(
        y, model.predict_proba(X, **metadata), labels=model.classes_, **metadata
    )
    return C


@contextmanager
def no_complaint_of_convergence():
    """For fits that may end at `max_iter` if that is not the subject of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Spy(ClassifierMixin, BaseEstimator):
    """Logistic regression that counts its fits, all copies together, in `fits`."""

    def __init__(self, fits, error=None):
        self.fits = fits
        self.error = error

    def __sklearn_clone__(self):
        return type(self)(self.fits, self.error)

    def fit(self, X, y, sample_weight=None):
        self.fits.append(len(X))
        if self.error is not None:
            raise self.error
        self.model_ = LogisticRegression().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


class Scored:
    """Two classes, whose first feature is the probability of the second one."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def recalls_of_groups(model):
    """Of two groups: probabilities u and .6 u, of u uniform, by the midpoint rule."""
    u = (np.arange(1000) + 0.5) / 1000
    found = []
    for group, of_one in enumerate((u, 0.6 * u)):
        P = model.predict_proba(of_one[:, None], sensitive_features=np.full(1000, group))
        found.append(of_one @ P[:, 1] / of_one.sum())
    return found


def noisy_rows(seed, n, cut):
    """Three features, of which the first one tells the class, but for noise."""
    rng = new_rng(seed)
    X = rng.standard_normal((n, 3))
    y = (X[:, 0] + rng.standard_normal(n) > cut).astype(int)
    y[:2] = [0, 1]
    return X, y


class Boosted(ClassifierMixin, BaseEstimator):
    """Follows those conventions of XGBoost's classifier that differ from scikit-learn's.

    Labels must be 0 to k - 1, probabilities are float32, `fit` has more arguments, and
    learned attributes do not end with an underscore.
    """

    def __init__(self, n_estimators=3, learning_rate=None, **kwargs):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.kwargs = kwargs

    def get_params(self, deep=True):
        names = ("n_estimators", "learning_rate")
        return {name: getattr(self, name) for name in names} | self.kwargs

    def set_params(self, **params):
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X, y, *, sample_weight=None, eval_set=None, verbose=True):
        found = np.unique(y)
        if not np.array_equal(found, np.arange(len(found))):
            raise ValueError(f"Invalid classes inferred from `y`: {found}")
        self.booster = LogisticRegression(max_iter=100 * self.n_estimators)
        self.booster.fit(np.asarray(X, dtype=np.float32), y, sample_weight)
        self.evaluated = eval_set
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "booster")

    @property
    def classes_(self):
        return np.arange(len(self.booster.classes_))

    @property
    def n_features_in_(self):
        return self.booster.n_features_in_

    def predict_proba(self, X):
        return self.booster.predict_proba(np.asarray(X)).astype(np.float32)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)
