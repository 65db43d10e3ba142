"""Trained classifiers as ONNX graphs, by way of skl2onnx."""

from sklearn.linear_model import LogisticRegression

from sklearn_structsvm._utils.scaled_logistic import ScaledLogisticRegression
from sklearn_structsvm.onnx import _skl2onnx
from sklearn_structsvm.onnx._converters import CONVERTERS
from sklearn_structsvm.onnx._parsing import model_name, parse, set_output_types

__all__ = ["register_converters"]


def register_converters():
    """Teach skl2onnx the classifiers of this package.

    Afterwards `skl2onnx.to_onnx` and `skl2onnx.convert_sklearn` take them, alone or in a
    pipeline. The conversion of a model without an exact form in ONNX is a ``ValueError``
    that says why. The following can be converted:

    - classifiers of rows: two classes, several classes, independent labels. The second
      output has a column for each class or label, of scores, or of probabilities
      for `CRFClassifier`. The scores of `BinaryStructure` are minus and plus those of
      `decision_function`.
    - `ComplexMetricClassifier` with ``lmo="plugin"``, over any classifier that skl2onnx
      supports. If its rules depend on the group, the graph has another input
      "sensitive_features" of shape (n_samples, 1). If it is a mixture of rules, the graph
      has an input "uniforms" of shape (n_samples, 1): numbers in [0, 1) that choose the
      rule of each row. ``model.row_hash_.choices(X, len(X))`` are those that
      ``predict(X)`` uses. Rules that depend on a baseline, or on groups of several
      columns, cannot be exported. Costs of examples are replaced by their means.
    - `MultilabelMetricClassifier`, except with ``average="samples"`` and without
      `labels_per_row`.
    - `StackedStructureClassifier`, of one sequence of at least one row, if a plain chain
      is over probabilities: labels, with probabilities or an SVM's max-marginals.

    Read more in the :ref:`User Guide <guide-deployment>`.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skl2onnx import to_onnx
    >>> from sklearn_structsvm import CRFClassifier
    >>> from sklearn_structsvm.onnx import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CRFClassifier()).fit(X, y)
    >>> register_converters()
    >>> graph = to_onnx(model, X[:1], options={"zipmap": False})
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    if _skl2onnx.MISSING is not None:
        raise ImportError(
            "skl2onnx writes ONNX graphs, and is not installed: pip install skl2onnx"
        ) from _skl2onnx.MISSING
    # The default classifier is written as what it is made of.
    names = _skl2onnx.sklearn_operator_name_map
    names[ScaledLogisticRegression] = names[LogisticRegression]
    for kind, convert in CONVERTERS.items():
        _skl2onnx.update_registered_converter(
            kind,
            model_name(kind),
            set_output_types,
            convert,
            parser=parse,
            options={
                "zipmap": [True, False, "columns"],
                "output_class_labels": [False, True],
                "nocl": [False, True],
            },
        )
