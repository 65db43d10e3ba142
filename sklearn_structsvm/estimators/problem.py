"""From (X, y, sample_weight) to a solver's problem.

`bind_data` determines where the data are. It returns a `LocalProblem` or a
`RemoteProblem`, which have the same methods.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import as_array, as_canonical, refuse_masked
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import encode, plain, refuse_missing
from sklearn_structsvm._utils.weights import (
    check_weights,
    normalized_lambda,
    total_weight,
)
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.distributed.rows import read_rows
from sklearn_structsvm.distributed.sequences import read_sequences
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.fingerprints import fingerprints
from sklearn_structsvm.estimators.named_structures import (
    class_options,
    fresh,
    has_exact_steps,
    holds_sequences,
    named_structure,
    wants_indicator,
)
from sklearn_structsvm.estimators.options import check_dask_options
from sklearn_structsvm.solvers.loop import Rounding
from sklearn_structsvm.structures import ChainStructure, Structure
from sklearn_structsvm.structures._callback import labeling_key
from sklearn_structsvm.structures.answers import checked_data, fit_to_checked, oracle_of
from sklearn_structsvm.structures.hidden_labels import find_unnamed, first_hidden
from sklearn_structsvm.structures.nodes import NodeStructure
from sklearn_structsvm.structures.validation import refuse_tokens

# The square of a smaller length fits into float64, and so does a sum of many of them.
MAX_NORM = 1e150
# Up to here it is no surprise if most classes are rare; scikit-learn's warning of as many
# classes as rows begins there, too.
FEW_CLASSES = 20


def bind_data(estimator, X, y, sample_weight=None):
    """Check the data, and fit a clone of the structure to them, wherever they are.

    Reads `structure`, `classes`, `class_weight`, `fit_intercept` and
    `intercept_scaling` of the estimator, and sets its `n_features_in_` (and
    `feature_names_in_`).

    Returns
    -------
    LocalProblem or RemoteProblem
        A context manager that releases remote data at its end.
    """
    if holds_dask(X, y, sample_weight):
        return bind_remote(estimator, X, y, sample_weight)
    return bind_local(estimator, X, y, sample_weight)


def bind_local(estimator, X, y, sample_weight=None, *, warns=True):
    """The `LocalProblem` of data in memory. Other data raise an error.

    With ``warns=False`` labels that look wrong are not said, as in the folds of a fit.
    """
    refuse_foreign(X=X, y=y, sample_weight=sample_weight)
    structure = named_structure(estimator.structure)
    if isinstance(X, (list, tuple)) and len(X) == 0:
        raise ValueError("X is empty: at least one example is needed.")
    flat = not holds_sequences(X) if structure is None else structure.flat
    if flat:
        X, y = check_flat(estimator, X, y)
    if structure is None:
        structure = estimator._infer_structure(X, y, estimator.classes)
    else:
        structure = fresh(structure)
    entries = None
    if not flat:
        require_y(estimator, y)
        y_given = y
        if structure.splits_hidden:
            y, entries = structure.split_hidden(y)
        if structure.completes:
            check_completes(estimator, structure)
        if entries is not None:
            check_takes_hidden(estimator, structure, entries)
            if warns:
                warn_of_unnamed(structure, y_given)
        X, y = checked_data(structure, X, y)
    X = structure._with_own_indices(X)
    given = X, y
    if entries is not None:
        given = X, list(y_given)
    if not flat:
        kept = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        X, y, sample_weight = without_empty(kept, X, y, sample_weight)
    options = class_options(estimator, structure)
    if flat:
        scaling = estimator.intercept_scaling if estimator.fit_intercept else 0.0
        options["bias"] = scaling
    allowed = None
    if entries is None:
        fit_to_checked(structure, X, y, **options)
    else:
        y, allowed = structure.learn_partial(X, y, [entries[i] for i in kept], **options)
    if not flat and hasattr(structure, "n_features_in_"):
        estimator.n_features_in_ = structure.n_features_in_
    _check_class_weight(structure, estimator.class_weight)
    if warns and isinstance(structure, NodeStructure):
        warn_of_odd_classes(structure, y)
    weights = example_weights(structure, X, y, sample_weight)
    total = total_weight(weights, "sample_weight (times class_weight)")
    problem = LocalProblem(structure, X, y, weights / total, total, given, allowed)
    if structure.completes:
        problem.partial = y
        problem.y = problem.completed(None)
    check_scale(estimator, problem)
    return problem


def bind_remote(estimator, X, y, sample_weight=None):
    """The `RemoteProblem` of Dask collections.

    These are chunked rows, or else bags or lists of delayed parts of examples.
    """
    estimator._check_dask()
    structure = named_structure(estimator.structure)
    has_rows = hasattr(X, "chunks") or hasattr(X, "divisions")
    if structure is not None:
        structure = fresh(structure)
        if has_rows and not has_exact_steps(structure):
            raise TypeError(
                f"structure={structure!r} does not support Dask arrays and data frames, "
                "which need one class or several labels per row. Pass data in memory"
                f"{'' if structure.flat else ', a Dask bag or a list of delayed parts'}."
            )
        if structure.flat and not has_rows:
            raise TypeError(
                f"structure={structure!r} needs one row per example: pass a Dask array "
                f"or data frame as X; got {type(X).__name__}."
            )
    check_dask_options(estimator)
    if has_rows or not estimator.takes_dask_items:
        problem = read_rows(estimator, X, y, sample_weight, structure)
    else:
        structure = ChainStructure() if structure is None else structure
        options = class_options(estimator, structure)
        problem = read_sequences(structure, X, y, sample_weight, **options)
        if hasattr(problem.structure, "n_features_in_"):
            estimator.n_features_in_ = problem.structure.n_features_in_
    try:
        check_scale(estimator, problem)
    except BaseException:
        problem.release()
        raise
    return problem


@dataclass
class LocalProblem:
    """Training data in memory, bound to a fitted structure.

    Attributes
    ----------
    structure : Structure
    X, y : as checked
    weights : ndarray of shape (n,)
        s_i / Σs.
    total : float
        Σs, so that λ = 1 / (C total).
    given : (X, y)
        The same including empty examples, which fits do not see, and with hidden labels
        as they were passed.
    allowed : AllowedLabels or None
        If labels are hidden: the labels that the nodes may have. y is then any labeling
        of these.
    partial : list or None
        If the structure completes labelings itself: the labelings that were passed. y is
        then any completion of these.
    risk : Risk or None
        The risk of a batch solver, after `make_risk`.
    """

    structure: Structure
    X: object
    y: object
    weights: np.ndarray
    total: float
    given: tuple
    allowed: object = None
    partial: list | None = None
    risk: object = None

    is_remote = False

    @property
    def has_hidden(self):
        """Whether y has hidden parts."""
        return self.allowed is not None or self.partial is not None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        """Do nothing: all data are local."""

    def lam(self, C):
        return normalized_lambda(C, self.total)

    @cached_property
    def fingerprints(self):
        """Numbers that identify the examples."""
        labels = self.y
        if self.allowed is not None:
            labels = list(zip(labels, self.allowed, strict=True))
        elif self.partial is not None:
            labels = self.partial
        return fingerprints(self.X, labels)

    def largest_feature(self):
        """The largest absolute value of a feature, as far as known."""
        return self.structure._largest_feature(self.X)

    @cached_property
    def rounding(self):
        """The `Rounding` of means over the examples."""
        n_terms = sum(X.shape[0] for X in self.structure._matrices(self.X))
        sizes = self.structure._mean_sizes(self.X, self.weights)
        if np.size(sizes) != self.structure.n_weights_:
            # The joint features of a subclass are not those of its parent.
            sizes = 0.0
        return Rounding(sizes, max(n_terms, len(self.weights)))

    def make_oracle(self):
        """A new dual state, for one solver only."""
        if self.allowed is None:
            return oracle_of(self.structure, self.X, self.y)
        return oracle_of(self.structure, self.X, self.y, known=self.allowed)

    def make_completions(self):
        """The oracle of the allowed labelings, if labels are hidden."""
        allowed = self.allowed
        return oracle_of(self.structure, self.X, self.y, allowed, known=allowed)

    def completed(self, w):
        """Completions of the passed labelings, by the structure's own method."""
        found = []
        for i, (x, y) in enumerate(zip(self.X, self.partial, strict=True)):
            labeling = self.structure.complete(x, y, w)
            labeling_key(Answer("complete", self.structure, i), labeling)
            found.append(labeling)
        return found

    def make_iterate(self, lam, steps, rng=None, state=None):
        """The iterate of `steps`, from a state of the same examples; resolved options.

        Without `rng`, the steps of a pass are drawn elsewhere.
        """
        iterate, resolved = steps.start(self, lam, state)
        iterate.rounding = self.rounding
        return iterate, resolved

    def make_sums(self):
        """The oracle of the log-loss, weights of its blocks, and mean squares."""
        squares = self.structure._mean_squares(self.X, self.weights)
        sums = self.structure._make_sums(self.X, self.y)
        return sums, self.weights, squares

    def make_curvature(self):
        """The second derivatives of the log-loss, of a chain."""
        return self.structure._make_curvature(self.X, self.weights)

    def make_risk(self, kind, options):
        """A risk of the class `kind`, with these further arguments."""
        y = self.y
        if not self.structure.multi_label:
            y = encode(y, self.structure.classes_)
        self.risk = kind(self.X, y, self.weights, **options)
        return self.risk

    def with_threshold(self, weights):
        """The ranking structure with the best threshold for the scores."""
        return self.structure.with_threshold(self.X, self.y, weights, self.weights)


