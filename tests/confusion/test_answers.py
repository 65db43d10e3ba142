"""What a user's metric, constraint, LMO or classifier returns is checked, and named."""

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import ComplexMetricClassifier, SubLBFGSClassifier
from sklearn_structsvm.confusion import Cells, ConfusionMetric, Constraint, check_metric
from sklearn_structsvm.confusion.lmo import WeightedLMO
from sklearn_structsvm.confusion.metric import gradient_by_differences
from sklearn_structsvm.metrics import Balanced, Churn, FBeta, confusion_tensor


def make_data(k=3, n=120):
    rng = new_rng(5)
    y = rng.integers(k, size=n)
    y[:k] = range(k)
    return rng.standard_normal((n, 2)) + np.eye(k)[y, :2], y


def fit(metric="balanced", k=3, **options):
    X, y = make_data(k)
    return placed(ComplexMetricClassifier)(
        metric=metric, cv=None, max_iter=20, **options
    ).fit(X, y)


class Square(ConfusionMetric):
    """The mean of the squares of the classes' error rates."""

    convex = smooth = True

    def value(self, C):
        return float(np.mean((1.0 - C.diagonal() / C.sum(axis=1)) ** 2))


WRONG_VALUES = {"NaN": np.nan, "nothing": None, "an array": np.ones(2)}


