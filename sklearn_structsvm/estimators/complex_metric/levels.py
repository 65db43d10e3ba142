"""Cross-validated fits at several levels of a constraint."""

from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import indexable

from sklearn_structsvm._contract.answers import checked_folds
from sklearn_structsvm._utils.borders import as_canonical, check_sequence
from sklearn_structsvm._utils.compat import _safe_indexing
from sklearn_structsvm._utils.mistakes import meant
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.base import fit_aside
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

# A parity between groups has both parameters; its `bound` says which one it uses.
_NOT_USED_WITH = {"slack": "ratio", "ratio": "difference"}

MEASURES = ("train_scores", "test_scores", "train_violations", "test_violations")


def fit_at_levels(estimator, X, y, param_name, levels, cv, weights, groups, n_jobs):
    """Cross-validate at each level.

    `estimator` (ComplexMetricClassifier): it is cloned, not changed. `param_name` (str
    or sequence of str): parameters of the constraints, as named by `get_params`.
    `weights`, `groups` (n,) or None: `sample_weight` and `sensitive_features`. Returns
    `results` (dict of (n_levels, n_splits)): one array per name in `MEASURES`; NaN if
    no classifier meets the constraints; `unconstrained` (n_splits,): without constraints.
    """
    constraints = [_at_level(estimator, param_name, level) for level in levels]
    X, y = as_canonical(X), as_canonical(y, "y")
    weights = as_canonical(weights, "sample_weight")
    X, y, weights, groups = indexable(X, y, weights, groups)
    splits = checked_folds(cv, X, y, classifier=True)
    by_split = Parallel(n_jobs=n_jobs)(
        delayed(_fit_split)(
            estimator,
            constraints,
            *(_Part(X, y, weights, groups, rows) for rows in split),
        )
        for split in splits
    )
    table = np.array([measures for measures, _ in by_split])
    results = {key: table[:, :, j].T for j, key in enumerate(MEASURES)}
    return results, np.array([score for _, score in by_split])


def _at_level(estimator, param_name, level):
    """Copies of the constraints with `param_name` set to `level`."""
    if not isinstance(param_name, str):
        check_sequence("param_name", param_name, "a name or a sequence of names")
    names = [param_name] if isinstance(param_name, str) else list(param_name)
    model = clone(estimator)
    known = model.get_params()
    levels = [name for name in known if name.startswith("constraints__")]
    for name in names:
        if name not in levels:
            raise ValueError(
                f"param_name must be a parameter of a constraint, one of {levels}; got "
                f"{name!r}.{meant(name, levels)}"
            )
        owner, _, param = name.rpartition("__")
        if known.get(f"{owner}__bound") == _NOT_USED_WITH.get(param, ""):
            raise ValueError(
                f"{name!r} has no effect with bound={known[f'{owner}__bound']!r}."
            )
    model.set_params(**dict.fromkeys(names, level))
    return list(read_constraints(model.constraints))


class _Part:
    """Training or test rows of a split, with their metadata."""

    def __init__(self, X, y, weights, groups, rows):
        self.X, self.y = _safe_indexing(X, rows), _safe_indexing(y, rows)
        given = {"sample_weight": weights, "sensitive_features": groups}
        self.metadata = {
            name: _safe_indexing(values, rows)
            for name, values in given.items()
            if values is not None
        }


def _fit_split(estimator, constraints, train, test):
    """((n_levels, 4) measures, unconstrained score) of one split."""

    # The class probabilities are the same at all levels.
    fit_within = partial(type(estimator)._fit_within, shared={})

    def fit(constraints):
        model = clone(estimator).set_params(constraints=constraints)
        return fit_aside(
            model, fit_within, X=train.X, y=train.y, fit_params={}, **train.metadata
        )

    free = fit(())
    table = np.full((len(constraints), len(MEASURES)), np.nan)
    for row, at_level in zip(table, constraints, strict=True):
        try:
            model = fit(at_level)
        except InfeasibleConstraintError:
            continue
        row[:2] = [_score(model, part) for part in (train, test)]
        row[2:] = [_violation(model, at_level, part) for part in (train, test)]
    return table, _score(free, test)


def _score(model, part):
    """Score of the expected confusion matrix."""
    scorer = model.metric_.scorer(response="predict_proba")
    return scorer(model, part.X, part.y, **part.metadata)


def _violation(model, constraints, part):
    """Largest violation of a constraint by the expected confusion matrix.

    NaN if the part has no example of a group that a constraint names.
    """
    try:
        return max(
            -constraint.scorer(response="predict_proba")(
                model, part.X, part.y, **part.metadata
            )
            for constraint in constraints
        )
    except ValueError:
        # The constraints are valid, or the fit would have failed: a group is missing.
        return np.nan
