"""Folds before, and thresholds after, the fits of conformal prediction."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from sklearn_structsvm._contract.answers import checked_folds, refuse_many_folds
from sklearn_structsvm._utils.binomial import upper_limit
from sklearn_structsvm._utils.borders import as_canonical, check_choice, refuse_masked
from sklearn_structsvm._utils.calibration import Threshold, smallest_calibration
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm._utils.compat import _check_method_params, _safe_indexing
from sklearn_structsvm._utils.groups import Groups
from sklearn_structsvm._utils.labels import listed, plain
from sklearn_structsvm._utils.tables import listed_names
from sklearn_structsvm.estimators.complex_metric.row_hash import RowHash
from sklearn_structsvm.estimators.conformal.outputs import (
    length_strata,
    likelihood_gaps,
    read_outputs,
)


@dataclass
class Calibration:
    """The settings and results of a calibration.

    `score`: as resolved. `condition`, `randomized`: as of the fit. `y`: the labels in
    the form of `outputs`; they are dropped after the fit, as are the `codes` (n,), the
    stratum of each example. `names`, `thresholds`: one for each stratum. `row_hash` or
    None: makes the random share of each row.
    """

    outputs: Any
    score: Any
    condition: str | None
    randomized: bool
    y: Any
    names: list[Any]
    codes: Any
    groups: Any = None
    classes: Any = None
    row_hash: Any = None
    thresholds: Any = None


class CalibratingMixin:
    """Reads calibration data, and finds the threshold of each stratum."""

    estimator: Any
    confidence_level: float
    conformity_score: Any
    coverage: str
    condition: str | None
    cv: Any
    randomized: bool
    random_state: Any
    _calibrated: Calibration

    def _is_prefit(self):
        is_named = isinstance(self.cv, str) and self.cv == "prefit"
        return is_named or isinstance(self.estimator, FrozenEstimator)

    def _read(self, X, y, sensitive_features):
        """The data to calibrate: outputs, y in their form, the score and the strata."""
        outputs, y = read_outputs(X, y)
        score = outputs.resolved(self.conformity_score, self._model())
        if self.condition is not None and self.condition not in outputs.conditions:
            raise ValueError(
                f"condition={self.condition!r} is not for {outputs.name}. Use one of "
                f"{list(outputs.conditions)}."
            )
        if self.coverage == "average" and score == "likelihood":
            raise ValueError(
                "conformity_score='likelihood' is for whole labelings: use "
                "coverage='whole'."
            )
        if (sensitive_features is None) == (self.condition == "group"):
            way = "pass sensitive_features to fit"
            if sensitive_features is not None:
                way = "write condition='group', or leave sensitive_features out"
            raise ValueError(
                "condition='group' and sensitive_features need each other; got "
                f"condition={self.condition!r} and sensitive_features="
                f"{'None' if sensitive_features is None else '...'}: {way}."
            )
        names, groups = [None], None
        codes = np.zeros(len(y), dtype=np.intp)
        if self.condition == "group":
            groups = Groups(sensitive_features, len(y))
            names, codes = list(groups.names), groups.codes
        elif self.condition == "length":
            strata = length_strata(X)
            names = sorted(set(strata))
            codes = np.array([names.index(own) for own in strata], dtype=np.intp)
        elif self.condition == "class":
            found, codes = np.unique(y, return_inverse=True)
            names = found.tolist()
        kept = outputs, score, self.condition, self.randomized
        return Calibration(*kept, y, names, codes, groups)

    def _folds(self, X, y, for_split):
        """Pairs of training and calibration examples; None for a fitted estimator."""
        n = _num_samples(X)
        if self._is_prefit():
            return [(None, np.arange(n))]
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Real) and not isinstance(cv, Integral):
            n_held_out = int(round(float(cv) * n))
            if not 0 < n_held_out < n:
                raise ValueError(
                    f"cv={cv} of n_samples={n} leaves {n_held_out} to calibrate and "
                    f"{n - n_held_out} to fit. Use more examples."
                )
            cv = ShuffleSplit(1, test_size=n_held_out, random_state=self.random_state)
        elif isinstance(cv, Integral):
            refuse_many_folds(cv, n)
            cv = KFold(cv, shuffle=True, random_state=self.random_state)
        folds = checked_folds(cv, X, y, **for_split)
        times = np.zeros(n, dtype=np.intp)
        for train, test in folds:
            times[test] += 1
            if np.intersect1d(train, test).size:
                raise ValueError(
                    "A fold of cv has examples in both its training and its test part. "
                    "Sets are calibrated by examples that the fit has not seen."
                )
        if not folds or (times > 1).any():
            raise ValueError(
                "Each example must be in the test part of at most one fold of cv, which "
                "must have at least one."
            )
        if len(folds) > 1 and (
            self.coverage == "average" or self.conformity_score == "likelihood"
        ):
            raise ValueError(
                "coverage='average' and conformity_score='likelihood' need one held-out "
                f"part; cv={self.cv!r} has {len(folds)} folds. Use cv=0.25, for example."
            )
        return folds

    def _check_numbers(self, data, tests):
        """Raise ValueError if no stratum has enough examples; warn if some do not."""
        needed = smallest_calibration(self.confidence_level)
        codes = data.codes[np.concatenate(tests)]
        numbers = np.bincount(codes, minlength=len(data.names))
        if numbers.max(initial=0) < needed:
            where = "" if self.condition is None else f" in one {self.condition}"
            raise ValueError(
                f"confidence_level={self.confidence_level} needs at least {needed} "
                f"examples to calibrate{where}: with n of them, the smallest error that "
                f"can be promised is 1 / (n + 1). There are {numbers.max(initial=0)} "
                f"(n_samples={len(data.codes)}, cv={self.cv!r}). Use more examples, hold "
                "out more of them, use folds such as cv=5, or ask for less."
            )
        few = [name for name, n in zip(data.names, numbers, strict=True) if n < needed]
        if few:
            what = "is in every set" if self.condition == "class" else "gets full sets"
            warn_caller(
                f"Fewer than {needed} calibration examples, which "
                f"confidence_level={self.confidence_level} needs, for the "
                f"{self.condition} {listed(few)}: it {what}.",
            )

    def _calibrate(self, data, models, folds, X, params):
        """`data` with the classes, and a `Threshold` for each stratum.

        `params` are those of the method that scores are made of, for all examples.
        """
        everything = data.y[:0] if self._is_prefit() else data.y
        data.classes = data.outputs.classes_of(models, everything)
        if self.condition == "class":
            absent = [name for name in data.classes.tolist() if name not in data.names]
            if absent:
                warn_caller(
                    f"No calibration examples of the class {listed(absent)}: it is in "
                    "every set.",
                )
        if data.randomized:
            rng = check_random_state(self.random_state)
            data.row_hash = RowHash(X, int(rng.randint(np.iinfo(np.int32).max)))
        largest, needed, codes = [], [], []
        for model, (_, test) in zip(models, folds, strict=True):
            own = _safe_indexing(X, test) if len(test) < len(data.y) else X
            truth = data.y[test]
            codes.append(data.codes[test])
            if data.score == "likelihood":
                largest.append(likelihood_gaps(model, own, truth))
                continue
            own_params = _check_method_params(X, params, indices=test)
            scores = self._ask(data, model, own, own_params)
            largest.append(data.outputs.largest(scores, truth, data.classes))
            if self.coverage == "average":
                needed = data.outputs.needed(scores, truth, data.classes)
        data.thresholds = []
        for g in range(len(data.names)):
            places = [np.flatnonzero(own == g) for own in codes]
            parts = [own[at] for own, at in zip(largest, places, strict=True)]
            shares = None
            if self.coverage == "average":
                shares = [needed[i] for i in places[0]]
            data.thresholds.append(Threshold(self.confidence_level, parts, shares))
        if "class" in data.outputs.conditions and self.condition != "class":
            truth = np.concatenate([data.y[test] for _, test in folds])
            self._warn_of_classes(data, truth, *map(np.concatenate, (largest, codes)))
        return data

    def _warn_of_classes(self, data, truth, scores, codes):
        """UserWarning for classes whose own calibration examples are covered too rarely.

        That is less often than 1 - 2 α, which is what folds promise for all examples
        together, beyond chance.
        """
        covered = np.zeros(len(scores), dtype=bool)
        for g, threshold in enumerate(data.thresholds):
            rows = codes == g
            covered[rows] = threshold.includes([scores[rows]] * len(threshold.sorted))
        names, classes = np.unique(truth, return_inverse=True)
        n = np.bincount(classes)
        k = np.bincount(classes, weights=covered)
        # If no class is covered too rarely, a warning has this probability.
        most = upper_limit(k, n, 0.01 / len(names))
        few = most < 1.0 - 2.0 * (1.0 - self.confidence_level)
        if few.any():
            told = [
                f"{plain(name)!r} ({share:.2f} of {size})"
                for name, share, size in zip(
                    names[few], (k / n)[few], n[few], strict=True
                )
            ]
            warn_caller(
                f"The promise of {self.confidence_level} is for all examples together. "
                "Sets contain the truth of far fewer calibration examples of the class "
                f"{listed_names(told, str)}. condition='class' promises it for "
                "each class.",
            )

    def _ask(self, data, model, X, params):
        """Nonconformity scores; random shares are a function of the row alone."""
        refuse_masked("X", X)
        X, shares = as_canonical(X), None
        if data.randomized:
            shares = data.row_hash.choices(X, _num_samples(X))
        if not callable(data.score):
            check_choice("The score of the calibration", data.score, data.outputs.scores)
        return data.outputs.ask(model, X, data.score, data.classes, shares, params)
