"""An empirical risk for batch solvers: scores, values, planes, line search."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg.blas import daxpy

from sklearn_structsvm._utils._matrix._products import as_products
from sklearn_structsvm._utils.columns import mean_sizes_of_rows
from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm._utils.weights import check_weights

# The BLAS counts entries with 32 bits.
BLAS_SIZE = 2**30


class Risk(ABC):
    """R(W) = Σ_i p_i ℓ_i(Wᵀ x_i), a loss of k scores per example, summed over examples.

    A solver sees W, of shape (F, k), as a flat vector w of length F k, features first.
    With a constant feature (`bias` not zero), its weights are the last row of W.

    `X` (n_samples, n_features), also sparse. `n_scores`: k. `sample_weight`
    (n_samples,): s_i >= 0, not all zero; p_i = s_i / Σs. None for all equal. `bias`:
    value of the constant feature, or 0 if there is none.

    Attributes: `n_entries`: stored entries of X. `weights` (n_samples,): p.
    `n_threads`: threads of products and kernels. Results do not depend on it, bit for
    bit. `smooth`: whether R has a gradient everywhere; if not, it is a sum of maxima of
    planes. `is_remote`: whether the rows are in other processes, and asking is slow.
    """

    smooth = is_remote = False

    def __init__(self, X, n_scores, sample_weight=None, *, bias=0.0, n_threads=1):
        self.X, self.bias = X, bias
        self.products = as_products(X, bias)
        self.n_samples = self.products.n_samples
        self.n_entries = X.nnz if sparse.issparse(X) else np.size(X)
        self.n_scores = n_scores
        self.n_weights = self.products.n_features * n_scores
        weights = check_weights(sample_weight, self.n_samples)
        self.weights = weights / weights.sum()
        self.n_threads = n_threads

    @cached_property
    def mean_sizes(self):
        """Σ_i p_i |x_ij| for each weight: the sizes of the terms of a gradient."""
        X = sparse.csr_array(self.X) if sparse.issparse(self.X) else np.asarray(self.X)
        sizes = mean_sizes_of_rows(X, self.weights)
        if self.bias:
            sizes = np.append(sizes, abs(self.bias))
        return np.repeat(sizes, self.n_scores)

    def scores(self, w, out=None):
        """Z = X W.

        `w` (n_weights,). `out` (n_samples, n_scores) or None: the output, C-contiguous.
        Returns (n_samples, n_scores).
        """
        if out is None:
            out = np.empty((self.n_samples, self.n_scores))
        W = np.require(w, np.float64, "CA").reshape(-1, self.n_scores)
        self.products.scores(W, out, self.n_threads)
        return out

    def gradient(self, B, out=None):
        """Xᵀ B, flat.

        `out` (n_weights,) or None. `B` (n_samples, n_scores): rows of zeros are free,
        and rows with few entries cheap. Returns (n_weights,).
        """
        if out is None:
            out = np.empty(self.n_weights)
        self.products.gradient(
            np.ascontiguousarray(B), out.reshape(-1, self.n_scores), self.n_threads
        )
        return out

    def empty(self):
        """An array for scores, or for the coefficients of a plane."""
        return np.empty((self.n_samples, self.n_scores))

    def random_scores(self, seed=0, first=0):
        """Scores drawn from [0, 1): a direction that decides ties.

        `seed`, `first`: these rows are part of a larger sample drawn with this seed,
        and begin at row `first` of it. Returns (n_samples, n_scores).
        """
        rng = np.random.default_rng(seed)
        rng.bit_generator.advance(first * self.n_scores)
        return rng.random((self.n_samples, self.n_scores))

    def moved(self, Z, along, step, out=None):
        """Z + step · along; in place where `out` is Z."""
        if out is Z:
            along, flat = along.ravel(), Z.ravel()
            for start in range(0, Z.size, BLAS_SIZE):
                part = slice(start, start + BLAS_SIZE)
                daxpy(along[part], flat[part], a=step)
            return Z
        out = np.multiply(along, step, out=out)
        out += Z
        return out

    def mixed(self, A, B, share, out=None):
        """A + share · (B - A); in place where `out` is A."""
        change = share * (B - A)
        return np.add(A, change, out=out)

    def dot(self, B, Z):
        """⟨B, Z⟩, which is ⟨Xᵀ B, W⟩ for Z = X W."""
        return float(np.vdot(B, Z))

    @abstractmethod
    def value(self, Z):
        """R at the scores Z."""

    @abstractmethod
    def sample_losses(self, Z):
        """ℓ_i(z_i), shape (n_samples,)."""

    @abstractmethod
    def plane(self, Z, along=None, rtol=SUM_ROUNDING, out=None):
        """A plane below R that touches it at Z.

        `Z` (n_samples, n_scores): scores of a point w. `along` (n_samples, n_scores) or
        None: scores of a direction d. If it is given, the plane belongs to the
        subgradient at w that is steepest along d: argsup ⟨g, d⟩ over g in ∂R(w).
        `rtol`: how close to the largest a value counts as tied with it, relative to the
        example's largest cost and score. (Recomputed scores differ by less than by
        default, other labels by much more.) `out` (n_samples, n_scores) or None: the
        output B, C-contiguous. Returns `B` (n_samples, n_scores): weights p included,
        so that Xᵀ B is a subgradient; `offset`: R(V) >= offset + ⟨Xᵀ B, V⟩ for every V,
        with equality at w.
        """

    @abstractmethod
    def line_search(self, Z, along, wp, pp, lam, largest=np.inf):
        """The step that minimizes λ/2 ||w + η d||² + R(w + η d)."""

    def dual_form(self):
        """The planes of each loss, as solvers of the dual need them.

        Returns `kind` ({"box", "simplex", "pairs"}): "box": max(0, cost_i - sign_i
        z_i). "simplex": max_c cost[t_i, c] + z_c - z_t or rescaled, t = truth_i.
        "pairs": max_j cost_j + z[gained_j] - z[lost_j] over starts[i] <= j < starts[i +
        1]; `arrays`: the arrays above, by their names. "rescaled" of "simplex" is a
        bool. TypeError if the loss is smooth, since it then has no such planes.
        """
        raise TypeError(f"{type(self).__name__} is not a maximum of planes.")
