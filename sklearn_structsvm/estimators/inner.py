"""What estimators of other packages, and others that were not fitted, may lack."""

from sklearn.utils import get_tags

# What a fit learns of X.
OF_X = ("n_features_in_", "feature_names_in_")


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
