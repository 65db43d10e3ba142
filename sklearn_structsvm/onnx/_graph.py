"""Nodes of a classifier's ONNX graph, written like calls."""

import numpy as np

from sklearn_structsvm.estimators.complex_metric.probabilities import reordered
from sklearn_structsvm.onnx import _skl2onnx
from sklearn_structsvm.onnx._parsing import inner_classifiers, onnx_labels


class Graph:
    """Builder of the nodes of a classifier's graph.

    `real`: NumPy type of the graph's real numbers, that of its scores or probabilities.
    """

    def __init__(self, scope, operator, container):
        self.scope, self.container = scope, container
        self.model, self.inputs = operator.raw_operator, operator.inputs
        self.outputs = operator.outputs
        self.real = _skl2onnx.guess_numpy_type(self.outputs[1].type)
        self._proto = _skl2onnx.guess_proto_type(self.outputs[1].type)

    def __getattr__(self, name):
        """ONNX operators by their names: `graph.MatMul(x, y)` is a node."""
        kind = getattr(_skl2onnx.onnx_ops, f"Onnx{name}")

        def make(*inputs, **attributes):
            inputs = [self._constant(x) for x in inputs]
            return kind(*inputs, op_version=self.container.target_opset, **attributes)

        return make

    def _constant(self, x):
        is_real = isinstance(x, np.ndarray) and x.dtype.kind == "f"
        return x.astype(self.real) if is_real else x

    def as_real(self, x):
        """x in the precision of the graph."""
        return self.Cast(x, to=self._proto)

    def as_int(self, x):
        """x as int64."""
        return self.Cast(x, to=_skl2onnx.guess_proto_type(_skl2onnx.Int64TensorType()))

    def reshape(self, x, *shape):
        """x with another shape."""
        return self.Reshape(x, np.array(shape, dtype=np.int64))

    def input(self, name, kind=None):
        """The input of this name, or None; ValueError if it is not of type `kind`."""
        found = [x for x in self.inputs if x.raw_name == name]
        if not found:
            return None
        if kind is not None and not isinstance(found[0].type, kind):
            raise ValueError(
                f"The input {name!r} must be of type {kind.__name__}; got "
                f"{found[0].type}."
            )
        return found[0]

    def probabilities(self, index=0, classes=None):
        """Probabilities of an inner classifier, its columns in the order of `classes`."""
        found = self.as_real(self.inputs[index])
        known = np.asarray(inner_classifiers(self.model)[index].classes_)
        if classes is None or np.array_equal(known, classes):
            return found
        return self.MatMul(found, reordered(np.eye(len(known)), known, classes))

    def finish(self, labels, numbers):
        """End the graph with these outputs."""
        for node, output in zip((labels, numbers), self.outputs, strict=True):
            last = self.Identity(node, output_names=[output])
            last.add_to(scope=self.scope, container=self.container)

    def finish_with_codes(self, codes, numbers):
        """End the graph with the classes of these codes, as labels."""
        labels = onnx_labels(_skl2onnx.get_label_classes(self.scope, self.model))
        self.finish(self.Gather(labels, codes, axis=0), numbers)
