"""A risk whose examples lie in shards elsewhere, as solvers call it.

Each call sends a question to all shards, with at most a few vectors of the length of w,
and brings one sum back: a value, a plane, the breakpoints near a line's minimum. Rows,
one for each example, stay with the shards; here they are handles.
"""

from itertools import count
from weakref import WeakSet

import numpy as np

from sklearn_structsvm._contract.risk import TIE_RTOL
from sklearn_structsvm.distributed.merging import search_cut, search_line
from sklearn_structsvm.distributed.shard import Question, Recipe


class LostRows(RuntimeError):
    """Rows that were kept by a lost worker alone, and cannot be made anew."""


class Handle:
    """Rows of all shards: what they are made from, and what is known of them here.

    While a handle lives, the shards keep its rows; `origin` is enough to make them anew.
    """

    def __init__(self, origin):
        self.origin = origin
        self.key = origin.key
        # Of coefficients: their products with scores, by key, and with X.
        self.products, self.gradient = {}, None

    def __sub__(self, other):
        return Handle(Origin("difference", (self.origin, other.origin)))


class Origin:
    """How rows are made, again and again.

    Attributes
    ----------
    key : int
    kind, number, vector
        See `Recipe`.
    parents : tuple of Origin or None
    shortcut : (Handle, Handle, float) or None
        Rows that the shards still have, and a number, from which they make these at less
        cost: Z, along and step for scores. Dropped once the rows are made.
    done : bool
        Whether all shards have made the rows.
    """

    keys = count()

    def __init__(self, kind, parents=(), number=0.0, vector=None, shortcut=None):
        self.key = next(self.keys)
        self.kind, self.parents, self.number = kind, parents, number
        self.vector, self.shortcut = vector, shortcut
        self.done = False

    def add_to(self, recipes, whole):
        """Add the recipes of these rows, and of the rows they are made from.

        With `whole`, a shard without any rows can follow them; otherwise a shard must
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
            # The rows of the previous mean no longer exist, so these cannot be remade.
            self.parents = ()


class DistributedRisk:
    """The sum of the shards' risks by their shares, with the methods that solvers call.

    Scores and coefficients are a `Handle` each, and `out` is ignored. The part of a
    worker that was lost is made anew from its data; rows are made anew from the vectors
    that are kept here.

    Parameters
    ----------
    ask : callable
        `Question` -> the merged `RiskReply` of all shards, None if one of them is None.
    n_samples, n_scores, n_weights, n_entries : int
    kind : type
        The class of the shards' risks.
    """

    # Its rows are not here.
    is_remote = True

    def __init__(self, ask, *, n_samples, n_scores, n_weights, n_entries, kind):
        self.ask = ask
        self.n_samples, self.n_scores = n_samples, n_scores
        self.n_weights, self.n_entries = n_weights, n_entries
        self.smooth = kind.smooth
        self.live = WeakSet()

    def empty(self):
        """Rows need no room here."""
        return None

    def scores(self, w, out=None):
        """Z = X W, when they are needed."""
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
        """The sums, lists and span that the shards answer."""
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
            raise LostRows("Rows that cannot be made anew were lost with a worker.")
        for handle in handles:
            handle.origin.finish()
        return reply

    def value(self, Z):
        """R at the scores Z."""
        (value,) = self._ask("value", [Z], Z.key).sums
        return float(value)

    def plane(self, Z, along=None, rtol=TIE_RTOL, out=None):
        """A plane below R that touches it at Z: its coefficients and offset.

        Without a direction it is a plane to be used, and the question brings its gradient
        back as well.
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
        """Dual value of each pair (coefficients, scale); -inf if a mean was lost."""
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

        The sum's minimum is between the least and the largest of its terms' own minima,
        which the shards search for first. Then they list the breakpoints in between, or
        as many buckets of them as will tell where to look more closely.
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
        """Refused: a solver of the dual has a number for each example.

        Raises
        ------
        TypeError
        """
        raise TypeError("The planes of each loss are not where the solver is.")
