"""Templates of CRF++ and Wapiti, against plain translations of what these programs do."""

import re
from collections import Counter

import pytest
from _seeds import new_rng

from sklearn_structsvm.preprocessing import WordFeatures

LETTERS = ["a", "b", "A", "é", "a/b", "1", "a1"]


def drawn(rng, n=6):
    return [
        [tuple(rng.choice(LETTERS, size=2)) for _ in range(rng.integers(6))]
        for _ in range(n)
    ] + [[("a", "b"), ("b", "A")]]


def counted(features, X):
    names = features.get_feature_names_out()
    return [
        [
            dict(zip(names[row.indices], row.data, strict=True))
            for row in (x[t : t + 1] for t in range(x.shape[0]))
        ]
        for x in features.transform(X)
    ]


def outside(x, t, column, before, behind):
    if t < 0:
        return before(-t)
    return behind(t - len(x) + 1) if t >= len(x) else x[t][column]


def of_crfpp(lines, x):
    """How often each word has each feature, macro by macro."""

    def macro(match, t):
        at, column = int(match[1]) + t, int(match[2])
        return outside(x, at, column, "_B-{}".format, "_B+{}".format)

    return [
        Counter(
            re.sub(r"%x\[(-?\d+),(\d+)\]", lambda match, t=t: macro(match, t), line)
            for line in lines
        )
        for t in range(len(x))
    ]


CRFPP = [
    ["U00:%x[-2,0]", "U01:%x[-1,0]", "U02:%x[0,0]", "U05:%x[-1,0]/%x[0,0]"],
    ["U10:%x[-2,1]/%x[-1,1]/%x[0,1]", "U11:%x[0,1]/%x[3,0]/%x[-4,0]/%x[1,1]"],
    # Bags: lines without a number make the same features.
    ["U:%x[-1,0]", "U:%x[0,0]", "U:%x[1,1]", "U:%x[0,0]%x[1,0]", "U"],
    ["U:%x[0,0]", "U:%x[0,0]"],
]


@pytest.mark.parametrize("lines", CRFPP)
@pytest.mark.parametrize("min_count", [1, 3])
def test_features_are_those_of_crfpp(lines, min_count):
    X = [[("a", "b"), ("b", "A")], *drawn(new_rng(1))]
    X += X[:2] * min_count
    features = WordFeatures(lines, min_count=min_count).fit(X)
    made = [of_crfpp(lines, x) for x in X]
    total = sum((word for x in made for word in x), Counter())
    kept = sorted(name for name, count in total.items() if count >= min_count)
    assert features.get_feature_names_out().tolist() == kept
    for x, own in zip(made, counted(features, X), strict=True):
        assert own == [{n: c for n, c in word.items() if n in kept} for word in x]


def test_files_and_texts_are_read(tmp_path):
    lines = ["# words", "", "U00:%x[0,0]", "U01:%x[0,1]", "", "# transitions", "B"]
    path = tmp_path / "template"
    path.write_text("\n".join(lines), encoding="utf-8")
    X = drawn(new_rng(2))
    names = [
        WordFeatures(given).fit(X).get_feature_names_out().tolist()
        for given in (path, str(path), "\n".join(lines), lines)
    ]
    assert names[0] == names[1] == names[2] == names[3] and len(names[0]) > 2


WAPITI = [
    ("U:1=%X[ 0, 0]", lambda x, t: "u:1=" + value(x, t).lower().replace("É", "é")),
    ("u:2=%t[-1,0,\"^\\u\"]", lambda x, t: "u:2=" + holds("^[A-Z]", value(x, t - 1))),
    ("u:3=%t[1,0,\"\\d$\"]", lambda x, t: "u:3=" + holds("[0-9]$", value(x, t + 1))),
    ("u:4=%m[0,0,\"^\\a?\"]", lambda x, t: "u:4=" + match("^[A-Za-z]?", value(x, t))),
    ("u:5=%M[0,0,\"\\w*$\"]", lambda x, t: "u:5=" + match(
        "[0-9A-Za-z]*$", value(x, t)).lower()),
    ("u:6=%x[-6,0]/%x[@1,0]/%x[@-1,0]", lambda x, t: "u:6=" + "/".join(
        (value(x, t - 6), value(x, 0), value(x, len(x) - 1)))),
    ("*:7=", None),
]  # fmt: skip


def value(x, t):
    def number(k):
        return k if k < 5 else "#"

    return outside(x, t, 0, lambda k: f"_x-{number(k)}", lambda k: f"_x+{number(k)}")


def holds(regex, text):
    return "true" if re.search(regex, text) else "false"


def match(regex, text):
    found = re.search(regex, text)
    return found[0] if found else ""


def test_features_are_those_of_wapiti():
    X = drawn(new_rng(3))
    lines, functions = zip(*WAPITI, strict=True)
    features = WordFeatures(list(lines)).fit(X)
    for x, own in zip(X, counted(features, X), strict=True):
        for t, word in enumerate(own):
            assert set(word) == {f(x, t) for f in functions if f is not None}


@pytest.mark.parametrize(
    "template, message",
    [
        (["X:%x[0,0]"], "Line 1 of template must begin with U or B"),
        (["U:%x[0,0]", "U:%y[0,0]"], "Line 2 of template has a % without a macro"),
        (["U:%x[0,2]"], "Line 1 of template asks for column 2, but words have 2"),
        (["U:%x[0,0]", "B:%x[0,0]"], "Line 2 .* features of pairs of labels"),
        (["U:%t[0,0]"], "Line 1 of template has a wrong macro"),
        (["U:%x[*0,0]"], "Line 1 .* read from a column"),
        (['U:%t[0,0,"**"]'], r"Line 1 .* unescaped \* or \?"),
        (["B"], "no line that begins with U"),
    ],
)
def test_a_line_that_is_no_template_is_named(template, message):
    with pytest.raises(ValueError, match=message):
        WordFeatures(template).fit([[("a", "b")]])
