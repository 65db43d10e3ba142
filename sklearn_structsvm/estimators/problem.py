"""From (X, y, sample_weight) to the problem that a solver knows, and back."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from sklearn_structsvm._utils._matrix._rows import Rows
from sklearn_structsvm._utils.arrays import refuse_foreign
from sklearn_structsvm._utils.borders import check_sparse, is_empty
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.labels import as_classes, encode, refuse_missing
from sklearn_structsvm._utils.weights import (
    check_weights,
    normalised_lambda,
    total_weight,
)
from sklearn_structsvm.distributed.dask_problem import make_dask_problem
from sklearn_structsvm.distributed.dask_sequences import make_dask_sequences
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.solvers.blocks._exact_blocks import ClassAscent, LabelAscent
from sklearn_structsvm.solvers.blocks._joint_oracle import JointOracle
from sklearn_structsvm.solvers.loop import WRONG_ORACLE, WRONG_SUMS
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    GraphStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    Structure,
    TreeStructure,
)
from sklearn_structsvm.structures.validation import refuse_tokens

# Structures that need no arguments, by the names that `structure` takes for them.
STRUCTURES = {
    "binary": BinaryStructure,
    "chain": ChainStructure,
    "graph": GraphStructure,
    "multiclass": MulticlassStructure,
    "multilabel": MultilabelStructure,
    "pairwise": PairwiseMultilabelStructure,
    "tree": TreeStructure,
}
StructureName = Literal[
    "auto", "binary", "chain", "graph", "multiclass", "multilabel", "pairwise", "tree"
]
STRUCTURE_CONSTRAINT = [StrOptions({"auto", *STRUCTURES}), Structure]


# What is no longer than this has a square in float64, and so has a sum of many.
LONGEST = 1e150


@dataclass
class Problem:
    """Training data bound to a fitted structure.

    Attributes
    ----------
    structure : Structure
    X, y : as checked
    weights : ndarray of shape (n,)
        s_i / Σs.
    total : float
        Σs, so that λ = 1 / (C total).
    given : (X, y)
        The same with the examples that have nothing to label, which no fit is told of.
    risk : Risk or None
        What a batch solver minimises, once it is made.
    """

    structure: Structure
    X: object
    y: object
    weights: np.ndarray
    total: float
    given: tuple
    risk: object = None

    def make_oracle(self):
        """A fresh dual state; only one solver may use it."""
        return self.structure.make_oracle(self.X, self.y)

    def lam(self, C):
        return normalised_lambda(C, self.total)

    def make_risk(self, kind, options):
        """A risk of the class `kind`, with these further arguments."""
        y = self.y
        if not self.structure.multi_label:
            y = encode(y, self.structure.classes_)
        return kind(self.X, y, self.weights, **options)

    def largest_feature(self):
        """The largest absolute value of a feature, as far as the structure knows."""
        return self.structure._largest_feature(self.X)

    def release(self):
        """Let go of what is kept elsewhere for a fit: nothing, with data in memory."""

    def with_threshold(self, weights):
        """The structure, a ranking, with the threshold that suits the scores best."""
        return self.structure.with_threshold(self.X, self.y, weights, self.weights)


def check_scale(estimator, problem, C=None):
    """ValueError where squares of the features, or of the weights, overflow.

    `C` is the largest that is tried, where that is not the estimator's.
    """
    largest = problem.largest_feature()
    length = largest * sqrt(problem.structure.n_weights_)
    if length > LONGEST:
        raise ValueError(
            f"X has features as large as {largest:.3g}, and their squares overflow. "
            "Scale them down, for example with sklearn.preprocessing.MaxAbsScaler."
        )
    # ||w|| <= C Σ_i s_i ||x_i||; with an L1 penalty there are no squares of w.
    C = getattr(estimator, "C", 0.0) if C is None else C
    has_squares = getattr(estimator, "penalty", "l2") == "l2"
    if has_squares and length * C * float(problem.total) > LONGEST:
        raise ValueError(
            f"C={C} is too large for features as large as {largest:.3g} and a sum of "
            f"weights of {problem.total:.3g}, as squares of C Σ_i s_i x_i overflow: "
            "scale the features down, or try a smaller C."
        )


def check_remote_scale(estimator, problem):
    """`check_scale` of a problem whose examples the workers then forget."""
    try:
        check_scale(estimator, problem)
    except BaseException:
        problem.__exit__()
        raise
    return problem


def named_structure(structure):
    """The Structure that a `structure` parameter names, or None where data decide.

    Tags are asked for before parameters are checked: a wrong name is None as well.
    """
    if not isinstance(structure, str):
        return structure
    return STRUCTURES[structure]() if structure in STRUCTURES else None


def fresh(structure):
    """One that is not fitted, once its parameters are seen to be sound."""
    structure = clone(structure)
    structure._check_parameters()
    return structure


def is_flat(structure):
    """Whether a `structure` parameter means one row of X per example, so far known."""
    structure = named_structure(structure)
    # Of a damaged one the methods themselves tell.
    return getattr(structure, "flat", True)


def _holds_sequences(X):
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return X.ndim == 3
    is_frame = hasattr(X, "iloc") and X.ndim != 1
    if sparse.issparse(X) or is_frame or not hasattr(X, "__len__"):
        return False
    first = next((x for x in X if not is_empty(x)), None)
    try:
        return sparse.issparse(first) or np.ndim(first) == 2
    except ValueError:  # a row of rows of different lengths
        return False


def read_structure(X, y, classes):
    """What structure="auto" stands for."""
    if _holds_sequences(X):
        return ChainStructure()
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return MultilabelStructure()
    if kind not in ("binary", "multiclass"):
        check_classification_targets(y)
        raise ValueError(
            f"structure='auto' does not support y of type {kind!r}. Supported are "
            "binary, multiclass and multilabel-indicator targets, and label sequences."
        )
    n_classes = len(np.unique(y) if classes is None else as_classes(classes))
    return BinaryStructure() if n_classes <= 2 else MulticlassStructure()


def check_flat(estimator, X, y):
    """X and y as scikit-learn's linear classifiers check them."""
    refuse_tokens(X)
    for name, data in (("X", X), ("y", y)):
        check_sparse(data, name)
    refuse_missing(y)
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=np.float64,
        order="C",
        multi_output=True,
    )
    check_classification_targets(y)
    if sparse.issparse(y):
        y = y.toarray()
    if y.ndim == 2 and y.shape[1] == 1 and not wants_indicator(estimator.structure):
        y = column_or_1d(y, warn=True)
    return X, y


