"""Groups whose precisions are close, by a search over their level."""

from itertools import product

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import Precision

SLACK, EDGES = 0.1, np.linspace(0.0, 0.9, 7)


class Scored:
    """Two classes, whose first feature is the probability of the second one."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def fit(p, y, groups, low, high):
    model = ComplexMetricClassifier(
        Scored(), "zero_one", cv="prefit", confusion="labels",
        constraints=Precision(at_least=low, at_most=min(high, 1.0), per_group=True),
    )  # fmt: skip
    return model.fit(p[:, None], y, sensitive_features=groups)


def outcomes(p, y):
    """(predicted, right, errors) of each threshold."""
    for cut in [*np.unique(p), np.inf]:
        said = p >= cut
        yield said.sum(), (said & (y == 1)).sum(), (said != (y == 1)).sum()


@pytest.mark.filterwarnings("ignore:The classifier predicts:UserWarning")
def test_levels_give_close_precisions_and_their_intervals_bound_all_rules():
    rng = new_rng(0)
    p, groups = rng.random(60), np.arange(60) % 2
    y = (rng.random(60) < p * np.where(groups, 0.7, 1.0)).astype(int)
    for level in EDGES:
        model = fit(p, y, groups, level, level + SLACK)
        counts = model.cell_confusions_[:, :, 1]
        used = counts.sum(axis=1) > 1e-6
        precisions = counts[used, 1] / counts[used].sum(axis=1)
        rounding = 2 * max(model.constraint_violation_, 0.0) + 1e-9
        assert precisions.size < 2 or np.ptp(precisions) <= SLACK + rounding
    bound = min(
        fit(p, y, groups, a, b + SLACK).dual_objective_
        for a, b in zip(EDGES[:-1], EDGES[1:], strict=True)
    )
    by_group = [list(outcomes(p[groups == a], y[groups == a])) for a in (0, 1)]
    for (n, hits, errors), (m, others, more) in product(*by_group):
        if not (n and m) or abs(hits / n - others / m) <= SLACK:
            assert (errors + more) / 60 >= bound - 1e-9
