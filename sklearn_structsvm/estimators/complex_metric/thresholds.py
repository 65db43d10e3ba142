"""The threshold that a rule for two classes consists of."""

from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.borders import check_classes, check_shape
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm.estimators.complex_metric.single_rule import find_single_rule
from sklearn_structsvm.solvers.confusion.column_generation import run_column_generation
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError


class Thresholds:
    """Mixin: `threshold_` and `thresholds_` of a fitted mixture, if it is one rule."""

    classes_: np.ndarray
    groups_: np.ndarray | None

    @property
    @of_one_fit
    def threshold_(self) -> float:
        """The probability of the named label above which it is predicted."""
        found = self._single_rule("threshold_").cuts().told[0]
        if len(found) > 1:
            raise AttributeError(
                "There is no single threshold_, because the rules of the groups differ. "
                "See thresholds_."
            )
        return float(found[0])

    @property
    @of_one_fit
    def thresholds_(self) -> dict:
        """`threshold_` of each group, by its name."""
        found = self._single_rule("thresholds_").cuts().told[0].tolist()
        if self.groups_ is not None:
            check_shape("groups_", self.groups_, "n_groups")
        if self.groups_ is None or len(found) != len(self.groups_):
            raise AttributeError(
                "There are no thresholds_, because the classifier has no rules per group."
            )
        names = [name if np.ndim(name) == 0 else tuple(name) for name in self.groups_]
        return dict(zip(names, found, strict=True))

    def _single_rule(self, name, *, is_threshold=True):
        """The mixture if it is of one rule; AttributeError otherwise."""
        mixture = getattr(self, "mixture_", None)
        if mixture is None:
            raise AttributeError(f"There is no {name} before fit.")
        check_classes(self.classes_)
        mixture.check(len(self.classes_))
        if not mixture.needs_probabilities:
            why = "the classifiers of this lmo decide without class probabilities"
        elif is_threshold and len(self.classes_) != 2:
            why = f"there are {len(self.classes_)} classes"
        elif is_threshold and mixture.n_groups > 1:
            why = "the rule decides by probabilities of groups and labels"
        elif len(mixture.weights) > 1:
            why = (
                f"the classifier is a mixture of {len(mixture.weights)} rules; "
                "randomized=False finds the best single one"
            )
        elif mixture.needs_costs:
            why = "the rule depends on the costs of the example"
        else:
            return mixture
        raise AttributeError(f"There is no {name}: {why}.")


def fold_thresholds(oracle, folds, *, tol, max_iter, deadline=np.inf, randomized=True):
    """The thresholds chosen on the held-out part of each fold alone.

    Parameters
    ----------
    oracle : PluginOracle
        Of all folds.
    folds : list of slice
        Its rows.
    tol, max_iter : as of the estimator
    deadline : float
        In seconds of `perf_counter`; each fold makes an iteration beyond it.
    randomized : bool
        Whether a mixture may be chosen.

    Returns
    -------
    ndarray of shape (n_folds, m)
        Means over the mixture; nan if no rule satisfies the constraints, or if rules that
        always and never predict a class are mixed.
    """
    found = np.full((len(folds), oracle.n_cells), np.nan)
    for row, fold in zip(found, folds, strict=True):
        left = None if np.isinf(deadline) else max(deadline - perf_counter(), 0.0)
        try:
            part = oracle.take(fold)
            problem = part.task.problem(part.lmo)
            result = run_column_generation(
                problem, tol=tol, max_iter=max_iter, max_time=left
            )
            if not randomized:
                result = find_single_rule(part, problem, result, [], tol, deadline)
        except (ValueError, InfeasibleConstraintError):
            # A part may lack weights, a class or a group that a constraint names.
            continue
        mixture = part.attributes(result.solution)["mixture_"]
        # A mixture of "always" and "never" has no mean.
        with np.errstate(invalid="ignore"):
            row[:] = [mixture.weights @ column for column in mixture.cuts().told.T]
    return found
