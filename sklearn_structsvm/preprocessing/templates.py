"""Templates of the features of words: from options, or those of CRF++ and Wapiti."""

import re
from os import PathLike
from pathlib import Path
from typing import NamedTuple

# What stands before and behind a sentence in features of `WordFeatures`.
START, STOP = "<s>", "</s>"
# What neighbors do not have: it made errors no fewer, and three times the features. But
# the last three letters tell what kind of word a rare neighbor is.
OWN = ("word", "prefix", "suffix")
OF_NEIGHBORS = ("suffix", 3)
# Prefixes of the bits of Brown clusters that are usual since Ratinov and Roth (2009).
BITS = (4, 6, 10, 20)
# Offsets that CRF++ allows.
CRFPP_REACH = 4
# Wapiti has one name for all positions that are farther outside.
WAPITI_REACH = 5


class Attribute(NamedTuple):
    """A string of each value of a column; values of one space may be the same feature."""

    column: int
    kind: str
    argument: object = None
    space: str = ""


class Part(NamedTuple):
    """An attribute of the word at an offset, or at an absolute position from 1 (-1)."""

    attribute: int
    offset: int
    is_absolute: bool = False


class Template(NamedTuple):
    """A feature: the text before, between and behind the attributes of its parts."""

    literals: tuple[str, ...]
    parts: tuple[Part, ...]


class Plan(NamedTuple):
    """Attributes and templates, those with one part sorted by column and offset.

    `bounds` are the words before the beginning, the nearest first, and behind the end.
    `is_translated` says that equal names are one feature.
    """

    attributes: tuple[Attribute, ...]
    templates: tuple[Template, ...]
    bounds: tuple[tuple[str, ...], tuple[str, ...]]
    is_translated: bool

    @property
    def reach(self):
        return len(self.bounds[0])

    def singles(self, column):
        return [
            template
            for template in self.templates
            if len(template.parts) == 1
            and self.attributes[template.parts[0].attribute].column == column
        ]

    @property
    def others(self):
        return [template for template in self.templates if len(template.parts) != 1]

    def own(self, column):
        """The places of the attributes of a column."""
        return [j for j, a in enumerate(self.attributes) if a.column == column]

    def family(self, template):
        """Templates of one family make the same features of the same strings."""
        spaces = tuple(self.attributes[part.attribute].space for part in template.parts)
        return template.literals, spaces


def _sorted_plan(attributes, templates, bounds, is_translated):
    """The plan with its templates in the order of their columns."""

    def place(template):
        if len(template.parts) != 1:
            return (1,)
        (part,) = template.parts
        return 0, attributes[part.attribute].column, part.is_absolute, part.offset

    templates = sorted(templates, key=place)
    return Plan(tuple(attributes), tuple(templates), bounds, is_translated)


def default_plan(names, *, affixes, window, ngrams, clusters, gazetteers):
    """The plan of the options of `WordFeatures`.

    `names` are those of the columns, the word's first, before those of gazetteers.
    """
    kinds = [("word", None), ("lower", None)]
    kinds += [("prefix", size) for size in range(1, affixes + 1)]
    kinds += [("suffix", size) for size in range(1, affixes + 1)]
    kinds += [("shape", None), ("short", None)]
    for name, bits in clusters.items():
        kinds += [("cluster", (name, size)) for size in (BITS if bits else (None,))]
    attributes = [Attribute(0, *kind, space=repr(kind)) for kind in kinds]
    called = ["" if kind == "cluster" else f"{kind}=" for kind, _ in kinds]
    called = [
        f"{argument[0]}=" if kind == "cluster" else text
        for text, (kind, argument) in zip(called, kinds, strict=True)
    ]
    parts = [
        (j, offset)
        for offset in range(-window, window + 1)
        for j, kind in enumerate(kinds)
        if not offset or kind[0] not in OWN or kind == OF_NEIGHBORS
    ]
    parts += [(1, d) for d in (-window - 1, window + 1) if window]
    for column, name in enumerate([*names[1:], *gazetteers], 1):
        attributes.append(Attribute(column, "x", space=f"column {column}"))
        called.append(f"{name}=")
        # One more than of words: there are few values, and they say much.
        reach = window + (column < len(names))
        parts += [(len(called) - 1, d) for d in range(-reach, reach + 1)]

    def template(parts):
        texts = [f"{_at(offset)}{called[j]}" for j, offset in parts]
        texts[1:] = [f"|{text}" for text in texts[1:]]
        return Template((*texts, ""), tuple(Part(*part) for part in parts))

    found = [template([part]) for part in parts]
    if window and ngrams > 1:
        found.append(template([(1, -1), (1, 1)]))
    in_rows = [(1, window), (kinds.index(("short", None)), window)]
    in_rows += [(len(kinds) + k, window + 1) for k in range(len(names) - 1)]
    for j, reach in in_rows:
        longest = ngrams + (j != 1 and ngrams > 1)
        for size in range(2, longest + 1):
            for first in range(-reach, reach - size + 2):
                found.append(template([(j, first + k) for k in range(size)]))
    found += [
        template([(1, offset), (j, offset + k)])
        for j, _ in in_rows[2:]
        for offset in range(-window, window + 1)
        for k in (-1, 0, 1)
        if ngrams > 1 and abs(offset + k) <= window
    ]
    reach = max(window + 1, 1)
    bounds = (START,) * reach, (STOP,) * reach
    return _sorted_plan(attributes, found, bounds, False)