def check_flat(estimator, X, y):
    """X and y as scikit-learn's linear classifiers check them."""
    refuse_tokens(X)
    X, y = as_canonical(X), as_canonical(y, "y")
    refuse_masked("X", X)
    refuse_missing(y)
    if isinstance(y, (list, tuple)):
        y = as_array("y", y)
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        multi_output=True,
    )
    check_classification_targets(y)
    if sparse.issparse(y):
        y = y.toarray()
    if y.ndim == 2 and y.shape[1] == 1 and not wants_indicator(estimator.structure):
        y = column_or_1d(y, warn=True)
    return X, y


def check_takes_hidden(estimator, structure, entries):
    """Raise ValueError if hidden labels are not supported."""
    i, t = first_hidden(entries)
    where = f"y[{i}] has a label that is not known ({structure._place} {t}), of which"
    if not estimator.takes_hidden_labels:
        raise ValueError(
            f"{where} {type(estimator).__name__} cannot learn: use CRFClassifier or "
            f"BCFWClassifier, or leave out the {structure._place}s without a label."
        )
    if type(structure).make_oracle is not type(structure)._compiled_oracle:
        raise ValueError(
            f"{where} {type(structure).__name__} cannot learn, as it overrides "
            "loss_augmented_decode of a structure of the library."
        )
    refuse_sparse(estimator)


