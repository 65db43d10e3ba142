"""Small random problems in general position, with listed references."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from _references import (
    Listed,
    list_binary,
    list_chains,
    list_multiclass,
    list_multilabel,
    messy_csr,
    random_chains,
    random_costs,
)
from _seeds import new_rng

from sklearn_structsvm.estimators.steps import make_ascent
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.loop import History
from sklearn_structsvm.solvers.qp.bundle import Bundle
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    Structure,
)

KINDS = ("binary", "multiclass", "multilabel", "chain", "custom")
LAYOUTS = ("dense", "csr")
PRESENTED = [
    (kind, layout)
    for kind in KINDS
    for layout in LAYOUTS
    if (kind, layout) != ("custom", "csr")
]


def uneven_weights(n=8, empty=(2,)):
    """Weights of examples, some of which have none."""
    weights = new_rng(3).uniform(0.2, 1.0, size=n)
    weights[list(empty)] = 0.0
    return weights / weights.sum()


def random_box(rng, d, size=1.0, has_box=True):
    """Bounds around 0, which are infinite without a box, and the solver's options."""
    if not has_box:
        return np.full(d, -np.inf), np.full(d, np.inf), {}
    lower, upper = -rng.uniform(0.0, size, size=d), rng.uniform(0.0, size, size=d)
    return lower, upper, {"lower": lower, "upper": upper}


def odd_box(d):
    """Bounds that bind, that do not contain 0, that are open, and that are points."""
    lower, upper, _ = random_box(new_rng(1), d, 0.4)
    lower[0], upper[0] = 0.2, 0.5
    upper[1] = np.inf
    lower[2] = -np.inf
    lower[3] = upper[3] = -0.1
    return lower, upper


def assert_same_weights(weights, expected, rtol=1e-12):
    """Up to a share of the largest one."""
    atol = rtol * np.abs(expected).max()
    np.testing.assert_allclose(weights, expected, rtol=0, atol=atol)


def check_interrupted(run, objective, at=7, rel=1e-12):
    """The history of a run that is interrupted ends with what it saw last."""
    history = History()

    def interrupt(n_iter, row, last):
        if n_iter == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tol=0.0, on_pass=interrupt, history=history)
    value = objective(history.solution)
    assert history.rows[-1]["objective"] == pytest.approx(value, rel=rel)
    return history


def explicit_distributions(problem, solver, rel=1e-13):
    """`explicit_alpha`, checked to be distributions."""
    alpha = explicit_alpha(problem, solver)
    for masses in alpha:
        assert masses.min() >= 0.0
        assert masses.sum() == pytest.approx(1.0, rel=rel)
    return alpha


class ListedStructure(Structure):
    """A listed problem as a structure: x is i, and y a place in its list."""

    def __init__(self, listed=None):
        self.listed = listed

    def joint_feature(self, x, y):
        return self.listed.phi[x][y]

    def loss(self, y_true, y):
        raise NotImplementedError("depends on the example; see make_oracle")

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return int(self.listed.values(x, w, lam).argmax())


@dataclass
class Problem:
    """A structure fitted to data, and the same problem with all labelings listed."""

    structure: Structure
    X: object
    y: object
    listed: Listed

    def make_oracle(self):
        return self.structure.make_oracle(self.X, self.y)

    @property
    def n(self):
        return self.listed.n

    def solver(self, lam=0.1, p=None, **options):
        p = self.listed.uniform if p is None else p
        return BlockFrankWolfe(self.make_oracle(), p, lam, **options)

    def ascent(self, lam=0.1, p=None):
        """The iterate of exact steps, for rows."""
        p = self.listed.uniform if p is None else p
        data = {"structure": self.structure, "X": self.X, "y": self.y, "weights": p}
        return make_ascent(SimpleNamespace(**data), lam)


def list_structure(listed):
    """The Problem of a listed one whose losses depend on labels alone."""
    structure = ListedStructure(listed)
    X, y = list(range(listed.n)), list(listed.truth)
    tables = {tuple(loss): truth for loss, truth in zip(listed.loss, y, strict=True)}
    if len(set(tables.values())) != len(tables):
        raise ValueError("examples of one truth must have one table of losses")
    by_truth = {truth: loss for loss, truth in tables.items()}
    structure.loss = lambda y_true, y: by_truth[y_true][y]
    return Problem(structure.fit(X, y), X, y, listed)


