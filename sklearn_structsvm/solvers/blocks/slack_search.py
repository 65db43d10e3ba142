"""Search for the most violating labeling of slack rescaling."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm.solvers.blocks._slack_oracle import search_block
from sklearn_structsvm.solvers.blocks._slack_search import SEARCHES

SearchName = Literal["angular", "exact", "bisecting", "binary", "sarawagi"]


@dataclass
class SlackSearchResult:
    """Result of a search for the most violating labeling of slack rescaling.

    Below, h is the margin violation and g the loss of a labeling, as in
    `find_most_violating`.

    Read more in the :ref:`User Guide <guide-slack-search>`.

    Attributes
    ----------
    labels : ndarray, or a labeling of a user-defined structure
        The labeling found, as the oracle encodes it.
    margin, loss : float
        Its margin violation :math:`h = 1 + f(y) - f(y_i)` and its loss
        :math:`g = L(y_i, y)`.
    value : float
        The slack-rescaled violation g h. It is 0 if no labeling violates the margin, and
        `labels` is then the true labeling.
    bound : float
        Upper bound on g h over all labelings.
    n_queries : int
        Number of calls of the λ-oracle or the constrained λ-oracle.
    trace : dict of ndarray, or None
        One entry per query: "lam", "alpha" and "beta" (the angle searched), "found"
        (whether it contains a labeling), and the "margin" and "loss" of that labeling.
    """

    labels: Any
    margin: float
    loss: float
    value: float
    bound: float
    n_queries: int
    trace: dict[str, np.ndarray] | None


def find_most_violating(
    oracle: BlockOracle,
    i: int,
    w: ArrayLike,
    *,
    search: SearchName = "angular",
    rtol: float = 0.0,
    max_queries: int = 1000,
    lam: float = 0.0,
    slack: float = 0.0,
    one: float = 1.0,
    trace: bool = False,
) -> SlackSearchResult:
    r"""Find the labeling with the largest slack-rescaled margin violation.

    For example i, it solves

    .. math:: \max_y \; L(y_i, y) \, (1 + f(y) - f(y_i)), \qquad
        f(y) = \langle w, \phi(x_i, y) \rangle.

    Read more in the :ref:`User Guide <guide-slack-search>`.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of a structure, as returned by its ``make_oracle(X, y)``.
    i : int
        Index of the example.
    w : ndarray of shape (n_weights,), dtype float64
        Weight vector.
    search : {"angular", "exact", "bisecting", "binary", "sarawagi"}, default="angular"
        "angular" (Algorithm 2) and "exact" find the maximum where 128 MB are enough. The
        others may miss it (Theorem 1): "bisecting" is Algorithm 1, "binary" minimizes
        the bound of Lemma 1, and "sarawagi" that of [2]_ for the given `slack`.
    rtol : float, default=0.0
        Stop once the violation is at least (1 - rtol) times the largest.
    max_queries : int, default=1000
        Maximum number of oracle calls.
    lam : float, default=0.0
        Initial λ of "angular" and "bisecting". 0 lets them choose it.
    slack : float, default=0.0
        Slack ξ_i for "sarawagi".
    one : float, default=1.0
        The constant 1 in the formula.
    trace : bool, default=False
        Whether to record all queries.

    Returns
    -------
    SlackSearchResult
        The labeling, its violation, and an upper bound.

    Raises
    ------
    ValueError
        If the oracle lacks an operation that the search needs.

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
    """Raise ValueError if the oracle does not support the search."""
    check_choice("search", search, SEARCHES)
    if search in served_searches(oracle):
        return
    asked = "constrained_decode or " if search == "angular" else ""
    raise ValueError(
        f"search={search!r} needs a structure with {asked}slack_augmented_decode, "
        f"which {name} does not have. Supported: "
        f"{', '.join(map(repr, served_searches(oracle)))}."
    )


def served_searches(oracle):
    """The searches that an oracle supports."""
    missing = set()
    if not oracle.has_candidates:
        missing.add("exact")
        if not oracle.has_constrained:
            missing.add("angular")
    return [search for search in SEARCHES if search not in missing]
