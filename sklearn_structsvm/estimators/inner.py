"""What estimators of other packages, and others that were not fitted, may lack."""

import numpy as np
from sklearn.utils import get_tags

from sklearn_structsvm._contract.answers import Answer

# What a fit learns of X.
OF_X = ("n_features_in_", "feature_names_in_")
# For `check_is_fitted`.
UNFITTED = (
    "cv='prefit' (like a FrozenEstimator) takes a fitted estimator, but this %(name)s is "
    "not fitted: call its fit first, or leave cv='prefit' out."
)


def supports(model, method):
    """Whether an estimator has a method, which may depend on its parameters."""
    return hasattr(model, method)


def learned(model, name, default=None):
    """What a fit has stored under this name, or the default."""
    return getattr(model, name, default)


def feature_attributes(model):
    """`n_features_in_` and `feature_names_in_`, if the fitted model has them."""
    return {name: learned(model, name) for name in OF_X if supports(model, name)}


def tags_of(model):
    """The tags of an inner estimator; None if it is not one of scikit-learn's kind."""
    return get_tags(model) if supports(model, "__sklearn_tags__") else None


def regressor_words(model):
    """Words that a model is a regressor, or none."""
    tags = tags_of(model)
    is_one = tags is not None and tags.estimator_type == "regressor"
    return " It is a regressor: take a classifier." if is_one else ""


def class_scores(model, X, n, **params):
    """The decision function of n rows, with a column for each class; float32 stays."""
    answer, k = Answer("decision_function", model), len(model.classes_)
    found = model.decision_function(X, **params)
    if k > 2 and learned(model, "decision_function_shape") == "ovo":
        raise answer.fault("have a column for each class", "one for each pair ('ovo')")
    if np.ndim(found) == 1:
        found = 0.5 * answer.array(found, n)
        # Of one class, if it has seen no other, there is one column.
        found = np.column_stack([-found, found])[:, -k:]
    return answer.array(found, n, k)
