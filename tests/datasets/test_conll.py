"""Tagged text in columns: all forms of files, and what is odd about them."""

import gzip
import io
import warnings

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.datasets import read_conll, write_conll

CONLL2000 = """\
He PRP B-NP
reckons VBZ B-VP

the DT B-NP
deficit NN I-NP
falls VBZ B-VP
. . O
? . O
"""
CONLL2003 = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
# SYM O O
-DOCSTART- -X- O O

German JJ I-NP I-MISC
lamb NN I-NP I-MISC
EU NNP I-NP I-ORG
"""
CONLLU = """\
# newdoc
# text = vámonos al mar

1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\tMood=Imp|Number=Plur\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
3\t#\t#\tSYM\tS\t_\t1\tobl\t_\tSpaceAfter=No
3.1\tx\tx\tVERB\t_\t_\t_\t_\t_\t_
"""
X2000 = [
    [("He", "PRP"), ("reckons", "VBZ")],
    [("the", "DT"), ("deficit", "NN"), ("falls", "VBZ"), (".", "."), ("?", ".")],
]
Y2000 = [["B-NP", "B-VP"], ["B-NP", "I-NP", "B-VP", "O", "O"]]


def read(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return read_conll(io.StringIO(text), **options)


def test_columns_before_the_tags_are_those_of_words():
    assert read(CONLL2000) == (X2000, Y2000)
    X, y = read(CONLL2003)
    assert X[0] == [("EU", "NNP", "I-NP"), ("#", "SYM", "O")]
    assert y == [["I-ORG", "O"], ["I-MISC", "I-MISC", "I-ORG"]]


@pytest.mark.parametrize("start", ["-DOCSTART-", "-DOCSTART- O", "-DOCSTART- -X- O O O"])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_lines_between_documents_may_have_any_number_of_columns(start, separator):
    lines = [line.replace(" ", separator) for line in CONLL2003.splitlines()]
    lines = [start if line.startswith("-DOCSTART-") else line for line in lines]
    assert read("\n".join(lines)) == read(CONLL2003)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("separator", [" ", "\t", "   "])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "packed.txt"])
def test_files_are_read_however_they_were_written(tmp_path, end, mark, separator, name):
    text = mark + CONLL2000.replace(" ", separator).replace("\n", end)
    data = text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name != "a.txt" else data)
    for file in (path, str(path)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert read_conll(file) == (X2000, Y2000)
    if end == "\r\n":
        assert read(text) == (X2000, Y2000)


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2009", "\x85"])
@pytest.mark.parametrize("separator", [" ", "  ", "\t"])
def test_words_may_contain_spaces_that_separate_nothing(separator, space):
    word = f"10{space}000"
    lines = [f"{word}{separator}B-x", f"a{separator}B-x", f"{word}{separator}B-x"]
    assert read_conll(lines) == ([[word, "a", word]], [["B-x"] * 3])


def test_marks_within_joined_files_are_no_part_of_words():
    X, _ = read_conll(["\ufeffa B-x", "", "\ufeffa B-x"])
    assert X == [["a"], ["a"]]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named_and_can_be_passed(tmp_path, encoding):
    path = tmp_path / "a.txt"
    path.write_text("é B-x\né B-x\n", encoding=encoding)
    with pytest.raises(ValueError, match=r"a\.txt is not encoded as utf-8.*encoding="):
        read_conll(path)
    assert read_conll(path, encoding=encoding) == ([["é", "é"]], [["B-x", "B-x"]])


def test_words_of_conllu_of_named_columns_and_of_elements_are_read():
    X, y = read(CONLLU)
    assert X == [["vamos", "nos", "#"]] and y == [["VERB", "PRON", "SYM"]]
    X, y = read(CONLLU, columns=["form", "feats", -1], target="deprel")
    assert X[0][0] == ("vamos", "Mood=Imp|Number=Plur", "_")
    assert y == [["root", "obj", "obl"]]
    text = "# global.columns = ID FORM NE\n1\tAda\tB-PER\n2\twrites\tO\n"
    assert read(text, columns="form", target="ne") == (
        [["Ada", "writes"]],
        [["B-PER", "O"]],
    )
    text = (
        "<all>\n<one><No>12</No> <Road>Main</Road> <Road>St.</Road></one>\n<one/></all>"
    )
    assert read(text) == ([["12", "Main", "St."]], [["No", "Road", "Road"]])


@pytest.mark.parametrize("columns, expected", [(0, "He"), ([1, -3], ("PRP", "He"))])
def test_columns_are_chosen_by_number(columns, expected):
    X, y = read(CONLL2000, columns=columns, target=1)
    assert X[0][0] == expected and y[0] == ["PRP", "VBZ"]
    X, y = read(CONLL2000, columns=columns, target=None)
    assert X[0][0] == expected and y is None


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("a b\nc d e\nf\n", {}, "must have 2 columns.* line 2 has 3, line 3 has 1"),
        ("a\tO\nb c\n", {}, "line 2 has 1"),
        ("a O\n", {"columns": ["form"]}, "no names of columns.*Line 1 has 2"),
        (CONLLU, {"target": "ner"}, "target has 'ner'; the columns are"),
        ("a O\n", {"columns": [2]}, "columns has 2, but line 1 has 2 columns"),
        ("a\n", {}, "no word before the tag"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(text, options, message):
    with pytest.raises(ValueError, match=message):
        read(text, **options)


def test_odd_tags_are_told_with_their_lines():
    lines = ["a B-X", "b I-X", "c O", "", "d I-X", "e B-X", "f O", "g I-Y", "h O"]
    with pytest.warns(UserWarning) as found:
        read_conll(lines)
    assert [str(own.message) for own in found] == [
        "Some tags occur only once ('I-Y' in line 8); some tags cannot stand where they "
        "are in 'iob1' (B-X in line 1)."
    ]
    with pytest.warns(UserWarning, match=r"tags are empty \(line 2\)"):
        read_conll(["a\tB", "b\t", "c\tB", "d\tB"])
    with pytest.warns(UserWarning, match=r"'bioes' \(the end in line 6\)"):
        read_conll(
            [*["a S-X", "b B-X", "c E-X", "", "d S-X", "e B-X"], "", "f B-X", "g E-X"]
        )


def test_correct_files_are_read_without_a_word():
    lines = ["a B-X", "b I-X", "c O", "", "d B-X", "e I-X"]
    assert len(read_conll([*lines, "", *lines])[0]) == 4
    assert read_conll([]) == ([], [])


def test_what_is_written_is_read_also_compressed(tmp_path):
    rng = new_rng(1)
    words, tags = ["a", "é", "#x", "a b"], ["B-X", "I-X", "O"]
    lengths = rng.integers(1, 6, size=30)
    X = [
        [(str(rng.choice(words)), str(rng.choice(words))) for _ in range(n)]
        for n in lengths
    ]
    y = [rng.choice(tags, size=n) for n in lengths]
    file = io.StringIO()
    write_conll(file, X, y, y)
    found, own = read(file.getvalue(), columns=[0, 1])
    assert found == X
    for given, tags in zip(y, own, strict=True):
        np.testing.assert_array_equal(given, tags)
    path = tmp_path / "a.gz"
    write_conll(path, [["a"], []], [["O"], []], separator=" ")
    assert gzip.decompress(path.read_bytes()) == b"a O\n\n\n"


@pytest.mark.parametrize(
    "X, labels, message",
    [
        ([["a"]], [["O"], ["O"]], r"labels\[0\] has 2 sequences, but X has 1"),
        ([["a"]], [["O", "O"]], r"labels\[0\]\[0\] has 2 entries, but X\[0\] has 1"),
        ([["a\tb"]], [["O"]], r"X\[0\]\[0\] has 'a\\tb' in a column"),
        ([["a"]], [[""]], r"X\[0\]\[0\] has '' in a column"),
        ([["a\nb"]], [["O"]], r"X\[0\]\[0\] has 'a\\nb' in a column"),
        ("a", [["O"]], "X must be a list of sentences"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, X, labels, message):
    path = tmp_path / "a.txt"
    with pytest.raises(ValueError, match=message):
        write_conll(path, X, labels)
    assert not path.exists()
