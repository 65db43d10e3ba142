"""All imports from skl2onnx, an optional package; some of the names are private.

If it cannot be imported, the error is `MISSING`, and the other names do not exist.
"""

MISSING: ImportError | None = None
try:
    from onnx import compose, numpy_helper, parser
    from skl2onnx import update_registered_converter
    from skl2onnx._parse import (
        _parse_sklearn,
        _parse_sklearn_classifier,
        _parse_sklearn_simple_model,
    )
    from skl2onnx._supported_operators import sklearn_operator_name_map
    from skl2onnx.algebra import onnx_ops
    from skl2onnx.common.data_types import (
        Int64TensorType,
        StringTensorType,
        guess_numpy_type,
        guess_proto_type,
    )
    from skl2onnx.common.utils_classifier import get_label_classes
except ImportError as error:
    MISSING = error

__all__ = [
    "MISSING",
    "Int64TensorType",
    "StringTensorType",
    "_parse_sklearn",
    "_parse_sklearn_classifier",
    "_parse_sklearn_simple_model",
    "compose",
    "get_label_classes",
    "guess_numpy_type",
    "guess_proto_type",
    "numpy_helper",
    "onnx_ops",
    "parser",
    "sklearn_operator_name_map",
    "update_registered_converter",
]