def wants_indicator(structure):
    """Whether a named structure takes a column for an indicator of one label."""
    return getattr(named_structure(structure), "multi_label", False)


def make_problem(estimator, X, y, sample_weight=None, read=read_structure):
    """Check everything, then fit a clone of the structure to it.

    Reads `structure`, `classes`, `class_weight`, `fit_intercept` and
    `intercept_scaling` of the estimator, and sets its `n_features_in_` (and
    `feature_names_in_`). What structure="auto" stands for, `read` says of X, y and the
    classes.

    Returns
    -------
    Problem
    """
    refuse_foreign(X=X, y=y, sample_weight=sample_weight)
    structure = named_structure(estimator.structure)
    if isinstance(X, (list, tuple)) and len(X) == 0:
        raise ValueError("X is empty: at least one example is needed.")
    flat = not _holds_sequences(X) if structure is None else structure.flat
    if flat:
        X, y = check_flat(estimator, X, y)
    if structure is None:
        structure = read(X, y, estimator.classes)
    else:
        structure = fresh(structure)
    if not flat:
        require_y(estimator, y)
        X, y = structure.check_data(X, y)
    given = X, y
    if not flat:
        X, y, sample_weight = without_empty(structure, X, y, sample_weight)
    options = class_options(estimator, structure)
    if flat:
        scaling = estimator.intercept_scaling if estimator.fit_intercept else 0.0
        options["bias"] = scaling
    structure.fit(X, y, **options)
    if not flat and hasattr(structure, "n_features_in_"):
        estimator.n_features_in_ = structure.n_features_in_
    _check_class_weight(structure, estimator.class_weight)
    weights = example_weights(structure, X, y, sample_weight)
    total = total_weight(weights, "sample_weight (times class_weight)")
    problem = Problem(structure, X, y, weights / total, total, given)
    check_scale(estimator, problem)
    return problem


def without_empty(structure, X, y, sample_weight=None):
    """Checked examples, and their weights, without those that have nothing to label."""
    kept = [i for i, x in enumerate(X) if not structure._is_empty(x)]
    if len(kept) == len(X):
        return X, y, sample_weight
    if not kept:
        raise ValueError("X is empty: no example has anything to label.")
    weights = check_weights(sample_weight, len(X))[kept]
    return [X[i] for i in kept], [y[i] for i in kept], weights


# What parameters may be where the examples stay with the workers of a cluster.
DASK_OPTIONS = {
    "solver": ("bcfw",),
    "algorithm": ("block",),
    "average": (False, "auto"),
    "step": ("auto", "exact", "corrective", "pairwise", "away"),
    "sampling": ("auto", "permuted"),
    "warm_start": (False,),
}


def make_distributed_problem(estimator, X, y, sample_weight, options=DASK_OPTIONS):
    """As `make_problem`, of Dask collections.

    These are chunked rows, or else bags or lists of delayed parts of examples. `options`
    has what parameters may be.

    Returns
    -------
    DaskProblem or DaskSequences
        A context, at whose end the workers forget the parts.
    """
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
    for name, allowed in options.items():
        value = getattr(estimator, name, allowed[0])
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} needs data in memory; with Dask it must be "
                f"{' or '.join(map(repr, allowed))}."
            )
    if has_rows:
        named = None if structure is None else lambda *labels: structure
        problem = make_dask_problem(
            estimator, X, y, sample_weight, named or read_structure
        )
        return check_remote_scale(estimator, problem)
    if structure is None:
        structure = ChainStructure()
    known = class_options(estimator, structure)
    problem = make_dask_sequences(structure, X, y, sample_weight, **known)
    if hasattr(problem.structure, "n_features_in_"):
        estimator.n_features_in_ = problem.structure.n_features_in_
    return check_remote_scale(estimator, problem)


