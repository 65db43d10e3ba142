"""Trained classifiers as ONNX graphs, by way of skl2onnx."""

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm.confusion.lmo._costs import reduce_costs
from sklearn_structsvm.confusion.lmo.plugin import by_pair
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.bcfw_cv import BCFWClassifierCV
from sklearn_structsvm.estimators.bmrm import BMRMClassifier
from sklearn_structsvm.estimators.complex_metric.classifier import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.correction import balanced_gain
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    ThresholdRule,
    TopLabelsRule,
)
from sklearn_structsvm.estimators.complex_metric.multilabel import (
    MultilabelMetricClassifier,
)
from sklearn_structsvm.estimators.complex_metric.pairs import IndependentPairs
from sklearn_structsvm.estimators.complex_metric.probabilities import reordered
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.crf_cv import CRFClassifierCV
from sklearn_structsvm.estimators.pragam import PragamClassifier
from sklearn_structsvm.estimators.probabilistic import ProbabilisticClassifier
from sklearn_structsvm.estimators.slack_rescaling import SlackRescaledSSVM
from sklearn_structsvm.estimators.sublbfgs import SubLBFGSClassifier
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)
from sklearn_structsvm.structures.ranking import RankingStructure

MISSING: ImportError | None = None
try:
    from skl2onnx import update_registered_converter
    from skl2onnx._parse import (
        _parse_sklearn,
        _parse_sklearn_classifier,
        _parse_sklearn_simple_model,
    )
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

__all__ = ["register_converters"]

