"""Tagged text in columns: files of CoNLL-2000, CoNLL-2003, CoNLL-U and their kin."""

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

from sklearn_structsvm._utils.borders import check_sequence
from sklearn_structsvm._utils.caller import warn_caller, warn_if_swapped
from sklearn_structsvm._utils.labels import MAX_NAMES
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tags import odd_tags

# The package conllu, which is well kept (6.0.0 is of October 2024), reads these files,
# too, but no others, and knows no numbers of lines, which messages need.
CONLLU = "id form lemma upos xpos feats head deprel deps misc".split()
# A word has an integer, a token of several words a range, an empty node a decimal.
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")
NO_WORD = re.compile(r"\d+[-.]\d+")
DOCUMENT = "-DOCSTART-"
BLANKS = re.compile("[ \t]+")
COMMENTS = (
    " If those that begin with '#' are comments, leave them out: "
    "[line for line in open(file) if not line.startswith('# ')]."
)
# What compressed files begin with.
GZIP = b"\x1f\x8b"


@with_plain_calls
def read_conll(
    file: str | PathLike[str] | Iterable[str],
    *,
    columns: Any = None,
    target: Any = "last",
    encoding: str = "utf-8",
) -> tuple[list[list[Any]], list[list[str]] | None]:
    """Read tagged text: a word per line, in columns, and empty lines between sentences.

    These are files of CoNLL-2000 and CoNLL-2003, with lines "-DOCSTART-" between
    documents, files of CoNLL-U, and all others of this form. Columns are separated by
    tabs or, in a file without tabs, by blanks. Of CoNLL-U files, only words are read: no
    multiword tokens, empty nodes or comments. XML of parserator is read as well, where
    each token is an element that is named by its label.

    Read more in the :ref:`User Guide <guide-conll>`.

    Parameters
    ----------
    file : str, path or iterable of str
        The file, which may be compressed by gzip, or its lines.
    columns : list of int or str, or None, default=None
        Columns of a word, its form first, by number (from 0, or from the end by negative
        numbers) or by name. Names are those of CoNLL-U ("form", "lemma", "upos", "xpos",
        "feats", "head", "deprel", "deps", "misc") or of a line ``# global.columns =``.
        None takes all columns before that of the tags; of CoNLL-U, the form alone.
    target : int, str or None, default="last"
        The column of the tags. In CoNLL-U "last" means "upos". None: text without tags.
    encoding : str, default="utf-8"
        Of the file. A byte order mark is skipped.

    Returns
    -------
    X : list of n lists of str, or of tuples of str
        The words of each sentence: strings if there is one column.
    y : list of n lists of str, or None
        Their tags.

    Raises
    ------
    ValueError
        If a line has not as many columns as the first one, a column does not exist, or
        the file has another encoding. The message has the number of the line.

    Warns
    -----
    UserWarning
        If tags are empty, occur only once, or cannot follow the ones before in the scheme
        that fits best; with the numbers of the lines.

    See Also
    --------
    write_conll : Writes such files, with predictions.
    sklearn_structsvm.preprocessing.WordFeatures : Takes X.
    sklearn_structsvm.preprocessing.convert_tags : Other schemes.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import read_conll
    >>> lines = ["He PRP B-NP", "reckons VBZ B-VP", "", "she PRP B-NP", "runs VBZ B-VP"]
    >>> X, y = read_conll(lines)
    >>> X[0], y[0]
    ([('He', 'PRP'), ('reckons', 'VBZ')], ['B-NP', 'B-VP'])
    """
    try:
        with _opened(file, "rt", encoding) as lines:
            first = next(lines, "").removeprefix("\ufeff")
            if first.lstrip().startswith("<"):
                X, y, places = _read_xml(first + "".join(lines), target)
            else:
                X, y, places = _read_lines(_chained(first, lines), columns, target)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not encoded as {encoding}: it has the byte "
            f"{error.object[error.start]:#x}. Pass encoding='latin-1' or 'utf-16'."
        ) from error
    if y is not None:
        _warn_of_odd_tags(y, places)
    return X, y


