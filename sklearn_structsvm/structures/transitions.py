"""Which labels of a sequence or tree may follow each other.

Tables are boolean, of shape (k + 1, k + 1) for k classes: the entry of a previous label
and the next one, or of a parent's and a child's, says whether they may. The last row says
which labels may come first (or at roots), and the last column which may come last (or at
leaves).

`parents` are those of the nodes of a forest, -1 for a root; a sequence is a path.
"""

import numpy as np

from sklearn_structsvm._utils.borders import refuse_masked
from sklearn_structsvm._utils.labels import listed, plain
from sklearn_structsvm._utils.mistakes import meant
from sklearn_structsvm._utils.tags import (
    ALIASES,
    BEYOND,
    LETTERS,
    SCHEMES,
    may_follow,
    tag_parts,
    told_schemes,
)
from sklearn_structsvm.structures.nodes import depths_of


def allowed_transitions(transitions, classes):
    """The table of a user's `transitions`, or None if they are None.

    `classes` (k,). `transitions` (str, ndarray of bool, iterable of pairs or None): see
    `ChainStructure`. Returns (k + 1, k + 1) bool or None. ValueError if they have none
    of these forms, or do not match the classes.
    """
    if transitions is None:
        return None
    if isinstance(transitions, str):
        return _of_scheme(transitions, classes)
    refuse_masked("transitions", transitions)
    if isinstance(transitions, np.ndarray) and transitions.dtype.kind not in "OUS":
        return _of_mask(transitions, len(classes))
    return _without_pairs(transitions, classes)


def _of_scheme(scheme, classes):
    if scheme not in SCHEMES:
        names = ", ".join(map(repr, SCHEMES))
        raise ValueError(
            f"transitions must be one of {names}, a boolean array or a list of "
            f"forbidden pairs; got {scheme!r}.{meant(scheme, SCHEMES)}"
        )
    own = ALIASES.get(scheme, scheme)
    tags = [_split(label, own, scheme) for label in classes.tolist()]
    if own == "runs":
        return None
    tags.append(BEYOND)
    allowed = [[may_follow(own, before, after) for after in tags] for before in tags]
    return np.array(allowed)


def _split(label, scheme, given):
    """Role and type of a tag, as `entity_f1_score` reads them."""
    tag = tag_parts(label, scheme)
    if tag is not None:
        return tag
    if scheme == "runs":
        raise ValueError(f"transitions='runs' requires strings; got {plain(label)!r}.")
    others = ", ".join(f"'{letter}-...'" for letter in LETTERS[scheme] if letter != "O")
    raise ValueError(
        f"transitions={given!r} requires the labels 'O', {others}; got {plain(label)!r}."
    )


def told_scheme(transitions, sequences):
    """Which scheme labels are of, or what mends them, where `transitions` names one."""
    if not isinstance(transitions, str):
        return ""
    return told_schemes(sequences) or (
        " Correct the labels. If they are the tags of sequences, "
        f"convert_tags(y, {transitions!r}, {transitions!r}, repair=True) does."
    )


def _of_mask(mask, k):
    if mask.dtype != bool:
        raise ValueError(
            "transitions must be a boolean mask, True where the next label may follow "
            f"the previous one; got dtype {mask.dtype}."
        )
    if mask.shape not in ((k, k), (k + 1, k + 1)):
        raise ValueError(
            f"transitions must be a mask of shape ({k}, {k}) for {k} classes, or "
            f"({k + 1}, {k + 1}) with a row for the beginning and a column for the end; "
            f"got {mask.shape}."
        )
    allowed = np.ones((k + 1, k + 1), dtype=bool)
    allowed[: len(mask), : len(mask)] = mask
    allowed[k, k] = True
    return allowed


def _without_pairs(pairs, classes):
    k = len(classes)
    places = {label: c for c, label in enumerate(classes.tolist())} | {None: k}
    allowed = np.ones((k + 1, k + 1), dtype=bool)
    try:
        pairs = list(pairs)
    except TypeError as error:
        raise ValueError(
            "transitions must be the name of a scheme, a boolean array or a list of "
            f"forbidden pairs; got {pairs!r}."
        ) from error
    for j, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                f"transitions[{j}] must be a forbidden pair (previous label, next "
                f"label); got {pair!r}. (A mask must be a boolean array.)"
            )
        previous, following = (plain(label) for label in pair)
        for label in (previous, following):
            try:
                known = label in places
            except TypeError:
                known = False
            if not known:
                raise ValueError(
                    f"transitions[{j}] has {label!r}, which is neither one of the "
                    f"classes {listed(classes)} nor None for the beginning or the end."
                )
        if previous is None and following is None:
            raise ValueError(f"transitions[{j}] has no label: {pair!r}.")
        allowed[places[previous], places[following]] = False
    return allowed


def check_allowed(allowed, k):
    """ValueError if a fitted table is not one of k classes."""
    if allowed is None:
        return
    is_table = isinstance(allowed, np.ndarray) and allowed.dtype == bool
    if not is_table or allowed.shape != (k + 1, k + 1):
        raise ValueError(
            f"allowed_ must be a boolean array of shape ({k + 1}, {k + 1}), or None: it "
            "was changed after fit."
        )


