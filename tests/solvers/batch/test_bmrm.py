"""Bundle methods: against theory, other solvers, and the problem's definition."""

import numpy as np
import pytest
from _batch_problems import KINDS, random_batch, repeated_batch
from _seeds import new_rng
from scipy.linalg import hadamard
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.solvers.batch.bmrm import AggregatePlane, run_bmrm
from sklearn_structsvm.solvers.batch.pragam import run_pragam
from sklearn_structsvm.solvers.qp.bundle import Bundle
from sklearn_structsvm.structures import BinaryStructure, MulticlassStructure

VARIANTS = [
    {"line_search": search, "subproblem": sub}
    for search in (True, False)
    for sub in ("qp", "line")
]
EXACT = {"tol": 1e-9, "max_iter": 20_000}
EPSILON = np.finfo(np.float64).eps


class Hadamard:
    """R(w) = max(0, max_i ⟨a_i, w⟩) with d orthonormal columns a_i.

    Theorems 6 and 7 of Saha et al. The matrix (14) is not quite what their proofs need:
    its columns come in pairs a, -a, on which the method ends after two planes. With
    orthonormal columns and the zero plane, R is not negative, and at the minimizer over
    some columns the others are at zero, which is all that the proofs use.
    """

    n_samples, mean_sizes, is_remote = 1, 0.0, False

    def __init__(self, d, last=False):
        self.A = hadamard(d) / np.sqrt(d)
        self.n_weights = self.n_scores = d
        self.place = -1 if last else 0

    def empty(self):
        return np.empty((1, self.n_scores))

    def scores(self, w, out):
        out[0] = w @ self.A
        return out

    def value(self, Z):
        return max(Z.max(), 0.0)

    def plane(self, Z, out):
        tied = np.flatnonzero(Z[0] >= Z.max() - 1e-12)
        out[:] = 0.0
        out[0, tied[self.place]] = 1.0
        return out, 0.0

    def gradient(self, B):
        return self.A @ B[0]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("lam", [0.01, 1.0, 10.0])
