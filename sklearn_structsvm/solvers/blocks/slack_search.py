"""The most violating labeling of slack rescaling: which search, and what it found."""

from dataclasses import dataclass

import numpy as np

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm.solvers.blocks._slack_oracle import search_block
from sklearn_structsvm.solvers.blocks._slack_search import SEARCHES


@dataclass
class SlackSearchResult:
    """What a search found.

    Attributes
    ----------
    labels : ndarray, or a labeling of a structure of one's own
        As the oracle encodes them.
    margin, loss : float
        h = 1 + f(y) - f(y_true), and g = L(y_true, y).
    value : float
        Φ = g h; 0 where no labeling violates, and then `labels` is the true one.
    bound : float
        At least Φ of every labeling.
    n_queries : int
        Calls of the (constrained) λ-oracle.
    trace : dict of ndarray, or None
        Query by query: "lam", "alpha" and "beta" (the angle asked for), "found"
        (whether there was a labeling in it), and its "margin" and "loss".
    """

    labels: object
    margin: float
    loss: float
    value: float
    bound: float
    n_queries: int
    trace: dict | None


def find_most_violating(
    oracle,
    i,
    w,
    *,
    search="angular",
    rtol=0.0,
    max_queries=1000,
    lam=0.0,
    slack=0.0,
    one=1.0,
    trace=False,
):
    r"""Search block i for the labeling of largest slack-rescaled violation.

    .. math:: \operatorname{argmax}_y\; L(y)\,(1 + f(y) - f(y_i))

    Parameters
    ----------
    oracle : BlockOracle
        As a structure's ``make_oracle(X, y)`` returns it.
    i : int
        Which example of the oracle.
    w : ndarray of shape (n_weights,), float64
    search : {"angular", "exact", "bisecting", "binary", "sarawagi"}
        "angular" (Algorithm 2) and "exact" always find it, the others may miss it
        (Theorem 1): "bisecting" is Algorithm 1, "binary" minimises Lemma 1's bound, and
        "sarawagi" the bound of [2]_ at the slack given.
    rtol : float
        Stop at (1 - rtol) times the largest violation.
    max_queries : int
        Or after this many calls.
    lam : float
        λ to begin with, for "angular" and "bisecting"; 0 for their own choice.
    slack : float
        ξ_i of "sarawagi".
    one : float
        The constant of h.
    trace : bool
        Whether to keep all queries.

    Returns
    -------
    SlackSearchResult

    Raises
    ------
    ValueError
        Where the oracle cannot answer what the search asks.

    References
    ----------
    .. [1] Choi, Meshi, Srebro, "Fast and scalable structural SVM with slack rescaling",
       AISTATS 2016.
    .. [2] Sarawagi, Gupta, "Accurate max-margin training for structured output spaces",
       ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.solvers.blocks.slack_search import find_most_violating
    >>> from sklearn_structsvm.structures import MultilabelStructure
    >>> X, Y = np.array([[1.0, 2.0]]), np.array([[1, 0, 0]])
    >>> oracle = MultilabelStructure().fit(X, Y).make_oracle(X, Y)
    >>> found = find_most_violating(oracle, 0, np.zeros(6))
    >>> found.labels.tolist(), found.value
    ([0, 1, 1], 3.0)
    """
    check_search(oracle, search)
    found = search_block(
        oracle,
        i,
        np.ascontiguousarray(w, dtype=np.float64),
        search=search,
        rtol=rtol,
        max_queries=max_queries,
        lam=lam,
        slack=slack,
        one=one,
        trace=trace,
    )
    if trace:
        names = ("lam", "alpha", "beta", "found", "margin", "loss")
        rows = np.array(found["trace"], dtype=np.float64).reshape(-1, len(names))
        found["trace"] = dict(zip(names, rows.T, strict=True))
        found["trace"]["found"] = found["trace"]["found"] > 0
    return SlackSearchResult(**found)


def check_search(oracle, search, name="this structure"):
    """ValueError where the oracle cannot serve the search, saying which it can."""
    check_choice("search", search, SEARCHES)
    if search in served_searches(oracle):
        return
    asked = "constrained_decode or " if search == "angular" else ""
    raise ValueError(
        f"search={search!r} needs a structure with {asked}slack_augmented_decode, and "
        f"{name} has none; it can serve "
        f"{', '.join(map(repr, served_searches(oracle)))}."
    )


def served_searches(oracle):
    """The searches that an oracle can serve."""
    missing = set()
    if not oracle.has_candidates:
        missing.add("exact")
        if not oracle.has_constrained:
            missing.add("angular")
    return [search for search in SEARCHES if search not in missing]
