"""A good single rule, found by changing loss tensors, for any oracle."""

from itertools import combinations

import numpy as np

from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL

# The number of rules from which a search starts, besides those of the mixture.
N_STARTS = 2

# Shares of the way from one rule of the mixture to another.
SHARES = (0.2, 0.4, 0.6, 0.8)

# The number of pairs of rules that are tried.
MAX_PAIRS = 15

# Costs are multiplied and divided by e to this power: the first and the last one.
FIRST_STEP, LAST_STEP = 0.7, 0.005

# The number of calls of the oracle.
MAX_CALLS = 800


class AskedOracle:
    """An oracle that remembers its results."""

    def __init__(self, oracle):
        self.oracle, self.found = oracle, []

    def __call__(self, L):
        answer = self.oracle(L)
        self.found.append(answer[:2])
        return answer


def best_found(problem, found):
    """Index of the classifier with the smallest violation, then the smallest ψ."""
    keys = [_key(problem, C) for C, _ in found]
    return min(range(len(keys)), key=keys.__getitem__)


def descend_rules(problem, mixture, found, *, max_calls=MAX_CALLS):
    """Search for a good single rule, if rules are given by loss tensors.

    It starts from the rules of the mixture, from rules between two of them, and from the
    best of the others. The costs of one label, or of one prediction, in one cell are
    multiplied by a factor. The change is kept if the rule is better, which means a
    smaller violation, or the same violation and a smaller ψ.

    `problem`: its oracle accepts the handles that it returns. `found` (list of (C,
    handle)): all known rules. Returns `C` (m, k, k); `handle` (m, k, k).
    """
    search = _Descent(problem, max_calls)
    own = list(zip(mixture.confusions, mixture.handles, strict=True))
    for L, M in list(combinations(mixture.handles, 2))[:MAX_PAIRS]:
        for share in SHARES:
            L_between = (1.0 - share) * _scaled(L) + share * _scaled(M)
            own.append(search.ask(L_between))
    others = [(C, handle) for C, handle in found if handle is not None]
    others.sort(key=lambda pair: _key(problem, pair[0]))
    own.sort(key=lambda pair: _key(problem, pair[0]))
    starts = own[:N_STARTS] + others[:N_STARTS]
    ends = [search.improve(*start) for start in starts]
    return ends[best_found(problem, ends)]


class _Descent:
    def __init__(self, problem, max_calls):
        self.problem, self.n_left = problem, max_calls

    def ask(self, L):
        self.n_left -= 1
        return self.problem.lmo(L)[:2]

    def improve(self, C, L):
        """The (C, L) that result from changes of the costs."""
        key, step = _key(self.problem, C), FIRST_STEP
        # A common cost of all predictions does not matter.
        L = L - L.max(axis=2, keepdims=True)
        while step > LAST_STEP:
            before = key
            for part in _parts(L):
                for sign in (1.0, -1.0):
                    if self.n_left <= 0:
                        return C, L
                    changed = L.copy()
                    changed[part] *= np.exp(sign * step)
                    new, _ = self.ask(changed)
                    if _key(self.problem, new) < key:
                        C, L, key = new, changed, _key(self.problem, new)
                        break
            if key == before:
                step /= 3.0
        return C, L


def _parts(L):
    """The positions of the costs of each label, and of each prediction."""
    m, k, _ = L.shape
    for a in range(m):
        is_diagonal = not L[a][~np.eye(k, dtype=bool)].any()
        for i in range(k):
            if L[a, i].any():
                yield a, i
            if not is_diagonal and L[a, :, i].any():
                yield a, slice(None), i


def _scaled(L):
    L = L - L.max(axis=2, keepdims=True)
    return L / max(np.abs(L).max(), np.finfo(float).tiny)


def _key(problem, C):
    violation = problem.violation(C)
    return (violation if violation > FEASIBILITY_TOL else 0.0), problem.value(C)
