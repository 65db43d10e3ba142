"""CoNLL-2000: attributes, their encoding, and the files."""

import gzip
import hashlib
import io
import zipfile
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_structsvm.datasets import _conll2000, chunking_attributes, fetch_conll2000
from sklearn_structsvm.datasets._chunking import ChunkingVocabulary
from sklearn_structsvm.datasets._fetch import RemoteFile

TEXTS = {
    "train": "The DT B-NP\ncat NN I-NP\nsat VBD B-VP\n\nthe DT B-NP\nmat NN I-NP\n\n",
    "test": "The DT B-NP\ndog NN I-NP\nsat VBD B-VP\n. . O\n\n",
}
TRAIN = [[("The", "DT"), ("cat", "NN"), ("sat", "VBD")], [("the", "DT"), ("mat", "NN")]]


def archive_of(texts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for subset, text in texts.items():
            archive.writestr(f"conll2000/{subset}.txt", text)
        archive.writestr("conll2000/README", "not a text")
    return buffer.getvalue()


@pytest.fixture
def upstream(tmp_path, monkeypatch):
    """The small texts as an archive elsewhere, with checksums to fit."""
    path = tmp_path / "elsewhere" / "conll2000.zip"
    path.parent.mkdir()
    path.write_bytes(archive_of(TEXTS))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sums = {s: hashlib.sha256(t.encode()).hexdigest() for s, t in TEXTS.items()}
    remote = RemoteFile(path.name, path.as_uri(), digest)
    monkeypatch.setattr(_conll2000, "CONLL2000_ARCHIVE", remote)
    monkeypatch.setattr(_conll2000, "TEXT_SHA256", sums)
    return path


def encode_by_strings(sentences, names, template):
    """Slow reference of the encoding: look every attribute string up."""
    column = {name: j for j, name in enumerate(names)}
    rows = []
    for sentence in sentences:
        for attributes in chunking_attributes(sentence, template=template):
            row = np.zeros(len(names))
            row[[column[a] for a in attributes if a in column]] = 1
            rows.append(row)
    return np.array(rows)


# --- attributes


def test_the_tutorial_attributes_are_those_of_crfsuite():
    tokens = [("He", "PRP"), ("reckons", "VBZ"), ("The", "DT"), ("gap", "NN")]
    attributes = chunking_attributes(tokens, template="tutorial")
    assert attributes[1] == [
        "w[-1]=He",
        "w[0]=reckons",
        "w[1]=The",
        "w[2]=gap",
        "w[-1]|w[0]=He|reckons",
        "w[0]|w[1]=reckons|The",
        "pos[-1]=PRP",
        "pos[0]=VBZ",
        "pos[1]=DT",
        "pos[2]=NN",
        "pos[-1]|pos[0]=PRP|VBZ",
        "pos[0]|pos[1]=VBZ|DT",
        "pos[1]|pos[2]=DT|NN",
        "pos[-1]|pos[0]|pos[1]=PRP|VBZ|DT",
        "pos[0]|pos[1]|pos[2]=VBZ|DT|NN",
    ]
    assert attributes[0][-1] == "__BOS__"
    assert attributes[3][-1] == "__EOS__"
    assert "__BOS__" not in attributes[1] and "__EOS__" not in attributes[1]


def test_the_paper_attributes_are_lower_case_and_padded():
    [attributes] = chunking_attributes([("He", "PRP")])
    assert len(attributes) == 19 and chunking_attributes([]) == []
    assert attributes[:7] == [
        "w[-2]=__BOS__",
        "w[-1]=__BOS__",
        "w[0]=he",
        "w[1]=__EOS__",
        "w[2]=__EOS__",
        "w[-1]|w[0]=__BOS__|he",
        "w[0]|w[1]=he|__EOS__",
    ]
    assert attributes[17] == "pos[-1]|pos[0]|pos[1]=__BOS__|PRP|__EOS__"
    # A token alone is first and last.
    [attributes] = chunking_attributes([("He", "PRP")], template="tutorial")
    assert attributes == ["w[0]=He", "pos[0]=PRP", "__BOS__", "__EOS__"]


@pytest.mark.parametrize("token", ["He", ("He",), ("He", 1), ("a", "b", "c")])
def test_a_token_that_is_no_pair_is_named(token):
    with pytest.raises(ValueError, match=r"tokens\[1\] must be a \(word, tag\) pair"):
        chunking_attributes([("a", "b"), token])


sentences_of_few_words = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["a", "A", "b", "c"]), st.sampled_from("XYZ")),
        max_size=5,
    ),
    max_size=5,
)


