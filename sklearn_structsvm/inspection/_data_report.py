"""What there is in data before a fit: contents, what suits them, memory and time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._utils.arrays import refuse_swapped
from sklearn_structsvm._utils.columns import stored_values
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.labels import plain, split_weights
from sklearn_structsvm._utils.mistakes import require, with_plain_calls
from sklearn_structsvm._utils.sequences import kind_of_items, one_table
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tables import (
    column_names,
    columns_with_missing,
    identifiers,
    is_missing,
    listed_names,
    n_missing,
    odd_columns,
)
from sklearn_structsvm._utils.tags import LETTERS, OUTSIDE, first_fault, odd_tags
from sklearn_structsvm.confusion.binomial_tests import (
    RateSum,
    RateSums,
    allowance,
    chance,
)
from sklearn_structsvm.confusion.cells import positive_index
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.complex_metric.classifier import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.multilabel import (
    MultilabelMetricClassifier,
)
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.problem import bind_local
from sklearn_structsvm.estimators.remedies import scaling_words
from sklearn_structsvm.preprocessing import SequenceTransformer, WordFeatures
from sklearn_structsvm.solvers.batch.quasi_newton import lbfgs_memory
from sklearn_structsvm.solvers.blocks._crf import dual_memory
from sklearn_structsvm.structures import ChainStructure

# Of most fits here to their default `tol`, and of one core: orders of magnitude, from
# which the foreseen time is declared.
PASSES = 10, 100
PRODUCTS_PER_SECOND = 1e9
# The default of ComplexMetricClassifier, and the confidence that people ask for.
CALIBRATION_SHARE = 0.5
ERROR = 0.05


@dataclass(frozen=True)
class DataReport:
    """What :func:`check_data` found. ``print(report)`` shows it as text.

    Read more in the :ref:`User Guide <guide-check-data>`.

    `rows` are tuples (about, what, value), such as ("labels", "that occur once", "1").
    """

    rows: list[tuple[str, str, str]]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        return "\n".join(
            f"{about:{widths[0]}}  {what:{widths[1]}}  {value}"
            for about, what, value in self.rows
        )

    __repr__ = __str__

    def to_frame(self) -> Any:
        """The rows as a data frame of pandas, which must be installed.

        Returns
        -------
        frame : DataFrame
            With the columns "about", "what" and "value".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = require("pandas", "DataReport.to_frame")
        return pd.DataFrame(self.rows, columns=["about", "what", "value"])


@with_plain_calls
def check_data(
    X: Any, y: Any, *, sensitive_features: Any = None, pos_label: Any = None
) -> DataReport:
    """Describe your data, and suggest an estimator. Nothing is fitted.

    Read more in the :ref:`User Guide <guide-check-data>`.

    Parameters
    ----------
    X : array-like, CSR matrix or data frame of rows, or sequence of n items
        Items are arrays or CSR matrices of rows, lists of words or of dicts, or tuples
        (features, edges) or (features, parents).
    y : array-like of shape (n,) or (n, n_labels), or sequence of n label arrays
        The labels.
    sensitive_features : array-like of shape (n,) or (n, p), or data frame, default=None
        The group of each row.
    pos_label : label, default=None
        The label whose rates groups are compared by. None means 1 or True.

    Returns
    -------
    report : DataReport
        Items, labels, tag schemes, groups, columns and missing values; which estimator
        suits; the memory and, roughly, the time of its fit, both from declared counts;
        the smallest slack that constraints could be certified with; and the error that a
        fit would raise, if there is one.

    See Also
    --------
    sklearn_structsvm.structures.check_structure : Checks a structure of your own.

    Examples
    --------
    >>> from sklearn_structsvm.inspection import check_data
    >>> X = [["Ed", "left"], ["Mia", "Sund", "left", "Bern"]]
    >>> y = [["B-PER", "O"], ["B-PER", "I-PER", "O", "B-LOC"]]
    >>> print(check_data(X, y))  # doctest: +ELLIPSIS
    data    items                2 sequences of words, of 2 to 4 positions
    labels  counts               'B-PER' 2, 'O' 2, 'I-PER' 1, 'B-LOC' 1
    ...
    """
    rows: list[tuple[str, str, str]] = []

    def add(about, what, value):
        rows.append((about, what, str(value)))

    X = list(X) if isinstance(X, Iterator) else X
    refuse_swapped(X, y)
    if _is_table(X):
        kind, table = "rows", X
        add("data", "rows", f"{_num_samples(X)}, of {X.shape[1]} columns")
    else:
        kind, table = _read_items(X, add)
    schemes = _add_labels(y, kind, add)
    is_odd = _add_columns(table, add)
    model, transformer = _suiting(kind, schemes)
    if sensitive_features is not None:
        _add_groups(sensitive_features, y, pos_label, add)
    called, n_fits = repr(model), 1
    if transformer is not None:
        called = f"make_pipeline({transformer!r}, {model!r})"
    if kind == "rows":
        many = np.ndim(y) == 2 and np.shape(y)[1] > 1
        rules = (MultilabelMetricClassifier if many else ComplexMetricClassifier)()
        called, n_fits = f"{rules!r} or {called}", rules.cv + 1
    elif is_odd:
        called += ", or StackedStructureClassifier over a classifier of such rows"
    add("advice", "estimator", called)
    try:
        if transformer is not None:
            X = transformer.fit_transform(X)
        _add_costs(bind_local(model, X, y, warns=False), model, n_fits, add)
    except (TypeError, ValueError) as error:
        add("advice", "first mend", error)
    return DataReport(rows)


