"""OWL-QN of conditional random fields: its certificate against another solver."""

import numpy as np
import pytest
from _listed_crf import KINDS, Listed

from sklearn_structsvm.solvers.batch.elastic_net import run_elastic_net


@pytest.mark.parametrize("l1_ratio", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bracket_holds_the_optimum_of_another_solver(kind, l1_ratio):
    problem = Listed(kind, 11, l1_ratio=l1_ratio)
    above = problem.sparse_optimum()
    for n_steps in (1, 4, 60):
        result = run_elastic_net(
            problem.oracle(), problem.p, problem.lam, l1_ratio, tol=0.0, max_iter=n_steps
        )
        w = result.solution
        assert result.objective == pytest.approx(problem.primal(w), rel=1e-9)
        assert result.dual_objective <= above + 1e-9
        history = result.history
        # The last gap may be the rounding error of its terms, which change.
        assert (np.diff(history["dual_objective"]) >= -1e-14).all()
        assert (np.diff(history["objective"]) <= 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_closes_if_the_penalty_has_squares(kind):
    problem = Listed(kind, 12, l1_ratio=0.5)
    problem.lam = 0.2
    result = run_elastic_net(problem.oracle(), problem.p, 0.2, 0.5, tol=1e-6)
    assert result.gap <= 1e-6
    assert result.objective <= problem.sparse_optimum() + 1e-6
