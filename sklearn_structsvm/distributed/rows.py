"""From Dask collections of rows to a solver's problem.

Chunks of rows are checked where they are. They return their shape, their labels and the
label counts, which suffice to fit a structure. Then each part makes its risk, or its own
steps.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y, column_or_1d, validate_data

from sklearn_structsvm._utils.borders import refuse_masked
from sklearn_structsvm._utils.labels import encode, refuse_missing, unique
from sklearn_structsvm._utils.own_indices import with_own_indices
from sklearn_structsvm._utils.weights import check_weights, total_weight
from sklearn_structsvm.distributed.dask_workers import (
    import_dask,
    n_places,
    start_workers,
)
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.distributed.problem import RemoteProblem
from sklearn_structsvm.distributed.risk import DistributedRisk
from sklearn_structsvm.distributed.shard import ChunkRows, Shard
from sklearn_structsvm.structures.answers import fit_to_checked


@dataclass
class Chunk:
    """Checked rows. X is None if there are none."""

    X: object
    y: np.ndarray
    weights: np.ndarray | None


@dataclass
class RowSummary:
    """Facts of a chunk that are needed before its risk can be made.

    `largest`: the largest absolute value in X. `n_columns` or None: the number of
    columns of y, if it is 2-D. `labels`: the distinct labels (for an indicator, its
    distinct entries), in ascending order. `counts`, `weights`: the number of examples
    with each label, and the sum of their weights. For an indicator, the number of times
    each entry occurs, and one sum of weights per chunk.
    """

    n_samples: int
    n_features: int
    n_entries: int
    largest: float
    n_columns: int | None
    labels: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


class RemoteRows(RemoteProblem):
    """Chunks of rows, from which a risk can be made as well.

    `class_weights` or None: factors of the examples' weights, by class.
    """

    def __init__(self, *, class_weights, n_entries, **problem):
        super().__init__(**problem)
        self.class_weights, self.n_entries = class_weights, n_entries

    def make_risk(self, kind, options):
        """The risk of all shards, which make theirs at the first question."""
        structure = self.structure
        classes = None if structure.multi_label else structure.classes_
        whole = kind, options, structure.n_weights_, classes, self.class_weights
        first = np.cumsum([0, *self.sizes]).tolist()
        workers = self._map(make_shard, [(*whole, self.total, at) for at in first[:-1]])
        n_features = structure.n_features_in_ + (structure.bias_ != 0.0)
        self.risk = DistributedRisk(
            workers.ask,
            kind=kind,
            n_samples=first[-1],
            n_scores=structure.n_weights_ // n_features,
            n_weights=structure.n_weights_,
            n_entries=self.n_entries,
        )
        return self.risk

    def with_threshold(self, weights):
        """The structure with the best threshold for the scores."""
        structure = copy(self.structure)
        structure.threshold_ = self.risk.best_threshold(weights)
        return structure


def read_rows(estimator, X, y, sample_weight, structure=None):
    """The `RemoteRows` of Dask collections with the same row chunks.

    `estimator` (StructuredClassifier): its `n_features_in_` (and `feature_names_in_`)
    are set. `X`, `y`, `sample_weight` (dask.array or Dask DataFrame): the last may be
    None. `structure`: the unfitted structure. None lets the estimator infer it.
    """
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
    first = np.cumsum([0] + [len(group) for group in groups])[:-1].tolist()
    workers = start_workers(
        [
            prepare(at, *map(list, zip(*group, strict=True)), name)
            for at, group in zip(first, groups, strict=True)
        ]
    )
    try:
        return _problem_of_chunks(estimator, workers, structure)
    except BaseException:
        workers.release()
        raise


def _problem_of_chunks(estimator, workers, structure):
    """The problem of checked chunks, from their summaries."""
    groups = workers.collect(summarize_chunks)
    found = _merged([summary for group in groups for summary in group])
    if found.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X says that it has {estimator.n_features_in_} features, but its chunks "
            f"have {found.n_features}."
        )
    labels, no_rows = _checked_labels(found), np.empty((0, found.n_features))
    if structure is None:
        classes = estimator._options.classes
        structure = estimator._infer_structure(False, labels, classes)
    # Balanced class weights depend on the counts of all chunks.
    balanced = estimator.class_weight == "balanced" and found.n_columns is None
    fit_to_checked(
        structure,
        no_rows,
        labels,
        classes=estimator._options.classes,
        class_weight=None if balanced else estimator.class_weight,
        bias=estimator._options.intercept_scaling if estimator.fit_intercept else 0.0,
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
    sizes = [sum(summary.n_samples for summary in group) for group in groups]
    workers.keep([size > 0 for size in sizes])
    y = structure.classes_[:1]
    if structure.multi_label:
        y = np.zeros((1, len(structure.classes_)), dtype=int)
    return RemoteRows(
        structure=structure,
        total=total,
        workers=workers,
        sizes=[size for size in sizes if size > 0],
        bind=partial(
            join_chunks, structure=structure, class_weights=class_weights, total=total
        ),
        example=(np.zeros((1, found.n_features)), y),
        # The constant feature counts as well.
        largest=max(found.largest, structure.bias_),
        class_weights=class_weights,
        n_entries=found.n_entries,
    )


def _set_features(estimator, X):
    """Number and names of the features, from the metadata of X."""
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
    """Chunks of a per-row collection, or a list of None if it is None."""
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
    """Groups of successive chunks, one for each available thread."""
    n_groups = min(n_places(), len(chunks))
    bounds = [j * len(chunks) // n_groups for j in range(n_groups + 1)]
    pairs = zip(bounds[:-1], bounds[1:], strict=True)
    return [chunks[begin:end] for begin, end in pairs]


def check_chunks(first, Xs, ys, weights, name):
    """A list of `Chunk`. `first` is the number of the first one, for errors."""
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
        refuse_masked("X", X)
        refuse_missing(y)
        X, y = check_X_y(
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            multi_output=True,
            estimator=name,
        )
        X = with_own_indices(X)
        y = y.toarray() if sparse.issparse(y) else y
        if y.dtype.kind == "f":
            check_classification_targets(y)
        if weights is not None:
            weights = check_weights(column_or_1d(weights), n, may_vanish=True)
    except ValueError as error:
        raise ValueError(f"Chunk {number} of the Dask collection: {error}") from error
    return Chunk(X, y, weights)


def summarize_chunks(chunks):
    return [_summary(chunk) for chunk in chunks]


def _summary(chunk):
    X, y, weights = chunk.X, chunk.y, chunk.weights
    n = len(y)
    if n == 0:
        return RowSummary(0, 0, 0, 0.0, None, y, np.empty(0, dtype=int), np.empty(0))
    values = X.data if sparse.issparse(X) else X
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    columns = y.shape[1] if y.ndim == 2 and y.shape[1] > 1 else None
    labels, places, counts = unique(y, "y", return_inverse=True, return_counts=True)
    if columns is not None:
        sums = np.array([n if weights is None else weights.sum()], dtype=np.float64)
    else:
        sums = np.bincount(places.ravel(), weights, len(labels)).astype(np.float64)
    shape = n, X.shape[1], values.size, float(largest)
    return RowSummary(*shape, columns, labels, counts, sums)


def _merged(summaries):
    """One summary for all nonempty chunks."""
    used = [summary for summary in summaries if summary.n_samples > 0]
    if not used:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    for what in ("n_features", "n_columns"):
        values = [getattr(summary, what) for summary in used]
        other = next((j for j, v in enumerate(values) if v != values[0]), None)
        if other is not None:
            raise ValueError(
                f"The chunks of X differ: {what} is {values[0]} in the first one, and "
                f"{values[other]} in another."
            )
    first = used[0]
    every = np.concatenate([summary.labels for summary in used])
    labels, places = unique(every, "y", return_inverse=True)
    counts = np.concatenate([summary.counts for summary in used])
    weights = np.concatenate([summary.weights for summary in used])
    if first.n_columns is None:
        weights = np.bincount(places, weights, len(labels))
    return RowSummary(
        sum(summary.n_samples for summary in used),
        first.n_features,
        sum(summary.n_entries for summary in used),
        # Unlike that of Python, NumPy's maximum is NaN if one of them is.
        float(np.max([summary.largest for summary in used])),
        first.n_columns,
        labels,
        np.bincount(places, counts, len(labels)).astype(int),
        weights,
    )


def _checked_labels(found):
    """A few labels, or rows of an indicator, of the same type as y."""
    # Each occurs twice, because targets that are nearly all different cause a warning.
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
            found.append(ChunkRows(chunk.X, y, weights, first, share))
        first += len(y)
    return Shard(kind, options, n_weights, found)


def _example_weights(chunk, classes, class_weights):
    """s_i with the class weights."""
    weights = np.ones(len(chunk.y)) if chunk.weights is None else chunk.weights
    if class_weights is None:
        return weights
    return weights * class_weights[encode(chunk.y.ravel(), classes)]


def join_chunks(chunks, structure, class_weights, total):
    """The `Examples` of checked chunks."""
    chunks = [chunk for chunk in chunks if len(chunk.y)]
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
    return Examples(structure, X, y, weights / total)
