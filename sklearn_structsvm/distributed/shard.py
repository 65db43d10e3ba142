"""A shard of a risk, on the worker that has its rows.

Scores and coefficients have a row for each example. These rows stay in the shard. The
master only knows how they were computed. They are a cache: a worker that replaces a lost
one recomputes them.
"""

from dataclasses import dataclass, field

import numpy as np

from sklearn_structsvm.distributed.merging import RiskReply, make_buckets, merge_equal


class LostShard(LookupError):
    """Raised if rows are not cached and cannot be computed from the recipes sent."""


@dataclass(frozen=True)
class Recipe:
    """How rows are computed.

    `kind` ({"linear", "random", "moved", "plane", "difference", "mean"}): scores of a
    vector, Z + step · along, coefficients of a plane, A - B, or A + share (B - A).
    `parents`: keys of the rows from which they are computed. `number`: step, share,
    tolerance or seed. `vector`: the vector of "linear", or None if the shard should
    already have the rows.
    """

    kind: str
    parents: tuple = ()
    number: float = 0.0
    vector: np.ndarray | None = None


@dataclass(frozen=True)
class Question:
    """A question to all shards.

    `name`: a method of `Shard`. `recipes` (dict of Recipe): recipes by key, for all
    rows in the arguments. `live`: keys of the rows to keep.
    """

    name: str
    arguments: tuple
    recipes: dict = field(default_factory=dict)
    live: tuple = ()

    @property
    def nbytes(self):
        vectors = (recipe.vector for recipe in self.recipes.values())
        return sum(v.nbytes for v in vectors if v is not None)


@dataclass
class ChunkRows:
    """Examples of one chunk of the data: `y` encoded, weights that are not all zero.

    `first` is the index of the first one among all examples, and `share` their part of
    the total weight.
    """

    X: object
    y: np.ndarray
    weights: np.ndarray
    first: int
    share: float