def _at(offset):
    return f"{offset:+d}:" if offset else ""


MACRO = re.compile(
    r"%(?P<kind>[xXtTmM])\[(?P<at>[@*]?) *(?P<offset>[-+]?\d+), *(?P<column>\d+)"
    r'(?:,"(?P<regex>(?:[^"\\]|\\.)*)")?\]'
)


def read_template(template):
    """The lines of a template: of a file, of text with several lines, or of a list."""
    if isinstance(template, PathLike) or (
        isinstance(template, str) and "%" not in template
    ):
        text = Path(template).read_text(encoding="utf-8-sig")
        return text.splitlines()
    return template.splitlines() if isinstance(template, str) else list(template)


def translated_plan(template, n_columns):
    """The plan of a template of CRF++ or Wapiti; ValueError names a line that is none."""
    lines = [(n, line.strip()) for n, line in enumerate(read_template(template), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    of_wapiti = any(_is_of_wapiti(line) for _, line in lines)
    attributes, templates = {}, []
    for n, line in lines:
        if of_wapiti:  # Its names begin with a small letter.
            line = line[0].lower() + line[1:]
        if line[0] not in "UuBb*":
            raise ValueError(
                f"Line {n} of template must begin with U or B; got {line!r}."
            )
        literals, parts, end = [], [], 0
        for macro in MACRO.finditer(line):
            literals.append(line[end : macro.start()])
            parts.append(_part(macro, n, line, n_columns, attributes))
            end = macro.end()
        literals.append(line[end:])
        if "%" in "".join(literals):
            raise ValueError(
                f"Line {n} of template has a % without a macro such as %x[-1,0]: "
                f"{line!r}."
            )
        if line[0] in "Uu":
            templates.append(Template(tuple(literals), tuple(parts)))
        elif parts:
            raise ValueError(
                f"Line {n} of template is {line!r}: features of pairs of labels must not "
                "depend on words. A line B or * stands for the transitions that chains "
                "always have."
            )
    if not templates:
        raise ValueError("template has no line that begins with U.")
    reach = max((abs(part.offset) for own in templates for part in own.parts), default=1)
    reach = max(reach, 1)
    if of_wapiti:
        names = [str(k) for k in range(1, WAPITI_REACH)] + ["#"]
        names += ["#"] * (reach - len(names))
        before, behind = ([f"_x{sign}{k}" for k in names] for sign in "-+")
    else:
        before, behind = ([f"_B{sign}{k}" for k in range(1, reach + 1)] for sign in "-+")
    return _sorted_plan(list(attributes), templates, (tuple(before), tuple(behind)), True)


def _is_of_wapiti(line):
    """Whether the line has what CRF++ does not know."""
    macros = list(MACRO.finditer(line))
    return line[0] in "ub*" or any(
        macro["kind"] != "x"
        or macro["at"]
        or re.search("[ +]", macro[0])
        or abs(int(macro["offset"])) > CRFPP_REACH
        for macro in macros
    )


def _part(macro, n, line, n_columns, attributes):
    """The part of a macro, whose attribute is added to those that there are."""
    if macro["at"] == "*":
        raise ValueError(
            f"Line {n} of template is {line!r}: offsets that are read from a column, as "
            "by [*...], are not supported."
        )
    column = int(macro["column"])
    if column >= n_columns:
        raise ValueError(
            f"Line {n} of template asks for column {column}, but words have {n_columns} "
            f"columns: {line!r}."
        )
    kind, regex = macro["kind"], macro["regex"]
    if (kind in "xX") != (regex is None):
        raise ValueError(f"Line {n} of template has a wrong macro: {macro[0]!r}.")
    argument = None if regex is None else _as_python(regex, n)
    attribute = Attribute(column, kind, argument)
    place = attributes.setdefault(attribute, len(attributes))
    return Part(place, int(macro["offset"]), macro["at"] == "@")


CLASSES = {
    "a": "[A-Za-z]",
    "d": "[0-9]",
    "l": "[a-z]",
    "p": r"[!-/:-@\[-`{-~]",
    "s": r"[ \t-\r]",
    "u": "[A-Z]",
    "w": "[0-9A-Za-z]",
}
CLASSES |= {name.upper(): f"[^{own[1:]}" for name, own in CLASSES.items()}


def _as_python(regex, n):
    """Wapiti's simple regular expression as one of Python; its * takes few."""
    found, rest = [], regex
    if rest.startswith("^"):
        found, rest = ["^"], rest[1:]
    while rest:
        if rest == "$":
            found.append(r"\Z")
            break
        if rest[0] in "*?":
            raise ValueError(
                f"Line {n} of template has an unescaped * or ? in {regex!r}."
            )
        if rest[0] == "\\" and len(rest) > 1:
            own, rest = CLASSES.get(rest[1], re.escape(rest[1])), rest[2:]
        else:
            own, rest = "." if rest[0] == "." else re.escape(rest[0]), rest[1:]
        if rest[:1] == "*":
            own, rest = own + "*?", rest[1:]
        elif rest[:1] == "?":
            own, rest = own + "?", rest[1:]
        found.append(own)
    return "".join(found)
