"""How uncertain a prediction is, for active learning."""

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.pipelines import final_step
from sklearn_structsvm.estimators.inner import supports

KINDS = ("margin", "least_confidence", "entropy")


@with_plain_calls
def uncertainty(
    estimator: Any,
    X: Any,
    *,
    kind: Literal["margin", "least_confidence", "entropy"] = "margin",
    allowed: Any = None,
    min_length: Any = None,
) -> np.ndarray:
    r"""Compute how uncertain the labeling of each example is, for active learning.

    The examples with the largest values are those to label next.

    Read more in the :ref:`User Guide <guide-uncertainty>`.

    Parameters
    ----------
    estimator : fitted classifier, or a pipeline that ends in one
        A :class:`CRFClassifier`, or, for margins, any estimator with `predict_k_best`,
        such as :class:`BCFWClassifier` over chains, trees and graphs without cycles.
    X : sequence of n_samples examples
        What `estimator` predicts.
    kind : {"margin", "least_confidence", "entropy"}, default="margin"
        With the labelings :math:`y^{(1)}, y^{(2)}, \dots` of x, the best first, these
        are [1]_

        - "margin": :math:`p(y^{(2)} \mid x) - p(y^{(1)} \mid x)`, from -1 to 0; or the
          difference of their scores, at most 0, if the estimator has no probabilities;
        - "least_confidence": :math:`1 - p(y^{(1)} \mid x)`;
        - "entropy": :math:`-\sum_y p(y \mid x) \log p(y \mid x)`, which grows with the
          length of a sequence.
    allowed : sequence of n_samples entries, or None, default=None
        Labels that are already known, as in `predict`: then this is the uncertainty that
        is left.
    min_length : int, dict or None, default=None
        The least number of equal labels in a row, as in `predict`, for chains; not for
        "entropy".

    Returns
    -------
    ndarray of shape (n_samples,)
        The larger, the less certain. Where only one labeling is possible, the margin is
        -1, or -inf for differences of scores.

    Raises
    ------
    ValueError
        If `kind` is unknown, or as in `predict`.
    TypeError
        If the estimator has no k best labelings, or no probabilities.

    See Also
    --------
    CRFClassifier.predict_spans : The probabilities of single entities.

    References
    ----------
    .. [1] Settles, Craven, "An analysis of active learning strategies for sequence
       labeling tasks", EMNLP 2008.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier, uncertainty
    >>> from sklearn_structsvm.datasets import make_chains
    >>> X, y = make_chains(n_samples=40, random_state=0)
    >>> model = CRFClassifier(C=0.1, random_state=0).fit(X[:10], y[:10])
    >>> ask_next = 10 + uncertainty(model, X[10:]).argsort()[::-1][:5]
    >>> ask_next.shape
    (5,)
    """
    check_choice("kind", kind, KINDS)
    check_is_fitted(estimator)
    model, X = final_step(estimator, X)
    # Structures of other kinds do not know the argument.
    beside = {} if min_length is None else {"min_length": min_length}
    if kind == "entropy":
        if beside:
            raise ValueError("min_length requires another kind; got kind='entropy'.")
        _require(model, "entropy", kind, "a CRFClassifier")
        return model.entropy(X, allowed=allowed)
    if kind == "least_confidence":
        _require(model, "log_likelihood", kind, "a CRFClassifier")
    _require(
        model, "predict_k_best", kind, "an estimator over sequences, trees or forests"
    )
    _, values = model.predict_k_best(X, 1 + (kind == "margin"), allowed=allowed, **beside)
    if kind == "least_confidence":
        return np.array([1.0 - own[0] for own in values], dtype=np.float64)
    # There is no second labeling.
    other = 0.0 if supports(model, "log_likelihood") else -np.inf
    return np.array(
        [(own[1] if len(own) > 1 else other) - own[0] for own in values],
        dtype=np.float64,
    )


def _require(model, method, kind, what):
    if not supports(model, method):
        raise TypeError(
            f"uncertainty with kind={kind!r} requires {what}, or a pipeline that ends in "
            f"one, because it needs {method}; got {model!r}."
        )
