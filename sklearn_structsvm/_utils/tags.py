"""Schemes by which tags spell entities: what letters mean, and which tags may follow."""

from itertools import pairwise
from typing import NamedTuple

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.labels import plain

OUTSIDE = "O"
# The type of entities whose tags are letters alone.
UNTYPED = "_"
# The letters of each scheme: outside, begin, inside, end, and a whole entity.
LETTERS = {
    "iob1": dict(zip("OBI", "OBI", strict=True)),
    "bio": dict(zip("OBI", "OBI", strict=True)),
    "bioes": dict(zip("OBIES", "OBIES", strict=True)),
    "bilou": dict(zip("OBILU", "OBIES", strict=True)),
    "bmes": dict(zip("OBMES", "OBIES", strict=True)),
}
ALIASES = {"iob2": "bio", "iobes": "bioes", "bioul": "bilou"}
SCHEMES = (*LETTERS, *ALIASES, "runs")
ANY = {letter: role for own in LETTERS.values() for letter, role in own.items()}


class Tag(NamedTuple):
    """What a tag says: its role, one of the letters of "bioes", and its type."""

    role: str
    type: str


BEYOND = Tag(OUTSIDE, "")


def named_scheme(name, scheme):
    """The scheme without its alias; ValueError that names the parameter."""
    check_choice(name, scheme, SCHEMES)
    return ALIASES.get(scheme, scheme)


def tag_parts(tag, scheme=None):
    """The `Tag` of a label, as conlleval and seqeval split it, or None if it is none.

    Without a scheme, letters are those of all. In runs each label but "O" is a type.
    """
    if not isinstance(tag, str):
        return None
    if scheme == "runs":
        return Tag(OUTSIDE, UNTYPED) if tag == OUTSIDE else Tag("I", tag)
    role = (ANY if scheme is None else LETTERS[scheme]).get(tag[:1])
    if role is None or len(tag) == 1:
        return role and Tag(role, UNTYPED)
    return Tag(role, tag[2:] or UNTYPED) if tag[1] == "-" and role != OUTSIDE else None


def split_tag(tag, scheme, name, i, t):
    """The `Tag` of a label; ValueError that names its place."""
    parts = tag_parts(tag, scheme)
    if parts is not None:
        return parts
    if scheme is None:
        like = "an entity tag such as 'B-NP', 'I-NP' or 'O'"
    elif scheme == "runs":
        like = "a string"
    else:
        *others, last = (repr(letter) for letter in LETTERS[scheme])
        like = f"a tag of {scheme!r}, which begins with {', '.join(others)} or {last}"
    raise ValueError(f"{name}[{i}][{t}] must be {like}, got {tag!r}.")


def may_follow(scheme, before, after):
    """Whether a tag may follow another; `BEYOND` stands before and behind all."""
    is_same = before.type == after.type
    if scheme == "iob1":
        return after.role != "B" or (before.role != OUTSIDE and is_same)
    if scheme == "runs":
        return True
    goes_on = after.role in "IE"
    if goes_on and not (before.role in "BI" and is_same):
        return False
    # An unfinished entity must go on, where there is a tag for its end.
    return goes_on or scheme == "bio" or before.role not in "BI"


def faults(scheme, y):
    """(i, t) of all tags of sequences that the scheme does not allow.

    Where a sequence must not end, t is its length.
    """
    for i, tags in enumerate(y):
        parts = [BEYOND, *(tag_parts(tag, scheme) for tag in tags), BEYOND]
        for t, (before, after) in enumerate(pairwise(parts)):
            is_known = before is not None and after is not None
            if after is None or (is_known and not may_follow(scheme, before, after)):
                yield i, t


def first_fault(scheme, y):
    """(i, t) of the first tag of sequences that the scheme does not allow, or None."""
    i, t = next(faults(scheme, y), (None, None))
    return None if i is None else (i, min(t, len(y[i]) - 1))


def odd_tags(y):
    """The scheme that fits best, and (tag, i, t) of each tag that it does not allow.

    (None, []) if most tags are not of entities. Empty tags are left out.
    """
    parts = [tag_parts(tag) for tag in {tag for tags in y for tag in tags if tag}]
    typed = [part for part in parts if part and part.type not in ("", UNTYPED)]
    if parts.count(None) >= len(typed):
        return None, []
    found = {scheme: list(faults(scheme, y)) for scheme in LETTERS}
    best = min(found, key=lambda scheme: len(found[scheme]))
    ended = [[*tags, "the end"] for tags in y]
    return best, [(ended[i][t], i, t) for i, t in found[best] if ended[i][t]]