def test_the_gap_on_the_hadamard_instance_is_what_theory_says(lam, last):
    d = 64
    risk, bundle = Hadamard(d, last), Bundle(d, lam)
    result = run_bmrm(
        risk, lam, line_search=False, bundle=bundle, tol=0.0, max_iter=d // 2 - 2
    )
    t = result.history["n_oracle_calls"]
    np.testing.assert_array_equal(t, np.arange(1, d // 2))
    np.testing.assert_allclose(result.history["dual_gap"], 0.5 / (lam * t), rtol=1e-10)
    # Theorem 7: that is the suboptimality of the minimizers, too.
    w = bundle.weights
    value = 0.5 * lam * w @ w + risk.value(risk.scores(w, np.empty((1, d))))
    assert value == pytest.approx(0.5 / (lam * t[-1]), rel=1e-10)
    # One step in one variable is no faster there. Theorem 5, with G = 1 and H* = 1.
    options = {"line_search": False, "subproblem": "line", "tol": 0.0}
    result = run_bmrm(Hadamard(d), lam, **options, max_iter=d // 2 - 2)
    t, gap = result.history["n_oracle_calls"], result.history["dual_gap"]
    assert (gap >= 0.5 / (lam * t) * (1.0 - 1e-12)).all()
    assert lam > 1.0 or (gap <= 8.0 / (lam * t)).all()


@pytest.mark.parametrize(
    ("layout", "options"),
    [*(("dense", own) for own in VARIANTS), ("csr", VARIANTS[0])],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_certificates_hold_and_the_gap_closes_within_the_bound_of_theorem_five(
    kind, layout, options
):
    weights = new_rng(1).uniform(0.0, 2.0, 40)
    weights[::7] = 0.0
    problem, lam = random_batch(kind, layout=layout, weights=weights), 0.05
    best = run_bmrm(problem.risk, lam, **EXACT).objective
    result = run_bmrm(problem.risk, lam, **options, tol=1e-3, max_iter=100_000)
    assert result.status == "converged" and result.gap <= 1e-3
    assert result.objective == pytest.approx(
        problem.objective(result.solution, lam), rel=1e-13
    )
    rows = result.history
    assert (rows["dual_objective"] <= best + 1e-12).all()
    assert (np.diff(rows["objective"]) <= 1e-15).all()
    assert (np.diff(rows["dual_objective"]) >= 0.0).all()
    gaps = rows["dual_gap"]
    np.testing.assert_array_equal(gaps, rows["objective"] - rows["dual_objective"])
    # Each iteration asks for one plane.
    np.testing.assert_array_equal(rows["n_oracle_calls"], rows["n_iter"] + 1)
    rows_of_x = problem.X.toarray() if layout == "csr" else problem.X
    norms = np.linalg.norm(rows_of_x, axis=1)
    slopes = [np.linalg.norm(B, axis=1).max() for B, _ in problem.planes]
    G2 = (problem.risk.weights @ (norms * slopes)) ** 2
    start = problem.objective(np.zeros(problem.risk.n_weights), lam)
    # What is zero but for rounding may have either sign.
    gaps = np.maximum(gaps, 1e-15 * start)
    bound = np.log2(max(lam * start / G2, 1.0)) + 8.0 * G2 / (lam * gaps) - 4.0
    small = gaps < 4.0 * G2 / lam
    assert small[-1]
    assert (rows["n_iter"][small] <= np.maximum(bound[small], 1.0)).all()


class Counting:
    """A risk that counts its products."""

    def __init__(self, risk):
        self.risk = risk
        self.calls = {"scores": 0, "gradient": 0}

    def __getattr__(self, name):
        if name in self.calls:
            self.calls[name] += 1
        return getattr(self.risk, name)


@pytest.mark.parametrize("line_search", [True, False])
def test_an_iteration_makes_one_product_with_the_features_and_one_with_their_transpose(
    line_search,
):
    risk = Counting(random_batch("multiclass").risk)
    # Far fewer planes than weights: the bundle cannot be exact yet.
    result = run_bmrm(risk, 0.01, line_search=line_search, tol=0.0, max_iter=10)
    assert result.n_iter == 10
    assert risk.calls == {"scores": 11, "gradient": 11}


@pytest.mark.parametrize("cut_at", [0.1, 0.01])
def test_each_plane_of_the_line_search_cuts_the_minimizer_off(cut_at):
    risk, lam = random_batch("multiclass").risk, 0.01
    cuts = []

    class Watched(Bundle):
        def add(self, plane, offset):
            if len(self.offsets):
                cuts.append(plane @ self.weights + offset - self.slack)
            super().add(plane, offset)

    run_bmrm(risk, lam, cut_at=cut_at, bundle=Watched(risk.n_weights, lam), tol=1e-6)
    assert len(cuts) > 20
    # The last minimizer may be the optimum, which nothing cuts off.
    assert min(cuts[:-1]) > 0.0


def linear_svc_objective(problem, lam, **options):
    n = len(problem.y)
    model = LinearSVC(
        C=1.0 / (lam * n),
        loss="hinge",
        fit_intercept=False,
        tol=1e-9,
        max_iter=1_000_000,
        random_state=0,
        **options,
    ).fit(problem.X, problem.y)
    return problem.objective(model.coef_.T.ravel(), lam)


@pytest.mark.parametrize("lam", [0.1, 0.02])
@pytest.mark.parametrize(
    ("kind", "structure", "options"),
    [
        ("binary", BinaryStructure(), {}),
        ("multiclass", MulticlassStructure(), {"multi_class": "crammer_singer"}),
    ],
)
def test_all_solvers_agree_on_the_objective(kind, structure, options, lam):
    problem = random_batch(kind)
    first = run_bmrm(problem.risk, lam, **EXACT).objective
    # Iterations are as 1 / sqrt(tol): it ends where its certificate is what is asked.
    excessive = run_pragam(problem.risk, lam, tol=5e-7 * first, max_iter=10**5)
    found = [
        first,
        run_bmrm(problem.risk, lam, cut_at=0.1, **EXACT).objective,
        run_bmrm(problem.risk, lam, line_search=False, **EXACT).objective,
        excessive.objective,
        linear_svc_objective(problem, lam, **options),
        BCFWClassifier(
            structure,
            C=1.0 / (lam * len(problem.y)),
            fit_intercept=False,
            step="pairwise",
            tol=1e-8,
            max_iter=20_000,
            random_state=0,
        )
        .fit(problem.X, problem.y)
        .objective_,
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_an_example_of_weight_two_is_the_same_as_two(kind, line_search):
    weighted, repeated = repeated_batch(kind)
    results = [
        run_bmrm(risk, 0.05, line_search=line_search, **EXACT)
        for risk in (weighted.risk, repeated)
    ]
    np.testing.assert_allclose(results[0].solution, results[1].solution, atol=2e-4)
    assert results[0].objective == pytest.approx(results[1].objective, abs=1e-9)


@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("lam", [1e-12, 1e-7, 0.1, 1e6, 1e12])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "pairs"])
def test_tiny_and_huge_lambdas_end_with_a_gap_of_rounding(kind, lam, line_search):
    problem = random_batch(kind, ties=True)
    result = run_bmrm(problem.risk, lam, line_search=line_search, tol=-1.0, max_iter=1500)
    objective = problem.objective(result.solution, lam)
    start = problem.objective(np.zeros_like(result.solution), lam)
    assert result.objective == pytest.approx(objective, rel=1e-9)
    assert objective <= start
    # Planes cancel in λ w = -Σ α a. What rounding leaves of it, ε ||a||, is ε ||a|| / λ
    # of w, and ||a|| times that of the risk, where ||a|| <= sqrt(2) max ||x||.
    rounding = 2.0 * EPSILON * (problem.X**2).sum(axis=1).max() / lam
    assert -1e-14 <= result.gap <= max(1e-9, rounding)
    assert result.status == "stalled" or result.n_iter == 1500


@pytest.mark.parametrize("line_search", [True, False])
def test_a_bundle_and_weights_that_are_handed_over_are_gone_on_from(line_search):
    problem, lam = random_batch("multiclass"), 0.02
    bundle = Bundle(problem.risk.n_weights, lam)
    first = run_bmrm(problem.risk, lam, bundle=bundle, tol=1e-8, max_iter=20_000)
    again = run_bmrm(
        problem.risk, lam, line_search=line_search, bundle=bundle, w0=first.solution,
        tol=2e-8,
    )  # fmt: skip
    assert (again.status, again.n_iter) == ("converged", 0)
    # For another λ, the planes are a start that saves most of the iterations.
    other = 0.015
    cold = run_bmrm(problem.risk, other, tol=1e-6)
    warm = run_bmrm(problem.risk, other, bundle=bundle.at(other), tol=1e-6)
    assert warm.objective == pytest.approx(cold.objective, abs=2e-6)
    assert warm.n_iter < 0.5 * cold.n_iter
    # Where it came from stays as it was.
    assert first.dual_objective <= bundle.dual_objective <= first.objective
    assert Bundle(5, 0.5).at(0.1).slack == -np.inf
    with pytest.raises(ValueError, match=r"made for λ = 0.02, and not for 0.015"):
        run_bmrm(problem.risk, other, bundle=bundle)


def test_the_mean_plane_maximizes_the_dual_on_the_segment():
    rng = new_rng(0)
    for _ in range(50):
        lam = 10.0 ** rng.uniform(-2, 2)
        mean, (a, b) = AggregatePlane(lam), rng.standard_normal((2, 4))
        offsets = rng.standard_normal(2)
        mean.add(a, offsets[0])
        mean.add(b, offsets[1])
        mean.solve()
        shares = np.linspace(0.0, 1.0, 2001)[:, np.newaxis]
        planes = (1.0 - shares) * a + shares * b
        values = (1.0 - shares[:, 0]) * offsets[0] + shares[:, 0] * offsets[1]
        duals = values - 0.5 / lam * (planes**2).sum(axis=1)
        rounding = 1e-14 * (np.abs(values).max() + (planes**2).sum(axis=1).max() / lam)
        assert mean.dual_objective >= duals.max() - rounding
        assert mean.dual_objective <= duals.max() + 1e-6 * np.sum((a - b) ** 2) / lam
    # Of parallel planes, the higher one.
    mean.add(mean.plane.copy(), mean.offsets[0] + 1.0)
    before = mean.dual_objective
    mean.solve()
    assert mean.dual_objective == pytest.approx(before + 1.0, rel=1e-12)
