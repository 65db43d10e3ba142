"""Joint probabilities of group and label, P(group, label | x)."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, get_tags

from sklearn_structsvm.estimators.complex_metric.probabilities import (
    class_probabilities,
    fit_to_labels,
    prefit_classes,
)

# Prefix of the names of metadata for the second classifier.
PREFIX = "group_estimator__"


def group_labels(groups):
    """The labels that classifiers of groups are fitted to, an array of shape (g,).

    The groups' names, or their numbers if the names are tuples or of several types.
    """
    names = groups.array
    return np.arange(len(names)) if names.dtype == object else names


def check_prefit_groups(classifier, groups):
    """Raise ValueError if a fitted classifier has other groups than `fit`."""
    known = prefit_classes(classifier, groups, "sensitive_features holds groups")
    extra = sorted(set(known.tolist()) - set(groups.tolist()), key=str)
    if extra:
        raise ValueError(
            f"group_estimator was fitted to the groups {extra}, which do not occur in "
            "sensitive_features."
        )


def check_prefit_pairs(classifier, pairs, n_pairs):
    """Raise ValueError if the labels of a fitted classifier are not those of pairs."""
    known = prefit_classes(classifier, pairs, "There are pairs (group, label)")
    if not np.isin(known, np.arange(n_pairs)).all():
        raise ValueError(
            "With group_blind=True the labels of a fitted estimator must be the numbers "
            f"0 to {n_pairs - 1} of pairs of group and label; it was fitted to "
            f"{known.tolist()}. If it is a classifier of labels, pass group_estimator as "
            "well."
        )


class IndependentPairs(ClassifierMixin, BaseEstimator):
    """A classifier of labels and one of groups, combined to one of pairs.

    Its probabilities are the products P(group | x) P(label | x), which are correct if
    group and label are independent given x. Labels are a k + i, for group a and label i.

    `classes` (k,): the labels. `groups` (g,): those of `group_estimator`.
    """

    def __init__(self, estimator, group_estimator, classes, groups):
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.classes = classes
        self.groups = groups

    @property
    def classes_(self):
        """The numbers of all pairs."""
        return np.arange(len(self.groups) * len(self.classes))

    @property
    def n_features_in_(self):
        """Same as that of the classifier of labels, if it has one."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self):
        """Same as those of the classifier of labels, if it has any."""
        return self.estimator_.feature_names_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def fit(self, X, y, **params):
        """Fit copies of both, except for frozen ones.

        `X` as the classifiers take it. `y` (n,): pairs. `**params`: for `fit` of
        `estimator`, and after ``group_estimator__`` for the other.
        """
        group, label = np.divmod(y, len(self.classes))
        of_label, of_group = _divided(params)
        self.estimator_ = _fit_clone(self.estimator, X, self.classes[label], of_label)
        self.group_estimator_ = _fit_clone(
            self.group_estimator, X, self.groups[group], of_group
        )
        return self

    def as_fitted(self):
        """Use both without a fit."""
        self.estimator_, self.group_estimator_ = self.estimator, self.group_estimator
        return self

    def predict_proba(self, X, **params):
        """Products of the probabilities, of shape (n, g k); `params` as of `fit`."""
        of_label, of_group = _divided(params)
        labels = class_probabilities(self.estimator_, X, self.classes, **of_label)
        groups = class_probabilities(self.group_estimator_, X, self.groups, **of_group)
        return (groups[:, :, None] * labels[:, None, :]).reshape(len(labels), -1)


def _fit_clone(classifier, X, y, params):
    if isinstance(classifier, FrozenEstimator):
        return classifier
    return fit_to_labels(clone(classifier), X, y, **params)


def _divided(params):
    """Parameters for the classifier of labels, and for that of groups."""
    of_group = {
        name.removeprefix(PREFIX): value
        for name, value in params.items()
        if name.startswith(PREFIX)
    }
    return {k: v for k, v in params.items() if not k.startswith(PREFIX)}, of_group


def for_pairs(of_label, of_group):
    """Metadata of both, in the form that `IndependentPairs` takes."""
    return of_label | {PREFIX + name: value for name, value in of_group.items()}


def pairs_of(estimator, task, classifier, routed):
    """What probabilities of pairs (group, label) are fitted to.

    Returns the classifier of pairs, the numbers of the pairs, (n,), and the pairs' names.
    The metadata that are `routed` to the classifier get those of `group_estimator`.
    """
    k, groups = len(task.classes), task.finder.groups
    # The cells of a group are adjacent.
    pairs = task.codes // (task.cells.n_cells // len(groups.names)) * k + task.y
    options = estimator._options
    if options.group_estimator is not None:
        names = group_labels(groups)
        if estimator._is_fitted_already(options.group_estimator):
            if groups.pooled:
                raise ValueError(
                    "group_estimator was fitted before, to groups that min_group_size="
                    f"{options.min_group_size} pools. Pass it unfitted, or pool the "
                    "groups before both fits and leave out min_group_size."
                )
            check_prefit_groups(options.group_estimator, names)
        classifier = IndependentPairs(
            classifier, options.group_estimator, task.classes, names
        )
        of_label, of_group = routed.estimator, routed.group_estimator
        routed.estimator = Bunch(
            fit=for_pairs(of_label.fit, of_group.fit),
            predict_proba=for_pairs(of_label.predict_proba, of_group.predict_proba),
        )
        if estimator._is_fitted_already():
            classifier = classifier.as_fitted()
    elif estimator._is_fitted_already():
        check_prefit_pairs(classifier, pairs, k * len(groups.names))
    names = [(name, label) for name in groups.names for label in task.classes.tolist()]
    return classifier, pairs, names
