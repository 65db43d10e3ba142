"""Cost matrices that are data frames go by the names of their rows and columns."""

import numpy as np
import pandas as pd
import pytest
from _seeds import new_rng
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.metrics import LinearLoss, cost_loss
from sklearn_structsvm.structures import ChainStructure, MulticlassStructure

LABELS = ["bad", "good", "odd"]
COSTS = np.array([[0.0, 9.0, 1.0], [2.0, 0.0, 4.0], [1.0, 3.0, 0.0]])
OTHER_ORDER = ["odd", "bad", "good"]


def model_of(name, costs):
    if name == "complex metric":
        return ComplexMetricClassifier(metric=LinearLoss(costs))
    if name == "batch":
        return SubLBFGSClassifier(label_costs=costs)
    if name == "chain":
        return BCFWClassifier(ChainStructure(label_costs=costs), random_state=0)
    if name == "crf":
        return CRFClassifier("chain", label_costs=costs, random_state=0)
    return BCFWClassifier(MulticlassStructure(label_costs=costs), random_state=0)


def data_of(name):
    rng = new_rng()
    X = 3.0 * rng.standard_normal((60, 3))
    y = np.array(LABELS)[X.argmax(axis=1)]
    if name in ("chain", "crf"):
        return list(X.reshape(12, 5, 3)), list(y.reshape(12, 5))
    return X, y


@pytest.mark.parametrize("name", ["complex metric", "batch", "chain", "crf", "rows"])
def test_the_order_of_named_costs_does_not_matter(name):
    X, y = data_of(name)
    frame = pd.DataFrame(COSTS, LABELS, LABELS)
    expected = model_of(name, COSTS).fit(X, y)
    for table in (
        frame.loc[OTHER_ORDER, OTHER_ORDER],
        frame[OTHER_ORDER],
        # Rows without names are in the order of the columns.
        frame.loc[OTHER_ORDER, OTHER_ORDER].reset_index(drop=True),
        pd.DataFrame(COSTS),
    ):
        model = clone(model_of(name, table)).fit(X, y)
        assert model.objective_ == expected.objective_
    with pytest.raises(ValueError, match="costs lacks row 'odd' and has the unknown row"):
        model_of(name, frame.rename(index={"odd": "strange"})).fit(X, y)
    with pytest.raises(ValueError, match="costs lacks column 'odd'.*columns must be the"):
        model_of(name, frame.rename(columns={"odd": "strange"})).fit(X, y)


def test_scores_go_by_names_of_numbers_as_well():
    frame = pd.DataFrame([[0.0, 7.0], [1.0, 0.0]], [2, 1], [2, 1])
    assert cost_loss([2, 2], [1, 2], costs=frame) == 3.5
    assert cost_loss([1, 2], [2, 2], costs=frame) == 0.5
    frame = frame.rename(index=str, columns=str)
    assert cost_loss([2, 2], [1, 2], costs=frame) == 3.5
