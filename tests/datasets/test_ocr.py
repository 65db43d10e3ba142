"""The OCR letters: what ships, what is fetched, and the upstream format."""

import hashlib
import zlib

import numpy as np
import pytest
from _seeds import new_rng
from numpy.testing import assert_array_equal
from scipy.io import savemat

from sklearn_structsvm._utils.tables import split_rows
from sklearn_structsvm.datasets import _ocr, fetch_ocr_letters, load_ocr_letters
from sklearn_structsvm.datasets._fetch import RemoteFile

LENGTHS = np.array([3, 5, 4, 3, 6, 4])
FOLD = np.array([1, 0, 2, 0, 1, 2], dtype=np.uint8)


@pytest.fixture
def words():
    """Six random words in the converted format."""
    rng = new_rng(0)
    return {
        "X": rng.integers(2, size=(LENGTHS.sum(), 128)).astype(np.uint8),
        "y": rng.integers(26, size=LENGTHS.sum()).astype(np.uint8),
        "lengths": LENGTHS.astype(np.int32),
        "fold": FOLD,
    }


@pytest.fixture
def upstream(words, tmp_path, monkeypatch):
    """The same words as the MATLAB file elsewhere, fold 0 first and apart."""
    images = split_rows(words["X"].reshape(-1, 16, 8), LENGTHS)
    letters = split_rows(words["y"], LENGTHS)
    cells = {}
    for part, rest in (("train", False), ("test", True)):
        chosen = np.flatnonzero((FOLD > 0) == rest)
        patterns = np.empty((1, len(chosen)), dtype=object)
        labels = np.empty((1, len(chosen)), dtype=object)
        for j, i in enumerate(chosen):
            # A column for each image, read column by column, and a constant.
            columns = [np.append(image.ravel(order="F"), 1) for image in images[i]]
            patterns[0, j] = np.column_stack(columns).astype(float)
            labels[0, j] = letters[i][None].astype(float)
        cells |= {f"patterns_{part}": patterns, f"labels_{part}": labels}
    path = tmp_path / "elsewhere" / "ocr_taskar.mat"
    path.parent.mkdir()
    savemat(path, cells)

    flat = b"".join(words[key].tobytes() for key in ("X", "y", "lengths", "fold"))
    packed = split_rows(np.packbits(words["X"], axis=1), LENGTHS)
    order = {
        "crc32": np.array(
            [
                zlib.crc32(pixels.tobytes() + word.tobytes())
                for pixels, word in zip(packed, letters, strict=True)
            ],
            dtype=np.uint32,
        ),
        "fold": FOLD,
    }
    content = path.read_bytes()
    remote = RemoteFile(path.name, path.as_uri(), hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(_ocr, "OCR_ARCHIVE", remote)
    monkeypatch.setattr(_ocr, "CONTENT_SHA256", hashlib.sha256(flat).hexdigest())
    monkeypatch.setattr(_ocr, "_load_packaged", lambda name: order)
    return path


def assert_words(X, y, words, wanted):
    X_true = split_rows(words["X"].astype(float), LENGTHS)
    y_true = split_rows(words["y"], LENGTHS)
    assert len(X) == len(y) == len(wanted)
    for pixels, word, i in zip(X, y, wanted, strict=True):
        assert pixels.dtype == np.float64
        assert_array_equal(pixels, X_true[i])
        assert "".join(word) == "".join(chr(ord("a") + c) for c in y_true[i])


def test_the_shipped_words_are_fold_0_in_small_files():
    words = load_ocr_letters()
    assert len(words.data) == len(words.target) == 626
    assert sum(map(len, words.target)) == 4617
    assert_array_equal(words.fold, np.zeros(626))
    assert "".join(words.target_names) == "abcdefghijklmnopqrstuvwxyz"
    for x, y in zip(words.data, words.target, strict=True):
        assert x.shape == (len(y), 128) and x.dtype == np.float64
        assert set(y) <= set(words.target_names)
    assert set(np.unique(np.concatenate(words.data))) == {0.0, 1.0}
    for name in ("Kassel", "Taskar", "Max-Margin Markov Networks"):
        assert name in words.DESCR
    X, y = load_ocr_letters(return_X_y=True)
    for x, item in zip(X, words.data, strict=True):
        assert_array_equal(x, item)
    assert ["".join(t) for t in y] == ["".join(t) for t in words.target]
    for name in ("ocr_fold0.npz", "ocr_order.npz"):
        assert len(_ocr._data_file(name).read_bytes()) < 50_000


def test_the_upstream_file_becomes_the_same_words_in_their_order(
    upstream, words, tmp_path
):
    home = tmp_path / "home"
    bunch = fetch_ocr_letters(data_home=home)
    assert_words(bunch.data, bunch.target, words, range(6))
    assert_array_equal(bunch.fold, FOLD)
    assert [path.name for path in (home / "ocr").iterdir()] == ["ocr.npz"]
    # A second fetch reads what the first one wrote.
    upstream.unlink()
    X, y = fetch_ocr_letters(data_home=home, download_if_missing=False, return_X_y=True)
    assert_words(X, y, words, range(6))


@pytest.mark.parametrize("subset, wanted", [("small", [1, 3]), ("large", [0, 2, 4, 5])])
def test_a_subset_is_fold_0_or_the_rest(upstream, words, tmp_path, subset, wanted):
    bunch = fetch_ocr_letters(subset=subset, data_home=tmp_path)
    assert_words(bunch.data, bunch.target, words, wanted)
    assert_array_equal(bunch.fold, FOLD[wanted])


def test_words_other_than_expected_are_not_kept(upstream, tmp_path, monkeypatch):
    monkeypatch.setattr(_ocr, "CONTENT_SHA256", "0" * 64)
    with pytest.raises(OSError, match=r"content of ocr_taskar\.mat has the SHA256"):
        fetch_ocr_letters(data_home=tmp_path / "home")
    assert not list((tmp_path / "home").rglob("*.npz"))


def test_a_word_missing_upstream_is_an_error(upstream, tmp_path, monkeypatch):
    order = {"crc32": np.array([1], dtype=np.uint32), "fold": FOLD[:1]}
    monkeypatch.setattr(_ocr, "_load_packaged", lambda name: order)
    with pytest.raises(OSError, match="1 of 1 words are not in the file"):
        fetch_ocr_letters(data_home=tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"no zip file", b"PK\x03\x04 a broken zip file"]
)
def test_a_corrupted_file_is_named(tmp_path, content):
    (tmp_path / "ocr.npz").write_bytes(content)
    with pytest.raises(OSError, match=r"ocr\.npz cannot be read .* download it again"):
        fetch_ocr_letters(data_home=tmp_path)


