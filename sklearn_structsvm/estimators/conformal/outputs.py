"""Nonconformity scores of classes, of several labels and of labels of nodes.

Scores have a row for each example or node and a column for each class. The set of an
example contains the truth if the entries of all its true labels are small enough.
"""

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples, column_or_1d

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import as_array
from sklearn_structsvm._utils.labels import refuse_missing, split_weights, unique
from sklearn_structsvm._utils.tables import n_rows
from sklearn_structsvm.estimators.complex_metric.over_probabilities import unwrapped
from sklearn_structsvm.estimators.inner import (
    class_scores,
    learned,
    regressor_words,
    supports,
)
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.conformity import CLASS_SCORES, lac, margin
from sklearn_structsvm.structures.hidden_labels import as_entries
from sklearn_structsvm.structures.hierarchy import HierarchicalStructure
from sklearn_structsvm.structures.lattice import make_lattice, score_gaps

# The quantities that the scores of each name use.
OF_PROBABILITIES = tuple(CLASS_SCORES)


def read_outputs(X, y):
    """The kind of output in y, and y in its form."""
    if sparse.issparse(y):
        return LabelOutputs(), y.toarray()
    y = y if isinstance(y, (list, tuple, np.ndarray)) else np.asarray(y)
    first = y[0] if len(y) else None
    if isinstance(first, (str, bytes)) or as_array("y[0]", first).ndim == 0:
        return ClassOutputs(), _as_classes(y)
    if not _are_rows(X):
        return NodeOutputs(), _as_labelings(y)
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        return ClassOutputs(), _as_classes(array)
    if type_of_target(array, input_name="y") != "multilabel-indicator":
        raise ValueError(
            "y must hold one class per row, a label indicator matrix of 0 and 1, or a "
            f"labeling per example, of which X then has one 2-D array; got {first!r} "
            "for the first row of X."
        )
    return LabelOutputs(), array


def _are_rows(X):
    """Whether each example is a row of a matrix, or a text or dict that becomes one."""
    if getattr(X, "ndim", 0) == 2:
        return True
    first = next(iter(X))
    if isinstance(first, (str, bytes, dict)):
        return True
    try:
        array = np.asarray(first)
    except ValueError:  # of ragged parts
        return False
    return array.ndim == 1 and array.dtype.kind in "biuf"


