"""A structure on top of any classifier of rows."""

from functools import wraps
from numbers import Integral, Number
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._contract.answers import Answer, checked_folds
from sklearn_structsvm._utils.borders import is_empty
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import HasMethods, StrOptions, available_if
from sklearn_structsvm._utils.labels import (
    MISSING,
    check_node_weights,
    encode,
    plain,
    split_weights,
    unique,
)
from sklearn_structsvm._utils.sequences import (
    kind_of_items,
    one_table,
    put_back,
    rows_of,
    stacked,
)
from sklearn_structsvm._utils.snapshots import of_one_fit, snapshot
from sklearn_structsvm._utils.tables import (
    n_rows,
    refuse_odd_columns,
    rows_at,
    split_rows,
)
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.confusion.lmo.weighted import fit_weighted
from sklearn_structsvm.estimators.base import AtomicFitMixin, fit_aside, require_y
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.inner import (
    UNFITTED,
    class_scores,
    feature_attributes,
    learned,
    regressor_words,
    supports,
)
from sklearn_structsvm.estimators.named_structures import STRUCTURES, named_structure
from sklearn_structsvm.structures.base import as_list
from sklearn_structsvm.structures.hidden_labels import (
    as_entries,
    known_places,
    members_of,
)
from sklearn_structsvm.structures.nodes import NodeStructure
from sklearn_structsvm.structures.validation import refuse_single, refuse_tokens

METHODS = ("predict_proba", "decision_function")
PARTS = (
    "Cut long items into parts (graphs: linked_items has max_rows), or pass cv='prefit' "
    "with a classifier that was fitted to other rows."
)


def _final_has(name):
    def check(self):
        final = learned(self, "final_estimator_", self.final_estimator)
        return supports(CRFClassifier if final is None else final, name)

    return check


def _of_final(name):
    """The method of the final estimator, for the items that the classifier scores."""

    @available_if(_final_has(name))
    @of_one_fit
    @wraps(getattr(CRFClassifier, name))
    def method(self, X, *args, **kwargs):
        check_is_fitted(self)
        return getattr(self.final_estimator_, name)(self._scored(X), *args, **kwargs)

    return method