@contextmanager
def _opened(file, mode, encoding):
    """The lines of a file, or what takes them; lines that are given as they are."""
    if mode == "rt" and (isinstance(file, bytes) or "\n" in str(file)):
        raise ValueError("file is the text itself, not a path: pass text.splitlines().")
    if not isinstance(file, str | PathLike):
        yield iter(file) if mode == "rt" else file
        return
    is_packed = Path(file).suffix == ".gz"
    if mode == "rt":
        with open(file, "rb") as stream:
            is_packed = stream.read(len(GZIP)) == GZIP
    opened: Any = gzip.open if is_packed else open
    with opened(file, mode, encoding=encoding, newline=None) as stream:
        yield iter(stream) if mode == "rt" else stream


def _chained(first, lines) -> Iterator[str]:
    yield first
    yield from lines


def _read_lines(lines, columns, target):
    """Words, tags, and the numbers of the lines of the tags."""
    X, y, places, layout, faults = [], [], [], None, []
    words, tags, names, hint = [], [], None, ""
    numbers: list[int] = []

    def end_sentence():
        nonlocal words, tags, numbers
        if words:
            X.append(words)
            y.append(tags)
            places.append(numbers)
        words, tags, numbers = [], [], []

    for number, line in enumerate(lines, 1):
        # Files that were joined have byte order marks within.
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        # A line between documents may have fewer columns, or blanks instead of tabs.
        if not line.strip() or line.split(maxsplit=1)[0] == DOCUMENT:
            end_sentence()
            continue
        if line.startswith("# global.columns ="):
            names = [name.lower() for name in line.partition("=")[2].split()]
            continue
        if layout is None:
            if line.startswith("#") and _is_comment(line, names):
                continue
            layout = _Layout(line, names, columns, target, number)
        if layout.has_comments and line.startswith("#"):
            continue
        fields = layout.split(line)
        if len(fields) != layout.width:
            faults.append((number, len(fields)))
            hint = COMMENTS if line.startswith("#") else hint
            continue
        if layout.has_ids and NO_WORD.fullmatch(fields[0]):
            continue
        own = tuple(fields[j] for j in layout.columns)
        words.append(own if len(own) > 1 else own[0])
        tags.append("" if layout.target is None else fields[layout.target])
        numbers.append(number)
    end_sentence()
    if faults:
        told = ", ".join(f"line {n} has {width}" for n, width in faults[:MAX_NAMES])
        raise ValueError(
            f"Lines must have {layout.width} columns, as the first one has; {told}"
            f"{_more(faults)}.{hint}"
        )
    has_tags = target is not None
    return X, y if has_tags else None, places


def _is_comment(line, names):
    """Whether a line before all words is a comment, and not the word "#"."""
    return names is not None or "\t" not in line


class _Layout:
    """How a line is split, and which of its columns are wanted, by its first one."""

    def __init__(self, line, names, columns, target, number):
        self.separator = "\t" if "\t" in line else None
        fields = self.split(line)
        self.width = len(fields)
        is_conllu = (
            self.width == len(CONLLU)
            and self.separator == "\t"
            and CONLLU_ID.fullmatch(fields[0]) is not None
        )
        self.has_comments = is_conllu or names is not None
        self.names = CONLLU if is_conllu else names
        self.has_ids = self.names is not None and self.names[0] == "id"
        self.number = number
        if isinstance(target, str) and target == "last":
            target = "upos" if is_conllu else -1
        self.target = None if target is None else self.place(target, "target")
        if columns is None:
            columns = range(self.width if self.target is None else self.target)
            if is_conllu:
                columns = ["form"]
        if isinstance(columns, int | str):
            columns = [columns]
        self.columns = [self.place(column, "columns") for column in columns]
        if not self.columns:
            raise ValueError(
                f"Line {number} has {self.width} columns, and no word before the tag: "
                "choose columns, or target=None."
            )

    def split(self, line):
        # Words may contain other spaces, such as the one in "10 000" that never breaks.
        return line.split("\t") if self.separator else BLANKS.split(line.strip(" \t"))

    def place(self, column, name):
        if isinstance(column, str):
            if self.names is None:
                raise ValueError(
                    f"{name} has {column!r}, but this file has no names of columns: use "
                    f"numbers. Line {self.number} has {self.width} columns."
                )
            if column in self.names:
                return self.names.index(column)
            raise ValueError(f"{name} has {column!r}; the columns are {self.names}.")
        if not -self.width <= column < self.width:
            raise ValueError(
                f"{name} has {column!r}, but line {self.number} has {self.width} columns."
            )
        return column % self.width