class Shard:
    """The risks of some chunks, whose weighted sum is a part of the risk.

    `kind`, `options`: the class of the risks, and their other arguments.
    """

    def __init__(self, kind, options, n_weights, chunks):
        self.kind, self.options = kind, options
        self.n_weights, self.chunks = n_weights, chunks
        self._start()

    def _start(self):
        self.risks = [
            self.kind(chunk.X, chunk.y, chunk.weights, **self.options)
            for chunk in self.chunks
        ]
        self.shares = [chunk.share for chunk in self.chunks]
        self.rows, self.recipes = {}, {}
        self.kept_pieces = self.kept_entries = None

    def __getstate__(self):
        # Another worker recomputes the risks and rows.
        names = ("kind", "options", "n_weights", "chunks")
        return {name: vars(self)[name] for name in names}

    def __setstate__(self, state):
        vars(self).update(state)
        self._start()

    def __sizeof__(self):
        """The size of the data in bytes, by which a scheduler places tasks."""
        sizes = [object.__sizeof__(self)]
        for chunk in self.chunks:
            X = chunk.X
            arrays = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
            sizes += [a.nbytes for a in (*arrays, chunk.y, chunk.weights)]
        return sum(sizes)

    def answer(self, question):
        """The `RiskReply`, or None if rows cannot be computed from the recipes sent."""
        for key in self.rows.keys() - set(question.live):
            del self.rows[key]
        self.recipes = question.recipes
        try:
            return getattr(self, question.name)(*question.arguments)
        except LostShard:
            return None

    def find(self, key):
        """A list of rows, one array per chunk, or None for each chunk without a key."""
        if key is None:
            return [None] * len(self.risks)
        if key not in self.rows:
            self.rows[key] = self._make(self.recipes[key])
        return self.rows[key]

    def _make(self, recipe):
        if recipe.kind == "linear":
            if recipe.vector is None:
                raise LostShard
            # Arrays that Dask has sent may be unaligned.
            vector = np.require(recipe.vector, requirements="A")
            return [risk.scores(vector) for risk in self.risks]
        if recipe.kind == "random":
            return [
                risk.random_scores(int(recipe.number), chunk.first)
                for risk, chunk in zip(self.risks, self.chunks, strict=True)
            ]
        if not recipe.parents:
            raise LostShard
        first, second = (self.find(key) for key in recipe.parents)
        pairs = list(zip(self.risks, first, second, strict=True))
        number = recipe.number
        if recipe.kind == "plane":
            return [risk.plane(Z, along, number)[0] for risk, Z, along in pairs]
        if recipe.kind == "mean":
            return [risk.mixed(A, B, number) for risk, A, B in pairs]
        step = number if recipe.kind == "moved" else -1.0
        return [risk.moved(A, B, step) for risk, A, B in pairs]

    def _each(self, *keys):
        """(share, risk, rows for each key), for each chunk."""
        rows = (self.find(key) for key in keys)
        return zip(self.shares, self.risks, *rows, strict=True)

    def value(self, at):
        """R at the scores."""
        total = sum(share * risk.value(Z) for share, risk, Z in self._each(at))
        return RiskReply(sums=(total,))

    def plane(self, target, at, along, rtol, with_gradient):
        """Offset, and products of the coefficients with both scores and with X."""
        offset = height = slope = 0.0
        gradient = np.zeros(self.n_weights if with_gradient else 0)
        found = []
        for share, risk, Z, d in self._each(at, along):
            B, rest = risk.plane(Z, d, rtol)
            found.append(B)
            offset += share * rest
            height += share * risk.dot(B, Z)
            if d is not None:
                slope += share * risk.dot(B, d)
            if with_gradient:
                gradient += share * risk.gradient(B)
        self.rows[target] = found
        return RiskReply(sums=(offset, height, slope, gradient))

    def gradient(self, coef):
        total = np.zeros(self.n_weights)
        for share, risk, B in self._each(coef):
            total += share * risk.gradient(B)
        return RiskReply(sums=(total,))

    def dot(self, coef, at):
        total = sum(share * risk.dot(B, Z) for share, risk, B, Z in self._each(coef, at))
        return RiskReply(sums=(total,))

    def dual_values(self, pairs):
        """Dual value of each pair (coefficients, scale)."""
        values = []
        for key, scale in pairs:
            terms = self._each(key)
            values.append(sum(s * risk.dual_value(B, scale) for s, risk, B in terms))
        return RiskReply(sums=tuple(values))

    def minima(self, at, along, wp, pp, lam, largest, start):
        """The range of the chunks' minima on a line, which contains that of the sum."""
        steps = [
            risk.line_search(Z, d, wp, pp, lam, largest=largest, start=start)
            for _, risk, Z, d in self._each(at, along)
        ]
        return RiskReply(span=(min(steps, default=np.inf), max(steps, default=-np.inf)))

    def pieces(self, at, along, lower, upper, resolution):
        """The losses' slopes to the right of `lower`, and breakpoints up to `upper`."""
        kept = self.kept_pieces
        if kept is None or kept[0] != (at, along) or lower < kept[1] or upper > kept[2]:
            found = self._segment(at, along, lower, upper)
            self.kept_pieces = kept = (at, along), lower, upper, *found
        rise, size, points, jumps = kept[3:]
        begin, end = np.searchsorted(points, [lower, upper], side="right")
        rise += jumps[:begin].sum()
        points, jumps = points[begin:end], jumps[begin:end]
        bucket = max(1, len(points) // resolution)
        return RiskReply(sums=(rise, size), lists=make_buckets(points, jumps, bucket))

    def _segment(self, at, along, lower, upper):
        rise = size = 0.0
        points, jumps = [np.empty(0)], [np.empty(0)]
        for share, risk, Z, d in self._each(at, along):
            starts, etas, slopes = risk.hinge.segment(
                Z, d, lower, upper, n_threads=risk.n_threads
            )
            p = share * risk.weights
            rise += p @ slopes[starts[:-1]]
            size += p @ np.abs(slopes[starts[:-1]])
            inner = np.ones(len(etas), dtype=bool)
            inner[starts[:-1]] = False
            inner = np.flatnonzero(inner)
            p = np.repeat(p, np.diff(starts) - 1)
            points.append(etas[inner])
            jumps.append(p * (slopes[inner] - slopes[inner - 1]))
        return rise, size, *merge_equal(np.concatenate(points), np.concatenate(jumps))

    def entries(self, at, intervals, resolution):
        """Scores of all labels in the intervals, with weights of present and absent."""
        if self.kept_entries is None or self.kept_entries[0] != at:
            self.kept_entries = at, *self._sort(at)
        _, values, masses, sums = self.kept_entries
        begins = np.searchsorted(values, intervals[:, 0], side="left")
        ends = np.searchsorted(values, intervals[:, 1], side="right")
        size = max(1, int((ends - begins).sum()) // resolution)
        buckets = [
            make_buckets(values[begin:end], masses[begin:end], size)
            for begin, end in zip(begins, ends, strict=True)
        ]
        owner = np.repeat(np.arange(len(buckets)), [len(b[0]) for b in buckets])
        lists = (np.concatenate(columns) for columns in zip(*buckets, strict=True))
        return RiskReply(sums=(sums[begins],), lists=(owner, *lists))

    def _sort(self, at):
        values, masses = [np.empty(0)], [np.empty((0, 2))]
        for share, risk, Z in self._each(at):
            used = risk.weights > 0.0
            p = share * risk.weights[used, np.newaxis]
            present = risk.present[used] != 0
            values.append(Z[used].ravel())
            pair = np.stack([p * present, p * ~present], axis=-1)
            masses.append(pair.reshape(-1, 2))
        values, masses = merge_equal(np.concatenate(values), np.concatenate(masses))
        return values, masses, np.concatenate([np.zeros((1, 2)), masses.cumsum(axis=0)])


def answer(shard, question):
    """`shard.answer`, as a function that can be sent."""
    return shard.answer(question)