@pytest.mark.parametrize("value", WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_a_metric_that_is_no_number_is_refused(value):
    class Broken(Square):
        def value(self, C):
            return value

    message = "^value of Broken must be a finite number; got"
    with pytest.raises(ValueError, match=message):
        fit(Broken())
    with pytest.raises(ValueError, match=message):
        check_metric(Broken())
    with pytest.raises(ValueError, match=message):
        Broken()(["a", "b"], ["b", "b"])


def broken(base, **methods):
    """Of a subclass whose methods give what these functions do."""
    own = {
        name: lambda self, *arguments, give=give: give(*arguments)
        for name, give in methods.items()
        if callable(give)
    }
    return type("Broken", (base,), methods | own)()


# One wrong answer of each method.
WRONG_METRICS = {
    "gradient of Broken must have shape": {"gradient": lambda C: C[0]},
    "tangent of Broken must be a pair": {"tangent": lambda C: C},
    "tangent of Broken must be a finite": {"tangent": lambda C: (C, np.inf)},
    "ratio of Broken must have shape": {"ratio": lambda p: (np.eye(2), np.eye(3))},
    "pieces of Broken must have shape": {"pieces": lambda p: (np.eye(3), np.zeros(3))},
    "ratio_terms of Broken must hold triples": {"ratio_terms": lambda p: [np.eye(3)]},
    "ratio_terms of Broken must be a finite number >= 0; got -1.0": {
        "ratio_terms": lambda p: [(-1.0, np.eye(3), np.eye(3))]
    },
    "entries of Broken must have shape": {"entries": lambda k: np.ones((k, 2))},
}


@pytest.mark.parametrize("message", WRONG_METRICS)
def test_other_methods_of_a_metric_are_checked(message):
    metric = broken(Square, **WRONG_METRICS[message])
    with pytest.raises(ValueError, match=message):
        check_metric(metric)
    if "gradient" in message:
        with pytest.raises(ValueError, match=message):
            fit(metric, solver="frank_wolfe")


def test_a_loss_of_the_whole_sample_checks_its_metric():
    class Broken(FBeta):
        def ratio(self, priors):
            A, B = super().ratio(priors)
            return A * np.nan, B

    X, y = make_data(2)
    with pytest.raises(ValueError, match="ratio of Broken must hold finite numbers"):
        SubLBFGSClassifier(loss=Broken()).fit(X, y)


def test_a_metric_cannot_write_into_the_solvers_matrices():
    class Writes(Square):
        def value(self, C):
            C += 1e-3
            return super().value(C)

    with pytest.raises(ValueError, match="read-only"):
        fit(Writes())
    with pytest.raises(ValueError, match="read-only"):
        check_metric(Writes())


def test_methods_keep_their_names_and_texts_and_super_calls():
    class Named(Square):
        def value(self, C):
            """The text."""
            return super().value(C)

    assert Named.value.__name__ == "value"
    assert Named.value.__doc__ == "The text."
    C = np.full((2, 2), 0.25)
    assert Named().value(C=C) == Square().value(C)
    np.testing.assert_array_equal(
        Named().gradient(C), gradient_by_differences(Square().value, C)
    )


class FewLast(Constraint):
    """At most a tenth may be predicted as the last class."""

    def linear(self, cells):
        G = np.zeros((1, *cells.shape))
        G[..., -1] = 1.0
        return G, np.array([-0.1])


CURVED = {"has_convex": True, "convex_value": lambda C, cells: 1.0}
WRONG_CONSTRAINTS = {
    "linear of Broken must be a pair": {"linear": lambda cells: np.zeros((1, 3))},
    r"linear of Broken must have shape \(2, 1, 3, 3\); got shape \(2, 3, 3\)": {
        "linear": lambda cells: (np.zeros((2, 3, 3)), np.zeros(2))
    },
    "denominators of Broken must have": {"denominators": lambda cells: np.ones(3)},
    "convex_value of Broken must be a finite number; got None": CURVED
    | {"convex_value": lambda C, cells: None, "convex_gradient": lambda C, cells: C},
    r"convex_gradient of Broken must have shape \(1, 3, 3\); got shape \(3, 3\)": CURVED
    | {"convex_gradient": lambda C, cells: C[0]},
    "convex_tangent of Broken must be a pair": CURVED
    | {"convex_tangent": lambda C, cells: C},
}


@pytest.mark.parametrize("message", WRONG_CONSTRAINTS)
def test_methods_of_a_constraint_are_checked(message):
    with pytest.raises(ValueError, match=message):
        fit(constraints=broken(FewLast, **WRONG_CONSTRAINTS[message]))


def test_a_constraint_may_have_no_conditions():
    class Nothing(Constraint):
        def linear(self, cells):
            return np.zeros((0, *cells.shape)), []

    assert fit(constraints=Nothing()).dual_gap_ <= 1e-3
    C = np.full((1, 2, 2), 0.25)
    assert Nothing().violation(C, Cells.single([0.5, 0.5])) == -np.inf


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose answers are given."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.answer(X)

    predict_proba = predict


WRONG_PREDICTIONS = {
    "too few": (lambda X: np.zeros(len(X) - 1), r"must have shape \(120,\)"),
    "from the end": (lambda X: np.full(len(X), -1), "must be among 0, .*; got -1"),
    "not whole": (lambda X: np.full(len(X), 0.5), "must be among 0, .*; got 0.5"),
    "names": (lambda X: np.full(len(X), "a"), "must hold integers; got <U1"),
}


@pytest.mark.parametrize(
    ("answer", "message"), WRONG_PREDICTIONS.values(), ids=WRONG_PREDICTIONS
)
def test_what_a_refitted_classifier_predicts_is_checked(answer, message):
    with pytest.raises(ValueError, match=f"predict of Given {message}"):
        fit(lmo=WeightedLMO(Given(answer)))


def test_predictions_of_a_baseline_are_one_for_each_row():
    X, y = make_data()
    model = ComplexMetricClassifier(
        constraints=Churn(Given(lambda X: y[:1]), at_most=0.2), cv=None
    )
    with pytest.raises(ValueError, match="predict of Given must have 120 entries.*got 1"):
        model.fit(X, y)


def test_scorers_check_probabilities_and_labels():
    X, y = make_data()
    P = LogisticRegression().fit(X, y).predict_proba(X)
    scorer = Balanced().scorer(response="predict_proba")
    right = scorer(Given(lambda X: P).fit(X, y), X, y)
    C, cells = confusion_tensor(y, P, labels=[0, 1, 2])
    assert right == pytest.approx(Balanced().measured(C, cells))
    for answer, message in (
        (P[1:], r"must have shape \(120, 3\); got shape \(119, 3\)"),
        (P - 1.0, "must hold probabilities, from 0 to 1; got -"),
        (P * np.nan, r"must hold probabilities.* got nan at \(0, 0\)"),
    ):
        with pytest.raises(ValueError, match=f"predict_proba of Given {message}"):
            scorer(Given(lambda X, answer=answer: answer).fit(X, y), X, y)
    with pytest.raises(ValueError, match="predict of Given must have 120 entries"):
        Balanced().scorer()(Given(lambda X: y[1:]).fit(X, y), X, y)
