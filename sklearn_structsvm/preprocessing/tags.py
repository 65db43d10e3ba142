"""Tags of entities, from one scheme to another."""

from itertools import pairwise
from typing import Any, Literal

from sklearn_structsvm._utils.borders import as_array, check_sequence
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tags import (
    OUTSIDE,
    entities_of,
    first_fault,
    named_scheme,
    tag_parts,
    told_fault,
    told_schemes,
    write_entities,
)

Scheme = Literal[
    "iob1", "bio", "iob2", "bioes", "iobes", "bilou", "bioul", "bmes", "runs"
]


@with_plain_calls
def convert_tags(
    y: Any, source: Scheme, target: Scheme, *, repair: bool = False
) -> list[list[str]]:
    """Convert the tags of entities from one scheme to another.

    The table shows the tags of an entity of two positions, of a second entity of the same
    type right after it, and of a position outside:

    ==================  =======================================
    "iob1"              I-X I-X B-X O
    "bio", "iob2"       B-X I-X B-X O
    "bioes", "iobes"    B-X E-X S-X O
    "bilou", "bioul"    B-X L-X U-X O
    "bmes"              B-X E-X S-X O, with M-X for inside
    "runs"              X X, and no third X: runs of one label
    ==================  =======================================

    In "iob1" an entity begins with "B-X" only right after another one of its type. In
    "runs" each run of equal labels is an entity, except runs of "O".

    Read more in the :ref:`User Guide <guide-tag-schemes>`.

    Parameters
    ----------
    y : sequence of n sequences of str
        Tags. They may also be letters without a type, such as "B" and "I".
    source, target : str
        The schemes.
    repair : bool, default=False
        Whether tags that cannot stand where they are in `source` are read as conlleval
        does, rather than refused: an "I-X" after "O" begins an entity.

    Returns
    -------
    list of n lists of str

    Raises
    ------
    ValueError
        If `y` is not of the scheme `source`; the message has the first tag that is not,
        and the schemes that all of `y` are of. If neighboring entities cannot be told
        apart in "runs".

    See Also
    --------
    sklearn_structsvm.metrics.entity_report : Scores of entities, in any scheme.

    Examples
    --------
    >>> from sklearn_structsvm.preprocessing import convert_tags
    >>> convert_tags([["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]], "iob1", "bilou")
    [['B-PER', 'L-PER', 'O', 'U-LOC', 'U-LOC']]
    """
    source, target = named_scheme("source", source), named_scheme("target", target)
    check_sequence("y", y, "a list of sequences of tags")
    lists = [
        list(tags)
        if isinstance(tags, list | tuple)
        else as_array(f"y[{i}]", tags).tolist()
        for i, tags in enumerate(y)
    ]
    fault = first_fault(source, lists)
    if fault is not None and not repair:
        told, (i, t) = told_schemes(lists), fault
        if not told and tag_parts(lists[i][t], source) is not None:
            told = " repair=True reads them as conlleval does."
        raise ValueError(told_fault(source, lists, i, t) + told)
    found = []
    for i, tags in enumerate(lists):
        entities = entities_of(tags, source)
        if target == "runs":
            found.append(_as_runs(entities, len(tags), i))
        else:
            found.append(write_entities(entities, len(tags), target))
    return found


def _as_runs(entities, n, i):
    tags = [OUTSIDE] * n
    entities = sorted(entities, key=lambda entity: entity[1])
    for (type_, _, last), (other, first, _) in pairwise(entities):
        if type_ == other and last + 1 == first:
            raise ValueError(
                f"y[{i}] has an entity {type_!r} at position {first} right behind "
                "another one: as runs they would be one."
            )
    for type_, first, last in entities:
        tags[first : last + 1] = [type_] * (last - first + 1)
    return tags
