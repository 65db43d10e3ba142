"""From (X, y, sample_weight) to a solver's problem.

`bind_data` determines where the data are. It returns a `LocalProblem` or a
`RemoteProblem`, which have the same methods.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt

import numpy as np

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.labels import encode, plain
from sklearn_structsvm._utils.tables import column_names, names_of_items
from sklearn_structsvm._utils.tolerances import HUGE
from sklearn_structsvm._utils.weights import (
    check_weights,
    normalized_lambda,
    total_weight,
)
from sklearn_structsvm.distributed.rows import read_rows
from sklearn_structsvm.distributed.sequences import read_sequences
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.fingerprints import fingerprints
from sklearn_structsvm.estimators.inner import feature_attributes
from sklearn_structsvm.estimators.named_structures import (
    class_options,
    fresh,
    has_exact_steps,
    named_structure,
    wants_indicator,
)
from sklearn_structsvm.estimators.options import check_dask_options
from sklearn_structsvm.reading.fit_data import FitData
from sklearn_structsvm.reading.targets import Targets, read_targets
from sklearn_structsvm.solvers.loop import Rounding
from sklearn_structsvm.structures import ChainStructure, Structure
from sklearn_structsvm.structures.answers import oracle_of
from sklearn_structsvm.structures.nodes import NodeStructure


def bind_data(estimator, X, y, sample_weight=None):
    """Check the data, and fit a clone of the structure to them, wherever they are.

    Reads `structure`, `classes`, `class_weight`, `fit_intercept` and `intercept_scaling`
    of the estimator, and sets its `n_features_in_` (and `feature_names_in_`).

    Returns a LocalProblem or RemoteProblem, a context that releases remote data.
    """
    data = FitData(X, y, sample_weight)
    return bind_remote(estimator, data) if data.is_remote else _bind(estimator, data)


def bind_local(estimator, X, y, sample_weight=None, *, warns=True):
    """The `LocalProblem` of data in memory. Other data raise an error.

    With ``warns=False`` labels that look wrong are not said, as in the folds of a fit.
    """
    return _bind(estimator, FitData(X, y, sample_weight), warns)


def _bind(estimator, data, warns=True):
    data.check_local()
    label_names = column_names(data.y)
    structure = named_structure(estimator.structure)
    flat = not data.has_items if structure is None else structure.flat
    if flat:
        data.check_rows(estimator, wants_indicator(estimator.structure))
    X, y, sample_weight = data.X, data.y, data.sample_weight
    if structure is None:
        classes = estimator._options.classes
        structure = estimator._infer_structure(not flat, y, classes)
    else:
        structure = fresh(structure)
    if flat:
        targets = Targets(y)
    else:
        require_y(estimator, y)
        targets = read_targets(estimator, structure, y, warns=warns)
        names = names_of_items(X)
        X = targets.check(structure, X)
    X = structure._with_own_indices(X)
    given = X, targets.given
    if not flat:
        X, sample_weight = targets.leave_out_empty(structure, X, sample_weight)
    options = class_options(estimator, structure)
    if flat:
        scaling = estimator._options.intercept_scaling if estimator.fit_intercept else 0.0
        options["bias"] = scaling
    targets.fit(structure, X, **options)
    if structure.multi_label and label_names and isinstance(label_names[0], str):
        structure._label_names = label_names
    if not flat:
        vars(estimator).update(feature_attributes(structure))
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    _check_class_weight(structure, estimator.class_weight)
    if warns and isinstance(structure, NodeStructure):
        warn_of_odd_classes(structure, targets.y)
        warn_of_padding(structure, targets.y)
    weights = example_weights(structure, X, targets.y, sample_weight)
    total = total_weight(weights, "sample_weight (times class_weight)")
    problem = LocalProblem(structure, X, targets, weights / total, total, given)
    check_scale(estimator, problem)
    return problem


def bind_remote(estimator, data):
    """The `RemoteProblem` of Dask collections.

    These are chunked rows, or else bags or lists of delayed parts of examples.
    """
    X, y, sample_weight = data.X, data.y, data.sample_weight
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
        vars(estimator).update(feature_attributes(problem.structure))
    try:
        check_scale(estimator, problem)
    except BaseException:
        problem.release()
        raise
    return problem


@dataclass
class LocalProblem:
    """Training data in memory, bound to a fitted structure.

    `X` as checked. `targets`: y, and what is known of it. `weights` (n,): s_i / Σs.
    `costs` (k, k) or None: what softmax-margin adds to the scores of wrong labels.
    `total`: Σs, so that λ = 1 / (C total). `given` (X, y): the same including empty
    examples, which fits do not see, and with hidden labels as they were passed. `risk`
    or None: the risk of a batch solver, after `make_risk`.
    """

    structure: Structure
    X: object
    targets: Targets
    weights: np.ndarray
    total: float
    given: tuple
    risk: object = None
    costs: np.ndarray | None = None

    is_remote = False

    @property
    def y(self):
        """Labelings: if labels are hidden, any that fit what is known."""
        return self.targets.y

    @property
    def allowed(self):
        """The labels that nodes may have, if labels of these are hidden, or None."""
        return self.targets.allowed

    @property
    def has_hidden(self):
        """Whether y has hidden parts."""
        return self.targets.has_hidden

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        """Do nothing: all data are local."""

    def lam(self, C):
        return normalized_lambda(C, self.total)

    @cached_property
    def fingerprints(self):
        """Numbers that identify the examples."""
        return fingerprints(self.X, self.targets.known())

    def largest_feature(self):
        """The largest absolute value of a feature, as far as known."""
        return self.structure._largest_feature(self.X)

    @cached_property
    def rounding(self):
        """The `Rounding` of means over the examples."""
        n_terms = sum(X.shape[0] for X in self.structure._all_matrices(self.X))
        sizes = self.structure._mean_sizes(self.X, self.weights)
        if np.size(sizes) != self.structure.n_weights_:
            # The joint features of a subclass are not those of its parent.
            sizes = 0.0
        return Rounding(sizes, max(n_terms, len(self.weights)))

    def make_oracle(self):
        """A new dual state, for one solver only."""
        known = {} if self.allowed is None else {"known": self.allowed}
        return oracle_of(self.structure, self.X, self.y, **known | self._added())

    def _added(self):
        """The costs as arguments of an oracle."""
        if self.costs is None:
            return {}
        known = {} if self.allowed is None else {"known": self.allowed}
        return {"added": self.costs} | known

    def make_completions(self):
        """The oracle of the allowed labelings, if labels are hidden."""
        allowed = self.allowed
        return oracle_of(self.structure, self.X, self.y, allowed, known=allowed)

    def make_completed_sums(self):
        """The sums over the allowed labelings."""
        allowed = {"allowed": self.allowed, "known": self.allowed}
        return self.structure._make_sums(self.X, self.y, **allowed)

    def completed(self, w):
        """Completions of the passed labelings, by the structure's own method."""
        return self.targets.completed(self.structure, self.X, w)

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
        sums = self.structure._make_sums(self.X, self.y, **self._added())
        return sums, self.weights, squares

    def make_curvature(self, labels=None, centers=None):
        """The second derivatives of the sums over labelings of a chain, or of some."""
        added = None
        # Labels that may be true have no costs.
        if self.costs is not None and labels is None:
            truth = self.structure._truth(self.X, self.y)
            costs, rows = self.structure._added_costs(
                self.costs, self.y, truth, self.allowed
            )
            added = costs[rows]
        options = {"labels": labels, "added": added, "centers": centers}
        return self.structure._make_curvature(self.X, self.weights, **options)

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


