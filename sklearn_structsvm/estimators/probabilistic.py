"""Predictions from the probabilities of a conditional random field."""

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length

from sklearn_structsvm._utils.arrays import foreign_namespace, refuse_foreign
from sklearn_structsvm._utils.borders import as_canonical, check_choice
from sklearn_structsvm._utils.compat import available_if
from sklearn_structsvm._utils.labels import refuse_missing
from sklearn_structsvm._utils.snapshots import of_one_fit
from sklearn_structsvm._utils.threads import count_threads
from sklearn_structsvm.distributed.dask_workers import holds_dask
from sklearn_structsvm.estimators.base import require_y
from sklearn_structsvm.estimators.named_structures import named_structure
from sklearn_structsvm.estimators.prediction import one_by_one, structure_has
from sklearn_structsvm.estimators.structured import StructuredClassifier
from sklearn_structsvm.structures.answers import checked_data
from sklearn_structsvm.structures.base import as_object_array

DECODINGS = ("map", "mbr")


class ProbabilisticClassifier(StructuredClassifier):
    """Predictions from p(y | x) of a conditional random field with given weights."""

    has_costs_of_training = True

    @property
    def _decoding(self):
        """The value of the option `decoding`."""
        return self._options.decoding

    def _check_parameters(self):
        super()._check_parameters()
        structure = named_structure(self.structure)
        if structure is None or structure.has_sums or structure.has_bounded_sums:
            return
        raise ValueError(
            f"{type(self).__name__} needs a structure that can sum over all labelings: "
            "ChainStructure, TreeStructure, GraphStructure, BinaryStructure, "
            f"MulticlassStructure or MultilabelStructure; got {self.structure!r}. For "
            "other structures use BCFWClassifier."
        )

    @of_one_fit
    def predict(
        self, X: Any, *, allowed: Any = None, min_length: Any = None
    ) -> np.ndarray:
        """Predict the output of each example according to `decoding`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or sequence
            One row per example for flat structures. For others, a sequence with one item
            per example, such as arrays or CSR matrices of shape (T_i, n_features).
        allowed : sequence of n_samples entries, or None, default=None
            The labels that may be predicted, for chains and trees. The entry of an
            example is None (all labels), a boolean array of shape (T_i, n_classes) in the
            order of `classes_`, or a sequence with an entry for each position: a label, a
            set or list of labels, or None (or `structures.MISSING`) for any.
        min_length : int, dict or None, default=None
            The least number of equal labels in a row, for chains: one number, or a
            number for each label, ``{"walk": 5}``, and 1 for the others. Also the first
            and the last run are that long. A sequence that is shorter than all of these
            numbers gets one label. The labeling is the best one of this kind according
            to `decoding`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, a label indicator matrix, or an object array with one labeling
            per example. For a Dask collection the result is a lazy collection, and for a
            list of delayed parts a list of delayed results.

        Raises
        ------
        ValueError
            If `allowed` or `min_length`, with the `transitions` of the structure, leaves
            an example no labeling.
        """
        check_choice("decoding", self._decoding, DECODINGS)
        if self._decoding == "map" or holds_dask(X):
            return super().predict(X, allowed=allowed, min_length=min_length)
        X = self._check_X(X, takes_foreign=True)
        if min_length is not None:
            pairs = self._ask_best_runs(X, min_length, allowed, "_least_costly_runs")
            return as_object_array([labelings[0] for labelings, _ in pairs])
        structure, n_threads = self.structure_, self._n_threads(X)
        masks = self._check_allowed(X, allowed)

        def decode(X, *own):
            marginals = self._of_each("marginals", X, w, n_threads, *own)
            return structure.least_costly(X, marginals, *own)

        with self._reading() as w:
            return self._ask(X, decode, self._no_labels(), allowed=masks)

    def _ask_run_sums(self, X, min_length, allowed):
        nothing = self._no_scores(), 0.0
        return self._ask_runs("_run_sums", X, min_length, allowed, nothing)

    def _marginals(self, X, allowed):
        masks = self._check_allowed(X, allowed)
        with self._reading() as w:
            n_threads = self._n_threads(X)
            return self._ask(
                X,
                lambda X, *own: self._of_each("marginals", X, w, n_threads, *own),
                self._no_scores(),
                allowed=masks,
            )

    @of_one_fit
    def predict_proba(
        self, X: Any, *, allowed: Any = None, min_length: Any = None
    ) -> np.ndarray:
        """Compute the marginal probabilities of the classes.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        allowed : sequence of n_samples entries, or None, default=None
            The allowed labels, as in `predict`. Probabilities are conditional on them.
        min_length : int, dict or None, default=None
            As in `predict`. Probabilities are conditional on runs of that length.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Probabilities of the classes, in the order of `classes_`, or of the presence
            of each label. For chains, trees and graphs an object array of shape
            (n_samples,), whose item i has shape (T_i, n_classes): the marginals at each
            position. Those of graphs with cycles are approximate.

        See Also
        --------
        cross_val_predict_proba : The same, by fits to other sequences.
        """
        X = self._check_X(X, takes_foreign=True)
        if min_length is not None:
            sums = self._ask_run_sums(X, min_length, allowed)
            return as_object_array([marginals for marginals, _ in sums])
        return self._marginals(X, allowed)

    @of_one_fit
    def predict_log_proba(self, X: Any, *, allowed: Any = None) -> np.ndarray:
        """Compute the logarithms of the marginal probabilities.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        allowed : sequence of n_samples entries, or None, default=None
            As in `predict_proba`.

        Returns
        -------
        ndarray
            As for `predict_proba`, with -inf where a probability underflows to zero.
        """
        proba = self._marginals(self._check_X(X, takes_foreign=True), allowed)
        with np.errstate(divide="ignore"):
            if self.structure_.flat:
                xp = foreign_namespace(proba)
                return np.log(proba, out=proba) if xp is None else xp.log(proba)
            return as_object_array([np.log(item) for item in proba])

    @available_if(structure_has("edge_marginals"))
    @of_one_fit
    def predict_edge_proba(self, X: Any, *, allowed: Any = None) -> np.ndarray:
        """Compute the probabilities of pairs of neighboring labels, in chains and trees.

        Parameters
        ----------
        X : sequence of n_samples examples
            Sequences or trees, as in `fit`.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that are allowed, as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,), dtype object
            Item i has shape (T_i - 1, n_classes, n_classes) for a chain: entry (t, a, b)
            is the probability of class a at position t and b at the next one. For a tree
            it has an entry for each node with a parent, in the order of the nodes,
            indexed by the class of the parent first.

        Examples
        --------
        >>> from sklearn_structsvm import CRFClassifier
        >>> from sklearn_structsvm.datasets import make_chains
        >>> X, y = make_chains(n_samples=10, n_classes=3, random_state=0)
        >>> model = CRFClassifier("chain", random_state=0).fit(X, y)
        >>> pairs = model.predict_edge_proba(X)[0]
        >>> pairs.shape == (len(X[0]) - 1, 3, 3)
        True
        >>> bool(abs(pairs.sum(axis=2) - model.predict_proba(X)[0][:-1]).max() < 1e-9)
        True
        """
        X = self._check_X(X)
        masks = self._check_allowed(X, allowed)
        k = len(self.classes_)
        with self._reading() as w:
            return self._ask(
                X,
                lambda X, *own: as_object_array(
                    one_by_one(
                        lambda x, *own: self.structure_.edge_marginals(x, w, *own),
                        X,
                        *own,
                    )
                ),
                np.empty((0, k, k)),
                allowed=masks,
            )

    @of_one_fit
    def log_likelihood(self, X: Any, y: Any, *, allowed: Any = None) -> np.ndarray:
        r"""Compute the log-likelihood of the whole labeling of each example.

        Parameters
        ----------
        X, y : as in `fit`
            Input data and labelings.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that are allowed, as in `predict`. The probability is conditional
            on them, and 0 for a labeling with others.

        Returns
        -------
        ndarray of shape (n_samples,)
            :math:`\log p(y_i \mid x_i)`, and -inf for a labeling with a label that was
            not seen in `fit`. For graphs with cycles it is a lower bound.
        """
        X = self._check_X(X)
        refuse_foreign(y=y)
        require_y(self, y)
        if not self.structure_.flat:
            _, y = checked_data(self.structure_, X, y)
        else:
            y = as_canonical(y, "y")
            refuse_missing(y)
            y = y.toarray() if sparse.issparse(y) else np.asarray(y)
            check_consistent_length(X, y)
        return self._log_probabilities(X, y, allowed)

    def _log_probabilities(self, X, y, allowed):
        n_threads, w = count_threads(self.n_jobs), self._weights
        # An empty example has a single labeling.
        return self._ask(
            X,
            lambda X, *own: self._of_each(
                "log_probabilities", X, own[0], w, n_threads, *own[1:]
            ),
            nothing=0.0,
            y=y,
            allowed=self._check_allowed(X, allowed),
        )

    @of_one_fit
    def entropy(self, X: Any, *, allowed: Any = None) -> np.ndarray:
        r"""Compute the entropy of the predicted distribution of each example, in nats.

        Parameters
        ----------
        X : as in `fit`
            Input data.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that are allowed, as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Entropies of :math:`p(y \mid x_i)`, from 0, if one labeling is certain, to the
            logarithm of the number of labelings. For graphs with cycles it is the largest
            that a distribution with the marginals of `predict_proba` might have, or more.
        """
        X = self._check_X(X)
        n_threads, w = count_threads(self.n_jobs), self._weights
        return self._ask(
            X,
            lambda X, *own: self._of_each("entropies", X, w, n_threads, *own),
            nothing=0.0,
            allowed=self._check_allowed(X, allowed),
        )

    @available_if(structure_has("k_best"))
    @of_one_fit
    def predict_k_best(
        self, X: Any, k: int = 5, *, allowed: Any = None, min_length: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the k most probable labelings of each example, with their probabilities.

        Parameters
        ----------
        X : sequence of n_samples examples
            Sequences or trees, as in `fit`.
        k : int, default=5
            Number of labelings.
        allowed : sequence of n_samples entries, or None, default=None
            The labels that are allowed, as in `predict_proba`.
        min_length : int, dict or None, default=None
            As in `predict_proba`.

        Returns
        -------
        labelings : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i, T_i), with the most probable labeling first. m_i is k,
            or the number of labelings if that is smaller.
        probabilities : ndarray of shape (n_samples,), dtype object
            Item i has shape (m_i,).
        """
        X = self._check_X(X)
        # Masks are valid values of `allowed`, and are read faster than labels.
        allowed = self._check_allowed(X, allowed)
        labelings, scores = super().predict_k_best(
            X, k, allowed=allowed, min_length=min_length
        )
        if min_length is not None:
            sums = self._ask_run_sums(X, min_length, allowed)
            shares = [np.exp(own - sums[i][1]) for i, own in enumerate(scores)]
            return labelings, as_object_array(shares)
        best = [items[0] for items in labelings]
        logs = self._log_probabilities(X, best, allowed)
        probabilities = [
            np.exp(log + (values - values[0]))
            for log, values in zip(logs, scores, strict=True)
        ]
        return labelings, as_object_array(probabilities)

    @available_if(structure_has("spans"))
    @of_one_fit
    def predict_spans(
        self, X: Any, *, threshold: float | None = None, allowed: Any = None
    ) -> np.ndarray:
        r"""Find the entities of tagged sequences, with their probabilities.

        The labels must be tags of entities, such as "B-PER", "I-PER" and "O". As in
        :func:`~sklearn_structsvm.metrics.entity_f1_score`, an entity is a type with a
        first and a last position, and tags may be of any scheme; with
        ``ChainStructure(transitions="runs")`` an entity is a run of a label. With
        `transitions`, strict scores know the same entities. The probability of one is
        that of all labelings which have exactly this entity:

        .. math::

            P(e \mid x) = \sum_{y : \, e \in E(y)} p(y \mid x) .

        It is not the product of the marginal probabilities of its tags, which depend on
        one another.

        Parameters
        ----------
        X : sequence of n_samples examples
            Sequences, as in `fit`.
        threshold : float or None, default=None
            None returns the entities of the labeling that `predict` returns. A number,
            more than 0 and at most 1, returns all entities with at least this
            probability; they may overlap.
        allowed : sequence of n_samples entries, or None, default=None
            The allowed labels, as in `predict`. Probabilities are conditional on them.

        Returns
        -------
        ndarray of shape (n_samples,), dtype object
            Item i is a list of named tuples (start, stop, type, probability), sorted by
            position. The positions of an entity are ``range(start, stop)``.

        Raises
        ------
        ValueError
            If a class is not a tag of an entity, if `threshold` is out of bounds, or as
            in `predict`.

        Notes
        -----
        Given x, the labels are a Markov chain, whose steps follow from sums over all that
        comes later. One pass over the positions then carries all spans that are likely
        enough. At most 1 / `threshold` of them hold the same position, so the time is
        :math:`O(T (K^2 + m^2 / \mathrm{threshold}))` for T positions, K classes and m
        tags of one type. Such constrained sums are those of [1]_.

        References
        ----------
        .. [1] Culotta, McCallum, "Confidence estimation for information extraction",
           HLT-NAACL 2004.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_structsvm import CRFClassifier
        >>> words = [np.eye(4)[[0, 1, 2, 3]], np.eye(4)[[2, 0, 3]]]
        >>> tags = [["B-NP", "I-NP", "O", "O"], ["O", "B-NP", "O"]]
        >>> model = CRFClassifier("chain", random_state=0).fit(words, tags)
        >>> model.predict_spans(words)[0]
        [Span(start=0, stop=2, type='NP', probability=0.359...)]
        >>> for span in model.predict_spans(words, threshold=0.2)[0]:
        ...     print(span.start, span.stop, span.type, f"{span.probability:.2f}")
        0 1 NP 0.36
        0 2 NP 0.36
        1 2 NP 0.22
        """
        if threshold is not None:
            is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
            if not (is_number and 0.0 < threshold <= 1.0):
                raise ValueError(
                    "threshold must be None or a number above 0 and at most 1; got "
                    f"{threshold!r}."
                )
        X = self._check_X(X)
        tags, labelings = self.structure_.span_tables(), None
        if threshold is None:
            labelings = self.predict(X, allowed=allowed)
        masks = self._check_allowed(X, allowed)
        asked = ["labels"] * (labelings is not None) + ["allowed"] * (masks is not None)

        def ask(x, *own):
            beside = dict(zip(asked, own, strict=True))
            return self.structure_.spans(x, w, tags, threshold, **beside)

        with self._reading() as w:
            found = self._ask(
                X,
                lambda X, *own: as_object_array(one_by_one(ask, X, *own)),
                (),
                y=labelings,
                allowed=masks,
            )
        return as_object_array([list(spans) for spans in found])
