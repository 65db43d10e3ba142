"""Why a tagger says what it says: contributions to a prediction, and large weights."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import as_dense, check_integer
from sklearn_structsvm._utils.labels import plain
from sklearn_structsvm._utils.mistakes import meant, require, with_plain_calls
from sklearn_structsvm._utils.pipelines import final_step, names_before_the_end
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm.structures import ChainStructure, TreeStructure
from sklearn_structsvm.structures.transitions import by_node


class Explanation(NamedTuple):
    """Why a position has its label and not another one.

    Read more in the :ref:`User Guide <guide-explain>`.

    `contributions` are pairs of a name and a number, the largest first; their sum is
    `difference`, by how much the score of the labeling exceeds that with `other` at this
    position.
    """

    position: int
    label: Any
    other: Any
    difference: float
    contributions: list[tuple[str, float]]


@with_plain_calls
def explain(estimator: Any, x: Any) -> list[Explanation]:
    """Explain why each position was given its label.

    A label is compared with the one that would be second best there if all other labels
    stayed as they are. The difference of the two scores is a sum: of a term for each
    feature of the position, and for its neighboring labels.

    Read more in the :ref:`User Guide <guide-explain>`.

    Parameters
    ----------
    estimator : fitted estimator over a ChainStructure or TreeStructure
        Such as `CRFClassifier`, or a pipeline that ends in one.
    x : array-like, CSR matrix, or what the pipeline takes for one sequence
        One item of X.

    Returns
    -------
    list of Explanation
        Named tuples (position, label, other, difference, contributions), one for each
        position. Features have the names that the pipeline knows. "previous=B-NP" and
        "next=O" are neighbors, "parent=..." and "child=..." those of trees, "bias" and
        the like what a label has everywhere, "score" that of an item (features, scores).
        Positions where no other label is allowed have None as `other`, and no
        contributions.

    Raises
    ------
    TypeError
        If the estimator has no chain or tree structure.

    See Also
    --------
    top_features : The largest weights of a label.
    CRFClassifier.predict_edge_proba : Probabilities of pairs of neighboring labels.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.inspection import explain
    >>> from sklearn_structsvm.preprocessing import WordFeatures
    >>> X = [["the", "cat"], ["a", "dog"], ["the", "dog", "barks"]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> model = make_pipeline(WordFeatures(), CRFClassifier("chain", random_state=0))
    >>> dog = explain(model.fit(X, y), ["a", "dog"])[1]
    >>> dog.label, dog.other
    ('NOUN', 'VERB')
    >>> abs(sum(value for _, value in dog.contributions) - dog.difference) < 1e-9
    True
    """
    model, names = _tagger(estimator)
    if isinstance(x, list) and x and np.ndim(x[0]) == 2:
        raise ValueError("x is a list of sequences; explain takes one, such as X[0].")
    structure, k = model.structure_, len(model.classes_)
    _, X = final_step(estimator, [x])
    (x,), _ = structure.check_data(list(X))
    codes = np.searchsorted(model.classes_, model.predict([x])[0])
    coef = as_dense(model.coef_, structure.n_weights_)
    parts = structure.weight_parts(coef)
    theta, transition = structure.potentials(x, coef)
    if transition is None:
        transition = np.zeros((k, k))
    transition = by_node(transition, len(codes))
    parents = _parents_of(structure, x, len(codes))
    children = [np.flatnonzero(parents == t) for t in range(len(codes))]
    rows = _features_of(structure, x)
    found = []
    for t, code in enumerate(codes.tolist()):
        label = plain(model.classes_[code])
        own = [] if parents[t] < 0 else [codes[parents[t]]]
        below = codes[children[t]]
        # From the labels before, and to those after: a row for each.
        before, after = transition[t, own], transition[children[t], :, below]
        scores = theta[t] + before.sum(axis=0) + after.sum(axis=0)
        others = np.where(_allowed(structure, own, below), scores, -np.inf)
        others[code] = -np.inf
        other = int(others.argmax())
        if others[other] == -np.inf:
            found.append(Explanation(t, label, None, np.inf, []))
            continue
        terms = _node_terms(structure, parts, rows, names, t, parents, (code, other))
        rest = theta[t, code] - theta[t, other] - sum(value for _, value in terms)
        if structure.emission in ("given", "both"):
            terms.append(("score", rest))
        names_around = _NEIGHBORS[isinstance(structure, ChainStructure)]
        for name, rows_of, there in zip(
            names_around, (before, after), (own, below), strict=True
        ):
            weights = rows_of[:, code] - rows_of[:, other]
            labels = [f"{name}={plain(model.classes_[c])}" for c in there]
            terms += zip(labels, weights, strict=True)
        terms = [(str(name), float(value)) for name, value in terms if value]
        terms.sort(key=lambda term: -abs(term[1]))
        runner_up = plain(model.classes_[other])
        difference = float(scores[code] - scores[other])
        found.append(Explanation(t, label, runner_up, difference, terms))
    return found


# Names of the labels before and after one, in chains and in trees.
_NEIGHBORS = {True: ("previous", "next"), False: ("parent", "child")}


@with_plain_calls
def top_features(
    estimator: Any, label: Any, *, n_features: int = 20, as_frame: bool = False
) -> Any:
    """List the features with the largest weights of a label.

    Read more in the :ref:`User Guide <guide-explain>`.

    Parameters
    ----------
    estimator : fitted estimator over a ChainStructure or TreeStructure
        Such as `CRFClassifier`, or a pipeline that ends in one.
    label : object
        One of `classes_`.
    n_features : int, default=20
        Maximum number of features.
    as_frame : bool, default=False
        Whether to return a data frame, which needs pandas.

    Returns
    -------
    list of (str, float), or pandas.DataFrame
        Names and weights, the largest absolute value first; those of zero are left out.
        The columns of a data frame are "feature" and "weight".

    Raises
    ------
    ImportError
        If a data frame is asked for and pandas is not installed.
    ValueError
        If `label` is not a class.
    TypeError
        If the estimator has no chain or tree structure.

    See Also
    --------
    explain : What speaks for the labels of one prediction.
    transition_table : The weights of pairs of labels.
    sklearn_structsvm.plotting.ChainWeightsDisplay : The weights of all labels.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.inspection import top_features
    >>> from sklearn_structsvm.preprocessing import SequenceTransformer
    >>> X, y = [["the", "cat"], ["the", "dog"]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> model = make_pipeline(
    ...     SequenceTransformer(), CRFClassifier("chain", random_state=0)
    ... )
    >>> [name for name, _ in top_features(model.fit(X, y), "DET", n_features=1)]
    ['the']
    """
    check_integer("n_features", n_features, 1)
    pandas: Any = as_frame and require("pandas", "top_features(as_frame=True)")
    model, names = _tagger(estimator)
    labels = model.classes_.tolist()
    if label not in labels:
        raise ValueError(
            f"label must be one of the classes {labels}; got {label!r}."
            f"{meant(label, labels)}"
        )
    structure = model.structure_
    emission = structure.weight_parts(model.coef_).get("emission")
    weights = np.zeros(0)
    if emission is not None and structure.emission != "given":
        weights = emission[:, labels.index(label)]
    # Stable, so that equal weights are in the order of the features.
    heaviest = np.argsort(-np.abs(weights), kind="stable")[:n_features]
    found = [(str(names(j)), float(weights[j])) for j in heaviest if weights[j]]
    return pandas.DataFrame(found, columns=["feature", "weight"]) if as_frame else found


@with_plain_calls
def transition_table(estimator: Any) -> Any:
    """Make a data frame of the weights of pairs of neighboring labels.

    Read more in the :ref:`User Guide <guide-explain>`.

    Parameters
    ----------
    estimator : fitted estimator over a ChainStructure or TreeStructure
        Such as `CRFClassifier`, or a pipeline that ends in one.

    Returns
    -------
    pandas.DataFrame of shape (n_classes, n_classes)
        A row for each label of the previous position, or of the parent, and a column for
        each label after it; -inf for pairs that the structure forbids, and 0 for all
        others if it has no weights of pairs.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If the estimator has no chain or tree structure.

    See Also
    --------
    top_features : The largest weights of a label.
    sklearn_structsvm.plotting.ChainWeightsDisplay : A drawing of both.

    Examples
    --------
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.datasets import make_chains
    >>> from sklearn_structsvm.inspection import transition_table
    >>> X, y = make_chains(n_samples=20, n_classes=3, random_state=0)
    >>> model = CRFClassifier("chain", random_state=0).fit(X, y)
    >>> transition_table(model).shape  # doctest: +SKIP
    (3, 3)
    """
    pandas = require("pandas", "transition_table")
    model, _ = _tagger(estimator)
    structure, k = model.structure_, len(model.classes_)
    parts = structure.weight_parts(as_dense(model.coef_, structure.n_weights_))
    weights = np.array(parts.get("transition", np.zeros((k, k))))
    if structure.allowed_ is not None:
        weights[~structure.allowed_[:k, :k]] = -np.inf
    labels = model.classes_.tolist()
    index = pandas.Index(labels, name="previous")
    return pandas.DataFrame(weights, index=index, columns=labels)


def _tagger(estimator):
    """The last step of a pipeline, as it is now, and its names of features by number."""
    check_is_fitted(estimator)
    is_pipeline = isinstance(estimator, Pipeline)
    model = snapshot(estimator[-1] if is_pipeline else estimator)
    structure = getattr(model, "structure_", None)
    if not isinstance(structure, ChainStructure | TreeStructure):
        raise TypeError(
            "An explanation needs an estimator over a ChainStructure or TreeStructure, "
            f"or a pipeline that ends in one; got {model!r}."
        )
    names = names_before_the_end(estimator) if is_pipeline else None
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    return model, "x{}".format if names is None else names.__getitem__


def _parents_of(structure, x, n):
    """The parent of each position, -1 for roots: in chains the one before."""
    if isinstance(structure, ChainStructure):
        return np.arange(n) - 1
    return np.asarray(x[1])


def _allowed(structure, own, below):
    """Whether each label may stand between these."""
    table = structure.allowed_
    if table is None:
        return True
    k = len(table) - 1
    before = table[own[0] if own else k, :k]
    after = table[:k, below] if len(below) else table[:k, [k]]
    return before & after.all(axis=1)


def _features_of(structure, x):
    """The features with weights, as CSR; None without any."""
    if not structure.emission or structure.emission == "given":
        return None
    x = structure._features(x)
    return x.tocsr() if isinstance(x, SplitMatrix) else sparse.csr_array(x)


def _node_terms(structure, parts, rows, names, t, parents, codes):
    """What features and biases say for one label and against another at a position."""
    code, other = codes
    terms = []
    if rows is not None:
        places = slice(rows.indptr[t], rows.indptr[t + 1])
        used = rows.indices[places]
        weights = parts["emission"][used, code] - parts["emission"][used, other]
        values = rows.data[places] * weights
        terms += zip(map(names, used.tolist()), values.tolist(), strict=True)
    holds = {
        "bias": True,
        "first_bias": parents[t] < 0,
        "root_bias": parents[t] < 0,
        "last_bias": t == len(parents) - 1,
    }
    for name, is_here in holds.items():
        if is_here and name in parts:
            terms.append((name, parts[name][code] - parts[name][other]))
    return terms