def test_other_words_in_the_file_are_refused(tmp_path, words):
    np.savez_compressed(tmp_path / "ocr.npz", **words)
    with pytest.raises(OSError, match=r"ocr\.npz has the SHA256 checksum"):
        fetch_ocr_letters(data_home=tmp_path)


def test_without_files_and_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(OSError, match=r"put ocr_taskar\.mat .* into"):
        fetch_ocr_letters(data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize("folder", [".", "ocr"])
def test_real_words_are_read_from_the_folder_or_its_parent(real_data, folder):
    bunch = fetch_ocr_letters(data_home=real_data / folder, download_if_missing=False)
    assert len(bunch.data) == 6877
    assert_array_equal(
        np.bincount(bunch.fold), [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    )


def test_the_shipped_words_equal_fold_0_of_the_real_ones(real_data):
    shipped = load_ocr_letters()
    small = fetch_ocr_letters(
        subset="small", data_home=real_data, download_if_missing=False
    )
    for name in ("data", "target"):
        for ours, theirs in zip(shipped[name], small[name], strict=True):
            assert_array_equal(ours, theirs)


def test_the_shipped_table_puts_shuffled_real_words_in_order(real_data):
    arrays = _ocr._read_converted(real_data / "ocr" / "ocr.npz")
    lengths = arrays["lengths"]
    pixels = split_rows(np.packbits(arrays["X"], axis=1), lengths)
    letters = split_rows(arrays["y"], lengths)
    shuffled = new_rng(0).permutation(len(lengths))
    restored = _ocr._restore_order(
        [pixels[i] for i in shuffled],
        [letters[i] for i in shuffled],
        **_ocr._load_packaged("ocr_order.npz"),
    )
    for key, expected in arrays.items():
        assert restored[key].dtype == expected.dtype
        assert_array_equal(restored[key], expected)