def warn_of_unnamed(structure, y):
    """Count the labels that are None or NaN: an accident, such as a join, makes them."""
    places = find_unnamed(y, structure._labels_of)
    if places:
        n_labels = sum(len(structure._labels_of(own)) for own in y)
        i, t = places[0]
        warn_caller(
            f"Labels in y that are None or NaN: {len(places)} of {n_labels}, the first "
            f"one at y[{i}][{t}]. They count as unknown, and the fit learns from the "
            "others. If this is meant, put structures.MISSING in their places.",
            UserWarning,
        )


def warn_of_odd_classes(structure, y):
    """Say so if most classes occur once: words or identifiers in the place of labels."""
    k = len(structure.classes_)
    if k <= FEW_CLASSES:
        return
    counts = np.bincount(structure._encode(y), minlength=k)
    n_once = np.count_nonzero(counts == 1)
    if 2 * n_once > k:
        label = plain(structure.classes_[counts == 1][0])
        warn_caller(
            f"{n_once} of {k} labels in y occur once, such as {label!r}. Make sure that "
            "they are labels, and no words or identifiers.",
            UserWarning,
        )


def refuse_sparse(estimator):
    """ValueError if the penalty has an L1 norm, which hidden labels do not go with."""
    given = estimator.l1_ratios
    ratio = estimator.l1_ratio if given is None else max(given, default=0.0)
    if ratio > 0.0:
        raise ValueError(
            f"y has labels that are not known, of which a fit with l1_ratio={ratio} "
            "cannot learn: use l1_ratio=0."
        )


