"""Pipelines, for what scikit-learn's do not pass on."""

from typing import Any

from sklearn.pipeline import Pipeline


def final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a fitted pipeline, and X as this step gets it.

    Any other estimator is returned with X as it is.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, X
    return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X


def names_before_the_end(pipeline: Pipeline) -> Any:
    """Names of the features of the last step; None if some step has no names."""
    try:
        return pipeline[:-1].get_feature_names_out()
    except AttributeError:  # as of a FeatureHasher
        return None