def _as_classes(y):
    refuse_missing(y)
    y = np.asarray(y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _as_labelings(y):
    for i, own in enumerate(y):
        weights = split_weights(own)[1]
        if weights is not None or as_entries(own) is not None:
            what = "hidden labels" if weights is None else "weights of labels"
            raise ValueError(
                f"y[{i}] has {what}. Sets are calibrated by whole labelings: fit the "
                "estimator first, then pass examples whose labels are all known, without "
                "weights, with cv='prefit'."
            )
        refuse_missing(own, f"y[{i}]", place="position", remedy="Leave the example out.")
    return as_object_array([np.asarray(own) for own in y])


class Outputs:
    """Base of all kinds of outputs.

    `scores`: the supported values of `conformity_score`, besides "auto". `conditions`:
    the supported values of `condition`.
    """

    name: str
    scores: tuple[str, ...]
    conditions: tuple[str, ...]
    has_nodes = False

    def resolved(self, conformity_score, model):
        """The resolved score. ValueError or TypeError if it is not supported."""
        name = conformity_score
        if name == "auto":
            name = "lac" if supports(model, "predict_proba") else "margin"
        if callable(name):
            if not isinstance(self, ClassOutputs):
                raise ValueError(
                    "A callable conformity_score takes probabilities of classes, but y "
                    f"holds {self.name}. Use one of {list(self.scores)}."
                )
        elif name not in self.scores:
            raise ValueError(
                f"conformity_score={name!r} is not for {self.name}. Use one of "
                f"{list(self.scores)}."
            )
        needed = self.method(name)
        final, _ = unwrapped(model, None)
        if not (supports(model, needed) or supports(final, needed)):
            hint = " Use conformity_score='margin'." if name != "margin" else ""
            hint = regressor_words(model) or hint
            raise TypeError(
                f"conformity_score={name!r} needs an estimator with {needed}; got "
                f"{model!r}.{hint}"
            )
        return name

    def method(self, name):
        """The estimator's method from which a score is computed."""
        of_probabilities = callable(name) or name in OF_PROBABILITIES
        return "predict_proba" if of_probabilities else "decision_function"

    def classes_of(self, models, y):
        """All labels of fitted models and of y."""
        known = [np.asarray(model.classes_) for model in models]
        found = known[0]
        for own in [*known[1:], self.joined(y)]:
            if np.setdiff1d(own, found).size:
                found = np.union1d(found, own)
        return found

    def joined(self, y):
        """The labels in y."""
        return y


class ClassOutputs(Outputs):
    """One class per row."""

    name = "one class per row"
    scores = ("lac", "aps", "raps", "margin")
    conditions = ("class", "group")

    def ask(self, model, X, score, classes, shares, params):
        n, k = _num_samples(X), len(model.classes_)
        if score == "margin":
            found = margin(_doubles(class_scores(model, X, n, **params)))
        else:
            answer = Answer("predict_proba", model)
            told = model.predict_proba(X, **params)
            values = _doubles(answer.probabilities(told, n, k))
            if isinstance(score, str):
                found = CLASS_SCORES[score](values, shares)
            else:
                answer = Answer("conformity_score", score)
                found = _doubles(answer.array(score(values), n, k, finite=False))
        return spread(found, model.classes_, classes)

    def needed(self, scores, y, classes):
        """The scores of each truth, as a list; here each truth has at most one."""
        return list(self.largest(scores, y, classes)[:, np.newaxis])

    def largest(self, scores, y, classes):
        codes = codes_of(y, classes)
        own = scores[np.arange(len(y)), codes]
        return np.where(codes < 0, np.inf, own)

    def covered(self, sets, y, classes):
        """The share of each example's true labels that its set contains."""
        codes = codes_of(y, classes)
        return np.where(codes < 0, False, sets[np.arange(len(y)), codes]).astype(float)


class LabelOutputs(Outputs):
    """Several labels per row, as an indicator matrix."""

    name = "several labels per row"
    scores = ("lac", "margin")
    conditions = ("group",)

    def classes_of(self, models, y):
        # scikit-learn's classifiers with several outputs return a list of arrays.
        classes = learned(models[0], "classes_")
        is_list = isinstance(classes, np.ndarray) and classes.shape == y.shape[1:]
        return classes if is_list else np.arange(y.shape[1])

    def ask(self, model, X, score, classes, shares, params):
        n, k = _num_samples(X), len(classes)
        if score == "margin":
            answer = Answer("decision_function", model)
            return -_doubles(answer.array(model.decision_function(X, **params), n, k))
        answer, found = Answer("predict_proba", model), model.predict_proba(X, **params)
        if isinstance(found, list):
            # scikit-learn's classifiers with several outputs return a table for each.
            known = list(model.classes_)
            answer.of_each(found, len(known))
            pairs = zip(found, known, strict=True)
            columns = [_present(answer.probabilities(p, n, len(c)), c) for p, c in pairs]
            found = np.column_stack(columns)
        return lac(_doubles(answer.probabilities(found, n, k)))

    def needed(self, scores, y, classes):
        return [own[truth > 0] for own, truth in zip(scores, y, strict=True)]

    def largest(self, scores, y, classes):
        return np.where(y > 0, scores, -np.inf).max(axis=1, initial=-np.inf)

    def covered(self, sets, y, classes):
        n_true = (y > 0).sum(axis=1)
        n_found = ((y > 0) & sets).sum(axis=1)
        return np.where(n_true > 0, n_found / np.maximum(n_true, 1), 1.0)


class NodeOutputs(Outputs):
    """A label for each position or node of an example."""

    name = "a labeling per example"
    scores = ("lac", "margin", "likelihood")
    conditions = ("length", "group")
    has_nodes = True

    def resolved(self, conformity_score, model):
        name = super().resolved(conformity_score, model)
        if name == "likelihood":
            final, _ = unwrapped(model, None)
            if not supports(final, "structure"):
                raise TypeError(
                    "conformity_score='likelihood' needs an estimator of this package; "
                    f"got {final!r}."
                )
        return name

    def method(self, name):
        return "predict_proba" if name == "lac" else "max_marginals"

    def ask(self, model, X, score, classes, shares, params):
        k, n = len(model.classes_), _num_samples(X)
        if score == "lac":
            answer = Answer("predict_proba", model)
            rows = answer.of_each(model.predict_proba(X, **params), n)
            found = [
                lac(_doubles(own.probabilities(values, "T", k)))
                for own, values in answer.by_example(rows)
            ]
        else:
            final, X = unwrapped(model, X)
            answer = Answer("max_marginals", final)
            rows = answer.of_each(final.max_marginals(X), n)
            found = [
                margin(own.array(values, "T", k, finite=False))
                for own, values in answer.by_example(rows)
            ]
        return as_object_array([spread(own, model.classes_, classes) for own in found])

    def joined(self, y):
        return unique(_concatenated(y), "y")

    def needed(self, scores, y, classes):
        values, starts = self._needed(scores, y, classes)
        return np.split(values, starts[1:])

    def largest(self, scores, y, classes):
        values, starts = self._needed(scores, y, classes)
        result = np.full(len(y), -np.inf)
        filled = np.diff(starts, append=len(values)) > 0
        if filled.any():
            result[filled] = np.maximum.reduceat(values, starts[filled])
        return result

    def covered(self, sets, y, classes):
        values, starts = self._needed(sets, y, classes)
        lengths = np.diff(starts, append=len(values))
        n_found = np.add.reduceat(np.append(values == 1.0, 0), starts)
        return np.where(lengths > 0, n_found / np.maximum(lengths, 1), 1.0)

    def _needed(self, scores, y, classes):
        """The entries of all true labels (inf if unknown), and bounds of examples."""
        lengths = np.array([len(labels) for labels in y], dtype=np.intp)
        for i, (own, length) in enumerate(zip(scores, lengths, strict=True)):
            if len(own) != length:
                raise ValueError(
                    f"y[{i}] has {length} labels, but there are predictions for "
                    f"{len(own)} nodes."
                )
        codes = codes_of(_concatenated(y), classes)
        rows = np.concatenate([np.empty((0, len(classes))), *scores])
        values = np.where(codes < 0, np.inf, rows[np.arange(len(rows)), codes])
        return values, np.cumsum(lengths) - lengths


def _concatenated(y):
    """The labels of all examples."""
    y = [labels for labels in y if len(labels)]
    kinds = {labels.dtype.kind for labels in y}
    if len(kinds) > 1 and kinds & {"U", "S"}:
        # NumPy would convert 1 to "1" beside "a".
        y = [labels.astype(object) for labels in y]
    return np.concatenate(y) if y else np.empty(0)


def likelihood_gaps(model, X, y):
    """The distance of true labelings below the best, for estimators of this package."""
    final, X = unwrapped(model, X)
    X = final._check_X(X)
    for i, (x, labels) in enumerate(zip(final.structure_._lengths(X), y, strict=True)):
        if x != len(labels):
            raise ValueError(
                f"y[{i}] has {len(labels)} labels, but X[{i}] has {x} nodes."
            )
    return score_gaps(final.structure_, X, y, final._weights)


def lattices(model, X, slack_of):
    """The lattice of each example, with its slack."""
    final, X = unwrapped(model, X)
    X, w = final._check_X(X), final._weights
    return [
        make_lattice(final.structure_, x, w, slack)
        for x, slack in zip(X, slack_of, strict=True)
    ]


def node_lengths(X):
    """The number of nodes of each example, in any of its forms."""
    return np.array([_length(x) for x in X], dtype=np.intp)


def _length(x):
    if isinstance(x, tuple) and len(x) in (2, 3) and hasattr(x[0], "shape"):
        x = x[0]
    return n_rows(x)


def length_strata(X):
    """Pairs (from, to) of lengths between powers of two: 1, 2-3, 4-7 and so on.

    They depend only on the length, so their choice does not affect the guarantee.
    """
    powers = [max(int(length), 1).bit_length() - 1 for length in node_lengths(X)]
    return [(2**power, 2 ** (power + 1) - 1) for power in powers]


def hierarchy_of(model):
    """The hierarchy whose leaves an estimator predicts, or None."""
    final, _ = unwrapped(model, None)
    structure = learned(final, "structure_")
    is_one = isinstance(structure, HierarchicalStructure)
    return structure._graph if is_one else None


def codes_of(labels, classes):
    """Places of labels in the classes, or -1 for unknown labels."""
    labels = np.asarray(labels)
    known = {label: c for c, label in enumerate(np.asarray(classes).tolist())}
    values, places = np.unique(labels, return_inverse=True)
    codes = np.array([known.get(value, -1) for value in values.tolist()], dtype=np.intp)
    return codes[places] if len(labels) else np.empty(0, dtype=np.intp)


def spread(scores, own, classes):
    """Columns in the order of all classes, with inf for those unknown to a model."""
    own = np.asarray(own)
    if np.array_equal(own, classes):
        return scores
    result = np.full((len(scores), len(classes)), np.inf)
    codes = codes_of(own, classes)
    result[:, codes[codes >= 0]] = scores[:, codes >= 0]
    return result


def _present(probabilities, classes):
    """Probabilities of the presence of one of several labels, from its table."""
    where = np.flatnonzero(np.asarray(classes) == 1)
    if not len(where):
        return np.zeros(len(probabilities))
    return np.asarray(probabilities)[:, where[0]]


def _doubles(values):
    return values.astype(np.float64, copy=False)
