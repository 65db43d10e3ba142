"""The base class of all structures, built-in and user-defined."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.borders import (
    as_floats,
    check_classes,
    check_floats,
    check_sequence,
)
from sklearn_structsvm._utils.columns import largest_entry
from sklearn_structsvm._utils.documentation import DocumentedMixin
from sklearn_structsvm._utils.fitted import FittedAttributes
from sklearn_structsvm._utils.tables import from_column
from sklearn_structsvm.structures._callback import CallbackOracle, labeling_key


class Structure(FittedAttributes, DocumentedMixin, BaseEstimator):
    r"""Base class of structures: joint features, loss and decoders of a kind of output.

    Subclass it for outputs of your own. Predictions are

    .. math:: \arg\max_y \; \langle w, \phi(x, y) \rangle,

    and the weight vector w is learned so that the true output of each training example
    scores higher than any other by a margin that depends on their loss. Write four
    methods in plain Python:

    ``joint_feature(x, y)``
        :math:`\phi(x, y)`, as an ndarray of shape (d,) or a sparse row of shape (1, d).
        d must not depend on x or y.
    ``loss(y_true, y)``
        A float that is at least 0, and 0 for ``y == y_true``.
    ``decode(x, w)``
        A maximizer of :math:`\langle w, \phi(x, y) \rangle` over y.
    ``loss_augmented_decode(x, y_true, w, lam=1.0)``
        The max-oracle of training: a maximizer of
        :math:`\langle w, \phi(x, y) \rangle + \lambda \, L(y_{true}, y)` over y, for the
        loss L. It must be exact, or the reported duality gap is invalid.

    For slack rescaling, add one of

    ``constrained_decode(x, y_true, w, lam, alpha, beta, ...)``
        The same maximum over labelings that satisfy two linear constraints, for angular
        search. See below.
    ``slack_augmented_decode(x, y_true, w, one=1.0)``
        A maximizer of :math:`L(y_{true}, y) \, (\mathrm{one} + \langle w, \phi(x, y) -
        \phi(x, y_{true}) \rangle)` over y, if you know how to maximize this product. No
        search is then needed.

    If a part of each output is not in y, such as the place of an object, add

    ``complete(x, y, w)``
        A maximizer of :math:`\langle w, \phi(x, y') \rangle` over the complete outputs y'
        that agree with y; a guess if w is None. The loss must not depend on what is not
        in y. `BCFWClassifier` then learns with latent variables, see :ref:`guide-latent`.

    `x` and `y` are the items of the X and y passed to `fit`, unchanged. `w` is read-only.
    A labeling may be an array, a (nested) list, tuple or dict, or any hashable value. It
    must not be changed after it was returned. All labelings of one example must have the
    same length, unless the class attribute ``variable_length`` is True. Declare
    parameters as in any scikit-learn estimator: as arguments of ``__init__``, stored
    under their names. A grid search reaches them as ``structure__name``.

    `check_structure` tests all this on your data. It finds mistakes more reliably if the
    method ``labelings(x)`` lists all labelings.

    Compiled code does not call Python methods. A subclass of a built-in structure that
    overrides `loss_augmented_decode` is therefore trained with its own methods rather
    than the compiled ones, and predicts with its own `decode`. Overriding `joint_feature`
    or `loss` alone raises a TypeError. The attributes `has_constrained_decode` and
    `has_slack_augmented_decode`, and the method `labelings`, are not inherited by a class
    that overrides the decoders.

    Read more in the :ref:`User Guide <guide-custom>`.

    See Also
    --------
    check_structure : Tests whether a structure satisfies these requirements.
    ChainStructure : Label sequences.
    MulticlassStructure : One of several classes.
    MultilabelStructure : Several independent labels.

    Examples
    --------
    A structure that chooses the better of two items. Each x has one row of features per
    item:

    >>> import numpy as np
    >>> from sklearn_structsvm import BCFWClassifier
    >>> from sklearn_structsvm.structures import Structure
    >>> class BetterOfTwo(Structure):
    ...     def joint_feature(self, x, y):
    ...         return x[y]
    ...
    ...     def loss(self, y_true, y):
    ...         return float(y_true != y)
    ...
    ...     def decode(self, x, w):
    ...         return int(np.argmax(x @ w))
    ...
    ...     def loss_augmented_decode(self, x, y_true, w, lam=1.0):
    ...         return int(np.argmax(x @ w + lam * (np.arange(2) != y_true)))
    >>> X = [np.array([[1.0, 0.2], [0.1, 0.9]]), np.array([[0.0, 0.7], [0.9, 0.1]])]
    >>> model = BCFWClassifier(BetterOfTwo(), random_state=0).fit(X, [0, 1])
    >>> model.predict(X).tolist()
    [0, 1]
    """

    _public_module = "sklearn_structsvm.structures"
    # The valid values of parameters, as in scikit-learn's estimators. Parameters that are
    # not listed are not checked.
    _parameter_constraints: dict[str, Any] = {}
    # Whether X is a 2-D array with a row per example, and y as for scikit-learn's
    # classifiers.
    flat = False
    # Whether labels are encoded by `classes_`, so that `classes` and `class_weight` of an
    # estimator apply.
    has_classes = False
    # Whether compiled dual blocks are marginals of labels, independently of the features.
    _dual_is_of_labels = False
    # Whether labelings of one example may differ in length. If not, a wrong length is an
    # error during training.
    variable_length = False
    # Whether `loss_augmented_decode` chooses from more than the labelings, as a linear
    # program may. Then `decode` need not be exact.
    relaxed = False
    # Whether `constrained_decode` (needed by angular search) and `slack_augmented_decode`
    # are available: True for a class that defines the method.
    has_constrained_decode = False
    has_slack_augmented_decode = False
    # Whether sums over all labelings are available, as conditional random fields need
    # them: True for a class that defines `marginals` and whose oracle `has_sums`.
    has_sums = False
    # The type of y in scikit-learn's tags, for rows.
    multi_class = multi_label = False
    # The names that the columns of y had in `fit`, if there were several labels.
    _label_names: list[str] | None = None
    # How labelings are found, for those that have several ways.
    inference: Any = None
    # Whether it learns around labels that are hidden: those of nodes, by `split_hidden`,
    # or its own, for a class that defines `complete`.
    splits_hidden = False
    completes = False
    # `make_oracle` of the class that has the decoders, if it is compiled.
    _compiled_oracle: Any = None
    # Whether upper bounds of the sums are available: True for a class that defines
    # `_make_sums`. `marginals` then belong to the bounds.
    has_bounded_sums = False

    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        """Remove inherited claims that the subclass's own methods invalidate."""
        super().__init_subclass__(**kwargs)
        cls.completes = hasattr(cls, "complete")
        if cls.make_oracle is not Structure.make_oracle:
            _check_overrides(cls)
            cls._compiled_oracle = cls.make_oracle
            if _place(cls, "loss_augmented_decode") < _place(cls, "make_oracle"):
                cls.make_oracle = Structure.make_oracle
        if cls.decode_batch is not Structure.decode_batch:
            cls._compiled_decode = cls.decode_batch
            if _place(cls, "decode") < _place(cls, "decode_batch"):
                cls.decode_batch = Structure.decode_batch
        for claim, method in CLAIMS.items():
            if _place(cls, method) < _place(cls, claim):
                setattr(cls, claim, True)
            elif _has_new_decoders(cls, claim):
                setattr(cls, claim, False)
        if _has_new_decoders(cls, "labelings"):
            cls.labelings = Structure.labelings

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Joint feature vector of an input and a labeling, of shape (d,)."""
        raise NotImplementedError(f"{type(self).__name__} must define joint_feature.")

    def loss(self, y_true: Any, y: Any) -> float:
        """Loss of predicting y if y_true is correct: nonnegative, and 0 for y_true."""
        raise NotImplementedError(f"{type(self).__name__} must define loss.")

    def decode(self, x: Any, w: np.ndarray) -> Any:
        """Find the labeling with the highest score."""
        raise NotImplementedError(f"{type(self).__name__} must define decode.")

    def loss_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, lam: float = 1.0
    ) -> Any:
        r"""Maximize score plus `lam` times loss: the λ-oracle.

        In the notation of slack rescaling it maximizes h(y) + lam · g(y), where
        :math:`h(y) = 1 + \langle w, \phi(x, y) - \phi(x, y_{true}) \rangle` and
        :math:`g(y) = L(y_{true}, y)`. With ``lam=1`` it is the max-oracle of margin
        rescaling.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define loss_augmented_decode."
        )

    def constrained_decode(
        self,
        x: Any,
        y_true: Any,
        w: np.ndarray,
        lam: float,
        alpha: float,
        beta: float,
        strict_alpha: bool = False,
        strict_beta: bool = True,
    ) -> Any:
        """Maximize h + `lam` g subject to β h < g ≤ α h; None if this is infeasible.

        This is the constrained λ-oracle of Choi, Meshi and Srebro (AISTATS 2016), eq.
        (8), with h and g as in `loss_augmented_decode`. `strict_alpha` makes the right
        inequality strict, and `strict_beta` (the default) the left one. `alpha` may be
        infinite, which requires only h > 0.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define constrained_decode."
        )

    def slack_augmented_decode(
        self, x: Any, y_true: Any, w: np.ndarray, one: float = 1.0
    ) -> Any:
        r"""Maximize the slack-rescaled violation directly, without a search.

        The maximized function is
        :math:`L(y_{true}, y) \, (\mathrm{one} + \langle w, \phi(x, y) -
        \phi(x, y_{true}) \rangle)`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define slack_augmented_decode."
        )

    def labelings(self, x: Any) -> Iterable[Any] | None:
        """Iterate over all labelings of x; None if they cannot be listed.

        `check_structure` compares the decoders with this list.
        """
        return None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn what the structure needs to know about the data; by default d.

        Parameters
        ----------
        X, y : sequences of n examples and labelings
            Training data.

        Returns
        -------
        self : object
            The structure, with `n_weights_` set to the dimension of the joint feature
            map.
        """
        if not self.flat:
            X, y = Structure.check_data(self, X, as_list(y, "y"))
        y_0 = self.complete(X[0], y[0], None) if self.completes else y[0]
        self.n_weights_ = Answer("joint_feature", self, 0).length(
            self.joint_feature(X[0], y_0)
        )
        return self

    def _fit_checked(self, X, y, **options):
        """`fit` to data as checked, which the library's own `fit` would check again."""
        if _place(type(self), "fit") < _place(type(self), "_learn_checked"):
            self.fit(X, y, **options)
        else:
            self._learn_checked(X, y, **options)

    def _check_anew(self, X, y):
        """X and y as an unfitted copy checks them: a new fit may be to other features."""
        self._check_parameters()
        return clone(self).check_data(X, as_list(y, "y"))

    def _check_parameters(self):
        """Raise an error for invalid parameters, unless scikit-learn skips validation."""
        if not get_config()["skip_parameter_validation"]:
            self._validate_params()

    def check_data(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        """Check that X and y have the same positive length. Returns them as lists."""
        X = as_list(X, "X")
        if y is None:
            return X, None
        y = as_list(y, "y")
        if len(X) != len(y):
            raise ValueError(
                f"X and y must have the same length; got {len(X)} and {len(y)}."
            )
        return X, y

    def _with_own_indices(self, X):
        """X as checked, for a fit: nobody else can change the indices in it."""
        return X

    def _labels_of(self, y):
        """What is predicted of a true labeling, which may hold more than that."""
        return y

    def _is_empty(self, x):
        """Whether a checked example has nothing to label."""
        return False

    def _n_entries(self, x):
        """The number of values of a checked example that compiled code copies."""
        return 0

    def make_oracle(self, X: Any, y: Any) -> BlockOracle:
        """Make the `BlockOracle` of training examples for a solver.

        By default it calls the methods of the structure in Python. Chains and trees
        accept y=None, for an oracle that only decodes and sums.
        """
        return CallbackOracle(self, self._items(X), list(y), self.n_weights_)

    def decode_batch(self, X: Any, w: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Predict all of X, as a 1-D object array or an array of numbers."""
        w = as_floats("w", w, self.n_weights_)
        labelings = [self.decode(x, w) for x in self._items(X)]
        for i, labeling in enumerate(labelings):
            labeling_key(Answer("decode", self, i), labeling)
        return np.array(labelings) if self.flat else as_object_array(labelings)

    def _items(self, X):
        """Yield the examples of X as the Python methods take them."""
        return X

    def score(self, y: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Score of predictions: 1 minus the mean loss."""
        losses = [
            Answer("loss", self, i).number(self.loss(*pair), 0.0)
            for i, pair in enumerate(zip(y, y_pred, strict=True))
        ]
        return 1.0 - float(np.average(losses, weights=sample_weight))

    def joined_labels(self, y: Any) -> np.ndarray:
        """Concatenate the labels of all examples, for structures with classes."""
        return np.concatenate([np.asarray(y_i).ravel() for y_i in y])

    def unseen_labels(self, y: Any) -> list[Any]:
        """Labels in y that were not seen in fit and so cannot be predicted.

        Raises ValueError if y cannot be scored at all.
        """
        return []

    def check_fitted(self) -> None:
        """Raise ValueError if the fitted attributes are inconsistent.

        They may come from a pickle or have been set by hand, so estimators call this
        before each prediction. The cost is at most the number of classes squared.
        """
        # A user's structure without this flag may have its own list.
        if self.has_classes or np.ndim(getattr(self, "classes_", ())) != 1:
            check_classes(self.classes_)
        for name, shape in self._fitted_shapes().items():
            check, value = check_floats if shape else as_floats, getattr(self, name)
            if shape or type(value) is not int:
                check(name, value, *shape)
        try:
            n_weights = max(self._count_weights(), 1)
            bool(getattr(self, "normalize_loss", True))
            is_array = type(self.n_weights_) is not int and np.ndim(self.n_weights_) > 0
        except AttributeError:
            # What was never fitted is a ValueError as well, with words of its own.
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"{type(self).__name__} was changed after fit: {error}"
            ) from error
        if is_array or self.n_weights_ != n_weights:
            raise ValueError(
                f"{type(self).__name__} has n_weights_={self.n_weights_}, but its "
                f"features and classes need {n_weights}: it was changed after fit."
            )

    def _fitted_shapes(self):
        """Names and shapes of the numbers that `fit` learned."""
        return {}

    def _count_weights(self):
        """The correct value of `n_weights_`."""
        return self.n_weights_

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """``(lower, upper)`` bounds of the weights, or None."""
        return None

    def _largest_feature(self, X):
        """The largest absolute value in X as checked; 0.0 if it is not known."""
        return largest_entry(*self._all_matrices(X))

    def _all_matrices(self, X):
        return chain(self._matrices(X), self._edge_matrices(X))

    def _matrices(self, X):
        """The features of X as checked: matrices of the same columns, if known."""
        return ()

    def _edge_matrices(self, X):
        """The same of the features of edges, if there are any."""
        return ()

    def _make_sums(self, X, y, **added):
        """The oracle of the log-loss and its gradient, which `has_sums`.

        `added`: costs of labels that are added to their scores, if there are any.
        """
        return self.make_oracle(X, y, **added)

    def _mean_squares(self, X, weights):
        """About Σ_i p_i E φ_j(x_i, y)² for random labels y: the scale of each weight.

        Ones if a structure does not know it. Solvers need the order of magnitude only.
        """
        return np.ones(self.n_weights_)

    def _centered(self, w):
        """The shortest weights with which labelings differ in their scores as with w."""
        return w

    def _mean_sizes(self, X, weights):
        """At least Σ_i p_i |φ_j(x_i, y_i)| for any labelings; 0.0 if it is not known."""
        return 0.0

    def split_weights(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Split the weights into ``(coef_, intercept_)``; None for no intercept."""
        return w, None

    def join_weights(self, coef: np.ndarray, intercept: Any) -> np.ndarray:
        """Join ``coef_`` and ``intercept_``; the inverse of `split_weights`."""
        return coef


# The claims of a structure, each with the method to which it refers.
CLAIMS = {
    "has_constrained_decode": "constrained_decode",
    "has_slack_augmented_decode": "slack_augmented_decode",
    "has_sums": "marginals",
    "has_bounded_sums": "_make_sums",
}


def _places(cls, name):
    """Places in the order of inheritance that define `name`; 0 is `cls` itself."""
    return [at for at, parent in enumerate(cls.__mro__) if name in vars(parent)]


def _place(cls, name):
    """Index in the MRO of the class that defines `name`; len(mro) if none does."""
    return min(_places(cls, name), default=len(cls.__mro__))


def _has_new_decoders(cls, claim):
    """Whether decoders were replaced after `claim` was made; `Structure` has none."""
    since = _place(cls, claim)
    decoders = [_places(cls, name) for name in ("loss_augmented_decode", "make_oracle")]
    return any(places[0] < since and len(places) > 2 for places in decoders)


def _check_overrides(cls):
    """Raise TypeError if training and prediction would use different structures."""
    compiled = _place(cls, "make_oracle")
    parent = cls.__mro__[compiled].__name__
    for name, needed in (
        ("loss", ["loss_augmented_decode"]),
        ("joint_feature", ["loss_augmented_decode", "decode"]),
        ("potentials", ["loss_augmented_decode", "decode"]),
    ):
        is_changed = hasattr(cls, name) and _place(cls, name) < compiled
        missing = [method for method in needed if _place(cls, method) >= compiled]
        if is_changed and missing:
            raise TypeError(
                f"{cls.__name__} overrides {name}, which the compiled code of {parent} "
                f"does not call. Override {' and '.join(missing)} as well."
            )


def as_list(items, name):
    """A sequence of examples as a list. ValueError if it is not a sequence, or empty."""
    items = from_column(items)
    if isinstance(items, Iterator):
        raise ValueError(
            f"{name} is a {type(items).__name__}, which can be read only once: pass "
            f"list({name})."
        )
    check_sequence(name, items, "a sequence with one item per example")
    items = list(items)
    if not items:
        raise ValueError(f"{name} is empty: at least one example is needed.")
    return items


def as_object_array(items):
    """A 1-D array with one item per example, for items of any type."""
    if not items:
        return np.empty(0, dtype=object)
    if not any(isinstance(item, (list, tuple, dict)) or np.ndim(item) for item in items):
        result = np.array(items)
        # numpy would convert 1 to "1" beside "a".
        if result.dtype.kind not in "US" or len({type(item) for item in items}) == 1:
            return result
    return boxed(items)


def boxed(items):
    """The same for items that are arrays."""
    result = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        result[i] = item
    return result