def _is_table(X):
    return len(getattr(X, "shape", ())) == 2


def _read_items(X, add):
    """What items are, and their rows in one table."""
    table, lengths, rests = one_table(X)
    kind = kind_of_items(rests)
    of = "sequences" if kind == "chain" else f"{kind}s"
    if isinstance(table, list):
        are_words = isinstance(table[0], str)
        of += " of words" if are_words else " of tokens"
        kind = "words" if are_words else "tokens"
    low, high = lengths[lengths > 0].min(), lengths.max()
    size = f"{low} to {high}" if low < high else f"{low}"
    add("data", "items", f"{len(lengths)} {of}, of {size} positions")
    if (lengths == 0).any():
        add("data", "empty items", np.count_nonzero(lengths == 0))
    return kind, table


def _add_labels(y, kind, add):
    """Labels with their counts; returns the schemes that tags are of."""
    if kind == "rows" and np.ndim(y) == 2:
        counts = np.asarray(y.sum(axis=0) if sparse.issparse(y) else np.sum(y, axis=0))
        told = [f"{j} {n:g}" for j, n in enumerate(counts.ravel())]
        add("labels", "rows with each", listed_names(told, str))
        if not counts.all():
            add("labels", "without a row", np.count_nonzero(counts == 0))
        return []
    if kind != "rows":
        y = [split_weights(own)[0] for own in y]
    labels = list(map(plain, y if kind == "rows" else chain.from_iterable(y)))
    known = [label for label in labels if not is_missing(label)]
    counts = Counter(known).most_common()
    add("labels", "counts", listed_names([f"{label!r} {n}" for label, n in counts], str))
    if len(known) < len(labels):
        add("labels", "missing", f"{len(labels) - len(known)} of {len(labels)}")
    once = [label for label, n in counts if n == 1]
    if once:
        add("labels", "that occur once", f"{len(once)}: {listed_names(once)}")
    if kind != "rows" and OUTSIDE in known:
        fitting = [scheme for scheme in LETTERS if first_fault(scheme, y) is None]
        add("labels", "tag scheme", " or ".join(fitting) or _told_odd_tags(y))
        return fitting
    return []


def _told_odd_tags(y):
    scheme, odd = odd_tags(y)
    if not odd:
        return "none; see convert_tags"
    places = [f"{tag} in y[{i}][{t}]" for tag, i, t in odd]
    return f"none; nearly {scheme}, but for {listed_names(places, str)}"


