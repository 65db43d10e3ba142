"""Every history names the method that made its passes."""

import numpy as np
import pytest
from _seeds import new_rng, new_seed

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BLOCKS = {"blocks", "accelerated", "planes"}
ROWS = [
    (SubLBFGSClassifier(), {"blocks", "accelerated", "planes", "sublbfgs"}),
    (SubLBFGSClassifier(solver="sublbfgs"), {"sublbfgs"}),
    (SubLBFGSClassifier("logistic", penalty="l1"), {"newton"}),
    (CRFClassifier(), {"newton"}),
    (BMRMClassifier(), {"planes"}),
    (PragamClassifier(max_iter=5), {"excessive_gap"}),
    (ComplexMetricClassifier(), {"column_generation"}),
    (ComplexMetricClassifier(solver_options={"solver": "frank_wolfe"}), {"frank_wolfe"}),
]
CHAINS = [
    (BCFWClassifier("chain", max_iter=5), BLOCKS),
    (CRFClassifier("chain", solver="lbfgs"), {"lbfgs"}),
    (CRFClassifier("chain", solver="newton"), {"newton"}),
    (BMRMClassifier("chain", max_iter=5), {"planes"}),
    (PragamClassifier(structure="chain", max_iter=5), {"excessive_gap"}),
    *(
        (SlackRescaledSSVM("chain", solver=name, max_iter=5), methods)
        for name, methods in (
            ("bcfw", BLOCKS), ("sgd", {"sgd"}), ("cutting_plane", {"planes"}),
            ("one_slack", {"planes"}),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "methods"),
    ROWS + CHAINS,
    ids=lambda value: repr(sorted(value) if isinstance(value, set) else value),
)
def test_the_history_names_what_made_each_pass(model, methods):
    if any(model is own for own, _ in CHAINS):
        X, y = make_chains(10, random_state=new_seed())
    else:
        X = new_rng().standard_normal((60, 3))
        y = (X[:, 0] + new_rng(1).standard_normal(60) > 0).astype(int)
    history = model.fit(X, y).history_
    made = np.diff(history["n_iter"], prepend=0) > 0
    assert set(history["method"][made]) <= methods
    assert set(history["method"][~made]) <= {"start", *methods}
