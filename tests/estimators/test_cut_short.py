"""Fits that end after a few passes, on columns of Unix seconds."""

from itertools import product

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng
from sklearn.base import clone

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)  # fmt: skip

SMOOTH, RATIOS = ("auto", "newton", "owlqn", "owlqn*"), (0.0, 0.5, 1.0)
STEPS = ("auto", "fw", "pairwise", "away", "corrective")
PAIRS = product(("slack", "margin"), ("sgd", "cutting_plane", "one_slack"))
ANY = [
    *(BCFWClassifier(step=s, l1_ratio=r) for s in STEPS for r in (0.0, 0.9)),
    placed(BCFWClassifier)(step="fw", average=True),
    placed(BCFWClassifier)(step="fw", algorithm="batch"),
    *(SlackRescaledSSVM(rescaling=r) for r in ("slack", "margin")),
    *(CRFClassifier(solver=s, l1_ratio=r) for s in ("auto", "dual") for r in RATIOS),
    *(CRFClassifier(solver="newton", l1_ratio=r) for r in RATIOS),
    *(CRFClassifier(solver="lbfgs", l1_ratio=r) for r in RATIOS[:2]),
]
ROWS = [
    BCFWClassifier(step="exact"),
    *(placed(BMRMClassifier)(line_search=own) for own in (True, False)),
    *(SubLBFGSClassifier(solver=s) for s in ("auto", "hybrid", "sublbfgs", "subbfgs")),
    *(SubLBFGSClassifier("squared_hinge", solver=s) for s in ("newton", "sublbfgs")),
    *(SubLBFGSClassifier("squared_hinge", penalty="l1", solver=s) for s in SMOOTH),
    *(SubLBFGSClassifier("logistic", penalty="l1", solver=s) for s in SMOOTH),
    SubLBFGSClassifier("slack_hinge"),
    SubLBFGSClassifier("hinge", penalty="l1"),
]
STATELESS = [
    *(SlackRescaledSSVM(rescaling=r, solver=s) for r, s in PAIRS),
    placed(SlackRescaledSSVM)(solver="sgd", average=False, sampling="uniform"),
    *(placed(BMRMClassifier)("chain", formulation=f) for f in ("one-slack", "n-slack")),
    PragamClassifier(),
]
CASES = [*product(ANY, (1, 4), (True,)), *product(ROWS, (1,), (True,))]
CASES += product(STATELESS, (4,), (False,))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "T", "has_state"), CASES, ids=repr)
def test_weights_are_no_worse_than_zero_nor_than_others_seen(model, T, has_state):
    rng = new_rng(3)
    X = [np.c_[1.6e9 + rng.integers(0, 10**7, T), rng.normal(size=T)] for _ in range(30)]
    y, structure = list(rng.integers(2, size=(30, T))), {"structure": "chain"}
    if T == 1:
        X, y, structure = np.concatenate(X), np.concatenate(y), {}
    is_log = isinstance(model, CRFClassifier) or "logistic" in repr(model)
    # Searches for violations may end within a millionth.
    rounding = 1.1e-6 if isinstance(model, SlackRescaledSSVM) else 1e-9
    zero = (T * np.log(2.0) if is_log else 1.0) * (1 + rounding)
    for max_iter, C, refits in product((1, 2, 5), (1e-3, 1.0), {False, has_state}):
        own = clone(model).set_params(max_iter=max_iter, C=C, **structure)
        if refits:
            others = [1 - labels for labels in y[:9]] + list(y[9:])
            own.set_params(warm_start=True).fit(X, others).set_params(C=1e3 * C)
        own.fit(X, y, sample_weight=rng.integers(1, 3, len(y)))
        assert own.objective_ <= zero
        assert own.objective_ <= own.history_["objective"].min() * (1 + 1e-9)
