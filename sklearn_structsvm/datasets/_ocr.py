"""Handwritten words: one fold included, all ten to download."""

import io
import zipfile
import zlib
from importlib.resources import files
from os import PathLike
from typing import Any, Literal

import numpy as np
from scipy.io import loadmat
from sklearn.utils import Bunch

from sklearn_structsvm._utils.borders import check_choice
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tables import split_rows

from ._fetch import (
    RemoteFile,
    check_sha256,
    data_folders,
    find_file,
    read_upstream,
    write_atomically,
)

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
IMAGE_HEIGHT, IMAGE_WIDTH = 16, 8
N_PIXELS = IMAGE_HEIGHT * IMAGE_WIDTH

OCR_ARCHIVE = RemoteFile(
    "ocr_taskar.mat",
    "https://raw.githubusercontent.com/shogun-toolbox/shogun-data/"
    "8b407372f396a95f4b8fafdbee5e7b7755fddef9/ocr/ocr_taskar.mat",
    "6cb63f47f6c0f6f5fc6754c6e45ae408115778a54d29ad9ea197a183d80af1cb",
)
CONVERTED = "ocr.npz"
# The checksum is of the bytes of X, y, lengths and fold, in this order.
CONTENT_DTYPES = {"X": "u1", "y": "u1", "lengths": "<i4", "fold": "u1"}
CONTENT_SHA256 = "88bc950670d88d8d84544a706acdc0e94b39b6b3f82755d2e4a9aca4673e5d59"


def _data_file(name):
    return files("sklearn_structsvm.datasets") / "data" / name


def _load_packaged(name):
    """Arrays of an ``.npz`` of the package, which may live in a zip file."""
    with np.load(io.BytesIO(_data_file(name).read_bytes())) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _as_bunch(pixels, letters, lengths, fold, return_X_y):
    """Words as float pixels and letters, from flat arrays of 0/1 and 0..25."""
    data = split_rows(pixels.astype(np.float64), lengths)
    target = split_rows(LETTERS[letters], lengths)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        fold=fold.astype(np.int64),
        target_names=LETTERS.copy(),
        DESCR=_data_file("ocr_letters.rst").read_text(encoding="utf-8"),
    )


@with_plain_calls
def load_ocr_letters(*, return_X_y: bool = False) -> Any:
    """Load 626 handwritten words, fold 0 of the OCR letters (sequence labeling).

    A word is a sequence of letters, each a binary image of 16 by 8 pixels. The authors
    omitted the first letter of each word, a capital.

    =================   =================
    Sequences                         626
    Letters                          4617
    Letters a word                3 to 14
    Features                128, 0.0 or 1.0
    Labels                     'a' to 'z'
    =================   =================

    Read more in the :ref:`User Guide <guide-chains>`.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return `(data, target)` rather than a `Bunch`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : list of 626 ndarrays of shape (n_letters, 128), float64
            Pixels, 0.0 or 1.0. A row is an image of 16 rows and 8 columns, row by row.
        target : list of 626 ndarrays of shape (n_letters,), str
            The letters.
        fold : ndarray of shape (626,), int64
            Fold of each word, here 0. See :func:`fetch_ocr_letters` for the others.
        target_names : ndarray of shape (26,), str
            The labels, sorted.
        DESCR : str
            Description of the data and their source.
    (data, target) : tuple if `return_X_y=True`
        Pixels and letters.

    See Also
    --------
    fetch_ocr_letters : All ten folds, 6877 words.

    Notes
    -----
    The pixels are stored as bits (`numpy.packbits` of each row), in 40 kB.

    References
    ----------
    R. Kassel, "A Comparison of Approaches to On-line Handwritten Character
    Recognition", PhD thesis, MIT, 1995.

    B. Taskar, C. Guestrin, D. Koller, "Max-Margin Markov Networks", NIPS 2003.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import load_ocr_letters
    >>> words = load_ocr_letters()
    >>> len(words.data), words.data[0].shape
    (626, (9, 128))
    >>> "".join(words.target[0])
    'ommanding'
    """
    packed = _load_packaged("ocr_fold0.npz")
    pixels = np.unpackbits(packed["pixels"], axis=1)
    fold = np.zeros(len(packed["lengths"]))
    return _as_bunch(pixels, packed["letters"], packed["lengths"], fold, return_X_y)


