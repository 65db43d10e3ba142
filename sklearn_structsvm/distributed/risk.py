"""A risk whose examples are in remote shards, with the methods that solvers call.

Each call sends a question to all shards, with at most a few vectors of the length of w,
and receives one sum: a value, a plane, or the breakpoints near a line's minimum. Rows,
one for each example, stay in the shards. Here they are handles.
"""

from itertools import count
from weakref import WeakSet

import numpy as np

from sklearn_structsvm._utils.tolerances import SUM_ROUNDING
from sklearn_structsvm.distributed.merging import search_cut, search_line
from sklearn_structsvm.distributed.shard import Question, Recipe


class LostRows(RuntimeError):
    """Raised if rows were lost with a worker and cannot be recomputed."""


class Handle:
    """Rows of all shards: their origin, and what is known about them here.

    As long as a handle exists, the shards keep its rows. `origin` can recompute them.
    """

    def __init__(self, origin):
        self.origin = origin
        self.key = origin.key
        # For coefficients: their products with scores, by key, and with X.
        self.products, self.gradient = {}, None

    def __sub__(self, other):
        return Handle(Origin("difference", (self.origin, other.origin)))


class Origin:
    """How rows are computed, repeatedly if necessary.

    `kind`, `number`, `vector`: see `Recipe`. `shortcut` (Handle, Handle, float) or
    None: rows that the shards still have, and a number, from which these rows are
    cheaper to compute: Z, along and step for scores. It is dropped once the rows are
    computed. `done`: whether all shards have computed the rows.
    """

    keys = count()

    def __init__(self, kind, parents=(), number=0.0, vector=None, shortcut=None):
        self.key = next(self.keys)
        self.kind, self.parents, self.number = kind, parents, number
        self.vector, self.shortcut = vector, shortcut
        self.done = False

    def add_to(self, recipes, whole):
        """Add the recipes of these rows and of the rows from which they are computed.

        With `whole`, a shard without any rows can follow them. Otherwise a shard must
        have answered all previous questions.
        """
        if self.key in recipes:
            return
        parents, number, kind, vector = self.parents, self.number, self.kind, None
        if kind == "linear":
            if not self.done and self.shortcut is not None and not whole:
                first, second, number = self.shortcut
                kind, parents = "moved", (first.origin, second.origin)
            elif whole or not self.done:
                vector = self.vector
        keys = tuple(None if parent is None else parent.key for parent in parents)
        recipes[self.key] = Recipe(kind, keys, number, vector)
        for parent in parents:
            if parent is not None:
                parent.add_to(recipes, whole)

    def finish(self):
        """All shards have the rows now."""
        self.done, self.shortcut = True, None
        if self.kind == "mean":
            # The rows of the previous mean no longer exist, so these cannot be
            # recomputed.
            self.parents = ()


