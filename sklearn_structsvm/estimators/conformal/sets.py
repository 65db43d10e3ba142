"""Sets of outputs for given thresholds."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm.estimators.conformal.calibrating import CalibratingMixin
from sklearn_structsvm.estimators.conformal.outputs import (
    hierarchy_of,
    lattices,
    length_strata,
    read_outputs,
)
from sklearn_structsvm.structures.base import as_object_array
from sklearn_structsvm.structures.lattice import LabelingLattice


class SetsMixin(CalibratingMixin):
    """Predicts sets, describes and counts them."""

    classes_: np.ndarray
    estimator_: Any
    estimators_: list[Any]
    conformity_score_: Any
    thresholds_: np.ndarray
    _asked: Any

    @of_one_fit
    def predict_set(
        self, X: Any, *, sensitive_features: ArrayLike | None = None, **params: Any
    ) -> np.ndarray:
        """Predict sets that contain the truth as often as `confidence_level` says.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        sensitive_features : array-like or None, default=None
            The groups, for ``condition="group"``.
        **params : dict
            Parameters of the estimator's method that is called. With metadata routing,
            those that it requests: for sets the requests of `predict_proba`, or of
            `decision_function` where scores are made of that.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), dtype bool
            Whether each class is in the set. For sequences, trees and graphs an object
            array of shape (n_samples,), whose item i has shape (T_i, n_classes). A set
            may be empty, and may hold all classes: see `set_report`.
        """
        check_is_fitted(self)
        asked = self._asked(self._calibrated, params, sensitive_features)
        if self.conformity_score_ == "likelihood":
            found = self.predict_lattice(X, sensitive_features=sensitive_features)
            return as_object_array([lattice.nodes for lattice in found])
        strata = self._strata_of(X, sensitive_features)
        data = self._calibrated
        scores = [self._ask(data, model, X, asked) for model in self.estimators_]
        if not self._calibrated.outputs.has_nodes:
            return self._included(scores, strata)
        n_nodes = [len(own) for own in scores[0]]
        if not n_nodes:
            return np.empty(0, dtype=object)
        joined = self._included(
            [np.concatenate(list(own)) for own in scores], np.repeat(strata, n_nodes)
        )
        return as_object_array(np.split(joined, np.cumsum(n_nodes)[:-1]))

    @of_one_fit
    def predict_lattice(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> list[LabelingLattice]:
        """Predict the sets of whole labelings, with ``conformity_score="likelihood"``.

        Parameters
        ----------
        X, sensitive_features : as in `predict_set`
            Input data.

        Returns
        -------
        list of LabelingLattice
            The labelings that are near enough to the best one, for each example.
        """
        check_is_fitted(self)
        if self.conformity_score_ != "likelihood":
            raise ValueError(
                "predict_lattice needs conformity_score='likelihood'; got "
                f"{self.conformity_score!r}."
            )
        strata = self._strata_of(X, sensitive_features)
        return lattices(self.estimator_, X, np.append(self.thresholds_, np.inf)[strata])

    @of_one_fit
    def set_names(self, sets: Any) -> list[Any]:
        """Name what is in sets.

        Parameters
        ----------
        sets : array
            As `predict_set` returns them.

        Returns
        -------
        list
            For each set an array of classes; for sequences, trees and graphs a list of
            such arrays. For a `HierarchicalStructure`, the nodes whose leaves are the
            set: in a forest there are no fewer nodes with these leaves.
        """
        check_is_fitted(self)
        hierarchy = hierarchy_of(self.estimator_)
        if hierarchy is not None:
            covers = hierarchy.covers(np.asarray(sets, dtype=bool))
            return [hierarchy.nodes[row] for row in covers]
        if self._calibrated.outputs.has_nodes:
            return [[self.classes_[row] for row in own] for own in sets]
        return [self.classes_[row] for row in np.asarray(sets, dtype=bool)]

    @of_one_fit
    def set_report(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: ArrayLike | None = None,
        **params: Any,
    ) -> dict[str, Any]:
        """Count how often sets hold the truth, and how much they say.

        Parameters
        ----------
        X, y, sensitive_features : as in `fit`
            Test data.
        **params : as in `predict_set`

        Returns
        -------
        dict
            - "n_samples": number of examples.
            - "coverage": share of the examples whose set contains the whole truth.
            - "average_coverage": mean share of the true labels of an example that its
              set contains.
            - "mean_size": mean number of classes in the set of a row, position or node.
            - "n_single", "n_empty", "n_full": numbers of rows, positions or nodes with
              one class, none and all of them. A full set says nothing: it is an
              abstention.
        """
        check_is_fitted(self)
        outputs, y = read_outputs(X, y)
        fitted = self._calibrated.outputs
        if type(outputs) is not type(fitted):
            raise ValueError(f"y holds {outputs.name}, but held {fitted.name} in fit.")
        if self.conformity_score_ == "likelihood":
            found = self.predict_lattice(X, sensitive_features=sensitive_features)
            sets = as_object_array([lattice.nodes for lattice in found])
            shares = outputs.covered(sets, y, self.classes_)
            is_covered = [labels in own for labels, own in zip(y, found, strict=True)]
        else:
            sets = self.predict_set(X, sensitive_features=sensitive_features, **params)
            shares = outputs.covered(sets, y, self.classes_)
            is_covered = shares == 1.0
        rows = np.concatenate(list(sets)) if outputs.has_nodes else sets
        sizes = rows.sum(axis=1)
        return {
            "n_samples": len(y),
            "coverage": float(np.mean(is_covered)),
            "average_coverage": float(np.mean(shares)),
            "mean_size": float(sizes.mean()),
            "n_single": int((sizes == 1).sum()),
            "n_empty": int((sizes == 0).sum()),
            "n_full": int((sizes == len(self.classes_)).sum()),
        }

    def _strata_of(self, X, sensitive_features):
        """The stratum of each example, or -1 if it was not calibrated."""
        data, n = self._calibrated, _num_samples(X)
        if (sensitive_features is None) != (data.groups is None):
            raise ValueError(
                f"sensitive_features are needed {'' if data.groups else 'only '}after a "
                "fit with condition='group'."
            )
        if data.groups is not None:
            return data.groups.encode(sensitive_features, n)
        if data.condition != "length":
            return np.zeros(n, dtype=np.intp)
        where = {name: g for g, name in enumerate(data.names)}
        return np.array([where.get(own, -1) for own in length_strata(X)], dtype=np.intp)

    def _included(self, scores, strata):
        """The classes in the sets of rows, given the scores of each model."""
        data = self._calibrated
        result = np.ones(scores[0].shape, dtype=bool)
        if data.condition == "class":
            where = {name: g for g, name in enumerate(data.names)}
            for c, name in enumerate(data.classes.tolist()):
                if name in where:
                    own = [table[:, c] for table in scores]
                    result[:, c] = data.thresholds[where[name]].includes(own)
            return result
        for g, threshold in enumerate(data.thresholds):
            rows = strata == g
            result[rows] = threshold.includes([table[rows] for table in scores])
        return result