@with_plain_calls
def fetch_ocr_letters(
    *,
    subset: Literal["all", "small", "large"] = "all",
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
    return_X_y: bool = False,
) -> Any:
    """Load 6877 handwritten words, the OCR letters in ten folds (sequence labeling).

    The data are read from the data home, or downloaded once and verified by SHA256.

    =================   =================
    Sequences                        6877
    Letters                         52152
    Letters a word                3 to 14
    Features                128, 0.0 or 1.0
    Labels                     'a' to 'z'
    =================   =================

    Read more in the :ref:`User Guide <guide-chains>`.

    Parameters
    ----------
    subset : {'all', 'small', 'large'}, default='all'
        'small' are the 626 words of fold 0, and 'large' the 6251 words of folds 1 to 9.
        Both are used as training sets in the literature, and tested on the other. 'all'
        are both.
    data_home : str or path-like, default=None
        Folder of the data, by default `~/scikit_learn_data`. The file `ocr.npz`, or
        `ocr_taskar.mat` as downloaded, is looked for in it and in its subfolder `ocr`.
    download_if_missing : bool, default=True
        If False, raise an OSError if the data are not available locally.
    n_retries : int, default=3
        Number of retries after a failed download.
    delay : float, default=1.0
        Number of seconds between retries.
    return_X_y : bool, default=False
        If True, return `(data, target)` rather than a `Bunch`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : list of ndarrays of shape (n_letters, 128), float64
            Pixels, 0.0 or 1.0. A row is an image of 16 rows and 8 columns, row by row.
        target : list of ndarrays of shape (n_letters,), str
            The letters.
        fold : ndarray of shape (n_words,), int64
            Fold of each word, 0 to 9.
        target_names : ndarray of shape (26,), str
            The labels, sorted.
        DESCR : str
            Description of the data and their source.
    (data, target) : tuple if `return_X_y=True`
        Pixels and letters.

    Raises
    ------
    OSError
        If the data are not available locally and cannot, or must not, be downloaded, or
        if a file is not the expected one. The message says which file to put where.

    See Also
    --------
    load_ocr_letters : Fold 0, which is included in the package.

    Notes
    -----
    The downloaded file [3]_ distinguishes fold 0 from the others, but not the others from
    each other. Their numbers and the order of the words are restored from checksums of
    the pixels and letters of each word, which are included in the package.

    References
    ----------
    .. [1] R. Kassel, "A Comparison of Approaches to On-line Handwritten Character
       Recognition", PhD thesis, MIT, 1995.
    .. [2] B. Taskar, C. Guestrin, D. Koller, "Max-Margin Markov Networks", NIPS 2003.
    .. [3] https://github.com/shogun-toolbox/shogun-data, `ocr/ocr_taskar.mat`

    Examples
    --------
    >>> from sklearn_structsvm.datasets import fetch_ocr_letters
    >>> X, y = fetch_ocr_letters(subset="large", return_X_y=True)  # doctest: +SKIP
    >>> len(X)  # doctest: +SKIP
    6251
    """
    check_choice("subset", subset, ("all", "small", "large"))
    folders = data_folders("ocr", data_home)
    path = find_file(CONVERTED, folders)
    if path is not None:
        arrays = _read_converted(path)
    else:
        content = read_upstream(
            OCR_ARCHIVE,
            folders,
            CONVERTED,
            download_if_missing=download_if_missing,
            n_retries=n_retries,
            delay=delay,
        )
        order = _load_packaged("ocr_order.npz")
        arrays = _restore_order(*_convert_taskar_mat(io.BytesIO(content)), **order)
        _check_content(arrays, OCR_ARCHIVE.filename)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_atomically(folders[0] / CONVERTED, buffer.getvalue())
    lengths, fold = arrays["lengths"], arrays["fold"]
    wanted = {"all": fold >= 0, "small": fold == 0, "large": fold > 0}[subset]
    rows = np.repeat(wanted, lengths)
    return _as_bunch(
        arrays["X"][rows], arrays["y"][rows], lengths[wanted], fold[wanted], return_X_y
    )


def _read_converted(path):
    """Checked arrays X, y, lengths and fold of the file."""
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:
            arrays = {k: file[k].astype(t) for k, t in CONTENT_DTYPES.items()}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise OSError(
            f"{path} cannot be read ({error}). It is corrupted, or a different file. "
            "Remove it to download it again."
        ) from error
    _check_content(arrays, path)
    return arrays


def _check_content(arrays, source):
    """Raise OSError unless these are the 6877 words, pixel by pixel.

    The compressed bytes depend on who wrote the file, so the arrays have the checksum.
    """
    content = b"".join(
        np.ascontiguousarray(arrays[key], dtype=dtype).tobytes()
        for key, dtype in CONTENT_DTYPES.items()
    )
    check_sha256(content, CONTENT_SHA256, f"The content of {source}")


def _convert_taskar_mat(file):
    """Words of the MATLAB file, as lists of bit-packed pixels and of letters.

    The cells ``patterns_train`` and ``patterns_test`` hold a word each, of shape
    (129, n_letters): a column is an image, column by column, then a constant 1. The
    cells ``labels_train`` and ``labels_test`` hold its letters, 0..25, shape
    (1, n_letters). One of the two parts is fold 0, the other the rest.
    """
    mat = loadmat(file)
    pixels, letters = [], []
    for part in ("train", "test"):
        for word in mat[f"patterns_{part}"].ravel():
            columns = word[:N_PIXELS].T.reshape(-1, IMAGE_WIDTH, IMAGE_HEIGHT)
            images = columns.transpose(0, 2, 1)
            images = images.reshape(-1, N_PIXELS).astype(np.uint8)
            pixels.append(np.packbits(images, axis=1))
        for word in mat[f"labels_{part}"].ravel():
            letters.append(word.ravel().astype(np.uint8))
    return pixels, letters


def _word_checksum(pixels, letters):
    return zlib.crc32(pixels.tobytes() + letters.tobytes())


def _restore_order(pixels, letters, crc32, fold):
    """Flat arrays of the words in the order of the table of checksums and folds."""
    words = zip(pixels, letters, strict=True)
    index = {_word_checksum(*word): i for i, word in enumerate(words)}
    order = [index.get(checksum) for checksum in crc32.tolist()]
    if None in order:
        raise OSError(f"{order.count(None)} of {len(order)} words are not in the file.")
    return {
        "X": np.unpackbits(np.concatenate([pixels[i] for i in order]), axis=1),
        "y": np.concatenate([letters[i] for i in order]),
        "lengths": np.array([len(letters[i]) for i in order], dtype=np.int32),
        "fold": fold,
    }