class DistributedRisk:
    """The weighted sum of the shards' risks, with the methods that solvers call.

    Scores and coefficients are handles, and `out` is ignored. The part of a lost worker
    is recomputed from its data, and rows from the vectors that are kept here.

    `ask`: `Question` -> the merged `RiskReply` of all shards, None if one of them is
    None. `kind`: the class of the shards' risks.
    """

    # Its rows are not in this process.
    is_remote = True
    # The sizes of the terms of gradients are not known.
    mean_sizes = 0.0
    # Each worker has its own.
    n_threads = 1

    def __init__(self, ask, *, n_samples, n_scores, n_weights, n_entries, kind):
        self.ask = ask
        self.n_samples, self.n_scores = n_samples, n_scores
        self.n_weights, self.n_entries = n_weights, n_entries
        self.smooth = kind.smooth
        self.live = WeakSet()

    def empty(self):
        """Rows need no memory here."""
        return None

    def scores(self, w, out=None):
        """Z = X W, computed on demand."""
        return self._handle("linear", vector=np.array(w, dtype=np.float64))

    def random_scores(self, seed=0):
        """Scores drawn from [0, 1), the same however the examples are divided."""
        return self._handle("random", number=seed)

    def moved(self, Z, along, step, out=None):
        """Z + step · along."""
        vector = Z.origin.vector + step * along.origin.vector
        return self._handle("linear", vector=vector, shortcut=(Z, along, step))

    def mixed(self, A, B, share, out=None):
        """A + share · (B - A)."""
        kept = A, B, share
        return self._handle("mean", (A.origin, B.origin), share, shortcut=kept)

    def _handle(self, *args, **kwargs):
        handle = Handle(Origin(*args, **kwargs))
        self.live.add(handle)
        return handle

    def _ask(self, name, handles, *arguments):
        """The merged sums, lists and range from the shards."""
        self.live.update(handles)
        live = tuple(handle.key for handle in self.live)
        for whole in (False, True):
            recipes = {}
            for handle in handles:
                handle.origin.add_to(recipes, whole)
            reply = self.ask(Question(name, arguments, recipes, live))
            if reply is not None:
                break
        else:
            raise LostRows("A worker died with rows that cannot be computed again.")
        for handle in handles:
            handle.origin.finish()
        return reply

    def value(self, Z):
        """R at the scores Z."""
        (value,) = self._ask("value", [Z], Z.key).sums
        return float(value)

    def plane(self, Z, along=None, rtol=SUM_ROUNDING, out=None):
        """A plane below R that touches it at Z: its coefficients and offset.

        Without a direction the plane will be used, so the answer has its gradient, too.
        """
        toward = None if along is None else along.origin
        B = self._handle("plane", (Z.origin, toward), rtol)
        handles = [Z] if along is None else [Z, along]
        offset, height, slope, gradient = self._ask(
            "plane",
            handles,
            B.key,
            Z.key,
            None if along is None else along.key,
            rtol,
            along is None,
        ).sums
        B.origin.finish()
        B.products[Z.key] = float(height)
        if along is None:
            B.gradient = gradient
        else:
            B.products[along.key] = float(slope)
        return B, float(offset)

    def gradient(self, B, out=None):
        """Xᵀ B, flat."""
        if B.gradient is None:
            (B.gradient,) = self._ask("gradient", [B], B.key).sums
        return B.gradient

    def dot(self, B, Z):
        """⟨B, Z⟩."""
        if Z.key not in B.products:
            (product,) = self._ask("dot", [B, Z], B.key, Z.key).sums
            B.products[Z.key] = float(product)
        return B.products[Z.key]

    def dual_values(self, pairs):
        """Dual values of pairs (coefficients, scale), -inf if a mean was lost."""
        try:
            arguments = [(B.key, scale) for B, scale in pairs]
            values = self._ask("dual_values", [B for B, _ in pairs], arguments).sums
        except LostRows:
            if len(pairs) == 1:
                return [-np.inf]
            return [value for pair in pairs for value in self.dual_values([pair])]
        return [float(value) for value in values]

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf, start=1.0):
        """The step that minimizes λ/2 ||w + η d||² + R(w + η d), exactly.

        The minimum of the sum lies between the smallest and largest of the terms' minima,
        which the shards find first. Then they list the breakpoints in between, or as many
        buckets of them as are needed to narrow the search.
        """
        if self.smooth:
            raise NotImplementedError(
                "A smooth risk has no exact line search; use one for smooth functions."
            )
        rows = [Z, along], Z.key, along.key
        lower, upper = self._ask("minima", *rows, wp, pp, lam, largest, start).span

        def pieces(lower, upper, resolution):
            reply = self._ask("pieces", *rows, lower, upper, resolution)
            return *reply.sums, *reply.lists

        return search_line(pieces, lam * wp, lam * pp, lower, upper)

    def best_threshold(self, w):
        """The threshold of the scores of w for the fewest wrong labels."""
        Z = self.scores(w)

        def entries(intervals, resolution):
            reply = self._ask("entries", [Z], Z.key, intervals, resolution)
            return *reply.sums, *reply.lists

        return search_cut(entries)

    def dual_form(self):
        """Always raises: a solver of the dual needs a number for each example."""
        raise TypeError("The planes of each loss are not where the solver is.")
