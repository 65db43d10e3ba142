"""Trained taggers as arrays, for machines with NumPy alone; models of CRFsuite."""

import inspect
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.labels import listed
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.snapshots import snapshot
from sklearn_structsvm._utils.tokens import TokenVectorizer
from sklearn_structsvm.estimators.prediction import PredictionMixin
from sklearn_structsvm.export import numpy_tagger
from sklearn_structsvm.export.crfsuite import from_crfsuite
from sklearn_structsvm.structures import ChainStructure

__all__ = ["export_tagger", "from_crfsuite"]


@with_plain_calls
def export_tagger(model: Any, path: str | PathLike[str]) -> None:
    """Write a tagger as NumPy arrays, and beside them a module that predicts with NumPy.

    The module is ``numpy_tagger.py``, in the folder of `path`. Its class ``Tagger`` reads
    the arrays, and its ``predict`` returns the same labels as that of the model: ties go
    to the first class in both, and scores agree up to rounding. It needs neither this
    package nor scikit-learn. Its `allowed` takes None or a boolean array of shape
    (T_i, n_classes) for each sequence.

    Read more in the :ref:`User Guide <guide-numpy>`.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted classifier over a `ChainStructure`, or a pipeline of a
        `SequenceTransformer` without a transformer, which reads tokens, and such a
        classifier. Without a pipeline, sequences are arrays or CSR matrices.
    path : path-like
        The file to write, with the ending ".npz". No pickle is in it.

    Raises
    ------
    ValueError
        If the model has another form or ``decoding="mbr"``, if classes are not strings,
        numbers or booleans, or if a name of a feature is not a string.

    See Also
    --------
    sklearn_structsvm.onnx.register_converters : Classifiers of rows as ONNX graphs.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.export import export_tagger
    >>> from sklearn_structsvm.export.numpy_tagger import Tagger
    >>> from sklearn_structsvm.preprocessing import SequenceTransformer
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> model = make_pipeline(SequenceTransformer(), CRFClassifier("chain")).fit(X, y)
    >>> path = f"{tempfile.mkdtemp()}/tagger.npz"
    >>> export_tagger(model, path)
    >>> Tagger(path).predict([[{"word": "a"}, {"word": "cat"}]])[0].tolist()
    ['DET', 'NOUN']
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end with '.npz'; got {str(path)!r}.")
    vectorizer, classifier = _steps_of(model)
    arrays = _arrays_of(classifier)
    reads = {"items": "pairs" if classifier.structure_.emission == "both" else "arrays"}
    if vectorizer is not None:
        reads = _reading_of(vectorizer)
    arrays["reads"] = np.frombuffer(json.dumps(reads).encode(), np.uint8)
    np.savez_compressed(path, **arrays)
    module = path.with_name(f"{numpy_tagger.__name__.rpartition('.')[2]}.py")
    module.write_text(inspect.getsource(numpy_tagger), encoding="utf-8")


def _steps_of(model):
    """The vectorizer of tokens, or None, and the classifier."""
    check_is_fitted(model)
    *before, classifier = model if isinstance(model, Pipeline) else [model]
    classifier = snapshot(classifier)
    is_of_chains = type(getattr(classifier, "structure_", None)) is ChainStructure
    if not (is_of_chains and isinstance(classifier, PredictionMixin)):
        raise ValueError(
            "model must be a classifier over a ChainStructure, or a pipeline of "
            f"SequenceTransformer() and such a classifier; got {classifier!r}."
        )
    if classifier.structure_.edge_features:
        raise ValueError("The module does not support edge_features=True.")
    if getattr(classifier, "_decoding", "map") != "map":
        raise ValueError(
            f"decoding={classifier._decoding!r} needs sums over all labelings, which the "
            "module cannot compute: set_params(solver_options__decoding='map') first."
        )
    if not before:
        return None, classifier
    vectorizer = getattr(before[0], "transformer_", None)
    if len(before) > 1 or not isinstance(vectorizer, TokenVectorizer):
        raise ValueError(
            "Before the classifier, only SequenceTransformer() without a transformer can "
            f"be exported; got {before}. Export the last step, model[-1], and give the "
            "module the features as arrays."
        )
    return vectorizer, classifier


def _arrays_of(classifier):
    """The classes, and what they score; forbidden transitions score -inf."""
    structure = classifier.structure_
    parts = structure.weight_parts(classifier._weights)
    k = len(structure.classes_)
    forbidden = np.zeros((k + 1, k + 1))
    if structure.allowed_ is not None:
        forbidden[~structure.allowed_] = -np.inf
    zeros = np.zeros((k, k))
    emission = parts.get("emission", np.zeros((structure.n_features_in_, k)))
    if structure.emission == "given":
        emission = emission * np.eye(k)
    return {
        "classes": _plain_classes(structure.classes_),
        "emission": emission,
        "scale": parts.get("scale", zeros[0, :1]),
        "bias": parts.get("bias", zeros[0]),
        "first": parts.get("first_bias", zeros[0]) + forbidden[k, :k],
        "last": parts.get("last_bias", zeros[0]) + forbidden[:k, k],
        "transition": parts.get("transition", zeros) + forbidden[:k, :k],
    }


def _plain_classes(classes):
    """The classes with a dtype that needs no pickle."""
    labels = classes.tolist()
    found = np.array(labels) if classes.dtype.hasobject else classes
    if found.dtype.hasobject or found.tolist() != labels:
        raise ValueError(
            "Classes must be strings, numbers or booleans that an array holds without "
            f"pickle; got {listed(classes)}."
        )
    return found


def _reading_of(vectorizer):
    """How tokens become rows of features, as JSON has it."""
    names, vectors = vectorizer.feature_names_, vectorizer.vectors_
    return {
        "items": "tokens",
        "names": names[: vectorizer.n_attributes],
        "vectors": {
            name: (first, first + length) for name, (first, length) in vectors.items()
        },
        "with_vector": vectorizer.is_pair_,
        "dtype": np.dtype(vectorizer.matrix_dtype_).name,
    }