def has_common_label(allowed):
    """Whether one label may occur at all nodes at once, in any sequence or tree."""
    k = len(allowed) - 1
    return bool((allowed[k, :k] & allowed[:k, k] & np.diag(allowed)[:k]).any())


def below(allowed, parents, of_nodes=True):
    """Entry (v, c): whether the nodes below v have a labeling if v has label c.

    `of_nodes` has the labels that each node may have, if not all.
    """
    k = len(allowed) - 1
    depths = depths_of(parents)
    result = np.ones((len(parents), k), dtype=bool) & of_nodes
    result[leaves(parents)] &= allowed[:k, k]
    for nodes in _levels(depths)[:0:-1]:
        can = result[nodes] @ allowed[:k, :k].T
        np.logical_and.at(result, parents[nodes], can)
    return result


def reachable(allowed, parents, of_nodes=True):
    """Entry (v, c): whether some labeling has label c at node v."""
    k = len(allowed) - 1
    result = below(allowed, parents, of_nodes)
    result[parents < 0] &= allowed[k, :k]
    for nodes in _levels(depths_of(parents))[1:]:
        result[nodes] &= result[parents[nodes]] @ allowed[:k, :k]
    return result


def leaves(parents):
    """Whether each node is without children."""
    result = np.ones(len(parents), dtype=bool)
    result[parents[parents >= 0]] = False
    return result


def _levels(depths):
    """The nodes of each depth, beginning with the roots."""
    order = np.argsort(depths, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depths[order])) + 1)


def completions(allowed, length):
    """Entry (r, c): whether r more labels can follow label c and then end; r < length."""
    k = len(allowed) - 1
    result = np.empty((length, k), dtype=bool)
    result[0] = allowed[:k, k]
    for r in range(1, length):
        result[r] = allowed[:k, :k] @ result[r - 1]
    return result


def possible_lengths(allowed, longest):
    """Entry T: whether T labels can follow each other; entry 0 is False, T <= longest."""
    k = len(allowed) - 1
    return np.append(False, completions(allowed, longest) @ allowed[k, :k])


def check_lengths(allowed, lengths):
    """ValueError for an item of X with a length that no labeling can have."""
    possible = possible_lengths(allowed, max(lengths))
    possible[0] = True  # Nothing is labeled, which can be done.
    bad = np.flatnonzero(~possible[lengths])
    if len(bad):
        raise ValueError(
            f"X[{bad[0]}] has {lengths[bad[0]]} positions, and `transitions` allows no "
            "sequence of that length."
        )


def all_labelings(allowed, parents):
    """Every labeling of a forest, as arrays in their order."""
    k = len(allowed) - 1
    possible = reachable(allowed, parents)
    order = np.argsort(depths_of(parents), kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    waiting = [()]
    while waiting:
        labels = waiting.pop()
        if len(labels) == len(order):
            yield np.array(labels)[place]
            continue
        v = order[len(labels)]
        parent = k if parents[v] < 0 else labels[place[parents[v]]]
        follow = np.flatnonzero(allowed[parent, :k] & possible[v])
        waiting += [(*labels, c) for c in follow[::-1].tolist()]


def forbidden_places(allowed, labels, parents):
    """Whether each node's label is forbidden after its parent's, or as first or last.

    `allowed` (k + 1, k + 1), `labels`, `parents` (n,). Returns (n,) bool.
    """
    k = len(allowed) - 1
    bad = ~allowed[np.where(parents < 0, k, labels[parents]), labels]
    last = leaves(parents)
    bad[last] |= ~allowed[labels[last], k]
    return bad


def by_node(transition, length):
    """The scores of pairs at each node of a chain, (T, k, k); the first are not used.

    `transition`: (k, k) if they are shared, otherwise (T - 1, k, k).
    """
    if transition.ndim == 2:
        return np.broadcast_to(transition, (length, *transition.shape))
    return np.concatenate([np.zeros((1, *transition.shape[1:])), transition])


def penalized(allowed, theta, transition, more=0.0, *, parents=None):
    """Potentials of a forest in which forbidden labelings score lowest.

    `allowed` (k + 1, k + 1), `theta` (T, k), `transition` (k, k), (T, k, k) or None,
    `parents` (T,), or None for a chain. `more`: the largest difference in another score
    that will be added. Returns `theta`, `transition`: allowed labelings keep their
    scores. All others are lower by just more than any two allowed ones differ: a larger
    difference would cost digits.
    """
    k = theta.shape[1]
    transition = np.zeros((k, k)) if transition is None else transition
    spread = np.ptp(theta, axis=1).sum() + len(theta) * np.ptp(transition) + more
    penalty = 1.0 + 2.0 * spread
    if parents is None:
        parents = np.arange(len(theta)) - 1
    theta = theta.copy()
    theta[np.ix_(parents < 0, ~allowed[k, :k])] -= penalty
    theta[np.ix_(leaves(parents), ~allowed[:k, k])] -= penalty
    return theta, np.where(allowed[:k, :k], transition, transition - penalty)


def barred(allowed, theta, transition):
    """Potentials of a chain whose labelings score -inf if they are forbidden."""
    theta = theta.copy()
    theta[0, ~allowed[-1, :-1]] = -np.inf
    theta[-1, ~allowed[:-1, -1]] = -np.inf
    return theta, np.where(allowed[:-1, :-1], transition, -np.inf)
