"""Metadata for the inner classifiers, with scikit-learn's routing or without."""

from difflib import get_close_matches
from inspect import signature

from sklearn import get_config
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from sklearn_structsvm._utils.caller import warn_caller


def routes_metadata():
    """Whether scikit-learn's metadata routing is on."""
    return bool(get_config()["enable_metadata_routing"])


def refuse_misspelt(meta, fit_params):
    """TypeError for what `fit` of a classifier over others would hand to those."""
    own = [name for name in signature(type(meta).fit).parameters if len(name) > 1]
    for name in fit_params:
        close = get_close_matches(name, own, 1, 0.8)
        if close:
            raise TypeError(f"fit got {name!r}: did you mean {close[0]!r}?")
        if name == "groups" and not routes_metadata():
            words = "fit got 'groups'. Groups of cv reach it by metadata routing: "
            words += "sklearn.set_config(enable_metadata_routing=True)."
            if "sensitive_features" in own:
                words += " Groups of a metric or a constraint are sensitive_features."
            raise TypeError(words)


def route_fit(meta, classifiers, fit_params, *, sample_weight=None, **metadata):
    """Parameters that `fit` of a classifier over others passes on.

    Parameters
    ----------
    meta : estimator
    classifiers : dict of {name: classifier or None}
        The classifiers by the names of parameters; None if one is already fitted. Without
        routing, only "estimator" gets `fit_params`.
    fit_params : dict
    sample_weight, **metadata : array-like or None
        Metadata that `meta` uses itself.

    Returns
    -------
    Bunch
        For each of the classifiers `fit` and `predict_proba`, for `splitter` `split`.
    """
    if routes_metadata():
        own = {"sample_weight": sample_weight, **metadata}
        own = {name: value for name, value in own.items() if value is not None}
        return process_routing(meta, "fit", **fit_params, **own)
    if classifiers["estimator"] is None and fit_params:
        raise TypeError(
            f"fit does not accept {sorted(fit_params)}, because the estimator is already "
            "fitted."
        )
    routed = Bunch(splitter=Bunch(split={}))
    for name, classifier in classifiers.items():
        of_fit = fit_params if name == "estimator" else {}
        routed[name] = Bunch(fit=of_fit, predict_proba={})
        if sample_weight is None or classifier is None:
            continue
        if has_fit_parameter(classifier, "sample_weight"):
            routed[name].fit = of_fit | {"sample_weight": sample_weight}
        else:
            warn_caller(
                f"fit of {type(classifier).__name__} does not accept sample_weight. The "
                "confusion matrix is weighted, but the probabilities are not. For "
                "pipelines and OneVsRestClassifier enable metadata routing, see "
                "sklearn.set_config(enable_metadata_routing=True).",
                UserWarning,
            )
    return routed