LINEAR = (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
SINGLE_LABEL = BinaryStructure, MulticlassStructure
MULTILABEL = MultilabelStructure, RankingStructure

# Inputs of a graph beside the features, by their names.
BESIDE = GROUPS, UNIFORMS = "sensitive_features", "uniforms"


def register_converters():
    """Teach skl2onnx the classifiers of this package.

    Afterwards `skl2onnx.to_onnx` and `skl2onnx.convert_sklearn` take them, alone or in a
    pipeline. What has no exact form in ONNX is a ``ValueError`` that says so:

    - classifiers of rows (two classes, several classes, independent labels): any. The
      second output has a column for each class or label, of scores, or of probabilities
      for `CRFClassifier`. The scores of `BinaryStructure` are minus and plus those of
      `decision_function`.
    - `ComplexMetricClassifier` with ``lmo="plugin"``, over any classifier that skl2onnx
      knows. Where its rules depend on the group, the graph has one input more, named
      "sensitive_features", of shape (n_samples, 1). Where they are a mixture it has
      "uniforms", of shape (n_samples, 1): numbers in [0, 1) that choose the rule of each
      row. ``model.row_hash_.choices(X, len(X))`` are those of ``predict(X)``. Rules that
      depend on a baseline, or on groups of several columns, cannot be exported; costs of
      examples are taken for their means, as by `predict` without them.
    - `MultilabelMetricClassifier`, but for ``average="samples"`` without
      `labels_per_row`.

    Read more in the :ref:`User Guide <guide-deployment>`.

    Raises
    ------
    ImportError
        Without skl2onnx.

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
    if MISSING is not None:
        raise ImportError(
            "ONNX graphs are made by skl2onnx. Install it with "
            'pip install "sklearn-structsvm[onnx]".'
        ) from MISSING
    converters = dict.fromkeys(LINEAR, _convert_linear)
    converters[ComplexMetricClassifier] = _convert_mixture
    converters[MultilabelMetricClassifier] = _convert_label_rule
    for kind, convert in converters.items():
        update_registered_converter(
            kind,
            f"SklearnStructSVM{kind.__name__}",
            _set_output_types,
            convert,
            parser=_parse,
            options={
                "zipmap": [True, False, "columns"],
                "output_class_labels": [False, True],
                "nocl": [False, True],
            },
        )


def _parse(scope, model, inputs, custom_parsers=None):
    """The outputs of a classifier's graph."""
    check_is_fitted(model)
    CHECKS.get(type(model), _check_linear)(model)
    if not isinstance(model, LINEAR):
        inputs = _parse_inner(scope, model, inputs, custom_parsers)
    elif len(inputs) != 1:
        raise ValueError(
            f"{type(model).__name__} takes one matrix of features; got the inputs "
            f"{[x.raw_name for x in inputs]}."
        )
    if _has_several_labels(model):
        return _parse_sklearn_simple_model(scope, model, inputs, custom_parsers)
    _check_classes(model)
    return _parse_sklearn_classifier(scope, model, inputs, custom_parsers)


def _parse_inner(scope, model, inputs, custom_parsers):
    """Probabilities of the classifiers inside, and the inputs that are no features."""
    features = [x for x in inputs if x.raw_name not in BESIDE]
    found = []
    for classifier in _classifiers(model):
        scope.add_options(id(classifier), {"zipmap": False})
        _, probabilities = _parse_sklearn(scope, classifier, features, custom_parsers)
        found.append(probabilities)
    return found + [x for x in inputs if x.raw_name in BESIDE]


def _classifiers(model):
    """Those that give the probabilities."""
    inner = model.estimator_
    found = [inner]
    if isinstance(inner, IndependentPairs):
        found = [inner.estimator_, inner.group_estimator_]
    return [c.estimator if isinstance(c, FrozenEstimator) else c for c in found]


def _has_several_labels(model):
    if isinstance(model, MultilabelMetricClassifier):
        return True
    return type(getattr(model, "structure_", None)) in MULTILABEL


def _check_linear(model):
    kind = type(model.structure_)
    if kind not in SINGLE_LABEL + MULTILABEL:
        _refuse(model, f"{kind.__name__} decodes, for which ONNX has no operators")


def _check_mixture(model):
    mixture = model.mixture_
    if not mixture.needs_probabilities:
        _refuse(model, "its classifiers decide without class probabilities")
    mixture.check(len(model.classes_))
    finder = model.cell_finder_
    if finder.baseline is not None:
        _refuse(model, "its rules depend on the predictions of a baseline")
    if _sees_groups(model) and _group_type(finder.groups) is None:
        _refuse(
            model, "its groups are neither strings nor integers, or of several columns"
        )


def _check_label_rule(model):
    if not isinstance(model.rule_, (ThresholdRule, TopLabelsRule)):
        _refuse(model, "sets of largest expected F-measure are found by a search")
    if isinstance(getattr(model.estimator_, "classes_", None), list):
        _refuse(
            model,
            "its estimator gives a list of probabilities, an array for each label: "
            "OneVsRestClassifier gives one array",
        )


CHECKS = {
    ComplexMetricClassifier: _check_mixture,
    MultilabelMetricClassifier: _check_label_rule,
}


def _refuse(model, reason):
    raise ValueError(f"This {type(model).__name__} has no form in ONNX: {reason}.")


def _check_classes(model):
    if _labels(model.classes_) is None:
        _refuse(
            model,
            f"its classes are {model.classes_[:3].tolist()}, and labels are integers or "
            "strings there",
        )


def _labels(classes):
    """Classes as ONNX has them, int64 or str; None where they are neither."""
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        # As skl2onnx has it.
        return classes.astype(np.int64) if (classes == np.rint(classes)).all() else None
    is_text = all(isinstance(label, str) for label in classes.tolist())
    return classes.astype(str) if is_text else None


def _sees_groups(model):
    finder = model.cell_finder_
    return finder.groups is not None and not finder.group_blind


def _group_type(groups):
    """The type of the groups in a graph; None where they have none."""
    kinds = {type(name) for name in groups.names}
    if kinds == {str}:
        return StringTensorType
    return Int64TensorType if kinds <= {int, bool} else None


def _set_output_types(operator):
    """The shapes of both outputs, and the type of the labels."""
    model = operator.raw_operator
    n, n_classes = operator.inputs[0].get_first_dimension(), len(model.classes_)
    operator.outputs[1].type.shape = [n, n_classes]
    if _has_several_labels(model):
        operator.outputs[0].type = Int64TensorType([n, n_classes])
        return
    labels = _labels(get_label_classes(operator.scope_inst, model))
    kind = StringTensorType if labels.dtype.kind == "U" else Int64TensorType
    operator.outputs[0].type = kind([n])


class _Graph:
    """Nodes for a classifier, and what they end in.

    Attributes
    ----------
    real : type
        Of the numbers: as those that come in.
    """

    def __init__(self, scope, operator, container):
        self.scope, self.container = scope, container
        self.model, self.inputs = operator.raw_operator, operator.inputs
        self.outputs = operator.outputs
        self.real = guess_numpy_type(self.outputs[1].type)
        self._proto = guess_proto_type(self.outputs[1].type)

    def __getattr__(self, name):
        """`graph.MatMul(x, y)` is a node that multiplies."""
        kind = getattr(onnx_ops, f"Onnx{name}")

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
        return self.Cast(x, to=guess_proto_type(Int64TensorType()))

    def reshape(self, x, *shape):
        """x in another shape."""
        return self.Reshape(x, np.array(shape, dtype=np.int64))

    def input(self, name, kind=None):
        """An input beside the features, or None."""
        found = [x for x in self.inputs if x.raw_name == name]
        if not found:
            return None
        if kind is not None and not isinstance(found[0].type, kind):
            raise ValueError(
                f"The input {name!r} must be of type {kind.__name__}; got "
                f"{found[0].type}."
            )
        return found[0]

    def probabilities(self, place=0, classes=None):
        """Those of a classifier inside, in the order of `classes`."""
        found = self.as_real(self.inputs[place])
        known = np.asarray(_classifiers(self.model)[place].classes_)
        if classes is None or np.array_equal(known, classes):
            return found
        return self.MatMul(found, reordered(np.eye(len(known)), known, classes))

    def end(self, labels, numbers):
        """With these outputs."""
        for node, output in zip((labels, numbers), self.outputs, strict=True):
            last = self.Identity(node, output_names=[output])
            last.add_to(scope=self.scope, container=self.container)

    def end_with_codes(self, codes, numbers):
        """With the classes of these numbers from 0 on."""
        labels = _labels(get_label_classes(self.scope, self.model))
        self.end(self.Gather(labels, codes, axis=0), numbers)


def _convert_linear(scope, operator, container):
    """Scores W x + b, or probabilities, and the labels that follow."""
    graph = _Graph(scope, operator, container)
    model = graph.model
    structure, w = model.structure_, model._weights
    coef, intercept = structure.split_weights(w)
    intercept = np.zeros(len(coef)) if intercept is None else intercept
    is_proba = isinstance(model, ProbabilisticClassifier)
    if isinstance(structure, BinaryStructure):
        of_first = 0.0 if is_proba else -1.0
        coef = np.vstack([of_first * coef, coef])
        intercept = np.concatenate([of_first * intercept, intercept])
    scores = graph.Add(graph.MatMul(graph.as_real(graph.inputs[0]), coef.T), intercept)
    if type(structure) in SINGLE_LABEL:
        numbers = graph.Softmax(scores, axis=1) if is_proba else scores
        if is_proba and model.decoding == "mbr":
            expected = graph.MatMul(numbers, structure.label_costs_)
            codes = graph.ArgMin(expected, axis=1, keepdims=0)
        else:
            codes = graph.ArgMax(scores, axis=1, keepdims=0)
        graph.end_with_codes(codes, numbers)
        return
    if is_proba:
        numbers = graph.Sigmoid(scores)
        present = graph.Greater(scores, np.zeros(1))
        if model.decoding == "mbr":
            costs = structure.label_costs_
            missed = graph.Mul(numbers, costs[:, 1])
            wrong = graph.Mul(graph.Sub(np.ones(1), numbers), costs[:, 0])
            present = graph.Greater(missed, wrong)
    else:
        threshold = np.array([getattr(structure, "threshold_", 0.0)])
        present, numbers = graph.Greater(scores, threshold), graph.Sub(scores, threshold)
    graph.end(graph.as_int(present), numbers)


def _convert_mixture(scope, operator, container):
    """The labels that plug-in rules give, and how often."""
    graph = _Graph(scope, operator, container)
    model = graph.model
    mixture, k = model.mixture_, len(model.classes_)
    n_rules = len(mixture.weights)
    # Of shape (cells, rules, 1, k) and (cells, rules, groups times k, k).
    constant, factors = _costs(by_pair(mixture.mean_losses(), mixture.n_groups))
    if _sees_groups(model):
        group = _group_codes(graph, model.cell_finder_.groups)
        constant = graph.Gather(constant.astype(graph.real), group, axis=0)
        factors = graph.Gather(factors.astype(graph.real), group, axis=0)
    P = _mixture_probabilities(graph)
    P = graph.reshape(P, -1, 1, 1, mixture.n_groups * k)
    costs = graph.Add(graph.MatMul(P, factors), constant)
    codes = graph.ArgMin(graph.reshape(costs, -1, n_rules, k), axis=2, keepdims=0)
    is_chosen = graph.Equal(graph.reshape(codes, -1, n_rules, 1), np.arange(k))
    shares = graph.MatMul(mixture.weights[np.newaxis], graph.as_real(is_chosen))
    if n_rules > 1:
        codes = graph.GatherElements(codes, _chosen_rules(graph), axis=1)
    graph.end_with_codes(graph.reshape(codes, -1), graph.reshape(shares, -1, k))


def _costs(losses):
    """(b, D) with which predicting j costs (b + η D)_j, as the kernel computes it."""
    n_rules, n_cells, k, q = losses.shape
    numbers, separable = reduce_costs(losses.reshape(-1, k, q), False)
    constant, factors = np.zeros((len(losses) * n_cells, 1, q)), []
    for own, is_separable, b in zip(numbers, separable, constant, strict=True):
        if is_separable:
            b[0] = own[:q]
            factors.append(np.diag(own[q : 2 * q]))
        else:
            factors.append(own[: k * q].reshape(q, k).T)
    shape = n_rules, n_cells
    return tuple(
        np.swapaxes(np.reshape(part, (*shape, *np.shape(part)[1:])), 0, 1)
        for part in (constant, factors)
    )


def _mixture_probabilities(graph):
    """What the rules decide by."""
    model = graph.model
    mixture, classifier = model.mixture_, model.estimator_
    if isinstance(classifier, IndependentPairs):
        labels = graph.probabilities(0, classifier.classes)
        groups = graph.probabilities(1, classifier.groups)
        labels = graph.reshape(labels, -1, 1, len(classifier.classes))
        groups = graph.reshape(groups, -1, len(classifier.groups), 1)
        n_pairs = len(classifier.classes_)
        return graph.reshape(graph.Mul(groups, labels), -1, n_pairs)
    classes = model.classes_
    if mixture.n_groups > 1:
        classes = np.arange(mixture.n_groups * len(classes))
    P = graph.probabilities(0, classes)
    if mixture.correction is None:
        return P
    a, b = np.split(mixture.correction.calibration, [1])
    at_least = np.array([mixture.correction.floor])
    scores = graph.Mul(graph.Log(graph.Max(P, at_least)), a)
    P = graph.Softmax(graph.Add(scores, b), axis=1)
    part = graph.ArgMax(
        graph.Mul(P, balanced_gain(mixture.correction.shares)), axis=1, keepdims=0
    )
    factors = mixture.correction.factors.astype(graph.real)
    return graph.Mul(P, graph.Gather(factors, part, axis=0))


def _group_codes(graph, groups):
    """The number of each row's group; beyond the last for others, which is an error."""
    kind = _group_type(groups)
    column = graph.input(GROUPS, kind)
    if column is None:
        raise ValueError(
            f"The rules depend on the group: a second input is needed, "
            f"({GROUPS!r}, {kind.__name__}([None, 1]))."
        )
    keys = {"keys_strings": groups.names}
    if kind is Int64TensorType:
        keys = {"keys_int64s": [int(name) for name in groups.names]}
    m = len(groups.names)
    codes = graph.LabelEncoder_2(
        column, values_int64s=list(range(m)), default_int64=m, **keys
    )
    return graph.reshape(codes, -1)


def _chosen_rules(graph):
    """The rule of each row, of shape (n, 1)."""
    uniforms = graph.input(UNIFORMS)
    weights = graph.model.mixture_.weights
    if uniforms is None:
        raise ValueError(
            f"This {type(graph.model).__name__} is a mixture of {len(weights)} rules, "
            "one of which is chosen for each row by a hash that ONNX has no operators "
            f"for: an input is needed, ({UNIFORMS!r}, DoubleTensorType([None, 1])), of "
            "numbers in [0, 1)."
        )
    ends = np.cumsum(weights)[:-1].astype(guess_numpy_type(uniforms.type))
    ends = onnx_ops.OnnxIdentity(ends, op_version=graph.container.target_opset)
    passed = graph.as_int(graph.GreaterOrEqual(uniforms, ends))
    ones = np.ones((len(weights) - 1, 1), dtype=np.int64)
    return graph.MatMul(passed, ones)


def _calibrated(graph, P):
    """Probabilities of labels by the model's sigmoids, if it has any."""
    if graph.model.label_sigmoids_ is None:
        return P
    a, b = graph.model.label_sigmoids_.T
    floor, zero = np.array([graph.model.label_floor_]), np.array([0.0])
    logs = [
        graph.Log(graph.Max(part, floor)) for part in (P, graph.Sub(np.array([1.0]), P))
    ]
    q = graph.Sigmoid(graph.Add(graph.Mul(graph.Sub(*logs), a), b))
    return graph.Where(graph.Greater(P, zero), q, zero)


def _convert_label_rule(scope, operator, container):
    """Labels by thresholds, or those of the largest gains."""
    graph = _Graph(scope, operator, container)
    model, n_labels = graph.model, len(graph.model.classes_)
    P = graph.probabilities()
    if n_labels == 1 and len(model.estimator_.classes_) == 2:
        P = graph.MatMul(P, np.array([[0.0], [1.0]]))
    rule = model.rule_
    if isinstance(rule, ThresholdRule):
        present = graph.Greater(P, rule.values)
        graph.end(graph.as_int(present), P)
        return
    q = _calibrated(graph, P)
    gains = graph.Add(graph.Mul(q, rule.gains[:, 1]), rule.gains[:, 0])
    best = graph.TopK(gains, np.array([rule.k], dtype=np.int64), axis=1)[1]
    is_best = graph.Equal(graph.reshape(best, -1, rule.k, 1), np.arange(n_labels))
    ones = np.ones((1, rule.k), dtype=np.int64)
    present = graph.MatMul(ones, graph.as_int(is_best))
    graph.end(graph.reshape(present, -1, n_labels), P)