@settings(deadline=None)
@given(
    train=sentences_of_few_words,
    other=sentences_of_few_words,
    template=st.sampled_from(["paper", "tutorial"]),
    min_count=st.integers(1, 3),
)
def test_the_encoding_equals_looking_strings_up(train, other, template, min_count):
    train = [sentence for sentence in train if sentence]
    vocabulary = ChunkingVocabulary(train, template, min_count)
    names = vocabulary.attribute_names()
    counts = {}
    for sentence in train:
        for attributes in chunking_attributes(sentence, template=template):
            for attribute in attributes:
                counts[attribute] = counts.get(attribute, 0) + 1
    assert len(names) == vocabulary.n_attributes
    assert sorted(names) == sorted(a for a, n in counts.items() if n >= min_count)
    for sentences in (train, other):
        rows = vocabulary.encode(sentences)
        assert rows.shape == (sum(map(len, sentences)), len(names))
        checked = sparse.csr_matrix(
            (rows.data, rows.indices, rows.indptr), shape=rows.shape
        )
        assert checked.has_canonical_format
        if len(names) and rows.shape[0]:
            expected = encode_by_strings(sentences, names, template)
            assert_array_equal(rows.toarray(), expected)


# --- files


def test_the_upstream_archive_becomes_sentences_and_tags_and_is_kept(upstream, tmp_path):
    home = tmp_path / "home"
    bunch = fetch_conll2000(data_home=home, min_count=1)
    assert bunch.tokens == TRAIN
    assert [t.tolist() for t in bunch.target] == [
        ["B-NP", "I-NP", "B-VP"],
        ["B-NP", "I-NP"],
    ]
    assert_array_equal(bunch.target_names, ["B-NP", "B-VP", "I-NP"])
    assert "Tjong Kim Sang" in bunch.DESCR
    for x, tokens in zip(bunch.data, TRAIN, strict=True):
        assert x.format == "csr" and x.dtype == np.float64
        assert x.shape == (len(tokens), len(bunch.feature_names))
        expected = encode_by_strings([tokens], bunch.feature_names, "paper")
        assert_array_equal(x.toarray(), expected)
    files = sorted(path.name for path in (home / "conll2000").iterdir())
    assert files == ["test.txt.gz", "train.txt.gz"]
    upstream.unlink()
    options = {"download_if_missing": False, "return_X_y": True}
    again, _ = fetch_conll2000(data_home=home, min_count=1, **options)
    for one, same in zip(bunch.data, again, strict=True):
        assert_array_equal(one.toarray(), same.toarray())


@pytest.mark.parametrize("template", ["paper", "tutorial"])
def test_the_test_sentences_get_the_features_of_train(upstream, tmp_path, template):
    options = {"template": template, "min_count": 1, "data_home": tmp_path}
    train = fetch_conll2000(**options)
    test = fetch_conll2000(subset="test", **options)
    both = fetch_conll2000(subset="all", **options)
    assert_array_equal(train.feature_names, test.feature_names)
    expected = encode_by_strings(test.tokens, train.feature_names, template)
    assert_array_equal(test.data[0].toarray(), expected)
    assert both.tokens == train.tokens + test.tokens
    for one, same in zip(train.data + test.data, both.data, strict=True):
        assert_array_equal(one.toarray(), same.toarray())
    assert not any("dog" in name for name in test.feature_names)