def class_options(estimator, structure):
    """`classes` and `class_weight` for a structure that has classes, {} for others."""
    options = {name: getattr(estimator, name) for name in ("classes", "class_weight")}
    if structure.has_classes:
        return options
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be used with {type(structure).__name__}; leave it at "
                "None."
            )
    return {}


def _check_class_weight(structure, class_weight):
    """ValueError where no class has a weight."""
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
            with np.errstate(over="ignore"):
                weights = weights * by_class
    return weights


def check_bounds(coef_bounds, structure):
    """`coef_bounds`, within those of the structure, as two vectors of the length of w.

    Returns
    -------
    tuple of two ndarrays, or None
        None where there are neither.

    Raises
    ------
    ValueError
        For NaN, a shape other than that of `coef_`, or lower > upper.
    """
    own = structure.weight_bounds()
    if coef_bounds is None:
        return own
    if len(coef_bounds) != 2:
        raise ValueError(
            f"coef_bounds must be a pair (lower, upper); got {len(coef_bounds)} item(s)."
        )
    coef, intercept = structure.split_weights(np.zeros(structure.n_weights_))
    sides = []
    for name, side, free in zip(
        ("lower", "upper"), coef_bounds, (-np.inf, np.inf), strict=True
    ):
        try:
            side = np.broadcast_to(np.asarray(side, dtype=np.float64), coef.shape)
        except ValueError as error:
            raise ValueError(
                f"The {name} bound of coef_bounds must be a number or have the shape of "
                f"coef_, {coef.shape}; got shape {np.shape(side)}."
            ) from error
        if np.isnan(side).any():
            raise ValueError(f"The {name} bound of coef_bounds has NaN.")
        if intercept is not None:
            intercept = np.full_like(intercept, free)
        sides.append(structure.join_weights(side, intercept).astype(np.float64))
    lower, upper = sides
    if own is not None:
        lower, upper = np.maximum(lower, own[0]), np.minimum(upper, own[1])
    if (lower > upper).any():
        at = int(np.flatnonzero(lower > upper)[0])
        raise ValueError(
            f"coef_bounds has a lower bound above the upper one: {lower[at]} > "
            f"{upper[at]} for weight {at}."
        )
    return lower, upper


def refuse_bounds(structure, what):
    """ValueError where a structure bounds its weights, for what does not keep to that."""
    if structure.weight_bounds() is not None:
        raise ValueError(
            f"{type(structure).__name__} bounds its weights, which {what} does not "
            "support. Use BCFWClassifier, or a structure without bounds, such as "
            "GraphStructure(attractive=False) or PictorialStructure(..., convex=False)."
        )


def wrong_words(*parts):
    """What is wrong where a gap is below zero, by what the gap is made of.

    Structures and losses of the library are not the user's to mend.
    """
    ours = __name__.partition(".")[0], "builtins"
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    return WRONG_SUMS if packages.issubset(ours) else WRONG_ORACLE


def check_nothing_to_learn(problem):
    """What to tell where weights of zero are the optimum, and cost nothing.

    Either no labeling has a loss, or the oracle missed those that do, as a user's may if
    it took the least of the losses, zero, for the largest. But then it finds something
    worse than the true labeling, whose value is 0, for other weights.

    Returns
    -------
    bool
        False where weights of zero do cost something.

    Raises
    ------
    ValueError
        Where it does.
    """
    oracle = problem.make_oracle()
    joint = JointOracle(oracle, problem.weights)
    wrong = wrong_words(problem.structure)
    direction = np.random.default_rng(0).standard_normal(oracle.n_weights)
    # Scores are to exceed losses, whatever the units of the features.
    for scale in (0.0, 1.0, 1e4, 1e8):
        value = joint.ask(scale * direction)
        joint.forget()
        if scale == 0.0 and value > 0.0:
            return False
        if wrong == WRONG_ORACLE and joint.lowest_gap < 0.0:
            raise ValueError(f"The objective is zero at zero weights: {wrong}")
    warn_caller(
        "There is nothing to learn: every possible output of every example has loss 0.",
        UserWarning,
    )
    return True


def has_exact_steps(structure):
    """Whether the best dual point of one example is known in closed form.

    A subclass may have changed what is predicted, or what it costs.
    """
    return type(structure) in (BinaryStructure, MulticlassStructure, MultilabelStructure)


def make_ascent(problem, lam):
    """A fresh `ExactAscent` for a `Problem` whose structure has exact steps."""
    structure, y, costs = problem.structure, problem.y, problem.structure.label_costs_
    rows = Rows(problem.X, structure.bias_)
    if isinstance(structure, MultilabelStructure):
        return LabelAscent(rows, structure._encode(y), costs, problem.weights, lam)
    codes = encode(y, structure.classes_)
    if isinstance(structure, BinaryStructure):
        indicator = codes[:, np.newaxis].astype(np.int8)
        costs = np.array([[costs[0, 1], costs[1, 0]]])
        return LabelAscent(rows, indicator, costs, problem.weights, lam)
    return ClassAscent(rows, codes, costs, problem.weights, lam)
