"""Bundle methods: against theory, other solvers, and the problem's definition."""

import numpy as np
import pytest
from _batch_problems import KINDS, random_batch
from scipy.linalg import hadamard
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.bcfw import History
from sklearn_structsvm.solvers.bmrm import MeanPlane, run_bmrm
from sklearn_structsvm.solvers.bundle import Bundle
from sklearn_structsvm.structures import BinaryStructure, MulticlassStructure

VARIANTS = [(search, sub) for search in (True, False) for sub in ("qp", "line")]
EXACT = {"tol": 1e-9, "max_iter": 20_000}


class Hadamard:
    """R(w) = max_i ⟨a_i, w⟩ with the d orthonormal columns a_i of (14) of the paper."""

    n_samples = 1

    def __init__(self, d, order):
        H = hadamard(d // 2)
        self.A = np.block([[H, -H], [-H, H]]) / np.sqrt(d)
        # The paper's matrix has each row twice, up to sign, and its columns are not
        # orthogonal; those of Hadamard's own are, and have what the proofs ask for.
        self.A = hadamard(d)[:, 1:] / np.sqrt(d)
        self.n_weights, self.n_scores = self.A.shape
        self.order = order

    def scores(self, w, out):
        out[0] = w @ self.A
        return out

    def value(self, Z):
        return Z.max()

    def plane(self, Z, out):
        out[:] = 0.0
        tied = np.flatnonzero(Z[0] >= Z.max() - 1e-12)
        out[0, tied[self.order]] = 1.0
        return out, 0.0

    def gradient(self, B):
        return self.A @ B[0]


@pytest.mark.parametrize("order", [0, -1])
@pytest.mark.parametrize("lam", [0.01, 1.0, 10.0])
def test_the_gap_on_the_hadamard_instance_is_what_theory_says(lam, order):
    d = 64
    result = run_bmrm(
        Hadamard(d, order), lam, line_search=False, tol=0.0, max_iter=d // 2 - 2
    )
    t = result.history["n_oracle_calls"]
    np.testing.assert_array_equal(t, np.arange(1, d // 2))
    np.testing.assert_allclose(result.history["dual_gap"], 0.5 / (lam * t), rtol=1e-10)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_one_step_in_one_variable_is_no_faster_there(lam):
    d = 64
    result = run_bmrm(
        Hadamard(d, 0),
        lam,
        line_search=False,
        subproblem="line",
        tol=0.0,
        max_iter=d // 2 - 2,
    )
    t, gap = result.history["n_oracle_calls"], result.history["dual_gap"]
    assert (gap >= 0.5 / (lam * t) * (1.0 - 1e-12)).all()
    assert (gap <= 8.0 / (lam * t)).all()
