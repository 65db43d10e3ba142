"""Models of CRFsuite, read from their files."""

import struct
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.preprocessing import SequenceTransformer
from sklearn_structsvm.structures import ChainStructure

# Of the file: a magic word, its size, the type of model, the version, numbers of
# features, labels and attributes, and where these and references to them are.
HEADER = "<4sI4sI3I5I"
# Of the features: a word, a size and their number; then they follow.
FEATURES = "<4sII"
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("w", "<f8")])
# Of a table of names: a word, size, flags, byte order, and the number and the place of
# the records by number. A record has its number, and the length of its name with a zero.
NAMES = "<4s5I"
RECORD = "<II"


@with_plain_calls
def from_crfsuite(path: str | PathLike[str]) -> Pipeline:
    """Read a model of CRFsuite into a fitted pipeline, with equal tags and probabilities.

    The models are those that CRFsuite, python-crfsuite and sklearn-crfsuite write, with
    any algorithm, of the type "crf1d".

    Read more in the :ref:`User Guide <guide-from-crfsuite>`.

    Parameters
    ----------
    path : path-like
        File of the model.

    Returns
    -------
    Pipeline
        Of a `SequenceTransformer`, which takes tokens as CRFsuite does, and a fitted
        `CRFClassifier`. A fit replaces the weights. It has no certificate: its
        `dual_gap_` is NaN.

    Raises
    ------
    ValueError
        If the file is no such model, or damaged.

    Notes
    -----
    python-crfsuite names the string "the" of the key "word" ``word:the``, which may also
    be a number of a nested dict. Here the former is ``word=the``, so attributes with
    colons get a column for each reading.

    References
    ----------
    .. [1] N. Okazaki, "CRFsuite: a fast implementation of Conditional Random Fields",
       2007.

    Examples
    --------
    >>> from sklearn_structsvm.export import from_crfsuite
    >>> tagger = from_crfsuite("usaddr.crfsuite")  # doctest: +SKIP
    >>> tagger.predict([tokens])  # doctest: +SKIP
    """
    data = Path(path).read_bytes()
    try:
        labels, attributes, features = _parts_of(data)
    except (struct.error, UnicodeDecodeError, IndexError, ValueError) as error:
        raise ValueError(f"{path} is not a model of CRFsuite: {error}.") from error
    k = len(labels)
    emission, transition = np.zeros((len(attributes), k)), np.zeros((k, k))
    for kind, weights in enumerate((emission, transition)):
        own = features[features["kind"] == kind]
        weights[own["source"], own["target"]] = own["w"]
    order = np.argsort(labels)
    return _fitted_pipeline(
        labels[order], attributes, emission[:, order], transition[np.ix_(order, order)]
    )


def _parts_of(data):
    """Labels, attributes, and the features, of a file."""
    magic, _, kind, _, *sizes = struct.unpack_from(HEADER, data)
    if (magic, kind) != (b"lCRF", b"FOMC"):
        raise ValueError("it does not begin as one")
    _, n_labels, n_attributes, at, at_labels, at_attributes, *_ = sizes
    labels = np.array(_names_at(data, at_labels, n_labels), dtype=object)
    attributes = _names_at(data, at_attributes, n_attributes)
    _, _, n = struct.unpack_from(FEATURES, data, at)
    start = at + struct.calcsize(FEATURES)
    features = np.frombuffer(data, FEATURE, n, start)
    sizes = np.array([n_attributes, n_labels])[np.minimum(features["kind"], 1)]
    is_sound = (features["kind"] < 2) & (features["source"] < sizes)
    if not (is_sound & (features["target"] < n_labels)).all():
        raise ValueError("a feature belongs to no label or attribute")
    if not n_labels:
        raise ValueError("it has no label")
    return labels, attributes, features


def _names_at(data, at, n):
    """The names of a table, by their numbers."""
    magic, *_, n_records, place = struct.unpack_from(NAMES, data, at)
    if magic != b"CQDB" or n_records < n:
        raise ValueError("a table of names is damaged")
    found = []
    for (record,) in struct.iter_unpack("<I", data[at + place :][: 4 * n]):
        _, size = struct.unpack_from(RECORD, data, at + record)
        start = at + record + struct.calcsize(RECORD)
        found.append(data[start : start + size - 1].decode())
    if len(found) < n:
        raise ValueError("it ends too early")
    return found


def _readings_of(name):
    """What our names may be of an attribute: a colon may stand before a string."""
    places = [j for j, letter in enumerate(name) if letter == ":"]
    return [name, *(f"{name[:j]}={name[j + 1 :]}" for j in places)]


def _fitted_pipeline(labels, attributes, emission, transition):
    # An attribute that has the name of another one's reading goes first.
    row_of: dict[str, Any] = {name: row for row, name in enumerate(attributes)}
    for row, name in enumerate(attributes):
        for reading in _readings_of(name):
            row_of.setdefault(reading, row)
    transformer = SequenceTransformer().fit([[list(row_of) or ["nothing"]]])
    names = transformer.get_feature_names_out().tolist()
    rows = [row_of[name] for name in names] if row_of else []
    structure = ChainStructure(bias=False, first_bias=False, last_bias=False)
    classes = labels.tolist()
    model = CRFClassifier(
        structure, solver_options={"classes": classes}, max_iter=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit([sparse.csr_array((1, len(names)))], [classes[:1]])
    emission = emission[rows] if rows else np.zeros((len(names), len(labels)))
    model.coef_ = np.concatenate([emission.ravel(), transition.ravel()])
    model.dual_gap_ = model.objective_ = model.dual_objective_ = np.nan
    return make_pipeline(transformer, model)