@pytest.mark.parametrize("template, min_count", [("paper", 3), ("tutorial", 1)])
def test_rare_attributes_are_features_only_in_the_tutorial(
    upstream, tmp_path, template, min_count
):
    bunch = fetch_conll2000(data_home=tmp_path, template=template)
    found = [chunking_attributes(tokens, template=template) for tokens in TRAIN]
    counts = Counter(chain.from_iterable(chain.from_iterable(found)))
    wanted = {a for a, count in counts.items() if count >= min_count}
    assert set(bunch.feature_names) == wanted
    assert 0 < len(wanted) < len(counts) or min_count == 1


def test_a_changed_text_is_refused_and_not_kept(upstream, tmp_path, monkeypatch):
    changed = archive_of(TEXTS | {"test": TEXTS["test"] + "x NN O\n\n"})
    upstream.write_bytes(changed)
    remote = _conll2000.CONLL2000_ARCHIVE._replace(
        sha256=hashlib.sha256(changed).hexdigest()
    )
    monkeypatch.setattr(_conll2000, "CONLL2000_ARCHIVE", remote)
    with pytest.raises(OSError, match=r"test\.txt has the SHA256 checksum"):
        fetch_conll2000(data_home=tmp_path)
    assert not (tmp_path / "conll2000" / "test.txt.gz").exists()


def test_a_changed_local_file_is_named(upstream, tmp_path):
    for subset in ("train", "test"):
        (tmp_path / f"{subset}.txt.gz").write_bytes(gzip.compress(b"changed"))
    with pytest.raises(OSError, match=r"train\.txt\.gz has the SHA256 checksum"):
        fetch_conll2000(data_home=tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 30])
def test_a_truncated_local_file_is_named(upstream, tmp_path, keep):
    fetch_conll2000(data_home=tmp_path)
    path = tmp_path / "conll2000" / "train.txt.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(OSError, match=r"train\.txt\.gz"):
        fetch_conll2000(data_home=tmp_path)


def test_without_files_and_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(OSError, match=r"put conll2000\.zip .* into"):
        fetch_conll2000(data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize(
    "option, value",
    [("subset", "dev"), ("min_count", 0), ("min_count", 1.5), ("template", "Paper")],
)
def test_a_bad_option_is_named(upstream, tmp_path, option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        fetch_conll2000(data_home=tmp_path, **{option: value})


@pytest.mark.parametrize(
    "folder, template, n_attributes",
    [(".", "paper", 74_658), ("conll2000", "tutorial", 335_674)],
)
def test_the_real_sentences_have_the_published_numbers_of_attributes(
    real_data, folder, template, n_attributes
):
    bunch = fetch_conll2000(
        data_home=real_data / folder, template=template, download_if_missing=False
    )
    assert len(bunch.data) == len(bunch.target) == len(bunch.tokens) == 8936
    assert sum(map(len, bunch.target)) == 211_727
    assert len(bunch.target_names) == 22
    assert len(bunch.feature_names) == n_attributes
    for i in (0, 17, 8935):
        names = [bunch.feature_names[row.indices] for row in bunch.data[i]]
        for name, attributes in zip(
            names, chunking_attributes(bunch.tokens[i], template=template), strict=True
        ):
            assert set(name) <= set(attributes)
    if template == "paper":
        assert sum(x.data.nbytes + x.indices.nbytes for x in bunch.data) < 50e6


def test_the_real_test_sentences_are_encoded_with_the_train_vocabulary(real_data):
    X, y = fetch_conll2000(
        subset="test", data_home=real_data, download_if_missing=False, return_X_y=True
    )
    assert len(X) == 2012 and sum(map(len, y)) == 47_377
    assert X[0].shape == (len(y[0]), 74_658)
    assert len(np.unique(np.concatenate(y))) == 19
    assert sum((tags == "I-LST").sum() for tags in y) == 2
