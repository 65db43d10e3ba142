"""Parameters of constraints, by scikit-learn's names."""

import pytest
from _seeds import new_rng
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, validation_curve

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import Recall, SelectionRate


def data():
    rng = new_rng(0)
    X = rng.standard_normal((90, 2))
    return X, (X[:, 0] + rng.standard_normal(90) > 0.3).astype(int)


def test_parameters_of_one_and_of_several_constraints_have_names():
    one = ComplexMetricClassifier(constraints=Recall(at_least=0.5))
    assert one.get_params()["constraints__at_least"] == 0.5
    one.set_params(constraints__at_least=0.7)
    assert one.constraints.at_least == 0.7
    two = ComplexMetricClassifier(
        constraints=[Recall(at_least=0.5), SelectionRate(at_most=0.4)]
    )
    copy = clone(two).set_params(
        constraints__0__at_least=0.6, constraints__1__at_most=0.3, tol=0.1
    )
    assert copy.get_params()["constraints__0__at_least"] == 0.6
    assert (copy.constraints[1].at_most, copy.tol) == (0.3, 0.1)
    assert two.constraints[0].at_least == 0.5
    assert "constraints__0__at_least" not in two.get_params(deep=False)
    for name in ("constraints__2__at_least", "constraints__0__slacks"):
        with pytest.raises(
            ValueError, match=f"Invalid parameter '{name}'. Valid parameters are"
        ):
            two.set_params(**{name: 0.1})


def test_searches_and_curves_take_them():
    X, y = data()
    model = ComplexMetricClassifier(
        metric="recall", constraints=[SelectionRate(at_most=0.4), Recall(at_least=0.1)]
    )
    grid = {"constraints__0__at_most": [0.2, 0.6]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    # More may be covered, more is found.
    assert search.best_params_ == {"constraints__0__at_most": 0.6}
    _, scores = validation_curve(
        model, X, y, param_name="constraints__0__at_most", param_range=[0.2, 0.6], cv=2
    )
    assert (scores[0] <= scores[1]).all()