class StackedStructureClassifier(AtomicFitMixin, MetaEstimatorMixin, BaseEstimator):
    r"""A chain, tree or graph on top of any classifier of rows.

    For classifiers that label one row at a time, and whose labels flicker:

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_structsvm import StackedStructureClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, n_classes=3, random_state=0)
    >>> model = StackedStructureClassifier(GaussianNB()).fit(X, y)
    >>> model.predict(X)[0].shape == y[0].shape
    True

    `predict` returns an array of labels for each item, and `predict_proba` their
    probabilities. Both take the neighbors of a row into account.

    Read more in the :ref:`User Guide <guide-stacked>`.

    Parameters
    ----------
    estimator : classifier of rows
        Any classifier with `predict_proba` or `decision_function`, or a pipeline. It gets
        the rows of all items as one array, CSR matrix or data frame, whatever the items
        are.
    final_estimator : estimator over a structure or None, default=None
        What learns the structure, such as `CRFClassifier`, `CRFClassifierCV`,
        `BCFWClassifier` or `SlackRescaledSSVM` over a `ChainStructure`, `TreeStructure`
        or `GraphStructure`. The `emission` of its structure is set. None means a
        :class:`CRFClassifier` whose C and decoding are chosen by the folds, see the
        notes, over the structure that items have: a graph for pairs (features, edges), a
        tree for pairs (features, parents), and otherwise a chain.
    cv : int, splitter, iterable or "prefit", default=5
        The folds of items, as in :func:`sklearn.model_selection.cross_val_predict`; each
        item must be in one test part. A number deals the items with a label, and those
        without one, to as many folds. With "prefit", `estimator` is fitted already, to
        other items than those of `fit`; its classes that `y` lacks are left out.
    stack_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where the scores come from. "auto" takes the first of the two that `estimator`
        has. Scores are logarithms of probabilities, and decision functions as they are.
    passthrough : bool, default=False
        Whether the structure has weights for the features, too, beside the scores. They
        must be numbers then, and should be scaled.
    n_jobs : int or None, default=None
        Number of folds that are fitted at once.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to the rows of all items; with ``cv="prefit"``, `estimator` itself.
    final_estimator_ : estimator
        Fitted to the scores. It has the certificate, such as `dual_gap_`: of the weights
        of the structure, given the scores.
    classes_ : ndarray of shape (n_classes,)
        All labels, sorted.
    least_probability_ : float
        What probabilities are raised to. Defined only if scores are their logarithms.
    n_features_in_ : int
        Number of columns of the rows. Defined only if `estimator_` has it.
    feature_names_in_ : ndarray of str
        Names of the columns of the rows. Defined only if `estimator_` has them.

    See Also
    --------
    CRFClassifier : The default structure, on features or on scores.
    cross_val_predict_proba : Out-of-fold probabilities of sequences.

    Notes
    -----
    A classifier that labels one row at a time knows nothing of the rows beside it: its
    labels flicker. Here a structure reads its scores in context. With the scores
    :math:`s_t = \log p(\cdot \mid x_t)` of the classifier, a chain, tree or graph with
    the parameters :math:`a, b, A` predicts

    .. math:: \arg\max_y \sum_t a\, s_{t, y_t} + b_{y_t} + \sum_{(s, t)} A_{y_s, y_t} ,

    where a is how far the scores are to be trusted. It learns them from scores that are
    **out of fold**: of each item by a classifier that was fitted to other items. Scores
    of rows that a classifier was fitted to are too sure, and the structure would learn
    to do nothing.

    Labels that are unknown (MISSING, or sets of labels) are left out below, and hidden
    from the structure as its estimator does it. A class that a fold lacks has there the
    probability 0. Forests say 0 often, and are wrong at times. So logarithms are of at
    least ``least_probability_``: how often labels are right, out of fold, whose
    probability is below 1/n, with n rows; and at least 1/n.

    The rows of an item depend on each other: a classifier that is wrong about a person
    is so for many rows. A likelihood that counts all rows trusts it too little for that,
    and short segments are lost. So by default an item counts as one row: ``C`` is the
    number of items over the weight of their labels; and ``decoding="mbr"`` errs on the
    fewest rows that can be expected. Ten rows, or ``decoding="map"``, are taken if their
    score is higher by more than a standard error on the same folds, where each third of
    the folds is labeled by a fit to the others.

    The certificate says that no other weights of the structure have a better objective
    for the same scores by more than `dual_gap_`. It says nothing about the classifier. On
    graphs with cycles the objective is a bound, as ``structure_.inference_`` of
    `final_estimator_` says: see :class:`GraphStructure`.

    Folds are of items. Where one item has most of the rows, the scores of its fold come
    from a classifier that saw few of them, and the structure trusts another one than that
    which predicts: cut such an item, as a warning says.

    If the final estimator has ``warm_start=True``, a second `fit` starts from its
    solution.
    """

    # What a fit sets, for editors and type checkers.
    estimator_: Any
    final_estimator_: Any
    classes_: np.ndarray
    least_probability_: float
    n_features_in_: int
    feature_names_in_: np.ndarray

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "estimator": [HasMethods(["fit"])],
        "final_estimator": [None, HasMethods(["fit", "predict"])],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "stack_method": [StrOptions({"auto", *METHODS})],
        "passthrough": ["boolean"],
        "n_jobs": [None, int],
    }

    def __init__(
        self,
        estimator: Any,
        final_estimator: Any = None,
        *,
        cv: Any = 5,
        stack_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        passthrough: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.final_estimator = final_estimator
        self.cv = cv
        self.stack_method = stack_method
        self.passthrough = passthrough
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier, and the structure to its out-of-fold scores.

        Parameters
        ----------
        X : sequence of n items
            Each is an array, a CSR matrix or a data frame of T_i rows; for graphs and
            trees, a tuple (features, edges) or (features, parents) as of
            :class:`GraphStructure` and :class:`TreeStructure`.
        y : sequence of n arrays of shape (T_i,)
            The label of each row, or pairs (labels, weights). Labels may be MISSING, or
            sets of labels, if the final estimator takes them. In the structure weights
            multiply costs of errors, see :class:`ChainStructure`.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the items, and of their rows. Those of rows in y multiply them.
        groups : array-like of shape (n,) or None, default=None
            Groups of the items, for splitters such as ``GroupKFold``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return fit_aside(self, X=X, y=y, sample_weight=sample_weight, groups=groups)

    def _fit_within(self, fit, X, y, sample_weight, groups):
        require_y(self, y)
        table, lengths, rests = one_table(X)
        X, y = list(X), list(as_list(y, "y"))
        labels, known, weights, self.classes_ = _labels_of_rows(y, lengths)
        of_items = np.repeat(check_weights(sample_weight, len(X)), lengths)[known]
        total, weights = of_items.sum(), of_items * weights
        used = weights > 0.0
        if not used.any():
            raise ValueError("Weights must not be zero for all labels.")
        labels, known, weights = labels[used], known[used], weights[used]
        if sample_weight is None and (weights == 1.0).all():
            weights = None
        task = RowTask(table, self.stack_method, self.classes_, known, labels, weights)
        counts = np.bincount(np.repeat(np.arange(len(X)), lengths)[known])
        labeled, most = np.flatnonzero(counts), counts.max()
        folds = self._folds(X, y, groups, labeled)
        final = self._final(rests)
        task.method_of(self.estimator)  # or an error, before any fit
        if self.cv == "prefit":
            check_is_fitted(self.estimator, msg=UNFITTED)
            self.estimator_ = self.estimator
            scores = task.scores(self.estimator, slice(None))
        elif len(self.classes_) < 2:
            only = plain(self.classes_[0])
            raise ValueError(f"y has one label only, {only!r}: two are needed.")
        else:
            if 2 * most > len(known):
                warn_caller(
                    f"X[{counts.argmax()}] has {most / len(known):.0%} of the rows, so "
                    f"its scores are by a fit to {len(known) - most} others. {PARTS}",
                )
            scores = self._out_of_fold(task, lengths, folds)
            self.estimator_ = task.fitted(clone(self.estimator), slice(None))
        if task.method_of(self.estimator_) == "predict_proba":
            self.least_probability_ = task.least_of(scores)
            np.maximum(scores, np.log(self.least_probability_), out=scores)
        vars(self).update(feature_attributes(self.estimator_))
        previous = fit.previous.get("final_estimator_")
        if previous is not None and learned(final, "warm_start", False):
            final = snapshot(previous).set_params(**final.get_params(deep=False))
        beside = {} if sample_weight is None else {"sample_weight": sample_weight}
        items = self._items(X, scores, lengths, rests)
        if self.final_estimator is None:
            parts = [test for _, test in folds if np.isin(test, labeled).any()]
            # Times the weights of the items, so that their scale does not matter.
            per_row = len(labeled) / total
            _set_best(final, per_row, items, y, beside, parts)
            # A likelihood counts all rows alike.
            y = [split_weights(own)[0] for own in y]
        self.final_estimator_ = final.fit(items, y, **beside)

    def _folds(self, X, y, groups, labeled):
        """The folds of items, each in one test part; for "prefit" test parts alone."""
        if self.cv == "prefit":
            return [((), own) for own in np.array_split(labeled, min(5, len(labeled)))]
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            if (n := len(labeled)) < cv:
                words = f"cv={cv} needs as many labeled items, and there are {n}."
                raise ValueError(f"{words} {PARTS}")
            folds = checked_folds(cv, labeled, None, groups=groups)
            return _dealt(folds, labeled, len(X))
        folds = checked_folds(self.cv, X, y, groups=groups)
        test = np.concatenate([test for _, test in folds])
        if not np.array_equal(np.sort(test), np.arange(len(X))):
            raise ValueError("cv must have each item in the test part of one fold.")
        return folds

    def _final(self, rests):
        """The final estimator, not yet fitted, over a structure that takes scores."""
        final = CRFClassifier(random_state=0, solver_options={"classes": self.classes_})
        if self.final_estimator is not None:
            final = clone(self.final_estimator)
        if "structure" not in final.get_params(deep=False):
            raise TypeError(
                "final_estimator must be an estimator over a structure, such as "
                f"CRFClassifier('chain'); got {final!r}. The classifier of rows is "
                "`estimator`."
            )
        structure = named_structure(final.structure)
        if structure is None:
            structure = STRUCTURES[kind_of_items(rests)]()
        if not isinstance(structure, NodeStructure):
            raise ValueError(
                "final_estimator must have a ChainStructure, TreeStructure or "
                f"GraphStructure; got structure={final.structure!r}."
            )
        emission = "both" if self.passthrough else "given"
        structure = clone(structure).set_params(emission=emission)
        return final.set_params(structure=structure)

    def _out_of_fold(self, task, lengths, folds):
        """Scores of all rows, each by a fit to the rows of other items."""
        of_row = np.repeat(np.arange(len(lengths)), lengths)
        pairs = [[np.flatnonzero(np.isin(of_row, own)) for own in fold] for fold in folds]
        pairs = [pair for pair in pairs if len(pair[1])]
        ask = delayed(_scored_by_others)
        found = Parallel(n_jobs=self.n_jobs)(
            ask(task, clone(self.estimator), *pair) for pair in pairs
        )
        rows = np.concatenate([test for _, test in pairs])
        return np.concatenate(found)[np.argsort(rows)]

    def _items(self, X, scores, lengths, rests):
        """Items of the structure: the scores of their rows, and what stands beside."""
        items = split_rows(scores, lengths)
        if self.passthrough:
            rows, _ = rows_of(X)
            features = [_numbers(own, i) for i, own in enumerate(rows)]
            items = list(zip(features, items, strict=True))
        return list(map(put_back, items, rests))

    def _scored(self, X):
        """The items of the final estimator."""
        items, rests = rows_of(X)
        X = list(X)
        if not len(items):
            return []
        if all(map(is_empty, items)):
            lengths = np.zeros(len(items), np.int64)
            scores = np.empty((0, len(self.classes_)))
        else:
            table, lengths = stacked(items)
            task = RowTask(table, self.stack_method, self.classes_)
            task.least = vars(self).get("least_probability_", 0.0)
            scores = task.scores(snapshot(self.estimator_), slice(None))
        return self._items(X, scores, lengths, rests)

    predict = _of_final("predict")
    predict_proba = _of_final("predict_proba")
    predict_log_proba = _of_final("predict_log_proba")
    predict_k_best = _of_final("predict_k_best")
    predict_spans = _of_final("predict_spans")
    max_marginals = _of_final("max_marginals")
    entropy = _of_final("entropy")
    log_likelihood = _of_final("log_likelihood")
    score = _of_final("score")

    def __sklearn_is_fitted__(self):
        return "final_estimator_" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Otherwise scikit-learn would choose splitters and scores by the form of y.
        tags.estimator_type = None
        tags.classifier_tags = None
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


class RowTask:
    """The rows of all items, their labels, and how a classifier scores them.

    `table` (array, CSR matrix, data frame or list of n rows). `known` (m,) or None: the
    places of the rows that have a label. `method`: the parameter `stack_method`.
    `least`: what probabilities are raised to.
    """

    least = 0.0

    def __init__(self, table, method, classes, known=None, labels=None, weights=None):
        self.table, self.method, self.classes = table, method, classes
        self.known, self.labels, self.weights = known, labels, weights

    def fitted(self, model, rows):
        """The model, fitted to those of these rows that have a label."""
        own = rows if isinstance(rows, slice) else np.isin(self.known, rows)
        known, labels = self.known[own], self.labels[own]
        if not len(labels):
            raise ValueError("A fold has no item with a label outside its test part.")
        has_all = len(known) == n_rows(self.table)  # and needs no copy
        table = self.table if has_all else rows_at(self.table, known)
        try:
            if self.weights is None:
                return model.fit(table, labels)
            return fit_weighted(model, table, labels, self.weights[own])
        except (TypeError, ValueError) as error:
            if "1D array" in str(error):
                raise ValueError(
                    "The rows of X[0] are single numbers: for one feature use "
                    "[x[:, np.newaxis] for x in X]."
                ) from error
            if "float" in str(error).lower():  # strings, dates or dicts
                refuse_odd_columns(table)
                if isinstance(table, list):
                    refuse_tokens([self.table])
            raise

    def scores(self, model, rows):
        """A score for each of these rows and each class."""
        table = self.table if isinstance(rows, slice) else rows_at(self.table, rows)
        n, columns = n_rows(table), len(model.classes_)
        if self.method_of(model) == "predict_proba":
            found = model.predict_proba(table)
            found = Answer("predict_proba", model).probabilities(found, n, columns)
            with np.errstate(divide="ignore"):
                found = np.log(np.maximum(found, self.least))
                missing = np.log(self.least)
        else:
            found = class_scores(model, table, n)
            missing = found.min() if found.size else 0.0
        classes = np.asarray(model.classes_)
        shared = np.isin(classes, self.classes)
        if 0 < shared.sum() < columns:  # the structure has no class that y lacks
            classes, found = classes[shared], found[:, shared]
        places = encode(classes, self.classes, "classes_ of the estimator")
        if np.array_equal(places, np.arange(len(self.classes))):
            return found
        scores = np.full((n, len(self.classes)), missing, found.dtype)
        scores[:, places] = found
        return scores

    def least_of(self, scores):
        """How often a label is right whose probability is below one in all rows."""
        n, places = len(self.labels), encode(self.labels, self.classes, "y")
        unlikely = scores[self.known] < -np.log(n)
        right = np.count_nonzero(unlikely[np.arange(n), places])
        return max(1.0 / n, (1 + right) / (n + np.count_nonzero(unlikely)))

    def method_of(self, model):
        names = METHODS if self.method == "auto" else (self.method,)
        for name in names:
            if supports(model, name):
                return name
        raise TypeError(
            f"estimator must have {' or '.join(names)}; got {model!r}."
            f"{regressor_words(model)}"
        )


def _dealt(folds, labeled, n):
    """Folds of the labeled items, as folds of all n: each gets its part of the rest."""
    parts = np.array_split(np.setdiff1d(np.arange(n), labeled), len(folds))
    pairs = zip(folds, parts, strict=True)
    tests = [np.union1d(labeled[test], part) for (_, test), part in pairs]
    return [(np.setdiff1d(np.arange(n), test), test) for test in tests]


def _scored_by_others(task, model, train, test):
    labels = task.labels[np.isin(task.known, train)]
    if len(labels) and (labels == labels[0]).all():
        # Most classifiers refuse a single class.
        other = -np.inf if task.method_of(model) == "predict_proba" else 0.0
        return np.tile(np.where(task.classes == labels[0], 0.0, other), (len(test), 1))
    return task.scores(task.fitted(model, train), test)


def _set_best(final, per_row, items, y, beside, parts):
    """Set C and decoding of a CRF: the first way, or one that is surely better.

    `per_row`: C with which an item counts as one row. The rows of an item depend on each
    other: together they count as one, or as ten, but not as all that they are. `parts`:
    places of items. Three fits, each to two thirds of them, are scored on the others.
    """
    ways = [
        {"C": C, "solver_options__decoding": decoding}
        for C in (per_row, 10.0 * per_row)
        for decoding in ("mbr", "map")
    ]
    final.set_params(**ways[0])
    if len(parts) < 2:
        return
    y = list(map(_with_missing, y))  # or each fit warns of None and NaN

    def given(places):
        own = {name: np.asarray(values)[places] for name, values in beside.items()}
        return {"X": [items[i] for i in places], "y": [y[i] for i in places], **own}

    scores = np.empty((len(ways), len(parts)))
    for k in range(min(3, len(parts))):
        train = np.concatenate([own for i, own in enumerate(parts) if i % 3 != k])
        fitted_to, others = given(train), list(map(given, parts[k::3]))
        fitted_to["y"] = [split_weights(own)[0] for own in fitted_to["y"]]
        for own, way in zip(scores, ways, strict=True):
            if way["solver_options__decoding"] == "mbr":
                model = clone(final).set_params(**way).fit(**fitted_to)
            model.set_params(**way)
            own[k::3] = [model.score(**part) for part in others]
    gains = scores - scores[0]
    mean, error = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(len(parts))
    final.set_params(**ways[int(np.argmax(np.where(mean > error, mean, 0.0)))])


def _with_missing(y):
    labels, weights = split_weights(y)
    entries = as_entries(labels)
    if entries is not None:
        labels = [MISSING if entry is None else entry for entry in entries]
    return labels if weights is None else (labels, weights)


def _labels_of_rows(y, lengths):
    """The labels of all rows that have one, their places and weights, and all labels."""
    parts, places, weights, others, start = [], [], [], set(), 0
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} items, but y has {len(y)}.")
    for i, (own, n) in enumerate(zip(y, lengths.tolist(), strict=True)):
        own, weight = split_weights(own)
        refuse_single(own, i)
        entries = as_entries(own)
        own = np.asarray(own) if entries is None else entries
        if len(own) != n:
            raise ValueError(f"y[{i}] has {len(own)} labels, but X[{i}] has {n} rows.")
        weight = check_node_weights(f"y[{i}][1]", weight, n)
        kept = np.arange(n)
        if entries is not None:
            kept = known_places(entries)
            own = np.asarray([own[t] for t in kept])
            others |= members_of([entries])
        if len(kept):
            parts.append(own)
            places.append(kept + start)
            weights.append(np.ones(len(kept)) if weight is None else weight[kept])
        start += n
    if not parts:
        raise ValueError("y has no label: there is nothing to learn.")
    labels = np.concatenate(parts)
    if labels.dtype == object and all(isinstance(own, Number) for own in labels):
        # Numbers beside hidden labels, which classifiers of rows refuse as objects.
        labels = np.asarray(labels.tolist())
    classes = unique(labels, "y")
    if others:  # in sets only
        classes = unique([*classes.tolist(), *others], "y")
    return labels, np.concatenate(places), np.concatenate(weights), classes


def _numbers(rows, i):
    """The features of an item, for a structure that has weights for them."""
    if sparse.issparse(rows) or isinstance(rows, np.ndarray):
        return rows
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"passthrough=True needs features that are numbers, but X[{i}] has others "
            f"({error}): encode them first, by SequenceTransformer in a pipeline."
        ) from error
