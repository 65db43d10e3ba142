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