def told_schemes(y):
    """Which schemes the tags of these sequences are of, to end a message."""
    fitting = [scheme for scheme in LETTERS if first_fault(scheme, y) is None]
    return f" These tags are {' or '.join(fitting)}." if fitting else ""


def entities_of(tags, scheme=None, strict=False, name="y", i=0, seen=None):
    """Set of the ``(type, first, last)`` that the tags of one sequence spell.

    The rules are conlleval's, which read tags of each scheme: an entity ends before "O",
    before the beginning of another, after its end, and where the type changes; whatever
    tag comes next, if not "O", starts another. With `strict` they are those of seqeval's
    strict mode: only what is spelled by the scheme is an entity. `seen` caches the tags
    that were split.
    """
    seen = {} if seen is None else seen
    parts = []
    for t, tag in enumerate(tags):
        own = seen.get(tag) if isinstance(tag, str) else None
        if own is None:
            own = seen[tag] = split_tag(tag, scheme, name, i, t)
        parts.append(own)
    if strict and scheme != "runs":
        return set(_strict_entities(parts, scheme))
    return set(_lenient_entities(parts))


def _lenient_entities(parts):
    open_type = start = None
    closed = True
    for t, (role, type_) in enumerate(parts):
        starts = role in "BS" or closed or type_ != open_type
        if not closed and (starts or role == OUTSIDE):
            yield open_type, start, t - 1
        if role == OUTSIDE:
            closed = True
            continue
        if starts:
            open_type, start = type_, t
        closed = role in "ES"
        if closed:
            yield open_type, start, t
    if not closed:
        yield open_type, start, len(parts) - 1


def _strict_entities(parts, scheme):
    t, n = 0, len(parts)
    while t < n:
        start = t
        t += 1
        before = parts[start - 1] if start else BEYOND
        if not _begins(scheme, before, parts[start]):
            continue
        goes_on = "I" if scheme in ("iob1", "bio") else "IE"
        while (
            t < n
            and parts[t - 1].role in "BI"
            and parts[t].role in goes_on
            and parts[t].type == parts[start].type
        ):
            t += 1
        after = parts[t] if t < n else BEYOND
        if _ends(scheme, parts[t - 1], after):
            yield parts[start].type, start, t - 1


def _begins(scheme, before, tag):
    """Whether seqeval begins an entity at this tag, which no other one goes on with."""
    if scheme != "iob1":
        return tag.role in "BS"
    is_same = before.type == tag.type
    if tag.role == "B":
        return before.role != OUTSIDE and is_same
    return tag.role == "I" and (before.role != "I" or not is_same)


def _ends(scheme, tag, after):
    """Whether seqeval takes an entity whose last tag this is."""
    if scheme == "iob1":
        return not (tag.role == after.role == "B" and tag.type != after.type)
    return scheme == "bio" or tag.role in "ES"


def write_entities(entities, n, scheme):
    """The tags of n positions that spell entities, by a scheme with letters."""
    tags = [OUTSIDE] * n
    letters = {role: letter for letter, role in LETTERS[scheme].items()}
    ends = {}
    for type_, first, last in sorted(entities, key=lambda entity: entity[1]):
        roles = ["B", *["I"] * (last - first)]
        if scheme == "iob1" and ends.get(first - 1) != type_:
            roles[0] = "I"
        if "E" in letters:
            roles[-1] = "E" if last > first else "S"
        ends[last] = type_
        for t, role in enumerate(roles, first):
            tags[t] = letters[role] + (f"-{type_}" if type_ != UNTYPED else "")
    return tags


def told_fault(scheme, y, i, t, name="y"):
    """The message about a tag that a scheme does not allow."""
    tags = [plain(tag) for tag in y[i]]
    before = f"follows {tags[t - 1]!r}" if t else "is first"
    parts = tag_parts(tags[t], scheme)
    if t == len(tags) - 1 and parts is not None and t:
        before += " and is last"
    if parts is None:
        before = "is no tag of it"
    return (
        f"{name}[{i}][{t}] is {tags[t]!r}, which {before}: {scheme!r} has no such tags."
    )
