"""From bags or delayed parts of examples to a solver's problem.

Examples are checked where they are. They return their number, weights and labels, and one
example for fitting the structure.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_structsvm._utils.labels import unique
from sklearn_structsvm._utils.weights import check_weights, total_weight
from sklearn_structsvm.distributed.dask_workers import (
    import_dask,
    n_places,
    parts_of,
    start_workers,
)
from sklearn_structsvm.distributed.examples import Examples
from sklearn_structsvm.distributed.problem import RemoteProblem
from sklearn_structsvm.structures.answers import checked_data, fit_to_checked


@dataclass
class CheckedItems:
    """The examples of a part, with their weights and a structure fitted to them alone."""

    X: list
    y: list
    weights: np.ndarray
    fitted: object
    origin: str = ""


@dataclass
class SequenceSummary:
    """Facts of a part that are needed before the structure can be fitted.

    `n`, `total`: examples, and the sum of their weights. `labels`, `counts` or None:
    the distinct labels and their counts, for a structure with classes. `fitted`
    (Structure): fitted to the part alone. `first` (x, y) or None: its first example.
    `largest`: the largest absolute value of a feature.
    """

    n: int
    total: float
    labels: np.ndarray | None
    counts: np.ndarray | None
    fitted: object
    first: tuple | None
    largest: float = 0.0


def read_sequences(structure, X, y, sample_weight, **options):
    """The `RemoteProblem` of bags of as many parts, or of lists of delayed ones.

    `structure`: the unfitted structure, for examples that are not rows of a matrix.
    `X`, `y`, `sample_weight` (dask.bag.Bag or list of Delayed): the last may be None.
    `**options`: `classes` and `class_weight`, for a structure with classes.
    """
    parts = [parts_of(X, "X"), parts_of(y, "y")]
    parts.append(
        [None] * len(parts[0])
        if sample_weight is None
        else parts_of(sample_weight, "sample_weight")
    )
    if len({len(column) for column in parts}) > 1:
        raise ValueError(
            "X, y and sample_weight must have the same number of parts; got "
            f"{', '.join(str(len(column)) for column in parts)}."
        )
    rows = list(zip(*parts, strict=True))
    # Successive parts may be alike, so each worker gets parts from the whole range.
    n_groups = min(n_places(), len(rows))
    groups = [range(k, len(rows), n_groups) for k in range(n_groups)]
    prepare = import_dask().delayed(check_parts, pure=False)
    workers = start_workers(
        [
            prepare(
                list(group),
                *map(list, zip(*(rows[k] for k in group), strict=True)),
                structure,
                # Balanced class weights depend on all parts.
                options | {"class_weight": None} if options else {},
            )
            for group in groups
        ]
    )
    try:
        return _problem_of_parts(structure, workers, **options)
    except BaseException:
        workers.release()
        raise


def _problem_of_parts(structure, workers, classes=None, class_weight=None):
    """The problem of checked parts, from their summaries."""
    summaries = workers.collect(summarize)
    used = [s for s in summaries if s.n > 0]
    if not used:
        raise ValueError("X is empty: at least one example is needed.")
    workers.keep([s.n > 0 for s in summaries])
    total = total_weight(np.array([s.total for s in used]), "sample_weight")
    fitted = used[0].fitted
    if structure.has_classes:
        labels, places = unique(
            np.concatenate([s.labels for s in used]), "y", return_inverse=True
        )
        counts = np.bincount(places, np.concatenate([s.counts for s in used]))
        if isinstance(class_weight, str):
            shares = counts.sum() / (len(counts) * counts)
            class_weight = dict(zip(labels.tolist(), shares, strict=True))
        classes = labels if classes is None else classes
        first = ([item] for item in used[0].first)
        fitted = copy(structure)
        options = {"classes": classes, "class_weight": class_weight}
        fit_to_checked(fitted, *checked_data(structure, *first), **options)
    names = ["n_features_in_", "n_edge_features_"]
    if not structure.has_classes:
        names.append("n_weights_")
    for k, other in enumerate(used):
        for name in names:
            mine, theirs = (getattr(f, name, None) for f in (fitted, other.fitted))
            if mine != theirs:
                of_edges = " of edges" if "edge" in name else ""
                raise ValueError(
                    f"Parts of X differ: the first has {mine} features{of_edges}, but "
                    f"part {k} has {theirs}."
                )
    first = ([item] for item in used[0].first)
    return RemoteProblem(
        structure=fitted,
        total=total,
        workers=workers,
        sizes=[s.n for s in used],
        bind=partial(share_items, structure=fitted, total=total),
        example=checked_data(fitted, *first),
        largest=max(s.largest for s in used),
    )


def check_parts(numbers, Xs, ys, weights, structure, options):
    """The `CheckedItems` of some parts, with these numbers in errors."""
    items, labelings, all_weights = [], [], []
    for number, X, y, s in zip(numbers, Xs, ys, weights, strict=True):
        X, y = list(X), list(y)
        if len(X) != len(y):
            raise ValueError(
                f"Part {number} has {len(X)} examples in X, but {len(y)} in y."
            )
        s = None if s is None else np.asarray(list(s), dtype=np.float64)
        try:
            if X:
                all_weights.append(check_weights(s, len(X), may_vanish=True))
        except ValueError as error:
            raise ValueError(f"Part {number}: {error}") from error
        items += X
        labelings += y
    if not items:
        return CheckedItems([], [], np.empty(0), None)
    origin = f"part {', '.join(map(str, numbers))}, counted on from its start"
    try:
        X, y = checked_data(structure, items, labelings)
        X = structure._with_own_indices(X)
        kept = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        if not kept:
            return CheckedItems([], [], np.empty(0), None)
        X, y = [X[i] for i in kept], [y[i] for i in kept]
        fitted = copy(structure)
        fit_to_checked(fitted, X, y, **options)
    except ValueError as error:
        raise ValueError(f"In {origin}: {error}") from error
    return CheckedItems(X, y, np.concatenate(all_weights)[kept], fitted, origin)


def summarize(examples):
    """Summarize a part."""
    if not examples.X:
        return SequenceSummary(0, 0.0, None, None, None, None)
    labels = counts = None
    if examples.fitted.has_classes:
        joined = examples.fitted.joined_labels(examples.y)
        labels, counts = unique(joined, "y", return_counts=True)
    first = examples.X[0], examples.y[0]
    weights, fitted = examples.weights, examples.fitted
    largest = fitted._largest_feature(examples.X)
    return SequenceSummary(
        len(weights), weights.sum(), labels, counts, fitted, first, largest
    )


def share_items(checked, structure, total):
    """The `Examples` of checked items."""
    weights = checked.weights / total
    return Examples(structure, checked.X, checked.y, weights, checked.origin)