def _read_xml(text, target):
    """Tokens and labels of the elements of each sequence."""
    X, y = [], []
    for sequence in ElementTree.fromstring(text):
        if len(sequence):
            X.append([(element.text or "").strip() for element in sequence])
            y.append([element.tag for element in sequence])
    places = [[i + 1] * len(tags) for i, tags in enumerate(y)]
    return X, y if target is not None else None, places


def _warn_of_odd_tags(y, places):
    found = []
    counts = Counter(tag for tags in y for tag in tags)
    flat = [
        (tag, number)
        for tags, numbers in zip(y, places, strict=True)
        for tag, number in zip(tags, numbers, strict=True)
    ]
    if empty := [f"line {number}" for tag, number in flat if not tag]:
        found.append(f"tags are empty ({_listed(empty)})")
    rare = [f"{tag!r} in line {n}" for tag, n in flat if tag and counts[tag] == 1]
    if rare:
        found.append(f"tags occur only once ({_listed(rare)})")
    scheme, odd = odd_tags(y)
    if odd:
        odd = [f"{tag} in line {[*places[i], places[i][-1]][t]}" for tag, i, t in odd]
        found.append(f"tags cannot stand where they are in {scheme!r} ({_listed(odd)})")
    if found:
        warn_caller(f"Some {'; some '.join(found)}.")


def _listed(places):
    return ", ".join(places[:MAX_NAMES]) + _more(places)


def _more(places):
    more = len(places) - MAX_NAMES
    return f" and {more} more" if more > 0 else ""


@with_plain_calls
def write_conll(
    file: str | PathLike[str] | TextIO,
    X: Any,
    *labels: Any,
    separator: str = "\t",
    encoding: str = "utf-8",
) -> None:
    """Write text with its tags: one word per line, and an empty line after a sentence.

    Read more in the :ref:`User Guide <guide-conll>`.

    Parameters
    ----------
    file : str, path or text file
        Where to write; names that end with ".gz" are compressed.
    X : sequence of n sequences of words
        Words are strings, or tuples of them.
    *labels : sequences of n sequences of tags
        True tags, predicted ones, or both: a column each, behind those of the words.
    separator : str, default="\\t"
        What stands between columns. The script conlleval expects " ", and the true tags
        before the predicted ones.
    encoding : str, default="utf-8"
        Of the file.

    Raises
    ------
    ValueError
        If lengths differ, or a word or a tag is empty or contains the separator or the
        end of a line. The message has its place, and nothing is written.

    Examples
    --------
    >>> import sys
    >>> from sklearn_structsvm.datasets import write_conll
    >>> write_conll(sys.stdout, [["Ada", "wrote"]], [["B-PER", "O"]], separator=" ")
    Ada B-PER
    wrote O
    <BLANKLINE>
    """
    if isinstance(file, list):
        raise TypeError("The file comes first: write write_conll(file, X, y).")
    check_sequence("X", X, "a list of sentences")
    for own in labels:
        warn_if_swapped(X, own)
    given = [("X", X), *((f"labels[{k}]", own) for k, own in enumerate(labels))]
    for name, own in given:
        check_sequence(name, own, "a list of sequences")
        if len(own) != len(X):
            raise ValueError(f"{name} has {len(own)} sequences, but X has {len(X)}.")
    lines = []
    for i, words in enumerate(X):
        for name, own in given:
            if len(own[i]) != len(words):
                raise ValueError(
                    f"{name}[{i}] has {len(own[i])} entries, but X[{i}] has {len(words)}."
                )
        for t, word in enumerate(words):
            fields = [word] if isinstance(word, str) else list(word)
            fields = [*map(str, fields), *(str(own[i][t]) for own in labels)]
            for field in fields:
                if not field or separator in field or len(field.splitlines()) != 1:
                    raise ValueError(
                        f"X[{i}][{t}] has {field!r} in a column: it is empty, or "
                        "contains a separator or the end of a line."
                    )
            lines.append(separator.join(fields) + "\n")
        lines.append("\n")
    with _opened(file, "wt", encoding) as stream:
        stream.writelines(lines)
