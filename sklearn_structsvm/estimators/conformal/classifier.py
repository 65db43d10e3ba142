"""Sets of outputs that contain the truth, over any classifier."""

import copy
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, indexable

from sklearn_structsvm._utils.borders import as_canonical, refuse_masked
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    _check_method_params,
    _safe_split,
    available_if,
)
from sklearn_structsvm._utils.scaled_logistic import default_classifier
from sklearn_structsvm._utils.snapshots import Draft, of_one_fit
from sklearn_structsvm._utils.weights import check_weights, effective_weights
from sklearn_structsvm.estimators.base import AtomicFitMixin, fit_aside, require_y
from sklearn_structsvm.estimators.complex_metric.over_probabilities import routes_metadata
from sklearn_structsvm.estimators.complex_metric.probabilities import fit_to_labels
from sklearn_structsvm.estimators.conformal.sets import SetsMixin
from sklearn_structsvm.estimators.inner import (
    UNFITTED,
    feature_attributes,
    learned,
    supports,
    tags_of,
)

# The common attributes of this estimator and its inner one.
TAGS = ("estimator_type", "classifier_tags", "target_tags", "input_tags")

# Methods of the estimator that scores are made of, and that metadata reach.
SCORING = ("predict_proba", "decision_function")


def _inner_has(method):
    def check(self):
        model = learned(self, "estimator_")
        return supports(self._model() if model is None else model, method)

    return check


