"""y of a fit to items: labelings, and what is known of them where labels are hidden."""

import numpy as np

from sklearn_structsvm._contract.answers import Answer
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.structures._callback import labeling_key
from sklearn_structsvm.structures.answers import checked_data, fit_to_checked
from sklearn_structsvm.structures.hidden_labels import find_unnamed, first_hidden


class Targets:
    """Labelings that are known.

    `y`: labelings as checked; if labels are hidden, any that fit what is known. `given`:
    the same as a refit takes them: hidden labels are as they were passed. `allowed`
    (AllowedLabels or None): if labels of nodes are hidden: those that the nodes may have.
    """

    allowed, has_hidden = None, False

    def __init__(self, y):
        self.y = self.given = y

    def check(self, structure, X):
        """X as the structure checks it, with y."""
        X, self.y = checked_data(structure, X, self.y)
        self.given = self.y
        return X

    def leave_out_empty(self, structure, X, sample_weight=None):
        """X and the weights of the examples that have something to label."""
        kept = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        if len(kept) == len(X):
            return X, sample_weight
        if not kept:
            raise ValueError("X is empty: no example has anything to label.")
        self.take(kept)
        return [X[i] for i in kept], check_weights(sample_weight, len(X))[kept]

    def take(self, kept):
        """Keep these examples."""
        self.y = [self.y[i] for i in kept]

    def fit(self, structure, X, **options):
        """Fit a structure to the examples."""
        fit_to_checked(structure, X, self.y, **options)

    def known(self):
        """What is known of each labeling, for fingerprints."""
        return self.y

    def known_labels(self, structure):
        """The labels of all nodes, one after another, that are known."""
        labels = structure.joined_labels(self.y)
        if self.allowed is None:
            return labels
        is_known = np.zeros(len(labels), dtype=bool)
        is_known[self.allowed.nodes] = self.allowed.masks.sum(axis=1) == 1
        return labels[is_known]


class PartialTargets(Targets):
    """Labelings of nodes, some of whose labels are hidden.

    `y`, `entries`: as `split_hidden` of a structure returns them. `given`: y as passed.
    """

    has_hidden = True

    def __init__(self, y, entries, given):
        super().__init__(y)
        self.entries, self.passed = entries, list(given)

    def check(self, structure, X):
        X = super().check(structure, X)
        self.given = self.passed
        return X

    def take(self, kept):
        super().take(kept)
        self.entries = [self.entries[i] for i in kept]

    def fit(self, structure, X, **options):
        self.y, self.allowed = structure.learn_partial(X, self.y, self.entries, **options)

    def known(self):
        return list(zip(self.y, self.allowed, strict=True))


class CompletedTargets(Targets):
    """Parts of labelings, which the structure completes itself."""

    has_hidden = True

    def fit(self, structure, X, **options):
        self.parts = self.y
        super().fit(structure, X, **options)
        self.y = self.completed(structure, X, None)

    def completed(self, structure, X, w):
        """Completions of the parts, by the structure's own method."""
        found = []
        for i, (x, y) in enumerate(zip(X, self.parts, strict=True)):
            labeling = structure.complete(x, y, w)
            labeling_key(Answer("complete", structure, i), labeling)
            found.append(labeling)
        return found

    def known(self):
        return self.parts


def read_targets(estimator, structure, y, *, warns=True):
    """The `Targets` of y; ValueError for hidden labels that a fit cannot learn around."""
    entries, given = None, y
    if structure.splits_hidden:
        y, entries = structure.split_hidden(y)
    if structure.completes:
        check_completes(estimator, structure)
    if entries is not None:
        check_takes_hidden(estimator, structure, entries)
        if warns:
            warn_of_unnamed(structure, given)
        return PartialTargets(y, entries, given)
    return CompletedTargets(y) if structure.completes else Targets(y)


def check_takes_hidden(estimator, structure, entries):
    """Raise ValueError if hidden labels are not supported."""
    i, t = first_hidden(entries)
    where = f"y[{i}] has an unknown label ({structure._place} {t}), and"
    if not estimator.takes_hidden_labels:
        raise ValueError(
            f"{where} {type(estimator).__name__} cannot learn from it: use CRFClassifier "
            f"or BCFWClassifier, or leave out the {structure._place}s without a label."
        )
    if type(structure).make_oracle is not type(structure)._compiled_oracle:
        raise ValueError(
            f"{where} {type(structure).__name__} cannot learn from it, because it "
            "overrides loss_augmented_decode of a structure of the library."
        )
    refuse_sparse(estimator)


def warn_of_unnamed(structure, y):
    """Count the labels that are None or NaN: an accident, such as a join, makes them."""
    places = find_unnamed(y, structure._labels_of)
    if places:
        n_labels = sum(len(structure._labels_of(own)) for own in y)
        i, t = places[0]
        warn_caller(
            f"Labels in y that are None or NaN: {len(places)} of {n_labels}, the first "
            f"one at y[{i}][{t}]. They count as unknown, and the fit learns from the "
            "others. If this is meant, put structures.MISSING in their places.",
        )


def refuse_sparse(estimator):
    """ValueError if the penalty has an L1 norm, which hidden labels do not go with."""
    given = estimator.l1_ratios
    ratio = estimator.l1_ratio if given is None else max(given, default=0.0)
    if ratio > 0.0:
        raise ValueError(
            f"y has unknown labels, and a fit with l1_ratio={ratio} cannot learn from "
            "them: use l1_ratio=0."
        )


def check_completes(estimator, structure):
    """Raise ValueError if the estimator does not support structures with `complete`."""
    # Their likelihoods are sums, which no structure in Python has.
    if not estimator.takes_completions:
        raise ValueError(
            f"{type(structure).__name__} has a method `complete`, for partly hidden "
            f"labelings. {type(estimator).__name__} cannot learn from these: use "
            "BCFWClassifier."
        )
    refuse_sparse(estimator)