def warn_of_odd_classes(structure, y):
    """Say so if most classes occur once: words or identifiers in the place of labels."""
    k = len(structure.classes_)
    # Up to here it is no surprise if most classes are rare; scikit-learn's warning of as
    # many classes as rows begins there, too.
    if k <= 20:
        return
    counts = np.bincount(structure._encode(y), minlength=k)
    n_once = np.count_nonzero(counts == 1)
    if 2 * n_once > k:
        label = plain(structure.classes_[counts == 1][0])
        warn_caller(
            f"{n_once} of {k} labels in y occur once, such as {label!r}. Make sure that "
            "these are labels, not words or identifiers, and that X and y are not "
            "swapped.",
        )


def warn_of_padding(structure, y):
    """Say so if sequences of one length have -1 at their ends, and nowhere else."""
    classes, y = structure.classes_, list(map(structure._labels_of, y))
    is_one = isinstance(structure, ChainStructure) and len(set(map(len, y))) == 1
    if not is_one or classes.dtype.kind != "i" or classes[0] != -1 or len(classes) <= 2:
        return
    padded = np.stack([structure._encode([own]) == 0 for own in y])
    if padded[:, 0].any() or (padded[:, :-1] > padded[:, 1:]).any():
        return
    warn_caller(
        "All sequences have the same length, and the label -1 is only at their ends, "
        "like padding. It is learned as a label. If it is padding, cut it off: "
        "X[i][y[i] != -1] and y[i][y[i] != -1].",
    )


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
    largest = problem.largest_feature()
    bias = problem.structure.bias_ if problem.structure.flat else 0.0
    if not (isfinite(largest) or largest == bias):
        raise ValueError(
            f"X contains NaN or infinity: the value {largest} was found. With "
            "assume_finite=True, make sure before the fit that it does not."
        )
    length = largest * sqrt(problem.structure.n_weights_)
    if length > HUGE:
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
    if estimator.penalty == "l2" and length * C * float(problem.total) > HUGE:
        raise ValueError(
            f"C={C} is too large for features as large as {largest:.3g} and a sum of "
            f"weights of {problem.total:.3g}, as squares of C Σ_i s_i x_i overflow: "
            "scale the features down, or try a smaller C."
        )