class ConformalClassifier(SetsMixin, AtomicFitMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Sets of outputs that contain the truth as often as you ask.

    The sets say what else may be true, over any classifier, for rows, sequences, trees,
    graphs and many labels:

    >>> from sklearn_structsvm import ConformalClassifier, CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=120, n_classes=4, random_state=0)
    >>> model = ConformalClassifier(CRFClassifier("chain"), random_state=0).fit(X, y)
    >>> model.predict_set(X)[0].shape == (len(X[0]), 4)
    True

    `predict_set` returns boolean arrays, True for what is in the set, and `set_names`
    their labels. `predict` is that of the classifier.

    Read more in the :ref:`User Guide <guide-conformal>`.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A classifier of this package or of scikit-learn, or a pipeline. A clone is fitted,
        unless it is a :class:`~sklearn.frozen.FrozenEstimator`: then all of the data are
        used to calibrate. None means logistic regression on scaled columns.
    confidence_level : float, default=0.9
        The probability that is promised. It needs at least :math:`1 / \alpha - 1`
        calibration examples.
    conformity_score : str or callable, default="auto"
        How unlikely a label is.

        - "lac": 1 minus its probability, for the smallest sets on average [3]_.
        - "aps": the probability of all labels that are more probable, for sets that adapt
          to how difficult a row is, and are never empty [4]_. Classes only.
        - "raps": the same, with a penalty of 0.01 for each rank after the fifth [5]_.
          Classes only.
        - "margin": the distance of its score from the best one. Needs no probabilities:
          of rows it takes `decision_function`, of sequences, trees and graphs without
          cycles `max_marginals`.
        - "likelihood": the distance of the score of the whole labeling from the best one.
          For chains, trees and graphs without cycles, by estimators of this package. See
          `predict_lattice`.
        - A callable takes the probabilities, of shape (n_samples, n_classes), and returns
          scores of that shape: the smaller, the more likely. Classes only.
        - "auto" is "lac" for estimators with `predict_proba`, and otherwise "margin".
    coverage : {"whole", "average"}, default="whole"
        What is promised. "whole" is the probability that a set contains the whole truth:
        all labels of a sequence, or all true labels of a row. "average" is the expected
        share of the true labels of an example that the set contains (conformal risk
        control [6]_), which gives much smaller sets.
    condition : {"class", "group", "length"} or None, default=None
        Promise the same for each part of the examples, which then has a threshold of its
        own (Mondrian): for each true class, for each group of `sensitive_features`, or
        for sequences of similar length, from a power of two to the next. Sets are full
        for a part with too few calibration examples, and a warning says so.
    cv : float, int, splitter, iterable, "prefit" or None, default=0.25
        The examples to calibrate by. A float is the share that is held out at random. An
        integer is a number of folds: each example is calibrated by a fit to the other
        folds. None means 5 folds. "prefit" is for a fitted estimator and uses all. A
        splitter with one fold holds out its test part.
    randomized : bool, default=False
        Whether "aps" and "raps" add a random share of a label's own probability, as in
        their papers. Sets may then be empty. The share is a hash of the row's values, as
        for ``ComplexMetricClassifier.predict``: a row has the same set alone, in every
        batch and in any order.
    n_jobs : int or None, default=None
        Number of processes for the folds.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out part, the folds and the seed of random shares. Pass an int for
        reproducible results.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the columns of sets.
    estimator_ : estimator
        Makes the predictions. With folds it is fitted to all examples.
    estimators_ : list of estimators
        One for each fold, whose scores make the sets.
    conformity_score_ : str or callable
        The score in use, with "auto" resolved.
    strata_ : list
        The classes, groups or pairs (shortest, longest) of lengths with a threshold each;
        ``[None]`` without `condition`.
    thresholds_ : ndarray of shape (n_strata,)
        The largest score in a set. Infinite where sets are full. NaN with several folds,
        where a rank among the scores of all folds decides.
    n_calibration_ : ndarray of shape (n_strata,)
        Numbers of calibration examples.
    n_features_in_, feature_names_in_
        As of the estimator, if it has them.

    See Also
    --------
    CRFClassifier : Has probabilities of labels and of whole labelings.

    Notes
    -----
    Conformal prediction [1]_ turns the scores of any classifier into sets. From n
    examples that the classifier has not seen, it takes the threshold that all but
    :math:`\lfloor \alpha (n + 1) \rfloor` of their true outputs meet or stay below. If a
    new example is exchangeable with these n, its set contains the truth with

    .. math:: P(y \in C(x)) \ge 1 - \alpha,

    for `confidence_level` :math:`1 - \alpha`, whatever the classifier and the
    distribution. The probability is over the calibration examples as well as the new one.
    With folds instead of a held-out part (cross-conformal prediction [2]_), only about
    :math:`1 - 2 \alpha` is proved, and about :math:`1 - \alpha` is usual.

    y may hold

    - one class per row: sets of classes;
    - a labeling for each sequence, tree or graph: sets of labels for each position or
      node, such that the *whole* labeling is in their product;
    - a label indicator matrix: sets of labels that contain all that are true. For a
      `HierarchicalStructure` these are leaves, and `set_names` finds the nodes that stand
      for them.

    References
    ----------
    .. [1] Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic learning in a random
       world. Springer.
    .. [2] Vovk, V. (2015). Cross-conformal predictors. Annals of Mathematics and
       Artificial Intelligence 74. The bound is that of Barber, R. F., Candès, E. J.,
       Ramdas, A. and Tibshirani, R. J. (2021). Predictive inference with the jackknife+.
       Annals of Statistics 49.
    .. [3] Sadinle, M., Lei, J. and Wasserman, L. (2019). Least ambiguous set-valued
       classifiers with bounded error levels. JASA 114.
    .. [4] Romano, Y., Sesia, M. and Candès, E. J. (2020). Classification with valid and
       adaptive coverage. NeurIPS 2020.
    .. [5] Angelopoulos, A. N., Bates, S., Jordan, M. I. and Malik, J. (2021). Uncertainty
       sets for image classifiers using conformal prediction. ICLR 2021.
    .. [6] Angelopoulos, A. N., Bates, S., Fisch, A., Lei, L. and Schuster, T. (2024).
       Conformal risk control. ICLR 2024.
    """

    classes_: np.ndarray
    estimator_: Any
    estimators_: list[Any]
    conformity_score_: Any
    strata_: list[Any]
    thresholds_: np.ndarray
    n_calibration_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "conformity_score": [
            StrOptions({"auto", "lac", "aps", "raps", "margin", "likelihood"}),
            callable,
        ],
        "coverage": [StrOptions({"whole", "average"})],
        "condition": [StrOptions({"class", "group", "length"}), None],
        "cv": [
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"prefit"}),
            "cv_object",
        ],
        "randomized": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        conformity_score: str | Callable[[np.ndarray], np.ndarray] = "auto",
        coverage: Literal["whole", "average"] = "whole",
        condition: Literal["class", "group", "length"] | None = None,
        cv: Any = 0.25,
        randomized: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.conformity_score = conformity_score
        self.coverage = coverage
        self.condition = condition
        self.cv = cv
        self.randomized = randomized
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the estimator, and calibrate it by examples that it has not seen.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            What the estimator takes.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or sequence
            One class per row, a label indicator matrix, or a labeling per example.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The groups of ``condition="group"``.
        **fit_params : dict
            Parameters of the estimator's `fit`, such as ``sample_weight``. With metadata
            routing, they go to whoever requests them, also to the method that scores are
            made of. Calibration is not weighted.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If there are too few examples for `confidence_level`, before any fit.
        """
        return fit_aside(
            self, X=X, y=y, sensitive_features=sensitive_features, fit_params=fit_params
        )

    def _fit_within(self, fit, X, y, sensitive_features, fit_params):
        require_y(self, y)
        refuse_masked("X", X)
        X, y = indexable(as_canonical(X), as_canonical(y, "y"))
        data = self._read(X, y, sensitive_features)
        model, routed = self._model(), self._routed(fit_params, sensitive_features)
        folds = self._folds(X, y, routed.splitter.split)
        self._check_numbers(data, [test for _, test in folds])
        if self._is_prefit():
            check_is_fitted(model, msg=UNFITTED)
            models = [model]
        else:
            fit_to = delayed(_fit_to)
            models = Parallel(n_jobs=self.n_jobs)(
                fit_to(clone(model), X, data.y, train, routed.estimator.fit)
                for train, _ in folds
            )
        asked = routed.estimator.get(data.outputs.method(data.score), {})
        self._calibrate(data, models, folds, X, asked)
        self.estimators_, self.estimator_ = models, models[0]
        if len(models) > 1:
            self.estimator_ = clone(model)
            self.estimator_.fit(X, data.y, **routed.estimator.fit)
        self._keep(data)
        vars(self).update(feature_attributes(self.estimator_))

    def conformalize(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Calibrate anew, without fitting the estimator.

        Parameters
        ----------
        X, y, sensitive_features : as in `fit`
            Examples that the estimator was not fitted to, and that are exchangeable with
            those to come.
        **params : as in `predict_set`

        Returns
        -------
        self : object
            With other `thresholds_`.
        """
        if self._is_prefit():
            return self.fit(X, y, sensitive_features=sensitive_features, **params)
        draft = Draft(self)
        draft.estimator._recalibrate(X, y, sensitive_features, params)
        draft.replace()
        return self

    def _recalibrate(self, X, y, sensitive_features, params):
        check_is_fitted(self)
        self._validate_params()
        self._check_parameters()
        if len(self.estimators_) > 1:
            raise ValueError(
                f"conformalize needs one fitted estimator; cv={self.cv!r} has made "
                f"{len(self.estimators_)}. Fit with a share to hold out, such as cv=0.25."
            )
        require_y(self, y)
        X, y = indexable(as_canonical(X), as_canonical(y, "y"))
        data = self._read(X, y, sensitive_features)
        folds = [(None, np.arange(_num_samples(X)))]
        self._check_numbers(data, [folds[0][1]])
        asked = self._asked(data, params, sensitive_features)
        self._keep(self._calibrate(data, self.estimators_, folds, X, asked))

    @of_one_fit
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Predict the best output by `estimator_`.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        **params : as in `predict_set`

        Returns
        -------
        ndarray
            What the estimator predicts.
        """
        estimator, params = self._checked_estimator(X=X), self._passed("predict", params)
        return estimator.predict(as_canonical(X), **params)

    @available_if(_inner_has("predict_proba"))
    @of_one_fit
    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Compute probabilities by `estimator_`.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        **params : as in `predict_set`

        Returns
        -------
        ndarray
            What the estimator computes.
        """
        estimator = self._checked_estimator(X=X)
        params = self._passed("predict_proba", params)
        return estimator.predict_proba(as_canonical(X), **params)

    @of_one_fit
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> float:
        """Score the predictions of `estimator_`, as it does itself.

        Parameters
        ----------
        X, y : as in `fit`
            Test data.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the examples.
        **params : as in `predict_set`

        Returns
        -------
        score : float
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        estimator = self._checked_estimator(X=X, y=y, **weights)
        params = self._passed("score", params) | weights
        return estimator.score(as_canonical(X), y, **params)

    def _checked_estimator(self, **data):
        """The fitted `estimator_`, which need not look for masks of these data."""
        check_is_fitted(self)
        for name, values in data.items():
            refuse_masked(name, values)
        return self.estimator_

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this estimator and its inner estimator.

        Returns
        -------
        routing : MetadataRouter
            The routing information.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping()
        if not self._is_prefit():
            mapping.add(caller="fit", callee="fit")
        for method in SCORING:
            mapping.add(caller="fit", callee=method).add(caller=method, callee=method)
        for method in ("predict", "score"):
            mapping.add(caller=method, callee=method)
        router.add(estimator=self._model(), method_mapping=mapping)
        return router.add(
            splitter=self.cv,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        own = tags_of(self._model())
        for name in TAGS if own is not None else ():
            setattr(tags, name, copy.deepcopy(getattr(own, name)))
        return tags

    def _check_parameters(self):
        super()._check_parameters()
        if self.randomized and self.conformity_score not in ("aps", "raps"):
            raise ValueError(
                "randomized=True requires conformity_score='aps' or 'raps'; got "
                f"{self.conformity_score!r}."
            )

    def _model(self):
        return default_classifier() if self.estimator is None else self.estimator

    def _passed(self, method, params):
        """The parameters that the estimator's method gets; without routing, all."""
        if not routes_metadata():
            return params
        return process_routing(self, method, **params).estimator[method]

    def _asked(self, data, params, sensitive_features):
        """The parameters of the method that scores are made of."""
        method = data.outputs.method(data.score)
        if method not in SCORING:
            if params:
                raise TypeError(f"{method} of the estimator takes no {sorted(params)}.")
            return {}
        if sensitive_features is not None and routes_metadata():
            own = {"sensitive_features": sensitive_features}
            wanted = self.get_metadata_routing().consumes(method, own)
            params = params | {name: own[name] for name in wanted}
        return self._passed(method, params)

    def _routed(self, fit_params, sensitive_features):
        weights = fit_params.get("sample_weight")
        if self.estimator is None and weights is not None:
            # The penalty of the default classifier is per row.
            weights = check_weights(weights, _num_samples(weights))
            fit_params = fit_params | {"sample_weight": effective_weights(weights)}
        if routes_metadata():
            own = {}
            if sensitive_features is not None:
                own["sensitive_features"] = sensitive_features
            return process_routing(self, "fit", **fit_params, **own)
        if self._is_prefit() and fit_params:
            raise TypeError(
                f"fit does not accept {sorted(fit_params)}, because the estimator is "
                "already fitted."
            )
        return Bunch(estimator=Bunch(fit=fit_params), splitter=Bunch(split={}))

    def _keep(self, data):
        data.y = data.codes = None
        if data.groups is not None:
            data.groups.forget_codes()
        self._calibrated = data
        self.classes_, self.conformity_score_ = data.classes, data.score
        self.strata_ = data.names
        self.thresholds_ = np.array([own.value for own in data.thresholds])
        self.n_calibration_ = np.array([own.n for own in data.thresholds])
        if data.score == "lac" and any(1.0 <= q < np.inf for q in self.thresholds_):
            warn_caller(
                "The sets hold every label: the true one has the probability 0 in more "
                f"than {1 - self.confidence_level:.3g} of the calibration examples. The "
                "estimator may give decisions in place of probabilities, as "
                "ComplexMetricClassifier does: use the classifier that it is made of.",
            )


def _fit_to(model, X, y, train, params):
    """The model, fitted to the training part of a fold."""
    X_train, y_train = _safe_split(model, X, y, train)
    # What a user's `fit` returns need not be the model.
    fit = fit_to_labels if np.isscalar(y_train[0]) else type(model).fit
    fit(model, X_train, y_train, **_check_method_params(X, params, indices=train))
    return model