def check_completes(estimator, structure):
    """Raise ValueError if the estimator does not support structures with `complete`."""
    # Their likelihoods are sums, which no structure in Python has.
    if not estimator.takes_completions:
        raise ValueError(
            f"{type(structure).__name__} has a method `complete`, for labelings of which "
            f"a part is hidden, of which {type(estimator).__name__} cannot learn: use "
            "BCFWClassifier."
        )
    refuse_sparse(estimator)


def without_empty(kept, X, y, sample_weight=None):
    """The nonempty checked examples, and their weights."""
    if len(kept) == len(X):
        return X, y, sample_weight
    if not kept:
        raise ValueError("X is empty: no example has anything to label.")
    weights = check_weights(sample_weight, len(X))[kept]
    return [X[i] for i in kept], [y[i] for i in kept], weights


def _check_class_weight(structure, class_weight):
    """ValueError if no class has a weight."""
    if isinstance(class_weight, dict) and structure.has_classes:
        if all(class_weight.get(label, 1.0) == 0.0 for label in structure.classes_):
            raise ValueError("class_weight must not be zero for every class.")


def example_weights(structure, X, y, sample_weight):
    """s_i with the class weights."""
    n_samples = X.shape[0] if structure.flat else len(X)
    weights = check_weights(sample_weight, n_samples)
    if structure.flat:
        by_class = structure.example_weights(y)
        if by_class is not None:
            answer = Answer("example_weights", structure)
            by_class = answer.array(by_class, n_samples, least=0.0)
            with np.errstate(over="ignore"):
                weights = weights * by_class
    return weights


def check_scale(estimator, problem, C=None):
    """ValueError if squares of the features, the bias or the weights overflow.

    And if X has NaN or infinity, which scikit-learn's `assume_finite` may have let pass.
    `C` is the largest value tried, if it is not the estimator's.
    """
    largest, bias = problem.largest_feature(), getattr(problem.structure, "bias_", 0.0)
    if not (isfinite(largest) or largest == bias):
        raise ValueError(
            f"X contains NaN or infinity: the value {largest} was found. With "
            "assume_finite=True, make sure before the fit that it does not."
        )
    length = largest * sqrt(problem.structure.n_weights_)
    if length > MAX_NORM:
        if largest == bias:
            raise ValueError(
                f"intercept_scaling={largest:.3g} is too large: its square overflows."
            )
        raise ValueError(
            f"X has features as large as {largest:.3g}, and their squares overflow. "
            "Scale them down, for example with sklearn.preprocessing.MaxAbsScaler."
        )
    # ||w|| <= C Σ_i s_i ||x_i||. With an L1 penalty there are no squares of w.
    C = getattr(estimator, "C", 0.0) if C is None else C
    if estimator.penalty == "l2" and length * C * float(problem.total) > MAX_NORM:
        raise ValueError(
            f"C={C} is too large for features as large as {largest:.3g} and a sum of "
            f"weights of {problem.total:.3g}, as squares of C Σ_i s_i x_i overflow: "
            "scale the features down, or try a smaller C."
        )