def _add_columns(table, add):
    """Strings, dates and missing values in the rows of all items; whether any are."""
    if isinstance(table, list):
        add("columns", "features", "none yet: words and dicts need a transformer")
        return False
    if column_names(table) is None:
        is_matrix = sparse.issparse(table) or isinstance(table, SplitMatrix)
        parts = stored_values(table if is_matrix else np.asarray(table))
        n = sum(map(n_missing, parts))
        add("columns", "missing values", n)
        return n > 0
    strings, dates = map(list, odd_columns(table))
    missing = columns_with_missing(table)
    kinds = zip(column_names(table), getattr(table, "dtypes", ()), strict=False)
    counted = [name for name, kind in kinds if getattr(kind, "kind", "") in set("iu")]
    ids = identifiers(table, [*strings, *counted])
    found = {"with strings": strings, "with dates": dates, "maybe identifiers": ids}
    for what, names in found.items():
        if names:
            add("columns", what, listed_names(names))
    add("columns", "missing values", f"in {listed_names(missing)}" if missing else 0)
    return bool(strings or dates or missing)


def _suiting(kind, schemes):
    """An estimator of the structure that the data have, and what makes its features."""
    if kind == "rows":
        return BCFWClassifier(), None
    kinds = {"words": WordFeatures(), "tokens": SequenceTransformer()}
    transformer = kinds.get(kind)
    structure = "chain" if transformer else kind
    if structure == "chain" and schemes:
        structure = ChainStructure(transitions=max(schemes, key="bio".__eq__))
    return CRFClassifier(structure), transformer


def _add_groups(sensitive_features, y, pos_label, add):
    """Groups with their positives, and the slack that so many could certify."""
    groups = Groups(sensitive_features, len(y))
    labels = np.asarray(y)
    classes = np.unique(labels)
    positive = labels == classes[positive_index(classes, pos_label, "check_data")]
    sizes = np.bincount(groups.codes)
    positives = np.bincount(groups.codes, weights=positive).astype(int)
    order = np.argsort(positives, kind="stable")
    told = [f"{groups.names[a]!r} {sizes[a]} ({positives[a]})" for a in order]
    add("groups", "rows (positives)", listed_names(told, str))
    if len(sizes) > 1:
        of = {"EqualOpportunity": positives, "DemographicParity": sizes}
        for name, counts in of.items():
            slack = least_slack(*np.sort(counts)[:2])
            add("groups", f"least slack of {name}", f"{slack:.2f}, at confidence 0.95")


def least_slack(n, m):
    """The smallest slack that two groups will certify, whose rates are both 1/2.

    `n`, `m`: numbers of examples, of which a share is left to test with.
    """
    sizes = np.floor(CALIBRATION_SHARE * np.array([n, m]))
    if not sizes.all():
        return 1.0
    # A rate of one group, and one minus that of the other, sum to 1 plus the difference.
    sums = RateSums.of([RateSum(np.ones(2), 0.5 * sizes, sizes, 1.0)])
    worse = -chance(CALIBRATION_SHARE) * sums.standard_errors
    return min(allowance(sums.looser(worse), ERROR), 1.0)


def _add_costs(problem, model, n_fits, add):
    """Scales, memory and time, from what the problem declares, of this many fits."""
    structure = problem.structure
    add("columns", "scales", scaling_words(model, problem) or "alike")
    matrices = structure._all_matrices(problem.X)
    stored = list(chain.from_iterable(map(stored_values, matrices)))
    products = sum(values.size for values in stored) * max(len(structure.classes_), 2)
    products *= n_fits
    memory = sum(values.nbytes for values in stored) + 8 * structure.n_weights_
    lbfgs = lbfgs_memory(structure.n_weights_)
    if structure.has_bounded_sums:
        memory += lbfgs
    elif not structure.flat:
        # Two numbers for each label of a node and each pair of labels of an edge.
        dual = dual_memory(problem.make_sums()[0])
        products, memory = products + dual // 16, memory + min(dual, lbfgs)
    add("cost", "weights", structure.n_weights_)
    add("cost", "memory", f"about {memory / 1e6:.3g} MB, data included")
    low, high = (products * n / PRODUCTS_PER_SECOND for n in PASSES)
    told = f"very roughly {low:.1g} to {high:.1g} s of one core"
    add("cost", "time", told if high > 1.0 else "less than a second")
