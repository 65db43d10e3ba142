"""Random problems of conditional random fields with all labelings listed."""

import numpy as np
from _seeds import new_rng
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_structsvm.solvers.blocks._crf import MarginalAscent
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    TreeStructure,
)

KINDS = ("chain", "tree", "binary", "multiclass", "multilabel")


class Listed:
    """A random problem, and its objective over listed labelings."""

    def __init__(self, kind, seed, n=5, k=2, l1_ratio=0.0):
        self.l1_ratio = l1_ratio
        rng = new_rng(KINDS.index(kind), seed)
        self.structure, X, y = self.draw(kind, rng, n, k)
        self.X, self.y = X, y
        if not self.structure.flat:
            self.X, self.y = self.structure.check_data(X, y)
        self.n = len(y)
        self.p = rng.dirichlet(np.ones(self.n))
        self.p[rng.integers(self.n)] = 0.0
        self.p /= self.p.sum()
        self.lam = 10.0 ** rng.uniform(-3.0, 0.5)
        self.phi = []
        for x, truth in zip(self.X, self.y, strict=True):
            phi = [
                self.structure.joint_feature(x, labels)
                for labels in self.structure.labelings(x)
            ]
            self.phi.append(np.array(phi) - self.structure.joint_feature(x, truth))

    @staticmethod
    def draw(kind, rng, n, k):
        if kind in ("chain", "tree"):
            sizes = rng.integers(1, 5, size=n)
            sizes[0] = k
            X = [rng.normal(size=(size, 3)) for size in sizes]
            y = [rng.integers(k, size=size) for size in sizes]
            y[0] = np.arange(k)
            if kind == "chain":
                structure = ChainStructure(last_bias=False)
            else:
                structure = TreeStructure()
                X = [(x, [-1, *rng.integers(0, range(1, len(x)))]) for x in X]
            return structure.fit(X, y), X, y
        X = rng.normal(size=(n + k, 3))
        y = np.concatenate([np.arange(k), rng.integers(k, size=n)])
        if kind == "binary":
            return BinaryStructure().fit(X, y, bias=1.0), X, y
        if kind == "multiclass":
            return MulticlassStructure().fit(X, y), X, y
        y = rng.integers(2, size=(n + k, k))
        return MultilabelStructure().fit(X, y, bias=0.5), X, y

    def oracle(self):
        return self.structure.make_oracle(self.X, self.y)

    def ascent(self):
        return MarginalAscent(self.oracle(), self.p, self.lam, self.l1_ratio)

    def loss(self, w):
        losses = [logsumexp(phi @ w) for phi in self.phi]
        return self.p @ losses

    def primal(self, w):
        squares = 0.5 * (1.0 - self.l1_ratio) * w @ w
        return self.lam * (squares + self.l1_ratio * np.abs(w).sum()) + self.loss(w)

    def gradient(self, w):
        """The gradient of everything but the L1 penalty."""
        total = (1.0 - self.l1_ratio) * self.lam * w
        for p, phi in zip(self.p, self.phi, strict=True):
            scores = phi @ w
            total = total + p * np.exp(scores - logsumexp(scores)) @ phi
        return total

    def optimum(self):
        start = np.zeros(self.structure.n_weights_)
        options = {"gtol": 1e-10, "ftol": 0.0, "maxiter": 10**4}
        found = minimize(
            self.primal, start, jac=self.gradient, method="L-BFGS-B", options=options
        )
        # The remaining gradient bounds how far the minimum is below.
        gradient = self.gradient(found.x)
        return found.fun - 0.5 * gradient @ gradient / self.lam, found.fun

    def sparse_optimum(self):
        """The smallest P that L-BFGS-B finds over w = a - b with nonnegative a and b."""
        d, l1 = self.structure.n_weights_, self.l1_ratio * self.lam

        def value(parts):
            w = parts[:d] - parts[d:]
            smooth = self.primal(w) - l1 * np.abs(w).sum()
            gradient = self.gradient(w)
            return smooth + l1 * parts.sum(), np.concatenate([gradient, -gradient]) + l1

        found = minimize(
            value, np.zeros(2 * d), jac=True, method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * d),
            options={"gtol": 1e-9, "ftol": 0.0, "maxiter": 10**4},
        )  # fmt: skip
        return self.primal(found.x[:d] - found.x[d:])

    def smoothness(self):
        """A Lipschitz constant of `gradient`."""
        largest = max(np.square(phi).sum(axis=1).max() for phi in self.phi)
        return (1.0 - self.l1_ratio) * self.lam + largest
