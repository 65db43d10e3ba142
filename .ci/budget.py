"""Count what there is to know of this project, and fail where it is more than budgeted.

    python .ci/budget.py           a table: what is counted, how much, at most
    python .ci/budget.py 441       the same, with the seconds that the suite took

The limits stand in budget.toml beside this file. To raise one is a line of a commit,
which says why.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_structsvm"
NAME = re.compile(r"_?[A-Z][A-Z0-9_]*$")
# In kernels: a name that is defined, of an enumeration or of the preprocessor, and its
# number.
IN_C = re.compile(
    r"^(?:cdef [\w ]+ |DEF |#define | {4})?_?[A-Z][A-Z0-9_]+ *=? *-?[\d.][^\n#]*$", re.M
)
# Tokens that are no code.
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
          tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}  # fmt: skip
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def is_number(node):
    """Whether an expression is made of numbers alone."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=inner):
            return is_number(inner)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Attribute(attr=attr):
            return attr in ("eps", "tiny", "max", "min", "inf")
    return False


def numeric_constants(tree):
    """Number of upper-case names in modules and classes that are given a number."""
    owners = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef)]
    assigned = [n for owner in owners for n in owner.body if isinstance(n, ast.Assign)]
    pairs = [(target, n.value) for n in assigned for target in n.targets]
    found = 0
    for target, value in pairs:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value] * len(names)
        found += sum(
            isinstance(name, ast.Name) and bool(NAME.match(name.id)) and is_number(own)
            for name, own in zip(names, values, strict=False)
        )
    return found


def count_python(source, counts):
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    blank = {n for n, line in enumerate(source.splitlines(), 1) if not line.strip()}
    texts = set()
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            texts.update(lines_of(node.body[0]))
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    counts["code_lines_python"] += len(code - texts - blank)
    counts["docstring_lines"] += len(texts - blank)
    counts["classes"] += sum(isinstance(node, ast.ClassDef) for node in nodes)
    counts["numeric_constants_python"] += numeric_constants(tree)
    calls = [n.func for n in nodes if isinstance(n, ast.Call)]
    names = [call.id for call in calls if isinstance(call, ast.Name)]
    return names.count("hasattr") + names.count("getattr")


def count_cython(source, counts):
    source = re.sub(r'"""(?:.|\n)*?"""|/\*(?:.|\n)*?\*/', "", source)
    lines = [line.strip() for line in source.splitlines()]
    is_comment = re.compile(r"//|#(?!define|if|else|elif|endif|include|pragma|undef)")
    counts["code_lines_cython"] += sum(
        bool(line) and not is_comment.match(line) for line in lines
    )
    counts["numeric_constants_cython"] += len(IN_C.findall(source))


def most_of_an_estimator(counts):
    """The most parameters of a constructor, and words of the docstring of a class."""
    for path in (PACKAGE / "estimators").rglob("*.py"):
        for owner in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(owner, ast.FunctionDef) and owner.name == "__init__":
                name = "parameters_of_an_estimator"
                found = len(owner.args.args + owner.args.kwonlyargs) - 1
            elif isinstance(owner, ast.ClassDef):
                name = "words_of_a_docstring"
                found = len((ast.get_docstring(owner) or "").split())
            else:
                continue
            counts[name] = max(counts[name], found)


def words(*paths):
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def count():
    counts = Counter()
    for path in PACKAGE.rglob("*.py"):
        asked = count_python(path.read_text(encoding="utf-8"), counts)
        room = path.relative_to(PACKAGE).parts[0]
        if room in ("solvers", "estimators"):
            counts[f"hasattr_and_getattr_in_{room}"] += asked
    for pattern in ("*.pyx", "*.pxd", "*.h"):
        for path in PACKAGE.rglob(pattern):
            count_cython(path.read_text(encoding="utf-8"), counts)
    tests = [path for path in (ROOT / "tests").rglob("*.py*") if path.suffix != ".pyc"]
    counts["lines_of_tests"] = sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in tests
    )
    most_of_an_estimator(counts)
    guide = [*(ROOT / "doc" / "guide").rglob("*.rst")]
    counts["words_of_the_guide"] = words(*guide)
    counts["words_of_a_page_of_the_guide"] = max(map(words, guide))
    counts["words_of_the_front"] = words(ROOT / "README.md")
    counts["words_of_the_landing_page"] = words(ROOT / "doc" / "index.rst")
    pages = (ROOT / "benchmarks" / "pages").glob("*.md")
    counts["words_of_benchmarks"] = words(ROOT / "benchmarks" / "README.md", *pages)
    return counts


def main(seconds=None):
    limits = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    counts = count()
    if seconds is not None:
        counts["seconds_of_the_suite"] = int(seconds)
    over = []
    for name, limit in limits.items():
        if name in counts or name.startswith("hasattr"):
            print(f"{name:32} {counts[name]:7} of {limit:7}")
            over += [name] * (counts[name] > limit)
    if over:
        sys.exit(f"More than budget.toml says: {', '.join(over)}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