def random_problem(
    kind, layout="dense", n=8, seed=0, intercept=1.5, n_features=3, **options
):
    """A problem of one of `KINDS`, with random costs that have no ties at w = 0."""
    rng = new_rng(seed)
    present = np.asarray if layout == "dense" else lambda X: messy_csr(X, seed)
    if kind == "chain":
        X, y, costs = random_chains(n, n_features=n_features, seed=seed)
        structure = ChainStructure(label_costs=costs, **options)
        X_given = [present(x) for x in X]
        listed = list_chains(
            X, y, 3, costs, normalize=options.get("normalize_loss", True)
        )
        return Problem(structure.fit(X_given, y), X_given, y, listed)
    X, y = rng.standard_normal((n, n_features)), np.arange(n) % 3
    costs = random_costs(3, rng)
    if kind == "custom":
        codes = rng.standard_normal((3, 2))
        phi = [np.array([np.outer(x, code).ravel() for code in codes]) for x in X]
        return list_structure(
            Listed([list(range(3))] * n, list(y), phi, [costs[c] for c in y])
        )
    if kind == "binary":
        y, costs = y % 2, costs[:2, :2]
        structure, listed = BinaryStructure(costs), list_binary(X, y, costs, intercept)
    elif kind == "multiclass":
        structure = MulticlassStructure(costs)
        listed = list_multiclass(X, y, 3, costs, intercept)
    else:
        y = rng.integers(2, size=(n, 3))
        costs = rng.uniform(0.5, 1.5, size=(3, 2))
        structure = MultilabelStructure(label_costs=costs)
        listed = list_multilabel(X, y, costs, intercept)
    X_given = present(X)
    return Problem(structure.fit(X_given, y, bias=intercept), X_given, y, listed)


def solve(problem, lam, p=None, tol=1e-10, **options):
    """Run a solver with pairwise steps until its duality gap is at most `tol`."""
    solver = problem.solver(lam, p, step="pairwise", **options)
    blocks = solver.active_blocks
    rng = new_rng(0)
    for _ in range(3000):
        if solver.check_gaps()[1] <= tol:
            return solver
        for _ in range(10):
            solver.run(rng.permutation(blocks))
    raise RuntimeError(f"a gap of {solver.gap} is left")


def solve_listed(listed, lam, p=None, tol=1e-10):
    """(smallest objective, best dual one), at most `tol` apart, by cutting planes.

    Block steps may be very slow, while these solve an exact program. The dual value is
    computed from dual variables over the list, not by the bundle.
    """
    p = listed.uniform if p is None else p
    bundle, chosen = Bundle(listed.d, lam, max_idle=np.inf), []
    best = np.inf
    for _ in range(3000):
        w = bundle.weights
        values = [listed.values(i, w) for i in range(listed.n)]
        chosen.append([int(v.argmax()) for v in values])
        best = min(best, listed.primal(w, lam, p))
        plane, offset = np.zeros(listed.d), 0.0
        for i, c in enumerate(chosen[-1]):
            plane += p[i] * listed.delta(i)[c]
            offset += p[i] * listed.loss[i][c]
        bundle.add(plane, offset)
        bundle.solve()
        alpha = [np.zeros(len(loss)) for loss in listed.loss]
        for mass, labelings in zip(bundle.alpha, chosen, strict=True):
            for i, c in enumerate(labelings):
                alpha[i][c] += mass
        dual = listed.dual(alpha, lam, p)
        if best - dual <= tol:
            return best, dual
    raise RuntimeError(f"{best} and {dual} do not certify each other")


def optimum(problem, lam, p=None):
    """The least objective, up to 1e-10."""
    return solve_listed(problem.listed, lam, p)[0]


def explicit_alpha(problem, solver):
    """Dual variables over the listed labelings, for a solver that stores labelings."""
    listed = problem.listed
    alpha = [np.zeros(len(loss)) for loss in listed.loss]
    for i, atoms in enumerate(solver.get_state()["atoms"]):
        for labeling, mass, loss in atoms:
            labels = np.atleast_1d(labeling).tolist()
            key = (
                tuple(labels)
                if isinstance(listed.labelings[i][0], tuple)
                else (labels[0])
            )
            place = listed.labelings[i].index(key)
            if abs(listed.loss[i][place] - loss) > 1e-12:
                raise RuntimeError(f"labeling {key} of {i} has the loss {loss}")
            alpha[i][place] += mass
    return alpha


def alpha_of_moves(problem, moves):
    """The same for exact steps, from each ν_i, which must be distributions."""
    listed, alpha = problem.listed, []
    for i, nu in enumerate(moves):
        truth = listed.labelings[i][listed.truth[i]]
        if type(problem.structure) is MulticlassStructure:
            masses = nu + np.eye(len(nu))[truth]
        else:
            # Labels are independent, so the mass of a labeling is a product.
            wrong = np.abs(nu)
            signs = np.where(np.atleast_1d(truth), -1.0, 1.0)
            np.testing.assert_array_equal(signs * nu, wrong)
            masses = np.array(
                [
                    np.prod(np.where(np.equal(labeling, truth), 1.0 - wrong, wrong))
                    for labeling in listed.labelings[i]
                ]
            )
        assert masses.min() >= -1e-15
        assert abs(masses.sum() - 1.0) <= 1e-12
        alpha.append(masses)
    return alpha


def dual_of_box(v, loss, lam, lower, upper):
    """ℓ + min_w λ/2 ‖w‖² - λ ⟨v, w⟩ over the box."""
    w = np.clip(v, lower, upper)
    return loss + 0.5 * lam * w @ w - lam * v @ w
