"""Feasible dual points near those of a conditional random field with an L1 penalty.

Without squares in the penalty, D is -inf unless all |u_j| <= 1. Dual points meet this
only in the limit, but if s_i α_i + (1 - s_i) (the true labeling) replaces α_i for each
block, its part of u becomes s_i times as large, and its entropy is known (see
`MarginalAscent.dual_value_of`). One share for all blocks has to be small enough for the
worst weight, even if that is of a feature that few examples have. So here each block has
its own share: those nearest to 1 for which the weights that are near their bound are
feasible, by Hildreth's method ("A quadratic programming procedure", Naval Research
Logistics Quarterly 4, 1957). What remains infeasible is left to a common share.
"""

import numpy as np
from scipy import sparse

from sklearn_structsvm._utils.tolerances import TINY
from sklearn_structsvm.solvers.blocks._feasible_shares import (
    block_images,
    blocks_of,
    image_of,
    nearest_shares,
)

# Weights are near their bound if |u_j| is beyond this. The others stay feasible in most
# cases.
NEAR = 0.98

# After 60 sweeps on CoNLL-2000 the shares miss the bounds by 1e-3 to 1e-4 of them; after
# 100, by a third of that.
N_SWEEPS = 100

# It pays if examples have few of the weights that are near their bound, as on text: if
# there are no more such terms than log factors of the distributions. On letters each
# example has all of them. To find the terms, at most this many times as many numbers are
# looked at.
MOST_TERMS = 1
MOST_LOOKS = 16


class FeasibleShares:
    """The shares of the blocks of an ascent, and the bounds that they give.

    Attributes: `is_possible`: False unless the penalty is L1 alone and it pays.
    """

    def __init__(self, ascent):
        self.ascent = ascent
        self.is_possible = ascent.l1_ratio == 1.0

    def bound(self, objective, tol):
        """A lower bound on the optimum; -inf if it cannot be within `tol`."""
        if not self.is_possible or self.ascent.loss < objective - tol:
            return -np.inf
        found = self.find()
        return -np.inf if found is None else found[1]

    def find(self):
        """The shares, and the dual objective with them; None if they do not pay."""
        ascent, u = self.ascent, self.ascent.dual_image()
        near = np.flatnonzero(np.abs(u) > NEAR)
        p, entropies, n_factors = blocks_of(ascent)
        terms = None
        if len(near) * len(p) <= MOST_LOOKS * n_factors:
            terms = block_images(ascent, near, MOST_TERMS * n_factors)
        if terms is None:
            self.is_possible = False
            return None
        data, places, indptr = terms
        signed = np.sign(u[near])[places] * data
        columns = sparse.csr_array((signed, places, indptr), shape=(len(p), len(near)))
        columns = columns.tocsc()
        blocks, starts = (
            part.astype(np.intp) for part in (columns.indices, columns.indptr)
        )
        shares = nearest_shares(columns.data, blocks, starts, p, N_SWEEPS)
        rounding = ascent.rounding
        image = np.abs(image_of(ascent, shares)) + rounding.of_means / ascent.lam
        shares /= max(image.max(initial=0.0), 1.0)
        mixed = mixed_entropies(entropies, ascent.true_log_losses(), shares)
        mixed += shares * ascent.cost_terms()
        value = float(p @ mixed)
        return shares, value - rounding.of_values(0.0, value, ascent.size_of_losses)


def mixed_entropies(entropies, losses, shares):
    """Entropies of distributions of which a share is kept, and the rest is the truth.

    `losses` are the negative logarithms of the probabilities of the truth.
    """
    likely = np.exp(-losses)
    rest = 1.0 - likely
    truth = 1.0 - shares * rest
    mixed = shares * (entropies - likely * losses)
    mixed -= shares * rest * np.log(np.maximum(shares, TINY))
    return mixed - truth * np.log(np.maximum(truth, TINY))
