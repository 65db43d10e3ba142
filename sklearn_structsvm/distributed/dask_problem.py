"""From Dask collections to the problem that a solver knows, without gathering them.

Chunks of rows are checked where they are. What comes back is their shape, their labels
and how often each occurs: enough to fit a structure. Then each shard makes its risk.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y, column_or_1d, validate_data

from sklearn_structsvm._utils.labels import encode, refuse_missing, unique
from sklearn_structsvm._utils.weights import (
    check_weights,
    normalised_lambda,
    total_weight,
)
from sklearn_structsvm.distributed.blocks import BlockShard, DistributedBlocks
from sklearn_structsvm.distributed.dask_workers import (
    import_dask,
    n_places,
    start_workers,
)
from sklearn_structsvm.distributed.risk import DistributedRisk
from sklearn_structsvm.distributed.shard import Rows, Shard
from sklearn_structsvm.distributed.sums import DistributedSums, SumShard


@dataclass
class Chunk:
    """Some rows as they were checked; X is None where there are none."""

    X: object
    y: np.ndarray
    weights: np.ndarray | None


@dataclass
class Survey:
    """What there is to know of a chunk before its risk can be made.

    Attributes
    ----------
    n_samples, n_features, n_entries : int
    largest : float
        The largest absolute value in X.
    n_columns : int or None
        Of y, where it is 2-D.
    labels : ndarray
        The distinct ones, in ascending order; of an indicator its distinct entries.
    counts, weights : ndarray
        How many examples have each, and the sum of their weights. Of an indicator, whose
        entries are no examples, the one number of `weights` is for all.
    """

    n_samples: int
    n_features: int
    n_entries: int
    largest: float
    n_columns: int | None
    labels: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


class DaskProblem:
    """Training data in shards, bound to a fitted structure, as `Problem` is for arrays.

    Attributes
    ----------
    structure : Structure
    total : float
        Σs.
    """

    def __init__(self, structure, workers, surveys, class_weights, total):
        self.structure, self.total = structure, total
        self.chunks, self.surveys = workers, surveys
        self.class_weights = class_weights
        # The checked chunks, and what was made of them.
        self.held = [workers]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.release()

    def lam(self, C):
        return normalised_lambda(C, self.total)

    def _map(self, function, arguments):
        workers = self.chunks.map(function, arguments)
        self.held.append(workers)
        return workers

    def make_risk(self, kind, options):
        """The risk of all shards; they make theirs when it is first asked."""
        structure = self.structure
        classes = None if structure.multi_label else structure.classes_
        whole = kind, options, structure.n_weights_, classes, self.class_weights
        arguments, first = [], 0
        for group in self.surveys:
            arguments.append((*whole, self.total, first))
            first += sum(survey.n_samples for survey in group)
        n_features = structure.n_features_in_ + (structure.bias_ != 0.0)
        self.risk = DistributedRisk(
            self._map(make_shard, arguments).ask,
            kind=kind,
            n_samples=first,
            n_scores=structure.n_weights_ // n_features,
            n_weights=structure.n_weights_,
            n_entries=sum(s.n_entries for group in self.surveys for s in group),
        )
        return self.risk

    def make_oracle(self):
        """That of an example of zeros."""
        structure = self.structure
        y = structure.classes_[:1]
        if structure.multi_label:
            y = np.zeros((1, len(structure.classes_)), dtype=int)
        return structure.make_oracle(np.zeros((1, structure.n_features_in_)), y)

    def make_iterate(self, lam, steps, seed):
        """The iterate whose parts are with the workers: a group of chunks each."""
        makers = [
            partial(BlockShard, steps=steps, seed=(seed, k))
            for k in range(len(self.surveys))
        ]
        workers = self._make_shards(makers)
        sizes = self._sizes()
        n_parts = sum(size > 0 for size in sizes)
        n_weights = self.structure.n_weights_
        return DistributedBlocks(
            workers, sum(sizes), n_parts, n_weights, lam, steps.bounds
        )

    def make_sums(self):
        """The log-loss of all parts."""
        workers = self._make_shards([SumShard] * len(self.surveys))
        return DistributedSums(workers, sum(self._sizes()), self.structure.n_weights_)

    def _sizes(self):
        return [sum(s.n_samples for s in group) for group in self.surveys]

    def _make_shards(self, makers):
        whole = self.structure, self.class_weights, self.total
        workers = self._map(make_block_shard, [(*whole, make) for make in makers])
        workers.keep([size > 0 for size in self._sizes()])
        return workers

    def largest_feature(self):
        """The largest absolute value in X, or the constant feature beside it."""
        largest = (survey.largest for group in self.surveys for survey in group)
        return max(self.structure.bias_, *largest)

    def release(self):
        """Let the workers forget the chunks and the shards."""
        for workers in self.held:
            workers.release()

    def with_threshold(self, weights):
        """The structure with the threshold that suits the scores best."""
        structure = copy(self.structure)
        structure.threshold_ = self.risk.best_threshold(weights)
        return structure


def make_dask_problem(estimator, X, y, sample_weight, read):
    """As `make_problem`, of Dask collections chunked by rows in the same way."""
    name = type(estimator).__name__
    _set_features(estimator, X)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        column_or_1d(np.empty((0, 1)), warn=True)
    chunks = zip(
        _chunks(X, "X"),
        _as_many(y, "y", X),
        _as_many(sample_weight, "sample_weight", X),
        strict=True,
    )
    groups = _grouped(list(chunks))
    dask = import_dask()
    prepare = dask.delayed(check_chunks, pure=False)
    first = np.cumsum([0] + [len(group) for group in groups])
    workers = start_workers(
        [
            prepare(int(at), *(list(column) for column in zip(*group, strict=True)), name)
            for at, group in zip(first, groups, strict=False)
        ]
    )
    try:
        return _fit_structure(estimator, workers, read)
    except BaseException:
        workers.release()
        raise


def _fit_structure(estimator, workers, read):
    """The problem of checked chunks, by what they say of themselves."""
    surveys = workers.collect(survey_chunks)
    found = _merged([survey for group in surveys for survey in group])
    if found.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X says that it has {estimator.n_features_in_} features, but its chunks "
            f"have {found.n_features}."
        )
    labels = _checked_labels(found)
    structure = read(np.empty((0, found.n_features)), labels, estimator.classes)
    # Only the counts tell what balances the classes.
    balanced = estimator.class_weight == "balanced" and found.n_columns is None
    structure.fit(
        np.empty((0, found.n_features)),
        labels,
        classes=estimator.classes,
        class_weight=None if balanced else estimator.class_weight,
        bias=estimator.intercept_scaling if estimator.fit_intercept else 0.0,
    )
    factors, class_weights = 1.0, None
    if not structure.multi_label and estimator.class_weight is not None:
        seen = encode(found.labels, structure.classes_)
        if balanced:
            class_weights = np.ones(len(structure.classes_))
            mean_count = found.counts.sum() / len(found.labels)
            class_weights[seen] = mean_count / found.counts
        else:
            class_weights = structure.example_weights(structure.classes_)
        factors = class_weights[seen]
    with np.errstate(over="ignore", invalid="ignore"):
        weights = found.weights * factors
    total = total_weight(weights, "sample_weight (times class_weight)")
    return DaskProblem(structure, workers, surveys, class_weights, total)


def _set_features(estimator, X):
    """Number and names of the features, from what X says of itself."""
    if hasattr(X, "divisions"):
        like = X._meta
    elif hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must be a 2-D collection; got {X.ndim} dimension(s).")
        like = np.empty((0, X.shape[1]))
    else:
        raise TypeError(
            f"X must be a dask.array or a Dask DataFrame; got {type(X).__name__}. Either "
            "all of X, y and sample_weight must be Dask collections, or none."
        )
    validate_data(estimator, like, skip_check_array=True)


def _chunks(data, name):
    """One delayed object for each chunk of rows."""
    if hasattr(data, "chunks"):
        if data.ndim == 2 and data.numblocks[1] > 1:
            raise ValueError(
                f"{name} must be chunked by rows alone: use {name}.rechunk({{1: -1}})."
            )
        return list(data.to_delayed().ravel())
    if hasattr(data, "divisions"):
        return list(data.to_delayed())
    raise TypeError(
        f"{name} must be a Dask collection, because X is one; got {type(data).__name__}. "
        "Use dask.array.from_array with the row chunks of X."
    )


def _as_many(data, name, X):
    """The chunks of what has one item for each row of X; None for each of None."""
    n_chunks = X.npartitions
    if data is None and name == "sample_weight":
        return [None] * n_chunks
    chunks = _chunks(data, name)
    rows = [getattr(d, "chunks", ((np.nan,),))[0] for d in (X, data)]
    known = not any(np.isnan(rows[0] + rows[1]))
    if len(chunks) != n_chunks or (known and rows[0] != rows[1]):
        raise ValueError(
            f"{name} must have the same row chunks as X: X has {n_chunks} chunk(s) of "
            f"{_sizes(rows[0])} rows, and {name} {len(chunks)} of {_sizes(rows[1])}."
        )
    return chunks


def _sizes(rows):
    """Chunk sizes in a few words."""
    if np.isnan(rows).any():
        return "unknown numbers of"
    return ", ".join(str(n) for n in rows[:5]) + (", ..." if len(rows) > 5 else "")


def _grouped(chunks):
    """Chunks that follow each other, as many groups as there are threads to serve."""
    n_groups = min(n_places(), len(chunks))
    bounds = [j * len(chunks) // n_groups for j in range(n_groups + 1)]
    pairs = zip(bounds[:-1], bounds[1:], strict=True)
    return [chunks[begin:end] for begin, end in pairs]


def check_chunks(first, Xs, ys, weights, name):
    """A list of `Chunk`; `first` is the number of the first one, for errors."""
    rows = zip(Xs, ys, weights, strict=True)
    return [_check_chunk(first + j, *row, name) for j, row in enumerate(rows)]


def _check_chunk(number, X, y, weights, name):
    n = X.shape[0]
    for what, items in (("y", y), ("sample_weight", weights)):
        if items is not None and items.shape[0] != n:
            raise ValueError(
                f"{what} must have the same row chunks as X: in chunk {number}, X has "
                f"{n} rows, and {what} {items.shape[0]}."
            )
    if n == 0:
        return Chunk(None, np.empty(0), None)
    try:
        refuse_missing(y)
        X, y = check_X_y(
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            multi_output=True,
            estimator=name,
        )
        y = y.toarray() if sparse.issparse(y) else y
        if y.dtype.kind == "f":
            check_classification_targets(y)
        if weights is not None:
            weights = check_weights(column_or_1d(weights), n, may_vanish=True)
    except ValueError as error:
        raise ValueError(f"Chunk {number} of the Dask collection: {error}") from error
    return Chunk(X, y, weights)


def survey_chunks(chunks):
    return [_survey(chunk) for chunk in chunks]


def _survey(chunk):
    X, y, weights = chunk.X, chunk.y, chunk.weights
    n = len(y)
    if n == 0:
        return Survey(0, 0, 0, 0.0, None, y, np.empty(0, dtype=int), np.empty(0))
    values = X.data if sparse.issparse(X) else X
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    columns = y.shape[1] if y.ndim == 2 and y.shape[1] > 1 else None
    labels, places, counts = unique(y, "y", return_inverse=True, return_counts=True)
    if columns is not None:
        sums = np.array([n if weights is None else weights.sum()], dtype=np.float64)
    else:
        sums = np.bincount(places.ravel(), weights, len(labels)).astype(np.float64)
    shape = n, X.shape[1], values.size, float(largest)
    return Survey(*shape, columns, labels, counts, sums)


def _merged(surveys):
    """One survey for all chunks, the empty ones left out."""
    used = [survey for survey in surveys if survey.n_samples > 0]
    if not used:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    for what in ("n_features", "n_columns"):
        values = [getattr(survey, what) for survey in used]
        other = next((j for j, v in enumerate(values) if v != values[0]), None)
        if other is not None:
            raise ValueError(
                f"The chunks of X differ: {what} is {values[0]} in the first one, and "
                f"{values[other]} in another."
            )
    first = used[0]
    every = np.concatenate([survey.labels for survey in used])
    labels, places = unique(every, "y", return_inverse=True)
    counts = np.concatenate([survey.counts for survey in used])
    weights = np.concatenate([survey.weights for survey in used])
    if first.n_columns is None:
        weights = np.bincount(places, weights, len(labels))
    return Survey(
        sum(survey.n_samples for survey in used),
        first.n_features,
        sum(survey.n_entries for survey in used),
        max(survey.largest for survey in used),
        first.n_columns,
        labels,
        np.bincount(places, counts, len(labels)).astype(int),
        weights,
    )


def _checked_labels(found):
    """A few labels, or rows of an indicator, that are of the same kind as all of y."""
    # Twice each, as targets that are nearly all different are warned of.
    labels = np.repeat(found.labels, 2)
    if found.n_columns is not None:
        labels = np.repeat(labels[:, np.newaxis], found.n_columns, axis=1)
    check_classification_targets(labels)
    return labels


def make_shard(chunks, kind, options, n_weights, classes, class_weights, total, first):
    """The `Shard` of checked chunks; `first` is the place of its first example."""
    found = []
    for chunk in chunks:
        y = chunk.y if classes is None else encode(chunk.y.ravel(), classes)
        weights = _example_weights(chunk, classes, class_weights)
        if weights.any():
            share = weights.sum() / total
            found.append(Rows(chunk.X, y, weights, first, share))
        first += len(y)
    return Shard(kind, options, n_weights, found)


def _example_weights(chunk, classes, class_weights):
    """s_i with the class weights."""
    weights = np.ones(len(chunk.y)) if chunk.weights is None else chunk.weights
    if class_weights is None:
        return weights
    return weights * class_weights[encode(chunk.y.ravel(), classes)]


def make_block_shard(chunks, structure, class_weights, total, make):
    """What is made of checked chunks, which are put together; None of no rows."""
    chunks = [chunk for chunk in chunks if len(chunk.y)]
    if not chunks:
        return None
    X, y = chunks[0].X, np.concatenate([chunk.y for chunk in chunks])
    if len(chunks) > 1:
        join = np.concatenate
        if sparse.issparse(X):
            join = partial(sparse.vstack, format="csr")
        X = join([chunk.X for chunk in chunks])
    if not structure.multi_label:
        y = y.ravel()
    weights = np.concatenate(
        [_example_weights(chunk, structure.classes_, class_weights) for chunk in chunks]
    )
    return make(structure, X, y, weights / total)
