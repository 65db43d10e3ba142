"""The CoNLL-2000 text chunking task, with sparse attributes of the tokens."""

import gzip
import io
import zipfile
import zlib
from importlib.resources import files
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from sklearn_structsvm._utils.borders import check_choice, check_integer
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tables import split_rows

from ._chunking import ChunkingVocabulary
from ._fetch import (
    RemoteFile,
    check_sha256,
    data_folders,
    find_file,
    read_upstream,
    write_atomically,
)

CONLL2000_ARCHIVE = RemoteFile(
    "conll2000.zip",
    "https://raw.githubusercontent.com/nltk/nltk_data/"
    "5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora/conll2000.zip",
    "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd",
)
# Checksums of the text, which do not depend on who compressed it.
TEXT_SHA256 = {
    "train": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
    "test": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
}
# With these the counts of attributes are those published: 74,658 and 335,674.
MIN_COUNT = {"paper": 3, "tutorial": 1}


@with_plain_calls
def fetch_conll2000(
    *,
    subset: Literal["train", "test", "all"] = "train",
    template: Any = "paper",
    min_count: int | None = None,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
    return_X_y: bool = False,
) -> Any:
    """Load the CoNLL-2000 text chunking data (sequence labeling).

    The words of a sentence are tagged ``B-X`` where a chunk of type ``X`` begins, ``I-X``
    inside a chunk, and ``O`` outside. The features are binary and sparse, made from the
    words and part-of-speech tags around a token (see :func:`chunking_attributes`). The
    data are read from the data home, or downloaded into it once and verified by SHA256.

    =====================   ==============   ==============
    Subset                           train             test
    Sentences                         8936             2012
    Tokens                          211727            47377
    Labels                              22               22
    Features ('paper')               74658   those of train
    Features ('tutorial')           335674   those of train
    =====================   ==============   ==============

    Read more in the :ref:`User Guide <guide-words>`.

    Parameters
    ----------
    subset : {'train', 'test', 'all'}, default='train'
        Which sentences to load. 'all' are those of train followed by those of test. Only
        attributes that occur in train become features.
    template : {'paper', 'tutorial'}, default='paper'
        Template of the attributes, see :func:`chunking_attributes`.
    min_count : int, default=None
        Minimum number of occurrences of an attribute in train. None means 3 for 'paper',
        which gives the 74,658 features of [2]_, and 1 for 'tutorial', which gives the
        335,674 of [3]_.
    data_home : str or path-like, default=None
        Folder of the data, by default `~/scikit_learn_data`. The files `train.txt.gz` and
        `test.txt.gz`, or `conll2000.zip` as downloaded, are looked for in it and in its
        subfolder `conll2000`.
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

        data : list of CSR matrices of shape (n_tokens, n_attributes), float64
            The tokens of each sentence.
        target : list of ndarrays of shape (n_tokens,), str
            Their chunk tags.
        feature_names : ndarray of shape (n_attributes,), object
            The attributes, as strings.
        target_names : ndarray of str
            The tags in the subset, sorted.
        tokens : list of list of (word, tag) pairs
            Words and part-of-speech tags of each sentence.
        DESCR : str
            Description of the data and their source.
    (data, target) : tuple if `return_X_y=True`
        Features and chunk tags.

    Raises
    ------
    OSError
        If the data are not available locally and cannot, or must not, be downloaded, or
        if a file is not the expected one. The message says which file to put where.

    See Also
    --------
    chunking_attributes : Attributes for your own sentences.
    sklearn_structsvm.metrics.entity_f1_score : The score of this task.

    Notes
    -----
    The tag ``I-LST`` of two test tokens does not occur in train.

    To compute the same features for your own text, use scikit-learn::

        vectorizer = CountVectorizer(
            analyzer=list, vocabulary=conll.feature_names, dtype=np.float64
        )
        X = [vectorizer.transform(chunking_attributes(tokens)) for tokens in text]

    References
    ----------
    .. [1] E. F. Tjong Kim Sang, S. Buchholz, "Introduction to the CoNLL-2000 Shared
       Task: Chunking", CoNLL-2000 and LLL-2000.
    .. [2] A. Osokin, J.-B. Alayrac, I. Lukasewitz, P. Dokania, S. Lacoste-Julien,
       "Minding the Gaps for Block Frank-Wolfe Optimization of Structured SVMs",
       ICML 2016.
    .. [3] N. Okazaki, "CRFsuite: a fast implementation of Conditional Random Fields",
       2007, tutorial on chunking.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import fetch_conll2000
    >>> X, y = fetch_conll2000(return_X_y=True)  # doctest: +SKIP
    >>> len(X), X[0].shape, y[0][:3].tolist()  # doctest: +SKIP
    (8936, (37, 74658), ['B-NP', 'B-PP', 'B-NP'])
    """
    check_choice("subset", subset, ("train", "test", "all"))
    check_choice("template", template, MIN_COUNT)
    if min_count is None:
        min_count = MIN_COUNT[template]
    check_integer("min_count", min_count, 1)

    texts = _read_texts(
        data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    sentences, tags = _parse(texts["train"])
    vocabulary = ChunkingVocabulary(sentences, template, min_count)
    if subset == "test":
        sentences, tags = [], []
    if subset != "train":
        test_sentences, test_tags = _parse(texts["test"])
        sentences += test_sentences
        tags += test_tags
    lengths = [len(sentence) for sentence in sentences]
    tags = np.array(tags)
    data = split_rows(vocabulary.encode(sentences), lengths)
    target = split_rows(tags, lengths)
    if return_X_y:
        return data, target
    descr = files("sklearn_structsvm.datasets") / "data" / "conll2000.rst"
    return Bunch(
        data=data,
        target=target,
        feature_names=vocabulary.attribute_names(),
        target_names=np.unique(tags),
        tokens=sentences,
        DESCR=descr.read_text(encoding="utf-8"),
    )


def _read_texts(data_home, **options):
    """Checked text of both subsets, converted from the upstream file if need be."""
    folders = data_folders("conll2000", data_home)
    names = {subset: f"{subset}.txt.gz" for subset in TEXT_SHA256}
    paths = {subset: find_file(name, folders) for subset, name in names.items()}
    if None in paths.values():
        content = read_upstream(
            CONLL2000_ARCHIVE, folders, " and ".join(names.values()), **options
        )
        for subset, text in _extract(content).items():
            check_sha256(text, TEXT_SHA256[subset], f"{subset}.txt")
            paths[subset] = folders[0] / names[subset]
            write_atomically(paths[subset], gzip.compress(text, mtime=0))
    texts = {}
    for subset, path in paths.items():
        try:
            text = gzip.decompress(path.read_bytes())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise OSError(
                f"{path} cannot be read ({error}). It is corrupted, or a different file. "
                "Remove it to download it again."
            ) from error
        check_sha256(text, TEXT_SHA256[subset], f"The text of {path}")
        texts[subset] = text.decode("ascii")
    return texts


def _extract(content):
    """Bytes of ``train.txt`` and ``test.txt`` in the upstream archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {subset: archive.read(f"conll2000/{subset}.txt") for subset in TEXT_SHA256}


def _parse(text):
    """Sentences of (word, part-of-speech tag) pairs, and the flat list of chunk tags.

    A line is a token: word, part of speech and chunk tag; an empty line ends a
    sentence. Equal pairs are one object.
    """
    sentences, tags, sentence, shared = [], [], [], {}
    for line in text.split("\n"):
        if line.strip():
            word, pos, tag = line.split()
            pair = (word, pos)
            sentence.append(shared.setdefault(pair, pair))
            tags.append(tag)
        elif sentence:
            sentences.append(sentence)
            sentence = []
    if sentence:
        sentences.append(sentence)
    return sentences, tags
